"""Coherence of topics against definitions written out in loops."""

from itertools import combinations
from math import log

import numpy as np
import pytest

import markovia as mk
from markovia.learning.latent import topic_coherence
from markovia.learning.latent.topic_coherence import coherence

RNG = np.random.default_rng(0)
DOCUMENTS = [[f"w{w}" for w in RNG.zipf(1.6, n) % 12] for n in RNG.integers(0, 40, 60)]
CORPUS = mk.topics.Corpus.read(DOCUMENTS)
RANKED = np.array([[0, 3, 5, 1], [2, 4, 6, 7]])


def windows(width):
    found = []
    for d in DOCUMENTS:
        codes = [CORPUS.position(w) for w in d]
        if width is None:
            found.append(set(codes))
        elif codes:
            found += [set(codes[i : i + width]) for i in range(max(len(codes) - width + 1, 1))]
    return found


def by_hand(measure, width):
    sets = windows(width)
    n = len(sets)

    def p(*words):
        return sum(all(w in s for w in words) for s in sets) / n

    def npmi(a, b):
        both = p(a, b)
        return -1.0 if both == 0 else 1.0 if both == 1 else log(both / (p(a) * p(b))) / -log(both)

    found = []
    for words in RANKED:
        pairs = list(combinations(words, 2))
        if measure == "umass":
            found.append(np.mean([log((p(a, b) * n + 1) / (p(a) * n)) for a, b in pairs]))
        elif measure == "npmi":
            found.append(np.mean([npmi(a, b) for a, b in pairs]))
        else:
            vectors = np.array([[npmi(a, b) for b in words] for a in words])
            whole = vectors.sum(axis=0)
            found.append(np.mean([v @ whole / np.linalg.norm(v) / np.linalg.norm(whole) for v in vectors]))
    return found


@pytest.mark.parametrize("measure", ["umass", "npmi", "c_v"])
@pytest.mark.parametrize("width", [None, 5])
def test_coherence_is_that_of_the_definition(measure, width, monkeypatch):
    used = 110 if measure == "c_v" and width is None else width
    assert coherence(CORPUS, RANKED, measure, width) == pytest.approx(by_hand(measure, used))
    monkeypatch.setattr(topic_coherence, "ENTRIES", 50)  # in many pieces
    assert coherence(CORPUS, RANKED, measure, width) == pytest.approx(by_hand(measure, used))
