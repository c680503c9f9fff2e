"""Conditional random fields on images: graph cuts against enumeration, training by pseudo-likelihood, what users see."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import markovia as mk
from markovia.models.crf.grid_crf import many_labels, neighbour_pairs, two_labels


def brute_force(scores, pairs, tables):
    n, k = scores.shape
    all_y = np.array(list(itertools.product(range(k), repeat=n)))
    logs = scores[np.arange(n), all_y].sum(axis=1)
    for (a, b), table in zip(pairs, tables, strict=True):
        logs = logs + table[all_y[:, a], all_y[:, b]]
    return logs.max(), all_y[logs.argmax()]


def weight(codes, scores, pairs, tables):
    node = scores[np.arange(len(codes)), codes].sum()
    return node + tables[np.arange(len(pairs)), codes[pairs[:, 0]], codes[pairs[:, 1]]].sum()


@pytest.mark.parametrize("seed", range(6))
def test_cuts_find_the_best_of_two_labels(seed):
    rng = np.random.default_rng(seed)
    pairs = neighbour_pairs(3, 4, 8 if seed % 2 else 4)
    scores = rng.normal(size=(12, 2))
    tables = rng.normal(size=(len(pairs), 2, 2))
    lack = tables[:, 0, 1] + tables[:, 1, 0] - tables[:, 0, 0] - tables[:, 1, 1]
    tables[:, 0, 0] += np.maximum(lack, 0.0)
    top, best = brute_force(scores, pairs, tables)
    found = two_labels(scores, pairs[:, 0].copy(), pairs[:, 1].copy(), tables)
    assert weight(found, scores, pairs, tables) == pytest.approx(top)
    np.testing.assert_array_equal(found, best)


@pytest.mark.parametrize("seed", range(6))
def test_expansion_moves_come_near_the_best_of_three_labels(seed):
    rng = np.random.default_rng(seed)
    pairs = neighbour_pairs(3, 3)
    scores = 2 * rng.normal(size=(9, 3))
    tables = rng.uniform(0, 1.5, size=len(pairs))[:, None, None] * np.eye(3)
    top, _ = brute_force(scores, pairs, tables)
    found = many_labels(scores, pairs[:, 0].copy(), pairs[:, 1].copy(), tables)
    value = weight(found, scores, pairs, tables)
    cost, least = (scores.max(axis=1).sum() + tables.max(axis=(1, 2)).sum() - w for w in (value, top))
    assert least - 1e-9 <= cost <= 2 * least + 1e-9
    one_changed = [np.where(np.arange(9) == i, a, found) for i in range(9) for a in range(3)]
    assert value >= max(weight(y, scores, pairs, tables) for y in one_changed) - 1e-9


def discs(n, size, seed, k=2, noise=0.9):
    """Discs of several labels on a background, seen through two noisy channels."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:size, :size] / size
    labels, images = [], []
    for _ in range(n):
        y = np.zeros((size, size), dtype=int)
        for _ in range(5):
            a, b, r = *rng.random(2), rng.uniform(0.1, 0.25)
            y[np.hypot(row - a, column - b) < r] = rng.integers(1, k)
        means = np.stack([y, (y == 1) * 1.0], axis=2)
        labels.append(y)
        images.append(means + noise * rng.normal(size=means.shape))
    return images, labels


def overlap(found, truth):
    """Return the mean over images of intersection over union of the foreground."""
    shares = [
        ((f > 0) & (y > 0)).sum() / ((f > 0) | (y > 0)).sum() for f, y in zip(found, truth, strict=True)
    ]
    return np.mean(shares)


@pytest.mark.slow
@pytest.mark.parametrize("features", ["constant", "contrast"])
def test_neighbours_beat_independent_logistic_regression(features):
    images, labels = discs(6, 48, 0)
    fresh, truth = discs(4, 48, 1)
    crf = mk.crf.GridCRF(edge_features=features, edge_C=1.0).fit(images, labels)
    alone = LogisticRegression().fit(
        np.concatenate([x.reshape(-1, 2) for x in images]), np.concatenate([y.ravel() for y in labels])
    )
    by_pixel = [alone.predict(x.reshape(-1, 2)).reshape(y.shape) for x, y in zip(fresh, truth, strict=True)]
    right = np.mean([np.mean(f == y) for f, y in zip(by_pixel, truth, strict=True)])
    assert crf.score(fresh, truth) > 0.96 > right + 0.1
    assert overlap(crf.predict(fresh), truth) > overlap(by_pixel, truth) + 0.25
    assert np.all(crf.edge_coef_ >= 0)


