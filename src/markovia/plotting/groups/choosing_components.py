"""What each number of components was worth, as a line with the best one marked."""

from typing import TYPE_CHECKING

from markovia.models.choosing_components import ComponentChoice
from markovia.plotting import style
from markovia.plotting.matplotlib_axes import plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {
    "bic": "BIC (smaller is better)",
    "aic": "AIC (smaller is better)",
    "icl": "ICL (smaller is better)",
    "held-out": "held-out log likelihood",
    "cross-validation": "cross-validated log likelihood",
    "dirichlet-process": "posterior probability",
}


def plot_component_choice(
    choice: ComponentChoice, *, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw the scores of what `choose_components` found; the best number has a ring."""
    from matplotlib.ticker import MaxNLocator

    ax = plain_axes(ax, 4.8, 3.4)
    order = sorted(range(len(choice.numbers)), key=lambda i: choice.numbers[i])
    numbers = [choice.numbers[i] for i in order]
    scores = [choice.scores[i] for i in order]
    ax.plot(numbers, scores, color=style.NODE_BORDER, marker="o", markersize=5, linewidth=1.6)
    best = numbers.index(choice.n_components)
    ax.plot(
        [numbers[best]], [scores[best]], marker="o", markersize=13, markerfacecolor="none", linestyle="",
        markeredgecolor=style.HIGHLIGHTS[0], markeredgewidth=2.0, label=f"best: {choice.n_components}",
    )  # fmt: skip
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    ax.margins(x=0.08, y=0.12)
    ax.set_xlabel("number of " + choice.parameter.removeprefix("n_"))
    ax.set_ylabel(LABELS[choice.criterion])
    ax.set_title(title or "", parse_math=False)
    ax.legend(frameon=False, fontsize=style.SMALL_FONT_SIZE)
    return ax
