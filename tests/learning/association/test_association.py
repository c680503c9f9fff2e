"""Association measures, kernel tests and the graphs built from them."""

import math
import subprocess
import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import mutual_info_score

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.graphs import UndirectedGraph
from markovia.learning import (
    conditional_entropy,
    conditional_mutual_information,
    correlation_graph,
    covariance,
    dependency_graph,
    entropy,
    hsic,
    hsic_test,
    joint_entropy,
    kl_divergence,
    mahalanobis,
    mmd,
    mmd_test,
    mutual_information,
    mutual_information_of_table,
    partial_correlation,
    partial_correlation_graph,
    pearson,
    permutation_test,
)

seeds = st.integers(0, 2**32 - 1)


def gaussian_rows(seed, n_rows=60, n_columns=5):
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(n_columns, n_columns)) + 2 * np.eye(n_columns)
    return rng.normal(size=(n_rows, n_columns)) @ mixing.T + rng.normal(size=n_columns)


def height_vocabulary_age(n_rows=500, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(2, 12, n_rows)
    height = 75 + 6 * age + rng.normal(0, 6, n_rows)
    vocabulary = 800 * age + rng.normal(0, 700, n_rows)
    return pd.DataFrame({"height": height, "vocabulary": vocabulary, "age": age})


# -------- linear measures


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_pearson_of_two_vectors_agrees_with_scipy(seed):
    x, y = gaussian_rows(seed, n_columns=2).T
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_matrices_agree_with_numpy(seed):
    rows = gaussian_rows(seed)
    np.testing.assert_allclose(pearson(rows).values, np.corrcoef(rows.T), atol=1e-12)
    np.testing.assert_allclose(covariance(rows).values, np.cov(rows.T), rtol=1e-10)
    np.testing.assert_allclose(covariance(rows, ddof=0).values, np.cov(rows.T, ddof=0), rtol=1e-10)


def test_array_frame_and_mapping_give_the_same_matrix():
    rows = gaussian_rows(1, n_columns=3)
    from_array = pearson(rows)
    from_frame = pearson(pd.DataFrame(rows, columns=["a", "b", "c"]))
    from_mapping = pearson({name: list(column) for name, column in zip("abc", rows.T, strict=True)})
    assert from_array.names == ("x0", "x1", "x2")
    assert from_frame.names == from_mapping.names == ("a", "b", "c")
    np.testing.assert_array_equal(from_array.values, from_frame.values)
    np.testing.assert_array_equal(from_array.values, from_mapping.values)
    assert from_frame["a", "c"] == from_array.values[0, 2]
    assert list(from_frame.to_pandas().columns) == ["a", "b", "c"]
    with pytest.raises(UnknownVariable, match="did you mean 'a'"):
        from_frame["A", "b"]


def test_association_matrix_cannot_be_changed_and_prints_its_names():
    matrix = pearson({"age": [1, 2, 4], "height": [3, 5, 4]})
    with pytest.raises(ValueError, match="read-only"):
        matrix.values[0, 1] = 0
    lines = str(matrix).splitlines()
    assert lines[0] == "Pearson correlation, 3 rows"
    assert len({len(line) for line in lines[1:]}) == 1


def test_pearson_survives_huge_values_and_offsets():
    x = np.array([1.0, 2.0, 4.0, 3.0])
    y = np.array([2.0, 1.0, 5.0, 4.0])
    expected = stats.pearsonr(x, y).statistic
    assert pearson(x * 1e307, y) == pytest.approx(expected, abs=1e-12)
    assert pearson(x * 1e-307, y) == pytest.approx(expected, abs=1e-12)
    assert pearson(x + 1e8, y) == pytest.approx(expected, abs=1e-6)


def residual_definition(x, y, z):
    design = np.column_stack([np.ones(len(x)), z])
    e_x, e_y = (v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y))
    return np.corrcoef(e_x, e_y)[0, 1]


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_partial_correlation_by_residuals_and_by_precision_agree(seed):
    rows = gaussian_rows(seed)
    by_precision = partial_correlation(rows)
    by_residuals = partial_correlation(rows, method="residual")
    np.testing.assert_allclose(by_precision.values, by_residuals.values, atol=1e-10)
    x, y, z = rows[:, 0], rows[:, 1], rows[:, 2:]
    expected = residual_definition(x, y, z)
    for method in ("precision", "residual"):
        assert partial_correlation(x, y, given=z, method=method) == pytest.approx(expected, abs=1e-10)
    assert by_precision.values[0, 1] == pytest.approx(expected, abs=1e-10)


def test_partial_correlation_of_a_known_covariance_is_the_scaled_precision():
    rng = np.random.default_rng(5)
    theta = np.array([[2.0, 0.6, 0.0], [0.6, 1.5, -0.4], [0.0, -0.4, 1.0]])
    white = rng.normal(size=(200, 3))
    white -= white.mean(axis=0)
    white = white @ np.linalg.inv(np.linalg.cholesky(white.T @ white / 199)).T
    rows = white @ np.linalg.cholesky(np.linalg.inv(theta)).T
    partial = partial_correlation(rows).values
    assert partial[0, 1] == pytest.approx(-0.6 / math.sqrt(3.0), abs=1e-10)
    assert partial[1, 2] == pytest.approx(0.4 / math.sqrt(1.5), abs=1e-10)
    assert partial[0, 2] == pytest.approx(0.0, abs=1e-10)


