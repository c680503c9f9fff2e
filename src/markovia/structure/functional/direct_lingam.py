"""DirectLiNGAM: the causal order of a linear model with non-Gaussian noise, found cause by cause (Shimizu et al. 2011).

x = Bx + e with independent noises, at most one of them Gaussian, and no cycle. The variable that is least an effect of the
others comes first; its effect is taken out of the others by regression; and so on. Then the coefficients along the order are
estimated and those that are not there dropped (`linear_effects`).

Who comes first is decided by the likelihood ratio of each pair (Hyvärinen, Smith 2013), or by kernel measures of the
independence of regressor and residual (Bach, Jordan 2002), which see more and cost more.

Cost: up to O(n p³) for the likelihood ratios; since evidence against a candidate only adds up, the candidate with the
least is compared first and most comparisons are never made (as in ParaLiNGAM, Shahbazinia et al. 2021); the answer is
the same. Fine for a hundred variables and more. The kernel measure costs O(n r² p³) for kernels of rank r near 20.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice
from markovia.structure.ci_tests.incomplete_cholesky import gaussian_factor
from markovia.structure.functional.checked_matrix import measured_columns
from markovia.structure.functional.linear_effects import (
    check_pruning,
    check_rank,
    effects_along,
    known_before,
    total_effects,
)
from markovia.structure.functional.residual_independence import independence_p_values
from markovia.structure.task.acyclicity import directed_graph
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task

REFRESHED = 16
"""After so many steps correlations are computed from the rows again, so that rounding does not add up."""
NUMPY_SECONDS, COMPILE_SECONDS, LOAD_SECONDS = 2.5e-7, 5.0, 0.5
"""Seconds of NumPy for a comparison, a row; and until the compiled code is there, from source or from disk."""


@dataclass(frozen=True, eq=False)
class LinearDetails:
    """What LiNGAM methods found.

    Attributes
    ----------
    B, total_effects, t_values
        `B[j, i]` is the effect of i on j; (I - B)⁻¹; and the t-values of B.
    order
        The names, causes first.
    residual_p_values
        Independence of each pair of noises.
    comparisons
        Of DirectLiNGAM: how many pairs were compared.
    W
        Of ICA-LiNGAM: the scaled and permuted unmixing matrix.
    """

    B: Array
    order: list[str]
    total_effects: Array
    t_values: Array
    residual_p_values: Array
    comparisons: int | None = None
    W: Array | None = None


def direct_lingam(
    task: Task,
    *,
    measure: str = "likelihood",
    prune: str = "adaptive-lasso",
    threshold: float = 0.05,
    alpha: float = 0.05,
) -> FoundGraph:
    """Learn a linear non-Gaussian model.

    Parameters
    ----------
    task
        Data of numbers, and the rules: required edges and tiers fix parts of the order, forbidden ones have no coefficient.
    measure
        "likelihood": ratios of pairwise likelihoods. "kernel": kernel measures of independence.
    prune
        Which coefficients are zero: "adaptive-lasso" (BIC), "wald" (tests at level `alpha`), "threshold" (sizes below
        `threshold`), or "none".
    threshold, alpha
        For `prune`.

    Returns
    -------
    Found
        A `DAG`; `weights`; `details` is a `LinearDetails`.

    Examples
    --------
    >>> import markovia as mk
    >>> noise = np.random.default_rng(0).uniform(-1, 1, (3, 500))
    >>> data = {"a": noise[0], "b": noise[0] + noise[1], "c": 2 * noise[1] + 2 * noise[0] + noise[2]}
    >>> mk.learn_structure(data, method="direct-lingam").edges
    [('a', 'b'), ('b', 'c')]
    """
    rows = measured_columns(task, "direct-lingam")
    check_pruning(prune, threshold, alpha)
    check_rank(rows, task.names)
    check_choice("measure", measure, ("likelihood", "kernel"))
    choose = _likelihood_choice(rows.shape) if measure == "likelihood" else _kernel_choice
    order, path, made = _order(task, rows, choose)
    notes = []
    if len(order) < len(
        task.names
    ):  # stopped: the rest as the rules allow, without edges into it but required ones
        notes.append(
            f"stopped after {len(order)} of {len(task.names)} variables were ordered; the others have no parents"
        )
    return linear_result(task, rows, order, path, notes, prune, threshold, alpha, comparisons=made)


Choice = Callable[[Array, Array, list[int], list[int]], tuple[int, int]]
"""Standardised columns (one row a variable), their correlations, members and candidates, to the first and comparisons."""


def _order(task: Task, rows: Array, choose: Choice) -> tuple[list[int], list[SearchStep], int]:
    """Return the variables, causes first; fewer of them where the clock ended the search."""
    before, may = known_before(task.rules)
    columns = np.ascontiguousarray((rows - rows.mean(axis=0)).T)
    columns /= columns.std(axis=1)[:, None]
    n = columns.shape[1]
    left = list(range(len(columns)))
    order: list[int] = []
    path: list[SearchStep] = []
    made = 0
    correlations = columns @ columns.T / n
    while left:
        if task.clock.over():
            break
        candidates = [i for i in left if not before[left, i].any()]
        first = candidates[0]
        if len(candidates) > 1:
            first, count = choose(columns, correlations, left, candidates)
            made += count
        order.append(first)
        left.remove(first)
        path.append(SearchStep(f"next {task.names[first]}", float(made), task.clock.seconds))
        task.clock.advance(note=f"{len(order)} of {len(columns)} ordered")
        if left:
            members = np.array(left)
            with_first = correlations[members, first]
            slopes = np.where(may[first, members], with_first, 0.0)
            columns[members] -= slopes[:, None] * columns[first]
            spread = np.maximum(columns[members].std(axis=1), 1e-12)
            columns[members] /= spread[:, None]
            if len(left) % REFRESHED == 0:
                correlations[np.ix_(members, members)] = columns[members] @ columns[members].T / n
            else:  # the same from the old ones, without looking at the rows
                crossed = np.outer(slopes, with_first)
                inside = (
                    correlations[np.ix_(members, members)] - crossed - crossed.T + np.outer(slopes, slopes)
                )
                correlations[np.ix_(members, members)] = inside / np.outer(spread, spread)
    return order, path, made


def linear_result(
    task: Task,
    rows: Array,
    order: list[int],
    path: list[SearchStep],
    notes: list[str],
    prune: str,
    threshold: float,
    alpha: float,
    **more: Any,
) -> FoundGraph:
    """Estimate the coefficients along an order and gather what LiNGAM methods report."""
    full = _with_rest(order, task)
    effects = effects_along(
        full,
        rows,
        _only(order, task),
        task.names,
        prune=prune,
        threshold=threshold,
        alpha=alpha,
    )
    matrix = effects.matrix
    residuals = rows - rows @ matrix.T
    names = task.names
    notes = [*notes, *effects.notes, *_gaussian_note(residuals)]
    edges = (matrix != 0).T | task.rules.required
    p_values = independence_p_values(residuals, full)
    details = LinearDetails(
        matrix, [names[i] for i in order], total_effects(matrix), effects.t_values, p_values, **more
    )
    pairs = p_values[np.triu_indices(len(names), 1)]
    if len(pairs) and float(pairs.min()) * len(pairs) < 0.01:
        i, j = np.unravel_index(int(p_values.argmin()), p_values.shape)
        notes.append(
            f"the noises of {names[i]!r} and {names[j]!r} are dependent (p = {p_values[i, j]:.2g}): a hidden cause, a "
            "nonlinear effect, or a wrong order"
        )
    return FoundGraph(
        directed_graph(edges, names), path=path, weights=matrix.T.copy(), notes=notes, details=details
    )


def _with_rest(order: list[int], task: Task) -> list[int]:
    """Append the variables that were not reached, so that required edges point forwards."""
    before, _ = known_before(task.rules)
    full, left = list(order), [i for i in range(len(task.names)) if i not in order]
    while left:
        root = next(i for i in left if not before[left, i].any())
        full.append(root)
        left.remove(root)
    return full


def _only(order: list[int], task: Task) -> Any:
    """Return the rules with nothing but required edges into variables that were not reached."""
    from dataclasses import replace

    allowed = task.rules.allowed.copy()
    rest = [i for i in range(len(allowed)) if i not in order]
    allowed[:, rest] = task.rules.required[:, rest]
    return replace(task.rules, allowed=allowed)


def _gaussian_note(residuals: Array) -> list[str]:
    """Say where more than one noise passes for Gaussian (D'Agostino and Pearson's test at 0.01)."""
    from scipy.stats import normaltest

    if len(residuals) < 20:
        return []
    normal = int((normaltest(residuals / residuals.std(axis=0), axis=0).pvalue > 0.01).sum())
    if normal < 2:
        return []
    return [f"{normal} noises pass for Gaussian; the order among such variables is not identified"]


def _likelihood_choice(shape: tuple[int, ...]) -> Choice:
    """Return the compiled comparisons, or NumPy's where they are done before the compiled ones are there."""
    from markovia.kernels.compiled_code import worth_loading

    n, p = shape
    plain = n * p**3 / 6 * NUMPY_SECONDS
    if worth_loading(
        "markovia.kernels.structure.residual_entropies:first_cause", plain, LOAD_SECONDS, COMPILE_SECONDS
    ):
        return _compiled_likelihoods(p)
    return _plain_likelihoods


