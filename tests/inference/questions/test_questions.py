"""Information, conflict, expectation and second opinions, each against a plain NumPy joint table."""

import numpy as np
import pytest
from hypothesis import assume, settings
from hypothesis import given as sampled
from hypothesis import strategies as st

import markovia as mk
from markovia.inference.questions.agreement import Agreement, second_opinion
from markovia.inference.result import Info
from model_strategies import bayesian_networks, brute_force, markov_networks, random_evidence

models = st.one_of(bayesian_networks(), markov_networks(), markov_networks(kind=mk.FactorGraph))
seeds = st.integers(0, 2**32 - 1)
ENGINES = ["auto", "enumeration"]


def observed(given):
    return {n for n, v in given.items() if isinstance(v, str | int)}


def marginal(table, model, names):
    """The table summed onto names, axes in that order."""
    kept = [n for n in model.variables if n in names]
    summed = table.sum(axis=tuple(i for i, n in enumerate(model.variables) if n not in names))
    return summed.transpose([kept.index(n) for n in names])


def entropy(p):
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def information_of(table, model, target, name):
    p = table / table.sum()
    h = [entropy(marginal(p, model, names)) for names in (target, [name], [*target, name])]
    return h[0] + h[1] - h[2]


# -- information -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@sampled(model=models, seed=seeds)
@settings(max_examples=100, deadline=None)
def test_information_is_the_mutual_information_of_the_joint_table(engine, model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.3)
    table = brute_force(model, given)
    free = [n for n in model.variables if n not in observed(given)]
    assume(free)
    target = [str(n) for n in rng.permutation(free)[: rng.integers(1, 3)]]
    if table.sum() == 0:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.information(target, given=given, engine=engine)
        return
    found = model.information(target, given=given, engine=engine)
    assert set(found) == set(free) - set(target)
    for name, value in found.items():
        assert value == pytest.approx(information_of(table, model, target, name), abs=1e-9)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert found.entropy == pytest.approx(entropy(marginal(table, model, target) / table.sum()), abs=1e-9)


@sampled(model=models, seed=seeds)
@settings(max_examples=100, deadline=None)
def test_information_of_few_candidates_is_the_same_from_their_side(model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.2)
    table = brute_force(model, given)
    free = [str(n) for n in rng.permutation([n for n in model.variables if n not in observed(given)])]
    assume(table.sum() > 0 and len(free) >= 3)
    target, candidates = free[1:], free[:1]
    found = model.information(target, given=given, candidates=candidates)
    assert found[free[0]] == pytest.approx(information_of(table, model, target, free[0]), abs=1e-9)


def test_information_asks_the_engine_once_a_state_of_the_target():
    calls = []

    class Counting:
        name, exact = "counting", True
        inner = mk.engines.VariableElimination()

        def joint(self, problem, targets):
            calls.append(("joint", len(targets)))
            return self.inner.joint(problem, targets)

        def marginals(self, problem, targets):
            calls.append(("marginals", len(targets)))
            return self.inner.marginals(problem, targets)

        def log_mass(self, problem):
            return self.inner.log_mass(problem)

        def best(self, problem, targets, m):
            return self.inner.best(problem, targets, m)

        def sample(self, problem, n, rng):
            return self.inner.sample(problem, n, rng)

    mk.examples.asia().information("lung", engine=Counting())
    assert calls == [("joint", 1), ("marginals", 7), ("marginals", 7)]


def test_information_ranks_by_cost_and_speaks_bits():
    bn = mk.examples.asia()
    plain = bn.information("lung", given={"dysp": "yes"}, candidates=["xray", "smoke"], base=2)
    assert plain.best == "xray"
    assert plain["xray"] * np.log(2) == pytest.approx(
        bn.information("lung", given={"dysp": "yes"}, candidates="xray")["xray"]
    )
    dear = bn.information("lung", given={"dysp": "yes"}, costs={"xray": 1000, "smoke": 1.0}, base=2)
    assert dear.best == "smoke"
    assert list(dear) == ["smoke", "xray"]
    assert dear["xray"] == plain["xray"]
    frame = dear.to_pandas()
    assert list(frame.columns) == ["information", "share", "cost", "per cost"]
    assert frame.loc["xray", "per cost"] == pytest.approx(plain["xray"] / 1000)
    assert "bits per cost" in str(dear)
    assert plain.to_pandas()["share"].tolist() == pytest.approx([v / plain.entropy for v in plain.values()])
    assert str(plain).splitlines()[0].split() == ["test", "bits", "share"]
    assert plain.info.exact
    assert plain.info.engine in repr(plain)


