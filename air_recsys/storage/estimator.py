"""`Estimator`: the grammar of scikit-learn, which is loaded where it is used, as that takes half a second."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, Self

_OF_SKLEARN = (
    "__sklearn_",
    "_repr_",
    "_get_",
    "get_metadata_",
    "_doc_link_",
    "_html_repr",
    "_build_request",
    "_check_",
)


class Estimator:
    """Parameters by name, those of nested estimators too, and what scikit-learn asks estimators beside."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return [*_defaults(cls)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, with `deep` also those of nested estimators, under names such as ``solver__depth``."""
        found: dict[str, Any] = {}
        for name in self._get_param_names():
            found[name] = value = getattr(self, name)
            if deep and isinstance(value, Estimator):
                found |= {f"{name}__{own}": each for own, each in value.get_params().items()}
        return found

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters, those of nested estimators under names such as ``solver__depth``."""
        from sklearn.base import BaseEstimator

        return BaseEstimator.set_params(self, **parameters)  # type: ignore[arg-type]  # asks for get_params alone

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(_defaults(type(self))[name])
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getstate__(self) -> Any:
        return vars(self).copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_OF_SKLEARN) and (found := _of_sklearn(name)) is not None:
            return found.__get__(self, type(self)) if hasattr(found, "__get__") else found
        return object.__getattribute__(self, name)


def _of_sklearn(name: str) -> Any:
    from sklearn.base import BaseEstimator

    return inspect.getattr_static(BaseEstimator, name, None)


@cache
def _defaults(kind: type) -> dict[str, Any]:
    """The parameters of a class in alphabetical order, and their defaults."""
    made = inspect.signature(kind).parameters.values()
    return {each.name: each.default for each in sorted(made, key=lambda each: each.name)}
