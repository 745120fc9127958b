"""What requests change of a model: in memory, and by a journal beside its file in all processes and for good."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from air_recsys.data.ids import encode_ids
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataFileError
from air_recsys.models import Recommender
from air_recsys.models.state import lock_of
from air_recsys.storage.journal import Journal, journal_beside
from air_recsys.storage.tensor_files import digest_of, header_of


def journal_of(model: Path, copied: Path | None = None) -> Journal:
    """The journal beside a model file, of which one may read a copy."""
    return Journal(journal_beside(model), digest_of(header_of(copied or model)))


def catch_up(model: Recommender, journal: Journal) -> None:
    """Let a model take in the changes of a journal that it lacks."""
    if journal.is_behind:
        with lock_of(model), journal.held():
            _read(model, journal)


def make(model: Recommender, journal: Journal | None, change: Mapping[str, Any]) -> None:
    """Change a model and write that into its journal; or raise an error, with neither done.

    A change is {"learn": columns} or {"forget": parameters of the method}, as JSON holds them.
    """
    with lock_of(model), nullcontext() if journal is None else journal.held():
        if journal is not None:
            _read(model, journal)
        changed = copy.copy(model)
        _take_in(changed, change)
        if journal is not None:
            journal.append(change)
        model.take_state(changed._fitted())


def _read(model: Recommender, journal: Journal) -> None:
    for change in journal.read():
        try:
            _take_in(model, change)
        except (LookupError, TypeError, ValueError) as error:  # as of a release that took what this one refuses
            found = f"a change that {type(model).__name__} cannot take in ({type(error).__name__}: {error})"
            raise DataFileError(f"{journal.path} has {found}: use the release that wrote it") from None


def _take_in(model: Any, change: Mapping[str, Any]) -> None:
    if "forget" in change:
        model.forget(**change["forget"])
    else:
        model.partial_fit(learned(change["learn"]))


def learned(given: Mapping[str, Any]) -> Interactions:
    """Return the ratings or likes of a change."""
    (users, user_ids), (items, item_ids) = (encode_ids(given[side], side) for side in ("user", "item"))
    ratings = given.get("rating", np.ones(users.size))
    more: dict[str, Any] = {"timestamps": given.get("timestamp"), "weights": given.get("weight")}
    if "kind" not in given:
        return Interactions(users, items, ratings, user_ids, item_ids, **more, allow_negative=True)
    events = Interactions(users, items, ratings, user_ids, item_ids, **more, duplicates=None)
    return events.divided(np.array(given["kind"], dtype=object), given["target"], "sum")
