"""Processes of states that nobody observed, where their functions are not summed out, and that are drawn."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import markovia as mk
import markovia.distributions as dist
from markovia.inference.densities.program.compiled_functions import as_data
from markovia.inference.densities.program.program import program_of
from markovia.runtime.double_precision import x64

k = mk.covariances
X = np.array([0.3, -1.2, 2.0, 0.9])
COUNTS = np.array([1, 0, 3, 2])


def network(child):
    m = mk.BayesianNetwork()
    m.add("season", states=["no", "yes"], p=[0.7, 0.3])
    m.add(
        "f",
        lambda season: mk.GP(
            k.RBF(length=0.5 if season == "yes" else 2.0), mean=1.0 if season == "yes" else 0.0
        ),
    )
    m.add("y", child, plate="row")
    return m


@pytest.mark.slow
def test_a_whitened_function_is_realised_in_each_state():
    made = program_of(network(lambda f, x: dist.Poisson(jnp.exp(f(x))))._problem({"x": X, "y": COUNTS}))
    white = np.array([0.3, -1.0, 0.5, 0.2])
    total = []
    for p, length, mean in ((0.7, 2.0, 0.0), (0.3, 0.5, 1.0)):
        K = np.exp(-0.5 * ((X[:, None] - X) / length) ** 2)
        f = mean + np.linalg.cholesky(K + 1e-9 * np.eye(4)) @ white
        total.append(np.log(p) + stats.poisson.logpmf(COUNTS, np.exp(f)).sum())
    with x64():
        found = float(made.log_density(jnp.asarray(white), as_data(made.density)))
    assert found == pytest.approx(np.logaddexp(*total) + stats.norm.logpdf(white).sum(), abs=1e-7)
    assert "f whitened" in made.note
    assert "season summed out" in made.note


def test_functions_of_states_are_drawn_with_their_states():
    rows = network(lambda f, x: dist.Normal(f(x), 0.1)).sample(3000, inputs={"x": X}, seed=0)
    y, yes = rows["y"].to_numpy(), rows["season"].to_numpy() == "yes"
    for own, length, mean in ((~yes, 2.0, 0.0), (yes, 0.5, 1.0)):
        K = np.exp(-0.5 * ((X[:, None] - X) / length) ** 2) + 0.01 * np.eye(4)
        assert np.abs(y[own].mean(0) - mean).max() < 5 / np.sqrt(own.sum())
        assert np.abs(np.cov(y[own].T) - K).max() < 0.2
