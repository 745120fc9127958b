"""The page at "/": three files of the package, and a policy under which nothing else is loaded or asked."""

from __future__ import annotations

from importlib.resources import files

from air_recsys.storage.validation import needs_extra

with needs_extra("serve"):
    from fastapi import FastAPI
    from fastapi.responses import Response

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_TYPES = {"page.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}


def add_page(app: FastAPI) -> None:
    """Add the page to an application; its addresses are relative, so it may be mounted anywhere."""
    for name, kind in _TYPES.items():
        path = "/" if name == "page.html" else f"/{name}"
        app.add_api_route(path, _answer(name, kind), methods=["GET"], include_in_schema=False)


def _answer(name: str, kind: str):  # noqa: ANN202, FastAPI would take the type for that of the answer's content
    content = files("air_recsys.serving").joinpath("assets", name).read_bytes()

    async def asset() -> Response:
        return Response(content, media_type=kind, headers=_HEADERS)

    return asset
