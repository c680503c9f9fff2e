"""Questions from the page, put to the library: text becomes states, findings evidence, and answers messages."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from math import e, isfinite, log, pi
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.graphs.comparison.comparison import compare_graphs
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.graphs.kinds.trails import trails
from markovia.graphs.separation.open_paths import open_paths
from markovia.inference.choosing.auto import Auto
from markovia.inference.engine import Engine, engine_for, get_engine
from markovia.inference.posterior import Posterior
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.factor_model import FactorModel
from markovia.models.graphical.model import Model
from markovia.studio.documents import decision_answers
from markovia.studio.documents import messages as m
from markovia.studio.documents.document import Document
from markovia.studio.documents.endpoints import Call, Costly
from markovia.studio.documents.findings import findings, setting, state_of
from markovia.studio.documents.views import state_labels

MOST_JOINT = 1_000_000
"""Entries of a joint posterior that is sent."""
MOST_TRAILS = 20
CURVE = 80
"""Points of a density."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CLOSED = ("gaussian", "closed-form", "conjugate")
"""Engines for numbers that answer at once."""


def marginals(call: Call[m.AskMarginals]) -> m.Marginals:
    """Answer the posterior of every variable, or of those named; observed ones have theirs too."""
    model, given, engine = asked(call)
    targets = call.body.targets
    if targets is None and isinstance(model, BayesianNetwork) and decision_answers.is_diagram(model):
        return _diagram_marginals(model, given, engine)
    found = model.marginals(given=given, targets=targets, engine=engine)
    answers = {name: summary(posterior) for name, posterior in found.items()}
    for name in given if targets is None else ():
        if name not in answers:
            answers[name] = certain(model.variable(name), given[name])
    some = next(iter(found.values()), None)
    info = (
        told(some.info)
        if some is not None
        else m.Info("none", exact=True, log_evidence=evidence(model, given))
    )
    return m.Marginals(answers, info.log_evidence, info)


def _diagram_marginals(model: BayesianNetwork, given: Mapping[str, Any], engine: Engine) -> m.Marginals:
    """Return the posteriors that no open decision changes, and what utilities are worth once none is open."""
    known, later = decision_answers.before_deciding(model, given)
    targets = decision_answers.answerable_now(model, known)
    found = model.marginals(given=known, targets=targets, engine=engine) if targets else {}
    answers = {name: summary(posterior) for name, posterior in found.items()}
    answers |= decision_answers.utility_means(model, known)
    answers |= {name: certain(model.variable(name), said) for name, said in given.items()}
    some = next(iter(found.values()), None)
    info = told(some.info) if some is not None else m.Info("none", exact=True)
    info.note = decision_answers.waiting_note(model, later) or info.note
    return m.Marginals(answers, info.log_evidence, info)


def query(call: Call[m.AskQuery]) -> m.Joint:
    """Answer the joint posterior of some variables."""
    model, given, engine = asked(call)
    targets = call.body.targets
    entries = 1
    for name in targets:
        if isinstance(model.variable(name), Quantity):
            raise UnsupportedModel(f"{name!r} is a number; joint tables are of variables with states")
        entries *= len(model.variable(name))
    if entries > MOST_JOINT:
        raise Costly(
            f"the joint table has {entries:,} entries; at most {MOST_JOINT:,} are sent", {"entries": entries}
        )
    found = model.query(targets, given=given, engine=engine)
    if not isinstance(found, Posterior):
        found = found.marginal(targets)
    return m.Joint(
        list(found.names),
        [state_labels(v.states) for v in found.variables],
        found.values.ravel().tolist(),
        told(found.info),
    )


def best(call: Call[m.AskMap]) -> m.Explanations:
    """Answer the most probable explanations."""
    model, given, engine = asked(call)
    found = model.map(given=given, targets=call.body.targets, m=call.body.m, engine=engine)
    ranked = found if isinstance(found, list) else [found]
    texts = {
        v.name: dict(zip(v.states, state_labels(v.states), strict=True))
        for v in map(model.variable, ranked[0] if ranked else ())
        if not isinstance(v, Quantity)
    }
    return m.Explanations(
        [
            m.Best(
                {n: texts[n][s] if n in texts else float(s) for n, s in one.items()},
                finite(one.log_prob),
                finite(np.exp(one.log_posterior)),
            )
            for one in ranked
        ],
        told(ranked[0].info),
    )


