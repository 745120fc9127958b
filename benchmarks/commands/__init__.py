"""Commands of the workshop: they measure the library and the paper again."""

from __future__ import annotations

import typer

from benchmarks.commands import accuracy, bench, faults, reproduce, speed


def add_workshop(app: typer.Typer) -> None:
    """Add the commands of the paper and the group ``bench`` to an application."""
    for name, command in reproduce.COMMANDS.items():
        app.command(name)(command)
    bench.bench_app.command("speed")(speed.speed)
    bench.bench_app.command("scale")(speed.scale)
    bench.bench_app.command("scale-likes")(speed.scale_likes)
    bench.bench_app.command("scale-dti")(speed.scale_dti)
    bench.bench_app.command("reading")(speed.reading)
    bench.bench_app.command("ranks")(speed.ranks)
    bench.bench_app.command("ratings")(accuracy.ratings)
    bench.bench_app.command("affinities")(accuracy.affinities)
    bench.bench_app.command("dti")(accuracy.dti)
    bench.bench_app.command("ranking")(accuracy.ranking)
    bench.bench_app.command("ranking-splits")(accuracy.ranking_splits)
    bench.bench_app.command("ranking-times")(accuracy.ranking_times)
    bench.bench_app.command("accuracy-page")(accuracy.page)
    bench.bench_app.command("faults")(faults.faults)
    app.add_typer(bench.bench_app, name="bench")
