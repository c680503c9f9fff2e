"""Networks that change over time: kernel-weighted regressions and TESLA."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import lsq_linear

import markovia as mk
from markovia.structure.changing.changing_network import edges_over_time
from markovia.structure.changing.time_varying_ising import kernel_shares
from markovia.structure.undirected.sparse_logistic import fit_spin


def changing_rows(n=400, change=200, seed=0):
    """Before the change a - b are joined, afterwards b - c."""
    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(0, 2, n) for _ in range(3))
    early = np.arange(n) < change
    b = np.where(early & (rng.random(n) < 0.85), a, b)
    c = np.where(~early & (rng.random(n) < 0.85), b, c)
    return {"a": a, "b": b, "c": c}


def pooled(rows, shares, alpha, field="penalised"):
    """The couplings of independent regressions with weights that sum to one."""
    names = list(rows)
    design = np.array([2.0 * np.asarray(rows[k]) - 1 for k in names] + [np.ones(len(shares))])
    n = len(names)
    found = np.zeros((n, n + 1))
    for node in range(n):
        factor = np.ones(n + 1)
        factor[n] = {"free": 0.0, "penalised": 1.0, "none": np.inf}[field]
        found[node] = fit_spin(design, node, shares / shares.sum(), factor, np.array([alpha])).thetas[0]
    return found


def means(theta):
    n = len(theta)
    return (theta[:, :n] + theta[:, :n].T) / 2


# kernel weights


def test_an_infinite_bandwidth_gives_the_static_graph():
    rows = changing_rows()
    wide = mk.learn_structure(rows, method="kernel-weighted", bandwidth=np.inf, at=[0, 399], alpha=0.05)
    static = mk.learn_structure(rows, method="ising", alpha=0.05, field="penalised")
    assert wide.edges == static.edges
    for weights in wide.details.weights:
        assert np.allclose(weights, static.weights, atol=1e-7)
    nearly = mk.learn_structure(rows, method="kernel-weighted", bandwidth=1e7, at=[0], alpha=0.05)
    assert np.allclose(nearly.weights, static.weights, atol=1e-6)


def test_a_narrow_bandwidth_gives_the_graph_of_one_time_alone():
    rows = changing_rows()
    times = np.repeat([0.0, 1.0, 2.0, 3.0], 100)
    found = mk.learn_structure(
        rows, method="kernel-weighted", times=times, at=[1.0], bandwidth=1e-3, alpha=0.05
    )
    alone = pooled({k: v[100:200] for k, v in rows.items()}, np.ones(100), 0.05)
    assert np.allclose(found.details.weights[0], means(alone), atol=1e-7)
    assert found.details.effective_rows[0] == pytest.approx(100)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "box"])
def test_any_kernel_is_a_weighted_regression_that_sees_the_change(kernel):
    rows = changing_rows()
    found = mk.learn_structure(
        rows, method="kernel-weighted", kernel=kernel, at=[50, 350], bandwidth=60, alpha=0.1
    )
    shares = kernel_shares(np.arange(400.0) - 50, 60.0, kernel)
    assert np.allclose(found.details.weights[0], means(pooled(rows, shares, 0.1)), atol=1e-6)
    assert [g.edges for g in found.details.graphs] == [[("a", "b")], [("b", "c")]]
    assert found.edges == [("a", "b"), ("b", "c")]
    assert found.details.kkt <= 1e-8


def test_times_may_be_a_column_and_rows_may_have_weights():
    rows = changing_rows(200, 100)
    shuffled = np.random.default_rng(0).permutation(200)
    frame = pd.DataFrame({k: v[shuffled] for k, v in rows.items()})
    named = frame.assign(when=shuffled)
    options = {"method": "kernel-weighted", "at": [20, 180], "bandwidth": 30}
    plain = mk.learn_structure(rows, **options)
    column = mk.learn_structure(named, times="when", **options)
    array = mk.learn_structure(frame, times=shuffled, **options)
    halves = mk.learn_structure(
        named.assign(when=shuffled + 0.5), times="when", **{**options, "at": [20.5, 180.5]}
    )
    for other in (column, array, halves):
        assert other.nodes == ["a", "b", "c"]
        assert np.allclose(other.details.weights, plain.details.weights, atol=1e-7)
    counts = np.random.default_rng(1).integers(1, 4, 200)
    weighted = mk.learn_structure(rows, weights=counts, times=np.arange(200), **options)
    repeated = mk.learn_structure(
        {k: np.repeat(v, counts) for k, v in rows.items()}, times=np.repeat(np.arange(200), counts), **options
    )
    assert np.allclose(weighted.details.weights, repeated.details.weights, atol=1e-7)
    assert np.allclose(weighted.details.effective_rows, repeated.details.effective_rows)


# TESLA


def test_total_variation_is_solved_exactly():
    from markovia.kernels.structure.fused_logistic import total_variation

    rng = np.random.default_rng(0)
    for _ in range(25):
        n = int(rng.integers(2, 12))
        y, lam, x = rng.normal(size=n), float(rng.uniform(0, 1.5)), np.empty(n)
        total_variation.py_func(y, lam, x)
        difference = np.diff(np.eye(n), axis=0)
        dual = lsq_linear(difference.T, y, (-lam - 1e-14, lam + 1e-14), tol=1e-14).x
        assert np.allclose(x, y - difference.T @ dual, atol=1e-6)


@pytest.mark.parametrize("q", [1, 2])
def test_without_a_penalty_on_changes_the_times_are_fitted_alone(q):
    rows = changing_rows()
    times = np.repeat(np.arange(4), [50, 150, 100, 100])
    found = mk.learn_structure(
        rows, method="tesla", times=times, lambda1=0.06, lambda2=0.0, q=q, tolerance=1e-8
    )
    for t in range(4):
        alone = pooled({k: v[times == t] for k, v in rows.items()}, np.ones((times == t).sum()), 0.06)
        assert np.allclose(found.details.weights[t], means(alone), atol=1e-6)
    assert found.details.residual <= 1e-8


@pytest.mark.parametrize(("q", "large"), [(1, 100.0), (2, 1e3)])
def test_a_large_penalty_on_changes_pools_all_times(q, large):
    rows = changing_rows()
    times = np.repeat(np.arange(4), [50, 150, 100, 100])
    found = mk.learn_structure(
        rows, method="tesla", times=times, lambda1=0.05, lambda2=large, q=q, tolerance=1e-6
    )
    shares = 1 / np.array([50, 150, 100, 100.0])[times]  # every time counts the same
    one = means(pooled(rows, shares, 0.05))
    for weights in found.details.weights:
        assert np.allclose(weights, one, atol=1e-5 if q == 1 else 1e-3)
    assert not found.notes


def test_jumps_are_found_where_they_are_and_smooth_changes_are_smooth():
    rows = changing_rows(600, 300, seed=2)
    jumps = mk.learn_structure(rows, method="tesla", periods=12)
    path = np.array(jumps.details.weights)[:, 0, 1]
    assert (path[:6] > 0.2).all()
    assert (path[6:] == 0).all()
    steps = np.flatnonzero(np.abs(np.diff(path)) > 1e-9)
    assert 5 in steps
    assert len(steps) <= 2
    smooth = mk.learn_structure(rows, method="tesla", periods=12, q=2, lambda1=0.02, lambda2=1.0)
    slow = np.array(smooth.details.weights)[:, 0, 1]
    assert np.abs(np.diff(slow)).max() < np.abs(np.diff(path)).max()
    assert slow[0] > slow[5] > slow[11]


def test_the_objective_is_the_least_there_is():
    """No nearby point is better; a convex function then has its minimum there."""
    rows = changing_rows(120, 60, seed=3)
    times = np.repeat(np.arange(6), 20)
    lam1, lam2 = 0.05, 0.1
    found = mk.learn_structure(
        rows, method="tesla", times=times, lambda1=lam1, lambda2=lam2, field="none", tolerance=1e-9
    )
    spins = np.array([2.0 * rows[k] - 1 for k in "abc"])

    def objective(theta):  # theta[t, k, j]
        margin = np.einsum("rkj,jr->kr", theta[times], spins)
        loss = np.log1p(np.exp(-2 * spins * margin)).sum() / 20
        return loss + lam1 * np.abs(theta).sum() + lam2 * np.abs(np.diff(theta, axis=0)).sum()

    from markovia.kernels.structure.fused_logistic import fused_node
    from markovia.kernels.structure.structure_records import ChangingSpins

    steps = np.column_stack([np.arange(5), np.arange(1, 6)])
    design = np.vstack([spins, np.ones(120)])
    changing = ChangingSpins(design, np.full(120, 1 / 20), times.astype(np.int64), steps, True)
    best = np.zeros((6, 3, 3))
    for node in range(3):
        theta = np.zeros((4, 6))
        factor = np.array([1.0, 1.0, 1.0, np.inf])
        fused_node(changing, node, factor, lam1, lam2, 0.0, 1e-9, 20_000, theta)
        best[:, node] = theta[:3].T
    value = objective(best)
    assert found.details.objective == pytest.approx(value, abs=1e-7)
    rng = np.random.default_rng(0)
    off = ~np.eye(3, dtype=bool)
    for scale in (1e-1, 1e-2, 1e-3):
        for _ in range(50):
            assert objective(best + scale * rng.normal(size=best.shape) * off) > value - 1e-9
            flat = best + scale * rng.normal(size=(1, 3, 3)) * off
            assert objective(flat) > value - 1e-9


def test_one_row_a_time_is_enough_and_a_time_limit_is_obeyed():
    rows = changing_rows(150, 75)
    found = mk.learn_structure(rows, method="tesla")
    assert len(found.details.graphs) == 150
    assert found.details.residual <= 1e-5
    early = mk.learn_structure(rows, method="tesla", time_limit=1e-9)
    assert early.n_edges == 0
    assert "stopped after 0" in early.notes[0]
    early = mk.learn_structure(rows, method="kernel-weighted", time_limit=1e-9)
    assert early.n_edges == 0
    assert "stopped after 0" in early.notes[0]


@pytest.mark.parametrize("method", ["kernel-weighted", "tesla"])
def test_what_is_known_is_obeyed_at_every_time(method):
    rows = changing_rows()
    options = {"at": [50, 350]} if method == "kernel-weighted" else {"periods": 4}
    found = mk.learn_structure(
        rows, method=method, required=[("a", "c")], forbidden=[("a", "b"), ("b", "a")], **options
    )
    for graph in found.details.graphs:
        assert graph.has_edge("a", "c")
        assert not graph.has_edge("a", "b")
    few = mk.learn_structure(rows, method=method, max_parents=1, **options)
    for graph in few.details.graphs:
        assert max(graph.degree(n) for n in graph.nodes) <= 1


def test_smooth_changes_converge_however_large_their_penalty_is():
    rows = changing_rows(300, 150, seed=5)
    times = np.repeat(np.arange(6), 50)
    one = mk.learn_structure(rows, method="ising", alpha=0.05, field="penalised")
    found = mk.learn_structure(rows, method="tesla", times=times, q=2, lambda1=0.05, lambda2=3e4)
    assert not found.notes
    assert found.details.residual <= 1e-5
    for weights in found.details.weights:
        assert np.allclose(weights, one.weights, atol=1e-3)


def test_the_smooth_step_is_the_minimum_of_its_problem():
    from markovia.kernels.structure.fused_logistic import _smoothed

    rng = np.random.default_rng(0)
    for n in (1, 2, 9):
        for cut, smooth in ((0.3, 0.5), (0.8, 20.0), (0.0, 1.0)):
            y = rng.normal(size=n) * 2
            x = np.empty(n)
            _smoothed.py_func(y, cut, smooth, np.empty(n), np.empty(n), np.empty(n), x)
            pull = y - x
            jump = 2 * smooth * np.diff(x)
            pull[:-1] += jump
            pull[1:] -= jump
            assert (np.abs(pull) <= cut + 1e-9).all()
            assert np.allclose(pull[x != 0], cut * np.sign(x[x != 0]))


def test_steps_that_run_out_are_told():
    with pytest.warns(mk.errors.ConvergenceWarning, match="did not converge in 2 steps"):
        found = mk.learn_structure(changing_rows(100, 50), method="tesla", periods=4, max_steps=2)
    assert "did not converge" in found.notes[0]


# conditions in a graph


def branches(seed=0, n=300):
    """Rows of four conditions in a tree root - left, root - right, right - leaf; a - b is joined but in the right branch."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(["root", "left", "right", "leaf"], n)
    a, b, c = (rng.integers(0, 2, 4 * n) for _ in range(3))
    changed = np.isin(labels, ["right", "leaf"])
    b = np.where(~changed & (rng.random(4 * n) < 0.85), a, b)
    c = np.where(rng.random(4 * n) < 0.8, b, c)
    return {"a": a, "b": b, "c": c}, labels


