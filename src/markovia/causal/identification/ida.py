"""Effects over a class of graphs: what a CPDAG or PAG and covariances of linear models leave open (IDA, joint IDA, LV-IDA).

The members of a class differ in the parents of a treatment, and given these its effect follows: adjust for them. So
it is enough to go through the sets of parents that some member has, which can be told from the neighbours of the
treatment alone; the members themselves, of which there may be exponentially many, are never listed. For several
treatments their parents are chosen one after the other, with Meek's rules in between. The effects d of setting them
together follow from the total effects t of each on the outcome and T of each on each other by t = (1 + T) d, as a
path to the outcome has a last treatment on it. Where causes may be hidden, the MAGs of a PAG are listed, and each is asked
for a set to adjust for; one that has none leaves the effect open.

References: Maathuis, Kalisch and Bühlmann, *Estimating high-dimensional intervention effects from observational
data*, Annals of Statistics 37 (2009); Nandy, Maathuis and Richardson, *Estimating the effect of joint interventions
from observational data in sparse high-dimensional settings*, Annals of Statistics 45 (2017); Fang and He, *IDA with
background knowledge*, UAI (2020); Malinsky and Spirtes, *Estimating causal effects with ancestral graph Markov models*, PGM
(2016); Witte, Henckel, Maathuis and Didelez, *On efficient adjustment in causal graphs*,
JMLR 21 (2020). Cost: one regression for each set of parents and pair of variables.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from markovia.causal.identification.adjustment import BackDoor
from markovia.causal.identification.equivalence_classes import GraphClass, ancestral_members, graph_class
from markovia.causal.problem import Family, Problem
from markovia.data.tables.in_memory import eager_columns
from markovia.data.tables.moments import checked_moments
from markovia.data.tables.number_columns import column_numbers
from markovia.errors import InvalidArgument
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.masks import PartlyDirected, mask_of, members
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.graphs.kinds.named import Names
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PossibleEffects(InNotebooks):
    """The effects that the members of a class of linear models have.

    Attributes
    ----------
    treatment, outcome
        The names.
    effects
        One row for each choice of parents that some member has, one column for each treatment: by how much the
        outcome grows where the treatment is set one unit higher and the other treatments are held.
    parents
        The choices: for each row the parents of each treatment; where causes may be hidden, what is adjusted for.
    open
        Whether some members of the class do not determine the effect, as hidden causes may confound it there.
    """

    treatment: tuple[str, ...]
    outcome: str
    effects: Array
    parents: tuple[tuple[tuple[str, ...], ...], ...]
    open: bool = False

    @property
    def lower(self) -> dict[str, float]:
        """The smallest effect of each treatment."""
        return dict(zip(self.treatment, self.effects.min(axis=0).tolist(), strict=True))

    @property
    def upper(self) -> dict[str, float]:
        """The largest effect of each treatment."""
        return dict(zip(self.treatment, self.effects.max(axis=0).tolist(), strict=True))

    @property
    def weakest(self) -> dict[str, float]:
        """The smallest size of each treatment's effect: what it has in every member, at least."""
        return dict(zip(self.treatment, np.abs(self.effects).min(axis=0).tolist(), strict=True))

    def frame(self) -> "pd.DataFrame":
        """Return the effects as a table, with the parents they belong to."""
        import pandas as pd

        table = pd.DataFrame(self.effects, columns=list(self.treatment))
        for k, name in enumerate(self.treatment):
            table[f"parents of {name}"] = [", ".join(choice[k]) for choice in self.parents]
        return table

    def __str__(self) -> str:
        lines = [f"effects on {self.outcome} over {len(self.effects)} choices of parents"]
        if len(self.effects):
            lines += [
                f"  {name}: {self.lower[name]:.4g} to {self.upper[name]:.4g}" for name in self.treatment
            ]
        if self.open:
            lines.append("  and any effect where hidden causes confound it, which the graph does not exclude")
        return "\n".join(lines)


