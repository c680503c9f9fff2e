"""Builders of undirected models: lists of factors for pairwise, Ising, Potts, Boltzmann and energy forms.

    pairwise    p(x) ∝ prod_i phi_i(x_i) prod_ij psi_ij(x_i, x_j)
    Ising       p(x) ∝ exp(sum_ij w_ij x_i x_j + sum_i b_i x_i),            x_i = -1 or +1
    Potts       p(x) ∝ exp(sum_ij J_ij [x_i = x_j] + sum_i h_i(x_i)),       x_i one of q states
    Boltzmann   the Ising form on any graph, given by a matrix; x_i in {-1, +1} or {0, 1}
    energy      p(x) ∝ exp(-E(x) / T)

Positive couplings attract, negative ones repel. Parameters are unconstrained real numbers; the factors are
not normalised. Equal tables are one shared read-only array and every variable is one object, so a grid of a
quarter million variables takes seconds and little memory. `markovia.factors.potentials.grids` lays these forms out on
grids.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise as neighbours
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, InvalidTable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array
from markovia.runtime.checks import numbers

Edge = tuple[str, str]
SPINS = np.array([-1.0, 1.0])


def pairwise(unary: Mapping[Any, Any], edges: Mapping[Edge, Any]) -> list[Factor]:
    """Return one factor a variable and one an edge.

    Parameters
    ----------
    unary
        Weights of the states of each variable; a `Variable` as key also names the states.
    edges
        For each pair of names a matrix, rows the states of the first, columns those of the second. A variable
        that only occurs here has the states `0 ... k-1`.

    Raises
    ------
    InvalidTable
        If a matrix does not fit its variables or an entry is negative.

    Examples
    --------
    >>> a, b = pairwise({"a": [1, 2]}, {("a", "b"): [[3, 1, 1], [1, 1, 3]]})
    >>> b.names, b.shape
    (('a', 'b'), (2, 3))
    """
    _require_mapping(unary, "unary weights", "name to weights")
    _require_mapping(edges, "edges", "(name, name) to a matrix")
    known: dict[str, Variable] = {}
    factors = []
    for key, weights in unary.items():
        factor = Factor(key, weights)
        if factor.names[0] in known:
            raise InvalidArgument(f"{factor.names[0]!r} has two lists of unary weights")
        known[factor.names[0]] = factor.variables[0]
        factors.append(factor)
    for (a, b), matrix in zip(check_edges(edges), edges.values(), strict=True):
        factor = Factor([known.get(a, a), known.get(b, b)], matrix)
        known.update(zip(factor.names, factor.variables, strict=True))
        factors.append(factor)
    return factors


def ising(
    couplings: Mapping[Edge, float],
    fields: Mapping[str, float] | None = None,
    states: Sequence[State] = (-1, 1),
) -> list[Factor]:
    """Return the factors `exp(w x_i x_j)` and `exp(b x_i)` of an Ising model.

    Parameters
    ----------
    couplings
        The weight of each edge; positive attracts, negative repels.
    fields
        The weight of each variable; a variable of weight zero that has an edge gets no factor of its own.
    states
        How the two states are called; the first one counts as -1 and the second as +1.

    Examples
    --------
    >>> (f,) = ising({("a", "b"): 0.5})
    >>> f.log_values.tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    _require_mapping(couplings, "couplings", "(name, name) to a weight")
    _require_mapping(fields or {}, "fields", "name to a weight")
    if len(states) != 2:
        raise InvalidArgument(f"an Ising variable has two states, not {list(states)}")
    fields = dict(fields or {})
    edges = check_edges(couplings)
    names = dict.fromkeys([n for edge in edges for n in edge] + list(fields))
    variables = {name: Variable(name, states) for name in names}
    weights = finite([fields.get(name, 0.0) for name in names], "fields")
    strengths = finite(list(couplings.values()), "couplings")
    return assemble(
        variables,
        edges,
        strengths[:, None, None] * np.outer(SPINS, SPINS),
        weights[:, None] * SPINS,
    )


