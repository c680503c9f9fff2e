"""Models, posteriors and other results as containers and arrays, and how they look in a notebook."""

from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import markovia as mk


@pytest.fixture(scope="module")
def asia():
    return mk.examples.asia()


def test_a_model_is_a_collection_of_its_variables(asia):
    assert list(asia) == asia.variables
    assert [n for n in asia if n in asia] == asia.variables
    assert set(asia) - {"lung"} == set(asia.variables) - {"lung"}


def test_a_posterior_is_a_mapping_from_states_and_an_array(asia):
    p = asia.query("lung", given={"smoke": "yes"})
    assert list(p) == ["yes", "no"]
    assert dict(p) == {"yes": p["yes"], "no": p["no"]}
    assert list(p.items()) == [("yes", p["yes"]), ("no", p["no"])]
    assert np.asarray(p) == pytest.approx([0.1, 0.9])
    assert np.asarray(p, dtype=np.float32).dtype == np.float32
    assert float(np.sum(p)) == pytest.approx(1.0)
    copy = np.array(p)
    copy[0] = 7.0  # a copy of the user's own
    assert p["yes"] == pytest.approx(0.1)


def test_a_joint_posterior_goes_through_tuples_in_the_order_of_its_array(asia):
    p = asia.query(["lung", "bronc"])
    assert list(p) == [(a, b) for a in ("yes", "no") for b in ("yes", "no")]
    assert [p[key] for key in p] == np.asarray(p).ravel().tolist()


def test_matplotlib_draws_a_posterior_as_it_is(asia):
    p = asia.query("lung", given={"smoke": "yes"})
    bars = plt.bar(list(p), p)
    assert [bar.get_height() for bar in bars] == pytest.approx([0.1, 0.9])
    plt.close("all")


def test_marginals_print_one_line_a_variable_and_become_one_series(asia):
    found = asia.marginals(given={"smoke": "yes"})
    lines = str(found).splitlines()
    assert len(lines) == len(found) == 7
    assert lines[2] == "lung    yes 0.1, no 0.9"
    assert repr(found).endswith(f"[{found['lung'].info}]")
    series = found.to_pandas()
    assert series.index.names == ["variable", "state"]
    assert series["lung", "yes"] == pytest.approx(0.1)
    assert len(series) == 14
    rows = asia.marginals(pd.DataFrame({"smoke": ["yes", "no"]}, index=[5, 6]))
    frame = rows.to_pandas()
    assert list(frame.index) == [5, 6]
    assert frame["lung", "yes"].tolist() == pytest.approx([0.1, 0.01])


def test_many_variables_and_many_states_are_cut_short():
    bn = mk.BayesianNetwork()
    for i in range(70):
        bn.add(f"v{i}", states=range(9), p=np.full(9, 1 / 9))
    lines = str(bn.marginals()).splitlines()
    assert lines[-1] == "... and 10 more variables"
    assert lines[0].endswith("7 0.1111, ...")


def parsed(html):
    """The page as a tree: well formed, with everything escaped."""
    return ElementTree.fromstring(f"<div>{html}</div>")


def texts(html):
    return " ".join(t.strip() for t in parsed(html).itertext() if t.strip())


def test_tables_and_results_have_html(asia):
    for shown, said in [
        (asia.query("lung"), "lung p yes 0.055 no 0.945"),
        (asia.marginals(), "lung yes 0.055, no 0.945"),
        (asia["lung"], "ConditionalTable P(lung | smoke) smoke yes no yes 0.1 0.9 no 0.01 0.99"),
        (asia["lung"].factor(), "value"),
        (asia.map(), "bronc no"),
        (asia.sensitivity("lung=yes", given={"xray": "yes"}), "P(lung=yes | evidence)"),
        (asia.conflict(given={"smoke": "no", "xray": "yes"}), "finding"),
        (asia.information("lung"), "share"),
    ]:
        assert said in texts(shown._repr_html_())


def test_html_escapes_names_and_states():
    bn = mk.BayesianNetwork()
    bn.add("a<b", states=["<i>", "&"], p=[0.5, 0.5])
    assert "<i>" in texts(bn.query("a<b")._repr_html_())


def test_models_and_graphs_show_their_picture_and_leave_no_figure(asia):
    before = plt.get_fignums()
    for drawn in (asia, asia.graph, asia.graph.moral_graph(), asia.junction_tree(), asia.to_markov_network()):
        html = drawn._repr_html_()
        svg = parsed(html)[0]
        assert svg.tag.endswith("svg")
        assert len(list(svg.iter())) > 50
    assert plt.get_fignums() == before
    assert repr(asia) in texts(asia._repr_html_())


def test_a_large_model_is_named_and_not_drawn():
    grid = mk.generators.ising_grid(20, 20)
    assert texts(grid._repr_html_()) == repr(grid)
    assert "svg" not in grid._repr_html_()
    assert "svg" not in mk.BayesianNetwork()._repr_html_()


def test_long_tables_are_cut_short():
    bn = mk.BayesianNetwork()
    bn.add("v", states=range(300), p=np.full(300, 1 / 300))
    assert len(parsed(bn.query("v")._repr_html_()).findall(".//tbody/tr")) == 201


def test_a_graph_plots_itself(asia):
    axes = asia.graph.plot(title="asia")
    assert axes.get_title() == "asia"
    plt.close("all")