def ida(
    graph: object,
    treatment: Names,
    outcome: str,
    data: Any = None,
    *,
    covariance: ArrayLike | None = None,
    adjust: Literal["parents", "optimal"] = "parents",
    family: Family = "auto",
) -> PossibleEffects:
    """Return the effects of treatments on an outcome over all DAGs of a CPDAG or MAGs of a PAG, for linear models.

    Parameters
    ----------
    graph
        A CPDAG (background knowledge may direct more of its edges), a PAG without selection bias, a learned structure, or
        a DAG, whose effect is one.
    treatment
        One name, or several that are set together (joint IDA).
    outcome
        One name.
    data
        Rows with a column of numbers for each node.
    covariance
        Instead of data: the covariances in the order of the graph's nodes.
    adjust
        For the "parents" of a treatment, or for the "optimal" set of the members with these parents, whose estimates
        vary less and are exactly zero where there is no causal path. A PAG has its own smallest sets.
    family
        As for `identify`; "mag" for a graph without circles in which directed edges may hide common causes.

    Returns
    -------
    PossibleEffects
        With the multiset of effects, one for each choice of parents, and its range.

    Raises
    ------
    InvalidGraph
        If no DAG extends the graph, or it is neither a CPDAG nor a PAG.
    InvalidArgument
        If neither data nor a covariance is given, or they do not fit the graph.

    Examples
    --------
    >>> chain = MixedGraph(["a --- b", "b --- c"])
    >>> found = ida(chain, "b", "c", covariance=[[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]])
    >>> found.effects[:, 0].round(3).tolist(), found.parents
    ([0.5, 0.0, 0.5], ((('a',),), (('c',),), ((),)))
    """
    problem = Problem.of(graph, treatment, outcome, family=family)
    if len(problem.outcome) > 1:
        raise InvalidArgument("ida() is about one outcome; ask for each of them")
    if adjust not in ("parents", "optimal"):
        raise InvalidArgument(f"adjust is 'parents' or 'optimal', got {adjust!r}")
    mixed = problem.graph
    if problem.ancestral or mixed._has_circle():
        return _over_members(problem, _covariance(mixed, data, covariance))
    graph_class(mixed, "cpdag")  # says so if the graph stands for no DAG
    sigma = _covariance(mixed, data, covariance)
    start = PartlyDirected(
        [mask_of(mixed._numbers(mixed.parents(name))) for name in mixed],
        [mask_of(mixed._numbers(mixed.undirected_neighbors(name))) for name in mixed],
    )
    start.close()
    x = [mixed._number(name) for name in problem.treatment]
    y = mixed._number(problem.outcome[0])
    rows, parents = [], []
    for member in parent_choices(start, x):
        total = _Totals(sigma, member, mixed.nodes if adjust == "optimal" else None)
        among = np.array([[float(i == j) or total.effect(i, j) for j in x] for i in x])
        rows.append(np.linalg.solve(among, [total.effect(i, y) for i in x]))
        parents.append(tuple(tuple(mixed._named(members(member.parents[i]))) for i in x))
    return PossibleEffects(problem.treatment, problem.outcome[0], np.array(rows), tuple(parents))


def _over_members(problem: Problem, sigma: Array) -> PossibleEffects:
    """Regress the outcome on treatments and what each MAG of the class adjusts for, once for each such set."""
    rows: dict[tuple[str, ...] | None, Array] = {}
    left_open = False
    for member in ancestral_members(problem.graph):
        read = graph_class(member, "mag")
        x, y = (read.member.mask(names) for names in (problem.treatment, problem.outcome))
        task = BackDoor(read, x, y)
        if not task.causal:
            rows[None] = np.zeros(len(problem.treatment))
            continue
        sets = (
            task.sets("minimum", task.allowed, 0, [1.0] * len(read.member.names))
            if task.amenable
            else iter(())
        )
        found = next(sets, None)
        if found is None:
            left_open = True
            continue
        used = [*map(read.member.number.__getitem__, problem.treatment), *members(found)]
        slopes = np.linalg.solve(sigma[np.ix_(used, used)], sigma[used, members(y)[0]])
        rows[read.member.named(found)] = np.asarray(slopes[: len(problem.treatment)], np.float64)
    parents = tuple(((chosen or ()),) * len(problem.treatment) for chosen in rows)
    effects = np.array(list(rows.values())).reshape(-1, len(problem.treatment))
    return PossibleEffects(problem.treatment, problem.outcome[0], effects, parents, left_open)


