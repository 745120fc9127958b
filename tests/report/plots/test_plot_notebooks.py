"""A notebook shows what a plotting function returns, also where nothing imported pyplot."""

import pickle
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib", reason="needs the extra viz")
from air_recsys.report.plots.axes import new_figure

CELL = """
import sys
import numpy as np
from air_recsys.graphs import SimilarityGraph
from air_recsys.report.plots import plot_adjacency
from IPython.core.formatters import DisplayFormatter

data, _ = DisplayFormatter().format(plot_adjacency(SimilarityGraph(np.ones((3, 3)), range(3))))
print(sorted(data), data["image/png"][1:4], "matplotlib.pyplot" in sys.modules)
"""


def test_a_figure_has_a_picture_of_its_size():
    figure = new_figure((4, 3))
    figure.subplots()
    picture = figure._repr_png_()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert [int.from_bytes(picture[start : start + 4], "big") for start in (16, 20)] == [400, 300]
    assert pickle.loads(pickle.dumps(figure))._repr_png_() == picture


def test_ipython_shows_the_picture():
    pytest.importorskip("IPython", reason="needs the extra docs")
    run = subprocess.run([sys.executable, "-c", CELL], capture_output=True, text=True, check=True)
    assert run.stdout == "['image/png', 'text/plain'] b'PNG' False\n"
