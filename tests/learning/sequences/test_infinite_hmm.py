"""Samplers of the infinite hidden Markov model: against enumeration of all paths, and jointly with data."""

from itertools import pairwise, product
from math import exp, lgamma, log, prod

import numpy as np
import pytest

from markovia.learning.components.discrete import Categorical
from markovia.learning.components.families import Observations
from markovia.learning.sequences.infinite_hmm import BeamSampler, InfinitePriors, WeakLimit
from sampler_checks import canonical, geweke_scores, set_partitions, standard_score, total_variation

ALPHA, GAMMA, ETA, V = 1.5, 1.0, 0.7, 2
SYMBOLS, OFFSETS = np.array([0, 1, 0, 0, 1]), np.array([0, 3, 5])


def observed(symbols, offsets, v=V):
    return Observations(np.arange(v)[:, None], np.asarray(symbols, dtype=np.int64), np.asarray(offsets))


def template(v=V):
    return Categorical(np.full((1, v), 1.0 / v), tuple(range(v)))


def stirling(n, m):
    """Return the number of permutations of n things with m cycles."""
    if n == m:
        return 1
    return 0 if m == 0 or m > n else stirling(n - 1, m - 1) + (n - 1) * stirling(n - 1, m)


def moves_of(states, offsets):
    found = {}
    for a, b in pairwise(offsets):
        for t in range(a, b):
            before = "start" if t == a else states[t - 1]
            found[before, states[t]] = found.get((before, states[t]), 0) + 1
    return found


def moves_log_prob(moves, dishes):
    """Return log p(moves) by adding up all numbers of tables; `dishes(served)` is log p of tables among dishes."""
    rows = {before for before, _ in moves}
    total = 0.0
    for tables in product(*[range(1, n + 1) for n in moves.values()]):
        served = {}
        for (_, k), m in zip(moves, tables, strict=True):
            served[k] = served.get(k, 0) + m
        seats = prod(stirling(n, m) * ALPHA**m for n, m in zip(moves.values(), tables, strict=True))
        total += seats * exp(dishes(served))
    guests = [sum(n for (b, _), n in moves.items() if b == row) for row in rows]
    return log(total) + sum(lgamma(ALPHA) - lgamma(ALPHA + n) for n in guests)


def data_log_prob(states):
    found = 0.0
    for k in set(states):
        n = np.bincount(SYMBOLS[np.array(states) == k], minlength=V)
        found += sum(lgamma(ETA + c) - lgamma(ETA) for c in n) + lgamma(V * ETA) - lgamma(V * ETA + n.sum())
    return found


def infinite(served):
    m = served.values()
    return len(m) * log(GAMMA) + sum(map(lgamma, m)) + lgamma(GAMMA) - lgamma(GAMMA + sum(m))


def limited(served, limit=3):
    g, m = GAMMA / limit, served.values()
    return sum(lgamma(g + n) - lgamma(g) for n in m) + lgamma(GAMMA) - lgamma(GAMMA + sum(m))


def normalised(logs):
    total = sum(map(exp, logs.values()))
    return {key: exp(value) / total for key, value in logs.items()}


def drawn(sampler, n=5_000):
    rng = np.random.default_rng(3)
    sampler.start(np.zeros(len(SYMBOLS), dtype=np.int64), rng)
    found = []
    for _ in range(n):
        sampler.sweep(rng)
        found.append(canonical(sampler.states))
    return found[100:]


KNOWN = InfinitePriors(ALPHA, GAMMA, 0.0, {"concentration": ETA})


@pytest.mark.slow
def test_beam_sampling_has_the_posterior_of_partitions_found_by_enumeration():
    exact = normalised(
        {z: moves_log_prob(moves_of(z, OFFSETS), infinite) + data_log_prob(z) for z in set_partitions(5)}
    )
    assert len(exact) == 52
    # noise of sampling is about 0.025: 0.022 for as many independent draws
    found = drawn(BeamSampler(observed(SYMBOLS, OFFSETS), template(), KNOWN), n=10_000)
    assert total_variation(found, exact) < 0.04


@pytest.mark.slow
def test_the_weak_limit_has_the_posterior_of_its_finite_model_found_by_enumeration():
    exact = {}
    for z in product(range(3), repeat=5):
        key = canonical(z)
        exact[key] = exact.get(key, 0.0) + exp(
            moves_log_prob(moves_of(z, OFFSETS), limited) + data_log_prob(z)
        )
    total = sum(exact.values())
    exact = {key: p / total for key, p in exact.items()}
    assert total_variation(drawn(WeakLimit(observed(SYMBOLS, OFFSETS), template(), KNOWN, 3)), exact) < 0.04


