"""Gibbs sampling: right answers, exact kernels, starts under zeros, reproducibility, and honest reports."""

import warnings

import numpy as np
import pytest

import markovia as mk
from chain_checks import assert_close, chi_square, loop, marginals
from markovia.engines import Gibbs
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.flat_graphs.tied_variables import islands
from markovia.inference.markov_chains import chain_starts, gibbs
from markovia.inference.markov_chains.chain_runs import ChainSetUp, Wanted, graph_arrays, make_chain
from model_strategies import log_marginal, log_sum, log_weights, random_case, random_findings, tries

SETTINGS = [
    {},
    {"scan": "random"},
    {"scan": "chromatic"},
    {"rao_blackwell": False},
    {"thin": 3},
    {"chains": 2, "draws": 6000},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_marginals_of_a_loopy_model_agree_with_the_exact_ones(settings):
    assert_close(loop(), Gibbs(**{"draws": 3000, "seed": 1, **settings}))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_marginals_of_an_ising_grid_agree_with_the_exact_ones(settings):
    grid = mk.generators.ising_grid(4, 4, coupling=0.3, field="random", seed=2)
    info = assert_close(grid, Gibbs(**{"draws": 3000, "seed": 1, **settings}), given={"x1_1": 1})
    assert info.details.kernel == "binary pairwise"


def test_random_models_with_findings_agree_with_brute_force():
    checked = 0
    for seed in tries(60):
        case = random_case(seed, ["directed", "undirected", "structured"][seed % 3], max_entries=200)
        rng = np.random.default_rng(seed)
        given = random_findings(case, rng)
        logs = log_weights(case, given)
        if np.isneginf(log_sum(logs)) or len(given) == len(case.cards):
            continue
        found, info = marginals(case.model, Gibbs(draws=1500, seed=seed), given)
        if not info.converged:
            continue  # zeros that single changes cannot cross; the engine says so
        for name, posterior in found.items():
            exact = np.exp(log_marginal(case, logs, [name]) - log_sum(logs))
            assert np.abs(posterior.values - exact).max() < 5 * info.error + 1e-9, (seed, name)
        checked += 1
    assert checked > len(tries(60)) / 2


def _one_sweep_counts(model, start, scan, n):
    problem = model._problem(None)
    graph = flat_graph(problem)
    arrays = graph_arrays(graph)
    seed = np.random.SeedSequence(5)
    chains = [make_chain(graph, arrays, np.array(start), seed, 4, Wanted(), 1)]
    run = ChainSetUp(problem, graph, arrays, Wanted(), chains, [seed], thin=1, rao_blackwell=True)
    stepper = Gibbs(scan=scan)._stepper(run)
    counts = np.zeros(graph.cards)
    warm = np.zeros(4)
    for _ in range(n):
        chains[0].x[:] = start
        if isinstance(stepper, gibbs.BinaryStepper):
            stepper.bits[0][:] = start
        stepper.advance(0, chains[0], stepper.plan(0, 1, 4, warm))
        ended = stepper.bits[0] if isinstance(stepper, gibbs.BinaryStepper) else chains[0].x
        counts[tuple(ended)] += 1
    return counts.ravel()


@pytest.mark.parametrize(
    "model",
    [loop(), mk.generators.ising_grid(2, 2, coupling=0.7, field="random", seed=1, states=(0, 1))],
    ids=["tables", "binary"],
)
def test_a_compiled_sweep_is_the_exact_gibbs_kernel(model):
    exact = mk.MarkovChain.gibbs(model, "systematic")
    start = [1, 0, 1, 0]
    counts = _one_sweep_counts(model, start, "systematic", 6000)
    row = exact.transition[exact.states.index(tuple(start))]
    assert abs(chi_square(counts, row)) < 4


def test_the_exact_kernel_of_every_scan_leaves_the_target_as_it_is():
    model = loop()
    p = model.joint().values.ravel()
    for scan in ("systematic", "random", 0, 3):
        assert mk.MarkovChain.gibbs(model, scan).is_stationary(p / p.sum())


def test_joint_posteriors_come_from_the_draws():
    model = loop()
    for rao_blackwell in (True, False):
        engine = Gibbs(draws=4000, seed=3, rao_blackwell=rao_blackwell)
        found = model.query(["d", "a", "b"], engine=engine)
        exact = model.query(["d", "a", "b"])
        assert found.values.shape == (3, 2, 3)
        assert np.abs(found.values - exact.values).max() < 5 * found.info.error
    grid = mk.generators.ising_grid(3, 3, coupling=0.4)
    found = grid.query(["x0_0", "x2_2"], engine=Gibbs(draws=4000, seed=3))
    assert np.abs(found.values - grid.query(["x0_0", "x2_2"]).values).max() < 5 * found.info.error


def test_averaging_full_conditionals_lowers_the_error():
    model = mk.generators.ising_grid(4, 4, coupling=0.1)
    plain = model.marginals(engine=Gibbs(draws=3000, seed=1, rao_blackwell=False))["x0_0"].info.error
    averaged = model.marginals(engine=Gibbs(draws=3000, seed=1))["x0_0"].info.error
    assert averaged < 0.5 * plain


def test_draws_have_the_right_moments_and_fill_the_frame():
    model = loop()
    frame = model.sample(4001, seed=4, engine=Gibbs())
    assert frame.shape == (4001, 4)
    exact = model.joint().values / model.joint().values.sum()
    counts = np.zeros(exact.shape)
    np.add.at(counts, tuple(frame[n].to_numpy() for n in model.variables), 1)
    assert abs(chi_square(counts.ravel(), exact.ravel())) < 5
    again = model.sample(4001, seed=4, engine=Gibbs(threads=1))
    assert frame.equals(again)
    assert not frame.equals(model.sample(4001, seed=5, engine=Gibbs()))


def test_the_best_configuration_visited_is_the_best_of_a_small_model():
    model = loop()
    found = model.map(engine=Gibbs(draws=500, seed=0))
    exact = model.map()
    assert found.to_dict() == exact.to_dict()
    assert found.log_weight == pytest.approx(exact.log_weight)
    assert found.bound == np.inf
    grid = mk.generators.ising_grid(3, 3, coupling=0.4, field="random", seed=1)
    found, exact = grid.map(engine=Gibbs(draws=500, seed=0)), grid.map()
    assert found.to_dict() == exact.to_dict()
    assert found.log_weight == pytest.approx(exact.log_weight)


def test_marginal_map_and_log_masses_are_refused_by_name():
    with pytest.raises(mk.errors.Unanswered, match="log partition"):
        loop().log_partition(engine="gibbs")
    with pytest.raises(mk.errors.Unanswered, match="maximises over all"):
        loop().map(targets=["a"], engine="gibbs")


@pytest.mark.parametrize(
    "settings", [{}, {"scan": "random"}, {"scan": "chromatic"}, {"blocks": "trees"}], ids=str
)
def test_answers_depend_on_the_seed_and_not_on_threads(settings):
    for model in (loop(), mk.generators.ising_grid(3, 3, coupling=0.2)):
        name = model.variables[0]
        ask = [
            model.query(name, engine=Gibbs(draws=200, seed=s, threads=t, **settings)).values
            for s, t in ((1, 1), (1, 2), (1, 3), (2, 1))
        ]
        assert (ask[0] == ask[1]).all()
        assert (ask[0] == ask[2]).all()
        assert (ask[0] != ask[3]).any()


@pytest.mark.parametrize("binary", [True, False])
def test_colours_updated_by_several_threads_give_the_same_answer_and_the_right_one(monkeypatch, binary):
    monkeypatch.setattr(gibbs, "LARGE", 1)
    monkeypatch.setattr(gibbs, "CHUNK", 3)
    model = (
        mk.generators.ising_grid(3, 4, coupling=0.3, field=0.2)
        if binary
        else mk.generators.potts_grid(3, 3, 3, coupling=0.5, field="random", seed=1)
    )
    info = assert_close(model, Gibbs(draws=800, seed=1, scan="chromatic"))
    assert info.details.colours == 2
    one, two = (
        model.query("x1_1", engine=Gibbs(draws=50, seed=1, scan="chromatic", threads=t)).values
        for t in (1, 2)
    )
    assert (one == two).all()


def test_colours_never_share_a_table():
    for seed in range(10):
        graph = flat_graph(random_case(seed, "undirected").model._problem(None))
        classes = gibbs.colour_classes(graph)
        assert sorted(np.concatenate([*classes, []]).astype(int)) == list(range(len(graph.variables)))
        colour = {int(i): c for c, members in enumerate(classes) for i in members}
        for f in range(graph.n_factors):
            members = [colour[int(i)] for i in graph.members(f)]
            assert len(set(members)) == len(members)


def test_log_odds_stand_for_the_same_weights_as_the_tables():
    rng = np.random.default_rng(0)
    grid = mk.generators.ising_grid(3, 3, coupling="random", field="random", seed=4)
    graph = flat_graph(grid._problem(None))
    pairs = gibbs.binary_pairs(graph)
    from markovia.kernels.sampling.gibbs import weigh_binary

    for _ in range(5):
        x = rng.integers(2, size=9)
        weighed = weigh_binary(pairs, x.astype(np.int8))
        assert weighed + graph.log_scale == pytest.approx(graph.log_weight(x))


# -- starts and traps --------------------------------------------------------------------------------------------


def trap(eps):
    """Two variables that are equal with probability 1 - eps."""
    return mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[1 - eps, eps], [eps, 1 - eps]])])


