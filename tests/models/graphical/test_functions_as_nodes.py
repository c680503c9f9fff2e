"""Networks with nodes that are functions, as users meet them: predictions, interventions, edits, files, pictures."""

import copy
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import IncompleteModel, InvalidArgument, UnsupportedModel

k = mk.covariances
X = np.array([0.3, -1.2, 2.0, 0.9, -0.4, 3.1])
Y = np.array([1.0, 0.2, -0.7, 0.4, 1.3, -0.2])
GIVEN = {"x": X, "y": Y}
THERE = np.array([0.0, 1.5, 8.0])


def rbf(a, b, length=1.2, variance=1.3):
    return variance * np.exp(-0.5 * ((np.asarray(a)[:, None] - np.asarray(b)) / length) ** 2)


def conditioned(there=THERE):
    gain = rbf(there, X) @ np.linalg.inv(rbf(X, X) + 0.09 * np.eye(6))
    return gain @ Y, rbf(there, there) - gain @ rbf(X, there)


def network(process=None):
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)) if process is None else process)
    m.add("y", lambda f, x: dist.Normal(f(x), 0.3), plate="row")
    return m


@pytest.fixture(scope="module")
def known():
    m = network()
    return m, m.query("f", given=GIVEN)


def agrees(drawn, mean, var):
    n = len(drawn)
    assert np.abs((drawn.mean(0) - mean) / np.sqrt(var / n)).max() < 5
    assert drawn.var(0) == pytest.approx(var, rel=6 * np.sqrt(2 / n))


# -- predictions ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_samples_at_other_inputs_never_keep_old_values(known):
    """As many new inputs as old ones: a vector of values would have been taken over as it is."""
    m, post = known
    there = X + 10.0
    drawn = m.sample(2000, given=post, inputs={"x": there}, seed=0)["y"].to_numpy()
    mean, cov = conditioned(there)
    agrees(drawn, mean, np.diag(cov) + 0.09)
    assert (
        np.abs(np.corrcoef(drawn.T) - (cov + 0.09 * np.eye(6)) / 1.39).max() < 0.15
    )  # of one function in each draw


def test_samples_from_the_prior_are_of_one_function_in_each_draw():
    drawn = network().sample(2000, inputs={"x": X}, seed=0)["y"].to_numpy()
    agrees(drawn, np.zeros(6), np.full(6, 1.39))
    assert np.abs(np.cov(drawn.T) - rbf(X, X) - 0.09 * np.eye(6)).max() < 0.2


@pytest.mark.slow
def test_whitened_values_are_conditioned_on_their_places(tmp_path):
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("y", lambda f, x: dist.StudentT(1e7, f(x), 0.3), plate="row")
    post = m.query("f", given=GIVEN, engine=mk.engines.Laplace(seed=0))
    mean, cov = conditioned(X + 0.5)
    drawn = m.sample(1000, given=post, inputs={"x": X + 0.5}, seed=0)["y"].to_numpy()
    assert np.abs(drawn.mean(0) - mean).max() < 0.1
    assert drawn.var(0) == pytest.approx(np.diag(cov) + 0.09, rel=0.3)
    post.joint.save(tmp_path / "post.json")  # a file holds draws, which the network predicts from again
    again = m.sample(1000, given=mk.load(tmp_path / "post.json"), inputs={"x": X + 0.5}, seed=0)[
        "y"
    ].to_numpy()
    assert again == pytest.approx(drawn, abs=1e-9)


@pytest.mark.slow
def test_values_on_rows_that_depend_on_a_function_are_drawn_anew_at_other_inputs():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("z", lambda f, x: dist.Normal(f(x), 0.1), plate="row")
    m.add("y", lambda z: dist.Normal(z, 0.3), plate="row")
    post = m.query("z", given=GIVEN, engine=mk.engines.Laplace(seed=0))
    drawn = m.sample(500, given=post, inputs={"x": X + 100.0}, seed=0)["z"].to_numpy()
    assert drawn.std(0) == pytest.approx(np.full(6, np.sqrt(1.31)), rel=0.2)


# -- interventions ----------------------------------------------------------------------------------------------------------


def causal():
    m = mk.BayesianNetwork()
    m.add("x", dist.Normal(0, 1), plate="row")
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.3), plate="row")
    return m


@pytest.mark.slow
def test_setting_an_input_asks_the_function_there():
    m = causal()
    post = m.query("f", given=GIVEN)
    found = m.do(x=2.0).query("y", given=post)
    mean, cov = conditioned(np.array([2.0]))
    assert np.abs(found.mean() - mean).max() < 5 * np.sqrt((cov[0, 0] + 0.09) / 4000)
    assert found.var() == pytest.approx(np.full(6, cov[0, 0] + 0.09), rel=0.15)
    assert "predictions" in found.info.note
    assert not found.info.exact
    with pytest.raises(InvalidArgument, match=r"post.at\('f', x\)"):
        m.do(x=2.0).query("f", given=post)


