"""Attempts to refute an effect: change the data so that the answer is known, and see whether the method finds it.

A placebo treatment or a dummy outcome should have no effect; another random covariate, a part of the rows or a bootstrap
sample should not move the estimate; a negative control, an outcome that the treatment cannot touch, should show none; a
simulated confounder shows how fast the estimate falls. An effect that passes is not proved; one that fails is in doubt.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import erfc, sqrt
from typing import Any

import numpy as np

from markovia.causal.estimation.checks.sensitivity import partial_r2, relative_bias
from markovia.causal.estimation.effect_result import Effect
from markovia.causal.estimation.methods import dose
from markovia.causal.estimation.study import Study, read_study
from markovia.errors import InvalidArgument, MarkoviaError, check_known
from markovia.graphs.kinds.named import Names, as_names
from markovia.learning.regression.nuisance import fit_glm, with_intercept
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

LEVEL = 0.05
SIMULATED = "unobserved confounder"
"""The one attempt that is no test: it shows on the scale of the covariates what a hidden confounder would do."""


@dataclass(frozen=True)
class Refutation(InNotebooks):
    """One attempt.

    Attributes
    ----------
    kind, passed
        What was tried, and whether the effect withstood it.
    value, expected
        The average estimate found, and what it should be.
    p_value
        How likely a value so far from what is expected is; NaN where the verdict has another ground.
    values
        The single estimates.
    sentence
        All of it in words.
    """

    kind: str
    passed: bool
    value: float
    expected: float
    p_value: float
    values: Array
    sentence: str

    def __str__(self) -> str:
        failed = "scale " if self.kind == SIMULATED else "FAILED"
        return f"{'passed' if self.passed else failed}  {self.kind}: {self.sentence}"


def refute(
    effect: Effect,
    kinds: Iterable[str] | str | None = None,
    *,
    repetitions: int = 20,
    negative_controls: Names = (),
    strength: float = 1.0,
    random_state: Seed = 0,
) -> list[Refutation]:
    """Try to refute an effect.

    Parameters
    ----------
    kinds
        Some of "placebo treatment", "dummy outcome", "random common cause", "subsets", "bootstrap", "negative control" and
        "unobserved confounder"; by default all that apply.
    repetitions
        How often each is repeated.
    negative_controls
        Columns that the treatment cannot affect, but that share its confounders.
    strength
        Of the simulated confounder, in units of the strongest covariate.

    Examples
    --------
    >>> import markovia as mk
    >>> world = mk.causal.simulated_worlds.linear_world(500, seed=1)
    >>> found = mk.causal.effect(world.frame, world.graph, "t", "y", method="regression")
    >>> [(r.kind, r.passed) for r in found.refute(["placebo treatment", "random common cause"])]
    [('placebo treatment', True), ('random common cause', True)]
    """
    check_count("repetitions", repetitions, 5)
    if effect.study is None or effect.again is None:
        why = (
            "the graph itself says that there is no effect"
            if effect.method == "none"
            else "a design is not refitted"
        )
        raise InvalidArgument(f"there is no estimate to refute: {why}")
    asked = [kinds] if isinstance(kinds, str) else list(kinds) if kinds is not None else None
    for kind in asked or ():
        if kind not in KINDS:
            raise InvalidArgument(f"{kind!r} is no refutation; they are {', '.join(map(repr, KINDS))}")
    found = []
    for kind in asked or KINDS:
        rng = generator(random_state)
        if kind == "negative control":
            found += [_negative_control(effect, name) for name in as_names(negative_controls)]
            if asked and not negative_controls:
                raise InvalidArgument("name the columns with negative_controls=")
        elif kind == SIMULATED:
            if effect.adjustment or asked:
                found.append(_confounder(effect, strength, repetitions, rng))
        elif kind != "random common cause" or effect.adjustment or asked:
            found.append(_repeated(effect, kind, KINDS[kind], repetitions, rng))
    return found


def _placebo(study: Study, rng: np.random.Generator) -> Study:
    return replace(study, treatment=rng.permutation(study.treatment), score=None)


def _dummy(study: Study, rng: np.random.Generator) -> Study:
    return replace(study, outcome=rng.permutation(study.outcome))


def _random_cause(study: Study, rng: np.random.Generator) -> Study:
    more = np.column_stack([study.covariates, rng.normal(size=study.n)])
    return replace(study, covariates=more, columns=(*study.columns, "random"), score=None)


def _subset(study: Study, rng: np.random.Generator) -> Study:
    return study.take(rng.permutation(study.n)[: int(0.8 * study.n)])


def _resampled(study: Study, rng: np.random.Generator) -> Study:
    return study.take(rng.integers(0, study.n, study.n))


KINDS: dict[str, Callable[[Study, np.random.Generator], Study] | None] = {
    "placebo treatment": _placebo,
    "dummy outcome": _dummy,
    "random common cause": _random_cause,
    "subsets": _subset,
    "bootstrap": _resampled,
    "negative control": None,
    SIMULATED: None,
}


def _repeated(
    effect: Effect, kind: str, changed: Any, repetitions: int, rng: np.random.Generator
) -> Refutation:
    """Estimate again and again on changed data, and compare with what should come out."""
    study, again = effect.study, effect.again
    assert study is not None
    assert again is not None
    values = []
    for _ in range(repetitions):
        try:
            values.append(again(changed(study, rng))[0].value)
        except (MarkoviaError, np.linalg.LinAlgError):
            continue
    if len(values) < 3:
        raise InvalidArgument(f"the {kind} could not be estimated: too few rows in an arm")
    drawn = np.array(values)
    null = kind in ("placebo treatment", "dummy outcome")
    expected = effect.estimate.null if null else effect.value
    mean, spread = float(drawn.mean()), float(drawn.std(ddof=1))
    p = erfc(abs(mean - expected) / max(spread, 1e-300) / sqrt(2)) if mean != expected else 1.0
    if kind == "random common cause":
        # its spread is tiny, so what counts is how far it moves beside the standard error
        error = effect.standard_error * (effect.value if effect.estimate.on_log_scale else 1.0)
        return Refutation(
            kind, abs(mean - expected) <= 0.5 * error, mean, expected, float("nan"), drawn,
            f"with a random covariate the effect is {mean:.4g}, as without it {expected:.4g}",
        )  # fmt: skip
    words = {
        "placebo treatment": "a shuffled treatment has the effect",
        "dummy outcome": "on a shuffled outcome the effect is",
        "subsets": "on random parts of the rows the effect is",
        "bootstrap": "on resampled rows the effect is",
    }[kind]
    return Refutation(
        kind, p > LEVEL, mean, expected, p, drawn,
        f"{words} {mean:.4g} on average (spread {spread:.2g}), expected {expected:.4g} (p = {p:.2f})",
    )  # fmt: skip


def _negative_control(effect: Effect, name: str) -> Refutation:
    """Estimate the effect on an outcome that the treatment cannot touch."""
    study, again = effect.study, effect.again
    assert study is not None
    assert again is not None
    check_known([name], effect.frame.columns, "the data")
    other = read_study(
        effect.frame.iloc[study.rows], effect.treatment, name, effect.adjustment, instruments=effect.instruments,
        mediators=effect.mediators, missing="drop",
    )  # fmt: skip
    found = again(other)[0]
    low, high = found.interval(1 - LEVEL)
    return Refutation(
        "negative control", low <= found.null <= high, found.value, found.null, found.p_value(), np.array([found.value]),
        f"the effect on {name} is {found.value:.4g} ({low:.4g} to {high:.4g}), expected {found.null:g}",
    )  # fmt: skip


def _confounder(effect: Effect, strength: float, repetitions: int, rng: np.random.Generator) -> Refutation:
    """Add a confounder made from the residuals of treatment and outcome, as strong as the covariate that confounds most."""
    study, again = effect.study, effect.again
    assert study is not None
    assert again is not None
    a, y = dose(study), study.outcome
    # what the covariates leave of the treatment, and what they and the treatment leave of the outcome: not correlated
    both = np.column_stack([study.covariates, a])
    residual = [v - fit_glm(x, v).predict(x) for x, v in ((study.covariates, a), (both, y))]
    rows = with_intercept(study.covariates)
    shares = [partial_r2(c, np.delete(rows, k + 1, axis=1), a, y) for k, c in enumerate(study.covariates.T)]
    strongest = max(shares, key=lambda r: relative_bias(*r), default=(0.01, 0.01))
    pull = [min(strength * sqrt(share), 0.95) for share in strongest]
    sign = np.sign(effect.value - effect.estimate.null) or 1.0
    # of variance one: the first weight is its partial correlation with the treatment, and what is left of it then has the
    # asked for correlation with what is left of the outcome
    left = sqrt(1 - pull[0] ** 2)
    weights = (pull[0], sign * pull[1] * left, left * sqrt(1 - pull[1] ** 2))
    values = []
    for _ in range(repetitions):
        parts = [r / max(float(r.std()), 1e-300) for r in residual]
        hidden = weights[0] * parts[0] + weights[1] * parts[1] + weights[2] * rng.normal(size=study.n)
        covariates = np.column_stack([study.covariates, hidden])
        more = replace(study, covariates=covariates, columns=(*study.columns, "hidden"), score=None)
        try:
            values.append(again(more)[0].value)
        except (MarkoviaError, np.linalg.LinAlgError):
            continue
    drawn = np.array(values) if values else np.array([float("nan")])
    mean = float(drawn.mean())
    kept = (mean - effect.estimate.null) * sign > 0
    return Refutation(
        SIMULATED, bool(kept), mean, effect.value, float("nan"), drawn,
        f"a hidden confounder {strength:g} times as strong as the strongest covariate would make it {mean:.4g}, "
        f"{'of the same' if kept else 'of the other'} sign",
    )  # fmt: skip
