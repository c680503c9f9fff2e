"""Pictures of effects put every name beside its own numbers, whatever the order they come in."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

import markovia as mk
from markovia.plotting import style
from markovia.plotting.effects import paths as effect_pictures
from markovia.plotting.effects.estimates import (
    plot_balance,
    plot_dose_response,
    plot_effect_report,
    plot_effects,
    plot_event_study,
    plot_sensitivity,
    plot_synthetic_control,
)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def effect(method, value, low, high, **more):
    estimate = SimpleNamespace(null=more.pop("null", 0.0), on_log_scale=more.pop("log", False))
    return SimpleNamespace(
        method=method, value=value, interval=(low, high), estimate=estimate, measure="difference", outcome="y",
        treatment="t", **more,
    )  # fmt: skip


def rows_of(ax):
    """Return the places of the names at the left, by name."""
    return {t.get_text(): y for t, y in zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)}


def test_a_forest_has_each_value_and_interval_beside_its_method():
    effects = [effect("b", 2.0, 1.5, 4.0), effect("c", -1.0, -3.0, 0.25), effect("a", 0.5, 0.1, 0.7)]
    ax = plot_effects(effects)
    at = rows_of(ax)
    assert at["b"] > at["c"] > at["a"]
    solid = [line for line in ax.lines if line.get_linestyle() == "-" and len(line.get_xdata()) == 2]
    spans = {line.get_ydata()[0]: tuple(line.get_xdata()) for line in solid}
    points = {line.get_ydata()[0]: line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 1}
    written = {text.xy[1]: text.get_text() for text in ax.texts}
    for one in effects:
        assert spans[at[one.method]] == one.interval
        assert points[at[one.method]] == one.value
        assert written[at[one.method]] == f"{one.value:.3g} ({one.interval[0]:.3g} to {one.interval[1]:.3g})"
    null = plot_effects([effect("a", 2.0, 1.5, 3.0, null=1.0, log=True)])
    assert null.get_xscale() == "log"
    assert [line.get_xdata()[0] for line in null.lines if line.get_linestyle() == "--"] == [1.0]


def test_a_love_plot_has_before_and_after_beside_their_covariate_the_worst_on_top():
    before, after = np.array([0.2, -0.9, 0.05, 0.4]), np.array([-0.03, 0.12, 0.3, 0.01])
    names = ["size", "age", "sex", "dose"]
    ax = plot_balance(SimpleNamespace(columns=names, before=before, after=after))
    at = {t.get_text(): float(y) for y, t in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)}
    assert sorted(at, key=at.get) == ["sex", "size", "dose", "age"]
    drawn = {line.get_label(): line for line in ax.lines}
    for label, numbers in (("before", before), ("after", after)):
        told = dict(zip(drawn[label].get_ydata(), drawn[label].get_xdata(), strict=True))
        assert told == pytest.approx(dict(zip(names, np.abs(numbers), strict=True)))
    assert to_rgb(drawn["before"].get_color()) == to_rgb(style.BAR_OBSERVED)
    assert to_rgb(drawn["after"].get_color()) == to_rgb(style.NODE_BORDER)


def test_benchmarks_are_named_where_they_are_and_the_thick_contour_is_no_effect():
    marks = pd.DataFrame(
        {"treatment": [0.05, 0.2, 0.12], "outcome": [0.3, 0.02, 0.15]}, index=["x", "w", "z"]
    )
    found = SimpleNamespace(
        benchmarks=marks, robustness=0.2, adjusted=lambda across, up: 1.0 - 8.0 * across - 2.0 * up
    )  # fmt: skip
    ax = plot_sensitivity(found)
    points = {tuple(line.get_xydata()[0]) for line in ax.lines if line.get_marker() == "D"}
    assert points == {tuple(row) for row in marks.to_numpy()}
    named = {t.get_text(): t.xy for t in ax.texts if t.get_text() in marks.index}
    assert {n: xy[0] for n, xy in named.items()} == marks["treatment"].to_dict()
    assert sorted(named, key=lambda n: named[n][1]) == ["w", "z", "x"]
    assert all(named[n][1] >= marks["outcome"][n] for n in named)
    thick = next(c for c in ax.collections if np.ravel(c.get_linewidths())[0] == 2)
    line = np.concatenate([p.vertices for p in thick.get_paths()])
    assert found.adjusted(line[:, 0], line[:, 1]) == pytest.approx(np.zeros(len(line)), abs=1e-9)
    assert "treatment" in ax.get_xlabel()
    assert "outcome" in ax.get_ylabel()


def test_gaps_of_a_synthetic_control_stand_over_their_times():
    gaps, placebos = (
        np.array([0.1, -0.2, 3.0, 4.5]),
        np.array([[0.0, 0.3, -0.1, 0.2], [1.0, -1.0, 0.5, -0.4]]),
    )
    found = SimpleNamespace(
        times=[1999, 2001, 2004, 2005], unit="Ruhr", outcome="jobs",
        synthesis=SimpleNamespace(gaps=gaps, placebo_gaps=placebos, start=2),
    )  # fmt: skip
    ax = plot_synthetic_control(found)
    own = next(line for line in ax.lines if line.get_label() == "Ruhr")
    assert own.get_xydata().tolist() == [[1999, 0.1], [2001, -0.2], [2004, 3.0], [2005, 4.5]]
    faint = [
        line.get_ydata().tolist() for line in ax.lines if to_rgb(line.get_color()) == to_rgb(style.FAINT)
    ]
    assert faint == placebos.tolist()
    assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"] == [2004]


def test_an_event_study_stands_over_its_periods_and_a_curve_over_its_doses():
    columns = {"value": [0.5, 0.0, 2.0], "low": [0.1, 0.0, 1.0], "high": [0.9, 0.0, 4.0]}
    study = pd.DataFrame(columns, index=[-2, -1, 0])
    found = SimpleNamespace(event_study=lambda: study, average=SimpleNamespace(outcome="jobs"))
    ax = plot_event_study(found)
    assert ax.containers[0].lines[0].get_xydata().tolist() == [[-2, 0.5], [-1, 0.0], [0, 2.0]]
    bars = ax.containers[0].lines[2][0].get_segments()
    assert [bar[:, 1].round(6).tolist() for bar in bars] == [[0.1, 0.9], [0.0, 0.0], [1.0, 4.0]]
    curve = SimpleNamespace(to_pandas=lambda: study, treatment="dose", outcome="health")
    ax = plot_dose_response(curve)
    assert ax.lines[0].get_xydata().tolist() == [[-2, 0.5], [-1, 0.0], [0, 2.0]]
    edge = {tuple(point) for point in ax.collections[0].get_paths()[0].vertices.tolist()}
    assert {(0, 1.0), (0, 4.0), (-2, 0.1), (-2, 0.9)} <= edge
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("dose", "mean health")


def test_refutations_stand_beside_their_kind_and_their_expectation():
    refutations = [
        SimpleNamespace(kind="placebo", passed=True, values=np.array([0.1, -0.2]), expected=0.0),
        SimpleNamespace(kind="subset", passed=False, values=np.array([2.0, 2.5, 1.5]), expected=3.0),
    ]
    told = SimpleNamespace(
        effect=effect("a", 0.5, 0.1, 0.7, balanced=None), refutations=refutations, sensitivity=None, verdict="doubtful"
    )  # fmt: skip
    ax = plot_effect_report(told).flat[1]
    at = rows_of(ax)
    assert at["placebo"] > at["subset (failed)"]
    for name, one, colour in (
        ("placebo", refutations[0], style.NODE_BORDER),
        ("subset (failed)", refutations[1], style.HIGHLIGHTS[0]),
    ):
        values, bar = (line for line in ax.lines if line.get_ydata()[0] == at[name])
        assert values.get_xdata().tolist() == one.values.tolist()
        assert to_rgb(values.get_color()) == to_rgb(colour)
        assert bar.get_xdata().tolist() == [one.expected]


def test_paths_have_the_colour_of_what_they_carry(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        effect_pictures, "draw", lambda scene, *rest: drawn.append(scene) or plt.figure().add_subplot()
    )
    paths = mk.causal.effect_paths("z -> x; m -> y; z -> y; x -> m; w -> y; w -> x", "x", "y", given="w")
    ax = paths.plot()
    (scene,) = drawn
    causal, biasing = effect_pictures.path_colours()
    found = {scene.nodes[e.a].name + scene.nodes[e.b].name: e.highlights for e in scene.edges}
    assert found == {"zx": [biasing], "my": [causal], "zy": [biasing], "xm": [causal], "wy": [], "wx": []}
    notes = {n.name: (n.note, n.observed) for n in scene.nodes if n.note}
    assert notes == {"x": ("treatment", False), "y": ("outcome", False), "w": ("adjusted for", True)}
    legend = ax.get_legend()
    told = {t.get_text(): h.get_color() for t, h in zip(legend.get_texts(), legend.get_lines(), strict=True)}
    assert told == {"causal: 1 path": causal, "open, not causal: 1 path": biasing}
