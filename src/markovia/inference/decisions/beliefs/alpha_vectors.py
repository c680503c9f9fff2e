"""Exact values of partially observed processes as the upper envelope of planes over beliefs.

Method: the value of acting for n more steps is convex and piecewise linear in the belief, the greatest of finitely many
vectors times it. A step back takes, for every action, the sums of one vector for each observation; incremental pruning drops
what is nowhere greatest after every sum. With two states that is the upper envelope of lines; otherwise what is dominated
entry by entry goes first, what is greatest at some known belief stays without more work, and only the rest costs a linear
program each. Without a horizon the steps go on until bounds on what one of them changes prove the tolerance everywhere
(MacQueen and Porteus), as vectors that the policy that follows them attains.

References: Smallwood and Sondik (1973); Zhang and Liu (1996) and Cassandra, Littman and Zhang (1997), incremental pruning;
MacQueen (1966) and Porteus (1971), bounds. Cost: exponential in the worst case; a step is refused as soon as more than
`MOST` sums would have to be compared.
"""

from typing import NamedTuple

import numpy as np

from markovia.errors import TooLarge
from markovia.inference.decisions.beliefs.belief_steps import BeliefSteps
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.clock import Clock

ROUNDING = 1e-13
"""Vectors that are better by less than this part of the largest entry are not better."""
SLACK = 1e-11
"""The same where linear programs say so, which are less accurate."""
MOST = 200_000
"""The most vectors that are compared with one another at once."""
ROUGH = 0.01
"""The part of a step's change that its prunings may leave out."""
FIRST_LOOKS = 200
"""At how many beliefs drawn at random a vector may prove that it is needed."""


class Envelope(NamedTuple):
    """Vectors, one a row, the action each begins with, and by how much at most they fall short because of pruning."""

    vectors: Array
    actions: Ints
    slack: float = 0.0


def envelope(vectors: Array, slack: float = 0.0) -> tuple[Ints, float]:
    """Return which vectors are greatest at some belief, and by how much at most the others would add there.

    A vector that adds no more than `slack` may be left out.

    Examples
    --------
    >>> envelope(np.array([[0.0, 1.0], [1.0, 0.0], [0.4, 0.4], [0.6, 0.6], [0.6, 0.6]]))[0].tolist()
    [0, 1, 3]
    """
    _check_size(len(vectors))
    scale = float(np.abs(vectors).max(initial=0.0))
    if len(vectors) == 1 or vectors.shape[1] == 1 or scale == 0.0:
        return np.array([int(np.argmax(vectors[:, 0]))]), 0.0
    if vectors.shape[1] == 2:
        enough = max(slack, ROUNDING * scale)
        chosen = _lines(vectors, ROUNDING * scale)[0]
        return np.sort(chosen[_telling(vectors[chosen], enough)]), enough
    _, first = np.unique(vectors, axis=0, return_index=True)
    kept = np.sort(first)
    if len(kept) == 1:
        return kept, 0.0
    kept = kept[undominated(vectors[kept])]
    enough = max(slack / scale, SLACK)
    chosen, fallen = _by_programs(vectors[kept] / scale, enough)
    return kept[chosen], fallen * scale


def _lines(vectors: Array, rounding: float) -> tuple[Ints, Array]:
    """Return the lines of an upper envelope over [0, 1] in order, and where each begins (Graham's scan)."""
    order = np.lexsort((-vectors[:, 0], vectors[:, 1] - vectors[:, 0])).tolist()
    lefts, rights = vectors[:, 0].tolist(), vectors[:, 1].tolist()
    chosen: list[int] = []
    begins: list[float] = []
    for i in order:
        left, right, begin = lefts[i], rights[i], 0.0
        while chosen:
            top = chosen[-1]
            behind, ahead = lefts[top] - left, right - rights[top]
            if behind <= 0.0:
                begin = 0.0 if behind + ahead > 0.0 else 1.0  # the same line stays out
            elif ahead <= rounding:
                begin = 1.0  # above at the right end by rounding only
            else:
                begin = behind / (behind + ahead)
            if begin > begins[-1] or begin >= 1.0:
                break
            chosen.pop()
            begins.pop()
        if not chosen or begin < 1.0:
            chosen.append(i)
            begins.append(begin if len(chosen) > 1 else 0.0)
    return np.array(chosen), np.array(begins)


