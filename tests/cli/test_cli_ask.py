"""Asking a model file: predict, recommend, similar, explain, graph and report say what the library answers."""

import os
import warnings

import networkx as nx
import pandas as pd
import pytest
from cli_cases import SHORT, assert_refused, cli, ratings, read_json
from page_reader import data_of

from air_recsys import AIR, rerank
from air_recsys.evaluation.held_out import evaluate_model
from air_recsys.evaluation.results.table import format_number
from air_recsys.exceptions import DataWarning
from air_recsys.models import GraphRanker


def asked(*arguments):
    """Ask, and return what was said."""
    ended = cli(*arguments)
    assert ended.status == 0, ended.err
    return ended


def test_predict_prints_the_probability_of_each_value(shelf, tmp_path):
    ask = ["predict", shelf / "text.air", "--user", "u10", "--item", "i0", "--item", "i1", "--probabilities"]
    asked(*ask, "--json", tmp_path / "found.json", "--out", tmp_path / "found.csv")
    found, model = pd.read_csv(tmp_path / "found.csv"), AIR.load(shelf / "text.air")
    names = [f"p({value:g})" for value in model.rating_values_]
    assert list(found.columns) == ["user", "item", "score", "deviation", "low", "high", "source", *names]
    assert found[names].to_numpy() == pytest.approx(model.predict_proba("u10", ["i0", "i1"]))
    assert [row["p(5)"] for row in read_json(tmp_path / "found.json")["scores"]] == found["p(5)"].tolist()


def test_an_unknown_id_is_told_once_beside_probabilities(shelf):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        how = ["--user", "u10", "--item", "i0", "--item", "i99", "--probabilities"]
        ended = asked("predict", shelf / "text.air", *how)
    assert ended.err.count("1 of 2 pairs get a mean rating") == 1
    assert "user mean" in ended.out


@pytest.mark.parametrize(("ids", "user", "stranger"), [("integer", "10", "77"), ("text", "u10", "nobody")])
def test_recommend_prints_and_writes_what_the_model_answers(shelf, tmp_path, ids, user, stranger):
    target = tmp_path / "r.json"
    how = ["--user", user, "--user", stranger, "--n", 3, "--include-seen", "--json", target]
    ended = asked("recommend", shelf / f"{ids}.air", *how)
    rows = read_json(target)
    kind = int if ids == "integer" else str
    expected = AIR.load(shelf / f"{ids}.air").recommend([kind(user), kind(stranger)], n=3, exclude_seen=False)
    assert [row["item"] for row in rows] == expected["item"].tolist()
    assert [row["score"] for row in rows] == pytest.approx(expected["score"].tolist(), rel=1e-6)
    assert [row["source"] for row in rows] == ["model"] * 3 + ["popular"] * 3
    assert all(format_number(row["score"]) in ended.out for row in rows)
    assert (
        f"note: what is popular is listed for 1 of 2 user(s) of whom nothing is known: {kind(stranger)!r}" in ended.err
    )


def test_lists_are_made_again_as_by_rerank(shelf, tmp_path):
    kinds = ["a|b", "a", "b", "a", "b", "a"]
    pd.DataFrame({"id": [f"i{n}" for n in range(6)], "kind": kinds}).to_csv(tmp_path / "films.csv", index=False)
    how = ["--user", "u10", "--user", "u3", "--include-seen", "--n", 3, "--json", tmp_path / "r.json"]
    again = ["--titles", tmp_path / "films.csv", "--group-by", "kind", "--calibration", 0.5, "--diversity", 0.2]
    asked("recommend", shelf / "text.air", *how, *again)
    model, groups = AIR.load(shelf / "text.air"), {f"i{n}": kind.split("|") for n, kind in enumerate(kinds)}
    lists = model.recommend(["u10", "u3"], 200, exclude_seen=False)
    expected = rerank(lists, model, 3, groups=groups, calibration=0.5, diversity=0.2)
    found = read_json(tmp_path / "r.json")
    assert [(row["user"], row["item"], row["rank"]) for row in found] == list(
        expected[["user", "item", "rank"]].itertuples(index=False, name=None)
    )
    for options, told in (
        (["--calibration", 0.5], "calibration and per_group need groups, found None"),
        (["--group-by", "kind"], "recommend without --titles does not read --group-by"),
        ([*again[:2], "--group-by", "none"], "expected a column 'none' of groups, found ['kind']"),
    ):
        ended = cli("recommend", shelf / "text.air", "--user", "u10", *options)
        assert ended.status == 1
        assert told in ended.err


