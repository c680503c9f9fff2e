"""Fitting a covariance: the ascent of the log evidence of any method, in logs of what is positive, from one or more starts.

Type II maximum likelihood (Rasmussen and Williams 2006, chapter 5): hyper-parameters that are free go where the data are
most probable, by L-BFGS on logs (positive), logits (unit) or themselves (real). A hyper-parameter with a prior adds the log
density of its own number, so that the result is the most probable one. Cost: that of a few dozen values of the evidence a
start. The evidence may have several tops; restarts begin at moved starts, and the best top is kept.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import lgamma, log, pi
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.covariance import Covariance, Hyper
from markovia.learning.components.block_passes import one_blas_thread
from markovia.learning.processes.evidence_method import EvidenceMethod
from markovia.optimise.minimise import minimise
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed, generator

ROWS_FOR_THREADS = 400
"""Rows from which matrices are large enough for several threads; with fewer these wait, long on a busy machine."""
MOVED = 1.5
"""How far restarts are from the start, as a standard deviation of logs."""


class NumberLine(NamedTuple):
    """How numbers of a support and those of the whole line become each other, and how fast they move with them."""

    to_line: Callable[[Any], Any]
    back: Callable[[Any], Any]
    moves: Callable[[Any], Any]


LINKS: Mapping[str, NumberLine] = {
    "positive": NumberLine(np.log, np.exp, lambda value: value),
    "unit": NumberLine(
        lambda v: np.log(v) - np.log1p(-v), lambda z: 1.0 / (1.0 + np.exp(-z)), lambda v: v * (1.0 - v)
    ),
    "real": NumberLine(np.asarray, np.asarray, np.ones_like),
}
"""By support."""


@dataclass(frozen=True)
class EvidenceStart:
    """A start that was tried: its numbers by name, where it ended, and whether it converged there."""

    values: Mapping[str, Any]
    objective: float
    converged: bool


@dataclass(frozen=True)
class EvidenceMaximum:
    """Where the ascent of the evidence ended.

    Attributes
    ----------
    covariance
        With its fitted numbers, which stay parameters.
    log_evidence, objective
        The log evidence there, and with the log densities of priors added.
    converged, reason
        Whether the best start came to its top; "converged", "steps", "no lower point", "time limit" or "interrupted".
    iterations, evaluations
        Steps of the best start, and values of the evidence of all of them.
    starts
        What was tried, in order; restarts that a clock prevented are missing.
    """

    covariance: Covariance
    log_evidence: float
    objective: float
    converged: bool
    reason: str
    iterations: int
    evaluations: int
    starts: tuple[EvidenceStart, ...]


def maximise_evidence(
    method: EvidenceMethod,
    covariance: Covariance,
    *,
    restarts: int = 0,
    starts: Sequence[Mapping[str, Any]] = (),
    seed: Seed = None,
    max_iter: int = 200,
    tol: float = 1e-3,
    flat: float = 1e-11,
    time_limit: float | None = None,
    progress: bool | None = False,
) -> EvidenceMaximum:
    """Return the covariance whose free numbers make the data most probable.

    Parameters
    ----------
    method
        Says the log evidence and its gradient.
    covariance
        All its numbers known, as `Covariance.started` leaves it; the first start.
    restarts
        Further starts, moved at random from the first.
    starts
        Further starts that are known, by the names of `hypers`, such as the numbers of an earlier fit.
    seed
        Where restarts go.
    max_iter, tol, flat
        Steps a start, the gradient (nats a unit of a log) to stop at, and the relative gain that counts as none.
    time_limit, progress
        As in `Clock`; at a time limit and at Ctrl-C the best so far is kept.

    Examples
    --------
    >>> import markovia as mk
    >>> from markovia.learning.processes.exact_evidence import ExactEvidence
    >>> X, y = np.linspace(0.0, 6.0, 20).reshape(-1, 1), np.sin(np.linspace(0.0, 6.0, 20))
    >>> k = (mk.covariances.RBF() + mk.covariances.White(0.01)).started(X, y)
    >>> found = maximise_evidence(ExactEvidence(X, y), k)
    >>> found.converged, found.covariance.hypers()["rbf.length"].value.round(2).tolist()
    (True, 1.83)
    """
    coordinates = Coordinates(covariance)
    first = coordinates.read({})
    rng = generator(seed)
    points = [first, *(coordinates.read(values) for values in starts)]
    points += [first + MOVED * rng.standard_normal(first.size) for _ in range(restarts)]

    def objective(point: Array) -> tuple[float, Array]:
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                made = coordinates.at(point)
                value, slopes = method.evidence(made)
                return -(value + coordinates.log_prior(made)), -coordinates.slope(made, slopes, point)
        except np.linalg.LinAlgError:  # no covariance matrix here: turn back
            return np.inf, np.zeros(point.size)

    if not coordinates.names:
        value = -objective(first)[0]
        _check_finite(value, {})
        return EvidenceMaximum(covariance, value, value, True, "converged", 0, 1, ())
    tried: list[EvidenceStart] = []
    best, evaluations = None, 0
    with threads_for(len(method.X)), Clock(time_limit, progress, unit="step", name="evidence") as clock:
        for point in points:
            if tried and clock.over():
                break
            found = minimise(
                objective, point, max_iter=max_iter, tol=tol, flat=flat, clock=clock, bar=True, maxcor=20
            )
            evaluations += found.evaluations
            tried.append(EvidenceStart(coordinates.values(point), -found.value, found.converged))
            if best is None or found.value < best.value:
                best = found
    assert best is not None
    _check_finite(best.value, coordinates.values(first))
    made = coordinates.at(best.point)
    log_evidence = -best.value - coordinates.log_prior(made)
    return EvidenceMaximum(
        made,
        log_evidence,
        -best.value,
        best.converged,
        best.reason,
        best.iterations,
        evaluations,
        tuple(tried),
    )


def _check_finite(value: float, start: Mapping[str, Any]) -> None:
    """Refuse an evidence that is no number."""
    if not np.isfinite(value):
        at = (
            f" at the start, {', '.join(f'{n}={np.round(v, 6).tolist()}' for n, v in start.items())}"
            if start
            else ""
        )
        raise InvalidArgument(
            f"the log evidence is no number{at}: the covariance matrix is not positive definite, or overflows; take other "
            "numbers, or add a mk.covariances.White"
        )


def threads_for(rows: int) -> AbstractContextManager[Any]:
    """Keep products of small matrices, of a side of so many rows, to one thread."""
    return one_blas_thread() if rows < ROWS_FOR_THREADS else nullcontext()


def fit_evidence(method: EvidenceMethod, covariance: Covariance, **ascent: Any) -> EvidenceMaximum:
    """Return the most probable covariance by the method's own `fit`, where it has one, or else by `maximise_evidence`."""
    own = getattr(method, "fit", None)
    found: EvidenceMaximum = (
        maximise_evidence(method, covariance, **ascent) if own is None else own(covariance, **ascent)
    )
    return found


