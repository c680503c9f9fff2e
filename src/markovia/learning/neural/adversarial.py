"""Objectives that compare what a model draws with data, and need no density: a critic tells them apart, or a kernel does.

A critic looks at rows of two sides: data, with what the guide proposes for them, and draws of the model itself. It learns to
tell the sides apart, and the model (and the guide) to make them alike. Which nodes it sees decides what that is: those that
are observed (a generative adversarial network), also the latent ones (adversarially learned inference), or the latent ones
alone, with a term for reconstruction (an adversarial autoencoder).

References: Goodfellow et al. (2014); Nowozin et al. (2016) for f-divergences; Arjovsky et al., Gulrajani et al. (2017);
Chen et al. (2016) for information; Makhzani et al. (2015); Dumoulin et al. (2017); Li, Swersky and Zemel (2015) for kernels.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel, did_you_mean
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks.recipes import mlp
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.elbo import refuse_states
from markovia.learning.neural.objective import ObjectiveSetup, Values, weighted_mean
from markovia.optimise.players import Player
from markovia.runtime.checks import NOT_NEGATIVE, Choice, NumberRange, Whole, check_options
from markovia.runtime.libraries import jax, jnp, optax

CRITIC = "critic of the objective"
"""What the trained critic is called in `fit_.details["extra"]`."""
MOST = 500
"""Rows that the width of a kernel is read off."""


class CriticLoss(NamedTuple):
    """What scores of data and of draws cost the critic, and the model; None where the model's is minus the critic's."""

    data: Callable[[Any], Any]
    draws: Callable[[Any], Any]
    model_data: Callable[[Any], Any] | None = None
    model_draws: Callable[[Any], Any] | None = None

    def of_model(self, data: Any, draws: Any) -> Any:
        """Return the model's loss of each row; without `data` where they do not depend on what is learned."""
        own = self.model_draws(draws) if self.model_draws else -self.draws(draws)
        if data is None:
            return own
        return own + (self.model_data(data) if self.model_data else -self.data(data))


def _yes(score: Any) -> Any:
    return jax.nn.softplus(-score)


def _no(score: Any) -> Any:
    return jax.nn.softplus(score)


LOSSES = {
    # scores are log odds; minus the critic's loss is 2 JS - log 4 at the best critic
    "vanilla": CriticLoss(_yes, _no),
    "non-saturating": CriticLoss(_yes, _no, _no, _yes),
    "least-squares": CriticLoss(
        lambda r: (r - 1) ** 2 / 2, lambda f: f**2 / 2, lambda r: r**2 / 2, lambda f: (f - 1) ** 2 / 2
    ),
    "hinge": CriticLoss(lambda r: jax.nn.relu(1 - r), lambda f: jax.nn.relu(1 + f), lambda r: r, lambda f: -f),
    "wasserstein": CriticLoss(lambda r: -r, lambda f: f),
    # duals of f-divergences: minus the critic's loss is KL(data || model), KL(model || data), and chi-squared
    "kl": CriticLoss(lambda r: -r, lambda f: jnp.exp(f - 1)),
    "reverse-kl": CriticLoss(lambda r: jnp.exp(-r), lambda f: f - 1),
    "pearson": CriticLoss(lambda r: -r, lambda f: f**2 / 4 + f),
}  # fmt: skip
"""Losses by name."""


class RowView:
    """What is compared of each row: some nodes, states as indicators, numbers in units of their spread in the data."""

    def __init__(self, program: RowwiseModel, sees: tuple[str, ...] | None, standardise: bool | str) -> None:
        sites = program.program.layout.sites
        known = [n for n in sites if n in program.rows or (program.guide and n in program.guide.names)]
        for name in sees or ():
            if name not in known:
                raise InvalidArgument(
                    f"sees= names {name!r}, which is neither observed nor proposed by a guide{did_you_mean(name, known)}"
                )
        self.names = [n for n in known if (n in program.rows if sees is None else n in sees)]
        self.states = {n: _states(sites[n]) for n in self.names}
        numbers = [n for n in self.names if not self.states[n] and n in program.rows]
        self.units = {n: _units(program.rows[n], standardise) for n in numbers}
        self.few = {n: np.zeros(sites[n].shape, int if self.states[n] else None) for n in self.names}

    def __call__(self, values: Mapping[str, Any], units: Mapping[str, Any]) -> Any:
        """Return rows: one vector each, or, of a single node with numbers, arrays of its shape."""
        found = []
        for name in self.names:
            value = jnp.asarray(values[name])
            if self.states[name]:
                value = jax.nn.one_hot(value.astype(int), self.states[name])
            elif name in units:
                value = (value - units[name][0]) / units[name][1]
            found.append(value)
        if len(found) == 1 and found[0].ndim > 1:
            return found[0]
        return jnp.concatenate([jnp.reshape(v, (len(v), -1)) for v in found], axis=1)


