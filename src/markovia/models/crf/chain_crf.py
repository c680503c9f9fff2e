"""Linear-chain conditional random fields for sequences: tagging words, segmenting signals.

    P(y | x) = exp( s[y_1] + e[y_n] + sum_i W[y_i] . x_i + sum_i T[y_i, y_(i+1)] ) / Z(x)

Method: the chain case of `CRF` with weights for both ends, sparse weights, and the recursions of hidden chains
(forward-backward, Viterbi) on compiled code over all sequences at once. References: Lafferty, McCallum and Pereira (2001);
Sutton and McCallum (2012); CRFsuite (Okazaki 2007) for features by name. Cost of one gradient: tokens times (labels squared
plus labels times features of a token).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.data.text.tokens import FewWeights, Tokens
from markovia.errors import InvalidArgument
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.learning.conditional_fields.chain_objective import ChainObjective, ChainWeights, chain_of
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.label_constraints import allowed_moves, refuse_forbidden
from markovia.learning.conditional_fields.label_histories import HistoryObjective, LabelHistories
from markovia.learning.conditional_fields.online_chain import learn_online
from markovia.learning.conditional_fields.reading import chain_edges
from markovia.learning.conditional_fields.stochastic_training import descend
from markovia.models.crf.base import Scored, exponentials, sorted_labels
from markovia.models.crf.crf import CRF, log_weights
from markovia.models.crf.tagger import Coded, Tagger
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.optimise.minimise import Minimum
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, PenaltyOrNone, Positive, Several, Whole, check_options
from markovia.runtime.seeds import generator

Solver = Literal["lbfgs", "sgd", "max-margin", "perceptron", "passive-aggressive"]


@dataclass(eq=False, repr=False, kw_only=True)
class ChainCRF(Tagger):
    """A linear-chain conditional random field for sequences: a tagger.

    A sequence is a list of tokens. A token has features by name, as CRFsuite takes them: a mapping from names to numbers,
    truth values, strings, or mappings and lists of such, a list of strings, or a word. Or a sequence is an array, or a scipy
    sparse matrix, with one row a token. All methods also take one flat list, array or matrix with `lengths=`.

    Parameters
    ----------
    C, edge_C
        The penalty `||w||^2 / C` of feature weights, and that of transitions (None: the same); infinity for none. CRFsuite's
        `c2` is `1 / C`.
    l1
        The weight of a penalty on absolute values, which makes weights zero; CRFsuite's `c1`.
    order
        How many labels before the next one count: with 2 there are weights for three labels in a row beside those for two.
        Exact, on a chain whose states are histories of labels; the cost is tokens times labels to the power of `2 * order`.
    positions
        How many transitions at the beginning, and at the end, have weights of their own beside those for all: `(0, 1)`
        learns what two labels words end in.
    start_end
        Whether the first and last position have weights of their own. None: only where features have no names; with names
        the model is CRFsuite's, in which everything is a named feature.
    fit_intercept
        Whether every label has a weight of its own, which is not penalised; None as for `start_end`.
    all_possible_states, all_possible_transitions
        Whether features have weights for labels with which they were never seen, and pairs of labels that never followed
        each other have one. None: only where features have no names, as in CRFsuite. Without, both are zero.
    constraints
        Forbidden transitions: "bio" or "bioes" for spans, or a list of pairs of labels that may not follow each other, with
        None for the outside: `(None, "I-PER")` may not begin a sequence.
    solver
        "lbfgs", or "sgd" for stochastic gradients, of the likelihood; "max-margin" (stochastic gradients of a structured
        hinge loss, where a labelling with n wrong labels has to score n less), "perceptron" (averaged) or
        "passive-aggressive" (the longest step is `C`).
    max_iter, tol
        Steps (passes over the data but for "lbfgs") at most; the gradient, a mean over sequences, at which to stop, or the
        change of weights in a pass for stochastic gradients.
    batch_size, learning_rate
        For stochastic gradients.
    random_state
        The seed of the order of sequences.
    progress
        Whether to show a progress bar; None for long runs on a terminal.

    Attributes
    ----------
    classes_
        The labels in order.
    coef_, intercept_
        Weights of features, shape (labels, features), and intercepts; a scipy sparse matrix where there are very many.
    transitions_
        The log weight of label b after label a, shape (labels, labels); minus infinity where it is forbidden.
    ngrams_
        With `order` or `positions` the log weights of labels after histories of one, two, ... labels, shape (1 + positions,
        histories, labels), those for all places first; `transition_features_` and `position_features_` have them by labels.
    start_, end_
        The log weight of each label at the first and last position.
    feature_names_
        Names of the columns, for features by name.
    objective_
        The objective, penalties included, at the end (wrong labels in the last pass of the perceptron and its kin).
    n_iter_
        Steps or passes made. `training_` says more.

    Notes
    -----
    A token without label, None, is summed over: `fit` then maximises the probability of the labels there are. A sequence
    without tokens has the empty labelling, of probability one.

    Examples
    --------
    >>> X = [[{"word": "the"}, {"word": "dog"}, {"word": "barks"}], [{"word": "a"}, {"word": "dog"}]]
    >>> Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    >>> tagger = ChainCRF().fit(X, Y)
    >>> tagger.predict([[{"word": "the"}, {"word": "cat"}]])[0].tolist()
    ['DET', 'NOUN']
    >>> tagger.smooth([[{"word": "the"}, {"word": "cat"}]])[0].shape
    (2, 3)
    """

    edge_C: PenaltyOrNone = None  # noqa: N815
    order: Count = 1
    positions: Annotated[Sequence[int], Several(Whole(0), "two whole numbers, 0 or more", 2)] = (0, 0)
    start_end: bool | None = None
    fit_intercept: bool | None = None
    all_possible_states: bool | None = None
    all_possible_transitions: bool | None = None
    constraints: Any = None
    solver: Solver = "lbfgs"
    batch_size: Count = 16
    learning_rate: Positive = 0.2
    random_state: Any = None

    # -- training ----------------------------------------------------------------------------------------------

    def _objective(self, tokens: Tokens, coded: Coded, classes: NDArray[Any]) -> ChainObjective:
        allowed = allowed_moves(self.constraints, classes)
        if allowed is not None:
            refuse_forbidden(allowed, coded[0], tokens, classes)
        named = tokens.vocabulary is not None

        def setting(given: bool | None, otherwise: bool) -> bool:
            return otherwise if given is None else bool(given)

        histories = self._histories_of(len(classes))
        options: dict[str, Any] = {
            "C": self.C,
            "edge_C": self.C if self.edge_C is None else self.edge_C,
            "l1": self.l1,
            "intercept": setting(self.fit_intercept, not named),
            "ends": setting(self.start_end, not named),
            "all_states": setting(self.all_possible_states, not named),
            "all_pairs": setting(self.all_possible_transitions, not named),
            "allowed": allowed,
            "margin": self.solver == "max-margin",
        }
        if histories is None:
            return ChainObjective(tokens, coded[0], len(classes), **options)
        if self.solver in ("perceptron", "passive-aggressive"):
            raise InvalidArgument(
                f"solver={self.solver!r} is for order=1 without positions=; use 'lbfgs', 'sgd' or 'max-margin'"
            )
        return HistoryObjective(tokens, coded[0], histories, **options)

    def _histories_of(self, k: int) -> LabelHistories | None:
        """Return the states of the chain, where they are not labels."""
        check_options(self)
        found = LabelHistories(k, self.order, *self.positions)
        return found if found.longer else None

    def _solve(self, objective: ChainObjective, n: int) -> Minimum:
        rng = generator(self.random_state)
        limits: dict[str, Any] = {"max_iter": self.max_iter, "progress": self.progress}
        if self.solver in ("perceptron", "passive-aggressive"):
            longest = float(self.C) if self.solver == "passive-aggressive" else 0.0
            return learn_online(objective, rng, aggressiveness=longest, **limits)
        if self.solver == "lbfgs":
            return self._minimise(objective, n, objective.lasso)
        found = descend(
            objective,
            np.zeros(objective.size),
            rng,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            tol=self.tol,
            **limits,
        )
        value = objective(found.point)[0] + float(objective.lasso @ np.abs(found.point))
        return replace(found, value=value)

    def _set_weights(self, weights: ChainWeights) -> None:
        self._weights = weights
        columns = weights.columns
        if isinstance(columns, FewWeights):
            from scipy.sparse import csc_matrix

            shape = (columns.k, len(columns.starts) - 1)
            self.coef_ = csc_matrix((columns.values, columns.labels, columns.starts), shape=shape)
        else:
            self.coef_ = columns.T
        self.intercept_ = weights.intercept
        self._histories = self._histories_of(len(weights.start))
        self.transitions_ = weights.transitions
        if self._histories is not None:
            self.ngrams_ = weights.transitions
            self.transitions_ = self.ngrams_[0, : self._histories.k]
        self.start_, self.end_ = weights.start, weights.end

    @classmethod
    def from_weights(
        cls,
        classes: ArrayLike,
        coef: ArrayLike,
        transitions: ArrayLike,
        intercept: ArrayLike | None = None,
        *,
        start: ArrayLike | None = None,
        end: ArrayLike | None = None,
        feature_names: Iterable[str] | None = None,
        ngrams: Mapping[Any, float] | None = None,
        **settings: Any,
    ) -> Self:
        """Build a chain from known weights.

        Parameters
        ----------
        classes
            The labels.
        coef
            Weights of features, shape (labels, features).
        transitions
            The log weight of label b after label a, shape (labels, labels); minus infinity forbids a pair.
        intercept, start, end
            One weight a label each; zero if left out.
        feature_names
            The names of the columns, for features by name.
        ngrams
            Log weights beside those of transitions: of labels in a row, `("i", "n", "g")`, up to `order + 1` of them, or of
            such at a place, `(-1, ("e", "r"))`, as in `position_features_`.
        settings
            As in the class.
        """
        plain = CRF.from_weights(classes, coef, transitions, intercept)
        order = sorted_labels(classes)[1]
        ends = []
        for what, given in (("start", start), ("end", end)):
            found = np.zeros(len(order)) if given is None else log_weights(given, f"{what}=")
            if found.shape != order.shape:
                raise InvalidArgument(
                    f"{what}= has one weight a label, {len(order)}, not shape {found.shape}"
                )
            ends.append(found[order])
        if len(plain.edge_coef_) != 1:
            raise InvalidArgument("transitions= of a chain is one table (labels, labels)")
        made = cls(**settings)
        made._set_names(plain.classes_, feature_names, plain.coef_.shape[1])
        columns = np.ascontiguousarray(plain.coef_.T)
        own = LabelHistories(len(order), made.order, *made.positions)
        moves = _ngram_table(own, plain.edge_coef_[0], ngrams or {}, plain.classes_.tolist())
        made._set_weights(ChainWeights(columns, moves, plain.intercept_, ends[0], ends[1]))
        return made

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """The weights of named features that are not zero, by (name, label), as sklearn-crfsuite gives them."""
        self._need_fit()
        names = self.feature_names_ or [str(i) for i in range(self.coef_.shape[1])]
        labels, columns = self.coef_.nonzero()
        found = np.asarray(self.coef_[labels, columns]).ravel()
        classes = self.classes_.tolist()
        return {
            (names[c], classes[a]): w
            for a, c, w in zip(labels.tolist(), columns.tolist(), found.tolist(), strict=True)
        }

    @property
    def transition_features_(self) -> dict[tuple[Any, ...], float]:
        """The weights of labels in a row that are not zero, by these labels: pairs, and longer ones with `order`."""
        self._need_fit()
        return self._named_weights(self.transitions_ if self._histories is None else self.ngrams_[0])

    @property
    def position_features_(self) -> dict[tuple[int, tuple[Any, ...]], float]:
        """The weights of places that are not zero, by place and labels: 1, 2, ... from the beginning, or -1, ... the end."""
        self._need_fit()
        own = self._histories
        if own is None:
            return {}
        places = [*range(1, own.first + 1), *(-j for j in range(1, own.last + 1))]
        return {
            (place, labels): w
            for place, table in zip(places, self.ngrams_[1:], strict=True)
            for labels, w in self._named_weights(table).items()
        }

    def _named_weights(self, table: Array) -> dict[tuple[Any, ...], float]:
        """Return weights (histories, labels) that are not zero, by labels."""
        classes = self.classes_.tolist()
        names = [(c,) for c in classes] if self._histories is None else self._histories.names(classes)
        rows, columns = np.nonzero(table)
        return {
            (*names[a], classes[b]): float(table[a, b])
            for a, b in zip(rows.tolist(), columns.tolist(), strict=True)
        }

    def network(self, x: Any) -> MarkovNetwork:
        """Return the Markov network over the labels of one sequence, `y0`, `y1`, ..., for any question and engine."""
        own = self._histories
        if own is None:
            return super().network(x)
        tokens = self.prepare([x])
        states = Variable("y", self.classes_.tolist()).states
        variables = [Variable.of(f"y{t}", states) for t in range(len(tokens))]
        factors = Factor.many(zip(variables), list(exponentials(self._weights.scores(tokens))))
        moves = own.expand(self.ngrams_)[own.places(tokens.chains)] if len(tokens) else self.ngrams_
        for t in range(1, len(tokens)):  # one table over as many labels as count
            n = min(t, own.order)
            table = moves[t, own.starts[n - 1] : own.starts[n]].reshape((1,) + (own.k,) * (n + 1))
            factors += Factor.many([tuple(variables[t - n : t + 1])], list(exponentials(table)))
        return MarkovNetwork(variables, factors)

    # -- inside ------------------------------------------------------------------------------------------------

    def _width(self) -> int:
        return int(self.coef_.shape[1])

    def _lattice(self, tokens: Tokens) -> tuple[HiddenChain, Observed, Array]:
        scores = self._weights.scores(tokens)
        if self._histories is not None:
            return self._histories.chain(scores, self.ngrams_, tokens.chains)
        return chain_of(scores, self.transitions_, tokens.chains)

    def _scored(self, inputs: Any, *, own: bool = False) -> Scored:
        tokens = self.prepare(inputs)
        tails, heads, edge_ptr = chain_edges(tokens.offsets)
        ones = np.ones((len(tails), 1))
        fields = Fields.of(len(self.classes_), tokens.offsets, edge_ptr, tails, heads, ones, share=not own)
        tables = np.repeat(self.transitions_[None], len(fields.rows), axis=0)
        return Scored(fields, self._weights.scores(tokens), tables)


def _ngram_table(own: LabelHistories, pairs: Array, ngrams: Mapping[Any, float], classes: list[Any]) -> Array:
    """Return weights (places, histories, labels) of pairs of labels and of n-grams by labels; of pairs alone (k, k)."""
    first, last, order = own.first, own.last, own.order
    found = np.zeros((1 + first + last, len(own.label), own.k))
    found[0, : own.k] = pairs
    rows = {names: at for at, names in enumerate(own.names(classes))}
    for key, weight in ngrams.items():
        place, labels = key if len(key) == 2 and isinstance(key[1], tuple) else (0, key)
        history, label = tuple(labels[:-1]), labels[-1]
        if not -last <= place <= first or history not in rows or label not in classes:
            raise InvalidArgument(
                f"ngrams= has {key!r}; it is two to {order + 1} of the labels {classes!r}, or a place from {-last} to "
                f"{first} and such, as order= and positions= say"
            )
        found[place if place >= 0 else first - place, rows[history], classes.index(label)] += weight
    return found if own.longer else found[0]
