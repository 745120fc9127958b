"""Comparisons: figures are those of the models, parts are those that were asked for, no system stops others."""

import math
import re
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest

from air_recsys import Interactions
from air_recsys.adapters.implicit_peer import ImplicitLists
from air_recsys.adapters.surprise_peer import SurpriseModel
from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.evaluation import compare, comparing
from air_recsys.evaluation.comparison import task_of
from air_recsys.evaluation.experiment import trials
from air_recsys.evaluation.lists import Popularity
from air_recsys.evaluation.parts import given_parts
from air_recsys.evaluation.system import System
from air_recsys.evaluation.systems import comparable_systems
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.metrics import coverage, mae, ndcg_at_k, recall_at_k, rmse
from air_recsys.models import AIR, BiasModel, GlobalMean, GraphRanker
from air_recsys.splits import Split, global_time, random_holdout

QUICK = {"progress": False, "k": 3}


@pytest.fixture(scope="module")
def data():
    planted = make_planted_ratings(40, 25, 500, 3, 2).interactions
    pairs, times = (planted.user_index, planted.item_index), np.random.default_rng(0).permutation(500)
    return Interactions(*pairs, planted.ratings, planted.user_ids, planted.item_ids, timestamps=times)


@pytest.fixture(scope="module")
def split(data):
    return random_holdout(data, 0.2, random_state=3)


class Constant:
    """A model of the caller's that predicts one number."""

    def __init__(self, value=0.0, checks=lambda interactions: None):
        self.value, self.checks = value, checks

    def fit(self, interactions):
        self.checks(interactions)

    def predict(self, user_ids, item_ids):
        return np.full(len(user_ids), self.value)


def broken(interactions):
    """Fail as models of other libraries do."""
    raise ZeroDivisionError("no ratings")


def has_features(interactions):
    assert interactions.item_features is not None


def ids(part):
    return part.user_ids[part.user_index], part.item_ids[part.item_index]


def test_errors_are_those_of_the_clipped_predictions(data, split):
    model = BiasModel()
    found = compare([model, "GlobalMean"], data, split, **QUICK).to_frame()
    biases, mean = found.to_dict("records")
    train, test = data.select(split.train), data.select(split.test)
    predicted = BiasModel().fit(train).predict(*ids(test)).clip(train.ratings.min(), train.ratings.max())
    assert (biases["rmse"], biases["mae"]) == (rmse(test.ratings, predicted), mae(test.ratings, predicted))
    assert mean["rmse difference"] == pytest.approx(mean["rmse"] - biases["rmse"])
    assert all(row["rmse low"] < row["rmse"] < row["rmse high"] for row in (biases, mean))
    assert math.isnan(biases["rmse p"])
    assert 0 < mean["rmse p"] < 0.05
    assert not hasattr(model, "global_mean_")  # the caller's stays as it is


def test_lists_are_those_of_the_model_against_the_relevant_test_items(data, split):
    found = compare(["Popularity"], data, split, relevant=4, **QUICK).to_frame().loc["Popularity"]
    train, test = data.select(split.train), data.select(split.test)
    relevant = test.select(test.ratings >= 4)
    users = np.unique(relevant.user_index)
    lists = Popularity().fit(train).lists(users, 3)
    assert found["ndcg@3"] == pytest.approx(ndcg_at_k(lists, relevant.to_csr()[users], 3))
    assert found["recall@3"] == pytest.approx(recall_at_k(lists, relevant.to_csr()[users], 3))
    assert found["coverage"] == coverage(lists, data.n_items)
    assert "rmse" not in found


def test_a_model_with_predict_alone_gets_lists_by_its_scores(data, split):
    class Scores:
        def fit(self, interactions):
            self.model = BiasModel().fit(interactions)

        def predict(self, user_ids, item_ids):
            return self.model.predict(user_ids, item_ids)

    found = compare({"own": Scores(), "ours": BiasModel()}, data, split, **QUICK).to_frame()
    assert found.loc["own", "ndcg@3"] == pytest.approx(found.loc["ours", "ndcg@3"])
    assert found.loc["own", "rmse"] == found.loc["ours", "rmse"]


