"""How strong an unobserved confounder would have to be: partial R squared, E-value, Rosenbaum's bounds.

- Cinelli & Hazlett (2020): a confounder that explains a share of the residual variance of treatment and outcome moves the
  regression coefficient by se * sqrt(dof) * sqrt(R2_y R2_a / (1 - R2_a)). The robustness value is the share, equal in both,
  that brings the estimate to zero, or its interval to zero. Covariates give a scale.
- E-value (VanderWeele & Ding, 2017): the risk ratio with treatment and outcome that would explain the effect.
- Rosenbaum (2002): by what factor the odds of treatment within matched pairs may differ before the signed-rank test no
  longer rejects.
"""

from dataclasses import dataclass
from math import exp, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.causal.estimation.effect_result import Effect
from markovia.causal.estimation.methods import dose
from markovia.causal.estimation.nuisance import propensity, with_intercept
from markovia.errors import InvalidArgument
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Sensitivity(InNotebooks):
    """How much hidden confounding an effect withstands.

    Attributes
    ----------
    estimate, standard_error, dof
        Of the treatment in the linear regression on treatment and covariates, on which the partial R squared rests.
    robustness, robustness_interval
        The share of residual variance of both treatment and outcome that would bring the estimate, or the near end of its
        95% interval, to zero.
    benchmarks
        For each covariate its partial R squared with treatment and with outcome.
    e_value, e_value_interval
        The risk ratio that would explain the estimate, or the interval's near end, away; 1 where it holds no effect anyway.
    gamma
        Rosenbaum's bound: the largest factor on the odds of treatment at which the pairs still reject; NaN without pairs.
    """

    estimate: float
    standard_error: float
    dof: int
    robustness: float
    robustness_interval: float
    benchmarks: "pd.DataFrame"
    e_value: float
    e_value_interval: float
    gamma: float

    def adjusted(self, r2_treatment: Any, r2_outcome: Any) -> Any:
        """Return the estimate that a confounder with these partial R squared would leave; arrays give arrays."""
        r2_treatment, r2_outcome = np.asarray(r2_treatment, float), np.asarray(r2_outcome, float)
        bias = self.standard_error * sqrt(self.dof) * np.sqrt(r2_outcome * r2_treatment / (1 - r2_treatment))
        return np.sign(self.estimate) * (abs(self.estimate) - bias)

    def __str__(self) -> str:
        lines = [
            f"A hidden confounder would have to explain {self.robustness:.1%} of the residual variance of both treatment "
            "and outcome to bring the estimate to zero",
            f"  ({self.robustness_interval:.1%} to bring its 95% interval there).",
        ]
        if len(self.benchmarks):
            shares = self.benchmarks.to_numpy(dtype=float)
            top = int(np.argmax(shares.min(axis=1)))
            name, (a, y) = self.benchmarks.index[top], shares[top]
            lines.append(
                f"  For scale, {name} explains {a:.1%} of the treatment's and {y:.1%} of the outcome's."
            )
        lines.append(f"E-value {self.e_value:.2f} (interval {self.e_value_interval:.2f}).")
        if np.isfinite(self.gamma):
            lines.append(
                f"Matched pairs reject up to odds of treatment that differ by a factor of {self.gamma:.2f} (Rosenbaum)."
            )
        return "\n".join(lines)

    def plot(self, *, ax: Any = None) -> "Axes":
        """Draw the contour of the adjusted estimate over both partial R squared, with the covariates for scale."""
        drawn: Axes = ports.call("plot-sensitivity", self, ax=ax)
        return drawn


def sensitivity(effect: Effect) -> Sensitivity:
    """Return the sensitivity of an effect by adjustment to an unobserved confounder.

    Examples
    --------
    >>> import markovia as mk
    >>> world = mk.causal.simulated_worlds.linear_world(500, seed=1)
    >>> found = mk.causal.effect(world.frame, world.graph, "t", "y").sensitivity()
    >>> 0.4 < found.robustness < 0.8 and found.gamma > 2
    True
    """
    import pandas as pd

    study = effect.study
    if study is None or effect.instruments or effect.mediators or effect.method in ("plug-in", "none"):
        raise InvalidArgument("sensitivity to hidden confounders is defined for effects by adjustment")
    a, y = dose(study), study.outcome
    if study.levels is not None:
        rows = np.isin(study.codes, [effect.settings.treated, effect.settings.control])
        study, y = study.take(rows), y[rows]
        a = (study.codes == effect.settings.treated).astype(float)
    x = with_intercept(study.covariates)
    value, error, dof = _coefficient(a, y, x)
    t = value / error
    scores = [
        partial_r2(column, np.delete(x, k + 1, axis=1), a, y) for k, column in enumerate(study.covariates.T)
    ]
    benchmarks = pd.DataFrame(
        scores, columns=["treatment", "outcome"], index=pd.Index(study.columns, name="covariate")
    )
    near = max(abs(t) - NormalDist().inv_cdf(0.975), 0.0)
    point, end = _e_values(effect, y)
    binary = study.levels is not None
    return Sensitivity(
        value, error, dof, robustness_value(t, dof), robustness_value(near, dof), benchmarks, point, end,
        rosenbaum_gamma(_pairs(a.astype(np.int64), y, study.covariates)) if binary else float("nan"),
    )  # fmt: skip


