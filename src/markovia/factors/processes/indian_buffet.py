"""The Indian buffet process with one and two parameters: binary matrices with any number of columns.

The n-th guest takes a dish that m_k took before with probability m_k / (b + n - 1), and Poisson(a b / (b + n - 1)) new
ones; a is the mass, b the concentration (1 in the one-parameter form). Up to the order of columns (Griffiths and Ghahramani
2011, equation 9; Ghahramani, Griffiths and Sollich 2007 for two parameters)

    p([Z]) = (a b)^K / prod_h K_h!  exp(-a sum_n b / (b + n - 1))  prod_k B(m_k, N - m_k + b)

and for the matrix as drawn, columns in order of appearance, with prod_n K_1^(n)!, the dishes first taken by each guest, in
place of prod_h K_h! (equation 12). It is the limit of matrices with K columns whose chances are Beta(a b / K, b).
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.processes.feature_matrices import log_multiplicity, log_orders, matrix_of, order_of_rows
from markovia.factors.processes.law import Law
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Positive, check_choice, check_count
from markovia.runtime.seeds import Seed, generator


@dataclass(frozen=True)
class IndianBuffet(Law):
    """Random binary matrices: which items have which of endlessly many features.

    Parameters
    ----------
    mass
        Features that an item has on average.
    concentration
        How much items differ in theirs: the number of columns grows with it, that of features an item does not.
    taken, guests
        How often each dish was taken by the guests before; `posterior` fills them.

    Examples
    --------
    >>> ibp = IndianBuffet(mass=2.0)
    >>> ibp.sample(3, seed=1).tolist()
    [[1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]]
    >>> z = [[1, 1, 0], [1, 0, 1], [0, 0, 1]]
    >>> round(float(np.exp(ibp.log_prob(z))), 8), round(float(np.exp(ibp.log_prob(z, form="drawn"))), 9)
    (0.00189345, 0.000946723)
    >>> round(ibp.expected_columns(3), 4), round(IndianBuffet(2.0, concentration=2.0).expected_columns(3), 4)
    (3.6667, 4.3333)
    """

    mass: Positive = 1.0
    concentration: Positive = 1.0
    taken: tuple[int, ...] = field(default=(), repr=False)
    guests: int = field(default=0, repr=False)

    def sample(self, n: int, seed: Seed = None) -> Ints:
        """Seat n guests: (n, columns), those of earlier guests first, new ones in order of appearance."""
        check_count("n", n)
        rng = generator(seed)
        counts, rows = np.asarray(self.taken, dtype=np.int64), []
        for i in range(self.guests, self.guests + n):
            old = (rng.random(counts.size) * (self.concentration + i) < counts).astype(np.int64)
            new = rng.poisson(self.mass * self.concentration / (self.concentration + i))
            rows.append(np.concatenate([old, np.ones(new, dtype=np.int64)]))
            counts = np.append(counts, np.zeros(new, dtype=np.int64)) + rows[-1]
        found = order_of_rows(rows, n)
        return np.pad(found, ((0, 0), (0, max(len(self.taken) - found.shape[1], 0))))

    def log_prob(self, x: ArrayLike, form: Literal["class", "drawn"] = "class") -> float:
        """Return the log probability of a matrix up to the order of its new columns, or as drawn in order of appearance.

        Once guests were seen, the first columns are their dishes, in their order, taken again or not.
        """
        check_choice("form", form, ["class", "drawn"])
        from scipy.special import betaln, psi

        old, new = self._split(x)
        n, b = (
            old.shape[0],
            self.concentration + self.guests,
        )  # what is left is a buffet with this concentration
        seen, m = np.asarray(self.taken), old.sum(axis=0)
        repeated = betaln(seen + m, b - seen + n - m) - betaln(seen, b - seen)
        taken = new.sum(axis=0)
        fresh = betaln(taken, n - taken + b).sum() + taken.size * np.log(self.mass * self.concentration)
        rate = self.mass * self.concentration * float(psi(b + n) - psi(b))
        orders = log_multiplicity(new) if form == "class" else log_orders(new)
        return -np.inf if orders == -np.inf else float(repeated.sum() + fresh - rate - orders)

    def finite_log_prob(self, x: ArrayLike, columns: int) -> float:
        """Return the log probability, up to the order of columns, in the model with so many columns.

        Examples
        --------
        >>> z = [[1, 1, 0], [1, 0, 1], [0, 0, 1]]
        >>> [round(float(np.exp(IndianBuffet(2.0).finite_log_prob(z, k))), 8) for k in (5, 50, 50_000)]
        [0.00278502, 0.00203207, 0.00189359]
        """
        from scipy.special import betaln, gammaln

        self._fresh("finite_log_prob")
        check_count("columns", columns, 1)
        z = matrix_of(x)
        empty = columns - z.shape[1]
        if empty < 0:
            return -np.inf
        n, m, b = z.shape[0], np.append(z.sum(axis=0), 0), self.concentration
        share = self.mass * b / columns
        each = betaln(m + share, n - m + b) - betaln(share, b)
        orders = gammaln(columns + 1.0) - gammaln(empty + 1.0) - log_multiplicity(z)
        return float(each[:-1].sum() + empty * each[-1] + orders)

    def finite_sample(self, n: int, columns: int, seed: Seed = None) -> Ints:
        """Draw n rows from the model with so many columns, empty ones included."""
        self._fresh("finite_sample")
        check_count("columns", columns, 1)
        rng, b = generator(seed), self.concentration
        return (rng.random((n, columns)) < rng.beta(self.mass * b / columns, b, columns)).astype(np.int64)

    def expected_columns(self, n: int) -> float:
        """Return the expected number of columns after n guests; it has a Poisson law."""
        from scipy.special import psi

        check_count("n", n)
        self._fresh("expected_columns")
        b = self.concentration
        return float(self.mass * b * (psi(b + n) - psi(b)))

    def posterior(self, data: ArrayLike) -> "IndianBuffet":
        """Return the buffet after these guests, with their dishes first."""
        old, new = self._split(data)
        taken = np.append(np.asarray(self.taken, dtype=np.int64) + old.sum(axis=0), new.sum(axis=0))
        return replace(self, taken=tuple(taken.tolist()), guests=self.guests + old.shape[0])

    def predictive(self) -> tuple[Array, float]:
        """Return the chance of each dish to be taken by the next guest, and the rate of the Poisson number of new ones."""
        b = self.concentration + self.guests
        return np.asarray(self.taken) / b, self.mass * self.concentration / b

    def _split(self, matrix: ArrayLike) -> tuple[Ints, Ints]:
        z, k = np.asarray(matrix), len(self.taken)
        if z.ndim == 2 and z.shape[1] < k:
            raise InvalidArgument(
                f"{k} dishes were taken before; the matrix has a column for each, then new ones"
            )
        checked = matrix_of(
            np.column_stack([z, np.ones(len(z))]) if z.ndim == 2 else z
        )  # keeps the number of rows
        old = z[:, :k].astype(np.int64)
        return old, matrix_of(z[:, k:]) if z.shape[1] > k else np.zeros((checked.shape[0], 0), dtype=np.int64)

    def _fresh(self, verb: str) -> None:
        if self.guests:
            raise InvalidArgument(f"{verb} is of an empty buffet; here {self.guests} guests were seen")
