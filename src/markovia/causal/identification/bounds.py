"""What is known of an effect that is not identified: bounds.

The members of a district answer to their parents by functions that hidden causes choose; for variables with states
there are finitely many. Their probabilities are linear in what is observed, and so is the effect, so that the
smallest and the largest effect are two linear programs. Bounds without any assumption and those of an instrument are
special graphs. References: Balke and Pearl, *Bounds on treatment effects from studies with imperfect compliance*,
JASA 92 (1997); Sachs, Jonzon, Sjölander and Gabriel, *A general method for deriving tight symbolic bounds on causal
effects*, JCGS 32 (2023).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.causal.observed import district_factor, is_distribution, observed_joint
from markovia.causal.problem import Problem
from markovia.errors import InvalidArgument
from markovia.factors.tables.factor import Factor
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.masks import members
from markovia.graphs.kinds.named import Names
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 500_000
"""The largest number of combinations of response functions."""


def bounds(
    graph: object, treatment: Names, outcome: Names, source: Any, *, latent: Names = ()
) -> "EffectBounds":
    """Bound the distribution of an outcome under all values of treatments, for variables with states.

    Parameters
    ----------
    graph
        What `identify` takes.
    treatment, outcome
        Names; one outcome.
    source
        A model, a joint `Factor` or a frame of the observed variables.
    latent
        Variables that are not observed.

    Returns
    -------
    EffectBounds
        Lower and upper probabilities, and those of contrasts.

    Raises
    ------
    InvalidArgument
        If the treatments' hidden causes lie in several districts, the response functions are too many, or a model's
        distribution contradicts the graph.

    Examples
    --------
    Nobody was made to comply with what they were assigned, so the effect of the treatment is only bounded:

    >>> import markovia as mk
    >>> table = mk.Factor(["z", "x", "y"], [[[.32, .04], [.08, .06]], [[.02, .1], [.07, .31]]])
    >>> effect = bounds("z -> x -> y; x <-> y", "x", "y", table)
    >>> [round(v, 3) for v in effect.difference(1, {"x": 1}, {"x": 0})]
    [0.26, 0.64]
    """
    problem = Problem.of(graph, treatment, outcome, latent=latent)
    if len(problem.outcome) != 1:
        raise InvalidArgument("bounds are on the distribution of one outcome; ask for one at a time")
    return EffectBounds(problem, source)


@dataclass(frozen=True)
class Range:
    """The least and the greatest value that graph and distribution allow."""

    lower: float
    upper: float

    def __iter__(self) -> Any:
        return iter((self.lower, self.upper))


class EffectBounds(InNotebooks):
    """Bounds on what an outcome would be under each value of the treatments.

    Attributes
    ----------
    sharp
        Whether no smaller bounds hold: so if all pairs of the treatments' district share a hidden cause.
    misfit
        How far the observed distribution is from the nearest one the graph allows (largest difference of a probability);
        rows of a sample may not fit exactly, a model's distribution has to.
    """

    def __init__(self, problem: Problem, source: Any) -> None:
        whole = problem.admg
        kept = whole.ancestors(whole.mask(problem.outcome))
        graph = _subgraph(whole, kept)
        self._graph = graph
        self._outcome = problem.outcome[0]
        self._treatment = tuple(n for n in problem.treatment if n in graph.number)
        fixed = graph.mask(self._treatment)
        asked = graph.ancestors(graph.mask(problem.outcome), within=~fixed)
        free = [part for part in graph.districts() if part & asked and part & ~asked]
        if len(free) > 1:
            raise InvalidArgument(
                "the treatments share hidden causes in several separate groups, where bounds are no linear program; ask for "
                "one treatment at a time"
            )
        self._variables = {v.name: v for v in observed_joint(source, _names(graph, -1)).variables}
        settled = [part for part in graph.districts(asked) if not free or not part & free[0]]
        rest = Factor.scalar()
        for part in settled:
            rest = rest * district_factor(source, graph, part)
        self._rest = rest
        self._program = _LinearProgram(self, graph, free[0], asked & free[0], source) if free else None
        self.sharp = not free or all(graph.siblings[i] >> j & 1 for i, j in combinations(members(free[0]), 2))
        self.misfit = self._program.misfit if self._program else 0.0
        if self.misfit > 1e-6 and is_distribution(source):
            raise InvalidArgument(
                f"the distribution is not one this graph allows: some probability would be off by {self.misfit:.2g}"
            )

    def probability(self, state: Any, /, **do: Any) -> Range:
        """Bound the probability of a state of the outcome when treatments are set.

        Examples
        --------
        >>> import markovia as mk
        >>> table = mk.Factor(["x", "y"], [[.3, .1], [.2, .4]])
        >>> bounds("x -> y; x <-> y", "x", "y", table).probability(1, x=1)
        Range(lower=0.4, upper=0.8)
        """
        return self._range(self._objective(state, do))

    def difference(self, state: Any, treated: Mapping[str, Any], control: Mapping[str, Any]) -> Range:
        """Bound the difference of a state's probability between two settings of the treatments."""
        return self._range(self._objective(state, treated) - self._objective(state, control))

    def to_pandas(self) -> "pd.DataFrame":
        """Return the bounds for every setting of the treatments and state of the outcome."""
        import pandas as pd

        rows = []
        for values in product(*(self._variables[n].states for n in self._treatment)):
            do = dict(zip(self._treatment, values, strict=True))
            for state in self._variables[self._outcome].states:
                found = self.probability(state, **do)
                rows.append({**do, self._outcome: state, "lower": found.lower, "upper": found.upper})
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        return self.to_pandas().to_string(index=False, float_format="{:.4f}".format)

    def __repr__(self) -> str:
        return f"<EffectBounds of {self._outcome} under {', '.join(self._treatment)}{'' if self.sharp else ', not sharp'}>"

    def _objective(self, state: Any, do: Mapping[str, Any]) -> Array:
        if set(do) != set(self._treatment):
            raise InvalidArgument(
                f"a setting names each of {', '.join(self._treatment)}, not {', '.join(do) or 'nothing'}"
            )
        said = {**{n: do[n] for n in do}, self._outcome: state}
        codes = {name: self._variables[name].index(value) for name, value in said.items()}
        rest = self._rest.reduce({n: v for n, v in said.items() if n in self._rest.names})
        found = np.array([rest.total]) if self._program is None else self._program.objective(rest, codes)
        if np.isnan(found).any():
            raise InvalidArgument(
                f"nothing is observed of some values that go with {dict(do)}; leave them out or ask for others"
            )
        return found

    def _range(self, objective: Array) -> Range:
        if self._program is None:
            return Range(float(objective[0]), float(objective[0]))
        return Range(self._program.least(objective), -self._program.least(-objective))


