"""The picture of the page on variational autoencoders."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import markovia as mk


def vae_digits() -> Any:
    """Show digits that were drawn, a way between two digits, and digits whose lower half was hidden."""
    data = load_digits()
    rows = (data.data > 7.5).astype(float)
    vae = mk.deep.VAE(8, epochs=60, learning_rate=2e-3, random_state=0).fit(rows[:1600])
    first, last = vae.transform(rows[[1600 + int(np.argmax(data.target[1600:] == k)) for k in (0, 6)]])
    between = vae.inverse_transform(np.linspace(first, last, 8))
    shown = rows[1600:1608]
    hidden = shown.copy()
    hidden[:, 32:] = np.nan
    lines = {
        "drawn": vae.inverse_transform(np.random.default_rng(0).normal(size=(8, 8))),
        "from 0 to 6": between,
        "upper half seen": np.where(np.isnan(hidden), 0.0, hidden),
        "expected": vae.impute(hidden),
        "true": shown,
    }
    figure, axes = plt.subplots(len(lines), 8, figsize=(6, 3.9), layout="constrained")
    for own, (name, images) in zip(axes, lines.items(), strict=True):
        for axis, image in zip(own, images, strict=True):
            axis.imshow(image.reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
            if name == "upper half seen":
                axis.axhspan(3.5, 7.5, color="#d9d9d9")
        own[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (vae_digits,)
