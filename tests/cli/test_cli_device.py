"""`--device` beside `--engine`, and `markovia info` without a model: what there is to compute with."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import markovia as mk
from command_line import answer, complaint, run
from markovia.cli import installation as machine
from markovia.runtime import devices

CUDA_13_2 = 13020


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(devices, "_looked", lambda: (None, "there is none here"))
    monkeypatch.setattr(devices, "_said", set())


@pytest.fixture
def a_gpu(monkeypatch):
    """A GPU of 80 GiB, 60 of them free, and a stand-in for CuPy that tells of it."""
    told = SimpleNamespace(memGetInfo=lambda: (60 * 2**30, 80 * 2**30), runtimeGetVersion=lambda: CUDA_13_2)
    pool = SimpleNamespace(free_bytes=lambda: 0)
    cupy = SimpleNamespace(
        __version__="14.2.0", cuda=SimpleNamespace(runtime=told), get_default_memory_pool=lambda: pool
    )
    monkeypatch.setattr(devices, "_looked", lambda: (devices.Gpu("A100", 80 * 2**30), ""))
    monkeypatch.setattr(devices, "cp", cupy)
    monkeypatch.setattr(machine, "cp", cupy)
    return told


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "rows.csv"
    mk.examples.asia().sample(20, seed=0).to_csv(path, index=False)
    return str(path)


# -- --device ----------------------------------------------------------------------------------------------------------


def words_of(data: str) -> dict[str, list[str]]:
    return {
        "query": ["query", "asia", "lung", "--given", "xray=yes"],
        "joint": ["query", "asia", "lung", "bronc", "--joint"],
        "map": ["map", "asia", "--given", "xray=yes", "-m", "2"],
        "sample": ["sample", "asia", "-n", "5", "--seed", "1", "--given", "xray=yes"],
        "score": ["score", "asia", data],
        "predict": ["predict", "asia", data, "--target", "lung"],
        "predict --proba": ["predict", "asia", data, "--target", "lung", "--proba"],
    }


def plain(told: dict) -> dict:
    """Return an answer without what may differ from run to run."""
    return {k: v for k, v in told.items() if k != "info"}


@pytest.mark.parametrize("command", words_of(""))
def test_commands_that_ask_engines_take_a_device(command: str, data: str):
    words = words_of(data)[command]
    usual = plain(answer(*words, "--engine", "junction-tree"))
    assert plain(answer(*words, "--engine", "junction-tree", "--device", "cpu")) == usual
    assert complaint(*words, "--device", "cuda") == "markovia: --device is cpu or gpu, not 'cuda'"
    refused = complaint(*words, "--engine", "enumeration", "--device", "gpu")
    assert refused == (
        "markovia: engine 'enumeration' runs on the processor only; leave --device out, or use --engine auto"
    )


@pytest.mark.parametrize("command", words_of(""))
def test_the_missing_gpu_is_one_warning_beside_the_answer(command: str, data: str, no_gpu):
    words = words_of(data)[command]
    result = run(*words, "--json", "--device", "gpu")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        'markovia: warning: device="gpu": there is none here; the processor answers'
    ]
    assert plain(json.loads(result.stdout)).keys() == plain(answer(*words)).keys()


def test_a_word_that_is_nearly_a_device_is_guessed():
    assert complaint("query", "asia", "lung", "--device", "GPU").endswith("(did you mean 'gpu'?)")


def test_a_device_completes():
    told = subprocess.run(
        [sys.executable, "-m", "markovia"],
        env={
            **dict(os.environ),
            "_MARKOVIA_COMPLETE": "complete_zsh",
            "_TYPER_COMPLETE_ARGS": "markovia query asia lung --device g",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert '"gpu"' in told.stdout
    assert '"cpu"' not in told.stdout


def test_the_list_of_engines_says_which_run_on_the_gpu():
    has = {e["name"]: e["gpu"] for e in answer("engines")["engines"]}
    assert has["auto"]
    assert has["sliced-elimination"]
    assert not has["enumeration"]
    last = " ".join(run("engines").stdout.split())
    assert "--device gpu is for auto, " in last


# -- info without a model ----------------------------------------------------------------------------------------------


def test_info_describes_the_installation(no_gpu):
    told = answer("info")
    assert told["version"] == mk.__version__
    assert told["python"] == ".".join(map(str, sys.version_info[:3]))
    assert told["libraries"].keys() == {"numpy", "numba", "jax"}
    assert told["libraries"]["numpy"] == __import__("numpy").__version__
    assert told["threads"] >= 1
    assert 0 < told["memory_budget"] < told["memory_free"]
    assert told["memory_budget"] / told["memory_free"] == pytest.approx(0.8)
    assert (told["gpu"], told["why_no_gpu"]) == (None, "there is none here")
    assert {"exact elimination", "Gibbs sampling"} <= set(told["on_gpu"])


def test_info_says_why_there_is_no_gpu(no_gpu):
    told = run("info").stdout
    assert f"markovia {mk.__version__}" in " ".join(told.split())
    assert "none: there is none here" in told
    assert "for exact engines" in told
    assert "CuPy" not in told


def test_info_describes_the_gpu(a_gpu):
    told = answer("info")
    card = {"name": "A100", "memory": 80 * 2**30, "memory_free": 60 * 2**30, "cupy": "14.2.0", "cuda": "13.2"}
    assert (told["gpu"], told["why_no_gpu"]) == (card, None)
    shown = run("info").stdout
    assert "A100 with 80 GiB, 60 GiB free" in shown
    assert "14.2.0 on CUDA 13.2" in shown
    assert "none" not in shown


def test_info_of_a_gpu_whose_driver_fails_says_what_is_known(a_gpu):
    class CUDARuntimeError(Exception):
        __module__ = "cupy_backends.cuda.api.runtime"

    def fails():
        raise CUDARuntimeError("cudaErrorUnknown")

    a_gpu.memGetInfo = fails
    card = answer("info")["gpu"]
    assert (card["name"], card["memory_free"]) == ("A100", None)
    assert "A100 with 80 GiB" in run("info").stdout


def test_a_library_that_is_not_there_is_no_error(monkeypatch):
    monkeypatch.setattr(machine, "LIBRARIES", {**machine.LIBRARIES, "no-such-thing": "Nothing"})
    assert answer("info")["libraries"]["no-such-thing"] is None
    assert "Nothing       not installed" in run("info").stdout


def test_options_about_a_model_need_one():
    assert complaint("info", "--variables") == "markovia: --variables is about a model; name one"
    assert complaint("info", "--format", "bif") == "markovia: --format is about a model; name one"
    assert "the name of the model is empty" in complaint("info", "")


def test_describing_the_installation_loads_no_heavy_library():
    code = """
import atexit, sys
atexit.register(lambda: print([m for m in ("numba", "jax", "scipy", "pandas", "networkx") if m in sys.modules]))
from markovia.cli.app import app
app(["info"], prog_name="markovia")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
