"""Integrators and one-step kernels on plain functions: energies, volume, reversibility, stationary distributions."""

import math
from functools import partial

import numpy as np
import pytest

import markovia as mk
from markovia.inference.markov_chains.diagnostics import mcse

MC = mk.monte_carlo


def oscillator(q):
    return -q


def bent(q):
    """The gradient of a smooth density that is not normal."""
    return np.array([-q[0] + 0.5 * math.sin(q[1]), 0.5 * q[0] * math.cos(q[1]) - q[1] ** 3])


def bent_density(q):
    return -0.5 * q[0] ** 2 + 0.5 * q[0] * math.sin(q[1]) - 0.25 * q[1] ** 4


def gaussian(x):
    """N((1, -1), [[1, 0.6], [0.6, 1]]) without its constant."""
    a, b = x[0] - 1.0, x[1] + 1.0
    return -0.5 * (a * a - 1.2 * a * b + b * b) / 0.64


def test_leapfrog_keeps_the_energy_and_euler_does_not():
    q, p = MC.leapfrog(1.0, 0.0, oscillator, 0.1, 1000)
    assert (q**2 + p**2) / 2 == pytest.approx(0.49972392, abs=1e-8)
    energies = []
    q, p = np.array(1.0), np.array(0.0)
    for _ in range(1000):
        q, p = MC.leapfrog(q, p, oscillator, 0.1)
        energies.append(MC.total_energy(lambda q: -0.5 * q**2, q, p))
    assert max(abs(e - 0.5) for e in energies) < 0.0013  # about step^2 / 8 at most, never drifting
    q, p = MC.euler(1.0, 0.0, oscillator, 0.1, 1000)
    assert (q**2 + p**2) / 2 == pytest.approx(0.5 * 1.01**1000, rel=1e-9)
    assert (q**2 + p**2) / 2 == pytest.approx(10479.578, abs=1e-3)


def jacobian(integrate, q, p, step, steps):
    start, found = np.concatenate([q, p]), []
    for i in range(4):
        ends = []
        for sign in (1, -1):
            moved = start.copy()
            moved[i] += sign * 1e-6
            ends.append(np.concatenate(integrate(moved[:2], moved[2:], bent, step, steps)))
        found.append((ends[0] - ends[1]) / 2e-6)
    return np.array(found).T


def test_leapfrog_keeps_volume_and_runs_backwards():
    q, p = np.array([0.4, -0.7]), np.array([1.1, 0.3])
    assert np.linalg.det(jacobian(MC.leapfrog, q, p, 0.2, 15)) == pytest.approx(1.0, abs=1e-7)
    assert abs(np.linalg.det(jacobian(MC.euler, q, p, 0.2, 15)) - 1.0) > 0.1
    there, end = MC.leapfrog(q, p, bent, 0.2, 15)
    back, turned = MC.leapfrog(there, -end, bent, 0.2, 15)
    assert np.allclose(back, q, atol=1e-12)
    assert np.allclose(turned, -p, atol=1e-12)
    again = MC.leapfrog(there, end, bent, -0.2, 15)
    assert np.allclose(again, (q, p), atol=1e-12)


def test_one_euler_step_of_the_oscillator_has_a_determinant_of_one_plus_step_squared():
    columns = [np.array(MC.euler(*start, oscillator, 0.1)) for start in ((1.0, 0.0), (0.0, 1.0))]
    assert np.linalg.det(np.array(columns)) == pytest.approx(1.01)


def test_a_mass_slows_the_position():
    q, p = MC.leapfrog(0.0, 1.0, lambda q: 0.0 * q, 0.5, 2, mass=4.0)
    assert (q, p) == (0.25, 1.0)


def test_gradients_come_from_jax_or_from_differences():
    x = np.array([0.4, -0.7])
    assert np.allclose(MC.gradient_of(bent_density)(x), bent(x), atol=1e-8)  # math.sin cannot be traced

    def traced(q):
        import jax.numpy as jnp

        return -0.5 * q[0] ** 2 + 0.5 * q[0] * jnp.sin(q[1]) - 0.25 * q[1] ** 4

    assert np.allclose(MC.gradient_of(traced)(x), bent(x), atol=1e-14)


KERNELS = {
    "random walk": partial(MC.random_walk_step, gaussian, scale=1.5),
    "mala": partial(MC.mala_step, gaussian, step=0.8),
    "hmc": partial(MC.hmc_step, gaussian, step=0.35, steps=5),
    "slice": partial(MC.slice_step, gaussian, width=2.0),
    "independence": partial(
        MC.independence_step,
        gaussian,
        draw=lambda rng: 1.5 * rng.standard_normal(2),  # off the target's centre
        log_proposal=lambda x: -0.5 * (x**2).sum() / 1.5**2,
    ),
}


