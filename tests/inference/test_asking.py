"""The way from a model to an engine: kinds of pieces, and silence."""

import io
import sys
from dataclasses import is_dataclass

import pytest

import markovia as mk
from markovia.inference import engine as engines
from markovia.inference.engine import asking, get_engine
from markovia.inference.problem import Problem
from markovia.inference.result import Ranked, Record
from markovia.runtime import progress


class Strange(mk.Factor):
    """A piece of another kind than a table."""

    kind = "strange"
    __slots__ = ()


class Able:
    """An engine that treats it."""

    name, exact = "able", True
    kinds = frozenset({"table", "strange"})


def strange_problem():
    a = mk.Variable("a", [0, 1])
    return Problem({"a": a}, [Strange([a], [0.5, 0.5]), mk.Factor([a], [1.0, 2.0])], {})


def test_an_engine_refuses_pieces_of_a_kind_that_it_does_not_treat():
    problem = strange_problem()
    assert problem.kinds == {"table", "strange"}
    with pytest.raises(mk.errors.UnsupportedModel) as caught, asking(get_engine("gibbs"), problem, "joint"):
        pass
    assert str(caught.value) == "engine 'gibbs' treats pieces of kind table, not strange; no engine does"


def test_the_refusal_names_an_engine_that_treats_them(monkeypatch):
    monkeypatch.setitem(engines._REGISTRY, "able", f"{__name__}:Able")
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Able.__module__])
    with (
        pytest.raises(mk.errors.UnsupportedModel, match=r"use engine='able'$"),
        asking(get_engine("junction-tree"), strange_problem(), "sample"),
    ):
        pass
    with asking(Able(), strange_problem(), "best"):
        pass


def test_variables_have_a_domain_and_tables_a_kind():
    asia = mk.examples.asia()
    assert {asia.variable(name).domain for name in asia.variables} == {"states"}
    assert {piece.kind for piece in asia.pieces()} == {"table"}


class Terminal(io.StringIO):
    """A stream that people watch."""

    def isatty(self):
        return True


class Talkative:
    """An engine that says something on its way."""

    name, exact = "talkative", True
    kinds, answers = engines.TABLES, engines.QUESTIONS

    def __init__(self, progress):
        self.progress = progress
        self.inner = mk.engines.VariableElimination()

    def __getattr__(self, question):
        def ask(*args):
            progress.say_once("compiling")
            return getattr(self.inner, question)(*args)

        return ask


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, engine: model.query("rain", engine=engine),
        lambda model, engine: model.marginals(engine=engine),
        lambda model, engine: model.map(engine=engine),
        lambda model, engine: model.log_evidence({"wet": "yes"}, engine=engine),
        lambda model, engine: model.log_partition(engine=engine),
        lambda model, engine: model.sample(2, given={"wet": "yes"}, seed=0, engine=engine),
    ],
    ids=["query", "marginals", "map", "log_evidence", "log_partition", "sample"],
)
@pytest.mark.parametrize("shown", [None, False])
def test_progress_off_silences_everything_that_an_engine_says(monkeypatch, ask, shown):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_said", set())
    ask(mk.examples.sprinkler(), Talkative(shown))
    assert bool(terminal.getvalue()) == (shown is None)


@pytest.mark.parametrize("name", ["variable-elimination", "loopy-bp", "mean-field", "icm", "forward"])
def test_every_answer_carries_a_record(name):
    problem, engine = mk.examples.sprinkler()._problem(None), get_engine(name)
    if name == "icm":
        found = engine.best(problem, problem.free, 1)
        assert isinstance(found, Ranked)
    else:
        found = engine.marginals(problem, ["rain"])
    assert isinstance(found.record, Record)
    assert is_dataclass(found.record.details)
