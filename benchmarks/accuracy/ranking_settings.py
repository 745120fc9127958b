"""The settings that peers are searched over, those that are fixed, and those of papers for the very splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.accuracy.ranking_search import Grid


def _als(
    factors: Sequence[int], regularization: Sequence[float], alpha: Sequence[float], iterations: int = 15
) -> Grid:
    return {"regularization": regularization, "alpha": alpha, "factors": factors, "iterations": (iterations,)}


_GRID: dict[str, Grid] = {
    "implicit BPR": {
        "learning_rate": (0.02,),
        "regularization": (0.01,),
        "factors": (32,),
        "iterations": (50,),
    },
    "GF-CF": {"weight": (0.3, 1.0, 3.0), "n_factors": (64, 128, 256)},
    "EASE": {"decay": (250.0, 500.0, 1000.0, 2000.0)},
    "RDLAE": {"decay": (50.0, 200.0, 800.0), "dropout": (0.2, 0.4, 0.6), "limit": (0.0, 0.3)},
}
_TURBO: dict[str, Grid] = {"Turbo-CF": {"exponent": (0.5, 0.6), "power": (0.7, 1.0, 1.4), "order": (1, 2)}}
_SMALL = {"implicit ALS": _als((64, 128), (10.0, 30.0, 100.0), (4.0, 8.0, 16.0))} | _GRID | _TURBO
_SPARSE = {"implicit ALS": _als((64, 128), (3.0, 10.0, 30.0, 100.0), (4.0, 16.0, 60.0))} | _GRID
_LARGE: dict[str, Grid] = {
    "implicit ALS": _als((512,), (1.0,), (60.0,), 10),
    "GF-CF": {"weight": (0.3,), "n_factors": (256,)},
}
GRIDS: dict[str, dict[str, Grid]] = {
    "gowalla": _LARGE,
    "yelp2018": _LARGE,
    "ml-1m": {"implicit ALS": _als((128, 256), (50.0, 100.0, 200.0), (4.0, 8.0, 16.0))} | _GRID | _TURBO,
    "douban": _SPARSE | _TURBO,
    "lastfm": _SPARSE,
    "flixster": _SPARSE | _TURBO,
    "ml-100k": _SMALL,
    "ml-100k-last": _SMALL,
    "ml-100k-time": _SMALL,
}
"""The settings of which all combinations are tried, by the data and the system; a single one if trainings are long."""
LADDERS: dict[str, Grid] = {
    "implicit ALS": {
        "regularization": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0),
        "alpha": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 60.0, 120.0, 240.0),
        "factors": (8, 16, 32, 64, 128, 256, 512),
    },
    "implicit BPR": {
        "learning_rate": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2),
        "regularization": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3),
        "factors": (8, 16, 32, 64, 128, 256),
    },
    "GF-CF": {
        "weight": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
        "n_factors": (8, 16, 32, 64, 128, 256, 512, 1024),
    },
    "EASE": {"decay": (8.0, 16.0, 31.0, 62.0, 125.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0)},
    "Turbo-CF": {
        "exponent": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
        "power": (0.3, 0.5, 0.7, 1.0, 1.4, 2.0),
    },
    "RDLAE": {
        "decay": (3.0, 6.0, 12.0, 25.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 6400.0),
        "dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        "limit": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    },
}
"""The settings that a search goes on to from the best of those, by the system."""
FIXED: dict[str, dict[str, Any]] = {
    "implicit BPR": {"factors": 128, "learning_rate": 0.05, "regularization": 0.002, "iterations": 100},
    "EASE": {"decay": 200.0},
}
"""The settings without a search."""
_GFCF = {"n_factors": 256, "weight": 0.3}
CONVENTION: dict[str, dict[str, dict[str, Any]]] = {
    "gowalla": {
        "GF-CF": _GFCF,
        "BSPM": {"n_factors": 448, "weight": 0.2, "sharpening": 2.5},
        "ChebyCF": {"n_factors": 512, "weight": 0.2, "power": 1.5, "exponent": 0.4},
        "Turbo-CF": {"exponent": 0.6, "power": 0.7, "order": 1},
    },
    "yelp2018": {"GF-CF": _GFCF, "BSPM": {"n_factors": 384, "weight": 0.3, "sharpening": None}},
}
"""The settings of papers for these very splits, which have no validation part, by the data and the system."""
