"""Pictures: what is drawn, that nothing overlaps, and that it says what the model says."""

import subprocess
import sys
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyArrowPatch, Rectangle

import markovia as mk
from markovia.plotting import plot_graph, plot_model, plot_posterior, style, to_dot
from markovia.plotting.labels import wrap
from markovia.plotting.layered_layout import isotonic, layered_layout
from markovia.plotting.layout import arrange

few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def by_gid(ax, prefix):
    return [p for p in ax.patches if (p.get_gid() or "").startswith(prefix)]


def boxes(ax):
    """Return {gid: (x0, y0, x1, y1)} of the nodes, in data units."""
    found = {}
    for patch in by_gid(ax, "node:"):
        extent = patch.get_path().transformed(patch.get_patch_transform()).get_extents()
        found[patch.get_gid().removeprefix("node:")] = np.array(extent.extents)
    return found


def overlapping(ax):
    return [
        (a, b)
        for (a, p), (b, q) in combinations(boxes(ax).items(), 2)
        if min(p[2], q[2]) - max(p[0], q[0]) > 1e-6 and min(p[3], q[3]) - max(p[1], q[1]) > 1e-6
    ]


def texts_outside_boxes(ax):
    """Return the texts that are not inside some node's box, as rendered."""
    ax.figure.canvas.draw()
    to_pixels = ax.transData.transform
    rectangles = [np.concatenate([to_pixels(b[:2]), to_pixels(b[2:])]) for b in boxes(ax).values()]
    outside = []
    for text in ax.texts:
        x0, y0, x1, y1 = text.get_window_extent().extents
        if not any(
            b[0] - 1 <= x0 and b[1] - 1 <= y0 and x1 <= b[2] + 1 and y1 <= b[3] + 1 for b in rectangles
        ):
            outside.append(text.get_text())
    return outside


