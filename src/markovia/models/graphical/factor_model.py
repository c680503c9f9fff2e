"""What undirected models and factor graphs share: variables and any non-negative factors over them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Self

import numpy as np

from markovia.errors import DuplicateName, IncompleteModel, InvalidArgument, InvalidTable, UnknownVariable
from markovia.factors.tables.evidence import read_evidence
from markovia.factors.tables.factor import Factor, product
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.graphs.separation.independencies import Independence
from markovia.graphs.separation.separation import separated
from markovia.inference.engine import Engine, get_engine
from markovia.inference.problem import Piece
from markovia.models.graphical.arguments import Given, list_of_names
from markovia.models.graphical.differences import (
    Difference,
    independencies_of_kind,
    require_kind,
    variable_differences,
    with_names,
    with_states,
)
from markovia.models.graphical.field_fit_verbs import FieldFitVerbs
from markovia.models.graphical.model import Model
from markovia.runtime.keyword_advice import guided

_scope = attrgetter("variables")
Variables = Mapping[str, int | Sequence[State]] | Iterable[Variable]


class FactorModel(FieldFitVerbs, Model):
    """A model `P(x) = (1/Z) prod_f f(x_f)`; see `MarkovNetwork` and `FactorGraph`."""

    @guided
    def __init__(self, variables: Variables = (), factors: Iterable[Factor] = (), *, name: str = "") -> None:
        self._variables: dict[str, Variable] = {}
        self._factors: list[Factor] = []
        self._undirected: UndirectedGraph | None = None
        self._known_log_z: float | None = None
        self.name = name
        self.properties: dict[str, str] = {}
        self.node_properties: dict[str, dict[str, str]] = {}
        if isinstance(variables, Mapping):
            variables = [v if isinstance(v, Variable) else Variable(n, v) for n, v in variables.items()]
        if not isinstance(variables, Iterable):
            raise _no_variables(variables)
        listed = list(variables)
        for variable in listed:
            if not isinstance(variable, Variable):
                raise _no_variables(variable)
        self._variables = {v.name: v for v in listed}
        self._declared = bool(listed)
        if len(self._variables) < len(listed):
            twice = Counter([v.name for v in listed]).most_common(1)[0][0]
            raise DuplicateName(f"the model already has a variable {twice!r}")
        given = _checked_factors(factors)
        own = set(map(id, self._variables.values()))
        if own.issuperset(map(id, chain.from_iterable(map(_scope, given)))):
            self._factors = given  # every factor is over the model's own variables
            return
        for name, variable in _named_by(given).items():
            if listed and name not in self._variables:
                raise _undeclared(
                    name, self._variables, "declare it too, or declare none and the factors bring theirs"
                )
            self._variables.setdefault(name, variable)
        self._factors = [self._fitted(f) for f in given]

    # -- editing: each edit is checked first and then made at once -----------------------------------------------

    @guided
    def add(self, name: str, states: int | Sequence[State] = 2) -> None:
        """Add a variable that no factor mentions yet."""
        self._insert(Variable(name, states))
        self._changed()

    def add_factor(self, factor: Factor) -> None:
        """Add a factor; variables that are new come with it, unless the model was made with declared variables.

        Raises
        ------
        UnknownVariable
            For a name that is not declared; `add` declares one more.

        Examples
        --------
        >>> import markovia as mk
        >>> mn = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[2, 1], [1, 2]])])
        >>> mn.add("c", 2)
        >>> mn.add_factor(mk.Factor(["b", "c"], [[1, 3], [3, 1]]))
        >>> mn.edges
        [('a', 'b'), ('b', 'c')]
        """
        _checked_factors([factor])
        fresh = [v for v in factor.variables if v.name not in self._variables]
        if fresh and self._declared:
            name = fresh[0].name
            raise _undeclared(name, self._variables, f"add({name!r}, {len(fresh[0])}) declares it")
        for v in fresh:
            self._variables[v.name] = v
        try:
            fitted = self._fitted(factor)
        except InvalidTable:
            for v in fresh:
                del self._variables[v.name]
            raise
        self._factors.append(fitted)
        self._changed()

    def remove_factor(self, index: int) -> None:
        """Remove a factor by its position in `factors`."""
        position = isinstance(index, int | np.integer) and not isinstance(index, bool)
        if not position or not -len(self._factors) <= index < len(self._factors):
            raise InvalidArgument(f"there are {len(self._factors)} factors; {index!r} is no position of one")
        del self._factors[index]
        self._changed()

    def remove(self, name: str) -> None:
        """Remove a variable that no factor mentions; to sum it out instead use `marginalise`."""
        self.variable(name)
        using = [i for i, f in enumerate(self._factors) if name in f.names]
        if using:
            raise InvalidArgument(
                f"{len(using)} factors mention {name!r}; remove them first, or sum the variable out with marginalise()"
            )
        del self._variables[name]
        self.node_properties.pop(name, None)
        self._changed()

    def rename(self, old: str | Mapping[str, str], new: str | None = None) -> None:
        """Rename variables: `rename("a", "b")` or `rename({"a": "b", ...})`."""
        fresh = with_names(self._variables, old, new)
        self._factors = [f.over(tuple(fresh[n] for n in f.names)) for f in self._factors]
        self.node_properties = {fresh[n].name: q for n, q in self.node_properties.items()}
        self._variables = {v.name: v for v in fresh.values()}
        self._changed()

    def rename_states(self, name: str, states: Mapping[State, State] | Sequence[State]) -> None:
        """Rename a variable's states: a mapping from old to new, or all new states in order."""
        fresh = {**self._variables, name: with_states(self.variable(name), states)}
        self._factors = [f.over(tuple(fresh[n] for n in f.names)) for f in self._factors]
        self._variables = fresh
        self._changed()

    # -- looking -------------------------------------------------------------------------------------------------

    @property
    def factors(self) -> list[Factor]:
        """The factors in order."""
        return list(self._factors)

    @property
    def undirected_graph(self) -> UndirectedGraph:
        """The graph with an edge between two variables that share a factor."""
        return self._interactions().copy()

    @property
    def normalised(self) -> bool:
        """An undirected model needs its partition function."""
        return False

    def pieces(self) -> list[Piece]:
        """Return the factors."""
        return list(self._factors)

    def neighbors(self, name: str) -> list[str]:
        """Return the variables that share a factor with a variable."""
        self.variable(name)
        return self._interactions().neighbors(name)

    def markov_blanket(self, name: str) -> set[str]:
        """Return the neighbours."""
        return set(self.neighbors(name))

    @guided
    def independent(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Say whether the graph separates x from y once the given variables are taken out."""
        return separated(self._interactions(), x, y, given)

    def count_parameters(self) -> int:
        """Return the number of table entries."""
        return sum(f.size for f in self._factors)

    def energy(self, assignment: Mapping[str, State]) -> float:
        """Return `-log` of the unnormalised weight of a full assignment."""
        findings = read_evidence(self._variables, assignment)
        missing = [n for n in self._variables if n not in findings]
        if missing:
            raise InvalidArgument(f"the energy needs a state for every variable; {missing[0]!r} has none")
        soft = [n for n, f in findings.items() if not f.hard]
        if soft:
            raise InvalidArgument(
                f"the energy needs one state for every variable; {soft[0]!r} has likelihoods"
            )
        codes = {n: f.code for n, f in findings.items()}
        return float(-sum(f.log_values[tuple(codes[n] for n in f.names)] for f in self._factors))

    def validate(self) -> None:
        """Check that the factors fit the variables and that some configuration has positive weight."""
        for factor in self._factors:
            self._fitted(Factor(factor.variables, factor.values))
        if np.isneginf(self.log_partition()):
            raise IncompleteModel("every configuration has weight zero; the model defines no distribution")

    # -- other models from this one ------------------------------------------------------------------------------

    def copy(self) -> Self:
        """Return an independent copy (factors are immutable and shared)."""
        twin = type(self)(name=self.name)
        twin._variables, twin._declared = dict(self._variables), self._declared
        twin._factors = list(self._factors)
        twin._undirected = self._undirected
        twin._known_log_z, twin.fit_ = self._known_log_z, self.fit_
        twin.properties = dict(self.properties)
        twin.node_properties = {n: dict(q) for n, q in self.node_properties.items()}
        return twin

    def condition(self, given: Given) -> Self:
        """Return the model of the unobserved variables: observed ones are cut out of every factor.

        The partition function of the result is the mass that agrees with the evidence.
        """
        problem = self._problem(given)
        twin = self.copy()
        twin._variables = {n: v for n, v in self._variables.items() if n in set(problem.free)}
        twin._factors = [problem.cut(f) for f in self._factors] + [
            f.factor() for f in problem.findings.values() if not f.hard
        ]
        twin.node_properties = {n: q for n, q in twin.node_properties.items() if n in twin._variables}
        twin._changed()
        return twin

    def marginalise(self, names: str | Sequence[str]) -> Self:
        """Return the model of the other variables with the named ones summed out of the factors that mention them.

        Raises
        ------
        TooLarge
            If the product of the factors that mention a variable would have more than 2**30 entries.
        """
        gone = self._names(names)
        twin = self.copy()
        for name in gone:
            inside = [f for f in twin._factors if name in f.names]
            rest = [f for f in twin._factors if name not in f.names]
            ones = Factor.of((self._variables[name],), np.ones(len(self._variables[name])))
            twin._factors = [*rest, product([ones, *inside]).sum_out(name)]
            del twin._variables[name]
            twin.node_properties.pop(name, None)
        twin._changed()
        return twin

    def relevant(self, targets: str | Sequence[str], given: str | Iterable[str] = ()) -> Self:
        """Return the model of what the posterior of the targets depends on once the given names are observed.

        The given names stand for hard evidence: each is seen in one state. Likelihoods (soft evidence) do not
        separate: name variables with such evidence among the targets instead. Whatever the observed variables separate
        from the targets is left out, with the factors over it.
        """
        names = self._names(targets)
        observed = {self.variable(n).name for n in list_of_names(given, "given=")}
        graph = self._interactions()
        inside = set(names)
        queue = [n for n in names if n not in observed]
        while queue:
            for other in graph.neighbors(queue.pop()):
                if other not in inside:
                    inside.add(other)
                    if other not in observed:
                        queue.append(other)
        twin = self.copy()
        twin._variables = {n: v for n, v in self._variables.items() if n in inside}
        twin._factors = [f for f in self._factors if set(f.names) <= inside and not set(f.names) <= observed]
        twin.node_properties = {n: q for n, q in twin.node_properties.items() if n in inside}
        twin._changed()
        return twin

    def independencies(self, kind: str = "local") -> list[Independence]:
        """Return the independencies the graph promises: "local", "pairwise" or "all" (small graphs)."""
        return independencies_of_kind(self._interactions(), kind)

    def compare(self, other: "FactorModel", *, atol: float = 1e-9) -> list[Difference]:
        """Return what differs between two models; the empty list if nothing does.

        Factors over the same variables are multiplied before they are compared.
        """
        require_kind(other, FactorModel, "compare")
        found = variable_differences(self, other)
        ours, theirs = self._by_scope(), other._by_scope()
        for scope in dict.fromkeys([*ours, *theirs]):
            label = ", ".join(sorted(scope))
            if scope not in ours or scope not in theirs:
                found.append(
                    Difference(label, f"a factor only in the {'second' if scope not in ours else 'first'}")
                )
            elif ours[scope].variables and set(ours[scope].variables) == set(theirs[scope].variables):
                gap = np.abs(ours[scope].values - theirs[scope].transpose(ours[scope].names).values).max()
                if gap > atol:
                    found.append(Difference(label, f"factors differ by up to {float(gap):.3g}"))
        return found

    def allclose(self, other: "FactorModel", *, atol: float = 1e-9) -> bool:
        """Say whether two models have the same variables and the same multiset of factors up to `atol`."""
        require_kind(other, FactorModel, "allclose")
        if set(self._variables.values()) != set(other._variables.values()):
            return False
        if len(self._factors) != len(other._factors):
            return False
        unmatched: dict[frozenset[str], list[Factor]] = {}
        for factor in other._factors:
            unmatched.setdefault(frozenset(factor.names), []).append(factor)
        for factor in self._factors:
            left = unmatched.get(frozenset(factor.names), [])
            match = next((i for i, g in enumerate(left) if factor.allclose(g, atol=atol)), None)
            if match is None:
                return False
            del left[match]
        return True

    def __repr__(self) -> str:
        title = f"{self.name!r}, " if self.name else ""
        return f"{type(self).__name__}({title}{len(self)} variables, {len(self._factors)} factors)"

    # -- inside --------------------------------------------------------------------------------------------------

    def _insert(self, variable: Variable) -> None:
        if variable.name in self._variables:
            raise DuplicateName(f"the model already has a variable {variable.name!r}")
        self._variables[variable.name] = variable

    def _fitted(self, factor: Factor) -> Factor:
        """Give a factor the model's variables; numbered axes take over the model's states."""
        if all(self._variables[v.name] is v for v in factor.variables):
            return factor
        own = []
        for v in factor.variables:
            known = self._variables[v.name]
            if len(known) != len(v):
                raise InvalidTable(f"a factor gives {v.name!r} {len(v)} states, but it has {len(known)}")
            if known.states != v.states and not v.numbered:
                raise InvalidTable(
                    f"a factor has states {list(v.states)} for {v.name!r}, the model {list(known.states)}"
                )
            own.append(known)
        return factor.over(tuple(own))

    def _install(self, factors: list[Factor]) -> None:
        self._factors = factors
        self._changed()

    def _moral(self) -> UndirectedGraph:
        return self.undirected_graph

    def _scopes(self) -> list[list[str]]:
        return [list(f.names) for f in self._factors]

    def _interactions(self) -> UndirectedGraph:
        if self._undirected is None:
            graph = UndirectedGraph.from_cliques([f.names for f in self._factors])
            self._undirected = UndirectedGraph(graph.edges, nodes=self._variables)
        return self._undirected

    def _by_scope(self) -> dict[frozenset[str], Factor]:
        scopes: dict[frozenset[str], Factor] = {}
        for factor in self._factors:
            key = frozenset(factor.names)
            scopes[key] = scopes[key] * factor if key in scopes else factor
        return scopes

    def _changed(self) -> None:
        self._undirected = None
        self._known_log_z = None
        self.fit_ = None

    def _log_z(self, engine: Engine | None = None) -> float:
        chosen = engine or get_engine("auto")
        if self._known_log_z is not None and chosen.exact:
            return self._known_log_z
        log_z = super()._log_z(chosen)
        if chosen.exact:
            self._known_log_z = log_z
        return log_z


def _checked_factors(factors: Iterable[Factor]) -> list[Factor]:
    if isinstance(factors, Factor) or not isinstance(factors, Iterable):
        raise InvalidArgument(f"factors= is a list of factors, not {type(factors).__name__}")
    given = list(factors)
    if set(map(type, given)) == {Factor}:
        return given
    for factor in given:
        if not isinstance(factor, Factor):
            raise InvalidArgument(f"a factor is a Factor(names, values), not {type(factor).__name__}")
    return given


def _named_by(factors: Sequence[Factor]) -> dict[str, Variable]:
    """Return the variables of factors in order of appearance, each with its labelled states where it has some."""
    found: dict[str, Variable] = {}
    for factor in factors:
        for v in factor.variables:
            known = found.setdefault(v.name, v)
            if known is not v and known.states != v.states and known.numbered:
                found[v.name] = v
    return found


def _undeclared(name: str, declared: Iterable[str], cure: str) -> UnknownVariable:
    error = UnknownVariable(name, declared, "the declared variables")
    error.args = (f"{error}; {cure}",)
    return error


def _no_variables(given: object) -> InvalidArgument:
    return InvalidArgument(
        f"variables are a mapping from name to states or a list of Variable objects, not {given!r}"
    )
