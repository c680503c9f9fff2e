"""Uploaded tables, jobs and causal questions: what starts, or is answered, when a request arrives."""

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
from markovia.studio.documents.endpoints import Call, Endpoint, File
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
from markovia.studio.jobs.tables import Table, Tables

POLL = 0.1
"""Seconds between two looks at a job for its stream of events."""
ALIVE = 15.0
"""Seconds after which a quiet stream shows that it lives."""


P = TypeVar("P")
_making = threading.Lock()


def part(call: Call, name: str, make: Callable[[], P]) -> P:
    """Return something that lives as long as the server."""
    with _making:
        if name not in call.parts:
            call.parts[name] = make()
        found: P = call.parts[name]
        return found


def jobs_of(call: Call) -> Jobs:
    """Return the server's jobs."""
    return part(call, "jobs", Jobs)


def tables_of(call: Call) -> Tables:
    """Return the server's uploaded tables."""
    return part(call, "tables", Tables)


def shut(parts: dict[str, Any]) -> None:
    """End all jobs and remove uploaded tables; for the end of the server."""
    for one in parts.values():
        if isinstance(one, Jobs | Tables):
            one.close()


# -- tables ------------------------------------------------------------------------------------------------------


def upload(call: Call) -> Table:
    """Keep an uploaded table."""
    return tables_of(call).add(call.query.get("name", ""), call.body)


def table(call: Call) -> Table:
    """Describe an uploaded table."""
    return tables_of(call).get(call.path["id"])


def columns(call: Call) -> View:
    """Open the columns of a table as a network without edges."""
    tables, name = tables_of(call), call.path["id"]
    model = learning.columns_model(tables.path(name), call.body.columns, call.body.continuous)
    document = call.workspace.add(model, tables.get(name).name.rsplit(".", 1)[0])
    return view_of(document)


# -- jobs --------------------------------------------------------------------------------------------------------


def start(call: Call) -> Job:
    """Start a job of the kind that the request is of."""
    return STARTS[type(call.body)](call, call.body)


def _structure(call: Call, asked: LearnStructure) -> Job:
    tables = tables_of(call)
    into = None if asked.into is None else call.workspace.document(asked.into)
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
    for name in asked.options:
        if name in settings or name in (
            "data",
            "method",
            "progress",
            "n_jobs",
            "in_memory",
            "knowledge",
            "weights",
        ):
            raise InvalidArgument(f"{name!r} is no option of a method here")  # fmt: skip
    arguments = {
        "data": str(tables.path(asked.data)),
        "name": tables.get(asked.data).name.rsplit(".", 1)[0],
        "method": asked.method,
        "settings": settings | asked.options,
        "bootstrap": asked.bootstrap,
        "prior": asked.prior,
    }
    return _begin(call, asked, "learning:structure", arguments, _opening(call.workspace, into))


def _parameters(call: Call, asked: LearnParameters) -> Job:
    document = call.workspace.document(asked.model)
    arguments = {
        "model": _text(document),
        "name": document.now.name,
        "data": str(tables_of(call).path(asked.data)),
        **_fields(asked, "prior", "missing", "restarts", "latent", "seed"),
    }
    return _begin(call, asked, "learning:parameters", arguments, _opening(call.workspace, document))


def _series(call: Call, asked: SmoothSeries) -> Job:
    arguments = {**msgspec.structs.asdict(asked), "data": str(tables_of(call).path(asked.data))}
    return _begin(call, asked, "families:series", arguments)


def _topics(call: Call, asked: FindTopics) -> Job:
    arguments = {**msgspec.structs.asdict(asked), "data": str(tables_of(call).path(asked.data))}
    return _begin(call, asked, "families:topics", arguments)


def _posterior(call: Call, asked: DrawPosterior) -> Job:
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
        answers.findings(answers.networked(document.now.model), asked.given)  # says at once what is wrong
        source = {"model": _text(document), "given": asked.given}
    arguments = {"source": source, **_fields(asked, "draws", "warmup", "chains", "seed", "target_accept")}
    return _begin(call, asked, "families:posterior", arguments)


def _effect(call: Call, asked: EstimateEffect) -> Job:
    arguments = {
        **msgspec.structs.asdict(asked),
        "model": _text(call.workspace.document(asked.model)),
        "data": str(tables_of(call).path(asked.data)),
    }
    return _begin(call, asked, "causality:effect", arguments)


def batch(call: Call) -> Job:
    """Answer every row of a table, in a job."""
    document = call.workspace.document(call.path["id"])
    answers.networked(document.now.model)
    arguments = {
        "model": _text(document),
        "data": str(tables_of(call).path(call.body.data)),
        "targets": call.body.targets,
    }
    return jobs_of(call).start("batch", "markovia.studio.jobs.learning:batch", arguments)


