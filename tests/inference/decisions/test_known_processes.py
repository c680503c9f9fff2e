"""Flat processes whose answers are known, in closed form or by two methods, and what is refused."""

import numpy as np
import pytest
from scipy import sparse

from markovia.errors import ConvergenceWarning, InvalidArgument, InvalidTable, TooLarge, UnsupportedModel
from markovia.inference.decisions.processes.average_reward import average_reward, long_run
from markovia.inference.decisions.processes.bellman import EvaluatedOperator, HardOperator, SoftOperator
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.end_components import end_components
from markovia.inference.decisions.processes.finite_horizon import finite_horizon
from markovia.inference.decisions.processes.occupancy_program import UtilityLimit, occupancy_program
from markovia.inference.decisions.processes.options import TemporalOption, semi_markov, with_options
from markovia.inference.decisions.processes.planning import plan_process
from markovia.inference.decisions.processes.policy_iteration import policy_iteration
from markovia.inference.decisions.processes.total_reward import total_reward
from markovia.inference.decisions.processes.value_bounds import shifts
from markovia.inference.decisions.processes.value_iteration import scaled_rows, value_iteration

WAIT = [[0.1, 0.9, 0.0], [0.1, 0.0, 0.9], [0.1, 0.0, 0.9]]
CUT = [[1.0, 0.0, 0.0]] * 3
FOREST_REWARDS = [[0, 0], [0, 1], [4, 2]]


def forest():
    return DecisionProcess.from_tables([WAIT, CUT], FOREST_REWARDS, actions=["wait", "cut"])


def grid(side, slip=0.1):
    """A square of cells: a move goes astray into one of the other directions; the last corner is home."""
    size = side * side
    row, column = np.divmod(np.arange(size), side)
    ends = [
        np.clip(row + up, 0, side - 1) * side + np.clip(column + right, 0, side - 1)
        for up, right in ((-1, 0), (1, 0), (0, -1), (0, 1))
    ]
    tables = []
    for a in range(4):
        weights = np.full(4, slip / 3)
        weights[a] = 1 - slip
        entries = (np.repeat(weights, size), (np.tile(np.arange(size), 4), np.concatenate(ends)))
        tables.append(sparse.csr_array(entries, shape=(size, size)))
    return DecisionProcess.from_tables(
        tables, np.full(size, -1.0), initial=0, terminal=np.arange(size) == size - 1
    )


@pytest.mark.parametrize(
    "method", ["value iteration", "policy iteration", "modified policy iteration", "linear program"]
)
def test_the_forest_is_worth_what_it_is_known_to_be(method):
    plan = plan_process(forest(), discount=0.96, method=method)
    assert plan.v == pytest.approx([74.6496, 78.1056, 82.1056], abs=1e-4)
    assert [plan.act(s) for s in range(3)] == ["wait"] * 3
    assert plan.gap < 1e-6


def test_a_grid_of_ten_thousand_states_hard_and_soft():
    process = grid(100)
    hard = value_iteration(process, 0.99)
    soft = value_iteration(process, 0.99, operator=SoftOperator(0.1))
    assert hard.v[0] == pytest.approx(-89.701130709, abs=2e-8)
    assert soft.v[0] == pytest.approx(-95.738751296, abs=2e-8)
    assert hard.gap < 2e-8
    assert soft.gap < 2e-8
    assert hard.v[-1] == soft.v[-1] == 0.0


def test_methods_agree_on_a_grid_and_bounds_hold_the_exact_values():
    process = grid(15)
    exact = policy_iteration(process, 0.99)
    swept = policy_iteration(process, 0.99, sweeps=5)
    valued = value_iteration(process, 0.99, tolerance=1e-3)
    for plan in (swept, valued):
        assert (plan.v <= exact.v + 1e-9).all()
        assert (plan.v + plan.gap >= exact.v - 1e-9).all()
    assert total_reward(process).v == pytest.approx(
        value_iteration(process, 1 - 1e-7, tolerance=1e-4).v, abs=1e-2
    )


def test_a_plan_that_ran_out_of_time_has_an_honest_gap():
    process = grid(40)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        plan = value_iteration(process, 0.999, time_limit=1e-9)
    best = value_iteration(process, 0.999).v[0]
    assert plan.value <= best <= plan.bound
    assert plan.gap > 1.0
    assert not plan.info.converged
    assert "time limit" in plan.info.note