def separation(call: Call[m.AskSeparation]) -> m.Separation:
    """Answer whether two sets are independent, with the trails that make them dependent and the reasons."""
    model, body = call.document.now.model, call.body
    if not hasattr(model, "independent"):
        raise UnsupportedModel("separation is asked of networks; this is a graph with other edges")
    separate = bool(model.independent(body.a, body.b, given=body.given))
    given = f" given {', '.join(body.given)}" if body.given else ""
    if not isinstance(model, BayesianNetwork):
        return _undirected_separation(model, body.a, body.b, body.given, separate)
    why = [
        f"{', '.join(body.a)} and {', '.join(body.b)} are {'independent' if separate else 'dependent'}{given}: "
        + ("every trail between them is blocked." if separate else "these trails between them are open.")
    ]
    if model.equivalence_class is not None:
        why[0] += (
            " Arrows along edges without a direction are those of one graph of the class; all agree on this answer."
        )
    shown: list[list[str]] = []
    for a in body.a:
        for b in body.b:
            if len(why) > MOST_TRAILS:
                break
            if separate:
                why += [t.explain() for t in trails(model.graph, a, b, body.given, limit=5)]
                continue
            for trail in model.open_trails(a, b, given=body.given)[: MOST_TRAILS - len(shown)]:
                shown.append(list(trail.nodes))
                why.append(trail.explain())
    if separate and len(why) == 1:
        why.append("No trail connects them.")
    return m.Separation(separate, shown, why)


def _undirected_separation(
    model: Any, a: list[str], b: list[str], given: list[str], separate: bool
) -> m.Separation:
    """Say it by paths that avoid what is given, or by their absence."""
    said = f" given {', '.join(given)}" if given else ""
    if separate:
        why = "every path between them passes what is given" if given else "no path joins them"
        return m.Separation(True, [], [f"{', '.join(a)} and {', '.join(b)} are independent{said}: {why}."])
    graph = model.undirected_graph if isinstance(model, FactorModel) else model.graph
    ways = (open_paths(graph, x, y, given) for x in a for y in b)
    paths = [path for way in ways for path in islice(way, 5)][:MOST_TRAILS]
    told = [f"{' - '.join(path)} is a path on which nothing is given." for path in paths]
    return m.Separation(False, paths, [f"{', '.join(a)} and {', '.join(b)} are dependent{said}.", *told])


def blanket(call: Call[m.AskBlanket]) -> m.Blanket:
    """Answer a Markov blanket by role."""
    model, name = call.document.now.model, call.body.name
    around = sorted(networked(model).markov_blanket(name))
    if not isinstance(model, BayesianNetwork):
        return m.Blanket([], [], [], around)
    graph = model.equivalence_class or MixedGraph.from_dag(model.graph)
    parents, children, near = graph.parents(name), graph.children(name), graph.undirected_neighbors(name)
    return m.Blanket(parents, children, [n for n in around if n not in (*parents, *children, *near)], near)


def next_test(call: Call[m.AskNextTest]) -> m.NextTest:
    """Answer what each possible finding would tell about the target, best first."""
    model, given, engine = asked(call)
    body = call.body
    costs = None
    if body.costs is not None:
        listed = body.candidates or [n for n in model.variables if n != body.target and n not in given]
        costs = {n: float(body.costs.get(n, 1.0)) for n in dict.fromkeys([*listed, *body.costs])}
    found = model.information(
        body.target,
        given=given,
        candidates=body.candidates if costs is None else list(costs),
        base=2,
        costs=costs,
        engine=engine,
    )
    prices = costs or {}
    return m.NextTest(
        [m.Test(n, x, prices.get(n, 1.0), x / prices.get(n, 1.0)) for n, x in found.items()],
        told(found.info),
    )