def exact_slope(x):
    a, b = x[0] - 1.0, x[1] + 1.0
    return -np.array([a - 0.6 * b, b - 0.6 * a]) / 0.64


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_keeps_its_target(name):
    step = KERNELS[name]
    if name in ("mala", "hmc"):
        step = partial(step, gradient=exact_slope)
    n = 30_000 if name == "independence" else 8_000
    chain = MC.run_chain(step, [1.0, -1.0], n, seed=1, burn_in=100)
    x = chain.draws
    gaps = x - np.array([1.0, -1.0])
    for values, exact in (
        (x[:, 0], 1.0),
        (x[:, 1], -1.0),
        (gaps[:, 0] ** 2, 1.0),
        (gaps[:, 1] ** 2, 1.0),
        (gaps[:, 0] * gaps[:, 1], 0.6),
    ):
        assert abs(values.mean() - exact) < 4.5 * mcse(values) < 0.5
    assert 0.2 < chain.acceptance <= 1.0
    stays = (np.diff(x, axis=0) == 0.0).all(axis=1).mean()
    assert (chain.acceptance == 1.0) == (stays == 0.0) == (name == "slice")


def test_moves_are_reversible():
    """Flow from a half plane to the other equals the flow back, for kernels that reject."""
    for name in ("mala", "hmc", "independence"):
        step = partial(KERNELS[name], gradient=exact_slope) if name != "independence" else KERNELS[name]
        x = MC.run_chain(step, [1.0, -1.0], 6_000, seed=3, burn_in=50).draws[:, 0]
        pairs = (x[:-1] < 1.5) & (x[1:] > 2.0), (x[1:] < 1.5) & (x[:-1] > 2.0)
        assert abs(pairs[0].mean() - pairs[1].mean()) < 4 * math.sqrt(pairs[0].mean() / len(x))


@pytest.mark.parametrize("eps", [0.5, 1.5])
def test_unadjusted_langevin_steps_widen_a_normal_target_by_what_theory_says(eps):
    step = partial(MC.langevin_step, lambda x: -0.5 * x[0] ** 2, step=eps, gradient=lambda x: -x)
    squares = MC.run_chain(step, [0.0], 30_000, seed=2).draws[:, 0] ** 2
    exact = 1.0 / (1.0 - eps / 4.0)
    assert abs(squares.mean() - exact) < 4.5 * mcse(squares) < 0.15 * exact
    corrected = partial(MC.mala_step, lambda x: -0.5 * x[0] ** 2, step=eps, gradient=lambda x: -x)
    squares = MC.run_chain(corrected, [0.0], 30_000, seed=2).draws[:, 0] ** 2
    assert abs(squares.mean() - 1.0) < 4.5 * mcse(squares) < 0.15


def test_the_acceptance_of_a_random_walk_is_the_known_one():
    """On N(0, 1) with proposals of scale s the expected acceptance is (2 / pi) arctan(2 / s)."""
    step = partial(MC.random_walk_step, lambda x: -0.5 * x[0] ** 2, scale=2.4)
    chain = MC.run_chain(step, [0.0], 40_000, seed=0)
    assert chain.acceptance == pytest.approx(2 / math.pi * math.atan(2 / 2.4), abs=0.012)


def test_a_variational_proposal_is_corrected_and_jumps():
    def skewed(x):
        return 3.0 * x[0] - math.exp(x[0])  # the log of a gamma variable of shape 3

    chain = MC.variational_mcmc(skewed, [0.0], 20_000, seed=0, steps=400)
    values = np.exp(chain.draws[:, 0])
    assert abs(values.mean() - 3.0) < 4.5 * mcse(values) < 0.4
    far = MC.variational_mcmc(skewed, [0.0], 4_000, seed=0, steps=400, local=0.0)
    assert far.acceptance > 0.6  # the fit is nearly right
    with pytest.raises(mk.errors.InvalidArgument, match="local="):
        MC.variational_mcmc(skewed, [0.0], 10, local=2.0)


def test_bad_input_is_told():
    with pytest.raises(mk.errors.InvalidArgument, match=r"write \[0.0\]"):
        MC.run_chain(KERNELS["slice"], 0.0, 10)
    with pytest.raises(mk.errors.InvalidArgument, match="step="):
        MC.mala_step(gaussian, [0.0, 0.0], np.random.default_rng(0), step=-1.0)
    with pytest.raises(mk.errors.InvalidArgument, match="width="):
        MC.slice_step(gaussian, [0.0, 0.0], np.random.default_rng(0), width=0.0)
