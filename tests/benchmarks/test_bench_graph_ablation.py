"""The ablation of graphs: what each variant really changes, and the report on small data."""

import numpy as np
import pytest
import torch

from air_recsys.exceptions import ParameterError
from air_recsys.models import AIR
from air_recsys.nn import build
from air_recsys.nn.adaptive_laplacian import SparseLaplacian
from benchmarks import graph_ablation
from benchmarks.graph_ablation import SETS, VARIANTS, Data, bench_graph_ablation, measure

NAMES = {variant.name: variant for variant in VARIANTS}
F64, CPU = torch.float64, torch.device("cpu")


def blocks():
    return np.kron([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], np.ones((23, 22)))


@pytest.fixture
def small(monkeypatch):
    """One small set in place of all others; the settings that models were asked to have are kept."""
    asked = []
    complete = graph_ablation._completion(blocks(), 0.2, 0.2)

    def watched(model: AIR, seed: int):
        asked.append((model, build.SparseLaplacian))
        return complete(model, seed)

    settings = {"n_epochs": 3, "device": "cpu"}
    monkeypatch.setattr(graph_ablation, "SETS", {"small": lambda root: Data("interactions", settings, watched)})
    return asked


def test_every_variant_gives_a_row_with_its_errors(small, tmp_path):
    means, single = bench_graph_ablation(tmp_path, seeds=1)
    assert [row["graph"] for row in means.rows] == list(NAMES)
    assert {"nmae", "average_precision", "least_nmae", "at_epoch", "seconds"} <= set(means.rows[0])
    assert all(row["least_nmae"] <= row["nmae"] + 1e-6 for row in means.rows)
    assert [row["seed"] for row in single.rows] == [0] * len(VARIANTS)
    for (model, laplacian), variant in zip(small, VARIANTS, strict=True):
        assert laplacian is variant.laplacian
        for name, value in variant.changes.items():
            parameters = model.get_params(deep=False) | model.solver.get_params()
            assert parameters[name] == value


def test_seeds_and_epochs_are_passed_on_and_the_engine_is_left_as_it_was(small, tmp_path):
    means, single = bench_graph_ablation(tmp_path, ["small"], ["dense", "sparse, k = 5"], seeds=2, n_epochs=2)
    assert [row["seed"] for row in single.rows] == [0, 1, 0, 1]
    assert [row["graph"] for row in means.rows] == ["dense", "sparse, k = 5"]
    assert {model.solver.n_epochs for model, _ in small} == {2}
    assert build.SparseLaplacian is SparseLaplacian


@pytest.mark.parametrize("unknown", [{"sets": ["nothing"]}, {"variants": ["nothing"]}, {"seeds": 0}])
def test_what_is_unknown_is_told_before_any_work(unknown, tmp_path):
    with pytest.raises(ParameterError):
        bench_graph_ablation(tmp_path, **unknown)


@pytest.mark.parametrize(
    ("name", "entry"),
    [("sparse, entry at 0", lambda largest: 0.0), ("sparse, entry at max + 1", lambda largest: largest + 1)],
)
@pytest.mark.parametrize("n_parts", [1, 3])
def test_new_edges_enter_where_the_variant_says(name, entry, n_parts):
    generator = torch.Generator().manual_seed(0)
    graph = NAMES[name].laplacian(9, 3, generator=generator, dtype=F64, device=CPU, n_parts=n_parts)
    graph.logits.normal_(generator=generator)
    old, logits = graph.neighbors.tolist(), graph.logits.clone()
    points = torch.randn(9, 2, dtype=F64, generator=generator)
    graph.refresh(points, points)
    for row, (before, after) in enumerate(zip(old, graph.neighbors.tolist(), strict=True)):
        kept = dict(zip(before, logits[row].tolist(), strict=True))
        expected = [kept.get(other, entry(float(logits[row].max()))) for other in after]
        assert graph.logits[row].tolist() == pytest.approx(expected)
    assert any(set(before) != set(after) for before, after in zip(old, graph.neighbors.tolist(), strict=True))


@pytest.mark.data
@pytest.mark.parametrize("name", SETS)
def test_every_set_loads_and_runs(name, data_root):
    data, quick = SETS[name](data_root), {"n_epochs": 2, "device": "cpu"}
    for variant in (NAMES["dense"], NAMES["sparse, k = 10, graph_rate = 0.3"]):
        result = measure(data, variant, 0, quick)
        assert result["rmse" if name == "movielens-100k" else "nmae"] > 0
