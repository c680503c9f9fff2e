"""Pictures of models, graphs and answers, drawn with matplotlib; Graphviz text for those who prefer that.

What has a picture has `plot`, which calls a function here; `theme("dark")` draws on dark paper.

>>> import markovia as mk
>>> from markovia.plotting import to_dot
>>> print(to_dot(mk.graphs.DAG([("rain", "wet")])))
digraph {
  node [shape=box, style="rounded,filled", fillcolor="#EAF3FA", color="#0072B2"];
  "rain";
  "wet";
  "rain" -> "wet";
}

Names are imported on first use; they are listed in `__init__.pyi`.
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
