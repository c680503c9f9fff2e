"""Bars, curves, cells and points show the numbers they stand for, beside the names these belong to, in any order."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from scipy.stats import binom, norm

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

import markovia as mk
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
from markovia.inference.densities.program.draw_stats import DrawStats
from markovia.inference.markov_chains.diagnostics import autocorrelation
from markovia.inference.result import Info
from markovia.learning.prediction.calibration_measures import calibration
from markovia.models.graphical.calibration import EngineCalibration
from markovia.plotting import comparison_plot, edge_confidence_plot
from markovia.plotting.groups.choosing_components import plot_component_choice
from markovia.structure.confidence.model_averaging import EdgeConfidence


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def bars_by_name(ax):
    """Return the horizontal bars of axes by the label at their left."""
    at = {
        round(float(y), 6): t.get_text() for y, t in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)
    }
    return {at[round(b.get_y() + b.get_height() / 2, 6)]: b for b in ax.patches}


# -- tables and posteriors ------------------------------------------------------------------------------------------------


def test_a_table_runs_down_its_parents_and_across_its_own_states():
    bn = mk.BayesianNetwork()
    bn.add("b", states=["lo", "mid", "hi"], p=[0.2, 0.5, 0.3])
    bn.add("a", states=["x", "y"], p=[0.6, 0.4])
    rows = np.array([[0.1, 0.9], [0.25, 0.75], [0.4, 0.6], [0.55, 0.45], [0.7, 0.3], [0.85, 0.15]])
    bn.add("c", states=["no", "yes"], parents=["b", "a"], p=rows)
    ax = bn["c"].plot()
    assert np.asarray(ax.images[0].get_array()).tolist() == rows.tolist()
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        "lo, x",
        "lo, y",
        "mid, x",
        "mid, y",
        "hi, x",
        "hi, y",
    ]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["no", "yes"]
    written = {t.get_position(): t.get_text() for t in ax.texts}
    assert written == {(j, i): f"{100 * rows[i, j]:.1f}%" for i in range(6) for j in range(2)}
    assert ax.images[0].get_clim() == (0.0, 0.9)


def test_bars_of_a_posterior_are_beside_their_states_with_errors_both_ways():
    bn = mk.BayesianNetwork()
    bn.add("g", states=["b", "c", "a"], p=[0.05, 0.7, 0.25])
    bn.add("h", states=["u", "v"], parents=["g"], p=[[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    exact = bn.query("g", given={"h": "u"})
    assert {n: b.get_width() for n, b in bars_by_name(exact.plot()).items()} == pytest.approx(exact.to_dict())
    rough = bn.query("g", given={"h": "u"}, engine=mk.engines.LikelihoodWeighting(draws=60, seed=1))
    ax = rough.plot()
    assert {n: b.get_width() for n, b in bars_by_name(ax).items()} == pytest.approx(rough.to_dict())
    spans = {next(iter(s[:, 1])): s[:, 0] for s in ax.collections[0].get_segments()}
    error = rough.info.error
    assert 0 < error < 0.5
    for k, state in enumerate(["b", "c", "a"]):
        ends = np.clip([rough[state] - error, rough[state] + error], 0, 1)
        assert spans[float(k)] == pytest.approx(ends)


def test_bounds_are_bars_from_the_lower_to_the_upper_end():
    found = mk.BayesianNetwork()
    found.add("drug", states=["no", "yes"], p=[0.35, 0.65])
    found.add("cured", states=["ill", "well"], parents=["drug"], p=[[0.7, 0.3], [0.4, 0.6]])
    bounds = found.counterfactual("cured", given={"drug": "no", "cured": "ill"}, do={"drug": "yes"})
    bars = bars_by_name(bounds.plot())
    for k, state in enumerate(["ill", "well"]):
        assert bars[state].get_x() == pytest.approx(bounds.lower[k])
        assert bars[state].get_x() + bars[state].get_width() == pytest.approx(bounds.upper[k])


def test_panels_of_marginals_are_of_the_variables_above_them():
    asia = mk.examples.asia()
    answers = asia.marginals(given={"xray": "yes"})
    axes = answers.plot(["lung", "bronc", "asia"])
    for name, ax in zip(["lung", "bronc", "asia"], axes.flat, strict=False):
        assert ax.get_title() == name
        assert {s: b.get_width() for s, b in bars_by_name(ax).items()} == pytest.approx(
            answers[name].to_dict()
        )


def test_densities_are_those_of_the_numbers_in_the_legend():
    m = mk.BayesianNetwork()
    m.add("valve", {"open": 0.7, "stuck": 0.3})
    flow = {"open": mk.LinearGaussian(5, {}, 1), "stuck": mk.LinearGaussian(1, {}, 0.5)}
    m.add("flow", flow, parents=["valve"])
    m.add("level", mk.LinearGaussian(2, {"flow": 1.5}, 3))
    ax = m.query(["level", "flow"]).plot()
    whole = {line.get_label(): line for line in ax.lines if line.get_linewidth() == 2.0}
    x = whole["flow"].get_xdata()
    parts = [0.7 * norm.pdf(x, 5, 1), 0.3 * norm.pdf(x, 1, np.sqrt(0.5))]
    assert whole["flow"].get_ydata() == pytest.approx(sum(parts))
    x2 = whole["level"].get_xdata()
    sd = [np.sqrt(2.25 + 3), np.sqrt(0.5 * 2.25 + 3)]
    assert whole["level"].get_ydata() == pytest.approx(
        0.7 * norm.pdf(x2, 9.5, sd[0]) + 0.3 * norm.pdf(x2, 3.5, sd[1])
    )
    dashed = [
        line.get_ydata()
        for line in ax.lines
        if line.get_linestyle() == "--" and to_rgb(line.get_color()) == to_rgb(whole["flow"].get_color())
    ]
    assert sorted(float(d.max()) for d in dashed) == pytest.approx(
        sorted(float(p.max()) for p in parts), rel=1e-3
    )


def test_values_that_are_certain_in_each_case_are_a_line_each():
    m = mk.BayesianNetwork()
    m.add("d", p=[0.2, 0.5, 0.3])
    cases = {0: mk.LinearGaussian(1, {}, 0), 1: mk.LinearGaussian(5, {}, 0), 2: mk.LinearGaussian(9, {}, 4)}
    m.add("x", cases, parents=["d"])
    ax = m.query("x").plot()
    lines = {line.get_xdata()[0]: line.get_alpha() for line in ax.lines if len(line.get_xdata()) == 2}
    assert lines == pytest.approx({1.0: 0.2, 5.0: 0.5})
    curve = ax.lines[-1]
    assert curve.get_ydata() == pytest.approx(0.3 * norm.pdf(curve.get_xdata(), 9, 2))


# -- draws, chains, and how computations went -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn():
    """Return draws of a number and of a pair, with different means and spreads, some of them divergent."""
    rng = np.random.default_rng(4)
    one, pair = rng.normal(3, 0.5, (3, 150)), rng.normal([10, -2], [1, 4], (3, 150, 2))
    stats = DrawStats(log_density=-one, diverging=one > 4.0, energy=one**2)
    return DrawnPosterior(["b", "a"], {"b": one, "a": pair}, Info("nuts"), stats=stats)


def test_panels_of_draws_have_the_interval_and_mean_of_their_own_number(drawn):
    axes = drawn.plot(["a", "b"], kind="density")
    truth = {"a[0]": drawn.draws["a"][..., 0], "a[1]": drawn.draws["a"][..., 1], "b": drawn.draws["b"]}
    assert [ax.get_title() for ax in axes.flat][:3] == list(truth)
    for ax, values in zip(axes.flat, truth.values(), strict=False):
        span = ax.patches[0].get_extents().transformed(ax.transData.inverted())
        assert (span.x0, span.x1) == pytest.approx(tuple(np.quantile(values, [0.05, 0.95])))
        assert ax.lines[-1].get_xdata()[0] == pytest.approx(values.mean())


def test_a_forest_has_the_name_of_each_number_beside_it(drawn):
    ax = drawn.plot(["a", "b"], kind="forest")
    at = {t.get_text(): y for y, t in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)}
    medians = {"a[0]": np.median(drawn.draws["a"][..., 0]), "a[1]": np.median(drawn.draws["a"][..., 1]),
               "b": np.median(drawn.draws["b"])}  # fmt: skip
    assert at["a[0]"] > at["a[1]"] > at["b"]
    dots = {
        round(float(y), 6): float(x)
        for line in ax.lines
        if line.get_marker() == "o"
        for x, y in line.get_xydata()
    }
    assert {n: dots[round(float(y), 6)] for n, y in at.items()} == pytest.approx(medians)


def test_traces_pairs_and_lags_are_of_the_numbers_that_their_labels_name(drawn):
    axes = drawn.plot(["a", "b"], kind="trace")
    for (left, right), values in zip(
        axes, (*np.moveaxis(drawn.draws["a"], 2, 0), drawn.draws["b"]), strict=True
    ):
        assert [line.get_ydata() for line in right.lines[:3]] == [pytest.approx(row) for row in values]
        assert left.get_ylabel() in ("a[0]", "a[1]", "b")
    assert [left.get_ylabel() for left, _ in axes] == ["a[0]", "a[1]", "b"]
    pairs = drawn.plot(["b", "a"], kind="pair")
    assert (pairs[1, 0].get_ylabel(), pairs[1, 0].get_xlabel(), pairs[1, 1].get_xlabel()) == (
        "a[1]",
        "b",
        "a[0]",
    )
    corner = (
        pairs[1, 0].collections[0].get_offsets()
        if pairs[1, 0].collections
        else pairs[1, 0].lines[0].get_xydata()
    )
    assert np.asarray(corner) == pytest.approx(
        np.stack([drawn.draws["b"].ravel(), drawn.draws["a"][..., 1].ravel()], axis=1)
    )
    (ax,) = drawn.plot(["b"], kind="autocorrelation").flat
    for row, line in zip(drawn.draws["b"], ax.lines, strict=False):
        assert line.get_ydata() == pytest.approx(autocorrelation(row, 50))


def test_chains_are_drawn_apart_and_averaged_over_windows():
    found = mk.examples.sprinkler().query(
        "rain", engine=mk.engines.Gibbs(draws=5000, chains=3, burn_in=100, seed=2)
    )
    diagnostics = found.info.diagnostics
    for quantity in ("rain=yes", "log weight"):
        traces = diagnostics.trace(quantity)
        ax = diagnostics.plot_trace(quantity)
        warm = diagnostics.warm.shape[1] if quantity == "log weight" else 0
        for c, line in enumerate(ax.lines[:3]):
            values = np.concatenate([diagnostics.warm[c], traces[c]]) if warm else traces[c]
            window = -(-len(values) // 2000)
            k = 1234 // window
            assert line.get_ydata()[k] == pytest.approx(values[k * window : (k + 1) * window].mean())
            assert line.get_xdata()[k] == k * window - warm
            assert line.get_label() == f"chain {c + 1}"
    lags = diagnostics.plot_autocorrelation("rain=yes", max_lag=7)
    for c, line in enumerate(lags.lines[1:]):
        assert line.get_ydata() == pytest.approx(autocorrelation(diagnostics.trace("rain=yes")[c], 7))


def test_courses_of_several_computations_are_all_drawn_under_their_names():
    long = "a computation with settings of a long name, "
    ax = mk.plotting.plot_convergence(
        {long + "one": [5.0, 2.0, 1.0], long + "two": [7.0, 3.0], "three": [4.0]}
    )
    assert [line.get_ydata().tolist() for line in ax.lines] == [[5.0, 2.0, 1.0], [7.0, 3.0], [4.0]]
    assert [line.get_xdata().tolist() for line in ax.lines] == [[1, 2, 3], [1, 2], [1]]
    legend = ax.get_legend()
    assert legend.get_texts()[-1].get_text() == "three"
    assert to_rgb(legend.get_lines()[-1].get_color()) == to_rgb(ax.lines[2].get_color())


def test_ranks_are_counted_in_bins_under_their_names_with_the_band_of_even_bars():
    rng = np.random.default_rng(0)
    ranks = {"tau": rng.integers(0, 100, 240), "mu": np.minimum(rng.integers(0, 140, 240), 99)}
    axes = EngineCalibration(ranks, 99, "nuts").plot(bins=10)
    for ax, name in zip(axes.flat, ("tau", "mu"), strict=False):
        assert ax.get_title() == name
        heights = [b.get_height() for b in ax.patches if b.get_width() == pytest.approx(10.0)]
        assert heights == np.histogram(ranks[name], np.arange(0, 101, 10))[0].tolist()
        band = next(b for b in ax.patches if b.get_width() != pytest.approx(10.0))
        assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx(
            (binom.ppf(0.005, 240, 0.1), binom.ppf(0.995, 240, 0.1))
        )
        assert ax.lines[0].get_ydata()[0] == 24


def test_reliability_is_drawn_for_the_classes_in_the_legend_also_where_long_names_begin_alike():
    rng = np.random.default_rng(3)
    p = rng.dirichlet([1.0, 2.0, 1.5], 400)
    labels = ["the same long beginning: cat", "the same long beginning: dog", "owl"]
    y = np.array(labels)[[rng.choice(3, p=row) for row in p]]
    found = calibration(y, p, classes=labels)
    ax = found.plot(classes=[labels[2], labels[1], labels[0]])
    lines = ax.lines[1:]
    assert len(lines) == 3
    for line, label in zip(lines, reversed(labels), strict=True):
        own = found.by_class[label]
        used = own.count > 0
        assert line.get_xdata() == pytest.approx(own.predicted[used])
        assert line.get_ydata() == pytest.approx(own.observed[used])
    one = found.plot(classes="owl")
    strip = one.child_axes[0]
    assert [b.get_height() for b in strip.patches] == found.by_class["owl"].count.tolist()
    assert one.get_title().startswith("owl: ")
    assert f"{found.by_class['owl'].expected_error:.4f}" in one.get_title()


def test_errors_are_stacked_bias_first_with_their_total():
    parts = {"deep": (0.2, 0.5, 0.1), "flat": (0.9, 0.05, 0.3), "mid": (0.4, 0.2, 0.2)}
    from markovia.learning.prediction.bias_variance_decomposition import BiasVariance

    fields = BiasVariance.__dataclass_fields__
    made = {}
    for name, (bias, variance, noise) in parts.items():
        known = {"bias": bias, "variance": variance, "noise": noise, "loss": "squared"}
        total = {"total": bias + variance + noise} if "total" in fields else {}
        made[name] = BiasVariance(**known, **total, **{f: None for f in fields if f not in (*known, *total)})
    ax = mk.plotting.plot_bias_variance(made)
    names = [t.get_text() for t in ax.get_xticklabels()]
    for container, part, word in zip(ax.containers, range(3), ("bias²", "variance", "noise"), strict=False):
        assert container.get_label() == word
        for name, bar in zip(names, container.patches, strict=True):
            assert bar.get_height() == pytest.approx(parts[name][part])
            assert bar.get_y() == pytest.approx(sum(parts[name][:part]))
    assert ax.lines[0].get_ydata() == pytest.approx([made[n].total for n in names])


def test_the_ring_is_around_the_best_number_when_numbers_come_in_no_order():
    choice = SimpleNamespace(
        numbers=[4, 1, 7, 2], scores=[40.0, 90.0, 55.0, 35.0], n_components=2, parameter="n_components", criterion="bic"
    )  # fmt: skip
    ax = plot_component_choice(choice)
    assert ax.lines[0].get_xydata().tolist() == [[1, 90.0], [2, 35.0], [4, 40.0], [7, 55.0]]
    assert ax.lines[1].get_xydata().tolist() == [[2, 35.0]]


# -- graphs ---------------------------------------------------------------------------------


@pytest.fixture
def scenes(monkeypatch):
    """Return the scenes that are drawn, in place of drawing them."""
    drawn = []
    for module in (edge_confidence_plot, comparison_plot):
        name = "draw" if module is edge_confidence_plot else "_draw_within"
        monkeypatch.setattr(module, name, lambda scene, *rest: drawn.append(scene))
    return drawn


def test_sure_edges_are_wide_and_those_below_the_threshold_dashed(scenes):
    names = ("d", "a", "c", "b")
    arrows, lines = np.zeros((4, 4)), np.zeros((4, 4))
    arrows[0, 2], arrows[2, 0] = 0.15, 0.8  # c -> d
    arrows[3, 1] = 0.55  # b -> a
    lines[0, 3] = lines[3, 0] = 0.9  # d --- b
    arrows[1, 2], lines[1, 2], lines[2, 1] = 0.12, 0.1, 0.1
    found = EdgeConfidence(names, arrows, lines, "pc", n_graphs=100)
    found.plot(least=0.2)
    (scene,) = scenes
    told = {
        (scene.nodes[e.a].name, scene.nodes[e.b].name): (round(e.share, 6), e.mark_b.value, e.dashed)
        for e in scene.edges
    }
    sure = found.threshold
    line = ("d", "b") if ("d", "b") in told else ("b", "d")
    assert told[line] == (0.9, "-", not sure < 0.9)
    assert told["c", "d"] == (0.95, ">", not sure < 0.95)
    assert told["b", "a"] == (0.55, ">", not sure < 0.55)
    assert told["a", "c"][1] == ">"
    assert len(told) == 4


def test_each_difference_between_graphs_is_coloured_at_its_own_edge(scenes):
    learned = mk.graphs.DAG([("c", "a"), ("b", "d"), ("d", "a")], nodes="abcd")
    truth = mk.graphs.DAG([("a", "c"), ("b", "d"), ("b", "c")], nodes="abcd")
    comparison_plot.plot_comparison(mk.graphs.compare_graphs(learned, truth))
    extra, missing, turned = comparison_plot.difference_colours()
    sides = []
    for scene in scenes:
        told = {}
        for e in scene.edges:
            a, b = scene.nodes[e.a].name, scene.nodes[e.b].name
            told[a + b if e.mark_b.value == ">" else b + a] = e.highlights
        sides.append(told)
    assert sides == [{"ca": [turned], "bd": [], "da": [extra]}, {"ac": [turned], "bd": [], "bc": [missing]}]