def test_a_soft_value_below_the_hard_one_and_with_entropy_above():
    single = DecisionProcess.from_tables([[[1.0]]] * 4, [[-1.0] * 4])
    assert value_iteration(single, 0.99, operator=SoftOperator(1.0)).value == pytest.approx(-100.0, abs=1e-6)
    wandering = value_iteration(single, 0.99, operator=SoftOperator(1.0, entropy=True)).value
    assert wandering == pytest.approx(100 * (np.log(4) - 1), abs=1e-6)  # +38.6: entropy is preferred to rest


@pytest.mark.parametrize("method", [value_iteration, policy_iteration])
def test_no_entropy_is_earned_once_the_process_is_over(method):
    process = DecisionProcess.from_tables([[[0, 1.0], [0, 1]]] * 2, [-1.0, 0.0], terminal=[1], initial=0)
    plan = method(process, 0.9, operator=SoftOperator(2.0, entropy=True))
    assert plan.v == pytest.approx([-1.0 + 2.0 * np.log(2), 0.0])
    assert finite_horizon(process, 3, operator=SoftOperator(2.0, entropy=True)).v[:, 1].tolist() == [0.0] * 3


def test_a_prior_of_actions_draws_soft_plans_towards_itself():
    process = DecisionProcess.from_tables([[[1.0]], [[1.0]]], [[1.0, 1.0]])
    plan = plan_process(process, discount=0.5, temperature=0.7, prior=[0.2, 0.8])
    assert plan.policy[0] == pytest.approx([0.2, 0.8])
    assert plan.value == pytest.approx(2.0)


def test_operators_take_arrays_of_jax_as_well():
    import jax.numpy as jnp

    q = np.array([[1.0, 2.0], [0.5, 0.25]])
    allowed = np.array([[True, True], [False, True]])
    for operator in (
        HardOperator(),
        SoftOperator(0.5),
        SoftOperator(0.5, [0.25, 0.75]),
        SoftOperator(2.0, entropy=True),
        EvaluatedOperator([[0.5, 0.5], [0, 1]]),
    ):
        assert operator.value(jnp.asarray(q), jnp.asarray(allowed)) == pytest.approx(
            operator.value(q, allowed), rel=1e-5
        )
        assert np.asarray(operator.policy(jnp.asarray(q), jnp.asarray(allowed))) == pytest.approx(
            operator.policy(q, allowed), rel=1e-5
        )


def test_what_is_not_allowed_is_never_done():
    allowed = np.array([[False, True], [True, True], [True, True]])
    process = DecisionProcess.from_tables([WAIT, CUT], FOREST_REWARDS, allowed=allowed)
    for plan in (
        value_iteration(process, 0.96),
        policy_iteration(process, 0.96),
        occupancy_program(process, 0.96),
    ):
        assert plan.policy[0].tolist() == [0.0, 1.0]
        assert plan.v[0] == pytest.approx(0.0, abs=1e-7)  # cutting for ever earns nothing
    soft = value_iteration(process, 0.96, operator=SoftOperator(0.5))
    assert soft.policy[0].tolist() == [0.0, 1.0]
    idle = DecisionProcess.from_tables([[[1.0]]] * 3, [[0.0] * 3], allowed=np.array([[True, False, True]]))
    assert value_iteration(idle, 0.9, operator=SoftOperator(1.0)).value == pytest.approx(
        0.0, abs=1e-9
    )  # uniform over two, not three


# -- several chains, and no discount -------------------------------------------------------------------------------


def test_each_of_two_islands_keeps_its_own_gain():
    stay = np.eye(3)
    choose = np.array([[0.0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]])
    process = DecisionProcess.from_tables([stay, choose], [[2.0, 0.0], [1.0, 1.0], [5.0, 5.0]], initial=0)
    plan = average_reward(process)
    assert plan.info.details.gains == pytest.approx([3.0, 1.0, 5.0])
    assert plan.info.details.components == 3
    assert plan.value == pytest.approx(3.0)
    assert plan.gap < 1e-9


def test_a_periodic_chain_has_a_gain_and_relative_values():
    gains, values = long_run(sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])), np.array([0.0, 2.0]))
    assert gains.tolist() == [1.0, 1.0]
    assert values.tolist() == [0.0, 1.0]


