"""AIR on the patches of a picture: what it completes, its patch graph, and what it refuses."""

import re
from functools import partial

import numpy as np
import pytest

from air_recsys.exceptions import ParameterError
from air_recsys.models import BiasModel, PatchAIR, Recommender

small = partial(PatchAIR, patch=6, n_factors=8, n_epochs=120, random_state=0, device="cpu")


def waves(height=30, width=27):
    """A picture that repeats itself and has full rank in no patch."""
    rows, columns = np.mgrid[:height, :width]
    return 0.5 + 0.25 * np.sin(rows / 1.5) * np.cos(columns / 2) + 0.2 * np.sin((rows + columns) / 3)


def hidden(shape, seed=0):
    return np.random.default_rng(seed).random(shape) < 0.4


def error(model, picture, mask):
    model.fit(np.where(mask, np.nan, picture))
    return np.abs(model.predict(*np.nonzero(mask)) - picture[mask]).mean()


@pytest.mark.parametrize("seed", [0, 1])
def test_it_completes_what_repeats_itself(seed):
    picture = waves()
    mask = hidden(picture.shape, seed)
    assert error(small(), picture, mask) < 0.2 * error(BiasModel(), picture, mask)


def test_given_pixels_stay_and_the_unit_of_brightness_does_not_matter():
    picture = waves()
    mask = hidden(picture.shape)
    model = small().fit(np.where(mask, np.nan, picture))
    shown = model.predict(*np.nonzero(~mask))
    np.testing.assert_allclose(shown, picture[~mask], atol=1e-6)


@pytest.mark.parametrize("stride", [1, 4, 5, 6])
def test_every_pixel_is_completed_whatever_the_stride(stride):
    picture = waves()
    model = small(stride=stride, n_epochs=30).fit(np.where(hidden(picture.shape), np.nan, picture))
    completed = model.predict(np.repeat(np.arange(30), 27), np.tile(np.arange(27), 30))
    assert np.isfinite(completed).all()


def test_a_hidden_row_and_a_hidden_patch_are_completed():
    picture = waves()
    mask = np.zeros(picture.shape, dtype=bool)
    mask[10], mask[15:24, 12:21] = True, True  # a whole patch of 6 x 6 without a given pixel
    assert error(small(), picture, mask) < 0.2


def test_the_patch_graph_joins_patches_that_look_alike():
    period = np.random.default_rng(0).random((6, 6))
    picture = np.tile(period, (5, 5))
    model = small(stride=3, graph_neighbors=4).fit(np.where(hidden(picture.shape), np.nan, picture))
    (graph,) = model.transform_graphs_
    side = len(range(0, 30 - 6 + 1, 3))
    assert len(graph) == side**2
    joined = graph.to_scipy().tocoo()
    phase = (np.arange(side**2) // side % 2) * 2 + np.arange(side**2) % side % 2  # equal patches have equal phases
    same = phase[joined.row] == phase[joined.col]
    assert joined.data[same].sum() > 0.9 * joined.data.sum()


def test_save_and_load_keep_predictions_and_the_patch_graph(tmp_path):
    picture = waves()
    model = small(n_epochs=30).fit(np.where(hidden(picture.shape), np.nan, picture))
    again = Recommender.load(model.save(tmp_path / "model.air"))
    assert isinstance(again, PatchAIR)
    np.testing.assert_array_equal(again.predict(range(27), range(27)), model.predict(range(27), range(27)))
    (before,), (after,) = model.transform_graphs_, again.transform_graphs_
    np.testing.assert_array_equal(before.to_scipy().toarray(), after.to_scipy().toarray())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"patch": 0}, "patch must be an integer >= 1, found 0"),
        ({"patch": 28}, "patch must be at most the smaller side of the picture, 30 x 27 pixels, found 28"),
        ({"stride": 7}, "stride must be at most patch, 6, found 7"),
        ({"stride": 0}, "stride must be an integer >= 1, found 0"),
        ({"graph_reg": -1.0}, "graph_reg must be a number >= 0, found -1.0"),
        ({"n_factors": 0}, "n_factors must be 'auto', None or an integer >= 1, found 0"),
        ({"learning_rate": 0}, "learning_rate"),
    ],
)
def test_what_does_not_fit_is_named_before_any_work(parameters, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        small(**parameters).fit(waves())
