"""Chains on the GPU: random numbers, single updates, clusters, records, and what happens where there is no GPU.

They run on a GPU where there is one, and else (or besides) as C++ on the processor.
"""

import warnings

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

import markovia as mk
from chain_checks import assert_close, chi_square, loop
from cuda_on_processor import compiled, needs_compiler, stand_in
from markovia.engines import Gibbs, SwendsenWang
from markovia.errors import DeviceWarning
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.markov_chains import chain_runs, device_chains
from markovia.inference.markov_chains.chain_runs import ChainSetUp, Wanted, graph_arrays, make_chain
from markovia.inference.markov_chains.device_chains import DeviceClusters, DeviceSweeps
from markovia.inference.markov_chains.gibbs import colour_classes
from markovia.inference.markov_chains.swendsen_wang import potts_form
from markovia.runtime import devices
from markovia.runtime.libraries import cp
from model_strategies import random_case

NO_GPU = devices.gpu() is None


@pytest.fixture(
    params=[
        pytest.param("processor", marks=needs_compiler),
        pytest.param("gpu", marks=pytest.mark.skipif(NO_GPU, reason="no GPU")),
    ]
)
def gpu(request, monkeypatch):
    monkeypatch.setattr(devices, "_said", set())
    if request.param == "gpu":
        yield
    else:
        with stand_in():
            yield


def set_up(model, engine, starts, wanted=None, draws=40, rao_blackwell=True, thin=1):
    """A run whose chains begin at given states, and what moves it."""
    problem = model._problem(None)
    graph = flat_graph(problem)
    arrays, wanted = graph_arrays(graph), wanted or Wanted()
    seeds = np.random.SeedSequence(3).spawn(len(starts))
    chains = [
        make_chain(graph, arrays, np.array(x), s, draws, wanted, len(starts))
        for x, s in zip(starts, seeds, strict=True)
    ]
    run = ChainSetUp(problem, graph, arrays, wanted, chains, seeds, thin, rao_blackwell)
    return run, engine._stepper(run)


def advance(run, stepper, count, first=0):
    for c, chain in enumerate(run.chains):
        stepper.advance(c, chain, stepper.plan(first, count, len(chain.trace), np.zeros(0)))


# -- random numbers ----------------------------------------------------------------------------------------------


@needs_compiler
def test_random_numbers_are_those_that_were_published():
    kernel = compiled("chains", ("STATES=2", "LANES=4", "SCORE=float")).get_function("random_words")
    ones = 0xFFFFFFFF
    counters = np.array(
        [[0] * 4, [ones] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]], dtype=np.uint32
    )
    keys = np.array([[0, 0], [ones] * 2, [0xA4093822, 0x299F31D0]], dtype=np.uint32)
    with stand_in() as small:
        words = small.zeros((3, 4), dtype=np.uint32)
        kernel((1,), (32,), (np.int32(3), small.asarray(counters), small.asarray(keys), words))
    assert [f"{w:08x}" for w in words.ravel()] == [
        "6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8", "408f276d", "41c83b0e", "a20bc7c6", "6d5451fd",
        "d16cfe09", "94fdcceb", "5001e420", "24126ea1",
    ]  # fmt: skip


@pytest.mark.parametrize("engine", [Gibbs(device="gpu"), SwendsenWang(device="gpu")], ids=lambda e: e.name)
def test_draws_depend_neither_on_the_launch_nor_on_how_many_chains_a_thread_takes(gpu, monkeypatch, engine):
    model = mk.generators.potts_grid(5, 16, 3, coupling=0.6, field="random", seed=1)
    starts = np.random.default_rng(0).integers(3, size=(4, 80))
    found = []
    for block, blocks, lanes in ((256, 2048, 4), (32, 2, 4), (64, 1, 1), (32, 1, 2)):
        monkeypatch.setattr(device_chains, "BLOCK", block)
        monkeypatch.setattr(device_chains, "MOST_BLOCKS", blocks)
        run, stepper = set_up(model, engine, starts)
        stepper.lanes = lanes
        defines = "STATES=3", f"LANES={lanes}", "SCORE=float"
        stepper.get_kernel = devices.cuda_module("chains", defines).get_function
        advance(run, stepper, 2)
        stepper.finish(run.chains)
        found.append((np.stack([c.x for c in run.chains]), np.stack([c.trace for c in run.chains])))
    assert (found[0][0] != starts).any()
    for x, trace in found[1:]:
        assert np.array_equal(x, found[0][0])
        assert np.array_equal(trace, found[0][1])
    alone, stepper = set_up(model, engine, starts[:1])  # the first chain without the others
    advance(alone, stepper, 2)
    stepper.finish(alone.chains)
    assert np.array_equal(alone.chains[0].x, found[0][0][0])


