"""Plug-in: fit a Bayesian network to the frame and evaluate the formula on it; any effect that is identified.

With hidden common causes the network's graph is the one that the observed variables obey: each variable's parents are the
others of its district among its predecessors, and all their parents (its Markov pillow; Tian & Pearl, 2002; Richardson,
2009). Tables, linear Gaussians and mixtures of both are fitted by maximum likelihood and answered by the exact engines.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from markovia.causal.identification.estimand import Estimand
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.directed import DAG
from markovia.models.graphical.bayesian_network import BayesianNetwork

if TYPE_CHECKING:
    import pandas as pd


def observed_network(
    estimand: Estimand, frame: "pd.DataFrame", states: Mapping[str, Any] | None = None
) -> BayesianNetwork:
    """Return a network of the observed variables of the effect, fitted to the frame; `states` fixes those of some."""
    admg = Admg.of(estimand.graph)
    relevant = admg.ancestors(admg.mask((*estimand.outcome, *estimand.treatment, *estimand.given)))
    edges, earlier = [], 0
    for node in (v for v in admg.order if relevant >> v & 1):
        earlier |= 1 << node
        near = admg.district(1 << node, within=earlier)
        parents = (near | admg.parents_of(near)) & earlier & ~(1 << node)
        edges += [(parent, admg.names[node]) for parent in admg.named(parents)]
    names = list(admg.named(relevant))
    model = BayesianNetwork(DAG(edges, nodes=names))
    model.fit(frame[names], states={n: s for n, s in (states or {}).items() if n in names})
    return model


def outcome_mean(
    estimand: Estimand, model: BayesianNetwork, do: Mapping[str, Any], event: Any, given: Mapping[str, Any]
) -> float:
    """Return the mean of the outcome (the probability of its event) where the treatments are set."""
    found: Any = estimand.evaluate(model, do, given=dict(given))
    if hasattr(found, "to_dict"):
        p = found.to_dict()
        return float(p[event]) if event is not None else float(sum(float(s) * q for s, q in p.items()))
    return float(found.mean(estimand.outcome[0]))
