"""Several outcomes, treatments and levels: tables of effects, joint treatments, contrasts, plain dictionaries."""

import json
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, UnknownVariable

GRAPH = "z -> {a b y v}; {a b} -> {y v}"


@pytest.fixture(scope="module")
def trial():
    """Two treatments that help each other: 1, 2 and 4 for both; a covariate confounds them."""
    rng = np.random.default_rng(3)
    n = 1500
    z = rng.normal(size=n)
    a, b = ((z + rng.logistic(size=(2, n))) > 0).astype(int)
    y = a + 2 * b + a * b + z + rng.normal(size=n)
    return pd.DataFrame({"z": z, "a": a, "b": np.where(b, "yes", "no"), "y": y, "v": 3 * a + z})


def test_outcomes_in_a_list_are_answered_one_by_one(trial):
    both = mk.causal.effect(trial, GRAPH, "a", ["y", "v"])
    for name in ("y", "v"):
        assert both[name].value == mk.causal.effect(trial, GRAPH, "a", name).value
    table = both.to_pandas()
    assert list(table.index) == ["y", "v"]
    assert table.loc["v", "value"] == pytest.approx(3, abs=1e-6)
    assert str(both).splitlines()[0].startswith("a on")
    assert json.loads(json.dumps(both.to_dict()))["v"]["outcome"] == "v"
    with pytest.raises(UnknownVariable, match="'w'"):
        mk.causal.effect(trial, GRAPH, "a", ["y", "w"])


def test_treatments_in_a_list_are_set_together(trial):
    found = mk.causal.effect(trial, GRAPH, ["a", "b"], "y")
    assert (found.treatment, found.treated, found.control) == ("a and b", (1, "yes"), (0, "no"))
    assert abs(found.value - 4) < 3 * found.standard_error
    alone = found.contrasts((0, "no")).set_index("treated")
    for level, truth in (((1, "no"), 1), ((0, "yes"), 2), ((1, "yes"), 4)):
        value, error = alone.loc[[level], ["value", "standard_error"]].to_numpy()[0]
        assert abs(value - truth) < 4 * error


def test_a_joint_effect_is_the_same_number_as_that_of_the_combined_column(trial):
    joined = trial.assign(ab=[f"{a}{b}" for a, b in zip(trial["a"], trial["b"], strict=True)])
    one = mk.causal.effect(joined, "z -> {ab y}; ab -> y", "ab", "y", control="0no", treated="1yes")
    two = mk.causal.effect(trial, GRAPH, ["a", "b"], "y")
    assert (one.value, one.standard_error) == pytest.approx((two.value, two.standard_error))


def test_one_of_several_treatments_can_be_held_and_the_values_be_said_by_name(trial):
    found = mk.causal.effect(
        trial, GRAPH, ["a", "b"], "y", control={"a": 0, "b": "yes"}, treated={"a": 1, "b": "yes"}
    )
    assert (found.control, found.treated) == ((0, "yes"), (1, "yes"))
    assert abs(found.value - 2) < 3 * found.standard_error  # 4 - 2
    (placebo,) = found.refute("placebo treatment", repetitions=5)
    assert placebo.expected == 0
    assert abs(placebo.value) < 0.3


