"""Maximum entropy Markov models: taggers that are normalised at each token.

    P(y | x) = prod_t P(y_t | y_t-1, x_t),   P(a | b, x_t) proportional to exp( W[a] . x_t + T[b, a] )

Method: softmax regression of each label on the token's features and the label before (McCallum, Freitag and Pereira 2000).
Training needs no sum over labellings, so it is fast. The price is label bias (Bottou 1991; Lafferty et al. 2001): the
probability that flows into a label must flow out again whatever is seen next, so labels with few successors ignore what
they see; `ChainCRF`, normalised once a sequence, has no such bias. Cost: tokens times labels times features.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.data.text.tokens import MISSING, Tokens
from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import finite_numbers
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.learning.conditional_fields.local_objective import LocalObjective
from markovia.models.crf.base import sorted_labels
from markovia.models.crf.tagger import Coded, Tagger
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array


@dataclass(eq=False, repr=False, kw_only=True)
class MEMM(Tagger):
    """A maximum entropy Markov model: each label by softmax regression on its token's features and the label before.

    Sequences are as in `ChainCRF`, and so are all questions; to train, every token needs a label.

    Parameters
    ----------
    C
        The penalty `||w||^2 / C` of all weights; infinity for none.
    l1
        The weight of a penalty on absolute values, which makes weights zero.
    per_label
        Whether each label before has weights of its own for all features (as in the original), or features and the label
        before add up.
    max_iter, tol
        Steps of L-BFGS at most; the gradient, a mean over sequences, at which to stop.
    progress
        Whether to show a progress bar; None for long runs on a terminal.

    Attributes
    ----------
    classes_
        The labels in order.
    coef_
        Weights of features, shape (labels, features); with `per_label` (1 + labels, labels, features), the first for the
        start of a sequence.
    transitions_, start_
        The log weight of label b after label a, and of each label at the first token.
    feature_names_, objective_, n_iter_
        As in `ChainCRF`.

    Examples
    --------
    >>> X = [[{"word": "the"}, {"word": "dog"}, {"word": "barks"}], [{"word": "a"}, {"word": "dog"}]]
    >>> Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    >>> tagger = MEMM().fit(X, Y)
    >>> tagger.predict([[{"word": "the"}, {"word": "cat"}]])[0].tolist()
    ['DET', 'NOUN']
    >>> tagger.network([{"word": "the"}, {"word": "cat"}]).parents("y1")
    ['y0']
    """

    per_label: bool = False

    def _objective(self, tokens: Tokens, coded: Coded, classes: NDArray[Any]) -> LocalObjective:
        codes = coded[0]
        if (codes == MISSING).any():
            raise InvalidArgument(
                f"{tokens.at(int(np.argmax(codes == MISSING)))} has no label; a MEMM is trained on whole labellings, a "
                "ChainCRF also on partial ones"
            )
        return LocalObjective(tokens, codes, len(classes), C=self.C, apart=self.per_label)

    @classmethod
    def from_weights(
        cls,
        classes: ArrayLike,
        coef: ArrayLike,
        transitions: ArrayLike,
        *,
        start: ArrayLike | None = None,
        feature_names: Iterable[str] | None = None,
        **settings: Any,
    ) -> Self:
        """Build a model from known weights; shapes as of the learned attributes, labels in the order of `classes`."""
        labels, order = sorted_labels(classes)
        k = len(labels)
        node, pairs = finite_numbers(coef, "coef"), finite_numbers(transitions, "transitions")
        first = np.zeros(k) if start is None else finite_numbers(start, "start=")
        apart = node.ndim == 3
        node = node if apart else node[None]
        wanted = "(1 + labels, labels, features)" if apart else "(labels, features)"
        if node.ndim != 3 or node.shape[1] != k or len(node) != (k + 1 if apart else 1):
            raise InvalidArgument(f"with {k} labels coef has the shape {wanted}, not {np.shape(coef)}")
        if pairs.shape != (k, k) or first.shape != (k,):
            raise InvalidArgument(
                f"with {k} labels transitions has shape ({k}, {k}) and start ({k},), not {pairs.shape} and {first.shape}"
            )
        made = cls(per_label=apart, **settings)
        made._set_names(labels, feature_names, node.shape[2])
        if apart:
            node = node[np.concatenate([[0], order + 1])]
        columns = np.ascontiguousarray(node[:, order].transpose(0, 2, 1))
        made._set_weights((columns, np.vstack([first[order], pairs[order][:, order]])))
        return made

    def network(self, x: Any) -> BayesianNetwork:  # type: ignore[override]
        """Return the Bayesian network `y0 -> y1 -> ...` over the labels of one sequence, for any question and engine."""
        tokens = self.prepare([x])
        tables = np.exp(self._logs(tokens))
        found = BayesianNetwork()
        states = self.classes_.tolist()
        for t in range(len(tokens)):
            if t == 0:
                found.add("y0", states=states, p=tables[0, 0])
            else:
                found.add(f"y{t}", states=states, parents=[f"y{t - 1}"], p=tables[t, 1:])
        return found

    def _set_weights(self, weights: tuple[Array, Array]) -> None:
        self._columns, self._moves = columns, moves = weights
        coef = columns.transpose(0, 2, 1)
        self.coef_ = coef if len(columns) > 1 else coef[0]
        self.start_, self.transitions_ = moves[0], moves[1:]

    def _width(self) -> int:
        return int(self._columns.shape[1])

    def _logs(self, tokens: Tokens) -> Array:
        """Return log P(label | label before, token), shape (tokens, 1 + labels, labels); row 0 for the start."""
        scores = np.stack([tokens.scores(part) for part in self._columns], axis=1)
        logs: Array = scores + self._moves
        logs -= logs.max(axis=2, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=2, keepdims=True))
        return logs

    def _lattice(self, tokens: Tokens) -> tuple[HiddenChain, Observed, Array]:
        logs = self._logs(tokens)
        seen = np.zeros((len(tokens), len(self.classes_)))
        first = tokens.chains[:-1]
        seen[first] = logs[first, 0]
        start = np.ones(len(self.classes_))
        chain = HiddenChain(start, np.exp(logs[:, 1:]), np.arange(len(tokens)))
        return chain, Observed.of(seen, tokens.chains), np.zeros(len(first))
