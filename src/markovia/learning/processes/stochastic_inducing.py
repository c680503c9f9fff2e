"""Inducing points for any likelihood, and for rows in batches: the variational bound of Hensman and others (2013, 2015).

The weights of the whitened points have a normal posterior, kept as its natural parameters. Their natural gradient needs
no step size for normal targets: one step with all rows ends at the optimum, that of SGPR. For others steps repeat, halved
where the bound falls. Up to `first` rows the bound is climbed with all of them; beyond, the one loop of stochastic
training moves logs of hyper-parameters (Adam) and natural parameters, batch by batch. Cost of a step: rows m^2 + m^3.
Gradients are closed forms in NumPy: nothing is compiled.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, Unanswered
from markovia.factors.covariances.algebra import White, added, split_white
from markovia.factors.covariances.covariance import Covariance
from markovia.factors.functions.parameter import Parameter
from markovia.inference.result import Info
from markovia.learning.components.block_passes import one_blas_thread
from markovia.learning.processes.evidence_ascent import Coordinates, EvidenceMaximum, maximise_evidence
from markovia.learning.processes.evidence_method import Gradient
from markovia.learning.processes.inducing_points import InducingPoints, chosen_places
from markovia.learning.processes.likelihoods import (
    Likelihood,
    NoiseProcess,
    NormalNoise,
    SoftmaxClasses,
    split_likelihood,
)
from markovia.learning.processes.low_rank_evidence import Basis, LowRankPosterior, inverse_root, whitened
from markovia.optimise.players import Player, UpdateRule
from markovia.optimise.row_batches import RowBatches
from markovia.optimise.training import Training, train
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.runtime.threads import in_parallel

PASSES = 50
"""Passes over all rows in which the posterior of the weights settles."""
STEPS, BATCH = 3_000, 1_024
"""Steps and rows a step where no training is said."""
STRIDE = 0.1
"""The share of the way to a batch's natural parameters that a step goes."""


class _PointWeights(NamedTuple):
    """A normal posterior of the weights: precision, precision times mean, mean, an inverse root, divergence from N(0, 1)."""

    precision: Array
    shift: Array
    mean: Array
    spread: Array
    divergence: float


class _BoundSums(NamedTuple):
    """Sums over rows: mean log densities, the two natural parameters, derivatives by numbers and by the root."""

    value: float
    precision: Array
    shift: Array
    found: list[Gradient]
    by_root: Any


