"""Bounds of models with guides, where the evidence is known."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.elbo import ELBO
from markovia.optimise.row_batches import Batch
from markovia.runtime.double_precision import x64

W = np.array([[1.0, -0.5, 0.3], [0.2, 0.8, -1.0]])
X = np.random.default_rng(0).normal(size=(7, 3))
SD = 0.6


def linear(scale=1.0, shift=0.0):
    """A linear Gaussian model whose guide is the posterior, or one that is off by some factor and shift."""
    m = mk.BayesianNetwork()
    cov = np.linalg.inv(np.eye(2) + W @ W.T / SD**2)
    m.add("W", mk.Parameter(W))
    m.add("gain", mk.Parameter(W.T @ cov / SD**2))
    m.add("root", mk.Parameter(scale * np.linalg.cholesky(cov)))
    m.add("z", dist.Normal(0, 1), size=2, plate="row")
    m.add("x", lambda z, W: dist.Normal(z @ W, 0.6), plate="row")
    m.guide("z", lambda x, gain, root: dist.MultivariateNormal(x @ gain + shift, scale_tril=root))
    return m


def program_of(m, given):
    problem = m._problem(given, "auto", None, "impute")
    rows = RowwiseModel(problem, m._guides)
    return rows, {n: p.numbers for n, p in problem.inputs.items() if hasattr(p, "numbers")}


def weights_of(rows, parameters, n, seed=0):
    """Return n draws of the log weights of all rows."""
    with x64():
        data = {k: jnp.asarray(v) for k, v in rows.rows.items()}
        draw = jax.jit(jax.vmap(lambda key: rows.log_weights(parameters, data, key)))
        return np.asarray(draw(jax.random.split(jax.random.PRNGKey(seed), n)))


def bounds_of(rows, parameters, n, weight=None, seed=1):
    """Return n draws of the bound of all rows."""
    with x64():
        data = {k: jnp.asarray(v) for k, v in rows.rows.items()}
        weight = jnp.ones(rows.n_rows) if weight is None else jnp.asarray(weight)
        draw = jax.jit(jax.vmap(lambda key: rows.bound(parameters, data, weight, key)))
        return np.asarray(draw(jax.random.split(jax.random.PRNGKey(seed), n)))


def exact_rows(x):
    return multivariate_normal(np.zeros(3), W.T @ W + SD**2 * np.eye(3)).logpdf(x)


def test_with_the_posterior_as_guide_every_draw_of_the_bound_is_the_evidence():
    rows, parameters = program_of(linear(), {"x": X})
    np.testing.assert_allclose(weights_of(rows, parameters, 2), [exact_rows(X)] * 2, atol=1e-10)
    np.testing.assert_allclose(bounds_of(rows, parameters, 2), exact_rows(X).sum(), atol=1e-8)


def test_rows_that_only_fill_up_a_batch_do_not_count():
    rows, parameters = program_of(linear(), {"x": X})
    bound = bounds_of(rows, parameters, 1, [1.0, 1, 0, 1, 0, 0, 1])
    assert abs(bound[0] - exact_rows(X)[[0, 1, 3, 6]].sum()) < 1e-8


def test_bounds_are_in_order_and_below_the_evidence():
    rows, parameters = program_of(linear(1.6, 0.3), {"x": X})
    logs, closed = weights_of(rows, parameters, 4000), bounds_of(rows, parameters, 400)
    elbo = logs.mean(0).sum()
    ten = (logsumexp(logs.reshape(-1, 10, 7), axis=1) - np.log(10)).mean(0).sum()
    many = (logsumexp(logs, axis=0) - np.log(4000)).sum()
    assert elbo < ten - 0.5
    assert ten < many
    assert abs(many - exact_rows(X).sum()) < 0.1
    # the same bound with its divergence in closed form: as large on average, and less noisy
    error = np.hypot(np.std(closed) / np.sqrt(400), logs.sum(1).std() / np.sqrt(4000))
    assert abs(np.mean(closed) - elbo) < 4 * error


def mixture(guided_class):
    m = mk.BayesianNetwork()
    m.add("means", mk.Parameter(np.array([[-1.0, 0.5], [1.0, 0.0], [0.0, 2.0]])))
    m.add("logits", mk.Parameter(np.array([0.3, -0.2, 0.1])))
    m.add("c", lambda logits: dist.Categorical(logits=logits), plate="row")
    m.add("z", lambda c, means: dist.Normal(means[c], 1).to_event(1), plate="row")
    m.add("x", lambda z: dist.Normal(z, 0.5).to_event(1), plate="row")
    if guided_class:  # the posterior of z given x and c
        m.guide("z", lambda x, c, means: dist.Normal((means[c] + 4 * x) / 5, 0.2**0.5).to_event(1))
    else:
        m.guide("z", lambda x: dist.Normal(0.8 * x, 0.6).to_event(1))
    return m


def mixture_evidence(x, labels=None):
    means = np.array([[-1.0, 0.5], [1.0, 0.0], [0.0, 2.0]])
    logits = np.array([0.3, -0.2, 0.1])
    logs = (
        logits
        - logsumexp(logits)
        + np.stack([multivariate_normal(mean, 1.25 * np.eye(2)).logpdf(x) for mean in means], axis=1)
    )
    if labels is not None:
        known = labels[:, None] >= 0
        logs = np.where(known & (labels[:, None] != np.arange(3)), -np.inf, logs)
    return logsumexp(logs, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [None, np.array([0, -1, 2, -1, 1])])
def test_states_that_a_guide_looks_at_are_summed_around_it(labels):
    x = np.random.default_rng(1).normal(size=(5, 2))
    given = {"x": x} if labels is None else {"x": x, "c": np.where(labels < 0, np.nan, labels)}
    rows, parameters = program_of(mixture(True), given)
    assert rows.around == {"c": 3}
    np.testing.assert_allclose(weights_of(rows, parameters, 1)[0], mixture_evidence(x, labels), atol=1e-10)
    assert abs(bounds_of(rows, parameters, 1)[0] - mixture_evidence(x, labels).sum()) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("labels", [None, np.array([0, -1, 2, -1, 1])])
def test_states_without_a_guide_are_eliminated_under_log_q(labels):
    x = np.random.default_rng(1).normal(size=(5, 2))
    given = {"x": x} if labels is None else {"x": x, "c": np.where(labels < 0, np.nan, labels)}
    rows, parameters = program_of(mixture(False), given)
    logs, bounds = weights_of(rows, parameters, 20_000), bounds_of(rows, parameters, 2000)
    exact = mixture_evidence(x, labels)
    np.testing.assert_allclose(logsumexp(logs, axis=0) - np.log(len(logs)), exact, atol=0.05)
    assert logs.mean(0).sum() < exact.sum()
    assert abs(np.mean(bounds) - logs.mean(0).sum()) < 0.1


def test_the_gradient_of_a_bound_is_that_of_differences():
    rows, parameters = program_of(linear(1.3, 0.2), {"x": X})
    with x64():
        data = {k: jnp.asarray(v) for k, v in rows.rows.items()}

        @jax.jit
        def bound(w):
            return rows.bound({**parameters, "W": w}, data, jnp.ones(7), jax.random.PRNGKey(3))

        slope = np.asarray(jax.grad(bound)(jnp.asarray(W)))
        for i, j in product(range(2), range(3)):
            step = np.zeros((2, 3))
            step[i, j] = 1e-5
            difference = (bound(jnp.asarray(W + step)) - bound(jnp.asarray(W - step))) / 2e-5
            assert abs(slope[i, j] - difference) < 1e-6 * (1 + abs(difference))


def test_missing_entries_do_not_count():
    x = X.copy()
    x[0, 1] = x[2, 0] = x[2, 2] = np.nan
    m = mk.BayesianNetwork()
    m.add("W", mk.Parameter(W))
    m.add("x", lambda W: dist.Normal(jnp.ones(2) @ W + jnp.zeros((1, 3)), 0.6), plate="row")
    seen = m.log_evidence(given={"x": x}, by="row")
    logs = -0.5 * ((x - np.ones(2) @ W) / SD) ** 2 - np.log(SD * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(seen, np.nansum(logs, axis=1), atol=1e-10)


@pytest.mark.slow
def test_the_target_term_is_the_log_probability_of_the_label():
    x = np.random.default_rng(1).normal(size=(5, 2))
    labels = np.array([0, -1, 2, -1, 1])
    rows, parameters = program_of(mixture(True), {"x": x, "c": np.where(labels < 0, np.nan, labels)})
    with x64():
        batch = Batch({k: jnp.asarray(v) for k, v in rows.rows.items()}, jnp.ones(5))
        players = ELBO(target="c", target_weight=3.0).setup(rows, lambda free: free, ()).players
        loss, _ = players[0].loss(parameters, None, jax.random.PRNGKey(0), batch)
    known, free = mixture_evidence(x, labels), mixture_evidence(x)
    assert abs(-5 * loss - (known + 3 * (known - free)).sum()) < 1e-8
    with pytest.raises(InvalidArgument, match="observed in some rows only"):
        ELBO(target="x").setup(rows, lambda free: free, ())


@pytest.mark.slow
def test_the_bound_is_a_game_with_a_perfect_critic_but_for_a_constant():
    """Real rows are explained as if the model had made them: the divergences from p(z, y | x) have the bound's gradient."""
    rng = np.random.default_rng(3)
    down, up, seen = rng.normal(size=(2, 3)), rng.normal(size=(3, 2)), rng.dirichlet(np.ones(3))
    m = mk.BayesianNetwork()
    m.add("down", mk.Parameter(down))
    m.add("up", mk.Parameter(up))
    m.add("z", lambda: dist.Categorical(logits=jnp.zeros(2)), plate="row")
    m.add("x", lambda z, down: dist.Categorical(logits=down[z]), plate="row")
    m.guide("z", lambda x, up: dist.Categorical(logits=up[x]))
    rows, _ = program_of(m, {"x": np.arange(3)})

    def bound(down):
        parameters, data = {"down": down, "up": jnp.asarray(up)}, {"x": jnp.arange(3)}
        total = 0.0
        for k in range(2):
            values = {"z": jnp.full(3, k), "x": jnp.arange(3)}
            log_q = rows.guide_log_probs(parameters, data, values)
            total += jnp.exp(log_q) * (rows.joint_log_probs(parameters, data, values) - log_q)
        return jnp.sum(jnp.asarray(seen) * total)

    def game(down):
        # x is a row with the mark of its maker; the critic reads the mark, and its reverse calls real rows made
        log_x = jax.nn.log_softmax(
            down
        )  # given z, where the model made it (y = 0); else rows are as in the data
        q = jax.nn.softmax(jnp.asarray(up), axis=1)
        real = jnp.sum(q * (log_x.T + jnp.log(0.5) - jnp.log(q)), axis=1) + jnp.log(0.5)
        made = jnp.log(jnp.asarray(seen)) + jnp.log(0.5)
        first = jnp.exp(jax.lax.stop_gradient(log_x)).mean(axis=0)
        return 2 * (0.5 * jnp.sum(jnp.asarray(seen) * real) + 0.5 * jnp.sum(first * made))

    with x64():
        at = jnp.asarray(down)
        np.testing.assert_allclose(jax.grad(bound)(at), jax.grad(game)(at), atol=1e-12)
        constant = np.log(0.5) + np.sum(
            np.exp(np.asarray(jax.nn.log_softmax(at))).mean(axis=0) * np.log(seen / 2)
        )
        assert float(game(at) - bound(at)) == pytest.approx(constant, abs=1e-12)
