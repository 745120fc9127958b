"""Where figures come from: versions of what they depend on, and the machine."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

_PACKAGES = (
    *("air-recsys", "torch", "numpy", "scipy", "scikit-learn", "networkx", "optuna"),
    *("scikit-surprise", "implicit", "cornac", "myfm", "faiss-cpu", "ray"),
)


def versions() -> dict[str, str]:
    """Return the installed versions of what figures depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Return processor, cores and GPU."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"processor": _processor(), "cores": os.cpu_count(), "threads": torch.get_num_threads(), "gpu": gpu}


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