def test_an_end_component_loses_what_only_seemed_to_lead_back():
    # 0 goes to 1; 1 goes back, or out to 2 by chance: nobody can stay
    rows = sparse.csr_array(np.array([[0, 1.0, 0], [0.5, 0, 0.5], [0, 0, 1.0]]))
    found = end_components(rows, np.arange(3), np.ones(3, dtype=bool))
    assert found.label.tolist() == [-1, -1, 0]
    assert found.inside.tolist() == [False, False, True]


def test_bounds_use_the_safe_one_of_two_discounts():
    discount = np.array([[0.5, 0.9]])
    assert shifts(np.zeros(2), np.array([1.0, 2.0]), discount) == pytest.approx((1.0, 18.0))
    assert shifts(np.zeros(2), np.array([-2.0, -1.0]), discount) == pytest.approx((-18.0, -1.0))


def test_total_rewards_wait_for_ever_where_waiting_is_free_and_going_costs():
    walk = [[[1.0, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1.0, 0], [0, 0, 1], [0, 0, 1]]]
    process = DecisionProcess.from_tables(walk, [[0.0, 0.0], [0.0, -1.0], [0, 0]], terminal=[2])
    assert total_reward(process).v.tolist() == [0.0, 0.0, 0.0]


def test_a_way_that_is_short_in_moves_but_takes_ages_does_no_harm():
    n = 41
    leap, walk = np.zeros((n, n)), np.eye(n, k=1)
    leap[:, 0], walk[-1, -1] = 0.9, 1.0  # two steps at once, or back to the start: 10**20 steps on average
    leap[np.arange(n), np.minimum(np.arange(n) + 2, n - 1)] += 0.1
    process = DecisionProcess.from_tables([leap, walk], np.full(n, -1.0), terminal=[n - 1])
    assert total_reward(process).v[0] == pytest.approx(-40.0, abs=1e-9)


def test_total_rewards_without_an_end_are_refused():
    loop = DecisionProcess.from_tables([[[0, 1.0], [1.0, 0]]], [1.0, 0.0])
    with pytest.raises(InvalidArgument, match=r"earn 0\.5 a step"):
        total_reward(loop)
    with pytest.raises(InvalidArgument, match="no policy ever ends"):
        total_reward(DecisionProcess.from_tables([[[1.0]]], [-1.0]))


def test_a_round_that_loses_a_little_on_average_is_no_reason_to_refuse():
    moves = [[[0, 1.0, 0], [1.0, 0, 0], [0, 0, 1]], [[0, 0, 1.0], [1.0, 0, 0], [0, 0, 1]]]
    process = DecisionProcess.from_tables(moves, [[5.0, 1.0], [-6.0, -6.0], [0, 0]], terminal=[2], initial=0)
    assert total_reward(process).v.tolist() == [1.0, -5.0, 0.0]


# -- limits ---------------------------------------------------------------------------------------------------------


def test_a_limit_is_kept_and_the_bound_is_reached_where_it_binds():
    process = forest()
    cuts = np.array([[0.0, 1.0]] * 3)
    free = occupancy_program(process, 0.9, limits={"cuts": UtilityLimit(cuts, most=100.0)})
    assert free.value == pytest.approx(policy_iteration(process, 0.9).value, abs=1e-8)
    forced = occupancy_program(process, 0.9, limits={"cuts": UtilityLimit(cuts, least=3.0)})
    assert forced.info.details.utilities["cuts"] == pytest.approx(3.0, abs=1e-6)
    assert forced.value < free.value
    assert forced.gap < 1e-6
    # the price of the limit is the slope of the value
    more = occupancy_program(process, 0.9, limits={"cuts": UtilityLimit(cuts, least=3.001)})
    assert (more.value - forced.value) / 0.001 == pytest.approx(forced.info.details.prices["cuts"], rel=1e-3)


def test_the_value_of_a_limited_plan_is_the_best_mixture_of_two():
    process = DecisionProcess.from_tables([[[1.0]], [[1.0]], [[1.0]]], [[0.0, 1.0, 3.0]])
    use = [[0.0, 1.0, 2.0]]
    plan = occupancy_program(process, 0.5, limits={"use": UtilityLimit(use, most=1.0)})
    assert plan.value == pytest.approx(1.5)
    assert plan.policy[0] == pytest.approx([0.75, 0.0, 0.25])


