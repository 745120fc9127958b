"""Commands of the workshop: they measure the library and the paper again."""

from __future__ import annotations

import typer

from benchmarks.commands import accuracy, bench, faults, reproduce, speed, story


def add_workshop(app: typer.Typer) -> None:
    """Add the groups ``reproduce`` and ``bench`` to an application."""
    app.add_typer(reproduce.reproduce_app, name="reproduce")
    bench.bench_app.command("speed")(speed.speed)
    bench.bench_app.command("scale")(speed.scale)
    bench.bench_app.command("scale-likes")(speed.scale_likes)
    bench.bench_app.command("scale-dti")(speed.scale_dti)
    bench.bench_app.command("reading")(speed.reading)
    bench.bench_app.command("ranks")(speed.ranks)
    bench.bench_app.command("faults")(faults.faults)
    bench.bench_app.command("story")(story.story)
    for name, command in accuracy.COMMANDS.items():
        app.command(name)(command)
    app.add_typer(bench.bench_app, name="bench")
