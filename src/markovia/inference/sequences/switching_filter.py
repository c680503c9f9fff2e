"""Linear Gaussian states whose matrices are switched by a hidden Markov chain of regimes, as scans in JAX.

    s[t+1] ~ M[s[t]],  x[t+1] = A[s[t+1]] x[t] + b[s[t+1]] + N(0, Q[s[t+1]]),  y[t] = C[s[t]] x[t] + d[s[t]] + N(0, R[s[t]])

The exact law has a Gaussian for each path of regimes. "gpb2" merges those that end in the same regime after each step, "imm"
those that will move in the same way before it (Blom and Bar-Shalom 1988); both smooth by Kim's (1994) step.
"rao-blackwell" keeps a number of paths drawn by weight among all their continuations, with a Kalman filter each (Chen and
Liu 2000; Fearnhead and Clifford 2003), whose likelihood is unbiased, and smooths along regimes drawn backwards (Lindsten
and others 2016). "exact" has all paths, for short sequences. Cost: steps times regimes (imm), regimes squared (gpb2) or
particles times regimes, times states cubed.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from markovia.inference.sequences.gaussian_steps import (
    LOG_2PI,
    Moments,
    condition,
    root,
    smoothing_gain,
    symmetric,
)
from markovia.inference.weighted_draws.resampling import positions

Method: TypeAlias = Literal["imm", "gpb2", "rao-blackwell", "exact"]


class Regimes(NamedTuple):
    """The matrices of each regime, and the logarithms of the chain."""

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


def merged(logs: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any]:
    """Merge Gaussians along the first axis into one of the same moments: log weight, mean, covariance."""
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    total = logsumexp(logs, axis=0)
    share = jnp.exp(logs - jnp.where(jnp.isfinite(total), total, 0.0))
    share = jnp.where(jnp.isfinite(total), share, 1.0 / len(logs))
    m = jnp.einsum("i...,i...a->...a", share, mean)
    away = mean - m
    second = cov + away[..., :, None] * away[..., None, :]
    return total, m, symmetric(jnp.einsum("i...,i...ab->...ab", share, second))


def _moved(A: Any, b: Any, Q: Any, m: Any, P: Any) -> tuple[Any, Any]:
    return A @ m + b, symmetric(A @ P @ A.T + Q)


def _all_moves(model: Regimes, m: Any, P: Any) -> tuple[Any, Any]:
    """Return each state moved by each regime's matrices: (states, regimes, ...)."""
    import jax

    inner = jax.vmap(_moved, (0, 0, 0, None, None))
    found: tuple[Any, Any] = jax.vmap(inner, (None, None, None, 0, 0))(model.A, model.b, model.Q, m, P)
    return found


