"""Generalised linear models under the names people know; each is a `GLM` of one family with its canonical link."""

from dataclasses import dataclass, field

from markovia.learning.regression.glm import GLM


@dataclass(eq=False, repr=False)
class _Regression(GLM):
    """A GLM whose family is fixed by its class."""

    family: str = field(default="", init=False)
    link: str | None = field(default=None, init=False)


class LinearRegression(_Regression):
    """Least squares: a Gaussian response with the identity link; parameters as in `GLM`.

    Examples
    --------
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(9).tolist(), round(model.intercept_, 9), model.n_iter_
    ([2.0], 1.0, 1)
    """

    family = "gaussian"


class LogisticRegression(_Regression):
    """Two classes with the logit link; parameters as in `GLM`. Unlike scikit-learn's it has no penalty by default.

    Examples
    --------
    >>> model = LogisticRegression().fit([[0.0], [0.0], [1.0], [1.0], [1.0]], ["no", "yes", "yes", "yes", "no"])
    >>> model.predict_proba([[1.0]]).round(6).tolist()
    [[0.333333, 0.666667]]
    """

    family = "bernoulli"


class SoftmaxRegression(_Regression):
    """Several classes (multinomial logistic regression); parameters as in `GLM`.

    Without a penalty the first class is the reference, as in most statistics packages; with one every class has coefficients
    of its own, as in scikit-learn.

    Examples
    --------
    >>> X, y = [[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]], ["a", "b", "c", "a", "b", "c"]
    >>> model = SoftmaxRegression().fit(X, y, sample_weight=[1, 2, 1, 1, 1, 2])
    >>> model.predict_proba([[0.0]]).round(6).tolist()
    [[0.25, 0.5, 0.25]]
    """

    family = "categorical"


class PoissonRegression(_Regression):
    """Counts with the log link; parameters as in `GLM`.

    Examples
    --------
    >>> model = PoissonRegression().fit([[0.0], [0.0], [1.0], [1.0]], [1, 3, 5, 7])
    >>> model.predict([[0.0], [1.0]]).round(6).tolist()
    [2.0, 6.0]
    """

    family = "poisson"
