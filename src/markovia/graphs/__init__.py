"""Graphs without probabilities: structure, separation, maps between graph families, chordality.

`DAG`, `UndirectedGraph`, `BipartiteGraph` (of factor graphs), `MixedGraph` and `ChainGraph` hold named nodes;
everything else is a function of a graph.

Names are imported on first use; they are listed in `__init__.pyi`.
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
