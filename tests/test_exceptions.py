"""Errors come whole out of other processes; those of a missing package name its extra, and leave nothing behind."""

from __future__ import annotations

import importlib
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from air_recsys import AIR, BiasModel, Interactions, SimilarityGraph, exceptions
from air_recsys.datasets import load_syn_netflix, read_ratings
from air_recsys.evaluation.tuning import tune
from air_recsys.exceptions import AirRecsysError, DataError, DivergenceError, MissingExtraError, UnknownIdError
from air_recsys.images import load_image
from air_recsys.metrics import psnr, ssim
from air_recsys.models.tracking import MLflowCallback, TensorBoardCallback
from air_recsys.report.plots import plot_adjacency

ERRORS = [
    DataError("expected 3, found 4"),
    DivergenceError(50, 40, "the objective is inf"),
    MissingExtraError("matplotlib", "viz"),
    UnknownIdError("user", ["ann", 3]),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_a_pickle(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_every_error_is_one_of_ours_and_bad_data_a_value_error():
    kinds = [kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert all(issubclass(kind, (AirRecsysError, Warning)) for kind in kinds)
    assert issubclass(DataError, ValueError)


DATA = Interactions.from_dense(1 + np.arange(12.0).reshape(4, 3) % 5)
GRAPH = SimilarityGraph(np.ones((3, 3)), "abc")
IMAGE = np.ones((20, 20))
ANEW = ("air_recsys.adapters.", "air_recsys.distributed.scoring", "air_recsys.distributed.workers")  # imported again


def adapter(name: str) -> Callable[[Path], Any]:
    return lambda _: importlib.import_module(f"air_recsys.adapters.{name}")


CASES: list[tuple[str, str, Callable[[Path], Any]]] = [
    ("surprise", "surprise", adapter("surprise")),
    ("surprise", "surprise", lambda _: DATA.to_surprise()),
    ("cornac", "cornac", adapter("cornac")),
    ("implicit", "implicit", adapter("implicit")),
    ("lightfm", "lightfm", lambda _: importlib.import_module("air_recsys.adapters.lightfm_peer").LightFMLists("warp")),
    ("ray", "distributed", lambda _: importlib.import_module("air_recsys.distributed.scoring")),
    ("optuna", "tune", lambda _: tune(DATA, n_trials=1, device="cpu")),
    ("tensorboard", "track", lambda folder: TensorBoardCallback(folder / "run")),
    ("mlflow", "track", lambda _: MLflowCallback(AIR())),
    ("faiss", "ann", lambda _: BiasModel().fit(DATA).to_faiss()),
    ("matplotlib", "viz", lambda _: plot_adjacency(GRAPH)),
    ("networkx", "viz", lambda _: SimilarityGraph(np.ones((3, 3)), "abc").to_networkx()),
    ("pyarrow", "data", lambda folder: GRAPH.to_parquet(folder / "graph")),
    ("torch_geometric", "graphs", lambda _: GRAPH.to_pyg()),
    ("pygsp", "graphs", lambda _: GRAPH.to_pygsp()),
    ("pyarrow", "data", lambda folder: read_ratings(folder / "file.parquet")),
    ("h5py", "data", lambda folder: load_syn_netflix(folder / "file.mat")),
    ("PIL", "images", lambda folder: load_image(folder / "file.png")),
    ("skimage", "images", lambda _: psnr(IMAGE, IMAGE)),
    ("skimage", "images", lambda _: ssim(IMAGE, IMAGE)),
]


@pytest.mark.parametrize(("host", "extra", "use"), CASES)
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, extra: str, use: Callable[[Path], Any]
):
    for name in ("file.parquet", "file.mat", "file.png"):
        (tmp_path / name).write_bytes(b"PAR1" if name == "file.parquet" else b"")
    for name in list(sys.modules):
        if name.partition(".")[0] == host:
            monkeypatch.setitem(sys.modules, name, None)
        elif name.startswith(ANEW):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, host, None)
    message = f"this needs {host}, which is not installed: pip install 'air-recsys[{extra}]'"
    with pytest.raises(MissingExtraError, match=re.escape(message)):
        use(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"file.parquet", "file.mat", "file.png"}
