"""Figures of lists are those of LightGCN's definition, no system sees the test, and every one can be trained."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.evaluation.experiment import Costs, Question, check_sealed, rated_pairs
from air_recsys.evaluation.folds import Fold, users_asked
from air_recsys.evaluation.lists import Popularity, lists_of, lists_of_new_users
from air_recsys.evaluation.system import System
from air_recsys.exceptions import DataWarning, ParameterError
from air_recsys.metrics import ndcg_at_k
from air_recsys.models.graph_ranker.hidden import hidden_parts, latest_of_rows
from air_recsys.models.graph_ranker.inputs import interaction_pattern, interaction_times
from air_recsys.splits import user_holdout
from benchmarks.accuracy import cold_lists
from benchmarks.accuracy import ranking_systems as of_systems
from benchmarks.accuracy.experiments import experiment, published_figures
from benchmarks.accuracy.kinds import made_events
from benchmarks.accuracy.peers import autoencoders
from benchmarks.accuracy.peers.autoencoders import EASE, RDLAE, ByUsers
from benchmarks.accuracy.peers.described import ContentNeighbors, HybridFactors
from benchmarks.accuracy.peers.filters import GFCF, TurboCF
from benchmarks.accuracy.ranking import ask_lists, bench_ranking, list_figures, ranking, user_ndcg
from benchmarks.accuracy.ranking_data import RANKING_SETS, validation_part
from benchmarks.accuracy.ranking_systems import LADDERS, grids_of, ranking_systems, systems_by_default
from benchmarks.accuracy.searches import Selection
from benchmarks.harness import read_cases


@pytest.fixture(scope="module")
def fold():
    rng = np.random.default_rng(0)
    chance = np.where(np.arange(60)[:, None] % 3 == np.arange(45) % 3, 0.5, 0.05)
    data = Interactions.from_csr(sp.csr_array((rng.random(chance.shape) < chance).astype(float)))
    split = user_holdout(data, 0.2, 0)
    return Fold("test", data.select(split.train), data.select(split.test))


def figures_of_lightgcn(lists, truth, k):
    """Recall and NDCG as LightGCN's program computes them, user by user."""
    recall, ndcg = [], []
    for ranked, relevant in zip(lists, truth, strict=True):
        hits = np.array([item in relevant for item in ranked[:k]], dtype=float)
        best = np.zeros(k)
        best[: min(k, len(relevant))] = 1
        discount = 1 / np.log2(np.arange(2, k + 2))
        recall.append(hits.sum() / len(relevant))
        ndcg.append((hits * discount).sum() / (best * discount).sum())
    return np.mean(recall), np.mean(ndcg)


def figures_of(fold, lists):
    relevant = interaction_pattern(fold.test)[users_asked(fold)]
    costs = Costs(2.0, 1.5, 0.1, 0.2, 0.3).of_training()
    return list_figures(lists, relevant, user_ndcg(lists, relevant)) | costs


def test_figures_are_those_of_lightgcn(fold):
    rng = np.random.default_rng(1)
    users = users_asked(fold)
    lists = np.array([rng.permutation(fold.train.n_items)[:20] for _ in users])
    relevant = fold.test.to_csr().tolil().rows
    expected = figures_of_lightgcn(lists, [set(relevant[user]) for user in users], 20)
    found = figures_of(fold, lists)
    assert (found["recall@20"], found["ndcg@20"]) == pytest.approx(expected, rel=1e-12)
    assert (found["seconds"], found["cpu_seconds"], found["peak_gib"]) == (2.0, 1.5, 0.2)


def scores(model, fold, users):
    """Return the scores of some users by a peer trained on a fold."""
    model.fit(fold.train)
    return model._scores(model.pattern[users])


def weights(model):
    """Return B, of the scores of users with one item each."""
    return model._scores(sp.csr_array(np.eye(model.columns.size, dtype=np.float32)))


def test_published_figures_stand_beside_the_test_part_alone(fold, at_once):
    systems = {"popular": System(Popularity().fit, "of ours")}
    report = bench_ranking("gowalla", fold, systems, seed=3)[0]
    others = [name for name, _ in published_figures("ranking", "gowalla")]
    assert [row["system"] for row in report.rows] == ["popular", *others]
    assert all("recall@20" not in row and row["published recall@20"] > 0.1 for row in report.rows[1:])
    assert report.notes == ["popular: of ours"]
    assert "seed 3" in report.protocol
    inner = bench_ranking("gowalla", validation_part(fold), systems)[0]
    assert [row["system"] for row in inner.rows] == ["popular"]
    assert "validation" in inner.title


