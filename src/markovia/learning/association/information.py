"""Information measures of columns: entropy, mutual information and their relatives.

Plug-in counts see any dependence. Plug-in mutual information is never negative and biased upwards, under
independence by about (states of x - 1)(states of y - 1) / (2 rows); the Miller-Madow correction removes that
first-order bias, and the corrected number may be slightly negative. Cost: ``O(rows log rows)``. Mutual information of
numbers goes by nearest neighbours (`markovia.learning.association.neighbour_information`).

References: Cover and Thomas (2006), Elements of Information Theory, chapter 2; Miller (1955), Note on the
bias of information estimates.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np

from markovia.data.tables.plain_columns import (
    Codes,
    Data,
    discrete_codes,
    is_continuous,
    paired_codes,
    read_columns,
    same_length,
)
from markovia.errors import InvalidArgument
from markovia.learning.association.neighbour_information import (
    information_of_numbers,
    information_of_numbers_and_states,
)
from markovia.learning.association.probability_tables import Table, paired_probabilities, probabilities
from markovia.runtime.checks import Kind, Whole, check, check_choice

BiasCorrection: TypeAlias = Literal["none", "miller-madow"]


def entropy(x: Data, *, base: float = math.e, correction: BiasCorrection = "none") -> float:
    """Estimate the entropy of one discrete column, or of the rows of several.

    This is about data. The entropy of a probability table is `Factor.entropy()`, and that of an answer `post.entropy()`.

    Parameters
    ----------
    x : data
        Strings, booleans or whole numbers; several columns count as one variable.
    base : float
        Base of the logarithm: e gives nats, 2 gives bits.
    correction : {"none", "miller-madow"}
        Bias correction; Miller-Madow adds (observed states - 1) / (2 rows).

    Returns
    -------
    float
        The entropy.

    Raises
    ------
    InvalidArgument
        If a column is continuous, has a missing value or no rows.

    Examples
    --------
    >>> entropy(["a", "b", "a", "b"], base=2)
    1.0
    """
    return joint_entropy(x, base=base, correction=correction)


def joint_entropy(*columns: Data, base: float = math.e, correction: BiasCorrection = "none") -> float:
    """Estimate the entropy of several discrete columns taken together; options as in `entropy`.

    Examples
    --------
    >>> joint_entropy(["a", "a", "b", "b"], [0, 1, 0, 1], base=2)
    2.0
    """
    if not columns:
        raise InvalidArgument("joint_entropy needs at least one column")
    joint = reduce(paired_codes, _aligned_codes(*((c, f"x{i}") for i, c in enumerate(columns))))
    counts = np.bincount(joint)
    bias = (len(counts) - 1) / (2 * len(joint)) if _corrects(correction) else 0.0
    # 0.0 + turns the -0.0 of a constant column into 0.0
    return 0.0 + (float(np.log(len(joint) / counts) @ counts) / len(joint) + bias) / log_of_base(base)


def conditional_entropy(
    x: Data, given: Data, *, base: float = math.e, correction: BiasCorrection = "none"
) -> float:
    """Estimate the entropy ``H(x | given) = H(x, given) - H(given)``; options as in `entropy`.

    Examples
    --------
    >>> conditional_entropy([0, 1, 0, 1], given=["a", "a", "b", "b"], base=2)
    1.0
    """
    joint = joint_entropy(x, given, base=base, correction=correction)
    difference = joint - joint_entropy(given, base=base, correction=correction)
    return difference if _corrects(correction) else max(difference, 0.0)


def mutual_information(
    x: Data,
    y: Data,
    *,
    base: float = math.e,
    correction: BiasCorrection = "none",
    neighbours: int = 3,
    continuous: bool | None = None,
) -> float:
    """Estimate the mutual information of two columns (or groups of them): of states by counts, of numbers by neighbours.

    Parameters
    ----------
    x, y : data
        Text, booleans and whole numbers are states, which are counted; columns with fractions are numbers, which are
        compared with their nearest neighbours, in whatever unit. Several columns of one kind count as one variable.
    base, correction
        As in `entropy`; the correction is for states on both sides.
    neighbours : int
        How many neighbours of each row are looked at, where there are numbers. More vary less, and blur more.
    continuous : bool, optional
        Whether columns of whole numbers are numbers, too (ages, prices: many values, few rows each); by default they are
        states.

    Returns
    -------
    float
        The information; an estimate below zero is zero.

    Raises
    ------
    InvalidArgument
        If a side has columns of both kinds, a value is missing, rows are too few, or lengths differ.

    Notes
    -----
    References: Kraskov, Stoegbauer and Grassberger (2004) for two numbers, Ross (2014) for a number and a state.

    Examples
    --------
    >>> mutual_information(["no", "no", "yes", "yes"], [0, 0, 1, 1], base=2)
    1.0

    Two numbers with correlation 0.8, where -log(1 - 0.8 ** 2) / 2 is 0.51, and a number and a state:

    >>> x, y = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 2000).T
    >>> round(mutual_information(x, y), 2), round(mutual_information(x, y > 0), 2)
    (0.53, 0.27)
    """
    sides = _sides(((x, "x"), (y, "y")), neighbours, continuous)
    numeric = [side for side in sides if side.dtype.kind == "f"]
    if not numeric:
        return _information(sides[0], sides[1], np.zeros_like(sides[0]), base, correction)
    _refuse_correction(correction)
    if len(numeric) == 2:
        found = information_of_numbers(numeric[0], numeric[1], neighbours)
    else:
        states = next(side for side in sides if side.dtype.kind != "f")
        found = information_of_numbers_and_states(numeric[0], states, neighbours)
    return max(found, 0.0) / log_of_base(base)


def conditional_mutual_information(
    x: Data,
    y: Data,
    given: Data,
    *,
    base: float = math.e,
    correction: BiasCorrection = "none",
    neighbours: int = 3,
    continuous: bool | None = None,
) -> float:
    """Estimate ``I(x; y | given)``, of states by counts, of numbers by neighbours; `given` may be several columns.

    Parameters
    ----------
    x, y, given, base, correction, neighbours, continuous
        As in `mutual_information`; all columns are states, or all are numbers.

    Raises
    ------
    InvalidArgument
        If there are states and numbers, a value is missing, rows are too few, or lengths differ.

    Notes
    -----
    Reference: Frenzel and Pompe (2007) for numbers. The estimate is drawn towards zero where `given` has many columns.

    Examples
    --------
    Two coins are independent until their exclusive or is known:

    >>> x, y, xor = [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]
    >>> mutual_information(x, y, base=2), conditional_mutual_information(x, y, xor, base=2)
    (0.0, 1.0)

    Two measurements of one thing tell nothing of each other once it is known:

    >>> rng = np.random.default_rng(0)
    >>> z, e, f = rng.normal(size=(3, 4000))
    >>> round(mutual_information(z + e, z + f), 1), round(conditional_mutual_information(z + e, z + f, z), 1)
    (0.1, 0.0)
    """
    named = ((x, "x"), (y, "y"), (given, "z"))
    sides = _sides(named, neighbours, continuous)
    numeric = [side.dtype.kind == "f" for side in sides]
    if not any(numeric):
        return _information(sides[0], sides[1], sides[2], base, correction)
    if not all(numeric):
        _aligned_codes(*named)  # says which column is continuous
        raise InvalidArgument("some columns are numbers and others have states; leave out continuous=")
    _refuse_correction(correction)
    return max(information_of_numbers(sides[0], sides[1], neighbours, sides[2]), 0.0) / log_of_base(base)


def kl_divergence(p: Table, q: Table, *, base: float = math.e) -> float:
    """Compute the Kullback-Leibler divergence ``sum p log(p / q)``, infinite where q = 0 < p.

    This is about probability tables, where `entropy` and `mutual_information` take columns of data.

    Parameters
    ----------
    p, q : array-like, Factor or Posterior
        Two probability tables of one shape; two factors or posteriors over the same variables, in any order.
    base : float
        Base of the logarithm.

    Returns
    -------
    float
        Zero exactly when the tables are equal, positive otherwise.

    Raises
    ------
    InvalidArgument
        If the shapes differ, an entry is negative or not finite, or a table does not sum to one.

    Examples
    --------
    >>> kl_divergence([1.0, 0.0], [0.5, 0.5], base=2)
    1.0
    """
    first, second, _ = paired_probabilities(p, q)
    support = first > 0
    with np.errstate(divide="ignore"):
        terms = first[support] * np.log(first[support] / second[support])
    return max(float(terms.sum()), 0.0) / log_of_base(base)


def mutual_information_of_table(table: Table, *, base: float = math.e) -> float:
    """Compute the mutual information of a two-way joint probability table, one axis a variable.

    Raises
    ------
    InvalidArgument
        If the table is not two-dimensional, has a negative entry, or does not sum to one.

    Examples
    --------
    >>> round(mutual_information_of_table([[0.64, 0.16], [0.04, 0.16]]), 6)
    0.126467
    """
    joint = probabilities(table, "the table")
    if joint.ndim != 2:
        raise InvalidArgument(
            f"the table has {joint.ndim} axes; mutual information needs a joint table of two"
        )
    joint = joint / joint.sum()
    return kl_divergence(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0)), base=base)


def _sides(named: Sequence[tuple[Data, str]], neighbours: int, continuous: bool | None) -> list[Any]:
    """Return the checked columns of each name, all of one length: codes of states, or numbers."""
    check("neighbours", neighbours, Whole(1))
    check("continuous", continuous, Kind((bool,), "True, False or None", none=True))
    sides = [_states_or_numbers(data, name, continuous) for data, name in named]
    for side, (_, name) in zip(sides, named, strict=True):
        same_length(len(sides[0]), len(side), named[0][1], name)
    return sides


def _states_or_numbers(data: Data, prefix: str, continuous: bool | None) -> Any:
    """Return codes of states, or numbers as floats, (rows, columns)."""
    names, columns = read_columns(data, prefix)
    kinds = {name: is_continuous(column, continuous) for name, column in zip(names, columns, strict=True)}
    if len({*kinds.values()}) > 1:
        number, state = (next(n for n in names if kinds[n] is kind) for kind in (True, False))
        raise InvalidArgument(
            f"{number!r} is a number and {state!r} has states, and {prefix} is both; give columns of one kind together"
        )
    if kinds[names[0]]:
        return np.column_stack([column.astype(np.float64) for column in columns])
    return discrete_codes(data, prefix)


def _aligned_codes(*named: tuple[Data, str]) -> list[Codes]:
    codes = [discrete_codes(data, name) for data, name in named]
    for code, (_, name) in zip(codes, named, strict=True):
        same_length(len(codes[0]), len(code), named[0][1], name)
    return codes


def _information(x: Codes, y: Codes, z: Codes, base: float, correction: BiasCorrection) -> float:
    xz, yz = paired_codes(x, z), paired_codes(y, z)
    xyz = paired_codes(xz, y)
    n_xyz, n_xz, n_yz, n_z = (np.bincount(codes) for codes in (xyz, xz, yz, z))
    # Integer products make the ratio exactly one where the counts factorise.
    ratio = (n_xyz[xyz] * n_z[z]) / (n_xz[xz] * n_yz[yz])
    value = max(float(np.log(ratio).mean()), 0.0)
    if _corrects(correction):
        value += (len(n_xz) + len(n_yz) - len(n_xyz) - len(n_z)) / (2 * len(x))
    return value / log_of_base(base)


def _corrects(correction: BiasCorrection) -> bool:
    check_choice("correction", correction, ("none", "miller-madow"))
    return correction == "miller-madow"


def _refuse_correction(correction: BiasCorrection) -> None:
    if _corrects(correction):
        raise InvalidArgument("correction= is for states, and there are numbers; leave it out")


def log_of_base(base: float) -> float:
    """Return what nats are divided by for a base of the logarithm."""
    if not (base > 1 and math.isfinite(base)):
        raise InvalidArgument(f"the base of the logarithm must be a number above 1, not {base!r}")
    return math.log(base)
