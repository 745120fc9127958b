"""Cornac's own models, for comparisons with ours."""

from __future__ import annotations

from typing import Any

from air_recsys.exceptions import ParameterError
from air_recsys.interactions import Interactions
from air_recsys.validation import needs_extra

with needs_extra("cornac"):
    from cornac import models
    from cornac.data import Dataset


def to_dataset(interactions: Interactions) -> Dataset:
    """Return a Cornac dataset with the same raw ids."""
    users, items = interactions.user_ids[interactions.user_index], interactions.item_ids[interactions.item_index]
    return Dataset.from_uir(list(zip(users.tolist(), items.tolist(), interactions.ratings.tolist(), strict=True)))


def cornac_model(algorithm: str, **parameters: Any) -> Any:
    """Return a model of `cornac.models` by its name, for instance "MF"."""
    model = getattr(models, algorithm, None)
    if not isinstance(model, type):
        raise ParameterError(f"algorithm must be a class of cornac.models, found {algorithm!r}")
    return model(**parameters)
