"""Documents of every form become the same corpus, and nothing is dropped in silence."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csc_matrix
from sklearn.feature_extraction.text import CountVectorizer

import markovia as mk
from markovia.data.text.document_texts import Tokenizer

TEXTS = ["The cat sat on the mat", "Dogs and cats", "", "the mat was red"]


def test_texts_lists_of_words_counts_and_frames_give_the_same_counts():
    texts = mk.topics.Corpus.read(TEXTS)
    table = texts.counts().toarray()
    expected = CountVectorizer().fit(TEXTS)
    assert texts.vocabulary == list(expected.get_feature_names_out())
    assert (table == expected.transform(TEXTS).toarray()).all()
    cut = Tokenizer()
    for same in (
        [cut.words(t) for t in TEXTS],
        pd.Series(TEXTS),
        pd.DataFrame({"text": TEXTS}),
        pd.DataFrame(table, columns=texts.vocabulary),
        np.array(TEXTS, dtype=object),
        texts,
    ):
        found = mk.topics.Corpus.read(same)
        assert found.vocabulary == texts.vocabulary
        assert (found.counts().toarray() == table).all()
    for same in (table, csc_matrix(table), coo_array(table), table.tolist(), table.astype(float)):
        assert (mk.topics.Corpus.read(same, texts.vocabulary).counts().toarray() == table).all()


def test_vectorisers_of_scikit_learn_cut_texts_fitted_or_not():
    vectoriser = CountVectorizer(stop_words="english", ngram_range=(1, 2))
    corpus = mk.topics.Corpus.read(TEXTS, tokenizer=vectoriser)
    assert (corpus.counts().toarray() == vectoriser.transform(TEXTS).toarray()).all()
    again = mk.topics.Corpus.read(["a red cat"], tokenizer=vectoriser)
    assert again.vocabulary == corpus.vocabulary
    new = mk.topics.Corpus.read(["the cat sat"], corpus)  # cut as the corpus was
    assert sorted(new.document(0)) == ["cat", "cat sat", "sat"]


def test_folders_and_files_are_read_and_streamed(tmp_path):
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("one two\nthree")
    (folder / "deep" / "b.txt").write_text("two")
    (folder / "notes.csv").write_text("not,a,document")
    corpus = mk.topics.Corpus.read(folder)
    assert corpus.names == ["a.txt", "deep/b.txt"]
    assert corpus.lengths.tolist() == [3, 1]
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(TEXTS) + "\n")
    whole = mk.topics.Corpus.read(lines)
    assert whole.lengths.tolist() == mk.topics.Corpus.read(TEXTS).lengths.tolist()
    stream = mk.topics.Corpus.stream(str(lines), batch_size=3)
    for _ in range(2):  # it can be gone through again
        pieces = list(stream)
        assert [len(p) for p in pieces] == [3, 1]
        assert np.concatenate([p.words for p in pieces]).tolist() == whole.words.tolist()


def test_empty_documents_stay_and_words_outside_the_vocabulary_are_counted():
    corpus = mk.topics.Corpus.read(["a b z z", "", "q"], ["a", "b"], tokenizer=str.split)
    assert len(corpus) == 3
    assert corpus.lengths.tolist() == [2, 0, 0]
    assert corpus.unknown.tolist() == [2, 0, 1]
    assert "3 outside it" in repr(corpus)
    assert "2 documents are empty" in repr(corpus)
    assert corpus[1:].unknown.tolist() == [0, 1]


def test_rare_and_common_words_leave_as_in_scikit_learn():
    texts = ["a b c", "a b d", "a c e", "a c f"]
    for options in ({"min_df": 2}, {"max_df": 0.5}, {"min_df": 0.5, "max_df": 3}, {"max_features": 2}):
        expected = CountVectorizer(tokenizer=str.split, token_pattern=None, **options).fit(texts)
        corpus = mk.topics.Corpus.read(texts, tokenizer=str.split, **options)
        assert corpus.vocabulary == list(expected.get_feature_names_out())
        assert corpus.unknown.sum() + len(corpus.words) == 12
        assert mk.topics.Corpus.stream(texts, tokenizer=str.split, **options).vocabulary == corpus.vocabulary


def test_halves_share_each_document_and_splits_share_the_documents():
    rng = np.random.default_rng(0)
    corpus = mk.topics.Corpus.read(rng.poisson(1.5, size=(20, 7)))
    first, second = corpus.halves(0)
    assert (first.counts() + second.counts() != corpus.counts()).nnz == 0
    assert set((first.lengths - second.lengths).tolist()) <= {0, 1}
    most, out = corpus.split(0.25, seed=0)
    assert sorted(most.names + out.names) == sorted(corpus.names)
    assert len(out) == 5


@pytest.mark.parametrize(
    ("documents", "sentence"),
    [
        ([[1, -1]], "row 0, column 1 holds -1; counts of words are not negative"),
        ([[0, 1], [0.5, 1]], "row 1, column 0 holds 0.5; counts of words are whole numbers"),
        ([[np.nan, 1.0]], "row 0, column 0 holds nan; counts are neither missing"),
        (np.array([1, 2]), "no table of counts"),
        (pd.DataFrame({"a": ["x"], "b": [1]}), "column 'a' holds no numbers"),
        ([1, 2], "document '0' is 1; a document is a text or a list of words"),
        (["a", 3], "document '1' is 3"),
        ([["a", 3]], "holds 3 among its words"),
        ("no such file.txt", "no file or folder 'no such file.txt'"),
        ({"a": 1}, "not dict"),
        ([[1, 2], [3]], "equally long"),
    ],
)
def test_bad_documents_get_one_sentence(documents, sentence):
    with pytest.raises(mk.MarkoviaError, match=sentence):
        mk.topics.Corpus.read(documents)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"vocabulary": ["a", "a"]}, "'a' twice"),
        ({"vocabulary": "abc"}, "list of words"),
        ({"min_df": -1}, "min_df="),
        ({"max_df": 1.5}, "max_df="),
        ({"min_df": 9}, "leave no word"),
        ({"max_features": 0}, "max_features="),
        ({"stop_words": "german"}, "stop_words="),
        ({"tokenizer": "("}, "regular expression"),
        ({"names": ["one"]}, "1 names for 4 documents"),
    ],
)
def test_bad_options_get_one_sentence(options, sentence):
    with pytest.raises(mk.MarkoviaError, match=sentence):
        mk.topics.Corpus.read(TEXTS, **options)


def test_counts_in_other_vocabularies_say_how_many_columns_they_have():
    with pytest.raises(mk.MarkoviaError, match="2 columns, and the vocabulary 3 words"):
        mk.topics.Corpus.read([[1, 2]], ["a", "b", "c"])
