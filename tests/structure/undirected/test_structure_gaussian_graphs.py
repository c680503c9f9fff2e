"""Undirected Gaussian graphs: partial correlations, neighbourhood selection, graphical lasso."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import graphical_lasso as sklearn_glasso
from sklearn.linear_model import Lasso

import markovia as mk
from markovia.learning.association.association import partial_correlation
from markovia.runtime.clock import Clock
from markovia.structure.task.undirected_edges import partial_correlations_of
from markovia.structure.undirected import partial_correlation_search
from markovia.structure.undirected.graphical_lasso_penalty import glasso_path
from markovia.structure.undirected.lasso_path import lasso_conditions, lasso_path
from markovia.structure.undirected.sparse_precision import sparse_precision

seeds = st.integers(0, 2**32 - 1)


def chain_precision(p, off=0.4):
    return np.eye(p) + off * (np.eye(p, k=1) + np.eye(p, k=-1))


def grid_precision(rows, columns, off=0.2):
    p = rows * columns
    q = np.eye(p)
    for i in range(rows):
        for j in range(columns):
            k = i * columns + j
            if j + 1 < columns:
                q[k, k + 1] = q[k + 1, k] = off
            if i + 1 < rows:
                q[k, k + columns] = q[k + columns, k] = off
    return q


def draw(q, n, seed):
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(np.zeros(len(q)), np.linalg.inv(q), n)


def table(rows):
    return {f"x{i}": rows[:, i] for i in range(rows.shape[1])}


def edges(q):
    return {(f"x{i}", f"x{j}") for i in range(len(q)) for j in range(i + 1, len(q)) if abs(q[i, j]) > 1e-12}


def random_covariance(seed, p, n):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, p)) @ (np.eye(p) + 0.4 * rng.normal(size=(p, p)))
    return np.cov(rows.T, bias=True)


# the pattern of a parameter matrix is the graph


@pytest.mark.parametrize(
    ("n", "pairs"),
    [
        (4, [(1, 2), (1, 3), (2, 3), (3, 4)]),
        (6, [(1, 2), (1, 3), (1, 4), (1, 5), (2, 3), (2, 4), (2, 5)]),
    ],
)
@pytest.mark.parametrize("method", ["partial-correlation", "graphical-lasso", "neighbourhood"])
def test_zeros_of_the_precision_matrix_are_the_absent_edges(n, pairs, method):
    q = np.eye(n) * 1.2
    for a, b in pairs:
        q[a - 1, b - 1] = q[b - 1, a - 1] = 0.33
    assert np.linalg.eigvalsh(q)[0] > 0
    rows = draw(q, 20_000, 0)
    options = {"alpha": 1e-6} if method == "partial-correlation" else {}
    found = mk.learn_structure(table(rows), method=method, **options)
    assert set(found.edges) == edges(q)
    assert found.nodes == [f"x{i}" for i in range(n)]


def test_marginal_and_conditional_independence_differ():
    chain = np.linalg.inv(chain_precision(3))
    assert np.linalg.inv(chain)[0, 2] == pytest.approx(0)
    assert abs(chain[0, 2]) > 0.1
    collider = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 3.0]])
    assert partial_correlations_of(np.linalg.inv(collider))[0, 1] == pytest.approx(-0.5)


def test_regression_coefficients_and_variance_are_read_off_the_precision_matrix():
    cov = random_covariance(3, 5, 40)
    q = np.linalg.inv(cov)
    rest = [0, 1, 3, 4]
    beta = np.linalg.solve(cov[np.ix_(rest, rest)], cov[rest, 2])
    assert np.allclose(beta, -q[2, rest] / q[2, 2])
    assert cov[2, 2] - cov[2, rest] @ beta == pytest.approx(1 / q[2, 2])


# partial correlations


def test_partial_correlations_are_the_weights_and_have_p_values():
    rows = draw(chain_precision(5), 2000, 1)
    found = mk.learn_structure(table(rows), method="partial-correlation", correction="bonferroni")
    assert set(found.edges) == edges(chain_precision(5))
    assert found.weights[0, 1] == pytest.approx(partial_correlation(table(rows))["x0", "x1"])
    assert found.weights[0, 2] == 0
    p = found.details.p_values
    assert p[0, 1] < 1e-10
    assert np.array_equal(p, p.T)
    assert found.n_tests == 10


def test_the_correction_is_over_pairs_that_may_be_joined_and_thresholds_do_without_tests():
    rows = draw(chain_precision(4), 500, 2)
    free = mk.learn_structure(table(rows), method="partial-correlation", threshold=0.2)
    assert set(free.edges) == edges(chain_precision(4))
    known = mk.learn_structure(
        table(rows),
        method="partial-correlation",
        forbidden=[("x0", "x1"), ("x1", "x0")],
        required=[("x0", "x3")],
    )
    assert known.n_tests == 5
    assert ("x0", "x3") in known.edges
    assert ("x0", "x1") not in known.edges


def test_weighted_rows_count_as_repeated_ones():
    rows = draw(chain_precision(4), 60, 3)
    times = np.random.default_rng(0).integers(1, 4, 60)
    repeated = np.repeat(rows, times, axis=0)
    for method, options in (
        ("partial-correlation", {}),
        ("neighbourhood", {"alpha": 0.1}),
        ("graphical-lasso", {"choose": "ebic"}),
    ):
        one = mk.learn_structure(table(rows), method=method, weights=times, **options)
        other = mk.learn_structure(table(repeated), method=method, **options)
        assert one.edges == other.edges
        assert np.allclose(one.weights, other.weights, atol=1e-6)


# the lasso


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_the_lasso_meets_its_optimality_conditions_and_agrees_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6))
    y = x @ rng.choice([0.0, 1.0, -2.0], 6) + rng.normal(size=40)
    found = lasso_path(x, y, n_alphas=8, smallest=0.01)
    for alpha, beta, intercept in zip(found.alphas, found.coefficients, found.intercepts, strict=True):
        slope = x.T @ (y - intercept - x @ beta) / 40
        used = beta != 0
        assert np.allclose(slope[used], alpha * np.sign(beta[used]), atol=1e-6 * max(1, found.alphas[0]))
        assert (np.abs(slope) <= alpha * (1 + 1e-7) + 1e-7).all()
    assert not found.coefficients[0].any()
    theirs = Lasso(alpha=found.alphas[5], tol=1e-12, max_iter=1_000_000).fit(x, y)
    assert np.allclose(theirs.coef_, found.coefficients[5], atol=1e-5)


def test_orthonormal_columns_are_soft_thresholded():
    q = np.linalg.qr(np.column_stack([np.ones(30), np.random.default_rng(0).normal(size=(30, 4))]))[0][:, 1:]
    y = np.random.default_rng(1).normal(size=30)
    least = q.T @ y
    lam = 0.8  # of the loss without a half: soft thresholding at lam / 2
    found = lasso_path(q, y, [lam / 2 / 30])
    assert np.allclose(found.coefficients[0], np.sign(least) * np.maximum(np.abs(least) - lam / 2, 0))


def test_conditions_of_sparsistency_are_checked():
    assert lasso_conditions(np.eye(4), [0, 1]).hold
    star = np.array([[1, 0, 0.6], [0, 1, 0.6], [0.6, 0.6, 1]])
    found = lasso_conditions(star, [0, 1])
    assert found.incoherence == pytest.approx(1.2)
    assert not found.hold
    assert lasso_conditions(np.ones((3, 3)), [0, 1]).incoherence == np.inf
    with pytest.raises(mk.errors.InvalidArgument, match="square"):
        lasso_conditions(np.ones(3), [0])


# neighbourhood selection


@pytest.mark.parametrize("rule", ["or", "and"])
@pytest.mark.parametrize("choose", ["rate", "bic", "ebic"])
def test_neighbourhoods_of_chains_and_grids_are_found(rule, choose):
    for q in (chain_precision(10), grid_precision(3, 3)):
        found = mk.learn_structure(table(draw(q, 3000, 5)), method="neighbourhood", rule=rule, choose=choose)
        missed = len(edges(q) - set(found.edges))
        extra = len(set(found.edges) - edges(q))
        assert missed == 0
        assert extra <= (0 if choose != "bic" else 3)


def test_a_fixed_penalty_gives_the_lasso_of_each_column_on_the_others():
    rows = draw(chain_precision(5), 200, 7)
    unit = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    found = mk.learn_structure(table(rows), method="neighbourhood", alpha=0.08)
    for node in range(5):
        rest = [i for i in range(5) if i != node]
        theirs = Lasso(alpha=0.08, tol=1e-12, max_iter=100_000).fit(unit[:, rest], unit[:, node])
        assert np.allclose(found.details.coefficients[node, rest], theirs.coef_, atol=1e-7)
    both = mk.learn_structure(table(rows), method="neighbourhood", alpha=0.08, rule="and")
    assert set(both.edges) <= set(found.edges)
    used = found.details.coefficients != 0
    assert len(found.edges) == np.triu(used | used.T).sum()
    assert len(both.edges) == np.triu(used & used.T).sum()


def test_cross_validation_keeps_all_true_neighbours():
    q = chain_precision(6)
    found = mk.learn_structure(table(draw(q, 800, 8)), method="neighbourhood", choose="cv", seed=1)
    assert edges(q) <= set(found.edges)
    again = mk.learn_structure(table(draw(q, 800, 8)), method="neighbourhood", choose="cv", seed=1)
    assert found.edges == again.edges


@pytest.mark.parametrize("method", ["neighbourhood", "graphical-lasso", "partial-correlation"])
def test_what_is_known_is_obeyed(method):
    rows = draw(chain_precision(6), 400, 9)
    found = mk.learn_structure(
        table(rows),
        method=method,
        required=[("x0", "x4")],
        forbidden=[("x1", "x2"), ("x2", "x1")],
        max_parents=1,
    )
    assert ("x0", "x4") in found.edges
    assert ("x1", "x2") not in found.edges
    assert max(found.graph.degree(n) for n in found.nodes) <= 1
    assert np.count_nonzero(np.triu(found.weights)) <= len(found.edges)
    with pytest.raises(mk.errors.InvalidArgument, match="required neighbours"):
        mk.learn_structure(table(rows), method=method, required=[("x0", "x1"), ("x0", "x2")], max_parents=1)


# the graphical lasso


@given(seeds, st.floats(0.01, 0.6), st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_graphical_lasso_meets_its_optimality_conditions(seed, rho, diagonal):
    cov = random_covariance(seed, 6, 12)
    found = sparse_precision(cov, rho, penalise_diagonal=diagonal)
    w, q = np.linalg.inv(found.precision), found.precision
    assert np.allclose(w, found.covariance, atol=1e-7)
    own = rho if diagonal else 0.0
    assert np.allclose(np.diag(w), np.diag(cov) + own, atol=1e-6)
    off = ~np.eye(6, dtype=bool)
    used = off & (q != 0)
    assert np.allclose((w - cov)[used], rho * np.sign(q[used]), atol=1e-6)
    assert (np.abs(w - cov)[off] <= rho + 1e-6).all()
    assert -1e-9 <= found.gap < 1e-5
    assert found.converged
    assert np.linalg.eigvalsh(q)[0] > 0


@given(seeds, st.sampled_from([0.05, 0.1, 0.3]))
@settings(max_examples=10, deadline=None)
def test_the_graphical_lasso_is_that_of_scikit_learn(seed, rho):
    cov = random_covariance(seed, 8, 60)
    scale = np.sqrt(np.diag(cov))
    cov = cov / np.outer(scale, scale)
    _, q = sklearn_glasso(cov, rho, tol=1e-10, enet_tol=1e-11, max_iter=2000)
    found = sparse_precision(cov, rho)
    assert np.allclose(found.precision, q, atol=1e-6)
    assert np.allclose(found.covariance, np.linalg.inv(q), atol=1e-5)  # its own covariance may be off by more


def test_limits_of_the_penalty():
    cov = random_covariance(11, 7, 50)
    assert np.allclose(sparse_precision(cov, 0.0).precision, np.linalg.inv(cov))
    top = np.abs(cov[~np.eye(7, dtype=bool)]).max()
    assert np.allclose(sparse_precision(cov, top).precision, np.diag(1 / np.diag(cov)))
    with_diagonal = sparse_precision(cov, top, penalise_diagonal=True)
    assert np.allclose(with_diagonal.precision, np.diag(1 / (np.diag(cov) + top)))
    assert np.count_nonzero(sparse_precision(cov, 0.9 * top).precision) > 7
    with pytest.raises(mk.errors.InvalidArgument, match="singular"):
        sparse_precision(np.ones((3, 3)) + np.diag([0, 0, 1.0]), 0.0)


def test_components_are_solved_apart_and_a_warm_start_changes_nothing():
    cov = np.zeros((6, 6))
    cov[:3, :3], cov[3:, 3:] = random_covariance(1, 3, 20), random_covariance(2, 3, 20)
    whole = sparse_precision(cov, 0.05)
    part = sparse_precision(cov[:3, :3], 0.05)
    assert np.allclose(whole.precision[:3, :3], part.precision, atol=1e-7)
    assert not whole.precision[:3, 3:].any()
    warm = sparse_precision(cov, 0.05, start=sparse_precision(cov, 0.2).precision)
    assert np.allclose(warm.precision, whole.precision, atol=1e-6)


def test_entries_without_a_penalty_and_forbidden_ones():
    """With penalties of zero and infinity it is the Gaussian graphical model of a known graph (covariance selection)."""
    cov = random_covariance(4, 4, 30)
    penalty = np.where(chain_precision(4) != 0, 0.0, np.inf)
    found = sparse_precision(cov, penalty)
    chain = np.abs(np.subtract.outer(range(4), range(4))) <= 1
    assert np.allclose(found.covariance[chain], cov[chain], atol=1e-6)
    assert not found.precision[~chain].any()


def test_the_learned_precision_is_in_the_units_of_the_data():
    rows = draw(chain_precision(5), 300, 12) * np.array([1, 10, 0.1, 3, 1])
    found = mk.learn_structure(table(rows), method="graphical-lasso", rho=0.1)
    scaled = mk.learn_structure(table(rows * 7), method="graphical-lasso", rho=0.1)
    assert found.edges == scaled.edges
    assert np.allclose(found.details.precision, 49 * scaled.details.precision)
    assert np.allclose(np.diag(found.details.covariance), rows.var(axis=0))
    assert np.allclose(found.weights, partial_correlations_of(found.details.precision))
    assert found.details.kkt < 1e-7
    assert abs(found.details.gap) < 1e-6
    plain = mk.learn_structure(table(rows), method="graphical-lasso", rho=0.05, scale=False)
    _, q = sklearn_glasso(np.cov(rows.T, bias=True), 0.05, tol=1e-9, enet_tol=1e-10, max_iter=1000)
    assert np.allclose(plain.details.precision, q, atol=1e-5)


def test_extended_bic_recovers_chains_and_grids():
    for q in (chain_precision(8), grid_precision(3, 3, 0.25)):
        found = mk.learn_structure(table(draw(q, 3000, 13)), method="graphical-lasso", choose="ebic")
        assert edges(q) <= set(found.edges)
        assert len(found.edges) <= len(edges(q)) + 1
        choice = found.details.choice
        assert choice.by == "ebic"
        assert found.details.rho in choice.penalties


def test_nearly_collinear_columns_converge():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 40)) + 0.01 * rng.normal(size=(200, 40))
    cov = np.corrcoef(rows.T)
    assert np.linalg.cond(cov) > 1e5
    for rho in (0.4, 0.2):
        found = sparse_precision(cov, rho)
        assert found.converged
        assert found.gap < 1e-4


# densities and conditions of the theory


def test_moment_and_information_forms_are_one_density():
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(2)
    cov = random_covariance(5, 4, 30)
    mean, q = rng.normal(size=4), np.linalg.inv(cov)
    points = rng.normal(size=(6, 4))
    pull = q @ mean
    log_z = 0.5 * (mean @ pull - np.linalg.slogdet(q)[1] + 4 * np.log(2 * np.pi))
    above = np.triu_indices(4, 1)
    for x in points:
        quadratic = -0.5 * (np.diag(q) * x**2).sum() - (q[above] * x[above[0]] * x[above[1]]).sum()
        assert multivariate_normal(mean, cov).logpdf(x) == pytest.approx(pull @ x + quadratic - log_z)


def test_correlation_networks_differ_from_markov_networks():
    """A chain has a dense covariance; a collider's two causes are uncorrelated yet joined in the Markov network."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 4000))
    rows = {"a": a, "b": b, "c": a + b + rng.normal(size=4000)}
    # at a fixed penalty the lasso on a and c takes both; the graphical lasso's penalty may outweigh a weak pair
    for method, options in (
        ("partial-correlation", {}),
        ("graphical-lasso", {"rho": 0.02}),
        ("neighbourhood", {"alpha": 0.02}),
    ):
        found = mk.learn_structure(rows, method=method, **options)
        assert ("a", "b") in found.edges
        assert found.weights[0, 1] < 0
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.05


