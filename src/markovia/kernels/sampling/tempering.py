"""Gibbs sweeps at several temperatures with exchanges of neighbouring configurations."""

from math import exp

import numpy as np

from markovia.kernels.kernel import kernel
from markovia.kernels.random_numbers import uniform
from markovia.kernels.sampling.chains import LOG_WEIGHT, log_weight, record, remember_best
from markovia.kernels.sampling.gibbs import SYSTEMATIC, update


@kernel
def run_tempered(
    graph,
    chain,
    unary,
    values,
    betas,
    x,
    offset,
    held,
    row,
    order,
    swaps,
    thin,
    first,
    count,
    draws,
    mode,
    warm,
):
    """Make draws of the coldest rung; `row[r]` is the configuration at rung r, `swaps[r]` counts tries and successes."""
    rungs = len(betas)
    logs = np.empty(rungs)
    for t in range(first, first + count):
        for sweep in range(thin):
            for r in range(rungs):
                at = row[r]
                update(graph, unary[r], values[r], x[at], offset[at], held[r], chain.rng, chain.room, order, 0,
                       len(order), SYSTEMATIC)  # fmt: skip
                logs[r] = log_weight(graph, x[at], offset[at])
            for r in range((t * thin + sweep) % 2, rungs - 1, 2):
                gain = (betas[r] - betas[r + 1]) * (logs[r + 1] - logs[r])
                swaps[r, 0] += 1.0
                if gain >= 0.0 or uniform(chain.rng) < exp(gain):
                    swaps[r, 1] += 1.0
                    row[r], row[r + 1] = row[r + 1], row[r]
                    logs[r], logs[r + 1] = logs[r + 1], logs[r]
        at = row[0]
        for i in range(len(order)):
            chain.x[i] = x[at, i]
        for f in range(len(chain.offset)):
            chain.offset[f] = offset[at, f]
        for s in range(len(chain.held)):
            chain.held[s] = held[0, s]
        chain.scalars[LOG_WEIGHT] = logs[0]
        remember_best(chain)
        if len(warm):
            warm[t] = logs[0]
        else:
            record(graph, chain, t, draws, mode)
