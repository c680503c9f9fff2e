"""Models made to order: random networks, grids, two-layer diagnosis, 3-SAT and unrolled Markov chains.

Every random model is reproducible from `seed`. All generators work in time linear in the size of what they
return, so chains of 100,000 variables and grids of 512 x 512 take seconds. Variables are called `x0, x1, ...`
unless a docstring says otherwise.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, overload

import numpy as np

from markovia.errors import InvalidArgument, check_known
from markovia.factors.potentials import grids
from markovia.factors.tables.conditional import ConditionalTable, random_table
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.generators import random_dag, random_k_tree, random_tree
from markovia.models.gallery.qmr import qmr
from markovia.models.gallery.satisfiability import random_clauses, three_sat
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.models.temporal.unrolled import hidden_markov_model, markov_chain
from markovia.runtime.checks import check_choice
from markovia.runtime.seeds import generator

__all__ = [
    "hidden_markov_model",
    "ising_grid",
    "markov_chain",
    "potts_grid",
    "qmr",
    "random_bayesian_network",
    "random_clauses",
    "random_k_tree_network",
    "random_markov_network",
    "random_tree_network",
    "three_sat",
]

Seed = int | np.random.Generator | None
Sizes = int | tuple[int, int]


def random_bayesian_network(
    n: int,
    *,
    max_parents: int | None = 2,
    states: Sizes = 2,
    edge_probability: float | None = None,
    n_edges: int | None = None,
    concentration: float = 1.0,
    deterministic: float = 0.0,
    seed: Seed = None,
) -> BayesianNetwork:
    """Draw a Bayesian network: a random acyclic graph and random tables on it.

    Parameters
    ----------
    n
        The number of variables; `x0, x1, ...` is a topological order.
    max_parents
        The largest number of parents; None for no limit.
    states
        The number of states of every variable, or a pair (fewest, most) to draw it from.
    edge_probability, n_edges
        How dense the graph is, see `markovia.graphs.random_dag`; by default each variable draws its number of
        parents evenly from 0 ... `max_parents`.
    concentration
        Rows are drawn from a symmetric Dirichlet distribution with this parameter: large values give nearly
        uniform rows, small ones nearly deterministic rows.
    deterministic
        The share of rows that put all their mass on one state.
    seed
        An integer or a NumPy generator.

    Returns
    -------
    BayesianNetwork
        A complete network.

    Raises
    ------
    InvalidArgument
        If a number is out of range.

    Examples
    --------
    >>> bn = random_bayesian_network(30, max_parents=3, states=(2, 4), seed=0)
    >>> len(bn), max(len(bn.parents(v)) for v in bn.variables)
    (30, 3)
    """
    rng = generator(seed)
    dag = random_dag(n, max_parents=max_parents, edge_probability=edge_probability, n_edges=n_edges, seed=rng)
    return _random_tables(dag, states, concentration, deterministic, rng)


def random_tree_network(
    n: int,
    *,
    states: Sizes = 2,
    concentration: float = 1.0,
    deterministic: float = 0.0,
    seed: Seed = None,
) -> BayesianNetwork:
    """Draw a Bayesian network whose graph is a tree directed away from x0, evenly from all labelled trees.

    Parameters
    ----------
    n, states, concentration, deterministic, seed
        As in `random_bayesian_network`.

    Examples
    --------
    >>> random_tree_network(50, seed=1).graph.roots()
    ['x0']
    """
    rng = generator(seed)
    return _random_tables(random_tree(n, rng, directed=True), states, concentration, deterministic, rng)


@overload
def random_k_tree_network(
    n: int,
    k: int,
    *,
    kind: Literal["bayesian"] = "bayesian",
    states: Sizes = 2,
    keep: float = 1.0,
    concentration: float = 1.0,
    strength: float = 1.0,
    seed: Seed = None,
) -> BayesianNetwork: ...


@overload
def random_k_tree_network(
    n: int,
    k: int,
    *,
    kind: Literal["markov"],
    states: Sizes = 2,
    keep: float = 1.0,
    concentration: float = 1.0,
    strength: float = 1.0,
    seed: Seed = None,
) -> MarkovNetwork: ...


def random_k_tree_network(
    n: int,
    k: int,
    *,
    kind: Literal["bayesian", "markov"] = "bayesian",
    states: Sizes = 2,
    keep: float = 1.0,
    concentration: float = 1.0,
    strength: float = 1.0,
    seed: Seed = None,
) -> BayesianNetwork | MarkovNetwork:
    """Draw a model of known treewidth: a random k-tree with a table on every variable and its earlier neighbours.

    Exact inference costs n (states)^(k+1), so k sets how hard the model is.

    Parameters
    ----------
    n, k
        The number of variables, at least k + 1, and the treewidth.
    kind
        "bayesian" (the earlier neighbours are the parents) or "markov" (one factor over each such group).
    states, seed
        As in `random_bayesian_network`.
    keep
        The share of the k-tree's edges to keep; below 1 the treewidth is at most k.
    concentration
        Of the Dirichlet rows of a Bayesian network.
    strength
        Of a Markov network: the standard deviation of the log potentials.

    Examples
    --------
    >>> bn = random_k_tree_network(40, 3, seed=0)
    >>> bn.query("x39").info.exact, max(len(bn.parents(v)) for v in bn.variables)
    (True, 3)
    """
    check_choice("kind", kind, ("bayesian", "markov"))
    rng = generator(seed)
    tree = random_k_tree(n, k, rng, keep=keep)
    place = {name: i for i, name in enumerate(tree.nodes)}
    earlier = {
        v: sorted((u for u in tree.neighbors(v) if place[u] < place[v]), key=place.__getitem__)
        for v in tree.nodes
    }
    if kind == "bayesian":
        return _random_tables(DAG.from_parents(earlier), states, concentration, 0.0, rng)
    variables = _variables(tree.nodes, states, rng)
    scopes = [(*before, v) for v, before in earlier.items() if before or not tree.neighbors(v)]
    return _random_factors(variables, scopes, strength, rng)


def random_markov_network(
    n: int,
    *,
    scopes: Iterable[Sequence[str]] | None = None,
    degree: float = 3.0,
    scope_size: int = 2,
    states: Sizes = 2,
    strength: float = 1.0,
    fields: bool = True,
    seed: Seed = None,
) -> MarkovNetwork:
    """Draw a Markov network with log-normal potentials on given or random groups of variables.

    Parameters
    ----------
    n
        The number of variables.
    scopes
        The groups of names that get a factor each, for instance the edges of a graph; random groups if not
        given.
    degree
        For random groups: the mean number of partners that a variable meets in them.
    scope_size
        For random groups: how many variables each has.
    states, seed
        As in `random_bayesian_network`.
    strength
        The standard deviation of the log potentials.
    fields
        Whether every variable gets a factor of its own too.

    Raises
    ------
    InvalidArgument, UnknownVariable
        If a number is out of range, or a scope names a variable that is not `x0 ... x(n-1)`.

    Examples
    --------
    >>> mn = random_markov_network(20, degree=4, seed=0)
    >>> len(mn.edges)
    40
    """
    rng = generator(seed)
    names = [f"x{i}" for i in range(n)]
    variables = _variables(names, states, rng)
    if scopes is None:
        groups = _random_scopes(names, degree, scope_size, rng)
    else:
        groups = [tuple(scope) for scope in scopes]
        check_known((name for group in groups for name in group), names, "the scopes")
    return _random_factors(variables, [*([(v,) for v in names] if fields else []), *groups], strength, rng)


def ising_grid(
    rows: int,
    cols: int,
    coupling: grids.Coupling = 1.0,
    field: grids.Field = None,
    *,
    periodic: bool = False,
    states: Sequence[State] = (-1, 1),
    seed: Seed = None,
) -> MarkovNetwork:
    """Build an Ising model on a grid: p(x) ∝ exp(sum of J x_i x_j over neighbours + sum of h_i x_i).

    Parameters
    ----------
    rows, cols
        The size of the grid; variable `x{r}_{c}` is in row r and column c.
    coupling, field, periodic, states, seed
        As in `markovia.factors.ising_grid`: numbers, arrays, or "random" for values uniform on [-1, 1].

    Examples
    --------
    >>> mn = ising_grid(3, 4, coupling=0.5, field="random", seed=0)
    >>> len(mn), len(mn.edges)
    (12, 17)
    """
    factors = grids.ising_grid(rows, cols, coupling, field, periodic=periodic, states=states, seed=seed)
    return _on_grid(rows, cols, factors, "ising_grid")


def potts_grid(
    rows: int,
    cols: int,
    states: int | Sequence[State] = 3,
    coupling: grids.Coupling = 1.0,
    field: grids.Field = None,
    *,
    periodic: bool = False,
    seed: Seed = None,
) -> MarkovNetwork:
    """Build a Potts model on a grid: p(x) ∝ exp(sum of J [x_i = x_j] over neighbours + sum of h_i(x_i)).

    Parameters
    ----------
    rows, cols
        The size of the grid; variable `x{r}_{c}` is in row r and column c.
    states
        The number of states, or the states themselves.
    coupling, field, periodic, seed
        As in `markovia.factors.potts_grid`: numbers, arrays, or "random" for values uniform on [-1, 1].

    Examples
    --------
    >>> potts_grid(2, 2, 3).states("x0_0")
    [0, 1, 2]
    """
    factors = grids.potts_grid(rows, cols, states, coupling, field, periodic=periodic, seed=seed)
    return _on_grid(rows, cols, factors, "potts_grid")


def _random_tables(
    dag: DAG, states: Sizes, concentration: float, deterministic: float, rng: np.random.Generator
) -> BayesianNetwork:
    if not concentration > 0:
        raise InvalidArgument(f"concentration is positive, not {concentration}")
    if not 0 <= deterministic <= 1:
        raise InvalidArgument(f"deterministic is a share of rows between 0 and 1, not {deterministic}")
    variables = _variables(dag.nodes, states, rng)
    tables = []
    for name, variable in variables.items():
        table = random_table(variable, tuple(variables[q] for q in dag.parents(name)), rng, concentration)
        if deterministic:
            table = _with_certain_rows(table, deterministic, rng)
        tables.append(table)
    return BayesianNetwork.from_conditionals(tables)


def _with_certain_rows(table: ConditionalTable, share: float, rng: np.random.Generator) -> ConditionalTable:
    rows = table.values.reshape(-1, len(table.variable)).copy()
    certain = np.flatnonzero(rng.random(len(rows)) < share)
    rows[certain] = np.eye(len(table.variable))[rng.integers(len(table.variable), size=len(certain))]
    return ConditionalTable.of(table.variable, table.parents, rows.reshape(table.values.shape))


def _random_factors(
    variables: dict[str, Variable], scopes: Iterable[Sequence[str]], strength: float, rng: np.random.Generator
) -> MarkovNetwork:
    if not 0 <= strength < np.inf:
        raise InvalidArgument(f"strength is not negative, got {strength}")
    factors = []
    for scope in scopes:
        axes = [variables[name] for name in scope]
        factors.append(Factor.from_log(axes, strength * rng.standard_normal([len(v) for v in axes])))
    return MarkovNetwork(variables.values(), factors)


def _random_scopes(
    names: Sequence[str], degree: float, size: int, rng: np.random.Generator
) -> list[tuple[str, ...]]:
    n = len(names)
    if size < 2 or size > max(n, 2):
        raise InvalidArgument(f"scope_size is between 2 and the {n} variables, not {size}")
    if not 0 <= degree <= max(n - 1, 0):
        raise InvalidArgument(f"degree is between 0 and the {max(n - 1, 0)} other variables, not {degree}")
    wanted = round(n * degree / (size * (size - 1)))
    if size == 2 and 4 * wanted > n * (n - 1):
        # dense: rejection would stall near the complete graph
        first, second = np.triu_indices(n, 1)
        kept = np.sort(rng.choice(len(first), size=wanted, replace=False))
        return [
            (names[a], names[b]) for a, b in zip(first[kept].tolist(), second[kept].tolist(), strict=True)
        ]
    chosen: dict[tuple[int, ...], None] = {}
    for _ in range(100 * wanted + 100):
        if len(chosen) == wanted:
            break
        chosen.setdefault(tuple(sorted(rng.choice(n, size=size, replace=False).tolist())))
    return [tuple(names[i] for i in group) for group in chosen]


def _on_grid(rows: int, cols: int, factors: list[Factor], name: str) -> MarkovNetwork:
    return MarkovNetwork(grids.grid_variables(rows, cols, factors), factors, name=name)


def _variables(names: Iterable[str], states: Sizes, rng: np.random.Generator) -> dict[str, Variable]:
    low, high = _range(states, "states", 1)
    names = list(names)
    counts = rng.integers(low, high + 1, size=len(names)).tolist() if low < high else [low] * len(names)
    return {name: Variable(name, k) for name, k in zip(names, counts, strict=True)}


def _range(sizes: Sizes, what: str, least: int) -> tuple[int, int]:
    low, high = (sizes, sizes) if isinstance(sizes, int | np.integer) else sizes
    if not least <= low <= high:
        raise InvalidArgument(f"{what} is a number or a pair (fewest, most), at least {least}, not {sizes!r}")
    return int(low), int(high)
