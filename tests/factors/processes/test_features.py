"""Random matrices of features and the measures behind them: Indian buffet, beta process, gamma process."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats

from markovia.errors import InvalidArgument
from markovia.processes import BetaProcess, GammaProcess, IndianBuffet, InfiniteGammaPoisson, left_ordered

Z = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 1]])


def close(found, expected, error=1e-10):
    np.testing.assert_allclose(found, expected, rtol=error, atol=error)


def within(draws, expected, errors=4.5):
    draws = np.asarray(draws, dtype=float)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - expected) <= errors * error + 1e-12).all()


def key(matrix):
    found = left_ordered(matrix)
    return found.shape[1], found.tobytes()


def test_the_textbook_matrix_has_its_probabilities():
    ibp = IndianBuffet(2.0)
    assert round(float(np.exp(ibp.log_prob(Z))), 8) == 0.00189345
    assert round(float(np.exp(ibp.log_prob(Z, form="drawn"))), 9) == 0.000946723
    close(ibp.log_prob(Z) - ibp.log_prob(Z, form="drawn"), np.log(2))
    finite = [round(float(np.exp(ibp.finite_log_prob(Z, k))), 8) for k in (5, 50, 500, 50_000)]
    assert finite == [0.00278502, 0.00203207, 0.00190752, 0.00189359]
    assert ibp.finite_log_prob(Z, 2) == -np.inf


def test_the_drawn_matrix_weighs_as_the_product_of_what_guests_did():
    for a, b in ((2.0, 1.0), (1.4, 2.5)):
        # before the third guest the dishes were taken 2, 1 and 1 times
        third = np.log(1 - 2 / (b + 2)) + np.log(1 - 1 / (b + 2)) + np.log(1 / (b + 2))
        exact = (
            stats.poisson.logpmf(2, a) + np.log(1 / (b + 1)) + np.log(1 - 1 / (b + 1))
            + stats.poisson.logpmf(1, a * b / (b + 1)) + third + stats.poisson.logpmf(0, a * b / (b + 2))
        )  # fmt: skip
        close(IndianBuffet(a, b).log_prob(Z, form="drawn"), exact)
    assert IndianBuffet(2.0).log_prob(Z[:, ::-1], form="drawn") == -np.inf


@pytest.mark.parametrize(("a", "b"), [(1.3, 1.0), (0.7, 2.0)])
def test_probabilities_of_all_classes_of_two_rows_sum_to_one(a, b):
    ibp, total = IndianBuffet(a, b), 0.0
    for first, second, both in product(range(14), repeat=3):
        columns = [[1, 1]] * both + [[1, 0]] * first + [[0, 1]] * second
        total += np.exp(ibp.log_prob(np.array(columns).T.reshape(2, -1)))
    close(total, 1.0, 1e-9)


@pytest.mark.parametrize(("a", "b"), [(2.0, 1.0), (2.0, 2.0)])
def test_features_and_columns_have_their_poisson_means(a, b):
    ibp, rng = IndianBuffet(a, b), np.random.default_rng(0)
    draws = [ibp.sample(3, rng) for _ in range(1500)]
    columns = np.array([d.shape[1] for d in draws])
    assert round(ibp.expected_columns(3), 4) == {1.0: 3.6667, 2.0: 4.3333}[b]
    within(columns, ibp.expected_columns(3))
    within((columns - ibp.expected_columns(3)) ** 2, ibp.expected_columns(3))
    within([d.sum(axis=1) for d in draws], [a, a, a])
    total = np.array([d.sum() for d in draws])
    within(total, 3 * a)
    if b == 1.0:  # rows are Poisson but not independent: 2, 1 and 2/3 columns of 1, 2 and 3 ones are expected
        within((total - 6.0) ** 2, 1 * 2 + 4 * 1 + 9 * 2 / 3)
    seen = Counter(map(key, draws))
    for d in draws[:300]:
        p = np.exp(ibp.log_prob(d))
        if p < 0.005:
            continue
        assert abs(seen[key(d)] / 1500 - p) < 4.5 * np.sqrt(p / 1500)


def test_probabilities_do_not_depend_on_the_order_of_rows_or_columns():
    ibp, z = IndianBuffet(1.5, 0.7), IndianBuffet(3.0).sample(6, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(3):
        close(ibp.log_prob(rng.permutation(rng.permutation(z).T).T), ibp.log_prob(z))
    close(ibp.log_prob(np.column_stack([z, np.zeros(6, dtype=int)])), ibp.log_prob(z))


def test_finite_models_with_two_parameters_tend_to_the_buffet():
    ibp = IndianBuffet(1.5, 2.5)
    gaps = [abs(ibp.finite_log_prob(Z, k) - ibp.log_prob(Z)) for k in (10, 1000, 100_000)]
    assert gaps[0] > 10 * gaps[1] > 100 * gaps[2]
    finite = [ibp.finite_sample(3, 400, seed).sum(axis=1) for seed in range(1500)]
    within(finite, 1.5 * 2.5 / (2.5 + 1.5 * 2.5 / 400))


@pytest.mark.parametrize(("law", "data", "then"), [
    (IndianBuffet(1.4, 2.0), [[1, 1, 0], [1, 0, 1]], [[1, 0, 1, 1], [0, 0, 0, 1]]),
    (InfiniteGammaPoisson(1.4, 2.0), [[2, 1, 0], [1, 0, 3]], [[1, 0, 2, 1], [0, 0, 0, 4]]),
])  # fmt: skip
def test_matrices_follow_bayes(law, data, then):
    whole = np.vstack([np.pad(data, ((0, 0), (0, 1))), then])
    seen = law.posterior(data)
    close(
        seen.log_prob(then, form="drawn"),
        law.log_prob(whole, form="drawn") - law.log_prob(data, form="drawn"),
    )
    chances, new = seen.predictive()
    rng = np.random.default_rng(1)
    draws = [seen.sample(1, rng)[0] for _ in range(1200)]
    within([d[:3] for d in draws], chances)
    within([d[3:].sum() for d in draws], new)
    assert seen.posterior(then).log_prob(np.zeros((1, 4), dtype=int)) < 0
    assert seen.sample(0, seed=0).shape == (0, 3)


def test_the_left_ordered_form_sorts_histories():
    z = np.array([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
    assert left_ordered(z).tolist() == [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]
    assert left_ordered(z[:, [3, 0, 2, 1]]).tolist() == left_ordered(z).tolist()


@pytest.mark.parametrize(("mass", "c"), [(2.0, 1.0), (1.5, 2.5), (1.5, 0.4)])
def test_chances_of_the_beta_process_sum_to_its_mass_and_have_its_tail(mass, c):
    process = BetaProcess(mass, c)
    chances = process.sample(1500, seed=0, atoms=80)
    assert (np.diff(chances, axis=1) <= 0).all()
    within(chances.sum(axis=1), mass)
    for p in (0.05, 0.4, 0.9):
        tail = integrate.quad(lambda u: mass * c / u * (1 - u) ** (c - 1), p, 1)[0]
        close(process.tail(p), tail, 1e-7)
        within((chances > p).sum(axis=1), tail)
    close(process.tail(1e-8), process.tail(np.nextafter(1e-9, 0)) - mass * c * np.log(10), 1e-6)


def test_sticks_of_the_beta_process_have_their_means():
    process = BetaProcess(2.0)
    within(process.sample(4000, seed=1, atoms=5), (2 / 3) ** np.arange(1, 6))
    close(process.mean(5), (2 / 3) ** np.arange(1, 6))
    # densities of sticks: mu_k ~ Beta(mass, 1)
    p = np.array([0.8, 0.5, 0.1])
    mu = p / np.array([1.0, 0.8, 0.5])
    close(process.log_prob(p), (stats.beta(2.0, 1.0).logpdf(mu) - np.log([1.0, 0.8, 0.5])).sum())
    assert process.log_prob([0.5, 0.8]) == -np.inf


def test_features_from_chances_have_the_law_of_the_buffet():
    rng, ibp = np.random.default_rng(2), IndianBuffet(1.2, 2.0)
    draws = [BetaProcess(1.2, 2.0).features(2, rng, atoms=40) for _ in range(700)]
    seen = Counter(map(key, draws))
    for z in ([[1], [1]], [[1], [0]], [[1, 0], [0, 1]], [[1, 1], [1, 0]]):
        p = np.exp(ibp.log_prob(z))
        assert abs(seen[key(z)] / 700 - p) < 4.5 * np.sqrt(p * (1 - p) / 700)


def test_the_beta_process_follows_bayes():
    process = BetaProcess(1.5, 2.0)
    seen = process.posterior(Z)
    close(seen.fixed_mean(), Z.sum(axis=0) / 5)
    assert (seen.rest.mass, seen.rest.concentration) == (1.5 * 2 / 5, 5.0)
    chances, new = process.buffet.posterior(Z).predictive()
    draws = seen.sample(2000, seed=3, atoms=40)
    within(draws[:, :3], chances)
    within(draws[:, 3:].sum(axis=1), new)
    expected = stats.beta([2, 1, 2], [3, 4, 3]).logpdf([0.3, 0.2, 0.6]).sum() + seen.rest.log_prob([0.2, 0.1])
    close(seen.log_prob([0.3, 0.2, 0.6, 0.2, 0.1]), expected)
    assert seen.posterior(Z).fixed_mean().tolist() == (2 * Z.sum(axis=0) / 8).tolist()


def test_rates_of_the_gamma_process_sum_to_a_gamma_and_make_counts():
    process = GammaProcess(1.5, 2.0)
    rates = process.sample(4000, seed=4, atoms=4)
    total = rates.sum(axis=1)
    assert stats.kstest(total, stats.gamma(1.5, scale=0.5).cdf).pvalue > 1e-4
    # density by quadrature: integrate over one stick and the rest
    at = (np.arange(600) + 0.5) / 600 * 9
    grid = np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)
    assert abs(np.exp(process.log_prob(grid)).sum() * (9 / 600) ** 2 - 1) < 2e-2
    seen = process.posterior([[2, 0], [1, 3]])
    close(seen.fixed_mean(), [3 / 4, 3 / 4])
    within(seen.sample(4000, seed=5, atoms=3)[:, :2], [3 / 4, 3 / 4])
    expected = stats.gamma(3, scale=0.25).logpdf([0.5, 1.0]).sum() + GammaProcess(1.5, 4.0).log_prob(
        [0.2, 0.3]
    )
    close(seen.log_prob([0.5, 1.0, 0.2, 0.3]), expected)


def test_rows_of_counts_have_their_means_and_their_law():
    law, rng = InfiniteGammaPoisson(1.3), np.random.default_rng(6)
    draws = [law.sample(3, rng) for _ in range(1500)]
    totals = np.array([d.sum(axis=1) for d in draws])
    within(totals, [1.3] * 3)
    within([t == 0 for t in totals], [0.5**1.3] * 3)  # every row: negative binomial with success 1/2
    within([d.shape[1] for d in draws], law.expected_columns(3))
    within([d[:, d[0] > 0].sum(axis=1) if d.size else np.zeros(3) for d in draws], [1.3, 1.3 / 2, 1.3 / 2])
    seen = Counter(map(key, draws))
    for d in draws[:300]:
        p = np.exp(law.log_prob(d))
        if p < 0.005:
            continue
        assert abs(seen[key(d)] / 1500 - p) < 4.5 * np.sqrt(p / 1500)


def test_probabilities_of_all_small_matrices_of_counts_sum_to_what_is_small():
    law, total = InfiniteGammaPoisson(0.8), 0.0
    columns = [c for c in product(range(4), repeat=2) if sum(c)]
    classes = {(): 0}
    for _ in range(3):
        classes |= {
            tuple(sorted((*k, c))): 0 for k in classes for c in columns if sum(map(sum, (*k, c))) <= 3
        }
    for k in classes:
        total += np.exp(law.log_prob(np.array(k).T.reshape(2, -1)))
    # all counts of two rows together: negative binomial with success 1/3
    close(total, stats.nbinom(0.8, 1 / 3).cdf(3))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: IndianBuffet(0.0), "mass= is a number, above 0"),
        (lambda: IndianBuffet().log_prob([[0, 2]]), "0 or 1"),
        (lambda: IndianBuffet().log_prob([0, 1]), "a row for each item"),
        (lambda: IndianBuffet().log_prob(Z, form="odd"), "form= is 'class' or 'drawn'"),
        (lambda: IndianBuffet().posterior(Z).log_prob([[1]]), "3 dishes were taken before"),
        (lambda: IndianBuffet().posterior(Z).expected_columns(2), "of an empty buffet"),
        (lambda: InfiniteGammaPoisson().log_prob([[0.5]]), "whole numbers, 0 or more"),
        (lambda: BetaProcess(1.0, 2.0).mean(3), "known for concentration=1"),
        (lambda: GammaProcess().log_prob([1.0]), "one or more others"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(build, words):
    with pytest.raises(InvalidArgument, match=words):
        build()
