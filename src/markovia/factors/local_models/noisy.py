"""Noisy-or, noisy-and, noisy-max and noisy-min, each with an optional leak.

Every cause, when present, produces the effect on its own with some probability; the causes act independently
and the child takes the largest (or smallest) of the effects:

    noisy-or    P(y = no  | x) = (1 - leak) * product over present causes of (1 - strength)
    noisy-and   P(y = yes | x) = (1 - leak) * product over absent conditions of (1 - strength)
    noisy-max   P(y <= k  | x) = leak(<= k) * product over parents of P(effect of that parent <= k | x_i)
    noisy-min   the same with >= in place of <=

With all strengths one and no leak they are plain OR, AND, MAX and MIN. The parameters are linear in the
number of parents, and so is the time for a row; nodes with hundreds of parents (the diseases above a finding
of the QMR network) are no problem. All computations use logarithms of the products.

References: Pearl (1988), section 4.3; Henrion (1989) and Diez (1993) on the leak; Diez and Druzdzel (2007).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, InvalidTable, check_known
from markovia.factors.local_models.local_model import (
    CausalIndependence,
    Contribution,
    Recipe,
    check_mapping,
    number,
    on_code,
)
from markovia.factors.tables.conditional import ROW_TOLERANCE
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array
from markovia.runtime.checks import numbers


class NoisyMaxConditional(CausalIndependence):
    """P(child | parents) of a noisy-max: contributions are log P(effect <= k), k all but the last state."""

    _mirrored: ClassVar[bool] = False

    def __init__(
        self,
        variable: Variable,
        parents: tuple[Variable, ...],
        contributions: Sequence[Contribution],
        start: Contribution,
        n_parameters: int,
    ) -> None:
        super().__init__(variable, parents, contributions, start)
        self._n_parameters = n_parameters

    @property
    def n_parameters(self) -> int:
        """(States - 1) for each effect that is not simply absent, and for the leak if there is one."""
        return self._n_parameters

    def _finish(self, combined: Contribution) -> Array:
        edge = (*combined.shape[:-1], 1)
        upper = np.concatenate([combined, np.zeros(edge)], axis=-1)
        lower = np.concatenate([np.full(edge, -np.inf), combined], axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            # log(exp(upper) - exp(lower)), exact also where the two are nearly equal
            logs: Array = upper + np.log(-np.expm1(np.minimum(lower - upper, 0.0)))
        logs[np.isneginf(upper)] = -np.inf
        return logs[..., ::-1] if self._mirrored else logs


class NoisyMinConditional(NoisyMaxConditional):
    """P(child | parents) of a noisy-min: a noisy-max on the reversed order of the child's states."""

    _mirrored = True


class NoisyParameters(NamedTuple):
    """The parameters of a noisy-or or noisy-and: one strength and one *on* code a parent, and the leak."""

    strengths: Array
    leak: float
    on: tuple[int, ...]


class NoisyOrConditional(NoisyMaxConditional):
    """P(child | parents) of a noisy-or: two child states, the second one is the effect."""

    _active_when_on: ClassVar[bool] = True

    def __init__(
        self,
        variable: Variable,
        parents: tuple[Variable, ...],
        strengths: Array,
        leak: float,
        on: tuple[int, ...],
    ) -> None:
        contributions = []
        with np.errstate(divide="ignore"):
            for parent, strength, code in zip(parents, strengths, on, strict=True):
                active = np.arange(len(parent)) == code
                active = active if self._active_when_on else ~active
                contributions.append(np.where(active, np.log1p(-strength), 0.0)[:, None])
            start = np.log1p(-np.array([leak]))
        super().__init__(variable, parents, contributions, start, len(parents) + (leak > 0))
        self._parameters = NoisyParameters(strengths, leak, on)

    def parameters(self) -> NoisyParameters:
        """Return the strengths (in parent order), the leak, and the code of each parent's *on* state."""
        return self._parameters


class NoisyAndConditional(NoisyOrConditional):
    """P(child | parents) of a noisy-and: two child states, the second one is the effect."""

    _mirrored = True
    _active_when_on = False


