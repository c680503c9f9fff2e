import contextlib
import io
import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from markovia.control.inverse_rewards import inverse
from markovia.errors import ConvergenceWarning, InvalidArgument
from markovia.inference.decisions.processes.bellman import SoftOperator
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.learning.control.demonstrations import Demonstrations
from markovia.learning.control.reward_objectives import reward_objective
from markovia.learning.control.soft_counts import expected_features, expected_visits, soft_pass
from markovia.learning.control.trajectories import Transitions


def random_process(rng, n=3, k=2, *, certain=False, terminal=False, allowed=False):
    moves = (
        np.eye(n)[rng.integers(n, size=(k, n))] if certain else rng.dirichlet(np.full(n, 0.5), size=(k, n))
    )
    may = None
    if allowed:
        may = rng.random((n, k)) < 0.7
        may[np.arange(n), rng.integers(k, size=n)] = True
    ends = np.arange(n) == n - 1 if terminal else None
    return DecisionProcess.from_tables(moves, np.zeros((n, k)), allowed=may, terminal=ends)


def walks_of(process, rng, count, steps, policy=None):
    """Return trajectories by a policy (steps, S, A), with the last state; they end where the process is over."""
    n, k = process.rewards.shape
    rows = process.transitions.toarray().reshape(k, n, n)
    ends = np.zeros(n, dtype=bool) if process.terminal is None else process.terminal
    may = np.ones((n, k)) if process.allowed is None else process.allowed.astype(float)
    found = []
    for _ in range(count):
        s = int(rng.choice(np.flatnonzero(~ends)))
        states, actions = [s], []
        for t in range(steps):
            law = may[s] / may[s].sum() if policy is None else policy[t, s]
            a = int(rng.choice(k, p=law))
            s = int(rng.choice(n, p=rows[a, s]))
            states.append(s)
            actions.append(a)
            if ends[s]:
                break
        found.append((states, actions))
    return found


def all_trajectories(process, first, steps):
    """Yield probability of the moves, visits (S, A) and length of all trajectories from a state."""
    n, k = process.rewards.shape
    rows = process.transitions.toarray().reshape(k, n, n)
    ends = np.zeros(n, dtype=bool) if process.terminal is None else process.terminal

    def extend(s, chance, visits, t):
        if t == steps or ends[s]:
            yield chance, visits, t
            return
        for a in range(k):
            if process.allowed is not None and not process.allowed[s, a]:
                continue
            for s2 in np.flatnonzero(rows[a, s] > 0).tolist():
                more = visits.copy()
                more[s, a] += 1
                yield from extend(s2, chance * rows[a, s, s2], more, t + 1)

    yield from extend(first, 1.0, np.zeros((n, k)), 0)


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_trajectory_model_is_the_normalised_law_of_all_trajectories(seed, terminal, allowed):
    rng = np.random.default_rng(seed)
    process = random_process(rng, terminal=terminal, allowed=allowed)
    rewards, tau, steps = rng.normal(size=(3, 2)), 0.7, 3
    found = soft_pass(process, rewards, steps, tau, lucky=True)
    starts = np.zeros((steps, 3))
    starts[-1, 0] = 1.0
    listed = list(all_trajectories(process, 0, steps))
    weights = np.array([p * np.exp((v * rewards).sum() / tau) for p, v, _ in listed])
    visits = np.tensordot(weights / weights.sum(), np.array([v for _, v, _ in listed]), 1)
    assert found.values[steps, 0] == pytest.approx(tau * np.log(weights.sum()))
    assert expected_visits(found, starts) == pytest.approx(visits)


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_the_causal_policy_has_the_most_causal_entropy_plus_reward(seed):
    rng = np.random.default_rng(seed)
    process = random_process(rng)
    rewards, steps = rng.normal(size=(3, 2)), 3
    found = soft_pass(process, rewards, steps, 1.0)

    def worth(policies):
        value = np.zeros(3)
        for k in range(1, steps + 1):
            ahead = (process.transitions @ value).reshape(2, 3).T
            pi = policies[k - 1]
            value = (pi * (rewards + ahead - np.log(pi))).sum(axis=1)
        return value

    assert worth(found.policies) == pytest.approx(found.values[steps])
    for _ in range(5):
        other = found.policies * np.exp(0.3 * rng.normal(size=found.policies.shape))
        assert (worth(other / other.sum(axis=-1, keepdims=True)) <= found.values[steps] + 1e-12).all()


