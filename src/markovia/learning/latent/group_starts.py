"""Where EM for hidden groups begins: clusters of some of the rows, tried several times.

EM goes up the nearest hill, so the start decides. Clusters come from k-means++ and a few steps of k-means on numbers that
stand for the rows (`points`). Some of the tries begin with several times as many, and merge the two whose merging costs the
least log likelihood, as sums of statistics tell it, until enough are left (Fraley, 1998). Each makes components and goes
a few steps of EM on some of the rows; the better ones go on, and the best is handed to the run on all rows (Biernacki,
Celeux and Govaert, 2003). Cost: small, the same for any number of rows.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from markovia.learning.components.block_passes import LinearPass
from markovia.learning.components.families import k_means
from markovia.learning.latent.group_em import Groups, LearningRule, Sample, learn_groups
from markovia.runtime.array_types import Array, Flags, Ints

TRIES, SHORT, LONGER = 8, 8, 30
"""How many starts are tried, for how many steps each, and for how many the better ones."""
MORE = 3
"""How many times as many clusters there are before some are merged."""
SOFT = 0.1
"""How much of each row is spread over all groups at the start, so that none is without data."""


def few_rows(sample: Sample, k: int, rng: np.random.Generator) -> Sample:
    """Return some of the rows, those with weight, enough to tell k groups apart."""
    there = np.arange(sample.size) if sample.shares is None else np.flatnonzero(sample.shares > 0.0)
    most = max(2_000, 200 * k)
    if len(there) > most:
        # where few rows are told their group all of them stay: they say which group is which
        told = there[:0] if sample.labels is None else there[sample.labels[there] >= 0]
        if len(told) > most // 2:
            told = told[:0]
        others = np.setdiff1d(there, told, assume_unique=True) if len(told) else there
        there = np.sort(np.concatenate([told, rng.choice(others, most - len(told), replace=False)]))
    return sample if len(there) == sample.size else sample.at(there)


def tried_groups(
    family: Any, k: int, few: Sample, rule: LearningRule, rng: np.random.Generator, tries: int = TRIES
) -> Groups:
    """Return the best of several starts after some steps of EM on a few rows."""
    blank, points = family.blank(few.rows, k), family.points(few.rows)
    # what a few rows do not show must not be impossible from then on
    rule = replace(rule, prior={**getattr(family, "start_prior", {}), **rule.prior})
    if k == 1:
        return groups_of(blank, few, np.ones((few.size, 1)), rule)
    starts = []
    linear = _linear(blank, few) is not None
    many = min(MORE * k, few.size // 10)
    for i in range(tries):
        if linear and i % 2 == 1 and many > k:
            clusters = merged(family, k_means(points, many, rng, few.shares, steps=5).labels_, k, few, rule)
        else:
            clusters = k_means(points, k, rng, few.shares, steps=10 if i % 4 == 0 else 1).labels_
        starts.append(groups_of(blank, few, _soft(clusters, k), rule))
    for steps in (SHORT, LONGER):
        runs = [learn_groups(one, few, rule, max_iter=steps, tol=0.0) for one in starts]
        runs.sort(key=lambda run: -run.history[-1] if np.isfinite(run.history[-1]) else np.inf)
        starts = [run.state for run in runs[: max(1, len(runs) // 3)]]
    return starts[0]


def merged(family: Any, clusters: Ints, k: int, few: Sample, rule: LearningRule) -> Ints:
    """Return clusters of which so many were merged, the cheapest two at a time, that k are left."""
    found = np.unique(clusters, return_inverse=True)[1].ravel()
    n = int(found.max()) + 1
    shares = np.eye(n)[found] if few.shares is None else np.eye(n)[found] * few.shares[:, None]
    passing = _linear(family.blank(few.rows, n), few)
    if passing is None:
        return found
    sums, size = passing.sums(passing.features(few.rows), shares.T), shares.sum(axis=0)

    def worth(size: Array, sums: Array) -> Array:
        """Return the log likelihood of rows in groups of their own."""
        blank = _linear(family.blank(few.rows, len(size)), few)
        assert blank is not None
        made = _linear(blank.learned(size, sums, rule.prior), few)
        assert made is not None
        logs = np.where(sums == 0.0, 0.0, made.coefficients) * sums  # what never occurs may be forbidden
        return np.asarray(logs.sum(axis=1) + made.constants * size)

    alone = worth(size, sums)
    cost = np.full((n, n), np.inf)
    for i in range(1, n):
        cost[i, :i] = alone[i] + alone[:i] - worth(size[i] + size[:i], sums[i] + sums[:i])
    left = list(range(n))
    while len(left) > k:
        i, j = (int(c) for c in np.unravel_index(int(np.argmin(cost)), cost.shape))
        found[found == i] = j
        size[j] += size[i]
        sums[j] += sums[i]
        left.remove(i)
        cost[i] = cost[:, i] = np.inf
        alone[j] = worth(size[j : j + 1], sums[j : j + 1])[0]
        others = np.array([c for c in left if c != j])
        new = alone[j] + alone[others] - worth(size[j] + size[others], sums[j] + sums[others])
        cost[np.maximum(j, others), np.minimum(j, others)] = new
    return np.asarray(np.searchsorted(left, found))


def _linear(components: Any, few: Sample) -> LinearPass | None:
    """Return a pass whose statistics are the same whatever was learned, where there is one."""
    rows = few.rows
    origin = np.nanmean(rows, axis=0) if isinstance(rows, np.ndarray) and rows.dtype.kind == "f" else None
    for gaps in (True, few.gaps):
        if isinstance(rows, np.ndarray) or not gaps or hasattr(rows, "parts"):
            found = components.block_pass(gaps=gaps, origin=origin)
            if isinstance(found, LinearPass):
                return found
    return None


def groups_of(blank: Any, sample: Sample, shares: Array, rule: LearningRule) -> Groups:
    """Return groups learned from rows that belong to them by shares (rows, groups)."""
    if sample.labels is not None:
        told = sample.labels >= 0
        belongs = np.eye(blank.n_states)[sample.labels[told]]
        shares = _matched(shares, belongs, told)
        shares[told] = belongs
    if sample.shares is not None:
        shares = shares * sample.shares[:, None]
    passing = blank.block_pass(gaps=sample.gaps)
    if passing is None:
        made = blank.learned(sample.rows, shares, rule.prior)
    else:
        _, kept = passing.logs(sample.rows)
        made = passing.learned(
            shares.sum(axis=0), passing.sums(kept, np.ascontiguousarray(shares.T)), rule.prior
        )
    return Groups(made, rule.weights(shares.sum(axis=0), np.full(len(shares.T), 1.0 / len(shares.T))))


def _matched(shares: Array, belongs: Array, told: Flags) -> Array:
    """Return shares whose columns are in the order in which most of what is told agrees with them."""
    from scipy.optimize import linear_sum_assignment

    return np.asarray(shares[:, linear_sum_assignment(belongs.T @ shares[told], maximize=True)[1]])


def _soft(clusters: Ints, k: int) -> Array:
    found = np.full((len(clusters), k), SOFT / k)
    found[np.arange(len(clusters)), clusters] += 1.0 - SOFT
    return found
