"""A barren node of another kind changes no answer, refuses no question and asks for no other engine."""

import warnings

import numpy as np
import pandas as pd
import pytest

import markovia as mk
import markovia.distributions as dist


def tables():
    m = mk.BayesianNetwork()
    m.add("a", {"n": 0.3, "y": 0.7})
    m.add("b", {"n": 0.5, "y": 0.5})
    m.add("c", [[[0.9, 0.1], [0.5, 0.5]], [[0.4, 0.6], [0.1, 0.9]]], parents=["a", "b"], states=["n", "y"])
    return m


def numbers():
    m = mk.BayesianNetwork()
    m.add("a", mk.LinearGaussian(1.0, {}, 2.0))
    m.add("b", mk.LinearGaussian(0.0, {}, 1.0))
    m.add("c", mk.LinearGaussian(1.0, {"a": 2.0, "b": -1.0}, 0.5))
    return m


def both():
    m = tables()
    m.add("x", {"n": mk.LinearGaussian(0, {}, 1), "y": mk.LinearGaussian(3, {}, 1)}, parents=["a"])
    m.add("z", mk.LinearGaussian(1, {"x": 2}, 0.5))
    return m


def with_function(m):
    """Add a chain: a function of a parent, and a function and a linear Gaussian of that."""
    if m["c"].kind == "table":
        m.add("barren", lambda c: dist.Exponential(1.0 + (c == "y")))
    else:
        m.add("barren", lambda c: dist.Exponential(1.0 + abs(c)))
    m.add("of_barren", lambda barren: dist.Normal(barren, 1.0))
    m.add("linear_in_barren", mk.LinearGaussian(0.0, {"of_barren": 1.0}, 1.0))
    return m


def with_linear(m):
    m.add("barren", {"n": mk.LinearGaussian(0, {}, 1), "y": mk.LinearGaussian(3, {}, 1)}, parents=["c"])
    return m


def with_table(m):
    m.add("barren", {"n": 0.2, "y": 0.8})
    return m


SAME = (
    *((tables, with_function), (tables, with_linear), (numbers, with_function), (numbers, with_table)),
    *((both, with_function),),
)
"""Models, and what is added to them."""
GIVEN = {tables: {"c": "y"}, numbers: {"c": 2.0}, both: {"c": "y", "z": 2.0}}
TABLE_ENGINES = ("auto", "junction-tree", "enumeration", "loopy-bp", "likelihood-weighting", "gaussian")
ENGINES = {tables: TABLE_ENGINES, numbers: ("auto", "gaussian"), both: ("auto", "gaussian")}


def rows_of(make):
    return pd.DataFrame([GIVEN[make], dict.fromkeys(GIVEN[make], None) | {"a": GIVEN[make]["c"]}])


def an_event(make):
    return "a" if make is numbers else "a=y"


VERBS = {
    "query": lambda m, make, engine: m.query("a", GIVEN[make], engine),
    "joint": lambda m, make, engine: m.query(["a", "b"], GIVEN[make], engine),
    "marginals": lambda m, make, engine: m.marginals(GIVEN[make], ["a", "b"], engine),
    "map of some": lambda m, make, engine: m.map(GIVEN[make], ["a", "b"], engine=engine),
    "two best": lambda m, make, engine: m.map(GIVEN[make], ["a", "b"], 2, engine),
    "log_evidence": lambda m, make, engine: m.log_evidence(GIVEN[make], engine),
    "log_partition": lambda m, make, engine: m.log_partition(GIVEN[make], engine),
    "information": lambda m, make, engine: m.information("a", GIVEN[make], ["b"], engine=engine),
    "conflict": lambda m, make, engine: m.conflict({**GIVEN[make], "b": GIVEN[make]["c"]}, engine),
    "mutual_information": lambda m, make, engine: m.mutual_information("a", "c", engine=engine),
    "rows": lambda m, make, engine: m.predict_proba(rows_of(make)[:1], "a", engine),
    "log_prob": lambda m, make, engine: m.log_prob(rows_of(make)[:1], engine),
}
VERBS_WITHOUT_ENGINE = {
    "bounds": lambda m, make: m.log_partition(GIVEN[make], bounds=True),
    "sensitivity": lambda m, make: m.sensitivity(
        an_event(make), given={k: v for k, v in GIVEN[make].items() if k != "z"}
    ),
    "expectation": lambda m, make: m.expectation(lambda a: 1.0 if a == "y" else 2.0, given=GIVEN[make]),
    "predict": lambda m, make: m.predict(rows_of(make), "a"),
    "marginals of rows": lambda m, make: m.marginals(rows_of(make), ["b"])["b"],
    "log_likelihood": lambda m, make: m.log_likelihood(rows_of(make)),
    "score": lambda m, make: m.score(rows_of(make)),
}


