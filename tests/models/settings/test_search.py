"""Forms of settings: what each is for; and the search among them: what it hides, tries, chooses and says."""

from __future__ import annotations

import signal
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import air_recsys.models.settings.search as searching
from air_recsys import AIR, Interactions
from air_recsys.datasets import make_syn_netflix
from air_recsys.evaluation.completion import hide
from air_recsys.exceptions import ParameterError
from air_recsys.models.settings.forms import Form, forms_of, is_smooth, open_forms, picture_form
from air_recsys.models.settings.search import Candidate
from air_recsys.training.interrupts import Terminated

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
    assert picture_form(plain, exact=True).values == pytest.approx(picture_form(scaled, exact=True).values)
    assert is_smooth(plain) == is_smooth(scaled)


def test_smooth_in_one_direction_is_no_picture():
    striped = np.repeat(np.random.default_rng(0).random((20, 1)), 30, axis=1)
    assert not is_smooth(Interactions.from_dense(striped))
    assert not is_smooth(Interactions.from_dense(np.ones((5, 5))))
    assert not is_smooth(Interactions([0, 1], [0, 1], [1.0, 2.0], [0, 1], [0, 1]))


# -------------------------------------------------------------------- the search

CPU = {"device": "cpu", "random_state": 0}
SHORT = partial(AIR.for_completion, n_epochs=60, evaluate_every=20, **CPU)


@pytest.fixture(scope="module")
def grouped():
    """Ratings of groups, most of them hidden."""
    return hide(make_syn_netflix(30, 40, random_state=0).matrix, 0.6, 0).observed


@pytest.fixture(scope="module")
def found(grouped):
    return SHORT().fit(grouped)


def test_the_forms_are_tried_on_hidden_ratings_and_two_of_them_longer(found):
    table = found.search_
    rounds = table.groupby("form")["trainings"].count()
    assert table.groupby("form")["trainings"].first().nunique() == 1  # all of them once, and alike
    assert rounds.sum() == len(rounds) + 2  # the others no further
    assert rounds["few edges"] == rounds.max() == 2  # the default to the end
    assert table["rmse"].gt(0).all()
    assert found.settings_.keys() >= {"graph_neighbors", "learning_rate", "init_std", "user_graph_reg"}


def test_the_search_takes_no_more_than_its_budget_which_is_above_zero(grouped, found):
    assert found.search_["trainings"].sum() <= 2.0 + 1e-9
    assert SHORT(search_budget=0.2).fit(grouped).search_["trainings"].sum() <= 0.2 + 1e-9
    for budget in (0, -1.0, float("nan"), "3"):
        with pytest.raises(ParameterError, match="search_budget"):
            SHORT(search_budget=budget).fit(grouped)


def test_given_parameters_are_never_touched(grouped):
    model = SHORT(graph_neighbors=3, learning_rate=2e-3, user_graph_reg=1e-4).fit(grouped)
    assert not {"graph_neighbors", "learning_rate", "user_graph_reg"} & model.settings_.keys()
    assert (np.diff(model.user_graph_.to_scipy().indptr) <= 2 * 29).all()
    assert model.solver_.learning_rate == 2e-3


def test_the_same_seed_finds_the_same_and_a_resumed_training_does_not_search_again(
    grouped, found, tmp_path, monkeypatch
):
    path = tmp_path / "run.ckpt"
    again = clone(found).fit(grouped, checkpoint=path, every=20, callbacks=[lambda record: record.epoch == 40])
    assert again.settings_ == found.settings_
    monkeypatch.setattr(searching, "train", None)
    resumed = SHORT().fit(grouped, resume_from=path)
    assert resumed.settings_ == found.settings_
    np.testing.assert_array_equal(resumed.user_factors_, found.user_factors_)


def interrupting(monkeypatch, after, number=signal.SIGINT):
    """Let a signal come in the training of the search after so many."""
    calls, plain = [], searching.train

    def train(trainer, callbacks):
        calls.append(trainer)
        if len(calls) <= after:
            return plain(trainer, callbacks=callbacks)
        once = [lambda record: signal.raise_signal(number) if record.epoch == 0 else None]
        return plain(trainer, callbacks=once)

    monkeypatch.setattr(searching, "train", train)


