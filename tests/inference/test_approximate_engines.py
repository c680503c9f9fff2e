"""Every approximate engine of the registry, through the public verbs, against an outer product of plain arrays.

A new engine is tested as soon as it is registered: what it answers is read off `answers`, and it gets small settings where
it has fields of the usual names. Engines that are for some models only may refuse the others, by name and with a sentence.
"""

import copy
import pickle
import warnings
from dataclasses import fields, replace
from itertools import pairwise
from time import process_time

import numpy as np
import pytest

import markovia as mk
from markovia.inference.approximate import QUESTIONS
from markovia.inference.densities.draws.density_engine import DensityEngine
from markovia.inference.engine import engine_names, get_engine
from model_strategies import (
    KINDS,
    Case,
    about,
    log_marginal,
    log_sum,
    log_weights,
    random_case,
    random_findings,
)

APPROXIMATE = [
    name
    for name in engine_names()
    if hasattr(get_engine(name), "answers") and not isinstance(get_engine(name), DensityEngine)
]
"""Those that answer about tables."""
SMALL = {
    "draws": 200,
    "chains": 2,
    "rungs": 3,
    "particles": 200,
    "sweeps": 100,
    "rounds": 20,
    "max_evaluations": 200,
    "patience": 300,
    "max_climbs": 100,
    "seed": 1,
}
ESTIMATES = {"mean-field", "structured-mean-field", "tree-reweighted"}  # bounds, not errors
SAMPLERS = [name for name in APPROXIMATE if hasattr(get_engine(name), "draws") or "anneal" in name]
REFUSALS = (mk.errors.Unanswered, mk.errors.UnsupportedModel)

every_engine = pytest.mark.parametrize("name", APPROXIMATE)
pytestmark = pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")


def quick(name):
    """An engine with small settings and a fixed seed."""
    engine = get_engine(name)
    has = {f.name for f in fields(engine)}
    chosen = {k: v for k, v in SMALL.items() if k in has}
    if name == "annealed-importance":
        chosen.update(sweeps=1, temperatures=40)
    if name == "importance":
        chosen.pop("rounds")
    return replace(engine, **chosen)


def answering(question):
    names = [n for n in APPROXIMATE if question in get_engine(n).answers]
    return pytest.mark.parametrize("name", names)


def undirected(cards, *tables, kind=mk.MarkovNetwork):
    arrays = [(scope, np.array(values, dtype=float)) for scope, values in tables]
    return Case(kind(cards, [mk.Factor(s, v) for s, v in arrays]), cards, arrays)


def directed(*rows):
    """A Bayesian network from (name, parents, table)."""
    bn, cards, tables = mk.BayesianNetwork(), {}, []
    for name, parents, table in rows:
        values = np.array(table, dtype=float)
        cards[name] = values.shape[-1]
        bn.add(name, states=range(values.shape[-1]), parents=parents, p=values)
        tables.append(([*parents, name], values))
    return Case(bn, cards, tables)


NOT_EQUAL = [[0, 1], [1, 0]]
EQUAL = [[2, 0], [0, 1]]
CERTAIN = directed(
    ("p0", [], [0.4, 0.6]),
    ("p1", ["p0"], [[1, 0], [0, 1]]),
    ("p2", ["p1", "p0"], [[[1, 0], [0, 1]], [[0.5, 0.5], [0, 1]]]),
)
TRIANGLE = [["a", "b"], ["b", "c"], ["a", "c"]]


def some_tables(seed, scale):
    rng = np.random.default_rng(seed)
    return undirected(dict.fromkeys("abc", 2), *((s, (rng.random((2, 2)) + 0.1) * scale) for s in TRIANGLE))


