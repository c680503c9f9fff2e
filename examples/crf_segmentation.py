"""Learn to segment noisy pictures: logistic regression pixel by pixel against conditional random fields on the grid.

Pseudo-likelihood trusts neighbours too much where shapes are smooth; a penalty on edge weights of their own repairs it.

Run: python examples/crf_segmentation.py [picture.png]
Prints the share of right pixels and the overlap with the true shapes on fresh pictures, and writes a picture.
"""

import sys

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from markovia.models.crf import CRF
from markovia.models.grid_crf import GridCRF

SIZE = 96
NOISE = 1.0


def shapes(
    n: int, size: int = SIZE, seed: int = 0
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.int64]]]:
    """Draw discs and bars, and pictures of them with two noisy channels, the second one smoothed."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:size, :size] / size
    images, labels = [], []
    for _ in range(n):
        truth = np.zeros((size, size), dtype=np.int64)
        for _ in range(4):
            a, b, r, angle = *rng.random(2), rng.uniform(0.08, 0.18), rng.uniform(0, np.pi)
            along = (row - a) * np.cos(angle) + (column - b) * np.sin(angle)
            across = (column - b) * np.cos(angle) - (row - a) * np.sin(angle)
            truth[np.hypot(row - a, column - b) < r] = 1
            truth[(np.abs(along) < 0.28) & (np.abs(across) < 0.03)] = 1
        image = truth + NOISE * rng.normal(size=truth.shape)
        padded = np.pad(image, 1, mode="edge")
        mean = sum(padded[i : i + size, j : j + size] for i in range(3) for j in range(3)) / 9
        images.append(np.stack([image, mean], axis=2))
        labels.append(truth)
    return images, labels


def overlap(found: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """Return the intersection of two shapes over their union."""
    return float(((found > 0) & (truth > 0)).sum() / ((found > 0) | (truth > 0)).sum())


def segmentation_figure(size: int = SIZE, seed: int = 0) -> "plt.Figure":
    """Train on eight pictures, test on eight, and return a picture of three of them."""
    images, labels = shapes(8, size, seed)
    fresh, truth = shapes(8, size, seed + 1)

    pixels = [(x.reshape(-1, x.shape[2]), []) for x in images]  # no edges: logistic regression
    alone = CRF(None).fit(pixels, [y.ravel() for y in labels])
    models = {
        "edges free": GridCRF().fit(images, labels),
        "edges penalised": GridCRF(edge_C=0.002).fit(images, labels),
    }
    answers = {"pixel by pixel": [_alone(alone, x) for x in fresh]}
    answers |= {name: model.predict(fresh) for name, model in models.items()}
    for name, found in answers.items():
        right = np.mean([np.mean(f == y) for f, y in zip(found, truth, strict=True)])
        shared = np.mean([overlap(f, y) for f, y in zip(found, truth, strict=True)])
        print(f"{name:18s} right pixels {right:.1%}   overlap with the shapes {shared:.1%}")
    figure, axes = plt.subplots(3, 5, figsize=(11, 6.8), layout="constrained")
    for line, x, y, i in zip(axes, fresh, truth, range(3), strict=False):
        panels = {"picture": x[:, :, 0], "truth": y, **{n: f[i] for n, f in answers.items()}}
        for axis, (title, shown) in zip(line, panels.items(), strict=True):
            axis.imshow(shown, cmap="gray", interpolation="nearest")
            axis.set(xticks=[], yticks=[])
            note = "" if title in ("picture", "truth") else f"\noverlap {overlap(shown, y):.0%}"
            axis.set_title(title + note, fontsize=10)
    return figure


def _alone(model: CRF, image: NDArray[np.float64]) -> NDArray[np.int64]:
    scores = image @ model.coef_.T + model.intercept_
    labels: NDArray[np.int64] = model.classes_[scores.argmax(axis=2)]
    return labels


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "crf_segmentation.png"
    segmentation_figure().savefig(path, dpi=110)
    print(f"wrote {path}")