def curve(patch):
    """Return the points of an edge as it was given to matplotlib: its ends for a line, samples for curves."""
    path = patch._path_original
    vertices = np.asarray(path.vertices)
    if path.codes is None:
        return np.linspace(vertices[0], vertices[-1], 40)
    t = np.linspace(0, 1, 25)[:, None]
    pieces = [
        (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
        for a, b, c, d in (vertices[k : k + 4] for k in range(0, len(vertices) - 1, 3))
    ]
    return np.concatenate(pieces)


def on_border(point, box, tolerance=1e-6):
    inside = (box[:2] - tolerance <= point).all() and (point <= box[2:] + tolerance).all()
    return inside and np.abs(np.concatenate([point - box[:2], point - box[2:]])).min() <= tolerance


# -- models ---------------------------------------------------------------------------------------------------------


def test_a_bayesian_network_has_a_box_a_name_and_an_arrow_for_everything():
    asia = mk.examples.asia()
    ax = asia.plot()
    assert sorted(boxes(ax)) == sorted(asia.variables)
    assert sorted(t.get_text() for t in ax.texts) == sorted(asia.variables)
    arrows = by_gid(ax, "edge")
    assert len(arrows) == len(asia.edges)
    assert all(isinstance(a, FancyArrowPatch) and "|>" in str(a.get_arrowstyle().arrow) for a in arrows)
    assert overlapping(ax) == []
    assert texts_outside_boxes(ax) == []
    assert ax.get_title() == asia.name


def test_arrows_run_from_the_parents_border_to_the_childs_border():
    asia = mk.examples.asia()
    ax = asia.plot()
    at = boxes(ax)
    ends = [(curve(a)[0], curve(a)[-1]) for a in by_gid(ax, "edge")]
    for parent, child in asia.edges:
        assert any(on_border(s, at[parent]) and on_border(e, at[child]) for s, e in ends), (parent, child)
        assert at[parent][1] > at[child][3]


def test_evidence_shades_nodes_and_names_the_state():
    ax = mk.examples.asia().plot(given={"xray": "yes", "dysp": [0.3, 0.9]})
    fill = {p.get_gid(): to_hex(p.get_facecolor()) for p in by_gid(ax, "node:")}
    assert fill["node:xray"] == fill["node:dysp"] == style.OBSERVED_FILL.lower()
    assert fill["node:lung"] == style.NODE_FILL.lower()
    words = [t.get_text() for t in ax.texts]
    assert "= yes" in words
    assert "soft evidence" in words
    names_only = mk.examples.asia().plot(given=["xray"])
    assert to_hex(by_gid(names_only, "node:xray")[0].get_facecolor()) == style.OBSERVED_FILL.lower()


def test_monitors_show_the_posteriors_as_bars_and_percentages():
    asia = mk.examples.asia()
    evidence = {"xray": "yes"}
    ax = asia.plot(given=evidence, posteriors=True)
    posteriors = asia.marginals(given=evidence, targets=asia.variables)
    for name, posterior in posteriors.items():
        bars, tracks = by_gid(ax, f"bar:{name}"), by_gid(ax, f"track:{name}")
        shares = [b.get_width() / t.get_width() for b, t in zip(bars, tracks, strict=True)]
        np.testing.assert_allclose(shares, posterior.values, atol=1e-12)
    words = [t.get_text() for t in ax.texts]
    expected = [f"{100 * p:.1f}%" for posterior in posteriors.values() for p in posterior.values]
    assert sorted(w for w in words if w.endswith("%")) == sorted(expected)
    assert words.count("yes") == len(asia)
    assert overlapping(ax) == []
    assert texts_outside_boxes(ax) == []


def test_a_monitor_of_many_states_shows_the_most_probable_ones():
    bn = mk.BayesianNetwork()
    p = np.full(20, 0.01)
    p[13] += 1 - p.sum()
    bn.add("x", states=[f"state number {i}" for i in range(20)], p=p)
    ax = bn.plot(posteriors=True, max_states=5)
    words = [t.get_text() for t in ax.texts]
    assert len(by_gid(ax, "bar:x")) == 4
    assert "81.0%" in words
    assert "16 more" in words


def test_markov_networks_have_lines_without_arrowheads():
    mn = mk.examples.misconception()
    ax = mn.plot()
    edges = by_gid(ax, "edge")
    assert len(edges) == 4
    assert all(e.get_arrowstyle().arrow == "-" for e in edges)
    assert overlapping(ax) == []
    assert len(by_gid(mn.plot(posteriors=True), "bar:")) == 8


def test_factor_graphs_have_circles_and_squares():
    fg = mk.FactorGraph(
        {"a": 2, "b": 2, "c": 2},
        [mk.Factor(["a", "b", "c"], np.ones((2, 2, 2))), mk.Factor(["c"], [1, 3])],
    )
    ax = fg.plot(given={"a": 1})
    shapes = {p.get_gid(): p for p in by_gid(ax, "node:")}
    assert all(isinstance(shapes[f"node:{v}"], Ellipse) for v in "abc")
    assert shapes["node:a"].get_width() == shapes["node:a"].get_height()
    assert all(isinstance(shapes[f"node:{f}"], Rectangle) for f in ("f0", "f1"))
    assert len(by_gid(ax, "edge")) == 4
    assert overlapping(ax) == []


def test_long_and_odd_names_wrap_and_stay_inside_their_boxes():
    names = ["left_ventricular_end_diastolic_volume", "$a$ and $b$", "x" * 90, "Größe > 3", "a\nb"]
    bn = mk.BayesianNetwork([(names[0], n) for n in names[1:]])
    ax = bn.plot()
    assert texts_outside_boxes(ax) == []
    assert overlapping(ax) == []
    words = [t.get_text() for t in ax.texts]
    assert "$a$ and $b$" in words
    assert "ventricular_end_" in words
    assert max(map(len, words)) <= 16
    assert not any("\n" in w for w in words)


@pytest.mark.parametrize(
    "name", ["a b", "camelCaseNameOfSomething", "x" * 40, "one two three four five", "-", " "]
)
def test_wrapping_loses_no_letter(name):
    assert "".join(wrap(name)).replace(" ", "") == name.replace(" ", "")


def test_letters_keep_their_proportion_when_the_figure_is_resized():
    ax = mk.examples.asia().plot()
    before = ax.texts[0].get_fontsize()
    ax.figure.set_size_inches(ax.figure.get_size_inches() / 2)
    assert texts_outside_boxes(ax) == []
    # not exactly a half, since the title keeps its size
    assert 0.3 * before < ax.texts[0].get_fontsize() < 0.7 * before


def test_given_axes_are_used_and_pyplot_is_left_alone():
    figure = Figure(figsize=(8, 3))
    left, right, third = figure.subplots(1, 3)
    before = plt.get_fignums()
    asia = mk.examples.asia()
    assert asia.plot(ax=left) is left
    assert asia.query("lung").plot(ax=right) is right
    assert asia.query(["lung", "bronc"]).plot(ax=third) is third
    assert plt.get_fignums() == before
    assert texts_outside_boxes(left) == []


def test_trails_are_coloured_and_their_evidence_is_shaded():
    asia = mk.examples.asia()
    trail = asia.open_trails("asia", "smoke", given=["dysp"])[0]
    ax = asia.plot(highlight=trail)
    coloured = [e for e in by_gid(ax, "edge") if to_hex(e.get_edgecolor()) == style.HIGHLIGHTS[0].lower()]
    assert len(coloured) == len(trail.nodes) - 1
    assert to_hex(by_gid(ax, "node:dysp")[0].get_facecolor()) == style.OBSERVED_FILL.lower()
    two = asia.plot(highlight=[["asia", "tub", "either"], ["smoke", "lung", "either"]])
    colours = [to_hex(e.get_edgecolor()) for e in by_gid(two, "edge")]
    assert [colours.count(c.lower()) for c in style.HIGHLIGHTS[:2]] == [2, 2]
    assert len(colours) == len(asia.edges)


def test_bad_requests_say_what_is_wrong():
    asia = mk.examples.asia()
    with pytest.raises(mk.errors.UnknownArgument, match="given="):
        asia.plot(evidence={"xray": "yes"})
    with pytest.raises(mk.errors.UnknownVariable, match="did you mean 'xray'"):
        asia.plot(given={"xrai": "yes"})
    with pytest.raises(mk.errors.UnknownVariable, match="xrai"):
        asia.plot(given=["xrai"])
    with pytest.raises(mk.errors.InvalidArgument, match="did you mean 'layered'"):
        asia.plot(layout="layerd")
    with pytest.raises(mk.errors.InvalidArgument, match="no edge joins"):
        asia.plot(highlight=["asia", "smoke"])
    with pytest.raises(mk.errors.InvalidArgument, match="no position for 'tub'"):
        asia.plot(layout={"asia": (0, 0)})
    with pytest.raises(mk.errors.InvalidArgument, match="Figure"):
        asia.plot(ax=Figure())
    with pytest.raises(mk.errors.InvalidArgument, match="observed states"):
        asia.plot(given=["xray"], posteriors=True)
    with pytest.raises(mk.errors.InvalidArgument, match="spring"):
        mk.examples.misconception().plot(layout="layered")
    with pytest.raises(mk.errors.InvalidArgument, match="max_states"):
        asia.plot(posteriors=True, max_states=1)
    with pytest.raises(mk.errors.IncompleteModel, match="no table"):
        mk.BayesianNetwork("a->b").plot(posteriors=True)
    with pytest.raises(mk.errors.InvalidArgument, match=r"model\.plot"):
        plot_graph(asia)
    with pytest.raises(mk.errors.InvalidArgument, match="not list"):
        plot_graph([("a", "b")])
    with pytest.raises(mk.errors.TooLarge, match="subgraph"):
        plot_graph(mk.graphs.DAG(nodes=[f"x{i}" for i in range(2000)]))


def test_own_positions_keep_their_proportions():
    bn = mk.BayesianNetwork([("a", "b"), ("b", "c")])
    at = boxes(bn.plot(layout={"a": (0, 0), "b": (10, 0), "c": (10, 5)}))
    a, b, c = (0.5 * (at[n][:2] + at[n][2:]) for n in "abc")
    assert b[1] == pytest.approx(a[1])
    assert c[0] == pytest.approx(b[0])
    assert (b[0] - a[0]) == pytest.approx(2 * (c[1] - b[1]))


# -- graphs ---------------------------------------------------------------------------------------------------------


@few
@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_layered_drawings_point_down_and_edges_avoid_boxes(n, seed, uneven):
    rng = np.random.default_rng(seed)
    dag = mk.graphs.random_dag(n, max_parents=3, seed=seed % 1000)
    number = {name: i for i, name in enumerate(dag.nodes)}
    edges = [(number[a], number[b]) for a, b in dag.edges]
    sizes = np.column_stack(
        [rng.uniform(0.5, 1.6, n), rng.uniform(0.3, 1.2, n) if uneven else np.full(n, 0.35)]
    )
    layout = arrange(dag.nodes, sizes, edges, "layered")
    low, high = layout.centres - sizes / 2, layout.centres + sizes / 2
    apart = (low[:, None] >= high - 1e-9).any(axis=2)
    assert (apart | apart.T | np.eye(n, dtype=bool)).all()
    for (a, b), route in zip(edges, layout.routes, strict=True):
        assert low[a, 1] > high[b, 1]
        if route is None:
            points = np.linspace(layout.centres[a], layout.centres[b], 200)
        else:
            t = np.linspace(0, 1, 40)[:, None]
            points = np.concatenate(
                [
                    (1 - t) ** 3 * p + 3 * (1 - t) ** 2 * t * q + 3 * (1 - t) * t**2 * r + t**3 * s
                    for p, q, r, s in (route[k : k + 4] for k in range(0, len(route) - 1, 3))
                ]
            )
        hit = ((points[:, None] > low + 0.02) & (points[:, None] < high - 0.02)).all(axis=2).any(axis=0)
        assert set(np.flatnonzero(hit)) <= {a, b}


def test_a_tree_is_drawn_without_crossings():
    tree = mk.graphs.DAG([(f"x{(i - 1) // 2}", f"x{i}") for i in range(1, 15)])
    number = {name: i for i, name in enumerate(tree.nodes)}
    edges = [(number[a], number[b]) for a, b in tree.edges]
    order = np.random.default_rng(3).permutation(len(edges))
    edges = [edges[k] for k in order]
    centres, routes = layered_layout(np.tile([0.6, 0.35], (15, 1)), edges)
    assert routes == [None] * 14

    def side(p, q, r):
        return np.sign((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))

    for (a, b), (c, d) in combinations(edges, 2):
        if len({a, b, c, d}) == 4:
            p, q, r, s = (centres[i] for i in (a, b, c, d))
            assert not (side(p, q, r) * side(p, q, s) < 0 and side(r, s, p) * side(r, s, q) < 0)


@few
@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_spring_drawings_do_not_overlap_and_do_not_depend_on_luck(n, seed):
    graph = mk.graphs.random_dag(n, max_parents=2, seed=seed % 1000).skeleton()
    number = {name: i for i, name in enumerate(graph.nodes)}
    edges = [(number[a], number[b]) for a, b in graph.edges]
    sizes = np.random.default_rng(seed).uniform([0.5, 0.3], [1.6, 1.2], (n, 2))
    layout = arrange(graph.nodes, sizes, edges, "spring")
    low, high = layout.centres - sizes / 2, layout.centres + sizes / 2
    for i, j in combinations(range(n), 2):
        assert (low[i] >= high[j] - 1e-9).any() or (low[j] >= high[i] - 1e-9).any()
    assert (arrange(graph.nodes, sizes, edges, "spring").centres == layout.centres).all()


def test_marks_of_mixed_graphs_are_drawn():
    graph = mk.graphs.MixedGraph(["a --> b", "b <-> c", "c o-o d", "a o-> d", "b <-> a"])
    ax = plot_graph(graph)
    edges = by_gid(ax, "edge")
    assert len(edges) == graph.n_edges == 5
    assert len(by_gid(ax, "mark")) == 3
    heads = sum(str(e.get_arrowstyle().arrow).count("|") for e in edges)
    assert heads == 1 + 2 + 0 + 1 + 2
    assert sum(e.get_linestyle() not in ("-", "solid") for e in edges) == 2
    assert overlapping(ax) == []
    undirected = plot_graph(mk.graphs.MixedGraph(["a o-o b", "b o-o c"]))
    assert len(by_gid(undirected, "mark")) == 4


def test_junction_trees_have_ellipses_and_separators():
    tree = mk.graphs.junction_tree(mk.examples.asia().graph.moral_graph())
    ax = plot_graph(tree)
    shapes = by_gid(ax, "node:")
    assert sum(isinstance(p, Ellipse) for p in shapes) == len(tree.cliques)
    assert sum(isinstance(p, Rectangle) for p in shapes) == len(tree.separators)
    assert len(by_gid(ax, "edge")) == 2 * len(tree.edges)
    assert texts_outside_boxes(ax) == []
    apart = mk.graphs.junction_tree(mk.graphs.UndirectedGraph(nodes=["a", "b"]))
    assert "∅" in [t.get_text() for t in plot_graph(apart).texts]


@pytest.mark.parametrize("n", [1, 2, 200])
def test_one_node_and_two_hundred_nodes_are_legible(n):
    dag = mk.graphs.random_dag(n, max_parents=2, seed=4)
    ax = plot_graph(dag)
    assert len(boxes(ax)) == n
    assert overlapping(ax) == []
    assert min(t.get_fontsize() for t in ax.texts) >= 5.5
    assert max(ax.figure.get_size_inches()) < 40


def test_an_empty_model_is_an_empty_picture():
    ax = plot_model(mk.BayesianNetwork(), posteriors=True)
    assert list(ax.patches) == []
    assert list(ax.texts) == []


# -- posteriors -----------------------------------------------------------------------------------------------------


def test_one_variable_is_bars_with_percentages():
    posterior = mk.examples.asia().query("lung", given={"xray": "yes"})
    ax = posterior.plot()
    widths = [b.get_width() for b in ax.patches]
    np.testing.assert_allclose(widths, posterior.values)
    assert [t.get_text() for t in ax.texts] == [f"{100 * p:.1f}%" for p in posterior.values]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["yes", "no"]
    assert ax.get_title() == "P(lung | xray=yes)"
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_the_title_says_what_was_known_and_shortens_what_is_long():
    asia = mk.examples.asia()
    assert asia.query("lung").plot().get_title() == "P(lung)"
    both = asia.query(["lung", "bronc"], given={"smoke": mk.Not("no"), "dysp": [0.3, 0.9]})
    assert both.plot().get_title() == "P(lung, bronc | smoke≠no, soft dysp)"
    assert both.marginal("bronc").plot().get_title() == "P(bronc | smoke≠no, soft dysp)"
    believed = asia.marginals(given={"xray": mk.Jeffrey([0.5, 0.5]), "smoke": "yes"})["lung"]
    assert believed.plot().get_title() == "P(lung | soft xray, smoke=yes)"
    wide = mk.generators.random_bayesian_network(30, seed=1)
    many = wide.query(wide.variables[-1], given={n: wide.states(n)[0] for n in wide.variables[:-1]})
    title = many.plot().get_title()
    assert len(title) <= 50
    assert title.endswith(f"… {29 - title.count('=')} more)")
    both.plot()
    for figure in map(plt.figure, plt.get_fignums()):
        # nothing is cut off at the figure's border
        figure.canvas.draw()
        drawn = figure.axes[0].title.get_window_extent()
        assert drawn.x0 >= 0
        assert drawn.x1 <= figure.bbox.x1
    assert "given smoke≠no, soft dysp; " in both._repr_html_()
    assert "given xray=yes; " in asia.marginals(given={"xray": "yes"})._repr_html_()
    assert "given" not in asia.query("lung")._repr_html_()


def test_two_variables_are_a_heat_map_with_rows_for_the_first():
    bn = mk.BayesianNetwork("a{x|y}->b{l|m|h}", tables="random", seed=2)
    posterior = bn.query(["a", "b"])
    ax = plot_posterior(posterior, title="both")
    np.testing.assert_array_equal(ax.images[0].get_array(), posterior.values)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["l", "m", "h"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["x", "y"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("b", "a", "both")
    assert [t.get_text() for t in ax.texts] == [f"{100 * p:.1f}%" for p in posterior.values.ravel()]


def test_three_variables_are_refused_with_the_cure():
    with pytest.raises(mk.errors.InvalidArgument, match="marginal"):
        mk.examples.asia().query(["asia", "smoke", "lung"]).plot()


# -- Graphviz -------------------------------------------------------------------------------------------------------


def test_dot_text_has_every_node_and_edge_quoted():
    bn = mk.BayesianNetwork([('say "hi"', "b\\c"), ("b\\c", "d")])
    text = to_dot(bn, given="d")
    assert text.startswith("digraph {")
    assert '"say \\"hi\\"" -> "b\\\\c";' in text
    assert text.count(" -> ") == 2
    assert '"d" [fillcolor=' in text
    with pytest.raises(mk.errors.UnknownVariable, match="'e'"):
        to_dot(bn, given=["e"])


def test_dot_text_of_other_graphs():
    assert to_dot(mk.examples.misconception()).count(" -- ") == 4
    mixed = to_dot(mk.graphs.MixedGraph(["a o-> b", "b --- c"]))
    assert '"a" -> "b" [dir=both, arrowtail=odot, arrowhead=normal];' in mixed
    assert '"b" -> "c" [dir=both, arrowtail=none, arrowhead=none];' in mixed
    clash = to_dot(mk.graphs.BipartiteGraph({"a": ["a", "b"]}))
    assert '"factor a" [label="a"' in clash
    assert clash.count('"factor a" -- ') == 2
    tree = to_dot(mk.graphs.junction_tree(mk.graphs.UndirectedGraph([("a", "b"), ("b", "c")])))
    assert "c0 -- s0 -- c1;" in tree
    with pytest.raises(mk.errors.InvalidArgument, match="not str"):
        to_dot("asia")


@pytest.mark.slow
def test_missing_matplotlib_is_named_with_the_command_that_installs_it():
    program = (
        "import sys; sys.modules['matplotlib'] = None\nimport markovia as mk\n"
        "try:\n    mk.BayesianNetwork('a->b').plot()\nexcept mk.MarkoviaError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "plotting needs matplotlib; install it with: pip install matplotlib"


@pytest.mark.parametrize("seed", range(8))
def test_places_in_a_layer_are_the_isotonic_regression(seed):
    from scipy.optimize import isotonic_regression

    rng = np.random.default_rng(seed)
    values, weights = rng.normal(size=40).round(seed % 3), rng.uniform(0.5, 9.0, 40)
    assert np.allclose(isotonic(values, weights), isotonic_regression(values, weights=weights).x, atol=1e-12)
