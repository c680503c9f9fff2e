"""Gaussian factors in canonical form: `exp(g + h'x - x'Kx / 2)` over named variables.

The canonical (information) form is closed under everything that tables are closed under: products and quotients add and
subtract, evidence is a slice, and summing out is a Schur complement. A precision K that is not positive definite is legal,
as in the likelihood of a linear observation; moments then do not exist and are refused.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import log, pi
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable, UnknownVariable
from markovia.runtime.array_types import Array


class GaussianFactor:
    """A function `exp(g + h'x - x'Kx / 2)` of named real variables.

    Parameters
    ----------
    names
        The variables, in the order of `h` and `K`.
    precision
        The symmetric matrix K; it need not be positive definite.
    information
        The vector h; zero by default.
    log_constant
        The number g.

    Examples
    --------
    >>> prior = GaussianFactor.from_moments(["x"], [1.0], [[4.0]])
    >>> seen = GaussianFactor.from_regression("y", 0.0, {"x": 2.0}, 1.0).reduce({"y": 3.0})
    >>> posterior = prior * seen
    >>> posterior.mean().round(4).tolist(), posterior.covariance().round(4).tolist()
    ([1.4706], [[0.2353]])
    >>> round(posterior.log_total(), 4)  # log N(3; 2, 17)
    -2.365
    """

    __slots__ = ("information", "log_constant", "names", "precision")

    def __init__(
        self, names: Sequence[str], precision: Any, information: Any = None, log_constant: float = 0.0
    ) -> None:
        self.names = (names,) if isinstance(names, str) else tuple(names)
        n = len(self.names)
        if len(set(self.names)) != n:
            raise InvalidTable(f"a variable is named twice: {list(self.names)}")
        self.precision = _matrix(precision, n, "precision")
        self.information = np.zeros(n) if information is None else _vector(information, n, "information")
        self.log_constant = float(log_constant)

    @classmethod
    def from_moments(cls, names: Sequence[str], mean: Any, covariance: Any) -> "GaussianFactor":
        """Return the normalised density with that mean and covariance, which must be positive definite."""
        names = (names,) if isinstance(names, str) else tuple(names)
        m, cov = _vector(mean, len(names), "mean"), _matrix(covariance, len(names), "covariance")
        root = _root(cov, "the covariance", names)
        inverse = np.linalg.inv(root)
        precision = inverse.T @ inverse
        h = precision @ m
        g = -0.5 * len(names) * log(2 * pi) - float(np.log(np.diag(root)).sum()) - 0.5 * float(m @ h)
        return cls(names, precision, h, g)

    @classmethod
    def from_regression(
        cls, child: str, bias: float, weights: Mapping[str, float], variance: float
    ) -> "GaussianFactor":
        """Return p(child | parents) = N(bias + weights . parents, variance); the variance is positive."""
        if not variance > 0:
            raise InvalidArgument(
                f"the variance of {child!r} is {variance!r}; a regression in canonical form needs a positive one"
            )
        row = np.array([*(-float(w) for w in weights.values()), 1.0])
        g = -0.5 * (log(2 * pi * variance) + bias**2 / variance)
        return cls((*weights, child), np.outer(row, row) / variance, row * bias / variance, g)

    @classmethod
    def one(cls) -> "GaussianFactor":
        """Return the factor over no variable that is one."""
        return cls((), np.zeros((0, 0)))

    # -- algebra -------------------------------------------------------------------------------------------------

    def __mul__(self, other: "GaussianFactor") -> "GaussianFactor":
        """Multiply two factors: their parameters add over the joint scope."""
        return self._combined(other, 1.0)

    def __truediv__(self, other: "GaussianFactor") -> "GaussianFactor":
        """Divide by a factor: its parameters are subtracted."""
        return self._combined(other, -1.0)

    def _combined(self, other: "GaussianFactor", sign: float) -> "GaussianFactor":
        names = (*self.names, *(n for n in other.names if n not in self.names))
        place = {n: i for i, n in enumerate(names)}
        precision, h = np.zeros((len(names), len(names))), np.zeros(len(names))
        for part, times in ((self, 1.0), (other, sign)):
            at = [place[n] for n in part.names]
            precision[np.ix_(at, at)] += times * part.precision
            h[at] += times * part.information
        return GaussianFactor(names, precision, h, self.log_constant + sign * other.log_constant)

    def marginal(self, names: str | Iterable[str]) -> "GaussianFactor":
        """Integrate all other variables out.

        Raises
        ------
        InvalidArgument
            If the integral is infinite: the precision of what is integrated out is not positive definite.
        """
        kept = (names,) if isinstance(names, str) else tuple(names)
        keep = [self._at(n) for n in kept]
        away = [i for i in range(len(self.names)) if i not in set(keep)]
        inside = self.precision[np.ix_(away, away)]
        root = _root(inside, "the precision of what is integrated out", [self.names[i] for i in away])
        both = np.column_stack([self.precision[np.ix_(away, keep)], self.information[away]])
        half = np.linalg.solve(root, both)
        across, h = half[:, :-1], half[:, -1]
        g = 0.5 * (len(away) * log(2 * pi) + float(h @ h)) - float(np.log(np.diag(root)).sum())
        return GaussianFactor(
            kept,
            self.precision[np.ix_(keep, keep)] - across.T @ across,
            self.information[keep] - across.T @ h,
            self.log_constant + g,
        )

    def reduce(self, given: Mapping[str, float]) -> "GaussianFactor":
        """Fix some variables to numbers and drop them."""
        fixed = [self._at(n) for n in given]
        values = _vector(list(given.values()), len(fixed), "evidence")
        keep = [i for i in range(len(self.names)) if i not in set(fixed)]
        h = self.information[keep] - self.precision[np.ix_(keep, fixed)] @ values
        quadratic = float(values @ self.precision[np.ix_(fixed, fixed)] @ values)
        g = self.log_constant + float(self.information[fixed] @ values) - 0.5 * quadratic
        return GaussianFactor([self.names[i] for i in keep], self.precision[np.ix_(keep, keep)], h, g)

    # -- moments -------------------------------------------------------------------------------------------------

    def mean(self) -> Array:
        """Return the mean of the normalised density."""
        return self.covariance() @ self.information

    def covariance(self) -> Array:
        """Return the covariance of the normalised density."""
        inverse = np.linalg.inv(_root(self.precision, "the precision", self.names))
        return np.asarray(inverse.T @ inverse)

    def log_total(self) -> float:
        """Return the log of the integral over all variables."""
        return self.marginal(()).log_constant

    def log_value(self, x: Mapping[str, float]) -> float:
        """Return the log of the factor at one point."""
        return self.reduce({n: x[n] for n in self.names}).log_constant

    def normalize(self) -> "GaussianFactor":
        """Return the density that is proportional to the factor."""
        return GaussianFactor(
            self.names, self.precision, self.information, self.log_constant - self.log_total()
        )

    def allclose(self, other: "GaussianFactor", *, atol: float = 1e-9) -> bool:
        """Say whether two factors are the same function, up to the order of variables."""
        if set(self.names) != set(other.names):
            return False
        gap = self / other
        worst = max(
            (float(np.abs(a).max(initial=0.0)) for a in (gap.precision, gap.information)), default=0.0
        )
        return worst <= atol and abs(gap.log_constant) <= atol

    def __repr__(self) -> str:
        return f"GaussianFactor({', '.join(self.names)})"

    def _at(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise UnknownVariable(name, self.names, "the factor") from None


def product(factors: Iterable[GaussianFactor]) -> GaussianFactor:
    """Multiply factors."""
    return reduce(GaussianFactor.__mul__, factors, GaussianFactor.one())


def _vector(values: Any, n: int, what: str) -> Array:
    found = np.array(values, dtype=np.float64)
    if found.shape != (n,) or not np.isfinite(found).all():
        raise InvalidArgument(f"the {what} of {n} variables is {n} finite numbers, not {values!r}")
    return found


def _matrix(values: Any, n: int, what: str) -> Array:
    found = np.array(values, dtype=np.float64)
    if found.shape != (n, n) or not np.isfinite(found).all():
        raise InvalidArgument(
            f"the {what} of {n} variables is a matrix of {n} x {n} finite numbers, not of shape {found.shape}"
        )
    if n and float(np.abs(found - found.T).max()) > 1e-8 * max(1.0, float(np.abs(found).max())):
        raise InvalidArgument(f"the {what} is not symmetric")
    return 0.5 * (found + found.T)


def _root(matrix: Array, what: str, names: Sequence[str]) -> Array:
    try:
        return np.asarray(np.linalg.cholesky(matrix), np.float64)
    except np.linalg.LinAlgError:
        raise InvalidArgument(
            f"{what} ({', '.join(map(str, names[:4]))}{', ...' if len(names) > 4 else ''}) is not positive definite, so "
            "there is no such Gaussian; multiply with the missing factors first"
        ) from None
