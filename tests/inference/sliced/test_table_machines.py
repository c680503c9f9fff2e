"""The machines that multiply tables, each against every product of the entries, term by term, in logarithms."""

from contextlib import contextmanager, nullcontext
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_on_processor import needs_compiler
from markovia.inference.sliced import compiled_tables
from markovia.inference.sliced.compiled_tables import CompiledTables
from markovia.inference.sliced.numpy_tables import NumpyTables
from markovia.inference.sliced.product_layout import Operand, ProductLayout
from markovia.kernels.compiled_code import preferred
from products_by_hand import (
    SHAPES,
    by_hand,
    in_logs,
    large_product,
    log_scale,
    on_a_gpu,
    random_product,
    same,
    with_constants,
)


@contextmanager
def compiled(**constants):
    with preferred(), with_constants(compiled_tables, constants):
        yield CompiledTables()


MACHINES = {
    "numpy": lambda: nullcontext(NumpyTables()),
    "compiled": compiled,
    # small products too are divided between threads
    "compiled, divided": lambda: compiled(STRETCH=64),
    "cuda": on_a_gpu,
    # small products too are divided as large ones are, and small results summed in parts
    "cuda, divided": lambda: on_a_gpu(SMALL=0, WIDE=0, CHUNK=8, BUSY=64, LARGE=8, MIDS=16, RUN=4),
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(m, marks=needs_compiler) if m.startswith("cuda") else m for m in MACHINES],
)
def machine(request):
    with MACHINES[request.param]() as found:
        yield found


seeds = st.integers(0, 2**32 - 1)


# -- products ----------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(seeds, st.booleans())
def test_a_product_is_every_term_summed_or_maximised(machine, seed, maximise):
    layout, bases, values = random_product(np.random.default_rng(seed))
    inputs = [Operand(machine.put(v), b) for v, b in zip(values, bases, strict=True)]
    found = machine.product(layout, inputs, maximise)
    same(in_logs(machine, found), by_hand(layout, bases, values, maximise))
    assert not machine.lost()


@settings(max_examples=100)
@given(seeds, st.booleans())
def test_products_are_added_onto_others(machine, seed, maximise):
    rng = np.random.default_rng(seed)
    layout, bases, values = random_product(rng)
    total, expected = None, np.full(layout.size, -np.inf)
    join = np.maximum if maximise else np.logaddexp
    for _ in range(3):
        factor = 10.0 ** rng.choice([-5, 0, 5]) * (rng.random() < 0.8)
        changed = [values[0] * factor, *values[1:]]
        inputs = [Operand(machine.put(v), b) for v, b in zip(changed, bases, strict=True)]
        total = machine.product(layout, inputs, maximise, onto=total)
        expected = join(expected, by_hand(layout, bases, changed, maximise))
    same(in_logs(machine, total), expected)


@settings(max_examples=50)
@given(seeds)
def test_results_are_inputs_of_other_products(machine, seed):
    rng = np.random.default_rng(seed)
    layout, bases, values = random_product(rng)
    inputs = [Operand(machine.put(v), b) for v, b in zip(values, bases, strict=True)]
    first = machine.product(layout, inputs)
    square = ProductLayout((layout.size,), (), ((1,), (1,)))
    chain = ProductLayout((), (layout.size,), ((1,),))
    second = machine.product(square, [Operand(first), Operand(first)])
    expected = 2 * by_hand(layout, bases, values, False)
    same(in_logs(machine, second), expected)
    same(
        in_logs(machine, machine.product(chain, [Operand(second)])), np.array([np.logaddexp.reduce(expected)])
    )


