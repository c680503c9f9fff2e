"""Networks and fields with numbers in native files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings

import markovia as mk
from gaussian_references import random_network, seeds


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_a_mixed_network_comes_back_bit_by_bit(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, 4, 2, zero=0.2)
    network.name, network.properties["author"] = "demo", "me"
    again = mk.io.loads(mk.io.dumps(network, "json"), "json")
    assert again.variables == network.variables
    assert again.edges == network.edges
    assert (again.name, again.properties) == ("demo", {"author": "me"})
    for name in network.variables:
        if name[0] == "x":
            for part in ("bias", "weights", "variance"):
                np.testing.assert_array_equal(getattr(again[name], part), getattr(network[name], part))
    assert again.allclose(network, atol=0.0)
    assert mk.io.dumps(again, "json") == mk.io.dumps(network, "json")


def test_a_field_comes_back_from_a_file(tmp_path):
    field = mk.GaussianMarkovNetwork({"a": 2.0, "b": 1.5, ("a", "b"): -0.3}, mean={"a": 1.0}, name="two")
    field.save(tmp_path / "field.json")
    again = mk.load(tmp_path / "field.json")
    assert isinstance(again, mk.GaussianMarkovNetwork)
    np.testing.assert_array_equal(again.precision.toarray(), field.precision.toarray())
    np.testing.assert_array_equal(again.information_vector, field.information_vector)
    assert again.name == "two"


def test_other_formats_say_that_they_hold_tables_only(tmp_path):
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian())
    for suffix in ("bif", "xmlbif", "uai", "net", "xdsl", "dne", "dsc"):
        with pytest.raises(mk.MarkoviaError, match=r"'x'|number"):
            m.save(tmp_path / f"model.{suffix}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["variables"][0].update(domain="complex"), "one of the domains real"),
        (lambda c: c["conditionals"][0]["parameters"].update(variance=-1.0), "not negative"),
        (lambda c: c["conditionals"][0]["parameters"].update(weights=[1.0]), "expected 0 entries"),
        (
            lambda c: (
                c["conditionals"][1].update(rows=[[0.5, 0.5]]) or (c["conditionals"][1].pop("model") and None)
            ),
            "is a number",
        ),
        (lambda c: c["conditionals"][0].update(model="NoisyOrConditional"), "expected GaussianConditional"),
    ],
)
def test_a_file_that_is_wrong_says_where(change, message):
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian())
    m.add("y", mk.LinearGaussian(0, {"x": 1}, 1))
    content = json.loads(mk.io.dumps(m, "json"))
    change(content)
    with pytest.raises(mk.errors.ParseError, match=message):
        mk.io.loads(json.dumps(content), "json")
