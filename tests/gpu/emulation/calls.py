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
    written: tuple[tuple[int, str], ...]  # places and names of the arguments that it writes to


@cache
def facts_of(func: Any) -> Facts:
    """Return what the schema of an operator says."""
    arguments = enumerate(func._schema.arguments)
    written = [(place, it.name) for place, it in arguments if it.alias_info is not None and it.alias_info.is_write]
    return Facts(func._schema.name.split("::")[1], torch.Tag.pointwise in func.tags, tuple(written))


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

    def frozen(self) -> Call:
        """Return the call with copies of the operands on the host, which a graph reads once."""

        def copied(value: Any) -> Any:
            on_host = isinstance(value, torch.Tensor) and not isinstance(value, DeviceTensor)
            return value.clone() if on_host else value

        return Call(self.func, mapped(self.args, copied), mapped(self.kwargs, copied))

    def written(self) -> list[torch.Tensor]:
        """Return the operands that the operator writes to."""
        values = [
            self.args[place] if place < len(self.args) else self.kwargs.get(name) for place, name in self.facts.written
        ]
        return tensors_in(values)
