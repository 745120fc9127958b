"""The state of Adam, read from a file."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


def moments_of(moments: Mapping[str, Tensor], tensor: Tensor) -> dict[str, Tensor]:
    """Return Adam's state of a tensor, on its device.

    Raises
    ------
    ValueError
        If a moment does not fit the tensor.

    Examples
    --------
    >>> import torch
    >>> state = {"step": torch.tensor(3.0), "exp_avg": torch.zeros(2), "exp_avg_sq": torch.ones(2)}
    >>> moments_of(state, torch.zeros(3))
    Traceback (most recent call last):
    ValueError: expected moments of a tensor of shape (3,) and torch.float32
    """
    step, *running = (moments[name] for name in ("step", "exp_avg", "exp_avg_sq"))
    if step.shape != () or any((mean.shape, mean.dtype) != (tensor.shape, tensor.dtype) for mean in running):
        raise ValueError(f"expected moments of a tensor of shape {tuple(tensor.shape)} and {tensor.dtype}")
    return {name: moment.to(tensor.device) for name, moment in moments.items()}
