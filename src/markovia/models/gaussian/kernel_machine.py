"""What kernel machines share: how rows, targets and the covariance are read, and answers in blocks of rows."""

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import numpy as np
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from markovia.errors import InvalidArgument, TooLarge
from markovia.factors.covariances.algebra import split_white
from markovia.factors.covariances.covariance import Covariance
from markovia.factors.covariances.radial import RBF
from markovia.models.classifiers.feature_rows import numbers
from markovia.models.classifiers.input_checks import labels
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Kind
from markovia.runtime.estimator import Estimator, check_fitted
from markovia.runtime.memory_budget import default_budget, readable

CURE = "kernel machines need every cell: fill them or drop the row"
BLOCK = 2**22
"""Numbers that asked rows against all learned ones may be at once."""
Kernel: TypeAlias = Annotated[Covariance | None, Kind((Covariance,), "one of mk.covariances", none=True)]


class KernelMachine(Estimator):
    """An estimator that compares rows with those it learned from; by default with an RBF at the scale of the data."""

    covariance: Covariance | None
    covariance_: Covariance
    X_fit_: Array

    def _learned_rows(self, X: Any, matrices: int) -> Array:  # noqa: N803
        """Read rows to learn from; `matrices` of all their pairs have to fit into memory."""
        self.X_fit_ = numbers(self, X, reset=True, gaps=CURE)
        need = matrices * 8.0 * len(self.X_fit_) ** 2
        if need > (budget := default_budget()):
            raise TooLarge(
                f"all pairs of {len(self.X_fit_):,} rows take {readable(need)}, and {readable(budget)} are free; learn "
                "from a sample of the rows, or use mk.GaussianProcess, which has methods for many rows"
            )
        return self.X_fit_

    def _started(self, y: Array) -> Covariance:
        """Return the covariance at the scale of the data; noise of each row has no meaning here."""
        found = RBF() if self.covariance is None else self.covariance
        if split_white(found)[1]:
            raise InvalidArgument(f"{type(self).__name__} knows no noise in a covariance; leave White out")
        return found.started(self.X_fit_, y)

    def _asked(self, X: Any, answer: Callable[[Array, Array], Array]) -> Array:  # noqa: N803
        """Return answers from rows and their covariances with the learned ones."""
        check_fitted(self, "covariance_")
        rows = numbers(self, X, reset=False, gaps=CURE)
        blocks = np.array_split(rows, -(-len(rows) * len(self.X_fit_) // BLOCK))
        return np.concatenate([answer(b, self.covariance_.value(b, self.X_fit_)) for b in blocks])


def targets(estimator: Any, y: Any, rows: Array, *, several: bool = False) -> Array:
    """Return finite numbers, one a row, or with `several` also rows of them."""
    if y is None:
        name = type(estimator).__name__
        raise InvalidArgument(f"This {name} estimator requires y to be passed, but the target y is None.")
    try:
        found = y if several and np.asarray(y).ndim == 2 else column_or_1d(y, warn=True)
        check_consistent_length(rows, found)
        return np.asarray(check_array(found, ensure_2d=False, dtype=np.float64, input_name="y"))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"targets y are finite numbers, one a row: {error}") from None


def classes_and_codes(estimator: Any, y: Any, rows: Array) -> tuple[Array, Ints]:
    """Return the classes in order, two or more, and which of them each row is."""
    classes, codes = np.unique(labels(estimator, y, rows), return_inverse=True)
    if len(classes) < 2:
        raise InvalidArgument(f"there is one class, {classes.tolist()[0]!r}; a classifier needs two or more")
    return classes, codes
