"""Picks and recommendations in Chromium: the page's own fold-in against that of Python, and what a visitor does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from axe import barriers
from browsers import webdriver
from explorer_cases import HOSTILE
from selenium.webdriver.common.keys import Keys

from air_recsys import AIR, Interactions
from air_recsys.datasets import make_planted_ratings
from air_recsys.models.further import Further
from air_recsys.nn.row_kernels import Lasting
from air_recsys.report import explorer_of
from air_recsys.report.document import read_asset
from air_recsys.report.fold_in import fold_in_content, fold_in_scripts

N_USERS, N_ITEMS = 120, 60
PICKS = [(3, 5.0), (17, 1.0), (30, 4.0), (41, 2.0)]  # positions of items, and ratings
NEW = 10_000  # the new user
CLOSE = 1e-3


@pytest.fixture(scope="module")
def ratings() -> Interactions:
    """Ratings of 1 to 5 stars by planted groups."""
    return make_planted_ratings(N_USERS, N_ITEMS, 2000, 4, 4, star=1.0).interactions


@pytest.fixture(scope="module")
def model(ratings) -> AIR:
    """The preset for ratings."""
    return AIR.for_ratings(random_state=0, device="cpu").fit(ratings)


@pytest.fixture(scope="module")
def path(model, tmp_path_factory) -> Path:
    """Its page; some titles are hostile."""
    titles = [f"Film {number}" for number in range(N_ITEMS)]
    titles[50:54] = HOSTILE
    table = pd.DataFrame({"title": titles, "shelf": [HOSTILE[1]] * N_ITEMS})
    return explorer_of(model, tmp_path_factory.mktemp("page") / "m.html", table, recommend=True)


def folded(model, picks=PICKS) -> Any:
    """Python's answer: a model of the new user alone."""
    items, values = zip(*picks, strict=True)
    return model.fold_in(
        Interactions([0] * len(items), range(len(items)), values, [NEW], model.interactions_.item_ids[list(items)])
    )


SOLVE = """
const foldIn = new FoldIn(arguments[0]);
const picks = arguments[1].map(([item, rating]) => ({ item, rating }));
const scores = foldIn.solve(picks);
const listed = bestOf(scores, new Map(arguments[1]), 20);
return {
  listed,
  scores: listed.map((item) => (arguments[0].limit ? limitedScore(arguments[0], scores[item]) : scores[item])),
  deviations: listed.map((item) => foldIn.deviation(item)),
  reasons: {
    ...foldIn.reasons(listed[0]),
    edges: null,
    picks: Array.from(foldIn.reasons(listed[0]).picks),
    near: Array.from(foldIn.reasons(listed[0]).near || []),
  },
};
"""


def solved(page, model, picks=PICKS) -> dict:
    """What the scripts of the page make of picks."""
    content = fold_in_content(model, True)
    assert content is not None
    scripts = "\n".join(read_asset(name).replace('"use strict";', "") for name in fold_in_scripts(content)[:2])
    return page.script(scripts + SOLVE, content, picks)


def timed(data: Interactions) -> Interactions:
    times = np.random.default_rng(0).integers(0, 10**6, data.n_ratings)
    index = data.user_index, data.item_index
    return Interactions(*index, data.ratings, data.user_ids, data.item_ids, timestamps=times)


def known(data: Interactions) -> dict:
    rng = np.random.default_rng(0)
    alike = np.where(np.equal.outer(np.arange(N_ITEMS) % 3, np.arange(N_ITEMS) % 3), 1.0, 0.0)
    return {
        "user_features": pd.DataFrame({"age": rng.normal(size=N_USERS), "kind": rng.choice(["a", "b"], N_USERS)}),
        "item_features": pd.DataFrame({"kind": rng.choice(["x", "y"], N_ITEMS)}),
        "user_similarity": np.kron(np.eye(N_USERS // 4), np.ones((4, 4))),
        "item_similarity": alike,
    }


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({}, None),
        ({"solver": "langevin", "n_sweeps": 10}, known),
        ({"n_sweeps": 6}, known),
        ({"n_factors": 2, "pattern_features": 0, "clip": False}, None),
        ({"graph_residuals": 8}, None),
        ({"graph_residuals": 8, "solver": "langevin", "n_sweeps": 10}, known),
        ({"solver": "adam", "n_epochs": 3, "biases": False, "center": False, "unobserved_weight": 0.1}, None),
    ],
)
def test_lists_are_those_of_new_users(page, ratings, settings, given):
    model = AIR.for_ratings(random_state=0, device="cpu", **settings)
    model = model.fit(ratings, **(given(ratings) if given else {}))
    check_ratings(page, model, folded(model))


