"""The Chinese restaurant process with one and two parameters, and the urn of Hoppe, which is the same law in colours.

Of n seated at K tables of sizes n_1, ..., n_K the next sits down at

    table k    with probability (n_k - discount) / (n + concentration)
    a new one  with probability (concentration + K discount) / (n + concentration)

The order of arrival does not matter: a partition has the probability (exchangeable partition probability function)

    prod_{k=1}^{K-1} (concentration + k discount) prod_k (1 - discount)_{n_k - 1} / (concentration + 1)_{n - 1}

with rising factorials (x)_m = x (x + 1) ... (x + m - 1). Pitman (1995), Exchangeable and partially exchangeable random
partitions; Aldous (1985); Hoppe (1984).
"""

from dataclasses import dataclass, field, replace
from math import log
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.processes.law import Law, labels_of, roots_of
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import DAMPING, NumberRange, check_count
from markovia.runtime.seeds import Seed, generator


@dataclass(frozen=True)
class ChineseRestaurant(Law):
    """Random partitions of any number of items; with a discount, those of the Pitman-Yor process.

    Parameters
    ----------
    concentration
        How readily new tables are opened; above minus the discount.
    discount
        From 0 up to but not 1; above 0, the number of tables grows as a power of the number of customers.
    seated
        Sizes of the tables at which customers sit already; `posterior` fills it.

    Examples
    --------
    >>> crp = ChineseRestaurant(concentration=1.0)
    >>> crp.sample(10, seed=1).tolist()
    [0, 0, 1, 1, 1, 1, 1, 1, 0, 2]
    >>> round(float(np.exp(crp.log_prob([0, 1, 0, 2, 2, 2]))) * 360, 9)
    1.0
    >>> round(crp.expected_tables(100), 3)
    5.187
    >>> crp.predictive([0, 1, 0]).tolist()
    [0.5, 0.25, 0.25]
    """

    concentration: Annotated[float, NumberRange(said="a number")] = 1.0
    discount: Annotated[float, DAMPING] = 0.0
    seated: tuple[int, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.concentration > -self.discount or not self.concentration < np.inf:
            least = f"-{self.discount:g}, minus the discount" if self.discount else "0"
            raise InvalidArgument(f"concentration= is a number above {least}, not {self.concentration!r}")

    def sample(self, n: int, seed: Seed = None) -> Ints:
        """Seat n customers; return their tables, numbered in order of opening (those already seated first)."""
        check_count("n", n)
        rng, seated = generator(seed), np.asarray(self.seated, dtype=np.int64)
        before, k = int(seated.sum()), seated.size
        labels = np.concatenate([np.repeat(np.arange(k), seated), np.zeros(n, dtype=np.int64)])
        founder = np.zeros(before + n, dtype=bool)
        founder[np.cumsum(seated) - seated] = True
        there = before + np.arange(n)
        a, d = self.concentration, self.discount
        chance = rng.random(n)
        if d == 0.0:
            founder[before:] = chance * (there + a) < a
        else:
            for i in range(n):  # each new table makes the next one likelier
                if not before + i or chance[i] * (before + i + a) < a + d * k:
                    founder[before + i] = True
                    k += 1
        tables = np.cumsum(founder) - founder  # before each customer
        # a table of n_k draws with weight n_k - d: its founder has 1 - d, the others 1 each
        others, founders = np.flatnonzero(~founder), np.flatnonzero(founder)
        at = tables[before:]
        ordinary = rng.random(n) * (there - d * at) < there - at
        pick = (rng.random(n) * np.where(ordinary, there - at, at)).astype(np.int64)
        links = np.arange(before + n)
        joined = np.flatnonzero(~founder[before:])
        common, leading = joined[ordinary[joined]], joined[~ordinary[joined]]
        links[before + common] = others[pick[common]]
        links[before + leading] = founders[pick[leading]]
        labels[before:] = np.where(founder[before:], at, 0)
        return np.asarray(labels[roots_of(links)][before:])

    def log_prob(self, x: ArrayLike) -> float:
        """Return the log probability that the next customers sit like this; labels below the tables seated are those."""
        if not self.seated:
            sizes = np.bincount(labels_of(x))
            return self.log_prob_of_sizes(sizes) if sizes.size else 0.0
        return self.log_prob_of_sizes(self._with(x)) - self.log_prob_of_sizes(self.seated)

    def log_prob_of_sizes(self, sizes: ArrayLike) -> float:
        """Return the log probability of one partition whose groups have these sizes (the EPPF)."""
        from scipy.special import gammaln

        n_k = np.asarray(sizes)
        if n_k.ndim != 1 or not n_k.size or n_k.dtype.kind not in "iu" or n_k.min() < 1:
            raise InvalidArgument(f"sizes are whole numbers, 1 or more, of each group, not {sizes!r}")
        a, d = self.concentration, self.discount
        opened = np.log(a + d * np.arange(1, n_k.size)).sum() if d else (n_k.size - 1) * log(a)
        grown = (gammaln(n_k - d) - gammaln(1.0 - d)).sum()
        return float(opened + grown - gammaln(a + n_k.sum()) + gammaln(a + 1.0))

    def posterior(self, data: ArrayLike) -> "ChineseRestaurant":
        """Return the restaurant with these customers seated, which draws and weighs the next ones.

        Examples
        --------
        >>> ChineseRestaurant(2.0).posterior([0, 0, 1]).predictive().tolist()
        [0.4, 0.2, 0.4]
        """
        return replace(self, seated=tuple(self._with(data).tolist()))

    def predictive(self, labels: ArrayLike = ()) -> Array:
        """Return the probabilities of each table, and last of a new one, for the customer after these."""
        sizes = self._with(labels)
        weights = np.append(sizes - self.discount, self.concentration + self.discount * sizes.size)
        return np.asarray(weights / weights.sum()) if sizes.size else np.ones(1)

    def tables_law(self, n: int) -> Array:
        """Return the probabilities of 0, 1, ..., n tables after n customers; O(n^2).

        Examples
        --------
        >>> ChineseRestaurant(1.0).tables_law(3).round(6).tolist()
        [0.0, 0.333333, 0.5, 0.166667]
        """
        check_count("n", n)
        self._empty("tables_law")
        a, d = self.concentration, self.discount
        law, k = np.zeros(n + 1), np.arange(n + 1)
        law[0] = 1.0
        for i in range(n):
            opens = (a + d * k) / (i + a) if i else np.ones(n + 1)
            law[1:] = law[1:] * (1.0 - opens[1:]) + law[:-1] * opens[:-1]
            law[0] *= 1.0 - opens[0]
        return law

    def expected_tables(self, n: int) -> float:
        """Return the expected number of tables after n customers: a sum of a / (a + i) without discount."""
        from scipy.special import gammaln, psi

        check_count("n", n)
        self._empty("expected_tables")
        a, d = self.concentration, self.discount
        if not n:
            return 0.0
        if not d:
            return float(a * (psi(a + n) - psi(a)))
        grown = gammaln(a + d + n) - gammaln(a + n) + gammaln(a + 1.0) - gammaln(a + d)
        return float((np.exp(grown) - a) / d)

    def _empty(self, verb: str) -> None:
        if self.seated:
            raise InvalidArgument(f"{verb} is of an empty restaurant; here {sum(self.seated)} are seated")

    def _with(self, labels: ArrayLike) -> Ints:
        """Return the sizes of the tables, further customers included."""
        k = len(self.seated)
        further = np.asarray(labels)
        if k and further.size:
            if further.ndim != 1 or further.dtype.kind not in "iu" or further.min() < 0:
                raise InvalidArgument(
                    f"with {k} tables seated, labels are whole numbers: 0 to {k - 1} for those, others for new ones"
                )
            new = further >= k
            further = further.copy()
            further[new] = k + labels_of(further[new])
            sizes = np.bincount(further, minlength=k)
            sizes[:k] += np.asarray(self.seated, dtype=np.int64)
            return sizes
        found = np.bincount(labels_of(labels)) if further.size else np.zeros(0, dtype=np.int64)
        return np.asarray(self.seated, dtype=np.int64) if k else found


class HoppeUrn(ChineseRestaurant):
    """An urn with a black ball of some mass: when it is drawn, a ball of a new colour goes in, else one of the same colour.

    Colours are numbered as they come up: the Chinese restaurant without discount.

    Examples
    --------
    >>> urn = HoppeUrn(mass=2.0)
    >>> urn.predictive([0, 0, 1]).tolist()
    [0.4, 0.2, 0.4]
    """

    def __init__(self, mass: float = 1.0, seated: tuple[int, ...] = ()) -> None:
        super().__init__(mass, 0.0, seated)

    def posterior(self, data: ArrayLike) -> "HoppeUrn":
        """Return the urn after these draws."""
        return HoppeUrn(self.concentration, tuple(self._with(data).tolist()))

    def __repr__(self) -> str:
        return f"HoppeUrn(mass={self.concentration:g})"