@settings(max_examples=200)
@given(seeds, st.booleans())
def test_lost_says_whether_numbers_fell_out_of_their_range(machine, seed, maximise):
    rng = np.random.default_rng(seed)
    layout, bases, values = random_product(rng, span=700)
    values = [np.where(v > 0, np.maximum(v, v.max() * 2.0**-900), 0) for v in values]
    inputs = [Operand(machine.put(v), b) for v, b in zip(values, bases, strict=True)]
    assert not machine.lost()
    found = in_logs(machine, machine.product(layout, inputs, maximise))
    lost = machine.lost()
    assert not machine.lost()
    expected = by_hand(layout, bases, values, maximise)
    assert np.array_equal(np.isneginf(found), np.isneginf(expected))
    alive = ~np.isneginf(expected)
    scale = sum(log_scale(v) for v in values) if alive.any() else 0
    sizes = (expected[alive] - scale) / log(2)
    assert lost == (sizes < -1000).any()
    kept = sizes >= -1000
    np.testing.assert_allclose(found[alive][kept], expected[alive][kept], rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("tables", "removed", "lost"),
    [
        (([0, -600], [0, -600]), False, True),
        (([0, -400], [0, -400], [0, -400]), False, True),
        (([0, -450], [0, -450]), False, False),
        (([0, -600], [0, None]), False, False),
        (([0, -600], [0, -600]), True, False),
        (([None, -600, 0], [0, -600, None]), True, True),
        (([5, -595], [-7, -607]), False, True),
        (([0, -900, None], [0, -50, 0], [0, 0, -800]), False, False),
    ],
)
@pytest.mark.parametrize("maximise", [False, True])
def test_only_what_is_too_small_for_its_table_is_lost(machine, tables, removed, lost, maximise):
    # powers of two, None for zero
    values = [np.array([0.0 if e is None else 2.0**e for e in t]) for t in tables]
    n, strides = len(values[0]), ((1,),) * len(values)
    layout = ProductLayout((), (n,), strides) if removed else ProductLayout((n,), (), strides)
    found = machine.product(layout, [Operand(machine.put(v)) for v in values], maximise)
    numbers, _ = machine.numbers(found)
    possible = np.prod([v > 0 for v in values], axis=0)
    assert np.array_equal(numbers > 0, possible.any(keepdims=True) if removed else possible)
    assert machine.lost() == lost
    assert not machine.lost()


def test_what_is_lost_in_a_product_of_results(machine):
    layout = ProductLayout((4,), (), ((1,), (1,)))
    one = machine.put(np.ones(4))
    table = machine.product(
        layout, [Operand(one), Operand(machine.put(np.array([1.0, 0.0, 2.0**-300, 0.5])))]
    )
    for lost in (False, True):
        # 2**-600, then 2**-1200
        table = machine.product(layout, [Operand(table), Operand(table)])
        assert np.array_equal(machine.numbers(table)[0] > 0, [True, False, True, True])
        assert machine.lost() == lost


def test_numbers_that_are_too_small_are_lost_at_once(machine):
    table = machine.put(np.array([1e300, 1e-300, 0.0]))
    assert np.array_equal(machine.numbers(table)[0] > 0, [True, True, False])
    assert machine.lost()


def test_long_chains_of_products_stay_in_range(machine):
    layout = ProductLayout((2,), (2,), ((2, 1), (0, 1)))
    transition, state = machine.put(np.array([[1e-9, 2e-9], [3e-9, 0]])), machine.put(np.array([1.0, 1.0]))
    vector, scale = np.ones(2), 0.0
    for _ in range(200):
        state = machine.product(layout, [Operand(transition), Operand(state)])
        vector = np.array([[1, 2], [3, 0]]) @ vector
        scale += log(1e-9) + log(vector.sum())
        vector /= vector.sum()
    same(in_logs(machine, state), np.log(vector) + scale, 1e-10)
    assert not machine.lost()


def test_products_are_scaled_by_what_they_came_to(machine):
    # neither table is small, but each pair of products is
    layout = ProductLayout((2,), (), ((1,), (1,)))
    state, pair = (
        machine.put(np.ones(2)),
        [machine.put(np.array(v)) for v in ([1.0, 2.0**-400], [2.0**-400, 1.0])],
    )
    for _ in range(20):
        for table in pair:
            state = machine.product(layout, [Operand(state), Operand(table)])
    same(in_logs(machine, state), np.full(2, -8000 * log(2)), 1e-9)
    assert not machine.lost()


