"""What all emission families share: the distributions of observations in the states of a hidden chain.

A family sees only different observations, `rows`, and how much of each belongs to each state, `weights (rows, states)`;
which step shows which row is the chain's affair. A `Components` does not change: learning returns another one.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import InvalidArgument, UnsupportedModel, did_you_mean
from markovia.inference.sequences.hidden_chain import Observed
from markovia.learning.components.block_passes import BlockPass
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import numbers

NOTHING = 1e-10
"""The weight below which a state got no data."""


@dataclass(frozen=True)
class Observations:
    """The different observations of some sequences; a step without one has the code `len(rows)`.

    `apart` says that no two steps share a row. Where states were told, codes are places in `kinds`, pairs of a row and
    a state (-1 where that is unknown). `shares` are weights of the sequences; None where all count the same. `inputs` has a
    row for each step, where something drives the chain.
    """

    rows: Any
    codes: Ints
    offsets: Ints
    apart: bool = False
    kinds: tuple[Ints, Ints] | None = None
    shares: Array | None = None
    inputs: Array | None = None

    @property
    def steps(self) -> float:
        """How many steps there are, by the weight of their sequences."""
        return self.total(np.diff(self.offsets).astype(np.float64))

    def total(self, log_probs: Array) -> float:
        """Return the sum of what each sequence has, by weight."""
        return float(log_probs.sum() if self.shares is None else self.shares @ log_probs)

    def seen_by(self, emission: "Components") -> Observed:
        """Return the log densities of what is different in all states; minus infinity in states other than the told one."""
        logs = np.concatenate([emission.log_densities(self.rows), np.zeros((1, emission.n_states))])
        if self.kinds is not None:
            of, told = self.kinds
            logs = logs[of]
            labels = getattr(emission, "labels", np.arange(emission.n_states))
            logs[(told[:, None] >= 0) & (told[:, None] != labels)] = -np.inf
        return Observed(logs, self.codes, self.offsets, self.apart)

    def weights(self, sums: Array) -> Array:
        """Return sums of posteriors, as `HiddenChain.expect` gives them, by row."""
        if self.kinds is None:
            return sums[:-1]
        found = np.zeros((len(self.rows) + 1, sums.shape[1]))
        np.add.at(found, self.kinds[0], sums)
        return found[:-1]

    def told(self, labels: Ints) -> "Observations":
        """Return the same observations with the state of each step, -1 where it is not known."""
        width = int(labels.max()) + 2
        kinds, codes = np.unique(self.codes * width + labels + 1, return_inverse=True)
        of, state = np.divmod(kinds, width)
        return replace(self, codes=codes, kinds=(of, state - 1))


class Components(ABC):
    """The distributions of observations, one a state."""

    names: ClassVar[tuple[str, ...]]
    """The parameters, each an array with one entry a state."""
    priors: ClassVar[tuple[str, ...]] = ()
    """What `prior` may say."""

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self.names}

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(getattr(self, self.names[0]))

    @property
    def width(self) -> int | None:
        """The number of columns; None where reading sees to it."""
        return int(next(iter(self.params.values())).shape[-1])

    @property
    @abstractmethod
    def n_free(self) -> int:
        """The number of free parameters."""

    @abstractmethod
    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state."""

    @abstractmethod
    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the emission that makes weighted rows (and the prior) most probable; states without data keep theirs."""

    @abstractmethod
    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some states."""

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        return 0.0

    def whole_prior(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> dict[str, Any]:
        """Return a conjugate prior with what it does not say, for rows by weight, (rows, states)."""
        raise UnsupportedModel(
            "a posterior by Gibbs sampling is for categorical, multinomial, bernoulli, poisson and gaussian emissions, "
            f"not for {type(self).__name__}"
        )

    def block_pass(self, *, gaps: bool = False, origin: Array | None = None) -> BlockPass | None:
        """Return a pass over blocks of rows, where sums over rows are all that learning needs; else None.

        With `gaps` cells may be missing (NaN). An `origin` keeps sums of different passes comparable.
        """
        return None

    def base(self, rows: Any) -> Array | float:
        """Return what a pass leaves out of the log density of each row: what is the same in all states."""
        return 0.0


def checked_prior(known: Sequence[str], prior: Any, what: str = "emission_prior") -> dict[str, Any]:
    """Return a prior by name, each a number or an array; `known` are the names that components have."""
    if prior is None:
        return {}
    if not isinstance(prior, Mapping):
        raise InvalidArgument(f"{what}= is a mapping with {', '.join(known)}, not {prior!r}")
    for name in prior:
        if name not in known:
            said = did_you_mean(name, known)
            raise InvalidArgument(
                f"{what}= has no {name!r}{said}; it has {', '.join(known) or 'nothing'} here"
            )
    return {name: numbers(value, f"{what}= says numbers for {name}") for name, value in prior.items()}


def whole_steps(sequences: Sequences, *, what: str) -> tuple[Array, Flags]:
    """Return the values as numbers and which steps are there; a step is missing in whole or not at all."""
    values = sequences.numbers()
    gaps = np.isnan(values)
    missing = gaps.all(axis=1)
    partly = gaps.any(axis=1) & ~missing
    if partly.any():
        row = int(np.argmax(partly))
        raise InvalidArgument(
            f"{sequences.at(row)} misses some of its entries; {what} emissions need whole steps, or steps missing in whole"
        )
    return values, ~missing


def distinct(values: Array, there: Flags, offsets: Ints) -> Observations:
    """Return observations whose equal steps share a row."""
    codes = np.full(len(values), 0, dtype=np.int64)
    if values.shape[1] == 1:
        rows, found = np.unique(values[there, 0], return_inverse=True)
        rows = rows[:, None]
    else:
        rows, found = np.unique(values[there], axis=0, return_inverse=True)
    codes[there] = found.ravel()
    codes[~there] = len(rows)
    return Observations(rows, codes, offsets)


def separate(values: Array, there: Flags, offsets: Ints) -> Observations:
    """Return observations with a row for each step that is there."""
    codes = np.cumsum(there) - 1
    codes[~there] = int(there.sum())
    return Observations(np.ascontiguousarray(values[there]), codes, offsets, apart=True)


def probabilities(given: Any, what: str, shape: tuple[int | None, ...]) -> Array:
    """Return checked distributions along the last axis."""
    found = parameter(given, what, shape)
    if (found < 0.0).any() or not np.allclose(found.sum(axis=-1), 1.0, rtol=0.0, atol=1e-6):
        raise InvalidArgument(
            f"{what} are probabilities, 0 or more, that add up to 1 {'in each row' if found.ndim > 1 else ''}".rstrip()
        )
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def parameter(given: Any, what: str, shape: tuple[int | None, ...]) -> Array:
    """Return finite numbers of a shape, in which None is any length."""
    found = numbers(given, f"{what} are numbers")
    if found.ndim != len(shape) or any(
        w is not None and w != n for w, n in zip(shape, found.shape, strict=True)
    ):
        said = " x ".join("any" if n is None else str(n) for n in shape)
        raise InvalidArgument(
            f"{what} have shape {said}, not {' x '.join(map(str, found.shape)) or 'a number'}"
        )
    if not np.isfinite(found).all():
        raise InvalidArgument(f"{what} has an entry that is not finite")
    return found


def column_sums(values: Array) -> Array:
    """Return the sum of each column; as a product, which is much quicker along long columns."""
    return np.asarray(np.ones(len(values)) @ values)


def clusters(rows: Array, k: int, rng: np.random.Generator, weights: Array | None = None) -> Ints:
    """Return a cluster of each row by k-means; fewer different rows than clusters leave some empty."""
    k = min(k, len(np.unique(rows, axis=0))) if len(rows) < 1_000 else k
    spread = rows.std(axis=0)
    scaled = (rows - rows.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    few = rng.choice(len(rows), 20_000, replace=False) if len(rows) > 20_000 else slice(None)
    means = k_means(scaled[few], k, rng, None if weights is None else weights[few])
    return np.asarray(means.predict(scaled), dtype=np.int64)


def k_means(points: Array, k: int, rng: Any, shares: Array | None = None, *, steps: int = 300) -> Any:
    """Return scikit-learn's k-means of points, from k-means++ and some steps."""
    from sklearn.cluster import KMeans

    state = rng if isinstance(rng, np.random.RandomState) else int(rng.integers(2**31 - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer different points than clusters leave some empty
        return KMeans(k, n_init=1, max_iter=steps, random_state=state).fit(points, sample_weight=shares)
