"""A model beside its baselines: on ratings held out, or on those it was trained on."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.data.scales import told_of_test
from air_recsys.evaluation.experiment import Question, ask, ask_ratings
from air_recsys.evaluation.folds import holdout_folds
from air_recsys.evaluation.lists import Popularity
from air_recsys.evaluation.resampling import Advantage, UserResamples, advantage_of, with_interval
from air_recsys.evaluation.system import ratings_alone
from air_recsys.exceptions import AirRecsysError, DataError, ParameterError
from air_recsys.metrics import auroc, average_precision, mae, rmse, user_measures
from air_recsys.metrics.binary import weighted_precision
from air_recsys.models import BiasModel, GlobalMean, GraphRanker, Recommender

_HELD_OUT = 0.1
_OF_LISTS = "Lists against likes"
_SEED = 0
_NO_TEST = "These are errors on training ratings: they show how well a model fits, and not how well it predicts."
_LIMITS = (
    "Errors and intervals are of measured ratings alone. These lie on the near side of their limits, so that models "
    "that know limits look worse there than those that never saw any; the picture has figures with limits."
)
_NO_LIKES = (
    "The accuracy of a model of likes cannot be measured on its training data: give likes that it has not seen."
)
_QUICK_SECONDS, _QUICK_RATINGS = 60.0, 300_000  # of a training, that is repeated unasked
_RESAMPLES, _FEW_RESAMPLES = 1_000, 200  # the measures of 0/1 ratings take long
_K = 10
_POPULAR = "most popular"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Errors of a model and of its baselines on the same pairs.

    Attributes
    ----------
    title : str
        Kind of the ratings: training, test, or held out.
    protocol : str
        How the figures were obtained.
    rows : list of dict
        One model each: "model", then its measures. The first one counts, and has a 95 % interval by a bootstrap over
        users on unseen ratings, as in "rmse low" and "rmse high": "rmse" of ratings, "average_precision" of 0/1
        ratings, "ndcg@k" of likes alone. Without unseen pairs likes alone have no rows.
    pairs : DataFrame
        One row per pair: user, item, truth, predicted, deviation (of a new rating, NaN where the model knows none),
        user_ratings and item_ratings (in the training data).
    is_unseen : bool
        Whether the pairs were held out from training.
    advantage : Advantage or None
        On unseen pairs.
    notes : list of str
        Notes on the figures.
    limits : DataFrame or None
        The pairs of which a limit alone is known, with their relation, 1 for above and -1 for below; no measure counts
        them.
    """

    title: str
    protocol: str
    rows: list[dict[str, Any]]
    pairs: pd.DataFrame
    is_unseen: bool
    advantage: Advantage | None = None
    notes: list[str] = field(default_factory=list)
    limits: pd.DataFrame | None = None

    @property
    def truth(self) -> np.ndarray:
        """Ratings of the pairs, shape (n,)."""
        return self.pairs["truth"].to_numpy()

    @property
    def predicted(self) -> np.ndarray:
        """What the model says, shape (n,)."""
        return self.pairs["predicted"].to_numpy()

    @property
    def word(self) -> str:
        """What the pairs are: "ratings", or "likes" where lists were measured."""
        return "likes" if self.title == _OF_LISTS else "ratings"

    @property
    def knows_deviations(self) -> bool:
        """Whether the model said how far each rating may be from its prediction."""
        return bool(np.isfinite(self.pairs["deviation"].to_numpy()).all())

    @property
    def measure(self) -> str:
        """The name of the measure that counts, "" without rows."""
        return list(self.rows[0])[1] if self.rows else ""


def word_for(ratings: np.ndarray) -> str:
    """What people call such ratings: all equal ones are likes."""
    return "likes" if not ratings.size or np.ptp(ratings) == 0 else "ratings"


