"""Bins for continuous columns, against scikit-learn and against brute force."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer

import markovia as mk
from markovia.data.tables.discretization import mdl_cuts


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "kmeans"])
@pytest.mark.parametrize("bins", [2, 5])
def test_bins_agree_with_scikit_learn(strategy, bins):
    rng = np.random.default_rng(bins)
    x = np.column_stack(
        [rng.normal(size=500), rng.gamma(2, size=500), rng.normal(rng.integers(0, bins, 500) * 40)]
    )
    extra = {"quantile_method": "linear"} if strategy == "quantile" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = KBinsDiscretizer(bins, encode="ordinal", strategy=strategy, subsample=None, **extra).fit(x)
    own = mk.Discretizer(bins, strategy=strategy).fit(x)
    for i, edges in enumerate(peer.bin_edges_):
        # k-means there stops at a relative tolerance; here nothing moves any more
        assert np.allclose(own.edges_[f"x{i}"], edges, atol=0.05 if strategy == "kmeans" else 1e-12)
    agree = own.transform(x) == peer.transform(x)
    assert agree.mean() > 0.99 if strategy == "kmeans" else agree.all()


def test_one_dimensional_k_means_is_where_nothing_moves():
    x = np.sort(np.random.default_rng(0).gamma(2, size=300))
    edges = mk.Discretizer(4, strategy="kmeans").fit(x[:, None]).edges_["x0"]
    parts = [x[(x > a) & (x <= b)] for a, b in itertools.pairwise([-np.inf, *edges[1:-1], np.inf])]
    means = np.array([p.mean() for p in parts])
    assert np.allclose((means[1:] + means[:-1]) / 2, edges[1:-1])


def description_length_cuts(x, y):
    """Fayyad and Irani's criterion, by trying every cut with plain loops."""

    def entropy(labels):
        p = np.unique(labels, return_counts=True)[1] / len(labels)
        return -(p * np.log2(p)).sum()

    values = np.unique(x)
    best = None
    for a, b in itertools.pairwise(values):
        left, right = y[x <= a], y[x > a]
        after = (len(left) * entropy(left) + len(right) * entropy(right)) / len(y)
        if best is None or after < best[0] - 1e-12:
            best = (after, a, b)
    if best is None:
        return []
    after, a, b = best
    left, right = y[x <= a], y[x > a]
    k, k1, k2 = (len(np.unique(s)) for s in (y, left, right))
    delta = np.log2(3**k - 2) - (k * entropy(y) - k1 * entropy(left) - k2 * entropy(right))
    if entropy(y) - after <= (np.log2(len(y) - 1) + delta) / len(y):
        return []
    return [
        *description_length_cuts(x[x <= a], left),
        (a + b) / 2,
        *description_length_cuts(x[x > a], right),
    ]


@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 60))
def test_supervised_cuts_are_those_of_brute_force(seed, n_classes, n):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).round(2)
    noise = rng.random(n) < 0.1
    y = np.where(noise, rng.integers(0, n_classes, n), np.digitize(x, np.linspace(-1, 1, n_classes - 1)))
    # equally good cuts are equally right; x is continuous enough for them to be rare, and both take the first
    assert np.allclose(mdl_cuts(x, y), description_length_cuts(x, y))


def test_a_column_that_says_nothing_keeps_one_bin():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"useful": rng.normal(size=400), "noise": rng.normal(size=400)})
    frame["target"] = np.where(frame["useful"] > 0.25, "high", "low")
    ready = mk.Discretizer(strategy="mdl", target="target").fit(frame)
    assert len(ready.edges_["useful"]) == 3
    assert abs(ready.edges_["useful"][1] - 0.25) < 0.05
    assert len(ready.edges_["noise"]) == 2
    out = ready.transform(frame)
    assert out["noise"].unique().tolist() == ["(-inf, inf)"]
    same = mk.Discretizer(strategy="mdl", columns=["useful"]).fit(frame, frame["target"])
    assert same.edges_["useful"].tolist() == ready.edges_["useful"].tolist()


def test_a_frame_keeps_its_other_columns_and_missing_cells():
    frame = pd.DataFrame(
        {"a": [0.0, 1.0, np.nan, 4.0], "w": list("uvuv"), "b": [True, False, True, True]}, index=[5, 6, 7, 8]
    )
    tool = mk.Discretizer(bins=2)
    out = tool.fit_transform(frame)
    assert out["a"].tolist()[:2] == ["(-inf, 2)", "(-inf, 2)"]
    assert out["a"].isna().tolist() == [False, False, True, False]
    assert out["a"].cat.ordered
    assert out["w"].tolist() == list("uvuv")
    assert out.index.tolist() == [5, 6, 7, 8]
    assert frame["a"].dtype == float
    assert tool.get_feature_names_out().tolist() == ["a", "w", "b"]
    assert tool.transform(frame.assign(a=[-100.0, 2.0, 1e9, np.inf]))["a"].cat.codes.tolist() == [0, 1, 1, 1]


