"""Stochastic variational inference: natural gradient steps on batches of rows, for conditionally conjugate models.

Each step looks at a batch of a plate as if the whole plate were made of it: quantities on the plate (and discrete variables)
are fitted to the batch, and the natural parameters of the others move towards those that the batch says, by a rate
(t + tau)^-kappa. Reference: Hoffman, Blei, Wang and Paisley (2013). Cost of a step: a few gradients on a batch, whatever the
length of the plate; memory: one batch, so that arrays may be memory-mapped files. Use it for many rows; the approximation is
that of `cavi`.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.densities.closed_forms.closed_engine import ClosedEngine
from markovia.inference.densities.closed_forms.closed_form import independent
from markovia.inference.densities.closed_forms.closed_posterior import ClosedAnswer
from markovia.inference.densities.closed_forms.conditional_conjugacy import Conjugacy
from markovia.inference.densities.closed_forms.mean_field_updates import MeanFieldUpdates, conjugate_blocks
from markovia.inference.densities.closed_forms.plate_rows import PlateRows
from markovia.inference.densities.program.compiled_functions import as_data
from markovia.inference.engine import without_cure
from markovia.inference.problem import Problem
from markovia.inference.result import Record
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Kind, NumberRange, Positive
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled

FIRST = 9
"""Sweeps over the first batch, but for the last."""
EXPONENT = NumberRange(0.5, 1.0, open="low", said="a number above 0.5, up to 1")


@dataclass(frozen=True)
class SVIDetails:
    """How the fit went.

    Attributes
    ----------
    rows, batch_size
        The length of the plate, and of a batch.
    passes
        How often every row was seen.
    moved
        How far the means moved in the last pass, in standard deviations at most.
    """

    rows: int
    batch_size: int
    passes: float
    moved: float


@dataclass(frozen=True, kw_only=True)
class SVI(ClosedEngine):
    """Approximate by independent blocks, fitted to batches of rows with natural gradients.

    Parameters
    ----------
    plate
        The plate that batches are taken from; may be left out where there is one with observations.
    batch_size
        Rows of a batch.
    passes
        How often every row is seen.
    kappa, tau
        The rate of step t is (t + tau)^-kappa.
    starts
        Random starting points, each fitted to the first batch; the best goes on.
    local_steps
        Updates of what is on the plate, for each batch.
    seed, time_limit, progress
        For the same answer again, seconds after which what is learned so far is taken, and a progress bar.

    Examples
    --------
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> m = mk.BayesianNetwork()
    >>> m.add("rate", dist.Gamma(1, 1))
    >>> m.add("n", lambda rate: dist.Poisson(rate), plate="row")
    >>> n = np.random.default_rng(0).poisson(3.0, size=10_000)
    >>> post = m.query("rate", given={"n": n}, engine=mk.engines.SVI(batch_size=500, kappa=1.0))
    >>> bool(abs(post.mean() - (1 + n.sum()) / 10_001) < 0.01)
    True
    """

    plate: Annotated[str | None, Kind((str,), said="the name of a plate", none=True)] = None
    batch_size: Count = 256
    passes: Positive = 5.0
    kappa: Annotated[float, EXPONENT] = 0.7
    tau: Positive = 1.0
    starts: Count = 4
    local_steps: Count = 5

    name: ClassVar[str] = "svi"

    def answer(self, problem: Problem) -> ClosedAnswer:
        """Return the product of distributions of blocks that batches of rows lead to."""
        self._refuse_tables(problem)
        rows = PlateRows.of(problem, self.plate or _only_plate(problem))
        size = min(self.batch_size, rows.count)
        rng = np.random.default_rng(self.seed)
        batches = _batches(rows.count, size, rng)
        program: Any = self._program(rows.cut(next(batches)))
        found = conjugate_blocks(program, self.name, joined=False)
        local = _local(found, rows.plate)
        share = {n: rows.count / size for n, s in found.terms.sites.items() if rows.plate in s.plates}
        field = MeanFieldUpdates(found, share)
        shared = [i for i in range(len(found.blocks)) if i not in local]
        if not shared:
            raise without_cure(
                UnsupportedModel,
                f"every quantity is on plate {rows.plate!r}, so batches say nothing of each other",
            )

        def begin(keys: Any, data: Any) -> Any:
            """Return the best of several fits to the first batch."""

            def one(key: Any) -> Any:
                first = field.start(key, data)
                fitted = jax.lax.fori_loop(0, FIRST, lambda _, s: field.sweep(s, data)[0], first)
                (etas, _), bound = field.sweep(fitted, data)
                return [etas[i] for i in shared], bound

            found, bounds = jax.vmap(one)(keys)
            best = jnp.argmax(jnp.where(jnp.isnan(bounds), -jnp.inf, bounds))
            return jax.tree.map(lambda x: x[best], found)

        def step(state: Any, rate: Any, key: Any, data: Any) -> Any:
            etas, shares = field.start(key, data)
            for place, i in enumerate(shared):
                etas[i] = state[place]

            def fit(etas: Any, shares: Any) -> tuple[Any, Any]:
                _, shares = field.shares(etas, data)
                for i in local:
                    etas[i] = field.update(i, etas, shares, data)
                return etas, shares

            if local or program.hidden:
                steps = self.local_steps if local else 1
                etas, shares = jax.lax.fori_loop(0, steps, lambda _, c: fit(list(c[0]), c[1]), (etas, shares))
            for i in shared:
                there = field.update(i, etas, shares, data)
                etas[i] = jax.tree.map(lambda a, b: (1.0 - rate) * a + rate * b, etas[i], there)
            return [etas[i] for i in shared]

        steps = max(2, round(self.passes * rows.count / size))
        settings = (rows.plate, size, rows.count, self.local_steps)
        with x64(), self._clock(steps, "batch") as clock:
            key, data = self._key(), as_data(program.density)
            keys = jax.random.split(key, self.starts)
            state = compiled(
                program.density, "svi start", (*settings, self.starts), begin, keys, data, once=True
            )(keys, data)
            rate = jnp.asarray(1.0)
            advance = compiled(program.density, "svi", settings, step, state, rate, key, data)
            done, before = 0, state
            last = max(1, steps - max(1, rows.count // size))
            while done < steps and not (done and clock.over()):
                mine = jax.random.fold_in(key, done)
                rate = jnp.asarray((done + self.tau) ** -self.kappa if done else 1.0)
                state = advance(state, rate, mine, data)
                done += 1
                clock.advance()
                if done == last:
                    before = state
                data = {**data, **{n: jnp.asarray(x) for n, x in rows.take(next(batches)).items()}}
            etas = jax.tree.map(np.asarray, state)
            earlier = jax.tree.map(np.asarray, before)
        blocks = [found.blocks[i] for i in shared]
        form, old = independent(blocks, etas), independent(blocks, earlier)
        moved = max(_moved(form.marginal(n), old.marginal(n)) for n in form.names)
        record = Record(
            converged=clock.reason is None,
            iterations=done,
            error=moved,
            advice="the time was over; give a longer time_limit=" if clock.reason else "",
            details=SVIDetails(rows.count, size, done * size / rows.count, moved),
        )
        return SharedAnswer(program, form, np.nan, record, self.seed or 0)


class SharedAnswer(ClosedAnswer):
    """The distribution of the quantities that all rows share; those of single rows were fitted to batches and let go."""

    def posterior(self, names: Any, info: Any) -> Any:
        """Return the posterior of some quantities that all rows share."""
        for name in names:
            if name not in self.form.names:
                raise InvalidArgument(
                    f"engine 'svi' keeps what all rows share, {list(self.form.names)}, and not {name!r}; ask 'cavi'"
                )
        return super().posterior(names, info)


def _only_plate(problem: Problem) -> str:
    plates: set[str] = {p for f in problem.findings.values() for p in getattr(f.variable, "plates", ())}
    if not plates:
        raise without_cure(
            UnsupportedModel, "engine 'svi' takes batches of rows, and nothing is observed on a plate"
        )
    if len(plates) > 1:
        raise InvalidArgument(
            f"say which plate batches are taken from: SVI(plate=...), one of {sorted(plates)}"
        )
    return plates.pop()


def _local(found: Conjugacy, plate: str) -> list[int]:
    """Return the blocks on the plate; discrete latent variables have to be on it."""
    sites = found.terms.program.layout.sites
    for name, hidden in found.terms.program.hidden.items():
        if plate not in hidden.plates:
            raise UnsupportedModel(
                f"{name!r} is discrete and not on plate {plate!r}, so batches do not tell it; use engine='cavi'"
            )
    return [i for i, b in enumerate(found.blocks) if any(plate in sites[n].plates for n in b.shapes)]


def _batches(count: int, size: int, rng: np.random.Generator) -> Any:
    """Give batches of rows, each pass in a new order; rows of a batch are sorted, for files."""
    while True:
        order = rng.permutation(count)
        for at in range(0, count - size + 1, size):
            yield np.sort(order[at : at + size])


def _moved(now: Any, before: Any) -> float:
    gap: Array = np.abs(now.mean() - before.mean()) / now.std()
    return float(np.max(gap))
