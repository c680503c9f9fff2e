"""Ising and Potts models on rectangular grids of any size.

Variables are called `x0_0, x0_1, ...` (row, then column), rows first. Everything is computed as whole
arrays; the only Python loop makes the factor objects, about a microsecond each, so 512 x 512 takes a
few seconds.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.errors import InvalidArgument
from markovia.factors.potentials.potentials import SPINS, exponential, finite
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import generator

Coupling = float | tuple[ArrayLike, ArrayLike] | Literal["random"]
Field = ArrayLike | Callable[[int, int], ArrayLike] | Literal["random"] | None


def ising_grid(
    rows: int,
    cols: int,
    coupling: Coupling = 1.0,
    field: Field = None,
    *,
    periodic: bool = False,
    states: Sequence[State] = (-1, 1),
    seed: int | np.random.Generator | None = None,
) -> list[Factor]:
    """Return the factors of an Ising model whose variables sit on a grid.

    Parameters
    ----------
    rows, cols
        The size of the grid.
    coupling
        One number for every edge; or two arrays, the edges to the right with shape (rows, cols - 1) and those
        down with shape (rows - 1, cols), each one longer where the grid is periodic; or "random", uniform on
        [-1, 1].
    field
        One number, an array of shape (rows, cols), a function of row and column, or "random", uniform
        on [-1, 1]. None for no field.
    periodic
        Whether the last row and column are neighbours of the first (sides of one or two are never joined
        twice).
    states
        How the two states are called; the first one counts as -1 and the second as +1.
    seed
        For the random choices.

    Examples
    --------
    >>> factors = ising_grid(2, 2, coupling=0.5, field=[[1, 0], [0, 0]])
    >>> [f.names for f in factors]
    [('x0_0',), ('x0_0', 'x0_1'), ('x1_0', 'x1_1'), ('x0_0', 'x1_0'), ('x0_1', 'x1_1')]
    """
    if len(states) != 2:
        raise InvalidArgument(f"an Ising variable has two states, not {list(states)}")
    rng = generator(seed)
    grid = _Grid(rows, cols, periodic)
    weights = _field(field, grid, (), rng)
    logs = None if weights is None else weights.reshape(-1, 1) * SPINS
    return grid.factors(states, np.outer(SPINS, SPINS), coupling, logs, rng)


def potts_grid(
    rows: int,
    cols: int,
    n_states: int | Sequence[State],
    coupling: Coupling = 1.0,
    field: Field = None,
    *,
    periodic: bool = False,
    seed: int | np.random.Generator | None = None,
) -> list[Factor]:
    """Return the factors of a Potts model whose variables sit on a grid.

    Parameters
    ----------
    rows, cols, coupling, periodic, seed
        As for `ising_grid`; an edge has the factor `exp(J [x_i = x_j])`.
    n_states
        The number of states, or the states themselves.
    field
        Log weights of the states: shape (states,) for all variables or (rows, cols, states); a function of
        row and column; or "random", uniform on [-1, 1]. None for no field.

    Examples
    --------
    >>> len(potts_grid(3, 3, 4)), len(potts_grid(3, 3, 4, periodic=True))
    (12, 18)
    """
    rng = generator(seed)
    states = Variable("x", n_states).states
    grid = _Grid(rows, cols, periodic)
    weights = _field(field, grid, (len(states),), rng)
    logs = None if weights is None else weights.reshape(-1, len(states))
    return grid.factors(states, np.eye(len(states)), coupling, logs, rng)


def grid_names(rows: int, cols: int) -> list[str]:
    """Return the names of a grid's variables, row by row.

    Examples
    --------
    >>> grid_names(2, 2)
    ['x0_0', 'x0_1', 'x1_0', 'x1_1']
    """
    return [f"x{r}_{c}" for r in range(rows) for c in range(cols)]


def grid_variables(rows: int, cols: int, factors: Sequence[Factor]) -> list[Variable]:
    """Return the variables that factors of a grid are over, row by row."""
    listed = list(chain.from_iterable(map(attrgetter("variables"), factors)))
    found = dict(zip(map(attrgetter("name"), listed), listed, strict=True))
    return list(map(found.__getitem__, grid_names(rows, cols)))


class _Grid:
    """The positions and edges of a grid: edges to the right first, then edges down, each row by row."""

    def __init__(self, rows: int, cols: int, periodic: bool) -> None:
        for side in (rows, cols):
            if isinstance(side, bool) or not isinstance(side, int | np.integer) or side < 1:
                raise InvalidArgument(f"the sides of a grid are positive integers, not {side!r}")
        self.rows, self.cols = rows, cols
        place = np.arange(rows * cols).reshape(rows, cols)
        wrap_right, wrap_down = periodic and cols > 2, periodic and rows > 2
        right = np.roll(place, -1, axis=1) if wrap_right else place[:, 1:]
        down = np.roll(place, -1, axis=0) if wrap_down else place[1:]
        self.shapes = (right.shape, down.shape)
        self.heads = (right, down)
        self.tails = (place[:, : right.shape[1]], place[: down.shape[0]])

    def factors(
        self,
        states: Sequence[State],
        interaction: Array,
        coupling: Coupling,
        unary_logs: Array | None,
        rng: np.random.Generator,
    ) -> list[Factor]:
        clean = Variable("x", states).states
        variables = [Variable.of(name, clean) for name in grid_names(self.rows, self.cols)]
        if unary_logs is None and len(variables) == 1:
            unary_logs = np.zeros((1, len(clean)))
        factors: list[Factor] = []
        if unary_logs is not None:
            used = unary_logs.any(axis=1) if len(variables) > 1 else np.array([True])
            table = exponential(unary_logs)
            table.setflags(write=False)
            if used.all():
                factors += Factor.many(zip(variables), table)
            else:
                chosen = np.flatnonzero(used).tolist()
                factors += Factor.many([(variables[i],) for i in chosen], [table[i] for i in chosen])
        weights = self._couplings(coupling, rng)
        tails = np.concatenate([t.ravel() for t in self.tails]).tolist()
        heads = np.concatenate([h.ravel() for h in self.heads]).tolist()
        different, which = np.unique(weights, return_inverse=True)
        pairs = exponential(different[:, None, None] * interaction)
        pairs.setflags(write=False)
        tables = list(pairs)
        at = variables.__getitem__
        scopes = zip(map(at, tails), map(at, heads), strict=True)
        factors += Factor.many(scopes, map(tables.__getitem__, which.ravel().tolist()))
        return factors

    def _couplings(self, coupling: Coupling, rng: np.random.Generator) -> Array:
        n_edges = sum(t.size for t in self.tails)
        if isinstance(coupling, str):
            _check_word(coupling, "coupling")
            return rng.uniform(-1.0, 1.0, size=n_edges)
        if not isinstance(coupling, tuple):
            value = finite(coupling, "coupling")
            if value.ndim:
                raise InvalidArgument("coupling is one number or a pair of arrays (right, down)")
            return np.full(n_edges, value)
        if len(coupling) != 2:
            raise InvalidArgument("coupling is one number or a pair of arrays (right, down)")
        parts = []
        for array, shape, side in zip(coupling, self.shapes, ("right", "down"), strict=True):
            weights = finite(array, f"couplings to the {side}" if side == "right" else "couplings down")
            if weights.shape != shape:
                raise InvalidArgument(f"the couplings {side} have shape {weights.shape} but need {shape}")
            parts.append(weights.ravel())
        return np.concatenate(parts)


def _field(field: Field, grid: _Grid, tail: tuple[int, ...], rng: np.random.Generator) -> Array | None:
    """Return the field at every position, shape (rows, cols, *tail), or None where there is none."""
    shape = (grid.rows, grid.cols, *tail)
    if field is None:
        return None
    if isinstance(field, str):
        _check_word(field, "field")
        return rng.uniform(-1.0, 1.0, size=shape)
    if callable(field):
        numbers: Any = [[field(r, c) for c in range(grid.cols)] for r in range(grid.rows)]
    else:
        numbers = field
    weights: NDArray[np.float64] = finite(numbers, "field")
    if weights.shape not in (tail, shape):
        raise InvalidArgument(
            f"the field has shape {weights.shape} but needs {tail or 'one number'} or {shape}"
        )
    return np.broadcast_to(weights, shape)


def _check_word(word: str, what: str) -> None:
    if word != "random":
        raise InvalidArgument(f"{what}={word!r} is not understood; the only word is 'random'")
