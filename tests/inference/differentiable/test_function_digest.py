"""Which questions may share compiled code: a difference that code depends on must show in the digest."""

import jax
import numpy as np

import markovia as mk
import markovia.distributions as dist
from markovia.inference.differentiable.program import program_of
from markovia.models.graphical.continuous_verbs import problem_of

FACTOR = 1.0


def key(model, given, reparameterize="auto", missing="refuse"):
    return program_of(problem_of(model, given, missing), reparameterize).density.key


def schools():
    m = mk.BayesianNetwork()
    m.add("tau", dist.HalfCauchy(5))
    m.add("theta", lambda tau: dist.Normal(0, tau), plate="school")
    m.add("y", lambda theta: dist.Normal(theta, 1.0), plate="school")
    return m


def test_new_data_of_one_shape_share_code():
    assert key(schools(), {"y": np.zeros(3)}) == key(schools(), {"y": np.ones(3)})
    assert key(schools(), {"y": np.zeros(3)}) != key(schools(), {"y": np.zeros(4)})


def test_centred_and_non_centred_code_differ():
    data = {"y": np.zeros(3)}
    assert key(schools(), data, "none") != key(schools(), data, "all")


def test_code_for_missing_entries_differs_where_others_are_missing():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("x", lambda mu: dist.Normal(mu, 1), plate="row")
    m.add("y", lambda x: dist.StudentT(4, x, 1.0), plate="row")
    y = np.array([1.0, 2.0, 3.0])
    first, last = np.array([np.nan, 2.0, 3.0]), np.array([1.0, 2.0, np.nan])
    assert key(m, {"x": first, "y": y}, missing="impute") != key(m, {"x": last, "y": y}, missing="impute")


def test_a_global_that_an_inner_function_reads_is_part_of_the_code(monkeypatch):
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("y", lambda mu: dist.Normal(jax.vmap(lambda t: t * FACTOR)(mu * np.ones(3)), 1.0), plate="row")
    before = key(m, {"y": np.zeros(3)})
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert key(m, {"y": np.zeros(3)}) != before
