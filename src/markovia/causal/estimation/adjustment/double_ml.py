"""Double machine learning for the partially linear model Y = theta A + g(X) + noise, with any learner.

Both the outcome and the treatment are predicted from the covariates by models that did not see the row; theta is the
slope of one residual on the other (Robinson, 1988; Chernozhukov et al., 2018). With an instrument its residual
takes the place of the treatment's in the moment. The interactive model, without a linear form, is `doubly_robust.aipw`.
Cost: `folds` fits of two (three) learners.
"""

from typing import Any

import numpy as np

from markovia.causal.estimation.adjustment.estimates import Estimate, estimate
from markovia.errors import InvalidArgument
from markovia.learning.regression.nuisance import cross_fit, learner_for, make_folds
from markovia.runtime.array_types import Array


def partially_linear(
    treatment: Array,
    outcome: Array,
    covariates: Array,
    *,
    instrument: Array | None = None,
    learner: Any = None,
    folds: int = 5,
    clusters: Any = None,
    seed: int = 0,
) -> Estimate:
    """Return the slope of the outcome by a treatment (numbers; 0 and 1 where binary).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 1))
    >>> a = x[:, 0] + rng.normal(size=500)
    >>> found = partially_linear(a, 2 * a + x[:, 0] + 0.1 * rng.normal(size=500), x)
    >>> round(found.value, 1)
    2.0
    """
    binary = set(np.unique(treatment)) <= {0.0, 1.0}
    codes = treatment.astype(np.int64) if binary else np.zeros(len(outcome), dtype=np.int64)
    fold = make_folds(codes, folds, np.random.default_rng(seed))
    at = learner_for(learner, "treatment")
    y = outcome - cross_fit(learner_for(learner, "outcome"), covariates, outcome, "gaussian", fold, seed=seed)
    a = treatment - cross_fit(
        at, covariates, treatment, "bernoulli" if binary else "gaussian", fold, seed=seed
    )
    z = a
    if instrument is not None:
        of_two = set(np.unique(instrument)) <= {0.0, 1.0}
        family = "bernoulli" if of_two else "gaussian"
        z = instrument - cross_fit(at, covariates, instrument, family, fold, seed=seed)
    denominator = float(z @ a)
    if float(a @ a) < 1e-12 * len(a) * float(np.var(treatment)) or denominator == 0:
        raise InvalidArgument(
            "the covariates predict the treatment perfectly, so nothing is left to learn its effect from"
        )
    value = float(z @ y) / denominator
    chance = np.column_stack([1 - treatment + a, treatment - a]) if binary else None
    return estimate(
        value, z * (y - value * a) / (denominator / len(y)), clusters=clusters, probabilities=chance
    )
