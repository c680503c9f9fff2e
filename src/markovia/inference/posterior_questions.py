"""What every posterior can be asked, whatever it is made of: a table, Gaussians, a closed form, draws, elements of a plate.

A class says what the distribution of one quantity is (`_distribution`), what two or more of them have in common
(`_covariance`), how probable an event is (`_probability_of`, `_probability_where`), and how to draw; everything else follows
here. The name of a quantity comes first and may be left out where there is one. Names are those that are printed: `"g"` is
all of a quantity on plates, `"g[0]"` an element.

An event is written as evidence is: a state, a list of states, `mk.Not(...)`, or `mk.Interval(low, high)` for a number, by
name; or it is a function whose arguments are named after quantities and that says whether it happened.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.quantities.soft_findings import Interval
from markovia.factors.tables.evidence import Not
from markovia.factors.tables.table_forms import argument_names
from markovia.factors.tables.variable import Variable
from markovia.inference.number_distributions import NumberDistribution
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import check_level
from markovia.runtime.ports import Savable
from markovia.runtime.seeds import Seed

if TYPE_CHECKING:
    from markovia.inference.result import Info

LEVEL = 0.9
"""The probability of an interval where none is said."""
EXPORTED_CHAINS, EXPORTED_DRAWS = 4, 1000
"""Independent draws that stand for an exact answer where others need draws."""
_ELEMENT = re.compile(r"(?s)(.+)\[(\d+(?:,\s*\d+)*)\]")


class PosteriorQuestions(Savable):
    """The questions that all posteriors answer."""

    __slots__ = ()

    if TYPE_CHECKING:
        info: Info
        names: tuple[str, ...]

    # -- what a class says of itself ----------------------------------------------------------------------------

    def _distribution(self, name: str, what: str) -> NumberDistribution:
        """Return the distribution of a quantity, or raise that it has none of `what`."""
        raise NotImplementedError

    def _covariance(self, names: Sequence[str]) -> tuple[Array, list[tuple[int, ...]]]:
        """Return the covariance matrix of all numbers of some quantities, and the shape of each quantity."""
        raise NotImplementedError

    def _probability_of(self, event: Mapping[str, Any]) -> Any:
        """Return the probability that quantities are as an event says, all of them."""
        raise NotImplementedError

    def _probability_where(self, happened: Callable[..., bool], names: Sequence[str]) -> float:
        """Return the probability that a function of some quantities is true."""
        raise NotImplementedError

    def sample(self, n: int = 1, seed: Seed = None) -> dict[str, Any]:
        """Draw n times, all quantities together: an array by name."""
        raise NotImplementedError

    # -- one quantity -------------------------------------------------------------------------------------------

    def mean(self, name: str | None = None) -> Any:
        """Return the mean of a quantity: a number, or an array of its shape."""
        return plain_number(self._distribution(self._named(name), "mean").mean())

    def var(self, name: str | None = None) -> Any:
        """Return the variance of a quantity."""
        return plain_number(self._distribution(self._named(name), "variance").variance())

    def sd(self, name: str | None = None) -> Any:
        """Return the standard deviation of a quantity."""
        return plain_number(np.sqrt(np.maximum(self.var(name), 0.0)))

    def median(self, name: str | None = None) -> Any:
        """Return the median of a quantity."""
        return self.quantile(name, 0.5)

    def quantile(self, name: str | float | Array | None = None, q: Any = None) -> Any:
        """Return a quantile of a quantity, or one for each of several shares q.

        `quantile("x", 0.1)`; where there is one quantity, `quantile(0.1)` will do.
        """
        name, q = _name_first(name, q)
        if q is None:
            raise InvalidArgument("quantile() takes a share q between 0 and 1, such as quantile(0.05)")
        found = self._distribution(self._named(name), "quantiles")
        shares = np.ravel(np.asarray(q, dtype=np.float64)).tolist()
        wrong = next((s for s in shares if not 0.0 <= s <= 1.0), None)
        answers = [] if wrong is not None else [found.quantile(s) for s in shares]
        for share, answer in zip(shares, answers, strict=False):
            if share in (0.0, 1.0) and not np.isfinite(answer).all():  # a number without an end on that side
                wrong = share
        if wrong is not None:
            raise InvalidArgument(f"a quantile is for a share between 0 and 1, not {wrong!r}")
        return np.array(answers) if np.ndim(q) else plain_number(answers[0])

    def interval(self, name: str | float | None = None, prob: Any = LEVEL) -> tuple[Any, Any]:
        """Return the central interval that holds a quantity with a probability, as much of it below as above.

        The first argument may be the probability where there is one quantity.
        """
        name, prob = _name_first(name, prob)
        level = LEVEL if prob is None else prob
        check_level("prob", level)
        return self.quantile(name, 0.5 - level / 2.0), self.quantile(name, 0.5 + level / 2.0)

    def hdi(self, name: str | float | None = None, prob: Any = LEVEL) -> tuple[Any, Any]:
        """Return the shortest interval that holds a quantity with a probability (the highest density, for one peak)."""
        name, prob = _name_first(name, prob)
        level = LEVEL if prob is None else prob
        check_level("prob", level)
        low, high = self._distribution(self._named(name), "intervals").shortest(float(level))
        return plain_number(low), plain_number(high)

    def cdf(self, name: Any = None, x: Any = None) -> Any:
        """Return the probability that a quantity is at most x: `cdf("a", 1.5)`, or `cdf(1.5)` where there is one."""
        name, x = _name_first(name, x)
        if x is None:
            raise InvalidArgument("cdf() takes a number, such as cdf(1.5)")
        return plain_number(self._distribution(self._named(name), "distribution function").cdf(x))

    # -- several quantities -------------------------------------------------------------------------------------

    def covariance(self, *names: Any) -> Any:
        """Return the covariance of two quantities, or the matrix of those in a list (of all by default).

        A quantity on plates has a row for each of its elements; of two such, the block has their shapes.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("a", states=[0, 1], p=[0.5, 0.5])
        >>> bn.add("b", states=[0, 1], parents=["a"], p=[[0.9, 0.1], [0.1, 0.9]])
        >>> p = bn.query(["a", "b"])
        >>> round(p.covariance("a", "b"), 4), round(p.correlation("a", "b"), 4)
        (0.2, 0.8)
        >>> p.correlation(["a", "b"]).round(4).tolist()
        [[1.0, 0.8], [0.8, 1.0]]
        """
        return self._pairwise(names, correlation=False)

    def correlation(self, *names: Any) -> Any:
        """Return the correlation of two quantities, or the matrix of those in a list (of all by default)."""
        return self._pairwise(names, correlation=True)

    def _pairwise(self, names: tuple[Any, ...], *, correlation: bool) -> Any:
        pair = len(names) == 2 and all(isinstance(n, str) for n in names)
        if not pair and (len(names) > 1 or (names and isinstance(names[0], str))):
            raise InvalidArgument("give two names, a list of them, or none for all quantities")
        chosen: list[str] = list(names if pair else names[0] if names else self._numbers_asked_for())
        matrix, shapes = self._covariance(chosen)
        if correlation:
            scale = np.sqrt(np.diagonal(matrix))
            with np.errstate(invalid="ignore", divide="ignore"):  # a constant goes with nothing: NaN
                matrix = matrix / np.outer(scale, scale)
        if not pair:
            return matrix
        rows = int(np.prod(shapes[0]))
        return plain_number(matrix[:rows, rows:].reshape((*shapes[0], *shapes[1])))

    def _numbers_asked_for(self) -> Sequence[str]:
        return self.names

    def probability(self, event: Any) -> Any:
        """Return the probability of an event.

        Parameters
        ----------
        event
            By name what evidence would say: a state, a list of states, `mk.Not(...)`, or `mk.Interval(low, high)` of a
            number; all of them have to hold. The name may be left out where there is one quantity. Or a function whose
            arguments are named after quantities, true where the event happened: summed over the states of a table, over
            draws otherwise. For a quantity on plates there is a probability for each element.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("die", states=[1, 2, 3, 4, 5, 6], p=[1 / 6] * 6)
        >>> p = bn.query("die")
        >>> [round(p.probability(e), 4) for e in (6, [1, 2], mk.Not(1), mk.Interval(low=3), lambda die: die % 2 == 0)]
        [0.1667, 0.3333, 0.8333, 0.6667, 0.5]
        """
        if callable(event):
            try:
                names = argument_names(event)
            except InvalidArgument:
                raise InvalidArgument(
                    f"the function of an event names its quantities by its arguments, some of {list(self.names)}"
                ) from None
            return self._probability_where(event, names)
        return plain_number(
            self._probability_of(event if isinstance(event, Mapping) else {self._named(None): event})
        )

    # -- elsewhere ----------------------------------------------------------------------------------------------

    def to_arviz(self) -> Any:
        """Return an ArviZ `InferenceData`, here of independent draws; states are positions in their order."""
        drawn = self._export_draws(EXPORTED_CHAINS * EXPORTED_DRAWS, seed=0)
        shape = (EXPORTED_CHAINS, EXPORTED_DRAWS)
        return arviz().from_dict(
            posterior={n: self._positions(n, v).reshape(*shape, *v.shape[1:]) for n, v in drawn.items()}
        )

    def _export_draws(self, n: int, seed: Seed) -> dict[str, Any]:
        """Return draws as arrays, for posteriors whose `sample` is of something else."""
        return self.sample(n, seed)

    def _positions(self, name: str, values: Any) -> Any:
        """Return drawn states as positions; numbers are what they are."""
        return values

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle or a file keeps: plain data, no functions of the model."""
        slots = [slot for kind in type(self).__mro__ for slot in getattr(kind, "__slots__", ())]
        return {**{n: getattr(self, n) for n in slots}, **getattr(self, "__dict__", {})}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def _named(self, name: str | None) -> str:
        """Return the name that was given, or the only one."""
        if name is None:
            if len(self.names) != 1:
                raise InvalidArgument(
                    f"say of which: this posterior is over {list(self.names)}; name one of them first"
                )
            return self.names[0]
        if not isinstance(name, str):
            raise InvalidArgument(f"a quantity is named by text, one of {list(self.names)}, not {name!r}")
        return name


