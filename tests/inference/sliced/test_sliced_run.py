"""Runs of sliced plans on random tables: every sweep, any variables cut, any messages held, against one large table."""

from math import inf, log, prod

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

from markovia.inference.sliced.numpy_tables import NumpyTables
from markovia.inference.sliced.sliced_plan import SlicedPlan
from markovia.inference.sliced.sliced_run import PlannedTables, SlicedRun
from markovia.inference.sliced.slicing import Rate, measured, sliced_to_fit


class Drawn:
    """Random tables with zeros, an order, variables to cut, and the product of all."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 8))
        self.cards = [int(c) for c in rng.integers(1, 4, n)]
        self.scopes = [
            tuple(int(v) for v in rng.permutation(n)[: rng.integers(0, 4)])
            for _ in range(rng.integers(1, 12))
        ]
        self.tables = [
            rng.random(shape) * (rng.random(shape) > 0.2) * 10.0 ** rng.integers(-9, 10)
            for shape in ([self.cards[v] for v in scope] for scope in self.scopes)
        ]
        self.full = np.ones(self.cards)
        for scope, table in zip(self.scopes, self.tables, strict=True):
            ordered = table.transpose(np.argsort(scope))
            self.full = self.full * ordered.reshape([self.cards[v] if v in scope else 1 for v in range(n)])
        self.constant = prod(float(t) for s, t in zip(self.scopes, self.tables, strict=True) if not s)
        self.order = [int(v) for v in rng.permutation(n)]
        self.cuts = [v for v in self.order if rng.random() < 0.4]
        self.room = float(rng.choice([0, 20, 1e9]))

    def plan(self, keep=(), maximised=()):
        order = [v for v in self.order if v not in keep]
        cuts = [v for v in self.cuts if v not in keep]
        return SlicedPlan(self.scopes, self.cards, order, keep, maximised, cuts, self.room)

    def run(self, plan):
        return SlicedRun(plan, NumpyTables(), self.tables)

    def sum_onto(self, keep):
        others = tuple(v for v in range(len(self.cards)) if v not in keep)
        kept = sorted(keep)
        return self.full.sum(axis=others).transpose([kept.index(v) for v in keep])

    def log(self, value):
        return log(value) if value > 0 else -inf


drawn = st.builds(Drawn, st.integers(0, 2**32 - 1))


@sampled(drawn)
@settings(max_examples=150, deadline=None)
def test_masses_equal_the_sum_of_the_whole_table(case):
    run = case.run(case.plan())
    run.up()
    found = sum(run.log_masses()) + case.log(case.constant)
    assert found == pytest.approx(case.log(case.full.sum()), rel=1e-12, abs=1e-10)


@sampled(drawn)
@settings(max_examples=150, deadline=None)
def test_tables_over_kept_variables_equal_the_whole_table_summed(case):
    keep = case.order[len(case.order) - int(case.rng.integers(1, len(case.order) + 1)) :]
    run = case.run(case.plan(keep))
    run.up()
    table, log_scale = run.answer()
    scale = np.exp(log_scale + sum(run.log_masses())) * case.constant
    np.testing.assert_allclose(table * scale, case.sum_onto(keep), rtol=1e-11)


@sampled(drawn)
@settings(max_examples=200, deadline=None)
def test_beliefs_of_any_variables_equal_the_marginals(case):
    if case.full.sum() == 0:
        return
    run = case.run(case.plan())
    run.up(keep=True)
    targets = case.order[: int(case.rng.integers(1, len(case.order) + 1))]
    found = run.down(targets)
    for v in targets:
        read = [run.machine.numbers(t) for t in found[v]]
        values = np.concatenate([n.reshape(-1) * np.exp(s - read[0][1]) for n, s in read])
        expected = case.sum_onto([v])
        np.testing.assert_allclose(values / values.sum(), expected / expected.sum(), rtol=1e-10, atol=1e-300)
    assert not run.beliefs
    assert not any(
        run.messages[k] for k in range(len(run.messages)) if run.plan.cut_scope[k] and not run.plan.held[k]
    )


@sampled(drawn)
@settings(max_examples=150, deadline=None)
def test_best_choices_reach_the_largest_entry(case):
    if case.full.sum() == 0:
        return
    plan = case.plan(maximised=case.order)
    run = case.run(plan)
    run.up(keep=True)
    best = case.full.max()
    assert sum(run.log_masses()) + log(case.constant) == pytest.approx(log(best), rel=1e-12, abs=1e-10)
    codes = np.zeros((1, len(case.cards)), dtype=np.int64)
    run.choose(codes, lambda v, logs: logs.argmax(axis=1), [True] * len(plan.buckets))
    assert case.full[tuple(codes[0])] == pytest.approx(best, rel=1e-12)


@sampled(drawn)
@settings(max_examples=60, deadline=None)
def test_rows_of_choices_multiply_to_the_probability_of_what_was_chosen(case):
    """The chain rule: what each row gives to the chosen state, multiplied, is the share of the configuration."""
    if case.full.sum() == 0:
        return
    plan = case.plan()
    run = case.run(plan)
    run.up(keep=True)
    codes = np.zeros((20, len(case.cards)), dtype=np.int64)
    logs_of = []

    def choose(v, logs):
        p = np.exp(logs - logs.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        states = (p.cumsum(axis=1) < case.rng.random((len(p), 1))).sum(axis=1).clip(max=p.shape[1] - 1)
        with np.errstate(divide="ignore"):
            logs_of.append(np.log(p[np.arange(len(p)), states]))
        return states

    run.choose(codes, choose, [True] * len(plan.buckets))
    shares = np.array([case.full[tuple(c)] for c in codes]) / case.full.sum()
    assert (shares > 0).all()
    if not plan.cuts:  # with cuts the rows come in groups
        np.testing.assert_allclose(np.exp(np.sum(logs_of, axis=0)), shares, rtol=1e-9)


class Counting(NumpyTables):
    """A machine that counts what it goes through."""

    entries = products = 0

    def product(self, layout, inputs, maximise=False, onto=None):
        self.entries += layout.entries
        self.products += 1
        return super().product(layout, inputs, maximise, onto)


@sampled(drawn, st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_run_without_numbers_tells_what_a_run_takes(case, down):
    plan = case.plan()
    targets = case.order[:2] if down else None
    machine = Counting()
    run = SlicedRun(plan, machine, case.tables)
    run.up(keep=down)
    if down:
        run.down(targets)
    entries, products, _ = measured(plan, targets)
    if not any(plan.held) or down:  # with held messages a little less is done than is told
        assert (machine.entries, machine.products) == (entries, products) or any(plan.held)
    assert machine.entries <= entries


def test_cutting_costs_no_work_but_for_what_does_not_mention_the_variable():
    scopes = [(0, 1, 2, 3), (2, 3, 4, 5), (4, 5, 6, 7)]
    cards = [3] * 8
    order = [0, 1, 2, 3, 6, 7, 4, 5]
    whole = SlicedPlan(scopes, cards, order)
    cut = SlicedPlan(scopes, cards, order, cuts=[2])
    assert (
        measured(cut, None)[0] == measured(whole, None)[0]
    )  # the loop is around the buckets that mention it


def test_messages_are_held_for_later_turns_where_there_is_room():
    # 0 joins 2 with 3, and 1 joins 3 with 4: the message over (2,) does not mention 3
    scopes, cards, order = [(0, 2), (2, 3, 4), (3, 4)], [5] * 5, [0, 2, 3, 4]
    poor = SlicedPlan(scopes, cards, order, cuts=[2, 3, 4])
    rich = SlicedPlan(scopes, cards, order, cuts=[2, 3, 4], room=100.0)
    assert any(rich.held)
    assert not any(poor.held)
    assert measured(rich, None)[0] < measured(poor, None)[0]
    run = SlicedRun(rich, NumpyTables(), [np.ones([5] * len(s)) for s in scopes])
    run.up()
    assert sum(map(len, run.messages)) == 1  # nothing is held beyond the last turn but the mass


def grid(side):
    scopes = [(r * side + c, r * side + c + 1) for r in range(side) for c in range(side - 1)]
    scopes += [(r * side + c, (r + 1) * side + c) for r in range(side - 1) for c in range(side)]
    return scopes, [2] * side**2


def test_variables_are_cut_until_a_run_fits_and_no_more_than_needed():
    scopes, cards = grid(12)
    plan = SlicedPlan(scopes, cards, list(range(144)))
    rate = Rate(1e9, 1e-7)
    free = sliced_to_fit(plan, inf, None, rate)
    assert free.turns == 1
    tables = sum(prod(cards[v] for v in s) for s in scopes)
    for share in (0.6, 0.3):
        limit = tables + share * (free.held - tables)
        found = sliced_to_fit(plan, limit, None, rate)
        assert found.fits
        assert found.held <= limit
        for v in found.plan.cuts:
            without = measured(found.plan.with_cuts(found.plan.cuts - {v}, 0.2 * limit), None)
            assert without[2] > limit or rate.seconds(*without[:2]) > found.seconds
        assert found.entries < free.entries  # in a better order
    hopeless = sliced_to_fit(plan, tables, None, rate, most_seconds=0.1)
    assert not hopeless.fits


def test_sums_stay_before_maxima_whatever_is_removed_last():
    scopes, cards = grid(4)
    plan = SlicedPlan(scopes, cards, list(range(16)), maximised=range(10, 16))
    for last in ([3], [12], [3, 12]):
        for heuristic in (None, "min-fill"):
            order = plan.with_last(last, heuristic).order
            assert sorted(order) == list(range(16))
            assert set(order[10:]) == set(range(10, 16))
            assert order[9] == 3 or 3 not in last
            assert order[15] == 12 or 12 not in last


def test_the_counting_machine_frees_what_nobody_holds():
    machine = PlannedTables()
    table = machine.put(100)
    assert machine.live == 100
    del table
    assert (machine.live, machine.peak) == (0, 100)
