"""Graph cuts: the max-flow kernel against SciPy, exact maxima of attractive binary models, and roof duality."""

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow

import markovia as mk
from markovia.inference.map_bounds.flow_network import FlowNetwork


def random_binary(seed, attractive=True, zeros=True):
    """A random model of at most eight variables of one or two states, with its names of states shuffled at times."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    names = [f"v{i}" for i in range(n)]
    cards = {m: int(rng.choice([1, 2], p=[0.15, 0.85])) for m in names}
    renamed = rng.random(n) < (0.4 if seed % 3 == 0 else 0.0)
    factors = []
    for i in range(n):
        if rng.random() < 0.8:
            table = rng.random(cards[names[i]]) + 0.01
            if zeros and rng.random() < 0.15:
                table[rng.integers(len(table))] = 0.0
            factors.append(mk.Factor([names[i]], table))
        for j in range(i):
            if rng.random() > 0.6:
                continue
            logs = rng.normal(size=(2, 2)) * 3
            if attractive and logs[0, 0] + logs[1, 1] < logs[0, 1] + logs[1, 0]:
                logs = logs[::-1]
            table = np.exp(logs)
            if zeros:
                table[0, 1] *= rng.random() > 0.3
                table[1, 0] *= rng.random() > 0.3
                table[0] *= rng.random() > 0.1
                table[:, 1] *= rng.random() > 0.1
            if renamed[i]:
                table = table[:, ::-1]
            if renamed[j]:
                table = table[::-1]
            a, b = names[j], names[i]
            factors.append(mk.Factor([a, b], table[: cards[a], : cards[b]]))
    return mk.MarkovNetwork(cards, factors)


def reference(model):
    try:
        return model.map(engine="enumeration").log_weight
    except mk.errors.ImpossibleEvidence:
        return None


@pytest.mark.parametrize("seed", range(60))
def test_the_flow_is_that_of_scipy_and_the_cut_has_its_value(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    m = int(rng.integers(1, 4 * n))
    tails, heads = rng.integers(0, n, size=(2, m))
    keep = tails != heads
    tails, heads = tails[keep], heads[keep]
    there, back = rng.integers(0, 20, size=(2, len(tails))).astype(float)
    terminal = rng.integers(-30, 31, size=n).astype(float)
    cut = FlowNetwork(n, tails, heads).cut(there, back, terminal)
    source = np.flatnonzero(terminal > 0)
    sink = np.flatnonzero(terminal < 0)
    rows = np.concatenate([tails, heads, np.full(len(source), n), sink])
    columns = np.concatenate([heads, tails, source, np.full(len(sink), n + 1)])
    numbers = np.concatenate([there, back, terminal[source], -terminal[sink]]).astype(np.int32)
    graph = csr_matrix((numbers, (rows, columns)), shape=(n + 2, n + 2), dtype=np.int32)
    assert cut.finished
    assert cut.flow == maximum_flow(graph, n, n + 1).flow_value
    x = cut.ones
    value = there[(x[tails] == 0) & (x[heads] == 1)].sum() + back[(x[heads] == 0) & (x[tails] == 1)].sum()
    value += terminal[(terminal > 0) & (x == 1)].sum() - terminal[(terminal < 0) & (x == 0)].sum()
    assert value == cut.flow


def test_a_path_of_infinite_capacity_makes_the_flow_infinite():
    cut = FlowNetwork(2, np.array([0]), np.array([1])).cut(
        np.array([np.inf]), np.array([0.0]), np.array([np.inf, -np.inf])
    )
    assert cut.flow == np.inf


def test_a_network_without_nodes_has_no_flow():
    empty = np.zeros(0, dtype=np.int64)
    assert FlowNetwork(0, empty, empty).cut(np.zeros(0), np.zeros(0), np.zeros(0)).flow == 0.0


@sampled(seed=st.integers(0, 10**6))
@settings(max_examples=300, deadline=None)
def test_the_cut_of_an_attractive_model_is_its_best_configuration(seed):
    model = random_binary(seed)
    best = reference(model)
    if best is None:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.map(engine="graph-cut")
        return
    found = model.map(engine="graph-cut")
    assert found.log_weight == pytest.approx(best, abs=1e-9)
    assert found.info.exact
    assert found.gap == 0.0


@sampled(seed=st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_roof_duality_bounds_any_binary_model_and_persistent_states_are_optimal(seed):
    model = random_binary(seed, attractive=False, zeros=seed % 2 == 0)
    best = reference(model)
    engine = mk.engines.GraphCut(roof_duality=True)
    if best is None:
        try:
            assert model.map(engine=engine).log_weight == -np.inf
        except mk.errors.ImpossibleEvidence:
            return
        return
    found = model.map(engine=engine)
    assert found.bound >= best - 1e-8
    assert found.log_weight <= best + 1e-8
    if found.info.exact:
        assert found.log_weight == pytest.approx(best, abs=1e-8)
    fixed = {n: found[n] for n in (found.info.details.persistent_variables if found.info.details else ())}
    held = model.map(given=fixed, engine="enumeration").log_weight
    assert held == pytest.approx(best, abs=1e-8)


def test_roof_duality_on_a_frustrated_triangle_labels_nothing():
    apart = [[0.0, 1.0], [1.0, 0.0]]
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    model = mk.MarkovNetwork(dict.fromkeys("abc", 2), [mk.Factor([*p], np.exp(apart)) for p in pairs])
    found = model.map(engine=mk.engines.GraphCut(roof_duality=True))
    assert found.info.details.persistent == 0.0
    assert found.log_weight == pytest.approx(2.0)
    assert found.bound == pytest.approx(3.0)


def test_evidence_and_conditionals_are_cut_too():
    bn = mk.BayesianNetwork()
    bn.add("a", states=["no", "yes"], p=[0.7, 0.3])
    bn.add("b", states=["no", "yes"], parents=["a"], p=[[0.9, 0.1], [0.2, 0.8]])
    bn.add("c", states=["no", "yes"], parents=["b"], p=[[0.8, 0.2], [0.3, 0.7]])
    found = bn.map(given={"c": "yes"}, engine="graph-cut")
    assert found.to_dict() == bn.map(given={"c": "yes"}, engine="enumeration").to_dict()
    assert bn.map(given={"a": "yes", "b": "no", "c": "yes"}, engine="graph-cut").to_dict() == {}


def test_what_a_cut_cannot_do_is_refused_with_the_engine_that_can():
    triangle = [mk.Factor([*p], [[1.0, 3.0], [3.0, 1.0]]) for p in ("ab", "bc", "ac")]
    with pytest.raises(mk.errors.Unanswered, match=r"not submodular.*'trw-s'"):
        mk.MarkovNetwork(dict.fromkeys("abc", 2), triangle).map(engine="graph-cut")
    with pytest.raises(mk.errors.Unanswered, match=r"two states.*alpha-expansion"):
        mk.MarkovNetwork({"a": 3}, [mk.Factor(["a"], [1, 2, 3])]).map(engine="graph-cut")
    with pytest.raises(mk.errors.Unanswered, match=r"at most two variables.*a, b, c"):
        mk.MarkovNetwork(dict.fromkeys("abc", 2), [mk.Factor([*"abc"], np.ones((2, 2, 2)) + np.eye(2))]).map(
            engine="graph-cut"
        )
    model = mk.generators.ising_grid(2, 2)
    with pytest.raises(mk.errors.Unanswered, match="one assignment"):
        model.map(m=2, engine="graph-cut")
    with pytest.raises(mk.errors.Unanswered, match="all variables together"):
        model.map(targets=["x0_0"], engine="graph-cut")
    with pytest.raises(mk.errors.InvalidArgument, match="roof_duality="):
        mk.engines.GraphCut(roof_duality=1)


def test_pairs_that_repel_on_a_bipartite_graph_are_cut_after_renaming():
    model = mk.generators.ising_grid(4, 5, coupling=-0.8, field="random", seed=3)
    found = model.map(engine="graph-cut")
    assert found.info.exact
    assert found.info.details.renamed == 10
    assert found.log_weight == pytest.approx(model.map(engine="junction-tree").log_weight)


def test_a_cut_that_runs_out_of_time_is_not_called_exact(monkeypatch):
    from markovia.inference.map_bounds import flow_network

    monkeypatch.setattr(flow_network, "SLICE", 1)
    model = mk.generators.ising_grid(12, 12, coupling=0.5, field="random", seed=0)
    with pytest.warns(mk.errors.ConvergenceWarning):
        found = model.map(engine="graph-cut", time_limit=1e-9)
    assert not found.info.exact
    assert found.bound >= model.map(engine="junction-tree").log_weight - 1e-9 >= found.log_weight - 2e-9
