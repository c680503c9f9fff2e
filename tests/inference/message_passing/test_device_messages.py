"""Messages on the GPU: round by round those of plain loops, the fixed points of the processor, and who computes what.

They run on a GPU where there is one, and else (or besides) as C++ on the processor.
"""

import warnings

import numpy as np
import pytest

import markovia as mk
from chain_checks import loop
from cuda_on_processor import needs_compiler, stand_in
from markovia.engines import LoopyBP
from markovia.errors import DeviceWarning
from markovia.inference.message_passing import device_messages, loopy_bp
from markovia.inference.message_passing.device_messages import device_messages as run_there
from markovia.inference.message_passing.message_graph import message_graph
from markovia.inference.message_passing.schedules import SUM, ScheduleSettings, first_messages, propagate
from markovia.kernels.flat_graphs.edge_colours import colour_edges
from markovia.runtime import devices

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


def mixed(seed=0, n=7):
    """A model over pairs of variables of 2 to 4 states, with loops."""
    rng = np.random.default_rng(seed)
    cards = {f"x{i}": int(rng.integers(2, 5)) for i in range(n)}
    pairs = [
        (f"x{i}", f"x{j}") for i in range(n) for j in range(i + 1, n) if j == i + 1 or rng.random() < 0.3
    ]
    tables = [mk.Factor(p, np.exp(rng.normal(size=[cards[v] for v in p]))) for p in pairs]
    return mk.MarkovNetwork(cards, [*tables, mk.Factor(["x0"], rng.random(cards["x0"]) + 0.1)])


def by_loops(graph, schedule, damping, rounds, first):
    """Messages into variables after some rounds, a table at a time; and the largest change in the last of them."""
    flat, ends = graph.flat, graph.scope.reshape(-1, 2)
    message = {
        (f, s): m
        for (f, s), m in zip(np.ndindex(*ends.shape), np.split(first, graph.message_ptr[1:-1]), strict=True)
    }
    colour = np.zeros(len(ends), dtype=np.int64)
    if schedule == "sequential":
        colour_edges(graph.scope.copy(), np.zeros(len(flat.cards), dtype=np.int64), colour)
    moved = 0.0
    for _ in range(rounds):
        moved = 0.0
        for c in range(colour.max() + 1):
            now = dict(message)
            for f in np.flatnonzero(colour == c).tolist():
                for side in (0, 1):
                    other = ends[f, 1 - side]
                    sent = flat.unary[flat.starts[other] : flat.starts[other + 1]].copy()
                    for g, s in zip(*np.nonzero(ends == other), strict=True):
                        if g != f:
                            sent = sent * message[int(g), int(s)]
                    table = flat.table(f) if side == 1 else flat.table(f).T
                    fresh = sent @ table
                    fresh = fresh / fresh.sum()
                    moved = max(moved, np.abs(fresh - message[f, side]).max())
                    now[f, side] = (1.0 - damping) * fresh + damping * message[f, side]
            message = now
    return np.concatenate([message[key] for key in np.ndindex(*ends.shape)]), moved


@pytest.mark.parametrize("damping", [0.0, 0.4])
@pytest.mark.parametrize("schedule", ["flooding", "sequential"])
@pytest.mark.parametrize(
    "model",
    [
        mixed(),
        mk.generators.ising_grid(4, 5, coupling="random", field="random", seed=1),
        mk.generators.potts_grid(3, 3, 3, coupling=0.9, field="random", seed=1),
    ],
    ids=["mixed", "ising", "potts"],
)
def test_messages_are_those_of_plain_loops(gpu, model, schedule, damping):
    graph = message_graph(model._problem(None))
    for rounds in (1, 2, 5):
        settings = ScheduleSettings(schedule, damping, 1e-12, rounds, None, "random", 4)
        expected, moved = by_loops(graph, schedule, damping, rounds, first_messages(graph, SUM, settings))
        found = run_there(graph, settings)
        assert np.allclose(found.incoming, expected, atol=1e-13)
        assert found.error == pytest.approx(moved, rel=1e-9)
        assert (found.iterations, found.converged, found.device) == (rounds, False, "gpu")


@pytest.mark.parametrize("schedule", ["flooding", "sequential"])
@pytest.mark.parametrize(
    "model",
    [mixed(3), mk.generators.ising_grid(9, 9, coupling=0.3, field="random", seed=1)],
    ids=["mixed", "ising"],
)
def test_answers_are_the_fixed_points_that_the_processor_finds(gpu, model, schedule):
    settings = {"schedule": schedule, "damping": 0.1, "tolerance": 1e-11}
    name = model.variables[1]
    given = {name: model.states(name)[1]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeviceWarning)
        found = model.marginals(given=given, engine=LoopyBP(device="gpu", **settings))
        log_z = model.log_partition(given=given, engine=LoopyBP(device="gpu", **settings))
    expected = model.marginals(given=given, engine=LoopyBP(device="cpu", **settings))
    info = next(iter(found.values())).info
    assert info.converged
    assert info.details.device == "gpu"
    assert info.details.course.steps[-1] == info.iterations
    for v, posterior in expected.items():
        assert np.abs(found[v].values - posterior.values).max() < 1e-9
    assert log_z == pytest.approx(model.log_partition(given=given, engine=LoopyBP(**settings)), abs=1e-9)


