"""Where figures come from: versions of what they depend on, the machine, and how much memory was used."""

from __future__ import annotations

import math
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

_PACKAGES = (
    *("air-recsys", "torch", "numpy", "scipy", "scikit-learn", "networkx", "optuna"),
    *("scikit-surprise", "implicit", "cornac", "myfm", "lightfm-next", "faiss-cpu", "ray"),
)


def versions() -> dict[str, str]:
    """Return the installed versions of what figures depend on."""
    installed = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed


def machine() -> dict[str, Any]:
    """Return processor, cores and GPU."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"processor": _processor(), "cores": os.cpu_count(), "threads": torch.get_num_threads(), "gpu": gpu}


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in GiB; NaN where the system does not tell."""
    try:
        import resource
    except ImportError:  # not a POSIX system
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**30 if sys.platform == "darwin" else peak / 2**20


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
