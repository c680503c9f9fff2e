"""Groups that share atoms: the hierarchical Dirichlet process and its restaurants, the franchise (Teh et al. 2006).

    G_0 ~ DP(top_concentration, base),    G_j ~ DP(concentration, G_0) for each group j

In the franchise, customers of restaurant j sit down as in a Chinese restaurant with `concentration`; each new table orders a
dish, which are shared by all restaurants and chosen as tables are, with `top_concentration`. With the tables summed out, the
dishes of all customers have the probability

    sum over t_jk of  prod_j concentration^{t_j.} / (concentration)_{n_j}  prod_jk s(n_jk, t_jk)  EPPF(t_.1, ..., t_.K)

with unsigned Stirling numbers s of the first kind: a product of polynomials, O(K n^2) for n customers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions.gaussian_families import Gaussian
from markovia.factors.processes.chinese_restaurant import ChineseRestaurant
from markovia.factors.processes.law import Law, labels_of
from markovia.factors.processes.stick_breaking import GEM
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Positive, check_count
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import html_text


class Seating(NamedTuple):
    """Who sits where in a franchise: for each restaurant the customers' `tables`, and the `dishes` of those tables."""

    tables: list[Ints]
    dishes: list[Ints]

    def labels(self) -> list[Ints]:
        """Return the dish of every customer, a list for each restaurant."""
        return [d[t] if t.size else t for t, d in zip(self.tables, self.dishes, strict=True)]

    def _repr_html_(self) -> str:
        return html_text(str(self))


@dataclass(frozen=True)
class ChineseRestaurantFranchise(Law):
    """Restaurants that share a menu.

    Examples
    --------
    >>> law = ChineseRestaurantFranchise(concentration=1.0, top_concentration=1.0)
    >>> seating = law.sample([4, 3], seed=0)
    >>> [t.tolist() for t in seating.tables], [d.tolist() for d in seating.dishes]
    ([[0, 1, 2, 3], [0, 1, 0]], [[0, 0, 0, 0], [0, 0]])
    >>> law.posterior(seating).predictive(1).round(4).tolist()
    [0.9643, 0.0357]
    """

    concentration: Positive = 1.0
    top_concentration: Positive = 1.0
    seated: Seating | None = field(default=None, repr=False)

    def sample(self, n: Sequence[int], seed: Seed = None) -> Seating:
        """Seat n_1, n_2, ... customers in restaurants 1, 2, ...; tables and dishes are numbered as they come up."""
        rng = generator(seed)
        for size in n:
            check_count("n", size)
        crp = ChineseRestaurant(self.concentration)
        known = self.seated or Seating([], [])
        if len(n) < len(known.tables):
            raise InvalidArgument(
                f"{len(known.tables)} restaurants are seated; n= has a number for each, 0 where none come"
            )
        tables, fresh = [], []
        for j, size in enumerate(n):
            seated = known.tables[j] if j < len(known.tables) else np.zeros(0, dtype=np.int64)
            tables.append(crp.posterior(seated).sample(size, rng))
            old = len(known.dishes[j]) if j < len(known.dishes) else 0
            fresh.append(max(int(tables[-1].max(initial=-1)) + 1 - old, 0))
        menu = ChineseRestaurant(self.top_concentration).posterior(_joined(known.dishes))
        ordered = np.split(menu.sample(sum(fresh), rng), np.cumsum(fresh)[:-1]) if len(n) else []
        dishes = [
            np.concatenate([known.dishes[j], d]) if j < len(known.dishes) else d
            for j, d in enumerate(ordered)
        ]
        return Seating(tables, dishes)

    def log_prob(self, x: Seating) -> float:
        """Return the log probability of a seating: of the tables in each restaurant and of the dishes of all tables."""
        if self.seated is not None:
            raise InvalidArgument(
                "log_prob weighs whole seatings; ask the franchise from before posterior(...)"
            )
        crp = ChineseRestaurant(self.concentration)
        rooms = sum(crp.log_prob(t) for t in x.tables)
        return rooms + ChineseRestaurant(self.top_concentration).log_prob(_joined(x.dishes))

    def posterior(self, data: Seating) -> "ChineseRestaurantFranchise":
        """Return the franchise in which these customers sit."""
        flat = labels_of(_joined(data.dishes))
        dishes = np.split(flat, np.cumsum([len(d) for d in data.dishes])[:-1])
        return replace(self, seated=Seating([labels_of(t) for t in data.tables], list(dishes)))

    def predictive(self, restaurant: int) -> Array:
        """Return the probabilities of each dish, and last of a new one, for the next customer of a restaurant."""
        known = self.seated or Seating([], [])
        menu = ChineseRestaurant(self.top_concentration).posterior(_joined(known.dishes)).predictive()
        if restaurant >= len(known.tables) or not known.tables[restaurant].size:
            return menu
        seats = ChineseRestaurant(self.concentration).predictive(known.tables[restaurant])
        found: Array = seats[-1] * menu
        np.add.at(found, known.dishes[restaurant], seats[:-1])
        return found


