"""`markovia predict`: the most probable state, or the posterior, of a target for every row of a data file."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from markovia.cli.evidence import read_names
from markovia.cli.rows import data_file, refuse_two_outputs, write_rows
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import complete_variable, open_model, require_tables
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import heading
from markovia.data.tables.file_blocks import file_blocks
from markovia.errors import InvalidArgument
from markovia.models.graphical.model import Model
from markovia.runtime.devices import Device

if TYPE_CHECKING:
    import pandas as pd


@command(
    "markovia predict model.bif data.csv --target lung",
    "markovia predict asia rows.parquet --target lung --proba --keep patient -o answers.csv",
)
def predict(
    model: options.Model,
    data: options.Data,
    target: Annotated[
        list[str],
        option(
            "--target -t VAR",
            "What to predict. Repeat it, or separate several by commas.",
            complete=complete_variable,
        ),
    ],
    proba: Annotated[bool, option("--proba -p", "Also the probability of every state.")] = False,
    keep: Annotated[list[str] | None, option("--keep -k COLUMN", "Copy a column of the data.")] = None,
    output: options.Rows = None,
    engine: options.Engine = "auto",
    device: options.Device = None,
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Predict variables for every row of a data file, as CSV; missing cells and columns are summed out."""
    refuse_two_outputs(output, as_json)
    rows = data_file(data, model)
    loaded = open_model(model, format)
    require_tables(loaded, model)
    names = read_names(loaded, target)
    blocks = predictions(loaded, rows, names, proba, keep or [], engine, options.device(device))
    document = {**heading(model, loaded), "data": data, "target": names}
    told = f"predictions of {', '.join(names)}"
    write_rows(blocks, output, document if as_json else None, "predictions", told)


def predictions(
    model: Model,
    data: Path,
    names: list[str],
    proba: bool,
    keep: list[str],
    engine: str,
    device: Device | None = None,
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
            modes = model.predict(rows, names, engine=engine, device=device)
            yield pd.concat([kept.reset_index(drop=True), modes.reset_index(drop=True)], axis=1)
            continue
        parts = [kept.reset_index(drop=True)]
        table = model.predict_proba(rows, names, engine=engine, device=device)
        for name in names:
            own = cast("pd.DataFrame", table[name]).reset_index(drop=True)
            parts.append(own.idxmax(axis=1).rename(name).to_frame())
            parts.append(own.set_axis([f"P({name}={state})" for state in own.columns], axis=1))
        yield pd.concat(parts, axis=1)
    if empty:  # a header all the same
        states = {n: [f"P({n}={s})" for s in model.states(n)] if proba else [] for n in names}
        yield pd.DataFrame(columns=[*keep, *(c for n in names for c in (n, *states[n]))])
