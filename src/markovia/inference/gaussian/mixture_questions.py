"""What a Gaussian or mixture posterior says beyond its moments: expectations of functions, information, entropy."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from markovia.errors import Unanswered, UnsupportedModel
from markovia.inference.engine import CLOSED, Engine, without_cure
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior, MixtureOfGaussians
from markovia.inference.posterior import Posterior
from markovia.inference.problem import Problem
from markovia.inference.questions.information_gain import Gains
from markovia.inference.result import Info

NODES, EVALUATIONS = 40, 400_000
"""Points of Gauss-Hermite quadrature in one number, and most evaluations of a function."""
FINE = 4001
"""Points of the trapezoidal rule for a density in one number."""


def expectation(function: Callable[..., float], posterior: GaussianPosterior) -> float:
    """Return the mean of a function of numbers and states: Gauss-Hermite quadrature in every component.

    It is exact for polynomials of degree below twice the number of points, and close for smooth functions.
    """
    found = posterior.mixture
    k = len(found.numbers)
    points = max(3, min(NODES, int((EVALUATIONS / len(found.weights)) ** (1 / k))))
    if points**k * len(found.weights) > 4 * EVALUATIONS:
        raise UnsupportedModel(
            f"an expectation over {k} numbers needs too many evaluations; average over draws instead: "
            "f(**posterior.sample(100_000)).mean()"
        )
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    weights = weights / weights.sum()
    order = [(*found.numbers, *(v.name for v in found.states)).index(n) for n in posterior.names]
    total = 0.0
    for w, codes, mean, covariance in zip(
        found.weights, found.codes, found.means, found.covariances, strict=True
    ):
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        states = [v.states[c] for v, c in zip(found.states, codes.tolist(), strict=True)]
        for at in product(range(points), repeat=k):
            x = [*(mean + root @ nodes[list(at)]).tolist(), *states]
            total += float(w) * float(np.prod(weights[list(at)])) * float(function(*(x[i] for i in order)))
    return total


def mutual_information(
    posterior: GaussianPosterior | Posterior, x: Sequence[str], y: Sequence[str], z: Sequence[str]
) -> float:
    """Return I(x; y | z) in nats from a joint posterior."""
    if isinstance(posterior, Posterior):
        return posterior.factor().mutual_information(list(x), list(y), list(z))
    found = posterior.mixture
    if not found.states and len(found.weights) == 1:
        place = {n: k for k, n in enumerate(found.numbers)}

        def log_det(names: Sequence[str]) -> float:
            at = [place[n] for n in names]
            return float(np.linalg.slogdet(found.covariances[0][np.ix_(at, at)])[1])

        whole = log_det([*x, *z]) + log_det([*y, *z]) - log_det([*x, *y, *z]) - (log_det(z) if z else 0.0)
        return max(0.0, 0.5 * whole)
    numbers = set(found.numbers)
    sides = [set(x) <= numbers, set(y) <= numbers]
    if not z and len(found.numbers) == 1 and sides[0] != sides[1]:
        return _between_states_and_number(found)
    raise UnsupportedModel(
        "the information between numbers whose joint posterior is a mixture has no closed form; ask about one number and "
        "states, or observe the states"
    )


def mixture_gains(
    problem: Problem, target: Sequence[str], candidates: Sequence[str], engine: Engine
) -> Gains:
    """Compute the mutual information between the target (together) and each candidate among tables and linear Gaussians.

    Parameters
    ----------
    problem, target, candidates
        As in `information_gains`: the sums over states there are integrals of joint posteriors here.
    engine
        Who gives these; draws do not know their entropy.
    """
    if not problem.kinds <= CLOSED:
        raise UnsupportedModel(
            "information is known in closed form for tables and linear Gaussians; of densities, compare "
            "query(...).sd() with and without the finding"
        )
    if engine.name != "gaussian":
        raise without_cure(Unanswered, f"engine {engine.name!r} does not give information")

    def posterior(names: Sequence[str]) -> GaussianPosterior | Posterior:
        answer: Any = engine.joint(problem, names)
        found: GaussianPosterior | Posterior = answer.posterior(names, Info(engine.name, exact=True))
        return found

    answer: Any = engine.joint(problem, target)
    alone = answer.posterior(target, Info(engine.name, exact=True))
    gains = {}
    for name in candidates:
        seen = name in problem.findings and problem.findings[name].hard
        gains[name] = 0.0 if seen else mutual_information(posterior([*target, name]), target, [name], [])
    return Gains(gains, entropy(alone), answer.log_mass, answer.record)


def _between_states_and_number(found: MixtureOfGaussians) -> float:
    """Return the information between the states and the only number, by the trapezoidal rule."""
    means, deviations = found.means[:, 0], found.deviations[:, 0]
    grid = np.linspace((means - 10 * deviations).min(), (means + 10 * deviations).max(), FINE)
    near = means[:64, None] + deviations[:64, None] * np.linspace(-10, 10, 401)
    fine = np.unique(np.concatenate([grid, near.ravel()]))
    groups, at = np.unique(found.codes, axis=0, return_inverse=True)
    each = (
        found.weights
        * np.exp(-0.5 * ((fine[:, None] - means) / deviations) ** 2)
        / (deviations * np.sqrt(2 * np.pi))
    )
    joint = np.zeros((len(fine), len(groups)))
    np.add.at(joint.T, at.reshape(-1), each.T)
    marginal, weight = joint.sum(axis=1), np.bincount(at.reshape(-1), found.weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(joint > 0, joint * np.log(joint / (marginal[:, None] * weight)), 0.0)
    return max(0.0, float(np.trapezoid(np.nan_to_num(inside).sum(axis=1), fine)))


def entropy(posterior: GaussianPosterior | Posterior) -> float:
    """Return the entropy of a posterior; NaN where a mixture has no closed form."""
    if isinstance(posterior, Posterior):
        return posterior.entropy()
    single = len(posterior.weights) == 1 and not posterior.mixture.states
    return posterior.entropy() if single else float("nan")
