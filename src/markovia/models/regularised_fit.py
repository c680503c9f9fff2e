"""Fitting a model with few labels by posterior regularisation: rules and neighbours teach what rows without labels are.

Method: an EM-like ascent (Ganchev et al. 2010; Hu et al. 2016). The E-step takes the model's posteriors of labels and finds
the nearest distributions q that rules and neighbours allow (`markovia.learning.fields.regularised_labels`); the M-step fits
the model to the labelled rows and, with weight alpha, to the others with labels by q. It climbs

    sum over labelled rows of log p(x, y)  +  alpha (sum over the others of log p(x)  -  what q had to give way)

where a classifier has p(y | x) in place of p(x, y) and nothing in place of p(x). Cost of a step: a fit, and the posteriors.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnknownState, UnknownVariable
from markovia.learning.fields.regularised_labels import (
    LabelConstraints,
    LabelRule,
    RegularisedLabels,
    regularised_labels,
)
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.optimise.ascent import climb
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import NOT_NEGATIVE, Whole, check, numbers
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class RegularisedFit(InNotebooks):
    """A model fitted with rules and neighbours.

    Attributes
    ----------
    model, probabilities
        The fitted copy; q, the label of each row as model, rules and neighbours see it together, a column a label.
    weights, reached
        Of rules: given or learned, and the share of the rows a rule speaks of in which it is expected to hold.
    history, converged, stopped, gap
        The objective before each step, whether it settled, what cut it, and by how much the last E-step may be off.
    """

    model: Any
    probabilities: "pd.DataFrame"
    weights: Array
    reached: Array
    history: list[float] = field(repr=False)
    converged: bool
    stopped: str | None
    gap: float

    def __repr__(self) -> str:
        ended = "settled" if self.converged else self.stopped or "still gaining"
        rules = ", ".join(f"{w:.3g} ({r:.0%})" for w, r in zip(self.weights, self.reached, strict=True))
        shown = f"; weights of rules, and how often they hold: {rules}" if rules else ""
        what = f"{type(self.model).__name__}, {len(self.probabilities):,} rows"
        return f"RegularisedFit({what}, {ended} after {len(self.history)} steps{shown})"


def fit_regularised(
    model: Any,
    data: Any,
    target: str,
    *,
    rules: Iterable[LabelRule] = (),
    neighbours: Any = None,
    smoothness: float = 1.0,
    alpha: float = 1.0,
    max_iter: int = 50,
    tol: float = 1e-6,
    time_limit: float | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> RegularisedFit:
    """Fit a model to rows of which some have a label, with rules and neighbours for the others.

    Parameters
    ----------
    model
        A Bayesian network with the label as a node, or a classifier with `predict_proba`; it stays as it is.
    data
        A frame or mapping of columns; the label is missing in rows that have none.
    target
        The column of the label.
    rules
        Objects of `LabelRule`, about the rows without labels.
    neighbours
        Pairs (i, j) of numbers of rows, or (i, j, strength), that are drawn to the same label by total variation.
    smoothness
        What strengths of neighbours are multiplied by.
    alpha
        What a row without a label counts; 0 is the fit to labelled rows alone.
    max_iter, tol
        Steps at most, and the gain a row at which they end.
    time_limit, progress
        Seconds after which it ends with what there is; whether to show a bar.
    **settings
        Passed on to the model's `fit`, such as `prior="bdeu"`.

    Examples
    --------
    >>> import markovia as mk
    >>> data = {"spam": ["no", "yes", "no", None, None, None], "link": [0, 1, 0, 1, 1, 0], "long": [1, 1, 0, 0, 0, 1]}
    >>> bn = mk.BayesianNetwork("spam->link; spam->long")
    >>> rule = mk.learning.LabelRule(lambda rows: rows["link"] == 1, "yes", confidence=0.95)
    >>> found = mk.fit_regularised(bn, data, "spam", rules=[rule], prior="laplace")
    >>> found.probabilities["yes"].round(2).tolist(), found.reached.round(2).tolist()
    ([0.0, 1.0, 0.0, 0.95, 0.95, 0.19], [0.95])
    >>> found
    RegularisedFit(BayesianNetwork, 6 rows, settled after ...)
    """
    import pandas as pd

    check("alpha", alpha, NOT_NEGATIVE)
    check("smoothness", smoothness, NOT_NEGATIVE)
    check("max_iter", max_iter, Whole(1))
    frame = pd.DataFrame(data).reset_index(drop=True)
    if target not in frame:
        raise UnknownVariable(target, [str(c) for c in frame.columns], "the data")
    known = frame[target].notna().to_numpy()
    if not known.any():
        raise InvalidArgument(f"no row has a label in {target!r}; give some")
    kind = _NetworkLearner if isinstance(model, GraphicalModel) else _ClassifierLearner
    learner = kind(model, frame, target, settings)
    labels = learner.labels
    certain = np.zeros((len(frame), len(labels)))
    certain[known, [labels.index(label) for label in frame.loc[known, target]]] = 1.0
    given = _constraints(list(rules), frame.drop(columns=target), known, labels, neighbours, smoothness)

    def e_step(taught: Any, dual: Array | None) -> tuple[RegularisedLabels, float]:
        joint = learner.log_joint(taught)
        mass = np.logaddexp.reduce(joint, axis=1)
        lost = ~np.isfinite(mass) & ~known
        if lost.any():
            raise InvalidArgument(
                f"row {int(lost.argmax())} is impossible under what labelled rows taught; give a prior, such as "
                "prior='laplace'"
            )
        with np.errstate(divide="ignore"):
            log_p = np.where(known[:, None], np.log(certain), joint - mass[:, None])
        q = regularised_labels(log_p, given, dual)
        return q, float(joint[certain > 0].sum()) + alpha * (float(mass[~known].sum()) - q.objective)

    def step(state: tuple[Any, Array | None]) -> tuple[tuple[Any, Array | None], float]:
        q, value = e_step(*state)
        counts = np.where(known[:, None], certain, alpha * q.probabilities)
        return (learner.fitted(counts), q.dual), value

    start: tuple[Any, Array | None] = learner.fitted(certain), None
    found = climb(
        step, start, max_iter=max_iter, tol=tol, size=len(frame), may_fall=True,
        time_limit=time_limit, progress=progress, name="posterior regularisation",
    )  # fmt: skip
    found.warn(tol)
    q, _ = e_step(*found.state)  # by the model that is handed back
    return RegularisedFit(
        found.state[0], pd.DataFrame(q.probabilities, columns=labels), q.weights, q.reached, found.history,
        found.converged, found.stopped, q.gap,
    )  # fmt: skip


def _constraints(
    rules: Sequence[LabelRule], rows: "pd.DataFrame", known: Flags, labels: list[Any], neighbours: Any, smoothness: float
) -> LabelConstraints:  # fmt: skip
    """Read rules and neighbours; rules do not speak of rows that have a label."""
    n, k = len(rows), len(labels)
    when, then = np.zeros((len(rules), n)), np.zeros((len(rules), k), dtype=bool)
    for i, rule in enumerate(rules):
        wrong = f"when= of rule {i} returns one number from 0 to 1 a row, {n} of them"
        degree = numbers(np.asarray(rule.when(rows)), wrong)
        if degree.shape != (n,) or not ((degree >= 0) & (degree <= 1)).all():
            raise InvalidArgument(wrong)
        when[i] = np.where(known, 0.0, degree)
        for label in rule.then if isinstance(rule.then, list | tuple | set | frozenset) else [rule.then]:
            if label not in labels:
                raise UnknownState("then", label, labels)
            then[i, labels.index(label)] = True
    wrong = f"neighbours= are pairs of different rows, 0 to {n - 1}, with a strength of 0 or more where they have one"
    pairs = np.zeros((0, 2)) if neighbours is None or not len(neighbours) else numbers(neighbours, wrong)
    if pairs.ndim != 2 or pairs.shape[1] not in (2, 3):
        raise InvalidArgument(wrong)
    edges, strengths = pairs[:, :2], pairs[:, 2] if pairs.shape[1] == 3 else np.ones(len(pairs))
    inside = (edges % 1 == 0) & (edges >= 0) & (edges < n)
    if not inside.all() or (edges[:, 0] == edges[:, 1]).any() or not (strengths >= 0).all():
        raise InvalidArgument(wrong)
    weights = np.array([r.weight for r in rules], dtype=np.float64)  # None becomes NaN
    shares = np.array([r.confidence for r in rules], dtype=np.float64)
    return LabelConstraints(when, then, weights, shares, edges.astype(np.int64), smoothness * strengths)


class _NetworkLearner:
    """A network with the label as a node: rows are repeated for each label, and weighted by rows x labels."""

    def __init__(self, model: Any, frame: "pd.DataFrame", target: str, settings: dict[str, Any]) -> None:
        import pandas as pd

        if target not in model.variables:
            raise UnknownVariable(target, list(model.variables), "the model")
        self.labels = _seen_labels(frame, target)
        if not (isinstance(model, BayesianNetwork) and target in model.unstated()):
            states = list(model.states(target))
            for label in (label for label in self.labels if label not in states):
                raise UnknownState(target, label, states)
            self.labels = states
        self.model, self.settings = model, settings
        self.rows = pd.concat([frame.assign(**{target: label}) for label in self.labels], ignore_index=True)

    def fitted(self, weights: Array) -> Any:
        return self.model.copy().fit(self.rows, weights=weights.T.ravel(), **self.settings)

    def log_joint(self, model: Any) -> Array:
        """Return log p of each row with each label, rows x labels."""
        return np.asarray(model.log_prob(self.rows)).reshape(len(self.labels), -1).T


def _seen_labels(frame: "pd.DataFrame", target: str) -> list[Any]:
    return sorted(frame[target].dropna().unique().tolist(), key=str)


class _ClassifierLearner:
    """A classifier: rows are repeated for each label that weighs something."""

    def __init__(self, model: Any, frame: "pd.DataFrame", target: str, settings: dict[str, Any]) -> None:
        if not hasattr(model, "predict_proba"):
            raise InvalidArgument(
                f"a Bayesian network or a classifier with predict_proba is needed, not {type(model).__name__}"
            )
        self.model, self.settings, self.rows = model, settings, frame.drop(columns=target)
        self.labels = _seen_labels(frame, target)

    def fitted(self, weights: Array) -> Any:
        from sklearn.base import clone

        label, row = np.nonzero(weights.T)
        rows, y, own = self.rows.iloc[row], np.array(self.labels)[label], weights[row, label]
        return clone(self.model).fit(rows, y, sample_weight=own, **self.settings)

    def log_joint(self, model: Any) -> Array:
        order = [list(model.classes_).index(label) for label in self.labels]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(model.predict_proba(self.rows)[:, order]))
