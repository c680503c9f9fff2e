"""How mixtures of any components are learned: what `Mixture` and its presets share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from markovia.data.sequences.sequences import read_sequences
from markovia.data.tables.distant_rows import is_files
from markovia.data.tables.file_blocks import typed_blocks
from markovia.errors import ConvergenceWarning, InvalidArgument, did_you_mean, warn_user
from markovia.learning.components.columns import Parts
from markovia.learning.components.families import checked_prior, k_means
from markovia.learning.components.normal_sums import pooled_variance
from markovia.learning.latent.group_em import (
    Groups,
    LearningRule,
    OnlineState,
    Sample,
    learn_groups,
    learn_groups_online,
    online_step,
)
from markovia.learning.latent.group_starts import few_rows, groups_of, tried_groups
from markovia.models.classifiers.feature_rows import feature_names
from markovia.models.mixtures import posterior_mixtures
from markovia.models.mixtures.base import MixtureModel, label_names, read_labels, read_weights, refuse_few
from markovia.models.mixtures.component_families import COUNTS, WHOLE_NUMBERS, ComponentRows
from markovia.models.mixtures.file_rows import open_sample
from markovia.models.mixtures.other_families import ColumnRows, Models, family_of
from markovia.models.temporal.hmm import HMM
from markovia.models.temporal.markov_chain import MarkovChain
from markovia.models.temporal.sequence_mixture import learn_sequences
from markovia.optimise.ascent import Climb, best_climb
from markovia.runtime import checks
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import (
    Choice,
    Count,
    Positive,
    TimeLimit,
    Tolerance,
    check,
    check_options,
)
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import fitting
from markovia.runtime.seeds import generator

if TYPE_CHECKING:
    from markovia.models.graphical.bayesian_network import BayesianNetwork

CovarianceKind = Literal["full", "diag", "tied", "spherical", "low-rank"]
SEQUENCE_STARTS = 3
"""Runs of a mixture of sequences."""


class _Unsaid(MixtureModel):
    """Settings that not every mixture has, as they are without it."""

    component: Any = "gaussian"
    n_components: int = 2
    covariance_type: CovarianceKind = "full"
    n_factors: int = 1
    prior: Mapping[str, Any] | None = None
    params_init: Mapping[str, Any] | None = None
    reg_covar: float = 1e-6
    batch_size: int = 1024
    learning_decay: float = 0.7
    learning_offset: float = 10.0
    warm_start: bool = False


@dataclass(eq=False, repr=False, kw_only=True)
class GroupMixture(_Unsaid):
    """A mixture of any components, with the settings that all have."""

    method: Literal["em", "hard", "online", "vb", "gibbs", "collapsed-gibbs"] = "em"
    weight_concentration: Positive = 1.0
    init_params: Literal["auto", "kmeans", "k-means++", "random", "random_from_data"] = "auto"
    weights_init: Any = None
    n_init: Count = 1
    max_iter: Count = 200
    tol: Tolerance = 1e-5
    random_state: Any = None
    n_jobs: int | None = None
    time_limit: TimeLimit = None
    progress: bool | None = None

    def _family(self) -> Any:
        return family_of(
            self.component,
            self.covariance_type,
            self.params_init,
            int(self.n_factors),
        )

    def _given(self) -> Mapping[str, Any] | None:
        """Return parameters to begin with."""
        found: Mapping[str, Any] | None = self.params_init
        return found

    @classmethod
    def from_parameters(
        cls,
        weights: Any,
        params: Mapping[str, Any] | None = None,
        *,
        feature_names: Sequence[str] | None = None,
        **given: Any,
    ) -> Self:
        """Return a mixture with parameters given by hand, which answers as a learned one does.

        Parameters
        ----------
        weights
            The probability of each component.
        params
            What components are like, by name, as `component_params_` of a learned mixture has it.
        feature_names
            What the columns are called; else x0, x1, ....
        given
            Parameters by name too (`means=`, `covariances=`, `rates=`, ...), and settings of the mixture
            (`covariance_type=`, `component=`, ...). Columns of categories have `probs=` and `categories=`, a list of symbols
            a column. With `warm_start=True`, `fit` goes on from here.

        Examples
        --------
        >>> from markovia.models.mixtures.named_mixtures import GaussianMixture
        >>> mixture = GaussianMixture.from_parameters([0.3, 0.7], means=[[0.0], [4.0]], covariances=[[[1.0]], [[4.0]]])
        >>> mixture.score_samples([[1.0]]).round(4).tolist(), mixture.predict([[1.0], [3.0]]).tolist()
        ([-2.1377], [0, 1])
        """
        known = {one.name for one in fields(cls) if one.init}
        settings = {name: value for name, value in given.items() if name in known}
        params = {**(params or {}), **{n: v for n, v in given.items() if n not in known}}
        mixture = cls(**{"n_components": len(np.atleast_1d(weights)), **settings})
        check_options(mixture)
        k, family = mixture.n_components, mixture._family()
        mixture.weights_ = _checked_weights(weights, k, "weights")
        if isinstance(family, ColumnRows):
            components = family.adopt(mixture, k, params, feature_names)
        else:
            components = _of_params(family, k, params)
            mixture._take_columns(components.width, feature_names)
        mixture._groups = Groups(components, mixture.weights_)
        mixture.history_, mixture.n_iter_, mixture.converged_ = [], 0, True
        return mixture

    def _take_columns(self, width: int | None, names: Sequence[str] | None) -> None:
        """Set what columns there are, and what they are called."""
        if width is None:  # sequences, and rows that only a model of the user's reads
            return
        if names is not None and len(names) != width:
            raise InvalidArgument(f"feature_names= has {len(names)} names for {width} columns")
        self.n_features_in_ = width
        if names is not None:
            self.feature_names_in_ = np.array(list(names), dtype=object)

    # -- learning --------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, labels: Any = None) -> Self:  # noqa: N803
        """Learn from rows and return the mixture itself; on an error it stays as it was.

        Parameters
        ----------
        X
            Rows: an array, or a frame whose columns have names; NaN is a missing cell, which is summed out. Or data files
            (.csv, .tsv, .parquet; a path, a pattern or a list), of which a block at a time is in memory: each step reads
            them once, and starts come from some of the rows.
        y
            As `labels`, but looked at only where some are -1: scikit-learn hands y to every estimator, and its mixtures
            ignore it.
        sample_weight
            How much each row counts.
        labels
            Components of rows (0, 1, ...) where they are known; None, NaN or -1 where they are not. Or their names, which in
            order are the components 0, 1, ... and stay in `label_names_`. A row whose component is known belongs to it
            wholly; where all are known that is all there is to learn, in one step.

        Examples
        --------
        >>> from markovia.models.mixtures.named_mixtures import GaussianMixture
        >>> rows = [[1.0], [1.2], [1.4], [4.0], [4.4]]
        >>> mixture = GaussianMixture(2).fit(rows, labels=["slow", None, "slow", "fast", "fast"])
        >>> mixture.label_names_, mixture.means_.ravel().round(3).tolist()
        (['fast', 'slow'], [4.2, 1.2])
        """
        with fitting(self):
            family, rule = self._family_and_rule()
            self.__dict__.pop("label_names_", None)
            if (names := label_names(labels)) is not None:
                self.label_names_ = names
            labels_of = partial(read_labels, y, k=self.n_components, labels=labels)
            if isinstance(self.component, HMM | MarkovChain):
                with Clock(self.time_limit, False):
                    self._fit_sequences(X, labels_of, sample_weight, rule)
                return self
            sample: Any
            if is_files(X):
                sample = open_sample(X, family, self, labels_of, sample_weight, np.random.default_rng(0))
            else:
                rows = family.read(self, X, reset=True)
                n = _count(rows)
                sample = Sample(rows, read_weights(sample_weight, n), labels_of(n), _has_gaps(rows))
            refuse_few(sample.few.rows, self.n_components, sample.few.shares)
            rule = replace(rule, prior=_in_unit(rule.prior, sample))
            idle = self._says_idle(sample.few.rows)
            if self.method in posterior_mixtures.METHODS:
                if sample.few is not sample:
                    raise InvalidArgument(
                        f"method={self.method!r} needs all rows in memory; read the file into a frame"
                    )
                self._take_posterior(family, sample)
                return self
            with Clock(self.time_limit, False):
                best = self._learned(family, rule, sample)
            self._take(best, idle=idle)
        return self

    def _take_posterior(self, family: Any, sample: Sample) -> None:
        component, kind = self.component, self.covariance_type
        posterior_mixtures.check_posterior(component, kind, sample)
        found = posterior_mixtures.learn_posterior(
            component,
            np.asarray(sample.rows),
            self.n_components,
            self.method,
            generator(self.random_state),
            diagonal=kind == "diag",
            prior=self.prior,
            concentration=float(self.weight_concentration),
            max_iter=self.max_iter,
            tol=self.tol,
            time_limit=self.time_limit,
            progress=self.progress,
        )
        self._groups = Groups(family.of(self.n_components, found.params), found.weights)
        self.weights_, self.posterior_ = found.weights, found.posterior
        self.history_ = [value / len(sample.rows) for value in found.ended.history]
        self.lower_bound_, self.n_iter_ = self.history_[-1], len(self.history_)
        self.converged_ = found.ended.converged
        self._online: OnlineState | None = None
        found.ended.warn(self.tol)

    def _fit_sequences(self, X: Any, labels_of: Any, sample_weight: Any, rule: LearningRule) -> None:  # noqa: N803
        """Learn models of sequences."""
        for name, unsaid in (("prior", None), ("params_init", None), ("warm_start", False)):
            if getattr(self, name) is not unsaid:
                raise InvalidArgument(f"{name}= is not for mixtures of sequences; leave it out")
        check("method", self.method, Choice(("em", "hard")))
        data, k = read_sequences(X), self.n_components
        models, best = learn_sequences(
            self.component,
            Sample(data, data.weights(sample_weight), labels_of(len(data))),
            k,
            rule,
            generator(self.random_state),
            weights=None if self.weights_init is None else _checked_weights(self.weights_init, k),
            n_init=max(int(self.n_init), SEQUENCE_STARTS if self.init_params == "auto" else 1),
            n_jobs=self.n_jobs,
            max_iter=self.max_iter,
            tol=self.tol,
            progress=self.progress,
        )
        self.n_features_in_ = data.values.shape[1]
        self._take(replace(best, state=Groups(Models(tuple(models)), best.state.weights)))

    def _family_and_rule(self) -> tuple[Any, LearningRule]:
        family = self._family()
        prior = checked_prior(family.priors, self.prior, "prior")
        if self.reg_covar > 0.0:
            prior["ridge"] = float(self.reg_covar)
        concentration = float(self.weight_concentration)
        return family, LearningRule(prior, concentration, self.method == "hard")

    def _learned(self, family: Any, rule: LearningRule, sample: Any) -> Climb[Groups]:
        n_init, warm = int(self.n_init), self.warm_start and hasattr(self, "_groups")
        if warm:
            n_init = 1
        seed = self.random_state
        rng: Any = seed if isinstance(seed, np.random.RandomState) else generator(seed)
        if self.init_params != "auto" and isinstance(seed, int | None):
            rng = np.random.RandomState(seed)  # the same draws as scikit-learn's
        starts = [self._groups] if warm else [self._start(family, rule, sample, rng) for _ in range(n_init)]
        run = partial(
            learn_groups_online if self.method == "online" else learn_groups,
            sample=sample.in_patterns(),
            rule=rule,
            max_iter=self.max_iter,
            tol=self.tol,
            **self._batches(),
        )
        return best_climb(run, starts, n_jobs=self.n_jobs, progress=self.progress)

    def _batches(self) -> dict[str, Any]:
        if self.method != "online":
            return {}
        seed = int(
            generator(self.random_state if isinstance(self.random_state, int | None) else 0).integers(2**31)
        )
        return {
            "batch_size": self.batch_size,
            "decay": self.learning_decay,
            "offset": self.learning_offset,
            "seed": seed,
        }

    def _start(self, family: Any, rule: LearningRule, sample: Any, rng: Any) -> Groups:
        k, how, sample = self.n_components, self.init_params, sample.few
        blank = family.blank(sample.rows, k)
        params, weights = self._given(), self.weights_init
        if params is not None and not set(blank.params) - set(params):
            made = family.of(k, params)
            found = Groups(made, np.full(k, 1.0 / k))
        elif how == "auto":
            few = few_rows(sample, k, rng)
            found = tried_groups(family, k, few, rule, rng, family.tries)
        else:
            found = groups_of(blank, sample, _first_shares(family, sample, k, how, rng), rule)
        if params is not None:
            found = Groups(_with_params(found.components, params, family, k), found.weights)
        if weights is not None:
            found = Groups(found.components, _checked_weights(weights, k))
        return found

    def _take(self, best: Climb[Groups], *, idle: bool = False) -> None:
        self._groups = best.state
        self.weights_ = best.state.weights
        self.history_ = best.history
        self.lower_bound_ = best.history[-1]
        self.n_iter_, self.converged_ = len(best.history), best.converged
        self._online = None
        if not idle:
            self._collapsed()
        best.warn(self.tol)

    def _says_idle(self, rows: Any) -> bool:
        """Say which columns and rows tell no components apart, and whether there is such a column."""
        if isinstance(rows, np.ndarray) and self.component in ("gaussian", "student-t") and len(rows) > 1:
            same = np.flatnonzero(np.fmax.reduce(rows) == np.fmin.reduce(rows))
            if len(same):
                warn_user(
                    f"the column {feature_names(self)[same[0]]!r} is the same in all rows, so that it tells no components "
                    f"apart, and only the floor reg_covar={self.reg_covar:g} keeps its variance up; leave it out"
                )
            return bool(len(same))
        if self.component == "multinomial":
            empty = np.flatnonzero(np.asarray(rows.sum(axis=1)).ravel() == 0.0)
            if len(empty):
                warn_user(
                    f"row {empty[0]} has no counts at all, as have {len(empty) - 1} others; it says nothing of components"
                )
        return False

    def _collapsed(self) -> None:
        """Say which components have shrunk onto a point, where the likelihood has no highest value."""
        covariances = getattr(self._groups.components, "covariances", None)
        if covariances is None or self.prior or self.n_components == 1:
            return
        floor = self.reg_covar
        means, covariances = self._groups.components.means, np.asarray(covariances)
        many = np.repeat(self.weights_[:, None], means.shape[1], axis=1)
        squared = many * np.diagonal(covariances, axis1=1, axis2=2)
        scale = np.sqrt(pooled_variance(many, np.zeros_like(means), squared, means))
        if self.covariance_type == "spherical":
            scale = np.full(len(scale), np.sqrt((scale**2).mean()))
        sizes = np.linalg.eigvalsh(covariances / scale[:, None] / scale)
        held = np.flatnonzero(
            (sizes[:, 0] < 1.5 * floor + 1e-12 * sizes[:, -1].max()) & (self.weights_ > 0.0)
        )
        if len(held):
            warn_user(
                f"component {held[0]} has shrunk onto so few rows that only the floor reg_covar={floor:g} keeps its "
                "variance up, and the likelihood means little; give prior=, fewer components, or a wider floor",
                ConvergenceWarning,
            )

    @available_if(lambda self: self.component != "student-t")  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,  # noqa: N803
        y: Any = None,
        sample_weight: Any = None,
        *,
        labels: Any = None,
    ) -> Self:
        """Learn from one more batch of rows by online EM, and return the mixture itself; arguments as in `fit`."""
        with fitting(self):
            family, rule = self._family_and_rule()
            if label_names(labels) is not None:
                raise InvalidArgument(
                    "labels= of a batch are components 0, 1, ...: a batch does not show all names; give numbers"
                )
            first = not hasattr(self, "_groups")
            rows = family.read(self, X, reset=first)
            shares = read_weights(sample_weight, _count(rows))
            sample = Sample(rows, shares, read_labels(y, _count(rows), self.n_components, labels), True)
            if first:
                refuse_few(rows, self.n_components, shares)
                seed = self.random_state
                rng = np.random.RandomState(seed) if self.init_params != "auto" else generator(seed)
                self._floor = _in_unit(rule.prior, sample)
                self._groups = self._start(family, replace(rule, prior=self._floor), sample, rng)
                self.history_ = []
            rule = replace(rule, prior=getattr(self, "_floor", rule.prior))
            if self._groups.components.block_pass(gaps=True) is None:
                raise InvalidArgument(
                    f"partial_fit needs components that learn from sums over rows; {self._said()} ones do not"
                )
            found, self._groups, self._online = online_step(
                self._groups,
                sample,
                rule,
                getattr(self, "_online", None),
                decay=self.learning_decay,
                offset=self.learning_offset,
            )
            self.weights_ = self._groups.weights
            self.history_ = [*self.history_, found]
            self.lower_bound_, self.n_iter_, self.converged_ = found, len(self.history_), False
        return self

    def _said(self) -> str:
        named = self.component
        return named if isinstance(named, str) else "such"

    # -- questions -------------------------------------------------------------------------------------------------

    def _rows(self, X: Any, *, reset: bool) -> Any:  # noqa: N803
        return self._family().read(self, X, reset=reset)

    def _seen(self, X: Any) -> Array:  # noqa: N803
        if not (is_files(X) and isinstance(self._family(), ComponentRows)):
            return super()._seen(X)
        return np.concatenate([super(GroupMixture, self)._seen(block) for block in typed_blocks(X)])

    def _joint(self, rows: Any) -> Array:
        return np.asarray(self._groups.components.log_densities(rows) + self._groups.log_weights)

    def _draw(self, components: Ints, rng: np.random.Generator) -> Any:
        found, family = self._groups.components.draw(components, rng), self._family()
        return family.drawn(self, found) if isinstance(family, ColumnRows) else found

    def _free(self) -> int:
        return int(self._groups.components.n_free) + len(self.weights_) - 1

    @property
    def component_params_(self) -> dict[str, Any]:
        """The components' parameters by name, one entry a component."""
        if not hasattr(self, "_groups"):
            raise AttributeError(f"this {type(self).__name__} has learned nothing yet; call fit(X)")
        found: dict[str, Any] = self._groups.components.params
        return found

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        named = self.component if isinstance(self.component, str) else ""
        counts = named in COUNTS
        return {
            "categorical": named in WHOLE_NUMBERS,
            "sparse": counts,
            "positive_only": counts,
            "allow_nan": named not in ("student-t", "multinomial"),
        }

    def network(self) -> "BayesianNetwork":
        """Return the Bayesian network that the mixture is: a node `component`, and the columns under it."""
        from markovia.models.mixtures.mixture_networks import mixture_network

        return mixture_network(self)


