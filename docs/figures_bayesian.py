"""The pictures of the pages on Bayesian models."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk
import markovia.distributions as dist
from markovia.plotting import style


def eight_schools_plate() -> Any:
    """Show eight schools with its plate."""
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("tau", dist.HalfCauchy(5))
    m.add("theta", lambda mu, tau: dist.Normal(mu, tau), plate="school")
    m.add("sigma", mk.Input(), plate="school")
    m.add("y", lambda theta, sigma: dist.Normal(theta, sigma), plate="school")
    return m.plot(given={"y": np.zeros(8), "sigma": np.ones(8)})


def hidden_states() -> Any:
    """Show a series and the posterior of its hidden states."""
    m = mk.BayesianNetwork()
    m.add("rows", dist.Dirichlet(np.ones(2)), plate={"state": 2})
    m.add("mu", dist.Ordered(dist.Normal(0, 5), size=2))
    first = dist.Categorical(np.array([0.5, 0.5]))
    m.add(
        "z",
        lambda before, rows: dist.Categorical(rows[before]),
        plate="t",
        previous={"before": "z"},
        first=first,
    )
    m.add("y", lambda z, mu: dist.Normal(mu[z], 1.0), plate="t")
    rng = np.random.default_rng(0)
    path = (np.arange(60) // 15) % 2
    y = np.where(path, 3.0, -1.0) + rng.normal(size=60)
    states: Any = m.query("z", given={"y": y})
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(7, 3.6), sharex=True, height_ratios=[2, 1], layout="constrained"
    )
    above.plot(y, "o-", color=style.NODE_BORDER, markersize=3, linewidth=0.8)
    above.set_ylabel("y")
    below.fill_between(np.arange(60), states.probabilities[:, 1], step="mid", color=style.BAR)
    below.step(np.arange(60), path, where="mid", color=style.INK, linewidth=1.0, label="true state")
    below.set(xlabel="t", ylabel="P(z = 1)", ylim=(0, 1.05))
    below.legend(loc="upper right", fontsize=8)
    return figure


FIGURES = (eight_schools_plate, hidden_states)
