"""Public signatures are typed: a strict type checker passes a user's script, and finds what is misspelt in one."""

import importlib.util
import inspect
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import markovia as mk
from markovia.runtime import ports

HERE = Path(__file__).parent
CACHE = HERE.parent / ".mypy_cache" / "scripts"
SCRIPT = HERE / "typing_of_a_script.py"
MISSPELT = {
    "mk.BayesNetwork()": "BayesNetwork",
    "bn.qurey('rain')": "qurey",
    "bn.query('rain', evidence={'wet': 'yes'})": "evidence",
    "bn.query('rain').entrpy()": "entrpy",
    "bn.map().log_probability": "log_probability",
    "bn.map(m=2).log_prob": "log_prob",
    "bn.marginals()['rain'].to_pnadas()": "to_pnadas",
    "bn.plot(titel='garden')": "titel",
    "bn.query('rain').plot(titel='garden')": "titel",
    "mk.load('garden.bif').qurey('rain')": "qurey",
    "mk.load('garden.bif', kind=mk.BayesianNetwork).dof(rain='yes')": "dof",
    "bn.fit({}).fit_likelihood": "fit_likelihood",
    "mk.learn_structure({}).grahp": "grahp",
    "mk.learn_structure({}).plot(titel='garden')": "titel",
    "mk.local.NoisyOrr({})": "NoisyOrr",
    "mk.engines.Gibs()": "Gibs",
    "mk.results.Posterio": "Posterio",
    "mk.MarkovNetwork().fitt({})": "fitt",
}


def checked(*paths):
    """Return the lines that a strict mypy prints about files, and its status."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--no-error-summary",
        *map(str, paths),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(mk.__file__).parent.parent
    )
    return done.stdout.splitlines(), done.returncode


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_strict_type_checker_passes_a_users_script_and_finds_each_misspelt_word(tmp_path):
    script = tmp_path / "misspelt.py"
    lines = ["import markovia as mk", "bn = mk.BayesianNetwork('rain->wet')", *MISSPELT]
    script.write_text("\n".join(lines) + "\n")
    said, _ = checked(SCRIPT, script)
    assert not [line for line in said if line.startswith(str(SCRIPT))]
    found = {
        int(line.split(":")[1]): line for line in said if line.startswith(str(script)) and ": error:" in line
    }
    for at, (code, word) in enumerate(MISSPELT.items(), start=3):
        assert word in found.get(at, ""), f"nothing was said about {code}"


def test_the_script_that_is_checked_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    script = runpy.run_path(str(SCRIPT))
    bn = script["stored"](script["built"](), tmp_path)
    assert bn.allclose(script["built"]())
    assert script["asked"](bn) == pytest.approx(script["asked"](script["built"]()))
    assert script["drawn"](bn).get_title() == "garden"
    assert script["undirected"]().fit_.n_rows == 3


PLOTS = {
    "plot-model": mk.BayesianNetwork.plot,
    "plot-posterior": mk.results.Posterior.plot,
    "plot-comparison": mk.graphs.GraphComparison.plot,
    "plot-edge-confidence": mk.results.EdgeConfidence.plot,
    "plot-trace": mk.results.Diagnostics.plot_trace,
    "plot-autocorrelation": mk.results.Diagnostics.plot_autocorrelation,
    "plot-bias-variance": mk.learning.BiasVariance.plot,
    "plot-calibration": mk.learning.Calibration.plot,
    "plot-table": mk.Factor.plot,
    "plot-marginals": mk.results.Marginals.plot,
    "plot-bounds": mk.causal.BoundedPosterior.plot,
    "plot-draws": mk.results.DrawnPosterior.plot,
    "plot-convergence": mk.results.Info.plot_convergence,
    "plot-dynamic": mk.DynamicBayesianNetwork.plot,
    "plot-hidden-states": mk.HMM.plot,
    "plot-clusters": mk.GaussianMixture.plot,
    "plot-topics": mk.LDA.plot_topics,
}


@pytest.mark.parametrize(
    ("port", "method"),
    [
        *PLOTS.items(),
        ("plot-graph", mk.graphs.JunctionTree.plot),
        ("plot-graph", mk.results.LearnedStructure.plot),
    ],
)
def test_a_plot_method_shows_the_options_of_the_function_behind_it(port, method):
    own, behind = (list(inspect.signature(f).parameters.values())[1:] for f in (method, ports.resolve(port)))
    assert [(p.name, p.default, p.kind) for p in own] == [(p.name, p.default, p.kind) for p in behind]


def test_a_file_that_holds_another_kind_is_refused(tmp_path):
    mk.save(mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [3, 5])]), tmp_path / "tiny.uai")
    with pytest.raises(
        mk.errors.InvalidArgument, match=r"tiny\.uai holds a MarkovNetwork, not a BayesianNetwork"
    ):
        mk.load(tmp_path / "tiny.uai", kind=mk.BayesianNetwork)
    assert mk.load(tmp_path / "tiny.uai", kind=mk.MarkovNetwork).variables == ["x0"]
