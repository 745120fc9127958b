"""Whatever people call their users and items, pages and graph files show it as text."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from air_recsys import BiasModel, Interactions
from air_recsys.exceptions import DataError
from air_recsys.graphs import SimilarityGraph
from air_recsys.report import write_explorer, write_report

pytest.importorskip("matplotlib")
HOSTILE = (
    *("<script>alert(1)</script>", "</script><script>x", '"><img src=x onerror=x>', "'\"&<", "{{data}}", "${title}"),
    *("-->", "]]>", "\u2028", "$\\frac$", "$x", "javascript:x", "\0\x1b[31m"),
)
few = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
names = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=12), min_size=3, max_size=3, unique=True)


class Tags(HTMLParser):
    """The elements of a page, and the attributes that run code or load something."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.suspicious = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.suspicious += [name for name, _ in attrs if name.startswith("on")]


def graph_of(ids, titles):
    table = pd.DataFrame({"item": ids, "title": titles, titles[0] + "_": titles})
    weights = np.array([[0, 2.0, 1], [2, 0, 0], [1, 0, 0]])
    return SimilarityGraph(weights, ids, "item", attributes=table, label="title")


@few
@given(ids=names, titles=names)
def test_the_explorer_has_the_elements_of_its_template_and_no_others(tmp_path, ids, titles):
    plain = write_explorer(tmp_path / "plain.html", graph_of(["a", "b", "c"], ["x", "y", "z"])).read_text("utf-8")
    page = write_explorer(tmp_path / "a.html", graph_of(ids, titles), title=titles[0]).read_text("utf-8")
    assert Tags(page).tags == Tags(plain).tags
    assert Tags(page).suspicious == []


@pytest.mark.filterwarnings("ignore:ids such as")
def test_the_report_has_no_scripts(tmp_path):
    data = Interactions.from_frame(
        pd.DataFrame({"user": ["u", *HOSTILE], "item": [*HOSTILE, "i"], "rating": np.arange(len(HOSTILE) + 1) % 5})
    )
    titles = {name: name for name in HOSTILE}
    page = write_report(BiasModel().fit(data), tmp_path / "a.html", titles=titles).read_text("utf-8")
    found = Tags(page)
    assert "script" not in found.tags
    assert found.suspicious == []
    assert found.tags.count("img") == page.count("data:image/svg+xml")


def test_ids_that_no_file_can_hold_are_named(tmp_path):
    data = Interactions([0, 1], [0, 1], [1.0, 2.0], ["\ud800", "b"], ["x", "y"])
    with pytest.raises(DataError, match="UTF-8"):
        BiasModel().fit(data).save(tmp_path / "a.air")
    with pytest.raises(DataError, match="UTF-8"):
        SimilarityGraph(np.ones((2, 2)), ["\ud800", "b"])