def test_information_refuses_what_makes_no_sense():
    bn = mk.examples.asia()
    with pytest.raises(mk.errors.InvalidArgument, match="'xray' is observed already"):
        bn.information("xray", given={"xray": "yes"})
    with pytest.raises(mk.errors.InvalidArgument, match="'lung' is the target"):
        bn.information("lung", candidates=["lung", "xray"])
    with pytest.raises(mk.errors.UnknownVariable, match="did you mean 'xray'"):
        bn.information("lung", candidates=["xrey"])
    with pytest.raises(mk.errors.InvalidArgument, match="'smoke' has no cost"):
        bn.information("lung", candidates=["smoke"], costs={"xray": 2})
    with pytest.raises(mk.errors.InvalidArgument, match="the cost of 'xray' is a positive number"):
        bn.information("lung", costs={"xray": 0})
    with pytest.raises(mk.errors.InvalidArgument, match="costs= is a mapping"):
        bn.information("lung", costs=3)
    with pytest.raises(mk.errors.InvalidArgument, match="base= is a number above 1"):
        bn.information("lung", base=1)
    with pytest.raises(mk.errors.UnknownArgument, match="it is given= here"):
        bn.information("lung", evidence={"xray": "yes"})


def test_an_observed_candidate_tells_nothing_and_a_lonely_target_has_no_tests():
    bn = mk.examples.asia()
    assert bn.information("lung", given={"xray": "yes"}, candidates=["xray", "smoke"])["xray"] == 0.0
    alone = mk.BayesianNetwork()
    alone.add("a", p=[0.5, 0.5])
    found = alone.information("a")
    assert found.best is None
    assert len(found) == 0
    assert found.entropy == pytest.approx(np.log(2))


def test_a_target_with_soft_evidence_and_impossible_states_is_handled():
    bn = mk.BayesianNetwork()
    bn.add("t", states=[0, 1, 2], p=[0.5, 0.0, 0.5])
    bn.add("x", parents=["t"], p=[[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    given = {"t": [0.3, 1.0, 0.6]}
    table = brute_force(bn, given)
    assert bn.information("t", given=given)["x"] == pytest.approx(information_of(table, bn, ["t"], "x"))


# -- conflict ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@sampled(model=models, seed=seeds)
@settings(max_examples=100, deadline=None)
def test_conflict_compares_the_evidence_with_independent_findings(engine, model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.5)
    total = brute_force(model, {}).sum()
    if total == 0:
        return
    single = {n: brute_force(model, {n: v}).sum() / total for n, v in given.items()}
    if any(p == 0 for p in single.values()):
        with pytest.raises(mk.errors.ImpossibleEvidence) as caught:
            model.conflict(given, engine=engine)
        (name,) = caught.value.evidence
        assert single[name] == 0
        return

    def measure(names):
        mass = brute_force(model, {n: given[n] for n in names}).sum() / total
        return sum(np.log(single[n]) for n in names) - (np.log(mass) if mass > 0 else -np.inf)

    found = model.conflict(given, engine=engine)
    expected = measure(given)
    assert float(found) == pytest.approx(expected, abs=1e-9)
    assert found.present == (expected > 1e-9)
    for name in given:
        without = measure([n for n in given if n != name])
        adds = 0.0 if without == np.inf else expected - without
        assert found.contributions[name] == pytest.approx(adds, abs=1e-9)
    assert list(found.contributions.values()) == sorted(found.contributions.values(), reverse=True)


def test_findings_that_cannot_be_together_are_in_infinite_conflict():
    bn = mk.examples.asia()
    found = bn.conflict({"lung": "yes", "either": "no", "smoke": "yes"})
    assert float(found) == np.inf
    assert found.present
    assert dict(found.contributions) == {"lung": np.inf, "either": np.inf, "smoke": 0.0}
    assert str(found).startswith("conflict inf: the findings disagree")


def test_a_finding_that_an_approximate_engine_misses_is_not_called_impossible():
    bn = mk.BayesianNetwork()
    bn.add("a", p=[0.5, 0.5])
    bn.add("b", parents=["a"], p=[[1, 0], [0, 1]])
    bn.add("c", p=[0, 1])
    engine = mk.engines.MeanField(restarts=1)  # it ends in one of two modes
    seen = int(bn.query("b", engine=engine).values.argmax())
    assert bn.query("b", engine=engine).values[1 - seen] == 0
    assert np.isfinite(float(bn.conflict({"b": seen}, engine=engine)))
    with pytest.raises(mk.errors.Unanswered, match=f"'mean-field' gives b={1 - seen} the .* engine='auto'"):
        bn.conflict({"b": 1 - seen}, engine=engine)
    with pytest.raises(mk.errors.ImpossibleEvidence, match="c"):
        bn.conflict({"c": 0}, engine=engine)


def test_one_finding_or_none_is_never_in_conflict():
    bn = mk.examples.asia()
    assert float(bn.conflict({})) == 0.0
    assert str(bn.conflict({})) == "conflict 0: no conflict between the findings"
    one = bn.conflict({"xray": "yes"})
    assert float(one) == pytest.approx(0.0, abs=1e-12)
    assert not one.present
    assert "no conflict" in str(one)
    with pytest.raises(mk.errors.ImpossibleEvidence, match="weight zero"):
        mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [0, 0])]).conflict({"a": 1})


