"""What all mixtures share: how rows are read, and the questions a learned mixture answers."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.tables.evidence import is_missing
from markovia.models.classifiers.feature_rows import numbers
from markovia.models.classifiers.input_checks import normalised_logs, sample_weights
from markovia.models.mixtures.density_questions import CountedDensityQuestions
from markovia.runtime import checks, ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Whole, check
from markovia.runtime.estimator import Estimator
from markovia.runtime.ports import Savable
from markovia.runtime.seeds import generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from markovia.models.graphical.bayesian_network import BayesianNetwork

CATEGORIES = "mk.Mixture(component={{{name!r}: 'categorical', ...}}) takes such columns"


class MixtureModel(CountedDensityQuestions, DensityMixin, Estimator, Savable):  # type: ignore[misc]
    """The verbs of a mixture.

    A subclass learns in `fit` (`weights_`, `n_iter_`, `converged_`, `history_`, ...), reads rows in `_rows`, and says
    `log p(row, component)` in `_joint`; `_draw` and `_free` are for `sample` and the criteria, `component_params_` and
    `network` where it has them.
    """

    random_state: Any
    weights_: Array
    n_iter_: int
    converged_: bool
    history_: list[float]
    n_features_in_: int

    def _rows(self, X: Any, *, reset: bool) -> Any:  # noqa: N803
        """Return rows as the components take them."""
        return numbers(self, X, reset=reset, text=CATEGORIES)

    def _joint(self, rows: Any) -> Array:
        """Return log p(row, component), (rows, components)."""
        raise NotImplementedError

    def _draw(self, components: Ints, rng: np.random.Generator) -> Any:
        """Return a row from each of some components."""
        raise UnsupportedModel(f"{type(self).__name__} draws no rows")

    def network(self) -> "BayesianNetwork":
        """Return the Bayesian network that the mixture is."""
        raise UnsupportedModel(f"{type(self).__name__} has no Bayesian network")

    # -- questions -----------------------------------------------------------------------------------------------

    def _seen(self, X: Any) -> Array:  # noqa: N803
        check_is_fitted(self, "weights_")
        return self._joint(self._rows(X, reset=False))

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """Return log p(x) of each row; cells that are missing (NaN) are summed out."""
        return np.asarray(np.logaddexp.reduce(self._seen(X), axis=1))

    def log_prob(self, X: Any) -> Array:  # noqa: N803
        """Return log p(x) of each row; the same as `score_samples`."""
        return self.score_samples(X)

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the probability of each component given each row, (rows, components)."""
        joint = self._seen(X)
        lost = np.isneginf(joint).all(axis=1)
        joint[lost] = 0.0
        found = np.exp(normalised_logs(joint))
        found[lost] = self.weights_  # a row that no component allows says nothing
        return np.asarray(found)

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """Return the most probable component of each row."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, **more: Any) -> Ints:  # noqa: N803
        """Learn from rows, as `fit` does, and return the most probable component of each."""
        fitted: Self = self.fit(X, y, sample_weight=sample_weight, **more)
        return fitted.predict(X)

    def sample(self, n_samples: int = 1, seed: Any = None) -> tuple[Any, Ints]:
        """Draw rows and the component of each; without a seed from `random_state`."""
        check("n_samples", n_samples, Whole(1))
        check_is_fitted(self, "weights_")
        rng = generator(self.random_state if seed is None else seed)
        which = np.asarray(rng.choice(len(self.weights_), n_samples, p=self.weights_ / self.weights_.sum()))
        return self._draw(which, rng), which

    def icl(self, X: Any) -> float:  # noqa: N803
        """Return the integrated completed likelihood: BIC plus twice the entropy of the assignments; smaller is better.

        Reference: Biernacki, Celeux and Govaert (2000).
        """
        from scipy.special import entr

        return self.bic(X) + 2.0 * float(entr(self.predict_proba(X)).sum())

    def plot(
        self,
        X: Any,  # noqa: N803
        *,
        columns: tuple[Any, Any] | None = None,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> "Axes":
        """Draw rows in two columns, coloured by component, paler where that is less sure, with ellipses of Gaussians."""
        check_is_fitted(self, "weights_")
        return ports.draw("plot-clusters", self, X, columns=columns, ax=ax, title=title)


def read_weights(sample_weight: Any, n: int) -> Array | None:
    """Return one weight a row, or None where all count the same."""
    found = sample_weights(sample_weight, n)
    return None if found is None or (found == 1.0).all() else found


def read_labels(y: Any, n: int, k: int, labels: Any = None) -> Ints | None:
    """Return the component of each row, -1 where it is unknown.

    `labels` always are of components; `y`, which scikit-learn hands to everything, only where some are -1. None where
    nothing is known.
    """
    if labels is not None:
        if y is not None:
            raise InvalidArgument("y and labels= both say components of rows; give labels= alone")
        return _components_told(labels, n, k)
    if y is None:
        return None
    found = np.asarray(y)
    if found.dtype.kind not in "iu" or not (found == -1).any():
        return None
    if found.shape != (n,):
        raise InvalidArgument(f"there are {n} rows, but the labels y have shape {found.shape}")
    if (found < -1).any() or (found >= k).any():
        strange = found[(found < -1) | (found >= k)][0]
        raise InvalidArgument(f"y has components 0 to {k - 1}, and -1 where they are unknown, not {strange}")
    return None if (found == -1).all() else found.astype(np.int64)


def label_names(labels: Any) -> list[str] | None:
    """Return the different labels in order, which are the components 0, 1, ...; None where labels are numbers."""
    cells = np.asarray([] if labels is None else labels)
    if cells.dtype.kind in "biuf":
        return None
    told = [one for one in cells.ravel().tolist() if not is_missing(one)]
    return sorted(set(told)) if told and all(isinstance(one, str) for one in told) else None


def _components_told(labels: Any, n: int, k: int) -> Ints | None:
    """Return the component that each label stands for, -1 where it is missing (None, NaN or -1)."""
    cells, names = np.asarray(labels), label_names(labels) or []
    if cells.shape != (n,):
        raise InvalidArgument(
            f"there are {n} rows, but labels= has shape {cells.shape}; give one label a row"
        )
    if len(names) > k:
        raise InvalidArgument(
            f"labels= has {len(names)} different labels, and n_components={k}; raise n_components="
        )
    if cells.dtype.kind not in "biuf":
        place = {name: i for i, name in enumerate(names)}
        cells = np.array(
            [-1 if is_missing(one) else place[one] if names else one for one in cells.tolist()], dtype=object
        )
    codes = checks.numbers(
        cells, f"labels= has components 0 to {k - 1} or names, and None where they are unknown"
    )
    codes = np.where(np.isnan(codes), -1.0, codes)
    strange = ~np.isin(codes, np.arange(-1, k))
    if strange.any():
        row = int(np.argmax(strange))
        raise InvalidArgument(
            f"labels= has {codes[row]:g} in row {row}; it has components 0 to {k - 1}, and None, NaN or -1 where they are "
            "unknown"
        )
    return None if (codes == -1).all() else codes.astype(np.int64)


def refuse_few(rows: Any, k: int, shares: Array | None = None) -> None:
    """Raise where there are fewer different rows than components."""
    n = int(rows.shape[0]) if shares is None else int((shares > 0.0).sum())
    if k == 1 and n:
        return
    many = n
    if k <= n <= 5_000 and isinstance(rows, np.ndarray):
        many = len(np.unique(np.nan_to_num(rows, nan=np.inf) if rows.dtype.kind == "f" else rows, axis=0))
    if many < k:
        what = "row" if many == 1 else "rows"
        raise InvalidArgument(
            f"n_components={k} needs as many different rows, and there {'is' if many == 1 else 'are'} {many} {what} "
            f"(n_samples={n}); lower n_components="
        )
