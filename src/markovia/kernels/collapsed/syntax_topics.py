"""Collapsed Gibbs sweeps of words that follow a chain of classes, one of which draws its words from topics.

Class 0 is that of the topics; classes 1, 2, ... have words of their own. Only tokens of class 0 have a topic (others
-1). A token's class and topic are drawn together given all others. Row `classes` of `steps` is the start of a
document. All counts (`SyntaxCounts`) have their priors added. Cost of a sweep: tokens x (topics + classes).

Reference: Griffiths, Steyvers, Blei and Tenenbaum (2005), "Integrating topics and syntax".
"""

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import uniform


@inner(_nrt=False)
def _count(counts, d, w, before, c, k, after, amount):
    """Add a token, or take it away."""
    counts.steps[before, c] += amount
    counts.step_totals[before] += amount
    if after >= 0:
        counts.steps[c, after] += amount
        counts.step_totals[c] += amount
    if c == 0:
        counts.document[d, k] += amount
        counts.document_totals[d] += amount
        counts.topic[w, k] += amount
        counts.topic_totals[k] += amount
    else:
        counts.word_class[w, c] += amount
        counts.class_totals[c] += amount


@kernel(_nrt=False)
def sweep(word, offsets, counts, group, topic, state, weights):
    """Draw class (`group`) and topic of each token once; `weights` (topics + classes) is room."""
    n_classes, n_topics = counts.steps.shape[1], counts.document.shape[1]
    for d in range(len(offsets) - 1):
        for i in range(offsets[d], offsets[d + 1]):
            w = word[i]
            before = group[i - 1] if i > offsets[d] else n_classes
            after = group[i + 1] if i + 1 < offsets[d + 1] else -1
            _count(counts, d, w, before, group[i], topic[i], after, -1.0)
            total = 0.0
            for c in range(n_classes):
                step = counts.steps[before, c]
                if after >= 0:
                    same = 1.0 if before == c else 0.0
                    both = same if c == after else 0.0
                    step *= (counts.steps[c, after] + both) / (counts.step_totals[c] + same)
                if c > 0:
                    total += step * counts.word_class[w, c] / counts.class_totals[c]
                    weights[n_topics + c - 1] = total
                else:
                    step /= counts.document_totals[d]
                    for k in range(n_topics):
                        total += step * counts.document[d, k] * counts.topic[w, k] / counts.topic_totals[k]
                        weights[k] = total
            u = uniform(state) * total
            at = 0
            while at < n_topics + n_classes - 2 and weights[at] <= u:
                at += 1
            group[i] = max(at - n_topics + 1, 0)
            topic[i] = at if at < n_topics else -1
            _count(counts, d, w, before, group[i], topic[i], after, 1.0)
