"""Vectors in increasing order: a distribution restricted to them, which NumPyro does not have."""

from functools import cache
from typing import Any

from markovia.errors import UnsupportedModel


@cache
def ordered_class() -> type:
    """Return the class `Ordered`; made on first use, because it is one of NumPyro's distributions."""
    import jax.numpy as jnp
    import numpyro.distributions as theirs
    from jax.scipy.special import gammaln

    class Ordered(theirs.Distribution):  # type: ignore[misc]
        """A distribution restricted to vectors in increasing order, such as the means of a mixture.

        Parameters
        ----------
        base
            A distribution of vectors: its last batch axis (or its event axis) holds the entries. Where its entries are
            positive, so are those of the restriction.
        size
            How many entries; for a base of single numbers, which are then independent and alike.

        Notes
        -----
        The log density is that of the base plus log k! for k entries, which normalises it where they are independent and
        alike; otherwise it is right up to a constant, and there are no draws.
        """

        pytree_data_fields = ("base", "_support")

        def __init__(self, base: Any, size: int | None = None, *, validate_args: bool | None = None) -> None:
            if size is not None:
                base = base.expand((*base.batch_shape, size))
            if not base.event_shape:
                if not base.batch_shape:
                    raise ValueError(
                        "Ordered needs a distribution of vectors; give size=, the number of entries"
                    )
                base = base.to_event(1)
            self.base = base
            inner = base.base_dist.support if hasattr(base, "base_dist") else base.support
            lower = getattr(inner, "lower_bound", None)
            positive = lower is not None and not hasattr(inner, "upper_bound")
            constraints = theirs.constraints
            self._support = constraints.positive_ordered_vector if positive else constraints.ordered_vector
            super().__init__(base.batch_shape, base.event_shape, validate_args=validate_args)

        @property
        def support(self) -> Any:
            return self._support

        def log_prob(self, value: Any) -> Any:
            logs = self.base.log_prob(value) + gammaln(self.event_shape[-1] + 1.0)
            return jnp.where(self.support(value), logs, -jnp.inf)

        @property
        def alike(self) -> bool:
            """Whether the entries are independent and alike, as `size` makes them."""
            parts = getattr(self.base, "base_dist", self.base)
            if self.base.event_dim != 1 or parts.event_dim:
                return False
            single = getattr(parts, "base_dist", None)
            return single is not None and single.batch_shape[-1:] in ((), (1,))

        def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
            if not self.alike:
                raise UnsupportedModel(
                    "draws of Ordered need entries that are independent and alike: give the distribution of one, and size="
                )
            return jnp.sort(self.base.sample(key, sample_shape), axis=-1)

    return Ordered
