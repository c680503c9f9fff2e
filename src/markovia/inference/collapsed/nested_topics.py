"""Gibbs sampling of a tree of topics, all documents on paths from its root: hierarchical LDA.

    paths ~ nested CRP(gamma),  theta_d ~ Dirichlet(alpha),  level ~ theta_d,  phi_node ~ Dirichlet(eta),  w ~ phi_node

A word's topic is the node of its document's path at the word's level. The words of nodes and the levels of documents are
summed out. Reference: Blei, Griffiths and Jordan (2010). Cost of a sweep: words times nodes.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from markovia.inference.collapsed.concentrations import Gamma, drawn_concentration
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.seeds import kernel_seed

SLOTS = 32
"""Nodes for which there is room at first."""
EVERY = 5
"""Sweeps between two merges of branches while sampling settles."""


class NestedTopics:
    """A path for each document and a level for each word.

    Parameters
    ----------
    words, offsets
        The words of all documents one after the other as numbers; document d has places `offsets[d]` to `offsets[d + 1]`.
    n_words
        The size of the vocabulary.
    alphas, etas
        Parameters of the Dirichlet laws of levels and of words, one a level.
    gamma
        The concentration, or shape and rate of its prior.

    Examples
    --------
    >>> sampler = NestedTopics([0, 0, 1, 1], [0, 2, 4], 2, [1.0, 1.0], [0.5, 0.5], 1.0)
    >>> sampler.start(np.random.default_rng(0))
    >>> sampler.sweep(np.random.default_rng(0))
    >>> int(sampler.totals.sum()), sampler.paths[:, 0].tolist()
    (4, [0, 0])
    """

    def __init__(
        self, words: Any, offsets: Any, n_words: int, alphas: Any, etas: Any, gamma: Gamma | float
    ) -> None:
        self.words = np.ascontiguousarray(words, dtype=np.int32)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.lengths, self.n_words = np.diff(self.offsets), n_words
        self.alphas = np.array(alphas, dtype=np.float64)
        self.etas = np.array(etas, dtype=np.float64)
        self.prior, self.gamma = gamma, gamma[0] / gamma[1] if isinstance(gamma, tuple) else float(gamma)
        self.settling, self.done = 0, 0

    def start(self, rng: np.random.Generator) -> None:
        """Begin with levels by chance and all documents on one path, from which branches grow."""
        depth = len(self.alphas)
        slots = max(SLOTS, 2 * depth)
        self.levels = rng.integers(0, depth, len(self.words), dtype=np.int32)
        self.paths = np.repeat(np.arange(depth, dtype=np.int32)[None], len(self.lengths), axis=0)
        self.parents = np.arange(-1, slots - 1)
        self.depths = np.where(np.arange(slots) < depth, np.arange(slots), -1)
        self.guests = np.where(self.depths >= 0, len(self.lengths), 0)
        self.by_word = np.zeros((self.n_words, slots), dtype=np.int32)
        np.add.at(self.by_word, (self.words, self.levels), 1)
        self.totals = self.by_word.sum(axis=0, dtype=np.int64)

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw the path of each document and the levels of its words, then the concentration.

        In the first `settling` sweeps, branches that say the same are merged now and then.
        """
        at, seed = np.zeros(1, dtype=np.int64), kernel_seed(rng)
        met = np.zeros(self.n_words, dtype=np.int64)
        nodes = int((self.depths >= 0).sum())
        work = either(
            "markovia.kernels.collapsed.nested_restaurants:sweep", 6 * len(self.words) * (nodes + 10)
        )
        while not work(
            self.words, self.offsets, self.levels, self.paths, self.parents, self.depths, self.guests, self.by_word,
            self.totals, self.alphas, self.etas, self.gamma, at, np.zeros((3, max(len(self.totals), len(self.alphas)))),
            met, seed,
        ):  # fmt: skip
            self._grow()
        self.done += 1
        if self.done <= self.settling and self.done % EVERY == 0:
            self.merge_alike()
        if isinstance(self.prior, tuple):
            inner = (self.depths >= 0) & (self.depths < len(self.alphas) - 1)
            children = int((self.depths > 0).sum())
            self.gamma = drawn_concentration(self.gamma, children, self.guests[inner], self.prior, rng)

    def merge_alike(self) -> int:
        """Merge siblings, with their branches, where that makes words and paths more probable; return how many went.

        Siblings with one child may also merge after they have changed places with it. Single documents seldom find
        the way to such trees; this is for the sweeps before draws are kept.
        """
        from scipy.special import gammaln

        depth, gone = len(self.alphas), 0

        def words(counts: Any, level: int) -> float:
            eta, n = self.etas[level], counts[counts > 0]
            flat = self.n_words * eta
            return float((gammaln(n + eta) - gammaln(eta)).sum() + gammaln(flat) - gammaln(n.sum() + flat))

        def joined(a: int, b: int) -> float:
            """Return what the law of paths gains where b joins a."""
            g, n, m = self.gamma, float(self.guests[a]), float(self.guests[b])
            found = gammaln(n + m) - gammaln(n) - gammaln(m) - np.log(g)
            if self.depths[a] < depth - 1:
                found += gammaln(g + n) + gammaln(g + m) - gammaln(g) - gammaln(g + n + m)
            return float(found)

        def forms(node: int, level: int) -> list[tuple[int, Any, float]]:
            """Return the words of a node, and of its only child in its place, with what the change gains."""
            own = self.by_word[:, node]
            found = [(-1, own, -words(own, level))]
            below = np.flatnonzero((self.depths == level + 1) & (self.parents == node))
            if len(below) == 1 and self.alphas[level] == self.alphas[level + 1]:
                child = self.by_word[:, below[0]]
                gain = words(own, level + 1) - words(child, level + 1) - words(own, level)
                found.append((int(below[0]), child, gain))
            return found

        for level in range(1, depth):
            inside = np.flatnonzero(self.depths == level)
            for b in inside[np.argsort(self.guests[inside], kind="stable")].tolist():
                best, choice = 0.0, (-1, -1, -1)
                for a in np.flatnonzero((self.depths == level) & (self.parents == self.parents[b])).tolist():
                    if a == b:
                        continue
                    for (x, first, lost), (y, second, gained) in product(forms(a, level), forms(b, level)):
                        gain = joined(a, b) + words(first + second, level) + lost + gained
                        if gain > best:
                            best, choice = gain, (a, x, y)
                a, x, y = choice
                if a >= 0:
                    for node, child in ((a, x), (b, y)):
                        if child >= 0:
                            self._turn(node, child)
                    self._join(b, a)
                    gone += 1
        return gone

    def _turn(self, node: int, child: int) -> None:
        """Let a node and its only child change places."""
        level = int(self.depths[node])
        inside = np.repeat(self.paths[:, level] == node, self.lengths)
        turned = np.array(self.levels)
        turned[inside & (self.levels == level)] = level + 1
        turned[inside & (self.levels == level + 1)] = level
        self.levels = turned
        self.by_word[:, [node, child]] = self.by_word[:, [child, node]]
        self.totals[[node, child]] = self.totals[[child, node]]

    def _join(self, old: int, new: int) -> None:
        for counts in (self.by_word.T, self.totals, self.guests):
            counts[new] += counts[old]
            counts[old] = 0
        self.parents[(self.depths > 0) & (self.parents == old)] = new
        self.paths[self.paths == old] = new
        self.depths[old] = -1

    def _grow(self) -> None:
        more = len(self.totals)
        self.by_word = np.pad(self.by_word, ((0, 0), (0, more)))
        self.parents, self.guests, self.totals = (
            np.pad(x, (0, more)) for x in (self.parents, self.guests, self.totals)
        )
        self.depths = np.pad(self.depths, (0, more), constant_values=-1)

    def log_prob(self) -> float:
        """Return log p(words, levels, paths | gamma)."""
        from scipy.special import gammaln

        depth, there = len(self.alphas), self.depths >= 0
        eta = self.etas[np.maximum(self.depths, 0)]
        word, node = np.nonzero(self.by_word)
        counts = self.by_word[word, node]
        words = (gammaln(counts + eta[node]) - gammaln(eta[node])).sum()
        flat = self.n_words * eta
        words += (gammaln(flat) - gammaln(self.totals + flat))[there].sum()
        document = np.repeat(np.arange(len(self.lengths)), self.lengths)
        inside = np.bincount(document * depth + self.levels, minlength=len(self.lengths) * depth).reshape(
            -1, depth
        )
        every = self.alphas.sum()
        levels = (gammaln(inside + self.alphas) - gammaln(self.alphas)).sum()
        levels += (gammaln(every) - gammaln(self.lengths + every)).sum()
        below, above = self.depths > 0, there & (self.depths < depth - 1)
        paths = below.sum() * np.log(self.gamma) + gammaln(self.guests[below]).sum()
        paths += (gammaln(self.gamma) - gammaln(self.gamma + self.guests[above])).sum()
        return float(words + levels + paths)

    def topics_of_words(self) -> Ints:
        """Return the node (slot) of each word."""
        document = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return self.paths[document, self.levels].astype(np.int64)

    _arrays = ("levels", "paths", "parents", "depths", "guests", "totals", "by_word")

    def state(self) -> dict[str, Array]:
        """Return the state as arrays."""
        return {name: getattr(self, name) for name in self._arrays} | {
            "numbers": np.array([self.gamma, self.done])
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up a state that `state` gave."""
        for name in self._arrays:
            setattr(self, name, np.array(state[name]))
        self.gamma, self.done = float(state["numbers"][0]), int(state["numbers"][1])
