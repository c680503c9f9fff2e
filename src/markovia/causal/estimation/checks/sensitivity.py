"""How strong an unobserved confounder would have to be: partial R squared, E-value, Rosenbaum's bounds.

- Cinelli & Hazlett (2020): a confounder that explains a share of the residual variance of treatment and outcome moves the
  regression coefficient by se * sqrt(dof) * sqrt(R2_y R2_a / (1 - R2_a)). The robustness value is the share, equal in both,
  that brings the estimate to zero, or its interval to zero. Covariates give a scale: their own partial R squared, and bounds
  on those of a confounder so many times as strong as one of them.
- E-value (VanderWeele & Ding, 2017): the risk ratio with treatment and outcome that would explain the effect.
- Rosenbaum (2002): by what factor the odds of treatment within matched pairs may differ before the signed-rank test no
  longer rejects.
"""

from dataclasses import dataclass
from math import exp, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.causal.estimation.adjustment.estimates import MEASURES, contrast
from markovia.causal.estimation.effect_result import Effect
from markovia.causal.estimation.methods import dose
from markovia.causal.estimation.study import Study
from markovia.errors import InvalidArgument
from markovia.learning.regression.nuisance import propensity, with_intercept
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice
from markovia.runtime.libraries import pd
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RARE = 0.15
"""Below this share of events an odds ratio is as good as a ratio of risks."""


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
        For each covariate its partial R squared with treatment (given the other covariates) and with outcome (given the
        treatment, too). The sentence and the picture both show these.
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
        bias = self.standard_error * sqrt(self.dof) * relative_bias(r2_treatment, r2_outcome)
        return np.sign(self.estimate) * (abs(self.estimate) - bias)

    def bounds(self, multiple: float = 1.0) -> "pd.DataFrame":
        """Return what a confounder would do that is so many times as strong as each covariate.

        Strength is in shares of variance: it explains `multiple` times as much of treatment and outcome, given all else, as
        the covariate does (Cinelli & Hazlett, 2020, section 4.4).

        Returns
        -------
        DataFrame
            For each covariate the partial R squared of such a confounder, exact with the treatment and at most with the
            outcome, and the estimate that it would leave; NaN where none can be so strong.
        """
        own_a, own_y = (
            self.benchmarks["treatment"].to_numpy(float),
            self.benchmarks["outcome"].to_numpy(float),
        )
        r2_a = multiple * own_a / (1 - own_a)
        # what the confounder explains of the covariate itself, given the treatment
        between = multiple * own_a**2 / ((1 - multiple * own_a) * (1 - own_a))
        with np.errstate(invalid="ignore", divide="ignore"):
            reach = (np.sqrt(multiple) + np.sqrt(between)) / np.sqrt(1 - between)
            r2_y = np.minimum(reach**2 * own_y / (1 - own_y), 1.0)
        possible = (r2_a < 1) & (between < 1) & (multiple * own_a < 1)
        r2_a, r2_y = np.where(possible, r2_a, np.nan), np.where(possible, r2_y, np.nan)
        return pd.DataFrame(
            {"treatment": r2_a, "outcome": r2_y, "adjusted": self.adjusted(r2_a, r2_y)},
            index=self.benchmarks.index,
        )

    def __str__(self) -> str:
        lines = [
            f"A hidden confounder would have to explain {self.robustness:.1%} of the residual variance of both treatment "
            "and outcome to bring the estimate to zero",
            f"  ({self.robustness_interval:.1%} to bring its 95% interval there).",
        ]
        if len(self.benchmarks):
            shares = self.benchmarks[["treatment", "outcome"]].to_numpy(dtype=float)
            # the one nearest to the line of no effect in the picture
            top = int(np.argmax(relative_bias(*shares.T)))
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
        return ports.draw("plot-sensitivity", self, ax=ax)


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
    point, end = _e_values(effect, study)
    binary = study.levels is not None
    return Sensitivity(
        value, error, dof, robustness_value(t, dof), robustness_value(t, dof, alpha=0.05), benchmarks, point, end,
        rosenbaum_gamma(_pairs(a.astype(np.int64), y, study.covariates)) if binary else float("nan"),
    )  # fmt: skip


def relative_bias(r2_treatment: Any, r2_outcome: Any) -> Any:
    """Return the bias of a confounder in units of the standard error times the root of the degrees of freedom."""
    return np.sqrt(r2_outcome * r2_treatment / (1 - r2_treatment))


