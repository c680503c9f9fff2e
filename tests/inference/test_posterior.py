import numpy as np
import pytest

import markovia as mk
from markovia.results import Info


@pytest.fixture
def joint():
    return mk.examples.asia().query(["lung", "bronc"], given={"dysp": "yes"})


def test_a_posterior_is_indexed_by_state_tuple_mapping_and_keyword(joint):
    single = mk.examples.asia().query("lung")
    assert isinstance(single["yes"], float)
    assert single["yes"] == pytest.approx(0.055)
    assert single.states == ("yes", "no")
    p = joint["yes", "no"]
    assert joint[{"bronc": "no", "lung": "yes"}] == p
    assert joint(lung="yes", bronc="no") == p
    assert joint(lung="yes") == pytest.approx(joint["yes", "yes"] + p)
    assert joint() == pytest.approx(1.0)


def test_wrong_indices_are_explained(joint):
    with pytest.raises(mk.errors.UnknownState, match="did you mean 'yes'"):
        joint["Yes", "no"]
    with pytest.raises(mk.errors.InvalidArgument, match=r"in the order \['lung', 'bronc'\]"):
        joint["yes"]
    with pytest.raises(mk.errors.UnknownVariable, match="did you mean 'lung'"):
        joint(lungs="yes")
    with pytest.raises(mk.errors.InvalidArgument, match="is for one variable"):
        joint.states  # noqa: B018


def test_a_posterior_converts(joint):
    assert sum(joint.to_dict().values()) == pytest.approx(1.0)
    series = joint.to_pandas()
    assert series.index.names == ["lung", "bronc"]
    assert series[("yes", "no")] == joint["yes", "no"]
    assert joint.argmax() == {"lung": "no", "bronc": "yes"}
    assert joint.marginal("bronc").argmax() == "yes"
    assert len(joint) == 4
    assert joint.factor().total == pytest.approx(1.0)
    with pytest.raises(ValueError, match="read-only"):
        joint.values[0, 0] = 1.0


def test_moments_and_entropy():
    bn = mk.BayesianNetwork()
    bn.add("die", states=[1, 2, 3, 4, 5, 6], p=[1 / 6] * 6)
    die = bn.query("die")
    assert die.mean() == pytest.approx(3.5)
    assert die.var() == pytest.approx(35 / 12)
    assert die.entropy() == pytest.approx(np.log(6))
    assert die.entropy(base=2) == pytest.approx(np.log2(6))


def test_a_posterior_prints_as_an_aligned_table_and_as_html(joint):
    lines = str(joint).splitlines()
    assert lines[0].split() == ["lung", "bronc", "p"]
    assert len({len(line) for line in lines}) == 1
    assert ", exact, " in repr(joint)
    html = joint._repr_html_()
    assert html.count("<tr>") == 5
    assert "<th>lung</th>" in html
    odd = mk.BayesianNetwork()
    odd.add("a<b", states=["<5", ">=5"], p=[0.5, 0.5])
    assert "&lt;5" in odd.query("a<b")._repr_html_()


def test_a_long_table_is_shortened():
    bn = mk.BayesianNetwork("a[10]; b[10]", tables="uniform")
    text = str(bn.query(["a", "b"]))
    assert text.endswith("... 60 more of 100 entries")


def test_provenance_says_what_is_not_perfect():
    poor = Info("gibbs", exact=False, converged=False, error=0.013, seconds=2.5)
    assert str(poor) == "gibbs, approximate, NOT CONVERGED, error 0.013, 2.5 s"


def test_an_explanation_is_a_mapping_with_its_probability():
    bn = mk.examples.asia()
    best = bn.map(given={"xray": "yes"})
    assert dict(best) == best.to_dict()
    assert set(best) == set(bn.variables) - {"xray"}
    assert best.log_prob == pytest.approx(bn.log_prob([{**best, "xray": "yes"}])[0])
    assert best.log_posterior == pytest.approx(best.log_prob - bn.log_evidence({"xray": "yes"}))
    assert best.bound == best.log_prob
    assert "given the evidence" in repr(best)
    with pytest.raises(KeyError):
        best["xray"]
