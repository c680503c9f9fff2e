"""Log-linear models: p(x) ∝ exp(w · F(x)) with features F of small groups of variables.

A feature has one weight. It may have several *instances*, the same quantity measured at several places (tied
parameters: every edge of a chain shares one weight); its value is the sum over them. Each instance is a table
over a few variables, real numbers of any sign. This is the exponential family in its canonical form: the
gradient of the log likelihood is F(x) minus the expectation of F, and any positive pairwise model is of this
form (the general pairwise features below).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, InvalidGraph, InvalidTable, TooLarge, check_known
from markovia.factors.local_models.local_model import number
from markovia.factors.potentials.potentials import exponential, finite
from markovia.factors.tables.conditional import MAX_TABLE_ENTRIES
from markovia.factors.tables.factor import Factor, product
from markovia.factors.tables.variable import State, Variable
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks

Instance = tuple[tuple[Variable, ...], Array]


class Feature:
    """A real function of a few variables, or the sum of such functions under one weight.

    Parameters
    ----------
    variables
        The variables of the feature; a plain name gets the states `0 ... k-1` of the table's axis.
    value
        A table with one axis a variable, or a function of one state a variable.
    name
        How the feature is called in print.

    Examples
    --------
    >>> a, b = Variable("a", [-1, 1]), Variable("b", [-1, 1])
    >>> Feature([a, b], lambda x, y: x * y, name="agree").instances[0][1].tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """

    __slots__ = ("instances", "name")

    instances: tuple[Instance, ...]
    name: str

    def __init__(
        self,
        variables: Iterable[Variable | str] | Variable | str,
        value: ArrayLike | Callable[..., float],
        name: str = "",
    ) -> None:
        axes = [variables] if isinstance(variables, Variable | str) else list(variables)
        self.name = name or f"f({', '.join(v if isinstance(v, str) else v.name for v in axes)})"
        self.instances = (self._instance(axes, value),)

    @classmethod
    def tied(cls, features: Iterable["Feature"], name: str = "") -> "Feature":
        """Return one feature whose value is the sum of several, so that they share one weight.

        Examples
        --------
        >>> x = [Variable(f"x{i}", 2) for i in range(3)]
        >>> same = Feature.tied(Feature([a, b], np.eye(2)) for a, b in zip(x, x[1:]))
        >>> LogLinear([same], [1.0]).feature_vector({"x0": 0, "x1": 0, "x2": 0}).tolist()
        [2.0]
        """
        members = list(features)
        if not members:
            raise InvalidArgument("a tied feature needs at least one instance")
        tied = object.__new__(cls)
        tied.name = name or members[0].name
        tied.instances = tuple(i for f in members for i in f.instances)
        return tied

    def _instance(self, axes: list[Variable | str], value: Any) -> Instance:
        if callable(value):
            variables = tuple(v if isinstance(v, Variable) else Variable(v) for v in axes)
            table = np.empty([len(v) for v in variables])
            for at in np.ndindex(*table.shape):
                states = tuple(v.states[i] for v, i in zip(variables, at, strict=True))
                table[at] = number(value(*states), f"the feature {self.name!r} at {states}")
        else:
            table = np.array(finite(value, f"values of the feature {self.name!r}"))
            if table.ndim != len(axes):
                raise InvalidTable(
                    f"the table of {self.name!r} has {table.ndim} axes for {len(axes)} variables"
                )
            variables = tuple(
                v if isinstance(v, Variable) else Variable(v, k)
                for v, k in zip(axes, table.shape, strict=True)
            )
        if table.shape != tuple(len(v) for v in variables):
            raise InvalidTable(
                f"the table of {self.name!r} has shape {table.shape} but its variables have "
                f"{[len(v) for v in variables]} states"
            )
        if len({v.name for v in variables}) != len(variables):
            raise InvalidTable(f"the feature {self.name!r} names a variable twice")
        finite(table, f"values of the feature {self.name!r}")
        table.setflags(write=False)
        return variables, table

    def __repr__(self) -> str:
        places = f", {len(self.instances)} instances" if len(self.instances) > 1 else ""
        return f"Feature({self.name!r}{places})"


class LogLinear(InNotebooks):
    """The unnormalised distribution exp(w · F(x)).

    Parameters
    ----------
    features
        The features, one weight each.
    weights
        Their weights in order.

    Examples
    --------
    >>> y = [Variable(f"y{i}", 2) for i in range(2)]
    >>> model = LogLinear([Feature(y, [[1, 0], [0, 1]], "same")], [np.log(3)])
    >>> (f,) = model.factors()
    >>> f.normalize().values.round(3).tolist()
    [[0.375, 0.125], [0.125, 0.375]]
    """

    __slots__ = ("features", "variables", "weights")

    features: tuple[Feature, ...]
    weights: Array
    variables: tuple[Variable, ...]

    def __init__(self, features: Iterable[Feature], weights: ArrayLike) -> None:
        self.features = tuple(features)
        self.weights = np.array(finite(weights, "weights"))
        if self.weights.shape != (len(self.features),):
            raise InvalidArgument(
                f"one weight a feature is needed, {len(self.features)}, not an array of shape "
                f"{self.weights.shape}"
            )
        self.weights.setflags(write=False)
        seen: dict[str, Variable] = {}
        for variables, _ in (i for f in self.features for i in f.instances):
            for v in variables:
                if seen.setdefault(v.name, v).states != v.states:
                    raise InvalidTable(f"two features disagree about the states of {v.name!r}")
        self.variables = tuple(seen.values())

    def factors(self) -> list[Factor]:
        """Return one factor a group of variables that some feature measures together."""
        grouped: dict[frozenset[str], tuple[tuple[Variable, ...], Array]] = {}
        for weight, variables, table in self._terms():
            key = frozenset(v.name for v in variables)
            axes, logs = grouped.get(key, (variables, np.zeros(table.shape)))
            grouped[key] = (axes, logs + weight * _turned(table, variables, axes))
        return [Factor.of(axes, exponential(logs)) for axes, logs in grouped.values()]

    def feature_vector(self, assignment: Mapping[str, State]) -> Array:
        """Return F(x): the value of each feature for a state of every variable.

        Raises
        ------
        UnknownVariable, UnknownState, InvalidArgument
            If the assignment names what the model lacks, or leaves a variable out.
        """
        codes = self._codes(assignment)
        return np.array(
            [
                sum(float(table[tuple(codes[v.name] for v in variables)]) for variables, table in f.instances)
                for f in self.features
            ]
        )

    def score(self, assignment: Mapping[str, State]) -> float:
        """Return w · F(x), the log of the unnormalised probability."""
        return float(self.weights @ self.feature_vector(assignment))

    def expected_features(
        self, marginals: Factor | Callable[[tuple[str, ...]], Factor] | None = None, *, engine: Any = "auto"
    ) -> Array:
        """Return the expectation of F, the gradient of log Z by the weights.

        Parameters
        ----------
        marginals
            A joint factor over all variables; or a function that takes names and returns a factor over them,
            exact or from any approximate inference; or None to let an engine find the marginals.
        engine
            Who finds them. "auto" differentiates log Z once, exactly, at the cost of a few passes over a junction tree; any
            other is asked for the joint posterior of each feature's variables, as in `query`.

        Returns
        -------
        Array
            One expectation a feature.

        Raises
        ------
        TooLarge
            If the model is too wide to be answered exactly, and no engine is named.

        Examples
        --------
        >>> coin = Feature(Variable("coin", 2), [0.0, 1.0])
        >>> LogLinear([coin], [np.log(3)]).expected_features().round(3).tolist()
        [0.75]
        """
        if marginals is None:
            ask = ports.call("feature-marginals", self, engine)
        else:
            ask = marginals.marginal if isinstance(marginals, Factor) else marginals
        cache: dict[tuple[str, ...], Array] = {}
        expected = np.zeros(len(self.features))
        for j, feature in enumerate(self.features):
            for variables, table in feature.instances:
                names = tuple(v.name for v in variables)
                if names not in cache:
                    cache[names] = ask(names).transpose(names).normalize().values
                expected[j] += float((cache[names] * table).sum())
        return expected

    def joint(self) -> Factor:
        """Return the unnormalised table over all variables; its total is the partition function Z.

        Raises
        ------
        TooLarge
            If there are more than 64 variables or 2**28 configurations.
        """
        size = prod(len(v) for v in self.variables)
        if size > MAX_TABLE_ENTRIES:
            raise TooLarge(f"the joint table of {len(self.variables)} variables would have {size:,} entries")
        return product(self.factors())

    def log_potential(self, scope: Sequence[str]) -> Array:
        """Return the sum of all weighted features inside a group of variables, axes in the given order."""
        axes = self._axes(scope)
        inside = set(scope)
        return self._sum(axes, [t for t in self._terms() if inside.issuperset(v.name for v in t[1])])

    def clique_log_potentials(self, cliques: Sequence[Sequence[str]]) -> list[Array]:
        """Return the log potential of each clique, every feature instance given to the first that holds it.

        The sum over the cliques is w · F(x), so the exponentials are the potentials of a junction tree.

        Raises
        ------
        InvalidGraph
            If no clique holds all variables of some feature.
        """
        scopes = [set(c) for c in cliques]
        terms: list[list[tuple[float, tuple[Variable, ...], Array]]] = [[] for _ in cliques]
        for term in self._terms():
            names = [v.name for v in term[1]]
            home = next((i for i, scope in enumerate(scopes) if scope.issuperset(names)), None)
            if home is None:
                raise InvalidGraph(f"no clique holds the variables {names} of a feature")
            terms[home].append(term)
        return [self._sum(self._axes(c), own) for c, own in zip(cliques, terms, strict=True)]

    def _terms(self) -> list[tuple[float, tuple[Variable, ...], Array]]:
        return [
            (float(w), variables, table)
            for w, f in zip(self.weights, self.features, strict=True)
            for variables, table in f.instances
        ]

    def _axes(self, scope: Sequence[str]) -> tuple[Variable, ...]:
        known = {v.name: v for v in self.variables}
        check_known(scope, known)
        return tuple(known[name] for name in scope)

    def _sum(
        self, axes: tuple[Variable, ...], terms: list[tuple[float, tuple[Variable, ...], Array]]
    ) -> Array:
        total = np.zeros([len(v) for v in axes])
        for weight, variables, table in terms:
            total += weight * _turned(table, variables, axes)
        return total

    def _codes(self, assignment: Mapping[str, State]) -> dict[str, int]:
        known = {v.name: v for v in self.variables}
        check_known(assignment, known)
        for name in known:
            if name not in assignment:
                raise InvalidArgument(f"the assignment has no state for {name!r}")
        return {name: v.index(assignment[name]) for name, v in known.items()}

    def __repr__(self) -> str:
        return f"LogLinear({len(self.features)} features of {len(self.variables)} variables)"


def general_pairwise_features(
    variables: Iterable[Variable], edges: Iterable[tuple[str, str]]
) -> list[Feature]:
    """Return an indicator for every state of every variable and every pair of states of every edge.

    With these any positive pairwise model is log-linear. The order is that of the variables, then of the
    edges; states in order, the second variable's fastest.

    Examples
    --------
    >>> x1, x2 = Variable("x1", [1, 2]), Variable("x2", [1, 2])
    >>> model = LogLinear(general_pairwise_features([x1, x2], [("x1", "x2")]), np.zeros(8))
    >>> model.feature_vector({"x1": 2, "x2": 1}).astype(int).tolist()
    [0, 1, 1, 0, 0, 0, 1, 0]
    """
    own = {v.name: v for v in variables}
    features = [_indicator((v,), (i,)) for v in own.values() for i in range(len(v))]
    for a, b in _ends(edges, own):
        features += [_indicator((a, b), at) for at in np.ndindex(len(a), len(b))]
    return features


def ising_features(
    variables: Iterable[Variable], edges: Iterable[tuple[str, str]], *, tied: bool = False
) -> list[Feature]:
    """Return an indicator for every state of every variable and, for every edge, whether its ends agree.

    Parameters
    ----------
    variables
        The variables; the ends of an edge have equally many states.
    edges
        Pairs of names.
    tied
        Whether all edges share one weight (one feature that counts the edges whose ends agree).

    Examples
    --------
    >>> x1, x2 = Variable("x1", [1, 2]), Variable("x2", [1, 2])
    >>> model = LogLinear(ising_features([x1, x2], [("x1", "x2")]), np.zeros(5))
    >>> model.feature_vector({"x1": 2, "x2": 1}).astype(int).tolist()
    [0, 1, 1, 0, 0]
    """
    own = {v.name: v for v in variables}
    features = [_indicator((v,), (i,)) for v in own.values() for i in range(len(v))]
    same = []
    for a, b in _ends(edges, own):
        if len(a) != len(b):
            raise InvalidArgument(
                f"{a.name!r} and {b.name!r} cannot agree: they have different numbers of states"
            )
        same.append(Feature((a, b), np.eye(len(a)), f"[{a.name} = {b.name}]"))
    if tied and same:
        same = [Feature.tied(same, "edges that agree")]
    return features + same


def _indicator(variables: tuple[Variable, ...], at: tuple[int, ...]) -> Feature:
    table = np.zeros([len(v) for v in variables])
    table[at] = 1.0
    states = ", ".join(f"{v.name}={v.states[i]!r}" for v, i in zip(variables, at, strict=True))
    return Feature(variables, table, f"[{states}]")


def _ends(edges: Iterable[tuple[str, str]], own: Mapping[str, Variable]) -> list[tuple[Variable, Variable]]:
    ends = []
    for a, b in edges:
        check_known((a, b), own, "the variables of the features")
        ends.append((own[a], own[b]))
    return ends


def _turned(table: Array, variables: Sequence[Variable], axes: Sequence[Variable]) -> Array:
    """View a table over some of the axes so that it broadcasts against all of them."""
    place = {v.name: i for i, v in enumerate(variables)}
    order = [place[v.name] for v in axes if v.name in place]
    return table.transpose(order).reshape([len(v) if v.name in place else 1 for v in axes])
