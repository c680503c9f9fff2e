"""One open model: its history, and what it is in the page and in a file.

A document is a list of snapshots and a pointer into it. A snapshot is never changed: an edit copies the model, changes the
copy and appends it, so that a question keeps the model it began with.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.runtime import ports
from markovia.studio.documents.endpoints import StaleRevision

MOST_STEPS = 200
"""Steps that can be undone."""
KEPT_STEPS = 20
KEPT_SIZE = 2**21
"""Steps before and after the present one that survive a crash, and the characters that their models may have."""

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
        self.revision = 0
        """Counts changes, undone and redone ones too: who has seen another number has seen another model."""
        self.lock = threading.RLock()
        self._steps = [snapshot]
        self._at = 0
        self._saved: Snapshot | None = snapshot
        self._doing: dict[Any, Any] = {}
        self._texts: list[tuple[Any, str]] = []

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

    def change(self, edit: Callable[[Snapshot], Snapshot], seen: int | None = None) -> None:
        """Append what an edit makes of the present snapshot; what was undone before is forgotten.

        `seen` is the revision that the editor saw; where the document has another one by now, it stays as it is.
        """
        with self.lock:
            self._check_seen(seen)
            after = edit(self.now)
            self._steps = [*self._steps[: self._at + 1], after][-MOST_STEPS - 1 :]
            self._at = len(self._steps) - 1
            self.revision += 1

    def _check_seen(self, seen: int | None) -> None:
        if seen is not None and seen != self.revision:
            raise StaleRevision(
                f"{self.now.name!r} was changed elsewhere (revision {self.revision}, and you saw {seen}); "
                "reload it, or send the change again without a revision to make it all the same"
            )

    def step(self, by: int, seen: int | None = None) -> None:
        """Undo (-1) or redo (1)."""
        with self.lock:
            self._check_seen(seen)
            if not 0 <= self._at + by < len(self._steps):
                raise InvalidArgument(f"there is nothing to {'undo' if by < 0 else 'redo'}")
            self._at += by
            self.revision += 1

    def kept(self) -> dict[str, Any]:
        """Return the present step and those around it as JSON can hold them; for one thread at a time."""
        with self.lock:
            steps, at = list(self._steps), self._at
        texts: list[tuple[Any, str]] = []

        def told(step: Snapshot) -> dict[str, Any]:
            place = next((k for k, (model, _) in enumerate(texts) if model is step.model), len(texts))
            if place == len(texts):
                known = next((pair for pair in self._texts if pair[0] is step.model), None)
                texts.append(known or (step.model, ports.call("dumps", step.model, "json")))
            return {
                "model": place,
                "name": step.name,
                "positions": dict(step.positions),
                "notes": dict(step.notes),
            }

        def some(part: Iterable[Snapshot]) -> list[dict[str, Any]]:
            small = takewhile(lambda _: sum(len(text) for _, text in texts) < KEPT_SIZE, part)
            return [told(step) for step in small]

        now = told(steps[at])
        before = some(reversed(steps[max(0, at - KEPT_STEPS) : at]))[::-1]
        after = some(steps[at + 1 : at + 1 + KEPT_STEPS])
        self._texts = texts
        return {
            "steps": [*before, now, *after],
            "at": len(before),
            "models": [text for _, text in texts],
        }

    def recall(self, steps: Sequence[Snapshot], at: int) -> None:
        """Take up the steps that were kept; none of them is in a file."""
        with self.lock:
            self._steps, self._at = list(steps), at
            self.unsaved()

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
    from markovia.graphs.kinds.directed import DAG
    from markovia.graphs.kinds.mixed import MixedGraph
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