class SVGP(InducingPoints):
    """Inducing points for any likelihood, and for rows in batches.

    Parameters
    ----------
    X, y, inducing, choice, jitter, seed
        As of `InducingPoints`; the likelihood is a summand of the covariance, as noise is.
    first
        Rows up to which all of them are seen at once.
    training
        How to go through batches; by default about 3,000 steps with 1,024 rows each, where there are more rows.

    Examples
    --------
    >>> import markovia as mk
    >>> from markovia.learning.processes.likelihoods import BernoulliLogit
    >>> X = np.linspace(0.0, 6.0, 60).reshape(-1, 1)
    >>> method = SVGP(X, np.sin(X[:, 0]) > 0.0, inducing=10)
    >>> post = method.posterior(mk.covariances.RBF(1.0) + BernoulliLogit())
    >>> post.probabilities(np.array([[1.5], [4.5]])).round(1).tolist()
    [[0.1, 0.9], [0.9, 0.1]]
    """

    name: ClassVar[str] = "svgp"

    def __init__(self, X: Any, y: Any, *, training: Training | None = None, **points: Any) -> None:
        super().__init__(X, y, **points)
        if self.move:
            raise InvalidArgument(
                "svgp chooses its points and keeps them; method='sgpr' and 'fitc' move them"
            )
        self.training = training
        self._last: _PointWeights | None = None
        self._settled: tuple[Any, ...] = (None,)

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the bound with the best posterior of the weights, and its gradient."""
        basis, likelihood, noise = self._parted(covariance)
        with one_blas_thread():
            value, q, _ = self._settle(basis, likelihood)
            sums = self._sums(basis, likelihood, q, gradient=True)
        return value, _pulled(basis, sums, likelihood, noise)

    def posterior(self, covariance: Covariance) -> "InducedPosterior":
        """Return what is known of the function."""
        basis, likelihood, _ = self._parted(covariance)
        if self._settled[0] is not covariance:
            with one_blas_thread():
                self._settled = covariance, *self._settle(basis, likelihood)
        _, value, q, settled = self._settled
        advice = "" if settled else "the posterior did not settle; try other starts, or fewer points"
        info = Info(
            self.name,
            converged=settled,
            advice=advice,
            log_evidence=value,
            mass_bound="lower",
            note=basis.note,
        )
        return InducedPosterior(
            basis, np.linalg.cholesky(q.precision), q.mean, basis.covariance, info, likelihood
        )

    def fit(
        self, covariance: Covariance, *, time_limit: float | None = None, **ascent: Any
    ) -> EvidenceMaximum:
        """Return the covariance with fitted numbers: from some of the rows at once, then from batches of all of them."""
        n, chosen = len(self.y), self.places is None
        with Clock(time_limit, False) as clock:
            rows = np.sort(self._rng.permutation(n)[: self.first])
            some = (
                self
                if n <= self.first
                else SVGP(self.X[rows], self.y[rows], inducing=self.count, jitter=self.jitter)
            )
            some.choice, some.places = self.choice, self.places
            found = maximise_evidence(some, covariance, **ascent)
            if n <= self.first and self.training is None:
                return found
            rest = self._parted(found.covariance)[0].covariance
            if chosen and rest is not None:
                self.places = some.places = chosen_places(self.X, rest, self.count, self.choice, self._rng)
            basis, likelihood, _ = self._parted(found.covariance)
            q = some._settle(basis, likelihood)[1]
            share, eye = n / len(rows), np.eye(basis.size)  # as if all rows were like these
            coordinates = Coordinates(found.covariance)
            start = {
                "logs": coordinates.read({}),
                "precision": eye + share * (q.precision - eye),
                "shift": share * q.shift,
            }
            training = self.training or Training(
                epochs=max(1, STEPS * BATCH // n),
                batch=BATCH,
                learning_rate=0.01,
                decay=0.05,
                seed=0,
                progress=False,
            )
            batches = RowBatches({"y": self.y}, training.batch, training.seed)
            player = Player(self._loss(coordinates), tuple(start), traced=False)
            rule = _rule(training, training.epochs * batches.steps)
            with one_blas_thread():
                trained = train((player,), start, batches, training, optimiser=rule, clock=clock)
                made = coordinates.at(trained.parameters["logs"])
                self._last = _weights(trained.parameters["precision"], trained.parameters["shift"])
                basis, likelihood, _ = self._parted(made)
                self._settled = made, *self._settle(basis, likelihood)
        value = self._settled[1]
        return EvidenceMaximum(
            made, value, value + coordinates.log_prior(made), not trained.failed, trained.reason, trained.steps,
            trained.steps, found.starts,
        )  # fmt: skip

    def _loss(self, coordinates: Coordinates) -> Any:
        """Return what a step computes: minus the bound a row, and which way to go."""

        def loss(
            parameters: dict[str, Array], memory: Any, key: Any, batch: Any
        ) -> tuple[float, Any, dict[str, Array]]:
            made = coordinates.at(parameters["logs"])
            basis, likelihood, noise = self._parted(made)
            q = _weights(parameters["precision"], parameters["shift"])
            rows = batch.rows[batch.weight > 0.0]
            share = len(self.y) / len(rows)
            sums = self._sums(basis, likelihood, q, gradient=True, rows=rows)
            found = _pulled(basis, sums, likelihood, noise)
            up = coordinates.slope(
                made, {key: share * value for key, value in found.items()}, parameters["logs"]
            )
            slope = {
                "logs": -up / len(self.y),
                "precision": q.precision - np.eye(basis.size) - share * sums.precision,
                "shift": q.shift - share * sums.shift,
            }
            return (q.divergence - share * sums.value) / len(self.y), memory, slope

        return loss

    # -- the bound ------------------------------------------------------------------------------------------------

    def _parted(self, covariance: Covariance) -> tuple[Basis, Likelihood, tuple[White, ...]]:
        rest, noise = split_white(covariance)
        if noise and rest is not None:
            variance = sum(part.number("variance") for part in noise)
            likelihood: Likelihood = NormalNoise(Parameter(0.0).with_value(np.asarray(variance)))
        else:
            rest, likelihood = split_likelihood(covariance)
        if isinstance(likelihood, NoiseProcess | SoftmaxClasses):
            raise InvalidArgument(f"svgp is for likelihoods of one function, not {likelihood.word!r}")
        self.y = likelihood.checked(self.y)
        return self.basis(rest), likelihood, noise

    def _settle(self, basis: Basis, likelihood: Likelihood) -> tuple[float, _PointWeights, bool]:
        """Return the bound at the best posterior of the weights, that, and whether it settled."""
        eye, share = np.eye(basis.size), 1.0
        q = self._last
        if q is None or len(q.shift) != basis.size:
            q = _weights(eye, np.zeros(basis.size))
        sums = self._sums(basis, likelihood, q)
        value, settled = sums.value - q.divergence, False
        for _ in range(PASSES):
            goal, shift = eye + sums.precision, sums.shift
            gain, least = -np.inf, -1e-10 * (1.0 + abs(value))
            while not gain > least and share > 1e-6:
                try:
                    new = _weights(
                        q.precision + share * (goal - q.precision), q.shift + share * (shift - q.shift)
                    )
                    further = self._sums(basis, likelihood, new)
                    gain = further.value - new.divergence - value
                except np.linalg.LinAlgError:  # no covariance matrix so far away
                    pass
                share *= 1.0 if gain > least else 0.5
            if not gain > least:
                break
            q, sums, value = new, further, value + gain
            if settled := isinstance(likelihood, NormalNoise) or gain < 1e-9 * (1.0 + abs(value)):
                break
            share = min(1.0, 2.0 * share)
        self._last = q
        return value, q, settled

    def _sums(
        self,
        basis: Basis,
        likelihood: Likelihood,
        q: _PointWeights,
        *,
        gradient: bool = False,
        rows: Any = None,
    ) -> _BoundSums:
        """Add up what rows have to say, all of them in blocks or some at once."""
        assert basis.covariance is not None
        prior_of = basis.covariance.forward_diagonal
        tasks = self._parts(basis.size) if rows is None else [[rows]]

        def work(blocks: list[Any], _: Any) -> _BoundSums:
            total = _BoundSums(0.0, np.zeros((basis.size, basis.size)), np.zeros(basis.size), [], 0.0)
            for block in blocks:
                X, y = self.X[block], self.y[block]
                values, pull = basis.forward(X)
                prior, pull_prior = prior_of(X)
                V = whitened(values, basis.whiten)
                U = V @ q.spread
                mean = V @ q.mean
                left = np.maximum(prior - np.einsum("ij,ij->i", V, V), 1e-12 * prior)
                var = left + np.einsum("ij,ij->i", U, U)
                log, d1, d2 = likelihood.expected(y, mean, var)
                w = (
                    -d2 if rows is None else np.maximum(-d2, 0.0)
                )  # a step with few rows stays a covariance matrix
                found, by_root = total.found, total.by_root
                if gradient:
                    by_V = np.outer(d1, q.mean) + d2[:, None] * (U @ q.spread.T - V)
                    own = likelihood.expected_by_hypers(y, mean, var)
                    own = {name: lambda slope=slope: slope for name, slope in own.items()}
                    found = [
                        added(
                            [
                                *found,
                                pull(by_V @ basis.whiten),
                                pull_prior(0.5 * d2),
                                likelihood.pulled(**own),
                            ]
                        )
                    ]
                    by_root = by_root + by_V.T @ V
                total = _BoundSums(
                    total.value + float(log.sum()), total.precision + V.T @ (w[:, None] * V),
                    total.shift + V.T @ (d1 + w * mean), found, by_root,
                )  # fmt: skip
            return total

        done = in_parallel(work, tasks, lambda: None)
        return _BoundSums(*(sum(column[1:], column[0]) for column in zip(*done, strict=True)))


class InducedPosterior(LowRankPosterior):
    """A function known by inducing points, and what targets are at other inputs, averaged over it."""

    def __init__(
        self, basis: Basis, factor: Array, weights: Array, whole: Any, info: Info, likelihood: Likelihood
    ) -> None:
        super().__init__(basis, factor, weights, whole, info)
        self.likelihood = likelihood

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class at the rows of X."""
        if not hasattr(self.likelihood, "probabilities"):
            raise Unanswered(f"targets of likelihood={self.likelihood.word!r} are no classes")
        means, variances = self.moments(X)
        return np.asarray(self.likelihood.probabilities(means[0], variances[0]))

    def target_moments(self, X: Array) -> tuple[Array, Array]:
        """Return means and variances of targets at the rows of X."""
        means, variances = self.moments(X)
        return self.likelihood.target(means[0], variances[0])


