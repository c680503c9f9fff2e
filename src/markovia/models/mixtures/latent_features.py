"""Latent features: rows that each have some of a number of features, which the data decide (Indian buffet prior)."""

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovia.errors import InvalidArgument
from markovia.inference.collapsed.indian_buffet_gibbs import IndianBuffetGibbs
from markovia.inference.collapsed.sampler_runs import burn_in_of
from markovia.inference.collapsed.sampler_settings import SamplerSettings
from markovia.learning.latent.held_features import HeldFeatures
from markovia.models.classifiers.feature_rows import numbers
from markovia.models.mixtures.density_questions import DensityQuestions
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, FromZeroOrNone, PositiveOrNone
from markovia.runtime.estimator import fitting
from markovia.runtime.ports import Savable
from markovia.runtime.seeds import generator
from markovia.runtime.transforming_estimator import TransformingEstimator

SHARED = 2
"""Rows that a feature needs to be counted: one that a single row has comes and goes with the noise."""
PILOT = 150
"""Sweeps of each of the short first runs."""


@dataclass
class FeaturePosterior:
    """Draws of which rows have which features; features have no names, so a draw's columns are its own.

    Attributes
    ----------
    features
        Of each draw, 0 or 1, rows by its features.
    concentration, noise_std, feature_std, log_prob
        Of each draw.
    """

    features: list[Any]
    concentration: Array
    noise_std: Array
    feature_std: Array
    log_prob: Array

    def n_features(self, least: int = 1) -> dict[int, float]:
        """Return the posterior probability of each number of features that so many rows or more have."""
        found, counts = np.unique([(z.sum(axis=0) >= least).sum() for z in self.features], return_counts=True)
        return {int(k): float(c) / len(self.features) for k, c in zip(found, counts, strict=True)}

    def co_occurrence(self) -> Array:
        """Return the expected number of features that each two rows share: (rows, rows)."""
        rows = self.features[0].shape[0]
        total = np.zeros((rows, rows))
        for z in self.features:
            total += z.astype(np.float64) @ z.T.astype(np.float64)
        return np.asarray(total / len(self.features))