def _compiled_likelihoods(p: int) -> Choice:
    evidence = np.zeros((p, p))

    def choice(
        columns: Array, correlations: Array, members: list[int], candidates: list[int]
    ) -> tuple[int, int]:
        from markovia.kernels.structure.residual_entropies import first_cause

        inside = np.array(members, dtype=np.int64)
        place, made = first_cause(columns, correlations, inside, np.isin(inside, candidates), evidence)
        return members[place], int(made)

    return choice


def _plain_likelihoods(
    columns: Array, correlations: Array, members: list[int], candidates: list[int]
) -> tuple[int, int]:
    """Compare every pair with a candidate in it, in NumPy."""
    m = len(members)
    inside = columns[members]
    own = _entropies(inside)
    wanted = np.isin(members, candidates)
    evidence = np.zeros(m)
    made = 0
    for a in range(m - 1):
        others = np.arange(a + 1, m) if wanted[a] else a + 1 + np.flatnonzero(wanted[a + 1 :])
        if not len(others):
            continue
        c = correlations[members[a], [members[b] for b in others]][:, None]
        scale = np.sqrt(np.maximum(1 - c * c, 1e-12))
        here = _entropies((inside[a] - c * inside[others]) / scale)
        there = _entropies((inside[others] - c * inside[a]) / scale)
        ratio = own[others] + here - own[a] - there
        evidence[a] += float((np.minimum(ratio, 0.0) ** 2).sum())
        evidence[others] += np.maximum(ratio, 0.0) ** 2
        made += len(others)
    return members[int(np.where(wanted, evidence, np.inf).argmin())], made


