"""`markovia hmm`: hidden Markov models of the sequences in a data file: learned, decoded, forecast."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from markovia.cli.rows import data_file, refuse_two_outputs, write_rows
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import STREAM, open_anything, writing
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import print_json, say
from markovia.data.sequences.sequences import Sequences, read_sequences
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, UnknownVariable, UnsupportedModel

if TYPE_CHECKING:
    import pandas as pd

    from markovia.models.temporal.hmm import HMM

GROUP = "Hidden Markov models of sequences in a data file."

Id = Annotated[str | None, option("--id -i COLUMN", "The column that tells sequences apart.")]
Columns = Annotated[
    list[str] | None,
    option(
        "--column -c COLUMN",
        "An observed column; all but --id by default. Repeat it for several.",
        show_default=False,
    ),
]


@command(
    "markovia hmm fit returns.csv --states 2 --emission gaussian -o regimes.json",
    "markovia hmm fit visits.csv --id patient --column ward --states 3 -o wards.json",
)
def fit(
    data: options.Data,
    output: Annotated[str, option("--output -o FILE", "Where the model goes: a .json file.")],
    states: Annotated[int, option("--states -k K", "The number of hidden states.", min=1)] = 2,
    emission: Annotated[
        str,
        option(
            "--emission NAME",
            "categorical, gaussian, gmm, student-t, poisson, bernoulli or multinomial; by default as the data are.",
            show_default=False,
        ),
    ] = "",
    covariance: Annotated[str, option("--covariance KIND", "full, diag, tied or spherical.")] = "full",
    identity: Id = None,
    column: Columns = None,
    restarts: Annotated[int, option("--restarts N", "Runs, of which the best is kept.", min=1)] = 5,
    iterations: Annotated[int, option("--max-iter N", "Iterations at most.", min=1)] = 100,
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
        symbols=_symbols(sequences) if chosen == "categorical" else None, random_state=seed, progress=False,
    )  # fmt: skip
    parts = sequences.split(sequences.values)
    model.fit(parts)
    model.feature_names_in_ = np.array(sequences.columns, dtype=object)
    with writing(output):
        model.save(output)
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


@command("markovia hmm decode regimes.json returns.csv --proba -o states.csv")
def decode(
    model: options.Model,
    data: options.Data,
    identity: Id = None,
    column: Columns = None,
    proba: Annotated[bool, option("--proba -p", "Also the probability of every state.")] = False,
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
    document = {"model": model, "data": data, "log_likelihood": hmm.score(parts)}
    write_rows(iter([table]), output, document if as_json else None, "states", "rows of states")


@command("markovia hmm forecast regimes.json returns.csv --steps 5")
def forecast(
    model: options.Model,
    data: options.Data,
    steps: Annotated[int, option("--steps -n N", "How many steps ahead.", min=1)] = 1,
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
    document = {"model": model, "data": data, "steps": steps}
    write_rows(iter([table]), output, document if as_json else None, "forecast", "rows of forecast")


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


def _symbols(sequences: Sequences) -> list[int] | None:
    """Return the whole numbers that occur where some are below zero; None where the library finds the symbols itself."""
    if sequences.values.dtype.kind != "i" or sequences.values.min() >= 0:
        return None
    return [int(x) for x in np.unique(sequences.values)]


def _named(sequences: Sequences, identity: str | None) -> "pd.DataFrame":
    import pandas as pd

    lengths = sequences.lengths
    name = np.repeat(np.array(sequences.names, dtype=object), lengths)
    step = np.arange(lengths.sum()) - np.repeat(sequences.offsets[:-1], lengths)
    return pd.DataFrame({identity or "sequence": name, "step": step})
