"""What each number of hidden states was worth, as a line with the best one marked."""

from typing import TYPE_CHECKING

from markovia.models.choosing_states import StateChoice
from markovia.plotting import style
from markovia.plotting.matplotlib_axes import check_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {
    "bic": "BIC (smaller is better)",
    "aic": "AIC (smaller is better)",
    "held-out": "held-out log likelihood a step",
    "cross-validation": "cross-validated log likelihood a step",
}


def plot_state_choice(choice: StateChoice, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw the scores of a `StateChoice`; the best number of states has a ring."""
    check_axes(ax)
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
    order = sorted(range(len(choice.numbers)), key=lambda i: choice.numbers[i])
    numbers = [choice.numbers[i] for i in order]
    scores = [choice.scores[i] for i in order]
    ax.plot(numbers, scores, color="#0072B2", marker="o", markersize=5, linewidth=1.6)
    best = numbers.index(choice.n_states)
    ax.plot([numbers[best]], [scores[best]], marker="o", markersize=13, markerfacecolor="none",
            markeredgecolor="#D55E00", markeredgewidth=2.0, linestyle="", label=f"best: {choice.n_states}")  # fmt: skip
    ax.set_xticks(numbers)
    ax.margins(x=0.08, y=0.12)
    ax.set_xlabel("number of states")
    ax.set_ylabel(LABELS[choice.criterion])
    ax.set_title(title or "", parse_math=False)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=style.SMALL_FONT_SIZE)
    return ax