def _states(site: Any) -> int:
    """Return how many states a node has; 0 for numbers, and for counts without an end."""
    if site.states or site.support is None or not site.support.is_discrete:
        return int(site.states)
    most = getattr(site.support, "upper_bound", 1 if "boolean" in str(site.support).lower() else None)
    return 0 if most is None else int(np.max(most)) + 1


def _units(rows: Any, standardise: bool | str) -> Any:
    """Return location and scale of each entry over the rows; a constant one keeps its unit."""
    if not standardise:
        return np.stack([np.zeros(rows.shape[1:]), np.ones(rows.shape[1:])])
    axes = None if standardise == "whole" else 0
    loc, scale = rows.mean(axis=axes), rows.std(axis=axes)
    return np.stack([loc, np.where(scale > 1e-12 * np.abs(loc), scale, 1.0)])


@dataclass(frozen=True, kw_only=True)
class RowComparison:
    """What objectives share that compare draws with data; settings as in `Adversarial`."""

    sees: tuple[str, ...] | None = None
    given: tuple[str, ...] | None = None
    standardise: Annotated[bool | str, Choice(("whole",), "True or False", (bool,))] = True
    is_bound: ClassVar[bool] = False
    compares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for word in ("sees", "given"):
            value = getattr(self, word)
            object.__setattr__(self, word, (value,) if isinstance(value, str) else value and tuple(value))
        check_options(self)

    def _sides(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> Callable[..., Any]:
        """Return what makes of free numbers, a key and a batch: parameters, both sides, and the loss of what is given."""
        sites, kept = program.program.layout.sites, []
        for site in sites.values():
            named = self.given is not None and site.name in self.given
            above = [q for q in site.sources if q in sites and sites[q].role != "input" and q not in kept]
            if site.role == "observed" and not above and (named or (self.given is None and _states(site))):
                kept.append(site.name)
            elif named and site.role != "input":
                why = f"depends on {above[0]!r}" if above else "has no data"
                raise InvalidArgument(f"given= names {site.name!r}, which {why}; leave it out")
        learned = [n for n in kept if set(sites[n].sources) & set(names)]

        def sides(free: Any, key: Any, batch: Any) -> Any:
            parameters = values({n: v for n, v in free.items() if n != CRITIC})
            own, other = jax.random.split(key)
            data = program.proposed(parameters, batch.rows, own)
            draws = {**data, **program.dream(parameters, batch.rows, other, kept)}
            logs = program.joint_log_probs(parameters, batch.rows, draws, learned) if learned else 0.0
            return parameters, data, draws, -weighted_mean(logs, batch.weight)

        return sides


@dataclass(frozen=True, kw_only=True)
class Adversarial(RowComparison):
    """A critic that tells data from draws, and a model that makes them alike.

    Parameters
    ----------
    critic
        A recipe of `mk.networks`, a module or a `mk.Parameter` of such, that makes a number of what it sees of a row: one
        vector, numbers and indicators of states in the model's order. By default a perceptron with two layers of 128. What
        it has become is in `fit_.details["extra"]`.
    loss
        "non-saturating", "vanilla" (minimax), "least-squares", "hinge", "wasserstein", or an f-divergence: "kl",
        "reverse-kl", "pearson".
    penalty
        The weight of the squared distance from 1 of the norm of the critic's gradient, at points between data and draws;
        by default 1 for "wasserstein" without `clip=`, else 0.
    clip
        The largest size of a weight of the critic; None for no limit.
    critic_steps
        Steps of the critic for one of the model.
    information
        The weight of the log density of the guide at the model's own draws: with it draws tell what their code was
        (InfoGAN), and the guide, say of `c` from `x`, learns to read it.
    reconstruction
        The weight of the log density of what is observed, given what the guide proposes.
    betas
        How much Adam minds the past, of gradients and of their squares.
    sees
        The nodes that are compared; by default all that have data.
    given
        Nodes that draws take from the data, so that the model is learned given them; by default the discrete ones, since no
        gradient goes through their draws. Their own log density is added where it has parameters.
    standardise
        Whether numbers are compared in units of their spread in the data, entry by entry; "whole" for one unit for all
        entries of a node, such as pixels.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.objectives.WassersteinGAN(critic_steps=5).loss, mk.objectives.Adversarial().loss
    ('wasserstein', 'non-saturating')
    """

    critic: Any = None
    loss: Annotated[str, Choice(tuple(LOSSES))] = "non-saturating"
    penalty: Annotated[float | None, replace(NOT_NEGATIVE, none=True)] = None
    clip: Annotated[
        float | None, NumberRange(0.0, np.inf, open="both", said="a number, above 0", none=True)
    ] = None
    critic_steps: Annotated[int, Whole(1)] = 1
    information: Annotated[float, NOT_NEGATIVE] = 0.0
    reconstruction: Annotated[float, NOT_NEGATIVE] = 0.0
    betas: tuple[float, float] = (0.5, 0.9)
    kind: ClassVar[str] = "adversarial"

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return two players, the critic first."""
        view = RowView(program, self.sees, self.standardise)
        guided = self._guided(program, view)
        sides, loss = self._sides(program, values, names), LOSSES[self.loss]
        seen = [s.name for s in program.program.layout.sites.values() if s.role == "observed"]
        usual = float(self.loss == "wasserstein" and self.clip is None)
        penalty = usual if self.penalty is None else self.penalty

        def score(free: Any) -> Callable[[Any], Any]:
            return lambda row: jnp.reshape(free[CRITIC](row), ())

        def of_critic(free: Any, units: Any, key: Any, batch: Any) -> Any:
            own, other = jax.random.split(key)
            data, draws = (view(side, units) for side in sides(free, own, batch)[1:3])
            costs = loss.data(jax.vmap(score(free))(data)) + loss.draws(jax.vmap(score(free))(draws))
            value = weighted_mean(costs, batch.weight)
            if penalty:
                steep = slopes(score(free), data, draws, other)
                value = value + penalty * weighted_mean((steep - 1) ** 2, batch.weight)
            return value, units

        def of_model(free: Any, units: Any, key: Any, batch: Any) -> Any:
            parameters, data, draws, value = sides(free, key, batch)
            on_data = jax.vmap(score(free))(view(data, units)) if guided else None
            costs = loss.of_model(on_data, jax.vmap(score(free))(view(draws, units)))
            value = value + weighted_mean(costs, batch.weight)
            if self.information:
                told = program.guide_log_probs(parameters, batch.rows, draws)
                value = value - self.information * weighted_mean(told, batch.weight)
            if self.reconstruction:
                fit = program.joint_log_probs(parameters, batch.rows, data, seen)
                value = value - self.reconstruction * weighted_mean(fit, batch.weight)
            return value, units

        players = [
            Player(of_critic, (CRITIC,), self._rule(self.clip), self.critic_steps),
            Player(of_model, names, self._rule(None)),
        ]
        # units are handed on as memory, so that compiled code does not depend on them
        return ObjectiveSetup(players, {CRITIC: self._critic(view)}, view.units)

    def _guided(self, program: RowwiseModel, view: RowView) -> bool:
        """Say whether the data side depends on a guide; refuse guides and terms that nothing would be learned by."""
        names = program.guide.names if program.guide is not None else ()
        guided = bool(set(names) & set(view.names))
        if bool(names) != bool(guided or self.information or self.reconstruction):
            raise InvalidArgument(
                f"nothing here trains the guide of {names[0]!r}: let the critic see it (sees=), or give information= or "
                "reconstruction=" if names else
                "information= and reconstruction= are about what a guide proposes, and the model has none: m.guide"
            )  # fmt: skip
        if guided or self.reconstruction:
            refuse_states(program)
        for site in program.program.layout.sites.values() if self.reconstruction else ():
            unknown = site.role in ("latent", "discrete") and site.name not in names
            if unknown or (site.role == "deterministic" and site.name in program.rows):
                cure = (
                    "needs a guide (m.guide)" if unknown else "is a function of its parents; add noise to it"
                )
                raise UnsupportedModel(
                    f"reconstruction= is a density given proposals, and {site.name!r} {cure}"
                )
        return guided

    def _critic(self, view: RowView) -> Parameter:
        """Return the critic, having tried it on the shape of a row."""
        row = jax.eval_shape(lambda v: view(v, view.units)[0], view.few)
        usual = mlp(int(np.prod(row.shape)), "scalar", hidden=128, layers=2)
        given = usual if self.critic is None else self.critic
        critic = given if isinstance(given, Parameter) else Parameter(given)
        module = critic.recipe.build(0) if critic.recipe is not None else critic.value
        try:
            shape = jax.eval_shape(module, row).shape
        except (TypeError, ValueError) as problem:
            raise InvalidArgument(
                f"the critic {given!r} does not take rows of shape {row.shape} ({', '.join(view.names)}), as {usual!r} "
                f"would: {problem}"
            ) from None
        if np.prod(shape) != 1:
            raise InvalidArgument(f"the critic {given!r} makes shape {shape} of a row, and not one number")
        return critic

    def _rule(self, clip: float | None) -> Callable[..., Any]:
        """Return what makes an optimiser of the settings of training; with a limit weights are put back within it."""

        def rule(training: Any, steps: int | None) -> Any:
            adam = training.optimiser(steps, self.betas)
            if clip is None:
                return adam
            back = optax.stateless(
                lambda move, own: jax.tree.map(lambda u, p: jnp.clip(p + u, -clip, clip) - p, move, own)
            )
            return optax.chain(adam, back)

        return rule


@dataclass(frozen=True, kw_only=True)
class WassersteinGAN(Adversarial):
    """A critic with slopes of at most about one, whose value estimates how far probability has to be moved.

    The distance also has a slope where draws and data share no support, so that no mode is out of sight. Slopes are kept
    down by `penalty=`, or by `clip=`, a limit on weights. Settings as in `Adversarial`.
    """

    loss: Annotated[str, Choice(tuple(LOSSES))] = "wasserstein"
    critic_steps: Annotated[int, Whole(1)] = 3
    kind: ClassVar[str] = "Wasserstein"


def slopes(score: Callable[[Any], Any], data: Any, draws: Any, key: Any) -> Any:
    """Return the norm of a critic's gradient at one random point between each pair of rows."""
    share = jax.random.uniform(key, (len(data), *(1,) * (data.ndim - 1)))
    steep = jax.vmap(jax.grad(score))(data + share * (draws - data))
    return jnp.sqrt(jnp.sum(steep**2, axis=tuple(range(1, steep.ndim))) + 1e-12)


@dataclass(frozen=True, kw_only=True)
class MMD(RowComparison):
    """The maximum mean discrepancy of draws from data: a kernel in the place of a critic, and one player.

    Gaussian kernels are added up whose `widths` are in units of the median distance of two rows of data; other settings as
    in `Adversarial`.
    """

    widths: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    kind: ClassVar[str] = "maximum mean discrepancy"

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player, whose loss is an unbiased estimate of the squared discrepancy."""
        view, sides = RowView(program, self.sees, self.standardise), self._sides(program, values, names)
        if program.guide is not None:
            raise InvalidArgument("MMD compares draws with data and trains no guide, as Adversarial can")

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            _, data, draws, value = sides(free, key, batch)
            data, draws = (view(side, memory["units"]) for side in (data, draws))
            widths = memory["width"] * jnp.asarray(self.widths)
            return value + discrepancy(data, draws, batch.weight, widths), memory

        few = view({n: program.rows[n][:: -(-program.n_rows // MOST)] for n in view.names}, view.units)
        apart = np.sqrt(np.asarray(_squared_distances(few, few)))
        width = np.median(apart[apart > 0]) if apart.any() else np.asarray(1.0)
        return ObjectiveSetup([Player(loss, names)], {}, {"units": view.units, "width": width})


def discrepancy(data: Any, draws: Any, weight: Any, widths: Any) -> Any:
    """Return an unbiased estimate of the squared maximum mean discrepancy, kernels of several widths added up."""
    pairs = jnp.outer(weight, weight) / jnp.sum(weight) ** 2
    others = jnp.where(jnp.eye(len(weight), dtype=bool), 0.0, pairs)

    def kernel(x: Any, y: Any) -> Any:
        return jnp.sum(jnp.exp(-0.5 * _squared_distances(x, y)[..., None] / widths**2), axis=-1)

    within = jnp.sum(others * (kernel(data, data) + kernel(draws, draws)))
    return within / jnp.maximum(jnp.sum(others), 1e-12) - 2 * jnp.sum(pairs * kernel(data, draws))


def _squared_distances(x: Any, y: Any) -> Any:
    flat = [jnp.reshape(v, (len(v), -1)) for v in (x, y)]
    return jnp.sum((flat[0][:, None] - flat[1][None]) ** 2, axis=-1)
