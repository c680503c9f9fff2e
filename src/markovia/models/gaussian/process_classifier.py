"""Classes by a Gaussian process: probabilities that say how sure the data make them, near and far from the rows.

The log odds are a smooth function with a Gaussian process prior; its covariance is fitted by the evidence, and
probabilities are averaged over what is not known of the function, so they go back to even odds where there are no rows
(Rasmussen and Williams 2006, chapter 3). Cost: n^3 for n rows, some dozens of times; beyond a few thousand rows take a
sample.
"""
# ruff: noqa: N803 (letters of the literature)

from dataclasses import KW_ONLY, dataclass
from inspect import Parameter as Argument
from inspect import Signature
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import Scaled
from markovia.factors.covariances.covariance import Covariance
from markovia.factors.covariances.process import GP
from markovia.factors.covariances.radial import RBF
from markovia.learning.processes.evidence_ascent import EvidenceMaximum, maximise_evidence, threads_for
from markovia.learning.processes.gaussian_sites import SitePosterior
from markovia.learning.processes.likelihoods import (
    BernoulliLogit,
    BernoulliProbit,
    Likelihood,
    SoftmaxClasses,
    with_likelihood,
)
from markovia.learning.processes.methods import method_of
from markovia.models.classifiers.feature_rows import numbers
from markovia.models.classifiers.input_checks import class_codes, labels
from markovia.models.gaussian.kernel_machine import BLOCK, CURE, Kernel, KernelMachine
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.checks import AnySeed, FromZero, TimeLimit
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import check_fitted, fitting