TREE = [("root", "left"), ("root", "right"), ("right", "leaf")]


def test_a_change_in_one_branch_of_a_tree_of_conditions_is_found():
    rows, labels = branches()
    mixed = np.random.default_rng(1).permutation(len(labels))
    frame = pd.DataFrame({k: v[mixed] for k, v in rows.items()}).assign(stage=labels[mixed])
    found = mk.learn_structure(
        frame, method="tesla", times="stage", conditions=TREE, lambda1=0.05, lambda2=0.1
    )
    graphs = dict(zip(found.details.times, found.details.graphs, strict=True))
    weights = dict(zip(found.details.times, found.details.weights, strict=True))
    for stage in ("root", "left"):
        assert set(graphs[stage].edges) == {("a", "b"), ("b", "c")}
    for stage in ("right", "leaf"):
        assert set(graphs[stage].edges) == {("b", "c")}
    assert np.allclose(weights["root"], weights["left"], atol=1e-4)
    assert np.allclose(weights["right"], weights["leaf"], atol=1e-4)
    assert {frozenset(e) for e in found.details.conditions} == {frozenset(e) for e in TREE}
    listed = edges_over_time(found)
    assert set(listed.time) == {"root", "left", "right", "leaf"}
    by_row = mk.learn_structure(
        rows, method="tesla", times=labels.tolist(), conditions=TREE, lambda1=0.05, lambda2=0.1
    )
    order = [by_row.details.times.index(t) for t in found.details.times]
    assert np.allclose(np.array(by_row.details.weights)[order], found.details.weights, atol=1e-4)


