"""Open documents: what is loaded, its history, where it may be saved, and what a crash leaves behind.

A document is a list of snapshots and a pointer into it. A snapshot is never changed: an edit copies the model, changes the
copy and appends it, so that a question keeps the model it began with. Every change is written to the state folder by one
thread of its own, whole files at a time; what was not saved when a server ended is offered by the next one.
"""

import json
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from markovia.errors import InvalidArgument, MarkoviaError, TooLarge, UnsupportedModel, did_you_mean
from markovia.runtime import ports
from markovia.studio.documents.endpoints import Busy, Costly, NotFound, Refused, TooBig

MOST_DOCUMENTS = 200
MOST_STEPS = 200
"""Steps that can be undone."""
MOST_RECENT = 12
MAX_UNPACKED = 2**28
"""Bytes that an upload may unpack to."""
FORGOTTEN = 30 * 86_400
"""Seconds after which an autosaved document is no longer kept."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Snapshot:
    """A model at one moment, with what the page knows of it; nobody changes it."""

    model: Any
    name: str
    positions: Mapping[str, Point] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


class Document:
    """One open model and its history."""

    def __init__(self, id: str, snapshot: Snapshot, *, file: str | None = None, about: str = "") -> None:  # noqa: A002
        self.id = id
        self.file = file
        self.about = about
        self.lock = threading.RLock()
        self._steps = [snapshot]
        self._at = 0
        self._saved: Snapshot | None = snapshot
        self._doing: dict[Any, Any] = {}

    @property
    def now(self) -> Snapshot:
        """The document as it stands."""
        return self._steps[self._at]

    @property
    def changed(self) -> bool:
        """Whether there is something to save."""
        return self.now is not self._saved

    @property
    def can_undo(self) -> bool:
        """Whether there is an earlier step."""
        return self._at > 0

    @property
    def can_redo(self) -> bool:
        """Whether a step was undone."""
        return self._at + 1 < len(self._steps)

    def change(self, edit: Callable[[Snapshot], Snapshot]) -> None:
        """Append what an edit makes of the present snapshot; what was undone before is forgotten."""
        with self.lock:
            after = edit(self.now)
            self._steps = [*self._steps[: self._at + 1], after][-MOST_STEPS - 1 :]
            self._at = len(self._steps) - 1

    def step(self, by: int) -> None:
        """Undo (-1) or redo (1)."""
        with self.lock:
            if not 0 <= self._at + by < len(self._steps):
                raise InvalidArgument(f"there is nothing to {'undo' if by < 0 else 'redo'}")
            self._at += by

    def place(self, positions: Mapping[str, Point]) -> None:
        """Remember where a first layout put the nodes; that is no step of its own."""
        with self.lock:
            placed = replace(self.now, positions=dict(positions))
            if self._saved is self.now:
                self._saved = placed
            self._steps[self._at] = placed

    def saved(self, snapshot: Snapshot) -> None:
        """Remember that this snapshot is in a file."""
        with self.lock:
            self._saved = snapshot

    def unsaved(self) -> None:
        """Count the present snapshot as not saved anywhere."""
        with self.lock:
            self._saved = None

    def doing(self, do: Mapping[str, Any]) -> Any:
        """Return the model after interventions; the last few are kept, with what was compiled for them."""
        model = self.now.model
        if not do:
            return model
        if not hasattr(model, "do"):
            raise UnsupportedModel("interventions need a directed network; this model has no directions")
        key = (id(model), tuple(sorted(do.items(), key=lambda pair: pair[0])))
        with self.lock:
            kept = self._doing.pop(key, None)
        if kept is None or kept[0] is not model:
            kept = (model, model.do(do))
        with self.lock:
            self._doing[key] = kept
            while len(self._doing) > 4:
                self._doing.pop(next(iter(self._doing)))
        return kept[1]


class Workspace:
    """All open documents of a server, the folder it may read and write, and its state folder.

    Parameters
    ----------
    folder
        Where files are opened and saved; nothing outside it is touched. None for no files at all.
    state
        Where autosaved documents and the list of recent files are; None keeps nothing.
    limit
        Seconds that an exact answer may take by its estimate.
    """

    def __init__(self, folder: Path | None = None, state: Path | None = None, *, limit: float = 30.0) -> None:
        self.folder = None if folder is None else folder.resolve()
        self.state = state
        self.limit = limit
        self._documents: dict[str, Document] = {}
        self._lock = threading.Lock()
        self._saver = ThreadPoolExecutor(1, thread_name_prefix="autosave")
        self._waiting: dict[str, Future[None]] = {}
        self.ready = threading.Event()
        """Whether the model that the server was started with is open."""
        self.ready.set()

    # -- documents -----------------------------------------------------------------------------------------------

    def document(self, id: str) -> Document:  # noqa: A002
        """Return an open document."""
        try:
            return self._documents[id]
        except KeyError:
            raise NotFound(f"no open model has the id {id!r}") from None

    @property
    def documents(self) -> list[Document]:
        """The open documents, oldest first."""
        return list(self._documents.values())

    def add(self, model: Any, name: str, *, file: str | None = None, steps: int = 4) -> Document:
        """Open a model that is already in memory."""
        model, about = as_document(model, steps)
        notes = {n: p["note"] for n, p in getattr(model, "node_properties", {}).items() if "note" in p}
        document = Document(secrets.token_hex(6), Snapshot(model, name, {}, notes), file=file, about=about)
        return self._opened(document)

    def _opened(self, document: Document) -> Document:
        with self._lock:
            if len(self._documents) >= MOST_DOCUMENTS:
                raise Busy(f"{MOST_DOCUMENTS} models are open; close one first")
            self._documents[document.id] = document
        return document

    def close(self, id: str) -> None:  # noqa: A002
        """Close a document and forget its autosaved copy."""
        self.document(id)
        with self._lock:
            self._documents.pop(id, None)
        self._saver.submit(self._forget, id)

    def example(self, name: str, steps: int = 4) -> Document:
        """Open a bundled model."""
        from markovia.models.gallery.bundled import bundled_model

        return self.add(bundled_model(name), name, steps=steps)

    def new(self, name: str) -> Document:
        """Open an empty network."""
        from markovia.models.graphical.bayesian_network import BayesianNetwork

        return self.add(BayesianNetwork(name=name), name)

    # -- files ---------------------------------------------------------------------------------------------------

    def path_in_folder(self, name: str) -> Path:
        """Return the path of a file of the folder; anything that leads out of it is refused."""
        if self.folder is None:
            raise NotFound("this server was started without a folder to open or save files in")
        if "\0" in name or Path(name).is_absolute() or len(name) > 1000:
            raise NotFound(f"{name!r} is no file of the folder {self.folder.name!r}")
        try:
            path = (self.folder / name).resolve()
            path.is_file()  # a name too long for the file system says so here
        except (OSError, RuntimeError, ValueError):
            raise NotFound(f"{name!r} is no file of the folder {self.folder.name!r}") from None
        if not path.is_relative_to(self.folder) or path == self.folder:
            raise NotFound(f"{name!r} leads out of the folder {self.folder.name!r}")
        return path

    def files(self) -> list[str]:
        """List the files of the folder (not of folders in it) that may hold a model."""
        if self.folder is None:
            return []
        suffixes = readable_suffixes()
        with suppress(OSError):
            return sorted(
                p.name
                for p in self.folder.iterdir()
                if not p.name.startswith(".") and p.name.casefold().removesuffix(".gz").endswith(suffixes)
            )[:1000]
        return []

    def open_file(self, name: str, steps: int = 4) -> Document:
        """Open a file of the folder."""
        path = self.path_in_folder(name)
        if not path.is_file():
            raise NotFound(f"there is no file {name!r}{did_you_mean(name, self.files())}")
        if path.stat().st_size > MAX_UNPACKED:
            raise TooBig(f"{name!r} has {path.stat().st_size:,} bytes; the limit is {MAX_UNPACKED:,}")
        document = self.upload(path.name, path.read_bytes(), steps=steps, file=name)
        self._remember(path)
        return document

    def upload(self, name: str, data: bytes, *, steps: int = 4, file: str | None = None) -> Document:
        """Open a model from the contents of a file."""
        model = read_model(name, data)
        return self.add(model, getattr(model, "name", "") or stem(name), file=file, steps=steps)

    def save(self, document: Document, name: str, format: str | None = None) -> str:  # noqa: A002
        """Save a document into the folder."""
        path = self.path_in_folder(name)
        if not path.parent.is_dir():
            raise NotFound(f"there is no folder for {name!r}")
        snapshot = document.now
        try:
            ports.call("save", outside_model(snapshot), path, format)
        except OSError as error:
            raise Refused(f"cannot write {name!r}: {(error.strerror or str(error)).lower()}") from None
        document.file = name
        document.saved(snapshot)
        self._saver.submit(self._forget, document.id)
        self._remember(path)
        return name

    # -- autosave ------------------------------------------------------------------------------------------------

    def autosave(self, document: Document) -> None:
        """Write the document's present state soon; several changes in a row are written once."""
        if self.state is None:
            return
        with self._lock:
            waiting = self._waiting.get(document.id)
            if waiting is None or waiting.running() or waiting.done():
                self._waiting[document.id] = self._saver.submit(self._write, document)

    def flush(self) -> None:
        """Wait until everything is written."""
        self._saver.submit(lambda: None).result()

    def shut(self) -> None:
        """Write what is left and end."""
        self._saver.shutdown(wait=True)

    def recovered(self) -> list[dict[str, Any]]:
        """List autosaved documents that no open one stands for, the latest first."""
        found = []
        for path in self._kept():
            if path.stem in self._documents:
                continue
            with suppress(OSError, ValueError, KeyError, TypeError):
                kept = json.loads(path.read_bytes())
                if time.time() - kept["when"] < FORGOTTEN:
                    found.append({"id": path.stem, "name": str(kept["name"]), "when": float(kept["when"])})
        return sorted(found, key=lambda one: -one["when"])

    def recover(self, id: str) -> Document:  # noqa: A002
        """Open an autosaved document again, under its old id."""
        path = next((p for p in self._kept() if p.stem == id), None)
        if id in self._documents:
            return self._documents[id]
        if path is None:
            raise NotFound(f"no autosaved model has the id {id!r}")
        try:
            kept = json.loads(path.read_bytes())
            model = read_model("autosaved.json", kept["model"].encode())
            positions = {n: (float(x), float(y)) for n, (x, y) in kept["positions"].items()}
            snapshot = Snapshot(model, kept["name"], positions, kept["notes"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise NotFound(f"the autosaved model {id!r} cannot be read") from None
        document = Document(id, snapshot, file=kept.get("file"))
        document.unsaved()
        return self._opened(document)

    def recent(self) -> list[str]:
        """List files of the folder that were opened or saved last, as names in it."""
        if self.state is None or self.folder is None:
            return []
        with suppress(OSError, ValueError, TypeError):
            paths = [Path(p) for p in json.loads((self.state / "recent.json").read_bytes())]
            return [
                str(p.relative_to(self.folder))
                for p in paths
                if p.is_relative_to(self.folder) and p.is_file()
            ]
        return []

    def _remember(self, path: Path) -> None:
        if self.state is None:
            return
        with suppress(OSError, ValueError, TypeError), self._lock:
            kept = self.state / "recent.json"
            before = json.loads(kept.read_bytes()) if kept.exists() else []
            listed = [str(path), *(p for p in before if p != str(path))][:MOST_RECENT]
            write_whole(kept, json.dumps(listed).encode())

    def _write(self, document: Document) -> None:
        snapshot = document.now
        if self.state is None or document.id not in self._documents:
            return
        with suppress(MarkoviaError, OSError):  # a model that no file can hold has no autosaved copy
            kept = {
                "name": snapshot.name,
                "when": time.time(),
                "file": document.file,
                "positions": dict(snapshot.positions),
                "notes": dict(snapshot.notes),
                "model": ports.call("dumps", snapshot.model, "json"),
            }
            write_whole(self.state / f"{document.id}.json", json.dumps(kept).encode())

    def _forget(self, id: str) -> None:  # noqa: A002
        if self.state is not None:
            with suppress(OSError):
                (self.state / f"{id}.json").unlink(missing_ok=True)

    def _kept(self) -> Iterable[Path]:
        if self.state is None or not self.state.is_dir():
            return []
        return [p for p in self.state.glob("*.json") if p.name != "recent.json"]


def default_state() -> Path:
    """Return the folder for state that outlives a server: XDG_STATE_HOME, or ~/.local/state."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "markovia" / "studio"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file all at once: a temporary one, then a rename."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def stem(name: str) -> str:
    """Return a file's name without its suffixes."""
    return Path(name).name.removesuffix(".gz").rsplit(".", 1)[0] or "model"


def readable_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats."""
    return tuple(s for f in ports.call("formats").values() for s in f.suffixes)


def read_model(name: str, data: bytes) -> Any:
    """Read a model from the contents of a file, by the suffix of its name or by how it begins; nothing in it is run."""
    lower = name.casefold()
    if data[:2] == b"\x1f\x8b":
        data, lower = unpacked(data), lower.removesuffix(".gz")
    suffix = next((s for s in readable_suffixes() if lower.endswith(s)), None)
    format = None if suffix is None else suffix.removeprefix(".")  # noqa: A001
    if format == "json" or (format is None and data.lstrip()[:1] == b"{"):
        refuse_functions(data)
    try:
        return ports.call("loads", data, format, name)
    except RecursionError:
        raise Refused(f"{name!r} is nested too deeply to be a model") from None


def unpacked(data: bytes) -> bytes:
    """Unpack gzip, piece by piece, up to a limit."""
    import zlib

    out, reader = bytearray(), zlib.decompressobj(wbits=31)
    piece = data
    try:
        while piece and not reader.eof:
            out += reader.decompress(piece, 2**20)
            if len(out) > MAX_UNPACKED:
                raise TooBig(f"the file unpacks to more than {MAX_UNPACKED:,} bytes")
            piece = reader.unconsumed_tail
    except zlib.error:
        raise Refused("the file is not a complete gzip file") from None
    if not reader.eof:
        raise Refused("the file is not a complete gzip file")
    return bytes(out)


def refuse_functions(data: bytes) -> None:
    """Refuse JSON that names Python functions: reading those would import, and so run, code."""
    try:
        todo = [json.loads(data)]
    except (ValueError, RecursionError):
        return  # the reader says what is wrong
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            home = one.get("function")
            if isinstance(home, str) and ":" in home:
                raise UnsupportedModel(
                    f"the file names the Python function {home!r}; the studio runs no code from files, load it in Python"
                )
            todo.extend(one.values())
        elif isinstance(one, list):
            todo.extend(one)


def kind_of(model: Any) -> str:
    """Return what a document is called in the page, such as "bayesian-network"."""
    return dashed(type(model).__name__)


def dashed(name: str) -> str:
    """Return the name of a class in small letters, with a dash before what was a capital.

    Examples
    --------
    >>> dashed("BayesianNetwork")
    'bayesian-network'
    """
    return "".join(f"-{c.lower()}" if c.isupper() and k else c.lower() for k, c in enumerate(name))


def as_document(found: Any, steps: int = 4) -> tuple[Any, str]:
    """Return the model to show for what a file held, and a sentence where it is not the same."""
    from markovia.graphs.directed import DAG
    from markovia.graphs.mixed import MixedGraph
    from markovia.models.graphical.bayesian_network import BayesianNetwork
    from markovia.models.graphical.model import Model

    if isinstance(found, Model):
        return found, ""
    if isinstance(found, MixedGraph) and len(found.directed_edges()) == found.n_edges and found.is_acyclic():
        found = found.to_dag()
    if isinstance(found, DAG):
        return BayesianNetwork(found), ""
    if hasattr(found, "unroll"):
        return found.unroll(steps), f"A {type(found).__name__}, unrolled over {steps} steps."
    if hasattr(found, "network"):
        network = found.network() if callable(found.network) else found.network
        if isinstance(network, Model):
            return network, f"The network of a {type(found).__name__}."
    if hasattr(found, "nodes") and hasattr(found, "n_edges"):
        return found, "A graph without numbers."
    raise UnsupportedModel(f"the studio shows graphs and networks; this file holds a {type(found).__name__}")


def outside_model(snapshot: Snapshot) -> Any:
    """Return the model as a file gets it: with the notes of its nodes."""
    model = snapshot.model
    if not hasattr(model, "node_properties") or not hasattr(model, "copy"):
        return model
    model = model.copy()
    for name in model.variables:
        own = {k: v for k, v in model.node_properties.get(name, {}).items() if k != "note"}
        note = snapshot.notes.get(name)
        model.node_properties[name] = {**own, "note": note} if note else own
        if not model.node_properties[name]:
            del model.node_properties[name]
    model.name = snapshot.name
    return model


def estimated(error: TooLarge) -> Costly:
    """Return the refusal of a question that costs too much, with the estimate."""
    sentence = str(error).partition(", or raise ")[0].partition("; or add evidence")[0]
    return Costly(
        sentence or "the question does not fit into memory",
        {"bytes": getattr(error, "bytes", None), "operations": getattr(error, "operations", None)},
    )
