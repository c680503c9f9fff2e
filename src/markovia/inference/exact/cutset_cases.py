"""Walking through the joint states of a cutset, and adding up what the cases answer.

A depth-first odometer: variables are fixed one after the other. For every table the supports of its projections on the
first one, two, ... cutset variables in it are known beforehand, so a prefix that leaves a table with zeros only
is passed over together with all cases below it. Answers are added relative to the largest mass seen, so
that no mass underflows.
"""

from collections.abc import Iterator, Sequence
from math import exp, inf, log, prod
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from markovia.factors.tables.evidence import Finding
from markovia.factors.tables.factor import Factor
from markovia.inference.problem import Problem
from markovia.runtime.array_types import Array
from markovia.runtime.progress import bar_wanted

Codes = tuple[int, ...]


class CutsetCases:
    """The cases of a cutset that can have mass, each as state codes and as a problem; a context manager.

    Parameters
    ----------
    problem
        The problem without the cutset fixed.
    names
        The cutset, outermost first.
    progress
        Whether to show a bar; None for only on a terminal.
    """

    def __init__(self, problem: Problem, names: Sequence[str], progress: bool | None) -> None:
        self._problem = problem
        self._names = list(names)
        choices = [problem.variables[n] for n in names]
        self._findings = [[Finding(v, s, code=c) for c, s in enumerate(v.states)] for v in choices]
        self._below = [prod(len(v) for v in choices[d:]) for d in range(len(choices) + 1)]
        self._supports = _supports(problem, names)
        self._progress = progress
        self._bar: Any = None
        self._status = ""
        self.total = self._below[0]
        self.done = 0
        self.answered = 0

    def problem(self, codes: Codes) -> Problem:
        """Return the problem with the cutset fixed to the given codes."""
        fixed = {n: f[c] for n, f, c in zip(self._names, self._findings, codes, strict=True)}
        return self._problem.with_findings({**self._problem.findings, **fixed})

    def report(self, status: str) -> None:
        """Tell the bar what is known so far."""
        self._status = status

    def __iter__(self) -> Iterator[tuple[Codes, Problem]]:
        codes = [0] * len(self._names)
        if not self._alive(0, codes):
            self._advance(self.total)
            return
        yield from self._walk(0, codes)

    def __enter__(self) -> Self:
        self._bar = progress_bar(self.total, "case", self._progress)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        if isinstance(error, KeyboardInterrupt):
            error.add_note(f"conditioning had done {self.done:,} of {self.total:,} cases: {self._status}")

    def _walk(self, depth: int, codes: list[int]) -> Iterator[tuple[Codes, Problem]]:
        if depth == len(codes):
            now = tuple(codes)
            yield now, self.problem(now)
            self.answered += 1
            self._advance(1)
            return
        for code in range(len(self._findings[depth])):
            codes[depth] = code
            if self._alive(depth + 1, codes):
                yield from self._walk(depth + 1, codes)
            else:
                self._advance(self._below[depth + 1])

    def _alive(self, depth: int, codes: list[int]) -> bool:
        return all(support[tuple(codes[d] for d in axes)] for axes, support in self._supports[depth])

    def _advance(self, n: int) -> None:
        self.done += n
        if self._bar is not None:
            self._bar.set_postfix_str(self._status, refresh=False)
            self._bar.update(n)


class WeightedTables:
    """A sum of tables weighted by masses given as logarithms, held relative to the largest of them."""

    def __init__(self, shapes: Sequence[Sequence[int]]) -> None:
        self._tables: list[Array] = [np.zeros(shape) for shape in shapes]
        self._top = -inf
        self._total = 0.0
        self._weight = 0.0

    def add(self, log_mass: float) -> bool:
        """Take in the mass of a case; whether it has any."""
        if log_mass == -inf:
            return False
        if log_mass > self._top:
            shrink = exp(self._top - log_mass)
            self._top = log_mass
            self._total *= shrink
            for table in self._tables:
                table *= shrink
        self._weight = exp(log_mass - self._top)
        self._total += self._weight
        return True

    def put(self, k: int, index: tuple[Any, ...], values: Array | float) -> None:
        """Add a table of the case that was taken in last, normalised, into a part of the k-th sum."""
        self._tables[k][index] += self._weight * values

    @property
    def share(self) -> float:
        """The part of the mass so far that the last case holds."""
        return self._weight / self._total

    @property
    def log_mass(self) -> float:
        """The log of the mass so far."""
        return self._top + log(self._total) if self._total > 0.0 else -inf

    def normalised(self, k: int) -> Array:
        """Return the k-th sum divided by its total; zeros if there was no mass."""
        table = self._tables[k]
        total = float(table.sum())
        return np.asarray(table / total) if total > 0.0 else table


def progress_bar(total: int, unit: str, progress: bool | None) -> Any:
    """Return a bar, or None if none is wanted or there is but one step; by default only a terminal shows one."""
    if total < 2 or not bar_wanted(progress):
        return None
    from tqdm import tqdm

    return tqdm(total=total, desc="conditioning", unit=unit)


_Support = tuple[Codes, NDArray[np.bool_]]


def _supports(problem: Problem, names: Sequence[str]) -> list[list[_Support]]:
    """Return, by the number of variables fixed, the supports to look at: positions in the cutset, non-zero or not."""
    place = {n: d for d, n in enumerate(names)}
    supports: list[list[_Support]] = [[] for _ in range(len(names) + 1)]
    for piece in problem.pieces:
        if not isinstance(piece, Factor):
            continue
        axes = sorted((place[n], k) for k, n in enumerate(piece.names) if n in place)
        others = [k for k, n in enumerate(piece.names) if n not in place]
        support = np.asarray((piece.values > 0).transpose([*(k for _, k in axes), *others]))
        support = np.asarray(support.any(axis=tuple(range(len(axes), support.ndim))))
        depths = tuple(d for d, _ in axes)
        while True:
            if not support.all():
                supports[depths[-1] + 1 if depths else 0].append((depths, support))
            if not depths:
                break
            support, depths = np.asarray(support.any(axis=-1)), depths[:-1]
    return supports