def robustness_value(t: float, dof: int) -> float:
    """Return the share of residual variance, equal for treatment and outcome, that explains a t statistic.

    Examples
    --------
    >>> round(robustness_value(4.18, 783), 3)
    0.139
    """
    f = abs(t) / sqrt(dof)
    return 0.5 * (sqrt(f**4 + 4 * f**2) - f**2)


def e_value(risk_ratio: float) -> float:
    """Return the E-value of a risk ratio.

    Examples
    --------
    >>> round(e_value(3.9), 2), round(e_value(1 / 3.9), 2)
    (7.26, 7.26)
    """
    ratio = max(risk_ratio, 1 / risk_ratio)
    return ratio + sqrt(ratio * (ratio - 1))


def _e_values(effect: Effect, outcome: Array) -> tuple[float, float]:
    """Return the E-values of the estimate and of the interval's end nearer to no effect."""
    low, high = effect.interval
    if effect.measure == "difference" and effect.study is not None:
        means = effect.means
        if effect.study.family == "bernoulli" and means is not None and min(means.values) > 0:
            base = float(means.values[effect.settings.control])
            ratios = [max(base + v, 1e-6) / base for v in (effect.value, low, high)]
        else:
            # a standardised difference as a risk ratio (Chinn, 2000; VanderWeele & Ding, 2017)
            unit = float(outcome.std()) or 1.0
            ratios = [exp(float(np.clip(0.91 * v / unit, -300, 300))) for v in (effect.value, low, high)]
    elif effect.measure == "odds ratio":
        ratios = [sqrt(v) for v in (effect.value, low, high)]
    else:
        ratios = [effect.value, low, high]
    point, low, high = ratios
    near = low if point > 1 else high
    return e_value(point), 1.0 if (near - 1) * (point - 1) <= 0 else e_value(near)


def _coefficient(a: Array, y: Array, x: Array) -> tuple[float, float, int]:
    """Return the coefficient of a in the regression of y on a and x, its classical error, and the degrees of freedom."""
    left_a, left_y = (v - x @ np.linalg.lstsq(x, v, rcond=None)[0] for v in (a, y))
    value = float(left_a @ left_y / (left_a @ left_a))
    dof = max(len(y) - x.shape[1] - 1, 1)
    residual = left_y - value * left_a
    return value, sqrt(float(residual @ residual) / dof / float(left_a @ left_a)), dof


def partial_r2(column: Array, others: Array, a: Array, y: Array) -> tuple[float, float]:
    """Return what a covariate explains of the treatment given the others, and of the outcome given both."""
    found = []
    for target, given in ((a, others), (y, np.column_stack([others, a]))):
        value, error, dof = _coefficient(column, target, given)
        t2 = (value / error) ** 2 if error > 0 else 0.0
        found.append(t2 / (t2 + dof))
    return found[0], found[1]


def _pairs(a: Ints, y: Array, covariates: Array) -> Array:
    """Pair each treated row with an untreated one of like propensity, each used once; return the outcomes' differences."""
    from scipy.optimize import linear_sum_assignment

    p = np.clip(propensity(a, covariates, 2).probabilities[:, 1], 1e-6, 1 - 1e-6)
    score = np.log(p / (1 - p))
    treated, control = np.flatnonzero(a == 1), np.flatnonzero(a == 0)
    # an assignment is cubic: a spread-out sample is enough for the test
    treated, control = (v[:: max(1, -(-len(v) // 700))] for v in (treated, control))
    one, two = linear_sum_assignment(np.abs(score[treated][:, None] - score[control][None, :]))
    near = np.abs(score[treated][one] - score[control][two]) <= 0.2 * max(float(score.std()), 1e-9)
    return np.asarray(y[treated][one][near] - y[control][two][near])


def rosenbaum_gamma(differences: Array, level: float = 0.05) -> float:
    """Return the largest factor on the odds of treatment within pairs at which the signed-rank test still rejects.

    Examples
    --------
    >>> round(rosenbaum_gamma(np.linspace(-0.1, 1.0, 50)), 1) > 3
    True
    """
    from scipy.stats import rankdata

    kept = differences[differences != 0]
    if len(kept) < 10:
        return float("nan")
    ranks = rankdata(np.abs(kept))
    statistic = max(float(ranks[kept > 0].sum()), float(ranks[kept < 0].sum()))
    limit = NormalDist().inv_cdf(1 - level)

    def rejects(gamma: float) -> bool:
        chance = gamma / (1 + gamma)
        spread = sqrt(chance * (1 - chance) * float(ranks @ ranks))
        return (statistic - chance * float(ranks.sum())) / spread > limit

    if not rejects(1.0):
        return 1.0
    low, high = 1.0, 2.0
    while rejects(high) and high < 1e6:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rejects(middle) else (low, middle)
    return low
