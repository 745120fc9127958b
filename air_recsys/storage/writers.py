"""The functions of upper layers that methods of lower ones hand over to, found by name when they are called."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

WRITERS = {
    "html": "air_recsys.report:write_explorer",
    "surprise": "air_recsys.adapters.surprise:to_trainset",
}
"""Functions as "module:name": of `SimilarityGraph.to_html` and of `Interactions.to_surprise`."""


def writer(name: str) -> Callable[..., Any]:
    """The function of a name, whose module is imported now.

    Examples
    --------
    >>> writer("html").__name__
    'write_explorer'
    """
    module, _, function = WRITERS[name].partition(":")
    return getattr(import_module(module), function)
