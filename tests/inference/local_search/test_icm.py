from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from markovia.inference import Problem, iterated_conditional_modes
from model_strategies import brute_force, markov_networks


def problem_of(model, findings=None):
    return Problem({n: model.variable(n) for n in model.variables}, model.pieces(), findings or {})


def four_states_with_the_printed_trace():
    """Potentials on states 1..3, with edges, under which the updates 3, 1, 2 go as inventory 004 D2 prints them."""
    agree = np.where(np.eye(3), 1.5, 1.0)
    score = {"x1": [0.0, 0.0, 2.0], "x2": [0.0, 1.0, 0.0], "x3": [3.0, 0.0, 0.0], "x4": [1.0, 0.0, 0.0]}
    states = {n: [1, 2, 3] for n in score}
    factors = [mk.Factor([n], np.exp(s)) for n, s in score.items()]
    factors += [mk.Factor([a, b], agree) for a, b in pairwise(score)]
    return mk.MarkovNetwork(states, factors)


def test_the_printed_trace_is_reproduced():
    model = four_states_with_the_printed_trace()
    start = {"x1": 2, "x2": 2, "x3": 3, "x4": 1}
    result = model.conditional_modes(start, selection=["x3", "x1", "x2"])
    assert [(n, s) for n, s, _ in result.trace] == [("x3", 1), ("x1", 3), ("x2", 2)]
    assert result.states == {"x1": 3, "x2": 2, "x3": 1, "x4": 1}
    assert result.trace[2][2] == result.trace[1][2] > result.trace[0][2]
    assert model.conditional_modes(result.states).states == result.states


@pytest.mark.parametrize("selection", ["cyclic", "random", "greedy"])
@sampled(model=markov_networks(zeros=False), seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_the_weight_never_falls_and_no_single_change_helps_at_the_end(selection, model, seed):
    rng = np.random.default_rng(seed)
    start = {n: model.states(n)[rng.integers(len(model.states(n)))] for n in model.variables}
    result = iterated_conditional_modes(problem_of(model), start, selection=selection, seed=seed)
    weights = [w for _, _, w in result.trace]
    assert all(b >= a - 1e-12 for a, b in pairwise(weights))
    table = np.log(brute_force(model, {}))
    at = tuple(model.states(n).index(result.states[n]) for n in model.variables)
    assert table[at] == pytest.approx(result.log_weight, abs=1e-9)
    for axis in range(len(at)):
        assert np.all(
            np.take(table, range(table.shape[axis]), axis)[(*at[:axis], slice(None), *at[axis + 1 :])]
            <= table[at] + 1e-9
        )


def test_bad_starts_and_selections_are_refused():
    model = four_states_with_the_printed_trace()
    with pytest.raises(mk.errors.InvalidArgument, match="no state for 'x4'"):
        iterated_conditional_modes(problem_of(model), {"x1": 1, "x2": 1, "x3": 1})
    with pytest.raises(mk.errors.InvalidArgument, match="selection="):
        iterated_conditional_modes(problem_of(model), {}, selection="best")
    with pytest.raises(mk.errors.UnknownVariable, match="'x5' in the free variables"):
        model.conditional_modes(seed=0, selection=["x5"])
