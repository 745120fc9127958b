"""Kinds of data, told apart by the values alone: what `AIR.auto` looks at before it searches."""

from __future__ import annotations

from typing import NamedTuple

from air_recsys.data.interactions import Interactions
from air_recsys.models.likes import only_likes
from air_recsys.models.limits import is_binary
from air_recsys.models.settings.forms import too_small

FULL_WIDTH_CELLS = 1_000_000  # users times items up to which a completed matrix is trained in minutes


class Kind(NamedTuple):
    """A kind of data, in words, and the presets that may suit it, the default first."""

    words: str
    presets: tuple[str, ...]


def kind_of(data: Interactions) -> Kind:
    """Return the kind of some interactions.

    * One value above 0, and pairs without any: likes. No preset learns from them alone, and `fit` says what does.
    * 0 and 1 alone: 0/1 data.
    * More values, and a matrix that can be completed as a whole: exact values or noisy ratings. Only a training tells
      which: hidden entries of exact data can be predicted, those of noisy ratings cannot.
    * More values in a larger matrix, or too few to hide a part of: noisy ratings.

    Examples
    --------
    >>> kind_of(Interactions.from_dense([[0, 1], [1, 0]])).presets
    ('interactions',)
    >>> import numpy as np
    >>> kind_of(Interactions.from_dense([[np.nan, 1], [1, np.nan]])).words
    'likes, only positive pairs'
    >>> kind_of(Interactions.from_dense(np.arange(1.0, 401).reshape(20, 20))).words
    'exact values or noisy ratings'
    """
    if only_likes(data):
        return Kind("likes, only positive pairs", ("ratings",))
    if is_binary(data.ratings):
        return Kind("0/1 data", ("interactions",))
    if data.n_users * data.n_items <= FULL_WIDTH_CELLS and not too_small(data):
        return Kind("exact values or noisy ratings", ("completion", "ratings"))
    return Kind("noisy ratings", ("ratings",))
