"""The command ``demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from air_recsys.cli import options
from air_recsys.exceptions import ParameterError


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model, the graphs and the picture.")] = Path(
        "air_recsys_demo"
    ),
    missing: Annotated[float, typer.Option(min=0.05, max=0.95, help="Share of the ratings to hide.")] = 0.7,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """Complete ratings of which most are hidden, and find the hidden groups of users and items."""
    from air_recsys.report.demo import run_demo
    from air_recsys.report.plots import plot_completion
    from air_recsys.storage.validation import import_extra

    import_extra("matplotlib", "viz")  # before anything is trained
    if out.exists() and not out.is_dir():
        raise ParameterError(f"expected a folder for --out, found the file {out}")
    out.mkdir(parents=True, exist_ok=True)
    result = run_demo(seed, missing, device)
    typer.echo(result.comparison.text() + "\n")
    typer.echo(result.groups.text())
    user = result.model.interactions_.user_ids[0]
    typer.echo(f"\nBest unrated items for user {user}")
    options.show_frame(result.model.recommend(user, n=3), None)
    typer.echo(f"\nMost similar to user {user}")
    options.show_frame(result.model.similar_users(user, n=3), None)
    files = [result.model.save(out / "model.air")]
    for kind, graph in (("user", result.model.user_graph_), ("item", result.model.item_graph_)):
        if graph is not None:
            files.append(graph.to_graphml(out / f"{kind}_graph.graphml"))
    picture = out / "completion.png"
    plot_completion(result.model).savefig(picture, dpi=110)
    typer.echo(f"\nwrote {', '.join(str(file) for file in [*files, picture])}")
    options.write_figures(json_file, {"models": result.comparison.rows, "groups": result.groups.rows})
