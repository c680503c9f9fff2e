"""Plans over beliefs against the enumeration of everything that may be done and heard."""

# ruff: noqa: E741 (letters of the literature)

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import markovia as mk
from markovia.inference.decisions.beliefs.alpha_vectors import changes, envelope, greatest_gain
from markovia.inference.decisions.beliefs.belief_bounds import blind, fast_informed, qmdp, state_values
from markovia.inference.decisions.beliefs.belief_plan import solve
from markovia.inference.decisions.beliefs.controllers import bounded_controller, controller_of
from markovia.inference.decisions.beliefs.partially_observed import PartiallyObserved
from markovia.inference.decisions.processes.decision_process import DecisionProcess

SEEDS = st.integers(0, 10**6)
DOOR = np.full((2, 2), 0.5)
TIGER = (
    np.array([np.eye(2), DOOR, DOOR]),
    np.array([[[0.85, 0.15], [0.15, 0.85]], DOOR, DOOR]),
    np.array([[-1.0, -100, 10], [-1, 10, -100]]),
)
HORIZONS = [-1, -2, 2.72, 2.42125, 3.60915, 5.61881875]


def heard(P, O, R, initial=None, **more):
    return PartiallyObserved(DecisionProcess.from_tables(P, R, initial=initial, **more), O)


def tiger(scale=1.0):
    return heard(*TIGER[:2], scale * TIGER[2], [0.5, 0.5], actions=["listen", "left", "right"])


def random_tables(rng, n=None, k=None, m=None, sparse_rows=False):
    n, k, m = (int(rng.integers(1, 4)) if size is None else size for size in (n, k, m))
    P, O = rng.dirichlet(np.full(n, 0.7), (k, n)), rng.dirichlet(np.full(m, 0.7), (k, n))
    if sparse_rows:  # impossible moves and observations, some of which never occur
        P, O = (np.where(T.max(axis=2, keepdims=True) * 0.6 <= T, T, 0.0) for T in (P, O))
        P, O = (T / T.sum(axis=2, keepdims=True) for T in (P, O))
    return P, O, rng.normal(size=(n, k)).round(1)


def best_tree(P, O, R, belief, steps, discount=1.0):
    """Return what the best tree of actions is worth, by trying all of them."""
    if not steps:
        return 0.0
    worth = belief @ R
    for a in range(len(P)):
        joint = (belief @ P[a])[:, None] * O[a]
        for weights in joint.T:
            if weights.sum() > 0.0:
                after = best_tree(P, O, R, weights / weights.sum(), steps - 1, discount)
                worth[a] += discount * weights.sum() * after
    return worth.max()


def followed(plan, P, O, R, belief, steps, done=0, discount=1.0):
    """Return what some steps of a plan are worth, by following what it does after everything that may be heard."""
    if not steps:
        return 0.0
    a = plan.act(belief, done)
    worth, joint = belief @ R[:, a], (belief @ P[a])[:, None] * O[a]
    for weights in joint.T:
        if (chance := weights.sum()) > 0.0:
            at = done + 1 if plan.horizon else 0
            worth += discount * chance * followed(plan, P, O, R, weights / chance, steps - 1, at, discount)
    return worth


@pytest.mark.parametrize("method", ["exact", "point-based"])
def test_the_tiger_is_worth_what_is_known_of_it(method):
    for steps, value in enumerate(HORIZONS, 1):
        plan = solve(tiger(), horizon=steps, method=method)
        assert plan.value == pytest.approx(value, abs=1e-9)
        assert plan.bound == pytest.approx(value, abs=1e-9)
        assert plan.info.exact


def test_the_tiger_for_ever_is_worth_what_is_known_of_it():
    plan = solve(tiger(), discount=0.95)
    assert plan.value <= 19.371368375 <= plan.bound + 1e-9
    assert plan.value == pytest.approx(19.37136837, abs=2e-6)
    assert plan.v([1.0, 0.0]) == pytest.approx(28.40279996, abs=2e-6)
    assert plan.info.exact
    assert (qmdp(tiger().steps, 0.95) @ [0.5, 0.5]).max() == pytest.approx(189.0, abs=1e-6)
    assert plan.act() == "listen"
    assert plan.act([0.97, 0.03]) == "right"