def test_models_that_know_their_deviation_tell_calibration_and_scores_of_a_ranker_are_no_ratings(data, split):
    models = [AIR.for_ratings(n_factors=2, n_sweeps=5, random_state=0, device="cpu"), GraphRanker(settings={})]
    found = compare(models, data, split, **QUICK).to_frame()
    assert 0.5 < found.loc["AIR", "inside 90 %"] <= 1
    assert found.loc["GraphRanker", ["rmse", "mae", "inside 90 %", "width"]].isna().all()
    assert found.loc["GraphRanker", "recall@3"] > 0


def test_rows_are_means_over_the_folds(data, split):
    found = compare(["Biases"], data, 3, **QUICK)
    single = pd.DataFrame(found.folds)
    assert list(single["fold"]) == ["fold 1", "fold 2", "fold 3"]
    for name in ("rmse", "mae", "ndcg@3", "coverage"):
        assert found.to_frame().loc["Biases", name] == pytest.approx(single[name].mean())
    assert len(compare(["Biases"], data, [split, global_time(data, 0.2)], **QUICK).folds) == 2


@pytest.mark.parametrize(("kind", "hidden"), [("time", "the latest fifths of all"), (None, "parts hidden at random")])
def test_lists_are_chosen_on_parts_of_the_kind_of_the_split(kind, hidden, data, monkeypatch):
    lines = []
    monkeypatch.setattr(GraphRanker, "n_steps", 3)
    fit = GraphRanker.fit
    monkeypatch.setattr(GraphRanker, "fit", lambda *given: lines.append(fit(*given).search_line_) or given[0])
    compare(["GraphRanker"], data, kind, **QUICK)
    assert hidden in lines[0]


def test_a_process_apart_finds_the_same(data, split):
    here, there = (compare(["Biases"], data, split, apart=apart, **QUICK).to_frame() for apart in (False, True))
    costs = ["fit_seconds", "answer_seconds", "memory_mib"]
    pd.testing.assert_frame_equal(here.drop(columns=costs), there.drop(columns=costs))
    assert (there[costs].to_numpy() >= 0).all()


def test_given_parts_are_those_of_the_masks_with_ids_as_numbers_or_as_text(data, split):
    train, test = (data.select(part).to_frame().drop(columns="timestamp") for part in (split.train, split.test))
    masks, given = compare(["Biases"], data, split, **QUICK), compare(["Biases"], train, test=test, **QUICK)
    assert given.to_frame().loc["Biases", "rmse"] == masks.to_frame().loc["Biases", "rmse"]
    as_text = compare(["Biases"], train.astype({"user": str}), test=test, **QUICK)
    assert as_text.protocol.startswith("40 users, 25 items, 400 ratings to train on, 100 to test on")
    with pytest.raises(DataError, match="not among the training ratings, found 500 in both, the first of user"):
        compare(["Biases"], data, test=data, **QUICK)


def test_lists_of_what_was_shown_are_told(data, split):
    class Shown:
        def fit(self, interactions):
            self.seen = interactions.to_csr()

        def lists(self, users, n):
            return np.array([np.append(self.seen[[user]].indices[:1], np.full(n - 1, -1)) for user in users])

    found = compare({"own": Shown(), "p": "Popularity"}, data, split, **QUICK)
    assert found.notes == [f"own: {found.n_users} places of its lists are items that the user was shown"]


def test_test_ratings_that_the_training_says_nothing_of_are_told(data, split):
    train, test = (data.select(part).to_frame().drop(columns="timestamp") for part in (split.train, split.test))
    strange = test.assign(user=np.where(test.index < 3, 99, test["user"]))
    cases = (
        (strange, "3 test ratings have a user (3) or an item (0) that is not in the training part"),
        (test.assign(rating=test["rating"] * 20), "those of the training in 1..5: likes, or another scale?"),
        (test.assign(rating=1.0), "test ratings are in 1..1, those of the training in 1..5"),
    )
    for given, told in cases:
        assert told in compare(["Biases"], train, test=given, **QUICK).protocol
    plain = compare(["Biases"], train, test=test, **QUICK).protocol
    assert "not in the training part" not in plain
    assert "scale?" not in plain
    with pytest.raises(DataError, match="not among the training ratings, found 100 in both"):
        compare(["Biases"], data, Split(np.ones(500, bool), split.test), **QUICK)


