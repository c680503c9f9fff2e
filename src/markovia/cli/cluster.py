"""`markovia cluster`: groups of the rows of a data file, with how sure each row is."""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from markovia.cli.rows import data_file, names_file, records, refuse_two_outputs, write_csv
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import writing
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import print_json, say
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, check_known

if TYPE_CHECKING:
    import pandas as pd


@command(
    "markovia cluster flowers.csv --components 3 -o groups.csv",
    "markovia cluster survey.csv --choose 8 --model groups.json",
)
def cluster(
    data: options.Data,
    components: Annotated[
        int | None, option("--components -k K", "The number of groups; 2 if not said.", min=1)
    ] = None,
    choose: Annotated[
        int | None, option("--choose MOST", "Choose the number, up to MOST, by BIC.", min=1)
    ] = None,
    covariance: Annotated[
        str, option("--covariance KIND", "full, diag, tied, spherical or low-rank, of numbers.")
    ] = "full",
    column: Annotated[
        list[str] | None, option("--column -c COLUMN", "A column to look at; all by default.")
    ] = None,
    restarts: Annotated[int, option("--restarts N", "Runs, of which the best is kept.", min=1)] = 1,
    model: Annotated[str | None, option("--model -m FILE", "Also write the mixture: a .json file.")] = None,
    output: options.Rows = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Find groups of rows: Gaussian where all columns are numbers with fractions, else latent classes."""
    refuse_two_outputs(output, as_json)
    if components is not None and choose is not None:
        raise InvalidArgument("--components and --choose are two answers to one question; give one")
    if model is not None and not model.endswith((".json", ".json.gz")):
        raise InvalidArgument(f"the mixture goes to a .json file, not to {model!r}")
    frame = _frame(data, column)
    tried = range(1, choose + 1) if choose is not None else [components or 2]
    found = [(_fitted(frame, k, covariance, restarts, seed)) for k in tried if k <= len(frame)]
    scores = [one.bic(frame) for one in found]
    best = found[int(np.argmin(scores))]
    sure = best.predict_proba(frame)
    table = frame.copy()
    table["component"] = sure.argmax(axis=1)
    for k, p in enumerate(sure.T):
        table[f"P(component={k})"] = p
    if model is not None:
        with writing(model):
            best.save(model)
    report: dict[str, Any] = {
        "data": data, "rows": len(frame), "columns": [str(c) for c in frame.columns], "kind": type(best).__name__,
        "components": best.n_components, "weights": best.weights_.tolist(),
        "log_likelihood": float(best.score_samples(frame).sum()), "bic": min(scores), "iterations": best.n_iter_,
        "converged": bool(best.converged_),
    }  # fmt: skip
    if choose is not None:
        report["tried"] = {str(one.n_components): score for one, score in zip(found, scores, strict=True)}
    if as_json:
        if names_file(output):
            report["output"] = output
            write_csv(iter([table]), output)
        else:
            report["assignments"] = records(iter([table]))
        print_json(report)
        return
    n = write_csv(iter([table]), output)
    if names_file(output):
        say(
            f"{best.n_components} groups of {n:,} rows ({report['kind']}), weights "
            + ", ".join(f"{w:.3g}" for w in best.weights_),
            f"log likelihood {report['log_likelihood']:.6g}, BIC {report['bic']:.6g}, {best.n_iter_} iterations",
            *([f"BIC of {k} groups: {score:.6g}" for k, score in report.get("tried", {}).items()]),
            *([f"wrote the mixture to {model}"] if model is not None else []),
            f"wrote the rows to {output}",
        )


def _frame(data: str, columns: list[str] | None) -> "pd.DataFrame":
    frame = as_frame(data_file(data))
    check_known(columns or [], frame.columns, "the data")
    found = frame[columns] if columns else frame
    if not len(found):
        raise InvalidArgument(f"{data!r} has no rows")
    return found


def _fitted(frame: "pd.DataFrame", k: int, covariance: Any, restarts: int, seed: int | None) -> Any:
    from markovia.models.mixtures.named_mixtures import GaussianMixture, LatentClass

    fractions = all(frame[c].dtype.kind == "f" and (frame[c].dropna() % 1.0 != 0.0).any() for c in frame)
    common: dict[str, Any] = {"n_init": restarts, "random_state": seed, "progress": False}
    made = (
        GaussianMixture(k, covariance_type=covariance, tol=1e-5, max_iter=500, **common)
        if fractions
        else LatentClass(k, max_iter=500, **common)
    )
    return made.fit(frame)
