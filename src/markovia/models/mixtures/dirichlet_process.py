"""Mixtures whose number of components is not said before: Dirichlet and Pitman-Yor process mixtures."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from sklearn.base import ClusterMixin

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.collapsed.algorithm_8 import AlgorithmEight
from markovia.inference.collapsed.collapsed_gibbs import CollapsedGibbs
from markovia.inference.collapsed.concentrations import CONCENTRATION, Concentration, concentration_of
from markovia.inference.collapsed.conjugate_rows import ConjugateRows
from markovia.inference.collapsed.partition_posterior import PartitionPosterior, by_size
from markovia.inference.collapsed.sampler_runs import SamplerRun, burn_in_of
from markovia.inference.collapsed.sampler_settings import SamplerSettings
from markovia.learning.components.conjugate import ConjugateComponents, Law
from markovia.learning.components.conjugate_priors import CONJUGATE, conjugate_component
from markovia.learning.components.families import clusters
from markovia.learning.latent.base_measures import ConjugateMeasure, DistributionMeasure, densities
from markovia.learning.latent.slice_sampler import SliceSampler
from markovia.learning.latent.uncollapsed_gibbs import BlockedGibbs, one_hot
from markovia.learning.latent.variational_mixture import StickWeights, variational_mixture
from markovia.models.classifiers.feature_rows import (
    category_codes,
    check_counts,
    check_gaps,
    columns,
    feature_names,
    numbers,
)
from markovia.models.mixtures.base import MixtureModel
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import (
    Choice,
    Count,
    Damping,
    FromZero,
    FromZeroOrNone,
    Tolerance,
    Whole,
)
from markovia.runtime.estimator import fitting
from markovia.runtime.seeds import generator

DISTRIBUTION = "a distribution of markovia.distributions or a function that returns one"
ABOUT = 4.0
"""Into how many parts an unsaid prior expects the data to fall."""
FIRST = 30
"""Sweeps of collapsed Gibbs that other methods begin with."""
PREDICTED = 40
"""Draws that predictive densities are averaged over, evenly spread."""
CURE = "partitions of rows need every cell: fill them, drop the row, or use mk.Mixture, which sums missing cells out"


@dataclass(eq=False, repr=False)
class DirichletProcessMixture(SamplerSettings, ClusterMixin, MixtureModel):  # type: ignore[misc]
    """A mixture that finds out how many components it has, with a posterior over all partitions of the rows.

    Parameters
    ----------
    component
        "gaussian", "bernoulli", "categorical" (columns of categories), "multinomial" (rows of counts) or "poisson"; with
        method="algorithm-8" also "student-t", and any distribution of `markovia.distributions` or function that returns one.
    method
        "collapsed-gibbs" sums parameters out, row by row, with splits and merges of whole groups; "algorithm-8" keeps
        parameters, which need no conjugate prior; "blocked" cuts the stick after `truncation` pieces and draws all labels
        at once; "slice" does so without a cut; "variational" climbs a bound on the evidence, the quickest and roughest.
    concentration
        How readily new groups open: a number, or (shape, rate) of a gamma prior from which it is learned; None is (2, 4),
        as in Escobar and West (1995).
    discount
        Above 0 (and below 1) for a Pitman-Yor process: many small groups.
    covariance_type
        "full" or "diag" covariances of Gaussians.
    prior
        What is believed of a component, by name: "mean", "strength", "scale", "df" of Gaussians, "a", "b" of Bernoullis,
        "concentration" of categories, "shape", "rate" of Poissons; a distribution for each parameter of other components.
        What is not said follows the scale of the data.
    max_iter, burn_in, thin
        Sweeps in all, those that are not kept (a third where None), and of the others every how many-th is.
    split_merges
        Proposals to split or merge groups a sweep of collapsed Gibbs.
    truncation
        Components of "blocked" and "variational".
    auxiliary
        Parameters that wait for new groups in "algorithm-8".
    loss
        What the one partition of `labels_` minimises: "vi" (variation of information) or "binder".
    tol
        The gain a row of the bound at which "variational" stops.
    time_limit, progress, checkpoint
        Seconds after which to stop with what there is; a bar; a file from which a run that was cut goes on.
    random_state
        A seed: the same number gives the same chain.

    Attributes
    ----------
    posterior_ : PartitionPosterior
        Draws of partitions, parameters and concentrations: the number of groups, co-clustering, relabelled summaries.
    labels_, n_components_, weights_
        The point partition of the rows, how many groups it has, their shares (the largest first).
    component_params_, means_, covariances_
        Posterior means of parameters given that partition; the last two are for Gaussians.
    history_, n_iter_, converged_
        Log probabilities of the sweeps (bounds of the steps), how many, and whether the run came to its end.

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.5, (40, 2)) for c in (-3, 0, 3)])
    >>> found = mk.DirichletProcessMixture(max_iter=60, random_state=0).fit(X)
    >>> found.n_components_
    3
    >>> found.posterior_.n_clusters().argmax()
    3
    """

    component: Annotated[Any, Choice((*CONJUGATE, "student-t"), DISTRIBUTION, (Callable,))] = "gaussian"
    _: KW_ONLY
    method: Literal["collapsed-gibbs", "algorithm-8", "blocked", "slice", "variational"] = "collapsed-gibbs"
    concentration: Annotated[Any, replace(CONCENTRATION, none=True)] = None
    discount: Damping = 0.0
    covariance_type: Literal["full", "diag"] = "full"
    prior: Mapping[str, Any] | None = None
    max_iter: Count = 150
    burn_in: FromZeroOrNone = None
    thin: Count = 1
    split_merges: FromZero = 5
    truncation: Annotated[int, Whole(2)] = 20
    auxiliary: Count = 3
    loss: Literal["vi", "binder"] = "vi"
    tol: Tolerance = 1e-6

    _not_saved = ("_measure",)

    # -- learning --------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from rows and return the mixture itself; on an error it stays as it was. `y` is not looked at."""
        with fitting(self):
            law = self._law()
            rows = self._rows(X, reset=True)
            rng = generator(self.random_state)
            self._family: tuple[ConjugateComponents, Law] | None = None
            if self.component in CONJUGATE:
                self._family = conjugate_component(
                    self.component,
                    rows,
                    self.prior,
                    diagonal=self.covariance_type == "diag",
                    groups=min(ABOUT, len(rows)),
                    levels=self._levels(),
                )
            if self.method == "variational":
                self._climb(rows, law, rng)
            else:
                self._sample(rows, law, rng)
        return self

    def _law(self) -> Concentration:
        """Return the law of partitions, of settings that agree with each other."""
        if self.component not in CONJUGATE and self.method != "algorithm-8":
            raise InvalidArgument(
                f"method={self.method!r} needs a conjugate component ({', '.join(CONJUGATE)}); "
                "method='algorithm-8' takes any"
            )
        if self.checkpoint is not None and self.method == "variational":
            raise InvalidArgument(
                "checkpoint= keeps the state of a sampler; leave it out, or give another method="
            )
        said = concentration_of((2.0, 4.0) if self.concentration is None else self.concentration)
        if isinstance(said, tuple):
            return Concentration(said[0] / said[1], said, self.discount)
        return Concentration(said, None, self.discount)

    def _sample(self, rows: Array, law: Concentration, rng: np.random.Generator) -> None:
        sampler = self._sampler(rows, law, rng)
        burn_in = burn_in_of(self.burn_in, self.max_iter, one_in=3)
        about = {
            k: v
            for k, v in self.get_params().items()
            if k not in ("max_iter", "time_limit", "progress", "checkpoint")
        }

        def keep() -> dict[str, Array]:
            return {k: v.astype(np.int32) if k == "labels" else v for k, v in sampler.state().items()}

        run = self._sweeps(
            sampler,
            rng,
            keep,
            burn_in=burn_in,
            thin=self.thin,
            name="sampling partitions",
            about=(rows, about),
        )
        self._take(rows, run, rng)
        self.converged_ = run.reason is None

    def _sampler(self, rows: Array, law: Concentration, rng: np.random.Generator) -> Any:
        family = self._family
        if family is None:
            prior = _student_priors(rows, self.prior) if self.component == "student-t" else self.prior
            self._measure = DistributionMeasure(self._make(), rows, prior)
            begin = clusters(rows, min(int(ABOUT), len(rows)), rng)
            begin = np.unique(begin, return_inverse=True)[1]
            params = self._measure.begun(begin, rng)
            return AlgorithmEight(self._measure, begin, law, rng, auxiliary=self.auxiliary, params=params)
        if self.method == "collapsed-gibbs":
            one = np.zeros(len(rows), dtype=np.int64)
            return CollapsedGibbs(self._collapsed(rows), one, law, split_merges=self.split_merges)
        begin = _parted(self._collapsed(rows), law, rng)
        if self.method == "algorithm-8":
            return AlgorithmEight(ConjugateMeasure(*family, rows), begin, law, rng, auxiliary=self.auxiliary)
        if self.method == "slice":
            return SliceSampler(*family, rows, begin, law)
        return BlockedGibbs(*family, rows, np.minimum(begin, self.truncation - 1), self.truncation, law)

    def _climb(self, rows: Array, law: Concentration, rng: np.random.Generator) -> None:
        assert self._family is not None
        k = min(self.truncation, len(rows))
        begin = np.minimum(by_size(_parted(self._collapsed(rows), law, rng)), k - 1)
        weights = StickWeights(law.value, None if law.discount else law.prior, law.discount)
        found = variational_mixture(
            *self._family,
            rows,
            weights,
            one_hot(begin, k),
            max_iter=self.max_iter,
            tol=self.tol,
            time_limit=self.time_limit,
            progress=self.progress,
        )
        many = max(self.max_iter - (self.max_iter // 3 if self.burn_in is None else self.burn_in), 1)
        levels = np.cumsum(found.state.responsibilities, axis=1)[:, :-1]
        drawn = [(rng.random(len(rows))[:, None] > levels).sum(axis=1) for _ in range(min(many, 100))]
        draws = [
            {"labels": z.astype(np.int32), "concentration": np.array(found.state.weights.concentration)}
            for z in drawn
        ]
        self._take(rows, SamplerRun(draws=draws), rng)
        self.history_, self.n_iter_ = found.history, len(found.history)
        self.converged_ = found.converged
        found.warn(self.tol)

    def _take(self, rows: Array, run: SamplerRun, rng: np.random.Generator) -> None:
        """Keep draws, the point partition, and what predictions need."""
        draws = run.draws
        labels = np.array([d["labels"] for d in draws])
        numbers = {"concentration": np.array([float(d["concentration"]) for d in draws])}
        n = len(rows)
        if self._family is not None:
            component, prior = self._family
            compact = np.array([np.unique(z, return_inverse=True)[1] for z in labels])
            belongs = [one_hot(z, int(z.max()) + 1) for z in compact]
            drawn = [component.redrawn(rows, own, prior, rng).arrays for own in belongs]
            params = {name: [d[name] for d in drawn] for name in drawn[0]}
            posterior = PartitionPosterior(compact, parameters=params, numbers=numbers)
        else:
            names = [key for key in draws[0] if key.startswith("param.")]
            params = {key.removeprefix("param."): [d[key] for d in draws] for key in names}
            posterior = PartitionPosterior(labels, parameters=params, numbers=numbers)
        self.posterior_ = posterior
        self.labels_ = posterior.point(self.loss)
        self.n_components_ = int(self.labels_.max()) + 1
        self.weights_ = np.bincount(self.labels_) / n
        self._n = n
        self._remember(rows)
        found = self._point_params(rows)
        self.component_params_ = found
        for name in ("means", "covariances"):
            if self.component == "gaussian":
                setattr(self, f"{name}_", found[name])

    def _remember(self, rows: Array) -> None:
        """Keep components of some draws, each followed by a new one, with their log weights."""
        posterior, d = self.posterior_.thinned(PREDICTED), float(self.discount)
        weights, stats, params = [], [], []
        for s in range(posterior.n_draws):
            labels = posterior.labels[s].astype(np.int64)
            sizes, a = np.bincount(labels), float(posterior.numbers["concentration"][s])
            weights.append(
                np.log(np.append(sizes - d, a + d * len(sizes)) / (self._n + a) / posterior.n_draws)
            )
            if self._family is not None:
                stats.append(self._collapsed(rows).statistics(labels))
            else:
                new = self._measure.drawn(1, np.random.default_rng(s))
                params.append({n: np.concatenate([v[s], new[n]]) for n, v in posterior.parameters.items()})
        self._log_weights = np.concatenate(weights)
        if self._family is not None:
            self._stats = np.concatenate(stats)
            self._point = self._collapsed(rows).statistics(self.labels_)[:-1]
        else:
            self._params = {n: np.concatenate([p[n] for p in params]) for n in params[0]}

    def _point_params(self, rows: Array) -> dict[str, Array]:
        if self._family is None:
            return {name: about["mean"] for name, about in self.posterior_.summary(self.labels_).items()}
        component, prior = self._family
        belongs = one_hot(self.labels_, self.n_components_)
        return component.expected(component.posterior(rows, belongs, prior)).arrays

    def _collapsed(self, rows: Array, most: int = 0) -> ConjugateRows:
        """Return rows as samplers read them that sum parameters out."""
        assert self._family is not None
        component, prior = self._family
        return component.collapsed(rows, prior, most)

    # -- questions -------------------------------------------------------------------------------------------------

    def _rows(self, X: Any, *, reset: bool) -> Array:  # noqa: N803
        if self.component == "categorical":
            return np.asarray(self._coded(X, reset=reset))
        rows: Array = numbers(self, X, reset=reset, gaps=CURE, text="component='categorical' takes text")
        if self.component in ("bernoulli", "multinomial", "poisson"):
            check_counts(
                self, rows, f"cells of {self.component} components", ones=self.component == "bernoulli"
            )
        return rows

    def _coded(self, X: Any, *, reset: bool) -> Any:  # noqa: N803
        """Return categories as numbers."""
        cells, names = columns(self, X, reset=reset), feature_names(self)
        if reset:
            self.categories_: dict[str, list[Any]] = {}
        codes = category_codes(self, names, cells, reset=reset)
        check_gaps(self, codes, codes < 0, CURE)
        return codes

    def _levels(self) -> tuple[int, ...]:
        """Return how many categories each column has."""
        return tuple(map(len, self.categories_.values())) if self.component == "categorical" else ()

    def _joint(self, rows: Array) -> Array:
        if self._family is None:
            logs = densities(self._make(), self.component_params_, rows)
        else:
            logs = self._collapsed(rows, self._n).log_predictive(self._point)
        return np.asarray(logs + np.log(self.weights_))

    def _make(self) -> Any:
        return _student_t if self.component == "student-t" else self.component

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """Return the log posterior predictive density of each row, averaged over draws, a new group included."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "weights_")
        rows = self._rows(X, reset=False)
        if self._family is None:
            logs = densities(self._make(), self._params, rows)
        else:
            logs = self._collapsed(rows, self._n).log_predictive(self._stats)
            logs += np.reshape(self._family[0].base(rows), (-1, 1))
        return np.asarray(np.logaddexp.reduce(logs + self._log_weights, axis=1))

    def fit_predict(self, X: Any, y: Any = None) -> Ints:  # type: ignore[override]  # noqa: N803
        """Learn from rows and return the point partition."""
        return np.asarray(self.fit(X, y).labels_)

    def _draw(self, components: Ints, rng: np.random.Generator) -> Any:
        from markovia.learning.components.functions import FunctionEmission

        if self.component in ("categorical", "multinomial"):
            raise UnsupportedModel(f"{self.component} components draw no rows here")
        if self._family is None:
            return FunctionEmission(self._make(), self.component_params_).draw(components, rng)
        return self._family[0].with_arrays(self.component_params_).draw(components, rng)

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        return {"allow_nan": False}


def _parted(data: ConjugateRows, law: Concentration, rng: np.random.Generator) -> Ints:
    """Return where methods begin that are slow to part what begins together: some sweeps with splits and merges."""
    held = Concentration(law.value, None, law.discount)
    first = CollapsedGibbs(data, np.zeros(len(data.values), dtype=np.int64), held)
    best, found = -np.inf, first.labels.copy()
    for _ in range(FIRST):
        first.sweep(rng)
        if first.log_prob() > best:
            best, found = first.log_prob(), first.labels.copy()
    return found


def _student_t(df: Any, loc: Any, scale: Any) -> Any:
    import numpyro.distributions as theirs

    return theirs.StudentT(df, loc, scale).to_event(1)


def _student_priors(rows: Array, said: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return distributions of degrees of freedom, centres and widths of each column; unsaid ones follow the rows."""
    import numpyro.distributions as theirs

    spread = np.where(rows.std(axis=0) > 0.0, rows.std(axis=0), 1.0)
    narrow = spread / min(ABOUT, len(rows)) ** (1.0 / rows.shape[1])
    return {
        "df": theirs.Gamma(2.0, 0.1),
        "loc": theirs.Normal(rows.mean(axis=0), 2.0 * spread),
        "scale": theirs.LogNormal(np.log(narrow), 1.0),
        **(said or {}),
    }
