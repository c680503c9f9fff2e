"""Rows of a model whose density is known up to a constant, as vectors of free numbers in units of their spread.

What moves rows by gradients of their log density (Langevin steps, scores, noise) does so in these coordinates, so that no
setting depends on the units of the data.
"""

from collections.abc import Container, Mapping
from math import prod
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.inference.densities.program.node_tracing import bijection, is_real
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp

Units = tuple[Any, Any]
"""Means and spreads of the free numbers of rows."""


class EnergyRows:
    """The observed numbers of each row as one vector.

    Attributes
    ----------
    names
        The nodes that are observed, potentials left out.
    size, real
        How many numbers a row has, and whether all may be any real number.
    """

    def __init__(self, program: RowwiseModel, what: str) -> None:
        self.program = program
        sites = program.program.layout.sites
        self.names = [s.name for s in sites.values() if s.role == "observed" and s.piece.kind != "potential"]
        hidden = [*program.program.hidden, *program.around, *(program.guide.names if program.guide else ())]
        if hidden:
            raise UnsupportedModel(
                f"{what} is for models that are observed as a whole, and {hidden[0]!r} is not"
            )
        self._shapes, self._maps = {}, {}
        for name in self.names:
            site = sites[name]
            if site.masked or site.support is None or site.support.is_discrete:
                wrong = "misses entries" if site.masked else "is no number with a fixed range"
                raise UnsupportedModel(
                    f"{what} moves all observed numbers by gradients, and {name!r} {wrong}"
                )
            self._shapes[name] = program.rows[name].shape[1:]
            self._maps[name] = bijection(site.support)
        self.size = sum(map(prod, self._shapes.values()))
        self.real = all(is_real(sites[n].support) for n in self.names)

    def units(self) -> Units:
        """Return means and spreads of the data; a constant has the spread of its size, or 1."""
        with x64():
            free = np.asarray(self._free(self.program.rows))
        mean, sd = free.mean(axis=0), free.std(axis=0)
        constant = sd <= 1e-12 * np.abs(mean)
        return mean, np.where(constant, np.where(mean == 0.0, 1.0, np.abs(mean)), sd)

    def _free(self, rows: Mapping[str, Any]) -> Any:
        parts = [self._maps[n].inv(jnp.asarray(rows[n])) for n in self.names]
        return jnp.concatenate([jnp.reshape(p, (p.shape[0], -1)) for p in parts], axis=1)

    def vectors(self, rows: Mapping[str, Any], units: Units) -> Any:
        """Return rows as vectors."""
        return (self._free(rows) - units[0]) / units[1]

    def values(self, vectors: Any, units: Units) -> tuple[dict[str, Any], Any]:
        """Return the values of the nodes at vectors, and the log Jacobian of each row."""
        free, start, found = units[0] + units[1] * vectors, 0, {}
        jacobian = jnp.broadcast_to(jnp.sum(jnp.log(units[1])), vectors.shape[:1])
        for name, shape in self._shapes.items():
            own = jnp.reshape(free[:, start : start + prod(shape)], (-1, *shape))
            start += prod(shape)
            found[name] = self._maps[name](own)
            logs = self._maps[name].log_abs_det_jacobian(own, found[name])
            jacobian = jacobian + jnp.sum(logs, axis=tuple(range(1, jnp.ndim(logs))))
        return found, jacobian

    def log_probs(
        self,
        parameters: Mapping[str, Any],
        rows: Mapping[str, Any],
        vectors: Any,
        units: Units,
        names: Container[str] | None = None,
    ) -> Any:
        """Return the log density of vectors, up to log Z; with `names`, of these nodes' own distributions alone."""
        values, jacobian = self.values(vectors, units)
        return jacobian + self.program.joint_log_probs(parameters, rows, values, names)


def score(log_probs: Any, vectors: Any) -> Any:
    """Return the gradient of the log density of each row by its vector."""
    return jax.grad(lambda v: jnp.sum(log_probs(v)))(vectors)
