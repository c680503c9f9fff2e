"""Cutouts and montages: the best mask and the cheapest seams by trying all, in any unit, with marks and gaps."""

import itertools
import pickle

import numpy as np
import pytest

import markovia as mk
from markovia.models.crf.grid_crf import neighbour_pairs
from markovia.models.gallery import grab_cut
from markovia.models.gallery.images import image_labels, segmentation_model


def disc_picture(seed=0, channels=3):
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:24, :30]
    disc = np.hypot(row - 12, column - 15) < 7
    colours = np.array([[60.0, 90.0, 160.0], [200.0, 120.0, 40.0]])[:, :channels]
    return colours[disc.astype(int)] + rng.normal(scale=20.0, size=(24, 30, channels)), disc


BOX = (2, 5, 22, 26)


@pytest.mark.parametrize(("unit", "coupling"), [(1e-9, 3.0), (1.0, 3.0), (1e9, 3.0), (1.0, 40.0)])
def test_log_likelihoods_that_differ_by_thousands_need_no_clipping(unit, coupling):
    rng = np.random.default_rng(1)
    image = 100.0 * rng.normal(size=(2, 4))
    means, sigma = np.array([-100.0, 0.0, 100.0]), 2.0
    model = segmentation_model(image * unit, means * unit, sigma * unit, coupling=coupling, contrast=0.5)
    found = model.map(engine="alpha-expansion")
    logs = -0.5 * ((image[:, :, None] - means) / sigma) ** 2
    assert np.ptp(logs, axis=2).max() > 2000.0
    tails, heads = neighbour_pairs(2, 4).T
    steps = (image.ravel()[tails] - image.ravel()[heads]) ** 2
    w = coupling * np.exp(-0.5 * steps / (2.0 * steps.mean()))

    def value(labels):
        flat = np.array(labels)
        return logs.reshape(-1, 3)[np.arange(8), flat].sum() + w[flat[tails] == flat[heads]].sum()

    best = max(itertools.product(range(3), repeat=8), key=value)
    assert image_labels(found, (2, 4)).ravel().tolist() == list(best)
    top = logs.max(axis=2).sum()
    assert found.log_weight == pytest.approx(value(best) - top)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_cutout_is_the_same_in_any_unit_and_its_energy_never_rises(channels):
    image, disc = disc_picture(channels=channels)
    found = mk.images.grab_cut(image, BOX, components=2)
    assert (found.mask == disc).mean() > 0.98
    assert found.converged
    assert np.all(np.diff(found.energies) < 0)
    outside = np.ones_like(disc)
    outside[2:22, 5:26] = False
    assert not found.mask[outside].any()
    for unit in (1e-9, 1e9):
        again = mk.images.grab_cut(image * unit, BOX, components=2)
        assert np.array_equal(again.mask, found.mask)
        assert again.energy == pytest.approx(found.energy, rel=1e-6)
    if channels == 1:  # grey pictures may come without an axis of channels
        assert np.array_equal(mk.images.grab_cut(image[:, :, 0], BOX, components=2).mask, found.mask)


def test_a_turn_that_would_raise_the_energy_is_not_made(monkeypatch):
    image, _ = disc_picture()
    fit, calls = grab_cut._colours_of, []

    def worse_and_worse(rows, components, before, seed):
        calls.append(rows)
        return fit(rows + 3.0 * (len(calls) > 2), components, None, seed)

    once = mk.images.grab_cut(image, BOX, components=2, max_iter=30)
    monkeypatch.setattr(grab_cut, "_colours_of", worse_and_worse)
    found = mk.images.grab_cut(image, BOX, components=2, max_iter=30)
    assert len(calls) == 4
    assert found.energies == pytest.approx(once.energies[:1], rel=1e-12)
    assert found.converged


def test_no_mask_costs_less_than_the_cut_given_its_mixtures():
    rng = np.random.default_rng(3)
    image = np.pad(rng.normal(3.0, 1.0, size=(3, 4)), 2) + 0.3 * rng.normal(size=(7, 8))
    found = mk.images.grab_cut(image, (2, 2, 5, 6), components=1, coupling=0.7, neighbours=4)
    tails, heads, weights = found._pairs
    logs = found.log_likelihoods.reshape(-1, 2)
    free = np.flatnonzero(np.pad(np.ones((3, 4), dtype=bool), 2).ravel())
    energies = {}
    for chosen in itertools.product((0, 1), repeat=12):
        ones = np.zeros(56, dtype=int)
        ones[free] = chosen
        border = weights[ones[tails] != ones[heads]].sum()
        energies[chosen] = border - logs[np.arange(56), ones].sum()
    best = min(energies, key=energies.get)
    assert found.mask.ravel()[free].astype(int).tolist() == list(best)
    assert found.energy == pytest.approx(energies[best])
    by_network = image_labels(found.network().map(engine="graph-cut"), (7, 8))
    assert np.array_equal(by_network.astype(bool), found.mask)


