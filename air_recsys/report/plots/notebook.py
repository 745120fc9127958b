"""`NotebookFigure`, the one class here that is made of matplotlib's: pages without drawings load without that."""

from __future__ import annotations

import io
from typing import Any

from air_recsys.report.plots.theme import INKS, ink, inked, theme_in_use
from air_recsys.storage.validation import needs_extra

with needs_extra("viz"):
    from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A `Figure` in the theme of `use_theme`, which a notebook shows where it is the value of a cell.

    A notebook shows plain figures only after an import of `pyplot`, which nothing here imports.
    """

    _in_notebook = False

    def draw(self, renderer: Any) -> None:
        """Draw with the ink of the theme."""
        theme = theme_in_use()
        with inked(self, INKS[theme] if self._in_notebook or theme != "auto" else ink()):
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save, without a background where the theme has none."""
        if self._in_notebook or theme_in_use() != "auto":
            options.setdefault("transparent", True)
        super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self._in_notebook = True
        try:
            self.savefig(buffer, format="png")
        finally:
            self._in_notebook = False
        return buffer.getvalue()
