"""A folder with good and bad files, and the command line run inside the process."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import Cli, Ended, ratings
from safetensors import safe_open
from safetensors.numpy import save_file

from air_recsys import AIR, BiasModel
from air_recsys.cli import main


@pytest.fixture
def cli(capsys) -> Cli:
    """Run the command line with these arguments; it must end by SystemExit."""

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        code: Any = ended.value.code
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Tables and models, good and bad."""
    root = tmp_path_factory.mktemp("cli")
    for ids in ("integer", "text"):
        frame = ratings(ids)
        frame.to_csv(root / f"{ids}.csv", index=False)
        model = AIR.for_ratings(n_epochs=20, n_factors=2, graph_neighbors=2, random_state=0, device="cpu")
        model.fit(frame).save(root / f"{ids}.air")
    BiasModel().fit(ratings("text")).save(root / "bias.air")
    (root / "empty.csv").write_bytes(b"")
    (root / "broken.csv").write_text("user,item,rating\na,x,1\nb,x,2,3,4\n", encoding="utf-8")
    (root / "words.csv").write_text("user,item,rating\na,x,1\nb,x,many\n", encoding="utf-8")
    (root / "binary.csv").write_bytes(np.random.default_rng(0).bytes(500))
    (root / "truncated.air").write_bytes((root / "text.air").read_bytes()[:-100])
    with safe_open(root / "text.air", framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a dict
        save_file(arrays, root / "newer.air", file.metadata() | {"format_version": "99"})
    save_file({"weight": np.zeros(3)}, root / "foreign.air")
    return root
