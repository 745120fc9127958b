"""Ids as people give them on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from air_recsys.exceptions import DataError

if TYPE_CHECKING:
    import numpy as np


def as_ids(texts: list[str], known: np.ndarray) -> list:
    """Turn ids from the command line into the model's kind: integers where all its ids are."""
    if known.dtype == object:
        return texts
    try:
        return [int(text) for text in texts]
    except ValueError:
        raise DataError(f"this model's ids are integers, found {', '.join(map(repr, texts))}") from None
