"""Install the package for an interpreter as a user would, and print a table of what works.

    python tests/packaging/check.py --python python3.12 --pins tested
    python tests/packaging/check.py --python python3.11 --pins lowest --only core tests

Pins: "newest" (what pip finds), "tested" (constraints.txt) or "lowest" (each lower bound of pyproject.toml). Needs pip
and setuptools >= 77 where it runs, and a registry to install from.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from environments import ROOT, Environment, PackagingError, build, command, copy_sources
from promises import demo, kept, round_trip, versions

TESTS = [f"tests/{name}" for name in ("graphs", "nn", "training", "models/storage", "models/test_model_contract.py")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]


class Check:
    """The steps by their names, each in an environment of its own."""

    def __init__(self, folder: Path, python: str, pins: str) -> None:
        self.folder, self.python, self.pins = folder, python, pins
        self.sources = copy_sources(folder / "sources")
        self.wheel = build(self.sources, "wheel", folder / "wheel")
        self.steps: dict[str, Callable[[], str | None]] = {"core": self.core, "demo": self.demo, "tests": self.tests}
        self.steps |= {f"extra {extra}": partial(self.extra, extra) for extra in EXTRAS}

    def core(self) -> str:
        """Save a model and load it elsewhere; return the versions."""
        made = self._installed("core", CORE)
        round_trip(made)
        return ", ".join(f"{name} {version}" for name, version in versions(made).items())

    def demo(self) -> None:
        """Run the first command of the README."""
        demo(self._installed("demo", CORE, "viz"))

    def extra(self, extra: str) -> None:
        """Run what an extra promises, where no other one is; a host may want a newer core than the lowest."""
        kept(self._installed(f"extra-{extra}", [], extra), extra)

    def tests(self) -> str:
        """Run a part of the tests; return their last line."""
        made = self._installed("tests", CORE, "viz", "data")
        made.install("pytest", "hypothesis")
        # Old versions warn of what newer ones do.
        quiet = ["-W", "ignore::DeprecationWarning"] if self.pins == "lowest" else []
        # The tests of a copy that has no package: what they import is what was installed.
        (self.sources / "air_recsys").rename(self.folder / "unused")
        shown = command([made.python, "-P", "-m", "pytest", "-q", *quiet, *TESTS], self.sources)
        return shown.splitlines()[-1]

    def _installed(self, name: str, core: list[str], *extras: str) -> Environment:
        made = Environment.make(self.python, self.folder / name)
        lines = [*core, *(line for extra in extras for line in EXTRAS[extra])]
        made.install(*self._pinned(name, lines), f"{self.wheel}[{','.join(extras)}]" if extras else self.wheel)
        return made

    def _pinned(self, name: str, lines: list[str]) -> list[str | Path]:
        """Options of pip for the versions of some requirements."""
        if self.pins == "newest":
            return []
        if self.pins == "tested":
            return ["-c", ROOT / "constraints.txt"]
        file = self.folder / f"{name}.txt"
        found = [re.match(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", line) for line in lines]
        file.write_text("".join(f"{match[1]}=={match[2]}\n" for match in found if match), encoding="utf-8")
        return ["-c", file]


def main() -> int:
    """Print the table, a row a step: what it returns, or its error, and its seconds; return 1 where one has failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--pins", choices=("newest", "tested", "lowest"), default="newest")
    parser.add_argument("--only", nargs="*", help="names of steps: core, demo, tests, 'extra viz', ...")
    given, failed = parser.parse_args(), False
    print("| step | found | s |\n|---|---|---|", flush=True)  # noqa: T201
    with tempfile.TemporaryDirectory() as folder:
        for name, step in Check(Path(folder), given.python, given.pins).steps.items():
            if given.only and name not in given.only:
                continue
            begin = time.perf_counter()
            try:
                found = step() or "ok"
            except PackagingError as error:
                found, failed = "**fails**: " + " / ".join(str(error).splitlines()[-6:]), True
            print(f"| {name} | {found} | {time.perf_counter() - begin:.0f} |", flush=True)  # noqa: T201
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
