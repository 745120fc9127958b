"""`tune`: a search of AIR's settings with Optuna, trial by trial, on a held-out part of the training data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.evaluation.tuning.runner import Holdout, Runner, StudyCallback, counted, diverged, row
from air_recsys.evaluation.tuning.space import Domain, check_space, default_space, edges
from air_recsys.evaluation.tuning.storage import open_study, storage_url
from air_recsys.exceptions import ParameterError
from air_recsys.models import AIR
from air_recsys.models.storage.fingerprint import digest
from air_recsys.storage.validation import check_integer, check_real, import_extra

if TYPE_CHECKING:
    from optuna import Study


@dataclass(frozen=True)
class Tuning:
    """The result of a search.

    Attributes
    ----------
    best_params : dict
        The parameters of the best trial, of AIR and of its solver; all others are those of `preset`.
    best_value : float
        Its score on the validation part. It is the best of many, so it is too optimistic: report an error on test
        data.
    metric, preset : str
    protocol : str
        One line on how the values were obtained.
    study : optuna.Study
        All trials, for Optuna's own tools.
    random_state : int
    device : str
    """

    best_params: dict[str, Any]
    best_value: float
    metric: str
    preset: str
    protocol: str
    study: Study
    random_state: int
    device: str

    def model(self, **overrides: Any) -> AIR:
        """An unfitted model with the best parameters, for all of the training data."""
        settings = {"settings": "fixed", "random_state": self.random_state, "device": self.device} | self.best_params
        return AIR.of_preset(self.preset, **settings | overrides)

    def trials(self) -> pd.DataFrame:
        """The finished trials, best first: trial, value, state, epochs, seconds and the parameters.

        The state is "complete", "pruned" (given up half-way) or "diverged"; only complete trials have a value.
        """
        rows = pd.DataFrame([row(trial) for trial in counted(self.study)])
        return rows.sort_values("value", ascending=self.study.direction.name == "MINIMIZE", ignore_index=True)


def tune(
    interactions: Any,
    *,
    preset: str = "ratings",
    space: Mapping[str, Domain] | None = None,
    n_trials: int = 50,
    metric: str = "rmse",
    validation_fraction: float = 0.1,
    storage: str | os.PathLike[str] | None = None,
    study_name: str = "air_recsys",
    timeout: float | None = None,
    random_state: int = 0,
    device: str = "auto",
    callbacks: Iterable[StudyCallback] = (),
    verbose: bool = False,
) -> Tuning:
    """Search the settings of AIR that suit some training data.

    A random part of the data is held out once. Every trial trains on the rest and is scored on that part. The first
    trial has the settings of the preset, so the result is never worse than they are on that part. Optuna's TPE sampler
    draws the others. A trial is stopped early if it diverges, or if it is worse than the median of the earlier ones at
    the same share of its epochs.

    Parameters
    ----------
    interactions : Interactions, sparse matrix, DataFrame or ndarray
        Training data only: if you report a test error, leave the test part out.
    preset : {"ratings", "interactions", "completion"}
        The settings to start from.
    space : dict, optional
        Ranges ``(low, high)`` or ``(low, high, "log")`` and lists of choices, by the names of the parameters of AIR
        and of its solver (also as ``solver__depth``). They add to `default_space` or replace its entries; a list with
        one entry is a fixed value.
    n_trials : int
        Number of trials of the study at the end, earlier calls included.
    metric : {"rmse", "mae", "average_precision", "auroc", "ndcg_at_k"}
        See `METRICS`. The third and the fourth are for ratings 0 and 1; the last ranks all items that a user has not
        rated in training, and counts validation ratings above 0.
    validation_fraction : float
        Share of the ratings to hold out, in (0, 1).
    storage : str or Path, optional
        A file that keeps the study (SQLite, created if it does not exist), or the address of a database
        (``postgresql://...``). A later call with it continues where the last one ended, even one that was killed.
        One process at a time. By default the study is in memory.
    study_name : str
        Name of the study in `storage`, which can hold several.
    timeout : float, optional
        Seconds after which no further trial starts.
    random_state : int
        Seed of the validation part, of the sampler and of the models.
    device : str
        As for `AIR`.
    callbacks : iterable of callable
        Callbacks of Optuna, called with study and trial after every trial; ``study.stop()`` ends the search.
    verbose : bool
        Let Optuna print a line after every trial, on the standard error.

    Raises
    ------
    ParameterError
        Before any training: for parameters out of range, unknown names in `space`, or a study in `storage` that was
        made with other data, another preset, space, metric, validation part or seed. After it: if no trial was
        completed.
    DataError
        For data that cannot be used, or do not fit the metric.
    MissingExtraError
        If Optuna is not installed.

    Source: Akiba et al., Optuna: A Next-generation Hyperparameter Optimization Framework, KDD 2019.

    Examples
    --------
    >>> import numpy as np
    >>> ratings = np.random.default_rng(0).integers(1, 6, (12, 8)).astype(float)
    >>> tuning = tune(ratings, space={"n_factors": (1, 4), "pattern_features": [3]}, n_trials=2, device="cpu")
    >>> model = tuning.model().fit(ratings)
    >>> model.n_factors == tuning.best_params["n_factors"]
    True
    """
    data = as_interactions(interactions)
    holdout, search = _prepare(data, preset, space, metric, validation_fraction, random_state)
    check_integer("n_trials", n_trials, minimum=1)
    if timeout is not None:
        check_real("timeout", timeout, strict=True)
    for settings in edges(search["space"]):  # AIR itself refuses bounds and choices that it could not be fitted with
        AIR.of_preset(preset, settings="fixed", **settings, device=device).check(holdout.training)
    url = None if storage is None else storage_url(storage)
    with _optuna_verbosity(verbose):
        domains = {f"space[{name!r}]": repr(domain) for name, domain in search["space"].items()}
        kept = {name: value for name, value in search.items() if name != "space"} | domains
        study = open_study(url, study_name, holdout.metric.direction, kept)
        runner = Runner(
            holdout, preset, search["space"], {"settings": "fixed", "random_state": random_state, "device": device}
        )
        runner.run(study, n_trials, timeout, list(callbacks))
    return _result(study, holdout, search, device)


def _prepare(
    data: Interactions, preset: str, space: Any, metric: str, fraction: float, random_state: int
) -> tuple[Holdout, dict[str, Any]]:
    """Check the parameters of a search; return its validation part and its description."""
    check_integer("random_state", random_state)
    holdout = Holdout(data, fraction, metric, random_state)
    given = check_space(space or {})
    solver = "adam" if given.get("solver") == ["adam"] else None
    whole = default_space(preset, holdout.training, solver, biases=given.get("biases") != [False]) | given
    return holdout, {
        "data": digest(data),
        "preset": preset,
        "metric": metric,
        "validation_fraction": float(fraction),
        "random_state": random_state,
        "space": whole,
    }


@contextmanager
def _optuna_verbosity(verbose: bool) -> Iterator[None]:
    logging = import_extra("optuna", "tune").logging
    before = logging.get_verbosity()
    logging.set_verbosity(logging.INFO if verbose else logging.WARNING)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _result(study: Study, holdout: Holdout, search: dict[str, Any], device: str) -> Tuning:
    ended = counted(study)
    if not any(trial.state.name == "COMPLETE" for trial in ended):
        raise ParameterError(
            f"expected a completed trial, found none of {len(ended)}, of which {sum(map(diverged, ended))} diverged: "
            "give more time, or another space, above all with a lower learning_rate"
        )
    protocol = (
        f"{search['metric']} on {holdout.validation.n_ratings} validation ratings held out at random (seed "
        f"{search['random_state']}), {holdout.training.n_ratings} for training; AIR, preset {search['preset']}, "
        f"{len(ended)} trials"
    )
    return Tuning(
        best_params=dict(study.best_params),
        best_value=study.best_value,
        metric=search["metric"],
        preset=search["preset"],
        protocol=protocol,
        study=study,
        random_state=search["random_state"],
        device=device,
    )
