"""Fitting the parameters of a network with function nodes (Gaussian processes): all rows at once, by their evidence.

Rows that call one function depend on each other, so there is no sum over rows to take gradients of a part of. The log
evidence is exact where functions are summed out; otherwise Laplace's approximation (Tierney and Kadane 1986) around the
mode of all latent numbers, with derivatives through the mode by one Newton step. L-BFGS climbs. Cost of a step: n^3, and for
d latent numbers d gradients and d^3.
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Mapping
from math import log, pi
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, MarkoviaError
from markovia.factors.covariances.process import FittedProcess
from markovia.factors.functions.parameter import Parameter, constraint
from markovia.inference.densities.program.compiled_functions import as_data
from markovia.inference.densities.program.layout import lay_out
from markovia.inference.densities.program.node_densities import Nodes
from markovia.inference.densities.program.node_tracing import trace
from markovia.inference.densities.program.program import Program, program_of
from markovia.inference.problem import Problem
from markovia.learning.tables.fit_record import Fit
from markovia.optimise.minimise import minimise
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled

NEWTON_STEPS = 50
FLAT = 1e-10
"""Twice the height, in nats, that a Newton step still promises at a point that counts as the mode."""


class FunctionsLearned(NamedTuple):
    """What a fit found: parameters by name, and its record."""

    parameters: dict[str, Parameter]
    record: Fit


def has_functions(problem: Problem) -> bool:
    """Say whether a model has nodes that are functions, which its own functions tell."""
    try:
        with x64():
            layout = lay_out(problem)
            trace(layout, Nodes(layout), True)
    except MarkoviaError:  # a fit of another kind says what is wrong
        return any(isinstance(getattr(p, "form", None), FittedProcess) for p in problem.pieces)
    return any(site.role == "function" for site in layout.sites.values())


def unsaid(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return the parameters that are no number yet."""
    arrays = {n: p for n, p in parameters.items() if isinstance(p.value, np.ndarray)}
    return {n: p for n, p in arrays.items() if np.isnan(p.value).any()}


