"""LiNGAM: orders, coefficients and total effects of linear non-Gaussian models."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from scipy.stats import t as student

import markovia as mk
from markovia.structure.functional import direct_lingam as direct
from markovia.structure.functional.linear_effects import (
    effects_along,
    known_before,
    order_of,
    total_effects,
    triangular_order,
)
from markovia.structure.functional.residual_independence import independence_p_values
from markovia.structure.task.knowledge import Knowledge

METHODS = ("direct-lingam", "ica-lingam")
B_EXAMPLE = np.array([[0, -0.2, 0.3], [0, 0, 0], [0, 0.5, 0]])


def linear_model(p, n, seed, density=0.5):
    """Draw a random model of uniform and Laplace noises, its columns shuffled, and rows from it."""
    rng = np.random.default_rng(seed)
    effects = (
        np.tril(rng.random((p, p)) < density, -1)
        * rng.uniform(0.5, 1.2, (p, p))
        * rng.choice([-1, 1], (p, p))
    )
    shuffle = rng.permutation(p)
    effects = effects[np.ix_(shuffle, shuffle)]
    noise = np.where(rng.random(p) < 0.5, rng.uniform(-1.7, 1.7, (n, p)), rng.laplace(size=(n, p)) / 1.4)
    return effects, np.linalg.solve(np.eye(p) - effects, noise.T).T


def example_rows(n=60_000, seed=0):
    noise = np.random.default_rng(seed).uniform(-1, 1, (n, 3))
    return {f"X{i + 1}": column for i, column in enumerate(np.linalg.solve(np.eye(3) - B_EXAMPLE, noise.T))}


@pytest.mark.parametrize("method", METHODS)
def test_the_three_variable_example_is_recovered_with_its_total_effects(method):
    found = mk.learn_structure(example_rows(), method, seed=0)
    assert found.details.order == ["X2", "X3", "X1"]
    assert set(found.edges) == {("X2", "X3"), ("X2", "X1"), ("X3", "X1")}
    np.testing.assert_allclose(found.details.B, B_EXAMPLE, atol=0.015)
    np.testing.assert_array_equal(found.weights, found.details.B.T)
    expected = [[1, -0.05, 0.3], [0, 1, 0], [0, 0.5, 1]]
    np.testing.assert_allclose(found.details.total_effects, expected, atol=0.015)
    assert found.details.residual_p_values.min() > 0.001
    assert not found.notes


@pytest.mark.parametrize("method", METHODS)
def test_random_models_are_recovered_from_many_rows(method):
    for seed in range(4):
        effects, rows = linear_model(6, 5000, seed)
        found = mk.learn_structure(rows, method, seed=0)
        np.testing.assert_allclose(found.details.B, effects, atol=0.12)
        place = [found.nodes.index(name) for name in found.details.order]
        assert (
            order_of(effects[np.ix_(place, place)]) == list(range(6))
            or not np.triu(effects[np.ix_(place, place)]).any()
        )


def test_the_kernel_measure_finds_the_same_order():
    for seed in (0, 1):
        effects, rows = linear_model(4, 1200, seed, density=0.8)
        found = mk.learn_structure(rows, "direct-lingam", measure="kernel")
        place = [found.nodes.index(name) for name in found.details.order]
        assert not np.triu(effects[np.ix_(place, place)]).any()


def test_kernel_mutual_information_equals_the_determinants_of_whole_kernel_matrices():
    rng = np.random.default_rng(0)
    n, kappa = 60, 2e-2
    x, y = rng.uniform(-1.7, 1.7, (2, n))
    y = y + 0.5 * x**2
    centre = np.eye(n) - 1 / n
    first, second = (centre @ np.exp(-0.5 * (v[:, None] - v) ** 2) @ centre for v in (x, y))
    ridge = n * kappa / 2 * np.eye(n)
    blocks = (first + ridge) @ (first + ridge), (second + ridge) @ (second + ridge)
    whole = np.block([[blocks[0], first @ second], [second @ first, blocks[1]]])
    expected = -0.5 * (np.linalg.slogdet(whole)[1] - sum(np.linalg.slogdet(b)[1] for b in blocks))
    assert direct.kernel_mutual_information(x, y) == pytest.approx(expected, rel=1e-3)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_skipping_comparisons_does_not_change_the_choice(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 7))
    _, rows = linear_model(p, 300, seed)
    columns = np.ascontiguousarray(((rows - rows.mean(axis=0)) / rows.std(axis=0)).T)
    correlations = columns @ columns.T / 300
    members = sorted(rng.choice(p, p - 1, replace=False).tolist())
    candidates = sorted(rng.choice(members, 2, replace=False).tolist())
    compiled = direct._compiled_likelihoods(p)
    for _ in range(2):  # the second time with the evidence of the first
        fast, made = compiled(columns, correlations, members, candidates)
        plain, _ = direct._plain_likelihoods(columns, correlations, members, candidates)
        assert fast == plain
        assert made <= len(members) * (len(members) - 1) // 2


def test_compiled_entropies_equal_the_plain_ones():
    from markovia.kernels.structure.residual_entropies import pair_entropies

    rng = np.random.default_rng(0)
    a, b = rng.standard_t(3, size=(2, 1001))
    a[0] = 60.0  # far out, where exponentials vanish
    a, b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    c, out = float((a * b).mean()), np.empty(2)
    pair_entropies(a, b, c, out)
    scale = np.sqrt(1 - c * c)
    np.testing.assert_allclose(out, direct._entropies(np.stack([a - c * b, b - c * a]) / scale), atol=1e-11)


def test_orders_and_coefficients_agree_with_causal_learn():
    lingam = pytest.importorskip("causallearn.search.FCMBased.lingam")
    for seed in range(3):
        _, rows = linear_model(6, 1500, seed)
        peer = lingam.DirectLiNGAM()
        peer.fit(rows)
        found = mk.learn_structure(rows, "direct-lingam")
        assert [found.nodes.index(name) for name in found.details.order] == peer.causal_order_
        np.testing.assert_array_equal(found.details.B != 0, peer.adjacency_matrix_ != 0)
        np.testing.assert_allclose(found.details.B, peer.adjacency_matrix_, atol=0.03)


@pytest.mark.parametrize("method", METHODS)
def test_required_forbidden_tiers_and_parents_are_obeyed(method):
    rows = example_rows(3000)
    found = mk.learn_structure(rows, method, required=[("X1", "X2")], seed=0)
    assert ("X1", "X2") in found.edges
    assert found.details.order.index("X1") < found.details.order.index("X2")
    found = mk.learn_structure(rows, method, forbidden=[("X2", "X3"), ("X3", "X2")], seed=0)
    assert not found.skeleton.has_edge("X2", "X3")
    found = mk.learn_structure(rows, method, tiers=[["X1"], ["X2", "X3"]], seed=0)
    assert found.details.order[0] == "X1"
    found = mk.learn_structure(rows, method, max_parents=1, seed=0)
    assert max(len(found.dag.parents(n)) for n in found.nodes) <= 1
    assert any("max_parents=1" in note for note in found.notes)


def test_a_required_edge_stays_even_where_its_coefficient_is_nothing():
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(500, 3))
    for prune in ("adaptive-lasso", "wald", "threshold"):
        found = mk.learn_structure(
            rows, "direct-lingam", required=[("x2", "x0")], prune=prune, alpha=1e-6, threshold=0.5
        )
        assert found.edges == [("x2", "x0")]


def test_prunings_differ_as_they_say():
    _, rows = linear_model(5, 400, 3)
    full = mk.learn_structure(rows, "direct-lingam", prune="none")
    assert full.n_edges == 10
    wald = mk.learn_structure(rows, "direct-lingam", prune="wald", alpha=0.001)
    assert wald.n_edges < 10
    t = np.abs(full.details.t_values)
    assert wald.n_edges == int((t > 3.315).sum())  # the 0.9995 quantile for some 395 degrees of freedom
    cut = mk.learn_structure(rows, "direct-lingam", prune="threshold", threshold=0.3)
    np.testing.assert_array_equal(cut.details.B != 0, np.abs(full.details.B) >= 0.3)


def test_wald_pruning_drops_an_edge_exactly_where_its_p_value_reaches_the_level():
    """Student's t with rows - regressors - 1 degrees of freedom: with few rows another number of them shows."""
    _, rows = linear_model(4, 12, 1)
    order, rules = [2, 0, 3, 1], Knowledge().rules("abcd")

    def kept(alpha):
        return effects_along(order, rows, rules, "abcd", prune="wald", threshold=0, alpha=alpha).matrix != 0

    for place, child in enumerate(order[1:], start=1):
        before = order[:place]
        design = np.column_stack([np.ones(12), rows[:, before]])
        beta, squares, *_ = np.linalg.lstsq(design, rows[:, child], rcond=None)
        freedom = 12 - place - 1
        errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * squares[0] / freedom)
        p_values = 2 * student.sf(np.abs(beta / errors), freedom)[1:]
        assert ((p_values > 1e-9) & (p_values < 0.95)).all()
        for parent, p in zip(before, p_values, strict=True):
            assert not kept(p * (1 - 1e-6))[child, parent]
            assert kept(p * (1 + 1e-6))[child, parent]


