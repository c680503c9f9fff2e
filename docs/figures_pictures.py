"""The pictures of the page on pictures, and of the front page."""

from typing import Any

import numpy as np
from figures_processes import machine

import markovia as mk


def intervention() -> Any:
    """Show an intervention as cut arrows, with everything else updated."""
    return mk.examples.asia().plot(do={"either": "no"}, given={"dysp": "yes"}, posteriors=True, title="")


def on_dark_paper() -> Any:
    """Show the same on dark paper."""
    with mk.plotting.theme("dark"):
        return mk.examples.asia().plot(given={"xray": "yes"}, posteriors=True, title="")


def slices() -> Any:
    """Show two steps of a machine with posteriors."""
    return machine().plot(given={"hot@1": "yes"}, posteriors=True, title="")


def table_of_grades() -> Any:
    """Show a conditional table as a heat map."""
    return mk.examples.student()["grade"].plot()


def all_marginals() -> Any:
    """Show what is believed about every variable."""
    return mk.examples.asia().marginals(given={"xray": "yes"}).plot()


def settling() -> Any:
    """Show how messages settle under three schedules."""
    grid = mk.generators.ising_grid(4, 4, coupling=0.6, field=0.1)
    return mk.plotting.plot_convergence(
        {
            schedule: grid.query("x0_0", engine=mk.engines.LoopyBP(schedule=schedule, damping=0.2))
            for schedule in ("sequential", "flooding", "residual")
        }
    )


def machine_states() -> Any:
    """Show a series over its most probable path, and the probabilities of the states."""
    params = {"means": [[0.0], [4.0], [8.0]], "covariances": [[[1.0]]] * 3}
    moves = 0.95 * np.eye(3) + 0.05 / 3
    hmm = mk.HMM(3, emission="gaussian", start=[1, 0, 0], transition=moves, emission_params=params)
    series, _ = hmm.sample(150, seed=1)
    return hmm.plot(series, names=["calm", "busy", "wild"])


def smoothed_walk() -> Any:
    """Show a level and its slope with bands, wide where observations are missing."""
    model = mk.LinearStateSpace([[1, 1], [0, 1]], 0.05 * np.eye(2), [[1, 0]], 4.0, np.zeros(2), np.eye(2))
    series = model.sample(60, seed=0)[0][0]
    series[20:30] = np.nan
    axes = model.smooth(series).plot()
    for ax, name in zip(axes.flat, ("level", "slope"), strict=True):
        ax.set_ylabel(name)
    return axes


def process_band() -> Any:
    """Show the band of a Gaussian process that passes through what was seen."""
    x, at = np.linspace(0, 6, 200), np.array([0.5, 1.2, 2.4, 3.1, 5.0])
    here, there, seen = (np.exp(-((a[:, None] - b) ** 2) / 2) for a, b in ((x, x), (x, at), (at, at)))
    weights = np.linalg.solve(seen + 1e-6 * np.eye(5), there.T).T
    covariance = here - weights @ there.T
    return mk.plotting.plot_band(x, weights @ np.sin(at), covariance=covariance, observed=np.sin(at), at=at)


def three_groups() -> Any:
    """Show clusters with their ellipses."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(m, 1.0, (80, 2)) for m in ((0, 0), (5, 1), (2, 6))])
    return mk.GaussianMixture(3, random_state=0).fit(rows).plot(rows)


FIGURES = (
    intervention,
    on_dark_paper,
    slices,
    table_of_grades,
    all_marginals,
    settling,
    machine_states,
    smoothed_walk,
    process_band,
    three_groups,
)
