r"""The covariance of the errors of a row by the time between its entries, and the processes that explain it.

Of a row that follows from its entries, :math:`r_e = y_e - g_e\cdot x`, the errors of two entries that share a process
of variance v have the mean product

.. math:: E[r_e r_f] = -g_e^\top C g_f + (1 - h_e)(1 - h_f)\,\frac{v}{s}\,e^{-|t_e - t_f| / \ell}

up to first order in v, with s the scale of the row's noise (`air_recsys.nn.posterior.prior`), C the covariance of the
row and h the leverage, :math:`g_e^\top C g_e` times the precision of the noise: what a row does to fit one entry moves
the others away from it. The evidence of processes that are independent of the factors does not give their variances,
because the factors absorb a part of the changes, and more of it if the processes are small.

Source: Cressie, Statistics for spatial data, Wiley, 1993, chapter 2 (fitting variograms).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.triangles import symmetric
from air_recsys.storage.lazy import Tensor, torch

_SCALES_APART = 4.0
_CERTAIN = 4.0  # standard errors by which a process has to differ from none
_SMALLEST = 0.003  # variance of a process that is worth its work, in that of the noise
_FURTHEST = 1024  # entries between those of a pair
_GROWTH = 1.5  # of these from one look at all entries to the next
_AT_ONCE = 2**14  # entries, of which each needs the covariance of its row
_LEAST_KEPT = 0.05  # of an error that a row has fitted


class Curve(NamedTuple):
    """The covariance of two entries of a row by classes of the time between them, which doubles from one to the next.

    The first class is that of entries at one time. Covariances are those of a row with a noise of the scale 1.
    """

    lags: np.ndarray  # (k,), the mean in each class
    covariances: np.ndarray  # (k,)
    counts: np.ndarray  # (k,), pairs
    noise: float  # variance of an entry


class Scale(NamedTuple):
    """A process: how long it lasts, and its variance."""

    scale: float
    strength: float


def processes_of(curve: Curve) -> list[Scale]:
    """The processes whose covariances add up to a curve, none where it tells of none.

    The variances are those of non-negative least squares, weighted by the pairs, for time scales a factor of 4 apart;
    the least certain process goes until all differ from none.
    """
    from scipy.optimize import nnls

    positive = curve.lags[curve.lags > 0]
    if not positive.size:
        return []
    n_scales = 1 + int(math.log(positive.max() / positive.min(), _SCALES_APART))
    scales = positive.min() * _SCALES_APART ** np.arange(n_scales)
    weights = np.sqrt(curve.counts) / curve.noise
    inputs = weights[:, None] * np.exp(-curve.lags[:, None] / scales)
    while scales.size:
        strengths = nnls(inputs, weights * curve.covariances)[0]
        errors = np.sqrt(np.diag(np.linalg.pinv(inputs.T @ inputs)))
        certainty = np.where(strengths > _SMALLEST * curve.noise, strengths / errors, 0.0)
        if certainty.min() >= _CERTAIN:
            return [Scale(float(scale), float(strength)) for scale, strength in zip(scales, strengths, strict=True)]
        kept = np.arange(scales.size) != certainty.argmin()
        scales, inputs = scales[kept], inputs[:, kept]
    return []


def curve_of(
    entries: Entries, times: Tensor, rows: Rows, scales: Tensor, partners: Tensor, precisions: Tensor
) -> Curve:
    """The curve of some rows, each of which follows from its entries.

    Parameters
    ----------
    entries : Entries
    times : Tensor of float64, shape (nnz,)
    rows : Rows
        Means and covariances given the partners.
    scales : Tensor, shape (m,)
        Of the noise of the rows.
    partners : Tensor, shape (n, d)
        Their means.
    precisions : Tensor, shape (nnz,)
        Of the noise of each entry.
    """
    m = len(entries.starts) - 1
    owner = torch.arange(m, device=times.device).repeat_interleave(entries.starts.diff())
    order = torch.argsort(times, stable=True)
    order = order[torch.argsort(owner[order], stable=True)]  # by row, then by time
    owner, times, precisions = owner[order], times[order], precisions[order].to(torch.float64)
    inputs, errors, moved = _fitted(entries, order, owner, rows, partners)
    kept = (1 - (moved * inputs).sum(dim=1) * precisions).clamp(min=_LEAST_KEPT) * (precisions > 0)
    size = scales[owner].to(torch.float64) * (precisions > 0)
    lags = times.diff()[owner.diff() == 0]
    smallest = float(lags[lags > 0].min()) if (lags > 0).any() else 1.0
    sums, distance = np.zeros((4, 0)), 1
    while distance <= min(_FURTHEST, len(times) - 1):
        same = (owner[distance:] == owner[:-distance]).nonzero().flatten()
        first, second = same, same + distance
        products = errors[first] * errors[second] + (moved[first] * inputs[second]).sum(dim=1)
        told = torch.minimum(size[first], size[second])  # 0 where one has no weight
        lags, reach = times[second] - times[first], kept[first] * kept[second]
        sums = _added(sums, torch.stack([lags, told * products, reach]).cpu().numpy(), smallest)
        distance = max(distance + 1, int(distance * _GROWTH))
    counts, lags, products, reach = sums[:, sums[3] > 0]
    return Curve(lags / counts, products / reach, counts, 1 / float(precisions.mean()))


def _fitted(
    entries: Entries, order: Tensor, owner: Tensor, rows: Rows, partners: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The inputs g, the errors of the rows, and C g, of the entries in some order."""
    own = partners[entries.partners[order]].to(torch.float64)
    inputs = torch.cat([own[:, :-1], torch.ones_like(own[:, -1:])], dim=1)
    errors = entries.values[order].to(torch.float64) - own[:, -1] - (inputs * rows.mean[owner]).sum(dim=1)
    if rows.covariance is None:
        return inputs, errors, torch.zeros_like(inputs)
    parts = zip(owner.split(_AT_ONCE), inputs.split(_AT_ONCE), strict=True)
    covariances = symmetric(rows.covariance.to(torch.float64))
    moved = [torch.bmm(covariances[of], some[:, :, None])[:, :, 0] for of, some in parts]
    return inputs, errors, torch.cat(moved)


def _added(sums: np.ndarray, each: np.ndarray, smallest: float) -> np.ndarray:
    """Add 1, lags, products and what is kept of pairs, the last three (3, pairs), to the sums of classes (4, k)."""
    lags = each[0]
    classes = np.zeros(lags.size, dtype=np.int64)
    classes[lags > 0] = 1 + np.floor(np.log2(lags[lags > 0] / smallest) + 1e-9).astype(np.int64)
    new = np.stack([np.bincount(classes, of) for of in (np.ones_like(lags), *each)])
    width = max(new.shape[1], sums.shape[1])
    padded = [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in (sums, new)]
    return padded[0] + padded[1]
