"""`markovia studio`: models in the browser; `markovia serve`: one model for prediction over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from markovia.cli import options
from markovia.cli.loading import STREAM, FileError, complete_model


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(
        epilog=options.examples(
            "markovia studio", "markovia studio model.bif", "markovia studio models/ --port 8765"
        )
    )(studio)
    app.command(
        epilog=options.examples(
            "markovia serve model.bif",
            "markovia serve model.bif --host 0.0.0.0 --port 8000 --workers 4 --token SECRET",
        )
    )(serve)


def studio(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL or FOLDER]",
            help="A file, a bundled name, or a folder whose files are offered; the present folder by default.",
            autocompletion=complete_model,
            show_default=False,
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="0 takes a free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    limit: Annotated[
        float, typer.Option("--limit", min=0.1, help="Seconds that an exact answer may take by its estimate.")
    ] = 30.0,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            help="Folder of autosaved models; the user's state folder by default.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Open models in the browser: observe, intervene, explain, edit, learn."""
    from markovia.studio.running import run_studio

    folder, model = _named(what)
    run_studio(folder=folder, model=model, port=port, browser=browser, limit=limit, state=state)


def serve(
    model: options.Model,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="0 takes a free one.")] = 8000,
    workers: Annotated[
        int, typer.Option("--workers", "-w", min=1, max=256, help="Processes that answer.")
    ] = 1,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="MARKOVIA_TOKEN",
            help="A secret that requests must carry as bearer.",
            show_default=False,
        ),
    ] = None,
    max_rows: Annotated[int, typer.Option("--max-rows", min=1, help="Rows of one request.")] = 10_000,
    max_body: Annotated[int, typer.Option("--max-body", min=1024, help="Bytes of one request.")] = 2**24,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, help="Requests that a worker answers at once.")
    ] = 8,
    limit: Annotated[
        float, typer.Option("--limit", min=0.1, help="Seconds that an exact answer may take by its estimate.")
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
        token=token,
        hosts=("127.0.0.1", "localhost") if host in ("127.0.0.1", "localhost") else None,
        max_rows=max_rows,
        max_body=max_body,
        threads=concurrency,
        limit=limit,
    )
    run_serving(settings, host=host, port=port, workers=workers)


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
