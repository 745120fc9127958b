r"""The inverse of a symmetric positive definite matrix by halves, in products of matrices that threads share.

With :math:`B = A_{21} A_{11}^{-1}` and :math:`S = A_{22} - B A_{21}^\top`,

.. math:: A^{-1} = \begin{pmatrix} A_{11}^{-1} + B^\top S^{-1} B & -B^\top S^{-1} \\ -S^{-1} B & S^{-1} \end{pmatrix}

which takes as many operations as LAPACK's inverse. Where BLAS shares that one out, its bits follow the number of
threads; here each thread has rows of its own, whose number is fixed.
"""

from __future__ import annotations

from collections.abc import Callable

from air_recsys.exceptions import DataError
from air_recsys.storage.lazy import Tensor, torch
from air_recsys.storage.threads import in_workers, one_thread

_LEAF = 256  # rows of a matrix that LAPACK inverts at once
_ROWS = 256  # that a thread takes at a time


@one_thread()
def inverted(matrix: Tensor) -> Tensor:
    """The inverse of a symmetric positive definite matrix, whose lower triangle is read, in its place and its type."""
    _invert(matrix, 0)
    return matrix


def by_rows(function: Callable[[slice], object], n: int) -> None:
    """Call a function of each part of n rows, the last ones first."""
    in_workers(function, [slice(start, min(start + _ROWS, n)) for start in range(0, n, _ROWS)][::-1])


def _invert(a: Tensor, first: int) -> None:
    """Invert the diagonal block that begins at row `first` of the whole matrix."""
    if len(a) <= _LEAF:
        factor, failed = torch.linalg.cholesky_ex(a)
        if failed:
            raise DataError(f"expected a positive definite matrix, found one that is not at row {first + int(failed)}")
        a.copy_(torch.cholesky_inverse(factor))
        return
    half = len(a) // 2
    one, lower, two, upper = a[:half, :half], a[half:, :half], a[half:, half:], a[:half, half:]
    _invert(one, first)
    products = torch.empty_like(lower, memory_format=torch.contiguous_format)  # B, (n - half, half)

    def eliminate(rows: slice) -> None:
        torch.mm(lower[rows], one, out=products[rows])
        two[rows, : rows.stop].addmm_(products[rows], lower[: rows.stop].T, alpha=-1)

    by_rows(eliminate, len(two))
    _invert(two, first + half)

    def put_back(rows: slice) -> None:
        torch.mm(two[rows], products, out=lower[rows]).neg_()
        upper[:, rows] = lower[rows].T

    by_rows(put_back, len(two))

    def complete(rows: slice) -> None:
        one[rows, : rows.stop].addmm_(products[:, rows].T, lower[:, : rows.stop], alpha=-1)
        one[: rows.start, rows] = one[rows, : rows.start].T

    by_rows(complete, half)
