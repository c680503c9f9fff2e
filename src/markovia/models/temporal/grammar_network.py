"""The Bayesian network of the sentences of one length under a context-free grammar.

Each span of words has a node for its symbol (or none, where no node of the tree covers just it) and one for the rule and the
split that it is made by; spans are made by longer ones, so that the network grows from the whole sentence down to the words.
Chains of rules with one symbol are summed over. Reference: Pynadath and Wellman (1998). Cost: exact engines pay for the
spans that cross each other, so this is for short sentences; charts do the same in cubic time.
"""

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.local_models.noisy import NoisyMax
from markovia.inference.circuits.grammar import WeightedGrammar
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array, Ints

NONE = "none"


def grammar_network(grammar: WeightedGrammar, length: int) -> BayesianNetwork:
    """Return the network over `word 0`, `word 1`, ..., and `symbol i-j`, `split i-j` for the words i to j - 1."""
    cut = grammar.cut
    parent, left, right, _ = cut.binary.T
    closed = _closed(grammar)
    lexical = np.zeros((cut.size, len(cut.words)))
    np.add.at(lexical, (cut.lexical[:, 0], cut.lexical[:, 1]), grammar.lexical)
    words = closed @ lexical
    # how probable it is that a symbol derives so many words
    sizes = np.zeros((length + 1, cut.size))
    sizes[1] = words.sum(axis=1)
    for m in range(2, length + 1):
        splits = sum(sizes[k][left] * sizes[m - k][right] for k in range(1, m))
        sizes[m] = closed @ np.bincount(parent, grammar.binary * splits, cut.size)
    if not sizes[length][0] > 0.0:
        raise InvalidArgument(f"the grammar has no sentences of {length} words")
    names = [*cut.symbols, *(f"part {i}" for i in range(cut.size - len(cut.symbols)))]
    reachable: list[list[int]] = [[] for _ in range(length + 1)]
    reachable[length] = [0]
    network = BayesianNetwork()
    made: dict[tuple[int, int], Ints] = {}  # rules and sizes of the left child, by span
    for m in range(length, 0, -1):
        own = reachable[m] = sorted(set(reachable[m]))
        options, p = _productions(grammar, closed, sizes, m, own)
        for rule, k in options.tolist():
            reachable[k].append(int(left[rule]))
            reachable[m - k].append(int(right[rule]))
        states = [
            NONE,
            *(f"{names[parent[r]]} -> {names[left[r]]} {names[right[r]]} @ {k}" for r, k in options),
        ]
        for i in range(length - m + 1):
            j = i + m
            if m < length:
                effects = {}
                for (a, b), rows in made.items():
                    # the symbol that a longer span puts here, if it begins or ends here and is split at the other end
                    child = left if a == i else right
                    at = rows[:, 1] == (j - a if a == i else i - a)
                    if (a == i) != (b == j) and at.any():
                        table = np.eye(1, len(own) + 1).repeat(len(rows) + 1, axis=0)
                        table[1:][at] = np.eye(len(own) + 1)[1 + np.searchsorted(own, child[rows[at, 0]])]
                        effects[f"split {a}-{b}"] = table
                network.add(f"symbol {i}-{j}", NoisyMax(effects), states=[NONE, *(names[a] for a in own)])
            under = [f"symbol {i}-{j}"] if m < length else []
            if m == 1:
                table = np.vstack(
                    [np.full(len(cut.words), 1.0 / len(cut.words)), words[own] / sizes[1][own, None]]
                )
                network.add(f"word {i}", states=cut.words, parents=under, p=table if under else table[1])
            else:
                made[i, j] = options
                table = np.zeros((len(own) + 1, len(options) + 1))
                table[0, 0], table[1:, 1:] = 1.0, p
                network.add(f"split {i}-{j}", states=states, parents=under, p=table if under else table[1])
    return network


def _closed(grammar: WeightedGrammar) -> Array:
    tables, n = grammar.sums, grammar.cut.size
    found = np.zeros((n, n))
    found[np.repeat(np.arange(n), np.diff(tables.chain_first)), tables.chain_child] = tables.chain_weight
    return found


def _productions(
    grammar: WeightedGrammar, closed: Array, sizes: Array, m: int, symbols: list[int]
) -> tuple[Ints, Array]:
    """Return (binary rule, words of its left child) for spans of m words, and their law given each of some symbols."""
    parent, left, right, _ = grammar.cut.binary.T
    every = [(r, k) for k in range(1, m) for r in range(len(parent))]
    rows = np.array(every, dtype=np.int64).reshape(-1, 2)
    r, k = rows.T
    weight = grammar.binary[r] * sizes[k, left[r]] * sizes[m - k, right[r]]
    joint = closed[np.ix_(symbols, parent[r])] * weight
    kept = joint.any(axis=0)
    return rows[kept], joint[:, kept] / sizes[m][symbols][:, None]
