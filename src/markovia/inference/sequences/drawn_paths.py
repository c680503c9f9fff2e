"""What results over time share: the picture of a state's path."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markovia.runtime import ports
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DrawnPath(InNotebooks):
    """States over time, with `plot`."""

    def plot(
        self,
        parts: Sequence[int | str] | None = None,
        *,
        sequence: int = 0,
        level: float = 0.95,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> Any:
        """Draw the numbers of the state over time with their bands; see `markovia.plotting.plot_state_path`."""
        return ports.call("plot-state-path", self, parts, sequence=sequence, level=level, ax=ax, title=title)
