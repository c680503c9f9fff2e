"""Every engine, on every kind of model, for every verb: the truth, or a refusal that names an engine that does answer."""

import re
import warnings
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest

import markovia as mk
from engine_cases import CASES, model_of, truth_of
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.approximate import can_answer
from markovia.inference.engine import CLOSED, TABLES, engine_names, get_engine
from markovia.inference.posterior import Posterior

DRAWS = 300
ROUGH = {
    "mean-field": 0.3,
    "structured-mean-field": 0.25,
    "tree-reweighted": 0.12,
    "loopy-bp": 0.05,
    "sgld": 0.5,
    "langevin": 0.5,
    "laplace": 0.5,
    "advi": 0.2,
    "flow-vi": 0.4,
    "cavi": 0.5,
    "svi": 0.2,
    "metropolis": 0.3,
    "mala": 0.3,
}
"""How far an approximate answer may be off: in probability, or in standard deviations of a number; 0.12 for all others."""
SMALL = {"draws": 1500, "warmup": 500, "chains": 2, "steps": 1500}
EXACT_DRAWS = ("auto", "junction-tree", "variable-elimination", "conditioning", "enumeration", "gaussian")


@cache
def engine(name):
    """Return an engine that does little work."""
    made = get_engine(name)
    if name == "advi":  # independent numbers would not have these posteriors' deviations
        return replace(made, family="full-rank")
    if not isinstance(made, mk.engines.NUTS | mk.engines.HMC):
        return made
    return replace(made, **{f.name: SMALL[f.name] for f in fields(made) if f.name in SMALL})


def states_of(model, name):
    """Return the states of a variable; None for a number."""
    variable = model.variable(name)
    return None if isinstance(variable, Quantity) else list(variable.states)


def tolerance(name, case, info=None):
    if info is not None:
        exact = info.exact
    elif name == "auto":
        exact = case not in ("density", "states and numbers")
    else:
        exact = get_engine(name).exact
    return 1e-8 if exact else ROUGH.get(name, 0.12)


# -- what an answer has to be ----------------------------------------------------------------------------------------


def check_posterior(case, name, post, names):
    truth, model = truth_of(case), model_of(case)
    near = tolerance(name, case, post.info)
    if not post.info.exact:
        near = max(near, ROUGH.get(post.info.engine, 0.0))
    if isinstance(post, Posterior) and len(names) > 1:
        for one in names:
            table = post.factor().marginal([one]).values
            np.testing.assert_allclose(table, truth.shares(one, len(table)), atol=near)
        return
    for one in names:
        own = post[one] if len(names) > 1 else post
        if isinstance(own, Posterior):
            np.testing.assert_allclose(own.values, truth.shares(one, len(own.values)), atol=near)
            assert list(own.variables[0].states) == model.states(one)
        elif hasattr(own, "probabilities"):
            np.testing.assert_allclose(own.probabilities, truth.shares(one, 2).T, atol=near)
        else:
            sd = truth.sd(one)
            np.testing.assert_allclose(own.mean(), truth.mean(one), atol=max(near, 1e-6) * sd)
            np.testing.assert_allclose(own.sd(), sd, atol=max(near, 1e-6) * sd)


def check_best(case, name, found):
    truth, model = truth_of(case), model_of(case)
    log_prob = found.log_prob if found.normalised else found.log_weight - truth.log_z
    assert log_prob <= truth.log_best + (
        1e-6 if found.info.exact else 1e-4
    )  # the best on a grid is not quite the best
    assert found.bound >= found.log_prob - 1e-9
    if found.gap == 0.0 and found.info.exact:
        assert log_prob == pytest.approx(truth.log_best, abs=1e-6)
        for one, value in truth.best.items():
            states = states_of(model, one)
            told = states.index(found[one]) if states else found[one]
            np.testing.assert_allclose(told, value, atol=3e-3)
    else:
        assert log_prob >= truth.log_best - 1.0


def check_best_of_some(case, name, found):
    truth, target = truth_of(case), CASES[case].target
    assert list(found) == [target]
    if not found.info.exact:
        return
    states = states_of(model_of(case), target)
    if states:
        shares = truth.shares(target, len(states))
        assert states.index(found[target]) == shares.argmax()
        log_weight = found.log_prob if found.normalised else found.log_weight - truth.log_z
        assert log_weight == pytest.approx(truth.log_evidence + np.log(shares.max()), abs=1e-8)
    elif np.ndim(found[target]):
        check_best(case, name, found)  # the chain is all there is
    else:
        assert found.log_prob >= truth.log_evidence - np.log(truth.sd(target)) - 2.0


def check_two_best(case, name, found):
    check_best(case, name, found[0])
    if len(found) == 2:
        assert found[1].log_prob <= found[0].log_prob
        assert found[1].to_dict() != found[0].to_dict()


def check_number(expected):
    def check(case, name, found):
        wide = 1e-8 if tolerance(name, case) == 1e-8 else 0.8
        assert found == pytest.approx(expected(truth_of(case)), abs=wide)

    return check


