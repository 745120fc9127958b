"""Strengths of given graphs, chosen on hidden ratings.

The evidence is misleading here: most factors follow no graph, so that the most probable common strength is near 0 even
where 0.7 predicts best (docs/similarities.md). So each strength is trained on a part of the ratings and judged on the
rest, a tenth of them, or 5,000 where that is more, up to three tenths; users come first, then items. One above 0 has
to win by more than the standard error of the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.models.chosen import Chosen
from air_recsys.models.engines import Engine
from air_recsys.models.settings.forms import Form
from air_recsys.models.settings.search import HIDDEN, Entrant, verdict
from air_recsys.models.solvers import STRENGTH_NAMES
from air_recsys.splits import random_holdout

STRENGTHS = 0.0, 0.1, 0.3, 0.7
_ENOUGH, _MOST_HIDDEN = 5000, 0.3  # ratings, and their largest share: strengths differ by little


def open_strengths(data: Interactions, still_open: Collection[str]) -> list[str]:
    """Return the strengths without a value, of sides that have a given graph."""
    return [name for name, known in zip(STRENGTH_NAMES, data.has_places, strict=True) if known and name in still_open]


def search_strengths(
    names: Sequence[str],
    engine_of: Callable[[Form], Engine],
    data: Interactions,
    rng: np.random.Generator,
) -> Chosen:
    """Return the strengths with the lowest errors on hidden ratings, one parameter after the other.

    Ctrl-C ends the search with the best so far.
    """
    hidden_share = max(HIDDEN, min(_MOST_HIDDEN, _ENOUGH / data.n_ratings))
    split = random_holdout(data, hidden_share, random_state=rng)
    shown, hidden = data.select(split.train), data.select(split.test)
    seed, chosen = int(rng.integers(2**63 - 1)), Chosen()
    for name in names:
        forms = [Form(f"{name}={strength:g}", chosen.values | {name: strength}) for strength in STRENGTHS]
        entrants = [Entrant(form, engine_of(form), shown, hidden, seed) for form in forms]
        interrupted = False
        try:
            for entrant in entrants:
                entrant.go_on(1.0)
        except KeyboardInterrupt:
            interrupted = True
        chosen = joined(chosen, verdict(entrants, interrupted))
        if interrupted:
            break
    return chosen


def joined(first: Chosen, then: Chosen) -> Chosen:
    """Return what two searches chose, one after the other.

    Examples
    --------
    >>> joined(Chosen({"a": 1}, "a=1", line="settings: a=1"), Chosen({"b": 2}, "b=2", line="settings: b=2")).line
    'settings: a=1; settings: b=2'
    """
    return replace(
        then,
        values=first.values | then.values,
        form=", ".join(form for form in (first.form, then.form) if form),
        trials=first.trials + then.trials,
        line="; ".join(line for line in (first.line, then.line) if line),
        interrupted=first.interrupted or then.interrupted,
    )