@pytest.mark.parametrize("kind", ["causal", "trajectory", "discounted causal", "endless"])
@pytest.mark.parametrize("seed", range(6))
def test_the_gradient_is_that_of_the_objective(seed, kind):
    rng = np.random.default_rng(seed)
    process = random_process(rng, terminal=True, allowed=True)
    shown = Demonstrations.read(walks_of(process, rng, 5, 4), process)
    discount = 0.8 if kind in ("discounted causal", "endless") else None
    # as many steps as each has; endless ones have a discount alone
    objective = reward_objective(
        process, shown, "trajectory" if kind == "trajectory" else "causal", None, discount, 0.6
    )
    if kind == "discounted causal":
        from markovia.learning.control.reward_objectives import StepsObjective

        objective = StepsObjective(process, shown, 0.6, "causal", None, 0.8)
    rewards = rng.normal(size=(3, 2))
    slope = objective.loss(rewards)[1]
    numeric = approx_fprime(rewards.ravel(), lambda r: objective.loss(r.reshape(3, 2))[0], 1e-6).reshape(3, 2)
    may = np.ones((3, 2), dtype=bool) if process.allowed is None else process.allowed
    assert slope[may] == pytest.approx(numeric[may], abs=2e-5)
    assert (slope[~may] == 0).all()


@pytest.mark.parametrize("model", ["causal", "trajectory"])
def test_the_objective_is_concave_and_converged_means_that_features_agree(model):
    rng = np.random.default_rng(3)
    process = random_process(rng, 4, 3)
    features = rng.normal(size=(4, 3, 3))
    walks = walks_of(process, rng, 60, 5)
    found = inverse(process, walks, features, model=model)
    assert found.converged
    assert found.expected == pytest.approx(found.observed, abs=1e-5)
    objective = reward_objective(process, Demonstrations.read(walks, process), model, None, None, 1.0)
    for _ in range(5):
        a, b = rng.normal(size=(2, 3))
        ends = [objective.loss(features @ w)[0] for w in (a, b)]
        assert objective.loss(features @ (0.5 * (a + b)))[0] <= 0.5 * sum(ends) + 1e-12
        assert objective.loss(features @ a)[0] >= objective.loss(found.rewards)[0] - 1e-12


def test_both_models_agree_where_moves_are_certain_and_differ_where_they_are_not():
    rng = np.random.default_rng(5)
    for certain in (True, False):
        process = random_process(rng, 4, 2, certain=certain)
        features = rng.normal(size=(4, 2, 2))
        walks = walks_of(process, rng, 40, 4)
        causal, whole = (inverse(process, walks, features, model=m).weights for m in ("causal", "trajectory"))
        assert (np.abs(causal - whole).max() < 1e-4) == certain


@pytest.mark.parametrize("kind", ["steps", "endless"])
def test_weights_of_a_soft_demonstrator_come_back_within_their_errors(kind):
    rng = np.random.default_rng(11)
    process = random_process(rng, 4, 3)
    features = rng.normal(size=(4, 3, 2))
    true = np.array([1.0, -0.7])
    if kind == "steps":
        settings_ = {}
        policy = soft_pass(process, features @ true, 6, 1.0).policies[::-1]
    else:
        settings_ = {"discount": 0.8}
        q = np.zeros((4, 3))
        for _ in range(300):
            v = SoftOperator(1.0, entropy=True).value(q)
            q = features @ true + 0.8 * (process.transitions @ v).reshape(3, 4).T
        policy = np.repeat(SoftOperator(1.0, entropy=True).policy(q)[None], 6, axis=0)
    found = inverse(process, walks_of(process, rng, 600, 6, policy), features, **settings_)
    assert found.converged
    assert found.flat == 0
    assert (np.abs(found.weights - true) < 4 * found.standard_errors).all()
    assert (found.standard_errors < 0.2).all()