class NoisyOr(Recipe):
    """An effect that each of several causes can produce on its own.

    Parameters
    ----------
    strengths
        For each parent the probability that it produces the effect when it alone is on and nothing leaks.
    leak
        The probability of the effect when every parent is off.
    on
        The state that counts as *on*, for parents where that is not the second of two states.

    Raises
    ------
    InvalidArgument
        If a strength or the leak is no probability, or `on` names no parent.

    Examples
    --------
    >>> burglary, quake = Variable("burglary", ["no", "yes"]), Variable("quake", ["no", "yes"])
    >>> alarm = NoisyOr({"burglary": 0.9, "quake": 0.3}, leak=0.01)
    >>> p = alarm.bind(Variable("alarm", ["no", "yes"]), (burglary, quake))
    >>> p.row(burglary="yes", quake="yes").round(4).tolist()
    [0.0693, 0.9307]
    """

    kind = "noisy-or"
    _conditional: ClassVar[type[NoisyOrConditional]] = NoisyOrConditional

    def __init__(
        self, strengths: Mapping[str, float], leak: float = 0.0, *, on: Mapping[str, State] | None = None
    ) -> None:
        check_mapping(strengths, type(self).__name__, "{'burglary': 0.9, 'quake': 0.3}")
        self.strengths = {
            name: _probability(s, f"the strength of {name!r} in a {self.kind}")
            for name, s in strengths.items()
        }
        self.leak = _probability(leak, f"the leak of a {self.kind}")
        self.on = dict(on or {})
        check_known(self.on, self.strengths, f"on= of a {self.kind}")

    @classmethod
    def compound(
        cls, strengths: Mapping[str, float], leak: float = 0.0, *, on: Mapping[str, State] | None = None
    ) -> Self:
        """Build from strengths that include the leak (Henrion's form).

        Here a strength is what one observes: for a noisy-or the probability of the effect when that parent
        alone is on and the leak may act too, for a noisy-and the probability of its absence when that parent
        alone is off.

        Raises
        ------
        InvalidArgument
            If a strength is below the leak that it includes.

        Examples
        --------
        >>> NoisyOr.compound({"burglary": 0.91}, leak=0.1)
        NoisyOr({'burglary': 0.9}, leak=0.1)
        """
        outer = cls(strengths, leak, on=on)
        for name, strength in outer.strengths.items():
            if strength < outer.leak:
                raise InvalidArgument(
                    f"the strength {strength:g} of {name!r} includes the leak and cannot be below it "
                    f"({outer.leak:g})"
                )
        free = 1.0 - outer.leak
        # a leak of one leaves nothing for the parents to decide
        own = {n: (s - outer.leak) / free if free else 0.0 for n, s in outer.strengths.items()}
        return cls(own, leak, on=on)

    @property
    def parent_names(self) -> tuple[str, ...]:
        """The parents that have a strength."""
        return tuple(self.strengths)

    def default_states(self) -> Sequence[State]:
        """Return False and True."""
        return [False, True]

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> NoisyOrConditional:
        """Return the distribution over the given variables.

        Raises
        ------
        UnknownVariable, InvalidArgument
            If the parents are not those with a strength, the child is not binary, or a parent has more than
            two states and `on` does not choose one.
        """
        self._check_parents(variable, parents)
        self._check_binary(variable)
        cure = "choose one with on={...}, or use NoisyMax for graded causes"
        on = tuple(on_code(p, self.on, self.kind, cure) for p in parents)
        strengths = np.array([self.strengths[p.name] for p in parents], dtype=np.float64)
        strengths.setflags(write=False)
        return self._conditional(variable, parents, strengths, self.leak, on)

    def __repr__(self) -> str:
        on = f", on={self.on}" if self.on else ""
        shown = {name: float(f"{s:.6g}") for name, s in self.strengths.items()}
        return f"{type(self).__name__}({shown}, leak={self.leak:g}{on})"


class NoisyAnd(NoisyOr):
    """An effect that needs every parent, where each missing one prevents it only with some probability.

    Parameters
    ----------
    strengths
        For each parent the probability that its absence alone prevents the effect (1: it is indispensable).
    leak
        The probability that the effect fails although every parent is on.
    on
        The state that counts as *on*, for parents where that is not the second of two states.

    Examples
    --------
    >>> fuel, spark = Variable("fuel", ["no", "yes"]), Variable("spark", ["no", "yes"])
    >>> start = NoisyAnd({"fuel": 1.0, "spark": 0.95}, leak=0.02)
    >>> p = start.bind(Variable("start", ["no", "yes"]), (fuel, spark))
    >>> p.row(fuel="yes", spark="no").round(3).tolist()
    [0.951, 0.049]
    """

    kind = "noisy-and"
    _conditional = NoisyAndConditional


