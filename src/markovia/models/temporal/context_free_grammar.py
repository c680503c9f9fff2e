"""Context-free grammars with probabilities: a law of sentences that is built from nested parts."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.data.text.grammar_text import read_rules
from markovia.errors import ImpossibleEvidence, IncompleteModel, InvalidArgument, TooLarge, did_you_mean
from markovia.inference.circuits.best_parse import BestParse
from markovia.inference.circuits.grammar import Binarised, GrammarRule, WeightedGrammar
from markovia.inference.circuits.k_best_parses import KBestParses
from markovia.inference.circuits.parse_tree import ParseTree
from markovia.inference.flat_graphs.flat_tables import pointers
from markovia.learning.sequences.inside_outside import (
    counts_of_trees,
    learn_rule_probabilities,
    rules_of,
    shared_out,
)
from markovia.optimise.ascent import Climb, best_climb
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import NOT_NEGATIVE, AnySeed, Count, TimeLimit, Tolerance, Whole, check
from markovia.runtime.estimator import Estimator, fitting
from markovia.runtime.libraries import pd
from markovia.runtime.ports import Savable
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from markovia.models.graphical.bayesian_network import BayesianNetwork

MOST_RULES = 10_000
"""Rules of one drawn sentence; a grammar that needs more grows for ever."""
MOST_SHOWN = 30
"""Symbols that are printed, and rules of each."""


class _LearnedGrammar(Estimator, Savable):
    """What a grammar knows besides its settings."""

    rules_: tuple[GrammarRule, ...]
    probabilities_: Array
    history_: list[float]
    n_iter_: int
    converged_: bool
    _weighted: WeightedGrammar
    _not_saved = ("_weighted",)


@dataclass(eq=False, repr=False)
class ContextFreeGrammar(_LearnedGrammar):
    """A probabilistic context-free grammar.

    Rules may have any length: with one symbol, also in cycles, or none. All sums are over every derivation of the grammar as
    written, and trees are trees of it.

    Parameters
    ----------
    rules
        Text such as ``S -> NP VP [0.9] | VP [0.1]``, a line a left side, with words in quotes and probabilities in
        brackets (without any, alternatives are equally probable); or a mapping ``{"S": {"NP VP": 0.9, "VP": 0.1}}``,
        in which what is no key is a word. None where `fit` reads the rules off trees.
    start
        The symbol of whole sentences; that of the first rule by default.
    pseudo_count
        What learning adds to the count of each rule.
    max_iter, tol, time_limit, progress
        Of learning from sentences; `tol` is a gain in nats a word.
    n_init, random_state
        Starts of learning from sentences: the probabilities as they are, then random ones.

    Attributes
    ----------
    rules_, probabilities_
        The rules and the probability of each.
    history_, n_iter_, converged_
        The log likelihood (with the prior) before each step, the steps, and whether they settled.

    Examples
    --------
    >>> grammar = ContextFreeGrammar('''
    ...     S  -> NP VP
    ...     NP -> 'she' [0.5] | 'stars' [0.3] | NP PP [0.2]
    ...     VP -> 'saw' NP [0.6] | VP PP [0.4]
    ...     PP -> 'with' NP
    ... ''')
    >>> round(grammar.log_prob("she saw stars with stars"), 4)
    -4.1227
    >>> print(grammar.parse("she saw stars with stars"))
    (S (NP she) (VP (VP saw (NP stars)) (PP with (NP stars))))
    """

    rules: Any = None
    start: str | None = None
    pseudo_count: Annotated[float, NOT_NEGATIVE] = 0.0
    max_iter: Count = 100
    tol: Tolerance = 1e-5
    n_init: Count = 1
    random_state: AnySeed = None
    time_limit: TimeLimit = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        if self.rules is not None:
            self._set(*read_rules(self.rules))

    def _set(self, rules: tuple[GrammarRule, ...], probabilities: Array) -> None:
        if self.start is not None and all(left != self.start for left, _, _ in rules):
            raise InvalidArgument(f"start={self.start!r} has no rule; it is the left side of one")
        self.rules_, self.probabilities_ = rules, probabilities
        self.__dict__.pop("_weighted", None)

    def _grammar(self) -> WeightedGrammar:
        if "rules_" not in self.__dict__:
            raise IncompleteModel("this grammar has no rules yet; give rules=, or call fit(trees)")
        if "_weighted" not in self.__dict__:
            rules = tuple(map(GrammarRule._make, self.rules_))
            cut = Binarised(rules, rules[0].left if self.start is None else self.start)
            self._weighted = WeightedGrammar(cut, self.probabilities_)
        return self._weighted

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_weighted"}

    @property
    def symbols(self) -> list[str]:
        """The symbols, the start first."""
        return self._grammar().cut.symbols

    @property
    def words(self) -> list[str]:
        """The words."""
        return self._grammar().cut.words

    # -- questions ---------------------------------------------------------------------------------------------------

    def log_prob(self, sentences: Any) -> Any:
        """Return the log probability of a sentence, summed over all its parses, or of a tree; of each of several.

        Parameters
        ----------
        sentences
            A text, or a list of words, None for one that is missing (summed out); a tree; or a list of lists or trees.

        Examples
        --------
        >>> grammar = ContextFreeGrammar("S -> 'a' S 'b' [0.4] | [0.6]")
        >>> grammar.log_prob([["a", "b"], ["a", "a"], []]).round(4).tolist()
        [-1.4271, -inf, -0.5108]
        """
        listed, several = _listed(sentences)
        if all(isinstance(one, ParseTree) for one in listed):
            found = np.array([self._tree_log_prob(one) for one in listed])
        else:
            found = self._grammar().log_probs(*self._codes(listed))
        return found if several else float(found[0])

    def score(self, sentences: Iterable[Any]) -> float:
        """Return the total log probability of all sentences."""
        return float(self._grammar().log_probs(*self._codes(sentences)).sum())

    def parse(self, sentences: Any) -> Any:
        """Return the most probable tree of a sentence, with its `log_prob`, or a list of them; missing words are filled in.

        Examples
        --------
        >>> grammar = ContextFreeGrammar({"S": {"NP VP": 1.0}, "NP": {"she": 0.7, "fish": 0.3}, "VP": {"eats NP": 1.0}})
        >>> tree = grammar.parse("she eats fish")
        >>> print(tree, round(tree.log_prob, 4))
        (S (NP she) (VP eats (NP fish))) -1.5606
        """
        listed, several = _listed(sentences)
        words, offsets = self._codes(listed)
        parser = BestParse(self._grammar())
        found = [parser.tree(own) for own in np.split(words, offsets[1:-1])] if listed else []
        if None in found:
            raise ImpossibleEvidence({"sentence": _spaced(listed[found.index(None)])})
        return found if several else found[0]

    def k_best(self, sentence: Any, k: int) -> list[ParseTree]:
        """Return the k most probable trees of a sentence, best first; fewer where there are no more.

        Examples
        --------
        >>> grammar = ContextFreeGrammar({"S": {"S S": 0.3, "A": 0.2, "a": 0.5}, "A": {"a": 1.0}})
        >>> for tree in grammar.k_best("a a", 3):
        ...     print(round(float(np.exp(tree.log_prob)), 4), tree)
        0.075 (S (S a) (S a))
        0.03 (S (S a) (S (A a)))
        0.03 (S (S (A a)) (S a))
        """
        check("k", k, Whole(1))
        words, _ = self._codes([sentence])
        return KBestParses(BestParse(self._grammar()), words).trees(int(k))

    def spans(self, sentence: Any) -> "pd.DataFrame":
        """Return how many nodes of each symbol a parse is expected to have over each span: `first` to `last`, both included.

        Where no chain of rules comes back to its symbol, that is the probability that the span is such a part.

        Examples
        --------
        >>> grammar = ContextFreeGrammar("S -> S S [0.5] | 'a' [0.5]")
        >>> print(grammar.spans("a a a").query("first < last").to_string(index=False))
         first  last symbol  expected
             0     1      S       0.5
             0     2      S       1.0
             1     2      S       0.5
        """
        words, _ = self._codes([sentence])
        found, log_prob = self._grammar().spans(words)
        if len(words) and log_prob == -np.inf:
            raise ImpossibleEvidence({"sentence": _spaced(sentence)})
        first, end, symbol = np.nonzero(found > 1e-15)
        named = [self.symbols[a] for a in symbol]
        return pd.DataFrame(
            {"first": first, "last": end - 1, "symbol": named, "expected": found[first, end, symbol]}
        )

    def mass(self) -> float:
        """Return the probability of all sentences together: less than 1 where derivations may grow for ever.

        Examples
        --------
        >>> round(ContextFreeGrammar("S -> S S [0.6] | 'a' [0.4]").mass(), 6)
        0.666667
        """
        return self._grammar().mass()

    def sample(self, n: int | None = None, seed: Seed = None) -> Any:
        """Draw a tree, or a list of n; its `words` are the sentence.

        Examples
        --------
        >>> ContextFreeGrammar("S -> 'a' S [0.5] | 'b' [0.5]").sample(seed=2).words[-1]
        'b'
        """
        from markovia.kernels.sequences.grammar_chart import draw_derivation

        check("n", n, Whole(0, none=True))
        cut = self._grammar().cut
        order = np.argsort(cut.lefts, kind="stable")
        first = pointers(np.bincount(cut.lefts, minlength=len(cut.symbols)))
        running = np.cumsum(self.probabilities_[order])
        running -= np.append(0.0, running)[first[cut.lefts[order]]]  # sums begin anew with each symbol
        place = {s: i for i, s in enumerate(cut.symbols)}
        sides = [[s for s, word in zip(*cut.rules[r][1:], strict=True) if not word] for r in order]
        starts = pointers(np.array([len(side) for side in sides]))
        right = np.array([place[s] for side in sides for s in side], dtype=np.int64)
        state = generator(seed).integers(1, 2**63, 4, dtype=np.uint64)
        used = np.empty(MOST_RULES, dtype=np.int64)
        stack = np.empty(1 + MOST_RULES * max(map(len, sides)), dtype=np.int64)
        trees = []
        for _ in range(1 if n is None else int(n)):
            size = draw_derivation(first, running, starts, right, stack, used, state)
            if size < 0:
                raise TooLarge(
                    f"a sentence grew beyond {MOST_RULES:,} rules; mass() says whether derivations end"
                )
            trees.append(_derived([cut.rules[r] for r in order[used[:size]]]))
        return trees[0] if n is None else trees

    # -- learning ----------------------------------------------------------------------------------------------------

    def fit(self, data: Iterable[Any], y: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn the probabilities of the rules, from sentences by inside-outside, or from trees by counting.

        Parameters
        ----------
        data
            Sentences, each a text or a list of words; or trees. Where the grammar has no rules yet, they are those of the
            trees.
        y
            Not used; there as in scikit-learn.
        sample_weight
            How much each sentence or tree counts.

        Examples
        --------
        >>> trees = [ParseTree.from_text(t) for t in ("(S (S a) (S a))", "(S a)")]
        >>> print(ContextFreeGrammar().fit(trees))
        S -> S S [0.25] | 'a' [0.75]
        >>> ContextFreeGrammar("S -> S S | 'a'", tol=1e-9).fit(["a a a", "a"]).probabilities_.round(4).tolist()
        [0.3333, 0.6667]
        """
        with fitting(self):
            listed = list(data)
            if isinstance(data, str) or not listed:
                raise InvalidArgument("learning takes a list of sentences, or of trees, at least one")
            weights = Sequences(np.zeros((0, 1)), np.zeros(1, np.int64), tuple(range(len(listed)))).weights(
                sample_weight
            )
            if isinstance(listed[0], ParseTree):
                self._fit_trees(listed, weights)
                return self
            cut = self._grammar().cut
            run = partial(
                learn_rule_probabilities, cut, sentences=(*self._codes(listed), weights),
                pseudo_count=float(self.pseudo_count), max_iter=self.max_iter, tol=self.tol, time_limit=self.time_limit,
            )  # fmt: skip
            random = generator(self.random_state).exponential(size=(self.n_init - 1, len(cut.lefts)))
            starts = [self.probabilities_, *(shared_out(cut.lefts, own, own) for own in random)]
            self._learned(best_climb(run, starts, progress=self.progress))
        return self

    def _fit_trees(self, trees: list[ParseTree], weights: Array) -> None:
        if self.rules is None:
            rules = tuple(dict.fromkeys(rule for tree in trees for rule in rules_of(tree)))
            self._set(rules, np.zeros(len(rules)))
        before, rules = self.probabilities_, self._grammar().cut.rules
        counts = counts_of_trees(rules, trees, weights) + float(self.pseudo_count)
        self._learned(Climb(shared_out(self._grammar().cut.lefts, counts, before), [], "converged"))
        self.history_ = [float(weights @ self.log_prob(trees))]

    def _learned(self, found: Climb[Array]) -> None:
        self._set(self.rules_, found.state)
        self.history_, self.n_iter_, self.converged_ = found.history, len(found.history), found.converged
        found.warn(self.tol)

    # -- the graph ---------------------------------------------------------------------------------------------------

    def to_network(self, length: int) -> "BayesianNetwork":
        """Return the Bayesian network of the sentences of a length, with their trees; for short ones.

        Its nodes are `word 0`, ..., and for each span `i-j` of the words i to j - 1 `symbol i-j` and `split i-j`.

        Examples
        --------
        >>> grammar = ContextFreeGrammar("S -> S S [0.4] | 'a' [0.4] | 'b' [0.2]")
        >>> network = grammar.to_network(3)
        >>> given = {"word 0": "a", "word 1": "b", "word 2": "a"}
        >>> of_length = grammar.log_prob([None] * 3)  # any three words
        >>> abs(network.log_evidence(given) + of_length - grammar.log_prob("a b a")) < 1e-12
        True
        >>> network.query("symbol 0-2", given)["S"]
        0.5
        """
        from markovia.models.temporal.grammar_network import grammar_network

        check("length", length, Whole(1))
        return grammar_network(self._grammar(), int(length))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _codes(self, sentences: Iterable[Any]) -> tuple[Ints, Ints]:
        """Return the words of sentences as codes one after the other, and where each sentence begins."""
        lists = [one.split() if isinstance(one, str) else list(one) for one in sentences]
        words = [None if word != word else word for one in lists for word in one]
        place = {word: i for i, word in enumerate([*self.words, None])}
        unknown = next((word for word in words if word not in place), None)
        if unknown is not None:
            cure = "add a rule that derives it"
            if isinstance(unknown, str) and " " in unknown:
                cure = "several sentences are lists of words, text.split()"
            raise InvalidArgument(
                f"{unknown!r} is no word of the grammar{did_you_mean(str(unknown), self.words)}; {cure}, or put None for a "
                "word that is missing"
            )
        codes = np.array([place[word] for word in words], dtype=np.int64)
        return codes, pointers(np.array([len(one) for one in lists], dtype=np.int64))

    def _tree_log_prob(self, tree: ParseTree) -> float:
        place = {rule: i for i, rule in enumerate(self._grammar().cut.rules)}
        used = [place.get(rule, -1) for rule in rules_of(tree)]
        with np.errstate(divide="ignore"):
            logs = np.log(np.append(self.probabilities_, 0.0))
        return float(logs[used].sum()) if tree.label == self.symbols[0] else -np.inf

    def __repr__(self) -> str:
        if "rules_" not in self.__dict__:
            return "ContextFreeGrammar(no rules yet)"
        n = len(self.rules_)
        return f"ContextFreeGrammar({n} rule{'s' * (n > 1)}, {len(self.symbols)} symbols, {len(self.words)} words)"

    def __str__(self) -> str:
        if "rules_" not in self.__dict__:
            return repr(self)
        sides: dict[str, list[str]] = {symbol: [] for symbol in self.symbols}
        for rule, p in zip(self._grammar().cut.rules, self.probabilities_.tolist(), strict=True):
            sides[rule.left].append(f"{str(rule).partition(' -> ')[2]} [{p:.6g}]")
        lines = [f"{left} -> {' | '.join(_few(right, MOST_SHOWN))}" for left, right in sides.items()]
        return "\n".join(_few(lines, MOST_SHOWN))


def _few(texts: list[str], most: int) -> list[str]:
    """Return the first of some texts, and how many more there are."""
    return texts if len(texts) <= most else [*texts[:most], f"... and {len(texts) - most:,} more"]


def _listed(sentences: Any) -> tuple[list[Any], bool]:
    """Return sentences (or trees) as a list, and whether they were one: one is a text, a tree or a list of words."""
    if isinstance(sentences, str | ParseTree):
        return [sentences], False
    several = any(isinstance(one, list | tuple | ParseTree) for one in sentences)
    return (list(sentences), True) if several else ([sentences], False)


def _spaced(sentence: Any) -> str:
    return sentence if isinstance(sentence, str) else " ".join("?" if w is None else str(w) for w in sentence)


def _derived(rules: list[GrammarRule]) -> ParseTree:
    """Return the tree of a leftmost derivation: from its end, what a rule's symbols became lies on top of a stack."""
    stack: list[ParseTree] = []
    for rule in reversed(rules):
        children = [s if word else stack.pop() for s, word in zip(rule.right, rule.is_word, strict=True)]
        stack.append(ParseTree(rule.left, tuple(children)))
    return stack[0]
