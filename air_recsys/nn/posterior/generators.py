"""Generators of torch: draws from a gamma distribution, and where one stands, for a checkpoint."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor


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
    """Return where a generator stands, and the kind of device that it is of."""
    return {"device": generator.device.type, "state": generator.get_state()}


def load_position(generator: torch.Generator, kept: dict[str, Any]) -> None:
    """Go to what `position` returned; on another kind of device to a place that follows from it.

    The generators of a CPU and of a GPU have states of different forms, so an exact continuation is possible on one
    kind alone. A seed from the digest of the other's state gives the same course every time.

    Examples
    --------
    >>> first, second = torch.Generator().manual_seed(0), torch.Generator()
    >>> load_position(second, position(first))
    >>> bool(torch.equal(torch.rand(3, generator=first), torch.rand(3, generator=second)))
    True
    """
    device, state = kept["device"], kept["state"]
    if not isinstance(state, Tensor) or state.dtype != torch.uint8:
        raise ValueError("expected the state of a generator as bytes")
    if device == generator.device.type:
        generator.set_state(state.cpu())
    else:
        digest = hashlib.sha256(f"{device}".encode() + state.cpu().numpy().tobytes()).digest()
        generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