@pytest.mark.parametrize("method", ["exact", "point-based"])
@settings(max_examples=25)
@given(seed=SEEDS)
def test_plans_of_a_horizon_are_worth_the_best_tree(method, seed):
    rng = np.random.default_rng(seed)
    P, O, R = random_tables(rng, sparse_rows=seed % 2 == 0)
    first = rng.dirichlet(np.ones(len(R)))
    steps = int(rng.integers(1, 4))
    plan = solve(heard(P, O, R, first), horizon=steps, method=method, time_limit=20.0)
    truth = best_tree(P, O, R, first, steps)
    assert plan.value == pytest.approx(truth, abs=1e-7)
    assert plan.value - 1e-12 <= truth <= plan.bound + 1e-12
    assert plan.info.exact
    assert followed(plan, P, O, R, first, steps) == pytest.approx(truth, abs=1e-7)
    for step in range(steps):
        belief = rng.dirichlet(np.ones(len(R)))
        low, high = plan.bounds(belief, step)
        there = best_tree(P, O, R, belief, steps - step)
        assert low - 1e-9 <= there <= high + 1e-9
        if method == "exact":
            assert low == pytest.approx(there, abs=1e-7)


@settings(max_examples=8, deadline=None)
@given(seed=SEEDS)
def test_bounds_without_a_horizon_bracket_the_truth_everywhere(seed):
    rng = np.random.default_rng(seed)
    P, O, R = random_tables(rng, sparse_rows=seed % 2 == 0)
    process, discount, depth = heard(P, O, R), 0.4, 5
    plans = [
        solve(process, discount=discount, method=m, tolerance=1e-4, time_limit=2.0)
        for m in ("exact", "point-based")
    ]
    rest = discount**depth * np.abs(R).max() / (1.0 - discount)
    planes = [np.array(make(process.steps, discount)) for make in (qmdp, fast_informed, blind)]
    seen = state_values(process.steps, discount)
    for belief in [process.first, *rng.dirichlet(np.ones(len(R)), 3)]:
        about = best_tree(P, O, R, belief, depth, discount)
        above, informed, below = ((plane @ belief).max() for plane in planes)
        assert below - 1e-9 <= about + rest
        assert about - rest - 1e-9 <= informed <= above + 1e-9
        assert above <= seen @ belief + 1e-9
        for plan in plans:
            low, high = plan.bounds(belief)
            assert low - 1e-9 <= about + rest
            assert low - 1e-9 <= followed(plan, P, O, R, belief, depth, discount=discount) + rest
            assert about - rest - 1e-9 <= high <= above + plan.gap + 1e-6
        assert plans[0].bounds(belief)[0] - 1e-9 <= plans[1].bounds(belief)[1]
        assert plans[1].bounds(belief)[0] - 1e-9 <= plans[0].bounds(belief)[1]


@settings(max_examples=25)
@given(seed=SEEDS)
def test_an_envelope_keeps_every_value_and_nothing_else(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    vectors = rng.normal(size=(int(rng.integers(1, 30)), n)).round(1)
    kept, lost = envelope(vectors)
    beliefs = rng.dirichlet(np.full(n, 0.6), 300)
    assert np.allclose((beliefs @ vectors[kept].T).max(axis=1), (beliefs @ vectors.T).max(axis=1), atol=1e-8)
    assert lost < 1e-8
    for i in kept:
        others = vectors[[j for j in kept if j != i]]
        assert not len(others) or greatest_gain(vectors[i], others).most > 0.0


@settings(max_examples=25)
@given(seed=SEEDS)
def test_an_envelope_with_slack_loses_no_more(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 4))
    vectors = rng.dirichlet(np.ones(n), 20) * 2.0
    kept, lost = envelope(vectors, 0.3)
    beliefs = rng.dirichlet(np.full(n, 0.6), 300)
    fallen = (beliefs @ vectors.T).max(axis=1) - (beliefs @ vectors[kept].T).max(axis=1)
    assert fallen.max() <= lost + 1e-12
    assert lost <= 0.3 + 1e-9


