"""Components of columns of different kinds: independent given the component, each column (or group of them) with its family.

That is latent class analysis where columns are categories. Cells may be missing: they are summed out, which for independent
columns is to leave them out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from markovia.learning.components.block_passes import BlockPass, LinearPass, stretches
from markovia.learning.components.conjugate import DirichletLaw
from markovia.learning.components.discrete import chosen, dirichlet, shares
from markovia.learning.components.families import Components
from markovia.runtime.array_types import Array, Codes, Flags, Ints

DENSE = 256
"""The number of categories of all columns above which indicators are sparse."""


@dataclass(frozen=True)
class CategoricalColumns(DirichletLaw):
    """Columns of codes of symbols, -1 where a cell is missing; `probs` has an array (components, symbols) a column.

    Examples
    --------
    >>> two = CategoricalColumns((np.array([[0.9, 0.1], [0.2, 0.8]]),), (("a", "b"),))
    >>> np.exp(two.log_densities(np.array([[0], [1], [-1]]))).round(6).tolist()
    [[0.9, 0.2], [0.1, 0.8], [1.0, 1.0]]
    """

    probs: tuple[Array, ...]
    symbols: tuple[tuple[Any, ...], ...]
    names: ClassVar = ("probs",)
    priors: ClassVar = ("concentration",)

    @property
    def params(self) -> dict[str, Any]:
        """The probabilities, one array a column."""
        return {"probs": list(self.probs)}

    @property
    def n_states(self) -> int:
        """The number of components."""
        return len(self.probs[0])

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return sum(p.size - len(p) for p in self.probs)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.probs)

    @property
    def starts(self) -> Ints:
        """Where the symbols of each column start."""
        return np.cumsum([0, *(p.shape[1] for p in self.probs[:-1])])

    @property
    def arrays(self) -> dict[str, Any]:
        """The probabilities, columns side by side."""
        return {"probs": np.hstack(self.probs)}

    def with_arrays(self, arrays: Mapping[str, Array]) -> Self:
        """Return components whose probabilities stand side by side."""
        return replace(self, probs=tuple(np.split(arrays["probs"], self.starts[1:], axis=1)))

    def features(self, rows: Ints) -> Any:
        """Return which symbol each row has in each column, (symbols of all columns, rows)."""
        width, there = sum(p.shape[1] for p in self.probs), rows >= 0
        which, columns = np.nonzero(there)
        places = rows[there] + self.starts[columns]
        if width > DENSE:
            from scipy.sparse import csr_array

            ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
            return csr_array((np.ones(len(places)), places, ends), shape=(len(rows), width)).T
        indicators = np.zeros((width, len(rows)))
        indicators[places, which] = 1.0
        return indicators

    def block_pass(self, *, gaps: bool = False, origin: Array | None = None) -> BlockPass:
        """Return a pass over blocks of rows."""

        def make(size: Array, sums: Array, prior: Mapping[str, Any]) -> Any:
            parts = zip(np.split(sums, self.starts[1:], axis=1), self.probs, strict=True)
            return replace(self, probs=tuple(shares(found, before, prior) for found, before in parts))

        with np.errstate(divide="ignore"):
            logs = np.log(np.hstack(self.probs))
        return LinearPass(self.features, logs, np.zeros(self.n_states), make)

    def log_densities(self, rows: Any) -> Array:
        """Return the log probability of each row in each component."""
        with np.errstate(divide="ignore"):
            # the row of zeros at the end is what the code -1 picks; take is several times faster than indexing
            tables = [np.concatenate([np.log(p).T, np.zeros((1, self.n_states))]) for p in self.probs]
        result = np.zeros((len(rows), self.n_states))
        for low, high in stretches(len(rows), self.n_states):
            part = result[low:high]
            for table, codes in zip(tables, rows.T, strict=True):
                part += table.take(codes[low:high], axis=0, mode="wrap")
        return result

    def class_sums(self, rows: Any, members: Codes, weights: Array | None) -> Array:
        """Return the weight of each symbol, (components, symbols of all columns), of rows whose components are `members`."""
        found = []
        for codes, p in zip(rows.T, self.probs, strict=True):
            flat, each = members * np.int64(p.shape[1]) + codes, weights
            if codes.min(initial=0) < 0:
                seen = codes >= 0
                flat, each = flat[seen], None if weights is None else weights[seen]
            found.append(np.bincount(flat, weights=each, minlength=p.size).reshape(p.shape))
        return np.hstack(found).astype(np.float64)

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the components that make weighted rows most probable."""
        passing = self.block_pass()
        made: Self = passing.learned(
            weights.sum(axis=0), passing.sums(self.features(rows), np.ascontiguousarray(weights.T)), prior
        )
        return made

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return codes from each of some components."""
        return np.column_stack([chosen(p[states], rng) for p in self.probs])

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        return sum(dirichlet(p, prior) for p in self.probs)


@dataclass(frozen=True)
class Parts:
    """Rows in parts, each as its family takes it; `about` has the columns, the kind and the symbols of each part."""

    parts: tuple[Any, ...]
    about: tuple[tuple[tuple[str, ...], str, tuple[tuple[Any, ...], ...]], ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of parts."""
        return len(self.parts[0]), len(self.parts)

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, places: Any) -> "Parts":
        return Parts(tuple(part[places] for part in self.parts), self.about)


