"""What stands behind the verbs: variables and pieces, the problem that goes to an engine, and what its answer means."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from markovia.errors import ImpossibleEvidence, InvalidArgument, Unanswered, UnknownVariable
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.functions.parameter import Parameter, parameter_values
from markovia.factors.functions.potential_node import PotentialNode
from markovia.factors.tables.evidence import Finding
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.kinds.bipartite import BipartiteGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.inference.decisions.diagrams.open_decisions import ACTING, undecided_problem
from markovia.inference.engine import TABLES, Engine, asking, get_engine
from markovia.inference.flat_graphs.possibility import judged_log_mass
from markovia.inference.flat_graphs.unfolding import unfolded
from markovia.inference.impossible_evidence import impossible
from markovia.inference.problem import Piece, Pieces, Problem
from markovia.inference.questions.jeffrey import settled
from markovia.inference.result import (
    NOTHING_TO_SAY,
    Info,
    LogMass,
    Ranked,
    Record,
    provenance,
    warn_unconverged,
)
from markovia.models.graphical.arguments import Given
from markovia.models.graphical.given_values import read_given, refuse_observed
from markovia.runtime.checks import Choice, check
from markovia.runtime.clock import Stopwatch
from markovia.runtime.keyword_advice import missing_attribute

MISSING = Choice(("refuse", "impute"))


class ModelCore(ABC):
    """Named variables and the pieces of a factorised distribution, which the verbs of a model hand to an engine."""

    _variables: dict[str, Variable]
    name: str
    properties: dict[str, str]
    """Free-form properties of the model, kept through files."""
    node_properties: dict[str, dict[str, str]]
    """Free-form properties of variables, kept through files."""
    _parameters: Mapping[str, Parameter] = MappingProxyType({})
    """What `fit` learns besides tables."""
    _guides: Mapping[str, FunctionNode] = MappingProxyType({})
    """What latent quantities are proposed from."""
    _potentials: Mapping[str, PotentialNode] = MappingProxyType({})
    """Log weights on top of the nodes' distributions."""

    # -- what a concrete model says ------------------------------------------------------------------------------

    @abstractmethod
    def pieces(self) -> list[Piece]:
        """Return the factors or conditional tables whose product is the model."""

    @abstractmethod
    def independent(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Say whether the graph separates x from y given the rest."""

    @abstractmethod
    def markov_blanket(self, name: str) -> set[str]:
        """Return the smallest set that shields a variable from all others, read off the graph."""

    @abstractmethod
    def copy(self) -> Self:
        """Return an independent copy."""

    @property
    @abstractmethod
    def graph(self) -> DAG | UndirectedGraph | BipartiteGraph:
        """The graph that the model is drawn as (a copy)."""

    @property
    @abstractmethod
    def edges(self) -> list[tuple[str, str]]:
        """All edges of the graph."""

    @property
    @abstractmethod
    def normalised(self) -> bool:
        """Whether the product of the pieces sums to one by construction."""

    @abstractmethod
    def _moral(self) -> UndirectedGraph:
        """Return the graph that joins all variables of a piece, as a copy to work on."""

    @abstractmethod
    def _scopes(self) -> list[list[str]]:
        """Return the names in each piece, also where it has no table yet."""

    @property
    def has_quantities(self) -> bool:
        """Whether some variable is a number instead of one of some states."""
        return False

    # -- variables -----------------------------------------------------------------------------------------------

    @property
    def variables(self) -> list[str]:
        """The names of the variables in order."""
        return list(self._variables)

    def variable(self, name: str) -> Variable:
        """Return a variable by name."""
        try:
            return self._variables[name]
        except (KeyError, TypeError):
            raise UnknownVariable(name, self._variables) from None

    def states(self, name: str) -> list[State]:
        """Return a variable's states in order."""
        return list(self.variable(name).states)

    def __copy__(self) -> Self:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what engines remember when the model is pickled or deep-copied."""
        return {k: v for k, v in self.__dict__.items() if k != "_memory"}

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._variables

    def __len__(self) -> int:
        return len(self._variables)

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the variables."""
        return iter(self.variables)

    if not TYPE_CHECKING:  # a type checker is to see that a misspelt attribute is none

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            raise missing_attribute(self, name)

    # -- asking an engine ------------------------------------------------------------------------------------------

    def _names(self, targets: str | Iterable[str]) -> list[str]:
        if isinstance(targets, str):  # before the others, which take longer to tell
            names = [targets]
        elif isinstance(targets, set | frozenset):
            raise InvalidArgument("targets have an order; give a list")
        else:
            names = list(targets) if isinstance(targets, Iterable) else [targets]
        for name in names:
            self.variable(name)
        if len(names) > 1 and len(set(names)) != len(names):
            raise InvalidArgument(f"a variable is asked for twice: {names}")
        if not names:
            raise InvalidArgument("name at least one variable to ask for")
        return names

    def _problem(
        self,
        given: Given,
        engine: str | Engine = "auto",
        targets: Iterable[str] | None = None,
        missing: str = "refuse",
    ) -> Problem:
        """Return the model and its evidence, without barren pieces of other kinds than those that tell of the targets."""
        impute = missing != "refuse"
        if impute:
            check("missing", missing, MISSING)
        memory = self.__dict__.setdefault("_memory", {})
        pieces = self._held_pieces(memory)
        findings, inputs = read_given(
            self._variables, pieces, given, impute, memory.setdefault("states found", {})
        )
        if self._parameters:
            if clash := self._parameters.keys() & inputs.keys():
                raise InvalidArgument(f"{min(clash)!r} is a parameter, which fit learns, and is not given")
            inputs = {**parameter_values(self._parameters), **inputs}
        problem = Problem(
            self._variables, pieces, findings, memory, inputs=inputs, guides=self._guides, impute=impute
        )
        if problem.kinds & ACTING:
            problem = undecided_problem(problem, targets)
        return settled(problem if targets is None else problem.about(targets), engine)

    def _held_pieces(self, memory: dict[Any, Any]) -> Pieces:
        """Return the pieces, the same object as before unless one of them has changed."""
        pieces, held = self.pieces(), memory.get(Pieces)
        if held is None or not held.same(pieces):
            held = memory[Pieces] = Pieces(pieces)
        found: Pieces = held
        return found

    def _unfolded(
        self,
        given: Given,
        engine: str | Engine,
        targets: Iterable[str] | None = None,
        missing: str = "refuse",
    ) -> Problem:
        """Return the problem with chains in place of conditionals whose tables are too wide for the engine."""
        return unfolded(self._problem(given, engine, targets, missing), get_engine(engine).name)

    @staticmethod
    def _observed(problem: Problem, names: Sequence[str]) -> dict[str, Finding]:
        """Return the findings that fix some of the names to a state; about a number that is known there is no question."""
        if problem.kinds <= TABLES:
            findings = problem.findings
            return {n: f for n in names if (f := findings.get(n)) is not None and f.code is not None}
        refuse_observed(problem, names)
        return {}

    def _check_possible(
        self, log_mass: float, problem: Problem, engine: Engine, record: Record = NOTHING_TO_SAY
    ) -> None:
        if log_mass == -np.inf and (engine.exact or problem.kinds <= TABLES):
            exact = engine.exact and not record.tried
            raise impossible(problem, engine.log_mass if exact else judged_log_mass)

    def _check_found(self, found: Ranked, problem: Problem, engine: Engine) -> None:
        """Refuse an answer without any assignment of positive weight: the evidence is impossible, or nobody knows."""
        if (found and found[0].log_weight > -np.inf) or not problem.kinds <= TABLES:
            return
        exact = engine.exact and not found.record.tried
        if exact or judged_log_mass(problem) == -np.inf:
            self._check_possible(-np.inf, problem, engine, found.record)
        raise Unanswered(
            f"engine {engine.name!r} found no states of positive weight (zeros in the tables rule out what it tried); use "
            "engine='map-search', 'dual-decomposition' or 'auto'"
        )

    def _masses(self, engine: Engine, problem: Problem, record: Record) -> tuple[float, float]:
        """Return the log mass given the findings and log Z; NaN for what the engine that answered cannot tell.

        An engine that answers from a search for the best states need not know any mass; an estimate is none.
        """
        if not engine.exact or record.tried:
            return np.nan, 0.0 if self.normalised else np.nan
        log_mass = engine.log_mass(problem)
        if self.normalised:
            return log_mass, 0.0
        return log_mass, self._normaliser(problem, engine) if problem.findings else log_mass

    def _info(
        self,
        engine: Engine,
        problem: Problem,
        log_mass: float,
        watch: Stopwatch,
        record: Record,
        log_z: float | None = None,
    ) -> Info:
        exact = engine.exact if record.exact is None else record.exact
        if not self.normalised and log_z is None:
            known = problem.findings and not np.isnan(log_mass) and exact
            log_z = self._normaliser(problem, engine) if known else np.nan if problem.findings else log_mass
        log_evidence = log_mass - (0.0 if self.normalised or log_z is None else log_z)
        return provenance(
            record,
            engine=engine.name,
            exact=engine.exact,
            log_evidence=log_evidence,
            seconds=watch.seconds,
            compile_seconds=watch.compile_seconds,
            given=problem.given,
        )

    def _mass(self, engine: Engine, problem: Problem) -> LogMass:
        with asking(engine, problem, "log_mass"):
            found = engine.log_mass(problem)
        if not found.record.converged:
            warn_unconverged(replace(found.record, engine=found.record.engine or engine.name))
        return found

    def _normaliser(self, problem: Problem, engine: Engine) -> float:
        """Return log Z of the model as a problem sees it: with its inputs, and plates as long."""
        return self._log_z(engine)

    def _row_normaliser(self, problem: Problem) -> float:
        """Return log Z of one row of a problem of rows."""
        return 0.0

    def _log_z(self, engine: Engine | None = None) -> float:
        """Return log Z, which probabilities are divided by; a model of total weight zero has none."""
        log_z = (engine or get_engine("auto")).log_mass(self._problem(None))
        if np.isneginf(log_z):
            raise ImpossibleEvidence({})
        return log_z

    def _draw(
        self, problem: Problem, n: int, rng: np.random.Generator, engine: Engine
    ) -> dict[str, NDArray[Any]]:
        with asking(engine, problem, "sample"):
            if (
                engine.exact and engine.name != "auto" and problem.kinds <= TABLES
            ):  # the others look for themselves
                self._check_possible(engine.log_mass(problem), problem, engine)
            return engine.sample(problem, n, rng)
