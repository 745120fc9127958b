"""The command that measures the prediction of drug-target interactions."""

from __future__ import annotations

import itertools
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options
from air_recsys.exceptions import DataError, ParameterError

if TYPE_CHECKING:
    from air_recsys.results import ResultTable


_N_SEEDS = 5  # `air_recsys.benchmarks.accuracy.dti.SEEDS`


class Set(StrEnum):
    """The sets of Yamanishi et al., 2008."""

    NR = "nr"
    GPCR = "gpcr"
    IC = "ic"
    E = "e"


class Setting(StrEnum):
    """What is hidden: pairs, drugs, targets, or drugs and targets."""

    CVS1 = "cvs1"
    CVS2 = "cvs2"
    CVS3 = "cvs3"
    CVS4 = "cvs4"


def dti(
    sets: Annotated[list[Set] | None, typer.Option("--set", help="May be repeated. By default nr, gpcr, ic.")] = None,
    settings: Annotated[
        list[Setting] | None, typer.Option("--setting", help="May be repeated. By default cvs1.")
    ] = None,
    similarities: Annotated[
        bool, typer.Option("--similarities", help="Show structures' and sequences' similarities too.")
    ] = False,
    seeds: Annotated[int, typer.Option(min=1, max=_N_SEEDS, help="Repetitions.")] = _N_SEEDS,
    validation: Annotated[
        bool, typer.Option("--validation", help="Test on parts of the training data; the test parts are left out.")
    ] = False,
    air: Annotated[
        list[str] | None, typer.Option("--air", metavar="NAME=VALUE", help="A parameter of AIR; may be repeated.")
    ] = None,
    data: options.DataFolder = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of every system.")] = 1,
    json_file: options.JsonFile = None,
) -> None:
    """Hidden drug-target interactions: AIR beside GIP, EASE, RLS-WNN and NRLMF in one run, and published figures."""
    from air_recsys.benchmarks.accuracy.dti import SEEDS, bench_dti
    from air_recsys.benchmarks.accuracy.dti_systems import dti_systems
    from air_recsys.datasets import data_root, load_yamanishi

    options.check_folder_of(json_file)
    chosen = [each.value for each in settings or [Setting.CVS1]]
    if not similarities and chosen != ["cvs1"]:
        raise DataError("whole hidden drugs and targets need --similarities: nothing else is known of them")
    systems = dti_systems(similarities, _parameters(air))
    root = data_root(data)
    reports: list[ResultTable] = []
    for name, setting in itertools.product(sets or [Set.NR, Set.GPCR, Set.IC], chosen):
        found = bench_dti(
            name.value,
            load_yamanishi(root, name.value),
            setting,
            systems,
            similarities=similarities,
            seeds=SEEDS[:seeds],
            validation=validation,
            threads=threads,
        )
        given = {"--set": [name.value], "--setting": [setting], "--air": air}
        given["--seeds"] = None if seeds == _N_SEEDS else [str(seeds)]
        flags = {"--similarities": similarities, "--validation": validation}
        found.notes.insert(0, options.benchmark_command("dti", given, flags))
        reports.append(found)
        options.show_last(reports, json_file)


def _parameters(texts: list[str] | None) -> dict[str, Any]:
    """Return parameters of `DrugTargetAIR` from NAME=VALUE."""
    from air_recsys.dti import DrugTargetAIR

    known, found = DrugTargetAIR().get_params(), options.parse_values(texts)
    for name in found:
        if name not in known:
            raise ParameterError(f"--air expects a parameter of DrugTargetAIR ({', '.join(known)}), found {name!r}")
    return found
