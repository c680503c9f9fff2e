"""Recovering distributions from rows with gaps: the formula on exact distributions, and on rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.causal.identification.missing import recover
from markovia.errors import InvalidArgument, NotIdentifiable


def random_gaps(seed):
    """A random network of three variables and two indicators (True: seen), without values that hide themselves."""
    rng = np.random.default_rng(seed)
    bn = mk.BayesianNetwork()
    names = ["a", "b", "c", "ra", "rb"]
    for k, name in enumerate(names):
        above = [p for p in names[:k] if name != f"r{p}" and rng.random() < 0.4]
        bn.add(name, rng.dirichlet([1.0, 1.0], size=[2] * len(above)), states=[False, True], parents=above)
    return bn


def exact(bn, recovered):
    """The recovered joint table, by its own formula on the exact distribution."""
    names = [*recovered.needed, "ra", "rb"]
    joint = bn.query(names).factor()
    found = joint.reduce({"ra": True, "rb": True})
    for term in recovered.terms:
        rows = joint.reduce(dict.fromkeys(term.among, True)) if term.among else joint
        of = {"ra": "a", "rb": "b"}
        hidden = {r: True for r in ("ra", "rb") if of[r] in term.given and r in rows.names}
        rows = rows.reduce(hidden) if hidden else rows
        found = found / rows.conditional([term.indicator], term.given).reduce({term.indicator: True})
    return found if recovered.terms else found.normalize()


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_the_joint_distribution_is_that_of_complete_rows_weighted(seed):
    bn = random_gaps(seed)
    try:
        recovered = recover(bn, {"a": "ra", "b": "rb"})
    except NotIdentifiable:
        assume(False)
    truth = bn.query(["a", "b", "c"]).factor()
    np.testing.assert_allclose(exact(bn, recovered).transpose(truth.names).values, truth.values, atol=1e-10)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.permutations(["a", "b", "c"]), st.integers(1, 2))
def test_complete_rows_are_used_alone_only_where_they_are_right(seed, names, count):
    bn = random_gaps(seed)
    try:
        recovered = recover(bn, {"a": "ra", "b": "rb"}, names[:1], names[1 : 1 + count])
    except NotIdentifiable:
        assume(False)
    assume(recovered.rule == "complete rows")
    indicators = {r: True for n, r in (("a", "ra"), ("b", "rb")) if n in recovered.needed}
    asked = [*names[1 : 1 + count], names[0]]
    complete = bn.query(asked, given=indicators).factor().conditional(names[:1], names[1 : 1 + count])
    truth = bn.query(asked).factor().conditional(names[:1], names[1 : 1 + count])
    np.testing.assert_allclose(complete.transpose(truth.names).values, truth.values, atol=1e-10)


@pytest.mark.parametrize("text", ["x -> rx", "x <-> rx", "x -> y; x -> ry; y -> rx; x -> rx"])
def test_a_value_that_hides_itself_is_not_recovered(text):
    missing = {"x": "rx", "y": "ry"} if "ry" in text else {"x": "rx"}
    with pytest.raises(NotIdentifiable, match="whether x"):
        recover(text, missing)


def test_rows_with_gaps_give_the_table_of_all_rows():
    rng = np.random.default_rng(0)
    n = 200_000
    a = rng.random(n) < 0.4
    b = rng.random(n) < np.where(a, 0.8, 0.3)
    c = rng.random(n) < np.where(b, 0.7, 0.2)
    seen_b = rng.random(n) < np.where(a, 0.9, 0.3)
    seen_c = rng.random(n) < np.where(b, 0.4, 0.9)
    rows = pd.DataFrame({"a": a, "b": b, "c": c}).astype(object)
    rows.loc[~seen_b, "b"] = None
    rows.loc[~seen_c, "c"] = None
    recovered = recover("a -> b -> c; a -> rb; b -> rc", {"b": "rb", "c": "rc"})
    truth = mk.counts(pd.DataFrame({"a": a, "b": b, "c": c}), ["a", "b", "c"]).normalize()
    found = recovered.evaluate(rows)
    np.testing.assert_allclose(
        found.values, truth.values, atol=0.006
    )  # five standard errors of a weighted share
    complete = mk.counts(rows.dropna(), ["a", "b", "c"]).normalize()
    assert np.abs(complete.values - truth.values).max() > 0.05
    assert recovered.weights(rows).mean() == pytest.approx(1)
    assert "weighted" in recovered.rule


def test_bad_questions_are_answered_in_a_sentence():
    with pytest.raises(InvalidArgument, match="no node 'r'"):
        recover("x -> y", {"x": "r"})
    with pytest.raises(InvalidArgument, match="points to a variable"):
        recover("x -> rx; rx -> y", {"x": "rx"})
    with pytest.raises(InvalidArgument, match="'rx' is no variable"):
        recover("x -> y; y -> rx", {"x": "rx"}, "rx")


def gaps(n, seed=1):
    """Two columns with gaps below a; the second is seen less often where the first is."""
    rng = np.random.default_rng(seed)
    a = rng.random(n) < 0.4
    b, c = (rng.random(n) < np.where(a, 0.8, 0.3) for _ in range(2))
    seen_c = rng.random(n) < 0.5
    seen_b = rng.random(n) < np.where(a, 0.9, 0.4) * np.where(seen_c, 0.5, 1.0) * np.where(
        a & seen_c, 0.3, 1.0
    )
    whole = pd.DataFrame({"a": a, "b": b, "c": c})
    rows = whole.astype(object)
    rows.loc[~seen_b, "b"] = None
    rows.loc[~seen_c, "c"] = None
    return whole, rows


GAPS = "a -> b; a -> c; a -> rb; rc -> rb"


def test_a_cell_that_is_seen_by_others_gaps_is_weighed_among_the_rows_where_these_are_seen():
    whole, rows = gaps(100_000)
    recovered = recover(GAPS, {"b": "rb", "c": "rc"})
    truth = mk.counts(whole, ["a", "b", "c"]).normalize()
    np.testing.assert_allclose(recovered.evaluate(rows).values, truth.values, atol=0.012)


def test_a_learner_estimates_the_chances_of_being_seen():
    from sklearn.tree import DecisionTreeClassifier

    _, rows = gaps(4000)
    recovered = recover(GAPS, {"b": "rb", "c": "rc"})
    np.testing.assert_allclose(
        recovered.weights(rows, DecisionTreeClassifier()), recovered.weights(rows), rtol=1e-9
    )


def test_a_conditional_distribution_is_recovered_as_one():
    whole, rows = gaps(100_000)
    found = recover("a -> b; a -> rb", {"b": "rb"}, "b", "a").evaluate(rows[["a", "b"]])
    truth = mk.counts(whole, ["a", "b"]).conditional(["b"], ["a"])
    np.testing.assert_allclose(found.transpose(truth.names).values, truth.values, atol=0.02)


def test_rows_are_complete_only_if_what_is_given_is_seen_for_reasons_of_its_own():
    """Whether b is seen depends on a, so that P(a | b) is not that of the complete rows."""
    assert recover("b -> a; a -> rb", {"b": "rb"}, "a", "b").rule == "weighted complete rows"
    with pytest.raises(NotIdentifiable):
        recover("a -> b; b -> ra; a -> rb; ra -> rb", {"a": "ra", "b": "rb"})
