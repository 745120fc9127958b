"""CUDA devices that are made of CPU memory: they find mistakes of a device where there is no GPU.

A tensor on "cuda:N" wraps a CPU tensor and says that it is on a CUDA device, so the code takes its branches for a GPU.
Every operator is checked by CUDA's rules before it runs on the CPU with real numbers:

* operands on two devices, `numpy()` of a tensor on the device, a generator of another device are the errors of torch;
* waits of the host for the device (`item`, `bool`, `nonzero`, `cpu()`, copies of pageable memory) are counted by line;
* operators that give a device work are counted by line: each launches one kernel or a few;
* the bytes of living tensors are counted, and more than the device has is `OutOfMemoryError`;
* CUDA graphs are recorded and replayed in the same memory; a wait of the host within a capture is an error (`graphs`).

Times, missing kernels, other roundings, sums without a fixed order, streams, the caching allocator and NCCL are not
emulated: the tests of this folder have them on a real device.

`plugin` emulates two devices for a whole run of pytest; `tests/gpu/test_emulated.py` starts such a run.
"""

from emulation.machine import is_on, launched, watched

__all__ = ["is_on", "launched", "watched"]
