"""Errors come whole out of other processes."""

import pickle

import pytest

from air_recsys import exceptions
from air_recsys.exceptions import (
    AirRecsysError,
    DataError,
    DivergenceError,
    MissingExtraError,
    UnknownIdError,
)

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


def test_every_error_is_one_of_ours():
    kinds = [kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert all(issubclass(kind, (AirRecsysError, Warning)) for kind in kinds)
