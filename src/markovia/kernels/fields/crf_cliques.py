"""Sum-product on one clique tree in logarithms, for many inputs that share the tree.

The tree is `FieldCliques`. All numbers are logs, so nothing underflows. Cost: two passes over the entries and over the maps.
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import kernel


@kernel
def clique_tree_marginals(tree, logs, marginals):
    """Return the log mass of the product of factors `exp(logs)` and write the marginals of all factors."""
    parent, table_ptr, sep_ptr, up_map, down_ptr, down_map, home, factor_ptr, map_ptr, factor_map = tree
    n = len(parent)
    table = np.empty(table_ptr[n])
    for x in range(table_ptr[n]):
        table[x] = 0.0
    message = np.empty(sep_ptr[n])
    top = np.empty(sep_ptr[n])
    for f in range(len(home)):
        at = table_ptr[home[f]]
        for x in range(map_ptr[f + 1] - map_ptr[f]):
            table[at + x] += logs[factor_ptr[f] + factor_map[map_ptr[f] + x]]
    mass = 0.0
    for c in range(n):
        first, last = sep_ptr[c], sep_ptr[c + 1]
        for s in range(first, last):
            top[s] = -np.inf
            message[s] = 0.0
        for x in range(table_ptr[c], table_ptr[c + 1]):
            s = first + up_map[x]
            if table[x] > top[s]:
                top[s] = table[x]
        for x in range(table_ptr[c], table_ptr[c + 1]):
            s = first + up_map[x]
            if table[x] > -np.inf:
                message[s] += exp(table[x] - top[s])
        for s in range(first, last):
            message[s] = top[s] + log(message[s]) if message[s] > 0.0 else -np.inf
        p = parent[c]
        if p < 0:
            mass += message[first]
            continue
        for x in range(down_ptr[c + 1] - down_ptr[c]):
            table[table_ptr[p] + x] += message[first + down_map[down_ptr[c] + x]]
    if not mass > -np.inf:
        return mass
    for c in range(n - 1, -1, -1):  # tables become probabilities
        p = parent[c]
        first, last = sep_ptr[c], sep_ptr[c + 1]
        for s in range(first, last):
            top[s] = 0.0
        if p < 0:
            top[first] = 1.0
        else:
            for x in range(down_ptr[c + 1] - down_ptr[c]):
                top[first + down_map[down_ptr[c] + x]] += table[table_ptr[p] + x]
        for x in range(table_ptr[c], table_ptr[c + 1]):
            s = first + up_map[x]
            table[x] = exp(table[x] - message[s]) * top[s] if table[x] > -np.inf else 0.0
    for f in range(len(home)):
        at = table_ptr[home[f]]
        for y in range(factor_ptr[f], factor_ptr[f + 1]):
            marginals[y] = 0.0
        for x in range(map_ptr[f + 1] - map_ptr[f]):
            marginals[factor_ptr[f] + factor_map[map_ptr[f] + x]] += table[at + x]
    return mass
