"""`markovia score`: how probable a data file is under a model."""

from math import log
from pathlib import Path
from typing import Annotated

import numpy as np

from markovia.cli.rows import data_file
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import open_model, require_tables
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import heading, number, print_json, say, show_table
from markovia.data.tables.file_blocks import file_blocks
from markovia.errors import InvalidArgument, MarkoviaError
from markovia.models.graphical.model import Model
from markovia.runtime.devices import Device


@command("markovia score model.bif data.parquet", "markovia score asia rows.csv --worst 5")
def score(
    model: options.Model,
    data: options.Data,
    worst: Annotated[int, option("--worst N", "Also list the N least probable rows.", min=0)] = 0,
    engine: options.Engine = "auto",
    device: options.Device = None,
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Compute the log likelihood of a data file; missing cells and columns are summed out."""
    rows = data_file(data, model)
    loaded = open_model(model, format)
    require_tables(loaded, model)
    logs = row_scores(loaded, rows, engine, options.device(device))
    if not len(logs):
        raise InvalidArgument(f"{data!r} has no rows")
    total, impossible = float(logs.sum()), int(np.isneginf(logs).sum())
    parameters = loaded.count_parameters() if hasattr(loaded, "count_parameters") else None
    bic = None if parameters is None else total - 0.5 * log(len(logs)) * parameters
    least = np.argsort(logs, kind="stable")[:worst]
    if as_json:
        print_json(
            {
                **heading(model, loaded),
                "data": data,
                "rows": len(logs),
                "log_likelihood": total,
                "per_row": total / len(logs),
                "impossible_rows": impossible,
                "parameters": parameters,
                "bic": bic,
                "worst": [{"row": int(r) + 1, "log_prob": float(logs[r])} for r in least],
            }
        )
        return
    say(f"{len(logs):,} rows, log likelihood {number(total)} ({number(total / len(logs))} a row)")
    if impossible:
        say(f"{impossible:,} rows are impossible under the model")
    if bic is not None:
        say(f"{parameters:,} parameters, BIC {number(bic)}")
    if worst:
        show_table(["row", "log p"], [(f"{int(r) + 1:,}", number(float(logs[r]))) for r in least])


def row_scores(
    model: Model, data: Path, engine: str, device: Device | None = None
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the log probability of every row of a file."""
    variables = {n: model.variable(n) for n in model.variables}
    parts = []
    done = 0
    for rows, _ in file_blocks(data, variables):
        try:
            parts.append(model.log_prob(rows, engine=engine, device=device))
        except MarkoviaError as error:
            error.add_note(f"in the rows from {done + 1:,} on")
            raise
        done += len(rows)
    return np.concatenate(parts) if parts else np.empty(0)
