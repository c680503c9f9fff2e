"""The conditional log likelihood of labels whose nodes have hidden states, summed out, and its gradient.

Every label has some states of its own, so that a node's state says its label. With the potentials of a pairwise field on
states (`objective.py`), the probability of labels is a ratio of two sums over states,

    P(y | x) = Z(x, y) / Z(x),      Z(x, y): over the states that belong to the labels there are,

and the gradient of `log Z(x) - log Z(x, y)` is the difference of the features expected in both: the same inference twice,
once with states held to their labels. Labels that are missing hold nothing. It is not convex. References: Quattoni, Wang,
Morency, Collins and Darrell (2007), one label an instance; Morency, Quattoni and Darrell (2007), one a node. Cost: two
passes of inference over states and two products with the node features.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.marginals import FieldMarginals, field_marginals
from markovia.learning.conditional_fields.objective import PairwiseObjective
from markovia.runtime.array_types import Array, Ints


class HiddenStateObjective(PairwiseObjective):
    """The objective for given data, as `PairwiseObjective` over states, without pseudo-likelihood and Gibbs chains.

    `allowed` (nodes, states) says which states each node may have; `bar` is added to the table of every edge: minus infinity
    for pairs of states that may not meet.
    """

    def __init__(
        self,
        fields: Fields,
        features: Any,
        allowed: NDArray[np.bool_],
        *,
        bar: Array | None = None,
        **settings: Any,
    ) -> None:
        self.allowed, self.bar = allowed, bar
        super().__init__(fields, features, np.zeros(len(allowed), dtype=np.int64), **settings)
        self._lanes = None

    def _expected(self, node: Array, tables: Array, which: Ints | None) -> tuple[float, Array]:
        """Return the log masses and expected features of all states, less those of the states that are allowed."""
        free, held = clamped_and_free(
            self.fields, np.asarray(self.features @ node.T), tables if self.bar is None else tables + self.bar, self.allowed,
            which, method=self.method, damping=self.damping,
        )  # fmt: skip
        self.error = max(free.error, held.error)
        mass = (free.log_mass - held.log_mass)[slice(None) if which is None else which]
        return float(mass.sum()), self._vector(
            self.features, free.beliefs - held.beliefs, free.pairs - held.pairs
        )

    def _count(self, which: Ints | None) -> Array:
        return np.zeros(self.size)  # what is observed is an expectation here


def clamped_and_free(
    fields: Fields,
    scores: Array,
    tables: Array,
    allowed: NDArray[np.bool_],
    which: Ints | None = None,
    **settings: Any,
) -> tuple[FieldMarginals, FieldMarginals]:
    """Return the marginals of all states, and of those that are allowed at each node.

    Examples
    --------
    >>> one = Fields.of(4, np.array([0, 1]), np.array([0, 0]), *np.zeros((2, 0), dtype=np.int64), np.ones((0, 1)))
    >>> scores = np.log([[1.0, 2.0, 3.0, 4.0]])
    >>> free, held = clamped_and_free(one, scores, np.zeros((0, 4, 4)), np.array([[True, True, False, False]]))
    >>> round(float(np.exp(held.log_mass - free.log_mass)[0]), 6)  # the first label, of two states
    0.3
    """
    free = field_marginals(fields, scores, tables, which=which, **settings)
    held = field_marginals(fields, np.where(allowed, scores, -np.inf), tables, which=which, **settings)
    return free, held
