"""What is known about the states of sequences: means and covariances, one array a sequence."""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from markovia.inference.sequences.drawn_paths import DrawnPath
from markovia.inference.sequences.innovation_tests import InnovationTests, innovation_tests
from markovia.inference.sequences.padded import PerSequence
from markovia.inference.sequences.state_space import StateSpace
from markovia.runtime.array_types import Array, Ints


def of_rows(matrices: Array, x: Array, t: Ints) -> Array:
    """Return each row times its step's matrix."""
    return np.asarray(x @ matrices[0].T if len(matrices) == 1 else np.einsum("tij,tj->ti", matrices[t], x))


@dataclass(frozen=True, repr=False)
class Filtered(DrawnPath):
    """The states given what was observed up to each step; one array a sequence.

    Attributes
    ----------
    mean, cov
        Of the state after the step's observation; variances are infinite while a diffuse start is not yet told.
    predicted_mean, predicted_cov
        Of the state before the step's observation.
    innovations, innovation_cov
        What was observed less what was expected, and its covariance; NaN where nothing was observed.
    log_prob
        The log likelihood of each sequence.
    """

    space: StateSpace
    y: Array
    offset: Array
    offsets: Ints
    before: Array
    after: Array
    slot: Ints
    cov_before: Array
    cov_after: Array
    vague: tuple[Ints, Array, Array] | None
    log_prob: Array
    single: bool = False

    def __repr__(self) -> str:
        return f"Filtered(sequences={len(self.offsets) - 1}, log_prob={float(self.log_prob.sum()):.6g})"

    def __iter__(self) -> Iterator[PerSequence]:
        """Yield means and covariances, so that they may be taken apart as a pair."""
        yield from (self.mean, self.cov)

    @cached_property
    def mean(self) -> PerSequence:
        """The mean of each state."""
        return PerSequence.of(self.after, self.offsets, self.single)

    @cached_property
    def predicted_mean(self) -> PerSequence:
        """The mean of each state before its observation."""
        return PerSequence.of(self.before, self.offsets, self.single)

    @cached_property
    def cov(self) -> PerSequence:
        """The covariance of each state."""
        return PerSequence.of(self._known(self.cov_after, 2), self.offsets, self.single)

    @cached_property
    def predicted_cov(self) -> PerSequence:
        """The covariance of each state before its observation."""
        return PerSequence.of(self._predicted, self.offsets, self.single)

    @cached_property
    def innovations(self) -> PerSequence:
        """What was observed less what was expected."""
        return PerSequence.of(self.y - self.expected, self.offsets, self.single)

    @cached_property
    def innovation_cov(self) -> PerSequence:
        """The covariance of what was expected."""
        return PerSequence.of(self.expected_cov, self.offsets, self.single)

    @cached_property
    def standardized(self) -> PerSequence:
        """The innovations made independent with variance 1; NaN where not all of a step was observed or told."""
        v, F = self.y - self.expected, self.expected_cov
        found = np.full(v.shape, np.nan)
        whole = np.isfinite(v).all(axis=1) & np.isfinite(F).all(axis=(1, 2))
        found[whole] = np.linalg.solve(np.linalg.cholesky(F[whole]), v[whole][:, :, None])[:, :, 0]
        return PerSequence.of(found, self.offsets, self.single)

    def test_innovations(self, lags: int | None = None) -> list[list[InnovationTests]]:
        """Test each sequence's innovations for what a true model leaves: one entry an observed number, for each sequence.

        Parameters
        ----------
        lags
            How many autocorrelations the Ljung-Box test takes; a fifth of the steps, 10 at most, by default.
        """
        return [[innovation_tests(e[:, j], lags) for j in range(e.shape[1])] for e in self.standardized]

    @cached_property
    def expected(self) -> Array:
        """The mean of each step's observation given those before, one row a step of all sequences."""
        states = of_rows(self.space.observation, self.before, self._t)
        return np.asarray(states + self.offset)

    @cached_property
    def expected_cov(self) -> Array:
        """The covariance of each step's observation given those before."""
        Z, H = self.space.observation, self.space.observation_cov
        z, h = Z[self._t] if len(Z) > 1 else Z, H[self._t] if len(H) > 1 else H
        with np.errstate(invalid="ignore"):
            found = z @ np.where(np.isinf(self._predicted), 0.0, self._predicted) @ z.swapaxes(1, 2) + h
        if self.vague is not None:
            rows = np.flatnonzero(self.vague[0][self.slot] > 0)
            z = Z[self._t[rows]] if len(Z) > 1 else Z
            vague = self.vague[1][self.slot[rows]]
            reach = np.abs(z) @ np.sqrt(np.einsum("tii->ti", vague))[:, :, None]
            unknown = z @ vague @ z.swapaxes(1, 2)
            found[rows] = _unbounded(unknown, found[rows], reach[:, :, 0])
        return found

    @cached_property
    def _t(self) -> Ints:
        return np.arange(len(self.y)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    @cached_property
    def _predicted(self) -> Array:
        return self._known(self.cov_before, 1)

    def _known(self, cov: Array, which: Literal[1, 2]) -> Array:
        found = cov[self.slot]
        if self.vague is not None:
            rows = np.flatnonzero(self.vague[0][self.slot] > 0)
            part = self.vague[which][self.slot[rows]]
            found[rows] = _unbounded(part, found[rows], np.sqrt(np.einsum("tii->ti", part)))
        return found


def _unbounded(vague: Array, known: Array, reach: Array) -> Array:
    """Return covariances with infinities where they grow without bound: by more than rounding of numbers of such sizes."""
    told = np.abs(vague) <= 1e-10 * reach[:, :, None] * reach[:, None, :]
    return np.where(told, known, np.copysign(np.inf, vague))


@dataclass(frozen=True, repr=False)
class Smoothed(DrawnPath):
    """The states given whole sequences; one array a sequence.

    Attributes
    ----------
    mean, cov
        Of each state.
    lag_cov
        The covariance of each state with the one before, one fewer than steps.
    log_prob
        The log likelihood of each sequence.
    """

    offsets: Ints
    means: Array
    place: Ints
    covs: Array
    lagging: Callable[[], Array]
    log_prob: Array
    single: bool = False

    def __repr__(self) -> str:
        return f"Smoothed(sequences={len(self.offsets) - 1}, log_prob={float(self.log_prob.sum()):.6g})"

    def __iter__(self) -> Iterator[PerSequence]:
        """Yield means and covariances, so that they may be taken apart as a pair."""
        yield from (self.mean, self.cov)

    @cached_property
    def mean(self) -> PerSequence:
        """The mean of each state."""
        return PerSequence.of(self.means, self.offsets, self.single)

    @cached_property
    def cov(self) -> PerSequence:
        """The covariance of each state."""
        return PerSequence.of(self.covs[self.place], self.offsets, self.single)

    @cached_property
    def lagged(self) -> Array:
        """The covariance of each next state with this one, at the places of `place`."""
        return self.lagging()

    @cached_property
    def lag_cov(self) -> PerSequence:
        """The covariance of each state with the one before."""
        every = PerSequence.of(self.lagged[self.place], self.offsets)
        return PerSequence([found[:-1] for found in every], single=self.single)
