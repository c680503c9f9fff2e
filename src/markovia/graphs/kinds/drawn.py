"""What every graph that can be drawn shares: `plot`, and its picture in a notebook."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from markovia.runtime import ports
from markovia.runtime.shown import html_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from markovia.graphs.kinds.plot_options import Highlight, Positions


class Drawn:
    """A graph with `plot`."""

    if TYPE_CHECKING:

        def __len__(self) -> int: ...

    def plot(
        self,
        *,
        ax: "Axes | None" = None,
        given: str | Iterable[str] | None = None,
        layout: "Positions" = "auto",
        highlight: "Highlight" = None,
        title: str = "",
        seed: int = 0,
        progress: bool | None = None,
    ) -> "Axes":
        """Draw the graph; returns the matplotlib axes. The options are those of `markovia.plotting.plot_graph`."""
        return ports.draw(
            "plot-graph",
            self,
            ax=ax,
            given=given,
            layout=layout,
            highlight=highlight,
            title=title,
            seed=seed,
            progress=progress,
        )

    def _repr_html_(self) -> str:
        return html_picture(self, len(self), repr(self) if len(self) > 12 else type(self).__name__)
