"""Diffusions as laws: noise is added step by step, and a network learns to take it away.

An element x becomes `a x + s noise` at time t, with a falling and s rising; at the end nothing but noise is left. The law is
that of the way back, a chain of normal steps whose means a network says. References: Ho, Jain and Abbeel (2020); Nichol and
Dhariwal (2021) for learned variances; Song, Meng and Ermon (2021) for fewer steps; Song et al. (2021) for continuous time;
Lipman et al. (2023) for straight paths; Dhariwal and Nichol (2021), Ho and Salimans (2021) for guidance.

A chain has no density, but a bound on it, of which one draw costs one call of the network. In continuous time the equation
`dx/dt = a' x0 + s' noise` moves noise to data and has a density: the divergence is added up along the way. Cost: one call a
step and coordinate.
"""

from functools import lru_cache, partial
from math import log, pi
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.networks.density_modules import DensityModule
from markovia.factors.networks.modules import perceptron
from markovia.factors.networks.recipes import ModuleRecipe, activation_of
from markovia.runtime.libraries import eqx, jax, jnp

CHAINS = ("linear", "cosine", "sigmoid")
"""Schedules of chains of steps; numbers between 0 and 1, one a step, are another."""
PATHS = ("vp", "ve", "flow")
"""Paths in continuous time: variance preserving, variance exploding, and a straight line to noise."""

START = 1e-3
"""Where the way back ends in continuous time: the law is that of elements with next to no noise."""
LOUDEST = 50.0
"""The standard deviation of the noise at the end of a "ve" path, in units of the data; at the start it is 0.01."""
FREQUENCIES = 8
EXACT_TRACE = 32
"""Coordinates up to which "auto" computes a divergence exactly; beyond, it is estimated by one random direction."""
MOST_BETA = 0.999


class Levels(NamedTuple):
    """How much is left of an element and how much noise there is, at steps 0 to T; and of each step, 1 to T.

    The network is told `time`; an element is there `signal` times, and noise with standard deviation `noise`. A step forward
    multiplies by `keep` and adds the variance `large`. A step back given the element has variance `small` (in the last one,
    where that is 0, as much less than `large` as in the one before) and a mean in which the element has the weight `pull`.
    The bound draws steps by `share`, in proportion to what their terms are for a standard normal.
    """

    time: Any
    signal: Any
    noise: Any
    keep: Any
    small: Any
    large: Any
    pull: Any
    share: Any


@lru_cache(maxsize=64)
def noise_levels(schedule: Any, steps: int) -> Levels:
    """Return the levels of a schedule: a name, or the variances that each step adds."""
    t = np.arange(steps + 1) / steps
    if schedule in PATHS:
        t = START + (1.0 - START) * t**2 if schedule == "vp" else t
        a, s = path_levels(schedule, t, np)
    else:
        beta = np.minimum(_betas(schedule, steps), MOST_BETA)
        left = np.concatenate([[1.0], np.cumprod(1.0 - beta)])
        a, s = np.sqrt(left), np.sqrt(1.0 - left)
    keep = np.concatenate([[1.0], a[1:] / a[:-1]])
    before = np.concatenate([[0.0], s[:-1] ** 2])
    large = np.maximum(s**2 - keep**2 * before, 1e-12)
    variance = np.maximum(s**2, 1e-12)
    small = large * before / variance
    if s[0] == 0.0:
        small[1] = large[1] * (small[2] / large[2] if steps > 1 else 0.5)
    pull = np.concatenate([[0.0], a[:-1]]) * large / variance
    guess = (pull**2 * variance / (a**2 + variance))[1:] / (2.0 * small[1:])
    share = guess / guess.sum()
    share = np.concatenate([[0.0], 0.9 * share + 0.1 / steps])
    return Levels(t, a, s, keep, small, large, pull, share / share.sum())


def _betas(schedule: Any, steps: int) -> Any:
    t = np.arange(steps + 1) / steps
    if not isinstance(schedule, str):
        found = np.asarray(schedule, np.float64)
        if found.shape != (steps,) or not ((found > 0) & (found < 1)).all():
            raise InvalidArgument(f"schedule= has {steps} numbers between 0 and 1, one a step, or a name")
        return found
    if schedule == "linear":  # that of 1,000 steps, with as much noise at the end
        return np.linspace(1e-4, 0.02, steps) * (1000.0 / steps)
    if schedule == "cosine":
        left = np.cos((t + 0.008) / 1.008 * pi / 2.0) ** 2
    else:
        left = 1.0 / (1.0 + np.exp(6.0 * t - 3.0))
        left = (left - left[-1]) / (left[0] - left[-1])
    return 1.0 - np.maximum(left[1:], 1e-9) / left[:-1]