class _LinearProgram:
    """The response functions of one district, and what is observed of their probabilities."""

    def __init__(self, effect: EffectBounds, graph: Admg, district: int, asked: int, source: Any) -> None:
        self.graph = graph
        self.district = district
        self.asked = asked
        self.outcome = effect._outcome
        self.variables = effect._variables
        self.inside = graph.ordered(district)
        self.around = _names(graph, graph.pillow(district))
        self.cards = {graph.number[n]: v.cardinality for n, v in self.variables.items()}
        self.above = {i: [graph.names.index(n) for n in _names(graph, graph.parents[i])] for i in self.inside}
        sizes = [self.cards[i] ** int(np.prod([self.cards[j] for j in self.above[i]])) for i in self.inside]
        self.count = int(np.prod(sizes, dtype=object))
        if self.count > LIMIT:
            raise InvalidArgument(
                f"the variables that share hidden causes answer to their parents in {self.count:.2g} ways, more than "
                f"{LIMIT:,}; merge states or leave variables out"
            )
        functions = np.indices(sizes).reshape(len(sizes), -1)
        self.functions = dict(zip(self.inside, functions, strict=True))
        known = district_factor(source, graph, district).transpose([*self.around, *_names(graph, district)])
        self.matrix, self.observed = self._constraints(known.values)

    def responses(self, around: Mapping[int, int], fixed: Mapping[int, int]) -> dict[int, Array]:
        """Return, for each combination of functions, the values of the district's members."""
        values: dict[int, Any] = {**around, **fixed}
        for i in self.inside:
            if i not in fixed:
                place: Any = 0
                for j in self.above[i]:
                    place = place * self.cards[j] + values[j]
                values[i] = self.functions[i] // self.cards[i] ** place % self.cards[i]
        return values

    def _constraints(self, known: Array) -> tuple[Any, Array]:
        from scipy.sparse import coo_array

        shape = [self.cards[i] for i in self.inside]
        cells = int(np.prod(shape))
        order = [self.graph.number[n] for n in _names(self.graph, self.district)]
        rows: list[Array] = []
        right: list[Array] = []
        for setting in self._settings(self.around):
            observed = known[tuple(setting.values())].ravel()
            if np.isnan(observed).any():
                continue
            values = self.responses(setting, {})
            cell: Any = 0
            for i in order:
                cell = cell * self.cards[i] + values[i]
            rows.append(len(right) * cells + cell)
            right.append(observed)
        if not right:
            raise InvalidArgument("the parents of the treatments' district never take any of their values")
        columns = np.tile(np.arange(self.count), len(rows))
        matrix = coo_array(
            (np.ones(len(columns)), (np.concatenate(rows), columns)), shape=(len(right) * cells, self.count)
        )
        return matrix.tocsc(), np.concatenate(right)

    def _settings(self, names: list[str]) -> list[dict[int, int]]:
        numbers = [self.graph.number[n] for n in names]
        return [dict(zip(numbers, v, strict=True)) for v in product(*(range(self.cards[j]) for j in numbers))]

    def objective(self, rest: Factor, codes: Mapping[str, int]) -> Array:
        """Return the probability of what is asked under each combination of functions.

        Parameters
        ----------
        rest
            The product of the other districts, reduced to what is set and asked.
        codes
            The positions of the states set and asked.
        """
        number = self.graph.number
        settings = {number[n]: c for n, c in codes.items() if n != self.outcome}
        fixed = {i: c for i, c in settings.items() if self.district >> i & 1}
        around = {
            number[n]: settings.get(number[n], 0) for n in self.around
        }  # what asked ones do not see stays at zero
        own = _names(self.graph, self.asked)
        free = [n for n in self.around if n in rest.names]
        weights = rest.marginal([n for n in rest.names if n in free or n in own])
        total = np.zeros(self.count)
        for setting in self._settings(free):
            values = self.responses({**around, **setting}, fixed)
            index = tuple(values[number[n]] for n in weights.names)
            share = weights.values[index] if index else float(weights.values)
            if self.outcome in own:
                share = share * (values[number[self.outcome]] == codes[self.outcome])
            total += share
        return total

    @cached_property
    def misfit(self) -> float:
        """The largest difference of a probability to the nearest distribution the graph allows."""
        from scipy.optimize import linprog
        from scipy.sparse import hstack

        ones = np.ones((self.matrix.shape[0], 1))
        limits = np.concatenate([self.observed, -self.observed])
        left = _stacked(hstack([self.matrix, -ones]), hstack([-self.matrix, -ones]))
        cost = np.zeros(self.count + 1)
        cost[-1] = 1.0
        return max(0.0, float(linprog(cost, A_ub=left, b_ub=limits, method="highs").fun))

    def least(self, objective: Array) -> float:
        """Return the least value of a linear function of the functions' probabilities."""
        from scipy.optimize import linprog

        if self.misfit <= 1e-9:
            found = linprog(objective, A_eq=self.matrix, b_eq=self.observed, method="highs")
            if found.status == 0:
                return float(found.fun)
        room = self.misfit * (1 + 1e-6) + 1e-9
        limits = np.concatenate([self.observed + room, -self.observed + room])
        found = linprog(objective, A_ub=_stacked(self.matrix, -self.matrix), b_ub=limits, method="highs")
        return float(found.fun)


