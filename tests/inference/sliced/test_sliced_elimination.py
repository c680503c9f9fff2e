"""Elimination in slices: every question under small budgets against arrays, orders, estimates, refusals, and where it runs.

`tests/inference/exact/test_exact_engines.py` asks it everything without a budget, as it asks every exact engine.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from exact_checks import (
    check_best,
    check_impossible,
    check_marginals,
    check_mass,
    check_posterior,
    some_of,
)
from markovia.inference.choosing import auto
from markovia.inference.sliced import compiled_tables, cuda_tables, sliced_elimination
from markovia.inference.sliced.numpy_tables import NumpyTables
from markovia.runtime import devices
from model_strategies import cases, log_sum, log_weights, random_findings

seeds = st.integers(0, 2**32 - 1)


def small(max_bytes=None, **options):
    return mk.engines.SlicedElimination(max_bytes=max_bytes, device="cpu", search=0.01, **options)


@sampled(cases(max_entries=3000), seeds, st.sampled_from([600, 1200, 2400]))
@settings(max_examples=100, deadline=None)
def test_every_question_within_a_small_budget(case, seed, budget):
    rng = np.random.default_rng(seed)
    given = random_findings(case, rng)
    logs, engine = log_weights(case, given), small(budget)
    targets = some_of(rng, case.cards, 3)
    asks = [
        lambda: check_mass(case, given, logs, engine),
        lambda: check_posterior(case, given, logs, engine, targets),
        lambda: check_marginals(case, given, logs, engine),
        lambda: check_best(case, given, logs, engine, 3),
        lambda: check_best(case, given, logs, engine, 2, targets),
    ]
    if np.isneginf(log_sum(logs)):
        check_impossible(case, given, "auto", lambda: case.model.query(targets, given=given, engine=engine))
        return
    for ask in asks:
        try:
            ask()
        except mk.errors.TooLarge as too_large:
            assert too_large.bytes > budget  # noqa: PT017


@pytest.fixture(scope="module")
def grid():
    rng = np.random.default_rng(0)
    model = mk.generators.ising_grid(8, 8, coupling=0.5)
    for name in model.variables:
        model.add_factor(mk.Factor([name], rng.uniform(0.5, 2.0, 2)))
    return model


def test_slices_answer_every_question_as_the_tree_does(grid):
    engine = small(11_000)
    given = {"x3_3": 1, "x5_2": [0.2, 0.8]}
    whole = grid.marginals(given=given, engine="junction-tree")
    found = grid.marginals(given=given, engine=engine)
    details = next(iter(found.values())).info.details
    assert details.turns > 1
    assert len(details.cut) >= 2
    for name, answer in found.items():
        np.testing.assert_allclose(answer.values, whole[name].values, rtol=1e-10)
    targets = ["x0_0", "x7_7", "x4_4"]
    np.testing.assert_allclose(
        grid.query(targets, given=given, engine=engine).values,
        grid.query(targets, given=given, engine="junction-tree").values,
        rtol=1e-10,
    )
    best = grid.map(given=given, engine=engine, m=5)
    known = grid.map(given=given, engine="junction-tree", m=5)
    assert [e.log_prob for e in best] == pytest.approx([e.log_prob for e in known], rel=1e-12)


def test_draws_in_slices_follow_the_posterior(grid):
    rows = grid.sample(4000, given={"x3_3": 1}, engine=small(11_000), seed=1)
    whole = grid.marginals(given={"x3_3": 1}, engine="junction-tree")
    for name, answer in whole.items():
        share = (
            (rows[name] == answer.states[1]).mean() if hasattr(answer, "states") else (rows[name] == 1).mean()
        )
        p = float(answer.values[1])
        assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / 4000) + 1e-9
    assert (rows["x3_3"] == 1).all()
    again = grid.sample(4000, given={"x3_3": 1}, engine=small(11_000), seed=1)
    assert rows.equals(again)


def test_states_that_evidence_rules_out_leave_the_tables_and_the_answers():
    model = mk.BayesianNetwork()
    model.add("a", states=["x", "y", "z"], p=[0.2, 0.3, 0.5])
    model.add("b", states=["x", "y", "z"], parents=["a"], p=np.eye(3))
    model.add("c", states=["no", "yes"], parents=["b"], p=[[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    found = model.marginals(given={"c": "yes"}, engine="sliced-elimination")
    np.testing.assert_allclose(found["a"].values, [0.0, 0.15 / 0.525, 0.375 / 0.525])
    joint = model.query(["a", "b"], given={"c": "yes"}, engine="sliced-elimination")
    np.testing.assert_allclose(joint.values, np.diag([0.0, 0.15 / 0.525, 0.375 / 0.525]))
    certain = model.query(["a", "b"], given={"c": "yes", "a": mk.Not("y", "x")}, engine="sliced-elimination")
    assert certain.values[2, 2] == 1.0
    assert certain.info.log_evidence == pytest.approx(np.log(0.375))


def test_an_estimate_over_the_time_limit_is_refused_with_what_it_would_take():
    wide = mk.generators.ising_grid(40, 40, coupling=0.4)
    with pytest.raises(mk.errors.TooLarge, match=r"2\*\*\d+\.\d table entries.*the limits are") as caught:
        wide.log_partition(engine=small(time_limit=1.0))
    assert caught.value.operations > 1e9
    assert "max_operations" in str(caught.value)
    with pytest.raises(mk.errors.TooLarge):
        wide.log_partition(engine=small(max_operations=1e6))


def test_a_joint_answer_over_the_budget_is_refused():
    model = mk.generators.ising_grid(4, 4, coupling=0.4)
    with pytest.raises(mk.errors.TooLarge, match="targets has"):
        model.query(list(model.variables)[:12], engine=small(8 * 1000))


def test_what_leaves_the_range_of_doubles_is_computed_with_logarithms():
    """Six messages about v: four make its second state 1e-400 as likely as the first, two make that 1e-600."""
    cards = {"v": 2, **{f"u{i}": 2 for i in range(6)}}
    slopes = [[1.0, 1e-100]] * 4 + [[1e-300, 1.0]] * 2
    factors = [mk.Factor(["v", f"u{i}"], np.outer(s, [0.25, 0.75])) for i, s in enumerate(slopes)]
    model = mk.MarkovNetwork(cards, factors)
    assert model.log_partition(engine="sliced-elimination") == pytest.approx(-400 * np.log(10), rel=1e-12)
    posterior = model.query("v", engine="sliced-elimination")
    np.testing.assert_allclose(posterior.values, [1e-200, 1.0], rtol=1e-10)
    assert posterior.info.engine == "variable-elimination"  # it says who answered
    assert posterior.info.details.arithmetic == "logarithms"


@pytest.mark.parametrize("budget", [None, 9000, 5000])
def test_best_states_of_some_variables_while_others_are_summed_in_slices(budget):
    rng = np.random.default_rng(3)
    model = mk.generators.ising_grid(5, 5, coupling=0.5)
    for name in model.variables:
        model.add_factor(mk.Factor([name], rng.uniform(0.5, 2.0, 2)))
    targets = [str(t) for t in rng.permutation(model.variables)[:6]]
    known = model.map(targets=targets, m=3, engine="variable-elimination")
    found = model.map(targets=targets, m=3, engine=small(budget))
    assert [e.log_prob for e in found] == pytest.approx([e.log_prob for e in known], rel=1e-11)


def test_an_order_is_searched_once_for_each_question(grid, monkeypatch):
    model = grid.copy() if hasattr(grid, "copy") else grid
    searched = []
    original = sliced_elimination.long_search

    def counted(*args, **kwargs):
        searched.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(sliced_elimination, "long_search", counted)
    first = model.log_partition(given={"x0_1": 1}, engine=small())
    assert searched
    times = len(searched)
    assert model.log_partition(given={"x0_1": 1}, engine=small()) == first
    assert len(searched) == times


def test_draws_depend_neither_on_threads_nor_on_what_was_asked_before(monkeypatch):
    def drawn(threads, before):
        monkeypatch.setenv("MARKOVIA_THREADS", threads)
        model = mk.generators.ising_grid(13, 13, coupling=0.4)
        engine = mk.engines.SlicedElimination(device="cpu", search=0.05)
        if before:
            model.marginals(engine=engine)
        return model.sample(20, engine=engine, seed=5)

    first = drawn("1", before=False)
    assert first.equals(drawn("2", before=False))
    assert first.equals(drawn("1", before=True))


def test_an_interrupt_between_products_leaves_the_model_as_it_was(grid, monkeypatch):
    count = [0]
    original = NumpyTables.product

    def interrupted(self, *args, **kwargs):
        count[0] += 1
        if count[0] == 20:
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    monkeypatch.setattr(compiled_tables, "CompiledTables", NumpyTables)
    monkeypatch.setattr(NumpyTables, "product", interrupted)
    with pytest.raises(KeyboardInterrupt):
        grid.marginals(engine=small(11_000))
    monkeypatch.setattr(NumpyTables, "product", original)
    assert grid.log_partition(engine=small(11_000)) == pytest.approx(grid.log_partition(), rel=1e-12)


# -- devices -----------------------------------------------------------------------------------------------------


class FailingTables(NumpyTables):
    """A GPU whose driver fails after some products."""

    def __init__(self, precision="double", memory=None):
        super().__init__(memory)
        self.left = 10

    def product(self, *args, **kwargs):
        self.left -= 1
        if self.left < 0:
            raise devices.DeviceFailure("the GPU failed (an illegal memory access was encountered)")
        return super().product(*args, **kwargs)


class FailingRows(NumpyTables):
    """A GPU whose driver fails while states are drawn."""

    left = 5

    def __init__(self, precision="double", memory=None):
        super().__init__(memory)

    def rows(self, *args):
        self.left -= 1
        if self.left < 0:
            raise devices.DeviceFailure("the GPU failed (unspecified launch failure)")
        return super().rows(*args)


class StandIn(NumpyTables):
    """The arithmetic of the GPU without one."""

    def __init__(self, precision="double", memory=None):
        super().__init__(memory)


@pytest.fixture
def pretended_gpu(monkeypatch):
    found = devices.Gpu("a pretended GPU", 2**37)
    for module in (sliced_elimination, auto):
        monkeypatch.setattr(module, "usable_gpu", lambda: found)
        monkeypatch.setattr(module, "gpu", lambda: found)
    monkeypatch.setattr(devices, "_said", set())

    def use(kind):
        monkeypatch.setattr(cuda_tables, "CudaTables", kind)

    use(StandIn)
    return use


def test_the_record_says_where_it_ran(grid, pretended_gpu):
    answer = grid.query("x0_0", engine=mk.engines.SlicedElimination(device="gpu"))
    assert answer.info.details.device == "gpu"
    assert grid.query("x0_0", engine=small()).info.details.device == "cpu"
    np.testing.assert_allclose(answer.values, grid.query("x0_0").values, rtol=1e-12)


def test_a_failing_driver_is_said_once_and_the_processor_answers(grid, pretended_gpu):
    pretended_gpu(FailingTables)
    engine = mk.engines.SlicedElimination(device="gpu", search=0.01)
    with pytest.warns(mk.errors.DeviceWarning, match="illegal memory access.*the processor answers"):
        answer = grid.marginals(engine=engine)
    assert answer["x0_0"].info.details.device == "cpu"
    np.testing.assert_allclose(answer["x1_0"].values, grid.query("x1_0").values, rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draws = grid.sample(5, engine=engine, seed=3)
    assert draws.equals(grid.sample(5, engine=small(), seed=3))


def test_draws_that_the_gpu_began_are_those_of_the_processor(grid, pretended_gpu):
    pretended_gpu(FailingRows)
    with pytest.warns(mk.errors.DeviceWarning, match="launch failure"):
        draws = grid.sample(50, engine=mk.engines.SlicedElimination(device="gpu", search=0.01), seed=3)
    assert draws.equals(grid.sample(50, engine=small(), seed=3))


class FullTables(StandIn):
    """A GPU with less memory to give than it says."""

    def __init__(self, precision="double", memory=None):
        super().__init__(precision, memory)
        self.limit = 6000.0

    def product(self, layout, inputs, maximise=False, onto=None):
        if layout.size * 8 > self.limit:
            raise devices.DeviceFailure("the GPU failed (out of memory)")
        return super().product(layout, inputs, maximise, onto)


def test_where_the_memory_of_the_gpu_does_not_do_smaller_slices_are_tried_there(grid, pretended_gpu):
    pretended_gpu(FullTables)
    answer = grid.query("x0_0", engine=mk.engines.SlicedElimination(device="gpu", max_bytes=30_000))
    details = answer.info.details
    assert (details.device, details.turns > 1) == ("gpu", True)


def test_without_a_gpu_one_sentence_says_so(grid, monkeypatch):
    monkeypatch.setattr(devices, "_looked", lambda: (None, "there is no GPU here"))
    monkeypatch.setattr(devices, "_said", set())
    with pytest.warns(mk.errors.DeviceWarning, match="there is no GPU here; the processor answers"):
        answer = grid.query("x0_0", engine=mk.engines.SlicedElimination(device="gpu"))
    assert answer.info.details.device == "cpu"


def test_auto_sends_what_is_large_to_the_gpu_and_says_where_a_model_is_too_small(
    grid, pretended_gpu, monkeypatch
):
    engine = mk.engines.Auto(device="gpu")
    assert "too small to gain from the GPU" in grid.query("x0_0", engine=engine).info.note
    monkeypatch.setattr(sliced_elimination, "GPU_ENTRIES", 100.0)
    info = grid.query("x0_0", engine=engine).info
    assert (info.engine, info.details.device) == ("sliced-elimination", "gpu")
    # by itself it looks for a GPU where the processor would take long
    monkeypatch.setattr(auto, "GPU_SECONDS", 0.0)
    monkeypatch.setattr(sliced_elimination, "WORTH_A_GPU", 0.0)
    auto.load_tree_kernels()
    monkeypatch.setattr(auto, "SMALL_TREE", "no tree is small")
    model = mk.generators.ising_grid(9, 9, coupling=0.5)
    assert model.query("x0_0").info.details.device == "gpu"
    assert model.query("x0_0", engine=mk.engines.Auto(device="cpu")).info.engine == "junction-tree"


def test_auto_takes_slices_where_a_tree_does_not_fit():
    model = mk.generators.ising_grid(10, 10, coupling=0.4)
    info = model.query("x0_0", engine=mk.engines.Auto(max_bytes=30_000)).info
    assert info.engine == "sliced-elimination"
    assert info.exact
    assert info.details.turns > 1


def test_an_estimate_names_a_gpu_only_where_one_would_gain():
    few = sliced_elimination.estimate(mk.examples.asia()._problem(None))
    large = sliced_elimination.estimate(mk.generators.ising_grid(24, 24, coupling=0.4)._problem(None))
    assert list(few.seconds) == ["cpu"]
    assert few.entries > 18  # more than its parameters
    assert list(large.seconds) == ["cpu", "gpu"]
    assert large.entries > 1e8
    assert large.seconds["gpu"] < large.seconds["cpu"]
