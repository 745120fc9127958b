"""`PNMC`: its first filling, what it recovers exactly, and its symmetries."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from model_cases import all_scores, assert_same_answers, frame

from air_recsys.exceptions import ParameterError
from air_recsys.models import PNMC
from air_recsys.models.pictures.patches import _patches_with_gaps, fill_smoothly

SHAPE = (26, 21)
WAVES = 3 + np.sin(np.arange(26.0))[:, None] * np.cos(np.arange(21.0) / 2)  # every stack of patches has rank 5
masks = arrays.arrays(bool, st.tuples(st.integers(4, 9), st.integers(4, 9)))


def gaps(share=0.3, seed=0):
    return np.random.default_rng(seed).random(SHAPE) < share


def picture_with(hidden, picture=WAVES):
    return np.where(hidden, np.nan, picture)


def completed(model, array):
    users, items = np.indices(array.shape)
    return model.fit(array).predict(users.ravel(), items.ravel()).reshape(array.shape)


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


def test_a_slope_is_filled_exactly():
    slope = np.arange(26.0)[:, None] + 2 * np.arange(21.0)
    hidden = np.zeros(SHAPE, dtype=bool)
    hidden[5:15, 3:18] = True
    np.testing.assert_allclose(fill_smoothly(picture_with(hidden, slope)), slope, atol=1e-9)


# -------------------------------------------------------------------- completion


@pytest.mark.parametrize("patch", [6, 7])
def test_a_texture_of_the_rank_is_recovered(patch):
    hidden = gaps()
    found = completed(PNMC(patch, rank=5, n_rounds=15), picture_with(hidden))
    np.testing.assert_allclose(found, WAVES, atol=1e-6)


def test_a_hole_larger_than_a_patch_is_filled_with_the_texture():
    hidden = np.zeros(SHAPE, dtype=bool)
    hidden[8:16, 6:14] = True
    array = picture_with(hidden)
    found = completed(PNMC(6, rank=5, n_rounds=40), array)
    errors = [np.abs(filled - WAVES)[hidden].mean() for filled in (found, fill_smoothly(array))]
    assert errors[0] < 0.1 * errors[1]


def test_each_round_goes_on_from_the_last():
    hidden, array = gaps(), picture_with(gaps())
    rounds = [completed(PNMC(6, rank=5, n_rounds=n), array) for n in (1, 3, 6)]
    errors = [np.abs(found - WAVES)[hidden].max() for found in rounds]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


@settings(max_examples=25)
@given(hidden=masks, patch=st.integers(2, 4), rank=st.integers(1, 3))
def test_pixels_stay_and_every_gap_is_filled(hidden, patch, rank):
    picture = np.random.default_rng(0).random(hidden.shape)
    hidden[1, 1] = False
    found = completed(PNMC(patch, n_similar=5, rank=rank, n_rounds=2), np.where(hidden, np.nan, picture))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[~hidden], picture[~hidden], atol=1e-12)


@given(hidden=masks, patch=st.integers(1, 4))
def test_the_references_cover_every_gap_and_none_is_without(hidden, patch):
    covered = np.zeros(hidden.shape, dtype=bool)
    for number in _patches_with_gaps(hidden, patch):
        row, column = divmod(number, hidden.shape[1] - patch + 1)
        part = np.s_[row : row + patch, column : column + patch]
        assert hidden[part].any()
        covered[part] = True
    assert covered[hidden].all()


@pytest.mark.parametrize("move", [np.transpose, np.fliplr, np.flipud], ids=["transposed", "left-right", "up-down"])
def test_a_moved_picture_is_completed_alike(move):
    size = 22  # where the grid of patches of four is symmetric
    rng = np.random.default_rng(0)
    array = np.where(rng.random((size, size)) < 0.2, np.nan, rng.random((size, size)))
    model = PNMC(4, n_similar=6, rank=2, n_rounds=2)
    np.testing.assert_allclose(completed(model, move(array)), move(completed(model, array)), atol=1e-9)


def test_the_unit_of_the_pixels_does_not_matter():
    model, array = PNMC(5, n_similar=10, rank=2, n_rounds=2), picture_with(gaps())
    np.testing.assert_allclose(completed(model, 256 * array), 256 * completed(model, array), rtol=1e-9)


@pytest.mark.parametrize("parameters", [{"patch": 1}, {"patch": 5, "rank": 25}, {"patch": 5, "n_similar": 3}])
def test_without_truncation_the_first_filling_stays(parameters):
    array = picture_with(gaps())
    np.testing.assert_allclose(completed(PNMC(n_rounds=2, **parameters), array), fill_smoothly(array), rtol=1e-9)


def test_a_picture_of_one_grey_stays_so_though_all_patches_are_alike():
    found = completed(PNMC(6, n_similar=4, rank=1), picture_with(gaps(), np.full(SHAPE, 0.5)))
    np.testing.assert_allclose(found, 0.5, rtol=1e-12)


def test_a_picture_without_gaps_is_left_alone():
    np.testing.assert_allclose(completed(PNMC(rank=1), WAVES), WAVES, rtol=1e-12)


# -------------------------------------------------------------------- the model


def test_a_second_fit_and_a_file_change_nothing(tmp_path):
    model = PNMC(4, n_similar=8, rank=2, n_rounds=2).fit(frame())
    assert_same_answers(PNMC.load(model.save(tmp_path / "model.air")), model)
    expected = all_scores(model)
    np.testing.assert_array_equal(all_scores(model.fit(frame(seed=1)).fit(frame())), expected)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"patch": 0}, "patch must be an integer >= 1, found 0"),
        ({"n_similar": 2.5}, "n_similar must be an integer >= 1, found 2.5"),
        ({"rank": 0}, "rank must be an integer >= 1, found 0"),
        ({"n_rounds": True}, "n_rounds must be an integer >= 1, found True"),
        ({"patch": 22}, "patch must be at most the smaller side of the picture, 26 x 21 pixels, found 22"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        PNMC(**parameters).fit(picture_with(gaps()))


@pytest.mark.data
def test_a_part_of_barbara_is_completed_far_better_than_smoothly(data_root):
    image = pytest.importorskip("PIL.Image")
    with image.open(data_root / "images" / "Barbara.jpg") as file:
        picture = np.asarray(file.convert("L"), dtype=float)[160:, 160:] / 255  # striped cloth
    hidden = np.random.default_rng(0).random(picture.shape) < 0.3
    array = picture_with(hidden, picture)
    errors = [np.abs(x - picture)[hidden].mean() for x in (completed(PNMC(), array), fill_smoothly(array))]
    assert errors[0] < 0.6 * errors[1]
