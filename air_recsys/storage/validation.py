"""Checks of public parameters; each message says what was expected and what was found."""

from __future__ import annotations

import importlib
import math
import numbers
import os
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import field, fields
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from air_recsys.exceptions import MissingExtraError, ParameterError, ParameterWarning, quoted

_SHOWN_BITS = 512  # Python turns no integer of more than 4,300 digits into text
RandomState = int | np.random.RandomState | np.random.Generator | None


def check_integer(name: str, value: Any, *, minimum: int = 0, maximum: int | None = None) -> int:
    """Return `value` as an int, or raise `ParameterError` unless it is an integer of minimum..maximum."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise ParameterError(f"{name} must be an integer >= {minimum}, found {value!r}")
    number = int(value)
    if maximum is not None and number > maximum:
        found = str(number) if number.bit_length() < _SHOWN_BITS else f"one of {number.bit_length()} bits"
        raise ParameterError(f"{name} must be an integer >= {minimum} and <= {maximum}, found {found}")
    return number


def check_real(
    name: str, value: Any, *, minimum: float = 0.0, maximum: float = math.inf, strict: bool = False
) -> float:
    """Return `value` as a float, or raise `ParameterError` unless it is finite and in the interval.

    `minimum` itself is excluded where `strict`.
    """
    try:
        number = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    except OverflowError:  # an integer
        number = math.inf
    too_low = number <= minimum if strict else number < minimum
    if not math.isfinite(number) or too_low or number > maximum:
        bound = f"{'>' if strict else '>='} {minimum:g}" + ("" if math.isinf(maximum) else f" and <= {maximum:g}")
        raise ParameterError(f"{name} must be a number {bound}, found {value!r}")
    return number


def check_path(name: str, value: Any) -> Path:
    """Return `value` as a path, or raise `ParameterError` unless it is one or a string."""
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise ParameterError(f"{name} must be a string or a Path, found {value!r}")
    return Path(value)


def check_choice(name: str, value: Any, choices: Collection[Any]) -> Any:
    """Return `value`, or raise `ParameterError` unless it is one of `choices`."""
    try:
        known = bool(value in choices)
    except (TypeError, ValueError):  # an array is equal to nothing as a whole
        known = False
    if not known:
        expected = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(f"{name} must be one of {expected}, found {quoted(value)}")
    return value


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return the Generator of a seed, a RandomState, a Generator or None; global state stays untouched."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1))
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_integer("random_state", random_state))


def import_extra(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or raise `MissingExtraError` naming the extra that brings it."""
    with needs_extra(extra):
        return importlib.import_module(module)


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Raise `MissingExtraError` where an import in the block lacks an optional dependency.

    Other errors of an import pass. For modules that cannot exist without the dependency, such as a subclass of its
    classes:

    >>> with needs_extra("viz"):
    ...     import matplotlib.figure
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError((error.name or extra).partition(".")[0], extra) from error


_CHECK = "check"
LARGEST = 2**31 - 1
"""The largest count or size that a parameter takes: what an index of 32 bits holds."""


def integer(default: Any, *, minimum: int = 0, maximum: int = LARGEST, besides: tuple[Any, ...] = ()) -> Any:
    """Declare an integer of minimum..maximum, or one of the values `besides`."""
    return _parameter(default, partial(check_integer, minimum=minimum, maximum=maximum), besides)


def real(
    default: Any,
    *,
    minimum: float = 0.0,
    maximum: float = math.inf,
    strict: bool = False,
    besides: tuple[Any, ...] = (),
) -> Any:
    """Declare a number of an interval (`storage.validation.check_real`), or one of the values `besides`."""
    return _parameter(default, partial(check_real, minimum=minimum, maximum=maximum, strict=strict), besides)


def choice(default: Any, choices: Collection[Any]) -> Any:
    """Declare one of `choices`."""
    return _parameter(default, partial(check_choice, choices=choices))


def flag(default: bool) -> Any:
    """Declare True or False."""
    return choice(default, (True, False))


def check_parameters(owner: Any) -> None:
    """Raise `ParameterError` for the first field of a dataclass whose value is out of its range."""
    for each in fields(owner):
        if _CHECK in each.metadata:
            each.metadata[_CHECK](each.name, getattr(owner, each.name))


def warn_of_unread(name: str, value: Any, needed: str) -> None:
    """Warn of a parameter that nothing reads beside the others."""
    warnings.warn(f"{name}={value!r} has no effect: it needs {needed}", ParameterWarning, stacklevel=2)


def _parameter(default: Any, check: Callable[[str, Any], Any], besides: tuple[Any, ...] = ()) -> Any:
    return field(default=default, metadata={_CHECK: partial(_check, check, besides)})


def _check(check: Callable[[str, Any], Any], besides: tuple[Any, ...], name: str, value: Any) -> None:
    if any(value is each or (isinstance(value, str) and value == each) for each in besides):
        return
    try:
        check(name, value)
    except ParameterError as error:
        others = "".join(f"{each!r}, " for each in besides).removesuffix(", ")
        expected = f"{name} must be {others} or " if besides else f"{name} must be "
        raise ParameterError(str(error).replace(f"{name} must be ", expected, 1)) from None
