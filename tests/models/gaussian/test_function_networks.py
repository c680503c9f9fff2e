"""Functions inside larger networks: deep and recurrent kernels, latent inputs, functions of functions, several outputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import markovia as mk
import markovia.distributions as dist
from markovia.inference.gaussian.exact_function import ExactFunction
from markovia.learning.processes import network_fit
from markovia.runtime.double_precision import x64

k = mk.covariances
N = 12
rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-2.0, 2.0, N))
Y = np.where(X < 0.0, np.sin(5.0 * X), 0.3 * X) + 0.1 * rng.normal(size=N)
ROWS = {"x": X, "y": Y}


def log_density(y, gram, noise):
    return multivariate_normal.logpdf(y, np.zeros(len(y)), gram + noise**2 * np.eye(len(y)))


def applied(module, rows):
    with x64():
        return np.asarray(jax.vmap(module)(jnp.asarray(rows)))


def evidence_and_slopes(monkeypatch, model, data):
    """Return the model after a fit, and the evidence's slopes at the start next to differences of it."""
    seen = {}

    def watched(function, start, **settings):
        seen["slope"] = function(start)[1]
        seen["far"] = [
            (function(start + step)[0] - function(start - step)[0]) / 2e-5
            for step in 1e-5 * np.eye(len(start))
        ]
        return minimise(function, start, **settings)

    minimise = network_fit.minimise
    monkeypatch.setattr(network_fit, "minimise", watched)
    return model.fit(data, seed=0, epochs=15), seen


# -- deep kernels ------------------------------------------------------------------------------------------------------


def deep_kernel():
    m = mk.BayesianNetwork()
    m.add("net", mk.Parameter(mk.networks.mlp(1, 2, hidden=3, layers=1)))
    m.add("noise", mk.Parameter(0.3, support="positive"))
    m.add("f", mk.GP(k.RBF(1.0)))
    m.add("y", lambda f, net, x, noise: dist.Normal(f(net(x[:, None])), noise), plate="row")
    return m


@pytest.mark.slow
def test_a_deep_kernel_learns_weights_and_noise_by_the_evidence(monkeypatch):
    m, seen = evidence_and_slopes(monkeypatch, deep_kernel(), ROWS)
    np.testing.assert_allclose(seen["slope"], seen["far"], rtol=1e-5, atol=1e-6)
    assert len(seen["slope"]) == 15  # fourteen weights and the noise
    net, noise = m.parameters["net"], float(m.parameters["noise"])
    features = applied(net, X[:, None])
    # the evidence and the posterior are those of a plain process on what the network makes of the inputs
    assert m.log_evidence(ROWS) == pytest.approx(log_density(Y, k.RBF(1.0).value(features), noise), abs=1e-9)
    assert m.log_evidence(ROWS) > log_density(Y, k.RBF(1.0).value(X), 0.3)
    post = m.query("f", given=ROWS)
    assert post.info.exact
    new = applied(net, np.array([[0.1], [1.5]]))
    plain = ExactFunction(features, Y, k.RBF(1.0), noise**2).at(new)
    np.testing.assert_allclose(post.at(new).mean(), plain.mean(), atol=1e-9)
    np.testing.assert_allclose(post.at(new).sd(), plain.sd(), atol=1e-9)


def test_with_the_identity_a_deep_kernel_is_the_plain_one():
    m = mk.BayesianNetwork()
    m.add("net", mk.Parameter(np.eye(1)))
    m.add("f", mk.GP(k.RBF(0.7)))
    m.add("y", lambda f, net, x: dist.Normal(f(x[:, None] @ net), 0.3), plate="row")
    assert m.log_evidence(ROWS) == pytest.approx(log_density(Y, k.RBF(0.7).value(X), 0.3), abs=1e-12)


@pytest.mark.slow
def test_a_recurrent_kernel_compares_the_last_states_of_sequences(monkeypatch):
    paths = rng.normal(size=(8, 4, 1)).cumsum(axis=1)
    y = np.sin(paths[:, :, 0].max(axis=1))
    m = mk.BayesianNetwork()
    m.add("memory", mk.Parameter(mk.networks.gru(1, 2, hidden=2)))
    m.add("f", mk.GP(k.Matern52(1.0)))
    m.add("y", lambda f, memory, path: dist.Normal(f(memory(path)[:, -1]), 0.2), plate="row")
    data = {"path": paths, "y": y}
    m, seen = evidence_and_slopes(monkeypatch, m, data)
    np.testing.assert_allclose(seen["slope"], seen["far"], rtol=1e-5, atol=1e-6)
    last = applied(m.parameters["memory"], paths)[:, -1]
    assert m.log_evidence(data) == pytest.approx(log_density(y, k.Matern52(1.0).value(last), 0.2), abs=1e-9)


