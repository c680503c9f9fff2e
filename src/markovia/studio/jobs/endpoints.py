"""Uploaded tables, jobs and causal questions: what starts, or is answered, when a request arrives."""

import re
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime import ports
from markovia.studio.documents import answers
from markovia.studio.documents.document import Document
from markovia.studio.documents.endpoints import Call, File, endpoint
from markovia.studio.documents.findings import findings, setting
from markovia.studio.documents.messages import View
from markovia.studio.documents.views import graph_of, view_of
from markovia.studio.documents.workspace import Workspace
from markovia.studio.jobs import causality, learning
from markovia.studio.jobs.bayesian_models import EXAMPLES
from markovia.studio.jobs.jobs import Job, Jobs
from markovia.studio.jobs.orders import (
    AskBatch,
    AskColumns,
    AskCounterfactual,
    AskIdentify,
    BayesianExample,
    DrawPosterior,
    EncodeRows,
    EstimateEffect,
    FindTopics,
    Identified,
    LearningMethods,
    LearnParameters,
    LearnStructure,
    SmoothSeries,
    Start,
    Worlds,
)
from markovia.studio.jobs.tables import Table, UploadedTables

POLL = 0.1
"""Seconds between two looks at a job for its stream of events."""
ALIVE = 15.0
"""Seconds after which a quiet stream shows that it lives."""
OURS = ("data", "method", "progress", "n_jobs", "in_memory", "knowledge", "weights")
"""Options of learning that are not for the page to set."""


P = TypeVar("P")
_making = threading.Lock()


def part(call: Call[object], name: str, make: Callable[[], P]) -> P:
    """Return something that lives as long as the server."""
    with _making:
        if name not in call.parts:
            call.parts[name] = make()
        found: P = call.parts[name]
        return found


def jobs_of(call: Call[object]) -> Jobs:
    """Return the server's jobs."""
    return part(call, "jobs", Jobs)


def tables_of(call: Call[object]) -> UploadedTables:
    """Return the server's uploaded tables."""
    return part(call, "tables", UploadedTables)


def shut(parts: dict[str, Any]) -> None:
    """End all jobs and remove uploaded tables; for the end of the server."""
    for one in parts.values():
        if isinstance(one, Jobs | UploadedTables):
            one.close()


# -- tables ------------------------------------------------------------------------------------------------------


def upload(call: Call[bytes]) -> Table:
    """Upload a table, or a text with a document a line."""
    return tables_of(call).add(call.query.get("name", ""), call.body)


def table(call: Call[None]) -> Table:
    """Describe an uploaded table."""
    return tables_of(call).get(call.path["id"])


def columns(call: Call[AskColumns]) -> View:
    """Open the columns of a table as a network without edges."""
    tables, name = tables_of(call), call.path["id"]
    model = learning.columns_model(tables.path(name), call.body.columns, call.body.continuous)
    document = call.workspace.add(model, tables.get(name).name.rsplit(".", 1)[0])
    return view_of(document)


# -- jobs --------------------------------------------------------------------------------------------------------


def start(call: Call[Start]) -> Job:
    """Start long work: learning, sampling, an effect."""
    asked: Any = call.body
    arguments = msgspec.structs.asdict(asked)
    if arguments.get("data") is not None:
        arguments["data"] = str(tables_of(call).path(asked.data))
    finish = None
    if isinstance(asked, LearnStructure):
        into = None if asked.into is None else call.workspace.document(asked.into)
        name = tables_of(call).get(asked.data).name.rsplit(".", 1)[0]
        name = f"{name} ({asked.method})"  # beside the table's own name, which its columns have
        arguments, finish = _structure(asked, arguments["data"], name), _opening(call.workspace, into)
    elif isinstance(asked, DrawPosterior):
        arguments = _posterior(call, asked)
    elif isinstance(asked, LearnParameters | EstimateEffect):
        document = call.workspace.document(asked.model)
        arguments["model"] = _text(document)
        if isinstance(asked, LearnParameters):
            arguments["name"], finish = document.now.name, _opening(call.workspace, document)
    kind = str(type(asked).__struct_config__.tag)
    return jobs_of(call).start(kind, f"markovia.studio.jobs.{WORK[type(asked)]}", arguments, finish)


