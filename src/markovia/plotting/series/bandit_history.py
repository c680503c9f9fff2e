"""A bandit's pulls: what they cost, and which arms they went to."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from markovia.errors import Unanswered
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import check_axes, plain_axes
from markovia.runtime.checks import check_choice
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from markovia.control.bandits import BanditHistory

MOST_ARMS = 8
"""Arms that have a line of their own: those that were pulled most often."""


@guided
def plot_bandit(
    history: "BanditHistory",
    kind: Literal["regret", "rewards", "arms"] | None = None,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw the pulls of a bandit.

    Parameters
    ----------
    history
        From `mk.control.Bandit(...).play(...)`.
    kind
        "regret": that of all pulls so far; "rewards": their mean; "arms": the share of the pulls that each arm had. By
        default the regret where true means are known, else rewards.
    ax
        Where to draw; a new figure by default.
    title
        Text above; the rule by default, "" for none.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> from markovia.control.bandits import Bandit
    >>> coins = [mk.exponential.Bernoulli(p) for p in (0.3, 0.6)]
    >>> history = Bandit(mk.exponential.Beta(1, 1), arms=2, seed=0).play(coins, 50, progress=False)
    >>> history.plot().get_ylabel(), plot_bandit(history, "arms").get_ylabel()
    ('regret', 'share of pulls')
    """
    check_axes(ax)
    check_choice("kind", kind, ("regret", "rewards", "arms"), none=True)
    n = len(history.arms)
    if not n:
        raise Unanswered("no arm was pulled; there is nothing to draw")
    kind = kind or ("rewards" if history.means is None else "regret")
    ax = plain_axes(ax, 5.6, 3.2)
    pulls = np.arange(1, n + 1)
    if kind == "regret":
        ax.plot(pulls, history.regret, color=style.NODE_BORDER, linewidth=1.6)
    elif kind == "rewards":
        ax.plot(pulls, np.cumsum(history.rewards) / pulls, color=style.NODE_BORDER, linewidth=1.6)
    else:
        for place, arm in enumerate(np.argsort(-history.counts, kind="stable")[:MOST_ARMS].tolist()):
            share = np.cumsum(history.arms == arm) / pulls
            ax.plot(
                pulls,
                share,
                color=style.series(place),
                linewidth=1.4,
                label=shorten(str(history.names[arm]), 18),
            )
        ax.legend(frameon=False, fontsize=style.SMALL_FONT_SIZE)
    words = {"regret": "regret", "rewards": "mean reward", "arms": "share of pulls"}
    ax.set(xlabel="pull", ylabel=words[kind])
    ax.set_title(history.rule if title is None else title, parse_math=False)
    return ax