def potts(
    edges: Mapping[Edge, float] | Iterable[Edge],
    n_states: int | Sequence[State],
    strength: float = 1.0,
    fields: Mapping[str, Any] | None = None,
) -> list[Factor]:
    """Return the factors `exp(J [x_i = x_j])` and `exp(h_i(x_i))` of a Potts model.

    Parameters
    ----------
    edges
        Pairs of names, or a mapping from pairs to their own strengths J.
    n_states
        The number of states, or the states themselves.
    strength
        The strength J of edges that do not bring their own.
    fields
        For each variable one log weight a state.

    Examples
    --------
    >>> (f,) = potts([("a", "b")], 3, strength=2.0)
    >>> f.log_values[0].tolist()
    [2.0, 0.0, 0.0]
    """
    _require_mapping(fields or {}, "fields", "name to log weights")
    own = dict(edges) if isinstance(edges, Mapping) else dict.fromkeys(check_edges(edges), strength)
    pairs = check_edges(own)
    names = dict.fromkeys([n for edge in pairs for n in edge] + list(fields or {}))
    variables = {name: Variable(name, n_states) for name in names}
    k = len(next(iter(variables.values()))) if variables else 1
    weights = np.zeros((len(names), k))
    for i, name in enumerate(names):
        if fields and name in fields:
            field = finite(fields[name], f"field of {name!r}")
            if field.shape != (k,):
                raise InvalidTable(
                    f"the field of {name!r} has shape {field.shape}; one number a state is {k}"
                )
            weights[i] = field
    strengths = finite(list(own.values()), "strengths")
    return assemble(variables, pairs, strengths[:, None, None] * np.eye(k), weights)


def boltzmann(
    theta: ArrayLike,
    alpha: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    states: Sequence[int] = (-1, 1),
) -> list[Factor]:
    """Return the factors of `exp(sum_{i<j} theta_ij x_i x_j + sum_i alpha_i x_i)`.

    Parameters
    ----------
    theta
        Symmetric matrix with a zero diagonal; a zero entry means no edge.
    alpha
        One bias a variable; none by default.
    names
        Names of the variables, by default `x0, x1, ...`.
    states
        The two numbers a variable can be, `(-1, 1)` or `(0, 1)`; `MarkovNetwork.restricted_boltzmann` has `(0, 1)`.

    Raises
    ------
    InvalidArgument
        If the matrix is not symmetric or has a diagonal.

    Examples
    --------
    >>> for f in boltzmann([[0, 1], [1, 0]], alpha=[0, 2], states=(0, 1)):
    ...     print(f.names, f.log_values.tolist())
    ('x1',) [0.0, 2.0]
    ('x0', 'x1') [[0.0, 0.0], [0.0, 1.0]]
    """
    matrix = finite(theta, "theta")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.array_equal(matrix, matrix.T):
        raise InvalidArgument("theta is a symmetric matrix: theta_ij and theta_ji are the same edge")
    if matrix.diagonal().any():
        raise InvalidArgument("theta has a zero diagonal; a variable's own weight belongs in alpha")
    n = len(matrix)
    labels = [f"x{i}" for i in range(n)] if names is None else list(names)
    if len(labels) != n or len(set(labels)) != n:
        raise InvalidArgument(f"{n} different names are needed, one a row of theta, not {labels}")
    values = finite(states, "states")
    if values.shape != (2,):
        raise InvalidArgument(f"a Boltzmann machine has two states a variable, not {list(states)}")
    bias = np.zeros(n) if alpha is None else finite(alpha, "alpha")
    if bias.shape != (n,):
        raise InvalidArgument(f"alpha has one number a variable, {n}, not shape {bias.shape}")
    first, second = np.nonzero(np.triu(matrix))
    return assemble(
        {name: Variable(name, states) for name in labels},
        [(labels[i], labels[j]) for i, j in zip(first, second, strict=True)],
        matrix[first, second][:, None, None] * np.outer(values, values),
        bias[:, None] * values,
    )


def from_energy(variables: Iterable[Variable | str], energies: ArrayLike, temperature: float = 1.0) -> Factor:
    """Return the factor `exp(-E / T)`; an infinite energy forbids its configuration.

    Raises
    ------
    InvalidTable
        If a finite energy is so high that its weight is zero in floating point, which would forbid it too.

    Examples
    --------
    >>> from_energy(["a"], [0.0, float("inf")], temperature=2.0).values.tolist()
    [1.0, 0.0]
    """
    if not 0 < temperature < np.inf:
        raise InvalidArgument(f"a temperature is positive and finite, not {temperature}")
    rule = "energies are a (nested) list of numbers, all rows equally long"
    logs = -numbers(energies, rule, InvalidTable) / temperature
    factor = Factor.from_log(variables, logs)
    _require_support(logs, factor.values)
    return factor


