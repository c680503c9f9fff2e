"""Every method, score and test that is registered is there, and answers to the same rules."""

import inspect

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.structure.ci_tests.ci_tests import TEST_ALIASES, TESTS
from markovia.structure.methods import ALIASES, METHODS
from markovia.structure.scores.scores import SCORE_ALIASES, SCORES, named

OPTIONS = {
    "tan": {"target": "c"},
    "tesla": {"periods": 2, "times": np.repeat([0.0, 1.0], 150), "tolerance": 1e-2},
    "kernel-weighted": {"times": np.arange(300.0)},
    "l1-pseudo-likelihood": {"alpha": 0.05},
    "notears-mlp": {"max_iterations": 2, "hidden": 2},
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 300)
    b = np.where(rng.random(300) < 0.8, a, 1 - a)
    c = np.where(rng.random(300) < 0.8, b, 1 - b)
    return pd.DataFrame({"a": a, "b": b, "c": c})


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, 300)
    b = a + rng.uniform(-1, 1, 300)
    c = b - rng.uniform(-1, 1, 300)
    return pd.DataFrame({"a": a, "b": b, "c": c})


def _learn(method, rows, numbers, **settings):
    data = numbers if METHODS[method].numbers else rows
    if method == "pnl":
        data = data[["a", "b"]]
    return mk.learn_structure(data, method, seed=0, progress=False, **{**OPTIONS.get(method, {}), **settings})


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_three_columns(method, rows, numbers):
    found = _learn(method, rows, numbers)
    assert found.method == method
    assert set(found.nodes) >= {"a", "b"}
    assert method in str(found)
    assert found.seconds > 0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_obeys_a_forbidden_adjacency(method, rows, numbers):
    found = _learn(method, rows, numbers, forbidden=[("a", "b"), ("b", "a")])
    assert not found.skeleton.has_edge("a", "b")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_a_required_adjacency(method, rows, numbers):
    settings = {"required": [("c", "a") if method == "tan" else ("b", "a")]}
    if method == "k2":
        settings["order"] = ["c", "b", "a"]
    found = _learn(method, rows, numbers, **settings)
    assert found.skeleton.has_edge(*settings["required"][0])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_stops_at_a_time_limit_with_a_graph(method, rows, numbers):
    found = _learn(method, rows, numbers, time_limit=1e-6)
    assert set(found.nodes) >= {"a", "b"}
    assert found.stopped == "time limit"


def test_other_names_lead_to_methods_scores_and_tests():
    assert set(ALIASES.values()) <= set(METHODS)
    assert set(SCORE_ALIASES.values()) <= set(SCORES)
    assert set(TEST_ALIASES.values()) <= set(TESTS)
    for word in SCORES:
        assert hasattr(named(word, SCORES, SCORE_ALIASES, "score")(), "bind")
    for word in TESTS:
        assert hasattr(named(word, TESTS, TEST_ALIASES, "test")(), "bind")


def test_every_method_is_named_where_people_look_and_documents_its_options():
    for method in METHODS.values():
        assert f'"{method.name}"' in mk.learn_structure.__doc__
        assert "Examples" in method.function.__doc__
        documented = {
            word for line in method.function.__doc__.splitlines() for word in line.strip().split(", ")
        }
        assert set(inspect.signature(method.function).parameters) <= documented, method.name
