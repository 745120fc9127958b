"""Settings under which NumPy, OpenBLAS, MKL and PyTorch compute as on older processors, and with one or two threads.

As a program it prints those of a kind, for `env`: ``python tests/processors.py old 2``.
"""

from __future__ import annotations

import platform
import sys

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

KINDS = ("old", "haswell")


def settings(kind: str, threads: int) -> dict[str, str]:
    """Return environment variables; those of processors only where this one is a newer one of the same family."""
    chosen = {"OMP_NUM_THREADS": str(threads), "AIR_RECSYS_TEST_THREADS": str(threads)}
    chosen["OMP_WAIT_POLICY"] = "passive"  # threads that wait leave the processor to others
    if platform.machine() not in ("x86_64", "AMD64"):
        return chosen
    extras = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    if kind == "haswell" and __cpu_features__.get("AVX2", False):
        known = {"AVX", "F16C", "FMA3", "AVX2", "X86_V3"}
        coretype, torch_kind, mkl = "Haswell", "avx2", "AVX2"
    else:
        known = {"X86_V2", "POPCNT", "SSE", "SSE2", "SSE3", "SSSE3", "SSE41", "SSE42"}
        coretype, torch_kind, mkl = "Nehalem", "default", "SSE4_2"
    chosen |= {"OPENBLAS_CORETYPE": coretype, "ATEN_CPU_CAPABILITY": torch_kind, "MKL_ENABLE_INSTRUCTIONS": mkl}
    disabled = [name for name in extras if name not in known]
    return chosen | ({"NPY_DISABLE_CPU_FEATURES": ",".join(disabled)} if disabled else {})


if __name__ == "__main__":
    pairs = (f"{name}={value}" for name, value in settings(sys.argv[1], int(sys.argv[2])).items())
    sys.stdout.write(" ".join(pairs) + "\n")
