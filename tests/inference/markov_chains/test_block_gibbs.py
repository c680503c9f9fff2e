"""Block Gibbs sampling: forests, enumerated blocks, exact inference, red-black; exactness and better mixing."""

import numpy as np
import pytest

import markovia as mk
from chain_checks import assert_close, chi_square, loop, marginals
from markovia.engines import Gibbs
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.markov_chains import block_gibbs
from markovia.inference.markov_chains.chain_runs import ChainSetUp, Wanted, graph_arrays, make_chain
from model_strategies import random_case


def stepper_for(model, blocks, start=None):
    problem = model._problem(None)
    graph = flat_graph(problem)
    arrays = graph_arrays(graph)
    seed = np.random.SeedSequence(3)
    start = np.zeros(len(graph.variables), dtype=np.int64) if start is None else np.array(start)
    chain = make_chain(graph, arrays, start, seed, 4, Wanted(), 1)
    run = ChainSetUp(problem, graph, arrays, Wanted(), [chain], [seed], thin=1, rao_blackwell=True)
    return block_gibbs.make_blocks(blocks, run), chain, graph


@pytest.mark.parametrize(
    "blocks",
    [
        "trees",
        [["a", "b"], ["c", "d"]],
        [["a", "b", "c"]],
        [["a", "b", "c", "d"]],
        [["b", "a"], ["a", "d"], ["c"]],
    ],
    ids=str,
)
def test_marginals_of_a_loopy_model_agree_with_the_exact_ones(blocks):
    assert_close(loop(3.0), Gibbs(draws=2500, seed=1, blocks=blocks))


@pytest.mark.parametrize("blocks", ["trees", "red-black"])
def test_marginals_of_grids_agree_with_the_exact_ones(blocks):
    potts = mk.generators.potts_grid(3, 4, 3, coupling=0.8, field="random", seed=2)
    assert_close(potts, Gibbs(draws=2000, seed=1, blocks=blocks), given={"x1_1": 1})
    assert_close(
        mk.generators.ising_grid(4, 4, coupling=0.4, field=0.1), Gibbs(draws=3000, seed=1, blocks=blocks)
    )


def test_a_block_of_all_variables_gives_independent_exact_draws():
    model = loop(4.0)
    exact = (model.joint().values / model.joint().values.sum()).ravel()
    for blocks, kind in (([["a", "b", "c", "d"]], "enumerated"), ("chain", "forests")):
        if blocks == "chain":
            rng = np.random.default_rng(1)
            factors = [mk.Factor([u, v], rng.random((3, 3)) + 0.05) for u, v in ("ab", "bc", "bd")]
            model = mk.MarkovNetwork(dict.fromkeys("abcd", 3), factors)
            exact = (model.joint().values / model.joint().values.sum()).ravel()
            blocks = [["c", "a", "d", "b"]]
        stepper, chain, graph = stepper_for(model, blocks)
        assert stepper.drawn_by[kind] == 1
        counts = np.zeros(graph.cards)
        warm = np.zeros(4)
        for _ in range(5000):
            stepper.advance(0, chain, stepper.plan(0, 1, 4, warm))
            counts[tuple(chain.x)] += 1
        assert abs(chi_square(counts.ravel(), exact)) < 4


def test_a_block_draw_is_exact_given_the_rest():
    model = loop(4.0)
    joint = model.joint().values
    start = [1, 2, 0, 1]
    row = (joint[:, :, 0, 1] / joint[:, :, 0, 1].sum()).ravel()
    stepper, chain, _ = stepper_for(model, [["a", "b"], ["c"], ["d"]], start)
    from markovia.kernels.sampling.forest_draws import sweep_blocks

    counts = np.zeros((2, 3))
    one = (stepper.ptr[:2], stepper.members, stepper.kinds[:1], stepper.factor_ptr, stepper.factors)
    for _ in range(5000):
        chain.x[:] = start
        block_gibbs_place(stepper, chain)
        sweep_blocks(stepper.arrays, chain, stepper.forests[0], one)
        assert list(chain.x[2:]) == start[2:]
        counts[tuple(chain.x[:2])] += 1
    assert abs(chi_square(counts.ravel(), row)) < 4


