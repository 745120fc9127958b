"""Figures in the theme of where they stand: ink that can be read, nothing behind, and nothing left changed."""

from __future__ import annotations

import io
import pickle
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread

from air_recsys import SimilarityGraph
from air_recsys.exceptions import ParameterError
from air_recsys.report.plots import plot_adjacency, plot_degrees, plot_predictions, use_theme
from air_recsys.report.plots.axes import figure_and_axes, new_figure
from air_recsys.report.plots.notebook import NotebookFigure
from air_recsys.report.plots.theme import INKS, ink, theme_in_use
from air_recsys.report.plots.vector import inline_svg

CELL = """
import sys
import numpy as np
from air_recsys.graphs import SimilarityGraph
from air_recsys.report.plots import plot_adjacency
from IPython.core.formatters import DisplayFormatter

data, _ = DisplayFormatter().format(plot_adjacency(SimilarityGraph(np.ones((3, 3)), range(3))))
print(sorted(data), data["image/png"][1:4], "matplotlib.pyplot" in sys.modules)
"""
WHITE, DARK = "#ffffff", "#111111"


@pytest.fixture(autouse=True)
def _automatic() -> Iterator[None]:
    yield
    use_theme("auto")


def degrees() -> NotebookFigure:
    figure = plot_degrees(SimilarityGraph([[0, 1, 0], [1, 0, 4], [0, 4, 0]], "abc"))
    assert isinstance(figure, NotebookFigure)
    return figure


def pixels(picture: bytes) -> np.ndarray:
    return imread(io.BytesIO(picture))


def saved(figure: NotebookFigure) -> np.ndarray:
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return pixels(target.getvalue())


def luminance(color: str) -> float:
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in to_rgb(color)]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def inks_of(picture: np.ndarray) -> set[str]:
    """The colours of opaque pixels without a hue, which are those of text and lines."""
    opaque = picture[picture[..., 3] == 1][:, :3]
    grey = opaque[np.ptp(opaque, axis=1) < 0.1]
    return {to_hex(color) for color in np.unique(grey, axis=0)}


def test_ink_can_be_read_where_it_stands() -> None:
    assert contrast(INKS["light"], WHITE) > 7
    assert contrast(INKS["dark"], DARK) > 7
    assert min(contrast(INKS["auto"], WHITE), contrast(INKS["auto"], DARK)) > 4
    with pytest.raises(ParameterError, match="name must be one of"):
        use_theme("black")
    assert theme_in_use() == "auto"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_theme_has_its_ink_and_no_background_in_notebooks_and_files(theme: str) -> None:
    use_theme(theme)
    for picture in (pixels(degrees()._repr_png_()), saved(degrees())):
        assert picture[0, 0, 3] == 0
        assert INKS[theme] in inks_of(picture)
        assert "#000000" not in inks_of(picture)


def test_by_default_a_notebook_gets_what_both_can_read_and_a_file_what_it_got_before() -> None:
    assert theme_in_use() == "auto"
    shown, file = pixels(degrees()._repr_png_()), saved(degrees())
    assert shown[0, 0, 3] == 0
    assert INKS["auto"] in inks_of(shown)
    assert file[0, 0].tolist() == [1, 1, 1, 1]
    assert "#000000" in inks_of(file)


def test_one_figure_can_be_shown_in_any_theme_and_is_left_as_it_was() -> None:
    figure = degrees()
    before = [to_hex(line.get_color()) for line in figure.axes[0].get_xgridlines()]
    first = figure._repr_png_()
    use_theme("dark")
    assert figure._repr_png_() != first
    use_theme("auto")
    assert figure._repr_png_() == first
    assert [to_hex(line.get_color()) for line in figure.axes[0].get_xgridlines()] == before
    assert figure.axes[0].title.get_color() in (ink(), (0.0, 0.0, 0.0, 1.0))


def test_a_users_own_axes_keep_their_style() -> None:
    use_theme("light")
    with mpl.rc_context({"text.color": "white"}):
        figure = Figure()
        plot_predictions([1, 2], [1, 2], ax=figure.subplots())
        assert {to_hex(line.get_color()) for line in figure.axes[0].lines} >= {"#ffffff"}


def test_weights_are_painted_over_nothing() -> None:
    figure = plot_adjacency(SimilarityGraph([[0, 0, 2], [0, 0, 0], [2, 0, 0]], "abc"))
    colors = figure.axes[0].images[0].to_rgba(np.array([0.0, 2.0]))
    assert colors[0, 3] == 0
    assert colors[1, 3] == 1
    assert min(contrast(to_hex(tuple(colors[1, :3])), paper) for paper in (WHITE, DARK)) > 3


def test_a_figure_has_a_picture_of_its_size() -> None:
    figure = new_figure((4, 3))
    figure.subplots()
    picture = figure._repr_png_()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert [int.from_bytes(picture[start : start + 4], "big") for start in (16, 20)] == [400, 300]
    assert pickle.loads(pickle.dumps(figure))._repr_png_() == picture


def test_ipython_shows_the_picture() -> None:
    pytest.importorskip("IPython", reason="needs the extra docs")
    run = subprocess.run([sys.executable, "-c", CELL], capture_output=True, text=True, check=True)
    assert run.stdout == "['image/png', 'text/plain'] b'PNG' False\n"


def test_svg_takes_ink_and_font_of_the_page_whatever_the_theme() -> None:
    svg = inline_svg(degrees(), "Degrees")
    root = ET.fromstring(svg)
    assert root.attrib["fill"] == "currentColor"
    assert [text for text in root.itertext() if "neighbours" in text]
    assert not re.search("#000000|#ffffff|font-family|<style|<metadata", svg)
    for theme in ("light", "dark"):
        use_theme(theme)
        themed = inline_svg(degrees(), "Degrees")
        assert INKS[theme] not in themed
        assert list(ET.fromstring(themed).itertext()) == list(root.itertext())


def test_hostile_text_stays_text() -> None:
    hostile = "</svg><script>alert('x')</script><img src=x onerror=alert(1)>"
    figure, axes = figure_and_axes(None)
    axes.set(title=hostile, xlabel=hostile)
    svg = inline_svg(figure, hostile + '"')
    assert "<script" not in svg
    assert "<img" not in svg
    root = ET.fromstring(svg)
    assert root.attrib["aria-label"] == hostile + '"'
    assert "".join(root.itertext()).count(hostile) == 2
