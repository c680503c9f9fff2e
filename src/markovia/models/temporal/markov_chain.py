"""Markov chains that are learned from sequences and asked about them, of any order.

A chain of order k is a chain on its histories, tuples of the last k symbols; so all that is known of finite chains (classes,
periods, stationary laws, hitting times) holds for it too, and comes from `inference/theory`.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.errors import IncompleteModel, InvalidArgument, InvalidTable, UnsupportedModel
from markovia.inference.sequences.forecast import Forecast
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.inference.theory.markov_chain import FiniteChain
from markovia.learning.components.discrete import Categorical, chosen, read_symbols
from markovia.learning.components.families import probabilities
from markovia.learning.sequences.history_tables import history_table, require_room, start_table, windows
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.models.temporal.sequence_model import CountedSequenceModel, GivenSequences
from markovia.models.temporal.unrolled import markov_chain
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import Count, Tolerance, Whole, check, check_options, numbers
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks


@dataclass(init=False, eq=False, repr=False)
class MarkovChain(CountedSequenceModel, FiniteChain, InNotebooks):
    """A Markov chain on finitely many symbols, given or learned from sequences.

    Parameters
    ----------
    transition
        A square table whose rows sum to one: the row is the present state. For order k it has k + 1 axes, the oldest symbol
        first. Without one, `fit` learns it.
    states, symbols
        Names of the symbols, by either word; 0, 1, ... by default, or what is found in the data.
    start
        The law of the first symbol (of the first k, for order k); uniform by default.
    order
        How many symbols the next one depends on. The states of a chain of order 2 or more are tuples of symbols.
    smoothing
        What `fit` adds to each count.
    back_off
        How many observations the law of the next shorter history is worth, for `fit`.

    Attributes
    ----------
    table
        p(next symbol | history), one axis a symbol.
    start
        The law of the first history.
    symbols, states, transition
        The symbols; the histories (the symbols themselves for order 1), and the table of moves between them.

    Examples
    --------
    >>> chain = MarkovChain([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.1, 0.4, 0.5]])
    >>> (13 * chain.stationary()).round(6).tolist()
    [3.0, 5.0, 5.0]
    >>> rain = MarkovChain(smoothing=1).fit([["dry", "dry", "wet"], ["wet", "wet", "dry", "dry"]])
    >>> rain.symbols, rain.transition.round(3).tolist()
    (['dry', 'wet'], [[0.6, 0.4], [0.5, 0.5]])
    >>> rain.hitting_times("wet").round(6).tolist()
    [2.5, 0.0]
    >>> coin = MarkovChain([[0.9, 0.1], [0.5, 0.5]], start=[1, 0])
    >>> np.exp(coin.log_prob([[0, 1, 1], [0, None, 1]])).round(6).tolist()
    [0.05, 0.14]
    >>> MarkovChain([[0, 1], [1, 0]], start=[1, 0]).sample(4, seed=0).tolist()
    [0, 1, 0, 1]
    """

    _takes_inputs = False

    order: Count = 1
    smoothing: Tolerance = 0.0
    back_off: Tolerance = 0.0

    def __init__(
        self,
        transition: ArrayLike | None = None,
        states: Iterable[Hashable] | None = None,
        *,
        symbols: Iterable[Hashable] | None = None,
        start: ArrayLike | None = None,
        order: int = 1,
        smoothing: float = 0.0,
        back_off: float = 0.0,
    ) -> None:
        self.order, self.smoothing, self.back_off = order, smoothing, back_off
        check_options(self)
        if states is not None and symbols is not None:
            raise InvalidArgument("states= and symbols= say the same of a chain; give one of them")
        named = states if symbols is None else symbols
        self._known = None if named is None else list(named)
        if transition is not None:
            axes = np.ndim(transition)
            if axes > 2 and order == 1:
                self.order = axes - 1
            self._set(transition, self._known, start)
        elif start is not None:
            raise InvalidArgument("start= belongs to a table; give transition= too, or let fit learn both")

    def _set(self, table: Any, symbols: list[Any] | None, start: Any) -> None:
        """Take values, all or none."""
        made = FiniteChain.__new__(type(self))
        if self.order == 1:
            FiniteChain.__init__(made, table, symbols)
            new = {**made.__dict__, "symbols": list(made.states), "table": made.transition}
        else:
            new = _histories(table, symbols, self.order)
        n, k = len(new["symbols"]), self.order
        first = np.full((n,) * k, 1.0 / n**k) if start is None else np.asarray(start)
        flat = probabilities(first.reshape(-1), "start=", (n**k,))
        kept = {name: self.__dict__[name] for name in ("order", "smoothing", "back_off", "_known")}
        self.__dict__ = {**kept, **new, "start": flat}

    def __getattr__(self, name: str) -> Any:
        if name == "transition" and "table" in self.__dict__:
            self.transition = _moves(self.table)
            return self.transition
        if name in ("transition", "table", "symbols", "states", "start", "_index"):
            raise IncompleteModel("this chain has no table yet; call fit(sequences) or give transition=")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_clone__(self) -> "MarkovChain":
        """Return an unfitted chain with the same settings."""
        return MarkovChain(
            states=self._known, order=self.order, smoothing=self.smoothing, back_off=self.back_off
        )

    def __repr__(self) -> str:
        if "table" not in self.__dict__:
            return f"MarkovChain(order {self.order}, not fitted)"
        return super().__repr__()

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, sample_weight: Any = None
    ) -> Self:
        """Learn the start and the table by counting, and return the chain itself.

        Parameters
        ----------
        sequences, lengths, by
            The sequences. Steps that are missing (None or NaN) are in no count.
        sample_weight
            How much each sequence counts.

        Examples
        --------
        >>> MarkovChain(order=2).fit([[0, 0, 1, 0, 0, 1]]).table[0, 0].tolist()
        [0.0, 1.0]
        """
        data = self._read(sequences, lengths, by).rows
        symbols, codes = self._coded(data)
        self._learn(codes, data.offsets, data.weights(sample_weight), symbols)
        return self

    def _coded(self, data: Sequences) -> tuple[list[Any], Ints]:
        symbols = list(Categorical.symbols_in(data)) if self._known is None else self._known
        codes = read_symbols(data, symbols).codes
        if (codes == len(symbols)).all():
            raise InvalidArgument("all steps of the sequences are missing")
        return symbols, codes

    def _learn(self, codes: Ints, offsets: Ints, weights: Array, symbols: list[Any]) -> None:
        n = len(symbols)
        table = history_table(codes, offsets, weights, n, self.order, self.smoothing, self.back_off)
        self._set(table, symbols, start_table(codes, offsets, weights, n, self.order, self.smoothing))

    # -- questions -----------------------------------------------------------------------------------------------

    def _log_prob(self, given: GivenSequences) -> Array:
        # steps that are missing are summed out
        codes = read_symbols(given.rows, self.symbols).codes
        return self._log_probs(codes, given.rows.offsets)

    def _log_probs(self, codes: Ints, offsets: Ints) -> Array:
        n, k = len(self.symbols), self.order
        with np.errstate(divide="ignore"):
            log_table, log_start = np.log(self.table.reshape(-1)), np.log(self.start)
        found = np.zeros(len(offsets) - 1)
        places, ends = windows(codes, offsets, n, k + 1)
        np.add.at(found, np.searchsorted(offsets, ends, side="right") - 1, log_table[places])
        places, ends = windows(codes, offsets, n, k)
        sequence = np.searchsorted(offsets, ends, side="right") - 1
        first = ends - (k - 1) == offsets[sequence]
        found[sequence[first]] += log_start[places[first]]
        for i in np.flatnonzero(self._odd(codes, offsets)).tolist():
            found[i] = self._filtered(codes[offsets[i] : offsets[i + 1]])[1]
        return found

    def _odd(self, codes: Ints, offsets: Ints) -> Flags:
        """Return which sequences are shorter than a history or miss a step."""
        gaps = np.add.reduceat((codes == len(self.symbols)).astype(np.int64), offsets[:-1]) > 0
        return np.asarray(gaps | (np.diff(offsets) < self.order))

    def _filtered(self, codes: Ints) -> tuple[Array, float]:
        """Return the law of the last history given one sequence, and log p of the sequence."""
        n, k = len(self.symbols), self.order
        digits = np.array(list(product(range(n), repeat=k)))  # the symbols of each history

        def fits(part: Ints, at: Any) -> Array:
            there = part < n
            with np.errstate(divide="ignore"):
                return np.asarray(np.log((digits[:, at][:, there] == part[there]).all(axis=1) * 1.0))

        if len(codes) < k:  # the law of the first symbols, whatever came after
            weights = self.start * np.exp(fits(codes, slice(0, len(codes))))
            total = float(weights.sum())
            with np.errstate(divide="ignore"):
                return weights / total if total else weights, float(np.log(total))
        logs = np.array([fits(codes[t - k + 1 : t + 1], slice(0, k)) for t in range(k - 1, len(codes))])
        seen = HiddenChain(self.start, self.transition).filter(Observed.of(logs))
        return seen.now[-1], float(seen.log_probs[0])

    def forecast(
        self, sequences: Any, steps: int = 1, lengths: Lengths = None, *, by: str | None = None
    ) -> Forecast:
        """Return the law of each of the next symbols: its means are probabilities, one array (steps, symbols) a sequence.

        Examples
        --------
        >>> MarkovChain([[0.9, 0.1], [0.5, 0.5]]).forecast([[0, 0, 1]], steps=2)[0].round(6).tolist()
        [[0.5, 0.5], [0.7, 0.3]]
        """
        check("steps", steps, Whole(1))
        data = self._read(sequences, lengths, by).rows
        codes = read_symbols(data, self.symbols).codes
        n, k, offsets = len(self.symbols), self.order, data.offsets
        if (data.lengths < k).any():
            raise InvalidArgument(
                f"sequence {data.names[int(np.argmax(data.lengths < k))]!r} has fewer than {k} steps, the order of the chain"
            )
        now = np.zeros((len(data), n**k))
        places, ends = windows(codes, offsets, n, k)
        last = np.isin(ends, offsets[1:] - 1)
        now[np.searchsorted(offsets, ends[last], side="right") - 1, places[last]] = 1.0
        for i in np.flatnonzero(now.sum(axis=1) == 0.0).tolist():
            now[i], log_prob = self._filtered(codes[offsets[i] : offsets[i + 1]])
            if log_prob == -np.inf:
                raise InvalidArgument(
                    f"sequence {data.names[i]!r} is impossible under the chain, so nothing follows it"
                )
        paths = partial(self._paths_ahead, now, steps)
        found = []
        for _ in range(steps):
            both = (now[:, :, None] * self.table.reshape(-1, n)).reshape(len(data), n, -1, n).sum(axis=1)
            found.append(both.sum(axis=1))
            now = both.reshape(len(data), -1)
        return Forecast.of_states(np.stack(found, axis=1), self.symbols, data, paths=paths)

    def _paths_ahead(self, now: Array, steps: int, n: int, rng: np.random.Generator) -> list[Any]:
        """Draw the next symbols after each sequence, (n, steps), from the law of its last history."""
        begun = (chosen(np.repeat(law[None], n, axis=0), rng) for law in now)
        return [self._walked(history, [], steps, rng) for history in begun]

    def predict(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> list[Any]:
        """Return the most probable next symbol after each sequence."""
        return [self.symbols[int(p[0].argmax())] for p in self.forecast(sequences, 1, lengths, by=by)]

    def _draw(self, steps: int, n: int, inputs: Any, seed: Seed) -> tuple[list[Any], ...]:
        rng, k, size = generator(seed), self.order, len(self.symbols)
        history = chosen(np.repeat(self.start[None], n, axis=0), rng)
        digits = [history // size**back % size for back in range(k - 1, -1, -1)]
        return (list(self._walked(history, digits[:steps], steps - k, rng)),)

    def _walked(self, history: Ints, digits: list[Ints], steps: int, rng: np.random.Generator) -> Any:
        """Return the symbols of some codes, and of more steps that are drawn after histories."""
        k, size = self.order, len(self.symbols)
        rows = self.table.reshape(-1, size)
        for _ in range(steps):
            digits.append(chosen(rows[history], rng))
            history = history % size ** (k - 1) * size + digits[-1]
        codes = np.stack(digits, axis=1)
        if self.symbols == list(range(size)):
            return codes
        named = np.empty(size, dtype=object)
        named[:] = self.symbols
        return named[codes]

    @property
    def n_free(self) -> int:
        """The number of free parameters, those of the start included."""
        return len(self.start) - 1 + len(self.start) * (len(self.symbols) - 1)

    def _values(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return {"start": self.start, "table": self.table}, {}

    # -- the graph -----------------------------------------------------------------------------------------------

    def unroll(self, T: int) -> BayesianNetwork:  # noqa: N803
        """Return the Bayesian network of T steps, `x0`, `x1`, ..., each with as many parents as the order says.

        Examples
        --------
        >>> MarkovChain([[0.9, 0.1], [0.5, 0.5]], start=[1, 0]).unroll(3).edges
        [('x0', 'x1'), ('x1', 'x2')]
        """
        if self.order == 1:
            return markov_chain(self.start, self.transition, T, states=self.symbols)
        check("T", T, Whole(1))
        n, k = len(self.symbols), self.order
        first = self.start.reshape((n,) * k)
        network = BayesianNetwork()
        for t in range(T):
            parents = [f"x{i}" for i in range(max(t - k, 0), t)]
            if t < k:
                joint = first.sum(axis=tuple(range(t + 1, k)))
                size = joint.sum(axis=-1, keepdims=True)
                p = np.where(size > 0.0, joint / np.where(size > 0.0, size, 1.0), 1.0 / n)
            else:
                p = self.table
            network.add(f"x{t}", states=self.symbols, parents=parents, p=p)
        return network

    def network(self) -> DynamicBayesianNetwork:
        """Return the dynamic network of a chain of order 1, with the variable `x`.

        Examples
        --------
        >>> round(MarkovChain([[0.9, 0.1], [0.5, 0.5]], start=[1, 0]).network().query("x@2")[1], 6)
        0.14
        """
        if self.order > 1:
            raise UnsupportedModel(
                f"a dynamic network of one step back has order 1, the chain order {self.order}; unroll(T) makes a network "
                "of T steps"
            )
        first, later = BayesianNetwork(), BayesianNetwork()
        first.add("x", states=self.symbols, p=self.start)
        later.add("x@-1", states=self.symbols)
        later.add("x", states=self.symbols, parents=["x@-1"], p=self.transition)
        return DynamicBayesianNetwork(first, later)

    # -- inside --------------------------------------------------------------------------------------------------

    def _start(self, start: object) -> Array:
        return self.start if start is None else super()._start(start)

    def _members(self, targets: object) -> Flags:
        """Return histories that are meant; a symbol means all histories that end in it."""
        if self.order == 1:
            return super()._members(targets)
        single = not isinstance(targets, list | set | frozenset)
        named = [targets] if single else list(targets)  # type: ignore[call-overload]
        ends = [
            s for t in named for s in ([t] if t in self._index else [h for h in self.states if h[-1] == t])
        ]
        if len(ends) < len(named):
            raise InvalidArgument(f"{targets!r} names no symbol or history of the chain")
        return super()._members(ends)


def _histories(table: Any, symbols: list[Any] | None, order: int) -> dict[str, Any]:
    """Return a checked table of a higher order with the histories it is about."""
    values = numbers(table, "a transition table is an array of numbers", InvalidTable)
    if values.ndim != order + 1 or len(set(values.shape)) != 1 or not values.size:
        raise InvalidTable(
            f"the table of a chain of order {order} has {order + 1} axes of one length, not shape {values.shape}"
        )
    n = len(values)
    require_room(n, order)
    names = list(range(n)) if symbols is None else symbols
    if len(names) != n or len(set(names)) < n:
        raise InvalidArgument(f"states= names {n} different symbols, not {names!r}")
    values = probabilities(values.reshape(-1, n), "the rows of the table", (None, n)).reshape(values.shape)
    values.setflags(write=False)
    histories = list(product(names, repeat=order))
    index = {h: i for i, h in enumerate(histories)}
    return {"symbols": names, "table": values, "states": histories, "_index": index}


def _moves(table: Array) -> Array:
    """Return the table of moves between histories."""
    n, size = table.shape[-1], table.size // table.shape[-1]
    require_room(size, 1)
    found = np.zeros((size, size))
    rows = np.arange(size)
    for x in range(n):
        found[rows, rows % (size // n) * n + x] = table.reshape(size, n)[:, x]
    found.setflags(write=False)
    return found
