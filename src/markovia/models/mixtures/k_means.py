"""K-means clustering: rows around the nearest of k centres, as an estimator of scikit-learn."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Any, Literal, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.learning.components.gaussian import Gaussian
from markovia.learning.components.normal_sums import shaped
from markovia.learning.latent.group_em import LearningRule, Sample, learn_groups
from markovia.learning.latent.group_starts import groups_of
from markovia.learning.latent.k_means import (
    Clustering,
    Partition,
    improved,
    lloyd,
    mini_batches,
    plus_plus,
    running_means,
)
from markovia.models.classifiers.feature_rows import check_room, numbers
from markovia.models.classifiers.input_checks import weights_of_rows
from markovia.models.mixtures.group_mixture import CovarianceKind
from markovia.models.mixtures.named_mixtures import GaussianMixture
from markovia.optimise.ascent import Climb, best_climb
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Choice, Count, CountOrNone, Either, TimeLimit, Tolerance, Whole
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import fitting
from markovia.runtime.seeds import generator
from markovia.runtime.transforming_estimator import TransformingEstimator

CURE = "k-means needs every cell: fill them, drop the row, or use mk.GaussianMixture, which sums missing cells out"
SAMPLE, SAMPLE_EACH = 10_000, 200
"""Rows that a start is looked for in: so many, or so many a cluster where that is more."""


@dataclass(eq=False, repr=False)
class KMeans(ClusterMixin, TransformingEstimator):  # type: ignore[misc]
    """Rows in k clusters so that the squared distances from their centres add up to as little as can be.

    K-means ends in a local optimum, so the start decides. Unless told otherwise it is looked for in a sample: k-means++, and
    then centres are added where the error is largest and taken away where they are needed least until that does not help.
    All rows then go to the nearest centre, with bounds that spare most of them the search.

    Parameters
    ----------
    n_clusters
        The number of clusters.
    init
        Where centres start: "k-means++", "random" rows, or an array (n_clusters, n_features).
    n_init
        How many starts are tried, of which the best counts; "auto" is 1.
    max_iter, tol
        The most turns, or passes over mini-batches, and the gain below which they end: what moving the centres takes off the
        squared distance of a row, as a share of the columns' mean variance.
    random_state
        The seed.
    algorithm
        "lloyd" takes turns from the start as it is ("elkan" is the same: bounds are always used); "breathing" looks for a
        better start first; "auto" does unless `init` is an array.
    metric
        "euclidean", or "mahalanobis": each cluster has a covariance of its own, and distances are measured by it. That is
        hard expectation-maximisation of Gaussians; a weak prior, a share of the covariance of all rows, keeps them from
        collapsing onto single rows.
    batch_size
        Rows of a mini-batch; None takes all rows in each turn. `partial_fit` learns from one batch after another.
    time_limit
        Seconds after which the best so far is kept; so does Ctrl-C.

    Attributes
    ----------
    cluster_centers_ : array (n_clusters, n_features)
        The centres.
    labels_ : array (n_samples,)
        The cluster of each row.
    inertia_ : float
        The sum of weighted squared distances from the centres; with "mahalanobis", also of log determinants.
    covariances_ : array (n_clusters, n_features, n_features)
        With metric="mahalanobis", the covariances.
    n_iter_, converged_
        Turns, and whether they came to an end.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> model = KMeans(2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().tolist()), model.inertia_
    ([0.5, 9.5], 1.0)
    >>> model.predict([[8.0]]) == model.labels_[3]
    array([ True])
    """

    n_clusters: Count = 8
    _: KW_ONLY
    init: Annotated[Any, Choice(("k-means++", "random"), "an array", (np.ndarray, list, tuple))] = "k-means++"
    n_init: Annotated[int | Literal["auto"], Either((Whole(1), Choice(("auto",))))] = "auto"
    max_iter: Count = 300
    tol: Tolerance = 1e-4
    random_state: Any = None
    algorithm: Literal["auto", "lloyd", "elkan", "breathing"] = "auto"
    metric: Literal["euclidean", "mahalanobis"] = "euclidean"
    batch_size: CountOrNone = None
    time_limit: TimeLimit = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Find clusters of the rows; weights count as repeated rows."""
        with fitting(self), Clock(self.time_limit, False):
            rows, weights, rng = self._read(X, sample_weight)
            middle = weights @ rows / weights.sum()
            apart = rows - middle  # products of rows and centres keep more digits around the middle
            tol = self.tol * float((weights @ apart**2).mean() / weights.sum())
            if self.metric == "mahalanobis":
                found = self._gaussians(apart, weights, middle, rng, tol)
            else:
                found, most = self._started(apart, weights, middle, rng, tol), self.max_iter
                if self.batch_size is not None:
                    found, self.counts_ = mini_batches(
                        apart, weights, found.centres, int(self.batch_size), rng, max_iter=most, tol=tol
                    )
                elif len(found.labels) < len(rows):
                    found = lloyd(Partition(apart, weights), found.centres, max_iter=most, tol=tol)
                self._keep(found, middle)
                self._check_distinct()
            found.ended.warn(self.tol)
        return self

    def _read(self, X: Any, sample_weight: Any, *, reset: bool = True) -> tuple[Array, Array, Any]:  # noqa: N803
        if self.metric == "mahalanobis" and self.batch_size is not None:
            raise InvalidArgument("mini-batches are for metric='euclidean'; leave batch_size= away")
        rows = numbers(self, X, reset=reset, gaps=CURE)
        if reset:
            check_room("n_clusters", self.n_clusters, rows)
        return rows, weights_of_rows(sample_weight, len(rows)), generator(self.random_state)

    def _given(self, d: int) -> Array | None:
        if isinstance(self.init, str):
            return None
        found = np.array(self.init, dtype=np.float64)
        if found.shape != (self.n_clusters, d):
            raise InvalidArgument(
                f"init= has shape {found.shape}, not (n_clusters, n_features) = ({self.n_clusters}, {d})"
            )
        if not np.isfinite(found).all():
            raise InvalidArgument("init= has an entry that is not finite")
        return found

    def _started(
        self, rows: Array, weights: Array, middle: Array, rng: np.random.Generator, tol: float
    ) -> Clustering:
        """Return the best of some starts; of all rows, or of a sample where that is enough."""
        given = self._given(rows.shape[1])
        k = int(self.n_clusters)
        breathing = self.algorithm == "breathing" or (self.algorithm == "auto" and given is None)
        few = max(SAMPLE, SAMPLE_EACH * k)
        if (breathing or self.batch_size is not None) and len(rows) > 2 * few:
            chosen = np.sort(rng.choice(len(rows), few, replace=False))
            if weights[chosen].any():
                rows, weights = np.ascontiguousarray(rows[chosen]), weights[chosen]
        part = Partition(rows, weights)
        best: Clustering | None = None
        for _ in range(1 if self.n_init == "auto" or given is not None else int(self.n_init)):
            if given is not None:
                centres = given - middle
            elif self.init == "random":
                centres = rows[rng.choice(np.flatnonzero(weights), k, replace=(weights > 0).sum() < k)]
            else:
                centres = plus_plus(rows, weights, k, rng)
            found = lloyd(part, centres, max_iter=self.max_iter, tol=tol)
            found = found._replace(labels=found.labels.copy())
            if breathing:
                found = improved(part, found, rng, tol=tol)
            if best is None or found.inertia < best.inertia:
                best = found
            if found.ended.stopped:
                return best._replace(ended=found.ended)
        assert best is not None
        return best

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn from one batch more; the first one says where centres start, each then is the mean of all rows it got."""
        with fitting(self), Clock(self.time_limit, False):
            first = not hasattr(self, "counts_")
            if self.metric == "mahalanobis":
                raise InvalidArgument("partial_fit is for metric='euclidean'")
            rows, weights, rng = self._read(X, sample_weight, reset=first)
            if first:
                check_room("n_clusters", self.n_clusters, rows)
                zero = np.zeros(rows.shape[1])
                self._keep(self._started(rows, weights, zero, rng, 0.0), zero)
                self.counts_ = np.zeros(self.n_clusters)
            part = Partition(rows, weights)
            centres, self.counts_ = running_means(part, self.cluster_centers_, self.counts_)
            part.assign(centres, anew=True)
            inertia = float(weights @ part.squares())
            found = Clustering(centres, part.labels, inertia, Climb(None, [], "converged"))
            self._keep(found, 0.0, batches=self.n_iter_ + (not first))
        return self

    def _gaussians(
        self, rows: Array, weights: Array, middle: Array, rng: np.random.Generator, tol: float
    ) -> Clustering:
        """Learn hard clusters of Gaussians that start as clusters of whitened rows."""
        k, d = int(self.n_clusters), rows.shape[1]
        every = np.cov(rows.T, aweights=weights, bias=True).reshape(d, d)
        every[np.diag_indices(d)] += np.where(np.diag(every) > 0.0, 1e-9 * np.diag(every), 1.0)
        # a cluster of few rows is drawn towards the covariance that k equal parts of the space would have
        prior = {"scale": every * k ** (-2.0 / d), "df": np.float64(d + 2.0)}
        white = np.linalg.cholesky(np.linalg.inv(every))
        blank = Gaussian(np.zeros((k, d)), np.repeat(every[None], k, axis=0))
        rule, sample = LearningRule(prior, hard=True, even=True), Sample(rows, weights)
        part, given, starts = Partition(np.ascontiguousarray(rows @ white), weights), self._given(d), []
        for _ in range(1 if self.n_init == "auto" else int(self.n_init)):
            start = plus_plus(part.rows, weights, k, rng) if given is None else (given - middle) @ white
            labels = lloyd(part, start, max_iter=self.max_iter, tol=tol).labels
            starts.append(groups_of(blank, sample, np.eye(k)[labels], rule))
        run = partial(learn_groups, sample=sample, rule=rule, max_iter=self.max_iter, tol=self.tol)
        best = best_climb(run, starts)
        made = best.state.components
        self.covariances_ = made.covariances
        labels = made.log_densities(rows).argmax(axis=1)
        found = Clustering(made.means, labels, 0.0, Climb(None, best.history, best.reason))
        self._keep(found, middle)
        self.inertia_ = float(weights @ self._costs(rows + middle).min(axis=1))
        return found

    def _keep(self, found: Clustering, middle: Any, *, batches: int = 0) -> None:
        self.cluster_centers_ = found.centres + middle
        self.labels_, self.inertia_ = found.labels, found.inertia
        self.n_iter_, self.converged_ = batches + len(found.ended.history), found.ended.converged
        self._n_features_out = len(found.centres)

    def mixture(self, covariance_type: CovarianceKind = "full", **settings: Any) -> GaussianMixture:
        """Return a `GaussianMixture` that begins with the clusters, their shares and their spread; its `fit` goes on.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal([[0.0], [9.0]], 1.0, (2, 50)).reshape(-1, 1)
        >>> KMeans(2, random_state=0).fit(X).mixture().fit(X).means_.round(0).ravel().tolist()
        [9.0, 0.0]
        """
        check_is_fitted(self, "cluster_centers_")
        k, d = self.cluster_centers_.shape
        sizes = np.bincount(self.labels_, minlength=k) + 1e-6
        if self.metric == "mahalanobis":
            spread = self.covariances_
        else:
            each = max(self.inertia_ / (len(self.labels_) * d), np.finfo(float).tiny)
            spread = np.repeat(each * np.eye(d)[None], k, axis=0)
        covariances = shaped(spread, covariance_type)  # type: ignore[arg-type]
        begin = GaussianMixture(
            k,
            covariance_type=covariance_type,
            weights_init=sizes / sizes.sum(),
            means_init=self.cluster_centers_,
            **settings,
        )
        if covariance_type == "tied":
            begin.precisions_init = np.linalg.inv(np.average(covariances, axis=0, weights=sizes))
        else:
            begin.precisions_init = begin._short(np.asarray(np.linalg.inv(covariances), dtype=np.float64))
        return begin

    def _check_distinct(self) -> None:
        filled = len(np.unique(self.labels_))
        if filled < self.n_clusters:
            warn_user(
                f"only {filled} of {self.n_clusters} clusters have rows: X has as few distinct rows; ask for fewer clusters",
                ConvergenceWarning,
            )

    def _costs(self, rows: Array) -> Array:
        """Return what it costs each row to be in each cluster: its squared distance, and the log size of a covariance."""
        from sklearn.metrics.pairwise import euclidean_distances

        if self.metric == "euclidean":
            return np.asarray(euclidean_distances(rows, self.cluster_centers_, squared=True))
        logs = Gaussian(self.cluster_centers_, self.covariances_).log_densities(rows)
        return np.asarray(-2.0 * logs - rows.shape[1] * np.log(2.0 * np.pi))

    def _rows(self, X: Any) -> Array:  # noqa: N803
        check_is_fitted(self, "cluster_centers_")
        return np.asarray(numbers(self, X, reset=False, gaps=CURE))

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """Return the cluster of each row."""
        rows = self._rows(X)
        if self.metric == "mahalanobis":
            return np.asarray(self._costs(rows).argmin(axis=1))
        part = Partition(rows, np.ones(len(rows)))
        part.assign(self.cluster_centers_)
        return part.labels

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the distance of each row from each centre."""
        costs = self._costs(self._rows(X))
        if self.metric == "mahalanobis":
            costs -= np.linalg.slogdet(self.covariances_)[1]
        return np.asarray(np.sqrt(np.maximum(costs, 0.0)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: N803
        """Return minus the sum of weighted squared distances from the nearest centres: a total, as in scikit-learn.

        It is that of `inertia_`; k-means has no density whose mean could be told.
        """
        rows = self._rows(X)
        return -float(weights_of_rows(sample_weight, len(rows)) @ self._costs(rows).min(axis=1))