def path_levels(path: str, t: Any, xp: Any) -> tuple[Any, Any]:
    """Return a and s of a path in continuous time."""
    if path == "vp":
        a = xp.exp(-0.05 * t - 4.975 * t**2)
        return a, xp.sqrt(-xp.expm1(-0.1 * t - 9.95 * t**2))
    if path == "ve":
        return xp.ones_like(t), xp.exp(log(0.01) + t * log(LOUDEST / 0.01))
    return 1.0 - t, t


class Denoiser(eqx.Module):
    """A perceptron of a noisy element, the time, and a context."""

    net: Any
    shape: tuple[int, ...] = eqx.field(static=True)
    learned_variance: bool = eqx.field(static=True)
    frequencies: int = eqx.field(static=True, default=0)

    def __call__(self, x: Any, t: Any, *context: Any) -> Any:
        """Return an array of the element's shape; with a learned variance another."""
        x = jnp.ravel(x)
        fine = jnp.concatenate([x[:0], *(2.0**k * x for k in range(self.frequencies))])
        waves = 2.0 * jnp.exp(jnp.linspace(0.0, log(100.0), FREQUENCIES)) * t
        seen = [x, jnp.sin(fine), jnp.cos(fine), jnp.sin(waves), jnp.cos(waves), *map(jnp.ravel, context)]
        found = jnp.reshape(self.net(jnp.concatenate(seen)), (-1, *self.shape))
        return (found[0], found[1]) if self.learned_variance else found[0]


def make_denoiser(key: Any, shape: Any, *, context: int, learned_variance: bool, **about: Any) -> Denoiser:
    """Return a denoiser with random numbers."""
    width = int(np.prod(shape))
    net = perceptron(
        key, width * (1 + 2 * about["frequencies"]) + 2 * FREQUENCIES + context, width * (1 + learned_variance),
        about["hidden"], about["layers"],
        activation_of(about["activation"]),
    )  # fmt: skip
    if learned_variance:  # half way between the small and the large variance, in logs
        last: Any = net.layers[-1]
        last.bias[width:], last.weight[width:] = 0.5, 0.1 * last.weight[width:]
    return Denoiser(net, tuple(shape), learned_variance, about["frequencies"])


