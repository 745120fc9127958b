"""The demo's job on generated data, shortened."""

import pytest

from air_recsys.datasets import SynNetflix, make_syn_netflix
from air_recsys.report import demo


@pytest.fixture
def short(monkeypatch):
    """The right calls on a fifteenth of the data and with fewer epochs."""

    def small(**options) -> SynNetflix:
        return make_syn_netflix(40, 50, 4, 4, **options)

    monkeypatch.setattr(demo, "DMF_SETTINGS", demo.DMF_SETTINGS | {"n_epochs": 100})
    monkeypatch.setattr(demo, "make_syn_netflix", small)


@pytest.mark.usefixtures("short")
def test_demo_completes_and_finds_groups():
    result = demo.run_demo(seed=1, missing=0.5, device="cpu", verbose=False)
    errors = {row["model"]: row["nmae"] for row in result.comparison.rows}
    assert list(errors) == ["AIR", "DMF", "BiasModel", "Mean"]
    assert errors["AIR"] < errors["BiasModel"] < 1
    groups = {row["graph"]: row for row in result.groups.rows}
    assert list(groups) == ["users", "items"]
    assert groups["users"]["true groups"] == 4
    assert min(row["NMI"] for row in groups.values()) > 0.9
    assert "50% of the ratings hidden, seed 1" in result.comparison.protocol
    assert result.model.interactions_.density == pytest.approx(0.5, abs=0.05)
