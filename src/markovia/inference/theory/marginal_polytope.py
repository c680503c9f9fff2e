"""The marginal polytope and the conjugate dual of an exponential family, by linear programming and Newton's method.

Mean parameters mu of features F are *realisable* if some distribution has them; these mu form the convex hull of the points
F(x), the marginal polytope. The log-partition function A(theta) and its conjugate dual

    A*(mu) = sup over theta of <theta, mu> - A(theta)

mirror each other: inside the polytope A*(mu) is minus the largest entropy of a distribution with mean mu, outside it is plus
infinity. Reference: Wainwright & Jordan (2008), chapter 3. Cost: everything lists the configurations; a linear program with
one unknown each. For models of up to a few thousand configurations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, TooLarge
from markovia.factors.potentials.log_linear import LogLinear
from markovia.factors.tables.factor import Factor, union_of_axes
from markovia.factors.tables.variable import Variable
from markovia.inference.theory.variational_theory import Tables, as_tables
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.shown import InNotebooks

MOST = 1 << 14
"""Configurations up to which the polytope is listed."""


@dataclass(frozen=True)
class Membership(InNotebooks):
    """Whether pseudo-marginals are the marginals of one distribution; true in a condition if so.

    Attributes
    ----------
    distance
        The least sum of absolute differences to marginals of a distribution.
    joint
        A distribution that has (or comes closest to) the marginals.
    separator
        If outside: weights on the entries of the tables, in their order, whose sum is larger at the pseudo-marginals than at
        every configuration, hence than at any distribution.
    margin
        By how much.
    """

    distance: float
    joint: Factor
    separator: tuple[Factor | Array, ...] = ()
    margin: float = 0.0
    tolerance: float = 1e-7

    def __bool__(self) -> bool:
        return self.distance <= self.tolerance


def in_marginal_polytope(pseudo: Tables, tolerance: float = 1e-7) -> Membership:
    """Decide whether some joint distribution has all the given tables as its marginals.

    Parameters
    ----------
    pseudo
        Tables over some variables each: factors or posteriors, in a list or a mapping.
    tolerance
        Sum of absolute differences that passes.

    Returns
    -------
    Membership
        True in a condition; with a witness either way.

    Raises
    ------
    TooLarge
        If there are more than 16,384 configurations.

    Examples
    --------
    Three pairs that each want to differ agree on every overlap, but no three coins can all differ:

    >>> differ = [[0.0, 0.5], [0.5, 0.0]]
    >>> cycle = [Factor([a, b], differ) for a, b in ("ab", "bc", "ca")]
    >>> bool(in_marginal_polytope(cycle)), bool(in_marginal_polytope(cycle[:2]))
    (False, True)
    """
    from scipy.optimize import linprog

    tables = as_tables(pseudo)
    variables = union_of_axes(tables)
    features = _indicators(tables, variables)
    mu = np.concatenate([t.values.ravel() for t in tables]) if tables else np.zeros(0)
    n, d = features.shape
    equal = np.block([[features.T, np.eye(d), -np.eye(d)], [np.ones((1, n)), np.zeros((1, 2 * d))]])
    cost = np.concatenate([np.zeros(n), np.ones(2 * d)])
    found = linprog(cost, A_eq=equal, b_eq=np.append(mu, 1.0), bounds=(0, None), method="highs")
    joint = Factor.of(variables, found.x[:n].clip(0.0).reshape([len(v) for v in variables]))
    distance = float(found.fun)
    if distance <= tolerance:
        return Membership(distance, joint, tolerance=tolerance)
    weights = np.asarray(found.eqlin.marginals)[:d]
    margin = float(weights @ mu - (features @ weights).max())
    ends = np.cumsum([t.size for t in tables])
    parts = [w.reshape(t.shape) for w, t in zip(np.split(weights, ends[:-1]), tables, strict=True)]
    return Membership(distance, joint, tuple(parts), margin, tolerance)


@dataclass(frozen=True)
class ConjugateDual(InNotebooks):
    """The value A*(mu) and where it is attained.

    Attributes
    ----------
    value
        Minus the largest entropy of a distribution with these mean parameters; infinite if there is none.
    weights
        Weights theta whose model has these mean parameters: A*(mu) = <theta, mu> - A(theta). On the boundary of the polytope
        no finite weights do, and it is None; so it is outside.
    interior
        Whether the mean parameters lie in the relative interior, where every configuration has positive probability.
    joint
        The distribution of largest entropy; None outside.
    """

    value: float
    weights: Array | None
    interior: bool
    joint: Factor | None

    def __float__(self) -> float:
        return self.value


def conjugate_dual(family: Any, mu: "ArrayLike | Tables") -> ConjugateDual:
    """Return the conjugate dual of the log-partition function at mean parameters.

    Parameters
    ----------
    family
        A `LogLinear`, whose features define the family (its weights do not matter); or any discrete model, whose family is
        that of all tables with the scopes in `mu`.
    mu
        One mean parameter a feature of a `LogLinear`; for a model, tables such as `mean_parameters` returns.

    Returns
    -------
    ConjugateDual
        The value, matching weights, and the distribution.

    Raises
    ------
    InvalidArgument
        If there is not one mean parameter a feature.
    TooLarge
        If there are more than 16,384 configurations.

    Examples
    --------
    A coin's dual is minus its entropy:

    >>> from markovia import Feature, Variable
    >>> from markovia.local import LogLinear
    >>> coin = LogLinear([Feature(Variable("coin", 2), [0.0, 1.0])], [0.0])
    >>> round(float(conjugate_dual(coin, [0.25])), 6), float(conjugate_dual(coin, [1.5]))
    (-0.562335, inf)
    """
    if isinstance(family, LogLinear):
        variables = family.variables
        features = _features(family)
        point = np.asarray(mu, dtype=np.float64)
        if point.shape != (features.shape[1],):
            raise InvalidArgument(
                f"one mean parameter a feature is needed, {features.shape[1]}, not an array of shape {point.shape}"
            )
    else:
        tables = as_tables(mu)  # type: ignore[arg-type]
        known = {n: family.variable(n) for n in family.variables}
        variables = tuple(known.values())
        features = _indicators(tables, variables)
        point = np.concatenate([t.values.ravel() for t in tables])
    held = _support(features, point)
    if held is None:
        return ConjugateDual(np.inf, None, False, None)
    theta, p = _matching(features[held], point)
    joint = np.zeros(len(features))
    joint[held] = p
    entropy = float(-(p[p > 0] * np.log(p[p > 0])).sum())
    interior = bool(held.all())
    table = Factor.of(variables, joint.reshape([len(v) for v in variables]))
    return ConjugateDual(-entropy + 0.0, theta if interior else None, interior, table)


def _support(features: Array, mu: Array) -> Any:
    """Return which configurations some distribution with mean mu gives mass; None if there is no such distribution.

    One linear program in the cone over the distributions: unknowns p, t <= min(p, 1) and a scale s >= 1 with
    F' p = s mu and sum p = s; the largest sum of t has t_x = 1 wherever mass is possible.
    """
    from scipy.optimize import linprog
    from scipy.sparse import bmat, csr_matrix, eye

    n, d = features.shape
    size = max(1.0, float(np.abs(mu).max(initial=1.0)))
    top = np.hstack([features.T / size, np.zeros((d, n)), -mu[:, None] / size])
    total = np.hstack([np.ones((1, n)), np.zeros((1, n)), [[-1.0]]])
    below = bmat([[-eye(n), eye(n), csr_matrix((n, 1))]])
    found = linprog(
        np.concatenate([np.zeros(n), -np.ones(n), [0.0]]),
        A_ub=below,
        b_ub=np.zeros(n),
        A_eq=np.vstack([top, total]),
        b_eq=np.zeros(d + 1),
        bounds=[(0, None)] * n + [(0, 1)] * n + [(1, None)],
        method="highs",
    )
    return None if found.status != 0 else found.x[n : 2 * n] > 0.5


def _matching(features: Array, mu: Array) -> tuple[Array, Array]:
    """Return weights theta with E_theta[F] = mu and the distribution, by damped Newton steps on A(theta) - <theta, mu>."""
    theta = np.zeros(features.shape[1])

    def look(at: Array) -> tuple[float, Array]:
        scores = features @ at
        top = float(scores.max())
        weights = np.exp(scores - top)
        mass = float(weights.sum())
        return top + float(np.log(mass)) - float(at @ mu), weights / mass

    value, p = look(theta)
    for _ in range(200):
        mean = p @ features
        gradient = mean - mu
        if float(np.abs(gradient).max(initial=0.0)) < 1e-12:
            break
        spread = (features * p[:, None]).T @ features - np.outer(mean, mean)
        step = np.linalg.lstsq(spread, gradient, rcond=1e-12)[0]
        size, slope = 1.0, float(gradient @ step)
        while size > 1e-12:
            tried, q = look(theta - size * step)
            if tried <= value - 1e-4 * size * slope or size * slope < 1e-15:
                break
            size *= 0.5
        if size <= 1e-12 or tried > value:
            break
        theta, value, p = theta - size * step, tried, q
    return theta, p


def _codes(variables: Sequence[Variable]) -> Ints:
    sizes = [len(v) for v in variables]
    if prod(sizes) > MOST:
        raise TooLarge(
            f"the polytope of {prod(sizes):,} configurations is too large to list (at most {MOST:,})"
        )
    return np.indices(sizes).reshape(len(sizes), -1)


def _indicators(tables: Sequence[Factor], variables: Sequence[Variable]) -> Array:
    """Return for each configuration which entry of each table it falls into, as zeros and ones."""
    codes = _codes(variables)
    place = {v.name: i for i, v in enumerate(variables)}
    columns = []
    for table in tables:
        at = np.ravel_multi_index([codes[place[n]] for n in table.names], table.shape)
        columns.append(np.eye(table.size)[at])
    return np.concatenate(columns, axis=1) if columns else np.zeros((codes.shape[1], 0))


def _features(family: LogLinear) -> Array:
    """Return the features of every configuration."""
    codes = _codes(family.variables)
    place = {v.name: i for i, v in enumerate(family.variables)}
    found = np.zeros((codes.shape[1], len(family.features)))
    for j, feature in enumerate(family.features):
        for variables, table in feature.instances:
            found[:, j] += table[tuple(codes[place[v.name]] for v in variables)]
    return found
