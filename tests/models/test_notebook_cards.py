"""What notebooks show: HTML that closes its elements, escapes every name and sets no colour of its own."""

import re

import numpy as np
import pandas as pd
import pytest
from model_cases import MODELS, USERS, every_model, fitted, frame
from page_reader import Page
from sklearn import config_context

from air_recsys import AIR, Interactions, SimilarityGraph
from air_recsys.models import GraphRanker

EVIL = "<script>alert('1')</script>"


def text_of(html: str) -> str:
    """The text of a card; its elements close in order, no script is in it, and its colours are the notebook's."""
    page = Page(html)
    assert "script" not in page.tags
    styles = " ".join(value for _, name, value in page.attributes if name == "style")
    assert not re.search(r"#[0-9a-f]{3}|:(white|black)\b", styles)
    assert set(re.findall(r"(?:^|[; ])color:(\w+)", styles)) == {"inherit"}
    assert set(re.findall(r"background:(\w+)", styles)) <= {"transparent", "currentColor"}
    return page.text


def evil(table: pd.DataFrame) -> pd.DataFrame:
    return table.replace({"user": {"u00": EVIL}, "item": {"i0": EVIL}})


@every_model
def test_a_fitted_model_tells_what_it_read_and_learned(make):
    model = fitted(make)
    text = text_of(model._repr_html_())
    data = model.interactions_
    assert f"{data.n_users} users, {data.n_items} items, {data.n_ratings} ratings from 1 to 5" in text
    assert "learned" in text
    assert "accuracy" in text
    assert model._repr_mimebundle_() == {"text/plain": repr(model), "text/html": model._repr_html_()}
    with config_context(display="text"):
        assert model._repr_mimebundle_() == {"text/plain": repr(model)}


def test_a_model_tells_how_good_it_is_where_that_was_measured():
    small = {"n_factors": 2, "random_state": 0, "device": "cpu"}
    watched = AIR.for_ratings(validation_fraction=0.2, **small).fit(frame())
    lowest = watched.history_["validation_rmse"].min()
    text = text_of(watched._repr_html_())
    assert f"RMSE {lowest:.4g} on the validation part, learned noise" in text
    assert "ended by n_sweeps" in text
    likes = pd.concat([frame(), frame(1)])[["user", "item"]].drop_duplicates()
    searched = GraphRanker(n_factors=2, n_steps=2, device="cpu").fit(likes)
    assert searched.search_line_ in text_of(searched._repr_html_())
    assert "not measured" in text_of(fitted(MODELS["BiasModel"])._repr_html_())
    assert "sk-" in AIR.for_ratings()._repr_html_()  # not fitted: scikit-learn shows it


@pytest.mark.filterwarnings("ignore:ids such as .* are users of some rows and items of others")
def test_interactions_tell_their_sizes_and_how_often_each_rating_is_given():
    table = evil(frame())
    data = Interactions.from_frame(table.assign(time=range(len(table))), timestamp="time")
    text = text_of(data._repr_html_())
    assert f"{data.n_ratings} ({100 * data.density:.3g} % of all pairs)" in text
    assert EVIL in text
    assert "with each ratinga timestamp" in text
    counts = table["rating"].value_counts()
    assert all(f"{value:g}{count}" in text for value, count in counts.items())
    many = Interactions.from_dense(np.random.default_rng(0).random((5, 6)))
    assert "How often" not in text_of(many._repr_html_())


def test_a_graph_shows_its_strongest_edges():
    graph = SimilarityGraph([[0, 2, 1, 0], [2, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]], [EVIL, "b", "c", "d"], "item")
    text = text_of(graph._repr_html_())
    assert "4, 1 without edges" in text
    assert f"{EVIL}b2" in text.replace(" ", "")
    titles = pd.DataFrame({"title": ["Heat", "Fargo", "Alien", "Up"]}, index=graph.ids)
    assert "HeatFargo2" in text_of(graph.with_attributes(titles, "title")._repr_html_())
    assert "weight" not in text_of(SimilarityGraph(np.zeros((2, 2)), "ab")._repr_html_())


@pytest.mark.parametrize("name", ["AIR-variational", "AIR-ratings", "DMF"])
def test_an_explanation_tells_likes_and_dislikes_apart(name):
    found = fitted(MODELS[name]).explain(USERS[0], "i3")
    told, text = " ".join(found.prose().split()), text_of(found._repr_html_())
    assert told.startswith(f"User {USERS[0]} is expected to rate item i3 {found.score:.3g}")
    for taste, rows in found.items.groupby("taste"):
        assert f"Items that the user {taste} add {rows['contribution'].sum():+.2g}: " in told
        assert f"Items that the user {taste}" in text
    assert set(found.likes["taste"]) <= {"liked"}
    assert set(found.dislikes["taste"]) <= {"disliked"}
    assert found.prose() in str(found)
    assert told in text


@pytest.mark.filterwarnings("ignore:ids such as .* are users of some rows and items of others")
def test_names_in_explanations_are_escaped():
    model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(evil(frame()))
    assert EVIL in text_of(model.explain(EVIL, EVIL)._repr_html_())
    assert EVIL in text_of(model.explain(EVIL, "i3", labels={"i3": EVIL})._repr_html_())
    ranker = GraphRanker(n_factors=2, settings={}, device="cpu").fit(evil(frame())[["user", "item"]])
    assert EVIL in text_of(ranker.explain(EVIL, "i3", labels={"i3": EVIL})._repr_html_())
