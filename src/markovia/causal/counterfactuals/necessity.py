"""Did it take the treatment, would the treatment do: probabilities of causation (Pearl, 1999; Tian and Pearl, 2000).

With a treatment x against x' and an event y:

    necessity     PN  = P(y'_{x'} | x, y)     those treated with the event: it would not have been without
    sufficiency   PS  = P(y_x | x', y')       those without both: the treatment would have done it
    both          PNS = P(y_x, y'_{x'})
    on the treated ETT = P(y_x | x) - P(y_{x'} | x)

From a structural model they are numbers. From rows or tables they are bounds: wide without experiments, narrow with P(y_x)
and P(y_{x'}), and numbers where the treatment never prevents the event (monotonicity).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.causal.counterfactuals.bounded_posterior import BoundedPosterior
from markovia.causal.counterfactuals.structural_model import StructuralModel
from markovia.causal.two_levels import TREATED, UNTREATED, second_of_two
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, check_known
from markovia.factors.tables.evidence import Not
from markovia.factors.tables.variable import State, Variable
from markovia.inference.posterior import Posterior
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.shown import InNotebooks, aligned

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Causation(InNotebooks):
    """Probabilities of causation, each a pair of bounds; the two are one number where it is determined.

    Attributes
    ----------
    necessity, sufficiency, both
        PN, PS and PNS.
    on_treated
        The effect on the treated.
    note
        What they rest on.
    """

    necessity: Bounds
    sufficiency: Bounds
    both: Bounds
    on_treated: Bounds
    note: str

    def __str__(self) -> str:
        rows = [
            [what, *(f"{x:.4g}" for x in pair)]
            for what, pair in (
                ("necessity", self.necessity),
                ("sufficiency", self.sufficiency),
                ("both", self.both),
                ("effect on the treated", self.on_treated),
            )
        ]
        return f"{aligned(['', 'lower', 'upper'], rows)}\n[{self.note}]"

    __repr__ = __str__


def necessity(
    source: Any,
    treatment: str,
    outcome: str,
    *,
    treated: State | None = None,
    control: State | None = None,
    event: State | None = None,
    experiment: Mapping[State, float] | None = None,
    exogenous: bool = False,
    monotone: bool = False,
    mechanism: str | Mapping[str, str] | None = None,
) -> Causation:
    """Return the probabilities that a treatment was necessary, sufficient, or both, for an event.

    Parameters
    ----------
    source
        A `StructuralModel`, a `BayesianNetwork`, or rows.
    treatment, outcome
        Two variables with states.
    treated, control, event
        The states of the treatment that are compared, and that of the outcome; by default the last, the first and the last
        of a model. With rows, states in words that do not tell the control ("no", "placebo", ...) have to be named.
    experiment
        With rows: the share of the event in an experiment, by state of the treatment.
    exogenous
        With rows: nothing confounds treatment and outcome, so that the rows are an experiment themselves.
    monotone
        With rows: the treatment never prevents the event.
    mechanism
        With a network: as in `BayesianNetwork.counterfactual`; without it, bounds.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("drug", p=[0.5, 0.5])
    >>> bn.add("death", parents=["drug"], p=[[0.986, 0.014], [0.984, 0.016]])
    >>> necessity(bn, "drug", "death")
                              lower    upper
    necessity                 0.125        1
    sufficiency            0.002028  0.01623
    both                      0.002    0.016
    effect on the treated     0.002    0.002
    [all functions behind the tables; mechanism= chooses one]
    """
    if treatment == outcome:
        raise InvalidArgument(f"{treatment!r} is its own outcome; name two variables")
    if isinstance(source, StructuralModel | BayesianNetwork):
        if experiment is not None or exogenous or monotone:
            raise InvalidArgument(
                "experiment=, exogenous= and monotone= are for rows; a model says these things itself"
            )
        x, y = source.variable(treatment), source.variable(outcome)
        states = _states(x, y, treated, control, event)
        return _of_model(source, x, y, *states, mechanism)
    if mechanism is not None:
        raise InvalidArgument(
            "mechanism= is for networks; with rows say monotone=True, or give an experiment"
        )
    return _of_rows(source, treatment, outcome, treated, control, event, experiment, exogenous, monotone)


def causation_bounds(
    joint: Any, experiment: tuple[float, float] | None = None, *, monotone: bool = False
) -> tuple[Bounds, Bounds, Bounds, Bounds]:
    """Return bounds on PN, PS, PNS and the effect on the treated from P(x, y) and P(y_{x'}), P(y_x).

    Parameters
    ----------
    joint
        P(x, y) with rows x', x and columns y', y.
    experiment
        P(y_{x'}) and P(y_x), where they are known.
    monotone
        Whether the treatment never prevents the event.

    Examples
    --------
    >>> pn, ps, pns, ett = causation_bounds([[0.25, 0.25], [0.1, 0.4]], (0.5, 0.8))
    >>> [round(x, 4) for x in pn]
    [0.375, 0.625]
    """
    p = np.asarray(joint, dtype=np.float64)
    if p.shape != (2, 2) or (p < 0).any() or abs(p.sum() - 1) > 1e-6:
        raise InvalidArgument("the joint distribution is a 2 x 2 table of probabilities that sum to one")
    if (p[1].sum() == 0) or (p[0].sum() == 0):
        raise InvalidArgument("the treatment is constant: somebody has to be treated, and somebody not")
    y, x = p[:, 1].sum(), p[1].sum()
    if experiment is None:
        prevented = 0.0 if monotone else (p[1, 1] / x) - 1.0
        return (0.0, 1.0), (0.0, 1.0), (0.0, p[1, 1] + p[0, 0]), (prevented, p[1, 1] / x)
    without, with_ = experiment
    slack = 1e-9
    if not (
        p[0, 1] - slack <= without <= p[0, 1] + x + slack
        and p[1, 1] - slack <= with_ <= p[1, 1] + 1 - x + slack
    ):
        raise InvalidArgument(
            "experiment and rows contradict each other: P(y_x) lies between P(x, y) and P(x, y) + P(x')"
        )
    ett = p[1, 1] / x - (without - p[0, 1]) / x
    if monotone:
        if with_ < without - slack or without > y + slack or with_ < y - slack:
            raise InvalidArgument("a treatment that never prevents the event has P(y_{x'}) <= P(y) <= P(y_x)")
        pn, ps, pns = (y - without) / p[1, 1], (with_ - y) / p[0, 0], with_ - without
        return (pn, pn), (ps, ps), (pns, pns), (ett, ett)
    least = max(0.0, with_ - without, y - without, with_ - y)
    most = min(with_, 1 - without, p[1, 1] + p[0, 0], with_ - without + p[1, 0] + p[0, 1])
    needed = _clipped((y - without) / p[1, 1], (1 - without - p[0, 0]) / p[1, 1]) if p[1, 1] else (0.0, 1.0)
    enough = _clipped((with_ - y) / p[0, 0], (with_ - p[1, 1]) / p[0, 0]) if p[0, 0] else (0.0, 1.0)
    return needed, enough, (least, most), (ett, ett)


def _clipped(low: float, high: float) -> Bounds:
    return max(0.0, float(low)), min(1.0, float(high))


def _states(x: Variable, y: Variable, treated: Any, control: Any, event: Any) -> tuple[State, State, State]:
    one = x.states[-1] if treated is None else x.states[x.index(treated)]
    zero = x.states[0] if control is None else x.states[x.index(control)]
    if one == zero:
        raise InvalidArgument(
            f"the treatment {x.name!r} is compared with itself; treated= and control= are two states"
        )
    return one, zero, y.states[-1] if event is None else y.states[y.index(event)]


def _of_model(
    model: StructuralModel | BayesianNetwork,
    x: Variable,
    y: Variable,
    one: State,
    zero: State,
    event: State,
    mechanism: Any,
) -> Causation:
    more = {} if isinstance(model, StructuralModel) else {"mechanism": mechanism}

    def imagined(source: Any, facts: Mapping[str, Any], do: Mapping[str, Any], happens: bool) -> Bounds:
        """Return bounds on the event (or its absence) in the other world."""
        answer = source.counterfactual(y.name, given=facts, do=do, **more)
        if isinstance(answer, BoundedPosterior):
            low, high = answer[event]
            return (low, high) if happens else (1 - high, 1 - low)
        p = float(answer[event])
        return (p, p) if happens else (1 - p, 1 - p)

    rest = [s for s in y.states if s != event]
    away: Any = rest[0] if len(rest) == 1 else Not(event)
    pn = imagined(model, {x.name: one, y.name: event}, {x.name: zero}, False)
    ps = imagined(model, {x.name: zero, y.name: away}, {x.name: one}, True)
    done = model.do({x.name: one})
    share = float(_table(done.query(y.name))[event])
    both = imagined(done, {y.name: event}, {x.name: zero}, False) if share else (0.0, 0.0)
    seen = float(_table(model.query(y.name, given={x.name: one}))[event])
    other = imagined(model, {x.name: one}, {x.name: zero}, True)
    bounded = any(low < high for low, high in (pn, ps, both))
    note = (
        "all functions behind the tables; mechanism= chooses one" if bounded else "the model determines them"
    )
    if mechanism is not None:
        note = f"mechanism {mechanism}"
    return Causation(pn, ps, (share * both[0], share * both[1]), (seen - other[1], seen - other[0]), note)


def _table(answer: Any) -> Posterior:
    assert isinstance(answer, Posterior)
    return answer


def _of_rows(
    rows: Any,
    treatment: str,
    outcome: str,
    treated: Any,
    control: Any,
    event: Any,
    experiment: Mapping[State, float] | None,
    exogenous: bool,
    monotone: bool,
) -> Causation:
    frame = as_frame(rows)
    for name in (treatment, outcome):
        check_known([name], frame.columns, "the rows")
        if frame[name].isna().any():
            raise InvalidArgument(f"the column {name!r} has missing cells; drop or impute those rows first")
    x, y = (Variable(n, sorted(frame[n].unique().tolist())) for n in (treatment, outcome))
    if len(x) < 2:
        raise InvalidArgument(f"the treatment {treatment!r} is constant in the rows")
    if treated is None and control is None and any(isinstance(s, str) for s in x.states):
        told = (
            second_of_two(x.states, None, treatment, "treated", (UNTREATED, TREATED)) if len(x) == 2 else None
        )
        if told is None:
            shown = ", ".join(map(repr, x.states))
            raise InvalidArgument(
                f"nothing tells which of {shown} of {treatment!r} is the treatment; say treated= and control="
            )
        treated, control = x.states[told], x.states[1 - told]
    elif len(x) == 2 and (treated is None) != (control is None):
        named = treated if control is None else control
        other = x.states[1 - x.index(named)]
        treated, control = (named, other) if control is None else (other, named)
    one, zero, happened = _states(x, y, treated, control, event)
    kept = frame[frame[treatment].isin([one, zero])]
    on, yes = (kept[treatment] == one).to_numpy(), (kept[outcome] == happened).to_numpy()
    joint = np.array([[(~on & ~yes).mean(), (~on & yes).mean()], [(on & ~yes).mean(), (on & yes).mean()]])
    known: tuple[float, float] | None = None
    said = "rows alone"
    if experiment is not None:
        for state in (zero, one):
            if state not in experiment:
                raise InvalidArgument(f"experiment= needs the share of the event under {treatment}={state!r}")
        known, said = (float(experiment[zero]), float(experiment[one])), "rows and an experiment"
    elif exogenous:
        known = (joint[0, 1] / joint[0].sum(), joint[1, 1] / joint[1].sum())
        said = "rows, and nothing confounds them"
    found = causation_bounds(joint, known, monotone=monotone)
    note = f"Tian and Pearl: {said}{', the treatment never prevents the event' if monotone else ''}; "
    note += f"{treatment} = {one} against {zero}, {outcome} = {happened}"
    needed, enough, both, ett = ((float(a), float(b)) for a, b in found)
    return Causation(needed, enough, both, ett, note)
