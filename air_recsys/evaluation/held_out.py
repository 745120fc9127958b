"""A model beside its baselines: on ratings held out, or on those it was trained on."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from air_recsys.evaluation.systems import ratings_alone
from air_recsys.exceptions import ParameterError
from air_recsys.interactions import Interactions, as_interactions
from air_recsys.metrics import auroc, average_precision, mae, ranking_report, rmse
from air_recsys.models import BiasModel, GlobalMean, Recommender
from air_recsys.splits import random_holdout

_HELD_OUT = 0.1
_K = 10
_SEED = 0


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Errors of a model and of its baselines on the same pairs.

    Attributes
    ----------
    title : str
        Whose ratings these are: training, test, or held out.
    protocol : str
        How the figures were obtained.
    rows : list of dict
        One model each: "model", "rmse", "mae"; for 0/1 ratings ranking measures too.
    truth, predicted : ndarray, shape (n,)
        Ratings of the pairs, and what the model says.
    notes : list of str
        What a reader has to know about the figures.
    """

    title: str
    protocol: str
    rows: list[dict[str, Any]]
    truth: np.ndarray
    predicted: np.ndarray
    notes: list[str] = field(default_factory=list)


def evaluate_model(model: Recommender, test: Any = None, refit: bool = False) -> Evaluation:
    """Compare a fitted model with `BiasModel` and `GlobalMean`.

    Parameters
    ----------
    model : Recommender
        Fitted.
    test : Interactions, DataFrame, sparse matrix or ndarray, optional
        Ratings that the model has not seen.
    refit : bool
        Fit the model anew on 90 % of its ratings, drawn at random with seed 0, and compare on the others. Without
        this and without `test`, the training ratings are compared, and the title says so.

    Raises
    ------
    ParameterError
        For both `test` and `refit`.
    DataError
        Where `test` cannot be used.

    Examples
    --------
    >>> model = BiasModel().fit(np.array([[5.0, 1.0], [4.0, np.nan]]))
    >>> evaluation = evaluate_model(model, test=np.array([[np.nan, np.nan], [np.nan, 1.0]]))
    >>> evaluation.title, [row["model"] for row in evaluation.rows]
    ('Error on test ratings', ['BiasModel', 'GlobalMean'])
    """
    if test is not None and refit:
        raise ParameterError("expected either test ratings or refit, found both")
    model = copy.copy(model)  # the state of this moment, whatever another thread writes
    data = model.interactions_
    if test is not None:
        unseen = as_interactions(test, allow_negative=True)
        protocol = (
            f"{unseen.n_ratings:,} test ratings that were given; baselines fitted on the model's training ratings"
        )
        return _compare("Error on test ratings", protocol, model, data, unseen)
    if refit:
        split = random_holdout(data, _HELD_OUT, random_state=_SEED)
        training, unseen = data.select(split.train), data.select(split.test)
        again: Any = clone(model)
        protocol = (
            f"the model fitted anew on {training.n_ratings:,} ratings, measured on {unseen.n_ratings:,} held out at "
            f"random (seed {_SEED}); the rest of this page shows the model fitted on all"
        )
        return _compare("Error on ratings held out", protocol, again.fit(training), training, unseen)
    protocol = f"the {data.n_ratings:,} ratings that the models were trained on"
    evaluation = _compare("Training error", protocol, model, data, None)
    evaluation.notes.insert(0, "These are training figures: they say how well a model fits, not how well it predicts.")
    return evaluation


def _compare(
    title: str, protocol: str, model: Recommender, training: Interactions, unseen: Interactions | None
) -> Evaluation:
    test = training if unseen is None else unseen
    users, items = test.user_ids[test.user_index], test.item_ids[test.item_index]
    name, plain = type(model).__name__, ratings_alone(training)
    models: dict[str, Recommender] = {name: model} | {
        kind.__name__: kind().fit(plain) for kind in (BiasModel, GlobalMean) if kind.__name__ != name
    }
    rows, predicted = [], np.empty(0)
    for label, contender in models.items():
        scores = contender.predict(users, items, unknown="mean")
        predicted = scores if contender is model else predicted
        rows.append({"model": label} | _errors(test.ratings, scores) | _ranking(contender, test, unseen is not None))
    notes = [] if unseen is None else _notes(training, users, items)
    return Evaluation(title, protocol, rows, test.ratings, predicted, notes)


def _errors(truth: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    errors = {"rmse": rmse(truth, scores), "mae": mae(truth, scores)}
    if np.unique(truth).tolist() == [0, 1]:
        errors |= {"average_precision": average_precision(truth, scores), "auroc": auroc(truth, scores)}
    return errors


def _ranking(model: Recommender, test: Interactions, is_unseen: bool) -> dict[str, float]:
    """Return how high the unseen positive pairs of 0/1 data stand among all items; nothing for other data."""
    users = model.interactions_.users.lookup(test.user_ids[test.user_index])
    items = model.interactions_.items.lookup(test.item_ids[test.item_index])
    counted = (users >= 0) & (items >= 0) & (test.ratings == 1)
    if not is_unseen or not np.isin(test.ratings, (0, 1)).all() or not counted.any():
        return {}
    shape = len(model.user_factors_), len(model.item_factors_)
    relevant = sp.csr_array((np.ones(counted.sum()), (users[counted], items[counted])), shape=shape)

    def scores(block: np.ndarray) -> np.ndarray:
        return model.user_factors_[block] @ model.item_factors_.T + model.item_biases_

    measures = ranking_report(scores, relevant, seen=model.interactions_.to_csr(), k=min(_K, shape[1]))
    return {f"{name}@{measures['k']}": measures[f"{name}_at_k"] for name in ("ndcg", "recall")}


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
