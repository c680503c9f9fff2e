"""Pictures of causal effects: the forest, the love plot of balance, the contour of hidden confounding, and all in one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.plotting import style
from markovia.plotting.heat_map import inches
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import panels, plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 30
"""Covariates that are drawn: those that differ most."""


def plot_effects(effects: Sequence[Any], *, ax: "Axes | None" = None) -> "Axes":
    """Draw a forest: one line an effect with its interval, and a line where there is none."""
    ax = plain_axes(ax, 6.0, 0.9 + 0.4 * len(effects))
    for k, effect in enumerate(reversed(effects)):
        low, high = effect.interval
        ax.plot([low, high], [k, k], color=style.NODE_BORDER, linewidth=2, solid_capstyle="round")
        ax.plot([effect.value], [k], "s", color=style.NODE_BORDER, markersize=6)
        ax.annotate(
            f"{effect.value:.3g} ({low:.3g} to {high:.3g})", (1.02, k), xycoords=("axes fraction", "data"), va="center",
            fontsize=style.SMALL_FONT_SIZE,
        )  # fmt: skip
    first = effects[0]
    ax.axvline(first.estimate.null, color=style.EDGE, linewidth=0.8, linestyle="--", zorder=0)
    if first.estimate.on_log_scale:
        ax.set_xscale("log")
    ax.set_yticks(range(len(effects)), [e.method for e in reversed(effects)])
    ax.set_ylim(-0.6, len(effects) - 0.4)
    ax.set_xlabel(f"{first.measure} in {first.outcome} by {first.treatment}")
    return ax


def plot_balance(balance: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw a love plot: standardised differences of the covariates before and after, the worst on top."""
    order = np.argsort(np.abs(balance.before))[-MOST:]
    ax = plain_axes(ax, 5.5, 1.0 + 0.25 * len(order))
    names = [balance.columns[k] for k in order]
    ax.plot(
        np.abs(balance.before[order]), names, "o", color=style.BAR_OBSERVED, label="before", fillstyle="none"
    )
    if balance.after is not None:
        ax.plot(np.abs(balance.after[order]), names, "o", color=style.NODE_BORDER, label="after")
    ax.axvline(0.1, color=style.EDGE, linewidth=0.8, linestyle="--")
    ax.set_xlim(left=-0.01)
    ax.set_xlabel("standardised difference of means")
    ax.legend(frameon=False, fontsize=style.SMALL_FONT_SIZE, loc="lower right")
    return ax


