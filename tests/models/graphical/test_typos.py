"""What is probably a slip gets a question instead of a model."""

import pytest

import markovia as mk


@pytest.mark.parametrize("text", ["a-b", "a-b; b-c", "a->c; a-b"])
def test_a_dash_asks_whether_an_arrow_was_meant(text):
    with pytest.raises(mk.errors.ParseError, match="did you mean 'a->b'"):
        mk.BayesianNetwork(text)


def test_dashes_in_names_stay_possible():
    assert mk.BayesianNetwork("smoke->x-ray; x-ray{no|yes}").variables == ["smoke", "x-ray"]
    assert mk.BayesianNetwork('"x-ray"; a->b').variables == ["x-ray", "a", "b"]
    with pytest.raises(mk.errors.ParseError, match=r"did you mean '->'"):
        mk.BayesianNetwork("a -- b")


def test_fitting_without_a_graph_says_so():
    for fit in (mk.BayesianNetwork().fit, mk.BayesianNetwork().partial_fit):
        with pytest.raises(mk.errors.IncompleteModel, match=r"no graph to fit.*mk\.learn_structure"):
            fit({"a": [0, 1]})


EDITS = {
    "replace": lambda bn: bn.replace("a", p=[0.5, 0.5]),
    "add": lambda bn: bn.add("c", p=[0.5, 0.5]),
    "remove": lambda bn: bn.remove("b"),
    "rename": lambda bn: bn.rename("a", "z"),
    "rename_states": lambda bn: bn.rename_states("a", ["no", "yes"]),
    "add_edge": lambda bn: bn.add_edge("c", "b"),
    "remove_edge": lambda bn: bn.remove_edge("a", "b", p=[0.5, 0.5]),
    "fill": lambda bn: bn.fill("uniform"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_drops_the_record_of_the_fit(edit):
    bn = mk.BayesianNetwork("a->b; c" if edit == "add_edge" else "a->b")
    bn.fit({"a": [0, 1, 1], "b": [0, 1, 0], "c": [0, 1, 1]})
    kept = bn.copy()
    EDITS[edit](bn)
    assert bn.fit_ is None
    assert kept.fit_ is not None
    assert kept.do(a=1).fit_ is None
    with pytest.raises(mk.errors.InvalidArgument, match="no counts to add to"):
        bn.partial_fit({"a": [0], "b": [0], "c": [0], "z": [0]})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("BayesianNetwrk", "did you mean 'BayesianNetwork'"),
        ("learn_structur", "did you mean 'learn_structure'"),
        ("NoisyOr", "it is markovia.local.NoisyOr"),
        ("NoisyOR", "did you mean markovia.local.NoisyOr"),
        ("GaussianNaiveBays", "did you mean markovia.classifiers.GaussianNaiveBayes"),
        ("Gibs", "did you mean markovia.engines.Gibbs"),
    ],
)
def test_a_misspelt_name_of_the_package_gets_the_nearest(name, meant):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'.*{meant}"):
        getattr(mk, name)
