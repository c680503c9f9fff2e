"""What every estimator with scikit-learn's habits is: scikit-learn's base, shown in notebooks in our own way."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import BaseEstimator

from markovia.runtime.shown import html_settings


class Estimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose notebook view is a table of its settings, without scikit-learn's scripts.

    Examples
    --------
    >>> class Line(Estimator):
    ...     def __init__(self, slope=1.0):
    ...         self.slope = slope
    >>> "<td>slope</td><td>2.0</td>" in Line(2.0)._repr_html_(), "<script" in Line()._repr_html_()
    (True, False)
    """

    def _repr_html_(self) -> str:
        learned = sorted(n for n in vars(self) if n.endswith("_") and not n.startswith("_"))
        note = f"fitted: {', '.join(learned)}" if learned else "not fitted"
        return html_settings(type(self).__name__, self.get_params(deep=False), note)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


@contextmanager
def kept_on_failure(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was if what is inside fails."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