def test_lists_have_what_features_say_of_residuals(page, ratings):
    model = AIR.for_ratings(random_state=0, device="cpu", graph_residuals=8).fit(
        ratings, item_features=known(ratings)["item_features"]
    )
    model.take_state(replace(model._fitted(), further=Further(2.0)))
    check_ratings(page, model, folded(model))


def test_lists_of_models_that_know_of_time(page, ratings):
    data = timed(ratings)
    model = AIR.for_ratings(time="drift", n_sweeps=10, random_state=0, device="cpu", graph_residuals=8).fit(data)
    model.take_state(replace(model._fitted(), further=Further(0.0, Lasting(1.5, 100.0))))
    items, values = zip(*PICKS, strict=True)
    assert data.timestamps is not None
    last = [int(data.timestamps.max())] * len(items)
    now = Interactions([0] * len(items), range(len(items)), values, [NEW], items, timestamps=last)
    check_ratings(page, model, model.fold_in(now))


@pytest.mark.parametrize("preset", ["completion", "interactions"])
def test_lists_of_other_presets(page, preset):
    rng = np.random.default_rng(0)
    table = np.kron([[1.0, 0.0], [0.0, 1.0]], np.ones((8, 10))) * (rng.random((16, 20)) < 0.8)
    model = AIR.of_preset(preset, n_epochs=60, random_state=0, device="cpu").fit(table)
    check_ratings(page, model, folded(model, [(0, 1.0), (3, 1.0), (12, 0.0)]), [(0, 1.0), (3, 1.0), (12, 0.0)])


def check_ratings(page, model, alone, picks=PICKS) -> None:
    """Compare list, scores, deviations and reasons."""
    found, ids = solved(page, model, picks), model.interactions_.item_ids
    best = alone.recommend(NEW, n=20, rank_by="rating")
    np.testing.assert_allclose(found["scores"], best["score"], atol=CLOSE)
    listed = ids[found["listed"]]
    np.testing.assert_allclose(found["scores"], alone.predict(NEW, listed), atol=CLOSE)  # of the same items
    if model.knows_deviations_:
        np.testing.assert_allclose(found["deviations"], alone.predict(NEW, listed, return_std=True)[1], atol=CLOSE)
    else:
        assert set(found["deviations"]) == {None}
    expected = alone.explain(NEW, listed[0])
    rest = expected.remainder if model.knows_deviations_ else 0
    check_reasons(found["reasons"], expected, ids[[item for item, _ in picks]], rest)


def check_reasons(found, expected, items, rest) -> None:
    """Compare with `explain`, whose objective counts the new user among all: what differs is in its remainder."""
    parts, tolerance = found["parts"], CLOSE + abs(expected.remainder - rest)
    told = expected.items.set_index("item")["contribution"].reindex(items)
    np.testing.assert_allclose(found["picks"], told, atol=tolerance)
    assert found["pattern"] == pytest.approx(expected.pattern, abs=CLOSE)
    assert parts["rest"] == pytest.approx(rest, abs=CLOSE)
    assert parts["user"] == pytest.approx(expected.user_bias, abs=CLOSE)
    assert parts["mean"] + parts["item"] == pytest.approx(expected.mean + expected.item_bias, abs=CLOSE)
    assert sum(found["near"]) == pytest.approx(expected.near_items.total, abs=CLOSE)
    whole = sum(found["picks"]) + sum(found["near"]) + found["pattern"] + sum(parts.values())
    assert whole == pytest.approx(expected.score - expected.clipping, abs=CLOSE)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"factor_weight": 0.0},
        {"regression_weight": 0.0},
        {"factor_temperature": 0.4, "regression_share": 0.0},
        {"item_trend": 1.0, "user_half_life": 3.0},
    ],
)
def test_lists_from_likes(page, ratings, settings):
    model = AIR.for_likes(settings=settings, n_factors=16, n_steps=5, device="cpu").fit(timed(ratings))
    items = [item for item, _ in PICKS]
    new = model.fold_in(pd.DataFrame({"user": NEW, "item": items, "rating": 1.0}))
    found, best = solved(page, model), new.recommend(NEW, 20)["score"].to_numpy()
    np.testing.assert_allclose(found["scores"], best, atol=CLOSE * best[0])
    np.testing.assert_allclose(found["scores"], new.predict(NEW, found["listed"]), atol=CLOSE * best[0])
    expected = new.explain(NEW, found["listed"][0])
    told = expected.items.set_index("item")["contribution"].reindex(items)
    np.testing.assert_allclose(found["reasons"]["picks"], told, atol=CLOSE)
    assert found["reasons"]["parts"]["none"] == pytest.approx(expected.parts.get("no_items", 0), abs=CLOSE)


