"""Emissions that count or name: categorical, Bernoulli, Poisson and multinomial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import InvalidArgument, warn_user
from markovia.inference.collapsed.conjugate_rows import MULTINOMIAL, ConjugateRows
from markovia.learning.components.block_passes import BlockPass, LinearPass, has_gaps, stretches, turned
from markovia.learning.components.conjugate import BetaLaw, DirichletLaw, GammaLaw, kernel_rows
from markovia.learning.components.families import (
    NOTHING,
    Components,
    Observations,
    clusters,
    distinct,
    parameter,
    probabilities,
    whole_steps,
)
from markovia.runtime.array_types import Array, Codes, Ints


@dataclass(frozen=True)
class Categorical(DirichletLaw):
    """One of some symbols; `probs (states, symbols)`.

    Examples
    --------
    >>> two = Categorical(np.array([[0.9, 0.1], [0.2, 0.8]]), ("a", "b"))
    >>> two.learned(np.array([[0], [1]]), np.array([[1.0, 0.0], [1.0, 3.0]]), {}).probs.tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """

    probs: Array
    symbols: tuple[Any, ...]
    names: ClassVar = ("probs",)
    priors: ClassVar = ("concentration",)

    @classmethod
    def of(cls, k: int, params: Mapping[str, Any], *, symbols: Sequence[Any] | None = None) -> Self:
        """Return checked emissions from parameters."""
        probs = probabilities(params["probs"], "'probs'", (k, None))
        known = tuple(range(probs.shape[1])) if symbols is None else tuple(symbols)
        if len(known) != probs.shape[1] or len(set(known)) != len(known):
            raise InvalidArgument(f"symbols= are {probs.shape[1]} different values, one a column of 'probs'")
        return cls(probs, known)

    @classmethod
    def started(
        cls, seen: Observations, k: int, rng: np.random.Generator, *, symbols: Sequence[Any] | None = None
    ) -> Self:
        """Return random emissions for some observations."""
        known = tuple(symbols) if symbols is not None else tuple(range(int(seen.rows.max(initial=0)) + 1))
        return cls(rng.dirichlet(np.ones(len(known)), k), known)

    @property
    def width(self) -> int:
        """The number of columns."""
        return 1

    @staticmethod
    def symbols_in(sequences: Sequences) -> tuple[Any, ...]:
        """Return the symbols of sequences: 0 ... n-1 where they are whole numbers, else what is there, in order."""
        values = sequences.values
        if values.dtype.kind in "iub":
            if values.min() < 0:
                row = int(np.argmin(values.min(axis=1)))
                raise InvalidArgument(
                    f"{sequences.at(row)} has the symbol {values.min()}; say symbols= where they are not 0, 1, 2, ..."
                )
            return tuple(range(int(values.max()) + 1))
        cells = [c for c in values.ravel().tolist() if not _gap(c)]
        if all(isinstance(c, int | float) and not isinstance(c, bool) and c == int(c) >= 0 for c in cells):
            return tuple(range(int(max(cells, default=0)) + 1))
        if values.dtype.kind == "f" and 2 * (different := len(set(cells))) > len(cells) > 9:
            warn_user(
                f"{different} of the {len(cells)} numbers are different, and each is taken for a symbol of its own; "
                "for measurements take a model of numbers (HMM: emission='gaussian')"
            )
        try:
            return tuple(sorted(set(cells)))
        except TypeError:
            strange = next((c for c in cells if not isinstance(c, str | int | float)), None)
            if strange is not None:
                raise InvalidArgument(
                    f"a symbol is text or a number, and {strange!r:.60} is neither"
                ) from None
            word, number = (next(c for c in cells if isinstance(c, str) is text) for text in (True, False))
            raise InvalidArgument(
                f"{word!r} and {number!r} are both symbols, and text and numbers have no order together; say symbols="
            ) from None

    def read(self, sequences: Sequences) -> Observations:
        """Return the symbols of sequences as observations."""
        return read_symbols(sequences, self.symbols)

    @property
    def n_free(self) -> int:
        """Return the number of free parameters."""
        return self.n_states * (len(self.symbols) - 1)

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.probs.T)
        return np.asarray(logs[rows[:, 0].astype(np.int64)])

    def features(self, rows: Any) -> Any:
        """Return which symbol each row is, (symbols, rows)."""
        from scipy.sparse import csc_array

        each = np.arange(len(rows) + 1)
        return csc_array(
            (np.ones(len(rows)), rows[:, 0].astype(np.int64), each), (self.probs.shape[1], len(rows))
        )

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the emission that makes weighted rows most probable."""
        counts = np.zeros_like(self.probs)
        np.add.at(counts.T, rows[:, 0].astype(np.int64), weights)
        return replace(self, probs=shares(counts, self.probs, prior))

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some states."""
        codes = chosen(self.probs[states], rng)
        made = np.empty(len(self.symbols), dtype=object)
        made[:] = self.symbols
        return (codes if self.symbols == tuple(range(len(self.symbols))) else made[codes])[:, None]

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        return dirichlet(self.probs, prior)


def read_symbols(sequences: Sequences, symbols: Sequence[Any]) -> Observations:
    """Return steps of one symbol each as observations, rows being places of symbols."""
    values = sequences.values
    if values.shape[1] != 1:
        raise InvalidArgument(f"categorical emissions have one symbol a step, not {values.shape[1]} columns")
    n = len(symbols)
    column = values[:, 0]
    if column.dtype.kind in "iub" and tuple(symbols) == tuple(range(n)):
        codes = column.astype(np.int64)
        wrong = (codes < 0) | (codes >= n)
    else:
        place = {symbol: i for i, symbol in enumerate(symbols)}
        codes = np.array([n if _gap(c) else place.get(c, -1) for c in column.tolist()], dtype=np.int64)
        wrong = codes < 0
    if wrong.any():
        row = int(np.argmax(wrong))
        shown = ", ".join(map(repr, symbols[:12])) + (", ..." if n > 12 else "")
        raise InvalidArgument(
            f"{sequences.at(row)} has {column[row]!r}, which is none of the symbols {shown}"
            if not isinstance(column[row], np.generic)
            else f"{sequences.at(row)} has {column[row].item()!r}, which is none of the symbols {shown}"
        )
    return Observations(np.arange(n)[:, None], codes, sequences.offsets)


def _gap(cell: Any) -> bool:
    return cell is None or cell != cell


@dataclass(frozen=True)
class _Counting(Components):
    """Columns of whole numbers."""

    @classmethod
    def read(cls, sequences: Sequences) -> Observations:
        """Return whole numbers, 0 or more, as observations."""
        what = cls.__name__.lower()
        values, there = whole_steps(sequences, what=what)
        found = values[there]
        wrong = ((found < 0.0) | (found != np.floor(found)) | (found > cls._most())).any(axis=1)
        if wrong.any():
            row = int(np.flatnonzero(there)[np.argmax(wrong)])
            most = "0 or 1" if cls._most() == 1.0 else "whole numbers, 0 or more"
            raise InvalidArgument(
                f"{sequences.at(row)} has {values[row].tolist()}; {what} emissions are {most}"
            )
        return distinct(values, there, sequences.offsets)

    @classmethod
    def _most(cls) -> float:
        return np.inf

    @classmethod
    def started(cls, seen: Observations, k: int, rng: np.random.Generator) -> Self:
        """Return emissions that begin with clusters of the observations."""
        many = np.bincount(seen.codes, minlength=len(seen.rows) + 1)[: len(seen.rows)].astype(np.float64)
        weights = many[:, None] * (0.1 / k + rng.random((len(many), k)) * 0.05)
        weights[np.arange(len(many)), clusters(seen.rows.astype(np.float64), k, rng, many)] += many
        blank = np.full((k, seen.rows.shape[1]), 0.5)
        made: Self = cls(blank)  # type: ignore[call-arg]
        return made.learned(seen.rows, weights, {})


@dataclass(frozen=True)
class Poisson(GammaLaw, _Counting):
    """Columns of independent counts; `rates (states, columns)`."""

    rates: Array = field(default_factory=lambda: np.ones((1, 1)))
    names: ClassVar = ("rates",)
    priors: ClassVar = ("shape", "rate")

    @classmethod
    def of(cls, k: int, params: Mapping[str, Any]) -> Self:
        """Return checked emissions from parameters."""
        given = params["rates"]
        given = np.reshape(given, (-1, 1)) if np.ndim(given) == 1 else given
        rates = parameter(given, "'rates'", (k, None))
        if (rates < 0.0).any():
            raise InvalidArgument("'rates' are 0 or more")
        return cls(rates)

    @property
    def n_free(self) -> int:
        """Return the number of free parameters."""
        return self.rates.size

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state."""
        return passed(self, rows)

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the emission that makes weighted rows most probable."""
        return self._counted(weights.sum(axis=0)[:, None], weights.T @ rows, prior)

    def _counted(self, size: Array, sums: Array, prior: Mapping[str, Any]) -> Self:
        top = sums + prior.get("shape", 1.0) - 1.0
        kept = np.where(size > NOTHING, np.maximum(top, 0.0), self.rates)
        return replace(self, rates=kept / np.where(size > NOTHING, size + prior.get("rate", 0.0), 1.0))

    def block_pass(self, *, gaps: bool = False, origin: Array | None = None) -> BlockPass:
        """Return a pass over blocks of rows."""
        d = self.rates.shape[1]
        with np.errstate(divide="ignore"):
            logs = np.log(self.rates)
        if not gaps:
            return LinearPass(
                turned,
                logs,
                -self.rates.sum(axis=1),
                lambda size, sums, prior: self._counted(size[:, None], sums, prior),
            )
        return LinearPass(
            lambda block: np.vstack([np.nan_to_num(block.T), ~np.isnan(block.T)]),
            np.hstack([logs, -self.rates]),
            np.zeros(self.n_states),
            lambda size, sums, prior: self._counted(sums[:, d:], sums[:, :d], prior),
        )

    def base(self, rows: Any) -> Array:
        """Return what is the same in all states."""
        return -log_factorials(rows)

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some states."""
        return rng.poisson(self.rates[states])

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        from scipy.special import xlogy

        return float(
            np.sum(xlogy(prior.get("shape", 1.0) - 1.0, self.rates) - prior.get("rate", 0.0) * self.rates)
        )