def _entropies(rows: Array) -> Array:
    """Return Hyvärinen's approximation of the entropy of each standardised row."""
    sizes = np.abs(rows)
    cosh = (sizes + np.log1p(np.exp(-2.0 * sizes))).mean(axis=1) - math.log(2.0)
    bell = (rows * np.exp(-0.5 * rows * rows)).mean(axis=1)
    found: Array = (1 + math.log(2 * math.pi)) / 2 - 79.047 * (cosh - 0.37457) ** 2 - 7.4129 * bell**2
    return found


def _kernel_choice(
    columns: Array, correlations: Array, members: list[int], candidates: list[int]
) -> tuple[int, int]:
    """Return the candidate whose kernel measures of dependence with the others' residuals have the least sum."""
    best, least, made = candidates[0], math.inf, 0
    bases = {a: _kernel_basis(columns[a]) for a in candidates}
    for a in candidates:
        total = 0.0
        for b in members:
            if b == a:
                continue
            residual = columns[b] - correlations[a, b] * columns[a]
            total += _kernel_dependence(bases[a], _kernel_basis(residual))
            made += 1
            if total >= least:
                break
        if total < least:
            best, least = a, total
    return best, made


def kernel_mutual_information(x: Array, y: Array) -> float:
    """Return the mutual information of two columns by the kernel generalised variance, with Bach and Jordan's settings.

    Examples
    --------
    >>> x = np.linspace(-1.7, 1.7, 101)
    >>> kernel_mutual_information(x, x**2) > 10 * kernel_mutual_information(x, np.random.default_rng(0).permutation(x))
    True
    """
    return _kernel_dependence(_kernel_basis(x), _kernel_basis(y))


def _kernel_basis(column: Array) -> Array:
    """Return U diag(λ / (λ + nκ/2)) of the centred kernel matrix."""
    n = len(column)
    kappa, length = (2e-3, 0.5) if n > 1000 else (2e-2, 1.0)
    factor = gaussian_factor(column[:, None], length, 1e-6)
    factor = factor - factor.mean(axis=0)
    values, axes = np.linalg.eigh(factor.T @ factor)
    kept = values > 1e-10 * n
    values, axes = values[kept], axes[:, kept]
    found: Array = factor @ (axes * (np.sqrt(values) / (values + n * kappa / 2)))
    return found


def _kernel_dependence(first: Array, second: Array) -> float:
    singular = np.linalg.svd(first.T @ second, compute_uv=False)
    return -0.5 * float(np.log1p(-np.minimum(singular**2, 1 - 1e-12)).sum())