WORK: dict[Any, str] = {
    LearnStructure: "learning:structure",
    LearnParameters: "learning:parameters",
    SmoothSeries: "families:series",
    DrawPosterior: "families:posterior",
    FindTopics: "families:topics",
    EncodeRows: "families:codes",
    EstimateEffect: "causality:effect",
}
"""Who does the work of an order; it gets the order's fields, with files and models in place of their ids."""


def _structure(asked: LearnStructure, data: str, name: str) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "score": asked.score,
        "test": asked.test,
        "alpha": asked.alpha,
        "required": asked.required or None,
        "forbidden": asked.forbidden or None,
        "tiers": asked.tiers or None,
        "max_parents": asked.max_parents,
        "names": asked.columns,
        "continuous": asked.continuous,
        "missing": asked.missing,
        "seed": asked.seed,
        "time_limit": asked.time_limit,
    }
    for option in asked.options:
        if option in settings or option in OURS:
            raise InvalidArgument(f"{option!r} is no option of a method here")
    about = {"data": data, "name": name, "method": asked.method}
    return {**about, "settings": settings | asked.options, "bootstrap": asked.bootstrap, "prior": asked.prior}


def _posterior(call: Call[object], asked: DrawPosterior) -> dict[str, Any]:
    if sum(x is not None for x in (asked.example, asked.regression, asked.model)) != 1:
        raise InvalidArgument("say exactly one of an example, a regression and a model")
    source: dict[str, Any]
    if asked.example is not None:
        source = {"example": asked.example}
    elif asked.regression is not None:
        path = str(tables_of(call).path(asked.regression.data))
        source = {"regression": {**msgspec.structs.asdict(asked.regression), "data": path}}
    else:
        document = call.workspace.document(asked.model or "")
        findings(answers.networked(document.now.model), asked.given)  # says at once what is wrong
        source = {"model": _text(document), "given": asked.given}
    settings = ("draws", "warmup", "chains", "seed", "target_accept")
    return {"source": source, **{name: getattr(asked, name) for name in settings}}


def batch(call: Call[AskBatch]) -> Job:
    """Answer every row of an uploaded table, in a job."""
    document = call.document
    answers.networked(document.now.model)
    arguments = {
        "model": _text(document),
        "data": str(tables_of(call).path(call.body.data)),
        "targets": call.body.targets,
    }
    return jobs_of(call).start("batch", "markovia.studio.jobs.learning:batch", arguments)


def _text(document: Document) -> str:
    """Return the model of a document as a job gets it."""
    found: str = ports.call("dumps", document.now.model, "json")
    return found


def _opening(workspace: Workspace, into: Document | None) -> Callable[[Any], Any]:
    """Return what turns the model in a result into a step of a document, or into a new one."""

    def finish(result: dict[str, Any]) -> dict[str, Any]:
        made = result.pop("document")
        model = ports.call("loads", made["text"], "json")
        document = into
        if document is not None and _same(document, model):
            same = graph_of(document.now.model)[1] == graph_of(model)[1]  # another graph gets another layout
            places = document.now.positions if same else {}
            now = document.now.name
            named = workspace.free_name(made["name"]) if _named_by_table(now, made["name"]) else now
            document.change(lambda before: replace(before, model=model, name=named, positions=places))
        else:
            document = workspace.add(model, workspace.free_name(made["name"]))
            document.unsaved()
        workspace.autosave(document)
        return {**result, "model": document.id}

    return finish


