"""The weights and the leaves of a circuit of sums and products, by expectation-maximisation.

A step takes how often each term of each sum, and each leaf, is expected to be behind the rows (one pass up and one down),
and shares it out; cells that are missing are in no count. The objective is the log likelihood with the log of a Dirichlet
prior on leaves with states, and never falls; variances have a floor. References: Poon and Domingos (2011); Zhao, Poupart and
Gordon (2016). Cost of a step: twice the edges, times rows.
"""

from dataclasses import replace

import numpy as np

from markovia.inference.circuits.circuit import Circuit, Evidence
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array, Ints


def learn_circuit(
    circuit: Circuit,
    evidence: Evidence,
    weights: Array,
    *,
    pseudo_count: float,
    floors: Array,
    max_iter: int,
    tol: float,
    progress: bool | None = False,
) -> Climb[Circuit]:
    """Climb the log likelihood of weighted rows; `floors` has the least variance of each variable."""
    from scipy.special import xlogy

    discrete = np.array([states is not None for states in circuit.states])[circuit.variable]

    def step(now: Circuit) -> tuple[Circuit, float]:
        log_likelihood, after = _step(now, evidence, weights, pseudo_count, floors)
        # columns beyond a variable's own states are zeros in every leaf
        inside = now.probs[discrete]
        prior = float(xlogy(pseudo_count, np.where(inside > 0.0, inside, 1.0)).sum())
        return after, log_likelihood + prior

    size = max(1.0, float(weights.sum()))
    return climb(step, circuit, max_iter=max_iter, tol=tol, size=size, progress=progress)


def best_terms(circuit: Circuit, evidence: Evidence, rows: int) -> Ints:
    """Return the most probable term of the root, which is a sum, given each row."""
    at = slice(circuit.first[-2], circuit.first[-1])
    found = np.empty(rows, dtype=np.int64)
    for part, own in circuit.blocks(evidence, rows):
        values = circuit.values(own, part.stop - part.start)
        found[part] = (values[circuit.child[at]] + circuit.log_weight[at, None]).argmax(axis=0)
    return found


def _step(
    now: Circuit, evidence: Evidence, weights: Array, pseudo_count: float, floors: Array
) -> tuple[float, Circuit]:
    """Return the log likelihood, and the circuit that the expected counts make."""
    from markovia.kernels.flat_graphs.circuit_passes import edge_counts

    n = len(now.variable)
    edges, probs = np.zeros(len(now.child)), pseudo_count * (now.probs > 0.0)
    sizes, firsts, squares = np.zeros((3, n))
    log_likelihood = 0.0
    for part, own in now.blocks(evidence, len(weights)):
        share = weights[part]
        values = now.values(own, len(share))
        slopes = now.slopes(values)
        log_likelihood += float(share @ np.where(share > 0.0, values[-1], 0.0))
        edge_counts(now.tables, values, slopes, share, edges)
        belongs = np.exp(values[:n] + slopes[:n] - values[-1]) * share  # (leaves, rows)
        for v in np.unique(now.variable):
            at, said, states = np.flatnonzero(now.variable == v), own[v], now.states[v]
            if states is not None:
                there = said >= 0
                probs[at, : len(states)] += belongs[at][:, there] @ np.eye(len(states))[said[there]]
            else:
                there = ~np.isnan(said)
                # about the leaf's own mean, so that squares do not cancel far from zero
                away = said[there] - now.means[at, None]
                some = belongs[at][:, there]
                sizes[at] += some.sum(axis=1)
                firsts[at] += (some * away).sum(axis=1)
                squares[at] += (some * away**2).sum(axis=1)
    owner = np.repeat(np.arange(len(now.sums)), np.diff(now.first))
    totals = np.bincount(owner, edges, len(now.sums))[owner]
    whole = probs.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(sizes > 0.0, firsts / sizes, 0.0)
        spread = np.where(sizes > 0.0, squares / sizes - shift**2, now.variances)
        return log_likelihood, replace(
            now, log_weight=np.where(now.sums[owner] & (totals > 0.0), np.log(edges / totals), now.log_weight),
            probs=np.where(whole > 0.0, probs / whole, now.probs), means=now.means + shift,
            variances=np.maximum(spread, floors[now.variable]),
        )  # fmt: skip
