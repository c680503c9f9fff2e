"""Log weights on top of a network: closed forms of Gaussians and small tables, and every verb that could ignore them."""

import pickle

import numpy as np
import pytest
from scipy.stats import norm

import markovia as mk
import markovia.distributions as dist
from markovia.errors import (
    DuplicateName,
    InvalidArgument,
    InvalidGraph,
    Unanswered,
    UnsupportedModel,
)
from markovia.inference.engine import engine_names

# base: x ~ N(0, 1), y | x ~ N(x / 2, 1); weight: -(x - y - 1)^2
PRECISION = np.array([[1.25, -0.5], [-0.5, 1.0]]) + 2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
COVARIANCE = np.linalg.inv(PRECISION)
MEAN = COVARIANCE @ [2.0, -2.0]
LOG_Z = -0.5 * np.linalg.slogdet(PRECISION)[1] + 0.5 * MEAN @ [2.0, -2.0] - 1.0
DENSITY_ENGINES = {
    "auto", "gibbs", "metropolis", "importance", "nuts", "hmc", "mala", "langevin", "sgld", "annealed-langevin", "smc",
    "laplace", "advi", "flow-vi", "amortised",
}  # fmt: skip


def half(x):
    return dist.Normal(0.5 * x, 1)


def apart(x, y):
    return -((x - y - 1) ** 2)


def narrow(x, width):
    return -0.5 * x**2 * width


def pair():
    m = mk.BayesianNetwork()
    m.add("x", dist.Normal(0, 1))
    m.add("y", half)
    m.potential(apart)
    return m


def rows(width=3.0):
    m = mk.BayesianNetwork()
    m.add("width", mk.Parameter(width))
    m.add("x", dist.Normal(0, 1), size=2, plate="row")
    m.potential(narrow, plate="row", name="narrow")
    return m


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_laplace_is_exact_on_a_gaussian():
    m = pair()
    assert m.log_partition(engine="laplace") == pytest.approx(LOG_Z, abs=1e-9)
    best = m.map()
    assert [best["x"], best["y"]] == pytest.approx(MEAN, abs=1e-6)
    found = m.log_evidence({"x": 0.3}, engine="laplace")
    assert found == pytest.approx(norm(MEAN[0], COVARIANCE[0, 0] ** 0.5).logpdf(0.3), abs=1e-9)


@pytest.mark.slow
def test_tempering_from_the_base_gives_log_z():
    problem = pair()._problem(None)
    mass = mk.engines.SMC(draws=2000, seed=1).log_mass(problem)
    assert 0.0 < mass.record.error < 0.1
    assert abs(mass - LOG_Z) < 4 * mass.record.error


@pytest.mark.slow
def test_draws_are_of_the_weighed_model():
    m = pair()
    post = m.query(["x", "y"], engine="importance")
    assert [post.mean("x"), post.mean("y")] == pytest.approx(MEAN, abs=0.06)
    drawn = m.sample(2000, seed=0)  # nothing given, and still not the base
    assert drawn.mean().to_numpy() == pytest.approx(MEAN, abs=0.12)
    assert np.cov(drawn.to_numpy().T) == pytest.approx(COVARIANCE, abs=0.15)
    with pytest.raises(Unanswered, match="couples"):
        post.log_likelihood()
    assert post.data("observed") == {}
    with pytest.raises(UnsupportedModel, match="one after the other"):
        m.sample(2, given=post)


@pytest.mark.parametrize("engine", sorted(set(engine_names()) - DENSITY_ENGINES))
def test_engines_that_cannot_refuse(engine):
    m = pair()
    for ask in (m.query, m.sample, m.map, m.log_partition):
        arguments = (["x", "y"],) if ask == m.query else ()
        with pytest.raises((UnsupportedModel, Unanswered), match="use engine=") as refused:
            ask(*arguments, engine=engine)
        assert (
            "potential" in str(refused.value) or engine == "twisted-smc"
        )  # which is for missing entries of a diffusion


