"""Two graphs side by side: the same places, the right colours, nothing on top of each other."""

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch

import markovia as mk
from markovia.graphs import DAG, MixedGraph, UndirectedGraph, cpdag
from markovia.graphs.comparison.comparison import compare_graphs
from markovia.plotting import style
from markovia.plotting.comparison_plot import difference_colours, plot_comparison

EXTRA, MISSING, REORIENTED = difference_colours()

TRUTH = mk.examples.asia().graph
LEARNED = DAG(
    [e for e in TRUTH.edges if e not in (("asia", "tub"), ("smoke", "lung"))]
    + [("lung", "smoke"), ("smoke", "xray")],
    nodes=TRUTH.nodes,
)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def edges(ax):
    return [to_hex(p.get_edgecolor()).upper() for p in ax.patches if isinstance(p, FancyArrowPatch)]


def boxes(ax):
    found = {}
    for patch in ax.patches:
        if (patch.get_gid() or "").startswith("node:"):
            extent = patch.get_path().transformed(patch.get_patch_transform()).get_extents()
            found[patch.get_gid().removeprefix("node:")] = np.array(extent.extents)
    return found


def test_every_difference_has_its_colour_on_its_side():
    left, right = plot_comparison(compare_graphs(LEARNED, TRUTH))
    assert sorted(edges(left)) == sorted([EXTRA, REORIENTED] + 6 * [style.EDGE.upper()])
    assert sorted(edges(right)) == sorted([MISSING, REORIENTED] + 6 * [style.EDGE.upper()])
    assert len({EXTRA, MISSING, REORIENTED, style.EDGE}) == 4


@pytest.mark.parametrize("level", ["dag", "cpdag"])
def test_both_sides_show_every_node_at_the_same_place_and_none_overlap(level):
    learned = LEARNED if level == "dag" else cpdag(LEARNED)
    left, right = plot_comparison(compare_graphs(learned, TRUTH))
    mine, true = boxes(left), boxes(right)
    assert mine.keys() == true.keys() == set(TRUTH.nodes)
    assert all(np.allclose(mine[n], true[n]) for n in mine)
    assert left.get_xlim() == right.get_xlim()
    assert left.get_ylim() == right.get_ylim()
    for (_, p), (_, q) in combinations(mine.items(), 2):
        assert min(p[2], q[2]) <= max(p[0], q[0]) + 1e-6 or min(p[3], q[3]) <= max(p[1], q[1]) + 1e-6
    for box in mine.values():
        assert left.get_xlim()[0] <= box[0]
        assert box[2] <= left.get_xlim()[1]


@pytest.mark.parametrize("n", [1, 3, 8, 30])
def test_the_legend_and_both_sides_fit_into_the_figure(n):
    rng = np.random.default_rng(n)
    names = [f"variable {i}" for i in range(n)]
    first, second = (
        DAG([e for e in combinations(names, 2) if rng.random() < 2 / n], nodes=names) for _ in range(2)
    )
    left, right = compare_graphs(first, second).plot()
    figure = left.get_figure()
    figure.canvas.draw()
    page = figure.bbox
    legend = figure.legends[0].get_window_extent()
    assert page.x0 <= legend.x0
    assert legend.x1 <= page.x1
    assert legend.y0 >= page.y0 - 1
    for ax in (left, right):
        own = ax.get_window_extent()
        assert own.y0 >= legend.y1 - 1
        title = ax.title.get_window_extent()
        assert title.y1 <= page.y1
    mine, other = left.get_window_extent(), right.get_window_extent()
    assert mine.x1 <= other.x0 or other.y1 <= mine.y0


def test_long_titles_are_cut_and_do_not_run_into_each_other():
    found = compare_graphs(DAG([("a", "b")]), DAG([("b", "a")]))
    left, right = found.plot(titles=["a learned graph of which there is much to be told " * 3, "x" * 45])
    left.get_figure().canvas.draw()
    assert left.title.get_window_extent().x1 < right.title.get_window_extent().x0
    assert left.get_title().endswith("…")


def test_the_legend_counts():
    left, _ = plot_comparison(compare_graphs(LEARNED, TRUTH))
    words = [t.get_text() for t in left.get_figure().legends[0].get_texts()]
    assert words == ["in both (6)", "extra, only learned (1)", "missing, only true (1)", "reversed (1)"]
    left, _ = plot_comparison(compare_graphs(LEARNED, TRUTH), legend=False)
    assert not left.get_figure().legends


def test_ancestral_and_undirected_graphs_and_cycles_are_drawn():
    pags = compare_graphs(
        MixedGraph(["a o-> b", "b <-> c", "c --> a"]),
        MixedGraph(["a <-> b", "c o-o b"], nodes=["a", "b", "c"]),
    )
    left, right = plot_comparison(pags)
    assert len(edges(left)) == 3
    assert sum(p.get_gid() == "mark" for p in right.patches) == 2
    turning = MixedGraph(["a --> b", "b --> c", "c --> a"])
    left, _ = plot_comparison(compare_graphs(turning, turning))
    assert edges(left) == 3 * [style.EDGE.upper()]
    plain = compare_graphs(
        UndirectedGraph([("a", "b"), ("b", "c")]), UndirectedGraph([("a", "b"), ("a", "c")])
    )
    left, right = plain.plot()
    assert edges(left).count(EXTRA) == 1
    assert edges(right).count(MISSING) == 1
    assert "reversed" not in [t.get_text() for t in left.get_figure().legends[0].get_texts()][-1]
    with pytest.raises(mk.errors.InvalidArgument, match="needs a direction"):
        plain.plot(layout="layered")


def test_own_axes_titles_and_positions_are_used():
    _, axes = plt.subplots(1, 2)
    found = compare_graphs(DAG([("a", "b")]), DAG([("b", "a")]))
    left, right = plot_comparison(found, axes=axes, titles=("one", "two"), layout={"a": (0, 0), "b": (2, 1)})
    assert (left, right) == tuple(axes)
    assert (left.get_title(), right.get_title()) == ("one", "two")
    assert right.get_legend() is not None
    with pytest.raises(mk.errors.InvalidArgument, match="two axes"):
        plot_comparison(found, axes=[axes[0]])
    with pytest.raises(mk.errors.InvalidArgument, match="two texts"):
        plot_comparison(found, titles=["one"])
    with pytest.raises(mk.errors.InvalidArgument, match="Axes"):
        plot_comparison(found, axes=["x", "y"])