def test_partial_correlation_given_nothing_is_pearson():
    x, y = gaussian_rows(3, n_columns=2).T
    assert partial_correlation(x, y) == pearson(x, y)


@pytest.mark.parametrize("method", ["precision", "residual"])
def test_collinear_columns_are_named(method):
    rng = np.random.default_rng(0)
    a, b, other = rng.normal(size=(3, 40))
    data = {"a": a, "b": b, "other": other, "sum": a + 2 * b}
    with pytest.raises(InvalidArgument, match="'a', 'b', 'sum' are linearly dependent"):
        partial_correlation(data, method=method)


def test_constant_columns_are_named():
    data = {"a": [1.0, 2.0, 3.0, 5.0], "flat": [0.1, 0.1, 0.1, 0.1]}
    for measure in (pearson, partial_correlation, correlation_graph):
        with pytest.raises(InvalidArgument, match="'flat' is constant"):
            measure(data)


def test_too_few_rows_are_refused():
    with pytest.raises(InvalidArgument, match="at least 2 rows"):
        pearson([1.0], [2.0])
    with pytest.raises(InvalidArgument, match="at least 2 rows"):
        covariance([1.0], [2.0])
    with pytest.raises(InvalidArgument, match="at least 4 rows; the data have 3"):
        partial_correlation(np.arange(9.0).reshape(3, 3) ** 2)
    with pytest.raises(InvalidArgument, match=r"at least 4 rows.*threshold="):
        correlation_graph({"a": [1, 2, 4], "b": [2, 1, 3]})


