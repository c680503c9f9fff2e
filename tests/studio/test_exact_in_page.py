"""What a page computes by itself is what the library answers, on random models with all kinds of findings."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import markovia as mk
from markovia.studio.documents.findings import told_findings
from markovia.studio.sharing.in_page import elimination_cells, page_tables

STATIC = Path(mk.__file__).parent / "studio" / "static"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(
    NODE is None, reason="node, which runs the page's modules here, is not installed"
)
PROGRAM = """
import { compile } from %s;
import { readFileSync } from "node:fs";
const answers = JSON.parse(readFileSync(0, "utf8")).map(({ tables, given, done }) => {
  const tree = compile(tables);
  try {
    const { marginals, logEvidence } = tree.beliefs(given, done);
    const { states, logWeight } = tree.explain(given, done);
    return { cost: tree.cost, marginals: marginals.map((p) => [...p]), logEvidence, states: [...states], logWeight };
  } catch (error) {
    return { error: error.message };
  }
});
console.log(JSON.stringify(answers));
"""


def in_the_page(questions):
    """Answer (tables, given, do) by the page's own module."""
    program = PROGRAM % json.dumps((STATIC / "exact.js").as_uri())
    asked = json.dumps([{"tables": t, "given": g, "done": d} for t, g, d in questions])
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", program], input=asked, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def random_question(seed):
    rng = np.random.default_rng(seed)
    if seed % 4 == 3:
        model = mk.generators.random_markov_network(int(rng.integers(4, 12)), states=(1, 4), seed=seed)
    else:
        model = mk.generators.random_bayesian_network(
            int(rng.integers(1, 14)), max_parents=3, states=(1, 4), deterministic=0.2, seed=seed
        )
    row = model.sample(1, seed=seed).iloc[0]
    given, do = {}, {}
    for name in model.variables:
        states, draw = model.states(name), rng.random()
        if draw < 0.15:
            given[name] = row[name]
        elif draw < 0.25 and len(states) > 1:
            others = [s for s in states if s != row[name]]
            given[name] = mk.Not(*others[: int(rng.integers(1, len(others) + 1))])
        elif draw < 0.35:
            weights = 0.05 + rng.random(len(states))
            weights[(states.index(row[name]) + 1) % len(states)] *= len(states) == 1 or rng.random() < 0.5
            given[name] = weights.tolist()
        elif draw < 0.45 and seed % 4 in (1, 2):
            do[name] = states[int(rng.integers(len(states)))]
    return model, given, do


def without_zeros(told):
    """Return findings as a page may say them: a state without a weight has weight zero."""
    return {
        name: {"weights": {s: w for s, w in said["weights"].items() if w}} if "weights" in said else said
        for name, said in told.items()
    }


def log_weight(model, given, states):
    """Return the logarithm of what the tables and the findings say of one state of every variable."""
    total = model.log_partition(given=states)
    for name, said in given.items():
        if isinstance(said, mk.Not):
            total += 0.0 if states[name] not in said.states else -np.inf
        elif isinstance(said, list):
            total += np.log(said[model.states(name).index(states[name])])
        else:
            total += 0.0 if states[name] == said else -np.inf
    return total


def test_marginals_evidence_and_explanation_are_those_of_the_library():
    asked = [random_question(seed) for seed in range(32)]
    told = [
        (page_tables(m), without_zeros(told_findings(m, g)), {n: str(s) for n, s in d.items()})
        for m, g, d in asked
    ]
    worst, answered = 0.0, 0
    for (model, given, do), found in zip(asked, in_the_page(told), strict=True):
        acted = model.do(do) if do else model
        try:
            expected = acted.log_partition(given=given)
        except mk.errors.ImpossibleEvidence:
            expected = -np.inf
        if expected == -np.inf:
            assert "probability zero" in found["error"]
            continue
        answered += 1
        assert found["logEvidence"] == pytest.approx(expected, abs=1e-9)
        marginals = acted.marginals(given=given)
        for name, p in zip(model.variables, found["marginals"], strict=True):
            if name in marginals:
                worst = max(worst, float(np.abs(marginals[name].values - p).max()))
            else:
                assert p[model.states(name).index(given[name])] == pytest.approx(1.0)
        best = acted.map(given=given)
        assert found["logWeight"] == pytest.approx(best.log_prob + acted.log_partition(), abs=1e-9)
        states = {n: model.states(n)[k] for n, k in zip(model.variables, found["states"], strict=True)}
        assert log_weight(acted, given, states) == pytest.approx(found["logWeight"], abs=1e-9)
    assert worst < 1e-10
    assert answered > 24


def test_findings_that_are_improbable_together_leave_the_range_of_no_number():
    chain = mk.BayesianNetwork()
    for k in range(300):
        chain.add(
            f"x{k}",
            states=["a", "b"],
            parents=[f"x{k - 1}"] if k else [],
            p=[[0.9, 0.1], [0.2, 0.8]] if k else [0.5, 0.5],
        )
    given = {f"x{k}": [3e-5, 1e-5] if k % 3 else [1e-5, 4e-5] for k in range(300)}
    [found] = in_the_page([(page_tables(chain), told_findings(chain, given), {})])
    assert found["logEvidence"] == pytest.approx(chain.log_partition(given=given), rel=1e-12)
    assert found["logEvidence"] < -3000
    expected = chain.marginals(given=given)
    for name, p in zip(chain.variables, found["marginals"], strict=True):
        assert p == pytest.approx(expected[name].values, abs=1e-10)


def test_the_cost_said_beforehand_is_what_the_page_needs():
    models = [mk.examples.asia(), mk.generators.random_bayesian_network(40, states=(2, 4), seed=1)]
    for model, found in zip(models, in_the_page([(page_tables(m), {}, {}) for m in models]), strict=True):
        assert found["cost"] == pytest.approx(elimination_cells(model), rel=0.5)


def test_bad_findings_are_one_sentence():
    asia = page_tables(mk.examples.asia())
    found = in_the_page(
        [
            (asia, {"lung": {"state": "yes"}, "either": {"state": "no"}}, {}),
            (asia, {"lung": {"state": "maybe"}}, {}),
            (asia, {"liver": {"state": "yes"}}, {}),
            (asia, {"lung": {"not": ["no", "maybe"]}}, {}),
            (asia, {"lung": {"weights": {"yes": 0.5, "maybe": 0.5}}}, {}),
            (asia, {}, {"lung": "maybe"}),
            (asia, {}, {"liver": "yes"}),
            (asia, {"lung": {"value": 3}}, {}),
        ]
    )
    assert [f["error"] for f in found] == [
        "the findings contradict each other: together they have probability zero",
        '"lung" has no state "maybe"',
        'the model has no variable "liver"',
        '"lung" has no state "maybe"',
        '"lung" has no state "maybe"',
        '"lung" has no state "maybe"',
        'the model has no variable "liver"',
        '"lung" has states; a number says nothing about it',
    ]


def test_models_of_numbers_and_large_ones_have_no_tables_for_a_page():
    numbers = mk.BayesianNetwork()
    numbers.add("x", mk.LinearGaussian(0.0, {}, 1.0))
    assert page_tables(numbers) is None
    grid = mk.generators.ising_grid(20, 20, coupling=0.3, seed=0)
    assert elimination_cells(grid) > 1e5
    assert page_tables(grid, most=1e5) is None
