"""Kernels as plain Python give the compiled numbers, and are left once compiling would have paid."""

import os
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest

from markovia.kernels import plain_code
from markovia.kernels.fields.crf_records import FieldBeliefs, LogPotentials, PairwiseGraphs
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.marginals import FieldSampler, field_marginals

FIELDS = "markovia.kernels.fields."


@pytest.fixture
def fields():
    """Two chains and a ring of five nodes each, with three labels."""
    tails = np.array([0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 14])
    heads = np.array([1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 10])
    return Fields.of(3, np.array([0, 5, 10, 15]), np.array([0, 4, 8, 13]), tails, heads, np.ones((13, 1)))


@pytest.mark.parametrize(
    "method", ["exact", "loopy-bp", "tree-reweighted", "mean-field", "gibbs", "pseudo-likelihood"]
)
def test_plain_and_compiled_marginals_are_the_same(fields, method, monkeypatch):
    rng = np.random.default_rng(0)
    features, weights, tables = rng.normal(size=(15, 2)), rng.normal(size=(3, 2)), rng.normal(size=(1, 3, 3))
    found = []
    for compiled in (False, True):
        monkeypatch.setattr(plain_code, "worth_loading", lambda *_, compiled=compiled: compiled)
        chains = FieldSampler.of(fields, np.random.default_rng(1), sweeps=20)
        options = {"labels": np.arange(15) % 3, "sampler": chains, "features": features}
        found.append(field_marginals(fields, weights, tables, method, **options))
    plain, fast = found
    assert np.allclose(plain.log_mass, fast.log_mass, rtol=1e-12, equal_nan=True)
    assert np.allclose(plain.beliefs, fast.beliefs, rtol=1e-10, atol=1e-14)
    assert np.allclose(plain.pairs, fast.pairs, rtol=1e-10, atol=1e-14)
    assert np.allclose(plain.sums, fast.sums, rtol=1e-10)


def test_many_small_calls_end_with_compiled_code(monkeypatch):
    home = FIELDS + "crf_forest:node_scores"
    monkeypatch.setattr(plain_code, "_spent", defaultdict(float))
    monkeypatch.setattr(plain_code, "worth_loading", lambda home, plain, *_: plain >= 1.0)
    which, ptr, scores = np.array([0]), np.array([0, 300]), np.zeros((300, 4))
    given = np.ones((300, 5)), np.ones((4, 5))
    calls = 0
    while plain_code.either(home, 0.1 / plain_code.STEP) is plain_code.plain_code(home):
        plain_code.plain_code(home)(which, ptr, *given, scores)
        assert np.all(scores == 5.0)
        calls += 1
    assert calls > 1
    assert 0.9 <= plain_code._spent[home] < 2.0
    assert plain_code.either(home, 1.0 / plain_code.STEP) is not plain_code.plain_code(home)


def test_a_small_conditional_field_needs_no_compiler(tmp_path):
    code = (
        "import sys, numpy as np, markovia as mk\n"
        "rng = np.random.default_rng(0)\n"
        "x = [rng.normal(size=(4, 2)) for _ in range(5)]; y = [(s[:, 0] > 0).astype(int) for s in x]\n"
        "assert len(mk.crf.CRF().fit(x, y).predict(x)) == 5\n"
        "print('numba' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.split() == ["False"]


def test_plain_code_divides_by_zero_quietly():
    run = plain_code.plain_code(FIELDS + "crf_forest:forest_marginals")
    one, none, tables = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, 2, 2))
    ends = np.array([0, 1])
    graphs = PairwiseGraphs(ends, none, none, none, 0 * ends, none, one, one - 1, one - 1)
    found = FieldBeliefs(np.zeros(1), np.zeros((1, 2)), tables, np.zeros(1))
    run(one, graphs, LogPotentials(np.full((1, 2), -np.inf), tables), np.zeros(0), found)
    assert np.isnan(found.log_mass[0])


def test_a_run_that_is_told_its_length_is_compiled_from_its_first_sweep(monkeypatch):
    asked = []
    monkeypatch.setattr(plain_code, "_spent", defaultdict(float))
    monkeypatch.setattr(plain_code, "worth_loading", lambda home, plain, *_: asked.append(plain))
    home = FIELDS + "crf_forest:node_scores"
    plain_code.either(home, 1e3)
    with plain_code.repeated(500):
        plain_code.either(home, 1e3)
    plain_code.either(home, 1e3)
    assert asked == pytest.approx([1e3 * plain_code.STEP, 5e5 * plain_code.STEP, 1e3 * plain_code.STEP])


@pytest.mark.parametrize("question", ["map", "starts", "symmetry", "order"])
def test_set_up_work_in_plain_code_says_what_compiled_code_says(question, monkeypatch):
    import markovia as mk
    from markovia.inference.flat_graphs.flat_graph import flat_graph
    from markovia.inference.flat_graphs.symmetry import _coloured, _refined
    from markovia.inference.markov_chains import chain_starts
    from markovia.inference.markov_chains.chain_runs import graph_arrays
    from markovia.inference.message_passing.join_graph import elimination_order

    model = mk.generators.ising_grid(4, 5, coupling=0.3, field="random", seed=2)
    graph = flat_graph(model._problem(None))

    def answer():
        if question == "map":
            best = model.copy().map(engine="max-product")
            return [best.log_weight, *best.values()]
        if question == "starts":
            rng = np.arange(1, 5, dtype=np.uint64)
            return [chain_starts._search(graph_arrays(graph), rng, flat).tolist() for flat in (False, True)]
        if question == "symmetry":
            return _refined(graph, _coloured(graph.values), _coloured(graph.unary)).tolist()
        order, total = elimination_order(graph)
        return [order.tolist(), total]

    found = []
    for compiled in (False, True):
        monkeypatch.setattr(plain_code, "worth_loading", lambda *_, compiled=compiled: compiled)
        found.append(answer())
    assert found[0] == found[1]
