"""Figures with all that is needed to measure them again: as a table for people, and as JSON."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.storage.lazy import torch
from air_recsys.storage.writing import check_folder, replace_file

_PACKAGES = (
    *("air-recsys", "torch", "numpy", "scipy", "scikit-learn", "networkx", "optuna"),
    *("scikit-surprise", "implicit", "cornac", "myfm", "lightfm-next", "faiss-cpu", "ray"),
)


@dataclass
class ResultTable:
    """A table of results and all that is needed to measure it again."""

    title: str
    protocol: str  # how the figures were obtained: data, split, seeds, selection
    rows: list[dict[str, Any]] = field(default_factory=list)  # one result each; floats keep full precision in JSON
    notes: list[str] = field(default_factory=list)  # notes on the figures
    aside: list[str] = field(default_factory=list)  # columns that stand in the rows and in JSON, and not in the text

    def table(self) -> str:
        """The rows as text, with three significant digits and more where they matter."""
        shown = [{name: value for name, value in row.items() if name not in self.aside} for row in self.rows]
        frame = pd.DataFrame(shown)
        for name in frame.columns:
            if frame[name].dtype.kind == "f":
                frame[name] = [format_number(value) for value in frame[name]]
        return frame.to_string(index=False, na_rep="-", justify="right")

    def text(self) -> str:
        """Title, protocol, table and notes for the terminal."""
        head = [self.title, self.protocol, ""] if self.protocol else [self.title, ""]
        return "\n".join([*head, self.table(), *[f"* {note}" for note in self.notes]])

    def to_json(self, path: str | Path, single: ResultTable | None = None) -> None:
        """Write everything, with versions and machine, as one JSON document; `single` adds the single runs."""
        content = self.content() | {"single_runs": [] if single is None else single.rows}
        write_json(path, content | {"versions": versions(), "machine": machine()})

    def content(self) -> dict[str, Any]:
        """Title, protocol, rows and notes, as they stand in JSON."""
        return {"title": self.title, "protocol": self.protocol, "rows": self.rows, "notes": self.notes}


def write_json(path: str | Path, content: Any) -> None:
    """Write figures as JSON, in one step; JSON knows no NaN, null stands for it."""
    target = check_folder(path)
    text = json.dumps(_plain(content), indent=2, allow_nan=False) + "\n"
    if target.exists() and not target.is_file():  # such as /dev/stdout
        try:
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from None
    else:
        replace_file(target, text.encode())


def format_number(value: Any) -> str:
    """A number with four decimals, or three significant digits where it is smaller."""
    if value is None or math.isnan(value):
        return "-"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.4f}" if abs(value) >= 0.005 or value == 0 else f"{value:.3g}"


def mean_of(rows: list[dict[str, Any]], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """The mean of every number over the rows that agree in `keys`, in order of appearance."""
    frame = pd.DataFrame(rows)
    numbers = [
        name for name in frame.columns if name not in keys and name != "seed" and frame[name].dtype.kind in "if"
    ]
    means = frame.groupby(list(keys), sort=False, dropna=False, as_index=False)[numbers].mean()
    return [{str(name): value for name, value in row.items()} for row in pd.DataFrame(means).to_dict("records")]


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_plain(value) for value in content]
    value = content.item() if isinstance(content, np.generic) else content
    return None if isinstance(value, float) and not math.isfinite(value) else value


def versions() -> dict[str, str]:
    """The installed versions of what figures depend on."""
    installed = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed


def machine() -> dict[str, Any]:
    """Processor, cores and GPU."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"processor": _processor(), "cores": os.cpu_count(), "threads": torch.get_num_threads(), "gpu": gpu}


def peak_memory() -> float:
    """The largest resident memory of this process so far, in GiB; NaN where the system does not tell."""
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