def test_chains_that_cannot_leave_their_state_do_not_count_as_converged():
    with pytest.warns(mk.errors.ConvergenceWarning, match="chains disagree"):
        found = trap(0.0).query("a", engine=Gibbs(draws=500, seed=0, blocks=None))
    assert not found.info.converged
    assert found.info.diagnostics.r_hat == np.inf
    assert found.info.error > 0.1


@pytest.mark.parametrize("seed", range(6))
def test_dispersed_starts_show_the_trap_whatever_the_seed(seed):
    _, info = marginals(trap(0.0), Gibbs(draws=100, seed=seed, blocks=None))
    assert not info.converged


def test_variables_tied_by_zeros_are_updated_together():
    found = trap(0.0).query("a", engine=Gibbs(draws=2000, seed=0))
    assert found.info.converged
    assert abs(found[0] - 0.5) < 4 * found.info.error + 1e-9
    asia = mk.examples.asia()
    given = {"smoke": "yes", "xray": "yes"}
    lung = asia.query("lung", given=given, engine=Gibbs(draws=8000, seed=0))
    assert lung.info.converged
    assert abs(lung["yes"] - asia.query("lung", given=given)["yes"]) < 4 * lung.info.error


def test_possible_entries_fall_into_islands_that_single_changes_do_not_leave():
    either = np.zeros((2, 2, 2))
    for a, b in np.ndindex(2, 2):
        either[a, b, a | b] = 1.0
    assert sorted(len(i) for i in islands(either)) == [1, 3]
    assert len(islands(np.array([[1.0, 2.0], [0.0, 3.0]]))) == 1
    assert len(islands(np.eye(4))) == 4
    assert len(islands(np.ones((3, 2)))) == 1