@pytest.mark.slow
@pytest.mark.parametrize("engine", sorted(DENSITY_ENGINES - {"annealed-langevin", "amortised"}))
def test_engines_that_can_are_right(engine):
    m = pair()
    post = m.query(["x", "y"], engine=engine)
    assert [post.mean("x"), post.mean("y")] == pytest.approx(MEAN, abs=0.12)
    if engine not in ("advi", "flow-vi"):  # whose spreads are approximations
        assert post.sd("x") == pytest.approx(COVARIANCE[0, 0] ** 0.5, rel=0.1)
    best = m.map(engine=engine)
    assert best["x"] == pytest.approx(MEAN[0], abs=1e-4)


@pytest.mark.slow
def test_rows_share_one_log_z():
    m = rows()  # each number is N(0, 1 / 4); log Z of a row: two times -log(4) / 2
    x = np.array([[0.1, 0.2], [1.0, -1.0], [0.0, 0.4]])
    exact = norm(0, 0.5).logpdf(x).sum(axis=1)
    assert m.log_partition({"row": 1}, engine="laplace") == pytest.approx(-np.log(4))
    assert m.log_evidence({"x": x}, engine="laplace") == pytest.approx(exact.sum())
    found = m.log_evidence({"x": x}, by="row")
    error = m._row_normaliser(m._problem({"row": 1})).record.error
    assert np.ptp(found - exact) < 1e-9
    assert abs(found - exact).max() < 4 * error < 0.3
    m._parameters = {**m._parameters, "width": mk.Parameter(0.0)}  # what was kept is of another model
    assert m.log_evidence({"x": x}, by="row") == pytest.approx(norm(0, 1).logpdf(x).sum(axis=1), abs=1e-9)


def test_rows_that_differ_have_no_common_log_z():
    m = mk.BayesianNetwork()
    m.add("w", mk.Input(), plate="row")
    m.add("x", dist.Normal(0, 1), plate="row")
    m.potential(lambda x, w: -0.5 * w * x**2, plate="row")
    x, w = np.array([0.1, 1.0]), np.array([3.0, 8.0])
    exact = norm(0, [0.5, 1 / 3]).logpdf(x).sum()
    assert m.log_evidence({"x": x, "w": w}, engine="laplace") == pytest.approx(exact)
    with pytest.raises(UnsupportedModel, match="one log Z for all rows"):
        m.log_evidence({"x": x, "w": w}, by="row")


@pytest.mark.slow
def test_states_are_summed_out_by_their_weights():
    m = mk.BayesianNetwork()
    m.add("a", p=[0.3, 0.7])
    m.add("b", p=[0.5, 0.5])
    m.potential(lambda a, b: 2.0 * (a == b))
    table = np.outer([0.3, 0.7], [0.5, 0.5]) * np.exp(2.0 * np.eye(2))
    assert m.log_partition() == pytest.approx(np.log(table.sum()))
    assert m.query("a", given={"b": 1})[1] == pytest.approx(table[1, 1] / table[:, 1].sum())
    assert m.log_evidence({"b": 0}) == pytest.approx(np.log(table[:, 0].sum() / table.sum()))
    drawn = m.sample(4000, seed=0)
    assert np.mean(drawn["a"] == drawn["b"]) == pytest.approx(np.trace(table) / table.sum(), abs=0.03)
    other = m.copy()
    other.potential(lambda a: 1.0 * a, name="more")
    assert m.compare(m.copy()) == []
    assert [d.where for d in m.compare(other)] == ["more"]
    with pytest.raises(UnsupportedModel, match="json"):
        mk.io.dumps(m, "bif")


def test_a_coordinate_given_the_other():
    m = mk.BayesianNetwork()
    m.add("x", dist.Normal(0, 1), size=2, plate="row")
    m.potential(lambda x: -((x[:, 0] - x[:, 1] - 1) ** 2), plate="row")
    post = m.query("x", given={"x": np.array([[0.5, np.nan]])}, missing="impute", engine="laplace")
    # precision of x1 given x0: 1 + 2, pulled to x0 - 1
    assert post.mean("x")[0] == pytest.approx([0.5, 2 * (0.5 - 1) / 3], abs=0.05)
    assert post.sd("x")[0] == pytest.approx([0.0, 3**-0.5], abs=0.05)


# -- the graph -----------------------------------------------------------------------------------------------------------


def three():
    m = mk.BayesianNetwork()
    for name in ("a", "x", "y"):
        m.add(name, dist.Normal(0, 1))
    m.potential(lambda x, y: x * y / 2, name="tie")
    return m


