"""How a posterior mean answers to every parameter of a linear-Gaussian network, in closed form.

With equations `A x = c + e`, precision K and s = K^-1 e_t, the mean of number t moves by `s.a_i / v_i` for a unit of c_i, by
`(s.a_i) r_i / v_i^2` for a unit of the variance (r = A m - c), and by `-(s_j r_i + (s.a_i) m_j) / v_i` for a unit of a_ij.
Two solves with the factor give all derivatives, however many parameters there are.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import GaussianConditional, LinearGaussian
from markovia.inference.gaussian.network_equations import equations_of, flat_network
from markovia.inference.gaussian.solving import solve
from markovia.inference.problem import Problem
from markovia.inference.result import Info
from markovia.runtime.shown import aligned, html_table

if TYPE_CHECKING:
    import pandas as pd


class MeanSensitivity(Mapping[str, LinearGaussian]):
    """The derivatives of a posterior mean by the parameters of every node that it depends on; prints the largest.

    `found["y"].weights["x"]` is the derivative by the weight of x in y's regression; `.bias` and `.variance` likewise.

    Attributes
    ----------
    target, mean
        The number whose posterior mean is meant, and that mean.
    info
        How it was computed.
    """

    def __init__(
        self, target: str, mean: float, rows: list[tuple[str, str, float, float]], info: Info
    ) -> None:
        self.target, self.mean, self.info = target, mean, info
        self._rows = sorted(rows, key=lambda row: -abs(row[3]))
        parts: dict[str, dict[str, float]] = {}
        for node, parameter, _, derivative in rows:
            parts.setdefault(node, {})[parameter] = derivative
        self._nodes = parts

    def __getitem__(self, name: str) -> Any:
        own = self._nodes[name]
        made = object.__new__(LinearGaussian)  # derivatives may be negative, also those by a variance
        made.bias, made.variance = own["bias"], own["variance"]
        made.weights = {k: v for k, v in own.items() if k not in ("bias", "variance")}
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def largest(self, n: int = 10) -> "pd.DataFrame":
        """Return the n parameters with the largest derivatives."""
        import pandas as pd

        return pd.DataFrame(self._rows[:n], columns=["node", "parameter", "value", "derivative"])

    def __str__(self) -> str:
        rows = [[a, b, f"{v:.6g}", f"{d:.6g}"] for a, b, v, d in self._rows[:10]]
        return aligned(["node", "parameter", "value", "derivative"], rows, left=2)

    def __repr__(self) -> str:
        return f"{self}\n[mean of {self.target} = {self.mean:.6g}; {self.info}]"

    def _repr_html_(self) -> str:
        return html_table(["node", "parameter", "value", "derivative"], self._rows[:50], note=str(self.info))


def mean_sensitivity(problem: Problem, target: str, info: Info) -> MeanSensitivity:
    """Return the derivatives of a number's posterior mean by all biases, weights and variances."""
    flat = flat_network(problem)
    if flat.fields:
        raise UnsupportedModel(
            "sensitivity is about the regressions of a directed network; use to_bayesian_network()"
        )
    e = equations_of(problem, [target])
    if target in problem.findings:
        raise UnsupportedModel(f"{target!r} is observed, so its mean depends on no number of the model")
    if e.components or e.intervals:
        raise UnsupportedModel(
            f"the mean of {target!r} is one of a mixture here; observe the states that it depends on, and no intervals"
        )
    if target not in e.names:
        raise UnsupportedModel(
            f"sensitivity is by the regressions of linear Gaussians, and the posterior of {target!r} comes in another "
            "closed form; make the number a constant and query(...) again with another value of it in given="
        )
    if not e.system.variance.all():
        raise UnsupportedModel(
            "sensitivity needs noise in every node; some that matter here are deterministic"
        )
    place = {n: k for k, n in enumerate(e.names)}
    solution = solve(e.system)
    values = {n: float(f.value) for n, f in problem.findings.items() if f.value is not None}
    codes = {n: f.code for n, f in problem.findings.items() if f.code is not None}
    mean = {**values, **{n: float(solution.mean[k]) for n, k in place.items()}}
    pull = _column(solution, place[target])
    rows: list[tuple[str, str, float, float]] = []
    for name, piece in flat.by_child.items():
        parents = [q.name for q in piece.continuous]
        if name not in mean or any(q not in mean for q in parents):
            continue
        r = _regression(piece, codes)
        gap = mean[name] - r.bias - sum(w * mean[q] for q, w in r.weights.items())
        s = {n: pull[place[n]] if n in place else 0.0 for n in (name, *parents)}
        along = s[name] - sum(w * s[q] for q, w in r.weights.items())
        rows.append((name, "bias", r.bias, along / r.variance))
        rows.append((name, "variance", r.variance, along * gap / r.variance**2))
        rows.extend((name, q, r.weights[q], (s[q] * gap + along * mean[q]) / r.variance) for q in parents)
    return MeanSensitivity(target, mean[target], rows, info)


def _column(solution: Any, t: int) -> Any:
    """Return the covariances of all numbers with one of them."""
    n = len(solution.mean)
    root = getattr(solution, "root", None)
    if root is not None:
        return np.linalg.solve(root, np.linalg.solve(root.T, np.eye(n)[t]))
    return solution.solve(np.eye(1, n, t))[0]


def _regression(piece: GaussianConditional, codes: Mapping[str, int]) -> LinearGaussian:
    return piece.regression(tuple(codes[v.name] for v in piece.discrete))
