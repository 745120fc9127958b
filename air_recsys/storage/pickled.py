"""`Pickled`: a base class of models whose pickles say which version of the package wrote them."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import BaseEstimator

from air_recsys import __version__
from air_recsys.exceptions import DataWarning

_VERSION = "_air_recsys_version"


class Pickled(BaseEstimator):
    """An estimator that warns where a pickle of another version is read, as those of scikit-learn do."""

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, _VERSION: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = dict(state)
        if (version := own.pop(_VERSION, "before 0.2")) != __version__:
            told = f"a {type(self).__name__} that air_recsys {version} pickled is read by {__version__}"
            warnings.warn(f"{told}: fit it again, or keep models by save and load", DataWarning, stacklevel=2)
        super().__setstate__(own)
