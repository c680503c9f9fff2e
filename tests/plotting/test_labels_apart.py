"""Labels never share a place: what is written in a picture, as it is rendered, does not overlap."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt

import markovia as mk
from markovia.plotting import plot_graph
from places import BENCHMARKS


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def sharing(ax, texts=None):
    """Return the pairs of texts whose rendered boxes overlap by more than a pixel."""
    ax.figure.draw_without_rendering()
    texts = [t for t in (ax.texts if texts is None else texts) if t.get_text().strip() and t.get_visible()]
    boxes = np.array([t.get_window_extent().extents for t in texts]).reshape(-1, 4)
    wide = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - np.maximum(
        boxes[:, None, :2], boxes[None, :, :2]
    )
    pairs = np.argwhere(np.triu((wide > 1.0).all(axis=2), 1))
    return [(texts[i].get_text(), texts[j].get_text()) for i, j in pairs]


def network(name):
    path = BENCHMARKS / "bif" / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"{name} is not at hand")
    return mk.load(path)


@pytest.mark.parametrize("name", ["asia", "alarm", "hailfinder"])
@pytest.mark.parametrize("layout", ["layered", "spring"])
def test_names_of_known_networks_never_share_a_place(name, layout):
    model = mk.examples.asia() if name == "asia" else network(name)
    assert sharing(model.plot(layout=layout)) == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("layout", ["layered", "spring"])
def test_names_of_random_networks_never_share_a_place(seed, layout):
    dag = mk.graphs.random_dag(40, max_parents=4, seed=seed)
    renamed = {name: "_".join([name] * (1 + i % 5)) for i, name in enumerate(dag.nodes)}
    dag = mk.graphs.DAG([(renamed[a], renamed[b]) for a, b in dag.edges], nodes=list(renamed.values()))
    assert sharing(plot_graph(dag, layout=layout)) == []
    assert sharing(plot_graph(dag.moral_graph())) == []


def test_monitors_and_junction_trees_keep_their_words_apart():
    bn = mk.generators.random_bayesian_network(15, states=(2, 5), seed=3)
    assert sharing(bn.plot(posteriors=True)) == []
    assert sharing(bn.plot(posteriors=True, layout="spring")) == []
    assert sharing(plot_graph(bn.junction_tree())) == []
    assert sharing(bn.to_factor_graph().plot()) == []


def test_strengths_beside_edges_share_a_place_neither_with_each_other_nor_with_names():
    rows = mk.examples.asia().sample(200, seed=1)
    confidence = mk.bootstrap_structure(rows, replicates=10, seed=0)
    for layout in ("auto", "spring"):
        ax = confidence.plot(least=0.0, layout=layout)
        assert sum(t.get_gid() == "share" for t in ax.texts) > 5
        assert sharing(ax) == []


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 60, 300])
def test_states_beside_bars_never_share_a_place(n):
    bn = mk.BayesianNetwork()
    bn.add("size", states=[f"state number {i}" for i in range(n)], p=np.full(n, 1 / n))
    bn.add("shape", states=["round and red", "long", "flat"], p=[0.2, 0.3, 0.5])
    for ax in (
        bn.query("size").plot(),
        bn.query("size").plot(ax=plt.figure(figsize=(4, 3)).add_subplot()),
        bn.query(["size", "shape"]).plot(),
        bn.query(["shape", "size"]).plot(ax=plt.figure(figsize=(4, 3)).add_subplot()),
    ):
        ax.figure.draw_without_rendering()
        assert sharing(ax) == []
        assert sharing(ax, ax.get_yticklabels()) == []
        if not any(t.get_rotation() for t in ax.get_xticklabels()):
            assert sharing(ax, ax.get_xticklabels()) == []