def test_users_of_whom_none_is_known_are_told_once(shelf):
    ended = asked("recommend", shelf / "text.air", "--user", "x", "--user", "y", "--n", 1)
    note = "note: what is popular is listed for 2 of 2 user(s) of whom nothing is known: 'x', 'y'; known are such as"
    assert ended.err.startswith(note)
    assert ended.err.count("\n") == 1


def test_what_was_rated_is_left_out_and_a_shorter_list_is_told(shelf, tmp_path):
    asked("recommend", shelf / "text.air", "--user", "u10", "--n", 6, "--json", tmp_path / "r.json")
    assert [row["item"] for row in read_json(tmp_path / "r.json")] == ["i5"]
    ended = asked("recommend", shelf / "text.air", "--user", "u10", "--user", "nobody", "--n", 10_000)
    assert "note: fewer than 10000 items are left for 2 of 2 user(s)" in ended.err
    assert asked("recommend", shelf / "text.air", "--user", "u10", "--n", 1).err == ""


def test_what_counts_and_what_is_replaced_is_said_and_no_name_steers_the_terminal(shelf, tmp_path, monkeypatch):
    (tmp_path / "r.json").touch()
    pd.DataFrame({"id": ["i5"], "title": ["a\x1b[2J\u202eb"]}).to_csv(tmp_path / "titles.csv", index=False)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK or path.is_dir())
    how = ["--titles", tmp_path / "titles.csv", "--json", tmp_path / "r.json"]
    ended = asked("recommend", shelf / "text.air", "--user", "u10", "--n", 3, "--n", 1, *how)
    assert ended.err.startswith("note: --n stands twice, and the last one counts\n")
    assert ended.err.endswith("r.json is read-only, and will be replaced\n")
    assert [row["title"] for row in read_json(tmp_path / "r.json")] == ["a\x1b[2J\u202eb"]
    told = asked("explain", shelf / "text.air", "--user", "u11", "--item", "i5", "--titles", tmp_path / "titles.csv")
    assert r"a\x1b[2J\u202eb" in ended.out
    assert r"a\x1b[2J\u202eb" in told.out


def test_a_user_who_has_rated_all_gets_a_sentence(tmp_path):
    rest = pd.DataFrame({"user": ["u10"], "item": ["i5"], "rating": [3.0]})
    pd.concat([ratings("text"), rest]).to_csv(tmp_path / "all.csv", index=False)
    asked("train", tmp_path / "all.csv", *SHORT, "--model", tmp_path / "m.air")
    ended = asked("recommend", tmp_path / "m.air", "--user", "u10", "--json", tmp_path / "r.json")
    told = "note: no item is left for 1 of 1 user(s), who rated all 6 (--include-seen): 'u10'\n"
    assert (ended.out, ended.err) == ("", told)
    assert read_json(tmp_path / "r.json") == []
    assert asked("recommend", tmp_path / "m.air", "--user", "u10", "--include-seen").err == ""
    ended = asked("recommend", tmp_path / "m.air", "--user", "u11", "--item", "i0", "--exclude", "i0")
    told = "note: no item is left for 1 of 1 user(s) of those that --item and --exclude allow: 'u11'\n"
    assert (ended.out, ended.err) == ("", told)


