"""Latent features: rows that each have some of a number of features, which the data decide (Indian buffet prior)."""

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from markovia.errors import InvalidArgument
from markovia.inference.collapsed.indian_buffet_gibbs import IndianBuffetGibbs
from markovia.inference.collapsed.sampler_runs import digest_of, run_sampler
from markovia.models.classifiers.feature_rows import numbers
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Choice, Interval, Whole, check
from markovia.runtime.estimator import Estimator, kept_on_failure
from markovia.runtime.seeds import Seed, generator

MOST_ENUMERATED = 12
"""Features up to which all of a row's combinations are weighed one by one."""
SWEEPS = 200
"""Sweeps over new rows where there are too many combinations, half of them to warm up."""
STEPS, CHAINS = 60, 8
"""Steps from the prior to the posterior of a row's features, and chains a row, where scores are estimated."""
SHARED = 2
"""Rows that a feature needs to be counted: one that a single row has comes and goes with the noise."""
PILOT = 150
"""Sweeps of each of the short first runs."""
_LEARNED = Interval(0.0, np.inf, open="both", said="a number, above 0", none=True)


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
class LatentFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
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
        All kept draws, a `FeaturePosterior`.
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
    max_iter: int = 1000
    n_init: int = 4
    burn_in: int | None = None
    concentration: float | None = None
    noise_std: float | None = None
    feature_std: float | None = None
    random_state: Seed = None
    time_limit: float | None = None
    progress: bool | None = False
    checkpoint: str | os.PathLike[str] | None = None

    def fit(self, X: Any, y: Any = None) -> "LatentFeatures":  # noqa: N803
        """Learn features from rows of numbers; missing cells (NaN) are drawn along.

        Parameters
        ----------
        X
            (rows, columns).
        y
            Ignored.
        """
        method = self._checked()
        with kept_on_failure(self):
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
            burn_in = self.max_iter // 2 if self.burn_in is None else self.burn_in
            run = run_sampler(
                sampler,
                self.max_iter,
                rng,
                burn_in=burn_in,
                thin=max((self.max_iter - burn_in) // 100, 1),
                keep=lambda: _kept(sampler),
                time_limit=self.time_limit,
                progress=self.progress,
                checkpoint=self.checkpoint,
                digest=digest_of(x, method, self.weights, burn_in, *held, self.concentration),
                name="latent features",
            )
            self._settle(run.draws or [_kept(sampler)])
            self.history_, self.n_iter_, self.stopped_ = run.history, run.sweeps, run.reason
        return self

    def _checked(self) -> Any:
        check("weights", self.weights, Choice(("binary", "gaussian")))
        check("method", self.method, Choice(("auto", "collapsed", "gibbs", "slice")))
        check("max_iter", self.max_iter, Whole(1))
        check("n_init", self.n_init, Whole(1))
        check("burn_in", self.burn_in, Whole(0, self.max_iter - 1, none=True))
        for name in ("concentration", "noise_std", "feature_std"):
            check(name, getattr(self, name), _LEARNED)
        if self.method == "collapsed" and self.weights == "gaussian":
            raise InvalidArgument(
                "method='collapsed' is for weights='binary'; take method='gibbs' or 'slice'"
            )
        return (
            ("gibbs" if self.weights == "gaussian" else "collapsed") if self.method == "auto" else self.method
        )

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
        check_is_fitted(self)
        x = numbers(self, X, reset=False)
        if self.weights == "binary" and self.n_components_ <= MOST_ENUMERATED:
            kinds, logs = self._kinds(x)
            p = np.exp(logs - logs.max(axis=1, keepdims=True))
            return np.asarray(p @ kinds / p.sum(axis=1, keepdims=True))
        rng, found = np.random.default_rng(0), np.zeros((len(x), self.n_components_))
        seen = ~np.isnan(x)
        sampler = self._held(x)
        for sweep in range(SWEEPS if found.size else 0):
            if not seen.all():
                noise = self.noise_std_ * rng.standard_normal(x.shape)
                sampler.x = np.where(seen, x, sampler.w @ self.components_ + noise)
            sampler.draw_rows(rng, self.chances_, others=2)
            found += sampler.w / (SWEEPS // 2) if sweep >= SWEEPS // 2 else 0.0
        return found

    def _held(self, x: Array) -> IndianBuffetGibbs:
        """Return a sampler of new rows, which have no feature yet, given the features found."""
        seen, none = ~np.isnan(x), np.zeros((len(x), self.n_components_))
        weighted, noise = self.weights == "gaussian", self.noise_std_**2
        found = IndianBuffetGibbs(np.where(seen, x, 0.0), "gibbs", weighted, ~seen, 1.0, noise, 1.0)
        found.z, found.w, found.a = none, none.copy(), self.components_.copy()
        return found

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
        check_is_fitted(self)
        x = numbers(self, X, reset=False)
        if self.n_components_ > MOST_ENUMERATED or (self.weights == "gaussian" and np.isnan(x).any()):
            return self._annealed(x)
        logs = self._kinds(x)[1]
        top = logs.max(axis=1)
        return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))

    def _annealed(self, x: Array) -> Array:
        """Return estimates of log p(x): rows with the same missing cells run together, each `CHAINS` times."""
        rng, found = np.random.default_rng(0), np.empty(len(x))
        patterns, which = np.unique(np.isnan(x), axis=0, return_inverse=True)
        steps = np.linspace(0.0, 1.0, STEPS + 1)[1:] ** 3  # slow where the first features are chosen
        for p, gaps in enumerate(patterns):
            mine = which.ravel() == p
            rows = np.repeat(x[mine][:, ~gaps], CHAINS, axis=0)
            sampler = self._held(rows)
            sampler.a = np.ascontiguousarray(self.components_[:, ~gaps])
            sampler.z = (rng.random(sampler.z.shape) < self.chances_).astype(np.float64)
            sampler.w = sampler.z * (
                rng.standard_normal(sampler.z.shape) if self.weights == "gaussian" else 1.0
            )
            noise, weights, before = self.noise_std_**2, np.zeros(len(rows)), 0.0
            for heat in steps:  # the likelihood to a power is a normal density with more noise
                square = ((rows - sampler.w @ sampler.a) ** 2).sum(axis=1)
                weights -= (
                    0.5 * (heat - before) * (square / noise + rows.shape[1] * np.log(2.0 * np.pi * noise))
                )
                sampler.hyper[1], before = noise / heat, heat
                sampler.draw_rows(rng, self.chances_, others=2)
            logs = weights.reshape(-1, CHAINS)
            top = logs.max(axis=1)
            found[mine] = top + np.log(np.exp(logs - top[:, None]).mean(axis=1))
        return found

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def plot(self, shape: tuple[int, int] | None = None, *, ax: Any = None) -> Any:
        """Draw the features: as pictures of a shape, else as lines over the columns."""
        check_is_fitted(self)
        return ports.call("plot-latent-features", self, shape=shape, ax=ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `mk.load` reads."""
        ports.call("save", self, path)

    def _kinds(self, x: Array) -> tuple[Array, Array]:
        """Return all combinations of features (2^K, K) and log p(x, combination) (rows, 2^K)."""
        k, noise = self.n_components_, self.noise_std_**2
        kinds = ((np.arange(2**k)[:, None] >> np.arange(k)) & 1).astype(np.float64)
        seen = ~np.isnan(x)
        known = np.where(seen, x, 0.0)
        prior = kinds @ np.log(self.chances_) + (1.0 - kinds) @ np.log1p(-self.chances_)
        logs = prior - 0.5 * np.log(2.0 * np.pi * noise) * seen.sum(axis=1, keepdims=True)
        if self.weights == "binary":
            means = kinds @ self.components_
            square = (known**2).sum(axis=1, keepdims=True) - 2.0 * known @ means.T + seen @ (means**2).T
            return kinds, logs - 0.5 * square / noise
        square = (x**2).sum(axis=1)
        for i, kind in enumerate(kinds):  # x ~ N(0, noise I + A' A) for the features of this combination
            a = self.components_[kind > 0]
            inner = np.eye(len(a)) + a @ a.T / noise
            across = x @ a.T / noise
            gain = (across * np.linalg.solve(inner, across.T).T).sum(axis=1)
            logs[:, i] += 0.5 * (gain - square / noise - np.linalg.slogdet(inner)[1])
        return kinds, logs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _kept(sampler: IndianBuffetGibbs) -> dict[str, Array]:
    mean, _ = sampler.values_law()
    log_prob = np.array(sampler.log_prob())
    return {"w": sampler.w.copy(), "mean": mean, "hyper": sampler.hyper.copy(), "log_prob": log_prob}
