"""K-means against all assignments, scikit-learn and numbers by hand."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from sklearn import cluster
from sklearn.metrics import adjusted_rand_score

import markovia as mk
from markovia.errors import ConvergenceWarning, MarkoviaError
from markovia.learning.latent import k_means
from markovia.learning.latent.k_means import Partition, improved, lloyd, plus_plus, running_means

RECTANGLE = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]])


def blobs(n, d, k, seed, spread=3.0):
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(k, d))
    labels = rng.integers(k, size=n)
    return centres[labels] + rng.normal(size=(n, d)), labels


@pytest.fixture(params=["compiled", "numpy"])
def both_ways(request, monkeypatch):
    monkeypatch.setattr(k_means, "COMPILED_FROM", 0 if request.param == "compiled" else 10**9)


def test_four_numbers_find_the_centres_of_both_pairs(both_ways):
    model = mk.KMeans(2, init=[[0.0], [1.0]], n_init=1).fit([[0.0], [1.0], [9.0], [10.0]])
    assert model.cluster_centers_.ravel().tolist() == [0.5, 9.5]
    assert model.inertia_ == 1.0
    assert model.labels_.tolist() == [0, 0, 1, 1]
    assert model.converged_


def test_both_optima_of_the_rectangle_are_reached_from_their_starts(both_ways):
    poor = mk.KMeans(2, init=[[2.0, 0.0], [2.0, 1.0]]).fit(RECTANGLE)
    assert poor.inertia_ == 16.0
    good = mk.KMeans(2, init=[[0.0, 0.0], [4.0, 1.0]]).fit(RECTANGLE)
    assert good.inertia_ == 1.0
    assert good.cluster_centers_.tolist() == [[0.0, 0.5], [4.0, 0.5]]


@pytest.mark.parametrize("seed", range(5))
def test_breathing_leaves_the_poor_optimum_of_the_rectangle(seed):
    start = [[2.0, 0.0], [2.0, 1.0]]
    assert mk.KMeans(2, init=start, algorithm="breathing", random_state=seed).fit(RECTANGLE).inertia_ == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_few_rows_get_the_best_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    rows, weights = rng.normal(size=(7, 2)), rng.uniform(0.5, 2.0, 7)
    best = np.inf
    for labels in itertools.product(range(3), repeat=7):
        labels, cost = np.array(labels), 0.0
        for j in range(3):
            own = labels == j
            if own.any():
                mean = np.average(rows[own], axis=0, weights=weights[own])
                cost += weights[own] @ ((rows[own] - mean) ** 2).sum(axis=1)
        best = min(best, cost)
    found = mk.KMeans(3, n_init=5, random_state=0).fit(rows, sample_weight=weights)
    assert found.inertia_ == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize(("n", "d", "k"), [(300, 2, 5), (400, 8, 12), (500, 11, 30), (257, 17, 1)])
def test_the_same_start_ends_where_scikit_learn_ends(both_ways, n, d, k):
    rows, _ = blobs(n, d, k, seed=n, spread=1.0)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, n)
    start = rows[:k].copy()
    theirs = cluster.KMeans(k, init=start, n_init=1, tol=0.0, algorithm="lloyd").fit(
        rows, sample_weight=weights
    )
    ours = mk.KMeans(k, init=start, tol=0.0).fit(rows, sample_weight=weights)
    assert np.array_equal(ours.labels_, theirs.labels_)
    assert np.allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=0, atol=1e-12)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)
    new = np.random.default_rng(2).normal(size=(50, d))
    assert np.array_equal(ours.predict(new), theirs.predict(new))
    assert np.allclose(ours.transform(new), theirs.transform(new))
    assert ours.score(new) == pytest.approx(theirs.score(new))


def test_bounds_change_nothing_but_the_time():
    rows, _ = blobs(3000, 5, 20, seed=3, spread=0.8)
    start = rows[:20].copy()
    part, centres = Partition(rows, np.ones(3000)), start
    for _ in range(40):
        plain = Partition(rows, np.ones(3000))
        plain._centres, plain.sums = centres, np.zeros((20, 6))
        part.assign(centres)
        plain._assign_all(centres)
        assert np.array_equal(part.labels, plain.labels)
        assert np.allclose(part.sums, plain.sums)
        exact = np.sort(np.sqrt(((rows[:, None] - centres) ** 2).sum(axis=2)), axis=1)
        assert (part.upper >= exact[:, 0] - 1e-12).all()
        assert (part.lower <= exact[:, 1] + 1e-12).all()
        centres = part.means()


def test_every_turn_lowers_the_inertia(both_ways):
    rows, _ = blobs(2000, 3, 15, seed=4, spread=1.0)
    part = Partition(rows, np.ones(2000))
    found = [lloyd(part, rows[:15].copy(), max_iter=turns).inertia for turns in range(1, 12)]
    assert all(b < a for a, b in itertools.pairwise(found))


def test_weights_count_as_repeated_rows(both_ways):
    rows, _ = blobs(200, 3, 4, seed=5, spread=1.0)
    times = np.random.default_rng(0).integers(0, 4, 200)
    start = rows[:4].copy()
    weighted = mk.KMeans(4, init=start, tol=0.0).fit(rows, sample_weight=times)
    repeated = mk.KMeans(4, init=start, tol=0.0).fit(np.repeat(rows, times, axis=0))
    assert np.allclose(weighted.cluster_centers_, repeated.cluster_centers_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
    assert np.array_equal(np.repeat(weighted.labels_, times), repeated.labels_)


def test_an_empty_cluster_gets_the_furthest_row(both_ways):
    rows = np.array([[0.0], [1.0], [2.0], [50.0]])
    start = np.array([[0.0], [100.0], [-100.0]])
    ours = mk.KMeans(3, init=start).fit(rows)
    theirs = cluster.KMeans(3, init=start, n_init=1).fit(rows)
    assert ours.inertia_ == pytest.approx(theirs.inertia_)
    assert len(set(ours.labels_)) == 3


@pytest.mark.parametrize("seed", range(3))
def test_all_of_fifty_clusters_are_found_where_one_start_of_scikit_learn_misses_some(seed):
    rows, labels = blobs(5000, 8, 50, seed=seed, spread=4.0)
    ours = mk.KMeans(50, random_state=seed).fit(rows)
    theirs = cluster.KMeans(50, n_init=1, random_state=seed).fit(rows)
    assert ours.inertia_ <= theirs.inertia_
    assert adjusted_rand_score(labels, ours.labels_) > 0.99


def test_breathing_never_ends_worse():
    rows, _ = blobs(1500, 4, 12, seed=8, spread=0.7)
    rng = np.random.default_rng(0)
    part = Partition(rows, np.ones(1500))
    first = lloyd(part, plus_plus(rows, part.weights, 12, rng))
    first = first._replace(labels=first.labels.copy())
    better = improved(part, first, rng)
    assert better.inertia < first.inertia
    means = [rows[better.labels == j].mean(axis=0) for j in range(12)]
    assert np.allclose(means, better.centres)


def test_a_centre_is_worth_what_rows_would_pay_without_it(both_ways):
    rows, _ = blobs(200, 3, 6, seed=13)
    centres, weights = rows[:6].copy(), np.random.default_rng(0).uniform(0.5, 2.0, 200)
    part = Partition(rows, weights)
    part.assign(centres, anew=True)
    squares = ((rows[:, None] - centres) ** 2).sum(axis=2)
    without = [weights @ np.delete(squares, j, axis=1).min(axis=1) for j in range(6)]
    assert np.allclose(part.losses(), np.array(without) - weights @ squares.min(axis=1))


def test_large_data_start_from_a_sample_and_end_in_all_rows():
    rows, labels = blobs(60_000, 4, 12, seed=9, spread=5.0)
    found = mk.KMeans(12, random_state=0).fit(rows)
    assert len(found.labels_) == 60_000
    truth = np.array([rows[labels == j].mean(axis=0) for j in range(12)])
    assert found.inertia_ <= mk.KMeans(12, init=truth).fit(rows).inertia_ * (1 + 1e-4)
    means = [rows[found.labels_ == j].mean(axis=0) for j in range(12)]
    assert np.allclose(means, found.cluster_centers_, atol=1e-3)


def test_the_number_of_threads_changes_nothing(monkeypatch):
    rows, _ = blobs(200_000, 3, 6, seed=10, spread=1.0)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("MARKOVIA_THREADS", threads)
        found.append(mk.KMeans(6, random_state=1, max_iter=20, tol=1e-3).fit(rows))
    assert np.array_equal(found[0].cluster_centers_, found[1].cluster_centers_)
    assert np.array_equal(found[0].labels_, found[1].labels_)


def test_mini_batches_are_running_means():
    rows, _ = blobs(300, 2, 3, seed=11)
    centres, counts = rows[:3].copy(), np.zeros(3)
    seen = [[] for _ in range(3)]
    for first in range(0, 300, 50):
        batch = rows[first : first + 50]
        nearest = ((batch[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        for j, row in zip(nearest, batch, strict=True):
            seen[j].append(row)
        centres, counts = running_means(Partition(batch, np.ones(50)), centres, counts)
    assert counts.tolist() == [len(s) for s in seen]
    assert np.allclose(centres, [np.mean(s, axis=0) for s in seen])


def test_mini_batches_and_partial_fit_find_the_clusters():
    rows, labels = blobs(20_000, 3, 6, seed=12, spread=6.0)
    whole = mk.KMeans(6, random_state=0).fit(rows)
    batches = mk.KMeans(6, batch_size=500, random_state=0).fit(rows)
    assert batches.inertia_ < 1.01 * whole.inertia_
    steps = mk.KMeans(6, random_state=0)
    for first in range(0, 20_000, 1000):
        steps.partial_fit(rows[first : first + 1000])
    assert -steps.score(rows) < 1.01 * whole.inertia_
    assert adjusted_rand_score(labels, steps.predict(rows)) > 0.99
    assert steps.counts_.sum() == 20_000


def long_clusters(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(600, 2)) * [8.0, 0.5]
    labels = np.repeat([0, 1], 300)
    rows[labels == 1] += [0.0, 5.0]
    return rows, labels


def test_mahalanobis_distances_find_long_clusters_that_plain_ones_cut():
    rows, labels = long_clusters(0)
    plain = mk.KMeans(2, random_state=0).fit(rows)
    own = mk.KMeans(2, metric="mahalanobis", n_init=5, random_state=0).fit(rows)
    assert adjusted_rand_score(labels, plain.labels_) < 0.1
    assert adjusted_rand_score(labels, own.labels_) > 0.98
    for j in range(2):
        assert np.allclose(own.covariances_[j], np.cov(rows[own.labels_ == j].T), rtol=0.2, atol=0.3)


def test_mahalanobis_costs_are_squared_distances_and_log_determinants():
    rows, _ = long_clusters(1)
    model = mk.KMeans(3, metric="mahalanobis", random_state=0).fit(rows)
    distances, costs = np.empty((600, 3)), np.empty((600, 3))
    for j in range(3):
        apart = rows - model.cluster_centers_[j]
        distances[:, j] = np.einsum("ni,ij,nj->n", apart, np.linalg.inv(model.covariances_[j]), apart)
        costs[:, j] = distances[:, j] + np.log(np.linalg.det(model.covariances_[j]))
    assert np.allclose(model.transform(rows), np.sqrt(distances))
    assert np.array_equal(model.predict(rows), costs.argmin(axis=1))
    assert np.array_equal(model.labels_, model.predict(rows))
    assert model.inertia_ == pytest.approx(costs.min(axis=1).sum())
    assert model.score(rows) == pytest.approx(-model.inertia_)


def test_mahalanobis_clusters_do_not_collapse_onto_rows():
    rows = np.random.default_rng(3).normal(size=(30, 2))
    model = mk.KMeans(10, metric="mahalanobis", random_state=0).fit(rows)
    assert np.linalg.eigvalsh(model.covariances_).min() > 1e-3


def test_bad_input_gets_a_sentence():
    rows = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(MarkoviaError, match=r"n_clusters=11 is more than the n_samples=10 rows of X"):
        mk.KMeans(11).fit(rows)
    with pytest.raises(MarkoviaError, match=r"init= is 'k-means\+\+', 'random' or an array, not 'best'"):
        mk.KMeans(2, init="best").fit(rows)
    with pytest.raises(MarkoviaError, match=r"init= has shape \(1, 2\), not"):
        mk.KMeans(2, init=[[0.0, 1.0]]).fit(rows)
    with pytest.raises(MarkoviaError, match="init= has an entry that is not finite"):
        mk.KMeans(1, init=[[0.0, np.nan]]).fit(rows)
    with pytest.raises(MarkoviaError, match="n_clusters= is a whole number, 1 or more, not 0"):
        mk.KMeans(0).fit(rows)
    with pytest.raises(MarkoviaError, match="leave batch_size= away"):
        mk.KMeans(2, metric="mahalanobis", batch_size=5).fit(rows)
    rows[3, 1] = np.nan
    with pytest.raises(MarkoviaError, match=r"row 3 of X misses 'x1' \(NaN\), as do 0 other cells"):
        mk.KMeans(2).fit(rows)
    with pytest.warns(ConvergenceWarning, match="only 2 of 3 clusters have rows"):
        mk.KMeans(3, random_state=0).fit(np.repeat([[0.0], [1.0]], 5, axis=0))
    with pytest.warns(ConvergenceWarning, match="still gained after 1 step"):
        mk.KMeans(20, max_iter=1, init="random", algorithm="lloyd", random_state=0).fit(
            blobs(500, 2, 20, 0)[0]
        )


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = mk.KMeans(2, random_state=0).fit(RECTANGLE)
    before = model.cluster_centers_.copy()
    with pytest.raises(MarkoviaError):
        model.fit([[np.nan, 0.0], [1.0, 2.0]])
    assert np.array_equal(model.cluster_centers_, before)


@pytest.mark.slow
def test_a_first_small_fit_needs_no_compiler():
    script = (
        "import sys, markovia as mk, numpy as np\n"
        "mk.KMeans(3, random_state=0).fit(np.random.default_rng(0).normal(size=(150, 4)))\n"
        "assert 'numba' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("kind", ["full", "diag", "tied", "spherical"])
@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis"])
def test_a_mixture_begins_with_the_clusters(kind, metric):
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(3 * c, 0.3, (40 + 20 * c, 2)) for c in range(3)])
    found = mk.KMeans(3, metric=metric, random_state=0).fit(rows)
    mixture = found.mixture(kind, max_iter=1, tol=0.0).fit(rows)
    assert mixture.means_ == pytest.approx(found.cluster_centers_, abs=0.1)
    assert mixture.weights_ == pytest.approx(np.bincount(found.labels_) / len(rows), abs=0.03)
    assert (found.mixture(kind).fit(rows).predict(rows) == found.labels_).mean() > 0.95
