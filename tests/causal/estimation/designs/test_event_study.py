"""Event studies: effects by time from the start, and the test that groups changed alike before it."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.causal.estimation.designs.difference_in_differences import group_time_effects, pre_trend
from markovia.errors import InvalidArgument

STARTS = np.array([3, 4, 6])  # the last group is never treated in six periods


def panel(seed, n=120, drift=0.0, effect=2.0):
    """Groups that start in period 3, 4 or never; `drift` is how much the first changes more each period all along."""
    rng = np.random.default_rng(seed)
    start = STARTS[np.arange(n) % 3]
    time = np.arange(6)
    y = rng.normal(size=(n, 1)) + time + rng.normal(size=(n, 6)) + effect * (time >= start[:, None])
    return y + drift * time * (start == 3)[:, None], start


def frame(y, start):
    n, periods = y.shape
    unit, period = np.repeat(np.arange(n), periods), np.tile(np.arange(2000, 2000 + periods), n)
    first = np.where(start < periods, 2000.0 + start, np.nan)
    return pd.DataFrame({"u": unit, "t": period, "y": y.ravel(), "s": np.repeat(first, periods)})


def study(y, start, **more):
    return mk.causal.staggered_differences(frame(y, start), "y", unit="u", period="t", start="s", **more)


def test_a_lead_is_the_difference_of_the_changes_to_the_period_before_the_start():
    y, start = panel(0)
    leads = {
        (e.group, e.period): e.estimate
        for e in group_time_effects(y, start, np.empty((len(y), 0)), leads=True)
    }
    assert set(leads) == {(3, 0), (3, 1), (4, 0), (4, 1), (4, 2)}
    for (g, t), found in leads.items():
        change = y[:, t] - y[:, g - 1]
        one, two = change[start == g], change[start > g]  # units that start later, and never
        assert found.value == pytest.approx(one.mean() - two.mean())
        assert found.standard_error == pytest.approx(
            np.sqrt(one.var() / len(one) + two.var() / len(two)), rel=0.02
        )


def test_the_event_study_has_every_time_from_the_start():
    y, start = panel(1)
    found = study(y, start)
    table = found.event_study()
    assert table.index.tolist() == [-4, -3, -2, -1, 0, 1, 2]
    assert table.loc[-1].tolist() == [0, 0, 0, 0, 1]
    for k in (0, 1, 2):
        assert table.loc[k, "value"] == found.by_length[k].value
        assert abs(table.loc[k, "value"] - 2) < 4 * table.loc[k, "standard_error"]
    assert "before   nothing tells the changes before the start apart (chi2 = " in str(found)
    axes = found.plot()
    assert axes.get_ylabel() == "effect on y"


def test_the_test_of_one_lead_is_its_squared_z_value():
    y, start = panel(2)
    kept = start != 4
    y, start = y[kept][:, 1:], start[kept] - 1  # one group that starts in period 2 of 5: one lead
    leads = group_time_effects(y, np.where(start == 2, 2, 5), np.empty((len(y), 0)), leads=True)
    (one,) = leads
    found = pre_trend(leads)
    assert found.dof == 1
    assert found.statistic == pytest.approx((one.estimate.value / one.estimate.standard_error) ** 2)
    assert found.p_value == pytest.approx(one.estimate.p_value())


def test_the_test_of_all_leads_is_walds_statistic():
    y, start = panel(3)
    leads = group_time_effects(y, start, np.empty((len(y), 0)), leads=True)
    values = np.array([e.estimate.value for e in leads])
    influence = np.stack([e.estimate.influence for e in leads], axis=1)
    covariance = influence.T @ influence / len(y) ** 2
    by_hand = values @ np.linalg.solve(covariance, values)
    for unit in (1e-9, 1.0, 1e9):
        scaled = group_time_effects(y * unit, start, np.empty((len(y), 0)), leads=True)
        assert pre_trend(scaled).statistic == pytest.approx(by_hand, rel=1e-6)
        assert pre_trend(scaled).dof == 5


def test_the_test_rejects_at_its_level_and_finds_a_drift():
    def rejected(drift, worlds):
        found = []
        for seed in range(worlds):
            y, start = panel(seed, drift=drift)
            leads = group_time_effects(y, start, np.empty((len(y), 0)), leads=True)
            found.append(pre_trend(leads).p_value < 0.05)
        return float(np.mean(found))

    assert rejected(0.0, 40) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
    assert rejected(0.8, 12) > 0.9


def test_the_intervals_of_an_event_study_hold_the_truth():
    hits = total = 0
    for seed in range(12):
        table = study(*panel(seed, 90)).event_study().drop(index=-1)
        truth = np.where(table.index >= 0, 2.0, 0.0)
        hits += int(((table["low"] <= truth) & (truth <= table["high"])).sum())
        total += len(table)
    assert hits / total > 0.85


def test_no_two_periods_before_a_start_leave_nothing_to_test():
    y, start = panel(4)
    found = study(y[:, 2:], np.where(start == 3, 1, 4))
    assert found.pre_trend is None
    assert found.before == {}
    assert found.event_study().index.tolist() == [-1, 0, 1, 2]


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        (
            "p",
            [2001, 2002, 2003],
            r"'p' needs two values, not 3 \(2001, 2002, 2003\): .* staggered_differences",
        ),
        ("p", list(range(30)), r"'p' needs two values, not 30 \(0, 1, 2, 3, 4, 5, ...\)"),
        ("g", ["a", "b", "c"], r"'g' needs two values, not 3 \('a', 'b', 'c'\): keep the rows of the two"),
        ("g", ["a"], r"'g' needs two values, not 1 \('a'\)"),
    ],
)
def test_a_column_that_has_not_two_values_is_named_with_those_it_has(column, values, words):
    rows = {"y": np.arange(60.0), "g": np.arange(60) % 2, "p": np.arange(60) // 30}
    rows[column] = np.resize(values, 60)
    with pytest.raises(InvalidArgument, match=words):
        mk.causal.difference_in_differences(rows, "y", group="g", period="p")
