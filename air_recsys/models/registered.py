"""Models of other packages: the classes that installed distributions register as entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from air_recsys.exceptions import ParameterError

GROUP = "air_recsys.models"
Base = TypeVar("Base")


def registered_names() -> list[str]:
    """The names of all registered classes."""
    return sorted(entry_points(group=GROUP).names)


def classes_of(base: type[Base]) -> dict[str, type[Base]]:
    """A class and its subclasses by name, as far as they are imported; of two with one name that of this library."""
    return {kind.__name__: kind for kind in sorted([base, *_subclasses(base)], key=_is_ours)}


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("air_recsys.")


def _subclasses(base: type[Base]) -> list[type[Base]]:
    return [kind for child in base.__subclasses__() for kind in (child, *_subclasses(child))]


def registered(name: str, base: type[Base]) -> type[Base]:
    """The class that an installed distribution registers by its name; its module is imported now.

    Raises
    ------
    ParameterError
        If none or several distributions register the name, if the class cannot be imported, or if it is no subclass of
        `base` of that name.
    """
    ours = classes_of(base).get(name)
    if ours is not None and _is_ours(ours):
        check_unregistered(name)
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        names = ", ".join(registered_names()) or "none"
        raise ParameterError(
            f"no installed package registers the entry point {name!r} of the group {GROUP!r}; registered: {names}"
        )
    told, expected = " and ".join(map(_told, found)), f"expected one subclass of {base.__name__} of this name"
    if len(found) > 1:
        raise ParameterError(f"{told}: {expected}")
    try:
        kind = found[0].load()
    except Exception as error:
        raise ParameterError(f"{told}, which cannot be imported: {type(error).__name__}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, base)) or kind.__name__ != name:
        raise ParameterError(f"{told}: {expected}, found {getattr(kind, '__name__', repr(kind))}")
    return kind


def check_unregistered(name: str) -> None:
    """Raise `ParameterError` where a distribution registers a name that this library has."""
    for entry in entry_points(group=GROUP, name=name):
        raise ParameterError(f"{_told(entry)}: expected another name, as air_recsys has a model of this one")


def made(name: str, base: type[Base], offered: Mapping[str, Any], **given: Any) -> Base:
    """A model of a registered class with the given parameters, and with those offered that it has."""
    kind: Any = registered(name, base)
    return kind(**{key: value for key, value in offered.items() if key in kind._get_param_names()} | given)


def _told(entry: EntryPoint) -> str:
    package = "a package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
    return f"{package} registers the model {entry.name!r} as {entry.value}"
