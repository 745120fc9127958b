"""`python -m benchmarks dti`: what it refuses before any work."""

from __future__ import annotations

import pytest

from air_recsys.exceptions import DataError, ParameterError
from benchmarks.commands.accuracy import _dti_parameters, dti


def test_parameters_are_read_as_values_or_words() -> None:
    assert _dti_parameters(["n_rounds=1", "similarity_weight=auto", "noise=0.5"]) == {
        "n_rounds": 1,
        "similarity_weight": "auto",
        "noise": 0.5,
    }


@pytest.mark.parametrize("text", ["n_rounds", "rounds=1"])
def test_other_parameters_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="expects"):
        _dti_parameters([text])


def test_hidden_drugs_need_similarities() -> None:
    with pytest.raises(DataError, match="--similarities"):
        dti(settings=["cvs2"])
