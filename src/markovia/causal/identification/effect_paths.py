"""The paths between treatment and outcome: those that carry the effect, and those that adjustment has to block.

A path is causal if all its edges point from treatment to outcome. Any other path biases the effect if it is open
given what is adjusted for. Paths are `Trail`s, shortest first; a bidirected edge is walked as `<->`.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markovia.causal.problem import Problem
from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.graphs.kinds.named import Names
from markovia.graphs.kinds.plot_options import Positions
from markovia.graphs.kinds.trails import Trail, every_trail
from markovia.runtime import ports
from markovia.runtime.shown import html_picture, html_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class EffectPaths:
    """The paths from treatments to outcomes that meet no other treatment.

    Attributes
    ----------
    causal
        Those along which the effect runs; one that is not open is blocked by what is adjusted for.
    open, blocked
        The others, open or blocked given what is adjusted for.
    complete
        Whether these are all; False if a limit was met.
    """

    causal: tuple[Trail, ...]
    open: tuple[Trail, ...]
    blocked: tuple[Trail, ...]
    complete: bool = True
    problem: Problem | None = field(default=None, repr=False, compare=False)

    def plot(
        self,
        *,
        ax: "Axes | None" = None,
        layout: Positions = "auto",
        title: str = "",
        legend: bool = True,
        seed: int = 0,
    ) -> "Axes":
        """Draw the graph with these paths in colour; see `markovia.plotting.plot_effect`."""
        if self.problem is None:
            raise InvalidArgument(
                "these paths do not know their graph; draw it with mk.plotting.plot_effect(graph, ...)"
            )
        asked = self.problem.graph, self.problem.treatment, self.problem.outcome, self.problem.given
        return ports.draw("plot-effect", *asked, ax=ax, layout=layout, title=title, legend=legend, seed=seed)

    def _repr_html_(self) -> str:
        nodes = 0 if self.problem is None else len(self.problem.graph.nodes)
        return html_picture(self, nodes, "") + html_text(str(self))

    def __str__(self) -> str:
        lines = []
        for title, found in (
            ("causal", self.causal),
            ("open, not causal", self.open),
            ("blocked, not causal", self.blocked),
        ):
            lines += [f"{title}:", *(_line(trail) for trail in found)] if found else []
        if not self.complete:
            lines.append("and more; raise limit= to see them")
        return "\n".join(lines) or "no path"


def effect_paths(
    graph: object, treatment: Names, outcome: Names, given: Names = (), *, limit: int = 200
) -> EffectPaths:
    """Sort the paths between treatments and outcomes into causal, open and blocked ones.

    Parameters
    ----------
    graph
        A DAG (hidden variables may be among its nodes), a graph with bidirected edges, a text or a model.
    treatment, outcome
        One name or several.
    given
        What is adjusted for.
    limit
        At most so many paths for each treatment and outcome; there can be exponentially many.

    Raises
    ------
    InvalidGraph
        If the graph stands for a class of graphs.

    Examples
    --------
    >>> print(effect_paths("x -> m -> y; x <- z -> y; x <-> w -> y", "x", "y", given="z"))
    causal:
      x -> m -> y
    open, not causal:
      x <-> w -> y
    blocked, not causal:
      x <- z -> y  (at z)
    """
    problem = Problem.of(graph, treatment, outcome, given)
    if problem.is_class:
        raise InvalidGraph(
            "paths are those of one graph, and this one has edges without a direction; orient them"
        )
    dag, hidden = _with_hidden_nodes(problem.graph)
    causal: list[Trail] = []
    others: list[Trail] = []
    complete = True
    for x in problem.treatment:
        for y in problem.outcome:
            for k, trail in enumerate(every_trail(dag, x, y, problem.given)):
                if k == limit:
                    complete = False
                    break
                if not set(trail.nodes[1:]).intersection(problem.treatment):
                    shown = _without_hidden_nodes(trail, hidden)
                    (causal if set(shown.arrows) == {"->"} else others).append(shown)
    found = (tuple(t for t in others if t.is_open), tuple(t for t in others if not t.is_open))
    return EffectPaths(tuple(causal), *found, complete, problem)


def _with_hidden_nodes(graph: MixedGraph) -> tuple[DAG, set[str]]:
    """Put a node with a name of its own behind each bidirected edge."""
    edges = graph.directed_edges()
    hidden = set()
    for a, b in graph.bidirected_edges():
        name = f"{a} <-> {b}"
        while name in graph:
            name += " "
        hidden.add(name)
        edges += [(name, a), (name, b)]
    return DAG(edges, nodes=graph.nodes), hidden


def _without_hidden_nodes(trail: Trail, hidden: set[str]) -> Trail:
    if hidden.isdisjoint(trail.nodes):
        return trail
    nodes, arrows = [trail.nodes[0]], []
    for node, arrow in zip(trail.nodes[1:], trail.arrows, strict=True):
        if node in hidden:
            arrows.append("<->")
            continue
        if not arrows or arrows[-1] != "<->" or len(arrows) < len(nodes):
            arrows.append(arrow)
        nodes.append(node)
    junctions = tuple(j for j in trail.junctions if j.node not in hidden)
    return Trail(tuple(nodes), tuple(arrows), junctions, trail.given)


def _line(trail: Trail) -> str:
    return f"  {trail}" + (f"  (at {', '.join(trail.blocked_by)})" if trail.blocked_by else "")