def test_labels_may_be_codes_or_names():
    x = {"a": [0.0, 1.0, 2.0]}
    assert mk.Discretizer(2, labels="codes").fit_transform(x)["a"].tolist() == [0, 1, 1]
    assert mk.Discretizer(2, labels=["lo", "hi"]).fit_transform(x)["a"].tolist() == ["lo", "hi", "hi"]
    assert mk.Discretizer(2, labels={"a": ["lo", "hi"]}).fit_transform(x)["a"].tolist() == ["lo", "hi", "hi"]
    with pytest.raises(mk.errors.InvalidArgument, match="has 2 bins, but 3 labels"):
        mk.Discretizer(2, labels=["lo", "mid", "hi"]).fit(x)
    near = mk.Discretizer(3).fit_transform({"a": [1.0, 1.0 + 1e-9]})["a"]
    assert len(near.cat.categories) == 3


def test_a_matrix_gets_codes():
    x = np.array([[0.0, 7], [1, 7], [np.nan, 7], [2, 7]])
    out = mk.Discretizer(2).fit_transform(x)
    assert np.array_equal(out, [[0, 0], [1, 0], [np.nan, 0], [1, 0]], equal_nan=True)
    with pytest.raises(ValueError, match="3 features, but Discretizer is expecting 2"):
        mk.Discretizer(2).fit(x).transform(np.zeros((2, 3)))


def test_polars_frames_come_back_as_polars_frames():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [0.0, None, 4.0], "w": ["u", "v", "u"]})
    out = mk.Discretizer(2).fit_transform(frame)
    assert out["a"].to_list() == ["(-inf, 2)", None, "[2, inf)"]
    assert mk.counts(out, ["a", "w"]).values.tolist() == [[1, 0], [1, 0]]


def test_it_is_a_scikit_learn_transformer():
    tool = mk.Discretizer({"a": 3}, strategy="quantile", columns=["a"])
    assert clone(tool).get_params() == tool.get_params()
    frame = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0)})
    out = make_pipeline(FunctionTransformer(), tool).fit_transform(frame)
    assert out["a"].value_counts().tolist() == [3, 3, 3]
    assert out["b"].tolist() == frame["b"].tolist()
    bn = mk.BayesianNetwork("a->b").fit(out)
    assert bn.states("a") == ["(-inf, 2.66667)", "[2.66667, 5.33333)", "[5.33333, inf)"]


def test_quantiles_of_repeated_values_leave_empty_bins_out():
    out = mk.Discretizer(4, strategy="quantile").fit_transform({"a": [0.0] * 8 + [1.0, 2.0]})
    assert out["a"].value_counts().min() > 0


@pytest.mark.parametrize(
    ("settings", "data", "message"),
    [
        (
            {"strategy": "best"},
            {"a": [1.0]},
            "strategy= is 'uniform', 'quantile', 'kmeans' or 'mdl', not 'best'",
        ),
        ({"bins": 0}, {"a": [1.0, 2.0]}, "at least 1"),
        ({"strategy": "mdl"}, {"a": [1.0, 2.0]}, "needs a target"),
        ({"columns": ["a"]}, {"a": ["x", "y"]}, "does not hold numbers"),
        ({}, {"a": [np.nan, np.nan]}, "no value"),
        ({}, {"a": [np.inf, 1.0]}, "infinite"),
        ({"labels": "words"}, {"a": [1.0, 2.0]}, "labels="),
    ],
)
def test_bad_settings_are_explained(settings, data, message):
    with pytest.raises(mk.errors.InvalidArgument, match=message):
        mk.Discretizer(**settings).fit(data)


def test_unknown_columns_are_named():
    with pytest.raises(mk.errors.UnknownVariable, match="'b'"):
        mk.Discretizer(columns=["b"]).fit({"a": [1.0]})
    with pytest.raises(mk.errors.UnknownVariable, match="'t'"):
        mk.Discretizer(strategy="mdl", target="t").fit({"a": [1.0]})
    with pytest.raises(mk.errors.UnknownVariable, match="'a'"):
        mk.Discretizer().fit({"a": [1.0]}).transform({"b": [1.0]})
