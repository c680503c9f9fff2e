"""Modules that the recipes make, beyond those of Equinox."""

from typing import Any

from markovia.errors import InvalidArgument
from markovia.runtime.libraries import eqx, jax, jnp


class Perceptron(eqx.nn.MLP):
    """A multilayer perceptron of one vector, or of several that are put behind each other."""

    def __call__(self, *arguments: Any, key: Any = None) -> Any:
        """Return what the network says of the vectors."""
        if self.in_size == "scalar":
            x = jnp.asarray(arguments[0])
            misfit(self, "one number, shape ()", arguments, len(arguments) == 1 and x.shape == ())
        else:
            misfit(self, "vectors", arguments, len(arguments) > 1 or jnp.ndim(arguments[0]) < 2)
            x = joined(arguments)
            misfit(self, f"a vector of shape ({self.in_size},)", arguments, x.shape == (self.in_size,))
        return super().__call__(x)


def perceptron(key: Any, inputs: Any, outputs: Any, hidden: int, layers: int, activation: Any) -> Any:
    """Return a perceptron with random numbers."""
    made: Any = Perceptron
    return made(inputs, outputs, hidden, layers, activation, key=key)


class GaussianHead(eqx.Module):
    """A network of twice as many outputs, read as locations and scales."""

    network: Any

    def __call__(self, *arguments: Any) -> tuple[Any, Any]:
        """Return locations, and scales above zero."""
        loc, raw = jnp.split(self.network(*arguments), 2, axis=-1)
        return loc, jax.nn.softplus(raw) + 1e-5


def gaussian_maker(maker: Any) -> Any:
    """Return what makes a network with a `GaussianHead` of what makes one."""

    def made(key: Any, inputs: Any, outputs: int, **settings: Any) -> GaussianHead:
        return GaussianHead(maker(key, inputs, 2 * outputs, **settings))

    return made


def joined(arguments: tuple[Any, ...]) -> Any:
    """Return arrays behind each other as one vector."""
    return jnp.concatenate([jnp.ravel(jnp.asarray(a)) for a in arguments])


def misfit(module: Any, wanted: str, arguments: tuple[Any, ...], fits: bool) -> None:
    """Raise unless arguments fit, with what the module takes and the shapes that it was given."""
    if not fits:
        shapes = ", ".join(str(tuple(jnp.shape(a))) for a in arguments) or "nothing"
        raise InvalidArgument(f"{type(module).__name__} takes {wanted}, and was given {shapes}")


def time_features(t: Any, n: int) -> Any:
    """Return n waves of a time between 0 and 1, from slow ones to fast ones, which a network tells times apart by."""
    rates = 1000.0 ** jnp.linspace(0.0, 1.0, n // 2) * jnp.asarray(t)
    return jnp.concatenate([jnp.sin(rates), jnp.cos(rates)])
