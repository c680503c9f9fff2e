"""What each possible finding would tell about a target: which test to run next.

Method: the mutual information `I(T; X) = sum over t of P(t) KL(P(x | t) || P(x))`, given the evidence, for all
candidates X at once: one query of all marginals for each state of the target. Information is symmetric, so where the
candidates together have fewer states than the target, each of theirs is assumed in turn instead.
References: Lindley (1956), "On a measure of the information provided by an experiment"; Pearl (1988), chapter 6.
Cost: as many queries as the target has states (or the candidates, if they have fewer), plus one.
Use it to choose among tests; it looks one test ahead, and two tests together can tell more than each alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.factors.tables.evidence import Finding
from markovia.inference.engine import Engine
from markovia.inference.problem import Problem
from markovia.inference.result import Info, Record
from markovia.runtime.array_types import Array
from markovia.runtime.shown import aligned, html_table

if TYPE_CHECKING:
    import pandas as pd


class Information(Mapping[str, float]):
    """Candidate findings and their mutual information with the target, best first; it prints as a table.

    Attributes
    ----------
    target
        The names of the target.
    entropy
        The uncertainty of the target now, in the same unit; what a perfect test would tell.
    costs
        The cost of each candidate, or None; with costs the order is by information per cost.
    unit
        "nats", "bits", or the base.
    info
        How it was computed.
    """

    def __init__(
        self,
        values: Mapping[str, float],
        target: Sequence[str],
        entropy: float,
        unit: str,
        info: Info,
        costs: Mapping[str, float] | None = None,
    ) -> None:
        self.target = tuple(target)
        self.entropy = entropy
        self.unit = unit
        self.info = info
        self.costs = None if costs is None else {n: costs[n] for n in values}
        ranked = sorted(values, key=lambda n: -self._merit(n, values[n]))
        self._values = {n: values[n] for n in ranked}

    @property
    def best(self) -> str | None:
        """The candidate that tells most (per cost, where there are costs); None without candidates."""
        return next(iter(self._values), None)

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a frame indexed by candidate: information, share of the entropy, and cost where there are any."""
        import pandas as pd

        columns: dict[str, Any] = {
            "information": list(self._values.values()),
            "share": [self._share(v) for v in self._values.values()],
        }
        if self.costs is not None:
            columns["cost"] = [self.costs[n] for n in self._values]
            columns["per cost"] = [self._merit(n, v) for n, v in self._values.items()]
        return pd.DataFrame(columns, index=pd.Index(list(self._values), name="test"))

    def __str__(self) -> str:
        return aligned(*self._table())

    def _repr_html_(self) -> str:
        return html_table(*self._table(), note=str(self.info))

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header = ["test", self.unit, "share"]
        rows = [[n, f"{v:.6g}", f"{self._share(v):.1%}"] for n, v in self._values.items()]
        if self.costs is not None:
            header += ["cost", f"{self.unit} per cost"]
            for row, (n, v) in zip(rows, self._values.items(), strict=True):
                row += [f"{self.costs[n]:.6g}", f"{self._merit(n, v):.6g}"]
        return header, rows

    def __repr__(self) -> str:
        return f"{self}\n[{self.info}]"

    def _merit(self, name: str, value: float) -> float:
        return value if self.costs is None else value / self.costs[name]

    def _share(self, value: float) -> float:
        return value / self.entropy if self.entropy > 0 else 0.0


@dataclass(frozen=True)
class Gains:
    """Mutual information by candidate and the entropy of the target, in nats; log mass minus infinity for none."""

    values: dict[str, float]
    entropy: float
    log_mass: float
    record: Record


def information_gains(
    problem: Problem, target: Sequence[str], candidates: Sequence[str], engine: Engine
) -> Gains:
    """Compute the mutual information between the target (together) and each candidate, under the findings.

    Parameters
    ----------
    problem
        The model and the evidence; no target variable is fixed to a state.
    target, candidates
        Names; none of the candidates is a target. A candidate that is fixed to a state tells nothing.
    engine
        Who answers.
    """
    fixed = {n for n, f in problem.findings.items() if f.hard}
    open_ones = [n for n in candidates if n not in fixed]
    answer = engine.joint(problem, target)
    if np.isneginf(answer.log_mass):
        return Gains({}, 0.0, -np.inf, answer.record)
    belief = answer.tables[0].transpose(list(target)).values
    states_of_target = int(np.count_nonzero(belief))
    states_of_candidates = sum(len(problem.variables[n]) for n in open_ones)
    if states_of_target <= states_of_candidates:
        found = _assuming_target(problem, target, belief, open_ones, engine)
    else:
        found = _assuming_candidates(problem, target, open_ones, engine)
    values = {n: found.get(n, 0.0) for n in candidates}
    return Gains(values, _entropy(belief), answer.log_mass, answer.record)


def _assuming_target(
    problem: Problem, target: Sequence[str], belief: Array, candidates: Sequence[str], engine: Engine
) -> dict[str, float]:
    weights: list[float] = []
    rows: list[list[Array]] = [[] for _ in candidates]
    for codes in combinations(*(range(k) for k in belief.shape)):
        if belief[codes] == 0:
            continue
        answer = engine.marginals(_assumed(problem, dict(zip(target, codes, strict=True))), candidates)
        if np.isneginf(answer.log_mass):
            continue
        weights.append(float(belief[codes]))
        for row, table in zip(rows, answer.tables, strict=True):
            row.append(table.values)
    return {n: _mutual(np.array(weights), np.array(r)) for n, r in zip(candidates, rows, strict=True)}


def _assuming_candidates(
    problem: Problem, target: Sequence[str], candidates: Sequence[str], engine: Engine
) -> dict[str, float]:
    beliefs = engine.marginals(problem, candidates).tables if candidates else []
    found = {}
    for name, table in zip(candidates, beliefs, strict=True):
        weights, rows = [], []
        for code in np.flatnonzero(table.values):
            answer = engine.joint(_assumed(problem, {name: int(code)}), target)
            if not np.isneginf(answer.log_mass):
                weights.append(float(table.values[code]))
                rows.append(answer.tables[0].transpose(list(target)).values.ravel())
        found[name] = _mutual(np.array(weights), np.array(rows))
    return found


def _assumed(problem: Problem, codes: Mapping[str, int]) -> Problem:
    assumed = {
        n: Finding(problem.variables[n], problem.variables[n].states[c], code=c) for n, c in codes.items()
    }
    return problem.with_findings({**problem.findings, **assumed})


def _mutual(weights: Array, rows: Array) -> float:
    """Return the mean divergence of the rows from their weighted mean."""
    joint = weights[:, None] / weights.sum() * rows
    share = np.divide(rows, joint.sum(axis=0), out=np.ones_like(rows), where=joint > 0)
    return max(0.0, float((joint * np.log(share)).sum()))


def _entropy(belief: Array) -> float:
    p = belief[belief > 0]
    return max(0.0, float(-(p * np.log(p)).sum()))
