"""How readily new groups open: the concentration of a Chinese restaurant, held or drawn.

With K groups of n rows, (concentration + 1)_{n-1} in the denominator of the partition's law is a beta integral and
(concentration + k discount) a sum of two terms; with one more variable for each the conditional is a gamma law. It is the
step of Escobar and West (1995), for a discount too (Teh 2006).
"""

from collections.abc import Mapping

import numpy as np

from markovia.factors.processes.chinese_restaurant import ChineseRestaurant
from markovia.runtime.array_types import Array, Ints


class Concentration:
    """A concentration, its gamma prior (shape, rate) if it is learned, and the discount of a Pitman-Yor process."""

    def __init__(self, value: float, prior: tuple[float, float] | None = None, discount: float = 0.0) -> None:
        self.value = float(value)
        self.prior = prior
        self.discount = float(discount)

    def redraw(self, n: int, groups: int, rng: np.random.Generator) -> None:
        """Draw the concentration given how many groups n rows have; one that is held stays."""
        if self.prior is None:
            return
        shape, rate = self.prior
        if n > 1:
            rate -= np.log(rng.beta(self.value + 1.0, n - 1.0))
            k = np.arange(1, groups)
            shape += float((rng.random(groups - 1) * (self.value + self.discount * k) < self.value).sum())
        self.value = max(float(rng.gamma(shape) / rate), 1e-8)

    def log_prob(self, sizes: Ints) -> float:
        """Return the log probability of a partition with groups of these sizes, and of the concentration."""
        found = ChineseRestaurant(self.value, self.discount).log_prob_of_sizes(sizes)
        if self.prior is not None:
            shape, rate = self.prior
            found += float((shape - 1.0) * np.log(self.value) - rate * self.value)
        return found

    def state(self) -> dict[str, Array]:
        """Return what a file keeps."""
        return {"concentration": np.array(self.value)}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up what `state` gave."""
        self.value = float(state["concentration"])