@pytest.mark.slow
def test_standard_errors_are_the_spread_of_weights_over_many_samples():
    rng = np.random.default_rng(2)
    process = random_process(rng, 3, 2)
    features = rng.normal(size=(3, 2, 1))
    policy = soft_pass(process, features @ np.array([0.8]), 4, 1.0).policies[::-1]
    found = [inverse(process, walks_of(process, rng, 80, 4, policy), features) for _ in range(60)]
    spread = np.std([f.weights[0] for f in found])
    assert np.mean([f.standard_errors[0] for f in found]) == pytest.approx(spread, rel=0.3)


def test_rewards_that_differ_by_a_potential_explain_as_well_and_the_open_direction_is_counted():
    rng = np.random.default_rng(4)
    process = random_process(rng, 3, 2)
    walks = walks_of(process, rng, 50, 6)
    h, gamma = rng.normal(size=3), 0.9
    shaping = h[:, None] - gamma * (process.transitions @ h).reshape(2, 3).T
    features = np.stack([rng.normal(size=(3, 2)), shaping], axis=-1)
    found = inverse(process, walks, features, discount=gamma, l2=1e-6)
    assert found.flat == 1
    assert np.isnan(found.standard_errors).all()
    objective = reward_objective(process, Demonstrations.read(walks, process), "causal", None, gamma, 1.0)
    assert objective.loss(found.rewards + 3.0 * shaping)[0] == pytest.approx(
        objective.loss(found.rewards)[0], abs=1e-8
    )


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_other_units_of_features_and_temperature_give_the_same_policy(unit):
    rng = np.random.default_rng(6)
    process = random_process(rng, 3, 2)
    walks, features = walks_of(process, rng, 30, 4), rng.normal(size=(3, 2, 2))
    plain, other = inverse(process, walks, features), inverse(process, walks, unit * features)
    assert unit * other.weights == pytest.approx(plain.weights, rel=1e-4)
    warm = inverse(process, walks, features, temperature=unit)
    assert warm.weights / unit == pytest.approx(plain.weights, rel=1e-4)
    assert warm.log_likelihood == pytest.approx(plain.log_likelihood)


def test_the_order_of_trajectories_and_names_change_nothing():
    rng = np.random.default_rng(7)
    process = random_process(rng, 3, 2)
    walks, features = walks_of(process, rng, 20, 4), rng.normal(size=(3, 2, 2))
    named = DecisionProcess(process.transitions, process.rewards, states=["a", "b", "c"], actions=["x", "y"])
    told = [
        ([("a", "b", "c")[s] for s in states], [("x", "y")[a] for a in actions]) for states, actions in walks
    ]
    first = inverse(process, walks, features).weights
    assert inverse(process, walks[::-1], features).weights == pytest.approx(first, rel=1e-9)
    by_name = {
        "u": lambda s, a: features["abc".index(s), "xy".index(a), 0],
        "v": features[:, :, 1],
    }
    assert inverse(named, told, by_name).weights == pytest.approx(first, rel=1e-9)
    pairs = [list(zip(states, actions, strict=False)) for states, actions in walks]
    assert inverse(process, pairs, features).weights == pytest.approx(first, rel=1e-9)
    columns = [np.concatenate([np.asarray(w[i][: len(w[1])]) for w in walks]) for i in (0, 1)]
    after = np.concatenate([w[0][1:] for w in walks])
    cut = np.concatenate([np.arange(len(w[1])) == len(w[1]) - 1 for w in walks])
    rows = Transitions(*columns, np.zeros(len(after)), after, np.zeros(len(after), dtype=bool), cut)
    assert inverse(process, rows, features).weights == pytest.approx(first, rel=1e-9)