def told(answer):
    """Return what an answer says, comparable, without the seconds it took."""
    if isinstance(answer, mk.errors.MarkoviaError):
        return type(answer), str(answer)
    if isinstance(answer, list | tuple):
        return [told(one) for one in answer]
    if isinstance(answer, pd.DataFrame | pd.Series):
        return answer.to_numpy().tolist()
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    info = getattr(answer, "info", None)
    how = () if info is None else (info.engine, info.exact, info.log_evidence)
    if hasattr(answer, "largest"):
        return *how[:2], str(answer.largest(3))
    if hasattr(answer, "mixture"):
        found = answer.mixture
        return *how, found.weights.tolist(), found.means.tolist(), found.covariances.tolist()
    if hasattr(answer, "log_posterior"):
        return *how, answer.to_dict(), answer.log_prob, answer.log_posterior, answer.bound
    if hasattr(answer, "values") and not callable(answer.values):
        return *how, answer.values.tolist()
    if hasattr(answer, "items"):
        return [(name, told(one)) for name, one in answer.items()]
    if hasattr(answer, "gap"):
        return answer.lower, answer.upper, answer.lower_engine
    return float(answer)


def asked(ask, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return told(ask(*args))
        except mk.errors.MarkoviaError as refusal:
            return told(refusal)


@pytest.mark.parametrize(("make", "add"), SAME, ids=lambda f: f.__name__)
@pytest.mark.parametrize("verb", VERBS)
def test_every_engine_answers_as_without_a_barren_node_of_another_kind(make, add, verb):
    for engine in ENGINES[make]:
        alone, more = make(), add(make())
        assert asked(VERBS[verb], more, make, engine) == asked(VERBS[verb], alone, make, engine), engine


@pytest.mark.parametrize(("make", "add"), SAME, ids=lambda f: f.__name__)
@pytest.mark.parametrize("verb", VERBS_WITHOUT_ENGINE)
def test_every_verb_answers_as_without_a_barren_node_of_another_kind(make, add, verb):
    alone, more = make(), add(make())
    assert asked(VERBS_WITHOUT_ENGINE[verb], more, make) == asked(VERBS_WITHOUT_ENGINE[verb], alone, make)


def test_fixed_beliefs_and_states_that_are_observed_are_answered_beside_a_barren_number():
    given = {"c": mk.Jeffrey([0.2, 0.8]), "b": "y"}
    alone, more = tables().query(["a", "b"], given), with_function(tables()).query(["a", "b"], given)
    assert told(more) == told(alone)
    assert alone[("y", "n")] == 0.0


def test_a_query_of_states_in_a_mixed_model_is_one_of_tables():
    m = both()
    assert m.query("a", {"c": "y"}).info.engine in ("variable-elimination", "junction-tree")
    assert m.query("a", {"c": "y", "x": 1.0}).info.engine == "gaussian"
    assert m.query("a", {"c": "y"})["y"] == pytest.approx(
        m.query("a", {"c": "y"}, "gaussian")["y"], abs=1e-12
    )


def test_a_closed_form_is_found_beside_barren_tables_and_linear_gaussians():
    def coin():
        m = mk.BayesianNetwork()
        m.add("rate", dist.Beta(2.0, 3.0))
        m.add("heads", lambda rate: dist.Binomial(10, probs=rate))
        return m

    more = with_table(coin())
    more.add("scaled", mk.LinearGaussian(0.0, {"rate": 2.0}, 1.0))
    alone, found = coin().query("rate", {"heads": 7}), more.query("rate", {"heads": 7})
    assert found.info.engine == alone.info.engine == "conjugate"
    assert (found.mean(), found.sd()) == (alone.mean(), alone.sd())
    assert found.mean() == pytest.approx(9.0 / 15.0)


def test_what_only_earlier_elements_tell_of_is_not_barren():
    m = mk.BayesianNetwork()
    m.add("k", {"n": 0.5, "y": 0.5})
    m.add("h", dist.Normal(0.0, 1.0), plate="t")
    m.add(
        "y",
        lambda before: dist.Normal(before, 1.0),
        plate="t",
        previous={"before": "h"},
        first=dist.Normal(0, 1),
    )
    problem = m._problem({"t": 3})
    assert {p.variable.name for p in problem.relevant(["y"])} == {"y", "h"}
    assert list(problem.about(["k"]).variables) == ["k"]
    assert list(problem.about(["y"]).variables) == ["h", "y"]
    assert problem.about(["k", "h"]) is problem


def test_constants_of_a_barren_function_need_not_be_given():
    m = tables()
    m.add("barren", lambda c, scale: dist.Normal(0.0, scale + (c == "y")))
    assert told(m.query("a", {"c": "y"})) == told(tables().query("a", {"c": "y"}))