def block_gibbs_place(stepper, chain):
    from markovia.kernels.sampling.chains import place

    place(stepper.arrays, chain.x, chain.offset)


def test_wide_blocks_are_drawn_by_exact_inference():
    grid = mk.generators.ising_grid(4, 4, coupling=0.5, field="random", seed=1)
    names = grid.variables
    found = grid.query("x0_0", engine=Gibbs(draws=120, seed=1, chains=2, burn_in=2, blocks=[names[:14]]))
    assert found.info.details.blocks["exact inference"] == 1
    assert abs(found[1] - grid.query("x0_0")[1]) < 5 * found.info.error


def test_random_forests_hold_about_two_thirds_of_a_lattice_and_have_no_loop():
    grid = mk.generators.ising_grid(30, 30, coupling=0.2)
    _, info = marginals(grid, Gibbs(draws=20, seed=1, chains=1, blocks="trees"), targets=["x0_0"])
    assert 0.62 < info.details.forest_share < 0.72
    from markovia.kernels.sampling.forest_draws import clean, grow

    rng = np.random.default_rng(0)
    for seed in range(30):
        model = grid if seed == 0 else random_case(seed, "undirected").model
        stepper, _, graph = stepper_for(model, "trees")
        order = rng.permutation(len(graph.variables))
        room = stepper.forests[0]
        size = grow(stepper.arrays, order, room)
        inside = set(room.nodes[:size].tolist())
        pairs = []
        for f in range(graph.n_factors):
            held = [int(i) for i in graph.members(f) if int(i) in inside]
            assert len(held) <= 2
            pairs += [tuple(held)] * (len(held) == 2)
        import networkx as nx

        induced = nx.MultiGraph(pairs)
        assert not pairs or nx.is_forest(induced)
        clean(stepper.arrays, size, room)
        assert not room.member.any()
        assert not room.touched.any()


def test_trees_mix_better_than_single_variables_on_a_lattice():
    grid = mk.generators.ising_grid(8, 8, coupling=0.42)
    lag = {}
    for blocks in (None, "trees"):
        _, info = marginals(
            grid, Gibbs(draws=2000, seed=1, blocks=blocks, rao_blackwell=False), targets=["x4_4"]
        )
        lag[blocks] = info.diagnostics.autocorrelation("log weight", 1)[-1]
    assert lag["trees"] < 0.9 * lag[None]


def test_trees_give_independent_draws_where_the_model_is_a_tree():
    path = mk.generators.ising_grid(1, 30, coupling=1.5)
    lag = {}
    for blocks in (None, "trees"):
        _, info = marginals(
            path, Gibbs(draws=2000, seed=1, blocks=blocks, rao_blackwell=False), targets=["x0_15"]
        )
        lag[blocks] = info.diagnostics.autocorrelation("x0_15=1", 1)[-1]
    assert lag[None] > 0.8
    assert abs(lag["trees"]) < 0.05
    assert info.details.forest_share == 1.0


def test_blocks_cross_zeros_that_single_changes_cannot():
    asia = mk.examples.asia()
    _, stuck = marginals(asia, Gibbs(draws=500, seed=1, blocks=None), given={"xray": "yes"})
    assert not stuck.converged
    for blocks in ([["tub", "lung", "either"]], "auto"):
        assert_close(asia, Gibbs(draws=4000, seed=1, blocks=blocks), given={"xray": "yes"})


def test_red_black_needs_a_bipartite_graph():
    with pytest.raises(mk.errors.InvalidArgument, match="bipartite"):
        loop().query("a", engine=Gibbs(blocks="red-black"))


def test_unknown_names_in_blocks_are_refused_and_observed_ones_ignored():
    with pytest.raises(mk.errors.UnknownVariable):
        loop().query("a", engine=Gibbs(blocks=[["a", "zebra"]]))
    found = loop().query("a", given={"b": 1}, engine=Gibbs(draws=2000, seed=1, blocks=[["a", "b"]]))
    assert abs(found[1] - loop().query("a", given={"b": 1})[1]) < 5 * found.info.error