class NoisyMax(Recipe):
    """A graded effect: the child is the largest of the effects its parents produce on their own.

    Parameters
    ----------
    effects
        For each parent a table: one row a parent state (or a mapping from parent state to row), one column a
        child state, each row the distribution of the effect of that parent alone.
    leak
        The distribution of the effect of everything that is not modelled; by default the first child state
        (for `NoisyMin` the last) is certain, which never changes the outcome.

    Raises
    ------
    InvalidTable
        When bound, if a row is no distribution over the child's states.

    Examples
    --------
    >>> flu = Variable("flu", ["none", "mild", "severe"])
    >>> cold = Variable("cold", ["no", "yes"])
    >>> fever = NoisyMax({
    ...     "flu": {"none": [1, 0, 0], "mild": [0.3, 0.5, 0.2], "severe": [0.1, 0.3, 0.6]},
    ...     "cold": [[1, 0, 0], [0.6, 0.4, 0]],
    ... })
    >>> p = fever.bind(Variable("fever", ["low", "medium", "high"]), (flu, cold))
    >>> p.row(flu="mild", cold="yes").round(3).tolist()
    [0.18, 0.62, 0.2]
    """

    kind = "noisy-max"
    _conditional: ClassVar[type[NoisyMaxConditional]] = NoisyMaxConditional

    def __init__(
        self,
        effects: Mapping[str, Any],
        leak: ArrayLike | None = None,
    ) -> None:
        check_mapping(effects, type(self).__name__, "{'flu': [[1, 0, 0], [0.2, 0.5, 0.3]]}")
        self.effects: dict[str, Any] = dict(effects)
        self.leak = leak

    @property
    def parent_names(self) -> tuple[str, ...]:
        """The parents whose effects are given."""
        return tuple(self.effects)

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> NoisyMaxConditional:
        """Return the distribution over the given variables."""
        self._check_parents(variable, parents)
        tables = [self._effects_of(parent, variable) for parent in parents]
        neutral = np.zeros(len(variable))
        neutral[-1 if self._conditional._mirrored else 0] = 1.0
        where = f"the leak of the {self.kind} of {variable.name!r}"
        leak = neutral if self.leak is None else _distributions(self.leak, (len(variable),), where)
        rows = sum(int((t != neutral).any(axis=1).sum()) for t in tables) + bool((leak != neutral).any())
        contributions = [self._log_cumulative(t) for t in tables]
        n_parameters = rows * (len(variable) - 1)
        return self._conditional(variable, parents, contributions, self._log_cumulative(leak), n_parameters)

    def _effects_of(self, parent: Variable, child: Variable) -> Array:
        effects = self.effects[parent.name]
        where = f"the effect of {parent.name!r} on {child.name!r}"
        if isinstance(effects, Mapping):
            for state in effects:
                parent.index(state)
            missing = [s for s in parent.states if s not in effects]
            if missing:
                raise InvalidTable(f"{where} has no row for {parent.name}={missing[0]!r}")
            effects = [effects[s] for s in parent.states]
        return _distributions(effects, (len(parent), len(child)), where, parent)

    def _log_cumulative(self, rows: Array) -> Array:
        if self._conditional._mirrored:
            rows = rows[..., ::-1]
        total = rows.cumsum(axis=-1)[..., :-1]
        with np.errstate(divide="ignore"):
            logs: Array = np.log(np.minimum(total, 1.0))
        return logs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.effects)}{', leaky' if self.leak is not None else ''})"


class NoisyMin(NoisyMax):
    """A graded effect: the child is the smallest of the effects its parents allow on their own.

    The mirror image of `NoisyMax`; an effect that puts all mass on the last child state changes nothing.

    Examples
    --------
    >>> pump = Variable("pump", ["broken", "worn", "good"])
    >>> flow = NoisyMin({"pump": [[1, 0, 0], [0.2, 0.7, 0.1], [0, 0, 1]]}, leak=[0, 0.1, 0.9])
    >>> p = flow.bind(Variable("flow", ["none", "weak", "full"]), (pump,))
    >>> p.row(pump="good").round(3).tolist()
    [0.0, 0.1, 0.9]
    """

    kind = "noisy-min"
    _conditional = NoisyMinConditional


def _probability(value: object, what: str) -> float:
    p = number(value, what)
    if not 0.0 <= p <= 1.0:
        raise InvalidArgument(f"{what} is {p:g}; it is a probability between 0 and 1")
    return p


def _distributions(rows: object, shape: tuple[int, ...], where: str, parent: Variable | None = None) -> Array:
    array = numbers(rows, f"{where} is a regular list of numbers", InvalidTable)
    if array.shape != shape:
        raise InvalidTable(f"{where} has shape {array.shape} but needs {shape}")
    flat = array.reshape(-1, shape[-1])
    bad = ~((flat >= 0).all(axis=1) & (np.abs(flat.sum(axis=1) - 1.0) <= ROW_TOLERANCE))
    if bad.any():
        first = int(np.argmax(bad))
        at = f" for {parent.name}={parent.states[first]!r}" if parent else ""
        raise InvalidTable(f"{where}{at} is {flat[first].tolist()}, not probabilities that sum to 1")
    return array
