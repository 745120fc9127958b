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
from air_recsys import exceptions as errors
from air_recsys.data.interactions import Interactions
from air_recsys.evaluation import compare
from air_recsys.evaluation.held_out import evaluate_model
from air_recsys.report import write_report
from air_recsys.serving.service import Service

__all__ = ["ContractTests"]

_LISTS = ["user", "item", "score", "rank", "source"]


@contextlib.contextmanager
def _with_unknown_users() -> Iterator[None]:
    """Hide the warnings of lists of users who are not known."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* what is popular is listed", errors.DataWarning)
        yield


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

    def make(self) -> Any:
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

    def fitted(self) -> Any:
        """A model that is fitted to `data`; each one is new."""
        return self.make().fit(self.data())

    def test_fit_changes_neither_parameters_nor_data_and_forgets_an_earlier_one(self) -> None:
        """The constructor only stores; the same parameters, seed and data give the same model, to the bit."""
        model = self.fitted()
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
        model, data = self.make(), self.data()
        asked = [("predict", 1, 1), ("recommend", 1), ("similar_users", 1), ("similar_items", 1)]
        asked += [("save", "model.air"), ("score", data)] + [("partial_fit", data)] * hasattr(model, "partial_fit")
        for name, *arguments in asked:
            with refused(errors.NotFittedError, f"this {type(model).__name__} is not fitted yet: call fit first"):
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
            with refused(errors.DataError, message):
                model.fit(data)
        np.testing.assert_array_equal(all_scores(model), expected)

    def test_small_data(self) -> None:
        """One user, one item, one pair, and users and items without any."""
        whole = self.make().as_data(self.data())
        first_user, first_item = whole.user_index == 0, whole.item_index == 0
        corner = (whole.user_index < 2) & (whole.item_index < 2)
        for kept in (first_user, first_item, corner, first_user & first_item):
            self._check_edges(whole.select(kept).to_frame())
        places = whole.user_index, whole.item_index, whole.ratings
        self._check_edges(Interactions(*places, [*whole.user_ids, "idle"], [*whole.item_ids, "new"]))

    def _check_edges(self, data: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ratings that are all equal
            model = self.make().fit(data)
        users, items = _ids(model)
        assert np.isfinite(all_scores(model)).all()
        assert len(model.recommend(users, len(items), exclude_seen=False)) == len(users) * len(items)
        for found, ids in ((model.similar_users(users[-1]), users), (model.similar_items(items[-1]), items)):
            assert len(found) < len(ids)
            assert np.isfinite(found["weight"]).all()

    def test_scores_of_pairs(self) -> None:
        """One id goes with all of the other side, whatever holds them."""
        model = self.fitted()
        (_, user, *_), items = _ids(model)
        row = model.predict([user] * len(items), items)
        assert (row.shape, row.dtype) == ((len(items),), np.float64)
        assert np.isfinite(row).all()
        for users, others in ((user, items), ([user], np.array(items)), (user, pd.Series(items))):
            np.testing.assert_array_equal(model.predict(users, others), row)
        # A processor may sum the products of another number of pairs in another order.
        np.testing.assert_allclose(model.predict([user, user], [items[0], items[3]]), row[[0, 3]], rtol=1e-5)
        np.testing.assert_allclose(model.predict(_ids(model)[0], items[3])[1], row[3], rtol=1e-5)
        assert model.predict([], []).shape == (0,)
        with refused(errors.DataError, "expected as many users as items, found 2 and 3"):
            model.predict([user, user], items[:3])

    def test_unknown_ids_are_told_once_and_refused_where_all_are_or_asked_for(self) -> None:
        """A table of predictions says which scores are not the model's."""
        model = self.fitted()
        (first, second, *_), (_, item, *_) = _ids(model)
        asked = [first, second.upper(), "nobody", first], [item, item, "nothing", "nothing"]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            scores = model.predict(*asked)
        assert [(each.category, each.filename) for each in told] == [(errors.DataWarning, __file__)]
        message = f"3 of 4 pairs get a mean rating, as 2 user id(s) are unknown ({second.upper()!r}, nearest known: "
        assert message in str(told[0].message)
        table = model.predict_table(*asked, unknown="mean")
        assert table["source"].tolist() == ["model", "item mean", "mean", "user mean"]
        assert table[["user", "item"]].T.to_numpy().tolist() == list(asked)
        for found in (table["score"], model.predict(*asked, unknown="mean")):
            np.testing.assert_array_equal(found, scores)
        message = f"1 item id(s) were not in the training data: {item.upper()!r}; the nearest known are {item!r}"
        for ask in (model.predict, model.predict_table):
            with refused(errors.UnknownIdError, message):
                ask([first, second], item.upper())
            with refused(errors.UnknownIdError, "2 user id(s) were not in the training data: 'nobody', 7; "):
                ask(["nobody", first, 7], item, unknown="error")
            with refused(errors.ParameterError, "unknown must be one of 'warn', 'mean', 'error', found 'skip'"):
                ask(first, item, unknown="skip")

    @_with_unknown_users()
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

    @_with_unknown_users()
    def test_lists_are_of_the_items_that_are_allowed(self) -> None:
        """To all, or to each user."""
        model = self.fitted()
        (_, user, other, *_), items = _ids(model)
        asked, some = [user, other, "nobody"], items[::2]
        own = {user: items[:4], other: [], "nobody": items[3:]}
        whole = model.recommend(asked, len(items))
        left = np.array([item in own[user] for user, item in zip(whole["user"], whole["item"], strict=True)])
        forms = {"items": some}, {"items": set(some)}, {"items": pd.Index(some)}, {"exclude": items[1::2]}
        cases = [(form, whole["item"].isin(some)) for form in forms]
        for form, kept in [*cases, ({"items": own}, left), ({"exclude": own}, ~left)]:
            found, expected = model.recommend(asked, len(items), **form), whole[kept].reset_index(drop=True)
            pd.testing.assert_frame_equal(found[["user", "item", "source"]], expected[["user", "item", "source"]])
            np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-6)
            assert (found["rank"] == found.groupby("user", sort=False).cumcount() + 1).all()
        nothing = model.recommend(asked, 3, exclude=items)
        assert (len(nothing), list(nothing.columns)) == (0, _LISTS)
        with refused(errors.UnknownIdError, "1 item id(s) were not in the training data: 'nosuch'; leave it out"):
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
                assert found[kind].nunique() == len(found) <= 4
                assert (np.diff(found["weight"]) <= 0).all()
            with refused(errors.UnknownIdError, f"1 {kind} id(s) were not in the training data: 'nobody'"):
                ask("nobody")
            for n, question in ((0, ask), (2.5, ask), (0, model.recommend), (2.5, model.recommend)):
                with refused(errors.ParameterError, f"n must be an integer >= 1, found {n}"):
                    question(ids[0], n)
            if graph is not None:
                matrix = graph.to_scipy()
                assert (graph.ids.tolist(), graph.kind) == (ids, kind)
                assert (matrix != matrix.T).nnz == 0
                assert not matrix.diagonal().any()
                assert matrix.data.min() > 0

    def test_saving_and_loading_changes_nothing(self, tmp_path: Path) -> None:
        """A model of the same class comes back; equal models make equal files."""
        model, path = self.fitted(), tmp_path / "model.air"
        assert model.save(str(path)) == path
        again: Any = air_recsys.load(path)
        assert type(again) is type(type(model).load(path)) is type(model)
        assert again.get_params() == model.get_params()
        assert_same_answers(again, model)
        pd.testing.assert_frame_equal(again.history_, model.history_)
        pd.testing.assert_frame_equal(again.interactions_.to_frame(), model.interactions_.to_frame())
        for name in ("n_iter_", "stopped_by_", "device_"):
            assert getattr(again, name, None) == getattr(model, name, None)
        assert again.save(tmp_path / "again.air").read_bytes() == path.read_bytes()

    @_with_unknown_users()
    def test_eight_threads_get_the_answers_of_one(self, tmp_path: Path) -> None:
        """A model may be asked by several threads at a time."""
        model = self.fitted()
        expected = answers_of(air_recsys.load(model.save(tmp_path / "model.air")))
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
        model, data = self.fitted(), self.data()
        (_, user, *_), (_, item, *_) = _ids(model)
        new = data[data["user"] == user].assign(user="eve")
        asked = [(name, user, item) for name in ("explain", "predict_interval", "predict_proba")]
        asked += [("uncertainty",), ("feature_effects",), ("memory_plan", data), ("score", data), ("fold_in", new)]
        for name, *arguments in asked:
            with contextlib.suppress(errors.AirRecsysError):
                getattr(model, name)(*arguments)
        with contextlib.suppress(errors.AirRecsysError):
            assert set(model.partial_fit(new).recommend("eve", 3)["source"]) == {"model"}

    def test_it_is_compared_evaluated_reported_and_served(self, tmp_path: Path) -> None:
        """By Python; the shell does the same."""
        model = self.fitted()
        found = compare({"it": self.make(), "other": "Popularity"}, self.data(), k=3, progress=False)
        assert found.to_frame().index.tolist() == ["it", "other"]
        assert "predicted" in evaluate_model(model).pairs
        user = _ids(model)[0][1]
        answer = Service(model).recommend(user, 2)
        assert [row["item"] for row in answer["items"]] == model.recommend(user, 2)["item"].tolist()
        with contextlib.suppress(errors.MissingExtraError):
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


def _ids(model: Any) -> tuple[list[Any], list[Any]]:
    return model.interactions_.user_ids.tolist(), model.interactions_.item_ids.tolist()


def all_scores(model: Any) -> np.ndarray:
    """The score of every pair of a model, user by user."""
    users, items = _ids(model)
    return model.predict(np.repeat(users, len(items)), np.tile(items, len(users)))


def answers_of(model: Any) -> list[np.ndarray]:
    """What a model answers: scores, lists and who is alike; parts of tables as text."""
    users, items = _ids(model)
    lists = [model.recommend([*users, "nobody"], 5), model.recommend(users, 5, exclude_seen=False)]
    lists += [model.similar_users(user, 4) for user in users] + [model.similar_items(item, 4) for item in items]
    return [all_scores(model), *(found.to_numpy(dtype=str) for found in lists)]


@_with_unknown_users()
def assert_same_answers(first: Any, second: Any) -> None:
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
