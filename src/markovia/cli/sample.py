"""`markovia sample`: rows drawn from a model, or from its posterior, as CSV.

Rows are drawn and written block by block, so that any number of them fits into memory and a reader such as
`head` gets the first ones at once. The rows up to the first block are those of `model.sample(n, seed=...)`.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from markovia.cli import options
from markovia.cli.evidence import intervened, read_given
from markovia.cli.loading import STREAM, FileError, open_model, require_tables
from markovia.cli.output import heading, print_json, say
from markovia.errors import InvalidArgument
from markovia.models.base import GraphicalModel

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 100_000


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog=options.examples(
            "markovia sample asia -n 1000 --seed 0 -o asia.csv",
            "markovia sample asia -n 5 --given dysp=yes",
            "markovia sample asia -n 1000000 | cut -d, -f4 | sort | uniq -c",
        )
    )(sample)


def sample(
    model: options.Model,
    n: Annotated[int, typer.Option("-n", "--rows", min=0, help="How many rows.")] = 1000,
    given: options.Given = None,
    soft: options.Soft = None,
    ruled_out: options.RuledOut = None,
    do: options.Do = None,
    seed: options.Seed = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to a file instead of the screen; - is the screen.",
            show_default=False,
        ),
    ] = None,
    engine: options.Engine = "auto",
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Draw rows from a model as CSV, from the posterior if there is evidence; exactly, or with a warning."""
    if output == STREAM and as_json:
        raise InvalidArgument(
            "--json and the rows cannot both go to standard output; leave out -o, or name a file"
        )
    loaded = open_model(model, format)
    require_tables(loaded, model)
    asked, done = intervened(loaded, do or [])
    evidence = read_given(loaded, given or [], soft or [], ruled_out or [])
    blocks = draw(asked, n, evidence, seed, engine)
    document = {**heading(model, loaded), "given": evidence, "do": done, "seed": seed, "n": n}
    if output not in (None, STREAM):
        first = next(blocks)  # bad evidence must not leave an empty file behind
        try:
            with open(output, "w", encoding="utf-8", newline="") as file:
                _write(file, first, header=True)
                for block in blocks:
                    _write(file, block, header=False)
        except OSError as error:
            raise FileError.writing(output, error) from error
        if as_json:
            print_json({**document, "output": output})
        else:
            say(f"wrote {n:,} rows of {len(loaded)} variables to {output}")
    elif as_json:
        print_json({**document, "rows": [row for block in blocks for row in block.to_dict("records")]})
    else:
        for k, block in enumerate(blocks):
            _write(sys.stdout, block, header=k == 0)


def draw(
    model: GraphicalModel, n: int, given: dict[str, Any], seed: int | None = None, engine: str = "auto"
) -> "Iterator[pd.DataFrame]":
    """Yield n rows in blocks, at least one block."""
    rng = np.random.default_rng(seed)
    yield model.sample(min(n, BLOCK), given=given, seed=rng, engine=engine)
    for start in range(BLOCK, n, BLOCK):
        yield model.sample(min(n - start, BLOCK), given=given, seed=rng, engine=engine)


def _write(file: Any, block: "pd.DataFrame", *, header: bool) -> None:
    block.to_csv(file, index=False, header=header, lineterminator="\n")
