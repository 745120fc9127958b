"""MovieLens 100K and 1M in the layouts of GroupLens: ratings, the published folds, titles and genres of the films."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.data.readers.lines import build_interactions, read_records, require
from air_recsys.data.sets.registry import find_file
from air_recsys.exceptions import DataFileError
from air_recsys.storage.validation import check_choice

Variant = Literal["100k", "1m"]
Fold = Literal["u1", "u2", "u3", "u4", "u5", "ua", "ub"]

_DATASETS = {"100k": "ml-100k", "1m": "ml-1m"}
_FOLDS = ("u1", "u2", "u3", "u4", "u5", "ua", "ub")
_RATING_FIELDS: dict[str, type] = {"user": int, "item": int, "rating": int, "timestamp": int}
_ENCODING = "iso-8859-1"  # of the files with titles, in both sets
_N_GENRES = 19
_MOST_GENRES = 100  # of 1M, which has 18: the table has a value for each film and genre


def load_movielens(root: str | Path, variant: Variant = "100k") -> Interactions:
    """Load the ratings of MovieLens 100K or 1M.

    Parameters
    ----------
    root : str or Path
        The folder of the set (with ``u.data``; or with ``ratings.dat``, or ``ratings_no_timestamps.dat.gz``,
        which lacks the fourth field), or the folder above it.
    variant : {"100k", "1m"}
        100K holds 943 users, 1,682 items and 100,000 ratings; 1M holds 6,040 users, 3,706 rated items and
        1,000,209 ratings. Ratings are the integers 1..5, ids are those of GroupLens.

    Returns
    -------
    Interactions
        With timestamps (seconds since 1970) where the file has them.

    References
    ----------
    F. M. Harper and J. A. Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_movielens
    >>> load_movielens(fetch("ml-100k")).n_ratings  # doctest: +SKIP
    100000
    """
    path = _file(root, variant, "u.data", "ratings.dat", "ratings_no_timestamps.dat.gz")
    return _to_interactions(path, _read_ratings(path, "\t" if variant == "100k" else "::"))


def load_movielens_fold(root: str | Path, fold: Fold) -> tuple[Interactions, Interactions]:
    """Load one of the published train/test splits of MovieLens 100K.

    Parameters
    ----------
    root : str or Path
        The folder with ``u1.base`` and the like, or the folder above it.
    fold : {"u1", "u2", "u3", "u4", "u5", "ua", "ub"}
        The test ratings of ``u1``..``u5`` are five disjoint fifths of all; those of ``ua`` and ``ub`` are ten of
        every user and disjoint.

    Returns
    -------
    train, test : Interactions
        Over the same ids, all users and items of the set, those without training ratings included.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_movielens_fold
    >>> train, test = load_movielens_fold(fetch("ml-100k"), "u1")  # doctest: +SKIP
    >>> train.n_ratings, test.n_ratings, train.n_items == test.n_items  # doctest: +SKIP
    (80000, 20000, True)
    """
    check_choice("fold", fold, _FOLDS)
    paths = [find_file(root, "ml-100k", [f"{fold}.{suffix}"]) for suffix in ("base", "test")]
    tables = [_read_ratings(path, "\t") for path in paths]
    # Both tables together are u.data, so their joint interactions have every user and item.
    joint = _to_interactions(paths[0].with_name(fold), pd.concat(tables, ignore_index=True))
    in_train = np.arange(joint.n_ratings) < len(tables[0])
    return joint.select(in_train), joint.select(~in_train)


def load_movielens_titles(root: str | Path, variant: Variant = "100k") -> pd.Series:
    """Load the titles of the films, with their years.

    Parameters
    ----------
    root : str or Path
        The folder with ``u.item`` (100K) or ``movies.dat`` (1M), or the folder above it.
    variant : {"100k", "1m"}

    Returns
    -------
    Series of str, shape (n_films,)
        Indexed by item id. Some titles have two ids, and 1M has titles of films without ratings.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_movielens_titles
    >>> load_movielens_titles(fetch("ml-100k")).size  # doctest: +SKIP
    1682
    """
    return pd.Series(_read_films(root, variant)["title"])


def load_movielens_genres(root: str | Path, variant: Variant = "100k") -> pd.DataFrame:
    """Load which genres each film belongs to.

    Parameters
    ----------
    root : str or Path
        The folder with ``u.item`` and ``u.genre`` (100K) or ``movies.dat`` (1M), or the folder above it.
    variant : {"100k", "1m"}

    Returns
    -------
    DataFrame of bool, shape (n_films, n_genres)
        Indexed by item id, a column per genre: 19 in 100K, among them "unknown"; 18 in 1M.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_movielens_genres
    >>> load_movielens_genres(fetch("ml-100k")).shape  # doctest: +SKIP
    (1682, 19)
    """
    films = _read_films(root, variant)
    if variant == "1m":
        path = find_file(root, "ml-1m", ["movies.dat"])
        n_names = len({name for genres in films["genres"] for name in genres.split("|")})
        if n_names > _MOST_GENRES:
            raise DataFileError(f"{path}: expected at most {_MOST_GENRES} genres, found {n_names}")
        return films["genres"].str.get_dummies(sep="|").astype(bool)
    names = _read_genre_names(find_file(root, "ml-100k", ["u.genre"]))
    flags = films[[f"genre{position}" for position in range(_N_GENRES)]].to_numpy()
    path = find_file(root, "ml-100k", ["u.item"])
    require(path, ((flags == "0") | (flags == "1")).all(axis=1), f"{_N_GENRES} genre flags 0 or 1", flags)
    return pd.DataFrame(flags == "1", index=films.index, columns=names)


def load_movielens_items(root: str | Path, variant: Variant = "100k") -> pd.DataFrame:
    """Load the title, year and genres of each film, as attributes of an item graph.

    Parameters are those of `load_movielens_genres`.

    Returns
    -------
    DataFrame, shape (n_films, 3)
        Indexed by item id: `title`, as published, mostly with the year; `year` (Int64), the last one in brackets in
        the title, missing where there is none; `genres`, joined by "|" in the order of `load_movielens_genres`.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_movielens_items
    >>> items = load_movielens_items(fetch("ml-100k"))  # doctest: +SKIP
    >>> model.item_graph_.with_attributes(items, label="title")  # doctest: +SKIP
    """
    titles, flags = load_movielens_titles(root, variant), load_movielens_genres(root, variant)
    years = titles.str.extract(r"^.*\(([0-9]{4})\)", expand=False)  # anchored: linear time for any title
    names = flags.columns.to_numpy(dtype=object)
    genres = ["|".join(names[row]) for row in flags.to_numpy()]
    return pd.DataFrame({"title": titles, "year": pd.Series(pd.to_numeric(years)).astype("Int64"), "genres": genres})


def load_movielens_users(root: str | Path, variant: Variant = "100k") -> pd.DataFrame:
    """Load age, gender and occupation of each user, as features.

    Parameters
    ----------
    root : str or Path
        The folder with ``u.user`` (100K) or ``users.dat`` (1M), or the folder above it.
    variant : {"100k", "1m"}

    Returns
    -------
    DataFrame, shape (n_users, 3)
        Indexed by user id: `age` in years, of 1M the first year of one of seven groups; `gender`, "F" or "M";
        `occupation`, a word, of 1M its code as text.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_movielens_users
    >>> load_movielens_users(fetch("ml-100k")).shape  # doctest: +SKIP
    (943, 3)
    """
    path = _file(root, variant, "u.user", "users.dat")
    fields: dict[str, type] = {"user": int, "age": int, "gender": str, "occupation": str, "zip": str}
    if variant == "1m":
        fields = {name: fields[name] for name in ("user", "gender", "age", "occupation", "zip")}
    table = read_records(path, "|" if variant == "100k" else "::", fields)
    require(path, ~table["user"].duplicated(), "a user id of its own", table["user"].to_numpy())
    return table.set_index("user").drop(columns="zip").reindex(columns=["age", "gender", "occupation"])


def _file(root: str | Path, variant: Variant, of_100k: str, *of_1m: str) -> Path:
    """Return a file of one of the two sets, by the best of its possible names."""
    check_choice("variant", variant, _DATASETS)
    return find_file(root, _DATASETS[variant], [of_100k] if variant == "100k" else of_1m)


def _read_ratings(path: Path, separator: str) -> pd.DataFrame:
    table = read_records(path, separator, _RATING_FIELDS, optional="timestamp" if separator == "::" else None)
    ids, ratings = table[["user", "item"]].to_numpy(), table["rating"].to_numpy()
    require(path, (ids > 0).all(axis=1), "ids that are 1 or more", ids)
    require(path, (ratings >= 1) & (ratings <= 5), "a rating 1..5", ratings)
    return table


def _to_interactions(path: Path, table: pd.DataFrame) -> Interactions:
    timestamp = "timestamp" if "timestamp" in table else None
    return build_interactions(path, lambda: Interactions.from_frame(table, timestamp=timestamp))


def _read_films(root: str | Path, variant: Variant) -> pd.DataFrame:
    path, names = _file(root, variant, "u.item", "movies.dat"), ["title", "genres"]
    if variant == "100k":
        names = ["title", "released", "video", "url", *(f"genre{position}" for position in range(_N_GENRES))]
    fields: dict[str, type] = {"item": int, **dict.fromkeys(names, str)}
    table = read_records(path, "|" if variant == "100k" else "::", fields, encoding=_ENCODING)
    require(path, ~table["item"].duplicated(), "an item id of its own", table["item"].to_numpy())
    return table.set_index("item")


def _read_genre_names(path: Path) -> list[str]:
    table = read_records(path, "|", {"name": str, "position": int})
    positions = table["position"].to_numpy()
    require(path, positions == np.arange(positions.size), "positions 0, 1, 2, ...", positions)
    if len(table) != _N_GENRES:
        raise DataFileError(f"{path}: expected {_N_GENRES} genres, found {len(table)}")
    return table["name"].tolist()