def _telling(lines: Array, slack: float) -> Ints:
    """Return which lines of an envelope, in order, are enough for it to fall by no more than `slack`."""
    kept, parity, idle = np.arange(len(lines)), 1, 0
    while len(kept) > 2 and idle < 2:
        slack /= 2.0  # what was left out before may be missed by as much again
        left, slope = lines[kept, 0], lines[kept, 1] - lines[kept, 0]
        # a line is most above its neighbours where they meet; of two neighbours one stays
        meets = (left[:-2] - left[2:]) / (slope[2:] - slope[:-2])
        above = left[1:-1] - left[:-2] + meets * (slope[1:-1] - slope[:-2])
        drop = 1 + np.flatnonzero(above <= slack)
        drop = drop[drop % 2 == parity]
        kept, parity, idle = np.delete(kept, drop), 1 - parity, 0 if len(drop) else idle + 1
    return kept


def undominated(vectors: Array, room: int = 1 << 22) -> Ints:
    """Return which of some different vectors no other one reaches in every entry.

    Examples
    --------
    >>> undominated(np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 0.0]])).tolist()
    [1, 2]
    """
    order = np.argsort(-vectors.sum(axis=1), kind="stable")  # what dominates comes first
    kept = vectors[order[:0]]
    chosen: list[Ints] = []
    size = max(1, min(256, room // max(1, vectors.size)))
    for begin in range(0, len(order), size):
        block = order[begin : begin + size]
        rows = vectors[block]
        below = _reached(rows, kept, room)
        earlier = np.tri(len(rows), k=-1, dtype=bool)
        among: Flags = (rows[:, None] <= rows[None]).all(axis=2) & earlier
        left = ~below & ~among.any(axis=1)
        chosen.append(block[left])
        kept = np.concatenate([kept, rows[left]])
    return np.sort(np.concatenate(chosen))


def _reached(rows: Array, kept: Array, room: int) -> Flags:
    """Say which rows some kept vector reaches in every entry."""
    below: Flags = np.zeros(len(rows), dtype=np.bool_)
    size = max(1, room // max(1, rows.size))
    for begin in range(0, len(kept), size):
        reached = np.asarray((rows[:, None] <= kept[None, begin : begin + size]).all(axis=2))
        np.logical_or(below, reached.any(axis=1), out=below)
    return below


def _by_programs(vectors: Array, enough: float) -> tuple[Ints, float]:
    """Return which vectors are greatest somewhere (Lark's filter), and what the others add at most."""
    n = vectors.shape[1]
    looks = np.random.default_rng(0).dirichlet(np.full(n, 0.7), FIRST_LOOKS)
    looks = np.concatenate([np.eye(n), np.full((1, n), 1.0 / n), looks])
    needed = np.zeros(len(vectors), dtype=bool)
    needed[np.argmax(looks @ vectors.T, axis=1)] = True
    left, fallen = [int(i) for i in np.flatnonzero(~needed)], 0.0
    while left:
        gain = greatest_gain(vectors[left[-1]], vectors[needed])
        if gain.least <= enough:
            left.pop()
            fallen = max(fallen, gain.most)
            continue
        best = int(np.argmax(vectors[left] @ gain.belief))
        needed[left.pop(best)] = True
    return np.flatnonzero(needed), fallen


class Gain(NamedTuple):
    """By how much a vector is above others at a belief, and at most at any; the two differ by rounding."""

    belief: Array
    least: float
    most: float


def greatest_gain(vector: Array, others: Array) -> Gain:
    """Return where a vector is most above the envelope of others, and by how much.

    The weights of the others that the dual program gives prove the bound, whatever the accuracy of the program.

    Examples
    --------
    >>> gain = greatest_gain(np.array([0.7, 0.7]), np.eye(2))
    >>> gain.belief.round(6).tolist(), round(gain.least, 6), round(gain.most, 6)
    ([0.5, 0.5], 0.2, 0.2)
    """
    from scipy.optimize import linprog

    n = len(vector)
    above = np.column_stack([others - vector, np.ones(len(others))])
    total = np.append(np.ones(n), 0.0)[None]
    limits = [(0.0, None)] * n + [(None, None)]
    solved = linprog(
        np.append(np.zeros(n), -1.0), A_ub=above, b_ub=np.zeros(len(others)), A_eq=total, b_eq=[1.0], bounds=limits,
        method="highs", options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    if solved.x is None:  # nothing is proved then, so that the vector is kept unless one other reaches it
        return Gain(np.full(n, 1.0 / n), np.inf, float((vector - others).max(axis=1).min()))
    belief = np.maximum(solved.x[:n], 0.0)
    belief /= belief.sum()
    shares = np.maximum(-solved.ineqlin.marginals, 0.0)
    shares /= shares.sum()
    return Gain(
        belief, float(vector @ belief - (others @ belief).max()), float((vector - shares @ others).max())
    )


def _check_size(count: int) -> None:
    """Raise where more vectors than `MOST` would be compared at once."""
    if count > MOST:
        raise TooLarge(
            f"the exact value needs {count:,} vectors compared at once, over the most of {MOST:,}; "
            'take method="point-based", which bounds it',
            operations=float(count) ** 2,
        )


def step_back(steps: BeliefSteps, after: Array, discount: float, slack: float = 0.0) -> Envelope:
    """Return the envelope of acting once, and then as some vectors say; up to a slack for each of its prunings.

    Examples
    --------
    >>> from scipy import sparse
    >>> two = BeliefSteps.of(sparse.csr_array(np.eye(2)), np.ones((1, 2, 1)), np.array([[1.0], [2.0]]))
    >>> step_back(two, np.zeros((1, 2)), 1.0).vectors.tolist()
    [[1.0, 2.0]]
    """
    found, fallen = [], 0.0
    for action in range(steps.n_actions):
        total, lost = np.zeros((1, steps.n_states)), 0.0
        for each in steps.projected(action, after):
            kept, short = envelope(discount * each, slack)
            lost += short
            _check_size(len(total) * len(kept))
            sums = (total[:, None] + discount * each[kept][None]).reshape(-1, steps.n_states)
            kept, short = (
                envelope(sums, slack) if len(total) > 1 and len(kept) > 1 else (np.arange(len(sums)), 0.0)
            )
            total, lost = sums[kept], lost + short
        found.append(total + steps.rewards[:, action])
        fallen = max(fallen, lost)
    vectors = np.concatenate(found)
    actions = np.repeat(np.arange(steps.n_actions), [len(each) for each in found])
    kept, lost = envelope(vectors, slack)
    return Envelope(vectors[kept], actions[kept], fallen + lost)


def backwards(steps: BeliefSteps, horizon: int, clock: Clock) -> list[Envelope]:
    """Return the envelopes of a horizon, the first step first; fewer of them, the last ones, where time ran out.

    Examples
    --------
    >>> from scipy import sparse
    >>> two = BeliefSteps.of(sparse.csr_array(np.eye(2)), np.ones((1, 2, 1)), np.array([[1.0], [2.0]]))
    >>> [each.vectors.tolist() for each in backwards(two, 2, Clock(progress=False))]
    [[[2.0, 4.0]], [[1.0, 2.0]]]
    """
    found: list[Envelope] = []
    after, slack = np.zeros((1, steps.n_states)), 0.0
    while len(found) < horizon and not clock.over():
        one = step_back(steps, after, 1.0)
        after, slack = one.vectors, slack + one.slack
        found.append(one._replace(slack=slack))
        clock.advance()
    return found[::-1]


class Stationary(NamedTuple):
    """Vectors that the policy that follows them attains, the action of each, and by how much any value is above, at most."""

    vectors: Array
    actions: Ints
    gap: float
    iterations: int


def for_ever(
    steps: BeliefSteps, discount: float, tolerance: float, clock: Clock, start: Array | None = None
) -> Stationary:
    """Step back until the gap is closed to a tolerance at every belief, or time runs out.

    Examples
    --------
    >>> from scipy import sparse
    >>> two = BeliefSteps.of(sparse.csr_array(np.eye(2)), np.ones((1, 2, 1)), np.array([[1.0], [2.0]]))
    >>> for_ever(two, 0.5, 1e-6, Clock(progress=False)).vectors.round(5).tolist()
    [[2.0, 4.0]]
    """
    more = discount / (1.0 - discount)
    after = np.zeros((1, steps.n_states)) if start is None else start
    iterations, prunings = 0, 2 * steps.n_observations + 1
    enough = tolerance / (2.0 * (1.0 + more) * prunings)
    rough = float(np.ptp(steps.rewards))
    while True:
        # while much changes still, little that is left out is soon forgotten
        slack = max(enough, ROUGH * rough / prunings)
        one = step_back(steps, after, discount, slack)
        iterations += 1
        least, most = changes(one.vectors, after, tolerance / (1.0 + more))
        # a step of pruned vectors is at most `slack` below a whole one, and the shift is kept by the policy
        rough = most - least
        gap = more * rough + (1.0 + more) * one.slack
        clock.advance(note=f"gap {gap:.3g}", value=gap)
        # what pruning may cost at the least is not made up for by more steps
        if gap <= tolerance or (slack == enough and more * rough <= (1.0 + more) * one.slack) or clock.over():
            return Stationary(one.vectors + more * least, one.actions, gap, iterations)
        after = one.vectors


def changes(new: Array, old: Array, close: float) -> tuple[float, float]:
    """Return bounds on the least and the greatest change of an envelope over all beliefs.

    With two states they are those at the corners of both; else vectors are compared entry by entry, and by linear programs
    where that is all that keeps the two bounds more than `close` apart.

    Examples
    --------
    >>> changes(np.array([[1.0, 2.0]]), np.array([[0.5, 1.0]]), 0.0)
    (0.5, 1.0)
    """
    if new.shape[1] <= 2:
        p = (
            np.concatenate([_lines(each, 0.0)[1] for each in (new, old)])
            if new.shape[1] == 2
            else np.zeros(1)
        )
        beliefs = np.column_stack([1.0 - p, p])[:, : new.shape[1]]
        beliefs = np.concatenate([beliefs, np.eye(new.shape[1])])
        change = (beliefs @ new.T).max(axis=1) - (beliefs @ old.T).max(axis=1)
        return float(change.min()), float(change.max())
    above = np.array([(one - old).max(axis=1).min() for one in new])
    below = np.array([(new - one).min(axis=1).max() for one in old])
    looks = np.concatenate([np.eye(new.shape[1]), np.full((1, new.shape[1]), 1.0 / new.shape[1])])
    met = (looks @ new.T).max(axis=1) - (looks @ old.T).max(axis=1)
    if above.max() - below.min() > close >= np.ptp(met):
        scale = float(np.abs(new).max())
        for i in np.argsort(-above):
            if above[i] <= met.max():
                break
            above[i] = greatest_gain(new[i] / scale, old / scale).most * scale
        for i in np.argsort(below):
            if below[i] >= met.min():
                break
            below[i] = -greatest_gain(old[i] / scale, new / scale).most * scale
    return float(below.min()), float(above.max())
