"""The distributions, built from a copy of the sources, what they hold, and environments that hold nothing else."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SOURCES = ("air_recsys", "docs", "examples", "tests")
_PACKAGES = "import sys; print(*[path for path in sys.path if path.endswith('-packages')], sep='\\n')"


class PackagingError(Exception):
    """A step that failed, with the last lines that its program printed."""


def copy_sources(folder: Path) -> Path:
    """Copy what a release is made from, so that no earlier build and no cache comes along."""
    folder.mkdir(parents=True)
    leave = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist")
    for name in _SOURCES:
        shutil.copytree(ROOT / name, folder / name, ignore=leave)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    return folder


def build(source: Path, kind: str, out: Path) -> Path:
    """Build a "wheel" or an "sdist" by the hooks that every frontend calls, with this environment's setuptools."""
    out.mkdir(parents=True, exist_ok=True)
    code = f"from setuptools import build_meta; build_meta.build_{kind}({str(out)!r})"
    command([sys.executable, "-c", code], folder=source)
    (built,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def command(arguments: list[str | Path], folder: Path | None = None) -> str:
    """Run a program and return what it printed; raise `PackagingError` where it failed."""
    done = subprocess.run(list(map(str, arguments)), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PackagingError((done.stdout + done.stderr)[-2000:].strip())
    return done.stdout


def package_files(sources: Path) -> set[str]:
    """Every file of the package, as a wheel names it."""
    return {path.relative_to(sources).as_posix() for path in (sources / "air_recsys").rglob("*") if path.is_file()}


def wheel_files(wheel: Path) -> dict[str, str]:
    """Return the digests of the files of a wheel by their names."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def faults(wheel: Path, sources: Path) -> list[str]:
    """Compare a wheel with the package: what is missing, and what is too much beside its metadata."""
    found = {name for name in wheel_files(wheel) if ".dist-info/" not in name}
    missing, extra = sorted(package_files(sources) - found), sorted(found - package_files(sources))
    return [f"missing: {name}" for name in missing] + [f"too much: {name}" for name in extra]


@dataclass(frozen=True)
class Environment:
    """A virtual environment in a folder."""

    folder: Path

    @classmethod
    def make(cls, python: str | Path, folder: Path) -> Environment:
        """Make an empty one for an interpreter."""
        command([python, "-m", "venv", "--without-pip", folder])
        return cls(folder)

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """The folder of installed packages."""
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def lay_over(self, python: str | Path) -> None:
        """Let packages of another environment be found, too, after those of this one."""
        found = command([python, "-c", _PACKAGES])
        (self.packages / "below.pth").write_text(found, encoding="utf-8")

    def install(self, *requirements: str | Path) -> None:
        """Install by pip, which brings only what is not there or below."""
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet", "--no-warn-script-location"]
        command([*pip, *requirements])

    def run(self, code: str, *arguments: str) -> str:
        """Run Python code, in this environment's folder, and return what it printed."""
        return command([self.python, "-I", "-c", code, *arguments], self.folder)
