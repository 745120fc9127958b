"""Fuzz the readers of files with atheris, which keeps the inputs that reach new lines, and print a table.

    python tests/fuzz/coverage_guided.py
    python tests/fuzz/coverage_guided.py --reader "ratings, CSV" --reader Davis --seconds 600

Every reader is fuzzed in a process of its own. The modules of the package that parse are instrumented, and what C
parses is not. An input may end in data or in an error of ours; the status is 1 where one ends otherwise, and its files
are kept. Needs Linux or macOS, and atheris, which is no dependency of the tests:

    pip install --target FOLDER atheris     # and PYTHONPATH=FOLDER, or into the environment without --target
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))  # for the attacks, where this is run as a script
PARSERS = (
    *("storage", "data", "datasets", "images", "evaluation.tuning.storage", "solvers"),
    *("models.storage", "models.base", "models.air", "models.trained", "models.engines", "models.drug_target"),
    *("training", "distributed", "adapters.implicit", "adapters._implicit_files"),
)
"""Modules and packages of air_recsys whose lines guide the choice of inputs."""
BLIND = {
    "image, ": "Pillow parses it in C",
    "ratings, Parquet": "Arrow parses it in C++",
    "table to score, Parquet": "Arrow parses it in C++",
    "study of a search": "SQLite parses it in C, and to open one takes a tenth of a second",
}
"""Beginnings of the readers' names that are fuzzed only where they are asked for: no line of ours would guide."""
_HEADER = "| reader | executions | s | edges at first | edges | unexpected |\n|---|---|---|---|---|---|"


class MissingAtherisError(Exception):
    """Atheris cannot be imported."""


@dataclass(frozen=True)
class Row:
    """What came of one reader; edges are libFuzzer's `cov`, at first those of the seeds."""

    reader: str
    executions: int
    seconds: float
    first_edges: int
    edges: int
    unexpected: int

    def __str__(self) -> str:
        numbers = f"{self.executions:,} | {self.seconds:.0f} | {self.first_edges} | {self.edges} | {self.unexpected}"
        return f"| {self.reader} | {numbers} |"


def reason(name: str) -> str | None:
    """Return why a reader is not fuzzed by default, or None."""
    return next((text for start, text in BLIND.items() if name.startswith(start)), None)


def uninstrumented() -> list[str]:
    """Return the modules of the package that do not parse."""
    files = (path.relative_to(ROOT).with_suffix("") for path in (ROOT / "air_recsys").rglob("*.py"))
    names = [".".join(file.parts).removesuffix(".__init__") for file in files]
    return [name for name in names if not _parses(name)]


def _parses(name: str) -> bool:
    return any(f"{name}.".startswith(f"air_recsys.{parser}.") for parser in PARSERS)


def row_of(name: str, log: str, seconds: float, unexpected: int) -> Row:
    """Read a row from what libFuzzer printed; a process that did not come to its end is unexpected too."""
    lines = re.findall(r"^#(\d+)\s+(\w+)(?:\s+cov: (\d+))?", log, re.MULTILINE)
    first = next((int(edges or 0) for _, event, edges in lines if event == "INITED"), 0)
    done, _, edges = lines[-1] if lines else ("0", "", "0")
    return Row(name, int(done), seconds, first, int(edges or 0), unexpected + (not ended(log)))


def ended(log: str) -> bool:
    """Return whether libFuzzer stopped by itself."""
    return re.search(r"^Done \d+ runs in ", log, re.MULTILINE) is not None


def load_readers() -> tuple[dict[str, Any], Callable[..., None]]:
    """Import the readers, instrumented, and what fuzzes one.

    Raises
    ------
    MissingAtherisError
    """
    if find_spec("atheris") is None:
        raise MissingAtherisError(
            "expected atheris: pip install atheris, or pip install --target FOLDER atheris and PYTHONPATH=FOLDER"
        )
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["air_recsys"], exclude=uninstrumented()):
        for parser in PARSERS:  # some are imported where they are used, which is too late
            import_module(f"air_recsys.{parser}")
        from attacks.readers import all_readers
        from guided import fuzz

        return all_readers(), fuzz


def run(reader: Any, fuzz: Callable[..., None], kept: Path, limits: list[str]) -> Row:
    """Fuzz a reader in a process of its own, which inherits the modules."""
    with tempfile.TemporaryDirectory() as folder:
        room, begin = Path(folder), time.perf_counter()
        process = get_context("fork").Process(target=fuzz, args=(reader, room, kept, limits))
        process.start()
        process.join()
        seconds = time.perf_counter() - begin
        log, count = (room / "log").read_text(encoding="utf-8", errors="replace"), room / "count"
        if not ended(log):
            from attacks.fuzz import keep

            target = keep(room / "files", kept, f"{reader.name}-ended")
            target.with_suffix(".txt").write_text(log, encoding="utf-8")
        return row_of(reader.name, log, seconds, count.stat().st_size if count.exists() else 0)


def total(rows: Iterable[Row]) -> Row:
    """Return the sums."""
    numbers = [(row.executions, row.seconds, row.first_edges, row.edges, row.unexpected) for row in rows]
    executions, seconds, first, edges, unexpected = (sum(column) for column in zip(*numbers, strict=True))
    return Row("all", int(executions), seconds, int(first), int(edges), int(unexpected))


def _say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """Fuzz and return 1 where an input ended unexpectedly, 2 without atheris."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", action="append", help="by its name, may be repeated; all that can be guided")
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument("--seconds", type=int, default=20, help="for each reader")
    limit.add_argument("--runs", type=int, help="inputs of each reader, instead of seconds")
    parser.add_argument("--keep", type=Path, default=Path("guided-unexpected"), help="folder for unexpected inputs")
    given = parser.parse_args(arguments)
    try:
        readers, fuzz = load_readers()
    except MissingAtherisError as error:
        _say(error)
        return 2
    if unknown := [name for name in given.reader or [] if name not in readers]:
        parser.error(f"expected readers of {', '.join(readers)}, found {unknown[0]!r}")
    limits = [f"-max_total_time={given.seconds}" if given.runs is None else f"-runs={given.runs}"]
    rows = _table([readers[name] for name in given.reader or readers], bool(given.reader), fuzz, given.keep, limits)
    if total(rows).unexpected:
        _say(f"unexpected inputs lie in {given.keep.resolve()}")
    return int(total(rows).unexpected > 0)


def _table(readers: list[Any], asked: bool, fuzz: Callable[..., None], kept: Path, limits: list[str]) -> list[Row]:
    """Print a row a reader, and the reasons of those that are left out."""
    rows, left = [], {}
    _say(_HEADER)
    for reader in readers:
        if not asked and (text := reason(reader.name)):
            left[reader.name] = text
            continue
        rows.append(run(reader, fuzz, kept, limits))
        _say(rows[-1])
    _say(total(rows))
    for name, text in left.items():
        _say(f"left out: {name}: {text}")
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
