"""Commands of the workshop: they measure the library and the paper again."""

from __future__ import annotations

import typer

from air_recsys.cli.workshop import (
    accuracy_dti,
    accuracy_page,
    accuracy_ranking,
    accuracy_ratings,
    bench,
    faults,
    reproduce,
    speed,
)


def add_workshop(app: typer.Typer) -> None:
    """Add the groups ``reproduce`` and ``bench`` to an application."""
    app.add_typer(reproduce.reproduce_app, name="reproduce")
    bench.bench_app.command("speed")(speed.speed)
    bench.bench_app.command("scale")(speed.scale)
    bench.bench_app.command("ratings")(accuracy_ratings.ratings)
    bench.bench_app.command("dti")(accuracy_dti.dti)
    bench.bench_app.command("ranking")(accuracy_ranking.ranking)
    bench.bench_app.command("accuracy-page")(accuracy_page.page)
    bench.bench_app.command("faults")(faults.faults)
    app.add_typer(bench.bench_app, name="bench")
