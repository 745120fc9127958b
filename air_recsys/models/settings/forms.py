"""Forms: the handful of settings that a search tries, each a set of values for what is still "auto"."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.models.engines import Engine, ObjectiveEngine
from air_recsys.models.ratings import is_binary, only_likes

_SLOW = 1 / 3  # of the travel of the logits: for noisy values, and for groups of few rows
_OF_ALL_PAIRS = 1 / 2  # the same, where every pair has an edge: for noisy values in groups of many rows
_SMALL, _WEAK = 1e-6, 1e-3  # of the start of the product, and of the strengths: low rank without groups
_VARIATION, _PICTURE_EPOCHS, _EXACT_OF_PICTURE = 0.15, 1500, 60
_SMOOTH, _BORDERS = 0.4, 0.5
_FEWEST_RATINGS, _FEWEST_ROWS = 200, 8


@dataclass(frozen=True)
class Form:
    """A name, and values of parameters that are "auto": first what it is named for; others follow from formulas."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)


def open_forms(data: Interactions, engine: Engine, still_open: Collection[str]) -> list[Form]:
    """The forms that an engine offers, with what they say of parameters that are still open, each once.

    A form is left out where what it is named for has been given.
    """
    kept: list[Form] = []
    for form in forms_of(data, engine):
        values = {name: value for name, value in form.values.items() if name in still_open}
        named_for = [*form.values][:1]
        if named_for == [*values][:1] and all(values != other.values for other in kept):
            kept.append(Form(form.name, values))
    return kept


def too_small(data: Interactions) -> str:
    """The reason why no part of the ratings can be hidden to judge settings by, "" where one can."""
    if data.n_ratings < _FEWEST_RATINGS:
        return f"{data.n_ratings} ratings are too few to hide a part of, {_FEWEST_RATINGS} are needed"
    smaller = min(data.n_users, data.n_items)
    if smaller < _FEWEST_ROWS:
        return f"{smaller} users or items are too few to compare settings, {_FEWEST_ROWS} are needed"
    return ""


def forms_of(data: Interactions, engine: Engine) -> list[Form]:
    """The forms that an engine offers for some data, the default first: for pictures theirs."""
    if not isinstance(engine, ObjectiveEngine) or not engine.is_exact or not any(engine.settings(data).strengths):
        return [Form("")]
    settings, plan = engine.settings(data), engine.plan(data)
    forms = [
        Form("few edges"),
        Form("slow graphs", {"graph_rate": plan.graph_rate * _SLOW}),
        Form(
            "small start",
            {
                "init_std": settings.init[1] * _SMALL ** (1 / settings.depth),
                "exact_epochs": 0,
                "user_graph_reg": settings.strengths[0] * _WEAK,
                "item_graph_reg": settings.strengths[1] * _WEAK,
            },
        ),
    ]
    if not engine.is_full_width(data):
        return forms
    forms.append(Form("all pairs", {"graph_neighbors": None, "graph_rate": plan.graph_rate * _OF_ALL_PAIRS}))
    if is_smooth(data):  # what no search can confirm is no default
        forms.insert(len(forms) if too_small(data) else 0, picture_form(data, exact=plan.exact_epochs > 0))
    return forms


def picture_form(data: Interactions, *, exact: bool) -> Form:
    """The form of a matrix whose neighbouring rows and columns are similar: total variation does the work."""
    largest, cells = float(np.abs(data.ratings).max()), data.n_users * data.n_items
    deviation = float(data.ratings.std()) / largest if largest > 0 else 0.0
    values = {
        "tv_reg": _VARIATION * data.density * deviation,
        "user_graph_reg": data.density / cells,
        "item_graph_reg": data.density / cells,
        "learning_rate": 1e-2,
        "init_std": 0.03,
        "graph_rate": 3.0,
    }
    if exact:
        values |= {"n_epochs": 2 * _EXACT_OF_PICTURE, "exact_epochs": _EXACT_OF_PICTURE}
    else:
        values |= {"n_epochs": _PICTURE_EPOCHS, "graph_neighbors": None}
    return Form("a picture", values)


def is_smooth(data: Interactions) -> bool:
    """Whether neighbouring rows are similar, and neighbouring columns, with no borders: a picture may be.

    In both directions the mean squared difference of neighbouring ratings, over that of any two, is below 0.4, and the
    median over pairs of neighbours is at least half of the mean: groups in order differ at their borders alone.
    """
    ratings = data.to_csr()
    any_two = 2 * float(data.ratings.var())
    return any_two > 0 and all(_is_gradual(side, any_two) for side in (ratings, ratings.T.tocsr()))


def _is_gradual(ratings: sp.csr_array, any_two: float) -> bool:
    """Whether rows that stand one above the other differ little, and all alike."""
    pattern = ratings.copy()
    pattern.data = np.ones_like(pattern.data)
    both = pattern[1:].multiply(pattern[:-1]).tocsr()
    squares = (both.multiply(ratings[1:]) - both.multiply(ratings[:-1])).tocsr().power(2).sum(axis=1)
    counts = both.sum(axis=1)
    if not both.nnz:
        return False
    mean, median = squares.sum() / both.nnz, np.median(squares[counts > 0] / counts[counts > 0])
    return bool(mean < _SMOOTH * any_two and median >= _BORDERS * mean)


FULL_WIDTH_CELLS = 1_000_000  # users times items up to which a completed matrix is trained in minutes


class Kind(NamedTuple):
    """A kind of data, in words, and the presets that may suit it, the default first."""

    words: str
    presets: tuple[str, ...]


def kind_of(data: Interactions) -> Kind:
    """The kind of some interactions.

    * One value above 0, and pairs without any: likes. No preset learns from them alone, and `fit` says what does.
    * 0 and 1 alone: 0/1 data.
    * Some limits: noisy ratings, as no other preset knows them.
    * More values, and a matrix that can be completed as a whole: exact values or noisy ratings. Only a training tells
      which: hidden entries of exact data can be predicted, those of noisy ratings cannot.
    * More values in a larger matrix, or too few to hide a part of: noisy ratings.
    """
    if only_likes(data):
        return Kind("likes, only positive pairs", ("ratings",))
    if is_binary(data.ratings):
        return Kind("0/1 data", ("interactions",))
    if data.relations is not None:
        return Kind("noisy ratings, some of them limits", ("ratings",))
    if data.n_users * data.n_items <= FULL_WIDTH_CELLS and not too_small(data):
        return Kind("exact values or noisy ratings", ("completion", "ratings"))
    return Kind("noisy ratings", ("ratings",))
