import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import markovia as mk
from markovia.models.classifiers.feature_rows import numbers

ROWS = np.random.default_rng(0).normal(size=(12, 3))
FRAME = pd.DataFrame(ROWS, columns=list("abc"))
ESTIMATORS = [
    mk.GaussianMixture(2),
    mk.mixtures.StudentTMixture(2),
    mk.KMeans(2),
    mk.DirichletProcessMixture(max_iter=2),
    mk.mixtures.FactorAnalysis(1),
    mk.mixtures.ICA(),
    mk.LatentFeatures(max_iter=2),
    mk.mixtures.RegressionMixture(2),
    mk.topics.PoissonFactorisation(2, max_iter=2),
]
WRONG = [
    (
        FRAME.astype(object).replace({"b": {ROWS[2, 1]: "hello"}}),
        "the column 'b' holds text, 'hello' in row 2",
    ),
    (FRAME.assign(b=pd.Categorical(["u", "v"] * 6)), "the column 'b' holds text, 'u' in row 0"),
    (FRAME.assign(b=pd.date_range("2020", periods=12)), "the column 'b' holds times, 2020-01-01"),
    (FRAME.set_axis(["a", "b", "b"], axis=1), "two columns of X are called 'b'"),
    ([[1.0, "a", 2.0]] * 12, "the column 'x1' holds text, 'a' in row 0"),
    ([[1.0, {}, 2.0]] * 12, "the column 'x1' holds {} in row 0"),
    ([[1.0, 2.0]] * 6 + [[1.0]] * 6, "row 6 of X has length 1, and row 0 length 2"),
    (np.where(ROWS[3, 1] == ROWS, np.inf, ROWS), r"row 3 of X is infinite \(inf\) in the column 'x1'"),
    (ROWS + 1j, "Complex data not supported: the column 'x0'"),
    (ROWS[:, 0], "X has one dimension and length 12"),
    (ROWS[:, :, None], "X has 3 dimensions"),
    ([], "X is empty"),
    (None, "X is None"),
    ({"a": [1.0, 2.0]}, r"X is {'a': \[1.0, 2.0\]}"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_every_estimator_of_numbers_says_which_cell_is_to_blame(estimator):
    y = (np.arange(12.0),) if isinstance(estimator, mk.mixtures.RegressionMixture) else ()
    for rows, said in WRONG:
        with pytest.raises(mk.MarkoviaError, match=said) as caught:
            estimator.fit(rows, *y)
        assert "\n" not in str(caught.value)
    assert not hasattr(estimator, "n_features_in_")


@pytest.mark.parametrize("estimator", ESTIMATORS[:-1], ids=lambda e: type(e).__name__)
def test_sparse_rows_are_refused_where_every_cell_is_needed(estimator):
    y = (np.arange(12.0),) if isinstance(estimator, mk.mixtures.RegressionMixture) else ()
    with pytest.raises(mk.MarkoviaError, match=r"X is a sparse matrix.*X.toarray\(\)"):
        estimator.fit(csr_matrix(ROWS), *y)


def test_the_cell_of_a_sparse_matrix_that_is_no_count_is_named():
    counts = np.ones((4, 3))
    counts[2, 1] = -1.0
    for estimator in (mk.mixtures.PoissonMixture(2), mk.topics.PoissonFactorisation(2)):
        with pytest.raises(
            mk.MarkoviaError, match="Negative values in data: row 2 of X holds -1 in the column 'x1'"
        ):
            estimator.fit(csr_matrix(counts))


def test_finite_rows_whose_sum_overflows_are_read():
    rows = np.array([[1.5e308], [1.5e308], [-1.0]])
    np.testing.assert_array_equal(numbers(mk.KMeans(1), rows, reset=True, gaps="fill them"), rows)


def test_columns_of_counts_are_found_by_name_in_any_order():
    counts = pd.DataFrame(
        np.random.default_rng(1).poisson(2.0, (30, 4)), columns=["cat", "dog", "sun", "sky"]
    )
    lda = mk.LDA(2, max_iter=5, random_state=0).fit(counts)
    shuffled = lda.transform(counts[["sky", "cat", "sun", "dog"]])
    np.testing.assert_allclose(shuffled, lda.transform(counts), atol=0.2)
    with pytest.raises(mk.MarkoviaError, match="no column of the frame is in the vocabulary"):
        lda.transform(counts.set_axis(list("wxyz"), axis=1))
    with pytest.raises(mk.MarkoviaError, match="the frame has 'cat' twice"):
        lda.fit(counts.set_axis(["cat", "cat", "sun", "sky"], axis=1))
