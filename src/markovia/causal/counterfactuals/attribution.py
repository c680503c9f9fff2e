"""Whose doing was it: shares of an outlier, a change, a prediction or a spread, by causes.

Each question is a game in which sets of causes have a value, and the Shapley values share out the whole of it. Values are
exact where the model's answers are (tables, linear Gaussians); otherwise they come from draws in batches, whose spread
gives the standard errors. Few players are taken in all their sets, many in random orders.

References: Budhathoki and others (2021, 2022), Heskes and others (2020), Janzing and others (2013, 2024).
"""

from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import Any

import numpy as np

from markovia.causal.counterfactuals import model_network
from markovia.causal.counterfactuals.equations import Equation
from markovia.causal.counterfactuals.shapley_values import Attribution, shapley
from markovia.causal.counterfactuals.structural_model import StructuralModel
from markovia.causal.counterfactuals.unit_draws import run
from markovia.errors import InvalidArgument, UnsupportedModel, check_known
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.posterior import Posterior
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count
from markovia.runtime.seeds import Seed, generator

BATCHES = 20
DRAWS = 20_000
MOST_NOISES = 2**16
AnyModel = StructuralModel | BayesianNetwork


# -- one row -------------------------------------------------------------------------------------------------------


def attribute_anomaly(
    model: StructuralModel,
    row: Mapping[str, Any],
    target: str,
    *,
    score: Callable[[Array], Array] | None = None,
    draws: int = DRAWS,
    seed: Seed = 0,
) -> Attribution:
    """Share out how unusual a value is among the noises of its causes (Budhathoki and others, 2022).

    The outlier score is `-log P(score(target) >= score(observed))`; a set of noises is worth the part that is gone when
    these noises are ordinary ones again.

    Parameters
    ----------
    model
        With equations whose noises the row determines.
    row
        The values of the target and of all its ancestors.
    target
        A variable that is a number.
    score
        How far out a value is; by default its distance from the mean.
    draws, seed
        In 20 batches.

    Examples
    --------
    >>> import markovia.distributions as dist
    >>> m = StructuralModel()
    >>> m.add("x", dist.Normal(0, 1))
    >>> m.add("y", lambda x, e: x + e, noise=dist.Normal(0, 1))
    >>> found = attribute_anomaly(m, {"x": 3.0, "y": 3.2}, "y")
    >>> found["x"] > 4 * abs(found["y"])
    True
    """
    equations = _above(model, target)
    if not isinstance(model.variable(target), Quantity):
        raise InvalidArgument(f"{target!r} has states; an anomaly is of a number")
    for name in equations:
        if name not in row:
            raise InvalidArgument(f"the row needs a value of {name!r}, a cause of {target!r}")
    unit = run(equations, {n: _seen(equations[n], row[n]) for n in equations}, 2, generator(seed))
    for name, equation in equations.items():
        if equation.random and name not in unit.explained:
            raise InvalidArgument(
                f"the row does not determine the noise of {name!r}; give it an invertible equation"
            )
    players = [n for n, e in equations.items() if e.random]
    rng, size = generator(seed), _batch(draws)
    n = size * BATCHES
    fresh = {name: equations[name].draw_noise(n, rng) for name in players}
    ordinary = _values(equations, fresh, n)[target]
    far = score or (lambda values: np.abs(values - ordinary.mean()))
    seen = float(far(np.asarray([float(row[target])]))[0])

    def worth(members: frozenset[str]) -> Array:
        noises = {k: fresh[k] if k in members else _repeated(unit.noises[k], n) for k in players}
        beyond = (far(_values(equations, noises, n)[target]) >= seen - 1e-9).reshape(BATCHES, size)
        return np.asarray(-np.log((beyond.sum(axis=1) + 0.5) / (size + 0.5)))

    values, errors = shapley(worth, players, seed=seed)
    return Attribution(f"outlier score of {target}", values, errors)


