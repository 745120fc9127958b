"""The strip of communities: every step with its figures, colours that stay, and limits of what is drawn."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from air_recsys import SimilarityGraph
from air_recsys.report import charts as strip


def blocks(n_groups: int, size: int = 24) -> SimilarityGraph:
    """Groups of equal size, each of nodes that are all joined."""
    return SimilarityGraph(np.kron(np.eye(n_groups), np.ones((size // n_groups,) * 2)), range(size), kind="item")


@pytest.fixture(scope="module")
def parts() -> list[str]:
    graphs = {0: blocks(1), 5: blocks(2), 30: blocks(4)}
    return [str(part) for part in strip.formation_strip(graphs, "epoch")]


def test_the_table_has_a_row_a_step(parts):
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", parts[1])
    assert cells[:4] == ["epoch", "communities", "modularity", "NMI with the last"]
    assert cells[4:7] == ["0", "1", "0"]
    assert cells[8:11] == ["5", "2", "0.5"]
    assert cells[12:] == ["30", "4", "0.75", "1"]


def test_every_step_is_a_picture_that_says_its_number(parts):
    assert "1 at epoch 0, 2 at epoch 5, 4 at epoch 30" in parts[0]
    drawing = ElementTree.fromstring(re.findall(r"<svg.*</svg>", parts[0], re.DOTALL)[0])
    texts = [element.text for element in drawing.iter() if element.tag.endswith("text")]
    assert texts == ["epoch 0", "epoch 5", "epoch 30"]


def test_a_community_that_stays_keeps_its_colour():
    figure = strip.formation_figure({1: blocks(4), 2: blocks(4)}, "sweep")
    first, second = ([np.asarray(each.get_facecolor()).tolist() for each in axes.collections] for axes in figure.axes)
    assert first == second
    assert len(first) == 4


def test_of_many_nodes_some_are_drawn_and_of_more_none(monkeypatch):
    monkeypatch.setattr(strip, "_DRAWN", 10)
    drawn, _ = strip.formation_strip({0: blocks(1), 1: blocks(2)}, "epoch")
    assert "Drawn: 10 of 24, at random." in drawn
    monkeypatch.setattr(strip, "MOST_NODES", 20)
    (only,) = strip.formation_strip({0: blocks(1), 1: blocks(2)}, "epoch")
    assert "<svg" not in only
