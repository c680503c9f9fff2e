"""Joint posteriors from an engine that only gives marginals: one run after the other, in the time of one."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

import markovia as mk
from markovia.inference.approximate import Approximate


@dataclass(frozen=True)
class Noting(Approximate):
    """Exact marginals, and a note of the time limit of every run."""

    time_limit: float | None = None
    limits: list = field(default_factory=list)

    name: ClassVar[str] = "noting"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals"})

    def marginals(self, problem, targets):
        self.limits.append(self.time_limit)
        return mk.engines.Enumeration().marginals(problem, targets)


def test_the_joint_is_the_product_of_conditionals():
    asia = mk.examples.asia()
    found = asia.query(["lung", "bronc", "dysp"], given={"xray": "yes"}, engine=Noting())
    expected = asia.query(["lung", "bronc", "dysp"], given={"xray": "yes"}, engine="enumeration")
    np.testing.assert_allclose(found.values, expected.values, atol=1e-12)


@pytest.mark.parametrize(
    ("targets", "runs"), [(["lung"], 1), (["lung", "tub"], 3), (["lung", "tub", "dysp"], 7)]
)
def test_the_runs_share_the_time_limit(targets, runs):
    engine = Noting()
    mk.examples.asia().query(targets, engine=Noting(7.0, engine.limits))
    assert len(engine.limits) == runs
    assert sum(engine.limits) == pytest.approx(7.0)


def test_without_a_limit_no_run_has_one():
    engine = Noting()
    mk.examples.asia().query(["lung", "tub"], engine=engine)
    assert engine.limits == [None] * 3


def test_too_many_runs_are_refused_before_the_first():
    engine = Noting()
    wide = mk.MarkovNetwork(
        {f"x{i}": 2 for i in range(20)}, [mk.Factor([f"x{i}" for i in range(2)], np.ones((2, 2)))]
    )
    with pytest.raises(mk.errors.TooLarge, match="would run"):
        wide.query([f"x{i}" for i in range(18)], engine=engine)
    assert engine.limits == []