def test_features_stay_with_the_training_part(data, split):
    years = pd.DataFrame({"year": np.arange(25.0)}, index=data.item_ids)
    train, test = data.select(split.train).with_features(item=years), data.select(split.test)
    found = compare([Constant(checks=has_features), "Biases"], train, test=test, **QUICK)
    assert found.notes == ["Constant: all lists are in the order of the items, which it scores alike"]
    stranger = pd.DataFrame({"user": [data.user_ids[0]], "item": ["x"], "rating": [3.0]})
    with pytest.raises(DataError, match="which have features"):
        compare([Constant()], train, test=stranger, **QUICK)


@pytest.mark.parametrize(
    ("split", "options", "n_test", "told"),
    [
        (None, {"n_users": 7}, 50, "10% held out at random"),
        ("time", {}, 50, "the latest 10%"),
        ("last", {}, 40, "the last of each user"),
        ("last", {"test_fraction": 0.3}, 150, "the latest 30% of each user held out"),
    ],
)
def test_parts_by_name_and_lists_of_some_users(data, split, options, n_test, told):
    found = compare(["Popularity"], data, split, **options, **QUICK)
    assert told in found.protocol
    n_tested = int(found.protocol.partition(" to test on")[0].rpartition(" ")[2])
    assert 0.8 * n_test <= n_tested <= n_test  # some items do not occur before
    assert (found.n_users == 7) == ("n_users" in options)


@pytest.mark.parametrize(
    ("split", "options", "message"),
    [
        ("half", {}, "split must be one of random, time, last, a number of folds or masks, found 'half'"),
        (1, {}, "split must be an integer >= 2, found 1"),
        ([3], {}, "expected splits of air_recsys.splits, found int"),
        (5, {"test_fraction": 0.2}, "test_fraction is read by the splits random, time, last, found it beside 5"),
        (None, {"test_fraction": 2.0}, "test_fraction must be"),
        ("time", {"test": np.ones((2, 2))}, "expected either test ratings or a split, found both"),
        (None, {"k": 26}, "k must be an integer >= 1 and <= 25, found 26"),
        (None, {"n_users": 0}, "n_users must be an integer >= 1, found 0"),
        (None, {"relevant": 6}, "expected test ratings of at least 6, found 5 at most"),
    ],
)
def test_bad_questions_are_refused_before_any_training(data, split, options, message):
    with pytest.raises((ParameterError, DataError), match=message):
        compare([Constant(checks=broken)], data, split, **(QUICK | options))


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (["Suprise SVD"], "no system is called 'Suprise SVD': did you mean Surprise SVD"),
        ("AIR", "models must be a list of names or models, found the text 'AIR'"),
        ([BiasModel], "expected the name of a system, a model with fit.*found the class BiasModel: make a model"),
        ([3], "expected the name of a system, a model with fit.*or a table of lists, found 3"),
        ([], "expected a system to compare"),
    ],
)
def test_what_is_no_system_is_refused(data, models, message):
    with pytest.raises(ParameterError, match=message):
        compare(models, data, **QUICK)


def test_algorithms_of_surprise_are_compared_as_they_are(data, split):
    surprise = pytest.importorskip("surprise")
    algorithm = surprise.SVD(n_factors=3, random_state=0)
    found = compare([algorithm, GlobalMean()], data, split, **QUICK)
    train, test = data.select(split.train), data.select(split.test)
    expected = SurpriseModel("SVD", n_factors=3, random_state=0).fit(train).predict(*ids(test)).clip(1, 5)
    assert found.to_frame().loc["SVD", "rmse"] == pytest.approx(rmse(test.ratings, expected))
    assert found.settings["SVD"].endswith("SVD, as given")
    assert not hasattr(algorithm, "trainset")  # a copy was trained