def instrumental_inequality(source: Any, instrument: str, treatment: str, outcome: str) -> float:
    """Return the largest sum over outcomes of max P(treatment, outcome | instrument); above one, it is no instrument.

    Examples
    --------
    >>> import markovia as mk
    >>> good = mk.Factor(["z", "x", "y"], [[[.32, .04], [.08, .06]], [[.02, .1], [.07, .31]]])
    >>> round(instrumental_inequality(good, "z", "x", "y"), 3)
    0.84
    """
    joint = observed_joint(source, [instrument, treatment, outcome]).values
    given = joint / joint.sum(axis=(1, 2), keepdims=True)
    return float(given.max(axis=0).sum(axis=1).max())


def mean_bounds(
    frame: Any, treatment: str, outcome: str, *, low: float, high: float, value: Any = 1
) -> Range:
    """Bound the mean of a number that lies between two limits if all had a treatment, without any assumption.

    Those who had it show their outcome; the others' could be anything within the limits (Manski).

    Examples
    --------
    >>> mean_bounds({"t": [1, 1, 0, 0], "y": [6.0, 8.0, 5.0, 5.0]}, "t", "y", low=0, high=10)
    Range(lower=3.5, upper=8.5)
    """
    if not low < high:
        raise InvalidArgument(f"low must be below high: {low}, {high}")
    had = np.asarray(frame[treatment]) == value
    seen = np.asarray(frame[outcome], float)[had]
    if not len(seen):
        raise InvalidArgument(f"no row has {treatment} = {value!r}")
    if seen.min() < low or seen.max() > high:
        raise InvalidArgument(
            f"{outcome!r} goes from {seen.min():g} to {seen.max():g}, beyond the limits said"
        )
    share = len(seen) / len(had)
    known = float(seen.mean()) * share
    return Range(known + low * (1 - share), known + high * (1 - share))


def _names(graph: Admg, mask: int) -> list[str]:
    return [graph.names[i] for i in graph.ordered(mask & graph.everything)]


def _subgraph(graph: Admg, kept: int) -> Admg:
    inside = members(kept)
    place = {i: k for k, i in enumerate(inside)}

    def moved(mask: int) -> int:
        return sum(1 << place[j] for j in members(mask & kept))

    return Admg(
        graph.named(kept),
        [moved(graph.parents[i]) for i in inside],
        [moved(graph.siblings[i]) for i in inside],
    )


def _stacked(above: Any, below: Any) -> Any:
    from scipy.sparse import vstack

    return vstack([above, below]).tocsc()
