"""The memory that live tensors take."""

from __future__ import annotations

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Peak(TorchDispatchMode):
    """The largest number of bytes that live tensors hold at once."""

    def __init__(self):
        super().__init__()
        self.live, self.now, self.peak = {}, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else [result]:
            if isinstance(value, torch.Tensor) and value.layout == torch.strided:
                self._note(value.untyped_storage())
        return result

    def _note(self, storage):
        key = storage._cdata
        if key in self.live:
            return
        self.live[key] = storage.nbytes()
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._forget, key)

    def _forget(self, key):
        self.now -= self.live.pop(key)