# -- single updates ----------------------------------------------------------------------------------------------


def full_conditional(graph, x, i):
    rows = np.repeat(x[None], graph.cards[i], axis=0)
    rows[:, i] = np.arange(graph.cards[i])
    logs = graph.log_weights(rows)
    w = np.exp(logs - logs.max())
    return w / w.sum()


@pytest.mark.parametrize("kind", ["undirected", "factor graph"])
@pytest.mark.parametrize("seed", range(4))
def test_recorded_probabilities_and_log_weights_are_those_of_the_tables(gpu, seed, kind):
    case = random_case([seed, 2], kind, max_entries=2_000)
    graph = flat_graph(case.model._problem(None))
    if np.isneginf(graph.log_scale) or (graph.values == 0).any():
        pytest.skip("has zeros")
    rng = np.random.default_rng(seed)
    starts = np.stack([rng.integers(graph.cards) for _ in range(4)])
    run, _ = set_up(case.model, Gibbs(device="cpu"), starts, draws=1)
    stepper = DeviceSweeps(run, [rng.permutation(len(graph.cards))])
    stepper.launch("weigh", stepper.n, stepper.lanes, stepper.model)
    weights = cp.asnumpy(stepper.gains).astype(np.int64).sum(axis=0) / 2.0**24
    assert np.allclose(weights, graph.log_weights(starts) - graph.log_scale, atol=1e-5)
    stepper._close_batch()  # makes room for sums
    stepper.update(0, stepper.n, False, 0, True, False)
    stepper.batch, stepper.in_batch = 0, 1
    stepper.finish(run.chains)
    for x, chain in zip(starts, run.chains, strict=True):
        assert np.array_equal(chain.x, x)
        expected = np.concatenate([full_conditional(graph, x, i) for i in range(len(x))])
        assert np.allclose(chain.sums[0], expected, atol=1e-6)


def test_a_sweep_moves_as_the_product_of_its_full_conditionals(gpu):
    model = loop()
    graph = flat_graph(model._problem(None))
    n, many = len(graph.cards), 1_600
    start = np.zeros(n, dtype=np.int64)
    run, stepper = set_up(model, Gibbs(device="gpu"), [start] * many, draws=1)
    advance(run, stepper, 1)
    stepper.finish(run.chains)
    counts = np.zeros(graph.cards)
    np.add.at(counts, tuple(np.stack([c.x for c in run.chains], axis=1)), 1)
    exact = {tuple(start): 1.0}
    for i in np.concatenate(colour_classes(graph)):
        after = {}
        for x, p in exact.items():
            for k, q in enumerate(full_conditional(graph, np.array(x), i)):
                y = (*x[:i], k, *x[i + 1 :])
                after[y] = after.get(y, 0.0) + p * q
        exact = after
    expected = np.zeros(graph.cards)
    for x, p in exact.items():
        expected[x] = p
    assert abs(chi_square(counts.ravel(), expected.ravel())) < 5


