"""A first run, with an empty compilation cache, gets the same engines, numbers and graphs as any later one."""

import json
import os
import subprocess
import sys

import pytest

from places import PROJECT

ASKED = """
import json, sys, warnings
import numpy as np
import markovia as mk

warnings.simplefilter("error", mk.errors.ConvergenceWarning)
seen = {}


def note(name, answer, numbers):
    seen[name] = [answer, [float(x) for x in np.ravel(numbers)]]


asia = mk.examples.asia()
post = asia.query("lung", given={"xray": "yes"})
note("a small query", post.info.exact, [post["yes"]])
wide = mk.BayesianNetwork("; ".join(f"x{i}->x{i+1}; x{i}->x{i+2}; x{i}->x{i+5}" for i in range(60)), tables="random", seed=1)
found = wide.marginals(given={"x40": 1})
note("exact marginals", [found["x3"].info.exact], [found[n][1] for n in wide.variables if n != "x40"])
note("exact log evidence", "", wide.log_evidence({"x40": 1, "x3": 0}))

grid = mk.generators.ising_grid(60, 60, coupling=0.2, field="random", seed=0)
post = grid.query("x30_30")
note("a query of a grid", [post.info.engine, post.info.exact, post.info.converged], [post[1]])
potts = mk.generators.potts_grid(40, 40, states=3, coupling=0.4, field="random", seed=0)
best = potts.map(time_limit=3)
note("map of a grid in three seconds", [best.info.engine, round(best.gap, 6)], [best.log_prob])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    note("log partition of a grid", "", grid.log_partition())

rows = asia.sample(3000, seed=0)
learned = mk.learn_structure(rows, "hill-climb", seed=0, time_limit=5)
note("learn_structure", str(learned.graph), [learned.score])
learned = mk.learn_structure(rows, "boss", seed=0, time_limit=5)
note("boss", str(learned.graph), [learned.score])
rows.loc[::3, "smoke"] = None
fitted = mk.BayesianNetwork(asia.graph).fit(rows, prior="bdeu")
note("fit", [fitted.fit_.method, fitted.fit_.converged], [fitted.query("lung", given={"smoke": "yes"})["yes"]])
rng = np.random.default_rng(0)
x = [rng.normal(size=(6, 3)) for _ in range(5)]
y = [(s[:, 0] > 0).astype(int) for s in x]
crf = mk.crf.CRF(random_state=0).fit(x, y)
note("crf", [p.tolist() for p in crf.predict(x)], np.concatenate(crf.predict_proba(x)))
print(json.dumps(seen))
"""


def run(code, cache, *arguments):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, *arguments, code] if arguments else [sys.executable, "-c", code],
        capture_output=True, text=True, env=environment, timeout=600, cwd=PROJECT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    return tmp_path_factory.mktemp("compiled")


@pytest.mark.slow
def test_a_first_run_gets_the_same_engines_and_numbers_as_a_second(empty):
    first, second = (json.loads(run(ASKED, empty).stdout) for _ in range(2))
    assert any(empty.rglob("*.nbi"))
    for name, (answer, numbers) in first.items():
        assert second[name][0] == answer, name
        assert second[name][1] == pytest.approx(numbers, rel=1e-9, abs=1e-12), name
    assert first["a query of a grid"][0] == ["loopy-bp", False, True]
    assert first["map of a grid in three seconds"][0][1] < 1.0


@pytest.mark.slow
def test_the_readme_is_true_with_an_empty_cache(tmp_path):
    run(str(PROJECT / "README.md"), tmp_path, "-m", "doctest")


def test_small_answers_and_the_demo_compile_nothing(tmp_path):
    code = "import markovia as mk; mk.examples.asia().marginals({'xray': 'yes'}); mk.examples.asia().map()"
    run(code, tmp_path)
    run("demo", tmp_path, "-m", "markovia")
    assert not any(tmp_path.rglob("*.nbi"))


@pytest.mark.slow
def test_waiting_for_the_compiler_is_said_once_on_a_terminal_and_not_without_progress(tmp_path):
    code = """
import sys, markovia as mk
sys.stderr.isatty = lambda: True
loop = mk.MarkovNetwork.ising({("a", "b"): 0.5, ("b", "c"): 0.5, ("a", "c"): 0.3})
loop.marginals(engine="gibbs" if sys.argv[-1] != "quiet" else mk.engines.Gibbs(draws=10, progress=False))
"""
    loud = run(code, tmp_path / "loud").stderr
    lines = [line for line in loud.splitlines() if line.startswith("compiling ")]
    assert lines
    assert len(lines) == len(set(lines))
    assert all("once an installation, about " in line for line in lines)
    quiet = run(code.replace('"gibbs" if sys.argv[-1] != "quiet" else ', ""), tmp_path / "quiet").stderr
    assert "compiling" not in quiet
