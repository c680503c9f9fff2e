"""Every public result shows itself in a notebook: escaped, without scripts, from nowhere else, and long ones folded."""

import inspect
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

import markovia as mk
from every_picture import effect, posterior, report, umbrella, walk
from markovia.factors.local_models.local_model import Recipe
from markovia.runtime.estimator import Estimator
from markovia.runtime.shown import FOLDED, html_table, html_text

DOORS = (
    mk, mk.series, mk.crf, mk.topics, mk.mixtures, mk.classifiers, mk.regression, mk.results, mk.causal, mk.learning,
    mk.graphs, mk.exponential, mk.processes, mk.variational, mk.monte_carlo, mk.local, mk.priors,
)  # fmt: skip
NO_RESULTS = {
    # what models are built of and asked with
    "ConditionalFeature", "Decision", "Feature", "Flat", "GaussianFactor", "GP", "Input", "Interval", "Jeffrey", "Knowledge",
    "LinearGaussian", "Mark", "Not", "Parameter", "Points", "Problem", "Quadratic", "Soft", "Utility", "Variable",
    # settings, and those who are asked
    "ContrastiveDivergence", "EM", "LabelRule", "Training", "GraphOracle", "StatementOracle", "Triangulation",
    # parameters of one form of node, and the form of a form
    "NoisyParameters", "LocalModel",
    # priors of nodes that are no tables
    "NormalInverseGamma", "Wishart",
}  # fmt: skip


def public_classes():
    for door in DOORS:
        for name in getattr(door, "__all__", [n for n in vars(door) if not n.startswith("_")]):
            found = getattr(door, name)
            ours = inspect.isclass(found) and found.__module__.startswith("markovia")
            if ours and not issubclass(found, BaseException):
                yield name, found


def test_every_public_result_shows_itself_in_a_notebook():
    asked_with = {
        name
        for name, found in public_classes()
        if issubclass(found, Recipe) or hasattr(found, "pseudo_counts")
    }
    without = {name for name, found in public_classes() if not hasattr(found, "_repr_html_")}
    assert without - asked_with == NO_RESULTS


def test_no_estimator_shows_the_diagram_of_another_library():
    estimators = {found for _, found in public_classes() if issubclass(found, Estimator)}
    assert len(estimators) > 30
    for found in estimators:
        for how in ("_repr_html_", "_repr_mimebundle_"):
            assert inspect.getattr_static(found, how).__module__.startswith("markovia"), (found, how)


def parsed(html):
    return ElementTree.fromstring(f"<div>{html}</div>")


NAMES = ("<script>alert(1)</script>", "a & b")
STATES = ("<script>", "</td>")


@pytest.fixture(scope="module")
def hostile():
    bn = mk.BayesianNetwork()
    bn.add(NAMES[0], states=STATES, p=[0.5, 0.5])
    bn.add(NAMES[1], states=STATES, parents=[NAMES[0]], p=[[0.9, 0.1], [0.2, 0.8]])
    return bn


def shown(bn):
    """Yield results that hold names and states of the user's."""
    first, second = NAMES
    answer = bn.query(second, given={first: STATES[0]})
    data = bn.sample(200, seed=0)
    yield from (bn, bn.graph, bn[second], bn[second].factor(), answer, answer.info, bn.query([first, second]))
    yield from (bn.marginals(), bn.map(), bn.marginals(given=data[[first]].head(3)), bn.information(first))
    yield from (bn.sensitivity({second: STATES[0]}), bn.conflict(given={first: STATES[0], second: STATES[1]}))
    yield from (mk.learn_structure(data), mk.independence_test(data, first, second), bn.copy().fit(data).fit_)
    yield mk.graphs.compare_graphs(bn.graph, bn.graph)
    yield bn.counterfactual(second, given={first: STATES[0], second: STATES[0]}, do={first: STATES[1]})
    yield bn.query(first, engine=mk.engines.Gibbs(draws=50, seed=0)).info.diagnostics


def ours():
    """Yield results of the other families."""
    model, series = walk()
    yield from (model.smooth(series), model.filter(series), model.forecast(series, 2), posterior())
    yield from (
        umbrella(),
        umbrella().smooth({"umbrella": ["yes", "no"]}),
        effect(),
        effect().balance(),
        report(),
    )
    yield from (
        mk.LDA(2, max_iter=5, random_state=0).fit([[*NAMES, *STATES]] * 3),
        mk.classifiers.NaiveBayes(class_prior=NAMES),
    )
    yield from (mk.HMM(2), mk.GaussianMixture(3, random_state=0).fit(np.arange(12.0)[:, None]))
    yield from (
        mk.exponential.Poisson(),
        mk.processes.GEM(2.0),
        mk.processes.DirichletProcess(2.0),
    )
    yield mk.causal.effect_paths("x -> y; x <- z -> y", "x", "y")
    yield mk.causal.identify("x -> y; x <- z -> y", treatment="x", outcome="y")


def test_names_and_states_are_escaped_and_nothing_is_run_or_fetched(hostile):
    for result in [*shown(hostile), *ours()]:
        html = result._repr_html_()
        assert "<script" not in html, type(result)
        for part in parsed(html).iter():
            tag = part.tag.rpartition("}")[2]
            assert tag not in {"script", "link", "img", "iframe", "object", "embed"}, type(result)
            for key, value in part.attrib.items():
                assert not key.startswith("on"), type(result)
                if key.rpartition("}")[2] in {"href", "src"}:
                    assert value.startswith("#"), type(result)


def test_long_texts_and_tables_are_folded_and_short_ones_are_not():
    assert html_text("a\nb") == "<pre>a\nb</pre>"
    long = parsed(html_text("\n".join(["first", *("<x>" for _ in range(FOLDED))])))
    assert [long.find(".//summary").text, len(long.findall(".//details"))] == ["first", 1]
    table = parsed(html_table(["x"], [[i] for i in range(FOLDED + 1)]))
    assert table.find(".//summary").text == f"{FOLDED + 1} rows"
    assert "<details>" not in html_table(["x"], [[i] for i in range(FOLDED)])


def test_a_posterior_has_bars_as_long_as_its_probabilities():
    found = mk.examples.asia().query("lung")
    meters = parsed(found._repr_html_()).findall(".//meter")
    assert [float(m.get("value")) for m in meters] == pytest.approx(list(np.asarray(found.values)))
