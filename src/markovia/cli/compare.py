"""`markovia compare`: where two models, or two graphs, differ."""

from pathlib import Path
from typing import Annotated, Any

from markovia.cli.terminal import options
from markovia.cli.terminal.loading import FileError, complete_model, open_anything, writing
from markovia.cli.terminal.options import argument, command, option
from markovia.cli.terminal.output import print_json, say, show_table
from markovia.errors import InvalidArgument, TooLarge
from markovia.graphs.comparison.comparison import GraphComparison, compare_graphs
from markovia.graphs.comparison.intervention_distance import SIDBounds
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.models.graphical.bayesian_network import BayesianNetwork

FEW = 3
"""Up to so many tables that differ are named."""
KINDS = {
    "dag": "directed graphs",
    "cpdag": "CPDAGs",
    "pag": "partial ancestral graphs",
    "undirected": "undirected graphs",
}

Other = Annotated[
    str,
    argument(
        "TRUTH",
        "The model or graph to compare with: a file or a bundled name.",
        complete=complete_model,
    ),
]


@command(
    "markovia compare learned.bif truth.bif",
    "markovia compare learned.bif asia --plot both.png",
    "markovia compare a.bif b.bif --json | jq .shd",
)
def compare(
    model: options.Model,
    truth: Other,
    plot: Annotated[
        str | None, option("--plot -p FILE", "Also draw the two graphs side by side: .png, .svg or .pdf.")
    ] = None,
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Compare a model's graph with the true one: edges, distances, effects; and their tables."""
    loaded, true = _graph_or_model(model, format), _graph_or_model(truth, format)
    try:
        found = compare_graphs(loaded, true)
    except InvalidArgument as error:
        raise _other_kinds(loaded, true, error) from None
    tables = compare_tables(loaded, true)
    if plot is not None:
        _draw(found, plot, (Path(model).name, Path(truth).name))
    if as_json:
        print_json({"model": model, "truth": truth, **describe(found), "tables": tables})
        return
    show_table(["", ""], _lines(found, tables))
    say("")
    show_table(["", "precision", "recall", "F1"], _rates(found), numbers=(1, 2, 3))
    if found.differences:
        say("")
        show_table(
            ["difference", model, truth],
            [(d.kind, d.learned or "", d.truth or "") for d in found.differences],
        )


def _other_kinds(loaded: Any, true: Any, error: InvalidArgument) -> InvalidArgument:
    """Return an error in the words of the command line where one graph is a partial ancestral graph and one is not."""
    graphs = [getattr(g, "graph", g) for g in (loaded, true)]
    circles = [isinstance(g, MixedGraph) for g in graphs]
    if circles[0] is circles[1] or "ancestral" not in str(error):
        return error
    return InvalidArgument(
        "a partial ancestral graph is compared with one; `markovia learn --method fci -o graph.dagitty` writes such graphs"
    )


def describe(found: GraphComparison) -> dict[str, Any]:
    """Return the facts that `compare` prints.

    Examples
    --------
    >>> from markovia.models.gallery.examples import asia
    >>> facts = describe(compare_graphs(asia(), asia()))
    >>> facts["shd"], facts["sid"], facts["skeleton"]["f1"]
    (0, 0, 1.0)
    """
    effects = _sid(found)
    return {
        "level": found.level,
        "nodes": len(found.nodes),
        "edges": found.learned.n_edges,
        "true_edges": found.truth.n_edges,
        "shd": found.shd,
        "cpdag_shd": found.cpdag_shd,
        "mark_distance": found.mark_distance,
        "sid": effects if isinstance(effects, int) or effects is None else dict(effects._asdict()),
        **{
            name: {"precision": r.precision, "recall": r.recall, "f1": r.f1}
            for name, r in (("skeleton", found.skeleton), ("arrowheads", found.arrows))
        },
        "missing": found.missing,
        "extra": found.extra,
        "reversed": found.reversed,
        "reoriented": found.reoriented,
        "differences": [d._asdict() for d in found.differences],
    }


def compare_tables(a: Any, b: Any) -> dict[str, Any] | None:
    """Say which tables of two Bayesian networks differ; None where there are none to compare.

    Tables are compared where a variable has the same parents and all states are the same, in any order.

    Examples
    --------
    >>> from markovia.models.gallery.examples import asia
    >>> compare_tables(asia(), asia())
    {'compared': 8, 'different': {}, 'other_states': {}}
    """
    if not (isinstance(a, BayesianNetwork) and isinstance(b, BayesianNetwork)):
        return None
    told = {d.where: d.what for d in a.compare(b)}
    moved = {n for n in b.variables if a.variable(n) != b.variable(n) and _same_states(a, b, n)}
    other_states = {n: told[n] for n in b.variables if a.variable(n) != b.variable(n) and n not in moved}
    compared = [
        n
        for n in b.variables
        if a.has_table(n)
        and b.has_table(n)
        and set(a.parents(n)) == set(b.parents(n))
        and other_states.keys().isdisjoint((n, *b.parents(n)))
    ]
    if not compared and not other_states:
        return None
    return {
        "compared": len(compared),
        "different": {
            n: what
            for n in compared
            if (what := told.get(n) if moved.isdisjoint((n, *b.parents(n))) else _table_gap(a, b, n))
        },
        "other_states": other_states,
    }


def _same_states(a: BayesianNetwork, b: BayesianNetwork, name: str) -> bool:
    """Say whether a variable has the same states in both, in any order."""
    return len(a.states(name)) == len(b.states(name)) and set(a.states(name)) == set(b.states(name))


def _table_gap(a: BayesianNetwork, b: BayesianNetwork, name: str) -> str | None:
    """Say by how much the tables of a variable differ whose states are in another order; None where they do not."""
    one, two = a[name].factor(), b[name].factor()
    other = two.transpose(one.names).values
    for axis, v in enumerate(one.names):
        place = {state: k for k, state in enumerate(b.states(v))}
        other = other.take([place[state] for state in a.states(v)], axis=axis)
    gap = float(abs(one.values - other).max())
    return f"tables differ by up to {gap:.3g}" if gap > 1e-9 else None


def _graph_or_model(word: str, format: str | None) -> Any:  # noqa: A002
    found = open_anything(word, format)
    if isinstance(found, MixedGraph) and len(found.directed_edges()) == found.n_edges and found.is_acyclic():
        return found.to_dag()
    return found


def _sid(found: GraphComparison) -> int | SIDBounds | None:
    try:
        return found.sid
    except (InvalidArgument, TooLarge):
        return None


def _lines(found: GraphComparison, tables: dict[str, Any] | None) -> list[tuple[str, str]]:
    lines = [
        ("compared as", KINDS[found.level]),
        ("nodes", f"{len(found.nodes):,}"),
        ("edges", f"{found.learned.n_edges:,} and {found.truth.n_edges:,}"),
        ("SHD", _distance(found)),
    ]
    if found.level == "dag":
        lines.append(("SHD of CPDAGs", f"{found.cpdag_shd:,}"))
    if found.level == "pag":
        lines.append(("marks that differ", f"{found.mark_distance:,}"))
    effects, n = _sid(found), len(found.nodes)
    if effects is not None:
        value = f"{effects:,}" if isinstance(effects, int) else f"{effects.lower:,} to {effects.upper:,}"
        lines.append(("SID", f"{value} of {n * (n - 1):,} effects wrong"))
    if tables is not None:
        lines.append(("tables", _tables_told(tables)))
    return lines


def _distance(found: GraphComparison) -> str:
    if not found.shd:
        return "0: the graphs are the same"
    turned = len(found.reversed)
    parts = [
        f"{len(found.missing)} missing",
        f"{len(found.extra)} extra",
        f"{turned} reversed",
        f"{len(found.reoriented) - turned} with other marks",
    ]
    return f"{found.shd:,}: " + ", ".join(part for part in parts if not part.startswith("0 "))


def _tables_told(tables: dict[str, Any]) -> str:
    told = []
    if tables["compared"]:
        different = tables["different"]
        told.append(
            f"{len(different):,} of {tables['compared']:,} with the same parents differ ({_named(different)})"
            if different
            else f"all {tables['compared']:,} with the same parents are the same"
        )
    if tables["other_states"]:
        told.append(f"other states: {_named(tables['other_states'])}")
    return "; ".join(told)


def _named(told: dict[str, str]) -> str:
    shown = ", ".join(f"{name}: {what}" for name, what in list(told.items())[:FEW])
    return shown + (", ..." if len(told) > FEW else "")


def _rates(found: GraphComparison) -> list[tuple[str, str, str, str]]:
    rates = [("skeleton", found.skeleton)]
    if found.level != "undirected":
        rates.append(("arrowheads", found.arrows))
    return [(name, f"{r.precision:.3f}", f"{r.recall:.3f}", f"{r.f1:.3f}") for name, r in rates]


def _draw(found: GraphComparison, path: str, titles: tuple[str, str]) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from markovia.plotting.comparison_plot import plot_comparison

    left, _ = plot_comparison(found, titles=titles)
    figure: Any = left.get_figure(root=True)
    try:
        with writing(path):
            figure.savefig(path, dpi=150)
    except ValueError:
        raise FileError(f"cannot draw into {path!r}; its suffix is .png, .svg or .pdf") from None
