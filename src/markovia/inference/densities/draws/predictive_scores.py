"""How well models predict new data: PSIS-LOO, WAIC and their comparison.

References: Vehtari, Gelman and Gabry (2017); Vehtari, Simpson, Gelman, Yao and Gabry (2024); Watanabe (2010); Yao, Vehtari,
Simpson and Gelman (2018) for stacking weights. From the log likelihood of each observation at each draw; ArviZ computes.
Cost: draws times observations. A Pareto k above 0.7 says that an observation is too influential for its estimate to be
trusted; refit without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.posterior_questions import arviz
from markovia.inference.weighted_draws.weight_diagnostics import MAX_TAIL_INDEX
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd

    from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior


@dataclass(frozen=True)
class PredictiveScore(InNotebooks):
    """The expected log density of new data under a model.

    Attributes
    ----------
    elpd, error
        The estimate, larger is better, and its standard error.
    parameters
        The effective number of parameters.
    pointwise
        The contribution of each observation.
    pareto_k
        For PSIS-LOO, the tail index of each observation's weights; above 0.7 it is not to be trusted. None for WAIC.
    method
        "PSIS-LOO" or "WAIC".
    """

    elpd: float
    error: float
    parameters: float
    pointwise: Array = field(repr=False)
    pareto_k: Array | None = field(repr=False)
    method: str

    @property
    def trusted(self) -> bool:
        """Whether no observation is too influential."""
        return self.pareto_k is None or bool((self.pareto_k <= MAX_TAIL_INDEX).all())

    def __str__(self) -> str:
        said = f"{self.method}: elpd {self.elpd:.2f} ± {self.error:.2f}, {self.parameters:.1f} effective parameters"
        if self.pareto_k is not None and not self.trusted:
            many = int((self.pareto_k > MAX_TAIL_INDEX).sum())
            said += f"; {many} of {len(self.pointwise)} observations have a Pareto k above {MAX_TAIL_INDEX}"
        return said


def _inference_data(posterior: "DrawnPosterior") -> Any:
    """Return the log likelihoods of all observed nodes as one variable of ArviZ's."""
    found = posterior.log_likelihood()
    joined = np.concatenate([v.reshape(*v.shape[:2], -1) for v in found.values()], axis=2)
    return arviz().from_dict(posterior={"unused": joined[:, :, 0]}, log_likelihood={"observed": joined})


def loo(posterior: "DrawnPosterior") -> PredictiveScore:
    """Return the PSIS-LOO score of a posterior."""
    found = _quietly(arviz().loo, _inference_data(posterior), pointwise=True, scale="log")
    return PredictiveScore(
        float(found.elpd_loo),
        float(found.se),
        float(found.p_loo),
        np.asarray(found.loo_i),
        np.asarray(found.pareto_k),
        "PSIS-LOO",
    )


def waic(posterior: "DrawnPosterior") -> PredictiveScore:
    """Return the WAIC score of a posterior, on the scale of log densities."""
    found = _quietly(arviz().waic, _inference_data(posterior), pointwise=True, scale="log")
    return PredictiveScore(
        float(found.elpd_waic), float(found.se), float(found.p_waic), np.asarray(found.waic_i), None, "WAIC"
    )


def compare(
    posteriors: Mapping[str, "DrawnPosterior"] | Sequence["DrawnPosterior"],
    *,
    by: Literal["loo", "waic"] = "loo",
    weights: Literal["stacking", "BB-pseudo-BMA", "pseudo-BMA"] = "stacking",
) -> "pd.DataFrame":
    """Compare models by how well they predict the same observations: one row a model, best first.

    Parameters
    ----------
    posteriors
        Posteriors by the name of their model, or a list of them, which are then called 0, 1, ...; all of the same
        observations.
    by
        Leave-one-out cross-validation or WAIC.
    weights
        How models are weighed: by stacking, or by (bootstrapped) pseudo Bayesian model averaging.

    Returns
    -------
    pandas.DataFrame
        rank, elpd, effective parameters, difference to the best, weight, standard errors of elpd and of the difference.
    """
    check_choice("by", by, ("loo", "waic"))
    check_choice("weights", weights, ("stacking", "BB-pseudo-BMA", "pseudo-BMA"))
    named = posteriors if isinstance(posteriors, Mapping) else {str(i): p for i, p in enumerate(posteriors)}
    if len(named) < 2:
        raise InvalidArgument("give two posteriors or more to compare: {name: posterior, ...}")
    for name, p in named.items():
        if not hasattr(p, "log_likelihood"):
            raise InvalidArgument(
                f"models are compared by the log likelihood of each observation at draws of their parameters, which "
                f"{name!r}, a {type(p).__name__}, does not have; score models of tables by log_evidence(...)"
            )
    many = {n: sum(v[0, 0].size for v in p.log_likelihood().values()) for n, p in named.items()}
    if len(set(many.values())) > 1:
        raise InvalidArgument(f"models can be compared on the same observations only; these have {many}")
    data = {n: _inference_data(p) for n, p in named.items()}
    found: pd.DataFrame = _quietly(arviz().compare, data, ic=by, method=weights, scale="log")
    return found.rename(
        columns={f"elpd_{by}": "elpd", f"p_{by}": "parameters", "elpd_diff": "difference", "se": "error",
                 "dse": "difference_error", "warning": "untrusted"}
    ).drop(columns="scale")  # fmt: skip


def _quietly(function: Any, *args: Any, **options: Any) -> Any:
    """Call a function of ArviZ, whose warnings the answer says in its own words."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **options)
