"""Answers of a fitted model where torch and matplotlib are missing; a training and a report say what they need."""

import json
import subprocess
import sys

import numpy as np
import pytest
from cli_cases import Ended, assert_refused

from air_recsys import AIR, DMF, BiasModel
from air_recsys.dti import DrugTargetAIR

MISSING = """
import json, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "matplotlib", "networkx", "platformdirs", "pooch"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""
ASKED = (
    MISSING
    + """
import air_recsys, scipy.sparse as sp
model = air_recsys.load(sys.argv[1])
if "dti" in sys.argv[1]:
    found = [model.predict_proba("0", "1").tolist(), model.recommend("0", n=3).iloc[:, 1].tolist()]
    model.explain("0", "1")
else:
    found = [model.predict([0, 1], [2, 3]).tolist(), model.recommend([0, 1], n=3)["item"].tolist()]
    if hasattr(model, "fold_in"):
        model.fold_in(sp.csr_array([[1.0] * 4 + [0.0] * 8])).recommend([0], n=2)
    if "posterior" in sys.argv[1]:
        found += [ends.tolist() for ends in model.predict_interval([0], [2])]
    if "dmf" not in sys.argv[1] and "biases" not in sys.argv[1]:
        model.explain(0, 2), model.similar_items(0), model.item_graph_.to_html(sys.argv[1] + ".html")
print(json.dumps(found))
"""
)
TRAINED = (
    MISSING
    + """
from air_recsys import AIR
from air_recsys.exceptions import MissingTorchError
try:
    AIR.for_ratings().fit([[1.0, 2.0], [2.0, 1.0]])
except MissingTorchError as error:
    print(error)
"""
)
SHELL = MISSING + "from air_recsys.cli import main; main()"
SERVICE = SHELL.replace('"pooch"', '"pooch", "sklearn"')
RATINGS = np.where(
    np.random.default_rng(0).random((16, 12)) < 0.7, np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((8, 6))), np.nan
)
MODELS = {
    "posterior": lambda: AIR.for_ratings(n_sweeps=3, n_factors=2, random_state=0, device="cpu").fit(RATINGS),
    "draws": lambda: AIR.for_ratings(solver="langevin", n_sweeps=4, n_factors=2, device="cpu").fit(RATINGS),
    "completion": lambda: AIR.for_completion(n_epochs=20, settings="fixed", device="cpu").fit(RATINGS),
    "likes": lambda: AIR.for_likes(device="cpu", n_steps=6).fit(np.where(RATINGS > 3, 1.0, np.nan)),
    "dmf": lambda: DMF(n_epochs=5, device="cpu").fit(RATINGS),
    "biases": lambda: BiasModel().fit(RATINGS),
}


def answer(program: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_answers_as_where_torch_is(kind, tmp_path):
    model = MODELS[kind]()
    scores, items, *ends = json.loads(answer(ASKED, model.save(tmp_path / f"{kind}.air")))
    np.testing.assert_allclose(scores, model.predict([0, 1], [2, 3]))
    assert items == model.recommend([0, 1], n=3)["item"].tolist()
    if ends:
        np.testing.assert_allclose(ends, model.predict_interval([0], [2]))


def test_drugs_and_targets_answer_as_where_torch_is(tmp_path):
    model = DrugTargetAIR(device="cpu").fit((RATINGS > 3) * 1.0)
    ids = [str(model.drugs_.ids[0]), str(model.targets_.ids[1])]
    program = ASKED.replace('"0"', ids[0]).replace('"1"', ids[1])
    probability, best = json.loads(answer(program, model.save(tmp_path / "dti.air")))
    np.testing.assert_allclose(probability, model.predict_proba(model.drugs_.ids[0], model.targets_.ids[1]))
    assert best == model.recommend(model.drugs_.ids[0], n=3).iloc[:, 1].tolist()


def test_a_training_names_the_line_that_installs_torch():
    assert "pip install torch" in answer(TRAINED)


def shell(*words: object) -> Ended:
    done = subprocess.run([sys.executable, "-c", SHELL, *map(str, words)], capture_output=True, text=True, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return MODELS["posterior"]().save(tmp_path_factory.mktemp("saved") / "model.air")


@pytest.mark.parametrize("words", ["recommend {} --user 0", "explain {} --user 0 --item 2", "graph {} --html {}.html"])
def test_commands_answer(saved, words):
    assert shell(*words.replace("{}", str(saved)).split())[::2] == (0, "")


@pytest.mark.parametrize(
    ("words", "needed"), [("train {}/table.csv", "pip install torch"), ("report {}/model.air", "air-recsys[viz]")]
)
def test_commands_that_lack_a_package_name_the_line_that_installs_it(saved, words, needed):
    AIR.load(saved).interactions_.to_frame().to_csv(saved.parent / "table.csv", index=False)
    assert_refused(shell(*words.format(saved.parent).split()), "which is not installed", needed)


def test_a_service_answers(saved, monkeypatch):
    for extra in ("fastapi", "httpx"):
        pytest.importorskip(extra)
    import httpx
    from serving import serving_cases

    monkeypatch.setattr(serving_cases, "COMMAND", [sys.executable, "-c", SERVICE, "serve"])
    with serving_cases.running(saved, "--port", 0) as server:
        found = httpx.get(f"{server.address}recommend", params={"user": 0, "n": 3}).json()
    model = AIR.load(saved)
    assert [row["item"] for row in found["items"]] == model.recommend(0, n=3)["item"].tolist()


def test_a_model_that_has_not_learned_its_lists_says_to_ask_before(tmp_path):
    rng = np.random.default_rng(0)
    ratings = np.where(rng.random((60, 40)) < 0.6, rng.integers(1, 6, (60, 40)).astype(float), np.nan)
    model = AIR.for_ratings(n_sweeps=3, n_factors=2, random_state=0, device="cpu").fit(ratings)
    saved = model.save(tmp_path / "a.air")
    assert_refused(shell("recommend", saved, "--user", 0), "pip install torch", "before `save`", "learn_lists()")
