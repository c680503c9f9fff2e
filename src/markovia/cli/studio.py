"""`markovia studio`: models in the browser; `markovia serve`: one model for prediction over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from markovia.cli import options
from markovia.cli.loading import FileError, complete_model


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(
        epilog=options.examples(
            "markovia studio", "markovia studio model.bif", "markovia studio models/ --port 8765"
        )
    )(studio)


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


def _named(what: str | None) -> tuple[Path, str | None]:
    """Return the folder to offer and the file or bundled name to open."""
    if what is None:
        return Path.cwd(), None
    path = Path(what)
    if path.is_dir():
        return path, None
    if path.is_file():
        return path.resolve().parent, path.name
    from markovia.models.gallery.bundled import bundled_names

    if what.replace("_", "-").casefold() in bundled_names():
        return Path.cwd(), what
    raise FileError(f"there is no file, folder or bundled model {what!r}")
