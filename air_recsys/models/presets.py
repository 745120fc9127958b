"""What each preset of `AIR` changes from the defaults; docs/presets.md says how the values were chosen."""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "completion": {"schedule": "cooldown"},
    "interactions": {
        "pattern_graphs": True,
        "graph_neighbors": 5,
        "schedule": "cooldown",
        "learning_rate": 3e-3,
        "graph_rate": 0.3,
        "init_mean": 0.0,
        "init_std": 0.01,
    },
    "ratings": {
        "pattern_graphs": True,
        "n_factors": "auto",
        "depth": 2,
        "weight_decay": 12.0,
        "bias_decay": 1.0,
        "biases": True,
        "center": True,
        "scale": False,
        "clip": True,
        "graph_neighbors": 20,
        "user_graph_reg": "auto",
        "item_graph_reg": "auto",
        "init_mean": 0.0,
        "init_std": 0.1,
        "n_epochs": 40,
        "n_batches": 8,
        "graph_rate": 0.4,
        "graph_refresh": 10,
        "learning_rate": 0.05,
        "schedule": "cosine",
        "evaluate_every": 5,
        "solver": "variational",
    },
}
