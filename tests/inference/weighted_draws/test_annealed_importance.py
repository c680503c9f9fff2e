"""Annealed importance sampling: unbiased, calibrated, right on models with zeros, and bounded by its time."""

import numpy as np
import pytest

import markovia as mk
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.weighted_draws.annealing_path import Annealing, Ladder, adapted_ladder, even_ladder
from model_strategies import log_marginal, log_sum, log_weights, random_case, random_findings


def engine(seed=0, **settings):
    return mk.engines.AnnealedImportance(**{"particles": 400, "temperatures": 30, "seed": seed, **settings})


@pytest.mark.parametrize(
    ("seed", "kind"),
    [(s, k) for s in range(10) for k in ("directed", "structured", "undirected", "factor graph")],
)
def test_marginals_and_masses_agree_with_exact_ones(seed, kind):
    case = random_case([seed, 51], kind, max_entries=1_000)
    given = random_findings(case, np.random.default_rng(seed))
    logs = log_weights(case, given)
    total = float(log_sum(logs))
    problem = case.model._problem(given)
    answer = engine(seed).marginals(problem, problem.free)
    if np.isneginf(total):
        assert answer.log_mass == -np.inf
        return
    details = answer.record.details
    if np.isnan(answer.log_mass) or details.effective_particles < 30:
        assert not answer.record.converged
        return
    assert abs(answer.log_mass - total) <= 4.5 * details.log_mass_error + 1e-9
    for name, table in zip(problem.free, answer.tables, strict=True):
        exact = np.exp(log_marginal(case, logs, [name]) - total)
        assert np.abs(table.values - exact).max() < 4.5 * max(answer.record.error, 1.0 / 400)


def ising(n=3, strength=0.8, seed=0):
    rng = np.random.default_rng(seed)
    names = {(i, j): f"x{i}{j}" for i in range(n) for j in range(n)}
    factors = [mk.Factor([s], np.exp(0.3 * rng.normal(size=2))) for s in names.values()]
    for i, j in names:
        for other in ((i + 1, j), (i, j + 1)):
            if other in names:
                w = strength * rng.normal()
                factors.append(mk.Factor([names[i, j], names[other]], np.exp([[w, -w], [-w, w]])))
    return mk.MarkovNetwork(dict.fromkeys(names.values(), 2), factors)


def exclusive(n=5):
    """No two neighbours on a ring are both on: zeros in every table."""
    factors = [mk.Factor([f"x{i}", f"x{(i + 1) % n}"], [[1, 1.5], [1.5, 0]]) for i in range(n)]
    return mk.MarkovNetwork({f"x{i}": 2 for i in range(n)}, factors)


@pytest.mark.parametrize(
    "model", [ising(), exclusive(), ising(strength=2.0)], ids=["mild", "zeros", "strong"]
)
@pytest.mark.parametrize("steps", [3, 20])
def test_the_estimated_mass_is_unbiased_and_its_error_calibrated(model, steps):
    total, exact = model.log_partition(), model.query(model.variables[0])
    masses, errors, zs, converged = [], [], [], []
    for seed in range(60):
        answer = engine(seed, temperatures=steps, particles=200).marginals(
            model._problem(None), model.variables[:1]
        )
        masses.append(np.exp(answer.log_mass - total))
        errors.append(answer.record.details.log_mass_error)
        zs.append((answer.tables[0].values[1] - exact[1]) / answer.record.error)
        converged.append(answer.record.converged)
    assert abs(np.mean(masses) - 1.0) < 4 * np.std(masses) / np.sqrt(60)
    assert 0.65 < np.std(masses) / np.mean(errors) < 1.5
    if (
        steps == 3 and converged[0] is False
    ):  # too few temperatures for strong couplings: errors mean little, and it says so
        assert not any(converged)
        return
    assert np.mean(converged) > 0.9
    assert abs(np.mean(zs)) < 0.6
    assert 0.7 < np.std(zs) < 1.35


def test_more_temperatures_give_more_even_weights():
    model = ising(4, 1.5)
    few = engine(temperatures=5).marginals(model._problem(None), ["x00"]).record.details
    many = engine(temperatures=200).marginals(model._problem(None), ["x00"]).record.details
    assert many.effective_particles > 2 * few.effective_particles
    assert many.log_mass_error < few.log_mass_error / 2


def test_the_reverse_estimate_comes_from_above():
    model = ising(4, 1.2)
    total = model.log_partition()
    lower, upper = [], []
    for seed in range(30):
        made = engine(seed, temperatures=8, particles=64, reverse=True)
        answer = made.marginals(model._problem(None), ["x00"])
        lower.append(answer.log_mass)
        upper.append(answer.record.details.upper_log_mass)
    assert np.mean(lower) < total
    assert np.mean(upper) > np.mean(lower)
    assert abs(np.mean(upper) - total) < 0.3
    good = engine(temperatures=400, reverse=True).marginals(model._problem(None), ["x00"])
    assert good.record.details.upper_log_mass == pytest.approx(total, abs=0.05)


