"""An operator with its arguments, and what its schema says of it."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch

from emulation.tensors import DeviceTensor, mapped, tensors_in, unwrapped

_CPU = torch.device("cpu")


class Facts(NamedTuple):
    """What an operator does with any arguments."""

    name: str  # as in `rules`
    is_pointwise: bool


@cache
def facts_of(func: Any) -> Facts:
    """Return what the schema of an operator says."""
    return Facts(func._schema.name.split("::")[1], torch.Tag.pointwise in func.tags)


class Call:
    """An operator with its arguments.

    Attributes
    ----------
    name : str
        As in `rules`.
    tensors, own : list of Tensor
        All operands, and those on a device.
    """

    def __init__(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        self.func, self.args, self.kwargs, self.facts = func, args, kwargs, facts_of(func)
        self.name, self.tensors = self.facts.name, tensors_in([*args, *kwargs.values()])
        self.own = [one for one in self.tensors if isinstance(one, DeviceTensor)]

    def inner(self) -> Call:
        """Return the call that runs on the CPU."""
        kwargs = mapped(self.kwargs, unwrapped)
        kwargs |= {name: value for name, value in (("device", _CPU), ("pin_memory", False)) if kwargs.get(name)}
        return Call(self.func, mapped(self.args, unwrapped), kwargs)