def test_a_horizon_lets_trajectories_end_only_where_the_process_is_over():
    rng = np.random.default_rng(8)
    process = random_process(rng, 3, 2, terminal=True)
    walks = [w for w in walks_of(process, rng, 60, 4) if len(w[1]) == 4 or w[0][-1] == 2]
    found = inverse(process, walks, rng.normal(size=(3, 2, 1)), horizon=4)
    assert found.converged
    assert found.policy.shape == (4, 3, 2)
    with pytest.raises(InvalidArgument, match="does not end in a terminal state"):
        inverse(process, [([0, 1], [0])], rng.normal(size=(3, 2, 1)), horizon=4)


def test_expected_features_from_each_state_are_those_of_expected_visits():
    rng = np.random.default_rng(9)
    process, features = random_process(rng, 3, 2), rng.normal(size=(3, 2, 2))
    for lucky, discount in itertools.product((False, True), (1.0, 0.7)):
        if lucky and discount < 1:
            continue
        found = soft_pass(process, rng.normal(size=(3, 2)), 4, 1.0, lucky=lucky, discount=discount)
        for s in range(3):
            starts = np.zeros((4, 3))
            starts[-1, s] = 1.0
            assert expected_features(found, features)[4, s] == pytest.approx(
                np.tensordot(expected_visits(found, starts), features, 2)
            )


def test_one_state_one_action_and_constant_features():
    alone = DecisionProcess.from_tables(np.ones((1, 1, 1)), np.zeros((1, 1)))
    found = inverse(alone, [([0, 0], [0])], [[1.0]])
    assert (found.flat, found.weights.tolist(), found.converged) == (1, [0.0], True)
    process = random_process(np.random.default_rng(0), 3, 2)
    constant = inverse(process, walks_of(process, np.random.default_rng(1), 9, 3), np.ones((3, 1)))
    assert constant.flat == 1


def test_perfect_demonstrations_are_not_called_converged():
    process = DecisionProcess.from_tables([np.eye(2), np.eye(2)[::-1]], np.zeros((2, 2)))
    walks = [([0, 1, 1, 1], [1, 0, 0])] * 20
    with pytest.warns(ConvergenceWarning, match="perfect"):
        found = inverse(process, walks, [[0.0], [1.0]])
    assert not found.converged
    assert inverse(process, walks, [[0.0], [1.0]], l2=1.0).converged


def test_moves_luckier_than_any_policy_expects_are_not_called_converged():
    process = DecisionProcess.from_tables(
        [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]]], np.zeros((2, 2))
    )
    walks = [([0, 1], [1, 0])] * 3 + [
        ([0, 0], [0, 1])
    ]  # in 1 three times of four, where no policy expects more than half
    with pytest.warns(ConvergenceWarning, match="luckier"):
        assert not inverse(process, walks, [[0.0], [1.0]]).converged
    found = inverse(process, walks, [[0.0], [1.0]], l2=1.0)
    assert found.converged
    assert found.expected[0] < 0.5 < found.observed[0]


