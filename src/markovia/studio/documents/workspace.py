"""Open documents: what is loaded, where it may be saved, and what a crash leaves behind.

Every change is written to the state folder by one thread of its own, whole files at a time; what was not saved when a
server ended is offered by the next one.
"""

import json
import os
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from markovia.errors import MarkoviaError, did_you_mean
from markovia.runtime import ports
from markovia.runtime.whole_files import write_whole
from markovia.studio.documents.document import Document, Snapshot, as_document, outside_model
from markovia.studio.documents.endpoints import Busy, NotFound, Refused, TooBig
from markovia.studio.documents.model_files import MAX_UNPACKED, read_model, readable_suffixes, stem

MOST_DOCUMENTS = 200
MOST_RECENT = 12
FORGOTTEN = 30 * 86_400
"""Seconds after which an autosaved document is no longer kept."""


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

        own = self.free_name(name)
        return self.add(BayesianNetwork(name=own), own)

    def free_name(self, name: str) -> str:
        """Return a name that no open document has: with a number behind it where one does."""
        taken = {document.now.name for document in self.documents}
        return next(n for k in count(1) if (n := name if k == 1 else f"{name} {k}") not in taken)

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
            models = [read_model("autosaved.json", text.encode()) for text in kept["models"]]
            steps = [_snapshot(models[step["model"]], step) for step in kept["steps"]]
            at = range(len(steps))[kept["at"]]
        except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
            raise NotFound(f"the autosaved model {id!r} cannot be read") from None
        document = Document(id, steps[at], file=kept.get("file"))
        document.recall(steps, at)
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
            _keep(kept, listed)

    def _write(self, document: Document) -> None:
        if self.state is None or document.id not in self._documents:
            return
        with suppress(MarkoviaError, OSError):  # a model that no file can hold has no autosaved copy
            now = {"name": document.now.name, "when": time.time(), "file": document.file}
            kept = {**now, **document.kept()}
            _keep(self.state / f"{document.id}.json", kept)

    def _forget(self, id: str) -> None:  # noqa: A002
        if self.state is not None:
            with suppress(OSError):
                (self.state / f"{id}.json").unlink(missing_ok=True)

    def _kept(self) -> Iterable[Path]:
        if self.state is None or not self.state.is_dir():
            return []
        return [p for p in self.state.glob("*.json") if p.name != "recent.json"]


def _snapshot(model: Any, step: Mapping[str, Any]) -> Snapshot:
    """Return a step of an autosaved document."""
    positions = {n: (float(x), float(y)) for n, (x, y) in step["positions"].items()}
    return Snapshot(model, str(step["name"]), positions, dict(step["notes"]))


def default_state() -> Path:
    """Return the folder for state that outlives a server: XDG_STATE_HOME, or ~/.local/state."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "markovia" / "studio"


def _keep(path: Path, what: Any) -> None:
    """Write state for the next server, which nobody else is to read."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(path, json.dumps(what).encode(), private=True)