def causal_shapley(
    model: AnyModel,
    row: Mapping[str, Any],
    target: str,
    *,
    event: Any = None,
    draws: int = DRAWS,
    seed: Seed = 0,
) -> Attribution:
    """Share out `E[target | do(row)] - E[target]` among the variables of a row (Heskes and others, 2020).

    A set of variables is worth `E[target | do(these as in the row)]`, so that effects through other variables count.

    Parameters
    ----------
    model, row, target
        A model, values of some of its variables, and the variable whose mean is explained.
    event
        For a target with states, the state whose probability is explained; the last by default.
    draws, seed
        Where the model has no exact answers.

    Examples
    --------
    >>> import markovia.distributions as dist
    >>> m = StructuralModel()
    >>> m.add("x", dist.Normal(0, 1))
    >>> m.add("z", lambda x, e: 2 * x + e, noise=dist.Normal(0, 1))
    >>> m.add("y", lambda x, z, e: x + z + e, noise=dist.Normal(0, 1))
    >>> causal_shapley(m, {"x": 1.0, "z": 1.0}, "y").values
    {'x': 2.0, 'z': 0.0}
    """
    players = [n for n in row if n != target]
    for name in (*players, target):
        model.variable(name)

    def worth(members: frozenset[str]) -> Any:
        return _statistic(
            model.do({n: row[n] for n in members}), target, _mean_of(model, target, event), draws, seed
        )

    values, errors = shapley(worth, players, seed=seed)
    return Attribution(f"mean of {target} under do", values, errors)


# -- distributions -------------------------------------------------------------------------------------------------


def attribute_change(
    old: AnyModel,
    new: AnyModel,
    target: str,
    *,
    measure: str = "mean",
    event: Any = None,
    draws: int = DRAWS,
    seed: Seed = 0,
) -> Attribution:
    """Share out the change of a variable between two models among the mechanisms that changed (Budhathoki and others, 2021).

    Parameters
    ----------
    old, new
        Two models of the same kind over the same graph.
    target
        The variable whose distribution changed.
    measure
        "mean" (for states, the probability of `event`) or "variance".
    event
        As in `causal_shapley`.
    draws, seed
        Where the models have no exact answers.

    Examples
    --------
    >>> import markovia as mk
    >>> def shop(visitors, rate):
    ...     bn = mk.BayesianNetwork()
    ...     bn.add("visit", p=[1 - visitors, visitors])
    ...     bn.add("sale", parents=["visit"], p=[[1, 0], [1 - rate, rate]])
    ...     return bn
    >>> found = attribute_change(shop(0.5, 0.4), shop(0.3, 0.4), "sale")
    >>> {n: round(v, 6) for n, v in found.values.items()}
    {'visit': -0.08, 'sale': 0.0}
    """
    check_choice("measure", measure, ("mean", "variance"))
    if type(old) is not type(new):
        raise InvalidArgument("both models are of one kind, structural models or Bayesian networks")
    for model in (old, new):
        if isinstance(model, BayesianNetwork):
            model.require_one_graph("the share of each mechanism differs among the graphs that it leaves")
    check_known(old.variables, new.variables, "the new model")
    players = [n for n in old.variables if n in old.graph.ancestors([target], include_self=True)]
    statistic = _mean_of(old, target, event) if measure == "mean" else _variance_of

    def worth(members: frozenset[str]) -> Any:
        mixed = old.copy()
        for name in members:
            if isinstance(mixed, StructuralModel) and isinstance(new, StructuralModel):
                mixed._equations[name] = new[name]
            elif isinstance(mixed, BayesianNetwork) and isinstance(new, BayesianNetwork):
                mixed._tables[name], mixed._parents[name] = new[name], new[name].parent_names
        return _statistic(mixed, target, statistic, draws, seed)

    values, errors = shapley(worth, players, seed=seed)
    return Attribution(f"change of the {measure} of {target}", values, errors)


