"""`markovia fit`: a network's tables learned from a data file."""

from collections.abc import Sequence
from typing import Annotated, Any

from markovia.cli.convert import write_model, written
from markovia.cli.rows import data_file
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import STREAM, open_model, writing
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import heading, print_json, say
from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.learning.incomplete.em import EM
from markovia.learning.tables.priors import BDeu, Prior, as_prior
from markovia.models.graphical.bayesian_network import BayesianNetwork

PRIORS = ("none", "bdeu", "k2", "laplace")


@command(
    "markovia fit structure.bif data.csv --prior bdeu -o model.bif",
    "markovia fit asia rows.parquet -o asia-fitted.json",
    "markovia fit structure.json survey.csv --missing em --weights w -o model.json",
)
def fit(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        str, option("--output -o FILE", "Where the fitted model goes; the suffix says the format.")
    ],
    prior: Annotated[str, option("--prior NAME", "none (maximum likelihood), bdeu, k2 or laplace.")] = "none",
    sample_size: Annotated[float | None, option("--ess N", "Equivalent sample size of bdeu; 10.")] = None,
    missing: Annotated[
        str, option("--missing HOW", "Rows that miss cells: em (use them), drop, or error.")
    ] = "em",
    weights: Annotated[str | None, option("--weights COLUMN", "A column of row weights.")] = None,
    latent: Annotated[
        list[str] | None,
        option(
            "--latent VAR[=K]",
            "A variable without a column, with K states where the model does not say. Repeat it for several.",
        ),
    ] = None,
    seed: options.Seed = None,
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Learn the tables of a network from a data file (CSV or Parquet), by counting or by EM."""
    if output == STREAM:
        raise InvalidArgument("name a file for the fitted model with -o; standard output gets the report")
    chosen = read_prior(prior, sample_size)
    rows = data_file(data, model)
    network = open_model(model, format)
    if not isinstance(network, BayesianNetwork):
        raise UnsupportedModel(
            f"{model!r} holds a {type(network).__name__}; `markovia fit` takes directed networks"
        )
    how = EM(seed=seed) if missing == "em" else missing
    network.fit(
        rows,
        prior=chosen,
        missing=how,
        weights=weights,
        latent=read_latent(network, latent or []),
    )
    record = network.fit_
    assert record is not None
    if not record.n_rows:
        raise InvalidArgument(f"{data!r} has a header and no rows")
    with writing(output):
        size = write_model(network, output, None)
    if as_json:
        print_json(
            {
                **heading(model, network),
                "data": data,
                "output": output,
                "bytes": size,
                "method": record.method,
                "rows": record.n_rows,
                "missing_cells": record.missing_cells,
                "log_likelihood": record.log_likelihood,
                "log_likelihood_by_family": dict(record.by_family),
                "parameters": record.n_parameters,
                "bic": record.bic if record.total > 0 else None,
                "unseen_rows": dict(record.unseen_rows),
                "converged": record.converged,
                "iterations": record.iterations,
                "seconds": record.seconds,
            }
        )
    else:
        say(*str(record).splitlines(), written(network, output, size))


def read_latent(network: BayesianNetwork, words: Sequence[str]) -> dict[str, Any]:
    """Return the states of each variable that has no column: as many as said, else those of the model.

    Examples
    --------
    >>> read_latent(BayesianNetwork("z->x"), ["z=3"])
    {'z': 3}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, mark, number = word.rpartition("=")
        if not mark:
            found[word] = network.states(word)
            continue
        if not number.isdecimal() or int(number) < 1:
            raise InvalidArgument(
                f"--latent is a name or a name and a number of states such as z=3, not {word!r}"
            )
        found[name] = int(number)
    return found


def read_prior(name: str, sample_size: float | None) -> Prior | None:
    """Return the prior that the options name.

    Examples
    --------
    >>> read_prior("bdeu", 4)
    BDeu(equivalent_sample_size=4)
    """
    word = name.casefold()
    if word not in PRIORS:
        raise InvalidArgument(f"--prior is one of {', '.join(PRIORS)}, not {name!r}")
    if sample_size is not None and word != "bdeu":
        raise InvalidArgument("--ess is the sample size of --prior bdeu")
    if word == "bdeu" and sample_size is not None:
        return BDeu(sample_size)
    return None if word == "none" else as_prior(word)
