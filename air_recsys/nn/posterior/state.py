"""The values that sweeps change, as plain values for checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor


class Stateful:
    """An object that sweeps change in the attributes of its ``_STATE``: numbers, tensors, lists and tuples of them."""

    _STATE: ClassVar[tuple[str, ...]]

    def state(self) -> dict[str, Any]:
        """Return what sweeps change."""
        return values_of(self, self._STATE)

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned, or raise `ValueError` for other values, as from a file."""
        set_values(self, state, self._STATE)


def values_of(owner: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the attributes `names` of an object: numbers, tensors, lists and tuples of them."""
    values = {name: getattr(owner, name) for name in names}
    return {name: list(value) if isinstance(value, list) else value for name, value in values.items()}


def set_values(owner: object, state: dict[str, Any], names: Iterable[str], device: torch.device | None = None) -> None:
    """Set attributes to what `values_of` returned, or raise `ValueError` for a tensor of another shape or type.

    Tensors in a list that is empty now come to `device`, others to that of the tensors that they replace.
    """
    for name in names:
        setattr(owner, name, _like(state[name], getattr(owner, name), device))


def _like(value: Any, present: Any, device: torch.device | None) -> Any:
    if isinstance(present, Tensor):
        if not isinstance(value, Tensor) or (value.shape, value.dtype) != (present.shape, present.dtype):
            raise ValueError(f"expected a tensor of shape {tuple(present.shape)} and {present.dtype}")
        return value.to(present.device)
    if isinstance(present, tuple | list) and present:
        entries = [_like(*pair, device) for pair in zip(value, present, strict=True)]
        return type(present)(*entries) if hasattr(present, "_fields") else type(present)(entries)
    if isinstance(present, list):
        return _placed(value, device)
    if isinstance(value, Tensor) or isinstance(present, int | float) != isinstance(value, int | float):
        raise ValueError(f"expected a {type(present).__name__}, found {type(value).__name__}")
    return value


def _placed(value: Any, device: torch.device | None) -> Any:
    if isinstance(value, list | tuple):
        return [_placed(entry, device) for entry in value]
    return value.to(device) if isinstance(value, Tensor) else value
