"""Linear Gaussian states whose matrices are switched by a hidden Markov chain of regimes, as scans over time.

    s[t+1] ~ M[s[t]],  x[t+1] = A[s[t+1]] x[t] + b[s[t+1]] + N(0, Q[s[t+1]]),  y[t] = C[s[t]] x[t] + d[s[t]] + N(0, R[s[t]])

The exact law has a Gaussian for each path of regimes. "gpb2" merges those that end in the same regime after each step, "imm"
those that will move in the same way before it (Blom and Bar-Shalom 1988); both smooth by Kim's (1994) step.
"rao-blackwell" keeps a number of paths drawn by weight among all their continuations, with a Kalman filter each (Chen and
Liu 2000; Fearnhead and Clifford 2003), whose likelihood is unbiased, and smooths along regimes drawn backwards (Lindsten
and others 2016). "exact" has all paths that are possible, for short sequences. Cost: steps times regimes (imm), regimes
squared (gpb2) or particles times regimes, times states cubed.

The first axis is that of sequences. `xp` is `numpy` or `jax.numpy`; random numbers come from outside, so both answer alike.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from markovia.inference.sequences.gaussian_steps import StateMoments, condition, smoothing_gain, symmetric
from markovia.inference.sequences.scans import scan
from markovia.inference.weighted_draws.resampling import positions

Method: TypeAlias = Literal["imm", "gpb2", "rao-blackwell", "exact"]


class Regimes(NamedTuple):
    """The matrices of each regime, and the logarithms of the chain.

    `start` is (regimes,), or (sequences, regimes) where they begin differently; `moves` is (regimes, regimes), or
    (sequences, steps, regimes, regimes) with the moves into each step (none go into the first).
    """

    start: Any
    moves: Any
    A: Any
    b: Any
    Q: Any
    C: Any
    d: Any
    R: Any
    mean: Any
    cov: Any


class Forward(NamedTuple):
    """For each step and regime: log probability, mean and covariance after and before the observation; and what is kept."""

    logs: Any
    mean: Any
    cov: Any
    prior_logs: Any
    prior_mean: Any
    prior_cov: Any
    log_prob: Any
    kept: Any


class Pairs(NamedTuple):
    """Expected sums over steps of products of next states y and states x, by the regime moved into; counts of moves."""

    moves: Any
    xx: Any
    x1: Any
    yx: Any
    yy: Any
    y1: Any


class Back(NamedTuple):
    """For each step and regime: log probability, mean and covariance given the whole sequence; sums for learning."""

    logs: Any
    mean: Any
    cov: Any
    pairs: Pairs
    log_prob: Any


class RegimeNoise(NamedTuple):
    """Uniform numbers for the filter (sequences, steps), and uniform and normal ones for paths drawn backwards."""

    filter: Any
    paths: Any
    states: Any


def log_sum(logs: Any, axis: Any, xp: Any) -> Any:
    """Return log sum exp, minus infinity where all are."""
    top = logs.max(axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0.0)
    return xp.log(xp.exp(logs - top).sum(axis=axis)) + xp.squeeze(top, axis=axis)


def merged(logs: Any, mean: Any, cov: Any, xp: Any) -> tuple[Any, Any, Any]:
    """Merge Gaussians along the second axis into one of the same moments: log weight, mean, covariance."""
    total = log_sum(logs, 1, xp)
    there = xp.isfinite(total)
    share = xp.exp(logs - xp.where(there, total, 0.0)[:, None])
    share = xp.where(there[:, None], share, 1.0 / logs.shape[1])[..., None]
    m = (share * mean).sum(axis=1)
    away = mean - m[:, None]
    second = cov + away[..., :, None] * away[..., None, :]
    return total, m, symmetric((share[..., None] * second).sum(axis=1))


def _times(A: Any, x: Any) -> Any:
    return (A @ x[..., None])[..., 0]


def _turned(A: Any) -> Any:
    return A.swapaxes(-1, -2)


def _moved(A: Any, b: Any, Q: Any, m: Any, P: Any) -> tuple[Any, Any]:
    return _times(A, m) + b, symmetric(A @ P @ _turned(A) + Q)


def _all_moves(model: Regimes, m: Any, P: Any) -> tuple[Any, Any]:
    """Return each state moved by each regime's matrices: (sequences, states, regimes, ...)."""
    return _moved(model.A, model.b, model.Q, m[:, :, None], P[:, :, None])


