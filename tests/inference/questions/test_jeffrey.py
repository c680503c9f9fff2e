"""Evidence that fixes posteriors: Jeffrey's rule, several at once by proportional fitting, and what cannot be."""

import numpy as np
import pytest
from hypothesis import assume, settings
from hypothesis import given as sampled
from hypothesis import strategies as st

import markovia as mk
from markovia.factors.tables.evidence import read_evidence
from markovia.inference.problem import Problem
from markovia.inference.questions.jeffrey import settled
from model_strategies import bayesian_networks, brute_force, markov_networks, random_evidence

models = st.one_of(bayesian_networks(), markov_networks(), markov_networks(kind=mk.FactorGraph))
seeds = st.integers(0, 2**32 - 1)


def along(table, axis, vector):
    view = [1] * table.ndim
    view[axis] = len(vector)
    return table * np.reshape(vector, view)


def margin(table, axis):
    return table.sum(axis=tuple(i for i in range(table.ndim) if i != axis))


def reachable_beliefs(model, table, rng, n):
    """Marginals of a random distribution with the support of the table: they fit together, strictly inside."""
    other = table / table.sum() * (0.2 + rng.random(table.shape))
    other /= other.sum()
    names = [str(x) for x in rng.permutation(model.variables)[:n]]
    return {x: margin(other, model.variables.index(x)) for x in names}


@sampled(model=models, seed=seeds, engine=st.sampled_from(["auto", "enumeration"]))
@settings(max_examples=150, deadline=None)
def test_one_fixed_posterior_is_jeffreys_rule(model, seed, engine):
    rng = np.random.default_rng(seed)
    name = str(rng.choice(model.variables))
    given = {n: v for n, v in random_evidence(model, rng, rate=0.3).items() if n != name}
    table = brute_force(model, given)
    assume(table.sum() > 0)
    axis = model.variables.index(name)
    p = margin(table, axis) / table.sum()
    q = np.where(p > 0, rng.random(len(p)), 0.0)
    if np.count_nonzero(q) > 1 and rng.random() < 0.3:
        q[rng.choice(np.flatnonzero(q))] = 0.0
    q /= q.sum()
    expected = along(table / table.sum(), axis, np.divide(q, p, out=np.zeros_like(q), where=p > 0))
    fixed = {**given, name: mk.Jeffrey(q.tolist())}
    for other, posterior in model.marginals(given=fixed, engine=engine).items():
        np.testing.assert_allclose(
            posterior.values, margin(expected, model.variables.index(other)), atol=1e-10
        )
    joint = model.query(model.variables, given=fixed, engine=engine)
    np.testing.assert_allclose(joint.values, expected, atol=1e-10)


@pytest.mark.parametrize("joint_entries", [2**12, 0])
@sampled(model=models, seed=seeds)
@settings(max_examples=60, deadline=None)
def test_several_fixed_posteriors_hold_and_stay_nearest_to_the_model(joint_entries, model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.25)
    table = brute_force(model, given)
    assume(table.sum() > 0)
    beliefs = reachable_beliefs(model, table, rng, int(rng.integers(1, 4)))
    beliefs = {n: q for n, q in beliefs.items() if n not in given}
    fixed = {**given, **{n: mk.Jeffrey(q.tolist()) for n, q in beliefs.items()}}
    problem = Problem(model._variables, model.pieces(), read_evidence(model._variables, fixed))
    findings = settled(problem, joint_entries=joint_entries).findings
    result = table / table.sum()
    for name in beliefs:  # a product of functions of single variables: the nearest distribution there is
        result = along(result, model.variables.index(name), findings[name].weights())
    assert result.sum() == pytest.approx(1.0, abs=1e-11)
    for name, q in beliefs.items():
        np.testing.assert_allclose(margin(result, model.variables.index(name)), q, atol=1e-11)


@sampled(model=models, seed=seeds)
@settings(max_examples=60, deadline=None)
def test_all_verbs_answer_under_fixed_posteriors(model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.25)
    table = brute_force(model, given)
    assume(table.sum() > 0)
    beliefs = {n: q for n, q in reachable_beliefs(model, table, rng, 2).items() if n not in given}
    fixed = {**given, **{n: mk.Jeffrey(q.tolist()) for n, q in beliefs.items()}}
    for name, q in beliefs.items():
        np.testing.assert_allclose(model.query(name, given=fixed).values, q, atol=1e-11)
    joint = model.query(model.variables, given=fixed)
    log_evidence = model.log_evidence(given=given)
    assert model.log_evidence(given=fixed) == pytest.approx(log_evidence, abs=1e-9)
    assert model.log_partition(given=fixed) == pytest.approx(model.log_partition(given=given), abs=1e-9)
    best = model.map(given=fixed, targets=model.variables)
    assert best.log_posterior == pytest.approx(np.log(joint.values.max()), abs=1e-9)
    assert best.log_prob == pytest.approx(log_evidence + np.log(joint.values.max()), abs=1e-9)
    assert model.verify(model.variables[0], given=fixed).agree
    left = model.condition(fixed)
    if left.variables:
        name = left.variables[0]
        np.testing.assert_allclose(left.query(name).values, joint.marginal(name).values, atol=1e-9)


