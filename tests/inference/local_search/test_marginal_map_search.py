"""Marginal MAP by search over the targets, against brute force and exact elimination."""

import numpy as np
import pytest

import markovia as mk
from model_strategies import log_marginal, log_weights, random_case, random_findings


def setting(seed, rate=0.25):
    """A random model, findings, targets, and the log masses of all assignments of the targets."""
    rng = np.random.default_rng(seed)
    case = random_case(seed, max_entries=6000)
    given = random_findings(case, rng, rate)
    free = [n for n in case.cards if not isinstance(given.get(n), int)]
    if len(free) < 2:
        return None
    targets = [str(t) for t in rng.permutation(free)[: rng.integers(1, len(free))]]
    logs = log_weights(case, given)
    fixed = tuple(given[n] if isinstance(given.get(n), int) else slice(None) for n in case.cards)
    if not np.isfinite(logs.max()):
        return None
    whole = np.full(logs.shape, -np.inf)
    whole[fixed] = logs[fixed]
    return case, given, targets, log_marginal(case, whole, targets)


@pytest.mark.parametrize("search", ["tabu", "hill-climbing"])
@pytest.mark.parametrize("block", range(4))
def test_masses_are_true_and_the_best_assignment_is_found(search, block):
    hits, tried = 0, 0
    engine = mk.engines.MarginalMapSearch(search=search, seed=0)
    for seed in range(10 * block, 10 * block + 10):
        made = setting(seed)
        if made is None:
            continue
        case, given, targets, masses = made
        tried += 1
        problem = case.model._problem(given, "enumeration")
        found = engine.best(problem, targets, 1)
        at = tuple(found[0].codes[t] for t in targets)
        assert found[0].log_weight == pytest.approx(masses[at], abs=1e-7)
        assert found.record.converged
        hits += found[0].log_weight >= masses.max() - 1e-7
    assert tried >= 5
    assert hits >= tried - (search != "tabu")


def test_it_agrees_with_exact_elimination_on_a_real_network():
    asia = mk.examples.asia()
    targets = ["smoke", "lung", "bronc", "tub"]
    for given in ({"xray": "yes"}, {"dysp": "yes", "asia": "yes"}, {"xray": "no", "dysp": [0.3, 0.7]}):
        exact = asia.map(given=given, targets=targets, engine="variable-elimination")
        found = asia.map(given=given, targets=targets, engine="marginal-map")
        assert found.to_dict() == exact.to_dict()
        assert found.log_weight == pytest.approx(exact.log_weight)
        assert not found.info.exact
        assert found.info.details.inner == "junction-tree"


def test_several_best_assignments_come_in_order():
    case, given, targets, masses = next(
        s for s in map(setting, range(20)) if s is not None and s[3].size >= 4
    )
    problem = case.model._problem(given, "enumeration")
    found = mk.engines.MarginalMapSearch(seed=0).best(problem, targets, 3)
    weights = [a.log_weight for a in found]
    assert weights == sorted(weights, reverse=True)
    for a in found:
        assert a.log_weight == pytest.approx(masses[tuple(a.codes[t] for t in targets)], abs=1e-7)
    assert len({tuple(a.codes.items()) for a in found}) == len(found)


def test_soft_findings_on_targets_count():
    bn = mk.examples.sprinkler()
    given = {"rain": [0.9, 0.1], "wet": "yes"}
    exact = bn.map(given=given, targets=["rain", "sprinkler"], engine="variable-elimination")
    found = bn.map(given=given, targets=["rain", "sprinkler"], engine="marginal-map")
    assert found.to_dict() == exact.to_dict()
    assert found.log_weight == pytest.approx(exact.log_weight)


def test_other_inner_engines_sum_too():
    asia = mk.examples.asia()
    targets = ["lung", "bronc"]
    exact = asia.map(given={"dysp": "yes"}, targets=targets, engine="variable-elimination")
    for inner in ("variable-elimination", "enumeration", mk.engines.Conditioning(progress=False)):
        engine = mk.engines.MarginalMapSearch(engine=inner, restarts=0, seed=0)
        found = asia.map(given={"dysp": "yes"}, targets=targets, engine=engine)
        assert found.to_dict() == exact.to_dict()


def test_limits_are_kept_and_said():
    asia = mk.examples.asia()
    engine = mk.engines.MarginalMapSearch(max_evaluations=2, seed=0)
    with pytest.warns(mk.errors.ConvergenceWarning, match="more evaluations"):
        found = asia.map(targets=["lung", "bronc", "smoke", "tub"], engine=engine)
    assert found.info.details.evaluations <= 3


def test_impossible_evidence_has_no_answer():
    bn = mk.BayesianNetwork()
    bn.add("a", states=2, p=[0.5, 0.5])
    bn.add("b", states=2, parents=["a"], p=[[1, 0], [1, 0]])
    problem = bn._problem({"b": 1}, "enumeration")
    assert mk.engines.MarginalMapSearch(seed=0).best(problem, ["a"], 1) == []


def test_bad_settings_are_refused():
    with pytest.raises(mk.errors.InvalidArgument, match="search="):
        mk.engines.MarginalMapSearch(search="beam")
    with pytest.raises(mk.errors.InvalidArgument, match="log partition functions"):
        mk.engines.MarginalMapSearch(engine="tabu")
    with pytest.raises(mk.errors.InvalidArgument, match="max_evaluations="):
        mk.engines.MarginalMapSearch(max_evaluations=0)
