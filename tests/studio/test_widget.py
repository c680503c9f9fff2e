"""The notebook widget: evidence as traits that both sides set, answers from Python where the page cannot compute."""

import sys

import pytest

import markovia as mk
from markovia.errors import InvalidArgument, MarkoviaError, UnknownState

pytest.importorskip("anywidget", reason="anywidget, which the widget needs, is not installed")


def test_evidence_goes_both_ways():
    widget = mk.examples.asia().show(given={"xray": "yes"}, do={"smoke": "no"})
    assert widget.get_state(["given", "do"]) == {"given": {"xray": {"state": "yes"}}, "do": {"smoke": "no"}}
    widget.set_state(
        {"given": {"dysp": {"not": ["no"]}, "tub": {"weights": {"yes": 0.5, "no": 0.1}}}, "do": {}}
    )
    assert (widget.given, widget.do) == ({"dysp": mk.Not("no"), "tub": {"yes": 0.5, "no": 0.1}}, {})
    expected = mk.examples.asia().query("lung", given=widget.given)["yes"]
    assert widget.marginals["lung"]["yes"] == pytest.approx(expected)


def test_states_that_are_no_text_come_back_as_they_are():
    bn = mk.BayesianNetwork()
    bn.add("n", states=[1, 2, 3], p=[0.2, 0.3, 0.5])
    bn.add("b", states=[False, True], parents=["n"], p=[[0.5, 0.5], [0.1, 0.9], [0.3, 0.7]])
    widget = bn.show()
    widget.set_state({"given": {"n": {"state": "2"}}, "do": {"b": "True"}})
    assert (widget.given, widget.do) == ({"n": 2}, {"b": True})
    widget.given = {"b": False}
    assert widget.get_state(["given"]) == {"given": {"b": {"state": "False"}}}


def test_bad_evidence_is_refused_and_the_old_stays():
    widget = mk.examples.asia().show(given={"xray": "yes"})
    with pytest.raises(UnknownState, match="maybe"):
        widget.given = {"xray": "maybe"}
    with pytest.raises(UnknownState):
        widget.do = {"smoke": "maybe"}
    assert (widget.given, widget.do) == ({"xray": "yes"}, {})
    with pytest.raises(InvalidArgument, match="height"):
        mk.examples.asia().show(height=3)


def test_python_answers_what_the_page_cannot():
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian(1.0, {}, 4.0))
    bn.add("y", mk.LinearGaussian(0.0, {"x": 2.0}, 1.0))
    widget = bn.show()
    assert widget._content["tables"] is None
    asked = {"number": "1", "kind": "marginals", "given": {"y": {"value": 3.0}}, "do": {}}
    widget.set_state({"_question": asked})
    found = widget._answer["found"]["marginals"]["x"]
    assert widget._answer["number"] == "1"
    assert found["mean"] == pytest.approx(bn.query("x", given={"y": 3.0}).mean())
    widget.set_state({"_question": {**asked, "number": "2", "given": {"y": {"state": "high"}}}})
    assert "is a number" in widget._answer["error"]
    widget.set_state({"_question": {**asked, "number": "3", "given": {"y": [7]}}})
    assert widget._answer["number"] == "3"
    assert "error" in widget._answer
    widget.set_state(
        {"_question": {**asked, "number": "3b", "given": {"y": 7}}}
    )  # a plain number is a finding, too
    plain = widget._answer["found"]["marginals"]["x"]["mean"]
    assert plain == pytest.approx(bn.query("x", given={"y": 7.0}).mean())
    widget.set_state({"_question": {**asked, "number": "4", "kind": "shading", "measure": "entropy"}})
    assert set(widget._answer["found"]["values"]) == {"x", "y"}


def test_without_anywidget_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(MarkoviaError) as told:
        mk.examples.asia().show()
    assert str(told.value) == "show() needs anywidget; install it with: pip install markovia[notebook]"
