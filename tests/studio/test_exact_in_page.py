"""What a page computes by itself is what the library answers, on random models with all kinds of findings."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import markovia as mk
from markovia.studio.sharing.in_page import elimination_cells, page_tables, told_findings

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
            given[name] = mk.Not(next(s for s in states if s != row[name]))
        elif draw < 0.35:
            given[name] = (0.05 + rng.random(len(states))).tolist()
        elif draw < 0.45 and seed % 4 in (1, 2):
            do[name] = states[int(rng.integers(len(states)))]
    return model, given, do


def test_marginals_evidence_and_explanation_are_those_of_the_library():
    asked = [random_question(seed) for seed in range(32)]
    told = [(page_tables(m), told_findings(m, g), {n: str(s) for n, s in d.items()}) for m, g, d in asked]
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
    assert worst < 1e-10
    assert answered > 24


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
            (asia, {"lung": {"value": 3}}, {}),
        ]
    )
    assert [f["error"] for f in found] == [
        "the findings contradict each other: together they have probability zero",
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
