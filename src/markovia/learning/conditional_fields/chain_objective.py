"""The objectives of linear-chain taggers with sparse weights: likelihood, also of partly labelled sequences, and margins.

Token t scores label a by `W[a] . x_t + b[a]`, with `s[a]` more at the first token and `e[a]` more at the last; labels a, b
of two tokens in a row score `T[a, b]`. The objective is

    sum over sequences of ( log Z(x) - log Z(x, y) )  +  ||W, s, e||^2 / C  +  ||T||^2 / edge_C  +  l1 |W, s, e, T|

where Z(x, y) sums over the labellings that agree with the labels there are: one of them where all tokens have labels. So it
is CRFsuite's with `c1 = l1` and `c2 = 1 / C` (no b, s and e there). The gradient is expected minus observed features, by the
recursions of hidden chains (`inference/sequences/hidden_chain.py`): a chain's sums do not ask whether its tables are
normalised. For a margin log Z(x) is replaced by the largest score of a labelling plus its number of wrong labels (Taskar,
Guestrin and Koller 2003). Weights are one vector of those that may differ from zero: features seen with a label, pairs of
labels seen, or all. Cost: tokens times (labels squared plus labels times features of a token).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from markovia.data.text.tokens import MISSING, FewWeights, Tokens
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.optimise.limited_memory_bfgs import dot
from markovia.runtime.array_types import Array, Ints

MOST_DENSE = 1 << 25
"""Columns times labels up to which weights are laid out in full."""


@dataclass(frozen=True)
class ChainWeights:
    """The weights of a chain: of columns (one row each), of pairs of labels, of labels anywhere, first and last."""

    columns: Array | FewWeights
    transitions: Array
    intercept: Array
    start: Array
    end: Array

    def scores(self, tokens: Tokens) -> Array:
        """Return the log score of each label at each token."""
        found = tokens.scores(self.columns)
        if self.intercept.any():
            found += self.intercept
        chains = tokens.chains
        if self.start.any():
            found[chains[:-1]] += self.start
        if self.end.any():
            found[chains[1:] - 1] += self.end
        return found


def chain_of(scores: Array, transitions: Array, offsets: Ints) -> tuple[HiddenChain, Observed, Array]:
    """Return a chain whose sums are those over labellings, what it sees, and what to add to its log masses."""
    top = float(transitions.max(initial=-np.inf))
    top = top if np.isfinite(top) else 0.0
    chain = HiddenChain.of_logs(np.zeros(scores.shape[1]), transitions - top)
    return chain, Observed.of(scores, offsets), top * (np.diff(offsets) - 1.0)


class ChainObjective:
    """The objective for given data; calling it gives the smooth part (all but l1) and its gradient.

    Parameters
    ----------
    tokens, codes, k
        The tokens, their label codes (-1 for none) and the number of labels.
    C, edge_C, l1
        The penalties.
    intercept, ends
        Whether labels have weights anywhere (not penalised), and at the first and last token.
    all_states, all_pairs
        Whether features and pairs of labels have weights that the data does not show.
    allowed
        Which labels may follow each other (k, k), be first (k) and last (k).
    margin
        Whether to ask for a margin instead of likelihood.
    """

    def __init__(
        self,
        tokens: Tokens,
        codes: Ints,
        k: int,
        *,
        C: float = np.inf,  # noqa: N803
        edge_C: float = np.inf,  # noqa: N803
        l1: float = 0.0,
        intercept: bool = False,
        ends: bool = False,
        all_states: bool = True,
        all_pairs: bool = True,
        allowed: tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]] | None = None,
        margin: bool = False,
    ) -> None:
        self.tokens, self.codes, self.k = tokens, codes, k
        self.intercept, self.ends, self.margin = intercept, ends, margin
        one = np.ones(k, dtype=bool)
        self.allowed = (np.ones((k, k), dtype=bool), one, one) if allowed is None else allowed
        self._bar_pairs, self._bar_first, self._bar_last = (np.where(a, 0.0, -np.inf) for a in self.allowed)
        self._offsets = tokens.chains
        beliefs = _one_hot(codes, k)
        self.few: FewWeights | None = None
        self.cells: Ints | None = None
        if tokens.dense is None and not all_states:
            shown = np.ones((len(codes), k)) * (codes == MISSING)[:, None] + beliefs
            self._lay_out(shown)
        elif tokens.width * k > MOST_DENSE and tokens.dense is None:
            self.few = FewWeights(
                k, np.arange(tokens.width + 1) * k, np.tile(np.arange(k), tokens.width),
                np.zeros(tokens.width * k),
            )  # fmt: skip
        self.pairs = np.flatnonzero(self.allowed[0] if all_pairs else self._shown_pairs() & self.allowed[0])
        n_state = len(self.cells) if self.cells is not None else tokens.width * k
        n_state = len(self.few.values) if self.few is not None else n_state
        parts = (n_state, len(self.pairs), k * intercept, k * ends, k * ends)
        self.bounds = np.cumsum((0, *parts)).tolist()
        free = np.concatenate([np.full(n, x) for n, x in zip(parts, (1, 1, 0, 1, 1), strict=True)])
        self.lasso = l1 * free
        self.decay = free / C
        self.decay[self.bounds[1] : self.bounds[2]] = 1.0 / edge_C
        self.lasso[self.bounds[1] : self.bounds[2]] = l1
        self._labelled = bool((codes >= 0).all())
        self._observed = self._features(tokens, codes) if self._labelled else None

    @property
    def size(self) -> int:
        """The number of weights."""
        return int(self.bounds[-1])

    @property
    def n_instances(self) -> int:
        """The number of sequences."""
        return len(self.tokens.names)

    def _lay_out(self, shown: Array) -> None:
        """Find which columns have a weight for which label."""
        tokens, k = self.tokens, self.k
        if tokens.width * k <= MOST_DENSE:
            counted = Tokens.sums(_ones(tokens), shown)
            self.cells = np.flatnonzero(counted.ravel() > 0.0)
            return
        owner = np.repeat(np.arange(len(tokens)), np.diff(tokens.ptr))
        keys = np.unique(
            np.concatenate([
                tokens.columns[shown[owner, j] > 0.0].astype(np.int64) * k + j for j in range(k)
            ])
        )  # fmt: skip
        starts = np.searchsorted(keys, np.arange(tokens.width + 1) * k)
        self.few = FewWeights(k, starts, keys % k, np.zeros(len(keys)))

    def _shown_pairs(self) -> NDArray[np.bool_]:
        """Return which pairs of labels follow each other, or may where labels are missing."""
        inner = np.ones(len(self.codes), dtype=bool)
        inner[self._offsets[1:] - 1] = False
        left = np.flatnonzero(inner)
        a, b = self.codes[left], self.codes[left + 1]
        found = np.zeros((self.k + 1, self.k + 1), dtype=bool)
        found[a, b] = True  # -1 is the last row and column
        if found[-1].any() or found[:, -1].any():
            found |= found[-1:] | found[:, -1:] | bool(found[-1, -1])
        return found[:-1, :-1]

    def unpack(self, theta: Array) -> ChainWeights:
        """Return the weights that a vector stands for; forbidden ones are minus infinity."""
        state, pair, intercept, start, end = (
            theta[a:b] for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)
        )
        k = self.k
        columns: Array | FewWeights
        if self.few is not None:
            columns = FewWeights(k, self.few.starts, self.few.labels, state)
        elif self.cells is not None:
            columns = np.zeros(self.tokens.width * k)
            columns[self.cells] = state
            columns = columns.reshape(-1, k)
        else:
            columns = state.reshape(-1, k)
        transitions = np.zeros(self._bar_pairs.size)
        transitions[self.pairs] = pair
        zero = np.zeros(k)
        return ChainWeights(
            columns,
            transitions.reshape(self._bar_pairs.shape) + self._bar_pairs,
            intercept if self.intercept else zero,
            (start if self.ends else zero) + self._bar_first,
            (end if self.ends else zero) + self._bar_last,
        )

    def pack(self, tokens: Tokens, beliefs: Array, pairs: Array) -> Array:
        """Return sums of features under beliefs about tokens and pairs, in the order of the weights."""
        sums = tokens.sums(beliefs, self.few)
        found = [sums.ravel() if self.cells is None else sums.ravel()[self.cells], pairs.ravel()[self.pairs]]
        if self.intercept:
            found.append(beliefs.sum(axis=0))
        if self.ends:
            chains = tokens.chains
            found += [beliefs[chains[:-1]].sum(axis=0), beliefs[chains[1:] - 1].sum(axis=0)]
        return np.concatenate(found)

    def __call__(self, theta: Array, which: Ints | None = None) -> tuple[float, Array]:
        """Return the smooth part and its gradient; with `which` only these sequences count, and penalties in proportion."""
        tokens, codes, observed, share = self.tokens, self.codes, self._observed, 1.0
        if which is not None:
            tokens, place = tokens.some(which)
            codes, share = codes[place], len(which) / max(self.n_instances, 1)
            observed = self._features(tokens, codes) if self._labelled else None
        weights = self.unpack(theta)
        pull = share * self.decay * theta
        value, gradient = dot(pull, theta), 2.0 * pull
        if not len(codes):
            return value, gradient
        scores = weights.scores(tokens)
        if self.margin:
            wrong = np.where((codes >= 0)[:, None], 1.0 - _one_hot(codes, self.k), 0.0)
            most, more = self._sum_out(tokens, scores + wrong, weights.transitions)
        else:
            most, more = self._sum_out(tokens, scores, weights.transitions)
        if observed is None:  # the labels there are allow several labellings
            tied = np.where((codes < 0)[:, None] | (_one_hot(codes, self.k) > 0.0), scores, -np.inf)
            least, observed = self._sum_out(tokens, tied, weights.transitions)
        else:
            least = dot(observed, theta)
        gradient += more
        gradient -= observed
        return value + most - least, gradient

    def _sum_out(self, tokens: Tokens, scores: Array, transitions: Array) -> tuple[float, Array]:
        """Return log masses of all labellings and expected features, or the best labelling's score and features."""
        chain, seen, more = chain_of(scores, transitions, tokens.chains)
        if self.margin:
            path, best = chain.best(seen)
            return float((best + more).sum()), self._features(tokens, path)
        found = chain.expect(seen)
        return float((found.log_probs + more).sum()), self.pack(tokens, found.sums, found.pairs[0])

    def _features(self, tokens: Tokens, codes: Ints) -> Array:
        """Return the features of labellings."""
        return self.pack(tokens, _one_hot(codes, self.k), self._pair_counts(tokens, codes))

    def _pair_counts(self, tokens: Tokens, codes: Ints) -> Array:
        """Return how often labels follow each other."""
        inner = np.ones(len(codes), dtype=bool)
        inner[tokens.chains[1:] - 1] = False
        left = np.flatnonzero(inner)
        return np.bincount(codes[left] * self.k + codes[left + 1], minlength=self.k**2).astype(np.float64)


def _one_hot(codes: Ints, k: int) -> Array:
    found = np.zeros((len(codes), k))
    has = codes >= 0
    found[np.flatnonzero(has), codes[has]] = 1.0
    return found


def _ones(tokens: Tokens) -> Tokens:
    """Return tokens all of whose features are 1."""
    return replace(tokens, values=np.zeros(0))