def test_a_function_can_be_set():
    m = network().do(f=jnp.sin)
    drawn = m.sample(2000, inputs={"x": X}, seed=0)["y"].to_numpy()
    agrees(drawn, np.sin(X), np.full(6, 0.09))
    assert m.log_evidence(GIVEN) == pytest.approx(
        -0.5 * (((Y - np.sin(X)) / 0.3) ** 2).sum() - 6 * np.log(0.3 * np.sqrt(2 * np.pi))
    )
    assert "sin" in repr(m["f"]) or "FixedFunction" in repr(m["f"].form)


# -- fit --------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_unsaid_numbers_start_at_the_scale_of_the_data_and_are_fitted():
    m = network(mk.GP(k.Scaled(None, k.RBF()), mean=mk.Parameter(0.0)))
    assert list(m.parameters) == ["f.scaled.variance", "f.rbf.length", "f.mean"]
    with pytest.raises(IncompleteModel, match="call fit first"):
        m.query("f", given=GIVEN)
    m.fit(GIVEN)
    v, length, mean = (float(v) for v in m.parameters.values())
    best = m.log_evidence(GIVEN)
    assert m.fit_.method == "evidence"
    assert m.fit_.converged
    assert m.fit_.log_likelihood == pytest.approx(best, abs=1e-9)
    for step in (0.9, 1.1):
        for change in ((step * v, length, mean), (v, step * length, mean), (v, length, mean + step - 1)):
            other = network(mk.GP(change[0] * k.RBF(length=change[1]), mean=change[2]))
            assert other.log_evidence(GIVEN) < best + 1e-9


# -- edits, copies, files -------------------------------------------------------------------------------------------------


def test_edits_take_the_parameters_of_a_process_along():
    m = network(mk.GP(k.RBF()))
    assert list(m.parameters) == ["f.rbf.length"]
    m.replace("f", mk.GP(k.Matern32(), mean=mk.Parameter(1.0)))
    assert list(m.parameters) == ["f.matern32.length", "f.mean"]
    m.replace("f", mk.GP(1.3 * k.RBF(length=1.2)))
    assert not m.parameters
    m.add("g", mk.GP(k.RBF()))
    m.remove("g")
    assert not m.parameters
    assert m.query("f", given=GIVEN).at(0.0).mean() == pytest.approx(conditioned()[0][0])


def test_parameters_with_priors_are_parents():
    with pytest.raises(InvalidArgument, match="in a network what has a prior is a node"):
        network(mk.GP(k.RBF(length=mk.Parameter(1.0, prior=dist.LogNormal(0, 1)))))
    with pytest.raises(InvalidArgument, match="has a covariance"):
        mk.GP(1.0)
    with pytest.raises(InvalidArgument, match="a number or a function"):
        mk.GP(k.RBF(), mean="linear")
    with pytest.raises(InvalidArgument, match="1 or more"):
        mk.GP(k.RBF(), inducing=0)


def plain_child(f, x):
    return dist.Normal(f(x), 0.3)


def test_copies_and_pickles_answer_alike(known):
    m, post = known
    picklable = mk.BayesianNetwork()
    picklable.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    picklable.add("y", plain_child, plate="row")
    for other in (m.copy(), copy.deepcopy(m), pickle.loads(pickle.dumps(picklable))):
        assert other.query("f", given=GIVEN).at(THERE).mean() == pytest.approx(post.at(THERE).mean())
    assert repr(m["f"].form) == "GP(1.3 * RBF(length=1.2))"


@pytest.mark.slow
def test_files_hold_processes_of_named_covariances(tmp_path):
    m = mk.BayesianNetwork()
    m.add(
        "f",
        mk.GP(
            1.3 * k.RBF(length=1.2) + k.Index(np.eye(2), column=1) * k.Matern32(2.0, columns=[0]), mean=0.5
        ),
    )
    m.add("y", plain_child, plate="row")
    m.save(tmp_path / "a.json")
    again = mk.load(tmp_path / "a.json")
    given = {"x": np.column_stack([X, [0, 1, 0, 1, 1, 0]]), "y": Y}
    assert again.log_evidence(given) == pytest.approx(m.log_evidence(given), abs=1e-13)
    fitted = mk.BayesianNetwork()
    fitted.add("f", mk.GP(k.RBF(), mean=mk.Parameter(0.1)))
    fitted.add("y", plain_child, plate="row")
    fitted.fit(GIVEN)
    fitted.save(tmp_path / "b.json")
    again = mk.load(tmp_path / "b.json")
    assert again.log_evidence(GIVEN) == pytest.approx(fitted.log_evidence(GIVEN), abs=1e-13)
    with pytest.raises(UnsupportedModel, match="the mean of 'f' cannot be stored"):
        network(mk.GP(k.RBF(length=1.0), mean=lambda x: x)).save(tmp_path / "c.json")


def test_a_function_is_not_written_and_its_draws_are(known, tmp_path):
    _, post = known
    with pytest.raises(UnsupportedModel, match="pickle keeps the function"):
        post.save(tmp_path / "post.json")


# -- shown ---------------------------------------------------------------------------------------------------------


def test_networks_with_functions_are_drawn_and_described(known):
    m, _ = known
    m.plot()
    assert "2 variables" in repr(m)
    assert m.parents("y") == ["f"]
    assert set(m.variables) == {"f", "y"}
