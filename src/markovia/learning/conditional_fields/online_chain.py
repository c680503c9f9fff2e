"""Training taggers one sequence at a time: the averaged structured perceptron and passive-aggressive steps.

Both move the weights only where the best labelling is wrong (Collins 2002; Crammer et al. 2006), and give the mean of the
weights on the way, which is far less shaky than the last ones. A few passes are often as good as a likelihood fit and take
no tuning; there are no probabilities behind the scores. Cost of a pass: one Viterbi path a sequence.
"""

import numpy as np

from markovia.kernels.fields.crf_records import ChainParameters, LabelledTokens
from markovia.kernels.plain_code import either
from markovia.learning.conditional_fields.chain_objective import ChainObjective
from markovia.optimise.minimise import Minimum
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now
from markovia.runtime.progress import progress_bar


def learn_online(
    objective: ChainObjective,
    rng: np.random.Generator,
    *,
    aggressiveness: float = 0.0,
    max_iter: int = 50,
    tol: float = 0.0,
    progress: bool | None = None,
) -> Minimum:
    """Return the mean weights of passes over the sequences in random order.

    Parameters
    ----------
    objective
        The data and the layout of the weights; penalties do not count.
    rng
        For the order.
    aggressiveness
        The longest passive-aggressive step; 0 for the perceptron.
    max_iter, tol
        Passes at most, and the share of wrong labels in a pass at which to stop.
    """
    began = now()
    tokens, k = objective.tokens, objective.k
    ptr, columns, values = tokens.entries
    first = objective.unpack(np.zeros(objective.size))
    base = np.stack([first.intercept, first.start, first.end])
    weights = ChainParameters(np.zeros((tokens.width, k)), first.transitions.copy(), base)
    state_free = np.ones(weights.state.size, dtype=bool)
    if objective.cells is not None:
        state_free[:] = False
        state_free[objective.cells] = True
    pair_free = np.zeros(k * k, dtype=bool)
    pair_free[objective.pairs] = True
    base_free = np.repeat([[objective.intercept], [objective.ends], [objective.ends]], k, axis=1)
    free = ChainParameters(state_free.reshape(-1, k), pair_free.reshape(k, k), base_free)
    drift = ChainParameters(*map(np.zeros_like, weights))
    work = either(
        "markovia.kernels.fields.online_chain:online_pass", 4 * (len(columns) + len(tokens) * k) * k
    )
    steps, history, converged, interrupted = np.zeros(1), [], False, False
    labelled = LabelledTokens(tokens.offsets, ptr, columns, values, objective.codes)
    with progress_bar(progress, max_iter) as tick:
        try:
            for _ in range(max_iter):
                order = rng.permutation(objective.n_instances)
                history.append(
                    float(work(order, labelled, free, float(aggressiveness), steps, weights, drift))
                )
                tick(1)
                if history[-1] <= tol * len(tokens):
                    converged = True
                    break
        except KeyboardInterrupt:
            interrupted = True
    share = 1.0 / max(float(steps[0]), 1.0)
    theta = _packed(objective, *(last - share * moved for last, moved in zip(weights, drift, strict=True)))
    value = history[-1] if history else np.nan
    reason = "interrupted" if interrupted else "converged" if converged else "steps"
    passes = len(history)
    return Minimum(theta, value, np.nan, converged, reason, passes, passes, tuple(history), now() - began)


def _packed(objective: ChainObjective, weights: Array, transitions: Array, base: Array) -> Array:
    flat = weights.ravel()
    parts = [flat if objective.cells is None else flat[objective.cells], transitions.ravel()[objective.pairs]]
    if objective.intercept:
        parts.append(base[0])
    if objective.ends:
        parts += [np.where(np.isfinite(base[1]), base[1], 0.0), np.where(np.isfinite(base[2]), base[2], 0.0)]
    return np.concatenate(parts)
