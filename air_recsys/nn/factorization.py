"""Deep matrix factorization: X = W0 W1 ... W(L-1), with the chain rule written out."""

from __future__ import annotations

from air_recsys.storage.lazy import Tensor, torch


class DeepFactorization:
    """The matrix X = W0 W1 ... W(L-1) as two factors, X = U V^T with U = W0 ... W(L-2) and V = W(L-1)^T.

    Depth is what regularizes implicitly: gradient descent on a product of many small matrices favours low rank.

    Parameters
    ----------
    n_rows, n_columns : int
        Shape of X.
    width : int
        Columns of U and V; ``min(n_rows, n_columns)`` is the paper's full width.
    depth : int
        Number of factors, L >= 2.
    mean, std : float
        Every entry starts from N(mean, std^2).
    generator : torch.Generator
        Source of the start, always on the CPU so that every device starts alike.
    dtype, device

    Attributes
    ----------
    weights : list of Tensor
        W0 (n_rows, width), W1 ... W(L-2) (width, width), and V = W(L-1)^T (n_columns, width).

    Source: equation 2 of the paper.
    """

    def __init__(
        self,
        n_rows: int,
        n_columns: int,
        width: int,
        depth: int,
        *,
        mean: float,
        std: float,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        shapes = [(n_rows, width), *[(width, width)] * (depth - 2), (n_columns, width)]
        self.weights = [
            torch.empty(shape, dtype=dtype).normal_(mean, std, generator=generator).to(device) for shape in shapes
        ]
        self._prefixes: list[Tensor] = []

    def factors(self) -> tuple[Tensor, Tensor]:
        """U (n_rows, width) and V (n_columns, width) with X = U V^T."""
        *left, right = self.weights
        self._prefixes = [left[0]]  # W0, W0 W1, ..., U
        for weight in left[1:]:
            self._prefixes.append(self._prefixes[-1] @ weight)
        return self._prefixes[-1], right

    def hold(self, completed: Tensor) -> None:
        """Set X, of full width, in place: the factor of the longer side is X, all others are identities."""
        m, n = completed.shape
        for weight in self.weights:
            torch.nn.init.eye_(weight)
        longer, values = (0, completed) if m > n else (-1, completed.T)
        self.weights[longer].zero_()[:, : min(m, n)] = values

    def backward(self, grad_left: Tensor, grad_right: Tensor) -> None:
        """Write the gradient of every factor, given dF/dU and dF/dV for the U and V that `factors` returned last."""
        self.weights[-1].grad = grad_right
        for level in range(len(self.weights) - 2, 0, -1):
            weight = self.weights[level]
            weight.grad = self._prefixes[level - 1].T @ grad_left
            grad_left = grad_left @ weight.T
        self.weights[0].grad = grad_left
