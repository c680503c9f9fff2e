"""Covariances of codes in columns: categories that are the same or not, and an index of functions that go together."""

# ruff: noqa: D102, N803, N806 (the methods of `Covariance`; letters of the literature)

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import product
from markovia.factors.covariances.covariance import Correlation, Covariance, Pull, one_or_each
from markovia.runtime.array_types import Array


class Categorical(Correlation):
    """The covariance of categories: 1 where two are the same, a correlation where they are not; columns multiply.

    Parameters
    ----------
    correlation
        Between two different categories, from 0 to 1; one number, or one a column.
    columns
        The columns of the inputs that hold codes; any numbers.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.Categorical(0.3).value([[0.0], [2.0], [2.0]]).tolist()
    [[1.0, 0.3, 0.3], [0.3, 1.0, 1.0], [0.3, 1.0, 1.0]]
    """

    supports: ClassVar = {"correlation": "unit"}

    def __init__(self, correlation: Any = None, *, columns: Any = None) -> None:
        super().__init__({"correlation": correlation}, columns)

    def _of_columns(self, X: Any, Z: Any, xp: Any) -> list[Any]:
        Z = X if Z is None else Z
        rho = xp.broadcast_to(xp.asarray(one_or_each(self, "correlation", X)), (X.shape[1],))
        return [xp.where(X[:, j, None] == Z[:, j], 1.0, rho[j]) for j in range(X.shape[1])]

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        return product(self._of_columns(X, Z, xp))

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        matrices, other = self._of_columns(X, Z, np), X if Z is None else Z

        def correlation(W: Array) -> Any:
            found = [
                np.vdot(W * product(matrices, left_out=j), X[:, j, None] != other[:, j])
                for j in range(X.shape[1])
            ]
            return np.array(found) if np.ndim(self.number("correlation")) else sum(found)

        return product(matrices), lambda W: self.pulled(correlation=lambda: correlation(W))

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        return np.zeros_like(X)

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        return {"correlation": 0.5}


class Index(Covariance):
    """The covariance of several functions by their number (coregionalisation): B[i, j] for codes i and j.

    Parameters
    ----------
    B
        The covariance matrix of the functions, where it is known.
    W, kappa
        What makes it otherwise, B = W W' + diag(kappa): a row of W and a number of kappa for each function. Not said:
        fitted, for as many functions as the data have.
    rank
        The columns of a W that was not said.
    column
        The column of the inputs that holds the codes, 0, 1, ...

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.Index([[2.0, 0.5], [0.5, 1.0]]).value([[0.0], [1.0]]).tolist()
    [[2.0, 0.5], [0.5, 1.0]]
    >>> k = mk.covariances.RBF(1.0, columns=0) * mk.covariances.Index(W=[[1.0], [2.0]], kappa=[0.1, 0.1], column=1)
    >>> k.value([[0.0, 0.0]], [[0.0, 1.0]]).tolist()
    [[2.0]]
    """

    supports: ClassVar = {"B": "real", "W": "real", "kappa": "positive"}

    def __init__(
        self, B: Any = None, *, W: Any = None, kappa: Any = None, rank: int = 1, column: int | None = None
    ) -> None:
        if B is not None and (W is not None or kappa is not None):
            raise InvalidArgument("Index takes B, or W and kappa with B = W W' + diag(kappa), not both")
        super().__init__({"W": W, "kappa": kappa} if B is None else {"B": B}, column)
        self.rank = rank
        shapes = {n: np.shape(h.value) for n, h in self.hypers().items() if h.value is not None}
        if self.is_known():
            K = np.asarray(self.number("B"))
            if self.is_free("B"):
                raise InvalidArgument(
                    "B of Index is known; one that is fitted is made of W and kappa: Index(W=..., kappa=...)"
                )
            if K.ndim != 2 or K.shape[0] != K.shape[1] or not np.allclose(K, K.T, rtol=1e-9, atol=0.0):
                raise InvalidArgument(f"B of Index is a symmetric matrix, not an array of shape {K.shape}")
            if (low := float(np.linalg.eigvalsh(K)[0])) < -1e-9 * np.abs(K).max():
                raise InvalidArgument(
                    f"B of Index is no covariance matrix: its smallest eigenvalue is {low:.6g}"
                )
        elif len({s[0] if s else 0 for s in shapes.values()}) > 1 or len(shapes.get("index.W", (0, 0))) != 2:
            raise InvalidArgument(
                "W of Index is a matrix and kappa a vector, with a row and a number for each function"
            )

    def is_known(self) -> bool:
        """Say whether B was given as it is."""
        return "B" in self.own

    def _matrix(self, xp: Any) -> Any:
        if self.is_known():
            return xp.asarray(self.number("B"))
        W = xp.asarray(self.number("W"))
        return W @ W.T + xp.diag(xp.asarray(self.number("kappa")))

    def _codes(self, X: Any, xp: Any) -> Any:
        if X.shape[1] != 1:
            raise InvalidArgument(
                f"Index looks at one column, and inputs have {X.shape[1]}; say which: column=1"
            )
        codes = X[:, 0].astype(int)
        if xp is np:
            size = len(self.number("B" if self.is_known() else "kappa"))
            if ((codes != X[:, 0]) | (codes < 0) | (codes >= size)).any():
                raise InvalidArgument(
                    f"the column of Index holds codes 0 to {size - 1}, and has others among them"
                )
        return codes

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        i = self._codes(X, xp)
        return self._matrix(xp)[i[:, None], i if Z is None else self._codes(Z, xp)]

    def diag(self, X: Any, xp: Any) -> Any:
        return xp.diag(self._matrix(xp))[self._codes(X, xp)]

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        i = self._codes(X, np)
        j = i if Z is None else self._codes(Z, np)
        return self._matrix(np)[i[:, None], j], lambda W: self._pulled(lambda E: E[i].T @ W @ E[j])

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        i = self._codes(X, np)
        return np.diag(self._matrix(np))[i], lambda w: self._pulled(lambda E: np.diag(E[i].T @ w))

    def _pulled(self, by_matrix: Callable[[Array], Array]) -> dict[tuple[int, str], Any]:
        """Return derivatives by W and kappa from that by B, a function of the unit vectors of the codes."""
        if self.is_known():
            return {}
        W, H = self.number("W"), by_matrix(np.eye(len(self.number("kappa"))))
        return self.pulled(W=lambda: (H + H.T) @ W, kappa=lambda: np.diag(H).copy())

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        return np.zeros_like(X)

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        """Start at functions of variance 1 with correlations of a half; later columns of W tell the functions apart."""
        said = self.own["W"] if self.own["W"] is not None else self.own["kappa"]
        size = int(X.max()) + 1 if said is None else np.shape(getattr(said, "value", said))[0]
        W = np.array([[np.cos(np.pi * r * (i + 0.5) / size) for r in range(self.rank)] for i in range(size)])
        return {
            "W": np.sqrt(0.5 / np.maximum((W**2).sum(axis=1), 1e-3))[:, None] * W,
            "kappa": np.full(size, 0.5),
        }

    def __repr__(self) -> str:
        shown = super().__repr__()
        return shown.replace("columns=[", "column=").replace("])", ")") if self.columns is not None else shown
