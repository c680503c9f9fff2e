"""`markovia info`: what a model is made of, before anything is asked of it; without one, what there is to compute with."""

from collections import Counter
from math import prod
from typing import Annotated, Any

from markovia.cli.installation import installation, installation_lines
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import open_model, states_of
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import heading, print_json, say, show_table
from markovia.errors import InvalidArgument, MarkoviaError, TooLarge
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.graphs.triangulation.triangulation import treewidth_of_order, triangulate
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.factor_model import FactorModel
from markovia.models.graphical.model import Model

FEW = 8
"""Up to so many names are written out."""


@command(
    "markovia info",
    "markovia info asia",
    "markovia info hailfinder.bif --variables",
    "markovia info model.uai --json | jq .treewidth_bound",
)
def info(
    model: options.ModelOrNone = None,
    variables: Annotated[
        bool, option("--variables -v", "List every variable with its states and parents.")
    ] = False,
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Describe a model and how hard exact inference is; without one the installation: versions, memory, the GPU."""
    if model is None:
        if variables or format is not None:
            raise InvalidArgument(f"{'--variables' if variables else '--format'} is about a model; name one")
        machine = installation()
        if as_json:
            print_json(machine)
        else:
            show_table(["", ""], installation_lines(machine))
        return
    loaded = open_model(model, format)
    facts = describe(loaded)
    if variables:
        facts["variables_listed"] = list_variables(loaded)
    if as_json:
        print_json({**heading(model, loaded), **facts})
        return
    show_table(["", ""], _lines(facts))
    if variables:
        say("")
        neighbours = "parents" if isinstance(loaded, BayesianNetwork) else "neighbours"
        show_table(
            ["variable", "states", neighbours],
            [
                (v["name"], ", ".join(map(str, v["states"])), ", ".join(v[neighbours]))
                for v in facts["variables_listed"]
            ],
        )


def describe(model: Model) -> dict[str, Any]:
    """Return the facts that `info` prints.

    Examples
    --------
    >>> from markovia.models.gallery.examples import asia
    >>> facts = describe(asia())
    >>> facts["variables"], facts["edges"], facts["parameters"], facts["treewidth_bound"]
    (8, 8, 18, 2)
    """
    sizes = [len(states) for name in model.variables if (states := states_of(model, name))]
    facts: dict[str, Any] = {
        "name": model.name or None,
        "kind": type(model).__name__,
        "variables": len(model),
        "states": {str(size): count for size, count in sorted(Counter(sizes).items())},
        "joint_states": prod(sizes),
    }
    if isinstance(model, BayesianNetwork):
        facts |= _of_network(model)
        graph = model.graph.moral_graph()
    elif isinstance(model, FactorModel):
        facts |= _of_factors(model)
        graph = model.undirected_graph
    else:
        raise AssertionError(type(model))
    components = graph.connected_components()
    facts["components"] = len(components)
    facts["largest_component"] = max(map(len, components), default=0)
    facts["treewidth_bound"] = _width(graph)
    facts["all_marginals"] = _all_marginals(model)
    facts["properties"] = dict(model.properties)
    return facts


def list_variables(model: Model) -> list[dict[str, Any]]:
    """Return name, states and parents (neighbours in undirected models) of every variable."""
    if isinstance(model, BayesianNetwork):
        return [
            {"name": n, "states": states_of(model, n), "parents": model.parents(n)} for n in model.variables
        ]
    return [
        {"name": n, "states": model.states(n), "neighbours": sorted(model.markov_blanket(n))}
        for n in model.variables
    ]


def _of_network(model: BayesianNetwork) -> dict[str, Any]:
    graph = model.graph
    families = {
        n: prod(len(states_of(model, v)) or 1 for v in (n, *model.parents(n))) for n in model.variables
    }
    widest = max(families, key=lambda n: (families[n], len(model.parents(n))), default=None)
    diagram = {"decisions": model.decisions, "utilities": model.utilities}
    return {
        **(diagram if any(diagram.values()) else {}),
        "edges": len(model.edges),
        "parameters": model.count_parameters(),
        "without_table": [n for n in model.variables if not model.has_table(n)],
        "largest_family": None
        if widest is None
        else {"variable": widest, "parents": model.parents(widest), "entries": families[widest]},
        "most_parents": max((len(model.parents(n)) for n in model.variables), default=0),
        "roots": graph.roots(),
        "leaves": graph.leaves(),
    }


def _of_factors(model: FactorModel) -> dict[str, Any]:
    widest = max(model.factors, key=lambda f: f.size, default=None)
    return {
        "edges": len(model.undirected_graph.edges),
        "factors": len(model.factors),
        "parameters": model.count_parameters(),
        "largest_factor": None
        if widest is None
        else {"variables": list(widest.names), "entries": widest.size},
    }


def _all_marginals(model: Model) -> dict[str, Any] | None:
    """Return what all marginals take on each device, None where the model is not tables alone."""
    from markovia.inference.engine import TABLES
    from markovia.inference.sliced.sliced_elimination import estimate

    try:
        problem = model._problem(None)
    except MarkoviaError:  # a table is missing
        return None
    if not problem.kinds <= TABLES or not problem.variables:
        return None
    try:
        entries, seconds = estimate(problem)
    except TooLarge:
        return None
    return {"entries": entries, "seconds": seconds}


def _width(graph: UndirectedGraph) -> int:
    return treewidth_of_order(graph, triangulate(graph, "min-fill").order) if len(graph) else 0


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    states = ", ".join(f"{count} with {size}" for size, count in facts["states"].items())
    lines = [
        ("name", facts["name"] or "(none)"),
        ("kind", facts["kind"]),
        ("variables", f"{facts['variables']:,}"),
        ("states", states or "none"),
        ("edges", f"{facts['edges']:,}"),
    ]
    lines += [(word, _named(facts[word])) for word in ("decisions", "utilities") if word in facts]
    if "factors" in facts:
        lines.append(("factors", f"{facts['factors']:,}"))
    lines.append(("parameters", f"{facts['parameters']:,}"))
    if facts.get("without_table"):
        lines.append(("without table", _named(facts["without_table"])))
    family, factor = facts.get("largest_family"), facts.get("largest_factor")
    if family is not None:
        given = f" | {', '.join(family['parents'])}" if family["parents"] else ""
        lines.append(("largest family", f"P({family['variable']}{given}): {family['entries']:,} entries"))
        lines.append(("most parents", str(facts["most_parents"])))
    if factor is not None:
        lines.append(("largest factor", f"({', '.join(factor['variables'])}): {factor['entries']:,} entries"))
    if "roots" in facts:
        lines += [("roots", _named(facts["roots"])), ("leaves", _named(facts["leaves"]))]
    components = f"{facts['components']:,}"
    if facts["components"] > 1:
        components += f" (the largest with {facts['largest_component']:,} variables)"
    lines.append(("components", components))
    lines.append(("treewidth", f"at most {facts['treewidth_bound']} (min-fill order)"))
    if (cost := facts["all_marginals"]) is not None:
        from markovia.inference.sliced.sliced_elimination import duration

        seconds = cost["seconds"]
        gpu = (
            f", {duration(seconds['gpu'])} on a GPU" if "gpu" in seconds else "; too small to gain from a GPU"
        )
        lines.append(
            (
                "all marginals",
                f"about {cost['entries']:,.3g} table entries, {duration(seconds['cpu'])} on this processor{gpu}",
            )
        )
    return lines + [(f"property {key}", value) for key, value in facts["properties"].items()]


def _named(names: list[str]) -> str:
    shown = ", ".join(names[:FEW]) + (", ..." if len(names) > FEW else "")
    return f"{len(names):,}: {shown}" if names else "none"