def check_rows(case, name, rows, given):
    """Draws have the right means and deviations, seen from both sides; a mean of n draws is 4.5 errors off at most."""
    truth, model = truth_of(case), model_of(case)
    if not given:
        assert set(model.variables) == set(rows)
        return
    for one in truth.columns:
        column = np.asarray(rows[one].values)
        states = states_of(model, one)
        if states:
            column = np.vectorize(states.index)(column)
        sd = truth.sd(one)
        worth = (
            1.0 if name in EXACT_DRAWS or column.ndim > 1 else 0.1
        )  # draws of a chain or resampled ones repeat
        far = 4.5 / np.sqrt(worth * DRAWS) + (0.0 if name in EXACT_DRAWS else ROUGH.get(name, 0.12))
        assert np.all(np.abs(column.mean(axis=0) - truth.mean(one)) <= far * sd)
        if name in EXACT_DRAWS:
            assert np.all((column.std(axis=0) > 0.8 * sd) & (column.std(axis=0) < 1.25 * sd))


def check_expectation(case, name, found):
    truth, target = truth_of(case), CASES[case].target
    sd = 1.0 if states_of(model_of(case), target) else float(np.sum(truth.sd(target)))
    by_draws = case == "plates" or name == "conjugate"  # a function of numbers is averaged over draws
    near = 1e-6 if tolerance(name, case) == 1e-8 and not by_draws else max(ROUGH.get(name, 0.12), 0.12)
    assert found == pytest.approx(float(np.sum(truth.mean(target))), abs=max(near * sd, 1e-9))


def check_information(case, name, found):
    expected = truth_of(case).information
    (value,) = found.values()
    if expected is None:
        assert value >= 0.0
    else:
        assert value == pytest.approx(expected, abs=1e-8 if found.info.exact else 0.15)


def check_agreement(case, name, found):
    near = max(tolerance(a.info.engine, case, a.info) for a in found.answers)
    assert found.difference <= 2 * near + 1e-6
    assert found.agree == (max(found.difference, found.log_evidence_difference) <= found.tolerance)


def check_sensitivity(case, name, found):
    truth, target = truth_of(case), CASES[case].target
    if hasattr(found, "probability"):
        assert found.probability == pytest.approx(float(truth.shares(target, 2)[1]), abs=1e-9)
    else:
        assert found.mean == pytest.approx(float(truth.mean(target)), abs=1e-8)


def check_prediction(case, name, found):
    truth, target, model = truth_of(case), CASES[case].target, model_of(case)
    states = states_of(model, target)
    if states and tolerance(name, case) == 1e-8:
        assert states.index(found.iloc[0]) == truth.shares(target, len(states)).argmax()
    elif not states:
        assert found.iloc[0] == pytest.approx(truth.mean(target), abs=0.5 * truth.sd(target))


def check_table(case, name, found):
    truth, target, model = truth_of(case), CASES[case].target, model_of(case)
    states, near = states_of(model, target), max(tolerance(name, case), 1e-6)
    if states:
        np.testing.assert_allclose(found.to_numpy()[0], truth.shares(target, len(states)), atol=near)
    else:
        told = [truth.mean(target), truth.sd(target)]
        np.testing.assert_allclose(found.to_numpy()[0], told, atol=near * truth.sd(target))


def _number(value, model, target):
    states = states_of(model, target)
    return float(states.index(value)) if states else float(np.sum(value))


def verbs(case):
    """Return by verb how to ask it of an engine, and the check of the answer."""
    own, model = CASES[case], model_of(case)
    given, target = dict(own.given), own.target
    names = list(dict.fromkeys([target, own.other]))
    rows = [given]
    query = target if model.has_quantities else (target, model.states(target)[1])
    seen = next(iter(given))
    return {
        "query": (
            lambda e: model.query(target, given=given, engine=e),
            lambda c, n, p: check_posterior(c, n, p, [target]),
        ),
        "joint": (
            lambda e: model.query(names, given=given, engine=e),
            lambda c, n, p: check_posterior(c, n, p, names),
        ),
        "marginals": (
            lambda e: model.marginals(given=given, engine=e),
            lambda c, n, found: [check_posterior(c, n, p, [v]) for v, p in found.items()],
        ),
        "map": (lambda e: model.map(given=given, engine=e), check_best),
        "map of some": (lambda e: model.map(given=given, targets=[target], engine=e), check_best_of_some),
        "two best": (lambda e: model.map(given=given, m=2, engine=e), check_two_best),
        "log_evidence": (
            lambda e: model.log_evidence(given, engine=e),
            check_number(lambda t: t.log_evidence),
        ),
        "log_partition": (
            lambda e: model.log_partition(own.lengths or None, engine=e),
            check_number(lambda t: t.log_z),
        ),
        "log_partition given": (
            lambda e: model.log_partition(given, engine=e),
            check_number(lambda t: t.log_z + t.log_evidence),
        ),
        "sample": (
            lambda e: model.sample(DRAWS, given=own.lengths or None, seed=1, engine=e),
            lambda c, n, found: check_rows(c, n, found, False),
        ),
        "sample given": (
            lambda e: model.sample(DRAWS, given=given, seed=1, engine=e),
            lambda c, n, found: check_rows(c, n, found, True),
        ),
        "expectation": (
            lambda e: model.expectation(lambda x: _number(x, model, target), [target], given=given, engine=e),
            check_expectation,
        ),
        "information": (
            lambda e: model.information(target, given=own.lengths or None, candidates=[seen], engine=e),
            check_information,
        ),
        "verify": (lambda e: model.verify(target, given=given, engines=[e, "auto"]), check_agreement),
        "sensitivity": (lambda e: model.sensitivity(query, given=given), check_sensitivity),
        "conflict": (
            lambda e: model.conflict(given, engine=e),
            lambda c, n, found: check_number(lambda t: t.log_evidence)(c, n, found.log_evidence),
        ),
        "predict": (lambda e: model.predict(rows, target, engine=e), check_prediction),
        "predict_proba": (lambda e: model.predict_proba(rows, target, engine=e), check_table),
        "log_prob": (
            lambda e: np.ravel(model.log_prob(dict(own.row) if own.lengths else [own.row], engine=e))[0],
            check_number(lambda t: t.log_full),
        ),
    }


