"""The parts of a fitted state: factors, snapshots of graphs, the ending of the training, and the selected settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.rows import Side
from air_recsys.storage.lazy import functional, torch
from air_recsys.storage.threads import in_workers, torch_threads
from air_recsys.training import Record

_PAIRS = 2**16  # whose factors are held at a time


class Factors(NamedTuple):
    """Factors and biases of a model: score(u, i) = mean + b_u + c_i + p_u . q_i, in the unit of the ratings."""

    user_factors: np.ndarray  # (n_users, r)
    item_factors: np.ndarray  # (n_items, r)
    user_biases: np.ndarray  # (n_users,)
    item_biases: np.ndarray  # (n_items,)
    mean: float

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Factors and biases without the mean."""
        return self.user_factors, self.item_factors, self.user_biases, self.item_biases

    def scores(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The score of each pair of indices, (n,)."""
        products = np.empty(users.size, self.item_factors.dtype)

        def multiply(start: int) -> None:
            block = slice(start, start + _PAIRS)
            own, others = self.user_factors[users[block]], self.item_factors[items[block]]
            products[block] = np.einsum("nr,nr->n", own, others)

        in_workers(multiply, range(0, users.size, _PAIRS), work=users.size * self.item_factors.shape[1])
        offsets = self.user_biases[users].astype(np.float64) + self.item_biases[items]
        return products + offsets + self.mean  # in float64: the mean may be far larger than all else

    def balanced(self) -> Self:
        """The same scores by factors whose columns are singular vectors, equally long on both sides."""
        width = self.user_factors.shape[1]
        with torch_threads(1):  # several may round otherwise
            completed = torch.from_numpy(self.user_factors @ self.item_factors.T).double()
            left, values, right = torch.linalg.svd(completed, full_matrices=False)
        sides = (left * values.sqrt(), right.T * values.sqrt())
        padded = (functional.pad(side, (0, width - side.shape[1])) for side in sides)
        users, items = (side.numpy().astype(self.user_factors.dtype) for side in padded)
        return self._replace(user_factors=users, item_factors=items)

    def of(self, side: Side) -> tuple[np.ndarray, np.ndarray]:
        """The factors and the biases of users or of items."""
        by_user = side == "user"
        return (self.user_factors, self.user_biases) if by_user else (self.item_factors, self.item_biases)


class Snapshot(NamedTuple):
    """The graphs at one epoch or sweep."""

    user_graph: SimilarityGraph | None
    item_graph: SimilarityGraph | None
    transform_graphs: list[SimilarityGraph]

    @classmethod
    def of(cls, adjacencies: Sequence[sp.csr_array | None], data: Interactions) -> Self:
        """Give the adjacencies of rows, columns and others the ids of their nodes."""
        rows, columns, *others = adjacencies
        users = None if rows is None else SimilarityGraph(rows, data.user_ids, "user")
        items = None if columns is None else SimilarityGraph(columns, data.item_ids, "item")
        present = [adjacency for adjacency in others if adjacency is not None]
        return cls(users, items, [SimilarityGraph(each, range(len(each.indptr) - 1)) for each in present])


class Ending(NamedTuple):
    """The ending of a training; None for parts that a model does not have."""

    n_iter: int | None = None
    stopped_by: str | None = None
    device: str | None = None
    snapshots: dict[int, Snapshot] | None = None


def history_of(records: list[Record]) -> pd.DataFrame:
    """Records as a table, in the words of users and items."""
    frame = pd.DataFrame(records, columns=list(Record._fields))
    return frame.rename(columns={"row_energy": "user_energy", "column_energy": "item_energy"})


@dataclass(frozen=True)
class Trial:
    """One form of the settings, trained on a part of the ratings and judged on the hidden rest."""

    form: str  # its name
    trainings: float  # how long it was trained, as a share of the training that follows
    rmse: float  # root mean squared error on the hidden ratings, in their unit; infinite where the training failed


class NewRows(NamedTuple):
    """How rows without ratings follow from others, see `air_recsys.models.kernels`."""

    power: int  # of similarities
    noise: float
    intercept: bool
    profiles: bool = False  # rows are alike as far as they are similar to the same rows

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """The same of a JSON list; `ValueError` or `TypeError` for something else."""
        power, noise, intercept, *profiles = content
        if not (int(power) > 0 and 0 < float(noise) < math.inf) or len(profiles) > 1:
            raise ValueError(f"expected a power and a noise above 0, found {content!r:.80}")
        return cls(int(power), float(noise), bool(intercept), *map(bool, profiles))


class Kernels(NamedTuple):
    """Kernels of given similarities of both sides, see `air_recsys.models.kernels`."""

    users: str
    items: str
    noise: float  # in the unit of the variance of the process
    reach: float  # what deviations of pairs are multiplied with
    widths: tuple[float, float] | None = None  # the median squared distances of factors, after the training
    new_users: NewRows | None = None
    new_items: NewRows | None = None

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """The kernels of a JSON list; `ValueError` or `TypeError` for something else."""
        users, items, noise, reach, widths, *new = content
        if not {users, items} <= set(KERNELS) or len(new) != 2:
            raise ValueError(f"expected kernels among {KERNELS}, found {content!r:.80}")
        numbers = [noise, reach, *(widths or ())]
        if not all(0 < float(each) < math.inf for each in numbers):
            raise ValueError(f"expected numbers above 0 of kernels, found {content!r:.80}")
        of_new = [None if each is None else NewRows.from_json(each) for each in new]
        of_factors = None if widths is None else (float(widths[0]), float(widths[1]))
        return cls(users, items, float(noise), float(reach), of_factors, *of_new)


KERNELS = ("identity", "half", "factors")


@dataclass(frozen=True)
class Selection:
    """The values of a training for parameters that were "auto".

    Parameters
    ----------
    values : dict
        Parameters that the form sets, by plain names; all others follow from formulas.
    """

    values: dict[str, Any] = field(default_factory=dict)
    form: str = ""  # the name of the form, "" where there was none to choose
    trials: tuple[Trial, ...] = ()  # empty where nothing was searched
    line: str = ""  # what was chosen, by how much, or why nothing was searched
    interrupted: bool = False  # whether Ctrl-C ended the search
    kernels: Kernels | None = None  # where scores have a part by given similarities

    def plain_values(self) -> dict[str, Any]:
        """The values by plain names, those of a solver beside its name; without what is still "auto"."""
        of_solver = dict(self.values.get("solver", {}))
        named = {"solver": of_solver.pop("name")} if of_solver else {}
        plain = {name: value for name, value in self.values.items() if name != "solver"} | named | of_solver
        return {name: value for name, value in plain.items() if value != "auto"}

    def table(self) -> pd.DataFrame:
        """The trials, one a row."""
        return pd.DataFrame([asdict(trial) for trial in self.trials], columns=["form", "trainings", "rmse"])

    def to_json(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        trials = [[each.form, each.trainings, each.rmse if math.isfinite(each.rmse) else None] for each in self.trials]
        found = {
            "values": self.values,
            "form": self.form,
            "trials": trials,
            "line": self.line,
            "interrupted": self.interrupted,
        }
        return found if self.kernels is None else found | {"kernels": list(self.kernels)}

    @classmethod
    def from_json(cls, content: Any) -> Selection:
        """The selection that `to_json` described; `ValueError`, `TypeError` or `LookupError` for something else."""
        values, form, line = content["values"], content["form"], content["line"]
        if not (isinstance(values, Mapping) and isinstance(form, str) and isinstance(line, str)):
            raise ValueError("expected chosen settings by name, found others")
        trials = tuple(
            Trial(str(name), float(share), math.inf if rmse is None else float(rmse))
            for name, share, rmse in content["trials"]
        )
        kernels = Kernels.from_json(content["kernels"]) if content.get("kernels") else None
        return cls(dict(values), form, trials, line, content["interrupted"] is True, kernels)