@pytest.mark.slow
def test_neighbourhoods_are_recovered_once_rows_outgrow_the_logarithm_of_columns():
    """With a penalty of the order sqrt(log p / n) the chance to find a graph rises from 0 to 1 with n / log p."""
    chances = []
    for ratio in (5, 30, 120, 400):
        hits = 0
        for trial in range(10):
            p = 24
            n = int(ratio * np.log(p))
            q = chain_precision(p, 0.35)
            found = mk.learn_structure(
                table(draw(q, n, 100 * ratio + trial)),
                method="neighbourhood",
                alpha=min(0.9, 2.0 * np.sqrt(np.log(p) / n)),
            )
            hits += set(found.edges) == edges(q)
        chances.append(hits / 10)
    assert chances[0] <= 0.1
    assert chances[-1] >= 0.8
    assert chances == sorted(chances)


def test_cross_validation_predicts_better_than_the_ends_of_the_path():
    q = chain_precision(8)
    train, test = draw(q, 60, 14), draw(q, 4000, 15)
    found = mk.learn_structure(table(train), method="graphical-lasso", choose="cv", scale=False, seed=0)
    held = np.cov(test.T, bias=True)

    def fit(precision):
        return np.linalg.slogdet(precision)[1] - np.trace(held @ precision)

    best = fit(found.details.precision)
    cov = np.cov(train.T, bias=True)
    assert best > fit(np.linalg.inv(cov))
    assert best > fit(np.diag(1 / np.diag(cov)))
    assert len(found.details.choice.criterion) == 30


