"""Random small models for property tests: directed and undirected, with zeros, disconnected, any cardinality."""

import numpy as np
from hypothesis import strategies as st

import markovia as mk


@st.composite
def bayesian_networks(draw, max_nodes=7, max_states=3, zeros=True):
    n = draw(st.integers(1, max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sparsity = draw(st.sampled_from([0.0, 0.4])) if zeros else 0.0
    bn = mk.BayesianNetwork()
    names = [f"v{i}" for i in range(n)]
    for i, name in enumerate(names):
        parents = [str(q) for q in rng.permutation(names[:i])[: rng.integers(0, 4)]]
        k = int(rng.integers(1 if zeros else 2, max_states + 1))
        table = rng.random([*(len(bn.states(q)) for q in parents), k]) + 0.01
        table = table * (rng.random(table.shape) >= sparsity)
        table[..., 0] += table.sum(axis=-1) == 0
        bn.add(
            name,
            states=[f"s{j}" for j in range(k)],
            parents=parents,
            p=table / table.sum(axis=-1, keepdims=True),
        )
    return bn


@st.composite
def markov_networks(draw, max_nodes=6, max_states=3, zeros=True, kind=mk.MarkovNetwork):
    n = draw(st.integers(1, max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sparsity = draw(st.sampled_from([0.0, 0.3])) if zeros else 0.0
    cards = {f"v{i}": int(rng.integers(1, max_states + 1)) for i in range(n)}
    factors = []
    for _ in range(draw(st.integers(0, n + 2))):
        scope = [str(s) for s in rng.permutation(list(cards))[: rng.integers(1, min(n, 3) + 1)]]
        values = rng.random([cards[s] for s in scope]) * (rng.random([cards[s] for s in scope]) >= sparsity)
        factors.append(mk.Factor(scope, values * 10.0 ** rng.integers(-3, 4)))
    return kind(cards, factors)


def random_evidence(model, rng, rate=0.4):
    """Hard, soft and negative evidence on some variables."""
    given = {}
    for name in model.variables:
        if rng.random() > rate:
            continue
        states = model.states(name)
        what = rng.integers(3)
        if what == 0 or len(states) == 1:
            given[name] = states[rng.integers(len(states))]
        elif what == 1:
            given[name] = (rng.random(len(states)) + 0.05).tolist()
        else:
            given[name] = mk.Not(states[rng.integers(len(states))])
    return given


def brute_force(model, given):
    """The unnormalised joint table over all variables, evidence multiplied in, by plain NumPy."""
    names = model.variables
    shape = [len(model.states(n)) for n in names]
    table = np.ones(shape)
    for piece in model.pieces():
        factor = piece if isinstance(piece, mk.Factor) else piece.factor()
        axes = [names.index(n) for n in factor.names]
        order = np.argsort(axes)
        view = [1] * len(names)
        for a in axes:
            view[a] = shape[a]
        table = table * factor.values.transpose(order).reshape(view)
    for name, said in given.items():
        states = model.states(name)
        if isinstance(said, mk.Not):
            weights = [0.0 if s in said.states else 1.0 for s in states]
        elif isinstance(said, list):
            weights = said
        else:
            weights = [1.0 if s == said else 0.0 for s in states]
        view = [1] * len(names)
        view[names.index(name)] = len(states)
        table = table * np.reshape(weights, view)
    return table
