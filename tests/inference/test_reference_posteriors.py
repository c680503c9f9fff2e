"""Posteriors of the public posteriordb collection, against their reference summaries."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import markovia as mk
from markovia.inference.markov_chains.diagnostics import ess
from places import BENCHMARKS

FOLDER = BENCHMARKS / "posteriors"
HOME = Path(__file__).resolve().parents[2] / "benchmarks" / "reference_posteriors.py"
QUICK = {"eight_schools-eight_schools_noncentered"}

pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the reference posteriors are not here"),
    pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning"),
]


def models():
    spec = importlib.util.spec_from_file_location("reference_posteriors", HOME)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = sorted(p.name.removesuffix(".json.gz") for p in FOLDER.glob("*.json.gz")) if FOLDER.is_dir() else []


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in NAMES]
)
def test_means_and_spreads_are_those_of_the_reference(name):
    home = models()
    data, reference = home.read(FOLDER, name)
    m, given = home.MODELS[name](data)
    nodes = sorted({home.place(r)[0] for r in reference})
    post = m.query(nodes, given=given, engine=mk.engines.NUTS(draws=400, warmup=500, chains=4, seed=1))
    for parameter, row in reference.items():
        node, index = home.place(parameter)
        x = post.draws[node][(slice(None), slice(None), *index)]
        error = np.hypot(x.std() / np.sqrt(ess(x)), row["sd"] / 100)
        assert abs(x.mean() - row["mean"]) < 5 * error, parameter
        assert abs(x.std() / row["sd"] - 1) < 0.25, parameter
