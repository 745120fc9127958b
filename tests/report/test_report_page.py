"""The page of a model: whole without a network, well-formed, honest about what is absent, and safe with any text."""

import re
import sys
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from explorer_cases import rated
from page_reader import Page, data_of

from air_recsys import AIR, DMF, BiasModel, Interactions, SimilarityGraph
from air_recsys.evaluation import held_out
from air_recsys.evaluation.held_out import evaluate_model
from air_recsys.evaluation.resampling import Advantage, Interval
from air_recsys.exceptions import DataError, MissingExtraError, NotFittedError, ParameterError
from air_recsys.metrics import rmse
from air_recsys.models import GlobalMean
from air_recsys.report import explorer_of, sections
from air_recsys.report.content import shown_part
from air_recsys.report.document import element, number_text, table
from air_recsys.report.learned import graph_section, learned_section, parameters_section
from air_recsys.report.page import _item_names, report_html, write_report
from air_recsys.report.summary import advantage_text, calibration_section, errors_section, summary_section
from air_recsys.splits import random_holdout

SHORT = {"n_epochs": 60, "device": "cpu", "random_state": 0, "init_std": 0.1, "learning_rate": 0.01}
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
HOSTILE = "<script>alert('x')</script>\"'&<img src=http://evil.example/x onerror=alert(1)>"
SECTIONS = ["accuracy", "users", "items", "recommendations", "learned", "data", "training", "parameters", "made"]


def frame():
    matrix = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((4, 6)))
    users, items = np.nonzero(np.random.default_rng(0).random(matrix.shape) < 0.8)
    names = pd.DataFrame({"user": [f"u{user}" for user in users], "item": [f"i{item}" for item in items]})
    return names.assign(rating=matrix[users, items])


@pytest.fixture(scope="module")
def model():
    return AIR.for_completion(snapshot_epochs=[0, 20], validation_fraction=0.1, **SHORT).fit(frame())


@pytest.fixture(scope="module")
def text(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    titles = {"i0": HOSTILE, "i1": "Plums & pears", "i2": None}
    assert write_report(model, path, evaluate=False, titles=titles) == path
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


@pytest.fixture
def undrawn(monkeypatch):
    """Figures that are made, and not drawn, which takes most of the time of a page."""
    monkeypatch.setattr("air_recsys.report.document.inline_svg", lambda figure, label: "<svg></svg>")


without_drawing = pytest.mark.usefixtures("undrawn")


def written(model, tmp_path, **options):
    options = {"evaluate": False} | options
    return Page(write_report(model, tmp_path / "page.html", **options).read_text(encoding="utf-8"))


def test_the_page_is_well_formed_and_can_be_read_without_eyes(text, page):
    assert text.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids))
    assert page.values("section", "id") == SECTIONS
    assert page.values("a", "href") == [f"#{name}" for name in SECTIONS]
    assert page.values("html", "lang") == ["en"]
    assert page.tags.count("h1") == page.tags.count("main") == page.tags.count("title") == 1
    assert page.tags.count("table") == page.tags.count("caption")
    assert all(len(words) > 20 for words in page.values("svg", "aria-label"))
    assert page.values("svg", "role") == ["img"] * page.tags.count("svg")
    assert set(page.values("th", "scope")) == {"col", "row"}
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_page_loads_nothing_and_runs_nothing(page):
    assert "script" not in page.tags
    assert not any(name.startswith("on") for _, name, _ in page.attributes)
    assert all(source.startswith("data:image/png;base64,") for source in page.values("image", "href"))
    assert all(link.startswith("#") for link in page.values("use", "href") + page.values("a", "href"))
    assert not {"link", "iframe", "object", "base"} & set(page.tags)
    policies = [value for value in page.values("meta", "content") if "default-src" in value]
    assert policies == [POLICY]


def test_the_pictures_are_whole_and_take_the_colours_of_the_page(text):
    drawn = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    assert len(drawn) == text.count("<figure>") == 18
    for svg in drawn:
        root = ET.fromstring(svg)
        assert root.attrib["fill"] == "currentColor"
        assert float(root.attrib["width"]) <= 390 or 'class="wide"' in text
        styles = " ".join(element.attrib.get("style", "") for element in root.iter())
        assert not re.search(r"#000000|#ffffff|font-family", styles)
        ids = {element.attrib["id"] for element in root.iter() if "id" in element.attrib}
        referred = set(re.findall(r'(?:href="|url\()#([^")]*)', svg))
        assert referred == ids