@dataclass(frozen=True)
class Bernoulli(BetaLaw, _Counting):
    """Columns of independent zeros and ones; `probs (states, columns)` of ones.

    Where they were counted, `complements` are the probabilities of zeros with all their digits, which 1 - probs loses near
    one; `replace` forgets them.
    """

    probs: Array = field(default_factory=lambda: np.full((1, 1), 0.5))
    complements: Array | None = field(default=None, init=False, compare=False)
    names: ClassVar = ("probs",)
    priors: ClassVar = ("a", "b")

    @classmethod
    def of(cls, k: int, params: Mapping[str, Any]) -> Self:
        """Return checked emissions from parameters."""
        given = params["probs"]
        given = np.reshape(given, (-1, 1)) if np.ndim(given) == 1 else given
        probs = parameter(given, "'probs'", (k, None))
        if ((probs < 0.0) | (probs > 1.0)).any():
            raise InvalidArgument("'probs' are between 0 and 1")
        return cls(probs)

    @classmethod
    def _most(cls) -> float:
        return 1.0

    @property
    def n_free(self) -> int:
        """Return the number of free parameters."""
        return self.probs.size

    @property
    def zeros(self) -> Array:
        """The probabilities of zeros."""
        return 1.0 - self.probs if self.complements is None else self.complements

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state; a sparse table misses no cell."""
        never, always = self.probs == 0.0, self.zeros == 0.0
        certain = bool(never.any() or always.any())
        log_p = np.log(np.where(never, 1.0, self.probs)).T
        log_q = np.log(np.where(always, 1.0, self.zeros)).T
        base, slope = log_q.sum(axis=0), log_p - log_q
        if not isinstance(rows, np.ndarray):
            logs: Array = rows @ slope + base
            if certain:
                excluded = rows @ (never.astype(float) - always).T + always.sum(axis=1)
                logs[excluded > 0.0] = -np.inf
            return logs
        gaps = has_gaps(rows)
        result = np.empty((len(rows), self.n_states))
        for low, high in stretches(len(rows), rows.shape[1]):
            ones = rows[low:high]
            if not gaps:
                zeros = 1.0 - ones if certain else None
                result[low:high] = ones @ slope + base
            else:
                known = ~np.isnan(ones)
                ones = np.where(known, ones, 0.0)
                zeros = known - ones
                result[low:high] = ones @ log_p + zeros @ log_q
            if certain:
                excluded = ones @ never.T.astype(float) + zeros @ always.T.astype(float)
                result[low:high][excluded > 0.0] = -np.inf
        return result

    def class_sums(self, rows: Any, members: Codes, weights: Array | None) -> Array:
        """Return the weights of ones and of zeros, (states, 2 columns), of rows whose states are `members`."""
        k, d = self.probs.shape
        places = np.arange(len(members))
        each = np.ones(len(members)) if weights is None else weights
        seen: Any = np.bincount(members, weights=each, minlength=k)[:, None]
        if not isinstance(rows, np.ndarray):
            from scipy.sparse import csr_array

            ones = (csr_array((each, (members, places)), (k, len(members))) @ rows).toarray()
        else:
            ones, gaps = np.zeros((k, d)), has_gaps(rows)
            seen = np.zeros((k, d)) if gaps else seen
            for low, high in stretches(len(rows), d):
                belongs = np.zeros((k, high - low))
                belongs[members[low:high], places[: high - low]] = each[low:high]
                part = rows[low:high]
                if gaps:
                    known = ~np.isnan(part)
                    part = np.where(known, part, 0.0)
                    seen += belongs @ known
                ones += belongs @ part
        zeros = np.maximum(seen - ones, 0.0)
        if weights is not None:  # a difference of rounded sums is no zero that was seen
            zeros[self.class_sums(rows, members, None)[:, d:] == 0.0] = 0.0
        return np.hstack([ones, zeros])

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the emission that makes weighted rows most probable."""
        ones = weights.T @ rows
        return self._counted(ones, weights.sum(axis=0)[:, None] - ones, prior)

    def _counted(self, ones: Array, zeros: Array, prior: Mapping[str, Any]) -> Self:
        one = np.maximum(ones + (prior.get("a", 1.0) - 1.0), 0.0)
        zero = np.maximum(zeros + (prior.get("b", 1.0) - 1.0), 0.0)
        fed, total = ones + zeros > NOTHING, np.maximum(one + zero, NOTHING)
        found = replace(self, probs=np.where(fed, one / total, self.probs))
        object.__setattr__(found, "complements", np.where(fed, zero / total, self.zeros))
        return found

    def block_pass(self, *, gaps: bool = False, origin: Array | None = None) -> BlockPass:
        """Return a pass over blocks of rows."""
        d = self.probs.shape[1]
        with np.errstate(divide="ignore"):
            ones, zeros = np.log(self.probs), np.log(self.zeros)
        if not gaps and np.isfinite(zeros).all():
            return LinearPass(
                turned,
                ones - zeros,
                zeros.sum(axis=1),
                lambda size, sums, prior: self._counted(sums, size[:, None] - sums, prior),
            )
        return LinearPass(
            _ones_and_zeros,
            np.hstack([ones, zeros]),
            np.zeros(self.n_states),
            lambda size, sums, prior: self._counted(sums[:, :d], sums[:, d:], prior),
        )

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some states."""
        return (rng.random((len(states), self.probs.shape[1])) < self.probs[states]).astype(np.int64)

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        from scipy.special import xlog1py, xlogy

        a, b = prior.get("a", 1.0), prior.get("b", 1.0)
        return float(np.sum(xlogy(a - 1.0, self.probs) + xlog1py(b - 1.0, -self.probs)))


@dataclass(frozen=True)
class Multinomial(DirichletLaw, _Counting):
    """Counts of kinds, whose total is given; `probs (states, kinds)`.

    Draws have as many in all as `total` says.
    """

    probs: Array = field(default_factory=lambda: np.ones((1, 1)))
    total: int = 1
    names: ClassVar = ("probs",)
    priors: ClassVar = ("concentration",)

    @classmethod
    def of(cls, k: int, params: Mapping[str, Any]) -> Self:
        """Return checked emissions from parameters."""
        return cls(probabilities(params["probs"], "'probs'", (k, None)))

    @property
    def n_free(self) -> int:
        """Return the number of free parameters."""
        return int(self.probs.size - len(self.probs))

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state."""
        return passed(self, rows)

    def block_pass(self, *, gaps: bool = False, origin: Array | None = None) -> BlockPass | None:
        """Return a pass over blocks of rows, which miss no cells."""
        if gaps:
            return None
        with np.errstate(divide="ignore"):
            logs = np.log(self.probs)
        return LinearPass(
            self.features,
            logs,
            np.zeros(self.n_states),
            lambda size, sums, prior: replace(self, probs=shares(sums, self.probs, prior)),
        )

    def base(self, rows: Any) -> Array:
        """Return what is the same in all states."""
        from scipy.special import gammaln

        return np.asarray(gammaln(np.asarray(rows.sum(axis=1)).ravel() + 1.0) - log_factorials(rows))

    def features(self, rows: Any) -> Any:
        """Return the counts, (kinds, rows)."""
        return rows.T

    def collapsed(self, rows: Any, prior: Mapping[str, Any], most: int = 0) -> ConjugateRows:
        """Return rows as compiled samplers read them."""
        each = np.broadcast_to(prior["concentration"], rows.shape[1])
        return kernel_rows(MULTINOMIAL, (each.sum(), 0.0), (each,), rows, most)

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the emission that makes weighted rows most probable."""
        total = round(float(rows.sum(axis=1).mean())) if len(rows) else self.total
        return replace(self, probs=shares(weights.T @ rows, self.probs, prior), total=total)

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some states."""
        return rng.multinomial(self.total, self.probs[states])

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        return dirichlet(self.probs, prior)


