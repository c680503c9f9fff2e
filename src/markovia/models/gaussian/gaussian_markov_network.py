"""Gaussian Markov random fields: numbers on an undirected graph, by their sparse precision matrix."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from markovia.errors import DuplicateName, InvalidArgument, InvalidGraph, check_known
from markovia.factors.gaussian.gaussian_field import GaussianField
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.variable import Variable
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.graphs.separation.separation import separated
from markovia.inference.engine import Engine
from markovia.inference.gaussian.field_regressions import regressions
from markovia.inference.problem import Piece
from markovia.learning.gaussian.covariance_selection import covariance_selection
from markovia.learning.gaussian.wishart_posterior import FieldPosterior, wishart_posterior
from markovia.learning.tables.priors import Wishart
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.model import Model
from markovia.runtime.array_types import Array
from markovia.runtime.keyword_advice import guided

MOST_CHECKED = 500
"""Rows of a precision that is factorised as soon as it is given."""


class GaussianMarkovNetwork(Model):
    """A Gaussian over numbers on an undirected graph: `p(x)` proportional to `exp(h'x - x'Kx / 2)`.

    Two numbers whose entry in the precision K is zero are independent given all others, so the graph is K's pattern.

    Parameters
    ----------
    precision
        The matrix K: a SciPy sparse matrix or an array, a DataFrame (its columns are the names), or a mapping from pairs of
        names (and from a name, or a pair of the same name twice, for the diagonal) to numbers.
    mean, information
        The mean, or h = K mean, in the order of the names or by name; zero without either.
    names
        Names in the order of the matrix; `x0, x1, ...` by default.
    name
        A name that files keep.

    Examples
    --------
    >>> import markovia as mk
    >>> m = mk.GaussianMarkovNetwork({"a": 2.0, "b": 2.0, "c": 2.0, ("a", "b"): -1.0, ("b", "c"): -1.0})
    >>> round(m.query("c").var(), 4), round(m.query("c", given={"a": 2.0}).mean(), 4)
    (0.75, 0.6667)
    >>> m.independent("a", "c", given="b"), m.independent("a", "c")
    (True, False)
    """

    @guided
    def __init__(
        self,
        precision: Any,
        *,
        mean: Any = None,
        information: Any = None,
        names: Sequence[str] | None = None,
        name: str = "",
    ) -> None:
        self.name = name
        self.properties: dict[str, str] = {}
        self.node_properties: dict[str, dict[str, str]] = {}
        listed, matrix = _read(precision, names)
        if len(set(listed)) < len(listed):
            raise DuplicateName(
                f"a name occurs twice: {next(n for i, n in enumerate(listed) if n in listed[:i])!r}"
            )
        if mean is not None and information is not None:
            raise InvalidArgument("give the mean or the information vector, not both")
        h = (
            _by_name(information, listed, "information")
            if mean is None
            else matrix @ _by_name(mean, listed, "mean")
        )
        self._variables: dict[str, Variable] = {n: Quantity(n, "real") for n in listed}
        self._field = GaussianField(tuple(self._variables.values()), np.asarray(h), matrix)  # type: ignore[arg-type]
        self._undirected: UndirectedGraph | None = None
        self.posterior_: FieldPosterior | None = None

    @classmethod
    def from_bayesian_network(cls, network: BayesianNetwork) -> Self:
        """Return the same joint distribution as an undirected model; all nodes are linear Gaussians with noise."""
        from scipy.sparse import csr_matrix, diags

        names = list(network.variables)
        place = {n: k for k, n in enumerate(names)}
        rows, columns, entries, bias, variance = [], [], [], [], []
        for k, piece in enumerate(network[n] for n in names):
            if not isinstance(piece, GaussianConditional) or piece.discrete:
                raise InvalidArgument(
                    f"{names[k]!r} is no linear Gaussian without discrete parents, so there is no Gaussian field"
                )
            if piece.variance == 0.0:
                raise InvalidArgument(
                    f"{names[k]!r} is deterministic, so the joint distribution has no precision"
                )
            rows.extend([k] * (len(piece.continuous) + 1))
            columns.extend([k, *(place[q.name] for q in piece.continuous)])
            entries.extend([1.0, *(-piece.weights).tolist()])
            bias.append(float(piece.bias))
            variance.append(float(piece.variance))
        matrix = csr_matrix((entries, (rows, columns)), shape=(len(names), len(names)))
        weighted = diags(1.0 / np.array(variance)) @ matrix
        made = cls(
            matrix.T @ weighted, information=weighted.T @ np.array(bias), names=names, name=network.name
        )
        made.node_properties = {n: dict(q) for n, q in network.node_properties.items()}
        return made

    @property
    def precision(self) -> Any:
        """The precision matrix, sparse, in the order of `variables`."""
        return self._field.precision.copy()

    @property
    def information_vector(self) -> Array:
        """The vector h: precision times mean."""
        return self._field.information.copy()

    @property
    def has_quantities(self) -> bool:
        """All variables are numbers."""
        return True

    @property
    def normalised(self) -> bool:
        """False: `exp(h'x - x'Kx / 2)` is divided by its integral, which is found once and kept."""
        return False

    def pieces(self) -> list[Piece]:
        """Return the one factor that is the model."""
        return [self._field]  # type: ignore[list-item]

    @property
    def graph(self) -> UndirectedGraph:
        """The undirected graph: an edge where the precision is not zero (a copy)."""
        return self._graph().copy()

    @property
    def edges(self) -> list[tuple[str, str]]:
        """All edges."""
        return self._graph().edges

    @guided
    def independent(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Say whether the graph separates x from y given the observed variables."""
        return separated(self._graph(), x, y, given)

    def markov_blanket(self, name: str) -> set[str]:
        """Return the neighbours."""
        self.variable(name)
        return set(self._graph().neighbors(name))

    def copy(self) -> Self:
        """Return an independent copy."""
        made = object.__new__(type(self))
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k != "_memory"})
        made.properties = dict(self.properties)
        made.node_properties = {n: dict(q) for n, q in self.node_properties.items()}
        return made

    def to_bayesian_network(self, *, allow_fill: bool = True) -> BayesianNetwork:
        """Return a network of linear Gaussians with the same joint distribution, in an order that adds few edges.

        Examples
        --------
        >>> import markovia as mk
        >>> m = mk.GaussianMarkovNetwork([[2.0, -1.0], [-1.0, 2.0]], mean=[1.0, 1.0], names=["a", "b"])
        >>> m.to_bayesian_network()["a"].row()
        LinearGaussian(0.5, {'b': 0.5}, 0.5)
        """
        found = regressions(self._field)
        if not allow_fill:
            edges = {frozenset(e) for e in self.edges}
            for child, r in found.items():
                extra = next((q for q in r.weights if frozenset((child, q)) not in edges), None)
                if extra is not None:
                    raise InvalidGraph(
                        f"the graph is not chordal: a directed network also needs {extra} -> {child}"
                    )
        made = BayesianNetwork(name=self.name)
        for child in reversed(list(found)):
            made.add(child, found[child])
        return made

    def fit(self, data: Any, *, prior: float | Wishart = 0.0, weights: Any = None) -> Self:
        """Learn mean and precision by maximum likelihood under the graph's zeros, and return the model itself.

        Parameters
        ----------
        data
            Complete rows, in any form that `learn_structure` takes; columns are found by name.
        prior
            Rows that the prior counts for: the covariance is drawn that much towards its own diagonal (the mode under a
            Wishart distribution). Needed where there are fewer rows than a clique has variables. `mk.priors.Wishart(...)`
            gives the whole posterior, in `posterior_`; the model then has its means (the mode of the precision where the
            graph is not decomposable).
        weights
            The name of a column, or one number a row.
        """
        from scipy.sparse import csr_matrix

        if isinstance(prior, Wishart):
            post = wishart_posterior(data, self.variables, self._graph(), prior, weights)
            mean, precision = post.center, csr_matrix(post.mean() if post.decomposable else post.mode())
            self.posterior_ = post
        else:
            mean, precision = covariance_selection(data, self.variables, self._graph(), prior, weights)
            self.posterior_ = None
        self._field = GaussianField(self._field.variables, precision @ mean, precision)
        self.__dict__.pop("_memory", None)
        return self

    def __repr__(self) -> str:
        title = f"{self.name!r}, " if self.name else ""
        return f"GaussianMarkovNetwork({title}{len(self):,} variables, {self._pairs():,} edges)"

    # -- inside --------------------------------------------------------------------------------------------------

    def _pairs(self) -> int:
        found = self._field.precision
        return int((found.nnz - np.count_nonzero(found.diagonal())) // 2)

    def _graph(self) -> UndirectedGraph:
        if self._undirected is None:
            entries, names = self._field.precision.tocoo(), self.variables
            pairs = [
                (names[i], names[j])
                for i, j in zip(entries.row.tolist(), entries.col.tolist(), strict=True)
                if i < j
            ]
            self._undirected = UndirectedGraph(pairs, nodes=names)
        return self._undirected

    def _log_z(self, engine: Engine | None = None) -> float:
        """Return zero: the mass of a field is told relative to its integral."""
        return 0.0

    def _moral(self) -> UndirectedGraph:
        return self._graph().copy()

    def _scopes(self) -> list[list[str]]:
        return [*([n] for n in self.variables), *(list(e) for e in self.edges)]


def _read(precision: Any, names: Sequence[str] | None) -> tuple[list[str], Any]:
    """Return the names and a checked sparse matrix."""
    from scipy.sparse import coo_matrix, csr_matrix

    if isinstance(precision, Mapping):
        pairs = {(k if isinstance(k, tuple) else (k, k)): v for k, v in precision.items()}
        found = list(dict.fromkeys(n for pair in pairs for n in pair)) if names is None else list(names)
        place = {n: i for i, n in enumerate(found)}
        for pair in pairs:
            check_known(pair, found, "the names")
            if pair[0] != pair[1] and pair[::-1] in pairs and pairs[pair] != pairs[pair[::-1]]:
                raise InvalidArgument(
                    f"the precision of {pair[0]!r} and {pair[1]!r} is given twice, and differs"
                )
        both = {**{p[::-1]: v for p, v in pairs.items()}, **pairs}
        rows, columns = [place[p[0]] for p in both], [place[p[1]] for p in both]
        matrix = coo_matrix(
            (np.array(list(both.values()), np.float64), (rows, columns)), shape=(len(found),) * 2
        )
    else:
        if hasattr(precision, "columns") and names is None:
            names = [str(n) for n in precision.columns]
        try:
            matrix = csr_matrix(
                precision.to_numpy() if hasattr(precision, "columns") else precision, dtype=np.float64
            )
        except (TypeError, ValueError):
            raise InvalidArgument(
                "the precision is a square matrix, a frame, or a mapping from pairs of names to numbers"
            ) from None
        found = [f"x{i}" for i in range(matrix.shape[0])] if names is None else list(names)
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    if matrix.shape != (len(found), len(found)):
        raise InvalidArgument(
            f"{len(found)} names need a precision of that many rows and columns, not {matrix.shape}"
        )
    if matrix.nnz and not np.isfinite(matrix.data).all():
        raise InvalidArgument("the precision has an entry that is no finite number")
    gap = abs(matrix - matrix.T)
    if gap.nnz and gap.max() > 1e-8 * abs(matrix).max():
        i, j = divmod(int(gap.argmax()), len(found))
        raise InvalidArgument(f"the precision is not symmetric: see {found[i]!r} and {found[j]!r}")
    if len(found) and not (matrix.diagonal() > 0).all():
        bad = found[int(np.argmin(matrix.diagonal()))]
        raise InvalidArgument(
            f"the precision of {bad!r} is not positive; every number needs one on the diagonal"
        )
    _refuse_indefinite(found, matrix)
    return found, matrix


def _refuse_indefinite(names: Sequence[str], matrix: Any) -> None:
    """Refuse a precision that is not positive definite; of a large one only its pairs, the rest at the first question."""
    scale = 1.0 / np.sqrt(matrix.diagonal())
    entries = matrix.tocoo()
    partial = entries.data * scale[entries.row] * scale[entries.col]
    pairs = np.flatnonzero((np.abs(partial) >= 1.0) & (entries.row != entries.col))
    if len(pairs):
        i, j = entries.row[pairs[0]], entries.col[pairs[0]]
        raise InvalidArgument(
            f"the precision matrix is not positive definite: its entry {entries.data[pairs[0]]:g} for {names[i]!r} and "
            f"{names[j]!r} must be below {np.sqrt(matrix[i, i] * matrix[j, j]):g}, the root of the diagonal's product"
        )
    if len(names) <= MOST_CHECKED:
        try:
            np.linalg.cholesky(matrix.toarray() * np.outer(scale, scale))
        except np.linalg.LinAlgError:
            raise InvalidArgument(
                "the precision matrix is not positive definite, so there is no such Gaussian; make its diagonal larger"
            ) from None


def _by_name(values: Any, names: Sequence[str], what: str) -> Array:
    if values is None:
        return np.zeros(len(names))
    if isinstance(values, Mapping):
        check_known(values, names)
        values = [values.get(n, 0.0) for n in names]
    found = np.asarray(values, np.float64)
    if found.shape != (len(names),) or not np.isfinite(found).all():
        raise InvalidArgument(
            f"{what}= is {len(names)} finite numbers, one a variable, or a mapping from name to number"
        )
    return found
