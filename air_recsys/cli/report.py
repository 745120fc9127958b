"""The command ``report``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from air_recsys.cli import options, paths
from air_recsys.cli.data import ItemTitles
from air_recsys.cli.models import ModelAndJournal, ModelFile
from air_recsys.exceptions import ParameterError, quoted

if TYPE_CHECKING:
    import pandas as pd

    from air_recsys.data.interactions import Interactions

_TOKEN = "AIR_RECSYS_TOKEN"


def report(
    model: ModelFile,
    *,
    out: Annotated[Path, typer.Option(callback=paths.as_html, help="The page to write.")] = Path("report.html"),
    test: Annotated[
        Path | None, typer.Option(help="Ratings that the model has not seen (CSV, TSV or Parquet), for its accuracy.")
    ] = None,
    evaluate: Annotated[
        bool | None,
        typer.Option(
            "--evaluate/--no-evaluate",
            help="Fit the model again on 90 % of the ratings, and measure on the others; by default if it is quick.",
            show_default=False,
        ),
    ] = None,
    titles: ItemTitles = None,
    table: options.RatingFields,
    json_file: options.JsonFile = None,
) -> None:
    """Write one HTML page about a model: accuracy, graphs, intervals, errors, sample recommendations."""
    from air_recsys.data.readers.titles import read_titles, titles_of
    from air_recsys.datasets import read_ratings
    from air_recsys.evaluation.held_out import evaluate_model
    from air_recsys.evaluation.results import ResultTable
    from air_recsys.models import Recommender
    from air_recsys.report.page import check_report, report_html
    from air_recsys.storage.writing import replace_file

    if test is not None and evaluate:
        raise ParameterError("expected --test or --evaluate, found both")
    if test is None:
        options.refuse_unread("report without --test", *options.FORMS, *options.PAIR_COLUMNS, "--rating-column")
    loaded = Recommender.load(model)
    check_report(loaded, out)
    names = None if titles is None else read_titles(titles, loaded.interactions_.item_ids)
    names = None if names is None else names.assign(title=titles_of(names))
    unseen = None
    if test is not None:
        unseen = _with_ids_of(read_ratings(test, **table.reading(), allow_negative=True), loaded.interactions_)
    evaluation = evaluate_model(loaded, unseen, evaluate if unseen is None else False)
    replace_file(out, report_html(loaded, evaluation, names).encode("utf-8", "replace"))
    shown = ResultTable(evaluation.title, evaluation.protocol, evaluation.rows, evaluation.notes)
    typer.echo(shown.text() if shown.rows else "\n".join(shown.notes))
    typer.echo(f"wrote {out}")
    figures = {"title": shown.title, "protocol": shown.protocol, "models": shown.rows, "notes": shown.notes}
    options.write_figures(json_file, figures)


def _with_ids_of(test: Interactions, data: Interactions) -> Interactions:
    """Return test ratings with ids of the model's kind: text where the model's are text."""
    from air_recsys.data.interactions import Interactions

    frame = test.measured_alone().to_frame().filter(["user", "item", "rating"])
    for side, ids in (("user", data.user_ids), ("item", data.item_ids)):
        if ids.dtype == object and frame[side].dtype != object:
            frame[side] = frame[side].astype(str).astype(object)
    return Interactions.from_frame(frame, allow_negative=True)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the ratings, the model, the page and the pictures.")] = Path(
        "air_recsys_demo"
    ),
    missing: Annotated[float, typer.Option(min=0.05, max=0.95, help="Share of the ratings to hide.")] = 0.7,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """Predict hidden ratings of made films, recommend with reasons, and find who and what is alike."""
    from air_recsys.report.demo import run_demo
    from air_recsys.report.explorer import explorer_of
    from air_recsys.report.plots import plot_completion, plot_predictions
    from air_recsys.storage.validation import import_extra

    import_extra("matplotlib", "viz")  # before anything is trained
    if out.exists() and not out.is_dir():
        raise ParameterError(f"expected a folder for --out, found the file {out}")
    out.mkdir(parents=True, exist_ok=True)
    result = run_demo(seed, missing, device)
    model, user = result.model, result.model.interactions_.user_ids[0]
    typer.echo("Ratings that are given, . where one is hidden")
    given = model.interactions_.to_frame().pivot(index="item", columns="user", values="rating").iloc[:8, :8]
    typer.echo(given.map(lambda rating: f"{rating:g}" if rating == rating else ".").to_string() + "\n")
    typer.echo(result.comparison.text() + f"\n\nHidden ratings of {user}, predicted with 90 % intervals")
    options.show_frame(_short(result.hidden.query("user == @user").drop(columns="user").head(5)), None)
    typer.echo(f"\nThe best films for {user}, and why the first")
    best = model.recommend(user, n=5).merge(result.films, left_on="item", right_on="title")
    options.show_frame(_short(best.filter(["rank", "item", "genre", "score"])), None)
    titles = {title: title for title in result.films["title"]}
    typer.echo(model.explain(user, best["item"].tolist()[0], labels=titles).prose() + "\n")
    typer.echo(result.groups.text() + "\n\nThe groups of films, named by what sets them apart")
    films = result.films.rename(columns={"title": "item"})
    assert model.item_graph_ is not None
    named = model.item_graph_.with_attributes(films).describe_communities()
    named["such as"] = [", ".join(members[:3]) for members in named["members"]]
    options.show_frame(named.filter(["size", "name", "such as"]), None)
    files = [out / name for name in ("ratings.csv", "completion.png", "predictions.png")]
    model.interactions_.to_frame().to_csv(files[0], index=False)
    plot_completion(model).savefig(files[1], dpi=110)
    plot_predictions(result.hidden["rating"], result.hidden["predicted"]).savefig(files[2], dpi=110)
    files += [model.save(out / "model.air"), explorer_of(model, out / "films.html", result.films.set_index("title"))]
    typer.echo(f"\nwrote {', '.join(str(file) for file in files)}\n")
    typer.echo("Next, with a file of your own that has the columns user, item and rating:")
    for command in ("train ratings.csv --model my.air", "recommend my.air --user NAME", "report my.air"):
        typer.echo(f"  air-recsys {command}")
    options.write_figures(json_file, {"models": result.comparison.rows, "groups": result.groups.rows})


def _short(table: pd.DataFrame) -> pd.DataFrame:
    """A table with three digits of its numbers."""
    return table.map(lambda value: f"{value:.3g}" if isinstance(value, float) else value)


def serve(
    model: ModelAndJournal,
    host: Annotated[str, typer.Option(help="Address to listen at; this machine alone by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes; they share the model's memory.")] = 1,
    titles: ItemTitles = None,
    group_by: Annotated[
        str | None, typer.Option(help="Column of --titles with groups of items, for per_group= and calibration=.")
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Let other machines ask; there are no passwords and no encryption.")
    ] = False,
    allow_updates: Annotated[
        bool, typer.Option("--allow-updates", help="Let who has the token post and delete ratings, likes, users.")
    ] = False,
    token_file: Annotated[
        Path | None, typer.Option(help=f"File with the token, by default the variable {_TOKEN} of the environment.")
    ] = None,
) -> None:
    """Answer requests over HTTP: lists, reasons, predictions, new users; and a page to try it. Ctrl-C ends it."""
    from air_recsys.serving.server import Address, Served, address_of, hosts_of, listen
    from air_recsys.serving.server import serve as serve_requests

    if token_file is not None and not allow_updates:
        raise ParameterError("expected --token-file with --allow-updates, found it alone")
    if titles is None:
        options.refuse_unread("serve without --titles", "--group-by")
    token = _token(token_file) if allow_updates else None
    address = Address(host.strip("[]"), port, public)  # an IPv6 address may stand as in a URL
    with listen(address) as listening:
        where = address_of(listening)
        if public:
            typer.echo(f"warning: whoever reaches {where} may ask for any user; there are no passwords", err=True)
        served = Served(model, titles, hosts_of(address), token=token, group_by=group_by)
        serve_requests(served, listening, workers, lambda: typer.echo(f"serving {model} at {where} (Ctrl-C ends it)"))
    typer.echo("stopped")


def compact(
    model: ModelAndJournal,
    out: Annotated[Path, typer.Option(callback=paths.as_model, help="The model file to write; it has no journal.")],
) -> None:
    """Write a model with all that a service has changed of it, by the journal beside its file, to a new file."""
    from air_recsys.models import Recommender
    from air_recsys.serving.changes import catch_up, journal_of

    loaded = Recommender.load(model)
    catch_up(loaded, journal_of(model))
    typer.echo(f"wrote {loaded.save(out)}")


def _token(file: Path | None) -> str:
    """Return the token of a file or of the environment; those on a command line are seen by all on the machine."""
    text = os.environ.get(_TOKEN, "") if file is None else file.read_text(encoding="utf-8", errors="replace")
    token = text.strip().strip("\ufeff").strip()
    if not re.fullmatch("[!-~]{16,}", token):
        odd = sorted(set(re.sub("[!-~]", "", token)))
        found = f"{len(token)} characters in {file or _TOKEN}" + f", among them {quoted(odd)}" * bool(odd)
        raise ParameterError(f"expected a token of at least 16, as openssl rand -hex 32 makes it, found {found}")
    return token
