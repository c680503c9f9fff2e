"""How a posterior probability answers to every entry of every table.

Method: a posterior probability is a ratio of two masses, `P(q | e) = M(q, e) / M(e)`, each linear in every table entry.
One sweep of `mass_gradient` for each gives all slopes. For an entry t they give the derivative now and the whole
function `P(t) = (a t + b) / (c t + d)`. In a Bayesian network a row must keep summing to one, so when an entry moves,
the others of its row shrink or grow in proportion.
References: Laskey (1995), "Sensitivity analysis for probability assessments in Bayesian networks"; Castillo, Gutierrez
and Hadi (1997) for the function; Darwiche (2003) for all derivatives at once.
Cost: two sweeps, about eight eliminations, however many entries there are.
Use it to see which numbers of a model must be known well.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.evidence import Finding
from markovia.factors.tables.variable import State, Variable
from markovia.inference.exact.derivatives import MassGradient, mass_gradient
from markovia.inference.problem import Piece, Problem
from markovia.inference.result import Info
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import pd
from markovia.runtime.shown import InNotebooks, aligned, html_table


class TableParameter(NamedTuple):
    """One table entry, its value now, and the derivative of the posterior with respect to it."""

    piece: str | int
    states: Mapping[str, State]
    label: str
    value: float
    derivative: float


@dataclass(frozen=True)
class SensitivityFunction(InNotebooks):
    """A posterior probability as a function of one table entry: `P(t) = (a t + b) / (c t + d)`.

    The coefficients are relative to the probability of the evidence now, so `c t + d` is one at the present value.

    Attributes
    ----------
    a, b, c, d
        The coefficients.
    value
        The entry's present value.
    label
        Which entry it is.
    """

    a: float
    b: float
    c: float
    d: float
    value: float
    label: str

    def __call__(self, t: float) -> float:
        """Return the posterior probability if the entry were t; not a number where the evidence is impossible."""
        below = self.c * t + self.d
        return float((self.a * t + self.b) / below) if below > 0 else float("nan")

    def derivative(self, t: float) -> float:
        """Return the slope at t."""
        below = self.c * t + self.d
        return float((self.a * self.d - self.b * self.c) / below**2) if below > 0 else float("nan")

    def __str__(self) -> str:
        above, below = _line(self.a, self.b), _line(self.c, self.d)
        return f"P(t) = ({above}) / ({below}), t = {self.label}, now {self.value:.6g}"


class Parameters(Sequence[TableParameter]):
    """Some table entries, in order; it prints as a table."""

    def __init__(self, entries: Sequence[TableParameter]) -> None:
        self._entries = list(entries)

    def __getitem__(self, i: int) -> TableParameter:  # type: ignore[override]
        return self._entries[i]

    def __len__(self) -> int:
        return len(self._entries)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the columns parameter, value, derivative."""
        rows = [(e.label, e.value, e.derivative) for e in self._entries]
        return pd.DataFrame(rows, columns=["parameter", "value", "derivative"])

    def __str__(self) -> str:
        return aligned(*self._table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self._table())

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [[e.label, f"{e.value:.6g}", f"{e.derivative:.6g}"] for e in self._entries]
        return ["parameter", "value", "derivative"], rows


