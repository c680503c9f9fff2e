"""Graphs from pairwise association: an undirected edge wherever two columns are associated beyond chance.

A *marginal* graph (`correlation_graph`, `dependency_graph`) joins all columns that share a cause, however
indirectly, and so tends to be nearly complete. A *partial-correlation* graph conditions each pair on all
other columns; for Gaussian data it is the conditional independence graph, the Markov network of the
distribution.

An edge is decided by a test at level `alpha` (Fisher's z for correlations, permutations for mutual
information and HSIC), with an optional correction for the number of pairs, or by a threshold on the measure.

Cost: ``O(rows * columns**2)`` for correlations; ``O(columns**2 * n_permutations)`` evaluations of the measure
for mutual information (``O(rows log rows)`` each) and HSIC (``O(rows**2)`` each).

References: Fisher (1924), The distribution of the partial correlation coefficient; Benjamini and Hochberg
(1995), Controlling the false discovery rate; Lauritzen (1996), Graphical Models, section 5.1.
"""

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.plain_columns import Data, is_numeric, read_columns
from markovia.errors import InvalidArgument
from markovia.graphs import UndirectedGraph
from markovia.learning.association.association import AssociationMatrix, partial_correlation, pearson
from markovia.learning.association.information import mutual_information
from markovia.learning.association.kernel_tests import (
    Kernel,
    PermutationTest,
    check_permutations,
    hsic,
    hsic_test,
    permutation_test,
)
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_level, check_number
from markovia.runtime.seeds import Seed, generator

PairCorrection: TypeAlias = Literal["none", "bonferroni", "benjamini-hochberg"]
Measure: TypeAlias = Literal["pearson", "mutual-information", "hsic"]
Column: TypeAlias = NDArray[Any]


def correlation_graph(
    data: Data, *, alpha: float = 0.05, correction: PairCorrection = "none", threshold: float | None = None
) -> UndirectedGraph:
    """Join two columns if their Pearson correlation differs from zero.

    Parameters
    ----------
    data : data
        Numbers, a column a variable.
    alpha : float
        Level of Fisher's z test of each pair.
    correction : {"none", "bonferroni", "benjamini-hochberg"}
        For the number of pairs: none, family-wise error, or false discovery rate.
    threshold : float, optional
        Join where the absolute correlation is above this, instead of testing.

    Returns
    -------
    UndirectedGraph
        All columns as nodes, in their order.

    Raises
    ------
    InvalidArgument
        If a column is constant or no number, or there are fewer than 4 rows for the test.

    Examples
    --------
    >>> correlation_graph({"a": [1, 2, 3, 4, 5], "b": [2, 4, 6, 8, 11], "c": [3, 1, 4, 1, 3]})
    UndirectedGraph([('a', 'b')], nodes=['c'])
    """
    check_decision(alpha, correction, threshold)
    return _from_correlations(pearson(data), 0, alpha, correction, threshold)


def partial_correlation_graph(
    data: Data, *, alpha: float = 0.05, correction: PairCorrection = "none", threshold: float | None = None
) -> UndirectedGraph:
    """Join two columns if their partial correlation given all other columns differs from zero.

    Parameters
    ----------
    data : data
        Numbers, a column a variable.
    alpha, correction, threshold
        As in `correlation_graph`.

    Returns
    -------
    UndirectedGraph
        All columns as nodes, in their order.

    Raises
    ------
    InvalidArgument
        If columns are constant or linearly dependent, or there are fewer than columns + 2 rows for the test.

    Examples
    --------
    Height and vocabulary both grow with age, and are unrelated given it:

    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(2, 12, 300)
    >>> height, words = 80 + 6 * age + rng.normal(0, 5, 300), 900 * age + rng.normal(0, 500, 300)
    >>> table = {"height": height, "words": words, "age": age}
    >>> correlation_graph(table).n_edges
    3
    >>> partial_correlation_graph(table)
    UndirectedGraph([('height', 'age'), ('words', 'age')])
    """
    check_decision(alpha, correction, threshold)
    partial = partial_correlation(data)
    return _from_correlations(partial, len(partial.names) - 2, alpha, correction, threshold)


