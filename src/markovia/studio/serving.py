"""One model behind HTTP, for prediction: single rows and batches, with health, metrics and limits.

The model is loaded and compiled once a worker. A single row is one question to its junction tree; a batch goes through
`predict_proba`, which runs all rows in compiled code. `from_environment` is what several workers start from.
"""

import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from markovia.data.tables.row_sources import MISSING, CodedTable
from markovia.errors import ImpossibleEvidence, InvalidArgument, check_known
from markovia.inference.posterior import Posterior
from markovia.runtime import ports
from markovia.studio.documents import answers, messages
from markovia.studio.documents.document import kind_of
from markovia.studio.documents.endpoints import Call, TooBig, endpoint
from markovia.studio.documents.findings import evidence_of
from markovia.studio.documents.messages import Cell, Finding, Given, Name, Strict
from markovia.studio.documents.views import labels
from markovia.studio.documents.workspace import Workspace
from markovia.studio.first_page import health
from markovia.studio.http.requests import RequestGate, no_such, own_fault, route

if TYPE_CHECKING:
    from starlette.types import ASGIApp

VARIABLE = "MARKOVIA_SERVE"
"""The environment variable that carries the settings to workers."""
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds of the histogram of answering times."""
Row = Given


class Settings(Struct, kw_only=True):
    """How a model is served."""

    model: str
    format: str | None = None
    token: str | None = None
    open_health: bool = False
    hosts: tuple[str, ...] | None = None
    max_rows: int = 10_000
    max_body: int = 2**24
    threads: int = 8
    waiting: int = 256
    limit: float = 10.0
    patience: float = 30.0


class Predict(Strict, kw_only=True):
    """What to predict: the targets, given what is known of one case or of each of several.

    What is null or left out is not known. `row` and `rows` are older words for `given` with one case and with several.
    """

    targets: Annotated[list[Name], Meta(min_length=1, max_length=1000)]
    given: Row | list[Row] | None = None
    row: Row | None = None
    rows: list[Row] | None = None


class Prediction(Struct):
    """Predictions by target, one entry a row; null where a row is impossible.

    `states` are the columns of `p`; `best` is the most probable state, or the mean of a number, whose deviation is in `sd`.
    """

    states: dict[str, list[str]]
    p: dict[str, list[list[float] | None]]
    best: dict[str, list[str | float | None]]
    sd: dict[str, list[float | None]]


class ServedVariable(Struct):
    """A variable of the served model; `states` is null for a number."""

    name: str
    states: list[str] | None


class Served(Struct):
    """The served model."""

    name: str
    kind: str
    variables: list[ServedVariable]


class Metrics:
    """Counts of one worker, in the text format of Prometheus."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._sums: Counter[str] = Counter()
        self.rows = 0

    def note(self, path: str, status: int, seconds: float) -> None:
        """Count an answer."""
        bound = next((b for b in SECONDS if seconds <= b), float("inf"))
        with self._lock:
            self._answers[path, status] += 1
            self._buckets[path, bound] += 1
            self._sums[path] += seconds  # type: ignore[assignment]

    def add_rows(self, n: int) -> None:
        """Count predicted rows."""
        with self._lock:
            self.rows += n

    def text(self) -> str:
        """Return all counts."""
        with self._lock:
            answers, buckets, sums, rows = (
                dict(self._answers),
                dict(self._buckets),
                dict(self._sums),
                self.rows,
            )
        worker = f'worker="{os.getpid()}"'
        lines = ["# TYPE markovia_requests_total counter"]
        lines += [
            f'markovia_requests_total{{path="{path}",status="{status}",{worker}}} {n}'
            for (path, status), n in sorted(answers.items())
        ]
        lines.append("# TYPE markovia_request_seconds histogram")
        for path in sorted(sums):
            total = 0
            for bound in (*SECONDS, float("inf")):
                total += buckets.get((path, bound), 0)
                told = "+Inf" if bound == float("inf") else f"{bound:g}"
                lines.append(f'markovia_request_seconds_bucket{{path="{path}",le="{told}",{worker}}} {total}')
            lines.append(f'markovia_request_seconds_sum{{path="{path}",{worker}}} {sums[path]:.6f}')
            lines.append(f'markovia_request_seconds_count{{path="{path}",{worker}}} {total}')
        lines += ["# TYPE markovia_rows_total counter", f"markovia_rows_total{{{worker}}} {rows}", ""]
        return "\n".join(lines)