def test_the_same_model_gives_the_same_pictures_whatever_the_style_of_the_callers_figures(model, text, tmp_path):
    import matplotlib as mpl

    with mpl.rc_context({"text.color": "#123456", "axes.facecolor": "yellow", "font.size": 40}):
        titles = {"i0": HOSTILE, "i1": "Plums & pears", "i2": None}
        write_report(model, tmp_path / "page.html", evaluate=False, titles=titles)
    drawn = [re.findall(r"<svg .*?</svg>", page, re.DOTALL) for page in (text, (tmp_path / "page.html").read_text())]
    assert drawn[0] == drawn[1]


def test_hostile_titles_are_shown_as_text(text, page):
    assert HOSTILE not in text
    assert HOSTILE in page.text
    assert "Plums & pears" in page.text
    assert "i2" in page.text  # without a title the id is shown
    assert "evil.example" not in " ".join(value or "" for _, _, value in page.attributes)


@pytest.mark.filterwarnings("ignore:ids such as .* are users of some rows and items of others")
def test_hostile_ids_and_parameters_are_shown_as_text(tmp_path):
    data = frame().replace({"user": {"u0": HOSTILE}, "item": {"i0": HOSTILE}})
    odd = AIR.for_completion(graph_neighbors=3, **SHORT).fit(data)
    odd.adjacency = "</code><script>"
    found = written(odd, tmp_path)
    assert "script" not in found.tags
    assert HOSTILE in found.text
    assert "'</code><script>'" in found.text


