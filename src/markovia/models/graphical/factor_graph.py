"""Factor graphs: variables and factors as two kinds of node, so that every factor is visible."""

from collections.abc import Iterable

from markovia.factors.tables.factor import Factor
from markovia.graphs.kinds.bipartite import BipartiteGraph
from markovia.models.graphical.factor_model import FactorModel, Variables
from markovia.runtime.keyword_advice import guided


class FactorGraph(FactorModel):
    """A model drawn with a square for every factor.

    It tells one factor over three variables from three factors over pairs, which an undirected graph cannot.

    Parameters
    ----------
    variables, factors, name
        As in `MarkovNetwork`.

    Examples
    --------
    >>> from markovia import Factor
    >>> pairs = [Factor(["a", "b"], [[3, 1], [1, 3]]), Factor(["b", "c"], [[1, 2], [2, 1]])]
    >>> fg = FactorGraph({"a": 2, "b": 2, "c": 2}, pairs)
    >>> fg.factor_names
    ['f0', 'f1']
    """

    @guided
    def __init__(self, variables: Variables = (), factors: Iterable[Factor] = (), *, name: str = "") -> None:
        super().__init__(variables, factors, name=name)

    @property
    def factor_names(self) -> list[str]:
        """Names of the factor nodes: f0, f1, ... skipping names that are variables."""
        taken = set(self._variables)
        names: list[str] = []
        k = 0
        while len(names) < len(self._factors):
            if f"f{k}" not in taken:
                names.append(f"f{k}")
            k += 1
        return names

    @property
    def graph(self) -> BipartiteGraph:
        """The bipartite graph of variable nodes and factor nodes."""
        scopes = dict(zip(self.factor_names, (f.names for f in self._factors), strict=True))
        return BipartiteGraph(scopes, variables=self._variables)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """All edges (variable, factor)."""
        return [
            (variable, factor)
            for factor, f in zip(self.factor_names, self._factors, strict=True)
            for variable in f.names
        ]
