"""Learn to segment noisy pictures: logistic regression pixel by pixel against conditional random fields on the grid.

Pseudo-likelihood trusts neighbours too much where shapes are smooth; a penalty on the edge weights of their own
(`edge_C`) helps. How strong it should be is chosen on pictures that were kept back, and what is reported comes from
pictures that neither training nor that choice has seen.

Run: python examples/crf_segmentation.py [picture.png]
Prints the choice, then the share of right pixels and the overlap with the true shapes, and writes a picture.
"""

import sys
from typing import Any

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from markovia.models.crf.crf import CRF
from markovia.models.crf.grid_crf import GridCRF

SIZE = 96
NOISE = 1.0
EDGE_C = (2.0, 0.2, 0.02, 0.005, 0.002, 0.001, 0.0005)
"""What may be chosen; 2 is the default, the same penalty as that of the node weights."""


Pictures = tuple[list[NDArray[np.float64]], list[NDArray[np.int64]]]
"""Pictures and their true labels."""


def shapes(n: int, size: int = SIZE, seed: int = 0) -> Pictures:
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


def mean_overlap(found: list[NDArray[np.int64]], truth: list[NDArray[np.int64]]) -> float:
    """Return the mean overlap of several pictures."""
    return float(np.mean([overlap(f, y) for f, y in zip(found, truth, strict=True)]))


def report(name: str, found: list[NDArray[np.int64]], truth: list[NDArray[np.int64]]) -> None:
    """Print the share of right pixels and the mean overlap."""
    right = np.mean([np.mean(f == y) for f, y in zip(found, truth, strict=True)])
    print(f"{name:16s} right pixels {right:.1%}   overlap with the shapes {mean_overlap(found, truth):.1%}")


def contrast_report(size: int = SIZE, seed: int = 0) -> None:
    """Do the same with edges that are weaker where the picture changes."""
    training, validation, (fresh, truth) = (shapes(8, size, seed + k) for k in range(3))
    models, best = trained(training, validation, edge_features="contrast")
    print(f"with contrast features, chosen on pictures that were kept back: edge_C={best:g}")
    report("with contrast", models[best].predict(fresh), truth)


def trained(training: Pictures, validation: Pictures, **settings: Any) -> tuple[dict[float, GridCRF], float]:
    """Train with every strength of the edge penalty; say which has the best overlap on validation pictures."""
    models = {c: GridCRF(edge_C=c, **settings).fit(*training) for c in EDGE_C}
    overlaps = {c: mean_overlap(model.predict(validation[0]), validation[1]) for c, model in models.items()}
    return models, max(overlaps, key=lambda c: overlaps[c])


def segmentation_figure(size: int = SIZE, seed: int = 0) -> "plt.Figure":
    """Train on eight pictures, choose on eight, test on eight more, and return a picture of three of these."""
    training, validation, (fresh, truth) = (shapes(8, size, seed + k) for k in range(3))
    pixels = [(x.reshape(-1, x.shape[2]), []) for x in training[0]]  # no edges: logistic regression
    alone = CRF(None).fit(pixels, [y.ravel() for y in training[1]])
    models, best = trained(training, validation)
    answers = {
        "pixel by pixel": [_alone(alone, x) for x in fresh],
        "default penalty": models[EDGE_C[0]].predict(fresh),
        f"edge_C={best:g}": models[best].predict(fresh),
    }
    print(f"chosen on pictures that were kept back: edge_C={best:g}")
    for name, found in answers.items():
        report(name, found, truth)
    figure, axes = plt.subplots(3, 5, figsize=(10, 6.6), layout="constrained")
    for line, x, y, i in zip(axes, fresh, truth, range(3), strict=False):
        panels = {"picture": x[:, :, 0], "truth": y, **{n: found[i] for n, found in answers.items()}}
        for axis, (title, panel) in zip(line, panels.items(), strict=True):
            axis.imshow(panel, cmap="gray", interpolation="nearest")
            axis.set(xticks=[], yticks=[])
            if title in answers:
                axis.set_xlabel(f"overlap {overlap(panel, y):.0%}", fontsize=9)
            if i == 0:
                axis.set_title(title, fontsize=11)
    return figure


def _alone(model: CRF, image: NDArray[np.float64]) -> NDArray[np.int64]:
    scores = image @ model.coef_.T + model.intercept_
    labels: NDArray[np.int64] = model.classes_[scores.argmax(axis=2)]
    return labels


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "crf_segmentation.png"
    segmentation_figure().savefig(path, dpi=110)
    print(f"wrote {path}")
    contrast_report()
