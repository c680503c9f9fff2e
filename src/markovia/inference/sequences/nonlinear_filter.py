"""Extended, unscented, cubature, ensemble and Gaussian-sum filters, and their smoothers, as scans in JAX.

    x[t+1] = f(x[t]) + N(0, Q),  y[t] = h(x[t]) + N(0, R),  x[0] ~ N(m, P)

Gaussian filters take moments of f and h by a rule of `gaussian_steps` and smooth by Rauch, Tung and Striebel's step. The
ensemble filter moves draws, corrects each by perturbed observations (Evensen 1994; Burgers and others 1998) and smooths by
regressing draws on the next step's (Raanes 2016). The Gaussian sum carries several extended filters, of which the heaviest
are kept and the others merged into one (Alspach and Sorenson 1972). A scan is compiled once a shape and pair of functions;
sequences go side by side. Cost: steps times states cubed, or steps times members times states.
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple, TypeAlias

from markovia.inference.sequences.gaussian_steps import (
    StateMoments,
    condition,
    cubature_points,
    linearised,
    root,
    sigma_points,
    smoothing_gain,
    symmetric,
    through_points,
)
from markovia.runtime.libraries import jax, jnp

Method: TypeAlias = Literal["extended", "unscented", "cubature", "ensemble", "gaussian-sum"]


class Rule(NamedTuple):
    """Which filter, with its settings."""

    method: Method
    iterations: int = 1
    alpha: float = 1.0
    beta: float = 2.0
    kappa: float = 0.0
    members: int = 100
    inflation: float = 1.0
    components: int = 1


class StateNoise(NamedTuple):
    """A mixture of Gaussians: log weights, means, covariances."""

    logs: Any
    mean: Any
    cov: Any


class Known(NamedTuple):
    """What a model knows besides its functions: covariances, the start, and what single methods need of their own."""

    start: StateNoise
    transition: StateNoise
    observation: StateNoise
    taper: Any
    key: Any


class FilterStep(NamedTuple):
    """What is known at each step of a sequence, and what smoothers look back on."""

    mean: Any
    cov: Any
    predicted_mean: Any
    predicted_cov: Any
    expected: Any
    expected_cov: Any
    log_prob: Any
    kept: Any


class SmoothedMoments(NamedTuple):
    """Means and covariances given whole sequences, and log likelihoods."""

    mean: Any
    cov: Any
    log_prob: Any


class SigmaSum(NamedTuple):
    """A weighted sum of Gaussians."""

    logs: Any
    mean: Any
    cov: Any


@lru_cache(maxsize=64)
def filter_program(f: Callable[..., Any], h: Callable[..., Any], rule: Rule) -> Callable[..., FilterStep]:
    """Return a compiled filter of many sequences: (y, inputs, lengths, known) -> Step, one row a sequence."""
    run = {"ensemble": _ensemble, "gaussian-sum": _sum}.get(rule.method, _gaussian)

    def one(y: Any, u: Any, length: Any, known: Known) -> FilterStep:
        found = run(f, h, rule, y, u, known)
        there = jnp.arange(len(y)) < length
        return found._replace(log_prob=jnp.where(there, found.log_prob, 0.0).sum())

    axes = (0, 0, 0, Known(None, None, None, None, 0))  # type: ignore[arg-type]
    program: Callable[..., FilterStep] = jax.jit(jax.vmap(one, axes))
    return program


@lru_cache(maxsize=64)
def smoother_program(
    f: Callable[..., Any], h: Callable[..., Any], rule: Rule
) -> Callable[..., SmoothedMoments]:
    """Return a compiled smoother: (y, inputs, lengths, known) -> Smoothed."""
    filtering = filter_program(f, h, rule)
    back = _draws_back if rule.method == "ensemble" else _moments_back

    def one(found: FilterStep, length: Any) -> tuple[Any, Any]:
        last = jnp.arange(found.mean.shape[0]) >= length - 1
        return back(found, last)

    def every(y: Any, u: Any, lengths: Any, known: Known) -> SmoothedMoments:
        found = filtering(y, u, lengths, known)
        return SmoothedMoments(*jax.vmap(one)(found, lengths), found.log_prob)

    program: Callable[..., SmoothedMoments] = jax.jit(every)
    return program


def _at(function: Callable[..., Any], u: Any) -> Callable[[Any], Any]:
    def value(x: Any) -> Any:
        return jnp.ravel(jnp.asarray(function(x) if u is None else function(x, u)))

    return value


def _rule(rule: Rule, n: int) -> Callable[[Callable[[Any], Any], Any, Any], StateMoments]:
    if rule.method == "unscented":
        return partial(through_points, sigma_points(n, rule.alpha, rule.beta, rule.kappa))
    if rule.method == "cubature":
        return partial(through_points, cubature_points(n))
    return linearised


def _seen(rule: Rule, moments: Any, h: Any, mean: Any, cov: Any, noise: Any, y: Any) -> Any:
    """Return the state given an observation, its log density, and what was expected of it."""
    expected = moments(h, mean, cov)
    found = condition(mean, cov, expected, noise, y)
    for _ in range(
        rule.iterations - 1
    ):  # the derivative where the last correction led (Bell and Cathey 1993)
        J = jax.jacfwd(h)(found[0])
        again = StateMoments(h(found[0]) + J @ (mean - found[0]), J @ cov @ J.T, cov @ J.T)
        found = condition(mean, cov, again, noise, y)
    return (*found, expected)


def _gaussian(f: Any, h: Any, rule: Rule, y: Any, u: Any, known: Known) -> FilterStep:
    moments = _rule(rule, known.start.mean.shape[-1])
    Q, R = known.transition.cov[0], known.observation.cov[0]

    def step(state: Any, now: Any) -> Any:
        mean, cov = state
        obs, own = now
        m, P, log_prob, expected = _seen(rule, moments, _at(h, own), mean, cov, R, obs)
        ahead = moments(_at(f, own), m, P)
        following = (ahead.mean, symmetric(ahead.cov + Q))
        return following, FilterStep(
            m, P, mean, cov, expected.mean, expected.cov + R, log_prob, (ahead.cross, *following)
        )

    found: FilterStep = jax.lax.scan(step, (known.start.mean[0], known.start.cov[0]), (y, u))[1]
    return found


def _moments_back(found: FilterStep, last: Any) -> tuple[Any, Any]:
    def step(state: Any, now: Any) -> Any:
        m, P, (cross, ahead, ahead_cov), end = now
        G = smoothing_gain(ahead_cov, cross)
        mean = jnp.where(end, m, m + G @ (state[0] - ahead))
        cov = jnp.where(end, P, symmetric(P + G @ (state[1] - ahead_cov) @ G.T))
        return (mean, cov), (mean, cov)

    start = (found.mean[-1], found.cov[-1])
    means, covs = jax.lax.scan(step, start, (found.mean, found.cov, found.kept, last), reverse=True)[1]
    return means, covs


# -- ensembles -------------------------------------------------------------------------------------------------


def _spread(x: Any, other: Any = None) -> Any:
    """Return the covariance of draws, or with others."""
    a = x - x.mean(axis=0)
    b = a if other is None else other - other.mean(axis=0)
    return a.T @ b / (len(x) - 1)


def _ensemble(f: Any, h: Any, rule: Rule, y: Any, u: Any, known: Known) -> FilterStep:
    R, (n, p) = known.observation.cov[0], (known.start.mean.shape[-1], y.shape[-1])
    push, blur = root(known.transition.cov[0]), root(R)
    keys = jax.random.split(known.key, 2 * len(y) + 1)

    def centred(key: Any, size: int) -> Any:
        draws = jax.random.normal(key, (rule.members, size))
        return draws - draws.mean(axis=0)  # less chance in the means

    def step(x: Any, now: Any) -> Any:
        obs, own, one, two = now
        middle = x.mean(axis=0)
        x = middle + rule.inflation * (x - middle)
        P, values = _spread(x), jax.vmap(_at(h, own))(x)
        seen_as = StateMoments(values.mean(axis=0), _spread(values), known.taper * _spread(x, values))
        log_prob = condition(middle, P, seen_as, R, obs)[2]
        seen = ~jnp.isnan(obs)
        S = jnp.where(seen[:, None] & seen, seen_as.cov + R, 0.0) + jnp.diag(jnp.where(seen, 0.0, 1.0))
        K = jnp.linalg.solve(S, jnp.where(seen, seen_as.cross, 0.0).T).T
        away = jnp.where(seen, obs - values - centred(one, p) @ blur.T, 0.0)
        after = x + away @ K.T
        ahead = jax.vmap(_at(f, own))(after) + centred(two, n) @ push.T
        kept = (after, ahead)
        return ahead, FilterStep(
            after.mean(axis=0), _spread(after), middle, P, seen_as.mean, seen_as.cov + R, log_prob, kept
        )

    start = known.start.mean[0] + centred(keys[0], n) @ root(known.start.cov[0]).T
    found: FilterStep = jax.lax.scan(step, start, (y, u, keys[1::2], keys[2::2]))[1]
    return found


def _draws_back(found: FilterStep, last: Any) -> tuple[Any, Any]:
    def step(later: Any, now: Any) -> Any:
        (x, ahead), end = now
        G = smoothing_gain(_spread(ahead), _spread(x, ahead))
        x = jnp.where(end, x, x + (later - ahead) @ G.T)
        return x, (x.mean(axis=0), _spread(x))

    means, covs = jax.lax.scan(step, found.kept[0][-1], (found.kept, last), reverse=True)[1]
    return means, covs


# -- sums of Gaussians -----------------------------------------------------------------------------------------


def moments_of(parts: SigmaSum) -> tuple[Any, Any]:
    """Return the mean and covariance of a normalised sum."""
    w = jnp.exp(parts.logs)
    mean = w @ parts.mean
    away = parts.mean - mean
    return mean, symmetric(jnp.einsum("k,kij->ij", w, parts.cov) + (w[:, None] * away).T @ away)


def fewer(parts: SigmaSum, most: int) -> SigmaSum:
    """Return a sum with so many parts: the heaviest, and all others merged into one of the same moments."""
    from jax.scipy.special import logsumexp

    k = len(parts.logs)
    if k <= most:
        more = most - k
        return SigmaSum(
            jnp.concatenate([parts.logs, jnp.full(more, -jnp.inf)]),
            jnp.concatenate([parts.mean, jnp.repeat(parts.mean[:1], more, axis=0)]),
            jnp.concatenate([parts.cov, jnp.repeat(parts.cov[:1], more, axis=0)]),
        )
    order = jnp.argsort(-parts.logs)
    parts = SigmaSum(*(part[order] for part in parts))
    rest = SigmaSum(*(part[most - 1 :] for part in parts))
    total = logsumexp(rest.logs)
    share = jnp.where(jnp.isfinite(total), rest.logs - total, -jnp.log(len(rest.logs)))
    mean, cov = moments_of(rest._replace(logs=share))
    return SigmaSum(
        jnp.append(parts.logs[: most - 1], total),
        jnp.concatenate([parts.mean[: most - 1], mean[None]]),
        jnp.concatenate([parts.cov[: most - 1], cov[None]]),
    )


def _sum(f: Any, h: Any, rule: Rule, y: Any, u: Any, known: Known) -> FilterStep:
    from jax.scipy.special import logsumexp

    def pairs(parts: SigmaSum, noise: StateNoise, work: Any) -> Any:
        """Return work for each pair of a part and a part of the noise, the noise's running faster."""
        inner = jax.vmap(work, (None, None, None, 0, 0, 0))
        found = jax.vmap(inner, (0, 0, 0, None, None, None))(*parts, *noise)
        return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), found)

    def step(parts: SigmaSum, now: Any) -> Any:
        obs, own = now

        def see(logs: Any, mean: Any, cov: Any, more: Any, bias: Any, noise: Any) -> Any:
            m, P, log_density, expected = _seen(rule, linearised, _at(h, own), mean, cov, noise, obs - bias)
            return logs + more, log_density, m, P, expected.mean + bias, expected.cov + noise

        def move(logs: Any, mean: Any, cov: Any, more: Any, bias: Any, noise: Any) -> SigmaSum:
            ahead = linearised(_at(f, own), mean, cov)
            return SigmaSum(logs + more, ahead.mean + bias, symmetric(ahead.cov + noise))

        prior, log_densities, m, P, expected, expected_cov = pairs(parts, known.observation, see)
        logs = prior + log_densities
        log_prob = logsumexp(logs)
        after = fewer(SigmaSum(logs - log_prob, m, P), rule.components)
        ahead = fewer(pairs(after, known.transition, move), rule.components)
        return ahead, FilterStep(
            *moments_of(after),
            *moments_of(parts),
            *moments_of(SigmaSum(prior, expected, expected_cov)),
            log_prob,
            after,
        )

    start = SigmaSum(*known.start)
    found: FilterStep = jax.lax.scan(step, fewer(start, rule.components), (y, u))[1]
    return found


# -- draws -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def sample_program(f: Callable[..., Any], h: Callable[..., Any], steps: int) -> Callable[..., Any]:
    """Return a compiled sampler: (keys, inputs, known) -> states and observations, one row a key."""

    def draw(key: Any, noise: StateNoise) -> Any:
        one, two = jax.random.split(key)
        k = jax.random.categorical(one, noise.logs)
        return noise.mean[k] + root(noise.cov[k]) @ jax.random.normal(two, noise.mean.shape[1:])

    def one(key: Any, u: Any, known: Known) -> Any:
        first, rest = jax.random.split(key)

        def step(x: Any, now: Any) -> Any:
            key, own = now
            a, b = jax.random.split(key)
            y = _at(h, own)(x) + draw(a, known.observation)
            return _at(f, own)(x) + draw(b, known.transition), (x, y)

        return jax.lax.scan(step, draw(first, known.start), (jax.random.split(rest, steps), u))[1]

    program: Callable[..., Any] = jax.jit(jax.vmap(one, (0, None, None)))
    return program
