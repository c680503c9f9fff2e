"""The sampler of trees of topics: against all paths and levels of a tiny corpus, and jointly with data."""

from itertools import pairwise, product
from math import exp, lgamma, log

import numpy as np
import pytest

from markovia.inference.collapsed.nested_topics import NestedTopics
from sampler_checks import canonical, geweke_scores, set_partitions, total_variation

WORDS, OFFSETS, V = np.array([0, 1, 0, 0, 1]), np.array([0, 2, 3, 5]), 2
ALPHAS, ETAS, GAMMA = [1.0, 0.5, 0.7], [1.0, 0.4, 0.2], 0.8


def nested(paths):
    """Return the canonical form of paths: at each level, which documents share a node."""
    return tuple(canonical(paths[:, j]) for j in range(1, paths.shape[1]))


def log_joint(first, second, levels):
    """Return log p(words, levels, paths) of three documents; `second` has a partition within each block of `first`."""
    document = np.repeat(np.arange(3), np.diff(OFFSETS))
    nodes = [(0,) * 3, first, second]
    found = 0.0
    for above, below in pairwise(nodes):
        for block in set(above):
            inside = [below[d] for d in range(3) if above[d] == block]
            found += sum(log(GAMMA) + lgamma(inside.count(k)) for k in set(inside))
            found += lgamma(GAMMA) - lgamma(GAMMA + len(inside))
    counts = {}
    for w, d, level in zip(WORDS, document, levels, strict=True):
        counts.setdefault((level, nodes[level][d]), np.zeros(V))[w] += 1
    for (level, _), n in counts.items():
        eta = ETAS[level]
        found += sum(lgamma(eta + c) - lgamma(eta) for c in n) + lgamma(V * eta) - lgamma(V * eta + n.sum())
    for d in range(3):
        n = np.bincount(np.array(levels)[document == d], minlength=3)
        found += sum(lgamma(a + c) - lgamma(a) for a, c in zip(ALPHAS, n, strict=True))
        found += lgamma(sum(ALPHAS)) - lgamma(sum(ALPHAS) + n.sum())
    return found


def test_paths_and_levels_of_a_tiny_corpus_have_the_posterior_found_by_enumeration():
    exact = {}
    for first in set_partitions(3):
        for fine in set_partitions(3):
            if any(fine[i] == fine[j] and first[i] != first[j] for i in range(3) for j in range(3)):
                continue
            for levels in product(range(3), repeat=5):
                p = exp(log_joint(first, fine, levels))
                for key in (("paths", first, fine), ("levels", levels[:2], levels[2])):
                    exact[key] = exact.get(key, 0.0) + p
    total = sum(p for key, p in exact.items() if key[0] == "paths")
    exact = {key: p / total for key, p in exact.items()}
    rng = np.random.default_rng(0)
    sampler = NestedTopics(WORDS, OFFSETS, V, ALPHAS, ETAS, GAMMA)
    sampler.start(rng)
    paths, levels = [], []
    for _ in range(6_000):
        sampler.sweep(rng)
        paths.append(("paths", *nested(sampler.paths)))
        levels.append(("levels", tuple(sampler.levels[:2].tolist()), int(sampler.levels[2])))
    # noise of sampling is about 0.01
    assert total_variation(paths, {k: p for k, p in exact.items() if k[0] == "paths"}) < 0.03
    assert total_variation(levels, {k: p for k, p in exact.items() if k[0] == "levels"}) < 0.03


def test_the_joint_probability_is_that_of_the_model():
    rng = np.random.default_rng(1)
    sampler = NestedTopics(WORDS, OFFSETS, V, ALPHAS, ETAS, GAMMA)
    sampler.start(rng)
    for _ in range(20):
        sampler.sweep(rng)
        ours = log_joint(*nested(sampler.paths), sampler.levels.tolist())
        np.testing.assert_allclose(sampler.log_prob(), ours, rtol=1e-10)


@pytest.mark.slow
def test_draws_of_trees_and_words_in_turn_have_the_joint_law_of_the_prior():
    rng, offsets, v = np.random.default_rng(4), np.array([0, 3, 6, 9]), 3
    document = np.repeat(np.arange(3), 3)

    def words_of(nodes, levels):
        found = np.empty(len(nodes), dtype=np.int32)
        for node in np.unique(nodes):
            which = nodes == node
            found[which] = rng.choice(v, which.sum(), p=rng.dirichlet(np.full(v, ETAS[levels[which][0]])))
        return found

    def stats(paths, levels, words, gamma):
        return {
            "nodes": float(len(np.unique(paths[:, 1])) + len(np.unique(paths[:, 2]))),
            "together": float((paths[:, 1] == paths[0, 1]).mean()),
            "leaves together": float((paths[:, 2] == paths[0, 2]).mean()),
            "root": float((levels == 0).mean()),
            "same level": float((levels[:, None] == levels).mean()),
            "same words": float((words[:, None] == words).mean()),
            "same words together": float((words[:3] == words[3:6]).mean() * (paths[0, 2] == paths[1, 2])),
            "gamma": gamma,
            "gamma times nodes": gamma * len(np.unique(paths[:, 2])),
        }

    def prior():
        gamma = rng.gamma(3.0) / 3.0
        paths = np.zeros((3, 3), dtype=np.int64)
        fresh = 1
        for d in range(3):
            for j in (1, 2):
                near = paths[:d][paths[:d, j - 1] == paths[d, j - 1], j]
                names, n = np.unique(near, return_counts=True)
                p = np.append(n, gamma) / (n.sum() + gamma)
                k = rng.choice(len(p), p=p)
                paths[d, j] = fresh if k == len(names) else names[k]
                fresh += k == len(names)
        levels = np.concatenate([rng.choice(3, 3, p=rng.dirichlet(ALPHAS)) for _ in range(3)])
        return stats(paths, levels, words_of(paths[document, levels], levels), gamma)

    sampler = NestedTopics(np.zeros(9), offsets, v, ALPHAS, ETAS, (3.0, 3.0))
    sampler.start(rng)

    def step():
        sampler.sweep(rng)
        nodes = sampler.topics_of_words()
        sampler.words[:] = words_of(nodes, sampler.levels)
        sampler.by_word[:] = 0
        np.add.at(sampler.by_word, (sampler.words, nodes), 1)
        return stats(sampler.paths, sampler.levels, sampler.words, sampler.gamma)

    scores = geweke_scores(prior, step, 1_500, 4_000)
    assert max(map(abs, scores.values())) < 4.0, scores