def create(settings: Settings) -> "ASGIApp":
    """Return the application that serves one model.

    Examples
    --------
    >>> from starlette.testclient import TestClient
    >>> with TestClient(create(Settings(model="asia"))) as client:
    ...     said = client.post("/predict", json={"targets": ["lung"], "row": {"xray": "yes"}}).json()
    >>> said["best"], [round(x, 4) for x in said["p"]["lung"][0]]
    ({'lung': ['no']}, [0.4887, 0.5113])
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from markovia.studio.http.door import Door

    workspace = Workspace(limit=settings.limit)
    model = ports.call("load", settings.model, settings.format)
    document = workspace.add(model, getattr(model, "name", "") or Path(settings.model).stem)
    gate = RequestGate(
        max_body=settings.max_body,
        patience=settings.patience,
        threads=settings.threads,
        waiting=settings.waiting,
    )
    metrics = Metrics()
    parts = {"settings": settings, "metrics": metrics}
    _compile(workspace, document.id)

    def call(**given: Any) -> Call[Any]:
        given["path"] = {**given.get("path", {}), "id": document.id}
        return Call(workspace=workspace, parts=parts, **given)

    routes = [route(one, call, gate) for one in ENDPOINTS]
    routes.append(Route("/metrics", lambda request: PlainTextResponse(metrics.text())))
    inner = Starlette(routes=routes, exception_handlers={HTTPException: no_such, Exception: own_fault})
    known = {r.path for r in routes}

    async def counted(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        start, status = perf_counter(), 500

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await inner(scope, receive, watched)
        finally:
            path = scope["path"] if scope["path"] in known else "other"
            metrics.note(path, status, perf_counter() - start)

    return Door(
        counted, settings.token, settings.hosts, unguarded=("/health",) if settings.open_health else ()
    )


def from_environment() -> "ASGIApp":
    """Return the application for a worker, whose settings are in the environment."""
    return create(msgspec.json.decode(os.environ[VARIABLE], type=Settings))


def _compile(workspace: Workspace, id: str) -> None:  # noqa: A002
    """Load the kernels and compile the model, so that no first request waits for it."""
    from markovia.inference.choosing.auto import load_kernels

    load_kernels()
    if not answers.networked(workspace.document(id).now.model).has_quantities:
        answers.marginals(Call(workspace, {"id": id}, body=messages.AskMarginals()))


def served(call: Call[None]) -> Served:
    """Describe the model."""
    now = call.document.now
    return Served(
        now.name, kind_of(now.model), [ServedVariable(n, labels(now.model, n)) for n in now.model.variables]
    )


def described(call: Call[None]) -> dict[str, Any]:
    """Describe the API."""
    from markovia.studio.http.openapi import described

    return described(ENDPOINTS, "markovia serve", bearer=call.parts["settings"].token is not None)


def predict(call: Call[Predict]) -> Prediction:
    """Predict the targets of one row or of many."""
    body: Predict = call.body
    told = [x for x in (body.given, body.row, body.rows) if x is not None]
    if len(told) != 1:
        raise InvalidArgument(
            f"say given once: what is known of one case, or a list of several; not {len(told)} of given, row and rows"
        )
    rows = told[0] if isinstance(told[0], list) else [told[0]]
    most = call.parts["settings"].max_rows
    if len(rows) > most:
        raise TooBig(f"the body has {len(rows):,} rows; the limit is {most:,}")
    call.parts["metrics"].add_rows(len(rows))
    model = call.document.now.model
    for name in body.targets:
        model.variable(name)
    known = {n: _reader(model, n) for n in dict.fromkeys(n for row in rows for n in row)}
    if len(rows) == 1:
        return _one(call, model, rows[0], known)
    # what is more than a plain cell (likelihoods, an interval) is asked row by row, all others at once in compiled code
    rich = [k for k, row in enumerate(rows) if any(isinstance(x, Finding) for x in row.values())]
    if not rich:
        return _many(call, model, rows, known)
    plain = sorted(set(range(len(rows))) - set(rich))
    parts = [([k], _one(call, model, rows[k], known)) for k in rich]
    if plain:
        parts.append((plain, _many(call, model, [rows[k] for k in plain], known)))
    return _in_order(parts, len(rows))


def _in_order(parts: Sequence[tuple[list[int], Prediction]], n: int) -> Prediction:
    """Return one answer of several, each of which is of the rows at some places."""
    said = Prediction(parts[0][1].states, {}, {}, {})
    for places, part in parts:
        for field in ("p", "best", "sd"):
            for name, values in getattr(part, field).items():
                column = getattr(said, field).setdefault(name, [None] * n)
                for place, value in zip(places, values, strict=True):
                    column[place] = value
    return said


def _one(call: Call[Predict], model: Any, row: Row, known: Mapping[str, Any]) -> Prediction:
    """Predict a single row by one question to the compiled model."""
    targets = call.body.targets
    given = {n: known[n](x) for n, x in row.items() if x is not None and n not in targets}
    said = Prediction({}, {}, {}, {})
    try:
        engine = answers.engine_of(model, given, "auto", call.workspace.limit)
        found: Mapping[str, Any] = model.marginals(given=given, targets=targets, engine=engine)
    except ImpossibleEvidence:
        found = {}
    for name in targets:
        posterior = found.get(name)
        if posterior is not None and not isinstance(posterior, Posterior):
            said.best[name], said.sd[name] = [float(posterior.mean())], [float(posterior.sd())]
            continue
        states = labels(model, name)
        if states is None:
            said.best[name], said.sd[name] = [None], [None]
            continue
        said.states[name] = states
        said.p[name] = [None if posterior is None else posterior.values.tolist()]
        said.best[name] = [None if posterior is None else states[int(posterior.values.argmax())]]
    return said


def _many(call: Call[Predict], model: Any, rows: list[Row], known: Mapping[str, Any]) -> Prediction:
    """Predict many rows at once."""
    import numpy as np

    targets = call.body.targets
    said = Prediction({}, {}, {}, {})
    if not rows:
        return said
    columns = {n: read for n, read in known.items() if n not in targets}
    if not columns:  # nothing is known of any row: each has the answer that it would have alone
        alone, n = _one(call, model, {}, known), len(rows)
        for name in targets:
            if name in alone.states:
                said.states[name], said.p[name] = alone.states[name], alone.p[name] * n
            else:
                said.sd[name] = alone.sd[name] * n
            said.best[name] = alone.best[name] * n
        return said
    given = (_frame if model.has_quantities else _codes)(model, rows, columns)
    found = model.marginals(given=given, targets=targets, progress=False, impossible="nan")
    for name in targets:
        table = found[name].to_numpy(dtype=float)
        bad = np.isnan(table).any(axis=1)
        states = labels(model, name)
        if states is None:
            said.best[name] = [None if b else float(x) for b, x in zip(bad, table[:, 0], strict=True)]
            said.sd[name] = [None if b else float(x) for b, x in zip(bad, table[:, 1], strict=True)]
            continue
        said.states[name] = states
        said.p[name] = [None if b else row for b, row in zip(bad, table.tolist(), strict=True)]
        top = np.where(bad[:, None], 0.0, table).argmax(axis=1).tolist()
        said.best[name] = [None if b else states[k] for b, k in zip(bad, top, strict=True)]
    return said


class _Known(dict[Any, int]):
    """The codes of cells, each string looked up once; as keys, 1, 1.0 and True would be the same."""

    def __init__(self, variable: Any, read: Any) -> None:
        super().__init__({None: MISSING})
        self._variable, self._read = variable, read

    def __missing__(self, cell: Any) -> int:
        code: int = self._variable.index(self._read(cell))
        if isinstance(cell, str):
            self[cell] = code
        return code


def _codes(model: Any, rows: list[Row], columns: Mapping[str, Any]) -> CodedTable:
    """Return the cells of columns as codes, without the frame that would have to be read again."""
    import numpy as np

    variables = [model.variable(n) for n in columns]
    codes = np.empty((len(variables), len(rows)), dtype=np.int32)
    for place, (variable, (name, read)) in enumerate(zip(variables, columns.items(), strict=True)):
        known = _Known(variable, read)
        codes[place] = [known[row.get(name)] for row in rows]
    return CodedTable(variables, codes)


def _frame(model: Any, rows: list[Row], columns: Mapping[str, Any]) -> Any:
    """Return the cells of columns, some of which are numbers, as a frame."""
    import pandas as pd

    cells = {
        n: [None if (x := row.get(n)) is None else read(x) for row in rows] for n, read in columns.items()
    }
    return pd.DataFrame({n: pd.Series(c, dtype=None if _plain(c) else object) for n, c in cells.items()})


def _plain(column: list[Any]) -> bool:
    return all(isinstance(x, float) for x in column)


def _reader(model: Any, name: str) -> Any:
    """Return what turns a cell of a column into a state or a number, and a finding into evidence."""
    check_known([name], model.variables)
    variable = model.variable(name)
    texts = labels(model, name)  # None of a number
    by_label = {} if texts is None else dict(zip(texts, variable.states, strict=True))

    def read(cell: Finding | Cell) -> Any:
        if isinstance(cell, str) and cell in by_label:
            return by_label[cell]
        return evidence_of(variable, cell)

    return read


ENDPOINTS = [
    endpoint("GET", "/health", health),
    endpoint("GET", "/model", served),
    endpoint("GET", "/openapi.json", described),
    endpoint("POST", "/predict", predict),
    endpoint("POST", "/marginals", answers.marginals),
    endpoint("POST", "/map", answers.best),
]
