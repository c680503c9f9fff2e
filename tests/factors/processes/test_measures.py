"""Random measures and groups that share atoms: Dirichlet, Dirichlet process, urns, franchise, trees, distances."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy import stats

from markovia.errors import InvalidArgument
from markovia.processes import (
    ChineseRestaurant,
    ChineseRestaurantFranchise,
    Dirichlet,
    DirichletProcess,
    DistanceDependentRestaurant,
    HierarchicalDirichletProcess,
    NestedChineseRestaurant,
    PitmanYor,
    PolyaUrn,
    set_partitions,
)


def close(found, expected, error=1e-10):
    np.testing.assert_allclose(found, expected, rtol=error, atol=error)


def within(draws, expected, errors=4.5):
    """Means of draws, within some standard errors of what is expected."""
    draws = np.asarray(draws, dtype=float)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - expected) <= errors * error + 1e-12).all()


def has_law(p, law):
    """Draws p (n, K) have the mean, the variances and the marginals of a Dirichlet."""
    within(p, law.mean)
    within((p - law.mean) ** 2, law.variance)
    alpha = law.concentration
    assert stats.kstest(p[:, 0], stats.beta(alpha[0], alpha.sum() - alpha[0]).cdf).pvalue > 1e-4


def test_sums_splits_and_shares_of_a_dirichlet_are_dirichlet():
    law, rng = Dirichlet([0.5, 1.5, 2.0, 3.0]), np.random.default_rng(0)
    p = law.sample(20_000, rng)
    has_law(np.column_stack([p[:, 0] + p[:, 2], p[:, 1] + p[:, 3]]), law.aggregated([[0, 2], [1, 3]]))
    has_law(p[:, 1:3] / p[:, 1:3].sum(axis=1, keepdims=True), law.renormalised([1, 2]))
    shares = rng.dirichlet(3.0 * np.array([0.2, 0.3, 0.5]), 20_000)
    has_law(
        np.column_stack([p[:, 3:] * shares, p[:, :3]])[:, [3, 4, 5, 0, 1, 2]], law.split(3, [0.2, 0.3, 0.5])
    )


def test_repeated_splitting_of_one_gives_the_symmetric_dirichlet():
    law = Dirichlet([4.0])
    for _ in range(3):
        for k in range(law.concentration.size):
            law = law.split(2 * k, [0.5, 0.5])
    assert law.concentration.tolist() == Dirichlet.symmetric(4.0, 8).concentration.tolist() == [0.5] * 8


def test_partitions_of_a_symmetric_dirichlet_tend_to_the_restaurant():
    crp, labels = ChineseRestaurant(1.5), [0, 0, 1, 0, 2]
    gaps = []
    for k in (10, 1_000, 100_000):
        alpha = 1.5 / k
        law = PolyaUrn(np.full(3, alpha))  # the colours used; the others only enter the total
        counts = np.bincount(labels)
        rising = sum(np.log(alpha + np.arange(c)).sum() for c in counts) - np.log(1.5 + np.arange(5)).sum()
        ways = np.log(k) + np.log(k - 1) + np.log(k - 2)
        gaps.append(abs(rising + ways - crp.log_prob(labels)))
        assert law.predictive().sum() == pytest.approx(1)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-4


def test_the_urn_of_polya_draws_repeats_and_tends_to_a_dirichlet():
    urn = PolyaUrn([1.0, 2.0, 1.0], added=2.0)
    close(sum(np.exp(urn.log_prob(c)) for c in product(range(3), repeat=4)), 1.0)
    step = np.log(1 / 4) + np.log(3 / 6) + np.log(2 / 8)
    close(urn.log_prob([0, 0, 1]), step)
    close(urn.posterior([0, 0]).log_prob([1]), np.log(2 / 8))
    rng = np.random.default_rng(1)
    draws = [urn.sample(300, rng) for _ in range(1500)]
    within([d[:3] == [0, 0, 1] for d in draws], [0.25, 0.25, 0.5])
    within([(d[:3] == [0, 0, 1]).all() for d in draws], np.exp(step))
    shares = np.array([np.bincount(d, minlength=3) / 300 for d in draws])
    assert (
        stats.kstest(shares[:, 0] + rng.uniform(-0.5, 0.5, 1500) / 300, stats.beta(0.5, 1.5).cdf).statistic
        < 0.06
    )
    assert urn.limit().concentration.tolist() == [0.5, 1.0, 0.5]


def test_the_next_value_of_a_dirichlet_process_has_the_textbook_chances():
    for alpha in (0.5, 1.0, 3.0):
        dp = DirichletProcess(alpha)
        close(dp.predictive([0.3])[1], [1 / (1 + alpha), alpha / (1 + alpha)])
        close(dp.predictive([0.3, -1.0])[1], [1 / (2 + alpha), 1 / (2 + alpha), alpha / (2 + alpha)])
        close(
            dp.posterior([0.3]).predictive([0.3, -1.0])[1],
            [2 / (3 + alpha), 1 / (3 + alpha), alpha / (3 + alpha)],
        )


def test_a_dirichlet_process_is_dirichlet_on_cells_before_and_after_data():
    def cells(measures):
        return np.array(
            [[m.weights[m.atoms < -0.5].sum(), 0, m.weights[m.atoms > 1].sum()] for m in measures]
        )

    masses = np.diff(stats.norm.cdf([-np.inf, -0.5, 1.0, np.inf]))
    rng = np.random.default_rng(2)
    for law in (DirichletProcess(3.0), DirichletProcess(3.0).posterior([0.2, 0.2, 2.0])):
        found = cells([law.measure(rng, sticks=120) for _ in range(700)])
        found[:, 1] = 1 - found[:, 0] - found[:, 2]
        has_law(found, law.on_partition(masses, cell=lambda x: int(x > -0.5) + int(x > 1)))


@pytest.mark.parametrize("process", [DirichletProcess(1.5), PitmanYor(0.7, 0.4)])
def test_values_weigh_as_the_partition_and_the_base_and_follow_bayes(process):
    values = [0.3, 0.3, -1.0, 0.3, 2.0]
    expected = process.partition.log_prob([0, 0, 1, 0, 2]) + stats.norm.logpdf([0.3, -1.0, 2.0]).sum()
    close(process.log_prob(values), expected)
    close(process.posterior(values[:2]).log_prob(values[2:]), expected - process.log_prob(values[:2]))
    rng = np.random.default_rng(3)
    seen = process.posterior([0.3, 0.3, -1.0])
    draws = np.array([seen.sample(2, rng) for _ in range(1200)])
    atoms, chances = seen.predictive()
    assert atoms.tolist() == [0.3, -1.0]
    within(draws[:, :1] == atoms, chances[:-1])
    # the measure has the same mean as the next value
    weights = np.array([seen.measure(rng, sticks=5).weights[:2] for _ in range(1200)])
    within(weights, chances[:-1])


def test_paths_in_a_tree_are_restaurants_at_each_node():
    tree = NestedChineseRestaurant(1.3, depth=2)
    crp = ChineseRestaurant(1.3)
    paths = [[0, 0], [0, 1], [1, 0], [0, 0]]
    close(tree.log_prob(paths), crp.log_prob([0, 0, 1, 0]) + crp.log_prob([0, 1, 0]))
    seen = tree.posterior(paths)
    chances = seen.predictive()
    close(sum(chances.values()), 1.0)
    for path, p in chances.items():
        close(np.exp(tree.log_prob([*paths, path]) - tree.log_prob(paths)), p)
    rng = np.random.default_rng(4)
    draws = Counter(tuple(seen.sample(1, rng)[0].tolist()) for _ in range(600))
    assert set(draws) <= set(chances)
    for path, p in chances.items():
        assert abs(draws[path] / 600 - p) < 4.5 * np.sqrt(p * (1 - p) / 600)
    whole = Counter(tuple(map(tuple, tree.sample(3, rng).tolist())) for _ in range(600))
    for paths_drawn, count in whole.items():
        p = np.exp(tree.log_prob(paths_drawn))
        assert abs(count / 600 - p) < 4.5 * np.sqrt(p * (1 - p) / 600)


def enumerated_franchise(law, sizes):
    """The probability of each labelling by dishes, summed over all tables."""
    found = Counter()
    for tables in product(*(set_partitions(n) for n in sizes)):
        opened = [t.max() + 1 for t in tables]
        for menu in set_partitions(sum(opened)):
            dishes = np.split(menu, np.cumsum(opened)[:-1])
            from markovia.processes import Seating

            seating = Seating(list(tables), list(dishes))
            labels = np.concatenate(seating.labels())
            order = {k: i for i, k in enumerate(dict.fromkeys(labels.tolist()))}
            found[tuple(order[k] for k in labels.tolist())] += np.exp(law.log_prob(seating))
    return found


def test_dishes_with_tables_summed_out_match_enumeration():
    law = ChineseRestaurantFranchise(0.8, 1.7)
    hdp = HierarchicalDirichletProcess(0.8, 1.7)
    exact = enumerated_franchise(law, [2, 2])
    close(sum(exact.values()), 1.0)
    assert len(exact) == 15
    for labels, p in exact.items():
        close(np.exp(hdp.log_prob_of_labels([labels[:2], labels[2:]])), p)
    rng = np.random.default_rng(5)
    drawn = Counter()
    for _ in range(1200):
        flat = np.concatenate(law.sample([2, 2], rng).labels()).tolist()
        order = {k: i for i, k in enumerate(dict.fromkeys(flat))}
        drawn[tuple(order[k] for k in flat)] += 1
    for labels, p in exact.items():
        assert abs(drawn[labels] / 1200 - p) < 4.5 * np.sqrt(p * (1 - p) / 1200)


def test_the_next_dish_has_the_chances_of_the_franchise():
    law = ChineseRestaurantFranchise(1.0, 2.0)
    seating = law.sample([4, 3], seed=1)
    seen = law.posterior(seating)
    tables, menu = seating.tables[1], np.bincount(np.concatenate(seating.dishes))
    sizes = np.bincount(tables)
    expected = 1.0 / 4.0 * np.append(menu, 2.0) / (menu.sum() + 2.0)
    for size, dish in zip(sizes, seating.dishes[1], strict=True):
        expected[dish] += size / 4.0
    close(seen.predictive(1), expected)
    rng = np.random.default_rng(0)
    k = menu.size
    draws = [np.minimum(seen.sample([0, 1], rng).labels()[1][0], k) for _ in range(1200)]
    within(np.array(draws)[:, None] == np.arange(k + 1), expected)


def test_groups_share_atoms_and_the_hierarchical_process_follows_bayes():
    hdp = HierarchicalDirichletProcess(1.2, 0.9)
    values = [[0.5, 0.5, -1.0], [0.5, 2.0]]
    close(
        hdp.log_prob(values),
        hdp.log_prob_of_labels([[0, 0, 1], [0, 2]]) + stats.norm.logpdf([0.5, -1, 2]).sum(),
    )
    seen = hdp.posterior(values)
    close(seen.log_prob([[], [0.5]]), hdp.log_prob([values[0], [*values[1], 0.5]]) - hdp.log_prob(values))
    atoms, chances = seen.predictive(1)
    assert atoms.tolist() == [-1.0, 0.5, 2.0]
    close(np.log(chances[1]), seen.log_prob([[], [0.5]]))
    rng = np.random.default_rng(6)
    draws = np.array([seen.sample([0, 1], rng)[1][0] for _ in range(250)])
    within(draws[:, None] == atoms, chances[:-1])
    _, weights = hdp.measures(groups=2000, sticks=60, seed=7)
    close(weights.sum(axis=1), 1.0)
    assert (weights.max(axis=1) > 0.2).mean() > 0.9
    # two items of different groups share an atom with probability 1 / (1 + top_concentration)
    shared = [(w[0] * w[1]).sum() for w in (hdp.measures(2, rng, 150)[1] for _ in range(1200))]
    within(shared, np.exp(hdp.log_prob_of_labels([[0], [0]])))


def test_an_endless_menu_makes_independent_restaurants():
    hdp, crp = HierarchicalDirichletProcess(1.3, 1e6), ChineseRestaurant(1.3)
    close(hdp.log_prob_of_labels([[0, 0, 1], [2, 3]]), crp.log_prob([0, 0, 1]) + crp.log_prob([0, 1]), 1e-5)


def test_links_backwards_without_decay_are_the_restaurant():
    n = 5
    distances = np.where(np.tri(n, k=-1), 1.0, np.inf)
    law = DistanceDependentRestaurant(distances, concentration=1.7, decay="window")
    for labels in set_partitions(n):
        close(law.partition_log_prob(labels), ChineseRestaurant(1.7).log_prob(labels))


@pytest.mark.parametrize("decay", ["exponential", "window", "logistic", lambda d: 1 / (1 + d)])
def test_partitions_sum_the_links_that_make_them(decay):
    rng = np.random.default_rng(0)
    places = rng.normal(size=(4, 2))
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    law = DistanceDependentRestaurant(distances, concentration=0.6, decay=decay, scale=1.4)
    exact = Counter()
    for links in product(range(4), repeat=4):
        exact[tuple(law.tables(links).tolist())] += np.exp(law.log_prob(links))
    close(sum(exact.values()), 1.0)
    for labels in set_partitions(4):
        close(np.exp(law.partition_log_prob(labels)), exact[tuple(labels.tolist())])
    draws = law.sample(4000, seed=1)
    within(draws[:, :, None] == np.arange(4), law.link_probabilities())
    seen = law.posterior([1, 1])
    assert (seen.sample(50, seed=0)[:, :2] == [1, 1]).all()
    close(
        seen.log_prob([3, 0]),
        law.log_prob([1, 1, 3, 0]) - np.log(law.link_probabilities()[[0, 1], [1, 1]]).sum(),
    )


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Dirichlet([1, 2]).aggregated([[0]]), "groups hold each of the coordinates 0 to 1 once"),
        (lambda: Dirichlet([1, 2]).split(0, [0.5, 0.2]), "shares sum to 1"),
        (lambda: Dirichlet([1, 2]).renormalised([2]), "coordinates are some of 0 to 1"),
        (lambda: Dirichlet([1, 2]).posterior([0, 2]), "states from 0 to 1"),
        (lambda: PolyaUrn([1, 0]), "positive concentrations"),
        (lambda: DirichletProcess(-1.0), "concentration= is a number above 0"),
        (lambda: DirichletProcess(1.0, base=3), "base= needs sample"),
        (lambda: DirichletProcess().on_partition([0.5, 0.2]), "masses are positive and sum to 1"),
        (lambda: DirichletProcess().posterior([1.0]).on_partition([0.5, 0.5]), "cell= says"),
        (lambda: NestedChineseRestaurant(1.0, 2).log_prob([[0]]), "rows of 2 whole numbers"),
        (lambda: ChineseRestaurantFranchise(0.0), "concentration= is a number, above 0"),
        (lambda: DistanceDependentRestaurant([[0, -1], [1, 0]]), "square matrix of numbers, 0 or more"),
        (lambda: DistanceDependentRestaurant([[0.0]], decay="slow"), "decay= is"),
        (lambda: DistanceDependentRestaurant([[0.0]]).log_prob([1]), "items from 0 to 0"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(build, words):
    with pytest.raises(InvalidArgument, match=words):
        build()
