"""Lexicons: the longest phrases, kind by kind, and marks of tokens that a tagger learns from."""

import itertools

import numpy as np
import pytest

import markovia as mk


def slow_find(phrases, words):
    """Try every stretch, longest first, from the left."""
    found, at = [], 0
    while at < len(words):
        ends = [e for e in range(len(words), at, -1) if tuple(words[at:e]) in phrases]
        if ends:
            found.append((at, ends[0]))
        at = ends[0] if ends else at + 1
    return found


def test_the_longest_phrases_are_found_from_the_left():
    rng = np.random.default_rng(0)
    for _ in range(100):
        phrases = {tuple(rng.choice(["a", "b", "c"], rng.integers(1, 4))) for _ in range(4)}
        words = rng.choice(["a", "b", "c"], 9).tolist()
        lexicon = mk.crf.Lexicon({"x": phrases})
        assert lexicon.find(words) == [("x", *ends) for ends in slow_find(phrases, words)]
        for (_, start, end), marks in itertools.product(lexicon.find(words), [lexicon.mark(words)]):
            letters = [marks[t]["x"] for t in range(start, end)]
            inside = ["I"] * (end - start - 2)
            assert letters == (["S"] if end - start == 1 else ["B", *inside, "E"])


def test_kinds_may_overlap_and_case_counts_only_where_it_is_asked_to():
    entries = {"place": ["New York"], "paper": ["New York Times"]}
    words = ["the", "new", "york", "times"]
    assert mk.crf.Lexicon(entries).find(words) == [("place", 1, 3), ("paper", 1, 4)]
    assert mk.crf.Lexicon(entries, ignore_case=False).find(words) == []
    assert mk.crf.Lexicon(entries).find([]) == []
    with pytest.raises(mk.errors.InvalidArgument, match="mapping from kinds"):
        mk.crf.Lexicon({"place": "Rome"})
    with pytest.raises(mk.errors.InvalidArgument, match="without any word"):
        mk.crf.Lexicon({"place": [""]})


def test_a_tagger_finds_names_that_only_the_lexicon_knows():
    lexicon = mk.crf.Lexicon({"place": ["Rome", "New York", "San Remo"]})

    def read(text):
        words = text.split()
        return [{"word": w.lower(), "in": marks} for w, marks in zip(words, lexicon.mark(words), strict=True)]

    texts = {"in Rome we met": "O S O O", "to New York we go": "O B E O O", "we met in may": "O O O O"}
    tagger = mk.ChainCRF(C=10.0).fit([read(t) for t in texts], [y.split() for y in texts.values()])
    assert tagger.predict([read("we go to San Remo")])[0].tolist() == ["O", "O", "O", "B", "E"]


@pytest.mark.parametrize("bonus", [np.inf, 2.0, 0.0])
@pytest.mark.parametrize("order", [1, 2])
def test_a_dictionary_raises_its_labellings_exactly(bonus, order):
    rng = np.random.default_rng(1)
    tagger = mk.ChainCRF.from_weights(
        list("abc"), rng.normal(size=(3, 2)), rng.normal(size=(3, 3)), order=order,
        ngrams={("a", "b", "a"): 1.5} if order == 2 else None,
    )  # fmt: skip
    X = [rng.normal(size=(n, 2)) for n in (3, 2, 4)]
    words = ["aba", "abc", "cab", "ab", "ba", "aba", "zab"]
    found = tagger.best_among(X, words, 5, bonus=bonus)
    for x, (labellings, logs) in zip(X, found, strict=True):
        every = ["".join(y) for y in itertools.product("abc", repeat=len(x))]
        weight = np.exp([tagger.log_prob([x], [list(y)])[0] for y in every])
        known = np.array([y in words for y in every])
        weight *= np.where(known, np.exp(bonus), 1.0) if bonus < np.inf else known
        p = weight / weight.sum() if weight.sum() else weight
        best = [i for i in np.argsort(-p, kind="stable")[:5] if p[i] > 0]
        assert ["".join(y) for y in labellings] == [every[i] for i in best]
        np.testing.assert_allclose(np.exp(logs), p[best], rtol=1e-9)
