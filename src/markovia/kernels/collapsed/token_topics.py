"""Collapsed Gibbs sweeps over words whose topics may be restricted, owned, tied or watched by a response.

Every token has a topic and an owner. Its document says which topics may be (labels) and who may own it (the document
itself, or its authors); an owner has proportions of topics. Topic k draws place `place[mapping[k], word]` of profile
`profile[k]`, so that topics can share a profile up to a permutation of words; a profile has one distribution for each
context (the word before, for bigrams). The named tuples that come in are those of
`markovia.inference.collapsed.token_samplers`; all counts have their priors added. Cost of a sweep: tokens x owners x
topics.
"""

from math import exp, inf, log

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import uniform


@inner(_nrt=False)
def _scores(topic, begin, end, coef, scores):
    """Write the linear predictors of a document's response."""
    for c in range(len(coef)):
        found = 0.0
        for i in range(begin, end):
            found += coef[c, topic[i]]
        scores[c] = found / (end - begin)


@inner(_nrt=False)
def _log_response(response, value, scores, k, share):
    """Return log p of a response, up to a constant, where one more token has topic k."""
    coef = response.coef
    if response.kind == 1:
        off = value - scores[0] - coef[0, k] * share
        return -0.5 * off * off / response.variance
    top = -inf
    for c in range(len(coef)):
        top = max(top, scores[c] + coef[c, k] * share)
    total = 0.0
    for c in range(len(coef)):
        total += exp(scores[c] + coef[c, k] * share - top)
    c = int(value)
    return scores[c] + coef[c, k] * share - top - log(total)


@kernel(_nrt=False)
def sweep(tokens, choices, ties, counts, response, topic, owner, state, inverse, weights, scores):
    """Draw topic and owner of each token once; `inverse` (as totals), `weights` and `scores` are room."""
    word, context, offsets = tokens
    owners, owner_totals, places, totals = counts
    n_topics, tied = len(ties.profile), len(ties.place) > 1 or places.shape[1] < len(ties.profile)
    for x in range(len(totals)):
        for p in range(totals.shape[1]):
            inverse[x, p] = 1.0 / totals[x, p]
    for d in range(len(offsets) - 1):
        first, last = choices.owner_ptr[d], choices.owner_ptr[d + 1]
        begin, end = choices.set_ptr[choices.set_of[d]], choices.set_ptr[choices.set_of[d] + 1]
        watched = response.kind > 0 and response.value[d] == response.value[d]
        if response.kind == 2 and watched:
            watched = response.value[d] >= 0.0
        plain = last - first == 1 and not tied
        share = 1.0 / max(offsets[d + 1] - offsets[d], 1)
        if watched and offsets[d + 1] > offsets[d]:
            _scores(topic, offsets[d], offsets[d + 1], response.coef, scores)
        for i in range(offsets[d], offsets[d + 1]):
            w, x, k, a = word[i], context[i], topic[i], owner[i]
            owners[a, k] -= 1.0
            owner_totals[a] -= 1.0
            places[ties.place[ties.mapping[k], w], ties.profile[k]] -= 1.0
            totals[x, ties.profile[k]] -= 1.0
            inverse[x, ties.profile[k]] = 1.0 / totals[x, ties.profile[k]]
            total = 0.0
            at = 2 * n_topics
            if plain and not watched:
                a = choices.owner[first]
                for j in range(begin, end):
                    k = choices.topic[j]
                    total += places[w, k] * inverse[x, k] * owners[a, k]
                    weights[at] = total
                    at += 1
            else:
                for j in range(begin, end):
                    k = choices.topic[j]
                    p = ties.profile[k]
                    weights[j - begin] = places[ties.place[ties.mapping[k], w], p] * inverse[x, p]
                if watched:
                    for c in range(len(response.coef)):
                        scores[c] -= response.coef[c, topic[i]] * share
                    top = -inf
                    for j in range(begin, end):
                        found = _log_response(response, response.value[d], scores, choices.topic[j], share)
                        weights[n_topics + j - begin] = found
                        top = max(top, found)
                    for j in range(begin, end):
                        weights[j - begin] *= exp(weights[n_topics + j - begin] - top)
                for o in range(first, last):
                    a = choices.owner[o]
                    part = 1.0 / owner_totals[a]
                    for j in range(begin, end):
                        total += weights[j - begin] * owners[a, choices.topic[j]] * part
                        weights[at] = total
                        at += 1
            u = uniform(state) * total
            at = 2 * n_topics
            most = at + (last - first) * (end - begin) - 1
            while at < most and weights[at] <= u:
                at += 1
            at -= 2 * n_topics
            a = choices.owner[first + at // (end - begin)]
            k = choices.topic[begin + at % (end - begin)]
            topic[i] = k
            owner[i] = a
            owners[a, k] += 1.0
            owner_totals[a] += 1.0
            places[ties.place[ties.mapping[k], w], ties.profile[k]] += 1.0
            totals[x, ties.profile[k]] += 1.0
            inverse[x, ties.profile[k]] = 1.0 / totals[x, ties.profile[k]]
            if watched:
                for c in range(len(response.coef)):
                    scores[c] += response.coef[c, k] * share
