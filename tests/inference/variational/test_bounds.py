"""log Z between two bounds in one call: never violated, exact where the graph has no loop, cheap to print."""

import numpy as np
import pytest

import markovia as mk
from markovia.inference.variational.log_z_bounds import LogBounds, log_partition_bounds
from model_strategies import log_sum, log_weights, random_case, random_findings, tries


@pytest.fixture
def small_clusters(monkeypatch):
    """Clusters of at most eight joint states, so that small models are not solved whole."""
    monkeypatch.setattr("markovia.inference.variational.mean_field_clusters.CHEAP", np.log(8.0))


def check(case, given, seed):
    log_z = float(log_sum(log_weights(case, given)))
    bounds = case.model.log_partition(given=given, bounds=True)
    if log_z == -np.inf:
        assert bounds.lower == bounds.upper == -np.inf, seed
        return
    slack = 1e-9 * (1 + abs(log_z))
    assert bounds.lower - slack <= log_z <= bounds.upper + slack, seed
    assert bounds.lower <= bounds.estimate <= bounds.upper, seed
    if bounds.exact:
        assert bounds.lower == bounds.upper == pytest.approx(log_z, abs=1e-9), seed


@pytest.mark.parametrize("kind", ["directed", "certain", "structured", "undirected", "factor graph"])
@pytest.mark.usefixtures("small_clusters")
def test_log_z_lies_between_the_bounds(kind):
    for seed in tries(70):
        case = random_case(seed + 1000, kind, max_entries=300)
        check(case, random_findings(case, np.random.default_rng(seed), 0.15), seed)


@pytest.mark.usefixtures("small_clusters")
def test_dense_models_with_zeros_are_bounded():
    rng = np.random.default_rng(0)
    for seed in tries(20):
        names = [f"v{i}" for i in range(int(rng.integers(3, 7)))]
        factors = []
        for i, a in enumerate(names):
            for b in names[:i]:
                table = np.exp(rng.normal(scale=2.0, size=(2, 2))) * (rng.random((2, 2)) > 0.1)
                factors.append(mk.Factor([a, b], table))
        model = mk.MarkovNetwork(dict.fromkeys(names, 2), factors)
        log_z = model.log_partition()
        bounds = model.log_partition(bounds=True)
        slack = 1e-9 * (1 + abs(log_z)) if np.isfinite(log_z) else 0.0
        assert bounds.lower - slack <= log_z <= bounds.upper + slack, seed


@pytest.mark.usefixtures("small_clusters")
def test_the_mass_of_a_bayesian_network_is_at_most_one():
    bn = mk.generators.random_bayesian_network(12, seed=4)
    last = bn.variables[-1]
    bounds = bn.log_partition(given={last: bn.states(last)[0]}, bounds=True)
    assert bounds.upper <= 0.0
    assert bn.log_partition(bounds=True).upper == pytest.approx(0.0, abs=1e-9)


def test_forests_are_exact_on_both_sides():
    chain = mk.generators.ising_grid(1, 8, coupling="random", field="random", seed=2)
    bounds = chain.log_partition(bounds=True)
    assert bounds.exact
    assert bounds.lower == bounds.upper == pytest.approx(chain.log_partition(), abs=1e-10)
    assert bounds.gap == 0.0


def test_impossible_evidence_is_minus_infinity_on_both_sides():
    differ = [[0, 1], [1, 0]]
    model = mk.MarkovNetwork(
        dict.fromkeys("abc", 2), [mk.Factor(list(p), differ) for p in ("ab", "bc", "ca")]
    )
    bounds = model.log_partition(bounds=True)
    assert bounds.lower == bounds.upper == -np.inf
    assert bounds.gap == 0.0
    never = mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [0, 0])])
    assert never.log_partition(bounds=True).upper == -np.inf


def test_wide_grids_are_bounded_within_a_time_limit():
    grid = mk.generators.ising_grid(10, 10, coupling="random", field="random", seed=2)
    bounds = grid.log_partition(bounds=True, time_limit=0.3)
    assert bounds.lower <= grid.log_partition() <= bounds.upper
    assert bounds.lower_engine == "structured-mean-field"
    assert bounds.upper_engine == "tree-reweighted"
    assert bounds.seconds < 20


def test_more_time_does_not_loosen_the_bounds():
    grid = mk.generators.ising_grid(9, 9, coupling="random", seed=2)
    short = grid.log_partition(bounds=True, time_limit=1e-3)
    full = grid.log_partition(bounds=True)
    assert full.upper <= short.upper + 1e-6
    assert full.gap < short.gap


def test_bounds_print_and_contain():
    bounds = LogBounds(1.0, 2.0, 1.5, False, "mean-field", "tree-reweighted", "midpoint")
    assert str(bounds) == "1 <= log Z <= 2"
    assert repr(bounds) == "LogBounds(1 <= log Z <= 2; gap 1, estimate 1.5; mean-field and tree-reweighted)"
    assert 1.7 in bounds
    assert 2.1 not in bounds
    with pytest.raises(AttributeError):
        bounds.lower = 0.0


@pytest.mark.usefixtures("small_clusters")
def test_a_loopy_value_outside_the_bounds_is_moved_to_the_nearer_one(monkeypatch):
    from markovia.inference.message_passing.loopy_bp import LoopyBP

    grid = mk.generators.ising_grid(3, 3, coupling=1.0, field=0.3)
    problem = grid._problem(None)
    honest = log_partition_bounds(problem)
    assert not honest.exact
    assert honest.lower <= honest.estimate <= honest.upper
    for value, expected in ((-100.0, honest.lower), (1e6, honest.upper), (np.nan, None)):
        monkeypatch.setattr(LoopyBP, "log_mass", lambda self, problem, value=value: value)
        found = log_partition_bounds(problem)
        middle = 0.5 * (found.lower + found.upper)
        assert found.estimate == pytest.approx(middle if expected is None else expected)
        assert found.estimate_engine == ("midpoint" if expected is None else "loopy-bp")


@pytest.mark.parametrize("limit", [0, -1.0, "1", True])
def test_time_limits_that_make_no_sense_are_refused(limit):
    model = mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [3, 5])])
    with pytest.raises(mk.errors.InvalidArgument, match="time_limit"):
        model.log_partition(bounds=True, time_limit=limit)
