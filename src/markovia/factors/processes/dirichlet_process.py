"""The Dirichlet process and its two-parameter form, the Pitman-Yor process: random discrete measures around a base.

    G = sum_k pi_k delta(theta_k),    pi ~ GEM(concentration, discount),    theta_k ~ base

Values drawn from G, with G summed out, come from the urn of Blackwell and MacQueen (1973): a value seen n_k times comes
again with probability (n_k - discount) / (n + concentration), else a new one is drawn from the base. After n values with K
different ones, G is a Dirichlet(n_1 - d, ..., n_K - d, concentration + K d) mixture of those and of a fresh process with
concentration + K d. On any finite partition of the space the Dirichlet process is a Dirichlet law. Ferguson (1973); Pitman
and Yor (1997).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import finite_numbers
from markovia.factors.distributions.gaussian_families import Gaussian
from markovia.factors.processes.chinese_restaurant import ChineseRestaurant
from markovia.factors.processes.dirichlet import Dirichlet
from markovia.factors.processes.law import Law
from markovia.factors.processes.stick_breaking import GEM
from markovia.runtime.array_types import Array
from markovia.runtime.checks import DAMPING, NumberRange, check_count
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import html_text


class Measure(NamedTuple):
    """A discrete measure: `atoms`, their `weights`, and the mass `rest` of atoms that were cut off."""

    atoms: Array
    weights: Array
    rest: float

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n values in proportion to the weights; what was cut off is left out."""
        check_count("n", n)
        rng = generator(seed)
        return np.asarray(self.atoms[rng.choice(len(self.weights), n, p=self.weights / self.weights.sum())])

    def _repr_html_(self) -> str:
        return html_text(str(self))