@settings(max_examples=25)
@given(seed=SEEDS)
def test_the_changes_of_an_envelope_are_bounded(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    new, old = rng.normal(size=(6, n)), rng.normal(size=(4, n))
    least, most = changes(new, old, np.inf)
    beliefs = rng.dirichlet(np.full(n, 0.6), 300)
    moved = (beliefs @ new.T).max(axis=1) - (beliefs @ old.T).max(axis=1)
    assert least - 1e-9 <= moved.min()
    assert moved.max() <= most + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_other_units_of_reward_change_nothing_but_the_unit(scale):
    for options in ({"horizon": 4}, {"discount": 0.9}):
        for method in ("exact", "point-based"):
            plan, plain = (
                solve(tiger(by), method=method, tolerance=1e-6, time_limit=20.0, **options)
                for by in (scale, 1.0)
            )
            assert plan.value == pytest.approx(scale * plain.value, rel=1e-5)
            assert plan.info.exact
            assert plan.act([0.97, 0.03]) == plain.act([0.97, 0.03])


def test_a_plan_with_a_gap_still_earns_its_value_when_followed():
    rng = np.random.default_rng(1)
    for _ in range(4):
        P, O, R = random_tables(rng, 4, 2, 2)
        plan = solve(heard(P, O, R), discount=0.5, method="point-based", tolerance=0.02)
        rest = 0.5**9 * np.abs(R).max() / 0.5
        for belief in [np.full(4, 0.25), *rng.dirichlet(np.ones(4), 3)]:
            assert followed(plan, P, O, R, belief, 9, discount=0.5) + rest >= plan.v(belief) - 1e-9


def test_what_is_heard_exactly_makes_the_process_one_that_is_seen():
    rng = np.random.default_rng(3)
    P, _, R = random_tables(rng, 4, 2, 4)
    told = np.repeat(np.eye(4)[None], 2, axis=0)
    plan = solve(heard(P, told, R, np.eye(4)[1]), discount=0.9, method="point-based", time_limit=20.0)
    values = state_values(heard(P, told, R).steps, 0.9)
    assert plan.value == pytest.approx(values[1], abs=1e-6)
    assert plan.info.exact


def test_what_is_never_heard_and_what_tells_nothing_change_nothing():
    P, O, R = TIGER
    wider = np.concatenate([O, np.zeros((3, 2, 1))], axis=2)
    assert solve(heard(P, wider, R), discount=0.9).value == pytest.approx(solve(tiger(), discount=0.9).value)
    deaf = solve(heard(P, np.ones((3, 2, 1)), R), discount=0.9)
    assert deaf.value == pytest.approx(-10.0, abs=1e-5)


def test_one_state_one_action_and_rewards_of_zero_are_plans_too():
    alone = solve(heard(np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.array([[2.0]])), discount=0.5)
    assert alone.value == pytest.approx(4.0)
    for method in ("exact", "point-based"):
        nothing = solve(heard(*TIGER[:2], np.zeros((2, 3))), discount=0.9, method=method)
        assert (nothing.value, nothing.gap, nothing.info.exact) == (0.0, 0.0, True)
        assert solve(tiger(), discount=0.0, method=method).value == pytest.approx(-1.0)


def test_first_observations_count_before_the_first_action():
    P, O, R = TIGER
    process = PartiallyObserved(
        DecisionProcess.from_tables(P, R, initial=[0.5, 0.5]), O, first_observation=O[0]
    )
    for method in ("exact", "point-based"):
        for steps in (1, 2, 3):
            parts = [np.array([0.5, 0.5]) * O[0][:, o] for o in range(2)]
            truth = sum(w.sum() * best_tree(P, O, R, w / w.sum(), steps) for w in parts)
            plan = solve(process, horizon=steps, method=method)
            assert plan.value == pytest.approx(truth, abs=1e-9)
            assert plan.info.exact
    agent = plan.stream()
    assert agent.update(heard=0) == pytest.approx([0.85, 0.15])


def test_an_agent_keeps_its_belief_and_refuses_what_cannot_be_heard():
    sound = PartiallyObserved(
        DecisionProcess.from_tables([np.eye(2)] * 2, [[1.0, 0.0], [0.0, 1.0]]),
        [sparse.csr_array(np.array([[1.0, 0.0], [0.5, 0.5]]))] * 2,
        {"sound": ["quiet", "loud"]},
    )
    agent = solve(sound, horizon=4).stream()
    with pytest.raises(mk.errors.InvalidArgument, match=r"act\(\) first"):
        agent.update(sound="quiet")
    agent.act()
    assert agent.update(sound="quiet") == pytest.approx([2 / 3, 1 / 3])
    with pytest.raises(mk.errors.InvalidArgument, match=r"act\(\) before"):
        agent.update(sound="quiet")
    assert agent.act() == 0
    agent.took(1)
    assert agent.update(sound="loud") == pytest.approx([0.0, 1.0])
    other = solve(sound, horizon=4).stream()
    other.state = agent.state
    assert other.act() == agent.act() == 1
    sure = PartiallyObserved(
        DecisionProcess.from_tables([np.eye(2)], [1.0, 0.0], initial=[1.0, 0.0]), np.array([np.eye(2)])
    )
    agent = solve(sure, horizon=2).stream()
    agent.act()
    with pytest.raises(mk.errors.ImpossibleEvidence, match="heard=1 cannot be heard after action 0"):
        agent.update(heard=1)
    assert agent.belief.tolist() == [1.0, 0.0]
    assert agent.update(heard=None).tolist() == [1.0, 0.0]


def test_what_cannot_be_planned_for_is_refused_in_a_sentence():
    P, O, R = TIGER
    with pytest.raises(mk.errors.UnsupportedModel, match="exactly one of horizon= and discount="):
        solve(tiger())
    with pytest.raises(mk.errors.InvalidArgument, match="discount="):
        solve(tiger(), discount=1.0)
    with pytest.raises(mk.errors.InvalidTable, match=r"in state 1 sum to 1\.1"):
        heard(P, np.array([[[0.85, 0.15], [0.2, 0.9]], DOOR, DOOR]), R)
    rules = np.ones((2, 3), dtype=bool)
    rules[0, 2] = False
    with pytest.raises(mk.errors.UnsupportedModel, match="allowed in some states only"):
        solve(heard(P, O, R, allowed=rules), horizon=2)
    rules[1, 2] = False
    fewer = solve(heard(P, O, R, allowed=rules), horizon=3)
    assert fewer.value == pytest.approx(best_tree(P[:2], O[:2], R[:, :2], np.array([0.5, 0.5]), 3))


def test_a_search_that_runs_out_of_time_is_honest():
    rng = np.random.default_rng(0)
    P, O, R = random_tables(rng, 6, 3, 3)
    plan = solve(heard(P, O, R), discount=0.99, time_limit=0.05)
    assert not plan.info.exact
    assert plan.gap > 0.0
    better = solve(heard(P, O, R), discount=0.99, time_limit=1.0)
    assert plan.value - 1e-9 <= better.bound
    assert better.value <= plan.bound + 1e-9
    assert better.gap < plan.gap


def simulated(process, agent, rng, steps, discount):
    """Return the discounted rewards of one run of an agent."""
    flat, total = process.process, 0.0
    P = flat.transitions.toarray().reshape(flat.n_actions, flat.n_states, -1)
    s = rng.choice(flat.n_states, p=process.first)
    for t in range(steps):
        a = process.action_at(agent.act())
        total += discount**t * flat.rewards[s, a]
        s = rng.choice(flat.n_states, p=P[a, s])
        agent.update(heard=int(rng.choice(process.n_observations, p=process.observations[a].toarray()[s])))
    return total


@pytest.mark.slow
def test_agents_earn_what_their_plan_promises():
    process, rng = tiger(), np.random.default_rng(5)
    plan = solve(process, discount=0.7)
    for make in (plan.stream, lambda: controller_of(plan).stream(0)):
        runs = np.array([simulated(process, make(), rng, 20, 0.7) for _ in range(150)])
        assert abs(runs.mean() - plan.value) < 4.5 * runs.std() / np.sqrt(len(runs)) + 0.2


@settings(max_examples=6)
@given(seed=SEEDS)
def test_a_controller_is_worth_the_solution_of_its_equations(seed):
    rng = np.random.default_rng(seed)
    P, O, R = random_tables(rng, 2, sparse_rows=seed % 2 == 0)
    process = heard(P, O, R)
    plan = solve(process, discount=0.6, method="exact", tolerance=1e-7, time_limit=5.0)
    controller = controller_of(plan)
    assert plan.value - 1e-5 <= controller.value <= plan.bound + 1e-9
    found, n = np.zeros_like(controller.vectors), controller.n_nodes
    moves = controller.moves.toarray().reshape(n, len(P), O.shape[2], n)
    for _ in range(60):
        then = np.einsum("naom,ast,ato,mt->nas", moves, P, O, found)
        found = np.einsum("na,nas->ns", controller.choices, R.T[None] + 0.6 * then)
    assert controller.vectors == pytest.approx(found, abs=1e-9)


def test_bounded_policy_iteration_climbs_with_its_nodes_and_stays_below_the_best():
    best = solve(tiger(), discount=0.9)
    found = [bounded_controller(tiger(), discount=0.9, nodes=n, time_limit=20.0) for n in (1, 5, 9)]
    assert found[0].value == pytest.approx(-10.0)
    assert found[0].value <= found[1].value <= found[2].value <= best.bound + 1e-9
    assert found[2].value > 0.0
    assert [c.n_nodes for c in found] <= [1, 5, 9]
    with pytest.raises(mk.errors.UnsupportedModel, match="goes on for ever"):
        controller_of(solve(tiger(), horizon=2))
