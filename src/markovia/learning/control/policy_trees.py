"""Policy trees: of all trees of a small depth, the one whose actions gain most.

Given what each action gains in each row (scores, for instance doubly robust ones), a tree of depth 1 to 3 is found that has
the largest sum of scores, by trying every split of every column. Rows that agree in all columns are one; a column of
numbers is split between two of its values, and missing cells go to whichever side is better. Ties go to the tree with fewer
splits.

References: Athey & Wager, *Policy learning with observational data* (2021); Zhou, Athey & Wager, *Offline multi-action
policy learning* (2023). Cost: with n different rows, p columns, d actions and s places to split, O(p n d s^(depth - 1)).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, TooLarge
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Whole, check
from markovia.runtime.shown import InNotebooks

MOST_OPERATIONS = 1e11
SLACK = 1e-12
"""A split that gains less than this share of the sum of all scores' sizes is a tie."""


@dataclass(frozen=True)
class TreatmentTree(InNotebooks):
    """A tree that chooses actions, as `policy_tree` finds it.

    Attributes
    ----------
    columns
        Of the 2^depth - 1 inner nodes, in the order of a heap: the column that is split, or -1 where all go left.
    thresholds
        Values up to the threshold go left.
    missing
        Where missing values go: 1 left, -1 right, 0 where there were none (then left).
    actions
        The action of each of the 2^depth leaves.
    value
        The mean score of the tree on the rows it was found from.
    """

    columns: Ints
    thresholds: Array
    missing: Ints
    actions: Ints
    value: float

    @property
    def depth(self) -> int:
        """The most splits that a row meets."""
        return len(self.actions).bit_length() - 1

    @property
    def splits(self) -> int:
        """How many splits there are."""
        return int((self.columns >= 0).sum())

    def take(self, x: Array) -> Ints:
        """Return the action of each row, shape (n,)."""
        at = np.zeros(len(x), dtype=np.int64)
        for _ in range(self.depth):
            column, values = self.columns[at], np.full(len(x), -np.inf)
            split = column >= 0
            values[split] = x[np.flatnonzero(split), column[split]]
            right = np.where(np.isnan(values), self.missing[at] < 0, values > self.thresholds[at])
            at = 2 * at + 1 + (right & split)
        return np.asarray(self.actions[at - len(self.columns)])

    def described(self, names: Sequence[str], actions: Sequence[Any]) -> str:
        """Return the tree as text, with the names of the columns and actions.

        Examples
        --------
        >>> tree = policy_tree(np.array([[1.0], [2.0], [3.0]]), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), depth=1)
        >>> print(tree.described(["age"], ["wait", "treat"]))
        age <= 2.5: wait
        age > 2.5: treat
        """
        return "\n".join(self._lines(0, "", names, actions))

    def _lines(self, node: int, indent: str, names: Sequence[str], actions: Sequence[Any]) -> list[str]:
        while node < len(self.columns) and self.columns[node] < 0:
            node = 2 * node + 1
        if node >= len(self.columns):
            return [f"{indent}{actions[self.actions[node - len(self.columns)]]}"]
        found = []
        for side, (sign, gap) in enumerate((("<=", 1), (">", -1))):
            below = self._lines(2 * node + 1 + side, indent + "  ", names, actions)
            lost = " or missing" if self.missing[node] == gap else ""
            head = f"{indent}{names[self.columns[node]]} {sign} {self.thresholds[node]:.6g}{lost}"
            alone = len(below) == 1
            found += [f"{head}: {below[0].strip()}"] if alone else [head, *below]
        return found

    def __str__(self) -> str:
        width = int(self.columns.max(initial=0)) + 1
        return self.described([f"x{j}" for j in range(width)], range(int(self.actions.max()) + 1))


