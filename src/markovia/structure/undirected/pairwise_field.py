"""The pseudo-likelihood of a pairwise model with tables for columns and pairs, its gradient and its curvature.

A pair's log table is `B_i theta B_j'` with a basis of each column's states. With "contrasts" the basis is orthonormal and
sums to zero, so that nothing can move between tables of pairs and of columns, and the norm of theta is that of the table;
with "entries" theta is the table itself. Given the others a column is then a multinomial logistic regression on the basis
values of the others, and pairs share their parameters (Besag 1975).
The data side of the gradient is counted once; the model side is two matrix products a pass over blocks of rows. The
curvature is made only over pairs in use: a column's parameters meet only those of its own pairs, so that it is sparse.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array

BLOCK = 512
"""Rows worked on at once: few enough to stay in the processor's cache."""
KEPT = 2**25
"""The chances of the last point are kept for the curvature if they are at most so many."""


class PairwiseField:
    """The mean negative log pseudo-likelihood of a pairwise model over rows.

    Parameters
    ----------
    codes
        One row a column of data.
    cards
        The number of states of each.
    shares
        One number a data row; they sum to one.
    pairs
        The pairs that have a table.
    basis
        "contrasts" or "entries".

    Attributes
    ----------
    n_weights, n_single
        The number of parameters; the first `n_single` are those of columns.
    starts
        Where each pair's parameters begin, and the end.
    """

    def __init__(
        self,
        codes: NDArray[np.integer[Any]],
        cards: NDArray[np.int64],
        shares: Array,
        pairs: list[tuple[int, int]],
        basis: str = "contrasts",
    ) -> None:
        self.cards, self.pairs, self.shares = np.asarray(cards, dtype=np.int64), pairs, shares
        n, self.most = len(cards), int(max(cards))
        self.bases = [contrasts(int(c)) if basis == "contrasts" else np.eye(int(c)) for c in cards]
        self.dims = np.array([b.shape[1] for b in self.bases])
        self.deep = int(self.dims.max())
        # places are (dimension, column) and (state, column); those that a column lacks stay empty
        self.turn = np.zeros((self.deep, self.most, n))
        for i, own in enumerate(self.bases):
            self.turn[: own.shape[1], : own.shape[0], i] = own.T
        self.absent = np.arange(self.most)[:, None] >= self.cards[None, :]
        self.design = np.zeros((self.deep * n, codes.shape[1]))
        for i, own in enumerate(self.bases):
            for e in range(own.shape[1]):
                self.design[e * n + i] = own[codes[i], e]
        skip = (
            0 if basis == "contrasts" else 1
        )  # the first entry's field is zero, or fields would not be unique
        single = [(i, e) for i in range(n) for e in range(skip, self.dims[i])]
        self.single = np.array([e * n + i for i, e in single], dtype=np.int64)
        self.n_single = len(single)
        sizes = np.array([self.dims[i] * self.dims[j] for i, j in pairs], dtype=np.int64)
        self.starts = self.n_single + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.n_weights = int(self.starts[-1])
        rows, columns = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for i, j in pairs:
            a, b = np.divmod(np.arange(self.dims[i] * self.dims[j]), self.dims[j])
            rows.append(a * n + i)
            columns.append(b * n + j)
        self.rows, self.columns = np.concatenate(rows), np.concatenate(columns)
        self.spins = self.most == 2 and self.deep == 1 and not self.absent.any()
        self.kept: tuple[Array, Array] | None = None
        weighted = self.design * shares
        together = weighted @ self.design.T if len(pairs) else np.zeros((self.deep * n, self.deep * n))
        self.data = np.concatenate(
            [weighted.sum(axis=1)[self.single], 2.0 * together[self.rows, self.columns]]
        )

    def __call__(self, weights: Array) -> tuple[float, Array]:
        """Return the value and the gradient."""
        couplings, field = self._couplings(weights)
        n = len(self.cards)
        value = -float(self.data @ weights)
        slope, sums = np.zeros_like(couplings), np.zeros(len(couplings))
        keep = self.most * n * self.design.shape[1] <= KEPT
        chances = np.empty((self.most, n, self.design.shape[1] if keep else 0))
        for low in range(0, self.design.shape[1], BLOCK):
            part, share = self.design[:, low : low + BLOCK], self.shares[low : low + BLOCK]
            chance, log_mass = self._chances(couplings, field, part)
            value += float(log_mass.sum(axis=0) @ share)
            if keep:
                chances[:, :, low : low + BLOCK] = chance
            if self.spins:
                mean = (np.sqrt(2.0) * chance[0] - np.sqrt(0.5)) * share
            else:
                mean = np.einsum("ean,anr->enr", self.turn, chance * share).reshape(self.deep * n, -1)
            slope += mean @ part.T
            sums += mean.sum(axis=1)
        slope += slope.T
        self.kept = (weights.copy(), chances) if keep else None
        return value, np.concatenate([sums[self.single], slope[self.rows, self.columns]]) - self.data

    def curvature(self, weights: Array, live: NDArray[np.int64]) -> Any:
        """Return the matrix of second derivatives over the parameters of columns and of the pairs `live`, as sparse rows.

        Its rows are the parameters of columns, then those of the pairs in the order given.
        """
        from scipy.sparse import coo_array

        couplings, field = self._couplings(weights)
        n = len(self.cards)
        place = np.full(self.n_weights, -1, dtype=np.int64)
        place[: self.n_single] = np.arange(self.n_single)
        size = self.n_single
        around: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        for k in live.tolist():
            i, j = self.pairs[k]
            around[i].append((j, k))
            around[j].append((i, k))
            width = int(self.starts[k + 1] - self.starts[k])
            place[self.starts[k] : self.starts[k + 1]] = np.arange(size, size + width)
            size += width
        own_place = {int(f): k for k, f in enumerate(self.single)}
        local = [self._local(i, around[i], place, own_place) for i in range(n)]
        sums = [np.zeros((len(r), len(r))) for _, r, _ in local]
        known = self.kept[1] if self.kept is not None and np.array_equal(self.kept[0], weights) else None
        stride = self.design.shape[1] if known is not None else BLOCK
        for low in range(0, self.design.shape[1], stride):
            part, share = self.design[:, low : low + stride], self.shares[low : low + stride]
            chance = self._chances(couplings, field, part)[0] if known is None else known
            for i, (features, numbers, _) in enumerate(local):
                d, own = int(self.dims[i]), self.bases[i]
                wide = 1 + len(features)
                rows = np.empty((wide, part.shape[1]))
                rows[0] = 1.0
                rows[1:] = part[features]
                p = chance[: self.cards[i], i]
                mean = own.T @ p
                table = sums[i].reshape(d, wide, d, wide) if len(numbers) else sums[i]
                for a in range(d):
                    for b in range(a, d):
                        bend = ((own[:, a] * own[:, b]) @ p - mean[a] * mean[b]) * share
                        block = (rows * bend) @ rows.T
                        table[a, :, b, :] += block
                        if b > a:
                            table[b, :, a, :] += block.T
        rows_of, columns_of, values = [], [], []
        for (_, numbers, used), total in zip(local, sums, strict=True):
            kept = total[np.ix_(used, used)]
            where = numbers[used]
            rows_of.append(np.repeat(where, len(where)))
            columns_of.append(np.tile(where, len(where)))
            values.append(kept.ravel())
        found = coo_array(
            (np.concatenate(values), (np.concatenate(rows_of), np.concatenate(columns_of))),
            shape=(size, size),
        )
        return found.tocsr()

    def _local(
        self, i: int, around: list[tuple[int, int]], place: NDArray[np.int64], own_place: dict[int, int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the features of a column's regression, the places of its parameters, and which of those exist."""
        n, d = len(self.cards), int(self.dims[i])
        features = [e * n + j for j, _ in around for e in range(self.dims[j])]
        numbers = []
        for e in range(d):
            numbers.append(own_place.get(e * n + i, -1))
            for j, k in around:
                start = self.starts[k]
                for other in range(self.dims[j]):
                    flat = e * self.dims[j] + other if i < j else other * d + e
                    numbers.append(int(place[start + flat]))
        found = np.array(numbers, dtype=np.int64)
        return np.array(features, dtype=np.int64), found, np.flatnonzero(found >= 0)

    def _couplings(self, weights: Array) -> tuple[Array, Array]:
        size = len(self.design)
        couplings, field = np.zeros((size, size)), np.zeros(size)
        field[self.single] = weights[: self.n_single]
        couplings[self.rows, self.columns] = weights[self.n_single :]
        couplings += couplings.T
        return couplings, field

    def _chances(self, couplings: Array, field: Array, part: Array) -> tuple[Array, Array]:
        """Return the chance of each state of each column in each row, and the logarithm of its normaliser."""
        n = len(self.cards)
        pull = (couplings @ part + field[:, None]).reshape(self.deep, n, -1)
        if self.spins:  # the two scores are pull / sqrt(2) and its negative
            size = np.abs(pull[0])
            small = np.exp(-np.sqrt(2.0) * size)
            log_mass = size * np.sqrt(0.5) + np.log1p(small)
            small /= 1.0 + small
            first = np.where(pull[0] > 0, 1.0 - small, small)
            return np.stack([first, 1.0 - first]), log_mass
        scores = np.einsum("ean,enr->anr", self.turn, pull)
        scores[self.absent] = -np.inf
        top = scores[0].copy()
        for a in range(1, self.most):
            np.maximum(top, scores[a], out=top)
        scores -= top
        np.exp(scores, out=scores)
        mass = scores.sum(axis=0)
        scores /= mass
        return scores, np.log(mass) + top

    def table(self, weights: Array, pair: int) -> Array:
        """Return the log table of a pair."""
        i, j = self.pairs[pair]
        theta = weights[self.starts[pair] : self.starts[pair + 1]].reshape(self.dims[i], self.dims[j])
        return np.asarray(self.bases[i] @ theta @ self.bases[j].T)

    def column_table(self, weights: Array, column: int) -> Array:
        """Return the log table of a column."""
        _, field = self._couplings(weights)
        n = len(self.cards)
        return np.asarray(self.bases[column] @ field[np.arange(self.dims[column]) * n + column])


def contrasts(states: int) -> Array:
    """Return an orthonormal basis of the vectors that sum to zero, one column each (Helmert's)."""
    found = np.zeros((states, max(states - 1, 0)))
    for k in range(1, states):
        found[:k, k - 1] = 1.0
        found[k, k - 1] = -k
        found[:, k - 1] /= np.sqrt(k * (k + 1))
    return found