def _named_by_table(name: str, learned: str) -> bool:
    """Say whether a document is still called after its table, or after what was learned from it before."""
    table = learned.rpartition(" (")[0]
    return (
        bool(table)
        and learned != name
        and re.fullmatch(re.escape(table) + r"( \([\w-]+\))?( \d+)?", name) is not None
    )


def _same(document: Document, model: Any) -> bool:
    """Say whether a document is of the same variables as a model."""
    before = getattr(document.now.model, "variables", None)
    after = getattr(model, "variables", None)
    return before is not None and after is not None and set(before) == set(after)


def job(call: Call[None]) -> Job:
    """Return a job as it is now."""
    return jobs_of(call).get(call.path["id"])


def all_jobs(call: Call[None]) -> list[Job]:
    """List the jobs, the oldest first."""
    return jobs_of(call).all()


def cancel(call: Call[None]) -> Job:
    """Cancel a job."""
    return jobs_of(call).cancel(call.path["id"])


def job_file(call: Call[None]) -> File:
    """Return the file that a job made."""
    path = jobs_of(call).file(call.path["id"])
    return File(path.read_bytes(), path.name, "text/csv; charset=utf-8")


def events(call: Call[None]) -> Any:
    """Stream a job as server-sent events until it is over."""
    from starlette.responses import StreamingResponse

    jobs, name = jobs_of(call), call.path["id"]
    jobs.get(name)

    async def stream() -> AsyncIterator[bytes]:
        from anyio import sleep

        seen, quiet = -1, 0.0
        while True:
            version, now = jobs.look(name)
            if version != seen:
                seen, quiet = version, 0.0
                yield b"event: job\ndata: " + msgspec.json.encode(now) + b"\n\n"
            if now.state != "running":
                return
            await sleep(POLL)
            quiet += POLL
            if quiet >= ALIVE:
                quiet = 0.0
                yield b": still working\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


# -- choices and causal questions --------------------------------------------------------------------------------


def methods(call: Call[None]) -> LearningMethods:
    """List methods of structure learning, scores, tests and priors."""
    return msgspec.convert(learning.methods(), LearningMethods)


def bayesian_examples(call: Call[None]) -> list[BayesianExample]:
    """List the Bayesian examples."""
    return [BayesianExample(name, title) for name, (title, _) in EXAMPLES.items()]


def identify(call: Call[AskIdentify]) -> Identified:
    """Answer whether an effect is identified."""
    return causality.identified(call.document.now.model, call.body)


def counterfactual(call: Call[AskCounterfactual]) -> Worlds:
    """Answer what would have been for one unit."""
    model, asked = call.document.now.model, call.body
    if not isinstance(model, BayesianNetwork):
        raise UnsupportedModel("what would have been needs a directed network; this model has no directions")
    facts = findings(model, {**asked.facts, **asked.given})
    do = {name: setting(model, name, said) for name, said in asked.do.items()}
    return causality.counterfactual(model, asked, facts, do)


M = "/api/models/{id}"
ENDPOINTS = [
    endpoint("POST", "/api/data", upload, name="the file's name; its suffix says what it is: .csv, .tsv, .parquet, .txt"),
    endpoint("GET", "/api/data/{id}", table),
    endpoint("POST", "/api/data/{id}/columns", columns),
    endpoint("GET", "/api/learning", methods),
    endpoint("GET", "/api/bayesian", bayesian_examples),
    endpoint("POST", "/api/jobs", start),
    endpoint("GET", "/api/jobs", all_jobs),
    endpoint("GET", "/api/jobs/{id}", job),
    endpoint("DELETE", "/api/jobs/{id}", cancel),
    endpoint("GET", "/api/jobs/{id}/events", events),
    endpoint("GET", "/api/jobs/{id}/file", job_file),
    endpoint("POST", f"{M}/batch", batch),
    endpoint("POST", f"{M}/identify", identify),
    endpoint("POST", f"{M}/counterfactual", counterfactual),
]  # fmt: skip
"""What this module answers, in the form of the server's table."""
