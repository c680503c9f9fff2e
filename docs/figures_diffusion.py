"""Picture of the page on diffusions: two moons drowned in noise, drawn out of it, and one coordinate given the other."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk

FIRST, SECOND = "#0072B2", "#D55E00"


def diffusion_moons() -> Any:
    """Show the way there, the way back, and missing entries."""
    rng = np.random.default_rng(0)
    angle, upper = rng.uniform(0, np.pi, 2000), rng.random(2000) < 0.5
    rows = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rows = np.where(upper[:, None], rows, [1.0, 0.5] - rows) + rng.normal(0, 0.05, (2000, 2))
    model = mk.deep.Diffusion(steps=40, epochs=400, random_state=0).fit(rows)
    chain = model.unroll().sample(1, given={"row": 1500}, seed=0)
    figure, axes = plt.subplots(2, 4, figsize=(10.4, 5.2), layout="constrained")
    unit = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    for axis, step in zip(axes[0], (0, 8, 18, 40), strict=True):
        left = np.cos((step / 40 + 0.008) / 1.008 * np.pi / 2) / np.cos(0.008 / 1.008 * np.pi / 2)
        noisy = left * unit + np.sqrt(1 - left**2) * rng.normal(size=unit.shape)
        axis.scatter(*noisy.T, s=2, color="0.5")
        axis.set_title(f"there: step {step}")
    for axis, step in zip(axes[1], (40, 18, 8), strict=False):
        axis.scatter(*np.asarray(chain[f"x{step}"])[0].T, s=2, color=FIRST)
        axis.set_title(f"back: step {step}")
    last = axes[1, 3]
    last.scatter(*np.asarray(chain["x0"])[0].T, s=2, color=FIRST)
    known = np.array([[-0.5, np.nan], [0.5, np.nan], [1.5, np.nan]])
    drawn = model.impute(known, draws=200, particles=2000)
    last.scatter(*drawn.reshape(-1, 2).T, s=3, color=SECOND)
    last.set_title("rows; second given first")
    for axis in axes.ravel()[:-1]:
        axis.set(xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (diffusion_moons,)
