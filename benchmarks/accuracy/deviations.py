"""What intervals of models without a posterior hold, on hidden entries of Syn-Netflix and of Davis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_davis, load_syn_netflix
from air_recsys.models import AIR
from air_recsys.splits import random_holdout
from benchmarks.harness import Found


def bench_deviations(
    root: Path, case: str, *, noise: float, seeds: int, levels: list[float], settings: dict[str, Any], seed: int
) -> Found:
    """Measure the share of hidden entries inside of the intervals of each level, over several seeds."""
    inside, widths = (np.zeros((seeds, len(levels))) for _ in range(2))
    for number in range(seeds):
        shown, hidden = _parts(root, case, noise, seed + number)
        model = AIR.for_completion(**{"random_state": seed + number, "device": "cpu"} | settings).fit(shown)
        pairs = hidden.user_ids[hidden.user_index], hidden.item_ids[hidden.item_index]
        for place, level in enumerate(levels):
            low, high = model.predict_interval(pairs[0], pairs[1], level, unknown="mean")
            inside[number, place] = np.mean((low <= hidden.ratings) & (hidden.ratings <= high))
            widths[number, place] = np.mean(high - low)
    rows = [
        {"level": level, "inside": inside[:, place].mean(), "width": widths[:, place].mean()}
        | {"least": inside[:, place].min(), "most": inside[:, place].max()}
        for place, level in enumerate(levels)
    ]
    shown, hidden = _parts(root, case, noise, seed)
    title = f"Syn-Netflix with noise of {noise:g}" if case == "syn-netflix" else "Davis, pKd"
    return Found(rows, title=title, trained=shown.n_ratings, hidden=hidden.n_ratings)


def _parts(root: Path, case: str, noise: float, seed: int) -> tuple[Interactions, Interactions]:
    if case == "davis":
        data = load_davis(root).interactions
        split = random_holdout(data, 0.1, random_state=seed)
        return data.select(split.train), data.select(split.test)
    made, rng = load_syn_netflix(root), np.random.default_rng(seed)
    noisy = made.matrix + noise * rng.standard_normal(made.matrix.shape)
    masks = (made.train_mask, made.test_mask)
    shown, hidden = (Interactions.from_dense(np.where(mask, noisy, np.nan), allow_negative=True) for mask in masks)
    return shown, hidden
