"""Running a search: why it ends, what fails on the way, workers, files."""

import os
import signal
from time import sleep

import numpy as np
import pytest

from markovia.errors import InvalidArgument, UnknownArgument
from markovia.models.bayesopt.study import Study, minimize
from markovia.runtime.clock import Clock

LINE = {"x": (-1.0, 2.0)}


def square(point):
    return point["x"] ** 2


def slow_square(point):
    sleep(0.05)
    if point["x"] > 1.5:
        raise ValueError("too large")
    return point["x"] ** 2, [point["x"] - 1.0]


def test_the_calls_count_those_of_the_file(tmp_path):
    path = tmp_path / "study.json"
    assert len(minimize(square, LINE, 4, path=path, seed=0).trials) == 4
    found = minimize(square, LINE, 6, path=path, seed=0)
    assert (len(found.trials), found.reason) == (6, "calls")
    assert minimize(square, LINE, 6, path=path, seed=0).reason == "calls"
    whole = minimize(square, LINE, 6, seed=0)
    assert [t.point for t in found.trials] == [t.point for t in whole.trials]


def test_a_target_ends_the_search():
    found = minimize(square, LINE, 40, target=0.01, noise=0.0, seed=0)
    assert found.reason == "target"
    assert found.trials[-1].value <= 0.01
    assert all(t.value > 0.01 for t in found.trials[:-1])


def test_patience_ends_a_search_that_finds_nothing_lower():
    found = minimize(lambda p: float(p["x"] > 0.1), LINE, 40, patience=6, seed=0)
    assert found.reason == "patience"
    best = [t.value for t in found.trials].index(0.0)
    assert len(found.trials) == best + 1 + 6


def test_a_tolerance_ends_the_search_where_no_improvement_is_expected():
    found = minimize(square, LINE, 40, tol=1e-3, noise=0.0, seed=0)
    assert found.reason == "tolerance"
    assert found.expected_improvement < 1e-3
    assert found.best_value < 1e-2
    assert len(found.trials) < 25


def test_a_time_limit_ends_the_search():
    found = minimize(square, LINE, 10_000, time_limit=1e-9, seed=0)
    assert (found.reason, len(found.trials)) == ("time limit", 0)


def test_all_points_of_a_small_space_end_the_search():
    found = minimize(lambda p: p["k"], {"k": [3, 1, 2]}, 10, seed=0)
    assert (found.reason, found.best_point, len(found.trials)) == ("all points tried", {"k": 1}, 3)


def test_ctrl_c_ends_the_search_after_the_trial_and_keeps_all():
    def function(point):
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        seen.append(point)
        return point["x"]

    seen = []
    found = minimize(function, LINE, 40, seed=0)
    assert (found.reason, len(found.trials)) == ("interrupted", 4)


def test_what_raises_or_returns_no_number_is_recorded_and_the_search_goes_on():
    def function(point):
        calls.append(point)
        bad = {
            2: lambda: 1 / 0,
            4: lambda: np.nan,
            5: lambda: "much",
            6: lambda: None,
            7: lambda: (1.0, [np.inf]),
        }
        return bad.get(len(calls), lambda: point["x"] ** 2)()

    calls = []
    found = minimize(function, LINE, 12, seed=0)
    assert len(found.trials) == 12
    errors = {i + 1: t.error for i, t in enumerate(found.trials) if t.error}
    assert set(errors) == {2, 4, 5, 6, 7}
    assert errors[2] == "ZeroDivisionError: division by zero"
    assert "nan" in errors[4]
    assert "much" in errors[5]
    assert found.best_value >= 0.0
    assert found.reason == "calls"


def test_a_function_that_changes_its_point_changes_nothing_else():
    def function(point):
        x = point.pop("x")
        return x**2

    assert minimize(function, LINE, 5, seed=0).best_point.keys() == {"x"}


def test_workers_try_several_points_at_once():
    found = minimize(slow_square, LINE, 12, n_jobs=2, seed=0)
    assert len(found.trials) == 12
    assert len({t.point["x"] for t in found.trials}) == 12
    assert found.pending == []
    assert all(("too large" in t.error) == (t.point["x"] > 1.5) for t in found.trials if t.error)
    assert found.best_value < 0.05


def test_points_of_a_run_that_was_broken_off_are_not_under_way():
    study = Study(LINE, seed=0)
    study.ask(3)
    study.run(square, 2)
    assert study.pending == []
    assert [t.point for t in study.trials] == [t.point for t in minimize(square, LINE, 2, seed=0).trials]


def test_a_search_inside_another_clock_ends_with_it():
    with Clock(time_limit=1e-9, progress=False):
        assert minimize(square, LINE, 5, seed=0).reason == "time limit"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"calls": 0}, "calls= is"),
        ({"calls": 2.5}, "calls= is"),
        ({"patience": 0}, "patience= is"),
        ({"time_limit": -1.0}, "time_limit= is"),
        ({"space": {"x": (1.0, -1.0)}}, "low below high"),
    ],
)
def test_what_makes_no_sense_is_refused(options, word):
    with pytest.raises(InvalidArgument, match=word):
        minimize(square, **{"space": LINE, "calls": 5, **options})


def test_a_misspelt_setting_is_answered_with_the_right_one():
    with pytest.raises(UnknownArgument, match="did you mean 'noise'"):
        minimize(square, LINE, 5, nois=0.0)
