"""What plots of graphs take: where nodes lie, and what stands out."""

from collections.abc import Mapping, Sequence

from markovia.graphs.kinds.trails import Trail

Positions = str | Mapping[str, Sequence[float]]
"""A layout by name, or a position (x, y) for every node."""
Highlight = Trail | Sequence[str] | Sequence[Trail | Sequence[str]] | None
"""A trail or a list of nodes to draw in colour, or several."""