@pytest.mark.parametrize(
    ("ids", "users", "items"), [("integer", [10, 11], [0, 5]), ("text", ["u10", "u11"], ["i0", "i5"])]
)
@pytest.mark.parametrize("option", ["items", "exclude"])
def test_tables_of_items_are_for_all_users_or_for_each(shelf, tmp_path, ids, users, items, option):
    model, table, target = AIR.load(shelf / f"{ids}.air"), tmp_path / "items.csv", tmp_path / "r.json"
    how = [part for user in users for part in ("--user", user)] + ["--include-seen", f"--{option}-from", table]
    own = pd.DataFrame({"userId": users, "movieId": items})
    for given in (own, own[["movieId"]]):
        given.to_csv(table, index=False)
        asked("recommend", shelf / f"{ids}.air", *how, "--json", target)
        chosen = {option: given if len(given.columns) > 1 else items}
        expected = model.recommend(users, exclude_seen=False, **chosen)
        found = [[row["user"], row["item"]] for row in read_json(target)]
        assert found == expected[["user", "item"]].to_numpy().tolist()


def test_a_table_without_items_and_one_beside_ids_are_refused(shelf, tmp_path):
    (tmp_path / "items.csv").write_text("price\ni0\n")
    refused = ["recommend", shelf / "text.air", "--user", "u10", "--items-from", tmp_path / "items.csv"]
    assert "expected a column item, or user and item, found ['price']" in cli(*refused).err
    assert "expected --item or a file of items, found both" in cli(*refused, "--item", "i0").err


@pytest.mark.parametrize(("ids", "stranger", "item"), [("integer", 77, 0), ("text", "new", "i0")])
def test_recommend_folds_new_ratings_in(shelf, tmp_path, ids, stranger, item):
    new = pd.DataFrame({"user": [stranger], "item": [item], "rating": [5.0]})
    new.to_csv(tmp_path / "new.csv", index=False)
    before = (shelf / f"{ids}.air").read_bytes()
    asked("recommend", shelf / f"{ids}.air", "--ratings", tmp_path / "new.csv", "--json", tmp_path / "r.json")
    rows = read_json(tmp_path / "r.json")
    model = AIR.load(shelf / f"{ids}.air").partial_fit(new)
    expected = model.recommend(stranger, n=model.interactions_.n_items)
    assert [row["item"] for row in rows] == expected["item"].tolist()
    assert item not in {row["item"] for row in rows}
    assert {row["source"] for row in rows} == {"model"}
    assert (shelf / f"{ids}.air").read_bytes() == before


def test_a_ranker_makes_lists_for_known_and_new_users_and_explains_them(shelf, tmp_path):
    target, figures = tmp_path / "lists.air", tmp_path / "f.json"
    how = ["--ranking", "--model", target, "--set", "n_factors=3", "--json", figures]
    assert "NDCG@20 on parts hidden at random: " in asked("train", shelf / "text.csv", *how).out
    assert read_json(figures)["ndcg"] > 0
    model = GraphRanker.load(target)
    known, item = model.interactions_.user_ids[0], model.interactions_.item_ids[0]
    expected = model.recommend(known, 3)
    new = pd.DataFrame({"user": ["eve"], "item": [item], "rating": [5.0]})
    new.to_csv(tmp_path / "new.csv", index=False)
    how = ["--ratings", tmp_path / "new.csv", "--user", "eve", "--user", known, "--n", 3]
    asked("recommend", target, *how, "--json", figures)
    rows = read_json(figures)
    assert [row["user"] for row in rows] == ["eve"] * 3 + [known] * len(expected)
    assert [row["item"] for row in rows[:3]] == model.fold_in(new).recommend("eve", 3)["item"].tolist()
    assert [row["item"] for row in rows[3:]] == expected["item"].tolist()
    ended = asked("explain", target, "--user", known, "--item", "i5", "--n", "2", "--json", figures)
    assert ended.out.startswith(f"user {known}, item i5: score ")
    told = read_json(figures)
    assert sum(told["parts"].values()) == pytest.approx(told["score"], rel=1e-4)
    assert len(told["items"]) == 2