class DiffusionLaw(DensityModule):
    """The law of a chain of steps back from noise.

    `net(x, t, *context)`, t between 0 and 1, returns an array like x (with a learned variance two, or one twice as long):
    the noise, the element ("x0"), the "mean" of the step back, or the "velocity". A step back has the variance that it has
    given the element ("fixed small"), that of the step forward ("fixed large"), or one that is "learned". `sample` is
    "ancestral", the chain itself, or "ddim", with fewer steps and `eta` times its noise, or in continuous time "ode".
    `guidance` is how much more than it should the context counts, against the network's word on zeros, or the weight (0
    means 1) of the gradient of `classifier(x, t)`, the log probability of what is wanted at an element with noise. With
    `classes` the context is one of so many states. The chain is that of (x - location) / scale.
    """

    net: Any
    shape: tuple[int, ...] = eqx.field(static=True)
    steps: int = eqx.field(static=True, default=100)
    schedule: Any = eqx.field(static=True, default="cosine")
    prediction: str = eqx.field(static=True, default="velocity")
    variance: str = eqx.field(static=True, default="fixed large")
    sampler: str = eqx.field(static=True, default="ancestral")
    eta: float = eqx.field(static=True, default=0.0)
    sampling_steps: int | None = eqx.field(static=True, default=None)
    guidance: float = eqx.field(static=True, default=0.0)
    classifier: Any = eqx.field(static=True, default=None)
    classes: int = eqx.field(static=True, default=0)
    location: Any = eqx.field(static=True, default=0.0)
    scale: Any = eqx.field(static=True, default=1.0)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of an element."""
        return self.shape

    @property
    def levels(self) -> Levels:
        """The levels of noise."""
        return noise_levels(self.schedule, self.steps)

    @property
    def _ends(self) -> bool:
        """Whether step 0 is the element itself, without any noise."""
        return bool(self.levels.noise[0] == 0.0)

    @property
    def loudest(self) -> float:
        """The standard deviation of the noise at the end."""
        return LOUDEST if self.schedule == "ve" else 1.0

    # -- units -------------------------------------------------------------------------------------------------------

    def inside(self, x: Any) -> Any:
        """Return an element in the chain's units."""
        return (x - self._unit(self.location)) / self._unit(self.scale)

    def outside(self, u: Any) -> Any:
        """Return an element in its own units."""
        return self._unit(self.location) + self._unit(self.scale) * u

    def log_units(self) -> Any:
        """Return log scales by coordinate: what a log density in the chain's units is too large by."""
        return jnp.broadcast_to(jnp.log(self._unit(self.scale)), self.shape)

    def _unit(self, numbers: Any) -> Any:
        array = jnp.asarray(np.asarray(numbers, np.float64))
        return array if array.ndim == 0 else jnp.reshape(array, self.shape)

    # -- what the network says ---------------------------------------------------------------------------------------

    def denoised(
        self, x: Any, t: Any, a: Any, s: Any, context: Any = (), before: Any = None
    ) -> tuple[Any, Any, Any]:
        """Return the element and the noise that x seems to be made of, and what the network says of the variance.

        `before` are a and s one step before and the variance that the step adds, for a network that says its mean.
        """
        said, variance = self._asked(x, t, a, s, context)
        if self.guidance and context and self.classifier is None:
            nothing = tuple(jnp.zeros_like(c) for c in context)
            said = said + self.guidance * (said - self._asked(x, t, a, s, nothing)[0])
        if self.prediction == "noise":
            found = ((x - s * said) / a, said)
        elif self.prediction == "velocity":  # of a straight path noise - element, else a noise - s element
            p, q = (1.0, 1.0) if self.schedule == "flow" else (a, s)
            both = p * a + q * s
            found = ((p * x - s * said) / both, (q * x + a * said) / both)
        else:
            element = said
            if self.prediction == "mean":
                a0, s0, fresh = before
                element = (s**2 * said - a / a0 * s0**2 * x) / (a0 * fresh)
            found = (element, (x - a * element) / s)
        if self.classifier is not None:
            slope = jax.grad(lambda x: jnp.sum(self.classifier(self.outside(x), t)))(x)
            noise = found[1] - (self.guidance or 1.0) * s * slope
            found = ((x - s * noise) / a, noise)
        return (*found, variance)

    def _asked(self, x: Any, t: Any, a: Any, s: Any, context: Any) -> tuple[Any, Any]:
        """Return what the network says, and what of the variance (None if nothing)."""
        seen = x / jnp.sqrt(a**2 + s**2) if self.schedule == "ve" else x  # else of about unit size anyway
        found = self.net(seen, t, *context)
        if self.variance == "learned" and not isinstance(found, tuple):
            half = jnp.shape(found)[0] // 2
            found = (found[:half], found[half:])
        said, variance = found if isinstance(found, tuple) else (found, None)
        if jnp.shape(said) != self.shape:
            twice = "; variance='learned' takes two such, as of denoiser(..., learned_variance=True)"
            raise InvalidArgument(
                f"{type(self.net).__name__} returns an array of shape {jnp.shape(said)} for elements of shape {self.shape}"
                + twice * (self.variance == "learned")
            )
        return said, variance

    def given(self, context: Any) -> tuple[Any, ...]:
        """Return the context as the network sees it."""
        if not self.classes:
            return tuple(context)
        return tuple(jax.nn.one_hot(c, self.classes) for c in context)

    def score(self, x: Any, t: Any, *context: Any) -> Any:
        """Return the gradient of the log density of noisy elements, in their units, at a step, or a time of a path."""
        time, a, s, before = self._level(t)
        noise = self.denoised(self.inside(x), time, a, s, self.given(context), before)[1]
        return -noise / (s * self._unit(self.scale))

    def _level(self, t: Any, chain: bool = False) -> Any:
        """Return the time, a, s, and what a network that says means needs, at a step of a chain or a time of a path."""
        if self.schedule in PATHS and not chain:
            return (t, *path_levels(self.schedule, jnp.asarray(t, float), jnp), None)
        at = self.levels
        time, a, s, large = (jnp.asarray(v) for v in (at.time, at.signal, at.noise, at.large))
        return time[t], a[t], s[t], (a[t - 1], s[t - 1], large[t])

    # -- the chain ---------------------------------------------------------------------------------------------------

    def reverse(self, x: Any, i: Any, context: Any = ()) -> tuple[Any, Any, Any]:
        """Return mean and variance of the step from i to i - 1, and what the element seems to be, in the chain's units."""
        time, a, s, before = self._level(i, True)
        element, _, said = self.denoised(x, time, a, s, context, before)
        keep, pull = jnp.asarray(self.levels.keep)[i], jnp.asarray(self.levels.pull)[i]
        return keep * before[1] ** 2 / s**2 * x + pull * element, self._variance(i, said), element

    def _variance(self, i: Any, said: Any) -> Any:
        if self.variance != "learned":
            return jnp.asarray(self._fixed())[i] * jnp.ones(self.shape)
        low, high = (jnp.log(jnp.asarray(v))[i] for v in (self.levels.small, self.levels.large))
        return jnp.exp(low + said * (high - low))

    def _fixed(self) -> Any:
        """Return the variances of all steps where they are not learned: the last one is never nothing."""
        at = self.levels
        if self.variance == "fixed large":
            return at.large
        return np.concatenate([at.small[:1], at.large[1:2] if self._ends else at.small[1:2], at.small[2:]])

    def __call__(self, x: Any, *context: Any, step: int) -> tuple[Any, Any]:
        """Return mean and standard deviation of step - 1 given step: the last one, 0, is in the elements' own units."""
        mean, variance, _ = self.reverse(x, step, self.given(context))
        if step > 1:
            return mean, jnp.sqrt(variance)
        return self.outside(mean), self._unit(self.scale) * jnp.sqrt(variance)

    def sample(self, key: Any, *context: Any) -> Any:
        """Return one element."""
        context = self.given(context)
        first, rest = jax.random.split(key)
        x = self.loudest * jax.random.normal(first, self.shape)
        if self.sampler == "ode":
            slope = partial(self.velocity, context=context)
            return self.outside(self._moved(x, self.levels.time[::-1], slope))
        if self.sampler == "ddim":
            return self.outside(self._skipped(rest, x, context))

        def back(x: Any, i: Any) -> tuple[Any, None]:
            mean, variance, _ = self.reverse(x, i, context)
            shake = jax.random.normal(jax.random.fold_in(rest, i), self.shape)
            return mean + jnp.sqrt(variance) * shake, None

        return self.outside(jax.lax.scan(back, x, jnp.arange(self.steps, 0, -1))[0])

    def _skipped(self, key: Any, x: Any, context: Any) -> Any:
        """Return the end of a way back with fewer steps, and eta times the noise of the chain."""
        stops = np.linspace(0, self.steps, (self.sampling_steps or self.steps) + 1)
        stops = np.unique(np.round(stops).astype(int))[::-1]

        def back(x: Any, pair: Any) -> tuple[Any, None]:
            (time, a, s, before), (_, a1, s1, _) = (self._level(i, True) for i in pair)
            element, noise, _ = self.denoised(x, time, a, s, context, before)
            spread = self.eta * s1 / s * jnp.sqrt(s**2 - (a / a1 * s1) ** 2)
            mean = a1 * element + jnp.sqrt(s1**2 - spread**2) * noise
            return mean + spread * jax.random.normal(jax.random.fold_in(key, pair[0]), self.shape), None

        return jax.lax.scan(back, x, (jnp.asarray(stops[:-1]), jnp.asarray(stops[1:])))[0]

    # -- bounds and losses -------------------------------------------------------------------------------------------

    def bound(self, key: Any, value: Any, *context: Any) -> Any:
        """Return a draw of the evidence lower bound: its term of one step, drawn by its share, stands for all."""
        pick, shake = jax.random.split(key)
        u, share = self.inside(value), jnp.asarray(self.levels.share)
        i = jax.random.choice(pick, self.steps + 1, p=share)
        _, a, s, _ = self._level(i, True)
        noisy = a * u + s * jax.random.normal(shake, self.shape)
        _, variance, element = self.reverse(noisy, i, self.given(context))
        drawn = self._term(i, variance, u - element)
        # how far the end of the way there is from the noise that the way back starts from
        a, s = self.levels.signal[-1] / self.loudest, self.levels.noise[-1] / self.loudest
        last = 0.5 * jnp.sum((a * u) ** 2 + s**2 - 1.0 - 2.0 * np.log(s))
        return -drawn / share[i] - self._constant() - last - jnp.sum(self.log_units())

    def _term(self, i: Any, variance: Any, off: Any) -> Any:
        """Return the divergence at step i (of step 1 minus the log density), less what `_constant` adds up.

        The mean of the step back given the element is off by `pull` times what the network's element is off by.
        """
        at = self.levels
        square = 0.5 * jnp.sum((jnp.asarray(at.pull)[i] * off) ** 2 / variance)
        if self.variance != "learned":
            return square
        ratio = variance / jnp.asarray(at.small)[i]
        usual = 1.0 / ratio - 1.0 + jnp.log(ratio)
        return square + 0.5 * jnp.sum(jnp.where(self._ends & (i == 1), jnp.log(2.0 * pi * variance), usual))

    def _constant(self) -> float:
        """Return what the divergences of all steps have beside errors of means, where variances are fixed."""
        if self.variance == "learned":
            return 0.0
        ratio = self._fixed()[1:] / self.levels.small[1:]
        each = 1.0 / ratio - 1.0 + np.log(ratio)
        if self._ends:
            each[0] = np.log(2.0 * pi * self._fixed()[1])
        return float(0.5 * np.prod(self.shape) * each.sum())

    def denoising_losses(self, key: Any, values: Any, contexts: Any, weighting: str, dropped: float) -> Any:
        """Return a loss of each of many elements at one time each, drawn evenly: those of `mk.objectives.Denoising`."""
        n, keys = len(values), jax.random.split(key, 3)
        noise = jax.random.normal(keys[0], jnp.shape(values))
        kept = jax.random.uniform(keys[1], (n,)) >= dropped
        if self.schedule in PATHS:
            times = START + (1.0 - START) * jax.random.uniform(keys[2], (n,))
        else:
            times = jax.random.randint(keys[2], (n,), 1, self.steps + 1)

        def one(value: Any, t: Any, noise: Any, keep: Any, *context: Any) -> Any:
            time, a, s, before = self._level(t)
            u = self.inside(value)
            seen = tuple(jnp.where(keep, c, jnp.zeros_like(c)) if dropped else c for c in self.given(context))
            element, thought, said = self.denoised(a * u + s * noise, time, a, s, seen, before)
            if weighting == "simple":
                off = noise - thought
            elif weighting == "velocity":
                p, q = (1.0, 1.0) if self.schedule == "flow" else (a, s)
                off = p * (noise - thought) - q * (u - element)
            else:
                off = (u - element) * (jnp.minimum(a / s, 5.0**0.5) if weighting == "min-snr" else 1.0)
            found = jnp.mean(off**2)
            if self.variance == "learned":  # the bound's own gradient, for the variance alone
                off = jax.lax.stop_gradient(u - element)
                found = found + 1e-3 * self.steps * self._term(t, self._variance(t, said), off)
            return found

        return jax.vmap(one)(values, times, noise, kept, *contexts)

    # -- continuous time ---------------------------------------------------------------------------------------------

    def velocity(self, x: Any, t: Any, context: Any = ()) -> Any:
        """Return dx/dt of the equation that moves elements to noise."""
        t = jnp.asarray(t, float)
        (a, s), (da, ds) = jax.jvp(lambda t: path_levels(self.schedule, t, jnp), (t,), (jnp.ones_like(t),))
        element, noise, _ = self.denoised(x, t, a, s, context)
        return da * element + ds * noise

    def _moved(self, state: Any, times: Any, slope: Any) -> Any:
        """Return where an equation leads along some times: Runge and Kutta's fourth order."""

        def step(state: Any, pair: Any) -> tuple[Any, None]:
            t, h = pair[0], pair[1] - pair[0]

            def at(change: Any, part: float) -> Any:
                return jax.tree.map(lambda x, k: x + part * h * k, state, change)

            k1 = slope(state, t)
            k2 = slope(at(k1, 0.5), t + 0.5 * h)
            k3 = slope(at(k2, 0.5), t + 0.5 * h)
            k4 = slope(at(k3, 1.0), t + h)
            mean = jax.tree.map(lambda a, b, c, d: (a + 2.0 * b + 2.0 * c + d) / 6.0, k1, k2, k3, k4)
            return at(mean, 1.0), None

        pairs = jnp.stack([jnp.asarray(times[:-1]), jnp.asarray(times[1:])], axis=1)
        return jax.lax.scan(step, state, pairs)[0]

    def _flow_density(self, value: Any, context: Any, direction: Any = None) -> Any:
        """Return the log density by the divergence along the way to noise: exact, or along a random direction."""
        context, u = self.given(context), self.inside(value)

        def slope(state: Any, t: Any) -> tuple[Any, Any]:
            speed = partial(self.velocity, t=t, context=context)
            if direction is not None:
                moving, along = jax.jvp(speed, (state[0],), (direction,))
                return moving, jnp.sum(along * direction)
            size = int(np.prod(self.shape))
            slopes, moving = jax.jacfwd(lambda x: (speed(x),) * 2, has_aux=True)(state[0])
            return moving, jnp.trace(jnp.reshape(slopes, (size, size)))

        x, divergence = self._moved((u, jnp.zeros(())), self.levels.time, slope)
        base = -0.5 * jnp.sum((x / self.loudest) ** 2 + log(2.0 * pi)) - x.size * log(self.loudest)
        return base + divergence - jnp.sum(self.log_units())


