"""The closed form, the bounds and the limits of the adjacencies' flows; and what does not hold is seen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.exceptions import DataFileError, ParameterError
from benchmarks.paper.checks import worst_rows
from benchmarks.paper.theorem2 import (
    common_checks,
    distances_of,
    integrate,
    product_checks,
    softmax_checks,
    softmaxes_of,
    theorem2,
)

few = settings(max_examples=10)
SOFTMAXES = ("global_sum", "row_softmin")
EXPONENTIAL = "|L(t) - L*| <= |L(0) - L*| exp(-D t)"


def rows_of(seed, distinct, repeated):
    points = np.random.default_rng(seed).standard_normal((distinct, 3))
    return points[np.arange(distinct + repeated) % distinct]


rows = st.builds(rows_of, st.integers(0, 2**16), st.integers(2, 5), st.integers(0, 3))


def failing(checks):
    return [row["statement"].partition(":")[0] for row in worst_rows(checks) if not row["holds"]]


@pytest.fixture(scope="module")
def flows():
    return {name: integrate(name, distances_of(rows_of(0, 6, 3))) for name in (*SOFTMAXES, "global_product")}


@few
@given(rows, st.floats(0.1, 10))
def test_equal_rows_are_at_distance_zero_whatever_their_length(points, length):
    distances = distances_of(points * length)
    equal = (points[:, None] == points[None]).all(axis=2)
    np.testing.assert_array_equal(distances == 0, equal)
    np.testing.assert_allclose(distances, distances_of(points), atol=1e-12)


@few
@given(rows, st.sampled_from(SOFTMAXES))
def test_closed_form_bounds_and_limit_hold_and_the_exponential_does_not(points, adjacency):
    flow = integrate(adjacency, distances_of(points))
    assert failing(softmax_checks(flow)) == [EXPONENTIAL]
    own_clocks = {"W stays symmetric"} if adjacency == "row_softmin" else set()
    assert set(failing(common_checks(flow))) <= own_clocks


@pytest.mark.parametrize("adjacency", SOFTMAXES)
def test_the_softmaxes_are_the_adjacency(flows, adjacency):
    flow = flows[adjacency]
    m = len(flow.distances)
    weights = softmaxes_of(flow).weights.reshape(-1, m, m)
    scale = 2 if adjacency == "global_sum" else 1
    edges = scale * (weights + weights.transpose(0, 2, 1)) / 2
    off_diagonal = ~np.eye(m, dtype=bool)
    np.testing.assert_allclose(-flow.laplacians[:, off_diagonal], edges[:, off_diagonal], rtol=1e-10)
    np.testing.assert_allclose(flow.energies, (edges * flow.distances).sum(axis=(1, 2)) / 2, rtol=1e-10)


def test_the_sum_of_the_logits_stays(flows):
    sums = flows["global_sum"].logits.sum(axis=(1, 2))
    np.testing.assert_allclose(sums, sums[0], atol=1e-9)
    np.testing.assert_allclose(np.ptp(flows["row_softmin"].logits.sum(axis=2), axis=0), 0, atol=1e-9)


def test_the_limit_of_global_sum_joins_equal_rows_only(flows):
    flow = flows["global_sum"]
    limit = softmaxes_of(flow).limit  # 9 + 6 entries at distance zero: rows 0..2 occur twice
    expected = np.zeros((9, 9))
    for row in range(3):
        expected[row, row + 6] = expected[row + 6, row] = -2 / 15
        expected[row, row] = expected[row + 6, row + 6] = 2 / 15
    np.testing.assert_allclose(limit, expected, atol=1e-15)
    np.testing.assert_allclose(flow.laplacians[-1], expected, atol=1e-4)


def test_row_softmin_gives_all_to_the_row_itself_and_its_equals(flows):
    weights = softmaxes_of(flows["row_softmin"]).weights[-1]
    expected = [0.5] * 3 + [1.0] * 3 + [0.5] * 3
    np.testing.assert_allclose(np.diag(weights), expected, atol=1e-4)


def test_global_product_diverges_between_equal_rows_only(flows):
    assert failing(common_checks(flows["global_product"])) == ["L converges, some rows equal"]
    assert failing(product_checks(flows["global_product"])) == []
    assert failing(common_checks(integrate("global_product", distances_of(rows_of(1, 6, 0))))) == []


@pytest.mark.parametrize("adjacency", SOFTMAXES)
def test_a_flow_that_is_not_the_gradients_is_seen(flows, adjacency):
    flow = flows[adjacency]
    faster = flow._replace(logits=flow.logits * (1 + 1e-4))
    assert "closed form p = q / (1 + D s)" in failing(softmax_checks(faster))
    later = flow._replace(logits=flow.logits[:-5], energies=flow.energies[5:], times=flow.times[5:])
    later = later._replace(laplacians=flow.laplacians[:-5])
    assert any(name.startswith(("p <=", "p / q")) for name in failing(softmax_checks(later)))
    high = flow._replace(energies=1e3 * flow.energies)
    assert [name[:4] for name in failing(softmax_checks(high)) if name != EXPONENTIAL] == ["E <=", "E <="]
    stuck = flow._replace(laplacians=flow.laplacians[[0] * len(flow.times)], energies=np.ones(len(flow.times)))
    assert {"the energy vanishes", "edges between different rows vanish"} <= set(failing(common_checks(stuck)))


@pytest.fixture(scope="module")
def result():
    return theorem2(seed=2, quick=True)


def test_the_report_says_what_holds(result):
    report = result
    assert {(row["statement"].partition(":")[0], row["adjacency"]) for row in report.rows if not row["holds"]} == {
        (EXPONENTIAL, "global_sum"),
        (EXPONENTIAL, "row_softmin"),
        ("W stays symmetric", "row_softmin"),
        ("L converges, some rows equal", "global_product"),
    }
    assert "no users of Syn-Netflix" in report.protocol
    assert list(report.rows[0]) == ["statement", "adjacency", "expected", "measured", "holds"]


@pytest.mark.data
def test_syn_netflix(data_root):
    report = theorem2(data_root, quick=True)
    assert "30 users of Syn-Netflix" in report.protocol
    assert sum(not row["holds"] for row in report.rows) == 4


def test_bad_input_is_told(tmp_path):
    with pytest.raises(ParameterError, match="seed must be an integer >= 0"):
        theorem2(seed=-1)
    with pytest.raises(DataFileError):
        theorem2(tmp_path)
