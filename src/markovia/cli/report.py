"""`markovia report`: a model with its answers as one HTML file."""

import sys
from pathlib import Path
from typing import Annotated

from markovia.cli.evidence import intervened, read_given
from markovia.cli.rows import refuse_two_outputs
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import STREAM, open_model, writing
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import heading, print_json, say


@command(
    "markovia report asia --given xray=yes -o report.html",
    "markovia report model.bif --given test=positive --do drug=yes --title 'After treatment'",
    "markovia report asia -o - > report.html",
)
def report(
    model: options.Model,
    given: options.Given = None,
    soft: options.Soft = None,
    ruled_out: options.RuledOut = None,
    do: options.Do = None,
    output: Annotated[
        str | None,
        option(
            "--output -o FILE", "The file to write, by default the model's name with .html; - is the screen."
        ),
    ] = None,
    title: Annotated[str | None, option("--title TEXT", "What to call it.")] = None,
    engine: options.Engine = "auto",
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Write a model and its answers as one HTML file that stays interactive without a server."""
    from markovia.studio.sharing import report as studio

    refuse_two_outputs(output, as_json)
    loaded = open_model(model, format)
    _, done = intervened(loaded, do or [])
    evidence = read_given(loaded, given or [], soft or [], ruled_out or [])
    stem = Path(model).name.removesuffix(".gz").split(".")[0] if model != STREAM else "network"
    name = title or getattr(loaded, "name", "") or stem or "network"
    made = studio.report(loaded, given=evidence, do=done, title=name, engine=engine, source=model)
    if output == STREAM:
        sys.stdout.buffer.write(made.text.encode("utf-8", "replace"))
        return
    target = output or f"{stem or 'network'}.html"
    with writing(target):
        size = studio.save_text(made.text, target)
    if as_json:
        print_json(
            {
                **heading(model, loaded),
                "given": evidence,
                "do": done,
                "output": target,
                "bytes": size,
                "answering": made.answering,
                "cells": made.cells,
            }
        )
        return
    can = {
        "computed": "it answers any findings by itself",
        "looked up": f"it holds the answers to {made.answers:,} questions",
        "fixed": "it shows the answer to these findings",
    }[made.answering]
    say(f"wrote {target} ({size:,} bytes); {can}")
