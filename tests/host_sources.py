"""The published source packages of the hosts: their own test suites are the judges of our adapters."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(sys.prefix) / "host-sources"


def source_of(distribution: str) -> Path:
    """The unpacked source package of an installed distribution, fetched once for each environment.

    With AIR_RECSYS_OFFLINE=1 the tests that need it are skipped; otherwise a failing download is an error.
    """
    name = f"{distribution.replace('-', '_')}-{version(distribution)}"
    unpacked = FOLDER / name
    if not unpacked.is_dir():
        if os.environ.get("AIR_RECSYS_OFFLINE") == "1":
            pytest.skip(f"the source package of {distribution} is not at hand", allow_module_level=True)
        _fetch(distribution, FOLDER)
    return unpacked


def host_module(path: Path, name: str) -> ModuleType:
    """Import a host's test module from its file, under a name of ours."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _fetch(distribution: str, folder: Path) -> None:
    """Unpack the source package beside its place and rename it: several processes may do so at once."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = f"{distribution}=={version(distribution)}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    with tempfile.TemporaryDirectory(dir=folder) as own:
        subprocess.run([*command, "--no-binary", distribution, "-d", own, wanted], check=True, timeout=600)
        (archive,) = Path(own).glob("*.tar.gz")
        with tarfile.open(archive) as content:
            content.extractall(own, filter="data")
        (unpacked,) = (path for path in Path(own).iterdir() if path.is_dir())
        try:
            unpacked.rename(folder / unpacked.name)
        except OSError:
            # Another process was first.
            if not (folder / unpacked.name).is_dir():
                raise
