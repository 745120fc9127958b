"""Commands on drugs and targets: train, rank, explain, screen, evaluate, report."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options, paths

if TYPE_CHECKING:
    from air_recsys.dti import DrugTargetAIR
    from air_recsys.models import AIR

app = paths.App(help="Drugs and targets: train, rank, explain, screen, evaluate and report on your own pairs.")


_SETTINGS = dict(zip(options.Hidden, ("cvs1", "cvs2", "cvs3", "cvs4", "year", ""), strict=True))

ModelFile = Annotated[Path, typer.Argument(help="A file that `dti train` wrote.")]
Parameters = Annotated[list[str] | None, options.pairs("--set", "A parameter of DrugTargetAIR; may be repeated.")]


@dataclass
class _Columns:
    file: Annotated[
        Path,
        typer.Argument(
            help="Pairs (CSV, TSV or Parquet): columns drug and target, or a table of 1 and 0, drugs x targets."
        ),
    ]
    drug: Annotated[
        str, typer.Option("--drug-column", help="Column of the drugs, in a table with one pair per row; their word.")
    ] = "drug"
    target: Annotated[
        str, typer.Option("--target-column", help="Column of the targets, such as disease; their word.")
    ] = "target"
    value: Annotated[
        str | None, typer.Option("--value-column", help="Column of 1 and 0, if its name is not interaction.")
    ] = None


@dataclass
class Pairs(options.Form, _Columns):
    """A file of pairs, and those that tell how alike drugs are, and targets."""

    transpose: Annotated[
        bool, typer.Option("--transpose", help="The table has a row per target and a column per drug.")
    ] = False
    drug_similarity: Annotated[Path | None, typer.Option(help="Square table of similarities of drugs, in 0..1.")] = (
        None
    )
    drug_features: Annotated[Path | None, typer.Option(help="Fingerprints or other numbers, one row per drug.")] = None
    drug_smiles: Annotated[
        Path | None, typer.Option(help="Two columns: drug and SMILES. Needs the extra chemistry.")
    ] = None
    target_similarity: Annotated[
        Path | None, typer.Option(help="Square table of similarities of targets, in 0..1.")
    ] = None
    target_features: Annotated[Path | None, typer.Option(help="Numbers, one row per target.")] = None
    target_sequences: Annotated[Path | None, typer.Option(help="FASTA, or two columns: target and sequence.")] = None

    names: Annotated[Path | None, typer.Option(help="Two columns: ids of drugs and targets, and names.")] = None

    def read(self) -> tuple[Any, dict[str, Any]]:
        """Return the pairs, and what is told of drugs and of targets, as for a fit."""
        from air_recsys.data.readers.measurements_file import is_measurements
        from air_recsys.datasets import read_measurements, read_pairs

        if self.file.is_file() and is_measurements(self.file):
            table, smiles, sequences = read_measurements(self.file, self.value)
            table = table.rename(columns={"user": self.drug, "item": self.target})
            texts = ("drug", "smiles", smiles), ("target", "sequences", sequences)
            found = {f"{side}_similarity": {kind: each} for side, kind, each in texts if len(each)}
            return table, {"drug": self.drug, "target": self.target} | found | self._described()
        how: Any = {"drug": self.drug, "target": self.target, "value": self.value, "transpose": self.transpose}
        table = read_pairs(self.file, **how, **self.reading())
        if list(table.columns[:2]) == ["drug", "target"]:
            table = table.rename(columns={"drug": self.drug, "target": self.target})
        return table, {"drug": self.drug, "target": self.target} | self._described()

    def _described(self) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for side, kind in itertools.product(("drug", "target"), ("similarity", "features", "smiles", "sequences")):
            if (file := getattr(self, f"{side}_{kind}", None)) is not None:
                given.setdefault(f"{side}_similarity", {})[kind] = _read(kind, file)
        return given


@app.command()
def train(
    pairs: Pairs,
    *,
    model: Annotated[Path, typer.Option("--model", callback=paths.as_model, help="Where to write the model.")] = Path(
        "dti.air"
    ),
    settings: Parameters = None,
) -> None:
    """Train DrugTargetAIR on recorded pairs and write the model."""
    table, how = pairs.read()
    air = _model(settings).fit(table, **how, names=None if pairs.names is None else _read("names", pairs.names))
    data = air.interactions_
    n_known = int((data.ratings == 1).sum())
    typer.echo(
        f"{data.n_users} {air.drugs_.kind}s, {data.n_items} {air.targets_.kind}s, {n_known} known interactions, "
        f"{data.n_ratings - n_known} pairs recorded as 0"
    )
    if air.described_line_:
        typer.echo(air.described_line_)
    for graph in (air.drug_graph_, air.target_graph_):
        typer.echo(repr(graph))
    typer.echo(f"wrote {air.save(model)}")


@app.command()
def rank(
    model: ModelFile,
    n: Annotated[int, typer.Option("--n", help="Number of pairs.")] = 20,
    drug: Annotated[list[str] | None, typer.Option("--drug", help="Only pairs of this drug; may be repeated.")] = None,
    target: Annotated[
        list[str] | None, typer.Option("--target", help="Only pairs of this target; may be repeated.")
    ] = None,
    known: Annotated[bool, typer.Option("--known", help="Include known interactions.")] = False,
    out: Annotated[
        Path | None, typer.Option(callback=paths.as_csv, help="Also write the pairs to this CSV file.")
    ] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Print the pairs that most probably interact, best first."""
    from air_recsys.dti import DrugTargetAIR
    from air_recsys.storage.writing import replace_file

    loaded = DrugTargetAIR.load(model)
    drugs = None if drug is None else options.as_ids(drug, loaded.drugs_.ids)
    targets = None if target is None else options.as_ids(target, loaded.targets_.ids)
    found = loaded.new_interactions(n, drugs, targets, include_known=known)
    if out is not None:
        replace_file(out, found.to_csv(index=False).encode())
    options.show_frame(found, json_file)


