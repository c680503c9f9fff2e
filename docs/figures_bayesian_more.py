"""The pictures of the pages on regression, choosing and diagnosing samplers, and big data."""

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import markovia as mk
import markovia.distributions as dist
from markovia.plotting import style

SIZES = [12, 2, 3, 6, 2, 4] * 4


def _fields() -> pd.DataFrame:
    """Return the harvests of the page on regression."""
    rng = np.random.default_rng(3)
    farm = np.repeat(np.arange(24), SIZES)
    level = rng.normal(3.0, 0.8, 24)
    x = rng.uniform(0, 10, len(farm))
    return pd.DataFrame({"farm": farm, "x": x, "y": level[farm] + 0.4 * x + rng.normal(0, 1.0, len(farm))})


def regression_band() -> Any:
    """Show a line in closed form, its band and that of new rows."""
    m = mk.BayesianNetwork()
    m.add("noise", dist.InverseGamma(2, 1))
    m.add("beta", lambda noise: dist.Normal(0, 10 * noise**0.5), plate={"coefficient": 2})
    m.add("line", lambda x, beta: beta[0] + beta[1] * x, plate="row")
    m.add("y", lambda line, noise: dist.Normal(line, noise**0.5), plate="row")
    fields = _fields()
    post = m.query(["beta", "noise"], given={"row": fields})
    grid = pd.DataFrame({"x": np.linspace(-0.5, 10.5, 45)})
    drawn: Any = m.sample(20_000, given=post, inputs={"row": grid}, seed=0)
    figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
    for name, shade, label in (("y", 0.25, "90% of new fields"), ("line", 0.7, "90% band of the line")):
        low, high = drawn[name].quantile([0.05, 0.95], dim="draw")
        ax.fill_between(grid["x"], low, high, color=style.BAR, alpha=shade, linewidth=0, label=label)
    ax.plot(grid["x"], drawn["line"].mean("draw"), color=style.INK, linewidth=1.2, label="posterior mean")
    ax.plot(fields["x"], fields["y"], "o", color=style.NODE_BORDER, markersize=3.5, label="fields")
    ax.set(xlabel="fertiliser x", ylabel="harvest y", xlim=(-0.5, 10.5))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper left", fontsize=8, frameon=False)
    return figure


def partial_pooling() -> Any:
    """Show group means estimated apart and by partial pooling, the smallest groups first."""
    apart = mk.BayesianNetwork()
    apart.add("noise", dist.InverseGamma(2, 1))
    apart.add("slope", lambda noise: dist.Normal(0, 10 * noise**0.5))
    apart.add("level", lambda noise: dist.Normal(0, 10 * noise**0.5), plate="farms")
    apart.add(
        "y",
        lambda level, farm, slope, x, noise: dist.Normal(level[farm] + slope * x, noise**0.5),
        plate="row",
    )
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("tau", dist.HalfNormal(2))
    m.add("level", lambda mu, tau: dist.Normal(mu, tau), plate="farms")
    m.add("slope", dist.Normal(0, 1))
    m.add("noise", dist.HalfNormal(2))
    m.add("y", lambda level, farm, slope, x, noise: dist.Normal(level[farm] + slope * x, noise), plate="row")
    given = {"row": _fields(), "farms": 24}
    alone, partial = apart.query("level", given=given), m.query(["level", "mu"], given=given)
    order = np.argsort(SIZES, kind="stable")
    place = np.arange(24)
    figure, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
    ax.axhline(partial.mean("mu"), color=style.INK, linewidth=0.8, linestyle="--", label="population mean")
    looks = (
        (alone, -0.12, "s", style.HIGHLIGHTS[0], "apart"),
        (partial, 0.12, "o", style.NODE_BORDER, "partial pooling"),
    )
    for post, shift, marker, colour, label in looks:
        low, high = post.interval("level", 0.9)
        ax.vlines(place + shift, low[order], high[order], color=colour, linewidth=1.0, alpha=0.5)
        ax.plot(place + shift, post.mean("level")[order], marker, color=colour, markersize=4.5, label=label)
    for size in sorted(set(SIZES)):
        at = place[np.array(SIZES)[order] == size]
        ax.text(
            at.mean(),
            -0.02,
            f"{size} fields",
            transform=ax.get_xaxis_transform(),
            ha="center",
            va="top",
            fontsize=8,
        )
        if at[0]:
            ax.axvline(at[0] - 0.5, color=style.INK, linewidth=0.4, alpha=0.4)
    ax.set(ylabel="level of a farm", xticks=[], xlim=(-0.6, 23.6))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower right", fontsize=8, frameon=False, ncols=3)
    return figure


