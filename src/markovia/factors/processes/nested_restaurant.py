"""Trees of restaurants (nested Chinese restaurant process; Blei, Griffiths and Jordan 2010).

Each table of a restaurant has the address of another restaurant. A visitor takes `depth` meals, each at the restaurant that
the last table named: a path from the root of a tree without end. Visitors spread over the children of a node as customers do
over tables.
"""

from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.processes.chinese_restaurant import ChineseRestaurant
from markovia.factors.processes.law import Law
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Count, Positive, check_count
from markovia.runtime.seeds import Seed, generator


@dataclass(frozen=True)
class NestedChineseRestaurant(Law):
    """Random paths down a tree that grows as they are drawn.

    Parameters
    ----------
    concentration
        How readily a new branch is opened at a node.
    depth
        Branches on a path; all paths share the root, which is not listed.
    seen
        Paths taken before; `posterior` fills it.

    Examples
    --------
    >>> tree = NestedChineseRestaurant(concentration=1.0, depth=2)
    >>> tree.sample(4, seed=3).tolist()
    [[0, 0], [1, 0], [0, 0], [0, 0]]
    >>> {path: round(p, 4) for path, p in tree.posterior([[0, 0], [0, 1]]).predictive().items()}
    {(0, 0): 0.2222, (0, 1): 0.2222, (0, 2): 0.2222, (1, 0): 0.3333}
    """

    concentration: Positive = 1.0
    depth: Count = 3
    seen: tuple[tuple[int, ...], ...] = field(default=(), repr=False)

    def sample(self, n: int, seed: Seed = None) -> Ints:
        """Draw n paths: (n, depth) numbers of branches, from 0 in order of opening at their node."""
        check_count("n", n)
        rng = generator(seed)
        before = len(self.seen)
        paths = np.zeros((before + n, self.depth), dtype=np.int64)
        paths[:before] = np.asarray(self.seen, dtype=np.int64).reshape(before, self.depth)
        node = np.zeros(before + n, dtype=np.int64)
        for level in range(self.depth):
            for at in np.unique(node):
                here = np.flatnonzero(node == at)
                old, new = here[here < before], here[here >= before]
                crp = ChineseRestaurant(self.concentration).posterior(paths[old, level])
                paths[new, level] = crp.sample(new.size, rng)
            node = np.unique(np.column_stack([node, paths[:, level]]), axis=0, return_inverse=True)[
                1
            ].reshape(-1)
        return paths[before:]

    def log_prob(self, x: ArrayLike) -> float:
        """Return the log probability of paths, whatever the numbers by which new branches go."""
        paths = self._read(x)
        return self._log_prob([*self.seen, *paths]) - self._log_prob([*self.seen])

    def _log_prob(self, paths: list[tuple[int, ...]]) -> float:
        crp = ChineseRestaurant(self.concentration)
        found = 0.0
        for level in range(self.depth):
            for _, under in groupby(sorted(paths), key=lambda p, level=level: p[:level]):  # type: ignore[misc]
                found += crp.log_prob([p[level] for p in under])
        return found

    def posterior(self, data: ArrayLike) -> "NestedChineseRestaurant":
        """Return the tree after these paths, its branches numbered in order of opening."""
        paths = np.array([*self.seen, *self._read(data)], dtype=np.int64).reshape(-1, self.depth)
        named: dict[tuple[int, ...], dict[int, int]] = {}
        for i, path in enumerate(paths.tolist()):
            for level in range(self.depth):
                branches = named.setdefault(tuple(path[:level]), {})
                paths[i, level] = branches.setdefault(path[level], len(branches))
        return replace(self, seen=tuple(map(tuple, paths.tolist())))

    def predictive(self) -> dict[tuple[int, ...], float]:
        """Return the probability of each path that the next visitor may take, in the numbers it would get."""
        found: dict[tuple[int, ...], float] = {}
        crp = ChineseRestaurant(self.concentration)

        def follow(prefix: tuple[int, ...], paths: list[tuple[int, ...]], p: float) -> None:
            if len(prefix) == self.depth:
                found[prefix] = p
                return
            below = [path[len(prefix)] for path in paths]
            for branch, chance in enumerate(crp.predictive(below).tolist()):
                inside = [path for path in paths if path[len(prefix)] == branch]
                follow((*prefix, branch), inside, p * chance)

        follow((), [*self.seen], 1.0)
        return found

    def _read(self, paths: ArrayLike) -> list[tuple[int, ...]]:
        found = np.asarray(paths)
        if found.size and (found.ndim != 2 or found.shape[1] != self.depth or found.dtype.kind not in "iu"):
            raise InvalidArgument(
                f"paths are rows of {self.depth} whole numbers, not an array of shape {found.shape}"
            )
        return [tuple(path) for path in found.reshape(-1, self.depth).tolist()]
