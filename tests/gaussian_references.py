"""Gaussian networks drawn at random, and what brute force says about them.

The references know nothing of equations or factors: they build the joint mean and covariance by walking down the network
for every configuration of the discrete nodes, and condition with the textbook formula.
"""

from itertools import product

import numpy as np
from hypothesis import strategies as st

import markovia as mk


def random_network(rng, n_numbers, n_states=0, most_parents=3, zero=0.0):
    """Return a network of tables and linear Gaussians, in a random order of the two kinds."""
    network = mk.BayesianNetwork()
    kinds = rng.permutation(["number"] * n_numbers + ["states"] * n_states)
    discrete: list[str] = []
    numbers: list[str] = []
    for k, kind in enumerate(kinds):
        if kind == "states":
            parents = list(rng.choice(discrete, min(len(discrete), int(rng.integers(0, 3))), replace=False))
            shape = [len(network.states(p)) for p in parents]
            card = int(rng.integers(2, 4))
            table = rng.dirichlet(np.ones(card), size=shape)
            network.add(f"d{k}", states=[f"s{i}" for i in range(card)], parents=parents, p=table)
            discrete.append(f"d{k}")
        else:
            some = list(
                rng.choice(numbers, min(len(numbers), int(rng.integers(0, most_parents + 1))), replace=False)
            )
            switch = list(rng.choice(discrete, min(len(discrete), int(rng.integers(0, 3))), replace=False))

            def regression(some=some):
                variance = 0.0 if rng.random() < zero else float(rng.uniform(0.2, 3.0))
                return mk.LinearGaussian(rng.normal(), {p: rng.normal() for p in some}, variance)

            if switch:
                keys = product(*(network.states(p) for p in switch))
                rows = {(key[0] if len(key) == 1 else key): regression() for key in keys}
                network.add(f"x{k}", rows, parents=switch)
            else:
                network.add(f"x{k}", regression())
            numbers.append(f"x{k}")
    return network


def configurations(network):
    """Yield (states by name, log probability) of all discrete nodes."""
    discrete = [n for n in network.variables if n[0] == "d"]
    for states in product(*(network.states(n) for n in discrete)):
        chosen = dict(zip(discrete, states, strict=True))
        logs = [np.log(network[n].row(**{q: chosen[q] for q in network.parents(n)})[network.states(n).index(chosen[n])])
                for n in discrete]  # fmt: skip
        yield chosen, float(np.sum(logs))


def moments(network, chosen):
    """Return names, mean and covariance of the numbers, given the states of all discrete nodes."""
    names = [n for n in network.graph.topological_order() if n[0] == "x"]
    mean, covariance = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for i, name in enumerate(names):
        node = network[name]
        r = node.row(**{v.name: chosen[v.name] for v in node.discrete})
        w = np.zeros(len(names))
        for parent, weight in r.weights.items():
            w[names.index(parent)] = weight
        mean[i] = r.bias + w @ mean
        covariance[i, :] = covariance[:, i] = w @ covariance
        covariance[i, i] = r.variance + w @ covariance @ w
    return names, mean, covariance


def conditioned(names, mean, covariance, given):
    """Return (names left, mean, covariance, log density of what is given)."""
    seen = [names.index(n) for n in given]
    left = [i for i in range(len(names)) if i not in seen]
    gap = np.array(list(given.values())) - mean[seen]
    inside = covariance[np.ix_(seen, seen)]
    gain = covariance[np.ix_(left, seen)] @ np.linalg.inv(inside)
    log_density = (
        -0.5 * (gap @ np.linalg.solve(inside, gap) + np.linalg.slogdet(2 * np.pi * inside)[1])
        if seen
        else 0.0
    )
    return (
        [names[i] for i in left],
        mean[left] + gain @ gap,
        covariance[np.ix_(left, left)] - gain @ covariance[np.ix_(seen, left)],
        float(log_density),
    )


def enumerated(network, given):
    """Return [(states, log weight, names, mean, covariance)] of all configurations that agree with the evidence."""
    numbers = {n: x for n, x in given.items() if n[0] == "x"}
    found = []
    for chosen, log_p in configurations(network):
        if all(chosen[n] == given[n] for n in chosen if n in given):
            names, prior, spread = moments(network, chosen)
            left, mean, covariance, log_density = conditioned(names, prior, spread, numbers)
            found.append((chosen, log_p + log_density, left, mean, covariance))
    return found


def total(found):
    """Return the log of the evidence's density and the weight of every configuration."""
    logs = np.array([f[1] for f in found])
    top = logs.max()
    log_mass = top + np.log(np.exp(logs - top).sum())
    return log_mass, np.exp(logs - log_mass)


def some_evidence(network, rng, share=0.4):
    """Return values for some of the nodes, drawn from the model itself."""
    row = network.sample(1, seed=rng).iloc[0]
    return {n: (float(row[n]) if n[0] == "x" else row[n]) for n in network.variables if rng.random() < share}


seeds = st.integers(0, 2**32 - 1)
