"""An answer averaged over graphs: Bayesian model averaging.

P(targets | given, data) is the sum over graphs of P(graph | data) P(targets, given | graph, data), normalised. Graphs that
are drawn from their posterior stand for the first factor, so each counts as much as it makes the evidence probable; tables
fitted under a Dirichlet prior hold posterior means, with which a network answers as if its parameters were integrated out.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from markovia.errors import ImpossibleEvidence
from markovia.factors.tables.factor import Factor
from markovia.graphs.kinds.directed import DAG
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.posterior_network import NetworkDraws, SampledPosterior
from markovia.runtime.clock import now


def averaged_query(
    graphs: Sequence[DAG], data: Any, targets: Any, given: Any, *, prior: Any = "bdeu", **options: Any
) -> SampledPosterior:
    """Return the average of an answer over graphs; see `EdgePosterior.query`."""
    start = now()
    times = Counter(tuple((name, tuple(g.parents(name))) for name in g.nodes) for g in graphs)
    answers, weights, repeats = [], [], []
    for parents, many in times.items():
        network = BayesianNetwork(DAG.from_parents({name: list(own) for name, own in parents}))
        network.fit(data, prior=prior)
        evidence = 0.0 if not given else float(network.log_evidence(given=given))
        if evidence == -np.inf:
            continue
        answers.append(network.query(targets, given=given, **options))
        weights.append(evidence)
        repeats.append(many)
    if not answers:
        raise ImpossibleEvidence(dict(given))
    share = np.array(repeats) * np.exp(np.array(weights) - max(weights))
    share /= share.sum()
    values = np.stack([a.values for a in answers])
    mean = np.tensordot(share, values, axes=1)
    draws, each = np.repeat(values, repeats, axis=0), np.repeat(share / repeats, repeats)
    spread = np.sqrt(np.tensordot(share, (values - mean) ** 2, axes=1))
    info = replace(
        answers[0].info,
        exact=False,
        error=float(spread.max() * np.sqrt((share**2 / np.array(repeats)).sum())),
        log_evidence=None,
        seconds=now() - start,
        details=NetworkDraws(int(sum(repeats)), len(answers)),
    )
    return SampledPosterior(Factor.of(answers[0].variables, mean), info, draws, each)