def test_mahalanobis_distance():
    cov = [[1.0, 0.0], [0.0, 4.0]]
    assert mahalanobis([1.0, 2.0], [0.0, 0.0], cov, squared=True) == pytest.approx(2.0)
    assert mahalanobis([4.0, 6.0], [1.0, 2.0], np.eye(2)) == pytest.approx(5.0)  # Euclidean
    rows = gaussian_rows(2, n_rows=10, n_columns=3)
    mean, matrix = rows.mean(axis=0), np.cov(rows.T)
    direct = [math.sqrt((r - mean) @ np.linalg.inv(matrix) @ (r - mean)) for r in rows]
    np.testing.assert_allclose(mahalanobis(rows, mean, matrix), direct, rtol=1e-8)
    with pytest.raises(InvalidArgument, match="positive definite"):
        mahalanobis([1.0, 2.0], [0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(InvalidArgument, match="symmetric"):
        mahalanobis([1.0, 2.0], [0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(InvalidArgument, match="shapes disagree"):
        mahalanobis([1.0, 2.0, 3.0], [0.0, 0.0], np.eye(2))


# -------- information measures


@given(seeds, st.integers(1, 6), st.integers(1, 6), st.integers(1, 200))
@settings(max_examples=50, deadline=None)
def test_mutual_information_agrees_with_scikit_learn(seed, x_states, y_states, n_rows):
    rng = np.random.default_rng(seed)
    x = rng.integers(x_states, size=n_rows)
    y = (x + rng.integers(y_states, size=n_rows)) % 5
    assert mutual_information(x, y) == pytest.approx(mutual_info_score(x, y), abs=1e-12)


def test_mutual_information_of_the_printed_tables():
    assert mutual_information_of_table([[0.64, 0.16], [0.04, 0.16]]) == pytest.approx(0.126467, abs=5e-7)
    assert mutual_information_of_table([[0.08, 0.32], [0.12, 0.48]]) == pytest.approx(0.0, abs=1e-15)
    assert mutual_information_of_table([[0.4, 0.3], [0.2, 0.1]]) == pytest.approx(0.00402174, abs=5e-9)


def test_mutual_information_of_rows_is_that_of_their_table():
    counts = np.array([[64, 16], [4, 16]])
    x, y = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices((2, 2)))
    assert mutual_information(x, y) == pytest.approx(mutual_information_of_table(counts / 100), abs=1e-14)
    independent = np.array([[8, 32], [12, 48]])
    x, y = (np.repeat(index.ravel(), independent.ravel()) for index in np.indices((2, 2)))
    assert mutual_information(x, y) == 0.0


def discrete_rows(seed, n_rows=80):
    rng = np.random.default_rng(seed)
    z = rng.integers(3, size=n_rows)
    x = (z + rng.integers(2, size=n_rows)) % 3
    y = (z + x * rng.integers(2, size=n_rows)) % 4
    return x, y, z


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_conditional_mutual_information_is_the_difference_of_entropies(seed):
    x, y, z = discrete_rows(seed)
    for correction in ("none", "miller-madow"):
        by_entropies = (
            joint_entropy(x, z, correction=correction)
            + joint_entropy(y, z, correction=correction)
            - joint_entropy(x, y, z, correction=correction)
            - entropy(z, correction=correction)
        )
        value = conditional_mutual_information(x, y, z, correction=correction)
        assert value == pytest.approx(by_entropies, abs=1e-12)
    chain = mutual_information(x, z) + conditional_mutual_information(x, y, z)
    assert mutual_information(x, np.column_stack([y, z])) == pytest.approx(chain, abs=1e-12)
    assert conditional_entropy(x, z) == pytest.approx(entropy(x) - mutual_information(x, z), abs=1e-12)


@given(
    st.lists(st.integers(0, 3), min_size=6, max_size=6), st.lists(st.integers(0, 3), min_size=6, max_size=6)
)
@settings(max_examples=50, deadline=None)
def test_counts_that_factorise_given_z_have_no_conditional_information(x_given_z, y_given_z):
    phi, psi = np.reshape(x_given_z, (2, 3)), np.reshape(y_given_z, (2, 3))
    counts = phi[:, None, :] * psi[None, :, :]
    if not counts.sum():
        return
    x, y, z = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape))
    assert conditional_mutual_information(x, y, z) == 0.0


def test_independent_coins_become_dependent_given_their_exclusive_or():
    x, y = np.array(list(product([0, 1], repeat=2))).T
    assert mutual_information(x, y, base=2) == 0.0
    assert conditional_mutual_information(x, y, x ^ y, base=2) == pytest.approx(1.0)


def test_conditioning_on_several_columns_is_conditioning_on_their_combination():
    x, y, z = discrete_rows(4)
    w = np.arange(len(x)) % 2
    frame = pd.DataFrame({"z": z, "w": w})
    expected = conditional_mutual_information(x, y, [f"{a}/{b}" for a, b in zip(z, w, strict=True)])
    assert conditional_mutual_information(x, y, frame) == pytest.approx(expected, abs=1e-14)
    assert conditional_mutual_information(x, y, {"z": z, "w": w}) == pytest.approx(expected, abs=1e-14)


def test_states_may_be_strings_booleans_integers_or_a_mixture():
    codes = [0, 1, 1, 2, 0, 2, 1, 0]
    other = [True, False, False, True, True, False, False, True]
    expected = mutual_information(codes, other)
    for names in (["low", "mid", "high"], [-5, 0, 10**12], [0.0, 1.0, 2.0], ["low", 3, (1, 2)]):
        column = np.empty(len(codes), dtype=object)
        column[:] = [names[c] for c in codes]
        assert mutual_information(column, other) == pytest.approx(expected, abs=1e-14)
        assert mutual_information(pd.Series(column), other) == pytest.approx(expected, abs=1e-14)
    categorical = pd.Series(["a", "b", "b", "c", "a", "c", "b", "a"], dtype="category")
    assert mutual_information(categorical, other) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("dtype", [float, object])
def test_continuous_columns_are_told_to_discretise_or_use_hsic(dtype):
    x = np.array([0.5, 1.5, 2.5], dtype=dtype)
    for ask in (
        lambda: mutual_information(x, [0, 1, 0], continuous=False),
        lambda: conditional_mutual_information(x, [0, 1, 0], [0, 0, 0]),
    ):
        with pytest.raises(InvalidArgument, match=r"'x' is continuous; discretise it .* or use hsic"):
            ask()


def test_miller_madow_removes_the_upward_bias_of_independent_columns():
    rng = np.random.default_rng(0)
    plain, corrected = [], []
    for _ in range(200):
        x, y = rng.integers(4, size=(2, 100))
        plain.append(mutual_information(x, y))
        corrected.append(mutual_information(x, y, correction="miller-madow"))
    assert np.mean(plain) == pytest.approx(9 / 200, rel=0.15)
    assert abs(np.mean(corrected)) < 0.006
    assert entropy([0, 1, 1, 2], correction="miller-madow") == pytest.approx(entropy([0, 1, 1, 2]) + 2 / 8)


def test_entropy_bases_and_limits():
    assert entropy(["a", "b", "c", "d"], base=2) == pytest.approx(2.0)
    assert str(entropy(["a", "a"])) == "0.0"
    assert conditional_entropy([0, 1, 0, 1], [5, 6, 5, 6]) == 0.0
    with pytest.raises(InvalidArgument, match="base"):
        entropy([0, 1], base=1.0)
    with pytest.raises(InvalidArgument, match="miller-madow"):
        entropy([0, 1], correction="jackknife")
    with pytest.raises(InvalidArgument, match="at least one column"):
        joint_entropy()


def test_kl_divergence_is_zero_only_for_equal_tables():
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.25, 0.25, 0.5])
    assert kl_divergence(p, p) == 0.0
    assert kl_divergence(p, q) == pytest.approx(stats.entropy(p, q), abs=1e-14)
    assert kl_divergence([0.5, 0.5], [1.0, 0.0]) == math.inf
    assert kl_divergence([1.0, 0.0], [0.5, 0.5]) == pytest.approx(math.log(2))
    with pytest.raises(InvalidArgument, match=r"q sums to 0\.9"):
        kl_divergence([0.5, 0.5], [0.5, 0.4])
    with pytest.raises(InvalidArgument, match="shape"):
        kl_divergence([0.5, 0.5], [0.2, 0.3, 0.5])
    with pytest.raises(InvalidArgument, match="negative"):
        kl_divergence([1.5, -0.5], [0.5, 0.5])
    with pytest.raises(InvalidArgument, match="two"):
        mutual_information_of_table([0.5, 0.5])


