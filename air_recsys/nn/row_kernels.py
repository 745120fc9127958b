r"""What the entries of a row share beside the graph of the columns: moments and features.

The process of a row (`air_recsys.nn.residuals`) has a covariance that is a sum. Beside the graph's part it has

.. math:: b\, e^{-|\tau - \tau'| / \ell} + c\, \phi_i^\top \phi_j

for entries at columns i and j with features :math:`\phi` and moments :math:`\tau`: what lasts some hours, and a weight
of the row's own on each feature. Products with both take a time that is linear in the entries.

A column without entries has the factors that its features say. What these leave, as if all columns had none, is a
process with the covariance

.. math:: a\, e^{-|x - x'|^2 / \ell} + b

of features x: what a row thinks of columns that are alike, by `wave_features`, and of all that it chooses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtbtrs  # pyright: ignore[reportAttributeAccessIssue]  # made at import

_WAVES = 64


def wave_features(known: np.ndarray, width: float) -> np.ndarray:
    r"""Features whose products are :math:`e^{-|x - x'|^2 / \ell}` in the mean over random frequencies, (n, 128).

    They differ from it by about 0.1; those of a row with itself are 1. The frequencies are always the same.
    """
    frequencies = np.random.default_rng(0).standard_normal((_WAVES, known.shape[1])).T * np.sqrt(2 / width)
    angles = known @ frequencies
    return np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(_WAVES)


class Chains:
    """Products with exp(-|t - t'| / l) among the entries of each row, in two passes over the sorted times.

    Parameters
    ----------
    rows : ndarray, shape (n,)
    times : ndarray, shape (n,)
    scale : float
        l > 0.
    """

    def __init__(self, rows: np.ndarray, times: np.ndarray, scale: float) -> None:
        self._order = np.lexsort((times, rows))
        rows, times = rows[self._order], times[self._order]
        kept = np.exp(-np.diff(times).clip(min=0) / scale) * (np.diff(rows) == 0)
        self._bands = np.ones((2, rows.size), order="F")  # of I less what is kept of the entry before
        self._bands[1] = np.append(-kept, 0.0)

    def product(self, values: np.ndarray) -> np.ndarray:
        """K times the values of the entries, (n,)."""
        found, sorted_values = np.empty(values.size), values[self._order]
        if values.size:
            before, after = (dtbtrs(self._bands, sorted_values, uplo="L", trans=way, diag="U")[0] for way in "NT")
            found[self._order] = before + after - sorted_values
        return found


class Lasting(NamedTuple):
    """A part of a process that fades in time."""

    strength: float  # b
    scale: float  # l, in the unit of the times

    def covariance(self, apart: np.ndarray) -> np.ndarray:
        """B exp(-|t - t'| / l) for moments that are so far apart."""
        return self.strength * np.exp(-apart / self.scale)

    def at(self, own: tuple[np.ndarray, np.ndarray, np.ndarray], asked: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """What lasts of entries at other moments of their rows, (p,).

        `own` are the rows, times and coefficients of the entries, (n,) each, and `asked` rows and times, (p,).
        """
        (rows, times, values), (asked_rows, asked_times) = own, asked
        chains = Chains(np.concatenate([rows, asked_rows]), np.concatenate([times, asked_times]), self.scale)
        return self.strength * chains.product(np.append(values, np.zeros(asked_rows.size)))[rows.size :]