def test_joint_treatments_over_time_are_answered_by_the_formula_and_the_network():
    rng = np.random.default_rng(0)
    n = 1500
    a = rng.integers(0, 2, n)
    u = rng.integers(0, 2, n)  # hidden: what is between the treatments shares a cause with the outcome
    m = (rng.random(n) < 0.2 + 0.3 * a + 0.3 * u).astype(int)
    b = (rng.random(n) < 0.3 + 0.4 * m).astype(int)
    y = (rng.random(n) < 0.1 + 0.2 * a + 0.3 * b + 0.2 * u).astype(int)
    rows = {"a": a, "m": m, "b": b, "y": y}
    found = mk.causal.effect(
        rows, "a -> m -> b -> y; a -> y; m -> y; m <-> y", ["a", "b"], "y", repetitions=10
    )
    assert found.method == "plug-in"
    assert abs(found.value - 0.5) < 4 * found.standard_error
    with pytest.raises(InvalidArgument, match="effect_over_time"):
        mk.causal.effect(rows, "a -> m -> b -> y; a -> y; m -> y; m <-> y", ["a", "b"], "y", method="aipw")


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("'a' has more than 10 values; cut it into classes", {"frame": lambda f: f.assign(a=f["z"])}),
        ("control= has a value for each treatment here, {'a': ..., 'b': ...}, not 0", {"control": 0}),
        ("7 is no level of 'a'; its levels are 0, 1", {"treated": (7, "yes")}),
        (
            "the treatments have 20 combinations",
            {
                "frame": lambda f: f.assign(a=np.arange(len(f)) % 10),
                "control": (0, "no"),
                "treated": (1, "yes"),
            },
        ),
        ("unknown variable 'c' in the treatments", {"control": {"c": 1}}),
        ("this method compares|one treatment on one outcome", {"method": "2sls"}),
    ],
)
def test_joint_treatments_that_cannot_be_compared_get_a_sentence(trial, words, change):
    change = dict(change)
    frame = change.pop("frame", lambda f: f)(trial)
    with pytest.raises(
        (InvalidArgument, UnknownVariable), match=words.replace("{", "\\{").replace("}", "\\}")
    ):
        mk.causal.effect(frame, GRAPH, ["a", "b"], "y", **change)


def test_without_covariates_contrasts_are_differences_of_means_with_welchs_errors():
    rng = np.random.default_rng(1)
    arm = rng.integers(0, 4, 800)
    y = np.array([0, 0.1, 0.3, 1.0])[arm] + rng.normal(size=800) * (1 + arm)
    found = mk.causal.effect(
        {"arm": arm, "y": y}, "arm -> y", "arm", "y", control=0, treated=3, method="regression"
    )
    table = found.contrasts()
    assert len(table) == 6
    for row in table.itertuples():
        one, two = y[arm == row.treated], y[arm == row.control]
        assert row.value == pytest.approx(one.mean() - two.mean())
        assert row.standard_error == pytest.approx(
            np.sqrt(one.var() / len(one) + two.var() / len(two)), rel=1e-6
        )
    # Holm, written out: sorted p-values times the number of those not yet rejected, never falling
    p = np.sort(table["p_value"].to_numpy())
    by_hand = np.minimum(np.maximum.accumulate(p * np.arange(6, 0, -1)), 1)
    assert np.sort(table["p_adjusted"].to_numpy()) == pytest.approx(by_hand)
    assert all(a <= b for a, b in pairwise(by_hand))
    assert found.contrasts(1)["control"].unique().tolist() == [1]
    with pytest.raises(InvalidArgument, match="9 is no level of 'arm'; its levels are 0, 1, 2, 3"):
        found.contrasts(9)


def test_a_treatment_without_levels_has_no_contrasts():
    rng = np.random.default_rng(1)
    rows = {"a": rng.normal(size=100), "y": rng.normal(size=100)}
    with pytest.raises(InvalidArgument, match=r"dose_response\(\) has the whole curve"):
        mk.causal.effect(rows, "a -> y", "a", "y").contrasts()


@pytest.mark.parametrize("method", ["aipw", "regression", "2sls", "none"])
def test_an_effect_is_a_plain_dictionary(trial, method):
    frame = trial.assign(i=trial["a"])
    graph = {"2sls": "i -> a -> y; a <-> y", "none": "y -> z -> a"}.get(method, GRAPH)
    found = mk.causal.effect(frame, graph, "a", "y", **({} if method == "none" else {"method": method}))
    told = json.loads(json.dumps(found.to_dict()))
    assert told["value"] == found.value
    assert tuple(told["interval"]) == found.interval
    assert told["estimand"] == "ate"
    assert (told["balance"] is None) == (found.balanced is None)
    assert (told["first_stage"] is None) == (method != "2sls")


def test_a_table_of_effects_goes_to_another_process(trial):
    both = mk.causal.effect(trial, GRAPH, "a", ["y"])
    assert pickle.loads(pickle.dumps(both.to_dict())) == both.to_dict()
