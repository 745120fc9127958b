"""The page in both browsers: what one types, picks and reads, dark and on a phone; no title is more than text."""

import pytest
from axe import barriers
from browsers import BOTH, TRESPASS, browser_named, show, webdriver
from browsers import Page as AnyPage
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from serving_cases import HOSTILE, running, write_files


class Page(AnyPage):
    """The page of a service in a browser."""

    def open(self, address, dark=False, size=(1280, 800)):
        show(self.browser, dark, size)
        self.browser.get_log("browser")
        self.browser.get(address)
        self.wait("document.documentElement.dataset.ready")

    def wait(self, condition):
        WebDriverWait(self.browser, 30, poll_frequency=0.05).until(lambda _: self.script(f"return {condition}"))

    def pick(self, text):
        """Search and press Enter, which picks what was found first; wait for the list."""
        already = len(self.texts("#picked li"))
        self.search(text + Keys.ENTER)
        self.wait(f"document.querySelectorAll('#picked li').length === {already + 1}")
        self.wait_for_list()

    def wait_for_list(self):
        self.wait("/^The best|^No item/.test(document.getElementById('status').textContent)")

    def errors(self):
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture(scope="module", params=BOTH)
def page(request):
    with browser_named(request.param) as browser:
        yield Page(browser)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def ratings(files):
    with running(files / "ratings.air", "--port", 0, "--titles", files / "titles.csv") as server:
        yield server.address


@pytest.fixture(scope="module")
def likes(files):
    with running(files / "likes.air", "--port", 0, "--titles", files / "titles.csv") as server:
        yield server.address


def test_pick_read_the_list_and_why_and_only_this_server_is_asked(page, ratings):
    page.open(ratings)
    assert page.texts("#about") == ["AIR, learned from ratings of 60 users and 40 items"]
    page.pick("film 02")
    assert page.texts("#picked .title") == ["Film 02"]
    assert len(page.texts("#list li")) == 10
    page.pick("film 04")
    assert page.texts("#status") == ["The best 10 of 40 items."]
    named, scores, reasons = (page.texts(f"#list {name}") for name in (".title", ".score", ".why"))
    assert not {"Film 02", "Film 04"} & {name.partition(" ")[2] for name in named}
    assert all(" ± " in score for score in scores)
    assert len(reasons) == 10
    assert any(reason.startswith("Why: Film 0") for reason in reasons)
    assert all(reason.startswith(("Why: Film 0", "Why: it stands high")) for reason in reasons)
    means = [float(score.partition(" ")[0]) for score in scores]
    assert means == sorted(means, reverse=True)
    places = page.script("""
        return [...document.querySelectorAll("#list .scale")].map((scale) => {
          const [outer, band, mark] = [scale, ...scale.children].map((e) => e.getBoundingClientRect());
          return [outer.left, band.left, (mark.left + mark.right) / 2, band.right, outer.right];
        });
    """)
    assert len(places) == 10
    for place in places:
        assert place == pytest.approx(sorted(place), abs=0.5)
    asked = page.script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert len(asked) > 3
    assert [address for address in asked if not address.startswith((ratings, "data:"))] == []
    assert page.errors() == []


def replace(page, field, text):
    field.click()
    everything = webdriver.ActionChains(page.browser, duration=0).key_down(Keys.CONTROL).send_keys("a")
    everything.key_up(Keys.CONTROL).send_keys(text, Keys.TAB).perform()


def test_another_rating_makes_another_list(page, ratings):
    page.open(ratings)
    page.pick("film 02")
    before = page.texts("#list .score")
    rating = page.find("#picked input")
    assert rating.get_attribute("value") == "5"
    replace(page, rating, "1")
    page.wait(f"document.querySelector('#list .score').textContent !== {before[0]!r}")
    replace(page, rating, "77")
    assert rating.get_attribute("value") == "1"  # is no rating
    page.find("#picked .remove").click()
    assert page.texts("#list li") == []
    assert page.script("return document.getElementById('none').hidden") is False
    assert page.errors() == []


def test_likes_have_no_ratings_and_no_bars(page, likes):
    page.open(likes)
    page.pick("film 02")
    assert page.texts("#picked input") == []
    assert page.texts("#list .scale") == []
    assert "does not tell how sure" in page.texts("#meaning")[0]
    assert page.texts("#list .why")[0].startswith("Why: Film 02")
    page.find("#clear").click()
    assert page.texts("#picked li") == page.texts("#list li") == []
    assert page.errors() == []


def test_everything_by_keyboard(page, ratings):
    page.open(ratings)
    page.search("film 06")
    page.wait("document.querySelectorAll('#found button').length === 1")
    keys = webdriver.ActionChains(page.browser, duration=0)
    keys.send_keys(Keys.TAB, Keys.ENTER).perform()
    page.wait_for_list()
    assert page.texts("#picked .title") == ["Film 06"]
    nameless = page.script("""
        const named = (e) => e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.[0]?.textContent.trim();
        return [...document.querySelectorAll("button, input, [role=img]")].filter((e) => !named(e)).length;
    """)
    assert nameless == 0
    page.search("no such film" + Keys.ENTER)
    page.wait("document.getElementById('found').textContent === 'Nothing found'")
    assert page.texts("#picked .title") == ["Film 06"]


def test_hostile_titles_and_scripts_never_run(page, ratings):
    page.open(ratings)
    for number, id in enumerate(("i1", "i3", "i5")):
        page.pick(id)
        assert page.texts("#picked .title")[number] == HOSTILE[number]
    shown = page.script("return document.body.textContent")
    assert all(text in shown for text in HOSTILE)
    assert page.script("return [window.hacked ?? null, document.querySelectorAll('img').length]") == [None, 0]
    assert page.errors() == []
    page.script(TRESPASS)
    page.wait("refused.length === 3")
    assert set(page.script("return refused")) == {"connect-src", "img-src", "script-src-elem"}
    assert page.script("return window.hacked ?? null") is None


@pytest.mark.parametrize(("dark", "size"), [(False, (1280, 800)), (True, (390, 844))], ids=["light", "dark phone"])
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_screen(page, ratings, dark, size):
    page.open(ratings, dark=dark, size=size)
    page.pick("i1")
    page.pick("film 02")
    assert page.script("return document.documentElement.scrollWidth") <= size[0]
    tops = page.script("return [...document.querySelectorAll('section')].map((e) => e.getBoundingClientRect().top)")
    assert (tops[0] < tops[1]) is dark  # one below the other on a phone
    assert page.errors() == []
    assert barriers(page.browser) == []