def test_a_validation_part_is_of_the_training_part(fold):
    inner = validation_part(fold)
    pairs = [set(zip(d.user_index.tolist(), d.item_index.tolist(), strict=True)) for d in (*inner[1:], *fold[1:])]
    assert pairs[0] | pairs[1] == pairs[2]
    assert not pairs[0] & pairs[1]
    assert not (pairs[0] | pairs[1]) & pairs[3]


@pytest.mark.parametrize("data", ["gowalla", "ml-1m"])
def test_every_system_is_trained_and_its_lists_are_of_unseen_items(fold, data, monkeypatch):
    pytest.importorskip("implicit")
    grids = {name: {key: tried[:1] for key, tried in grid.items()} for name, grid in grids_of(data).items()}
    monkeypatch.setattr(of_systems, "grids_of", lambda _: grids)
    for name in grids:
        monkeypatch.setitem(LADDERS, name, {})
    users, seen = users_asked(fold), fold.train.to_csr().toarray() > 0
    for name, system in ranking_systems(data, {"n_factors": 5}).items():
        lists, settings = ask_lists(system.train(fold.train), fold.train, Question(users=users, k=45))
        assert len(lists) == users.size, name
        assert lists.shape[1] == 45, name
        filled = lists >= 0
        assert not seen[np.repeat(users, filled.sum(axis=1)), lists[filled]].any(), name
        assert bool(settings) == (name == "GraphRanker" or name in grids)


def test_settings_are_searched_and_the_costly_system_runs_where_items_are_few():
    assert "EASE" in systems_by_default("ml-1m")
    assert "EASE" not in systems_by_default("gowalla")
    told = ranking_systems("ml-1m")["EASE"].settings
    assert "of decay=250 | 500 | 1000 | 2000, and of single steps from the best within decay 8..8000" in told
    gowalla = ranking_systems("gowalla")
    assert gowalla["EASE"].settings == "written from its paper, decay=200"
    assert "n_factors=256, weight=0.3: the settings" in gowalla["GF-CF by convention"].settings
    assert "the best on a random hidden fifth" in gowalla["GF-CF"].settings
    assert "implicit BPR" in gowalla
    assert "implicit BPR" not in systems_by_default("ml-1m", new_users=True)  # makes no lists of new users


def test_a_search_takes_the_settings_of_the_best_lists_on_what_it_is_shown(fold):
    tried, users = (1e-3, 1e6, 5.0), users_asked(fold)
    found = Selection(EASE, {"decay": tried}).fit(fold.train)
    assert found.settings_ == {"decay": 1e6}
    np.testing.assert_array_equal(found.lists(users, 9), EASE(1e6).fit(fold.train).lists(users, 9))
    inner = validation_part(fold)
    apart = [EASE(decay).fit(inner.train).lists(users_asked(inner), 100) for decay in tried]
    expected = [figures_of(inner, lists)["ndcg@20"] for lists in apart]
    assert found.figures_ == {(decay,): figure for decay, figure in zip(tried, expected, strict=True)}
    assert found.figures_[1e6,] == max(expected)


def test_a_search_goes_on_along_the_ladders_and_tells_where_they_end(fold):
    ladder = (0.5, 2.0, 8.0, 32.0, 128.0)
    grid, ladders = (
        {"decay": (8.0,), "dropout": (0.2,), "limit": (0.0,)},
        {"decay": ladder, "dropout": (0.0, 0.2, 0.4)},
    )
    found = Selection(RDLAE, grid, ladders).fit(fold.train)
    best, tried = tuple(found.settings_.values()), found.figures_
    assert tried[best] == max(tried.values()) > tried[8.0, 0.2, 0.0]
    place = {name: ladders[name].index(found.settings_[name]) for name in ladders}
    beside = [(ladder[place["decay"] + step], *best[1:]) for step in (1, -1) if 0 <= place["decay"] + step < 5]
    assert set(beside) <= set(tried)
    assert found.edges_ == [name for name in ladders if place[name] in (0, len(ladders[name]) - 1)]


def test_a_search_leaves_settings_without_any_hit(fold, monkeypatch):
    fails = EASE(1.0)
    monkeypatch.setattr(fails, "lists", lambda users, n: np.full((users.size, n), -1))
    found = Selection(lambda decay: fails if decay == 1 else EASE(decay), {"decay": (1.0, 5.0)}).fit(fold.train)
    assert (found.figures_[1.0,], found.settings_) == (0.0, {"decay": 5.0})


