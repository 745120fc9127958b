"""Checks of public parameters; each message says what was expected and what was found."""

from __future__ import annotations

import importlib
import math
import numbers
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from air_recsys.exceptions import MissingExtraError, ParameterError

_SHOWN_BITS = 512  # Python turns no integer of more than 4,300 digits into text
RandomState = int | np.random.RandomState | np.random.Generator | None


def check_integer(name: str, value: Any, *, minimum: int = 0, maximum: int | None = None) -> int:
    """Return `value` as an int, or raise `ParameterError` unless it is an integer of minimum..maximum.

    Examples
    --------
    >>> check_integer("n_factors", 20, minimum=1)
    20
    """
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

    Parameters
    ----------
    name : str
        The parameter's name, for the message.
    value : object
    minimum, maximum : float
        The interval; `minimum` itself is excluded where `strict`.
    strict : bool
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
    """Return `value` as a path, or raise `ParameterError` unless it is one or a string.

    Examples
    --------
    >>> check_path("path", None)
    Traceback (most recent call last):
    air_recsys.exceptions.ParameterError: path must be a string or a Path, found None
    """
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise ParameterError(f"{name} must be a string or a Path, found {value!r}")
    return Path(value)


def check_choice(name: str, value: Any, choices: Collection[Any]) -> Any:
    """Return `value`, or raise `ParameterError` unless it is one of `choices`."""
    if value not in choices:
        expected = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(f"{name} must be one of {expected}, found {value!r}")
    return value


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return the Generator of a seed, a RandomState, a Generator or None; global state stays untouched.

    Examples
    --------
    >>> int(as_generator(0).integers(100)) == int(as_generator(0).integers(100))
    True
    """
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