# -- the matrix ------------------------------------------------------------------------------------------------------

COMPILED = {"sample", "log_prob"}
"""Verbs that need no engine in a model with functions of parents, but a compiled program."""
QUESTION = {
    "map": "best",
    "map of some": "best",
    "two best": "best",
    "sample given": "sample",
    **dict.fromkeys(("log_evidence", "log_partition", "log_partition given", "conflict"), "log_mass"),
}
"""What engines are asked for by a verb; marginals by the others."""
NOBODY = {
    ("two best", "density"),
    ("two best", "plates"),
    ("two best", "states and numbers"),
    ("two best", "chain on a plate"),
    ("map of some", "density"),
    ("map of some", "states and numbers"),
}
"""Questions that no engine answers; the cure is another one."""
OTHER_CURES = (
    "leave ",
    "ask ",
    "observe ",
    "compare ",
    "average ",
    "make ",
    "to_bayesian_network",
    "query(",
    "name ",
    "log_evidence(",
)


@cache
def outcome(case, name, verb):
    """Return the answer, or what was refused."""
    ask, _ = verbs(case)[verb]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ask(engine(name))
        except (mk.errors.UnsupportedModel, mk.errors.Unanswered, mk.errors.InvalidArgument) as refusal:
            return refusal
        except mk.errors.InvalidEvidence as refusal:
            return refusal


def named(refusal):
    """Return the engines that a refusal names as its cure."""
    text = str(refusal).partition("use engine=")[2]
    return [n for n in re.findall(r"'([a-z-]+)'", text) if n in engine_names()]


def draws_by_jax(case, name):
    """Say whether a pair needs a program to be compiled, which takes seconds."""
    kinds = model_of(case)._problem(CASES[case].given).kinds
    treated = getattr(get_engine(name), "kinds", TABLES)
    if kinds <= CLOSED and name in ("auto", "gaussian"):
        return False
    return not kinds <= TABLES and (
        kinds <= treated or hasattr(get_engine(name), "continuous") or name == "auto"
    )


QUICK_TABLES = ("discrete network", "log-linear field")
PAIRS = [
    pytest.param(
        case,
        name,
        marks=[pytest.mark.slow]
        if draws_by_jax(case, name) or (model_of(case)._variables and case in ("Markov network", "chain"))
        else [],
    )
    for case in CASES
    for name in engine_names()
]


@pytest.mark.parametrize(("case", "name"), PAIRS)
def test_every_engine_answers_every_verb_rightly_or_names_one_that_does(case, name):
    quick = not draws_by_jax(case, name)
    for verb, (_, check) in verbs(case).items():
        if quick and draws_by_jax(case, "auto") and verb in COMPILED:
            continue  # simulated by the model itself, whatever the engine
        found = outcome(case, name, verb)
        if not isinstance(found, Exception):
            check(case, name, found)
            continue
        cures = named(found)
        if not cures:  # no engine answers; then the sentence says what else to do
            assert any(word in str(found) for word in OTHER_CURES), (verb, found)
            for other in [n for n in ("auto", "gaussian", "junction-tree") if not draws_by_jax(case, n)]:
                assert isinstance(outcome(case, other, verb), Exception), (verb, other, found)
            continue
        assert isinstance(found, mk.errors.UnsupportedModel | mk.errors.Unanswered), (verb, found)
        assert name not in cures
        for cure in cures:
            if quick and draws_by_jax(case, cure):
                assert (verb, case) not in NOBODY
                asked = QUESTION.get(verb, "marginals")
                assert can_answer(get_engine(cure), asked), (verb, cure)
                continue  # the slow pairs have its answer
            assert not isinstance(outcome(case, cure, verb), Exception), (verb, cure, found)
