"""Small random dynamic networks and evidence, and what their unrolled networks say."""

import numpy as np

import markovia as mk


def lag(name):
    return int(name.partition("@-")[2] or 0)


def random_process(rng, n, order):
    """Return a process of n variables that looks up to `order` steps back, and its numbers of states."""
    process = mk.DynamicBayesianNetwork()
    names = [f"v{i}" for i in range(n)]
    sizes = {m: int(rng.integers(2, 4)) for m in names}
    for i, m in enumerate(names):
        parents = [q for q in names[:i] if rng.random() < 0.5]
        parents += [f"{q}@-{j}" for j in range(1, order + 1) for q in names if rng.random() < 0.4]
        deep = max(map(lag, parents), default=0)

        def table(given, k=sizes[m]):
            return rng.dirichlet(np.ones(k), size=[sizes[q.partition("@")[0]] for q in given])

        first = [table([q for q in parents if lag(q) <= t]) for t in range(deep)]
        initial = None if not deep else first[0] if deep == 1 else first
        process.add(m, states=sizes[m], parents=parents, p=table(parents), initial=initial)
    return process, sizes


def random_evidence(rng, sizes, lengths, soft=True):
    """Return sequences with hidden columns, missing cells, and likelihoods in some cells."""
    columns = [m for m in sizes if rng.random() < 0.7] or [next(iter(sizes))]

    def cell(k):
        u = rng.random()
        if u < 0.25:
            return None
        return rng.random(k).tolist() if soft and u < 0.35 else int(rng.integers(k))

    return [{m: [cell(sizes[m]) for _ in range(n)] for m in columns} for n in lengths]


def as_given(sequence):
    """Return evidence as the unrolled network takes it."""
    return {f"{m}@{t}": v for m, column in sequence.items() for t, v in enumerate(column) if v is not None}


def true_belief(network, sizes, name, step, given):
    said = given.get(f"{name}@{step}")
    if isinstance(said, int):
        return np.eye(sizes[name])[said]
    return network.query(f"{name}@{step}", given=given).values


def path_log_prob(network, frame, given):
    """Return the log weight of an explanation together with the evidence; minus infinity where it contradicts it."""
    row = {f"{m}@{t}": [frame[m][t]] for m in frame for t in range(len(frame))}
    total = float(network.log_prob(row)[0])
    for name, said in given.items():
        state = int(row[name][0])
        total += np.log(said[state]) if isinstance(said, list) else (0.0 if state == said else -np.inf)
    return total
