import numpy as np
import pytest

from markovia.data.text.corpus import Corpus
from markovia.data.text.token_attributes import look_up
from markovia.data.text.tokens import read_tokens
from markovia.data.text.vocabulary import OUTSIDE, Vocabulary
from markovia.errors import InvalidArgument, UnknownVariable

WORDS = ["the", "dog", "saw", "the", "cat", "and", "the", "cat", "saw", "it"]


def test_a_growing_vocabulary_numbers_words_as_they_are_met():
    met = Vocabulary()
    codes = met.codes(WORDS, grow=True)
    assert met.words == list(dict.fromkeys(WORDS))
    assert [met.words[c] for c in codes] == WORDS
    assert met.codes(WORDS).tolist() == codes.tolist()


def test_a_known_vocabulary_stays_as_it_is():
    known = Vocabulary.of(["cat", "dog"])
    assert known.codes(["dog", "bird", "cat"]).tolist() == [1, OUTSIDE, 0]
    assert (known.code("bird"), known.words) == (OUTSIDE, ["cat", "dog"])
    assert known.code("bird", grow=True) == known.position("bird") == 2
    with pytest.raises(UnknownVariable, match=r"'birds'.*did you mean 'bird'"):
        known.position("birds")


def test_a_word_that_is_there_twice_is_refused():
    with pytest.raises(InvalidArgument, match=r"^the columns has 'a' twice; a word is there once$"):
        Vocabulary.of(["a", "b", "a"], "the columns")


def test_words_in_order_keep_their_texts():
    met = Vocabulary()
    codes = met.codes(WORDS, grow=True)
    sorted_words, place = met.in_order()
    assert sorted_words.words == sorted(set(WORDS))
    assert [sorted_words.words[c] for c in place[codes]] == WORDS


def test_corpora_and_taggers_code_the_same_words_alike():
    corpus = Corpus.read([WORDS, ["cat", "bird"]], vocabulary=["cat", "dog", "it"])
    tokens = read_tokens(
        [[[w] for w in WORDS], [["cat"], ["bird"]]], vocabulary=Vocabulary.of(["cat", "dog", "it"])
    )
    assert corpus.words.tolist() == tokens.columns.tolist()
    assert corpus.unknown.tolist() == [6, 1]
    assert np.diff(tokens.ptr).sum() == len(corpus.words)
    # a word is a token as it is, among tokens with attributes too
    bare = read_tokens([WORDS, ["cat", {"bird": 1.0}]], vocabulary=Vocabulary.of(["cat", "dog", "it"]))
    assert (bare.columns.tolist(), bare.ptr.tolist()) == (tokens.columns.tolist(), tokens.ptr.tolist())
    assert bare.lengths.tolist() == [len(WORDS), 2]


def test_attributes_grow_a_copy_and_leave_the_trained_vocabulary_alone():
    trained = Vocabulary.of(["word:the"])
    known, at, *_ = look_up([[{"word": "the"}, {"word": "dog"}]], trained, grow=True)
    assert (trained.words, known.vocabulary.words) == (["word:the"], ["word:the", "word:dog"])
    assert [known.columns[i] for i in at] == [0, 1]
