"""Penalties on the weights of a log-linear model: L2, L1 and group L1.

What is minimised is the negative log likelihood of all rows (not their mean) plus

    sum_j l2_j w_j ** 2 / 2   +   sum_j l1_j |w_j|   +   sum_g group_l1_g ||w_g||_2,

so `l2` is the precision of a Gaussian prior and `l1` the rate of a Laplace prior, whatever the number of rows. L1 sets
single weights to zero; group L1 sets all weights of a group to zero together, by default all parameters of an edge (Yuan and
Lin 2006; Schmidt 2010, chapter 6), and so leaves edges out. The proximal operator of both together shrinks single weights
first and then groups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.fields.field_layout import FieldLayout
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import numbers


@dataclass(frozen=True)
class Penalty:
    """Penalties with numbers for every weight, already divided by the total weight of the rows.

    Attributes
    ----------
    l2, l1
        One number a weight.
    group
        For each weight the number of its group, -1 for none.
    group_l1
        One number a group.
    """

    l2: Array
    l1: Array
    group: Ints
    group_l1: Array

    @property
    def smooth(self) -> bool:
        """Whether the penalty is differentiable everywhere."""
        return not self.l1.any() and not self.group_l1.any()

    @property
    def none(self) -> bool:
        """Whether nothing is penalised."""
        return self.smooth and not self.l2.any()

    def ridge(self, weights: Array) -> tuple[float, Array]:
        """Return the L2 part and its gradient."""
        return 0.5 * float(self.l2 @ weights**2), self.l2 * weights

    def rough(self, weights: Array) -> float:
        """Return the L1 and group L1 parts."""
        return float(self.l1 @ np.abs(weights) + self.group_l1 @ self.norms(weights))

    def norms(self, weights: Array) -> Array:
        """Return the Euclidean norm of each group."""
        inside = self.group >= 0
        squares = np.bincount(self.group[inside], weights[inside] ** 2, minlength=len(self.group_l1))
        return np.sqrt(squares)

    def shrunk(self, weights: Array, step: Array | float) -> Array:
        """Return the proximal point: the weights of least L1 and group L1 penalty plus squared distance / (2 step).

        A step of its own for each weight is allowed for L1; the weights of a group share the group's mean step.
        """
        found = np.sign(weights) * np.maximum(np.abs(weights) - step * self.l1, 0.0)
        if self.group_l1.any():
            inside = self.group >= 0
            norms = self.norms(found)
            steps = np.broadcast_to(np.asarray(step, dtype=np.float64), weights.shape)[inside]
            members = np.bincount(self.group[inside], minlength=len(norms))
            mean = np.bincount(self.group[inside], steps, minlength=len(norms)) / np.maximum(members, 1)
            cut = mean * self.group_l1
            scale = np.maximum(
                1.0 - np.divide(cut, norms, out=np.full(len(norms), np.inf), where=norms > 0), 0.0
            )
            found[inside] *= scale[self.group[inside]]
        return found

    def residual(self, weights: Array, gradient: Array) -> float:
        """Return how far the weights are from optimal: the largest move of a proximal step of size one.

        Zero exactly where the optimality (KKT) conditions hold; without L1 it is the largest entry of the gradient.
        """
        return float(np.abs(weights - self.shrunk(weights - gradient, 1.0)).max(initial=0.0))


def read_penalty(
    layout: FieldLayout, total: float, l2: Any = 0.0, l1: Any = 0.0, group_l1: Any = 0.0, groups: Any = None
) -> Penalty:
    """Read penalties as a user writes them.

    Parameters
    ----------
    total
        The total weight of the rows, which all are divided by.
    l2, l1
        A number for all weights, one number a weight, or `{"nodes": a, "edges": b}` for features of one variable and of
        more.
    group_l1
        A number for all groups, or one a group.
    groups
        One label a weight, None for none; by default the weights of each table of two or more variables.
    """
    single = layout.owner < len(layout.variables)
    if groups is None:
        owners = layout.owner[~single]
        _, number = np.unique(owners, return_inverse=True)
        group = np.full(layout.n_weights, -1, dtype=np.int64)
        group[~single] = number
    else:
        group = _labels(groups, layout.n_weights)
    n_groups = int(group.max(initial=-1)) + 1
    return Penalty(
        _numbers(l2, "l2", layout.n_weights, single) / total,
        _numbers(l1, "l1", layout.n_weights, single) / total,
        group,
        _numbers(group_l1, "group_l1", n_groups, None) / total,
    )


def _labels(groups: Any, n: int) -> Ints:
    if not isinstance(groups, Sequence | np.ndarray) or isinstance(groups, str) or len(groups) != n:
        raise InvalidArgument(f"groups= has one label a weight, {n} of them, None for a weight in no group")
    seen: dict[Any, int] = {}
    return np.array([-1 if g is None else seen.setdefault(g, len(seen)) for g in groups], dtype=np.int64)


def _numbers(value: Any, name: str, n: int, single: Any) -> Array:
    if isinstance(value, Mapping):
        if single is None or not set(value) <= {"nodes", "edges"}:
            raise InvalidArgument(f"{name}= is a number, one number each, or {{'nodes': ..., 'edges': ...}}")
        pair = [_numbers(value.get(k, 0.0), name, 1, None)[0] for k in ("nodes", "edges")]
        return np.asarray(np.where(single, *pair), dtype=np.float64)
    found = numbers(value, f"{name}= is a number, or one number each")
    if found.ndim and found.shape != (n,):
        raise InvalidArgument(f"{name}= has shape {found.shape}; one number each would be {n}")
    if not np.isfinite(found).all() or (found < 0).any():
        raise InvalidArgument(f"{name}= is finite and not negative")
    return np.array(np.broadcast_to(found, (n,)))