@dataclass(frozen=True)
class HierarchicalDirichletProcess(Law):
    """Random measures, one for each group, on atoms that all groups share.

    Examples
    --------
    >>> hdp = HierarchicalDirichletProcess(concentration=2.0, top_concentration=1.0)
    >>> atoms, weights = hdp.measures(groups=3, sticks=50, seed=0)
    >>> atoms.shape, weights.shape
    ((50,), (3, 50))
    >>> [g.round(2).tolist() for g in hdp.sample([3, 2], seed=1)]
    [[-2.71, -2.71, -1.89], [-1.89, -1.89]]
    >>> round(float(np.exp(hdp.log_prob_of_labels([[0], [0]]))), 6)
    0.5
    """

    concentration: Positive = 1.0
    top_concentration: Positive = 1.0
    base: Any = field(default_factory=lambda: Gaussian(0.0, 1.0))
    observed: tuple[tuple[float, ...], ...] = field(default=(), repr=False)

    @property
    def franchise(self) -> ChineseRestaurantFranchise:
        """The restaurants by which values are drawn."""
        return ChineseRestaurantFranchise(self.concentration, self.top_concentration)

    def sample(self, n: Sequence[int], seed: Seed = None) -> list[Array]:
        """Draw n_1, n_2, ... values for groups 1, 2, ..., after those seen; exact, nothing is cut off."""
        rng = generator(seed)
        if not self.observed:
            labels = self.franchise.sample(n, rng).labels()
            atoms = np.asarray(self.base.sample(int(_joined(labels).max(initial=-1)) + 1, rng))
            return [np.asarray(atoms[g]) for g in labels]
        found: list[list[float]] = [[] for _ in n]
        law = self
        for j, size in enumerate(n):
            for _ in range(size):
                atoms, chances = law.predictive(j)
                k = int(rng.choice(chances.size, p=chances))
                value = float(atoms[k] if k < atoms.size else np.asarray(self.base.sample(1, rng))[0])
                found[j].append(value)
                law = law.posterior([[] if i != j else [value] for i in range(len(n))])
        return [np.array(g) for g in found]

    def measures(self, groups: int, seed: Seed = None, sticks: int = 100) -> tuple[Array, Array]:
        """Draw the measures themselves: shared atoms (sticks,) and the groups' weights on them (groups, sticks).

        The last stick holds what is left of the top measure, so that every row sums to one.
        """
        check_count("groups", groups, 1)
        rng = generator(seed)
        top = GEM(self.top_concentration).sample(1, rng, sticks)[0]
        top[-1] = max(1.0 - top[:-1].sum(), 0.0)
        gammas = rng.standard_gamma(np.tile(np.maximum(self.concentration * top, 1e-300), (groups, 1)))
        gammas[:, -1] += 1e-300
        return np.asarray(self.base.sample(sticks, rng)), gammas / gammas.sum(axis=1, keepdims=True)

    def log_prob(self, x: Sequence[ArrayLike]) -> float:
        """Return the log density of the values of each group, which may repeat within and across groups."""
        seen = self._with(x)
        before = [np.asarray(g) for g in self.observed]
        return self._log_density(seen) - self._log_density(before)

    def _log_density(self, groups: list[Array]) -> float:
        flat = _joined(groups)
        if not flat.size:
            return 0.0
        return self.log_prob_of_labels(groups) + float(np.sum(self.base.log_prob(np.unique(flat))))

    def log_prob_of_labels(self, groups: Sequence[ArrayLike]) -> float:
        """Return the log probability of which items of all groups share an atom, with the tables summed out."""
        from scipy.special import gammaln, logsumexp

        sizes = [np.asarray(g).size for g in groups]
        flat = labels_of(_joined([np.asarray(g) for g in groups]))
        rows = np.split(flat, np.cumsum(sizes)[:-1])
        k = int(flat.max(initial=-1)) + 1
        if not k:
            return 0.0
        counts = np.array([np.bincount(r, minlength=k) for r in rows])
        stirling = _log_stirling(int(counts.max()))
        a, g = self.concentration, self.top_concentration
        total = np.zeros(1)
        for dish in range(k):
            tables = np.zeros(1)
            for n in counts[:, dish]:
                tables = _log_product(tables, stirling[n, : n + 1])
            t = np.arange(tables.size)
            with np.errstate(invalid="ignore"):
                served = np.where(t > 0, tables + np.log(g) + gammaln(np.maximum(t, 1)), -np.inf)
            total = _log_product(total, served)
        t = np.arange(total.size)
        seats = sum(float(gammaln(a + n) - gammaln(a)) for n in sizes)
        return float(logsumexp(total + t * np.log(a) - gammaln(g + t) + gammaln(g)) - seats)

    def posterior(self, data: Sequence[ArrayLike]) -> "HierarchicalDirichletProcess":
        """Return the process once these values of each group were seen."""
        return replace(self, observed=tuple(tuple(g.tolist()) for g in self._with(data)))

    def predictive(self, group: int) -> tuple[Array, Array]:
        """Return the values so far, and the probability of each and, last, of a new one, for a group's next item."""
        groups = [np.asarray(g, dtype=np.float64) for g in self.observed]
        groups += [np.zeros(0)] * max(group + 1 - len(groups), 0)
        atoms = np.unique(_joined(groups))
        fresh = np.inf  # a label that no value has
        before = self.log_prob_of_labels([np.searchsorted(atoms, g) for g in groups])
        chances = []
        for value in [*atoms.tolist(), fresh]:
            with_it = [np.append(g, value) if j == group else g for j, g in enumerate(groups)]
            chances.append(self.log_prob_of_labels([np.searchsorted(atoms, g) for g in with_it]) - before)
        found = np.exp(np.array(chances))
        return atoms, found / found.sum()

    def _with(self, groups: Sequence[ArrayLike]) -> list[Array]:
        new = [np.asarray(g, dtype=np.float64).reshape(-1) for g in groups]
        old = [np.asarray(g, dtype=np.float64) for g in self.observed]
        both = max(len(new), len(old))
        new += [np.zeros(0)] * (both - len(new))
        old += [np.zeros(0)] * (both - len(old))
        return [np.concatenate([a, b]) for a, b in zip(old, new, strict=True)]


def _joined(parts: Sequence[Any]) -> Any:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _log_stirling(n: int) -> Array:
    """Return log s(i, t), the unsigned Stirling numbers of the first kind, for i and t up to n."""
    found = np.full((n + 1, n + 1), -np.inf)
    found[0, 0] = 0.0
    for i in range(n):
        with np.errstate(divide="ignore"):
            found[i + 1, 1:] = np.logaddexp(found[i, :-1], np.log(i) + found[i, 1:])
    return found


def _log_product(a: Array, b: Array) -> Array:
    """Multiply polynomials whose coefficients are given by their logarithms."""
    found = np.full(a.size + b.size - 1, -np.inf)
    for i, x in enumerate(a):
        if x > -np.inf:
            found[i : i + b.size] = np.logaddexp(found[i : i + b.size], x + b)
    return found
