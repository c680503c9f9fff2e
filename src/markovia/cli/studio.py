"""`markovia studio`: models in the browser; `markovia serve`: one model for prediction over HTTP."""

from pathlib import Path
from typing import Annotated

from markovia.cli.terminal import options
from markovia.cli.terminal.loading import STREAM, FileError, complete_model
from markovia.cli.terminal.options import argument, command, option


@command("markovia studio", "markovia studio model.bif", "markovia studio models/ --port 8765")
def studio(
    what: Annotated[
        str | None,
        argument(
            "[MODEL or FOLDER]",
            "A file, a bundled name, or a folder whose files are offered; the present folder by default.",
            complete=complete_model,
        ),
    ] = None,
    port: Annotated[int, option("--port -p", "0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, option("--browser/--no-browser", "Open the page in a browser.")] = True,
    limit: Annotated[
        float, option("--limit", "Seconds that an exact answer may take by its estimate.", min=0.1)
    ] = 30.0,
    state: Annotated[
        str | None, option("--state", "Folder of autosaved models; the user's state folder by default.")
    ] = None,
) -> None:
    """Open models in the browser: observe, intervene, explain, edit, learn."""
    from markovia.studio.running import run_studio

    folder, model = _named(what)
    run_studio(folder=folder, model=model, port=port, browser=browser, limit=limit, state=state)


@command(
    "markovia serve model.bif",
    "markovia serve model.bif --host 0.0.0.0 --port 8000 --workers 4 --token-file /run/secrets/token --open-health",
)
def serve(
    model: options.Model,
    host: Annotated[str, option("--host", "The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, option("--port -p", "0 takes a free one.", min=0, max=65535)] = 8000,
    workers: Annotated[int, option("--workers -w", "Processes that answer.", min=1, max=256)] = 1,
    token: Annotated[
        str | None, option("--token", "A secret that requests must carry as bearer.", envvar="MARKOVIA_TOKEN")
    ] = None,
    token_file: Annotated[
        str | None,
        option("--token-file FILE", "A file whose first line is the token.", envvar="MARKOVIA_TOKEN_FILE"),
    ] = None,
    open_health: Annotated[
        bool, option("--open-health", "Answer /health without the token, for probes.")
    ] = False,
    max_rows: Annotated[int, option("--max-rows", "Rows of one request.", min=1)] = 10_000,
    max_body: Annotated[int, option("--max-body", "Bytes of one request.", min=1024)] = 2**24,
    concurrency: Annotated[
        int, option("--concurrency", "Requests that a worker answers at once.", min=1)
    ] = 8,
    limit: Annotated[
        float, option("--limit", "Seconds that an exact answer may take by its estimate.", min=0.1)
    ] = 10.0,
    format: options.Format = None,  # noqa: A002
) -> None:
    """Serve one model over HTTP: predictions for single rows and batches, health, metrics, limits."""
    from markovia.studio.running import run_serving
    from markovia.studio.serving import Settings

    if model == STREAM:
        raise FileError("every worker reads the model itself; name a file instead of standard input")
    settings = Settings(
        model=model,
        format=format,
        token=_token(token, token_file),
        open_health=open_health,
        hosts=("127.0.0.1", "localhost") if host in ("127.0.0.1", "localhost") else None,
        max_rows=max_rows,
        max_body=max_body,
        threads=concurrency,
        limit=limit,
    )
    run_serving(settings, host=host, port=port, workers=workers)


def _token(token: str | None, file: str | None) -> str | None:
    """Return the token that is told or that a file holds; an empty one would let everybody in, and is refused."""
    if token is not None and file is not None:
        raise FileError(
            "the token is told twice: by --token (or MARKOVIA_TOKEN) and by --token-file; leave one out"
        )
    if file is not None:
        token = next(iter(Path(file).read_text(encoding="utf-8").splitlines()), "").strip()
    if token == "":
        raise FileError(
            "the token is empty" + ("" if file is None else f": the first line of {file!r} has none")
        )
    return token


def _named(what: str | None) -> tuple[Path, str | None]:
    """Return the folder to offer and the file or bundled name to open."""
    if what is None:
        return Path.cwd(), None
    path = Path(what)
    if path.is_dir():
        return path, None
    if path.is_file():
        return path.resolve().parent, path.name
    if path.suffix or len(path.parts) > 1:
        raise FileError(f"there is no file or folder {what!r}")
    return Path.cwd(), what  # a bundled name, looked up once the page is there
