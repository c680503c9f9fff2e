"""The objective of taggers that are normalised at each token: softmax regression on features and the label before.

    sum over tokens of ( log sum_a exp s_t(a | y_t-1) - s_t(y_t | y_t-1) )  +  ||W||^2 / C + ||T||^2 / C,
    s_t(a | b) = W[a] . x_t + T[b, a],  with the weights W_b for each label b before, or W for all

Convex, without any sum over labellings: every token is a row of an ordinary regression, the label before it one more feature
of k values (the start of a sequence is another one). Cost: tokens times labels times features of a token.
"""

from dataclasses import replace

import numpy as np

from markovia.data.text.tokens import Tokens
from markovia.runtime.array_types import Array, Ints


class LocalObjective:
    """The objective for given data: calling it gives its value and gradient.

    Weights are one vector: of features, shape (1 or k + 1, features, k), then of labels before, shape (k + 1, k), where
    row 0 is the start of a sequence.
    """

    def __init__(self, tokens: Tokens, codes: Ints, k: int, *, C: float, apart: bool) -> None:  # noqa: N803
        self.k, self.codes, self.width = k, codes, tokens.width
        self.groups = k + 1 if apart else 1
        self.before = np.concatenate([[0], codes[:-1] + 1])
        self.before[tokens.chains[:-1]] = 0
        self.tokens = _shifted(tokens, self.before, self.groups) if apart else tokens
        self.decay = 1.0 / C
        self.size = self.groups * self.width * k + (k + 1) * k
        seen = np.zeros((len(codes), k))
        seen[np.arange(len(codes)), codes] = 1.0
        self._observed = self._pack(seen)

    def unpack(self, theta: Array) -> tuple[Array, Array]:
        """Return the weights of features and of labels before."""
        cut = self.groups * self.width * self.k
        return theta[:cut].reshape(self.groups, self.width, self.k), theta[cut:].reshape(-1, self.k)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the value and the gradient."""
        columns, moves = self.unpack(theta)
        scores = self.tokens.scores(columns.reshape(-1, self.k))
        scores += moves[self.before]
        tops = scores.max(axis=1, keepdims=True)
        np.exp(scores - tops, out=scores)
        sums = scores.sum(axis=1, keepdims=True)
        scores /= sums
        value = float(tops.sum() + np.log(sums).sum() - self._observed @ theta + self.decay * (theta @ theta))
        return value, self._pack(scores) - self._observed + 2.0 * self.decay * theta

    def _pack(self, beliefs: Array) -> Array:
        moves = np.zeros((self.k + 1, self.k))
        np.add.at(moves, self.before, beliefs)
        return np.concatenate([self.tokens.sums(beliefs).ravel(), moves.ravel()])


def _shifted(tokens: Tokens, before: Ints, groups: int) -> Tokens:
    """Return tokens whose features are told apart by the label before."""
    ptr, columns, values = tokens.entries
    shifted = columns + np.repeat(before * tokens.width, np.diff(ptr))
    return replace(tokens, dense=None, ptr=ptr, columns=shifted, values=values, width=groups * tokens.width)
