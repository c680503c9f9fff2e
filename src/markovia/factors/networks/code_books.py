"""Code books: which of a list of vectors is nearest to what a network says, as a distribution over the list."""

from typing import Any

from markovia.runtime.libraries import jax, jnp, laws


class NearestCode(laws.CategoricalLogits):  # type: ignore[misc]
    """States whose codes are near a vector are probable: by exp(-squared distance), the nearest most of all.

    As a guide it says to an objective (`mk.objectives.VectorQuantised`) which vector was encoded and which code is nearest;
    to an engine it is a distribution to draw proposals from.

    Parameters
    ----------
    encoded
        Vectors, with plates in front.
    codes
        The code of each state: states, then numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> codes = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> law = mk.networks.NearestCode(np.array([[0.9, 0.8]]), codes)
    >>> law.state.tolist(), law.nearest.tolist()
    ([1], [[1.0, 1.0]])
    """

    def __init__(self, encoded: Any, codes: Any) -> None:
        self.encoded, self.codes = jnp.asarray(encoded), jnp.asarray(codes)
        apart = jnp.sum((self.encoded[..., None, :] - self.codes) ** 2, axis=-1)
        super().__init__(logits=-apart, validate_args=False)

    @property
    def state(self) -> Any:
        """The state with the nearest code."""
        return jnp.argmax(self.logits, axis=-1)

    @property
    def nearest(self) -> Any:
        """The nearest code."""
        return self.codes[self.state]

    def passed(self) -> Any:
        """Return the nearest code, through which gradients go as if it were what was encoded."""
        return self.encoded + jax.lax.stop_gradient(self.nearest - self.encoded)