def intrinsic_influence(
    model: StructuralModel, target: str, *, draws: int = DRAWS, seed: Seed = 0
) -> Attribution:
    """Share out the uncertainty of a variable among the noises of its ancestors (Janzing and others, 2024).

    A set of noises is worth the uncertainty that knowing them removes: variance of a number, entropy (nats) of states.

    Examples
    --------
    >>> import markovia.distributions as dist
    >>> m = StructuralModel()
    >>> m.add("x", dist.Normal(0, 1))
    >>> m.add("y", lambda x, e: 3 * x + e, noise=dist.Normal(0, 2))
    >>> {n: round(v, 9) for n, v in intrinsic_influence(m, "y").values.items()}
    {'x': 9.0, 'y': 4.0}
    """
    equations = _above(model, target)
    players = [n for n, e in equations.items() if e.random]
    numeric = isinstance(model.variable(target), Quantity)
    what = f"{'variance' if numeric else 'entropy'} of {target}"
    exact = (
        _linear_shares(equations, players, target) if numeric else _entropy_shares(equations, players, target)
    )
    if exact is not None:
        return Attribution(what, exact, dict.fromkeys(exact, 0.0))
    if not numeric:
        raise UnsupportedModel(
            f"the noises behind {target!r} are not finitely many; only numbers are shared out by draws"
        )
    rng, size = generator(seed), _batch(draws)
    n = size * BATCHES
    one, two = ({k: equations[k].draw_noise(n, rng) for k in players} for _ in range(2))
    first = _values(equations, one, n)[target].reshape(BATCHES, size)

    def worth(members: frozenset[str]) -> Array:
        """Return Var E[target | noises]: the covariance of two runs that share these noises and no others."""
        shared = {k: one[k] if k in members else two[k] for k in players}
        second = _values(equations, shared, n)[target].reshape(BATCHES, size)
        return np.asarray(((first - first.mean()) * (second - second.mean())).mean(axis=1))

    values, errors = shapley(worth, players, seed=seed)
    return Attribution(what, values, errors)


def arrow_strength(model: AnyModel, target: str) -> Attribution:
    """Return how much each arrow into a variable carries: the divergence when it is cut (Janzing and others, 2013).

    A cut arrow feeds an independent draw of the parent instead; the strength is the Kullback-Leibler divergence (nats) from
    the true distribution. It is exact for tables and linear Gaussians; strengths of several arrows do not add up.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("x", p=[0.5, 0.5])
    >>> bn.add("y", lambda x: x)
    >>> round(arrow_strength(bn, "y")["x", "y"], 6)  # log 2
    0.693147
    """
    network = model
    if isinstance(model, StructuralModel):
        network = model_network.exact_network(_above(model, target))[0]
    assert isinstance(network, BayesianNetwork)
    network.require_one_graph("the strength of an arrow needs its direction")
    table = network[target]
    if isinstance(table, FunctionNode):
        raise UnsupportedModel(
            f"{target!r} is a function of numbers; the strength of arrows is for tables and linear Gaussians"
        )
    noises = [p.name for p in table.parents if p.name not in model.variables]
    parents = [p.name for p in table.parents if p.name in model.variables]
    strengths = {}
    for parent in parents:
        if isinstance(table, GaussianConditional):
            strengths[parent, target] = _linear_strength(network, table, parent, noises)
        else:
            strengths[parent, target] = _table_strength(network, table, parent, noises)
    return Attribution(f"arrows into {target}", strengths, dict.fromkeys(strengths, 0.0))


def _table_strength(network: BayesianNetwork, table: Any, parent: str, noises: Sequence[str]) -> float:
    values = np.asarray(table.values)
    names = list(table.parent_names)
    for noise in noises:
        values = np.tensordot(values, np.asarray(network[noise].values), (names.index(noise), 0))
        # tensordot drops the axis; the child stays last
        names.remove(noise)
    above = network.query(names).factor().transpose(names).values
    at = names.index(parent)
    alone = above.sum(axis=tuple(i for i in range(len(names)) if i != at))
    cut = np.expand_dims(np.tensordot(values, alone, (at, 0)), at)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(values > 0, values * np.log(values / cut), 0.0).sum(axis=-1)
    return float((above * terms).sum())


def _linear_strength(
    network: BayesianNetwork, table: GaussianConditional, parent: str, noises: Sequence[str]
) -> float:
    if table.discrete:
        raise UnsupportedModel(
            f"{table.variable.name!r} has parents with states; its arrows have no closed form"
        )
    weights = dict(zip([p.name for p in table.continuous], table.weights.tolist(), strict=True))
    own = float(table.variance) + sum(weights[e] ** 2 * network.query(e).var() for e in noises)
    if own == 0.0:
        return float("inf") if weights[parent] else 0.0
    carried = weights[parent] ** 2 * network.query(parent).var()
    return 0.5 * log(1.0 + carried / own)


