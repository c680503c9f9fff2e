"""Linear-Gaussian and conditional linear-Gaussian networks, exactly: numbers are integrated out before states.

Method: strong elimination (Lauritzen 1992; Lauritzen, Jensen 2001). The evidence is put into every node's regression.
Unknown numbers that no unknown state touches form one Gaussian, solved by least squares or, if large, by a sparse
Cholesky factor. Numbers that hang together and depend on unknown states are integrated out for every configuration of
those states, which is the clique that a strong junction tree has for them; what remains is a model of tables, for the
engines of tables. States then have their exact posteriors, and numbers exact mixtures of Gaussians, one component a
configuration.
Cost: that of a sparse factor without discrete parents; otherwise the number of configurations of the discrete parents in one
component, times that. More than `max_configurations` are refused.
Use it for every network of `LinearGaussian` nodes and tables; "auto" does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Annotated, Any, ClassVar

import numpy as np

from markovia.errors import TooLarge, Unanswered
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.quantities.soft_findings import Interval
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.evidence import Findings
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.engine import CLOSED, TABLES, get_engine
from markovia.inference.gaussian.configurations import (
    SolvedConfigurations,
    check_configurations,
    solve_with_intervals,
)
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior, MixtureOfGaussians
from markovia.inference.gaussian.mixture_modes import best_of_mixture
from markovia.inference.gaussian.network_equations import equations_of, flat_network
from markovia.inference.gaussian.solving import solve
from markovia.inference.impossible_evidence import impossible
from markovia.inference.posterior import Posterior
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Draws, Info, LogMass, Ranked, Tables
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Whole, check_options

RANGE = 600.0
"""How far logs of tables may lie apart together until they are added up before they become numbers."""
TRIES = 400
"""Draws a wanted row that are made before intervals are called too improbable to draw from."""


@dataclass(frozen=True)
class Details:
    """How an exact answer was made.

    Attributes
    ----------
    unknown
        Numbers that were not observed and mattered.
    configurations
        Of the states that some numbers depend on, for each group of numbers that hang together.
    collapsed
        Whether mixtures were replaced by one Gaussian of the same mean and covariance.
    intervals
        How `Interval` findings were treated: "exact moments" for one, "expectation propagation" for several; else "".
    """

    unknown: int
    configurations: tuple[int, ...]
    collapsed: bool = False
    intervals: str = ""


@dataclass(frozen=True)
class Gaussian:
    """Exact inference in networks of linear Gaussians and tables.

    Parameters
    ----------
    max_configurations
        The largest number of configurations of discrete parents that is summed over at once.
    collapse
        Replace each mixture by one Gaussian with its mean and covariance (the weak marginal); moments stay exact, the
        shape does not, and the answer's info says so.

    Examples
    --------
    >>> import markovia as mk
    >>> m = mk.BayesianNetwork()
    >>> m.add("fault", {"no": 0.9, "yes": 0.1})
    >>> m.add("level", {"no": mk.LinearGaussian(0, {}, 1), "yes": mk.LinearGaussian(4, {}, 1)}, parents=["fault"])
    >>> m.add("gauge", mk.LinearGaussian(0, {"level": 1}, 0.25))
    >>> round(m.query("fault", given={"gauge": 2.5})["yes"], 4)
    0.355
    >>> p = m.query("level", given={"gauge": 2.5})
    >>> len(p.weights), round(p.mean(), 4)
    (2, 2.284)
    """

    max_configurations: Annotated[int, Whole(1)] = 2**20
    collapse: bool = False

    name: ClassVar[str] = "gaussian"
    exact: ClassVar[bool] = True
    kinds: ClassVar[frozenset[str]] = CLOSED

    def __post_init__(self) -> None:
        check_options(self)

    def joint(self, problem: Problem, targets: Sequence[str]) -> Any:
        """Return the joint posterior of all targets."""
        if problem.kinds <= TABLES:
            return _own(get_engine("auto").joint(problem, targets))
        return EliminationAnswer(self._eliminated(problem, targets), targets)

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Any:
        """Return the posterior of each target."""
        if problem.kinds <= TABLES:
            return _own(get_engine("auto").marginals(problem, targets))
        return EliminationAnswer(self._eliminated(problem, targets), None)

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log density (and probability) of the evidence."""
        if problem.kinds <= TABLES:
            return get_engine("auto").log_mass(problem)
        state = StrongElimination(problem, (), self)
        return LogMass(state.log_mass, state.record)

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the m best configurations of discrete targets, each with the best numbers."""
        if problem.kinds <= TABLES:
            found = get_engine("auto").best(problem, targets, m)
            return Ranked(found, replace(found.record, engine=None))
        return self._eliminated(problem, targets).best(targets, m)

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n configurations of what is not observed."""
        if problem.kinds <= TABLES:
            return get_engine("auto").sample(problem, n, rng)
        if not problem.findings:
            return _forward(problem, n, rng)
        cut = {k: f.said for k, f in problem.findings.items() if isinstance(f.said, Interval)}
        if cut:
            return self._sample_inside(problem, cut, n, rng)
        return Draws(self._eliminated(problem, None).draw(n, rng))

    def _sample_inside(
        self, problem: Problem, cut: dict[str, Interval], n: int, rng: np.random.Generator
    ) -> Draws:
        """Draw without the intervals and keep what lies inside."""
        rest = problem.with_findings({k: f for k, f in problem.findings.items() if k not in cut})
        state = self._eliminated(rest, None) if rest.findings else None
        kept: list[dict[str, Any]] = []
        count = 0
        for _ in range(TRIES):
            drawn = _forward(rest, max(n, 100), rng) if state is None else state.draw(max(n, 100), rng)
            good = np.ones(max(n, 100), bool)
            for name, interval in cut.items():
                good &= (drawn[name] >= interval.low) & (drawn[name] <= interval.high)
            kept.append({k: x[good] for k, x in drawn.items()})
            count += int(good.sum())
            if count >= n:
                return Draws({k: np.concatenate([part[k] for part in kept])[:n] for k in kept[0]})
        raise Unanswered(
            f"the intervals given for {', '.join(map(repr, cut))} are too improbable to draw from; "
            + ("widen them" if "field" in problem.kinds else "use engine='nuts'")
        )

    def _eliminated(self, problem: Problem, targets: Sequence[str] | None) -> "StrongElimination":
        state = StrongElimination(problem, targets, self)
        if state.log_mass == -np.inf:
            raise impossible(problem, self.log_mass)
        return state


