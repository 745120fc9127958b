"""The code of every page, notebook and example runs, in an empty folder; what a page says it prints, it prints.

What each page takes for granted, small files and names in its code, is made here. The cells of the short notebooks run
when the site is built, see test_docs_site.py.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

# Before MLflow is imported: no message to its makers, and its folder store, which needs no database package.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"

import doc_pages
import joblib
from doc_pages import CELL, PAGES, ROOT, Block, blocks, commands, name_of
from PIL import Image
from sklearn.datasets import load_breast_cancer
from sklearn.utils import Bunch

from air_recsys import AIR, Interactions, datasets
from air_recsys.cli import main
from air_recsys.datasets import DrugTargetData
from air_recsys.models.presets import PRESETS, Preset
from air_recsys.models.solvers import SOLVERS

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LANGUAGES_OF = {page: {block.language for block in blocks(page)} for page in PAGES}
CODE = [page for page, found in LANGUAGES_OF.items() if "python" in found or {CELL, "bash"} <= found]
LANGUAGES = {"python", CELL, "bash", "text", "", "{toctree}", "{eval-rst}", "{include} ../CHANGELOG.md"}
QUICK = {"train", "evaluate", "compare", "recommend", "predict", "similar", "explain", "graph", "report", "inpaint"}
AS_WRITTEN = {"docs/making/walk.md"}  # it says what a whole training ends in
# A notebook whose cells run here, and not when the site is built: it trains for long.
SHORTER = {"docs/plots.md": (("n_epochs=6000", "n_epochs=60"), ("(400, 1200, 2400, 4000)", "(4, 12, 24, 40)"))}
FEWER_TRIALS = "n_trials=50", "n_trials=5"
CELL_HEAD = re.compile(r"\A(---\n.*?^---\n|(?::.*\n)+)", re.DOTALL | re.MULTILINE)
MOST_WORDS = 30_000  # of README and docs/ but for docs/making/
LOOKS_LIKE_CODE = re.compile(r"^(from|import) \w+|^[a-z_]+ = \w+[.(]|^(air-recsys|pip|python|torchrun) ", re.MULTILINE)

Names = dict[str, Any]
FOUR = ["ann", "bob", "cid", "dan"]


# -------------------------------------------------------------------- what pages take for granted


def table(n_users: int = 30, n_items: int = 25, share: float = 0.5) -> pd.DataFrame:
    """Ratings 1..5 of two groups of users for two groups of items, with noise."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((n_users, n_items)) < share)
    ratings = np.where(users % 2 == items % 2, 4.5, 2.0) + 0.7 * rng.standard_normal(users.size)
    names = [*FOUR, *(f"user {number}" for number in range(len(FOUR), n_users))]
    return pd.DataFrame(
        {
            "user": [names[user] for user in users],
            "item": [f"item {item}" for item in items],
            "rating": ratings.round().clip(1, 5),
        }
    )


TITLES = pd.DataFrame({"item": [f"item {number}" for number in range(25)], "title": [f"film {n}" for n in range(25)]})


def write_files(folder: Path) -> None:
    """Tables in every form, a model, and pictures."""
    ratings = table()
    ratings.to_csv(folder / "ratings.csv", index=False)
    ratings[["user", "item"]].head(3).to_csv(folder / "pairs.csv", index=False)
    ratings[["user", "item"]].to_csv(folder / "likes.txt", sep=";", header=False, index=False)
    lists = (
        " ".join(name.replace(" ", "_") for name in (user, *own["item"])) for user, own in ratings.groupby("user")
    )
    (folder / "lists.txt").write_text("\n".join(lists))
    ratings.query("rating > 3").to_csv(folder / "likes.csv", index=False)
    ratings.to_csv(folder / "u.data", sep="\t", header=False, index=False)
    # A user a row, on a scale of -10..10, with 99 for missing.
    wide = ratings.assign(rating=5 * ratings["rating"] - 15).pivot(index="user", columns="item")
    wide["rating"].fillna(99).to_csv(folder / "jokes.csv")
    table(share=0.1).to_csv(folder / "unseen.csv", index=False)
    TITLES.rename(columns={"item": "id"}).to_csv(folder / "titles.csv", index=False)
    (folder / "ratings").mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(ratings)), 2)):
        ratings.iloc[part].to_parquet(folder / "ratings" / f"part-{number}.parquet")
    waves = np.sin(np.arange(40) / 3)[:, None] * np.cos(np.arange(40) / 5)
    Image.fromarray((127 * (waves + 1)).astype(np.uint8)).save(folder / "picture.png")
    mask = np.random.default_rng(0).random((40, 40)) < 0.7
    Image.fromarray(255 * mask.astype(np.uint8)).save(folder / "mask.png")
    AIR.for_ratings(random_state=0, device="cpu").fit(Interactions.from_frame(ratings)).save(folder / "model.air")