def policy_tree(x: Array, scores: Array, depth: int = 2) -> TreatmentTree:
    """Return the tree of at most a depth whose actions have the largest mean score.

    Parameters
    ----------
    x
        Shape (n, columns): numbers, NaN where missing; categories as columns of 0 and 1.
    scores
        Shape (n, actions): what each action gains in each row.
    depth
        1, 2 or 3.

    Raises
    ------
    TooLarge
        If trying all splits takes more than about 1e11 steps.

    Examples
    --------
    >>> x = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    >>> gain = np.array([0, 1, 1, 0.0])  # neither column says anything alone
    >>> tree = policy_tree(x, np.column_stack([1 - gain, gain]))
    >>> tree.value, tree.take(x).tolist()
    (1.0, [0, 1, 1, 0])
    """
    check("depth", depth, Whole(1, 3))
    x, scores = np.asarray(x, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if x.ndim != 2 or scores.ndim != 2 or len(x) != len(scores) or not scores.size:
        raise InvalidArgument(
            f"columns and scores have one line a row each, not shapes {x.shape} and {scores.shape}"
        )
    if not np.isfinite(scores).all():
        raise InvalidArgument("scores are finite numbers")
    source, sides, codes, values = _ranked(x)
    if not len(codes):
        best = int(scores.mean(axis=0).argmax())
        return _tree_of(np.full(1, -1), np.zeros(1), np.zeros(1, dtype=np.int64), np.full(2, best), scores, x)
    merged, row = np.unique(codes, axis=1, return_inverse=True)
    total = np.zeros((merged.shape[1], scores.shape[1]))
    np.add.at(total, row.ravel(), scores)
    places = sum(len(v) - 1 for v in values)
    steps = float(total.size) * len(merged) * max(float(places), 1.0) ** (depth - 1)
    if steps > MOST_OPERATIONS:
        raise TooLarge(
            f"trying all trees of depth {depth} would take about {steps:.1e} steps; take a smaller depth, fewer columns, "
            "or round the columns to fewer values",
            operations=steps,
        )
    columns, cuts, actions = _searched(depth, merged, total)
    split = columns >= 0
    thresholds, missing = np.zeros(len(columns)), np.zeros(len(columns), dtype=np.int64)
    for node in np.flatnonzero(split):
        thresholds[node] = _between(values[columns[node]], int(cuts[node]))
        missing[node] = sides[columns[node]]
    columns[split] = source[columns[split]]
    return _tree_of(columns, thresholds, missing, actions, scores, x)


def _tree_of(
    columns: Ints, thresholds: Array, missing: Ints, actions: Ints, scores: Array, x: Array
) -> TreatmentTree:
    tree = TreatmentTree(columns, thresholds, missing, actions, 0.0)
    value = float(scores[np.arange(len(x)), tree.take(x)].mean())
    return TreatmentTree(columns, thresholds, missing, actions, value)


def _searched(depth: int, codes: Ints, scores: Array) -> tuple[Ints, Ints, Ints]:
    from markovia.kernels.policy_tree_search import best_tree

    columns, cuts = np.full(2**depth - 1, -1), np.zeros(2**depth - 1, dtype=np.int64)
    actions = np.zeros(2**depth, dtype=np.int64)
    orders = np.ascontiguousarray(np.argsort(codes, axis=1, kind="stable"))
    slack = SLACK * float(np.abs(scores).sum())
    best_tree(depth, orders, np.ascontiguousarray(codes), scores, slack, columns, cuts, actions)
    return columns, cuts, actions


def _ranked(x: Array) -> tuple[Ints, Ints, Ints, list[Array]]:
    """Return the columns that vary as ranks: where each comes from, the side of missing cells, ranks and sorted values.

    A column with missing cells comes twice, with them below and above all others.
    """
    source, sides, codes, values = [], [], [], []
    for j in range(x.shape[1]):
        gaps = np.isnan(x[:, j])
        for side in (1, -1) if gaps.any() else (0,):
            filled = np.where(gaps, -side * np.inf, x[:, j]) if side else x[:, j]
            distinct, ranks = np.unique(filled, return_inverse=True)
            if len(distinct) > 1:
                source.append(j)
                sides.append(side)
                codes.append(ranks.ravel())
                values.append(distinct)
    shape = (len(codes), len(x))
    return (
        np.array(source, dtype=np.int64),
        np.array(sides, dtype=np.int64),
        np.array(codes, dtype=np.int64).reshape(shape),
        values,
    )


def _between(values: Array, cut: int) -> float:
    """Return a threshold between two neighbouring values: the middle, or the lower where that is no number between."""
    low, high = float(values[cut]), float(values[cut + 1])
    if not np.isfinite(low):
        return float(np.nextafter(high, -np.inf)) if np.isfinite(high) else 0.0
    middle = low / 2 + high / 2
    return middle if np.isfinite(middle) and low <= middle < high else low