class StrongElimination:
    """A problem with all its numbers integrated out, and what is needed to get them back."""

    def __init__(self, problem: Problem, targets: Sequence[str] | None, engine: Gaussian) -> None:
        self.problem, self.engine = problem, engine
        self.equations = e = equations_of(problem, targets)
        self.plain = solve_with_intervals(e.system, e.intervals)
        self.place = {n: k for k, n in enumerate(e.names)}
        self.solved = [SolvedConfigurations(c, engine.max_configurations) for c in e.components]
        self.home = {n: s for s in self.solved for n in s.component.names}
        self.log_plain = self.plain.log_mass + e.log_constant - log_integral(problem)
        self.tables, self.log_offset = self._table_problem([s.log_mass for s in self.solved])
        self.table_engine = get_engine("auto")
        found = self.table_engine.log_mass(self.tables) if self.tables.variables else LogMass(0.0)
        self.log_mass = float(found) + self.log_plain + self.log_offset
        cuts = len(e.intervals) + sum(len(c.intervals) for c in e.components)
        details = Details(
            len(e.names) + len(self.home),
            tuple(s.count for s in self.solved),
            engine.collapse and bool(self.solved),
            "" if not cuts else "exact moments" if cuts == 1 else "expectation propagation",
        )
        exact = (
            found.record.exact is not False and not found.record.tried and not cuts and not details.collapsed
        )
        self.record = replace(found.record, engine="gaussian", exact=exact, details=details)

    def _table_problem(self, masses: Sequence[Array]) -> tuple[Problem, float]:
        """Return the model of tables that is left, and the log of what its tables were divided by."""
        logs = [*self.equations.log_tables]
        logs.extend((s.scope, m.reshape(s.shape)) for s, m in zip(self.solved, masses, strict=True))
        by_scope: dict[frozenset[str], tuple[tuple[Variable, ...], Array]] = {}
        for scope, table in logs:
            key = frozenset(v.name for v in scope)
            by_scope[key] = _added(by_scope[key], (scope, table)) if key in by_scope else (scope, table)
        merged = list(by_scope.values())
        if len(merged) > 1 and sum(_reach(table) for _, table in merged) > RANGE:
            whole = merged[0]
            for other in merged[1:]:
                union = tuple(dict.fromkeys((*whole[0], *other[0])))
                check_configurations(union, self.engine.max_configurations)
                whole = _added(whole, other)
            merged = [whole]
        offset, pieces = 0.0, list(self.equations.tables)
        for scope, table in merged:
            top = float(table.max())
            if top == -np.inf:
                return Problem({}, [], {}), -np.inf
            offset += top
            pieces.append(Factor.of(scope, np.exp(table - top)))
        variables = {n: v for n, v in self.problem.variables.items() if not isinstance(v, Quantity)}
        findings: Findings = {n: f for n, f in self.problem.findings.items() if n in variables}
        return Problem(variables, pieces, findings), offset

    # -- posteriors ----------------------------------------------------------------------------------------------

    def weights(self, scope: Sequence[Variable]) -> Array:
        """Return the joint posterior of some discrete variables, axes in that order."""
        if not scope:
            return np.ones(())
        names = [v.name for v in scope]
        found: Tables = self.table_engine.joint(self.tables, names)
        return found.tables[0].transpose(names).values

    def mixture(self, names: Sequence[str]) -> MixtureOfGaussians:
        """Return the joint posterior of numbers and states."""
        numbers = [n for n in names if n in self.place or n in self.home]
        states = [self.problem.variables[n] for n in names if n not in numbers]
        parts = [s for s in self.solved if any(n in s.place for n in numbers)]
        scope = tuple(dict.fromkeys([*states, *(v for s in parts for v in s.scope)]))
        check_configurations(scope, self.engine.max_configurations)
        shape, c = tuple(len(v) for v in scope), len(numbers)
        count = prod(shape)
        if count * c * c > 2**27:
            raise TooLarge(
                f"the joint posterior of {c:,} numbers has {count:,} covariance matrices; ask for fewer together, or for "
                "marginals()"
            )
        weights = self.weights(scope).reshape(-1)
        kept = np.flatnonzero(weights > 0.0)
        codes = np.unravel_index(kept, shape) if scope else ()
        means, covariances = np.zeros((len(kept), c)), np.zeros((len(kept), c, c))
        mine = [k for k, n in enumerate(numbers) if n in self.place]
        if mine:
            at = np.array([self.place[numbers[k]] for k in mine])
            means[:, mine] = self.plain.mean[at]
            block = self.plain.variances()[at][:, None] if len(at) == 1 else self.plain.covariance(at)
            covariances[:, np.array(mine)[:, None], mine] = block
        for s in parts:
            mine = [k for k, n in enumerate(numbers) if n in s.place]
            own = tuple(s.place[numbers[k]] for k in mine)
            flat = np.ravel_multi_index(tuple(codes[scope.index(v)] for v in s.scope), s.shape)
            means[:, mine] = s.means[flat][:, own]
            covariances[:, np.array(mine)[:, None], mine] = s.covariances(own)[flat]
        chosen = (
            np.array([codes[scope.index(v)] for v in states], dtype=np.int64)
            .reshape(len(states), len(kept))
            .T
        )
        found = MixtureOfGaussians(tuple(numbers), tuple(states), weights[kept], chosen, means, covariances)
        return found.collapsed() if self.engine.collapse else found

    # -- best values and draws -----------------------------------------------------------------------------------

    def best(self, targets: Sequence[str], m: int) -> Ranked:
        """Return the m best configurations of discrete targets with the best numbers."""
        wanted = set(targets)
        states = [n for n in targets if n in self.tables.variables]
        parts = [s for s in self.solved if any(n in s.place for n in wanted)]
        if any(v.name not in wanted for s in parts for v in s.scope):
            return best_of_mixture(self.mixture(targets), targets, m, self.log_mass, self.record)
        peaks = [self._peak(s, wanted) for s in self.solved]
        tables, offset = self._table_problem(
            [s.log_mass + p for s, p in zip(self.solved, peaks, strict=True)]
        )
        at = np.array([self.place[n] for n in targets if n in self.place], dtype=np.int64)
        base = self.log_plain + offset + self._plain_peak(at)
        if states:
            ranked = self.table_engine.best(tables, states, m)
        else:
            mass = float(self.table_engine.log_mass(tables)) if tables.variables else 0.0
            ranked = Ranked([Assignment({}, mass)])
        answers = []
        for found in ranked:
            codes: dict[str, Any] = dict(found.codes)
            for n in targets:
                if n in self.place:
                    codes[n] = float(self.plain.mean[self.place[n]])
                elif n in self.home:
                    s = self.home[n]
                    flat = np.ravel_multi_index(tuple(codes[v.name] for v in s.scope), s.shape)
                    codes[n] = float(s.means[flat, s.place[n]])
            answers.append(Assignment({n: codes[n] for n in targets}, found.log_weight + base))
        bound = ranked.record.bound
        record = replace(
            ranked.record, engine="gaussian", exact=self.record.exact, details=self.record.details
        )
        return Ranked(answers, replace(record, bound=None if bound is None else bound + base))

    def _peak(self, s: SolvedConfigurations, wanted: set[str]) -> Array:
        """Return the log density of the wanted numbers of a component at their mean, for every configuration."""
        own = tuple(k for n, k in s.place.items() if n in wanted)
        if len(own) == len(s.place):
            return s.log_peak
        return -0.5 * np.linalg.slogdet(2 * np.pi * s.covariances(own))[1] if own else np.zeros(s.count)

    def _plain_peak(self, at: Any) -> float:
        if len(at) == len(self.plain.mean):
            return self.plain.log_peak()
        return -0.5 * float(np.linalg.slogdet(2 * np.pi * self.plain.covariance(at))[1]) if len(at) else 0.0

    def draw(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw n joint configurations of states and numbers."""
        columns: dict[str, Any] = {}
        if self.tables.variables:
            columns.update(self.table_engine.sample(self.tables, n, rng))
        if self.place:
            drawn = self.plain.draw(n, rng)
            columns.update((name, drawn[:, k]) for name, k in self.place.items())
        for s in self.solved:
            flat = np.ravel_multi_index(tuple(columns[v.name] for v in s.scope), s.shape)
            whole = np.empty((n, len(s.place)))
            for d in np.unique(flat).tolist():
                rows = np.flatnonzero(flat == d)
                whole[rows] = s.solution(d).draw(len(rows), rng)
            columns.update((name, whole[:, k]) for name, k in s.place.items())
        return columns


def log_integral(problem: Problem) -> float:
    """Return the log of a field's integral, which its densities are divided by; zero where every piece is a distribution.

    It is found once and kept with the model.
    """
    if "field" not in problem.kinds:
        return 0.0
    flat_network(problem)  # forgets what it kept where the pieces have changed
    memory = {} if problem.memory is None else problem.memory
    if "log z" not in memory:
        memory["log z"] = solve(equations_of(problem.with_findings({}), None).system).log_mass
    return float(memory["log z"])


class EliminationAnswer:
    """What an elimination says about some targets, made when it is asked for."""

    def __init__(self, state: StrongElimination, together: Sequence[str] | None) -> None:
        self.state, self.log_mass, self.record = state, state.log_mass, state.record
        self._weights: dict[int, Array] = {}
        self._tables: dict[str, Factor] = {}
        self._joint: MixtureOfGaussians | None = None
        self._variances = np.zeros(0)
        numbers = state.place.keys() | state.home.keys()
        if together is not None and any(n in numbers for n in together):
            self._joint = state.mixture(together)
        elif together is not None:
            self._tables[""] = state.table_engine.joint(state.tables, together).tables[0]
        else:
            self._variances = state.plain.variances()

    def posterior(self, names: Sequence[str], info: Info) -> Posterior | GaussianPosterior:
        """Return what the user gets for some names."""
        if self._joint is not None:
            return GaussianPosterior(names, self._joint, info)
        if "" in self._tables:
            return Posterior(self._tables[""].transpose(list(names)), info)
        (name,) = names
        state = self.state
        if name in state.place:
            k = state.place[name]
            return GaussianPosterior.single(name, state.plain.mean[k], self._variances[k], info)
        if name in state.home:
            s = state.home[name]
            if id(s) not in self._weights:
                self._weights[id(s)] = state.weights(s.scope).reshape(-1)
            w, k = self._weights[id(s)], s.place[name]
            kept = np.flatnonzero(w > 0.0)
            mixture = MixtureOfGaussians(
                (name,), (), w[kept], np.zeros((len(kept), 0), np.int64), s.means[kept, k : k + 1],
                s.variances[kept, k, None, None],
            )  # fmt: skip
            return GaussianPosterior(names, mixture.collapsed() if state.engine.collapse else mixture, info)
        if name not in self._tables:
            asked = list(
                state.tables.variables.keys() - {n for n, f in state.tables.findings.items() if f.hard}
            )
            found = state.table_engine.marginals(state.tables, asked)
            self._tables.update(zip(asked, found.tables, strict=True))
        return Posterior(self._tables[name], info)


def _own(found: Tables) -> Tables:
    """Return tables of another engine as this one's answer: a model without numbers is left to it."""
    return replace(found, record=replace(found.record, engine=None))


def _added(
    one: tuple[tuple[Variable, ...], Array], other: tuple[tuple[Variable, ...], Array]
) -> tuple[tuple[Variable, ...], Array]:
    """Add two tables of logs over the union of their scopes."""
    scope = tuple(dict.fromkeys((*one[0], *other[0])))
    total = np.zeros(tuple(len(v) for v in scope))
    for own, table in (one, other):
        axes = sorted(range(len(own)), key=lambda k: scope.index(own[k]))
        spread = tuple(len(v) if v in own else 1 for v in scope)
        total = total + table.transpose(axes).reshape(spread)
    return scope, total


def _reach(table: Array) -> float:
    finite = table[np.isfinite(table)]
    return float(finite.max() - finite.min()) if finite.size else 0.0


def _forward(problem: Problem, n: int, rng: np.random.Generator) -> Draws:
    """Draw from a network without evidence, parents first."""
    pieces = {p.variable.name: p for p in problem.pieces if isinstance(p, Conditional)}
    if len(pieces) < len(problem.variables):
        state = StrongElimination(problem, None, Gaussian())
        return Draws(state.draw(n, rng))
    columns: dict[str, Any] = {}
    for root in pieces:
        stack = [root]
        while stack:
            name = stack[-1]
            waiting = [q for q in pieces[name].parent_names if q not in columns]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if name not in columns:
                columns[name] = pieces[name].sample([columns[q] for q in pieces[name].parent_names], n, rng)
    return Draws(columns)
