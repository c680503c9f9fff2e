"""The local polytope: integral on trees and attractive models, halves on a frustrated cycle, always a bound."""

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from markovia.engines import LinearProgram
from model_strategies import cases, log_weights, random_findings
from random_trees import random_tree


@sampled(case=cases(max_entries=300), seed=st.integers(0, 10**6), integer=st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_value_bounds_the_optimum_and_the_integer_program_finds_it(case, seed, integer):
    given = random_findings(case, np.random.default_rng(seed))
    best = float(log_weights(case, given).max())
    engine = LinearProgram(integer=integer)
    if best == -np.inf:
        try:
            assert case.model.map(given=given, engine=engine).log_weight == -np.inf
            assert not integer
        except mk.errors.ImpossibleEvidence:
            return
        return
    found = case.model.map(given=given, engine=engine)
    assert found.log_weight <= best + 1e-8
    assert found.bound >= best - 1e-6
    if integer:
        assert found.log_weight == pytest.approx(best, abs=1e-6)
    if found.info.exact:
        assert found.log_weight == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("seed", range(15))
def test_trees_are_integral(seed):
    model = random_tree(seed, wide=True)
    try:
        best = model.map(engine="enumeration").log_weight
    except mk.errors.ImpossibleEvidence:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.map(engine="linear-program")
        return
    found = model.map(engine="linear-program")
    assert found.info.exact
    assert found.log_weight == pytest.approx(best, abs=1e-8)
    assert found.info.details.value == pytest.approx(best, abs=1e-7)


def test_attractive_grids_are_integral():
    model = mk.generators.ising_grid(6, 6, coupling=0.4, field="random", seed=0)
    found = model.map(engine="linear-program")
    assert found.info.details.integral == 1.0
    assert found.info.exact
    assert found.log_weight == pytest.approx(model.map(engine="graph-cut").log_weight)


def test_a_frustrated_cycle_has_the_solution_one_half():
    apart = np.exp([[0.0, 1.0], [1.0, 0.0]])
    model = mk.MarkovNetwork(dict.fromkeys("abc", 2), [mk.Factor([*p], apart) for p in ("ab", "bc", "ac")])
    found = model.map(engine="linear-program")
    details = found.info.details
    assert details.integral == 0.0
    for name in "abc":
        assert np.allclose(details.marginals[name], 0.5)
    assert details.value == pytest.approx(3.0)
    assert (found.log_weight, found.bound, found.info.exact) == (
        pytest.approx(2.0),
        pytest.approx(3.0),
        False,
    )
    whole = model.map(engine=LinearProgram(integer=True))
    assert whole.info.exact
    assert whole.log_weight == pytest.approx(2.0)


def test_message_passing_bounds_are_never_below_the_program():
    for seed in range(8):
        model = mk.generators.ising_grid(4, 4, coupling="random", field="random", seed=seed)
        program = model.map(engine="linear-program").info.details.value
        swept = model.map(engine=mk.engines.TRWS(tolerance=1e-9)).info.details.bounds[-1]
        assert swept >= program - 1e-7
        assert swept == pytest.approx(program, abs=0.1)


def test_sizes_and_settings_are_checked():
    model = mk.generators.ising_grid(4, 4)
    with pytest.raises(mk.errors.TooLarge, match="max_entries=10"):
        model.map(engine=LinearProgram(max_entries=10))
    with pytest.raises(mk.errors.InvalidArgument, match="integer="):
        LinearProgram(integer=1)
    assert mk.MarkovNetwork({"a": 1}, []).map(engine="linear-program").info.exact
    assert model.map(given=dict.fromkeys(model.variables, 1), engine="linear-program").info.exact
