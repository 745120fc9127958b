"""The figure class that a notebook shows by itself; only `new_figure` imports it, since it needs matplotlib."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A `Figure` that a notebook shows where it is the value of a cell.

    A notebook shows plain figures only after an import of `pyplot`, which nothing here imports.
    """

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()