def test_rows_are_drawn_under_fixed_posteriors():
    bn = mk.examples.asia()
    given = {"xray": mk.Jeffrey({"yes": 0.4, "no": 0.6}), "dysp": mk.Jeffrey([0.3, 0.7]), "smoke": "yes"}
    n = 40_000
    rows = bn.sample(n, given=given, seed=3)
    assert (rows["smoke"] == "yes").all()
    for name, p in [("xray", 0.4), ("dysp", 0.3), ("lung", bn.query("lung", given=given)["yes"])]:
        assert abs((rows[name] == "yes").mean() - p) < 4.5 * np.sqrt(p * (1 - p) / n)


def test_jeffreys_candle_by_lamplight():
    """Jeffrey (1965): a cloth seen by candlelight is green 0.7, blue 0.25, violet 0.05; sold tomorrow by colour."""
    bn = mk.BayesianNetwork()
    bn.add("colour", states=["green", "blue", "violet"], p=[0.3, 0.3, 0.4])
    bn.add("sold", states=["yes", "no"], parents=["colour"], p=[[0.4, 0.6], [0.4, 0.6], [0.8, 0.2]])
    given = {"colour": mk.Jeffrey([0.7, 0.25, 0.05])}
    assert bn.query("sold", given=given)["yes"] == pytest.approx(0.42, abs=1e-15)
    assert bn.query(["colour", "sold"], given=given)["violet", "yes"] == pytest.approx(0.04, abs=1e-15)


def test_a_belief_is_not_a_likelihood_and_does_not_depend_on_the_prior():
    bn = mk.examples.sprinkler()
    believed = bn.query("rain", given={"rain": mk.Jeffrey([0.3, 0.7]), "wet": "yes"})
    assert believed["yes"] == pytest.approx(0.7, abs=1e-15)
    assert bn.query("rain", given={"rain": [0.3, 0.7], "wet": "yes"})["yes"] > 0.8


def test_strongly_dependent_variables_still_converge():
    bn = mk.BayesianNetwork()
    bn.add("a", p=[0.5, 0.5])
    bn.add("b", parents=["a"], p=[[0.999, 0.001], [0.001, 0.999]])
    given = {"a": mk.Jeffrey([0.3, 0.7]), "b": mk.Jeffrey([0.4, 0.6])}
    found = bn.query(["a", "b"], given=given)
    assert found.marginal("a").values == pytest.approx([0.3, 0.7], abs=1e-12)
    assert found.marginal("b").values == pytest.approx([0.4, 0.6], abs=1e-12)
    odds = found[0, 0] * found[1, 1] / (found[0, 1] * found[1, 0])
    assert odds == pytest.approx(999.0**2, rel=1e-9)


def test_many_fixed_posteriors_at_once_are_fitted_by_queries():
    bn = mk.BayesianNetwork()
    bn.add("x0", p=[0.5, 0.5])
    for i in range(1, 20):
        bn.add(f"x{i}", parents=[f"x{i - 1}"], p=[[0.8, 0.2], [0.3, 0.7]])
    given = {f"x{i}": mk.Jeffrey([0.5 + 0.02 * i, 0.5 - 0.02 * i]) for i in range(20)}
    found = bn.marginals(given=given)
    for i in range(20):
        assert found[f"x{i}"][0] == pytest.approx(0.5 + 0.02 * i, abs=1e-12)


class NoJoint:
    """An engine that has no room for joint tables."""

    name, exact = "no-joint", True
    inner = mk.engines.VariableElimination()

    def joint(self, problem, targets):
        if len(targets) > 1:
            raise mk.errors.TooLarge("no room")
        return self.inner.joint(problem, targets)

    def marginals(self, problem, targets):
        return self.inner.marginals(problem, targets)

    def log_mass(self, problem):
        return self.inner.log_mass(problem)

    def best(self, problem, targets, m):
        return self.inner.best(problem, targets, m)

    def sample(self, problem, n, rng):
        return self.inner.sample(problem, n, rng)


class Guess(NoJoint):
    """An approximate engine; it must not be used to fit beliefs."""

    name, exact = "guess", False

    def marginals(self, problem, targets):
        raise AssertionError("asked for a marginal while fitting")


def test_beliefs_are_fitted_by_queries_where_the_joint_has_no_room_and_never_by_guessing():
    bn = mk.examples.asia()
    given = {"xray": mk.Jeffrey([0.7, 0.3]), "dysp": mk.Jeffrey([0.5, 0.5])}
    expected = bn.query("lung", given=given)
    for engine in (NoJoint(), Guess()):
        assert bn.query("lung", given=given, engine=engine).allclose(expected, atol=1e-11)


