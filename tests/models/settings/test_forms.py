"""Forms: what each is for, and what is left of them where parameters are given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from air_recsys import AIR, Interactions
from air_recsys.models.settings.forms import forms_of, is_smooth, open_forms, picture_form

ALL = ["graph_neighbors", "graph_rate", "learning_rate", "init_std", "user_graph_reg", "item_graph_reg", "tv_reg"]


def ramp(m=20, n=30):
    """A picture: brightness that grows along both sides."""
    return np.add.outer(np.linspace(1, 3, m), np.linspace(0, 2, n))


def names(data, **overrides):
    return [form.name for form in forms_of(data, AIR.for_completion(settings="fixed", **overrides).engine())]


def test_a_picture_is_a_form_only_of_what_is_smooth():
    smooth = Interactions.from_dense(ramp())
    shuffled = Interactions.from_dense(np.random.default_rng(0).permuted(ramp()))
    assert names(smooth)[0] == "a picture"  # there it is the default
    assert "a picture" not in names(shuffled)
    assert names(shuffled)[0] == "few edges"


def test_no_picture_is_the_default_of_data_that_no_search_can_confirm():
    assert names(Interactions.from_dense(ramp()[:12, :12]))[::4] == ["few edges", "a picture"]


def test_noisy_data_and_models_without_graphs_have_one_form():
    data = Interactions.from_dense(ramp())
    assert names(data, user_graph_reg=0, item_graph_reg=0) == [""]
    assert names(data, weight_decay=1.0) == [""]


def test_forms_of_narrow_factors_need_no_whole_matrix():
    assert not {"all pairs", "a picture"} & set(names(Interactions.from_dense(ramp()), n_factors=3))


@pytest.mark.parametrize("still_open", [[], ["tv_reg"], ["init_std", "graph_rate"], ALL])
def test_forms_say_only_what_is_open_and_each_thing_once(still_open):
    data = Interactions.from_dense(ramp())
    forms = open_forms(data, AIR.for_completion().engine(), still_open)
    values = [form.values for form in forms]
    assert {} in values  # what follows from formulas
    assert all(set(each) <= set(still_open) for each in values)
    assert all(values.count(each) == 1 for each in values)


@given(st.floats(1e-3, 1e3))
def test_the_form_of_a_picture_does_not_depend_on_the_unit(unit):
    plain, scaled = (Interactions.from_dense(factor * ramp()) for factor in (1.0, unit))
    assert picture_form(plain).values == pytest.approx(picture_form(scaled).values)
    assert is_smooth(plain) == is_smooth(scaled)


def test_smooth_in_one_direction_is_no_picture():
    striped = np.repeat(np.random.default_rng(0).random((20, 1)), 30, axis=1)
    assert not is_smooth(Interactions.from_dense(striped))
    assert not is_smooth(Interactions.from_dense(np.ones((5, 5))))
    assert not is_smooth(Interactions([0, 1], [0, 1], [1.0, 2.0], [0, 1], [0, 1]))
