"""Each exact question checked against a table of log weights made of plain arrays, for whichever engine is named.

All engines that call themselves exact are found by name, so a new one is tested as soon as it is registered.
"""

import numpy as np
import pytest

import markovia as mk
from markovia.inference.densities.draws.density_engine import DensityEngine
from markovia.inference.engine import engine_names, get_engine
from model_strategies import log_marginal, log_sum, log_weights

EXACT = [
    name
    for name in engine_names()
    if get_engine(name).exact and not isinstance(get_engine(name), DensityEngine)
]
"""Those that answer about tables."""
LONG = [name for name in EXACT if name in ("auto", "junction-tree")]
every_exact_engine = pytest.mark.parametrize("engine", EXACT)
not_by_listing = pytest.mark.parametrize("engine", [name for name in EXACT if name != "enumeration"])


def close(found, expected):
    return found == pytest.approx(expected, rel=1e-11, abs=1e-10)


def some_of(rng, names, most):
    return [str(n) for n in rng.permutation(list(names))[: rng.integers(1, most + 1)]]


def free_of(case, given):
    return [n for n in case.cards if not isinstance(given.get(n), int)]


def check_posterior(case, given, logs, engine, targets):
    """One variable's posterior, or the joint of several in the order asked for."""
    answer = case.model.query(targets, given=given, engine=engine)
    names = [targets] if isinstance(targets, str) else targets
    assert answer.names == tuple(names)
    expected = np.exp(log_marginal(case, logs, names) - log_sum(logs))
    np.testing.assert_allclose(answer.values, expected, rtol=0, atol=1e-10)
    return answer, expected


def check_marginals(case, given, logs, engine, targets=None):
    answers = case.model.marginals(given=given, targets=targets, engine=engine)
    assert list(answers) == (free_of(case, given) if targets is None else targets)
    mass, total = log_sum(logs), log_sum(log_weights(case))
    for name, answer in answers.items():
        expected = np.exp(log_marginal(case, logs, [name]) - mass)
        np.testing.assert_allclose(answer.values, expected, rtol=0, atol=1e-10)
        assert close(answer.info.log_evidence, mass - total)
        assert answer.info.exact
        assert getattr(engine, "name", engine) in ("auto", answer.info.engine)
    return answers


def check_mass(case, given, logs, engine):
    mass, total = log_sum(logs), log_sum(log_weights(case))
    assert close(case.model.log_partition(given=given, engine=engine), mass)
    if np.isneginf(total):
        with pytest.raises(mk.errors.ImpossibleEvidence):
            case.model.log_evidence(given=given, engine=engine)
    else:
        assert close(case.model.log_evidence(given=given, engine=engine), mass - total)


def check_best(case, given, logs, engine, m, targets=None):
    """The m best explanations by their weights, since ties have no order; all different, none missing."""
    asked = free_of(case, given) if targets is None else targets
    marginal = log_marginal(case, logs, asked)
    mass, total = log_sum(logs), log_sum(log_weights(case))
    found = case.model.map(given=given, targets=targets, m=m, engine=engine)
    best = np.sort(marginal[np.isfinite(marginal)])[::-1][:m]
    assert [e.log_prob for e in found] == pytest.approx((best - total).tolist(), rel=1e-11, abs=1e-10)
    assert [e.log_posterior for e in found] == pytest.approx((best - mass).tolist(), rel=1e-11, abs=1e-10)
    places = [tuple(e[n] for n in asked) for e in found]
    assert len(set(places)) == len(found)
    for place, explanation in zip(places, found, strict=True):
        assert list(explanation) == asked
        assert close(marginal[place] - total, explanation.log_prob)
        assert explanation.bound >= explanation.log_prob - 1e-9
    one = case.model.map(given=given, targets=targets, engine=engine)
    assert close(one.log_prob, best[0] - total)
    assert close(marginal[tuple(one[n] for n in asked)], best[0])


def check_impossible(case, given, engine, ask):
    """The error names findings that are impossible together, and possible without any one of them."""
    with pytest.raises(mk.errors.ImpossibleEvidence) as caught:
        ask()
    named = caught.value.evidence
    assert all(given[n] is said or given[n] == said for n, said in named.items())
    assert np.isneginf(log_sum(log_weights(case, named)))
    for name in named:
        rest = {n: said for n, said in named.items() if n != name}
        assert log_sum(log_weights(case, rest)) > -np.inf


def check_one_question(case, given, engine, rng):
    """Ask one question, chosen at random; return the answer and what it was found to be, if it is a table."""
    logs = log_weights(case, given)
    model = case.model
    targets = some_of(rng, case.cards, 4)
    what = rng.integers(6)
    if np.isneginf(log_sum(logs)):
        asks = [
            lambda: model.query(targets, given=given, engine=engine),
            lambda: model.marginals(given=given, engine=engine),
            lambda: model.map(given=given, engine=engine),
            lambda: model.sample(2, given=given, engine=engine, seed=0),
        ]
        if what >= len(asks):
            check_mass(case, given, logs, engine)
        else:
            check_impossible(case, given, engine, asks[what])
        return None
    if what == 0:
        return check_posterior(case, given, logs, engine, targets[0])
    if what == 1:
        return check_posterior(case, given, logs, engine, targets)
    if what == 2:
        check_marginals(case, given, logs, engine)
    elif what == 3:
        check_mass(case, given, logs, engine)
    elif what == 4:
        check_best(case, given, logs, engine, int(rng.integers(1, 6)))
    else:
        check_best(case, given, logs, engine, int(rng.integers(1, 4)), targets)
    return None