def sensitivity(call: Call[m.AskSensitivity]) -> m.Tornado:
    """Answer which numbers of the model a posterior depends on most."""
    model, given, _ = asked(call)
    body = call.body
    variable = model.variable(body.target)
    if isinstance(variable, Quantity):
        return _mean_tornado(model.sensitivity(body.target, given=given), body.top)
    if body.state is None:
        raise InvalidArgument(f"say which state of {body.target!r} the probability is of")
    found: Any = model.sensitivity({body.target: state_of(variable, body.state)}, given=given)
    rows = []
    for entry in found.largest(body.top):
        curve = found.function(entry.piece, entry.states)
        child = str(entry.piece) if isinstance(entry.piece, str) else ""
        rest = ", ".join(f"{n}={s}" for n, s in entry.states.items() if n != child)
        shown = str(entry.states[child]) if child in entry.states else ""
        ends = (
            curve(0.9 * entry.value),
            curve(1.1 * entry.value if child == "" else min(1.0, 1.1 * entry.value)),
        )
        rows.append(
            m.SensitivityRow(
                child or entry.label,
                rest,
                shown,
                entry.value,
                finite(ends[0]),
                finite(ends[1]),
                entry.derivative,
            )
        )
    return m.Tornado(found.probability, rows, told(found.info))


def _mean_tornado(found: Any, top: int) -> m.Tornado:
    """Return the tornado of a posterior mean; its ends are linear in the parameter, a tenth of it either way."""
    rows = []
    for node, parameter, value, derivative in found.largest(top).itertuples(index=False):
        step = 0.1 * abs(value) * derivative
        rows.append(
            m.SensitivityRow(
                str(node),
                str(parameter),
                "",
                float(value),
                found.mean - step,
                found.mean + step,
                float(derivative),
            )
        )
    return m.Tornado(found.mean, rows, told(found.info))


def shading(call: Call[m.AskShading]) -> m.Shading:
    """Answer one number a variable: its entropy, or what it would tell about the target, in bits."""
    model, given, engine = asked(call)
    if call.body.measure == "information":
        if call.body.target is None:
            raise InvalidArgument("information is about a target; name it")
        found = model.information(call.body.target, given=given, base=2, engine=engine)
        return m.Shading({n: float(x) for n, x in found.items()})
    values = dict.fromkeys(given, 0.0)
    targets = None
    if isinstance(model, BayesianNetwork) and decision_answers.is_diagram(model):
        given, _ = decision_answers.before_deciding(model, given)
        targets = decision_answers.answerable_now(model, given)
    for name, posterior in model.marginals(given=given, targets=targets, engine=engine).items():
        values[name] = (
            float(posterior.entropy(base=2)) if isinstance(posterior, Posterior) else _entropy(posterior)
        )
    return m.Shading(values)


def _entropy(posterior: Any) -> float:
    """Return the entropy in bits of a number's posterior; of a mixture that of the Gaussian with its deviation."""
    try:
        return float(posterior.entropy(base=2))
    except (UnsupportedModel, InvalidArgument, AttributeError):
        return 0.5 * log(2 * pi * e * max(float(posterior.sd()) ** 2, 1e-300), 2)


def conflict(call: Call[m.AskConflict]) -> m.Conflict:
    """Answer whether the findings fit together."""
    model, given, engine = asked(call)
    if len(given) < 2:
        return m.Conflict(
            0.0, [m.ConflictPart(n, 0.0) for n in given], "A conflict needs at least two findings."
        )
    found = model.conflict(given, engine=engine)
    note = "The findings disagree." if found.present else "The findings do not disagree."
    return m.Conflict(
        finite(found.value), [m.ConflictPart(n, finite(x)) for n, x in found.contributions.items()], note
    )


def sample(call: Call[m.AskSample]) -> m.Sample:
    """Answer rows drawn from the model given the findings."""
    model, given, _ = asked(call)
    entries = call.body.n * len(model)
    if entries > 5_000_000:
        raise Costly(f"{entries:,} numbers are too many to send; draw fewer rows", {"entries": entries})
    frame = model.sample(call.body.n, given=given or None, seed=call.body.seed)
    columns = [str(c) for c in frame.columns]
    cells = [[_cell(x) for x in frame[c].tolist()] for c in frame.columns]
    return m.Sample(columns, [list(row) for row in zip(*cells, strict=True)])


def compare(call: Call[m.AskCompare]) -> m.Comparison:
    """Answer where the graph of a document differs from another's."""
    one, two = (call.workspace.document(i).now.model for i in (call.path["id"], call.body.other))
    found = compare_graphs(one, two)
    return m.Comparison(found.extra, found.missing, found.reversed, found.shared, found.shd)