def test_several_labels_are_decoded_by_expansion_moves():
    images, labels = discs(5, 32, 2, k=4, noise=0.8)
    fresh, truth = discs(3, 32, 3, k=4, noise=0.8)
    crf = mk.crf.GridCRF(neighbours=8).fit(images, labels)
    pixels, answers = (
        np.concatenate([x.reshape(-1, 2) for x in fresh]),
        np.concatenate([y.ravel() for y in truth]),
    )
    alone = LogisticRegression().fit(
        np.concatenate([x.reshape(-1, 2) for x in images]), np.concatenate([y.ravel() for y in labels])
    )
    assert crf.classes_.tolist() == [0, 1, 2, 3]
    assert crf.score(fresh, truth) > 0.9 > alone.score(pixels, answers) + 0.1
    assert crf.predict(fresh)[0].shape == (32, 32)


def test_pseudo_likelihood_on_a_grid_is_maximal_at_the_fit():
    images, labels = discs(2, 12, 4)
    crf = mk.crf.GridCRF(tol=1e-7, edge_C=0.5).fit(images, labels)

    def objective(coef, intercept, v):
        total = (coef**2).sum() / 2.0 + v**2 / 0.5
        for x, y in zip(images, labels, strict=True):
            logits = x @ coef.T + intercept
            same = np.zeros_like(logits)
            onehot = np.eye(2)[y]
            same[1:] += onehot[:-1]
            same[:-1] += onehot[1:]
            same[:, 1:] += onehot[:, :-1]
            same[:, :-1] += onehot[:, 1:]
            logits = logits + v * same
            total += (np.logaddexp.reduce(logits, axis=2) - (logits * onehot).sum(axis=2)).sum()
        return total

    v = crf.edge_coef_[0, 0, 0]
    best = objective(crf.coef_, crf.intercept_, v)
    assert best == pytest.approx(crf.training_.value, rel=1e-9)
    for step in (0.01, -0.01):
        assert objective(crf.coef_, crf.intercept_, v + step) > best
        moved = crf.coef_.copy()
        moved[0, 0] += step
        assert objective(moved, crf.intercept_, v) > best


def test_the_network_of_an_image_has_the_same_best_labelling():
    images, labels = discs(3, 16, 5)
    crf = mk.crf.GridCRF(edge_features="contrast").fit(images, labels)
    network = crf.network(images[0])
    assert network.variables[:2] == ["x0_0", "x0_1"]
    found = network.map(engine="graph-cut")
    np.testing.assert_array_equal(mk.images.image_labels(found, (16, 16)), crf.predict(images[:1])[0])


def test_marginals_of_pixels_have_the_shape_of_the_image():
    images, labels = discs(3, 5, 6)
    crf = mk.crf.GridCRF(edge_C=0.5).fit(images, labels)
    proba = crf.predict_proba(images[:2])
    assert proba[0].shape == (5, 5, 2)
    exact = crf.network(images[0]).query("x2_3", engine="junction-tree").values
    np.testing.assert_allclose(proba[0][2, 3], exact, atol=1e-9)


def test_edge_features_may_be_a_function_and_penalties_differ():
    images, labels = discs(3, 16, 7)
    crf = mk.crf.GridCRF(edge_features=lambda a, b: np.exp(-((a - b) ** 2)), edge_C=0.05).fit(images, labels)
    assert crf.edge_coef_.shape == (2, 2, 2)
    free = mk.crf.GridCRF(edge_features=lambda a, b: np.exp(-((a - b) ** 2)), edge_C=50.0).fit(images, labels)
    assert crf.edge_coef_.sum() < 0.7 * free.edge_coef_.sum()


def test_belief_propagation_trains_grids_too():
    images, labels = discs(2, 12, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        crf = mk.crf.GridCRF(inference="loopy-bp").fit(images, labels)
    assert crf.edge_coef_[0, 0, 0] > 0.3
    assert crf.score(images, labels) > 0.8


@pytest.mark.parametrize(
    ("settings", "images", "labels", "message"),
    [
        ({}, [np.zeros((3, 3))], [np.zeros((2, 3))], "3 x 3 pixels"),
        ({}, [np.zeros((3, 3)), np.zeros((3, 3, 2))], [np.eye(3)] * 2, "image 1 has 2 features"),
        ({}, [np.zeros(3)], [np.zeros(3)], "image 0 has shape"),
        ({"neighbours": 6}, [np.zeros((3, 3))], [np.eye(3)], "4 or 8"),
        ({"edge_features": "edge"}, [np.zeros((3, 3))], [np.eye(3)], "'contrast'"),
        (
            {"edge_features": lambda a, b: -np.ones((len(a), 1))},
            [np.zeros((3, 3))],
            [np.eye(3)],
            "not negative",
        ),
    ],
)
def test_bad_images_get_one_sentence(settings, images, labels, message):
    with pytest.raises(mk.errors.InvalidArgument, match=message):
        mk.crf.GridCRF(**settings).fit(images, labels)
