"""What sweeps change, as plain values: for checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


def values_of(owner: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the attributes `names` of an object: numbers, tensors, lists and tuples of them."""
    found = {name: getattr(owner, name) for name in names}
    return {name: list(value) if isinstance(value, list) else value for name, value in found.items()}


def set_values(owner: object, state: dict[str, Any], names: Iterable[str], device: torch.device) -> None:
    """Set attributes to what `values_of` returned, perhaps read from a file since.

    Raises
    ------
    ValueError
        Where a tensor has another shape or type than the one it replaces, or stands where none belongs.
    """
    for name in names:
        setattr(owner, name, _like(state[name], getattr(owner, name), device))


def _like(found: Any, present: Any, device: torch.device) -> Any:
    if isinstance(present, Tensor):
        if not isinstance(found, Tensor) or (found.shape, found.dtype) != (present.shape, present.dtype):
            raise ValueError(f"expected a tensor of shape {tuple(present.shape)} and {present.dtype}")
        return found.to(present.device)
    if isinstance(present, tuple | list) and present:
        entries = [_like(*pair, device) for pair in zip(found, present, strict=True)]
        return type(present)(*entries) if hasattr(present, "_fields") else type(present)(entries)
    if isinstance(present, list):
        return _placed(found, device)
    if isinstance(found, Tensor) or isinstance(present, int | float) != isinstance(found, int | float):
        raise ValueError(f"expected a {type(present).__name__}, found {type(found).__name__}")
    return found


def _placed(value: Any, device: torch.device) -> Any:
    if isinstance(value, list | tuple):
        return [_placed(entry, device) for entry in value]
    return value.to(device) if isinstance(value, Tensor) else value
