"""Synthetic controls with covariates: weights by hand, known effects, units, and sentences."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.causal.estimation.designs.synthetic_controls import synthesise
from markovia.errors import InvalidArgument, UnknownVariable


def regions(noise, seed=0, effect=5.0, unit=1.0, periods=14, start=6):
    """The outcome follows two covariates by paths that change with time; the first region is a mixture of the next three."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(0, 4, size=(9, 2))
    z[0] = np.array([0.5, 0.3, 0.2]) @ z[1:4]
    y = z @ rng.normal(1, 1, size=(2, periods)) + noise * rng.normal(size=(9, periods))
    y[0, start:] += effect
    rows = [
        (f"r{i}", t, unit * y[i, t], z[i, 0] + 0.1 * (t % 2), 1e6 * z[i, 1])
        for i in range(9)
        for t in range(periods)
    ]
    return pd.DataFrame(rows, columns=["region", "year", "sales", "shops", "people"])


def control(frame, **more):
    asked = {"unit": "region", "time": "year", "treated": "r0", "start": 6, **more}
    return mk.causal.synthetic_control(frame, "sales", **asked)


def test_weights_are_nearest_in_the_predictors_and_their_importance_follows_the_outcome_best():
    rng = np.random.default_rng(4)
    steps = np.linspace(0, 1, 41)
    simplex = np.array([(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1 + 1e-9])
    for _ in range(4):
        alike, y = rng.normal(size=(3, 2)), rng.normal(size=(3, 6))
        own, treated = rng.normal(size=2), rng.normal(size=6)
        found = synthesise(treated, y, 4, (own, alike))
        # in units of their spread, as predictors are compared
        unit = np.ptp(np.vstack([own, alike]), axis=0)
        apart = ((simplex @ alike - own) / unit) ** 2
        mine = ((found.weights @ alike - own) / unit) ** 2
        assert mine @ found.importance <= (apart @ found.importance).min() + 1e-6
        misfits = np.mean((simplex @ y[:, :4] - treated[:4]) ** 2, axis=1)
        tried = [misfits[np.argmin(apart @ (share, 1 - share))] for share in np.linspace(0.02, 0.98, 40)]
        assert np.mean(found.gaps[:4] ** 2) <= min(tried) + 0.02


def test_mixtures_that_are_equally_near_are_told_apart_by_the_outcome():
    alike = np.ones((3, 1))
    y = np.array([[0.0, 0, 0, 0], [4.0, 4, 4, 4], [0.0, 4, 0, 4]])
    found = synthesise(np.array([1.0, 3, 11, 13]), y, 2, (np.ones(1), alike))
    assert found.weights == pytest.approx([0.25, 0.25, 0.5], abs=1e-6)
    assert found.effect == pytest.approx(10)


def test_the_control_has_the_covariates_of_the_treated_unit_and_the_effect_is_found():
    found = control(regions(0.01), covariates=["shops", "people"])
    assert abs(found.value - 5) < 0.1
    table = found.predictors
    assert list(table.index) == ["shops", "people", "sales before"]
    assert table["synthetic"].to_numpy() == pytest.approx(table["treated"].to_numpy(), rel=0.02)
    assert table["importance"].sum() == pytest.approx(1)
    assert found.p_value == pytest.approx(1 / 9)
    assert "people" in str(found)


def test_covariates_help_where_few_noisy_periods_come_before_the_start():
    def error(covariates):
        gaps = [
            control(regions(1.0, seed, start=3), start=3, covariates=covariates).value - 5
            for seed in range(5)
        ]
        return float(np.mean(np.square(gaps)))

    assert error(["shops", "people"]) < error([])


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_neither_weights_nor_p_values_depend_on_units(unit):
    for covariates in ([], ["shops"]):
        plain = control(regions(0.3), covariates=covariates)
        scaled = control(regions(0.3, unit=unit), covariates=covariates)
        assert scaled.weights["r1"] == pytest.approx(plain.weights["r1"], abs=1e-3)
        assert scaled.value / unit == pytest.approx(plain.value, rel=1e-3)
        assert scaled.p_value == plain.p_value


def test_a_unit_or_a_time_that_is_not_there_is_named_with_those_that_are():
    frame = regions(0.3)
    with pytest.raises(UnknownVariable) as told:
        control(frame, treated="zz")
    assert str(told.value) == (
        "treated='zz' is no value of 'region', which has 'r0', 'r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7', 'r8'"
    )
    with pytest.raises(
        UnknownVariable, match=r"start=2012 is no value of 'year', which has 0, 1, 2, .*, 11, \.\.\."
    ):
        control(frame, start=2012)


def test_covariates_are_columns_of_numbers_without_gaps():
    frame = regions(0.3).assign(word="a")
    with pytest.raises(InvalidArgument, match="the covariate 'word' is no column of numbers"):
        control(frame, covariates="word")
    with pytest.raises(UnknownVariable, match=r"'shop' in the data \(did you mean 'shops'"):
        control(frame, covariates="shop")
    with pytest.raises(InvalidArgument, match="cells are missing in 'shops'"):
        control(frame.assign(shops=frame["shops"].where(frame["year"] > 0)), covariates="shops")
