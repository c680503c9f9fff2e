"""Counting configurations: one pass over columns of state codes, many tables at once.

Rows are taken in blocks that stay in the first cache. For each table the block's flat indices are computed column by
column (simple loops that the compiler turns into vector instructions), then counted. A row that misses a cell of a table
is not counted in it. Cost: rows times the number of columns of all tables.
"""

import numpy as np
from numba import njit

BLOCK = 4096


@njit(cache=True, nogil=True, error_model="numpy")
def count_tables(codes, first, last, scope_start, scope, stride, gaps, table_at, out):
    """Add the rows `first..last` of `codes` (one row a column of data) to the tables in `out`.

    `scope[scope_start[t]:scope_start[t + 1]]` are the columns of table t and `stride` their strides; `gaps[t]` says that
    some cell of these columns may be missing (negative).
    """
    index = np.empty(BLOCK, np.int64)
    for begin in range(first, last, BLOCK):
        n = min(BLOCK, last - begin)
        for t in range(len(table_at)):
            at = table_at[t]
            for i in range(n):
                index[i] = at
            for k in range(scope_start[t], scope_start[t + 1]):
                column = codes[scope[k]]
                s = stride[k]
                if gaps[t]:
                    for i in range(n):
                        code = np.int64(column[begin + i])
                        index[i] = index[i] + code * s if code >= 0 and index[i] >= 0 else -1
                else:
                    for i in range(n):
                        index[i] += np.int64(column[begin + i]) * s
            if gaps[t]:
                for i in range(n):
                    if index[i] >= 0:
                        out[index[i]] += 1
            else:
                for i in range(n):
                    out[index[i]] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_tables(codes, weights, first, last, scope_start, scope, stride, table_at, out):
    """Add the weights of rows instead of one for each; see `count_tables`."""
    index = np.empty(BLOCK, np.int64)
    for begin in range(first, last, BLOCK):
        n = min(BLOCK, last - begin)
        for t in range(len(table_at)):
            at = table_at[t]
            for i in range(n):
                index[i] = at
            for k in range(scope_start[t], scope_start[t + 1]):
                column = codes[scope[k]]
                s = stride[k]
                for i in range(n):
                    code = np.int64(column[begin + i])
                    index[i] = index[i] + code * s if code >= 0 and index[i] >= 0 else -1
            for i in range(n):
                if index[i] >= 0:
                    out[index[i]] += weights[begin + i]
