"""The verbs that take rows of data: log probability, prediction, posterior tables."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from markovia.inference.engine import Engine, get_engine
from markovia.models.graphical.arguments import Impossible
from markovia.models.graphical.base import GraphicalModel
from markovia.runtime.devices import Device
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    import pandas as pd


class RowVerbs(GraphicalModel):
    """What a model says about rows of data."""

    @guided
    def log_prob(
        self,
        frame: Any,
        engine: str | Engine = "auto",
        progress: bool | None = None,
        inputs: Mapping[str, Any] | None = None,
        device: Device | None = None,
    ) -> NDArray[np.float64]:
        """Return the log probability of each row; missing cells and columns are summed out.

        A model with functions of parents needs a value of every node: in rows, in the draws that `sample` gives, or, with
        plates as arrays, in one mapping as `query` takes it, whose log density is then one number.

        Parameters
        ----------
        frame
            Rows in any form that `fit` takes: a frame of any library, a mapping of columns, a list of mappings, an array,
            a DuckDB relation, CSV or Parquet files by their paths; a missing cell is None, NaN, NaT or pandas.NA. A column
            that is no variable is not looked at, with a warning.
        engine
            Who sums; "auto" and "junction-tree" run many rows in compiled code, any other is asked row by row.
        progress
            Whether to show a progress bar; by default on a terminal if it takes long.
        inputs
            Constants and covariates of a model with functions of parents.
        device
            As in `query`: by default the engine chooses; "cpu", or "gpu" for a model of tables.

        Returns
        -------
        array
            One number a row; minus infinity for an impossible row.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.sprinkler()
        >>> bn.log_prob([{"cloudy": "yes", "sprinkler": "no", "rain": "yes", "wet": "yes"}]).round(4).tolist()
        [-1.127]
        """
        from markovia.models.graphical.data_rows import rows

        return rows.log_prob(self, frame, get_engine(engine, None, device), progress, inputs)

    @overload
    def predict(
        self,
        frame: Any,
        target: str,
        engine: str | Engine = "auto",
        progress: bool | None = None,
        impossible: Impossible = "raise",
        given: Any = None,
        device: Device | None = None,
    ) -> "pd.Series[Any]": ...

    @overload
    def predict(
        self,
        frame: Any,
        target: Sequence[str],
        engine: str | Engine = "auto",
        progress: bool | None = None,
        impossible: Impossible = "raise",
        given: Any = None,
        device: Device | None = None,
    ) -> "pd.DataFrame": ...

    @guided
    def predict(
        self,
        frame: Any,
        target: str | Sequence[str],
        engine: str | Engine = "auto",
        progress: bool | None = None,
        impossible: Impossible = "raise",
        given: Any = None,
        device: Device | None = None,
    ) -> "pd.Series[Any] | pd.DataFrame":
        """Return the most probable state of the target for every row, from the row's other cells.

        A column of the target itself is ignored; missing cells and columns are summed out. For several targets
        each column holds the mode of that target's own posterior, and of a number its mean. The arguments are those of
        `predict_proba`.

        Returns
        -------
        Series or DataFrame
            Aligned with the rows' index, where they have one.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.sprinkler()
        >>> bn.predict([{"wet": "yes"}, {"wet": None, "cloudy": "no"}], "rain").tolist()
        ['yes', 'no']
        """
        from markovia.models.graphical.data_rows import rows

        names = self._names(target)
        chosen = get_engine(engine, None, device)
        table = rows.predict(self, frame, names, chosen, progress, impossible, given)
        return table[target] if isinstance(target, str) else table

    @guided
    def predict_proba(
        self,
        frame: Any,
        target: str | Sequence[str],
        engine: str | Engine = "auto",
        progress: bool | None = None,
        impossible: Impossible = "raise",
        given: Any = None,
        device: Device | None = None,
    ) -> "pd.DataFrame":
        """Return the posterior of the target for every row, one column a state; of a number, its mean and deviation.

        Parameters
        ----------
        frame
            Rows in any form that `log_prob` takes; a missing cell is None or NaN. A column of the target itself is
            ignored; missing cells and columns are summed out.
        target
            A name, or several; then the columns are pairs (target, state).
        engine
            Who answers; "auto" and "junction-tree" run many rows in compiled code, any other is asked row by row.
        progress
            Whether to show a progress bar; by default on a terminal if it takes long.
        impossible
            What becomes of a row of probability zero: "raise", "nan" (no answer), or "prior" (the answer without
            evidence).
        given
            In a model with plates: a posterior made of draws, or evidence to draw it from. The rows are then new elements
            of the target's plate, with their covariates (arrays by name, too; None for those of the data), and what is
            predicted are averages of predictive draws.
        device
            As in `log_prob`.

        Raises
        ------
        ImpossibleEvidence
            Unless told otherwise, if a row has probability zero; the error names the first such row and a minimal conflict
            in it.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.sprinkler()
        >>> print(bn.predict_proba({"wet": ["yes", "no"]}, "rain").round(4))
        state      no     yes
        0      0.2921  0.7079
        1      0.8813  0.1187
        """
        from markovia.models.graphical.data_rows import rows

        names = self._names(target)
        chosen = get_engine(engine, None, device)
        table = rows.predict_proba(self, frame, names, chosen, progress, impossible, given)
        return cast("pd.DataFrame", table[target]) if isinstance(target, str) else table