def dependency_graph(
    data: Data,
    *,
    measure: Measure = "mutual-information",
    alpha: float = 0.05,
    correction: PairCorrection = "none",
    threshold: float | None = None,
    n_permutations: int = 500,
    seed: Seed = 0,
) -> UndirectedGraph:
    """Join two columns if a measure of their dependence, linear or not, is beyond chance.

    Parameters
    ----------
    data : data
        A column a variable: discrete for "mutual-information", numbers for "pearson", either for "hsic" (rbf
        kernel on numbers, discrete kernel on anything else and on booleans).
    measure : {"mutual-information", "hsic", "pearson"}
        What to measure. "pearson" is `correlation_graph`.
    alpha, correction, threshold
        As in `correlation_graph`; the threshold is in the units of the measure (nats, biased HSIC).
    n_permutations, seed
        Permutations a pair, and their seed, for "mutual-information" and "hsic".

    Returns
    -------
    UndirectedGraph
        All columns as nodes, in their order.

    Raises
    ------
    InvalidArgument
        If a column does not suit the measure, or so few permutations cannot reach the level.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, z = rng.uniform(-1, 1, 100), rng.uniform(-1, 1, 100)
    >>> table = {"x": x, "square": x**2, "z": z}
    >>> dependency_graph(table, measure="hsic", correction="bonferroni")
    UndirectedGraph([('x', 'square')], nodes=['z'])
    """
    check_choice("measure", measure, ("pearson", "mutual-information", "hsic"))
    if measure == "pearson":
        return correlation_graph(data, alpha=alpha, correction=correction, threshold=threshold)
    check_decision(alpha, correction, threshold)
    names, columns = read_columns(data, "x")
    _need_two(names)
    pairs = list(combinations(range(len(names)), 2))
    if threshold is not None:
        size: Callable[[Column, Column], float] = (
            mutual_information if measure == "mutual-information" else _hsic_size
        )
        accepted = np.array([size(columns[i], columns[j]) > threshold for i, j in pairs])
    else:
        _need_resolution(alpha, correction, len(pairs), n_permutations)
        # A seed a pair: the same stream for all would make their errors move together.
        seeds = generator(seed).integers(2**32, size=len(pairs))
        p_values = np.array(
            [
                _pair_test(measure, columns[i], columns[j], n_permutations, int(s)).p_value
                for (i, j), s in zip(pairs, seeds, strict=True)
            ]
        )
        accepted = significant(p_values, alpha, correction)
    return _graph(names, pairs, accepted)


def _pair_test(measure: Measure, x: Column, y: Column, n_permutations: int, seed: int) -> PermutationTest:
    if measure == "mutual-information":
        return permutation_test(mutual_information, x, y, n_permutations=n_permutations, seed=seed)
    return hsic_test(x, y, kernel=_kernels(x, y), n_permutations=n_permutations, seed=seed)


def _hsic_size(x: Column, y: Column) -> float:
    return hsic(x, y, kernel=_kernels(x, y))


def _kernels(x: Column, y: Column) -> tuple[Kernel, Kernel]:
    return _kernel_for(x), _kernel_for(y)


def _kernel_for(column: Column) -> Kernel:
    return "rbf" if column.dtype.kind != "b" and is_numeric(column) else "discrete"


def _from_correlations(
    matrix: AssociationMatrix,
    n_given: int,
    alpha: float,
    correction: PairCorrection,
    threshold: float | None,
) -> UndirectedGraph:
    _need_two(matrix.names)
    pairs = list(combinations(range(len(matrix.names)), 2))
    sizes = np.array([abs(matrix.values[i, j]) for i, j in pairs])
    if threshold is not None:
        accepted = sizes > threshold
    else:
        accepted = significant(fisher_z_p_values(sizes, matrix.n_rows, n_given), alpha, correction)
    return _graph(matrix.names, pairs, accepted)


def fisher_z_p_values(sizes: Array, n_rows: int, n_given: int) -> Array:
    """Two-sided p-values of ``atanh(r) sqrt(rows - given - 3)`` under a standard normal."""
    from scipy.special import erfc

    freedom = n_rows - n_given - 3
    if freedom < 1:
        raise InvalidArgument(
            f"Fisher's z test given {n_given} columns needs at least {n_given + 4} rows; the data have "
            f"{n_rows} (pass threshold= to join by size alone)"
        )
    with np.errstate(divide="ignore"):
        z = np.arctanh(sizes) * math.sqrt(freedom)
    p_values: Array = erfc(z / math.sqrt(2.0))
    return p_values


def significant(p_values: Array, alpha: float, correction: PairCorrection) -> NDArray[np.bool_]:
    """Say which tests reject, corrected for their number as asked."""
    count = len(p_values)
    if correction == "none":
        return p_values <= alpha
    if correction == "bonferroni":
        return p_values <= alpha / count
    ordered = np.sort(p_values)
    passing = np.nonzero(ordered <= alpha * np.arange(1, count + 1) / count)[0]
    limit = ordered[passing[-1]] if passing.size else -1.0
    return p_values <= limit


def _graph(
    names: tuple[str, ...], pairs: list[tuple[int, int]], accepted: NDArray[np.bool_]
) -> UndirectedGraph:
    edges = [(names[i], names[j]) for (i, j), joined in zip(pairs, accepted, strict=True) if joined]
    return UndirectedGraph(edges, nodes=names)


def check_decision(alpha: float, correction: PairCorrection, threshold: float | None) -> None:
    """Raise where a rule that says which pairs are joined makes no sense."""
    check_level("alpha", alpha)
    check_choice("correction", correction, ("none", "bonferroni", "benjamini-hochberg"))
    if threshold is None:
        return
    check_number("threshold", threshold)
    if correction != "none":
        raise InvalidArgument("correction= adjusts the test; with threshold= there is none, so leave one out")


def _need_resolution(alpha: float, correction: PairCorrection, n_pairs: int, n_permutations: int) -> None:
    check_permutations(n_permutations)
    level = alpha / n_pairs if correction == "bonferroni" else alpha
    needed = math.ceil(1 / level) - 1
    if n_permutations < needed:
        raise InvalidArgument(
            f"{n_permutations} permutations cannot give a p-value of {level:.2g}; "
            f"use n_permutations={needed} or more"
        )


def _need_two(names: tuple[str, ...]) -> None:
    if len(names) < 2:
        raise InvalidArgument("a graph of associations needs at least two columns")
