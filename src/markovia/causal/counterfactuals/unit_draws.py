"""Abduction, action and prediction by draws of the noises from their joint posterior.

Variables are visited from causes to effects. An observed one is explained: its noise is drawn from what is possible given
its parents, and the draw is weighted by the likelihood of the value (likelihood weighting, in the space of noises). Where
facts determine every noise that matters the draws are all alike and the answer is exact.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.causal.counterfactuals.equations import Equation, FunctionEquation
from markovia.errors import ImpossibleEvidence, InvalidArgument
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.evidence import read_evidence
from markovia.factors.tables.factor import Factor
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
from markovia.inference.densities.program.state_draws import StateDraws
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior, MixtureOfGaussians
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info, warn_unconverged
from markovia.inference.weighted_draws.resampling import resample
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count
from markovia.runtime.clock import now

FEW = 100
"""Effective draws below which an answer warns."""


@dataclass
class Unit:
    """Draws of one unit: values and noises by variable, log weights, and whose value and whose noise are certain."""

    values: dict[str, Any]
    noises: dict[str, Any]
    log_weights: Array
    certain: set[str]
    explained: set[str]

    def noise_of(self, name: str) -> Any:
        """Return the noise of a variable: a number where it is certain, otherwise draws that weigh alike."""
        noise = self.noises[name]
        if isinstance(noise, Mapping):
            found = {k: self._evenly(name, v) for k, v in noise.items()}
            return next(iter(found.values())) if len(found) == 1 else found
        return self._evenly(name, np.asarray(noise))

    def _evenly(self, name: str, values: Array) -> Any:
        if name in self.explained:
            return float(values[0])
        return values[resample(self.log_weights, len(values), seed=0)]


def run(
    equations: Mapping[str, Equation], facts: Mapping[str, Any], n: int, rng: np.random.Generator
) -> Unit:
    """Return n draws of a unit with the facts; see `_facts` for their form."""
    values: dict[str, Any] = {}
    noises: dict[str, Any] = {}
    weights = np.zeros(n)
    certain: set[str] = set()
    explained: set[str] = set()
    for name, equation in equations.items():
        sure = all(p.name in certain for p in equation.parents)
        seen, likelihood = facts.get(name, (None, None))
        if seen is not None:
            noise, gain, one = equation.explain(seen, values, n, rng)
            weights = weights + gain
            dtype = np.float64 if isinstance(equation.variable, Quantity) else np.int64
            values[name] = np.full(n, seen, dtype=dtype)
            noises[name] = noise
            certain.add(name)
            if one and sure:
                explained.add(name)
            continue
        noises[name] = equation.draw_noise(n, rng)
        values[name] = equation.value(values, noises[name], n)
        if likelihood is not None:
            with np.errstate(divide="ignore"):
                weights = weights + np.log(likelihood)[values[name]]
        elif sure and not equation.random:
            certain.add(name)
    return Unit(values, noises, weights, certain, explained)


def explained_draws(
    equations: Mapping[str, Equation], given: Mapping[str, Any], n: int, rng: np.random.Generator
) -> Unit:
    """Return draws of the noises of a unit with the given facts."""
    check_count("draws", n, 1)
    unit = run(equations, _facts(equations, given), n, rng)
    if not np.isfinite(unit.log_weights).any():
        raise ImpossibleEvidence(dict(given))
    return unit


def answer_by_draws(
    equations: Mapping[str, Equation],
    changed: Mapping[str, Equation],
    differ: Collection[str],
    names: Sequence[str],
    given: Mapping[str, Any],
    n: int,
    rng: np.random.Generator,
) -> Any:
    """Return the posterior of the targets in the world of the changed equations, for a unit with the given facts."""
    start = now()
    needed = _ancestors(equations, _ancestors(changed, [*names, *given]) | {*names, *given})
    factual = {k: e for k, e in equations.items() if k in needed}
    kept = {k: e for k, e in changed.items() if k in needed}
    unit = run(factual, _facts(factual, given), 2, rng)  # facts that determine everything need no more
    values, certain = _other_world(unit, factual, kept, differ, 2, rng)
    if not all(name in certain for name in names) or not np.isfinite(unit.log_weights).any():
        unit = explained_draws(factual, given, n, rng)
        values, certain = _other_world(unit, factual, kept, differ, n, rng)
    variables = [equations[name].variable for name in names]
    sure = all(name in certain for name in names)
    weights = np.exp(unit.log_weights - unit.log_weights.max())
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    note = (
        "counterfactual; the facts determine all noises that matter, found by inversion"
        if sure
        else f"counterfactual; {n:,} joint draws of the noises given the facts, {effective:,.0f} effective"
    )
    info = Info(
        "noise-inversion" if sure else "noise-draws",
        exact=sure,
        converged=sure or effective >= FEW,
        iterations=0 if sure else n,
        error=0.0 if sure else float(0.5 / np.sqrt(effective)),
        seconds=now() - start,
        advice="take more draws=, or facts that say more",
        given=dict(given),
        note=note,
    )
    if not info.converged:
        warn_unconverged(info)
    weights = weights / weights.sum()
    for name in names:
        undefined = float(weights[np.isnan(values[name])].sum())
        if undefined:
            raise InvalidArgument(
                f"the equation of {name!r} is undefined (not a number) for a share {undefined:.3g} of such units; give it "
                "noises and parents for which it has a value"
            )
    if all(not isinstance(v, Quantity) for v in variables):
        table = np.zeros([len(v) for v in variables])
        np.add.at(table, tuple(values[name] for name in names), weights)
        return Posterior(Factor.of(tuple(variables), table), info)
    if sure:
        return _certain(names, variables, values, info)
    draws: dict[str, Any] = {}
    for name, variable in zip(names, variables, strict=True):
        if isinstance(variable, Quantity):
            draws[name] = values[name][None]
        else:
            draws[name] = StateDraws(variable, np.eye(len(variable))[values[name]][None], values[name][None])
    even = not np.ptp(unit.log_weights)
    return DrawnPosterior(names, draws, info, log_weights=None if even else unit.log_weights[None])


def _other_world(
    unit: Unit,
    equations: Mapping[str, Equation],
    changed: Mapping[str, Equation],
    differ: Collection[str],
    n: int,
    rng: np.random.Generator,
) -> tuple[dict[str, Any], set[str]]:
    """Return the values in the other world, where noises stay, and which of them are certain."""
    values, certain, reached = dict(unit.values), set(unit.certain), set()
    for name, equation in changed.items():
        if name not in differ and not any(p.name in reached for p in equation.parents):
            continue
        reached.add(name)
        noise, known = unit.noises[name], name in unit.explained or not equation.random
        if name in differ:
            old, laws = _laws(equations[name]), _laws(equation)
            if all(old.get(a) is law for a, law in laws.items()):
                noise = {a: noise[a] for a in laws}
            else:  # a new distribution has a noise of its own
                noise, known = equation.draw_noise(n, rng), not equation.random
        values[name] = equation.value(values, noise, n)
        if known and all(p.name in certain for p in equation.parents):
            certain.add(name)
        else:
            certain.discard(name)
    return values, certain


def _laws(equation: Equation) -> Mapping[str, Any]:
    """Return the noises by argument; of a table, itself."""
    return equation.noises if isinstance(equation, FunctionEquation) else {"u": equation}


def _certain(
    names: Sequence[str], variables: Sequence[Any], values: Mapping[str, Any], info: Info
) -> GaussianPosterior:
    numbers = [n for n, v in zip(names, variables, strict=True) if isinstance(v, Quantity)]
    states = tuple(v for v in variables if not isinstance(v, Quantity))
    codes = np.array([[int(values[v.name][0]) for v in states]], dtype=np.int64).reshape(1, len(states))
    means = np.array([[float(values[n][0]) for n in numbers]])
    k = len(numbers)
    return GaussianPosterior(
        names, MixtureOfGaussians(tuple(numbers), states, np.ones(1), codes, means, np.zeros((1, k, k))), info
    )


def _facts(equations: Mapping[str, Equation], given: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return (code or number, None) or (None, likelihood of the states) by name."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, said in given.items():
        variable = equations[name].variable
        if isinstance(variable, Quantity):
            try:
                found[name] = (float(said), None)
            except (TypeError, ValueError):
                raise InvalidArgument(f"the fact about {name!r} is a number, not {said!r}") from None
        else:
            finding = read_evidence({name: variable}, {name: said})[name]
            found[name] = (finding.code, None if finding.code is not None else finding.weights())
    return found


def _ancestors(equations: Mapping[str, Equation], names: Collection[str]) -> set[str]:
    found = set(names)
    for name in reversed(list(equations)):
        if name in found:
            found |= {p.name for p in equations[name].parents}
    return found