def test_resampling_x_given_y_leaves_expectations_unchanged():
    # E over (x, y) of f(x, y) equals E over x, y | x, then x' | y of f(x', y), for any joint and any f.
    rng = np.random.default_rng(11)
    joint = rng.dirichlet(np.ones(12)).reshape(3, 4)
    f = rng.normal(size=(3, 4))
    x_given_y = joint / joint.sum(axis=0)
    resampled = sum(joint[x, y] * x_given_y[again, y] * f[again, y] for x, y, again in np.ndindex(3, 4, 3))
    assert resampled == pytest.approx((joint * f).sum(), abs=1e-14)


# -------- reading data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1.0, 2.0], "b": [1.0, math.nan]}, "'b' has a missing or infinite value at row 1"),
        (pd.DataFrame({"a": [1, 2], "b": pd.array([None, 3], dtype="Int64")}), "'b' has a missing"),
        ({"a": [1.0, math.inf], "b": [1.0, 2.0]}, "'a' has a missing or infinite value at row 1"),
        ({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0]}, "'a' has 3 rows and 'b' has 2"),
        ({"a": [1.0, 2.0], "b": ["u", "v"]}, "'b' does not hold numbers"),
        ({"a": [[1.0], [2.0, 3.0]]}, "'a' has rows of different lengths"),
        (np.ma.masked_equal(np.array([[1.0, 2.0], [3.0, 4.0]]), 4.0), "masked"),
        (np.zeros((2, 2, 2)), "one or two dimensions"),
        ({"a": 3.0}, "'a' has 0 dimensions"),
        ({}, "no columns"),
        ([], "no rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns are named 'a'"),
    ],
)
def test_bad_data_are_refused_by_name(data, message):
    with pytest.raises(InvalidArgument, match=message):
        pearson(data)


def test_missing_states_and_unequal_lengths_are_refused():
    with pytest.raises(InvalidArgument, match="'smoke' has a missing"):
        entropy(pd.DataFrame({"smoke": ["yes", None, "no"]}))
    with pytest.raises(InvalidArgument, match="'x' has 3 rows and 'y' has 2"):
        mutual_information(["a", "b", "a"], ["a", "b"])
    with pytest.raises(InvalidArgument, match="'x' has 3 rows and 'given' has 2"):
        partial_correlation([1.0, 2.0, 4.0], [2.0, 1.0, 3.0], given=[1.0, 2.0])
    with pytest.raises(InvalidArgument, match="3 columns"):
        pearson(np.ones((4, 3)), [1, 2, 3, 4])
    with pytest.raises(InvalidArgument, match="given= needs two vectors"):
        partial_correlation(gaussian_rows(0), given=[1.0])


def test_nullable_integers_without_gaps_are_numbers():
    x, y = [1, 2, 4, 3], [2.0, 1.0, 5.0, 3.0]
    frame = pd.DataFrame({"x": pd.array(x, dtype="Int64"), "y": np.array(y, dtype=object)})
    assert pearson(frame)["x", "y"] == pytest.approx(pearson(x, y), abs=1e-15)


def test_options_and_values_without_meaning_are_refused():
    with pytest.raises(InvalidArgument, match="ddof must be 0 or 1"):
        covariance([1.0, 2.0], [2.0, 1.0], ddof=2)
    with pytest.raises(InvalidArgument, match="'precision' or 'residual'"):
        partial_correlation(gaussian_rows(0), method="lasso")
    column = np.empty(2, dtype=object)
    column[:] = [[1], [2]]
    with pytest.raises(InvalidArgument, match="not hashable"):
        entropy(column)
    with pytest.raises(InvalidArgument, match="continuous"):
        entropy(np.array([1j, 2j]))
    with pytest.raises(InvalidArgument, match="p is an array of numbers, not"):
        kl_divergence([[0.5], [0.2, 0.3]], [0.5, 0.5])
    with pytest.raises(InvalidArgument, match="cov has a missing or infinite number"):
        mahalanobis([1.0], [0.0], [[math.nan]])
    with pytest.raises(InvalidArgument, match="pair for x and y"):
        hsic([1.0, 2.0], [1.0, 2.0], kernel=("rbf", "rbf", "rbf"))


