"""Expected counts of topics by document and by word.

Word w of document d has topic k in proportion to `theta[d, k] * phi[w, k]`. Counts come by rows (documents):
`indptr`, `indices`, `data`. Cost: entries x topics.
"""

from math import log

from markovia.kernels.kernel import kernel


@kernel(_nrt=False)
def expected_topics(indptr, indices, data, theta, phi, by_document, by_word):
    """Return the log likelihood and fill in expected counts.

    `by_document` (documents, topics) is filled, `by_word` (words, topics) is added to unless it has no rows.
    """
    n_topics = theta.shape[1]
    found = 0.0
    for d in range(len(indptr) - 1):
        for k in range(n_topics):
            by_document[d, k] = 0.0
        for e in range(indptr[d], indptr[d + 1]):
            w = indices[e]
            total = 0.0
            for k in range(n_topics):
                total += theta[d, k] * phi[w, k]
            found += data[e] * log(total)
            if total <= 0.0:  # a word that no topic has tells nothing
                continue
            share = data[e] / total
            for k in range(n_topics):
                by_document[d, k] += share * phi[w, k]
            if len(by_word):
                for k in range(n_topics):
                    by_word[w, k] += share * theta[d, k] * phi[w, k]
        for k in range(n_topics):
            by_document[d, k] *= theta[d, k]
    return found
