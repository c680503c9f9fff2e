"""How well findings go together: Jensen's conflict measure.

Method: `conf(e) = sum of log P(e_i) - log P(e)`. Findings that support each other are together more probable than if
they were independent, and the measure is negative; findings that pull in different directions make it positive, a sign
of a wrong reading, a rare case, or a model that does not fit.
Reference: Jensen, Chamberlain, Nordahl and Jensen (1990), "Analysis in HUGIN of data conflict".
Cost: two queries; the contribution of every finding takes one more each and is computed when it is first looked at.
Use it before trusting a posterior that many findings went into.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType

import numpy as np

from markovia.errors import ImpossibleEvidence, Unanswered
from markovia.inference.engine import TABLES, Engine
from markovia.inference.flat_graphs.possibility import judged_log_mass
from markovia.inference.problem import Problem
from markovia.runtime.shown import aligned, html_table


class Conflict:
    """The conflict between findings, in nats; positive where they disagree. `float(conflict)` is the number.

    Attributes
    ----------
    value
        `sum of log P(e_i) - log P(e)`; infinite where each finding is possible but not all together.
    log_evidence
        log P(e).
    log_findings
        log P(e_i) by variable.
    """

    def __init__(
        self,
        problem: Problem,
        engine: Engine,
        log_findings: Mapping[str, float],
        log_evidence: float,
        log_z: float,
    ) -> None:
        self._problem, self._engine, self._log_z = problem, engine, log_z
        self.log_findings = MappingProxyType(dict(log_findings))
        self.log_evidence = log_evidence
        self.value = _measure(log_findings.values(), log_evidence)

    @property
    def present(self) -> bool:
        """Whether the findings disagree: the measure is above zero by more than rounding."""
        return self.value > 1e-9

    @cached_property
    def contributions(self) -> Mapping[str, float]:
        """How much each finding adds, largest first: the conflict less the conflict without it.

        It is `log P(e_i) - log P(e_i | the others)`. Where the findings are impossible together it is infinite if
        the others alone are possible, and zero if they are not.
        """
        found = {}
        findings = self._problem.findings
        for name in self.log_findings:
            rest = {n: f for n, f in findings.items() if n != name}
            log_rest = self._engine.log_mass(self._problem.with_findings(rest)) - self._log_z
            without = _measure((v for n, v in self.log_findings.items() if n != name), log_rest)
            found[name] = 0.0 if without == np.inf else self.value - without
        return MappingProxyType(dict(sorted(found.items(), key=lambda item: -item[1])))

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self._heading()}\n{aligned(*self._table())}" if self.log_findings else self._heading()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self._table(), title=self._heading())

    def _heading(self) -> str:
        verdict = "the findings disagree" if self.present else "no conflict between the findings"
        return f"conflict {self.value:.6g}: {verdict}"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [f"{n}={self._problem.findings[n].said}", f"{np.exp(self.log_findings[n]):.6g}", f"{v:.6g}"]
            for n, v in self.contributions.items()
        ]
        return ["finding", "p", "adds"], rows


def data_conflict(problem: Problem, engine: Engine, *, normalised: bool) -> Conflict:
    """Measure the conflict between the findings of a problem.

    Parameters
    ----------
    problem
        The model and the evidence: hard, soft or negative.
    engine
        Who answers.
    normalised
        Whether the pieces multiply to a distribution, so that the mass is the probability.

    Raises
    ------
    ImpossibleEvidence
        If one finding alone has probability zero, or the model gives no weight to anything.
    Unanswered
        If an approximate engine gives a finding no probability although it is not known to be impossible.
    """
    names = list(problem.findings)
    if not problem.kinds <= TABLES:  # a number has a density, which no table of its states tells
        alone = {
            n: float(engine.log_mass(problem.with_findings({n: f}))) for n, f in problem.findings.items()
        }
        return Conflict(problem, engine, alone, float(engine.log_mass(problem)), 0.0)
    prior = engine.marginals(problem.with_findings({}), names) if names else None
    if prior is not None and np.isneginf(prior.log_mass):
        raise ImpossibleEvidence({})
    log_z = 0.0 if normalised or prior is None else prior.log_mass
    log_findings = {}
    exact = engine.exact and prior is not None and not prior.record.tried
    for name, table in zip(names, prior.tables if prior is not None else (), strict=True):
        finding = problem.findings[name]
        p = float(np.dot(table.values, finding.weights()))
        if p == 0:
            only = problem.with_findings({name: finding})
            # a start, or draws, may miss a state that is possible
            if exact or judged_log_mass(only) == -np.inf:
                raise ImpossibleEvidence({name: finding.said})
            raise Unanswered(
                f"engine {engine.name!r} gives {name}={finding.said} the probability zero, though it is not known to be "
                "impossible; use engine='auto'"
            )
        log_findings[name] = float(np.log(p))
    log_evidence = engine.log_mass(problem) - log_z if names else 0.0
    return Conflict(problem, engine, log_findings, log_evidence, log_z)


def _measure(log_findings: Iterable[float], log_evidence: float) -> float:
    return float(sum(log_findings)) - log_evidence
