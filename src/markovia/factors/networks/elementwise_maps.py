"""Monotone maps of single numbers with numbers that a network sets: what couplings and autoregressive layers bend by.

References: Dinh, Krueger and Bengio (2015) for shifts, Dinh, Sohl-Dickstein and Bengio (2017) for shifts and scales, Durkan,
Bekasov, Murray and Papamakarios (2019) for rational-quadratic splines. Every map is inverted in closed form.
"""

from dataclasses import dataclass
from typing import Any

from markovia.runtime.libraries import jax, jnp

STEEPEST = 5.0
"""The largest log scale of an affine map, either way."""
LEAST = 1e-3
"""The smallest width, height (as shares) and slope of a spline's piece."""


@dataclass(frozen=True)
class ElementwiseMap:
    """A family of monotone maps; a spline has so many bins, and is the identity beyond its reach from zero."""

    kind: str
    bins: int = 8
    reach: float = 5.0

    @property
    def width(self) -> int:
        """How many numbers a map has."""
        return {"affine": 2, "additive": 1, "spline": 3 * self.bins - 1}[self.kind]

    def bent(self, raw: Any, value: Any, back: bool) -> tuple[Any, Any]:
        """Return images of numbers, or with `back` what they are images of, and the log slopes of that map there.

        `raw` has the numbers of each map along its first axis.
        """
        if self.kind == "spline":
            return self._spline(raw, value, back)
        if self.kind == "additive":
            return (value - raw[0] if back else value + raw[0]), jnp.zeros_like(value)
        log_scale = STEEPEST * jnp.tanh(raw[1] / STEEPEST)
        if back:
            return (value - raw[0]) * jnp.exp(-log_scale), -log_scale
        return value * jnp.exp(log_scale) + raw[0], log_scale

    def _spline(self, raw: Any, value: Any, back: bool) -> tuple[Any, Any]:
        """Return image and log slope of a rational-quadratic spline, or of its inverse."""
        k, reach = self.bins, self.reach
        widths, left = _pieces(raw[:k], reach)
        heights, low = _pieces(raw[k : 2 * k], reach)
        # numbers of zero are slopes of one: a network that says nothing is the identity
        slopes = LEAST + jax.nn.softplus(raw[2 * k :] + jnp.log(jnp.expm1(1.0 - LEAST)))
        ends = jnp.ones_like(slopes[:1])
        starts, stops = jnp.concatenate([ends, slopes]), jnp.concatenate([slopes, ends])
        inside = jnp.abs(value) < reach
        at = jnp.where(inside, value, 0.0)  # so that no gradient from outside is no number
        # the piece is picked by a product with 0 and 1, which is quicker than looking it up, gradient included
        edges = low if back else left
        above = (at >= edges[1:]).astype(at.dtype)
        one = jnp.concatenate([jnp.ones_like(above[:1]), above]) - jnp.concatenate([above, 0 * above[:1]])
        w, h, x0, y0, d0, d1 = ((one * part).sum(0) for part in (widths, heights, left, low, starts, stops))
        s = h / w
        if back:
            rise = at - y0
            bend = rise * (d0 + d1 - 2 * s)
            a, b, c = h * (s - d0) + bend, h * d0 - bend, -s * rise
            # the root that is safe where a is near 0
            t = 2 * c / (-b - jnp.sqrt(jnp.maximum(b**2 - 4 * a * c, 0.0)))
        else:
            t = (at - x0) / w
        flat = s + (d0 + d1 - 2 * s) * t * (1 - t)
        slope = (
            2 * jnp.log(s) + jnp.log(d1 * t**2 + 2 * s * t * (1 - t) + d0 * (1 - t) ** 2) - 2 * jnp.log(flat)
        )
        found = x0 + t * w if back else y0 + h * (s * t**2 + d0 * t * (1 - t)) / flat
        return jnp.where(inside, found, value), jnp.where(inside, -slope if back else slope, 0.0)


def _pieces(raw: Any, reach: float) -> tuple[Any, Any]:
    """Return lengths of pieces that fill (-reach, reach), and where each begins."""
    share = LEAST + (1 - LEAST * raw.shape[0]) * jax.nn.softmax(raw, axis=0)
    lengths = 2 * reach * share
    return lengths, jnp.cumsum(lengths, axis=0) - lengths - reach
