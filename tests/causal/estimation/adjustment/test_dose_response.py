"""Dose-response curves: known curves, coverage, double robustness, units and refusals."""

import numpy as np
import pytest

import markovia as mk
from markovia.causal.estimation.adjustment.dose_response import dose_response
from markovia.errors import InvalidArgument

AT = np.array([-1.5, 0.0, 1.5])
GRAPH = "x -> a -> y; x -> y"


def world(seed, n=800, curve=np.sin):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    a = 0.7 * x + rng.normal(size=n)
    return x, a, curve(a) + x + 0.5 * a * x + rng.normal(size=n)


def test_intervals_hold_the_curve_as_often_as_they_say():
    at = np.array([-1.0, 0.0, 1.0])
    errors, claimed = [], []
    for seed in range(20):
        x, a, y = world(seed, 600)
        found = dose_response(a, y, x[:, None], at)
        claimed.append(np.sqrt((found.influence**2).sum(axis=0)) / len(a))
        errors.append(found.values - np.sin(at))
    hits = (np.abs(errors) < 1.96 * np.array(claimed)).sum()
    assert hits >= 57 - 3 * np.sqrt(60 * 0.05 * 0.95)
    assert np.std(errors, axis=0) == pytest.approx(np.mean(claimed, axis=0), rel=0.4)
    assert (np.abs(np.mean(errors, axis=0)) < 3 * np.std(errors, axis=0) / np.sqrt(20)).all()


@pytest.mark.parametrize("wrong", ["outcome", "treatment"])
def test_one_wrong_model_does_no_harm(wrong):
    class Nothing:
        """A learner that learns the mean."""

        def fit(self, x, y):
            self.mean = y.mean()
            return self

        def predict(self, x):
            return np.full(len(x), self.mean)

        def get_params(self, deep=True):
            return {}

        def set_params(self, **_):
            return self

        _estimator_type = "regressor"

        def __sklearn_tags__(self):
            from sklearn.utils import RegressorTags, Tags, TargetTags

            return Tags("regressor", TargetTags(required=True), regressor_tags=RegressorTags())

        def __sklearn_clone__(self):
            return Nothing()

    x, a, y = world(1, 1500)
    found = dose_response(a, y, x[:, None], AT, learner={wrong: Nothing()})
    error = np.sqrt((found.influence**2).sum(axis=0)) / len(a)
    assert (np.abs(found.values - np.sin(AT)) < 3 * error).all()
    assert error.max() < 0.2
    if wrong == "outcome":  # what confounds is taken away: without covariates it stays
        naive = dose_response(a, y, np.empty((len(a), 0)), AT)
        assert np.abs(naive.values - np.sin(AT)).max() > 0.6  # more than three errors


def test_a_straight_line_is_the_slope_of_the_regression():
    x, a, _ = world(2)
    y = 3 * a + x
    found = dose_response(a, y, x[:, None], AT)
    assert np.diff(found.values) == pytest.approx(4.5, abs=1e-6)
    # without noise all that is not known is the mean of the covariate
    error = np.sqrt((found.influence**2).sum(axis=0)) / len(a)
    assert error[1] == pytest.approx(x.std() / np.sqrt(len(x)), rel=0.1)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_curve_does_not_depend_on_units(unit):
    x, a, y = world(3)
    plain = dose_response(a, y, x[:, None], AT)
    scaled = dose_response(a * unit, y * unit, x[:, None], AT * unit)
    assert scaled.values / unit == pytest.approx(plain.values, rel=1e-6)
    assert scaled.influence / unit == pytest.approx(plain.influence, rel=1e-5, abs=1e-6)


def test_a_curve_from_an_effect_has_a_table_and_differences():
    x, a, y = world(4)
    effect = mk.causal.effect({"x": x, "a": a, "y": y}, GRAPH, "a", "y")
    curve = effect.dose_response([-1.5, 0.0, 1.5])
    table = curve.to_pandas()
    assert table.index.tolist() == AT.tolist()
    assert (table["low"] < table["value"]).all()
    assert table["value"].to_numpy() == pytest.approx(
        dose_response(a, y, x[:, None], AT, seed=effect.settings.seed).values
    )
    gap = curve.difference(1.5, 0)
    assert gap.value == pytest.approx(table["value"].iloc[2] - table["value"].iloc[1])
    assert abs(gap.value - np.sin(1.5)) < 4 * gap.standard_error
    assert len(effect.dose_response().doses) == 21
    assert "mean y by the dose of a" in str(curve)
    assert len(curve.plot().lines) == 1
    with pytest.raises(
        InvalidArgument, match=r"no dose 0.3; ask for it with dose_response\(doses=\[0, 0.3\]\)"
    ):
        curve.difference(0.3, 0)


@pytest.mark.parametrize(
    ("doses", "bandwidth", "words"),
    [
        ([99.0], None, "nothing is known beyond"),
        ([], None, "doses="),
        ([0.0], -1, "bandwidth= is a positive number"),
    ],
)
def test_doses_outside_the_data_are_refused(doses, bandwidth, words):
    x, a, y = world(5, 200)
    effect = mk.causal.effect({"x": x, "a": a, "y": y}, GRAPH, "a", "y", method="regression")
    with pytest.raises(InvalidArgument, match=words):
        effect.dose_response(doses, bandwidth=bandwidth)


def test_a_treatment_of_levels_has_no_dose():
    x, a, y = world(6, 200)
    effect = mk.causal.effect({"x": x, "a": (a > 0).astype(int), "y": y}, GRAPH, "a", "y")
    with pytest.raises(InvalidArgument, match="has levels and no doses; summary"):
        effect.dose_response()


def test_a_dose_that_the_covariates_give_away_is_refused():
    x, _, y = world(7, 200)
    with pytest.raises(InvalidArgument, match="predict the dose perfectly"):
        dose_response(2 * x, y, x[:, None], AT)
