"""Random small trees of factors."""

import numpy as np

import markovia as mk


def forest_and_joint(seed, zeros=False):
    """A random forest of factors of two to four variables, as a model and its joint table."""
    rng = np.random.default_rng(seed)
    cards = {f"v{i}": int(rng.integers(1, 4)) for i in range(rng.integers(1, 9))}
    names = list(cards)
    factors = [mk.Factor([n], rng.random(cards[n]) + 0.01) for n in names if rng.random() < 0.5]
    reached, waiting = names[:1], names[1:]
    while waiting:
        if rng.random() < 0.15:
            reached.append(waiting.pop())
            continue
        k = min(len(waiting), int(rng.integers(1, 4)))
        scope = [str(rng.choice(reached)), *waiting[:k]]
        reached, waiting = reached + waiting[:k], waiting[k:]
        values = rng.random([cards[n] for n in scope]) * 10.0 ** rng.integers(-3, 4)
        if zeros:
            values *= rng.random(values.shape) > 0.2
        factors.append(mk.Factor([str(s) for s in scope], values))
    model = mk.MarkovNetwork(cards, factors)
    table = np.ones(list(cards.values()))
    for f in factors:
        axes = [names.index(n) for n in f.names]
        view = [len(model.states(n)) if i in axes else 1 for i, n in enumerate(names)]
        table = table * f.values.transpose(np.argsort(axes)).reshape(view)
    return model, table


def random_tree(seed, wide=False):
    """A random tree of factors over two or three variables, with zeros."""
    rng = np.random.default_rng(seed)
    cards = {"v0": int(rng.integers(1, 4))}
    factors = []
    for i in range(1, int(rng.integers(2, 8))):
        others = [str(rng.choice(list(cards)))]
        cards[f"v{i}"] = int(rng.integers(1, 5))
        scope = [*others, f"v{i}"]
        if wide and rng.random() < 0.5:
            cards[f"w{i}"] = 2
            scope.append(f"w{i}")
        scope = [str(s) for s in rng.permutation(scope)]
        table = rng.random([cards[s] for s in scope])
        table = table * (rng.random(table.shape) > 0.1)
        table.flat[0] += 0.01
        factors.append(mk.Factor(scope, table))
    return mk.MarkovNetwork(cards, factors)