class Coordinates:
    """The free numbers of a covariance as one vector without bounds."""

    def __init__(self, covariance: Covariance) -> None:
        self.covariance, self.free = covariance, covariance.free()
        self.names = list(self.free)
        for name, hyper in self.free.items():
            if hyper.value is None:
                raise InvalidArgument(f"{name} has no start; call covariance.started(X, y) first")
            if hyper.support not in LINKS:
                raise InvalidArgument(
                    f"{name} is fitted as a positive, unit or real number, not as {hyper.support!r}"
                )
        self.shapes = [np.shape(hyper.value) for hyper in self.free.values()]
        self.ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)])

    def read(self, values: Mapping[str, Any]) -> Array:
        """Return the vector of numbers by name; those that are left out are at the covariance's own."""
        for name in values:
            if name not in self.free:
                raise InvalidArgument(f"{name!r} is not fitted; fitted are {', '.join(self.names) or 'none'}")
        parts = [np.zeros(0)]
        for (name, hyper), shape in zip(self.free.items(), self.shapes, strict=True):
            value = np.broadcast_to(
                np.asarray(values.get(name, hyper.value), dtype=np.float64), shape
            ).ravel()
            with np.errstate(divide="ignore", invalid="ignore"):
                part = LINKS[hyper.support].to_line(value)
            if not np.isfinite(part).all():
                raise InvalidArgument(
                    f"{name} cannot be fitted from {value.tolist()}: start inside ({hyper.support})"
                )
            parts.append(part)
        return np.concatenate(parts)

    def values(self, point: Array) -> dict[str, Any]:
        """Return the numbers by name."""
        found = {}
        for i, (name, hyper) in enumerate(self.free.items()):
            part = point[self.ends[i] : self.ends[i + 1]].reshape(self.shapes[i])
            found[name] = LINKS[hyper.support].back(part)
        return found

    def at(self, point: Array) -> Covariance:
        """Return the covariance with these numbers."""
        return self.covariance.with_values(self.values(point), keep=True)

    def slope(self, made: Covariance, slopes: Mapping[tuple[int, str], Any], point: Array) -> Array:
        """Return the gradient of the log evidence and the log priors by the vector."""
        parts = [np.zeros(0)]
        for hyper in made.free().values():
            slope = np.asarray(slopes.get((id(hyper.part), hyper.name), 0.0)) + _log_density(hyper)[1]
            slope = np.broadcast_to(slope, np.shape(hyper.value))
            parts.append(np.ravel(slope * LINKS[hyper.support].moves(hyper.value)))
        return np.concatenate(parts)

    def log_prior(self, made: Covariance) -> float:
        """Return the log density of the numbers that have priors."""
        return float(sum(_log_density(hyper)[0] for hyper in made.free().values()))


def _log_density(hyper: Hyper) -> tuple[float, Any]:
    """Return the log density of a number under its prior, and its derivative; common ones without a compiler."""
    prior, v = hyper.prior, hyper.value
    if prior is None:
        return 0.0, 0.0
    kind = type(prior).__name__
    if kind in ("Normal", "LogNormal"):
        loc, scale = np.asarray(prior.loc), np.asarray(prior.scale)
        on_logs = kind == "LogNormal"
        z = ((np.log(v) if on_logs else v) - loc) / scale
        density = -0.5 * z * z - np.log(scale) - 0.5 * log(2.0 * pi) - (np.log(v) if on_logs else 0.0)
        return float(np.sum(density)), -(1.0 + z / scale) / v if on_logs else -z / scale
    if kind == "HalfNormal":
        z = v / np.asarray(prior.scale)
        return float(np.sum(0.5 * log(2.0 / pi) - np.log(np.asarray(prior.scale)) - 0.5 * z * z)), -z * z / v
    if kind == "Gamma" and np.ndim(prior.concentration) == 0:
        a, b = float(prior.concentration), np.asarray(prior.rate)
        return float(np.sum((a - 1.0) * np.log(v) - b * v + a * np.log(b) - lgamma(a))), (a - 1.0) / v - b
    from markovia.runtime.double_precision import x64
    from markovia.runtime.libraries import jax, jnp

    with x64():
        value, slope = jax.value_and_grad(lambda x: prior.log_prob(x).sum())(jnp.asarray(v))
    return float(value), np.asarray(slope)
