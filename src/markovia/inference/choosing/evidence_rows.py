"""Many rows of evidence at once: a log mass and posteriors for each.

Method: a clique tree is compiled for the batch (`markovia.inference.exact.row_programs`), and the rows run side by side in
compiled code, or on a GPU where one was asked for, or where the rest of the rows would take the processor long. Each row
passes messages over what its own missing cells leave of the tree. On the processor equal rows of a stretch are answered
once where their codes fit a number. What the kernel gives back (a table too large for its room, a product out
of range) and what it does not do (other engines, structured conditionals too wide to be written out) is asked of the
engine row by row.
Reference: Lauritzen & Spiegelhalter (1988).
Cost: for each row the clique tables over its missing variables; memory for one stretch of rows at a time.
Use it through `predict`, `predict_proba`, `marginals`, `log_evidence` and `log_prob` on data frames.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from markovia.factors.tables.evidence import Finding
from markovia.inference.choosing.auto import Auto
from markovia.inference.engine import Engine
from markovia.inference.exact.junction_tree import JunctionTree
from markovia.inference.exact.row_programs import MISSING, Ran, RowProgram, compile_rows
from markovia.inference.problem import Problem
from markovia.runtime.array_types import Array, Codes
from markovia.runtime.clock import now
from markovia.runtime.devices import Device, gpu, on_device, usable_gpu

ANSWER = "markovia.kernels.clique_trees.evidence_rows:answer_rows"
LOAD_SECONDS, COMPILE_SECONDS = 1.0, 20.0
"""What is spent on asking row by row before it is worth loading the kernel, or compiling it for this and later runs."""
PIECE_SECONDS = 6e-5
"""What a row costs for each factor of the model when an engine is asked, about."""
STRETCH_SECONDS = 0.3
"""How long a stretch of rows runs before the progress bar moves and the run can be interrupted."""
FIRST_STRETCH, LONGEST_STRETCH = 2048, 1 << 16
FIRST_ON_GPU, LONGEST_ON_GPU = 1 << 16, 1 << 18
GPU_SECONDS, GPU_START = 0.5, 3.0
"""What the processor would still take when the GPU takes over unasked, where CuPy is loaded and where it is not."""
KEPT_PROGRAMS = 8


class Answers(NamedTuple):
    """What was found for rows `first..last`: log masses, and posteriors of the targets side by side."""

    first: int
    last: int
    log_mass: Array
    posteriors: Array


def compiled_for(
    problem: Problem, engine: Engine, targets: Sequence[str], columns: Sequence[str], table: Codes
) -> RowProgram | None:
    """Return the compiled program for a batch, or None where the engine is to be asked row by row."""
    if (
        type(engine) not in (Auto, JunctionTree)
        or getattr(engine, "order", None) is not None
        or not len(table)
    ):
        return None
    if not (_device(engine) == "gpu" and gpu()) and not _kernel_loaded():
        wait = LOAD_SECONDS if _kernel_on_disk() else COMPILE_SECONDS
        if _few(table, int(wait / (PIECE_SECONDS * max(1, len(problem.pieces))))):
            return None
    always = tuple((table != MISSING).all(axis=0).tolist())
    memory = {} if problem.memory is None else problem.memory
    kept: dict[Any, RowProgram] = memory.setdefault("rows", {})
    key = (tuple(targets), tuple(columns), always, len(table) >= 1000)
    known = kept.get(key)
    pieces = problem.pieces
    if known is not None and len(known.pieces) == len(pieces) and all(map(is_, known.pieces, pieces)):
        return known
    made = compile_rows(problem, targets, columns, always, effort=1.0 if len(table) >= 1000 else 0.1)
    if made is not None:
        while len(kept) >= KEPT_PROGRAMS:
            kept.pop(next(iter(kept)))
        kept[key] = made
    return made


def answers(
    problem: Problem,
    engine: Engine,
    targets: Sequence[str],
    columns: Sequence[str],
    table: Codes,
    program: RowProgram | None,
    advance: Callable[[int], object],
    to_the_end: bool = True,
) -> Iterator[Answers]:
    """Answer rows in order, a stretch at a time.

    Parameters
    ----------
    problem
        The model, without findings.
    targets
        Variables whose posteriors are wanted; in rows that observe one it is certain.
    columns, table
        Variables with evidence, and their state codes, one row a data row; -1 is missing.
    program
        From `compiled_for`; None asks the engine for every distinct row.
    advance
        Called with the number of rows done since the last call.
    to_the_end
        Whether rows after an impossible one are of any interest.

    Yields
    ------
    Answers
        An impossible row has log mass minus infinity and posteriors that are not numbers.
    """
    if program is None:
        yield _row_by_row(problem, engine, targets, columns, table, advance, to_the_end)
        return
    device = _device(engine)
    on_gpu = device == "gpu" and usable_gpu() is not None
    first, stretch = 0, FIRST_ON_GPU if on_gpu else FIRST_STRETCH
    while first < len(table):
        start = now()
        last = min(len(table), first + stretch)
        codes, where = table[first:last], None
        ran: Ran | None = None
        if on_gpu:
            ran = on_device(partial(program.run_on_gpu, codes), lambda: None)
        if ran is None:
            device, on_gpu = "cpu" if on_gpu else device, False  # a GPU that failed is not asked again
            codes = np.ascontiguousarray(codes, dtype=np.int32)
            if program.radix is not None:
                keys = codes.astype(np.int64) @ program.radix
                _, index, where = np.unique(keys, return_index=True, return_inverse=True)
                codes = codes[index]
            ran = program.run(codes)
        log_mass, found, status = ran
        for r in np.flatnonzero(status):
            row = row_problem(problem, columns, codes[r])
            log_mass[r], found[r] = (
                (-np.inf, np.nan) if status[r] == 1 else _ask(row, engine, targets, program.width)
            )
        if where is not None:
            log_mass, found = log_mass[where], found[where]
        yield Answers(first, last, log_mass, found)
        advance(last - first)
        a_row = (now() - start) / (last - first)
        on_gpu = on_gpu or (device is None and _gpu_pays((len(table) - last) * a_row))
        longest = LONGEST_ON_GPU if on_gpu else LONGEST_STRETCH
        stretch = int(min(longest, 4 * stretch, max(64, STRETCH_SECONDS / a_row)))
        first = last


def row_problem(problem: Problem, columns: Sequence[str], row: Codes) -> Problem:
    """Return the problem with the findings of one row."""
    variables = [problem.variables[n] for n in columns]
    return problem.with_findings(
        {
            v.name: Finding(v, v.states[code], code=code)
            for v, code in zip(variables, row.tolist(), strict=True)
            if code != MISSING
        }
    )


# -- row by row --------------------------------------------------------------------------------------------------


def _row_by_row(
    problem: Problem,
    engine: Engine,
    targets: Sequence[str],
    columns: Sequence[str],
    table: Codes,
    advance: Callable[[int], object],
    to_the_end: bool,
) -> Answers:
    """Ask the engine once for every distinct row, in order."""
    distinct, index, where, times = np.unique(
        table, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    width = sum(len(problem.variables[t]) for t in targets)
    log_mass = np.empty(len(distinct))
    found = np.full((len(distinct), width), np.nan)
    for r in np.argsort(index).tolist():
        log_mass[r], found[r] = _ask(row_problem(problem, columns, distinct[r]), engine, targets, width)
        if not to_the_end and log_mass[r] == -np.inf:
            last = int(index[r]) + 1
            where = where.reshape(-1)[:last]
            return Answers(0, last, log_mass[where], found[where])
        advance(int(times[r]))
    where = where.reshape(-1)
    return Answers(0, len(table), log_mass[where], found[where])


def _ask(problem: Problem, engine: Engine, targets: Sequence[str], width: int) -> tuple[float, Array]:
    """Return the log mass and the posteriors of the targets, observed ones included."""
    free = [t for t in targets if t not in problem.findings]
    if not free:
        log_mass, tables = float(engine.log_mass(problem)), {}
    else:
        answer = engine.marginals(problem, free)
        log_mass = answer.log_mass
        tables = {} if log_mass == -np.inf else dict(zip(free, answer.tables, strict=True))
    if log_mass == -np.inf or not targets:
        return log_mass, np.full(width, np.nan)
    parts = [tables[t].values if t in tables else problem.findings[t].weights() for t in targets]
    return log_mass, np.concatenate(parts)


# -- where, and is it worth loading? -----------------------------------------------------------------------------


def _device(engine: Engine) -> Device | None:
    """Return the device that an engine was given; None lets `answers` choose."""
    return getattr(engine, "device", None)


def _gpu_pays(seconds: float) -> bool:
    """Say whether there is a GPU, and what is left would take the processor so long that it is worth its start."""
    return seconds > (GPU_SECONDS if "cupy" in sys.modules else GPU_START) and gpu() is not None


def _kernel_loaded() -> bool:
    from markovia.kernels.compiled_code import loaded

    return loaded(ANSWER)


def _kernel_on_disk() -> bool:
    """Say whether an earlier run left the compiled kernel on disk for this version of Python."""
    from markovia.kernels.compiled_code import on_disk

    return on_disk(ANSWER)


def _few(table: Codes, most: int) -> bool:
    """Say whether there are at most so many distinct rows."""
    if len(table) <= most:
        return True
    if len(np.unique(table[: 10 * most], axis=0)) > most:
        return False
    return len(table) <= 10 * most or len(np.unique(table, axis=0)) <= most
