"""Cluster moves: right moments with fields, recognised models, refusals, and faster mixing."""

import numpy as np
import pytest

import markovia as mk
from chain_checks import assert_close, chi_square, loop, marginals
from markovia.engines import Gibbs, SwendsenWang
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.markov_chains.swendsen_wang import potts_form


@pytest.mark.parametrize("clusters", ["all", "one"])
@pytest.mark.parametrize(
    "model",
    [
        mk.generators.ising_grid(4, 4, coupling=0.5, field="random", seed=1),
        mk.generators.potts_grid(3, 3, 3, coupling=0.9, field="random", seed=1),
        mk.generators.potts_grid(3, 3, 4, coupling=0.5),
    ],
    ids=["ising", "potts", "potts without fields"],
)
def test_marginals_agree_with_the_exact_ones(model, clusters):
    info = assert_close(model, SwendsenWang(draws=3000, seed=2, clusters=clusters, rao_blackwell=False))
    assert info.details.mean_cluster >= 1
    assert_close(model, SwendsenWang(draws=2000, seed=1, clusters=clusters), given={"x0_0": 1})


@pytest.mark.parametrize("clusters", ["all", "one"])
def test_the_joint_distribution_of_draws_is_the_exact_one(clusters):
    model = mk.generators.potts_grid(2, 2, 3, coupling=0.8, field="random", seed=5)
    exact = model.joint().values / model.joint().values.sum()
    frame = model.sample(6000, seed=1, engine=SwendsenWang(clusters=clusters))
    counts = np.zeros(exact.shape)
    np.add.at(counts, tuple(frame[n].to_numpy() for n in model.variables), 1)
    assert abs(chi_square(counts.ravel(), exact.ravel())) < 5


def test_every_attractive_binary_table_is_recognised():
    rng = np.random.default_rng(0)
    names = list("abcd")
    factors = []
    for u, v in ("ab", "bc", "cd", "da", "ac"):
        table = rng.random((2, 2)) + 0.1
        if table[0, 0] * table[1, 1] < table[0, 1] * table[1, 0]:
            table = table[::-1]
        factors.append(mk.Factor([u, v], table))
    model = mk.MarkovNetwork(dict.fromkeys(names, 2), factors)
    assert_close(model, SwendsenWang(draws=4000, seed=1))
    form = potts_form(flat_graph(model._problem(None)))
    field = form.field.reshape(-1, 2)
    rng = np.random.default_rng(1)
    codes = rng.integers(2, size=(8, 4))
    logs = []
    for x in codes:
        equal = x[form.first] == x[form.second]
        logs.append(field[np.arange(4), x].sum() + np.log(np.where(equal, 1.0, 1.0 - form.bond)).sum())
    gap = flat_graph(model._problem(None)).log_weights(codes) - np.array(logs)
    assert np.allclose(gap, gap[0])


def test_hard_equalities_become_certain_bonds():
    same = mk.Factor(["a", "b"], np.eye(2))
    model = mk.MarkovNetwork({"a": 2, "b": 2}, [same, mk.Factor(["a"], [1.0, 3.0])])
    found = model.query(["a", "b"], engine=SwendsenWang(draws=3000, seed=1, rao_blackwell=False))
    assert found.values[0, 1] == 0
    assert abs(found.values[1, 1] - 0.75) < 5 * found.info.error


def test_other_models_are_refused_with_a_reason():
    with pytest.raises(mk.errors.Unanswered, match="a table over b, c, d"):
        loop().query("a", engine="swendsen-wang")
    with pytest.raises(mk.errors.Unanswered, match="repulsive"):
        mk.generators.ising_grid(2, 2, coupling=-0.5).query("x0_0", engine="swendsen-wang")
    with pytest.raises(mk.errors.Unanswered, match="repulsive"):
        mk.generators.potts_grid(2, 2, 3, coupling=-0.5).query("x0_0", engine="swendsen-wang")
    uneven = mk.MarkovNetwork({"a": 3, "b": 3}, [mk.Factor(["a", "b"], np.arange(1.0, 10.0).reshape(3, 3))])
    with pytest.raises(mk.errors.Unanswered, match="diagonal"):
        uneven.query("a", engine="swendsen-wang")
    mixed = mk.MarkovNetwork({"a": 3, "b": 2}, [mk.Factor(["a", "b"], np.ones((3, 2)))])
    with pytest.raises(mk.errors.Unanswered, match="equally many"):
        mixed.query("a", engine="swendsen-wang")
    with pytest.raises(mk.errors.InvalidArgument, match="clusters="):
        SwendsenWang(clusters="some")


def test_models_without_couplings_work():
    model = mk.MarkovNetwork({"a": 2, "b": 3}, [mk.Factor(["a"], [1.0, 3.0])])
    found = model.marginals(engine=SwendsenWang(draws=2000, seed=1))
    assert found["a"][1] == pytest.approx(0.75)
    assert np.allclose(found["b"].values, 1 / 3)


def test_clusters_turn_over_what_single_changes_do_not():
    grid = mk.generators.ising_grid(8, 8, coupling=0.7)
    settings = {"draws": 1000, "seed": 1, "rao_blackwell": False}
    _, slow = marginals(grid, Gibbs(**settings), targets=["x4_4"])
    for clusters in ("all", "one"):
        _, info = marginals(grid, SwendsenWang(clusters=clusters, **settings), targets=["x4_4"])
        assert info.converged
        assert info.diagnostics.effective > 5 * slow.diagnostics.effective


def test_answers_depend_on_the_seed_and_not_on_threads():
    grid = mk.generators.ising_grid(4, 4, coupling=0.3)
    for clusters in ("all", "one"):
        ask = [
            grid.query("x0_0", engine=SwendsenWang(draws=300, seed=s, threads=t, clusters=clusters)).values
            for s, t in ((1, 1), (1, 2), (2, 1))
        ]
        assert (ask[0] == ask[1]).all()
        assert (ask[0] != ask[2]).any()