def _observed(model: Regimes, m: Any, P: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return states (many, regimes, ...) given an observation, and its log densities."""
    import jax

    def one(C: Any, d: Any, R: Any, m: Any, P: Any) -> Any:
        return condition(m, P, Moments(C @ m + d, C @ P @ C.T, P @ C.T), R, y)

    inner = jax.vmap(one, (0, 0, 0, 0, 0))
    found: tuple[Any, Any, Any] = jax.vmap(inner, (None, None, None, 0, 0))(model.C, model.d, model.R, m, P)
    return found


def _forward(model: Regimes, y: Any, key: Any, method: Method, many: int) -> Forward:
    """Filter one sequence; the state of the scan has `many` Gaussians a regime, before the step's observation."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    K = len(model.start)

    def ahead(logs: Any, m: Any, P: Any, key: Any) -> Any:
        """Return the Gaussians before the next observation, and what is kept of this step."""
        if method == "rao-blackwell":
            u = (jnp.arange(many) + jax.random.uniform(key)) / many
            at = positions(jnp.exp(logs).ravel(), u, jnp)
            s, own, cov = at % K, m.reshape(-1, m.shape[-1])[at], P.reshape(-1, *P.shape[-2:])[at]
            return (model.moves[s] - jnp.log(many), *_all_moves(model, own, cov)), (s, own, cov)
        post, mean, cov = merged(logs, m, P)
        joint = post[:, None] + model.moves
        if method == "gpb2":
            return (joint, *_all_moves(model, mean, cov)), None
        wide = (
            jnp.broadcast_to(mean[:, None], (K, *mean.shape)),
            jnp.broadcast_to(cov[:, None], (K, *cov.shape)),
        )
        total, mixed, spread = merged(joint, *wide)
        moved = jax.vmap(_moved)(model.A, model.b, model.Q, mixed, spread)
        return (total[None], moved[0][None], moved[1][None]), None

    def step(state: Any, now: Any) -> Any:
        logs, m, P = state
        obs, key = now
        after, cov, log_density = _observed(model, m, P, obs)
        joint = logs + log_density
        total = logsumexp(joint)
        following, kept = ahead(joint - total, after, cov, key)
        return following, Forward(*merged(joint - total, after, cov), *merged(logs, m, P), total, kept)

    first = jnp.full((many, K), -jnp.inf).at[0].set(model.start)
    mean = jnp.broadcast_to(model.mean, (many, *model.mean.shape))
    start = (first, mean, jnp.broadcast_to(model.cov, (many, *model.cov.shape)))
    found: Forward = jax.lax.scan(step, start, (y, jax.random.split(key, len(y))))[1]
    return found


def _kim(model: Regimes, found: Forward, last: Any) -> tuple[Any, Any, Any, Pairs]:
    """Smooth backwards from the filter's Gaussians of each regime."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    K, n = model.mean.shape
    sums = Pairs(*(jnp.zeros(s) for s in ((K, K), (K, n, n), (K, n), (K, n, n), (K, n, n), (K, n))))

    def pair(m: Any, P: Any, A: Any, b: Any, Q: Any, later: Any, later_cov: Any) -> Any:
        ahead, cov = _moved(A, b, Q, m, P)
        G = smoothing_gain(cov, P @ A.T)
        return m + G @ (later - ahead), symmetric(P + G @ (later_cov - cov) @ G.T), later_cov @ G.T

    every = jax.vmap(jax.vmap(pair, (None, None, 0, 0, 0, 0, 0)), (0, 0, None, None, None, None, None))

    def step(state: Any, now: Any) -> Any:
        (logs, later, later_cov), total = state
        post, m, P, end = now
        joint = post[:, None] + model.moves
        into = logsumexp(joint, axis=0)
        joint = jnp.where(jnp.isfinite(into), joint - into + logs, -jnp.inf)
        own, cov, lag = every(m, P, model.A, model.b, model.Q, later, later_cov)
        smoothed = merged(joint.T, own.swapaxes(0, 1), cov.swapaxes(0, 1))
        smoothed = jax.tree.map(lambda a, b: jnp.where(end, a, b), (post, m, P), smoothed)
        w = jnp.where(end, 0.0, jnp.exp(joint))
        W = w.sum(axis=0)
        more = Pairs(
            w,
            jnp.einsum("ij,ijab->jab", w, cov) + jnp.einsum("ij,ija,ijb->jab", w, own, own),
            jnp.einsum("ij,ija->ja", w, own),
            jnp.einsum("ij,ijab->jab", w, lag) + jnp.einsum("ij,ja,ijb->jab", w, later, own),
            W[:, None, None] * (later_cov + later[:, :, None] * later[:, None]),
            W[:, None] * later,
        )
        more = jax.tree.map(lambda a: jnp.where(end, 0.0, a), more)
        return (smoothed, jax.tree.map(jnp.add, total, more)), smoothed

    first = ((found.logs[-1], found.mean[-1], found.cov[-1]), sums)
    (_, pairs), smoothed = jax.lax.scan(step, first, (found.logs, found.mean, found.cov, last), reverse=True)
    return (*smoothed, pairs)


# -- along given paths of regimes --------------------------------------------------------------------------------


class Along(NamedTuple):
    """A sequence given its regimes: filtered before and after, log densities, smoothed, covariance with the state before."""

    before: Any
    before_cov: Any
    after: Any
    after_cov: Any
    log_density: Any
    mean: Any
    cov: Any
    lag: Any


def _along(model: Regimes, y: Any, s: Any, last: Any) -> Along:
    import jax
    import jax.numpy as jnp

    following = jnp.append(s[1:], s[-1])

    def step(state: Any, now: Any) -> Any:
        m, P = state
        obs, k, j = now
        C = model.C[k]
        own, cov, log_density = condition(
            m, P, Moments(C @ m + model.d[k], C @ P @ C.T, P @ C.T), model.R[k], obs
        )
        ahead = _moved(model.A[j], model.b[j], model.Q[j], own, cov)
        return ahead, (m, P, own, cov, log_density, *ahead, cov @ model.A[j].T)

    found = jax.lax.scan(step, (model.mean[s[0]], model.cov[s[0]]), (y, s, following))[1]

    def back(state: Any, now: Any) -> Any:
        (own, cov, ahead, ahead_cov, cross), end = now
        G = smoothing_gain(ahead_cov, cross)
        mean = jnp.where(end, own, own + G @ (state[0] - ahead))
        spread = jnp.where(end, cov, symmetric(cov + G @ (state[1] - ahead_cov) @ G.T))
        return (mean, spread), (mean, spread, state[1] @ G.T)

    later = (found[2][-1], found[3][-1])
    mean, cov, lag = jax.lax.scan(back, later, ((*found[2:4], *found[5:]), last), reverse=True)[1]
    return Along(found[0], found[1], found[2], found[3], found[4], mean, cov, lag)


def _by_regime(logs: Any, s: Any, m: Any, P: Any, K: int) -> tuple[Any, Any, Any]:
    """Merge paths that are in the same regime at a step: (steps, regimes, ...)."""
    import jax
    import jax.numpy as jnp

    inside = jnp.where(s[..., None] == jnp.arange(K), logs[..., None], -jnp.inf)  # paths, steps, regimes
    means = jnp.broadcast_to(m[:, :, None], (*m.shape[:2], K, m.shape[-1]))
    covs = jnp.broadcast_to(P[:, :, None], (*P.shape[:2], K, *P.shape[-2:]))
    found: tuple[Any, Any, Any] = jax.vmap(merged, 1)(inside, means, covs)
    return found


def _weighed(model: Regimes, s: Any, weights: Any, found: Along, last: Any) -> tuple[Any, Any, Any, Pairs]:
    """Return what paths with these log weights say together."""
    import jax
    import jax.numpy as jnp

    K = len(model.start)
    smoothed = _by_regime(jnp.broadcast_to(weights[:, None], s.shape), s, found.mean, found.cov, K)
    w = jnp.where(last, 0.0, jnp.exp(weights)[:, None])[:, :-1]
    one = jax.nn.one_hot(s, K)
    x, y, V = found.mean[:, :-1], found.mean[:, 1:], found.cov
    into = w[..., None] * one[:, 1:]
    pairs = Pairs(
        jnp.einsum("mt,mti,mtj->ij", w, one[:, :-1], one[:, 1:]),
        jnp.einsum("mtk,mtab->kab", into, V[:, :-1]) + jnp.einsum("mtk,mta,mtb->kab", into, x, x),
        jnp.einsum("mtk,mta->ka", into, x),
        jnp.einsum("mtk,mtab->kab", into, found.lag[:, :-1]) + jnp.einsum("mtk,mta,mtb->kab", into, y, x),
        jnp.einsum("mtk,mtab->kab", into, V[:, 1:]) + jnp.einsum("mtk,mta,mtb->kab", into, y, y),
        jnp.einsum("mtk,mta->ka", into, y),
    )
    return (*smoothed, pairs)


def _backwards(model: Regimes, kept: Any, last: Any, key: Any, draws: int) -> Any:
    """Draw paths of regimes backwards from the particles of a filter, with states to tell how likely each is."""
    import jax
    import jax.numpy as jnp

    n = model.mean.shape[1]

    def step(state: Any, now: Any) -> Any:
        x, s = state
        (regime, m, P), end, key = now
        ahead, cov = _all_moves(model, m, P)
        L = jnp.linalg.cholesky(
            cov + 1e-10 * jnp.trace(cov, axis1=-2, axis2=-1)[..., None, None] * jnp.eye(n)
        )
        half = jnp.log(jnp.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
        white = jnp.linalg.inv(L)  # once a particle, not once a draw

        def one(x: Any, s: Any, key: Any) -> Any:
            away = jnp.einsum("iab,ib->ia", white[:, s], x - ahead[:, s])
            logs = model.moves[regime, s] - 0.5 * (away**2).sum(axis=-1) - half[:, s] - 0.5 * n * LOG_2PI
            a, b = jax.random.split(key)
            i = jax.random.categorical(a, jnp.where(end, 0.0, logs))
            cross = P[i] @ model.A[s].T
            G = smoothing_gain(cov[i, s], cross)
            mean = jnp.where(end, m[i], m[i] + G @ (x - ahead[i, s]))
            spread = jnp.where(end, P[i], symmetric(P[i] - G @ cov[i, s] @ G.T))
            return mean + root(spread) @ jax.random.normal(b, (n,)), regime[i]

        found = jax.vmap(one)(x, s, jax.random.split(key, draws))
        return found, found[1]

    start = (jnp.zeros((draws, n)), jnp.zeros(draws, dtype=kept[0].dtype))
    keys = jax.random.split(key, len(last))
    return jax.lax.scan(step, start, (kept, last, keys), reverse=True)[1].T


# -- programs ----------------------------------------------------------------------------------------------------


def _many(method: Method, K: int, particles: int) -> int:
    return {"imm": 1, "gpb2": K}.get(method, particles)


@lru_cache(maxsize=32)
def filter_program(method: Method, particles: int) -> Callable[..., Forward]:
    """Return a compiled filter: (model, y, lengths, keys) -> Forward, one row a sequence."""
    import jax
    import jax.numpy as jnp

    def one(model: Regimes, y: Any, length: Any, key: Any) -> Forward:
        found = _forward(model, y, key, method, _many(method, len(model.start), particles))
        there = jnp.arange(len(y)) < length
        return found._replace(log_prob=jnp.where(there, found.log_prob, 0.0).sum())

    program: Callable[..., Forward] = jax.jit(jax.vmap(one, (None, 0, 0, 0)))
    return program


@lru_cache(maxsize=32)
def smoother_program(method: Method, particles: int, paths: int) -> Callable[..., Back]:
    """Return a compiled smoother: (model, y, lengths, keys) -> Back, one row a sequence."""
    import jax
    import jax.numpy as jnp

    def one(model: Regimes, y: Any, length: Any, key: Any) -> Back:
        found = _forward(model, y, key, method, _many(method, len(model.start), particles))
        t = jnp.arange(len(y))
        last = t >= length - 1
        log_prob = jnp.where(t < length, found.log_prob, 0.0).sum()
        if method != "rao-blackwell":
            return Back(*_kim(model, found, last), log_prob)
        s = _backwards(model, found.kept, last, jax.random.fold_in(key, 1), paths)
        along = jax.vmap(_along, (None, None, 0, None))(model, y, s, last)
        return Back(*_weighed(model, s, jnp.full(paths, -jnp.log(paths)), along, last), log_prob)

    program: Callable[..., Back] = jax.jit(jax.vmap(one, (None, 0, 0, 0)))
    return program


@lru_cache(maxsize=4)
def exact_program() -> Callable[..., tuple[Forward, Back]]:
    """Return a compiled sum over paths: (model, y, paths) -> Forward, Back, of one sequence."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    def run(model: Regimes, y: Any, s: Any) -> tuple[Forward, Back]:
        K, T = len(model.start), len(y)
        last = jnp.arange(T) >= T - 1
        found = jax.vmap(_along, (None, None, 0, None))(model, y, s, last)
        prior = model.start[s[:, 0]] + model.moves[s[:, :-1], s[:, 1:]].sum(axis=1)
        upto = jnp.cumsum(found.log_density, axis=1)
        joint = prior[:, None] + upto
        ahead = prior[:, None] + upto - found.log_density
        total = logsumexp(joint[:, -1])
        after = _by_regime(joint - logsumexp(joint, axis=0), s, found.after, found.after_cov, K)
        before = _by_regime(ahead - logsumexp(ahead, axis=0), s, found.before, found.before_cov, K)
        back = _weighed(model, s, joint[:, -1] - total, found, last)
        return Forward(*after, *before, total, None), Back(*back, total)

    program: Callable[..., tuple[Forward, Back]] = jax.jit(run)
    return program


@lru_cache(maxsize=32)
def sample_program(steps: int) -> Callable[..., Any]:
    """Return a compiled sampler: (model, keys) -> regimes, states, observations, one row a key."""
    import jax

    def one(model: Regimes, key: Any) -> Any:
        n, p = model.mean.shape[1], model.d.shape[1]

        def seen(s: Any, x: Any, key: Any) -> Any:
            return model.C[s] @ x + model.d[s] + root(model.R[s]) @ jax.random.normal(key, (p,))

        def step(state: Any, key: Any) -> Any:
            s, x = state
            a, b, c = jax.random.split(key, 3)
            following = jax.random.categorical(a, model.moves[s])
            noise = root(model.Q[following]) @ jax.random.normal(b, (n,))
            moved = model.A[following] @ x + model.b[following] + noise
            return (following, moved), (s, x, seen(s, x, c))

        a, b, c = jax.random.split(key, 3)
        s = jax.random.categorical(a, model.start)
        x = model.mean[s] + root(model.cov[s]) @ jax.random.normal(b, (n,))
        return jax.lax.scan(step, (s, x), jax.random.split(c, steps))[1]

    program: Callable[..., Any] = jax.jit(jax.vmap(one, (None, 0)))
    return program
