"""How one node with a table answers in two worlds at once.

A table P(v | parents) says nothing on how the same unit would respond to other parents: for that the table has to come from
a function `v = f(parents, noise)`, and many functions have the same table. A *mechanism* picks one of them:

monotone
    One uniform noise, `f` inverts the cumulative distribution in the order of the states: the worlds agree as much as the
    order of the states lets them.
gumbel
    `argmax_i log p_i + noise_i` with independent Gumbel noises (Oberst and Sontag, 2019): no order of states is needed, and
    a state that becomes relatively more probable is never left.
independent
    A fresh noise for each configuration of the parents: other parents, another throw of the dice.

What two worlds need of it is the joint P(v, v* | parents, parents*). For noisy-or and noisy-and the model itself is a
function: each cause has an inhibitor of its own, the same in both worlds.
"""

from math import prod

import numpy as np

from markovia.errors import TooLarge
from markovia.factors.local_models.logical import DeterministicConditional
from markovia.factors.local_models.noisy import NoisyAndConditional, NoisyOrConditional
from markovia.factors.tables.conditional import MAX_TABLE_ENTRIES, Conditional
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice

MECHANISMS = ("monotone", "gumbel", "independent")


def check_mechanism(kind: object) -> str:
    """Return the name of a mechanism, or say which there are."""
    check_choice("mechanism", kind, MECHANISMS)
    return str(kind)


def is_function(table: Conditional) -> bool:
    """Say whether the parents determine the node: every entry of its table is 0 or 1."""
    if isinstance(table, DeterministicConditional):
        return True
    values = table.values
    return bool(((values == 0.0) | (values == 1.0)).all())


def has_inhibitors(table: Conditional) -> bool:
    """Say whether the node is a noisy-or or noisy-and, which are functions of their inhibitors."""
    return isinstance(table, NoisyOrConditional | NoisyAndConditional)


def coupled_rows(rows: Array, others: Array, same: Array, kind: str) -> Array:
    """Return P(v, v* | row, other row): arrays (..., states) in, (..., states, states) out.

    `same` (...) says where both rows are the same configuration of the parents.
    """
    if kind == "monotone":
        high, high_2 = np.cumsum(rows, -1)[..., :, None], np.cumsum(others, -1)[..., None, :]
        low, low_2 = high - rows[..., :, None], high_2 - others[..., None, :]
        return np.asarray(np.maximum(np.minimum(high, high_2) - np.maximum(low, low_2), 0.0))
    joint = (
        rows[..., :, None] * others[..., None, :] if kind == "independent" else _gumbel_joint(rows, others)
    )
    return np.where(same[..., None, None], rows[..., :, None] * np.eye(rows.shape[-1]), joint)


def _gumbel_joint(p: Array, q: Array) -> Array:
    """Return P(argmax log p + g = i, argmax log q + g = j) for shared standard Gumbel noises g.

    With exponentials E = exp(-g) the winners are the smallest E/p and E/q. For i = j the probability is
    1 / sum_k max(p_k / p_i, q_k / q_i). For i != j put r = E_j / E_i: its density times the chance that no other state wins
    is (1 + r + sum_k max(p_k / p_i, r q_k / q_j))^-2 on [p_j / p_i, q_j / q_i], a piecewise rational function.
    """
    k = p.shape[-1]
    p, q = np.broadcast_arrays(p, q)
    joint = np.zeros((*p.shape, k))
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(k):
            a = p / p[..., i, None]
            together = 1.0 / np.maximum(a, q / q[..., i, None]).sum(-1)
            joint[..., i, i] = np.where((p[..., i] > 0) & (q[..., i] > 0), together, 0.0)
            for j in [j for j in range(k) if j != i]:
                b = q / q[..., j, None]
                low, high = a[..., j], 1.0 / b[..., i]
                rest = [m for m in range(k) if m not in (i, j)]
                cuts = np.stack([low, high, *(np.clip(a[..., m] / b[..., m], low, high) for m in rest)], -1)
                cuts = np.sort(np.where(np.isnan(cuts), low[..., None], cuts), -1)
                middle = np.where(
                    np.isinf(cuts[..., 1:]), 2 * cuts[..., :-1] + 1.0, (cuts[..., 1:] + cuts[..., :-1]) / 2
                )
                above = [a[..., m, None] >= middle * b[..., m, None] for m in rest]
                fixed = 1.0 + sum(
                    (np.where(w, a[..., m, None], 0.0) for m, w in zip(rest, above, strict=True)), 0.0
                )
                slope = 1.0 + sum(
                    (np.where(w, 0.0, b[..., m, None]) for m, w in zip(rest, above, strict=True)), 0.0
                )
                # the integral of (fixed + slope r)^-2 over a piece; an infinite end adds nothing
                start = 1.0 / (slope * (fixed + slope * cuts[..., :-1]))
                end = np.where(np.isinf(cuts[..., 1:]), 0.0, 1.0 / (slope * (fixed + slope * cuts[..., 1:])))
                mass = np.where(cuts[..., 1:] > cuts[..., :-1], start - end, 0.0).sum(-1)
                open_ = (p[..., i] > 0) & (q[..., j] > 0) & (low < high)
                joint[..., i, j] = np.where(open_, mass, 0.0)
    return joint