def test_limits_that_nobody_keeps_are_named():
    process = DecisionProcess.from_tables([[[1.0]], [[1.0]]], [[0.0, 1.0]])
    with pytest.raises(InvalidArgument, match=r"'use' at most 0\.5; the least that one reaches is 2"):
        occupancy_program(process, 0.5, limits={"use": UtilityLimit([[1.0, 2.0]], most=0.5)})
    both = {"one": UtilityLimit([[0, 1.0]], most=0.5), "other": UtilityLimit([[1.0, 0]], most=0.5)}
    with pytest.raises(InvalidArgument, match="'one', 'other' together"):
        occupancy_program(process, 0.5, limits=both)


def test_the_bound_of_a_limited_plan_holds_for_any_prices_and_visits(monkeypatch):
    process = DecisionProcess.from_tables([[[1.0]], [[1.0]], [[1.0]]], [[0.0, 1.0, 3.0]])
    poor = np.array([[1.0, 1.0, 0.0]])
    for limit, price in (
        (UtilityLimit([[0.0, 1.0, 2.0]], most=1.0), 0.7),
        (UtilityLimit([[0.0, -1.0, -2.0]], least=-1.0), -0.7),
    ):
        best = occupancy_program(process, 0.5, limits={"use": limit}).value
        with monkeypatch.context() as patched:
            patched.setattr(
                "markovia.inference.decisions.processes.occupancy_program._program",
                lambda *_, price=price: (poor, np.array([price])),
            )
            plan = occupancy_program(process, 0.5, limits={"use": limit})
        assert plan.value == pytest.approx(1.0)
        assert plan.value < best < plan.bound
        assert plan.bound == pytest.approx((3.0 - 2 * 0.7) / 0.5 + 0.7)


# -- times between decisions ----------------------------------------------------------------------------------------


def test_random_durations_discount_by_their_mean():
    process = DecisionProcess.from_tables([[[1.0]]], [[1.0]])
    timed = semi_markov(process, [[[0.5, 0.0, 0.5]]], 0.9)
    mean = 0.5 * 0.9 + 0.5 * 0.9**3
    for method in (value_iteration, policy_iteration, occupancy_program):
        assert method(*timed).value == pytest.approx(1 / (1 - mean))


def test_bounds_hold_where_discounts_differ_by_state_and_action():
    rng = np.random.default_rng(3)
    for _ in range(20):
        process = DecisionProcess.from_tables(
            rng.dirichlet(np.ones(4), size=(3, 4)), rng.normal(size=(4, 3)) + rng.choice([-3, 3])
        )
        timed = semi_markov(process, rng.integers(1, 40, size=(4, 3)), 0.95)
        exact = policy_iteration(*timed).v
        for tolerance in (5.0, 0.5, 1e-3):
            plan = value_iteration(*timed, tolerance=tolerance)
            taken, mean = timed.process.under(plan.policy, scaled_rows(*timed))
            own = np.linalg.solve(np.eye(4) - taken.toarray(), mean)
            assert (plan.v <= own + 1e-9).all()
            assert (exact <= plan.v + plan.info.error + 1e-9).all()


def test_options_beside_single_actions_leave_the_best_values_as_they_are():
    process = grid(4)
    down = TemporalOption(np.full(16, 1), ends=np.r_[np.zeros(12), np.ones(4)], starts=np.arange(16) < 12)
    best = policy_iteration(process, 0.9)
    timed = with_options(process, {"down": down}, 0.9)
    plan = policy_iteration(*timed)
    assert plan.v == pytest.approx(best.v, abs=1e-9)
    assert timed.process.actions == [0, 1, 2, 3, "down"]
    assert plan.policy[12:15, 4].tolist() == [0.0] * 3


def test_an_option_earns_what_its_policy_earns_until_it_ends():
    process = DecisionProcess.from_tables([[[0.5, 0.5], [0.0, 1.0]]], [[1.0], [7.0]])
    run = TemporalOption([0, 0], ends=[0.0, 1.0])
    timed = with_options(process, {"run": run}, 0.8, primitive=False)
    assert timed.process.rewards[0, 0] == pytest.approx(1 / (1 - 0.4))
    assert timed.discount[0, 0] == pytest.approx(0.4 / (1 - 0.4))


# -- bad input ------------------------------------------------------------------------------------------------------


