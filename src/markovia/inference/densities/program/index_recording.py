"""How a function indexes a parent on a foreign plate: found by calling it once with an array that takes notes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.inference.densities.program.layout import Site
from markovia.inference.densities.program.node_densities import Nodes


class _Noted(np.ndarray):
    """An array of positions that remembers what it was indexed by."""

    notes: list[Any]

    def __getitem__(self, index: Any) -> Any:
        notes = getattr(self, "notes", None)
        if notes is not None:
            notes.append(index)
        return np.asarray(self)[index]


def recorded_index(nodes: Nodes, site: Site, name: str, values: Mapping[str, Any]) -> Any:
    """Return the index array, of the shape of the child's plates, with which a node's function picks elements of another.

    It is called with `values` of all nodes, which every function can be called with (`probe_values`).

    Raises
    ------
    UnsupportedModel
        If it is not indexed exactly once, by given numbers along its only plate.
    """
    layout = nodes.layout
    other = layout.sites[name]
    if len(other.plates) != 1 or site.lags:
        raise UnsupportedModel(
            f"{site.name!r} uses {name!r}, which is discrete, not observed and on other plates; only one index along one "
            "plate can be summed out"
        )
    noted = np.asarray(values[name]).view(_Noted)
    noted.notes = []
    nodes.call(site, {**values, name: noted})
    if len(noted.notes) != 1 or isinstance(noted.notes[0], tuple):
        raise UnsupportedModel(
            f"the function of {site.name!r} has to index {name!r} exactly once, as in {name}[group], for its states to be "
            f"summed out; it does so {len(noted.notes)} times"
        )
    index = np.asarray(noted.notes[0])
    wanted = layout.shape_of(site.plates)
    return np.broadcast_to(index, wanted)
