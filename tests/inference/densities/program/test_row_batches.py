"""Plates of rows: which models have them, and that a few rows have their share of the likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.inference.densities.program.program import program_of
from markovia.runtime.double_precision import x64

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X @ np.array([1.0, -2.0, 0.5]) + RNG.normal(size=40)


def regression():
    model = mk.BayesianNetwork()
    model.add("a", dist.Normal(0, 10))
    model.add("w", dist.Normal(0, 10), plate={"k": 3})
    model.add("y", lambda X, w, a: dist.Normal(X @ w + a, 2.0), plate="row")
    return model


def program(model, given):
    return program_of(model._problem(given, missing="refuse"), "auto")


def check_shares(found, n):
    """Every row's own log likelihood, added up over some rows, is that of a batch."""
    rows = found.density.rows()
    assert rows.count == n
    with x64():
        data = jax.tree.map(jnp.asarray, found.density.data)
        u = found.density.start(jax.random.PRNGKey(3), data)
        at = np.array([3, 1, 1, 5])

        @jax.jit
        def numbers(u, data):
            each = jax.vmap(lambda i: rows.log_likelihood(u, data, i[None]))(jnp.arange(n))
            return each, rows.log_likelihood(u, data, jnp.asarray(at)), found.density.log_likelihood(u, data)

        each, some, whole = map(np.asarray, numbers(u, data))
        assert some == pytest.approx(each[at].sum())
        assert each.sum() == pytest.approx(whole)
    return u, each


@pytest.mark.slow
def test_a_regression_has_rows_and_constants_go_with_them():
    found = program(regression(), {"X": X, "y": Y})
    u, each = check_shares(found, 40)
    exact = (
        -0.5 * ((Y - X @ np.asarray(u[1:]) - float(u[0])) / 2.0) ** 2 - np.log(2.0) - 0.5 * np.log(2 * np.pi)
    )
    assert np.allclose(each, exact)


@pytest.mark.slow
def test_states_of_each_row_are_summed_out_in_their_row():
    model = mk.BayesianNetwork()
    model.add("m", dist.Normal(0, 5), plate={"k": 2})
    model.add("z", dist.Categorical(jnp.array([0.4, 0.6])), plate="row")
    model.add("y", lambda m, z: dist.Normal(m[z], 1.0), plate="row")
    check_shares(program(model, {"y": Y[:12]}), 12)


def test_a_plate_with_numbers_to_infer_has_no_rows():
    model = mk.BayesianNetwork()
    model.add("tau", dist.HalfNormal(1))
    model.add("theta", lambda tau: dist.Normal(0, tau), plate="row")
    model.add("y", lambda theta: dist.Normal(theta, 1), plate="row")
    assert program(model, {"y": Y}).density.rows() is None
    with pytest.raises(mk.errors.InvalidArgument, match="rows of a plate"):
        model.query("tau", given={"y": Y}, engine=mk.engines.ADVI(batch=5))


def test_a_switch_that_all_rows_share_makes_no_sum_over_rows():
    model = mk.BayesianNetwork()
    model.add("mu", dist.Normal(0, 3))
    model.add("z", states=["a", "b"], p=[0.3, 0.7])
    model.add("y", lambda mu, z: dist.Normal(mu + 2.0 * z, 1.0), plate="row")
    assert program(model, {"y": Y}).density.rows() is None


def test_a_table_that_is_looked_up_is_no_column_of_rows():
    model = mk.BayesianNetwork()
    model.add("a", dist.Normal(0, 10))
    model.add("y", lambda a, table, g: dist.Normal(a + table[g], 1.0), plate="row")
    given = {"y": Y, "table": RNG.normal(size=40), "g": RNG.integers(40, size=40)}
    assert program(model, given).density.rows() is None


@pytest.mark.slow
def test_batches_of_a_model_have_the_posterior_of_all_rows():
    design = np.c_[np.ones(40), X]
    precision = design.T @ design / 4.0 + np.eye(4) / 100.0
    mean, sd = np.linalg.solve(precision, design.T @ Y / 4.0), np.sqrt(np.diag(np.linalg.inv(precision)))
    engine = mk.engines.SGLD(draws=1000, batch=8, step_size=0.05, seed=1)
    post = regression().query(["a", "w"], given={"X": X, "y": Y}, engine=engine)
    assert np.all(np.abs(np.r_[post.mean("a"), post.mean("w")] - mean) < 0.2 * sd)
    assert np.all(np.abs(np.r_[post.sd("a"), post.sd("w")] / sd - 1.0) < 0.12)
