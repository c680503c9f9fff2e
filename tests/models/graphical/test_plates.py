"""Plates in the graph: separation, editing, pictures."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument

mpl.use("agg")


def hidden_chain():
    m = mk.BayesianNetwork()
    m.add("P", dist.Dirichlet(np.ones(2)), plate={"state": 2})
    m.add("mu", dist.Normal(0, 3), plate="state")
    m.add(
        "z",
        lambda before, P: dist.Categorical(P[before]),
        plate="t",
        previous={"before": "z"},
        first=mk.Flat(),
    )
    m.add("y", lambda z, mu: dist.Normal(mu[z], 1.0), plate="t")
    return m


def test_separation_means_any_two_elements():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("theta", lambda mu: dist.Normal(mu, 1), plate="school")
    m.add("y", lambda theta: dist.Normal(theta, 1), plate="school")
    assert not m.independent("mu", "y")
    assert m.independent("mu", "y", given="theta")
    assert not m.independent("theta", "y", given="mu")


def test_separation_goes_along_chains():
    m = hidden_chain()
    assert m.independent("P", "mu")
    assert not m.independent("P", "mu", given="y")
    assert m.independent("P", "y", given="z")
    assert not m.independent("P", "y", given="mu")
    g = mk.BayesianNetwork()
    g.add("a", dist.HalfNormal(1))
    g.add("s", lambda yb, a: a + yb**2, plate="t", previous={"yb": "y"}, first=lambda s1: s1)
    g.add("y", lambda s: dist.Normal(0, s), plate="t")
    g.add("w", lambda s: dist.Normal(s, 1), plate="t")
    assert not g.independent("y", "w", given="a")
    assert g.independent("a", "w", given="s")


def test_separation_knows_which_way_time_goes():
    m = mk.BayesianNetwork()
    m.add("u", dist.Normal(0, 1))
    m.add("v", dist.Normal(0, 1))
    m.add("cause", lambda v: dist.Normal(v, 1), plate="t")
    m.add(
        "effect",
        lambda before, u: dist.Normal(before + u, 1),
        plate="t",
        previous={"before": "cause"},
        first=mk.Flat(),
    )
    assert m.independent("u", "v", given="cause")
    assert not m.independent("u", "v", given="effect")


def test_a_name_that_comes_later_becomes_a_parent_and_a_copy_keeps_it():
    m = mk.BayesianNetwork()
    m.add("y", lambda theta, sigma: dist.Normal(theta, sigma), plate="school")
    m.add("theta", dist.Normal(0, 1), plate="school")
    assert m.parents("y") == ["theta"]
    twin = m.copy()
    twin.rename({"theta": "effect"})
    assert (twin.parents("y"), m.parents("y")) == (["effect"], ["theta"])
    twin.remove("y")
    assert twin.variables == ["effect"]
    assert m.subnetwork(["theta"]).variables == ["theta"]


def test_a_distribution_is_replaced_on_the_plates_that_it_has():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("tau", dist.HalfNormal(1))
    m.add("theta", lambda mu: dist.Normal(mu, 1), plate={"school": 3})
    m.add("y", lambda theta: dist.Normal(theta, 1), plate="school")
    m.replace("theta", lambda mu, tau: dist.StudentT(4, mu, tau))
    assert m.parents("theta") == ["mu", "tau"]
    assert m.variable("theta").lengths == {"school": 3}
    m.replace("mu", dist.Cauchy(0, 1))
    assert m.children("mu") == ["theta"]
    with pytest.raises(mk.errors.CycleError):
        m.replace("mu", lambda y: dist.Normal(y, 1))
    assert m.parents("mu") == []
    with pytest.raises(mk.errors.InvalidArgument, match="a distribution over states"):
        m.replace("mu", dist.Bernoulli(0.5))


def boxes(ax, prefix):
    found = {}
    for patch in ax.patches + ax.artists:
        gid = patch.get_gid() or ""
        if gid.startswith(prefix):
            found[gid.removeprefix(prefix)] = patch.get_window_extent().transformed(ax.transData.inverted())
    return found


def inside(inner, outer):
    return outer.x0 <= inner.x0 and inner.x1 <= outer.x1 and outer.y0 <= inner.y0 and inner.y1 <= outer.y1


def apart(a, b):
    return a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0


@pytest.fixture
def crossed():
    m = mk.BayesianNetwork()
    m.add("spread", dist.HalfNormal(1))
    m.add("ability", lambda spread: dist.Normal(0, spread), plate="student")
    m.add("ease", dist.Normal(0, 1), plate="item")
    m.add("noise", dist.HalfNormal(1))
    m.add("score", lambda ability, ease, noise: dist.Normal(ability + ease, noise), plate=["student", "item"])
    m.add("mean", lambda score: dist.Normal(0.0, 1.0))
    return m


def test_each_plate_holds_its_own_nodes_and_no_others(crossed):
    ax = crossed.plot(given={"score": np.zeros((5, 4))})
    ax.figure.canvas.draw()
    plates, nodes = boxes(ax, "plate:"), boxes(ax, "node:")
    assert set(plates) == {"student (5)", "item (4)"}
    on = {"ability": {"student (5)"}, "ease": {"item (4)"}, "score": set(plates)}
    for name, node in nodes.items():
        for plate, box in plates.items():
            assert (inside if plate in on.get(name, ()) else apart)(node, box), (name, plate)
    for text in ax.texts:
        box = text.get_window_extent()
        assert inside(box, ax.figure.bbox), text.get_text()


def test_nested_plates_hold_one_another():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 1))
    m.add("state", lambda mu: dist.Normal(mu, 1), plate="region")
    m.add("county", lambda state: dist.Normal(state, 1), plate=["region", "area"])
    m.add("s", dist.HalfNormal(1))
    m.add("y", lambda county, s: dist.Normal(county, s), plate=["region", "area", "row"])
    ax = m.plot()
    ax.figure.canvas.draw()
    plates, nodes = boxes(ax, "plate:"), boxes(ax, "node:")
    assert inside(plates["row"], plates["area"]) and inside(plates["area"], plates["region"])  # noqa: PT018
    assert apart(nodes["mu"], plates["region"]) and apart(nodes["s"], plates["region"])  # noqa: PT018
    assert apart(nodes["county"], plates["row"])


def test_a_frame_of_new_rows_is_predicted_with_its_labels_and_its_length():
    m = mk.BayesianNetwork()
    m.add("level", dist.Normal(0, 100), plate="group")
    m.add("y", lambda level, of, x: dist.Normal(level[of] + x, 0.01), plate="row")
    rows = pd.DataFrame({"of": [0, 0, 1, 1], "x": [0.0, 1, 2, 3], "y": [5.0, 6, -3, -2]})
    post = m.query("level", given={"row": rows, "group": 2})
    new = pd.DataFrame({"of": [1, 0], "x": [10.0, 20.0]}, index=["a", "b"])
    drawn = m.sample(200, given=post, inputs={"row": new}, seed=0)
    assert drawn["y"].dims == ("draw", "row")
    assert drawn["row"].values.tolist() == ["a", "b"]
    assert np.allclose(drawn["y"].mean("draw"), [5.0, 25.0], atol=0.02)
    with pytest.raises(mk.errors.InvalidArgument, match="'y' is a node; leave it out"):
        m.sample(10, given=post, inputs={"row": rows})


def test_a_plate_takes_a_dict_of_columns_as_it_takes_a_frame():
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0], "y": [0.1, 1.2, 1.9]})
    m = mk.BayesianNetwork()
    m.add("slope", dist.Normal(0, 1))
    m.add("y", lambda slope, x: dist.Normal(slope * x, 1.0), plate="row")
    by_frame = m.query("slope", given={"row": frame})
    by_dict = m.query("slope", given={"row": {name: frame[name].to_numpy() for name in frame}})
    assert by_dict.mean("slope") == by_frame.mean("slope")
    with pytest.raises(InvalidArgument, match="different lengths: 'x' 2, 'y' 3"):
        m.query("slope", given={"row": {"x": [1.0, 2.0], "y": [1.0, 2.0, 3.0]}})
    with pytest.raises(InvalidArgument, match=r"columns \(a frame or a dict of arrays\), not '12'"):
        m.query("slope", given={"row": "12"})
