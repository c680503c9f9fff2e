"""A two-layer network for diagnosis: diseases, and findings that are leaky noisy-ors of them."""

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.local_models.noisy import NoisyOrConditional
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import Variable
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import generator


def qmr(
    n_diseases: int,
    n_findings: int,
    *,
    causes: int | tuple[int, int] = (1, 10),
    prior: tuple[float, float] = (0.001, 0.1),
    strength: tuple[float, float] = (0.1, 0.9),
    leak: tuple[float, float] = (0.001, 0.05),
    seed: int | np.random.Generator | None = None,
) -> BayesianNetwork:
    """Draw a two-layer diagnosis network: rare diseases above, findings below, each a leaky noisy-or of its causes.

    The tables are never written out, so a finding may have hundreds of causes and the network can still be
    sampled and scored; exact queries are limited by the treewidth.

    Parameters
    ----------
    n_diseases, n_findings
        The sizes of the two layers, `d0, d1, ...` and `f0, f1, ...`, all with states "no" and "yes".
    causes
        The number of diseases behind a finding, or a pair (fewest, most).
    prior
        Range of the diseases' probabilities, drawn evenly on the log scale.
    strength
        Range of the probability that a disease alone produces a finding.
    leak
        Range of the probability of a finding without any disease, drawn evenly on the log scale.
    seed
        An integer or a NumPy generator.

    Notes
    -----
    The shape of QMR-DT: Shwe and others, "Probabilistic diagnosis using a reformulation of the
    INTERNIST-1/QMR knowledge base", Methods of Information in Medicine 30 (1991).

    Examples
    --------
    >>> bn = qmr(200, 50, causes=150, seed=0)
    >>> bn.count_parameters(), bn.sample(3, seed=0).shape
    (7750, (3, 250))
    """
    if n_diseases < 1 or n_findings < 0:
        raise InvalidArgument(f"qmr() needs at least one disease, got {n_diseases} and {n_findings} findings")
    fewest, most = (causes, causes) if isinstance(causes, int | np.integer) else causes
    if not 0 <= fewest <= most <= n_diseases:
        raise InvalidArgument(
            f"causes is a number or a pair (fewest, most) of the {n_diseases} diseases, not {causes!r}"
        )
    rng = generator(seed)
    diseases = [Variable(f"d{i}", ["no", "yes"]) for i in range(n_diseases)]
    conditionals: list[Conditional] = [
        ConditionalTable.of(d, (), np.array([1.0 - p, p]))
        for d, p in zip(diseases, _log_uniform(prior, "prior", n_diseases, rng), strict=True)
    ]
    leaks = _log_uniform(leak, "leak", n_findings, rng)
    weakest, strongest = _probabilities(strength, "strength")
    for i in range(n_findings):
        chosen = np.sort(rng.choice(n_diseases, size=int(rng.integers(fewest, most + 1)), replace=False))
        strengths = rng.uniform(weakest, strongest, size=len(chosen))
        strengths.setflags(write=False)
        conditionals.append(
            NoisyOrConditional(
                Variable(f"f{i}", ["no", "yes"]),
                tuple(diseases[int(c)] for c in chosen),
                strengths,
                float(leaks[i]),
                (1,) * len(chosen),
            )
        )
    return BayesianNetwork.from_conditionals(conditionals, name="qmr")


def _probabilities(bounds: tuple[float, float], what: str) -> tuple[float, float]:
    low, high = bounds
    if not 0 <= low <= high <= 1:
        raise InvalidArgument(f"{what} is a pair of probabilities (lowest, highest), not {bounds!r}")
    return low, high


def _log_uniform(bounds: tuple[float, float], what: str, size: int, rng: np.random.Generator) -> Array:
    low, high = _probabilities(bounds, what)
    if low == high:
        return np.full(size, low)
    if low == 0:
        raise InvalidArgument(
            f"{what} is drawn on the log scale, so its range starts above 0, not at {bounds!r}"
        )
    return np.exp(rng.uniform(np.log(low), np.log(high), size=size))
