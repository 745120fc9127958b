"""The memory of a fit of likes: that of its largest stage, from sizes and settings, before any work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.models.graph_ranker.hidden import MOST_SCORES
from air_recsys.models.graph_ranker.regression import EDGES, MOST_EXACT, NEIGHBORS
from air_recsys.models.graph_ranker.selection import MOST_SEARCHED
from air_recsys.nn.memory import FIRST_USE, MemoryPlan

_WORD = 4  # bytes of a number, and of an index
_BLOCK = 8 * 4_000_000  # bytes of the products in a search for neighbours
_STEP = 5_000_000  # exponentials at a time
_LARGE = 2**23  # bytes of an array of factors from which steps leave more behind
_KEPT = 192 * 2**20  # bytes that gaps between the many arrays of a search take
_SMALLER = ((64, 1000), (32, 300), (16, 100), (8, 30))  # width, and users whose lists are compared
_FEWER = (0.5, 0.25, 0.1, 0.03, 0.01)  # of the items


class LikesMemory(NamedTuple):
    """What plans the memory of a `GraphRanker`, as an engine plans that of a training."""

    width: int  # of the factors
    n_parts: int  # hidden at the same time, 0 where nothing is searched
    n_asked: int  # users whose lists are compared on each, in each of the ways
    n_ways: int
    regresses: bool
    graph_edges: int  # of an item in the graph that factors are spread over

    def memory_plan(self, data: Interactions) -> MemoryPlan:
        """The bytes of a fit at its peak, beside the interactions: a slightly high estimate."""
        others = [] if data.kinds is None else [each.user_index for each in data.kinds.beside.values()]
        return self._plan(np.concatenate([data.user_index, *others]), data.n_users, data.n_items)

    def smaller(self, data: Interactions) -> Iterator[tuple[str, int]]:
        """Yield fewer factors, users compared and items, and the bytes that a fit then needs."""
        for width, n_asked in _SMALLER:
            if width < self.width:
                asked = f", n_validation={n_asked}" if self.n_parts and n_asked < self.n_asked else ""
                changed = self._replace(width=width, n_asked=min(n_asked, self.n_asked))
                yield f"n_factors={width}{asked}", changed.memory_plan(data).total
        places = np.argsort(np.argsort(-np.bincount(data.item_index, minlength=data.n_items), kind="stable"))
        for n_items in (max(1, int(share * data.n_items)) for share in _FEWER):
            users = data.user_index[places[data.item_index] < n_items]
            yield f"a fit on the {n_items} most liked items", self._plan(users, data.n_users, n_items).total

    def _plan(self, users: np.ndarray, m: int, n: int) -> MemoryPlan:
        """The plan of the largest stage of a fit on m users, those of the likes, and n items."""
        counts, exact, word = np.bincount(users).astype(np.float64), n <= MOST_EXACT, _WORD
        pairs = int(min(float(n) ** 2, (counts**2).sum()))  # of items that share a user, at most
        width, searched = min(self.width, m, n), self.n_parts * min(users.size, MOST_SEARCHED)
        likes, array = 5 * word * users.size, word * n * width
        scores = word * min(self.n_asked * self.n_ways * n, m * n, MOST_SCORES)
        edges, kept, near = (min(pairs, 7 * each * n // 5) for each in (self.graph_edges, EDGES, NEIGHBORS))
        graph, making = (0, 0) if exact else (7 * word * edges, min(2 * word * pairs, _BLOCK) + 4 * word * edges)
        n_held, n_step = (14, 11) if array > _LARGE else (8, 8)  # arrays of this size, as measured
        held, step = n_held * array, max(n_step * array + word * min(1024 * n, _STEP), making)
        axes = 4 * word * max((m + n) * (width + 16), m * width)  # singular vectors before, users after the training
        stages = [MemoryPlan(graph, likes, held, max(step, axes))]
        if self.regresses:
            solved = max(word * kept + min(4 * word * pairs, 2 * _BLOCK), 14 * word * (near // 2 + n))
            made = 4 * word * n**2 if exact else 4 * word * kept + solved
            stages.append(MemoryPlan(made, likes, held + word * m * width, 0))
        if self.n_parts:
            parts = likes + 10 * word * searched
            of_products, of_penalties = word * n**2 * (self.n_parts + 3), 4 * scores * self.n_parts
            stages.append(MemoryPlan(of_products if exact else of_penalties, parts, 0, 3 * scores))
            lists = (2 * self.n_parts + 4) * scores
            stages.append(MemoryPlan(self.n_parts * graph, parts, self.n_parts * 12 * array, lists + step))
        largest = max(stages, key=lambda stage: stage.total)
        loose = min(largest.total // (8 if exact else 4), _KEPT) if self.n_parts else 0
        return largest._replace(work=largest.work + FIRST_USE + loose)
