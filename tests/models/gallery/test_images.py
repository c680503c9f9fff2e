"""Image models: weights as documented, noise removed, regions found, examples that run."""

import runpy
import subprocess
import sys

import numpy as np
import pytest

import markovia as mk
from markovia.models.gallery.images import denoising_model, image_labels, segmentation_model
from places import EXAMPLES


def named(labels):
    return {f"x{r}_{c}": int(v) for (r, c), v in np.ndenumerate(np.asarray(labels))}


def weight(model, labels):
    states = named(labels)
    return sum(np.log(f.values[tuple(states[n] for n in f.names)]) for f in model.pieces())


def test_the_denoising_weight_is_that_of_flips_and_borders():
    noisy = np.array([[1, 0, 1], [0, 0, 1]])
    labels = np.array([[1, 1, 1], [0, 0, 1]])
    model = denoising_model(noisy, coupling=0.6, noise=0.2)
    borders = 3  # of 7 pairs of neighbours
    expected = 0.6 * (7 - 2 * borders) + 5 * np.log(0.8) + np.log(0.2) - 6 * 0.5 * np.log(0.8 * 0.2)
    assert weight(model, labels) == pytest.approx(expected)


def test_the_segmentation_weight_is_that_of_likelihoods_and_contrast():
    rng = np.random.default_rng(0)
    image = rng.normal(size=(3, 3))
    means, sigmas = np.array([-1.0, 0.5, 1.0]), np.array([0.5, 1.0, 2.0])
    model = segmentation_model(image, means, sigmas, coupling=0.9, contrast=0.3, neighbours=8)
    pairs = []
    for r, c in np.ndindex(3, 3):
        for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
            if 0 <= r + dr < 3 and 0 <= c + dc < 3:
                pairs.append(((r, c), (r + dr, c + dc), np.hypot(dr, dc)))
    typical = np.mean([(image[a] - image[b]) ** 2 for a, b, _ in pairs])

    def expected(labels):
        total = sum(
            0.0 - (image[p] - means[k]) ** 2 / (2 * sigmas[k] ** 2) - np.log(sigmas[k])
            for p, k in np.ndenumerate(labels)
        )
        for a, b, d in pairs:
            if labels[a] == labels[b]:
                total += 0.9 / d * np.exp(-0.3 * (image[a] - image[b]) ** 2 / (2 * typical))
        return total

    first, second = rng.integers(0, 3, size=(2, 3, 3))
    assert weight(model, first) - weight(model, second) == pytest.approx(expected(first) - expected(second))


def test_noise_is_removed_and_the_exact_answer_is_no_worse_than_climbing():
    y, x = np.mgrid[:40, :40]
    clean = (np.hypot(y - 20, x - 20) < 12).astype(int)
    noisy = np.where(np.random.default_rng(0).random(clean.shape) < 0.15, 1 - clean, clean)
    model = denoising_model(noisy, coupling=0.6, noise=0.15)
    found = model.map(engine="graph-cut")
    labels = image_labels(found, clean.shape)
    assert np.mean(labels != clean) < 0.3 * np.mean(noisy != clean)
    assert found.log_weight >= model.conditional_modes(named(noisy)).log_weight
    assert found.log_weight == pytest.approx(weight(model, labels))


def test_regions_are_found():
    truth = np.zeros((24, 24), dtype=int)
    truth[:, 12:] = 1
    truth[12:, 6:18] = 2
    colours = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    image = colours[truth] + np.random.default_rng(1).normal(scale=0.25, size=(24, 24, 2))
    model = segmentation_model(image, colours, 0.25, coupling=1.2)
    for engine in ("alpha-expansion", "trw-s"):
        labels = image_labels(model.map(engine=engine), truth.shape)
        assert np.mean(labels != truth) < 0.03
    logs = -0.5 * ((image[:, :, None, :] - colours) ** 2).sum(axis=3) / 0.25**2
    same = segmentation_model(image, log_likelihoods=logs, coupling=1.2)
    assert weight(same, truth) == pytest.approx(weight(model, truth))


def test_bad_images_are_refused():
    with pytest.raises(mk.errors.InvalidArgument, match="of 0 and 1"):
        denoising_model([[0, 2]])
    with pytest.raises(mk.errors.InvalidArgument, match="noise="):
        denoising_model([[0, 1]], noise=1.0)
    with pytest.raises(mk.errors.InvalidArgument, match="either means="):
        segmentation_model([[0.0, 1.0]])
    with pytest.raises(mk.errors.InvalidArgument, match="neighbours="):
        segmentation_model([[0.0, 1.0]], [0, 1], neighbours=6)
    with pytest.raises(mk.errors.InvalidArgument, match="log_likelihoods="):
        segmentation_model([[0.0, 1.0]], log_likelihoods=np.zeros((2, 2, 2)))
    with pytest.raises(mk.errors.InvalidArgument, match="sigmas="):
        segmentation_model([[0.0, 1.0]], [0, 1], sigmas=[1.0, -1.0])
    with pytest.raises(mk.errors.InvalidArgument, match="coupling="):
        segmentation_model([[0.0, 1.0]], [0, 1], coupling=-1.0)
    with pytest.raises(mk.errors.InvalidArgument, match="image of 2 x 2"):
        image_labels({"x0_0": 1}, (2, 2))


def test_single_pixels_work():
    assert image_labels(denoising_model([[1]]).map(engine="graph-cut"), (1, 1)).tolist() == [[1]]
    model = segmentation_model([[0.9]], [0.0, 1.0], contrast=1.0)
    assert image_labels(model.map(engine="trw-s"), (1, 1)).tolist() == [[1]]


@pytest.mark.parametrize("name", ["denoising", "segmentation", "cutout_montage"])
def test_the_figures_of_the_examples_can_be_drawn_small(name, tmp_path, capsys):
    drawn = runpy.run_path(str(EXAMPLES / f"{name}.py"))[f"{name}_figure"](size=24)
    drawn.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000
    assert "energy" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["denoising", "segmentation", "cutout_montage"])
def test_the_examples_run_as_scripts(name, tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", tmp_path / "p.png"], capture_output=True, check=True
    )
    assert b"energy" in done.stdout
