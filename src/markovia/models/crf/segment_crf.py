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

from markovia.data.text.tokens import MISSING, Tokens, read_tags, read_tokens
from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import finite_numbers
from markovia.inference.sequences.segments import Segmentation
from markovia.learning.conditional_fields.segment_objective import (
    SegmentObjective,
    Segments,
    SegmentWeights,
)
from markovia.models.crf.base import sorted_labels
from markovia.models.crf.crf import log_weights
from markovia.models.crf.tagger import TokenLabeller, need_two
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import CountOrNone, Whole, check, check_options


class LabelledSegment(NamedTuple):
    """A segment: its label, its first token and the one behind its last."""

    label: Any
    start: int
    end: int


@dataclass(eq=False, repr=False, kw_only=True)
class SegmentCRF(TokenLabeller):
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

    def fit(
        self,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> Self:
        """Learn the weights from sequences and their segmentations; arguments as in `ChainCRF.fit`."""
        check_options(self)
        tokens = read_tokens(X, lengths, by=by, grow=True)
        codes, opens, classes = _read(Y, tokens, lengths is not None or by is not None, None)
        need_two(classes)
        segments = Segments.of(codes, opens, tokens.chains)
        longest = int(segments.sizes.max()) if self.max_length is None else self.max_length
        if segments.sizes.max() > longest:
            at = int(segments.starts[np.argmax(segments.sizes)])
            raise InvalidArgument(
                f"a segment of {segments.sizes.max()} tokens begins at {tokens.at(at)}, but max_length={longest}"
            )
        later = np.flatnonzero(~segments.first)
        repeat = bool((segments.labels[later] == segments.labels[later - 1]).any())
        objective = SegmentObjective(tokens, codes, segments, len(classes), longest, C=self.C, repeat=repeat)
        found = self._minimise(objective, tokens)
        self._learned(found, tokens, classes)
        self._take(objective.unpack(found.point))
        return self

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
        made._take_names(labels, feature_names, node.shape[1])
        columns = np.ascontiguousarray(node[order].T)
        made._take(SegmentWeights(columns, moves[np.ix_(order, order)], first[order], spans[order]))
        return made

    def segments(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> list[list[LabelledSegment]]:
        """Return the segments of the most probable segmentation of each sequence."""
        tokens = self.prepare(X, lengths, by=by)
        best = self._best(tokens)
        return [
            self._named(codes, begins)
            for codes, begins in zip(tokens.split(best.labels), tokens.split(best.opens), strict=True)
        ]

    def k_best(
        self,
        X: Any,  # noqa: N803
        k: int,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> list[tuple[list[list[LabelledSegment]], Array]]:
        """Return the k most probable segmentations of each sequence and their log probabilities, best first.

        There are fewer where fewer are possible.
        """
        check("k", k, Whole(1))
        tokens, scores = self._ask(X, lengths, by)
        logs = np.full((len(tokens.names), k), -np.inf)
        logs[~tokens.full, 0] = 0.0
        found = Segmentation(np.zeros((k, 0), dtype=np.int64), np.zeros((k, 0), dtype=bool), logs)
        if len(tokens):
            chain = self._weights.chain()
            found = chain.ranked(scores, k, tokens.chains)
            total = chain.log_probs(scores, tokens.chains)
            logs[tokens.full] = found.log_probs - total[:, None]
        return [
            (segmentations[: np.count_nonzero(own > -np.inf)], own[own > -np.inf])
            for segmentations, own in zip(self._several(tokens, found), logs, strict=True)
        ]

    def sample(
        self,
        X: Any,  # noqa: N803
        n: int = 1,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        seed: Any = None,
    ) -> list[list[list[LabelledSegment]]]:
        """Return n segmentations of each sequence drawn by their probabilities."""
        check("n", n, Whole(1))
        tokens, scores = self._ask(X, lengths, by)
        if not len(tokens):
            return [[[] for _ in range(n)] for _ in tokens.names]
        return self._several(tokens, self._weights.chain().draw(scores, n, tokens.chains, seed))

    def smooth(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> list[Array]:
        """Return the marginal distribution of every token's label, one array (tokens, labels) a sequence."""
        tokens, scores = self._ask(X, lengths, by)
        if not len(tokens):
            return tokens.split(scores)
        return tokens.split(self._weights.chain().expect(scores, tokens.chains).steps)

    predict_proba = smooth
    predict_marginals = smooth

    def log_partition(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> Array:
        """Return log Z(x) of each sequence."""
        tokens, scores = self._ask(X, lengths, by)
        found = np.zeros(len(tokens.names))
        if len(tokens):
            found[tokens.full] = self._weights.chain().log_probs(scores, tokens.chains)
        return found

    def log_prob(
        self,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> Array:
        """Return the log probability of each sequence's segmentation."""
        tokens, scores = self._ask(X, lengths, by)
        codes, opens, _ = _read(Y, tokens, lengths is not None or by is not None, self.classes_)
        found = np.zeros(len(tokens.names))
        if not len(tokens):
            return found
        parts = Segments.of(codes, opens, tokens.chains)
        fits = parts.sizes <= self.lengths_.shape[1]
        own = np.where(
            fits, self.lengths_[parts.labels, np.minimum(parts.sizes, self.lengths_.shape[1]) - 1], -np.inf
        )
        before = np.concatenate([[0], parts.labels[:-1]])
        own += np.where(parts.first, self.start_[parts.labels], self.transitions_[before, parts.labels])
        own += np.add.reduceat(scores[np.arange(len(codes)), codes], parts.starts)
        total = np.add.reduceat(own, np.flatnonzero(parts.first))
        found[tokens.full] = total - self._weights.chain().log_probs(scores, tokens.chains)
        return found

    # -- inside ------------------------------------------------------------------------------------------------

    def _take(self, weights: SegmentWeights) -> None:
        self._weights = weights
        self.coef_ = weights.columns.T
        self.transitions_, self.start_ = weights.moves, weights.start
        self.lengths_ = weights.lengths

    def _width(self) -> int:
        return int(self.coef_.shape[1])

    def _ask(self, inputs: Any, lengths: Iterable[int] | None, by: str | None) -> tuple[Tokens, Array]:
        tokens = self.prepare(inputs, lengths, by=by)
        if not len(tokens):
            return tokens, np.zeros((0, len(self.classes_)))
        return tokens, tokens.scores(self._weights.columns)

    def _best(self, tokens: Tokens) -> Segmentation:
        if not len(tokens):
            return Segmentation(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool), np.zeros(0))
        return self._weights.chain().best(tokens.scores(self._weights.columns), tokens.chains)

    def _best_codes(self, tokens: Tokens) -> Ints:
        return self._best(tokens).labels

    def _tag_codes(self, labels: Any, tokens: Tokens, cut: bool) -> Ints:
        return _read(labels, tokens, cut, self.classes_)[0]

    def _several(self, tokens: Tokens, found: Segmentation) -> list[list[list[LabelledSegment]]]:
        return [
            [self._named(codes, begins) for codes, begins in zip(labels.T, opens.T, strict=True)]
            for labels, opens in zip(tokens.split(found.labels.T), tokens.split(found.opens.T), strict=True)
        ]

    def _named(self, codes: Ints, begins: Flags) -> list[LabelledSegment]:
        starts = np.flatnonzero(begins).tolist()
        labels = self.classes_[codes[starts]].tolist()
        ends = [*starts[1:], len(codes)]
        return [LabelledSegment(*one) for one in zip(labels, starts, ends, strict=False)]


def _read(
    labels: Any, tokens: Tokens, cut: bool, classes: NDArray[Any] | None
) -> tuple[Ints, Flags, NDArray[Any]]:
    """Return label codes of tokens, where segments begin, and the labels."""
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
    codes, found = read_tags(plain[0] if cut else plain, tokens, cut=cut, classes=classes)
    if (codes == MISSING).any():
        raise InvalidArgument(
            f"{tokens.at(int(np.argmax(codes == MISSING)))} has no label; segments need them all"
        )
    if begins is not None:
        return codes, np.array(begins, dtype=bool), found
    opens = np.ones(len(codes), dtype=bool)
    opens[1:] = codes[1:] != codes[:-1]
    opens[tokens.chains[:-1]] = True
    return codes, opens, found
