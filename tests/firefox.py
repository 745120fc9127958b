"""Firefox for the tests of pages; selenium speaks to it by Marionette, its own protocol, without geckodriver."""

from __future__ import annotations

import itertools
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.remote.command import Command

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
FLAGS = ["--headless", "--no-remote", "--marionette", "--remote-allow-system-access"]
QUIET = {
    "marionette.port": 0,  # any free one, which it writes into the profile
    "services.settings.server": "data:,",
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "browser.startup.blankWindow": False,
    "browser.newtabpage.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "app.normandy.enabled": False,
    "extensions.getAddons.cache.enabled": False,
}
# Marionette has the commands of WebDriver under other names, and names for their parameters as WebDriver has.
COMMANDS = {
    Command.NEW_SESSION: "WebDriver:NewSession",
    Command.GET: "WebDriver:Navigate",
    Command.GET_TITLE: "WebDriver:GetTitle",
    Command.GET_CURRENT_URL: "WebDriver:GetCurrentURL",
    Command.FIND_ELEMENT: "WebDriver:FindElement",
    Command.FIND_ELEMENTS: "WebDriver:FindElements",
    Command.W3C_GET_ACTIVE_ELEMENT: "WebDriver:GetActiveElement",
    Command.CLICK_ELEMENT: "WebDriver:ElementClick",
    Command.CLEAR_ELEMENT: "WebDriver:ElementClear",
    Command.SEND_KEYS_TO_ELEMENT: "WebDriver:ElementSendKeys",
    Command.GET_ELEMENT_TEXT: "WebDriver:GetElementText",
    Command.IS_ELEMENT_SELECTED: "WebDriver:IsElementSelected",
    Command.W3C_EXECUTE_SCRIPT: "WebDriver:ExecuteScript",
    Command.W3C_EXECUTE_SCRIPT_ASYNC: "WebDriver:ExecuteAsyncScript",
    Command.SET_TIMEOUTS: "WebDriver:SetTimeouts",
    Command.W3C_ACTIONS: "WebDriver:PerformActions",
    Command.W3C_CLEAR_ACTIONS: "WebDriver:ReleaseActions",
    Command.SCREENSHOT: "WebDriver:TakeScreenshot",
}
# What the console has of pages since it was last asked: errors that nobody caught, and what the policy refused.
LOG = """
const errors = Services.console.getMessageArray().filter((message) => message instanceof Ci.nsIScriptError
  && !(message.flags & Ci.nsIScriptError.warningFlag) && !message.isFromChromeContext);
Services.console.reset();
return errors.map((error) => ({ level: "SEVERE", message: error.errorMessage }));
"""
SHOW = """
const [dark, width, height] = arguments;
Services.prefs.setIntPref("layout.css.prefers-color-scheme.content-override", dark ? 0 : 1);
for (const [name, size] of [["width", width], ["height", height]]) {
  for (const each of ["", "min-", "max-"]) gBrowser.selectedBrowser.style.setProperty(each + name, `${size}px`);
}
"""


class Marionette:
    """Sends the commands of selenium; a message is its length, a colon, and JSON."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")
        self.numbers = itertools.count(1)
        self.receive()  # it says who it is

    def receive(self) -> Any:
        length = b"".join(iter(lambda: self.file.read(1), b":"))
        return json.loads(self.file.read(int(length)))

    def send(self, name: str, parameters: dict[str, Any]) -> tuple[Any, Any]:
        """Return the error and the result of a command, one of which is None."""
        text = json.dumps([0, next(self.numbers), name, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, result = self.receive()
        return error, result

    def execute(self, command: str, parameters: dict[str, Any]) -> dict[str, Any]:
        if command == Command.QUIT:
            self.send("Marionette:Quit", {"flags": ["eForceQuit"]})
            return {}
        error, result = self.send(COMMANDS[command], {} if command == Command.NEW_SESSION else parameters)
        if error:
            return {"status": error["error"], "value": error}
        return {"value": result["value"] if isinstance(result, dict) and "value" in result else result}

    def privileged(self, script: str, *arguments: Any) -> Any:
        """Run a script in the browser itself in place of the page."""
        self.send("Marionette:SetContext", {"value": "chrome"})
        error, result = self.send("WebDriver:ExecuteScript", {"script": script, "args": arguments})
        self.send("Marionette:SetContext", {"value": "content"})
        if error:
            raise RuntimeError(error["message"])
        return result["value"]

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class Firefox(webdriver.Remote):
    """A browser that tests use like Chromium's."""

    command_executor: Any

    def get_log(self, log_type: str) -> list[dict[str, str]]:
        """Return the errors of pages since the last call; there is no other log."""
        return self.command_executor.privileged(LOG) if log_type == "browser" else []


@contextmanager
def firefox() -> Iterator[Any]:
    """A browser with a profile of its own, until the end of the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in QUIET.items()]
        Path(profile, "user.js").write_text("\n".join(lines))
        command = [str(FIREFOX), *FLAGS, "--profile", profile]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            connection: Any = Marionette(port_of(process, Path(profile, "MarionetteActivePort")))
            driver = Firefox(connection, options=webdriver.FirefoxOptions())
            yield driver
            driver.quit()
            process.wait(20)
        finally:
            process.kill()
            process.wait()


def port_of(process: subprocess.Popen[bytes], file: Path, seconds: float = 60) -> int:
    """Where the browser listens, as soon as it does."""
    end = time.monotonic() + seconds
    while not (file.exists() and file.read_text()):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"Firefox does not listen, its status is {process.poll()}")
        time.sleep(0.05)
    return int(file.read_text())


def show(driver: Any, dark: bool, size: tuple[int, int]) -> None:
    """Prefer a colour scheme, and be a window of that size."""
    driver.command_executor.privileged(SHOW, dark, *size)
    wanted = (
        "return innerWidth === arguments[0] && matchMedia('(prefers-color-scheme: dark)').matches === arguments[1]"
    )
    end = time.monotonic() + 10
    while not driver.execute_script(wanted, size[0], dark):
        if time.monotonic() > end:
            raise RuntimeError("Firefox does not take the size or the colours")
        time.sleep(0.02)