def world_table(table: Conditional, moved: Ints, kind: str) -> Array:
    """Return P(v* | fixed parents, moved parents, moved parents*, v) as an array with those axes and v* last.

    Parameters
    ----------
    table
        The node's distribution.
    moved
        The positions of the parents that differ between the worlds.
    kind
        A mechanism; ignored where the node has inhibitors.
    """
    fixed = [k for k in range(len(table.parents)) if k not in set(moved.tolist())]
    sizes = [len(p) for p in table.parents]
    k, s, m = len(table.variable), prod(sizes[i] for i in fixed), prod(sizes[i] for i in moved)
    if s * m * m * k * k > MAX_TABLE_ENTRIES:
        raise TooLarge(
            f"the two worlds of {table.variable.name!r} would need a table of {s * m * m * k * k:,} entries; write the "
            "node as a function of its parents and an explicit noise"
        )
    order = [*fixed, *moved.tolist()]
    values = np.asarray(table.values).transpose([*order, len(sizes)]).reshape(s, m, k)
    if isinstance(table, NoisyOrConditional):
        joint = _inhibited(table, order, len(fixed), values)
    else:
        same = np.broadcast_to(np.eye(m, dtype=bool), (s, m, m))
        rows, others = np.broadcast_arrays(values[:, :, None], values[:, None])
        joint = coupled_rows(rows, others, same, kind)
    # what never happens in one world says nothing of the other
    given = np.where(values > 0, values, 1.0)[:, :, None, :, None]
    other = np.broadcast_to(values[:, None, :, None, :], joint.shape)
    answer = np.where(values[:, :, None, :, None] > 0, joint / given, other)
    answer = answer / answer.sum(-1, keepdims=True)
    axes = [sizes[i] for i in fixed] + [sizes[i] for i in moved] * 2
    return np.asarray(answer.reshape(*axes, k, k))


def _inhibited(table: NoisyOrConditional, order: list[int], n_fixed: int, values: Array) -> Array:
    """Return the joint of both worlds where causes keep their inhibitors: nothing happens if all active ones hold."""
    quiet = 1 if isinstance(table, NoisyAndConditional) else 0  # the state that all inhibitors together allow
    total: Array = np.asarray(float(table.start[0]))
    n_moved = len(order) - n_fixed
    both = n_fixed + 2 * n_moved
    for place, at in enumerate(order):
        log_q = np.asarray(table.contributions[at])[:, 0]
        if place < n_fixed:
            shape = [1] * both
            shape[place] = len(log_q)
            total = total + log_q.reshape(shape)
        else:
            shape, other = [1] * both, [1] * both
            shape[place], other[place + n_moved] = len(log_q), len(log_q)
            # a contribution is 0 for an inactive cause and log(1 - strength) for an active one
            total = total + np.minimum(log_q.reshape(shape), log_q.reshape(other))
    s, m, _ = values.shape
    sizes = [len(table.parents[i]) for i in (*order, *order[n_fixed:])]
    none = np.broadcast_to(np.exp(total), sizes).reshape(s, m, m)
    first, second = values[:, :, None, quiet], values[:, None, :, quiet]
    joint = np.empty((s, m, m, 2, 2))
    joint[..., quiet, quiet] = none
    joint[..., quiet, 1 - quiet] = np.maximum(first - none, 0.0)
    joint[..., 1 - quiet, quiet] = np.maximum(second - none, 0.0)
    joint[..., 1 - quiet, 1 - quiet] = np.maximum(1.0 - first - second + none, 0.0)
    return joint
