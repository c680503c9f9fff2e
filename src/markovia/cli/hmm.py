"""`markovia hmm`: hidden Markov models of the sequences in a data file: learned, decoded, forecast."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from markovia.cli import options
from markovia.cli.loading import STREAM, FileError, open_anything
from markovia.cli.output import print_json, say
from markovia.cli.rows import data_file, names_file, records, refuse_two_outputs, write_csv
from markovia.data.sequences.sequences import Sequences, read_sequences
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, UnknownVariable, UnsupportedModel

if TYPE_CHECKING:
    import pandas as pd

    from markovia.models.temporal.hmm import HMM

Id = Annotated[
    str | None,
    typer.Option(
        "--id", "-i", metavar="COLUMN", help="The column that tells sequences apart.", show_default=False
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column", "-c", metavar="COLUMN", help="An observed column; all but --id by default. Repeat it for several.",
        show_default=False,
    ),
]  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, help="Hidden Markov models of sequences in a data file.")
    group.command(
        epilog=options.examples(
            "markovia hmm fit returns.csv --states 2 --emission gaussian -o regimes.json",
            "markovia hmm fit visits.csv --id patient --column ward --states 3 -o wards.json",
        )
    )(fit)
    group.command(
        epilog=options.examples("markovia hmm decode regimes.json returns.csv --proba -o states.csv")
    )(decode)
    group.command(epilog=options.examples("markovia hmm forecast regimes.json returns.csv --steps 5"))(
        forecast
    )
    app.add_typer(group, name="hmm")


def fit(
    data: options.Data,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes: a .json file.")
    ],
    states: Annotated[
        int, typer.Option("--states", "-k", min=1, metavar="K", help="The number of hidden states.")
    ] = 2,
    emission: Annotated[
        str,
        typer.Option(
            "--emission",
            metavar="NAME",
            help="categorical, gaussian, gmm, student-t, poisson, bernoulli or multinomial; by default as the data are.",
            show_default=False,
        ),
    ] = "",
    covariance: Annotated[
        str, typer.Option("--covariance", metavar="KIND", help="full, diag, tied or spherical.")
    ] = "full",
    identity: Id = None,
    column: Columns = None,
    restarts: Annotated[
        int, typer.Option("--restarts", min=1, metavar="N", help="Runs, of which the best is kept.")
    ] = 5,
    iterations: Annotated[
        int, typer.Option("--max-iter", min=1, metavar="N", help="Iterations at most.")
    ] = 100,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Learn a hidden Markov model by Baum-Welch, from sequences in a data file, one row a step."""
    from markovia.models.temporal.hmm import HMM

    if output == STREAM or not output.endswith((".json", ".json.gz")):
        raise InvalidArgument(f"the model goes to a .json file, not to {output!r}")
    sequences = _read(data_file(data), identity, column)
    chosen = emission or _guessed(sequences)
    model: Any = HMM(
        states, emission=chosen, covariance_type=covariance, n_init=restarts, max_iter=iterations,  # type: ignore[arg-type]
        random_state=seed, progress=False,
    )  # fmt: skip
    parts = sequences.split(sequences.values)
    model.fit(parts)
    model.feature_names_in_ = np.array(sequences.columns, dtype=object)
    try:
        model.save(output)
    except OSError as error:
        raise FileError.writing(output, error) from error
    report = {
        "data": data, "output": output, "states": states, "emission": chosen, "columns": list(sequences.columns),
        "sequences": len(sequences), "steps": int(sequences.offsets[-1]), "log_likelihood": model.score(parts),
        "bic": model.bic(parts), "iterations": model.n_iter_, "converged": model.converged_,
    }  # fmt: skip
    if as_json:
        print_json(report)
    else:
        say(
            f"{states} states with {chosen} emissions of {', '.join(sequences.columns)}",
            f"{report['sequences']:,} sequences, {report['steps']:,} steps",
            f"log likelihood {report['log_likelihood']:.6g}, BIC {report['bic']:.6g}, {model.n_iter_} iterations",
            f"wrote {output}",
        )


