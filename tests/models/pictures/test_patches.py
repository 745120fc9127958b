"""`PNMC` and `PatchAIR`: what they complete from patches that look alike, their symmetries, and what they refuse."""

import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from model_cases import completed

from air_recsys.exceptions import ParameterError
from air_recsys.models import PNMC, BiasModel, PatchAIR, Recommender
from air_recsys.models.pictures.patches import fill_smoothly

SHAPE = (26, 21)
WAVES = 3 + np.sin(np.arange(26.0))[:, None] * np.cos(np.arange(21.0) / 2)  # every stack of patches has rank 5
masks = arrays.arrays(bool, st.tuples(st.integers(4, 9), st.integers(4, 9)))


def gaps(shape=SHAPE, share=0.3, seed=0):
    return np.random.default_rng(seed).random(shape) < share


def picture_with(hidden, picture=WAVES):
    return np.where(hidden, np.nan, picture)


# -------------------------------------------------------------------- the first filling


@given(hidden=masks, seed=st.integers(0, 99))
def test_a_filled_pixel_is_the_mean_of_its_neighbors(hidden, seed):
    picture = np.random.default_rng(seed).random(hidden.shape)
    hidden[0, 0] = False
    filled = fill_smoothly(np.where(hidden, np.nan, picture))
    np.testing.assert_array_equal(filled[~hidden], picture[~hidden])
    framed = np.pad(filled, 1, constant_values=np.nan)
    around = np.stack([framed[:-2, 1:-1], framed[2:, 1:-1], framed[1:-1, :-2], framed[1:-1, 2:]])
    np.testing.assert_allclose(filled[hidden], np.nanmean(around, axis=0)[hidden], atol=1e-9)
    assert filled.min() >= picture[~hidden].min() - 1e-9
    assert filled.max() <= picture[~hidden].max() + 1e-9


# -------------------------------------------------------------------- PNMC


@pytest.mark.parametrize("patch", [6, 7])
def test_a_texture_of_the_rank_is_recovered_each_round_going_on_from_the_last(patch):
    hidden = gaps()
    rounds = [completed(PNMC(patch, rank=5, n_rounds=n), picture_with(hidden)) for n in (1, 3, 6, 15)]
    errors = [np.abs(found - WAVES)[hidden].max() for found in rounds]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert errors[3] < 1e-6


def test_a_hole_larger_than_a_patch_is_filled_with_the_texture():
    hidden = np.zeros(SHAPE, dtype=bool)
    hidden[8:16, 6:14] = True
    array = picture_with(hidden)
    found = completed(PNMC(6, rank=5, n_rounds=20), array)
    errors = [np.abs(filled - WAVES)[hidden].mean() for filled in (found, fill_smoothly(array))]
    assert errors[0] < 0.1 * errors[1]


@settings(max_examples=25)
@given(hidden=masks, patch=st.integers(2, 4), rank=st.integers(1, 3))
def test_pixels_stay_and_every_gap_is_filled(hidden, patch, rank):
    picture = np.random.default_rng(0).random(hidden.shape)
    hidden[1, 1] = False
    found = completed(PNMC(patch, n_similar=5, rank=rank, n_rounds=2), np.where(hidden, np.nan, picture))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[~hidden], picture[~hidden], atol=1e-12)


