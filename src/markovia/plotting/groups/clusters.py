"""Clusters with their uncertainty: rows coloured by component, paler where it is less sure, and ellipses of Gaussians."""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.models.classifiers.feature_rows import feature_names
from markovia.plotting import style
from markovia.plotting.matplotlib_axes import check_axes, plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 5_000
"""Rows that are drawn."""


def plot_clusters(
    mixture: Any,
    X: Any,  # noqa: N803
    *,
    columns: tuple[Any, Any] | None = None,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw rows in two columns, each in the colour of its component, and the components' ellipses.

    Parameters
    ----------
    mixture
        A learned mixture.
    X
        Rows of numbers.
    columns
        The two columns, by place or name; the first two by default.
    ax, title
        Where to draw, and what to write above.
    """
    check_axes(ax)
    values = np.asarray(X, dtype=np.float64)
    names = feature_names(mixture)
    if values.ndim != 2 or values.shape[1] < 2:
        raise InvalidArgument("clusters are drawn in two columns; X has fewer")
    i, j = (names.index(c) if c in names else c for c in columns or (0, 1))
    if any(not isinstance(c, int) or not 0 <= c < len(names) for c in (i, j)):
        raise InvalidArgument(
            f"columns= are two of {', '.join(names)}, or their places from 0, not {columns!r}"
        )
    ax = plain_axes(ax, 5.2, 4.2)
    sure = mixture.predict_proba(X)
    if len(values) > MOST:
        few = np.random.default_rng(0).choice(len(values), MOST, replace=False)
        values, sure = values[few], sure[few]
    best = sure.argmax(axis=1)
    paler = (sure.max(axis=1) - 1.0 / sure.shape[1]) / max(1.0 - 1.0 / sure.shape[1], 1e-9)
    for k in range(sure.shape[1]):
        here = best == k
        colour = style.series(k)
        ax.scatter(
            values[here, i], values[here, j], s=12, color=colour, alpha=0.15 + 0.75 * paler[here], linewidths=0,
            label=f"{k} ({mixture.weights_[k]:.0%})",
        )  # fmt: skip
    params = getattr(mixture, "component_params_", {})
    spread = params.get("covariances", params.get("scales"))
    if spread is not None:
        for k, (mean, covariance) in enumerate(zip(params["means"], spread, strict=True)):
            _add_ellipses(ax, mean[[i, j]], covariance[np.ix_([i, j], [i, j])], style.series(k))
    ax.set_xlabel(names[i])
    ax.set_ylabel(names[j])
    ax.set_title(title or "", parse_math=False)
    ax.legend(
        title="component",
        frameon=False,
        fontsize=style.SMALL_FONT_SIZE,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )
    return ax


def _add_ellipses(ax: "Axes", mean: Any, covariance: Any, colour: str) -> None:
    """Add the ellipses that hold 50% and 95% of a Gaussian."""
    from matplotlib.patches import Ellipse

    values, vectors = np.linalg.eigh(covariance)
    angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
    for inside in (0.5, 0.95):
        wide, high = 2.0 * np.sqrt(-2.0 * np.log1p(-inside) * values[::-1])
        ax.add_patch(
            Ellipse(tuple(mean), wide, high, angle=angle, fill=False, edgecolor=colour, linewidth=1.4)
        )