def test_marks_stay_and_bring_the_object_back():
    image, disc = disc_picture()
    foreground, background = np.zeros((2, *disc.shape), dtype=bool)
    foreground[12, 10:20], background[8:16, 13:16] = True, True
    background[12, :] = False
    found = mk.images.grab_cut(image, BOX, foreground=foreground, background=background, components=2)
    assert found.mask[foreground].all()
    assert not found.mask[background].any()
    background[:] = False
    background[:, 0] = True
    alone = mk.images.grab_cut(image, foreground=foreground, background=background, components=1)
    assert (alone.mask == disc).mean() > 0.95
    with pytest.raises(mk.errors.InvalidArgument, match="the same pixel"):
        mk.images.grab_cut(image, BOX, foreground=foreground, background=foreground)


def test_flat_colours_and_a_constant_picture_are_legal():
    image = np.zeros((9, 9))
    image[3:6, 3:6] = 1.0
    found = mk.images.grab_cut(image, (2, 2, 7, 7), components=3)
    assert np.array_equal(found.mask, image > 0)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.mask, found.mask)
    assert "9 of 9 x 9 pixels" in repr(found)
    with pytest.warns(mk.errors.ConvergenceWarning, match="empty"):
        assert not mk.images.grab_cut(np.ones((9, 9)), (2, 2, 7, 7)).mask.any()


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ((0, 0, 24, 30), "whole picture"),
        ((5, 5, 2, 8), "not inside"),
        ((0, 0, 3), "four whole"),
        (None, "give box="),
    ],
)
def test_a_box_that_cannot_be_is_refused(box, message):
    with pytest.raises(mk.errors.InvalidArgument, match=message):
        mk.images.grab_cut(disc_picture()[0], box)


def seam_energy(sources, labels, costs):
    """Add up seams one by one, in units of the mean difference of two sources."""
    k = len(sources)
    differ = np.array([[np.sqrt(((a - b) ** 2).sum(axis=2)) for b in sources] for a in sources])
    differ /= differ[~np.eye(k, dtype=bool)].mean()
    rows, cols = labels.shape
    total = sum(costs[labels[r, c], r, c] for r, c in np.ndindex(rows, cols))
    for r, c in np.ndindex(rows, cols):
        for p in ((r + 1, c), (r, c + 1)):
            if p[0] < rows and p[1] < cols:
                a, b = labels[r, c], labels[p]
                total += differ[a, b, r, c] + differ[a, b, p[0], p[1]]
    return total


@pytest.mark.parametrize("k", [2, 3])
def test_a_montage_costs_what_its_seams_cost_and_no_other_costs_less(k):
    rng = np.random.default_rng(k)
    for _ in range(3):
        sources = list(rng.normal(size=(k, 2, 3, 2)))
        costs = 3.0 * rng.normal(size=(k, 2, 3))
        choice = np.full((2, 3), -1)
        choice[0, 0], choice[1, 2] = 0, k - 1
        found = mk.images.montage(sources, choice, costs=costs)
        assert found.energy == pytest.approx(seam_energy(sources, found.labels, costs))
        assert found.labels[0, 0] == 0
        assert found.labels[1, 2] == k - 1
        every = (np.array(y).reshape(2, 3) for y in itertools.product(range(k), repeat=6))
        fit = [seam_energy(sources, y, costs) for y in every if y[0, 0] == 0 and y[1, 2] == k - 1]
        assert found.energy >= min(fit) - 1e-9
        if k == 2:
            assert found.exact
            assert found.energy == pytest.approx(min(fit))
        proved = image_labels(found.network().map(engine="junction-tree"), (2, 3))
        assert seam_energy(sources, proved, costs) == pytest.approx(min(fit))
        for unit in (1e-9, 255.0):
            scaled = mk.images.montage([unit * s for s in sources], choice, costs=costs)
            assert np.array_equal(scaled.labels, found.labels)


def test_a_montage_takes_pixels_only_where_a_source_has_them():
    rng = np.random.default_rng(0)
    scene = rng.random((6, 20))
    left, right = scene.copy(), scene + 0.01 * rng.normal(size=scene.shape)
    left[:, 14:], right[:, :6] = np.nan, np.nan
    right[:, 6:9] = 9.0  # a passer-by in the overlap
    found = mk.images.montage([left, right])
    assert np.isfinite(found.image).all()
    assert np.abs(found.image - scene).max() < 0.1
    assert np.all(found.labels[:, :9] == 0)
    assert np.all(found.labels[:, 14:] == 1)
    right[0, 19] = np.nan
    with pytest.raises(mk.errors.InvalidArgument, match="row 0, column 19"):
        mk.images.montage([left, right])