def test_picks_by_keyboard_give_the_list_of_the_model(page, path, model):
    page.open(path)
    page.find("#recommend").send_keys(Keys.ENTER)
    assert page.focus() == "pick-search"
    page.pick("3", "17")
    assert page.focus() == "pick-search"  # for the next one
    page.press(Keys.TAB, Keys.TAB)  # to the first pick
    rating = page.find("#picked li:nth-child(2) select")
    rating.send_keys("1")
    assert page.picked() == [[3, 5], [17, 1]]
    alone = folded(model, [(3, 5.0), (17, 1.0)])
    best = alone.recommend(NEW, n=10, rank_by="rating")
    assert page.texts("#recommended .what") == [f"Film {item}" for item in best["item"]]
    assert page.texts("#recommended .count") == [f"{score:.2f}" for score in best["score"]]
    low, high = alone.predict_interval(NEW, best["item"])
    shown = [text.split(" · ")[0] for text in page.texts("#recommended .why")]
    assert shown == [f"{low:.2f} – {high:.2f}" for low, high in zip(low, high, strict=True)]
    page.find("#more").click()
    assert len(page.texts("#recommended .what")) == 20
    assert page.script("return document.activeElement.textContent").startswith(page.texts("#recommended .what")[10])


def test_a_click_in_the_picture_and_the_button_pick_an_item(page, path):
    page.open(path)
    before = page.pixels()
    box = page.script(
        "const {left, top} = document.querySelector('#canvas').getBoundingClientRect(); return [left, top]"
    )
    key, x, y = page.script("""
      const {nodes} = explorer.view.scene;
      const far = (a, b) => a === b ? 1e9 : Math.hypot(a.x - b.x, a.y - b.y);
      const gap = (node) => Math.min(...nodes.map((other) => far(node, other)));
      const node = nodes.reduce((best, each) => gap(each) > gap(best) ? each : best); // nothing lies over it
      const {x, y} = explorer.view.canvas.graph2ScreenCoords(node.x, node.y);
      return [node.key, x, y];
    """)
    move = webdriver.ActionChains(page.browser, duration=0).w3c_actions
    move.pointer_action.move_to_location(round(x + box[0]), round(y + box[1])).click()
    move.perform()
    page.find("#pick").click()
    assert page.picked() == [[key, 5]]
    assert page.find("#pick").get_attribute("aria-pressed") == "true"
    assert page.find("#picks").is_displayed()
    assert not page.find(".controls").is_displayed()
    page.find("#close").click()
    with_marks = page.pixels()
    assert with_marks != before
    page.find("#picked .plain").click()  # takes the pick away
    assert page.picked() == []
    assert page.pixels() != with_marks


def test_why_tells_the_parts_of_the_score(page, path, model):
    page.open(path, "#pick=5+3&pick=1+17")
    page.find("#recommended summary").click()
    page.wait(lambda: page.texts("#recommended .parts dd"))
    told = dict(zip(page.texts("#recommended .parts dt"), page.texts("#recommended .parts dd"), strict=True))
    assert told["mean of all ratings"] == f"+{model.global_mean_:.3f}"
    first = page.script("return explorer.picks.listed[0]")
    edge = model.item_graph_.to_scipy()[first, 3]
    names = [name for name in told if name.startswith("Film 3 (5)")]
    assert names == [f"Film 3 (5), edge {edge:.3g}" if edge else "Film 3 (5)"]
    assert sum(float(value.replace("−", "-")) for value in told.values()) == pytest.approx(
        float(page.texts("#recommended .count")[0]), abs=0.01
    )