def _seen_as(C: Any, d: Any, m: Any, P: Any) -> StateMoments:
    cross = P @ _turned(C)
    return StateMoments(_times(C, m) + d, C @ cross, cross)


def _first_time(part: Any, xp: Any) -> Any:
    return None if part is None else xp.moveaxis(part, 1, 0)


def _following(model: Regimes, xp: Any) -> Any:
    """Return the moves out of each step, steps first; None where all are alike."""
    if model.moves.ndim == 2:
        return None
    return _first_time(xp.concatenate([model.moves[:, 1:], model.moves[:, -1:]], axis=1), xp)


def _chain(model: Regimes, moves: Any) -> Any:
    """Return a step's moves, (sequences or 1, regimes, regimes)."""
    return model.moves[None] if moves is None else moves


def _picked(rows: Any, at: Any, xp: Any) -> Any:
    """Return rows (sequences, many, ...) at places (sequences, few)."""
    return rows[xp.arange(len(at))[:, None], at]


def _forward(model: Regimes, y: Any, u: Any, method: Method, many: int, xp: Any) -> Forward:
    """Filter; the state of the scan has `many` Gaussians a regime, before the step's observation."""
    S, K = len(y), len(model.mean)

    def ahead(logs: Any, m: Any, P: Any, u: Any, moves: Any) -> Any:
        """Return the Gaussians before the next observation, and what is kept of this step."""
        if method == "rao-blackwell":
            at = _spread_out(xp.exp(logs).reshape(S, -1), (xp.arange(many) + u[:, None]) / many, xp)
            s, own = at % K, _picked(m.reshape(S, -1, m.shape[-1]), at, xp)
            cov = _picked(P.reshape(S, -1, *P.shape[-2:]), at, xp)
            odds = _picked(xp.broadcast_to(moves, (S, K, K)), s, xp)
            return (odds - xp.log(many), *_all_moves(model, own, cov)), (s, own, cov)
        post, mean, cov = merged(logs, m, P, xp)
        joint = post[:, :, None] + moves
        if method == "gpb2":
            return (joint, *_all_moves(model, mean, cov)), None
        total, mixed, spread = merged(joint, mean[:, :, None], cov[:, :, None], xp)
        moved = _moved(model.A, model.b, model.Q, mixed, spread)
        return (total[:, None], moved[0][:, None], moved[1][:, None]), None

    def step(state: Any, now: Any) -> Any:
        logs, m, P = state
        obs, u, moves = now
        after, cov, log_density = condition(
            m, P, _seen_as(model.C, model.d, m, P), model.R, obs[:, None, None], xp
        )
        joint = logs + log_density
        total = log_sum(joint, (1, 2), xp)
        joint = joint - xp.where(xp.isfinite(total), total, 0.0)[:, None, None]
        following, kept = ahead(joint, after, cov, u, _chain(model, moves))
        return following, Forward(*merged(joint, after, cov, xp), *merged(logs, m, P, xp), total, kept)

    begin = xp.broadcast_to(model.start, (S, K))[:, None]
    first = xp.where(xp.arange(many)[:, None] == 0, begin, -xp.inf)
    mean = xp.broadcast_to(model.mean, (S, many, *model.mean.shape))
    start = (first, mean, xp.broadcast_to(model.cov, (S, many, *model.cov.shape)))
    inputs = (_first_time(y, xp), _first_time(u, xp), _following(model, xp))
    found = scan(step, start, inputs, xp)[1]
    kept = None if found.kept is None else tuple(_first_time(part, xp) for part in found.kept)
    return Forward(*map(partial(_first_time, xp=xp), found[:7]), kept)  # type: ignore[call-arg]


