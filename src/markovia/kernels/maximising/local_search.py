"""Local search over configurations in compiled code: a table of scores kept up to date move by move.

`score[starts[v] + s]` is the log weight, up to what v does not touch, of the present configuration with v in state s. The
gain of a move is a difference of two entries. A move of v changes only the entries of v's neighbours: for every factor of v,
every other member and each of its states, one entry of the table is taken out and another put in.
Cost of a move: the sum over v's factors of the states of their other members. The tables of a graph are finite logs here.
"""

from math import exp, inf

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import pointer, pointers
from markovia.kernels.random_numbers import below, uniform

EPSILON = 1e-10


@kernel(bare=True)
def fill_scores(graph, x, score):
    """Compute the table of scores from nothing."""
    n_factors = len(graph.scope_ptr) - 1
    g, x, score = pointers(graph), pointer(x), pointer(score)
    for i in range(len(graph.unary)):
        score[i] = g.unary[i]
    for f in range(n_factors):
        first, last = g.scope_ptr[f], g.scope_ptr[f + 1]
        at = g.table_ptr[f]
        for e in range(first, last):
            at += g.strides[e] * x[g.scope[e]]
        for e in range(first, last):
            v = g.scope[e]
            stride, begin = g.strides[e], g.starts[v]
            rest = at - stride * x[v]
            for s in range(g.cards[v]):
                score[begin + s] += g.values[rest + s * stride]


@inner(bare=True)
def _move(g, values, v, s, x, score):
    """Set one variable to another state and bring the scores of its neighbours up to date."""
    old = x[v]
    for i in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
        own = g.edges[i]
        f = g.edge_factor[own]
        first, last = g.scope_ptr[f], g.scope_ptr[f + 1]
        at = g.table_ptr[f]
        for e in range(first, last):
            at += g.strides[e] * x[g.scope[e]]
        shift = g.strides[own] * (s - old)
        for e in range(first, last):
            if e != own:
                u = g.scope[e]
                stride, begin = g.strides[e], g.starts[u]
                place = at - stride * x[u]
                for t in range(g.cards[u]):
                    score[begin + t] += values[place + shift] - values[place]
                    place += stride
    x[v] = s


@kernel(bare=True)
def sweep(graph, order, beta, rng, x, score):
    """Visit variables in order; return the gain in score and the number of moves.

    With `beta` infinite each goes to its best state, ties keep the present one; otherwise to state s with probability
    proportional to exp(beta * score).
    """
    n = len(order)
    g = pointers(graph)
    order, rng, x, score = pointers((order, rng, x, score))
    gain, moves = 0.0, 0
    for i in range(n):
        v = order[i]
        first = g.starts[v]
        card, now = g.cards[v], x[v]
        new = now
        if beta == inf:
            for s in range(card):
                if score[first + s] > score[first + new] + EPSILON:
                    new = s
        else:
            top = score[first]
            for s in range(1, card):
                top = max(top, score[first + s])
            total = 0.0
            for s in range(card):
                total += exp(beta * (score[first + s] - top))
            left = uniform(rng) * total
            for s in range(card):
                p = exp(beta * (score[first + s] - top))
                if p > 0.0:
                    new = s
                    left -= p
                    if left < 0.0:
                        break
        if new != now:
            gain += score[first + new] - score[first + now]
            moves += 1
            _move(g, g.values, v, new, x, score)
    return gain, moves


