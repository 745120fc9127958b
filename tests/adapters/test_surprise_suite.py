"""Surprise's own tests, from its source package, with `SurpriseAIR` in the place of its algorithms.

The source package holds the test modules but not their data, so files of the same formats are made here.
"""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import surprise
from host_sources import host_module, source_of
from surprise.model_selection import PredefinedKFold

from air_recsys.adapters.surprise import SurpriseAIR

pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # surprise.dump leaves them open

SMALL = {"n_factors": 2, "graph_neighbors": 3, "device": "cpu"}

# -------------------------------------------------------------------- eleven settings, under the host's names


class Variant(SurpriseAIR):
    """A small `SurpriseAIR` with other defaults, which stand in the head of the class."""

    def __init_subclass__(cls, **defaults):
        cls.defaults = SMALL | defaults

    def __init__(self, **parameters):
        super().__init__(**self.defaults | parameters)


class NormalPredictor(Variant):
    pass


class BaselineOnly(Variant, user_graph_reg=0.0, item_graph_reg=0.0):
    pass


class KNNBasic(Variant):
    """Is asked for neighbours, of users and of items; the names of similarities go with the expected errors."""

    def __init__(self, sim_options=None, **parameters):
        known = {name: value for name, value in (sim_options or {}).items() if name != "name"}
        super().__init__(sim_options=known, **parameters)


class KNNWithMeans(Variant, sim_options={"user_based": False}):
    pass


class KNNBaseline(Variant, graph_neighbors=None):
    pass


class KNNWithZScore(Variant, biases=False, center=False, scale=True, user_graph_reg=0.0):
    pass


class SVD(Variant):
    """Takes the names that SVD gives to its parameters, in which the searches are written.

    Rates and decays are of trained scores: those of a posterior are the same for all, and the host ranks ties of the
    fcp from the last but takes the first as the best.
    """

    def __init__(self, lr_all=None, reg_all=None, init_std_dev=None, **parameters):
        renamed = {"learning_rate": lr_all, "weight_decay": reg_all, "bias_decay": reg_all, "init_std": init_std_dev}
        given = {name: value for name, value in renamed.items() if value is not None}
        if lr_all is not None or reg_all is not None:
            given |= {"solver": "adam"}
        if init_std_dev == 0:
            # SVD with factors that start at 0 is the same in every run. Factors of AIR that start alike stay alike,
            # so it wants a spread, and its seed makes it the same in every run.
            given |= {"init_std": 0.1, "random_state": 0}
        super().__init__(**given | parameters)


class SVDpp(Variant, depth=3, graph_neighbors=None, adjacency="global_product"):
    def __init__(self, cache_ratings=False, **parameters):
        super().__init__(**parameters)


class NMF(Variant, n_factors=None, dtype="float64"):
    pass


class SlopeOne(Variant, validation_fraction=0.2, patience=1, evaluate_every=1):
    pass


class CoClustering(Variant, biases=False, center=False, unobserved_weight=0.1):
    pass


VARIANTS = list(Variant.__subclasses__())

# -------------------------------------------------------------------- the host's tests

LEFT_OUT = {
    "test_knns": "k and min_k are parameters of the host's nearest neighbours, reported in their details",
    "test_sanity_checks": "the expected errors are those of the host's own algorithms on its own data",
}


def load(name: str) -> ModuleType:
    path = source_of("scikit-surprise") / "tests" / f"test_{name}.py"
    with pytest.MonkeyPatch.context() as patch:
        for variant in VARIANTS:
            patch.setattr(surprise, variant.__name__, variant)
        return host_module(path, f"surprise_test_{name}")


HOST = {name: load(name) for name in ("algorithms", "dump", "search", "validation")}
TESTS = {name: test for module in HOST.values() for name, test in vars(module).items() if name.startswith("test_")}
globals().update({name: test for name, test in TESTS.items() if name not in LEFT_OUT})

# -------------------------------------------------------------------- the data that those tests expect


def table(n_users: int, n_items: int, n_ratings: int, seed: int) -> list[tuple[str, str, int]]:
    """Ratings of distinct pairs, in which every user has several."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(n_users * n_items)[:n_ratings]
    taste = rng.normal(size=(n_users, 2)) @ rng.normal(size=(2, n_items))
    stars = np.clip(np.rint(3 + taste), 1, 5).astype(int).ravel()
    return [(str(pair // n_items), str(pair % n_items), int(stars[pair])) for pair in pairs]


def write_custom(path: Path, rows) -> None:
    lines = [f"user{user} item{item} {rating}\n" for user, item, rating in rows]
    path.write_text("header\nheader\nheader\n" + "".join(lines))


def write_movielens(path: Path, rows) -> None:
    path.write_text("".join(f"{user}\t{item}\t{rating}\t88125{number:04}\n" for number, (user, item, rating) in rows))


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory) -> Path:
    """A folder with the data files, in which the host's modules believe themselves to be."""
    folder = tmp_path_factory.mktemp("surprise")
    custom, movielens = table(8, 6, 40, seed=1), list(enumerate(table(30, 25, 400, seed=2)))
    write_custom(folder / "custom_dataset", custom)
    write_custom(folder / "custom_train", custom[:30])
    write_custom(folder / "custom_test", custom[30:])
    write_movielens(folder / "u1_ml100k_train", movielens[:300])
    write_movielens(folder / "u1_ml100k_test", movielens[300:])
    for name, module in HOST.items():
        module.__file__ = str(folder / f"test_{name}.py")
    return folder


@pytest.fixture
def toy_data(folder) -> surprise.Dataset:
    reader = surprise.Reader(line_format="user item rating", sep=" ", skip_lines=3, rating_scale=(1, 5))
    return surprise.Dataset.load_from_file(str(folder / "custom_dataset"), reader)


@pytest.fixture
def u1_ml100k(folder) -> surprise.Dataset:
    files = [(str(folder / "u1_ml100k_train"), str(folder / "u1_ml100k_test"))]
    return surprise.Dataset.load_from_folds(files, surprise.Reader("ml-100k"))


@pytest.fixture
def pkf() -> PredefinedKFold:
    return PredefinedKFold()


# -------------------------------------------------------------------- that they are what they seem to be


def test_the_suite_is_there_and_only_what_is_named_is_left_out():
    assert TESTS.keys() >= LEFT_OUT.keys()
    collected = {name for name in TESTS if globals().get(name) is TESTS[name]}
    assert collected == TESTS.keys() - LEFT_OUT.keys()
    assert len(collected) >= 16  # as in Surprise 1.1.5


def test_the_suite_runs_our_class():
    hosts = {name for name in surprise.__all__ if name in {variant.__name__ for variant in VARIANTS}}
    assert len(VARIANTS) == len(hosts) == 11
    assert not any(issubclass(getattr(surprise, name), SurpriseAIR) for name in hosts)  # the host is itself again
    for module in HOST.values():
        found = [vars(module)[name] for name in hosts & vars(module).keys()]
        assert found
        assert all(issubclass(algorithm, SurpriseAIR) for algorithm in found)
