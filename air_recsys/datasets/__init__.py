"""Data sets: loaders of published files, readers of your own tables, downloads, and generators.

A loader reads a local folder or file and never uses the network; `fetch` downloads. A loader raises `DataFileError` if
a file is missing, does not fit the others or has another format, with the first malformed line of a text file.
"""

from air_recsys.data.readers.measurements_file import Measurements, read_measurements
from air_recsys.data.readers.pairs_file import read_pairs, read_square, read_texts
from air_recsys.data.readers.ratings_file import read_ratings
from air_recsys.data.sets.drug_target import DrugTargetData, load_davis, load_yamanishi
from air_recsys.data.sets.fetching import fetch
from air_recsys.data.sets.implicit_lists import load_implicit_lists
from air_recsys.data.sets.monti import MontiGraphs, load_monti, load_monti_graphs
from air_recsys.data.sets.movielens import (
    load_movielens,
    load_movielens_fold,
    load_movielens_genres,
    load_movielens_items,
    load_movielens_titles,
    load_movielens_users,
)
from air_recsys.data.sets.planted import PlantedRatings, make_planted_ratings
from air_recsys.data.sets.registry import available, data_root
from air_recsys.data.sets.syn_netflix import SynNetflix, load_syn_netflix, make_syn_netflix
from air_recsys.models.given import read_features, read_similarity

__all__ = [
    "DrugTargetData",
    "Measurements",
    "MontiGraphs",
    "PlantedRatings",
    "SynNetflix",
    "available",
    "data_root",
    "fetch",
    "load_davis",
    "load_implicit_lists",
    "load_monti",
    "load_monti_graphs",
    "load_movielens",
    "load_movielens_fold",
    "load_movielens_genres",
    "load_movielens_items",
    "load_movielens_titles",
    "load_movielens_users",
    "load_syn_netflix",
    "load_yamanishi",
    "make_planted_ratings",
    "make_syn_netflix",
    "read_features",
    "read_measurements",
    "read_pairs",
    "read_ratings",
    "read_similarity",
    "read_square",
    "read_texts",
]