ODD = {
    "one variable": (undirected({"a": 3}, (["a"], [1, 2, 3])), {}),
    "one variable, observed": (undirected({"a": 3}, (["a"], [1, 2, 3])), {"a": 1}),
    "one variable, ruled out": (undirected({"a": 3}, (["a"], [1, 0, 3])), {"a": 1}),
    "no factors": (undirected({"a": 3, "b": 1, "c": 2}), {}),
    "no factors, evidence": (undirected({"a": 3, "b": 1, "c": 2}), {"a": [0, 2, 1]}),
    "one state": (undirected({"a": 1, "b": 1}, (["a", "b"], [[2.0]])), {}),
    "a constant": (undirected({"a": 2}, ([], 2.5), (["a"], [1, 3])), {}),
    "a constant of zero": (undirected({"a": 2}, ([], 0.0), (["a"], [1, 3])), {}),
    "weight zero": (undirected({"a": 2, "b": 2}, (["a"], [1, 0]), (["a", "b"], [[0, 0], [1, 2]])), {}),
    "weight zero, target observed": (
        undirected({"a": 2, "b": 2}, (["a"], [1, 0]), (["a", "b"], [[0, 0], [1, 2]])),
        {"b": 1},
    ),
    "a loop that cannot be": (
        undirected(dict.fromkeys("abc", 2), *((s, NOT_EQUAL) for s in TRIANGLE)),
        {},
    ),
    "a loop that can be": (
        undirected(
            dict.fromkeys("abc", 2), (["a", "b"], NOT_EQUAL), (["b", "c"], NOT_EQUAL), (["a", "c"], EQUAL)
        ),
        {},
    ),
    "three at once": (
        undirected(
            {"a": 2, "b": 3, "c": 2},
            (["a", "b", "c"], np.random.default_rng(4).random((2, 3, 2))),
            (["a"], [0.3, 0.7]),
            kind=mk.FactorGraph,
        ),
        {"b": mk.Not(0)},
    ),
    "tables of 1e-200": (some_tables(1, 1e-200), {}),
    "tables of 1e+200": (some_tables(2, 1e200), {"a": [1e-200, 2e-200]}),
    "parts": (
        undirected(
            {"a": 2, "b": 2, "c": 2, "d": 3, "e": 2},
            (["a", "b"], [[0.3, 0.9], [0.8, 0.1]]),
            (["c", "d"], [[0.2, 0.5, 0.4], [0.9, 0.3, 0.6]]),
        ),
        {"d": 2},
    ),
    "certain": (CERTAIN, {}),
    "certain, contradiction": (CERTAIN, {"p0": 0, "p1": 1}),
    "certain, soft": (CERTAIN, {"p2": [0.2, 0.9]}),
    "certain, all observed": (CERTAIN, {"p0": 1, "p1": 1, "p2": 1}),
    "certain, soft zeros": (CERTAIN, {"p2": [1.0, 0.0], "p0": mk.Not(1)}),
    "certain, soft contradiction": (CERTAIN, {"p2": [1.0, 0.0], "p0": mk.Not(0), "p1": [1.0, 0.0]}),
}


def free_of(case, given):
    return [n for n in case.cards if not isinstance(given.get(n), int)]


def answer(name, ask, possible=True):
    """The answer, or None where the engine refuses this kind of model; impossible evidence has to raise or say so."""
    said = None
    try:
        return ask()
    except mk.errors.ImpossibleEvidence:
        said = None
    except REFUSALS as refused:
        said = str(refused)
    if said is None:
        assert not possible, "possible evidence was called impossible"
    else:
        assert any(repr(other) in said for other in engine_names() if other != name), said
    return None


def check_info(info, name):
    assert isinstance(info.exact, bool)
    assert isinstance(info.converged, bool)
    assert isinstance(info.iterations, int)
    assert isinstance(info.error, float)
    assert isinstance(info.engine, str)
    assert not np.isnan(info.error)
    assert info.engine in engine_names()
    assert str(info).startswith(info.engine)


def check_table(posterior, names, expected, name):
    values = posterior.values
    check_info(posterior.info, name)
    assert posterior.names == tuple(names)
    assert values.shape == expected.shape
    assert values.min() >= 0
    assert values.sum() == pytest.approx(1.0, abs=1e-9)
    off = float(np.abs(values - expected).max())
    if posterior.info.exact:
        assert off < 1e-7
    if name in SAMPLERS and posterior.info.converged:
        assert off < 6 * posterior.info.error + 0.03


