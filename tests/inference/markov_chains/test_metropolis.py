"""Metropolis-Hastings: acceptance values of textbooks, right moments, user proposals."""

import numpy as np
import pytest

import markovia as mk
from chain_checks import assert_close, chi_square, loop
from markovia.engines import MetropolisHastings, metropolis_hastings
from markovia.inference.markov_chains.metropolis import acceptance


def test_acceptance_probabilities_of_a_worked_example():
    weight = np.log([2.0, 3.0, 2.0])
    assert acceptance(weight[0], weight[1]) == 1.0
    assert acceptance(weight[1], weight[2]) == pytest.approx(2 / 3)
    assert acceptance(0.0, -np.inf) == 0.0
    assert acceptance(0.0, 0.0, forward=np.log(0.5), backward=np.log(0.25)) == pytest.approx(0.5)


def test_flips_give_the_exact_marginals():
    info = assert_close(loop(), MetropolisHastings(draws=4000, seed=1))
    assert 0.2 < info.diagnostics.acceptance < 0.9
    assert_close(loop(), MetropolisHastings(draws=4000, seed=1, rao_blackwell=False))


def test_swaps_keep_how_often_each_state_occurs():
    rng = np.random.default_rng(0)
    names = list("abcdef")
    factors = [mk.Factor([n], rng.random(2) + 0.2) for n in names]
    factors += [mk.Factor([u, v], rng.random((2, 2)) + 0.2) for u, v in ("ab", "bc", "cd", "de", "ef")]
    model = mk.MarkovNetwork(dict.fromkeys(names, 2), factors)
    frame = model.sample(3000, seed=1, engine=MetropolisHastings(proposal="swap", chains=1, thin=4))
    counts = frame.to_numpy().sum(axis=1)
    assert (counts == counts[0]).all()
    joint = model.joint().values
    kept = np.indices(joint.shape).sum(axis=0) == counts[0]
    exact = np.where(kept, joint, 0.0)
    exact /= exact.sum()
    seen = np.zeros(joint.shape)
    np.add.at(seen, tuple(frame[n].to_numpy() for n in names), 1)
    assert abs(chi_square(seen.ravel(), exact.ravel())) < 5


def test_swaps_pass_through_forbidden_intermediate_states():
    # exactly one of three is on: a swap is possible although each single change is not
    values = np.zeros((2, 2, 2))
    values[1, 0, 0], values[0, 1, 0], values[0, 0, 1] = 1.0, 2.0, 3.0
    model = mk.MarkovNetwork(dict.fromkeys("abc", 2), [mk.Factor(["a", "b", "c"], values)])
    engine = MetropolisHastings(proposal="swap", draws=4000, seed=2, rao_blackwell=False)
    found = model.marginals(engine=engine)
    for name, exact in zip("abc", (1 / 6, 2 / 6, 3 / 6), strict=True):
        assert abs(found[name][1] - exact) < 5 * found[name].info.error


def test_a_symmetric_proposal_of_ones_own_gives_the_exact_marginals():
    model = loop()

    def flip(state, rng):
        name = str(rng.choice(list(state)))
        states = model.states(name)
        return {**state, name: states[rng.integers(len(states))]}

    found = model.marginals(engine=MetropolisHastings(proposal=flip, draws=1000, seed=1, chains=3))
    for name, exact in model.marginals().items():
        assert np.abs(found[name].values - exact.values).max() < 5 * found[name].info.error
    assert 0 < found["a"].info.diagnostics.acceptance < 1


def test_a_lopsided_proposal_needs_its_probabilities():
    model = mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [1.0, 1.0])])

    def lopsided(state, rng):
        new = int(rng.random() < 0.8)
        q = {0: np.log(0.2), 1: np.log(0.8)}
        return {"a": new}, q[new], q[state["a"]]

    settings = {"draws": 1500, "seed": 1, "rao_blackwell": False, "chains": 2}
    right = model.query("a", engine=MetropolisHastings(proposal=lopsided, **settings))
    assert abs(right[1] - 0.5) < 5 * right.info.error
    wrong = model.query(
        "a", engine=MetropolisHastings(proposal=lambda s, rng: lopsided(s, rng)[0], **settings)
    )
    assert wrong[1] == pytest.approx(0.8, abs=0.05)


def test_answers_depend_on_the_seed_and_not_on_threads():
    ask = [
        loop().query("a", engine=MetropolisHastings(draws=300, seed=s, threads=t)).values
        for s, t in ((1, 1), (1, 2), (2, 1))
    ]
    assert (ask[0] == ask[1]).all()
    assert (ask[0] != ask[2]).any()


def test_wrong_proposals_are_refused():
    with pytest.raises(mk.errors.InvalidArgument, match="proposal="):
        MetropolisHastings(proposal="jump")
    with pytest.raises(mk.errors.InvalidArgument, match="has to return a dict"):
        loop().query("a", engine=MetropolisHastings(proposal=lambda s, rng: {"a": 0}, draws=10))


