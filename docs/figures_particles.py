"""The picture of the page on particle filters."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk
import markovia.distributions as dist
from markovia.plotting import style


def particle_volatility() -> Any:
    """Show returns, and the log of their volatility: true, filtered with its band, and smoothed."""
    import jax.numpy as jnp

    model = mk.ParticleFilter(
        initial=dist.Normal(0, 1),
        transition=lambda x: dist.Normal(0.95 * x, 0.3),
        observation=lambda x: dist.Normal(0, jnp.exp(x / 2)),
        n_particles=5_000,
        random_state=0,
    )
    returns, states = model.sample(steps=200, seed=1)
    found = model.filter(returns, quantiles=(0.05, 0.95))
    smoothed = model.smooth(returns, draws=200)
    t = np.arange(200)
    figure, (top, ax) = plt.subplots(
        2, 1, figsize=(7, 4.2), sharex=True, height_ratios=(1, 2), layout="constrained"
    )
    top.vlines(t, 0, returns[0], color=style.NODE_BORDER, linewidth=1)
    top.set(ylabel="return")
    low, high = found.quantiles[0].T
    ax.fill_between(t, low, high, color=style.BAR, alpha=0.3, linewidth=0, label="filtered, 90% band")
    ax.plot(t, found.mean[0], color=style.BAR, linewidth=1, label="filtered mean")
    ax.plot(t, smoothed.mean[0], color=style.INK, linewidth=1.6, label="smoothed mean")
    ax.plot(t, states[0], color="#c0392b", linewidth=1, linestyle="--", label="true")
    ax.set(xlabel="step", ylabel="log variance", xlim=(0, 199))
    for one in (top, ax):
        one.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower right", fontsize=8, frameon=False, ncols=4)
    return figure


FIGURES = (particle_volatility,)