def _first_shares(family: Any, sample: Sample, k: int, how: str, rng: Any) -> Array:
    """Return how much of each row is in each component at first, as scikit-learn begins."""
    n = sample.size
    if how == "random":
        found = rng.uniform(size=(n, k))
        return np.asarray(found / found.sum(axis=1)[:, None])
    found = np.zeros((n, k))
    if how == "random_from_data":
        found[rng.choice(n, size=k, replace=False), np.arange(k)] = 1.0
        return found
    points = (
        family.points(sample.rows) if sample.gaps or not isinstance(sample.rows, np.ndarray) else sample.rows
    )
    if how == "k-means++":
        from sklearn.cluster import kmeans_plusplus

        _, places = kmeans_plusplus(points, k, random_state=rng, sample_weight=sample.shares)
        found[places, np.arange(k)] = 1.0
    else:
        found[np.arange(n), k_means(points, k, rng, sample.shares).labels_] = 1.0
    return found


def _with_params(
    components: Any, params: Mapping[str, Any], family: Any, k: int, what: str = "params_init= has"
) -> Any:
    known = components.params
    for name in params:
        if name not in known:
            raise InvalidArgument(
                f"{what} no {name!r}{did_you_mean(name, known)}; there is {', '.join(known)}"
            )
    return family.of(k, {**known, **params})


