"""Local search over configurations in compiled code: a table of scores kept up to date move by move.

`score[starts[v] + s]` is the log weight, up to what v does not touch, of the present configuration with v in state s. The
gain of a move is a difference of two entries. A move of v changes only the entries of v's neighbours: for every factor of v,
every other member and each of its states, one entry of the table is taken out and another put in.
Cost of a move: the sum over v's factors of the states of their other members. All tables are finite logs.
"""

import numpy as np

from markovia.kernels.kernel import kernel
from markovia.kernels.random_numbers import short_uniform

EPSILON = 1e-10


@kernel
def fill_scores(x, score, cards, starts, unary, scope_ptr, scope, strides, table_ptr, values):
    """Compute the table of scores from nothing."""
    for i in range(len(unary)):
        score[i] = unary[i]
    for f in range(len(scope_ptr) - 1):
        at = table_ptr[f]
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            at += strides[e] * x[scope[e]]
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            v = scope[e]
            rest = at - strides[e] * x[v]
            for s in range(cards[v]):
                score[starts[v] + s] += values[rest + s * strides[e]]


@kernel
def move(
    v, s, x, score, cards, starts, scope_ptr, scope, strides, table_ptr, values, edge_ptr, edges, edge_factor
):
    """Set one variable to a state and bring the scores of its neighbours up to date."""
    old = x[v]
    if old == s:
        return
    for i in range(edge_ptr[v], edge_ptr[v + 1]):
        own = edges[i]
        f = edge_factor[own]
        at = table_ptr[f]
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            if e != own:
                at += strides[e] * x[scope[e]]
        shift = strides[own] * (s - old)
        at += strides[own] * old
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            if e != own:
                u = scope[e]
                rest = at - strides[e] * x[u]
                for t in range(cards[u]):
                    place = rest + t * strides[e]
                    score[starts[u] + t] += values[place + shift] - values[place]
    x[v] = s


@kernel
def sweep(
    order, beta, rng, x, score,
    cards, starts, unary, scope_ptr, scope, strides, table_ptr, values, edge_ptr, edges, edge_factor,
):  # fmt: skip
    """Visit variables in order; return the gain in score and the number of moves.

    With `beta` infinite each goes to its best state, ties keep the present one; otherwise to state s with probability
    proportional to exp(beta * score).
    """
    gain, moves = 0.0, 0
    for i in range(len(order)):
        v = order[i]
        first, last = starts[v], starts[v + 1]
        now = x[v]
        new = now
        if np.isinf(beta):
            for s in range(last - first):
                if score[first + s] > score[first + new] + EPSILON:
                    new = s
        else:
            top = score[first]
            for s in range(1, last - first):
                top = max(top, score[first + s])
            total = 0.0
            for s in range(last - first):
                total += np.exp(beta * (score[first + s] - top))
            left = short_uniform(rng) * total
            for s in range(last - first):
                p = np.exp(beta * (score[first + s] - top))
                if p > 0.0:
                    new = s
                    left -= p
                    if left < 0.0:
                        break
        if new != now:
            gain += score[first + new] - score[first + now]
            moves += 1
            move(
                v, new, x, score, cards, starts, scope_ptr, scope, strides, table_ptr, values, edge_ptr, edges,
                edge_factor,
            )  # fmt: skip
    return gain, moves


