"""One HTML file that needs nothing else: scripts, styles and data inside, the network forbidden."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any


def read_asset(name: str) -> str:
    """Return the text of a file of `air_recsys/report/assets`."""
    return files("air_recsys.report").joinpath("assets", name).read_text(encoding="utf-8")


def escaped_json(value: Any) -> str:
    r"""Return JSON that may stand in a script element whatever its texts say.

    Examples
    --------
    >>> escaped_json({"title": "</script><b>"})
    '{"title":"\\u003c/script\\u003e\\u003cb\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def single_page(template: str, *, title: str, data: Any, styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return the page of a template with its assets and data inside.

    The policy of the page lets exactly these scripts run and no address be asked for anything.

    Parameters
    ----------
    template : str
        Asset with the places ``{{title}}``, ``{{policy}}``, ``{{styles}}``, ``{{data}}``, ``{{scripts}}`` and
        ``{{licences}}``.
    title : str
        Plain text.
    data : object
        What `json` can write.
    styles, scripts : sequence of str
        Assets, in the order of the page.
    """
    codes = [read_asset(name) for name in scripts]
    parts = {
        "title": html.escape(title),
        "policy": _policy(codes),
        "styles": "\n".join(f"<style>\n{read_asset(name)}</style>" for name in styles),
        "data": escaped_json(data),
        "scripts": "\n".join(f"<script>{code}</script>" for code in codes),
        "licences": html.escape(read_asset("force-graph.LICENSES.txt"), quote=False),
    }
    return _filled(read_asset(template), parts)


def _policy(codes: Sequence[str]) -> str:
    hashes = (base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in codes)
    scripts = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _filled(template: str, parts: Mapping[str, str]) -> str:
    # One pass: what is filled in is never searched for places.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)
