"""The matrices of a linear Gaussian state-space model, checked once.

x[t+1] = T x[t] + c + N(0, Q) and y[t] = Z x[t] + d + N(0, H), from x[0] ~ N(mean, cov) and infinite variances where diffuse.
"""

# ruff: noqa: N806 (letters of the literature)

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import numbers


@dataclass(frozen=True)
class StateSpace:
    """The matrices of a model: each with one entry for all steps, or one a step; `diffuse` states start unknown."""

    transition: Array
    transition_cov: Array
    observation: Array
    observation_cov: Array
    transition_offset: Array
    observation_offset: Array
    initial_mean: Array
    initial_cov: Array
    diffuse: Flags

    @property
    def n_states(self) -> int:
        """How many numbers a state has."""
        return int(self.transition.shape[-1])

    @property
    def n_observed(self) -> int:
        """How many numbers are observed in a step."""
        return int(self.observation.shape[-2])

    @property
    def steps(self) -> int | None:
        """How many steps there are matrices for; None for any number."""
        varying = [len(m) for m in self._matrices() if len(m) > 1]
        return min(varying) if varying else None

    def between(self, first: int, last: int, mean: Array, cov: Array) -> "StateSpace":
        """Return the matrices of the steps from `first` up to, without, `last`, where a state of this law starts them."""
        own: list[Any] = [m[first:last] if len(m) > 1 else m for m in self._matrices()]
        law: list[Any] = [mean, cov, np.zeros(len(mean), dtype=bool)]
        return StateSpace(*own, *law)

    def _matrices(self) -> tuple[Array, ...]:
        return (
            self.transition,
            self.transition_cov,
            self.observation,
            self.observation_cov,
            self.transition_offset,
            self.observation_offset,
        )


def state_space(
    transition: Any,
    transition_cov: Any,
    observation: Any,
    observation_cov: Any,
    initial_mean: Any = None,
    initial_cov: Any = None,
    transition_offset: Any = None,
    observation_offset: Any = None,
    diffuse: Any = None,
) -> StateSpace:
    """Check matrices and return them as a model; infinite variances in `initial_cov` are diffuse states.

    Raises
    ------
    InvalidArgument
        For a matrix of a wrong shape, or with entries that are not finite, or a covariance that is none.

    Examples
    --------
    >>> level = state_space(1.0, 0.5, 1.0, 2.0, initial_cov=np.inf)
    >>> level.n_states, level.n_observed, level.diffuse.tolist()
    (1, 1, [True])
    """
    T = _stack("transition", transition, None, None)
    n = T.shape[-1]
    if T.shape[-2] != n:
        raise InvalidArgument(f"transition= is a square matrix, not of shape {T.shape[-2:]}")
    Z = _stack("observation", observation, None, n)
    p = Z.shape[-2]
    Q = covariance("transition_cov", transition_cov, n)
    H = covariance("observation_cov", observation_cov, p)
    c = _rows("transition_offset", transition_offset, n)
    d = _rows("observation_offset", observation_offset, p)
    mean = np.zeros(n) if initial_mean is None else _rows("initial_mean", initial_mean, n)[0]
    cov = (
        np.diag(np.full(n, np.inf))
        if initial_cov is None
        else np.atleast_2d(_numbers("initial_cov", initial_cov))
    )
    if cov.shape != (n, n):
        raise InvalidArgument(f"initial_cov= is {n} by {n}, not of shape {cov.shape}")
    unknown = np.isinf(np.diag(cov))
    if diffuse is not None:
        unknown = unknown | np.broadcast_to(np.asarray(diffuse, dtype=bool), (n,))
    cov = np.where(unknown[:, None] | unknown[None, :], 0.0, cov)
    found = StateSpace(T, Q, Z, H, c, d, mean, covariance("initial_cov", cov, n)[0], unknown)
    varying = {len(m) for m in (T, Q, Z, H, c, d) if len(m) > 1}
    if len(varying) > 1:
        raise InvalidArgument(
            f"matrices that vary over time are there for {sorted(varying)} steps; give equally many"
        )
    return found


def _numbers(name: str, value: Any) -> Array:
    return numbers(value, f"{name}= is an array of numbers")


def _finite(name: str, found: Array) -> Array:
    if not np.isfinite(found).all():
        raise InvalidArgument(f"{name}= has entries that are not finite")
    return np.ascontiguousarray(found)


def _stack(name: str, value: Any, rows: int | None, columns: int | None) -> Array:
    found = _numbers(name, value)
    if found.ndim < 2:
        found = np.atleast_2d(found)
    if found.ndim == 2:
        found = found[None]
    wrong = (rows, columns)
    if (
        found.ndim != 3
        or not found.size
        or any(w not in (None, s) for w, s in zip(wrong, found.shape[1:], strict=True))
    ):
        shape = " by ".join("any" if w is None else str(w) for w in wrong)
        raise InvalidArgument(
            f"{name}= is {shape}, or has one such matrix a step, not of shape {np.shape(value)}"
        )
    return _finite(name, found)


def covariance(name: str, value: Any, size: int) -> Array:
    """Return a number, a matrix or a stack of matrices as a checked stack of covariances."""
    found = _numbers(name, value)
    if found.ndim == 0:
        found = found * np.eye(size)
    found = _stack(name, found, size, size)
    scale = np.sqrt(np.abs(np.einsum("tii->ti", found)))
    slack = 1e-8 * scale[:, :, None] * scale[:, None, :] + 1e-300
    if (np.abs(found - found.swapaxes(1, 2)) > slack).any():
        raise InvalidArgument(f"{name}= is not symmetric")
    least = np.linalg.eigvalsh(
        found / np.where(scale > 0, scale, 1)[:, :, None] / np.where(scale > 0, scale, 1)[:, None, :]
    )
    if (least[:, 0] < -1e-9).any():
        t = int(np.argmin(least[:, 0]))
        where = f" at step {t}" if len(found) > 1 else ""
        raise InvalidArgument(f"{name}={where} is no covariance: it has a negative eigenvalue")
    return np.ascontiguousarray((found + found.swapaxes(1, 2)) / 2)


def _rows(name: str, value: Any, size: int) -> Array:
    found = np.zeros(size) if value is None else _numbers(name, value)
    found = np.full(size, found) if found.ndim == 0 else found
    found = found[None] if found.ndim == 1 else found
    if found.ndim != 2 or found.shape[1] != size:
        raise InvalidArgument(f"{name}= has {size} numbers, or as many a step, not shape {np.shape(value)}")
    return _finite(name, found)
