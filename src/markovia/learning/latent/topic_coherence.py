"""Coherence of topics: how often their leading words occur together.

Words are counted in whole documents or in windows that slide over them. "umass" (Mimno et al. 2011) is the mean over pairs
of `log((n(a, b) + 1) / n(b))` with b the likelier word; "npmi" (Bouma 2009) the mean of the normalised pointwise mutual
information, from -1 (never together) to 1 (always); "c_v" (Röder, Both and Hinneburg 2015) the mean cosine between each
word's vector of NPMIs with all leading words and the sum of these vectors. Cost: the occurrences of leading words, times the
window.
"""

from itertools import pairwise
from typing import Any, Literal

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Codes, Ints
from markovia.runtime.checks import Choice, Whole, check

Measure = Literal["umass", "npmi", "c_v"]
WINDOW = 110
"""Words of a window of "c_v", as its authors found best."""
ENTRIES = 4_000_000
"""Pairs of a word and a window that are held at once."""


def coherence(corpus: Corpus, ranked: Codes, measure: Measure = "npmi", window: int | None = None) -> Array:
    """Return the coherence of topics, given their leading words (topics x n, best first).

    Examples
    --------
    >>> corpus = Corpus.read(["cat dog", "cat dog mouse", "sun rain", "sun rain cat"])
    >>> words = [[corpus.position(w) for w in pair] for pair in (["rain", "sun"], ["mouse", "rain"])]
    >>> coherence(corpus, np.array(words), "npmi").tolist()
    [1.0, -1.0]
    """
    check("measure", measure, Choice(("umass", "npmi", "c_v")))
    check("window", window, Whole(2, none=True))
    if ranked.shape[1] < 2:
        raise InvalidArgument("coherence is of two leading words or more")
    used, place = np.unique(ranked, return_inverse=True)
    place = place.reshape(ranked.shape)
    width = WINDOW if window is None and measure == "c_v" else window
    together, n = words_together(corpus, used, width)
    pairs = together[place[:, :, None], place[:, None, :]].astype(np.float64)
    size = ranked.shape[1]
    upper = np.triu_indices(size, 1)
    if measure == "umass":
        alone = np.diagonal(pairs, axis1=1, axis2=2)
        with np.errstate(divide="ignore"):
            ratio = np.log((pairs + 1.0) / np.maximum(alone, 1.0)[:, :, None])  # given the word of the row
        return np.asarray(ratio[:, upper[0], upper[1]].mean(axis=1))
    scores = normalised_pmi(pairs / max(n, 1))
    if measure == "npmi":
        return np.asarray(scores[:, upper[0], upper[1]].mean(axis=1))
    whole = scores.sum(axis=1)
    lengths = np.linalg.norm(scores, axis=2) * np.linalg.norm(whole, axis=1)[:, None]
    cosines = (scores * whole[:, None, :]).sum(axis=2) / np.where(lengths > 0, lengths, 1.0)
    return np.asarray(cosines.mean(axis=1))


def normalised_pmi(p: Array) -> Array:
    """Return the normalised pointwise mutual information of pairs, topics x words x words."""
    alone = np.diagonal(p, axis1=1, axis2=2)
    independent = alone[:, :, None] * alone[:, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(p / independent) / -np.log(p)
    found = np.where(p >= 1.0, 1.0, found)  # in every window: always together
    return np.where(p > 0, found, -1.0)


def words_together(corpus: Corpus, used: Codes, window: int | None) -> tuple[Ints, int]:
    """Return in how many windows both of two words are, for all pairs of some words, and how many windows there are."""
    from scipy.sparse import csr_array

    place = np.full(len(corpus.vocabulary), -1)
    place[used] = np.arange(len(used))
    codes, owners, lengths = place[corpus.words], corpus.owners, corpus.lengths
    here = np.flatnonzero(codes >= 0)
    if window is None:
        first, last = owners[here], owners[here]
        n = len(corpus)
    else:
        windows = np.where(lengths > 0, np.maximum(lengths - window + 1, 1), 0)
        starts = np.concatenate([[0], np.cumsum(windows)])
        n = int(starts[-1])
        rank = here - corpus.offsets[owners[here]]
        first = starts[owners[here]] + np.clip(rank - window + 1, 0, windows[owners[here]] - 1)
        last = starts[owners[here]] + np.minimum(rank, windows[owners[here]] - 1)
    total: Any = np.zeros((len(used), len(used)), dtype=np.int64)
    spans = last - first + 1
    cuts = np.searchsorted(np.cumsum(spans), np.arange(0, int(spans.sum()) + ENTRIES, ENTRIES))
    for low, high in _documents_apart(cuts, owners[here]):
        count = spans[low:high]
        offsets = np.repeat(np.cumsum(count) - count, count)
        rows = np.repeat(first[low:high], count) + np.arange(count.sum()) - offsets
        columns = np.repeat(codes[here[low:high]], count)
        base = int(rows.min()) if len(rows) else 0
        cells = np.unique((rows - base) * len(used) + columns)
        shape = (int(cells[-1]) // len(used) + 1 if len(cells) else 0, len(used))
        inside = csr_array((np.ones(len(cells), dtype=np.int64), np.divmod(cells, len(used))), shape=shape)
        total += (inside.T @ inside).toarray()
    return total, n


def _documents_apart(cuts: Ints, owners: Ints) -> list[tuple[int, int]]:
    """Return ranges of occurrences near the cuts, such that no document is in two of them."""
    ends = {0, len(owners)}
    for cut in cuts:
        if 0 < cut < len(owners):
            ends.add(int(np.searchsorted(owners, owners[cut], side="left")))
    order = sorted(ends)
    return list(pairwise(order))