def test_models_of_implicit_are_compared_by_their_lists(data, split):
    model = pytest.importorskip("implicit.nearest_neighbours").CosineRecommender(K=5, num_threads=1)
    found = compare({"given": model, "popular": "Popularity"}, data, split, **QUICK).to_frame()
    assert "rmse" not in found
    expected = ImplicitLists(deepcopy(model)).fit(data.select(split.train))
    again = compare({"given": System(lambda _: expected, ""), "popular": "Popularity"}, data, split, **QUICK)
    assert found.loc["given", "ndcg@3"] == pytest.approx(again.to_frame().loc["given", "ndcg@3"])


def test_a_system_that_fails_is_a_line_and_the_others_go_on(data):
    found = compare({"bad": Constant(checks=broken), "mean": GlobalMean()}, data, 2, **QUICK)
    assert found.notes[0] == "failed: bad (ZeroDivisionError: no ratings)"
    assert found.to_frame().index.tolist() == ["mean"]
    with pytest.raises(DataError, match="none of the systems could be trained; failed: bad"):
        compare({"bad": Constant(checks=broken)}, data, **QUICK)
    found = compare([Constant(np.nan), "GlobalMean"], data, **QUICK)
    assert found.notes[0] == "failed: Constant (DataError: expected 50 finite ratings, found shape (50,), 0 finite)"


def test_a_package_that_is_not_installed_is_a_line(data, split, monkeypatch):
    absent = {name: System(BiasModel().fit, "", "no_such_package") for name in ("Ghost", "Ghost 2")}
    monkeypatch.setattr(comparing, "comparable_systems", lambda **_: absent | comparable_systems())
    found = compare(["Ghost", "Ghost 2", "Biases"], data, split, **QUICK)
    assert found.notes == ["not installed: Ghost, Ghost 2 (pip install no_such_package)"]
    assert found.to_frame().index.tolist() == ["Biases"]
    with pytest.raises(ParameterError, match="expected a system to compare; not installed: Ghost "):
        compare(["Ghost"], data, split, **QUICK)


@pytest.mark.parametrize("name", [name for name in comparable_systems() if name.startswith(("Cornac", "implicit"))])
def test_peers_answer_for_users_and_items_without_training_ratings(name):
    matrix = np.array([[5, 3, 1, np.nan], [4, 2, np.nan, np.nan], [1, 5, 4, np.nan], [np.nan] * 4])
    shown = Interactions.from_dense(matrix)
    unseen = Interactions.from_dense(np.array([[3.0]]), user_ids=[3], item_ids=[3])
    task = task_of(given_parts(shown, unseen).folds[0], True, 2, None, 10, 0)
    (found,) = trials({name: comparable_systems()[name]}, [task], progress=False)
    assert found.answer.lists.shape == (1, 2)


def test_the_tables_name_every_system_and_json_has_no_nan(data, split, tmp_path):
    models = ["BIASES", BiasModel(bias_decay=1), BiasModel(bias_decay=9), "Biases"]  # by name in any case
    assert list(compare(models, data, split, **QUICK).settings) == ["Biases", "BiasModel", "BiasModel 2"]
    liked = compare(
        ["Popularity", "Biases"], Interactions.from_frame(data.to_frame()[["user", "item"]], rating=None), **QUICK
    )
    assert not liked.rated
    assert [table.title.partition(" ")[0] for table in liked.tables()] == ["Lists", "Costs"]
    assert "all test items are relevant" in liked.protocol
    every, some = (compare(["Biases"], data, split, relevant=least, **QUICK).protocol for least in (0.5, 4))
    assert ("at least 0.5, which all of them are; " in every, "at least 4; " in some) == (True, True)
    found = compare(["Biases", "Popularity"], data, split, **QUICK)
    text = str(found)
    tables = text.removesuffix(found.verdict)
    assert tables.count("Biases") == 3
    assert tables.count("Popularity") == 2  # no errors of ratings
    found.to_json(tmp_path / "found.json")
    written = (tmp_path / "found.json").read_text()
    assert "NaN" not in written
    assert '"settings"' in written


