"""What the distributions hold, and what they must."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path


def package_files(sources: Path) -> set[str]:
    """Every file of the package, as a wheel names it."""
    return {path.relative_to(sources).as_posix() for path in (sources / "air_recsys").rglob("*") if path.is_file()}


def wheel_files(wheel: Path) -> dict[str, str]:
    """Return the digests of the files of a wheel by their names."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def metadata(wheel: Path) -> Message:
    """Return the METADATA of a wheel."""
    (name,) = (name for name in wheel_files(wheel) if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(name).decode())


def sdist_files(sdist: Path) -> set[str]:
    """Return the files of an sdist, below its only folder."""
    with tarfile.open(sdist) as archive:
        return {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack an sdist and return its only folder."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (found,) = folder.iterdir()
    return found


def faults(wheel: Path, sources: Path) -> list[str]:
    """Compare a wheel with the package: what is missing, and what is too much beside its metadata."""
    found = {name for name in wheel_files(wheel) if ".dist-info/" not in name}
    missing, extra = sorted(package_files(sources) - found), sorted(found - package_files(sources))
    return [f"missing: {name}" for name in missing] + [f"too much: {name}" for name in extra]
