"""Commands on drugs and targets: train, rank, explain, evaluate, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from air_recsys.cli import options, paths
from air_recsys.exceptions import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from air_recsys.dti import DrugTargetAIR

app = paths.App(help="Drugs and targets: train, rank, explain, evaluate and report on your own pairs.")


_SETTINGS = dict(zip(options.Hidden, ("cvs1", "cvs2", "cvs3", "cvs4"), strict=True))

PairsFile = Annotated[
    Path,
    typer.Argument(
        help="Pairs (CSV, TSV or Parquet): columns drug and target, or a table of 1 and 0, drugs x targets."
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="A file that `dti train` wrote.")]
DrugColumn = Annotated[
    str, typer.Option("--drug-column", help="Column of the drugs, in a table with one pair per row.")
]
TargetColumn = Annotated[str, typer.Option("--target-column", help="Column of the targets.")]
ValueColumn = Annotated[
    str | None, typer.Option("--value-column", help="Column of 1 and 0, if its name is not interaction.")
]
Transpose = Annotated[bool, typer.Option("--transpose", help="The table has a row per target and a column per drug.")]
DrugSimilarity = Annotated[
    Path | None, typer.Option("--drug-similarity", help="Square table of similarities of drugs, in 0..1.")
]
TargetSimilarity = Annotated[
    Path | None, typer.Option("--target-similarity", help="Square table of similarities of targets, in 0..1.")
]
DrugFeatures = Annotated[
    Path | None, typer.Option("--drug-features", help="Fingerprints or other numbers, one row per drug.")
]
TargetFeatures = Annotated[Path | None, typer.Option("--target-features", help="Numbers, one row per target.")]
DrugSmiles = Annotated[
    Path | None, typer.Option("--drug-smiles", help="Two columns: drug and SMILES. Needs the extra chemistry.")
]
TargetSequences = Annotated[
    Path | None, typer.Option("--target-sequences", help="FASTA, or two columns: target and sequence.")
]
Parameters = Annotated[list[str] | None, options.pairs("--set", "A parameter of DrugTargetAIR; may be repeated.")]


@app.command()
def train(
    file: PairsFile,
    model: Annotated[Path, typer.Option("--model", callback=paths.writable, help="Where to write the model.")] = Path(
        "dti.air"
    ),
    drug: DrugColumn = "drug",
    target: TargetColumn = "target",
    value: ValueColumn = None,
    sep: options.Separator = None,
    encoding: options.Encoding = None,
    quote: options.Quote = None,
    transpose: Transpose = False,
    drug_similarity: DrugSimilarity = None,
    drug_features: DrugFeatures = None,
    drug_smiles: DrugSmiles = None,
    target_similarity: TargetSimilarity = None,
    target_features: TargetFeatures = None,
    target_sequences: TargetSequences = None,
    settings: Parameters = None,
) -> None:
    """Train DrugTargetAIR on recorded pairs and write the model."""
    from air_recsys.datasets import read_pairs

    air = _model(settings)
    writing = options.written(sep, encoding, quote)
    pairs = read_pairs(file, drug=drug, target=target, value=value, transpose=transpose, **writing)
    given = (
        _similarity("drug", similarity=drug_similarity, features=drug_features, smiles=drug_smiles),
        _similarity("target", similarity=target_similarity, features=target_features, sequences=target_sequences),
    )
    air.fit(pairs, *given)
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
        Path | None, typer.Option(callback=paths.writable, help="Also write the pairs to this CSV file.")
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
    file: PairsFile,
    drug: DrugColumn = "drug",
    target: TargetColumn = "target",
    value: ValueColumn = None,
    sep: options.Separator = None,
    encoding: options.Encoding = None,
    quote: options.Quote = None,
    transpose: Transpose = False,
    drug_similarity: DrugSimilarity = None,
    drug_features: DrugFeatures = None,
    drug_smiles: DrugSmiles = None,
    target_similarity: TargetSimilarity = None,
    target_features: TargetFeatures = None,
    target_sequences: TargetSequences = None,
    hide: Annotated[options.Hidden, typer.Option(help="What each fold hides.")] = options.Hidden.PAIRS,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 10,
    settings: Parameters = None,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Cross-validate on hidden pairs, and print the accuracy beside baselines."""
    from air_recsys.datasets import read_pairs
    from air_recsys.dti import evaluate_pairs

    air = _model(settings)
    writing = options.written(sep, encoding, quote)
    pairs = read_pairs(file, drug=drug, target=target, value=value, transpose=transpose, **writing)
    given = (
        _similarity("drug", similarity=drug_similarity, features=drug_features, smiles=drug_smiles),
        _similarity("target", similarity=target_similarity, features=target_features, sequences=target_sequences),
    )
    found = evaluate_pairs(air, pairs, *given, setting=_SETTINGS[hide], n_splits=folds, random_state=seed)
    typer.echo(f"means over folds of hidden {hide.value}; the model knows which pairs are hidden, the others do not")
    options.show_frame(found, json_file)


@app.command()
def report(
    model: ModelFile,
    out: Annotated[Path, typer.Option(callback=paths.writable, help="The page to write.")] = Path("dti.html"),
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


def _similarity(side: str, **files: Path | None) -> pd.DataFrame | None:
    """The similarity of a side as one of its files tells it."""
    given = {kind: file for kind, file in files.items() if file is not None}
    if len(given) > 1:
        names = " and ".join(f"--{side}-{kind}" for kind in given)
        raise ParameterError(f"expected one file for the similarities of {side}s, found {names}")
    for kind, file in given.items():
        return _read(kind, file)
    return None


def _read(kind: str, file: Path) -> pd.DataFrame:
    from air_recsys import datasets, dti

    if kind == "similarity":
        return datasets.read_square(file)
    if kind == "features":
        return dti.feature_similarity(datasets.read_pairs(file, drug="", target=""))
    texts = datasets.read_texts(file)
    return dti.smiles_similarity(texts) if kind == "smiles" else dti.sequence_similarity(texts)
