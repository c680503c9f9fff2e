"""Circuits of sums and products: distributions that answer every question by passes over their edges.

A leaf is a distribution of one variable; a product joins parts about different variables; a sum mixes parts about the same
ones, with weights that sum to one. So a variable that is not observed is a leaf of value one, the root is the probability
of the evidence, and its derivatives with respect to the leaves are the posteriors of all variables at once.
References: Darwiche (2003); Poon and Domingos (2011). Cost: edges times rows, up and down.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.factors.quantities.soft_findings import Interval
from markovia.factors.tables.conditional import draw_rows
from markovia.inference.flat_graphs.flat_tables import pointers
from markovia.runtime.array_types import Array, Flags, Ints

if TYPE_CHECKING:
    from markovia.kernels.flat_graphs.circuit_passes import CircuitTables

CELLS = 2**22
"""Values of a pass that are in memory at once."""
Evidence = Mapping[int, Any]
"""By variable: codes (rows,), -1 for a missing one; likelihoods (1, states); numbers (rows,), NaN; or an `Interval`."""


@dataclass(frozen=True, eq=False)
class Circuit:
    """Nodes as flat arrays: L leaves, then inner nodes, children before parents, the root last.

    Attributes
    ----------
    names, states
        The variables; None in place of states for numbers.
    variable, probs, means, variances
        Of each leaf: its variable, the probabilities of states (as many columns as the largest variable has), and for
        numbers mean and variance.
    sums, first, child, log_weight
        Of inner nodes: whether it is a sum, and its edges as in `CircuitTables`.
    selective
        Whether at most one term of every sum is positive, whatever the states: then maxima pass through sums.
    """

    names: tuple[str, ...]
    states: tuple[tuple[Any, ...] | None, ...]
    variable: Ints
    probs: Array
    means: Array
    variances: Array
    sums: Flags
    first: Ints
    child: Ints
    log_weight: Array
    selective: bool = False

    @cached_property
    def tables(self) -> "CircuitTables":
        """What kernels take."""
        from markovia.kernels.flat_graphs.circuit_passes import CircuitTables

        return CircuitTables(
            len(self.variable), self.sums, self.first, self.child, self.log_weight, self.variable
        )

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.variable) + len(self.sums)

    def leaf_logs(self, evidence: Evidence, rows: int, *, maximise: bool = False) -> Array:
        """Return the log value of each leaf in each row; of what is not observed 0, or that of its best state."""
        found = np.zeros((len(self.variable), rows))
        for v, states in enumerate(self.states):
            at = np.flatnonzero(self.variable == v)
            said = evidence.get(v)
            if said is None and not maximise:
                continue
            if states is None:
                found[at] = self._number_logs(at, said, rows)
                continue
            probs = self.probs[at, : len(states)]
            with np.errstate(divide="ignore"):
                if said is not None and said.ndim == 2:
                    found[at] = np.log((probs * said).max(axis=1) if maximise else probs @ said[0])[:, None]
                else:
                    missing = probs.max(axis=1) if maximise else np.ones(len(at))
                    logs = np.log(np.column_stack([probs, missing]))
                    found[at] = logs[:, [-1] if said is None else said]
        return found

    def _number_logs(self, at: Ints, said: Any, rows: int) -> Array:
        from scipy.special import log_ndtr

        mean, sd = self.means[at, None], np.sqrt(self.variances[at, None])
        if isinstance(said, Interval):
            # of both tails the one that is small, so that nothing is lost far out
            low, high = (said.low - mean) / sd, (said.high - mean) / sd
            low, high = log_ndtr(np.where(low > 0.0, (-high, -low), (low, high)))
            with np.errstate(divide="ignore"):
                return np.asarray(high + np.log(-np.expm1(low - high)))
        x = np.full(rows, np.nan) if said is None else said
        peak = -np.log(sd) - 0.5 * np.log(2.0 * np.pi)
        logs = peak - 0.5 * ((x - mean) / sd) ** 2
        return np.where(np.isnan(x), peak if said is None else 0.0, logs)

    def values(self, evidence: Evidence, rows: int, *, maximise: bool = False, bound: bool = False) -> Array:
        """Return the log value of each node in each row; with `bound` only leaves take maxima, an upper bound."""
        from markovia.kernels.flat_graphs.circuit_passes import upward

        found = np.empty((self.size, rows))
        found[: len(self.variable)] = self.leaf_logs(evidence, rows, maximise=maximise or bound)
        upward(self.tables, found, maximise)
        return found

    def slopes(self, values: Array) -> Array:
        """Return the log derivative of the root with respect to each node."""
        from markovia.kernels.flat_graphs.circuit_passes import downward

        found = np.empty_like(values)
        downward(self.tables, values, found)
        return found

    def blocks(self, evidence: Evidence, rows: int) -> Iterator[tuple[slice, Evidence]]:
        """Go through rows in blocks that fit into memory."""
        size = max(1, CELLS // self.size)
        for a in range(0, rows, size):
            part = slice(a, min(a + size, rows))
            own = {
                v: x if isinstance(x, Interval) or x.shape[0] != rows or x.ndim > 1 else x[part]
                for v, x in evidence.items()
            }
            yield part, own

    def log_masses(self, evidence: Evidence, rows: int = 1) -> Array:
        """Return the log probability (or density) of the evidence of each row."""
        found = np.empty(rows)
        for part, own in self.blocks(evidence, rows):
            found[part] = self.values(own, part.stop - part.start)[-1]
        return found

    def posterior(self, v: int, evidence: Evidence, slopes: Array) -> Array:
        """Return the probabilities of the states of a variable in each row, (rows, states), from the slopes of a pass.

        What is observed of the variable counts; where nothing is possible all are 0.
        """
        at = np.flatnonzero(self.variable == v)
        likelihoods, logs = self.likelihoods(v, evidence.get(v)), slopes[at]
        shares = np.exp(logs - np.where(np.isfinite(top := logs.max(axis=0)), top, 0.0))
        joint = shares.T @ self.probs[at, : likelihoods.shape[1]] * likelihoods
        total = joint.sum(axis=1, keepdims=True)
        return np.asarray(joint / np.where(total > 0.0, total, 1.0))

    def likelihoods(self, v: int, said: Any) -> Array:
        """Return what is said of a variable with states, as likelihoods of them, (rows, states)."""
        n = len(self.states[v] or ())
        if said is not None and said.ndim == 2:
            return np.asarray(said)
        return np.vstack([np.eye(n), np.ones(n)])[[-1] if said is None else said]

    def draw(self, n: int, values: Array, rng: np.random.Generator, evidence: Evidence) -> list[Any]:
        """Draw n values of each variable, codes or numbers, given the evidence that led to the values of one row."""

        def number(mean: Array, sd: Array, said: Interval | None) -> Array:
            from scipy.stats import truncnorm

            if said is None:
                return rng.normal(mean, sd)
            ends = ((end - mean) / sd for end in (said.low, said.high))
            return np.asarray(truncnorm.rvs(*ends, loc=mean, scale=sd, random_state=rng))

        chosen = self._chosen(n, values, False, rng)
        return self._filled(chosen, evidence, lambda weights: draw_rows(weights, n, rng), number)

    def best(self, evidence: Evidence) -> list[Any]:
        """Return the states (codes) and numbers along the largest terms: the best of all if the circuit is selective."""

        def number(mean: Array, sd: Array, said: Interval | None) -> Array:
            return mean if said is None else np.clip(mean, said.low, said.high)

        values = self.values(evidence, 1, maximise=True)
        chosen = self._chosen(1, values, True, np.random.default_rng(0))
        found = self._filled(chosen, evidence, lambda weights: weights.argmax(axis=1), number)
        return [x.item() for x in found]

    def _filled(
        self,
        chosen: Ints,
        evidence: Evidence,
        state: Callable[[Array], Ints],
        number: Callable[[Array, Array, Interval | None], Array],
    ) -> list[Any]:
        """Return values by variable: observed ones, and those that functions take from the leaves that were chosen."""
        found: list[Any] = []
        for v, states in enumerate(self.states):
            own, said = chosen[:, v], evidence.get(v)
            if states is not None:
                found.append(state(self.probs[own, : len(states)] * self.likelihoods(v, said)))
            elif said is None or isinstance(said, Interval):
                found.append(number(self.means[own], np.sqrt(self.variances[own]), said))
            else:
                found.append(np.repeat(said, len(own)))
        return found

    def _chosen(self, n: int, values: Array, greedy: bool, rng: np.random.Generator) -> Ints:
        from markovia.kernels.flat_graphs.circuit_passes import choose_leaves

        chosen = np.zeros((n, len(self.names)), dtype=np.int64)
        choose_leaves(self.tables, values, greedy, chosen, rng.integers(1, 2**63, 4, dtype=np.uint64))
        return chosen


@dataclass
class CircuitBuilder:
    """Puts circuits together from below; a node is known by the number that adding it returns, leaves below zero."""

    states: Sequence[tuple[Any, ...] | None]
    leaves: list[tuple[int, Any, float, float]] = field(default_factory=list)
    inner: list[tuple[bool, list[int], list[float]]] = field(default_factory=list)

    def leaf(self, v: int, probs: Any, mean: float = 0.0, variance: float = 1.0) -> int:
        """Add the distribution of one variable."""
        self.leaves.append((v, probs, mean, variance))
        return -len(self.leaves)

    def node(self, children: Sequence[int], weights: Sequence[float] | None = None) -> int:
        """Add a product, or a sum where there are weights; of one child, that child."""
        if len(children) == 1:
            return children[0]
        logs = [0.0] * len(children) if weights is None else [float(np.log(w)) for w in weights]
        self.inner.append((weights is not None, list(children), logs))
        return len(self.inner) - 1

    def build(self, names: Sequence[str]) -> Circuit:
        """Return the circuit, whose root is the node that was added last; a single leaf is a sum of one."""
        if not self.inner:
            self.inner.append((True, [-1], [0.0]))
        n, wide = len(self.leaves), max([len(s) for s in self.states if s is not None], default=1)
        probs = np.zeros((n, wide))
        for k, (v, own, _, _) in enumerate(self.leaves):
            if self.states[v] is not None:
                probs[k, : len(own)] = own
        flat = [c for _, children, _ in self.inner for c in children]
        return Circuit(
            tuple(names), tuple(self.states), np.array([leaf[0] for leaf in self.leaves], dtype=np.int64), probs,
            np.array([leaf[2] for leaf in self.leaves]), np.array([leaf[3] for leaf in self.leaves]),
            np.array([is_sum for is_sum, _, _ in self.inner]),
            pointers(np.array([len(c) for _, c, _ in self.inner])),
            np.array([c + n if c >= 0 else -c - 1 for c in flat], dtype=np.int64),
            np.array([w for _, _, logs in self.inner for w in logs]),
        )  # fmt: skip
