"""Causal, open and blocked paths against all simple paths and m-separation; and how they are drawn."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex

from adjustment_checks import random_problem, simple_paths
from markovia.causal import effect_paths
from markovia.errors import InvalidGraph
from markovia.graphs import Mark, MixedGraph, latent_projection
from markovia.plotting import plot_effect
from markovia.plotting.effects.paths import path_colours

CAUSAL, BIASING = path_colours()

mpl.use("agg")
ARROWS = {(Mark.TAIL, Mark.ARROW): "->", (Mark.ARROW, Mark.TAIL): "<-", (Mark.ARROW, Mark.ARROW): "<->"}


@pytest.mark.parametrize("seed", range(30))
def test_the_paths_are_all_simple_paths_and_open_ones_are_those_that_connect(seed):
    rng = np.random.default_rng(seed)
    dag, hidden, x, y = random_problem(rng, 7, latents=2, edges=9)
    graph = latent_projection(dag, hidden)
    given = [n for n in graph.nodes if n not in (x, y) and rng.random() < 0.4]
    found = effect_paths(graph, x, y, given)
    every = {(tuple(nodes), tuple(ARROWS[m] for m in marks)) for nodes, marks in simple_paths(graph, x, {y})}
    listed = [(t.nodes, t.arrows) for t in (*found.causal, *found.open, *found.blocked)]
    assert sorted(listed) == sorted(every)
    assert all(set(t.arrows) == {"->"} for t in found.causal)
    assert all(set(t.arrows) != {"->"} for t in (*found.open, *found.blocked))
    runs = any(t.is_open for t in found.causal) or bool(found.open)
    assert runs != graph.m_separated(x, y, given)


def test_paths_through_another_treatment_are_left_out():
    found = effect_paths("a -> b -> y; a -> y", ["a", "b"], "y")
    assert [str(t) for t in found.causal] == ["a -> y", "b -> y"]
    assert not found.open


def test_a_limit_is_told():
    ladder = "; ".join(f"x -> a{i} -> y" for i in range(12))
    found = effect_paths(ladder, "x", "y", limit=5)
    assert (len(found.causal), found.complete) == (5, False)
    assert str(found).endswith("and more; raise limit= to see them")
    assert str(effect_paths("x -> z; y", "x", "y")) == "no path"


def test_a_class_of_graphs_has_no_paths_of_its_own():
    with pytest.raises(InvalidGraph, match="orient them"):
        effect_paths(MixedGraph(["x --- y"]), "x", "y")


def colours(ax):
    return [to_hex(p.get_edgecolor()).upper() for p in ax.patches if p.get_gid() in ("edge", "edge-underlay")]


def test_the_picture_colours_causal_and_biasing_edges_and_notes_the_roles():
    ax = plot_effect("x -> m -> y; x <- z -> y; x <-> y", "x", "y", given="z")
    assert sorted(c for c in colours(ax) if c in (CAUSAL, BIASING)) == [CAUSAL, CAUSAL, BIASING]
    assert {"treatment", "outcome", "adjusted for"} <= {t.get_text() for t in ax.texts}
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "causal: 1 path",
        "open, not causal: 1 path",
    ]
    blocked = plot_effect("x -> m -> y; x <-> y", "x", "y", given="m", legend=True)
    assert CAUSAL not in colours(blocked)
    assert blocked.get_legend().get_texts()[0].get_text() == "causal: 0 paths, 1 blocked"
    assert plot_effect("x -> y", "x", "y", legend=False).get_legend() is None


def test_an_edge_on_both_kinds_of_path_shows_both_colours():
    ax = plot_effect("x -> m -> y; x <-> m", "x", "y")  # m -> y carries the effect and the bias
    assert colours(ax).count(CAUSAL) == 2
    assert colours(ax).count(BIASING) == 2