@pytest.mark.parametrize("factor", [2.0**-1020, 2.0**-500, 2.0**1000])
def test_sums_over_very_different_scales(machine, factor):
    layout = ProductLayout((2,), (), ((1,), (1,)))
    one, other = machine.put(np.array([1.0, 0.5])), machine.put(np.array([factor, factor]))
    total = machine.product(layout, [Operand(one), Operand(one)])
    total = machine.product(layout, [Operand(other), Operand(other)], onto=total)
    same(in_logs(machine, total), np.logaddexp(np.log([1.0, 0.25]), 2 * log(factor)))


def test_tables_of_zeros(machine):
    layout = ProductLayout((3,), (2,), ((2, 1), (0, 1)))
    zeros, ones, table = machine.put(np.zeros(2)), machine.put(np.ones(2)), machine.put(np.arange(6.0))
    nothing = machine.product(layout, [Operand(table), Operand(zeros)])
    assert np.isneginf(in_logs(machine, nothing)).all()
    total = machine.product(layout, [Operand(table), Operand(ones)], onto=nothing)
    same(in_logs(machine, total), np.log([1.0, 5.0, 9.0]))
    total = machine.product(layout, [Operand(table), Operand(zeros)], onto=total)
    same(in_logs(machine, total), np.log([1.0, 5.0, 9.0]))
    assert not machine.lost()


@pytest.mark.parametrize("maximise", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_large_products(machine, shape, maximise):
    layout, values = large_product(shape)
    inputs = [Operand(machine.put(v)) for v in values]
    found = machine.product(layout, inputs, maximise)
    expected = by_hand(layout, [0] * len(values), values, maximise)
    same(in_logs(machine, found), expected)
    found = machine.product(layout, inputs, maximise, onto=found)
    same(in_logs(machine, found), expected if maximise else expected + log(2))


# -- rows --------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(seeds)
def test_rows_are_products_of_stretches(machine, seed):
    rng = np.random.default_rng(seed)
    layout, bases, values = random_product(rng, span=800)
    layout = ProductLayout(layout.kept + layout.removed, (), layout.strides)
    n = int(rng.integers(1, 40))
    longer = [np.concatenate([v, v[::-1], v]) for v in values]
    starts = [rng.integers(0, 2 * len(v) + 1, size=n) for v in values]
    inputs = [Operand(machine.put(v), b) for v, b in zip(longer, bases, strict=True)]
    machine.lost()
    found, scales = machine.rows(layout, inputs, starts)
    assert found.shape == (n, layout.size)
    for r in range(n):
        expected = by_hand(layout, [b + s[r] for b, s in zip(bases, starts, strict=True)], longer, False)
        assert np.array_equal(found[r] == 0, np.isneginf(expected))
        if found[r].any():
            near = expected - expected.max() > log(2) * -900
            same(np.log(found[r][near]) + scales[r], expected[near], 1e-11)
            assert 0.4 < found[r].max() <= 1.0


def test_rows_without_inputs_or_rows(machine):
    table = machine.put(np.array([1.0, 3.0]))
    layout = ProductLayout((2,), (), ((1,),))
    found, scales = machine.rows(layout, [Operand(table)], [np.zeros(0, dtype=np.int64)])
    assert found.shape == (0, 2)
    assert scales.shape == (0,)


def test_budgets(machine):
    assert machine.budget > 0
    assert type(machine)(memory=1e6).budget == 1e6


def test_what_is_known_of_a_layout_is_forgotten_with_it():
    machine = NumpyTables()
    layout = ProductLayout((2,), (), ((1,),))
    machine.product(layout, [Operand(machine.put(np.ones(2)))])
    assert len(machine._plans) == 1
    del layout
    assert len(machine._plans) == 0
