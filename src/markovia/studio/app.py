"""The studio's server: the table of its endpoints, and the ASGI application that is made of it."""

import secrets
import sys
from collections.abc import Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any

from markovia.errors import MarkoviaError
from markovia.studio import first_page
from markovia.studio.documents.endpoints import Call, Endpoint, endpoint
from markovia.studio.documents.workspace import Workspace
from markovia.studio.http.requests import RequestGate, no_such, own_fault, route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.applications import Starlette
    from starlette.types import ASGIApp

MAX_BODY = 2**26
"""Bytes of a request, by default."""
UNSEEN, DRAWN = 3.0, 0.5
"""Seconds to leave the processor to the page: where none has come yet, and where one is being fetched or drawn."""
COMPILING = """
import os
from markovia.inference.choosing.auto import load_tree_kernels

getattr(os, "nice", int)(10)
load_tree_kernels()
"""
"""What the process runs that compiles: answers come before it."""
MORE = ("markovia.studio.jobs.endpoints", "markovia.studio.sharing.report")
"""Modules that bring endpoints of their own, as `ENDPOINTS`; one that has something to end has `shut(parts)`."""


def create(
    *,
    folder: str | Path | None = None,
    models: Sequence[Any] = (),
    open_file: str | None = None,
    token: str | None = None,
    state: str | Path | None = None,
    port: int = 0,
    hosts: tuple[str, ...] | None = ("127.0.0.1", "localhost", "[::1]", "testserver"),
    limit: float = 30.0,
    max_body: int = MAX_BODY,
    patience: float = 30.0,
    compiling: bool = False,
) -> "ASGIApp":
    """Return the studio as an ASGI application.

    Parameters
    ----------
    folder
        Where files are opened and saved.
    models
        Models to open at once: pairs of a name and a model.
    open_file
        A file of the folder, or the name of a bundled model, to open as soon as the server is up.
    token
        The secret of the address; a random one by default, see `app.token`.
    state
        Where changes are autosaved; nowhere by default.
    port
        The port that the server will be bound to.
    hosts
        What the Host header may say, without the port.
    limit
        Seconds that an exact answer may take by its estimate.
    max_body
        Bytes of a request.
    patience
        Seconds that a client may take to send its body.
    compiling
        Whether a process of its own compiles the kernels where they never were.
    """
    from markovia.studio.http.door import Door

    secret = secrets.token_urlsafe(24) if token is None else token
    workspace = Workspace(
        None if folder is None else Path(folder), None if state is None else Path(state), limit=limit
    )
    for name, model in models:
        workspace.add(model, name)
    inner = application(
        workspace, max_body=max_body, patience=patience, open_file=open_file, compiling=compiling
    )
    app: Any = Door(inner, secret, hosts, port)
    app.workspace = workspace
    return app  # type: ignore[no-any-return]


def application(
    workspace: Workspace,
    *,
    max_body: int = MAX_BODY,
    patience: float = 30.0,
    open_file: str | None = None,
    compiling: bool = False,
) -> "Starlette":
    """Return the application behind the door."""
    from anyio.to_thread import run_sync
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Mount, Route, Router

    from markovia.studio.page_files import page, page_file

    parts: dict[str, Any] = {}
    gate = RequestGate(max_body=max_body, patience=patience)

    @asynccontextmanager
    async def life(app: "Starlette") -> "AsyncIterator[None]":
        import anyio

        made["asked"] = anyio.Event()
        if open_file is not None:
            workspace.ready.clear()

        def load() -> None:
            try:
                router()
                if open_file is not None:
                    _open(workspace, open_file)
            finally:
                workspace.ready.set()

        async def begin() -> None:
            # while the page comes, loading would take the processor from it
            with anyio.move_on_after(UNSEEN if open_file is None else DRAWN):
                await made["asked"].wait()
                await anyio.sleep(DRAWN if open_file is None else 0.0)
            await run_sync(load)
            await anyio.sleep(DRAWN)
            await _warm(compiling)

        async with anyio.create_task_group() as group:
            group.start_soon(begin)
            try:
                yield
            finally:
                group.cancel_scope.cancel()
                for module in _more():
                    if hasattr(module, "shut"):
                        module.shut(parts)
                workspace.shut()

    def call(**given: Any) -> Call[Any]:
        return Call(workspace=workspace, parts=parts, **given)

    def routed(listed: Sequence[Endpoint]) -> Router:
        return Router([route(e._replace(path=e.path.removeprefix("/api")), call, gate) for e in listed])

    def router() -> Router:
        if "router" not in made:
            made["router"] = routed(endpoints())
        return made["router"]  # type: ignore[no-any-return]

    async def api(scope: Any, receive: Any, send: Any) -> None:
        # the first page is answered before the library is loaded; the first question waits for it
        if scope["path"] in quick:
            if "asked" in made:
                made["asked"].set()
            await first(scope, receive, send)
        else:
            await (await run_sync(router) if "router" not in made else made["router"])(scope, receive, send)

    made: dict[str, Any] = {}
    first, quick = routed(first_page.ENDPOINTS), {e.path for e in first_page.ENDPOINTS}
    routes = [Route("/", page), Route("/static/{name}", page_file), Mount("/api", api)]
    return Starlette(
        routes=routes, lifespan=life, exception_handlers={HTTPException: no_such, Exception: own_fault}
    )


def _open(workspace: Workspace, word: str) -> None:
    """Open what the command line named: a file of the folder, or a bundled model; say so where it cannot be read."""
    try:
        if workspace.folder is not None and (workspace.folder / word).is_file():
            workspace.open_file(word)
        else:
            workspace.example(word)
    except MarkoviaError as error:
        print(f"markovia: {error}", file=sys.stderr)


async def _warm(compiling: bool) -> None:
    """Load the compiled kernels, so that the first click does not wait for them.

    Where they never were compiled, another process does that: here it would stop all answers for half a minute. Until it is
    done they are computed without.
    """
    import anyio
    from anyio.to_thread import run_sync

    from markovia.inference.choosing.auto import load_tree_kernels, tree_kernels_on_disk
    from markovia.kernels.compiled_code import awaited

    if compiling and not tree_kernels_on_disk():
        with awaited():
            await anyio.run_process(
                [sys.executable, "-c", COMPILING], stdout=DEVNULL, stderr=DEVNULL, check=False
            )
    if tree_kernels_on_disk():
        await run_sync(load_tree_kernels)


def endpoints() -> list[Endpoint]:
    """Return the table of all endpoints."""
    from markovia.studio.routes import ENDPOINTS

    more = (e for module in _more() for e in getattr(module, "ENDPOINTS", ()))
    return [endpoint("GET", "/api/openapi.json", openapi), *ENDPOINTS, *more]


def openapi(call: Call[None]) -> dict[str, Any]:
    """Describe the API."""
    from markovia.studio.http.openapi import described

    return described(endpoints(), "markovia studio")


def _more() -> list[Any]:
    return [import_module(name) for name in MORE if find_spec(name) is not None]