@dataclass(eq=False, repr=False)
class GaussianProcessClassifier(ClassifierMixin, KernelMachine):  # type: ignore[misc]
    """Classes whose log odds are a function with a Gaussian process prior.

    Parameters
    ----------
    covariance
        That of the function, or of each class's; by default a scaled RBF with a length for each column. What is not said in
        it is fitted.
    method
        "ep" is nearly exact; "laplace" is quicker, but too timid where classes are well separated; "variational" is in
        between, and the one for several classes together beside "laplace". "auto" takes "ep", or "variational" for those.
    link
        "logit" or "probit", for two classes.
    multi_class
        "softmax" fits the functions of several classes together; "one-vs-rest" tells each class from the rest.
    restarts, seed
        Further starts of the fit, moved at random.
    max_iter, time_limit
        Steps and seconds of the fit; at the limit and at Ctrl-C the best so far is kept.

    Attributes
    ----------
    classes_
        The labels in order.
    covariance_, log_marginal_likelihood_value_
        The fitted covariance, and the log evidence there; one a class, and their sum, with "one-vs-rest".
    method_, converged_
        The approximation that was taken; whether the fit came to the top, and the approximation settled.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.gp.GaussianProcessClassifier(mk.covariances.RBF(1.0))
    >>> model = model.fit([[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.5], [4.5]]).tolist(), model.predict_proba([[100.0]]).round(3).tolist()
    (['a', 'b'], [[0.5, 0.5]])
    """

    covariance: Kernel = None
    _: KW_ONLY
    method: Literal["auto", "laplace", "ep", "variational"] = "auto"
    link: Literal["logit", "probit"] = "logit"
    multi_class: Literal["softmax", "one-vs-rest"] = "softmax"
    restarts: FromZero = 0
    seed: AnySeed = None
    max_iter: FromZero = 200
    time_limit: TimeLimit = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the covariance to the evidence, and find the posterior of the function."""
        with fitting(self):
            rows = self._learned_rows(X, 8)
            y = labels(self, y, rows)
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                raise InvalidArgument(
                    f"there is one class, {self.classes_.tolist()[0]!r}; a classifier needs two or more"
                )
            codes = class_codes(y, self.classes_)
            # one target for all classes together, or one for each
            if len(self.classes_) > 2 and self.multi_class == "one-vs-rest":
                self._codes = [(codes == c).astype(np.float64) for c in range(len(self.classes_))]
            else:
                self._codes = [codes.astype(np.float64)]
            with threads_for(len(rows)), Clock(self.time_limit, progress=False):
                tops = [self._fitted(target) for target in self._codes]
                self.posteriors_: list[Any] = [method.posterior(top.covariance) for method, top in tops]
            covariances = [post.functions[0] for post in self.posteriors_]
            self.covariance_ = covariances[0] if len(tops) == 1 else covariances  # type: ignore[assignment]
            self.log_marginal_likelihood_value_ = float(sum(top.log_evidence for _, top in tops))
            self.converged_ = all(top.converged for _, top in tops) and all(
                p.info.converged for p in self.posteriors_
            )
            self.n_iter_ = max(top.iterations for _, top in tops)
        return self

    def _fitted(self, target: Array) -> tuple[Any, EvidenceMaximum]:
        """Return the method at some targets, and the fitted covariance with its likelihood."""
        kinds: dict[str, type[Likelihood]] = {"logit": BernoulliLogit, "probit": BernoulliProbit}
        likelihood = SoftmaxClasses(len(self.classes_)) if target.max() > 1 else kinds[self.link]()
        self.method_ = likelihood.ways[0] if self.method == "auto" else self.method
        start = Scaled(None, RBF(ard=True)) if self.covariance is None else self.covariance
        method = method_of(self.method_, self.X_fit_, target)
        at = with_likelihood(start, likelihood, self.X_fit_, target)
        return method, maximise_evidence(
            method, at, restarts=self.restarts, seed=self.seed, max_iter=self.max_iter
        )

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, averaged over the function; rows by classes."""
        check_fitted(self, "posteriors_")
        rows = numbers(self, X, reset=False, gaps=CURE)
        blocks = np.array_split(rows, -(-len(rows) * len(self.X_fit_) // BLOCK))
        if len(self.posteriors_) == 1:
            found = np.concatenate([self.posteriors_[0].probabilities(b) for b in blocks])
        else:
            each = [
                np.concatenate([post.probabilities(b)[:, 1] for b in blocks]) for post in self.posteriors_
            ]
            found = np.stack(each, axis=1)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def log_marginal_likelihood(self, values: Any = None) -> float:
        """Return the log evidence, at the fitted hyper-parameters or at others, by the names of `covariance_.hypers()`."""
        check_fitted(self, "posteriors_")
        if values is None:
            return self.log_marginal_likelihood_value_
        pairs = zip(self.posteriors_, self._codes, strict=True)
        return float(
            sum(
                method_of(self.method_, self.X_fit_, y).evidence(
                    p.functions[0].with_values(values) + p.likelihood
                )[0]
                for p, y in pairs
            )
        )

    def function(self) -> SitePosterior:
        """Return the posterior of the function behind two classes, or behind several fitted together."""
        check_fitted(self, "posteriors_")
        if len(self.posteriors_) > 1:
            raise InvalidArgument("each class has a function that tells it from the rest; see posteriors_")
        found: SitePosterior = self.posteriors_[0]
        return found

    def network(self) -> BayesianNetwork:
        """Return the network: a function node, one for each of several classes, and `y`, the class's number, on rows `x`."""
        post = self.function()
        return likelihood_network(post.functions[0], post.likelihood, len(post.fit.alphas))


class TargetsOf:
    """The function of a node: what targets are distributed as, from functions `f`, `f0`, `f1`, ... at inputs `x`."""

    def __init__(self, likelihood: Likelihood, functions: list[str]) -> None:
        self.likelihood, self.functions = likelihood, functions

    @property
    def __signature__(self) -> Signature:
        return Signature([Argument(name, Argument.POSITIONAL_OR_KEYWORD) for name in [*self.functions, "x"]])

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the distribution, given the functions and the inputs."""
        values = dict(zip([*self.functions, "x"], args, strict=False)) | named
        return self.likelihood.law(*(values[name](values["x"]) for name in self.functions))


def likelihood_network(
    covariance: Covariance, likelihood: Likelihood, functions: int = 1, mean: Any = 0.0
) -> BayesianNetwork:
    """Return the network of functions with a covariance, and of targets `y` on the plate `row`, at inputs `x`.

    The first function has a mean.
    """
    network, names = BayesianNetwork(), ["f"] if functions == 1 else [f"f{i}" for i in range(functions)]
    parts = [covariance, *likelihood.parts] if likelihood.parts else [covariance] * functions
    for name, part in zip(names, parts, strict=True):
        network.add(
            name,
            GP(
                part.with_values({n: h.value for n, h in part.free().items()}),
                mean if name == names[0] else 0.0,
            ),
        )
    fixed = likelihood.with_values({n: h.value for n, h in likelihood.hypers().items()})
    network.add("y", TargetsOf(fixed, names), plate="row")  # type: ignore[arg-type]
    return network
