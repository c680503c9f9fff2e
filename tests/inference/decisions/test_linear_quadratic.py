"""Linear-quadratic control against SciPy's equations, least squares and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_are

import markovia as mk
from markovia.inference.decisions.numbers.linear_quadratic import (
    LinearQuadratic,
    filter_covariances,
    regulate,
    riccati_rest,
    riccati_steps,
)

SEEDS = st.integers(0, 10**6)


def random_system(rng, n=None, m=None, *, affine=False, **more):
    n = int(rng.integers(1, 5)) if n is None else n
    m = int(rng.integers(1, 3)) if m is None else m
    root = rng.normal(size=(n + m, n + m))
    cost = root @ root.T + 0.05 * np.eye(n + m)
    if affine:
        more |= {
            "offset": rng.normal(size=n),
            "q": rng.normal(size=n),
            "r": rng.normal(size=m),
            "constant": 0.7,
        }
    return LinearQuadratic(
        rng.normal(size=(n, n)) * 0.7,
        rng.normal(size=(n, m)),
        cost[:n, :n],
        cost[n:, n:],
        cost[:n, n:],
        **more,
    )


def step_cost(s, x, u):
    return x @ s.Q @ x + u @ s.R @ u + 2 * x @ s.N @ u + 2 * s.q @ x + 2 * s.r @ u + s.constant


def path_cost(s, x, controls, final):
    total = 0.0
    for u in controls:
        total += step_cost(s, x, u)
        x = s.A @ x + s.B @ u + s.offset
    return total + x @ final @ x


def test_the_double_integrator_has_its_known_gain():
    cart = LinearQuadratic([[1, 0.1], [0, 1]], [[0], [0.1]], np.diag([1, 0.1]), 0.01)
    feedback = regulate(cart, average=True)
    assert feedback.gain == pytest.approx(np.array([[7.60447174, 4.97764814]]), abs=5e-9)
    assert feedback.info.error < 1e-12
    assert feedback.value == 0.0


def test_the_filter_of_the_dual_system_takes_the_steps_of_the_riccati_equation():
    rng = np.random.default_rng(0)
    s = random_system(rng, 4, 2)
    Q = s.Q - s.N @ np.linalg.solve(s.R, s.N.T)
    P, steps = np.zeros((4, 4)), riccati_steps(s.A, s.B, Q, s.R, np.zeros((4, 4)), 6)
    for found in steps:
        assert np.abs(found - P).max() <= 1e-12 * max(1.0, np.abs(P).max())
        G = s.B.T @ P @ s.A
        P = Q + s.A.T @ P @ s.A - G.T @ np.linalg.solve(s.R + s.B.T @ P @ s.B, G)


@settings(max_examples=30)
@given(seed=SEEDS)
def test_the_resting_solution_is_scipys(seed):
    rng = np.random.default_rng(seed)
    s = random_system(rng)
    discount = float(rng.uniform(0.5, 0.99))
    for factor, options in ((1.0, {"average": True}), (np.sqrt(discount), {"discount": discount})):
        P = solve_discrete_are(factor * s.A, factor * s.B, s.Q, s.R, s=s.N)
        feedback = regulate(s, **options)
        assert feedback.cost_matrix == pytest.approx(P, rel=1e-7, abs=1e-7 * np.abs(P).max())
        assert feedback.info.converged


def test_slow_systems_come_to_rest_by_doubling():
    slow = LinearQuadratic([[1, 1e-3], [0, 1]], [[0], [1e-3]], np.diag([1e-6, 0]), 1.0)
    found = riccati_rest(slow.A, slow.B, slow.Q, slow.R, 1e-12)
    P = found.matrix
    K = np.linalg.solve(slow.R + slow.B.T @ P @ slow.B, slow.B.T @ P @ slow.A)
    assert np.abs(np.linalg.eigvals(slow.A - slow.B @ K)).max() < 1.0
    assert pytest.approx(solve_discrete_are(slow.A, slow.B, slow.Q, slow.R), rel=1e-6) == P


@settings(max_examples=25)
@given(seed=SEEDS)
def test_controls_of_a_horizon_are_the_least_squares(seed):
    rng = np.random.default_rng(seed)
    n, m, steps = int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(rng.integers(1, 5))
    root = rng.normal(size=(n, n))
    s = random_system(rng, n, m, affine=True, final=root @ root.T, initial_mean=rng.normal(size=n))
    feedback = regulate(s, horizon=steps)
    # the cost of all controls is a quadratic form, which three of its values a pair tell
    cost = lambda z: path_cost(s, s.initial_mean, z.reshape(steps, m), s.final)  # noqa: E731
    unit, size = np.eye(steps * m), steps * m
    zero = cost(np.zeros(size))
    slope = np.array([(cost(e) - cost(-e)) / 2 for e in unit])
    bend = np.array([[cost(e + f) - cost(e) - cost(f) + zero for f in unit] for e in unit])
    best = np.linalg.solve(bend, -slope)
    x = s.initial_mean
    for t in range(steps):
        u = feedback.act(x, t)
        assert u == pytest.approx(best.reshape(steps, m)[t], rel=1e-6, abs=1e-6)
        assert -feedback.v(x, t) == pytest.approx(
            path_cost(s, x, best.reshape(steps, m)[t:], s.final), rel=1e-7
        )
        x = s.A @ x + s.B @ u + s.offset
    assert -feedback.value == pytest.approx(cost(best), rel=1e-7)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_other_units_of_cost_and_state_change_no_control(scale):
    rng = np.random.default_rng(2)
    s = random_system(rng, 3, 2, noise=np.eye(3))
    plain = regulate(s, average=True)
    dear = regulate(
        LinearQuadratic(s.A, s.B, scale * s.Q, scale * s.R, scale * s.N, noise=np.eye(3)), average=True
    )
    assert dear.gain == pytest.approx(plain.gain, rel=1e-9)
    assert dear.value == pytest.approx(scale * plain.value, rel=1e-9)
    small = LinearQuadratic(
        s.A,
        s.B / scale,
        s.Q,
        s.R / scale**2,
        s.N / scale,
        noise=np.eye(3),
        C=np.eye(3),
        observation_noise=np.eye(3),
    )
    both = regulate(
        LinearQuadratic(s.A, s.B, s.Q, s.R, s.N, noise=np.eye(3), C=np.eye(3), observation_noise=np.eye(3)),
        average=True,
    )
    assert regulate(small, average=True).gain == pytest.approx(scale * both.gain, rel=1e-7)


def observed_system(rng):
    return random_system(
        rng, 2, 1, affine=True, noise=0.3 * np.eye(2), C=[[1.0, 0.5]], observation_noise=[[0.4]], observation_offset=[0.3],
        initial_mean=[1.0, -1.0], initial_cov=np.diag([0.5, 1.0]),
    )  # fmt: skip


def moments_cost(s, feedback, steps):
    """Return the expected cost of a control of filtered means, by the moments of state, mean and one."""
    n = s.n_states
    first = np.concatenate([s.initial_mean, s.initial_mean, [1.0]])
    moments, cov, total = np.outer(first, first), s.initial_cov, 0.0
    moments[:n, :n] += s.initial_cov
    unit, one = np.eye(n), np.eye(2 * n + 1)
    x, mean, c = one[:n], one[n : 2 * n], one[2 * n :]
    slope = np.concatenate([s.q, s.r])
    whole = np.block(
        [[np.block([[s.Q, s.N], [s.N.T, s.R]]), slope[:, None]], [slope[None], np.array([[s.constant]])]]
    )
    for t in range(steps):
        K, k = (feedback.gain[t], feedback.push[t]) if feedback.horizon else (feedback.gain, feedback.push)
        L = cov @ s.C.T @ np.linalg.inv(s.C @ cov @ s.C.T + s.observation_noise)
        told = mean + L @ s.C @ (x - mean)
        u = -K @ told - k[:, None] @ c
        each = np.vstack([x, u, c])
        heard = np.vstack([np.zeros((n, 1)), -K @ L, [[0.0]]]) @ np.sqrt(s.observation_noise)
        total += feedback.discount**t * np.trace(whole @ (each @ moments @ each.T + heard @ heard.T))
        push = s.B @ u + s.offset[:, None] @ c
        move = np.vstack([s.A @ x + push, s.A @ told + push, c])
        spread = np.vstack([-s.B @ K @ L, (s.A - s.B @ K) @ L, [[0.0]]]) @ np.sqrt(s.observation_noise)
        moments = move @ moments @ move.T + spread @ spread.T
        moments[:n, :n] += s.noise
        cov = s.A @ (unit - L @ s.C) @ cov @ s.A.T + s.noise
    return total


@pytest.mark.parametrize("options", [{"horizon": 1}, {"horizon": 4}, {"discount": 0.3}, {"discount": 0.8}])
def test_the_value_of_observed_states_is_the_cost_of_their_moments(options):
    s = observed_system(np.random.default_rng(4))
    feedback = regulate(s, **options)
    assert -feedback.value == pytest.approx(moments_cost(s, feedback, options.get("horizon", 150)), rel=1e-9)


def test_agents_of_observed_states_pay_what_their_value_says():
    rng, runs = np.random.default_rng(4), []
    s = observed_system(rng)
    feedback = regulate(s, horizon=4)
    for _ in range(500):
        agent, x, total = feedback.stream(), rng.multivariate_normal(s.initial_mean, s.initial_cov), 0.0
        for cov in filter_covariances(s, 4):
            agent.update(s.C @ x + 0.3 + rng.normal() * np.sqrt(0.4))
            assert agent.cov == pytest.approx(cov)
            u = agent.act()
            total += step_cost(s, x, u)
            x = s.A @ x + s.B @ u + s.offset + rng.normal(size=2) * np.sqrt(0.3)
        runs.append(total)
    assert abs(np.mean(runs) + feedback.value) < 4.5 * np.std(runs) / np.sqrt(len(runs))


def test_observed_averages_are_the_stationary_costs_of_the_joint_system():
    rng = np.random.default_rng(7)
    s = random_system(rng, 2, 1, noise=0.3 * np.eye(2), C=[[1.0, 0.5]], observation_noise=[[0.4]])
    feedback = regulate(s, average=True)
    K = feedback.gain
    S = solve_discrete_are(s.A.T, s.C.T, s.noise, s.observation_noise)
    L = S @ s.C.T @ np.linalg.inv(s.C @ S @ s.C.T + s.observation_noise)
    # state and error before an observation, driven by both noises, come to rest at their covariance
    unit, zero = np.eye(2), np.zeros((2, 2))
    move = np.block([[s.A - s.B @ K, s.B @ K @ (unit - L @ s.C)], [zero, s.A @ (unit - L @ s.C)]])
    push = np.vstack([-s.B @ K @ L, -s.A @ L])
    noise = np.block([[s.noise, s.noise], [s.noise, s.noise]]) + push @ s.observation_noise @ push.T
    cov = np.linalg.solve(np.eye(16) - np.kron(move, move), noise.reshape(-1)).reshape(4, 4)
    to_u = np.hstack([-K, K @ (unit - L @ s.C)])
    whole = np.vstack([np.hstack([unit, zero]), to_u])
    joint = whole @ cov @ whole.T
    joint[2:, 2:] += K @ L @ s.observation_noise @ L.T @ K.T
    cost = np.block([[s.Q, s.N], [s.N.T, s.R]])
    assert -feedback.value == pytest.approx(np.trace(cost @ joint), rel=1e-8)
    assert feedback.filter_cov == pytest.approx(S - L @ s.C @ S, rel=1e-7)
    assert filter_covariances(s, 60)[-1] == pytest.approx(feedback.filter_cov, rel=1e-6)


def test_what_no_control_reaches_is_refused_only_if_it_costs():
    with pytest.raises(mk.errors.UnsupportedModel, match=r"eigenvalue 1\.1"):
        regulate(LinearQuadratic([[1.1, 0], [0, 0.5]], [[0], [1]], np.eye(2), 1), average=True)
    free = regulate(LinearQuadratic([[1.1, 0], [0, 0.5]], [[0], [1]], np.diag([0, 1]), 1), average=True)
    assert free.gain[0, 0] == pytest.approx(0.0)
    discounted = regulate(LinearQuadratic([[1.1, 0], [0, 0.5]], [[0], [1]], np.eye(2), 1), discount=0.8)
    assert np.isfinite(discounted.value)
    with pytest.raises(mk.errors.UnsupportedModel, match="does not tell"):
        regulate(
            LinearQuadratic(
                np.diag([1.1, 0.5]),
                np.eye(2),
                np.eye(2),
                np.eye(2),
                noise=np.eye(2),
                C=[[0, 1]],
                observation_noise=1,
            ),
            average=True,
        )
    with pytest.raises(mk.errors.InvalidArgument, match="every control costs"):
        LinearQuadratic(1, 1, 1, 0)
    with pytest.raises(mk.errors.InvalidArgument, match="negative eigenvalue"):
        LinearQuadratic(1, 1, -1, 1)
    with pytest.raises(mk.errors.InvalidArgument, match="exactly one"):
        regulate(LinearQuadratic(1, 1, 1, 1))


def test_an_agent_of_a_seen_state_takes_it_as_it_is():
    agent = regulate(LinearQuadratic(1, 1, 1, 1, final=1, initial_mean=[1.0]), horizon=2).stream()
    assert agent.act() == pytest.approx([-0.6])
    mean, cov = agent.update([0.5])
    assert (mean.tolist(), cov.tolist()) == ([0.5], [[0.0]])
    assert agent.act() == pytest.approx([-0.25])
    agent.update([0.0])
    with pytest.raises(mk.errors.InvalidArgument, match="steps 0 to 1"):
        agent.act()


def test_linear_control_is_not_the_posterior_of_the_controls_given_low_costs():
    # x1 = 1 + u0 + w, x2 = x1 + u1 + w: with noise the posterior believes that it will be kind
    u = regulate(LinearQuadratic(1, 1, 1, 1, final=1, initial_mean=[1.0]), horizon=2).act([1.0])
    assert u == pytest.approx([-0.6])
    for noise, mean in ((1e-8, -0.6), (0.1, -0.5626), (1.0, -0.3636)):
        bn = mk.BayesianNetwork()
        bn.add("u0", mk.LinearGaussian(0, {}, 1.0))
        bn.add("x1", mk.LinearGaussian(1, {"u0": 1}, noise))
        bn.add("u1", mk.LinearGaussian(0, {}, 1.0))
        bn.add("x2", mk.LinearGaussian(0, {"x1": 1, "u1": 1}, noise))
        for x in ("x1", "x2"):  # a cost of x squared weighs as much as a zero seen with variance 1
            bn.add(f"zero {x}", mk.LinearGaussian(0, {x: 1}, 1.0))
        found = bn.query("u0", given={"zero x1": 0.0, "zero x2": 0.0})
        assert float(found.mean()) == pytest.approx(mean, abs=6e-5)