def test_beliefs_in_what_cannot_be_are_refused_by_name():
    bn = mk.examples.asia()
    with pytest.raises(mk.errors.InvalidEvidence, match=r"'lung' cannot have probability 0\.3 for 'yes'"):
        bn.query("xray", given={"lung": mk.Jeffrey([0.3, 0.7]), "either": "no"})
    with pytest.raises(
        mk.errors.InvalidEvidence, match=r"do not fit together .* posterior of '(lung|either)'"
    ):
        bn.query("xray", given={"lung": mk.Jeffrey([0.3, 0.7]), "either": mk.Jeffrey([0.2, 0.8])})
    with pytest.raises(mk.errors.ImpossibleEvidence) as caught:
        bn.query("xray", given={"lung": mk.Jeffrey([1, 0]), "either": mk.Jeffrey([0, 1]), "dysp": "yes"})
    assert set(caught.value.evidence) == {"lung", "either"}
    with pytest.raises(mk.errors.ImpossibleEvidence) as caught:
        bn.query("xray", given={"smoke": mk.Jeffrey([0.5, 0.5]), "lung": "yes", "either": "no"})
    assert set(caught.value.evidence) == {"lung", "either"}


def test_unreachable_beliefs_are_refused_without_the_joint_table_too():
    bn = mk.examples.asia()
    fixed = {"lung": mk.Jeffrey([0.3, 0.7]), "either": mk.Jeffrey([0.2, 0.8])}
    problem = Problem(bn._variables, bn.pieces(), read_evidence(bn._variables, fixed))
    with pytest.raises(mk.errors.InvalidEvidence, match="do not fit together"):
        settled(problem, joint_entries=0)
    for other in ({"either": "no", "tub": "yes"}, {}):
        certain = {"lung": mk.Jeffrey([1, 0]), "either": mk.Jeffrey([0, 1])} if not other else fixed
        said = {n: v for n, v in {**certain, **other}.items() if n != "either" or not other} | other
        problem = Problem(bn._variables, bn.pieces(), read_evidence(bn._variables, said))
        with pytest.raises(mk.errors.ImpossibleEvidence):
            settled(problem, joint_entries=0)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ([0.5, 0.3, 0.2], "needs 2 probabilities, one a state, not 3"),
        ([0.5, 0.6], "sum to 1.1; they must sum to one"),
        ([1.5, -0.5], "finite and not negative"),
        ([float("nan"), 1.0], "finite and not negative"),
        (["a", "b"], r"one probability a state \(2 numbers\)"),
        ({"yes": 1.0}, "the probability for 'xray' leaves out 'no'"),
        ({"yes": 0.5, "on": 0.5}, "unknown state 'on' for 'xray'"),
    ],
)
def test_malformed_beliefs_get_one_clear_sentence(said, message):
    bn = mk.examples.asia()
    with pytest.raises(mk.MarkoviaError, match=message):
        bn.query("lung", given={"xray": mk.Jeffrey(said)})


@pytest.mark.parametrize("said", ["yes", 0.5, {0.2, 0.8}])
def test_a_belief_is_a_list_or_a_dict(said):
    with pytest.raises(mk.errors.InvalidEvidence, match="one probability a state, as a list or a dict"):
        mk.Jeffrey(said)


def test_beliefs_print_compare_and_are_refused_where_they_mean_nothing():
    assert repr(mk.Jeffrey([0.5, 0.5])) == "Jeffrey([0.5, 0.5])"
    assert mk.Jeffrey((0.5, 0.5)) == mk.Jeffrey([0.5, 0.5]) != mk.Jeffrey([0.4, 0.6])
    assert len({mk.Jeffrey([0.5, 0.5]), mk.Jeffrey([0.5, 0.5]), mk.Jeffrey({"a": 1.0})}) == 2
    bn = mk.examples.asia()
    with pytest.raises(mk.errors.InvalidEvidence, match="a plain list"):
        bn.do(smoke=mk.Jeffrey([0.5, 0.5]))
    with pytest.raises(mk.errors.InvalidEvidence, match="leave 'xray' out"):
        bn.conflict({"xray": mk.Jeffrey([0.5, 0.5])})
    with pytest.raises(mk.errors.InvalidEvidence, match="leave 'xray' out"):
        bn.sensitivity("lung=yes", given={"xray": mk.Jeffrey([0.5, 0.5])})


def test_information_under_a_fixed_posterior_is_that_of_the_revised_distribution():
    bn = mk.examples.asia()
    given = {"dysp": mk.Jeffrey([0.6, 0.4])}
    joint = bn.query(["lung", "xray"], given=given).factor()
    assert bn.information("lung", given=given)["xray"] == pytest.approx(
        joint.mutual_information("lung", "xray"), abs=1e-12
    )
