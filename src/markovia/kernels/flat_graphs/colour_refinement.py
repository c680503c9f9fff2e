"""Colour refinement of the states of a model's variables, in compiled code.

A state's colour is hashed with the colours of the table entries it occurs in, an entry's with its value and
the states it combines, by the caller until the number of colours stops growing.
Colours are hashes of what a state looks like from the
outside, so those of two runs that start differently can be compared.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel


@inner(_nrt=False)
def _mixed(x):
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel(_nrt=False)
def refine_once(starts, scope_ptr, scope, strides, table_ptr, value_colour, colour, fresh):
    """Hash the colours of all states with those of the entries they occur in, in place; `fresh` is room."""
    for p in range(len(colour)):
        fresh[p] = _mixed(colour[p])
    for f in range(len(scope_ptr) - 1):
        first, last = table_ptr[f], table_ptr[f + 1]
        whole = np.uint64(0)
        for turn in range(2):
            for e in range(last - first):
                c = value_colour[first + e]
                for j in range(scope_ptr[f], scope_ptr[f + 1]):
                    v = scope[j]
                    digit = e // strides[j] % (starts[v + 1] - starts[v])
                    c += _mixed(colour[starts[v] + digit])
                c = _mixed(c)
                if turn == 0:
                    whole += c
                    continue
                c = _mixed(c + whole)
                for j in range(scope_ptr[f], scope_ptr[f + 1]):
                    v = scope[j]
                    digit = e // strides[j] % (starts[v + 1] - starts[v])
                    fresh[starts[v] + digit] += c
    for v in range(len(starts) - 1):
        whole = np.uint64(0)
        for p in range(starts[v], starts[v + 1]):
            fresh[p] = _mixed(fresh[p])
            whole += fresh[p]
        for p in range(starts[v], starts[v + 1]):
            colour[p] = _mixed(fresh[p] + _mixed(whole))