def test_joints_and_draws_agree_with_exact_ones():
    model = exclusive()
    made = engine(particles=3_000, temperatures=40)
    p, exact = model.query(["x0", "x2"], engine=made), model.query(["x0", "x2"])
    assert np.abs(p.values - exact.values).max() < 4.5 * p.info.error
    rows = model.sample(2_000, seed=1, engine=made)
    assert not ((rows["x0"] == 1) & (rows["x1"] == 1)).any()
    assert abs((rows["x0"] == 1).mean() - exact.marginal("x0")[1]) < 0.06


def test_zero_entries_are_counted_and_evidence_is_kept():
    model = exclusive()
    p = model.query("x2", given={"x0": 1}, engine=engine())
    assert p.info.details.zero_entries == 3  # the two tables at x0 lost theirs
    assert abs(p[1] - model.query("x2", given={"x0": 1})[1]) < 4.5 * p.info.error
    assert p.info.details.particles == 400
    assert p.info.iterations == 30


def test_impossible_evidence_is_named():
    with pytest.raises(mk.errors.ImpossibleEvidence) as error:
        exclusive().query("x4", given={"x0": 1, "x1": 1, "x2": 0}, engine="annealed-importance")
    assert error.value.evidence == {"x0": 1, "x1": 1}


def test_a_path_that_ends_nowhere_is_an_unconverged_answer():
    n = 60  # only one of two opposite chains of equalities fits the observed ends, behind a wall of zeros
    equal = [mk.Factor([f"x{i}", f"x{i + 1}"], np.eye(3)[:, [1, 2, 0]]) for i in range(n - 1)]
    model = mk.MarkovNetwork({f"x{i}": 3 for i in range(n)}, equal)
    with pytest.warns(mk.errors.ConvergenceWarning, match="no particle reached"):
        p = model.query("x0", engine=engine(particles=16, temperatures=2))
    assert p.info.log_evidence is None


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads(monkeypatch):
    model = ising()
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("MARKOVIA_THREADS", threads)
        found.append(model.log_partition(engine=engine(5, reverse=True)))
    assert found[0] == found[1] != model.log_partition(engine=engine(6))


def test_a_time_limit_chooses_the_number_of_temperatures():
    model = ising(5)
    p = model.query("x00", engine=mk.engines.AnnealedImportance(time_limit=0.3))
    assert p.info.seconds < 10
    assert p.info.details.temperatures >= 20
    assert abs(p[1] - model.query("x00")[1]) < 5 * p.info.error


def test_small_and_empty_models_work():
    lone = mk.MarkovNetwork({"a": 3}, [mk.Factor(["a"], [1, 2, 5])])
    p = lone.query("a", engine=engine())
    assert np.allclose(p.values, [1 / 8, 2 / 8, 5 / 8])
    assert lone.log_partition(engine=engine()) == pytest.approx(np.log(8))
    free = mk.MarkovNetwork({"a": 2, "b": 1}, [])
    assert free.log_partition(engine=engine()) == pytest.approx(np.log(2))
    both = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[1, 2], [3, 4]])])
    assert both.log_partition({"a": 1, "b": 0}, engine=engine()) == pytest.approx(np.log(3))


def test_ladders_rise_from_zero_to_one_and_follow_the_spread():
    ladder = even_ladder(10, 5.0)
    assert np.allclose(ladder.betas, np.linspace(0, 1, 11))
    assert ladder.floors[0] == 0.0
    assert ladder.floors[-1] == -np.inf
    assert np.all(np.diff(ladder.floors[:-1]) < 0)
    spread = np.zeros((11, 2))
    spread[1:6, 1] = 100.0
    moved = adapted_ladder(spread, ladder, 40, 5.0)
    assert np.all(np.diff(moved.betas) > 0)
    assert np.count_nonzero(moved.betas <= 0.5) > 30
    given = Ladder.of(np.array([0.0, 0.2, 1.0]), 5.0)
    run = Annealing(flat_graph(ising()._problem(None)))
    assert run.forwards(given, 10, 1, 0)[1].shape == (10,)


def test_bad_settings_are_refused():
    for bad in ({"particles": 1}, {"temperatures": 0}, {"sweeps": 0}, {"floor": -1.0}, {"seed": "x"}):
        with pytest.raises(mk.errors.InvalidArgument, match=next(iter(bad))):
            mk.engines.AnnealedImportance(**bad)
    for betas in ([0.0, 0.5], [0.1, 1.0], [0.0, 0.6, 0.5, 1.0]):
        with pytest.raises(mk.errors.InvalidArgument, match="rise from 0 to 1"):
            mk.engines.AnnealedImportance(temperatures=betas)
    powers = mk.engines.AnnealedImportance(temperatures=[0.0, 0.1, 0.4, 1.0], particles=1_000)
    p = ising().query("x00", engine=powers)
    assert p.info.details.temperatures == 3
