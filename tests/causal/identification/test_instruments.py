"""Instruments against every ancestral conditioning set, and against the effects of random linear models."""

import numpy as np
import pytest

from adjustment_checks import linear_model, random_problem, subsets
from markovia.causal import Instrument, instruments, is_instrument
from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs import DAG, MixedGraph, d_separated


def left_over(covariance, a, b, given):
    if not given:
        return covariance[a, b]
    inner = np.linalg.solve(covariance[np.ix_(given, given)], covariance[given, b])
    return covariance[a, b] - covariance[a, given] @ inner


@pytest.mark.parametrize("seed", range(60))
def test_an_instrument_gives_the_total_effect_in_random_linear_models(seed):
    rng = np.random.default_rng(seed)
    dag, hidden, x, y = random_problem(rng, 7, latents=2, edges=int(rng.integers(7, 11)))
    _, covariance, total = linear_model(dag, rng)
    number = {name: i for i, name in enumerate(dag.nodes)}
    rest = [n for n in dag.nodes if n not in {*hidden, x, y}]
    for z in rest:
        for w in subsets(n for n in rest if n != z):
            given = [number[n] for n in w]
            with_treatment = left_over(covariance, number[z], number[x], given)
            if is_instrument(dag, z, x, y, w, latent=hidden):
                assert abs(with_treatment) > 1e-12
                ratio = left_over(covariance, number[z], number[y], given) / with_treatment
                assert ratio == pytest.approx(total[number[x], number[y]], abs=1e-8)
    for z, w in instruments(dag, x, y, latent=hidden):
        assert is_instrument(dag, z, x, y, w, latent=hidden)


@pytest.mark.parametrize("seed", range(80))
def test_every_ancestral_instrument_is_found(seed):
    rng = np.random.default_rng(seed)
    dag, hidden, x, y = random_problem(rng, 7, latents=2, edges=int(rng.integers(7, 12)))
    rest = [n for n in dag.nodes if n not in {*hidden, x, y}]
    on_paths = dag.descendants(x) & dag.ancestors(y, include_self=True)
    cut = DAG([e for e in dag.edges if not (e[0] == x and e[1] in on_paths)], nodes=dag.nodes)
    found = {i.name for i in instruments(dag, x, y, latent=hidden)}
    for z in rest:
        above = cut.ancestors([z, y]) - {z, *hidden}
        ancestral = any(
            is_instrument(dag, z, x, y, w, latent=hidden) for w in subsets(n for n in rest if n in above)
        )
        assert (z in found) == ancestral
    if not found:  # then no variable is an instrument, whatever it is given
        assert not any(
            is_instrument(dag, z, x, y, w, latent=hidden)
            for z in rest
            for w in subsets(n for n in rest if n != z)
        )
    without = {i.name for i in instruments(dag, x, y, latent=hidden, conditional=False)}
    assert without == {z for z in rest if is_instrument(dag, z, x, y, latent=hidden)}
    assert without <= found
    for z in without:
        assert d_separated(cut, z, y)


def test_those_without_conditions_come_first():
    graph = "a <- w -> y; a -> x; z -> x -> y; x <-> y"
    assert instruments(graph, "x", "y") == [Instrument("z", ()), Instrument("a", ("w",))]


def test_conditions_are_chosen_far_from_the_instrument():
    # given a nothing of z reaches x any more; given c it does
    graph = "z <- a <- c -> y; a -> x -> y; x <-> y"
    assert Instrument("z", ("c",)) in instruments(graph, "x", "y")
    assert not is_instrument(graph, "z", "x", "y", given=["a"])


def test_what_lies_below_the_treatment_is_no_instrument():
    assert not is_instrument("z -> x -> y; x <-> y; x -> d", "d", "x", "y")
    assert not is_instrument("z -> x -> y -> e; x <-> y", "z", "x", "y", given="e")


def test_classes_of_graphs_and_several_treatments_are_refused():
    with pytest.raises(InvalidGraph, match="stands for many"):
        instruments(MixedGraph(["z --- x", "x --> y", "w --> y"]), "x", "y")
    with pytest.raises(InvalidArgument, match="one treatment on one outcome"):
        instruments("z -> x -> y; w -> y", ["x", "w"], "y")
    with pytest.raises(InvalidArgument, match="both the instrument and given"):
        is_instrument("z -> x -> y", "z", "x", "y", given="z")
