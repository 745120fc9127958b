"""One HTML file with scripts, styles and data inside, whose policy forbids the network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
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
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def single_page(template: str, *, title: str, data: Any, styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return the page of a template with its assets and data inside.

    The policy of the page allows these scripts alone and no request. The template is an asset with the places
    ``{{title}}`` (plain text), ``{{policy}}``, ``{{styles}}``, ``{{data}}`` (as JSON), ``{{scripts}}`` and
    ``{{licences}}``; styles and scripts are assets in the order of the page.
    """
    codes = [read_asset(name) for name in scripts]
    contents = {
        "title": html.escape(title),
        "policy": _policy(codes),
        "styles": "\n".join(f"<style>\n{read_asset(name)}</style>" for name in styles),
        "data": escaped_json(data),
        "scripts": "\n".join(f"<script>{code}</script>" for code in codes),
        "licences": html.escape(read_asset("force-graph.LICENSES.txt"), quote=False),
    }
    # One pass: filled-in text is never searched for places.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: contents[match[1]], read_asset(template))


def _policy(codes: Sequence[str]) -> str:
    hashes = (base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in codes)
    scripts = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
