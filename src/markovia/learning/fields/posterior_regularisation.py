"""Posterior regularisation: the distribution nearest to a model's that satisfies constraints on expectations.

Method: among all q with `E_q[f_k] <= b_k` (or `=`) the one with the least KL(q || p) is

    q(x) = p(x) exp(-sum_k m_k f_k(x)) / Z(m),      m_k >= 0 for inequalities,

where the multipliers m maximise the concave dual `-log Z(m) - m · b` (Ganchev, Graça, Gillenwater and Taskar 2010; the
information projection of Csiszár 1975). With slack eps the constraints may be missed by a vector of length eps, which adds
`-eps ||m||`. The gradient of the dual is `E_q[f] - b`. Features that have weights w instead of bounds, such as rules, only
pull: the q with the least `KL(q || p) - w · E_q[f]` is `p exp(w · f) / Z`, and that least value is `-log Z`. q is the model
with one more factor a scope of the features, so every question can be asked of it.
Cost of a step: one exact inference on the model with the features' scopes added.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.factors.potentials.log_linear import Feature, LogLinear
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.learning.fields.exact_expectations import exact_expectations
from markovia.learning.fields.field_layout import layout_of_features
from markovia.optimise.proximal_gradient import minimise_composite
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_number, numbers

FAR = 1e3
"""A multiplier times its feature's range beyond which constraints count as contradictory."""


@dataclass(frozen=True)
class Projection:
    """The nearest distribution that satisfies the constraints.

    Attributes
    ----------
    multipliers
        One a constraint; zero where an inequality holds by itself.
    kl, objective
        KL(q || p) in nats; and what was minimised: with weights also less their part, else the same.
    before, expectations
        The features' expectations under p and under q.
    bounds, equal
        The constraints; NaN where features have weights.
    factors
        `exp(-m · f)`: what p is multiplied by.
    converged, iterations, error
        How the search ended; `error` is the largest violation of the optimality conditions.
    """

    multipliers: Array
    kl: float
    before: Array
    expectations: Array
    bounds: Array
    equal: NDArray[np.bool_]
    factors: list[Factor] = field(repr=False)
    converged: bool
    iterations: int
    error: float
    objective: float

    @property
    def slackness(self) -> Array:
        """How far each expectation stays below its bound; negative where slack was used."""
        return self.bounds - self.expectations


def project(
    variables: Sequence[Variable],
    factors: Sequence[Factor],
    features: Sequence[Feature],
    bounds: Any = None,
    *,
    weights: Any = None,
    equal: Any = False,
    slack: float = 0.0,
    max_iterations: int = 500,
    tolerance: float = 1e-9,
) -> Projection:
    """Project a distribution onto constraints on expectations (an error where none satisfies them), or tilt it by weights.

    Parameters
    ----------
    variables, factors
        The distribution p, as factors over variables.
    features, bounds
        `E_q[feature] <= bound`, one number a feature.
    weights
        Instead of bounds: how strongly each feature pulls, one number for all or one each; the other settings are for
        bounds.
    equal
        Whether the constraint is `=`: for all, or one truth value a feature.
    slack
        The Euclidean length by which all constraints together may be missed.
    max_iterations, tolerance
        Steps at most; the largest violation that counts as none.
    """
    listed = list(features)
    if (bounds is None) == (weights is None):
        raise InvalidArgument(
            "give bounds= on the features' expectations or weights= of the features, one of both"
        )
    name = "weights" if bounds is None else "bounds"
    rule = f"{name}= has one finite number a feature, {len(listed)} of them"
    b = numbers(weights if bounds is None else bounds, rule)
    b = np.array(np.broadcast_to(b, (len(listed),))) if b.ndim == 0 else b
    if b.shape != (len(listed),) or not np.isfinite(b).all():
        raise InvalidArgument(rule)
    if bounds is None and (np.any(equal) or slack):
        raise InvalidArgument("equal= and slack= are for bounds; weights only pull")
    same = np.asarray(equal)
    if same.dtype != bool or same.shape not in ((), b.shape):
        raise InvalidArgument(f"equal= is True or False, or one truth value a feature, {len(listed)} of them")
    exactly = np.array(np.broadcast_to(same, b.shape))
    check_number("slack", slack)
    layout = layout_of_features(listed, variables, factors)
    expectations = exact_expectations(layout)
    log_p, marginals = expectations(layout.log_tables(np.zeros(len(listed))))

    def dual(m: Array) -> tuple[float, Array]:
        log_z, found = expectations(layout.log_tables(-m))
        return log_z - log_p + float(m @ b), b - layout.features(found)

    def rough(m: Array) -> float:
        return slack * float(np.linalg.norm(m))

    def shrink(m: Array, step: float) -> Array:
        inside = np.where(exactly, m, np.maximum(m, 0.0))
        length = float(np.linalg.norm(inside))
        return inside * max(0.0, 1.0 - step * slack / length) if slack and length > 0 else inside

    m, converged, iterations, error = -b, True, 0, 0.0
    if bounds is not None:
        # bounds on the values of each feature: sums over its instances
        lowest = np.array([sum(float(t.min()) for _, t in f.instances) for f in listed])
        highest = np.array([sum(float(t.max()) for _, t in f.instances) for f in listed])
        out = (lowest > b + slack) | (exactly & (highest < b - slack))
        if out.any():
            k = int(out.argmax())
            raise InvalidArgument(
                f"no distribution gives {listed[k].name!r} the expectation {b[k]:g}: its values lie in "
                f"[{lowest[k]:g}, {highest[k]:g}]"
            )
        found = minimise_composite(dual, rough, shrink, np.zeros(len(b)), max_iterations, tolerance)
        m, iterations, error = found.point, found.iterations, found.error
        converged = error <= max(tolerance, 1e-7)
        if not converged and float(np.abs(m * (highest - lowest)).max(initial=0.0)) > FAR:
            raise InvalidArgument(
                "the constraints contradict each other or what the model rules out: the multipliers grow without end"
            )
    log_z, after = expectations(layout.log_tables(-m))
    reached = layout.features(after)
    kl = max(float(-m @ reached) - (log_z - log_p), 0.0)
    return Projection(
        multipliers=m,
        kl=kl,
        before=layout.features(marginals),
        expectations=reached,
        bounds=np.full(len(b), np.nan) if bounds is None else b,
        equal=exactly,
        factors=LogLinear(listed, -m).factors() if listed else [],
        converged=converged,
        iterations=iterations,
        error=error,
        objective=log_p - log_z if bounds is None else kl,
    )
