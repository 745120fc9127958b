"""The command line run inside the process, and a folder with good and bad files."""

import contextlib
import io
import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from sealing import parts_of, tensor_bytes

from air_recsys import AIR, BiasModel
from air_recsys.cli import main

SHORT = ["--device", "cpu", "--set", "n_sweeps=20", "--set", "n_factors=2", "--set", "graph_neighbors=2"]
"""Options of a training that takes no time."""


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


def cli(*arguments: object) -> Ended:
    """Run the command line with these arguments; it must end by SystemExit."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    code: Any = ended.value.code
    return Ended(code, out.getvalue(), err.getvalue())


def shell(line: str) -> Ended:
    """Run a line such as ``air-recsys train FILE``."""
    program, *arguments = shlex.split(line)
    assert program == "air-recsys"
    return cli(*arguments)


def answers(line: str) -> list[list[str]]:
    """Return the words of each line that a command prints, which must end well and say nothing else."""
    ended = shell(line)
    assert (ended.status, ended.err) == (0, "")
    return [words.split() for words in ended.out.splitlines()]


def assert_refused(ended: Ended, *said: str) -> None:
    """Check that a command ended with one line of an error that says all of that."""
    assert ended.status > 0
    assert "Traceback" not in ended.out
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1, ended.err
    for words in said:
        assert words in ended.err


def refuses(line: str, *said: str) -> None:
    """Check that a line is refused as `assert_refused` says."""
    assert_refused(shell(line), *said)


def read_json(path: Path) -> Any:
    """Read a file that must be JSON to the letter, so without NaN."""

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def ratings(ids: str) -> pd.DataFrame:
    """Half of the ratings of 8 users on 6 items; ids are integers or text."""
    rng = np.random.default_rng(0)
    chosen = rng.random((8, 6)) < 0.6
    chosen[0], chosen[:, 0], chosen[0, 5] = True, True, False
    users, items = np.nonzero(chosen)
    frame = pd.DataFrame({"user": 10 + users, "item": items, "rating": rng.integers(1, 6, users.size).astype(float)})
    if ids == "text":
        frame["user"], frame["item"] = [f"u{user}" for user in frame["user"]], [f"i{item}" for item in frame["item"]]
    return frame


def fill(root: Path) -> Path:
    """Tables and models, good and bad."""
    for ids in ("integer", "text"):
        frame = ratings(ids)
        frame.to_csv(root / f"{ids}.csv", index=False)
        model = AIR.for_ratings(n_sweeps=20, n_factors=2, graph_neighbors=2, random_state=0, device="cpu")
        model.fit(frame).save(root / f"{ids}.air")
    BiasModel().fit(ratings("text")).save(root / "bias.air")
    (root / "empty.csv").write_bytes(b"")
    (root / "broken.csv").write_text("user,item,rating\na,x,1\nb,x,2,3,4\n", encoding="utf-8")
    (root / "words.csv").write_text("user,item,rating\na,x,1\nb,x,many\n", encoding="utf-8")
    (root / "strange.csv").write_text("id,title\nx,y\n", encoding="utf-8")
    (root / "binary.csv").write_bytes(np.random.default_rng(0).bytes(500))
    (root / "truncated.air").write_bytes((root / "text.air").read_bytes()[:-100])
    metadata, arrays = parts_of(root / "text.air")
    (root / "newer.air").write_bytes(tensor_bytes(arrays, metadata | {"format_version": "99"}))
    save_file({"weight": np.zeros(3)}, root / "foreign.air")
    return root
