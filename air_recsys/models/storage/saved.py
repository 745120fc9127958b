"""`SavedModel`: a fitted model as one file, and back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from air_recsys.models.fitted import FittedModel
from air_recsys.models.learned import Ending
from air_recsys.models.solvers import plain
from air_recsys.models.state import FittedState
from air_recsys.models.storage.contents import (
    snapshots_from_contents,
    snapshots_to_contents,
    state_from_contents,
    state_to_contents,
)
from air_recsys.models.storage.files import (
    Contents,
    check_attributes,
    check_state,
    class_of,
    read_contents,
    saving,
    write_contents,
)

_OF_TRAINING = ("n_iter", "stopped_by", "device")  # what a file holds of the ending


class SavedModel(FittedModel):
    """A model that `save` writes and `load` reads."""

    def saved_parameters(self) -> dict[str, Any]:
        """The parameters as JSON can hold them."""
        saved: dict[str, Any] = self.get_params(deep=False)
        state = saved.get("random_state")
        if state is not None and not isinstance(state, (int, np.integer)):
            saved["random_state"] = None  # a generator's position is not part of a model
        return {name: plain(value) for name, value in saved.items()}

    @classmethod
    def from_saved(cls, parameters: dict[str, Any]) -> Self:
        """An unfitted model with the parameters of a file."""
        return cls(**parameters)

    def restored(self, state: FittedState, arrays: Mapping[str, np.ndarray]) -> FittedState:
        """The state of a file, completed by what only this class knows of it."""
        return state

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to one file (safetensors with JSON metadata), replacing an older one at once.

        If the save is interrupted, or if `load` would refuse the file, the old file stays unchanged. The ids of a side
        must be all integers or all strings. The new file has the permissions of the old one; a symbolic link stays a
        link.

        Raises
        ------
        DataError
            For ids of other kinds.
        ParameterError
            For a model of new rows, from `fold_in`.
        ModelFileError
            If the file cannot be written, or could not be loaded; the message says what was expected and found.
        """
        state = self._fitted()
        state.check_whole()
        with saving(path):
            check_state(state)
        attributes, arrays = state_to_contents(state)
        ending = {name: getattr(state.ending, name) for name in _OF_TRAINING}
        attributes["ending"] = {f"{name}_": value for name, value in ending.items() if value is not None}
        if state.ending.snapshots:
            with saving(path):
                attributes["snapshots"], kept = snapshots_to_contents(state.ending.snapshots, state.data)
            arrays |= kept

        def check(contents: Contents) -> None:
            check_attributes(contents.attributes)
            self._unfitted(contents).restored(state, contents.arrays)

        return write_contents(path, type(self).__name__, self.saved_parameters(), attributes, arrays, check)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mapped: bool = False) -> Self:
        """Read a model that `save` wrote; no code in the file is run.

        Parameters
        ----------
        path : path
        mapped : bool
            Map the large arrays from the file instead of copying them; processes on one machine then share them. The
            file must not be shortened or overwritten while the model is in use; `save` is safe, as it replaces the
            file.

        Raises
        ------
        ModelFileError
            If the file is truncated, damaged, not a model, of another model class or of another format version, or if
            it has values that no model has, such as parameters out of range.
        """
        return read_contents(path, cls.from_contents, mapped=mapped)

    @classmethod
    def _unfitted(cls, contents: Contents) -> Self:
        """The model of a file without what it has learned, its parameters checked."""
        model = class_of(cls, contents).from_saved(contents.parameters)
        model.check_parameters()
        return model

    @classmethod
    def from_contents(cls, contents: Contents) -> Self:
        """The model that the content of a file describes."""
        model = cls._unfitted(contents)
        state = state_from_contents(contents)
        written = contents.attributes["ending"]
        snapshots = snapshots_from_contents(contents.attributes.get("snapshots", []), contents.arrays, state.data)
        parts = {name: written[f"{name}_"] for name in _OF_TRAINING if f"{name}_" in written}
        ending = Ending(**parts, snapshots=snapshots)
        return model.take_state(model.restored(replace(state, ending=ending), contents.arrays))