@pytest.fixture(scope="module")
def parts(data, split):
    """Training and test part, and lists of 25 items of a model of the former, by rank and score."""
    train, test = data.select(split.train), data.select(split.test)
    return train, test, BiasModel().fit(train).recommend(data.user_ids, 25)


def test_lists_made_elsewhere_are_judged_as_the_model_that_made_them(data, split, parts, tmp_path):
    train, _, lists = parts
    lists.drop(columns="rank").to_csv(tmp_path / "mine.csv", index=False)
    models = {
        "own": "Biases",
        "ranks": lists.sample(frac=1, random_state=0),
        "scores": lists[["user", "item", "score"]].sample(frac=1, random_state=0).astype({"user": str}),
        "rows": lists[["user", "item"]],
        "file": tmp_path / "mine.csv",
        "with shown": BiasModel().fit(train).recommend(data.user_ids, 25, exclude_seen=False),
    }
    found = compare(models, data, split, **QUICK)
    table = found.to_frame()
    for name in ("ndcg@3", "recall@3", "ndcg@3 low", "coverage"):
        assert table[name].nunique() == 1
    assert table["rmse"].notna().tolist() == [True] + [False] * 5
    assert table["fit_seconds"].notna().tolist() == [True] + [False] * 5
    (told,) = found.notes
    assert told.startswith("with shown: listed items that their user was shown, which are left out: ")
    assert "NaN" not in repr(found)


def test_predictions_made_elsewhere_have_the_errors_of_the_model_and_no_lists(data, parts):
    train, test, _ = parts
    predicted = pd.DataFrame({"user": ids(test)[0], "item": ids(test)[1], "prediction": 0.0})
    predicted["prediction"] = BiasModel().fit(train).predict(predicted["user"], predicted["item"])
    found = compare({"own": "Biases", "theirs": predicted}, train, test=test, **QUICK)
    table = found.to_frame()
    assert table["rmse"].nunique() == table["rmse high"].nunique() == 1
    assert math.isnan(table.loc["theirs", "ndcg@3"])
    assert "a tie in RMSE" in found.verdict
    assert "own (" in found.verdict.partition(";")[0]
    for given, message in (
        (predicted[2:], "expected ratings of all 100 test pairs, found none for 2, the first of user [0-9]+ and item"),
        (predicted.assign(prediction=np.nan), "expected a finite prediction in each row, found 100 NaN"),
    ):
        with pytest.raises(DataError, match=message):
            compare({"bad": Constant(checks=broken), "theirs": given}, train, test=test, **QUICK)
    with pytest.raises(DataError, match="x: expected lists, with a column rank or score, found ratings"):
        compare({"x": predicted}, Interactions.from_frame(train.to_frame()[["user", "item"]], rating=None), **QUICK)


