"""Pictures of the page on adversarial models; everything is drawn from fixed seeds while the pages are built."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk

FIRST, SECOND = "#1f6f8b", "#d1603d"
ANGLES = np.arange(8) * np.pi / 4
CENTRES = 2 * np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])


def missed_modes() -> Any:
    """Show what a vanilla and a Wasserstein model draw of eight clusters on a ring, after as many steps of both players."""
    rng = np.random.default_rng(0)
    rows = CENTRES[rng.integers(0, 8, 1000)] + 0.05 * rng.normal(size=(1000, 2))
    figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.7), layout="constrained", sharex=True, sharey=True)
    axes[0].scatter(*rows.T, s=4, color="0.4")
    axes[0].set_title("data: eight clusters")
    for axis, objective, colour in ((axes[1], "vanilla", SECOND), (axes[2], "wasserstein", FIRST)):
        model = mk.deep.GAN(objective=objective, critic_steps=5, epochs=100, random_state=0).fit(rows)
        drawn = model.sample(1000, seed=0)
        found = mk.learning.mode_coverage(drawn, CENTRES, radius=0.2)
        axis.scatter(*drawn.T, s=4, color=colour)
        axis.set_title(f"{objective}: {found.covered} of 8 modes")
    for axis in axes:
        axis.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (missed_modes,)
