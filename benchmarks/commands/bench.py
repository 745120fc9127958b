"""Commands that measure the library: bench."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from air_recsys.cli import options, paths
from air_recsys.cli.evaluate import DataSet, load_dataset
from benchmarks.commands.speed import SolverName

bench_app = paths.App(help="Measure the library: speed, adapters, fold-in, graphs.", no_args_is_help=True)


class Host(StrEnum):
    """Libraries with an adapter."""

    SURPRISE = "surprise"
    IMPLICIT = "implicit"
    CORNAC = "cornac"
    SKLEARN = "sklearn"


class LikesSet(StrEnum):
    """Ratings of which 4 and more are likes."""

    ML_100K = "movielens-100k"
    ML_1M = "movielens-1m"
    DOUBAN = "douban"


@bench_app.command("adapters")
def adapters(
    host: Annotated[list[Host] | None, typer.Option(help="A host; may be repeated. By default all four.")] = None,
    sets: Annotated[
        list[LikesSet] | None, typer.Option("--set", help="Likes for implicit; may be repeated. By default all three.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of splits of these likes, from --first-seed on.")
    ] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="With --seeds: the first of them.")] = 25,
    data: options.DataFolder = None,
    json_file: options.JsonFile = None,
) -> None:
    """Our adapters beside the hosts' own models: errors, rankings, and what a prediction costs, in one run."""
    from air_recsys.datasets import data_root
    from benchmarks.hosts import bench_host

    chosen = host or list(Host)
    root = None if chosen == [Host.SKLEARN] else data_root(data)
    likes = [each.value for each in sets or ()]
    splits = None if seeds is None else range(first_seed, first_seed + seeds)
    tables = [table for each in chosen for table in bench_host(each.value, root, sets=likes, seeds=splits)]
    options.publish(tables, json_file)


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


@bench_app.command("fold-in")
def fold_in(
    dataset: Annotated[DataSet, typer.Option(help="Ratings to fold into.")] = DataSet.ML_100K,
    data: options.DataFolder = None,
    seeds: Annotated[int, typer.Option(min=1, help="Splits to average over.")] = 3,
    settings: options.Settings = None,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """Test error of new users and new items that were folded in, beside training anew."""
    from air_recsys.models import AIR
    from benchmarks.fold_in import bench_fold_in

    chosen = options.parse_settings(settings)
    air = AIR.of_preset("ratings", **{"random_state": 0, "device": device} | chosen)
    ratings = load_dataset(dataset, data)
    protocol = f"{dataset.value}; AIR.for_ratings({', '.join(f'{k}={v}' for k, v in chosen.items())}), seed 0"
    options.publish_means(*bench_fold_in(ratings, air, seeds, protocol), json_file)


@bench_app.command("explanations")
def explanations(
    dataset: Annotated[DataSet, typer.Option(help="Ratings to train on.")] = DataSet.ML_100K,
    data: options.DataFolder = None,
    solvers: Annotated[
        list[SolverName] | None, typer.Option("--solver", help="Solver; may be repeated. By default all.")
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Number of random pairs to explain.")] = 1000,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Whether explanations add up, what they leave over, and which parts carry the scores."""
    from air_recsys.models import AIR
    from benchmarks.explanations import bench_explanations

    models = {
        f"for_ratings(solver={solver.value})": AIR.for_ratings(solver=solver.value, random_state=seed, device="cpu")
        for solver in solvers or list(SolverName)
    }
    table = bench_explanations(load_dataset(dataset, data), models, pairs, seed, f"{dataset.value}, all ratings")
    options.publish_means(table, None, json_file)
