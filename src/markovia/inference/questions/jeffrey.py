"""Jeffrey evidence: fixing the posterior of one variable, or of several at once.

Method: of all distributions with the fixed marginals, the one nearest to the model (given the other evidence, in
Kullback-Leibler divergence) multiplies it by one function a fixed variable, so the evidence becomes likelihoods. For
one variable they are `q / p`, Jeffrey's rule. For several, iterative proportional fitting: multiply the likelihoods of
one variable after the other by `q / p`, p being its present posterior, until all agree. The likelihoods are scaled to
have mean one under the model, so this evidence has no probability of its own: the log evidence is that of the others.
References: Jeffrey (1965), "The Logic of Decision", chapter 11; Deming and Stephan (1940); Csiszar (1975).
Cost: one query for one variable. For several, one query of their joint posterior where it is small, then rounds on that
table; otherwise one query a variable and round. The rounds needed grow with the dependence between the variables.
Use it when somebody reports a belief (70% rain) rather than the strength of a signal.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from markovia.errors import InvalidEvidence, TooLarge
from markovia.factors.tables.evidence import Finding
from markovia.inference.engine import TABLES, Engine, get_engine
from markovia.inference.impossible_evidence import impossible
from markovia.inference.problem import Problem
from markovia.runtime.array_types import Array

TOLERANCE = 1e-13
JOINT_ENTRIES = 2**10


def settled(
    problem: Problem, engine: str | Engine = "auto", *, joint_entries: int = JOINT_ENTRIES
) -> Problem:
    """Return the problem with every fixed posterior replaced by the likelihoods that bring it about.

    Parameters
    ----------
    problem
        Variables, pieces and findings; without fixed posteriors it comes back as it is.
    engine
        Who computes the posteriors on the way; an approximate one is replaced by "auto".
    joint_entries
        The largest joint posterior of the fixed variables to work on; above, each step is a query.

    Raises
    ------
    InvalidEvidence
        If no distribution that the model allows has these marginals; the message names a variable.
    ImpossibleEvidence
        If the other evidence has probability zero, or rules out the states that are left.
    """
    fixed = [f for f in problem.findings.values() if f.belief is not None]
    if not fixed or not problem.kinds <= TABLES:  # engines of densities refuse a belief, with the cure
        return problem
    chosen = get_engine(engine)
    chosen = chosen if chosen.exact else get_engine("auto")
    others = problem.with_findings({n: f for n, f in problem.findings.items() if f.belief is None})
    beliefs = [np.asarray(f.belief) for f in fixed]
    state = _state(others, fixed, chosen, joint_entries)
    for finding, q, p in zip(fixed, beliefs, state.margins(), strict=True):
        _check_support(finding, q, p)
    supports = [(q > 0).astype(float) for q in beliefs]
    for i, support in enumerate(supports):
        state.multiply(i, support)
    if len(fixed) > 1 and not state.possible():
        raise impossible(_with(problem, fixed, supports), chosen.log_mass)
    weights = _fit(state, fixed, beliefs, supports)
    share = np.exp(-state.log_change() / len(fixed))
    return _with(problem, fixed, [w * share for w in weights])


class _State(Protocol):
    """The distribution of the fixed variables while it is being fitted."""

    window: int

    def margins(self) -> list[Array]:
        """Return the normalised marginals of all fixed variables."""

    def margin(self, i: int) -> Array:
        """Return one of them."""

    def multiply(self, i: int, ratio: Array) -> None:
        """Multiply by a function of the i-th variable."""

    def possible(self) -> bool:
        """Say whether anything is left."""

    def log_change(self) -> float:
        """Return the log of the present mass relative to the mass at the start."""


def _state(others: Problem, fixed: Sequence[Finding], engine: Engine, joint_entries: int) -> _State:
    names = [f.variable.name for f in fixed]
    entries = 1
    for f in fixed:
        entries *= len(f.variable)
    if entries <= joint_entries:
        try:
            answer = engine.joint(others, names)
        except TooLarge:
            pass
        else:
            if np.isneginf(answer.log_mass):
                raise impossible(others, engine.log_mass)
            return _OnTable(answer.tables[0].transpose(names).values)
    return _ByQueries(others, fixed, engine)


class _OnTable:
    """The joint table itself."""

    window = 2000

    def __init__(self, table: Array) -> None:
        self._table = np.array(table)

    def margins(self) -> list[Array]:
        return [self.margin(i) for i in range(self._table.ndim)]

    def margin(self, i: int) -> Array:
        sums = self._table.sum(axis=tuple(k for k in range(self._table.ndim) if k != i))
        total = sums.sum()
        return np.asarray(sums / total) if total > 0 else sums

    def multiply(self, i: int, ratio: Array) -> None:
        view = [1] * self._table.ndim
        view[i] = len(ratio)
        self._table *= ratio.reshape(view)

    def possible(self) -> bool:
        return bool(self._table.sum() > 0)

    def log_change(self) -> float:
        return float(np.log(self._table.sum()))


class _ByQueries:
    """Marginals by asking the engine under the likelihoods so far."""

    window = 200

    def __init__(self, others: Problem, fixed: Sequence[Finding], engine: Engine) -> None:
        self._others, self._fixed, self._engine = others, fixed, engine
        self._weights = [np.ones(len(f.variable)) for f in fixed]
        self._start = engine.log_mass(others)
        if np.isneginf(self._start):
            raise impossible(others, engine.log_mass)

    def _problem(self) -> Problem:
        return _with(self._others, self._fixed, self._weights)

    def margins(self) -> list[Array]:
        answer = self._engine.marginals(self._problem(), [f.variable.name for f in self._fixed])
        return [t.values for t in answer.tables]

    def margin(self, i: int) -> Array:
        answer = self._engine.marginals(self._problem(), [self._fixed[i].variable.name])
        return answer.tables[0].values if answer.tables else np.zeros(len(self._weights[i]))

    def multiply(self, i: int, ratio: Array) -> None:
        self._weights[i] = self._weights[i] * ratio

    def possible(self) -> bool:
        return not np.isneginf(self._engine.log_mass(self._problem()))

    def log_change(self) -> float:
        return self._engine.log_mass(self._problem()) - self._start


def _fit(
    state: _State, fixed: Sequence[Finding], beliefs: Sequence[Array], supports: Sequence[Array]
) -> list[Array]:
    """Return the likelihoods; stop with an error once a window of rounds no longer halves the distance."""
    weights = [np.array(s) for s in supports]
    best_before, rounds = np.inf, 0
    while True:
        worst, where = 0.0, fixed[0]
        for i, (finding, q) in enumerate(zip(fixed, beliefs, strict=True)):
            p = state.margin(i)
            off = float(np.abs(p - q).max())
            if off > worst:
                worst, where = off, finding
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                ratio = np.divide(q, p, out=np.zeros_like(q), where=q > 0)
                weights[i] = weights[i] * ratio
            if not np.all(np.isfinite(weights[i])) or np.any((weights[i] == 0) & (q > 0)):
                raise _unreachable(finding, off, rounds)
            state.multiply(i, ratio)
        rounds += 1
        if worst < TOLERANCE or len(fixed) == 1:
            return weights
        if rounds % state.window == 0:
            if worst > 0.5 * best_before:
                raise _unreachable(where, worst, rounds)
            best_before = worst


def _check_support(finding: Finding, q: Array, p: Array) -> None:
    for state, wanted, now in zip(finding.variable.states, q, p, strict=True):
        if wanted > 0 and now == 0:
            raise InvalidEvidence(
                f"{finding.variable.name!r} cannot have probability {wanted:.6g} for {state!r}: the model and the "
                "other evidence give that state probability zero"
            )


def _unreachable(finding: Finding, off: float, rounds: int) -> InvalidEvidence:
    return InvalidEvidence(
        f"the beliefs fixed by Jeffrey(...) do not fit together in this model: after {rounds:,} rounds the posterior "
        f"of {finding.variable.name!r} is still off by {off:.3g}; loosen it or leave one of them out"
    )


def _with(problem: Problem, fixed: Sequence[Finding], weights: Sequence[Array]) -> Problem:
    found = {
        f.variable.name: replace(f, likelihood=w, belief=None) for f, w in zip(fixed, weights, strict=True)
    }
    return problem.with_findings({**problem.findings, **found})
