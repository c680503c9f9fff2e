"""A component of unknown numbers for every configuration of the states that it depends on.

The numbers of a component are integrated out for each configuration, which leaves a table over its discrete scope: the
strong root of the component. Configurations are solved many at once; large components, and those with deterministic nodes,
one after the other.
"""

from math import prod

import numpy as np

from markovia.errors import TooLarge
from markovia.factors.tables.variable import Variable
from markovia.inference.gaussian.interval_sites import interval_sites
from markovia.inference.gaussian.least_squares import LOG_2PI, solve_dense
from markovia.inference.gaussian.linear_system import Solution, System
from markovia.inference.gaussian.network_equations import Component
from markovia.inference.gaussian.solving import DENSE, solve
from markovia.runtime.array_types import Array, Ints

AT_ONCE = 1 << 21
"""Entries of the equations that are solved in one call."""


class SolvedConfigurations:
    """The moments of a component by configuration: axes of its scope first."""

    def __init__(self, component: Component, most: int) -> None:
        self.component = component
        self.scope = component.scope
        self.place = {n: k for k, n in enumerate(component.names)}
        self.shape = tuple(len(v) for v in self.scope)
        self.count = prod(self.shape)
        check_configurations(self.scope, most)
        n = len(component.names)
        self.log_mass, self.log_peak = np.empty(self.count), np.empty(self.count)
        self.means, self.variances = np.empty((self.count, n)), np.empty((self.count, n))
        self._covariances: dict[tuple[int, ...], Array] = {}
        for at in self._chunks():
            self._solve(at, None)

    def _rows(self) -> int:
        return len(self.component.system.constant) + len(self.component.rows) + len(self.component.intervals)

    def _chunks(self) -> list[Ints]:
        step = max(1, AT_ONCE // max(1, (self._rows() + 1) * (len(self.place) + 1)))
        return [np.arange(k, min(k + step, self.count)) for k in range(0, self.count, step)]

    def covariances(self, at: tuple[int, ...]) -> Array:
        """Return the covariance matrix of some of the numbers, for every configuration."""
        found = self._covariances.get(at)
        if found is None:
            if len(at) == 1:
                return self.variances[:, at, None]
            found = np.empty((self.count, len(at), len(at)))
            for chunk in self._chunks():
                found[chunk] = self._solve(chunk, at)
            self._covariances[at] = found
        return found

    def _solve(self, at: Ints, among: tuple[int, ...] | None) -> Array | None:
        """Fill in mass, means and variances of some configurations; or return covariances among some numbers."""
        component = self.component
        by_one = len(self.place) > DENSE or any(not r.variance.all() for r in component.rows)
        if by_one or not component.system.variance.all():
            wide = np.empty((len(at), len(among or ()), len(among or ())))
            for k, d in enumerate(at.tolist()):
                one = self.solution(d)
                if among is not None:
                    wide[k] = one.covariance(np.array(among))
                    continue
                self.log_mass[d], self.means[d], self.variances[d] = one.log_mass, one.mean, one.variances()
                self.log_peak[d] = one.log_peak()
            return wide
        matrix, constant, variance = self._equations(at)
        log_more = np.zeros(len(at))
        if component.intervals:
            plain = solve_dense(matrix, constant, variance)
            inside = np.array([i for i, _ in component.intervals])
            half = np.linalg.solve(plain.root.transpose(0, 2, 1), np.eye(len(self.place))[:, inside])
            sites = interval_sites(
                plain.mean[:, inside], half.transpose(0, 2, 1) @ half, [f for _, f in component.intervals]
            )
            extra = np.broadcast_to(np.eye(len(self.place))[inside], (len(at), len(inside), len(self.place)))
            matrix = np.concatenate([matrix, extra], axis=1)
            constant, variance = np.hstack([constant, sites.mean]), np.hstack([variance, sites.variance])
            log_more = plain.log_mass + sites.log_mass
        found = solve_dense(matrix, constant, variance)
        inverse = np.linalg.inv(found.root)
        if among is not None:
            part = inverse[:, among, :]
            return np.asarray(part @ part.transpose(0, 2, 1))
        self.log_mass[at] = log_more if component.intervals else found.log_mass
        self.means[at], self.variances[at] = found.mean, (inverse**2).sum(axis=2)
        size = np.abs(np.diagonal(found.root, axis1=1, axis2=2))
        self.log_peak[at] = np.log(size).sum(axis=1) - 0.5 * len(self.place) * LOG_2PI
        return None

    def _equations(self, at: Ints) -> tuple[Array, Array, Array]:
        component = self.component
        codes = dict(zip([v.name for v in self.scope], np.unravel_index(at, self.shape), strict=True))
        plain = len(component.system.constant)
        rows = plain + len(component.rows)
        matrix = np.zeros((len(at), rows, len(self.place)))
        constant, variance = np.empty((len(at), rows)), np.empty((len(at), rows))
        matrix[:, :plain] = component.system.dense()
        constant[:, :plain], variance[:, :plain] = component.system.constant, component.system.variance
        for k, row in enumerate(component.rows, plain):
            index = tuple(codes[v.name] for v in row.scope)
            matrix[:, k, row.columns] = row.coefficient[index]
            constant[:, k], variance[:, k] = row.constant[index], row.variance[index]
        return matrix, constant, variance

    def solution(self, d: int) -> Solution:
        """Return the posterior of the numbers for one configuration, counted with the last variable fastest."""
        component, system = self.component, self.component.system
        codes = dict(zip([v.name for v in self.scope], np.unravel_index(d, self.shape), strict=True))
        at = [(row, tuple(int(codes[v.name]) for v in row.scope)) for row in component.rows]
        one = system.with_rows(
            [row.columns for row, _ in at],
            [row.coefficient[i] for row, i in at],
            [row.constant[i] for row, i in at],
            [row.variance[i] for row, i in at],
        )
        return solve_with_intervals(one, component.intervals)


def solve_with_intervals(system: System, intervals: list) -> Solution:  # type: ignore[type-arg]
    """Solve a system in which some numbers are only known to lie in an interval."""
    found = solve(system)
    if not intervals:
        return found
    at = np.array([i for i, _ in intervals])
    sites = interval_sites(found.mean[None, at], found.covariance(at)[None], [f for _, f in intervals])
    answer = solve(system.with_rows(at[:, None], np.ones((len(at), 1)), sites.mean[0], sites.variance[0]))
    answer.log_mass = found.log_mass + float(sites.log_mass[0])
    return answer


def check_configurations(scope: tuple[Variable, ...], most: int) -> None:
    """Refuse a scope with too many configurations."""
    count = prod(len(v) for v in scope)
    if count > most:
        raise TooLarge(
            f"the exact answer is a mixture over {count:,} configurations of {len(scope)} discrete variables "
            f"({', '.join(repr(v.name) for v in scope[:4])}{', ...' if len(scope) > 4 else ''}), over the limit "
            f"of {most:,}; observe some of them, raise max_configurations, or use engine='nuts'",
            operations=float(count),
        )