def decode(
    model: options.Model,
    data: options.Data,
    identity: Id = None,
    column: Columns = None,
    proba: Annotated[
        bool, typer.Option("--proba", "-p", help="Also the probability of every state.")
    ] = False,
    output: options.Rows = None,
    as_json: options.Json = False,
) -> None:
    """Say which state each row was in, as CSV: the most probable path of each sequence."""
    refuse_two_outputs(output, as_json)
    hmm, sequences = _opened(model, data, identity, column)
    parts = sequences.split(sequences.values)
    table = _named(sequences, identity)
    table["state"] = np.concatenate(hmm.decode(parts))
    if proba:
        for k, p in enumerate(np.concatenate(hmm.smooth(parts)).T):
            table[f"P(state={k})"] = p
    _out(table, output, as_json, {"model": model, "data": data, "log_likelihood": hmm.score(parts)}, "states")


def forecast(
    model: options.Model,
    data: options.Data,
    steps: Annotated[
        int, typer.Option("--steps", "-n", min=1, metavar="N", help="How many steps ahead.")
    ] = 1,
    identity: Id = None,
    column: Columns = None,
    output: options.Rows = None,
    as_json: options.Json = False,
) -> None:
    """Say how probable each state is in the steps after each sequence, as CSV."""
    import pandas as pd

    refuse_two_outputs(output, as_json)
    hmm, sequences = _opened(model, data, identity, column)
    found = hmm.forecast(sequences.split(sequences.values), steps)
    table = pd.DataFrame(
        {
            identity or "sequence": np.repeat(np.array(sequences.names, dtype=object), steps),
            "ahead": np.tile(np.arange(1, steps + 1), len(sequences)),
        }
    )
    for k, p in enumerate(np.concatenate(found).T):
        table[f"P(state={k})"] = p
    _out(table, output, as_json, {"model": model, "data": data, "steps": steps}, "forecast")


def _read(path: Path, identity: str | None, columns: list[str] | None) -> Sequences:
    frame = as_frame(path)
    if identity is not None and identity not in frame.columns:
        raise UnknownVariable(identity, [str(c) for c in frame.columns], "the data")
    return read_sequences(frame, by=identity, columns=columns or None)


def _opened(
    model: str, data: str, identity: str | None, columns: list[str] | None
) -> "tuple[HMM, Sequences]":
    from markovia.models.temporal.hmm import HMM

    rows = data_file(data, model)
    found = open_anything(model)
    if not isinstance(found, HMM):
        raise UnsupportedModel(f"{model!r} holds a {type(found).__name__}, not a hidden Markov model")
    own = [str(c) for c in getattr(found, "feature_names_in_", [])]
    return found, _read(rows, identity, columns or own or None)


def _guessed(sequences: Sequences) -> str:
    """Return "gaussian" for numbers with fractions, "categorical" for one column of anything else."""
    try:
        numbers = np.asarray(sequences.values, dtype=np.float64)
    except (TypeError, ValueError):
        return "categorical"
    there = numbers[~np.isnan(numbers)]
    whole = (there == np.floor(there)).all() and (there >= 0).all()
    return "categorical" if whole and numbers.shape[1] == 1 and len(np.unique(there)) <= 20 else "gaussian"


def _named(sequences: Sequences, identity: str | None) -> "pd.DataFrame":
    import pandas as pd

    lengths = sequences.lengths
    name = np.repeat(np.array(sequences.names, dtype=object), lengths)
    step = np.arange(lengths.sum()) - np.repeat(sequences.offsets[:-1], lengths)
    return pd.DataFrame({identity or "sequence": name, "step": step})


def _out(
    table: "pd.DataFrame", output: str | None, as_json: bool, document: dict[str, Any], what: str
) -> None:
    if names_file(output):
        n = write_csv(iter([table]), output)
        if as_json:
            print_json({**document, "output": output, "rows": n})
        else:
            say(f"wrote {n:,} rows of {what} to {output}")
    elif as_json:
        print_json({**document, what: records(iter([table]))})
    else:
        write_csv(iter([table]), output)