# -- clusters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_the_connected_components_and_have_the_sums_of_their_fields(gpu, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    n, q = 150, 3
    names = [f"x{i}" for i in range(n)]
    pairs = {tuple(sorted(p)) for p in rng.integers(n, size=(200, 2)).tolist() if p[0] != p[1]}
    fields = [mk.Factor([name], rng.random(q) + 0.1) for name in names]
    zero = rng.random(n) < 0.05
    for i in np.flatnonzero(zero):
        fields[i] = mk.Factor([names[i]], [1.0, 0.0, 0.5])
    tables = [mk.Factor([names[i], names[j]], np.eye(q) + 0.1) for i, j in sorted(pairs)]
    model = mk.MarkovNetwork(dict.fromkeys(names, q), [*fields, *tables])
    run, _ = set_up(model, SwendsenWang(device="cpu"), np.zeros((3, n), dtype=np.int64))
    form = potts_form(run.graph)
    form.bond[:] = rng.random(len(form.bond)) < 0.6  # certain bonds and none
    stepper = DeviceClusters(run, form)
    both = stepper.model, stepper.bonds
    stepper.launch("separate", n, 1, *both)
    stepper.launch("bond", stepper.edges, 1, *both, np.uint32(0))
    stepper.launch("gather", n, 1, *both)
    parent, sums, never = (cp.asnumpy(stepper.held[k]) for k in (3, 5, 6))
    bonded = form.bond > 0
    links = coo_matrix((np.ones(bonded.sum()), (form.first[bonded], form.second[bonded])), shape=(n, n))
    count, label = connected_components(links, directed=False)
    least = np.full(count, n)
    np.minimum.at(least, label, np.arange(n))
    logs = form.field.reshape(n, q)
    total = np.zeros((count, q))
    np.add.at(total, label, np.where(np.isneginf(logs), 0.0, logs))
    for c in range(3):
        assert np.array_equal(parent[c], least[label])
        assert np.array_equal(never[c, least, 1] == 1, np.isin(np.arange(count), label[zero]))
        assert np.allclose(sums[c, least] / stepper.bonds["f8"][0], total, atol=1e-12)
    stepper.launch("settle", n, stepper.lanes, *both, np.uint32(0))
    x = cp.asnumpy(stepper.x)
    assert np.array_equal(x, x[least[label]])
    assert not (x[zero] == 1).any()
    assert int(stepper.clusters.sum()) == 3 * count


@pytest.mark.parametrize("fields", [None, "random"])
def test_the_joint_distribution_of_draws_by_clusters_is_the_exact_one(gpu, fields):
    model = mk.generators.potts_grid(2, 2, 3, coupling=0.8, field=fields, seed=5)
    exact = model.joint().values / model.joint().values.sum()
    engine = SwendsenWang(device="gpu", burn_in=10, thin=3, chains=16)
    frame = model.sample(2400, seed=1, engine=engine)
    counts = np.zeros(exact.shape)
    np.add.at(counts, tuple(frame[n].to_numpy() for n in model.variables), 1)
    assert abs(chi_square(counts.ravel(), exact.ravel())) < 5


def test_zeros_are_respected(gpu):
    same = mk.Factor(["a", "b"], np.eye(2))
    model = mk.MarkovNetwork({"a": 2, "b": 2}, [same, mk.Factor(["a"], [1.0, 3.0])])
    found = model.query(
        ["a", "b"], engine=SwendsenWang(draws=1000, seed=1, rao_blackwell=False, device="gpu")
    )
    assert found.values[0, 1] == 0
    assert abs(found.values[1, 1] - 0.75) < 5 * found.info.error
    apart = mk.MarkovNetwork(
        dict.fromkeys("abc", 3), [mk.Factor(list(p), 1.0 - np.eye(3)) for p in ("ab", "bc")]
    )
    frame = apart.sample(400, seed=1, engine=Gibbs(device="gpu", blocks=None, burn_in=5))
    assert (frame["a"] != frame["b"]).all()
    assert (frame["b"] != frame["c"]).all()
    assert frame["b"].nunique() == 3


# -- answers -----------------------------------------------------------------------------------------------------

CASES = [
    (loop(), Gibbs),
    (mk.generators.ising_grid(3, 4, coupling=0.3, field="random", seed=2), Gibbs),
    (mk.generators.potts_grid(3, 3, 3, coupling=0.9, field="random", seed=1), SwendsenWang),
]