@pytest.mark.parametrize(
    "move", [np.transpose, np.fliplr, lambda array: 256 * array], ids=["transposed", "mirrored", "unit"]
)
def test_a_moved_picture_is_completed_alike_in_any_unit(move):
    size = 22  # where the grid of patches of four is symmetric
    rng = np.random.default_rng(0)
    array = np.where(rng.random((size, size)) < 0.2, np.nan, rng.random((size, size)))
    model = PNMC(4, n_similar=6, rank=2, n_rounds=2)
    np.testing.assert_allclose(completed(model, move(array)), move(completed(model, array)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("parameters", [{"patch": 1}, {"patch": 5, "rank": 25}, {"patch": 5, "n_similar": 3}])
def test_without_truncation_the_first_filling_stays(parameters):
    array = picture_with(gaps())
    np.testing.assert_allclose(completed(PNMC(n_rounds=2, **parameters), array), fill_smoothly(array), rtol=1e-9)


def test_a_picture_of_one_grey_and_one_without_gaps_stay_so():
    found = completed(PNMC(6, n_similar=4, rank=1), picture_with(gaps(), np.full(SHAPE, 0.5)))
    np.testing.assert_allclose(found, 0.5, rtol=1e-12)
    np.testing.assert_allclose(completed(PNMC(rank=1), WAVES), WAVES, rtol=1e-12)


# -------------------------------------------------------------------- PatchAIR

small = partial(PatchAIR, patch=6, n_factors=8, n_epochs=120, random_state=0, device="cpu")
ROWS, COLUMNS = np.mgrid[:30, :27]
# It repeats itself and has full rank in no patch.
RIPPLES = 0.5 + 0.25 * np.sin(ROWS / 1.5) * np.cos(COLUMNS / 2) + 0.2 * np.sin((ROWS + COLUMNS) / 3)


def error(model, picture, mask):
    model.fit(picture_with(mask, picture))
    return np.abs(model.predict(*np.nonzero(mask)) - picture[mask]).mean()


def test_it_completes_what_repeats_itself_and_given_pixels_stay():
    mask, model = gaps(RIPPLES.shape, 0.4), small()
    assert error(model, RIPPLES, mask) < 0.2 * error(BiasModel(), RIPPLES, mask)
    np.testing.assert_allclose(model.predict(*np.nonzero(~mask)), RIPPLES[~mask], atol=1e-6)


@pytest.mark.parametrize("stride", [1, 5, 6])
def test_every_pixel_is_completed_whatever_the_stride(stride):
    found = completed(small(stride=stride, n_epochs=10), picture_with(gaps(RIPPLES.shape, 0.4), RIPPLES))
    assert np.isfinite(found).all()


def test_a_hidden_row_and_a_hidden_patch_are_completed():
    mask = np.zeros(RIPPLES.shape, dtype=bool)
    mask[10], mask[15:24, 12:21] = True, True  # a whole patch of 6 x 6 without a given pixel
    assert error(small(), RIPPLES, mask) < 0.2


def test_the_patch_graph_joins_patches_that_look_alike_and_is_in_the_file(tmp_path):
    picture = np.tile(np.random.default_rng(0).random((6, 6)), (5, 5))
    model = small(stride=3, graph_neighbors=4).fit(picture_with(gaps(picture.shape, 0.4), picture))
    (graph,) = model.transform_graphs_
    side = len(range(0, 30 - 6 + 1, 3))
    assert len(graph) == side**2
    joined = graph.to_scipy().tocoo()
    phase = (np.arange(side**2) // side % 2) * 2 + np.arange(side**2) % side % 2  # equal patches have equal phases
    same = phase[joined.row] == phase[joined.col]
    assert joined.data[same].sum() > 0.9 * joined.data.sum()
    again = Recommender.load(model.save(tmp_path / "model.air"))
    assert isinstance(again, PatchAIR)
    np.testing.assert_array_equal(again.transform_graphs_[0].to_scipy().toarray(), joined.toarray())


# -------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (PNMC, {"rank": 0}, "rank must be an integer >= 1, found 0"),
        (PNMC, {"patch": 28}, "patch must be at most the smaller side of the picture, 30 x 27 pixels, found 28"),
        (small, {"patch": 28}, "patch must be at most the smaller side of the picture, 30 x 27 pixels, found 28"),
        (small, {"stride": 7}, "stride must be at most patch, 6, found 7"),
        (small, {"learning_rate": 0}, "learning_rate"),
    ],
)
def test_what_does_not_fit_is_named_before_any_work(make, parameters, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        make(**parameters).fit(RIPPLES)
