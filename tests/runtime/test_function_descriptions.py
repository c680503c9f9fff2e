"""Which questions may share compiled code: a difference that code depends on must show in the digest."""

import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.inference.densities.program.program import program_of
from markovia.runtime.function_descriptions import described

FACTOR = 1.0


def key(model, given, reparameterize="auto", missing="refuse"):
    return program_of(model._problem(given, missing=missing), reparameterize).density.key


def schools():
    m = mk.BayesianNetwork()
    m.add("tau", dist.HalfCauchy(5))
    m.add("theta", lambda tau: dist.Normal(0, tau), plate="school")
    m.add("y", lambda theta: dist.Normal(theta, 1.0), plate="school")
    return m


def test_new_data_of_one_shape_share_code():
    assert key(schools(), {"y": np.zeros(3)}) == key(schools(), {"y": np.ones(3)})
    assert key(schools(), {"y": np.zeros(3)}) != key(schools(), {"y": np.zeros(4)})


def test_centred_and_non_centred_code_differ():
    data = {"y": np.zeros(3)}
    assert key(schools(), data, "none") != key(schools(), data, "all")


def test_code_for_missing_entries_differs_where_others_are_missing():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("x", lambda mu: dist.Normal(mu, 1), plate="row")
    m.add("y", lambda x: dist.StudentT(4, x, 1.0), plate="row")
    y = np.array([1.0, 2.0, 3.0])
    first, last = np.array([np.nan, 2.0, 3.0]), np.array([1.0, 2.0, np.nan])
    assert key(m, {"x": first, "y": y}, missing="impute") != key(m, {"x": last, "y": y}, missing="impute")


def test_a_global_that_an_inner_function_reads_is_part_of_the_code(monkeypatch):
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("y", lambda mu: dist.Normal(jax.vmap(lambda t: t * FACTOR)(mu * np.ones(3)), 1.0), plate="row")
    before = key(m, {"y": np.zeros(3)})
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert key(m, {"y": np.zeros(3)}) != before


def scaled(factor, x):
    return factor * x


def shifted(factor, x):
    return factor + x


@dataclass(frozen=True, slots=True)
class Link:
    factor: float

    def there(self, x):
        return self.factor * x

    def back(self, x):
        return x / self.factor


DIFFERENT = {
    "partials": (partial(scaled, 2), partial(scaled, 3), partial(shifted, 2), partial(scaled, factor=2)),
    "methods": (Link(2.0).there, Link(2.0).back, Link(3.0).there),
    "slots": (Link(2.0), Link(3.0)),
    "compiled functions": (jax.jit(scaled), jax.jit(shifted), jax.jit(partial(scaled, 2))),
    "functions a library wraps": (jnp.vectorize(scaled), jnp.vectorize(shifted), lru_cache(scaled)),
    "types of one value": (1, 1.0, True, "1", (1,), [1], np.float32(1), np.array(1.0)),
    "nesting": (("a", ("b", "c")), ("a", "b", "c"), (("a", "b"), "c"), ("a,b", "c")),
    "distributions": (dist.Normal(0.0, 1.0), dist.Normal(0.0, 2.0), dist.LogNormal(0.0, 1.0)),
    "depth": tuple(eval("[" * 12 + text + "]" * 12) for text in ("1", "2")),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_values_that_compute_different_things_are_described_differently(kind):
    said = [described(value) for value in DIFFERENT[kind]]
    assert len(set(said)) == len(said)
    assert said == [described(value) for value in DIFFERENT[kind]]


def test_two_questions_with_different_partials_do_not_share_an_answer():
    found = []
    for factor in (1.0, 3.0):
        m = mk.BayesianNetwork()
        m.add("mu", dist.Normal(0, 5))
        link = partial(scaled, factor)
        m.add("y", lambda mu, link=link: dist.StudentT(30.0, link(mu), 1.0), plate="row")
        found.append(key(m, {"y": np.array([6.0, 6.5])}))
    assert found[0] != found[1]


def test_a_function_that_calls_itself_has_a_description():
    def count(n):
        return n if n < 1 else count(n - 1)

    assert described(count) == described(count)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import users_links
from users_links.curves import Curve, bend
from markovia.runtime.function_descriptions import described

def inside(x):
    from users_links.curves import bend
    return bend(x)

forms = (lambda x: users_links.curves.bend(x), lambda x: bend(x), lambda x: Curve().height(x), Curve(), inside)
print([described(form).hex() for form in forms])
"""
CURVES = """
def turn(x):
    return {number} * x

def bend(x):
    return turn(x) + 1

class Base:
    def height(self, x):
        return turn(x)

class Curve(Base):
    pass
"""


@pytest.mark.slow
def test_a_users_module_that_was_edited_is_compiled_again(tmp_path):
    package = tmp_path / "users_links"
    package.mkdir()
    (package / "__init__.py").write_text("from users_links import curves\n")
    said = []
    for number in (2, 2, 3):  # of the same length, within one second: only the text tells them apart
        (package / "curves.py").write_text(CURVES.format(number=number))
        command = [sys.executable, "-B", "-c", SCRIPT, str(tmp_path)]
        said.append(eval(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    assert said[0] == said[1]
    assert all(a != b for a, b in zip(said[1], said[2], strict=True))
