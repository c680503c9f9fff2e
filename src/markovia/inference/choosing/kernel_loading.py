"""Compiling the kernels of approximate engines beforehand, by asking each engine tiny questions.

The models have what sends engines through their different kernels: binary pairs, more than two states, a directed model with
evidence, a loop. Cost: some minutes for all engines the first time, a few seconds once the code is on disk.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, MarkoviaError
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.evidence import read_evidence
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.engine import Engine, engine_names, get_engine
from markovia.inference.exact.long_order_search import OrderCost, long_search
from markovia.inference.problem import Problem
from markovia.inference.sliced.compiled_tables import CompiledTables
from markovia.inference.sliced.product_layout import Operand, ProductLayout
from markovia.kernels.compiled_code import preferred

SHORT = {
    "draws": 8, "burn_in": 2, "chains": 2, "samples": 16, "max_iterations": 3, "time_limit": 0.2, "progress": False,
    "seed": 0,
}  # fmt: skip
"""Settings that make an answer quick, for the engines that have them."""
OTHERS = {
    "loopy-bp": [{"schedule": "residual"}, {"schedule": "flooding"}, {"domain": "log"}],
    "gibbs": [{"scan": "chromatic"}, {"blocks": "trees"}, {"blocks": "red-black"}],
}
"""Other settings that need kernels of their own."""


def load_engines(engines: str | Sequence[str]) -> None:
    """Ask engines tiny questions, so that all they need is compiled."""
    if isinstance(engines, str):
        names = engine_names() if engines == "all" else [engines]
    elif isinstance(engines, Iterable):
        names = list(engines)
    else:
        raise InvalidArgument(f"engines are names, or 'all', not {engines!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for engine in [_short(get_engine(name)) for name in names]:
            if engine.name == "sliced-elimination":
                _load_wide()
            for settings in ({}, *OTHERS.get(engine.name, [])):
                asked = replace(engine, **settings)  # type: ignore[type-var]
                for problem in _problems():
                    _ask(asked, problem)


def _load_wide() -> None:
    """Search an order and multiply tables as if they were large."""
    with preferred():
        ring = [(v, (v + 1) % 6) for v in range(6)]
        long_search(ring, [2] * 6, steps=1e3, cost=OrderCost(bucket=0.0))
        machine = CompiledTables()
        machine.product(ProductLayout((2,), (2,), ((2, 1),)), [Operand(machine.put(np.ones((2, 2))))])


def _short(engine: Engine) -> Engine:
    known: dict[str, Any] = getattr(engine, "__dataclass_fields__", {})
    for name, value in SHORT.items():
        if name in known:
            try:
                engine = replace(engine, **{name: value})  # type: ignore[type-var]
            except InvalidArgument:  # an engine may want more of something
                continue
    return engine


def _ask(engine: Engine, problem: Problem) -> None:
    """Ask all questions; an engine may refuse some, or some kinds of models."""
    targets = problem.free
    questions: list[Callable[[], object]] = [
        lambda: engine.marginals(problem, targets),
        lambda: engine.joint(problem, targets[:2]),
        lambda: engine.log_mass(problem),
        lambda: engine.best(problem, targets, 1),
        lambda: engine.best(problem, targets[:1], 1),
        lambda: engine.sample(problem, 2, np.random.default_rng(0)),
    ]
    for question in questions:
        try:
            question()
        except MarkoviaError:
            continue


def _problems() -> Iterator[Problem]:
    """Yield a loop of binary variables, a triangle of three states with a wider table, and a directed model."""
    for k in (2, 3):
        square = [Variable(n, k) for n in "abcd"]
        attract = np.where(np.eye(k) > 0, 2.0, 1.0)
        sides = [(0, 1), (1, 2), (2, 3), (0, 3)]
        factors = [Factor.of((square[i], square[j]), attract.copy()) for i, j in sides]
        factors += [Factor.of((v,), np.linspace(1.0, 1.5, k)) for v in square]
        if k > 2:
            factors.append(
                Factor.of((square[0], square[1], square[2]), np.linspace(0.5, 1.0, k**3).reshape(k, k, k))
            )
        yield Problem({v.name: v for v in square}, factors, {}, {})
    a, b, c = (Variable(n, 2) for n in "abc")
    rows = np.array([[0.9, 0.1], [0.2, 0.8]])
    pieces = [
        ConditionalTable.of(a, (), np.array([0.4, 0.6])),
        ConditionalTable.of(b, (a,), rows.copy()),
        ConditionalTable.of(c, (a, b), np.stack([rows, rows[::-1]])),
    ]
    variables = {v.name: v for v in (a, b, c)}
    yield Problem(variables, pieces, read_evidence(variables, {"c": 1}), {})


if __name__ == "__main__":
    load_engines([name for name in engine_names() if not getattr(get_engine(name), "exact", False)])
