"""Finite Markov chains: worked examples, structure, limits, and the exact kernels of samplers."""

import numpy as np
import pytest

import markovia as mk
from chain_checks import loop
from markovia import MarkovChain
from model_strategies import random_case

COLUMNS = np.array([[0.25, 0.5, 0.0], [0.75, 0.0, 0.75], [0.0, 0.5, 0.25]])


def random_chain(rng, n, sparsity=0.5):
    table = rng.random((n, n)) * (rng.random((n, n)) >= sparsity)
    table[np.arange(n), rng.integers(n, size=n)] += 0.3
    return MarkovChain(table / table.sum(axis=1, keepdims=True))


def test_a_chain_with_one_stationary_distribution():
    chain = MarkovChain(COLUMNS.T)
    assert chain.stationary() == pytest.approx([2 / 7, 3 / 7, 2 / 7])
    assert chain.eigenvalues() == pytest.approx([1.0, 0.25, -0.75])
    assert chain.spectral_gap() == pytest.approx(0.25)
    assert chain.is_regular
    assert chain.transition.min() == 0
    assert (chain.transition @ chain.transition).min() == pytest.approx(0.125)


def test_eigenvalues_of_a_circle_are_complex_and_its_start_is_never_forgotten():
    circle = MarkovChain([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert np.prod(circle.eigenvalues()) == pytest.approx(1.0)
    assert circle.eigenvalues()[0] == pytest.approx(1.0)
    assert circle.eigenvalues().imag == pytest.approx([0.0, np.sqrt(0.75), -np.sqrt(0.75)])
    assert circle.spectral_gap() == pytest.approx(0.0, abs=1e-12)
    assert MarkovChain(np.eye(3)).eigenvalues().tolist() == [1.0, 1.0, 1.0]


def test_a_second_worked_example():
    chain = MarkovChain([[0.5, 0.5, 0], [0.2, 0.3, 0.5], [0.1, 0.4, 0.5]])
    assert chain.stationary() == pytest.approx(np.array([3, 5, 5]) / 13)


def test_the_identity_has_many_stationary_distributions():
    chain = MarkovChain(np.eye(3))
    assert [p.tolist() for p in chain.stationary_distributions()] == np.eye(3).tolist()
    with pytest.raises(mk.errors.InvalidArgument, match="3 recurrent classes"):
        chain.stationary()
    assert chain.after(5, start=1).tolist() == [0.0, 1.0, 0.0]
    assert not chain.is_regular


def test_a_periodic_chain_never_settles():
    chain = MarkovChain([[0, 1], [1, 0]], ["heads", "tails"])
    assert chain.stationary().tolist() == [0.5, 0.5]
    assert chain.period() == 2
    assert chain.is_irreducible
    assert not chain.is_aperiodic
    assert not chain.is_regular
    assert chain.total_variation(6, "heads").tolist() == [0.5] * 7
    assert chain.simulate(3, "heads", seed=0) == ["heads", "tails", "heads", "tails"]
    with pytest.raises(mk.errors.InvalidArgument, match="periodic"):
        chain.mixing_time()


def test_a_birth_death_chain_is_reversible():
    chain = MarkovChain([[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]])
    assert chain.stationary() == pytest.approx([0.25, 0.5, 0.25])
    assert chain.satisfies_detailed_balance()
    assert chain.is_reversible
    assert np.allclose(chain.reversed().transition, chain.transition)
    assert not np.allclose(chain.transition, chain.transition.T)  # p(i, j) = q(j, i) is another condition


def test_a_rotation_runs_backwards_when_reversed():
    chain = MarkovChain([[0.1, 0.9, 0], [0, 0.1, 0.9], [0.9, 0, 0.1]])
    assert not chain.is_reversible
    assert np.allclose(chain.reversed().transition, chain.transition.T)


def test_classes_of_states():
    chain = MarkovChain(
        [[0.5, 0.5, 0, 0, 0], [0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0.2, 0, 0, 0.3, 0.5], [0, 0, 0, 0, 1]],
        states="abcde",
    )
    assert chain.communicating_classes == [["a"], ["b", "c"], ["d"], ["e"]]
    assert chain.recurrent_classes == [["b", "c"], ["e"]]
    assert chain.transient_states == ["a", "d"]
    assert [chain.period(s) for s in "abcde"] == [1, 2, 2, 1, 1]
    assert not chain.is_aperiodic
    with pytest.raises(mk.errors.InvalidArgument, match="name a state"):
        chain.period()
    with pytest.raises(mk.errors.InvalidArgument, match="no state"):
        chain.period("z")


def test_random_chains_agree_with_linear_algebra():
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(1, 7))
        chain = random_chain(rng, n)
        power = np.linalg.matrix_power(chain.transition, 2 * n * n + 3)
        assert chain.is_regular == bool((power > 0).all())
        for p in chain.stationary_distributions():
            assert chain.is_stationary(p)
        kept = {s for c in chain.recurrent_classes for s in c}
        reach = np.linalg.matrix_power(np.eye(n) + chain.transition, n) > 0
        for i in range(n):
            assert (i in kept) == all(reach[j, i] for j in range(n) if reach[i, j])
        if chain.is_regular:
            limit = np.linalg.matrix_power(chain.transition, 20_000)
            assert np.allclose(limit, chain.stationary()[None, :], atol=1e-8)
            steps = chain.mixing_time(0.1)
            worst = [max(chain.total_variation(steps, s)[t] for s in chain.states) for t in range(steps + 1)]
            assert worst[steps] <= 0.1
            assert steps == 0 or worst[steps - 1] > 0.1


def test_total_variation_never_rises_and_after_is_a_matrix_power():
    chain = random_chain(np.random.default_rng(3), 5, sparsity=0.2)
    curve = chain.total_variation(30, start=[0.5, 0.5, 0, 0, 0])
    assert (np.diff(curve) <= 1e-12).all()
    assert chain.after(3, 2) == pytest.approx(np.linalg.matrix_power(chain.transition, 3)[2])


def test_a_simulated_path_visits_states_as_often_as_the_stationary_distribution_says():
    chain = MarkovChain(COLUMNS.T)
    path = np.array(chain.simulate(30_000, start=0, seed=1))
    assert np.bincount(path, minlength=3) / len(path) == pytest.approx([2 / 7, 3 / 7, 2 / 7], abs=0.01)
    assert chain.simulate(50, seed=2) == chain.simulate(50, seed=2)


# -- samplers ----------------------------------------------------------------------------------------------------


def test_gibbs_on_two_nearly_equal_variables_mixes_at_the_rate_of_the_textbook():
    eps = 0.1
    pair = mk.MarkovNetwork(
        {"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[(1 - eps) / 2, eps / 2], [eps / 2, (1 - eps) / 2]])]
    )
    chain = MarkovChain.gibbs(pair, "random")
    at = chain.states.index
    assert chain.transition[at((0, 0)), at((0, 0))] == pytest.approx(1 - eps)
    assert chain.transition[at((0, 0)), at((1, 0))] == pytest.approx(eps / 2)
    assert chain.transition[at((1, 1)), at((0, 1))] == pytest.approx(eps / 2)
    assert chain.eigenvalues() == pytest.approx([1.0, 0.9, 0.1, 0.0], abs=1e-12)


def test_gibbs_cannot_leave_a_state_between_zeros():
    pair = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], np.eye(2))])
    chain = MarkovChain.gibbs(pair)
    assert chain.recurrent_classes == [[(0, 0)], [(1, 1)]]
    assert not chain.is_irreducible


