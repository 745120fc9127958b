"""Files that are there whole or not at all."""

from __future__ import annotations

import glob
import os
import re
import secrets
from pathlib import Path


def remove_leftovers(target: Path) -> None:
    """Remove what a process that was killed in `replace_file` has left beside `target`."""
    for found in target.parent.glob(f".{glob.escape(target.name)}.*"):
        if re.fullmatch("[0-9a-f]{16}", found.suffix[1:]):
            found.unlink(missing_ok=True)


def replace_file(target: Path, content: bytes) -> None:
    """Write `content` beside `target` and move it there, so that no reader ever sees half a file."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
