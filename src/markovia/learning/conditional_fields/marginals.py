"""Marginals of many pairwise fields at once, by six methods behind one function.

Exact on graphs without cycles (sum-product on trees) and on narrow ones (clique trees); otherwise from loopy or
tree-reweighted belief propagation, mean field, or Gibbs sampling; for pseudo-likelihood, each node given its
neighbours' labels. Instances are spread over threads in fixed blocks whose sums are added in order, so the answer
does not depend on the number of threads. References: Lafferty, McCallum and Pereira (2001); Wainwright, Jaakkola and
Willsky (2005); Besag (1975); Younes (1989) for persistent chains. Cost on trees: nodes times k squared.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, TooLarge
from markovia.kernels.fields.crf_records import FieldBeliefs, LogPotentials
from markovia.kernels.plain_code import either
from markovia.learning.conditional_fields.clique_plan import MOST_ENTRIES
from markovia.learning.conditional_fields.fields import Fields
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel

Method = Literal["auto", "exact", "loopy-bp", "tree-reweighted", "mean-field", "gibbs", "pseudo-likelihood"]


@dataclass(frozen=True)
class FieldMarginals:
    """What inference found.

    Attributes
    ----------
    log_mass
        The log normaliser of each graph (NaN for graphs that were not asked for): exact, the Bethe value, a bound, or
        the sum of the nodes' own ones for pseudo-likelihood; NaN for Gibbs sampling, which does not know it.
    beliefs
        A distribution over labels for each node.
    pairs
        For each table the sum of the label pairs' distributions over its edges.
    error
        The largest change in the last sweep of an iterative method.
    sums
        The sum of beliefs times node features, shape (k, features), where features were given.
    """

    log_mass: Array
    beliefs: Array
    pairs: Array
    error: float = 0.0
    sums: Array | None = None


@dataclass
class FieldSampler:
    """Persistent Gibbs chains, one a graph: their states and random generators."""

    state: Ints
    random: NDArray[np.uint64]
    burn_in: int = 1
    sweeps: int = 5

    @classmethod
    def of(
        cls, fields: Fields, rng: np.random.Generator, burn_in: int = 1, sweeps: int = 5
    ) -> "FieldSampler":
        """Start chains at random labels."""
        state = rng.integers(fields.k, size=int(fields.node_ptr[-1]))
        random = rng.integers(0, 2**64, size=(fields.n_graphs, 4), dtype=np.uint64)
        return cls(state, random, burn_in, sweeps)


def field_marginals(
    fields: Fields,
    scores: Array,
    tables: Array,
    method: Method = "auto",
    which: Ints | None = None,
    *,
    labels: Ints | None = None,
    sampler: FieldSampler | None = None,
    damping: float = 0.0,
    tolerance: float = 1e-7,
    sweeps: int = 300,
    features: Array | None = None,
    room: tuple[Array, Array] | None = None,
) -> FieldMarginals:
    """Return marginals given the log scores of nodes and log tables.

    Parameters
    ----------
    fields
        The graphs.
    scores, tables
        Log potentials, shapes (nodes, k) and (tables, k, k); edge e has the table `tables[fields.row[e]]`.
    method
        How; "auto" is exact where that is narrow enough and loopy belief propagation elsewhere.
    which
        The graphs to look at; None for all.
    labels
        The labels of all nodes, for "pseudo-likelihood".
    sampler
        The chains, for "gibbs".
    damping, tolerance, sweeps
        For iterative methods.
    features
        Node features, one row a node; then `scores` are weights, shape (k, features), and `sums` is returned.
    room
        Two arrays of shape (nodes, k) to work in with `features`; the second one is returned as `beliefs`.

    Raises
    ------
    TooLarge
        If "exact" was asked for and a graph is too wide.

    Examples
    --------
    >>> two = Fields.of(2, np.array([0, 2]), np.array([0, 1]), np.array([0]), np.array([1]), np.ones((1, 1)))
    >>> found = field_marginals(two, np.zeros((2, 2)), np.log([[[3.0, 1.0], [1.0, 3.0]]]))
    >>> round(float(np.exp(found.log_mass[0])), 6), found.pairs[0].round(3).tolist()
    (8.0, [[0.375, 0.125], [0.125, 0.375]])
    """
    asked = np.arange(fields.n_graphs) if which is None else np.asarray(which, dtype=np.int64)
    run = _FieldRun(fields, scores, tables, features, room, damping, tolerance, sweeps)
    if method in ("auto", "exact"):
        run.exact(asked, method)
    elif method == "pseudo-likelihood":
        run.pseudo_likelihood(asked, labels)
    elif method == "gibbs":
        run.gibbs(asked, sampler)
    elif method == "mean-field":
        run.mean_field(asked)
    else:
        run.propagate(
            asked, fields.appearance() if method == "tree-reweighted" else np.ones(len(fields.tails))
        )
    sums = None if features is None else run.sums
    mass, beliefs, pairs, error = run.found
    return FieldMarginals(mass, beliefs, pairs, float(error.max(initial=0.0)), sums)


class _FieldRun:
    """One call: what is given, and what is found so far."""

    def __init__(
        self,
        fields: Fields,
        scores: Array,
        tables: Array,
        features: Array | None,
        room: tuple[Array, Array] | None,
        damping: float,
        tolerance: float,
        sweeps: int,
    ) -> None:
        self.fields = fields
        given = np.ascontiguousarray(scores, dtype=np.float64)
        n, k = int(fields.node_ptr[-1]), fields.k
        self.features, self.weights = features, given
        if features is None:
            own, beliefs = given, np.zeros((n, k))
        else:
            own, beliefs = room if room is not None else (np.empty((n, k)), np.zeros((n, k)))
        self.settings = (damping, tolerance, sweeps)
        self.graphs = fields.graphs
        self.potentials = LogPotentials(own, np.ascontiguousarray(tables, dtype=np.float64))
        mass, pairs = np.full(fields.n_graphs, np.nan), np.zeros((len(fields.rows), k, k))
        self.found = FieldBeliefs(mass, beliefs, pairs, np.zeros(fields.n_graphs))
        self.sums = np.zeros((k, 0 if features is None else features.shape[1]))

    def exact(self, asked: Ints, method: str) -> None:
        fields, (scores, tables) = self.fields, self.potentials
        tops = tables.max(axis=(1, 2)) if len(tables) else np.zeros(0)
        weights = np.exp(tables - tops[:, None, None])
        forest_marginals = self._kernel("crf_forest:forest_marginals", 6.0)

        def pass_messages(some: Ints, found: FieldBeliefs) -> None:
            forest_marginals(some, self.graphs, LogPotentials(scores, weights), tops, found)

        trees = asked[fields.forest[asked]]
        self._in_blocks(trees, pass_messages)
        np.multiply(self.found.pairs, weights, out=self.found.pairs)
        rest = np.concatenate([asked[~fields.forest[asked]], trees[np.isnan(self.found.log_mass[trees])]])
        narrow = np.array([fields.plan(int(g)) is not None for g in rest], dtype=np.bool_)
        wide = rest[~narrow]
        if len(wide) and method == "exact":
            raise TooLarge(
                f"exact marginals of instance {int(wide[0])} need more than {MOST_ENTRIES:,} clique entries; use "
                "inference='loopy-bp', 'tree-reweighted' or 'pseudo-likelihood'"
            )
        self._in_blocks(rest[narrow], self._cliques)
        self.propagate(wide, np.ones(len(fields.tails)))

    def propagate(self, asked: Ints, rho: Array) -> None:
        if not len(asked):
            return
        propagate_fields = self._kernel("crf_loopy:propagate_fields", 200.0)
        message = np.empty((2 * len(self.fields.tails), self.fields.k))

        def work(some: Ints, found: FieldBeliefs) -> None:
            propagate_fields(some, self.graphs, rho, self.potentials, *self.settings, message, found)

        self._in_blocks(asked, work)

    def mean_field(self, asked: Ints) -> None:
        mean_fields = self._kernel("crf_loopy:mean_fields", 100.0)

        def work(some: Ints, found: FieldBeliefs) -> None:
            mean_fields(some, self.graphs, self.potentials, *self.settings[1:], found)

        self._in_blocks(asked, work)

    def pseudo_likelihood(self, asked: Ints, labels: Ints | None) -> None:
        if labels is None:
            raise InvalidArgument("pseudo-likelihood needs the labels of all nodes")

        pseudo_likelihoods = self._kernel("crf_loopy:pseudo_likelihoods", 4.0)

        def work(some: Ints, found: FieldBeliefs) -> None:
            pseudo_likelihoods(some, self.graphs, self.potentials, labels, found)

        self._in_blocks(asked, work)

    def gibbs(self, asked: Ints, sampler: FieldSampler | None) -> None:
        if sampler is None:
            raise InvalidArgument("inference='gibbs' needs a sampler")
        gibbs_sweeps = self._kernel("crf_loopy:gibbs_sweeps", 2.0 * (sampler.burn_in + sampler.sweeps))
        chains = (sampler.burn_in, sampler.sweeps, sampler.random, sampler.state)

        def work(some: Ints, found: FieldBeliefs) -> None:
            gibbs_sweeps(some, self.graphs, self.potentials, *chains, found)

        self._in_blocks(asked, work)

    def _cliques(self, some: Ints, found: FieldBeliefs) -> None:
        fields, (scores, tables) = self.fields, self.potentials
        for g in some.tolist():
            nodes = slice(int(fields.node_ptr[g]), int(fields.node_ptr[g + 1]))
            edges = slice(int(fields.edge_ptr[g]), int(fields.edge_ptr[g + 1]))
            plan: Any = fields.plan(g)
            logs = np.concatenate([scores[nodes].ravel(), tables[fields.row[edges]].ravel()])
            found.log_mass[g], marginals = plan.marginals(logs)
            split = found.beliefs[nodes].size
            found.beliefs[nodes] = marginals[:split].reshape(-1, fields.k)
            np.add.at(found.pairs, fields.row[edges], marginals[split:].reshape(-1, fields.k, fields.k))

    def _kernel(self, name: str, steps: float) -> Any:
        """Return a kernel for about so many steps for every pair of labels of every node and edge."""
        size = (len(self.potentials.scores) + len(self.fields.tails)) * self.fields.k**2
        return either(f"markovia.kernels.fields.{name}", steps * size)

    def _in_blocks(self, which: Ints, work: Callable[[Ints, FieldBeliefs], None]) -> None:
        """Run work on blocks of graphs in threads and add up their pair tables and feature sums in a fixed order."""
        if not len(which):
            return
        fields, features = self.fields, self.features
        own = fields.own_tables  # every edge writes its own table: no two threads meet

        if features is not None:
            steps = len(features) * fields.k * features.shape[1]
            node_scores = either("markovia.kernels.fields.crf_forest:node_scores", steps)
            node_sums = either("markovia.kernels.fields.crf_forest:node_sums", steps)

        def one(some: Ints, _: None) -> tuple[Array | None, Array | None]:
            pairs = None if own else np.zeros(self.found.pairs.shape)
            found = self.found if pairs is None else self.found._replace(pairs=pairs)
            if features is None:
                work(some, found)
                return pairs, None
            node_scores(some, fields.node_ptr, features, self.weights, self.potentials.scores)
            work(some, found)
            sums = np.zeros(self.sums.shape)
            node_sums(some, fields.node_ptr, features, found.beliefs, sums)
            return pairs, sums

        for pairs, sums in in_parallel(one, fields.blocks(which), lambda: None):
            if pairs is not None:
                np.add(self.found.pairs, pairs, out=self.found.pairs)
            if sums is not None:
                self.sums += sums
