"""The studio's own endpoints: one table, and the handlers that do little more than call the module that knows."""

from typing import Any

from markovia.errors import InvalidArgument
from markovia.runtime import ports
from markovia.studio import first_page
from markovia.studio.documents import answers, edits, messages
from markovia.studio.documents.document import kind_of, outside_model
from markovia.studio.documents.endpoints import Call, Endpoint, File
from markovia.studio.documents.model_files import stem
from markovia.studio.documents.views import graph_of, node_of, view_of

MEDIA = {"json": "application/json", "xmlbif": "application/xml", "xdsl": "application/xml"}


def openapi(call: Call) -> dict[str, Any]:
    """Describe the API."""
    from markovia.studio.app import endpoints
    from markovia.studio.http.openapi import described

    return described(endpoints(), "markovia studio")


def documents(call: Call) -> list[messages.Summary]:
    """List the open models."""
    call.workspace.ready.wait(first_page.PATIENCE)
    listed = []
    for document in call.workspace.documents:
        snapshot = document.now
        names, edges = graph_of(snapshot.model)
        listed.append(
            messages.Summary(
                document.id, snapshot.name, kind_of(snapshot.model), len(names), len(edges), document.changed
            )
        )
    return listed


def open_model(call: Call) -> messages.View:
    """Open a model."""
    body, work = call.body, call.workspace
    ways = [w for w in (body.example, body.file, body.new, body.recover) if w is not None]
    if len(ways) != 1:
        raise InvalidArgument(f"say one of example, file, new and recover, not {len(ways)} of them")
    if body.example is not None:
        document = work.example(body.example, body.steps)
    elif body.file is not None:
        document = work.open_file(body.file, body.steps)
    elif body.new is not None:
        document = work.new(body.new)
    else:
        document = work.recover(body.recover)
    return view_of(document, call.workspace.limit)


def upload(call: Call) -> messages.View:
    """Open an uploaded file."""
    return view_of(call.workspace.upload(call.query.get("name", "model"), call.body))


def show(call: Call) -> messages.View:
    """Show an open model."""
    return view_of(call.workspace.document(call.path["id"]))


def close(call: Call) -> messages.Done:
    """Close a model."""
    call.workspace.close(call.path["id"])
    return messages.Done()


def download(call: Call) -> File:
    """Return a model as a file."""
    document = call.workspace.document(call.path["id"])
    name = call.query.get("format", "json")
    text: str = ports.call("dumps", outside_model(document.now), name)
    found = next(
        (f for f in ports.call("formats").values() if name.casefold() in (f.name, *f.suffixes)), None
    )
    suffix = found.suffixes[0] if found is not None else f".{name}"
    return File(
        text.encode("utf-8", "replace"),
        f"{stem(document.now.name)}{suffix}",
        MEDIA.get(name, "text/plain; charset=utf-8"),
    )


def save(call: Call) -> messages.Saved:
    """Save a model into the folder."""
    document = call.workspace.document(call.path["id"])
    return messages.Saved(call.workspace.save(document, call.body.file, call.body.format))


def undo(call: Call) -> messages.View:
    """Undo a change."""
    return _stepped(call, -1)


def redo(call: Call) -> messages.View:
    """Redo a change."""
    return _stepped(call, 1)


def _stepped(call: Call, by: int) -> messages.View:
    document = call.workspace.document(call.path["id"])
    document.step(by)
    call.workspace.autosave(document)
    return view_of(document, call.workspace.limit)


def edit(call: Call) -> messages.View:
    """Change a model."""
    document = call.workspace.document(call.path["id"])
    document.change(lambda snapshot: edits.edited(snapshot, call.body))
    view = view_of(document, call.workspace.limit)
    call.workspace.autosave(document)
    return view


def node(call: Call) -> messages.Node:
    """Show one node with its distribution."""
    return node_of(call.workspace.document(call.path["id"]), call.path["name"])


M = "/api/models/{id}"
m = messages
ENDPOINTS = [
    *first_page.ENDPOINTS,
    Endpoint("GET", "/api/openapi.json", None, dict[str, Any], openapi, "Describe this API."),
    Endpoint("GET", "/api/models", None, list[m.Summary], documents, "List the open models."),
    Endpoint("POST", "/api/models", m.Open, m.View, open_model, "Open a model."),
    Endpoint(
        "POST", "/api/models/upload", bytes, m.View, upload, "Open an uploaded file.",
        {"name": "the name of the file, whose suffix says the format"},
    ),
    Endpoint("GET", M, None, m.View, show, "Show an open model."),
    Endpoint("DELETE", M, None, m.Done, close, "Close a model."),
    Endpoint(
        "GET", f"{M}/file", None, None, download, "Return the model as a file.", {"format": "the name of a format"}
    ),
    Endpoint("POST", f"{M}/save", m.SaveAs, m.Saved, save, "Save the model into the folder."),
    Endpoint("POST", f"{M}/undo", None, m.View, undo, "Undo the last change."),
    Endpoint("POST", f"{M}/redo", None, m.View, redo, "Redo what was undone."),
    Endpoint("POST", f"{M}/edit", edits.AnyEdit, m.View, edit, "Change the model."),
    Endpoint("GET", f"{M}/nodes/{{name:path}}", None, m.Node, node, "Show a node with its distribution."),
    Endpoint("POST", f"{M}/marginals", m.AskMarginals, m.Marginals, answers.marginals, "Posteriors of all variables."),
    Endpoint("POST", f"{M}/query", m.AskQuery, m.Joint, answers.query, "The joint posterior of some variables."),
    Endpoint("POST", f"{M}/map", m.AskMap, m.Explanations, answers.best, "The most probable explanations."),
    Endpoint(
        "POST", f"{M}/separation", m.AskSeparation, m.Separation, answers.separation,
        "Whether sets are independent, and why.",
    ),
    Endpoint("POST", f"{M}/blanket", m.AskBlanket, m.Blanket, answers.blanket, "A Markov blanket by role."),
    Endpoint(
        "POST", f"{M}/next_test", m.AskNextTest, m.NextTest, answers.next_test, "Which finding would tell most."
    ),
    Endpoint(
        "POST", f"{M}/sensitivity", m.AskSensitivity, m.Tornado, answers.sensitivity,
        "Which numbers of the model an answer depends on.",
    ),
    Endpoint("POST", f"{M}/shading", m.AskShading, m.Shading, answers.shading, "One number a variable, to colour by."),
    Endpoint("POST", f"{M}/conflict", m.AskConflict, m.Conflict, answers.conflict, "Whether the findings fit together."),
    Endpoint("POST", f"{M}/sample", m.AskSample, m.Sample, answers.sample, "Rows drawn from the model."),
    Endpoint("POST", f"{M}/compare", m.AskCompare, m.Comparison, answers.compare, "Where two graphs differ."),
]  # fmt: skip
