"""Propensity scores: the probability of each treatment given covariates, fitted once, looked at, and used by many methods.

Given the score, treatment and covariates are independent, so rows with like scores in the two arms are comparable however
many covariates there are. It is judged without a look at the outcome: by overlap, and by the balance of covariates that its
weights bring about. Reference: Rosenbaum and Rubin, *The central role of the propensity score in observational studies for
causal effects*, Biometrika 70 (1983). Cost: one logistic regression, or one learner a fold.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.causal.estimation.adjustment.diagnostics import Balance, Overlap, balance, overlap
from markovia.causal.estimation.adjustment.stratification import score_strata
from markovia.causal.estimation.arms import arms
from markovia.causal.estimation.study import MISSING, Study, read_study
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument
from markovia.graphs.kinds.named import Names, as_names
from markovia.learning.regression.nuisance import CLIP, Propensity, clipped, make_folds, propensity
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice, check_count
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class PropensityScore(InNotebooks):
    """The fitted probabilities of treatment; `mk.causal.propensity_score` makes one.

    Attributes
    ----------
    treatment, covariates
        The columns.
    control, treated
        The two levels of the treatment that are compared.
    model
        What was fitted: "a logistic regression" to all rows, or a learner, which did not see the rows that it scores.
    """

    treatment: str
    covariates: tuple[str, ...]
    control: Any
    treated: Any
    model: str
    study: Study
    index: Any
    frame_rows: int

    @property
    def levels(self) -> tuple[Any, ...]:
        """The levels of the treatment."""
        assert self.study.levels is not None
        return self.study.levels

    @property
    def probabilities(self) -> Array:
        """The probabilities of the levels, shape (rows, levels)."""
        assert self.study.score is not None
        return self.study.score.probabilities

    @property
    def scores(self) -> Array:
        """The probability of the treated level, one a row."""
        return np.asarray(self.probabilities[:, self.levels.index(self.treated)])

    def weights(self, estimand: str = "ate", *, clip: float = CLIP) -> Array:
        """Return inverse-probability weights of the rows: for everyone ("ate"), the treated ("att") or the rest ("atc")."""
        check_choice("estimand", estimand, ("ate", "att", "atc"))
        p = clipped(self.probabilities, clip)
        among = {"att": self.treated, "atc": self.control}
        tilt = p[:, self.levels.index(among[estimand])] if estimand in among else 1.0
        return np.asarray(tilt / p[np.arange(len(p)), self.study.codes])

    def strata(self, n: int = 5) -> Ints:
        """Return each row's stratum, 0 and up, between quantiles of the score; ties share one."""
        check_count("n", n, 1)
        return score_strata(self.scores, n)

    def overlap(self, estimand: str = "ate") -> Overlap:
        """Return how far both arms occur at all scores, and how many rows the weights leave effectively."""
        weights, treated = self.weights(estimand), self.levels.index(self.treated)
        return overlap(self.study.codes, self.probabilities, weights, treated, f"of {self.model}")

    def balance(self, estimand: str = "ate") -> Balance:
        """Return standardised differences of the covariates between the arms, before and after weighting."""
        ends = self.levels.index(self.treated), self.levels.index(self.control)
        study = self.study
        return balance(study.codes, study.covariates, study.columns, self.weights(estimand), *ends)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the probabilities of the levels, one row a row of the data and with its index."""
        import pandas as pd

        return pd.DataFrame(self.probabilities, index=self.index, columns=list(self.levels))

    def plot(self, *, ax: Any = None) -> "Axes":
        """Draw the scores of the two arms against each other: histograms, the treated above."""
        return ports.draw("plot-propensity", self, ax=ax)

    def __str__(self) -> str:
        sizes = zip(np.bincount(self.study.codes, minlength=len(self.levels)), self.levels, strict=True)
        counted = ", ".join(f"{size:,} with {level}" for size, level in sizes)
        worst = self.balance().worst
        balanced = f"largest standardised difference {worst[0]:.2f} before, {worst[1]:.2f} after weighting"
        return (
            f"The propensity of {self.treatment} = {self.treated} given {', '.join(self.covariates) or 'nothing'}\n"
            f"  model    {self.model}\n"
            f"  rows     {len(self.probabilities):,}: {counted}\n"
            f"  overlap  {self.overlap()}\n"
            f"  balance  {balanced if self.study.columns else 'nothing to balance'}"
        )

    __repr__ = __str__

    def for_rows(self, study: Study) -> Propensity:
        """Return the probabilities of a study's rows, which have to be rows of the same data."""
        place = np.full(self.frame_rows, -1)
        place[self.study.rows] = np.arange(self.study.n)
        at = place[study.rows] if study.rows.max() < self.frame_rows else np.array([-1])
        if study.levels != self.levels or at.min() < 0 or (self.study.codes[at] != study.codes).any():
            raise InvalidArgument(
                "the propensity score was fitted to other rows or another treatment; fit it to this frame, with the same "
                "missing="
            )
        # the error of the fit is known where the study has exactly the rows and columns that were fitted
        assert self.study.score is not None
        same = study.n == self.study.n and study.columns == self.study.columns
        return Propensity(self.probabilities[at], self.study.score.scores if same else None)


