"""Pictures of the page on Boltzmann machines: digits, what hidden units look for, and what a machine draws."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import markovia as mk


def boltzmann_digits() -> Any:
    """Show digits, the weights of hidden units, draws, and lower halves filled in given upper ones."""
    rows = (load_digits().data > 7.5).astype(float)
    rbm = mk.deep.RBM(16, method="cd", epochs=60, random_state=0).fit(rows)
    network = rbm.network()
    halves = []
    for row in rows[:10]:
        upper = {f"v{i}": int(row[i]) for i in range(32)}
        lower = network.marginals(given=upper)
        halves.append(np.concatenate([row[:32], [lower[f"v{i}"][1] for i in range(32, 64)]]))
    weights = rbm.parameters_["weight0"].T[:10]
    shown = {
        "data": rows[:10], "weights of hidden units": weights, "draws": rbm.sample(10, seed=0),
        "lower halves, given upper ones: exact probabilities": halves,
    }  # fmt: skip
    figure, axes = plt.subplots(4, 10, figsize=(9.0, 4.8))
    figure.subplots_adjust(left=0.01, right=0.99, top=0.94, bottom=0.01, wspace=0.12, hspace=0.35)
    for line, (title, pictures) in zip(axes, shown.items(), strict=True):
        most = float(np.abs(pictures).max())
        colours = {"cmap": "Greys", "vmin": 0.0, "vmax": 1.0}
        if pictures is weights:
            colours = {"cmap": "RdBu_r", "vmin": -most, "vmax": most}
        for ax, picture in zip(line, pictures, strict=True):
            ax.imshow(picture.reshape(8, 8), **colours)
            ax.set_xticks([])
            ax.set_yticks([])
        line[0].set_title(title, loc="left")
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (boltzmann_digits,)