class Sensitivity:
    """The derivatives of one posterior probability with respect to every table entry.

    `sensitivity["xray"]` is an array shaped like the table: for a node of a Bayesian network the derivative when the
    rest of the row moves in proportion, for a factor (named by its position, from 0) the plain partial derivative.

    Attributes
    ----------
    probability
        The posterior probability itself.
    query
        What it is the probability of.
    pieces
        The nodes (or positions of factors) that the question depends on; all other derivatives are zero.
    info
        How it was computed.
    """

    def __init__(
        self,
        problem: Problem,
        query: Mapping[str, State],
        probability: float,
        slopes: Callable[[int], tuple[Array, Array]],
        relevant: Sequence[int],
        info: Info,
    ) -> None:
        self.query = dict(query)
        self.probability = probability
        self.info = info
        self._all = {_label(i, piece): i for i, piece in enumerate(problem.pieces)}
        self._tables = list(problem.pieces)
        self._slopes = slopes
        self.pieces = [_label(i, problem.pieces[i]) for i in relevant]

    def __getitem__(self, piece: str | int) -> Array:
        above, below = self._moved(self._index(piece))
        return np.asarray(above - self.probability * below)

    def raw(self, piece: str | int) -> Array:
        """Return the partial derivatives when each entry moves alone, the row no longer summing to one.

        The tables of nodes below the question and the evidence play no part, so theirs are zero.
        """
        above, below = self._slopes(self._index(piece))
        return np.asarray(above - self.probability * below)

    def function(
        self, piece: str | int, states: Mapping[str, State] | None = None, /, **more: State
    ) -> SensitivityFunction:
        """Return the posterior as a function of one entry, named by the states of its table.

        Parameters
        ----------
        piece
            A node, or the position of a factor.
        states, more
            One state for every variable of the table, as a mapping or as keywords.

        Examples
        --------
        >>> import markovia as mk
        >>> found = mk.examples.sprinkler().sensitivity("rain=yes", given={"wet": "yes"})
        >>> f = found.function("rain", cloudy="yes", rain="yes")
        >>> round(f(f.value), 6), round(f(0.5), 6)
        (0.707928, 0.613734)
        """
        i = self._index(piece)
        variables, values = _axes(self._tables[i])
        wanted = {**(states or {}), **more}
        known = {v.name for v in variables}
        for name in wanted:
            if name not in known:
                raise InvalidArgument(
                    f"the table of {piece!r} is over {[v.name for v in variables]}, not {name!r}"
                )
        missing = [v.name for v in variables if v.name not in wanted]
        if missing:
            raise InvalidArgument(f"an entry of {piece!r} needs a state for {missing[0]!r} too")
        at = tuple(v.index(wanted[v.name]) for v in variables)
        above, below = self._moved(i)
        a, c, t = float(above[at]), float(below[at]), float(values[at])
        label = _entry_label(piece, self._tables[i], variables, at)
        return SensitivityFunction(a, self.probability - a * t, c, 1.0 - c * t, t, label)

    def largest(self, n: int = 10) -> Parameters:
        """Return the n entries with the largest derivatives in size, as a table.

        Examples
        --------
        >>> import markovia as mk
        >>> print(mk.examples.sprinkler().sensitivity("rain=yes", given={"wet": "yes"}).largest(2))
        parameter      value  derivative
        P(cloudy=no)     0.5   -0.617068
        P(cloudy=yes)    0.5    0.617068
        """
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
            raise InvalidArgument(f"n is a number of entries, at least 1, not {n!r}")
        best: list[tuple[float, int, int, str | int]] = []
        for order, piece in enumerate(self.pieces):
            flat = np.abs(self[piece]).ravel()
            top = np.argpartition(-flat, n - 1)[:n] if n < flat.size else np.arange(flat.size)
            best += [(float(flat[k]), -order, -int(k), piece) for k in top]
        return Parameters([self._parameter(piece, -k) for _, _, k, piece in nlargest(n, best)])

    def to_pandas(self) -> "pd.DataFrame":
        """Return all entries that the question depends on: piece, parameter, value, derivative, raw."""
        frames = []
        for piece in self.pieces:
            table = self._tables[self._index(piece)]
            variables, values = _axes(table)
            labels = [_entry_label(piece, table, variables, at) for at in np.ndindex(*values.shape)]
            columns = {
                "piece": [piece] * len(labels),
                "parameter": labels,
                "value": values.ravel(),
                "derivative": self[piece].ravel(),
                "raw": self.raw(piece).ravel(),
            }
            frames.append(pd.DataFrame(columns))
        names = ["piece", "parameter", "value", "derivative", "raw"]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=names)

    def __iter__(self) -> Iterator[str | int]:
        return iter(self.pieces)

    def __len__(self) -> int:
        return len(self.pieces)

    def __str__(self) -> str:
        return f"{self._heading()}\n{self.largest()}"

    def __repr__(self) -> str:
        return f"{self}\n[{self.info}]"

    def _repr_html_(self) -> str:
        return html_table(*self.largest()._table(), title=self._heading(), note=str(self.info))

    def _heading(self) -> str:
        asked = ", ".join(f"{k}={v}" for k, v in self.query.items())
        return f"P({asked} | evidence) = {self.probability:.6g}"

    def _parameter(self, piece: str | int, k: int) -> TableParameter:
        table = self._tables[self._index(piece)]
        variables, values = _axes(table)
        at = tuple(int(i) for i in np.unravel_index(k, values.shape)) if variables else ()
        states = {v.name: v.states[i] for v, i in zip(variables, at, strict=True)}
        label = _entry_label(piece, table, variables, at)
        return TableParameter(piece, states, label, float(values[at]), float(self[piece][at]))

    def _index(self, piece: str | int) -> int:
        if piece not in self._all:
            raise InvalidArgument(
                f"there is no table {piece!r}; a node is named by its variable, a factor by its position from 0"
            )
        return self._all[piece]

    def _moved(self, i: int) -> tuple[Array, Array]:
        """Return the slopes of both masses, the rest of a row moving along in a Bayesian network."""
        piece = self._tables[i]
        above, below = self._slopes(i)
        if not isinstance(piece, Conditional):
            return above, below
        return _along_row(piece.values, above), _along_row(piece.values, below)


