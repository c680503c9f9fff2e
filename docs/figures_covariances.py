"""The pictures of the page on building covariances."""

# ruff: noqa: N806 (letters of the literature)

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk
from markovia.plotting import style

k = mk.covariances
ACCENT = "#c0392b"


def _draws(panel: Any, covariance: Any, title: str, x: Any, n: int = 3) -> None:
    """Draw functions of a covariance, from the same random numbers in every panel."""
    K = covariance.value(x) + 1e-9 * np.eye(len(x))
    z = np.random.default_rng(3).standard_normal((len(x), n))
    for f, colour in zip((np.linalg.cholesky(K) @ z).T, (style.BAR, style.INK, ACCENT), strict=False):
        panel.plot(x[:, 0], f, color=colour, linewidth=1.1)
    panel.set_title(title, fontsize=8)
    panel.set_xticks([])
    panel.set_yticks([])
    panel.spines[["top", "right"]].set_visible(False)


def covariance_draws() -> Any:
    """Show functions of a dozen covariances; what depends on the place of zero has it in the middle."""
    x = np.linspace(0.0, 6.0, 300)[:, None]
    shown = {
        "RBF(1)": k.RBF(1.0),
        "Matern52(1)": k.Matern52(1.0),
        "Matern12(1)": k.Matern12(1.0),
        "RationalQuadratic(1, .2)": k.RationalQuadratic(1.0, 0.2),
        "Periodic(1, period=2)": k.Periodic(1.0, 2.0),
        "QuasiPeriodic(1, 2, decay=3)": k.QuasiPeriodic(1.0, 2.0, 3.0),
        "Cosine(2)": k.Cosine(2.0),
        "Brownian(1)": k.Brownian(1.0),
        "Constant(1) + Linear(1)": k.Constant(1.0) + k.Linear(1.0, 3.0),
        "Polynomial(3, 1, .2)": k.Warped(k.Polynomial(3, 1.0, 0.2), lambda row: row - 3.0),
        "ArcCosine(0, 20, 10)": k.Warped(k.ArcCosine(0, 20.0, 10.0), lambda row: row - 3.0),
        "ArcCosine(1, 20, 10)": k.Warped(k.ArcCosine(1, 20.0, 10.0), lambda row: row - 3.0),
    }
    figure, panels = plt.subplots(3, 4, figsize=(7.5, 4.4), layout="constrained")
    for panel, (title, covariance) in zip(panels.flat, shown.items(), strict=True):
        _draws(panel, covariance, title, x)
    return figure


def covariance_algebra() -> Any:
    """Show what sums and products of covariances are functions of."""
    x = np.linspace(0.0, 6.0, 300)[:, None]
    shown = {
        "RBF(2) + .1 Periodic(1, 1)": k.RBF(2.0) + 0.1 * k.Periodic(1.0, 1.0),
        "Linear(1) * Periodic(1, 1)": k.Linear(1.0) * k.Periodic(1.0, 1.0),
        "RBF(2) * Matern12(1)": k.RBF(2.0) * k.Matern12(1.0),
        "Changepoint, Matern12 to RBF": k.Changepoint(k.Matern12(0.5), k.RBF(1.0), at=3.0, steepness=8.0),
    }
    figure, panels = plt.subplots(1, 4, figsize=(7.5, 1.7), layout="constrained")
    for panel, (title, covariance) in zip(panels.flat, shown.items(), strict=True):
        _draws(panel, covariance, title, x)
    return figure


def _carbon_dioxide() -> Any:
    """Return years, monthly means in parts per million, and which of them are to be fitted."""
    import statsmodels.datasets.co2 as co2

    monthly = co2.load_pandas().data.co2.resample("MS").mean().dropna()
    years = np.asarray(monthly.index.year + (monthly.index.month - 0.5) / 12)
    return years, monthly.to_numpy(), (years >= 1970) & (years < 1990)


def _built() -> Any:
    trend = k.Scaled(None, k.RBF())
    season = k.Scaled(None, k.QuasiPeriodic(period=1.0))
    rest = k.Scaled(None, k.RationalQuadratic())
    return {
        "a trend": trend + k.White(),
        "and a season": trend + season + k.White(),
        "and what is between them": trend + season + rest + k.White(),
    }


def carbon_dioxide() -> Any:
    """Show forecasts of three covariances of carbon dioxide."""
    years, ppm, past = _carbon_dioxide()
    x = np.arange(1985.0, 2002.0, 1 / 24)[:, None]
    figure, panels = plt.subplots(1, 3, figsize=(7.5, 2.7), layout="constrained", sharey=True)
    for panel, (title, covariance) in zip(panels, _built().items(), strict=True):
        gp = mk.GaussianProcess(covariance).fit(years[past, None], ppm[past])
        mean, sd = gp.predict(x, return_std=True)
        panel.fill_between(x[:, 0], mean - 2 * sd, mean + 2 * sd, color=style.BAR, alpha=0.25, linewidth=0)
        panel.plot(x[:, 0], mean, color=style.BAR, linewidth=1.0)
        panel.plot(years[years > 1985], ppm[years > 1985], ".", color=style.INK, markersize=1.8)
        panel.axvline(1990, color=style.NODE_BORDER, linewidth=0.8, linestyle="--")
        panel.set_title(f"{title}\nlog evidence {gp.log_marginal_likelihood_value_:.0f}", fontsize=8)
        panel.set_xticks([1986, 1990, 1994, 1998])
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("CO2 in parts per million")
    panels[0].set_ylim(340, 382)
    return figure


def carbon_dioxide_parts() -> Any:
    """Show what each part of the covariance says."""
    years, ppm, past = _carbon_dioxide()
    X, y = years[past, None], ppm[past]
    gp = mk.GaussianProcess(_built()["and what is between them"]).fit(X, y)
    alpha = np.linalg.solve(gp.covariance_.value(X), y - gp.mean_)
    x = np.arange(1970.0, 1990.0, 1 / 24)[:, None]
    figure, panels = plt.subplots(1, 3, figsize=(7.5, 2.0), layout="constrained")
    names = ("trend, less the mean", "season", "what is between them")
    for panel, part, name in zip(panels, gp.covariance_.parts, names, strict=False):
        panel.plot(x[:, 0], part.value(x, X) @ alpha, color=style.BAR, linewidth=1.1)
        panel.set_title(name, fontsize=8)
        panel.set_xticks([1970, 1980, 1990])
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("parts per million")
    return figure


FIGURES = (covariance_draws, covariance_algebra, carbon_dioxide, carbon_dioxide_parts)
