"""Picture of the page on energy models: an energy surface, draws of the model, and one coordinate given the other."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk

FIRST, SECOND = "#0072B2", "#D55E00"


def energy_moons() -> Any:
    """Show two moons as an energy model has them."""
    rng = np.random.default_rng(0)
    angle, upper = rng.uniform(0, np.pi, 1000), rng.random(1000) < 0.5
    rows = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rows = np.where(upper[:, None], rows, [1.0, 0.5] - rows) + rng.normal(0, 0.1, (1000, 2))
    how = mk.Training(epochs=150, batch=100, learning_rate=1e-2, decay=0.1, ema=0.99, seed=0)
    model = mk.deep.EnergyModel(64, 2, objective="nce", training=how).fit(rows)
    x, y = np.linspace(-2, 3, 160), np.linspace(-1.5, 2, 120)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.3), layout="constrained")
    energy = model.energy(grid).reshape(120, 160)
    axes[0].contourf(x, y, np.minimum(energy - energy.min(), 10.0), 20, cmap="viridis_r")
    axes[0].set_title("energy, up to 10 above the least")
    axes[1].scatter(*rows.T, s=3, color="0.75", label="data")
    axes[1].scatter(*model.sample(1000, seed=0).T, s=3, color=FIRST, label="draws")
    axes[1].set_title("draws of the model")
    axes[1].legend(loc="upper right")
    post = model.network().query("x", given={"x": np.array([[0.5, np.nan]])}, missing="impute", engine="smc")
    drawn = np.asarray(post.draws["x"])[..., 0, 1].ravel()
    line = np.linspace(-1.5, 2, 400)
    weight = np.exp(-model.energy(np.stack([np.full(400, 0.5), line], axis=1)))
    axes[2].hist(drawn, bins=60, density=True, color=FIRST, alpha=0.5, label="query")
    axes[2].plot(line, weight / np.trapezoid(weight, line), color=SECOND, label="density cut at 0.5")
    axes[2].set_title("second number, given the first")
    axes[2].legend(loc="upper left")
    for axis in axes[:2]:
        axis.set(xlim=(-2, 3), ylim=(-1.5, 2), aspect="equal")
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (energy_moons,)
