"""Diagrams, policies and totals: what is drawn says what the objects say."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.patches import Ellipse, Polygon, Rectangle

import markovia as mk
from every_picture import drilling
from markovia.plotting import style
from markovia.plotting.drawing import _border
from markovia.plotting.labels import text_width
from markovia.plotting.scene import SceneNode


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def nodes(ax):
    return {p.get_gid()[5:]: p for p in ax.patches if (p.get_gid() or "").startswith("node:")}


def dashed(ax):
    return sum(
        p.get_linestyle() != "-" and p.get_linestyle() != "solid" for p in ax.patches if p.get_gid() == "edge"
    )


def test_decisions_are_squares_utilities_diamonds_and_chance_is_round():
    shown = nodes(drilling().plot())
    kinds = {name: type(patch) for name, patch in shown.items()}
    assert kinds == {
        "oil": Ellipse, "test": Rectangle, "result": Ellipse, "drill": Rectangle, "cost": Polygon, "gain": Polygon
    }  # fmt: skip
    assert to_hex(shown["drill"].get_facecolor()) == style.LIGHT.DECISION_FILL.lower()


def test_only_arrows_into_decisions_are_dashed():
    bn = drilling()
    assert dashed(bn.plot()) == len(bn.parents("test")) + len(bn.parents("drill")) == 2
    assert dashed(bn.follow(bn.decide()).plot()) == 0


def test_posteriors_of_an_open_diagram_are_those_that_no_decision_changes():
    ax = drilling().plot(posteriors=True)
    assert {p.get_gid()[4:] for p in ax.patches if (p.get_gid() or "").startswith("bar:")} == {"oil"}


def test_utilities_show_what_they_are_worth_once_all_is_decided():
    bn = drilling()
    texts = [t.get_text() for t in bn.follow(bn.decide()).plot(posteriors=True).texts]
    assert "-10" in texts
    assert "32.5" in texts
    given = [t.get_text() for t in bn.follow(bn.decide()).plot(posteriors=True, given={"oil": "wet"}).texts]
    assert f"{50 * 0.7:.6g}" in given


@pytest.mark.parametrize("towards", [(3.0, 0.5), (-1.0, 4.0), (0.0, -2.0)])
def test_arrows_end_on_the_outline_of_every_shape(towards):
    for shape, inside in (("utility", 1), ("ellipse", 2), ("decision", np.inf)):
        node = SceneNode("gain", shape)
        end = _border(node, np.array([1.0, 1.0]), np.array([1.0, 1.0]) + towards)
        assert np.linalg.norm((end - 1.0) / (np.array(node.size) / 2), inside) == pytest.approx(1.0)


def test_a_name_fits_into_its_diamond():
    for node in (
        SceneNode("gain", "utility"),
        SceneNode("a long name of a gain", "utility", note="12,345 amounts"),
    ):
        wide = max(text_width(line, node.font_size) for line in node.lines)
        assert wide / node.size[0] + node.title_height / node.size[1] <= 1.0


def test_dot_text_has_boxes_diamonds_and_dashed_arrows():
    text = mk.plotting.to_dot(drilling(), given="oil")
    assert '"drill" [shape=box' in text
    assert '"gain" [shape=diamond' in text
    assert '"result" -> "drill" [style=dashed];' in text
    assert '"drill" -> "gain";' in text
    assert style.LIGHT.OBSERVED_FILL in text.partition('"oil"')[2].partition(";")[0]
    plain = mk.examples.sprinkler()
    assert "diamond" not in mk.plotting.to_dot(plain)
    assert "shape=box" in mk.plotting.to_dot(plain)


def test_a_table_of_a_policy_is_coloured_by_choice_and_pale_where_nothing_occurs():
    policy = drilling().decide()
    ax = policy.plot("drill")
    (image,) = ax.images
    colours = np.asarray(image.get_array())
    words = np.array([t.get_text() for t in ax.texts]).reshape(colours.shape[:2])
    rule = policy["drill"]
    assert words.tolist() == [
        [str(rule.variable.states[k]) for k in row] for row in rule.values.argmax(axis=-1)
    ]
    strong = {to_hex(c) for c in colours[policy.reached["drill"] > 0]}
    pale = {to_hex(c) for c in colours[policy.reached["drill"] <= 0]}
    assert len(strong) == 2
    assert not strong & pale
    assert [t.get_text() for t in ax.get_yticklabels()] == ["yes", "no"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["none", "open", "closed", "untested"]


def test_ties_carry_a_sign():
    bn = mk.BayesianNetwork()
    bn.add("x", [0.5, 0.5])
    bn.add("d", mk.Decision(["a", "b"]), parents=["x"])
    bn.add("u", mk.Utility([[1, 1], [0, 2]]), parents=["x", "d"])
    ax = bn.decide().plot()
    assert [t.get_text() for t in ax.texts] == ["= a", "b"]
    assert [t.get_style() for t in ax.texts] == ["italic", "normal"]


def test_rows_without_anything_are_left_out_of_long_tables():
    bn = mk.BayesianNetwork()
    bn.add("x", np.r_[np.zeros(20), np.ones(20) / 20])
    bn.add("y", [0.5, 0.5])
    bn.add("d", mk.Decision(2), parents=["x", "y"])
    bn.add("u", mk.Utility(np.arange(160.0).reshape(40, 2, 2)), parents=["x", "y", "d"])
    (image,) = bn.decide().plot().images
    assert np.asarray(image.get_array()).shape[:2] == (20, 2)


def test_a_policy_of_several_decisions_is_drawn_by_name():
    policy = drilling().decide()
    with pytest.raises(mk.errors.InvalidArgument, match="which decision is to be drawn"):
        policy.plot()
    with pytest.raises(mk.errors.UnknownVariable):
        policy.plot("dril")
    assert policy.plot("test").get_title() == "test, seeing nothing"


def test_a_rule_of_too_many_rows_is_refused():
    bn = mk.BayesianNetwork()
    bn.add("x", np.ones(3000), normalise=True)
    bn.add("y", [0.5, 0.5])
    bn.add("d", mk.Decision(2), parents=["x", "y"])
    bn.add("u", mk.Utility(np.zeros((3000, 2, 2))), parents=["x", "y", "d"])
    with pytest.raises(mk.errors.TooLarge, match="to_pandas"):
        bn.decide().plot()


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_bars_of_a_total_are_its_probabilities(unit):
    bn = mk.BayesianNetwork()
    bn.add("die", [0.5, 0.3, 0.2])
    bn.add("pay", mk.Utility(np.array([-1.0, 0.0, 4.0]) * unit), parents=["die"])
    total = bn.utility()
    ax = total.plot()
    bars = [(b.get_x() + b.get_width() / 2, b.get_height()) for b in ax.patches]
    np.testing.assert_allclose([x for x, _ in bars], total.values, atol=1e-12 * unit)
    np.testing.assert_allclose([h for _, h in bars], total.probabilities)
    assert [line.get_xdata()[0] for line in ax.lines] == pytest.approx([total.mean(), total.cvar(0.1)])


def test_many_amounts_are_a_histogram_of_the_same_mass_and_one_amount_is_one_bar():
    bn = mk.BayesianNetwork()
    for k in range(8):
        bn.add(f"x{k}", [0.5, 0.5])
        bn.add(f"u{k}", mk.Utility([0, 2.0**k]), parents=[f"x{k}"])
    ax = bn.utility().plot(title="sum")
    assert sum(b.get_height() for b in ax.patches) == pytest.approx(1.0)
    assert ax.get_title() == "sum"
    (bar,) = bn.utility("u0").plot(ax=plt.figure().add_subplot()).patches[:1]
    sure = mk.BayesianNetwork()
    sure.add("x", [1.0])
    sure.add("u", mk.Utility([0.0]), parents=["x"])
    (bar,) = sure.utility().plot().patches
    assert bar.get_height() == 1.0
    assert bar.get_width() > 0
