"""The log density of whole assignments: a value for every node, nothing summed out."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from markovia.inference.densities.program.compiled_functions import as_data
from markovia.inference.densities.program.program import Program
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled


def assignment_log_probs(program: Program, values: Mapping[str, Any]) -> Array:
    """Return the log density of each of many assignments; minus infinity for one that is impossible.

    Parameters
    ----------
    program
        The model with its inputs, nothing observed.
    values
        By name, one value an assignment; every node that is no function of others has some. The value of a deterministic
        node is compared with what its parents say.
    """
    nodes = program.nodes

    def one(mine: Any, data: Any) -> Any:
        env: dict[str, Any] = {**program.layout.fixed, **data, **mine}
        total: Any = jnp.zeros(())
        possible: Any = True
        for site in program.layout.sites.values():
            if site.role == "deterministic":
                env[site.name] = nodes.unrolled(site, env, partial(nodes.deterministic, site))
                if site.name in mine:
                    possible &= jnp.allclose(env[site.name], mine[site.name], rtol=1e-6, atol=1e-9)
            elif site.role != "input":
                logs = nodes.unrolled(site, env, partial(nodes.log_probs, site, env[site.name]))
                total = total + jnp.sum(logs)
                possible &= jnp.all(logs != -jnp.inf)
        return jnp.where(possible, total, -jnp.inf)  # children of a value outside its support may be NaN

    with x64():
        held = {k: jnp.asarray(v) for k, v in values.items()}
        data = as_data(program.density)
        every = jax.vmap(one, (0, None))
        run = compiled(program.density, "assignments", tuple(sorted(held)), every, held, data)
        return np.asarray(run(held, data))
