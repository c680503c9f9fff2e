"""`markovia learn`: a graph, and a network with its tables, learned from a data file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from markovia.cli.convert import write_model, written
from markovia.cli.fit import read_prior
from markovia.cli.rows import data_file
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import STREAM, save_picture, writing
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import number, print_json, say, show_table
from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.structure.confidence.bootstrap import bootstrap_structure
from markovia.structure.confidence.model_averaging import EdgeConfidence
from markovia.structure.learn import learn_structure
from markovia.structure.methods import method_named, structure_methods
from markovia.structure.scores.scores import SCORES
from markovia.structure.task.result import LearnedStructure

GRAPHS_ONLY = ("dagitty", "lavaan")
"""Formats that hold a graph and no tables."""
ANY_GRAPH = ("json", "dagitty")
"""Formats that hold a graph without tables, with edges of any kind."""


def complete_method(incomplete: str) -> list[str]:
    """Complete the name of a method."""
    return [name for name in structure_methods() if name.startswith(incomplete)]


@command(
    "markovia learn data.csv --method ges -o model.bif",
    "markovia learn data.parquet --method hill-climb --score bdeu --tier age,sex --tier smoke,lung -o model.json",
    "markovia learn data.csv --method pc --test g2 --alpha 0.01 --forbidden 'wet->rain' -o graph.dagitty",
    "markovia learn data.csv --bootstrap 200 --seed 1 --plot edges.png -o model.bif",
    notes=[f"Methods: {', '.join(structure_methods())}.", f"Scores: {', '.join(SCORES)}."],
)
def learn(
    data: options.Data,
    method: Annotated[
        str, option("--method -m NAME", "The algorithm; see below.", complete=complete_method)
    ] = "hill-climb",
    output: Annotated[
        str | None,
        option(
            "--output -o FILE",
            "Where the fitted network goes; the suffix says the format. .dagitty gets only the graph.",
        ),
    ] = None,
    score: Annotated[str | None, option("--score NAME", "For methods that search; bic.")] = None,
    test: Annotated[str | None, option("--test NAME", "For methods that test: g2, ...")] = None,
    alpha: Annotated[float | None, option("--alpha P", "The level of the test; 0.05.")] = None,
    required: Annotated[
        list[str] | None,
        option("--required A->B", "An edge that is there. Repeat it, or separate several by commas."),
    ] = None,
    forbidden: Annotated[list[str] | None, option("--forbidden A->B", "An edge that is not there.")] = None,
    tier: Annotated[
        list[str] | None,
        option(
            "--tier A,B,..",
            "Variables of one time, the earliest first: no edge points to an earlier tier. Repeat it.",
        ),
    ] = None,
    max_parents: Annotated[int | None, option("--max-parents K", "At most K parents.", min=0)] = None,
    columns: Annotated[str | None, option("--columns A,B,..", "Use only these columns.")] = None,
    continuous: Annotated[
        str | None,
        option(
            "--continuous A,B,..", "Columns of measurements, or all or none; those with fractions by default."
        ),
    ] = None,
    weights: Annotated[str | None, option("--weights COLUMN", "A column of row weights.")] = None,
    missing: Annotated[str, option("--missing HOW", "Rows that miss cells: error or drop.")] = "error",
    setting: Annotated[
        list[str] | None, option("--set NAME=VALUE", "An option of the method itself. Repeat it.")
    ] = None,
    bootstrap: Annotated[
        int | None,
        option(
            "--bootstrap R",
            "Learn again from R resamplings, say how sure each edge is, and keep the sure ones.",
            min=1,
        ),
    ] = None,
    jobs: Annotated[int | None, option("--jobs N", "Processes for the resamplings.")] = None,
    prior: Annotated[str, option("--prior NAME", "Of the tables: none, bdeu, k2 or laplace.")] = "none",
    sample_size: Annotated[float | None, option("--ess N", "Equivalent sample size of bdeu; 10.")] = None,
    time_limit: Annotated[
        float | None, option("--time-limit SECONDS", "Then the best so far is taken; Ctrl-C does the same.")
    ] = None,
    seed: Annotated[
        int | None,
        option(
            "--seed -s INT", "For methods that draw, and resamplings: the same seed, the same graph.", min=0
        ),
    ] = None,
    plot: Annotated[str | None, option("--plot FILE", "Draw the graph: .png, .svg or .pdf.")] = None,
    as_json: options.Json = False,
) -> None:
    """Learn the graph of a network from a data file (CSV or Parquet), and its tables."""
    how = method_named(method)
    form = output_format(output)
    chosen = read_prior(prior, sample_size)
    if jobs is not None and bootstrap is None:
        raise InvalidArgument("--jobs is for --bootstrap")
    settings: dict[str, Any] = {
        "score": score,
        "test": test,
        "alpha": alpha,
        "required": read_edges(required, "--required"),
        "forbidden": read_edges(forbidden, "--forbidden"),
        "tiers": [_names(group) for group in tier] if tier else None,
        "max_parents": max_parents,
        "names": None if columns is None else _names(columns),
        "continuous": read_continuous(continuous),
        "weights": weights,
        "missing": missing,
        "seed": seed,
        "time_limit": options.seconds(time_limit),
        **read_settings(setting or []),
    }
    confidence: EdgeConfidence | None = None
    rows = data_file(data)
    if bootstrap is None:
        found = learn_structure(rows, how.name, **settings)
    else:
        confidence = bootstrap_structure(rows, how.name, replicates=bootstrap, n_jobs=jobs, **settings)
        found = confidence.consensus()
    notes = list(found.notes)
    size, thing = None, None
    if output is not None and form is not None:
        thing, more = what_to_write(found, output, form, chosen)
        notes += more
        if confidence is not None and isinstance(found.graph, DAG) and hasattr(thing, "equivalence_class"):
            thing.equivalence_class = confidence.undecided(found.graph)
        with writing(output):
            size = write_model(thing, output, None)
    if plot is not None:
        save_picture(found if confidence is None else confidence, plot)
    if as_json:
        print_json(document(data, found, confidence, notes, output, size, plot))
        return
    _report(found, confidence, notes)
    if output is not None and size is not None:
        say(written(thing, output, size))
    if plot is not None:
        say(f"drew {plot}")


def output_format(output: str | None) -> str | None:
    """Return the name of the output's format, or say before any work that there is none.

    Examples
    --------
    >>> output_format("model.bif.gz")
    'bif'
    """
    from markovia import io

    if output is None:
        return None
    if output == STREAM:
        raise InvalidArgument("name a file for the network with -o; standard output gets the report")
    suffixes = [s.casefold() for s in Path(output).suffixes if s.casefold() != ".gz"]
    known = {suffix: f.name for f in io.formats().values() for suffix in f.suffixes}
    if not suffixes or suffixes[-1] not in known:
        raise InvalidArgument(f"the suffix of {output!r} names no format; there are {', '.join(known)}")
    return known[suffixes[-1]]


def read_edges(words: Sequence[str] | None, option: str) -> list[tuple[str, str]] | None:
    """Return edges written with arrows.

    Examples
    --------
    >>> read_edges(["a->b,b->c", "d <- c"], "--required")
    [('a', 'b'), ('b', 'c'), ('c', 'd')]
    """
    if not words:
        return None
    edges = []
    for word in (part for text in words for part in text.split(",")):
        for sign, order in (("->", (0, 1)), ("<-", (1, 0))):
            ends = [end.strip() for end in word.split(sign)]
            if len(ends) == 2 and all(ends):
                edges.append((ends[order[0]], ends[order[1]]))
                break
        else:
            raise InvalidArgument(f"{option} is an edge such as 'rain->wet', not {word.strip()!r}")
    return edges


def read_continuous(words: str | None) -> bool | list[str] | None:
    """Return the columns of measurements.

    Examples
    --------
    >>> read_continuous("all"), read_continuous("age,height")
    (True, ['age', 'height'])
    """
    if words is None:
        return None
    plain = words.strip().casefold()
    return plain == "all" if plain in ("all", "none") else _names(words)


def read_settings(words: Sequence[str]) -> dict[str, Any]:
    """Return the options of a method: numbers, true, false and lists as in JSON, everything else as text.

    Examples
    --------
    >>> read_settings(["restarts=5", "max-degree=3", "orientation=majority"])
    {'restarts': 5, 'max_degree': 3, 'orientation': 'majority'}
    """
    import json

    found: dict[str, Any] = {}
    for word in words:
        name, mark, text = word.partition("=")
        if not mark or not name.strip():
            raise InvalidArgument(f"--set is a name and a value such as restarts=5, not {word!r}")
        if not text.strip():
            raise InvalidArgument(f"--set {word} has no value; leave it out, or write one behind the sign")
        try:
            value: Any = json.loads(text)
        except ValueError:
            value = text
        found[name.strip().replace("-", "_")] = value
    return found


def what_to_write(found: LearnedStructure, output: str, form: str, prior: Any) -> tuple[Any, list[str]]:
    """Return what goes into the file, a network or only the graph, and what to tell about it."""
    graph = found.graph
    if form in GRAPHS_ONLY:
        return graph, []
    tables = getattr(found.data, "discrete", False)
    directed = isinstance(graph, DAG) or (
        isinstance(graph, MixedGraph) and found.kind == "partially directed graph"
    )
    if tables and directed:
        notes = []
        if isinstance(graph, MixedGraph) and graph.undirected_edges():
            many = len(graph.undirected_edges())
            kept = "the file says so" if form == "json" else ".json and .dagitty keep the class"
            notes = [
                f"the data do not settle the direction of {many} edge{'s' * (many != 1)}; the network is one member of the "
                f"class of equivalent graphs ({kept})"
            ]
        network = found.fit(prior=prior)
        if form != "json":
            network.equivalence_class = None  # the note says what a warning would say again
        return network, notes
    if tables and isinstance(graph, UndirectedGraph):
        return found.fit(), []
    if form in ANY_GRAPH:
        return graph, ["the file holds the graph without parameters"]
    why = "the data are not discrete" if not tables else f"{found.method} learned a {found.kind}"
    raise UnsupportedModel(
        f"{output!r}: {why}, so there are no tables to write; .json and .dagitty keep the graph"
    )


def document(
    data: str,
    found: LearnedStructure,
    confidence: EdgeConfidence | None,
    notes: Sequence[str],
    output: str | None,
    size: int | None,
    plot: str | None,
) -> dict[str, Any]:
    """Return what --json prints."""
    told: dict[str, Any] = {
        "data": data,
        "method": found.method,
        "kind": found.kind,
        "nodes": found.nodes,
        "edges": [{"from": a, "to": b, "edge": text} for a, b, text in found._listed()],
        "score": found.score,
        "score_name": found.score_name,
        "test": found.test_name,
        "tests": found.n_tests or None,
        "proven_best": found.optimal,
        "rows": getattr(found.data, "total", None),
        "stopped": found.stopped,
        "seconds": found.seconds,
        "notes": list(notes),
        "output": output,
        "bytes": size,
        "plot": plot,
    }
    if confidence is not None:
        told["replicates"] = confidence.n_graphs
        told["threshold"] = confidence.threshold
        told["confidence"] = confidence.to_pandas().to_dict("records")
    return told


def _report(found: LearnedStructure, confidence: EdgeConfidence | None, notes: Sequence[str]) -> None:
    if confidence is not None:
        rows = confidence._rows()
        show_table(
            ["from", "to", "strength", "direction"],
            [(r[0], r[1], number(r[2]), number(r[3])) for r in rows],
            numbers=(2, 3),
        )
        say("", f"significant above {number(confidence.threshold)}", "")
    lines = str(found).splitlines()
    say(*(line for line in lines if not line.startswith("note: ")))
    say(*(f"note: {note}" for note in notes))


def _names(words: str) -> list[str]:
    return [name.strip() for name in words.split(",") if name.strip()]
