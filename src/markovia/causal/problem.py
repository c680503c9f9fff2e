"""What a causal question is about: one graph over the observed variables, treatments, outcomes and what is given.

Every function of `markovia.causal` reads its graph and its names here, so that all of them take the same things and
complain in the same words.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from markovia.errors import InvalidArgument, InvalidGraph, check_known
from markovia.graphs.causal.admg import Admg
from markovia.graphs.causal.text import causal_graph, parse_graph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.graphs.kinds.named import Names, as_names
from markovia.runtime.checks import check_choice

Family = Literal["auto", "admg", "cpdag", "mag", "pag"]
"""What the edges of a graph mean: "auto" believes a learned graph and a dagitty text that say it, sees circles (PAG) and
undirected edges (CPDAG), and takes all others as an ADMG, in which each hidden common cause is drawn."""


def read_graph(graph: object, latent: Names = ()) -> MixedGraph:
    """Return a causal graph over the observed variables, whatever it was written as.

    Parameters
    ----------
    graph
        A `DAG`, a `MixedGraph`, dagitty text, a text such as `"x -> y; x <-> y"`, or a model or result
        that holds a graph; of a network with an `equivalence_class`, that class.
    latent
        Variables that are not observed, besides those a dagitty text calls latent; they are projected away.

    Returns
    -------
    MixedGraph
        Of directed and bidirected edges; a CPDAG, MAG or PAG is returned as it is.

    Raises
    ------
    InvalidArgument, ParseError
        If it is no graph, or a malformed text.
    CycleError
        If directed edges form a cycle.

    Examples
    --------
    >>> read_graph("x -> y <- u -> x", latent="u")
    MixedGraph(['x --> y', 'x <-> y'])
    >>> read_graph("dag { u [latent] u -> {x y} }")
    MixedGraph(['x <-> y'])
    """
    read = causal_graph(graph, latent)
    if isinstance(read, MixedGraph) and not read.is_acyclic():
        DAG(read.directed_edges())  # a CycleError that shows the cycle
    return MixedGraph.from_dag(read) if isinstance(read, DAG) else read


def one_name(names: Names, role: str) -> str:
    """Return the one name of a role, written alone or in a list.

    Raises
    ------
    InvalidArgument
        If there are several, or none.

    Examples
    --------
    >>> one_name(["x"], "treatment")
    'x'
    >>> one_name(["x", "z"], "treatment")
    Traceback (most recent call last):
    ...
    markovia.errors.InvalidArgument: this question has one treatment, not 'x' and 'z'; ask for one at a time
    """
    several = as_names(names)
    if len(several) != 1:
        shown = " and ".join(map(repr, several)) or "none"
        raise InvalidArgument(f"this question has one {role}, not {shown}; ask for one at a time")
    return several[0]


@dataclass(frozen=True)
class Problem:
    """A graph over observed variables and the roles of some of them; `of` reads and checks them.

    Attributes
    ----------
    graph
        The graph as it was read.
    treatment, outcome, given
        Names, each at most once over all three.
    ancestral
        Whether the graph is a MAG or PAG, in which a directed edge may hide a common cause: one that was learned as
        such, a dagitty text that says so, or `family=`. Others are told by their circles.
    """

    graph: MixedGraph
    treatment: tuple[str, ...]
    outcome: tuple[str, ...]
    given: tuple[str, ...] = ()
    ancestral: bool = False

    @classmethod
    def of(
        cls,
        graph: object,
        treatment: Names,
        outcome: Names,
        given: Names = (),
        latent: Names = (),
        family: Family = "auto",
    ) -> "Problem":
        """Read a question.

        Raises
        ------
        UnknownVariable
            If a name is not among the observed variables of the graph.
        InvalidArgument
            If there is no treatment or no outcome, or a name has two roles.

        Examples
        --------
        >>> Problem.of("x -> y", "x", "x")
        Traceback (most recent call last):
        ...
        markovia.errors.InvalidArgument: 'x' is both treatment and outcome; a variable has no effect on itself
        """
        read = read_graph(graph, latent)
        hidden = set(as_names(latent))
        roles: dict[str, str] = {}
        for role, names in (("treatment", treatment), ("outcome", outcome), ("given", given)):
            for name in as_names(names):
                if name in hidden:
                    raise InvalidArgument(f"{name!r} is latent and cannot be the {role}: it is not observed")
                check_known([name], read.nodes, "the graph")
                if roles.setdefault(name, role) != role:
                    raise InvalidArgument(_two_roles(name, roles[name], role))
        if missing := next((r for r in ("treatment", "outcome") if r not in roles.values()), None):
            raise InvalidArgument(f"a causal question needs at least one {missing}")
        x, y, z = (tuple(n for n, r in roles.items() if r == k) for k in ("treatment", "outcome", "given"))
        check_choice("family", family, get_args(Family))
        ancestral = _is_ancestral(graph) if family == "auto" else family in ("mag", "pag")
        return cls(read, x, y, z, ancestral)

    @cached_property
    def admg(self) -> Admg:
        """The graph as bit masks; an `InvalidGraph` if it stands for a class of graphs."""
        if self.is_class:
            raise InvalidGraph(
                "the graph has edges without a direction, or such as may hide a cause, so it stands for many; "
                "orient them, or ask for what holds in all"
            )
        return Admg.of(self.graph)

    @property
    def family(self) -> Family:
        """How to read the graph again: a MAG is a PAG without circles."""
        return "pag" if self.ancestral else "auto"

    @cached_property
    def is_class(self) -> bool:
        """Whether the graph (a CPDAG, MAG or PAG) stands for many graphs."""
        return self.ancestral or any(
            edge[3] is not Mark.ARROW or edge[2] is Mark.CIRCLE for edge in self.graph.edges
        )


def _is_ancestral(graph: object) -> bool:
    if isinstance(graph, str):
        return parse_graph(graph).kind in ("mag", "pag")
    return hasattr(getattr(graph, "details", None), "visible")


def _two_roles(name: str, one: str, two: str) -> str:
    if (one, two) == ("treatment", "outcome"):
        return f"{name!r} is both treatment and outcome; a variable has no effect on itself"
    return f"{name!r} is both {one} and {two}; give each variable one role"
