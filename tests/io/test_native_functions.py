"""Models of function nodes in files: distributions by their numbers, functions by the name they are imported by."""

import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import ParseError, UnsupportedModel
from markovia.io.native.native_functions import written_form
from markovia.runtime.function_descriptions import described


def around(mu, tau):
    return dist.Normal(mu, tau)


def seen(theta, sigma):
    return dist.Normal(theta, sigma)


def step(before, rows):
    return dist.Categorical(rows[before])


@pytest.fixture
def model(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or _this_module())
    m = mk.BayesianNetwork(name="schools")
    m.add("rain", states=["no", "yes"], p=[0.8, 0.2])
    m.add("mu", dist.Normal(0, 5))
    m.add("tau", dist.HalfCauchy(5))
    m.add("beta", dist.Normal(0, 10).expand([3]))
    m.add("flat", dist.ImproperUniform(dist.constraints.positive, (), (2,)))
    m.add("cuts", dist.Ordered(dist.Normal(0, 1), size=2))
    m.add("theta", around, plate="school")
    m.add("sigma", mk.Input(), plate="school")
    m.add("y", seen, plate="school")
    m.add("rows", dist.Dirichlet(np.ones(2)), plate={"state": 2})
    m.add("z", step, plate="t", previous={"before": "z"}, first=dist.Categorical(probs=np.array([0.3, 0.7])))
    m.add("kind", states=["a", "b"], p=[[0.5, 0.5], [0.1, 0.9]], parents=["rain"], plate="school")
    return m


def _this_module():
    import types

    made = types.ModuleType(__name__)
    made.__dict__.update(globals())
    return made


def test_every_kind_of_node_comes_back(model, tmp_path):
    file = tmp_path / "model.json"
    model.save(file)
    back = mk.load(file)
    assert back.variables == model.variables
    assert back.edges == model.edges
    for name in model.variables:
        one, other = model[name], back[name]
        assert model.variable(name) == back.variable(name)
        if isinstance(one.variable, type(back.variable("mu"))):
            assert (one.arguments, one.previous, one.by_state) == (
                other.arguments,
                other.previous,
                other.by_state,
            )
            assert described(one.form) == described(other.form), name
    text = file.read_text()
    back.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == text


def test_a_lambda_and_a_local_function_say_what_can_be_stored(tmp_path):
    m = mk.BayesianNetwork()
    m.add("x", lambda k: dist.Normal(k, 1), plate="row")
    with pytest.raises(UnsupportedModel, match=r"'x' cannot be stored.*pass it by name instead of a lambda"):
        m.save(tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()

    def local(k):
        return dist.Normal(k, 1)

    with pytest.raises(UnsupportedModel, match="cannot be stored"):
        written_form("x", local)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ('{"function": "os.path:nothing"}', "cannot be imported"),
        ('{"function": "os:environ"}', "is no function"),
        ('{"distribution": "Nothing", "parameters": {}}', "no distribution"),
        ('{"distribution": "Normal", "parameters": {"lok": 1}}', "expected a distribution"),
        ('{"nonsense": 1}', "expected one of"),
    ],
)
def test_forms_that_mean_nothing_are_refused(form, message, tmp_path):
    text = (
        '{"format": "markovia", "version": 1, "kind": "bayesian-network", "variables": [{"name": "x", "domain": "number"}],'
        f' "conditionals": [{{"variable": "x", "parents": [], "model": "FunctionNode", "parameters": {{"form": {form},'
        ' "arguments": {}}}]}'
    )
    file = tmp_path / "m.json"
    file.write_text(text)
    with pytest.raises((ParseError, UnsupportedModel), match=message):
        mk.load(file)
