"""Mixtures of a known number of components with a posterior over everything: variational Bayes and Gibbs sampling.

Labels mean nothing from one draw to the next, so draws are matched to the most probable one before parameters are averaged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.collapsed.collapsed_gibbs import FiniteCollapsedGibbs
from markovia.inference.collapsed.partition_posterior import PartitionPosterior
from markovia.inference.collapsed.sampler_runs import run_sampler
from markovia.learning.components.conjugate import ConjugateComponents, Law
from markovia.learning.components.conjugate_priors import conjugate_component
from markovia.learning.components.families import clusters
from markovia.learning.latent.uncollapsed_gibbs import FiniteGibbs, one_hot
from markovia.learning.latent.variational_mixture import DirichletWeights, variational_mixture
from markovia.optimise.ascent import Climb
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Choice, check

METHODS = ("vb", "gibbs", "collapsed-gibbs")
COMPONENTS = ("gaussian", "bernoulli", "multinomial", "poisson")
AVERAGED = 100
"""Draws that parameters are averaged over, evenly spread."""


@dataclass(frozen=True)
class PosteriorFit:
    """Posterior means of parameters and weights, draws of partitions, and how learning ended (its state left out)."""

    params: Law
    weights: Array
    posterior: PartitionPosterior
    ended: Climb[None]


def check_posterior(component: Any, covariance_type: str, sample: Any) -> None:
    """Refuse what has no conjugate prior, or what these methods do not see."""
    check("component", component, Choice(COMPONENTS, other="with method='em' much else"))
    if component == "gaussian":
        check("covariance_type", covariance_type, Choice(("full", "diag")))
    if sample.gaps:
        raise InvalidArgument(
            "a posterior over mixtures needs rows without missing cells; method='em' sums them out"
        )
    if sample.shares is not None or sample.labels is not None:
        raise InvalidArgument(
            "a posterior over mixtures takes no weights and no labels of rows; method='em' does"
        )


def learn_posterior(
    component: str,
    rows: Array,
    k: int,
    method: str,
    rng: np.random.Generator,
    *,
    diagonal: bool,
    prior: Mapping[str, Any] | None,
    concentration: float,
    max_iter: int,
    tol: float,
    time_limit: float | None,
    progress: bool | None,
) -> PosteriorFit:
    """Learn a mixture of k conjugate components whose weights have a symmetric Dirichlet prior."""
    family = conjugate_component(component, rows, prior, diagonal=diagonal, groups=min(k, len(rows)))
    begin = clusters(rows, k, rng)
    if method == "vb":
        found = variational_mixture(
            *family,
            rows,
            DirichletWeights(concentration),
            one_hot(begin, k),
            max_iter=max_iter,
            tol=tol,
            time_limit=time_limit,
            progress=progress,
        )
        levels = np.cumsum(found.state.responsibilities, axis=1)[:, :-1]
        drawn = np.array([(rng.random(len(rows))[:, None] > levels).sum(axis=1) for _ in range(AVERAGED)])
        posterior = _partitions(*family, rows, drawn, k, rng)
        params, weights = family[0].expected(found.state.law).arrays, found.state.weights.means()
        return PosteriorFit(params, weights, posterior, Climb(None, found.history, found.reason))
    sampler: Any
    if method == "gibbs":
        sampler = FiniteGibbs(*family, rows, begin, k, concentration)
    else:
        sampler = FiniteCollapsedGibbs(family[0].collapsed(rows, family[1]), begin, k, concentration)
    run = run_sampler(
        sampler,
        max_iter,
        rng,
        burn_in=max_iter // 3,
        keep=lambda: {**sampler.state(), "log_prob": np.array(sampler.log_prob())},
        time_limit=time_limit,
        progress=progress,
        name="sampling components",
    )
    draws = run.draws or [{**sampler.state(), "log_prob": np.array(sampler.log_prob())}]
    labels = np.array([d["labels"] for d in draws])
    posterior = _partitions(*family, rows, labels, k, rng)
    best = labels[int(np.argmax([float(d["log_prob"]) for d in draws]))]
    params, weights = _averaged(*family, rows, posterior, best, k, concentration)
    ended: Climb[None] = Climb(None, run.history, run.reason or "converged")  # type: ignore[arg-type]
    return PosteriorFit(params, weights, posterior, ended)


def _partitions(
    component: ConjugateComponents, prior: Law, rows: Array, labels: Ints, k: int, rng: np.random.Generator
) -> PartitionPosterior:
    """Return draws of labels with parameters drawn for each."""
    drawn = [component.redrawn(rows, one_hot(z, k), prior, rng).arrays for z in labels]
    return PartitionPosterior(labels, parameters={name: [d[name] for d in drawn] for name in drawn[0]})


def _averaged(
    component: ConjugateComponents,
    prior: Law,
    rows: Array,
    posterior: PartitionPosterior,
    best: Ints,
    k: int,
    concentration: float,
) -> tuple[Law, Array]:
    """Return posterior means of parameters and weights, with the components of each draw matched to one of them."""
    some = posterior.thinned(AVERAGED)
    params: Law = {}
    sizes = np.zeros(k)
    matched = some.relabelled(np.unique(best, return_inverse=True)[1])
    for z in matched:
        belongs = one_hot(z, k)
        sizes += belongs.sum(axis=0) / len(matched)
        for name, value in component.expected(component.posterior(rows, belongs, prior)).arrays.items():
            params[name] = params.get(name, 0.0) + value / len(matched)
    return params, (sizes + concentration) / (sizes.sum() + k * concentration)
