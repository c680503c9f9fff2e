"""Coordinate ascent variational inference for conditionally conjugate models.

The posterior is approximated by independent blocks (normal nodes that are normal together are one block, discrete variables
are another); each is updated in closed form given the others, and every update raises the evidence lower bound. References:
Winn and Bishop (2005); Blei, Kucukelbir and McAuliffe (2017). Cost of a sweep: a few gradients of the log density, for all
combinations of two places a block that a node depends on. Use it for a fast answer where blocks hardly depend on each other:
it finds means well, and understates spreads.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovia.inference.densities.closed_forms.closed_engine import ClosedEngine
from markovia.inference.densities.closed_forms.closed_form import independent
from markovia.inference.densities.closed_forms.closed_posterior import ClosedAnswer
from markovia.inference.densities.closed_forms.mean_field_updates import MeanFieldUpdates, conjugate_blocks
from markovia.inference.densities.program.compiled_functions import as_data, compiled
from markovia.inference.problem import Problem
from markovia.inference.result import Course, Record
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Positive
from markovia.runtime.double_precision import x64

SWEEPS = 10
"""Sweeps between looks at the clock."""


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
        The most sweeps, and the rise of the bound (in nats) below which it stands still.
    seed, time_limit, progress
        As in `DensityEngine`.

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
        import jax

        program: Any = self._program(problem)
        field = MeanFieldUpdates(conjugate_blocks(program, self.name, joined=True))

        def begin(keys: Any, data: Any) -> Any:
            return jax.vmap(lambda key: field.start(key, data))(keys)

        def sweeps(state: Any, data: Any) -> Any:
            return jax.vmap(
                lambda s: jax.lax.scan(lambda c, _: field.sweep(c, data), s, None, length=SWEEPS)
            )(state)

        paths: list[Array] = []
        with x64(), self._clock(self.max_iterations, "sweep") as clock:
            data = as_data(program.density)
            keys = jax.random.split(self._key(), self.starts)
            state = compiled(program.density, "cavi start", self.starts, begin, keys, data, once=True)(
                keys, data
            )
            run = compiled(program.density, "cavi", self.starts, sweeps, state, data)
            rise, done = np.inf, 0
            while rise > self.tolerance and done < self.max_iterations and not (paths and clock.over()):
                state, bounds = run(state, data)
                paths.append(np.asarray(bounds))
                done += SWEEPS
                clock.advance(SWEEPS)
                best = int(np.nan_to_num(paths[-1][:, -1], nan=-np.inf).argmax())
                rise = float(paths[-1][best, -1] - paths[-1][best, -2])
            path = np.concatenate(paths, axis=1)
            etas = jax.tree.map(lambda x: np.asarray(x[best]), state[0])
        converged = bool(rise <= self.tolerance)
        record = Record(
            converged=converged,
            iterations=done,
            error=0.0 if converged else rise,
            advice="" if converged else "give a larger max_iterations=",
            mass_bound="lower",
            details=CAVIDetails(path[best], path[:, -1]),
        )
        form = independent(field.blocks, etas)
        return ClosedAnswer(program, form, float(path[best, -1]), record, self.seed or 0)
