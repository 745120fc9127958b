"""Commands that measure accuracy: ratings, ranking, affinities and dti."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options
from air_recsys.exceptions import DataError, ParameterError
from benchmarks.accuracy.experiments import experiment

if TYPE_CHECKING:
    from air_recsys.evaluation.results import ResultTable
    from air_recsys.evaluation.system import System

_N_SEEDS = len(experiment("dti")["seeds"])
Threads = Annotated[int, typer.Option(min=1, help="Threads of every system.")]
Validation = Annotated[
    bool, typer.Option("--validation", help="Test on parts of the training data; the test parts are left out.")
]


def _one_of(option: str, names: Iterable[str], text: str) -> Any:
    """An option whose values are of some names."""
    known = list(names)

    def read(value: str) -> str:
        if value not in known:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(repr, known))}.")
        return value

    return typer.Option(option, parser=read, metavar=f"[{'|'.join(known)}]", help=text)


RATING_DATA, RANKING_DATA = experiment("ratings")["set"], experiment("ranking")["set"]
RankingSets = Annotated[
    list[str] | None,
    _one_of(
        "--set", RANKING_DATA, "May be repeated. By default all but those in order, which need the published files."
    ),
]


def ratings(
    sets: Annotated[list[str] | None, _one_of("--set", RATING_DATA, "May be repeated. By default all.")] = None,
    names: Annotated[
        list[str] | None, typer.Option("--system", help="Such as AIR; may be repeated. By default all.")
    ] = None,
    fold: Annotated[
        list[str] | None, typer.Option(help="A fold, such as u1; may be repeated. By default all.")
    ] = None,
    validation: Validation = False,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="AIR with its parts changed one at a time, with --validation.")
    ] = False,
    features: Annotated[
        bool, typer.Option("--features", help="Give the models age, gender, occupation, year and genres of MovieLens.")
    ] = False,
    graphs: Annotated[
        bool, typer.Option("--graphs", help="Give the models the graphs of Flixster and Douban.")
    ] = False,
    times: Annotated[
        bool,
        typer.Option("--times", help="Give the models the times of ratings, and ask for a time; only MovieLens-100K."),
    ] = False,
    keep: Annotated[
        list[float] | None,
        typer.Option(help="Train on this share of all ratings and test on the rest; may be repeated."),
    ] = None,
    cold: Annotated[
        list[str] | None,
        _one_of("--cold", ("user", "item"), "Hide all ratings of a tenth of the items or users; may be repeated."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        options.pairs("--air", "A parameter of AIR, for the systems that read it; may be repeated."),
    ] = None,
    data: options.DataFolder = None,
    seed: options.Seed = 0,
    threads: Threads = 1,
    json_file: options.JsonFile = None,
) -> None:
    """Error on test ratings of AIR beside Surprise and myFM in one run, and beside published figures."""
    from air_recsys.datasets import data_root
    from air_recsys.evaluation.system import check_changes
    from air_recsys.evaluation.systems import air_systems
    from benchmarks.accuracy.ratings import (
        ABLATIONS,
        bench_ratings,
        chosen_systems,
        rating_systems,
        systems_with_features,
        systems_with_graphs,
        systems_with_times,
    )
    from benchmarks.accuracy.ratings_data import (
        RATING_SETS,
        check_times,
        chosen_folds,
        known_graphs,
        known_tables,
        regime_folds,
        validation_fold,
    )

    if ablation and not validation:
        raise ParameterError("--ablation compares settings on validation parts: expected --validation with it")
    if ablation and (features or times or graphs):
        raise ParameterError(
            "--ablation changes a model of ratings: expected it without --features, --graphs and --times"
        )
    if fold and (keep or cold):
        raise ParameterError("--keep and --cold make folds of their own: expected them without --fold")
    changes, chosen = options.parse_settings(settings), sets or list(RATING_DATA)
    systems: dict[str, dict[str, System]] = {}
    root = data_root(data)
    for name in chosen:
        every = air_systems(ABLATIONS, changes, seed) if ablation else rating_systems(name, changes, seed)
        every = systems_with_times(changes, seed) if times else every
        every = systems_with_features(every, known_tables(name, root)) if features else every
        every = systems_with_graphs(known_graphs(name, root), changes, seed) if graphs else every
        systems[name] = chosen_systems(every, names or [])
        check_changes(systems[name], changes)
    sides, little = cold or [], bool(keep or cold)
    folds = {
        name: regime_folds(name, root, keep or [], sides, validation=validation, seed=seed)
        if little
        else chosen_folds(RATING_SETS[name].load(root), fold or [])
        for name in chosen
    }
    if times:
        check_times(folds)
    reports: list[ResultTable] = []
    for name in chosen:
        measured = [validation_fold(each, seed) for each in folds[name]] if validation and not little else folds[name]
        origin = (
            "a random part of all ratings shown, or a tenth of the users or items hidden whole" if little else None
        )
        if features or times or graphs:
            known = [
                *(["the graphs of Monti et al."] if graphs else []),
                *(["age, gender, occupation, year, genres"] if features else []),
                *(["the time of each"] if times else []),
            ]
            origin = f"{origin or RATING_SETS[name].origin}; beside the ratings {' and '.join(known)}"
        report = bench_ratings(
            name,
            measured,
            systems[name],
            validation=validation,
            origin=origin,
            timed=times,
            seed=seed,
            threads=threads,
        )
        given = {"--set": [name], "--system": names, "--fold": fold, "--air": settings, "--cold": sides}
        given["--keep"] = [f"{share:g}" for share in keep or []]
        flags = {
            "--features": features,
            "--graphs": graphs,
            "--times": times,
            "--validation": validation,
            "--ablation": ablation,
        }
        _publish_next(reports, report, benchmark_command("ratings", given, flags, seed), json_file)


def ranking(
    sets: RankingSets = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--system", help="May be repeated. By default all, EASE, RDLAE, Turbo-CF if items are few."),
    ] = None,
    validation: Annotated[
        bool, typer.Option("--validation", help="Test on a part of the training data; the test part is left out.")
    ] = False,
    new_users: Annotated[
        bool,
        typer.Option("--new-users", help="Test on users held out of the training: strong generalisation."),
    ] = False,
    settings: Annotated[list[str] | None, options.pairs("--ranker", "A parameter of GraphRanker.")] = None,
    data: options.DataFolder = None,
    seed: options.Seed = 0,
    threads: Threads = 1,
    json_file: options.JsonFile = None,
) -> None:
    """Recall and NDCG of GraphRanker beside implicit's models in one run, and beside published figures."""
    from air_recsys.datasets import data_root
    from air_recsys.models.graph_ranker.ranker import GraphRanker
    from benchmarks.accuracy.ranking import bench_ranking
    from benchmarks.accuracy.ranking_data import BY_DEFAULT, RANKING_SETS, new_users_part, validation_part
    from benchmarks.accuracy.ranking_systems import ranking_systems, systems_by_default
    from benchmarks.accuracy.ratings import chosen_systems

    if new_users and validation:
        raise DataError("--new-users has a split of its own: expected no --validation")
    changes = options.parse_settings(settings, GraphRanker())
    systems = {
        name: chosen_systems(
            ranking_systems(name, changes, seed, threads, new_users=new_users),
            names or systems_by_default(name, new_users=new_users),
        )
        for name in sets or BY_DEFAULT
    }
    root = data_root(data)
    folds = {name: RANKING_SETS[name].load(root) for name in systems}
    reports: list[ResultTable] = []
    for name, chosen in systems.items():
        fold = folds.pop(name)
        if validation:
            fold = validation_part(fold, seed, RANKING_SETS[name].kind)
        measured = new_users_part(fold, seed) if new_users else fold
        means, spreads = bench_ranking(name, measured, chosen, seed=seed, threads=threads)
        given = {"--set": [name], "--system": names, "--ranker": settings}
        call = benchmark_command("ranking", given, {"--validation": validation, "--new-users": new_users}, seed)
        for report in (means, spreads):
            _publish_next(reports, report, call, json_file)


