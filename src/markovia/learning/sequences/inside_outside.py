"""Rule probabilities of a context-free grammar from sentences (expectation-maximisation) or from trees (counting).

Method: the inside-outside algorithm (Baker 1979; Lari and Young 1990). A step takes how often each rule is expected in all
parses of all sentences, and shares out the counts of each left side; pseudo counts are added, as a Dirichlet prior would.
The log likelihood (with the log of the prior) never falls. Cost of a step: one inside and one outside pass a sentence.
"""

from collections.abc import Iterable

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.circuits.grammar import Binarised, GrammarRule, WeightedGrammar
from markovia.inference.circuits.parse_tree import ParseTree
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array, Ints


def shared_out(lefts: Ints, counts: Array, before: Array) -> Array:
    """Return the probabilities of rules by counts; symbols without any keep what they had."""
    totals = np.bincount(lefts, counts)[lefts]
    return np.asarray(np.where(totals > 0.0, counts / np.where(totals > 0.0, totals, 1.0), before))


def learn_rule_probabilities(
    cut: Binarised,
    start: Array,
    sentences: tuple[Ints, Ints, Array],
    *,
    pseudo_count: float,
    max_iter: int,
    tol: float,
    time_limit: float | None = None,
    progress: bool | None = False,
) -> Climb[Array]:
    """Climb the log likelihood of sentences (words, offsets, weights); the history has that before each step."""
    words, offsets, weights = sentences
    size = max(1.0, float(weights @ np.diff(offsets)))

    def step(now: Array) -> tuple[Array, float]:
        from scipy.special import xlogy

        counts, log_probs = WeightedGrammar(cut, now).expected_counts(words, offsets, weights)
        lost = np.flatnonzero(np.isneginf(log_probs) & (weights > 0.0))
        if len(lost):
            raise InvalidArgument(
                f"sentence {lost[0]} has no parse under the grammar; add rules that derive it, or leave it out"
            )
        objective = float(weights[weights > 0.0] @ log_probs[weights > 0.0] + xlogy(pseudo_count, now).sum())
        return shared_out(cut.lefts, counts + pseudo_count, now), objective

    return climb(step, start, max_iter=max_iter, tol=tol, size=size, time_limit=time_limit, progress=progress)


def rules_of(tree: ParseTree) -> list[GrammarRule]:
    """Return the rule at each node of a tree."""
    found = []
    for node in tree.nodes():
        names = tuple(c.label if isinstance(c, ParseTree) else c for c in node.children)
        found.append(GrammarRule(node.label, names, tuple(isinstance(c, str) for c in node.children)))
    return found


def counts_of_trees(rules: tuple[GrammarRule, ...], trees: Iterable[ParseTree], weights: Array) -> Array:
    """Return how often trees use each rule; a rule that is not there is refused."""
    place = {rule: i for i, rule in enumerate(rules)}
    found = np.zeros(len(rules))
    for i, (tree, weight) in enumerate(zip(trees, weights.tolist(), strict=True)):
        for rule in rules_of(tree):
            if rule not in place:
                raise InvalidArgument(
                    f"tree {i} uses the rule {rule}, which the grammar has not; add it, or leave it out"
                )
            found[place[rule]] += weight
    return found