def test_edges_carry_scores_under_the_objective(page, ratings, tmp_path):
    model = AIR.for_ratings(solver="adam", n_epochs=3, random_state=0, device="cpu").fit(ratings)
    page.open(explorer_of(model, tmp_path / "m.html", recommend=True), "#pick=5+3&pick=1+17")
    page.find("#recommended summary").click()
    page.wait(lambda: page.texts("#recommended .parts dd"))
    told = [text for text in page.texts("#recommended .parts dt") if "→" in text]
    first = page.script("return explorer.picks.listed[0]")
    expected = folded(model, [(3, 5.0), (17, 1.0)]).explain(NEW, first, n=5).edges
    assert told == [f"{row.neighbor} → {row.item}" for row in expected.itertuples()]


def test_a_recommended_item_is_chosen_in_the_picture(page, path):
    page.open(path, "#graph=users&pick=5+3")
    assert page.find("#picks").is_displayed()
    page.find("#recommended button").click()
    assert page.texts("#name") == [page.texts("#recommended .what")[0]]
    assert page.script("return explorer.graph.name") == "items"
    page.press(Keys.ARROW_DOWN)  # the list is walked by keyboard
    page.press(Keys.ENTER)
    assert page.texts("#name") == [page.texts("#recommended .what")[1]]


def test_escape_lets_go_of_the_search_then_of_the_picks(page, path):
    page.open(path)
    page.pick("3")
    page.find("#recommended button").click()
    page.find("#pick-search").send_keys("Film", Keys.ESCAPE)
    assert page.find("#picks").is_displayed()
    page.press(Keys.ESCAPE)
    assert not page.find("#picks").is_displayed()
    assert page.focus() == "recommend"
    assert page.find(".controls").is_displayed()
    assert page.find("#panel").is_displayed()
    page.press(Keys.ESCAPE)
    assert not page.find("#panel").is_displayed()


def test_picks_are_in_the_link_and_survive_the_switch_and_wrong_ones_are_left_out(page, path):
    page.open(path)
    page.pick("3", "17")
    page.script("document.querySelectorAll('#switch input')[1].click()")
    assert page.script("return explorer.graph.name") == "users"
    assert page.picked() == [[3, 5], [17, 5]]
    listed = page.texts("#recommended .what")
    page.open(path, page.link("pick=5+3&pick=5+17"))
    assert page.picked() == [[3, 5], [17, 5]]
    assert page.texts("#recommended .what") == listed
    page.find("#clear-picks").click()
    page.wait(lambda: "pick" not in page.script("return location.hash"))
    page.open(path, "#pick=9+3&pick=NaN+4&pick=+5&pick=3&pick=2+none&pick=4+6&pick=e+7")
    assert page.picked() == [[6, 4]]


def test_hostile_titles_never_run(page, path):
    page.open(path, "#pick=5+50&pick=5+51&pick=5+52")
    page.find("#more").click()
    page.script("document.querySelectorAll('#recommended details').forEach((each) => (each.open = true))")
    page.wait(lambda: page.texts("#recommended .parts dd"))
    page.find("#pick-search").send_keys("hacked")
    assert page.texts("#picked .what") == list(HOSTILE[:3])
    assert page.script("return window.hacked") is None
    assert page.script("return document.querySelectorAll('#picks img, #picks script, #picks svg').length") == 0
    assert page.errors() == []
    assert barriers(page.browser) == []


def test_a_dark_phone_shows_picks_in_one_column(page, path):
    page.open(path, "#pick=5+3", dark=True, size=(390, 844))
    assert page.script("return document.documentElement.scrollWidth") == 390
    top = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
    assert page.script(top, ".picture") < page.script(top, "#pick-search") < page.script(top, "#recommended")
    page.find("#recommended button").click()
    assert 0 <= page.script(top, "#canvas") < 844
    assert barriers(page.browser) == []


def test_ratings_between_the_stars_are_numbers(page, ratings, tmp_path):
    noise = np.random.default_rng(0).random(ratings.n_ratings)
    index = ratings.user_index, ratings.item_index
    data = Interactions(*index, ratings.ratings + noise, ratings.user_ids, ratings.item_ids)
    model = AIR.for_ratings(n_sweeps=3, random_state=0, device="cpu").fit(data)
    page.open(explorer_of(model, tmp_path / "m.html", recommend=True))
    page.pick("3")
    page.find("#picked input").send_keys(Keys.CONTROL, "a", Keys.NULL, "2.5", Keys.TAB)
    assert page.picked() == [[3, 2.5]]
    page.find("#picked input").send_keys(Keys.CONTROL, "a", Keys.NULL, "99", Keys.TAB)
    assert page.picked()[0][1] == pytest.approx(model.rating_scale_[1])
