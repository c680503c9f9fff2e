"""Links say of every variable, given the others, what the tables of the graph say."""

import numpy as np
import pytest

import markovia as mk
from markovia.inference.flat_graphs import padded_links as module
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.flat_graphs.padded_links import padded_links, why_no_links
from model_strategies import random_case


def weights_of_states(links, i, x):
    """What links say of the states of variable i (by its new number), up to a factor."""
    found = links.unary[i].copy()
    for p in range(links.ptr[i], links.ptr[i + 1]):
        some = slice(p, p + 1) if links.other_ptr is None else slice(*links.other_ptr[p : p + 2])
        row = 0
        for j in links.other[some]:
            row = row * links.states + x[j]
        found *= links.tables[links.base[p] + row * links.states :][: links.states]
    return found


@pytest.mark.parametrize("kind", ["directed", "undirected", "factor graph"])
@pytest.mark.parametrize("seed", range(12))
def test_links_weigh_the_states_of_a_variable_as_the_tables_do(seed, kind):
    rng = np.random.default_rng(seed)
    graph = flat_graph(random_case([seed, 9], kind, max_entries=3_000).model._problem(None))
    order = rng.permutation(len(graph.variables))
    links = padded_links(graph, order)
    for _ in range(5):
        x = rng.integers(graph.cards)
        for i, old in enumerate(order):
            found = weights_of_states(links, i, x[order])
            assert not found[graph.cards[old] :].any()
            rows = np.repeat(x[None], graph.cards[old], axis=0)
            rows[:, old] = np.arange(graph.cards[old])
            logs = graph.log_weights(rows)
            assert np.array_equal(found[: len(rows)] > 0, logs > -np.inf) or np.isneginf(logs).all()
            seen = np.flatnonzero(logs > -np.inf)
            if len(seen):
                assert np.allclose(
                    np.log(found[seen] / found[seen[0]]), logs[seen] - logs[seen[0]], atol=1e-9
                )


@pytest.mark.parametrize(("seen", "many"), [(4096, 2048), (8, 4)])
def test_equal_tables_are_stored_once_where_that_is_looked_for(monkeypatch, seen, many):
    monkeypatch.setattr(module, "SEEN", seen)
    monkeypatch.setattr(module, "MANY", many)
    same = padded_links(flat_graph(mk.generators.potts_grid(4, 4, 3, coupling=0.5)._problem(None)))
    assert len(same.tables) == 2 * 9  # one for each of its variables
    graph = flat_graph(mk.generators.ising_grid(4, 4, coupling="random", seed=1)._problem(None))
    assert len(padded_links(graph).tables) == 2 * graph.n_factors * 4
    few = mk.generators.ising_grid(4, 4, coupling=(np.full((4, 3), 0.5), np.full((3, 4), -0.5)))
    graph = flat_graph(few._problem(None))
    links = padded_links(graph)
    assert len(links.tables) <= 2 * graph.n_factors * 4
    if seen == 4096:
        assert len(links.tables) == 2 * 2 * 4
    found = links.tables[links.base[:, None] + np.arange(4)]
    assert np.allclose(
        found, graph.values.reshape(-1, 4)[graph.edge_factor[links.edge]]
    )  # they are symmetric


def test_tables_with_equal_marks_are_looked_at_before_they_count_as_equal():
    a, b = np.random.default_rng(0).random(2)
    rows = np.array([[b, 0.0], [0.0, a], [b, 0.0]])
    kept, which = module._different(rows)
    assert np.array_equal(kept[which], rows)


def test_what_has_no_links_is_told():
    big = mk.MarkovNetwork({"a": 65, "b": 2}, [mk.Factor(["a", "b"], np.ones((65, 2)))])
    assert "64 states" in why_no_links(flat_graph(big._problem(None)))
    cards = {"v": 64} | {f"x{i}": 2 for i in range(5)}
    wide = mk.MarkovNetwork(
        cards, [mk.Factor(list(cards)[1:], np.ones([2] * 5)), mk.Factor(["v"], np.ones(64))]
    )
    assert "too large" in why_no_links(flat_graph(wide._problem(None)))
    assert not why_no_links(flat_graph(mk.examples.asia()._problem(None)))
