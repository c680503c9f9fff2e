"""Dense fields on pictures: kernels against double loops, mean field against enumeration, bounds, and the grid's error."""

import itertools
import pickle

import numpy as np
import pytest

import markovia as mk
from markovia.inference.variational import dense_grid
from markovia.inference.variational.dense_grid import (
    DensePairs,
    GridKernel,
    PlaceKernel,
    WholeKernel,
    dense_mean_field,
)
from markovia.models.crf.grid_crf import standard_colours

OPTIONS = {
    "smoothness": 0.8, "smooth_distance": 1.5, "appearance": 1.7, "colour_distance": 2.5, "colour_range": 0.9,
}  # fmt: skip


def pair_weights_by_hand(image):
    """Write down the weight of every pair of pixels, from the definition."""
    rows, cols, channels = image.shape
    flat = image.reshape(-1, channels)
    colours = (flat - flat.mean(axis=0)) / np.sqrt(((flat - flat.mean(axis=0)) ** 2).mean())
    places = [(r, c) for r in range(rows) for c in range(cols)]
    n, total = len(places), 0.0
    for weight, distance, spread in ((0.8, 1.5, np.inf), (1.7, 2.5, 0.9)):
        kernel = np.zeros((n, n))
        for i, j in itertools.permutations(range(n), 2):
            far = ((np.array(places[i]) - places[j]) ** 2).sum() / distance**2
            kernel[i, j] = np.exp(-0.5 * (far + ((colours[i] - colours[j]) ** 2).sum() / spread**2))
        sums = kernel.sum(axis=1)
        total = total + weight * kernel / np.sqrt(sums[:, None] * sums[None, :])
    return total


def test_pairs_weigh_what_the_definition_says():
    rng = np.random.default_rng(0)
    image = rng.normal(size=(3, 4, 2))
    pairs = DensePairs.of(standard_colours(image), **OPTIONS)
    np.testing.assert_allclose(pairs.pull(np.eye(12)), pair_weights_by_hand(image), atol=1e-12)
    places = np.indices((3, 4)).reshape(2, -1).T
    values = rng.random((12, 3))
    np.testing.assert_allclose(
        PlaceKernel(3, 4, 2.0).sums(values), WholeKernel(places / 2.0).sums(values), atol=1e-12
    )


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_mean_field_settles_at_a_fixed_point_below_log_z(unit):
    rng = np.random.default_rng(1)
    image, logs = rng.normal(size=(2, 4, 1)), 1.5 * rng.normal(size=(2, 4, 2))
    found = mk.images.dense_segmentation(unit * image, log_likelihoods=logs, tol=1e-12, **OPTIONS)
    weights, scores = pair_weights_by_hand(image), logs.reshape(-1, 2)
    q = found.probabilities.reshape(-1, 2)
    aim = np.exp(scores + weights @ q)
    np.testing.assert_allclose(q, aim / aim.sum(axis=1, keepdims=True), atol=1e-5)
    every = np.array(list(itertools.product((0, 1), repeat=8)))
    same = every[:, :, None] == every[:, None, :]
    values = scores[np.arange(8), every].sum(axis=1) + 0.5 * (same * weights).sum(axis=(1, 2))
    log_z = np.logaddexp.reduce(values)
    energy = (q * scores).sum() + 0.5 * np.einsum("il,ij,jl->", q, weights, q)
    assert found.bound == pytest.approx(energy - (q * np.log(q)).sum())
    assert log_z - 1.0 < found.bound <= log_z
    assert np.all(np.diff(found.bounds) >= 0)
    assert found.filter == "exact"
    assert np.array_equal(found.labels, found.probabilities.argmax(axis=2))
    top = scores.max(axis=1).sum()
    assert found.network().log_partition() + top == pytest.approx(log_z)
    assert np.array_equal(pickle.loads(pickle.dumps(found)).labels, found.labels)


def test_two_pixels_that_would_swap_labels_for_ever_settle():
    scores = np.array([[3.0, 0.0], [0.0, 2.5]])
    pairs = DensePairs.of(np.zeros((1, 2, 1)), smoothness=10.0, appearance=0.0)
    found = dense_mean_field(scores, pairs)
    assert found.converged
    assert np.all(np.diff(found.bounds) >= 0)
    exact = np.logaddexp.reduce([13.0, 12.5, 5.5, 0.0])
    assert exact - 1.0 < found.bounds[-1] <= exact
    assert found.bounds[-1] > found.bounds[0] + 1.0


