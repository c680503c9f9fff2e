"""Kernel ridge regression, and regression by weighted averages or lines; what is not said is chosen by leave-one-out.

Ridge, f(x) = k(x, X) (K + penalty)^-1 y, is the mean of a Gaussian process, and ridge regression on features phi with
k = phi . phi' (Saunders, Gammerman and Vovk 1998). Cost: n^3 for each choice that is tried. Averages (Nadaraya 1964, Watson
1964) and lines (Fan 1992) weigh rows by their covariance; lines have no bias at borders. Cost of a prediction: n (d + 1)^2,
in blocks of rows; of each choice that is tried n times that.
"""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import White, split_white, spread
from markovia.factors.covariances.covariance import Covariance
from markovia.factors.covariances.radial import RBF
from markovia.learning.processes.evidence_ascent import EvidenceMaximum, maximise_evidence
from markovia.learning.processes.leave_one_out import (
    RidgeLeaveOneOut,
    SmootherLeaveOneOut,
    local_fits,
    nearest,
)
from markovia.models.gaussian.kernel_machine import Kernel, KernelMachine, targets
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import PositiveOrNone, TimeLimit
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import check_fitted, fitting

if TYPE_CHECKING:
    from markovia.models.gaussian.gaussian_process import GaussianProcess

LENGTHS, PENALTIES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03), (1.0, 0.1, 0.01)
"""Where choices may start, in units of what the scale of the data suggests: the error has many valleys. None is longer: at
great lengths and tiny penalties are polynomials, whose error at rows left out is low and elsewhere is not."""
DIGITS = 1e-9
"""The least penalty that is chosen, in units of the mean variance."""


