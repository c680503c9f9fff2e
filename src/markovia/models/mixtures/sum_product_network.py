"""Sum-product networks: deep mixtures that answer every question exactly, by passes over their edges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from markovia.data.tables.frames import decode_column
from markovia.data.tables.reading import known_columns
from markovia.data.tables.reading_mixed import MixedTable, read_mixed
from markovia.errors import (
    IncompleteModel,
    InvalidArgument,
    InvalidEvidence,
    UnknownVariable,
    UnsupportedModel,
)
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.variable import Variable
from markovia.inference.circuits.circuit import Circuit, Evidence
from markovia.inference.circuits.circuit_compiler import compile_circuit
from markovia.inference.engine import TABLES
from markovia.inference.posterior import Explanation, Marginals
from markovia.learning.latent.circuit_em import learn_circuit
from markovia.models.graphical.base import GraphicalModel
from markovia.models.mixtures.circuit_questions import CircuitQuestion, variables_of
from markovia.optimise.ascent import Climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import (
    LEVEL,
    NOT_NEGATIVE,
    AnySeed,
    Count,
    TimeLimit,
    Tolerance,
    check_count,
)
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import Estimator, fitting
from markovia.runtime.libraries import pd
from markovia.runtime.ports import Savable
from markovia.runtime.seeds import Seed, generator
from markovia.structure.trees.sum_product_search import SumProductSearch


class _LearnedCircuit(Estimator, Savable):
    """What a sum-product network knows besides its settings."""

    circuit_: Circuit
    history_: list[float]
    n_iter_: int
    converged_: bool


@dataclass(eq=False, repr=False)
class SumProductNetwork(_LearnedCircuit):
    """A circuit of sums and products over named variables, with states or Gaussian numbers at its leaves.

    `fit` learns it from rows (LearnSPN, then EM), `from_network` writes a small network down as one. Every query is exact
    and costs a pass or two over its edges; cells that are missing are summed out.

    Parameters
    ----------
    test, alpha
        The test that parts columns ("auto" chooses by the kinds of columns, see `mk.ci_tests`; "fisher-z" on numbers sees
        only linear dependence), and its level: columns part where the p-value is larger.
    min_rows, n_clusters
        Parts of fewer rows are taken as independent columns; into how many clusters rows are cut at a time.
    pseudo_count
        What is added to the count of each state in a leaf.
    max_iter, tol
        Of the EM that learns all weights and leaves again; `tol` is a gain in nats a row.
    random_state, time_limit, progress
        As everywhere.

    Attributes
    ----------
    circuit_
        The nodes as flat arrays.
    history_, n_iter_, converged_
        The objective before each step of EM, the steps, and whether they settled.

    Examples
    --------
    >>> import markovia as mk
    >>> spn = SumProductNetwork.from_network(mk.examples.sprinkler())
    >>> print(spn.query("rain", given={"wet": "yes"}))
    rain         p
    no    0.292072
    yes   0.707928
    """

    test: str = "auto"
    alpha: Annotated[float, LEVEL] = 0.01
    min_rows: Count = 50
    n_clusters: Count = 2
    pseudo_count: Annotated[float, NOT_NEGATIVE] = 0.1
    max_iter: Count = 200
    tol: Tolerance = 1e-4
    random_state: AnySeed = None
    time_limit: TimeLimit = None
    progress: bool | None = None

    # -- where it comes from -----------------------------------------------------------------------------------------

    @classmethod
    def from_network(cls, model: GraphicalModel) -> Self:
        """Return the circuit of a network of tables, directed or not, by tracing variable elimination.

        Examples
        --------
        >>> import markovia as mk
        >>> asia = mk.examples.asia()
        >>> spn = SumProductNetwork.from_network(asia)
        >>> spn
        SumProductNetwork(8 variables, 52 nodes, 80 edges)
        >>> abs(spn.log_evidence({"xray": "yes"}) - asia.log_evidence({"xray": "yes"})) < 1e-12
        True
        """
        if not isinstance(model, GraphicalModel):
            raise InvalidArgument(
                f"a circuit is made from a network of tables, not {type(model).__name__}; fit learns one"
            )
        problem = model._problem(None)
        if not problem.kinds <= TABLES:
            raise UnsupportedModel(
                "a network with numbers has no circuit of tables; ask it itself, or fit a circuit to rows"
            )
        made = cls()
        made._settle(Climb(compile_circuit(problem.variables, problem.reduced(None)), [], "converged"))
        return made

    def fit(
        self,
        data: Any,
        y: Any = None,
        *,
        continuous: bool | Sequence[str] | None = None,
        states: Mapping[str, Any] | None = None,
        weights: Any = None,
    ) -> Self:
        """Learn structure, weights and leaves from rows; missing cells are summed out.

        Parameters
        ----------
        data
            A frame, a mapping of columns, an array or data files.
        y
            Not used; there as in scikit-learn.
        continuous
            The columns that are numbers; by default those with fractions.
        states
            States of the other columns that the rows need not show.
        weights
            How much each row counts: numbers, or the name of a column.

        Examples
        --------
        >>> rows = {"a": ["x", "y"] * 60, "b": ["u", "v"] * 60, "c": [1.5, 1.0, 0.5] * 40}
        >>> spn = SumProductNetwork(random_state=0).fit(rows)
        >>> spn.query("b", given={"a": "y"}).argmax(), bool(abs(spn.query("c").mean() - 1.0) < 1e-9)
        ('v', True)
        """
        with fitting(self), Clock(self.time_limit, False) as clock:
            table = read_mixed(data, continuous=continuous, states=states, weights=weights, in_memory=True)
            columns, shares = _columns(table)
            if not len(shares) or not shares.any():
                raise InvalidArgument("there are no rows to learn from")
            search = SumProductSearch(
                table, columns, shares, self.test, float(self.alpha), int(self.min_rows), max(2, int(self.n_clusters)),
                float(self.pseudo_count), generator(self.random_state), clock,
            )  # fmt: skip
            found = learn_circuit(
                search.circuit(), columns, shares, pseudo_count=float(self.pseudo_count), floors=search.floors,
                max_iter=self.max_iter, tol=self.tol, progress=self.progress,
            )  # fmt: skip
            self._settle(found)
            found.warn(self.tol)
        return self

    def _settle(self, found: Climb[Circuit]) -> None:
        self.circuit_ = found.state
        self.history_, self.n_iter_, self.converged_ = found.history, len(found.history), found.converged

    # -- variables ---------------------------------------------------------------------------------------------------

    def _circuit(self) -> Circuit:
        if "circuit_" not in self.__dict__:
            raise IncompleteModel(
                "this network has learned nothing yet; call fit(rows), or use from_network(network)"
            )
        return self.circuit_

    @property
    def variables(self) -> list[str]:
        """The names of the variables in order."""
        return list(self._circuit().names)

    def states(self, name: str) -> list[Any]:
        """Return a variable's states in order."""
        return list(self._variable(name).states)

    def _variable(self, name: str) -> Variable:
        named = variables_of(self._circuit())
        if name not in named:
            raise UnknownVariable(name, named)
        return named[name]

    def _places(self, targets: str | Sequence[str]) -> list[int]:
        names = [self._variable(n).name for n in ([targets] if isinstance(targets, str) else targets)]
        if not names or len(set(names)) < len(names):
            raise InvalidArgument(f"name each variable to ask for once, not {names}")
        return [self.variables.index(name) for name in names]

    # -- questions ---------------------------------------------------------------------------------------------------

    def query(self, targets: str | Sequence[str], given: Mapping[str, Any] | None = None) -> Any:
        """Return the posterior of one variable, or the joint posterior of several, of which one may be a number.

        Parameters
        ----------
        targets
            A name, or several.
        given
            Evidence by name: a state, likelihoods, `Not(...)`, a number, an `Interval`.

        Returns
        -------
        Posterior, or GaussianPosterior where a number is asked for
            A mixture of Gaussians then.
        """
        return CircuitQuestion(self._circuit(), given).posterior(self._places(targets))

    def marginals(
        self, given: Mapping[str, Any] | None = None, targets: Sequence[str] | None = None
    ) -> Marginals:
        """Return the posterior of every variable that is not observed, or of the named ones, all from one pass.

        Examples
        --------
        >>> import markovia as mk
        >>> print(SumProductNetwork.from_network(mk.examples.sprinkler()).marginals({"wet": "yes"}))
        cloudy     no 0.4242, yes 0.5758
        sprinkler  no 0.5702, yes 0.4298
        rain       no 0.2921, yes 0.7079
        """
        question = CircuitQuestion(self._circuit(), given)
        asked = question.free if targets is None else self._places(targets) if targets else []
        return Marginals((self.variables[v], question.posterior([v])) for v in asked)

    def log_evidence(self, given: Any = None) -> Any:
        """Return the log probability (or density) of the evidence; of rows, an array."""
        if given is not None and not isinstance(given, Mapping):
            return self.log_prob(given)
        return CircuitQuestion(self._circuit(), given, possible=False).log_mass

    def log_prob(self, rows: Any) -> Array:
        """Return the log probability (or density) of each row; cells and columns that are missing are summed out.

        Examples
        --------
        >>> import markovia as mk
        >>> spn = SumProductNetwork.from_network(mk.examples.sprinkler())
        >>> spn.log_prob({"rain": ["yes", None], "wet": ["yes", "yes"]}).round(4).tolist()
        [-0.7807, -0.4353]
        """
        evidence, n, _ = self._rows(rows)
        return self._circuit().log_masses(evidence, n)

    def score(self, rows: Any, y: Any = None) -> float:
        """Return the mean log probability of rows."""
        return float(self.log_prob(rows).mean())

    def predict_proba(self, rows: Any, target: str) -> "pd.DataFrame":
        """Return the posterior of a variable given each row, what the row says of the variable itself left out."""
        variable, circuit = self._variable(target), self._circuit()
        if isinstance(variable, Quantity):
            raise UnsupportedModel(
                f"{target!r} is a number and has no probabilities; query({target!r}, given) has its law"
            )
        evidence, n, index = self._rows(rows)
        v = circuit.names.index(target)
        others = {k: x for k, x in evidence.items() if k != v}
        found = np.empty((n, len(variable)))
        for part, own in circuit.blocks(others, n):
            values = circuit.values(own, part.stop - part.start)
            found[part] = circuit.posterior(v, own, circuit.slopes(values))
        lost = found.sum(axis=1) == 0.0
        if lost.any():
            raise InvalidEvidence(
                f"row {int(lost.argmax())} has probability zero, so nothing is predicted from it"
            )
        return pd.DataFrame(found, index=index, columns=list(variable.states))

    def predict(self, rows: Any, target: str) -> Any:
        """Return the most probable state of a variable given each row, as a Series."""
        return self.predict_proba(rows, target).idxmax(axis=1).rename(target)

    def map(
        self, given: Mapping[str, Any] | None = None, targets: Sequence[str] | None = None
    ) -> Explanation:
        """Return the most probable states of all variables that are not observed, or of some, the others summed out.

        The answer is exact in circuits made by `from_network`, whose sums have one positive term at most, and where the
        assignments are few enough (2**20) to compare. In others the largest terms are followed, which need not lead to the
        best assignment: `info.exact` is false then, and `bound` says how much better one could be.

        Examples
        --------
        >>> import markovia as mk
        >>> SumProductNetwork.from_network(mk.examples.sprinkler()).map({"wet": "yes"}).to_dict()
        {'cloudy': 'yes', 'sprinkler': 'no', 'rain': 'yes'}
        """
        question = CircuitQuestion(self._circuit(), given)
        return question.explanation(question.free if targets is None else self._places(targets))

    def sample(self, n: int = 1, given: Mapping[str, Any] | None = None, seed: Seed = None) -> "pd.DataFrame":
        """Draw n rows, given the evidence.

        Examples
        --------
        >>> import markovia as mk
        >>> SumProductNetwork.from_network(mk.examples.sprinkler()).sample(3, {"wet": "yes"}, seed=0)["wet"].tolist()
        ['yes', 'yes', 'yes']
        """
        check_count("n", n)
        question, circuit = CircuitQuestion(self._circuit(), given), self._circuit()
        drawn = circuit.draw(int(n), question.values, generator(seed), question.evidence)
        columns = {
            name: x if states is None else decode_column(x, states)
            for name, states, x in zip(circuit.names, circuit.states, drawn, strict=True)
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(int(n)))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _rows(self, rows: Any) -> tuple[Evidence, int, Any]:
        """Return what rows say of the variables, how many they are, and their index."""
        named = variables_of(self._circuit())
        columns = getattr(rows, "columns", rows if isinstance(rows, Mapping) else named)
        there = known_columns(columns, named, (), "note")
        numbers = [n for n in there if isinstance(named[n], Quantity)]
        known = {n: list(named[n].states) for n in there if n not in numbers}
        table = read_mixed(rows, names=there, continuous=numbers, states=known or None, in_memory=True)
        evidence, shares = _columns(table)
        places = {self.variables.index(n): evidence[k] for k, n in enumerate(table.names)}
        return places, len(shares), getattr(rows, "index", None)

    def __repr__(self) -> str:
        if "circuit_" not in self.__dict__:
            return "SumProductNetwork(not fitted)"
        c = self.circuit_
        return f"SumProductNetwork({len(c.names)} variables, {c.size:,} nodes, {len(c.child):,} edges)"


def _columns(table: MixedTable) -> tuple[dict[int, Any], Array]:
    """Return the columns of a table by number, codes or numbers, and the weight of each row."""
    own = None if table.table is None else table.table.in_memory()
    codes = {} if own is None else dict(zip(own.variables, own.codes.astype(np.int64), strict=True))
    numbers = (
        np.empty((0, 0)) if table.matrix is None else np.array(table.matrix.T, dtype=np.float64, order="C")
    )
    found = {
        v: codes[name] if name in codes else numbers[place]
        for v, (name, place) in enumerate(zip(table.names, table.columns.tolist(), strict=True))
    }
    weights = table.weights if table.weights is not None else None if own is None else own.weights
    return found, np.ones(table.n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
