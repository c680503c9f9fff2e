"""What is loaded or compiled decides how soon an answer is there, and nothing else about it."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import TooLarge
from markovia.inference.choosing import auto
from markovia.inference.exact.variable_elimination import VariableElimination
from markovia.inference.sliced import sliced_elimination
from markovia.kernels.compiled_code import awaited, worth_loading

STATES = ["nothing compiled", "on disk", "loaded"]


@pytest.fixture(params=STATES)
def kernels(request, monkeypatch):
    monkeypatch.setattr(auto, "kernels_loaded", lambda: request.param == "loaded")
    monkeypatch.setattr(auto, "kernels_on_disk", lambda: request.param == "on disk")
    monkeypatch.setattr(auto, "_spent", 0.0)
    return request.param


def test_exact_answers_are_the_same_numbers(kernels):
    model = mk.examples.asia()
    given = {"xray": "yes"}
    best = model.map(given=given)
    assert best["either"] == "yes"
    assert model.query("lung", given=given)["yes"] == pytest.approx(0.48871140, abs=1e-8)
    assert model.log_evidence(given) == pytest.approx(np.log(0.11029004), abs=1e-7)
    by_tree = model.marginals(given=given, engine="junction-tree")
    for name, answer in model.marginals(given=given).items():
        assert answer.info.exact
        assert np.allclose(answer.values, by_tree[name].values, rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_a_time_limit_turns_exact_to_approximate_at_the_same_point(kernels, monkeypatch):
    grid = mk.generators.ising_grid(5, 5, coupling=0.2)
    monkeypatch.setattr(auto, "NUMPY_RATE", 50.0)  # the grid has some hundred entries
    monkeypatch.setattr(auto, "TREE_RATE", 150.0)
    monkeypatch.setattr(sliced_elimination, "CPU_ENTRIES", 75.0)
    assert grid.query("x2_2", engine=mk.engines.Auto(time_limit=1.0)).info.engine == "join-graph"
    with pytest.raises(TooLarge):
        grid.query("x2_2", engine=mk.engines.Auto(time_limit=1.0, approximate=False))
    for limit in (1000.0, None):
        answer = grid.query("x2_2", engine=mk.engines.Auto(time_limit=limit))
        assert answer.info.engine in ("junction-tree", "variable-elimination")


def test_a_tree_answers_where_elimination_has_too_little_memory(kernels, monkeypatch):
    def refuse(self, *given):
        raise TooLarge("no room", bytes=1.0, operations=1.0)

    monkeypatch.setattr(VariableElimination, "_fitting", refuse)
    answer = mk.examples.asia().query("lung")
    assert answer.info.exact
    assert answer.info.engine == "junction-tree"


def test_small_answers_wait_for_no_compiler(monkeypatch):
    monkeypatch.setattr(auto, "kernels_loaded", lambda: False)
    monkeypatch.setattr(auto, "kernels_on_disk", lambda: False)
    monkeypatch.setattr(auto, "_spent", 0.0)
    assert mk.examples.asia().query("lung").info.engine == "variable-elimination"
    chain = mk.generators.ising_grid(1, 200, coupling=0.2)
    assert chain.query("x0_0").info.engine == "variable-elimination"


@pytest.mark.parametrize("grid", [(2, 3), (2, 60)])
def test_nothing_is_compiled_or_loaded_while_another_process_compiles(grid, monkeypatch):
    monkeypatch.setattr(auto, "kernels_loaded", lambda: False)
    monkeypatch.setattr(auto, "kernels_on_disk", lambda: True)
    monkeypatch.setattr(auto, "_spent", 1e6)
    model = mk.generators.ising_grid(*grid, coupling=0.2)
    with awaited():
        assert model.query("x0_0").info.engine == "variable-elimination"
        assert not worth_loading("markovia.kernels.none:none", 1e6, 0.1, 1.0)
    assert model.query("x0_0").info.engine == "junction-tree"
    assert worth_loading("markovia.kernels.none:none", 1e6, 0.1, 1.0)
