"""Trees of topics: a tree from which documents were drawn is found again."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument


def tree_corpus(seed=0, n=160, length=60):
    """Return documents of a tree with two branches of two leaves, ten words of its own a node, and their leaves."""
    rng = np.random.default_rng(seed)
    words, leaves = [], rng.integers(0, 4, n)
    for leaf in leaves:
        path = np.array([0, 1 + leaf // 2, 3 + leaf])
        levels = rng.choice(3, length, p=rng.dirichlet([3.0, 2.0, 2.0]))
        words.append(path[levels] * 10 + rng.integers(0, 10, length))
    offsets = np.arange(0, n * length + 1, length)
    corpus = mk.topics.Corpus(
        np.concatenate(words).astype(np.int32), offsets, [f"w{i:02d}" for i in range(70)]
    )
    return corpus, leaves


@pytest.fixture(scope="module")
def fitted():
    corpus, leaves = tree_corpus()
    return mk.topics.HierarchicalLDA(3, max_iter=120, random_state=0).fit(corpus), corpus, leaves


@pytest.mark.slow
def test_the_tree_that_made_the_documents_is_found(fitted):
    model, _, leaves = fitted
    assert model.levels_.tolist() == [0, 1, 1, 2, 2, 2, 2]
    groups = [{int(word[1:]) // 10 for word in words} for words in model.top_words(8)]
    assert groups[0] == {0}
    for node in range(3, 7):
        (leaf,), (branch,) = groups[node], groups[model.parents_[node]]
        assert branch == 1 + (leaf - 3) // 2
        inside = leaves[model.node_documents(node)]
        assert (inside == leaf - 3).mean() > 0.95


def test_new_documents_get_the_nodes_of_a_path(fitted):
    model, _, _ = fitted
    new, leaves = tree_corpus(seed=1, n=30)
    shares = model.transform(new)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    ends = shares[:, 3:].argmax(axis=1) + 3
    names = {int(words[0][1:]) // 10: node for node, words in enumerate(model.top_words(1))}
    assert (ends == [names[3 + leaf] for leaf in leaves]).mean() > 0.9
    assert model.perplexity(new) < 35.0  # the truth has some 26 words to choose from, knowing nothing 70


def test_the_tree_prints_and_draws_with_the_words_of_nodes(fitted):
    import matplotlib.pyplot as plt

    model, _, _ = fitted
    lines = model.tree(3).split("\n")
    assert lines[0].startswith("160 w0")
    assert [line[:2] for line in lines[1:]].count("├─") == 1
    assert sum("─ " in line for line in lines) == 6
    ax = model.plot_tree(2)
    assert len(ax.texts) == 7
    assert len(ax.lines) == 6
    plt.close(ax.figure)


def test_a_seed_gives_the_same_tree_a_file_goes_on_and_models_are_saved(tmp_path):
    corpus, _ = tree_corpus(n=40, length=30)
    settings = {"depth": 3, "n_init": 1, "random_state": 2}
    whole = mk.topics.HierarchicalLDA(max_iter=10, **settings).fit(corpus)
    assert whole.tree() == mk.topics.HierarchicalLDA(max_iter=10, **settings).fit(corpus).tree()
    path = tmp_path / "run.npz"
    cut = mk.topics.HierarchicalLDA(max_iter=10, time_limit=1e-6, checkpoint=path, **settings).fit(corpus)
    assert cut.n_iter_ < 10
    went_on = mk.topics.HierarchicalLDA(max_iter=10, checkpoint=path, **settings).fit(corpus)
    assert went_on.history_ == whole.history_
    whole.save(tmp_path / "tree.json")
    assert mk.load(tmp_path / "tree.json").tree() == whole.tree()


def test_levels_need_as_many_numbers_as_there_are():
    with pytest.raises(InvalidArgument, match="eta= is one number, or 3, one a level"):
        mk.topics.HierarchicalLDA(3, eta=[1.0, 0.5]).fit([["a"], ["b"]])
    with pytest.raises(InvalidArgument, match="depth= is a whole number, 2 or more, not 1"):
        mk.topics.HierarchicalLDA(1).fit([["a"], ["b"]])