def parent_choices(graph: PartlyDirected, nodes: list[int]) -> Iterator[PartlyDirected]:
    """Yield the graph with all edges at some nodes directed, and what follows, in every way that a member of it has.

    Parents of a node are a clique (no new v-structure), and none of them follows from one of its children (no cycle).

    Examples
    --------
    >>> triangle = PartlyDirected([0, 0, 0], [0b110, 0b101, 0b011])
    >>> [found.parents[0] for found in parent_choices(triangle, [0])]
    [6, 2, 4, 0]
    """
    if not nodes:
        yield graph
        return
    x, *rest = nodes
    for into in _cliques(graph, graph.joined[x]):
        out = graph.joined[x] & ~into
        if any(graph.parents[x] & ~graph.adjacent[s] or graph.parents[s] & out for s in members(into)):
            continue
        choice = graph.copy()
        for s in members(into):
            choice.direct(s, x)
        for c in members(out):
            choice.direct(x, c)
        choice.close()
        yield from parent_choices(choice, rest)


def _cliques(graph: PartlyDirected, mask: int) -> Iterator[int]:
    """Yield every clique among some nodes, the empty one last."""
    if not mask:
        yield 0
        return
    low = mask & -mask
    for clique in _cliques(graph, mask & graph.adjacent[low.bit_length() - 1]):
        yield clique | low
    yield from _cliques(graph, mask ^ low)


class _Totals:
    """Total effects in the members of a class that share the parents of the treatments."""

    def __init__(self, sigma: Array, graph: PartlyDirected, names: list[str] | None) -> None:
        self.sigma, self.graph = sigma, graph
        self.best: GraphClass | None = None
        if names is not None:
            dag = graph.copy()
            while any(dag.joined):  # whichever edge is directed, a closed graph stays one of a class
                a = next(i for i, others in enumerate(dag.joined) if others)
                dag.direct(members(dag.joined[a])[0], a)
                dag.close()
            admg = Admg(names, dag.parents, [0] * dag.n)
            self.best = GraphClass("admg", admg, admg.children, admg.children)

    def effect(self, x: int, y: int) -> float:
        """Return the coefficient of x in the regression of y on x and what is adjusted for."""
        given = self.graph.parents[x]
        if given >> y & 1:
            return 0.0
        if self.best is not None:
            task = BackDoor(self.best, 1 << x, 1 << y)
            if not task.causal:
                return 0.0
            given = next(task.sets("optimal", task.allowed, 0, []))
        used = [x, *members(given)]
        return float(np.linalg.solve(self.sigma[np.ix_(used, used)], self.sigma[used, y])[0])


def _covariance(graph: MixedGraph, data: Any, covariance: ArrayLike | None) -> Array:
    if (data is None) == (covariance is None):
        raise InvalidArgument("ida() needs either data or covariance=, the covariances of the graph's nodes")
    if covariance is not None:
        found = np.asarray(covariance, dtype=np.float64)
        if found.shape != (len(graph), len(graph)) or not np.allclose(found, found.T):
            raise InvalidArgument(
                f"the covariances of {len(graph)} nodes are a symmetric matrix of as many rows, got shape {found.shape}"
            )
        return found
    columns = eager_columns(data)
    if missing := next((name for name in graph if name not in columns.names), None):
        raise InvalidArgument(f"the data have no column {missing!r}, which is a node of the graph")
    matrix = np.column_stack([column_numbers(columns.get(name), name) for name in graph])
    if np.isnan(matrix).any():
        name = graph.nodes[int(np.isnan(matrix).any(axis=0).argmax())]
        raise InvalidArgument(f"the column {name!r} has missing cells; fill them, or leave their rows out")
    rows = checked_moments(matrix, None, graph.nodes).rows
    return np.asarray(rows.T @ rows / (len(rows) - 1))
