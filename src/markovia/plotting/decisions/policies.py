"""Pictures of decisions: the rule of a policy as a table of coloured choices, and the distribution of a total utility."""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, TooLarge
from markovia.inference.decisions.diagrams.policy import Policy
from markovia.inference.decisions.diagrams.utility_distribution import TotalUtility
from markovia.plotting import style
from markovia.plotting.heat_map import LINE, TITLE_SIZE, every, inches, sized_axes
from markovia.plotting.labels import shorten, text_width
from markovia.plotting.matplotlib_axes import check_axes, plain_axes
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_LABEL = 40
MOST_CELLS = 4_000
MANY_ROWS = 24
MOST_WRITTEN_CELLS = 400
MOST_BARS = 40
"""Amounts up to which each is a bar; more are a histogram."""
PALE = 0.25
TAIL = 0.1
"""The share of the worst outcomes whose mean is marked."""


@guided
def plot_policy(
    policy: Policy, name: str | None = None, *, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw the rule of a decision: what is chosen, by what is seen; the last thing seen runs across, all others down.

    Each choice has a colour and is written. Pale: what is seen there does not occur under the policy; of many rows,
    those in which nothing occurs are left out. Letters in italics with a sign of equality: another choice is worth as much.

    Parameters
    ----------
    policy
        From `decide`.
    name
        The decision; may be left out where there is one.
    ax
        Where to draw; a new figure of a fitting size by default.
    title
        Text above; the decision and what it sees by default, "" for none.

    Raises
    ------
    InvalidArgument
        If there are several decisions and none is named.
    TooLarge
        If there are too many rows to see anything.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("rain", [0.7, 0.3], states=["no", "yes"])
    >>> bn.add("forecast", [[0.9, 0.1], [0.2, 0.8]], states=["dry", "wet"], parents=["rain"])
    >>> bn.add("umbrella", mk.Decision(["take", "leave"]), parents=["forecast"])
    >>> bn.add("joy", mk.Utility([[20, 100], [70, 0]]), parents=["rain", "umbrella"])
    >>> [t.get_text() for t in bn.decide().plot().texts]
    ['leave', 'take']
    """
    check_axes(ax)
    if name is None and len(policy) != 1:
        raise InvalidArgument(f"which decision is to be drawn? there are {', '.join(map(repr, policy))}")
    name = next(iter(policy)) if name is None else name
    rule = policy[name]
    *down, across = rule.parents or (None,)
    shape = (int(np.prod([len(v) for v in down], dtype=np.int64)), 1 if across is None else len(across))
    if shape[0] * shape[1] > MOST_CELLS:
        raise TooLarge(
            f"the rule of {name!r} has {shape[0] * shape[1]:,} rows, too many to see; policy.to_pandas() lists them"
        )
    rows = [
        ", ".join(str(v.states[i]) for v, i in zip(down, at, strict=True))
        for at in np.ndindex(*map(len, down))
    ]
    columns = [str(s) for s in across.states] if across is not None else [""]
    occurs = np.asarray(policy.reached[name]).reshape(shape) > 0
    kept = np.flatnonzero(occurs.any(axis=1)) if len(rows) > MANY_ROWS else np.arange(len(rows))
    rows = [rows[k] for k in kept]
    table = _Cells(
        rule.values.argmax(axis=-1).reshape(shape)[kept],
        occurs[kept],
        _tied(policy, name).reshape(shape)[kept],
        [str(s) for s in rule.variable.states],
    )
    seen = ", ".join(rule.parent_names) or "nothing"
    title = shorten(f"{name}, seeing {seen}", 60) if title is None else title
    return table.draw(
        rows, columns, (", ".join(v.name for v in down), across.name if across else ""), ax, title
    )


def _tied(policy: Policy, name: str) -> Any:
    """Return whether another choice is as good, axes as the rule's parents."""
    parents = policy[name].parents
    tied = np.zeros([len(p) for p in parents], dtype=bool)
    for row in policy.ties[name]:
        tied[tuple(p.index(row[p.name]) for p in parents)] = True
    return tied


class _Cells:
    """The choices of a rule by row and column, whether they occur, and whether others are as good."""

    def __init__(self, choices: Any, occurs: Any, tied: Any, states: list[str]) -> None:
        self.choices, self.occurs, self.tied = choices, occurs, tied
        self.states = [shorten(s, LONGEST_LABEL) for s in states]

    def draw(
        self, rows: list[str], columns: list[str], names: tuple[str, str], ax: "Axes | None", title: str
    ) -> "Axes":
        from matplotlib.colors import to_rgba

        rows = [shorten(r, LONGEST_LABEL) for r in rows]
        columns = [shorten(c, LONGEST_LABEL) for c in columns]
        down, across = (shorten(n, LONGEST_LABEL + 16) for n in names)
        word = max(text_width("= " + s, 9.0) for s in self.states) + 0.14
        widest = max(text_width(c, style.FONT_SIZE) for c in columns) + 0.12
        if ax is None:
            left = 0.7 + max(text_width(r, style.FONT_SIZE) for r in rows)
            across_each, down_each = max(word, widest, 0.75), 0.42
            if len(rows) * len(columns) > MOST_WRITTEN_CELLS:
                across_each = down_each = 0.12
            wide = max(across_each * len(columns), text_width(title, TITLE_SIZE), 2.2)
            high = max(down_each * len(rows), text_width(down, style.FONT_SIZE), 0.8)
            ax, (width, height) = sized_axes(wide, high, left, 1.2)
        else:
            width, height = inches(ax)
        cell = width / len(columns), height / len(rows)
        paper = np.array(to_rgba(style.BACKGROUND))
        colours = np.array([to_rgba(style.series(k)) for k in range(len(self.states))])[self.choices]
        colours = np.where(self.occurs[..., None], colours, PALE * colours + (1 - PALE) * paper)
        ax.imshow(colours, aspect="auto")
        slanted = widest > cell[0]
        step = every(cell[0], 0.28) if slanted else 1
        ax.set_xticks(range(0, len(columns), step), columns[::step], parse_math=False)
        if slanted:
            ax.tick_params(axis="x", labelrotation=40)
            for label in ax.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
        step = every(cell[1], LINE)
        ax.set_yticks(range(0, len(rows), step), rows[::step], parse_math=False)
        ax.set_xlabel(across, parse_math=False)
        ax.set_ylabel(down, parse_math=False)
        ax.tick_params(length=0)
        for k in range(1, len(columns)):
            ax.axvline(k - 0.5, color=style.BACKGROUND, linewidth=1.0)
        for k in range(1, len(rows)):
            ax.axhline(k - 0.5, color=style.BACKGROUND, linewidth=1.0)
        ax.set_title(title, parse_math=False, wrap=True)
        if cell[0] >= word and cell[1] >= LINE:
            for (i, j), choice in np.ndenumerate(self.choices):
                tie = bool(self.tied[i, j] and self.occurs[i, j])
                ax.text(
                    j, i, "= " * tie + self.states[choice], ha="center", va="center", fontsize=9, parse_math=False,
                    color=style.ink_on(colours[i, j]), style="italic" if tie else "normal",
                )  # fmt: skip
        else:
            self._legend(ax)
        return ax

    def _legend(self, ax: "Axes") -> None:
        """Say which colour is which choice, where the cells have no room for words."""
        from matplotlib.patches import Patch

        used = np.unique(self.choices)
        handles = [Patch(facecolor=style.series(int(k)), label=self.states[int(k)]) for k in used]
        legend = ax.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False,
            fontsize=style.SMALL_FONT_SIZE, borderaxespad=0.0,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)


