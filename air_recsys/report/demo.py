"""The main job on embedded data: people and films that never were, most ratings hidden, predicted and explained."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.completion import hide
from air_recsys.evaluation.graph_quality import group_recovery
from air_recsys.evaluation.results import ResultTable
from air_recsys.metrics import mae, rmse
from air_recsys.models import AIR, BiasModel, GlobalMean, Recommender

_NOUNS = {
    "Space": ("Comet", "Orbit", "Signal", "Planet", "Voyage"),
    "Crime": ("Alibi", "Verdict", "Witness", "Harbor", "Ransom"),
    "Romance": ("Letters", "Garden", "Summer", "Waltz", "Promise"),
    "War": ("Trench", "Bridge", "Captain", "Siege", "Retreat"),
    "Animation": ("Dragon", "Circus", "Teapot", "Penguin", "Castle"),
}
_ADJECTIVES = ("Silent", "Last", "Golden", "Velvet", "Paper", "Frozen", "Crimson", "Hidden")
_NAMES = (
    *("Ann", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gina", "Hugo", "Ida", "Jan"),
    *("Kim", "Leo", "Mia", "Noah", "Olga", "Paul", "Rosa", "Sam", "Tess", "Uli"),
)
_LOVED = (("Space", "Animation"), ("Crime", "War"), ("Romance", "Animation"), ("Space", "War"))
_N_PER_NAME, _N_PER_GENRE = 8, 20


class Films(NamedTuple):
    """Ratings of all people for all films, 1..5, and what is behind them."""

    ratings: np.ndarray  # (n_people, n_films)
    people: list[str]
    films: pd.DataFrame  # title, genre
    tastes: np.ndarray  # (n_people,), the group of each
    genres: np.ndarray  # (n_films,)


class Demo(NamedTuple):
    """The fitted model, the comparison, the hidden ratings with their intervals, and how well groups were found."""

    model: AIR
    films: pd.DataFrame
    comparison: ResultTable
    hidden: pd.DataFrame  # user, item, rating, predicted, low, high
    groups: ResultTable


def made_films(seed: int) -> Films:
    """Make people of four tastes, who love two genres each, and films of five genres."""
    rng = np.random.default_rng(seed)
    people = [f"{name} {letter}." for letter in "ABCDEFGHIJ"[:_N_PER_NAME] for name in _NAMES]
    rows = []
    for genre, nouns in _NOUNS.items():
        titles = [f"{adjective} {noun}" for adjective in _ADJECTIVES for noun in nouns]
        rows += [(title, genre) for title in rng.permutation(titles)[:_N_PER_GENRE].tolist()]
    films = pd.DataFrame(rows, columns=["title", "genre"])
    tastes, genres = rng.integers(len(_LOVED), size=len(people)), pd.factorize(films["genre"])[0]
    loves = np.array([[1.0 if genre in loved else -0.6 for genre in _NOUNS] for loved in _LOVED])
    scores = 3.2 + rng.normal(0, 0.4, (len(people), 1)) + rng.normal(0, 0.4, len(films)) + loves[tastes][:, genres]
    ratings = np.round(scores + rng.normal(0, 0.6, scores.shape)).clip(1, 5)
    return Films(ratings, people, films, tastes, genres)


def run_demo(seed: int = 0, missing: float = 0.7, device: str = "auto") -> Demo:
    """Hide a share of the ratings of made films, and predict them by AIR and by baselines."""
    made = made_films(seed)
    shown = hide(made.ratings, missing, seed)
    people, titles = np.array(made.people, dtype=object), made.films["title"].to_numpy(dtype=object)
    rows, columns = np.nonzero(~shown.asked)
    table = pd.DataFrame({"user": people[rows], "item": titles[columns], "rating": made.ratings[rows, columns]})
    model, data = AIR.for_ratings(random_state=seed, device=device), Interactions.from_frame(table)
    protocol = f"{people.size} people, {titles.size} films, {missing:.0%} of the ratings hidden, seed {seed}"
    comparison = ResultTable("Error on the hidden ratings, in stars", protocol)
    rows, columns = np.nonzero(shown.asked)
    hidden = pd.DataFrame({"user": people[rows], "item": titles[columns], "rating": made.ratings[rows, columns]})
    pairs, truth = (hidden["user"].to_numpy(), hidden["item"].to_numpy()), hidden["rating"].to_numpy()
    contenders: dict[str, Recommender] = {"AIR": model, "BiasModel": BiasModel(), "Mean": GlobalMean()}
    for name, contender in contenders.items():
        predicted = contender.fit(data).predict(*pairs, unknown="mean")
        comparison.rows.append({"model": name, "RMSE": rmse(truth, predicted), "MAE": mae(truth, predicted)})
    low, high = model.predict_interval(*pairs)
    hidden = hidden.assign(predicted=model.predict(*pairs), low=low, high=high)
    inside = np.mean((truth >= low) & (truth <= high))
    comparison.notes.append(f"The 90 % intervals of AIR hold {inside:.1%} of the {truth.size:,} hidden ratings.")
    groups = ResultTable("Hidden tastes and genres, found by communities of the learned graphs", protocol)
    for graph, ids, true in ((model.user_graph_, people, made.tastes), (model.item_graph_, titles, made.genres)):
        assert graph is not None
        known = pd.Series(true, index=ids).loc[graph.ids].to_numpy()
        auc, nmi = group_recovery(graph, known)
        found = {"true groups": int(np.unique(true).size), "communities": int(graph.communities().nunique())}
        groups.rows.append({"graph": f"{graph.kind}s"} | found | {"NMI": nmi, "AUC": auc})
    return Demo(model, made.films, comparison, hidden, groups)
