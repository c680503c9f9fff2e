"""Whole questions in one call, for small trees: the calls from Python would cost more than the work.

`ask` enters evidence into a state, propagates what changed and brings down what is wanted. `answer_at_once` does all of it
from the scopes and tables of a model that was never compiled.
"""

import numpy as np

from markovia.kernels.clique_trees import tree_program as at
from markovia.kernels.clique_trees.clique_tables import lengths, room_of, state_of, tree_of
from markovia.kernels.clique_trees.propagation import DONE, _collect, _distribute
from markovia.kernels.clique_trees.tree_program import compile_program, load_tables, section
from markovia.kernels.kernel import kernel

ALL, NOTHING = -1, -2
"""What may be wanted instead of a slot."""
AT_ONCE = float(1 << 18)
"""Entries up to which a tree is answered at once."""


@kernel
def _ask(program, floats, ints, flags, room_floats, room_ints, code, wanted):
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    slot_start, slot_cliques = section(program, at.SLOT_START), section(program, at.SLOT_CLIQUES)
    for v in range(len(code)):
        if code[v] != state.code[v]:
            state.code[v] = code[v]
            for i in range(slot_start[v], slot_start[v + 1]):
                state.dirty[slot_cliques[i]] = 1
    n = len(tree.parent)
    status = _collect(0, n, False, tree, state, room)
    if status != DONE:
        return status, 0.0
    total = 0.0
    lost = 0.0
    for c in range(n):
        term = state.log_scale[c] - lost
        now = total + term
        lost = (now - total) - term
        total = now
    if wanted == ALL:
        state.wanted[:] = 2
    elif wanted >= 0:
        state.wanted[:] = 0
        c = section(program, at.HOME)[wanted]
        state.wanted[c] = 2
        c = tree.parent[c]
        while c >= 0:
            state.wanted[c] = 1
            c = tree.parent[c]
    if wanted != NOTHING:
        _distribute(0, n, tree, state, room)
    return status, total


@kernel
def ask(program, floats, ints, flags, room_floats, room_ints, code, wanted):
    """Enter hard evidence (`code` by slot, -1 for none) and bring the wanted slot, or all, up to date.

    Returns `(status, log of the scale taken out on the way up)`.
    """
    return _ask(program, floats, ints, flags, room_floats, room_ints, code, wanted)


@kernel
def answer_at_once(scope_start, scope, card, share, most, raw, code):
    """Compile a model, enter evidence (`code` by variable, -1 for none) and compute all posteriors, if the tree is small.

    Returns `(program, total, largest, status, log mass, posteriors by slot)`; the status is -1 where the tree is not small
    and nothing was computed.
    """
    program, total, largest = compile_program(
        scope_start, scope, card, np.zeros(len(card), np.int64), share, most, np.empty(0, np.int64)
    )
    if total > AT_ONCE:
        return program, total, largest, -1, 0.0, np.empty(0)
    n_floats, n_ints, n_flags, room_floats, room_ints = lengths(program)
    floats, ints, flags = np.empty(n_floats), np.full(n_ints, -1, np.int64), np.zeros(n_flags, np.int8)
    mine, own = np.empty(room_floats), np.empty(room_ints, np.int64)
    n, k = program[at.N_CLIQUES], program[at.N_SLOTS]
    flags[:n] = 1
    values_end = n_floats - k - program[at.N_FACTORS]
    scale = load_tables(program, raw, floats, floats[values_end : n_floats - k])
    codes = np.empty(k, np.int64)
    slot = section(program, at.SLOT)
    for v in range(k):
        codes[slot[v]] = code[v]
    status, mass = 0, -np.inf
    if scale != scale:
        status = 2
    elif scale > -np.inf:
        status, mass = _ask(program, floats, ints, flags, mine, own, codes, ALL)
        mass += scale
    else:
        status = 1
    messages = program[at.N_VALUES] - program[at.N_FACTOR_VALUES] - program[at.N_MARGINALS]
    start = program[at.N_VALUES] + program[at.N_TABLES] + messages
    found = floats[start : start + program[at.N_MARGINALS]].copy()
    # the kernels above do not count references: keep everything alive until here
    alive = len(ints) + len(flags) + len(own) + len(codes) + len(mine) + len(floats)
    return program, total, largest, status if alive >= 0 else -1, mass, found