def test_products_of_many_messages_do_not_vanish(gpu):
    leaves = [f"x{i}" for i in range(60)]
    strong = [mk.Factor([v], [1.0, 1e-20] if i % 2 else [1e-20, 1.0]) for i, v in enumerate(leaves)]
    tables = [mk.Factor(["hub", v], np.eye(2) + 1e-30) for v in leaves]
    loop_of_three = mk.Factor(["x0", "x1"], [[2, 1], [1, 2]])
    model = mk.MarkovNetwork(dict.fromkeys(["hub", *leaves], 2), [*strong, *tables, loop_of_three])
    graph = message_graph(model._problem(None))
    # the hub gets 30 messages of 1e-20 against each of its states
    settings = ScheduleSettings("flooding", 0.0, 1e-12, 5, None, "uniform", None)
    found, expected = run_there(graph, settings), propagate(graph, SUM, settings)
    assert found.possible
    assert np.allclose(found.incoming, expected.incoming, rtol=1e-9, atol=0)


def test_impossible_models_are_found_out(gpu):
    names = list("abc")
    apart = [mk.Factor(list(p), 1.0 - np.eye(2)) for p in ("ab", "bc", "ca")]
    model = mk.MarkovNetwork(dict.fromkeys(names, 2), [*apart, mk.Factor(["a"], [1.0, 0.0])])
    for schedule in ("flooding", "sequential"):
        graph = message_graph(model._problem(None))
        found = run_there(graph, ScheduleSettings(schedule, 0.0, 1e-9, 100, None, "uniform", None))
        assert not found.possible
        assert found.converged
        assert model.log_partition(engine=LoopyBP(schedule=schedule, device="gpu")) == -np.inf


def test_time_limits_and_iterations_end_a_run(gpu):
    model = mk.generators.ising_grid(5, 5, coupling=2.0, field="random", seed=1)
    graph = message_graph(model._problem(None))
    found = run_there(graph, ScheduleSettings("flooding", 0.0, 1e-300, 37, None, "uniform", None))
    assert found.iterations == 37
    found = run_there(graph, ScheduleSettings("flooding", 0.0, 1e-300, 10**9, 1e-6, "uniform", None))
    assert found.iterations < 1000
    assert not found.converged


# -- who computes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "model", "said"),
    [
        ({"schedule": "residual"}, mixed(), "residual"),
        ({"domain": "log"}, mixed(), "logarithms"),
        ({}, loop(), "tables over two variables"),
        ({}, mk.MarkovNetwork(
            dict.fromkeys(["h", *map(str, range(33))], 2),
            [*(mk.Factor(["h", str(i)], [[2, 1], [1, 2]]) for i in range(33)), mk.Factor(["0", "1"], [[2, 1], [1, 2]])],
        ), "31 tables"),
    ],
    ids=["residual", "log", "wide", "hub"],
)  # fmt: skip
def test_what_the_gpu_does_not_do_the_processor_does_and_says_so(gpu, monkeypatch, settings, model, said):
    name = model.variables[0]
    with pytest.warns(DeviceWarning, match=said):
        found = model.query(name, engine=LoopyBP(device="gpu", **settings))
    assert found.info.details.device == "cpu"
    expected = model.query(name, engine=LoopyBP(device="cpu", **settings))
    assert np.array_equal(found.values, expected.values)
    monkeypatch.setattr(loopy_bp, "GPU_FROM", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeviceWarning)
        model.query(name, engine=LoopyBP(max_iterations=999, **settings))  # not asked for: not said


def test_forests_stay_on_the_processor_and_large_models_go_by_themselves(gpu, monkeypatch):
    monkeypatch.setattr(loopy_bp, "GPU_FROM", 16)
    chain = mk.MarkovNetwork(
        {f"x{i}": 2 for i in range(20)},
        [mk.Factor([f"x{i}", f"x{i + 1}"], [[2, 1], [1, 2]]) for i in range(19)],
    )
    info = chain.query("x3", engine=LoopyBP(device="gpu")).info
    assert info.exact
    assert info.details.device == "cpu"
    for size, device in ((3, "cpu"), (4, "gpu")):
        grid = mk.generators.ising_grid(size, 4, coupling=0.2, field=0.1)
        assert grid.query("x0_0", engine=LoopyBP()).info.details.device == device
        assert grid.query("x0_0", engine=LoopyBP(device="cpu")).info.details.device == "cpu"


def test_a_gpu_that_fails_is_told_once_and_the_processor_answers(gpu, monkeypatch):
    def fails(graph, settings):
        raise devices.DeviceFailure("the GPU failed (no room)")

    monkeypatch.setattr(loopy_bp, "device_messages", fails)
    grid = mk.generators.ising_grid(4, 4, coupling=0.3)
    with pytest.warns(DeviceWarning, match="no room"):
        found = grid.query("x0_0", engine=LoopyBP(device="gpu"))
    assert found.info.details.device == "cpu"
    assert np.array_equal(found.values, grid.query("x0_0", engine=LoopyBP(device="cpu")).values)


def test_edges_of_a_grid_take_four_launches_a_round(gpu):
    graph = message_graph(mk.generators.ising_grid(6, 7, coupling=0.2, field=0.1)._problem(None))
    settings = ScheduleSettings("sequential", 0.0, 1e-9, 10, None, "uniform", None)
    links = device_messages.padded_links(graph.flat)
    run = device_messages.DeviceRun(graph, links, first_messages(graph, SUM, settings), settings)
    assert len(run.groups) == 4
    assert sum(count for count, _ in run.groups) == len(graph.scope)