def test_an_older_page_is_replaced_and_a_failure_leaves_it(model, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(DataError):
        write_report(model, path, test="nothing")
    assert path.read_text(encoding="utf-8") == "old"
    write_report(BiasModel().fit(frame()), path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_the_page_tells_the_models_own_figures(model, page):
    data = model.interactions_
    assert f"{data.n_ratings:,} ratings of 8 users on 12 items" in page.text
    assert f"{data.density:.2%} of all" in page.text
    assert f"the model holds the state of epoch {model.n_iter_}" in page.text
    assert "snapshot_epochs[0, 20]" in page.text
    counts = np.bincount(data.user_index)
    for user in (counts.argmax(), 7 - counts[::-1].argmin()):  # the most ratings, and the fewest
        best = model.recommend(data.user_ids[user], n=5)
        assert f"User {data.user_ids[user]}: {counts[user]} ratings" in page.text
        assert all(number_text(score) in page.text for score in best["score"])
    reasons = model.explain(best["user"].iloc[0], best["item"].iloc[0], n=3).items
    assert f"(+{reasons['contribution'].max():.2g})" in page.text


def test_a_model_without_graphs_or_epochs_says_so(tmp_path):
    found = written(BiasModel().fit(frame()), tmp_path)
    assert found.values("section", "id") == [name for name in SECTIONS if name != "learned"]
    assert "This model has learned no graph of users." in found.text
    assert "This model has learned no graph of items." in found.text
    assert "BiasModel is not trained in epochs." in found.text
    plain = written(DMF(**SHORT).fit(frame()), tmp_path)
    assert "learned no graph of users" in plain.text
    assert "The fit to the ratings." in plain.text


@without_drawing
def test_a_loaded_model_has_its_snapshots_and_without_any_the_page_says_so(model, tmp_path):
    loaded = AIR.load(model.save(tmp_path / "model.air"))
    assert "Communities of items through training" in sections.training_section(loaded)
    without = AIR.for_completion(**SHORT).fit(frame())
    assert "none were asked for (snapshot_epochs)" in sections.training_section(without)


def test_odd_data_and_a_model_that_cannot_explain(model):
    full = AIR.for_completion(**SHORT).fit(np.arange(1.0, 13.0).reshape(3, 4))
    assert "All users have rated all items." in sections.recommendations_section(full, str)
    weighted = Interactions.from_frame(frame().assign(weight=2.0), weight="weight")
    plain = AIR.for_completion(**SHORT).fit(weighted)
    assert "weights of the ratings" in sections.data_section(plain)
    assert [row["model"] for row in evaluate_model(plain).rows] == ["AIR", "BiasModel", "GlobalMean"]
    tied = AIR.for_completion(transforms=[("blocks:2", 1e-3)], **SHORT).fit(frame())
    assert "largest contributions" not in sections.recommendations_section(tied, str)
    assert "largest contributions" in sections.recommendations_section(model, str)


def test_a_graph_without_edges_one_too_large_and_one_of_many_edges(monkeypatch):
    empty = SimilarityGraph(np.zeros((3, 3)), "abc", "item")
    assert "There is nothing to draw." in graph_section(empty, "item", str)
    chain = SimilarityGraph(sp.diags_array([np.ones(50_000)] * 2, offsets=(-1, 1)), range(50_001), "item")
    assert "communities are left out of this page" in graph_section(chain, "item", str)
    monkeypatch.setattr("air_recsys.report.content._MAX_EDGES", 40)
    monkeypatch.setattr("air_recsys.report.content._EDGES_PER_NODE", 2)
    weights = np.random.default_rng(0).random((20, 20))
    dense = SimilarityGraph(weights + weights.T, range(20), "item")
    assert f"those of the {shown_part(dense).n_edges} strongest edges" in graph_section(dense, "item", str)


def test_titles_come_as_a_mapping_or_a_table_or_are_labels_of_the_graph(model, tmp_path):
    table = pd.DataFrame({"item": ["i0", "i5"], "year": [1990, 1991], "title": ["Plums", "Pears"]})
    for titles in (table, table.set_index("item"), table.set_index("item")["title"]):
        name = _item_names(model, titles)
        assert [name("i0"), name("i5"), name("i3")] == ["Plums", "Pears", "i3"]
    labelled = AIR.for_completion(**SHORT).fit(frame())
    names = pd.DataFrame({"name": [f"Film {item}" for item in model.item_graph_.ids]}, model.item_graph_.ids)
    labelled.item_graph_ = labelled.item_graph_.with_attributes(names, label="name")
    assert _item_names(labelled, None)("i3") == "Film i3"
    with pytest.raises(DataError, match=r"expected titles with the column title, found \['item', 'year'\]"):
        write_report(model, tmp_path / "page.html", titles=table[["item", "year"]])
    with pytest.raises(DataError, match="titles of the model's items, found those of none of them, such as 'x'"):
        write_report(model, tmp_path / "page.html", titles={"x": "y"})


def test_without_test_ratings_the_error_is_called_a_training_error(model, page):
    found = evaluate_model(model)
    assert found.title == "Training error"
    assert found.rows[0]["rmse"] == pytest.approx(
        rmse(frame()["rating"], model.predict(frame()["user"], frame()["item"]))
    )
    assert "show how well a model fits, and not how well it predicts" in page.text


@without_drawing
def test_test_ratings_are_compared_with_the_baselines(tmp_path):
    data = Interactions.from_frame(frame())
    split = random_holdout(data, 0.2, random_state=1)
    training, unseen = data.select(split.train), data.select(split.test)
    model = AIR.for_completion(**SHORT).fit(training)
    found = evaluate_model(model, unseen)
    users, items = unseen.to_frame()["user"], unseen.to_frame()["item"]
    expected = {
        kind.__name__: rmse(unseen.ratings, fitted.predict(users, items))
        for kind, fitted in [(AIR, model), *[(kind, kind().fit(training)) for kind in (BiasModel, GlobalMean)]]
    }
    assert {row["model"]: row["rmse"] for row in found.rows} == pytest.approx(expected)
    assert found.notes == []
    text = written(model, tmp_path, test=unseen.to_frame()).text
    assert all(number_text(value) in text for value in expected.values())
    assert "errors on training ratings" not in text


def test_notes_on_pairs_that_are_known_or_strange(model):
    seen = frame().iloc[:3]
    strange = pd.DataFrame({"user": ["nobody"], "item": ["i0"], "rating": [3.0]})
    notes = evaluate_model(model, pd.concat([seen, strange])).notes
    assert notes[0].startswith("1 pairs have a user or an item that was not in the training data")
    assert notes[1].startswith("3 of the pairs are among the training ratings")


def test_a_refit_holds_a_tenth_out_and_leaves_the_model_as_it_was(model):
    before = model.user_factors_.copy()
    found = evaluate_model(model, refit=True)
    data = model.interactions_
    split = random_holdout(data, 0.1, random_state=0)
    again = AIR.for_completion(snapshot_epochs=[0, 20], validation_fraction=0.1, **SHORT).fit(data.select(split.train))
    test = data.select(split.test).to_frame()
    np.testing.assert_allclose(found.predicted, again.predict(test["user"], test["item"]), rtol=1e-5)
    np.testing.assert_array_equal(model.user_factors_, before)
    assert found.title == "Error on ratings held out"
    with pytest.raises(ParameterError, match="expected either test ratings or refit, found both"):
        evaluate_model(model, frame(), refit=True)


@without_drawing
def test_interactions_get_ranking_measures():
    rng = np.random.default_rng(0)
    truth = np.kron(np.eye(2), np.ones((5, 6)))
    hidden = rng.random(truth.shape) < 0.2
    model = AIR.for_interactions(n_epochs=100, random_state=0, device="cpu").fit(np.where(hidden, np.nan, truth))
    found = evaluate_model(model, np.where(hidden, truth, np.nan))
    ends = {"average_precision low", "average_precision high"}
    errors = {"model", "rmse", "mae", "average_precision", "auroc", "ndcg@10", "recall@10"}
    assert set(found.rows[0]) == errors | ends
    assert found.measure == "average_precision"
    own, biases = found.rows[0], found.rows[1]
    assert own["auroc"] > biases["auroc"]


def test_faults_are_told_before_any_work(model, tmp_path, monkeypatch):
    monkeypatch.setattr("air_recsys.report.page.evaluate_model", None)  # would be called first of all work
    with pytest.raises(NotFittedError, match="this AIR is not fitted yet"):
        write_report(AIR(), tmp_path / "page.html")
    with pytest.raises(ParameterError, match="found no folder"):
        write_report(model, tmp_path / "no" / "page.html")
    with pytest.raises(ParameterError, match="found the folder"):
        write_report(model, tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'air-recsys\[viz\]'"):
        write_report(model, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_everything_is_escaped_but_markup():
    assert element("td", element("b", "<"), "<", title='"') == '<td title="&quot;"><b>&lt;</b>&lt;</td>'
    shown = table(HOSTILE, [HOSTILE], [[HOSTILE], [HOSTILE]])
    assert set(re.findall("<([a-z]+)", shown)) == {"div", "table", "caption", "thead", "tr", "th", "tbody"}
    assert Page(shown).text.count(HOSTILE) == 4


FAST = {"n_factors": 2, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def fitted():
    split = random_holdout(rated(30, 24), 0.2, random_state=0)
    return AIR.for_ratings(**FAST).fit(rated(30, 24).select(split.train)), rated(30, 24).select(split.test)


@pytest.fixture(scope="module")
def evaluation(fitted):
    return evaluate_model(*fitted)


@without_drawing
def test_the_first_sentences_hold_the_figures_and_the_page_has_its_order(fitted, evaluation):
    text = Page(summary_section(fitted[0], evaluation)).text
    own = evaluation.rows[0]
    assert f"{fitted[0].interactions_.n_ratings:,} ratings (1 to 5," in text
    assert f"its RMSE is {own['rmse']:.3g} (95 % interval {own['rmse low']:.3g} to {own['rmse high']:.3g})" in text
    assert "lower than that of BiasModel" in text
    assert "Its 90 % intervals hold" in text
    assert "errors on training ratings" not in text
    page = Page(report_html(fitted[0], evaluation))
    order = ["accuracy", "users", "items", "calibration", "errors", "recommendations", "learned"]
    assert page.values("section", "id") == [*order, "data", "training", "parameters", "made"]
    assert page.text.index("snapshots") > page.text.index("Are the intervals right?")
    assert " ± " in page.text


def test_without_unseen_ratings_the_page_says_so_and_has_no_sections_on_them(fitted):
    evaluation = evaluate_model(fitted[0])
    text = Page(summary_section(fitted[0], evaluation)).text
    assert "is not known: none were held out" in text
    assert "--test FILE" in text
    assert "95 % interval" not in text
    assert calibration_section(evaluation) is None
    assert errors_section(evaluation) is None


@pytest.mark.parametrize(
    ("measure", "gain", "said"),
    [
        ("rmse", (0.1, 0.05, 0.2), ", 0.1 (0.05 to 0.2) lower than that of it"),
        ("rmse", (-0.1, -0.2, -0.05), ", 0.1 (0.05 to 0.2) higher than that of it, which is worse"),
        ("ndcg@10", (0.1, 0.05, 0.2), ", 0.1 (0.05 to 0.2) higher than that of it"),
        ("ndcg@10", (-0.1, -0.2, -0.05), ", 0.1 (0.05 to 0.2) lower than that of it, which is worse"),
        ("rmse", (0.1, -0.05, 0.2), ", not clearly different from that of it"),
    ],
)
def test_a_difference_is_told_in_words(measure, gain, said):
    assert advantage_text(measure, Advantage("it", Interval(*gain))) == said


@without_drawing
def test_intervals_and_errors_are_in_tables_too(evaluation):
    calibration, errors = calibration_section(evaluation), errors_section(evaluation)
    assert calibration is not None
    assert errors is not None
    held = np.mean(np.abs(evaluation.truth - evaluation.predicted) <= 1.6448536 * evaluation.pairs["deviation"])
    assert f"{held:.1%}" in Page(calibration).text
    assert Page(errors).tags.count("svg") == 3
    assert "true rating 5" in Page(errors).text
    without = replace(evaluation, pairs=evaluation.pairs.assign(deviation=np.nan))
    assert calibration_section(without) is None
    assert errors_section(without) is not None


def test_parameters_are_told_apart_from_the_nearest_preset():
    page = Page(parameters_section(AIR.for_ratings(n_sweeps=7, random_state=3)))
    assert "As AIR.for_ratings():" in page.text
    before, _, after = page.text.partition("parameters with the same value")
    assert "solver__n_sweeps7" in before
    assert "random_state3" in before
    assert "pattern_graphs" in after
    assert "All parameters have its values." in parameters_section(AIR.for_completion())
    assert "As BiasModel()" in parameters_section(BiasModel())


def test_strengths_and_effects_are_told():
    kinds = pd.DataFrame({"kind": ["<b>calm</b>"] * 12 + ["loud"] * 12})
    model = AIR.for_ratings(**FAST).fit(rated(30, 24), item_features=kinds)
    found = learned_section(model)
    assert found is not None
    page = Page(found)
    effects = model.feature_effects("item")
    assert f"kind=<b>calm</b>{effects.set_index('feature').loc['kind=<b>calm</b>', 'effect']:+.3f}" in page.text
    assert "noise: standard deviation" in page.text
    assert "<b>" not in found


@without_drawing
def test_likes_have_lists_in_the_place_of_errors():
    rng = np.random.default_rng(1)
    taken = (np.kron(np.eye(2), np.ones((10, 12))) > 0) & (rng.random((20, 24)) < 0.7)
    hidden = taken & (rng.random(taken.shape) < 0.2)
    model = AIR.for_likes(settings={}, device="cpu", random_state=0).fit(np.where(taken & ~hidden, 1.0, np.nan))
    for test in (np.where(hidden, 1.0, np.nan), None):
        page = Page(report_html(model, evaluate_model(model, test)))
        assert ("its NDCG@10 is" in page.text) == (test is not None)
        assert "RMSE" not in page.text
        assert len(page.ids) == len(set(page.ids))
        assert "GraphRanker is not trained in epochs." in page.text


@pytest.mark.parametrize("preset", [AIR.for_ratings, AIR.for_completion, AIR.for_likes])
def test_a_report_of_three_ratings_says_what_there_is(preset, tmp_path):
    few = pd.DataFrame({"user": ["a", "a", "b"], "item": ["x", "y", "x"], "rating": [5.0, 1.0, 3.0]})
    table = few.drop(columns="rating") if preset == AIR.for_likes else few
    with warnings.catch_warnings(action="ignore"):
        model = preset(device="cpu", random_state=0).fit(table)
        text = Page(write_report(model, tmp_path / "page.html").read_text(encoding="utf-8")).text
    word = "likes" if preset == AIR.for_likes else "ratings"
    assert f"3 {word} of 2 users on 2 items" in text
    other = {"likes": "ratings", "ratings": "likes"}[word]
    assert re.findall(rf"\w+ {other}\b \w+", text.partition("Parameters with")[0]) == []
    assert " a item" not in text


@without_drawing
def test_a_report_measures_a_model_that_was_trained_quickly_and_says_why_it_does_not(fitted, tmp_path, monkeypatch):
    model = fitted[0]
    assert evaluate_model(model, refit=None).is_unseen
    assert "held out at random" in Page(write_report(model, tmp_path / "page.html").read_text(encoding="utf-8")).text
    monkeypatch.setattr(held_out, "_QUICK_SECONDS", 0.0)
    told = evaluate_model(model, refit=None)
    assert not told.is_unseen
    assert "was not fitted again to measure it, as that takes long" in told.notes[0]


@without_drawing
def test_communities_have_the_names_of_the_explorer(tmp_path):
    films = pd.DataFrame({"title": [f"film {i}" for i in range(24)], "genre": ["War"] * 12 + ["Comedy"] * 12})
    model = AIR.for_ratings(**FAST).fit(rated(30, 24))
    page = Page(write_report(model, tmp_path / "page.html", titles=films).read_text(encoding="utf-8"))
    data = data_of(explorer_of(model, tmp_path / "explorer.html", films))
    for graph in data["graphs"]:
        assert all(each["name"] in page.text for each in graph["names"][:5] if len(each["members"]) > 1)