# -- latent inputs -----------------------------------------------------------------------------------------------------


def outputs(covariance, places, d=3):
    """Return a network of d functions of the same latent inputs."""
    m = mk.BayesianNetwork()
    m.add("z", places, **({} if isinstance(places, mk.Parameter) else {"plate": "row"}))
    m.add("noise", mk.Parameter(0.5, support="positive"))
    for j in range(d):
        m.add(f"f{j}", mk.GP(covariance))
    m.add("y0", lambda f0, z, noise: dist.Normal(f0(z), noise), plate="row")
    m.add("y1", lambda f1, z, noise: dist.Normal(f1(z), noise), plate="row")
    m.add("y2", lambda f2, z, noise: dist.Normal(f2(z), noise), plate="row")
    return m


@pytest.mark.slow
def test_latent_inputs_of_linear_functions_are_probabilistic_principal_components():
    """The dual of Lawrence (2005): at the optimum the evidence is that of the eigenvalues of Y Y' / d."""
    n, d, q = 8, 3, 2
    rows = rng.normal(size=(n, q)) @ rng.normal(size=(q, d)) + 0.3 * rng.normal(size=(n, d))
    start = mk.Parameter(rng.normal(size=(n, q)))
    m = outputs(k.Linear(1.0), start).fit({f"y{j}": rows[:, j] for j in range(d)}, seed=0)
    values = np.sort(np.linalg.eigvalsh(rows @ rows.T / d))[::-1]
    left = values[q:].sum() / (n - q)
    best = -0.5 * d * (n * np.log(2.0 * np.pi) + np.log(values[:q]).sum() + (n - q) * np.log(left) + n)
    assert m.fit_.log_likelihood == pytest.approx(best, abs=1e-5)
    assert float(m.parameters["noise"]) == pytest.approx(left**0.5, rel=1e-3)
    z = np.asarray(m.parameters["z"])
    np.testing.assert_allclose(
        np.sort(np.linalg.eigvalsh(z @ z.T))[::-1][:q], values[:q] - left, rtol=1e-3
    )  # the axes may be turned


@pytest.mark.slow
def test_latent_inputs_of_smooth_functions_unroll_a_curve():
    t = np.linspace(-2.0, 2.0, 20)
    rows = np.column_stack([np.sin(t), np.cos(t), 0.5 * t])
    rows += 0.05 * rng.normal(size=rows.shape)
    centred = rows - rows.mean(axis=0)
    u, _, _ = np.linalg.svd(centred, full_matrices=False)
    m = outputs(k.RBF(1.0), mk.Parameter(u[:, 0] * np.sqrt(20.0))).fit(
        {f"y{j}": rows[:, j] for j in range(3)}, seed=0
    )
    assert abs(np.corrcoef(np.asarray(m.parameters["z"]), t)[0, 1]) > 0.99


@pytest.mark.slow
def test_an_input_that_was_not_seen_has_a_posterior():
    """The function is known from other rows; where was the last one? By a fine grid of places."""
    x, y = np.linspace(-2.0, 2.0, 9), np.tanh(np.linspace(-2.0, 2.0, 9))
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(k.RBF(1.0)))
    m.add("z", dist.Normal(0, 0.6))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.1), plate="row")
    m.add("late", lambda f, z: dist.Normal(f(z), 0.1))
    given = {"x": x, "y": y, "late": 0.5}
    post = m.query("z", given=given, engine=mk.engines.NUTS(draws=400, warmup=300, seed=0))
    grid = np.linspace(-4.0, 4.0, 1601)
    at = ExactFunction(x, y, k.RBF(1.0), 0.01).at(grid)
    logs = norm.logpdf(grid, 0.0, 0.6) + norm.logpdf(0.5, at.mean(), np.sqrt(at.sd() ** 2 + 0.01))
    p = np.exp(logs - logsumexp(logs))
    mean = p @ grid
    sd = np.sqrt(p @ (grid - mean) ** 2)
    assert post.mean() == pytest.approx(mean, abs=0.15 * sd)
    assert post.sd() == pytest.approx(sd, rel=0.15)


# -- functions of functions ------------------------------------------------------------------------------------------------