def propensity_score(
    frame: Any,
    treatment: str,
    covariates: Names,
    *,
    learner: Any = None,
    folds: int = 5,
    control: Any = None,
    treated: Any = None,
    missing: str = "error",
    random_state: Seed = 0,
) -> PropensityScore:
    """Fit the probability of each level of a treatment given covariates.

    Parameters
    ----------
    frame, treatment, covariates
        Rows in any form, the column of a treatment of a few levels, and the columns that it may depend on, such as a set of
        `adjustment_sets`.
    learner, folds
        None for a (multinomial) logistic regression of all rows, "boosting", "forest" or a scikit-learn classifier, each row
        then scored by one fitted to the other folds.
    control, treated, missing, random_state
        As in `effect`.

    Returns
    -------
    PropensityScore
        `overlap()`, `balance()`, `weights()`, `strata()`, `plot()`; and `effect(..., propensity=score)` uses it.

    Examples
    --------
    >>> import markovia as mk
    >>> world = mk.causal.simulated_worlds.linear_world(2000, seed=1)
    >>> score = propensity_score(world.frame, "t", ["x1", "x2"])
    >>> before, after = score.balance().worst
    >>> round(before, 2), round(after, 2), score.overlap().good
    (0.49, 0.01, True)
    >>> used = [mk.causal.effect(world.frame, world.graph, "t", "y", method=m, propensity=score) for m in ("ipw", "aipw")]
    >>> [abs(found.value - world.ate) < 3 * found.standard_error for found in used]
    [True, True]
    """
    check_choice("missing", missing, MISSING)
    check_count("folds", folds, 2)
    table = as_frame(frame)
    names = tuple(dict.fromkeys(as_names(covariates)))
    study = read_study(table, treatment, None, names, missing=missing)
    if study.levels is None:
        raise InvalidArgument(
            f"the treatment {treatment!r} is a number of many values, which have no probability; cut it into classes"
        )
    if treatment in names:
        raise InvalidArgument(f"{treatment!r} is the treatment and cannot be one of its own covariates")
    low, high, _ = arms(study.levels, treatment, control, treated)
    fitted, model = treatment_model(study, learner, folds, int(generator(random_state).integers(2**31)))
    if fitted.scores is None:
        model += ", cross-fitted"
    return PropensityScore(
        treatment, names, study.levels[low], study.levels[high], model,
        study=replace(study, score=fitted), index=table.index[study.rows], frame_rows=len(table),
    )  # fmt: skip


def treatment_model(study: Study, learner: Any, folds: int, seed: int) -> tuple[Propensity, str]:
    """Return probabilities of the arms, by a learner for the rows of other folds or else logistic; and what it is called."""
    assert study.levels is not None
    fold, name = None, "a logistic regression"
    if learner is not None and learner != "linear":
        folds = max(2, min(folds, int(np.bincount(study.codes).min())))
        fold = make_folds(study.codes, folds, np.random.default_rng(seed))
        name = learner if isinstance(learner, str) else type(learner).__name__
    arms = len(study.levels)
    return propensity(study.codes, study.covariates, arms, learner=learner, fold=fold, seed=seed), name
