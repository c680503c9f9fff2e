"""Poisson factorisation: tables of counts as sums of factors, as many as the data need (gamma-process prior)."""

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.gamma_poisson_gibbs import GammaPoissonGibbs
from markovia.inference.collapsed.sampler_settings import SamplerSettings
from markovia.learning.latent.gamma_poisson_vb import expected_activities, first_fit, step
from markovia.models.classifiers.feature_rows import check_counts, numbers
from markovia.optimise.ascent import climb
from markovia.optimise.checkpoint import Checkpoint, digest_of
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, CountOrNone, Positive, Tolerance, Whole, check
from markovia.runtime.estimator import fitting
from markovia.runtime.ports import Savable
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.transforming_estimator import TransformingEstimator

TRUNCATION = 30
"""Factors at most where their number is left open."""
SHARE = 0.01
"""Factors with a smaller share of all counts are left out where their number is left open."""

FIRST_SWEEPS = 60
"""Sweeps before the first that counts, in which factors that are alike are joined."""
CURE = "counts need every cell: fill them or drop the row"
TEXTS = "mk.topics.Corpus.read counts the words of texts"


@dataclass(eq=False, repr=False)
class PoissonFactorisation(SamplerSettings, TransformingEstimator, Savable):
    """Counts as sums of factors: x_nd ~ Poisson(sum_k weight_k activity_nk component_kd).

    Parameters
    ----------
    n_components
        How many factors; None lets the data decide, up to 30.
    method
        "gibbs" draws from the posterior, "vb" is variational Bayes.
    max_iter
        Sweeps (the second half is averaged) or steps.
    concentration
        The mass of the gamma process: more lets more factors in.
    activity_prior, component_prior
        Shape of the activities' gamma law, and concentration of the components' Dirichlet law; small values make them
        sparse.
    tol
        "vb" stops once a step raises the bound by less than this a count.

    Attributes
    ----------
    components_
        (`n_components_`, columns); each sums to one.
    weights_
        Expected counts a row of each factor, for an activity of 1; factors are in decreasing order.
    n_components_, n_iter_, history_, converged_
        Factors kept; sweeps or steps; the log probability or the bound after each; whether "vb" stopped by `tol`.
    n_components_draws_
        Factors with counts in each kept sweep of "gibbs".

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> parts = np.array([[4.0, 4, 0, 0], [0, 0, 4, 4]])
    >>> counts = rng.poisson(rng.gamma(1.0, 1.0, (60, 2)) @ parts)
    >>> model = mk.topics.PoissonFactorisation(2, max_iter=100, random_state=0).fit(counts)
    >>> model.components_.round(1).max(axis=0).tolist()
    [0.5, 0.5, 0.5, 0.5]
    >>> model.transform(counts).shape
    (60, 2)
    """

    n_components: CountOrNone = None
    _: KW_ONLY
    method: Literal["gibbs", "vb"] = "gibbs"
    max_iter: Count = 300
    concentration: Positive = 1.0
    activity_prior: Positive = 0.5
    component_prior: Positive = 0.1
    tol: Tolerance = 1e-6

    def fit(self, X: Any, y: Any = None) -> "PoissonFactorisation":  # noqa: N803
        """Learn factors from counts, dense or sparse.

        Parameters
        ----------
        X
            (rows, columns) of whole numbers, 0 or more, or a `Corpus`.
        y
            Ignored.
        """
        with fitting(self):
            rng = generator(self.random_state)
            k = TRUNCATION if self.n_components is None else int(self.n_components)
            masses = np.full(k, self.concentration / k if self.n_components is None else 1.0)
            sampler = self._sampler(X, masses, rng, reset=True)
            if not sampler.counts.size:
                raise InvalidArgument("all counts are 0; there is nothing to factorise")
            if self.checkpoint is None or not os.path.exists(self.checkpoint):
                sampler.started(rng, FIRST_SWEEPS)
            if self.method == "gibbs":
                profiles, rates, totals = self._sampled(sampler, rng)
            else:
                profiles, rates, totals = self._variational(sampler)
            order = np.argsort(-totals, kind="stable")
            if self.n_components is None:
                order = order[totals[order] > SHARE * totals.sum()]
            self.components_, self.weights_ = profiles[order], rates[order]
            self.n_components_ = order.size
        return self

    def _table(self, counts: Any, *, reset: bool) -> Any:
        """Return counts as a table of numbers; a corpus has a column for each word of the vocabulary."""
        if isinstance(counts, Corpus):
            if reset:
                self.vocabulary_ = list(counts.vocabulary)
            elif hasattr(self, "vocabulary_"):
                counts = Corpus.read(counts, self.vocabulary_)
            counts = counts.counts()
        rows = numbers(self, counts, reset=reset, sparse=True, gaps=CURE, text=TEXTS)
        check_counts(self, rows, "counts", cure="; mk.LatentFeatures takes other numbers")
        return rows

    def _sampler(
        self, counts: Any, masses: Array, rng: np.random.Generator, *, reset: bool
    ) -> GammaPoissonGibbs:
        """Return a sampler at its start, for counts that were checked."""
        from scipy.sparse import coo_array

        x = self._table(counts, reset=reset)
        held = coo_array(x)
        held.sum_duplicates()
        there = held.data > 0
        row, column = (index[there].astype(np.int64) for index in held.coords)
        whole = held.data[there].astype(np.int64)
        return GammaPoissonGibbs(
            row, column, whole, x.shape, masses, self.activity_prior, self.component_prior, rng
        )

    def _about(self, data: GammaPoissonGibbs) -> tuple[Any, ...]:
        """Return what tells one run's file from another's."""
        return data.rows, data.columns, data.counts, data.masses, self.component_prior, self.method

    def _sampled(self, sampler: GammaPoissonGibbs, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        def kept() -> dict[str, Array]:
            totals = sampler.of_rows.sum(axis=0)
            return {"profiles": sampler.profiles.copy(), "rates": sampler.rates.copy(), "totals": totals}

        run = self._sweeps(
            sampler, rng, kept, burn_in=self.max_iter // 2, thin=max(self.max_iter // 200, 1), name="Poisson factors",
            about=self._about(sampler),
        )  # fmt: skip
        draws, self.converged_ = run.draws, run.reason is None
        self.n_components_draws_ = np.array([int((d["totals"] > 0).sum()) for d in draws])
        profiles, rates, totals = (
            np.mean([d[n] for d in draws], axis=0) for n in ("profiles", "rates", "totals")
        )
        return profiles, rates, totals

    def _variational(self, sampler: GammaPoissonGibbs) -> tuple[Array, Array, Array]:
        found = climb(
            partial(step, sampler), first_fit(sampler), max_iter=self.max_iter, tol=self.tol,
            size=float(sampler.counts.sum()), time_limit=self.time_limit, progress=self.progress, name="Poisson factors",
            checkpoint=Checkpoint(self.checkpoint, digest_of(*self._about(sampler))),
        )  # fmt: skip
        self.history_, self.n_iter_, self.converged_ = found.history, len(found.history), found.converged
        found.warn(self.tol)
        activities, rates, profiles = found.state.factors
        return profiles, rates, rates * activities.sum(axis=0)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the expected counts that each factor makes in each row: (rows, `n_components_`)."""
        check_is_fitted(self)
        sampler = self._sampler(X, np.ones(self.n_components_), np.random.default_rng(0), reset=False)
        return expected_activities(sampler, self.weights_, self.components_) * self.weights_

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """Return the expected counts of rows with these factors."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_)

    def sample(self, n: int = 1, seed: Seed = None) -> Ints:
        """Draw rows of counts: activities by their prior, then a Poisson number for each column.

        Examples
        --------
        >>> model = PoissonFactorisation(1, max_iter=20, random_state=0).fit([[3, 1], [2, 2], [4, 0]])
        >>> model.sample(5, seed=0).shape
        (5, 2)
        """
        check_is_fitted(self)
        check("n", n, Whole(1))
        rng, a = generator(seed), self.activity_prior
        activities = rng.gamma(a, 1.0 / a, (n, self.n_components_))
        return rng.poisson(activities * self.weights_ @ self.components_)

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the mean Poisson log probability of a cell, at the expected factors of its row."""
        from scipy.special import gammaln

        mean = np.maximum(self.inverse_transform(self.transform(X)), 1e-12)
        x = self._table(X, reset=False)
        dense = x.toarray() if hasattr(x, "toarray") else x
        return float((dense * np.log(mean) - mean - gammaln(dense + 1.0)).mean())

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        return {"sparse": True, "positive_only": True, "categorical": True}  # whole numbers
