"""Dynamic Bayesian networks: a network for the first time step and one for each step after it.

Unrolling lays the steps side by side as one ordinary Bayesian network, so every verb works on it; the verbs here unroll as
far as they need.
Reference: Friedman, Murphy and Russell (1998), "Learning the structure of dynamic probabilistic networks".
"""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from markovia.errors import InvalidArgument, InvalidGraph, InvalidTable, UnknownVariable
from markovia.factors.tables.conditional import Conditional
from markovia.inference.engine import Engine
from markovia.inference.posterior import Posterior
from markovia.learning.tables.fit_record import Fit
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime import ports
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PREVIOUS = "@-1"


def at(name: str, step: int) -> str:
    """Return the name of a variable at a time step.

    Examples
    --------
    >>> at("rain", 3)
    'rain@3'
    """
    return f"{name}@{step}"


class DynamicBayesianNetwork:
    """A process whose next step depends on the step before.

    Parameters
    ----------
    initial
        The network of step 0.
    transition
        The network of any later step; a variable of the step before is a root named `"x@-1"` (it needs no table).

    Examples
    --------
    >>> first = BayesianNetwork("rain", states={"rain": ["no", "yes"]}, tables="uniform")
    >>> later = BayesianNetwork()
    >>> later.add("rain@-1", states=["no", "yes"])
    >>> later.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.8, 0.2], [0.3, 0.7]])
    >>> process = DynamicBayesianNetwork(first, later)
    >>> network = process.unroll(3)
    >>> network.edges
    [('rain@0', 'rain@1'), ('rain@1', 'rain@2')]
    >>> round(network.query("rain@2")["yes"], 6)
    0.425
    >>> round(process.query("rain@2", given={"rain@0": "yes"})["yes"], 6)
    0.55
    """

    _fit: tuple[Fit, list[Conditional]] | None = None

    def __init__(self, initial: BayesianNetwork, transition: BayesianNetwork) -> None:
        for network in (initial, transition):
            if not isinstance(network, BayesianNetwork):
                raise InvalidArgument(
                    f"a dynamic network is made of two BayesianNetworks, not of {type(network).__name__}"
                )
        self.initial = initial.copy()
        self.transition = transition.copy()
        self.variables = [n for n in transition.variables if not n.endswith(PREVIOUS)]
        if sorted(self.variables) != sorted(initial.variables):
            raise InvalidGraph(
                f"both networks describe the same variables; the first has {initial.variables}, "
                f"the transition {self.variables}"
            )
        for name in transition.variables:
            base = name.removesuffix(PREVIOUS)
            if base not in initial:
                raise UnknownVariable(base, initial.variables, "the first step")
            if transition.states(name) != initial.states(base):
                raise InvalidTable(
                    f"{name!r} has states {transition.states(name)}, but {initial.states(base)} in step 0"
                )
            if name != base and transition.parents(name):
                raise InvalidGraph(f"{name!r} stands for the step before and has no parents here")

    def unroll(self, steps: int) -> BayesianNetwork:
        """Return the ordinary network of `steps` time steps, variables named `"x@t"`."""
        if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 1:
            raise InvalidArgument(f"unroll at least one step (a whole number), not {steps!r}")
        tables: list[Conditional] = []
        for step in range(steps):
            source = self.initial if step == 0 else self.transition
            here = [n for n in source.variables if not n.endswith(PREVIOUS)]
            tables += [self._placed(source[n], step) for n in here]
        return BayesianNetwork.from_conditionals(tables)

    @guided
    def query(
        self,
        targets: str | Sequence[str],
        given: Mapping[str, Any] | None = None,
        engine: str | Engine = "auto",
        time_limit: float | None = None,
    ) -> Posterior:
        """Return the posterior of variables at their steps, such as `"rain@3"`, given others at theirs.

        The arguments are those of `BayesianNetwork.query`; the process is unrolled to the last step that they name. What
        is asked about the past is smoothing, about the step of the last evidence filtering, about the future forecasting.

        Raises
        ------
        UnknownVariable
            For a name that is no variable with a step.
        """
        named = [targets] if isinstance(targets, str) else list(targets)
        network = self.unroll(self._last_step([*named, *(given or {})]) + 1)
        return network.query(targets, given, engine=engine, time_limit=time_limit)

    @guided
    def sample(
        self,
        n: int = 1,
        *,
        steps: int,
        given: Mapping[str, Any] | None = None,
        seed: Any = None,
        engine: str | Engine = "auto",
    ) -> "pd.DataFrame":
        """Draw n sequences of `steps` steps, one a row with a column for each variable and step.

        The other arguments are those of `BayesianNetwork.sample`.

        Examples
        --------
        >>> first = BayesianNetwork("rain", states={"rain": ["no", "yes"]}, tables="uniform")
        >>> later = BayesianNetwork("rain@-1->rain", states={"rain@-1": ["no", "yes"], "rain": ["no", "yes"]})
        >>> later.replace("rain", p=[[0.8, 0.2], [0.3, 0.7]])
        >>> list(DynamicBayesianNetwork(first, later).sample(2, steps=3, seed=0))
        ['rain@0', 'rain@1', 'rain@2']
        """
        if (last := self._last_step(given or {})) >= steps:
            raise InvalidArgument(
                f"there is evidence at step {last}, but only {steps} steps; say steps={last + 1}"
            )
        return self.unroll(steps).sample(n, given=given, seed=seed, engine=engine)

    def plot(self, steps: int = 2, **options: Any) -> "Axes":
        """Draw the process unrolled over some steps; the options are those of `BayesianNetwork.plot`."""
        return self.unroll(steps).plot(**options)

    def save(self, path: str | PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Write the process to a `.json` file, which `mk.load` reads; to other formats only `unroll(steps)` goes."""
        ports.call("save", self, path, format=format)

    @property
    def fit_(self) -> Fit | None:
        """What the last fit did; None before the first, and after an edit of either network."""
        if self._fit is None or any(a is not b for a, b in zip(self._fit[1], self._tables(), strict=False)):
            return None
        return self._fit[0]

    @guided
    def fit(
        self,
        sequences: Any,
        *,
        prior: Any = None,
        tied: str | Iterable[str] = (),
    ) -> Self:
        """Learn both networks from complete sequences of any length, and return the process itself.

        The first step of every sequence counts for the first network, every other step, with the one before it, for the
        transition: its table is shared by all steps.

        Parameters
        ----------
        sequences
            A list with a DataFrame or a mapping of columns for each sequence, one row a step; or just one of them.
        prior
            As in `BayesianNetwork.fit`.
        tied
            Variables whose table is the same in the first step and later, such as the readings of a sensor.

        Examples
        --------
        >>> first = BayesianNetwork("rain", states={"rain": ["no", "yes"]})
        >>> later = BayesianNetwork("rain@-1->rain", states={"rain@-1": ["no", "yes"], "rain": ["no", "yes"]})
        >>> process = DynamicBayesianNetwork(first, later)
        >>> weeks = [{"rain": ["no", "no", "yes", "yes"]}, {"rain": ["yes", "no", "no"]}]
        >>> process.fit(weeks).transition["rain"].values.round(3).tolist()
        [[0.667, 0.333], [0.5, 0.5]]
        """
        from markovia.models.temporal.sequence_fitting import fit_sequences

        record = fit_sequences(self.initial, self.transition, sequences, prior, tied)
        self._fit = record, self._tables()
        return self

    def __repr__(self) -> str:
        return f"DynamicBayesianNetwork({len(self.variables)} variables a step)"

    def _tables(self) -> list[Conditional]:
        return [net[n] for net in (self.initial, self.transition) for n in net.variables if net.has_table(n)]

    def _last_step(self, names: Iterable[str]) -> int:
        """Return the last step that names such as `"rain@3"` speak of, -1 for no names."""
        last = -1
        for name in names:
            base, _, step = str(name).rpartition("@")
            if name in self.variables:
                raise InvalidArgument(f"say at which step: {at(name, 0)!r} is {name!r} in the first one")
            if base not in self.variables or not step.isdecimal():
                raise UnknownVariable(name, [at(n, 0) for n in self.variables], "the process")
            last = max(last, int(step))
        return last

    def _placed(self, table: Conditional, step: int) -> Conditional:
        def place(name: str) -> str:
            return at(name.removesuffix(PREVIOUS), step - 1) if name.endswith(PREVIOUS) else at(name, step)

        parents = tuple(p.renamed(place(p.name)) for p in table.parents)
        return table.rebound(table.variable.renamed(place(table.variable.name)), parents)
