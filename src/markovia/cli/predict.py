"""`markovia predict`: the most probable state, or the posterior, of a target for every row of a data file."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from markovia.cli import options
from markovia.cli.evidence import read_names
from markovia.cli.loading import complete_variable, open_model, require_tables
from markovia.cli.output import heading, print_json, say
from markovia.cli.rows import data_file, names_file, records, refuse_two_outputs, write_csv
from markovia.data.tables.file_blocks import file_blocks
from markovia.errors import InvalidArgument
from markovia.models.graphical.model import Model

if TYPE_CHECKING:
    import pandas as pd


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog=options.examples(
            "markovia predict model.bif data.csv --target lung",
            "markovia predict asia rows.parquet --target lung --proba --keep patient -o answers.csv",
        )
    )(predict)


def predict(
    model: options.Model,
    data: options.Data,
    target: Annotated[
        list[str],
        typer.Option(
            "--target",
            "-t",
            metavar="VAR",
            help="What to predict. Repeat it, or separate several by commas.",
            autocompletion=complete_variable,
        ),
    ],
    proba: Annotated[
        bool, typer.Option("--proba", "-p", help="Also the probability of every state.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", "-k", metavar="COLUMN", help="Copy a column of the data.", show_default=False),
    ] = None,
    output: options.Rows = None,
    engine: options.Engine = "auto",
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Predict variables for every row of a data file, as CSV; missing cells and columns are summed out."""
    refuse_two_outputs(output, as_json)
    rows = data_file(data, model)
    loaded = open_model(model, format)
    require_tables(loaded, model)
    names = read_names(loaded, target)
    blocks = predictions(loaded, rows, names, proba, keep or [], engine)
    document = {**heading(model, loaded), "data": data, "target": names}
    if names_file(output):
        n = write_csv(blocks, output)
        if as_json:
            print_json({**document, "output": output, "rows": n})
        else:
            say(f"wrote {n:,} predictions of {', '.join(names)} to {output}")
    elif as_json:
        print_json({**document, "predictions": records(blocks)})
    else:
        write_csv(blocks, output)


def predictions(
    model: Model, data: Path, names: list[str], proba: bool, keep: list[str], engine: str
) -> "Iterator[pd.DataFrame]":
    """Yield blocks of predictions: kept columns, then for each target its mode and, if wanted, its posterior."""
    import pandas as pd

    variables = {n: model.variable(n) for n in model.variables}
    if shared := set(keep) & set(names):
        raise InvalidArgument(
            f"--keep and --target both name {min(shared)!r}; the output has one column of that name"
        )
    empty = True
    for rows, kept in file_blocks(data, variables, keep):
        empty = False
        if not proba:
            modes = model.predict(rows, names, engine=engine)
            yield pd.concat([kept.reset_index(drop=True), modes.reset_index(drop=True)], axis=1)
            continue
        parts = [kept.reset_index(drop=True)]
        table = model.predict_proba(rows, names, engine=engine)
        for name in names:
            own = cast("pd.DataFrame", table[name]).reset_index(drop=True)
            parts.append(own.idxmax(axis=1).rename(name).to_frame())
            parts.append(own.set_axis([f"P({name}={state})" for state in own.columns], axis=1))
        yield pd.concat(parts, axis=1)
    if empty:  # a header all the same
        states = {n: [f"P({n}={s})" for s in model.states(n)] if proba else [] for n in names}
        yield pd.DataFrame(columns=[*keep, *(c for n in names for c in (n, *states[n]))])
