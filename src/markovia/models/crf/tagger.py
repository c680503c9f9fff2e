"""What taggers answer: models of one label a token in which labels depend on their neighbours in the sequence.

A `TokenLabeller` labels tokens in whatever way; semi-Markov fields are such. A `Tagger` turns tokens into a chain
(`_lattice`): a conditional random field one with weights, a maximum entropy Markov model one with probabilities. Its answers
are the hidden chain's (`inference/sequences/hidden_chain.py`): Viterbi paths, marginals, draws, masses.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Generic, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from markovia.data.sequences.sequences import Lengths
from markovia.data.text.tokens import MISSING, Tokens, read_tags, read_tokens
from markovia.data.text.vocabulary import Vocabulary
from markovia.errors import ConvergenceWarning, InvalidArgument, Unanswered, warn_user
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.inference.sequences.state_results import DecodedPaths
from markovia.learning.conditional_fields.label_histories import LabelHistories
from markovia.learning.conditional_fields.marginals import Method
from markovia.models.crf.base import ConditionalField, Labeller
from markovia.optimise.minimise import Minimum, minimise
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import (
    Count,
    NumberRange,
    Penalty,
    Positive,
    Tolerance,
    Whole,
    check,
    check_options,
)
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed

Labellings = TypeVar("Labellings", NDArray[Any], list[Any])
"""Several labellings of one sequence, as users meet them."""
Coded: TypeAlias = tuple[NDArray[Any], ...]
"""A label code for each token, along the last axis, and what else a labelling says of it, such as where segments begin."""


@dataclass(eq=False, repr=False, kw_only=True)
class TokenLabeller(Labeller, Generic[Labellings]):
    """A model of the labels of tokens; tokens and sequences are as `ChainCRF` says.

    A subclass says its mathematics on tokens that are read, of which there is at least one.
    """

    C: Penalty = 2.0
    l1: Tolerance = 0.0
    max_iter: Count = 500
    tol: Positive = 1e-5
    progress: bool | None = None

    @abstractmethod
    def _width(self) -> int:
        """Return the number of features."""

    @abstractmethod
    def _objective(self, tokens: Tokens, coded: Coded, classes: NDArray[Any]) -> Any:
        """Return what training minimises; it unpacks a point as weights."""

    @abstractmethod
    def _set_weights(self, weights: Any) -> None:
        """Take weights, and show them as learned attributes."""

    @abstractmethod
    def _viterbi(self, tokens: Tokens) -> Coded:
        """Return a most probable labelling."""

    @abstractmethod
    def _ranked(self, tokens: Tokens, k: int) -> tuple[Coded, Array]:
        """Return the k most probable labellings, and log P(y | x), (sequences, k)."""

    @abstractmethod
    def _drawn(self, tokens: Tokens, n: int, seed: Seed) -> Coded:
        """Return n labellings drawn from P(y | x)."""

    @abstractmethod
    def _label_marginals(self, tokens: Tokens) -> Array:
        """Return the marginal distribution of every label, (tokens, labels)."""

    @abstractmethod
    def _log_masses(self, tokens: Tokens) -> Array:
        """Return log Z(x) of each sequence."""

    @abstractmethod
    def _log_probs(self, tokens: Tokens, coded: Coded) -> Array:
        """Return log P(y | x) of each sequence."""

    @abstractmethod
    def _shown(self, tokens: Tokens, coded: Coded) -> list[Labellings]:
        """Return coded labellings (labellings, tokens) as users meet them, for each sequence."""

    def _coded(self, labels: Any, tokens: Tokens, cut: bool, **options: Any) -> tuple[Coded, NDArray[Any]]:
        """Read labels, as `read_tags` does; return them and the labels there are."""
        codes, classes = read_tags(labels, tokens, cut=cut, **options)
        return (codes,), classes

    def fit(self, X: Any, Y: Any, lengths: Lengths = None, *, by: str | None = None) -> Self:  # noqa: N803
        """Learn the weights from sequences and their labels.

        Parameters
        ----------
        X
            Sequences; see `ChainCRF`.
        Y
            One list of labels a sequence, None for a token without label; one flat list with `lengths` or `by`.
        lengths, by
            The lengths of sequences that lie after each other; the column that tells a frame's sequences apart.

        Raises
        ------
        InvalidArgument
            For data that does not fit together; the message names the sequence.
        """
        check_options(self)
        tokens = read_tokens(X, lengths, by=by, grow=True)
        coded, classes = self._coded(Y, tokens, lengths is not None or by is not None)
        _need_two(classes)
        objective = self._objective(tokens, coded, classes)
        with tokens.often(len(classes)):
            found = self._solve(objective, max(len(tokens.names), 1))
        warn_of_training(found)
        self.classes_ = classes
        self.training_ = found
        self.objective_ = found.value
        self.n_iter_ = found.iterations
        self._vocabulary = tokens.vocabulary
        self.feature_names_ = None if tokens.vocabulary is None else list(tokens.vocabulary)
        self._set_weights(objective.unpack(found.point))
        return self

    def prepare(self, X: Any, lengths: Lengths = None, *, by: str | None = None) -> Tokens:  # noqa: N803
        """Return sequences read once, to be asked about often: every question takes them in the place of `X`."""
        self._need_fit()
        tokens = read_tokens(X, lengths, by=by, vocabulary=self._vocabulary)
        if len(tokens) and tokens.width != self._width():
            raise InvalidArgument(
                f"the model has {self._width()} node features but the inputs have {tokens.width}"
            )
        return tokens

    # -- questions ---------------------------------------------------------------------------------------------

    def predict(self, X: Any, lengths: Lengths = None, *, by: str | None = None) -> list[NDArray[Any]]:  # noqa: N803
        """Return the most probable labelling of each sequence (Viterbi)."""
        tokens = self.prepare(X, lengths, by=by)
        return tokens.split(self.classes_[self._most_probable(tokens)[0][0]])

    def predict_by_node(
        self, X: Any, lengths: Lengths = None, *, by: str | None = None  # noqa: N803
    ) -> list[NDArray[Any]]:  # fmt: skip
        """Return each token's most probable label, which makes the expected number of wrong ones smallest."""
        return [self.classes_[one.argmax(axis=1)] for one in self.smooth(X, lengths, by=by)]

    def k_best(
        self, X: Any, k: int, lengths: Lengths = None, *, by: str | None = None  # noqa: N803
    ) -> list[tuple[Labellings, Array]]:  # fmt: skip
        """Return the k most probable labellings of each sequence and log P(y | x), best first.

        There are fewer where fewer are possible. They are an array (labellings, tokens), or a list of lists of segments.
        """
        check("k", k, Whole(1))
        tokens = self.prepare(X, lengths, by=by)
        logs = np.full((len(tokens.names), k), -np.inf)
        logs[~tokens.full, 0] = 0.0
        coded = _no_tokens(k)
        if len(tokens):
            coded, logs[tokens.full] = self._ranked(tokens, k)
        possible = np.count_nonzero(logs > -np.inf, axis=1).tolist()
        return [
            (labellings[:n], own[:n])
            for labellings, own, n in zip(self._shown(tokens, coded), logs, possible, strict=True)
        ]

    def sample(
        self, X: Any, n: int = 1, lengths: Lengths = None, *, by: str | None = None, seed: Seed = None  # noqa: N803
    ) -> list[Labellings]:  # fmt: skip
        """Return n labellings of each sequence drawn from P(y | x): an array (n, tokens), or n lists of segments."""
        check("n", n, Whole(1))
        tokens = self.prepare(X, lengths, by=by)
        return self._shown(tokens, self._drawn(tokens, n, seed) if len(tokens) else _no_tokens(n))

    def smooth(self, X: Any, lengths: Lengths = None, *, by: str | None = None) -> list[Array]:  # noqa: N803
        """Return the marginal distribution of every token's label, one array (tokens, labels) a sequence."""
        tokens = self.prepare(X, lengths, by=by)
        return tokens.split(
            self._label_marginals(tokens) if len(tokens) else np.zeros((0, len(self.classes_)))
        )

    predict_proba = smooth
    predict_marginals = smooth

    def log_partition(self, X: Any, lengths: Lengths = None, *, by: str | None = None) -> Array:  # noqa: N803
        """Return log Z(x) of each sequence; zero where labels have probabilities from the start."""
        tokens = self.prepare(X, lengths, by=by)
        found = np.zeros(len(tokens.names))
        if len(tokens):
            found[tokens.full] = self._log_masses(tokens)
        return found

    def log_prob(self, X: Any, Y: Any, lengths: Lengths = None, *, by: str | None = None) -> Array:  # noqa: N803
        """Return log P(y | x) of each sequence; labels that are None are summed over, where they may be."""
        tokens = self.prepare(X, lengths, by=by)
        coded, _ = self._coded(Y, tokens, lengths is not None or by is not None, classes=self.classes_)
        found = np.zeros(len(tokens.names))
        if len(tokens):
            found[tokens.full] = self._log_probs(tokens, coded)
        return found

    def log_likelihood(self, X: Any, Y: Any, lengths: Lengths = None, *, by: str | None = None) -> float:  # noqa: N803
        """Return the sum of log P(y | x) over all sequences, without penalties."""
        return float(self.log_prob(X, Y, lengths, by=by).sum())

    def score(self, X: Any, Y: Any, lengths: Lengths = None, *, by: str | None = None) -> float:  # noqa: N803
        """Return the share of tokens that `predict` labels right; tokens without label do not count."""
        right, codes, _ = self._compared(X, Y, lengths, by)
        return float(right[codes != MISSING].mean())

    def score_exact(self, X: Any, Y: Any, lengths: Lengths = None, *, by: str | None = None) -> float:  # noqa: N803
        """Return the share of sequences of which `predict` labels every token right."""
        right, codes, tokens = self._compared(X, Y, lengths, by)
        return float(np.mean([one.all() for one in tokens.split(right | (codes == MISSING))]))

    def save(self, path: str | PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Write the trained tagger to a file, `tagger.json` or `tagger.json.gz`; `mk.load` reads it."""
        ports.call("save", self, path, format=format)

    # -- inside ------------------------------------------------------------------------------------------------

    def _solve(self, objective: Any, n: int) -> Minimum:
        """Minimise an objective of n sequences, and absolute values of all weights."""
        return self._minimise(objective, n, np.full(objective.size, float(self.l1)))

    def _minimise(self, objective: Any, n: int, lasso: Array) -> Minimum:
        """Minimise a convex objective of n sequences, and weighted absolute values of its point, by L-BFGS."""
        with Clock(None, self.progress, total=self.max_iter) as clock:
            return minimise(
                objective, np.zeros(objective.size), height=n, lasso=lasso, convex=True, max_iter=self.max_iter,
                tol=self.tol, clock=clock, bar=True,
            )  # fmt: skip

    def _set_names(self, classes: NDArray[Any], feature_names: Iterable[str] | None, width: int) -> None:
        """Take labels, and names of the columns where features go by name."""
        names = None if feature_names is None else list(feature_names)
        if names is not None and len(set(names)) != width:
            raise InvalidArgument(
                f"feature_names= has {len(set(names))} different names for {width} features"
            )
        self.classes_, self.feature_names_ = classes, names
        self._vocabulary = None if names is None else Vocabulary.of(names)

    def _most_probable(self, tokens: Tokens) -> Coded:
        """Return a most probable labelling, (1, tokens)."""
        return tuple(part[None] for part in self._viterbi(tokens)) if len(tokens) else _no_tokens(1)

    def _compared(
        self, inputs: Any, labels: Any, lengths: Lengths, by: str | None
    ) -> tuple[NDArray[np.bool_], Ints, Tokens]:
        """Say for each token whether `predict` labels it right; a label that fitting never met is wrong."""
        tokens = self.prepare(inputs, lengths, by=by)
        cut = lengths is not None or by is not None
        codes = self._coded(labels, tokens, cut, classes=self.classes_, strict=False)[0][0]
        return self._most_probable(tokens)[0][0] == codes, codes, tokens


class Tagger(TokenLabeller[NDArray[Any]], ConditionalField):
    """A model of one label a token, in which labels depend on their neighbours."""

    inference: Method = "auto"
    _histories: LabelHistories | None = None
    """What the states of the chain are, where they are not labels."""

    @abstractmethod
    def _lattice(self, tokens: Tokens) -> tuple[HiddenChain, Observed, Array]:
        """Return the chain of labels, what it sees, and what to add to its log masses, one number a sequence."""

    def predict(
        self, X: Any, lengths: Lengths = None, *, by: str | None = None, beam: int | None = None  # noqa: N803
    ) -> DecodedPaths:  # fmt: skip
        """Return the most probable labelling of each sequence (Viterbi).

        With `beam` only so many labels go on at each token, which is quicker where there are many. `gap` of the list then
        has how much larger log P(y | x) of another labelling can be, zero where the labelling is proved to be a best one.

        Examples
        --------
        >>> import markovia as mk
        >>> X, y = [["a", "b", "a"], ["b", "b"]], [["U", "V", "U"], ["V", "V"]]
        >>> tagger = mk.crf.ChainCRF().fit(X, y)
        >>> best = tagger.predict(X, beam=1)
        >>> best[0].tolist(), best.gap.tolist()
        (['U', 'V', 'U'], [0.0, 0.0])
        """
        check("beam", beam, Whole(1, none=True))
        tokens = self.prepare(X, lengths, by=by)
        gaps = np.zeros(len(tokens.names))
        if beam is None or not len(tokens):
            codes = self._most_probable(tokens)[0][0]
        else:
            chain, seen, _ = self._lattice(tokens)
            states, logs, gaps[tokens.full] = chain.beam(seen, beam)
            codes = self._as_labels(states)
            if (logs == -np.inf).any():
                raise Unanswered(
                    f"all labellings of a sequence left the beam; say a larger beam= than {beam}, or none"
                )
        return DecodedPaths.of(tokens.split(self.classes_[codes]), None, gaps)

    def best_among(
        self, X: Any, labellings: Iterable[Sequence[Any]], k: int = 1, lengths: Lengths = None, *,  # noqa: N803
        by: str | None = None, bonus: float = np.inf,
    ) -> list[tuple[NDArray[Any], Array]]:  # fmt: skip
        """Return the k most probable labellings of each sequence where those of a dictionary count more, best first.

        P(y | x) is multiplied by `exp(bonus)` for labellings of the dictionary, such as letters that are a word, and
        normalised again, exactly: the sum over all others is one minus that over the dictionary. Cost: a pass of the chain
        for each sequence and each labelling of its length.

        Parameters
        ----------
        X, lengths, by
            Sequences; see `fit`.
        labellings
            The dictionary: strings or lists of labels, of any lengths; labels that training never met make one impossible.
        k
            How many; there are fewer where fewer are possible.
        bonus
            What being in the dictionary adds to the log weight; infinity where nothing else may be.

        Returns
        -------
            For each sequence the labellings (k, tokens) and the logarithms of their new probabilities.

        Examples
        --------
        >>> import markovia as mk
        >>> reader = mk.ChainCRF.from_weights(list("acot"), np.eye(4), np.zeros((4, 4)))
        >>> seen = [np.log([[0.1, 0.6, 0.3, 1e-3], [0.4, 0.1, 0.5, 1e-3], [1e-3, 1e-3, 1e-3, 1.0]])]
        >>> "".join(reader.predict(seen)[0]), "".join(reader.best_among(seen, ["cat", "act", "oats"])[0][0][0])
        ('cot', 'cat')
        """
        check("k", k, Whole(1))
        check("bonus", bonus, NumberRange(0.0, said="a number, 0 or more, or infinity"))
        tokens = self.prepare(X, lengths, by=by)
        place = {label: i for i, label in enumerate(self.classes_.tolist())}
        by_length: dict[int, dict[tuple[int, ...], None]] = {}
        for entry in labellings:
            if all(label in place for label in entry):
                by_length.setdefault(len(entry), {})[tuple(place[label] for label in entry)] = None
        sizes = np.diff(tokens.offsets).tolist()
        free = self.k_best(tokens, k) if bonus < np.inf else [None] * len(sizes)
        found = []
        for i, (n, best) in enumerate(zip(sizes, free, strict=True)):
            codes = np.array(list(by_length.get(n, {})), dtype=np.int64).reshape(-1, n)
            logs = np.zeros(len(codes))
            if codes.size:
                same, _ = tokens.some(np.full(len(codes), i))
                logs = self._log_probs(same, (codes.ravel(),))
            found.append(_with_bonus(self.classes_[codes], logs, best, k, bonus))
        return found

    def predict_edges(self, X: Any, lengths: Lengths = None, *, by: str | None = None) -> list[Array]:  # noqa: N803
        """Return the joint distribution of two labels in a row, one array (tokens - 1, labels, labels) a sequence."""
        tokens = self.prepare(X, lengths, by=by)
        if not len(tokens):
            return tokens.split(np.zeros((0, len(self.classes_), len(self.classes_))))
        chain, seen, _ = self._lattice(tokens)
        pairs, own = chain.pairs(seen), self._histories
        if own is not None:
            pairs = own.by_label(own.by_label(pairs).swapaxes(1, 2)).swapaxes(1, 2)
        return [one[1:] for one in tokens.split(pairs)]

    # -- inside ------------------------------------------------------------------------------------------------

    def _viterbi(self, tokens: Tokens) -> Coded:
        chain, seen, _ = self._lattice(tokens)
        return (self._as_labels(chain.best(seen)[0]),)

    def _ranked(self, tokens: Tokens, k: int) -> tuple[Coded, Array]:
        chain, seen, _ = self._lattice(tokens)
        paths, logs = chain.ranked(seen, k)
        return (self._as_labels(paths),), logs - chain.filter(seen).log_probs[:, None]

    def _drawn(self, tokens: Tokens, n: int, seed: Seed) -> Coded:
        chain, seen, _ = self._lattice(tokens)
        return (self._as_labels(chain.draw(seen, n, seed)),)

    def _label_marginals(self, tokens: Tokens) -> Array:
        chain, seen, _ = self._lattice(tokens)
        beliefs = chain.smooth(seen).sums
        return beliefs if self._histories is None else self._histories.by_label(beliefs)

    def _log_masses(self, tokens: Tokens) -> Array:
        chain, seen, more = self._lattice(tokens)
        return np.asarray(chain.filter(seen).log_probs + more)

    def _log_probs(self, tokens: Tokens, coded: Coded) -> Array:
        # the mass of labellings that agree with the labels there are, over that of all
        chain, seen, _ = self._lattice(tokens)
        codes = coded[0][:, None]
        agrees = (codes < 0) | (codes == self._as_labels(np.arange(seen.logs.shape[1])))
        tied = np.where(agrees, seen.logs, -np.inf)
        agreed = chain.filter(Observed.of(tied, tokens.chains)).log_probs
        return np.asarray(agreed - chain.filter(seen).log_probs)

    def _as_labels(self, states: Ints) -> Ints:
        """Return the labels of states of the chain."""
        return states if self._histories is None else self._histories.label[states]

    def _shown(self, tokens: Tokens, coded: Coded) -> list[NDArray[Any]]:
        return [self.classes_[one.T] for one in tokens.split(coded[0].T)]


def _with_bonus(
    entries: NDArray[Any], logs: Array, best: tuple[NDArray[Any], Array] | None, k: int, bonus: float
) -> tuple[NDArray[Any], Array]:
    """Return the k best, with a bonus, of a dictionary and of the k best labellings of all; no other can be among them."""
    inside = np.logaddexp.reduce(logs) if len(logs) else -np.inf
    if best is None:
        raised = logs - inside if inside > -np.inf else logs
    else:
        with np.errstate(divide="ignore"):
            mass = np.logaddexp(np.log1p(-min(float(np.exp(inside)), 1.0)), bonus + inside)
        known = set(map(tuple, entries.tolist()))
        other = [i for i, y in enumerate(best[0].tolist()) if tuple(y) not in known]
        entries = np.concatenate([entries, best[0][other]])
        raised = np.concatenate([logs + bonus, best[1][other]]) - mass
    order = np.argsort(-raised, kind="stable")[:k]
    order = order[raised[order] > -np.inf]
    return entries[order], raised[order]


def _no_tokens(n: int) -> Coded:
    """Return n labellings of no tokens, which have no segments either."""
    return (np.zeros((n, 0), dtype=np.int64),) * 2


def warn_of_training(found: Minimum) -> None:
    """Warn where training did not converge."""
    if found.interrupted:
        message = f"training was interrupted after {found.iterations} steps; the best weights so far are kept"
    elif not found.converged:
        message = f"training did not converge in {found.iterations} steps; raise max_iter= or tol="
    else:
        return
    warn_user(message, ConvergenceWarning)


def _need_two(classes: NDArray[Any]) -> None:
    """Refuse labels of which there are fewer than two."""
    if len(classes) < 2:
        raise InvalidArgument(
            f"all tokens have the label {classes[0].item()!r}; two different ones are needed"
            if len(classes)
            else "no sequence has a token with a label"
        )
