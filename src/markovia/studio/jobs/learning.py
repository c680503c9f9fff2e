"""Learning in the studio: graphs and parameters from an uploaded table, as work for jobs.

Each function is the work of a job: it runs in a process of its own, gets a report to talk through, and returns plain values.
Models come and go as native JSON.
"""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markovia.errors import InvalidArgument, MarkoviaError, UnsupportedModel
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import Mark, edge_string
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime import ports, progress
from markovia.studio.jobs.orders import LearnParameters

if TYPE_CHECKING:
    from markovia.studio.jobs.worker import JobReport

GROUPS = {
    "dag_search": "search by score",
    "exact": "search by score",
    "classes_and_orders": "search over classes and orders",
    "constraint": "tests of independence",
    "trees": "trees",
    "functional": "functional models (numbers)",
    "undirected": "undirected graphs",
    "incomplete": "incomplete data",
}
"""What the methods of each folder are, in words; methods for networks that change have no one graph to show."""
SHOWN_EVERY = 0.2
"""Seconds between two pictures of a curve that grows."""
PRIORS = ("none", "bdeu", "k2", "laplace")


def methods() -> dict[str, Any]:
    """Return what the page may offer: methods with what they take, scores, tests and priors."""
    from markovia.structure.ci_tests.ci_tests import TESTS
    from markovia.structure.methods import METHODS
    from markovia.structure.scores.scores import SCORES

    offered = [
        {"name": m.name, "group": GROUPS[folder], "takes": m.takes, "numbers": m.numbers, "gaps": m.gaps}
        for m in METHODS.values()
        if (folder := m.home.split(".")[2]) in GROUPS
    ]
    return {"methods": offered, "scores": list(SCORES), "tests": list(TESTS), "priors": list(PRIORS)}


def structure(
    report: "JobReport",
    *,
    folder: Path,
    data: str,
    name: str,
    method: str,
    settings: Mapping[str, Any],
    bootstrap: int | None = None,
    prior: str = "none",
) -> dict[str, Any]:
    """Learn a graph, and a model with it where the graph can be fitted.

    Parameters
    ----------
    report, folder
        Of the job.
    data, name
        The file of the table, and what the model is called.
    method, settings
        As for `mk.learn_structure`.
    bootstrap
        Learn again from so many resamplings, and keep the edges that are sure.
    prior
        Of the tables.
    """
    from markovia.structure.confidence.bootstrap import bootstrap_structure
    from markovia.structure.learn import learn_structure

    chosen = _prior(prior)
    report.note("reading the table")
    confidence = None
    if bootstrap:
        confidence = bootstrap_structure(data, method, replicates=bootstrap, **settings)
    if confidence is None or confidence.ancestral:
        found = learn_structure(data, method, **settings)
    else:
        found = confidence.consensus()
    report.note("fitting the parameters")
    why: list[str] = []
    try:
        fits: dict[str, Any] = {} if isinstance(found.graph, UndirectedGraph) else {"prior": chosen}
        model = found.fit(**fits)
        if confidence is not None and isinstance(found.graph, DAG):
            model.equivalence_class = confidence.undecided(found.graph)
    except MarkoviaError as error:  # a class with hidden causes, or columns that no model takes
        model, why = found.graph, [f"a graph without parameters: {error}"]
    result: dict[str, Any] = {
        "method": found.method,
        "kind": found.kind,
        "nodes": list(found.nodes),
        "edges": edges_of(found.graph),
        "score": found.score,
        "score_name": found.score_name,
        "test": found.test_name,
        "tests": found.n_tests,
        "optimal": found.optimal,
        "stopped": found.stopped,
        "seconds": found.seconds,
        "notes": [*found.notes, *why],
        "document": {"name": name, "text": ports.call("dumps", model, "json")},
    }
    if confidence is not None:
        rows = confidence.to_pandas()
        result |= {
            "confidence": rows[["from", "to", "strength", "direction"]].to_dict("records"),
            "threshold": confidence.threshold,
            "replicates": confidence.n_graphs,
            "undirected": confidence.undirected,
        }
    return result