def _name_first(name: Any, number: Any) -> tuple[str | None, Any]:
    """Return a name and a number, which may come in any order, or without the name."""
    if isinstance(name, str) or name is None:
        return name, number
    return (number if isinstance(number, str) else None), name


def element_of(name: str, known: Iterable[str]) -> tuple[str, tuple[int, ...]]:
    """Return a quantity and the place of one of its elements, from the name that is printed; no place for all of it.

    Examples
    --------
    >>> element_of("g[0,2]", ["g", "h"]), element_of("g", ["g"]), element_of("x[1]", ["x[1]"])
    (('g', (0, 2)), ('g', ()), ('x[1]', ()))
    """
    if name not in known and (found := _ELEMENT.fullmatch(name)) and found[1] in known:
        return found[1], tuple(int(i) for i in found[2].split(","))
    return name, ()


def element_name(name: str, at: Sequence[int]) -> str:
    """Return how an element of a quantity is printed."""
    return f"{name}[{','.join(map(str, at))}]" if at else name


def check_element(name: str, at: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raise where a quantity has no element at a place."""
    if at and (len(at) != len(shape) or any(i >= n for i, n in zip(at, shape, strict=True))):
        size = " x ".join(map(str, shape)) or "one number"
        raise InvalidArgument(f"there is no {element_name(name, at)!r}: {name!r} is {size}")


def state_numbers(variable: Variable, what: str) -> Array:
    """Return the states of a variable as numbers, or raise that names have none of `what`."""
    try:
        if not any(isinstance(s, str) for s in variable.states):
            return np.array([float(s) for s in variable.states])
    except (TypeError, ValueError):
        pass
    raise InvalidArgument(
        f"the states of {variable.name!r} are not numbers, so it has no {what}; ask for their probabilities"
    )


def states_meant(variable: Variable, said: Any) -> Flags:
    """Return for each state of a variable whether an event on it holds."""
    if isinstance(said, Interval):
        numbers = state_numbers(variable, "interval")
        return (said.low <= numbers) & (numbers <= said.high)
    if isinstance(said, Not):
        return ~states_meant(variable, list(said.states))
    listed = list(said) if isinstance(said, list | tuple | set | frozenset) else [said]
    meant = np.zeros(len(variable.states), dtype=bool)
    meant[[variable.index(s) for s in listed]] = True
    return meant


def numbers_meant(name: str, said: Any) -> Interval:
    """Return the interval that an event on a number of a density is about."""
    if isinstance(said, Interval):
        return said
    raise InvalidArgument(f"an event on the number {name!r} is mk.Interval(low, high), not {said!r}")


def plain_number(value: Any) -> Any:
    """Return an array of no axes as a number."""
    return value if np.ndim(value) else float(value)


def arviz() -> Any:
    """Import ArviZ without the announcement of its next version."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz as az
    return az
