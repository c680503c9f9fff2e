"""What every estimator with scikit-learn's habits is: its protocol, without loading it at the first touch of a model."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from markovia.runtime.checks import check_options
from markovia.runtime.shown import html_settings
from markovia.runtime.source_text import brief

VERBS = (
    "fit",
    "partial_fit",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "score",
    "transform",
    "decode",
)
"""Verbs whose further arguments scikit-learn may hand on (`set_fit_request`)."""
WIDTH = 80


class Estimator:
    """An estimator as scikit-learn's tools take it: settings by name, clones, searches, pipelines, tags.

    The protocol is written out here, since scikit-learn's own base takes longer to load than most first answers; what
    only its tools ask for (tags, routing) loads it then. A notebook shows a table of the settings, without scripts.

    Examples
    --------
    >>> class Line(Estimator):
    ...     def __init__(self, slope=1.0):
    ...         self.slope = slope
    >>> Line(2.0), Line(), Line().set_params(slope=3.0).get_params()
    (Line(slope=2.0), Line(), {'slope': 3.0})
    >>> "<td>slope</td><td>2.0</td>" in Line(2.0)._repr_html_(), "<script" in Line()._repr_html_()
    (True, False)
    """

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        """What rows may be, by the names of scikit-learn's tags of inputs."""
        return {}

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the settings by name with their defaults; `inspect.Parameter.empty` where there is none."""
        from inspect import signature

        if cls.__init__ is object.__init__:
            return {}
        parameters = [*signature(cls.__init__).parameters.values()][1:]  # without self
        return {q.name: q.default for q in parameters if q.kind is not q.VAR_KEYWORD}

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(cls._defaults())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; those of estimators among them, too, as `setting__name`, unless not `deep`."""
        params: dict[str, Any] = {}
        for name in self._get_param_names():
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params.update((f"{name}__{inner}", v) for inner, v in value.get_params().items())
            params[name] = value
        return params

    def set_params(self, **params: Any) -> Self:
        """Change settings by name, also of estimators among them (`setting__name`); return the estimator."""
        known = self._get_param_names()
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, inside, inner = key.partition("__")
            if name not in known:
                # the words that scikit-learn's tools look for
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {known!r}."
                )
            if inside:
                nested.setdefault(name, {})[inner] = value
            else:
                setattr(self, name, value)
        for name, inner_params in nested.items():  # after the estimators themselves have been set
            getattr(self, name).set_params(**inner_params)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        changed = [
            f"{name}={brief(repr(value), 400)}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(defaults[name])
        ]
        head = type(self).__name__ + "("
        lines, line = [], head
        for number, word in enumerate(changed):
            word += ", " if number < len(changed) - 1 else ")"
            if line != head and len(line) + len(word.rstrip()) > WIDTH:
                lines.append(line.rstrip())
                line = " " * len(head)
            line += word
        return "\n".join([*lines, line]) + ("" if changed else ")")

    def __dir__(self) -> list[str]:
        # without verbs that exist only under other settings (`available_if`)
        return [name for name in super().__dir__() if hasattr(self, name)]

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        tags = BaseEstimator.__sklearn_tags__(self)
        for name, value in self._input_tags.items():
            setattr(tags.input_tags, name, value)
        return tags

    def get_metadata_routing(self) -> Any:
        """Return which further arguments scikit-learn's tools hand on to the verbs (their metadata routing)."""
        return self._routed().get_metadata_routing()

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Say which further arguments of `fit` scikit-learn's tools hand on; for its metadata routing."""
        return self._request("set_fit_request", requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Say which further arguments of `score` scikit-learn's tools hand on; for its metadata routing."""
        return self._request("set_score_request", requests)

    def _request(self, verb: str, requests: Mapping[str, Any]) -> Self:
        routed = self._routed()
        getattr(routed, verb)(**requests)
        self._metadata_request = routed._metadata_request
        return self

    def _routed(self) -> Any:
        """Return an object of scikit-learn's base with the same verbs and the requests made so far."""
        from sklearn.base import BaseEstimator

        verbs = {verb: getattr(type(self), verb) for verb in VERBS if hasattr(type(self), verb)}
        routed = type(type(self).__name__, (BaseEstimator,), verbs)()
        if "_metadata_request" in vars(self):
            routed._metadata_request = self._metadata_request
        return routed

    def _repr_html_(self) -> str:
        learned = sorted(n for n in vars(self) if n.endswith("_") and not n.startswith("_"))
        note = f"fitted: {', '.join(learned)}" if learned else "not fitted"
        return html_settings(type(self).__name__, self.get_params(deep=False), note)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


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


def check_fitted(estimator: Any, attribute: str) -> None:
    """Raise scikit-learn's `NotFittedError` unless `fit` has set an attribute."""
    if not hasattr(estimator, attribute):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, attribute)