def test_reading_an_array_does_not_import_pandas_or_scipy():
    program = (
        "import sys, numpy as np; import markovia.learning as ml;"
        "ml.partial_correlation(np.random.default_rng(0).normal(size=(20, 3)));"
        "ml.mutual_information(['a', 'b'], [1, 2]);"
        "sys.exit(', '.join(sorted({'pandas', 'scipy', 'matplotlib'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


# -------- kernel measures


def rbf(a, b, length):
    return np.exp(-((a[:, None] - b[None, :]) ** 2) / (2 * length**2))


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_hsic_is_the_squared_mmd_of_joint_and_product_of_marginals(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=8)
    y = x**2 + rng.normal(size=8)
    pairs = np.array(list(zip(x, y, strict=True)))
    grid = np.array(list(product(x, y)))

    def k(p, q):
        return rbf(p[:, 0], q[:, 0], 0.7) * rbf(p[:, 1], q[:, 1], 1.3)

    explicit = k(pairs, pairs).mean() - 2 * k(pairs, grid).mean() + k(grid, grid).mean()
    assert hsic(x, y, bandwidth=(0.7, 1.3)) == pytest.approx(explicit, abs=1e-12)
    assert mmd(pairs, grid, kernel=k, squared=True) == pytest.approx(explicit, abs=1e-12)


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_unbiased_hsic_is_the_average_over_distinct_quadruples(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 6))
    k, l = rbf(x, x, 1.0), rbf(y, y, 1.0)  # noqa: E741
    terms = [
        k[i, j] * (l[i, j] + l[q, r] - 2 * l[i, q])
        for i, j, q, r in product(range(6), repeat=4)
        if len({i, j, q, r}) == 4
    ]
    value = hsic(x, y, bandwidth=1.0, estimator="unbiased")
    assert value == pytest.approx(np.mean(terms), abs=1e-12)


def test_mmd_matches_its_definition_for_both_estimators():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=7), rng.normal(1.0, 2.0, size=5)
    kxx, kyy, kxy = rbf(x, x, 0.8), rbf(y, y, 0.8), rbf(x, y, 0.8)
    biased = kxx.mean() + kyy.mean() - 2 * kxy.mean()
    unbiased = (kxx.sum() - 7) / 42 + (kyy.sum() - 5) / 20 - 2 * kxy.mean()
    assert mmd(x, y, bandwidth=0.8, squared=True) == pytest.approx(biased, abs=1e-14)
    assert mmd(x, y, bandwidth=0.8) == pytest.approx(math.sqrt(biased), abs=1e-14)
    value = mmd(x, y, bandwidth=0.8, estimator="unbiased", squared=True)
    assert value == pytest.approx(unbiased, abs=1e-14)
    assert mmd(x, x) == pytest.approx(0.0, abs=1e-7)
    with pytest.raises(InvalidArgument, match="squared=True"):
        mmd(x, y, estimator="unbiased")


def test_linear_kernels_reduce_to_covariance_and_mean_difference():
    x, y = gaussian_rows(8, n_columns=2).T
    assert hsic(x, y, kernel="linear") == pytest.approx(covariance(x, y, ddof=0) ** 2, rel=1e-10)
    assert hsic(x + 1e6, y, kernel="linear") == pytest.approx(hsic(x, y, kernel="linear"), rel=1e-6)
    assert mmd(x, y, kernel="linear") == pytest.approx(abs(x.mean() - y.mean()), rel=1e-10)


def test_discrete_kernel_measures_the_distance_between_table_and_product():
    x = np.array(["a", "b", "b", "c", "a", "b"])
    y = [True, False, True, True, True, False]
    joint = pd.crosstab(x, np.array(y)).to_numpy() / 6
    distance = ((joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))) ** 2).sum()
    assert hsic(x, y, kernel="discrete") == pytest.approx(distance, abs=1e-14)


def test_median_bandwidth_is_the_median_distance_of_distinct_points():
    x, y = np.array([0.0, 0.0, 1.0, 4.0]), np.array([3.0, 1.0, 1.0, 2.0])
    x_length, y_length = np.median([1, 4, 1, 4, 3]), np.median([2, 2, 1, 1, 1])
    assert hsic(x, y) == pytest.approx(hsic(x, y, bandwidth=(x_length, y_length)), abs=1e-15)


def test_a_parabola_is_uncorrelated_yet_found_dependent():
    many = np.random.default_rng(0).uniform(-1, 1, 100_000)
    # For X uniform and Y = X^2, n Var(r) tends to E[X^2 (Y - 1/3)^2] / (Var X Var Y) = 11/7.
    assert abs(pearson(many, many**2)) < 4 * math.sqrt(11 / 7 / many.size)
    x = many[:200]
    y = x**2
    assert hsic_test(x, y, n_permutations=200).p_value < 0.01
    bins = np.digitize(x, np.linspace(-1, 1, 6)[1:-1]), np.digitize(y, np.linspace(0, 1, 5)[1:-1])
    assert permutation_test(mutual_information, *bins, n_permutations=200).p_value < 0.01


def rejections(test, n_seeds=200, n_rows=30, **options):
    generators = [np.random.default_rng(seed) for seed in range(n_seeds)]
    return sum(
        test(*rng.normal(size=(2, n_rows)), n_permutations=99, seed=seed, **options).p_value <= 0.1
        for seed, rng in enumerate(generators)
    )


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("test", [hsic_test, mmd_test])
def test_true_nulls_are_rejected_at_the_stated_level(test, estimator):
    # 200 tests at level 0.1: mean 20, standard deviation 4.2, so 4 standard deviations are 17.
    assert 3 <= rejections(test, estimator=estimator) <= 37


