"""The structure-learning methods by name: where each one is, and what it takes.

A new method is a new file and one line here. A method is a function `run(task, *, options...)` that returns a `Found`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from markovia.errors import InvalidArgument
from markovia.runtime.registry import resolve


@dataclass(frozen=True)
class StructureMethod:
    """Where a method is and what it takes.

    Attributes
    ----------
    name
        Its public name.
    home
        `module:function` under `markovia.structure`.
    takes
        "score", "test", "both" or "neither".
    numbers
        Whether all columns are read as numbers.
    gaps
        Whether it takes rows with missing cells.
    """

    name: str
    home: str
    takes: str
    numbers: bool = False
    gaps: bool = False

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself, imported on first use."""
        found: Callable[..., Any] = resolve(self.home)
        return found


_METHODS = [
    # trees
    StructureMethod("chow-liu", "markovia.structure.trees.chow_liu:chow_liu", "neither"),
    StructureMethod("tan", "markovia.structure.trees.tree_augmented_search:tree_augmented", "neither"),
    # scores over directed graphs
    StructureMethod("hill-climb", "markovia.structure.dag_search.hill_climbing:hill_climb", "score"),
    StructureMethod("tabu", "markovia.structure.dag_search.tabu_search:tabu", "score"),
    StructureMethod("k2", "markovia.structure.dag_search.k2:k2", "score"),
    StructureMethod("exact", "markovia.structure.exact.exact_search:exact", "score"),
    # scores over classes and orders
    StructureMethod("ges", "markovia.structure.classes_and_orders.ges:ges", "score"),
    StructureMethod("boss", "markovia.structure.classes_and_orders.boss:boss", "score"),
    StructureMethod("grasp", "markovia.structure.classes_and_orders.grasp:grasp", "score"),
    StructureMethod(
        "order-search", "markovia.structure.classes_and_orders.order_search:order_search", "score"
    ),
    # tests
    StructureMethod("pc", "markovia.structure.constraint.pc:pc", "test"),
    StructureMethod("fci", "markovia.structure.constraint.fci:fci", "test"),
    StructureMethod("rfci", "markovia.structure.constraint.rfci:rfci", "test"),
    StructureMethod("mmhc", "markovia.structure.dag_search.mmhc:mmhc", "both"),
    # functional models
    StructureMethod(
        "direct-lingam", "markovia.structure.functional.direct_lingam:direct_lingam", "neither", numbers=True
    ),
    StructureMethod(
        "ica-lingam", "markovia.structure.functional.ica_lingam:ica_lingam", "neither", numbers=True
    ),
    StructureMethod("anm", "markovia.structure.functional.anm:anm", "neither", numbers=True),
    StructureMethod("pnl", "markovia.structure.functional.pairwise_direction:pnl", "neither", numbers=True),
    StructureMethod("notears", "markovia.structure.functional.notears:notears", "neither", numbers=True),
    StructureMethod(
        "notears-mlp", "markovia.structure.functional.notears_mlp:notears_mlp", "neither", numbers=True
    ),
    # undirected graphs
    StructureMethod(
        "partial-correlation",
        "markovia.structure.undirected.partial_correlation_search:partial_correlations",
        "neither",
        numbers=True,
    ),
    StructureMethod(
        "neighbourhood",
        "markovia.structure.undirected.neighbourhood_selection:neighbourhood",
        "neither",
        numbers=True,
    ),
    StructureMethod(
        "graphical-lasso",
        "markovia.structure.undirected.graphical_lasso:graphical_lasso",
        "neither",
        numbers=True,
    ),
    StructureMethod("ising", "markovia.structure.undirected.ising_neighbourhood:ising", "neither"),
    StructureMethod(
        "l1-pseudo-likelihood",
        "markovia.structure.undirected.sparse_pseudo_likelihood:l1_pseudo_likelihood",
        "neither",
    ),
    StructureMethod(
        "mixed-pseudo-likelihood",
        "markovia.structure.undirected.mixed_pseudo_likelihood:mixed_pseudo_likelihood",
        "neither",
    ),
    # networks that change
    StructureMethod(
        "kernel-weighted", "markovia.structure.changing.time_varying_ising:kernel_weighted", "neither"
    ),
    StructureMethod("tesla", "markovia.structure.changing.tesla:tesla", "neither"),
    # incomplete data
    StructureMethod(
        "structural-em", "markovia.structure.incomplete.structural_em:structural_em", "score", gaps=True
    ),
]
METHODS = {m.name: m for m in _METHODS}
ALIASES = {
    "hc": "hill-climb",
    "hill-climbing": "hill-climb",
    "hillclimb": "hill-climb",
    "tabu-search": "tabu",
    "chow-liu-tree": "chow-liu",
    "chowliu": "chow-liu",
    "mst": "chow-liu",
    "tree-augmented": "tan",
    "fges": "ges",
    "greedy-equivalence-search": "ges",
    "pc-stable": "pc",
    "lingam": "direct-lingam",
    "directlingam": "direct-lingam",
    "icalingam": "ica-lingam",
    "additive-noise": "anm",
    "post-nonlinear": "pnl",
    "neighborhood": "neighbourhood",
    "neighbourhood-selection": "neighbourhood",
    "neighborhood-selection": "neighbourhood",
    "meinshausen-buhlmann": "neighbourhood",
    "glasso": "graphical-lasso",
    "pseudo-likelihood": "l1-pseudo-likelihood",
    "mixed-graphical-model": "mixed-pseudo-likelihood",
    "mgm": "mixed-pseudo-likelihood",
    "keller": "kernel-weighted",
    "sem": "structural-em",
    "dynamic-programming": "exact",
    "astar": "exact",
}


def structure_methods() -> list[str]:
    """Return the names of all structure-learning methods.

    Examples
    --------
    >>> "ges" in structure_methods()
    True
    """
    return list(METHODS)


def method_named(name: object) -> StructureMethod:
    """Return the method of that name, or say which there are."""
    if not isinstance(name, str):
        raise InvalidArgument(f"method= is a name such as 'hill-climb', not {name!r}")
    plain = name.strip().lower().replace("_", "-").replace(" ", "-")
    plain = ALIASES.get(plain, plain)
    if plain in METHODS:
        return METHODS[plain]
    near = get_close_matches(plain, [*METHODS, *ALIASES], n=1)
    hint = (
        f"; did you mean {ALIASES.get(near[0], near[0])!r}?"
        if near
        else f"; there are {', '.join(sorted(METHODS))}"
    )
    raise InvalidArgument(f"there is no structure-learning method {name!r}{hint}")
