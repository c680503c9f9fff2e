"""Rows of data files to learn mixtures from, a block in memory at a time.

Each step of EM, and each pass of online EM, reads the files once. The start comes from some of the rows, drawn in a first
pass, which also checks every block. Text files are parsed again in each pass: Parquet is several times quicker.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from markovia.data.tables.file_blocks import typed_blocks
from markovia.errors import InvalidArgument
from markovia.learning.latent.group_em import Sample
from markovia.models.mixtures.base import read_weights
from markovia.models.mixtures.component_families import ComponentRows
from markovia.runtime.array_types import Array, Ints

FEW = 20_000
"""Rows that starts are looked for in."""


@dataclass(frozen=True)
class FileSample:
    """A `Sample` whose rows are in files, read by a family for an estimator; `few` of them are in memory."""

    files: Any
    family: Any
    estimator: Any
    size: int
    few: Sample
    shares: Array | None = None
    labels: Ints | None = None
    gaps: bool = True

    @property
    def total(self) -> float:
        """How much all rows count."""
        return float(self.size) if self.shares is None else float(self.shares.sum())

    def in_patterns(self) -> "FileSample":
        """Return the same: rows are put in order block by block."""
        return self

    def chunks(self) -> Iterator[Sample]:
        """Yield the rows block by block."""
        done = 0
        for block in typed_blocks(self.files):
            rows = self.family.read(self.estimator, block, reset=False)
            part = slice(done, done + len(rows))
            done += len(rows)
            chunk = replace(Sample(range(self.size), self.shares, self.labels).at(part), rows=rows, gaps=True)
            yield chunk.in_patterns() if np.isnan(rows.sum()) else chunk

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Sample]:
        """Yield batches of rows, in random order within a block."""
        for chunk in self.chunks():
            yield from chunk.batches(size, rng)


def open_sample(
    files: Any,
    family: Any,
    estimator: Any,
    labels_of: Callable[[int], Ints | None],
    sample_weight: Any,
    rng: np.random.Generator,
) -> FileSample:
    """Return the rows of files, after a first look at all of them; `labels_of` so many rows are their components."""
    if not isinstance(family, ComponentRows) or family.name == "student-t":
        raise InvalidArgument(
            "a file is learned from block by block by gaussian, bernoulli, poisson and multinomial components; "
            "read it into a frame for others"
        )
    kept: Any = None
    keys, places, n = np.empty(0), np.empty(0, dtype=np.int64), 0
    for block in typed_blocks(files):
        rows = family.read(estimator, block, reset=not n)
        own = rng.random(len(rows))
        kept = rows if kept is None else np.concatenate([kept, rows])
        keys, places = np.append(keys, own), np.append(places, np.arange(n, n + len(rows)))
        n += len(rows)
        if len(keys) > FEW:
            chosen = np.sort(np.argpartition(keys, FEW)[:FEW])
            kept, keys, places = kept[chosen], keys[chosen], places[chosen]
    if not n:
        raise InvalidArgument("the files have no rows")
    shares, labels = read_weights(sample_weight, n), labels_of(n)
    if labels is not None:
        kept, places = _with_told_rows(files, family, estimator, labels, kept, places)
    few = replace(Sample(np.arange(n), shares, labels).at(places), rows=kept, gaps=bool(np.isnan(kept.sum())))
    return FileSample(files, family, estimator, n, few, shares, labels)


def _with_told_rows(
    files: Any, family: Any, estimator: Any, labels: Ints, kept: Array, places: Ints
) -> tuple[Array, Ints]:
    """Return rows and their places with those whose component is told, where these are few: they say which is which."""
    lacking = np.setdiff1d(np.flatnonzero(labels >= 0), places)
    if not 0 < len(lacking) <= FEW:
        return kept, places
    done = 0
    for block in typed_blocks(files):
        own = lacking[(lacking >= done) & (lacking < done + len(block))]
        if len(own):
            kept = np.concatenate([kept, family.read(estimator, block, reset=False)[own - done]])
        done += len(block)
    places = np.append(places, lacking)
    order = np.argsort(places)
    return kept[order], places[order]