def check_tables(name, case, given):
    engine, model = quick(name), case.model
    logs = log_weights(case, given)
    mass = log_sum(logs)
    possible = bool(np.isfinite(mass))
    several = list(case.cards)[:3][::-1]
    one = list(case.cards)[-1]
    for targets in (one, several):
        found = answer(name, lambda t=targets: model.query(t, given=given, engine=engine), possible)
        if found is None:
            continue
        if not possible:
            assert not found.info.converged, "impossible evidence was answered as if nothing were wrong"
            continue
        names = [targets] if isinstance(targets, str) else targets
        check_table(found, names, np.exp(log_marginal(case, logs, names) - mass), name)
        if targets == one:
            again = model.query(targets, given=given, engine=engine)
            assert np.array_equal(again.values, found.values)
    found = answer(name, lambda: model.marginals(given=given, engine=engine), possible)
    if found is None:
        return
    assert list(found) == free_of(case, given)
    for n, posterior in found.items():
        if possible:
            check_table(posterior, [n], np.exp(log_marginal(case, logs, [n]) - mass), name)
        else:
            assert not posterior.info.converged


def check_mass(name, case, given):
    engine = quick(name)
    mass = log_sum(log_weights(case, given))
    total = log_sum(log_weights(case))
    possible = bool(np.isfinite(mass))
    found = answer(name, lambda: case.model.log_partition(given=given, engine=engine), possible)
    if found is None:
        return
    assert isinstance(found, float)
    if not possible:
        assert np.isneginf(found) or np.isnan(found)
        return
    if name == "tree-reweighted":
        assert found >= mass - 1e-7 * (1 + abs(mass))
    elif name in ESTIMATES:
        assert found <= mass + 1e-7 * (1 + abs(mass))
    elif name in SAMPLERS:
        assert found == pytest.approx(mass, abs=0.7)
    if np.isfinite(total):
        evidence = case.model.log_evidence(given=given, engine=engine)
        assert np.isfinite(evidence)


def check_best(name, case, given):
    engine, model = quick(name), case.model
    logs = log_weights(case, given)
    possible = bool(np.isfinite(log_sum(logs)))
    found = answer(name, lambda: model.map(given=given, engine=engine), possible)
    if found is None:
        return
    assert possible, "the best of impossible states"
    check_info(found.info, name)
    free = free_of(case, given)
    assert list(found) == free
    place = tuple(found[n] if n in free else given[n] for n in case.cards)
    weight, best = float(logs[place]), float(logs.max())
    slack = 1e-7 * (1 + abs(best))
    assert np.isfinite(weight)
    assert found.log_weight == pytest.approx(weight, rel=1e-9, abs=1e-9)
    shift = found.log_weight - found.log_prob
    assert found.bound + shift >= best - slack
    assert found.gap >= 0
    if found.info.exact or found.gap == 0:
        assert weight >= best - slack
    if model.normalised:
        assert found.normalised
        assert found.log_prob == found.log_weight
    if found.normalised:
        total = log_sum(log_weights(case))
        assert found.log_prob == pytest.approx(weight - (0.0 if model.normalised else total), abs=1e-7)
    else:
        assert found.log_prob == found.log_weight
        assert np.isnan(found.log_posterior)
    assert not found.log_posterior > 0


def check_draws(name, case, given):
    engine = quick(name)
    logs = log_weights(case, given)
    possible = bool(np.isfinite(log_sum(logs)))
    rows = answer(name, lambda: case.model.sample(6, given=given, seed=3, engine=engine), possible)
    if rows is None:
        return
    if possible:
        assert rows.shape == (6, len(case.cards))
        assert np.isfinite(logs[tuple(rows[n].to_numpy(dtype=int) for n in case.cards)]).all()
        assert rows.equals(case.model.sample(6, given=given, seed=3, engine=engine))
    else:
        assert isinstance(case.model, mk.BayesianNetwork)
        assert not given


@pytest.mark.slow
@answering("marginals")
def test_odd_models_have_posteriors_or_a_clear_error(name):
    for odd in ODD:
        with about(odd):
            check_tables(name, *ODD[odd])


@answering("log_mass")
def test_odd_models_have_a_log_mass(name):
    for odd in ODD:
        with about(odd):
            check_mass(name, *ODD[odd])


@answering("best")
def test_odd_models_have_a_best_configuration_with_its_true_weight_and_a_bound(name):
    for odd in ODD:
        with about(odd):
            check_best(name, *ODD[odd])


@answering("sample")
def test_odd_models_have_draws_of_positive_weight(name):
    for odd in ODD:
        with about(odd):
            check_draws(name, *ODD[odd])