@pytest.mark.parametrize(("ids", "user", "item"), [("integer", 10, 5), ("text", "u10", "i5")])
def test_explain_prints_and_writes_what_the_model_answers(shelf, tmp_path, ids, user, item):
    model = shelf / f"{ids}.air"
    ended = asked("explain", model, "--user", user, "--item", item, "--n", 3, "--json", tmp_path / "e.json")
    expected = AIR.load(model).explain(user, item, n=3)
    assert ended.out == f"{expected}\n"
    assert read_json(tmp_path / "e.json") == expected.to_dict()


def test_a_model_without_similarities_says_so(shelf):
    assert cli("similar", shelf / "bias.air", "--item", "i1") == (
        0,
        "",
        "note: this BiasModel knows no items that are similar to 'i1'\n",
    )


@pytest.mark.parametrize("side", ["users", "items"])
def test_graph_describes_the_graph_and_writes_it(shelf, tmp_path, side):
    graphml, target, page = tmp_path / "g.graphml", tmp_path / "g.json", tmp_path / "g.html"
    how = ["--side", side, "--graphml", graphml, "--json", target, "--html", page]
    ended = asked("graph", shelf / "text.air", *how)
    figures, written = read_json(target), nx.read_graphml(graphml)
    assert (figures["nodes"], figures["edges"]) == (len(written), written.number_of_edges())
    assert f"{figures['nodes']} {side}, {figures['edges']} edges" in ended.out
    assert set(figures["communities"]) == set(written)
    assert f"{len(set(figures['communities'].values()))} communities" in ended.out
    assert f"wrote {page}" in ended.out
    graphs = {graph["name"]: graph for graph in data_of(page)["graphs"]}
    assert next(iter(graphs)) == side
    assert graphs[side]["steps"][0]["n_edges"] == figures["edges"]
    for option, there in (("--recommend", True), ("--no-recommend", False)):
        asked("graph", shelf / "text.air", "--html", page, option)
        assert ("class FoldIn" in page.read_text(encoding="utf-8")) is there


@pytest.mark.parametrize(("ids", "first"), [("integer", ""), ("text", "i")])
def test_titles_stand_beside_the_items_everywhere(shelf, tmp_path, ids, first):
    titles = {f"{first}5": "Heat", f"{first}1": "<b>Fargo</b>, 1996", f"{first}999": "none of the model's"}
    table = pd.DataFrame({"id": list(titles), "title": list(titles.values()), "year": 2000})
    table.to_csv(tmp_path / "t.csv", index=False)
    model, how = shelf / f"{ids}.air", ["--titles", tmp_path / "t.csv"]
    user, target, page = "10" if ids == "integer" else "u10", tmp_path / "r.json", tmp_path / "page.html"
    for command in (("recommend", "--user", user, "--include-seen"), ("similar", "--item", f"{first}0")):
        ended = asked(command[0], model, *command[1:], "--n", 5, "--json", target, *how)
        named = {str(row["item"]): row["title"] for row in read_json(target)}
        assert set(named.values()) & set(titles.values())
        assert named == {item: titles.get(item, "") for item in named}
        assert all(title in ended.out for title in named.values())
    ended = asked("explain", model, "--user", user, "--item", f"{first}5", *how)
    assert f"user {user}, item {first}5 (Heat): score" in ended.out
    assert "Fargo" in ended.out
    asked("report", model, "--out", page, *how)
    assert "&lt;b&gt;Fargo" in page.read_text(encoding="utf-8")
    asked("graph", model, "--html", page, *how)
    items = data_of(page)["graphs"][0]
    assert items["labels"] == [titles.get(item, item) for item in items["ids"]]
    assert items["attributes"]["year"] == ["2000" if item in titles else None for item in items["ids"]]


