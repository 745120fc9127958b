"""Parameters as fields of a dataclass, each declared beside its range and checked before any work.

A field is made by `integer`, `real`, `choice` or `flag`; `check_parameters` then checks every field of an object:

>>> from dataclasses import dataclass
>>> @dataclass
... class Model:
...     depth: int = integer(3, minimum=2)
...     schedule: str = choice("constant", ("constant", "cosine"))
>>> check_parameters(Model(depth=1))
Traceback (most recent call last):
air_recsys.exceptions.ParameterError: depth must be an integer >= 2, found 1
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection
from dataclasses import field, fields
from functools import partial
from typing import Any

from air_recsys.exceptions import ParameterError, ParameterWarning
from air_recsys.storage.validation import check_choice, check_integer, check_real

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