@dataclass(eq=False, repr=False)
class KernelRidge(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """Ridge regression with a covariance; targets may be several columns.

    Parameters
    ----------
    covariance
        How alike rows are, an RBF by default. Numbers that are not said are chosen by leave-one-out.
    penalty
        What is added to the diagonal; by default chosen by leave-one-out. A `White` in the covariance is one, too.
    time_limit
        Seconds after which the best choice so far is kept.

    Attributes
    ----------
    dual_coef_, covariance_, penalty_, leave_one_out_
        The weight of each row; covariance and penalty with their numbers; the prediction for each row from all others.

    Examples
    --------
    >>> import markovia as mk
    >>> model = KernelRidge(mk.covariances.Constant(1.0), penalty=1.0).fit([[3.0], [4.0]], [2.0, 3.0])
    >>> model.predict([[0.0]]).round(4).tolist(), model.leave_one_out_.round(4).tolist()  # 5/3; 3/2 and 2/2
    ([1.6667], [1.5, 1.0])
    """

    covariance: Kernel = None
    _: KW_ONLY
    penalty: PositiveOrNone = None
    time_limit: TimeLimit = None

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Learn the weight of each row, and choose what was not said."""
        with fitting(self):
            rows = self._learned_rows(X, 6)
            self._y = y = targets(self, y, rows, several=True)
            whole = RBF() if self.covariance is None else self.covariance
            rest, noise = split_white(whole)
            if rest is None or (noise and self.penalty is not None):
                what = "is noise alone" if rest is None else "has a White, which is a penalty as well"
                raise InvalidArgument(f"the covariance {what}; give one without White, and penalty=")
            unit = np.sqrt(spread(y))  # only the ratio of penalty and covariance counts
            loo = RidgeLeaveOneOut(rows, y / unit)
            whole = (whole if noise else whole + White(self.penalty)).started(rows, y / unit)
            if any(name.startswith("white") for name in whole.free()):
                # the least penalty that leaves digits: errors without noise ask for ever less, at ever greater lengths
                whole = whole + White(DIGITS * float(rest.started(rows, y / unit).diagonal(rows).mean()))
            whole = chosen(loo, whole, self.time_limit).covariance if whole.free() else whole
            try:
                dual, error, _, _ = loo.solved(whole)
            except np.linalg.LinAlgError:
                raise InvalidArgument(
                    f"{whole!r} is not positive definite on these rows, as where many are the same; take a larger penalty="
                ) from None
            self.covariance_, noise = split_white(whole)  # type: ignore[assignment]
            self.penalty_ = float(sum(part.number("variance") for part in noise))
            self.dual_coef_ = unit * dual.reshape(y.shape)
            self.leave_one_out_ = y - unit * error.reshape(y.shape)
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the prediction for each row."""
        return self._asked(X, lambda _, gram: gram @ self.dual_coef_)

    def process(self) -> "GaussianProcess":
        """Return the Gaussian process whose mean this is, at the most probable scale of its variance."""
        from markovia.models.gaussian.gaussian_process import GaussianProcess

        check_fitted(self, "covariance_")
        if self._y.ndim > 1:
            raise InvalidArgument("several targets are several processes; fit one column of y at a time")
        fixed = self.covariance_.with_values({n: h.value for n, h in self.covariance_.hypers().items()})
        scale = float(self._y @ self.dual_coef_) / len(self._y) or 1.0
        process = GaussianProcess(scale * fixed + White(scale * self.penalty_), mean=0.0)
        return process.fit(self.X_fit_, self._y)

    def network(self) -> Any:
        """Return the network of that process: a function, and the targets that call it."""
        return self.process().network()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@dataclass(eq=False, repr=False)
class NadarayaWatson(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """The average of targets, weighted by the covariance of rows.

    Parameters
    ----------
    covariance
        The weight of a row at another, not negative; an RBF by default, whose length is the bandwidth.
    time_limit
        Seconds after which the best choice so far is kept.

    Attributes
    ----------
    covariance_, leave_one_out_error_
        The covariance with its numbers; the mean squared error of predictions for rows from all others.

    Examples
    --------
    >>> import markovia as mk
    >>> NadarayaWatson(mk.covariances.RBF(1.0)).fit([[0.0], [2.0]], [1.0, 3.0]).predict([[1.0]]).tolist()
    [2.0]
    """

    _lines: ClassVar[bool] = False

    covariance: Kernel = None
    _: KW_ONLY
    time_limit: TimeLimit = None

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Keep the rows, and choose what was not said."""
        with fitting(self):
            rows = self._learned_rows(X, 6)
            self._y = targets(self, y, rows)
            self.covariance_, self.leave_one_out_error_ = self._started(self._y), np.nan
            if np.min(self.covariance_.value(rows[:1000])) < 0.0:
                raise InvalidArgument("some weights are negative; take a covariance that is not, such as RBF")
            if len(rows) > 1:
                loo = SmootherLeaveOneOut(rows, self._y, self._lines)
                found = chosen(loo, self.covariance_, self.time_limit)
                self.covariance_ = found.covariance
                self.leave_one_out_error_ = float(np.exp(-2.0 * found.log_evidence / len(rows)))
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the prediction at each row; far from all rows it is the target of the nearest."""

        def fitted(at: Array, gram: Array) -> Array:
            def far(i: Ints) -> Array:
                return nearest(self.covariance_, at[i], self.X_fit_)

            return local_fits(gram, at, self.X_fit_, self._y, self._lines, far)[0]

        return self._asked(X, fitted)


class LocalLinear(NadarayaWatson):
    """The height of a line that is fitted at each row, weighted by the covariance; else as `NadarayaWatson`.

    Examples
    --------
    >>> import markovia as mk
    >>> LocalLinear(mk.covariances.RBF(1.0)).fit([[0], [1], [2]], [1, 2, 3]).predict([[5.0]]).round(9).tolist()
    [6.0]
    """

    _lines: ClassVar[bool] = True


def chosen(loo: RidgeLeaveOneOut, covariance: Covariance, time_limit: float | None) -> EvidenceMaximum:
    """Return the covariance with the least error, climbing from the best of a few scales of lengths and penalty."""

    def error(made: Covariance) -> float:
        try:
            return np.inf if clock.over() else float(np.sum(loo.errors(made) ** 2))
        except np.linalg.LinAlgError:
            return np.inf

    with Clock(time_limit, False) as clock:
        tried = [covariance]
        ridge = any(name.startswith("white") for name in covariance.free())
        for name, scales in ((".length", LENGTHS[:: 1 + ridge]), ("white.variance", PENALTIES)):
            free = {n: h.value for n, h in covariance.free().items() if n.endswith(name)}
            moves = [{n: s * v for n, v in free.items()} for s in scales] if free else [{}]
            tried = [made.with_values(move, keep=True) for made in tried for move in moves]
        return maximise_evidence(loo, min(tried, key=error) if len(tried) > 1 else covariance)
