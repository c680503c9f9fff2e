"""The picture of the page on flows."""

from dataclasses import replace
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import markovia as mk
from markovia.factors.networks.flow_modules import carried_rows
from markovia.plotting import style


def flow_layers() -> Any:
    """Show how layers bend a Gaussian to two moons, and the density at the end."""
    rows, _ = make_moons(2000, noise=0.05, random_state=0)
    flow = mk.deep.Flow(layers=4, epochs=120, learning_rate=5e-3, random_state=0).fit(rows)
    noise = np.random.default_rng(0).normal(size=(1500, 2))
    law = flow.network().parameters["law"]
    steps = [noise]
    for number in range(1, 5):
        some = jax.tree.map(
            lambda numbers, n=number: numbers[:n] if hasattr(numbers, "shape") else numbers, law.layer
        )
        steps.append(carried_rows(replace(law, layer=some), noise, [], False)[0])
    colour = np.arctan2(noise[:, 1], noise[:, 0])
    figure, axes = plt.subplots(1, len(steps) + 1, figsize=(9, 1.9), layout="constrained")
    for number, (axis, points) in enumerate(zip(axes, steps, strict=False)):
        axis.scatter(*points.T, c=colour, cmap="twilight", s=1.5, linewidths=0, rasterized=True)
        axis.set_title("noise" if number == 0 else f"after {number}", fontsize=8)
    side = [np.linspace(-1.6, 2.6, 90), np.linspace(-1.1, 1.6, 90)]
    grid = np.stack(np.meshgrid(*side), -1).reshape(-1, 2)
    density = np.exp(flow.score_samples(grid)).reshape(90, 90)
    axes[-1].contourf(*side, density, levels=12, cmap="Greys")
    axes[-1].scatter(*rows[:300].T, s=1.5, color=style.BAR, linewidths=0)
    axes[-1].set_title("density and rows", fontsize=8)
    for axis in axes:
        axis.set(xticks=[], yticks=[])
    return figure


FIGURES = (flow_layers,)
