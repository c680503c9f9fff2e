"""Coordinate ascent variational inference for conditionally conjugate models.

The posterior is approximated by independent blocks (normal nodes that are normal together are one block, discrete variables
are another); each is updated in closed form given the others, and every update raises the evidence lower bound. References:
Winn and Bishop (2005); Blei, Kucukelbir and McAuliffe (2017). Cost of a sweep: a few gradients of the log density, for all
combinations of two places a block that a node depends on. Use it for a fast answer where blocks hardly depend on each other:
it finds means well, and understates spreads.
"""

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from markovia.inference.densities.closed_forms.closed_engine import ClosedEngine
from markovia.inference.densities.closed_forms.closed_form import independent
from markovia.inference.densities.closed_forms.closed_posterior import ClosedAnswer
from markovia.inference.densities.closed_forms.mean_field_updates import MeanFieldUpdates, conjugate_blocks
from markovia.inference.densities.program.compiled_functions import as_data
from markovia.inference.problem import Problem
from markovia.inference.result import Course, Record
from markovia.optimise.ascent import climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Positive
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax
from markovia.runtime.machine_code import compiled

SWEEPS = 10
"""Sweeps of a step of the ascent, between looks at the clock."""


@dataclass(frozen=True)
class CAVIDetails:
    """How the fit went.

    Attributes
    ----------
    bounds
        The evidence lower bound after each sweep, from the start that was best.
    starts
        The last bound of every start.
    """

    bounds: Array
    starts: Array

    @property
    def course(self) -> Course:
        """How the bound rose."""
        bounds = tuple(float(b) for b in self.bounds)
        return Course(tuple(range(1, len(bounds) + 1)), bounds, "evidence lower bound", "sweep")


@dataclass(frozen=True, kw_only=True)
class CAVI(ClosedEngine):
    """Approximate by independent blocks, each updated in closed form until the bound stands still.

    Parameters
    ----------
    starts
        Random starting points; the highest bound wins.
    max_iterations, tolerance
        The most sweeps, and the rise of the bound in ten of them, in nats a number observed, below which it stands still.
    seed, time_limit, progress
        For the same answer again, seconds after which the bound so far is taken, and a progress bar.

    Examples
    --------
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> m = mk.BayesianNetwork()
    >>> m.add("mu", dist.Normal(0, 10))
    >>> m.add("tau", dist.Gamma(1, 1))
    >>> m.add("y", lambda mu, tau: dist.Normal(mu, tau**-0.5), plate="row")
    >>> post = m.query(["mu", "tau"], given={"y": [1.0, 2.0, 3.0, 2.0]}, engine="cavi")
    >>> round(post.mean("mu"), 3), post.info.mass_bound
    (1.996, 'lower')
    """

    starts: Count = 4
    max_iterations: Count = 1000
    tolerance: Positive = 1e-8

    name: ClassVar[str] = "cavi"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "best", "sample"})

    def answer(self, problem: Problem) -> ClosedAnswer:
        """Return the best product of distributions of blocks."""
        program: Any = self._program(problem)
        field = MeanFieldUpdates(conjugate_blocks(program, self.name, joined=True))

        def begin(keys: Any, data: Any) -> Any:
            return jax.vmap(lambda key: field.start(key, data))(keys)

        def sweeps(state: Any, data: Any) -> Any:
            return jax.vmap(
                lambda s: jax.lax.scan(lambda c, _: field.sweep(c, data), s, None, length=SWEEPS)
            )(state)

        with x64():
            data = as_data(program.density)
            keys = jax.random.split(self._key(), self.starts)
            state = compiled(program.density, "cavi start", self.starts, begin, keys, data, once=True)(
                keys, data
            )
            run = compiled(program.density, "cavi", self.starts, sweeps, state, data)

            def step(now: tuple[Any, list[Array]]) -> tuple[tuple[Any, list[Array]], float]:
                after, bounds = run(now[0], data)
                return (after, [*now[1], np.asarray(bounds)]), float(_possible(bounds).max())

            start: tuple[Any, list[Array]] = state, []
            found = climb(
                step, start, max_iter=-(-self.max_iterations // SWEEPS), tol=self.tolerance,
                size=max(1, sum(prod(s.shape) for s in program.layout.sites.values() if s.role == "observed")),
                time_limit=self.time_limit, progress=self.progress, name=self.name, unit=f"{SWEEPS} sweeps",
            )  # fmt: skip
            path = np.concatenate(found.state[1], axis=1)
            best = int(_possible(path).argmax())
            etas = jax.tree.map(lambda x: np.asarray(x[best]), found.state[0][0])
        record = Record(
            converged=found.converged,
            iterations=path.shape[1],
            error=0.0 if found.converged else float(path[best, -1] - path[best, -2]),
            advice="" if found.converged else "give a larger max_iterations=",
            mass_bound="lower",
            details=CAVIDetails(path[best], path[:, -1]),
        )
        form = independent(field.blocks, etas)
        return ClosedAnswer(program, form, float(path[best, -1]), record, self.seed or 0)


def _possible(bounds: Any) -> Array:
    """Return the last bound of each start; minus infinity of one that went astray."""
    return np.asarray(np.nan_to_num(np.asarray(bounds)[:, -1], nan=-np.inf))
