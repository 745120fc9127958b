"""A made library with shelves and kinds of books on each: groups on two levels, and titles that nobody has written.

``python docs/_ext/made_library.py FOLDER`` draws story.png, how its communities form through a training.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.models import AIR
from air_recsys.report import explorer_of
from air_recsys.report.charts import formation_figure
from air_recsys.report.plots.snapshots import graphs_over_time

_STEPS = (0, 10, 20, 40, 60, 80, 100, 150, 200, 300)
_N_EPOCHS = 600
_N_PICTURES = 5
_ADJECTIVES = ["Silent", "Crimson", "Last", "Golden", "Hidden", "Velvet", "Hollow", "Iron", "Quiet", "Frozen", "Paper"]
_SHELVES = {  # with their kinds, and nouns for titles of each
    "sea": {
        "harbours": "Harbour Quay Pilot Anchor",
        "islands": "Island Lagoon Reef Atoll",
        "storms": "Gale Squall Wreck Surge",
    },
    "night": {
        "cities": "Alley Tramway Neon Rooftop",
        "stars": "Comet Orbit Meridian Eclipse",
        "dreams": "Mirror Lullaby Shadow Veil",
    },
    "country": {
        "orchards": "Orchard Barrel Blossom Cider",
        "mountains": "Ridge Glacier Summit Pass",
        "rivers": "Ferry Willow Delta Weir",
    },
}
_N_READERS, _N_BOOKS = 96, 120
_MEAN, _LOW, _HIGH, _STAR = 3.2, 1.0, 5.0, 0.5
_SHARE, _NOISE = 0.4, 0.3  # of the pairs that are rated, and its standard deviation in stars


class Catalogue(NamedTuple):
    """Ratings of books by readers, and the groups behind them.

    Attributes
    ----------
    ratings : Interactions
        Half stars of about 40 % of all pairs.
    books : DataFrame
        Columns title, shelf, kind and year, indexed by item id.
    levels : dict of str to dict of str to ndarray
        For "user" and "item" the "coarse" and the "fine" group of each node, three and nine of about the same size.
    """

    ratings: Interactions
    books: pd.DataFrame
    levels: dict[str, dict[str, np.ndarray]]


def make_catalogue(random_state: int = 0, coarse: float = 0.8, fine: float = 0.5) -> Catalogue:
    """Ratings of 120 books by 96 readers: a mean, a table of both levels' groups, and noise.

    Parameters
    ----------
    random_state : int
    coarse, fine : float
        Standard deviation of what a pair of coarse (of fine) groups adds, in stars.

    Examples
    --------
    >>> made = make_catalogue()
    >>> made.books["shelf"].value_counts().tolist(), made.books["title"].is_unique
    ([42, 39, 39], True)
    """
    rng = np.random.default_rng(random_state)
    kinds = [kind for shelf in _SHELVES.values() for kind in shelf]
    n, each = len(kinds), len(kinds) // len(_SHELVES)
    users, items = (rng.permutation(np.arange(size) % n) for size in (_N_READERS, _N_BOOKS))
    shelves = coarse * rng.standard_normal((len(_SHELVES), len(_SHELVES)))
    effects = shelves.repeat(each, axis=0).repeat(each, axis=1) + fine * rng.standard_normal((n, n))
    exact = np.clip(_MEAN + effects[np.ix_(users, items)], _LOW, _HIGH)
    stars = np.round((exact + _NOISE * rng.standard_normal(exact.shape)) / _STAR) * _STAR
    rated = rng.random(exact.shape) < _SHARE
    ratings = Interactions.from_dense(np.where(rated, np.clip(stars, _LOW, _HIGH), np.nan))
    levels = {side: {"coarse": group // each, "fine": group} for side, group in (("user", users), ("item", items))}
    return Catalogue(ratings, _books(items, kinds, rng), levels)


def _books(groups: np.ndarray, kinds: list[str], rng: np.random.Generator) -> pd.DataFrame:
    shelf_of = {kind: shelf for shelf, kinds in _SHELVES.items() for kind in kinds}
    nouns = {kind: words.split() for shelf in _SHELVES.values() for kind, words in shelf.items()}
    titles = []
    for place, group in enumerate(groups):
        number = int(np.count_nonzero(groups[:place] == group))
        words = nouns[kinds[group]]
        adjective = _ADJECTIVES[(number // len(words) * 3 + group) % len(_ADJECTIVES)]
        titles.append(f"The {adjective} {words[number % len(words)]}")
    table = pd.DataFrame({"title": titles, "kind": [kinds[group] for group in groups]})
    table.insert(1, "shelf", [shelf_of[kind] for kind in table["kind"]])
    return table.assign(year=rng.integers(1930, 2000, len(table)))


def trained_on(made: Catalogue) -> AIR:
    """Matrix completion of a made library, all pairs weighed, with its steps."""
    model = AIR.for_completion(
        n_epochs=_N_EPOCHS, graph_neighbors=None, snapshot_epochs=_STEPS, random_state=0, device="cpu"
    )
    return model.fit(made.ratings)


def write_page(made: Catalogue, path: Path) -> Path:
    """Write the graphs with all of their steps as a page to explore."""
    return explorer_of(trained_on(made), path, made.books, title="Made catalogue")


def draw_course(made: Catalogue, path: Path) -> Path:
    """Draw the communities of the books at some steps, the last one among them."""
    model = trained_on(made)
    graphs = graphs_over_time(model)["item"]
    steps = list(graphs)
    places = np.unique(np.linspace(len(steps) - 1, 0, _N_PICTURES).round().astype(int))
    figure = formation_figure({steps[place]: graphs[steps[place]] for place in places}, model.solver_.unit)
    figure.savefig(path, dpi=110)
    return path


if __name__ == "__main__":
    draw_course(make_catalogue(), Path(sys.argv[1]) / "story.png")