@pytest.mark.parametrize("kind", ["beam", "weak-limit"])
def test_weights_of_states_given_tables_are_drawn_from_their_dirichlet_law(kind):
    """The share of states without a table: Beta(gamma, tables), or a half of gamma where every other state has one."""
    seen, rng, many = observed(SYMBOLS, OFFSETS), np.random.default_rng(5), 100
    priors = InfinitePriors(ALPHA, 300.0, 0.0, {"concentration": ETA})
    if kind == "beam":
        sampler, served, a, b = BeamSampler(seen, template(), priors), np.full(many // 2, 1), 300.0, 50.0
    else:
        served, a, b = np.arange(many) % 2, 150.0, 150.0 + 50.0
        sampler = WeakLimit(seen, template(), priors, many)
    shares = []
    for _ in range(8_000):
        sampler._draw_weights(served, rng)
        assert abs(sampler.weights.sum() - 1.0) < 1e-9
        shares.append(sampler.weights[np.append(served, 0) == 0].sum())
    x, mean = np.array(shares), a / (a + b)
    for draws, expected in ((x, mean), ((x - mean) ** 2, mean * (1.0 - mean) / (a + b + 1.0))):
        assert abs(draws.mean() - expected) < 4.0 * draws.std() / np.sqrt(len(draws))


@pytest.mark.parametrize(("kind", "dishes"), [("beam", infinite), ("weak-limit", limited)])
def test_rows_of_moves_given_a_path_have_the_means_found_by_enumeration(kind, dishes):
    """The mean of a row is the chance of one more move: p(path and that move) / p(path)."""
    path, offsets = np.array([0, 0, 1, 1, 1, 0, 2, 1, 1, 2, 0, 0, 1]), np.array([0, 10, 13])
    seen, rng = observed(path % V, offsets), np.random.default_rng(0)
    sampler = (
        BeamSampler(seen, template(), KNOWN) if kind == "beam" else WeakLimit(seen, template(), KNOWN, 3)
    )
    sampler.start(path, rng)
    sampler._redrawn = lambda k, rng: sampler.emission  # rows do not depend on emissions
    rows = []
    for _ in range(8_000):
        sampler._parameters(3, rng)
        rows.append(sampler.rows[:, :3])
    moves = moves_of(path.tolist(), offsets)
    for j, before in enumerate([0, 1, 2, "start"]):
        for k in range(3):
            more = {**moves, (before, k): moves.get((before, k), 0) + 1}
            expected = exp(moves_log_prob(more, dishes) - moves_log_prob(moves, dishes))
            assert abs(standard_score([row[j, k] for row in rows], expected)) < 4.0, (before, k)


def stats(states, symbols, alpha, gamma, rho):
    later = np.array([1, 2, 3, 5, 6, 7])
    return {
        "states": float(len(np.unique(states))),
        "stays": float((states[later] == states[later - 1]).mean()),
        "same first state": float(states[0] == states[4]),
        "same symbols": float((symbols[:, None] == symbols).mean()),
        "same symbol in a state": float(((symbols[:, None] == symbols) & (states[:, None] == states)).mean()),
        "alpha": alpha,
        "gamma": gamma,
        "rho": rho,
        "alpha times states": alpha * len(np.unique(states)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["beam", "weak-limit"])
@pytest.mark.parametrize("sticky", [False, True])
def test_draws_of_paths_and_data_in_turn_have_the_joint_law_of_the_prior(kind, sticky):
    rng, offsets, v, limit = np.random.default_rng(5), np.array([0, 4, 8]), 3, 4
    priors = InfinitePriors((3.0, 1.5), (3.0, 2.0), (2.0, 2.0) if sticky else 0.0, {"concentration": ETA})
    size = 60 if kind == "beam" else limit  # the prior's weights beyond sixty sticks are nothing

    def symbols_of(states):
        probs = {k: rng.dirichlet(np.full(v, ETA)) for k in np.unique(states)}
        return np.array([rng.choice(v, p=probs[k]) for k in states])

    def prior():
        alpha, gamma = rng.gamma(3.0) / 1.5, rng.gamma(3.0) / 2.0
        rho = rng.beta(2.0, 2.0) if sticky else 0.0
        if kind == "beam":
            sticks = rng.beta(1.0, gamma, size)
            sticks[-1] = 1.0
            weights = sticks * np.append(1.0, np.cumprod(1.0 - sticks[:-1]))
        else:
            weights = rng.dirichlet(np.full(limit, gamma / limit) + 1e-12)
        weights = np.maximum(weights, 1e-200)
        rows, states = {}, np.empty(8, dtype=np.int64)
        for t in range(8):
            before = -1 if t in (0, 4) else int(states[t - 1])
            if before not in rows:
                base = alpha * weights * (1.0 if before < 0 else 1.0 - rho)
                if before >= 0:
                    base[before] += alpha * rho
                logs = np.log(rng.gamma(base + 1.0)) + np.log(rng.random(size)) / base
                p = np.exp(logs - logs.max())
                rows[before] = p / p.sum()
            states[t] = rng.choice(size, p=rows[before])
        return stats(states, symbols_of(states), alpha, gamma, rho)

    seen = observed(np.zeros(8), offsets, v)
    sampler = (
        BeamSampler(seen, template(v), priors)
        if kind == "beam"
        else WeakLimit(seen, template(v), priors, limit)
    )
    sampler.start(np.zeros(8, dtype=np.int64), rng)

    def step():
        sampler.sweep(rng)
        seen.codes[:] = symbols_of(sampler.states)
        return stats(sampler.states, seen.codes, sampler.alpha, sampler.gamma, sampler.rho)

    scores = geweke_scores(prior, step, 1_500, 3_000)
    assert max(map(abs, scores.values())) < 4.0, scores
