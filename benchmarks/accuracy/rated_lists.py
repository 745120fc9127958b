"""Lists from ratings, judged by test ratings that are likes: of the model of ratings, and of models of pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.adapters.implicit_peer import ImplicitLists
from air_recsys.data.interactions import Interactions
from air_recsys.data.scales import like_of
from air_recsys.evaluation.lists import paired_p_value
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import user_measures
from air_recsys.metrics.checks import Csr
from air_recsys.metrics.ranking import lists_of_scores
from air_recsys.models import AIR, Recommender
from air_recsys.splits import user_holdout
from air_recsys.storage.validation import check_choice
from benchmarks.accuracy.ratings_data import RATING_SETS, chosen_folds, validation_fold
from benchmarks.harness import Found

_LENGTH, _OURS = 10, "AIR.for_ratings()"
_FORMS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "all pairs": lambda ratings, liked: np.ones(ratings.size),
    "liked pairs": lambda ratings, liked: (ratings >= liked).astype(np.float64),
    "ratings as weights": lambda ratings, liked: ratings / ratings.max(),
}
_GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "EASE": {"decay": (50.0, 100.0, 200.0, 400.0, 800.0)},
    "implicit ALS": {"factors": (32, 64, 128), "regularization": (0.1, 1.0, 10.0, 30.0)},
}
Scores = Callable[[np.ndarray], np.ndarray]  # of all items for some users
Lists = Callable[[np.ndarray], np.ndarray]  # of some users, by positions, (b, 10)


class _Judge(NamedTuple):
    """Which items users like in a test part, and which they rate below that."""

    users: np.ndarray  # with a like
    liked: Csr
    others: Csr
    worst: Csr  # below the middle of the scale

    @classmethod
    def of(cls, test: Interactions, least: float) -> _Judge:
        """Of ratings of which those from a least one on are likes."""
        ratings, middle = test.ratings, (test.ratings.min() + test.ratings.max()) / 2
        masks = ratings >= least, ratings < least, ratings < middle
        liked, others, worst = (_csr(test, mask.astype(np.float64)) for mask in masks)
        users = np.flatnonzero(np.diff(liked.indptr))
        return cls(users, liked[users], others[users], worst[users])

    def ndcg(self, lists: Lists) -> tuple[np.ndarray, np.ndarray]:
        """NDCG of each user, and the mean numbers of items in a list rated lower, and below the middle."""
        found = lists(self.users)
        of_lists = (
            np.take_along_axis(each.toarray(), found.clip(min=0), axis=1) for each in (self.others, self.worst)
        )
        low = np.array([each[found >= 0].sum() / self.users.size for each in of_lists])
        return user_measures(found, self.liked, _LENGTH)["ndcg_at_k"], low


def bench_rated_lists(
    root: Path,
    seed: int,
    case: str,
    *,
    systems: list[str],
    folds: list[str],
    validation: bool,
    new_users: bool,
    settings: dict[str, Any],
) -> Found:
    """Measure NDCG of lists by test likes, and how many items with lower test ratings are in them: means over folds.

    Settings of EASE and ALS are those with the best NDCG of likes in a hidden fifth of each user's training ratings.
    """
    if new_users:
        raise ParameterError("expected lists of users of the training, found new_users")
    rating_set = RATING_SETS[case.removeprefix("rated-")]
    parts = chosen_folds(rating_set.load(root), folds)
    parts = [validation_fold(fold, seed) for fold in parts] if validation else parts
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    notes: list[str] = []
    for fold in parts:
        judge = _Judge.of(fold.test, like_of(fold.train.ratings))
        makers = _systems(_untimed(fold.train), settings, seed)
        for name in systems or makers:
            lists, told = makers[check_choice("systems", name, list(makers))]()
            found.setdefault(name, []).append(judge.ndcg(lists))
            notes += [f"{name}, {fold.name}: {told}"] if told else []
    first = np.concatenate([ndcg for ndcg, _ in next(iter(found.values()))])
    rows = [
        {"lists of": name, "ndcg@10": np.mean([ndcg.mean() for ndcg, _ in each])}
        | dict(zip(("rated lower", "rated low"), np.mean([low for _, low in each], axis=0).tolist(), strict=True))
        | {"p": paired_p_value(np.concatenate([ndcg for ndcg, _ in each]), first)}
        | {fold.name: ndcg.mean() for fold, (ndcg, _) in zip(parts, each, strict=True) if len(parts) > 1}
        for name, each in found.items()
    ]
    return Found(rows, notes=notes, title=rating_set.title, origin=rating_set.origin, grids=_GRIDS)


def _systems(data: Interactions, settings: dict[str, Any], seed: int) -> dict[str, Callable[[], tuple[Lists, str]]]:
    """What trains each system on ratings, by name, and returns its lists and what it has chosen."""
    ratings, likes = partial(_of_ratings, data, settings, seed), partial(_of_likes, data, seed)
    found = {_OURS: ratings} | {f"{_OURS} by {by}": partial(ratings, rank_by=by) for by in ("rating", "taken")}
    found |= {f"AIR.for_likes() on {form}": partial(likes, form) for form in ("all pairs", "liked pairs")}
    found["AIR.for_likes(liked=)"] = partial(_of_dislikes, data, seed)
    peers = itertools.product({"EASE": _ease, "implicit ALS": _als}.items(), _FORMS)
    return found | {
        f"{name} on {form}": partial(_of_peer, data, name, make, form, seed) for (name, make), form in peers
    }


def _of_ratings(data: Interactions, settings: dict[str, Any], seed: int, **how: Any) -> tuple[Lists, str]:
    model = AIR.for_ratings(**{"random_state": seed, "device": "cpu"} | settings).fit(data)
    return partial(_own_lists, model, _of_form("all pairs", data), **how), "" if how else model.lists_line_


def _of_likes(data: Interactions, seed: int, form: str) -> tuple[Lists, str]:
    pairs = data.select(_FORMS[form](data.ratings, like_of(data.ratings)) > 0)
    likes = Interactions(pairs.user_index, pairs.item_index, np.ones(pairs.n_ratings), data.users, data.items)
    model = AIR.for_likes(random_state=seed, device="cpu").fit(likes)
    return partial(_own_lists, model, _of_form("all pairs", data)), model.search_line_


def _of_dislikes(data: Interactions, seed: int) -> tuple[Lists, str]:
    model = AIR.for_likes(random_state=seed, device="cpu", liked=like_of(data.ratings)).fit(data)
    return partial(_own_lists, model, _of_form("all pairs", data)), model.search_line_


def _of_peer(data: Interactions, name: str, make: Callable[..., Scores], form: str, seed: int) -> tuple[Lists, str]:
    """A peer with the settings of its grid that make the best lists of a hidden part of the training ratings."""
    split, liked = user_holdout(data, 0.2, seed), like_of(data.ratings)
    shown, judge = data.select(split.train), _Judge.of(data.select(split.test), liked)

    def ndcg(tried: dict[str, Any]) -> float:
        scores = make(_of_form(form, shown, liked), seed, **tried)
        return float(judge.ndcg(partial(_lists, scores, _of_form("all pairs", shown)))[0].mean())

    grid = _GRIDS[name]
    chosen = max((dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())), key=ndcg)
    told = ", ".join(f"{setting}={value:g}" for setting, value in chosen.items())
    scores = make(_of_form(form, data, liked), seed, **chosen)
    return partial(_lists, scores, _of_form("all pairs", data)), told


def _own_lists(model: Recommender, seen: Csr, users: np.ndarray, **how: Any) -> np.ndarray:
    data = model.interactions_
    table = model.recommend(data.user_ids[users], _LENGTH, exclude=seen[users], **how)
    place = np.full(data.n_users, -1)
    place[users] = np.arange(users.size)
    found = np.full((users.size, _LENGTH), -1)
    rows = place[data.users.lookup(table["user"].to_numpy())]
    found[rows, table["rank"].to_numpy() - 1] = data.items.lookup(table["item"].to_numpy())
    return found


def _lists(scores: Scores, seen: Csr, users: np.ndarray) -> np.ndarray:
    return lists_of_scores(scores, seen, users, _LENGTH)


def _ease(values: Csr, seed: int, decay: float) -> Scores:
    """The scores of EASE, Steck, WWW 2019, of a matrix of any values."""
    products = (values.T @ values).toarray()
    products.flat[:: len(products) + 1] += decay
    inverse = np.linalg.inv(products)
    weights = inverse / -inverse.diagonal()
    np.fill_diagonal(weights, 0)
    return lambda users: values[users] @ weights


def _als(values: Csr, seed: int, **settings: Any) -> Scores:
    """The scores of implicit's ALS with these confidences."""
    peer = ImplicitLists("als", random_state=seed, num_threads=1, **settings)
    peer.model.fit(sp.csr_matrix(values, dtype=np.float32), show_progress=False)
    return lambda users: peer.model.user_factors[users] @ peer.model.item_factors.T


def _of_form(form: str, data: Interactions, liked: float = 0.0) -> Csr:
    return _csr(data, _FORMS[form](data.ratings, liked))


def _csr(data: Interactions, values: np.ndarray) -> Csr:
    """A matrix of the ratings' pairs, without those of value 0."""
    found = sp.csr_array((values, (data.user_index, data.item_index)), shape=(data.n_users, data.n_items))
    found.eliminate_zeros()
    return found


def _untimed(data: Interactions) -> Interactions:
    return Interactions(data.user_index, data.item_index, data.ratings, data.users, data.items)