@pytest.mark.parametrize("rao_blackwell", [True, False])
@pytest.mark.parametrize(("model", "engine"), CASES, ids=["tables", "ising", "clusters"])
def test_marginals_agree_with_the_exact_ones(gpu, model, engine, rao_blackwell):
    settings = {"draws": 800, "seed": 1, "device": "gpu", "rao_blackwell": rao_blackwell}
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeviceWarning)
        info = assert_close(model, engine(**settings))
    assert info.details.device == "gpu"
    assert info.details.draws == 800
    if engine is SwendsenWang:
        other = model.query(model.variables[0], engine=engine(draws=800, seed=2)).info.details
        assert abs(info.details.mean_cluster / other.mean_cluster - 1.0) < 0.05
    else:
        assert info.details.colours >= 2


@pytest.mark.parametrize("rao_blackwell", [True, False])
def test_joint_posteriors_agree_with_the_exact_one(gpu, rao_blackwell):
    model = loop()
    engine = Gibbs(draws=1500, seed=1, device="gpu", rao_blackwell=rao_blackwell)
    found = model.query(["d", "b"], given={"a": 1}, engine=engine)
    exact = model.query(["d", "b"], given={"a": 1}, engine="enumeration")
    assert found.info.details.device == "gpu"
    assert np.abs(found.values - exact.values).max() < 5 * found.info.error


@pytest.mark.parametrize(("model", "engine"), CASES, ids=["tables", "ising", "clusters"])
def test_the_best_states_of_a_run_are_the_heaviest_it_saw(gpu, model, engine):
    graph = flat_graph(model._problem(None))
    starts = np.zeros((4, len(graph.cards)), dtype=np.int64)
    run, stepper = set_up(model, engine(device="gpu"), starts, Wanted(kept=graph.names, best=True))
    advance(run, stepper, 40)
    stepper.finish(run.chains)
    last = 0
    for chain in run.chains:
        heaviest = int(np.argmax(graph.log_weights(chain.kept)))
        assert np.array_equal(chain.best, chain.kept[heaviest])
        last += heaviest == 39
    assert last < 4
    assert model.map(engine=engine(draws=300, seed=1, device="gpu")).info.details.device == "gpu"


@pytest.mark.parametrize(("model", "engine"), CASES, ids=["tables", "ising", "clusters"])
def test_the_log_weights_that_are_traced_are_those_of_the_states(gpu, model, engine):
    graph = flat_graph(model._problem(None))
    rng = np.random.default_rng(0)
    starts = [rng.integers(graph.cards) for _ in range(4)]
    run, stepper = set_up(model, engine(device="gpu"), starts, Wanted(traced=graph.names, kept=graph.names))
    advance(run, stepper, 25)
    advance(run, stepper, 15, first=25)
    stepper.finish(run.chains)
    for chain in run.chains:
        weights = graph.log_weights(chain.kept) - graph.log_scale
        assert np.allclose(chain.trace[:, 0], weights, atol=1e-5)
        assert np.array_equal(chain.kept[-1], chain.x)
        assert len(np.unique(weights)) > 5
        # what is traced of a draw are its full conditionals
        for at, i, told in zip(chain.traced, chain.traced_owner, chain.trace[-1, 1:], strict=True):
            expected = full_conditional(graph, chain.x, i)[at - graph.starts[i]]
            assert told == pytest.approx(expected, abs=1e-6)
        assert np.allclose(np.add.reduceat(chain.sums.sum(axis=0), graph.starts[:-1]), 40)