class FlowLaw(DiffusionLaw):
    """The law of a path in continuous time, with its density: every step asks for the whole divergence."""

    def log_prob(self, value: Any, *context: Any) -> Any:
        """Return the log density of an element."""
        return self._flow_density(value, context)


class EstimatedFlowLaw(DiffusionLaw):
    """The law of a path in continuous time of many coordinates: its log density without bias, by a random direction."""

    def bound(self, key: Any, value: Any, *context: Any) -> Any:
        """Return a draw whose mean is the log density."""
        return self._flow_density(value, context, jax.random.rademacher(key, self.shape, float))


def diffusion_law(net: Any, *, shape: Any = None, trace: str = "auto", **settings: Any) -> DiffusionLaw:
    """Return the law of a diffusion with a network and settings of `DiffusionLaw`.

    `shape` is that of an element, where the network does not have it. `trace` says how the divergence of a path is computed:
    "exact", "hutchinson" (by a random direction: no density, but an estimate of its log), or "auto" by the coordinates.
    """
    shape = getattr(net, "shape", None) if shape is None else shape
    if shape is None:
        raise InvalidArgument(f"{type(net).__name__} does not say the shape of an element; say shape=(...)")
    shape = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    for name in ("schedule", "location", "scale"):
        if isinstance(settings.get(name), list | np.ndarray):
            settings[name] = tuple(np.asarray(settings[name], np.float64).ravel().tolist())
    law = DiffusionLaw(net, shape, **settings)
    _check(law, trace)
    if law.schedule not in PATHS:
        return law
    exact = trace == "exact" or (trace == "auto" and np.prod(shape) <= EXACT_TRACE)
    return (FlowLaw if exact else EstimatedFlowLaw)(net, shape, **settings)


