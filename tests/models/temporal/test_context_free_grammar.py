"""Context-free grammars against sums and maxima over all derivations, found by iterating their equations on strings."""

from itertools import product
from math import comb, log

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ConvergenceWarning, ImpossibleEvidence, InvalidArgument, InvalidTable, TooLarge
from markovia.inference.circuits.grammar import Binarised, GrammarRule, WeightedGrammar

LONGEST = 3


def random_grammar(rng):
    """Rules of zero to three symbols with unary cycles, most of them ending soon."""
    symbols, rules, weights = ["S", "A", "B"], [], []
    for left in symbols:
        own = {("'a'",), tuple(rng.choice([*symbols, "'b'"], 2))}
        for _ in range(rng.integers(1, 4)):
            own.add(tuple(str(s) for s in rng.choice([*symbols, "'a'", "'b'"], rng.integers(0, 4))))
        own = sorted(own)
        p = rng.dirichlet([3.0 / (1 + len(right)) for right in own])
        rules += [
            GrammarRule(left, tuple(s.strip("'") for s in right), tuple(s[0] == "'" for s in right))
            for right in own
        ]
        weights += p.tolist()
    return Binarised(tuple(rules), "S"), np.array(weights)


def strings(cut, weights, join, rounds=400):
    """Iterate the equations of all strings up to a length: of each symbol, the weight of each string."""
    found = {s: {} for s in cut.symbols}
    for _ in range(rounds):
        after = {s: {} for s in cut.symbols}
        for rule, p in zip(cut.rules, weights, strict=True):
            partial = {(): p}
            for s, word in zip(rule.right, rule.is_word, strict=True):
                step = {(s,): 1.0} if word else found[s]
                grown = {}
                for (a, x), (b, y) in product(partial.items(), step.items()):
                    if len(a + b) <= LONGEST:
                        grown[a + b] = join(grown.get(a + b, 0.0), x * y)
                partial = grown
            for string, value in partial.items():
                after[rule.left][string] = join(after[rule.left].get(string, 0.0), value)
        still = all(
            abs(value - found[s].get(string, 0.0)) <= 1e-15
            for s in after
            for string, value in after[s].items()
        )
        found = after
        if still:
            return found["S"]
    return None  # so near to growing for ever that iterating takes too long


def coded(cut, sentences):
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in sentences])]).astype(np.int64)
    return np.array([cut.words.index(w) for s in sentences for w in s], dtype=np.int64), offsets


def model_of(cut, weights):
    sides = {}
    for rule, p in zip(cut.rules, weights, strict=True):
        sides.setdefault(rule.left, []).append(f"{str(rule).partition(' -> ')[2]} [{float(p)!r}]")
    return mk.series.ContextFreeGrammar(
        "\n".join(f"{left} -> {' | '.join(right)}" for left, right in sides.items())
    )


@pytest.mark.parametrize("seed", range(12))
def test_log_prob_is_the_sum_over_all_derivations_of_the_grammar_as_written(seed):
    rng = np.random.default_rng(seed)
    cut, weights = random_grammar(rng)
    truth = strings(cut, weights, lambda x, y: x + y)
    if truth is None:
        return
    model = model_of(cut, weights)
    sentences = [list(s) for n in range(LONGEST + 1) for s in product("ab", repeat=n)]
    found = np.exp(model.log_prob(sentences))
    expected = [truth.get(tuple(s), 0.0) for s in sentences]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    # a missing word is any word
    assert np.exp(model.log_prob(["a", None])) == pytest.approx(
        truth.get(("a", "a"), 0) + truth.get(("a", "b"), 0)
    )


