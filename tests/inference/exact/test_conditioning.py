"""Conditioning on a cutset: every question under budgets of a few numbers against brute force, and its refusals."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from markovia.inference.exact.conditioning import Conditioning
from markovia.inference.problem import Problem
from model_strategies import bayesian_networks, brute_force, markov_networks, random_evidence

models = st.one_of(
    bayesian_networks(max_nodes=5),
    markov_networks(max_nodes=5),
    markov_networks(max_nodes=5, kind=mk.FactorGraph),
)
seeds = st.integers(0, 2**32 - 1)
budgets = st.sampled_from([8 * 8, 8 * 16, 8 * 32, 8 * 64])


def problem_of(model, given=None):
    return model._problem(given)


def axes_but(names, keep):
    return tuple(i for i, n in enumerate(names) if n not in keep)


class Watched:
    """Variable elimination that counts its calls and can be interrupted."""

    name = "watched"
    exact = True

    def __init__(self, stop_at=None):
        self.calls = 0
        self.stop_at = stop_at
        self.engine = mk.engines.VariableElimination()

    def _count(self):
        self.calls += 1
        if self.calls == self.stop_at:
            raise KeyboardInterrupt

    def joint(self, problem, targets):
        self._count()
        return self.engine.joint(problem, targets)

    def marginals(self, problem, targets):
        self._count()
        return self.engine.marginals(problem, targets)

    def log_mass(self, problem):
        self._count()
        return self.engine.log_mass(problem)

    def best(self, problem, targets, m):
        self._count()
        return self.engine.best(problem, targets, m)

    def sample(self, problem, n, rng):
        self._count()
        return self.engine.sample(problem, n, rng)


@sampled(model=models, seed=seeds, budget=budgets)
@settings(max_examples=120, deadline=None)
def test_joint_posteriors_equal_the_joint_table(model, seed, budget):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.2)
    table = brute_force(model, given)
    targets = [str(t) for t in rng.permutation(model.variables)[: rng.integers(1, 3)]]
    engine = Conditioning(max_bytes=budget)
    fixed = [t for t in targets if isinstance(given.get(t), str | int)]
    if 8 * np.prod([len(model.states(t)) for t in targets if t not in fixed]) > budget:
        with pytest.raises(mk.errors.TooLarge, match="targets has"):
            model.query(targets, given=given, engine=engine)
        return
    if table.sum() == 0:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.query(targets, given=given, engine=engine)
        return
    answer = model.query(targets, given=given, engine=engine)
    expected = table.sum(axis=axes_but(model.variables, targets)) / table.sum()
    kept = [n for n in model.variables if n in targets]
    np.testing.assert_allclose(
        answer.values, expected.transpose([kept.index(t) for t in targets]), atol=1e-10
    )
    assert answer.info.engine == "conditioning"
    assert answer.info.exact


@sampled(model=models, seed=seeds, budget=budgets)
@settings(max_examples=100, deadline=None)
def test_marginals_and_mass_equal_the_joint_table(model, seed, budget):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.2)
    table = brute_force(model, given)
    engine = Conditioning(max_bytes=budget)
    with np.errstate(divide="ignore"):
        assert model.log_partition(given=given, engine=engine) == pytest.approx(np.log(table.sum()), abs=1e-9)
    if table.sum() == 0:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.marginals(given=given, engine=engine)
        return
    some = [str(t) for t in rng.permutation(model.variables)[: rng.integers(1, 4)]]
    for targets in (None, some):
        for name, posterior in model.marginals(given=given, targets=targets, engine=engine).items():
            expected = table.sum(axis=axes_but(model.variables, [name])) / table.sum()
            np.testing.assert_allclose(posterior.values, expected, atol=1e-10)


@sampled(model=models, seed=seeds, budget=budgets, m=st.integers(1, 4), everything=st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_m_best_are_the_largest_entries_also_where_others_are_summed(model, seed, budget, m, everything):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.2)
    table = brute_force(model, given)
    if table.sum() == 0:
        return
    free = [n for n in model.variables if not isinstance(given.get(n), str | int)]
    targets = free if everything else [str(t) for t in rng.permutation(free)[: rng.integers(1, 4)]]
    found = Conditioning(max_bytes=budget).best(problem_of(model, given), targets, m)
    marginal = table.sum(axis=axes_but(model.variables, targets))
    # hard evidence leaves its axis in the table, with one entry that is not zero
    ranked = np.sort(marginal[marginal > 0])[::-1][:m]
    np.testing.assert_allclose([a.log_weight for a in found], np.log(ranked), atol=1e-9)
    axes = [n for n in model.variables if n in targets]
    seen = set()
    for assignment in found:
        assert set(assignment.codes) == set(targets)
        index = tuple(assignment.codes[n] for n in axes)
        assert np.log(marginal[index]) == pytest.approx(assignment.log_weight, abs=1e-9)
        seen.add(index)
    assert len(seen) == len(found)


@sampled(model=models, seed=seeds)
@settings(max_examples=30, deadline=None)
def test_draws_have_positive_weight_and_name_every_free_variable(model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.2)
    table = brute_force(model, given)
    problem = problem_of(model, given)
    drawn = Conditioning(max_bytes=64).sample(problem, 20, rng)
    if table.sum() == 0:
        assert drawn == {}
        return
    assert set(drawn) == set(problem.free)
    for row in range(20):
        index = tuple(drawn[n][row] if n in drawn else problem.findings[n].code for n in model.variables)
        assert table[index] > 0


def test_draws_follow_the_posterior():
    bn = mk.examples.asia()
    given = {"dysp": "yes", "xray": [0.3, 0.7], "tub": mk.Not("yes")}
    engine = Conditioning(max_bytes=8 * 8)
    n = 20_000
    rows = bn.sample(n, given=given, seed=1, engine=engine)
    assert (rows["dysp"] == "yes").all()
    assert (rows["tub"] == "no").all()
    for name, posterior in bn.marginals(given=given).items():
        for state in bn.states(name):
            p = posterior[state]
            assert abs((rows[name] == state).mean() - p) < 4.5 * np.sqrt(p * (1 - p) / n) + 1e-9, (
                name,
                state,
            )
    p = bn.query(["lung", "bronc"], given=given)["yes", "no"]
    seen = ((rows["lung"] == "yes") & (rows["bronc"] == "no")).mean()
    assert abs(seen - p) < 4.5 * np.sqrt(p * (1 - p) / n)
    # neighbouring rows are independent, though draws of one case are made together
    smokes = (rows["smoke"] == "yes").to_numpy().astype(float)
    assert abs(np.corrcoef(smokes[:-1], smokes[1:])[0, 1]) < 4.5 / np.sqrt(n)
    assert len(bn.sample(0, given=given, seed=1, engine=engine)) == 0
    again = bn.sample(50, given=given, seed=1, engine=engine)
    assert again.equals(bn.sample(50, given=given, seed=1, engine=engine))


def test_one_draw_from_many_cases_lands_in_the_heaviest():
    """Each case is a hundred times heavier than the one before, so each takes the draw over, and most are forgotten."""
    names = [f"x{i}" for i in range(6)]
    heavy = [mk.Factor([n], [1.0, 100.0**2**i]) for i, n in enumerate(names)]
    model = mk.MarkovNetwork(dict.fromkeys(names, 2), [*heavy, mk.Factor(names, np.ones([2] * 6))])
    engine = Conditioning(max_bytes=8)
    draws = [engine.sample(problem_of(model), 1, np.random.default_rng(seed)) for seed in range(20)]
    ones = sum(all(d[n][0] == 1 for n in names) for d in draws)
    assert ones >= 17  # 0.99 of the mass; fewer have probability below 1e-4
    assert set(draws[0]) == set(names)


def test_an_answer_larger_than_the_budget_is_refused():
    grid = mk.generators.ising_grid(3, 3)
    with pytest.raises(
        mk.errors.TooLarge, match=r"over the 4 targets has 16 entries \(128 bytes\)"
    ) as caught:
        grid.query(["x0_0", "x0_1", "x1_1", "x2_2"], engine=Conditioning(max_bytes=100))
    assert caught.value.bytes == 128


def test_assignments_of_the_targets_that_no_sum_supports_are_left_out():
    tied = [mk.Factor([a, b], np.eye(2)) for a, b in (("a", "u"), ("u", "b"), ("b", "w"), ("w", "a"))]
    model = mk.MarkovNetwork(dict.fromkeys("abuw", 2), tied)
    found = Conditioning(max_bytes=8 * 4).best(problem_of(model), ["a", "b"], 4)
    assert [dict(f.codes) for f in found] == [{"a": 0, "b": 0}, {"a": 1, "b": 1}]
    np.testing.assert_allclose([f.log_weight for f in found], 0.0, atol=1e-12)


def test_a_grid_that_elimination_refuses_is_answered_within_the_budget():
    grid = mk.generators.ising_grid(12, 12, coupling=0.3, field=0.1)
    budget = 8 * 2**15
    with pytest.raises(mk.errors.TooLarge):
        grid.log_partition(engine=mk.engines.VariableElimination(max_bytes=budget))
    engine = Conditioning(max_bytes=budget)
    assert grid.log_partition(engine=engine) == pytest.approx(grid.log_partition(), abs=1e-10)
    expected = grid.marginals()
    for name, posterior in grid.marginals(engine=engine).items():
        np.testing.assert_allclose(posterior.values, expected[name].values, atol=1e-12)
    assert posterior.info.details.cases > 1
    assert 2 * posterior.info.details.largest_table * 8 <= budget
    pair = ["x0_0", "x11_11"]
    np.testing.assert_allclose(grid.query(pair, engine=engine).values, grid.query(pair).values, atol=1e-12)


def test_the_most_probable_explanations_of_a_refused_grid_are_those_of_elimination():
    grid = mk.generators.ising_grid(8, 8, coupling=0.4, field=np.linspace(-1.0, 1.0, 64).reshape(8, 8))
    engine = Conditioning(max_bytes=8 * 1500)
    found, expected = grid.map(m=4, engine=engine), grid.map(m=4)
    assert [f.to_dict() for f in found] == [e.to_dict() for e in expected]
    for f, e in zip(found, expected, strict=True):
        assert f.log_prob == pytest.approx(e.log_prob, abs=1e-9)


def test_with_enough_memory_nothing_is_conditioned_on():
    bn = mk.examples.asia()
    answer = bn.query("lung", given={"dysp": "yes"}, engine=Conditioning())
    assert answer.info.details.cutset == ()
    assert answer.info.details.cases == 1
    np.testing.assert_allclose(answer.values, bn.query("lung", given={"dysp": "yes"}).values, atol=1e-15)


@sampled(model=models, budget=budgets)
@settings(max_examples=60, deadline=None)
def test_a_cutset_is_used_exactly_where_elimination_does_not_fit(model, budget):
    problem = problem_of(model)
    if Conditioning().log_mass(problem) == -np.inf:
        return
    answer = Conditioning(max_bytes=budget).marginals(problem, problem.free)
    try:
        mk.engines.VariableElimination(max_bytes=budget).marginals(problem, problem.free)
    except mk.errors.TooLarge:
        assert answer.record.details.cutset or answer.record.details.sweeps
    else:
        assert answer.record.details.cutset == ()
        assert answer.record.details.sweeps == 0


def test_marginals_of_a_long_model_come_one_at_a_time_where_its_tables_do_not_fit_together(capsys):
    rng = np.random.default_rng(5)
    names = [f"x{i}" for i in range(60)]
    pairs = [mk.Factor([a, b], rng.random((3, 3))) for a, b in pairwise(names)]
    chain = mk.MarkovNetwork(dict.fromkeys(names, 3), pairs)
    engine = Conditioning(max_bytes=8 * 100, progress=True)
    expected = chain.marginals(given={"x7": 1})
    found = chain.marginals(given={"x7": 1}, engine=engine)
    for name, posterior in found.items():
        np.testing.assert_allclose(posterior.values, expected[name].values, atol=1e-12)
    assert posterior.info.details.sweeps == 59
    assert posterior.info.log_evidence == pytest.approx(expected["x0"].info.log_evidence, abs=1e-10)
    assert "59/59" in capsys.readouterr().err


def test_the_tables_that_a_sweep_back_passes_count_too():
    names = [f"x{i}" for i in range(30)]
    pairs = [mk.Factor([a, b], [[2.0, 1.0], [1.0, 3.0]]) for a, b in pairwise(names)]
    problem = problem_of(mk.MarkovNetwork(dict.fromkeys(names, 2), pairs))
    ends = ["x0", "x29"]
    expected = mk.engines.VariableElimination().marginals(problem, ends)
    for numbers in (20, 40, 80, 160):
        found = Conditioning(max_bytes=8 * numbers).marginals(problem, ends)
        for table, right in zip(found.tables, expected.tables, strict=True):
            np.testing.assert_allclose(table.values, right.values, atol=1e-12)


def test_marginal_map_conditions_on_sums_only_below_a_full_assignment_of_the_targets():
    rng = np.random.default_rng(3)
    grid = mk.generators.ising_grid(5, 5, coupling=rng.normal(size=1)[0], field=rng.normal(size=(5, 5)))
    targets = ["x0_0", "x2_2", "x4_1"]
    # the sums alone do not fit, even with all targets fixed
    engine = Conditioning(max_bytes=8 * 20)
    problem = problem_of(grid)
    found, expected = (
        engine.best(problem, targets, 8),
        mk.engines.VariableElimination().best(problem, targets, 8),
    )
    assert [dict(a.codes) for a in found] == [{t: a.codes[t] for t in targets} for a in expected]
    np.testing.assert_allclose([a.log_weight for a in found], [a.log_weight for a in expected], atol=1e-9)


def test_a_branch_and_bound_inner_engine_answers_marginal_map_too():
    grid = mk.generators.ising_grid(4, 4, coupling=0.3, field=np.linspace(-0.5, 0.4, 16).reshape(4, 4))
    targets = ["x0_1", "x1_3", "x3_0", "x2_2"]
    problem = problem_of(grid)
    expected = mk.engines.VariableElimination().best(problem, targets, 3)
    inner = mk.engines.VariableElimination(marginal_map="branch-and-bound")
    for numbers in (30, 60, 120, 240):
        found = Conditioning(max_bytes=8 * numbers, inner=inner).best(problem, targets, 3)
        assert [dict(a.codes) for a in found] == [{t: a.codes[t] for t in targets} for a in expected]
        np.testing.assert_allclose([a.log_weight for a in found], [a.log_weight for a in expected], atol=1e-9)


def test_very_many_variables_are_maximised_within_a_small_budget():
    names = [f"x{i}" for i in range(1500)]
    pairs = [mk.Factor([a, b], [[1.0, 2.0], [3.0, 1.0]]) for a, b in pairwise(names)]
    chain = problem_of(mk.MarkovNetwork(dict.fromkeys(names, 2), pairs))
    with pytest.raises(mk.errors.TooLarge, match="at least") as caught:
        Conditioning(max_bytes=8 * 100).best(chain, names[:1400], 1)
    assert caught.value.operations > 1e13


def test_observed_targets_leave_only_the_mass():
    grid = mk.generators.ising_grid(3, 3, coupling=0.3)
    engine = Conditioning(max_bytes=8 * 16)
    given = {"x0_0": 1}
    assert grid.marginals(given=given, targets=["x0_0"], engine=engine)["x0_0"][1] == 1.0
    assert grid.query("x0_0", given=given, engine=engine)[1] == 1.0
    assert engine.marginals(problem_of(grid, given), []).log_mass == pytest.approx(
        grid.log_partition(given), abs=1e-11
    )


def test_zeros_prune_whole_branches_of_cases():
    """A ring in which each variable forces the next has one configuration for each state of the first."""
    names = [f"v{i}" for i in range(8)]
    pairs = [mk.Factor([a, b], np.eye(3)) for a, b in zip(names, [*names[1:], names[0]], strict=True)]
    # far pairs tie the ring together, so that a small table cannot do
    far = [mk.Factor([names[i], names[(i + 4) % 8]], np.ones((3, 3))) for i in range(4)]
    model = mk.MarkovNetwork(dict.fromkeys(names, 3), [*pairs, *far])
    answer = model.query("v0", engine=Conditioning(max_bytes=8 * 12))
    np.testing.assert_allclose(answer.values, 1 / 3)
    details = answer.info.details
    assert len(details.cutset) >= 3
    assert details.answered < details.cases
    assert model.log_partition(engine=Conditioning(max_bytes=8 * 12)) == pytest.approx(np.log(3), abs=1e-12)


def test_a_table_of_zeros_is_seen_before_any_case():
    model = mk.MarkovNetwork({"a": 2, "b": 2, "c": 2}, [mk.Factor(["a", "b"], np.zeros((2, 2)))])
    watched = Watched()
    engine = Conditioning(max_bytes=16, inner=watched)
    problem = problem_of(model)
    assert engine.log_mass(problem) == -np.inf
    assert engine.best(problem, ["a", "c"], 2) == []
    assert engine.marginals(problem, ["a"]).tables == []
    assert engine.sample(problem, 5, np.random.default_rng(0)) == {}
    assert watched.calls == 0


def test_masses_of_cases_may_differ_by_more_than_doubles_can_hold():
    names = [f"x{i}" for i in range(9)]
    scale = np.array([[1e-300, 2e-150], [3.0, 4e250]])
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 : k + 4]]
    model = mk.MarkovNetwork(dict.fromkeys(names, 2), [mk.Factor([a, b], scale) for a, b in pairs])
    # log weights by hand, added up relative to the largest
    codes = np.array(list(product(range(2), repeat=len(names))))
    place = {n: k for k, n in enumerate(names)}
    logs = sum(np.log(scale)[codes[:, place[a]], codes[:, place[b]]] for a, b in pairs)
    engine = Conditioning(max_bytes=8 * 16)
    expected = logs.max() + np.log(np.exp(logs - logs.max()).sum())
    assert model.log_partition(engine=engine) == pytest.approx(expected, rel=1e-13)
    given = {"x0": 0, "x4": 0, "x8": 0}
    kept = logs[(codes[:, [0, 4, 8]] == 0).all(axis=1)]
    expected = kept.max() + np.log(np.exp(kept - kept.max()).sum())
    assert model.log_partition(given=given, engine=engine) == pytest.approx(expected, rel=1e-13)


def test_a_structured_conditional_too_large_for_a_table_is_cut_case_by_case():
    parents = [f"d{i}" for i in range(10)]
    bn = mk.BayesianNetwork()
    for name in parents:
        bn.add(name, p=[0.9, 0.1])
    bn.add("finding", mk.local.NoisyOr(dict.fromkeys(parents, 0.3), leak=0.01), states=[0, 1])
    engine = Conditioning(max_bytes=8 * 64)
    expected = np.log(0.99) + 10 * np.log(0.9 + 0.1 * 0.7)
    assert bn.log_evidence({"finding": 0}, engine=engine) == pytest.approx(expected, abs=1e-12)
    answer = bn.query("d3", given={"finding": 0}, engine=engine)
    assert answer[1] == pytest.approx(0.07 / 0.97, abs=1e-12)
    assert answer.info.details.cases > 1


def test_hopeless_problems_are_refused_before_the_first_case():
    grid = mk.generators.ising_grid(20, 20, coupling=0.3)
    watched = Watched()
    with pytest.raises(mk.errors.TooLarge, match=r"operations \([\d,]+ cases\) and .* of tables") as caught:
        grid.log_partition(engine=Conditioning(max_bytes=2**10, inner=watched))
    assert watched.calls == 0
    assert caught.value.operations > 1e13
    assert caught.value.bytes > 0
    small = mk.generators.ising_grid(6, 6, coupling=0.3)
    with pytest.raises(mk.errors.TooLarge, match="the limits are 100 operations"):
        small.log_partition(engine=Conditioning(max_operations=100))


@pytest.mark.parametrize(
    "inner",
    [
        "enumeration",
        mk.engines.Enumeration(max_entries=2**12),
        mk.engines.VariableElimination(order="min-degree"),
        mk.engines.VariableElimination(
            order=["x2_1", *(f"x{i}_{j}" for i in range(3) for j in range(3) if (i, j) != (2, 1))]
        ),
        mk.engines.VariableElimination(max_bytes=8 * 20),
    ],
    ids=["name", "enumeration", "heuristic", "order", "smaller budget"],
)
def test_the_inner_engine_is_a_choice(inner):
    grid = mk.generators.ising_grid(3, 3, coupling=0.3, field=0.2)
    engine = Conditioning(max_bytes=8 * 24, inner=inner)
    assert grid.log_partition(engine=engine) == pytest.approx(grid.log_partition(), abs=1e-11)
    for name, posterior in grid.marginals(engine=engine).items():
        np.testing.assert_allclose(posterior.values, grid.query(name).values, atol=1e-11)


def test_an_order_of_the_inner_engine_must_be_complete():
    grid = mk.generators.ising_grid(3, 3)
    engine = Conditioning(inner=mk.engines.VariableElimination(order=["x0_0"]))
    with pytest.raises(mk.errors.InvalidArgument, match="leaves out"):
        grid.log_partition(engine=engine)
    twice = Conditioning(inner=mk.engines.VariableElimination(order=[*grid.variables, "x0_0"]))
    with pytest.raises(mk.errors.InvalidArgument, match="twice"):
        grid.log_partition(engine=twice)


def test_an_interrupt_says_how_far_it_got_and_leaves_everything_usable():
    grid = mk.generators.ising_grid(5, 5, coupling=0.3)
    engine = Conditioning(max_bytes=8 * 40, inner=Watched(stop_at=4))
    with pytest.raises(KeyboardInterrupt) as caught:
        grid.log_partition(engine=engine)
    assert "had done 3 of" in caught.value.__notes__[0]
    assert "log mass >= " in caught.value.__notes__[0]
    bound = float(caught.value.__notes__[0].rpartition(" ")[2])
    whole = grid.log_partition(engine=engine)
    assert bound < whole
    assert whole == pytest.approx(grid.log_partition(), abs=1e-10)


def test_the_progress_bar_is_shown_on_request_only(capsys):
    grid = mk.generators.ising_grid(4, 4, coupling=0.3)
    for progress, shown in ((True, True), (False, False), (None, False)):
        grid.log_partition(engine=Conditioning(max_bytes=8 * 24, progress=progress))
        err = capsys.readouterr().err
        assert ("conditioning: 100%" in err) is shown
        assert ("log mass >=" in err) is shown


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"max_bytes": "much"}, "max_bytes="),
        ({"max_operations": 0}, "max_operations="),
        ({"max_operations": float("nan")}, "max_operations="),
        ({"progress": "yes"}, "progress="),
    ],
)
def test_settings_are_checked(setting, message):
    with pytest.raises(mk.errors.InvalidArgument, match=message):
        Conditioning(**setting)


def test_an_unknown_inner_engine_is_named_at_once():
    with pytest.raises(mk.errors.UnknownEngine, match="did you mean"):
        Conditioning(inner="enumeraton")


def test_a_problem_without_variables_is_one_case():
    assert Conditioning().log_mass(Problem({}, [], {})) == 0.0
    assert Conditioning().best(Problem({}, [], {}), [], 3)[0].codes == {}
