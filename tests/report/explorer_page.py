"""The explorer in a browser, and what its tests ask it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from browsers import Page as AnyPage
from browsers import chromium, show, webdriver
from selenium.webdriver.support.ui import WebDriverWait


@contextmanager
def explorer_in_chromium(profile: Path) -> Iterator["Page"]:
    """Chromium with a profile of its own, for the explorer's tests, until the end of the block."""
    with chromium(f"--user-data-dir={profile}", logs=("browser", "performance")) as browser:
        yield Page(browser)


class Page(AnyPage):
    """The explorer in a browser."""

    def open(self, path: Path, dark: bool = False, size: tuple[int, int] = (1280, 800)) -> None:
        show(self.browser, dark, size)
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        self.browser.get(path.as_uri())
        self.wait(lambda: self.ready_ms() is not None)

    def ready_ms(self) -> int | None:
        found = self.script("return document.documentElement.dataset.ready ?? null")
        return None if found is None else int(found)

    def wait(self, condition) -> None:
        WebDriverWait(self.browser, 15, poll_frequency=0.05).until(lambda _: condition())

    def text(self, selector) -> str:
        return self.script("return document.querySelector(arguments[0]).textContent", selector)

    def number(self, selector) -> int:
        return int(self.text(selector).replace(",", ""))

    def hidden(self, selector) -> bool:
        return self.script("return document.querySelector(arguments[0]).hidden", selector)

    def press(self, *keys) -> None:
        webdriver.ActionChains(self.browser, duration=0).send_keys(*keys).perform()

    def keys_with(self, held, *keys) -> None:
        """Press keys while another one is held."""
        webdriver.ActionChains(self.browser, duration=0).key_down(held).send_keys(*keys).key_up(held).perform()

    def focus(self) -> str:
        return self.script("return document.activeElement.id || document.activeElement.tagName")

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened, inside the file or outside."""
        events = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]

    def drawn_pixels(self) -> str:
        """The picture as it is, when no frame is to come."""
        self.browser.execute_async_script("setTimeout(arguments[0], 350)")
        return self.script("return document.querySelector('#canvas canvas').toDataURL()")


def downloads(page) -> None:
    """Keep what the page saves in place of writing it."""
    page.script("""
        window.saved = [];
        window.save = (name, type, content) => {
          if (typeof content === "string") saved.push([name, type, content]);
          else saved.push([name, type, content.size]);
        };
    """)


def choose_option(page, selector, value) -> None:
    page.script(
        "const s = document.querySelector(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))",
        selector,
        value,
    )
