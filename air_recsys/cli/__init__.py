"""The command ``air-recsys``: thin, one module a group of commands."""

from __future__ import annotations

import os
import signal
import sys

_ABORTED, _TERMINATED = 130, 143  # the statuses of shells after Ctrl-C and SIGTERM


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit; see `air_recsys.cli.app.run`. Ctrl-C ends it, also while it still imports.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the process, which then hears no Ctrl-C on its way out.
    """
    status = _ABORTED
    if arguments is None and os.getpid() == 1:  # of a container: such a process hears no signal without a handler
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    try:
        try:
            from air_recsys.cli.app import run

            status = run(arguments)
        finally:
            if arguments is None:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        sys.stderr.write("error: aborted\n")
    sys.exit(status)
