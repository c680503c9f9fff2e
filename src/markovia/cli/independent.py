"""`markovia independent`: whether the graph makes two sets of variables independent, and why.

In a Bayesian network the reasons are trails: an open one carries dependence, and independence means that every
trail is blocked somewhere. In an undirected model they are paths, which observed variables interrupt.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

from markovia.cli.evidence import read_names
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import complete_variable, open_model
from markovia.cli.terminal.options import argument, command, option
from markovia.cli.terminal.output import heading, print_json, say
from markovia.errors import InvalidArgument
from markovia.graphs.kinds.trails import Trail, every_trail
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.graphs.separation.open_paths import open_paths, reached
from markovia.graphs.separation.separation import d_separated, separated
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.factor_model import FactorModel
from markovia.models.graphical.model import Model


@command(
    "markovia independent asia smoke xray --given either",
    "markovia independent asia lung bronc --given smoke --given dysp",
    "markovia independent asia asia,smoke xray,dysp --given either,bronc --json",
)
def independent(
    model: options.Model,
    x: Annotated[
        str, argument("X", "A variable, or several separated by commas.", complete=complete_variable)
    ],
    y: Annotated[
        str, argument("Y", "A variable, or several separated by commas.", complete=complete_variable)
    ],
    given: Annotated[
        list[str] | None,
        option(
            "--given -g VAR",
            "An observed variable. Repeat it, or separate several by commas.",
            complete=complete_variable,
        ),
    ] = None,
    limit: Annotated[int, option("--limit -l", "Show at most so many trails or paths.", min=0)] = 10,
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Ask the graph whether X and Y are independent, and see the open or blocked trails between them."""
    loaded = open_model(model, format)
    xs, ys = read_names(loaded, [x]), read_names(loaded, [y])
    observed = read_names(loaded, given or [])
    _check_disjoint(xs, ys, observed)
    answer = loaded.independent(xs, ys, given=observed)
    reasons = explain_separation(loaded, xs, ys, observed, answer, limit)
    if as_json:
        print_json(
            {
                **heading(model, loaded),
                "x": xs,
                "y": ys,
                "given": observed,
                "independent": answer,
                **reasons,
            }
        )
        return
    verb = "is independent of" if len(xs) == 1 else "are independent of"
    negated = verb.replace("independent", "not independent")
    after = f" given {', '.join(observed)}" if observed else ""
    say(
        f"{', '.join(xs)} {verb if answer else negated} {', '.join(ys)}{after}",
        style="green" if answer else "yellow",
    )
    for line in _reasons_as_text(reasons, answer):
        say(f"  {line}")


def explain_separation(
    model: Model,
    x: Sequence[str],
    y: Sequence[str],
    given: Sequence[str],
    answer: bool,
    limit: int = 10,
) -> dict[str, Any]:
    """Return why the graph separates x from y or not: trails, or paths for undirected models.

    Examples
    --------
    >>> from markovia.models.gallery.examples import asia
    >>> why = explain_separation(asia(), ["lung"], ["bronc"], [], answer=False)
    >>> [trail["trail"] for trail in why["trails"]]
    ['lung <- smoke -> bronc']
    """
    if isinstance(model, BayesianNetwork):
        dag = model.graph
        pairs = [(a, b) for a in x for b in y if answer or not d_separated(dag, a, b, given)]
        found = [
            t
            for a, b in pairs
            for t in islice(every_trail(dag, a, b, given, only_open=not answer), limit + 1)
        ]
        found.sort(key=lambda trail: len(trail.nodes))
        return {"trails": [_trail(t) for t in found[:limit]], "more_trails": len(found) > limit}
    if isinstance(model, FactorModel):
        graph = model.undirected_graph
        if answer:
            return {"paths": [], "more_paths": False, "separated_by": _walls(graph, x, y, given)}
        paths = [p for a in x for b in y for p in islice(open_paths(graph, a, b, given), limit + 1)]
        paths.sort(key=len)
        return {
            "paths": [{"path": " - ".join(p), "nodes": p, "open": True} for p in paths[:limit]],
            "more_paths": len(paths) > limit,
            "separated_by": None,
        }
    raise AssertionError(type(model))


def _check_disjoint(x: list[str], y: list[str], given: list[str]) -> None:
    for one, two, what in ((x, y, "X and Y"), (x, given, "X and --given"), (y, given, "Y and --given")):
        shared = [name for name in one if name in two]
        if shared:
            raise InvalidArgument(
                f"{what} share {', '.join(map(repr, shared))}; ask about different variables"
            )


def _trail(trail: Trail) -> dict[str, Any]:
    return {
        "trail": str(trail),
        "nodes": list(trail.nodes),
        "arrows": list(trail.arrows),
        "open": trail.is_open,
        "junctions": [
            {"node": j.node, "kind": j.kind, "open": j.open, "witness": j.witness, "why": str(j)}
            for j in trail.junctions
        ],
    }


def _reasons_as_text(reasons: dict[str, Any], answer: bool) -> list[str]:
    lines: list[str] = []
    if "trails" in reasons:
        trails = reasons["trails"]
        if answer:
            lines.append("every trail between them is blocked" if trails else "no trail joins them")
        for trail in trails:
            lines.append(f"{trail['trail']}  ({'open' if trail['open'] else 'blocked'})")
            # of a blocked trail only what blocks it matters; an open one is open at every node
            lines += [f"    {j['why']}" for j in trail["junctions"] if j["open"] == trail["open"]]
        if reasons["more_trails"]:
            lines.append("and more; --limit shows more of them")
        return lines
    for path in reasons["paths"]:
        lines.append(f"{path['path']}  (open: nothing on it is observed)")
    if reasons["more_paths"]:
        lines.append("and more; --limit shows more of them")
    if reasons["separated_by"]:
        lines.append(f"every path between them passes through {', '.join(reasons['separated_by'])}")
    elif answer:
        lines.append("no path joins them")
    return lines


def _walls(graph: UndirectedGraph, x: Sequence[str], y: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return the observed nodes that keep x and y apart: those next to the part around x, if y lies behind."""
    if separated(graph, x, y):
        return []
    inside = reached(graph, x, set(given))
    return [name for name in given if any(other in inside for other in graph.neighbors(name))]
