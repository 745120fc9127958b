"""The order of names and the colours that drawings of several systems share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex

from air_recsys.report.plots.panels import colors_of, in_order


@given(st.lists(st.lists(st.text(max_size=2))))
def test_order_holds_every_name_once_and_keeps_that_of_the_longest(lists):
    found = in_order(lists)
    assert len(found) == len(set(found))
    assert set(found) == {name for names in lists for name in names}
    longest = max(([*dict.fromkeys(names)] for names in lists), key=len, default=[])
    assert found[: len(longest)] == longest


@pytest.mark.parametrize("n", [1, 7, 8, 15])
def test_no_two_names_have_one_colour(n):
    assert len({to_hex(color) for color in colors_of(list(range(n))).values()}) == n