def deep_process(noise=0.1):
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(k.RBF(1.0)))
    m.add("g", mk.GP(k.RBF(0.5)))
    m.add("y", lambda f, g, x: dist.Normal(g(f(x)), noise), plate="row")
    return m


@pytest.mark.slow
def test_a_deep_process_whose_inner_function_is_given_is_a_plain_one():
    done = deep_process().do(f=jnp.tanh)
    assert done.log_evidence(ROWS) == pytest.approx(
        log_density(Y, k.RBF(0.5).value(np.tanh(X)), 0.1), abs=1e-9
    )
    post = done.query("g", given=ROWS)
    plain = ExactFunction(np.tanh(X), Y, k.RBF(0.5), 0.01).at([0.2, -0.7])
    np.testing.assert_allclose(post.at([0.2, -0.7]).mean(), plain.mean(), atol=1e-9)


@pytest.mark.slow
def test_two_places_of_a_deep_process_agree_with_quadrature():
    """Only the distance of f's two values counts, whose law is known; g is summed out by hand."""
    x, y = np.array([0.0, 0.5]), np.array([0.6, -0.1])
    post = deep_process(0.5).query(
        "f", given={"x": x, "y": y}, engine=mk.engines.NUTS(draws=1000, warmup=500, seed=0)
    )
    drawn = post.at(x).sample(4000, seed=0)["f"]
    apart = np.sqrt(2.0 - 2.0 * np.exp(-0.125))
    grid = np.linspace(-4.0, 4.0, 2001)
    between = np.exp(-0.5 * (grid / 0.5) ** 2)
    logs = norm.logpdf(grid, 0.0, apart) + np.array(
        [multivariate_normal.logpdf(y, [0.0, 0.0], [[1.25, c], [c, 1.25]]) for c in between]
    )
    p = np.exp(logs - logsumexp(logs))
    assert post.info.converged
    found = np.abs(drawn[:, 0] - drawn[:, 1])
    assert found.mean() == pytest.approx(p @ np.abs(grid), abs=0.03)


# -- several outputs, and functions drawn whole -----------------------------------------------------------------------------


def test_a_sum_of_coregionalised_covariances_is_the_linear_model_of_them():
    """Two latent functions, each with a matrix of its own over the outputs; outputs are measured at places of their own."""
    smooth, rough = np.array([[1.0, 0.5], [0.5, 2.0]]), np.array([[0.3, -0.2], [-0.2, 0.4]])
    which = np.arange(N) % 2
    covariance = k.RBF(1.1, columns=[0]) * k.Index(smooth, column=1) + k.Matern32(0.4, columns=[0]) * k.Index(
        rough, column=1
    )
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(covariance))
    m.add("y", lambda f, x, of: dist.Normal(f(x, of), 0.3), plate="row")
    given = {**ROWS, "of": which}
    pick = np.ix_(which, which)
    gram = smooth[pick] * k.RBF(1.1).value(X) + rough[pick] * k.Matern32(0.4).value(X)
    assert m.log_evidence(given) == pytest.approx(log_density(Y, gram, 0.3), abs=1e-10)
    other = m.query("f", given=given).at([[0.0, 1.0]])
    cross = (
        smooth[1, which] * k.RBF(1.1).value([0.0], X)[0]
        + rough[1, which] * k.Matern32(0.4).value([0.0], X)[0]
    )
    solved = np.linalg.solve(gram + 0.09 * np.eye(N), np.column_stack([Y, cross]))
    assert other.mean()[0] == pytest.approx(cross @ solved[:, 0])
    assert other.sd()[0] ** 2 == pytest.approx(2.4 - cross @ solved[:, 1])


def test_functions_that_are_drawn_whole_have_the_posterior_and_stay_themselves():
    post = ExactFunction(X, Y, k.RBF(0.7), 0.01)
    f = post.draws(4000, seed=0)
    new = np.array([[-1.0], [0.3], [3.0]])
    first = f(new)
    np.testing.assert_allclose(first.mean(axis=0), post.at(new).mean(), atol=0.05)
    np.testing.assert_allclose(np.cov(first.T), post.at(new).cov(), atol=0.08)
    np.testing.assert_array_equal(f(new[::-1])[:, ::-1], first)
    # each is one smooth function: its highest place can be looked for
    fine = np.linspace(-2.0, 2.0, 200)[:, None]
    assert np.abs(np.diff(f(fine)[:50], axis=1)).max() < 0.25