@pytest.mark.parametrize("header", ["id,title", "item,title", "movieId,Title", "Movie,movieId,genres", "isbn,name"])
def test_titles_have_ids_under_the_names_of_ratings(shelf, tmp_path, header):
    names = header.split(",")
    ids = next(name for name in names if name in ("id", "item", "movieId", "isbn"))
    row = ["i0" if name == ids else f"the {name}" for name in names]
    (tmp_path / "titles.csv").write_text("\n".join([header, ",".join(row)]), encoding="utf-8")
    how = ["--user", "u10", "--include-seen", "--n", "6", "--titles", tmp_path / "titles.csv"]
    told = asked("recommend", shelf / "text.air", *how).out
    assert f"the {next(name for name in names if name != ids)}" in told


@pytest.mark.parametrize(
    ("titles", "message"),
    [
        ("title\nA\n", "column id"),
        ("id\n1\n", "at least one more"),
        ("", "expected a table with the model's item ids"),
        ("id,title\nmany,A\n", "found none of their ids in its column 'id'"),
        ("\0\xff\0", "expected a table with the model's item ids"),
        (None, "expected a table with the model's item ids"),
        ("id,title\n77,A\n", "found none of their ids"),
        ("movieId,title\n77,A\n", "none of their ids in its column 'movieId': they are such as 0, those of the file"),
        ("code,title\n0,A\n", "found ['code', 'title']; rename 'code', which holds ids of the model, to id"),
        ("id,title\n1,A\n1,B\n", "must be distinct, found 1 twice"),
    ],
)
def test_titles_that_cannot_be_used(shelf, tmp_path, titles, message):
    if titles is not None:
        (tmp_path / "t.csv").write_text(titles, encoding="latin-1")
    for command, out in (("graph", "--html"), ("report", "--out")):
        ended = cli(command, shelf / "integer.air", out, tmp_path / "page.html", "--titles", tmp_path / "t.csv")
        assert_refused(ended, message)
        assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("ids", ["integer", "text"])
def test_report_writes_a_page_and_prints_the_errors(shelf, tmp_path, ids):
    out, target = tmp_path / "page.html", tmp_path / "r.json"
    ended = asked("report", shelf / f"{ids}.air", "--out", out, "--test", shelf / f"{ids}.csv", "--json", target)
    expected = evaluate_model(AIR.load(shelf / f"{ids}.air"), ratings(ids))
    figures = read_json(target)
    assert figures["models"] == [
        {name: value if name == "model" else pytest.approx(value) for name, value in row.items()}
        for row in expected.rows
    ]
    assert figures["versions"]["air-recsys"]
    assert all(format_number(row["rmse"]) in ended.out for row in expected.rows)
    assert "are among the training ratings" in ended.out
    assert f"wrote {out}" in ended.out
    assert "no snapshots of the graphs" in out.read_text(encoding="utf-8")


def test_text_ids_that_look_like_numbers(tmp_path):
    data = ratings("integer").astype({"user": str, "item": str})
    data.loc[0, "user"] = "someone"
    with pytest.warns(DataWarning, match="'someone' are the only ones that are no integers"):
        AIR.for_completion(n_epochs=10, device="cpu", random_state=0).fit(data).save(tmp_path / "model.air")
    ratings("integer").to_csv(tmp_path / "test.csv", index=False)
    ended = asked("report", tmp_path / "model.air", "--out", tmp_path / "page.html", "--test", tmp_path / "test.csv")
    assert "not in the training data" not in ended.out


def test_the_errors_of_a_report_are_of_a_new_fit_or_of_the_training(shelf, tmp_path):
    page = tmp_path / "page.html"
    assert "Error on ratings held out" in asked("report", shelf / "text.air", "--out", page, "--evaluate").out
    assert "Error on ratings held out" in page.read_text(encoding="utf-8")
    assert "Error on ratings held out" in asked("report", shelf / "text.air", "--out", page).out
    assert (
        "Training error" in asked("report", shelf / "bias.air", "--out", page, "--no-evaluate").out
    )  # without graphs
