"""Finite Markov chains: what they converge to, whether and how fast; and the exact transition matrices of samplers.

Rows are the present state, columns the next one: `transition[i, j]` is the probability of going from i to j, and
distributions are row vectors, so a step is `p @ transition`. Classes are the strongly connected components of the graph of
possible moves; a class is recurrent if no move leaves it; its period is the greatest common divisor of its cycle lengths.
References: Norris (1997); Levin, Peres and Wilmer (2009). Cost: O(states**3) at most; made for teaching and for checking
samplers on models small enough to enumerate.
"""

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from itertools import product
from math import gcd, prod
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, InvalidTable, TooLarge
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.problem import Problem
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import numbers
from markovia.runtime.seeds import Seed, generator

TOLERANCE = 1e-9
MOST_STATES = 4096


class FiniteChain:
    """A homogeneous Markov chain on finitely many states; `mk.MarkovChain` adds what is learned from data.

    Parameters
    ----------
    transition
        A square table whose rows sum to one: the row is the present state.
    states
        Names of the states; 0, 1, ... by default.

    Examples
    --------
    >>> chain = FiniteChain([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.1, 0.4, 0.5]])
    >>> (13 * chain.stationary()).round(6).tolist()
    [3.0, 5.0, 5.0]
    >>> chain.is_regular, chain.mixing_time(0.01)
    (True, 6)
    """

    def __init__(self, transition: ArrayLike, states: Iterable[Hashable] | None = None) -> None:
        table = numbers(transition, "a transition table is a square array of numbers", InvalidTable)
        if table.ndim != 2 or table.shape[0] != table.shape[1] or not len(table):
            raise InvalidTable(f"a transition table is square, one row a state, not of shape {table.shape}")
        names = list(range(len(table))) if states is None else list(states)
        if len(names) != len(table) or len(set(names)) < len(names):
            raise InvalidArgument(f"states= names {len(table)} different states, not {names!r}")
        if not np.isfinite(table).all() or (table < 0).any():
            raise InvalidTable("a transition table holds probabilities, zero or more")
        sums = table.sum(axis=1)
        wrong = np.flatnonzero(np.abs(sums - 1.0) > 1e-6)
        if len(wrong):
            i = int(wrong[0])
            hint = "; its columns do, so transpose it" if np.abs(table.sum(axis=0) - 1.0).max() < 1e-6 else ""
            raise InvalidTable(f"the row of state {names[i]!r} sums to {sums[i]:.6g}, not to 1{hint}")
        self.transition: Array = table / sums[:, None]
        self.transition.setflags(write=False)
        self.states: list[Any] = names
        self._index = {s: i for i, s in enumerate(names)}

    def __len__(self) -> int:
        return len(self.states)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} states, {len(self.communicating_classes)} communicating classes)"

    # -- structure -----------------------------------------------------------------------------------------------

    @cached_property
    def _components(self) -> Ints:
        from scipy.sparse.csgraph import connected_components

        _, labels = connected_components(self.transition > 0, directed=True, connection="strong")
        return np.asarray(labels, dtype=np.int64)

    @cached_property
    def communicating_classes(self) -> list[list[Any]]:
        """The classes of states that can reach each other, in the order of their first states."""
        labels = self._components
        order = sorted({int(c) for c in labels}, key=lambda c: int(np.argmax(labels == c)))
        return [[self.states[i] for i in np.flatnonzero(labels == c)] for c in order]

    @cached_property
    def recurrent_classes(self) -> list[list[Any]]:
        """The classes that the chain never leaves."""
        found = []
        for members in self.communicating_classes:
            inside = np.array([self._index[s] for s in members])
            outside = np.setdiff1d(np.arange(len(self)), inside)
            if not (self.transition[np.ix_(inside, outside)] > 0).any():
                found.append(members)
        return found

    @property
    def transient_states(self) -> list[Any]:
        """The states that the chain leaves for ever."""
        kept = {s for members in self.recurrent_classes for s in members}
        return [s for s in self.states if s not in kept]

    def period(self, state: Hashable | None = None) -> int:
        """Return the greatest common divisor of the lengths of the ways back to a state; 0 if there is no way back.

        Without a state, that of an irreducible chain.
        """
        if state is None:
            if not self.is_irreducible:
                raise InvalidArgument(
                    "the chain is not irreducible, so periods differ by class: name a state in period(state)"
                )
            i = 0
        else:
            i = self._at(state)
        inside = self._components == self._components[i]
        level = {i: 0}
        queue = [i]
        found = 0
        for a in queue:
            for b in np.flatnonzero((self.transition[a] > 0) & inside).tolist():
                if b in level:
                    found = gcd(found, abs(level[a] + 1 - level[b]))
                else:
                    level[b] = level[a] + 1
                    queue.append(b)
        return found

    @property
    def is_irreducible(self) -> bool:
        """Whether every state can be reached from every other one."""
        return len(self.communicating_classes) == 1

    @property
    def is_aperiodic(self) -> bool:
        """Whether every recurrent state has period 1."""
        return all(self.period(members[0]) == 1 for members in self.recurrent_classes)

    @property
    def is_regular(self) -> bool:
        """Whether some power of the table is positive: then every start leads to one limit (the chain is ergodic)."""
        return self.is_irreducible and self.period() == 1

    is_ergodic = is_regular

    # -- the long run --------------------------------------------------------------------------------------------

    def stationary(self) -> Array:
        """Return the distribution that a step leaves as it is.

        Raises
        ------
        InvalidArgument
            If there are several, one for each recurrent class; see `stationary_distributions`.
        """
        found = self.stationary_distributions()
        if len(found) > 1:
            raise InvalidArgument(
                f"the chain has {len(found)} recurrent classes, so many stationary distributions; "
                "stationary_distributions() gives one for each class"
            )
        return found[0]

    def stationary_distributions(self) -> list[Array]:
        """Return the stationary distribution of each recurrent class; all others are mixtures of these."""
        found = []
        for members in self.recurrent_classes:
            inside = np.array([self._index[s] for s in members])
            part = self.transition[np.ix_(inside, inside)].copy()
            n = len(inside)
            for k in range(n - 1, 0, -1):  # state reduction (Grassmann, Taksar, Heyman 1985): no subtraction
                total = part[k, :k].sum()
                part[:k, k] /= total
                part[:k, :k] += np.outer(part[:k, k], part[k, :k])
            weights = np.zeros(n)
            weights[0] = 1.0
            for k in range(1, n):
                weights[k] = weights[:k] @ part[:k, k]
            whole = np.zeros(len(self))
            whole[inside] = weights / weights.sum()
            found.append(whole)
        return found

    def satisfies_detailed_balance(self, distribution: ArrayLike | None = None) -> bool:
        """Say whether `p(i) T(i, j) = p(j) T(j, i)` for all states; p is the stationary distribution by default."""
        p = self.stationary() if distribution is None else self._distribution(distribution)
        flow = p[:, None] * self.transition
        return bool(np.abs(flow - flow.T).max() <= TOLERANCE)

    is_reversible = property(
        satisfies_detailed_balance, doc="Whether the chain looks the same backwards in time."
    )

    def is_stationary(self, distribution: ArrayLike) -> bool:
        """Say whether a step leaves a distribution as it is."""
        p = self._distribution(distribution)
        return bool(np.abs(p @ self.transition - p).max() <= TOLERANCE)

    def reversed(self) -> Self:
        """Return the chain backwards in time: `q(j, i) = p(i) T(i, j) / p(j)` with the stationary p."""
        p = self.stationary()
        if (p <= 0).any():
            raise InvalidArgument("a chain with transient states has no reversed chain on all its states")
        return type(self)((p[:, None] * self.transition).T / p[:, None], self.states)

    def eigenvalues(self) -> Any:
        """Return the eigenvalues, the largest first and the most negative last; complex where the chain turns in circles.

        The first is 1, once for each recurrent class. How fast the start is forgotten is the size of the next one, of
        whatever sign; see `spectral_gap`.

        Examples
        --------
        >>> import markovia as mk
        >>> chain = mk.MarkovChain([[0.25, 0.75, 0.0], [0.5, 0.0, 0.5], [0.0, 0.75, 0.25]])
        >>> chain.eigenvalues().round(6).tolist(), round(chain.spectral_gap(), 6)
        ([1.0, 0.25, -0.75], 0.25)
        """
        found = np.linalg.eigvals(self.transition)
        # what rounding makes of a real one that occurs twice is a pair of complex ones side by side
        parts = found.real if np.all(np.abs(found.imag) <= 1e-7) else found
        return parts[np.lexsort((-found.imag, -found.real))]

    def spectral_gap(self) -> float:
        """Return 1 less the size of the second largest eigenvalue: zero where the start is never forgotten."""
        sizes = np.sort(np.abs(np.linalg.eigvals(self.transition)))
        return float(max(0.0, 1.0 - sizes[-2])) if len(sizes) > 1 else 1.0

    # -- the way there -------------------------------------------------------------------------------------------

    def after(self, steps: int, start: object = None) -> Array:
        """Return the distribution after so many steps from a state, a distribution, or (None) the uniform one."""
        p = self._start(start)
        return np.asarray(p @ np.linalg.matrix_power(self.transition, steps))

    def total_variation(self, steps: int, start: object = None) -> Array:
        """Return the distance to the stationary distribution after 0, 1, ..., steps, in total variation."""
        p, limit = self._start(start), self.stationary()
        found = np.empty(steps + 1)
        for t in range(steps + 1):
            found[t] = 0.5 * np.abs(p - limit).sum()
            p = p @ self.transition
        return found

    def mixing_time(self, distance: float = 0.25) -> int:
        """Return after how many steps every start is within a distance (total variation) of the stationary distribution.

        Raises
        ------
        InvalidArgument
            If the chain is not regular, and so never gets there.
        """
        if not 0 < distance < 1:
            raise InvalidArgument(f"distance= lies between 0 and 1, not at {distance!r}")
        if not self.is_regular:
            raise InvalidArgument(
                "the chain does not forget its start: it is not irreducible, or it is periodic"
            )
        limit = self.stationary()

        def far(power: Array) -> bool:
            return bool(0.5 * np.abs(power - limit).sum(axis=1).max() > distance)

        if not far(np.eye(len(self))):
            return 0
        powers = [self.transition]
        while far(powers[-1]):
            powers.append(powers[-1] @ powers[-1])
            if len(powers) > 60:
                raise TooLarge("the chain needs more than 2**60 steps")
        steps, power = 0, np.eye(len(self))
        for k in range(len(powers) - 1, -1, -1):
            further = power @ powers[k]
            if far(further):
                steps, power = steps + 2**k, further
        return steps + 1

    def simulate(self, steps: int, start: object = None, seed: Seed = None) -> list[Any]:
        """Return a path of states: the start (drawn from a distribution if it is one) and so many steps."""
        rng = generator(seed)
        i = int(rng.choice(len(self), p=self._start(start)))
        cumulative = np.cumsum(self.transition, axis=1)
        last = [int(np.flatnonzero(row)[-1]) for row in self.transition]
        path = [self.states[i]]
        for u in rng.random(steps):
            i = min(int(np.searchsorted(cumulative[i], u, side="right")), last[i])
            path.append(self.states[i])
        return path

    # -- getting somewhere ---------------------------------------------------------------------------------------

    def hitting_probabilities(self, targets: object) -> Array:
        """Return, for each state as the start, the probability of ever being in one of some states.

        Parameters
        ----------
        targets
            A state or a list of states.

        Examples
        --------
        >>> import markovia as mk
        >>> ruin = mk.MarkovChain([[1, 0, 0, 0], [0.6, 0, 0.4, 0], [0, 0.6, 0, 0.4], [0, 0, 0, 1]])
        >>> ruin.hitting_probabilities(3).round(4).tolist()
        [0.0, 0.2105, 0.5263, 1.0]
        """
        inside = self._members(targets)
        found = inside.astype(np.float64)
        between = self._leads_to(inside) & ~inside
        if between.any():
            part = self.transition[between]
            found[between] = np.linalg.solve(
                np.eye(int(between.sum())) - part[:, between], part[:, inside].sum(axis=1)
            )
        return np.clip(found, 0.0, 1.0)

    def hitting_times(self, targets: object) -> Array:
        """Return, for each state as the start, the expected steps until one of some states; infinite where that may fail.

        Examples
        --------
        >>> import markovia as mk
        >>> mk.MarkovChain([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.1, 0.4, 0.5]]).hitting_times(2).round(6).tolist()
        [4.8, 2.8, 0.0]
        """
        inside = self._members(targets)
        lost = ~self._leads_to(inside)
        # from where a lost state can be reached before the targets
        fails = self._leads_to(lost, around=inside) if lost.any() else lost
        found = np.where(fails, np.inf, 0.0)
        between = ~fails & ~inside
        if between.any():
            part = self.transition[np.ix_(between, between)]
            found[between] = np.linalg.solve(np.eye(len(part)) - part, np.ones(len(part)))
        return found

    def absorption_probabilities(self) -> Array:
        """Return the probability of ending in each recurrent class (columns) from each state (rows).

        Examples
        --------
        >>> import markovia as mk
        >>> mk.MarkovChain([[1, 0, 0], [0.25, 0.5, 0.25], [0, 0, 1]]).absorption_probabilities()[1].tolist()
        [0.5, 0.5]
        """
        return np.column_stack([self.hitting_probabilities(members) for members in self.recurrent_classes])

    def absorption_times(self) -> Array:
        """Return the expected steps until the chain is in a class that it never leaves, from each state."""
        return self.hitting_times([s for members in self.recurrent_classes for s in members])

    def _members(self, targets: object) -> Flags:
        single = isinstance(targets, Hashable) and targets in self._index
        named = [targets] if single or not isinstance(targets, Iterable) else list(targets)
        if not named:
            raise InvalidArgument("name at least one state to reach")
        found = np.zeros(len(self), dtype=bool)
        found[[self._at(state) for state in named]] = True
        return found

    def _leads_to(self, inside: Flags, around: Flags | None = None) -> Flags:
        """Return from which states some others can be reached, those included, without a step from some others still."""
        moves = self.transition > 0
        if around is not None:
            moves = moves & ~around[:, None]
        found = inside.copy()
        while (more := moves[:, found].any(axis=1) & ~found).any():
            found |= more
        return found

    # -- exact kernels of samplers -------------------------------------------------------------------------------

    @classmethod
    def gibbs(cls, model: Any, scan: Literal["systematic", "random"] | int = "random") -> Self:
        """Return the exact chain of Gibbs sampling on a small model.

        Parameters
        ----------
        model
            A model, or a `Problem` with evidence.
        scan
            "random" updates one variable chosen at random, "systematic" all in model order; a number updates just that
            variable (counted among the free ones).

        Returns
        -------
        the chain
            Its states are tuples of states of the free variables. Only configurations of positive weight are states.

        Examples
        --------
        >>> import markovia as mk
        >>> model = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[9, 1], [1, 9]])])
        >>> chain = mk.MarkovChain.gibbs(model)
        >>> chain.states
        [(0, 0), (0, 1), (1, 0), (1, 1)]
        >>> chain.eigenvalues().round(6).tolist()
        [1.0, 0.9, 0.1, 0.0]
        """
        graph, codes, p, names = _enumerated(model)
        n = len(graph.variables)

        def single(i: int) -> Array:
            rest = np.delete(codes, i, axis=1)
            _, group = np.unique(rest, axis=0, return_inverse=True)
            group = group.ravel()
            same = group[:, None] == group[None, :]
            weights = same * p[None, :]
            return np.asarray(weights / weights.sum(axis=1, keepdims=True))

        if isinstance(scan, int) and not isinstance(scan, bool) and 0 <= scan < n:
            table = single(scan)
        elif scan == "random":
            table = np.mean([single(i) for i in range(n)], axis=0)
        elif scan == "systematic":
            table = np.eye(len(p))
            for i in range(n):
                table = table @ single(i)
        else:
            raise InvalidArgument(
                f"scan= is 'systematic', 'random' or the number of a variable, not {scan!r}"
            )
        return cls(table, names)

    @classmethod
    def metropolis(
        cls, target: ArrayLike, proposal: "ArrayLike | FiniteChain", states: Iterable[Hashable] | None = None
    ) -> Self:
        """Return the exact Metropolis-Hastings chain for a target (any positive scale) and a table of proposals.

        Examples
        --------
        >>> import markovia as mk
        >>> chain = mk.MarkovChain.metropolis([2, 3, 2], [[1 / 3] * 3] * 3)
        >>> (9 * chain.transition).round(6).tolist()
        [[3.0, 3.0, 3.0], [2.0, 5.0, 2.0], [3.0, 3.0, 3.0]]
        """
        p = np.asarray(target, dtype=np.float64)
        q = proposal.transition if isinstance(proposal, FiniteChain) else FiniteChain(proposal).transition
        if p.shape != (len(q),) or (p < 0).any() or not p.sum() > 0:
            raise InvalidArgument(
                f"the target has one weight, zero or more, for each of the {len(q)} states of the proposal"
            )
        forward = p[:, None] * q
        accept = np.where(
            forward > 0, np.minimum(1.0, forward.T / np.where(forward > 0, forward, 1.0)), q.T > 0
        )
        table = q * accept
        table[np.diag_indices(len(q))] = 0.0
        table[np.diag_indices(len(q))] = 1.0 - table.sum(axis=1)
        return cls(np.maximum(table, 0.0), states)

    # -- helpers -------------------------------------------------------------------------------------------------

    def _at(self, state: object) -> int:
        found = self._index.get(state)
        if found is None:
            raise InvalidArgument(
                f"{state!r} is no state of the chain; there are {', '.join(map(repr, self.states[:8]))}"
            )
        return int(found)

    def _start(self, start: object) -> Array:
        if start is None:
            return np.full(len(self), 1.0 / len(self))
        if isinstance(start, Hashable) and start in self._index:
            return np.asarray(np.eye(len(self))[self._index[start]])
        if isinstance(start, np.ndarray | list | tuple):
            return self._distribution(start)
        return np.asarray(np.eye(len(self))[self._at(start)])

    def _distribution(self, given: ArrayLike) -> Array:
        p = np.asarray(given, dtype=np.float64)
        if p.shape != (len(self),) or (p < 0).any() or abs(p.sum() - 1.0) > 1e-6:
            raise InvalidArgument(f"a distribution is {len(self)} probabilities that sum to 1, not {given!r}")
        return np.asarray(p / p.sum())


