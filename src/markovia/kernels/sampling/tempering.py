"""Gibbs sweeps at several temperatures with exchanges of neighbouring configurations."""

from math import exp

import numpy as np

from markovia.kernels.kernel import kernel
from markovia.kernels.random_numbers import uniform
from markovia.kernels.sampling.chains import LOG_WEIGHT, log_weight, note
from markovia.kernels.sampling.gibbs import SYSTEMATIC, update


@kernel
def run_tempered(graph, chain, rungs, order, plan):
    """Make draws of the coldest rung."""
    unary, values, betas, x, offset, held, row, swaps = rungs
    logs = np.empty(len(betas))
    for t in range(plan.first, plan.first + plan.number):
        for sweep in range(plan.thin):
            for r in range(len(betas)):
                at = row[r]
                update(graph, unary[r], values[r], x[at], offset[at], held[r], chain.rng, chain.room, order, 0,
                       len(order), SYSTEMATIC)  # fmt: skip
                logs[r] = log_weight(graph, x[at], offset[at])
            # neighbouring rungs exchange their configurations, odd and even ones in turn
            for r in range((t * plan.thin + sweep) % 2, len(betas) - 1, 2):
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
        note(graph, chain, t, plan)
