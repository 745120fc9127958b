"""Events of several kinds: what each counts, what is hidden, and which items lists may hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from ranker_cases import SMALL, all_scores, likes

from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError, DataWarning
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker.hidden import VALIDATIONS
from air_recsys.models.graph_ranker.inputs import counted
from air_recsys.serving.changes import learned

GIVEN: dict[str, Any] = SMALL | {"settings": {}, "target": "buy"}
VIEWER = 60  # has views alone


def events(seed: int = 0) -> pd.DataFrame:
    """Few purchases of two groups, many views of these, clicks on the other group; a user with views alone."""
    parts = {"buy": likes(own=0.2, other=0.0), "view": likes(own=0.5, other=0.05, seed=1 + seed)}
    parts["click"] = likes(own=0.05, other=0.3, seed=2 + seed)
    pairs = {kind: dict(zip(("user", "item"), part.nonzero(), strict=True)) for kind, part in parts.items()}
    tables = [pd.DataFrame(own).assign(kind=kind) for kind, own in pairs.items()]
    tables.append(pd.DataFrame({"user": VIEWER, "item": [0, 2, 4], "kind": "view"}))
    found = pd.concat(tables, ignore_index=True).sample(frac=1, random_state=seed, ignore_index=True)
    return found.assign(timestamp=np.random.default_rng(seed).permutation(len(found)))


UNTIMED = events().drop(columns="timestamp")


@pytest.fixture(scope="module")
def model() -> GraphRanker:
    return GraphRanker(**GIVEN).fit(UNTIMED)


def of_kind(table: pd.DataFrame, *kinds: str) -> pd.DataFrame:
    return table[table["kind"].isin(kinds)]


def test_a_target_alone_is_a_model_of_likes():
    bought = of_kind(UNTIMED, "buy")
    plain = GraphRanker(**SMALL).fit(bought.drop(columns="kind"))
    np.testing.assert_array_equal(all_scores(GraphRanker(**SMALL, target="buy").fit(bought)), all_scores(plain))


@pytest.mark.parametrize("settings", [{"factor_weight": 0.0}, {"regression_weight": 0.0}])
def test_an_item_counts_for_others_and_not_for_itself(settings):
    model = GraphRanker(**GIVEN | {"settings": settings}).fit(UNTIMED)
    data, s, state = model.interactions_, model.settings_, model._fitted()
    x = counted(data, s).toarray().astype(float)
    weighted = x.T @ (x * np.maximum((x > 0).sum(axis=1, keepdims=True), 1) ** -s.regression_exponent)
    d = weighted.diagonal()
    m = weighted / np.sqrt(np.outer(d, d))
    h = m @ np.linalg.inv(m + s.regression_penalty * np.eye(len(d)))
    bought = data.to_csr().toarray() > 0
    scores = np.empty(x.shape)
    for user, item in np.ndindex(x.shape):
        own = np.where((np.arange(len(d)) == item) & ~bought[user], 0, x[user])
        if settings.get("factor_weight") == 0:
            scores[user, item] = own / d**s.regression_source @ h[:, item] / d[item] ** s.regression_target
        else:
            sums = own @ state.source_factors
            cosine = sums @ model.item_factors_[item] / max(np.linalg.norm(sums), 1e-30)
            scores[user, item] = np.exp(cosine / s.factor_temperature)
    found = all_scores(model)
    weight = sum(s.weights.values())
    scores *= weight / np.linalg.norm(scores, axis=1, keepdims=True)
    np.testing.assert_allclose(found, scores, rtol=2e-4, atol=1e-6)
    lists = model.recommend(data.user_ids, n=30)
    np.testing.assert_allclose(lists["score"], model.predict(lists["user"], lists["item"]), rtol=1e-4, atol=1e-6)


def test_lists_hold_what_was_viewed_and_not_what_was_bought(model):
    lists = model.recommend([0, VIEWER], n=30)
    own = of_kind(UNTIMED[UNTIMED["user"] == 0], "buy")["item"]
    assert set(lists[lists["user"] == 0]["item"]) == set(range(30)) - set(own)
    assert (lists[lists["user"] == VIEWER]["item"]).size == 30
    assert set(lists["source"]) == {"model"}
    assert (lists[lists["user"] == VIEWER]["item"].head(5) % 2 == 0).all()  # of the group that was viewed
    for item in lists["item"].head(3):
        told = model.explain(0, item)
        assert told.total() == pytest.approx(told.score, abs=1e-6)


def test_worths_make_better_lists_and_nothing_of_a_hidden_pair_is_shown():
    model = AIR.for_likes(**SMALL, target="buy").fit(UNTIMED)
    alone = AIR.for_likes(**SMALL).fit(of_kind(UNTIMED, "buy").drop(columns="kind"))
    worths = model.interactions_.kinds.worths
    assert worths["view"] > worths["click"]
    assert f"view counts {worths['view']:g}" in model.search_line_
    assert model.history_["ndcg"].iloc[-1] > 1.1 * alone.history_["ndcg"].iloc[-1]
    assert set(model.history_["worth_view"]) >= {0.0, 1.0}


@pytest.mark.parametrize("validation", VALIDATIONS)
def test_hidden_pairs_are_hidden_with_all_of_their_events_and_nothing_later_is_shown(validation):
    data = GraphRanker(**GIVEN).as_data(events())
    parts = GraphRanker(**SMALL, target="buy", validation=validation)._hidden_parts(data)
    times = {name: each.times_to_csr() for name, each in data.kinds.beside.items()}
    for part in parts:
        hidden = part.hidden.toarray() > 0
        for name, given in part.given_kinds.items():
            assert given.nnz
            assert not (given.toarray() > 0)[hidden].any()
            if validation == "time" or validation == "auto":
                assert times[name].toarray()[given.nonzero()].max() <= part.times.data.max()
            elif validation == "last":
                asked, latest = hidden.any(axis=1), part.times.toarray().max(axis=1)
                late = (times[name].toarray() > latest[:, None]) & (given.toarray() > 0)
                assert not late[asked].any()


def test_repeated_events_add_up():
    table = pd.concat([UNTIMED, of_kind(UNTIMED, "view")], ignore_index=True)
    weighed = UNTIMED.assign(weight=np.where(UNTIMED["kind"] == "view", 2.0, 1.0))
    first, second = (GraphRanker(**GIVEN | {"settings": {"strength": 1}}).fit(each) for each in (table, weighed))
    np.testing.assert_array_equal(all_scores(first), all_scores(second))
    np.testing.assert_array_equal(first.interactions_.kinds.beside["view"].weights, 2.0)


def test_models_of_kinds_are_saved_grow_and_forget(model, tmp_path):
    path = model.save(tmp_path / "kinds.air")
    loaded = GraphRanker.load(path)
    pd.testing.assert_frame_equal(loaded.recommend([0, VIEWER], 5), model.recommend([0, VIEWER], 5))
    new = UNTIMED[UNTIMED["user"] == VIEWER].assign(user="new")
    as_text = UNTIMED.assign(user=UNTIMED["user"].astype(str))
    named = GraphRanker(**GIVEN).fit(as_text)
    folded = named.fold_in(new).recommend("new", 5)
    np.testing.assert_array_equal(folded["item"], named.recommend(str(VIEWER), 5)["item"])
    grown = named.partial_fit(new).recommend("new", 5)
    np.testing.assert_allclose(grown["score"], folded["score"], rtol=0.01)  # degrees grow, too
    assert named.interactions_.kinds.beside["view"].n_ratings == len(of_kind(UNTIMED, "view")) + 3
    named.forget(users=["new"])
    assert named.interactions_.kinds.beside["view"].n_ratings == len(of_kind(UNTIMED, "view"))
    posted = learned({"user": ["7"], "item": [1], "kind": ["view"], "target": "buy"})
    assert named.partial_fit(posted).interactions_.n_ratings == len(of_kind(UNTIMED, "buy"))


def test_parts_of_interactions_keep_no_events_of_pairs_that_left():
    data = GraphRanker(**GIVEN).as_data(UNTIMED)
    half = data.select(np.arange(data.n_ratings) % 2 == 0)
    gone = np.setdiff1d(data.pair_index, half.pair_index)
    for name, each in half.kinds.beside.items():
        before = data.kinds.beside[name].pair_index
        np.testing.assert_array_equal(each.pair_index, before[~np.isin(before, gone)])


@pytest.mark.parametrize(
    ("table", "how", "message"),
    [
        (UNTIMED, {}, "expected the kind of events that lists are for, found .'buy', 'click', 'view'."),
        (UNTIMED, {"target": "sale"}, "expected events of the target 'sale', found the kinds .'buy', 'click', 'view'"),
        (UNTIMED.assign(rating=1), {"target": "buy"}, "without ratings, found ratings"),
        (UNTIMED.drop(columns="kind"), {"target": "buy"}, "a column kind, of which target='buy' is one, found none"),
        (UNTIMED.replace("click", np.nan), {"target": "buy"}, "expected a kind of each event, found .* missing"),
        (events(), {"target": "buy", "settings": {"user_half_life": 3.0}}, "user_half_life in settings"),
    ],
)
def test_kinds_that_cannot_be_told_are_refused(table, how, message):
    with pytest.raises(DataError, match=message):
        GraphRanker(**SMALL, **how).fit(table)


def test_kinds_that_tell_nothing_of_the_target_are_named():
    apart = pd.concat([UNTIMED, pd.DataFrame({"user": [98, 99], "item": [1, 2], "kind": "call"})])
    with pytest.warns(DataWarning, match="no user of 'call' has a 'buy'"):
        GraphRanker(**SMALL, target="buy").fit(apart)
    few = pd.concat([of_kind(UNTIMED, "view"), of_kind(UNTIMED, "buy").head(5)])
    with pytest.warns(DataWarning, match="5 pairs of 'buy' are too few"):
        found = GraphRanker(**SMALL, target="buy").fit(few)
    assert len(found.recommend(0, 5)) == 5


def test_new_events_of_other_kinds_are_refused(model):
    new = pd.DataFrame({"user": [70, 70], "item": [1, 2], "kind": ["view", "call"]})
    with pytest.raises(DataError, match=r"expected events of the kinds .*, found .'call'."):
        model.fold_in(new)
    plain = GraphRanker(**SMALL, settings={}).fit(of_kind(UNTIMED, "buy").drop(columns="kind"))
    with pytest.raises(DataError, match="several"):
        plain.partial_fit(Interactions.from_frame(UNTIMED, rating=None, kind="kind", target="buy", duplicates="sum"))
    with pytest.raises(DataError, match="AIR knows no kinds of events"):
        AIR.auto().fit(model.interactions_)
    other = Interactions.from_frame(UNTIMED, rating=None, kind="kind", target="view", duplicates="sum")
    with pytest.raises(DataError, match="expected events beside the target 'buy', found 'view'"):
        GraphRanker(**GIVEN).fit(other)
