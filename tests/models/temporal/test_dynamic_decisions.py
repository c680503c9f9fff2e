"""Decisions in dynamic networks: plans are those of the unrolled diagram, by whatever route they are found."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.errors import InvalidArgument, TooLarge, UnsupportedModel
from markovia.inference.decisions.processes import factored_process as factored
from markovia.inference.decisions.processes.factored_process import JointStates
from markovia.inference.decisions.processes.planning import plan_process
from markovia.models.temporal.dynamic.decision_steps import decision_steps, factored_process
from markovia.models.temporal.dynamic.dynamic_decisions import flat_process, state_process

SEEDS = st.integers(0, 10**6)


def chance(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def simple(seed=0, *, utilities=None):
    rng = np.random.default_rng(seed)
    p = mk.DynamicBayesianNetwork()
    p.add("s", chance(rng, 3, 2, 3), states=3, parents=["s@-1", "move@-1"], initial=[0.2, 0.3, 0.5])
    p.add("move", mk.Decision(2), parents=["s"])
    p.add("r", mk.Utility(-rng.random((3, 2)) if utilities is None else utilities), parents=["s", "move"])
    return p


def rich(seed, *, arrivals=True, forbid=True):
    """Two seen variables, hidden noise before and after two decisions, and a utility of the move itself."""
    rng = np.random.default_rng(seed)
    p = mk.DynamicBayesianNetwork()
    p.add("noise", chance(rng, 2, 2, 2), states=2, parents=["x@-1", "a@-1"], initial=[0.4, 0.6])
    p.add("x", chance(rng, 2, 2, 2), states=2, parents=["noise", "luck@-1"], initial=chance(rng, 2, 2))
    p.add(
        "y",
        chance(rng, 2, 2, 3),
        states=["lo", "mid", "hi"],
        parents=["x", "b@-1"],
        initial=chance(rng, 2, 3),
    )
    allowed = (lambda x, y: [0] if y == "hi" else [0, 1]) if forbid else None
    p.add("a", mk.Decision(2, allowed), parents=["x", "y"])
    p.add("b", mk.Decision(2), parents=["x", "y", "a"])
    p.add("luck", chance(rng, 3, 2, 2), states=2, parents=["y", "a"])
    p.add("gain", mk.Utility(rng.normal(size=(2, 2))), parents=["luck", "b"])
    if arrivals:
        p.add(
            "trip",
            mk.Utility(rng.normal(size=(2, 2, 3))),
            parents=["x@-1", "a@-1", "y"],
            initial=mk.Utility(np.zeros(3)),
        )
    return p


def worth_of_unrolled(process, steps, rule):
    """Return the expected sum of utilities by enumeration of every path, for `rule(step, x, y) -> (a, b)`."""
    first, later = process.ready()
    total = 0.0
    for path in product(*[range(2), range(2), range(3), range(2)] * steps):
        weight, worth, before = 1.0, 0.0, {}
        for t in range(steps):
            now = dict(zip(("noise", "x", "y", "luck"), path[4 * t : 4 * t + 4], strict=True))
            now["a"], now["b"] = rule(t, now["x"], now["y"])
            known = {**now, **{f"{n}@-1": v for n, v in before.items()}}
            network = later if t else first
            for name in ("noise", "x", "y", "luck"):
                node = network[name]
                weight *= node.values[tuple(known[q] for q in node.names)]
            for name in [n for n in ("gain", "trip") if n in process.variables and (t or n == "gain")]:
                node = network[name]
                worth += node.worth[tuple(known[q] for q in node.parent_names)]
            before = now
            if not weight:
                break
        total += weight * worth
    return total


def test_a_process_whose_state_is_seen_is_a_decision_process():
    p = simple()
    table = flat_process(p)
    moves = p.transition["s"].values
    assert table.transitions.toarray().reshape(2, 3, 3) == pytest.approx(moves.transpose(1, 0, 2))
    plan = p.decide(discount=0.9)
    assert plan.v == pytest.approx(mk.MDP(moves, p.transition["r"].worth).decide(discount=0.9).v)
    assert plan.act(2) == plan.act({"s": 2})


@settings(max_examples=8, deadline=None)
@given(seed=SEEDS)
def test_a_plan_for_some_steps_is_the_one_of_the_unrolled_diagram(seed):
    p = simple(seed)
    plan, policy = p.decide(horizon=3), p.unroll(3).decide(memory="perfect")
    assert plan.value == pytest.approx(policy.value, abs=1e-10)
    assert p.decide(horizon=3).info.exact


@pytest.mark.slow
@pytest.mark.parametrize("arrivals", [False, True])
def test_noise_luck_two_decisions_and_worth_on_arrival_are_those_of_all_paths(arrivals):
    for seed in range(2):
        p = rich(seed, arrivals=arrivals)
        plan = p.decide(horizon=2)

        def rule(t, x, y, plan=plan):
            return plan.act((x, ["lo", "mid", "hi"][y]), step=t)

        assert worth_of_unrolled(p, 2, rule) == pytest.approx(plan.value, abs=1e-10)
        assert plan.process.actions[:] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        hi = [s for s in range(6) if plan.process.state_name(s)[1] == "hi"]
        assert plan.policy[:, hi, 2:].max() == 0.0  # what is forbidden there
        rng, best = np.random.default_rng(seed), -np.inf
        for _ in range(12):  # no rule that is drawn does better
            table = [
                [
                    (0, int(b)) if y == 2 else (int(a), int(b))
                    for y in range(3)
                    for a, b in [rng.integers(0, 2, 2)]
                ]
                for _ in range(4)
            ]
            best = max(best, worth_of_unrolled(p, 2, lambda t, x, y, table=table: table[2 * t + x][y]))
        assert best <= plan.value + 1e-10


def test_worth_on_arrival_is_discounted_by_the_step_it_takes():
    p = mk.DynamicBayesianNetwork()
    p.add("s", [[[0.0, 1.0]], [[0.0, 1.0]]], states=2, parents=["s@-1", "go@-1"], initial=[1, 0])
    p.add("go", mk.Decision(1), parents=["s"])
    p.add(
        "toll", mk.Utility([[0.0, -4.0], [0.0, -1.0]]), parents=["s@-1", "s"], initial=mk.Utility([0.0, 0.0])
    )
    assert p.decide(discount=0.5).v.tolist() == [-2.5, -1.0]
    assert p.decide(horizon=1).value == 0.0
    assert p.decide(horizon=3).value == -5.0
    assert p.decide(average=True).value == pytest.approx(-1.0)


@settings(max_examples=8, deadline=None)
@given(seed=SEEDS)
def test_backward_messages_and_the_table_of_all_moves_agree(seed):
    process = factored_process(decision_steps(rich(seed, arrivals=False)))
    values = np.random.default_rng(seed).normal(size=process.n_states)
    flat = process.flat()
    assert process.q(values, 0.7)[flat.allowed] == pytest.approx(flat.q(values, 0.7)[flat.allowed], abs=1e-12)
    one, other = plan_process(process, discount=0.9), plan_process(process.flat(), discount=0.9)
    assert one.v == pytest.approx(other.v, abs=1e-7)
    assert one.value <= other.value + 1e-9 <= one.bound + 1e-8


def chain_of(n, k=2):
    """So many machines in a row, each worn by its neighbour; one is repaired a step."""
    p = mk.DynamicBayesianNetwork()
    names = [f"m{i}" for i in range(n)]
    for i, name in enumerate(names):
        near = names[i - 1] if i else None

        def law(*states, i=i, near=near):
            own, fix = states[0], states[-1]
            worn = (
                0.0
                if fix == i
                else min(1.0, 0.1 + 0.2 * (near is not None and states[1] == 1))
                if own == 0
                else 1.0
            )
            return [1 - worn, worn]

        parents = [f"{name}@-1", *([f"{near}@-1"] if near else []), "fix@-1"]
        shape = [2] * (len(parents) - 1) + [n + 1]
        table = np.array([law(*at) for at in np.ndindex(*shape)]).reshape(*shape, 2)
        p.add(name, table, states=k, parents=parents, initial=[1.0, 0.0])
    p.add("fix", mk.Decision(n + 1), parents=names)
    for name in names:
        p.add(f"up {name}", mk.Utility([1.0, 0.0]), parents=[name])
    p.add("cost", mk.Utility([-0.5] * n + [0.0]), parents=["fix"])
    return p


def test_a_factored_process_is_planned_for_without_its_table_of_moves(monkeypatch):
    small = chain_of(4)
    whole = small.decide(discount=0.9)
    monkeypatch.setattr("markovia.models.temporal.dynamic.dynamic_decisions.FLAT_ENTRIES", 1)
    by_messages = small.decide(discount=0.9)
    assert by_messages.process is not whole.process
    assert type(by_messages.process).__name__ == "FactoredProcess"
    assert by_messages.v == pytest.approx(whole.v, abs=1e-7)
    assert small.decide(horizon=4).v == pytest.approx(plan_process(flat_process(small), horizon=4).v)


def test_a_table_of_moves_that_would_not_fit_is_never_made():
    large = chain_of(12)  # 4,096 states: all moves would be 1.6 GiB dense
    plan = large.decide(discount=0.5, tolerance=1e-6)
    assert plan.gap <= 1e-6
    assert plan.process.n_states == 4096
    assert plan.act((0,) * 12) == 12
    assert plan.act((0,) * 3 + (1,) + (0,) * 8) == 3


def test_what_a_backup_would_take_is_said_before_it_is_made(monkeypatch):
    process = state_process(rich(0))
    monkeypatch.setattr(factored, "default_budget", lambda: 100)
    with pytest.raises(TooLarge, match="a backup makes a table of"):
        process.q(np.zeros(6))


def test_joint_states_are_named_and_numbered():
    variables = [state_process(rich(0)).sights[i] for i in (0, 1)]
    joint = JointStates(variables)
    assert [joint.number(s) for s in joint] == list(range(6))
    assert joint[1:3] == [(0, "mid"), (0, "hi")]
    with pytest.raises(InvalidArgument, match="a state of each of x, y"):
        joint.number("hi")


# -- what is not seen -----------------------------------------------------------------------------------------------


def tiger():
    heard = np.full((2, 3, 2), 0.5)
    heard[0, 0], heard[1, 0] = [0.85, 0.15], [0.15, 0.85]
    p = mk.DynamicBayesianNetwork()
    stay = [[[1, 0], [0.5, 0.5], [0.5, 0.5]], [[0, 1], [0.5, 0.5], [0.5, 0.5]]]
    p.add("tiger", stay, states=["left", "right"], parents=["tiger@-1", "act@-1"], initial=[0.5, 0.5])
    p.add("heard", heard, states=["left", "right"], parents=["tiger", "act@-1"], initial=[0.5, 0.5])
    p.add("act", mk.Decision(["listen", "left", "right"]), parents=["heard"])
    p.add("pay", mk.Utility([[-1, -100, 10], [-1, 10, -100]]), parents=["tiger", "act"])
    return p


def test_beliefs_are_planned_for_where_decisions_remember():
    assert tiger().decide(discount=0.95, memory="perfect").value == pytest.approx(19.3714, abs=1e-3)
    assert tiger().decide(horizon=3, memory="perfect").value == pytest.approx(2.72, abs=1e-6)


def test_decisions_that_forget_have_a_policy_for_each_step():
    policy = tiger().decide(horizon=2)
    assert set(policy) == {"act@0", "act@1"}
    assert policy.value == pytest.approx(tiger().unroll(2).decide().value)


def test_a_state_that_is_not_seen_is_named_with_the_cures():
    with pytest.raises(UnsupportedModel, match=r"'tiger', which is not seen.*memory='perfect'.*horizon="):
        tiger().decide(discount=0.9)
    with pytest.raises(UnsupportedModel, match="temperature="):
        tiger().decide(horizon=2, temperature=1.0)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda p: p.add("x", [0.5, 0.5]), "no decision"),
        (lambda p: p.add("d", mk.Decision(2)), "no utility"),
    ],
)
def test_processes_without_decisions_or_utilities_are_refused(build, said):
    p = mk.DynamicBayesianNetwork()
    build(p)
    with pytest.raises(UnsupportedModel, match=said):
        p.decide(discount=0.9)


def test_bad_times_are_refused():
    with pytest.raises(InvalidArgument, match="1 or more, not 0"):
        simple().decide(horizon=0)
    with pytest.raises(InvalidArgument, match="say one of"):
        simple().decide()
    with pytest.raises(InvalidArgument, match="memory="):
        simple().decide(horizon=2, memory="perfekt")


# -- control as inference on the graph ------------------------------------------------------------------------------


@settings(max_examples=6, deadline=None)
@given(seed=SEEDS, temperature=st.sampled_from([0.2, 1.0, 5.0]))
def test_the_posterior_of_the_graph_is_the_message_and_the_bound_is_below_the_evidence(seed, temperature):
    p = simple(seed)
    model = p.optimality(temperature=temperature, horizon=3)
    both = model.soft_values()
    assert model.log_evidence == pytest.approx(both.log_evidence, abs=1e-9)
    assert both.elbo <= both.log_evidence
    for s in range(3):
        asked = model.query("move@0", given={"s@0": s})
        assert asked.values == pytest.approx(both.exact.policy[0, s], abs=1e-9)
    assert both.variational.policy == pytest.approx(p.decide(horizon=3, temperature=temperature).policy)


def test_the_risky_bet_is_taken_by_who_believes_in_luck():
    bet = mk.DynamicBayesianNetwork()
    moves = [[[1, 0, 0]] * 2, [[0.5, 0, 0.5], [0, 1, 0]], [[0, 0, 1]] * 2]
    bet.add(
        "purse", moves, states=["broke", "some", "rich"], parents=["purse@-1", "bet@-1"], initial=[0, 1, 0]
    )
    bet.add("bet", mk.Decision(["risky", "safe"]), parents=["purse"])
    bet.add("worth", mk.Utility([-10.0, -1.0, 0.0]), parents=["purse"])
    model = bet.optimality(temperature=1.0, horizon=2)
    both = model.soft_values()
    assert both.exact.q[0, 1] - both.exact.q[0, 1, 1] == pytest.approx([-0.6931 + 1, 0], abs=1e-4)
    assert both.variational.q[0, 1] - both.variational.q[0, 1, 1] == pytest.approx([-5 + 1, 0], abs=1e-12)
    assert model.query("bet@0")["risky"] == pytest.approx(0.5761, abs=1e-4)
    assert both.variational.row("some", step=0)["risky"] == pytest.approx(0.0180, abs=1e-4)
    # the posterior also believes that chance was kind
    assert model.query("purse@1", given={"bet@0": "risky"})["rich"] > 0.99


def test_utilities_above_zero_are_refused_or_shifted():
    p = simple(utilities=np.arange(6.0).reshape(3, 2))
    with pytest.raises(InvalidArgument, match="'r@0' is worth up to 5"):
        p.optimality(temperature=1.0, horizon=2)
    shifted = p.optimality(temperature=1.0, horizon=2, shift=True)
    lower = simple(utilities=np.arange(6.0).reshape(3, 2) - 5).optimality(temperature=1.0, horizon=2)
    assert shifted.log_evidence == pytest.approx(lower.log_evidence)
    with pytest.raises(InvalidArgument, match="known to be optimal"):
        shifted.query("s@0", given={"r@0": "no"})


def test_paths_are_drawn_given_that_they_were_optimal():
    model = simple(3).optimality(temperature=0.1, horizon=2)
    rows = model.sample(4000, seed=0)
    share = (rows["move@0"] == 1).mean()
    assert share == pytest.approx(model.query("move@0")[1], abs=0.03)
    assert (rows["r@0"] == "yes").all()


def test_a_plan_that_is_followed_earns_what_it_is_worth():
    rng = np.random.default_rng(0)
    moves = rng.dirichlet(np.ones(3), size=(3, 2))
    pay = rng.normal(size=(3, 2))
    process = mk.DynamicBayesianNetwork()
    process.add("s", moves, states=3, parents=["s@-1", "go@-1"], initial=[0.2, 0.3, 0.5])
    process.add("go", mk.Decision(["a", "b"]), parents=["s"])
    process.add("r", mk.Utility(pay), parents=["s", "go"])
    for plan in (process.decide(discount=0.9), process.decide(discount=0.9, temperature=0.5)):
        made = process.follow(plan)
        law, p, worth = plan.policy, np.array([0.2, 0.3, 0.5]), 0.0
        for _ in range(4):
            worth += p @ (law * pay).sum(axis=1)
            p = np.einsum("s,sa,sat->t", p, law, moves)
        assert made.unroll(4).expected_utility() == pytest.approx(worth)
        np.testing.assert_allclose(made.query("s@4").values, p)
    by_hand = process.follow({"go": lambda s: "b" if s == 2 else "a"})
    assert by_hand.query("go@0")["b"] == pytest.approx(0.5)
    with pytest.raises(mk.errors.UnsupportedModel, match="each step"):
        process.follow(process.decide(horizon=3))


def test_several_decisions_that_see_parts_of_the_state_are_followed():
    process = mk.DynamicBayesianNetwork()
    for name in "xy":
        rows = [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]]
        process.add(name, rows, states=2, parents=[f"{name}@-1", f"d{name}@-1"], initial=[0.5, 0.5])
    for name in "xy":
        process.add(f"d{name}", mk.Decision(2), parents=["x", "y"])
        effort = -0.9 if name == "x" else 0.9  # one does nothing where the other acts
        process.add(f"r{name}", mk.Utility([[0.0, effort], [1.0, 1.0 + effort]]), parents=[name, f"d{name}"])
    plan = process.decide(discount=0.9)
    made = process.follow(plan)
    for x in (0, 1):
        for y in (0, 1):
            row = plan.row({"x": x, "y": y})
            told = made.unroll(1).query(["dx@0", "dy@0"], given={"x@0": x, "y@0": y})
            (best,) = row
            assert told[best] == pytest.approx(1.0)


def test_a_noisy_number_is_steered_by_memory_alone():
    system = mk.DynamicBayesianNetwork()
    system.add("x", mk.LinearGaussian(0, {"x@-1": 1, "u@-1": 0.1}, 0.01), initial=mk.LinearGaussian(0, {}, 1))
    system.add("seen", mk.LinearGaussian(0, {"x": 1}, 0.1))
    system.add("u", mk.Decision(), parents=["seen"])
    system.add("cost", mk.Utility(mk.Quadratic({"x": -1, "u": -0.01})))
    with pytest.raises(mk.errors.UnsupportedModel, match="memory='perfect'"):
        system.decide(average=True)
    assert system.decide(average=True, memory="perfect").value < 0
