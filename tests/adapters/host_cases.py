"""What tests of several hosts share: errors by their text, and likes of two groups."""

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

N_USERS, N_ITEMS = 90, 40


def fails(error: type[BaseException], message: str) -> Any:
    """`pytest.raises` for a message that holds a text as it stands."""
    return pytest.raises(error, match=re.escape(message))


def planted(seed: int = 0) -> sp.csr_matrix:
    """Two groups of users, each with its own half of the items, values 1..3, and some noise."""
    rng = np.random.default_rng(seed)
    same = np.arange(N_USERS)[:, None] % 2 == np.arange(N_ITEMS) % 2
    liked = rng.random((N_USERS, N_ITEMS)) < np.where(same, 0.4, 0.03)
    return sp.csr_matrix(liked * rng.integers(1, 4, liked.shape), dtype=np.float32)


LIKES = planted()
COLUMNS = LIKES.T.tocsr()
USERS, ITEMS = np.arange(N_USERS), np.arange(N_ITEMS)


def assert_same(first: Any, second: Any) -> None:
    """Two models of implicit have the same factors, to the bit."""
    np.testing.assert_array_equal(first.user_factors, second.user_factors)
    np.testing.assert_array_equal(first.item_factors, second.item_factors)