def test_mmd_test_tells_a_different_spread_from_equal_means():
    rng = np.random.default_rng(1)
    x, y = rng.normal(0, 1, 80), rng.normal(0, 3, 90)
    result = mmd_test(x, y)
    assert result.p_value < 0.01
    assert result.statistic == pytest.approx(mmd(x, y, squared=True), abs=1e-12)
    assert mmd_test(["a"] * 30 + ["b"] * 10, ["a"] * 10 + ["b"] * 30, kernel="discrete").p_value < 0.01


def test_permutation_results_repeat_with_the_seed_and_print():
    x = np.random.default_rng(2).normal(size=40)
    y = np.random.default_rng(3).normal(size=40)
    first, second = hsic_test(x, y, seed=4), hsic_test(x, y, seed=4)
    assert first == second
    assert first.null_quantiles != hsic_test(x, y, seed=5).null_quantiles
    assert first.statistic == pytest.approx(hsic(x, y), abs=1e-15)
    assert list(first.null_quantiles) == [0.5, 0.9, 0.95, 0.99]
    assert sorted(first.null_quantiles.values()) == list(first.null_quantiles.values())
    assert str(first).startswith("HSIC = ")
    assert "500 permutations of 40 rows" in str(first)


def test_hsic_test_is_the_generic_permutation_test_of_hsic():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 25))
    for estimator in ("biased", "unbiased"):
        fast = hsic_test(x, y, bandwidth=1.0, estimator=estimator, n_permutations=60, seed=9)
        slow = permutation_test(
            lambda a, b, e=estimator: hsic(a, b, bandwidth=1.0, estimator=e), x, y, n_permutations=60, seed=9
        )
        assert fast.p_value == slow.p_value
        np.testing.assert_allclose(list(fast.null_quantiles.values()), list(slow.null_quantiles.values()))


def test_permutation_test_counts_ties_and_the_identity():
    same = permutation_test(lambda x, y: 1.0, [1, 2, 3], [1, 2, 3], n_permutations=50)
    assert same.p_value == 1.0
    rng = np.random.default_rng(0)
    never = permutation_test(
        lambda x, y: float((x == y).all()), *[rng.permutation(50)] * 2, n_permutations=99
    )
    assert never.p_value == 0.01
    with pytest.raises(InvalidArgument, match="finite"):
        permutation_test(lambda x, y: math.nan, [1, 2], [1, 2])
    with pytest.raises(InvalidArgument, match="same number of rows"):
        permutation_test(mutual_information, [1, 2], [1, 2, 3])
    with pytest.raises(InvalidArgument, match="n_permutations"):
        permutation_test(mutual_information, [1, 2], [1, 2], n_permutations=0)


def test_a_constant_is_independent_of_everything():
    x = np.random.default_rng(0).normal(size=20)
    assert hsic(x, np.ones(20)) == pytest.approx(0.0, abs=1e-16)  # rounding differs between processors
    assert hsic_test(x, np.ones(20), n_permutations=50).p_value == 1.0
    assert mutual_information(["same"] * 4, [0, 1, 2, 3]) == 0.0


def test_kernel_functions_refuse_what_they_cannot_handle():
    x = np.arange(6.0)
    with pytest.raises(InvalidArgument, match="subsample"):
        hsic(np.zeros(20_001), np.zeros(20_001))
    with pytest.raises(InvalidArgument, match="x has 6 rows and y has 5"):
        hsic(x, x[:5])
    with pytest.raises(InvalidArgument, match="at least 4 rows"):
        hsic(x[:3], x[:3], estimator="unbiased")
    with pytest.raises(InvalidArgument, match="bandwidth"):
        hsic(x, x, bandwidth=0.0)
    with pytest.raises(InvalidArgument, match="belongs to the rbf kernel"):
        hsic(x, x, kernel="linear", bandwidth=2.0)
    with pytest.raises(InvalidArgument, match="'rbf', 'linear', 'discrete'"):
        hsic(x, x, kernel="polynomial")
    with pytest.raises(InvalidArgument, match="estimator"):
        hsic(x, x, estimator="jackknife")
    with pytest.raises(InvalidArgument, match="'x' does not hold numbers"):
        hsic(["a", "b", "c"], [1, 2, 3])
    with pytest.raises(InvalidArgument, match="6 by 6"):
        hsic(x, x, kernel=lambda a, b: np.ones(3))
    with pytest.raises(InvalidArgument, match="symmetric"):
        hsic(x, x, kernel=lambda a, b: np.triu(np.ones((6, 6))))
    with pytest.raises(InvalidArgument, match="at least 2 rows"):
        mmd([1.0], [1.0, 2.0])


def test_samples_are_matched_by_column_name():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"a": rng.normal(size=30), "b": rng.normal(5, 1, size=30)})
    assert mmd(x, x[["b", "a"]]) == pytest.approx(0.0, abs=1e-7)
    with pytest.raises(InvalidArgument, match="'c' that x does not have"):
        mmd(x, x.rename(columns={"b": "c"}))
    with pytest.raises(InvalidArgument, match="x has 2 columns and y has 1"):
        mmd(x, x["a"])


