"""Regression by a Gaussian process: a smooth function with error bars, with scikit-learn's verbs.

It is the network of two nodes, a function and targets that call it; `network()` hands it over. The covariance is fitted by
the evidence, and everything else follows in closed form (Rasmussen and Williams 2006, chapters 2 and 5). Cost: n^3 for n
rows, some dozens of times; beyond some thousands `method="auto"` takes inducing points, state spaces or grids, and says so.
"""
# ruff: noqa: N803 (letters of the literature)

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import numpy as np
from sklearn.base import RegressorMixin

from markovia.errors import InvalidArgument, Unanswered, warn_user
from markovia.factors.covariances.algebra import Scaled, White, split_white
from markovia.factors.covariances.covariance import Covariance
from markovia.factors.covariances.process import GP
from markovia.factors.covariances.radial import RBF
from markovia.inference.gaussian.exact_function import ExactFunction, MovedFunction
from markovia.inference.gaussian.function_values import FunctionPosterior, root
from markovia.inference.result import Info, warn_unconverged
from markovia.learning.processes.evidence_ascent import (
    EvidenceMaximum,
    fit_evidence,
    maximise_evidence,
    threads_for,
)
from markovia.learning.processes.evidence_method import EvidenceMethod
from markovia.learning.processes.methods import METHODS, Chosen, choose, method_of
from markovia.models.classifiers.feature_rows import numbers
from markovia.models.gaussian.kernel_machine import CURE, Kernel, KernelMachine, targets
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import AnySeed, Bytes, Choice, Count, CountOrNone, FromZero, TimeLimit
from markovia.runtime.checks import numbers as as_numbers
from markovia.runtime.clock import now
from markovia.runtime.estimator import check_fitted, fitting
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARES = (1.0, 0.5, 0.25, 0.1)
"""Lengths that are tried as starts, as shares of the spread of the inputs."""
STEPS = "more steps (max_iter=), other starts (restarts=), or a simpler covariance may do"


class LeftOut(NamedTuple):
    """What the process says of each target from all other rows, at the same hyper-parameters.

    Attributes
    ----------
    mean, sd
        Of the target, noise included.
    log_density
        Of the target that was seen; their sum is a score by which models are compared.
    """

    mean: Array
    sd: Array
    log_density: Array


