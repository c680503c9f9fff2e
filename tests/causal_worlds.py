"""Random causal graphs with hidden common causes, and full models of them, for tests of identification."""

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

import markovia as mk
from markovia.graphs import DAG, MixedGraph

NAMES = "abcdef"


@st.composite
def admgs(draw: st.DrawFn, smallest: int = 2, largest: int = 6) -> MixedGraph:
    """Acyclic directed mixed graphs over the first letters of the alphabet, which are in topological order."""
    names = [*NAMES[: draw(st.integers(smallest, largest))]]
    pairs = list(combinations(names, 2))
    arrows = draw(st.lists(st.sampled_from(pairs), unique=True))
    joined = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=5))
    return MixedGraph([f"{a} --> {b}" for a, b in arrows] + [f"{a} <-> {b}" for a, b in joined], nodes=names)


def random_admg(rng: np.random.Generator, n: int, arrows: float = 0.5, joined: float = 0.3) -> MixedGraph:
    """An acyclic directed mixed graph with each edge present or not."""
    pairs = list(combinations(NAMES[:n], 2))
    edges = [f"{a} --> {b}" for a, b in pairs if rng.random() < arrows]
    edges += [f"{a} <-> {b}" for a, b in pairs if rng.random() < joined]
    return MixedGraph(edges, nodes=[*NAMES[:n]])


def full_dag(graph: MixedGraph) -> DAG:
    """The DAG with a hidden node above each bidirected edge."""
    hidden = [(f"u{a}{b}", end) for a, b in graph.bidirected_edges() for end in (a, b)]
    return DAG([*hidden, *graph.directed_edges()], nodes=[*dict(hidden), *graph.nodes])


def full_model(graph: MixedGraph, seed: int = 0, states: int = 2) -> mk.BayesianNetwork:
    """A Bayesian network with random tables over the observed nodes and hidden parents."""
    rng = np.random.default_rng(seed)
    dag = full_dag(graph)
    sizes = {name: 3 if name.startswith("u") else states for name in dag.nodes}
    model = mk.BayesianNetwork()
    for name in dag.topological_order():
        shape = [sizes[p] for p in dag.parents(name)]
        table = (
            rng.dirichlet(np.ones(sizes[name]), size=shape) if shape else rng.dirichlet(np.ones(sizes[name]))
        )
        model.add(name, states=sizes[name], parents=dag.parents(name), p=0.9 * table + 0.1 / sizes[name])
    return model


def gaussian_model(graph: MixedGraph, seed: int = 0) -> mk.BayesianNetwork:
    """The same with numbers."""
    rng = np.random.default_rng(seed)
    dag = full_dag(graph)
    model = mk.BayesianNetwork()
    for name in dag.topological_order():
        weights = {p: float(rng.normal()) for p in dag.parents(name)}
        model.add(name, mk.LinearGaussian(float(rng.normal()), weights, float(rng.uniform(0.5, 2))))
    return model