@guided
def plot_total_utility(total: TotalUtility, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw how probable the amounts of a total utility are, with its mean and the mean of the worst tenth.

    Few amounts are a bar each, many a histogram.

    Parameters
    ----------
    total
        From `utility` of a network without open decisions.
    ax
        Where to draw; a new figure by default.
    title
        Text above; none by default.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("coin", [0.5, 0.5])
    >>> bn.add("pay", mk.Utility([0, 10]), parents=["coin"])
    >>> ax = bn.utility().plot()
    >>> [t.get_text() for t in ax.get_legend().get_texts()]
    ['mean 5', 'worst 10% on average 0']
    """
    axes = plain_axes(ax, 5.4, 3.2)
    values, p = total.values, total.probabilities
    spread = float(values[-1] - values[0])
    if len(values) <= MOST_BARS:
        gaps = np.diff(values)
        width = (
            min(0.06 * spread, 0.8 * float(gaps.min()))
            if len(gaps)
            else max(0.02 * abs(float(values[0])), 1e-9)
        )
        axes.bar(values, p, max(width, 0.006 * spread), color=style.BAR, zorder=2)
    else:
        heights, edges = np.histogram(values, bins=MOST_BARS, weights=p)
        axes.bar(
            edges[:-1],
            heights,
            np.diff(edges),
            align="edge",
            color=style.BAR,
            edgecolor=style.BACKGROUND,
            zorder=2,
        )
    mean, tail = total.mean(), total.cvar(TAIL)
    axes.axvline(mean, color=style.SERIES[1], linewidth=1.6, zorder=3, label=f"mean {mean:.6g}")
    axes.axvline(
        tail, color=style.SERIES[3], linewidth=1.6, linestyle=(0, (4, 2.5)), zorder=3,
        label=f"worst {100 * TAIL:.0f}% on average {tail:.6g}",
    )  # fmt: skip
    axes.set_xlabel("total utility")
    axes.set_ylabel("probability")
    axes.set_ylim(0.0, None)
    if title:
        axes.set_title(title, parse_math=False)
    style.legend_beside(axes)
    return axes