def chain(
    names: int | Sequence[str],
    pair: ArrayLike,
    unary: ArrayLike | None = None,
    *,
    first: ArrayLike | None = None,
    last: ArrayLike | None = None,
    states: Sequence[State] | None = None,
) -> list[Factor]:
    """Return a homogeneous chain: the same tables at every position, with optional boundary potentials.

    Parameters
    ----------
    names
        The names in order, or a length for `x0, x1, ...`.
    pair
        The table of every neighbouring pair.
    unary
        The weights of every single variable.
    first, last
        Extra weights at the two ends (how a sentence starts and stops).
    states
        The states; `0 ... k-1` by default.

    Examples
    --------
    >>> [f.names for f in chain(3, [[2, 1], [1, 2]], first=[1, 0])]
    [('x0', 'x1'), ('x1', 'x2'), ('x0',)]
    """
    labels = [f"x{i}" for i in range(names)] if isinstance(names, int) else list(names)
    if not labels or len(set(labels)) != len(labels):
        raise InvalidArgument(f"a chain has one or more variables of different names, not {labels}")
    size = finite(pair, "the table of neighbours").shape
    k = states if states is not None else size[0] if size else 0
    variables = [Variable(name, k) for name in labels]
    factors = []
    if unary is not None:
        weights = Factor(variables[0], unary).values
        factors += [Factor.of((v,), weights) for v in variables]
    # a chain of one variable still has its table checked, against a partner that is then dropped
    partner = variables[1] if len(variables) > 1 else Variable(labels[0] + "'", k)
    table = Factor([variables[0], partner], pair).values
    factors += [Factor.of((a, b), table) for a, b in neighbours(variables)]
    if first is not None:
        factors.append(Factor(variables[0], first))
    if last is not None:
        factors.append(Factor(variables[-1], last))
    if not factors:
        factors.append(Factor.of((variables[0],), np.ones(len(variables[0]))))
    return factors


def assemble(
    variables: Mapping[str, Variable], edges: Sequence[Edge], pair_logs: Array, unary_logs: Array
) -> list[Factor]:
    """Exponentiate log tables into factors; equal pair tables become one shared array.

    Unary tables that are all zero are left out, except where the variable has no edge (it would be lost).
    """
    tied = {n for edge in edges for n in edge}
    factors = []
    for (name, variable), row, used in zip(
        variables.items(), exponential(unary_logs), np.any(unary_logs, axis=1).tolist(), strict=True
    ):
        if used or name not in tied:
            factors.append(Factor.of((variable,), row))
    shared: dict[bytes, Array] = {}
    for (a, b), logs, table in zip(edges, pair_logs, exponential(pair_logs), strict=True):
        factors.append(Factor.of((variables[a], variables[b]), shared.setdefault(logs.tobytes(), table)))
    return factors


def exponential(logs: Array) -> Array:
    """Return the read-only exponential, or raise where a finite weight is too large or too small for it."""
    with np.errstate(over="ignore"):
        values: Array = np.exp(logs)
    if not np.all(values < np.inf):
        raise InvalidTable(f"exp({float(np.max(logs)):g}) overflows; scale the couplings and fields down")
    _require_support(logs, values)
    values.setflags(write=False)
    return values


def _require_support(logs: Array, values: Array) -> None:
    """Raise where the exponential of a finite number is zero: the configuration is unlikely, not impossible."""
    lost = (values == 0) & np.isfinite(logs)
    if np.any(lost):
        largest = float(np.max(logs, where=lost, initial=-np.inf))
        raise InvalidTable(
            f"exp({largest:g}) is zero in floating point, which would forbid a possible "
            "configuration; scale the weights or energies down, or forbid it with an infinite energy"
        )


def check_edges(edges: Iterable[Any]) -> list[Edge]:
    """Return the edges, or raise unless each is a pair of different names and none comes twice."""
    if not isinstance(edges, Iterable):
        raise InvalidArgument(f"edges are pairs of names, not {edges!r}")
    seen: set[frozenset[str]] = set()
    pairs: list[Edge] = []
    for edge in edges:
        if not isinstance(edge, tuple) or len(edge) != 2 or edge[0] == edge[1]:
            raise InvalidArgument(f"an edge is a pair of two different names, not {edge!r}")
        key = frozenset(edge)
        if key in seen:
            raise InvalidArgument(f"the edge {edge!r} is given twice; both directions are the same edge")
        seen.add(key)
        pairs.append(edge)
    return pairs


def _require_mapping(given: object, what: str, form: str) -> None:
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"{what} are a mapping from {form}, not {given!r}")


def finite(values: ArrayLike, what: str) -> Array:
    """Return an array of finite numbers, or raise `InvalidArgument` that says which parameter is none."""
    array = numbers(values, f"{what} must be numbers")
    if not np.isfinite(array).all():
        raise InvalidArgument(f"{what} must be finite; one of them is {array[~np.isfinite(array)][0]}")
    return array
