"""What a directed network says about data: log likelihoods, scores, and missing cells filled in."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.engine import TABLES, get_engine
from markovia.models.graphical.data_rows import number_rows, rows
from markovia.models.graphical.directed_model import DirectedModel
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice
from markovia.runtime.keyword_advice import guided
from markovia.runtime.seeds import Seed

if TYPE_CHECKING:
    import pandas as pd

    from markovia.data.tables.row_sources import CodedTable
    from markovia.factors.tables.variable import Variable


class ScoreVerbs(DirectedModel):
    """Scoring and completing rows of data with a directed network; see `BayesianNetwork`."""

    @overload
    def log_likelihood(
        self,
        data: Any,
        *,
        by: None = None,
        weights: Any = None,
        latent: str | Iterable[str] | None = None,
    ) -> float: ...

    @overload
    def log_likelihood(
        self,
        data: Any,
        *,
        by: Literal["family"],
        weights: Any = None,
        latent: str | Iterable[str] | None = None,
    ) -> "pd.Series[float]": ...

    @overload
    def log_likelihood(
        self,
        data: Any,
        *,
        by: Literal["row"],
        weights: Any = None,
        latent: str | Iterable[str] | None = None,
    ) -> Array: ...

    @guided
    def log_likelihood(
        self,
        data: Any,
        *,
        by: str | None = None,
        weights: Any = None,
        latent: str | Iterable[str] | None = None,
    ) -> "float | Array | pd.Series[float]":
        """Return the log likelihood of data under the network, in nats: in total, by node, or by row.

        Parameters
        ----------
        data
            Rows in any form that `fit` takes. Missing cells and columns are summed out.
        by
            None for the total; "family" for a Series with what each node adds given its parents (complete rows only,
            since with missing cells the sum does not fall apart); "row" for an array with one number a row, unweighted.
        weights
            The name of a column, or one number a row.
        latent
            Variables to sum out. By default those that have no column, or were latent in the last fit.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.sprinkler()
        >>> rows = bn.sample(100, seed=0)
        >>> bn.log_likelihood(rows, by="family").round(2).to_dict()
        {'cloudy': -69.31, 'sprinkler': -62.77, 'rain': -54.2, 'wet': -21.03}
        >>> round(bn.log_likelihood(rows), 2)
        -207.31
        """
        from markovia.data.tables.reading import ordered_rows
        from markovia.data.tables.row_sources import CodedTable
        from markovia.learning.tables.row_counts import family_counts, family_log_likelihood
        from markovia.models.graphical.fitting import families_of, read_rows

        check_choice("by", by, ("family", "row"), none=True)
        model = rows.about(self, data)
        if not rows.kinds_of(model) <= TABLES:
            return number_rows.log_likelihood(model, data, by, weights)
        hidden = model._latent(latent, data)
        source = read_rows(model, data, weights, None, hidden)
        gaps = sum(source.missing().values())
        if by == "family" and (gaps or hidden):
            what = f"{gaps:,} cells are missing" if gaps else f"{next(iter(hidden))!r} is not observed"
            raise InvalidArgument(
                f"{what}, so the log likelihood is no sum over nodes; ask for the total or by='row'"
            )
        if by == "row":
            known = {n: v for n, v in model._variables.items() if n not in hidden}
            in_order = (
                source if isinstance(source, CodedTable) else ordered_rows(data, known, others="ignore")
            )
            return rows.log_prob(model, in_order, get_engine("auto"), None)
        if gaps or hidden:
            return model._summed_log_likelihood(source.in_memory())
        families = families_of(model, source.variables, ())
        counts = family_counts(source, families)
        scores = {
            f.variable.name: family_log_likelihood(n, f.before)
            for f, n in zip(families, counts, strict=True)
            if f.before is not None
        }
        if by is None:
            return float(sum(scores.values()))
        import pandas as pd

        return pd.Series(scores, name="log_likelihood", dtype=np.float64)

    @guided
    def score(self, data: Any, *, weights: Any = None, latent: str | Iterable[str] | None = None) -> float:
        """Return the mean log likelihood a row, in nats; missing cells and latent variables are summed out.

        The arguments are those of `log_likelihood`.

        Examples
        --------
        >>> import markovia as mk
        >>> round(mk.BayesianNetwork("coin").fit({"coin": ["h", "t"]}).score({"coin": ["h", "h", "t"]}), 6)
        -0.693147
        """
        from markovia.models.graphical.fitting import read_rows

        model = rows.about(self, data)
        if not rows.kinds_of(model) <= TABLES:
            logs, given = number_rows.weighted_logs(model, data, weights)
            if not given.sum() > 0:
                raise InvalidArgument("there are no rows to score")
            return float(given[given > 0] @ logs[given > 0] / given.sum())
        hidden = model._latent(latent, data)
        source = read_rows(model, data, weights, None, hidden)
        if not source.total > 0:
            raise InvalidArgument("there are no rows to score")
        return float(model.log_likelihood(source, latent=hidden)) / source.total

    @guided
    def impute(self, frame: Any, method: str = "map", *, seed: Seed = None) -> "pd.DataFrame":
        """Return the rows with every missing cell filled in; variables without a column get one.

        Parameters
        ----------
        frame
            Rows in any form that `fit` takes; a missing cell is None or NaN. Columns that are no variables come back as
            they are.
        method
            "map": the most probable states of a row's missing cells together. "mode": the most probable state of each
            cell on its own. "sample": a draw from their posterior distribution (for multiple imputation).
        seed
            For draws.

        Raises
        ------
        ImpossibleEvidence
            If a row has probability zero.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.sprinkler()
        >>> print(bn.impute([{"cloudy": "yes", "wet": "yes"}, {"cloudy": None, "wet": "no"}]))
          cloudy  wet sprinkler rain
        0    yes  yes        no  yes
        1     no   no        no   no
        """
        from markovia.models.graphical.data_rows.imputation import impute

        return impute(self, frame, method, seed)

    def _latent(self, latent: str | Iterable[str] | None, data: Any) -> "dict[str, Variable]":
        """Return the variables that have no column in the data."""
        from markovia.data.tables.reading import column_names

        if latent is None:
            seen = set(getattr(data, "variables", None) or column_names(data))
            some = not seen.isdisjoint(self._variables)  # else the columns have no names, or wrong ones
            fitted = () if self.fit_ is None else self.fit_.details.get("latent", ())
            return {n: v for n, v in self._variables.items() if n in fitted or (some and n not in seen)}
        return {n: self.variable(n) for n in ([latent] if isinstance(latent, str) else latent)}

    def _summed_log_likelihood(self, table: "CodedTable") -> float:
        """Return the log likelihood of rows with missing cells or without columns of latent variables."""
        logs = rows.log_prob(self, table, get_engine("auto"), None)
        if table.weights is None:
            return float(logs.sum())
        some = table.weights > 0  # an impossible row of weight zero does not count
        return float(table.weights[some] @ logs[some])
