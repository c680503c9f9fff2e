"""Small random decision problems, and their answers by trying every policy."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

import markovia as mk


def random_diagram(
    seed: int,
    n_chance: int = 3,
    n_decisions: int = 2,
    n_utilities: int = 2,
    zeros: bool = False,
    restricted: bool = False,
    recall: bool = False,
) -> mk.BayesianNetwork:
    """Return a random diagram; nodes come in a random order, decisions see some of what is before them."""
    rng = np.random.default_rng(seed)
    bn = mk.BayesianNetwork()
    kinds = ["c"] * n_chance + ["d"] * n_decisions
    rng.shuffle(kinds)
    names: list[str] = []
    seen: list[str] = []
    for k, kind in enumerate(kinds):
        name = f"{kind}{k}"
        states = int(rng.integers(2, 4)) if len(names) < 3 else 2
        before = [n for n in names if rng.random() < 0.5][-2:]
        if kind == "c":
            shape = [*(len(bn.states(q)) for q in before), states]
            p = rng.random(shape) + 0.05
            if zeros:
                p *= rng.random(shape) < 0.6
                p[..., 0] += p.sum(axis=-1) == 0
            bn.add(name, p, parents=before, normalise=True)
        else:
            if recall:
                before = list(dict.fromkeys([*seen, *before]))[:4]
                seen = [*before, name]
            allowed = None
            if restricted:
                allowed = rng.random([*(len(bn.states(q)) for q in before), states]) < 0.7
                allowed[..., 0] |= ~allowed.any(axis=-1)
            bn.add(name, mk.Decision(states, allowed=allowed), parents=before)
        names.append(name)
    for k in range(n_utilities):
        over = list(rng.permutation(names)[: rng.integers(1, 4)])
        bn.add(f"u{k}", mk.Utility(rng.normal(size=[len(bn.states(n)) for n in over]) * 10), parents=over)
    return bn


def joint_outcomes(bn: mk.BayesianNetwork) -> tuple[list[str], dict[str, Any], Any, Any]:
    """Return all states of chance nodes and decisions, with probability, total worth, and codes by name."""
    network: Any = bn
    names = [n for n in bn.variables if n not in bn.utilities]
    chance = [n for n in names if n not in bn.decisions]
    grids = np.array(list(product(*(range(len(bn.states(n))) for n in names))))
    column = {n: grids[:, k] for k, n in enumerate(names)}
    p = np.ones(len(grids))
    for n in chance:
        p *= network[n].values[(*(column[q] for q in bn.parents(n)), column[n])]
    u = np.zeros(len(grids))
    for n in bn.utilities:
        u += network[n].worth[tuple(column[q] for q in bn.parents(n))]
    return names, column, p, u


def best_policy(
    bn: mk.BayesianNetwork, risk: float = 0.0, evidence: Mapping[str, Any] | None = None
) -> float:
    """Return the value of the best deterministic policy by trying all of them."""
    _, column, p, u = joint_outcomes(bn)
    for n, state in (evidence or {}).items():
        p = p * (column[n] == bn.states(n).index(state))
    options = []
    for d in bn.decisions:
        node: Any = bn[d]
        rows = int(np.prod([len(q) for q in node.parents]))
        allowed = (
            np.ones((rows, len(node.variable)), bool)
            if node.allowed is None
            else node.allowed.reshape(rows, -1)
        )
        row = np.zeros(len(p), dtype=int)
        for q in node.parents:
            row = row * len(q) + column[q.name]
        options.append(
            [(row, column[d], np.array(rule)) for rule in product(*(np.flatnonzero(a) for a in allowed))]
        )
    best = -np.inf
    for rules in product(*options):
        w = p.copy()
        for row, chosen, rule in rules:
            w = w * (rule[row] == chosen)
        total = w.sum()
        value = (w @ u) / total if not risk else np.log(w @ np.exp(risk * u) / total) / risk
        best = max(best, value)
    return best


def policies(bn: mk.BayesianNetwork) -> float:
    """Return how many deterministic policies there are."""
    count = 1.0
    for d in bn.decisions:
        node: Any = bn[d]
        count *= float(len(node.variable)) ** int(np.prod([len(q) for q in node.parents]))
    return count