@pytest.mark.slow
@every_engine
@pytest.mark.parametrize("kind", KINDS)
def test_every_question_on_random_models_of_every_kind(name, kind):
    for seed in range(2):
        case = random_case([seed, 5], kind, max_entries=400)
        given = random_findings(case, np.random.default_rng([seed, 6]))
        answers = get_engine(name).answers
        if "marginals" in answers:
            check_tables(name, case, given)
        if "log_mass" in answers:
            check_mass(name, case, given)
        if "best" in answers:
            check_best(name, case, given)
        if "sample" in answers:
            check_draws(name, case, given)


# -- refusals, settings, copies --------------------------------------------------------------------------------------

PAIR = undirected({"a": 2, "b": 2}, (["a", "b"], [[3, 1], [1, 2]]))


@every_engine
def test_a_question_outside_its_answers_is_refused_with_the_name_of_another_engine(name):
    model, engine = PAIR.model, get_engine(name)
    asks = {
        "joint": lambda: model.query(["a", "b"], engine=name),
        "marginals": lambda: model.marginals(engine=name),
        "log_mass": lambda: model.log_partition(engine=name),
        "best": lambda: model.map(engine=name),
        "sample": lambda: model.sample(2, seed=0, engine=name),
    }
    assert set(asks) == set(QUESTIONS)
    assert engine.answers <= set(QUESTIONS)
    for question, ask in asks.items():
        if question not in engine.answers:
            with pytest.raises(mk.errors.Unanswered, match=r"engine=?.*'") as caught:
                ask()
            named = [other for other in engine_names() if other != name and repr(other) in str(caught.value)]
            assert any(question in getattr(get_engine(o), "answers", QUESTIONS) for o in named)


@answering("best")
def test_several_best_and_parts_are_answered_or_refused(name):
    for ask in (
        lambda: CERTAIN.model.map(m=2, engine=quick(name)),
        lambda: CERTAIN.model.map(targets=["p2"], engine=quick(name)),
    ):
        found = answer(name, ask)
        assert found is None or isinstance(found, list) or list(found) == ["p2"]


@every_engine
def test_settings_are_keywords_and_unknown_ones_are_refused(name):
    kind = type(get_engine(name))
    with pytest.raises(TypeError):
        kind(no_such_setting=1)
    with pytest.raises((AttributeError, TypeError)):
        get_engine(name).seed = 3  # frozen


@every_engine
def test_a_time_limit_that_is_no_positive_number_is_refused(name):
    for limit in (-1, 0, "x", True, float("nan")):
        with about(limit), pytest.raises(mk.errors.InvalidArgument, match="time_limit"):
            type(get_engine(name))(time_limit=limit)
        with about(limit), pytest.raises(mk.errors.InvalidArgument, match="time_limit"):
            PAIR.model.query("a", engine=name, time_limit=limit)


@every_engine
def test_copies_and_pickles_of_an_engine_answer_alike(name):
    engine = quick(name)
    for twin in (
        copy.copy(engine),
        copy.deepcopy(engine),
        pickle.loads(pickle.dumps(engine)),
        replace(engine),
    ):
        assert twin == engine
        if "marginals" in engine.answers and name != "swendsen-wang":
            ask = lambda e: CERTAIN.model.query("p2", engine=e).values.tolist()  # noqa: E731
        else:
            ask = lambda e: PAIR.model.map(engine=e).to_dict()  # noqa: E731
        assert ask(twin) == ask(engine)


@every_engine
def test_asking_does_not_change_the_model(name):
    case = random_case([8, 8], "undirected", max_entries=200)
    before = [(s, v.copy()) for s, v in case.tables]
    names, states = case.model.variables, [case.model.states(n) for n in case.model.variables]
    given = {case.model.variables[0]: 0}
    engine = quick(name)
    for question in engine.answers:
        if question == "joint":
            answer(name, lambda: case.model.query(case.model.variables[-2:], given=given, engine=engine))
        elif question == "best":
            answer(name, lambda: case.model.map(given=given, engine=engine))
        elif question == "sample":
            answer(name, lambda: case.model.sample(2, given=given, seed=0, engine=engine))
    assert case.model.variables == names
    assert [case.model.states(n) for n in names] == states
    for piece, (scope, values) in zip(case.model.pieces(), before, strict=True):
        assert list(piece.names) == scope
        assert np.array_equal(piece.values, values)