def at_the_scale_of_data(problem: Problem, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return parameters that are no number yet, started at the scale of what functions are called with and explain."""
    found: dict[str, Parameter] = {}
    program = program_of(problem, "none")
    functions = program.functions
    assert functions is not None
    for name in functions.names:
        form = getattr(program.layout.sites[name].piece, "form", None)
        mine = (
            unsaid({n: parameters[n] for n in form.hypers if n in parameters})
            if isinstance(form, FittedProcess)
            else {}
        )
        if not mine:
            continue
        assert isinstance(form, FittedProcess)
        calls = [(child, p) for (child, _), p in functions.places[name].items() if p.kind == "value"]
        if not calls:
            raise InvalidArgument(
                f"{next(iter(mine))} was not said, and {name!r} is called nowhere; give it a number"
            )
        child, place = calls[0]
        site = program.layout.sites[child]
        numbers = (
            np.ravel(program.layout.data[child])
            if site.family == "Normal" and site.role == "observed"
            else np.zeros(0)
        )
        numbers = np.asarray(numbers, float)[np.isfinite(numbers)]
        numbers = numbers if len(numbers) > 1 and np.ptp(numbers) > 0 else np.array([-1.0, 1.0])
        for n, value in form.started(mine, np.asarray(place.x), numbers).items():
            found[n] = parameters[n].with_value(value)
    return found


def fit_functions(
    problem: Problem, parameters: Mapping[str, Parameter], training: Training, steps: int
) -> FunctionsLearned:
    """Return parameters that make the evidence of the data large; those that are fixed stay."""
    program = program_of(problem, "none")
    moving = {
        n: p for n, p in parameters.items() if p.prior is None and not p.fixed and n in program.layout.data
    }
    supports = {n: constraint(p.support) for n, p in moving.items() if p.support is not None}
    with x64(), Clock(training.time_limit, training.progress, total=steps, unit="step", name="fit") as clock:
        data = {n: v for n, v in as_data(program.density).items() if n not in moving}
        start = {n: _to_free(supports.get(n), program.layout.data[n]) for n in moving}
        flat, back = jax.flatten_util.ravel_pytree(start)  # type: ignore[attr-defined]

        def values(free: Any) -> dict[str, Any]:
            return {n: _from_free(supports.get(n), v) for n, v in back(free).items()}

        def loss(free: Any, mode: Any, data: Any) -> Any:
            height, mode = _log_evidence(program, mode, {**data, **values(free)})
            return -height, mode

        mode = jnp.zeros(program.density.size)
        climb = jax.value_and_grad(loss, has_aux=True)
        said = (sorted((n, str(p.support)) for n, p in moving.items()),)
        run = compiled(program.density, "evidence", str(said), climb, flat, mode, data)

        def both(free: Array) -> tuple[float, Array]:
            nonlocal mode
            (value, found), slope = run(jnp.asarray(free), mode, data)
            if np.isfinite(np.asarray(found)).all():
                mode = found
            return float(value), np.asarray(slope)

        n_rows = max(program.layout.lengths.values(), default=1)
        best = minimise(both, np.asarray(flat), height=float(n_rows), max_iter=steps, clock=clock, bar=True)
        learned = {n: np.asarray(v) for n, v in values(jnp.asarray(best.point)).items()}
    found = {}
    for name, p in parameters.items():
        skeleton = program.layout.parameters.get(name)
        value = learned.get(name, p.value)
        found[name] = p.with_value(
            skeleton.numpy_module(value) if name in learned and skeleton is not None else value
        )
    note = (
        "exact"
        if not program.density.size
        else f"Laplace's approximation over {program.density.size} latent numbers"
    )
    record = Fit(
        "evidence", n_rows, float(n_rows), -best.value, {}, int(sum(np.size(v) for v in learned.values())),
        converged=best.converged, iterations=best.iterations, history=tuple(-v for v in best.history),
        seconds=best.seconds, details={"evidence": note, "reason": best.reason, "functions": program.note},
    )  # fmt: skip
    return FunctionsLearned(found, record)


def _log_evidence(program: Program, begin: Any, data: Any) -> tuple[Any, Any]:
    """Return the log evidence at parameters that stand among the data, and the mode of the latent numbers; traceable."""
    density = program.density

    def height(u: Any) -> Any:
        return density.log_prob(u, data)

    if not density.size:
        return height(begin), begin
    held = jax.tree.map(jax.lax.stop_gradient, data)
    u = _mode(lambda u: density.log_prob(u, held), begin)
    curvature = jax.lax.stop_gradient(-jax.hessian(lambda u: density.log_prob(u, held))(u))
    # the mode moves with the parameters as one Newton step says, and at the mode that step is none
    moved = u + jnp.linalg.solve(curvature, jax.grad(height)(u))
    L = jnp.linalg.cholesky(-jax.hessian(height)(moved))
    return height(moved) + 0.5 * density.size * log(2.0 * pi) - jnp.log(jnp.diagonal(L)).sum(), u


def _mode(height: Any, begin: Any) -> Any:
    """Return the mode of a log density by Newton's method, with steps that shrink until they lead up."""
    eye = jnp.eye(len(begin))

    def more(state: Any) -> Any:
        _, _, promise, damping, step = state
        return (promise > FLAT) & (step < NEWTON_STEPS) & (damping < 1e12)

    def again(state: Any) -> Any:
        u, value, _, damping, step = state
        slope = jax.grad(height)(u)
        factor = jnp.linalg.cholesky(-jax.hessian(height)(u) + damping * eye)
        move = jax.scipy.linalg.cho_solve((factor, True), slope)
        new = height(u + move)
        better = jnp.isfinite(new) & (new >= value - 1e-12 * jnp.abs(value)) & jnp.all(jnp.isfinite(move))
        damping = jnp.where(
            better, jnp.where(damping < 1e-3, 0.0, damping / 10.0), jnp.maximum(10.0 * damping, 1e-2)
        )
        promise = jnp.where(better, slope @ move, jnp.inf)
        return jnp.where(better, u + move, u), jnp.where(better, new, value), promise, damping, step + 1

    start = (begin, height(begin), jnp.asarray(jnp.inf), jnp.asarray(0.0), 0)
    return jax.lax.while_loop(more, again, start)[0]


def _to_free(support: Any, value: Any) -> Any:
    from numpyro.distributions.transforms import biject_to

    return jnp.asarray(value) if support is None else biject_to(support).inv(jnp.asarray(value))


def _from_free(support: Any, value: Any) -> Any:
    from numpyro.distributions.transforms import biject_to

    return value if support is None else biject_to(support)(value)
