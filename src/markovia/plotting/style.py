"""The one look of all pictures: its colours on light and on dark paper, its letters, and `theme`, which chooses.

The colours are those of Okabe and Ito (2008), which colour-blind readers can tell apart, some lightened for dark paper. No
meaning hangs on colour alone: observed nodes also have a thick border and, where a state is known, its name.

A picture is drawn for the paper that it is drawn on: dark where matplotlib's `axes.facecolor` is dark, be it by
`theme("dark")` or by a style of the user's own. So `style.INK`, `style.BAR`, ... are looked up when something is drawn,
never before.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from markovia.runtime.checks import check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

FONT_SIZE: Final = 10.0
SMALL_FONT_SIZE: Final = 8.0


class Palette(NamedTuple):
    """What is drawn in which colour."""

    INK: str
    EDGE: str
    BACKGROUND: str
    FAINT: str
    NODE_FILL: str
    NODE_BORDER: str
    OBSERVED_FILL: str
    OBSERVED_BORDER: str
    SET_FILL: str
    SET_BORDER: str
    FACTOR_FILL: str
    FACTOR_INK: str
    SEPARATOR_FILL: str
    DECISION_FILL: str
    DECISION_BORDER: str
    UTILITY_FILL: str
    UTILITY_BORDER: str
    BAR: str
    BAR_OBSERVED: str
    BAR_TRACK: str
    RAMP: tuple[str, ...]
    SPREAD: tuple[str, ...]
    SERIES: tuple[str, ...]

    @property
    def HIGHLIGHTS(self) -> tuple[str, ...]:  # noqa: N802
        """Colours of what stands out, the loudest first."""
        return (*self.SERIES[1:5], self.SERIES[0])


LIGHT: Final = Palette(
    INK="#1A1A1A", EDGE="#4D4D4D", BACKGROUND="#FFFFFF", FAINT="#B8B8B8", NODE_FILL="#EAF3FA", NODE_BORDER="#0072B2",
    OBSERVED_FILL="#FBE3AE", OBSERVED_BORDER="#B26F00", SET_FILL="#F6DFEB", SET_BORDER="#A63D7A",
    FACTOR_FILL="#4D4D4D", FACTOR_INK="#FFFFFF",
    SEPARATOR_FILL="#F2F2F2", DECISION_FILL="#DDF3EA", DECISION_BORDER="#00785A",
    UTILITY_FILL="#ECE7F6", UTILITY_BORDER="#6A4FB3", BAR="#56B4E9", BAR_OBSERVED="#E69F00", BAR_TRACK="#FFFFFF",
    RAMP=("#FFFFFF", "#9CCBE8", "#0072B2", "#08306B"), SPREAD=("#0072B2", "#FFFFFF", "#D55E00"),
    SERIES=("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#6F6F6F"),
)  # fmt: skip
DARK: Final = Palette(
    INK="#F0F0F0", EDGE="#B4BAC2", BACKGROUND="#1B1E23", FAINT="#6C737C", NODE_FILL="#21384A", NODE_BORDER="#6FC1F0",
    OBSERVED_FILL="#573E0B", OBSERVED_BORDER="#F2B13B", SET_FILL="#4D2140", SET_BORDER="#E09BC3",
    FACTOR_FILL="#C9CED6", FACTOR_INK="#1A1A1A",
    SEPARATOR_FILL="#30353C", DECISION_FILL="#12453A", DECISION_BORDER="#2FBF95",
    UTILITY_FILL="#3A3057", UTILITY_BORDER="#B39DF0", BAR="#3F9BD1", BAR_OBSERVED="#E69F00", BAR_TRACK="#12151A",
    RAMP=("#1B1E23", "#1F5478", "#56B4E9", "#DDF1FC"), SPREAD=("#56B4E9", "#1B1E23", "#F08A4B"),
    SERIES=("#56B4E9", "#F0834A", "#2FBF95", "#E09BC3", "#F2B13B", "#8FA6FF", "#C8A66A", "#B5B5B5"),
)  # fmt: skip


class theme:  # noqa: N801
    """Draw on light or dark paper from now on, or, with `with`, inside a block.

    It sets matplotlib's own colours too (paper, axes, letters), so that figures made with `plt.subplots()` fit.

    Parameters
    ----------
    name
        "light" or "dark".

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> with mk.plotting.theme("dark"):
    ...     ax = mk.examples.sprinkler().plot()
    >>> matplotlib.colors.to_hex(ax.figure.get_facecolor())
    '#1b1e23'
    """

    def __init__(self, name: Literal["light", "dark"]) -> None:
        check_choice("name", name, ("light", "dark"))
        from cycler import cycler

        colours = DARK if name == "dark" else LIGHT
        settings: dict[str, Any] = {
            **dict.fromkeys(("figure.facecolor", "axes.facecolor"), colours.BACKGROUND),
            **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), colours.INK),
            **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color", "grid.color"), colours.EDGE),
            **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), colours.INK),
            "axes.prop_cycle": cycler(color=colours.SERIES),
            "savefig.facecolor": "auto",
        }
        parameters = _parameters()
        self._before = {key: parameters[key] for key in settings}
        parameters.update(settings)

    def __enter__(self) -> "theme":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _parameters().update(self._before)


def _parameters() -> Any:
    import matplotlib as mpl

    return mpl.rcParams


def palette() -> Palette:
    """Return the colours for the paper that matplotlib draws on now."""
    import matplotlib as mpl

    return DARK if lightness(mpl.rcParams["axes.facecolor"]) < 0.5 else LIGHT


def lightness(colour: Any) -> float:
    """Return how light a colour is, from 0 for black to 1 for white.

    Examples
    --------
    >>> round(lightness("#777777"), 3)
    0.467
    """
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def series(number: int) -> str:
    """Return the colour of one of several lines, groups or chains; after eight they come again."""
    colours = palette().SERIES
    return colours[number % len(colours)]


def ramp() -> "Colormap":
    """Return the colours of a heat map from nothing to much."""
    return _colour_map(palette().RAMP)


def spread() -> "Colormap":
    """Return the colours of a heat map around zero."""
    return _colour_map(palette().SPREAD)


def ink_on(colour: Any) -> str:
    """Return the letters' colour that can be read on a colour."""
    return LIGHT.INK if lightness(colour[:3]) > 0.5 else DARK.INK


def paper() -> dict[str, Any]:
    """Return the box behind a text that stands on lines."""
    return {"facecolor": palette().BACKGROUND, "edgecolor": "none", "pad": 0.4}


def bare(ax: "Axes") -> "Axes":
    """Take the lines at the top and at the right away."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def legend_beside(ax: "Axes") -> None:
    """Put the legend to the right of the axes, with names as they are."""
    legend = ax.legend(
        loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=SMALL_FONT_SIZE, borderaxespad=0.0
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)


def _colour_map(colours: tuple[str, ...]) -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("markovia", colours)


def __getattr__(name: str) -> Any:
    if name in Palette._fields or name == "HIGHLIGHTS":
        return getattr(palette(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
