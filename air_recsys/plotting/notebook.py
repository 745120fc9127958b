"""A figure that a notebook shows by itself; imported by `new_figure` alone, since it needs matplotlib."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A `Figure` that a notebook shows where it is the value of a cell.

    Plain figures are shown as pictures by what `pyplot` sets up when it is imported, which nothing here does.
    """

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()
