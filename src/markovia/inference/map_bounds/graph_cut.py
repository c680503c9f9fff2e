"""Exact most probable states of binary models whose pairs attract, by one minimum cut.

Method: the negative log weights of binary variables and pairs are the capacities of a network; where every pair is
*submodular*, `log f(0,0) + log f(1,1) >= log f(0,1) + log f(1,0)`, the minimum cut is the best configuration.
Renaming the states of some variables (0 for 1) may make all pairs submodular, as on a bipartite graph whose pairs
repel; this is tried first. With `roof_duality` any binary pairwise model is taken: a cut in a network of twice the
size bounds the weight and fixes the *persistent* variables, which have the same state in some best configuration;
the others are filled in by local search.
References: Greig, Porteous and Seheult (1989); Kolmogorov and Zabih (2004); Boros and Hammer (2002); Boykov and
Kolmogorov (2004) for the cut. Cost: about linear in the number of pairs on images.
Use it for binary denoising and foreground segmentation. More states: `alpha-expansion`. Pairs that repel: `trw-s`.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from markovia.errors import Unanswered
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.map_bounds.certified import Certified, answer, nothing, polished
from markovia.inference.map_bounds.flow_network import FlowNetwork
from markovia.inference.problem import Problem
from markovia.inference.result import Ranked, Record
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import TimeLimit
from markovia.runtime.clock import now

ROUNDING = 1e-10
"""How far from submodular a pair may be, relative to its log values, and still count as rounding."""


@dataclass(frozen=True)
class CutDetails:
    """The flow, variables whose two states were swapped, and those proved to have their state in a best configuration."""

    flow: float
    renamed: int = 0
    persistent: float = 1.0
    persistent_variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class GraphCut(Certified):
    """Exact maximisation of binary pairwise models whose pairs attract.

    Parameters
    ----------
    roof_duality
        Also take binary pairwise models that are not submodular: the answer then has a bound, and
        `info.details.persistent` is the share of variables that are proved to have their state in a best
        configuration.
    time_limit
        Seconds after which to give up; the answer is then found by local search and not exact.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.generators.ising_grid(20, 20, coupling=0.4, field="random", seed=0)
    >>> found = model.map(engine="graph-cut")
    >>> found.info.exact, found.gap
    (True, 0.0)
    """

    roof_duality: bool = False
    time_limit: TimeLimit = None

    name: ClassVar[str] = "graph-cut"

    def _solve(self, problem: Problem) -> Ranked:
        """Return the best configuration."""
        deadline = np.inf if self.time_limit is None else now() + self.time_limit
        graph = flat_graph(problem)
        self._check(graph)
        if graph.log_scale == -np.inf:
            return nothing()
        costs = _cleaned(*_costs(graph), graph.scope[0::2], graph.scope[1::2])
        if costs is None:
            return nothing()
        unary, pairs = costs
        left, right = graph.scope[0::2], graph.scope[1::2]
        excess = _excess(pairs)
        flip = _renaming(left, right, excess, len(unary))
        if flip is None and not self.roof_duality:
            k = int(np.argmin(excess))
            a, b = (graph.names[i] for i in (left[k], right[k]))
            raise Unanswered(
                f"the model is not submodular: the factor of {a!r} and {b!r} prefers different states, and no renaming of "
                "states helps; use engine='trw-s', or engines.GraphCut(roof_duality=True) for a bound (for more states "
                "'alpha-expansion')"
            )
        if flip is None:
            return self._roof(graph, unary, pairs, excess < 0, deadline)
        unary[flip] = unary[flip, ::-1]
        pairs[flip[left]] = pairs[flip[left], ::-1]
        pairs[flip[right]] = pairs[flip[right], :, ::-1]
        terms = _terms(pairs)
        slope = _added(_added(np.zeros(len(unary)), left, terms.left), right, terms.right)
        constant, terminal = _terminal(unary, slope)
        network = FlowNetwork(len(unary), left, right)
        cut = network.cut(terms.there, terms.back, terminal, deadline)
        if cut.finished and cut.flow == np.inf:
            return nothing()
        codes = cut.ones ^ flip
        if not cut.finished:
            codes = polished(graph, codes)
        bound = graph.log_scale - constant - terms.constant - cut.flow
        details = CutDetails(cut.flow, renamed=int(flip.sum()))
        return answer(graph, codes, bound, Record(converged=cut.finished, details=details))

    def _check(self, graph: FlatGraph) -> None:
        many = np.flatnonzero(graph.cards > 2)
        if len(many):
            i = int(many[0])
            raise Unanswered(
                f"engine 'graph-cut' needs variables of two states, but {graph.names[i]!r} has {graph.cards[i]}; "
                "use engine='alpha-expansion' or 'trw-s'"
            )
        wide = np.flatnonzero(graph.arity > 2)
        if len(wide):
            scope = [graph.names[i] for i in graph.members(int(wide[0]))]
            raise Unanswered(
                f"engine 'graph-cut' needs factors of at most two variables, but one has {len(scope)} "
                f"({', '.join(scope[:4])}{', ...' if len(scope) > 4 else ''}); use engine='trw-s' or 'dual-decomposition'"
            )

    def _roof(self, graph: FlatGraph, unary: Array, pairs: Array, repel: Flags, deadline: float) -> Ranked:
        """Solve the cut in which every variable has a second node that stands for its negation."""
        n = len(unary)
        left, right = graph.scope[0::2], graph.scope[1::2]
        pairs[repel] = pairs[repel, :, ::-1]
        terms = _terms(pairs)
        slope = _added(np.zeros(n), left, terms.left)
        slope = _added(slope, right, np.where(repel, -terms.right, terms.right))
        constant, terminal = _terminal(unary, slope)
        constant += terms.constant + float(terms.right[repel].sum())
        other = np.where(repel, right + n, right)
        tails = np.concatenate([left, np.where(repel, right, right + n)])
        heads = np.concatenate([other, left + n])
        network = FlowNetwork(2 * n, tails, heads)
        cut = network.cut(
            np.tile(terms.there, 2), np.tile(terms.back, 2), np.concatenate([terminal, -terminal]), deadline
        )
        if cut.finished and cut.flow == np.inf:
            return nothing()
        persistent = cut.ones[:n] != cut.ones[n:] if cut.finished else np.zeros(n, dtype=np.bool_)
        codes = np.where(persistent, cut.ones[:n], (terminal < 0).astype(np.int64))
        codes = polished(graph, codes, persistent)
        bound = graph.log_scale - constant - cut.flow / 2
        share = float(persistent.mean()) if n else 1.0
        names = tuple(graph.names[i] for i in np.flatnonzero(persistent))
        details = CutDetails(cut.flow / 2, persistent=share, persistent_variables=names)
        return answer(graph, codes, bound, Record(converged=cut.finished, details=details))


class _Terms(NamedTuple):
    """Pair costs as `constant + left x_i + right x_j + there (1 - x_i) x_j + back x_i (1 - x_j)`, summed constants."""

    constant: float
    left: Array
    right: Array
    there: Array
    back: Array


def _costs(graph: FlatGraph) -> tuple[Array, Array]:
    """Return the costs of states, shape (n, 2), and of pairs, shape (m, 2, 2); a missing state costs infinity."""
    n, m = len(graph.cards), graph.n_factors
    if np.all(graph.cards == 2):
        return -graph.log_unary.reshape(n, 2), -graph.log_values.reshape(m, 2, 2)
    unary, pairs = np.full((n, 2), np.inf), np.full((m, 2, 2), np.inf)
    rows, columns = graph.cards[graph.scope[0::2]], graph.cards[graph.scope[1::2]]
    for a in (0, 1):
        there = graph.cards > a
        unary[there, a] = -graph.log_unary[graph.starts[:-1][there] + a]
        for b in (0, 1):
            both = (rows > a) & (columns > b)
            where = graph.table_ptr[:-1][both] + a * columns[both] + b
            pairs[both, a, b] = -graph.log_values[where]
    return unary, pairs


def _cleaned(unary: Array, pairs: Array, left: Ints, right: Ints) -> tuple[Array, Array] | None:
    """Move what rules out a state altogether from pairs to states; None where nothing is possible.

    Afterwards a pair has at most two infinite costs, both on one diagonal.
    """
    if not np.isinf(pairs).any():
        return (unary, pairs) if not np.isinf(unary).all(axis=1).any() else None
    for axis, ends in ((2, left), (1, right)):
        for state in (0, 1):
            gone = np.isinf(pairs[:, state] if axis == 2 else pairs[:, :, state]).all(axis=1)
            unary[ends[gone], state] = np.inf
            if axis == 2:
                pairs[gone, state] = pairs[gone, 1 - state]
            else:
                pairs[gone, :, state] = pairs[gone, :, 1 - state]
    if np.isinf(pairs).all(axis=(1, 2)).any() or np.isinf(unary).all(axis=1).any():
        return None
    return unary, pairs


def _excess(pairs: Array) -> Array:
    """Return by how much each pair attracts: negative ones are not submodular, rounding counts as zero."""
    with np.errstate(invalid="ignore"):
        across, along = pairs[:, 0, 1] + pairs[:, 1, 0], pairs[:, 0, 0] + pairs[:, 1, 1]
        excess = across - along
        size = np.abs(pairs).max(axis=(1, 2), initial=0.0)
        return np.where(np.abs(excess) <= ROUNDING * np.where(np.isinf(size), 1.0, size), 0.0, excess)


def _renaming(left: Ints, right: Ints, excess: Array, n: int) -> Flags | None:
    """Return which variables to rename so that all pairs attract; None where no choice does."""
    if np.all(excess >= 0):
        return np.zeros(n, dtype=np.bool_)
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    used = excess != 0
    a, b, repel = left[used], right[used], excess[used] < 0
    rows = np.concatenate([a, a + n])
    columns = np.concatenate([np.where(repel, b + n, b), np.where(repel, b, b + n)])
    links = coo_matrix((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(2 * n, 2 * n))
    _, part = connected_components(links, directed=False)
    if np.any(part[:n] == part[n:]):
        return None
    flip: Flags = part[:n] > part[n:]
    return flip


def _terms(pairs: Array) -> _Terms:
    """Split the costs of submodular pairs."""
    a, b, c, d = (pairs[:, i, j] for i in (0, 1) for j in (0, 1))
    there, back = np.zeros(len(pairs)), np.zeros(len(pairs))
    no_b, no_c = np.isinf(b), np.isinf(c)
    if no_b.any() or no_c.any():
        there[no_b], back[no_c] = np.inf, np.inf
        both = no_b & no_c
        with np.errstate(invalid="ignore"):
            b = np.where(both, a, np.where(no_b, a + d - c, b))
            c = np.where(both, d, np.where(no_c, a + d - b, c))
    there = there + np.maximum(b + c - a - d, 0.0)
    return _Terms(float(a.sum()), c - a, d - c, there, back)


def _terminal(unary: Array, slope: Array) -> tuple[float, Array]:
    """Return the least total cost of states alone, and what state 1 costs more than state 0."""
    with np.errstate(invalid="ignore"):
        zero, one = unary[:, 0], unary[:, 1] + slope
        return float(np.minimum(zero, one).sum()), one - zero


def _added(total: Array, where: Ints, amounts: Array) -> Array:
    return total + np.bincount(where, weights=amounts, minlength=len(total))
