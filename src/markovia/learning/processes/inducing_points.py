"""Inducing points: a process seen through its values at m inputs; SoR, DTC, FITC and the bound of Titsias share the algebra.

Cost of a value and its gradient: n m^2, memory n m or less. They differ in what becomes of the variance that the points
do not explain (`low_rank_evidence.py`). SGPR is a bound on the evidence from below that grows with every point, and does
not overfit by its points; FITC takes noise for what varies from row to row; SoR and DTC have the same evidence, and SoR
is too sure far from its points. References: Quinonero-Candela and Rasmussen (2005), Snelson and Ghahramani (2006),
Titsias (2009); the choice of points by what is least known Burt, Rasmussen and van der Wilk (2020).
"""

# ruff: noqa: N803, N806 (letters of the literature)

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import Sum, split_white
from markovia.factors.covariances.covariance import Covariance
from markovia.factors.functions.parameter import Parameter
from markovia.inference.gaussian.function_values import as_rows
from markovia.learning.processes.evidence_ascent import EvidenceMaximum, maximise_evidence
from markovia.learning.processes.evidence_method import Gradient
from markovia.learning.processes.low_rank_evidence import Basis, LowRankEvidence, inverse_root
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed, generator

POINTS = 200
"""Inducing points where no number is said."""
CANDIDATES = 10_000
"""Rows at most among which points are chosen."""
ENOUGH = 1e-9
"""The share of the variance at which what is left is none: no further points are chosen there."""
CHOICES = ("variance", "kmeans", "rows")


class InducingPoints(LowRankEvidence):
    """A process seen through its values at a few inputs; base of `SGPR`, `FITC`, `DTC` and `SoR`.

    Parameters
    ----------
    X, y
        Rows of inputs, and targets without their mean.
    inducing
        How many points, or their inputs; equal ones count once.
    choice
        How points are chosen: where least is known given those before ("variance", under the first covariance that is seen),
        centres of clusters ("kmeans"), or rows at random ("rows").
    move
        Whether `fit` moves the points, too, with the hyper-parameters.
    first
        Rows on which `fit` begins where there are many more: numbers that fit these are near those that fit all.
    jitter
        What is added to the variances of the points, as a share of them; raised tenfold where that is too little, and said.
    seed
        For the choice.

    Examples
    --------
    >>> import markovia as mk
    >>> X = np.linspace(0.0, 10.0, 500).reshape(-1, 1)
    >>> k = mk.covariances.RBF(1.0) + mk.covariances.White(0.1)
    >>> few, many = (SGPR(X, np.sin(X[:, 0]), inducing=m).evidence(k)[0] for m in (5, 20))
    >>> bool(few < many), round(many, 3)
    (True, 82.401)
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        inducing: Any = None,
        choice: str = "variance",
        move: bool = False,
        first: int = 5_000,
        jitter: float = 1e-8,
        seed: Seed = 0,
    ) -> None:
        super().__init__(X, y)
        if choice not in CHOICES:
            raise InvalidArgument(f"choice= is one of {', '.join(CHOICES)}, not {choice!r}")
        self.choice, self.move, self.first, self.jitter = choice, move, first, jitter
        self._rng = generator(seed)
        self.places: Array | None = None
        """The inputs of the points, once they are chosen."""
        self.count = POINTS
        if np.ndim(inducing):
            self.places = given_places(inducing, self.X.shape[1])
        elif inducing is not None:
            if isinstance(inducing, bool) or int(inducing) != inducing or inducing < 1:
                raise InvalidArgument(
                    f"inducing= is a number of points, 1 or more, or their inputs, not {inducing!r}"
                )
            self.count = int(inducing)

    def basis(self, covariance: Covariance) -> Basis:
        """Return the values of the function at the points."""
        if isinstance(covariance, Placed):
            return self._basis_at(covariance.places(), covariance.parts[0], covariance)
        if self.places is None:
            self.places = chosen_places(self.X, covariance, self.count, self.choice, self._rng)
        return self._basis_at(self.places, covariance, None)

    def _basis_at(self, Z: Array, covariance: Covariance, placed: "Placed | None") -> Basis:
        K, pull_root = covariance.forward(Z)
        root, jitter = jittered_root(K, self.jitter)
        note = f"{len(Z)} inducing points"
        if jitter > self.jitter:
            note += f"; {jitter:.0e} of their variance was added to it, since they are nearly dependent"

        def forward(X: Array) -> tuple[Array, Any]:
            cross, pull = covariance.forward(X, Z)
            if placed is None:
                return cross, pull
            return cross, lambda W: {**pull(W), **placed.pull(covariance.input_gradient(Z, X, W.T))}

        def pull_both(W: Array) -> Gradient:
            share = jitter / len(Z) * np.trace(W)  # the jitter is a share of the mean variance
            W = W + share * np.eye(len(Z))
            moved = {} if placed is None else placed.pull(2.0 * covariance.input_gradient(Z, Z, W))
            return {**pull_root(W), **moved}

        return Basis(
            len(Z),
            lambda X: covariance.value(X, Z),
            forward,
            inverse_root(root),
            pull_both,
            covariance,
            Z,
            note,
        )

    def fit(
        self, covariance: Covariance, *, time_limit: float | None = None, **ascent: Any
    ) -> EvidenceMaximum:
        """Return the covariance with fitted numbers: from some of the rows, points chosen anew, then from all rows."""
        n, chosen = len(self.y), self.places is None
        settled = {"tol": 1e-7 * n, "flat": 1e-8} if n > self.first else {}
        with Clock(time_limit, False):
            if n > 4 * self.first:
                rows = np.sort(self._rng.choice(n, self.first, replace=False))
                part = type(self)(
                    self.X[rows], self.y[rows], inducing=self.count, choice=self.choice, jitter=self.jitter
                )
                part.places = self.places
                covariance = maximise_evidence(part, covariance, **ascent).covariance
                ascent = {**ascent, "restarts": 0, "starts": ()}
            rest, noise = split_white(covariance)
            if chosen and rest is not None:
                self.places = chosen_places(self.X, rest, self.count, self.choice, self._rng)
            if not self.move or rest is None:
                return maximise_evidence(self, covariance, **settled | ascent)
            # points are numbers of a covariance like others, in units of the spread of their column
            placed = Placed(self.places, self.X.std(axis=0), rest)
            found = maximise_evidence(self, Sum(placed, *noise) if noise else placed, **settled | ascent)
            values = {name: hyper.value for name, hyper in found.covariance.free().items()}
            self.places = values.pop("placed.places") * placed.unit
            return replace(found, covariance=covariance.with_values(values, keep=True))


class SGPR(InducingPoints):
    """Inducing points by the bound of Titsias: what they leave out is taxed, so that the value is a bound from below."""

    name: ClassVar[str] = "sgpr"
    left_over: ClassVar[str] = "taxed"


class FITC(InducingPoints):
    """Inducing points where rows are independent given them: what they leave out is noise of each row."""

    name: ClassVar[str] = "fitc"
    left_over: ClassVar[str] = "noise"


class DTC(InducingPoints):
    """Inducing points where rows are a function of them; far from them the prior's variance is kept."""

    name: ClassVar[str] = "dtc"