@dataclass(eq=False, repr=False)
class LatentFeatures(SamplerSettings, DensityQuestions, TransformingEstimator, Savable):
    """Rows are sums of features, each of which a row has or has not, plus noise; how many there are is learned.

    A row is x = (z * v) A + noise with z from the Indian buffet process, features A ~ N(0, feature_std^2), and weights v = 1
    (`"binary"`) or standard normal (`"gaussian"`). Unlike a mixture's components, features combine: with K of them a row is
    one of 2^K kinds.

    Parameters
    ----------
    weights
        "binary" or "gaussian".
    method
        "collapsed" sums the features' values out (binary only), "gibbs" draws them, "slice" draws the features' chances
        too; "auto" takes the first that fits.
    max_iter
        Sweeps; those after `burn_in` (half by default) are kept, at most about 100 of them.
    n_init
        Short runs from which the likeliest goes on; a single one may stay where two features share what is one.
    concentration, noise_std, feature_std
        Fixed values; learned where None.
    checkpoint
        A file that the run writes, and goes on from if it is there.

    Attributes
    ----------
    components_
        The features, (`n_components_`, columns): means given the best draw.
    n_components_
        The most probable number of features that two rows or more have; the best draw is the likeliest with so many.
    features_
        What rows have in it: (rows, `n_components_`), weights where those are gaussian.
    posterior_
        All kept draws: features, weights and their probabilities.
    noise_std_, concentration_, history_
        Of the best draw; the log probability after each sweep.

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> parts = np.array([[1.0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    >>> has = rng.random((40, 2)) < 0.5
    >>> model = mk.LatentFeatures(max_iter=100, random_state=0).fit(has @ parts + 0.1 * rng.normal(size=(40, 6)))
    >>> model.n_components_
    2
    >>> model.transform([[1.0, 1, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]]).round().sum(axis=1).tolist()
    [2.0, 0.0]
    """

    weights: Literal["binary", "gaussian"] = "binary"
    _: KW_ONLY
    method: Literal["auto", "collapsed", "gibbs", "slice"] = "auto"
    max_iter: Count = 1000
    n_init: Count = 4
    burn_in: FromZeroOrNone = None
    concentration: PositiveOrNone = None
    noise_std: PositiveOrNone = None
    feature_std: PositiveOrNone = None

    def fit(self, X: Any, y: Any = None) -> "LatentFeatures":  # noqa: N803
        """Learn features from rows of numbers; missing cells (NaN) are drawn along.

        Parameters
        ----------
        X
            (rows, columns).
        y
            Ignored.
        """
        with fitting(self):
            method, burn_in = self._method(), burn_in_of(self.burn_in, self.max_iter)
            x = numbers(self, X, reset=True)
            missing = np.isnan(x)
            if missing.all(axis=0).any():
                raise InvalidArgument(
                    f"column {int(missing.all(axis=0).argmax())} has no value; leave it out"
                )
            scale = float(np.nanmean(x**2)) or 1.0
            filled = np.where(missing, np.nanmean(x, axis=0), x)
            held = (self.noise_std, self.feature_std)
            noise, spread = (None if v is None else float(v) ** 2 for v in held)

            def fresh() -> IndianBuffetGibbs:
                weighted, alpha = self.weights == "gaussian", self.concentration
                return IndianBuffetGibbs(filled, method, weighted, missing, alpha, noise, spread, scale)

            rng = generator(self.random_state)
            resumed = self.checkpoint is not None and os.path.exists(self.checkpoint)
            pilot = PILOT if not resumed and (self.n_init > 1 or method == "slice") else 0
            starts = [fresh().started(rng, pilot) for _ in range(self.n_init if pilot else 1)]
            sampler = max(starts, key=lambda s: s.log_prob())
            about = (x, method, self.weights, burn_in, *held, self.concentration)
            run = self._sweeps(
                sampler, rng, lambda: _kept(sampler), burn_in=burn_in,
                thin=max((self.max_iter - burn_in) // 100, 1), name="latent features", about=about,
            )  # fmt: skip
            self._settle(run.draws)
            self.stopped_ = run.reason
        return self

    def _method(self) -> Any:
        if self.method == "collapsed" and self.weights == "gaussian":
            raise InvalidArgument(
                "method='collapsed' is for weights='binary'; take method='gibbs' or 'slice'"
            )
        usual = "gibbs" if self.weights == "gaussian" else "collapsed"
        return usual if self.method == "auto" else self.method

    def _settle(self, draws: list[dict[str, Array]]) -> None:
        hyper = np.array([d["hyper"] for d in draws])
        logs = np.array([float(d["log_prob"]) for d in draws])
        features = [(d["w"] != 0).astype(np.int8) for d in draws]
        self.posterior_ = FeaturePosterior(
            features, hyper[:, 0], np.sqrt(hyper[:, 1]), np.sqrt(hyper[:, 2]), logs
        )
        chances = self.posterior_.n_features(least=SHARED)
        self.n_components_ = max(chances, key=lambda k: chances[k])
        right = np.array([(z.sum(axis=0) >= SHARED).sum() == self.n_components_ for z in features])
        best = int(np.where(right, logs, -np.inf).argmax())
        order = np.argsort(-features[best].sum(axis=0), kind="stable")[: self.n_components_]
        self.features_ = draws[best]["w"][:, order]
        self.components_ = draws[best]["mean"][order]
        self.concentration_, noise, spread = (float(h) for h in hyper[best])
        self.noise_std_, self.feature_std_ = float(np.sqrt(noise)), float(np.sqrt(spread))
        rows = self.features_.shape[0]
        self.chances_ = features[best].sum(axis=0)[order] / (rows + 1.0)  # of the next row

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the expected features of new rows, or their expected weights: (rows, `n_components_`).

        The features found are held, and their chances are those of the next row; NaN cells are left out of account.
        """
        held = self._held()
        return held.expected(numbers(self, X, reset=False))

    def _held(self) -> HeldFeatures:
        check_is_fitted(self)
        return HeldFeatures(self.components_, self.chances_, self.noise_std_, self.weights == "gaussian")

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """Return the rows that features make, without noise."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_)

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """Return log p(x) of each row given the features found.

        With at most 12 features all their combinations are summed. With more, or gaussian weights of rows with missing
        cells, it is estimated by annealed importance
        sampling (Neal 2001): the mean weight of chains that go from the prior of features to their posterior; the estimate
        of p(x) has no bias, its logarithm lies a little low. The same rows get the same estimates.
        """
        held = self._held()
        return held.log_probs(numbers(self, X, reset=False))

    def plot(self, shape: tuple[int, int] | None = None, *, ax: Any = None) -> Any:
        """Draw the features: as pictures of a shape, else as lines over the columns."""
        check_is_fitted(self)
        return ports.call("plot-latent-features", self, shape=shape, ax=ax)


def _kept(sampler: IndianBuffetGibbs) -> dict[str, Array]:
    mean, _ = sampler.values_law()
    log_prob = np.array(sampler.log_prob())
    return {"w": sampler.w.copy(), "mean": mean, "hyper": sampler.hyper.copy(), "log_prob": log_prob}
