"""Topics in a tree: hierarchical LDA by the nested Chinese restaurant process.

A document has a path from the root to a leaf, and each of its words the topic of one node of that path: words that all
documents share rise to the root, special ones sink to the leaves. How many branches a node has is learned.
Reference: Blei, Griffiths and Jordan (2010).
"""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.concentrations import ConcentrationSetting, concentration_of
from markovia.inference.collapsed.nested_topics import NestedTopics
from markovia.inference.collapsed.sampler_runs import run_sampler
from markovia.inference.collapsed.sampler_settings import SamplerSettings
from markovia.learning.latent.topic_documents import average_proportions
from markovia.models.topics.base import TopicModel
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import POSITIVE, Count, Either, Several, Whole, check
from markovia.runtime.seeds import Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "hierarchical LDA"
ByLevel: TypeAlias = Annotated[Any, Either((POSITIVE, Several(POSITIVE, "such numbers, one a level")))]


@dataclass(eq=False, repr=False)
class HierarchicalLDA(SamplerSettings, TopicModel):
    """A tree of topics over documents.

    Parameters
    ----------
    depth
        Levels of the tree, the root's included.
    max_iter
        Sweeps over all documents.
    alpha
        The Dirichlet parameters of a document's levels, one for all or one a level.
    eta
        Those of the words of nodes, one for all or one a level; smaller ones make topics of fewer words and more nodes.
    gamma
        The concentration of branches: a number, or shape and rate of a gamma prior.
    n_init
        How many trees begin; after half the sweeps the most probable one goes on.
    random_state, time_limit, checkpoint, progress
        The seed; seconds after which sampling ends with what it has; a file to write and to go on from; a bar.

    Attributes
    ----------
    components_
        Words of each node plus `eta`, in the draw with the highest joint probability; node 0 is the root.
    parents_, levels_, documents_
        The node above each node (-1 for the root), its level, and how many documents pass through it.
    paths_
        The nodes of each document's path, (documents, depth).
    n_components_
        The number of nodes.
    gamma_
        The concentration of that draw.
    n_components_draws_
        The number of nodes after each sweep of the second half.
    history_
        log p(words, levels, paths) after each sweep.

    Examples
    --------
    >>> texts = ["the cat and the dog", "a dog and a cat the", "the tree and a leaf", "a leaf the tree and"] * 5
    >>> model = HierarchicalLDA(depth=2, max_iter=30, random_state=0).fit(texts)
    >>> model.levels_[0], bool((model.paths_[:, 0] == 0).all())
    (np.int64(0), True)
    """

    depth: Annotated[int, Whole(2)] = 3
    _: KW_ONLY
    alpha: ByLevel = 1.0
    eta: ByLevel = 1.0
    gamma: ConcentrationSetting = (1.0, 1.0)
    n_init: Count = 6

    def _by_level(self, name: str) -> Array:
        said = getattr(self, name)
        values = [said] * self.depth if np.ndim(said) == 0 else list(said)
        if len(values) != self.depth:
            raise InvalidArgument(f"{name}= is one number, or {self.depth}, one a level, not {said!r}")
        return np.array(values, dtype=np.float64)

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        gamma, alphas, etas = concentration_of(self.gamma), self._by_level("alpha"), self._by_level("eta")
        limits: dict[str, Any] = {"time_limit": self.time_limit, "progress": self.progress}
        tried = []
        for _ in range(self.n_init):  # trees differ by where they begin: a race, and the best goes on
            sampler = NestedTopics(corpus.words, corpus.offsets, len(corpus.vocabulary), alphas, etas, gamma)
            sampler.settling = self.max_iter // 2
            sampler.start(rng)
            if self.n_init > 1:
                run_sampler(sampler, max(self.max_iter // 2, 1), rng, **limits, name=NAME)
            tried.append((sampler.log_prob(), sampler))
        sampler = max(tried, key=lambda one: one[0])[1]
        best = -np.inf

        def keep() -> dict[str, Any]:
            nonlocal best
            found: dict[str, Any] = {"nodes": np.array((sampler.depths >= 0).sum())}
            value = sampler.log_prob()
            if value > best:
                best = value
                found |= {f"best_{name}": array.copy() for name, array in sampler.state().items()}
            return found

        about = (corpus.words, corpus.offsets, alphas, etas, gamma, self.max_iter // 2, self.n_init)
        run = self._sweeps(sampler, rng, keep, burn_in=self.max_iter // 2, name=NAME, about=about)
        last = max(i for i, draw in enumerate(run.draws) if "best_levels" in draw)
        state = run.draws[last]
        sampler.restore({k.removeprefix("best_"): v for k, v in state.items() if k.startswith("best_")})
        self.n_components_draws_ = np.array([int(draw["nodes"]) for draw in run.draws])
        self._take(sampler, etas)

    def _take(self, sampler: NestedTopics, etas: Array) -> None:
        """Take over the nodes, by level and then size, children beside each other."""
        order = [0]
        for node in order:
            below = np.flatnonzero((sampler.depths > 0) & (sampler.parents == node))
            order.extend(below[np.argsort(-sampler.guests[below], kind="stable")].tolist())
        place = np.full(len(sampler.totals), -1)
        place[order] = np.arange(len(order))
        self.levels_, self.documents_ = sampler.depths[order], sampler.guests[order]
        self.parents_ = np.append(-1, place[sampler.parents[order[1:]]])
        self.paths_ = place[sampler.paths]
        self.components_ = sampler.by_word[:, order].T + etas[self.levels_][:, None]
        self.n_components_, self.gamma_ = len(order), sampler.gamma

    def leaves(self) -> list[list[int]]:
        """Return the path from the root to each leaf, as nodes."""
        found = []
        for node in np.flatnonzero(self.levels_ == self.depth - 1):
            path = [int(node)]
            while self.parents_[path[0]] >= 0:
                path.insert(0, int(self.parents_[path[0]]))
            found.append(path)
        return found

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        """Return the nodes of documents: each known path by its probability, and its levels given it."""
        paths, phi, alphas = self.leaves(), self.topic_word_, self._by_level("alpha")
        logs = np.empty((len(paths), len(corpus)))
        shares = np.empty((len(paths), len(corpus), self.depth))
        for p, path in enumerate(paths):
            shares[p] = average_proportions(corpus.words, corpus.offsets, phi[path].T, alphas)
            each = shares[p][corpus.owners] * phi[path].T[corpus.words]
            words = np.log(np.maximum(each.sum(axis=1), 1e-300))
            logs[p] = np.bincount(corpus.owners, words, len(corpus)) + np.log(self.documents_[path[-1]])
        weights = np.exp(logs - logs.max(axis=0))
        weights /= weights.sum(axis=0)
        found = np.zeros((len(corpus), self.n_components_))
        for p, path in enumerate(paths):
            found[:, path] += weights[p][:, None] * shares[p]
        return found

    def _draw_proportions(self, n: int, y: Any, rng: np.random.Generator) -> Array:
        """Draw one of the learned paths for each document, by how many documents took it, and shares of its levels."""
        paths = np.array(self.leaves())
        taken = self.documents_[paths[:, -1]] / self.documents_[paths[:, -1]].sum()
        own = paths[rng.choice(len(paths), n, p=taken)]
        found = np.zeros((n, self.n_components_))
        np.put_along_axis(found, own, rng.dirichlet(self._by_level("alpha"), n), axis=1)
        return found

    def tree(self, n: int = 6) -> str:
        """Return the tree as text: how many documents pass each node, and its leading words.

        Examples
        --------
        >>> model = HierarchicalLDA(depth=2, max_iter=20, random_state=0).fit(["cat dog cat"] * 3)
        >>> print(model.tree(2))  # doctest: +ELLIPSIS
        3 ...
        └─ 3 ...
        """
        below: dict[int, list[int]] = {}
        for node, parent in enumerate(self.parents_.tolist()):
            below.setdefault(parent, []).append(node)
        words, lines = self.top_words(n), []

        def add(node: int, here: str, under: str) -> None:
            lines.append(f"{here}{self.documents_[node]} {' '.join(words[node])}")
            children = below.get(node, [])
            for child in children:
                last = child == children[-1]
                add(child, under + ("└─ " if last else "├─ "), under + ("   " if last else "│  "))

        add(0, "", "")
        return "\n".join(lines)

    def plot_tree(self, n: int = 4, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the tree, the leading words of each node in it."""
        return ports.draw("plot-topic-tree", self, n, ax=ax, title=title)

    def node_documents(self, node: int) -> Ints:
        """Return the places of the documents whose path leads through a node."""
        check("node", node, Whole(0, self.n_components_ - 1))
        return np.flatnonzero((self.paths_ == node).any(axis=1))
