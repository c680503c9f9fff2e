"""Draws of whole models: moments that are known, step by step along chains."""

import jax
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.inference.densities.program.program import program_of
from markovia.inference.densities.program.simulation import simulate
from markovia.runtime.double_precision import x64


def draws_of(model, given=None, n=20_000, known=None):
    program = program_of(model._problem(given))
    with x64():
        keys = jax.random.split(jax.random.PRNGKey(0), n)
        found = jax.jit(jax.vmap(lambda k: simulate(k, program.nodes, known or {}, program.density.data)))(
            keys
        )
    return {k: np.asarray(v) for k, v in found.items()}


def test_an_autoregression_has_the_variances_of_its_recursion():
    m = mk.BayesianNetwork()
    m.add(
        "x", lambda before: dist.Normal(0.5 * before, 1.0), plate={"t": 4}, previous={"before": "x"},
        first=dist.Normal(0, 2.0),
    )  # fmt: skip
    x = draws_of(m)["x"]
    wanted = [4.0]
    for _ in range(3):
        wanted.append(0.25 * wanted[-1] + 1.0)
    np.testing.assert_allclose(x.var(axis=0), wanted, rtol=5 * np.sqrt(2 / 20_000))
    assert np.cov(x[:, 0], x[:, 1])[0, 1] == pytest.approx(2.0, rel=0.06)


def test_a_node_may_look_back_two_steps():
    m = mk.BayesianNetwork()
    m.add(
        "x", lambda one, two: dist.Normal(0.1 * one + two, 1e-9), plate={"t": 6},
        previous={"one": "x", "two": ("x", 2)}, first=dist.Normal(0, 1),
    )  # fmt: skip
    x = draws_of(m, n=50)["x"]
    np.testing.assert_allclose(x[:, 2:], 0.1 * x[:, 1:-1] + x[:, :-2], atol=1e-7)
    assert np.abs(x[:, 0] - x[:, 1]).min() > 0


def test_nodes_that_look_back_at_each_other_are_drawn_together():
    m = mk.BayesianNetwork()
    m.add("s", lambda yb: 1.0 + 0.5 * abs(yb), plate={"t": 3}, previous={"yb": "y"}, first=lambda s1: s1)
    m.add("y", lambda s: dist.Normal(0, s), plate="t")
    found = draws_of(m, {"s1": 2.0})
    np.testing.assert_allclose(found["s"][:, 1:], 1.0 + 0.5 * np.abs(found["y"][:, :-1]), rtol=1e-12)
    assert (found["s"][:, 0] == 2.0).all()
    assert found["y"][:, 0].std() == pytest.approx(2.0, rel=0.03)


def test_known_values_stay_and_children_follow():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("z", dist.Bernoulli(0.25), plate={"row": 3})
    m.add("y", lambda mu, z: dist.Normal(mu + 10 * z, 1.0), plate="row")
    found = draws_of(m, known={"mu": np.float64(7.0)})
    assert (found["mu"] == 7.0).all()
    assert found["z"].mean() == pytest.approx(0.25, abs=0.01)
    assert found["y"][found["z"] == 1].mean() == pytest.approx(17.0, abs=0.05)
