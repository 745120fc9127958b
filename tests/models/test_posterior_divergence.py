"""A posterior whose numbers are lost ends in the last good state, or says that there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from model_cases import ITEMS, MODELS, all_scores, frame

from air_recsys.exceptions import AirRecsysError, DivergenceError
from air_recsys.models.engines.posterior import PosteriorEngine

NAN = float("nan")
AT = {"AIR-variational": 8, "AIR-langevin": 18}
POSTERIORS = list(AT)


def columns(sweeps: Any) -> None:
    side = sweeps.posterior.sides[1]
    mean = side.mean.clone()
    mean[2, 0] = NAN
    sweeps.posterior.sides[1] = side._replace(mean=mean)


def noise(sweeps: Any) -> None:
    sweeps.posterior.noise.variance = sweeps.posterior.noise.variance * NAN


def scales(sweeps: Any) -> None:
    sweeps.posterior.noise.scales[0] = sweeps.posterior.noise.scales[0] * NAN


def precision(sweeps: Any) -> None:
    prior = sweeps.posterior.priors[0]
    prior.precision = prior.precision * NAN


def weights(sweeps: Any) -> None:
    prior = sweeps.posterior.priors[1]
    prior.weights = prior.weights * NAN


def logits(sweeps: Any) -> None:
    sweeps.graphs[0]._laplacian.logits[0] = NAN


def fitted_until(name: str, sweep: int, do: Callable[[Any], bool | None]) -> Any:
    model: Any = MODELS[name]()
    sweeps: list[Any] = []
    start = PosteriorEngine.start

    def kept(*args: Any) -> Any:
        sweeps.append(start(*args))
        return sweeps[-1]

    def fit() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PosteriorEngine, "start", kept)
            return model.fit(frame(), callbacks=[lambda record: record.epoch == sweep and bool(do(sweeps[-1]))])

    return model, fit


FAULTS = [(name, spoil) for name in POSTERIORS for spoil in (columns, noise, scales, precision, weights)]


# A draw is counted before the graphs see it: logits that are lost leave one draw more in the scores.
@pytest.mark.parametrize(("name", "spoil"), [*FAULTS, ("AIR-variational", logits)])
def test_nan_in_a_state_ends_in_the_last_good_one(name, spoil):
    last = AT[name]
    good, fit = fitted_until(name, last, lambda sweeps: True)
    fit()
    model, fit = fitted_until(name, last, spoil)
    with pytest.raises(DivergenceError, match=f"The model holds the last good state, of epoch {last}") as found:
        fit()
    assert (found.value.epoch, found.value.last_good_epoch) == (last + 1, last)
    assert (model.stopped_by_, model.n_iter_) == ("divergence", last)
    np.testing.assert_array_equal(all_scores(model), all_scores(good))
    deviations = [one.predict("u01", ITEMS, return_std=True)[1] for one in (model, good)]
    np.testing.assert_array_equal(*deviations)
    for one, other in ((model.user_graph_, good.user_graph_), (model.item_graph_, good.item_graph_)):
        np.testing.assert_array_equal(one.to_scipy().toarray(), other.to_scipy().toarray())


def test_before_the_first_draw_that_is_kept_there_is_no_good_state():
    model, fit = fitted_until("AIR-langevin", 2, columns)
    with pytest.raises(AirRecsysError, match="have no solution") as found:
        fit()
    assert not isinstance(found.value, DivergenceError)
    assert not hasattr(model, "global_mean_")