def _of_params(family: Any, k: int, params: Mapping[str, Any]) -> Any:
    """Return the components that parameters describe, each of which has to be there."""
    try:
        components = family.of(k, params)
    except KeyError as missing:
        raise InvalidArgument(
            f"such components need {missing.args[0]}=, too; there is {', '.join(params) or 'nothing'}"
        ) from None
    _with_params(components, params, family, k, "components have")
    return components


def _checked_weights(given: Any, k: int, what: str = "weights_init") -> Array:
    rule = f"{what}= are {k} numbers, 0 or more, that add up to 1"
    found = checks.numbers(given, rule)
    if found.shape != (k,) or not (found >= 0.0).all() or not np.isclose(found.sum(), 1.0):
        raise InvalidArgument(f"{rule}, not {given!r}")
    return np.asarray(found / found.sum())


def _in_unit(prior: Mapping[str, Any], sample: Any) -> Mapping[str, Any]:
    """Return a prior whose floor is no longer a share but that share of each column's variance, for rows of numbers."""
    few = sample.few.rows
    if "ridge" not in prior or not (isinstance(few, np.ndarray) and few.ndim == 2 and few.dtype.kind == "f"):
        return prior
    about = np.nan_to_num(few).mean(axis=0)
    sums = np.zeros((3, few.shape[1]))  # how much there is, its sum and its squares about a mean of some
    for part in [sample] if sample.few is sample else sample.chunks():
        shares = np.ones(len(part.rows)) if part.shares is None else part.shares
        there, away = ~np.isnan(part.rows), np.nan_to_num(part.rows - about)
        sums += shares @ there, shares @ away, shares @ away**2
    count, first, squared = sums[:, None]
    return {**prior, "ridge": prior["ridge"] * pooled_variance(count, first, squared, about)}


def _count(rows: Any) -> int:
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def _has_gaps(rows: Any) -> bool:
    if isinstance(rows, Parts):
        return any(_has_gaps(part) for part in rows.parts)
    return isinstance(rows, np.ndarray) and rows.dtype.kind == "f" and bool(np.isnan(rows.sum()))