def plot_propensity(score: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the propensity scores of two arms: the share of rows at each score, the treated above, the others below."""
    ax = plain_axes(ax, 5.5, 3.0)
    edges = np.linspace(0.0, 1.0, 31)
    arms = ((score.treated, 1, style.NODE_BORDER), (score.control, -1, style.BAR_OBSERVED))
    for level, side, colour in arms:
        rows = score.study.codes == score.levels.index(level)
        shares = side * np.histogram(score.scores[rows], edges)[0] / max(int(rows.sum()), 1)
        ax.bar(edges[:-1], shares, np.diff(edges), align="edge", color=colour, label=str(level))
    ax.axhline(0.0, color=style.EDGE, linewidth=0.8)
    ax.set_xlim(0.0, 1.0)
    ax.yaxis.set_major_formatter(lambda share, _: f"{abs(share):.2g}")
    ax.set_xlabel(f"probability of {score.treatment} = {score.treated}")
    ax.set_ylabel("share of the arm")
    ax.legend(frameon=False, fontsize=style.SMALL_FONT_SIZE)
    return ax


def plot_sensitivity(found: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the estimate that a confounder would leave, over its partial R squared with treatment and outcome."""
    ax = plain_axes(ax, 5.0, 4.0)
    shares = found.benchmarks[["treatment", "outcome"]].to_numpy(dtype=float)
    strongest = shares.max(initial=0.0)
    top = float(min(max(1.5 * found.robustness, 1.3 * strongest, 0.05), 0.95))
    grid = np.linspace(0, top, 60)
    across, up = np.meshgrid(grid, grid)
    height = found.adjusted(across, up)
    lines = ax.contour(across, up, height, 8, colors=style.EDGE, linewidths=0.7)
    ax.clabel(lines, fontsize=style.SMALL_FONT_SIZE, fmt="%.2g")
    ax.contour(across, up, height, [0.0], colors=style.HIGHLIGHTS[0], linewidths=2)
    ax.set(xlim=(-0.02 * top, top), ylim=(-0.02 * top, top))
    _name_points(ax, [str(name) for name in found.benchmarks.index], shares)
    ax.set_xlabel("partial R² of the confounder with the treatment")
    ax.set_ylabel("with the outcome")
    ax.set_title("estimate left (thick: none)", fontsize=style.FONT_SIZE)
    return ax


def _name_points(ax: "Axes", names: Sequence[str], points: Any) -> None:
    """Mark points, each with its name at its right, as low as it goes without touching a name below."""
    points = np.asarray(points, dtype=np.float64)
    _, height = inches(ax)
    low, high = ax.get_ylim()
    line = 1.45 * style.SMALL_FONT_SIZE / 72.0 * (high - low) / height
    taken = -np.inf
    for k in np.argsort(points[:, 1], kind="stable"):
        x, y = (float(v) for v in points[k])
        taken = max(y + 0.4 * line, taken + line)
        ax.plot([x], [y], "D", color=style.NODE_BORDER, markersize=4)
        ax.annotate(
            shorten(names[k], 24), (x, taken), xytext=(6, 0), textcoords="offset points", va="center",
            fontsize=style.SMALL_FONT_SIZE, parse_math=False, bbox=style.paper(),
        )  # fmt: skip


def plot_synthetic_control(found: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the gap between a treated unit and its synthetic control over time, with those of the placebos."""
    ax = plain_axes(ax, 6.0, 3.5)
    times = list(found.times)
    for gaps in found.synthesis.placebo_gaps:
        ax.plot(times, gaps, color=style.FAINT, linewidth=1)
    ax.plot(times, found.synthesis.gaps, color=style.NODE_BORDER, linewidth=2, label=str(found.unit))
    ax.axvline(times[found.synthesis.start], color=style.EDGE, linestyle="--", linewidth=0.8)
    ax.axhline(0, color=style.EDGE, linewidth=0.8)
    ax.set_ylabel(f"gap in {found.outcome}")
    ax.legend(frameon=False)
    return ax


def plot_event_study(found: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw effects by the time from the start of a treatment, with their intervals; before it there should be none."""
    ax = plain_axes(ax, 6.0, 3.5)
    study = found.event_study()
    reach = [study["value"] - study["low"], study["high"] - study["value"]]
    ax.errorbar(study.index, study["value"], yerr=reach, fmt="o", color=style.NODE_BORDER, capsize=3)
    ax.axvline(-0.5, color=style.EDGE, linestyle="--", linewidth=0.8)
    ax.axhline(0, color=style.EDGE, linewidth=0.8)
    ax.set_xlabel("periods from the start")
    ax.set_ylabel(f"effect on {found.average.outcome}", parse_math=False)
    return ax


def plot_dose_response(found: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the mean outcome at each dose of a treatment, with its intervals."""
    ax = plain_axes(ax, 6.0, 3.5)
    curve = found.to_pandas()
    ax.fill_between(curve.index, curve["low"], curve["high"], color=style.FAINT)
    ax.plot(curve.index, curve["value"], color=style.NODE_BORDER, linewidth=2)
    ax.set_xlabel(found.treatment, parse_math=False)
    ax.set_ylabel(f"mean {found.outcome}", parse_math=False)
    return ax


def plot_effect_report(report: Any) -> "np.ndarray[Any, Any]":
    """Draw the forest, the balance, the refutations and the contour of a report, those that it has; return the axes."""
    parts: list[Any] = [lambda ax: plot_effects([report.effect], ax=ax)]
    if report.effect.balanced is not None:
        parts.append(lambda ax: plot_balance(report.effect.balanced, ax=ax))
    if report.refutations:
        parts.append(lambda ax: _refutations(report, ax))
    if report.sensitivity is not None:
        parts.append(lambda ax: plot_sensitivity(report.sensitivity, ax=ax))
    rows = -(-len(parts) // 2)
    axes = panels(rows, 2, 11.0, 3.4 * rows, used=len(parts))
    for ax, part in zip(axes.flat, parts, strict=False):
        part(ax)
    axes[0, 0].figure.suptitle(report.verdict, fontsize=style.FONT_SIZE, parse_math=False)
    return axes


def _refutations(report: Any, ax: "Axes") -> None:
    """Draw the estimates of each refutation beside what they should be."""
    found = list(reversed(report.refutations))
    for k, one in enumerate(found):
        colour = style.NODE_BORDER if one.passed else style.HIGHLIGHTS[0]
        ax.plot(one.values, np.full(len(one.values), k), ".", color=colour, alpha=0.5)
        ax.plot([one.expected], [k], "|", color=style.INK, markersize=14)
    ax.set_yticks(range(len(found)), [f"{r.kind}{'' if r.passed else ' (failed)'}" for r in found])
    ax.set_xlabel("estimates; the bar is what is expected")
