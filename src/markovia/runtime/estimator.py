"""What every estimator with scikit-learn's habits is: scikit-learn's base, shown in notebooks in our own way."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from markovia.runtime.checks import check_options
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

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        """What rows may be, by the names of scikit-learn's tags of inputs."""
        return {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for name, value in self._input_tags.items():
            setattr(tags.input_tags, name, value)
        return tags

    def _repr_html_(self) -> str:
        learned = sorted(n for n in vars(self) if n.endswith("_") and not n.startswith("_"))
        note = f"fitted: {', '.join(learned)}" if learned else "not fitted"
        return html_settings(type(self).__name__, self.get_params(deep=False), note)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


class TransformingEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """An estimator that turns rows into features, which are called by its name and numbered."""


@contextmanager
def fitting(estimator: Any) -> Iterator[None]:
    """Refuse settings that are not what they declare, and leave the estimator as it was if what is inside fails."""
    check_options(estimator)
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
