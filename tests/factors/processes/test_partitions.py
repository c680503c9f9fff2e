"""Laws of random partitions against their definitions, sums over all partitions, and moments of draws."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from markovia.errors import InvalidArgument
from markovia.factors.processes.chinese_restaurant import ChineseRestaurant, HoppeUrn
from markovia.factors.processes.law import labels_of, set_partitions
from markovia.factors.processes.stick_breaking import GEM, pieces

RESTAURANTS = [(1.0, 0.0), (2.5, 0.0), (0.5, 0.3), (-0.2, 0.6), (0.0, 0.5)]


def close(found, expected, error=1e-10):
    np.testing.assert_allclose(found, expected, rtol=error, atol=error)


@pytest.mark.parametrize(
    ("labels", "alpha", "answer"),
    [
        ([0, 1, 0, 2, 2, 2], 1.0, Fraction(1, 360)),
        ([0, 1, 0, 2, 2, 2], 2.0, Fraction(1, 315)),
        ([0, 1, 0, 2, 2], 1.0, Fraction(1, 120)),
        ([0, 1, 0, 2, 2], 2.0, Fraction(1, 90)),
    ],
)
def test_the_textbook_partitions_have_their_probabilities(labels, alpha, answer):
    close(np.exp(ChineseRestaurant(alpha).log_prob(labels)), float(answer))


def test_a_small_concentration_gives_the_textbook_number():
    a = 0.5
    seats = a / a * a / (a + 1) * 1 / (a + 2) * a / (a + 3) * 1 / (a + 4) * 2 / (a + 5)
    found = np.exp(ChineseRestaurant(a).log_prob([0, 1, 0, 2, 2, 2]))
    close(found, seats)
    assert round(float(found), 8) == 0.00153920


@pytest.mark.parametrize(("alpha", "discount"), RESTAURANTS)
def test_probabilities_of_all_partitions_sum_to_one_and_are_products_of_seatings(alpha, discount):
    crp = ChineseRestaurant(alpha, discount)
    partitions = set_partitions(6)
    assert len(partitions) == 203
    assert len(set_partitions(5)) == 52
    total = 0.0
    for labels in partitions:
        product = 1.0
        for i in range(6):
            product *= crp.predictive(labels[:i])[labels[i]]
        close(np.exp(crp.log_prob(labels)), product)
        total += product
    close(total, 1.0)


@pytest.mark.parametrize(("alpha", "discount"), RESTAURANTS)
def test_probabilities_do_not_depend_on_the_order_of_items_or_names_of_groups(alpha, discount):
    crp = ChineseRestaurant(alpha, discount)
    labels = np.array([0, 0, 1, 0, 2, 1, 3])
    shuffled = np.random.default_rng(0).permutation(labels)
    close(crp.log_prob(labels), crp.log_prob(shuffled))
    close(crp.log_prob(labels), crp.log_prob([f"table {k}" for k in labels]))


@pytest.mark.parametrize(("alpha", "discount"), RESTAURANTS)
def test_draws_have_the_law_of_partitions(alpha, discount):
    crp, rng, draws = ChineseRestaurant(alpha, discount), np.random.default_rng(1), 4_000
    seen = Counter(tuple(crp.sample(4, rng).tolist()) for _ in range(draws))
    for labels in set_partitions(4):
        p = np.exp(crp.log_prob(labels))
        assert abs(seen[tuple(labels.tolist())] / draws - p) < 4.5 * np.sqrt(p * (1 - p) / draws)


@pytest.mark.parametrize(("alpha", "discount"), RESTAURANTS)
def test_the_number_of_tables_has_its_law_and_its_mean(alpha, discount):
    crp = ChineseRestaurant(alpha, discount)
    law = np.zeros(7)
    for labels in set_partitions(6):
        law[labels.max() + 1] += np.exp(crp.log_prob(labels))
    close(crp.tables_law(6), law)
    close(crp.expected_tables(6), law @ np.arange(7))
    close(crp.expected_tables(40), crp.tables_law(40) @ np.arange(41))


@pytest.mark.parametrize(("alpha", "discount"), RESTAURANTS)
def test_a_seated_restaurant_draws_and_weighs_what_comes_next(alpha, discount):
    crp = ChineseRestaurant(alpha, discount)
    first, then = [0, 1, 0, 2], [1, 3, 3]
    seated = crp.posterior(first)
    close(seated.log_prob(then), crp.log_prob(first + then) - crp.log_prob(first))
    close(
        seated.posterior(then).log_prob([0, 4]),
        crp.log_prob([*first, *then, 0, 4]) - crp.log_prob(first + then),
    )
    rng, draws = np.random.default_rng(2), 4_000
    seen = Counter(tuple(seated.sample(2, rng).tolist()) for _ in range(draws))
    for pair, count in seen.items():
        p = np.exp(seated.log_prob(pair))
        assert abs(count / draws - p) < 4.5 * np.sqrt(p * (1 - p) / draws), pair
    close(sum(np.exp(seated.log_prob(pair)) for pair in seen), 1.0)


def test_the_urn_of_hoppe_is_the_restaurant():
    urn, crp = HoppeUrn(mass=1.7), ChineseRestaurant(1.7)
    assert urn.sample(30, seed=3).tolist() == crp.sample(30, seed=3).tolist()
    close(urn.posterior([0, 0, 1]).log_prob([2, 0]), crp.posterior([0, 0, 1]).log_prob([2, 0]))
    assert repr(urn) == "HoppeUrn(mass=1.7)"


def test_tables_grow_as_a_logarithm_or_as_a_power():
    rng = np.random.default_rng(0)
    plain = np.mean([ChineseRestaurant(2.0).sample(2000, rng).max() + 1 for _ in range(200)])
    power = np.mean([ChineseRestaurant(2.0, 0.5).sample(2000, rng).max() + 1 for _ in range(200)])
    assert abs(plain - ChineseRestaurant(2.0).expected_tables(2000)) < 4 * np.sqrt(plain / 200)
    # the spread of the limit of tables / n^discount is of the order of its mean
    assert abs(power / ChineseRestaurant(2.0, 0.5).expected_tables(2000) - 1) < 4 * 0.6 / np.sqrt(200)


@pytest.mark.parametrize(("alpha", "discount"), [(1.0, 0.0), (2.0, 0.0), (0.5, 0.3), (-0.2, 0.6)])
def test_sticks_have_their_means_and_make_the_restaurant(alpha, discount):
    gem = GEM(alpha, discount)
    weights = gem.sample(40_000, seed=4, sticks=6)
    error = weights.std(axis=0) / np.sqrt(40_000)
    assert (np.abs(weights.mean(axis=0) - gem.mean(6)) < 4.5 * error).all()
    # two items share a stick as two customers share a table
    shared = (gem.sample(4_000, seed=5, sticks=200) ** 2).sum(axis=1)
    assert abs(
        shared.mean() - np.exp(ChineseRestaurant(alpha, discount).log_prob([0, 0]))
    ) < 4.5 * shared.std() / np.sqrt(4_000)


def test_expected_sticks_shrink_by_the_same_factor():
    alpha = 3.0
    close(GEM(alpha).mean(8), alpha ** np.arange(8) / (1 + alpha) ** np.arange(1, 9))
    close(1 - GEM(alpha).mean(8).sum(), (alpha / (1 + alpha)) ** 8)


@pytest.mark.parametrize("counts", [(), (3, 0, 1)])
def test_densities_of_sticks_integrate_to_one_and_follow_bayes(counts):
    gem = GEM(1.5, 0.2, counts)
    at = (np.arange(400) + 0.5) / 400
    v1, v2 = (a.ravel() for a in np.meshgrid(at, at))
    weights = np.column_stack([v1, (1 - v1) * v2])
    # d(pi) = (1 - v1) d(v); the first break's density has a pole of order discount at 0
    assert abs((np.exp(gem.log_prob(weights)) * (1 - v1)).mean() - 1) < 0.03
    prior, post = GEM(1.5, 0.2), GEM(1.5, 0.2).posterior([0, 0, 1])
    gap = post.log_prob(weights) - prior.log_prob(weights) - 2 * np.log(weights[:, 0]) - np.log(weights[:, 1])
    assert np.ptp(gap) < 1e-8
    assert prior.log_prob([0.7, 0.5]) == -np.inf


def test_given_labels_the_sticks_have_the_means_of_their_posterior():
    gem, rng = GEM(1.0, 0.25), np.random.default_rng(6)
    weights = gem.sample(200_000, rng, sticks=3)
    importance = weights[:, 0] ** 2 * weights[:, 2]
    found = importance @ weights / importance.sum()
    assert np.abs(found - gem.posterior([0, 2, 0]).mean(3)).max() < 0.01
    assert gem.posterior([0]).posterior([2, 0]) == gem.posterior([0, 2, 0])
    close(pieces(np.array([[0.5, 0.5], [1.0, 0.2]])), [[0.5, 0.25], [1.0, 0.0]])


def test_labels_are_numbered_in_order_of_appearance():
    assert labels_of([5, 3, 5, 9]).tolist() == [0, 1, 0, 2]
    assert labels_of([]).tolist() == []
    assert ChineseRestaurant().sample(0, seed=0).tolist() == []
    assert ChineseRestaurant().log_prob([]) == 0.0


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: ChineseRestaurant(0.0), "concentration= is a number above 0, not 0.0"),
        (lambda: ChineseRestaurant(-0.5, 0.3), "above -0.3, minus the discount"),
        (lambda: ChineseRestaurant(1.0, 1.0), "discount= is a number from 0 up to but not 1"),
        (lambda: ChineseRestaurant(1.0).sample(-1), "n= is a whole number, 0 or more, not -1"),
        (lambda: ChineseRestaurant(1.0).log_prob([[0, 1]]), "a list with the group of each item"),
        (lambda: ChineseRestaurant(1.0).log_prob([0.0, np.nan]), "not finite"),
        (lambda: ChineseRestaurant(1.0).posterior([0, 1]).log_prob(["a"]), "with 2 tables seated"),
        (lambda: ChineseRestaurant(1.0).posterior([0, 1]).tables_law(3), "of an empty restaurant"),
        (lambda: ChineseRestaurant(1.0).log_prob_of_sizes([0, 2]), "sizes are whole numbers, 1 or more"),
        (lambda: GEM(-1.0), "above minus the discount"),
        (lambda: GEM(1.0).posterior([-1]), "sticks 0, 1, ..."),
    ],
)
def test_bad_input_is_answered_with_a_sentence(build, words):
    with pytest.raises(InvalidArgument, match=words.replace("(", r"\(")):
        build()
