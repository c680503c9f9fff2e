"""`markovia gp`: a function of numbers with error bars, from the columns of a data file."""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from markovia.cli.rows import data_file, names_file, records, refuse_two_outputs, write_csv
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import save_picture
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import number, print_json, say, show_table
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, Unanswered, check_known, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

COVARIANCES = {
    "rbf": "RBF", "matern12": "Matern12", "matern32": "Matern32", "matern52": "Matern52",
    "rational-quadratic": "RationalQuadratic",
}  # fmt: skip
"""Covariances by their words on the command line, each with a length a column."""


@command(
    "markovia gp data.csv --target y --plot curve.png",
    "markovia gp train.csv --target y --covariance matern52 --at new.csv -o predictions.csv",
    notes=[
        f"Covariances: {', '.join(COVARIANCES)}; each with a variance, a length a column, and noise, all fitted."
    ],
)
def gp(
    data: options.Data,
    target: Annotated[str, option("--target -t COLUMN", "What to predict: a column of numbers.")],
    column: Annotated[
        list[str] | None, option("--column -c COLUMN", "An input; by default all other columns of numbers.")
    ] = None,
    covariance: Annotated[str, option("--covariance NAME", "See below.")] = "rbf",
    method: Annotated[str, option("--method -m NAME", "auto, exact, sgpr, svgp, fourier, ...")] = "auto",
    restarts: Annotated[int, option("--restarts N", "Further starts of the fit.", min=0)] = 0,
    at: Annotated[
        str | None, option("--at FILE", "Predict for the rows of this file, not those of DATA.")
    ] = None,
    plot: Annotated[
        str | None, option("--plot FILE", "Draw it along the first input: .png, .svg or .pdf.")
    ] = None,
    output: options.Rows = None,
    time_limit: options.TimeLimit = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Fit a Gaussian process: means and standard deviations of a target, and which of its numbers say so."""
    from markovia import covariances
    from markovia.models.gaussian.gaussian_process import GaussianProcess

    refuse_two_outputs(output, as_json)
    if covariance not in COVARIANCES:
        near = did_you_mean(covariance, COVARIANCES)
        raise InvalidArgument(f"--covariance is {', '.join(COVARIANCES)}, not {covariance!r}{near}")
    frame = as_frame(data_file(data))
    check_known([target, *(column or [])], frame.columns, "the data")
    inputs = column or [c for c in frame.columns if c != target and frame[c].dtype.kind in "fiub"]
    if not inputs or target in inputs:
        raise InvalidArgument(f"there is no input: --column names columns of numbers other than {target!r}")
    seen = frame[[*inputs, target]].dropna()
    kind = getattr(covariances, COVARIANCES[covariance])
    model = GaussianProcess(
        covariances.Scaled(None, kind(ard=True)) + covariances.White(),
        method=method, restarts=restarts, seed=seed, time_limit=options.seconds(time_limit),
    ).fit(seen[inputs], seen[target])  # fmt: skip
    report: dict[str, Any] = {
        "data": data, "rows": len(seen), "dropped": len(frame) - len(seen), "target": target, "inputs": inputs,
        "method": model.method_, "why": model.info_.note, "log_evidence": model.log_marginal_likelihood_value_,
        "converged": bool(model.converged_), "iterations": model.n_iter_,
        "hyper_parameters": {n: np.asarray(h.value).tolist() for n, h in model.covariance_.hypers().items()},
        **_left_out(model, seen[target].to_numpy(float)),
    }  # fmt: skip
    rows = (
        None
        if at is None and output is None
        else _predicted(model, seen if at is None else _asked(at, inputs), inputs)
    )
    if plot is not None:
        save_picture(model, plot)
    if rows is not None and names_file(output):
        write_csv(iter([rows]), output)
        report["output"] = output
    if as_json:
        print_json(
            report if rows is None or names_file(output) else {**report, "predictions": records(iter([rows]))}
        )
    elif rows is not None and not names_file(output):
        write_csv(iter([rows]), output)
    else:
        _say(report, plot)


def _left_out(model: Any, y: "np.ndarray[Any, np.dtype[np.float64]]") -> dict[str, Any]:
    """Return how well each target is predicted from all others, where that is known in closed form."""
    try:
        found = model.leave_one_out()
    except Unanswered:
        return {}
    away = np.abs(y - found.mean)
    return {
        "left_out_rmse": float(np.sqrt(np.mean(away**2))), "left_out_log_density": float(np.mean(found.log_density)),
        "left_out_inside_90": float(np.mean(away <= 1.6448536269514722 * found.sd)),
    }  # fmt: skip


def _asked(at: str, inputs: list[str]) -> "pd.DataFrame":
    asked = as_frame(data_file(at))
    check_known(inputs, asked.columns, repr(at))
    return asked


def _predicted(model: Any, asked: "pd.DataFrame", inputs: list[str]) -> "pd.DataFrame":
    mean, sd = model.predict(asked[inputs], return_std=True)
    return asked.reset_index(drop=True).assign(mean=mean, sd=sd)


def _say(report: dict[str, Any], plot: str | None) -> None:
    inputs, found = report["inputs"], []
    for name, value in report["hyper_parameters"].items():
        each = value if isinstance(value, list) else [value]
        found += [
            (f"{name} of {inputs[j]}" if isinstance(value, list) else name, number(v))
            for j, v in enumerate(each)
        ]
    say(f"{report['target']} from {', '.join(inputs)}: {report['rows']:,} rows, method {report['method']}")
    if report["dropped"]:
        say(f"left out for missing cells: {report['dropped']:,}")
    show_table(["hyper-parameter", "value"], found)
    say(f"log evidence {number(report['log_evidence'])}, {report['iterations']} steps")
    if "left_out_rmse" in report:
        say(
            f"left out, a target is off by {number(report['left_out_rmse'])} (root mean square), and its 90% interval "
            f"holds it in {report['left_out_inside_90']:.0%} of the rows"
        )
    if plot:
        say(f"drew it to {plot}")
    if "output" in report:
        say(f"wrote the rows to {report['output']}")
