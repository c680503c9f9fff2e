"""Compiling beforehand, by name or everything."""

import os
import subprocess
import sys

import pytest

import markovia as mk
from command_line import answer, complaint
from markovia.inference.engine import engine_names
from markovia.models.compiling import LEARNERS, _names


def test_everything_is_every_engine_and_every_learner():
    assert {*_names("all")} == {*engine_names(), *LEARNERS} - {"auto"}


@pytest.mark.slow
def test_named_parts_are_compiled_to_disk_in_other_processes(tmp_path):
    # by itself, as processes that other tests left would write where they were told to when they began
    command = [sys.executable, "-m", "markovia", "compile", "enumeration", "sparse-graphs"]
    subprocess.run(command, check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
    files = {os.path.basename(p).partition("-")[0] for p in tmp_path.glob("markovia/*")}
    assert "structure.graphical_lasso" in files


@pytest.mark.parametrize(
    ("what", "sentence"),
    [("loopy_bp", "did you mean 'loopy-bp'"), ([], "at least one"), (3, "'all' or names")],
)
def test_a_wrong_name_is_refused_before_anything_runs(what, sentence):
    with pytest.raises(mk.errors.InvalidArgument, match=sentence):
        mk.compile(what)


def test_the_command_line_compiles_what_it_is_asked_for():
    assert answer("compile", "enumeration")["seconds"] >= 0.0
    assert "did you mean 'gibbs'" in complaint("compile", "gibs")