def test_a_chain_of_conditions_is_the_chain_of_times_and_limits_hold_over_graphs():
    rows = changing_rows(200, 100)
    times = np.repeat([0, 1, 2, 3], 50)
    options = {"method": "tesla", "times": times, "lambda1": 0.05, "tolerance": 1e-8}
    path = [(0, 1), (1, 2), (2, 3)]
    for q in (1, 2):
        chain = mk.learn_structure(rows, lambda2=0.1, q=q, **options)
        graph = mk.learn_structure(rows, lambda2=0.1, q=q, conditions=path, **options)
        assert np.allclose(chain.details.weights, graph.details.weights, atol=1e-6)
        assert chain.details.objective == pytest.approx(graph.details.objective, abs=1e-7)
    ring = [*path, (3, 0)]
    alone = mk.learn_structure(rows, lambda2=0.0, conditions=ring, **options)
    for k in range(4):
        own = pooled({name: v[50 * k : 50 * (k + 1)] for name, v in rows.items()}, np.ones(50), 0.05)
        assert np.allclose(alone.details.weights[k], means(own), atol=1e-5)
    named = mk.graphs.UndirectedGraph([(str(a), str(b)) for a, b in ring])
    one = mk.learn_structure(
        rows, lambda2=5.0, conditions=named, **{**options, "times": [str(t) for t in times]}
    )
    static = mk.learn_structure(rows, method="ising", alpha=0.05, field="penalised")
    for weights in one.details.weights:
        assert np.allclose(weights, static.weights, atol=1e-5)