@pytest.mark.slow
@every_engine
def test_a_short_time_limit_is_kept_more_or_less(name):
    grid = mk.generators.ising_grid(12, 12, coupling=0.3, seed=2)
    engine = get_engine(name)
    if "marginals" in engine.answers:
        ask = lambda: grid.query("x3_3", engine=name, time_limit=0.05)  # noqa: E731
    else:
        ask = lambda: grid.map(engine=name, time_limit=0.05)  # noqa: E731
    answer(name, ask)  # loads what is compiled
    start = process_time()
    found = answer(name, ask)
    assert process_time() - start < 2.0
    if found is not None:
        check_info(found.info, name)


# -- evidence --------------------------------------------------------------------------------------------------------


@answering("marginals")
def test_soft_evidence_twice_in_a_row_and_in_turn_gives_what_a_fresh_model_gives(name):
    engine, model = quick(name), CERTAIN.model.copy()
    findings = [{"p2": [0.2, 0.9]}, {"p2": {0: 0.2, 1: 0.9}}, {"p1": mk.Not(0), "p2": [0.3, 0.3]}]
    for given in [f for f in findings for _ in range(2)]:
        first = answer(name, lambda g=given: model.query("p0", given=g, engine=engine))
        fresh = answer(name, lambda g=given: CERTAIN.model.copy().query("p0", given=g, engine=engine))
        assert (first is None) == (fresh is None)
        if first is not None:
            assert first.values.tolist() == fresh.values.tolist()


@answering("marginals")
def test_a_belief_that_is_to_hold_holds(name):
    model = directed(("u", [], [0.5, 0.5]), ("v", ["u"], [[0.8, 0.2], [0.3, 0.7]])).model
    for given in (
        {"v": mk.Jeffrey([0.3, 0.7])},
        {"v": mk.Jeffrey({0: 0.3, 1: 0.7}), "u": mk.Jeffrey([0.4, 0.6])},
    ):
        found = answer(name, lambda g=given: model.query("v", given=g, engine=quick(name)))
        if found is not None and name not in ESTIMATES:
            assert found[0] == pytest.approx(0.3, abs=6 * found.info.error + 0.03)
        twice = answer(name, lambda g=given: model.query("v", given=g, engine=quick(name)))
        assert found is None or np.array_equal(found.values, twice.values)


@every_engine
def test_names_and_states_that_need_care(name):
    names = ["a b", "ünï", "x|y", "0", "\n", "engine"]
    mn = mk.MarkovNetwork(
        {n: ["no", "sí", "a,b"] for n in names},
        [mk.Factor([a, b], np.eye(3) * 2 + 1) for a, b in pairwise(names)],
    )
    engine = quick(name)
    given = {"a b": "sí"}
    if "marginals" in engine.answers:
        found = answer(name, lambda: mn.query(["\n", "0"], given=given, engine=engine))
        assert found is None or found.names == ("\n", "0")
    if "best" in engine.answers:
        best = answer(name, lambda: mn.map(given=given, engine=engine))
        assert best is None or (list(best) == names[1:] and set(best.values()) <= {"no", "sí", "a,b"})


# -- other verbs -----------------------------------------------------------------------------------------------------


@answering("marginals")
def test_rows_are_predicted(name):
    engine = quick(name)
    rows = [{"p2": 1}, {"p2": None}, {"p0": 0, "p2": 0}]
    table = answer(name, lambda: CERTAIN.model.predict_proba(rows, "p1", engine=engine))
    if table is None:
        return
    assert table.shape == (3, 2)
    assert table.to_numpy().sum(axis=1) == pytest.approx(np.ones(3))
    assert CERTAIN.model.predict(rows, "p1", engine=engine).isin([0, 1]).all()
    with pytest.raises(mk.errors.ImpossibleEvidence):
        CERTAIN.model.predict_proba([{"p0": 0, "p2": 0}, {"p0": 1, "p2": 0}], "p1", engine=engine)