STARTS: dict[type, Callable[..., Job]] = {
    LearnStructure: _structure,
    LearnParameters: _parameters,
    SmoothSeries: _series,
    DrawPosterior: _posterior,
    FindTopics: _topics,
    EstimateEffect: _effect,
}


def _begin(
    call: Call, asked: Any, home: str, arguments: dict[str, Any], finish: Callable[[Any], Any] | None = None
) -> Job:
    kind = str(type(asked).__struct_config__.tag)
    return jobs_of(call).start(kind, f"markovia.studio.jobs.{home}", arguments, finish)


def _fields(asked: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in names}


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
            document.change(lambda before: replace(before, model=model, positions=places))
        else:
            document = workspace.add(model, made["name"])
            document.unsaved()
        workspace.autosave(document)
        return {**result, "model": document.id}

    return finish


def _same(document: Document, model: Any) -> bool:
    """Say whether a document is of the same variables as a model."""
    before = getattr(document.now.model, "variables", None)
    after = getattr(model, "variables", None)
    return before is not None and after is not None and set(before) == set(after)


def job(call: Call) -> Job:
    """Return a job as it is now."""
    return jobs_of(call).get(call.path["id"])


def all_jobs(call: Call) -> list[Job]:
    """List the jobs."""
    return jobs_of(call).all()


def cancel(call: Call) -> Job:
    """End a job."""
    return jobs_of(call).cancel(call.path["id"])


def job_file(call: Call) -> File:
    """Return the file that a job made."""
    path = jobs_of(call).file(call.path["id"])
    return File(path.read_bytes(), path.name, "text/csv; charset=utf-8")


def events(call: Call) -> Any:
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


def methods(call: Call) -> LearningMethods:
    """List the methods of structure learning."""
    return msgspec.convert(learning.methods(), LearningMethods)


def bayesian_examples(call: Call) -> list[BayesianExample]:
    """List the Bayesian examples."""
    return [BayesianExample(name, title) for name, (title, _) in EXAMPLES.items()]


def identify(call: Call) -> Identified:
    """Answer whether an effect is identified."""
    graph, asked = call.workspace.document(call.path["id"]).now.model, call.body
    found = causality.identified(graph, asked.treatment, asked.outcome, asked.given, asked.latent)
    return msgspec.convert(found, Identified)


def counterfactual(call: Call) -> Worlds:
    """Answer what would have been for one unit."""
    model, asked = call.workspace.document(call.path["id"]).now.model, call.body
    if not isinstance(model, BayesianNetwork):
        raise UnsupportedModel("what would have been needs a directed network; this model has no directions")
    facts = answers.findings(model, asked.facts)
    do = {name: answers.setting(model, name, said) for name, said in asked.do.items()}
    return msgspec.convert(causality.counterfactual(model, asked.targets, facts, do, asked.mechanism), Worlds)


M = "/api/models/{id}"
NAMED = {"name": "The name of the file, whose ending says what it is: .csv, .tsv, .parquet, .txt"}

ENDPOINTS = [
    Endpoint("POST", "/api/data", bytes, Table, upload, "Upload a table, or a text with a document a line.", NAMED),
    Endpoint("GET", "/api/data/{id}", None, Table, table, "Describe an uploaded table."),
    Endpoint("POST", "/api/data/{id}/columns", AskColumns, View, columns, "Open columns as a network without edges."),
    Endpoint("GET", "/api/learning", None, LearningMethods, methods, "List methods, scores, tests and priors."),
    Endpoint("GET", "/api/bayesian", None, list[BayesianExample], bayesian_examples, "List the Bayesian examples."),
    Endpoint("POST", "/api/jobs", Start, Job, start, "Start long work: learning, sampling, an effect."),
    Endpoint("GET", "/api/jobs", None, list[Job], all_jobs, "List the jobs, the oldest first."),
    Endpoint("GET", "/api/jobs/{id}", None, Job, job, "Return a job as it is now."),
    Endpoint("DELETE", "/api/jobs/{id}", None, Job, cancel, "Cancel a job."),
    Endpoint("GET", "/api/jobs/{id}/events", None, None, events, "Stream a job as server-sent events until it ends."),
    Endpoint("GET", "/api/jobs/{id}/file", None, None, job_file, "Download the file that a job made."),
    Endpoint("POST", f"{M}/batch", AskBatch, Job, batch, "Answer every row of an uploaded table."),
    Endpoint("POST", f"{M}/identify", AskIdentify, Identified, identify, "Say whether an effect is identified."),
    Endpoint("POST", f"{M}/counterfactual", AskCounterfactual, Worlds, counterfactual, "Say what would have been."),
]  # fmt: skip
"""What this module answers, in the form of the server's table."""
