"""`ContractTests`: what every model keeps to, as tests for the packages that add one.

A package registers a class by an entry point of the group ``air_recsys.models`` that has the name of the class. One
that passes these tests works in `compare`, `evaluate`, `report`, `serve` and in model files.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

import air_recsys
from air_recsys.data.interactions import Interactions
from air_recsys.evaluation import compare
from air_recsys.evaluation.held_out import evaluate_model
from air_recsys.exceptions import (
    AirRecsysError,
    DataError,
    DataWarning,
    MissingExtraError,
    NotFittedError,
    ParameterError,
    UnknownIdError,
)
from air_recsys.models import Recommender
from air_recsys.report import write_report
from air_recsys.serving.service import Service

__all__ = ["ContractTests"]

_LISTS = ["user", "item", "score", "rank", "source"]


class ContractTests:
    """Tests of a model class for pytest: a subclass says how a model is made.

    A test that fails names the law by its name, and the line by its traceback. A model that does not learn from
    ratings has its own `data`.

    Examples
    --------
    >>> from air_recsys import BiasModel
    >>> class TestBiasModel(ContractTests):
    ...     def make(self):
    ...         return BiasModel()
    >>> TestBiasModel().test_scores_of_pairs()
    """

    def make(self) -> Recommender:
        """A model that is not fitted; each one is made with the same parameters and the same seed."""
        raise NotImplementedError("return a model in make")

    def data(self, seed: int = 0) -> pd.DataFrame:
        """The pairs that models are fitted to, of 12 users and 9 items; the first user has all, the second not."""
        rng = np.random.default_rng(seed)
        ratings = (3 + 2 * np.outer(rng.normal(size=12), rng.normal(size=9))).round().clip(1, 5)
        rated = rng.random(ratings.shape) < 0.6
        rated[0], rated[:, 0], ratings[:, 0] = True, True, 2.0
        users, items = np.nonzero(rated)
        names = {"user": [f"u{user:02}" for user in users], "item": [f"i{item}" for item in items]}
        return pd.DataFrame(names | {"rating": ratings[rated]})

    def fitted(self) -> Recommender:
        """A model that is fitted to `data`; each one is new."""
        return self.make().fit(self.data())

    # -------------------------------------------------------------------- fitting

    def test_fit_changes_neither_parameters_nor_data_and_forgets_an_earlier_one(self) -> None:
        """The constructor only stores; the same parameters, seed and data give the same model, to the bit."""
        model: Any = self.fitted()
        marks = {name: object() for name in model.get_params(deep=False)}
        stored = type(model)(**marks)
        assert {name: getattr(stored, name) for name in marks} == marks
        copied: Any = clone(model)
        assert not hasattr(copied, "global_mean_")
        copied.fit(self.data(seed=1)).recommend("u00", 3)
        data, before = model.interactions_, model.interactions_.to_frame()
        assert copied.fit(data) is copied
        assert_same_answers(copied, model)
        pd.testing.assert_frame_equal(data.to_frame(), before)
        assert copied.get_params() == model.get_params() == self.make().get_params()
        for name, value in model.get_params().items():
            assert model.set_params(**{name: value}) is model

    def test_nothing_is_answered_before_fit(self) -> None:
        """`NotFittedError` for every question."""
        model: Any = self.make()
        asked = [("predict", 1, 1), ("recommend", 1), ("similar_users", 1), ("similar_items", 1)]
        asked += [("save", "model.air"), ("score", self.data())]
        asked += [("partial_fit", self.data())] if hasattr(model, "partial_fit") else []
        for name, *arguments in asked:
            with refused(NotFittedError, f"this {type(model).__name__} is not fitted yet: call fit first"):
                getattr(model, name)(*arguments)

    def test_unusable_data_is_refused_and_the_model_stays_as_it_was(self) -> None:
        """Before any work; a pair that is there twice is named."""
        model, table = self.fitted(), self.data()
        expected, pair = all_scores(model), table.iloc[5]
        for data, message in (
            ("ratings.csv", "expected Interactions, a SciPy sparse matrix, a DataFrame"),
            (np.full((2, 2), np.nan), "expected at least one rating, found none"),
            (pd.concat([table, table.iloc[[5]]]), f"user {pair['user']!r} and item {pair['item']!r}"),
        ):
            with refused(DataError, message):
                model.fit(data)
        np.testing.assert_array_equal(all_scores(model), expected)

    def test_small_data(self) -> None:
        """One user, one item, one pair, and users and items without any."""
        table = self.data()
        few = table[table["user"].isin(table["user"].unique()[:2]) & table["item"].isin(table["item"].unique()[:2])]
        for part in (table[table["user"] == "u00"], table[table["item"] == "i0"], few, table.head(1)):
            self._check_of_edges(part, [*part["user"]], [*part["item"]])
        self._check_of_edges(table, ["idle", *table["user"]], ["new", *table["item"]])

    def _check_of_edges(self, table: pd.DataFrame, users: list[str], items: list[str]) -> None:
        users, items = sorted(set(users)), sorted(set(items))
        places = [
            np.array([ids.index(each) for each in table[name]]) for name, ids in (("user", users), ("item", items))
        ]
        ratings = table["rating"] if "rating" in table else np.ones(len(table))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ratings that are all equal
            model = self.make().fit(Interactions(*places, ratings, users, items))
        assert np.isfinite(all_scores(model)).all()
        assert len(model.recommend(users, len(items), exclude_seen=False)) == len(users) * len(items)
        for found, size in ((model.similar_users(users[0]), len(users)), (model.similar_items(items[0]), len(items))):
            assert len(found) < size or size == 1
            assert np.isfinite(found["weight"]).all()

    # -------------------------------------------------------------------- pairs

    def test_scores_of_pairs(self) -> None:
        """One id goes with all of the other side, whatever holds them."""
        model = self.fitted()
        user, items = _ids(model)[0][1], _ids(model)[1]
        row = model.predict([user] * len(items), items)
        assert (row.shape, row.dtype) == ((len(items),), np.float64)
        assert np.isfinite(row).all()
        for users, others in ((user, items), ([user], np.array(items)), (user, pd.Series(items))):
            np.testing.assert_array_equal(model.predict(users, others), row)
        # A processor may sum the products of another number of pairs in another order.
        np.testing.assert_allclose(model.predict([user, user], [items[0], items[3]]), row[[0, 3]], rtol=1e-5)
        np.testing.assert_allclose(model.predict(_ids(model)[0], items[3])[1], row[3], rtol=1e-5)
        assert model.predict([], []).shape == (0,)
        with refused(DataError, "expected as many users as items, found 2 and 3"):
            model.predict([user, user], items[:3])

    def test_unknown_ids_are_told_once_and_refused_where_all_are_or_asked_for(self) -> None:
        """A table of predictions says which scores are not the model's."""
        model = self.fitted()
        (first, second, *_), (_, item, *_) = _ids(model)
        asked = [first, second.upper(), "nobody", first], [item, item, "nothing", "nothing"]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            scores = model.predict(*asked)
        assert [each.category for each in told] == [DataWarning]
        message = f"3 of 4 pairs get a mean rating, as 2 user id(s) are unknown ({second.upper()!r}, nearest known: "
        assert message in str(told[0].message)
        assert told[0].filename == __file__
        table = model.predict_table(*asked, unknown="mean")
        assert table["source"].tolist() == ["model", "item mean", "mean", "user mean"]
        assert table[["user", "item"]].T.to_numpy().tolist() == list(asked)
        for found in (table["score"], model.predict(*asked, unknown="mean")):
            np.testing.assert_array_equal(found, scores)
        message = f"1 item id(s) were not in the training data: {item.upper()!r}; the nearest known are {item!r}"
        for ask in (model.predict, model.predict_table):
            with refused(UnknownIdError, message):
                ask([first, second], item.upper())
            with refused(UnknownIdError, "2 user id(s) were not in the training data: 'nobody', 7; "):
                ask(["nobody", first, 7], item, unknown="error")
            with refused(ParameterError, "unknown must be one of 'warn', 'mean', 'error', found 'skip'"):
                ask(first, item, unknown="skip")

    def test_a_score_of_other_pairs_is_one_number(self) -> None:
        """Larger is better."""
        model, table = self.fitted(), self.data()
        pairs = pd.MultiIndex.from_product(_ids(model), names=["user", "item"])
        other = pairs.difference(pd.MultiIndex.from_frame(table[["user", "item"]])).to_frame(index=False)
        assert isinstance(model.score(other.assign(rating=2.0) if "rating" in table else other), float)

    # -------------------------------------------------------------------- lists

    def test_lists_are_of_the_best_unseen_items(self) -> None:
        """A shorter list is the start of a longer one; a user who is not known gets what is popular."""
        model, table = self.fitted(), self.data()
        users, items = _ids(model)
        found = model.recommend(users, len(items))
        assert list(found.columns) == _LISTS
        assert set(found["source"]) == {"model"}
        for user in users:
            own = found[found["user"] == user]
            assert set(own["item"]) == set(items) - set(table.loc[table["user"] == user, "item"])
            assert own["rank"].tolist() == list(range(1, len(own) + 1))
            assert (np.diff(own["score"]) <= 0).all()
            np.testing.assert_allclose(own["score"], model.predict(user, own["item"]), rtol=1e-5, atol=1e-6)
        whole = model.recommend([*users, "nobody"], 10**9, exclude_seen=False)
        assert len(whole) == (len(users) + 1) * len(items)
        assert set(whole.loc[whole["user"] == "nobody", "source"]) == {"popular"}
        first = model.recommend([*users, "nobody"], 2, exclude_seen=False)
        pd.testing.assert_frame_equal(first, whole[whole["rank"] <= 2].reset_index(drop=True))

    def test_lists_are_of_the_items_that_are_allowed(self) -> None:
        """To all, or to each user."""
        model = self.fitted()
        (_, user, other, *_), items = _ids(model)
        asked = [user, other, "nobody"]
        whole = model.recommend(asked, len(items))
        some, own = items[::2], {user: items[:4], other: [], "nobody": items[3:]}
        for form in ({"items": some}, {"items": set(some)}, {"items": pd.Index(some)}, {"exclude": items[1::2]}):
            assert_same_lists(model.recommend(asked, len(items), **form), whole[whole["item"].isin(some)])
        left = [item in own[user] for user, item in zip(whole["user"], whole["item"], strict=True)]
        assert_same_lists(model.recommend(asked, len(items), items=own), whole[left])
        assert_same_lists(model.recommend(asked, len(items), exclude=own), whole[~np.array(left)])
        nothing = model.recommend(asked, 3, exclude=items)
        assert nothing.empty
        assert list(nothing.columns) == _LISTS
        with refused(UnknownIdError, "1 item id(s) were not in the training data: 'nosuch'; leave it out"):
            model.recommend(user, 3, items=["nosuch"])

    def test_similar_ones_come_strongest_first_without_the_one_asked_for(self) -> None:
        """A graph of a model has all users, or all items, in the order of its ids."""
        model = self.fitted()
        sides = zip(("user", "item"), _ids(model), (model.user_graph_, model.item_graph_), strict=True)
        for kind, ids, graph in sides:
            ask = getattr(model, f"similar_{kind}s")
            for one in ids:
                found = ask(one, 4)
                assert list(found.columns) == [kind, "weight"]
                assert one not in set(found[kind]) <= set(ids)
                assert found[kind].is_unique
                assert len(found) <= 4
                assert (np.diff(found["weight"]) <= 0).all()
            with refused(UnknownIdError, f"1 {kind} id(s) were not in the training data: 'nobody'"):
                ask("nobody")
            for n in (0, 2.5):
                for question in (ask, model.recommend):
                    with refused(ParameterError, f"n must be an integer >= 1, found {n}"):
                        question(ids[0], n)
            if graph is not None:
                matrix = graph.to_scipy()
                assert (graph.ids.tolist(), graph.kind) == (ids, kind)
                assert (matrix != matrix.T).nnz == 0
                assert not matrix.diagonal().any()
                assert matrix.data.min() > 0

    # -------------------------------------------------------------------- files, threads, all else

    def test_saving_and_loading_changes_nothing(self, tmp_path: Path) -> None:
        """A model of the same class comes back; equal models make equal files."""
        model: Any = self.fitted()
        path = tmp_path / "model.air"
        assert model.save(str(path)) == path
        for load in (type(model).load, Recommender.load, air_recsys.load):
            again: Any = load(path)
            assert type(again) is type(model), f"{type(again)} has the name of {type(model)}"
            assert again.get_params() == model.get_params()
        assert_same_answers(again, model)
        pd.testing.assert_frame_equal(again.history_, model.history_)
        pd.testing.assert_frame_equal(again.interactions_.to_frame(), model.interactions_.to_frame())
        for name in ("n_iter_", "stopped_by_", "device_"):
            assert getattr(again, name, None) == getattr(model, name, None)
        assert again.save(tmp_path / "again.air").read_bytes() == path.read_bytes()

    def test_eight_threads_get_the_answers_of_one(self, tmp_path: Path) -> None:
        """A model may be asked by several threads at a time."""
        model = self.fitted()
        expected = answers_of(Recommender.load(model.save(tmp_path / "model.air")))
        together = threading.Barrier(8)

        def ask(_: int) -> list[np.ndarray]:
            together.wait()  # all find the caches empty
            return answers_of(model)

        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(ask, range(8)):
                for one, other in zip(found, expected, strict=True):
                    np.testing.assert_array_equal(one, other)

    def test_what_a_model_cannot_answer_is_an_error_that_says_so(self) -> None:
        """Any other error than one of `air_recsys.exceptions` is a fault."""
        model: Any = self.fitted()
        user, item = "u01", "i1"
        pairs = dict.fromkeys(("explain", "predict_interval", "predict_proba"), (user, item))
        for name, asked in (pairs | {"memory_plan": (self.data(),), "uncertainty": (), "feature_effects": ()}).items():
            with contextlib.suppress(AirRecsysError):
                getattr(model, name)(*asked)
        new = self.data().query("user == 'u02'").assign(user="eve")
        with contextlib.suppress(AirRecsysError):
            model.fold_in(new)
        with contextlib.suppress(AirRecsysError):
            assert set(model.partial_fit(new).recommend("eve", 3)["source"]) == {"model"}

    def test_it_is_compared_evaluated_reported_and_served(self, tmp_path: Path) -> None:
        """By Python; the shell does the same."""
        model = self.fitted()
        found = compare({"it": self.make(), "other": "Popularity"}, self.data(), k=3, progress=False)
        assert found.to_frame().index.tolist() == ["it", "other"]
        assert "predicted" in evaluate_model(model).pairs
        answer = Service(model).recommend("u01", 2)
        assert [row["item"] for row in answer["items"]] == model.recommend("u01", 2)["item"].tolist()
        with contextlib.suppress(MissingExtraError):
            assert type(model).__name__ in write_report(model, tmp_path / "report.html").read_text(encoding="utf-8")