@pytest.mark.parametrize("engine", [Gibbs(device="gpu"), SwendsenWang(device="gpu")], ids=lambda e: e.name)
def test_thinned_draws_are_every_other_one(gpu, engine):
    model = CASES[2][0]
    found = []
    for thin in (1, 2):
        wanted, starts = Wanted(kept=tuple(model.variables)), np.zeros((2, 9), dtype=np.int64)
        run, stepper = set_up(model, engine, starts, wanted, 12 // thin, rao_blackwell=False, thin=thin)
        advance(run, stepper, 12 // thin)
        stepper.finish(run.chains)
        found.append(np.stack([c.kept for c in run.chains]))
        counts = [c.sums.sum(axis=0).reshape(9, 3) for c in run.chains]
        assert np.array_equal(counts, (found[-1][..., None] == np.arange(3)).sum(axis=1))
    assert np.array_equal(found[0][:, 1::2], found[1])
    assert (found[1][:, :-1] != found[1][:, 1:]).any()


def test_states_that_are_counted_are_those_that_were_drawn(gpu):
    model = loop()
    graph = flat_graph(model._problem(None))
    wanted = Wanted(traced=graph.names, kept=graph.names)
    starts = np.zeros((4, 4), dtype=np.int64)
    run, stepper = set_up(model, Gibbs(device="gpu"), starts, wanted, rao_blackwell=False)
    advance(run, stepper, 40)
    stepper.finish(run.chains)
    for chain in run.chains:
        for t in range(len(chain.sums)):  # 20 batches of two draws
            seen = np.zeros(graph.starts[-1])
            np.add.at(seen, graph.starts[:-1] + chain.kept[2 * t : 2 * t + 2], 1.0)
            assert np.array_equal(chain.sums[t], seen)
        told = chain.kept[:, chain.traced_owner] == chain.traced - graph.starts[chain.traced_owner]
        assert np.array_equal(chain.trace[:, 1:], told)


@pytest.mark.parametrize("engine", [Gibbs, SwendsenWang])
def test_answers_depend_on_the_seed_and_not_on_how_draws_are_cut_into_slices(gpu, monkeypatch, engine):
    grid = mk.generators.ising_grid(4, 4, coupling=0.3)
    found = []
    for seed, first in ((1, 100_000), (1, 1), (2, 100_000)):
        monkeypatch.setattr(chain_runs, "FIRST_SLICE", first)
        found.append(grid.query("x0_0", engine=engine(draws=70, seed=seed, device="gpu")).values)
    assert np.allclose(found[0], found[1], rtol=1e-12)
    assert (found[0] != found[2]).any()


@needs_compiler
@pytest.mark.parametrize("engine", [Gibbs, SwendsenWang])
def test_draws_that_are_replayed_as_a_graph_are_those_that_are_launched_one_by_one(monkeypatch, engine):
    grid = mk.generators.ising_grid(4, 4, coupling=0.3, field=0.1)
    recorded, replays = None, []
    launch = device_chains.DeviceStepper.launch

    def launch_or_record(self, *arguments):
        if recorded is None:
            launch(self, *arguments)
        else:
            recorded.append(lambda: launch(self, *arguments))

    class Stream:
        """Records what is started, as CUDA's do, and starts it again and again."""

        def __init__(self, **_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def begin_capture(self):
            nonlocal recorded
            recorded = []

        def end_capture(self):
            nonlocal recorded
            self.found, recorded = recorded, None
            return self

        def launch(self, stream):
            replays.append(len(self.found))
            for start in self.found:
                start()

        def synchronize(self):
            pass

    monkeypatch.setattr(device_chains, "GRAPH_FROM", 2)
    asked = {"draws": 60, "seed": 1, "device": "gpu", "thin": 2}
    with stand_in() as small:
        plain = grid.marginals(engine=engine(**asked))
        monkeypatch.setattr(small.cuda, "Stream", Stream)
        monkeypatch.setattr(device_chains.DeviceStepper, "launch", launch_or_record)
        found = grid.marginals(engine=engine(**asked))
    assert len(replays) == 14 + 20 * 2  # all but the first draw of the burn-in, and of each batch of three
    for v, posterior in plain.items():
        assert np.array_equal(found[v].values, posterior.values)
        assert found[v].info.error == posterior.info.error


@pytest.mark.parametrize("logs", [[[-20, -20], [0, 0]], [[0, 3], [0, 3]]], ids=["small", "far apart"])
def test_many_links_at_a_variable_are_added_up_in_double_precision(gpu, logs):
    leaves = [f"x{i}" for i in range(60)]
    more = np.random.default_rng(0).integers(-(2**16), 2**16, size=(60, 2, 2)) / 2**19  # exact as floats
    more[:, 1] = 0.0
    tables = [mk.Factor([v, "hub"], np.exp(np.add(logs, m))) for v, m in zip(leaves, more, strict=True)]
    model = mk.MarkovNetwork(dict.fromkeys([*leaves, "hub"], 2), tables)
    graph = flat_graph(model._problem(None))
    run, stepper = set_up(model, Gibbs(device="gpu"), np.zeros((2, 61), dtype=np.int64), draws=1)
    stepper._close_batch()
    stepper.update(0, stepper.n, False, 0, True, False)
    stepper.batch, stepper.in_batch = 0, 1
    stepper.finish(run.chains)
    hub = graph.index["hub"]
    expected = full_conditional(graph, np.zeros(61, dtype=np.int64), hub)
    for chain in run.chains:
        assert np.allclose(chain.sums[0, graph.starts[hub] :][:2], expected, atol=1e-6)


# -- who computes ------------------------------------------------------------------------------------------------


def test_large_models_go_to_the_gpu_by_themselves_and_small_ones_do_not(gpu, monkeypatch):
    grid = mk.generators.ising_grid(4, 4, coupling=0.3)
    for engine in (Gibbs(draws=50, seed=1), SwendsenWang(draws=50, seed=1)):
        monkeypatch.setattr(device_chains, "GPU_FROM", 17)
        assert grid.query("x0_0", engine=engine).info.details.device == "cpu"
        monkeypatch.setattr(device_chains, "GPU_FROM", 16)
        assert grid.query("x0_0", engine=engine).info.details.device == "gpu"


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (Gibbs(draws=50, seed=1, scan="random", device="gpu"), "one by one"),
        (Gibbs(draws=50, seed=1, blocks="trees", device="gpu"), "blocks are drawn one by one"),
        (SwendsenWang(draws=50, seed=1, clusters="one", device="gpu"), "one after the other"),
    ],
    ids=["random", "trees", "wolff"],
)
def test_what_the_gpu_does_not_do_the_processor_does_and_says_so(gpu, monkeypatch, engine, said):
    grid = mk.generators.ising_grid(4, 4, coupling=0.3)
    with pytest.warns(DeviceWarning, match=said):
        found = grid.query("x0_0", engine=engine)
    assert found.info.details.device == "cpu"
    monkeypatch.setattr(device_chains, "GPU_FROM", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeviceWarning)
        grid.query("x0_0", engine=type(engine)(**{**vars(engine), "device": None}))  # not asked for: not said


@pytest.mark.parametrize("engine", [Gibbs, SwendsenWang])
def test_a_gpu_that_fails_on_the_way_is_told_once_and_the_processor_answers(gpu, monkeypatch, engine):
    grid = mk.generators.ising_grid(4, 4, coupling=0.3)

    class OutOfMemoryError(Exception):
        pass

    OutOfMemoryError.__module__ = "cupy.cuda.memory"
    launch = device_chains.DeviceStepper.launch

    def fails(self, name, *arguments):
        if self.sweeps > 20:
            raise OutOfMemoryError("no room for 7 bytes")
        launch(self, name, *arguments)

    monkeypatch.setattr(device_chains.DeviceStepper, "launch", fails)
    monkeypatch.setattr(chain_runs, "FIRST_SLICE", 1)
    with pytest.warns(DeviceWarning, match="no room for 7 bytes"):
        found = grid.query("x0_0", engine=engine(draws=80, seed=1, device="gpu"))
    assert found.info.details.device == "cpu"
    assert np.array_equal(found.values, grid.query("x0_0", engine=engine(draws=80, seed=1)).values)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeviceWarning)
        grid.query("x0_0", engine=engine(draws=80, seed=1, device="gpu"))


@pytest.mark.skipif(not NO_GPU, reason="there is a GPU")
def test_without_a_gpu_the_processor_answers_and_says_why(monkeypatch):
    monkeypatch.setattr(devices, "_said", set())
    grid = mk.generators.ising_grid(4, 4, coupling=0.3)
    with pytest.warns(DeviceWarning, match="the processor answers"):
        found = grid.query("x0_0", engine=Gibbs(draws=80, seed=1, device="gpu"))
    assert np.array_equal(found.values, grid.query("x0_0", engine=Gibbs(draws=80, seed=1)).values)
    monkeypatch.setattr(device_chains, "GPU_FROM", 0)
    assert grid.query("x0_0", engine=Gibbs(draws=80, seed=1)).info.details.device == "cpu"
    with pytest.raises(mk.errors.InvalidArgument, match="device="):
        Gibbs(device="tpu")
