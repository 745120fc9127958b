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
from collections.abc import Callable
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
BLIND = ("image, ", "ratings, Parquet", "table to score, Parquet", "study of a search")
"""Beginnings of the readers' names that are fuzzed only where they are asked for: C parses them."""


def uninstrumented() -> list[str]:
    """The modules of the package that do not parse."""
    files = (path.relative_to(ROOT).with_suffix("") for path in (ROOT / "air_recsys").rglob("*.py"))
    names = [".".join(file.parts).removesuffix(".__init__") for file in files]
    return [name for name in names if not any(f"{name}.".startswith(f"air_recsys.{each}.") for each in PARSERS)]


def row_of(name: str, log: str, unexpected: int) -> tuple[str, int, int, int]:
    """Reader, executions, edges and unexpected ends, from what libFuzzer printed.

    A process that did not come to its end is unexpected too.
    """
    lines = re.findall(r"^#(\d+)\s+\w+(?:\s+cov: (\d+))?", log, re.MULTILINE)
    done, edges = lines[-1] if lines else ("0", "")
    ended = re.search(r"^Done \d+ runs in ", log, re.MULTILINE) is not None
    return name, int(done), int(edges or 0), unexpected + (not ended)


def load_readers() -> tuple[dict[str, Any], Callable[..., None]]:
    """Import the readers, instrumented, and what fuzzes one."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["air_recsys"], exclude=uninstrumented()):
        for parser in PARSERS:  # some are imported where they are used, which is too late
            import_module(f"air_recsys.{parser}")
        from attacks.readers import all_readers
        from guided import fuzz

        return all_readers(), fuzz


def run(reader: Any, fuzz: Callable[..., None], kept: Path, limit: str) -> tuple[str, int, int, int]:
    """Fuzz a reader in a process of its own, which inherits the modules."""
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        process = get_context("fork").Process(target=fuzz, args=(reader, room, kept, limit))
        process.start()
        process.join()
        log, count = (room / "log").read_text(encoding="utf-8", errors="replace"), room / "count"
        row = row_of(reader.name, log, size := count.stat().st_size if count.exists() else 0)
        if row[-1] > size:
            from attacks.fuzz import keep

            keep(room / "files", kept, f"{reader.name}-ended").with_suffix(".txt").write_text(log, encoding="utf-8")
        return row


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """Fuzz and return 1 where an input ended unexpectedly, 2 without atheris."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", action="append", help="by its name, may be repeated; all that can be guided")
    parser.add_argument("--seconds", type=int, default=20, help="for each reader")
    parser.add_argument("--keep", type=Path, default=Path("guided-unexpected"), help="folder for unexpected inputs")
    given = parser.parse_args(arguments)
    if find_spec("atheris") is None:
        _say("expected atheris: pip install atheris, or pip install --target FOLDER atheris and PYTHONPATH=FOLDER")
        return 2
    readers, fuzz = load_readers()
    chosen = given.reader or [name for name in readers if not name.startswith(BLIND)]
    if unknown := [name for name in chosen if name not in readers]:
        parser.error(f"expected readers of {', '.join(readers)}, found {unknown[0]!r}")
    _say("| reader | executions | edges | unexpected |\n|---|---|---|---|")
    rows = []
    for name in chosen:
        rows.append(run(readers[name], fuzz, given.keep, f"-max_total_time={given.seconds}"))
        _say("| " + " | ".join(map(str, rows[-1])) + " |")
    if unexpected := any(row[-1] for row in rows):
        _say(f"unexpected inputs lie in {given.keep.resolve()}")
    return int(unexpected)


if __name__ == "__main__":
    raise SystemExit(main())