def test_coefficients_along_an_order_are_those_of_least_squares():
    _, rows = linear_model(4, 200, 0)
    order = [2, 0, 3, 1]
    rules = Knowledge().rules("abcd")
    found = effects_along(order, rows, rules, "abcd", prune="none", threshold=0, alpha=0.05)
    for place, child in enumerate(order[1:], start=1):
        before = order[:place]
        design = np.column_stack([np.ones(200), rows[:, before]])
        expected = np.linalg.lstsq(design, rows[:, child], rcond=None)[0][1:]
        np.testing.assert_allclose(found.matrix[child, before], expected, atol=1e-10)


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_the_triangular_order_leaves_the_least_largest_entry_above_the_diagonal(seed):
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=(4, 4))
    np.fill_diagonal(effects, 0)
    order = triangular_order(effects, np.zeros((4, 4), dtype=bool))

    def largest(order):
        return np.abs(np.triu(effects[np.ix_(order, order)])).max()

    assert largest(order) == min(largest(list(o)) for o in itertools.permutations(range(4)))


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_total_effects_are_sums_over_directed_paths(seed):
    effects, _ = linear_model(5, 10, seed)
    expected = sum(np.linalg.matrix_power(effects, k) for k in range(5))
    np.testing.assert_allclose(total_effects(effects), expected, atol=1e-12)