def test_the_best_configuration_visited_is_found():
    found = loop().map(engine=MetropolisHastings(draws=500, seed=0))
    assert found.to_dict() == loop().map().to_dict()


# -- any state ---------------------------------------------------------------------------------------------------


def test_a_walk_on_three_states_has_the_textbook_distribution():
    weights = np.log([2.0, 3.0, 2.0])
    walk = metropolis_hastings(lambda s: weights[s], lambda s, rng: int(rng.integers(3)), 0, 20_000, seed=1)
    share = np.bincount(walk.states, minlength=3) / 20_000
    assert np.abs(share - np.array([2, 3, 2]) / 7).max() < 0.02
    # acceptance: 1 except 2/3 for the two moves out of the middle, chosen with probability 2/3 there
    assert walk.acceptance == pytest.approx(1 - 3 / 7 * 2 / 3 * 1 / 3, abs=0.01)


def test_a_walk_on_the_line_has_the_moments_of_the_normal_distribution():
    walk = metropolis_hastings(
        lambda x: -x * x / 2, lambda x, rng: x + 2.4 * rng.normal(), 3.0, 20_000, seed=2
    )
    x = np.array(walk.states[500:])
    assert abs(x.mean()) < 0.08
    assert abs(x.var() - 1) < 0.1
    assert 0.38 < walk.acceptance < 0.52  # about 0.45 is best for one dimension
    assert len(walk.log_densities) == 20_000


def test_wide_proposals_are_rejected_more_often_than_narrow_ones():
    rates = [
        metropolis_hastings(
            lambda x: -x * x / 2, lambda x, rng, w=w: x + w * rng.normal(), 0.0, 3000, seed=3
        ).acceptance
        for w in (0.1, 1.0, 10.0)
    ]
    assert rates[0] > 0.9
    assert rates[0] > rates[1] > rates[2]


def test_a_walk_cannot_start_where_the_density_is_zero():
    with pytest.raises(mk.errors.InvalidArgument, match="cannot start"):
        metropolis_hastings(lambda x: -np.inf, lambda x, rng: x, 0.0, 10)


def test_the_best_state_is_remembered_though_a_function_proposed_it_in_the_burn_in_only():
    names = list("abcd")
    alone = [mk.Factor([n], [0.9, 0.1]) for n in names]
    pairs = [mk.Factor(list(p), [[1.0, 0.1], [0.1, 30.0]]) for p in ("ab", "bc", "cd")]
    model = mk.MarkovNetwork(dict.fromkeys(names, 2), alone + pairs)
    starts, ways = [], iter([1])

    def once_to_the_top(state, rng):
        starts.append(state)
        return dict.fromkeys(names, next(ways, 0)), 0.0, 100.0  # so likely to come back that it is accepted

    engine = MetropolisHastings(proposal=once_to_the_top, burn_in=4, draws=4, chains=1, seed=0)
    assert dict(model.map(engine=engine)) == dict.fromkeys(names, 1)
    assert starts[0] == dict.fromkeys(names, 0)  # the best state was not the first one


# -- variables that zeros tie to each other ------------------------------------------------------------------------


def test_a_gate_and_its_inputs_change_together_whatever_the_seed():
    asia = mk.examples.asia()
    truth = asia.query("lung", given={"xray": "yes"})["yes"]
    assert truth == pytest.approx(0.4887, abs=1e-4)
    for seed in range(5):
        found = asia.query("lung", given={"xray": "yes"}, engine=MetropolisHastings(seed=seed))
        assert found["yes"] == pytest.approx(truth, abs=0.025)
        assert abs(found["yes"] - truth) < 4 * found.info.error < 0.03
        assert found.info.converged


def parity(n):
    network = mk.BayesianNetwork()
    for i in range(n):
        network.add(f"x{i}", [0.3, 0.7], states=2)
    odd = np.indices((2,) * n).sum(axis=0) % 2
    network.add(
        "p", np.stack([1 - odd, odd], axis=-1).astype(float), states=2, parents=[f"x{i}" for i in range(n)]
    )
    return network


def test_block_moves_draw_from_the_joint_distribution_of_what_is_tied():
    network = parity(4)
    frame = network.sample(4000, given={"p": 1}, seed=0, engine=MetropolisHastings(chains=1, thin=6))
    names = [f"x{i}" for i in range(4)]
    seen = np.zeros((2,) * 4)
    np.add.at(seen, tuple(frame[n].to_numpy() for n in names), 1)
    exact = network.query(names, given={"p": 1}).factor().values
    assert abs(chi_square(seen.ravel(), exact.ravel())) < 5


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_what_is_too_large_to_change_together_is_not_called_converged():
    for seed in range(3):
        found = parity(12).marginals(given={"p": 1}, engine=MetropolisHastings(draws=300, seed=seed))
        assert not any(p.info.converged for p in found.values())
