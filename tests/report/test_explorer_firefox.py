"""The explorer in Firefox: tests of it in Chromium that need no tools of Chromium, on pages that open at once."""

from collections.abc import Iterator

import firefox
import pytest
from browsers import browser_named
from test_explorer_browser import (  # noqa: F401
    Page,
    films,
    rated,
    small,
    test_a_click_on_a_node_chooses_it_and_one_beside_it_lets_it_go,
    test_a_link_brings_the_view_back_and_wrong_ones_open_the_page,
    test_a_name_of_ones_own_stays_in_the_link_and_in_the_table,
    test_all_edges_of_a_chosen_node_are_drawn_whatever_the_slider,
    test_an_edge_tells_its_weight_and_its_reason,
    test_colours_and_sizes_by_attributes,
    test_colours_of_communities_stand_out,
    test_everything_by_keyboard,
    test_keys_move_the_picture,
    test_more_nodes_than_can_be_drawn,
    test_tab_leads_to_every_control_whose_ring_is_seen_and_keys_use_it,
    test_the_button_turns_the_colours,
    test_the_legend_filters,
    test_the_search_and_the_choice_survive_the_switch,
    test_what_is_chosen_goes_to_a_table_and_to_files,
    two,
)

if firefox.FIREFOX is None:
    pytest.skip("no Firefox on this machine", allow_module_level=True)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser_named("firefox") as browser:
        yield Page(browser)


@pytest.fixture
def full(two: Page) -> Page:  # noqa: F811
    return two


@pytest.fixture(scope="module")
def large(small):  # noqa: F811
    return small
