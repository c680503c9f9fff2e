"""Guides that are made and not written: settings of an encoder, and the function that it is in a guide's network."""

from dataclasses import dataclass
from typing import Annotated, Any

from markovia.factors.networks.recipes import ACTIVATIONS
from markovia.runtime.checks import Choice, Count, FromZero, check_options
from markovia.runtime.libraries import jax, jnp, laws


@dataclass(frozen=True, kw_only=True)
class AmortisedGuide:
    """A guide that `fit` makes: an encoder of what is observed below a node, beside what that depends on.

    It standardises what it reads, takes what is not seen for the mean, and proposes from the family that fits the node:
    normals, bent onto the node's support where that is not all numbers, or probabilities of its states.

    Parameters
    ----------
    hidden, layers, activation
        As in `mk.networks.mlp`.

    Examples
    --------
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> from markovia import guides
    >>> m = mk.BayesianNetwork()
    >>> m.add("loading", mk.Parameter(1.0))
    >>> m.add("z", dist.Normal(0, 1), plate="row")
    >>> m.add("x", lambda z, loading: dist.Normal(loading * z, 1), plate="row")
    >>> m.guide("z", guides.Amortised(hidden=8))
    """

    hidden: Count = 64
    layers: FromZero = 2
    activation: Annotated[str, Choice(ACTIVATIONS)] = "silu"

    def __post_init__(self) -> None:
        check_options(self)


def encoder_name(node: str) -> str:
    """Return what the encoder of a node is called among the parameters."""
    return f"guide of {node}"


class EncodedProposal:
    """The function of such a guide; `parents` are its arguments: nodes, whether their entries were seen, and the encoder.

    `support` and `shape` are those of the node, once they are known: of a row's unconstrained numbers, or its states.
    """

    def __init__(self, nodes: tuple[str, ...], support: Any = None, shape: tuple[int, ...] = ()) -> None:
        self.nodes, self.support, self.shape = nodes, support, shape
        self.parents = (*nodes, *(f"{n}_seen" for n in nodes), "encoder")

    def __call__(self, encoder: Any, **values: Any) -> Any:
        """Return the distribution for arrays with rows in front."""
        n, read, seen = encoder.lengths[0], [], []
        for name, size in encoder.module.inputs:
            here = name in values
            read.append(jnp.reshape(values[name], (n, size)) if here else jnp.zeros((n, size)))
            seen.append(jnp.reshape(values[f"{name}_seen"], (n, size)) if here else jnp.zeros((n, size)))
        said = encoder(jnp.concatenate(read, axis=1), jnp.concatenate(seen, axis=1))
        return proposal(self.support, jnp.reshape(said, (n, *self.shape, -1)))


def outputs(support: Any) -> int | None:
    """Return how many numbers an encoder says for each number or state of a support; None where no family is known."""
    if not support.is_discrete:
        return 2
    base = getattr(support, "base_constraint", support)
    if base is laws.constraints.boolean:
        return 1
    return (
        int(base.upper_bound) + 1
        if getattr(base, "lower_bound", None) == 0 and hasattr(base, "upper_bound")
        else None
    )


def proposal(support: Any, said: Any) -> Any:
    """Return the distribution on a support that numbers (..., outputs) stand for."""
    if support.is_discrete:
        return laws.Bernoulli(logits=said[..., 0]) if said.shape[-1] == 1 else laws.Categorical(logits=said)
    normal = laws.Normal(said[..., 0], jax.nn.softplus(said[..., 1]) + 1e-5)
    base = getattr(support, "base_constraint", support)
    return (
        normal
        if base is laws.constraints.real
        else laws.TransformedDistribution(normal, laws.biject_to(support))
    )