def four_views_of_a_banana() -> Any:
    """Show an arch-shaped posterior as NUTS and three variational families see it."""
    m = mk.BayesianNetwork()
    m.add("a", dist.Normal(0, 1))
    m.add("b", dist.Normal(0, 1))
    m.add("y", lambda a, b: dist.Normal(a**2 + b, 0.3), plate="row")
    y = np.array([0.8, 1.1, 1.3])
    a, b = np.meshgrid(np.linspace(-2.4, 2.4, 200), np.linspace(-3.6, 2.2, 200))
    height = -0.5 * (a**2 + b**2) - sum((v - a**2 - b) ** 2 for v in y) / (2 * 0.3**2)
    engines = {
        "NUTS": mk.engines.NUTS(target_accept=0.95),
        "mean-field ADVI": mk.engines.ADVI(),
        "full-rank ADVI": mk.engines.ADVI(family="full-rank"),
        "flow-vi": mk.engines.FlowVI(),
    }
    figure, axes = plt.subplots(1, 4, figsize=(10, 2.9), sharex=True, sharey=True, layout="constrained")
    for ax, (title, engine) in zip(axes, engines.items(), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
            post: Any = m.query(["a", "b"], given={"y": y}, engine=engine)
        levels = height.max() + np.array([-4.0, -2.0, -0.7])
        ax.contour(a, b, height, levels=levels, colors=style.INK, linewidths=0.7, linestyles="solid")
        drawn = post.sample(700, seed=0)
        ax.plot(drawn["a"], drawn["b"], ".", color=style.NODE_BORDER, markersize=3, alpha=0.5)
        k = getattr(post.info.details, "pareto_k", None)
        ax.set_title(title if k is None else f"{title}, k-hat {k:.1f}", fontsize=10)
        ax.set(xlabel="a", xlim=(-2.4, 2.4), ylim=(-3.2, 2.2), xticks=[-2, 0, 2], yticks=[-2, 0, 2])
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("b")
    return figure


def _schools(engine: Any) -> Any:
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("tau", dist.HalfCauchy(5))
    m.add("theta", lambda mu, tau: dist.Normal(mu, tau), plate="school")
    m.add("y", lambda theta, sigma: dist.Normal(theta, sigma), plate="school")
    y, sigma = [28.0, 8, -3, 7, -1, 1, 18, 12], [15.0, 10, 16, 11, 9, 11, 10, 18]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        return m.query("mu", given={"y": y, "sigma": np.array(sigma)}, engine=engine)


def funnel() -> Any:
    """Show the funnel of a hierarchy, sampled centred and non-centred."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharex=True, sharey=True, layout="constrained")
    for ax, title, how in zip(axes, ("centred", "non-centred"), ("none", "all"), strict=True):
        post = _schools(mk.engines.NUTS(reparameterize=how))
        x, y = post.draws["theta"][..., 0].ravel(), np.log(post.draws["tau"]).ravel()
        astray = post.stats.diverging.ravel()
        ax.plot(x, y, ".", color=style.NODE_BORDER, markersize=2, alpha=0.35)
        ax.plot(x[astray], y[astray], "x", color=style.HIGHLIGHTS[0], markersize=5, label="divergent")
        ax.set_title(f"{title}: {astray.sum()} of {len(x):,} diverged", fontsize=10)
        ax.set(xlabel="effect of the first school", xlim=(-20, 40), ylim=(-5, 4))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("log tau")
    axes[0].legend(loc="lower right", fontsize=8, frameon=False)
    return figure


def traces_and_ranks() -> Any:
    """Show traces and ranks of chains that mix and of chains that do not."""
    engines = {
        "nuts": mk.engines.NUTS(),
        "metropolis": mk.engines.RandomWalkMetropolis(warmup=200, draws=1000, thin=1, reparameterize="none"),
    }
    figure, axes = plt.subplots(2, 2, figsize=(8.5, 4.2), width_ratios=[2, 1], layout="constrained")
    for (left, right), (name, engine) in zip(axes, engines.items(), strict=True):
        post = _schools(engine)
        for c, chain in enumerate(post.draws["mu"]):
            left.plot(chain, color=style.series(c), linewidth=0.6, alpha=0.85)
        post.plot(kind="rank", ax=right)
        right.set(title="", xlabel="", ylabel="draws", xticks=[])
        left.set_ylabel("mu")
        left.set_title(f"{name}: R-hat {post.summary()['r_hat'].iloc[0]:.2f}", fontsize=10)
        left.margins(x=0)
        for ax in (left, right):
            ax.spines[["top", "right"]].set_visible(False)
    axes[1, 0].set_xlabel("draw")
    axes[1, 1].set_xlabel("rank among all draws")
    return figure


def draws_and_seconds() -> Any:
    """Show what a GPU draws a second, and how long questions take once a sampler was compiled; as measured."""
    rates = {"16 processor cores": 37, "one H200": 2990}  # benchmarks/many_chains.py
    # first and later questions of the page's small model, on two cores
    waits = {"first question": 12.1, "the next process": 2.3, "the next question": 0.7}
    figure, axes = plt.subplots(1, 2, figsize=(8.5, 2.3), layout="constrained")
    titles = ("draws a second, 256 chains, 100,000 rows", "seconds for 4 x 1,000 draws, 30 rows")
    for ax, values, title in zip(axes, (rates, waits), titles, strict=True):
        bars = ax.barh(list(values), list(values.values()), color=style.BAR, height=0.6)
        ax.bar_label(bars, [f"{v:,g}" for v in values.values()], padding=3, fontsize=9)
        ax.set_title(title, fontsize=10)
        ax.set(xlim=(0, 1.15 * max(values.values())), xticks=[])
        ax.invert_yaxis()
        ax.tick_params(length=0)
        ax.spines[["top", "right", "bottom"]].set_visible(False)
    return figure


FIGURES = (
    regression_band,
    partial_pooling,
    four_views_of_a_banana,
    funnel,
    traces_and_ranks,
    draws_and_seconds,
)