@app.command()
def explain(
    model: ModelFile,
    drug: Annotated[str, typer.Option("--drug", help="A drug's id.")],
    target: Annotated[str, typer.Option("--target", help="A target's id.")],
    n: Annotated[int, typer.Option("--n", help="Maximum number of rows of the table.")] = 10,
    json_file: options.JsonFile = None,
) -> None:
    """Print the contributions of known interactions to the score of a pair; the parts add up to it."""
    from air_recsys.dti import DrugTargetAIR

    loaded = DrugTargetAIR.load(model)
    (drug_id,), (target_id,) = options.as_ids([drug], loaded.drugs_.ids), options.as_ids([target], loaded.targets_.ids)
    found = loaded.explain(drug_id, target_id, n)
    typer.echo(str(found))
    options.write_figures(json_file, found.to_dict(), origin=False)


@app.command()
def screen(
    model: ModelFile,
    library: Annotated[
        Path, typer.Argument(help="SMILES, a line each, with or without names; may be packed by gzip.")
    ],
    target: Annotated[
        list[str] | None, typer.Option("--target", help="Only pairs with this target; may be repeated.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Number of pairs.")] = 100,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes that read structures; by default one a core.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(callback=paths.as_csv, help="Write the pairs to this CSV file, in place of showing.")
    ] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Print the compounds of a library that most probably interact, best first, with the nearest known one."""
    from air_recsys.dti import DrugTargetAIR
    from air_recsys.dti import screen as screened
    from air_recsys.storage.threads import cores
    from air_recsys.storage.writing import replace_file

    loaded = DrugTargetAIR.load(model)
    targets = None if target is None else options.as_ids(target, loaded.targets_.ids)
    found = screened(loaded, library, targets, top, n_processes=processes or cores())
    if out is not None:
        replace_file(out, found.to_csv(index=False).encode())
        typer.echo(f"wrote {out}")
    if out is None or json_file is not None:
        options.show_frame(found, json_file)


@app.command()
def evaluate(
    pairs: Pairs,
    *,
    hide: Annotated[options.Hidden, typer.Option(help="What each fold hides.")] = options.Hidden.PAIRS,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 10,
    settings: Parameters = None,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Cross-validate on hidden pairs, and print the accuracy beside baselines; of affinities that of AIR."""
    from air_recsys.dti import evaluate_pairs, evaluate_splits

    table, given = pairs.read()
    how: dict[str, Any] = {**given, "n_splits": folds, "random_state": seed}
    values = table.get("rating", table.get("interaction"))
    if affinities := values is not None and not values.isin([0, 1]).all():
        table, model = table.rename(columns={"interaction": "rating"}), _air(settings, seed)
    else:
        model = _model(settings)
    if hide is options.Hidden.ALL:
        found = evaluate_splits(model, table, **how)
    else:
        found = evaluate_pairs(model, table, setting=_SETTINGS[hide], **how)
    of_pairs = "" if affinities else "; the model knows which pairs are hidden, the others do not"
    typer.echo(f"means over folds of hidden {hide.value}{of_pairs}")
    options.show_frame(found, json_file)


@app.command()
def report(
    model: ModelFile,
    out: Annotated[Path, typer.Option(callback=paths.as_html, help="The page to write.")] = Path("dti.html"),
    n: Annotated[int, typer.Option("--n", min=1, help="Number of new interactions to list.")] = 50,
) -> None:
    """Write one HTML page: new interactions with their reasons, accuracy, and both graphs."""
    from air_recsys.dti import DrugTargetAIR
    from air_recsys.report import write_drug_target_report

    typer.echo(f"wrote {write_drug_target_report(DrugTargetAIR.load(model), out, n)}")


def _air(settings: list[str] | None, seed: int) -> AIR:
    from air_recsys.models import AIR

    return AIR.for_ratings(**{"random_state": seed} | options.parse_settings(settings))


def _model(settings: list[str] | None) -> DrugTargetAIR:
    from air_recsys.dti import DrugTargetAIR
    from air_recsys.storage.validation import check_parameters

    air = DrugTargetAIR()
    air = DrugTargetAIR(**options.parse_settings(settings, air))
    check_parameters(air)
    return air


def _read(kind: str, file: Path) -> Any:
    from air_recsys import datasets

    if kind == "similarity":
        return datasets.read_square(file)
    return datasets.read_pairs(file, drug="", target="") if kind == "features" else datasets.read_texts(file)
