"""Charts of context-free grammars: inside and outside sums over all parses of sentences, best parses, and draws.

A chart has one row for each span of a sentence (see `cell`) and one column for each symbol. Each span keeps its own scale,
so that long sentences neither vanish nor overflow. Reference: Baker (1979); Lari and Young (1990). Cost: length cubed times
binary rules whose left child is possible there.
"""

from math import exp, inf, log
from typing import NamedTuple

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import uniform
from markovia.runtime.array_types import Array, Ints


class GrammarTables(NamedTuple):
    """A binarised grammar of N symbols and W words: weights are probabilities for sums, logarithms for the best parse."""

    first: Ints  # (N + 1,): binary rules with a left child c are first[c] to first[c + 1]
    parent: Ints  # (binary,)
    right: Ints  # (binary,)
    weight: Array  # (binary,)
    word_first: Ints  # (W + 2,): lexical rules of a word; the last row is a word that is missing
    word_parent: Ints  # (lexical,)
    word_rule: Ints  # (lexical,): which of the lexical rules it is
    word_weight: Array  # (lexical,)
    chain_first: Ints  # (N + 1,): what a symbol becomes by chains of unary rules, itself among it
    chain_child: Ints  # (chains,)
    chain_weight: Array  # (chains,)
    link_parent: Ints  # (links,): single steps of such chains, whose expected counts are wanted
    link_child: Ints  # (links,)


class Charts(NamedTuple):
    """Sums of one sentence; arrays may be longer than it needs."""

    sums: Array  # of all derivations of a span from a symbol: sums * exp(scales)
    scales: Array
    around: Array  # of all that surrounds a symbol below its chain of unary rules: around * exp(tops)
    tops: Array


class GrammarCounts(NamedTuple):
    """How often rules are expected to be used: a chain's step without its own weight."""

    binary: Array  # (binary,)
    lexical: Array  # (lexical rules,)
    links: Array  # (links,)


@inner
def cell(i, j, n):
    """Return the row of a chart for the words i to j - 1 of a sentence of n words."""
    return i * n - i * (i - 1) // 2 + j - i - 1


@inner
def _rescale(row, scale):
    """Divide a row by its largest number and return the log of what it stands for now; minus infinity for zeros."""
    top = row.max()
    if top <= 0.0 or scale == -inf:
        row[:] = 0.0
        return -inf
    row /= top
    return scale + log(top)


@inner
def _inside(g, words, sums, scales):
    """Fill the chart of inside sums: a symbol's sum over its derivations of a span is `sums * exp(scales)`."""
    n, symbols = len(words), sums.shape[1]
    core = np.empty(symbols)  # without chains of unary rules on top
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length
            here = cell(i, j, n)
            core[:] = 0.0
            scale = -inf if length > 1 else 0.0
            if length == 1:
                for r in range(g.word_first[words[i]], g.word_first[words[i] + 1]):
                    core[g.word_parent[r]] += g.word_weight[r]
            for k in range(i + 1, j):
                scale = max(scale, scales[cell(i, k, n)] + scales[cell(k, j, n)])
            for k in range(i + 1, j):
                left, right = cell(i, k, n), cell(k, j, n)
                share = scales[left] + scales[right]
                if share == -inf:
                    continue
                share = exp(share - scale)
                for c in range(symbols):
                    part = share * sums[left, c]
                    if part > 0.0:
                        for r in range(g.first[c], g.first[c + 1]):
                            core[g.parent[r]] += part * g.weight[r] * sums[right, g.right[r]]
            row = sums[here]
            for a in range(symbols):
                total = 0.0
                for r in range(g.chain_first[a], g.chain_first[a + 1]):
                    total += g.chain_weight[r] * core[g.chain_child[r]]
                row[a] = total
            scales[here] = _rescale(row, scale)