@answering("joint")
def test_questions_built_on_queries_are_answered(name):
    engine = quick(name)
    model = directed(("u", [], [0.5, 0.5]), ("v", ["u"], [[0.8, 0.2], [0.3, 0.7]])).model
    gains = answer(name, lambda: model.information("u", engine=engine))
    assert gains is None or "v" in str(gains)
    mean = answer(name, lambda: model.expectation(lambda v: float(v), engine=engine))
    assert mean is None or mean == pytest.approx(0.45, abs=0.2)
    agreement = answer(name, lambda: model.verify("v", given={"u": 1}, engines=["junction-tree", engine]))
    assert agreement is None or len(agreement.answers) == 2
    shared = answer(name, lambda: model.mutual_information("u", "v", engine=engine))
    assert shared is None or 0 <= shared < 0.5
    strength = answer(name, lambda: model.correlation("u", "v", engine=engine))
    assert strength is None or 0 <= strength < 1


@answering("log_mass")
def test_a_conflict_in_the_data_is_measured(name):
    found = answer(name, lambda: CERTAIN.model.conflict({"p2": 1, "p1": 1}, engine=quick(name)))
    if found is not None and name not in ESTIMATES:
        assert float(found.value) == pytest.approx(CERTAIN.model.conflict({"p2": 1, "p1": 1}).value, abs=0.3)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_on_both_sides(kind):
    for seed in range(4):
        case = random_case([seed, 15], kind, max_entries=400)
        given = random_findings(case, np.random.default_rng([seed, 16]))
        mass = log_sum(log_weights(case, given))
        bounds = case.model.log_partition(given=given, bounds=True)
        if np.isneginf(mass):
            assert np.isneginf(bounds.lower)
        else:
            slack = 1e-7 * (1 + abs(mass))
            assert bounds.lower - slack <= mass <= bounds.upper + slack


# -- draws -----------------------------------------------------------------------------------------------------------


@answering("sample")
def test_draws_are_within_five_standard_errors_of_the_exact_answer(name):
    """Attractive pairs without evidence, which every sampler can do; the directed ones get a network."""
    chain = undirected(
        {f"v{i}": 2 for i in range(5)},
        *(([f"v{i}", f"v{i + 1}"], [[1.5, 1], [1, 1.5]]) for i in range(4)),
        (["v0"], [1, 2]),
    )
    tree = directed(
        ("v0", [], [0.3, 0.7]),
        ("v1", ["v0"], [[0.8, 0.2], [0.3, 0.7]]),
        ("v4", ["v1"], [[0.9, 0.1], [0.4, 0.6]]),
    )
    case = chain
    n = 3000
    try:
        rows = chain.model.sample(n, seed=5, engine=name)
    except mk.errors.UnsupportedModel:
        case = tree
        rows = tree.model.sample(
            n, given=None if name == "forward" else {"v1": [0.5, 1.0]}, seed=5, engine=name
        )
    given = {} if case is chain or name == "forward" else {"v1": [0.5, 1.0]}
    logs = log_weights(case, given)
    for v in ("v0", "v4"):
        p = float(np.exp(log_marginal(case, logs, [v]) - log_sum(logs))[1])
        assert abs((rows[v] == 1).mean() - p) < 5 * np.sqrt(p * (1 - p) / n * 2)


@answering("marginals")
def test_posteriors_of_samplers_are_within_five_standard_errors(name):
    if name not in SAMPLERS:
        pytest.skip("not a sampler")
    asia = mk.examples.asia()
    given = None if name == "forward" else {"xray": "yes"}
    exact = asia.query("bronc", given=given)["yes"]
    found = answer(name, lambda: asia.query("bronc", given=given, engine=name))
    if found is not None and found.info.converged:
        assert abs(found["yes"] - exact) < 5 * found.info.error + 1e-6


def test_small_models_raise_no_warnings_but_of_convergence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        for name in APPROXIMATE:
            engine = get_engine(name)
            if "marginals" in engine.answers:
                answer(name, lambda n=name: PAIR.model.query("a", engine=n))
            if "best" in engine.answers:
                answer(name, lambda n=name: PAIR.model.map(engine=n))


def test_engines_answer_to_the_other_names_they_have():
    from markovia.inference.engine import _ALSO_CALLED

    for other, name in _ALSO_CALLED.items():
        assert mk.engines.get_engine(other).name == name
        assert other not in mk.engines.engine_names()