def opened(*names: str, **more: Any) -> Names:
    """The model, its ratings and the titles, or some of them, and more."""
    model = AIR.load("model.air")
    found = {"model": model, "data": model.interactions_, "titles": TITLES}
    return {name: found[name] for name in names or found} | more


def tuning() -> Names:
    import mlflow

    mlflow.set_tracking_uri((Path.cwd() / "mlruns").as_uri())
    names = opened()
    return names | {"train": names["data"], "mlflow": mlflow}


def explanations() -> Names:
    made = runpy.run_path(str(ROOT / "examples" / "explain.py"))["made_ratings"]()
    model = AIR.for_ratings(random_state=0, device="cpu").fit(made)
    model.save("model.air")
    labels = {item: f"film {item}" for item in range(150)}
    pd.DataFrame({"id": list(labels), "title": list(labels.values())}).to_csv("titles.csv", index=False)
    return {"model": model, "titles": labels}


def explorer() -> Names:
    names = opened()
    items, users = names["model"].item_graph_, names["model"].user_graph_
    return names | {"items": items, "users": users, "early": items.top(2)}


def ranking() -> Names:
    liked = table().query("rating > 3").replace({"item 1": "x", "item 2": "z"})
    liked[["user", "item"]].to_csv("likes.csv", index=False)
    columns = {"users": liked["user"], "items": liked["item"], "times": np.arange(len(liked))}
    kinds = {item: f"kind {place % 3}" for place, item in enumerate(liked["item"].unique())}
    return {"user_ids": FOUR} | columns | {"genres": kinds, "brands": kinds}


def compared() -> Names:
    ratings = table()
    for name, part in (("train", ratings[::2]), ("test", ratings[1::2])):
        part.to_csv(f"{name}.csv", index=False)
    users, items = ratings["user"].unique(), ratings["item"].unique()
    pd.DataFrame({"user": users, "age": np.arange(users.size)}).to_csv("users.csv", index=False)
    lists = pd.DataFrame({"user": users.repeat(items.size), "item": np.tile(items, users.size)})
    lists.assign(rank=lists.groupby("user").cumcount() + 1).to_csv("lists.csv", index=False)
    return opened(Interactions=Interactions, table=ratings)


def featured() -> Names:
    """Ratings of films with genres and years; nobody has rated the last ones."""
    rated = table(60, 36, 0.4).assign(item=lambda frame: frame["item"].str.replace("item ", "film"))
    rated.to_csv("ratings.csv", index=False)
    films = pd.DataFrame({"item": [f"film{number}" for number in range(40)], "year": np.arange(1950, 1990)})
    films.assign(genres=["Drama|War", "Comedy"] * 20).to_csv("films.csv", index=False)
    alike = np.equal.outer(np.arange(40) % 2, np.arange(40) % 2).astype(float)
    pd.DataFrame(alike, films["item"], films["item"]).to_csv("similar.csv")
    return {}


def dated() -> Names:
    """Ratings of five sittings of each user, with moods."""
    rated, rng = table(60, 60), np.random.default_rng(0)
    sitting = rng.integers(0, 5, len(rated))
    moods = 0.7 * rng.standard_normal((60, 5))[rated["user"].factorize()[0], sitting]
    seconds = 1_600_000_000 + 500_000 * sitting + rng.integers(0, 60, len(rated))
    rated.assign(rating=rated["rating"] + moods + 5, seconds=seconds).to_csv("ratings.csv", index=False)
    return {}


def drugs() -> Names:
    names = ["aspirin", "ibuprofen", "caffeine", "theophylline"], ["COX1", "COX2", "A1", "A2A"]
    known = [[1, 1, 0, None], [1, 0, 0, 0], [0, 0, 1, 1], [0, None, 1, 0]]
    pd.DataFrame(known, *names).to_csv("table.csv")
    datasets.load_yamanishi = lambda *_: studied("D00283", ["hsa1812", "hsa1813"], 0, 0)
    datasets.load_davis = lambda *_: studied("11314340", ["AAK1", "YES"], 6, 0.2)
    return {"root": "data"}


