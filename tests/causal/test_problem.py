"""How causal questions are asked: one way to write graphs, names alone or in lists, positions everywhere."""

import inspect

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, InvalidGraph, MarkoviaError

c = mk.causal
DOOR, HIDDEN = "z -> x -> y; z -> y", "z -> x -> m -> y; x <-> y"
ROWS = dict(zip("zxmy", np.random.default_rng(0).normal(size=(4, 200)), strict=True))
COINS = {n: (v > 0).astype(int) for n, v in ROWS.items()}

CALLS = {
    "Problem.of": (c.Problem.of, (HIDDEN, "x", "y")),
    "adjustment_sets": (c.adjustment_sets, (DOOR, "x", "y")),
    "bounds": (c.bounds, ("z -> x -> y; x <-> y", "x", "y", COINS)),
    "counterexample": (c.counterexample, ("x -> y; x <-> y", "x", "y")),
    "districts": (c.districts, (HIDDEN,)),
    "do_graph": (c.do_graph, (HIDDEN, "x")),
    "each_adjustment_set": (lambda *a: list(c.each_adjustment_set(*a)), (DOOR, "x", "y")),
    "effect_on_treated": (lambda *a: c.effect_on_treated(*a, had=1, instead=0), (DOOR, "x", "y")),
    "confounding_equivalent": (c.confounding_equivalent, (DOOR, "x", "y", "z", ())),
    "effect_paths": (c.effect_paths, (DOOR, "x", "y")),
    "front_door_sets": (c.front_door_sets, (HIDDEN, "x", "y")),
    "graph_text": (c.graph_text, (HIDDEN,)),
    "ida": (c.ida, (DOOR, "x", "y", ROWS)),
    "identify": (c.identify, (HIDDEN, "x", "y")),
    "identify_counterfactual": (c.identify_counterfactual, (DOOR, c.Event("y", do={"x": 1}))),
    "identify_plan": (c.identify_plan, (DOOR, {"x": "z"}, "y")),
    "instruments": (c.instruments, (HIDDEN, "x", "y")),
    "is_adjustment_set": (c.is_adjustment_set, (DOOR, "x", "y", "z")),
    "is_ancestral_set": (c.is_ancestral_set, (HIDDEN, ["z", "x"])),
    "is_backdoor_set": (c.is_backdoor_set, (DOOR, "x", "y", "z")),
    "is_front_door_set": (c.is_front_door_set, (HIDDEN, "x", "y", "m")),
    "is_instrument": (c.is_instrument, (HIDDEN, "z", "x", "y")),
    "markov_blanket": (c.markov_blanket, (HIDDEN, "x")),
    "natural_effects": (
        lambda *a: c.natural_effects(*a, treated=1, control=0),
        ("x -> m -> y; x -> y", "x", "y", "m"),
    ),
    "path_specific": (
        lambda *a: c.path_specific(*a, treated=1, control=0),
        ("x -> m -> y; x -> y", "x", "y", [["x", "y"]]),
    ),
    "pillow": (c.pillow, (HIDDEN, ["x", "y"])),
    "read_graph": (c.read_graph, (HIDDEN,)),
    "recover": (c.recover, ("x -> y; x -> r", {"y": "r"}, "y")),
    "selection_diagram": (c.selection_diagram, (HIDDEN, "z")),
    "single_world_graph": (c.single_world_graph, (HIDDEN, "x")),
    "tian_pearl": (c.tian_pearl, (HIDDEN, "x")),
    "transport": (lambda *a: c.transport(*a, differs="z"), ("x -> y <- z; x <-> y", "x", "y")),
    "twin_network": (c.twin_network, (HIDDEN, "x")),
    "visible_edges": (c.visible_edges, (HIDDEN,)),
}  # fmt: skip


def _text(answer):
    return "\n".join(map(_text, answer)) if isinstance(answer, tuple) else repr(answer)


@pytest.mark.parametrize("name", CALLS)
def test_a_text_is_as_good_as_the_graph_it_stands_for(name):
    function, (text, *rest) = CALLS[name]
    read = c.parse_graph(text).graph
    assert _text(function(text, *rest)) == _text(function(read, *rest))


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_causal_graph_gets_a_sentence(name):
    function, (_, *rest) = CALLS[name]
    for nonsense in (3, mk.graphs.UndirectedGraph([("x", "y")])):
        with pytest.raises((InvalidArgument, InvalidGraph), match="a DAG"):
            function(nonsense, *rest)


def test_every_function_whose_first_argument_is_a_graph_is_tried():
    asked = {n for n in dir(c) if n[0].islower() and inspect.isfunction(getattr(c, n))}
    takes = {n for n in asked if next(iter(inspect.signature(getattr(c, n)).parameters), "") == "graph"}
    assert takes == set(CALLS) - {"Problem.of"}


def test_the_latent_variables_of_a_text_are_projected_away_by_all():
    text = "dag { u [latent] x -> y; u -> {x y} }"
    assert c.districts(text) == [["x", "y"]]
    assert repr(c.do_graph(text, "x")) == "MixedGraph(['x --> y'])"
    assert "u [latent]" in c.graph_text(text)  # written again, it keeps them


def test_a_model_is_as_good_as_its_graph():
    model = mk.examples.sprinkler()
    assert c.do_graph(model, "rain").edges == c.do_graph(model.graph, "rain").edges
    assert c.districts(model) == c.districts(model.graph)


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: c.tian_pearl(DOOR, x),
        lambda x: c.effect_on_treated(DOOR, x, ["y"], had=1, instead=0),
        lambda x: c.natural_effects("z -> y; x -> m -> y; x -> y", x, ["y"], "m", treated=1, control=0),
        lambda x: c.path_specific("x -> y; z -> x", x, ["y"], [["x", "y"]], treated=1, control=0),
        lambda x: c.instruments(HIDDEN, x, ["y"]),
    ],
)
def test_one_name_in_a_list_is_that_name_and_several_get_a_sentence(ask):
    ask(["x"])
    with pytest.raises(MarkoviaError, match="one treatment"):
        ask(["x", "z"])


def test_a_plan_has_one_outcome():
    assert c.identify_plan(DOOR, {"x": "z"}, ["y"]).outcome == "y"
    with pytest.raises(InvalidArgument, match="one outcome, not 'y' and 'z'"):
        c.identify_plan(DOOR, {"x": []}, ["y", "z"])
