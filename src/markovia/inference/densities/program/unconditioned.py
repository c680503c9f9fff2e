"""A problem with nothing found: what log Z of a model with potentials is the mass of.

Log Z depends on inputs and on how long plates are. Where all nodes are on one plate of rows, and no input tells its rows
apart, it is that of one row times their number.
"""

from dataclasses import replace

from markovia.errors import UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.densities.program.layout import QuantityLayout, lay_out
from markovia.inference.densities.program.row_batches import row_axes
from markovia.inference.problem import Problem


def unconditioned(problem: Problem, by_row: bool = False) -> tuple[Problem, int]:
    """Return the problem without findings, of one row where all rows are alike, and the number of rows.

    With `by_row` rows that differ, so that each has a log Z of its own, are refused.
    """
    layout = lay_out(problem)
    lengths, rows = dict(layout.lengths), 1
    plate = next((p for p in lengths if _rows_alike(layout, p)), None)
    if plate is not None:
        rows, lengths[plate] = lengths[plate], 1
    elif by_row:
        raise UnsupportedModel(
            "a model with potentials has one log Z for all rows only where all nodes are on the plate of rows and no input "
            "is; ask log_evidence of one row at a time"
        )
    inputs = {**problem.inputs, **lengths}
    return replace(problem, findings={}, inputs=inputs, impute=False, guides={}, memory=None), rows


def _rows_alike(layout: QuantityLayout, plate: str) -> bool:
    """Say whether all nodes are on a plate, independent along it, and nothing that is given tells its elements apart."""
    sites = layout.sites.values()
    observed = {s.name for s in sites if s.role == "observed"}
    return row_axes(layout, plate).keys() <= observed and all(
        s.role == "input"
        if plate not in s.plates
        else s.plates[0] == plate
        and plate not in s.sources
        and not (s.lags and s.plates[-1] == plate)
        and not (isinstance(s.piece.variable, Quantity) and plate in s.piece.variable.lengths)
        for s in sites
    )