def dti(
    sets: Annotated[
        list[str] | None, _one_of("--set", ("nr", "gpcr", "ic", "e"), "May be repeated. By default nr, gpcr, ic.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        _one_of("--setting", experiment("dti")["hidden"], "What is hidden; may be repeated. By default cvs1."),
    ] = None,
    similarities: Annotated[
        bool, typer.Option("--similarities", help="Give the models similarities of structures and sequences.")
    ] = False,
    seeds: Annotated[int, typer.Option(min=1, max=_N_SEEDS, help="Number of repetitions.")] = _N_SEEDS,
    validation: Validation = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Measure the calibration of AIR's probabilities instead.")
    ] = False,
    air: Annotated[list[str] | None, options.pairs("--air", "A parameter of AIR; may be repeated.")] = None,
    data: options.DataFolder = None,
    threads: Threads = 1,
    json_file: options.JsonFile = None,
) -> None:
    """Hidden drug-target interactions: AIR beside GIP, EASE, RLS-WNN, NRLMF and WkNNIR; published figures."""
    from air_recsys.datasets import data_root, load_yamanishi
    from benchmarks.accuracy.dti import SEEDS, bench_dti, bench_dti_probabilities, dti_systems

    chosen = settings or ["cvs1"]
    if not similarities and chosen != ["cvs1"]:
        raise DataError("whole hidden drugs and targets need --similarities: nothing else is known of them")
    options.refuse_unread("--probabilities", {"--validation": probabilities and validation})
    parameters = _dti_parameters(air)
    root = data_root(data)
    reports: list[ResultTable] = []
    known: list[Any] = sets or ["nr", "gpcr", "ic"]
    for name, setting in itertools.product(known, chosen):
        loaded, shared = load_yamanishi(root, name), {"similarities": similarities, "threads": threads}
        shared["seeds"] = SEEDS[:seeds]
        if probabilities:
            report = bench_dti_probabilities(name, loaded, setting, settings=parameters, **shared)
        else:
            systems = dti_systems(loaded, similarities, parameters, whole=setting != "cvs1")
            report = bench_dti(name, loaded, setting, systems, validation=validation, **shared)
        given = {"--set": [name], "--setting": [setting], "--air": air}
        given["--seeds"] = None if seeds == _N_SEEDS else [str(seeds)]
        flags = {"--similarities": similarities, "--validation": validation, "--probabilities": probabilities}
        _publish_next(reports, report, benchmark_command("dti", given, flags), json_file)


