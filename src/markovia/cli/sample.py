"""`markovia sample`: rows drawn from a model, or from its posterior, as CSV.

Rows are drawn and written block by block, so that any number of them fits into memory and a reader such as
`head` gets the first ones at once. The rows up to the first block are those of `model.sample(n, seed=...)`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from markovia.cli.evidence import intervened, read_given
from markovia.cli.rows import names_file, records, refuse_two_outputs, write_csv
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import open_model, require_tables
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import heading, print_json, say
from markovia.models.graphical.model import Model
from markovia.runtime.devices import Device

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 100_000


@command(
    "markovia sample asia -n 1000 --seed 0 -o asia.csv",
    "markovia sample asia -n 5 --given dysp=yes",
    "markovia sample asia -n 1000000 | cut -d, -f4 | sort | uniq -c",
)
def sample(
    model: options.Model,
    n: Annotated[int, option("-n --rows", "How many rows.", min=0)] = 1000,
    given: options.Given = None,
    soft: options.Soft = None,
    ruled_out: options.RuledOut = None,
    do: options.Do = None,
    seed: options.Seed = None,
    output: options.Rows = None,
    engine: options.Engine = "auto",
    device: options.Device = None,
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Draw rows from a model as CSV, from the posterior if there is evidence; exactly, or with a warning."""
    refuse_two_outputs(output, as_json)
    loaded = open_model(model, format)
    require_tables(loaded, model)
    asked, done = intervened(loaded, do or [])
    evidence = read_given(loaded, given or [], soft or [], ruled_out or [])
    blocks = draw(asked, n, evidence, seed, engine, options.device(device))
    document = {**heading(model, loaded), "given": evidence, "do": done, "seed": seed, "n": n}
    if names_file(output):
        write_csv(blocks, output)
        if as_json:
            print_json({**document, "output": output})
        else:
            say(f"wrote {n:,} rows of {len(loaded)} variables to {output}")
    elif as_json:
        print_json({**document, "rows": records(blocks)})
    else:
        write_csv(blocks, output)


def draw(
    model: Model,
    n: int,
    given: dict[str, Any],
    seed: int | None = None,
    engine: str = "auto",
    device: Device | None = None,
) -> "Iterator[pd.DataFrame]":
    """Yield n rows in blocks, at least one block."""
    rng = np.random.default_rng(seed)
    yield model.sample(min(n, BLOCK), given=given, seed=rng, engine=engine, device=device)
    for start in range(BLOCK, n, BLOCK):
        yield model.sample(min(n - start, BLOCK), given=given, seed=rng, engine=engine, device=device)
