"""How far two distributions are apart where only their probabilities count, and a bound on information by a guess.

Total variation is the largest difference between the probabilities of an event, half the sum of |p - q|. The Jensen-Shannon
divergence is the mean Kullback-Leibler divergence to the average of both; unlike that it is symmetric, and at most log 2,
where the two share no state. Neither knows whether states are near each other: for that there is `wasserstein`, and `mmd`.
Of samples both compare the shares of each state, which differ even where the distributions are equal: by some
sqrt(states / rows) in total variation, by some states / (4 rows) in nats.
References: Lin (1991); Levin, Peres and Wilmer (2009), chapter 4. Cost: linear in the entries, or rows.
"""

import math
from typing import Any

import numpy as np

from markovia.data.tables.plain_columns import numbers, read_columns
from markovia.errors import InvalidArgument
from markovia.factors.tables.factor import Factor
from markovia.inference.posterior import Posterior
from markovia.learning.association.information import entropy, log_of_base
from markovia.learning.association.probability_tables import (
    as_factor,
    counted_states,
    paired_probabilities,
    probabilities,
)
from markovia.runtime.array_types import Array


def total_variation(p: Any, q: Any, *, samples: bool = False) -> float:
    """Return the total variation distance of two distributions, from 0 to 1.

    Parameters
    ----------
    p, q
        Probability tables of one shape; or two factors or posteriors over the same variables.
    samples
        Whether they are samples instead: two columns of states, or frames with the same columns, of any lengths.

    Raises
    ------
    InvalidArgument
        If the tables differ in shape or variables, or a sample is of continuous numbers.

    Examples
    --------
    >>> total_variation([0.5, 0.5, 0.0], [0.0, 0.25, 0.75])
    0.75
    >>> total_variation(["a", "b"], ["b", "b", "b", "c"], samples=True)
    0.5
    """
    first, second = _pair(p, q, samples)
    return min(1.0, 0.5 * float(np.abs(first - second).sum()))


def jensen_shannon(p: Any, q: Any, *, base: float = math.e, samples: bool = False) -> float:
    """Return the Jensen-Shannon divergence of two distributions, from 0 to log 2; its root is a distance.

    Parameters
    ----------
    p, q, samples
        As in `total_variation`.
    base
        Base of the logarithm: e gives nats, 2 gives bits.

    Examples
    --------
    >>> round(jensen_shannon([0.5, 0.5, 0.0], [0.0, 0.25, 0.75]), 6)
    0.454454
    >>> jensen_shannon([1.0, 0.0], [0.0, 1.0], base=2)
    1.0
    """
    unit = log_of_base(base)
    first, second = _pair(p, q, samples)
    return float(divergence_of_rows(first.ravel(), second.ravel())) / unit


def divergence_of_rows(first: Array, second: Array) -> Array:
    """Return the Jensen-Shannon divergences, in nats, of arrays of probabilities along their last axes."""
    from scipy.special import rel_entr

    middle = 0.5 * (first + second)
    found = 0.5 * (rel_entr(first, middle) + rel_entr(second, middle)).sum(axis=-1)
    return np.asarray(np.clip(found, 0.0, math.log(2.0)))


def information_lower_bound(
    joint: Any, decoder: Any, *, base: float = math.e, samples: bool = False
) -> float:
    """Return a lower bound on the mutual information of a code c and an observation x, from any guess Q(c | x).

    It is H(c) + E[log Q(c | x)] (Barber and Agakov 2003), the term that InfoGAN adds to its objective. What it lacks of the
    information is the mean divergence from the true p(c | x) to Q.

    Parameters
    ----------
    joint
        The table p(c, x), c along the first axis.
    decoder
        Q(c | x), a table of the same shape that sums to one over c for every x that can be.
    base
        As in `jensen_shannon`.
    samples
        Whether `joint` is a sample of c, a column of states, and `decoder` the probability that Q gave each row's own c.

    Examples
    --------
    >>> joint = [[0.4, 0.1], [0.1, 0.4]]
    >>> round(information_lower_bound(joint, [[0.8, 0.2], [0.2, 0.8]]), 6)  # the true posterior: the information itself
    0.192745
    >>> information_lower_bound(joint, [[0.5, 0.5], [0.5, 0.5]])
    0.0
    """
    unit = log_of_base(base)
    if samples:
        told, h = numbers(decoder, "decoder"), entropy(joint)
        weights = np.full(told.shape, 1.0 / max(told.size, 1))
        if told.shape != read_columns(joint, "c")[1][0].shape:
            raise InvalidArgument(
                f"the decoder has a probability for each row of the sample, not shape {told.shape}"
            )
    else:
        if isinstance(joint, Factor | Posterior) and isinstance(decoder, Factor | Posterior):
            decoder = np.asarray(as_factor(decoder).transpose(as_factor(joint).names).values)
        weights, told = probabilities(joint, "the joint table"), numbers(decoder, "decoder")
        if weights.ndim != 2 or told.shape != weights.shape:
            raise InvalidArgument(
                f"the joint table and the decoder are two tables over c and x, not {told.shape}"
            )
        possible = weights.sum(axis=0) > 0
        if np.abs(told[:, possible].sum(axis=0) - 1.0).max() > 1e-6:
            raise InvalidArgument("the decoder sums to one over c, its first axis, for every x")
        c = weights.sum(axis=1)
        h = -float((c[c > 0] * np.log(c[c > 0])).sum())
    if (told < 0).any() or (told > 1.0 + 1e-6).any():
        raise InvalidArgument("the decoder holds probabilities, from 0 to 1")
    seen = weights > 0
    with np.errstate(divide="ignore"):  # a decoder that rules out what happens bounds nothing
        found = h + float((weights[seen] * np.log(told[seen])).sum())
    return 0.0 + found / unit


def _pair(p: Any, q: Any, samples: bool) -> tuple[Array, Array]:
    if samples:
        return counted_states(p, q)
    first, second, _ = paired_probabilities(p, q)
    return first / first.sum(), second / second.sum()
