"""The full posterior of a network's tables: one Dirichlet distribution a row.

With complete data and Dirichlet priors the rows of all tables stay independent, and the posterior of a row with prior
parameters a and counts N is Dirichlet(a + N). Means, modes, variances and intervals of single cells (marginally Beta) and
the probability of the data with the parameters integrated out have closed forms:

    log P(data) = sum over rows  lgamma(a.) - lgamma(a. + N.) + sum over cells  lgamma(a + N) - lgamma(a)

References: Heckerman, Geiger & Chickering (1995), "Learning Bayesian networks: the combination of knowledge and
statistical data"; Koller & Friedman (2009), sections 17.3 and 18.3. Cost: linear in the cells.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.inference.densities.closed_forms.closed_form import ClosedForm, Elements
from markovia.inference.densities.closed_forms.closed_questions import ParameterQuestions, Place
from markovia.inference.posterior_questions import check_element, element_of
from markovia.inference.result import Info
from markovia.learning.tables.row_counts import Counts, RowCounts, family_log_likelihood, pooled
from markovia.learning.tables.table_learner import NodeFamily, TableLearner, normalised_rows
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_level

if TYPE_CHECKING:
    import pandas as pd


class TablePosterior(ParameterQuestions):
    """The distribution of every node's table after the data.

    It is asked what all posteriors are (`sd`, `quantile`, `hdi`, `cdf`, `probability`, `correlation`, ...), by the name of a
    node for all cells of its table, parents first, or `"wet[0,1]"` for one. Fixed nodes, local models (noisy-or, logistic)
    and nodes without pseudo-counts have no Dirichlet distribution: they are kept at their value.

    Parameters
    ----------
    learner
        Families and pseudo-counts.
    counts
        The counts of every family.
    tables
        The fitted distributions.
    """

    def __init__(
        self, learner: TableLearner, counts: Sequence[Counts], tables: Sequence[Conditional]
    ) -> None:
        self._learner = learner
        self._tables = tuple(tables)
        self._at = {f.variable.name: i for i, f in enumerate(learner.families)}
        self._lead = {i: group[0] for group in learner.groups for i in group}
        self._counts = {g[0]: pooled([counts[i] for i in g]) for g in learner.groups}
        self._alpha: dict[int, Array] = {}
        for lead, n in self._counts.items():
            a = learner.pseudo[lead]
            if a is not None and not isinstance(n, RowCounts):
                self._alpha[lead] = a + n
                self._alpha[lead].setflags(write=False)

        self.info = Info("conjugate", exact=True)

    @property
    def nodes(self) -> list[str]:
        """The nodes whose tables have a posterior distribution."""
        return [name for name, i in self._at.items() if self._lead[i] in self._alpha]

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The quantities: the tables that have a posterior distribution."""
        return tuple(self.nodes)

    @cached_property
    def form(self) -> ClosedForm:  # type: ignore[override]
        """The distribution of all tables in closed form; tied ones are one quantity, under the name of the first."""
        named = {self._learner.families[lead].variable.name: alpha for lead, alpha in self._alpha.items()}
        return ClosedForm({n: Elements(n, "dirichlet", alpha, np.zeros(0)) for n, alpha in named.items()})

    def _in_form(self, name: str) -> Place:
        quantity, at = element_of(name, self._at)
        self._row_parameters(quantity)  # says why a node has no distribution
        lead = self._learner.families[self._lead[self._index(quantity)]].variable.name
        check_element(quantity, at, self.form.shape(lead))
        return lead, at

    def alpha(self, name: str) -> Factor:
        """Return the Dirichlet parameters of a node's table (pseudo-counts plus counts), parents first, child last.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork("coin").fit({"coin": ["h", "h", "t"]}, prior="k2")
        >>> bn.posterior_.alpha("coin").values.tolist()
        [3.0, 2.0]
        """
        family, alpha = self._row_parameters(name)
        return Factor.of((*family.parents, family.variable), alpha)

    def mean(self, name: str | None = None) -> Any:
        """Return the posterior mean of a node's table, which is the fitted table; also of fixed nodes and local models."""
        named = self._named(name)
        return super().mean(named) if element_of(named, self._at)[1] else self._tables[self._index(named)]

    def mode(self, name: str) -> Conditional:
        """Return the table of highest posterior density.

        Raises
        ------
        InvalidArgument
            If a row has no single such point: all its parameters are one, or one of them is below (zeros aside).
        """
        family, alpha = self._row_parameters(name)
        impossible = alpha == 0
        excess = np.where(impossible, 0.0, alpha - 1.0)
        vague = (excess < 0).any(axis=-1) | (excess.sum(axis=-1) <= 0)
        vague &= (~impossible).sum(axis=-1) != 1
        if vague.any():
            raise InvalidArgument(
                f"{int(vague.sum())} rows of {name!r} have no single mode: it needs Dirichlet parameters of at least one, "
                f"not all of them one"
            )
        excess = np.where((~impossible).sum(axis=-1, keepdims=True) == 1, ~impossible, excess)
        return ConditionalTable.of(family.variable, family.parents, normalised_rows(excess.astype(float)))

    def variance(self, name: str) -> Factor:
        """Return the posterior variance of every cell of a node's table."""
        family, _ = self._row_parameters(name)
        return Factor.of((*family.parents, family.variable), self.var(name))

    def interval(self, name: str | None = None, level: float = 0.95) -> "pd.DataFrame":  # type: ignore[override]
        """Return a credible interval for every cell of a node's table (equal tails of its Beta distribution).

        Parameters
        ----------
        name
            A node; without it all nodes, with one more level `node` of the index.
        level
            The probability that a cell lies in its interval.

        Returns
        -------
        DataFrame
            Columns `mean`, `low`, `high`; one row a cell, indexed by the states of the parents and the child. For all
            nodes the index has the node, the parents' states as one text, and the child's state.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork("coin").fit({"coin": ["h", "h", "t"]}, prior="k2")
        >>> bn.posterior_.interval("coin").round(3).loc["h"].to_dict()
        {'mean': 0.6, 'low': 0.194, 'high': 0.932}
        """
        import pandas as pd

        check_level("level", level)
        if name is not None:
            family, alpha = self._row_parameters(name)
            axes = (*family.parents, family.variable)
            index: Any = (
                pd.MultiIndex.from_product([v.states for v in axes], names=[v.name for v in axes])
                if family.parents
                else pd.Index(family.variable.states, name=name)
            )
            return pd.DataFrame(self._mean_and_ends(name, level), index=index)
        parts = []
        for node in self.nodes:
            family, alpha = self._row_parameters(node)
            given = [
                ", ".join(f"{p.name}={p.states[i]}" for p, i in zip(family.parents, at, strict=True))
                for at in np.ndindex(*alpha.shape[:-1])
            ]
            levels = [[node], given, family.variable.states]
            index = pd.MultiIndex.from_product(levels, names=["node", "given", "state"])
            parts.append(pd.DataFrame(self._mean_and_ends(node, level), index=index))
        if not parts:
            return pd.DataFrame(columns=["mean", "low", "high"])
        return pd.concat(parts)

    def _mean_and_ends(self, name: str, level: float) -> dict[str, Array]:
        columns = super().mean(name), *super().interval(name, level)
        return {word: np.ravel(c) for word, c in zip(("mean", "low", "high"), columns, strict=True)}

    def to_pandas(self) -> "pd.DataFrame":
        """Return mean and credible interval of every cell of all tables, as `interval()` does."""
        return self.interval()

    @property
    def log_marginal_likelihood(self) -> float:
        """The log probability of the data, tables integrated out (the Bayesian score of the graph).

        Fixed nodes count with their log likelihood.

        Raises
        ------
        InvalidArgument
            If a node is a local model that was fitted (its integral has no closed form) or has no pseudo-counts.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork("coin").fit({"coin": ["h", "h", "t"]}, prior="k2")
        >>> round(bn.posterior_.log_marginal_likelihood, 6)  # 2! 1! / 4!
        -2.484907
        """
        return float(sum(self.by_family().values()))

    def by_family(self) -> dict[str, float]:
        """Return what each node adds to `log_marginal_likelihood`; a tied group counts at its first node."""
        scores = {}
        for lead, n in self._counts.items():
            family = self._learner.families[lead]
            if lead in self._alpha:
                a = self._learner.pseudo[lead]
                assert a is not None
                scores[family.variable.name] = log_marginal(a, self._alpha[lead])
            elif family.fixed or not self._tables[lead].n_parameters:
                scores[family.variable.name] = family_log_likelihood(n, self._tables[lead])
            else:
                why = (
                    f"is a {type(family.before).__name__}, whose parameters have no closed-form integral"
                    if lead in self._learner.local
                    else "has no pseudo-counts"
                )
                raise InvalidArgument(
                    f"{family.variable.name!r} {why}, so the data have no probability with the tables integrated out"
                )
        return scores

    def draw(self, rng: np.random.Generator) -> list[Conditional]:
        """Return one draw of all tables; tied nodes share theirs, fixed nodes and local models keep their value."""
        drawn: list[Conditional] = list(self._tables)
        if not self._alpha:
            return drawn
        flat = _dirichlet_rows(*self._rows, rng)
        first = 0
        for group in self._learner.groups:
            alpha = self._alpha.get(group[0])
            if alpha is None:
                continue
            rows = flat[first : first + alpha.size].reshape(alpha.shape)
            first += alpha.size
            for i in group:
                family = self._learner.families[i]
                drawn[i] = ConditionalTable.of(family.variable, family.parents, rows)
        return drawn

    @cached_property
    def _rows(self) -> tuple[Array, NDArray[np.int64]]:
        """All parameters one after the other, in the order of the groups, and the length of every row."""
        own = [self._alpha[g[0]] for g in self._learner.groups if g[0] in self._alpha]
        lengths = [np.full(a.size // a.shape[-1], a.shape[-1]) for a in own]
        return np.concatenate([a.ravel() for a in own]), np.concatenate(lengths)

    def log_gain(self, counts: Sequence[Counts]) -> float:
        """Return the log probability of more data given those seen, tables integrated out."""
        total = 0.0
        for group in self._learner.groups:
            n = pooled([counts[i] for i in group])
            alpha = self._alpha.get(group[0])
            if alpha is None or isinstance(n, RowCounts):
                total += family_log_likelihood(n, self._tables[group[0]])
            else:
                total += log_marginal(alpha, alpha + n)
        return total

    def __repr__(self) -> str:
        cells = sum(a.size for a in self._alpha.values())
        return f"{type(self).__name__}({len(self.nodes)} of {len(self._at)} nodes, {cells:,} Dirichlet parameters)"

    # -- inside ---------------------------------------------------------------------------------------------------

    def _index(self, name: str) -> int:
        try:
            return self._at[name]
        except (KeyError, TypeError):
            raise UnknownVariable(name, self._at) from None

    def _row_parameters(self, name: str) -> tuple[NodeFamily, Array]:
        i = self._index(name)
        alpha = self._alpha.get(self._lead[i])
        family = self._learner.families[i]
        if alpha is None:
            why = (
                "was kept fixed"
                if family.fixed
                else f"is a {type(self._tables[i]).__name__}"
                if family.local
                else "has no pseudo-counts"
            )
            raise InvalidArgument(f"{name!r} {why}, so its table has no Dirichlet distribution")
        return family, alpha


def log_marginal(prior: Array, posterior: Array) -> float:
    """Return the log probability of counts `posterior - prior` in one given order, rows integrated out.

    A cell without pseudo-counts is impossible: counts there give minus infinity.
    """
    from scipy.special import gammaln

    possible = prior > 0
    if (posterior[~possible] > 0).any():
        return float("-inf")
    cells = gammaln(posterior[possible]).sum() - gammaln(prior[possible]).sum()
    before, after = prior.sum(axis=-1), posterior.sum(axis=-1)
    rows = gammaln(before[before > 0]).sum() - gammaln(after[before > 0]).sum()
    return float(cells + rows)


def _dirichlet_rows(alpha: Array, lengths: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Draw every row, laid out one after the other; in logarithms, since gamma variates of tiny parameters underflow."""
    starts = np.cumsum(lengths) - lengths
    possible = alpha > 0
    # Gamma(a) = Gamma(a + 1) U^(1/a) (Marsaglia & Tsang), in logs
    power = np.log1p(-rng.random(alpha.shape)) / np.where(possible, alpha, 1.0)
    logs = np.where(possible, np.log(rng.standard_gamma(alpha + 1.0)) + power, -np.inf)
    top = np.maximum.reduceat(logs, starts)
    logs[np.repeat(np.isneginf(top), lengths)] = 0.0  # nothing is known of the row: uniform
    top[np.isneginf(top)] = 0.0
    weights = np.exp(logs - np.repeat(top, lengths))
    rows: Array = weights / np.repeat(np.add.reduceat(weights, starts), lengths)
    return rows
