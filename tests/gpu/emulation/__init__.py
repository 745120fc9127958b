"""CUDA devices that are made of CPU memory: they find mistakes of a device where there is no GPU.

A tensor on "cuda:N" wraps a CPU tensor and says that it is on a CUDA device, so the code takes its branches for a GPU.
Every operator is checked by CUDA's rules before it runs on the CPU with real numbers:

* operands on two devices, `numpy()` of a tensor on the device, a generator of another device are the errors of torch;
* waits of the host for the device (`item`, `bool`, `nonzero`, `cpu()`, copies of pageable memory) are counted by line;
* a stream that uses what another one has written, without having waited for it, is a `RaceError`;
* `torch.cuda.graph` records operators and runs none of them; `replay` runs them in the memory that they had then;
* the bytes of living tensors are counted, and more than the device has is `OutOfMemoryError`;
* operators whose sums have no fixed order on a GPU are listed: a seed does not fix what they return.

Times, missing kernels, other roundings, the caching allocator and NCCL are not emulated.

`plugin` emulates two devices for a whole run of pytest; `tests/gpu/test_emulated.py` starts such a run.
"""

from emulation.machine import CaptureError, RaceError, is_on, watched
from emulation.switch import emulated

__all__ = ["CaptureError", "RaceError", "emulated", "is_on", "watched"]