@dataclass(frozen=True)
class Product(Components):
    """Families side by side, independent given the component; rows are `Parts`."""

    families: tuple[Any, ...]
    columns: tuple[tuple[str, ...], ...]
    names: ClassVar = ()

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of each family, by its columns."""
        return {"+".join(c): own.params for c, own in zip(self.columns, self.families, strict=True)}

    @property
    def n_states(self) -> int:
        """The number of components."""
        return int(self.families[0].n_states)

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return sum(own.n_free for own in self.families)

    def block_pass(self, *, gaps: bool = False, origin: Array | None = None) -> "BlockPass | None":
        """Return a pass over blocks of rows, where every family has one."""
        found = [own.block_pass(gaps=gaps, origin=None) for own in self.families]
        if any(one is None for one in found):
            return None
        together = _Together(self, tuple(found))
        if any(
            not isinstance(one, LinearPass) or hasattr(own, "means")
            for one, own in zip(found, self.families, strict=True)
        ):
            return together
        return LinearPass(
            lambda block: _stacked(
                [one.features(part) for one, part in zip(found, block.parts, strict=True)]
            ),
            np.hstack([one.coefficients for one in found]),
            np.sum([one.constants for one in found], axis=0),
            together.learned,
        )

    def base(self, rows: Any) -> Array:
        """Return what is the same in all components."""
        found = np.zeros(len(rows))
        for own, part in zip(self.families, rows.parts, strict=True):
            found = found + own.base(part)
        return found

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each component."""
        found = np.zeros((len(rows), self.n_states))
        for own, part in zip(self.families, rows.parts, strict=True):
            there = _there(own, part)
            found[there] += own.log_densities(part[there])
        return found

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the components that make weighted rows most probable."""
        made = []
        for own, part in zip(self.families, rows.parts, strict=True):
            there = _there(own, part)
            passing = own.block_pass(gaps=True)
            if passing is None:
                made.append(own.learned(part[there], weights[there], prior))
            else:
                _, kept = passing.logs(part)
                made.append(
                    passing.learned(
                        weights.sum(axis=0), passing.sums(kept, np.ascontiguousarray(weights.T)), prior
                    )
                )
        return replace(self, families=tuple(made))

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return rows from each of some components."""
        return Parts(tuple(own.draw(states, rng) for own in self.families))

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        return float(sum(own.log_prior(prior) for own in self.families))


@dataclass(frozen=True)
class _Together:
    """The passes of several families as one."""

    own: Product
    passes: tuple[Any, ...]

    @property
    def width(self) -> int:
        return sum(one.width for one in self.passes)

    def logs(self, block: Any) -> tuple[Array, Any]:
        found = [one.logs(part) for one, part in zip(self.passes, block.parts, strict=True)]
        total = found[0][0]
        for logs, _ in found[1:]:
            total += logs
        return total, [kept for _, kept in found]

    def sums(self, kept: Any, shares: Array) -> Array:
        return np.hstack([one.sums(own, shares) for one, own in zip(self.passes, kept, strict=True)])

    def learned(self, size: Array, sums: Array, prior: Mapping[str, Any]) -> Any:
        made, at = [], 0
        for one in self.passes:
            made.append(one.learned(size, sums[:, at : at + one.width], prior))
            at += one.width
        return replace(self.own, families=tuple(made))


def _stacked(features: list[Any]) -> Any:
    if len(features) == 1:
        return features[0]
    if all(isinstance(one, np.ndarray) for one in features):
        return np.vstack(features)
    from scipy.sparse import vstack

    return vstack(features).tocsr()


def _there(own: Any, part: Any) -> Flags:
    """Return which rows a family is to see: all, if it can miss cells by itself."""
    if own.block_pass(gaps=True) is not None:
        return np.ones(len(part), dtype=bool)
    return np.asarray(~np.isnan(part).any(axis=1))
