"""Proportions of known topics in new documents: collapsed variational inference of order zero, a document after the other.

A word's topic has the probabilities (n_dk + prior_k) p(w | k), n_dk the expected words of topic k in the rest of
the document. Reference: Asuncion, Welling, Smyth and Teh (2009).
"""

from markovia.kernels.kernel import kernel


@kernel
def proportions(words, offsets, by_word, prior, rounds, tol, found, shares):
    """Fill found (documents, topics) with rows that sum to one; by_word (words, topics), shares (longest, topics) a room."""
    k = len(prior)
    strength = 0.0
    for j in range(k):
        strength += prior[j]
    for d in range(len(offsets) - 1):
        a, n = offsets[d], offsets[d + 1] - offsets[d]
        for j in range(k):
            found[d, j] = 0.0
        for i in range(n):
            total = 0.0
            for j in range(k):
                shares[i, j] = prior[j] * by_word[words[a + i], j]
                total += shares[i, j]
            for j in range(k):
                shares[i, j] = shares[i, j] / total if total > 0.0 else prior[j] / strength
                found[d, j] += shares[i, j]
        for _ in range(rounds):
            moved = 0.0
            for i in range(n):
                w, total = words[a + i], 0.0
                for j in range(k):
                    total += (found[d, j] - shares[i, j] + prior[j]) * by_word[w, j]
                if total > 0.0:
                    for j in range(k):
                        new = (found[d, j] - shares[i, j] + prior[j]) * by_word[w, j] / total
                        moved += abs(new - shares[i, j])
                        found[d, j] += new - shares[i, j]
                        shares[i, j] = new
            if moved < tol * n:
                break
        for j in range(k):
            found[d, j] = max(found[d, j] + prior[j], 0.0) / (n + strength)