class _LearnedProcess(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """What a fitted process has."""

    targets_: Array
    mean_: Any
    noise_variance_: float
    log_marginal_likelihood_value_: float
    converged_: bool
    n_iter_: int
    method_: str
    info_: Info
    fit_: EvidenceMaximum
    _errors: Array | None
    _posterior: FunctionPosterior


@dataclass(eq=False, repr=False)
class GaussianProcess(_LearnedProcess):
    """A function with a Gaussian process prior, and noisy values of it.

    Parameters
    ----------
    covariance
        That of the function; a `White` in it is the noise of targets. What is not said in it is fitted, from the scale of
        the data. By default a scaled RBF with a length for each column, plus `White()`.
    mean
        The mean of the function: a number, or a function of the inputs; by default the mean of the targets.
    likelihood
        What targets are distributed as: "normal", "student-t", "heteroscedastic", "poisson", "bernoulli", "ordinal",
        "categorical" (classes are numbered from 0), or an object of those.
    method
        "auto", which says what it took in `info_`, or one by name: "exact"; "sgpr", "fitc", "svgp" and others for many rows;
        "laplace", "ep" or "variational" for targets that are not normal.
    inducing, features
        How many inducing points, or the inputs themselves; how many random features.
    restarts, seed
        Further starts of the fit, moved at random.
    warm_start
        Whether `fit` goes on from the hyper-parameters of the fit before.
    max_iter, time_limit
        Steps and seconds of the fit; at the limit and at Ctrl-C the best so far is kept.
    memory
        Bytes that may be taken; by default most of what is free.

    Attributes
    ----------
    covariance_, noise_variance_, mean_
        The fitted covariance, the variance of the noise in it, and the mean.
    method_, info_
        The method; how the fit went and why that method was taken.
    log_marginal_likelihood_value_, converged_, fit_
        The log evidence; whether the fit came to a top of it; the ascent, with all its starts.

    Examples
    --------
    >>> import markovia as mk
    >>> k = mk.covariances
    >>> gp = mk.GaussianProcess(k.RBF(1.0) + k.White(0.1), mean=0.0).fit([[0.0], [0.5], [2.0]], [1.0, 0.2, -0.7])
    >>> mean, sd = gp.predict([[1.0]], return_std=True)  # of a target; of the function: gp.function().at([1.0])
    >>> mean.round(4).tolist(), sd.round(4).tolist(), round(gp.log_marginal_likelihood(), 6)
    ([-0.2166], [0.5135], -3.360264)
    """

    covariance: Kernel = None
    _: KW_ONLY
    mean: Any = None
    likelihood: Any = "normal"
    method: Annotated[str, Choice(("auto", *METHODS))] = "auto"
    inducing: Any = None
    features: CountOrNone = None
    restarts: FromZero = 0
    seed: AnySeed = None
    warm_start: bool = False
    max_iter: Count = 200
    time_limit: TimeLimit = None
    memory: Bytes = None

    def fit(self, X: Any, y: Any, errors: Any = None) -> Self:
        """Fit what is free in the covariance to the evidence, and find the posterior of the function.

        Parameters
        ----------
        X, y
            Rows of numbers, and a target each. Several columns of normal targets are independent, with one covariance.
        errors
            Known standard deviations of the measurements of targets, one a row, beside the noise in the covariance.
        """
        with fitting(self):
            began = now()
            before = getattr(self, "fit_", None) if self.warm_start else None
            self.X_fit_ = rows = numbers(self, X, reset=True, gaps=CURE)
            self.targets_ = targets(self, y, rows, several=self._is_normal)
            self._errors = None if errors is None else self._row_errors(errors)
            self.mean_ = self._settled_mean()
            start, chosen = self._start_and_method()
            if before is not None:
                last = {n: h.value for n, h in before.covariance.free().items()}
                now_free = {n: np.shape(h.value) for n, h in start.free().items()}
                if {n: np.shape(value) for n, value in last.items()} == now_free:
                    start = start.with_values(last, keep=True)
            self.method_ = chosen.name
            ascent: dict[str, Any] = {"max_iter": self.max_iter, "time_limit": self.time_limit}
            with threads_for(len(rows)):
                note = chosen.why + self._fit(self._method(chosen.name), start, before is None, ascent)
            self._tell(note, now() - began)
        return self

    def _fit(self, method: EvidenceMethod, start: Covariance, fresh: bool, ascent: dict[str, Any]) -> str:
        """Fit hyper-parameters, find the posterior, and return what has to be said of it."""
        said = ""
        if self._is_normal and not np.any(self._centred) and start.free():
            said = (
                "; all targets are equal, which says nothing of hyper-parameters: they stay where they start"
            )
            warn_user("all targets are equal to the mean: hyper-parameters stay where they start")
            held = start.with_values({n: h.value for n, h in start.free().items()})
            self.fit_ = replace(maximise_evidence(method, held), covariance=start)
        else:
            if fresh and method.exact:
                start = self._with_better_lengths(start, method)
            self.fit_ = fit_evidence(method, start, restarts=self.restarts, seed=self.seed, **ascent)
        self._posterior = method.posterior(self.fit_.covariance)
        return said

    # -- what fit is made of ----------------------------------------------------------------------------------------

    @property
    def _is_normal(self) -> bool:
        return isinstance(self.likelihood, str) and self.likelihood == "normal"

    @property
    def _centred(self) -> Array:
        """The targets without the mean."""
        return self.targets_ - self._mean_at(self.X_fit_)

    def _mean_at(self, X: Array) -> Array:
        """Return the mean at rows; rows by columns of targets where there are several."""
        if np.ndim(self.mean_):
            return np.broadcast_to(self.mean_, (len(X), len(self.mean_)))
        found = np.asarray(GP(RBF(1.0), self.mean_).mean_at(X, np), dtype=np.float64)
        return found if self.targets_.ndim < 2 else found[:, None]

    def _settled_mean(self) -> Any:
        """Return the mean that is taken away from targets: what was said, or their average."""
        from markovia.learning.processes.likelihoods import as_likelihood

        if not self._is_normal and as_likelihood(self.likelihood).whole:
            if self.mean is not None:
                raise InvalidArgument(
                    "mean= is for targets that are any numbers; log odds and log rates vary around 0"
                )
            return 0.0
        if self.mean is None:  # from the first on, so that equal targets are their mean to the last digit
            return self.targets_[0] + (self.targets_ - self.targets_[0]).mean(axis=0)
        if not callable(self.mean):
            if not isinstance(self.mean, int | float | np.number) or not np.isfinite(self.mean):
                raise InvalidArgument(
                    f"mean= is a finite number or a function of the inputs, not {self.mean!r}"
                )
            return float(self.mean)
        return self.mean

    def _row_errors(self, errors: Any) -> Array:
        rule = "errors= are standard deviations, one a row: finite numbers, 0 or more"
        found = as_numbers(errors, rule)
        if found.shape != (len(self.targets_),) or not (np.isfinite(found).all() and (found >= 0.0).all()):
            raise InvalidArgument(rule)
        if not self._is_normal:
            raise InvalidArgument("errors= are for likelihood='normal'")
        return found

    def _said(self) -> Covariance:
        """Return the covariance as it was said, or the one by default."""
        default = Scaled(None, RBF(ard=True))
        return self.covariance or (default + White() if self._is_normal else default)

    def _start_and_method(self) -> tuple[Covariance, Chosen]:
        """Return the covariance at the scale of the data, with the likelihood as a summand, and the method that is taken."""
        start = self._said()
        if self._is_normal:
            if split_white(start)[0] is None:
                raise InvalidArgument(
                    "the covariance is noise alone; add a function, such as mk.covariances.RBF()"
                )
            centred = self._centred
            whole = start.started(self.X_fit_, centred if np.any(centred) else self.targets_)
            likelihood: Any = "normal"
        else:
            from markovia.learning.processes.likelihoods import SoftmaxClasses, as_likelihood, with_likelihood

            many = isinstance(self.likelihood, str) and self.likelihood == "categorical"
            likelihood = (
                SoftmaxClasses(max(2, int(self.targets_.max()) + 1))
                if many
                else as_likelihood(self.likelihood)
            )
            whole = with_likelihood(start, likelihood, self.X_fit_, self._centred)
        if self.method != "auto":
            return whole, Chosen(self.method, f"method={self.method!r} was asked for")
        only = self.targets_.ndim > 1 or self._errors is not None
        said = {"inducing": self.inducing is not None, "features": self.features is not None}
        return whole, choose(self.X_fit_, whole, likelihood, memory=self.memory, exact_only=only, **said)

    def _with_better_lengths(self, start: Covariance, method: EvidenceMethod) -> Covariance:
        """Return the start with all lengths that were not said shorter, where that is more probable.

        From too long lengths the ascent often ends where all is noise. A value without its gradient costs a third.
        """
        hypers = start.hypers()
        unsaid = {
            n: hypers[n].value
            for n, h in self._said().hypers().items()
            if h.name == "length" and h.value is None
        }
        fixed = {n: h.value for n, h in start.free().items()}
        best, top = start, -np.inf
        for share in SHARES if unsaid else ():
            lengths = {name: share * value for name, value in unsaid.items()}
            try:
                value = method.evidence(start.with_values({**fixed, **lengths}))[0]
            except np.linalg.LinAlgError:
                continue
            if value > top:
                best, top = start.with_values(lengths, keep=True), value
        return best

    def _method(self, name: str) -> EvidenceMethod:
        options = {
            "inducing": self.inducing,
            "features": self.features,
            "memory": self.memory,
            "errors": self._errors,
        }
        if name != "exact" and self.targets_.ndim > 1:
            raise InvalidArgument(
                f"several columns of targets need method='exact', not {name!r}; fit one column at a time"
            )
        given = {option: value for option, value in options.items() if value is not None}
        if self.method == "auto" and name != "exact":
            given.pop("memory", None)
        return method_of(name, self.X_fit_, self._centred, **given)

    def _tell(self, note: str, seconds: float) -> None:
        """Write down how the fit went, and warn where something has to be known."""
        found, post = self.fit_, self._posterior
        self.covariance_ = found.covariance
        self.noise_variance_ = float(
            sum(part.number("variance") for part in split_white(found.covariance)[1])
        )
        self.log_marginal_likelihood_value_ = found.log_evidence
        self.n_iter_, self.converged_ = found.iterations, found.converged and post.info.converged
        advice = post.info.advice or ("" if self.converged_ else STEPS)
        self.info_: Info = replace(
            post.info, engine=self.method_, converged=self.converged_, iterations=found.iterations, seconds=seconds,
            note="; ".join(filter(None, [note, post.info.note])), advice=advice,
        )  # fmt: skip
        post.info = self.info_
        if not self.converged_:
            warn_unconverged(self.info_)
        if isinstance(post, ExactFunction) and post.jitter:
            warn_user(
                f"{post.info.note.split('; ')[-1]}; mk.covariances.White() in the covariance is noise of its own"
            )

    # -- answers ----------------------------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return means of targets, and with `return_std` or `return_cov` their deviations or covariances, noise included.

        What is known of the function, without noise, is `function().at(X)`. The mean of a class 0 or 1 is the probability
        of 1; of several classes the most probable is returned.
        """
        if return_std and return_cov:
            raise InvalidArgument("return_std= and return_cov= are two answers; ask for one of them")
        check_fitted(self, "covariance_")
        rows = numbers(self, X, reset=False, gaps=CURE)
        if self._classes:
            if return_std or return_cov:
                raise Unanswered("classes have no deviation; class_probabilities has their probabilities")
            return self._posterior.probabilities(rows).argmax(axis=1)
        mean, columns = self._mean_at(rows), self.targets_.shape[1:]
        if not self._is_normal:
            if return_cov:
                raise Unanswered(
                    "targets that are not normal have no covariance in closed form; ask for return_std"
                )
            found, variance = self._posterior.target_moments(rows)
            return (mean + found, np.sqrt(variance)) if return_std else mean + found
        if not return_std and not return_cov:
            return mean + self._posterior.means(rows)
        means, variances = self._posterior.moments(rows, joint=return_cov)
        spread = variances[0] + self.noise_variance_ * (np.eye(len(rows)) if return_cov else 1.0)
        spread = spread if return_cov else np.sqrt(spread)
        if columns:  # the same for all columns
            spread = np.repeat(spread[..., None], columns[0], axis=-1)
        return mean + means[0], spread

    def class_probabilities(self, X: Any) -> Array:
        """Return the probability of each class, averaged over the function, where targets are classes."""
        check_fitted(self, "covariance_")
        return self._posterior.probabilities(numbers(self, X, reset=False, gaps=CURE))

    @property
    def _classes(self) -> bool:
        return getattr(getattr(self._posterior, "likelihood", None), "word", "") == "categorical"

    def log_density(self, X: Any, y: Any) -> Array:
        """Return the log density (or probability) of each of some targets, given its inputs and what was learned.

        Examples
        --------
        >>> import markovia as mk
        >>> gp = mk.GaussianProcess(mk.covariances.RBF(1.0), mean=0.0).fit([[0.0]], [1.0])
        >>> gp.log_density([[100.0]], [0.0]).round(4).tolist()  # the density of N(0, 1) at 0
        [-0.9189]
        """
        check_fitted(self, "covariance_")
        rows = numbers(self, X, reset=False, gaps=CURE)
        seen = targets(self, y, rows, several=self._is_normal)
        if self._is_normal:
            mean, sd = self.predict(X, return_std=True)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = -0.5 * ((seen - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)
            return np.asarray(logs if logs.ndim < 2 else logs.sum(axis=1))
        from markovia.learning.processes.likelihoods import NoiseProcess

        post: Any = self._posterior
        if isinstance(post.likelihood, NoiseProcess):
            raise Unanswered("targets whose noise is a function have no density in closed form")
        if self._classes:
            return np.asarray(np.log(post.probabilities(rows)[np.arange(len(rows)), seen.astype(int)]))
        m, v = (part[0] for part in post.moments(rows))
        return np.asarray(
            post.likelihood.tilted(post.likelihood.checked(seen - self._mean_at(rows)), m, v)[0]
        )

    def function(self, column: int = 0) -> FunctionPosterior:
        """Return the posterior of the function, without noise: ask `.at(X)`, `.draws(n)`; of a column of several targets."""
        check_fitted(self, "covariance_")
        post = self._posterior
        columns = self.targets_.shape[1] if self.targets_.ndim > 1 else 1
        if not 0 <= column < columns:
            raise InvalidArgument(
                f"column= is that of one of {columns} targets, numbered from 0, not {column}"
            )
        if self.targets_.ndim > 1:
            assert isinstance(post, ExactFunction)
            known: Any = {"factor": post.factor, "jitter": post.jitter}
            one = ExactFunction(post.X, post.y[:, column], post.covariance, post.noise, **known)
            one.info = replace(self.info_, log_evidence=one.info.log_evidence)
            return MovedFunction(
                one, 1.0, lambda X: np.broadcast_to(self._mean_at(X), (len(X), columns))[:, column]
            )
        return MovedFunction(post, 1.0, self._mean_at)

    def sample_y(self, X: Any, n_samples: int = 1, seed: Seed = None) -> Array:
        """Draw normal targets at all rows together, noise included: rows (by columns, if there are several) by samples."""
        mean, cov = self.predict(X, return_cov=True)
        half = root(cov if cov.ndim < 3 else cov[..., 0])
        white = generator(seed).standard_normal((n_samples, *mean.shape[1:], len(mean)))
        return np.asarray(mean[..., None] + np.moveaxis(white @ half.T, -1, 0).swapaxes(1, -1))

    def log_marginal_likelihood(self, values: Any = None) -> float:
        """Return the log evidence, at the fitted hyper-parameters or at others, by the names of `covariance_.hypers()`."""
        check_fitted(self, "covariance_")
        if values is None:
            return self.log_marginal_likelihood_value_
        fixed = {n: h.value for n, h in self.covariance_.free().items()}
        return float(
            self._method(self.method_).evidence(self.covariance_.with_values({**fixed, **values}))[0]
        )

    def leave_one_out(self) -> LeftOut:
        """Return what the process says of each target from all other rows, in closed form, at the fitted hyper-parameters.

        With the inverse G of the covariance matrix of targets, the mean is y_i - (G y)_i / G_ii and the variance 1 / G_ii
        (Rasmussen and Williams 2006, section 5.4.2); the mean of the process stays.

        Examples
        --------
        >>> import markovia as mk
        >>> gp = mk.GaussianProcess(mk.covariances.Constant(1.0) + mk.covariances.White(1.0), mean=0.0)
        >>> gp.fit([[0.0], [1.0]], [1.0, 3.0]).leave_one_out().mean.round(6).tolist()  # half of the other
        [1.5, 0.5]
        """
        from scipy.linalg.lapack import dpotri

        post = self._exact("leave_one_out")
        variance = 1.0 / dpotri(post.factor, lower=1)[0].diagonal()
        if self.targets_.ndim > 1:
            variance = variance[:, None]
        error, sd = post.alpha * variance, np.sqrt(variance) + 0.0 * post.alpha
        return LeftOut(
            self.targets_ - error, sd, -0.5 * (error / sd) ** 2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)
        )

    def _exact(self, verb: str) -> ExactFunction:
        check_fitted(self, "covariance_")
        if not isinstance(self._posterior, ExactFunction):
            raise Unanswered(f"{verb} is in closed form for method='exact', not for {self.method_!r}")
        return self._posterior

    def update(self, X: Any, y: Any) -> Self:
        """Learn from more rows, at the same hyper-parameters and mean: exact processes in n^2 a row, others from all anew.

        Examples
        --------
        >>> import markovia as mk
        >>> gp = mk.GaussianProcess(mk.covariances.RBF(1.0) + mk.covariances.White(0.1), mean=0.0)
        >>> gp.fit([[0.0], [0.5]], [1.0, 0.2]).update([[2.0]], [-0.7]).predict([[1.0]]).round(6).tolist()
        [-0.216611]
        """
        check_fitted(self, "covariance_")
        with fitting(self):
            rows = numbers(self, X, reset=False, gaps=CURE)
            new = targets(self, y, rows, several=self._is_normal)
            if new.shape[1:] != self.targets_.shape[1:]:
                raise InvalidArgument(
                    f"new targets have the shape {new.shape}, and those before {self.targets_.shape}"
                )
            if self._errors is not None:
                raise Unanswered("known errors of rows have none for new ones; fit all rows together")
            began, before = now(), len(self.targets_)
            self.X_fit_, self.targets_ = (
                np.concatenate([self.X_fit_, rows]),
                np.concatenate([self.targets_, new]),
            )
            if isinstance(self._posterior, ExactFunction):
                self._posterior = self._posterior.updated(rows, self._centred[before:])
            else:
                self._posterior = self._method(self.method_).posterior(self.covariance_)
            found = self._posterior.info.log_evidence
            self.fit_ = replace(
                self.fit_, log_evidence=found if found is not None else self.fit_.log_evidence
            )
            self._tell(f"{len(rows):,} rows were added at the same hyper-parameters", now() - began)
        return self

    def network(self) -> BayesianNetwork:
        """Return the network: the function node `f` and targets `y` on the plate `row`, at inputs `x`; it answers the same.

        Without noise targets are values of the function, `given={"f": mk.Points(x, y)}`.

        Examples
        --------
        >>> import markovia as mk
        >>> X, y = [[0.0], [0.5], [2.0]], [1.0, 0.2, -0.7]
        >>> gp = mk.GaussianProcess(mk.covariances.RBF(1.0) + mk.covariances.White(0.1), mean=0.0).fit(X, y)
        >>> gp.network().query("f", given={"x": np.array(X), "y": np.array(y)}).at([1.0]).mean().round(6).tolist()
        [-0.216611]
        """
        check_fitted(self, "covariance_")
        from markovia.learning.processes.likelihoods import NormalNoise, split_likelihood
        from markovia.models.gaussian.process_classifier import likelihood_network

        if self.targets_.ndim > 1:
            raise Unanswered("several columns of targets are a network each; fit one column at a time")
        if not self._is_normal:
            rest, likelihood = split_likelihood(self.covariance_)
            classes = getattr(likelihood, "classes", 1)
            return likelihood_network(rest, likelihood, 2 if likelihood.parts else classes, mean=self.mean_)
        function, _ = split_white(self.covariance_)
        assert function is not None
        noise = self.noise_variance_ + (0.0 if self._errors is None else self._errors**2)
        if not np.all(noise > 0.0):
            network = BayesianNetwork()
            network.add(
                "f", GP(function.with_values({n: h.value for n, h in function.free().items()}), self.mean_)
            )
            return network
        return likelihood_network(function, NormalNoise(noise), mean=self.mean_)

    def plot(
        self, *, column: int = 0, ax: "Axes | None" = None, title: str | None = None, prob: float = 0.9
    ) -> "Axes":
        """Draw the function with a band, and the rows, along one column of the inputs; others are at their medians."""
        check_fitted(self, "covariance_")
        return ports.draw("plot-gaussian-process", self, column=column, ax=ax, title=title, prob=prob)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._is_normal
        return tags