def affinities(
    settings: Annotated[
        list[options.Hidden] | None,
        typer.Option("--setting", help="What is hidden; may be repeated. By default pairs."),
    ] = None,
    names: Annotated[
        list[str] | None, typer.Option("--system", help="Such as AIR; may be repeated. By default all.")
    ] = None,
    validation: Validation = False,
    data: options.DataFolder = None,
    seed: options.Seed = 0,
    threads: Threads = 1,
    json_file: options.JsonFile = None,
) -> None:
    """Hidden affinities of Davis: AIR with similarities beside regressions on these in one run, published figures."""
    from air_recsys.datasets import data_root, load_davis
    from benchmarks.accuracy.affinities import bench_affinities

    davis, reports = load_davis(data_root(data)), []
    for setting in settings or [options.Hidden.PAIRS]:
        report = bench_affinities(davis, setting.value, names or [], validation=validation, seed=seed, threads=threads)
        command = benchmark_command(
            "affinities", {"--setting": [setting.value], "--system": names}, {"--validation": validation}, seed
        )
        _publish_next(reports, report, command, json_file)


def _dti_parameters(texts: list[str] | None) -> dict[str, Any]:
    """Parameters of `DrugTargetAIR` from NAME=VALUE."""
    from air_recsys.dti import DrugTargetAIR

    names, parameters = list(DrugTargetAIR().get_params()), options.parse_values(texts)
    for name in parameters:
        if name not in names:
            raise ParameterError(f"--air expects a parameter of DrugTargetAIR ({', '.join(names)}), found {name!r}")
    return parameters


def benchmark_command(
    name: str, given: Mapping[str, Sequence[str] | None], flags: Mapping[str, bool], seed: int = 0
) -> str:
    """The call that measures a report again, for the reader of its notes.

    Examples
    --------
    >>> benchmark_command("ratings", {"--set": ["ml-1m"], "--system": ["Surprise SVD"]}, {"--validation": True})
    "`python -m benchmarks ratings --set ml-1m --system 'Surprise SVD' --validation`"
    """
    words = [f"{option} {shlex.quote(value)}" for option, values in given.items() for value in values or []]
    words += [flag for flag, on in flags.items() if on] + ([f"--seed {seed}"] if seed else [])
    return f"`{' '.join(['python -m benchmarks', name, *words])}`"


def _publish_next(reports: list[ResultTable], report: ResultTable, call: str, json_file: Path | None) -> None:
    """Print a report with the call that measures it again, and write all so far: the next ones may take hours."""
    report.notes.insert(0, call)
    reports.append(report)
    options.publish(reports, json_file, shown=[report])


COMMANDS = {
    "ratings": ratings,
    "ranking": ranking,
    "dti": dti,
    "affinities": affinities,
}
"""The commands of ``python -m benchmarks`` by their names."""
