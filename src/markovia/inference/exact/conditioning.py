"""Cutset conditioning: exact inference when elimination does not fit the memory but time allows.

Method: fix a few variables, the cutset, so that the elimination of the others fits the budget; answer the question once
for every joint state of the cutset, and add the answers up, each weighted by its mass. A prefix of the cutset that
some table already gives weight zero is passed over with everything below it.
References: Pearl (1986), "A constraint-propagation approach to probabilistic reasoning"; Dechter (1999), "Bucket
elimination" (elimination and conditioning combined); Chao (1982) for the draws.
Cost: memory as allowed; time the number of joint states of the cutset, times one elimination.
Use it when `variable-elimination` raises `TooLarge` by a factor of thousands rather than of billions. With enough
memory the cutset is empty and this is plain elimination.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappush, heappushpop
from itertools import groupby
from math import inf, prod
from typing import ClassVar

import numpy as np

from markovia.errors import TooLarge
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.graphs.triangulation.elimination import Heuristic
from markovia.inference.engine import Engine, get_engine
from markovia.inference.exact.bucket_tree import Net
from markovia.inference.exact.cutset import Cutset, EliminationCost, choose_cutset
from markovia.inference.exact.cutset_cases import CutsetCases, WeightedTables, progress_bar
from markovia.inference.exact.plan_details import CutsetDetails
from markovia.inference.exact.variable_elimination import VariableElimination
from markovia.inference.problem import Piece, Problem
from markovia.inference.result import Assignment, Draws, LogMass, Ranked, Record, Tables
from markovia.runtime.checks import Bytes, Positive, check_options
from markovia.runtime.memory_budget import default_budget, readable


@dataclass(frozen=True)
class Conditioning:
    """Exact inference within a memory budget, by cases over a cutset.

    Parameters
    ----------
    max_bytes
        The memory budget of the tables; 80% of the free memory by default.
    inner
        The engine that answers each case, by name or with settings. Variable elimination is given the budget, and one
        elimination order for all cases; its own `order=` and a smaller `max_bytes=` are respected.
    max_operations
        Refuse with `TooLarge` what would go through more table entries than this, all cases together. Handling a
        table counts as 10,000 entries; the default is about half a day of work.
    progress
        Show a progress bar with the share of the cases done and what is known so far; by default only on a terminal.

    Examples
    --------
    >>> import markovia as mk
    >>> grid = mk.generators.ising_grid(6, 6, coupling=0.4)
    >>> small = Conditioning(max_bytes=1024)
    >>> bool(abs(grid.log_partition(engine=small) - grid.log_partition()) < 1e-9)
    True
    >>> grid.query(grid.variables[0], engine=small).info.details.cases > 1
    True
    """

    max_bytes: Bytes = None
    inner: Engine | str = field(default_factory=VariableElimination)
    max_operations: Positive = 1e13
    progress: bool | None = None

    name: ClassVar[str] = "conditioning"
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)
        get_engine(self.inner)

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        work = _Work(self, problem, targets)
        shape = [len(problem.variables[t]) for t in targets]
        n_bytes = 8.0 * prod(shape)
        if n_bytes > work.budget:
            raise TooLarge(
                f"a table over the {len(targets)} targets has {prod(shape):,} entries ({readable(n_bytes)}); "
                f"the budget is {readable(work.budget)}. Ask for fewer variables at once, or for marginals",
                bytes=n_bytes,
            )
        cutset = work.check(work.choose(keep=targets), prod(shape))
        inner = work.engine(cutset)
        rest = [t for t in targets if t not in cutset.names]
        mixture = WeightedTables([shape])
        with CutsetCases(work.problem, cutset.names, self.progress) as cases:
            for codes, case in cases:
                fixed = dict(zip(cutset.names, codes, strict=True))
                index = tuple(fixed.get(t, slice(None)) for t in targets)
                if rest:
                    answer = inner.joint(case, rest)
                    if mixture.add(answer.log_mass):
                        mixture.put(0, index, answer.tables[0].transpose(rest).values)
                elif mixture.add(inner.log_mass(case)):
                    mixture.put(0, index, 1.0)
                cases.report(f"log mass >= {mixture.log_mass:.6g}")
        table = Factor.of(tuple(problem.variables[t] for t in targets), mixture.normalised(0))
        return Tables([table], mixture.log_mass, _record(cutset, cases))

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target.

        A sweep back needs all tables of a sweep at once. In long models these are many though none is large; then the
        targets are answered one at a time, if that is estimated to be faster.
        """
        if not targets:
            return Tables([], self.log_mass(problem))
        work = _Work(self, problem, targets)
        cutset = work.choose(stored=targets, beliefs=True)
        if cutset.names or not cutset.fits:
            single = work.choose()
            one_by_one = len(targets) * single.operations
            if single.fits and one_by_one < (cutset.operations if cutset.fits else inf):
                work.check(replace(single, operations=one_by_one))
                return self._one_by_one(problem, targets)
        work.check(cutset)
        inner = work.engine(cutset)
        rest = [t for t in targets if t not in cutset.names]
        place = {t: k for k, t in enumerate(targets)}
        mixture = WeightedTables([[len(problem.variables[t])] for t in targets])
        with CutsetCases(work.problem, cutset.names, self.progress) as cases:
            for codes, case in cases:
                answer = inner.marginals(case, rest) if rest else Tables([], inner.log_mass(case))
                if mixture.add(answer.log_mass):
                    for t, table in zip(rest, answer.tables, strict=True):
                        mixture.put(place[t], (slice(None),), table.values)
                    for t, code in zip(cutset.names, codes, strict=True):
                        if t in place:
                            mixture.put(place[t], (code,), 1.0)
                cases.report(f"log mass >= {mixture.log_mass:.6g}")
        record = _record(cutset, cases)
        if np.isneginf(mixture.log_mass):
            return Tables([], -inf, record)
        tables = [Factor.of((problem.variables[t],), mixture.normalised(k)) for t, k in place.items()]
        return Tables(tables, mixture.log_mass, record)

    def _one_by_one(self, problem: Problem, targets: Sequence[str]) -> Tables:
        quiet = replace(self, progress=False)
        answers = []
        bar = progress_bar(len(targets), "target", self.progress)
        try:
            for target in targets:
                answers.append(quiet.joint(problem, [target]))
                if answers[-1].log_mass == -inf:
                    return Tables([], -inf, answers[-1].record)
                if bar is not None:
                    bar.update(1)
        finally:
            if bar is not None:
                bar.close()
        said: list[CutsetDetails] = [a.record.details for a in answers]
        details = CutsetDetails(
            width=max(d.width for d in said),
            largest_table=max(d.largest_table for d in said),
            cutset=tuple(dict.fromkeys(n for d in said for n in d.cutset)),
            cases=sum(d.cases for d in said),
            answered=sum(d.answered for d in said),
            sweeps=len(targets),
        )
        return Tables([a.tables[0] for a in answers], answers[0].log_mass, Record(details=details))

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log of the total weight that agrees with the findings; minus infinity for none."""
        work = _Work(self, problem, ())
        cutset = work.check(work.choose())
        inner = work.engine(cutset)
        mixture = WeightedTables([])
        with CutsetCases(work.problem, cutset.names, self.progress) as cases:
            for _, case in cases:
                mixture.add(inner.log_mass(case))
                cases.report(f"log mass >= {mixture.log_mass:.6g}")
        return LogMass(mixture.log_mass)

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the m best assignments of the targets, other variables summed out.

        A maximum of sums is not the maximum over cases of summed variables. So only targets are conditioned on; or all
        of them together with summed variables, the cases of each assignment of the targets then being added up.
        """
        work = _Work(self, problem, targets)
        if isinstance(work.inner, VariableElimination) and work.inner.marginal_map == "branch-and-bound":
            by_maximum = work.choose(stored=work.problem.free, candidates=targets)
        else:
            by_maximum = work.choose(last=targets, stored=targets, candidates=targets)
        chosen = by_maximum
        if (by_maximum.names or not by_maximum.fits) and len(targets) < len(work.net.cards):
            by_sums = work.choose(forced=targets)
            most = by_maximum.operations if by_maximum.fits else self.max_operations
            if by_sums.fits and by_sums.operations <= most:
                chosen = by_sums
        work.check(chosen)
        ranking = _Ranking(m)
        inner = work.engine(chosen)
        rest = [t for t in targets if t not in chosen.names]
        with CutsetCases(work.problem, chosen.names, self.progress) as cases:
            if rest:
                for codes, case in cases:
                    fixed = dict(zip(chosen.names, codes, strict=True))
                    for found in inner.best(case, rest, m):
                        ranking.add({**fixed, **found.codes}, found.log_weight)
                    cases.report(f"best log weight {ranking.top:.6g}")
            else:
                k = len(targets)
                for codes, group in groupby(cases, key=lambda pair: pair[0][:k]):
                    mixture = WeightedTables([])
                    for _, case in group:
                        mixture.add(inner.log_mass(case))
                    ranking.add(dict(zip(chosen.names, codes, strict=False)), mixture.log_mass)
                    cases.report(f"best log weight {ranking.top:.6g}")
        return Ranked(ranking.assignments(targets))

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n configurations of the free variables given the findings, as state codes.

        One walk over the cases decides which case each draw belongs to: a case that holds a share p of the mass seen
        so far takes over each draw with probability p. Then the draws of each case are made together.
        """
        work = _Work(self, problem, None)
        cutset = work.check(work.choose(stored=work.problem.free))
        inner = work.engine(cutset)
        mixture = WeightedTables([])
        owner = np.zeros(n, dtype=np.int64)
        owners: dict[int, tuple[int, ...]] = {}
        with CutsetCases(work.problem, cutset.names, self.progress) as cases:
            for serial, (codes, case) in enumerate(cases):
                if mixture.add(inner.log_mass(case)):
                    taken = rng.choice(n, rng.binomial(n, mixture.share), replace=False)
                    if len(taken):
                        owner[taken] = serial
                        owners[serial] = codes
                        if len(owners) > 2 * n + 16:
                            owners = {int(k): owners[int(k)] for k in np.unique(owner)}
                cases.report(f"log mass >= {mixture.log_mass:.6g}")
            if np.isneginf(mixture.log_mass):
                return Draws({})
            drawn = {v: np.empty(n, dtype=np.int64) for v in work.problem.free}
            together = np.argsort(owner, kind="stable")
            starts = np.flatnonzero(np.diff(owner[together])) + 1
            for rows in np.split(together, starts) if n else ():
                codes = owners[int(owner[rows[0]])]
                for v, column in inner.sample(cases.problem(codes), len(rows), rng).items():
                    drawn[v][rows] = column
                for v, code in zip(cutset.names, codes, strict=True):
                    drawn[v][rows] = code
        return Draws(drawn)


class _Work:
    """A question made ready for cases: the part of the problem that matters, the budget, the inner engine."""

    def __init__(self, settings: Conditioning, problem: Problem, targets: Sequence[str] | None) -> None:
        self.settings = settings
        self.inner = get_engine(settings.inner)
        self.budget = default_budget() if settings.max_bytes is None else settings.max_bytes
        if isinstance(self.inner, VariableElimination) and self.inner.max_bytes is not None:
            self.budget = min(self.budget, self.inner.max_bytes)
        self.problem = _prepared(problem, targets, self.budget / 8)
        self.net = Net(self.problem.parts(None))

    def choose(
        self,
        keep: Sequence[str] = (),
        last: Sequence[str] = (),
        stored: Sequence[str] = (),
        beliefs: bool = False,
        candidates: Sequence[str] | None = None,
        forced: Sequence[str] = (),
    ) -> Cutset:
        """Choose the cutset; the answer over the kept variables is there besides a case, unless there is only one."""
        ids = self.net.ids
        elimination = EliminationCost(
            net=self.net,
            order=self._order(),
            limit=self.budget / 8,
            keep=tuple(ids[n] for n in keep),
            last=tuple(ids[n] for n in last),
            stored=frozenset(ids[n] for n in stored),
            beliefs=beliefs,
        )
        members = [ids[n] for n in forced]
        found = choose_cutset(elimination, (), members)
        if found.fits:
            return found
        answer = prod(self.net.cards[i] for i in elimination.keep) if keep else 0
        return choose_cutset(
            replace(elimination, limit=elimination.limit - answer),
            [ids[n] for n in (ids if candidates is None else candidates)],
            members,
            self.settings.max_operations,
        )

    def check(self, cutset: Cutset, answer: int = 0) -> Cutset:
        """Refuse what takes too long or does not fit whatever is conditioned on."""
        limit = self.settings.max_operations
        if cutset.fits and cutset.operations <= limit:
            return cutset
        n_bytes = 8.0 * (cutset.entries + answer)
        cases = f"{cutset.cases:,}" if cutset.cases < 10**15 else "over 10**15"
        raise TooLarge(
            f"conditioning needs {'' if cutset.fits else 'at least '}{cutset.operations:.3g} operations "
            f"({cases} cases) and {readable(n_bytes)} of tables; the limits are {limit:.3g} operations and "
            f"{readable(self.budget)}. Add evidence, ask for fewer variables at once, or raise "
            "Conditioning(max_bytes=..., max_operations=...)",
            bytes=n_bytes,
            operations=cutset.operations,
        )

    def _order(self) -> Heuristic | Sequence[str]:
        """Return how orders are found: as the inner engine does. Min-fill orders of chordal graphs are perfect."""
        order = self.inner.order if isinstance(self.inner, VariableElimination) else "min-fill"
        return "min-fill" if order == "perfect" else order

    def engine(self, cutset: Cutset) -> Engine:
        """Return the inner engine for the cases of a cutset; the order is the same for all of them."""
        if isinstance(self.inner, VariableElimination):
            return replace(self.inner, order=cutset.order, max_bytes=self.budget)
        return self.inner


class _Ranking:
    """The m best assignments seen so far; of equal ones the first seen stay."""

    def __init__(self, m: int) -> None:
        self.m = m
        self.heap: list[tuple[float, int, dict[str, int]]] = []
        self.seen = 0
        self.top = -inf

    def add(self, codes: dict[str, int], log_weight: float) -> None:
        if log_weight == -inf:
            return
        self.seen += 1
        self.top = max(self.top, log_weight)
        item = (log_weight, -self.seen, codes)
        if len(self.heap) < self.m:
            heappush(self.heap, item)
        else:
            heappushpop(self.heap, item)

    def assignments(self, targets: Sequence[str]) -> list[Assignment]:
        best = sorted(self.heap, key=lambda item: item[:2], reverse=True)
        return [Assignment({t: codes[t] for t in targets}, weight) for weight, _, codes in best]


def _prepared(problem: Problem, targets: Sequence[str] | None, limit: float) -> Problem:
    """Return the part of a problem that matters, with the evidence worked in.

    Soft findings become pieces, so that fixing their variable keeps their weight. A structured conditional too large to
    be a table stays what it is, to be cut case by case.
    """
    relevant = problem.relevant(targets)
    mentioned = {n for piece in problem.pieces for n in piece.names}
    kept = {n for piece in relevant for n in piece.names}
    variables = {n: v for n, v in problem.variables.items() if n in kept or n not in mentioned}
    findings = {n: f for n, f in problem.findings.items() if f.hard and n in variables}
    pieces: list[Piece] = []
    for piece in relevant:
        left = prod(len(problem.variables[n]) for n in piece.names if n not in findings)
        small = isinstance(piece, Factor | ConditionalTable) or left <= limit
        pieces.append(problem.cut(piece) if small else piece)
    pieces += [f.factor() for f in problem.findings.values() if not f.hard]
    return Problem(variables, pieces, findings)


def _record(cutset: Cutset, cases: CutsetCases) -> Record:
    names = tuple(cutset.names)
    details = CutsetDetails(cutset.width, int(cutset.largest), names, cutset.cases, cases.answered)
    return Record(details=details)