def test_what_is_odd_about_lists_made_elsewhere_is_told(data, parts):
    train, test, lists = parts
    first, second = data.user_ids[:2]
    odd = lists[(lists["user"] != first) & ((lists["user"] != second) | (lists["rank"] <= 2))].copy()
    odd.loc[odd["rank"] == 1, "item"] = 999
    strange = pd.DataFrame({"user": [888, 889], "item": [1, 1], "score": 0.0, "rank": 1})
    found = compare({"whole": lists, "odd": pd.concat([odd, strange])}, train, test=test, relevant=0, **QUICK)
    n = found.n_users
    assert found.notes == [
        "odd: users that the data do not have: 2",
        f"odd: listed items that the data do not have, which count as missed: {n - 1}",
        f"odd: users without a list, of {n}: 1",
        f"odd: users with a list of fewer than 3 items, of {n}: 1",
    ]
    table = found.to_frame()
    assert 0 < table.loc["odd", "ndcg@3"] < table.loc["whole", "ndcg@3"]
    tested = test.to_frame().assign(rank=test.ratings)
    assert "all items of lists are tested ones" in compare([tested], train, test=test, **QUICK).notes[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lists: pd.concat([lists, lists[:2]]), "expected each item once for a user, found 2 again, the first "),
        (lambda lists: lists.assign(rank=[np.nan, *lists["rank"][1:]]), "finite rank in each row, found 1 NaN"),
        (lambda lists: lists.assign(user="x" + lists["user"].astype(str)), "of users of the data, found none"),
        (lambda lists: lists[:0], "found an empty table"),
        (lambda lists: lists[["user"]], "expected a table with the columns user and item"),
        (
            lambda lists: lists[lists["user"] == lists["user"].iloc[0]],
            "expected lists of the .* users with test items",
        ),
    ],
)
def test_tables_that_are_no_lists_are_refused_before_any_training(data, parts, change, message):
    train, test, lists = parts
    asked = test.select(test.user_index != 0)
    with pytest.raises(DataError, match=message):
        compare({"bad": Constant(checks=broken), "x": change(lists)}, train, test=asked, **QUICK)
    with pytest.raises(DataError, match="expected a single training part for lists made elsewhere, found 3"):
        compare([lists], data, 3, **QUICK)


def test_figures_of_groups_are_those_of_their_users_alone(data, parts):
    train, test, _ = parts
    about = pd.DataFrame({"user": data.user_ids, "age": np.arange(40.0), "name": [f"n{each}" for each in range(40)]})
    about["side"] = np.where(about["age"] < 10, "left", None)
    found = compare(["Biases", "Popularity"], train, test=test, groups=about, relevant=0, **QUICK)
    assert found.notes == ["groups: name has 40 labels, more than 30, and is left out"]
    rows = pd.DataFrame(found.groups).set_index(["attribute", "group", "system"])
    assert rows.loc["age"].index.unique("group").tolist() == ["0..7", "8..15", "16..23", "24..31", "32..39"]
    left = compare(
        ["Biases", "Popularity"], train, test=test.select(test.user_index < 10), relevant=0, **QUICK
    ).to_frame()
    for system in ("Biases", "Popularity"):
        of_group, alone = rows.loc[("side", "left", system)], left.loc[system]
        for name in ("rmse", "ndcg@3", "ndcg@3 high", "ndcg@3 p"):
            assert of_group[name] == pytest.approx(alone[name], nan_ok=True)
    users = rows.xs("Popularity", level="system")["ndcg@3 users"].groupby("attribute").sum()
    assert users.tolist() == [found.n_users] * 2
    assert "NDCG@3 by groups of users" in repr(found)
    assert len(compare(["Biases"], data, 3, groups=about["side"].set_axis(data.user_ids), **QUICK).groups) == 2


def test_the_verdict_names_the_best_and_what_is_level_with_it(data, split):
    near = BiasModel(bias_decay=5.0001)
    found = compare({"best": "Biases", "near": near, "mean": "GlobalMean", "p": "Popularity"}, data, split, **QUICK)
    rmse_of = found.to_frame()["rmse"].map("{:.4f}".format)
    for_ratings = found.verdict.partition("; ")[2]
    assert for_ratings.startswith("for ratings take ")
    assert f"best ({rmse_of['best']})" in for_ratings
    assert f"near ({rmse_of['near']})" in for_ratings
    assert "a tie in RMSE, p " in for_ratings
    assert "mean" not in for_ratings
    plain = compare({"best": "Biases", "mean": "GlobalMean"}, data, split, **QUICK)
    told = re.search(
        r"which is better than mean \(([0-9.]+)\) in RMSE by ([0-9.]+), beyond the error \(p .+\)$", plain.verdict
    )
    assert told is not None
    assert told[1] == rmse_of["mean"]
    assert float(told[2]) == pytest.approx(
        plain.to_frame()["rmse"]["mean"] - plain.to_frame()["rmse"]["best"], rel=1e-3
    )
    assert repr(plain).endswith(plain.verdict)
    assert compare(["Biases"], data, split, **QUICK).verdict == ""
