"""Pictures of searches: what is on the axes."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, Unanswered

SPACE = {"kind": {"a": {}, "b": {"z": (1, 5)}}, "x": (1e-3, 1e3, "log"), "y": (0.0, 1.0)}


@pytest.fixture(scope="module")
def study():
    def function(p):
        if p["x"] > 300.0:
            raise ValueError("too large")
        return np.log10(p["x"]) ** 2 + p["y"] + (p["kind"] == "b") * (p.get("z", 0) - 3) ** 2

    found = mk.bayesopt.minimize(function, SPACE, 14, seed=1)
    found.tell({"kind": "b", "z": 3, "x": 1.0, "y": 0.01}, 0.01)
    found.tell({"kind": "a", "x": 900.0, "y": 0.5}, None)
    return found


def test_the_course_of_a_search_has_its_values_and_the_lowest_so_far(study):
    ax = study.plot()
    dots, failed, lowest = ax.lines
    values = np.array([t.value for t in study.trials])
    np.testing.assert_array_equal(dots.get_ydata(), values[np.isfinite(values)])
    assert len(failed.get_xdata()) == (~np.isfinite(values)).sum() > 0
    assert lowest.get_ydata()[-1] == study.best_value
    assert (np.diff(lowest.get_ydata()) <= 0).all()


def test_slices_go_through_the_best_point(study):
    figure = study.plot("slices").figure
    panels = {ax.get_xlabel(): ax for ax in figure.axes if ax.get_visible()}
    assert set(panels) == {"kind", "z", "x", "y"}
    assert panels["x"].get_xscale() == "log"
    assert [t.get_text() for t in panels["kind"].get_xticklabels()] == ["a", "b"]
    curve = next(line for line in panels["y"].lines if line.get_label() == "mean")
    middle = len(curve.get_xdata()) // 2
    best = study.best_point
    mean, _ = study.predict([{**best, "y": float(curve.get_xdata()[middle])}])
    assert curve.get_ydata()[middle] == pytest.approx(mean[0])


def test_two_parameters_are_a_map_with_the_trials_on_it(study):
    ax = study.plot("surrogate", parameters=["x", "y"])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("x", "y", "log")
    assert len(ax.lines[0].get_xdata()) == len(study.trials)
    assert study.plot("surrogate", parameters=["y"]).get_ylabel() == "value"


def test_what_cannot_be_drawn_is_said(study):
    with pytest.raises(InvalidArgument, match="'w' is no parameter of the best point"):
        study.plot("slices", parameters=["w"])
    with pytest.raises(InvalidArgument, match="'kind' is a choice"):
        study.plot("surrogate", parameters=["kind", "x"])
    with pytest.raises(InvalidArgument, match="a map is over two parameters"):
        study.plot("surrogate", parameters=["x", "y", "z"])
    with pytest.raises(InvalidArgument, match="kind= is"):
        study.plot("map")
    with pytest.raises(Unanswered, match="nothing to draw"):
        mk.bayesopt.Study(SPACE).plot()
