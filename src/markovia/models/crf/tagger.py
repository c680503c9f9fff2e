"""What taggers answer: models of one label a token in which labels depend on their neighbours in the sequence.

A `TokenLabeller` labels tokens in whatever way; semi-Markov fields are such. A `Tagger` turns tokens into a chain
(`_lattice`): a conditional random field one with weights, a maximum entropy Markov model one with probabilities. Its answers
are the hidden chain's (`inference/sequences/hidden_chain.py`): Viterbi paths, marginals, draws, masses.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from markovia.data.text.tokens import MISSING, Tokens, read_tags, read_tokens
from markovia.data.text.vocabulary import Vocabulary
from markovia.errors import ConvergenceWarning, InvalidArgument
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.learning.conditional_fields.marginals import Method
from markovia.models.crf.base import ConditionalField, Labeller
from markovia.optimise.minimise import Minimum, minimise
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Penalty, Positive, Tolerance, Whole, check
from markovia.runtime.clock import Clock


class Convex(Protocol):
    """An objective of weights: how many labels and weights it has, and its value and gradient at some."""

    k: int
    size: int

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the value and the gradient."""


@dataclass(eq=False, repr=False, kw_only=True)
class TokenLabeller(Labeller):
    """A model of the labels of tokens; tokens and sequences are as `ChainCRF` says."""

    C: Penalty = 2.0
    l1: Tolerance = 0.0
    max_iter: Count = 500
    tol: Positive = 1e-5
    progress: bool | None = None

    def _width(self) -> int:
        """Return the number of features."""
        raise NotImplementedError

    def _best_codes(self, tokens: Tokens) -> Ints:
        """Return the label code of each token in a most probable labelling."""
        raise NotImplementedError

    def smooth(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> list[Array]:
        """Return the marginal distribution of every label, one array (tokens, labels) a sequence."""
        raise NotImplementedError

    def log_prob(
        self,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> Array:
        """Return log P(y | x) of each sequence."""
        raise NotImplementedError

    def prepare(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> Tokens:
        """Return sequences read once, to be asked about often: every question takes them in the place of `X`."""
        self._need_fit()
        tokens = read_tokens(X, lengths, by=by, vocabulary=self._vocabulary)
        if len(tokens) and tokens.width != self._width():
            raise InvalidArgument(
                f"the model has {self._width()} node features but the inputs have {tokens.width}"
            )
        return tokens

    def predict(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> list[NDArray[Any]]:
        """Return the most probable labelling of each sequence (Viterbi)."""
        tokens = self.prepare(X, lengths, by=by)
        return tokens.split(self.classes_[self._best_codes(tokens)])

    def predict_by_node(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> list[NDArray[Any]]:
        """Return each token's most probable label, which makes the expected number of wrong ones smallest."""
        return [self.classes_[one.argmax(axis=1)] for one in self.smooth(X, lengths, by=by)]

    def log_likelihood(
        self,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> float:
        """Return the sum of log P(y | x) over all sequences, without penalties."""
        return float(self.log_prob(X, Y, lengths, by=by).sum())

    def score(
        self,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> float:
        """Return the share of tokens that `predict` labels right; tokens without label do not count."""
        right, codes, _ = self._compared(X, Y, lengths, by)
        return float(right[codes != MISSING].mean())

    def score_exact(
        self,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> float:
        """Return the share of sequences of which `predict` labels every token right."""
        right, codes, tokens = self._compared(X, Y, lengths, by)
        return float(np.mean([one.all() for one in tokens.split(right | (codes == MISSING))]))

    def save(self, path: str | PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Write the trained tagger to a file, `tagger.json` or `tagger.json.gz`; `mk.load` reads it."""
        ports.call("save", self, path, format=format)

    # -- inside ------------------------------------------------------------------------------------------------

    def _minimise(self, objective: Convex, tokens: Tokens) -> Minimum:
        """Minimise a convex objective of tokens, and absolute values of all weights, by L-BFGS."""
        with tokens.often(objective.k), Clock(None, self.progress, total=self.max_iter) as clock:
            return minimise(
                objective,
                np.zeros(objective.size),
                height=max(len(tokens.names), 1),
                lasso=np.full(objective.size, float(self.l1)),
                convex=True,
                max_iter=self.max_iter,
                tol=self.tol,
                clock=clock,
                bar=True,
            )

    def _learned(self, found: Minimum, tokens: Tokens, classes: NDArray[Any]) -> None:
        warn_of_training(found)
        self.classes_ = classes
        self.training_ = found
        self.objective_ = found.value
        self.n_iter_ = found.iterations
        self._vocabulary = tokens.vocabulary
        self.feature_names_ = None if tokens.vocabulary is None else list(tokens.vocabulary)

    def _take_names(self, classes: NDArray[Any], feature_names: Iterable[str] | None, width: int) -> None:
        """Take labels, and names of the columns where features go by name."""
        names = None if feature_names is None else list(feature_names)
        if names is not None and len(set(names)) != width:
            raise InvalidArgument(
                f"feature_names= has {len(set(names))} different names for {width} features"
            )
        self.classes_, self.feature_names_ = classes, names
        self._vocabulary = None if names is None else Vocabulary.of(names)

    def _tag_codes(self, labels: Any, tokens: Tokens, cut: bool) -> Ints:
        """Return label codes of tokens; -1 for none, -2 for one that training never showed."""
        return read_tags(labels, tokens, cut=cut, classes=self.classes_, strict=False)[0]

    def _compared(
        self, inputs: Any, labels: Any, lengths: Iterable[int] | None, by: str | None
    ) -> tuple[NDArray[np.bool_], Ints, Tokens]:
        """Say for each token whether `predict` labels it right; a label that fitting never met is wrong."""
        tokens = self.prepare(inputs, lengths, by=by)
        cut = lengths is not None or by is not None
        codes = self._tag_codes(labels, tokens, cut)
        return self._best_codes(tokens) == codes, codes, tokens


class Tagger(TokenLabeller, ConditionalField):
    """A model of one label a token, in which labels depend on their neighbours."""

    inference: Method = "auto"

    def _lattice(self, tokens: Tokens) -> tuple[HiddenChain, Observed, Array]:
        """Return the chain of labels, what it sees, and what to add to its log masses, one number a sequence."""
        raise NotImplementedError

    # -- questions ---------------------------------------------------------------------------------------------

    def k_best(
        self,
        X: Any,  # noqa: N803
        k: int,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> list[tuple[NDArray[Any], Array]]:
        """Return the k most probable labellings (labellings, tokens) of each sequence and log P(y | x), best first.

        There are fewer where fewer are possible.
        """
        check("k", k, Whole(1))
        tokens = self.prepare(X, lengths, by=by)
        found = np.full((len(tokens.names), k), -np.inf)
        found[~tokens.full, 0] = 0.0
        paths = np.zeros((k, 0), dtype=np.int64)
        if len(tokens):
            chain, seen, _ = self._lattice(tokens)
            paths, logs = chain.ranked(seen, k)
            found[tokens.full] = logs - chain.filter(seen).log_probs[:, None]
        return [
            (self.classes_[one.T[here]], values[here])
            for one, values, here in zip(tokens.split(paths.T), found, found > -np.inf, strict=True)
        ]

    def smooth(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> list[Array]:
        """Return the marginal distribution of every label, one array (tokens, labels) a sequence."""
        tokens = self.prepare(X, lengths, by=by)
        if not len(tokens):
            return tokens.split(np.zeros((0, len(self.classes_))))
        chain, seen, _ = self._lattice(tokens)
        return tokens.split(chain.smooth(seen).sums)

    predict_proba = smooth
    predict_marginals = smooth

    def predict_edges(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> list[Array]:
        """Return the joint distribution of two labels in a row, one array (tokens - 1, labels, labels) a sequence."""
        tokens = self.prepare(X, lengths, by=by)
        if not len(tokens):
            return tokens.split(np.zeros((0, len(self.classes_), len(self.classes_))))
        chain, seen, _ = self._lattice(tokens)
        return [one[1:] for one in tokens.split(chain.pairs(seen))]

    def log_partition(
        self,
        X: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> Array:
        """Return log Z(x) of each sequence; zero where labels have probabilities from the start."""
        tokens = self.prepare(X, lengths, by=by)
        found = np.zeros(len(tokens.names))
        if len(tokens):
            chain, seen, more = self._lattice(tokens)
            found[tokens.full] = chain.filter(seen).log_probs + more
        return found

    def log_prob(
        self,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
    ) -> Array:
        """Return log P(y | x) of each sequence; labels that are None are summed over."""
        tokens = self.prepare(X, lengths, by=by)
        codes, _ = read_tags(Y, tokens, cut=lengths is not None or by is not None, classes=self.classes_)
        found = np.zeros(len(tokens.names))
        if not len(tokens):
            return found
        chain, seen, _ = self._lattice(tokens)
        has = np.flatnonzero(codes >= 0)
        tied = np.where((codes < 0)[:, None], seen.logs, -np.inf)
        tied[has, codes[has]] = seen.logs[has, codes[has]]
        agreed = chain.filter(Observed.of(tied, tokens.chains)).log_probs
        found[tokens.full] = agreed - chain.filter(seen).log_probs
        return found

    def sample(
        self,
        X: Any,  # noqa: N803
        n: int = 1,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        seed: Any = None,
    ) -> list[NDArray[Any]]:
        """Return n labellings of each sequence drawn from P(y | x), one array (n, tokens) a sequence."""
        check("n", n, Whole(1))
        tokens = self.prepare(X, lengths, by=by)
        if not len(tokens):
            return [np.zeros((n, 0), dtype=self.classes_.dtype) for _ in tokens.names]
        chain, seen, _ = self._lattice(tokens)
        return [self.classes_[one.T] for one in tokens.split(chain.draw(seen, n, seed).T)]

    # -- inside ------------------------------------------------------------------------------------------------

    def _best_codes(self, tokens: Tokens) -> Ints:
        if not len(tokens):
            return np.zeros(0, dtype=np.int64)
        chain, seen, _ = self._lattice(tokens)
        return chain.best(seen)[0]


def warn_of_training(found: Minimum) -> None:
    """Warn where training did not converge."""
    if found.interrupted:
        message = f"training was interrupted after {found.iterations} steps; the best weights so far are kept"
    elif not found.converged:
        message = f"training did not converge in {found.iterations} steps; raise max_iter= or tol="
    else:
        return
    warnings.warn(message, ConvergenceWarning, stacklevel=4)


def need_two(classes: NDArray[Any]) -> None:
    """Refuse labels of which there are fewer than two."""
    if len(classes) < 2:
        raise InvalidArgument(
            f"all tokens have the label {classes[0].item()!r}; two different ones are needed"
            if len(classes)
            else "no sequence has a token with a label"
        )