@dataclass(frozen=True)
class PitmanYor(Law):
    """The Pitman-Yor process.

    Parameters
    ----------
    concentration, discount
        As in `ChineseRestaurant`.
    base
        Where atoms come from: anything with `sample(n, seed)` and `log_prob`, such as the families of `mk.exponential`; the
        standard normal by default.
    observed
        Values seen; `posterior` fills it.

    Examples
    --------
    >>> process = PitmanYor(1.0, 0.5)
    >>> process.sample(5, seed=0).round(2).tolist()
    [-0.73, -0.54, -0.32, 0.41, -0.32]
    >>> measure = process.measure(seed=0, sticks=100)
    >>> measure.atoms.shape, round(float(measure.weights.sum()) + measure.rest, 9)
    ((100,), 1.0)
    """

    concentration: Annotated[float, NumberRange(said="a number")] = 1.0
    discount: Annotated[float, DAMPING] = 0.0
    base: Any = field(default_factory=lambda: Gaussian(0.0, 1.0))
    observed: tuple[float, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        ChineseRestaurant(self.concentration, self.discount)
        if not callable(getattr(self.base, "sample", None)):
            raise InvalidArgument(
                f"base= needs sample(n, seed), as mk.exponential.Gaussian(0, 1) has, unlike {self.base!r}"
            )

    @property
    def partition(self) -> ChineseRestaurant:
        """The law of which values are equal, those seen included."""
        _, counts = self._atoms(())
        return ChineseRestaurant(self.concentration, self.discount, tuple(counts.tolist()))

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n values from one random measure, by the urn: exact, nothing is cut off."""
        rng = generator(seed)
        atoms, _ = self._atoms(())
        labels = self.partition.sample(n, rng)
        new = max(int(labels.max(initial=-1)) + 1 - atoms.size, 0)
        return np.asarray(np.concatenate([atoms, np.asarray(self.base.sample(new, rng))])[labels])

    def measure(self, seed: Seed = None, sticks: int = 100) -> Measure:
        """Draw the random measure itself: values seen first, then so many broken sticks."""
        rng = generator(seed)
        atoms, counts = self._atoms(())
        more = self.concentration + self.discount * counts.size
        shares = rng.dirichlet(np.append(counts - self.discount, more)) if counts.size else np.ones(1)
        fresh = shares[-1] * GEM(more, self.discount).sample(1, rng, sticks)[0]
        weights = np.append(shares[:-1], fresh)
        return Measure(
            np.append(atoms, self.base.sample(sticks, rng)), weights, max(1.0 - float(weights.sum()), 0.0)
        )

    def log_prob(self, x: ArrayLike) -> float:
        """Return the log density of values in this order: of which are equal, and of the different ones under the base."""
        values = np.concatenate([np.asarray(self.observed, dtype=np.float64), _values(x)])
        return self._log_density(values) - self._log_density(np.asarray(self.observed, dtype=np.float64))

    def _log_density(self, values: Array) -> float:
        if not values.size:
            return 0.0
        partition = ChineseRestaurant(self.concentration, self.discount)
        different = np.unique(values)
        return partition.log_prob(values) + float(np.sum(self.base.log_prob(different)))

    def posterior(self, data: ArrayLike) -> Any:
        """Return the process once these values were seen; it draws and weighs the next ones."""
        return replace(self, observed=(*self.observed, *_values(data).tolist()))

    def predictive(self, values: ArrayLike = ()) -> tuple[Array, Array]:
        """Return the different values so far, and the probability of each and, last, of a new one from the base."""
        atoms, counts = self._atoms(values)
        return atoms, ChineseRestaurant(
            self.concentration, self.discount, tuple(counts.tolist())
        ).predictive()

    def _atoms(self, values: ArrayLike) -> tuple[Array, Any]:
        """Return the different values seen, in order of appearance, and how often each was."""
        seen = np.concatenate([np.asarray(self.observed, dtype=np.float64), _values(values)])
        atoms, first, counts = np.unique(seen, return_index=True, return_counts=True)
        order = np.argsort(first)
        return atoms[order], counts[order]


class DirichletProcess(PitmanYor):
    """The Dirichlet process.

    Examples
    --------
    >>> dp = DirichletProcess(concentration=2.0)
    >>> atoms, chances = dp.predictive([0.5, 0.5, 1.0])
    >>> atoms.tolist(), chances.tolist()
    ([0.5, 1.0], [0.4, 0.2, 0.4])
    >>> dp.on_partition([0.5, 0.5]).concentration.tolist()
    [1.0, 1.0]
    >>> seen = dp.posterior([0.5, 0.5, -1.0])
    >>> seen.on_partition([0.5, 0.5], cell=lambda x: int(x > 0)).concentration.tolist()
    [2.0, 3.0]
    """

    def __init__(
        self, concentration: float = 1.0, base: Any = None, observed: tuple[float, ...] = ()
    ) -> None:
        super().__init__(concentration, 0.0, Gaussian(0.0, 1.0) if base is None else base, observed)

    def posterior(self, data: ArrayLike) -> "DirichletProcess":
        """Return the process after these values: concentration + n, and a base in which they are atoms."""
        return DirichletProcess(self.concentration, self.base, (*self.observed, *_values(data).tolist()))

    def on_partition(self, masses: ArrayLike, cell: Callable[[float], int] | None = None) -> Dirichlet:
        """Return the law of the masses of the cells of a partition of the space.

        Parameters
        ----------
        masses
            What the base gives to each cell.
        cell
            The cell, from 0, of a value; needed once values were seen.
        """
        shares = finite_numbers(masses, "masses")
        if shares.ndim != 1 or (shares <= 0).any() or abs(shares.sum() - 1.0) > 1e-9:
            raise InvalidArgument("masses are positive and sum to 1, one for each cell")
        alpha = self.concentration * shares
        if self.observed and cell is None:
            raise InvalidArgument("values were seen: cell= says which cell each of them lies in")
        for value in self.observed:
            assert cell is not None
            alpha[cell(value)] += 1.0
        return Dirichlet(alpha)

    def __repr__(self) -> str:
        return f"DirichletProcess(concentration={self.concentration:g}, base={self.base!r})"


def _values(values: ArrayLike) -> Array:
    found = finite_numbers(values, "the values")
    if found.ndim != 1:
        raise InvalidArgument(f"values are a list of numbers, not of shape {found.shape}")
    return found