def test_what_is_known_about_orders_follows_from_paths():
    before, may = known_before(Knowledge(tiers=[["a"], ["b"]], required=[("b", "c")]).rules("abcd"))
    assert before[1, 2]
    assert not before[0, 1], "a path b -> d -> a is still allowed"
    assert may[1, 0]
    before, may = known_before(Knowledge(tiers=[["a"], ["b", "c", "d"]]).rules("abcd"))
    assert before[0, 1:].all()
    assert not may[1:, 0].any()


def test_residual_tests_keep_their_level_and_see_dependence():
    rng = np.random.default_rng(0)
    effects, rows = linear_model(20, 1500, 1, density=0.2)
    found = mk.learn_structure(rows, "direct-lingam")
    p = found.details.residual_p_values[np.triu_indices(20, 1)]
    assert kstest(p, "uniform").pvalue > 0.001
    noise = rng.uniform(size=(1500, 2))
    noise[:, 1] *= noise[:, 0]
    assert independence_p_values(noise)[0, 1] < 1e-6
    assert effects.any()


def test_gaussian_noises_and_hidden_causes_are_noted():
    rng = np.random.default_rng(0)
    found = mk.learn_structure(
        rng.normal(size=(1000, 3)) @ np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]]), "direct-lingam"
    )
    assert any("Gaussian" in note for note in found.notes)
    hidden, e = rng.exponential(size=2000), rng.uniform(size=(2000, 2))
    found = mk.learn_structure(np.column_stack([hidden + e[:, 0], hidden + e[:, 1]]), "direct-lingam")
    assert any("hidden cause" in note for note in found.notes)


def test_units_of_measurement_change_only_the_units_of_the_coefficients():
    _, rows = linear_model(5, 2000, 2)
    scale = np.array([1e-3, 1.0, 50.0, 7.0, 1e4])
    for method in METHODS:
        plain = mk.learn_structure(rows, method, seed=0)
        scaled = mk.learn_structure(rows * scale, method, seed=0)
        assert plain.details.order == scaled.details.order
        np.testing.assert_allclose(
            scaled.details.B * scale / scale[:, None], plain.details.B, rtol=1e-4, atol=1e-9
        )


def test_a_time_limit_keeps_what_is_ordered():
    _, rows = linear_model(5, 300, 0)
    found = mk.learn_structure(rows, "direct-lingam", time_limit=1e-9, required=[("x1", "x0")])
    assert found.stopped == "time limit"
    assert found.edges == [("x1", "x0")]
    assert any("stopped after" in note for note in found.notes)


def test_wrong_data_and_options_are_refused():
    rows = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(mk.errors.InvalidArgument, match="constant"):
        mk.learn_structure({"a": rows[:, 0], "b": np.ones(50)}, "direct-lingam")
    with pytest.raises(mk.errors.InvalidArgument, match="weights"):
        mk.learn_structure(rows, "direct-lingam", weights=np.ones(50))
    with pytest.raises(mk.errors.InvalidArgument, match="at least 4 rows"):
        mk.learn_structure(rows[:3], "direct-lingam")
    with pytest.raises(mk.errors.InvalidArgument, match="linearly dependent"):
        mk.learn_structure(np.column_stack([rows, rows.sum(axis=1)]), "ica-lingam")
    for bad in ({"measure": "x"}, {"prune": "x"}, {"threshold": -1}, {"alpha": 2.0}):
        with pytest.raises(mk.errors.InvalidArgument, match=f"{next(iter(bad))}="):
            mk.learn_structure(rows, "direct-lingam", **bad)
    with pytest.raises(mk.errors.InvalidArgument, match="contrast="):
        mk.learn_structure(rows, "ica-lingam", contrast="x")


@pytest.mark.parametrize("seed", [0, 7])
def test_one_start_of_fastica_may_mislead_and_several_do_not(seed: int):
    cause, noise = np.random.default_rng(seed).laplace(size=(2, 500))
    rows = {"effect": cause + noise, "cause": cause}
    assert mk.learn_structure(rows, "ica-lingam", restarts=0, seed=0).edges == [("effect", "cause")]
    assert mk.learn_structure(rows, "ica-lingam", seed=0).edges == [("cause", "effect")]