def sensitivity(
    problem: Problem,
    query: Mapping[str, State],
    *,
    info: Callable[[float, int], Info],
    max_bytes: int | None = None,
) -> Sensitivity | None:
    """Differentiate the posterior probability of the query; None if the evidence is impossible.

    Parameters
    ----------
    problem
        The model and the evidence.
    query
        One state for each of some variables.
    info
        Makes the provenance from the log mass of the evidence and the width.
    max_bytes
        The memory budget of the sweeps.
    """
    names = list(query)
    below = mass_gradient(problem, names, max_bytes=max_bytes)
    if np.isneginf(below.log_mass):
        return None
    asked = {n: problem.variables[n].index(s) for n, s in query.items()}
    narrowed, log_weight = _narrowed(problem, asked)
    above = (
        mass_gradient(narrowed, names, max_bytes=max_bytes)
        if log_weight > -np.inf
        else MassGradient(-np.inf, {}, 0)
    )
    scale = below.log_mass
    probability = min(1.0, float(np.exp(above.log_mass + log_weight - scale)))

    def slopes(i: int) -> tuple[Array, Array]:
        return (
            _whole(narrowed, i, above, log_weight - scale),
            _whole(problem, i, below, -scale),
        )

    return Sensitivity(
        problem, query, probability, slopes, sorted(below.log_slopes), info(below.log_mass, below.width)
    )


def _narrowed(problem: Problem, asked: Mapping[str, int]) -> tuple[Problem, float]:
    """Return the problem with the query as hard findings, and the log weight that soft findings gave it."""
    log_weight = 0.0
    findings = dict(problem.findings)
    for name, code in asked.items():
        known = findings.get(name)
        if known is not None:
            weight = float(known.weights()[code])
            log_weight += float(np.log(weight)) if weight > 0 else -np.inf
        variable = problem.variables[name]
        findings[name] = Finding(variable, variable.states[code], code=code)
    return problem.with_findings(findings), log_weight


def _whole(problem: Problem, i: int, gradient: MassGradient, log_factor: float) -> Array:
    """Return the slopes of one piece as a table of its full shape, zero where findings exclude an entry."""
    piece = problem.pieces[i]
    variables, values = _axes(piece)
    whole = np.zeros(values.shape)
    logs = gradient.log_slopes.get(i)
    if logs is not None:
        codes = {n: f.code for n, f in problem.findings.items() if f.code is not None}
        index = tuple(codes.get(v.name, slice(None)) for v in variables)
        with np.errstate(over="ignore", under="ignore"):
            whole[index] = np.exp(logs + log_factor)
    return whole


def _along_row(rows: Array, slopes: Array) -> Array:
    """Return the slope of each entry when the others of its row take up the change in proportion.

    Others that are all zero take it up equally; an entry that is alone in its row cannot move.
    """
    n = rows.shape[-1]
    if n == 1:
        return np.zeros(rows.shape)
    pull = np.empty(rows.shape)
    for x in range(n):
        others = [j for j in range(n) if j != x]
        weights, towards = rows[..., others], slopes[..., others]
        mass = weights.sum(axis=-1)
        equal = np.asarray(towards.mean(axis=-1))
        pull[..., x] = np.divide((weights * towards).sum(axis=-1), mass, out=equal, where=mass > 0)
    return np.asarray(slopes - pull)


def _line(slope: float, constant: float) -> str:
    return f"{slope:.6g} t {'-' if constant < 0 else '+'} {abs(constant):.6g}"


def _axes(piece: Piece) -> tuple[tuple[Variable, ...], Array]:
    if isinstance(piece, Conditional):
        return (*piece.parents, piece.variable), piece.values
    return piece.variables, piece.values


def _label(i: int, piece: Piece) -> str | int:
    return piece.variable.name if isinstance(piece, Conditional) else i


def _entry_label(name: str | int, piece: Piece, variables: Sequence[Variable], at: Sequence[int]) -> str:
    said = [f"{v.name}={v.states[i]}" for v, i in zip(variables, at, strict=True)]
    if isinstance(piece, Conditional):
        given = f" | {', '.join(said[:-1])}" if len(said) > 1 else ""
        return f"P({said[-1]}{given})"
    return f"factor {name} ({', '.join(said)})"
