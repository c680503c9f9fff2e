"""Remove noise from a black-and-white picture: iterated conditional modes and the exact answer by graph cut.

Run: python examples/denoising.py [picture.png] Prints the energy (negative log weight) of each labelling and how
many pixels are wrong, and writes a picture of all four images.
"""

import sys
from time import perf_counter

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from markovia.models.gallery.images import denoising_model, image_labels

SIZE = 96
NOISE = 0.2


def drawing(size: int = SIZE) -> NDArray[np.int64]:
    """Draw a ring, a bar and a chequered square."""
    y, x = np.mgrid[:size, :size] / size
    radius = np.hypot(x - 0.36, y - 0.38)
    ring = (radius < 0.28) & (radius > 0.15)
    bar = np.abs(y - 0.12 - 0.9 * (x - 0.1)) < 0.045
    square = (x > 0.6) & (x < 0.91) & (y > 0.08) & (y < 0.4) & (
        (x * 12).astype(int) + (y * 12).astype(int)
    ) % 2 == 1
    foot = (y > 0.8) & (y < 0.9) & (x > 0.1) & (x < 0.7)
    return (ring ^ bar | square | foot).astype(np.int64)


def noisy_drawing(
    size: int = SIZE, noise: float = NOISE, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the drawing and the same with some pixels flipped."""
    clean = drawing(size)
    flipped = np.random.default_rng(seed).random(clean.shape) < noise
    return clean, np.where(flipped, 1 - clean, clean)


def denoising_figure(size: int = SIZE) -> "plt.Figure":
    """Return a picture of the clean and the noisy image and of two labellings; print their energies."""
    clean, noisy = noisy_drawing(size)
    model = denoising_model(noisy, coupling=0.55, noise=NOISE)
    start = {f"x{r}_{c}": int(noisy[r, c]) for r in range(size) for c in range(size)}
    modes = model.conditional_modes(start)
    begin = perf_counter()
    best = model.map(engine="graph-cut")
    seconds = perf_counter() - begin
    icm, cut = image_labels(modes.states, clean.shape), image_labels(best, clean.shape)
    panels = {
        "clean": clean,
        f"noisy ({wrong(noisy, clean):.1%} wrong)": noisy,
        f"conditional modes ({wrong(icm, clean):.1%})": icm,
        f"graph cut, exact ({wrong(cut, clean):.1%})": cut,
    }
    print(f"{size} x {size} pixels, {NOISE:.0%} flipped; energy = negative log weight")
    print(f"conditional modes  energy {-modes.log_weight:10.3f}  {wrong(icm, clean):.2%} of pixels wrong")
    print(f"graph cut          energy {-best.log_weight:10.3f}  {wrong(cut, clean):.2%} of pixels wrong")
    print(
        f"gap of the graph cut: {best.gap:g}; it took {seconds:.2f} s, compiling or loading the kernel included"
    )
    figure, axes = plt.subplots(1, 4, figsize=(11, 3.0), layout="constrained")
    for axis, (title, image) in zip(axes, panels.items(), strict=True):
        axis.imshow(image, cmap="gray_r", interpolation="nearest")
        axis.set_title(title, fontsize=10)
        axis.set(xticks=[], yticks=[])
    return figure


def wrong(labels: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """Return the share of wrong pixels."""
    return float(np.mean(labels != truth))


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "denoising.png"
    denoising_figure().savefig(path, dpi=110)
    print(f"wrote {path}")
