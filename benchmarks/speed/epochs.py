"""The time of an epoch and of a choice of edges, or of a sweep, from the records of an ordinary fit."""

from __future__ import annotations

import itertools
import statistics
from typing import Any, NamedTuple

from air_recsys.data.interactions import Interactions
from air_recsys.models import AIR
from air_recsys.training import Record

_STRIDE = 5  # epochs between two records
_ROUND = 3 * _STRIDE  # epochs between two refreshes
_EPOCHS = 2 * _ROUND

COUNTED = (
    f"{_EPOCHS} epochs, the first {_STRIDE} left out as warm-up; the median over runs of {_STRIDE} epochs, each with "
    "one record"
)
"""The epochs that `epoch_times` counts, for the protocol of a table."""

_SWEEPS = 5
_EDGES = {"graph_refresh": 4}  # sweeps between two choices of edges, as many as in the twelve sweeps of the preset
COUNTED_SWEEPS = (
    f"{_SWEEPS} sweeps, the first apart with all before it; the median of the others, of which one chooses edges anew"
)
"""The sweeps that `sweep_times` counts, for the protocol of a table."""


class EpochTimes(NamedTuple):
    """Seconds of the parts of a training."""

    epoch_seconds: float  # the median epoch without a refresh
    refresh_seconds: float  # what a later choice of the graphs' edges adds
    first_seconds: float  # the first choice, from the random start; the first record included


class SweepTimes(NamedTuple):
    """Seconds of the parts of a training of a posterior."""

    sweep_seconds: float  # the median sweep, with the steps of its graphs
    first_seconds: float  # features of the pattern, start, first sweep and first choice of edges


def sweep_times(settings: dict[str, Any], data: Interactions) -> SweepTimes:
    """Fit `AIR.for_ratings(**settings)` for a few sweeps and time its parts.

    Parameters
    ----------
    settings : dict
        Parameters of `AIR` with a solver of sweeps, but for their number.

    Examples
    --------
    >>> from air_recsys.data.sets.planted import make_planted_ratings
    >>> data = make_planted_ratings(60, 50, 800, 3, 2).interactions
    >>> sweep_times({"solver": "langevin", "random_state": 0, "device": "cpu"}, data).sweep_seconds > 0
    True
    """
    records: list[Record] = []
    AIR.for_ratings(**_EDGES | settings | {"n_sweeps": _SWEEPS}).fit(data, callbacks=[records.append])
    seconds = [record.seconds for record in records]
    return SweepTimes(statistics.median(b - a for a, b in itertools.pairwise(seconds)), seconds[0])


def epoch_times(settings: dict[str, Any], data: Interactions) -> EpochTimes:
    """Fit `AIR.for_ratings(**settings)` for a few epochs and time its parts.

    Parameters
    ----------
    settings : dict
        Parameters of `AIR` with ``solver="adam"``, but for those that say when to refresh, to record and to end.

    Examples
    --------
    >>> from air_recsys.data.sets.planted import make_planted_ratings
    >>> data = make_planted_ratings(60, 50, 800, 3, 2).interactions
    >>> epoch_times({"solver": "adam", "random_state": 0, "device": "cpu"}, data).epoch_seconds > 0
    True
    """
    records: list[Record] = []
    plan = {"n_epochs": _EPOCHS, "graph_refresh": _ROUND, "evaluate_every": _STRIDE}
    AIR.for_ratings(**settings | plan).fit(data, callbacks=[records.append])
    steps = {later.epoch: later.seconds - sooner.seconds for sooner, later in itertools.pairwise(records)}
    with_refresh = steps.pop(_ROUND)
    del steps[_STRIDE]
    epoch = statistics.median(steps.values()) / _STRIDE
    return EpochTimes(epoch, max(0.0, with_refresh - _STRIDE * epoch), max(0.0, records[0].seconds - epoch))