def test_a_time_limit_ends_the_path_early():
    rows = draw(chain_precision(6), 100, 16)
    found = mk.learn_structure(table(rows), method="graphical-lasso", time_limit=1e-9)
    assert found.stopped == "time limit"
    assert len(found.details.choice.penalties) == 1
    found = mk.learn_structure(table(rows), method="neighbourhood", time_limit=1e-9)
    assert found.n_edges == 0
    assert "stopped after 0" in found.notes[0]
    assert len(list(glasso_path(np.eye(3), np.ones((3, 3)), np.array([0.2, 0.1]), None))) == 2


def test_partial_correlations_look_at_the_clock_between_blocks(monkeypatch):
    """However far the work is when the time ends, nothing more is begun; without an end blocks change nothing."""
    rows = draw(chain_precision(20), 90, 19)
    whole = mk.learn_structure(table(rows), method="partial-correlation")
    monkeypatch.setattr(partial_correlation_search, "WORK", 1.0)  # blocks of eight
    blocks = mk.learn_structure(table(rows), method="partial-correlation")
    np.testing.assert_allclose(blocks.details.precision, np.linalg.inv(np.cov(rows.T, bias=True)), rtol=1e-9)
    np.testing.assert_allclose(blocks.details.p_values, whole.details.p_values, rtol=1e-6, atol=1e-14)
    assert blocks.edges == whole.edges
    looks = 12 + 3 + 3  # blocks of rows, of the factor, of the inverse
    for after in (1, 12, 13, 16, looks):
        asked = []

        def over(self, after=after, asked=asked):
            asked.append(1)
            self.reason = "time limit" if len(asked) >= after else None
            return self.reason is not None

        with monkeypatch.context() as patch:
            patch.setattr(Clock, "over", over)
            found = mk.learn_structure(table(rows), method="partial-correlation", required=[("x3", "x0")])
        assert found.edges == [("x0", "x3")]
        assert "stopped before" in found.notes[0]
        assert len(asked) <= after + 2
    with pytest.raises(mk.errors.InvalidArgument, match="'x1', 'x2', 'sum' are linearly dependent"):
        mk.learn_structure({**table(rows), "sum": rows[:, 1] - 2 * rows[:, 2]}, method="partial-correlation")
    with pytest.raises(mk.errors.InvalidArgument, match="at least 21 rows"):
        mk.learn_structure(table(rows[:20]), method="partial-correlation")