def robustness_value(t: float, dof: int, *, q: float = 1.0, alpha: float | None = None) -> float:
    """Return the share of residual variance, equal for treatment and outcome, that explains a t statistic.

    Parameters
    ----------
    t, dof
        The t statistic of the treatment in a linear regression, and its degrees of freedom.
    q
        The share of the estimate that is to be explained away.
    alpha
        With a level: what makes the rest no longer significant at it, instead of zero.

    Examples
    --------
    >>> round(robustness_value(4.18, 783), 3), round(robustness_value(4.18, 783, alpha=0.05), 3)
    (0.139, 0.076)
    """
    f, critical = q * abs(t) / sqrt(dof), 0.0
    if alpha is not None:
        from scipy.stats import t as student

        # the confounder costs a degree of freedom
        critical = float(student.isf(alpha / 2, dof - 1)) / sqrt(dof - 1)
    if f <= critical:
        return 0.0
    if critical * f > 1:
        # so few rows that the confounder does most by taking variance from the treatment: nothing of the outcome's is needed
        return (f**2 - critical**2) / (1 + f**2)
    f -= critical
    return 0.5 * (sqrt(f**4 + 4 * f**2) - f**2)


def e_value(
    value: float, interval: tuple[float, float] | None = None, *, measure: str = "ratio", rare: bool = False
) -> Any:
    """Return the E-value: the risk ratio of a confounder with treatment and outcome that would explain an effect away.

    Protective effects (ratios below 1) are explained by what explains their inverse. No effect has the E-value 1.

    Parameters
    ----------
    value, interval
        The effect, and its confidence interval if the E-value of the end nearer to no effect is wanted, too: 1 where the
        interval holds no effect.
    measure
        "ratio" of risks; "odds ratio", whose square root stands for the ratio of risks; or "difference" of means in standard
        deviations of the outcome, d, for which exp(0.91 d) does (VanderWeele & Ding, 2017).
    rare
        Whether the outcome is so rare (below 15%) that odds are as good as risks.

    Returns
    -------
    float, or two of them with an interval

    Examples
    --------
    >>> round(e_value(3.9), 2), round(e_value(1 / 3.9), 2), e_value(1.0)
    (7.26, 7.26, 1.0)
    >>> [round(v, 2) for v in e_value(0.8, (0.71, 0.91))]
    [1.81, 1.43]
    """
    check_choice("measure", measure, MEASURES)
    ends = (value, *(interval if interval is not None else ()))
    if (
        (measure != "difference" and min(ends) < 0)
        or not np.isfinite(value)
        or (value == 0 and measure != "difference")
    ):
        raise InvalidArgument(f"an E-value is that of a {measure}, a positive number, not {min(ends):g}")
    if measure == "difference":
        ends = tuple(exp(min(max(0.91 * v, -300.0), 300.0)) for v in ends)
    elif measure == "odds ratio" and not rare:
        ends = tuple(sqrt(v) for v in ends)
    point = _of_a_ratio(ends[0])
    if interval is None:
        return point
    low, high = ends[1:]
    return point, 1.0 if low <= 1 <= high else _of_a_ratio(low if low > 1 else high)


def _of_a_ratio(ratio: float) -> float:
    ratio = max(ratio, 1 / ratio)
    return ratio + sqrt(ratio * (ratio - 1))


def _e_values(effect: Effect, study: Study) -> tuple[float, float]:
    """Return the E-values of the estimate and of the interval's end nearer to no effect."""
    low, high = effect.interval
    arms = effect.means
    value, ends, measure = effect.value, (low, high), effect.measure
    if measure == "difference" and study.family == "bernoulli" and arms is not None and arms.values.min() > 0:
        ratio = contrast(arms, effect.settings.treated, effect.settings.control, "ratio")
        value, ends, measure = ratio.value, ratio.interval(effect.level), "ratio"
    elif measure == "difference":
        unit = _spread(study)
        value, ends = value / unit, (low / unit, high / unit)
    rare = study.family == "bernoulli" and float(study.outcome.mean()) < RARE
    point, near = e_value(value, ends, measure=measure, rare=rare)
    # an interval that holds no effect holds none on any scale
    return point, 1.0 if low <= effect.estimate.null <= high else near


def _spread(study: Study) -> float:
    """Return the standard deviation of the outcome: within the arms that are compared, or of all rows for a dose."""
    if study.levels is None:
        return float(study.outcome.std(ddof=1)) or 1.0
    arms = [study.outcome[study.codes == k] for k in np.unique(study.codes)]
    within = sum(float(((y - y.mean()) ** 2).sum()) for y in arms)
    return sqrt(within / max(study.n - len(arms), 1)) or 1.0


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
    score = np.log(p / (1 - p)).round(9)
    # rows of one score are paired at random, and a sample is enough, as an assignment is cubic; both are drawn from rows in
    # an order of their own, so that the one in which they came has no say
    shuffled = np.lexsort((a, y, score))[np.random.default_rng(0).permutation(len(y))]
    treated, control = (shuffled[a[shuffled] == k][:700] for k in (1, 0))
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