def test_bic_chooses_penalties_that_show_the_change():
    rows = changing_rows(600, 300, seed=2)
    found = mk.learn_structure(rows, method="tesla", periods=6, choose="bic")
    path = np.array(found.details.weights)[:, 0, 1]
    assert (path[:3] > 0.2).all()
    assert (path[3:] == 0).all()
    tried = found.details.tried
    assert len(tried) == 15
    best = min(tried, key=lambda row: row[2])
    assert (found.details.lambda1, found.details.lambda2) == best[:2]
    fixed = mk.learn_structure(rows, method="tesla", periods=6, choose="bic", lambda2=0.1)
    assert len(fixed.details.tried) == 3
    assert fixed.details.lambda2 == 0.1


# the senate


def test_the_roll_call_is_shaped_like_the_senates():
    frame = mk.examples.roll_call()
    assert frame.shape == (542, 101)
    assert set(frame["mover"]) == {"yes", "no"}
    assert mk.examples.roll_call(seed=3).equals(mk.examples.roll_call(seed=3))
    early, late = frame[:150], frame[-150:]
    with_a = [(part["a0"] == part["mover"]).mean() for part in (early, late)]
    with_b = [(part["b0"] == part["mover"]).mean() for part in (early, late)]
    assert with_a[0] > with_a[1]
    assert with_b[1] > with_b[0]