class SoR(InducingPoints):
    """Subset of regressors: the function is a weighted sum of covariances with the points, and no more."""

    name: ClassVar[str] = "sor"
    whole: ClassVar[bool] = False


class Placed(Covariance):
    """A covariance with inputs of inducing points as numbers of its own, so that one ascent moves both."""

    supports: ClassVar = {"places": "real"}

    def __init__(self, places: Any, unit: Array, covariance: Covariance) -> None:
        self.unit = np.where(unit > 0.0, unit, 1.0)
        super().__init__({"places": Parameter(0.0).with_value(places / self.unit)}, parts=[covariance])

    def places(self) -> Array:
        """Return the inputs of the points."""
        return np.asarray(self.number("places") * self.unit)

    def pull(self, by_places: Array) -> Gradient:
        """Return the derivative by its numbers from that by the inputs of the points."""
        return self.pulled(places=lambda: by_places * self.unit)


def given_places(inducing: Any, d: int) -> Array:
    """Return inputs of points that were given, equal ones once.

    Examples
    --------
    >>> given_places([[1.0], [0.0], [1.0]], 1).tolist()
    [[0.0], [1.0]]
    """
    Z = as_rows(inducing)
    if Z.shape[1] != d or not len(Z):
        raise InvalidArgument(
            f"inducing= has rows of {Z.shape[1]} numbers; inputs have {d} columns, one point at least"
        )
    return np.unique(Z, axis=0)


def chosen_places(
    X: Array, covariance: Covariance, count: int, choice: str = "variance", seed: Seed = 0
) -> Array:
    """Return inputs of at most `count` inducing points among some rows; fewer where the rest has nothing to add.

    Parameters
    ----------
    X
        Rows to choose from.
    covariance
        Says what is known of the function at one input from its values at others.
    count, choice, seed
        As in `InducingPoints`.

    Examples
    --------
    >>> import markovia as mk
    >>> chosen_places(np.array([[0.0], [0.0], [1.0], [9.0]]), mk.covariances.RBF(1.0), 3).ravel().tolist()
    [0.0, 9.0, 1.0]
    """
    rng = generator(seed)
    rows = X if len(X) <= CANDIDATES else X[np.sort(rng.choice(len(X), CANDIDATES, replace=False))]
    rows = np.unique(rows, axis=0)  # in an order of their own
    if choice == "rows" or (len(rows) <= count and choice == "kmeans"):
        return rows[np.sort(rng.permutation(len(rows))[:count])]
    if choice == "kmeans":
        from scipy.cluster.vq import kmeans2

        unit = np.where(rows.std(axis=0) > 0.0, rows.std(axis=0), 1.0)
        return np.unique(kmeans2(rows / unit, count, iter=10, minit="++", rng=rng)[0] * unit, axis=0)
    # a Cholesky factor whose pivots are where the variance is largest given those before
    left = covariance.diagonal(rows).astype(np.float64)
    stop, found = ENOUGH * left.mean(), []
    factor = np.zeros((min(count, len(rows)), len(rows)))
    for j in range(len(factor)):
        at = int(np.argmax(left))
        if not left[at] > stop:
            break
        found.append(at)
        row = covariance.value(rows[at : at + 1], rows)[0] - factor[:j, at] @ factor[:j]
        factor[j] = row / np.sqrt(left[at])
        left = np.maximum(left - factor[j] ** 2, 0.0)
        left[at] = 0.0
    return rows[found] if found else rows[:1]


def jittered_root(K: Array, jitter: float) -> tuple[Array, float]:
    """Return a Cholesky factor of K with a share of its mean variance added, and the share: raised until there is one."""
    from scipy.linalg import cholesky

    mean = float(np.trace(K)) / len(K)
    while True:
        try:
            return cholesky(K + jitter * mean * np.eye(len(K)), lower=True), jitter
        except np.linalg.LinAlgError:
            if not jitter < 1e-2 or not np.isfinite(mean):
                raise
            jitter = max(10.0 * jitter, 1e-14)