def evaluate_model(model: Recommender, test: Any = None, refit: bool | None = False) -> Evaluation:
    """Compare a fitted model with `BiasModel` and `GlobalMean`, lists from likes alone with those of what is popular.

    Without `test`, ratings that the model has not seen, the training ratings are compared, and the title says so. With
    `refit` the model is fitted anew on 90 % of its ratings, drawn at random with seed 0, and compared on the others;
    None does so where it is quick and can be done, and notes say why not.
    """
    from sklearn.base import clone

    if test is not None and refit:
        raise ParameterError("expected either test ratings or refit, found both")
    model = copy.copy(model)  # the state of this moment, whatever another thread writes
    data = model.interactions_
    if test is not None:
        unseen = as_interactions(test, allow_negative=True, reads=("relation",))
        protocol = (
            f"{unseen.n_ratings:,} test ratings that were given; baselines fitted on the model's training ratings"
        )
        return _compare("Error on test ratings", protocol, model, data, unseen)
    told = _NO_TEST
    if refit is None:
        if (told := _why_no_refit(model)) == "":
            try:
                with warnings.catch_warnings(action="ignore"):  # the training has told them
                    return evaluate_model(model, refit=True)
            except AirRecsysError as error:
                told = f"No ratings could be held out: {error}."
        told = f"{told} {_NO_TEST}"
    if refit:
        _, training, unseen = holdout_folds(data, _HELD_OUT, _SEED)[0]
        again: Any = clone(model)
        word = word_for(data.ratings)
        protocol = (
            f"{unseen.n_ratings:,} {word} held out at random (seed {_SEED}), by models fitted on the other "
            f"{training.n_ratings:,}; graphs, lists and parameters are those of the model fitted on all ratings"
        )
        hidden = data.select(~np.isin(data.pair_index, training.pair_index))  # limits too
        return _compare("Error on ratings held out", protocol, again.fit(training), training, hidden)
    protocol = f"the {data.n_ratings:,} ratings that the models were trained on"
    evaluation = _compare("Training error", protocol, model, data, None)
    evaluation.notes.insert(0, told if evaluation.rows else told.replace(_NO_TEST, _NO_LIKES))
    return evaluation


def _why_no_refit(model: Recommender) -> str:
    """Why a model is not fitted again unasked: it takes long; else ""."""
    history, n_ratings = model.history_, model.interactions_.n_ratings
    seconds = float(history["seconds"].iloc[-1]) if "seconds" in history and len(history) else None
    if n_ratings <= _QUICK_RATINGS if seconds is None else seconds <= _QUICK_SECONDS:
        return ""
    took = (
        f"{n_ratings:,} {word_for(model.interactions_.ratings)}" if seconds is None else f"{seconds:.0f} s of training"
    )
    return f"The model was not fitted again to measure it, as that takes long ({took}); ask for it by evaluate."


def _compare(
    title: str, protocol: str, model: Recommender, training: Interactions, unseen: Interactions | None
) -> Evaluation:
    asked = training if unseen is None else unseen
    test, limits = asked.measured_alone(), None
    if asked.relations is not None:
        beyond = np.flatnonzero(asked.relations)
        limits = _pairs(model, training, asked.select(beyond)).assign(relation=asked.relations[beyond])
    pairs = _pairs(model, training, test)
    notes = [] if unseen is None else _notes(training, pairs["user"].to_numpy(), pairs["item"].to_numpy())
    notes += [_LIMITS] if limits is not None and unseen is not None else []
    notes += filter(None, [told_of_test(test.ratings, model.rating_scale_)])
    if unseen is not None and isinstance(model, GraphRanker) and np.ptp(test.ratings) > 0 < test.ratings.min():
        raise DataError("expected test likes, as the model learned from likes, found ratings: keep those that count")
    if (test.ratings > 0).all() and np.ptp(test.ratings) == 0 and np.ptp(training.ratings) == 0:
        title = _OF_LISTS
        rows, advantage = ([], None) if unseen is None else compare_lists(model, training, test)
    else:
        rows, advantage = _compare_errors(model, training, test, pairs, unseen is not None)
    return Evaluation(title, protocol, rows, pairs, unseen is not None, advantage, notes, limits)


def _pairs(model: Recommender, training: Interactions, test: Interactions) -> pd.DataFrame:
    users, items = test.user_ids[test.user_index], test.item_ids[test.item_index]
    predicted, deviations = ask_ratings(model, (users, items))
    return pd.DataFrame(
        {
            "user": users,
            "item": items,
            "truth": test.ratings,
            "predicted": predicted,
            "deviation": np.nan if deviations is None else deviations,
            "user_ratings": _counts(training.user_index, training.users.lookup(users)),
            "item_ratings": _counts(training.item_index, training.items.lookup(items)),
        }
    )


def _counts(index: np.ndarray, places: np.ndarray) -> np.ndarray:
    """How often each place occurs in an index; places of -1, unknown ids, occur never."""
    counts = np.bincount(index, minlength=int(places.max()) + 1)
    return np.where(places >= 0, counts[places], 0)


