"""The studio's own endpoints: one table, and the handlers that do little more than call the module that knows."""

from markovia.errors import InvalidArgument
from markovia.runtime import ports
from markovia.studio import first_page
from markovia.studio.documents import answers, decision_answers, edits
from markovia.studio.documents import messages as m
from markovia.studio.documents.document import kind_of, outside_model
from markovia.studio.documents.edit_messages import AnyEdit
from markovia.studio.documents.endpoints import Call, File, endpoint
from markovia.studio.documents.model_files import stem
from markovia.studio.documents.views import graph_of, node_of, view_of

MEDIA = {"json": "application/json", "xmlbif": "application/xml", "xdsl": "application/xml"}


def documents(call: Call[None]) -> list[m.Summary]:
    """List the open models."""
    call.workspace.ready.wait(first_page.PATIENCE)
    listed = []
    for document in call.workspace.documents:
        snapshot = document.now
        names, edges = graph_of(snapshot.model)
        listed.append(
            m.Summary(
                document.id,
                snapshot.name,
                kind_of(snapshot.model),
                len(names),
                len(edges),
                document.changed,
                document.file,
                document.revision,
            )
        )
    return listed


def open_model(call: Call[m.Open]) -> m.View:
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
        document = work.recover(body.recover or "")
    return view_of(document, call.workspace.limit)


def upload(call: Call[bytes]) -> m.View:
    """Open an uploaded file."""
    return view_of(call.workspace.upload(call.query.get("name", "model"), call.body))


def show(call: Call[None]) -> m.View:
    """Show an open model."""
    return view_of(call.document)


def close(call: Call[None]) -> m.Done:
    """Close a model."""
    call.workspace.close(call.path["id"])
    return m.Done()


def download(call: Call[None]) -> File:
    """Return a model as a file."""
    document = call.document
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


def save(call: Call[m.SaveAs]) -> m.Saved:
    """Save a model into the folder."""
    document = call.document
    return m.Saved(call.workspace.save(document, call.body.file, call.body.format))


def undo(call: Call[None]) -> m.View:
    """Undo a change."""
    return _stepped(call, -1)


def redo(call: Call[None]) -> m.View:
    """Redo a change."""
    return _stepped(call, 1)


def _stepped(call: Call[None], by: int) -> m.View:
    document = call.document
    document.step(by, call.revision)
    call.workspace.autosave(document)
    return view_of(document, call.workspace.limit)


def edit(call: Call[AnyEdit]) -> m.View:
    """Change a model."""
    document = call.document
    document.change(lambda snapshot: edits.edited(snapshot, call.body), call.revision)
    view = view_of(document, call.workspace.limit)
    call.workspace.autosave(document)
    return view


def node(call: Call[None]) -> m.Node:
    """Show one node with its distribution."""
    return node_of(call.document, call.path["name"])


M = "/api/models/{id}"
SEEN = "the revision that was seen; where the model has another one by now, the answer is 409 and nothing changes"
ENDPOINTS = [
    endpoint("GET", "/api/models", documents),
    endpoint("POST", "/api/models", open_model),
    endpoint("POST", "/api/models/upload", upload, name="the name of the file, whose suffix says the format"),
    endpoint("GET", M, show),
    endpoint("DELETE", M, close),
    endpoint("GET", f"{M}/file", download, format="the name of a format"),
    endpoint("POST", f"{M}/save", save),
    endpoint("POST", f"{M}/undo", undo, revision=SEEN),
    endpoint("POST", f"{M}/redo", redo, revision=SEEN),
    endpoint("POST", f"{M}/edit", edit, revision=SEEN),
    endpoint("GET", f"{M}/nodes/{{name:path}}", node),
    endpoint("POST", f"{M}/marginals", answers.marginals),
    endpoint("POST", f"{M}/query", answers.query),
    endpoint("POST", f"{M}/map", answers.best),
    endpoint("POST", f"{M}/separation", answers.separation),
    endpoint("POST", f"{M}/blanket", answers.blanket),
    endpoint("POST", f"{M}/next_test", answers.next_test),
    endpoint("POST", f"{M}/sensitivity", answers.sensitivity),
    endpoint("POST", f"{M}/shading", answers.shading),
    endpoint("POST", f"{M}/conflict", answers.conflict),
    endpoint("POST", f"{M}/sample", answers.sample),
    endpoint("POST", f"{M}/decide", decision_answers.decide),
    endpoint("POST", f"{M}/compare", answers.compare),
]
