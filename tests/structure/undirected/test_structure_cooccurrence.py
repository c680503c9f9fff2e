"""Co-occurrence networks against counting by hand, and what "together" does to the graph."""

import pickle

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, UnknownVariable

TEXTS = ["Ann saw Bob. Cid ran off.", "Bob saw Ann and Cid! Dot slept", "Dot ran.\nCid ran", ""]
NAMES = ["Cid", "Ann", "Dot", "Bob"]


def by_hand(places):
    return np.array([[sum(a in p and b in p for p in places) for b in NAMES] for a in NAMES])


@pytest.mark.parametrize("within", ["document", "sentence", 2, 3])
def test_counts_are_those_of_every_document_sentence_or_window(within):
    documents = [t.replace(".", " ").replace("!", " ").split() for t in TEXTS]
    sentences = ["Ann saw Bob", "Cid ran off", "Bob saw Ann and Cid", "Dot slept", "Dot ran", "Cid ran"]
    if within == "document":
        places = documents
    elif within == "sentence":
        places = [s.split() for s in sentences]
    else:
        places = [d[i : i + within] for d in documents if d for i in range(max(len(d) - within + 1, 1))]
    found = mk.topics.cooccurrence_network(TEXTS, NAMES, within=within, min_count=1)
    together = by_hand(places)
    assert found.details.together.tolist() == together.tolist()
    assert found.details.n_places == len(places)
    np.fill_diagonal(together, 0)
    assert found.weights.tolist() == together.tolist()
    assert found.nodes == NAMES
    assert {frozenset(e) for e in found.edges} == {
        frozenset((NAMES[i], NAMES[j])) for i, j in zip(*np.nonzero(together), strict=True)
    }


def test_edges_weigh_what_is_asked_for_and_are_cut_below_a_threshold():
    places = [t.replace(".", " ").replace("!", " ").split() for t in TEXTS]
    both = by_hand(places)
    n, alone = len(TEXTS), np.diag(both)
    i, j = NAMES.index("Ann"), NAMES.index("Cid")
    share = mk.topics.cooccurrence_network(TEXTS, NAMES, measure="jaccard", min_count=1).weights[i, j]
    assert share == pytest.approx(both[i, j] / (alone[i] + alone[j] - both[i, j]))
    npmi = mk.topics.cooccurrence_network(TEXTS, NAMES, measure="npmi", min_count=1, threshold=-1).weights[
        i, j
    ]
    p = both[i, j] / n
    assert npmi == pytest.approx(np.log(p / (alone[i] * alone[j] / n**2)) / -np.log(p))
    few = mk.topics.cooccurrence_network(TEXTS, NAMES, min_count=2)
    assert {frozenset(e) for e in few.edges} == {
        frozenset(("Ann", "Bob")), frozenset(("Ann", "Cid")), frozenset(("Bob", "Cid")), frozenset(("Cid", "Dot"))
    }  # fmt: skip
    assert mk.topics.cooccurrence_network(TEXTS, NAMES, threshold=2).n_edges == 0


def test_all_words_of_a_corpus_are_nodes_by_default_and_the_result_is_as_any_other():
    corpus = mk.topics.Corpus.read(["red blue", "blue red", "green"])
    found = mk.topics.cooccurrence_network(corpus)
    assert found.nodes == ["blue", "green", "red"]
    assert found.edges == [("blue", "red")]
    assert "co-occurrence within a document" in str(found)
    assert found.to_pandas()["weight"].tolist() == [2.0]
    assert pickle.loads(pickle.dumps(found)).edges == found.edges


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(UnknownVariable, match="Eve"):
        mk.topics.cooccurrence_network(TEXTS, ["Ann", "Eve"])
    with pytest.raises(InvalidArgument, match="sentences are cut from texts"):
        mk.topics.cooccurrence_network(mk.topics.Corpus.read(TEXTS), within="sentence")
    for options in (
        {"within": 1},
        {"within": "page"},
        {"measure": "pmi"},
        {"min_count": 0},
        {"threshold": np.nan},
    ):
        with pytest.raises(InvalidArgument, match=next(iter(options))):
            mk.topics.cooccurrence_network(TEXTS, NAMES, **options)
    with pytest.raises(InvalidArgument, match="two different words"):
        mk.topics.cooccurrence_network(TEXTS, ["Ann", "Ann"])