@pytest.mark.parametrize("seed", range(12))
def test_parse_is_the_best_derivation_and_a_tree_of_the_grammar_as_written(seed):
    rng = np.random.default_rng(seed)
    cut, weights = random_grammar(rng)
    truth = strings(cut, weights, max)
    model = model_of(cut, weights)
    for sentence in [s for n in range(LONGEST + 1) for s in product("ab", repeat=n)]:
        if sentence not in truth:
            with pytest.raises(ImpossibleEvidence):
                model.parse(list(sentence))
            continue
        tree = model.parse(list(sentence))
        assert tree.words == sentence
        assert tree.log_prob == pytest.approx(log(truth[sentence]), abs=1e-9)
        assert model.log_prob(tree) == pytest.approx(tree.log_prob, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_k_best_parses_are_the_largest_derivations_and_all_different(seed):
    cut, weights = random_grammar(np.random.default_rng(seed))
    model, k = model_of(cut, weights), 6
    # the k largest derivations of every string, by depth; what is cut off can be in no larger one
    found = {s: {} for s in cut.symbols}
    for _ in range(25):
        after = {s: {} for s in cut.symbols}
        for rule, p in zip(cut.rules, weights, strict=True):
            partial = {(): [p]}
            for s, word in zip(rule.right, rule.is_word, strict=True):
                grown = {}
                for (a, xs), (b, ys) in product(
                    partial.items(), ({(s,): [1.0]} if word else found[s]).items()
                ):
                    if len(a + b) <= LONGEST:
                        grown[a + b] = sorted([*grown.get(a + b, ()), *(x * y for x in xs for y in ys)])[-k:]
                partial = grown
            for string, values in partial.items():
                after[rule.left][string] = sorted([*after[rule.left].get(string, ()), *values])[-k:]
        found = after
    for sentence, values in list(found["S"].items())[:8]:
        trees = model.k_best(list(sentence), k)
        np.testing.assert_allclose([t.log_prob for t in trees], np.log(values[::-1]), atol=1e-9)
        np.testing.assert_allclose(model.log_prob(trees), [t.log_prob for t in trees], atol=1e-9)
        assert len(set(map(str, trees))) == len(trees)
        assert {t.words for t in trees} == {sentence}
    assert len(mk.series.ContextFreeGrammar("S -> S S [0.4] | 'a' [0.6]").k_best("a a a a", 9)) == catalan(3)


@pytest.mark.parametrize("seed", range(6))
def test_expected_counts_are_the_slopes_of_the_log_likelihood(seed):
    rng = np.random.default_rng(seed)
    cut, weights = random_grammar(rng)
    grammar = WeightedGrammar(cut, weights)
    every = [s for n in range(LONGEST + 1) for s in product("ab", repeat=n)]
    sentences = [
        s for s, one in zip(every, grammar.log_probs(*coded(cut, every)), strict=True) if one > -20.0
    ][:6]
    shares = rng.random(len(sentences))
    counts, _ = grammar.expected_counts(*coded(cut, sentences), shares)
    for r in range(len(weights)):
        if weights[r] < 1e-3:
            continue
        h = 1e-6 * weights[r]
        up, down = (
            shares
            @ WeightedGrammar(cut, weights + e * np.eye(len(weights))[r]).log_probs(*coded(cut, sentences))
            for e in (h, -h)
        )
        assert counts[r] == pytest.approx(weights[r] * (up - down) / (2 * h), rel=1e-4, abs=1e-6)


def catalan(n):
    return comb(2 * n, n) // (n + 1)


def test_spans_and_long_sentences_follow_the_numbers_of_binary_trees():
    grammar = mk.series.ContextFreeGrammar("S -> S S [0.3] | 'a' [0.7]")
    table = grammar.spans("a a a a a")
    for first, last, _, p in table.itertuples(index=False):
        m = last - first + 1
        assert p == pytest.approx(catalan(m - 1) * catalan(5 - m) / catalan(4), rel=1e-12)
    assert len(table) == 15
    n = 300
    rare = mk.series.ContextFreeGrammar("S -> S S [1e-9] | 'a' [1e-7] | 'b' [0.9999998990]")
    expected = log(catalan(n - 1)) + (n - 1) * log(1e-9) + n * log(1e-7)
    assert rare.log_prob(["a"] * n) == pytest.approx(expected, rel=1e-12)
    assert rare.spans(["a"] * 40)["expected"].max() == pytest.approx(1.0)


def test_em_on_binary_trees_ends_at_the_shares_of_their_nodes_and_never_falls():
    sentences = ["a a a", "a", "a a b", "b a"]
    weights = [1.0, 2.0, 0.5, 0.0]
    grammar = mk.series.ContextFreeGrammar("S -> S S | 'a' | 'b'", tol=0.0, max_iter=60)
    grammar.fit(sentences, sample_weight=weights)
    a, b, pairs = 3 + 2 + 0.5 * 2, 0.5, 2 + 0.5 * 2  # trees of n leaves all have n - 1 pairs
    np.testing.assert_allclose(grammar.probabilities_, np.array([pairs, a, b]) / (a + b + pairs), rtol=1e-12)
    richer = mk.series.ContextFreeGrammar(
        "S -> A B [0.5] | B A [0.3] | S [0.1] | [0.1]\nA -> 'a' [0.5] | A A [0.2] | [0.3]\nB -> 'b' [0.6] | S [0.4]",
        max_iter=40, pseudo_count=0.1, n_init=2, random_state=0,
    )  # fmt: skip
    richer.fit(["a b", "b a a", "", ["a", None]])
    assert (np.diff(richer.history_) >= -1e-9).all()
    assert richer.history_[-1] > richer.history_[0]


def test_trees_are_counted_with_pseudo_counts_and_weights():
    trees = [mk.results.ParseTree.from_text(t) for t in ("(S (S a) (S (S a) (S b)))", "(S)")]
    plain = mk.series.ContextFreeGrammar().fit(trees)
    assert str(plain) == "S -> S S [0.333333] | 'a' [0.333333] | 'b' [0.166667] | ε [0.166667]"
    known = mk.series.ContextFreeGrammar("S -> S S | 'a' | 'b' | 'c' |", pseudo_count=1.0).fit(
        trees, sample_weight=[2.0, 1.0]
    )
    np.testing.assert_allclose(known.probabilities_, np.array([5, 5, 3, 1, 2]) / 16)
    with pytest.raises(InvalidArgument, match="tree 0 uses the rule S -> 'd', which the grammar has not"):
        known.fit([mk.results.ParseTree.from_text("(S d)")])


@pytest.mark.parametrize("seed", range(3))
def test_the_network_of_a_length_answers_as_the_chart_does(seed):
    rng = np.random.default_rng(seed)
    cut, weights = random_grammar(rng)
    model = model_of(cut, weights)
    network = model.to_network(3)
    of_length = model.log_prob([None] * 3)
    names = [f"word {i}" for i in range(3)]
    for sentence in list(product("ab", repeat=3))[::3]:
        found = network.log_evidence(dict(zip(names, sentence, strict=True)))
        assert np.exp(found) == pytest.approx(np.exp(model.log_prob(list(sentence)) - of_length), abs=1e-12)
    expected = np.exp(model.log_prob(["a", None, "b"]))
    if expected > 1e-12:
        p = network.query("word 1", {"word 0": "a", "word 2": "b"})["b"]
        assert p == pytest.approx(np.exp(model.log_prob(["a", "b", "b"])) / expected, abs=1e-9)


def test_drawn_sentences_come_as_often_as_they_are_probable():
    grammar = mk.series.ContextFreeGrammar(
        "S -> A S [0.3] | 'b' [0.5] | [0.2]\nA -> 'a' [0.9] | 'a' 'b' A [0.1]"
    )
    trees = grammar.sample(4000, seed=3)
    seen = [tree.words for tree in trees]
    for sentence in ((), ("b",), ("a", "b"), ("a",), ("a", "b", "a")):
        p = np.exp(grammar.log_prob(list(sentence)))
        assert abs(seen.count(sentence) / 4000 - p) < 4.0 * np.sqrt(p * (1 - p) / 4000)
    assert np.isfinite(grammar.log_prob(trees)).all()
    assert [t.words for t in grammar.sample(3, seed=3)] == seen[:3]
    with pytest.raises(TooLarge, match="mass"):
        mk.series.ContextFreeGrammar("S -> S S [0.9] | 'a' [0.1]").sample(50, seed=0)


def test_mass_is_that_of_all_sentences():
    assert mk.series.ContextFreeGrammar("S -> S S [0.8] | 'a' [0.2]").mass() == pytest.approx(0.25, rel=1e-9)
    assert mk.series.ContextFreeGrammar("S -> A\nA -> A [0.5] | 'a' [0.5]").mass() == pytest.approx(1.0)
    forever = mk.series.ContextFreeGrammar("S -> A [0.25] | 'a' [0.75]\nA -> B\nB -> A")
    assert forever.mass() == pytest.approx(0.75)
    assert forever.log_prob("a") == pytest.approx(log(0.75))


def test_a_grammar_is_saved_printed_and_pickled(tmp_path):
    import pickle

    grammar = mk.series.ContextFreeGrammar("S -> S S | 'a' | \"it's\" # remark\n", max_iter=3, tol=0.0).fit(
        ["a it's a"]
    )
    grammar.save(tmp_path / "grammar.json")
    for again in (mk.load(tmp_path / "grammar.json"), pickle.loads(pickle.dumps(grammar))):
        assert again.log_prob("a it's") == grammar.log_prob("a it's")
        assert str(again.parse("a it's")) == "(S (S a) (S it's))"
    assert repr(grammar) == "ContextFreeGrammar(3 rules, 1 symbols, 2 words)"
    assert mk.series.ContextFreeGrammar(str(grammar)).log_prob("a a") == pytest.approx(
        grammar.log_prob("a a"), abs=1e-5
    )


def test_bad_grammars_sentences_and_trees_are_refused_in_one_sentence():
    for rules, message in (
        ("S NP VP", "is no rule; one is written"),
        ("S -> NP 'a'", "no rule has 'NP' on its left side; words are in quotes"),
        ("S -> 'a' [0.4] | 'b' [0.4]", "sum to 0.8, not to 1"),
        ("S -> 'a' [0.4] | 'b'", "give all or none"),
        ("S -> 'a' [x]", "is no probability"),
        ("S -> 'a", "has no other end"),
        ("S -> 'a' | 'a'", "is there twice"),
        ("", "at least one rule"),
        (3, "a grammar is a text of rules"),
    ):
        with pytest.raises((InvalidArgument, InvalidTable), match=message):
            mk.series.ContextFreeGrammar(rules)
    grammar = mk.series.ContextFreeGrammar("S -> S S [0.5] | 'a' [0.5]")
    with pytest.raises(InvalidArgument, match="'dog' is no word of the grammar; add a rule that derives it"):
        grammar.log_prob("a dog")
    with pytest.raises(InvalidArgument, match="several sentences are lists of words"):
        grammar.log_prob(["a a", "a"])
    with pytest.raises(ImpossibleEvidence):
        grammar.parse([["a"], []])
    before = grammar.probabilities_
    with pytest.raises(InvalidArgument, match="sentence 1 has no parse under the grammar"):
        grammar.fit(["a a", ""])
    assert grammar.probabilities_ is before
    with pytest.raises(mk.errors.IncompleteModel, match="no rules yet"):
        mk.series.ContextFreeGrammar().log_prob("a")
    for text in ("S a", "(S a", "(S a))", "()", ""):
        with pytest.raises(InvalidArgument, match="one pair of brackets"):
            mk.results.ParseTree.from_text(text)


def test_mappings_clones_and_many_sentences_are_taken():
    from sklearn.base import clone

    grammar = mk.series.ContextFreeGrammar(
        {"S": {("NP", "VP"): 1.0}, "NP": ["she", "NP and NP"], "VP": {"ran": 1.0}}
    )
    trees = clone(grammar).parse([["she", "ran"], ["she", "and", "she", "ran"]])
    assert [str(t) for t in trees] == ["(S (NP she) (VP ran))", "(S (NP (NP she) and (NP she)) (VP ran))"]
    assert grammar.parse("she ran") == trees[0]
    assert mk.series.ContextFreeGrammar({"A": ["x"], "S": ["A A"]}, start="S").log_prob("x x") == 0.0
    with pytest.raises(InvalidArgument, match="start='T' has no rule"):
        mk.series.ContextFreeGrammar("S -> 'a'", start="T")


def test_learning_that_is_cut_short_says_so():
    with pytest.warns(ConvergenceWarning, match="raise max_iter="):
        found = mk.series.ContextFreeGrammar("S -> S S | 'a' | A\nA -> 'a' S | 'a'", max_iter=1).fit(
            ["a a a a"]
        )
    assert not found.converged_


def test_a_cycle_that_costs_nothing_is_gone_round_after_what_ends():
    grammar = mk.series.ContextFreeGrammar("S -> B [1.0]\nB -> S [1.0] | 'a' [1e-20]")
    first, second = grammar.k_best(["a"], 2)
    assert str(first) == str(grammar.parse(["a"]))
    assert len(str(second)) > len(str(first))