def _spread_out(weights: Any, u: Any, xp: Any) -> Any:
    """Return the places at which each sequence's cumulative share passes its u."""
    if xp is np:
        return np.stack([positions(w, own) for w, own in zip(weights, u, strict=True)])
    import jax

    return jax.vmap(lambda w, own: positions(w, own, xp))(weights, u)


def _kim(model: Regimes, found: Forward, last: Any, xp: Any) -> tuple[Any, Any, Any, Pairs]:
    """Smooth backwards from the filter's Gaussians of each regime."""
    S, (K, n) = len(last), model.mean.shape
    shapes = ((K, K), (K, n, n), (K, n), (K, n, n), (K, n, n), (K, n))
    sums = tuple(xp.zeros((S, *shape)) for shape in shapes)

    def step(state: Any, now: Any) -> Any:
        (logs, later, later_cov), total = state
        post, m, P, end, moves = now
        joint = post[:, :, None] + _chain(model, moves)
        into = log_sum(joint, 1, xp)[:, None]
        joint = xp.where(
            xp.isfinite(into), joint - xp.where(xp.isfinite(into), into, 0.0) + logs[:, None], -xp.inf
        )
        ahead, spread = _all_moves(model, m, P)
        G = smoothing_gain(spread, P[:, :, None] @ _turned(model.A), xp)
        own = m[:, :, None] + _times(G, later[:, None] - ahead)
        cov = symmetric(P[:, :, None] + G @ (later_cov[:, None] - spread) @ _turned(G))
        lag = later_cov[:, None] @ _turned(G)
        each = merged(joint.swapaxes(1, 2), own.swapaxes(1, 2), cov.swapaxes(1, 2), xp)
        smoothed = tuple(
            xp.where(end.reshape(S, *(1,) * (a.ndim - 1)), a, b)
            for a, b in zip((post, m, P), each, strict=True)
        )
        w = xp.where(end[:, None, None], 0.0, xp.exp(joint))
        W = w.sum(axis=1)[..., None]
        more = (
            w,
            xp.einsum("sij,sijab->sjab", w, cov) + xp.einsum("sij,sija,sijb->sjab", w, own, own),
            xp.einsum("sij,sija->sja", w, own),
            xp.einsum("sij,sijab->sjab", w, lag) + xp.einsum("sij,sja,sijb->sjab", w, later, own),
            W[..., None] * (later_cov + later[..., :, None] * later[..., None, :]),
            W * later,
        )
        return (smoothed, tuple(a + b for a, b in zip(total, more, strict=True))), smoothed

    first = ((found.logs[:, -1], found.mean[:, -1], found.cov[:, -1]), sums)
    steps = (found.logs, found.mean, found.cov, last)
    inputs = (*(_first_time(part, xp) for part in steps), _following(model, xp))
    (_, pairs), smoothed = scan(step, first, inputs, xp, reverse=True)
    logs, mean, cov = (_first_time(part, xp) for part in smoothed)
    return logs, mean, cov, Pairs(*pairs)


# -- along given paths of regimes --------------------------------------------------------------------------------


class Along(NamedTuple):
    """Paths given: filtered before and after, log densities, smoothed, covariance with the state before."""

    before: Any
    before_cov: Any
    after: Any
    after_cov: Any
    log_density: Any
    mean: Any
    cov: Any
    lag: Any


def _along(model: Regimes, y: Any, s: Any, last: Any, xp: Any) -> Along:
    """Filter and smooth along paths (sequences, paths, steps)."""

    def step(state: Any, now: Any) -> Any:
        m, P = state
        obs, k, j = now
        own, cov, log_density = condition(
            m, P, _seen_as(model.C[k], model.d[k], m, P), model.R[k], obs[:, None], xp
        )
        ahead = _moved(model.A[j], model.b[j], model.Q[j], own, cov)
        return ahead, (m, P, own, cov, log_density, *ahead, cov @ _turned(model.A[j]))

    path = xp.moveaxis(s, 2, 0)
    inputs = (_first_time(y, xp), path, xp.concatenate([path[1:], path[-1:]]))
    found = scan(step, (model.mean[path[0]], model.cov[path[0]]), inputs, xp)[1]

    def back(state: Any, now: Any) -> Any:
        own, cov, ahead, ahead_cov, cross, end = now
        end = end[:, None, None]
        G = smoothing_gain(ahead_cov, cross, xp)
        mean = xp.where(end, own, own + _times(G, state[0] - ahead))
        spread = symmetric(cov + G @ (state[1] - ahead_cov) @ _turned(G))
        spread = xp.where(end[..., None], cov, spread)
        return (mean, spread), (mean, spread, state[1] @ _turned(G))

    later = (found[2][-1], found[3][-1])
    smoothed = scan(back, later, (*found[2:4], *found[5:], _first_time(last, xp)), xp, reverse=True)[1]
    return Along(*(xp.moveaxis(part, 0, 2) for part in (*found[:5], *smoothed)))


