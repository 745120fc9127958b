"""Commands that measure the library: bench."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from air_recsys.cli import options, paths
from air_recsys.cli.evaluate import DataSet, load_dataset

bench_app = paths.App(help="Measure the library: speed, adapters, fold-in, graphs.", no_args_is_help=True)


@bench_app.command("step")
def step(
    size: Annotated[int, typer.Option(min=2, help="Rows and columns of the matrix.")] = 240,
    depth: Annotated[int, typer.Option(min=2, help="Number of factors.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; the median counts.")] = 30,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json_file: options.JsonFile = None,
) -> None:
    """Time of one training step against plain autograd and against the bare matrix products."""
    from benchmarks.step import bench_step

    options.publish_means(bench_step(size, depth, rounds, device=device), None, json_file)


@bench_app.command("top-n")
def top_n(
    data: options.DataFolder = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json_file: options.JsonFile = None,
) -> None:
    """Time of the best items of all MovieLens-1M users, and of faiss indexes over many items."""
    from air_recsys.datasets import data_root, load_movielens
    from air_recsys.nn.devices import resolve_device
    from benchmarks.top_n import bench_blocks, bench_indexes

    resolve_device(device)
    reports = [bench_blocks(load_movielens(data_root(data), "1m"), device=device), bench_indexes()]
    options.publish(reports, json_file)


@bench_app.command("serve")
def serve(
    dataset: Annotated[DataSet, typer.Option(help="Ratings to serve.")] = DataSet.ML_100K,
    data: options.DataFolder = None,
    requests: Annotated[int, typer.Option(min=10, help="Requests of each kind in a round.")] = 800,
    clients: Annotated[int, typer.Option(min=1, help="Clients that send requests at the same time.")] = 8,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; the median counts.")] = 5,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Measure requests a second, of known and new users, beside a plain FastAPI server of implicit's ALS."""
    from benchmarks.serving import bench_serving

    ratings = load_dataset(dataset, data)
    report = bench_serving(ratings, n_requests=requests, n_clients=clients, rounds=rounds, seed=seed)
    options.publish([report], json_file)


class GraphSet(StrEnum):
    """Data on which a graph can be right or wrong."""

    SYN_NETFLIX = "syn-netflix"
    MOVIELENS = "movielens"
    DTI = "dti"
    LISTS = "lists"


@bench_app.command("graphs")
def graphs(
    sets: Annotated[list[GraphSet] | None, typer.Option("--set", help="May be repeated. By default all.")] = None,
    data: options.DataFolder = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of masks of Syn-Netflix, and of hidden parts.")] = 5,
    epochs: Annotated[int | None, typer.Option(min=1, help="In place of those of the presets.")] = None,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """Learned graphs beside groups, genres, chemistry and sequences that no model saw, and lists over them."""
    from air_recsys.datasets import data_root
    from benchmarks.graphs import bench_graphs

    chosen = [each.value for each in sets or GraphSet]
    options.publish(bench_graphs(data_root(data), chosen, seeds=seeds, n_epochs=epochs, device=device), json_file)


@bench_app.command("graph-communities")
def graph_communities(
    data: options.DataFolder = None,
    settings: options.Settings = None,
    json_file: options.JsonFile = None,
) -> None:
    """Names of the communities of MovieLens-100K, and how much of them follows from who rated what."""
    from air_recsys.datasets import data_root, load_movielens, load_movielens_items, load_movielens_users
    from benchmarks.graphs.communities import bench_communities

    root = data_root(data)
    items, users = load_movielens_items(root, "100k"), load_movielens_users(root, "100k")
    chosen = options.parse_settings(settings)
    options.publish(bench_communities(load_movielens(root, "100k"), items, users, chosen), json_file)


@bench_app.command("graph-layout")
def graph_layout(
    data: options.DataFolder = None,
    settings: options.Settings = None,
    json_file: options.JsonFile = None,
) -> None:
    """How the explorer's positions keep neighbours together on MovieLens-100K and Syn-Netflix, beside others."""
    from air_recsys.datasets import data_root
    from benchmarks.graphs.cases import layout_cases
    from benchmarks.graphs.layout import bench_layout

    cases = layout_cases(data_root(data), options.parse_settings(settings))
    options.publish([bench_layout(cases, "Star Wars (1977)")], json_file)


@bench_app.command("explorer")
def explorer(json_file: options.JsonFile = None) -> None:
    """Measure what pages of the explorer cost to write, and how fast they are in Chromium, on three made graphs."""
    from benchmarks.explorer import bench_explorer, markdown

    report = bench_explorer()
    options.publish([report], json_file)
    typer.echo(markdown(report.rows))


@bench_app.command("graph-build")
def graph_build(
    items: Annotated[int, typer.Option(min=2, help="Number of generated items.")] = 100_000,
    width: Annotated[int, typer.Option(min=1, help="Width of their factors.")] = 64,
    k: Annotated[int, typer.Option(min=1, help="Neighbours per item.")] = 50,
    json_file: options.JsonFile = None,
) -> None:
    """Time and memory of the nearest-neighbour graph of many items."""
    from benchmarks.graph_build import bench_graph_build

    options.publish([bench_graph_build(items, width, k)], json_file)


@bench_app.command("nearest-rows")
def nearest_rows(
    rows: Annotated[list[int] | None, typer.Option(min=2, help="May be repeated. By default 10000 and 40000.")] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Time of the search for the nearest rows beside its product, a plain selection and faiss."""
    from benchmarks.nearest_rows import bench_nearest_rows

    options.publish([bench_nearest_rows(rows or (10_000, 40_000))], json_file)


@bench_app.command("graph-ablation")
def graph_ablation(
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="A data set; may be repeated. By default all.")
    ] = None,
    variants: Annotated[list[str] | None, typer.Option("--variant", help="May be repeated. By default all.")] = None,
    data: options.DataFolder = None,
    seeds: Annotated[int, typer.Option(min=1, help="Validation parts to average over.")] = 1,
    epochs: Annotated[int | None, typer.Option(min=1, help="In place of those of the presets.")] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Measure what neighbours, refresh and the entry of new edges do to sparse graphs, on validation parts."""
    from air_recsys.datasets import data_root
    from benchmarks.graph_ablation import bench_graph_ablation

    chosen = tuple(sets or ()), tuple(variants or ())
    options.publish_means(*bench_graph_ablation(data_root(data), *chosen, seeds=seeds, n_epochs=epochs), json_file)
