"""Canonical potentials of a positive joint and Gibbs factors (Hammersley and Clifford).

For a strictly positive p and a reference configuration r the canonical potentials are

    log phi_A(x_A) = sum over B in A of (-1)^|A - B| log p(x_B, r elsewhere),      A any set of variables,

the Möbius inversion of log p. Their product over all A is p; phi_A is one as soon as any variable of A is at
its reference state; and if p has the pairwise independencies of a graph, phi_A is identically one unless A is
a clique. That proves the Hammersley-Clifford theorem and gives the factors it promises.

Cost: the product over variables of (states + 1). Positivity is essential; there are distributions with zeros
that have all the independencies of a graph and yet do not factorise over it.

References: Besag (1974); Koller and Friedman (2009), section 4.4.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np

from markovia.errors import InvalidGraph, InvalidTable, TooLarge, check_known
from markovia.factors.tables.factor import Factor, product, union_of_axes
from markovia.factors.tables.variable import State, Variable
from markovia.graphs import UndirectedGraph
from markovia.runtime.array_types import Array

_MAX_ENTRIES = 2**26


def canonical_potentials(
    joint: Factor, reference: Mapping[str, State] | None = None
) -> dict[frozenset[str], Factor]:
    """Return the canonical potential of every set of variables, the empty set included.

    Parameters
    ----------
    joint
        A strictly positive factor, normalised or not.
    reference
        The reference state of some or all variables; the first state of the others.

    Returns
    -------
    dict
        From sets of names to factors whose product is the joint.

    Raises
    ------
    InvalidTable
        If an entry is zero.
    TooLarge
        If the potentials would have more than 2**26 entries together.

    Examples
    --------
    >>> p = Factor(["a", "b"], [[4, 2], [2, 1]])
    >>> potentials = canonical_potentials(p)
    >>> potentials[frozenset({"a", "b"})].values.tolist()  # a and b are independent
    [[1.0, 1.0], [1.0, 1.0]]
    >>> potentials[frozenset({"a"})].values.tolist()
    [1.0, 0.5]
    """
    given = dict(reference or {})
    for name in given:
        joint.axis(name)
    total = prod(len(v) + 1 for v in joint.variables)
    if total > _MAX_ENTRIES:
        raise TooLarge(
            f"the canonical potentials of {len(joint.variables)} variables have {total:,} entries together"
        )
    _check_positive(joint)
    logs: list[tuple[tuple[Variable, ...], Array]] = [((), joint.log_values)]
    for v in joint.variables:
        at = v.index(given[v.name]) if v.name in given else 0
        split = []
        # axes before this one are settled; those kept so far lie in front, this one right after them
        for kept, table in logs:
            base = np.take(table, at, axis=len(kept))
            split.append((kept, base))
            split.append(((*kept, v), table - np.expand_dims(base, len(kept))))
        logs = split
    potentials = {}
    for kept, table in sorted(logs, key=lambda entry: len(entry[0])):
        potentials[frozenset(v.name for v in kept)] = Factor(kept, np.exp(table))
    return potentials


def gibbs_factors(
    joint: Factor,
    graph: UndirectedGraph | Iterable[Sequence[str]],
    *,
    reference: Mapping[str, State] | None = None,
    tolerance: float = 1e-9,
) -> list[Factor]:
    """Factorise a positive joint over the maximal cliques of a graph.

    Parameters
    ----------
    joint
        A strictly positive factor.
    graph
        An undirected graph over its variables, or the cliques themselves.
    reference
        The reference state of some or all variables.
    tolerance
        How far from zero a log potential outside the cliques may be.

    Returns
    -------
    list of Factor
        One factor a clique; their product is the joint.

    Raises
    ------
    InvalidGraph
        If the joint does not factorise over the cliques; the message names variables that interact outside
        them.

    Examples
    --------
    >>> chain = Factor(["a", "b"], [[3, 1], [1, 3]]) * Factor(["b", "c"], [[3, 1], [1, 3]])
    >>> factors = gibbs_factors(chain, UndirectedGraph([("a", "b"), ("b", "c")]))
    >>> sorted(sorted(f.names) for f in factors), (factors[0] * factors[1]).allclose(chain)
    ([['a', 'b'], ['b', 'c']], True)
    """
    cliques = graph.maximal_cliques() if isinstance(graph, UndirectedGraph) else [tuple(c) for c in graph]
    scopes = [frozenset(c) for c in cliques]
    used = []
    for names, potential in canonical_potentials(joint, reference).items():
        if any(names <= scope for scope in scopes):
            used.append(potential)
        elif np.abs(potential.log_values).max() > tolerance:
            raise InvalidGraph(
                f"the joint does not factorise over these cliques: {', '.join(map(repr, sorted(names)))} "
                "interact and no clique holds them together"
            )
    return fold_into_maximal_cliques(used, cliques)


def fold_into_maximal_cliques(factors: Iterable[Factor], cliques: Iterable[Sequence[str]]) -> list[Factor]:
    """Multiply every factor into the first clique that holds its variables; the joint stays the same.

    Parameters
    ----------
    factors
        Factors over subsets of the cliques.
    cliques
        Groups of names, normally the maximal cliques of a graph.

    Returns
    -------
    list of Factor
        One factor a clique, axes in the order of the clique.

    Raises
    ------
    InvalidGraph
        If no clique holds the variables of some factor.
    UnknownVariable
        If a clique names a variable that no factor has.

    Examples
    --------
    >>> factors = [Factor("a", [1, 2]), Factor(["a", "b"], [[1, 1], [1, 3]])]
    >>> folded = fold_into_maximal_cliques(factors, [("a", "b")])
    >>> folded[0].values.tolist()
    [[1.0, 1.0], [2.0, 6.0]]
    """
    members = list(factors)
    known = _variables(members)
    own: list[list[Factor]] = []
    scopes = []
    for clique in cliques:
        check_known(clique, known, "the factors")
        axes = tuple(known[name] for name in clique)
        own.append([Factor.of(axes, np.ones([len(v) for v in axes]))])
        scopes.append(frozenset(clique))
    for factor in members:
        home = next((i for i, scope in enumerate(scopes) if scope.issuperset(factor.names)), None)
        if home is None:
            raise InvalidGraph(f"no clique holds the variables {list(factor.names)} of a factor")
        own[home].append(factor)
    return [product(group).transpose(group[0].names) for group in own]


def _variables(factors: Sequence[Factor]) -> dict[str, Variable]:
    known: dict[str, Variable] = {}
    for factor in factors:
        for v in factor.variables:
            if known.setdefault(v.name, v).states != v.states:
                union_of_axes(factors)
    return known


def _check_positive(joint: Factor) -> None:
    zero = np.argwhere(joint.values <= 0)
    if len(zero):
        where = ", ".join(
            f"{v.name}={v.states[int(i)]!r}" for v, i in zip(joint.variables, zero[0], strict=True)
        )
        raise InvalidTable(
            f"the entry at ({where}) is zero; canonical potentials need a strictly positive joint"
        )