# -- reading -----------------------------------------------------------------------------------------------------


def asked(call: Call[m.Question]) -> tuple[Model, dict[str, Any], Engine]:
    """Return the model after interventions, the evidence, and the engine that a question is for."""
    document: Document = call.document
    model: Any = networked(document.now.model)
    if call.body.do:
        model = document.doing({n: setting(model, n, s) for n, s in call.body.do.items()})
    given = findings(model, call.body.given)
    return model, given, engine_of(model, given, call.body.engine, call.workspace.limit)


def networked(model: Any) -> Model:
    """Return the model, refusing a graph without numbers."""
    if isinstance(model, Model):
        return model
    raise UnsupportedModel("this is a graph without numbers; questions about probabilities need tables")


def engine_of(model: Model, given: Mapping[str, Any], name: str, limit: float) -> Engine:
    """Return an engine that keeps within the limit; of models whose numbers are sampled, none does."""
    if model.has_quantities:
        problem = model._problem(given)
        chosen = engine_for(name, problem)
        if not any(chosen.name.startswith(c) for c in CLOSED):
            raise Costly(
                f"this model has no closed form: {chosen.name} would have to draw from it, which is a job of its own"
            )
        return chosen
    return Auto(time_limit=limit, approximate=False) if name == "auto" else get_engine(name, None)


# -- telling -----------------------------------------------------------------------------------------------------


def told(info: Any) -> m.Info:
    """Return the provenance of an answer."""
    return m.Info(
        engine=info.engine,
        exact=info.exact,
        converged=info.converged,
        error=finite(info.error),
        seconds=info.seconds,
        log_evidence=finite(info.log_evidence),
        note=info.note or info.advice,
    )


def finite(x: Any) -> float | None:
    """Return a number, None where it is not finite."""
    return None if x is None or not isfinite(x) else float(x)


def evidence(model: Model, given: Mapping[str, Any]) -> float | None:
    """Return the log evidence where nothing is left to ask."""
    return finite(model.log_evidence(given)) if given else 0.0


def certain(variable: Any, said: Any) -> m.Marginal:
    """Return the posterior of an observed variable."""
    if isinstance(variable, Quantity):
        return m.Marginal(
            mean=float(said), sd=0.0, quantiles={str(q): float(said) for q in QUANTILES}, curve=[]
        )
    return m.Marginal(p=[1.0 if s == said else 0.0 for s in variable.states])


def summary(posterior: Any) -> m.Marginal:
    """Return a posterior as the page draws it."""
    if isinstance(posterior, Posterior):
        return m.Marginal(p=posterior.values.tolist())
    name = posterior.names[0]
    quantiles = {str(q): finite(posterior.quantile(q, name)) for q in QUANTILES}
    mean, sd = finite(posterior.mean(name)), finite(posterior.sd(name))
    return m.Marginal(mean=mean, sd=sd, quantiles=quantiles, curve=curve(posterior, name, sd))


def curve(posterior: Any, name: str, sd: float | None) -> list[tuple[float | None, float | None]]:
    """Return points of a density; none where it has no width."""
    if not sd:
        return []
    low, high = (float(posterior.quantile(q, name)) for q in (0.001, 0.999))
    xs = np.linspace(low, high, CURVE)
    density: Callable[[Any], Any] = partial(_density, posterior, name)
    return [(float(x), finite(y)) for x, y in zip(xs, density(xs), strict=True)]


def _density(posterior: Any, name: str, xs: Any) -> Any:
    """Return the density at some points: differences of the distribution function, or of counts of draws."""
    half = (xs[1] - xs[0]) / 2
    if posterior.info.exact:
        return (posterior.cdf(xs + half, name) - posterior.cdf(xs - half, name)) / (2 * half)
    draws = np.sort(np.asarray(posterior.sample(4000, seed=0)[name]).ravel())
    above, below = np.searchsorted(draws, xs + 2 * half), np.searchsorted(draws, xs - 2 * half)
    return (above - below) / len(draws) / (4 * half)


def _cell(x: Any) -> str | float | None:
    if x is None or (isinstance(x, float) and not isfinite(x)):
        return None
    return x if isinstance(x, float) else str(x)
