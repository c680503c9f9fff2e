"""Pictures of the page on belief networks: bars, what hidden units explain, and what the network dreams."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk

SIDE = 4


def belief_net_bars() -> Any:
    """Show images of bars, the weights of a belief network's hidden units, and images that it dreams."""
    rng = np.random.default_rng(0)
    bars = np.concatenate([np.repeat(np.eye(SIDE), SIDE, axis=1), np.tile(np.eye(SIDE), SIDE)])
    images = ((rng.random((3000, 2 * SIDE)) < 0.2) @ bars > 0).astype(float)
    net = mk.deep.SigmoidBeliefNetwork(
        (10,), "vimco", draws=10, learning_rate=0.03, epochs=80, batch=100, random_state=0
    )
    net.fit(images)
    weights = net.network_.parameters["weights1"]
    weights = weights[np.argsort(-np.abs(weights).sum(axis=1))]
    shown = {"data": images[:10], "weights of hidden units": weights, "dreams": net.sample(10, seed=1)}
    figure, axes = plt.subplots(3, 10, figsize=(9.0, 3.3), layout="constrained")
    for line, (title, pictures) in zip(axes, shown.items(), strict=True):
        most = max(1.0, float(np.abs(pictures).max()))
        colours = (
            {"cmap": "RdBu_r", "vmin": -most, "vmax": most} if pictures is weights else {"cmap": "Greys"}
        )
        for ax, picture in zip(line, pictures, strict=True):
            ax.imshow(picture.reshape(SIDE, SIDE), **colours)
            ax.set_xticks([])
            ax.set_yticks([])
        line[0].set_title(title, loc="left")
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (belief_net_bars,)