def studied(drug: str, targets: list[str], low: float, noise: float) -> DrugTargetData:
    """Drugs and targets in two groups, with the names that the page asks for."""
    names = [drug, *map(str, range(11))], [*targets, *map(str, range(8))]
    groups = [np.arange(len(ids)) % 2 for ids in names]
    values = low + np.equal.outer(*groups) + noise * np.random.default_rng(0).standard_normal((12, 10))
    similar = (
        pd.DataFrame(0.5 * (1 + np.equal.outer(group, group)), ids, ids)
        for group, ids in zip(groups, names, strict=True)
    )
    smiles = pd.Series(
        [("C" * (number + 1) + "O", "c1ccccc1" + "N" * number)[number % 2] for number in range(12)], names[0]
    )
    sequences = pd.Series(
        [("MKVLA", "GHEWR")[number % 2] * 6 + "ACDEFGHIKL"[number:] for number in range(10)], names[1]
    )
    return DrugTargetData(Interactions.from_dense(values, *names), *similar, smiles=smiles, sequences=sequences)


def surprise() -> Names:
    from surprise import Dataset, Reader

    data = Dataset.load_from_df(table(), Reader(rating_scale=(1, 5)))
    Dataset.load_builtin = lambda *_: data
    trainset = data.build_full_trainset()
    return {"trainset": trainset, "testset": trainset.build_testset()}


def implicit() -> Names:
    likes = sp.csr_matrix((np.random.default_rng(0).random((40, 30)) < 0.3).astype(np.float32))
    return {"user_items": likes, "userids": np.arange(4)}


def sklearn() -> Names:
    frame = load_breast_cancer(as_frame=True)["data"].iloc[:150, :12]
    return {"frame": frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2)}


def cornac() -> Names:
    from cornac.data import Dataset

    from air_recsys.adapters.cornac import CornacAIR

    ratings = table(60, 80, 0.2)  # no fewer items than the index has cells
    ratings["item"] = ratings["item"].replace({"item 1": "528"})
    ratings["user"] = ratings["user"].replace({"ann": "user 1", "bob": "user 2"})
    triples = list(ratings.itertuples(index=False, name=None))
    train_set = Dataset.from_uir(triples, seed=0)
    return {"triples": triples, "train_set": train_set, "model": CornacAIR(seed=0).fit(train_set)}


SETTINGS: dict[str, Callable[[], Names]] = {
    **{f"docs/{name}.md": opened for name in ("trust", "start", "serving", "ratings", "index", "distributed")},
    "README.md": opened,
    "docs/explanations.md": explanations,
    "docs/ranking.md": ranking,
    "docs/exporting.md": lambda: opened("model", user_ids=FOUR, positions=np.array([0, 1]), out_of_stock=["item 1"]),
    "docs/features.md": featured,
    "docs/similarities.md": featured,
    "docs/time.md": dated,
    "docs/compare.md": compared,
    "docs/checkpoints.md": lambda: opened(ratings=table()),
    "docs/gpu-and-scale.md": lambda: opened("data"),
    "docs/dti.md": drugs,
    "docs/explorer.md": explorer,
    "docs/plots.md": lambda: opened(unseen=Interactions.from_frame(table(share=0.1)), titles=None),
    "docs/tuning.md": tuning,
    "docs/adapters/surprise.md": surprise,
    "docs/adapters/implicit.md": implicit,
    "docs/adapters/sklearn.md": sklearn,
    "docs/adapters/cornac.md": cornac,
}


# -------------------------------------------------------------------- running