def test_the_row_that_does_not_sum_to_one_is_named():
    with pytest.raises(InvalidTable, match=r"'cut' in state 'old' sum to 0\.7, not to 1"):
        DecisionProcess.from_tables(
            [WAIT, [[1, 0, 0], [1, 0, 0], [0.7, 0, 0]]],
            FOREST_REWARDS,
            states=["young", "middle", "old"],
            actions=["wait", "cut"],
        )


@pytest.mark.parametrize(
    ("transitions", "rewards", "said"),
    [
        ([[[1.0, 0], [0, 1]]], [np.nan, 0.0], "is nan; rewards are finite"),
        ([[[1.5, -0.5], [0, 1]]], [0.0, 0.0], "has the probability -0.5"),
        ([[[1.0, 0], [0, 1]]], [0.0, 0.0, 0.0], "for 2 states and 1 actions"),
        (np.ones((2, 3, 4)), [0.0], "not \\(2, 3, 4\\)"),
    ],
)
def test_tables_that_are_none_are_refused(transitions, rewards, said):
    with pytest.raises(InvalidTable, match=said):
        DecisionProcess.from_tables(transitions, rewards)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"horizon": 0}, "horizon= is a whole number, 1 or more, not 0"),
        ({}, "say one of"),
        ({"horizon": 3, "discount": 0.9}, "not horizon= and discount="),
        ({"discount": 1.5}, "from 0 up to but not 1"),
        ({"discount": 0.9, "entropy": True}, "temperature="),
        ({"discount": 0.9, "temperature": 0.0}, "above 0"),
        ({"discount": 0.9, "method": "value iterations"}, "did you mean 'value iteration'"),
        ({"horizon": 3, "method": "linear program"}, "leave method= out"),
        ({"average": True, "temperature": 1.0}, "soft plan"),
    ],
)
def test_questions_that_make_no_sense_are_refused(options, said):
    with pytest.raises((InvalidArgument, UnsupportedModel), match=said):
        plan_process(forest(), **options)


def test_a_horizon_beyond_memory_is_refused_before_anything_is_made():
    with pytest.raises(TooLarge, match="the plan of 1,000,000,000,000 steps"):
        finite_horizon(forest(), 10**12)


def test_forms_of_tables_mean_the_same():
    rng = np.random.default_rng(0)
    tables, by_move = rng.dirichlet(np.ones(3), size=(2, 3)), rng.normal(size=(2, 3, 3))
    plain = DecisionProcess.from_tables(tables, np.einsum("asn,asn->sa", tables, by_move))
    others = [
        DecisionProcess.from_tables(tables, by_move),
        DecisionProcess.from_tables(
            [sparse.csr_matrix(t) for t in tables], [sparse.coo_array(r) for r in by_move]
        ),
        DecisionProcess.from_tables(tables.transpose(1, 0, 2), by_move.transpose(1, 0, 2)),
        DecisionProcess.from_tables(sparse.csr_array(tables.reshape(6, 3)), by_move),
    ]
    for other in others:
        assert other.transitions.toarray() == pytest.approx(plain.transitions.toarray())
        assert other.rewards == pytest.approx(plain.rewards)


def test_a_plan_prints_and_acts_by_name():
    process = DecisionProcess.from_tables(
        [WAIT, CUT], FOREST_REWARDS, states=["young", "middle", "old"], actions=["wait", "cut"]
    )
    plan = policy_iteration(process, 0.96)
    assert str(plan).splitlines()[2].split() == ["young", "74.6496", "wait"]
    assert "<table>" in plan._repr_html_()
    assert plan.act({"state": "old"}) == "wait"
    steps = finite_horizon(process, 3)
    assert steps.act("old", step=2) == "wait"
    assert steps.act("middle", step=2) == "cut"
    with pytest.raises(InvalidArgument, match="steps 0 to 2, not 3"):
        steps.act("old", step=3)
    with pytest.raises(InvalidArgument, match="leave step= out"):
        plan.act("old", step=0)


@pytest.mark.parametrize("n", [5, 50, 400])
def test_news_that_travels_one_state_a_round_is_waited_for(n):
    """Bounds stay as wide for many rounds of exact policy iteration, while values rise."""
    costs = -np.linspace(0, 1, n)[:, None] * np.ones((1, 2))
    around = DecisionProcess.from_tables([np.roll(np.eye(n), 1, axis=1), np.eye(n)], costs)
    plan = policy_iteration(around, 0.999)
    assert plan.info.exact
    np.testing.assert_allclose(plan.v, value_iteration(around, 0.999).v, atol=1e-9)
