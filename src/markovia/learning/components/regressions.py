"""Emissions that depend on more than the state: on inputs, and on what was emitted before (autoregression).

Gaussians: mean = b_z + sum_l A_z,l x_t-l + C_z u_t; the first steps of a sequence, which have too little before them, are
taken as given. Symbols: p(x_t | z_t, x_t-1, ..., x_t-p), and for the first p steps p(x_t | z_t).
Reference: Hamilton (1989). Cost of learning: steps times states times columns squared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import InvalidArgument
from markovia.learning.components.discrete import chosen, dirichlet, read_symbols, shares
from markovia.learning.components.families import (
    NOTHING,
    Components,
    Observations,
    parameter,
    probabilities,
)
from markovia.learning.components.gaussian import (
    Gaussian,
    _covariances,
    _free,
    _means,
    _noise,
)
from markovia.learning.components.normal_sums import CovarianceType, regular, shaped
from markovia.runtime.array_types import Array, Ints


def _places(offsets: Ints) -> Ints:
    """Return how many steps lie before each one in its sequence."""
    return np.asarray(np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets)))


def _refuse_gap(gaps: Any, sequences: Sequences) -> None:
    if gaps.any():
        raise InvalidArgument(
            f"{sequences.at(int(np.argmax(gaps)))} is missing; with lags= every step is needed by those after it"
        )


@dataclass(frozen=True)
class RegressionGaussian(Components):
    """Linear regressions: `means (states, columns)`, `lags (states, p, columns, columns)`, `inputs (states, columns, q)`.

    A row has what was emitted, then what was emitted before (the nearest first), then the inputs.
    """

    means: Array
    lags: Array
    inputs: Array
    covariances: Array
    kind: CovarianceType = "full"
    names: ClassVar = ("means", "lags", "inputs", "covariances")

    @classmethod
    def of(cls, k: int, params: Mapping[str, Any], *, p: int, q: int, kind: CovarianceType) -> Self:
        """Return checked emissions from parameters."""
        means = _means(params["means"], (k, None))
        d = means.shape[1]
        q = q or np.shape(params.get("inputs", np.zeros((k, d, 0))))[-1]
        lags = parameter(params.get("lags", np.zeros((k, p, d, d))), "'lags'", (k, p, d, d))
        inputs = parameter(params.get("inputs", np.zeros((k, d, q))), "'inputs'", (k, d, q))
        return cls(means, lags, inputs, _covariances(params["covariances"], k, d, kind), kind)

    @classmethod
    def started(
        cls, seen: Observations, k: int, rng: np.random.Generator, *, p: int, q: int, kind: CovarianceType
    ) -> Self:
        """Return clusters of what a common regression leaves over, and that regression."""
        d = (seen.rows.shape[1] - q) // (p + 1)
        y, x = seen.rows[:, :d], np.column_stack([np.ones(len(seen.rows)), seen.rows[:, d:]])
        coefs = np.linalg.lstsq(x, y, rcond=None)[0]
        left = Observations(y - x[:, 1:] @ coefs[1:], seen.codes, seen.offsets)
        plain = Gaussian.started(left, k, rng, kind=kind)
        lags = coefs[1 : 1 + p * d].reshape(p, d, d).transpose(0, 2, 1)
        return cls(
            plain.means,
            np.repeat(lags[None], k, axis=0),
            np.repeat(coefs[None, 1 + p * d :].transpose(0, 2, 1), k, axis=0),
            plain.covariances,
            kind,
        )

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        free = _free(self.kind, *self.means.shape)
        return int(self.means.size + self.lags.size + self.inputs.size + free)

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.means.shape[1])

    @property
    def memory(self) -> int:
        """How many steps are looked back."""
        return int(self.lags.shape[1])

    def read_with(self, sequences: Sequences, inputs: Array | None) -> Observations:
        """Return rows of numbers, with those before them and the inputs, as observations."""
        return read_regression(sequences, inputs, self.memory)

    @property
    def _coefs(self) -> Array:
        """Coefficients by design, (states, 1 + p d + q, columns)."""
        k, d = self.means.shape
        lags = self.lags.transpose(0, 1, 3, 2).reshape(k, -1, d)
        return np.concatenate([self.means[:, None], lags, self.inputs.transpose(0, 2, 1)], axis=1)

    def _apart(self, rows: Array) -> tuple[Array, Array]:
        """Return what was emitted less what is expected, (states, rows, columns), and the design."""
        d = self.means.shape[1]
        x = np.column_stack([np.ones(len(rows)), rows[:, d:]])
        return rows[:, :d] - x @ self._coefs, x

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state."""
        apart, _ = self._apart(rows)
        factors = np.linalg.cholesky(self.covariances)
        white = np.linalg.solve(factors, apart.transpose(0, 2, 1))
        sizes = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        d = self.means.shape[1]
        return np.asarray(-0.5 * ((white**2).sum(axis=1).T + sizes + d * np.log(2.0 * np.pi)))

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return weighted least squares in each state; states without data keep theirs."""
        k, d = self.means.shape
        p, y = self.memory, rows[:, :d]
        x = np.column_stack([np.ones(len(rows)), rows[:, d:]])
        coefs, fed = self._coefs, weights.sum(axis=0) > NOTHING
        for j in np.flatnonzero(fed):
            root = np.sqrt(weights[:, j, None])
            coefs[j] = np.linalg.lstsq(root * x, root * y, rcond=None)[0]
        made = replace(
            self,
            means=coefs[:, 0],
            lags=coefs[:, 1 : 1 + p * d].reshape(k, p, d, d).transpose(0, 1, 3, 2),
            inputs=coefs[:, 1 + p * d :].transpose(0, 2, 1),
        )
        apart, _ = made._apart(rows)
        scatter = np.einsum("nk,kni,knj->kij", weights, apart, apart)
        size = weights.sum(axis=0)
        if self.kind == "tied":
            scatter[:], size = scatter[fed].sum(axis=0), np.full(k, size[fed].sum())
        found = self.covariances.copy()
        found[fed] = shaped(scatter[fed] / size[fed, None, None], self.kind)
        if self.kind == "tied" and fed.any():
            found[:] = found[fed][0]
        return replace(made, covariances=regular(found, lambda: y.var(axis=0)))

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some states, with zeros before it and for inputs."""
        return self.means[states] + _noise(self.covariances, states, rng)

    def draw_after(
        self, states: Ints, past: list[Any], inputs: Array | None, rng: np.random.Generator
    ) -> Any:
        """Return an observation from each of some states, after others (the last one last); zeros lie before them."""
        found = self.draw(states, rng)
        for lag, before in enumerate(reversed(past[-self.memory :] if self.memory else [])):
            found += np.einsum("nij,nj->ni", self.lags[states, lag], before)
        return found if inputs is None else found + np.einsum("nij,nj->ni", self.inputs[states], inputs)