@pytest.mark.parametrize("method", ["kernel-weighted", "tesla"])
def test_the_voter_who_changes_sides_changes_neighbours(method):
    frame = mk.examples.roll_call(20, 542, blocs=4, seed=1)
    options = {"at": [40, 500], "bandwidth": 70.0} if method == "kernel-weighted" else {"periods": 12}
    found = mk.learn_structure(frame, method=method, times="time", **options)
    assert "time" not in found.nodes
    mover = found.nodes.index("mover")
    party = np.array([name[0] for name in found.nodes])
    first, last = found.details.weights[0][mover], found.details.weights[-1][mover]
    assert first[party == "a"].sum() > 5 * max(first[party == "b"].sum(), 0.01)
    assert last[party == "b"].sum() > 5 * max(last[party == "a"].sum(), 0.01)
    listed = edges_over_time(found)
    mine = listed[(listed.a == "mover") | (listed.b == "mover")]
    for time, side in ((listed.time.min(), "a"), (listed.time.max(), "b")):
        then = mine[mine.time == time]
        assert then.loc[then.weight.idxmax(), "a"][0] == side
    assert list(listed.columns) == ["time", "a", "b", "weight"]


def test_bad_input_is_named():
    rows = changing_rows(40, 20)
    for method in ("kernel-weighted", "tesla"):
        with pytest.raises(mk.errors.UnknownVariable, match="when"):
            mk.learn_structure(rows, method=method, times="when")
        with pytest.raises(mk.errors.InvalidArgument, match="40 rows"):
            mk.learn_structure(rows, method=method, times=[1, 2])
        with pytest.raises(mk.errors.InvalidArgument, match="two states"):
            mk.learn_structure({**rows, "d": np.arange(40) % 3}, method=method)
        with pytest.raises(mk.errors.InvalidArgument, match="are numbers"):
            mk.learn_structure({**rows, "when": ["x", "y"] * 20}, method=method, times="when")
    with pytest.raises(mk.errors.InvalidArgument, match="bandwidth="):
        mk.learn_structure(rows, method="kernel-weighted", bandwidth=0)
    with pytest.raises(mk.errors.InvalidArgument, match="kernel="):
        mk.learn_structure(rows, method="kernel-weighted", kernel="round")
    with pytest.raises(mk.errors.InvalidArgument, match="no row"):
        mk.learn_structure(rows, method="kernel-weighted", kernel="box", bandwidth=0.1, at=[0.5])
    with pytest.raises(mk.errors.InvalidArgument, match="q="):
        mk.learn_structure(rows, method="tesla", q=3)
    with pytest.raises(mk.errors.InvalidArgument, match="which no row has"):
        mk.learn_structure(rows, method="tesla", times=[0] * 20 + [1] * 20, conditions=[(0, 2)])
    with pytest.raises(mk.errors.InvalidArgument, match="needs times="):
        mk.learn_structure(rows, method="tesla", conditions=[(0, 1)])
    with pytest.raises(mk.errors.InvalidArgument, match="q=2 has not"):
        mk.learn_structure(rows, method="tesla", q=2, choose="bic")
    with pytest.raises(mk.errors.InvalidArgument, match="periods="):
        mk.learn_structure(rows, method="tesla", periods=0)
    with pytest.raises(mk.errors.InvalidArgument, match="one state only"):
        mk.learn_structure(rows, method="tesla", field="free", lambda2=0.0)
    with pytest.raises(mk.errors.InvalidArgument, match="does not change"):
        edges_over_time(mk.learn_structure(rows, method="ising"))
