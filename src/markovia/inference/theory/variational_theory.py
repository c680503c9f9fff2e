"""The variational picture of inference, in small: mean parameters, free energies, entropies, consistency.

For an unnormalised model with weights w(x), sum Z, and any distribution q,

    log Z = E_q[log w] + H(q) + KL(q || p)   so   log Z = max over q of E_q[log w] + H(q),

the Gibbs variational principle; the bracket is the evidence lower bound, and minus it the Gibbs free energy. Seen through
marginals mu of the factors (mean parameters), inference maximises a linear function of mu plus an entropy over the marginal
polytope. Approximations change the set or the entropy: mean field takes the products (inside, a lower bound), the Bethe free
energy takes tables that only agree on overlaps (outside) and an entropy that is right on trees. Reference: Wainwright &
Jordan (2008). These functions work on explicit tables; they are for small models, for teaching and for checking.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.potentials.log_linear import LogLinear
from markovia.factors.tables.evidence import read_evidence
from markovia.factors.tables.factor import Factor, product
from markovia.factors.tables.variable import Variable
from markovia.inference.choosing.auto import Auto
from markovia.inference.posterior import Posterior
from markovia.inference.problem import Problem
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks

Tables: TypeAlias = "Factor | Posterior | Iterable[Factor | Posterior] | Mapping[Any, Factor | Posterior]"
Scope = tuple[str, ...]


def mean_parameters(model: Any, given: Mapping[str, Any] | None = None) -> dict[Scope, Factor]:
    """Return the exact marginal of every variable and of the scope of every factor.

    Parameters
    ----------
    model
        A model, or a `LogLinear`.
    given
        Evidence as in `query`; observed variables drop out of the scopes.

    Returns
    -------
    dict
        From the names of a scope to its marginal, single variables first.

    Examples
    --------
    >>> import markovia as mk
    >>> mu = mean_parameters(mk.MarkovNetwork.ising({("a", "b"): 0.5}))
    >>> list(mu)
    [('a',), ('b',), ('a', 'b')]
    >>> mu["a", "b"].values.round(4).tolist()
    [[0.3655, 0.1345], [0.1345, 0.3655]]
    """
    problem = as_problem(model, given)
    scopes: dict[Scope, None] = {(n,): None for n in problem.free}
    seen: set[frozenset[str]] = {frozenset(s) for s in scopes}
    for factor in problem.reduced(None):
        if factor.names and frozenset(factor.names) not in seen:
            seen.add(frozenset(factor.names))
            scopes[factor.names] = None
    return {scope: Auto().joint(problem, list(scope)).tables[0] for scope in scopes}


@dataclass(frozen=True)
class Consistency(InNotebooks):
    """Whether tables are distributions that agree where they overlap; true in a condition if so.

    Attributes
    ----------
    failures
        One sentence for each table or overlap that fails.
    worst
        The largest difference found.
    """

    failures: tuple[str, ...]
    worst: float

    def __bool__(self) -> bool:
        return not self.failures

    def __str__(self) -> str:
        return "locally consistent" if self else "not locally consistent: " + "; ".join(self.failures)


def locally_consistent(pseudo: Tables, tolerance: float = 1e-8) -> Consistency:
    """Check that pseudo-marginals are normalised and agree on the variables they share.

    Parameters
    ----------
    pseudo
        Tables over some variables each: factors or posteriors, in a list or a mapping.
    tolerance
        Largest difference of a probability that passes.

    Returns
    -------
    Consistency
        True in a condition, and says where it fails.

    Examples
    --------
    >>> a = Factor(["a"], [0.5, 0.5])
    >>> ab = Factor(["a", "b"], [[0.3, 0.3], [0.2, 0.2]])
    >>> print(locally_consistent([a, ab]))
    not locally consistent: ['a'] and ['a', 'b'] differ by 0.1 on ['a']
    """
    tables = as_tables(pseudo)
    failures, worst = [], 0.0
    for table in tables:
        off = abs(float(table.values.sum()) - 1.0)
        worst = max(worst, off)
        if off > tolerance:
            failures.append(f"{list(table.names)} sums to {float(table.values.sum()):.6g}, not 1")
    for one, two in combinations(tables, 2):
        shared = [n for n in one.names if n in two.names]
        if not shared:
            continue
        off = float(np.abs(one.marginal(shared).values - two.marginal(shared).values).max())
        worst = max(worst, off)
        if off > tolerance:
            failures.append(f"{list(one.names)} and {list(two.names)} differ by {off:.3g} on {shared}")
    return Consistency(tuple(failures), worst)


def factorised(pseudo: Tables, tolerance: float = 1e-8) -> bool:
    """Say whether every table is the product of its own single marginals: the set of naive mean field.

    Examples
    --------
    >>> factorised([Factor(["a", "b"], [[0.25, 0.25], [0.25, 0.25]])])
    True
    >>> factorised([Factor(["a", "b"], [[0.5, 0.0], [0.0, 0.5]])])
    False
    """
    for table in as_tables(pseudo):
        if not table.names:
            continue
        apart = product([table.marginal(n) for n in table.names]).transpose(table.names).values
        if float(np.abs(apart - table.values).max()) > tolerance:
            return False
    return True


# -- the Gibbs variational principle ------------------------------------------------------------------------------


def gibbs_free_energy(model: Any, q: Tables, given: Mapping[str, Any] | None = None) -> float:
    """Return the energy minus the entropy of a distribution; its minimum over all q is -log Z, at the model itself.

    Parameters
    ----------
    model
        A model, or a `LogLinear`.
    q
        A joint table over all (unobserved) variables, or tables with disjoint scopes whose product is the distribution.
    given
        Evidence as in `query`.

    Returns
    -------
    float
        Infinite if q gives mass to something impossible.

    Raises
    ------
    InvalidArgument
        If the tables overlap or leave out a variable.

    Examples
    --------
    >>> import markovia as mk
    >>> mn = mk.MarkovNetwork.ising({("a", "b"): 0.5})
    >>> bool(np.isclose(-gibbs_free_energy(mn, mn.joint()), mn.log_partition()))
    True
    """
    problem = as_problem(model, given)
    groups = _distribution(problem, q)
    return _energy(problem, groups) - sum(_entropy(g.values) for g in groups)


def elbo(model: Any, q: Tables, given: Mapping[str, Any] | None = None) -> float:
    """Return E_q[log weight] + H(q), which is at most log Z: minus the Gibbs free energy.

    Examples
    --------
    >>> import markovia as mk
    >>> mn = mk.MarkovNetwork.ising({("a", "b"): 0.5})
    >>> half = [mk.Factor([mn.variable(n)], [0.5, 0.5]) for n in mn.variables]
    >>> round(elbo(mn, half), 6), round(mn.log_partition(), 6)
    (1.386294, 1.506409)
    """
    return -gibbs_free_energy(model, q, given)


def kl(q: Tables, model: Any, given: Mapping[str, Any] | None = None) -> float:
    """Return the Kullback-Leibler divergence KL(q || p) from the model's posterior p: log Z less the lower bound.

    Examples
    --------
    >>> import markovia as mk
    >>> mn = mk.MarkovNetwork.ising({("a", "b"): 0.5})
    >>> round(kl(mn.joint(), mn), 9)
    0.0
    """
    problem = as_problem(model, given)
    return max(0.0, Auto().log_mass(problem) - elbo(model, q, given))


def bethe_entropy(pseudo: Tables) -> float:
    """Return the Bethe entropy: of the tables of several variables, corrected for the variables they share.

    It is the sum of H(factor) plus, for each variable in d tables of two or more variables, (1 - d) H(variable): the entropy
    itself where the tables form a tree.

    Examples
    --------
    >>> uniform = [Factor(["a", "b"], np.full((2, 2), 0.25)), Factor(["b", "c"], np.full((2, 2), 0.25))]
    >>> round(bethe_entropy(uniform) / float(np.log(2)), 9)
    3.0
    """
    tables = as_tables(pseudo)
    single: dict[str, Array] = {}
    count: dict[str, int] = {}
    total = 0.0
    for table in sorted(tables, key=lambda t: len(t.names)):
        for name in table.names:
            single.setdefault(name, table.marginal(name).values)
            count[name] = count.get(name, 0) + (len(table.names) > 1)
        if len(table.names) > 1:
            total += _entropy(table.values)
    return total + sum((1 - count[n]) * _entropy(p) for n, p in single.items())


def bethe_free_energy(model: Any, pseudo: Tables, given: Mapping[str, Any] | None = None) -> float:
    """Return the energy of pseudo-marginals minus their Bethe entropy.

    The fixed points of loopy belief propagation are its stationary points; on a tree its minimum is -log Z.

    Parameters
    ----------
    model, given
        As in `gibbs_free_energy`.
    pseudo
        Tables that hold the scope of every factor of the model.

    Raises
    ------
    InvalidArgument
        If no table holds all variables of some factor.
    """
    problem = as_problem(model, given)
    tables = as_tables(pseudo)
    return _energy(problem, tables) - bethe_entropy(tables)


# -- tables and models --------------------------------------------------------------------------------------------


def as_problem(model: Any, given: Mapping[str, Any] | None = None) -> Problem:
    """Return a model or a log-linear model as an inference problem."""
    if isinstance(model, Problem):
        return model
    if isinstance(model, LogLinear):
        variables = {v.name: v for v in model.variables}
        return Problem(variables, model.factors(), read_evidence(variables, given))
    if not hasattr(model, "pieces") or not hasattr(model, "variable"):
        raise InvalidArgument(f"a model or a LogLinear is needed, not {type(model).__name__}")
    variables = {n: model.variable(n) for n in model.variables}
    return Problem(variables, model.pieces(), read_evidence(variables, given))


def as_tables(pseudo: Tables) -> list[Factor]:
    """Return tables given in any form as a list of factors."""
    if isinstance(pseudo, Factor | Posterior):
        pseudo = [pseudo]
    found = []
    for table in pseudo.values() if isinstance(pseudo, Mapping) else pseudo:
        if isinstance(table, Posterior):
            table = table.factor()
        if not isinstance(table, Factor):
            raise InvalidArgument(f"tables are factors or posteriors, not {type(table).__name__}")
        found.append(table)
    return found


def _distribution(problem: Problem, q: Tables) -> list[Factor]:
    """Return normalised tables with disjoint scopes that cover the free variables."""
    free = set(problem.free)
    groups: list[Factor] = []
    seen: set[str] = set()
    for table in as_tables(q):
        fixed = {n: _fixed(problem, n) for n in table.names if n not in free and n in problem.variables}
        table = table.reduce(fixed) if fixed else table
        if seen & set(table.names):
            twice = sorted(seen & set(table.names))
            raise InvalidArgument(f"the tables of a product distribution share no variable, not {twice}")
        seen |= set(table.names)
        if table.names:
            groups.append(table.normalize())
    if seen != free:
        raise InvalidArgument(f"the distribution must cover the variables {sorted(free)}, not {sorted(seen)}")
    return groups


def _fixed(problem: Problem, name: str) -> Any:
    code = problem.findings[name].code
    return problem.variables[name].states[code or 0]


def _energy(problem: Problem, tables: list[Factor]) -> float:
    """Return minus the expected log weight; a factor finds its marginal in one table, or in several disjoint ones."""
    total = 0.0
    for factor in problem.reduced(None):
        if not factor.names:
            total -= float(factor.log_values)
            continue
        q = _marginal(tables, factor.variables).values
        held = q > 0
        total -= float((q[held] * factor.log_values[held]).sum())
    return total


def _marginal(tables: list[Factor], variables: tuple[Variable, ...]) -> Factor:
    names = [v.name for v in variables]
    for table in tables:
        if set(names) <= set(table.names):
            return table.marginal(names)
    parts = [(t, [n for n in names if n in t.names]) for t in tables]
    parts = [(t, shared) for t, shared in parts if shared]
    if sum(len(shared) for _, shared in parts) != len(names):
        raise InvalidArgument(f"no table holds the variables {names} of a factor")
    return product([t.marginal(shared) for t, shared in parts]).transpose(names)


def _entropy(p: Array) -> float:
    held = p[p > 0]
    return float(-(held * np.log(held)).sum())