def _linear_shares(
    equations: Mapping[str, Equation], players: Sequence[str], target: str
) -> dict[str, float] | None:
    """Return the variance that each Gaussian noise brings to a linear variable; None where something is not linear."""
    try:
        network, kinds = model_network.exact_network(equations, list(equations))
    except UnsupportedModel:
        return None
    if kinds or any(not isinstance(network.variable(n), Quantity) for n in network.variables):
        return None
    shares = {}
    for name in players:
        shares[name] = 0.0
        for noise in [q for q in network.parents(name) if q not in equations]:
            s = network.query([target, noise]).covariance([target, noise])
            shares[name] += float(s[0, 1] ** 2 / s[1, 1])
    return shares


def _entropy_shares(
    equations: Mapping[str, Equation], players: Sequence[str], target: str
) -> dict[str, float] | None:
    """Return Shapley values of the entropy that knowing finite noises removes; None where they are too many."""
    try:
        network = model_network.explicit_network(equations)
    except UnsupportedModel:
        return None
    if network.has_quantities:
        return None
    own = {n: [q for q in network.parents(n) if q not in equations] or [n] for n in players}
    own = {n: q for n, q in own.items() if q != [n] or not network.parents(n)}
    noises = list(dict.fromkeys(q for qs in own.values() for q in qs))
    if np.prod([len(network.variable(q)) for q in noises], dtype=object) > MOST_NOISES:
        return None
    joint = network.query([target, *[q for q in noises if q != target]]).factor()

    def removed(members: frozenset[str]) -> float:
        known = [q for n in members for q in own[n]]
        if target in known:
            return joint.marginal([target]).entropy()
        both = joint.marginal([target, *known]).entropy()
        return joint.marginal([target]).entropy() - (
            both - (joint.marginal(known).entropy() if known else 0.0)
        )

    shares = shapley(removed, list(own))[0]
    return {n: shares.get(n, 0.0) for n in players}


# -- inside --------------------------------------------------------------------------------------------------------


def _above(model: StructuralModel, target: str) -> dict[str, Equation]:
    model.variable(target)
    wanted = model.graph.ancestors([target], include_self=True)
    return {n: e for n, e in model._all().items() if n in wanted}


def _values(equations: Mapping[str, Equation], noises: Mapping[str, Any], n: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, equation in equations.items():
        values[name] = equation.value(values, noises.get(name, {}), n)
    return values


def _seen(equation: Equation, said: Any) -> tuple[Any, None]:
    variable = equation.variable
    return (float(said) if isinstance(variable, Quantity) else variable.index(said)), None


def _repeated(noise: Any, n: int) -> Any:
    return (
        {k: np.full(n, v[0]) for k, v in noise.items()}
        if isinstance(noise, Mapping)
        else np.full(n, noise[0])
    )


def _batch(draws: int) -> int:
    check_count("draws", draws, BATCHES)
    return draws // BATCHES


Statistic = Callable[[Any], float]


def _mean_of(model: AnyModel, target: str, event: Any) -> Statistic:
    """Return the mean of a posterior or of values; for states the probability of one of them."""
    variable = model.variable(target)
    if isinstance(variable, Quantity):
        return lambda found: float(found.mean())
    code = len(variable) - 1 if event is None else variable.index(event)
    return lambda found: float(found.values[code] if isinstance(found, Posterior) else (found == code).mean())


def _variance_of(found: Any) -> float:
    return float(found.var())


def _statistic(model: AnyModel, target: str, statistic: Statistic, draws: int, seed: Seed) -> Any:
    """Return a statistic of a variable: exact, or one estimate a batch of draws."""
    if isinstance(model, BayesianNetwork):
        return statistic(model.query(target))
    found = model._exactly([target], {}, {}, {}, model, "auto")
    if found is not None:
        return statistic(found)
    size = _batch(draws)
    values = run(_above(model, target), {}, size * BATCHES, generator(seed)).values[target]
    return np.array([statistic(batch) for batch in values.reshape(BATCHES, size)])
