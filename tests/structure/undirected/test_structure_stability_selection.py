"""Choosing Gaussian graphs by stability: StARS and stability selection, and the bound on wrong edges."""

import numpy as np
import pytest

import markovia as mk
from markovia.runtime.clock import Clock
from markovia.structure.undirected.penalty_choice import Subsampling
from markovia.structure.undirected.stability_selection import stable_edges


def chain_precision(p, off=0.4):
    return np.eye(p) + off * (np.eye(p, k=1) + np.eye(p, k=-1))


def draw(q, n, seed):
    return np.random.default_rng(seed).multivariate_normal(np.zeros(len(q)), np.linalg.inv(q), n)


def table(rows):
    return {f"x{i}": rows[:, i] for i in range(rows.shape[1])}


def edges(q):
    return {(f"x{i}", f"x{j}") for i in range(len(q)) for j in range(i + 1, len(q)) if abs(q[i, j]) > 1e-12}


@pytest.mark.parametrize("method", ["graphical-lasso", "neighbourhood"])
def test_stars_takes_the_densest_graph_before_subsamples_disagree(method):
    q = chain_precision(30)
    found = mk.learn_structure(
        table(draw(q, 1000, 20)), method=method, choose="stars", seed=0, subsamples=8, smallest=0.1
    )
    assert edges(q) <= set(found.edges)
    assert len(found.edges) <= 80
    about = found.details.choice
    penalty = found.details.rho if method == "graphical-lasso" else found.details.alpha[0]
    at = list(about.penalties).index(penalty)
    instability = about.criterion
    so_far = np.maximum.accumulate(instability)
    assert so_far[at] <= 0.05
    assert at + 1 == len(so_far) or so_far[at + 1] > 0.05
    upper = about.shares[np.triu_indices(30, 1)]
    assert np.mean(2 * upper * (1 - upper)) == pytest.approx(instability[at])


@pytest.mark.parametrize("method", ["graphical-lasso", "neighbourhood"])
def test_stability_selection_keeps_edges_that_halves_repeat(method):
    q = chain_precision(8)
    rows = table(draw(q, 2000, 13))
    options = {"method": method, "choose": "stability", "seed": 0, "subsamples": 20, "pi": 0.9}
    found = mk.learn_structure(rows, **options)
    about = found.details.choice
    assert set(found.edges) == edges(q)
    frequencies = about.frequencies
    assert {
        (f"x{i}", f"x{j}") for i, j in zip(*np.nonzero(np.triu(frequencies >= 0.9)), strict=True)
    } == edges(q)
    assert about.selected <= 14  # half of the pairs
    assert about.false_edges_bound == pytest.approx(about.selected**2 / (0.8 * 28))
    assert (found.weights != 0).sum() == 14
    few = mk.learn_structure(rows, false_edges=0.5, complementary=False, **options)
    own = few.details.choice
    assert own.false_edges_bound <= 0.5
    assert own.selected < about.selected
    assert set(few.edges) <= edges(q)
    known = mk.learn_structure(
        rows, forbidden=[("x0", "x1"), ("x1", "x0")], required=[("x0", "x7")], **options
    )
    assert ("x0", "x7") in known.edges
    assert ("x0", "x1") not in known.edges
    with pytest.raises(mk.errors.InvalidArgument, match="pi="):
        mk.learn_structure(rows, **{**options, "pi": 0.5})
    with pytest.raises(mk.errors.InvalidArgument, match="even"):
        mk.learn_structure(rows, **{**options, "subsamples": 7})


def test_halves_that_choose_at_random_keep_the_bound_on_wrong_edges():
    """Edges chosen uniformly at random in each half are all wrong; their number is within the bound."""
    rng = np.random.default_rng(0)
    n, wrong = 20, []
    upper = np.triu_indices(n, 1)
    free = ~np.eye(n, dtype=bool)
    for _ in range(20):

        def graphs(chosen, most):
            near = np.zeros((2, n, n), dtype=bool)
            for k, size in enumerate((10, 30)):
                pick = rng.choice(len(upper[0]), size, replace=False)
                near[k, upper[0][pick], upper[1][pick]] = True
            return near | near.transpose(0, 2, 1)

        found = stable_edges(graphs, 50, 2, free, rng, Clock(None, False), Subsampling(subsamples=20, pi=0.6))
        wrong.append(np.triu(found.present).sum())
        assert found.bound == pytest.approx(found.selected**2 / (0.2 * 190))
        assert found.last == 1
    assert np.mean(wrong) <= found.bound
