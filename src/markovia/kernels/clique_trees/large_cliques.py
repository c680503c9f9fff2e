"""One large clique split between threads: parts of its table up and down, and what joins them."""

from markovia.kernels.clique_trees import program_sections as at
from markovia.kernels.clique_trees.clique_tables import (
    DONE,
    measure,
    opened,
)
from markovia.kernels.clique_trees.propagation import (
    clear,
    deliver,
    fill,
    open_clique,
    pour,
    send,
    waiting_for,
    wanted_strides,
)
from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import beyond, pointer


@kernel(bare=True)
def collect_part(c, part, parts, maximise, packed, room, shares):
    """Compute one part of a clique's table and its share of the message; with `part` -1, join the shares and send."""
    _program, tree, state, room = opened(packed, room)
    shares = pointer(shares)
    sizes = measure(c, tree, state, room)
    separator = sizes[2]
    if part >= 0:
        own = beyond(shares, part * separator)
        status, _ = fill((part, parts), maximise, c, sizes, tree, state, room, own)
        return status
    for s in range(separator):
        t = shares[s]
        for k in range(1, parts):
            other = shares[k * separator + s]
            if not maximise:
                t += other
            elif other > t:
                t = other
        shares[s] = t
    return send(c, separator, 0.0, shares, tree, state)


@kernel(bare=True)
def distribute_part(c, part, parts, packed, room, shares, totals):
    """Sum one part of a clique's belief onto its children's separators and its own variables.

    With `part` -1, say how much room the shares of the separators take (-1: nothing is to be done); with `parts`, join them.
    """
    p, tree, state, room = opened(packed, room)
    shares, totals = pointer(shares), pointer(totals)
    waiting = waiting_for(c, tree, state)
    own = state.wanted[c] == 2 and state.marginal_stale[c] != 0
    sizes = measure(c, tree, state, room)
    n_axes = sizes[0]
    n_shares = wanted_strides(c, n_axes, tree, state, room.child_strides)
    if part < 0:
        return n_shares if waiting > 0 or own else -1
    marginals = tree.marginal_at[p[at.N_SLOTS]]
    if part < parts:
        open_clique(c, sizes[2], tree, state, room.ratio)
        shares = beyond(shares, part * n_shares)
        totals = beyond(totals, part * marginals)
        for s in range(n_shares):
            shares[s] = 0.0
        clear(c, n_axes, tree, totals)
        pour((part, parts), c, sizes, waiting, own, tree, state, room, (shares, totals))
        return DONE
    for k in range(1, parts):
        for s in range(n_shares):
            shares[s] += shares[k * n_shares + s]
    if own:
        clear(c, n_axes, tree, state.marginals)
        for a in range(tree.n_separator[c], n_axes):
            v = tree.clique[tree.clique_start[c] + a]
            for k in range(parts):
                for i in range(tree.marginal_at[v], tree.marginal_at[v + 1]):
                    state.marginals[i] += totals[k * marginals + i]
    deliver(c, n_axes, own, tree, state, room, shares)
    return DONE
