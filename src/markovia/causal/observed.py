"""The observed distribution a causal formula is worked out on: that of a model, of a table or of the rows of a frame."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from markovia.data.tables.counting import counts
from markovia.errors import InvalidArgument
from markovia.factors.tables.factor import Factor
from markovia.graphs.causal.admg import Admg
from markovia.inference.posterior import Posterior


def observed_joint(source: Any, names: Sequence[str]) -> Factor:
    """Return the joint distribution of variables with states.

    Parameters
    ----------
    source
        A model that answers `query`, a `Factor`, or data whose rows are counted.
    names
        The variables, in the order of the axes.

    Examples
    --------
    >>> import markovia as mk
    >>> observed_joint(mk.examples.sprinkler(), ["rain"]).values.round(3).tolist()
    [0.5, 0.5]
    """
    if isinstance(source, Factor):
        return source.normalize().marginal(names).transpose(names)
    if is_distribution(source):
        posterior = source.query(list(names))
        if not isinstance(posterior, Posterior):
            raise InvalidArgument(f"a table of {', '.join(names)} is needed, but not all of them have states")
        return posterior.factor().transpose(names)
    return counts(source, list(names)).normalize().transpose(names)


def is_distribution(source: Any) -> bool:
    """Say whether a source is a table or a model, rather than rows, whose shares are off by chance."""
    return isinstance(source, Factor) or (  # a frame of pandas has a query too
        hasattr(source, "query") and hasattr(source, "variable")
    )


def district_factor(source: Any, graph: Admg, district: int) -> Factor:
    """Return Q of a district, the distribution of its members when all others are set, as a table with its pillow.

    Each member is conditioned on what is before it in its own district and on the parents of that. The graph holds the
    ancestors of its nodes. Entries are NaN where values of the pillow never occur: nothing is known there.
    """
    found = Factor.scalar()
    before = 0
    for i in graph.order:
        before |= 1 << i
        if district >> i & 1:
            near = graph.district(1 << i, before)
            others = graph.named((near | graph.parents_of(near)) & ~(1 << i))
            joint = observed_joint(source, [*others, graph.names[i]])
            whole = joint.values.sum(axis=-1, keepdims=True)
            given = Factor.of(joint.variables, joint.values / np.where(whole > 0, whole, np.nan))
            product = found * given
            so_far = (found * Factor.of(joint.variables, np.ones(joint.shape))).transpose(product.names)
            found = Factor.of(product.variables, np.where(so_far.values == 0.0, 0.0, product.values))
    return found
