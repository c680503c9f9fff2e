"""Recognising the distributions that models are written with, and the tables of those over a few states.

They are NumPyro's; nothing is loaded to find out whether a value is one.
"""

import sys

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64


def is_distribution(value: object) -> bool:
    """Say whether a value is a distribution of `markovia.distributions`.

    Examples
    --------
    >>> import markovia.distributions as dist
    >>> is_distribution(dist.Normal(0, 1)), is_distribution(3.0)
    (True, False)
    """
    numpyro = sys.modules.get("numpyro.distributions")
    return numpyro is not None and isinstance(value, numpyro.Distribution)


def is_finite(distribution: object) -> bool:
    """Say whether a distribution is of one variable with finitely many states.

    Examples
    --------
    >>> import markovia.distributions as dist
    >>> is_finite(dist.Bernoulli(0.3)), is_finite(dist.Poisson(2.0)), is_finite(dist.Normal(0, 1))
    (True, False, False)
    """
    d: object = distribution
    return bool(
        not d.batch_shape  # type: ignore[attr-defined]
        and not d.event_shape  # type: ignore[attr-defined]
        and d.support.is_discrete  # type: ignore[attr-defined]
        and d.has_enumerate_support  # type: ignore[attr-defined]
    )


def probabilities(distribution: object) -> Array:
    """Return the probability of each state of a finite distribution.

    Examples
    --------
    >>> import markovia.distributions as dist
    >>> probabilities(dist.Categorical(probs=[0.2, 0.3, 0.5])).round(6).tolist()
    [0.2, 0.3, 0.5]
    """
    with x64():
        support = distribution.enumerate_support()  # type: ignore[attr-defined]
        return np.exp(np.asarray(distribution.log_prob(support), dtype=np.float64))  # type: ignore[attr-defined]


def finite_values(distribution: object) -> list[int]:
    """Return the values of a finite distribution.

    Examples
    --------
    >>> import markovia.distributions as dist
    >>> finite_values(dist.DiscreteUniform(1, 6))
    [1, 2, 3, 4, 5, 6]
    """
    with x64():
        found: list[int] = np.asarray(distribution.enumerate_support()).astype(int).tolist()  # type: ignore[attr-defined]
    return found
