"""Max-min hill climbing: candidates with an oracle are the neighbours, the climb keeps to them and to what is known."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.ci_tests import Oracle
from markovia.data.tables.reading_mixed import read_mixed
from markovia.runtime.clock import Clock
from markovia.structure.dag_search.mmhc import max_min_candidates
from markovia.structure.task.knowledge import Knowledge

ROWS = mk.examples.sprinkler().sample(3000, seed=1)


def _pairs(matrix, names):
    return {frozenset((names[i], names[j])) for i, j in np.argwhere(matrix)}


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 7), density=st.sampled_from([0.2, 0.4, 0.6]))
def test_with_an_oracle_the_candidates_are_the_neighbours(seed, n, density):
    rng = np.random.default_rng(seed)
    names = [str(v) for v in rng.permutation(list("abcdefg"[:n]))]
    dag = mk.graphs.DAG(
        [(a, b) for a, b in combinations(names, 2) if rng.random() < density], nodes=sorted(names)
    )
    test = Oracle(dag).bind(None)
    with Clock(progress=False) as clock:
        found = max_min_candidates(test, Knowledge().rules(test.names), clock)
    assert (found == found.T).all()
    assert _pairs(found, test.names) == {frozenset(e) for e in dag.edges}


def test_the_sprinkler_is_found_and_the_climb_stays_within_the_candidates():
    tiers = [["cloudy"], ["sprinkler", "rain"], ["wet"]]
    found = mk.learn_structure(ROWS, method="mmhc", test="g2", score="bic", alpha=0.01, tiers=tiers)
    assert found.graph == mk.examples.sprinkler().graph
    allowed = {frozenset(e) for e in found.details.candidates.edges}
    assert {frozenset(e) for e in found.dag.edges} <= allowed
    assert found.score_name == "bic"
    assert found.test_name == "g2"
    assert found.n_tests == len(found.tests) > 0


def test_pairs_outside_the_candidates_are_not_scored_edges():
    rng = np.random.default_rng(0)
    rows = {"a": rng.integers(0, 2, 500), "b": rng.integers(0, 2, 500), "c": rng.integers(0, 2, 500)}
    rows["d"] = rows["a"] ^ rows["b"]
    # each pair is independent, so tests of pairs see nothing, and there is nothing to climb
    found = mk.learn_structure(rows, method="mmhc", depth=0, alpha=0.001)
    assert found.n_edges == 0


def test_what_is_known_is_obeyed():
    found = mk.learn_structure(
        ROWS,
        method="mmhc",
        required=[("wet", "cloudy")],
        forbidden=[("cloudy", "rain"), ("rain", "cloudy")],
        max_parents=1,
    )
    assert ("wet", "cloudy") in found.dag.edges
    assert not found.skeleton.has_edge("cloudy", "rain")
    assert not found.details.candidates.has_edge("cloudy", "rain")
    assert found.details.candidates.has_edge("wet", "cloudy")
    assert max(len(found.dag.parents(n)) for n in found.nodes) <= 1


def test_the_strongest_association_joins_first_even_where_p_values_are_zero():
    rng = np.random.default_rng(1)
    n = 20000
    a = rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.95, a, 1 - a)
    c = np.where(rng.random(n) < 0.95, b, 1 - b)
    found = mk.learn_structure({"c": c, "b": b, "a": a}, method="mmhc", alpha=0.01)
    assert found.details.candidates == mk.graphs.UndirectedGraph(
        [("a", "b"), ("b", "c")], nodes=["c", "b", "a"]
    )


def test_measurements_use_fisher_z():
    rng = np.random.default_rng(2)
    a = rng.normal(size=400)
    b = a + rng.normal(size=400)
    test = mk.ci_tests.FisherZ(0.01).bind(read_mixed({"a": a, "b": b, "c": b + rng.normal(size=400)}))
    with Clock(progress=False) as clock:
        found = max_min_candidates(test, Knowledge().rules(test.names), clock, depth=2)
    assert _pairs(found, test.names) == {frozenset("ab"), frozenset("bc")}


def test_wrong_depths_and_early_stops():
    with pytest.raises(mk.errors.InvalidArgument, match="depth= is"):
        mk.learn_structure(ROWS, method="mmhc", depth=1.5)
    stopped = mk.learn_structure(ROWS, method="mmhc", time_limit=1e-9)
    assert stopped.stopped == "time limit"
    assert stopped.n_edges == 0