def _by_regime(logs: Any, s: Any, m: Any, P: Any, K: int, xp: Any) -> tuple[Any, Any, Any]:
    """Merge paths that are in the same regime at a step: (sequences, steps, regimes, ...)."""
    inside = xp.where(s[..., None] == xp.arange(K), logs[..., None], -xp.inf)
    return merged(inside, m[:, :, :, None], P[:, :, :, None], xp)


def _weighed(
    model: Regimes, s: Any, weights: Any, found: Along, last: Any, xp: Any
) -> tuple[Any, Any, Any, Pairs]:
    """Return what paths with these log weights (sequences, paths) say together."""
    K = len(model.mean)
    smoothed = _by_regime(xp.broadcast_to(weights[..., None], s.shape), s, found.mean, found.cov, K, xp)
    w = xp.where(last[:, None], 0.0, xp.exp(weights)[..., None])[..., :-1]
    one = (s[..., None] == xp.arange(K)).astype(found.mean.dtype)
    x, y, V = found.mean[:, :, :-1], found.mean[:, :, 1:], found.cov
    into = w[..., None] * one[:, :, 1:]
    pairs = Pairs(
        xp.einsum("smt,smti,smtj->sij", w, one[:, :, :-1], one[:, :, 1:]),
        xp.einsum("smtk,smtab->skab", into, V[:, :, :-1]) + xp.einsum("smtk,smta,smtb->skab", into, x, x),
        xp.einsum("smtk,smta->ska", into, x),
        xp.einsum("smtk,smtab->skab", into, found.lag[:, :, :-1])
        + xp.einsum("smtk,smta,smtb->skab", into, y, x),
        xp.einsum("smtk,smtab->skab", into, V[:, :, 1:]) + xp.einsum("smtk,smta,smtb->skab", into, y, y),
        xp.einsum("smtk,smta->ska", into, y),
    )
    return (*smoothed, pairs)


