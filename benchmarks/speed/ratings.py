"""MovieLens-1M: time, memory and test error of AIR beside Surprise, implicit, cmfrec and myFM, in one run."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from air_recsys.datasets import load_movielens
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import run_apart
from air_recsys.exceptions import MissingExtraError
from benchmarks.speed.contenders import (
    Outcome,
    measure,
    train_air,
    train_als,
    train_cmfrec,
    train_myfm,
    train_surprise,
)

SPLIT = "MovieLens-1M, a random tenth held out: RandomState(1234) over the ratings ordered by item, then user"


class Contender(NamedTuple):
    """A model by the function that trains it on a split, with the other arguments of that function."""

    train: Callable[..., Outcome]
    arguments: tuple[Any, ...]
    settings: str
    needs: str | None = None  # the package that it requires
    extra: str = ""  # the extra that installs it


def movielens_split(root: Path) -> Fold:
    """Load MovieLens-1M and hold out the tenth on which the figures of other models were measured, see `SPLIT`."""
    data = load_movielens(root, "1m")
    order = np.lexsort((data.user_index, data.item_index))
    test = np.empty(data.n_ratings, dtype=bool)
    test[order] = np.random.RandomState(1234).rand(data.n_ratings) < 0.1
    return Fold("hold-out", data.select(~test), data.select(test))


def contenders(settings: dict[str, Any], threads: int, gibbs_steps: int = 200) -> dict[str, Contender]:
    """Return all contenders by name; cmfrec, which no extra installs, where it is there.

    Parameters
    ----------
    settings : dict
        Parameters of `AIR.for_ratings`.
    threads : int
        Of implicit and cmfrec, which have a parameter for it.
    gibbs_steps : int
        Of myFM.
    """
    width = settings.get("n_factors") or 40  # what the preset takes for MovieLens-1M
    given = ", ".join(f"{name}={value}" for name, value in settings.items())
    als, myfm = f"factors={width}, else defaults; predicts no ratings", f"rank 20, {gibbs_steps} Gibbs steps"
    found = {
        "AIR": Contender(train_air, (settings,), f"AIR.for_ratings({given})"),
        "AIR adam": Contender(train_air, ({"solver": "adam"},), 'AIR.for_ratings(solver="adam")'),
        "Surprise SVD": Contender(train_surprise, ("SVD",), "defaults", "surprise", "surprise"),
        "Surprise SVD++": Contender(train_surprise, ("SVDpp",), "defaults", "surprise", "surprise"),
        "implicit ALS": Contender(train_als, (width, threads), als, "implicit", "implicit"),
        "myFM": Contender(train_myfm, (20, gibbs_steps), myfm, "myfm", "test"),
    }
    if find_spec("cmfrec") is not None:
        for name, conjugate in (("cmfrec ALS, Cholesky", False), ("cmfrec ALS, CG", True)):
            found[name] = Contender(train_cmfrec, (width, conjugate, threads), f"k={width}, use_cg={conjugate}")
    return found


def bench_ratings(
    load: Callable[[], Fold], entrants: dict[str, Contender], *, title: str, threads: int = 1
) -> tuple[ResultTable, ResultTable]:
    """Train every contender on one split, each in a process of its own, one after the other.

    Parameters
    ----------
    load : callable
        Returns the split, in every process anew; found by its module and name, as pickle wants it.
    entrants : dict of str to Contender
        Times are compared with the first one's.
    title : str
        Where the split comes from.

    Returns
    -------
    ResultTable
        A row a contender: seconds on the clock and of the processors, test RMSE, memory before the training (the split
        included) and at the peak, in GiB, and how often it goes over all ratings.
    ResultTable
        Seconds and test RMSE along the training of those that tell.

    Raises
    ------
    MissingExtraError
        Before any work, where a contender is not installed.
    """
    for contender in entrants.values():
        if contender.needs is not None and find_spec(contender.needs) is None:
            raise MissingExtraError(contender.needs, contender.extra)
    protocol = f"{title}; {threads} thread(s), a process each, one after the other; training alone is timed"
    means = ResultTable("Time, memory and error on ratings", protocol)
    curves = ResultTable("Error along the training", protocol, notes=["nothing was chosen by these errors"])
    for name, contender in tqdm(entrants.items(), unit="model", desc="bench speed"):
        memory = run_apart(measure, contender.train, load, *contender.arguments, threads=threads)
        outcome = memory.pop("outcome")
        spent = {"seconds": outcome.seconds, "cpu_seconds": outcome.cpu_seconds}
        a_pass = {"passes": outcome.passes, "cpu_seconds / pass": outcome.cpu_seconds / outcome.passes}
        means.rows.append({"model": name, **spent, **a_pass, "rmse": outcome.rmse, **memory})
        curves.rows += [{"model": name, "seconds": seconds, "rmse": error} for seconds, error in outcome.curve]
    for row in means.rows:
        row["this / first"] = row["cpu_seconds"] / means.rows[0]["cpu_seconds"]
    means.notes = [f"{name}: {contender.settings}" for name, contender in entrants.items()]
    means.notes.append("a pass is a sweep, an iteration, an epoch or a Gibbs step, a share of all else included")
    return means, curves