def test_slow_mixing_shows_in_the_effective_sample_size():
    slow, _ = (marginals(trap(e), Gibbs(draws=4000, seed=1, rao_blackwell=False))[1] for e in (0.01, 0.5))
    quick = marginals(trap(0.5), Gibbs(draws=4000, seed=1, rao_blackwell=False))[1]
    assert slow.diagnostics.effective < 0.1 * quick.diagnostics.effective


def test_a_start_is_found_in_nearly_deterministic_networks():
    for seed in range(40):
        case = random_case(seed, "certain", max_entries=3000)
        problem = case.model._problem(None)
        graph = flat_graph(problem)
        starts = chain_starts.chain_starts(
            problem, graph, graph_arrays(graph), np.random.SeedSequence(seed).spawn(3)
        )
        assert np.isfinite(graph.log_weights(np.array(starts))).all()


def test_a_start_is_found_for_a_colouring_with_zeros_everywhere():
    rng = np.random.default_rng(3)
    names = [f"n{i}" for i in range(40)]
    hidden = rng.integers(3, size=40)
    differ = 1.0 - np.eye(3)
    pairs = {tuple(sorted(rng.choice(40, size=2, replace=False))) for _ in range(90)}
    factors = [mk.Factor([names[i], names[j]], differ) for i, j in pairs if hidden[i] != hidden[j]]
    model = mk.MarkovNetwork(dict.fromkeys(names, 3), factors)
    frame = model.sample(20, seed=1, engine=Gibbs())
    for i, j in pairs:
        if hidden[i] != hidden[j]:
            assert (frame[names[i]] != frame[names[j]]).all()


