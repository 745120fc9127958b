"""Install the package for an interpreter as a user would, and print a table of what works.

    python tests/packaging/check.py --python python3.12 --pins tested
    python tests/packaging/check.py --python python3.11 --pins lowest --steps core,tests
    python tests/packaging/check.py --below environment/bin/python   # has a torch, which is not downloaded again

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

_MODELS = ("air", "model_contract", "posterior_models", "storage/test_model_files")
TESTS = ["tests/graphs", "tests/nn", "tests/training", *[f"tests/models/test_{name}.py" for name in _MODELS]]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]


class Check:
    """The steps, each a row of the table; `below` is the interpreter of packages that may be used."""

    def __init__(self, folder: Path, python: str, pins: str, below: str | None) -> None:
        self.folder, self.python_command, self.pins, self.failed = folder, python, pins, False
        self.sources = copy_sources(folder / "sources")
        self.wheel = build(self.sources, "wheel", folder / "wheel")
        self.core = self._environment("core", below)

    def run(self, steps: set[str], extras: list[str]) -> None:
        """Print the table."""
        _say("| step | found | s |\n|---|---|---|")
        if not self._row("install", self._install):
            return
        if "core" in steps:
            self._row("save, load elsewhere", lambda: round_trip(self.core))
            self._row("air-recsys demo", lambda: demo(self._layer("demo", [*CORE, *EXTRAS["viz"]], "[viz]")))
        if "extras" in steps:
            for extra in extras:
                self._row(f"extra {extra}", partial(self._extra, extra))
        if "tests" in steps:
            self._row("tests of graphs, nn, training, models", self._tests)

    def _row(self, name: str, step: Callable[[], str | None]) -> bool:
        """Run a step and print its row: what it returns, or its error, and the seconds that it took."""
        begin = time.perf_counter()
        try:
            found = step() or "ok"
        except PackagingError as error:
            found, self.failed = "**fails**: " + " / ".join(str(error).splitlines()[-6:]), True
        _say(f"| {name} | {found} | {time.perf_counter() - begin:.0f} |")
        return not found.startswith("**")

    def _environment(self, name: str, below: str | Path | None) -> Environment:
        made = Environment.make(self.python_command, self.folder / name)
        if below is not None:
            made.lay_over(below)
        return made

    def _layer(self, name: str, lines: list[str], extras: str, *more: str) -> Environment:
        """Make an environment over the core's with more packages, as if they were installed alone."""
        made = self._environment(name, self.core.python)
        made.install("--no-deps", "--ignore-installed", self.wheel)  # for its commands: the core has one already
        made.install(*self._pinned(name, lines), f"{self.wheel}{extras}", *more)
        return made

    def _pinned(self, name: str, lines: list[str]) -> list[str | Path]:
        """Options of pip for the versions of some requirements; hosts may want a newer core than the lowest."""
        if self.pins == "newest":
            return []
        if self.pins == "tested":
            return ["-c", ROOT / "constraints.txt"]
        file, found = (
            self.folder / f"{name}.txt",
            [re.match(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", line) for line in lines],
        )
        file.write_text("".join(f"{match[1]}=={match[2]}\n" for match in found if match), encoding="utf-8")
        return ["-c", file]

    def _extra(self, extra: str) -> None:
        kept(self._layer(f"extra-{extra}", EXTRAS[extra], f"[{extra}]"), extra)

    def _install(self) -> str:
        self.core.install(*self._pinned("core", CORE), self.wheel)
        return ", ".join(f"{name} {version}" for name, version in versions(self.core).items())

    def _tests(self) -> str:
        lines = [*CORE, *EXTRAS["viz"], *EXTRAS["data"]]
        made = self._layer("tests", lines, "[viz,data]", "pytest", "hypothesis")
        # Old versions warn of what newer ones do.
        quiet = ["-W", "ignore::DeprecationWarning"] if self.pins == "lowest" else []
        # The tests of a copy that has no package: what they import is what was installed.
        (self.sources / "air_recsys").rename(self.folder / "unused")
        shown = command([made.python, "-P", "-m", "pytest", "-q", *quiet, *TESTS], self.sources)
        return shown.splitlines()[-1]


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Check and return 1 where a step failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--pins", choices=("newest", "tested", "lowest"), default="newest")
    parser.add_argument("--below", help="interpreter of an environment whose packages may be used")
    parser.add_argument("--steps", default="core,extras,tests", help="of core, extras, tests")
    parser.add_argument("--extras", default=",".join(EXTRAS), help="all by default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check = Check(Path(folder), given.python, given.pins, given.below)
        check.run(set(given.steps.split(",")), given.extras.split(","))
    return int(check.failed)


if __name__ == "__main__":
    raise SystemExit(main())