def test_conflict_of_very_unlikely_evidence_does_not_underflow():
    bn = mk.BayesianNetwork()
    bn.add("c", p=[0.5, 0.5])
    for i in range(400):
        bn.add(f"f{i}", parents=["c"], p=[[0.99, 0.01], [0.01, 0.99]])
    bn.add("z", parents=["c"], p=[[0.0, 1.0], [1.0, 0.0]])
    given = {**{f"f{i}": 1 for i in range(400)}, "z": 1}
    expected = 401 * np.log(0.5) - (np.log(0.5) + 400 * np.log(0.01))
    assert float(bn.conflict(given)) == pytest.approx(expected, rel=1e-12)


# -- expectation -------------------------------------------------------------------------------------------------


@sampled(model=models, seed=seeds)
@settings(max_examples=100, deadline=None)
def test_expectations_equal_sums_over_the_joint_table(model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.3)
    table = brute_force(model, given)
    assume(table.sum() > 0)
    targets = [str(n) for n in rng.permutation(model.variables)[: rng.integers(1, 4)]]
    p = marginal(table, model, targets) / table.sum()
    scores = rng.normal(size=p.shape)
    codes = [{s: i for i, s in enumerate(model.states(n))} for n in targets]
    found = model.expectation(
        lambda *states: scores[tuple(c[s] for c, s in zip(codes, states, strict=True))], targets, given=given
    )
    assert found == pytest.approx(float((p * scores).sum()), abs=1e-9)


def test_an_expectation_reads_its_targets_off_the_function_and_skips_the_impossible():
    bn = mk.BayesianNetwork()
    bn.add("stake", states=[0, 1, 2], p=[0.5, 0.0, 0.5])
    bn.add("win", states=[False, True], p=[0.75, 0.25])

    def payout(win, stake):
        assert stake != 1
        return 3 * stake if win else -stake

    assert bn.expectation(payout) == pytest.approx(0.25 * 0.5 * 6 - 0.75 * 0.5 * 2)
    assert bn.expectation(payout, given={"win": True, "stake": 2}) == 6.0
    assert bn.expectation(lambda s: s, "stake", given={"win": True}, engine="enumeration") == pytest.approx(
        1.0
    )
    with pytest.raises(mk.errors.InvalidArgument, match="a function of the targets' states first"):
        bn.expectation("win")
    with pytest.raises(mk.errors.InvalidArgument, match="one number for every combination"):
        bn.expectation(lambda win: "much")
    with pytest.raises(mk.errors.UnknownVariable, match="'wins'"):
        bn.expectation(lambda wins: 1.0)
    with pytest.raises(mk.errors.InvalidArgument, match="give targets="):
        bn.expectation(lambda *states: 1.0)


# -- second opinions ---------------------------------------------------------------------------------------------


@sampled(model=models, seed=seeds)
@settings(max_examples=60, deadline=None)
def test_two_engines_agree_on_random_models(model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.3)
    table = brute_force(model, given)
    assume(table.sum() > 0)
    targets = [str(n) for n in rng.permutation(model.variables)[: rng.integers(1, 3)]]
    found = model.verify(targets, given=given)
    assert found
    assert found.agree
    assert found.engines[0] != found.engines[1]
    for answer in found.answers:
        np.testing.assert_allclose(answer.values, marginal(table, model, targets) / table.sum(), atol=1e-9)


class Biased(mk.engines.VariableElimination):
    """A wrong engine: it forgets a little mass, or the scale of the evidence."""

    def __init__(self, probability=0.0, log_scale=0.0):
        super().__init__()
        object.__setattr__(self, "error", (probability, log_scale))

    def joint(self, problem, targets):
        right = super().joint(problem, targets)
        probability, log_scale = self.error
        values = right.tables[0].values.copy()
        values.flat[0] += probability
        values.flat[-1] -= probability
        table = mk.Factor.of(right.tables[0].variables, values)
        return type(right)([table], right.log_mass + log_scale, right.record)


