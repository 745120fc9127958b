"""`load`: any model file, whatever its class."""

from __future__ import annotations

import os

from air_recsys.models.base import Recommender
from air_recsys.models.drug_target.model import DrugTargetAIR
from air_recsys.models.storage.files import Contents, read_contents


def load(path: str | os.PathLike[str], *, mapped: bool = False) -> Recommender | DrugTargetAIR:
    """Read a model of any class that its `save` wrote; no code in the file is run.

    Parameters
    ----------
    path : path
    mapped : bool
        Map the large arrays from the file, see `Recommender.load`.

    Raises
    ------
    ModelFileError
        As `Recommender.load`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import air_recsys
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = air_recsys.BiasModel().fit([[5.0, 3.0]]).save(pathlib.Path(folder) / "model.air")
    ...     type(air_recsys.load(path)).__name__
    'BiasModel'
    """

    def restore(contents: Contents) -> Recommender | DrugTargetAIR:
        of_pairs = contents.model == DrugTargetAIR.__name__
        return (DrugTargetAIR if of_pairs else Recommender).from_contents(contents)

    return read_contents(path, restore, mapped=mapped)