@contextlib.contextmanager
def refused(error: type[Exception], message: str) -> Iterator[None]:
    """Expect an error whose message holds these words."""
    found = "none"
    try:
        yield
    except error as raised:
        found = str(raised)
    assert message in found, f"expected {error.__name__} with {message!r}, found {found!r}"


def _ids(model: Recommender) -> tuple[list[Any], list[Any]]:
    return model.interactions_.user_ids.tolist(), model.interactions_.item_ids.tolist()


def all_scores(model: Recommender) -> np.ndarray:
    """The score of every pair of a model, user by user."""
    users, items = _ids(model)
    return model.predict(np.repeat(users, len(items)), np.tile(items, len(users)))


def answers_of(model: Recommender) -> list[np.ndarray]:
    """What a model answers: scores, lists and who is alike; parts of tables as text."""
    users, items = _ids(model)
    lists = [model.recommend([*users, "nobody"], 5), model.recommend(users, 5, exclude_seen=False)]
    lists += [model.similar_users(user, 4) for user in users] + [model.similar_items(item, 4) for item in items]
    return [all_scores(model), *(found.to_numpy(dtype=str) for found in lists)]


def assert_same_lists(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """The same items for the same users in the same order, ranked anew, with the same scores to rounding."""
    same = ["user", "item", "source"]
    pd.testing.assert_frame_equal(found[same], expected[same].reset_index(drop=True))
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-6)
    assert (found["rank"] == found.groupby("user", sort=False).cumcount() + 1).all()


def assert_same_answers(first: Recommender, second: Recommender) -> None:
    """Both models answer every question alike, to the bit, and were trained alike."""
    for one, other in zip(answers_of(first), answers_of(second), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in ((first.user_graph_, second.user_graph_), (first.item_graph_, second.item_graph_)):
        assert (one is None) is (other is None)
        if one is not None and other is not None:
            np.testing.assert_array_equal(one.to_scipy().toarray(), other.to_scipy().toarray())
            assert one.ids.tolist() == other.ids.tolist()
    one, other = (model.history_.drop(columns="seconds", errors="ignore") for model in (first, second))
    pd.testing.assert_frame_equal(one, other)
