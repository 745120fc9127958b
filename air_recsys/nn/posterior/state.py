"""The values that sweeps change, as plain values for checkpoints; torch's generators among them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from air_recsys.storage.lazy import Tensor, torch


class Stateful:
    """An object that sweeps change in the attributes of its ``_STATE``: numbers, tensors, lists and tuples of them."""

    _STATE: ClassVar[tuple[str, ...]]

    def state(self) -> dict[str, Any]:
        """The values that sweeps change."""
        return values_of(self, self._STATE)

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned, or raise `ValueError` for other values, as from a file."""
        set_values(self, state, self._STATE)


def values_of(owner: object, names: Iterable[str]) -> dict[str, Any]:
    """The attributes `names` of an object: numbers, tensors, lists and tuples of them."""
    values = {name: getattr(owner, name) for name in names}
    return {name: list(value) if isinstance(value, list) else value for name, value in values.items()}


def set_values(owner: object, state: dict[str, Any], names: Iterable[str], device: torch.device | None = None) -> None:
    """Set attributes to what `values_of` returned, or raise `ValueError` for a tensor of another shape or type.

    Tensors in a list that is empty now come to `device`, others to that of the tensors that they replace.
    """
    for name in names:
        setattr(owner, name, _like(state[name], getattr(owner, name), device))


def leaves(value: Any) -> Iterator[Tensor]:
    """The tensors in nested dictionaries, lists and tuples, in their order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)


def with_leaves(value: Any, tensors: Iterator[Tensor]) -> Any:
    """The same nested values with other tensors."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, dict):
        return {name: with_leaves(each, tensors) for name, each in value.items()}
    if isinstance(value, list | tuple):
        entries = [with_leaves(each, tensors) for each in value]
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    return value


def _like(value: Any, present: Any, device: torch.device | None) -> Any:
    if isinstance(present, torch.Tensor):
        if not isinstance(value, torch.Tensor) or (value.shape, value.dtype) != (present.shape, present.dtype):
            raise ValueError(f"expected a tensor of shape {tuple(present.shape)} and {present.dtype}")
        return value.to(present.device)
    if isinstance(present, tuple | list) and present:
        entries = [_like(*pair, device) for pair in zip(value, present, strict=True)]
        return type(present)(*entries) if hasattr(present, "_fields") else type(present)(entries)
    if isinstance(present, list):
        return _placed(value, device)
    if isinstance(value, torch.Tensor) or isinstance(present, int | float) != isinstance(value, int | float):
        raise ValueError(f"expected a {type(present).__name__}, found {type(value).__name__}")
    return value


def _placed(value: Any, device: torch.device | None) -> Any:
    if isinstance(value, list | tuple):
        return [_placed(entry, device) for entry in value]
    return value.to(device) if isinstance(value, torch.Tensor) else value


def gamma(shape: Tensor, generator: torch.Generator) -> Tensor:
    """Draw from gamma distributions of rate 1, on the device of both.

    Examples
    --------
    >>> draws = gamma(torch.full((10_000,), 5.0, dtype=torch.float64), torch.Generator().manual_seed(0))
    >>> 4.9 < draws.mean() < 5.1, 4.7 < draws.var() < 5.3
    (tensor(True), tensor(True))
    """
    return torch._standard_gamma(shape, generator=generator)  # pyright: ignore[reportPrivateImportUsage]


def position(generator: torch.Generator) -> dict[str, Any]:
    """The position of a generator, and the kind of its device."""
    return {"device": generator.device.type, "state": generator.get_state()}


def load_position(generator: torch.Generator, kept: dict[str, Any]) -> None:
    """Go to what `position` returned; on another kind of device to a place that follows from it.

    The generators of a CPU and of a GPU have states of different forms, so an exact continuation is possible on one
    kind alone. A seed from the digest of the other's state gives the same course every time.
    """
    device, state = kept["device"], kept["state"]
    if not isinstance(state, torch.Tensor) or state.dtype != torch.uint8:
        raise ValueError("expected the state of a generator as bytes")
    if device == generator.device.type:
        generator.set_state(state.cpu())
    else:
        digest = hashlib.sha256(f"{device}".encode() + state.cpu().numpy().tobytes()).digest()
        generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