# -------- graphs


def test_height_and_vocabulary_are_joined_only_through_age():
    data = height_vocabulary_age()
    assert correlation_graph(data).n_edges == 3
    expected = UndirectedGraph([("height", "age"), ("vocabulary", "age")])
    assert partial_correlation_graph(data) == expected
    assert partial_correlation_graph(data, threshold=0.2) == expected
    assert correlation_graph(data, correction="bonferroni").n_edges == 3


def test_partial_correlation_graph_recovers_a_gaussian_chain():
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=2000)]
    for _ in range(4):
        columns.append(0.8 * columns[-1] + rng.normal(size=2000))
    data = np.column_stack(columns)
    chain = UndirectedGraph([(f"x{i}", f"x{i + 1}") for i in range(4)])
    assert partial_correlation_graph(data, correction="bonferroni") == chain
    assert partial_correlation_graph(data, correction="benjamini-hochberg") == chain
    assert correlation_graph(data).n_edges == 10


def test_fisher_z_edges_are_those_of_the_normal_approximation():
    rows = gaussian_rows(12, n_rows=25, n_columns=4)
    partial = partial_correlation(rows).values
    for alpha in (0.001, 0.05, 0.3, 0.7):
        graph = partial_correlation_graph(rows, alpha=alpha)
        for i in range(4):
            for j in range(i):
                z = np.arctanh(partial[i, j]) * math.sqrt(25 - 2 - 3)
                joined = 2 * stats.norm.sf(abs(z)) <= alpha
                assert (f"x{i}" in graph.neighbors(f"x{j}")) == joined


def test_corrections_for_many_pairs_match_scipy():
    rng = np.random.default_rng(2)
    source = rng.normal(size=(60, 1))
    rows = np.hstack([source + rng.normal(scale=s, size=(60, 1)) for s in (1, 1, 2, 3, 4, 5)])
    correlations = pearson(rows).values
    upper = np.triu_indices(6, 1)
    p_values = 2 * stats.norm.sf(np.abs(np.arctanh(correlations[upper])) * math.sqrt(57))
    discoveries = int((stats.false_discovery_control(p_values) <= 0.05).sum())
    family_wise = int((p_values <= 0.05 / 15).sum())
    plain = int((p_values <= 0.05).sum())
    assert family_wise < discoveries < plain
    assert correlation_graph(rows).n_edges == plain
    assert correlation_graph(rows, correction="bonferroni").n_edges == family_wise
    assert correlation_graph(rows, correction="benjamini-hochberg").n_edges == discoveries


def test_dependency_graph_by_hsic_sees_what_pearson_misses():
    rng = np.random.default_rng(0)
    x = np.linspace(-1, 1, 80)
    data = {"x": x, "square": x**2, "group": np.where(x > 0, "up", "down"), "noise": rng.normal(size=80)}
    graph = dependency_graph(data, measure="hsic", correction="bonferroni", n_permutations=200)
    assert graph == UndirectedGraph([("x", "square"), ("x", "group")], nodes=["noise"])
    numbers = {name: data[name] for name in ("x", "square", "noise")}
    linear = dependency_graph(numbers, measure="pearson", alpha=0.01)
    assert linear == correlation_graph(numbers, alpha=0.01)
    assert linear.n_edges == 0
    assert dependency_graph(numbers, measure="hsic", threshold=0.02).edges == [("x", "square")]


def test_dependency_graph_by_mutual_information_on_states():
    rng = np.random.default_rng(1)
    rain = rng.random(400) < 0.3
    wet = np.where(rain ^ (rng.random(400) < 0.1), "wet", "dry")
    coin = rng.integers(2, size=400)
    data = pd.DataFrame({"rain": rain, "wet": wet, "coin": coin})
    expected = UndirectedGraph([("rain", "wet")], nodes=["coin"])
    assert dependency_graph(data, alpha=0.01, n_permutations=200) == expected
    assert dependency_graph(data, threshold=0.1) == expected


def test_graph_options_that_cannot_work_are_refused():
    data = {"a": [1, 2, 3, 4, 6], "b": [2, 1, 4, 3, 5], "c": [1, 1, 2, 2, 1]}
    with pytest.raises(InvalidArgument, match="alpha"):
        correlation_graph(data, alpha=1.5)
    with pytest.raises(InvalidArgument, match="did you mean 'bonferroni'"):
        partial_correlation_graph(data, correction="bonferoni")
    with pytest.raises(InvalidArgument, match="leave one out"):
        correlation_graph(data, threshold=0.1, correction="bonferroni")
    with pytest.raises(InvalidArgument, match="threshold"):
        correlation_graph(data, threshold=-0.1)
    with pytest.raises(InvalidArgument, match="did you mean 'hsic'"):
        dependency_graph(data, measure="hscic")
    with pytest.raises(InvalidArgument, match="use n_permutations=99 or more"):
        dependency_graph(data, alpha=0.01, n_permutations=50)
    with pytest.raises(InvalidArgument, match="two columns"):
        dependency_graph({"a": [1, 2, 3]})
    with pytest.raises(InvalidArgument, match="two columns"):
        correlation_graph({"a": [1, 2, 3, 5]})