@kernel(bare=True)
def best_moves(graph, steps, tenure, spread, clock, until, search):
    """Make the best single change again and again: steepest ascent (tenure 0) or tabu search.

    After a move away from a state, going back to it is forbidden for `tenure` plus up to `spread` moves, unless that gives
    the best score ever. Ties are broken at random. `until` holds the step up to which each state of each variable is
    forbidden. Steepest ascent stops where no change helps. Returns the number of moves made.
    """
    n = len(search.x)
    g, until = pointers(graph), pointer(until)
    x, score, rng, best_x, state = pointers(search)
    for step in range(steps):
        best, ties, chosen, to = -inf, 0, -1, 0
        for v in range(n):
            first = g.starts[v]
            here = score[first + x[v]]
            for s in range(g.cards[v]):
                gain = score[first + s] - here
                if s == x[v] or gain < best - EPSILON:
                    continue
                if until[first + s] > clock + step and state[0] + gain <= state[1] + EPSILON:
                    continue
                if gain > best + EPSILON:
                    best, ties, chosen, to = gain, 1, v, s
                else:
                    ties += 1
                    if uniform(rng) * ties < 1.0:
                        best, chosen, to = max(best, gain), v, s
        if tenure == 0 and best <= EPSILON:
            return step
        if chosen < 0:  # all is forbidden: let a random variable go somewhere
            chosen = below(rng, n)
            to = below(rng, g.cards[chosen])
            best = score[g.starts[chosen] + to] - score[g.starts[chosen] + x[chosen]]
        until[g.starts[chosen] + x[chosen]] = clock + step + 1 + tenure + below(rng, spread + 1)
        _move(g, g.values, chosen, to, x, score)
        state[0] += best
        if state[0] > state[1] + EPSILON:
            state[1] = state[0]
            for u in range(n):
                best_x[u] = x[u]
    return steps


@kernel(bare=True)
def guided_climbs(graph, climbs, weight, wall, penalties, order, search):
    """Climb in the penalised scores to a local optimum, then penalise the table entries most to blame for it; repeat.

    Scores are sums of logs, at least minus `wall`, minus `weight` times the penalties; totals are true scores. To blame is
    the entry in use of the largest -log / (1 + penalty). `order` holds all variables in any order. Returns the moves made.
    """
    n, n_factors = len(search.x), len(graph.scope_ptr) - 1
    g, order = pointers(graph), pointer(order)
    blame_unary, blame, work = pointers(penalties)
    x, score, rng, best_x, state = pointers(search)
    moves = 0
    for _ in range(climbs):
        for i in range(n - 1, 0, -1):
            j = below(rng, i + 1)
            order[i], order[j] = order[j], order[i]
        quiet, i = 0, 0
        while quiet < n:
            v = order[i]
            i = i + 1 if i + 1 < n else 0
            first = g.starts[v]
            now = x[v]
            new = now
            for s in range(g.cards[v]):
                if score[first + s] > score[first + new] + EPSILON:
                    new = s
            if new == now:
                quiet += 1
                continue
            quiet = 0
            moves += 1
            state[0] += g.unary[first + new] - g.unary[first + now]
            for k in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
                own = g.edges[k]
                f = g.edge_factor[own]
                at = g.table_ptr[f]
                for e in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
                    at += g.strides[e] * x[g.scope[e]]
                state[0] += g.values[at + g.strides[own] * (new - now)] - g.values[at]
            _move(g, work, v, new, x, score)
            if state[0] > state[1] + EPSILON:
                state[1] = state[0]
                for u in range(n):
                    best_x[u] = x[u]
        worst = 0.0
        for found in range(2):  # first how much, then whom
            for v in range(n):
                at = g.starts[v] + x[v]
                utility = min(-g.unary[at], wall) / (1.0 + blame_unary[at])
                if found == 0:
                    worst = max(worst, utility)
                elif utility >= worst - EPSILON and g.cards[v] > 1:
                    blame_unary[at] += 1.0
                    score[at] -= weight
            for f in range(n_factors):
                first, last = g.scope_ptr[f], g.scope_ptr[f + 1]
                at = g.table_ptr[f]
                for e in range(first, last):
                    at += g.strides[e] * x[g.scope[e]]
                utility = min(-g.values[at], wall) / (1.0 + blame[at])
                if found == 0:
                    worst = max(worst, utility)
                elif utility >= worst - EPSILON:
                    blame[at] += 1.0
                    work[at] -= weight
                    for e in range(first, last):
                        score[g.starts[g.scope[e]] + x[g.scope[e]]] -= weight
            if worst <= EPSILON:
                return moves
    return moves