def test_networks_and_mdps_are_read():
    import markovia as mk

    moves, walks = (
        [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]]],
        [([0, 0, 1], [1, 0]), ([1, 0, 1], [0, 1])],
    )
    p = mk.DynamicBayesianNetwork()
    p.add("s", np.transpose(moves, (1, 0, 2)), states=2, parents=["s@-1", "move@-1"], initial=[0.5, 0.5])
    p.add("move", mk.Decision(2), parents=["s"])
    p.add("r", mk.Utility([[0.0, 1.0], [2.0, 0.0]]), parents=["s", "move"])
    features = np.arange(4.0).reshape(2, 2, 1)
    first, *others = (
        inverse(m, walks, features, l2=1.0).weights
        for m in (p, mk.MDP(moves, np.zeros((2, 2))), DecisionProcess.from_tables(moves, np.zeros((2, 2))))
    )
    assert all(w == pytest.approx(first) for w in others)
    with pytest.raises(InvalidArgument, match="is needed, not str"):
        inverse("p", walks, features)


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        ({"model": "both"}, "model="), ({"temperature": 0.0}, "temperature="), ({"discount": 1.0}, "discount="),
        ({"horizon": 0}, "horizon="), ({"l2": -1.0}, "l2="), ({"model": "trajectory", "discount": 0.9}, "no discount"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(settings_, words):
    process = random_process(np.random.default_rng(0), 3, 2)
    with pytest.raises(InvalidArgument, match=words):
        inverse(process, [([0], [1])], np.ones((3, 1)), **settings_)


@pytest.mark.parametrize(
    ("walks", "words"),
    [
        ([], "trajectories= is"), ("abc", "trajectories= is"), ([([0, 1, 2], [1])], "3 states and 1 actions"),
        ([([0, 9], [1])], "unknown state 9"), ([([0], [7])], "unknown action 7"), ([([1, 0], [0])], "probability zero"),
        ([([2], [0])], "terminal"), ([([1], [1])], "not allowed"),
    ],
)  # fmt: skip
def test_wrong_trajectories_are_refused(walks, words):
    moves = [[[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]]] * 2
    may = np.array([[True, True], [True, False], [True, True]])
    process = DecisionProcess.from_tables(moves, np.zeros((3, 2)), terminal=[2], allowed=may)
    with pytest.raises(InvalidArgument, match=words):
        inverse(process, walks, np.ones((3, 1)))


def test_wrong_features_are_refused():
    process = random_process(np.random.default_rng(0), 3, 2)
    for wrong in (
        np.ones((4, 1)),
        [[np.nan]] * 3,
        np.ones((3, 0)),
        np.ones(3),
        {},
        {"a": np.ones((3, 2, 2))},
    ):
        with pytest.raises(InvalidArgument, match="features="):
            inverse(process, [([0], [1])], wrong)


@pytest.mark.slow
@pytest.mark.parametrize("settings_", [{}, {"model": "trajectory"}, {"discount": 0.7}])
def test_a_linear_module_learns_what_weights_do(settings_):
    eqx = pytest.importorskip("equinox")
    jnp = pytest.importorskip("jax.numpy")

    class Line(eqx.Module):
        slope: object

        def __call__(self, x):
            return (self.slope * x).sum()

    rng = np.random.default_rng(1)
    process = random_process(rng, 4, 3, terminal=True, allowed=True)
    walks, features = walks_of(process, rng, 25, 4), rng.normal(size=(4, 3, 2))
    plain = inverse(process, walks, features, **settings_)
    assert plain.flat == 0
    found = inverse(process, walks, features, reward=Line(jnp.zeros(2)), **settings_)
    assert np.asarray(found.module.slope) == pytest.approx(plain.weights, abs=2e-3)
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-3)


@pytest.mark.slow
def test_a_second_process_finds_the_same_weights():
    code = (
        "import numpy as np\n"
        "from markovia.control.inverse_rewards import inverse\n"
        "from markovia.inference.decisions.processes.decision_process import DecisionProcess\n"
        "p = DecisionProcess.from_tables([np.eye(3), np.roll(np.eye(3), 1, 1)], np.zeros((3, 2)))\n"
        "print(inverse(p, [([0, 1, 1], [1, 0]), ([0, 0, 1], [0, 1])], np.eye(3)[:, :2]).weights.tolist())"
    )
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(code, {})
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert other == here.getvalue() != ""