def test_lattice_images_have_edges_between_neighbouring_pixels():
    """On images the non-zero entries lie beside the diagonal and one row apart."""
    q = grid_precision(5, 5, 0.22)
    found = mk.learn_structure(table(draw(q, 1500, 17)), method="graphical-lasso", rho=1 / 8)
    near = np.abs(np.subtract.outer(range(25), range(25)))
    mass = np.abs(found.weights)
    assert mass[(near == 1) | (near == 5)].sum() > 0.95 * mass.sum()
    assert set(found.edges) >= edges(q)


def test_bad_input_is_named():
    rows = table(draw(chain_precision(3), 30, 18))
    with pytest.raises(mk.errors.InvalidArgument, match="constant"):
        mk.learn_structure({**rows, "c": np.full(30, 0.5)}, method="graphical-lasso")
    with pytest.raises(mk.errors.InvalidArgument, match="not both"):
        mk.learn_structure(rows, method="graphical-lasso", rho=0.1, choose="cv")
    with pytest.raises(mk.errors.InvalidArgument, match="choose="):
        mk.learn_structure(rows, method="graphical-lasso", choose="aic")
    with pytest.raises(mk.errors.InvalidArgument, match="rule="):
        mk.learn_structure(rows, method="neighbourhood", rule="xor")
    with pytest.raises(mk.errors.InvalidArgument, match="alpha="):
        mk.learn_structure(rows, method="neighbourhood", alpha=-1.0)
    with pytest.raises(mk.errors.InvalidArgument, match="symmetric"):
        sparse_precision([[1.0, 0.2], [0.3, 1.0]], 0.1)


def test_lasso_conditions_are_public_and_do_not_depend_on_the_unit_of_all_columns():
    c = np.array([[1.0, 0.3, 0.6], [0.3, 1.0, 0.1], [0.6, 0.1, 1.0]])
    found = mk.regression.lasso_conditions(c, [0, 1])
    shares = c[2, :2] @ np.linalg.inv(c[:2, :2])
    assert found.incoherence == pytest.approx(np.abs(shares).sum())
    assert found.smallest_eigenvalue == pytest.approx(0.7)
    for unit in (1e-18, 1e18):
        other = mk.regression.lasso_conditions(unit * c, [0, 1])
        assert other.hold
        assert other.incoherence == pytest.approx(found.incoherence)
