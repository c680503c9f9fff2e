"""Granger tests, which ask whether the past of one series helps to predict another beyond that other's own past.

Two regressions, with and without the lags of the cause, are compared by an F test and by the likelihood ratio. Lags do not
reach across the beginnings of sequences. Reference: Granger (1969). Cost: two least-squares fits for each pair.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.sequences.sequences import Lengths, read_sequences
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count, check_level

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class GrangerTest:
    """One test.

    Attributes
    ----------
    cause, effect
        The columns.
    lags, n
        Steps back, and rows of the regressions.
    f, f_p, df
        The F statistic, its p-value, and the degrees of freedom left.
    lr, lr_p
        Twice the log likelihood ratio, and its p-value by the chi-squared distribution.
    """

    cause: str
    effect: str
    lags: int
    n: int
    f: float
    f_p: float
    df: int
    lr: float
    lr_p: float


class GrangerTests(Sequence[GrangerTest]):
    """Tests of all pairs; a list that can be a frame, or a graph of what is found at a level."""

    def __init__(self, tests: Iterable[GrangerTest], columns: Sequence[str]) -> None:
        self._tests, self.columns = list(tests), list(columns)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, tuple):
            for test in self._tests:
                if (test.cause, test.effect) == i:
                    return test
            raise UnknownVariable(i, [(t.cause, t.effect) for t in self._tests], "the tests")
        return self._tests[i]

    def __len__(self) -> int:
        return len(self._tests)

    def __iter__(self) -> Iterator[GrangerTest]:
        return iter(self._tests)

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row a test."""
        import pandas as pd

        return pd.DataFrame([vars(t) for t in self._tests])

    def graph(self, alpha: float = 0.05) -> MixedGraph | DAG:
        """Return the graph of the pairs whose F test is below `alpha`; two series may cause each other."""
        check_level("alpha", alpha)
        found = [(t.cause, t.effect) for t in self._tests if t.f_p < alpha]
        mutual = {(a, b) for a, b in found if (b, a) in found}
        if not mutual:
            try:
                return DAG(found, nodes=self.columns)
            except ValueError:
                pass
        edges = [
            (a, "<->" if (a, b) in mutual else "-->", b) for a, b in found if (b, a) not in mutual or a < b
        ]
        return MixedGraph([f"{a} {mark} {b}" for a, mark, b in edges], nodes=self.columns)

    def __repr__(self) -> str:
        return f"GrangerTests({len(self)} tests of {', '.join(self.columns)})"


def granger(
    data: Any,
    lags: int = 1,
    *,
    lengths: Lengths = None,
    by: str | None = None,
    columns: Sequence[str] | None = None,
    conditional: bool = False,
) -> GrangerTests:
    """Test for every ordered pair of columns whether one's past helps to predict the other.

    Parameters
    ----------
    data, lengths, by
        Series of numbers with named columns, one row a step; several sequences as `HMM.fit` takes them.
    lags
        How many steps back to look.
    columns
        The columns to test; all by default.
    conditional
        Whether the pasts of all other columns are given too, so that only direct influence counts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=300)
    >>> y = np.concatenate([[0.0], 0.8 * x[:-1]]) + 0.5 * rng.normal(size=300)
    >>> tests = granger({"x": x, "y": y}, lags=2)
    >>> tests["x", "y"].f_p < 1e-6, tests["y", "x"].f_p > 0.01
    (True, True)
    """
    from scipy.stats import chi2
    from scipy.stats import f as f_law

    check_count("lags", lags, 1)
    rows = read_sequences(data, lengths, by=by, columns=columns)
    values = rows.numbers(missing=False)
    names = list(rows.columns) or [str(j) for j in range(values.shape[1])]
    if len(names) < 2:
        raise InvalidArgument("a Granger test compares two columns, and there is one")
    later = np.concatenate(
        [np.arange(a + lags, b) for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
    ).astype(np.int64)
    n = len(later)
    past = {
        c: np.column_stack([values[later - k, j] for k in range(1, lags + 1)]) for j, c in enumerate(names)
    }
    width = 1 + lags * (len(names) if conditional else 2)
    if n <= width:
        raise InvalidArgument(
            f"{n} steps with {lags} before them are too few for {width} coefficients; take fewer lags="
        )
    found = []
    for j, effect in enumerate(names):
        y = values[later, j]
        for cause in names:
            if cause == effect:
                continue
            others = [c for c in names if conditional and c not in (cause, effect)]
            base = [np.ones((n, 1)), past[effect], *(past[c] for c in others)]
            short, full = _residual(base, y), _residual([*base, past[cause]], y)
            df = n - sum(part.shape[1] for part in base) - lags
            if full <= 1e-13 * short or full <= 0.0:
                raise InvalidArgument(f"{effect!r} is predicted without error, so there is nothing to test")
            f = (short - full) / lags / (full / df)
            lr = n * np.log(short / full)
            found.append(
                GrangerTest(
                    cause,
                    effect,
                    lags,
                    n,
                    float(f),
                    float(f_law.sf(f, lags, df)),
                    df,
                    float(lr),
                    float(chi2.sf(lr, lags)),
                )
            )
    return GrangerTests(found, names)


def _residual(parts: Sequence[Array], y: Array) -> float:
    """Return the sum of squares that least squares leave."""
    design = np.hstack(list(parts))
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(left @ left)
