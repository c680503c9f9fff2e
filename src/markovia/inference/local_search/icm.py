"""Iterated conditional modes: coordinate ascent on the weight of a full configuration.

Method: pick a variable, set it to its best state given all others, repeat until no single change helps. The weight
never falls and the end is a one-change local maximum, which depends on the start. Reference: Besag (1986). Cost of an
update: the entries of the tables that mention the variable, along its axis. `iterated_conditional_modes` follows one climb
update by update; the engine `IteratedConditionalModes` climbs in compiled code from many starts.
Use it to polish a configuration, or as the simplest search for a most probable one when exact search is too wide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import State
from markovia.inference.local_search.local_search import LocalSearch, from_starts
from markovia.inference.local_search.search_space import BestSoFar, Outcome, SearchSpace
from markovia.inference.problem import Problem
from markovia.kernels.maximising.search_records import SearchState
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import FromZero
from markovia.runtime.seeds import generator, kernel_seed

Selection = Literal["cyclic", "random", "greedy"] | Sequence[str]


@dataclass(frozen=True)
class ConditionalModes:
    """Where the search ended and how it got there.

    Attributes
    ----------
    states
        The final configuration, a state for every variable.
    log_weight
        The log of its unnormalised weight.
    trace
        For each update that was tried: the variable, the state it got, and the log weight after it.
    """

    states: dict[str, State]
    log_weight: float
    trace: list[tuple[str, State, float]]


def iterated_conditional_modes(
    problem: Problem,
    start: Mapping[str, State],
    selection: Selection = "cyclic",
    seed: int | np.random.Generator | None = None,
) -> ConditionalModes:
    """Climb from a configuration to a local maximum.

    Parameters
    ----------
    problem
        Variables, pieces and findings; variables fixed by hard findings keep their state.
    start
        A state for every variable that is not fixed.
    selection
        Visit the variables in order ("cyclic"), in a new random order each round ("random"), or always the one whose
        change gains most ("greedy"); or exactly the named variables, once each in the given order.
    seed
        Seed of the random order.

    Raises
    ------
    InvalidArgument
        If the start lacks a variable or the selection is unknown.
    """
    if isinstance(selection, str) and selection not in ("cyclic", "random", "greedy"):
        raise InvalidArgument(f"selection= is 'cyclic', 'random', 'greedy' or names, not {selection!r}")
    climb = _Climb(problem, start)
    rng = generator(seed)
    free = problem.free
    if not isinstance(selection, str):
        for name in selection:
            if name not in free:
                raise UnknownVariable(name, free, "the free variables")
            climb.update(name)
        return ConditionalModes(climb.states(), climb.log_weight, climb.trace)
    improved = True
    while improved and free:
        improved = False
        if selection == "greedy":
            improved = climb.update(max(free, key=climb.gain))
            continue
        for name in free if selection == "cyclic" else rng.permutation(free):
            improved |= climb.update(str(name))
    return ConditionalModes(climb.states(), climb.log_weight, climb.trace)


class _Climb:
    """A configuration, and the log tables that mention each variable."""

    def __init__(self, problem: Problem, start: Mapping[str, State]) -> None:
        self.problem = problem
        self.codes: dict[str, int] = {}
        for name, variable in problem.variables.items():
            finding = problem.findings.get(name)
            if finding is not None and finding.code is not None:
                self.codes[name] = finding.code
            elif name in start:
                self.codes[name] = variable.index(start[name])
            else:
                raise InvalidArgument(f"the start has no state for {name!r}")
        factors = [p.factor() if isinstance(p, Conditional) else p for p in problem.pieces]
        factors += [f.factor() for f in problem.findings.values() if not f.hard]
        self.tables = [(f.names, f.log_values) for f in factors]
        self.touching: dict[str, list[int]] = {name: [] for name in problem.variables}
        for k, (names, _) in enumerate(self.tables):
            for name in names:
                self.touching[name].append(k)
        self.trace: list[tuple[str, State, float]] = []
        self.log_weight = self._weigh()

    def _weigh(self) -> float:
        return float(sum(t[tuple(self.codes[n] for n in names)] for names, t in self.tables))

    def scores(self, name: str) -> Array:
        """Return the log weight of each state of a variable, all others as they are, from its tables alone."""
        total = np.zeros(len(self.problem.variables[name]))
        for k in self.touching[name]:
            names, table = self.tables[k]
            total += table[tuple(slice(None) if n == name else self.codes[n] for n in names)]
        return total

    def gain(self, name: str) -> float:
        """Return how much the best single change of a variable would add to the log weight."""
        scores = self.scores(name)
        best, now = float(scores.max()), float(scores[self.codes[name]])
        return 0.0 if best == now else best - now

    def update(self, name: str) -> bool:
        """Move one variable to its best state; ties keep the present state."""
        scores = self.scores(name)
        now, best = self.codes[name], int(np.argmax(scores))
        changed = bool(scores[best] > scores[now])
        if changed:
            self.codes[name] = best
            gain = float(scores[best] - scores[now])
            self.log_weight = self.log_weight + gain if np.isfinite(gain) else self._weigh()
        self.trace.append((name, self.problem.variables[name].states[self.codes[name]], self.log_weight))
        return changed

    def states(self) -> dict[str, State]:
        return {n: v.states[self.codes[n]] for n, v in self.problem.variables.items()}


@dataclass(frozen=True)
class IteratedConditionalModes(LocalSearch):
    """Best configurations by changing one variable at a time, from several starts.

    Parameters
    ----------
    selection
        Visit the variables in order ("cyclic"), in a new random order each round ("random"), or always make the change
        that gains most ("greedy").
    restarts
        Climbs after the first. The first one starts from `start`, or from the states that the tables over single
        variables prefer; the others from random configurations.
    start
        A state for every free variable.
    seed, time_limit, progress
        Seed of the random numbers, seconds, and whether to show a bar (by default on a terminal).

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.IteratedConditionalModes(restarts=20, seed=0)
    >>> mk.examples.sprinkler().map(given={"wet": "yes"}, engine=engine).to_dict()
    {'cloudy': 'yes', 'sprinkler': 'no', 'rain': 'yes'}
    """

    selection: Literal["cyclic", "random", "greedy"] = "cyclic"
    restarts: FromZero = 9

    name: ClassVar[str] = "icm"

    def _search(self, space: SearchSpace, rng: np.random.Generator, done: BestSoFar) -> Outcome:
        def run(codes: Ints) -> bool:
            return climb(space, codes, self.selection, rng, done)

        return from_starts(run, self._first(space), self.restarts, rng, done)


def climb(space: SearchSpace, codes: Ints, selection: str, rng: np.random.Generator, done: BestSoFar) -> bool:
    """Climb from a configuration to a one-change local maximum, in place; return whether it got there in time."""
    from markovia.kernels.maximising.local_search import best_moves, fill_scores, sweep

    graph, state = space.arrays, kernel_seed(rng)
    score = np.empty(len(space.unary))
    order = np.arange(len(codes), dtype=np.int64)
    until = np.zeros(len(space.unary), dtype=np.int64)
    while True:
        fill_scores(graph, codes, score)
        if selection == "greedy":
            scores = np.array([space.score(codes)] * 2)
            search = SearchState(codes, score, state, codes.copy(), scores)
            moves = best_moves(graph, 1000, 0, 0, 0, until, search)
            more = moves == 1000
        else:
            if selection == "random":
                order = rng.permutation(len(codes)).astype(np.int64)
            _, moves = sweep(graph, order, np.inf, state, codes, score)
            more = moves > 0
        done.note(codes, space.score(codes), 1, moves)
        if not more:
            return True
        if done.over():
            return False
