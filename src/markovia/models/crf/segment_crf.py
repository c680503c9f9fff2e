"""Semi-Markov conditional random fields: sequences are cut into labelled segments, and lengths count.

    P(segments | x) = exp( sum of W[label] . x_t over tokens + T[label, next label] + L[label, length] over segments ) / Z(x)

Method: Sarawagi and Cohen (2004). In a chain the length of a run of equal labels falls off geometrically; here every length
has a weight of its own. Cost of one gradient: tokens times labels times (labels plus the longest segment plus features of a
token).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.data.sequences.sequences import Lengths
from markovia.data.text.tokens import MISSING, Tokens, read_tags
from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import finite_numbers
from markovia.inference.sequences.segments import SegmentChain
from markovia.learning.conditional_fields.segment_objective import (
    SegmentObjective,
    Segments,
    SegmentWeights,
)
from markovia.models.crf.base import sorted_labels
from markovia.models.crf.crf import log_weights
from markovia.models.crf.tagger import Coded, TokenLabeller
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import CountOrNone
from markovia.runtime.seeds import Seed


class LabelledSegment(NamedTuple):
    """A segment: its label, its first token and the one behind its last."""

    label: Any
    start: int
    end: int


@dataclass(eq=False, repr=False, kw_only=True)
class SegmentCRF(TokenLabeller[list[Any]]):
    """A semi-Markov conditional random field: it cuts sequences into labelled segments.

    Sequences are as in `ChainCRF`, and so are questions about the labels of tokens. A segmentation is one list of labels a
    token, in which a run of equal labels is a segment, or a list of pairs `(label, length)`, in which segments of the same
    label may follow each other.

    Parameters
    ----------
    C
        The penalty `||w||^2 / C` of all weights; infinity for none.
    l1
        The weight of a penalty on absolute values, which makes weights zero.
    max_length
        The most tokens of a segment; None for the most that training shows.
    max_iter, tol
        Steps of L-BFGS at most; the gradient, a mean over sequences, at which to stop.
    progress
        Whether to show a progress bar; None for long runs on a terminal.

    Attributes
    ----------
    classes_
        The labels in order.
    coef_
        Weights of features, shape (labels, features).
    transitions_, start_
        The log weight of a segment of label b after one of label a, and of each first label.
    lengths_
        The log weight of each length 1, 2, ... of a segment of each label, shape (labels, max_length).
    feature_names_, objective_, n_iter_
        As in `ChainCRF`.

    Examples
    --------
    >>> Y = [["up"] * 3 + ["down"] * 2 + ["up"] * 3, ["down"] * 2 + ["up"] * 3]
    >>> X = [[{"high": label == "up"} for label in y] for y in Y]
    >>> crf = SegmentCRF(C=10.0).fit(X, Y)
    >>> noisy = [{"high": True}, {"high": False}, {"high": True}, {"high": False}, {"high": False}]
    >>> crf.segments([noisy])[0]
    [LabelledSegment(label='up', start=0, end=3), LabelledSegment(label='down', start=3, end=5)]
    """

    max_length: CountOrNone = None

    def _objective(self, tokens: Tokens, coded: Coded, classes: NDArray[Any]) -> SegmentObjective:
        codes, opens = coded
        segments = Segments.of(codes, opens, tokens.chains)
        longest = int(segments.sizes.max()) if self.max_length is None else self.max_length
        if segments.sizes.max() > longest:
            at = int(segments.starts[np.argmax(segments.sizes)])
            raise InvalidArgument(
                f"a segment of {segments.sizes.max()} tokens begins at {tokens.at(at)}, but max_length={longest}"
            )
        later = np.flatnonzero(~segments.first)
        repeat = bool((segments.labels[later] == segments.labels[later - 1]).any())
        return SegmentObjective(tokens, codes, segments, len(classes), longest, C=self.C, repeat=repeat)

    @classmethod
    def from_weights(
        cls,
        classes: ArrayLike,
        coef: ArrayLike,
        transitions: ArrayLike,
        sizes: ArrayLike,
        *,
        start: ArrayLike | None = None,
        feature_names: Iterable[str] | None = None,
        **settings: Any,
    ) -> Self:
        """Build a model from known weights, `sizes` those of lengths; shapes and order as of the learned attributes.

        A transition of minus infinity forbids a label after another.
        """
        labels, order = sorted_labels(classes)
        k = len(labels)
        node, spans = finite_numbers(coef, "coef"), finite_numbers(sizes, "sizes")
        moves = log_weights(transitions, "transitions")
        first = np.zeros(k) if start is None else finite_numbers(start, "start=")
        for what, given, shape in (
            ("coef", node, (k, *node.shape[1:2])),
            ("sizes", spans, (k, *spans.shape[1:2])),
            ("transitions", moves, (k, k)),
            ("start", first, (k,)),
        ):
            if given.shape != shape or 0 in shape:
                raise InvalidArgument(f"with {k} labels {what} has one row a label, not shape {given.shape}")
        made = cls(**settings)
        made._set_names(labels, feature_names, node.shape[1])
        columns = np.ascontiguousarray(node[order].T)
        made._set_weights(SegmentWeights(columns, moves[np.ix_(order, order)], first[order], spans[order]))
        return made

    def segments(
        self, X: Any, lengths: Lengths = None, *, by: str | None = None  # noqa: N803
    ) -> list[list[LabelledSegment]]:  # fmt: skip
        """Return the segments of the most probable segmentation of each sequence."""
        tokens = self.prepare(X, lengths, by=by)
        return [best[0] for best in self._shown(tokens, self._most_probable(tokens))]

    # -- inside ------------------------------------------------------------------------------------------------

    def _set_weights(self, weights: SegmentWeights) -> None:
        self._weights = weights
        self.coef_ = weights.columns.T
        self.transitions_, self.start_ = weights.moves, weights.start
        self.lengths_ = weights.lengths

    def _width(self) -> int:
        return int(self.coef_.shape[1])

    def _lattice(self, tokens: Tokens) -> tuple[SegmentChain, Array]:
        """Return the chain of segments, and the scores of tokens."""
        return self._weights.chain(), tokens.scores(self._weights.columns)

    def _viterbi(self, tokens: Tokens) -> Coded:
        chain, scores = self._lattice(tokens)
        return chain.best(scores, tokens.chains)[:2]

    def _ranked(self, tokens: Tokens, k: int) -> tuple[Coded, Array]:
        chain, scores = self._lattice(tokens)
        found = chain.ranked(scores, k, tokens.chains)
        return found[:2], found.log_probs - chain.log_probs(scores, tokens.chains)[:, None]

    def _drawn(self, tokens: Tokens, n: int, seed: Seed) -> Coded:
        chain, scores = self._lattice(tokens)
        return chain.draw(scores, n, tokens.chains, seed)[:2]

    def _label_marginals(self, tokens: Tokens) -> Array:
        chain, scores = self._lattice(tokens)
        return chain.expect(scores, tokens.chains).steps

    def _log_masses(self, tokens: Tokens) -> Array:
        chain, scores = self._lattice(tokens)
        return chain.log_probs(scores, tokens.chains)

    def _log_probs(self, tokens: Tokens, coded: Coded) -> Array:
        chain, scores = self._lattice(tokens)
        codes, longest = coded[0], self.lengths_.shape[1]
        parts = Segments.of(codes, coded[1], tokens.chains)
        sizes = self.lengths_[parts.labels, np.minimum(parts.sizes, longest) - 1]
        own = np.where(parts.sizes <= longest, sizes, -np.inf)
        before = np.concatenate([[0], parts.labels[:-1]])
        own += np.where(parts.first, self.start_[parts.labels], self.transitions_[before, parts.labels])
        own += np.add.reduceat(scores[np.arange(len(codes)), codes], parts.starts)
        total = np.add.reduceat(own, np.flatnonzero(parts.first))
        return np.asarray(total - chain.log_probs(scores, tokens.chains))

    def _shown(self, tokens: Tokens, coded: Coded) -> list[list[Any]]:
        return [
            [self._named(codes, begins) for codes, begins in zip(labels.T, opens.T, strict=True)]
            for labels, opens in zip(*(tokens.split(part.T) for part in coded), strict=True)
        ]

    def _named(self, codes: Ints, begins: Flags) -> list[LabelledSegment]:
        starts = np.flatnonzero(begins).tolist()
        labels = self.classes_[codes[starts]].tolist()
        ends = [*starts[1:], len(codes)]
        return [LabelledSegment(*one) for one in zip(labels, starts, ends, strict=False)]

    def _coded(self, labels: Any, tokens: Tokens, cut: bool, **options: Any) -> tuple[Coded, NDArray[Any]]:
        given = [labels] if cut else list(labels)
        paired = any(len(y) and isinstance(y[0], tuple) for y in given)
        plain, begins = given, None
        if paired:
            plain, begins = [], []
            for i, y in enumerate(given):
                for pair in y:
                    if (
                        not isinstance(pair, tuple)
                        or len(pair) != 2
                        or not isinstance(pair[1], int)
                        or pair[1] < 1
                    ):
                        raise InvalidArgument(
                            f"sequence {i} has {pair!r} among its segments, which is no (label, length)"
                        )
                plain.append([a for a, n in y for _ in range(n)])
                begins += [j == 0 for _, n in y for j in range(n)]
        codes, classes = read_tags(plain[0] if cut else plain, tokens, cut=cut, **options)
        if (codes == MISSING).any():
            raise InvalidArgument(
                f"{tokens.at(int(np.argmax(codes == MISSING)))} has no label; segments need them all"
            )
        if begins is not None:
            return (codes, np.array(begins, dtype=bool)), classes
        opens = np.ones(len(codes), dtype=bool)
        opens[1:] = codes[1:] != codes[:-1]
        opens[tokens.chains[:-1]] = True
        return (codes, opens), classes
