"""The story of a training: the made catalogue, and the figures of every step."""

import numpy as np
import pytest

from benchmarks import story


@pytest.fixture
def short(monkeypatch):
    """Trainings of a few epochs, of one kind of catalogue."""
    monkeypatch.setattr(story, "_N_EPOCHS", 30)
    monkeypatch.setattr(story, "_STEPS", (0, 10))
    monkeypatch.setattr(story, "STRENGTHS", ((0.8, 0.5),))


def test_fine_groups_lie_in_coarse_ones_and_books_follow_them():
    made = story.make_catalogue(3)
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
    one, same, other = (story.make_catalogue(seed).ratings for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.to_dense(), same.to_dense())
    assert not np.array_equal(one.to_dense(), other.to_dense(), equal_nan=True)


def test_stronger_coarse_groups_spread_the_ratings_between_shelves():
    def share(coarse: float, fine: float) -> float:
        made = story.make_catalogue(0, coarse, fine)
        means = np.nanmean(made.ratings.to_dense(), axis=1)
        groups = made.levels["user"]["coarse"]
        between = np.array([means[groups == group].mean() for group in range(3)])
        return float(between.var() / means.var())

    assert share(0.8, 0.0) > share(0.0, 0.8)


@pytest.mark.usefixtures("short")
def test_a_course_has_a_row_for_every_step_and_side():
    course = story.of_catalogue(story.make_catalogue(), device="cpu")
    rows = story.steps_table(course).rows
    assert [(row["graph"], row["step"]) for row in rows] == [
        (graph, step) for graph in ("users", "items") for step in (0, 10, 30)
    ]
    assert {"communities", "modularity", "last", "coarse", "fine"} <= rows[0].keys()
    assert all(row["last"] == pytest.approx(1) for row in rows if row["step"] == 30 and row["communities"] > 1)


@pytest.mark.usefixtures("short")
def test_levels_say_which_groups_came_first():
    means, single = story.bench_levels(seeds=1, device="cpu")
    assert [row["graph"] for row in means.rows] == ["users", "items"]
    for row in single.rows:
        assert row["first"] == float(row["coarse step"] < row["fine step"])
        assert 0 <= row["fine"] <= 1