def test_ladders_hold_the_settings_of_all_grids():
    for data in experiment("ranking")["set"]:
        for name, grid in grids_of(data).items():
            for setting, ladder in LADDERS[name].items():
                assert set(grid[setting]) <= set(ladder), (name, setting)
                assert list(ladder) == sorted(set(ladder))


def test_for_the_future_all_searches_hide_the_latest_part(fold):
    system = ranking_systems("ml-100k-time")
    assert "validation='time'" in system["GraphRanker"].settings
    assert "the best on the hidden latest three fifths of the training items" in system["EASE"].settings
    data = fold.train
    times = np.random.default_rng(0).permutation(data.n_ratings)
    pairs = data.user_index, data.item_index, data.ratings, data.user_ids, data.item_ids
    timed = Interactions(*pairs, timestamps=times)
    tried = (1e-3, 5.0)
    found = Selection(EASE, {"decay": tried}, validation="last").fit(timed)
    shown, hidden = latest_of_rows(interaction_pattern(timed), interaction_times(timed), 0)[1:3]
    for (decay,), figure in found.figures_.items():
        model, asked = EASE(decay).fit(Interactions.from_csr(shown)), np.flatnonzero(np.diff(hidden.indptr))
        assert ndcg_at_k(model.lists(asked, 20), hidden[asked], 20) == figure
    inner = validation_part(fold._replace(train=timed), kind="time")
    later, earlier = inner.test.timestamps, inner.train.timestamps
    assert later is not None
    assert earlier is not None
    assert later.min() > earlier.max()


def test_a_set_in_order_has_the_systems_of_its_split_and_chooses_on_the_latest_of_each_user(fold, at_once):
    in_order, plain = ranking_systems("gowalla-order"), ranking_systems("gowalla")
    assert [name for name in in_order if "half-lives" not in name] == list(plain)
    assert "validation='last'" in in_order["GraphRanker"].settings
    assert "the best on the hidden latest fifth of each user's training items of" in in_order["GF-CF"].settings
    for name in plain:
        if "by convention" in name:
            assert in_order[name].settings == plain[name].settings
    data = fold.train
    pairs = data.user_index, data.item_index, data.ratings, data.user_ids, data.item_ids
    timed = Interactions(*pairs, timestamps=np.random.default_rng(0).permutation(data.n_ratings))
    inner = validation_part(fold._replace(train=timed), kind=RANKING_SETS["gowalla-order"].kind)
    part = latest_of_rows(interaction_pattern(timed), interaction_times(timed), 0)
    np.testing.assert_array_equal(inner.test.to_csr().toarray(), part.hidden.toarray())
    means, _ = bench_ranking("gowalla-order", inner, {"popular": System(Popularity().fit, "")})
    assert "tested: the latest fifth of each user's of the training items" in means.protocol
    means, _ = bench_ranking("gowalla-order", fold, {"popular": System(Popularity().fit, "")})
    assert [row["system"] for row in means.rows[1:]] == [name for name, _ in published_figures("ranking", "gowalla")]


def test_sets_in_order_read_the_places_in_the_lines_and_are_asked_for_by_name(tmp_path):
    _, default, cases = read_cases("ranking")
    others = {name for name in cases if name.startswith(("rated-", "kinds-")) or name.endswith("-cold")}
    assert set(cases) - others == set(RANKING_SETS)
    assert {"gowalla-order", "yelp2018-order", "games-last"} == set(RANKING_SETS) - set(default)
    for name in ("gowalla", "yelp2018"):
        folder = tmp_path / "implicit" / name
        folder.mkdir(parents=True)
        (folder / "train.txt").write_text("0 2 1\n1 1 0 2\n")
        (folder / "test.txt").write_text("0 0\n")
        train = RANKING_SETS[f"{name}-order"].load(tmp_path).train
        assert train.timestamps is not None
        assert sorted(train.timestamps) == pytest.approx([1 / 3, 1 / 2, 2 / 3, 1, 1])
        assert RANKING_SETS[name].load(tmp_path).train.timestamps is None


def test_for_new_users_all_searches_hold_users_out(fold):
    systems = ranking_systems("ml-1m", new_users=True)
    assert "validation='users'" in systems["GraphRanker"].settings
    assert "of a tenth of the training's users, held out, of decay" in systems["EASE"].settings
    data = Interactions.from_csr(sp.csr_array(np.tile(fold.train.to_csr().toarray(), (4, 1))))
    found = Selection(EASE, {"decay": (1e-3, 5.0)}, validation="users").fit(data)
    part = hidden_parts(interaction_pattern(data), None, "users", 0)[0]
    assert part.given is not None
    asked = np.flatnonzero(np.diff(part.hidden.indptr))
    for (decay,), figure in found.figures_.items():
        model = EASE(decay).fit(Interactions.from_csr(part.shown))
        assert ndcg_at_k(model.lists_of_new(part.given[asked], 20), part.hidden[asked], 20) == figure


