"""Semi-Markov conditional random fields: sequences are cut into labelled segments, and lengths count.

    P(segments | x) = exp( sum of W[label] . x_t over tokens + T[label, next label] + L[label, length] over segments ) / Z(x)

Method: Sarawagi and Cohen (2004). In a chain the length of a run of equal labels falls off geometrically; here every length
has a weight of its own. Cost of one gradient: tokens times labels times (labels plus the longest segment plus features of a
token).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from markovia.errors import IncompleteModel, InvalidArgument
from markovia.learning.conditional_fields.segment_objective import (
    SegmentObjective,
    Segments,
    SegmentWeights,
)
from markovia.learning.conditional_fields.tokens import MISSING, Tokens, read_tags, read_tokens
from markovia.learning.conditional_fields.training import minimise
from markovia.models.crf.tagger import need_two, warn_of_training
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import POSITIVE, Interval, Whole, check


class LabelledSegment(NamedTuple):
    """A segment: its label, its first token and the one behind its last."""

    label: Any
    start: int
    end: int


class SegmentCRF(BaseEstimator):  # type: ignore[misc]
    """A semi-Markov conditional random field: it cuts sequences into labelled segments.

    Sequences are as in `ChainCRF`. A segmentation is one list of labels a token, in which a run of equal labels is a
    segment, or a list of pairs `(label, length)`, in which segments of the same label may follow each other.

    Parameters
    ----------
    C
        The penalty `||w||^2 / C` of all weights; infinity for none.
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

    def __init__(
        self,
        *,
        C: float = 2.0,  # noqa: N803
        max_length: int | None = None,
        max_iter: int = 500,
        tol: float = 1e-5,
        progress: bool | None = None,
    ) -> None:
        self.C = C
        self.max_length = max_length
        self.max_iter = max_iter
        self.tol = tol
        self.progress = progress

    def fit(
        self,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> Self:
        """Learn the weights from sequences and their segmentations; arguments as in `ChainCRF.fit`."""
        check("C", self.C, Interval(0.0, np.inf, open="low", said="a positive number"))
        check("max_length", self.max_length, Whole(1, none=True))
        check("max_iter", self.max_iter, Whole(1))
        check("tol", self.tol, POSITIVE)
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
        with tokens.often(len(classes)):
            found = minimise(
                objective,
                np.zeros(objective.bounds[-1]),
                scale=max(len(tokens.names), 1),
                max_iter=self.max_iter,
                tol=self.tol,
                progress=self.progress,
            )
        warn_of_training(found)
        self.classes_ = classes
        self._vocabulary = tokens.vocabulary
        self.feature_names_ = None if tokens.vocabulary is None else list(tokens.vocabulary)
        self._weights: SegmentWeights = objective.unpack(found.theta)
        self.coef_ = self._weights.columns.T
        self.transitions_, self.start_ = self._weights.moves, self._weights.start
        self.lengths_ = self._weights.lengths
        self.training_ = found
        self.objective_ = found.value
        self.n_iter_ = found.iterations
        return self

    def predict(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> list[NDArray[Any]]:
        """Return the labels of tokens under the most probable segmentation of each sequence."""
        tokens, labels, _ = self._best(X, lengths, by)
        return tokens.split(self.classes_[labels])

    def segments(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> list[list[LabelledSegment]]:
        """Return the segments of the most probable segmentation of each sequence."""
        tokens, labels, opens = self._best(X, lengths, by)
        found = []
        for codes, begins in zip(tokens.split(self.classes_[labels]), tokens.split(opens), strict=True):
            starts = np.flatnonzero(begins).tolist()
            ends = [*starts[1:], len(codes)]
            names = codes[starts].tolist()
            found.append([LabelledSegment(*one) for one in zip(names, starts, ends, strict=False)])
        return found

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

    def score(
        self,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> float:
        """Return the share of tokens that `predict` labels right."""
        tokens, labels, _ = self._best(X, lengths, by)
        codes, _, _ = _read(Y, tokens, lengths is not None or by is not None, self.classes_)
        return float(np.mean(labels == codes))

    def _ask(self, inputs: Any, lengths: Iterable[int] | None, by: str | None) -> tuple[Tokens, Array]:
        if not hasattr(self, "classes_"):
            raise IncompleteModel("this SegmentCRF has no weights yet; call fit(X, Y) first")
        tokens = read_tokens(inputs, lengths, by=by, vocabulary=self._vocabulary)
        if not len(tokens):
            return tokens, np.zeros((0, len(self.classes_)))
        if tokens.width != self.coef_.shape[1]:
            raise InvalidArgument(
                f"the model has {self.coef_.shape[1]} node features but the inputs have {tokens.width}"
            )
        return tokens, tokens.scores(self._weights.columns)

    def _best(self, inputs: Any, lengths: Iterable[int] | None, by: str | None) -> tuple[Tokens, Ints, Flags]:
        tokens, scores = self._ask(inputs, lengths, by)
        if not len(tokens):
            return tokens, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        found = self._weights.chain().best(scores, tokens.chains)
        return tokens, found.labels, found.opens


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
