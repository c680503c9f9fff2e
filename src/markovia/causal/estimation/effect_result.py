"""The answer of `effect`: a number with its interval, and everything that lets a reader judge it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.causal.estimation.adjustment.diagnostics import SMALL, Balance, Overlap
from markovia.causal.estimation.adjustment.dose_response import dose_response
from markovia.causal.estimation.adjustment.estimates import ArmMeans, Estimate, contrast
from markovia.causal.estimation.adjustment.instrumental_variables import FirstStage
from markovia.causal.estimation.adjustment.meta_learners import meta_learner
from markovia.causal.estimation.dose_curve import DoseResponse
from markovia.causal.estimation.methods import METHODS, EffectSettings
from markovia.causal.estimation.study import Study
from markovia.causal.identification.estimand import Estimand
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.runtime import ports
from markovia.runtime.libraries import pd
from markovia.runtime.shown import html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from markovia.causal.estimation.checks.refutation import Refutation
    from markovia.causal.estimation.checks.report import Report
    from markovia.causal.estimation.checks.sensitivity import Sensitivity

_WHO = {
    "ate": "over everyone",
    "att": "among those who had it",
    "atc": "among those who did not have it",
    "cutoff": "at the cutoff",
}


@dataclass(frozen=True)
class Effect:
    """An estimated effect.

    Attributes
    ----------
    value, standard_error, interval, p_value
        The estimate; its error (of the logarithm for ratios); the confidence interval at `level`; the p-value of no effect.
    method, why
        How it was estimated, and a sentence on why so.
    formula
        What identifies it; None for instruments.
    adjustment, mediators, instruments
        The columns used.
    overlap, balanced, first_stage
        Diagnostics, None where they have no meaning.
    target, control, treated
        Over whom the effect is: "ate", "att" or "atc", "cutoff" for a discontinuity; and the two levels compared.
    """

    estimate: Estimate
    level: float
    method: str
    why: str
    formula: Estimand | None
    target: str
    measure: str
    treatment: str
    outcome: str
    control: Any
    treated: Any
    adjustment: tuple[str, ...] = ()
    mediators: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    overlap: Overlap | None = None
    balanced: Balance | None = None
    first_stage: FirstStage | None = None
    notes: tuple[str, ...] = ()
    what: str = ""
    study: Study | None = field(default=None, repr=False)
    means: ArmMeans | None = field(default=None, repr=False)
    settings: EffectSettings = field(default_factory=lambda: EffectSettings(1, 0), repr=False)
    again: Callable[[Study], tuple[Estimate, ArmMeans | None]] | None = field(default=None, repr=False)
    frame: Any = field(default=None, repr=False)
    graph: MixedGraph | None = field(default=None, repr=False)

    @property
    def value(self) -> float:
        """The estimate."""
        return self.estimate.value

    @property
    def standard_error(self) -> float:
        """Its standard error; that of its logarithm for ratios."""
        return self.estimate.standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval at `level`."""
        return self.estimate.interval(self.level)

    @property
    def p_value(self) -> float:
        """How likely an estimate so far from no effect is without one."""
        return self.estimate.p_value()

    @property
    def n(self) -> int:
        """How many rows were used."""
        return len(self.frame) if self.study is None else self.study.n

    def __str__(self) -> str:
        low, high = self.interval
        head = f"The effect of {self.treatment} on {self.outcome} is {_number(self.value)}"
        if self.method == "none":
            return f"{head}: there is none\n  why      {self.why}"
        head += f" ({self.level:.0%} interval {_number(low)} to {_number(high)}, {_p(self.p_value)})"
        lines = {"what": self._what(), "how": self._how(), "why": self.why, "rows": self._rows()}
        if self.overlap is not None:
            lines["overlap"] = str(self.overlap)
        if self.balanced is not None:
            before, after = self.balanced.worst
            verdict = "balanced" if after < SMALL else "NOT balanced: adjust further, or trim"
            lines["balance"] = (
                f"largest standardised difference {before:.2f} before, {after:.2f} after; {verdict}"
            )
        if self.first_stage is not None:
            weak = (
                "WEAK, the estimate leans towards the biased one"
                if self.first_stage.weak
                else "strong enough"
            )
            lines["first"] = f"F = {self.first_stage.f:,.1f} of the instrument on the treatment; {weak}"
        for k, note in enumerate(self.notes):
            lines["note" + " " * k] = note
        return "\n".join([head, *(f"  {key.strip():<8} {text}" for key, text in lines.items())])

    def _what(self) -> str:
        if self.what:  # a design has words of its own
            return self.what
        word = {"difference": "difference in", "ratio": "ratio of", "odds ratio": "odds ratio of"}[
            self.measure
        ]
        study = self.study
        shown = (
            f"P({self.outcome} = {study.event})"
            if study is not None and study.event is not None
            else f"mean {self.outcome}"
        )
        who = (
            "among those whom the instrument moves" if self.method in ("late", "wald") else _WHO[self.target]
        )
        if self.given:
            who += f" with {', '.join(f'{k} = {v}' for k, v in self.given.items())}"
        return f"{word} {shown} between {self.treatment} = {self.treated} and {self.control}, {who}"

    def _how(self) -> str:
        network = "the formula evaluated on the fitted network"
        title = (
            METHODS[self.method].title if self.method in METHODS else network if self.formula else self.method
        )
        used = {"adjusted for": self.adjustment, "through": self.mediators, "by": self.instruments}
        extra = "; ".join(f"{word} {listed(names)}" for word, names in used.items() if names)
        errors = "bootstrap errors" if self.estimate.draws is not None else ""
        return ", ".join(part for part in (title, extra, errors) if part)

    def _rows(self) -> str:
        study = self.study
        if study is None:
            return f"{self.n:,}"
        if study.levels is None:
            return f"{study.n:,}"
        sizes = np.bincount(study.codes, minlength=len(study.levels))
        return f"{study.n:,}: " + ", ".join(
            f"{size:,} with {self.treatment} = {level}"
            for level, size in zip(study.levels, sizes, strict=True)
        )

    def summary(self) -> "pd.DataFrame":
        """Return a frame: the effect, every other level against the control, and the mean outcome of each level."""
        rows = {f"{self.treated} vs {self.control}": self.estimate}
        if self.means is not None and self.study is not None and self.study.levels is not None:
            low = self.settings.control
            for k, name in enumerate(self.study.levels):
                if k not in (low, self.settings.treated):
                    rows[f"{name} vs {self.control}"] = contrast(self.means, k, low, self.measure)
            for k, name in enumerate(self.study.levels):
                error = float(np.sqrt(max(self.means.covariance[k, k], 0.0)))
                rows[f"mean at {name}"] = Estimate(float(self.means.values[k]), error)
        listing = {
            name: [
                e.value,
                e.standard_error,
                *e.interval(self.level),
                np.nan if name.startswith("mean at") else e.p_value(),
            ]
            for name, e in rows.items()
        }
        columns = ["value", "standard_error", "low", "high", "p_value"]
        return pd.DataFrame.from_dict(listing, orient="index", columns=columns)

    def contrasts(self, against: Any = None) -> "pd.DataFrame":
        """Return the effect of every level of the treatment against every other, or against one.

        Parameters
        ----------
        against
            A level that all others are compared with; by default all pairs, the later level against the earlier.

        Returns
        -------
        DataFrame
            A row for each pair: the two levels, value, standard_error, low, high and p_value, and `p_adjusted` by Holm,
            which stays right however many pairs are looked at.

        Examples
        --------
        >>> import markovia as mk
        >>> rng = np.random.default_rng(0)
        >>> rows = {"arm": rng.integers(0, 3, 900)}
        >>> rows["y"] = np.array([0.0, 1.0, 1.0])[rows["arm"]] + rng.normal(size=900)
        >>> found = mk.causal.effect(rows, "arm -> y", "arm", "y", control=0, treated=2)
        >>> [(int(r.treated), int(r.control), r.p_adjusted < 0.05) for r in found.contrasts().itertuples()]
        [(1, 0, True), (2, 0, True), (2, 1, False)]
        """
        means, levels = self.means, None if self.study is None else self.study.levels
        if means is None or levels is None:
            cure = (
                "; dose_response() has the whole curve" if levels is None and self.study is not None else ""
            )
            raise InvalidArgument(
                f"method={self.method!r} estimates no mean outcome of each level, so there are none to compare{cure}"
            )
        if against is not None and against not in levels:
            raise InvalidArgument(
                f"{against!r} is no level of {self.treatment!r}; its levels are {', '.join(map(repr, levels))}"
            )
        base = None if against is None else levels.index(against)
        pairs = [
            (k, j)
            for j in range(len(levels))
            for k in range(len(levels))
            if (k > j if base is None else j == base != k)
        ]
        found = [contrast(means, k, j, self.measure) for k, j in pairs]
        p = np.array([e.p_value() for e in found])
        # Holm: the smallest p-value counts as often as there are pairs, the next once less, and so on, never falling
        order = np.argsort(p, kind="stable")
        adjusted = np.empty(len(p))
        adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
        rows = [
            (levels[k], levels[j], e.value, e.standard_error, *e.interval(self.level), own, holm)
            for (k, j), e, own, holm in zip(pairs, found, p, adjusted, strict=True)
        ]
        columns = ["treated", "control", "value", "standard_error", "low", "high", "p_value", "p_adjusted"]
        return pd.DataFrame(rows, columns=columns)

    def dose_response(self, doses: Any = None, *, bandwidth: float | None = None) -> DoseResponse:
        """Estimate the mean outcome at each dose of a treatment that is a number, without a form for the curve.

        Parameters
        ----------
        doses
            The doses; by default 21 from the 5% to the 95% quantile of those in the data.
        bandwidth
            How far from a dose rows count, in the treatment's unit; chosen from the data where None.

        Examples
        --------
        >>> import markovia as mk
        >>> rng = np.random.default_rng(0)
        >>> age = rng.normal(size=2000)
        >>> dose = age + rng.normal(size=2000)
        >>> rows = {"age": age, "dose": dose, "y": dose**2 + age + rng.normal(size=2000)}
        >>> curve = mk.causal.effect(rows, "age -> dose -> y; age -> y", "dose", "y").dose_response([-1, 0, 1])
        >>> curve.to_pandas()["value"].round(0).abs().tolist()
        [1.0, 0.0, 1.0]
        """
        study = self.study
        if study is None or self.method not in METHODS or METHODS[self.method].route != "adjustment":
            raise InvalidArgument(
                "a dose-response curve needs a treatment of numbers and a method by adjustment"
            )
        if study.levels is not None:
            raise InvalidArgument(
                f"{self.treatment!r} has levels and no doses; summary() has the mean at each, contrasts() their differences"
            )
        a = study.treatment
        low, high = np.quantile(a, [0.05, 0.95])
        at = np.atleast_1d(np.linspace(low, high, 21) if doses is None else np.asarray(doses, dtype=float))
        if not len(at) or not np.isfinite(at).all() or at.min() < a.min() or at.max() > a.max():
            raise InvalidArgument(
                f"doses= lie within those in the data, {a.min():.4g} to {a.max():.4g}: nothing is known beyond"
            )
        if bandwidth is not None and not bandwidth > 0:
            raise InvalidArgument(f"bandwidth= is a positive number, not {bandwidth!r}")
        curve = dose_response(
            a, study.outcome, study.covariates, at, family=study.family, learner=self.settings.learner,
            bandwidth=bandwidth, seed=self.settings.seed,
        )  # fmt: skip
        return DoseResponse(self.treatment, self.outcome, at, curve, self.level, study.clusters)

    def to_dict(self) -> dict[str, Any]:
        """Return the effect and what stands behind it as plain numbers, texts and lists, ready for JSON.

        Examples
        --------
        >>> import markovia as mk
        >>> world = mk.causal.simulated_worlds.linear_world(500, seed=1)
        >>> told = mk.causal.effect(world.frame, world.graph, "t", "y").to_dict()
        >>> told["method"], told["adjustment"], len(told["interval"])
        ('aipw', ['x1', 'x2'], 2)
        """
        plain = {
            "treatment": self.treatment, "outcome": self.outcome, "control": self.control, "treated": self.treated,
            "estimand": self.target, "measure": self.measure, "value": self.value, "standard_error": self.standard_error,
            "interval": self.interval, "p_value": self.p_value, "level": self.level, "n": self.n, "method": self.method,
            "why": self.why, "formula": None if self.formula is None else str(self.formula.expression),
            "adjustment": self.adjustment, "mediators": self.mediators, "instruments": self.instruments,
            "given": self.given, "notes": self.notes,
            "overlap": None if self.overlap is None else {**vars(self.overlap), "good": self.overlap.good},
            "balance": None if self.balanced is None else self.balanced.to_pandas().to_dict("index"),
            "first_stage": None if self.first_stage is None else self.first_stage.f,
        }  # fmt: skip
        return {key: plain_value(value) for key, value in plain.items()}

    def _repr_html_(self) -> str:
        frame = self.summary()
        rows = [
            [name, *(f"{v:.4g}" for v in row)]
            for name, row in zip(frame.index, frame.to_numpy(), strict=True)
        ]
        return html_table(["", *frame.columns], rows, title=str(self).split("\n")[0], note=self.why)

    def balance(self) -> Balance:
        """Return the balance of the covariates between the two arms; it prints, and `plot()` draws the love plot."""
        if self.balanced is None:
            raise InvalidArgument(
                f"method={self.method!r} compares no arms by covariates, so there is no balance to show"
            )
        return self.balanced

    def conditional(self, rows: Any = None, *, kind: str = "dr") -> "pd.DataFrame":
        """Estimate the effect at given covariates.

        Parameters
        ----------
        rows
            Rows with the columns adjusted for; by default those of the data.
        kind
            "dr" (linear in the covariates, with intervals), "s", "t", "x" or "r".

        Returns
        -------
        DataFrame
            value, standard_error, low and high for each row; the errors are NaN but for "dr".
        """
        study = self.study
        if (
            study is None
            or study.levels is None
            or self.method not in METHODS
            or METHODS[self.method].route != "adjustment"
        ):
            raise InvalidArgument("conditional effects need a treatment of levels and a method by adjustment")
        at = study.covariates if rows is None else study.encoded(as_frame(rows))
        two = study.take(np.isin(study.codes, [self.settings.treated, self.settings.control]))
        arm = (two.codes == self.settings.treated).astype(np.int64)
        model = meta_learner(
            arm,
            two.outcome,
            two.covariates,
            kind,
            family=two.family,
            learner=self.settings.learner,
            seed=self.settings.seed,
        )
        values, errors = model.values(at), model.errors(at)
        ends = np.array(
            [Estimate(v, e).interval(self.level) for v, e in zip(values, errors, strict=True)]
        ).reshape(-1, 2)
        index = self.frame.index[study.rows] if rows is None else as_frame(rows).index
        return pd.DataFrame(
            {"value": values, "standard_error": errors, "low": ends[:, 0], "high": ends[:, 1]}, index=index
        )

    def refute(self, kinds: Iterable[str] | str | None = None, **options: Any) -> "list[Refutation]":
        """Try to refute the effect; see `markovia.causal.estimation.checks.refutation.refute`."""
        tried: list[Refutation] = ports.call("refute-effect", self, kinds, **options)
        return tried

    def sensitivity(self) -> "Sensitivity":
        """Return how strong an unobserved confounder would have to be to explain the effect away."""
        needed: Sensitivity = ports.call("effect-sensitivity", self)
        return needed

    def report(self, **options: Any) -> "Report":
        """Return the effect with diagnostics, refutations, sensitivity and a verdict; it prints, and `plot()` draws it."""
        written: Report = ports.call("effect-report", self, **options)
        return written

    def plot(self, others: Iterable["Effect"] = (), *, ax: Any = None) -> "Axes":
        """Draw the forest: this effect, and others beside it, with their intervals."""
        return ports.draw("plot-effects", [self, *others], ax=ax)

    def with_estimate(self, found: Estimate) -> "Effect":
        """Return the same effect with another number."""
        return replace(self, estimate=found)


def listed(names: Iterable[str]) -> str:
    """Return names as words: "a", "a and b", "a, b and c"."""
    *first, last = [str(n) for n in names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def plain_value(value: Any) -> Any:
    """Return a value as JSON can hold it: numbers of NumPy as Python's, tuples as lists, other things as their text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(k): plain_value(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(v) for v in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _number(value: float) -> str:
    return f"{value:.4g}"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
