"""The gradient of the log likelihood of a sigmoid belief network: a directed network of logistic nodes, some never observed.

Neal's rule (1992): with s the states of all units (0 and 1), s* = 2 s - 1 and a_i the log odds of unit i given its parents,

    d L / d w_ij  =  sum over rows v, over s, of  P(s | v)  s*_i  s_j  sigma(-s*_i a_i),

which is the expected value of (s_i - sigma(a_i)) s_j. A unit and its parents together are all that it needs, so it is read
off the expected counts of families (`e_step.py`): exact on clique trees, however many units are hidden, as long as those
are narrow; from draws of a Gibbs sampler otherwise, noisy and slow to mix where hidden units explain each other away.
Cost: one E-step, and one pass over the tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markovia.errors import InvalidArgument
from markovia.factors.local_models.logistic import LogisticConditional, state_numbers
from markovia.inference.engine import Engine
from markovia.learning.incomplete.e_step import expected_counts
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks, aligned


@dataclass(frozen=True)
class SigmoidGradient(InNotebooks):
    """How the log likelihood of rows changes with the weights of logistic nodes.

    Attributes
    ----------
    weights
        For each logistic node and parent the slope by its weight, which multiplies its state (`mk.local.Logistic`):
        `weights["v"]["h"]` is that of `h` for `v`.
    biases
        For each logistic node the slope by its bias.
    by_state
        For each logistic node and parent the slope by what each state of the parent contributes to the log odds.
    log_likelihood
        Of the observed cells; not a number where it is not known.
    exact
        Whether no draws were made.
    """

    weights: Mapping[str, Mapping[str, float]]
    biases: Mapping[str, float]
    by_state: Mapping[str, Mapping[str, Array]]
    log_likelihood: float
    exact: bool

    def __str__(self) -> str:
        rows = [[node, "bias", f"{slope:.6g}"] for node, slope in self.biases.items()]
        rows += [[v, of, f"{slope:.6g}"] for v, own in self.weights.items() for of, slope in own.items()]
        return aligned(["node", "weight of", "slope"], rows, 2)


def sigmoid_gradient(
    model: Any, data: Any, *, weights: Any = None, engine: str | Engine = "auto", seed: Any = None
) -> SigmoidGradient:
    """Return the gradient of the log likelihood of rows with respect to the weights of logistic nodes, by Neal's rule.

    Parameters
    ----------
    model
        A Bayesian network with logistic nodes (`mk.local.Logistic`); other nodes are left alone.
    data
        Rows as for `fit`; variables without a column are hidden.
    weights
        The name of a column, or one number a row.
    engine, seed
        "auto" sums exactly where it can; "gibbs", or a `mk.engines.Gibbs`, draws the hidden states of every distinct case.

    Raises
    ------
    InvalidArgument
        If no node is logistic.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("h", states=[0, 1], p=mk.local.Logistic({}, bias=-1.0))
    >>> bn.add("v", states=[0, 1], parents=["h"], p=mk.local.Logistic({"h": 3.0}, bias=-2.0))
    >>> found = mk.learning.sigmoid_gradient(bn, {"v": [1, 1, 0]})
    >>> round(found.weights["v"]["h"], 4), round(found.biases["h"], 4)
    (0.2989, 0.6799)
    """
    expected = expected_counts(model, data, weights=weights, engine=engine, seed=seed)
    by_weight: dict[str, dict[str, float]] = {}
    by_state: dict[str, dict[str, Array]] = {}
    biases: dict[str, float] = {}
    for node, counts in zip(model.pieces(), expected.counts, strict=True):
        if not isinstance(node, LogisticConditional):
            continue
        # rows that show the second state, less those that were to be expected, by the states of the parents
        surplus = counts[..., 1] - counts.sum(axis=-1) * node.values[..., 1]
        name, axes = node.variable.name, range(len(node.parents))
        by_state[name] = {
            p.name: surplus.sum(axis=tuple(a for a in axes if a != i)) for i, p in enumerate(node.parents)
        }
        by_weight[name] = {
            p.name: float(by_state[name][p.name] @ numbers)
            for p in node.parents
            if (numbers := state_numbers(p)) is not None
        }
        biases[name] = float(surplus.sum())
    if not biases:
        raise InvalidArgument("no node of this network is logistic; give nodes p=mk.local.Logistic(...)")
    return SigmoidGradient(by_weight, biases, by_state, expected.log_likelihood, expected.exact)
