"""Lists again: what `rerank` takes is the best by its definition, one item at a time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, rerank
from air_recsys.datasets import make_planted_ratings
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataError, ParameterError, UnknownIdError
from air_recsys.metrics import miscalibration

N_ITEMS = 40


@pytest.fixture(scope="module")
def model():
    made = make_planted_ratings(60, N_ITEMS, 900, 3, 3, random_state=0).interactions
    return AIR.for_likes(random_state=0, device="cpu", settings={}).fit(made)


@pytest.fixture(scope="module")
def lists(model):
    return model.recommend(model.interactions_.user_ids[:7], 25)


def genres(model) -> pd.DataFrame:
    table = np.random.default_rng(0).random((model.interactions_.n_items, 5)) < 0.4
    table[~table.any(axis=1), 0] = True
    return pd.DataFrame(table.astype(int), model.interactions_.item_ids, list("abcde"))


def by_definition(lists, model, n, *, diversity, novelty, calibration, groups):
    """One list at a time, in plain loops."""
    data, found = model.interactions_, []
    weights = model.item_graph_.to_scipy().toarray()
    largest, counts = weights.max(axis=1), np.bincount(data.item_index, minlength=data.n_items)
    shares = (groups.T / groups.sum(axis=1)).T.loc[data.item_ids].to_numpy()

    def scaled(values):
        return (values - values.min()) / (values.max() - values.min())

    for user, own in lists.groupby("user", sort=False):
        items = data.items.lookup(own["item"].to_numpy())
        good = scaled(1 / np.log2(np.arange(2, items.size + 2)))
        rare = scaled(-np.log2(np.maximum(counts[items], 1) / data.n_users))
        theirs = shares[data.item_index[data.user_ids[data.user_index] == user]].sum(axis=0)
        p = theirs / theirs.sum()
        taken: list[int] = []
        while len(taken) < n:
            values = np.full(items.size, -np.inf)
            for place in set(range(items.size)) - set(taken):
                alike = [
                    weights[items[place], items[j]] / np.sqrt(largest[items[place]] * largest[items[j]]) for j in taken
                ]
                q = shares[items[[*taken, place]]].sum(axis=0)
                mixed = 0.99 * q / q.sum() + 0.01 * p
                divergence = sum(p[g] * np.log2(p[g] / mixed[g]) for g in range(p.size) if p[g] > 0)
                values[place] = (1 - diversity - calibration) * ((1 - novelty) * good[place] + novelty * rare[place])
                values[place] -= diversity * max(alike, default=0.0) + calibration * divergence
            taken.append(int(values.argmax()))
        found += [(user, data.item_ids[items[place]]) for place in taken]
    return found


@pytest.mark.parametrize(
    ("diversity", "novelty", "calibration"), [(0.4, 0, 0), (0, 0.3, 0), (0, 0, 0.5), (0.3, 0.2, 0.3), (1, 0, 0)]
)
def test_each_item_is_the_best_by_the_definition(model, lists, diversity, novelty, calibration):
    wanted = {"diversity": diversity, "novelty": novelty, "calibration": calibration}
    found = rerank(lists, model, 8, **wanted, groups=genres(model))
    expected = by_definition(lists, model, 8, **wanted, groups=genres(model))
    assert list(zip(found["user"], found["item"], strict=True)) == expected
    assert found["rank"].tolist() == [*range(1, 9)] * 7


def test_without_wishes_lists_are_cut(model, lists):
    pd.testing.assert_frame_equal(rerank(lists, model, 6), lists[lists["rank"] <= 6].reset_index(drop=True))


def test_calibration_brings_the_groups_of_lists_to_those_of_users(model, lists):
    data, groups = model.interactions_, genres(model)

    def figure(table):
        items = data.items.lookup(table["item"].to_numpy()).reshape(7, -1)
        return miscalibration(items, data.to_csr()[:7], groups.to_numpy())

    assert figure(rerank(lists, model, 10, calibration=0.8, groups=groups)) < 0.5 * figure(rerank(lists, model, 10))


def test_no_group_has_more_than_its_number(model, lists):
    brands = {item: f"brand {place % 4}" for place, item in enumerate(model.interactions_.item_ids.tolist())}
    lists = lists.assign(brand=[brands[item] for item in lists["item"]])
    found = rerank(lists, model, 6, groups=pd.Series(brands), per_group=2)
    assert max(found.groupby(["user", "brand"]).size().tolist()) == 2
    first = rerank(lists, model, 6, groups=brands, per_group=1)
    assert first.groupby("user").size().tolist() == [4] * 7  # as many as there are brands
    for user, own in first.groupby("user"):  # the best of each brand
        of_user = lists[lists["user"] == user]
        best = of_user.groupby("brand", sort=False)["item"].first()
        assert own["item"].tolist() == best.tolist()


def test_lists_of_genres_count_in_each_of_them(model, lists):
    table = genres(model)
    words = {item: [name for name, own in zip(table, row, strict=True) if own] for item, *row in table.itertuples()}
    wanted = {"calibration": 0.5, "per_group": 5}
    pd.testing.assert_frame_equal(
        rerank(lists, model, 8, **wanted, groups=words), rerank(lists, model, 8, **wanted, groups=table)
    )


def test_lists_of_different_lengths_made_elsewhere(model):
    ids = model.interactions_.item_ids
    table = pd.DataFrame({"item": ids[[3, 1, 2, 4, 0]], "user": ["new", "new", "b", "new", "b"], "price": range(5)})
    found = rerank(table, model, 2, diversity=0.5)
    assert found["user"].tolist() == ["new", "new", "b", "b"]
    assert found["rank"].tolist() == [1, 2, 1, 2]
    assert rerank(table.iloc[:0], model, 2).empty


def test_lists_of_other_words_go_through_all_doors_of_their_model():
    values = pd.DataFrame(np.kron(np.eye(2), np.ones((4, 4))), list("abcdefgh"), list("stuvwxyz"))
    frame = values.stack().rename_axis(["drug", "disease"]).rename("interaction").reset_index()
    model = DrugTargetAIR().fit(frame, target="disease")
    lists = model.recommend(["a", "e"], 8, exclude_seen=False)
    best = rerank(lists, model, 3, diversity=0.9)
    assert best.groupby("drug").size().tolist() == [3, 3]
    pd.testing.assert_series_equal(
        model.recommend(["a", "e"], 8, items=best, exclude_seen=False)["disease"].groupby(best["drug"]).agg(set),
        best["disease"].groupby(best["drug"]).agg(set),
    )
    assert model.forget(pairs=best).interactions_.n_ratings == values.size - len(best)


@pytest.mark.parametrize(
    ("wanted", "error", "told"),
    [
        ({"diversity": 1.5}, ParameterError, "diversity"),
        ({"novelty": -0.1}, ParameterError, "novelty"),
        ({"diversity": 0.6, "calibration": 0.6, "groups": {}}, ParameterError, "at most 1"),
        ({"per_group": 0, "groups": {}}, ParameterError, "per_group"),
        ({"per_group": 2}, ParameterError, "need groups"),
        ({"per_group": 2, "groups": {"nobody": "x"}}, DataError, "all listed items"),
    ],
)
def test_wishes_that_cannot_be_met(model, lists, wanted, error, told):
    with pytest.raises(error, match=told):
        rerank(lists, model, 5, **wanted)


def test_tables_that_are_no_lists(model, lists):
    with pytest.raises(DataError, match="user and item"):
        rerank(lists[["user", "score"]], model)
    with pytest.raises(DataError, match="twice"):
        rerank(pd.concat([lists, lists]), model)
    with pytest.raises(UnknownIdError):
        rerank(lists.assign(item=-1), model)
