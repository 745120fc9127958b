"""Which device a name stands for, on a machine with GPUs or without."""

import logging
import re

import pytest
import torch
from model_cases import dense

from air_recsys import AIR
from air_recsys.exceptions import DeviceError, ParameterError
from air_recsys.nn import devices
from air_recsys.nn.devices import resolve_device


@pytest.fixture
def n_gpus(monkeypatch):
    """Set how many CUDA devices there seem to be; what was said is forgotten."""

    def pretend(count):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    devices._say_once.cache_clear()
    yield pretend
    devices._say_once.cache_clear()


def test_auto_is_the_cpu_where_there_is_no_gpu_and_says_so_once(n_gpus, caplog):
    n_gpus(0)
    with caplog.at_level(logging.INFO, logger="air_recsys"):
        for _ in range(3):
            assert AIR.for_completion(n_epochs=2, device="auto").fit(dense()).device_ == "cpu"
    assert [record.getMessage() for record in caplog.records] == ["no CUDA device found, training on the CPU"]
    assert caplog.records[0].name == "air_recsys"


def test_auto_is_the_gpu_where_there_is_one(n_gpus, caplog):
    n_gpus(1)
    assert resolve_device("auto") == torch.device("cuda")
    assert caplog.records == []


def test_the_cpu_by_name_says_nothing(n_gpus, caplog):
    n_gpus(0)
    assert resolve_device("cpu") == torch.device("cpu")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("count", "device"), [(0, "cuda"), (0, "cuda:0"), (1, "cuda:1"), (2, "cuda:2"), (2, "cuda:17")]
)
def test_a_gpu_that_is_not_there(n_gpus, count, device):
    n_gpus(count)
    message = f"device='{device}' was asked for, found {count} CUDA device(s); use device='cpu' or 'auto'"
    with pytest.raises(DeviceError, match=f"^{re.escape(message)}"):
        AIR.for_completion(n_epochs=2, device=device).fit(dense())


@pytest.mark.parametrize(("count", "device"), [(1, "cuda"), (1, "cuda:0"), (3, "cuda:2")])
def test_a_gpu_that_is_there(n_gpus, count, device):
    n_gpus(count)
    assert resolve_device(device) == torch.device(device)


@pytest.mark.parametrize(
    "device", ["gpu", "", "cuda:", "cuda:-1", "cuda:a", "mps", "meta", "cpu:1", "CPU", None, 0, torch.device("cpu")]
)
def test_names_that_mean_nothing_here(n_gpus, device):
    n_gpus(2)
    message = f"device must be 'auto', 'cpu', 'cuda' or 'cuda:N', found {device!r}"
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}$"):
        AIR.for_completion(n_epochs=2, device=device).fit(dense())