def _compare_errors(
    model: Recommender, training: Interactions, test: Interactions, pairs: pd.DataFrame, is_unseen: bool
) -> tuple[list[dict[str, Any]], Advantage | None]:
    name, plain = type(model).__name__, ratings_alone(training)
    models: dict[str, Recommender] = {name: model} | {
        kind.__name__: kind().fit(plain) for kind in (BiasModel, GlobalMean) if kind.__name__ != name
    }
    users, items, truth = pairs["user"].to_numpy(), pairs["item"].to_numpy(), pairs["truth"].to_numpy()
    is_binary = np.unique(truth).tolist() == [0, 1]
    resamples = UserResamples(test.user_index, _FEW_RESAMPLES if is_binary else _RESAMPLES) if is_unseen else None
    ranks = is_unseen and bool(np.isin(test.ratings, (0, 1)).all())  # how high the positive ones stand among all items
    relevant = relevant_of(training, test) if ranks else None
    rows, drawn = [], {}
    for label, contender in models.items():
        own = contender is model
        scores = pairs["predicted"].to_numpy() if own else contender.predict(users, items, unknown="mean")
        row, draws = _measured(truth, scores, is_binary, resamples)
        lists = {} if relevant is None else _measures(contender, training, relevant)
        rows.append({"model": label} | row | {name: float(values.mean()) for name, values in lists.items()})
        drawn[label] = draws
    return rows, None if resamples is None else advantage_of(rows, drawn, higher_is_better=is_binary)


def _measured(
    truth: np.ndarray, scores: np.ndarray, is_binary: bool, resamples: UserResamples | None
) -> tuple[dict[str, float], np.ndarray]:
    """The measures of scores, the one that counts first, and that one in every resample."""
    errors = {"rmse": rmse(truth, scores), "mae": mae(truth, scores)}
    if is_binary:
        precision = average_precision(truth, scores)
        errors = {"average_precision": precision, "auroc": auroc(truth, scores)} | errors
    if resamples is None:
        return errors, np.empty(0)
    draws = (
        resamples.of(partial(weighted_precision, truth, scores))
        if is_binary
        else resamples.root_mean((truth - scores) ** 2)
    )
    return with_interval(errors, draws), draws


def _notes(training: Interactions, users: np.ndarray, items: np.ndarray) -> list[str]:
    rows, columns = training.users.lookup(users), training.items.lookup(items)
    known = (rows >= 0) & (columns >= 0)
    notes = []
    if not known.all():
        notes.append(f"{np.count_nonzero(~known):,} pairs have a user or an item that was not in the training data.")
    pairs = rows[known] * training.n_items + columns[known]
    trained = np.isin(pairs, training.pair_index).sum()
    if trained:
        notes.append(f"{trained:,} of the pairs are among the training ratings, which flatters all models.")
    return notes


class Relevant(NamedTuple):
    """Unseen likes by positions in the training data, of the users who have any."""

    users: np.ndarray  # (b,)
    items: Any  # csr_array (b, n_items), 1 for each


def compare_lists(
    model: Recommender, training: Interactions, test: Interactions
) -> tuple[list[dict[str, Any]], Advantage | None]:
    """NDCG and recall of lists of ten unseen items, of a model and of what is popular, and the advantage.

    There are no rows where no test like is of a user and an item of the training data.
    """
    relevant = relevant_of(training, test)
    if relevant is None:
        return [], None
    resamples = UserResamples(relevant.users)
    listers: dict[str, Any] = {type(model).__name__: model, _POPULAR: Popularity().fit(training)}
    rows, drawn = [], {}
    for name, lister in listers.items():
        by_user = _measures(lister, training, relevant)
        drawn[name] = resamples.mean(next(iter(by_user.values())))
        means = {measure: float(values.mean()) for measure, values in by_user.items()}
        rows.append({"model": name} | with_interval(means, drawn[name]))
    return rows, advantage_of(rows, drawn, higher_is_better=True)


def relevant_of(training: Interactions, test: Interactions) -> Relevant | None:
    """The test pairs rated above 0 whose user and item are known; None without any."""
    users = training.users.lookup(test.user_ids[test.user_index])
    items = training.items.lookup(test.item_ids[test.item_index])
    counted = (users >= 0) & (items >= 0) & (test.ratings > 0)
    if not counted.any():
        return None
    shape = training.n_users, training.n_items
    known = sp.csr_array((np.ones(counted.sum()), (users[counted], items[counted])), shape=shape)
    chosen = np.unique(users[counted])
    return Relevant(chosen, known[chosen])


def _measures(model: Any, training: Interactions, relevant: Relevant) -> dict[str, np.ndarray]:
    """NDCG and recall of lists of ten unseen items, by user."""
    k = min(_K, relevant.items.shape[1])
    lists = ask(model, training, Question(users=relevant.users, k=k)).lists
    measures = user_measures(lists, relevant.items, k)
    return {f"{name}@{k}": measures[f"{name}_at_k"] for name in ("ndcg", "recall")}
