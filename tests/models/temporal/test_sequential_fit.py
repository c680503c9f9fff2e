"""Learning in pieces, forgetting, and log likelihoods by node and by row."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from model_strategies import bayesian_networks


@given(
    bayesian_networks(max_nodes=5),
    st.sampled_from([None, "bdeu", 0.7]),
    st.lists(st.integers(0, 40), max_size=3),
)
@settings(max_examples=40)
def test_in_pieces_is_the_same_as_at_once(bn, prior, cuts):
    frame = bn.sample(40, seed=1)
    whole = bn.copy().fit(frame, prior=prior)
    edges = [0, *sorted(cuts), 40]
    pieces = bn.copy()
    for k, (low, high) in enumerate(pairwise(edges)):
        pieces.partial_fit(frame[low:high], **({"prior": prior} if k == 0 else {}))
    for name in bn.variables:
        assert np.allclose(whole[name].values, pieces[name].values, atol=1e-14)
        assert np.isclose(whole.fit_.by_family[name], pieces.fit_.by_family[name])
    assert pieces.fit_.n_rows == 40
    assert pieces.fit_.total == whole.fit_.total
    assert pieces.fit_.unseen_rows == whole.fit_.unseen_rows
    if prior is None:
        assert pieces.posterior_ is None
    else:
        assert np.isclose(pieces.posterior_.log_marginal_likelihood, whole.posterior_.log_marginal_likelihood)


def test_weights_tying_and_fixed_nodes_carry_over():
    frame = pd.DataFrame({"x": [0, 1, 1, 0], "y": [1, 1, 0, 0], "z": [1, 0, 0, 1], "w": [1.0, 2.0, 0.5, 3.0]})
    bn = mk.BayesianNetwork("x->y->z", tables="uniform")
    options = {"prior": "k2", "tied": [["y", "z"]], "fixed": "x"}
    whole = bn.copy().fit(frame, weights="w", **options)
    pieces = bn.copy().fit(frame[:3], weights="w", **options).partial_fit(frame[3:], weights="w")
    for name in "xyz":
        assert np.allclose(whole[name].values, pieces[name].values)
    assert pieces.fit_.n_parameters == whole.fit_.n_parameters == 2
    assert pieces.fit_.total == pytest.approx(6.5)
    assert pieces["x"] is bn["x"]


def test_a_new_prior_applies_to_all_counts_so_far():
    frame = pd.DataFrame({"x": [0, 1, 1, 0, 1]})
    bn = mk.BayesianNetwork("x", states={"x": 2}).partial_fit(frame[:2]).partial_fit(frame[2:], prior="k2")
    assert np.allclose(bn["x"].values, [3 / 7, 4 / 7])
    assert np.allclose(bn.partial_fit(frame[:0], prior=None)["x"].values, [2 / 5, 3 / 5])


def test_forgetting_discounts_what_came_before():
    bn = mk.BayesianNetwork("x", states={"x": 2}).partial_fit({"x": [0] * 8})
    bn.partial_fit({"x": [1] * 4}, forget=0.5)
    assert np.allclose(bn["x"].values, [0.5, 0.5])
    assert bn.fit_.total == 8
    assert bn.fit_.n_rows == 12
    bn.partial_fit({"x": [1]}, forget=0.0)
    assert np.allclose(bn["x"].values, [0, 1])
    for bad in (-0.1, 1.5, "no"):
        with pytest.raises(mk.errors.InvalidArgument, match="forget"):
            bn.partial_fit({"x": [1]}, forget=bad)


def test_states_that_earlier_pieces_did_not_have_are_named():
    bn = mk.BayesianNetwork("x->y").partial_fit({"x": ["a", "b"], "y": [0, 1]})
    before = bn["x"]
    with pytest.raises(mk.errors.UnknownState, match="unknown state 'c' for 'x'"):
        bn.partial_fit({"x": ["c"], "y": [0]})
    assert bn["x"] is before
    assert bn.fit_.n_rows == 2
    with pytest.raises(mk.errors.InvalidArgument, match="missing"):
        bn.partial_fit({"x": ["a", None], "y": [0, 1]})


def test_counts_of_an_edited_network_are_not_silently_forgotten():
    bn = mk.BayesianNetwork("x").fit({"x": [0, 1]})
    bn.replace("x", p=[0.5, 0.5])
    with pytest.raises(mk.errors.InvalidArgument, match="no counts to add to"):
        bn.partial_fit({"x": [0]})
    copied = mk.BayesianNetwork("x").fit({"x": [0, 1]}).copy()
    assert np.allclose(copied.partial_fit({"x": [1, 1]})["x"].values, [0.25, 0.75])


def test_a_copy_learns_on_its_own():
    bn = mk.BayesianNetwork("x").fit({"x": [0, 1]}, prior="k2")
    twin = bn.copy().partial_fit({"x": [1, 1]})
    assert np.allclose(bn["x"].values, [0.5, 0.5])
    assert bn.posterior_.alpha("x").values.tolist() == [2, 2]
    assert twin.posterior_.alpha("x").values.tolist() == [2, 4]


# -- log likelihood --------------------------------------------------------------------------------------------------


@given(bayesian_networks(max_nodes=5), st.booleans())
@settings(max_examples=40)
def test_the_log_likelihood_falls_apart_by_node_and_by_row(bn, weighted):
    frame = bn.sample(25, seed=2)
    weights = np.linspace(0.5, 3, 25) if weighted else None
    rows = bn.log_likelihood(frame, by="row")
    assert np.allclose(rows, bn.log_prob(frame))
    total = rows.sum() if weights is None else weights @ rows
    assert np.isclose(bn.log_likelihood(frame, weights=weights), total)
    families = bn.log_likelihood(frame, by="family", weights=weights)
    assert list(families.index) == bn.variables
    assert np.isclose(families.sum(), total)
    mass = 25 if weights is None else weights.sum()
    assert np.isclose(bn.score(frame, weights=weights), total / mass)


def test_missing_cells_are_summed_out_in_the_total_but_not_by_node():
    bn = mk.examples.sprinkler()
    frame = bn.sample(30, seed=0).astype(object)
    frame.loc[::3, "rain"] = None
    frame["times"] = np.arange(30) % 4 + 0.5
    rows = bn.log_prob(frame[bn.variables])
    assert np.isclose(bn.log_likelihood(frame), rows.sum())
    assert np.allclose(bn.log_likelihood(frame, by="row"), rows)
    assert np.isclose(bn.log_likelihood(frame, weights="times"), frame["times"] @ rows)
    assert np.isclose(bn.score(frame), rows.mean())
    with pytest.raises(mk.errors.InvalidArgument, match="no sum over nodes"):
        bn.log_likelihood(frame, by="family")
    with pytest.raises(mk.errors.InvalidArgument, match="by="):
        bn.log_likelihood(frame, by="column")
    with pytest.raises(mk.errors.InvalidArgument, match="no rows"):
        bn.score(frame[:0])
    with pytest.raises(mk.errors.IncompleteModel):
        mk.BayesianNetwork("rain").log_likelihood({"rain": [0]})


def test_an_impossible_row_has_minus_infinity():
    bn = mk.BayesianNetwork("x", states={"x": 2}).fit({"x": [0, 0]})
    assert bn.log_likelihood({"x": [0, 1]}) == -np.inf
    assert bn.log_likelihood({"x": [0, 1]}, by="row").tolist() == [0, -np.inf]


# -- fixed tables and given sources ----------------------------------------------------------------------------------


def test_fixed_tables_are_kept_and_the_rest_is_fitted_as_if_they_were_not_there():
    bn = mk.BayesianNetwork("a->b->c", tables="random", seed=0)
    frame = bn.sample(50, seed=1)
    free = bn.copy().fit(frame, prior="k2")
    held = bn.copy().fit(frame, prior="k2", fixed=["a", "c"])
    assert held["a"] is bn["a"]
    assert held["c"] is bn["c"]
    assert np.array_equal(held["b"].values, free["b"].values)
    assert held.fit_.n_parameters == 2
    assert free.fit_.n_parameters == 5
    assert np.isclose(held.fit_.log_likelihood, held.log_prob(frame).sum())
    everything = bn.copy().fit(frame, fixed=bn.variables)
    assert everything.fit_.n_parameters == 0
    assert everything.fit_.bic == everything.fit_.log_likelihood


def test_nodes_that_cannot_stay_fixed_are_named():
    bn = mk.BayesianNetwork("a->b")
    rows = {"a": [0, 1], "b": [0, 1]}
    with pytest.raises(mk.errors.IncompleteModel, match="'b' cannot stay fixed"):
        bn.fit(rows, fixed="b")
    with pytest.raises(mk.errors.UnknownVariable, match="'bb'"):
        bn.fit(rows, fixed=["bb"])


def test_a_table_of_codes_must_have_the_states_of_the_network():
    from markovia.data.tables.row_sources import CodedTable

    codes = np.array([[0, 1, 1]], dtype=np.int8)
    bn = mk.BayesianNetwork("a", states={"a": ["no", "yes"]})
    good = CodedTable([mk.Variable("a", ["no", "yes"])], codes)
    assert np.allclose(bn.copy().fit(good)["a"].values, [1 / 3, 2 / 3])
    with pytest.raises(mk.errors.InvalidArgument, match="read with the states"):
        bn.fit(CodedTable([mk.Variable("a", ["yes", "no"])], codes))
    with pytest.raises(mk.errors.UnknownVariable, match="'a'"):
        bn.fit(CodedTable([mk.Variable("b", ["no", "yes"])], codes))
