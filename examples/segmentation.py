"""Divide a noisy picture into four regions with a Potts model: by pixel, by alpha-expansion, and by TRW-S.

Run: python examples/segmentation.py [picture.png]
Prints the energy (negative log weight) of each labelling and its gap, and writes a picture.
"""

import sys

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from markovia.models.gallery.images import image_labels, segmentation_model

SIZE = 80
MEANS = (0.15, 0.4, 0.65, 0.9)
SIGMA = 0.2


def regions(size: int = SIZE) -> NDArray[np.int64]:
    """Draw sky, a hill, a lake and a sun."""
    y, x = np.mgrid[:size, :size] / size
    labels = np.full((size, size), 2)
    labels[np.hypot(x - 0.72, y - 0.24) < 0.14] = 3
    labels[y > 0.62 - 0.22 * np.sin(3.2 * x)] = 0
    labels[np.hypot((x - 0.4) / 1.9, y - 0.8) < 0.13] = 1
    return labels


def segmentation_figure(size: int = SIZE, seed: int = 1) -> "plt.Figure":
    """Return a picture of the noisy image and three labellings; print their energies."""
    truth = regions(size)
    image = np.array(MEANS)[truth] + np.random.default_rng(seed).normal(scale=SIGMA, size=truth.shape)
    model = segmentation_model(image, MEANS, SIGMA, coupling=1.1, contrast=0.1, neighbours=8)
    alone = np.abs(image[:, :, None] - np.array(MEANS)).argmin(axis=2)
    panels = {"image": image, f"pixel by pixel ({wrong(alone, truth):.1%} wrong)": alone}
    print(f"{size} x {size} pixels, {len(MEANS)} labels; energy = negative log weight")
    for engine in ("alpha-expansion", "trw-s"):
        found = model.map(engine=engine)
        labels = image_labels(found, truth.shape)
        panels[f"{engine} ({wrong(labels, truth):.1%})"] = labels
        share = f"{wrong(labels, truth):.2%} of pixels wrong"
        print(f"{engine:16s} energy {-found.log_weight:10.3f}  gap {found.gap:8.3g}  {share}")
    figure, axes = plt.subplots(1, 4, figsize=(11, 3.0), layout="constrained")
    for axis, (title, shown) in zip(axes, panels.items(), strict=True):
        axis.imshow(shown, cmap="gray" if title == "image" else "viridis", interpolation="nearest")
        axis.set_title(title, fontsize=10)
        axis.set(xticks=[], yticks=[])
    return figure


def wrong(labels: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """Return the share of wrong pixels."""
    return float(np.mean(labels != truth))


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "segmentation.png"
    segmentation_figure().savefig(path, dpi=110)
    print(f"wrote {path}")
