"""Tables from counts: maximum likelihood and posterior means, checked against plain loops."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovia as mk
from model_strategies import bayesian_networks


def counted(frame, bn, name):
    scope = [*bn.parents(name), name]
    table = np.zeros([len(bn.states(n)) for n in scope])
    for states, n in Counter(frame[scope].astype(object).itertuples(index=False, name=None)).items():
        table[tuple(bn.states(v).index(s) for v, s in zip(scope, states, strict=True))] = n
    return table


@given(bayesian_networks(), st.integers(0, 2**16))
def test_maximum_likelihood_is_the_ratio_of_counts(bn, seed):
    frame = bn.sample(60, seed=seed)
    before = {n: bn[n].values.copy() for n in bn.variables}
    fitted = bn.copy().fit(frame)
    total = 0.0
    for name in bn.variables:
        n = counted(frame, bn, name)
        seen = n.sum(axis=-1) > 0
        expected = n[seen] / n[seen].sum(axis=-1, keepdims=True)
        assert np.allclose(fitted[name].values[seen], expected, atol=1e-15)
        assert np.allclose(fitted[name].values[~seen], 1 / n.shape[-1])
        assert fitted.fit_.unseen_rows.get(name, 0) == (~seen).sum()
        assert np.array_equal(bn[name].values, before[name])
        total += fitted.fit_.by_family[name]
    assert np.isclose(total, fitted.log_prob(frame).sum(), rtol=1e-10, atol=1e-9)
    assert np.isclose(fitted.fit_.log_likelihood, total)


@given(bayesian_networks(max_nodes=4), st.sampled_from(["bdeu", "k2", "laplace", 0.3]))
def test_a_prior_adds_its_pseudo_counts(bn, prior):
    frame = bn.sample(20, seed=1)
    fitted = bn.copy().fit(frame, prior=prior)
    for name in bn.variables:
        n = counted(frame, bn, name)
        n += {"bdeu": 10.0 / n.size, "k2": 1.0, "laplace": 1.0, 0.3: 0.3}[prior]
        assert np.allclose(fitted[name].values, n / n.sum(axis=-1, keepdims=True))


def test_weights_count_like_repeated_rows():
    frame = pd.DataFrame({"a": ["x", "y", "y"], "b": [0, 1, 0], "times": [3.0, 1.0, 2.0]})
    weighted = mk.BayesianNetwork("a->b").fit(frame, weights="times")
    repeated = mk.BayesianNetwork("a->b").fit(frame.loc[[0, 0, 0, 1, 2, 2]])
    for name in "ab":
        assert np.allclose(weighted[name].values, repeated[name].values)
    assert weighted.fit_.total == 6
    assert weighted.fit_.n_rows == 3


def test_states_nobody_stated_are_read_off_the_data():
    bn = mk.BayesianNetwork("a->b{lo|hi}").fit({"a": ["u", "v", "w"], "b": ["lo", "lo", "lo"]})
    assert bn.states("a") == ["u", "v", "w"]
    assert bn.states("b") == ["lo", "hi"]
    filled = mk.BayesianNetwork("a->b", tables="uniform")
    with pytest.raises(mk.errors.UnknownState, match="'u'"):
        filled.fit({"a": ["u", "v"], "b": [0, 1]})


def test_a_failed_fit_leaves_the_network_as_it_was():
    bn = mk.BayesianNetwork("a->b", tables="uniform")
    before = bn["b"]
    with pytest.raises(mk.errors.UnknownState, match="unknown state 7 for 'b'"):
        bn.fit({"a": [0, 1], "b": [0, 7]})
    assert bn["b"] is before
    assert bn.fit_ is None


def test_fixed_nodes_keep_their_distribution():
    bn = mk.BayesianNetwork("a->b", tables="uniform")
    bn.fit({"a": [0, 0, 1], "b": [1, 1, 1]}, fixed="a")
    assert bn["a"].values.tolist() == [0.5, 0.5]
    assert bn["b"].values.tolist() == [[0, 1], [0, 1]]


def test_missing_cells_are_not_silently_dropped():
    with pytest.raises(mk.errors.InvalidArgument, match="1 cells are missing"):
        mk.BayesianNetwork("a->b").fit({"a": [0, 1, None], "b": [0, 1, 1]}, missing="error")
