"""The structure-learning methods by name: where each one is, and what it takes.

A new method is a new file and one line here. A method is a function `run(task, *, options...)` that returns a `Found`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from markovia.errors import InvalidArgument


@dataclass(frozen=True)
class Method:
    """Where a method is and what it takes.

    Attributes
    ----------
    name
        Its public name.
    home
        `module:function` under `markovia.learning.structure`.
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
        module, _, name = self.home.partition(":")
        found: Callable[..., Any] = getattr(import_module(f"markovia.learning.structure.{module}"), name)
        return found


_METHODS = [
    # trees
    Method("chow-liu", "chow_liu:chow_liu", "neither"),
    Method("tan", "tree_augmented_search:tree_augmented", "neither"),
    # scores over directed graphs
    Method("hill-climb", "hill_climbing:hill_climb", "score"),
    Method("tabu", "tabu_search:tabu", "score"),
    Method("k2", "k2_search:k2", "score"),
    Method("exact", "exact_search:exact", "score"),
    # scores over classes and orders
    Method("ges", "greedy_equivalence:ges", "score"),
    Method("boss", "best_order:boss", "score"),
    Method("grasp", "sparsest_permutation:grasp", "score"),
    Method("order-search", "order_search:order_search", "score"),
    # tests
    Method("pc", "pc:pc", "test"),
    Method("fci", "fci:fci", "test"),
    Method("rfci", "rfci:rfci", "test"),
    Method("mmhc", "max_min_hill_climbing:mmhc", "both"),
    # functional models
    Method("direct-lingam", "direct_lingam:direct_lingam", "neither", numbers=True),
    Method("ica-lingam", "ica_lingam:ica_lingam", "neither", numbers=True),
    Method("anm", "additive_noise:anm", "neither", numbers=True),
    Method("pnl", "post_nonlinear:pnl", "neither", numbers=True),
    Method("notears", "notears:notears", "neither", numbers=True),
    Method("notears-mlp", "notears_mlp:notears_mlp", "neither", numbers=True),
    # undirected graphs
    Method("partial-correlation", "partial_correlation_search:partial_correlations", "neither", numbers=True),
    Method("neighbourhood", "neighbourhood_selection:neighbourhood", "neither", numbers=True),
    Method("graphical-lasso", "graphical_lasso:graphical_lasso", "neither", numbers=True),
    Method("ising", "ising_neighbourhood:ising", "neither"),
    Method("l1-pseudo-likelihood", "sparse_pseudo_likelihood:l1_pseudo_likelihood", "neither"),
    # networks that change
    Method("kernel-weighted", "time_varying_ising:kernel_weighted", "neither"),
    Method("tesla", "tesla:tesla", "neither"),
    # incomplete data
    Method("structural-em", "structural_em:structural_em", "score", gaps=True),
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


def method_named(name: object) -> Method:
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
