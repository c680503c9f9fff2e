"""Starting the servers: a socket, an address with its token, uvicorn, and a browser."""

import os
import secrets
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markovia.errors import InvalidArgument
from markovia.studio.http.patience import PROTOCOL

if TYPE_CHECKING:
    from markovia.studio.serving import Settings

BACKLOG = 512
OPTIONS: dict[str, Any] = {
    "http": PROTOCOL,
    "ws": "none",
    "log_level": "warning",
    "access_log": False,
    "server_header": False,
    "timeout_keep_alive": 30,
    "timeout_graceful_shutdown": 3,
}
"""How uvicorn runs."""


def run_studio(
    *,
    folder: Path,
    model: str | None,
    port: int = 0,
    browser: bool = True,
    limit: float = 30.0,
    state: str | None = None,
) -> None:
    """Run the studio on the loopback address until it is interrupted; print where it is."""
    bound = listening("127.0.0.1", port)
    port = bound.getsockname()[1]
    token = secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{port}/?token={token}"
    print(f"markovia studio is at {address}\nPress Ctrl-C to end it.", flush=True)
    if browser:
        import webbrowser

        # what a browser asks meanwhile waits in the socket's queue
        threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
    import uvicorn

    from markovia.studio.app import create
    from markovia.studio.documents.workspace import default_state

    app = create(
        folder=folder,
        open_file=model,
        token=token,
        state=default_state() if state is None else state,
        port=port,
        hosts=("127.0.0.1", "localhost"),
        limit=limit,
        compiling=True,
    )
    uvicorn.Server(uvicorn.Config(app, **OPTIONS)).run([bound])


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say in one sentence why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    if sys.platform != "win32":
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise InvalidArgument(
            f"cannot listen at {host}:{port}: {(error.strerror or str(error)).lower()}"
        ) from None
    bound.listen(BACKLOG)
    bound.set_inheritable(True)
    return bound


def run_serving(settings: "Settings", *, host: str, port: int, workers: int) -> None:
    """Serve one model until interrupted, with several processes where they are wanted; print where it is."""
    import msgspec
    import uvicorn

    from markovia.studio.serving import VARIABLE, create

    print(f"markovia: loading and compiling {settings.model} ...", file=sys.stderr, flush=True)
    # a model that cannot be read is said before anything listens
    app = create(settings)
    bound = listening(host, port)
    place = bound.getsockname()[1]
    print(
        f"markovia serves {settings.model} at http://{host}:{place} (POST /predict; GET /openapi.json)",
        flush=True,
    )
    if workers == 1:
        uvicorn.Server(uvicorn.Config(app, **OPTIONS)).run([bound])
        return
    bound.close()
    os.environ[VARIABLE] = msgspec.json.encode(settings).decode()
    home = "markovia.studio.serving:from_environment"
    uvicorn.run(home, factory=True, host=host, port=place, workers=workers, **OPTIONS)