def passed(own: Components, rows: Any) -> Array:
    """Return the log densities that a pass over all rows gives, (rows, states)."""
    gaps = isinstance(rows, np.ndarray) and bool(np.isnan(rows.sum()))
    found = own.block_pass(gaps=gaps)
    assert found is not None
    return np.asarray(found.logs(rows)[0].T + np.reshape(own.base(rows), (-1, 1)))


def log_factorials(rows: Any) -> Array:
    """Return the sum of log x! over each row, without missing cells."""
    from scipy.special import gammaln

    if not isinstance(rows, np.ndarray):
        logs = rows.copy()
        logs.data = gammaln(rows.data + 1.0)
        return np.asarray(logs.sum(axis=1)).ravel()
    return np.asarray(gammaln(np.nan_to_num(rows) + 1.0).sum(axis=1))


def _ones_and_zeros(block: Any) -> Any:
    if isinstance(block, np.ndarray):
        return np.vstack([block.T == 1.0, block.T == 0.0]).astype(np.float64)
    from scipy.sparse import vstack

    return vstack([block.T, 1.0 - block.T.toarray()]).tocsr()


def shares(counts: Array, before: Array, prior: Mapping[str, Any]) -> Array:
    """Return counts (with a Dirichlet prior) as probabilities in each row; rows without data stay."""
    more = np.maximum(counts + (prior.get("concentration", 1.0) - 1.0), 0.0)
    size = more.sum(axis=-1, keepdims=True)
    empty = (counts.sum(axis=-1, keepdims=True) <= NOTHING) | (size <= NOTHING)
    return np.where(empty, before, more / np.where(empty, 1.0, size))


def dirichlet(probs: Array, prior: Mapping[str, Any]) -> float:
    """Return the log density of rows under a Dirichlet prior, up to a constant."""
    from scipy.special import xlogy

    return float(np.sum(xlogy(prior.get("concentration", 1.0) - 1.0, probs)))


def chosen(probs: Array, rng: np.random.Generator) -> Ints:
    """Return a place in each row, drawn by its probabilities."""
    below = np.cumsum(probs, axis=-1)
    return np.asarray((rng.random((len(probs), 1)) * below[:, -1:] >= below).sum(axis=-1), dtype=np.int64)