def test_impossible_evidence_is_named():
    bn = mk.BayesianNetwork()
    bn.add("a", states=2, p=[0.5, 0.5])
    bn.add("b", states=2, parents=["a"], p=[[1, 0], [0, 1]])
    bn.add("c", states=2, p=[0.5, 0.5])
    with pytest.raises(mk.errors.ImpossibleEvidence):
        bn.query("c", given={"a": 0, "b": 1}, engine="gibbs")
    ring = mk.MarkovNetwork(
        dict.fromkeys("xyz", 2),
        [mk.Factor([u, v], [[0, 1], [1, 0]]) for u, v in ("xy", "yz", "zx")],
    )
    with pytest.raises(mk.errors.ImpossibleEvidence):
        ring.query("x", engine="gibbs")


def test_where_no_start_is_found_the_error_says_what_to_do(monkeypatch):
    def refuse(*_):
        raise mk.errors.TooLarge("too large")

    monkeypatch.setattr(chain_starts, "_search", lambda *_, **__: None)
    monkeypatch.setattr(chain_starts, "configuration", lambda *_: (None, False))
    monkeypatch.setattr("markovia.inference.choosing.auto.Auto.log_mass", refuse)
    with pytest.raises(mk.errors.Unanswered, match="use engine="):
        trap(0.1).query("a", engine="gibbs")


# -- odd models and settings -------------------------------------------------------------------------------------


def test_models_without_anything_to_sample_work():
    bn = mk.BayesianNetwork()
    bn.add("only", states=["x"], p=[1.0])
    assert bn.query("only", engine=Gibbs(draws=20, seed=0))["x"] == 1.0
    free = mk.MarkovNetwork({"a": 3, "b": 1}, [])
    found = free.marginals(engine=Gibbs(draws=500, seed=0))
    assert np.allclose(found["a"].values, 1 / 3, atol=1e-12)
    pair = trap(0.2)
    assert pair.query("a", given={"a": 1, "b": 1}, engine="gibbs")[1] == 1.0
    assert pair.marginals(given={"a": 1, "b": 1}, engine="gibbs") == {}
    assert pair.map(given={"a": 1, "b": 1}, engine="gibbs").log_weight == pytest.approx(np.log(0.8))
    assert len(pair.sample(3, given={"a": 1, "b": 1}, engine="gibbs", seed=0)) == 3
    assert len(pair.sample(0, engine="gibbs", seed=0)) == 0


def test_weights_far_outside_the_range_of_doubles_do_no_harm():
    names = {"hub": 3, **{f"leaf{i}": 2 for i in range(300)}}
    table = np.array([[1e-8, 1e-9], [2e-8, 1e-9], [1e-8, 3e-9]])
    star = mk.MarkovNetwork(names, [mk.Factor(["hub", f"leaf{i}"], table) for i in range(300)])
    found, _ = marginals(star, Gibbs(draws=300, seed=0), targets=["hub", "leaf0"])
    assert np.isfinite(found["hub"].values).all()
    assert found["hub"].values.sum() == pytest.approx(1.0)
    assert found["hub"][1] == pytest.approx(star.query("hub")[1], abs=0.05)


def test_a_time_limit_stops_the_chains_and_keeps_what_there_is():
    grid = mk.generators.ising_grid(20, 20, coupling=0.2)
    engine = Gibbs(draws=10_000_000 // 10, seed=0, chains=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        found = grid.query("x0_0", engine=engine, time_limit=0.4)
    assert found.info.seconds < 5
    assert 4 <= found.info.details.draws < engine.draws
    assert found.values.sum() == pytest.approx(1.0)
    assert abs(found[1] - 0.5) < 0.2


def test_progress_shows_a_bar(capfd):
    trap(0.3).query("a", engine=Gibbs(draws=200, seed=0, progress=True))
    assert "gibbs" in capfd.readouterr().err


@pytest.mark.parametrize(
    "settings",
    [
        {"draws": 0}, {"draws": 2.5}, {"chains": 0}, {"burn_in": -1}, {"thin": 0}, {"scan": "zigzag"}, {"seed": -1},
        {"time_limit": 0}, {"threads": 0}, {"blocks": "stars"}, {"blocks": [["a", "a"]]}, {"blocks": ["ab"]},
        {"blocks": "trees", "scan": "random"},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_settings_are_refused(settings):
    with pytest.raises(mk.errors.InvalidArgument):
        Gibbs(**settings)


def test_the_engine_is_found_by_name():
    found = mk.examples.sprinkler().query("rain", engine="gibbs")
    assert found.info.engine == "gibbs"
    assert not found.info.exact
    assert found.info.log_evidence is None