def test_weights_couple_what_they_take():
    m = three()
    assert not m.independent("x", "y")
    assert m.independent("a", "x")
    assert m.independent("a", ["x", "y"])
    assert m.markov_blanket("x") == {"y"}
    assert len(m.open_trails("x", "y")) == 1
    assert set(map(frozenset, m._moral().edges)) == {frozenset("xy")}
    for ask in (m.independencies, lambda: m.relevant("x"), lambda: m.subnetwork(["a", "x"])):
        with pytest.raises(UnsupportedModel, match="tie"):
            ask()
    with pytest.raises(InvalidGraph, match="tie"):
        m.remove("y")
    with pytest.raises(InvalidArgument, match="potentials"):
        mk.causal.identify(m, "x", "y")
    m.remove("a")
    m.rename("x", "u")
    assert not m.independent("u", "y")
    assert m.log_partition(engine="laplace") == pytest.approx(-0.5 * np.log(0.75))


def test_do_keeps_the_weights():
    m = pair().do(x=2.0)  # y ~ N(1, 1), weighed by -(1 - y)^2: at rest at 1 with precision 3
    assert m.map()["y"] == pytest.approx(1.0, abs=1e-6)
    assert m.log_partition(engine="laplace") == pytest.approx(-0.5 * np.log(3))


@pytest.mark.slow
def test_nodes_along_time():
    m = mk.BayesianNetwork()
    m.add(
        "z",
        lambda before: dist.Normal(before, 1),
        plate="t",
        previous={"before": "z"},
        first=dist.Normal(0, 1),
    )
    m.add("u", dist.Normal(0, 1), plate="t")
    m.potential(lambda z, u: z * u / 4, plate="t")
    assert not m.independent("z", "u")
    n = 3
    back = np.eye(n) - np.eye(n, k=-1)
    precision = np.block([[back.T @ back, -np.eye(n) / 4], [-np.eye(n) / 4, np.eye(n)]])
    assert m.log_partition({"t": n}, engine="laplace") == pytest.approx(
        -0.5 * np.linalg.slogdet(precision)[1]
    )


# -- keeping, and what is refused ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_files_and_copies_keep_weights(tmp_path):
    for m, given in ((pair(), None), (rows(), {"row": 1})):
        m.save(tmp_path / "m.json")
        before = m.log_partition(given, engine="laplace")
        for other in (mk.load(tmp_path / "m.json"), pickle.loads(pickle.dumps(m)), m.copy()):
            assert other.potentials == m.potentials
            assert not other.normalised
            assert other.log_partition(given, engine="laplace") == pytest.approx(before, abs=1e-12)
    with pytest.raises(UnsupportedModel, match="lambda"):
        three().save(tmp_path / "m.json")


def test_wrong_weights_are_named():
    m = pair()
    with pytest.raises(InvalidArgument, match="takes no node"):
        m.potential(lambda theta: theta)
    with pytest.raises(InvalidArgument, match="belongs to a node"):
        m.potential(dist.Normal(0, 1))
    with pytest.raises(DuplicateName):
        m.potential(apart, name="x")
    m.potential(apart)
    assert m.potentials == ["potential of x and y", "potential of x and y'"]
    wrong = mk.BayesianNetwork()
    wrong.add("x", dist.Normal(0, 1), plate="row")
    wrong.potential(lambda x: -(x**2).sum(), plate="row")  # one number for all rows
    with pytest.raises(InvalidArgument, match=r"shape \(\), but its plates are row \(4\)"):
        wrong.log_partition({"row": 4})


def test_fit_needs_an_objective_without_log_z():
    data = {"x": np.zeros((4, 2))}
    for method in ("elbo", "iwae", "mmd"):
        with pytest.raises(InvalidArgument, match="log Z unknown"):
            rows().fit(data, method=method, epochs=1)
    with pytest.raises(InvalidArgument, match=r"mk\.Parameter"):
        pair().fit({"x": [0.0], "y": [0.0]})


def test_a_node_may_be_added_after_its_weight():
    m = mk.BayesianNetwork()
    m.add("x", dist.Normal(0, 1))
    m.potential(lambda x, y: x * y / 2)
    m.add("y", dist.Normal(0, 1))
    assert not m.independent("x", "y")