def parameters(report: "JobReport", *, folder: Path, name: str, **order: Any) -> dict[str, Any]:
    """Learn the parameters of a network whose graph is known; see `LearnParameters` and `BayesianNetwork.fit`."""
    from markovia.learning.incomplete.em import EM
    from markovia.models.graphical.bayesian_network import BayesianNetwork

    asked = LearnParameters(**order)
    network = ports.call("loads", asked.model, "json")
    if not isinstance(network, BayesianNetwork):
        raise UnsupportedModel(
            f"parameters are learned for directed networks, not for a {type(network).__name__}"
        )
    report.note("reading the table")
    how = EM(seed=asked.seed, restarts=asked.restarts) if asked.missing == "em" else asked.missing
    latent = {n: network.states(n) for n in asked.latent}
    with progress.listening(_watched(report)):
        network.fit(asked.data, prior=_prior(asked.prior), missing=how, latent=latent)
    record = network.fit_
    assert record is not None
    return {
        "method": record.method,
        "rows": record.n_rows,
        "missing_cells": record.missing_cells,
        "log_likelihood": record.log_likelihood,
        "parameters": record.n_parameters,
        "bic": record.bic if record.total > 0 else None,
        "unseen_rows": dict(record.unseen_rows),
        "converged": record.converged,
        "iterations": record.iterations,
        "history": [float(x) for x in record.history],
        "seconds": record.seconds,
        "document": {"name": name, "text": ports.call("dumps", network, "json")},
    }


def _watched(report: "JobReport") -> progress.Listener:
    """Return a listener that shows the objective of EM as it rises; a fall is the beginning of another run."""
    history: list[float] = []
    last = 0.0

    def heard(done: float, total: float | None, unit: str, note: str, value: float | None) -> None:
        nonlocal last
        report.heard(done, total, unit, note)
        if value is None or not math.isfinite(value):
            return
        if history and value < history[-1] - 1e-6 * abs(value):
            history.clear()
        history.append(value)
        if time.monotonic() - last > SHOWN_EVERY:
            last = time.monotonic()
            report.show({"history": history})

    return heard


def batch(
    report: "JobReport",
    *,
    folder: Path,
    model: str,
    data: str,
    targets: Sequence[str],
    impossible: str = "nan",
) -> dict[str, Any]:
    """Answer every row of a table: the posterior of each target, as columns of a CSV file."""
    import pandas as pd

    from markovia.data.tables.frames import as_frame

    opened = ports.call("loads", model, "json")
    report.note("reading the table")
    rows = as_frame(data, opened.variables if isinstance(opened.variables, Mapping) else None)
    parts = [
        opened.predict_proba(rows, target, impossible=impossible).add_prefix(f"P({target}=").add_suffix(")")
        for target in targets
    ]
    answers = pd.concat([rows.reset_index(drop=True), *(p.reset_index(drop=True) for p in parts)], axis=1)
    answers.to_csv(folder / "answers.csv", index=False)
    shown = answers.head(8)
    return {
        "rows": len(answers),
        "columns": [str(c) for c in answers.columns],
        "preview": shown.astype(object).where(shown.notna(), None).to_numpy().tolist(),
    }


def columns_model(data: Any, names: Sequence[str], numbers: Sequence[str] = ()) -> Any:
    """Return a network of columns without edges, each as it is distributed in the table: where to draw knowledge."""
    from markovia.data.tables.reading_mixed import read_mixed
    from markovia.structure.task.result import LearnedStructure

    rows = read_mixed(data, names=list(names), continuous=list(numbers))
    return LearnedStructure(DAG([], nodes=list(names)), "none", data=rows).fit()


def edges_of(graph: Any) -> list[dict[str, str]]:
    """Return the edges of a graph: "arrow", "line", or "mixed" for other marks, each with its text.

    Examples
    --------
    >>> from markovia.graphs.kinds.mixed import MixedGraph
    >>> edges_of(MixedGraph(["a --> b", "b o-> c"]))[1]
    {'from': 'b', 'to': 'c', 'kind': 'mixed', 'text': 'b o-> c'}
    """
    if isinstance(graph, DAG):
        return [{"from": a, "to": b, "kind": "arrow", "text": f"{a} --> {b}"} for a, b in graph.edges]
    if isinstance(graph, UndirectedGraph):
        return [{"from": a, "to": b, "kind": "line", "text": f"{a} --- {b}"} for a, b in graph.edges]
    found = []
    for a, b, left, right in graph.edges:
        kind = {(Mark.TAIL, Mark.ARROW): "arrow", (Mark.ARROW, Mark.TAIL): "arrow", (Mark.TAIL, Mark.TAIL): "line"}.get(
            (left, right), "mixed"
        )  # fmt: skip
        tail, head = (b, a) if left is Mark.ARROW and right is Mark.TAIL else (a, b)
        found.append({"from": tail, "to": head, "kind": kind, "text": edge_string((a, b, left, right))})
    return found


def _prior(name: str) -> Any:
    if name not in PRIORS:
        raise InvalidArgument(f"a prior is one of {', '.join(PRIORS)}, not {name!r}")
    return None if name == "none" else name