def _enumerated(model: Any) -> tuple[FlatGraph, Ints, Array, Sequence[Any]]:
    """Return the configurations of positive weight of a small model, their probabilities and names."""
    if isinstance(model, Problem):
        problem = model
    elif hasattr(model, "pieces") and hasattr(model, "variable"):
        problem = Problem({n: model.variable(n) for n in model.variables}, model.pieces(), {})
    else:
        raise InvalidArgument(f"the exact chain is made from a model or a problem, not from {model!r}")
    graph = flat_graph(problem)
    size = prod(int(c) for c in graph.cards)
    if size > MOST_STATES:
        raise TooLarge(f"{size:,} configurations are over the limit of {MOST_STATES:,} for an exact chain")
    codes = np.array(list(product(*(range(int(c)) for c in graph.cards))), dtype=np.int64)
    codes = codes.reshape(size, len(graph.variables))
    logs = graph.log_weights(codes)
    kept = ~np.isneginf(logs)
    if not kept.any():
        raise InvalidArgument("no configuration has a positive weight, so there is nothing to sample")
    codes, logs = codes[kept], logs[kept]
    p = np.exp(logs - logs.max())
    names = [tuple(v.states[k] for v, k in zip(graph.variables, row, strict=True)) for row in codes.tolist()]
    return graph, codes, p / p.sum(), names
