"""The pseudo-likelihood of a pairwise model over numbers and states together, and its gradient.

The model is `p(x, y)` proportional to `exp(-x'Bx/2 + h'x + sum_ij t_ij(y_i, y_j) + sum_si r_si(y_i) x_s)`: given all others
a column of numbers is Gaussian with variance `1 / b_ss`, and a column of states a multinomial logistic regression (Lauritzen
and Wermuth 1989; Lee and Hastie 2015). Every column is a few columns of a *design*: numbers one, of variance one; states
one less than they are, by a basis that sums to zero. All couplings are then one symmetric matrix over the design. The mean
negative log pseudo-likelihood is convex in couplings, fields and `b`. Cost of a value: rows x design squared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.optimise.proximal_gradient import minimise_composite
from markovia.runtime.array_types import Array, Ints
from markovia.structure.undirected.pairwise_field import contrasts
from markovia.structure.undirected.pairwise_newton import PairwiseFit


@dataclass(eq=False)
class MixedField:
    """The mean negative log pseudo-likelihood over rows.

    Parameters
    ----------
    numbers
        The columns of numbers, of mean 0 and variance 1, one row a data row.
    codes, cards
        The columns of states, one row a column, and how many states each has.
    shares
        One number a data row; they sum to one.
    order
        For each column of the data its place among the numbers, or `-1 - place` among the states.
    node_of
        The node of each column.

    Attributes
    ----------
    column
        The column of each column of the design.
    rows, columns
        Which two columns of the design each coupling is of; parameters are fields, precisions of numbers, couplings.
    pair
        The number of the pair of nodes of each coupling; -1 within a node.
    """

    numbers: Array
    codes: Any
    cards: Sequence[int]
    shares: Array
    order: Ints
    node_of: Ints

    def __post_init__(self) -> None:
        self.bases = [contrasts(int(c)) for c in self.cards]
        parts = [
            self.numbers[:, [k]] if k >= 0 else self.bases[-1 - k][self.codes[-1 - k]]
            for k in self.order.tolist()
        ]
        self.design = np.ascontiguousarray(np.concatenate(parts, axis=1))
        self.column = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        first, second = np.triu_indices(len(self.column), 1)
        apart = self.column[first] != self.column[second]
        self.rows, self.columns = first[apart], second[apart]
        self.n_nodes = int(self.node_of.max()) + 1
        low, high = np.sort(self.node_of[self.column[np.stack([self.rows, self.columns])]], axis=0)
        self.pair = np.where(low == high, -1, low * self.n_nodes + high)
        self.of_numbers = np.flatnonzero(self.order[self.column] >= 0)
        self.n_fields = len(self.column)
        self.n_own = self.n_fields + len(self.of_numbers)
        self.n_weights = self.n_own + len(self.rows)

    def start(self) -> Array:
        """Return the parameters of columns that are independent and even."""
        point = np.zeros(self.n_weights)
        point[self.n_fields : self.n_own] = 1.0
        return point

    def couplings(self, point: Array) -> Array:
        """Return the symmetric matrix of couplings over the design."""
        found = np.zeros((self.n_fields, self.n_fields))
        found[self.rows, self.columns] = point[self.n_own :]
        return found + found.T

    def __call__(self, point: Array) -> tuple[float, Array]:
        """Return the value and the gradient."""
        precision = point[self.n_fields : self.n_own]
        pull = self.design @ self.couplings(point) + point[: self.n_fields]
        slope = np.empty_like(pull)
        x, own = self.design[:, self.of_numbers], pull[:, self.of_numbers]
        # a number is Gaussian with mean pull / b and variance 1 / b
        squares, pulls = self.shares @ x**2, self.shares @ own**2
        value = 0.5 * float((precision * squares + pulls / precision - np.log(precision)).sum())
        value += 0.5 * float(np.log(2 * np.pi)) * x.shape[1] - float(self.shares @ (x * own).sum(axis=1))
        slope[:, self.of_numbers] = own / precision - x
        bend = 0.5 * (squares - pulls / precision**2 - 1.0 / precision)
        for k in np.flatnonzero(self.order < 0):
            basis, at = self.bases[-1 - self.order[k]], self.column == k
            scores = pull[:, at] @ basis.T
            top = scores.max(axis=1, keepdims=True)
            chances = np.exp(scores - top)
            mass = chances.sum(axis=1, keepdims=True)
            value += float(self.shares @ (np.log(mass) + top)[:, 0])
            value -= float(self.shares @ (pull[:, at] * self.design[:, at]).sum(axis=1))
            slope[:, at] = chances / mass @ basis - self.design[:, at]
        slope *= self.shares[:, None]
        both = self.design.T @ slope
        both += both.T
        return value, np.concatenate([slope.sum(axis=0), bend, both[self.rows, self.columns]])

    def sizes(self) -> Array:
        """Return the spread of each node: the root of the summed variances of its columns of the design."""
        mean = self.shares @ self.design
        spread = np.maximum(self.shares @ self.design**2 - mean**2, 0.0)
        return np.sqrt(np.bincount(self.node_of[self.column], spread))

    def norms(self, theta: Array) -> Array:
        """Return the Euclidean norm of the couplings of each pair of nodes, by its number."""
        inside = self.pair >= 0
        return np.sqrt(np.bincount(self.pair[inside], theta[inside] ** 2, minlength=self.n_nodes**2))

    def strengths(self, point: Array) -> Array:
        """Return the norms of the couplings as a symmetric matrix over nodes."""
        found = self.norms(point[self.n_own :]).reshape(self.n_nodes, self.n_nodes)
        return np.asarray(found + found.T)


def fit_mixed(
    model: MixedField, penalties: Array, start: Array, tolerance: float, steps: int = 2000
) -> PairwiseFit:
    """Minimise the loss plus `penalties` times the norms of pairs of nodes, by proximal gradients.

    `penalties` has one number for each pair's number: infinite ones keep a pair out, zero ones leave it free.
    """
    out = np.isinf(penalties)
    cut = np.where(out, 0.0, penalties)
    own, inside = model.n_own, model.pair >= 0

    def rough(point: Array) -> float:
        return float(cut @ model.norms(point[own:]))

    def shrink(point: Array, length: float) -> Array:
        moved = point.copy()
        # numbers have variance one, so that no conditional variance is above it
        moved[model.n_fields : own] = np.maximum(moved[model.n_fields : own], 1.0)
        norms = model.norms(moved[own:])
        keep = np.maximum(1.0 - length * cut / np.maximum(norms, 1e-300), 0.0)
        keep[out] = 0.0
        moved[own:][inside] *= keep[model.pair[inside]]
        return moved

    found = minimise_composite(model, rough, shrink, start, steps, tolerance)
    return PairwiseFit(found.point, model(found.point)[0], found.error)
