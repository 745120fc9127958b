"""Commands whose outputs are other files of theirs, or have no place: whether any file is lost."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from air_recsys.datasets import make_planted_ratings
from air_recsys.evaluation.results.apart import thread_variables
from air_recsys.images import save_image
from air_recsys.models import AIR
from air_recsys.storage.validation import import_extra
from attacks.processes import program

Run = Callable[[Path, list[str]], tuple[int, str]]
"""Runs a command line in a folder, and returns its status and its standard error."""
_FAST = ["--device", "cpu", "--set", "n_sweeps=2", "--set", "n_factors=2"]
# Names of files of `_files`; "link" is a symbolic link to ratings.csv, "hard" a hard link to model.air.
CASES: dict[str, list[list[str]]] = {
    "train": [
        ["train", "ratings.csv", *_FAST, "--model", "ratings.csv"],
        ["train", "ratings.csv", *_FAST, "--model", "./ratings.csv"],
        ["train", "ratings.csv", *_FAST, "--model", "link"],
        ["train", "link", *_FAST, "--model", "ratings.csv"],
        ["train", "ratings.csv", *_FAST, "--model", "new.air", "--json", "ratings.csv"],
        ["train", "ratings.csv", *_FAST, "--model", "model.air", "--json", "hard"],
        ["train", "ratings.csv", *_FAST, "--model", "new.air", "--json", "new.air"],
        ["train", "ratings.csv", *_FAST, "--model", "new.air", "--checkpoint", "new.air"],
        ["train", "ratings.csv", *_FAST, "--model", "new.air", "--checkpoint", "ratings.csv"],
        ["train", "ratings.csv", *_FAST, "--model", "new.air", "--checkpoint", "titles.csv"],
    ],
    "recommend": [
        ["recommend", "model.air", "--user", "1", "--json", "model.air"],
        ["recommend", "model.air", "--user", "1", "--json", "hard"],
        ["recommend", "model.air", "--ratings", "ratings.csv", "--json", "link"],
    ],
    "similar, explain": [
        ["similar", "model.air", "--user", "1", "--json", "model.air"],
        ["explain", "model.air", "--user", "1", "--item", "1", "--json", "model.air"],
        ["explain", "model.air", "--user", "1", "--item", "1", "--titles", "titles.csv", "--json", "titles.csv"],
    ],
    "graph": [
        ["graph", "model.air", "--graphml", "model.air"],
        ["graph", "model.air", "--html", "model.air"],
        ["graph", "model.air", "--html", "new", "--graphml", "new"],
        ["graph", "model.air", "--html", "titles.csv", "--titles", "titles.csv"],
        ["graph", "model.air", "--json", "model.air"],
    ],
    "report": [
        ["report", "model.air", "--out", "model.air"],
        ["report", "model.air", "--test", "ratings.csv", "--out", "ratings.csv"],
        ["report", "model.air", "--titles", "titles.csv", "--out", "titles.csv"],
        ["report", "model.air", "--out", "new.html", "--json", "new.html"],
    ],
    "evaluate, tune": [
        ["evaluate", "ratings.csv", "--json", "ratings.csv"],
        ["tune", "ratings.csv", "--save", "ratings.csv"],
        ["tune", "ratings.csv", "--study", "new", "--save", "new"],
        ["tune", "ratings.csv", "--study", "new", "--json", "new"],
        ["tune", "ratings.csv", "--study", "ratings.csv"],
    ],
    "inpaint": [
        ["inpaint", "image.png", "--missing", "0.5", "--out", "image.png"],
        ["inpaint", "image.png", "--mask", "image.png", "--out", "new.png", "--json", "image.png"],
    ],
    "no place": [
        ["train", "ratings.csv", *_FAST, "--model", "folder"],
        ["train", "ratings.csv", *_FAST, "--model", "none/new.air"],
        ["train", "ratings.csv", *_FAST, "--model", "ratings.csv/new.air"],
        ["train", "ratings.csv", *_FAST, "--model", "n" * 300],
        ["train", "ratings.csv", *_FAST, "--model", "new.air", "--checkpoint", "n" * 300],
        ["recommend", "model.air", "--user", "1", "--json", "n" * 300],
        ["recommend", "model.air", "--user", "1", "--json", "/dev/full"],
        ["report", "model.air", "--out", "n" * 300],
    ],
}


def refused_commands() -> tuple[list[dict[str, Any]], list[str]]:
    """Run every command of `CASES`, each among the same files, and compare the files before and after.

    A row a group of commands: runs, refused (status 1, one line of an error, all files as before) and wrong (anything
    else); and what was wrong.
    """
    rows, notes = [], []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_files(place)
        for name, commands in CASES.items():
            faults = [(command, fault) for command in commands if (fault := fault_of(place, command))]
            counts = {"runs": len(commands), "refused": len(commands) - len(faults), "wrong": len(faults)}
            rows.append({"commands": name} | counts)
            notes += [f"air-recsys {' '.join(command)}: {fault}" for command, fault in faults]
    return rows, notes


def write_files(place: Path) -> None:
    """Write the files that the commands name, a symbolic link and a hard link among them."""
    import_extra("PIL", "images")
    data = make_planted_ratings(60, 40, 600, random_state=0).interactions
    frame = data.to_frame()[["user", "item", "rating"]]
    frame.to_csv(place / "ratings.csv", index=False)
    (place / "titles.csv").write_text("id,title\n1,one\n2,two\n")
    AIR.for_ratings(n_sweeps=2, n_factors=2, random_state=0, device="cpu").fit(data).save(place / "model.air")
    save_image(place / "image.png", np.linspace(0, 1, 64).reshape(8, 8))
    (place / "link").symlink_to(place / "ratings.csv")
    os.link(place / "model.air", place / "hard")
    (place / "folder").mkdir()


def run_command(place: Path, command: list[str]) -> tuple[int, str]:
    """Run a command line in a process of its own, in a folder; return its status and its standard error."""
    with thread_variables(1):
        done = subprocess.run(program(command), cwd=place, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def fault_of(place: Path, command: list[str], run: Run = run_command) -> str | None:
    """Run a command in the folder; return what is wrong with its end, None where it is refused as it has to be."""
    before = _digests(place)
    status, errors = run(place, command)
    errors = "".join(line for line in errors.splitlines(keepends=True) if re.match("error: |Traceback", line))
    after = _digests(place)
    if after != before:
        changed = sorted(name for name in before | after if before.get(name) != after.get(name))
        return f"changed {', '.join(changed)}"
    if status != 1 or not errors.startswith("error: ") or errors.count("\n") != 1:
        return f"status {status}, {errors[-200:]!r}"
    return None


def _digests(place: Path) -> dict[str, str]:
    files = [path for path in place.rglob("*") if path.is_file()]
    return {str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
