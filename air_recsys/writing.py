"""Writing of files that are complete or absent."""

from __future__ import annotations

import glob
import os
import re
import secrets
from pathlib import Path


def remove_leftovers(target: Path) -> None:
    """Remove the temporary files beside `target` of processes that were killed in `replace_file`."""
    for temporary in target.parent.glob(f".{glob.escape(target.name)}.*"):
        if re.fullmatch("[0-9a-f]{16}", temporary.suffix[1:]):
            temporary.unlink(missing_ok=True)


def replace_file(target: Path, content: bytes) -> None:
    """Write `content` beside `target` and move it there, so no reader sees an incomplete file."""
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
