"""`Pickled`: a base class of models whose pickles say which version of the package wrote them."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from air_recsys.exceptions import DataWarning
from air_recsys.storage.estimator import Estimator

_VERSION = "_air_recsys_version"


class Pickled(Estimator):
    """An estimator that warns where a pickle of another version is read, as those of scikit-learn do."""

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, _VERSION: release()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = dict(state)
        if (version := own.pop(_VERSION, "before 0.2")) != (present := release()):
            told = f"a {type(self).__name__} that air_recsys {version} pickled is read by {present}"
            warnings.warn(f"{told}: fit it again, or keep models by save and load", DataWarning, stacklevel=2)
        super().__setstate__(own)


def release() -> str:
    """The version of the package."""
    return sys.modules["air_recsys"].__version__  # which imports this module
