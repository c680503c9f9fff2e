"""Cut an object out of a picture from a box around it, and compose one picture of three that somebody walked through.

Run: python examples/cutout_montage.py [picture.png]
Prints the share of wrong pixels, and writes a picture.
"""

import sys

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from markovia.models.gallery.images import grab_cut, montage

SIZE = 72


def still_life(size: int = SIZE, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Draw a two-coloured pear on a striped cloth, with noise; return it and where the pear is."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, : size * 4 // 3] / size
    pear = (np.hypot((x - 0.66) * 1.1, y - 0.62) < 0.21) | (np.hypot((x - 0.66) * 1.3, y - 0.38) < 0.13)
    stripes = (np.floor(7 * (x + 0.4 * y)) % 2)[:, :, None]
    cloth = stripes * [0.35, 0.45, 0.6] + (1 - stripes) * [0.75, 0.75, 0.7]
    ripe = np.clip((x - 0.5) / 0.3, 0, 1)[:, :, None]
    fruit = ripe * [0.85, 0.55, 0.2] + (1 - ripe) * [0.5, 0.7, 0.2]
    picture = np.where(pear[:, :, None], fruit, cloth) + rng.normal(scale=0.07, size=(*pear.shape, 3))
    return np.clip(picture, 0, 1), pear


def shots(size: int = SIZE, seed: int = 1) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Draw the same square three times, each time with a passer-by elsewhere; return the shots and the empty square."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, : size * 4 // 3] / size
    square = np.stack([0.55 + 0.3 * y, 0.6 + 0.2 * y, 0.9 - 0.35 * y], axis=2)
    square[(y > 0.55) & (np.floor(10 * x) % 2 == np.floor(10 * y) % 2)] *= 0.85
    found = []
    for place, colour in ((0.3, (0.7, 0.1, 0.15)), (0.66, (0.1, 0.35, 0.2)), (1.05, (0.2, 0.15, 0.5))):
        body = (np.hypot((x - place) * 2.2, y - 0.62) < 0.24) | (np.hypot(x - place, y - 0.3) < 0.08)
        shot = np.where(body[:, :, None], colour, square)
        found.append(np.clip(shot + rng.normal(scale=0.015, size=shot.shape), 0, 1))
    return found, square


def cutout_montage_figure(size: int = SIZE) -> "plt.Figure":
    """Return a picture of a cutout and a montage; print how good they are."""
    picture, pear = still_life(size)
    box = (int(0.16 * size), int(0.34 * size), int(0.9 * size), int(0.98 * size))
    cut = grab_cut(picture, box)
    print(f"{cut}: {np.mean(cut.mask != pear):.2%} of pixels wrong")
    sources, square = shots(size)
    # what two of three shots agree on is what is there
    odd = np.abs(np.array(sources) - np.median(sources, axis=0)).max(axis=3) > 0.1
    composed = montage(sources, costs=5.0 * odd)
    print(f"{composed}: {np.mean(np.abs(composed.image - square).max(axis=2) > 0.1):.2%} of pixels wrong")
    odds = np.clip(cut.log_likelihoods[:, :, 1] - cut.log_likelihoods[:, :, 0], -15, 15)
    panels = {
        "picture and box": picture,
        "log odds by colour alone": odds,
        "cutout": np.where(cut.mask[:, :, None], picture, 1.0),
        "sources of the montage": composed.labels,
        "first shot": sources[0],
        "second": sources[1],
        "third": sources[2],
        "montage": composed.image,
    }
    figure, axes = plt.subplots(2, 4, figsize=(11, 4.6), layout="constrained")
    for axis, (title, shown) in zip(axes.flat, panels.items(), strict=True):
        axis.imshow(shown, cmap="RdBu" if "odds" in title else "viridis", interpolation="nearest")
        axis.set_title(title, fontsize=10)
        axis.set(xticks=[], yticks=[])
    top, left, bottom, right = box
    axes[0, 0].add_patch(
        plt.Rectangle(
            (left - 0.5, top - 0.5), right - left, bottom - top, fill=False, edgecolor="white", linewidth=1.5
        )
    )
    return figure


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "cutout_montage.png"
    cutout_montage_figure().savefig(path, dpi=110)
    print(f"wrote {path}")