def candidate(name, *rounds, shares=(0.25, 0.5)):
    """Return a form with the errors of its rounds, an array of hidden ratings each."""
    hidden = Interactions.from_dense(np.ones((1, len(rounds[-1]))))
    errors = [np.asarray(each) ** 2 for each in rounds]
    return Candidate(Form(name, {"name": name}), None, hidden, hidden, 0, list(shares[-len(rounds) :]), errors)


def test_the_default_gives_way_to_a_form_that_is_better_by_more_than_chance():
    errors = np.random.default_rng(0).uniform(0.5, 1, (2, 50))
    default, other = candidate("default", *errors), candidate("other", 0.5 * errors[0], 0.5 * errors[1])
    assert searching.selection_of([default, other], interrupted=False).form == "other"
    alike = candidate("alike", errors[0], errors[1, ::-1] - 1e-3)
    chosen = searching.selection_of([default, alike], interrupted=False)
    assert chosen.form == "default"
    assert chosen.line.endswith("no sure lead")


def test_the_default_stays_where_it_loses_by_a_single_rating():
    errors = np.full(50, 0.1)
    loses = errors.copy()
    loses[7] = 9.0
    chosen = searching.selection_of(
        [candidate("default", loses, loses), candidate("other", errors, errors)], interrupted=False
    )
    assert chosen.form == "default"


def test_an_error_of_the_default_that_still_falls_counts_as_what_it_falls_to():
    errors = np.random.default_rng(0).uniform(0.9, 1, 50)
    ahead = candidate("ahead", 0.06 * errors, 0.05 * errors)
    falling = candidate("default", errors, 0.1 * errors)  # on its way to a tenth once more
    settled = candidate("default", 0.1 * errors, 0.1 * errors)
    assert searching.selection_of([falling, ahead], interrupted=False).form == "default"
    assert searching.selection_of([settled, ahead], interrupted=False).form == "ahead"


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.usefixtures("plain_handlers")
def test_ctrl_c_ends_the_search_and_the_training_goes_on(grouped, after, monkeypatch, capsys):
    interrupting(monkeypatch, after)
    model = SHORT().fit(grouped)
    assert model.stopped_by_ == "n_epochs"
    assert len(model.search_) == after
    assert "the search was interrupted" in capsys.readouterr().err


@pytest.mark.usefixtures("plain_handlers")
def test_a_signal_that_ends_the_process_is_not_kept_back(grouped, monkeypatch):
    interrupting(monkeypatch, 1, signal.SIGTERM)
    with pytest.raises(Terminated):
        SHORT().fit(grouped)


def test_too_few_ratings_are_not_hidden_from(capsys):
    few = Interactions.from_dense(np.arange(1.0, 101).reshape(10, 10))
    model = SHORT(verbose=True).fit(few)
    assert model.search_.empty
    assert "100 ratings are too few" in capsys.readouterr().err


def test_one_row_and_a_full_matrix_are_trained():
    row = Interactions.from_dense(np.linspace(1, 5, 300)[None])
    assert SHORT().fit(row).search_.empty
    full = make_syn_netflix(20, 20, random_state=0).matrix
    assert not SHORT().fit(full).search_.empty


def test_a_form_that_diverges_is_out(grouped, monkeypatch):
    forms = [searching.Form("few edges"), searching.Form("too fast", {"learning_rate": 1e9})]
    monkeypatch.setattr("air_recsys.models.settings.forms.forms_of", lambda data, engine: forms)
    model = SHORT().fit(grouped)
    assert np.isinf(model.search_.set_index("form").loc["too fast", "rmse"])
    assert model.settings_["learning_rate"] < 1


def test_nothing_is_searched_where_nothing_is_open_or_formulas_are_asked_for(grouped):
    fixed = SHORT(settings="fixed").fit(grouped)
    assert fixed.search_.empty
    assert fixed.settings_["learning_rate"] > 0
    ratings = np.random.default_rng(0).integers(1, 6, (30, 20)).astype(float)
    model = AIR.for_ratings(n_sweeps=2, **CPU).fit(ratings)
    assert model.search_.empty
    assert model.settings_["n_factors"] == 20
