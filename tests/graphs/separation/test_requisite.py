"""What matters to decisions, against separation asked pair by pair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovia.errors import InvalidArgument
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.separation.requisite import (
    decision_order,
    informed_parents,
    recall_parents,
    requisite_parents,
    solution_order,
)
from markovia.graphs.separation.separation import d_separated
from random_diagrams import random_diagram


def graph_of(seed):
    bn = random_diagram(seed, n_chance=2 + seed % 4, n_decisions=1 + seed % 3, n_utilities=1 + seed % 3)
    return {n: tuple(bn.parents(n)) for n in bn.variables}, bn.decisions, bn.utilities


@given(st.integers(0, 10**6))
def test_an_observation_is_dropped_only_if_it_tells_nothing_more(seed):
    parents, decisions, utilities = graph_of(seed)
    kept = requisite_parents(parents, decisions, utilities)
    dag = DAG.from_parents(kept)
    for d in decisions:
        assert {*kept[d]} <= {*parents[d]}
        below = [u for u in utilities if u in dag.descendants([d])]
        for q in kept[d]:
            rest = [n for n in (d, *kept[d]) if n != q]
            assert below
            assert not d_separated(dag, q, below, rest)
    # dropping one after the other in any order ends in the same graph
    other, changed = {n: tuple(q) for n, q in parents.items()}, True
    while changed:
        changed = False
        for d in decisions:
            for q in other[d]:
                dag = DAG.from_parents(other)
                below = [u for u in utilities if u in dag.descendants([d])]
                if not below or d_separated(dag, q, below, [n for n in (d, *other[d]) if n != q]):
                    other[d] = tuple(n for n in other[d] if n != q)
                    changed = True
    assert {d: {*other[d]} for d in decisions} == {d: {*kept[d]} for d in decisions}


@given(st.integers(0, 10**6))
def test_a_solution_order_takes_out_extremal_decisions(seed):
    parents, decisions, utilities = graph_of(seed)
    order = solution_order(parents, decisions, utilities)
    dag = DAG.from_parents(parents)

    def extremal(d, left):
        below = [u for u in utilities if u in dag.descendants([d])]
        others = {n for e in left if e != d for n in (e, *parents[e])} - {d, *parents[d]}
        return not below or not others or d_separated(dag, below, others, [d, *parents[d]])

    left = list(decisions)
    if order is None:
        while any(extremal(d, left) for d in left):
            left = [
                d for d in left if not extremal(d, left) or d != next(e for e in left if extremal(e, left))
            ]
        assert left
        return
    assert sorted(order) == sorted(decisions)
    for d in order:
        assert extremal(d, left)
        left.remove(d)


def test_perfect_recall_is_always_soluble_backwards():
    parents = {"x": (), "a": ("x",), "y": ("a",), "b": ("y",), "z": ("b", "x"), "u": ("z", "a")}
    recalled = recall_parents(parents, ["a", "b"])
    assert recalled["b"] == ("y", "x", "a")
    assert solution_order(recalled, ["a", "b"], ["u"]) == ["b", "a"]


def test_more_is_seen_only_of_what_does_not_depend_on_the_choice():
    parents = {"h": (), "x": ("h",), "a": ("x",), "g": ("h", "a"), "b": ("g",), "u": ("g", "b")}
    more = informed_parents(parents, ["a", "b"], ["h", "x", "g"])
    assert {*more["a"]} == {"x", "h"}
    assert {*more["b"]} == {"g", "x", "a", "h"}
    DAG.from_parents(more)


def test_orders_are_those_of_the_paths():
    parents = {"a": (), "x": ("a",), "b": ("x",), "c": ()}
    assert decision_order(parents, ["b", "a"]) == ["a", "b"]
    with pytest.raises(InvalidArgument, match="decided first"):
        decision_order(parents, ["a", "b", "c"])
    assert decision_order(parents, ["a", "b", "c"], ["c", "a", "b"]) == ["c", "a", "b"]
    with pytest.raises(InvalidArgument, match="depends on"):
        decision_order(parents, ["a", "b"], ["b", "a"])
