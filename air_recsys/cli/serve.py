"""The command serve: a model as a web service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from air_recsys.cli.models import ModelFile


def serve(
    model: ModelFile,
    host: Annotated[str, typer.Option(help="Address to listen at; this machine alone by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes; they share the model's memory.")] = 1,
    titles: Annotated[
        Path | None, typer.Option(help="CSV with the columns id (or item, movieId, ...) and title.")
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Let other machines ask; there are no passwords and no encryption.")
    ] = False,
) -> None:
    """Answer requests over HTTP: lists, reasons, predictions, new users; and a page to try it. Ctrl-C ends it."""
    from air_recsys.serving.server import Address, Served, address_of, hosts_of, listen
    from air_recsys.serving.server import serve as serve_requests

    address = Address(host, port, public)
    with listen(address) as listening:
        where = address_of(listening)
        if public:
            typer.echo(f"warning: whoever reaches {where} may ask for any user; there are no passwords", err=True)
        served = Served(model, titles, hosts_of(address))
        serve_requests(served, listening, workers, lambda: typer.echo(f"serving {model} at {where} (Ctrl-C ends it)"))
    typer.echo("stopped")
