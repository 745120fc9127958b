"""Torch, loaded when it is first used: what answers from a fitted model works where it is not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, ForwardRef, ParamSpec, TypeVar

from air_recsys.exceptions import MissingTorchError

Given = ParamSpec("Given")
Result = TypeVar("Result")
WHEN_LOADED: list[Callable[[], None]] = []  # called once torch is there


def is_installed() -> bool:
    """Whether torch is there."""
    try:
        return is_loaded() or find_spec("torch") is not None
    except ModuleNotFoundError:
        return False


def is_loaded() -> bool:
    """Whether somebody has used torch in this process."""
    return "torch" in sys.modules


class _Lazy(ModuleType):
    """A module of torch by its name; its attributes are those of the true one."""

    def __getattr__(self, name: str) -> Any:
        was_loaded = is_loaded()
        try:
            module = import_module(self.__name__)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingTorchError from None
        if not was_loaded:
            for call in WHEN_LOADED:
                call()
        return getattr(module, name)


if TYPE_CHECKING:
    import torch
    import torch.distributed as dist
    from torch import Tensor
    from torch.nn import functional
else:
    torch, functional, dist = map(_Lazy, ("torch", "torch.nn.functional", "torch.distributed"))
    Tensor = ForwardRef("torch.Tensor")  # for annotations


def without_gradients(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Run a function under `torch.no_grad`, as that does itself as a decorator."""

    @wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with torch.no_grad():
            return function(*args, **kwargs)

    return call
