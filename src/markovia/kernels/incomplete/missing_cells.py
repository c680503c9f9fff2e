"""Taking incomplete rows apart: which missing cells hang together, how to sum each group out, and equal cases once.

Variable i has family i: `scope[scope_start[i]:scope_start[i + 1]]` are its parents and itself, `stride` the strides of its
table, which begins at `table_at[i]` of one long array. `of_family[of_start[i]:of_start[i + 1]]` are the families that
mention variable i. A row's missing variables fall into components: two of them are joined if some family mentions both.
A *pattern* is the set of variables of a component; a *case* is a pattern with the observed states around it.
"""

import numpy as np

from markovia.kernels.interned_lists import find, grown, key_of, longer, unset
from markovia.kernels.kernel import kernel


@kernel
def split_rows(cells, used, of_start, of_family, scope_start, scope):
    """Return the components of all rows: their row and pattern; and the patterns as lists of variables.

    `cells[r, i]` is variable i's state in row r, negative if missing; rows with `used[r] == 0` are skipped.
    """
    n_rows, n_variables = cells.shape
    group_row = np.empty(1024, np.int64)
    group_pattern = np.empty(1024, np.int64)
    n_groups = 0
    start = np.zeros(257, np.int64)
    member = np.empty(1024, np.int64)
    hashes = np.empty(256, np.int64)
    table = unset(np.int64(1024))
    n_patterns = np.int64(0)
    where = unset(n_variables)
    missing = np.empty(n_variables, np.int64)
    root = np.empty(n_variables, np.int64)
    number = np.empty(n_variables, np.int64)
    size = np.empty(n_variables + 1, np.int64)
    words = np.empty(n_variables, np.int64)
    for r in range(n_rows):
        if not used[r]:
            continue
        k = 0
        for v in range(n_variables):
            if cells[r, v] < 0:
                missing[k] = v
                where[v] = k
                root[k] = k
                k += 1
        if k == 0:
            continue
        for i in range(k):
            v = missing[i]
            for q in range(of_start[v], of_start[v + 1]):
                f = of_family[q]
                for s in range(scope_start[f], scope_start[f + 1]):
                    j = where[scope[s]]
                    if j > i:
                        a = i
                        while root[a] != a:
                            root[a] = root[root[a]]
                            a = root[a]
                        while root[j] != j:
                            root[j] = root[root[j]]
                            j = root[j]
                        if a < j:
                            root[j] = a
                        elif j < a:
                            root[a] = j
        n = 0
        size[0] = 0
        for i in range(k):
            a = i
            while root[a] != a:
                a = root[a]
            if a == i:
                number[i] = n
                n += 1
                size[n] = 0
            else:
                number[i] = number[a]
            size[number[i] + 1] += 1
        for c in range(n):
            size[c + 1] += size[c]
        for i in range(k):
            where[missing[i]] = -1
            words[size[number[i]]] = missing[i]
            size[number[i]] += 1
        first = 0
        group_row = longer(group_row, n_groups + n)
        group_pattern = longer(group_pattern, n_groups + n)
        for c in range(n):
            m = size[c] - first
            part = words[first : size[c]]
            first = size[c]
            key = key_of(part, m, np.int64(7))
            p = find(table, hashes, key, start, member, part, m, n_patterns)
            if p < 0:
                table[-1 - p] = n_patterns
                p = n_patterns
                n_patterns += 1
                start = longer(start, n_patterns + 1)
                hashes = longer(hashes, n_patterns)
                hashes[p] = key
                start[p + 1] = start[p] + m
                member = longer(member, start[p + 1])
                for j in range(m):
                    member[start[p] + j] = part[j]
                if 2 * n_patterns > len(table):
                    table = grown(table, hashes, n_patterns)
            group_row[n_groups] = r
            group_pattern[n_groups] = p
            n_groups += 1
    return (
        group_row[:n_groups],
        group_pattern[:n_groups],
        start[: n_patterns + 1],
        member[: start[n_patterns]],
    )


@kernel
def number_cases(
    cells,
    weights,
    group_row,
    group_pattern,
    order,
    clique_at,
    clique,
    slot,
    scope_start,
    scope,
    stride,
    table_at,
):
    """Give numbers to the distinct cases of all groups (`order` sorts the groups by pattern).

    Returns each group's case (-1 for patterns without a tree), each case's pattern and weight, and where the
    offsets of its slots begin: offsets of tables with the observed states put in.
    """
    n_groups = len(group_row)
    case_of = unset(n_groups)
    case_pattern = np.empty(1024, np.int64)
    case_weight = np.empty(1024)
    case_at = np.zeros(1025, np.int64)
    hashes = np.empty(1024, np.int64)
    base = np.empty(4096, np.int64)
    table = unset(np.int64(2048))
    widest = 1
    for p in range(len(clique_at) - 1):
        widest = max(widest, clique[clique_at[p + 1], 4] - clique[clique_at[p], 4])
    words = np.empty(widest, np.int64)
    n_cases = np.int64(0)
    for o in range(n_groups):
        g = order[o]
        p = group_pattern[g]
        if clique_at[p] == clique_at[p + 1]:
            continue
        r = group_row[g]
        n = np.int64(0)
        for s in range(clique[clique_at[p], 4], clique[clique_at[p + 1], 4]):
            f = slot[s, 0]
            at = table_at[f]
            for q in range(scope_start[f], scope_start[f + 1]):
                code = np.int64(cells[r, scope[q]])
                if code > 0:
                    at += code * stride[q]
            words[n] = at
            n += 1
        key = key_of(words, n, p + 13)
        c = find(table, hashes, key, case_at, base, words, n, n_cases)
        while c >= 0 and case_pattern[c] != p:  # the same offsets in another pattern: look further
            key = (key + 0x9E3779B97F4A7C) & np.int64(0x3FFFFFFFFFFFFFFF)
            c = find(table, hashes, key, case_at, base, words, n, n_cases)
        if c < 0:
            table[-1 - c] = n_cases
            c = n_cases
            n_cases += 1
            case_at = longer(case_at, n_cases + 1)
            hashes = longer(hashes, n_cases)
            case_pattern = longer(case_pattern, n_cases)
            case_weight = longer(case_weight, n_cases)
            hashes[c] = key
            case_pattern[c] = p
            case_weight[c] = 0.0
            case_at[c + 1] = case_at[c] + n
            base = longer(base, case_at[c + 1])
            for j in range(n):
                base[case_at[c] + j] = words[j]
            if 2 * n_cases > len(table):
                table = grown(table, hashes, n_cases)
        case_of[g] = c
        case_weight[c] += weights[r]
    return (
        case_of,
        case_pattern[:n_cases],
        case_weight[:n_cases],
        case_at[: n_cases + 1],
        base[: case_at[n_cases]],
    )