@inner
def _outside(g, words, charts, log_prob, weight, counts):
    """Fill what surrounds each symbol of each span, and add how often rules are expected, times the sentence's weight.

    Only symbols that derive the span are looked at; what surrounds others never counts.
    """
    sums, scales, around, tops = charts
    n, symbols = len(words), sums.shape[1]
    row = np.empty(symbols)  # what surrounds symbols with their chains
    around[: n * (n + 1) // 2] = 0.0
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            here = cell(i, j, n)
            row[:] = 0.0
            scale = -inf
            if length == n:
                row[0], scale = 1.0, 0.0
            for h in range(j + 1, n + 1):
                scale = max(scale, tops[cell(i, h, n)] + scales[cell(j, h, n)])
            for h in range(i):
                scale = max(scale, tops[cell(h, j, n)] + scales[cell(h, i, n)])
            known = weight * exp(scale + scales[here] - log_prob)
            for h in range(j + 1, n + 1):  # the left child of a longer span
                above, beside = cell(i, h, n), cell(j, h, n)
                share = tops[above] + scales[beside]
                if share == -inf:
                    continue
                share = exp(share - scale)
                for c in range(symbols):
                    if sums[here, c] > 0.0:
                        for r in range(g.first[c], g.first[c + 1]):
                            part = share * around[above, g.parent[r]] * g.weight[r] * sums[beside, g.right[r]]
                            if part > 0.0:
                                row[c] += part
                                counts.binary[r] += known * part * sums[here, c]
            for h in range(i):  # the right child of one
                above, beside = cell(h, j, n), cell(h, i, n)
                share = tops[above] + scales[beside]
                if share == -inf:
                    continue
                share = exp(share - scale)
                for c in range(symbols):
                    part = share * sums[beside, c]
                    if part > 0.0:
                        for r in range(g.first[c], g.first[c + 1]):
                            if sums[here, g.right[r]] > 0.0:
                                row[g.right[r]] += part * around[above, g.parent[r]] * g.weight[r]
            tops[here] = _rescale(row, scale)
            if tops[here] == -inf or scales[here] == -inf:
                continue
            for a in range(symbols):
                if row[a] > 0.0:
                    for r in range(g.chain_first[a], g.chain_first[a + 1]):
                        around[here, g.chain_child[r]] += row[a] * g.chain_weight[r]
            known = weight * exp(tops[here] + scales[here] - log_prob)
            for r in range(len(g.link_parent)):
                counts.links[r] += known * around[here, g.link_parent[r]] * sums[here, g.link_child[r]]
            if length == 1:
                known = weight * exp(tops[here] - log_prob)
                for r in range(g.word_first[words[i]], g.word_first[words[i] + 1]):
                    counts.lexical[g.word_rule[r]] += (
                        known * around[here, g.word_parent[r]] * g.word_weight[r]
                    )


@kernel
def inside_outside(g, words, offsets, weights, charts, counts, log_probs):
    """Fill the log probability of each sentence, and add expected counts for those whose weight is above 0.

    Sentence s has the words `offsets[s]` to `offsets[s + 1]`, at least one; charts have room for the longest, and are left
    as those of the last.
    """
    for s in range(len(log_probs)):
        own = words[offsets[s] : offsets[s + 1]]
        _inside(g, own, charts.sums, charts.scales)
        whole = cell(0, len(own), len(own))
        part = charts.sums[whole, 0]
        log_probs[s] = log(part) + charts.scales[whole] if part > 0.0 else -inf
        if weights[s] > 0.0 and part > 0.0:
            _outside(g, own, charts, log_probs[s], weights[s], counts)


@kernel
def best_chart(g, words, best, core):
    """Fill log probabilities of the best derivation of each span from each symbol; `core` has no unary chain on top."""
    n, symbols = len(words), len(g.first) - 1
    core[:] = -inf
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length
            here = cell(i, j, n)
            if length == 1:
                for r in range(g.word_first[words[i]], g.word_first[words[i] + 1]):
                    core[here, g.word_parent[r]] = max(core[here, g.word_parent[r]], g.word_weight[r])
            for k in range(i + 1, j):
                left, right = cell(i, k, n), cell(k, j, n)
                for c in range(symbols):
                    part = best[left, c]
                    if part > -inf:
                        for r in range(g.first[c], g.first[c + 1]):
                            score = part + g.weight[r] + best[right, g.right[r]]
                            if score > core[here, g.parent[r]]:
                                core[here, g.parent[r]] = score
            for a in range(symbols):
                top = -inf
                for r in range(g.chain_first[a], g.chain_first[a + 1]):
                    top = max(top, g.chain_weight[r] + core[here, g.chain_child[r]])
                best[here, a] = top


@kernel
def draw_derivation(rule_first, cumulative, right_first, right, stack, used, s):
    """Fill the rules of a leftmost derivation from symbol 0; return how many they are, or -1 if there is no room for more.

    Symbol a has the rules `rule_first[a]` to `rule_first[a + 1]`, with running sums of probabilities; rule r has on its
    right side the symbols `right[right_first[r]:right_first[r + 1]]`. The stack has room for all symbols of all rules.
    """
    stack[0], height, n = 0, 1, 0
    while height:
        if n == len(used):
            return -1
        height -= 1
        a = stack[height]
        u = uniform(s) * cumulative[rule_first[a + 1] - 1]
        r = rule_first[a]
        while r < rule_first[a + 1] - 1 and cumulative[r] <= u:
            r += 1
        used[n] = r
        n += 1
        for k in range(right_first[r + 1] - 1, right_first[r] - 1, -1):  # the first is to be on top
            stack[height] = right[k]
            height += 1
    return n