def _check(law: DiffusionLaw, trace: str) -> None:
    """Refuse settings that mean nothing."""
    known = {
        "schedule": (*CHAINS, *PATHS) if isinstance(law.schedule, str) else (law.schedule,),
        "prediction": ("noise", "x0", "mean", "velocity"),
        "variance": ("fixed small", "fixed large", "learned"),
        "sampler": ("ancestral", "ddim", "ode"),
        "trace": ("auto", "exact", "hutchinson"),
    }
    for name, words in known.items():
        said = trace if name == "trace" else getattr(law, name)
        if said not in words:
            raise InvalidArgument(f"{name}= is one of {', '.join(map(repr, words))}, not {said!r}")
    continuous, wrong = law.schedule in PATHS, ""
    if law.sampler == "ode" and not continuous:
        wrong = "sampler='ode' follows a path in continuous time ('vp', 've', 'flow'); a chain has 'ddim'"
    elif continuous and (law.prediction == "mean" or law.variance == "learned"):
        wrong = "the mean and the learned variance are those of the steps of a chain, not of a path in continuous time"
    elif law.schedule == "flow" and law.prediction != "velocity":
        wrong = "schedule='flow' goes with prediction='velocity'; others divide by zero at one of its ends"
    if wrong:
        raise UnsupportedModel(wrong)
    noise_levels(law.schedule, law.steps)


def make_diffusion(key: Any, net: Any, **settings: Any) -> DiffusionLaw:
    """Return the law that a recipe says."""
    name, arguments, own = net
    module = ModuleRecipe(name, tuple(arguments), tuple((k, v) for k, v in own)).build(key)
    return diffusion_law(module, **settings)