@kernel
def best_moves(
    steps, tenure, spread, clock, until, best_x, state, rng, x, score,
    cards, starts, unary, scope_ptr, scope, strides, table_ptr, values, edge_ptr, edges, edge_factor,
):  # fmt: skip
    """Make the best single change again and again: steepest ascent (tenure 0) or tabu search.

    After a move away from a state, going back to it is forbidden for `tenure` plus up to `spread` moves, unless that gives
    the best score ever. Ties are broken at random. `state` holds the present and the best score; `until` the step up to
    which each state of each variable is forbidden. Steepest ascent stops where no change helps.
    Returns the number of moves made.
    """
    for step in range(steps):
        best, ties, chosen, to = -np.inf, 0, -1, 0
        for v in range(len(cards)):
            first = starts[v]
            here = score[first + x[v]]
            for s in range(cards[v]):
                gain = score[first + s] - here
                if s == x[v] or gain < best - EPSILON:
                    continue
                if until[first + s] > clock + step and state[0] + gain <= state[1] + EPSILON:
                    continue
                if gain > best + EPSILON:
                    best, ties, chosen, to = gain, 1, v, s
                else:
                    ties += 1
                    if short_uniform(rng) * ties < 1.0:
                        best, chosen, to = max(best, gain), v, s
        if tenure == 0 and best <= EPSILON:
            return step
        if chosen < 0:  # all is forbidden: let a random variable go somewhere
            chosen = int(short_uniform(rng) * len(cards))
            to = int(short_uniform(rng) * cards[chosen])
            best = score[starts[chosen] + to] - score[starts[chosen] + x[chosen]]
        until[starts[chosen] + x[chosen]] = clock + step + 1 + tenure + int(short_uniform(rng) * (spread + 1))
        move(
            chosen,
            to,
            x,
            score,
            cards,
            starts,
            scope_ptr,
            scope,
            strides,
            table_ptr,
            values,
            edge_ptr,
            edges,
            edge_factor,
        )
        state[0] += best
        if state[0] > state[1] + EPSILON:
            state[1] = state[0]
            for u in range(len(x)):
                best_x[u] = x[u]
    return steps


@kernel
def guided_climbs(
    climbs, weight, wall, lambda_unary, lambda_values, work_values, best_x, state, rng, x, score,
    cards, starts, unary, scope_ptr, scope, strides, table_ptr, values, edge_ptr, edges, edge_factor,
):  # fmt: skip
    """Climb in the penalised scores to a local optimum, then penalise the table entries most to blame for it; repeat.

    `score` and `work_values` are logs, at least minus `wall`, minus `weight` times the penalties; `state` holds the present
    and the best true score. To blame is the entry in use of the largest -log / (1 + penalty). Returns the number of moves.
    """
    n = len(cards)
    order = np.arange(n)
    moves = 0
    for _ in range(climbs):
        for i in range(n - 1, 0, -1):
            j = int(short_uniform(rng) * (i + 1))
            order[i], order[j] = order[j], order[i]
        quiet, i = 0, 0
        while quiet < n:
            v = order[i]
            i = i + 1 if i + 1 < n else 0
            first = starts[v]
            now = x[v]
            new = now
            for s in range(cards[v]):
                if score[first + s] > score[first + new] + EPSILON:
                    new = s
            if new == now:
                quiet += 1
                continue
            quiet = 0
            moves += 1
            state[0] += unary[first + new] - unary[first + now]
            for e in range(edge_ptr[v], edge_ptr[v + 1]):
                own = edges[e]
                f = edge_factor[own]
                at = table_ptr[f]
                for j in range(scope_ptr[f], scope_ptr[f + 1]):
                    at += strides[j] * x[scope[j]]
                state[0] += values[at + strides[own] * (new - now)] - values[at]
            move(
                v, new, x, score, cards, starts, scope_ptr, scope, strides, table_ptr, work_values, edge_ptr, edges,
                edge_factor,
            )  # fmt: skip
            if state[0] > state[1] + EPSILON:
                state[1] = state[0]
                for u in range(len(x)):
                    best_x[u] = x[u]
        worst = 0.0
        for blame in range(2):  # first how much, then whom
            for v in range(n):
                at = starts[v] + x[v]
                utility = min(-unary[at], wall) / (1.0 + lambda_unary[at])
                if blame == 0:
                    worst = max(worst, utility)
                elif utility >= worst - EPSILON and cards[v] > 1:
                    lambda_unary[at] += 1.0
                    score[at] -= weight
            for f in range(len(scope_ptr) - 1):
                at = table_ptr[f]
                for e in range(scope_ptr[f], scope_ptr[f + 1]):
                    at += strides[e] * x[scope[e]]
                utility = min(-values[at], wall) / (1.0 + lambda_values[at])
                if blame == 0:
                    worst = max(worst, utility)
                elif utility >= worst - EPSILON:
                    lambda_values[at] += 1.0
                    work_values[at] -= weight
                    for e in range(scope_ptr[f], scope_ptr[f + 1]):
                        score[starts[scope[e]] + x[scope[e]]] -= weight
            if worst <= EPSILON:
                return moves
    return moves
