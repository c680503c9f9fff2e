"""Pictures of posteriors of numbers: one curve a number."""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import check_axes, plain_axes
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CURVES = 8
POINTS = 400


@guided
def plot_density(
    posterior: GaussianPosterior, *, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw the density of each number of a posterior; components of a mixture are dashed below it.

    Parameters
    ----------
    posterior
        The answer of `query` about numbers, at most eight of them; states are left out.
    ax
        Where to draw; a new figure by default.
    title
        Text above; "p(names | evidence)" by default, "" for none.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> m = mk.BayesianNetwork()
    >>> m.add("x", mk.LinearGaussian(1, {}, 4))
    >>> m.query("x").plot().get_title()
    'p(x)'
    """
    check_axes(ax)
    numbers = posterior.mixture.numbers
    if len(numbers) > MOST_CURVES:
        raise InvalidArgument(
            f"a posterior of {len(numbers)} numbers has too many curves; choose some: posterior.marginal([...]).plot()"
        )
    ax = plain_axes(ax, 6.0, 3.2)
    for k, name in enumerate(numbers):
        _curve(ax, posterior.marginal(name), shorten(name, 24), style.series(k))
    if len(numbers) > 1:
        ax.legend(frameon=False)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("density")
    ax.set_xlabel(numbers[0] if len(numbers) == 1 else "value", parse_math=False)
    given = f" | {posterior.info.evidence(40)}" if posterior.info.given else ""
    ax.set_title(
        f"p({', '.join(posterior.names)}{given})" if title is None else title, parse_math=False, wrap=True
    )
    return ax


def _curve(ax: "Axes", part: Any, label: str, colour: str) -> None:
    weights, means = part.weights, part.means[:, 0]
    spread = np.sqrt(part.covariances[:, 0, 0])
    sure = (
        spread == 0.0
    )  # components that are one value have no density: a line at each, the paler the less probable
    for weight, mean in zip(weights[sure], means[sure], strict=True):
        ax.axvline(float(mean), color=colour, alpha=max(float(weight), 0.15), label=label)
        label = "_"
    if sure.all():
        return
    low, high = part.interval(0.998)
    weights, means, spread = weights[~sure], means[~sure], spread[~sure]
    x = np.linspace(low, high, POINTS)
    each = weights * np.exp(-0.5 * ((x[:, None] - means) / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
    if 1 < len(weights) <= 12:
        ax.plot(x, each, color=colour, linestyle="--", linewidth=0.8, alpha=0.7)
    ax.plot(x, each.sum(axis=1), color=colour, linewidth=2.0, label=label)
    ax.fill_between(x, each.sum(axis=1), color=colour, alpha=0.12)