def shortened(preset: Preset, steps: int) -> Preset:
    """A preset with few epochs, or sweeps, of each of its solvers."""
    solvers = {solver: preset.solvers.get(solver, {}) | {f"n_{kind.unit}s": steps} for solver, kind in SOLVERS.items()}
    return replace(preset, solvers=solvers)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with threads as in a new process, and loaders that pages may replace."""
    torch.set_num_threads(1)  # a library of the page before may have set more
    for name in ("load_yamanishi", "load_davis"):
        monkeypatch.setattr(datasets, name, getattr(datasets, name))
    for name in ("work", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short trainings: the code is tested here, not what it reaches."""
    for name, steps in (("ratings", 2), ("completion", 60)):
        monkeypatch.setitem(PRESETS, name, shortened(PRESETS[name], steps))
    whole = load_breast_cancer()
    few = Bunch(data=whole.data[:60, :6], target=np.arange(60) % 2, feature_names=whole.feature_names[:6])
    monkeypatch.setattr("sklearn.datasets.load_breast_cancer", lambda: few)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that pages take for granted."""
    folder = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patches:
        patches.setitem(PRESETS, "ratings", shortened(PRESETS["ratings"], 2))
        write_files(folder)
    return folder


def run_shell(block: Block) -> None:
    """Run the commands of a block that take seconds."""
    for line in commands(block):
        words = shlex.split(line)[1:]
        if words[0] in QUICK:
            with pytest.raises(SystemExit) as ended:
                main(words)
            assert not ended.value.code, line


def code_of(page: Path, block: Block) -> str:
    """The code of a block, "" where it is a cell that runs when the site is built."""
    if block.language == "python":
        return block.text.replace(*FEWER_TRIALS)
    text = CELL_HEAD.sub(lambda head: "\n" * head[0].count("\n"), block.text)
    for long, short in SHORTER.get(name_of(page), ()):
        text = text.replace(long, short)
    return text if name_of(page) in SHORTER else ""


def run_page(page: Path, names: Names) -> None:
    printed = ""
    for block in blocks(page):
        if block.language in ("python", CELL):
            # Blank lines before it: a traceback then names the line of the page.
            code = compile("\n" * (block.line - 1) + code_of(page, block), name_of(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code, names)
            printed = output.getvalue()
        elif block.language == "bash":
            run_shell(block)
        elif block.language == "text" and printed:
            same = doctest.OutputChecker().check_output(block.text, printed, doctest.ELLIPSIS)
            assert same, f"line {block.line}: expected\n{block.text}\nfound\n{printed}"
            printed = ""


@pytest.mark.parametrize("page", CODE, ids=name_of)
@pytest.mark.filterwarnings("ignore:Model is already fitted:UserWarning")  # Cornac's, where an index takes a model
def test_the_code_of_a_page_runs(page, empty, files, request):
    shutil.copytree(files, empty, dirs_exist_ok=True)
    if name_of(page) not in AS_WRITTEN:
        request.getfixturevalue("quick")
    if name_of(page) == "docs/exporting.md":
        request.getfixturevalue("in_process")
    with joblib.parallel_config("threading"):  # workers of their own would import everything again
        run_page(page, {"__name__": "page", **SETTINGS.get(name_of(page), dict)()})


WITHOUT = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {!r}:
            raise ModuleNotFoundError(f"No module named {{name}}", name=name)
sys.meta_path.insert(0, Without())
"""


def cells(notebook: Path) -> list[str]:
    """The code of the cells of a notebook without outputs."""
    found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in found if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in code)
    return ["".join(cell["source"]) for cell in code]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")
def test_a_notebook_runs_by_itself_and_leaves_nothing_behind(notebook, empty, quick):
    names: Names = {"__name__": "notebook"}
    for place, code in enumerate(cells(notebook)):
        exec(compile(code, f"{notebook.name}, cell {place}", "exec"), names)
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "lacking", "extra"), [("graphs", "matplotlib", "viz"), ("replacing", "surprise", "surprise")]
)
def test_a_notebook_without_its_extra_ends_with_a_line_that_names_it(name, lacking, extra, empty):
    """In a process of its own, in which the extra cannot be imported."""
    code = "\n".join([WITHOUT.format(lacking), *cells(ROOT / f"docs/notebooks/{name}.ipynb")])
    code = code.replace("AIR.for_completion(random_state=0)", "AIR.for_completion(random_state=0, n_epochs=9)")
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=empty)
    assert ended.returncode == 1
    assert f"[{extra}]" in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")
def test_an_example_says_something_and_leaves_nothing_behind(example, empty, quick, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    told = capsys.readouterr()
    assert len(told.out.splitlines()) >= 3
    assert "Traceback" not in told.err
    assert list(empty.iterdir()) == []


def test_code_stands_in_fences_and_pages_stay_short():
    for page in PAGES:
        found = blocks(page)
        assert {block.language for block in found} <= LANGUAGES, name_of(page)
        indented = [block.line for block in found if block.language == "" and LOOKS_LIKE_CODE.search(block.text)]
        assert indented == [], name_of(page)
    pages = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "making"]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= MOST_WORDS


NO_GUIDES = ("capabilities", "changelog", "guides", "index", "start", "words")


@pytest.mark.parametrize(
    "page",
    [
        page
        for folder in ("docs", "docs/adapters")
        for page in (ROOT / folder).glob("*.md")
        if page.stem not in NO_GUIDES
    ],
    ids=name_of,
)
def test_a_guide_opens_with_code_and_ends_with_what_to_try_next(page):
    head, *sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert re.search(r"^```(python|bash|\{code-cell\} python)$", head, re.MULTILINE)
    assert "$$" not in head
    assert sections[-1].startswith("If it is not good enough\n")


def test_what_a_page_prints_otherwise_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(doc_pages, "ROOT", tmp_path)
    page = tmp_path / "wrong.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match="line 6: expected"):
        run_page(page, {})