def test_random_scan_gibbs_is_reversible_and_systematic_scan_stationary():
    for seed in range(12):
        case = random_case(seed, ["undirected", "directed"][seed % 2], max_entries=60)
        p = case.model.joint().values.ravel()
        if not p.sum() > 0:
            continue
        p = p[p > 0] / p.sum()
        chain = MarkovChain.gibbs(case.model, "random")
        assert chain.is_stationary(p)
        assert chain.satisfies_detailed_balance(p)
        assert MarkovChain.gibbs(case.model, "systematic").is_stationary(p)
        if (case.model.joint().values > 0).all():
            assert chain.is_regular


def test_the_full_conditional_needs_only_the_tables_of_the_variable():
    model = loop()
    chain = MarkovChain.gibbs(model, 2)  # c, with tables over b, c, d and c, a
    joint = model.joint().values
    row = joint[1, 2, :, 0] / joint[1, 2, :, 0].sum()
    at = [chain.states.index((1, 2, k, 0)) for k in range(2)]
    assert chain.transition[at[0], at] == pytest.approx(row)
    assert chain.transition[at[0]].sum() == pytest.approx(1.0)


def test_the_exact_metropolis_chain_of_a_worked_example():
    chain = MarkovChain.metropolis([2, 3, 2], np.full((3, 3), 1 / 3))
    assert chain.transition == pytest.approx(np.array([[3, 3, 3], [2, 5, 2], [3, 3, 3]]) / 9)
    assert chain.stationary() == pytest.approx(np.array([2, 3, 2]) / 7)
    assert chain.is_reversible


def test_metropolis_is_reversible_for_any_proposal():
    rng = np.random.default_rng(1)
    for _ in range(20):
        n = int(rng.integers(2, 6))
        target = rng.random(n) + 0.05
        chain = MarkovChain.metropolis(target, random_chain(rng, n, sparsity=0.3))
        assert chain.satisfies_detailed_balance(target / target.sum())


def test_gibbs_is_metropolis_with_acceptance_one():
    model = loop()
    step = MarkovChain.gibbs(model, 1)
    p = model.joint().values.ravel()
    assert np.allclose(MarkovChain.metropolis(p, step).transition, step.transition)


def test_evidence_enters_through_a_problem():
    model = loop()
    chain = MarkovChain.gibbs(model._problem({"b": 1}), "random")
    assert len(chain) == 12
    p = model.query(["a", "c", "d"], given={"b": 1}).values.ravel()
    assert chain.is_stationary(p)


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ([[0.5, 0.5]], "square"),
        ([[0.5, 0.6], [0.5, 0.5]], "sums to 1.1"),
        (COLUMNS, "transpose"),
        ([[1.5, -0.5], [0, 1]], "zero or more"),
        ("abc", "square"),
    ],
    ids=range(5),
)
def test_wrong_tables_are_refused(table, what):
    with pytest.raises(mk.errors.InvalidTable, match=what):
        MarkovChain(table)


def test_other_wrong_input_is_refused():
    with pytest.raises(mk.errors.InvalidArgument, match="states="):
        MarkovChain(np.eye(2), ["a", "a"])
    with pytest.raises(mk.errors.TooLarge):
        MarkovChain.gibbs(mk.generators.ising_grid(5, 5))
    with pytest.raises(mk.errors.InvalidArgument, match="scan="):
        MarkovChain.gibbs(loop(), "spiral")
    with pytest.raises(mk.errors.InvalidArgument, match="model"):
        MarkovChain.gibbs([1, 2])
    with pytest.raises(mk.errors.InvalidArgument, match="target"):
        MarkovChain.metropolis([1, 2], np.eye(3))
    with pytest.raises(mk.errors.InvalidArgument, match="sum to 1"):
        MarkovChain(np.eye(2)).is_stationary([0.5, 0.2])
