"""Progress bars where somebody looks: on terminals and in notebooks, after a while, and not broken by messages."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

with warnings.catch_warnings(action="ignore"):  # in a notebook without ipywidgets it tells to install them
    from tqdm.auto import tqdm
    from tqdm.contrib.logging import logging_redirect_tqdm

_BY_DEFAULT: dict[str, Any] = {"delay": 2, "leave": False}
_IN_LOGS: dict[str, Any] = {"delay": 10, "mininterval": 10, "maxinterval": 10, "miniters": 1, "leave": False}
_SHOW_WARNING = warnings.showwarning


def in_notebook() -> bool:
    """Return whether an IPython kernel runs this code: its standard error is shown, and no terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def progress_bar(progress: bool | None, **options: Any) -> Any:
    """Return a bar of tqdm, in a notebook with ipywidgets a widget.

    None shows it after two seconds on a terminal and in a notebook, and leaves nothing; elsewhere, as in a log, it is
    a line every 10 seconds. The variable TQDM_DISABLE of the environment turns it off.
    """
    how: dict[str, Any]
    is_seen = in_notebook() or (sys.stderr is not None and sys.stderr.isatty())
    if progress is not None:
        options["disable"] = not progress
    elif is_seen:
        options |= _BY_DEFAULT
    how = options if is_seen else _IN_LOGS | {"file": _LinesOfErrors()} | options
    return tqdm(**how)


class _LinesOfErrors:
    """Writes what a bar shows as lines to the standard error; one that is absent or closed ends no training."""

    def write(self, text: str) -> None:
        """Write a state of the bar; the signs that would clear it are no line."""
        with suppress(AttributeError, OSError, ValueError):
            if text.strip():
                sys.stderr.write(f"{text.strip()}\n")

    def flush(self) -> None:
        """Write what is waiting."""
        with suppress(AttributeError, OSError, ValueError):
            sys.stderr.flush()


@contextmanager
def messages_beside(bar: Any) -> Iterator[None]:
    """Let warnings and messages of loggers stand above a bar that is shown, in place of within its line."""
    if bar.disable:
        yield
        return
    is_default = warnings.showwarning is _SHOW_WARNING  # others, such as that of the command line, do as they do
    if is_default:
        warnings.showwarning = _written
    try:
        with logging_redirect_tqdm():
            yield
    finally:
        if is_default and warnings.showwarning is _written:
            warnings.showwarning = _SHOW_WARNING


def _written(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    text = warnings.formatwarning(message, category, filename, lineno, line)
    tqdm.write(text, file=sys.stderr if file is None else file, end="")
