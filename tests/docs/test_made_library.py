"""The made library of the explorer on the site: groups on two levels, and books that follow them."""

import runpy
from pathlib import Path

import numpy as np

MADE = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "_ext" / "made_library.py"))


def test_fine_groups_lie_in_coarse_ones_and_books_follow_them():
    made = MADE["make_catalogue"](3)
    for side, size in (("user", 96), ("item", 120)):
        coarse, fine = made.levels[side]["coarse"], made.levels[side]["fine"]
        assert coarse.shape == fine.shape == (size,)
        assert len(set(zip(coarse.tolist(), fine.tolist(), strict=True))) == len(set(fine.tolist())) == 9
        assert np.ptp(np.bincount(fine)) <= 1
    assert made.books["title"].is_unique
    for level, column in (("coarse", "shelf"), ("fine", "kind")):
        names = made.books[column].to_numpy()
        pairs = set(zip(made.levels["item"][level].tolist(), names.tolist(), strict=True))
        assert len(pairs) == len(set(names.tolist()))
    assert set(np.unique(made.ratings.ratings).tolist()) <= set(np.arange(1, 5.5, 0.5).tolist())


def test_the_same_seed_makes_the_same_catalogue():
    one, same, other = (MADE["make_catalogue"](seed).ratings for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.to_dense(), same.to_dense())
    assert not np.array_equal(one.to_dense(), other.to_dense(), equal_nan=True)


def test_stronger_coarse_groups_spread_the_ratings_between_shelves():
    def share(coarse: float, fine: float) -> float:
        made = MADE["make_catalogue"](0, coarse, fine)
        means = np.nanmean(made.ratings.to_dense(), axis=1)
        groups = made.levels["user"]["coarse"]
        between = np.array([means[groups == group].mean() for group in range(3)])
        return float(between.var() / means.var())

    assert share(0.8, 0.0) > share(0.0, 0.8)


def test_page_and_picture_are_of_a_training(tmp_path, monkeypatch):
    for name, short in (("_N_EPOCHS", 30), ("_STEPS", (0, 10))):
        monkeypatch.setitem(MADE["trained_on"].__globals__, name, short)
    made = MADE["make_catalogue"]()
    assert "The Silent" in MADE["write_page"](made, tmp_path / "story.html").read_text(encoding="utf-8")
    assert MADE["draw_course"](made, tmp_path / "story.png").read_bytes().startswith(b"\x89PNG")