def _weights(precision: Array, shift: Array) -> _PointWeights:
    spread = inverse_root(np.asarray(np.linalg.cholesky(precision))).T
    mean = spread @ (spread.T @ shift)
    log_det = -2.0 * np.log(np.diag(spread)).sum()
    return _PointWeights(
        precision,
        shift,
        mean,
        spread,
        float(0.5 * (np.vdot(spread, spread) + mean @ mean - len(mean) + log_det)),
    )


def _pulled(basis: Basis, sums: _BoundSums, likelihood: Likelihood, noise: tuple[White, ...]) -> Gradient:
    """Return derivatives by hyper-parameters; where the posterior of the weights stays, the root's are its adjoint."""
    low = np.tril(sums.by_root)
    np.fill_diagonal(low, 0.5 * np.diag(low))
    W = basis.whiten.T @ (low + low.T) @ basis.whiten
    found = added([*sums.found, basis.pull_root(-0.5 * W)])
    slope = found.pop((id(likelihood), "variance"), 0.0) if noise else 0.0
    return added([found, *(part.pulled(variance=lambda: slope) for part in noise)])


def _rule(training: Training, steps: int) -> UpdateRule:
    """Return Adam for the logs, and part of the way for natural parameters; both shorter towards the end."""

    def update(slope: dict[str, Array], state: Any, parameters: Any) -> tuple[dict[str, Array], Any]:
        t, first, second = state
        first = 0.9 * first + 0.1 * slope["logs"]
        second = 0.99 * second + 0.01 * slope["logs"] ** 2
        falling = training.decay + (1.0 - training.decay) * 0.5 * (1.0 + np.cos(np.pi * t / steps))
        t += 1
        step = first / (1.0 - 0.9**t) / (np.sqrt(second / (1.0 - 0.99**t)) + 1e-12)
        change = {name: -STRIDE * falling * slope[name] for name in ("precision", "shift")}
        return {"logs": -training.learning_rate * falling * step, **change}, (t, first, second)

    return UpdateRule(
        lambda parameters: (0, np.zeros_like(parameters["logs"]), np.zeros_like(parameters["logs"])), update
    )
