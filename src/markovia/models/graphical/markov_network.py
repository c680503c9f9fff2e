"""Markov networks (Markov random fields): an undirected graph with potentials on its cliques."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.potentials import potentials
from markovia.factors.potentials.canonical import canonical_potentials
from markovia.factors.potentials.log_linear import LogLinear
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.models.graphical.factor_model import FactorModel


class MarkovNetwork(FactorModel):
    """An undirected model: `P(x) = (1/Z) prod_c psi_c(x_c)`.

    Parameters
    ----------
    variables
        A mapping from name to states (a list, or a number for `0 ... k-1`), or `Variable` objects; variables that
        only the factors name are added after them.
    factors
        The potentials; a factor made with plain names takes over the model's states.
    name
        A name that files keep.

    Examples
    --------
    >>> from markovia import Factor
    >>> mn = MarkovNetwork({"a": 2, "b": 2}, [Factor(["a", "b"], [[30, 5], [1, 10]])])
    >>> round(mn.query("a")[0], 4)
    0.7609
    >>> mn.edges
    [('a', 'b')]
    """

    # -- other ways to build one -------------------------------------------------------------------------------

    @classmethod
    def pairwise(cls, unary: Mapping[Any, ArrayLike], edges: Mapping[tuple[str, str], ArrayLike]) -> Self:
        """Build from weights of single states and of pairs.

        Examples
        --------
        >>> MarkovNetwork.pairwise({"a": [1, 2], "b": [1, 1]}, {("a", "b"): [[3, 1], [1, 3]]})
        MarkovNetwork(2 variables, 3 factors)
        """
        return cls(factors=potentials.pairwise(unary, edges))

    @classmethod
    def ising(
        cls,
        couplings: Mapping[tuple[str, str], float],
        fields: Mapping[str, float] | None = None,
        states: Sequence[State] = (-1, 1),
    ) -> Self:
        """Build an Ising model `exp(sum w_ij x_i x_j + sum h_i x_i)`; a positive coupling attracts."""
        return cls(factors=potentials.ising(couplings, fields, states))

    @classmethod
    def potts(
        cls,
        edges: Mapping[tuple[str, str], float] | Iterable[tuple[str, str]],
        n_states: int | Sequence[State],
        strength: float = 1.0,
        fields: Mapping[str, Any] | None = None,
    ) -> Self:
        """Build a Potts model: neighbours in the same state weigh `exp(strength)`."""
        return cls(factors=potentials.potts(edges, n_states, strength, fields))

    @classmethod
    def boltzmann(
        cls,
        theta: ArrayLike,
        alpha: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        states: Sequence[int] = (-1, 1),
    ) -> Self:
        """Build a Boltzmann machine from its symmetric weight matrix and biases."""
        factors = potentials.boltzmann(theta, alpha, names, states)
        found = {v.name: v for f in factors for v in f.variables}
        order = names if names is not None else sorted(found, key=lambda n: int(n.removeprefix("x")))
        return cls([found[n] for n in order], factors)

    @classmethod
    def restricted_boltzmann(
        cls,
        weights: ArrayLike,
        visible_bias: ArrayLike | None = None,
        hidden_bias: ArrayLike | None = None,
        states: Sequence[int] = (0, 1),
    ) -> Self:
        """Build a restricted Boltzmann machine `exp(sum a_i v_i + sum b_j h_j + sum w_ij v_i h_j)`.

        Units of one layer are independent given the other layer.

        Examples
        --------
        >>> rbm = MarkovNetwork.restricted_boltzmann([[1.0, -0.5], [0.3, 2.0], [0.0, 1.0]])
        >>> rbm.variables
        ['v0', 'v1', 'v2', 'h0', 'h1']
        >>> rbm.independent("h0", "h1", given=["v0", "v1", "v2"]), rbm.independent("h0", "h1")
        (True, False)
        """
        w = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        n, m = w.shape
        theta = np.zeros((n + m, n + m))
        theta[:n, n:] = w
        theta[n:, :n] = w.T
        bias = np.zeros(n + m)
        bias[:n] += 0.0 if visible_bias is None else np.asarray(visible_bias, dtype=np.float64)
        bias[n:] += 0.0 if hidden_bias is None else np.asarray(hidden_bias, dtype=np.float64)
        names = [*(f"v{i}" for i in range(n)), *(f"h{j}" for j in range(m))]
        return cls.boltzmann(theta, bias, names, states)

    @classmethod
    def from_energies(
        cls, energies: Iterable[tuple[Iterable[Variable | str], ArrayLike]], temperature: float = 1.0
    ) -> Self:
        """Build from energies: each pair (variables, table) becomes the potential `exp(-table / temperature)`.

        Examples
        --------
        >>> mn = MarkovNetwork.from_energies([(["a", "b"], [[0, 1], [1, 0]])])
        >>> round(mn.query(["a", "b"])[0, 0], 4)
        0.3655
        """
        if isinstance(energies, Mapping) or not isinstance(energies, Iterable):
            raise InvalidArgument("energies are a list of pairs (variables, table)")
        pairs = list(energies)
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise InvalidArgument(f"each energy is a pair (variables, table), not {pair!r}")
        return cls(factors=[potentials.from_energy(v, e, temperature) for v, e in pairs])

    @classmethod
    def log_linear(cls, model: LogLinear) -> Self:
        """Build from weighted features: `exp(sum_k w_k f_k(x))`."""
        return cls(factors=model.factors())

    @classmethod
    def from_joint(cls, joint: Factor, reference: Mapping[str, State] | None = None) -> Self:
        """Build from a strictly positive joint table by its canonical potentials (Hammersley-Clifford).

        Only potentials that are not identically one are kept, so the graph has no more edges than it needs.
        """
        kept = [
            factor
            for scope, factor in canonical_potentials(joint, reference).items()
            if not scope or abs(factor.values - 1.0).max() > 1e-9
        ]
        return cls(joint.variables, kept)

    # -- looking -----------------------------------------------------------------------------------------------

    @property
    def graph(self) -> UndirectedGraph:
        """The undirected graph (a copy: edit the network, not its graph)."""
        return self.undirected_graph

    @property
    def edges(self) -> list[tuple[str, str]]:
        """All edges."""
        return self._interactions().edges
