"""Commands on drugs and targets: train, rank, explain, evaluate, report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options, paths
from air_recsys.exceptions import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from air_recsys.dti import DrugTargetAIR

app = paths.App(help="Drugs and targets: train, rank, explain, evaluate and report on your own pairs.")


_SETTINGS = dict(zip(options.Hidden, ("cvs1", "cvs2", "cvs3", "cvs4", ""), strict=True))

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
        str, typer.Option("--drug-column", help="Column of the drugs, in a table with one pair per row.")
    ] = "drug"
    target: Annotated[str, typer.Option("--target-column", help="Column of the targets.")] = "target"
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

    def read(self) -> tuple[pd.DataFrame | None, ...]:
        """Return the pairs, and the similarities of drugs and of targets."""
        from air_recsys.datasets import read_pairs

        names: Any = {"drug": self.drug, "target": self.target, "value": self.value, "transpose": self.transpose}
        return read_pairs(self.file, **names, **self.reading()), self._similarity("drug"), self._similarity("target")

    def groups(self) -> dict[str, Any]:
        """Return the scaffolds of drugs whose structures are known."""
        from air_recsys.datasets import read_texts
        from air_recsys.dti import scaffolds

        return {} if self.drug_smiles is None else {"drug_groups": scaffolds(read_texts(self.drug_smiles))}

    def _similarity(self, side: str) -> pd.DataFrame | None:
        """The similarity of a side as one of its files tells it."""
        kinds = ("similarity", "features", "smiles", "sequences")
        given = {kind: file for kind in kinds if (file := getattr(self, f"{side}_{kind}", None)) is not None}
        if len(given) > 1:
            names = " and ".join(f"--{side}-{kind}" for kind in given)
            raise ParameterError(f"expected one file for the similarities of {side}s, found {names}")
        for kind, file in given.items():
            return _read(kind, file)
        return None


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
    air = _model(settings).fit(*pairs.read())
    data = air.interactions_
    n_known = int((data.ratings == 1).sum())
    typer.echo(
        f"{data.n_users} drugs, {data.n_items} targets, {n_known} known interactions, "
        f"{data.n_ratings - n_known} pairs recorded as 0"
    )
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
def evaluate(
    pairs: Pairs,
    *,
    hide: Annotated[options.Hidden, typer.Option(help="What each fold hides.")] = options.Hidden.PAIRS,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 10,
    settings: Parameters = None,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Cross-validate on hidden pairs, and print the accuracy beside baselines."""
    from air_recsys.dti import evaluate_pairs, evaluate_splits

    how: dict[str, Any] = {"n_splits": folds, "random_state": seed}
    if hide is options.Hidden.ALL:
        found = evaluate_splits(_model(settings), *pairs.read(), **pairs.groups(), **how)
    else:
        found = evaluate_pairs(_model(settings), *pairs.read(), setting=_SETTINGS[hide], **how)
    typer.echo(f"means over folds of hidden {hide.value}; the model knows which pairs are hidden, the others do not")
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


def _model(settings: list[str] | None) -> DrugTargetAIR:
    from air_recsys.dti import DrugTargetAIR
    from air_recsys.storage.validation import check_parameters

    air = DrugTargetAIR()
    air = DrugTargetAIR(**options.parse_settings(settings, air))
    check_parameters(air)
    return air


def _read(kind: str, file: Path) -> pd.DataFrame:
    from air_recsys import datasets, dti

    if kind == "similarity":
        return datasets.read_square(file)
    if kind == "features":
        return dti.feature_similarity(datasets.read_pairs(file, drug="", target=""))
    texts = datasets.read_texts(file)
    return dti.smiles_similarity(texts) if kind == "smiles" else dti.sequence_similarity(texts)