def _backwards(model: Regimes, kept: Any, last: Any, noise: RegimeNoise, xp: Any) -> Any:
    """Draw paths of regimes backwards from the particles of a filter, with states to tell how likely each is."""
    n, (S, _, draws) = model.mean.shape[1], noise.paths.shape

    def step(state: Any, now: Any) -> Any:
        x, s = state
        regime, m, P, end, u, z, moves = now
        ahead, cov = _all_moves(model, m, P)
        size = xp.trace(cov, axis1=-2, axis2=-1)[..., None, None]
        L = xp.linalg.cholesky(cov + 1e-10 * size * xp.eye(n))
        half = xp.log(xp.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
        white = xp.linalg.inv(L)  # once a particle, not once a draw
        chain = xp.broadcast_to(_chain(model, moves), (S, *model.moves.shape[-2:]))
        odds = _picked(chain, regime, xp) - half

        def into(part: Any) -> Any:
            """Return what is known of each particle's move into the regime of each draw: (sequences, draws, particles)."""
            return _picked(part.swapaxes(1, 2), s, xp)

        away = _times(into(white), x[:, :, None] - into(ahead))
        logs = into(odds) - 0.5 * (away**2).sum(axis=-1)
        logs = xp.where(end[:, None, None], 0.0, logs)
        edges = xp.cumsum(xp.exp(logs - logs.max(axis=-1, keepdims=True)), axis=-1)
        i = (edges[..., :-1] <= u[..., None] * edges[..., -1:]).sum(axis=-1)
        own, spread, A = _picked(m, i, xp), _picked(P, i, xp), model.A[s]
        row = xp.arange(S)[:, None]
        before, wide = ahead[row, i, s], cov[row, i, s]
        G = smoothing_gain(wide, spread @ _turned(A), xp)
        over = end[:, None, None]
        mean = xp.where(over, own, own + _times(G, x - before))
        spread = xp.where(over[..., None], spread, symmetric(spread - G @ wide @ _turned(G)))
        values, vectors = xp.linalg.eigh(spread)
        drawn = mean + _times(vectors * xp.sqrt(xp.maximum(values, 0.0))[..., None, :], z)
        chosen = _picked(regime, i, xp)
        return (drawn, chosen), chosen

    start = (xp.zeros((S, draws, n)), xp.zeros((S, draws), dtype=kept[0].dtype))
    steps = (*kept, last, noise.paths, noise.states)
    inputs = (*(_first_time(part, xp) for part in steps), _following(model, xp))
    return xp.moveaxis(scan(step, start, inputs, xp, reverse=True)[1], 0, 2)


# -- whole answers -----------------------------------------------------------------------------------------------


def _many(method: Method, K: int, particles: int) -> int:
    return {"imm": 1, "gpb2": K}.get(method, particles)


def filtered(
    model: Regimes, y: Any, lengths: Any, noise: RegimeNoise, method: Method, particles: int, xp: Any
) -> Forward:
    """Filter sequences (sequences, steps, numbers), NaN where nothing was seen."""
    found = _forward(model, y, noise.filter, method, _many(method, len(model.mean), particles), xp)
    there = xp.arange(y.shape[1]) < lengths[:, None]
    return found._replace(log_prob=xp.where(there, found.log_prob, 0.0).sum(axis=1))


def smoothed(
    model: Regimes, y: Any, lengths: Any, noise: RegimeNoise, method: Method, particles: int, xp: Any
) -> Back:
    """Smooth sequences."""
    found = filtered(model, y, lengths, noise, method, particles, xp)
    last = xp.arange(y.shape[1]) >= lengths[:, None] - 1
    if method != "rao-blackwell":
        return Back(*_kim(model, found, last, xp), found.log_prob)
    s = _backwards(model, found.kept, last, noise, xp)
    along = _along(model, y, s, last, xp)
    alike = xp.full(s.shape[:2], -xp.log(s.shape[1]))
    return Back(*_weighed(model, s, alike, along, last, xp), found.log_prob)


def summed(model: Regimes, y: Any, s: Any, xp: Any) -> tuple[Forward, Back]:
    """Filter and smooth one sequence (1, steps, numbers) by the sum over paths (1, paths, steps) in order."""
    K, T = len(model.mean), y.shape[1]
    last = (xp.arange(T) >= T - 1)[None]
    found = _along(model, y, s, last, xp)
    start = xp.broadcast_to(model.start, (1, K))[0][s[..., :1]]
    at = (s[..., :-1], s[..., 1:])
    odds = model.moves[at] if model.moves.ndim == 2 else model.moves[0][(xp.arange(1, T), *at)]
    prior = xp.cumsum(xp.concatenate([start, odds], axis=-1), axis=-1)
    joint = prior + xp.cumsum(found.log_density, axis=2)
    total = log_sum(joint[..., -1], 1, xp)
    # paths that were the same so far count once: the first of them, since they lie side by side
    other = xp.concatenate([xp.ones((1, 1, T), dtype=bool), s[:, 1:] != s[:, :-1]], axis=1)
    fresh = xp.cumsum(other, axis=2) > 0

    def by_regime(logs: Any, m: Any, P: Any) -> tuple[Any, Any, Any]:
        logs = xp.where(fresh, logs, -xp.inf)
        return _by_regime(logs - log_sum(logs, 1, xp)[:, None], s, m, P, K, xp)

    after = by_regime(joint, found.after, found.after_cov)
    before = by_regime(joint - found.log_density, found.before, found.before_cov)
    back = _weighed(model, s, joint[..., -1] - total[:, None], found, last, xp)
    return Forward(*after, *before, total, None), Back(*back, total)