def read_regression(sequences: Sequences, inputs: Array | None, p: int) -> Observations:
    """Return numbers with the p steps before them and inputs; steps without p others before them have no row."""
    values = sequences.numbers()
    gaps = np.isnan(values).any(axis=1)
    if p:
        _refuse_gap(gaps, sequences)
    elif (np.isnan(values).any(axis=1) != np.isnan(values).all(axis=1)).any():
        row = int(np.argmax(np.isnan(values).any(axis=1) != np.isnan(values).all(axis=1)))
        raise InvalidArgument(
            f"{sequences.at(row)} misses some of its entries; give whole steps, or none of a step"
        )
    there = (_places(sequences.offsets) >= p) & ~gaps
    which = np.flatnonzero(there)
    parts = [values[which], *(values[which - lag] for lag in range(1, p + 1))]
    if inputs is not None:
        parts.append(inputs[which])
    codes = np.cumsum(there) - 1
    codes[~there] = len(which)
    return Observations(np.column_stack(parts), codes, sequences.offsets, apart=True)


@dataclass(frozen=True)
class LaggedCategorical(Components):
    """Symbols after symbols: `probs (states, symbols, ..., symbols)`, earlier ones first, and `first (states, symbols)`.

    A row has the symbol and the place of those before it, -1 for the first steps of a sequence.
    """

    probs: Array
    first: Array
    symbols: tuple[Any, ...]
    names: ClassVar = ("probs", "first")
    priors: ClassVar = ("concentration",)

    @classmethod
    def of(cls, k: int, params: Mapping[str, Any], *, p: int, symbols: Sequence[Any] | None) -> Self:
        """Return checked emissions from parameters."""
        first = probabilities(params["first"], "'first'", (k, None))
        n = first.shape[1]
        probs = probabilities(params["probs"], "'probs'", (k, *(n,) * (p + 1)))
        known = tuple(range(n)) if symbols is None else tuple(symbols)
        if len(known) != n or len(set(known)) != n:
            raise InvalidArgument(f"symbols= are {n} different values, one a column of 'first'")
        return cls(probs, first, known)

    @classmethod
    def started(
        cls,
        seen: Observations,
        k: int,
        rng: np.random.Generator,
        *,
        p: int,
        symbols: Sequence[Any] | None = None,
    ) -> Self:
        """Return random emissions."""
        known = tuple(symbols or ())
        n = len(known)
        return cls(rng.dirichlet(np.ones(n), (k, *(n,) * p)), rng.dirichlet(np.ones(n), k), known)

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        n = len(self.symbols)
        return int((self.probs.size + self.first.size) * (n - 1) // n)

    @property
    def width(self) -> int:
        """The number of columns."""
        return 1

    @property
    def memory(self) -> int:
        """How many steps are looked back."""
        return self.probs.ndim - 2

    def read_with(self, sequences: Sequences, inputs: Array | None) -> Observations:
        """Return symbols with those before them as observations."""
        return read_lagged(sequences, self.symbols, self.memory)

    def _tables(self) -> Array:
        """Return all distributions, (states, 1 + pasts, symbols), that of first steps last."""
        k, n = self.first.shape
        return np.concatenate([self.probs.reshape(k, -1, n), self.first[:, None]], axis=1)

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._tables()[:, rows[:, 1], rows[:, 0]]).T)

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the shares of weighted rows."""
        before = self._tables()
        counts = np.zeros_like(before)
        for j, own in enumerate(weights.T):
            np.add.at(counts[j], (rows[:, 1], rows[:, 0]), own)
        found = shares(counts, before, prior)
        return replace(self, probs=found[:, :-1].reshape(self.probs.shape), first=found[:, -1])

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return a symbol from each of some states, at the beginning of a sequence."""
        return self.draw_after(states, [], None, rng)

    def draw_after(
        self, states: Ints, past: list[Any], inputs: Array | None, rng: np.random.Generator
    ) -> Any:
        """Return a symbol from each of some states, after others."""
        p = self.memory
        if len(past) < p:
            codes = chosen(self.first[states], rng)
        else:
            place = {symbol: i for i, symbol in enumerate(self.symbols)}
            before = [np.array([place[c] for c in one[:, 0].tolist()]) for one in past[-p:]]
            codes = chosen(self.probs[(states, *before)], rng)
        made = np.empty(len(self.symbols), dtype=object)
        made[:] = self.symbols
        return (codes if self.symbols == tuple(range(len(self.symbols))) else made[codes])[:, None]

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        return dirichlet(self._tables(), prior)


def read_lagged(sequences: Sequences, symbols: Sequence[Any], p: int) -> Observations:
    """Return symbols with the p before them as observations; equal ones share a row."""
    plain = read_symbols(sequences, symbols)
    n = len(symbols)
    _refuse_gap(plain.codes == n, sequences)
    place = _places(sequences.offsets)
    past = np.zeros(len(place), dtype=np.int64)
    for lag in range(1, p + 1):
        there = place >= lag
        past[there] += plain.codes[np.flatnonzero(there) - lag] * n ** (lag - 1)
    past[place < p] = -1
    found, codes = np.unique(np.column_stack([plain.codes, past]), axis=0, return_inverse=True)
    return Observations(found, codes.ravel(), sequences.offsets)