# -------- information of numbers, by nearest neighbours


def _pairs_within(columns, k):
    """Return the distance of each row's k-th neighbour and all distances, by brute force."""
    away = np.abs(columns[:, None, :] - columns[None, :, :]).max(axis=2)
    return np.sort(away, axis=1)[:, k], away


@pytest.mark.parametrize("k", [1, 3, 5])
def test_information_of_numbers_counts_the_rows_nearer_than_the_kth_neighbour(k):
    from scipy.special import psi
    from sklearn.feature_selection import mutual_info_regression

    rng = np.random.default_rng(k)
    x, y = rng.multivariate_normal([0, 5], [[1, 0.7], [0.7, 1]], 200).T
    both = np.column_stack([x / x.std(), y / y.std()])
    reach, _ = _pairs_within(both, k)
    nearer = [
        (_pairs_within(one[:, None], k)[1] < reach[:, None] * (1 - 1e-12)).sum(axis=1) for one in both.T
    ]
    expected = psi(k) + psi(200) - np.mean(psi(nearer[0]) + psi(nearer[1]))
    assert mutual_information(x, y, neighbours=k) == pytest.approx(expected, abs=1e-12)
    theirs = mutual_info_regression(x[:, None], y, n_neighbors=k, random_state=0)[0]
    assert mutual_information(x, y, neighbours=k) == pytest.approx(theirs, abs=1e-9)
    assert mutual_information(x, y, neighbours=k, base=2) == pytest.approx(expected / math.log(2), abs=1e-12)


def test_information_of_numbers_and_states_counts_the_rows_of_any_state_within_reach():
    from scipy.special import psi
    from sklearn.feature_selection import mutual_info_classif

    rng = np.random.default_rng(0)
    state = np.array(["a", "b", "c"])[rng.integers(0, 3, 120)]
    state[[0, 1, 2]] = "rare", "rare", "alone"  # fewer of a state than neighbours, and one by itself
    x = rng.normal(size=120) + (state == "a")
    many, total = {s: (state == s).sum() for s in state}, 0.0
    kept = np.array([many[s] > 1 for s in state])
    for i in np.flatnonzero(kept):
        used = min(3, many[state[i]] - 1)
        reach = np.sort(np.abs(x[state == state[i]] - x[i]))[used]
        near = (np.abs(x[kept] - x[i]) < reach * (1 - 1e-12)).sum()
        total += psi(used) - psi(many[state[i]]) - psi(near)
    expected = psi(kept.sum()) + total / kept.sum()
    assert mutual_information(x, state) == pytest.approx(expected, abs=1e-12)
    assert mutual_information(state, x) == pytest.approx(expected, abs=1e-12)
    assert mutual_information(x, state) == pytest.approx(
        mutual_info_classif(x[:, None], state, random_state=1)[0], abs=1e-9
    )


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.95])
def test_information_of_normal_numbers_is_near_the_closed_form_in_any_unit(rho):
    x, y = np.random.default_rng(1).multivariate_normal([0, 0], [[1, rho], [rho, 1]], 3000).T
    truth = -math.log(1 - rho**2) / 2
    found = mutual_information(x, y)
    assert found == pytest.approx(truth, abs=0.05)
    for unit in (1e-9, 1e9):
        assert mutual_information(unit * x, y / unit) == pytest.approx(found, abs=1e-9)
    # rounded values are ties: moved apart by next to nothing, they say next to the same
    assert mutual_information(x.round(2), y.round(2)) == pytest.approx(truth, abs=0.06)
    assert mutual_information(x.round(2), y.round(2)) == mutual_information(x.round(2), y.round(2))
    both = {"x": x, "noise": np.random.default_rng(2).normal(size=3000)}
    assert mutual_information(both, y) == pytest.approx(truth, abs=0.1)


def test_a_constant_says_nothing_and_kinds_are_not_mixed():
    x = np.random.default_rng(0).normal(size=50)
    assert mutual_information(x, np.full(50, 0.1)) == 0.0
    assert mutual_information(x, ["a"] * 50) == pytest.approx(0.0, abs=1e-12)
    ages = np.arange(50)
    assert mutual_information(ages, ages) == pytest.approx(math.log(50))  # states: each of its own
    assert mutual_information(ages, ages[::-1], continuous=True) == pytest.approx(
        mutual_information(ages + 0.5, 0.5 + ages[::-1]), abs=0.05
    )
    for given_columns, said in (
        (({"a": x, "b": ["u"] * 50}, x), "'a' is a number and 'b' has states"),
        ((x, [f"s{i}" for i in range(50)]), "every state occurs in one row only"),
        ((x[:3], x[:3]), "at least 4 rows; the data have 3"),
        ((x, x[:40]), "'x' has 50 rows and 'y' has 40"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            mutual_information(*given_columns)
    with pytest.raises(InvalidArgument, match="correction= is for states"):
        mutual_information(x, x, correction="miller-madow")
