"""The explorer in a browser, and what its tests ask it."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from browsers import Page as AnyPage
from browsers import show, webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait


class Page(AnyPage):
    """The explorer in a browser."""

    def open(self, path: Path, link: str = "", dark: bool = False, size: tuple[int, int] = (1280, 800)) -> None:
        show(self.browser, dark, size)
        self.browser.get("about:blank")
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        self.browser.get(path.as_uri() + link)
        self.wait(lambda: self.script("return document.documentElement.dataset.ready !== undefined"))

    def wait(self, condition: Callable[[], object]) -> None:
        WebDriverWait(self.browser, 15, poll_frequency=0.05).until(lambda _: condition())

    def link(self, part: str) -> str:
        """The state in the address, as soon as it has a part."""
        self.wait(lambda: part in self.script("return location.hash"))
        return self.script("return location.hash")

    def text(self, selector: str) -> str:
        return self.script("return document.querySelector(arguments[0]).textContent", selector)

    def number(self, selector: str) -> int:
        return int(self.text(selector).replace(",", ""))

    def hidden(self, selector: str) -> bool:
        return self.script("return document.querySelector(arguments[0]).hidden", selector)

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self.browser, duration=0).send_keys(*keys).perform()

    def keys_with(self, held: str, *keys: str) -> None:
        """Press keys while another one is held."""
        webdriver.ActionChains(self.browser, duration=0).key_down(held).send_keys(*keys).key_up(held).perform()

    def take(self, text: str) -> None:
        """Search, and choose what is found first."""
        self.search(text)
        self.press(Keys.ENTER)

    def choose_option(self, selector: str, value: str) -> None:
        change = "s.value = arguments[1]; s.dispatchEvent(new Event('change'))"
        self.script(f"const s = document.querySelector(arguments[0]); {change}", selector, value)

    def focus(self) -> str:
        return self.script("return document.activeElement.id || document.activeElement.tagName")

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened, inside the file or outside."""
        events = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]

    def rest(self) -> None:
        """Wait until the picture is drawn and stands still."""
        self.browser.execute_async_script("""
            const done = arguments[0];
            let still = 0;
            requestAnimationFrame(function frame() {
              const { view } = explorer;
              still = !view.fitting && !view.moving && view.painter.isDone ? still + 1 : 0;
              if (still > 3) done();
              else requestAnimationFrame(frame);
            });
        """)

    def pixels(self) -> str:
        self.rest()
        return self.script("return document.querySelector('#canvas canvas').toDataURL()")

    def seen(self) -> list[int]:
        """The nodes that are drawn."""
        return sorted(self.script("return explorer.view.scene.nodes.filter((n) => n.seen).map((n) => n.key)"))

    def keep_files(self) -> None:
        """Keep what the page saves in place of writing it."""
        self.script("""
            window.saved = [];
            window.save = (name, type, content) => {
              if (typeof content === "string") saved.push([name, type, content]);
              else saved.push([name, type, content.size]);
            };
        """)

    def saved_csv(self) -> pd.DataFrame:
        self.keep_files()
        self.find("#save-csv").click()
        return pd.read_csv(io.StringIO(self.script("return saved.at(-1)[2]")))

    def drag(self, *moves: tuple[int, int]) -> None:
        chain = webdriver.ActionChains(self.browser, duration=20).move_to_element(self.find("#canvas"))
        chain.move_by_offset(-300, -250).click_and_hold()
        for move in moves:
            chain.move_by_offset(*move)
        chain.release().perform()

    def labels(self) -> list[str]:
        self.rest()
        return self.script("return explorer.view.placed.map((box) => box.text)")

    def zoom(self, factor: float) -> None:
        self.script("const { canvas } = explorer.view; canvas.zoom(canvas.zoom() * arguments[0])", factor)
        self.rest()

    def opened(self) -> list[int]:
        self.rest()
        return self.script("return [...explorer.view.detail.opened.keys()]")

    def pick(self, *texts) -> None:
        """Pick items by what they are called, by keyboard."""
        if self.script("return document.querySelector('#picks').hidden"):
            self.find("#recommend").click()
        for text in texts:
            self.find("#pick-search").send_keys(text, Keys.ENTER)

    def picked(self) -> list:
        return self.script("return [...explorer.picks.ratings]")
