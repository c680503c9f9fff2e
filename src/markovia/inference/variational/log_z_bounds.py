"""Both sides of log Z at once: mean field below, tree-reweighted belief propagation above.

Method: the lower bound is the evidence lower bound of structured mean field (which starts at naive mean field and only
improves it), the upper bound that of tree-reweighted message passing with optimised edge appearance. Both hold whenever
they are stopped, so a time limit costs tightness, never validity. On a graph without loops one exact pass gives both.
Reference: Wainwright & Jordan (2008). Use it when a model is too wide for exact inference and a number without an error bar
is not enough.
"""

from dataclasses import dataclass, field

import numpy as np

from markovia.errors import Unanswered
from markovia.factors.tables.conditional import Conditional
from markovia.inference.engine import Engine, get_engine
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.problem import Problem
from markovia.inference.result import Record
from markovia.inference.variational.mean_field import MeanField
from markovia.inference.variational.structured_mean_field import StructuredMeanField
from markovia.inference.variational.tree_reweighted import TreeReweighted
from markovia.runtime.checks import SECONDS, check
from markovia.runtime.clock import now
from markovia.runtime.shown import InNotebooks

RHO_STEPS = 30
"""Steps that improve the appearance probabilities when there is no time limit."""
CLUSTERED = 50_000
"""Factors up to which clusters are worth their time when there is no time limit."""


@dataclass(frozen=True)
class LogBounds(InNotebooks):
    """A lower and an upper bound on log Z, and an estimate between them.

    Attributes
    ----------
    lower, upper
        `lower <= log Z <= upper`, up to rounding; both minus infinity if no configuration agrees with the evidence.
    estimate
        The value of loopy belief propagation, or the bound nearest to it where it lies outside.
    exact
        Whether the bounds meet because the computation is exact.
    lower_engine, upper_engine, estimate_engine
        Who found them.
    seconds
        Wall-clock time.
    lower_record, upper_record
        How the engines found them; None for one that was not needed.

    Examples
    --------
    >>> print(LogBounds(1.0, 1.5, 1.2))
    1 <= log Z <= 1.5
    >>> LogBounds(1.0, 1.5, 1.2).gap
    0.5
    """

    lower: float
    upper: float
    estimate: float
    exact: bool = False
    lower_engine: str = ""
    upper_engine: str = ""
    estimate_engine: str = ""
    seconds: float = 0.0
    lower_record: Record | None = field(default=None, repr=False, compare=False)
    upper_record: Record | None = field(default=None, repr=False, compare=False)

    @classmethod
    def exactly(cls, log_z: float, who: str, seconds: float, record: Record | None = None) -> "LogBounds":
        """Return bounds that meet at an exact value."""
        return cls(log_z, log_z, log_z, True, who, who, who, seconds, record, record)

    @property
    def gap(self) -> float:
        """How far the bounds are apart, in nats; zero for impossible evidence."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        slack = 1e-9 * (1.0 + abs(value)) if np.isfinite(value) else 0.0  # rounding
        return self.lower - slack <= value <= self.upper + slack

    def __str__(self) -> str:
        return f"{self.lower:.8g} <= log Z <= {self.upper:.8g}"

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"gap {self.gap:.3g}, estimate {self.estimate:.8g}"
        by = " and ".join(dict.fromkeys(e for e in (self.lower_engine, self.upper_engine) if e))
        return f"LogBounds({self}; {how}{f'; {by}' if by else ''})"


def exact_bounds(log_z: float, engine: Engine, record: Record, seconds: float) -> LogBounds:
    """Return an exact mass as its own bounds; of an estimate none are known on both sides."""
    who = record.engine or engine.name
    if not (get_engine(who).exact if record.exact is None else record.exact):
        raise Unanswered(
            f"engine {who!r} estimates the log partition function without bounds on both sides; leave bounds out, or give "
            "the model linear Gaussians, conjugate distributions or tables"
        )
    return LogBounds.exactly(log_z, who, seconds, record)


def log_partition_bounds(problem: Problem, time_limit: float | None = None) -> LogBounds:
    """Bound the log of the total weight that agrees with the findings from both sides.

    Parameters
    ----------
    problem
        Variables, pieces and findings.
    time_limit
        Seconds for everything, about; by default each method runs until it has converged.

    Returns
    -------
    LogBounds
        The bounds, an estimate and their provenance.

    Raises
    ------
    InvalidArgument
        If the time limit is not a positive number.

    Examples
    --------
    >>> import markovia as mk
    >>> grid = mk.generators.ising_grid(4, 4, coupling="random", seed=1)
    >>> bounds = grid.log_partition(bounds=True)
    >>> grid.log_partition() in bounds
    True
    """
    check("time_limit", time_limit, SECONDS)
    start = now()
    graph = flat_graph(problem)
    reweighted = TreeReweighted(time_limit=None if time_limit is None else 0.45 * time_limit)
    if graph.is_forest:
        found = reweighted.minimise(graph)
        value = -np.inf if found is None else found.bound
        return LogBounds.exactly(value, reweighted.name, now() - start)
    share = None if time_limit is None else 0.45 * time_limit
    below: MeanField | StructuredMeanField = StructuredMeanField(time_limit=share)
    if graph.n_factors > CLUSTERED and time_limit is None:
        below = MeanField(restarts=2)
    said = below.marginals(problem, ())
    lower = said.log_mass
    if lower == -np.inf or said.record.exact:
        return LogBounds.exactly(lower, below.name, now() - start, said.record)
    if np.isnan(lower):
        lower = -np.inf
    steps = 10 * RHO_STEPS if time_limit is not None else RHO_STEPS
    above = TreeReweighted(time_limit=reweighted.time_limit, optimise=steps)
    told = above.marginals(problem, ())
    upper = max(min(told.log_mass, _most(problem)), lower)
    estimate, who = _estimate(problem, lower, upper, time_limit)
    return LogBounds(
        lower,
        upper,
        estimate,
        False,
        below.name,
        above.name,
        who,
        now() - start,
        said.record,
        told.record,
    )


def _most(problem: Problem) -> float:
    """Return the largest mass that conditional distributions leave to findings; infinity if there are other factors."""
    children = {p.variable.name for p in problem.pieces if isinstance(p, Conditional)}
    if len(children) < len(problem.pieces):
        return np.inf
    soft = [f.weights().max() for f in problem.findings.values() if not f.hard]
    free = [len(v) for n, v in problem.variables.items() if n not in children]
    return float(np.log([*soft, *free]).sum())


def _estimate(problem: Problem, lower: float, upper: float, time_limit: float | None) -> tuple[float, str]:
    """Return the value of loopy belief propagation, moved to the nearer bound where it lies outside."""
    from markovia.inference.message_passing.loopy_bp import LoopyBP

    limit = None if time_limit is None else 0.1 * time_limit
    value = LoopyBP(time_limit=limit, damping=0.2).log_mass(problem)
    if np.isfinite(value):
        return min(max(value, lower), upper), LoopyBP.name
    return (0.5 * (lower + upper), "midpoint") if np.isfinite(lower) else (upper, "upper bound")
