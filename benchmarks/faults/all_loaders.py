"""The loaders of all formats."""

from __future__ import annotations

from benchmarks.faults.loaders import Loader


def all_loaders() -> dict[str, Loader]:
    """Return the loaders by name, those of all extras among them.

    Raises
    ------
    MissingExtraError
        Where an extra of the readers is not installed.
    """
    from benchmarks.faults import model_loaders, other_loaders, table_loaders

    loaders = (*model_loaders.loaders(), *table_loaders.loaders(), *other_loaders.loaders())
    return {loader.name: loader for loader in loaders}
