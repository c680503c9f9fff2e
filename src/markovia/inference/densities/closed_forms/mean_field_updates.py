"""Mean-field updates for conditionally conjugate blocks: each block's best distribution given those of the others.

The log density is linear in the statistics of each block, so its expectation over independent blocks is exact at a few
places of each (`Block.points`), all combinations of them; what is left, as a function of one block, is of that block's
family, and its natural parameters are the update. Discrete latent variables have one joint distribution, given by
elimination on averaged tables. Nodes that stand for more rows than they have (`scales`) count that many times.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from markovia.errors import UnsupportedModel
from markovia.inference.densities.closed_forms.conditional_conjugacy import (
    Conjugacy,
    Values,
    find_blocks,
    refuse_holes,
)
from markovia.inference.densities.program.plated_elimination import LogTable
from markovia.inference.densities.program.program import Program
from markovia.inference.engine import without_cure
from markovia.runtime.libraries import jax, jnp


def conjugate_blocks(program: Program, engine: str, *, joined: bool) -> Conjugacy:
    """Return the blocks of a program; raises where a quantity has no known conditional."""
    refuse_holes(program, engine)
    found = find_blocks(program, joined=joined)
    if found.rest:
        raise without_cure(
            UnsupportedModel,
            f"engine {engine!r} needs conditionals of known families, and that of {found.rest[0]!r} is none",
        )
    return found


class MeanFieldUpdates:
    """The coordinate updates of a model; all methods are traceable.

    Parameters
    ----------
    found
        Its blocks.
    scales
        By node, how many times it counts; once by default.
    """

    def __init__(self, found: Conjugacy, scales: Mapping[str, float] | None = None) -> None:
        self.terms, self.blocks = found.terms, found.blocks
        self.scales = scales or {}
        self.touched = {
            name: tuple(i for i, b in enumerate(self.blocks) if set(b.shapes) & set(reached))
            for name, reached in self.terms.reaches.items()
        }

    def start(self, key: Any, data: Any) -> tuple[list[Any], Any]:
        """Return natural parameters of all blocks and shares of discrete variables: conditionals at a random place."""
        program, terms = self.terms.program, self.terms
        env, _ = program.environment(program.density.start(key, data), data)
        values = {n: env[n] for n in terms.latents}
        _, shares = terms.shares(terms.all_tables(values, data))
        return [self.conditional(i, values, shares, data) for i in range(len(self.blocks))], shares

    def conditional(self, i: int, values: Values, shares: Any, data: Any) -> Any:
        """Return the natural parameters of a block given values of everything else."""
        block = self.blocks[i]

        def f(own: Values) -> Any:
            total = jnp.zeros(())
            env = self.terms.environment({**values, **own}, data)
            for name in self.terms.blanket(list(block.shapes)):
                total = total + self._counted(name, self.terms.logs(name, env, data), shares)
            return total

        return block.coefficients(f, {n: values[n] for n in block.shapes})

    def update(self, i: int, etas: Sequence[Any], shares: Any, data: Any) -> Any:
        """Return the natural parameters of a block that are best given the distributions of the others."""
        block = self.blocks[i]
        means, points = self._places(etas)

        def f(own: Values) -> Any:
            total = jnp.zeros(())
            for name in self.terms.blanket(list(block.shapes)):
                over = [j for j in self.touched[name] if j != i]
                logs = self._averaged(name, over, {**means, **own}, points, data)
                total = total + self._counted(name, logs, shares)
            return total

        return block.coefficients(f, {n: means[n] for n in block.shapes})

    def shares(self, etas: Sequence[Any], data: Any) -> tuple[Any, Any]:
        """Return the best distribution of the discrete variables: its log normaliser, and shares of all table entries."""
        means, points = self._places(etas)
        tables = {
            name: self._averaged(name, self.touched[name], means, points, data) for name in self.terms.tables
        }
        return self.terms.shares(tables)

    def sweep(self, state: tuple[Sequence[Any], Any], data: Any) -> tuple[tuple[list[Any], Any], Any]:
        """Update every block, then the shares; return them, and the evidence lower bound."""
        etas, shares = list(state[0]), state[1]
        for i in range(len(etas)):
            etas[i] = self.update(i, etas, shares, data)
        log_normaliser, shares = self.shares(etas, data)
        return (etas, shares), self._bound(etas, log_normaliser, data)

    def _bound(self, etas: Sequence[Any], log_normaliser: Any, data: Any) -> Any:
        """Return the evidence lower bound, right after an update of the shares; what scaled nodes have counts as often."""
        means, points = self._places(etas)
        total = log_normaliser * max([self.scales.get(n, 1.0) for n in self.terms.tables], default=1.0)
        for block, eta in zip(self.blocks, etas, strict=True):
            total = total + self.scales.get(block.name, 1.0) * block.entropy(eta)
        for name in self.terms.sites:
            if name not in self.terms.tabled:
                logs = self._averaged(name, self.touched[name], means, points, data).logs
                total = total + self.scales.get(name, 1.0) * jnp.sum(logs)
        return total

    def _places(self, etas: Sequence[Any]) -> tuple[dict[str, Any], list[Values]]:
        means: dict[str, Any] = {}
        for block, eta in zip(self.blocks, etas, strict=True):
            means.update(block.mean(eta))
        return means, [b.points(e) for b, e in zip(self.blocks, etas, strict=True)]

    def _averaged(
        self, name: str, over: Sequence[int], values: Values, points: Sequence[Values], data: Any
    ) -> LogTable:
        """Return the log densities of a node's elements, averaged over the distributions of some blocks."""
        seen: list[LogTable] = []

        def at(left: Sequence[int], values: Values) -> Any:
            if left:
                first, rest = left[0], left[1:]
                return jnp.mean(jax.vmap(lambda own: at(rest, {**values, **own}))(points[first]), axis=0)
            seen.append(self.terms.logs(name, self.terms.environment(values, data), data))
            return seen[-1].logs

        logs = at(list(over), values)
        return LogTable(seen[-1].axes, logs, seen[-1].via)

    def _counted(self, name: str, table: LogTable, shares: Any) -> Any:
        logs = table.logs
        if name in self.terms.tabled:
            logs = jnp.where(shares[name] > 0, shares[name] * logs, 0.0)
        return self.scales.get(name, 1.0) * jnp.sum(logs)