def test_the_better_model_makes_the_better_lists(fold, at_once):
    names = ("GraphRanker", "Popularity", "EASE")
    systems = {name: ranking_systems("ml-1m", {"n_factors": 5})[name] for name in names}
    means, spreads = bench_ranking("ml-1m", fold, systems)
    assert means.notes[2].partition("; chosen: ")[2].startswith("decay=")
    ours, popular, _ = means.rows
    assert ours["ndcg@20"] > popular["ndcg@20"] + 0.1
    first, second, _ = spreads.rows
    assert np.isnan(first["@20 p"])
    assert second["@20 p"] < 1e-6
    assert first["popularity lift"] < second["popularity lift"]
    assert first["@10 low"] < ours["ndcg@10"] < first["@10 high"]
    assert "against GraphRanker" in spreads.protocol


@pytest.mark.parametrize("decay", [0.5, 20.0])
def test_ease_minimises_its_objective(fold, decay):
    """The gradient of |X - XB|^2 + decay |B|^2 vanishes off the diagonal, which is zero."""
    model = EASE(decay).fit(fold.train)
    x, b = model.pattern.toarray().astype(float), np.asarray(weights(model), dtype=float)
    gradient = x.T @ (x @ b - x) + decay * b
    np.fill_diagonal(gradient, 0)
    assert np.abs(gradient).max() < 1e-3
    assert np.abs(np.diag(b)).max() < 1e-5


