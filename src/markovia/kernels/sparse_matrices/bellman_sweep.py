"""Gauss-Seidel sweeps of Bellman's equation over sparse transitions: each state uses what those before it just got.

Memory layout: row `a * S + s` of the sparse transitions is the law after action a in state s; rewards and `allowed` are
(S, A) in C order, `allowed` empty where everything is. The diagonal is solved for: a state that stays with probability
p is worth (r + b sum of others) / (1 - b p), so bumping into walls costs no sweeps. One that stays for ever keeps its
value.

A sweep forwards and one backwards carries news through a grid from any corner, where a sparse product carries it by one
step.
"""

from math import exp, log

from markovia.kernels.kernel import kernel


@kernel
def best_sweep(pointers, places, chances, rewards, allowed, discount, values, backward):
    """Give each state the value of its best action, in place; return the largest change."""
    n, k = rewards.shape
    moved = 0.0
    for i in range(n):
        s = n - 1 - i if backward else i
        best = -float("inf")
        for a in range(k):
            if allowed.size and not allowed[s, a]:
                continue
            row = a * n + s
            ahead, stay = 0.0, 0.0
            for e in range(pointers[row], pointers[row + 1]):
                if places[e] == s:
                    stay += chances[e]
                else:
                    ahead += chances[e] * values[places[e]]
            left = 1.0 - discount * stay
            worth = rewards[s, a] + discount * ahead
            # who stays for ever at no discount keeps what it has
            worth = worth / left if left > 1e-14 else values[s]
            if worth > best:
                best = worth
        moved = max(moved, abs(best - values[s]))
        values[s] = best
    return moved


@kernel
def policy_sweep(pointers, places, chances, rewards, discount, values, backward):
    """Give each state the value of what a policy does there, in place; transitions (S, S), rewards (S,)."""
    n = len(rewards)
    moved = 0.0
    for i in range(n):
        s = n - 1 - i if backward else i
        ahead, stay = 0.0, 0.0
        for e in range(pointers[s], pointers[s + 1]):
            if places[e] == s:
                stay += chances[e]
            else:
                ahead += chances[e] * values[places[e]]
        left = 1.0 - discount * stay
        worth = (rewards[s] + discount * ahead) / left if left > 1e-14 else values[s]
        moved = max(moved, abs(worth - values[s]))
        values[s] = worth
    return moved


@kernel
def soft_sweep(
    pointers, places, chances, rewards, allowed, terminal, log_prior, temperature, discount, values, backward
):
    """Give each state its soft value, in place; `log_prior` is (S, A), or (1, A) for the same everywhere.

    The sum of exponentials runs along with its largest term, so nothing overflows.
    """
    n, k = rewards.shape
    moved = 0.0
    for i in range(n):
        s = n - 1 - i if backward else i
        if terminal.size and terminal[s]:
            continue
        top, total = -float("inf"), 0.0
        for a in range(k):
            if allowed.size and not allowed[s, a]:
                continue
            row = a * n + s
            ahead = 0.0
            for e in range(pointers[row], pointers[row + 1]):
                ahead += chances[e] * values[places[e]]
            logit = (rewards[s, a] + discount * ahead) / temperature + log_prior[s % len(log_prior), a]
            if logit > top:
                total = total * exp(top - logit) + 1.0
                top = logit
            elif logit > -float("inf"):
                total += exp(logit - top)
        worth = temperature * (top + log(total))
        moved = max(moved, abs(worth - values[s]))
        values[s] = worth
    return moved
