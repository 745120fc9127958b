r"""The prior of rows without entries, from what is known of them beside the pattern.

In training, rows are :math:`x_i \sim N(W^\top f_i, S)` with features of the pattern and known ones side by side, and W
says what the known ones add to the pattern. For a row without entries the pattern is not known. Its effects, such as
that war films have other viewers, must follow from the known features alone: by ridge regression of the rows on these,

.. math:: x \sim N(M^\top (s, 1), C),\qquad
    M = (K^\top D K + \Lambda)^{-1} K^\top D X,\qquad C = \frac{\sum_i d_i (r_i r_i^\top + V_i)}{\sum_i d_i}

with K the known features and a constant, D the numbers of entries d, in all as large as their effective number of
rows :math:`(\sum d)^2 / \sum d^2`, r the errors of each row by the regression on all others, V the covariances of the
rows. Rows count by their entries, because a requested row is one that people choose, and not one of the many that
nobody chooses.

People also choose what suits them, so that entries are above the prediction of the mean row. So the bias of M and the
size of C are set to what the errors on the entries of a row, by the regression on all others, are in the mean
(`settled`).
"""

from __future__ import annotations

from typing import NamedTuple

from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.prior import Embedding
from air_recsys.nn.posterior.triangles import symmetric
from air_recsys.storage.lazy import Tensor, torch

_RIDGE = 20.0  # of the known features, not of the constant, at most: less where they explain much, as in `prior`
_STEPS = 5  # of ridge and regression in turn
_AT_ONCE = 2**18  # entries
_SIZES = 0.25, 4.0  # by which C may change
_MOST_LEVERAGE = 0.9  # of a row on what is said of itself: beyond, others say nothing of it
_NO_EMBEDDING = Embedding()


class UnseenPrior(NamedTuple):
    """M, one for each draw of the rows, C, and what M of all other rows says of each row."""

    weights: Tensor  # (s, g + 1, d)
    covariances: Tensor  # (s, d, d)
    left_out: Tensor  # (m, s, d)


def unseen_prior(
    rows: Tensor, covariances: Tensor | None, known: Tensor, degrees: Tensor, embedding: Embedding = _NO_EMBEDDING
) -> UnseenPrior:
    """The prior of rows without entries.

    Parameters
    ----------
    rows : Tensor
        Means (m, d), or draws (m, s, d).
    covariances : Tensor, optional
        Upper triangles (m, d (d + 1) / 2), beside means.
    known : Tensor, shape (m, g)
    degrees : Tensor, shape (m,)
        Numbers of entries.
    embedding : Embedding
        The last of the known features, which keep their ridge.
    """
    draws = rows.to(torch.float64)
    draws = draws if rows.ndim == 3 else draws[:, None]  # (m, s, d)
    inputs = torch.cat([known.to(draws), torch.ones_like(draws[:, :1, 0])], dim=1)  # (m, g + 1)
    shares = degrees.to(draws) / degrees.sum()
    weighted = inputs * (shares / shares.square().sum())[:, None]
    gram, products = weighted.T @ inputs, weighted.T @ draws.flatten(1)
    kept = None if covariances is None else symmetric((shares @ covariances.to(torch.float64))[None])
    penalty = torch.full_like(gram[0], _RIDGE)
    penalty[-1] = 0.0
    n_learned = known.shape[1] - embedding.number
    penalty[n_learned:-1] = embedding.ridge
    found = _regression(gram, products, inputs, weighted, draws, shares, kept, penalty, n_learned)
    for _ in range(_STEPS if n_learned else 0):
        penalty[:n_learned] = min(_RIDGE, found.ridge)
        found = _regression(gram, products, inputs, weighted, draws, shares, kept, penalty, n_learned)
    return found.prior


class _Regression(NamedTuple):
    prior: UnseenPrior
    ridge: float  # of the features that learn it, that is most probable given the weights


def _regression(
    gram: Tensor,
    products: Tensor,
    inputs: Tensor,
    weighted: Tensor,
    draws: Tensor,
    shares: Tensor,
    kept: Tensor | None,
    penalty: Tensor,
    n_learned: int,
) -> _Regression:
    """M and C at some ridges (g + 1,); `kept` is the mean of the rows' covariances, (1, d, d)."""
    inverse = torch.linalg.inv(gram + torch.diag(penalty))
    weights = (inverse @ products).view(len(gram), *draws.shape[1:]).movedim(1, 0)  # (s, g + 1, d)
    leverage = ((weighted @ inverse) * inputs).sum(dim=1).clamp(max=_MOST_LEVERAGE)
    errors = (draws - torch.einsum("mg,sgd->msd", inputs, weights)) / (1 - leverage)[:, None, None]
    scatter = torch.einsum("m,msd,mse->sde", shares, errors, errors)
    scatter = scatter if kept is None else scatter + kept
    effects = weights[:, :n_learned]
    squares = (effects @ torch.linalg.inv(scatter) * effects).sum() / len(weights)
    squares = squares + inverse.diagonal()[:n_learned].sum() * effects.shape[2]
    size = effects[0].numel()
    return _Regression(UnseenPrior(weights, scatter, draws - errors), float((size + 1) / (squares + 1 / _RIDGE)))


def settled(prior: UnseenPrior, observed: OwnEntries, side: int, partners: Tensor, noise: Tensor) -> UnseenPrior:
    """The prior with the bias, and the size of C, that the errors on the entries have in the mean.

    Parameters
    ----------
    prior : UnseenPrior
        Of rows (side 0) or columns (1).
    observed : OwnEntries
    side : int
    partners : Tensor
        Means of the other side (n, d), or draws (n, s, d).
    noise : Tensor, shape (n,)
        Variance of an entry of each partner.
    """
    starts, columns, values, _ = observed.entries[side]
    own = torch.arange(len(starts) - 1, device=starts.device).repeat_interleave(starts.diff())
    left_out = prior.left_out[observed.own(side)]
    draws = (partners if partners.ndim == 3 else partners[:, None]).to(torch.float64)
    weights, covariances = prior.weights.clone(), prior.covariances.clone()
    for draw in range(draws.shape[1]):
        expected, others = left_out[:, draw], draws[:, draw]
        sums = weights.new_zeros(5)  # entries, errors, their squares, noise, what C says of the squares
        for rows, index, entries in zip(*(part.split(_AT_ONCE) for part in (own, columns, values)), strict=True):
            of_others = others[index]
            reach = torch.cat([of_others[:, :-1], torch.ones_like(of_others[:, :1])], dim=1)
            errors = entries - (expected[rows] * reach).sum(dim=1) - of_others[:, -1]
            told = ((reach @ prior.covariances[draw]) * reach).sum(dim=1)
            summands = torch.ones_like(errors), errors, errors.square(), noise[index].to(errors), told
            sums += torch.stack([each.sum() for each in summands])
        (sums,) = observed.exchange.sum(sums)
        _, error, square, of_noise, told = sums / sums[0]
        weights[draw, -1, -1] += error
        covariances[draw] *= ((square - error.square() - of_noise) / told).clamp(*_SIZES)
    return prior._replace(weights=weights, covariances=covariances)