def test_a_wrong_engine_is_found_out():
    bn = mk.examples.asia()
    wrong = bn.verify("lung", given={"xray": "yes"}, engines=["auto", Biased(probability=1e-6)])
    assert not wrong
    assert wrong.difference == pytest.approx(1e-6)
    assert "DISAGREE" in str(wrong)
    assert bn.verify("lung", given={"xray": "yes"}, engines=["auto", Biased(1e-6)], tolerance=1e-5).agree
    scale = bn.verify("lung", given={"xray": "yes"}, engines=["enumeration", Biased(log_scale=1e-3)])
    assert not scale.agree
    assert scale.difference < 1e-12
    assert scale.log_evidence_difference == pytest.approx(1e-3 / 2.2, rel=0.01)


def test_verify_prints_both_answers_and_checks_its_arguments():
    bn = mk.examples.asia()
    found = bn.verify("lung", engines=["variable-elimination", "enumeration"])
    assert "variable-elimination and enumeration agree" in str(found)
    assert str(found).count("0.055") == 2
    with pytest.raises(mk.errors.InvalidArgument, match="at least two engines, not 1"):
        bn.verify("lung", engines=["auto"])
    with pytest.raises(mk.errors.InvalidArgument, match="a list of at least two engines"):
        bn.verify("lung", engines="enumeration")
    with pytest.raises(mk.errors.UnknownEngine):
        bn.verify("lung", engines=["auto", "magic"])
    with pytest.raises(mk.errors.InvalidArgument, match="tolerance="):
        bn.verify("lung", tolerance="small")


def test_a_model_with_room_for_one_engine_only_says_so():
    def refuse(name):
        raise mk.errors.TooLarge(f"{name} has no room")

    with pytest.raises(
        mk.errors.TooLarge, match=r"no second exact engine fits .*enumeration: enumeration has no room"
    ):
        second_opinion(refuse, "variable-elimination")


def test_answers_without_log_evidence_can_be_compared():
    table = mk.Factor(["a"], [0.25, 0.75])
    both = Agreement(
        [mk.results.Posterior(table, Info("one")), mk.results.Posterior(table, Info("two"))], 0.0
    )
    assert both.agree


# -- all models, interventions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", ["to_markov_network", "to_factor_graph"])
def test_every_question_has_the_same_answer_on_the_undirected_model(convert):
    bn = mk.examples.asia()
    other = getattr(bn, convert)()
    given = {"dysp": "yes", "smoke": [0.4, 0.9]}
    assert dict(other.information("lung", given=given)) == pytest.approx(
        dict(bn.information("lung", given=given)), abs=1e-10
    )
    assert float(other.conflict(given)) == pytest.approx(float(bn.conflict(given)), abs=1e-10)
    assert other.verify("lung", given=given).agree
    assert other.sensitivity("lung=yes", given=given).probability == pytest.approx(
        bn.query("lung", given=given)["yes"], abs=1e-12
    )
    assert other.expectation(lambda lung: lung == "yes", given=given) == pytest.approx(
        bn.query("lung", given=given)["yes"], abs=1e-12
    )


def test_every_question_works_after_an_intervention():
    bn = mk.examples.asia().do(smoke="yes", either=[0.5, 0.5])
    given = {"dysp": "yes"}
    table = brute_force(bn, given)
    found = bn.information("bronc", given=given)
    for name, value in found.items():
        assert value == pytest.approx(information_of(table, bn, ["bronc"], name), abs=1e-10)
    assert found["smoke"] == pytest.approx(0.0, abs=1e-12)
    assert bn.verify(["bronc", "xray"], given=given).agree
    p = bn.query("bronc", given=given)["yes"]
    assert bn.expectation(lambda bronc: bronc == "yes", given=given) == pytest.approx(p, abs=1e-12)
    assert bn.sensitivity("bronc=yes", given=given).probability == pytest.approx(p, abs=1e-12)
    expected = np.log(brute_force(bn, {"xray": "yes"}).sum()) + np.log(table.sum())
    both = {"dysp": "yes", "xray": "yes"}
    assert float(bn.conflict(both)) == pytest.approx(
        expected - np.log(brute_force(bn, both).sum()), abs=1e-10
    )
    fixed = bn.query("xray", given={**given, "xray": mk.Jeffrey([0.1, 0.9])})
    assert fixed.values == pytest.approx([0.1, 0.9], abs=1e-12)