@pytest.mark.parametrize("channels", [1, 3])
def test_a_bilateral_grid_filters_nearly_as_the_whole_kernel(channels):
    rng = np.random.default_rng(2)
    row, column = np.mgrid[:30, :40]
    colour = np.where(np.hypot(row - 15, column - 20) < 9, 1.0, -1.0)[:, :, None]
    colour = colour + rng.normal(scale=0.3, size=(30, 40, channels))
    place = np.indices((30, 40)).reshape(2, -1).T / 10.0
    features = np.hstack([place, colour.reshape(1200, -1) / 0.5])
    whole, grid = WholeKernel(features), GridKernel(features)
    ones = np.ones((1200, 1))
    assert np.abs(grid.sums(ones) / whole.sums(ones) - 1.0).max() < 0.06
    assert abs(float((grid.sums(ones) / whole.sums(ones)).mean()) - 1.0) < 0.01
    some = np.zeros((1200, 2))
    some[[100, 700], [0, 1]] = 1.0
    found = grid.sums(some)
    assert found[100, 0] == pytest.approx(0.0, abs=1e-12)  # no pixel is its own neighbour
    assert found[100, 1] == pytest.approx(found[700, 0], abs=1e-12)


def thin_picture(size):
    rng = np.random.default_rng(3)
    row, column = np.mgrid[:size, :size]
    truth = ((abs(row - size // 2) < 2) | ((row + column) % 11 == 0)).astype(int)
    image = truth + rng.normal(scale=0.15, size=truth.shape)
    guess = np.where(rng.random(truth.shape) < 0.25, 1 - truth, truth)
    return image, truth, np.where(guess[:, :, None] == [0, 1], 0.0, -1.1)


def test_large_pictures_are_filtered_by_a_grid_and_say_so(monkeypatch):
    image, truth, logs = thin_picture(58)
    by_grid = mk.images.dense_segmentation(image, log_likelihoods=logs)
    monkeypatch.setattr(dense_grid, "MOST_EXACT", 4000)
    exact = mk.images.dense_segmentation(image, log_likelihoods=logs)
    assert (by_grid.filter, exact.filter) == ("bilateral grid", "exact")
    assert (by_grid.labels == exact.labels).mean() > 0.995
    assert (exact.labels == truth).mean() > 0.99
    with pytest.raises(mk.errors.TooLarge, match="pairs"):
        by_grid.network()


def test_a_trained_grid_predicts_with_all_pairs():
    rng = np.random.default_rng(4)
    image, truth, _ = thin_picture(16)
    noisy = np.stack([image, truth + rng.normal(scale=1.0, size=truth.shape)], axis=2)
    crf = mk.crf.GridCRF(contrast_channels=[0]).fit([noisy], [truth])
    found = crf.predict_dense([noisy], **OPTIONS)[0]
    scores = noisy @ crf.coef_.T + crf.intercept_
    same = mk.images.dense_segmentation(image, log_likelihoods=scores, **OPTIONS)
    assert np.array_equal(found, same.labels)
    with pytest.raises(mk.errors.InvalidArgument, match="colour_range="):
        crf.predict_dense([noisy], colour_range=0.0)


def test_constant_pictures_single_pixels_and_no_pairs_are_legal():
    alone = np.log([[[0.3, 0.7]]])
    np.testing.assert_allclose(
        mk.images.dense_segmentation([[5.0]], log_likelihoods=alone).probabilities, np.exp(alone)
    )
    logs = np.tile([0.0, 0.1], (3, 3, 1))
    assert np.all(mk.images.dense_segmentation(np.ones((3, 3)), log_likelihoods=logs).labels == 1)
    free = mk.images.dense_segmentation(np.eye(3), [0.0, 1.0], smoothness=0.0, appearance=0.0)
    assert free.bounds[-1] == pytest.approx(free.bounds[0])
    with pytest.warns(mk.errors.ConvergenceWarning, match="max_iter="):
        mk.images.dense_segmentation(np.eye(4), [0.0, 1.0], max_iter=1)