def test_gf_cf_scores_are_those_of_its_program(fold):
    """As the program computes them, densely: adj N^T N + 0.3 adj D^-1/2 V V^T D^1/2."""
    model = GFCF(n_factors=7).fit(fold.train)
    x = (fold.train.to_csr().toarray() > 0).astype(float)
    roots = np.sqrt(x.sum(axis=0))
    even = x / np.sqrt(x.sum(axis=1, keepdims=True)) / roots
    v = np.linalg.svd(even)[2][:7]
    expected = x @ even.T @ even + 0.3 * (x / roots) @ v.T @ v * roots
    np.testing.assert_allclose(model._scores(model.pattern), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("power", [0.7, 1.0])
def test_turbo_cf_is_its_polynomial_of_the_items(fold, power):
    x = (fold.train.to_csr().toarray() > 0).astype(float)
    even = x.sum(axis=1, keepdims=True) ** -0.6 * x * x.sum(axis=0) ** (0.6 - 1)
    p, users = (even.T @ even) ** power, np.arange(len(x))
    np.testing.assert_allclose(scores(TurboCF(0.6, power), fold, users), x @ p, rtol=1e-4)
    found = scores(TurboCF(0.6, power, order=2), fold, users)
    np.testing.assert_allclose(found, x @ (2 * p - p @ p), rtol=1e-4, atol=1e-4)


def test_rdlae_is_its_formula(fold):
    """Both where the diagonal is limited and where it is not."""
    x = (fold.train.to_csr().toarray() > 0).astype(float)
    for limit in (0.05, 0.2):
        penalties = 3.0 + 0.25 * x.sum(axis=0)
        c = np.linalg.inv(x.T @ x + np.diag(penalties))
        over = 1 - penalties * c.diagonal() > limit
        assert over.any()
        m = np.where(over, (1 - limit) / c.diagonal() - penalties, 0)
        expected = np.eye(len(c)) - c @ np.diag(penalties + m)
        found = RDLAE(3.0, 0.2, limit).fit(fold.train)
        np.testing.assert_allclose(weights(found), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("make", [partial(EASE, 3.0), partial(RDLAE, 3.0, 0.3, 0.2)])
def test_scores_by_an_inverse_of_users_are_those_by_one_of_items(fold, make, monkeypatch):
    rows = sp.csr_array(fold.test.to_csr(), dtype=np.float32)
    expected = make().fit(fold.train)._scores(rows)
    monkeypatch.setattr(autoencoders, "ridge_inverse", ByUsers)
    np.testing.assert_allclose(make().fit(fold.train)._scores(rows), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sizes"), [("gowalla", (810_128, 217_242)), ("yelp2018", (1_237_259, 324_147)), ("ml-1m", None)]
)
def test_the_splits_are_those_of_the_field(data_root, name, sizes):
    loaded: Any = RANKING_SETS[name].load(data_root)
    check_sealed(rated_pairs(loaded.train), rated_pairs(loaded.test))
    if sizes is not None:
        assert (loaded.train.n_ratings, loaded.test.n_ratings) == sizes
        assert users_asked(loaded).size == loaded.train.n_users  # every user is asked for


@pytest.mark.parametrize("peer", [GFCF(4), EASE(10.0)])
def test_lists_of_new_users_are_those_of_trained_ones_with_the_same_items(fold, peer):
    users, model = np.arange(5), peer.fit(fold.train)
    rows = sp.csr_array(fold.train.to_csr()[users] > 0, dtype=np.float32)
    found, expected = lists_of_new_users(model, rows, 3), lists_of(model, fold.train, users, 3)
    assert (found == expected).mean() > 0.99
    assert not any(rows[user, item] for user, items in enumerate(found) for item in items)


@pytest.mark.parametrize(
    ("how", "title"),
    [({}, ""), ({"validation": True}, "a validation part of "), ({"new_users": True}, "new users of ")],
)
def test_a_case_has_the_tables_of_its_part(fold, at_once, monkeypatch, how, title):
    monkeypatch.setitem(RANKING_SETS, "lastfm", RANKING_SETS["lastfm"]._replace(load=lambda root: fold))
    given = {"systems": ["Popularity"], "validation": False, "new_users": False, "settings": {}} | how
    tables = ranking(None, 3, 1, "lastfm", **given)
    assert [table.title for table in tables] == [
        f"Lists on {title}Last.fm{end}" for end in ("", ": intervals and catalogue")
    ]
    assert "seed 3" in tables[0].protocol
    assert ("held out of the training" in tables[0].protocol) is ("new_users" in how)


def test_lists_of_hidden_items_and_for_hidden_users_are_measured(monkeypatch):
    """On made films with two genres, of which each user likes one."""
    rng, (n_users, n_items) = np.random.default_rng(0), (80, 250)
    users, items = np.arange(n_users) % 2, np.arange(n_items) % 2
    chance = np.where(users[:, None] == items, 0.4, 0.02)
    data = Interactions.from_csr(sp.csr_array((rng.random(chance.shape) < chance).astype(float)))
    known = {"item": pd.DataFrame({"genres": np.where(items, "war", "love"), "year": 1990 + np.arange(n_items) % 9})}
    known["user"] = pd.DataFrame({"age": 20 + users, "gender": np.where(users, "x", "y"), "occupation": "z"})
    monkeypatch.setattr(cold_lists, "load_movielens", lambda *_: data)
    monkeypatch.setattr(cold_lists, "known_tables", lambda *_: known)
    makers = {"content kNN": [partial(ContentNeighbors, 9)], "LightFM's model": [partial(HybridFactors, 0.05, 4)]}
    monkeypatch.setattr(cold_lists, "_PEERS", makers)
    how: dict[str, Any] = {"systems": [], "draws": 1, "validation": False, "new_users": False}
    how |= {"hidden": ["items by genres", "users by age, gender and occupation"]}
    how["settings"] = {"n_factors": 4, "settings": {}}
    with pytest.warns(DataWarning, match="left out"):
        rows = cold_lists.bench_cold_lists(Path(), 0, "ml-100k-cold", **how).tables[0]
    found = {row["measure"]: row for row in rows}
    recall = found["recall@20 of hidden items"]
    assert min(recall["GraphRanker"], recall["LightFM's model"], recall["content kNN"]) > 1.2 * recall["chance"]
    others = found["NDCG@20 of the others"]
    assert others["GraphRanker"] > 0.85 * others["without features"]
    assert found["NDCG@20"]["GraphRanker"] > 1.2 * found["NDCG@20"]["popularity"]
    with pytest.raises(ParameterError, match="hidden whole"):
        cold_lists.bench_cold_lists(Path(), 0, "ml-100k-cold", **how | {"validation": True})


def test_made_events_tell_nothing_of_hidden_purchases():
    events, test = made_events(0, n_users=80, n_items=30, n_groups=3)
    assert set(events["kind"]) == {"purchase", "cart", "view"}
    assert test[events["user"].to_numpy(), events["item"].to_numpy()].sum() == 0
    hidden = np.flatnonzero(np.diff(test.indptr))
    assert set(hidden) <= set(events.loc[events["kind"] == "purchase", "user"])
    assert np.diff(test.indptr)[hidden].max() == 1
