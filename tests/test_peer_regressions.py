"""What users of other libraries reported as wrong, fatal or puzzling, turned into tests of the behaviour here.

The comments name where it was reported: a library and an issue of its tracker, or "run" for a wrong answer
that was reproduced on a released version.
"""

import copy
import gc
import inspect
import math
import pickle
import subprocess
import sys
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia import generators
from markovia.local import NoisyOr
from markovia.runtime.keyword_advice import METHODS

VE = mk.engines.VariableElimination


def binary_chain(n, seed=0):
    rng = np.random.default_rng(seed)
    bn = mk.BayesianNetwork()
    bn.add("x0", p=rng.dirichlet([1, 1]))
    for i in range(1, n):
        bn.add(f"x{i}", parents=[f"x{i - 1}"], p=rng.dirichlet([1, 1], size=2))
    return bn


# -- wrong answers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "given"),
    [
        ("b1", {"b0": 1}),
        ("b1", {"a0": 0}),
        ("a1", {"b0": 1, "b1": 0}),
        ("b2", {"b0": 1}),
        ("a0", {"b2": 1}),
    ],
)
def test_a_dynamic_network_answers_as_its_enumeration(target, given):
    # pgmpy #1638, #1583, #1737 (run): two-slice query returned 0.4308 where the unrolled network says 0.2722
    bn = mk.BayesianNetwork()
    bn.add("a0", p=[0.6, 0.4])
    bn.add("b0", parents=["a0"], p=[[0.8, 0.2], [0.3, 0.7]])
    for t in (1, 2):
        bn.add(f"a{t}", parents=[f"a{t - 1}"], p=[[0.75, 0.25], [0.1, 0.9]])
        bn.add(
            f"b{t}",
            parents=[f"a{t}", f"b{t - 1}"],
            p=[[[0.9, 0.1], [0.45, 0.55]], [[0.35, 0.65], [0.05, 0.95]]],
        )
    values = np.einsum(
        "a,ab,ac,cbd,ce,edf->abcdef",
        *(bn[n].values for n in ("a0", "b0", "a1", "b1", "a2", "b2")),
    )
    axes = ["a0", "b0", "a1", "b1", "a2", "b2"]
    index = tuple(given.get(n, slice(None)) for n in axes)
    left = [n for n in axes if n not in given]
    kept = values[index].sum(axis=tuple(i for i, n in enumerate(left) if n != target))
    np.testing.assert_allclose(bn.query(target, given=given).values, kept / kept.sum(), atol=1e-12)


def two_slices():
    process = mk.DynamicBayesianNetwork()
    process.add("a", states=2, parents=["a@-1"], p=[[0.75, 0.25], [0.1, 0.9]], initial=[0.6, 0.4])
    later = [[[0.9, 0.1], [0.45, 0.55]], [[0.35, 0.65], [0.05, 0.95]]]
    process.add("b", states=2, parents=["a", "b@-1"], p=later, initial=[[0.8, 0.2], [0.3, 0.7]])
    return process


@pytest.mark.parametrize(
    "seen",
    [{"b": [1, None]}, {"a": [0, None]}, {"b": [1, 0]}, {"b": [1, None, None]}, {"b": [None, None, 1]}],
)
def test_a_dynamic_network_that_is_not_unrolled_answers_as_its_enumeration(seen):
    # pgmpy #1638 (run): evidence on an interface variable gave 0.4308 instead of 0.2722
    process = two_slices()
    ((name, column),) = seen.items()
    steps = len(column)
    given = {f"{name}@{t}": v for t, v in enumerate(column) if v is not None}
    joint = process.unroll(steps)
    smoothed = process.smooth(seen, targets=["a", "b"])
    for m in ("a", "b"):
        for t in range(steps):
            weights = np.zeros(2)
            for codes in np.ndindex((2,) * (2 * steps)):
                row = dict(zip(joint.variables, codes, strict=True))
                if all(row[n] == v for n, v in given.items()):
                    weights[row[f"{m}@{t}"]] += np.exp(joint.log_prob({n: [v] for n, v in row.items()})[0])
            np.testing.assert_allclose(smoothed[m][0][t], weights / weights.sum(), atol=1e-12)


def test_a_long_dynamic_series_is_filtered_at_once():
    # pgmpy #1679: inference takes a long time
    rng = np.random.default_rng(0)
    process = two_slices()
    found = process.filter({"b": rng.integers(0, 2, size=20_000)}, targets="a")
    assert found["a"][0].shape == (20_000, 2)
    np.testing.assert_allclose(found["a"][0].sum(axis=1), 1.0, atol=1e-9)


def test_likelihoods_are_evidence_in_a_dynamic_network_too():
    # pgmpy #1629, #2511: virtual evidence in dynamic networks is not supported, or raises
    process = two_slices()
    found = process.smooth({"b": [[0.2, 0.9], None, 1]}, targets=["a", "b"])
    network = process.unroll(3)
    for m, t in (("a", 0), ("b", 0), ("a", 2)):
        truth = network.query(f"{m}@{t}", given={"b@0": [0.2, 0.9], "b@2": 1}).values
        np.testing.assert_allclose(found[m][0][t], truth, atol=1e-12)


def test_a_fitted_dynamic_network_is_asked_at_once_by_its_own_states():
    # pgmpy #1737, #1744: inference after fit ends in a KeyError
    process = mk.DynamicBayesianNetwork(
        mk.BayesianNetwork("loan->score"), mk.BayesianNetwork("loan@-1->loan->score")
    )
    process.fit(
        [
            {"loan": ["yes", "no", "no"], "score": [650, 700, 650]},
            {"loan": ["no", "yes"], "score": [700, 650]},
        ]
    )
    assert process.filter({"score": [650, 700]})["loan"][0].shape == (2, 2)
    with pytest.raises(mk.errors.UnknownState, match="step 1 of sequence 0"):
        process.filter([{"score": [650, 7]}])


def test_loopy_networks_are_answered_exactly_and_say_so():
    # pyAgrum LBP (run), pomegranate #816: 0.5985 instead of 0.6471, without a warning
    answer = mk.examples.sprinkler().query("wet")
    assert answer["yes"] == pytest.approx(0.6471, abs=1e-12)
    assert answer.info.exact
    assert answer.info.engine in mk.engines.engine_names()
    # pomegranate #438: the sprinkler network of Wikipedia
    assert mk.examples.wet_grass().query("rain", given={"grass": "yes"})["yes"] == pytest.approx(
        0.3577, abs=5e-5
    )


def test_deterministic_chains_carry_certainty_to_the_end():
    # pomegranate #1108
    bn = mk.BayesianNetwork()
    bn.add("x0", p=[0.25, 0.75])
    for i in range(1, 40):
        bn.add(f"x{i}", parents=[f"x{i - 1}"], p=[[0.0, 1.0], [1.0, 0.0]])
    assert bn.query("x39")[0] == pytest.approx(0.75)
    assert bn.query("x39", given={"x0": 0})[1] == 1.0
    assert bn.query("x0", given={"x39": 1})[0] == 1.0


def test_exact_answers_sum_to_one_and_repeat():
    # bnlearn's cpquery: separate calls differ from run to run and do not sum to one
    bn = mk.examples.student()
    given = {"letter": "weak", "sat": "high"}
    first, second = bn.query("grade", given=given), bn.query("grade", given=given)
    assert first.to_dict() == second.to_dict()
    assert sum(first.to_dict().values()) == pytest.approx(1.0, abs=1e-12)


def test_counterfactuals_by_joint_abduction():
    # pyAgrum (run): updating each root on its own gives 0.5 where the truth is 1
    bn = mk.BayesianNetwork()
    bn.add("u1", p=[0.5, 0.5])
    bn.add("u2", p=[0.5, 0.5])
    bn.add("w", p=[0.5, 0.5])
    bn.add("z", lambda u1, u2: u1 ^ u2)
    bn.add("y", lambda z, w: z & w)
    bn.add("w'", p=[0.0, 1.0])  # the twin world shares u1 and u2 and sets w to 1
    bn.add("z'", lambda u1, u2: u1 ^ u2)
    bn.add("y'", p=lambda z, w: z & w, parents=["z'", "w'"])
    assert bn.query("y'", given={"w": 0, "z": 1})[1] == pytest.approx(1.0)


@pytest.mark.parametrize("states", [[1, 0], ["1", "0"], [2, 0, 1], [True, False], [3, 7], [-1, 1]])
def test_states_that_look_like_positions_are_still_states(states):
    # pgmpy #1877 (wrong samples), #1389, #1052: a state named 0 is not the state at position 0
    k = len(states)
    p = np.arange(1, k + 1) / (k * (k + 1) / 2)
    flip = np.roll(np.eye(k), 1, axis=1)
    bn = mk.BayesianNetwork()
    bn.add("x", states=states, p=p)
    bn.add("y", states=states, parents=["x"], p=flip)
    for i, state in enumerate(states):
        assert bn.query("x")[state] == pytest.approx(p[i])
        assert bn.query("y", given={"x": state})[states[(i + 1) % k]] == 1.0
        assert bn.map(given={"x": state})["y"] == states[(i + 1) % k]
        assert bn.log_prob([{"x": state}])[0] == pytest.approx(math.log(p[i]))
        assert bn.do({"x": state}).query("x")[state] == 1.0
    rows = bn.sample(4000, seed=0)
    for i, state in enumerate(states):
        share = float((rows["x"] == state).mean())
        assert share == pytest.approx(p[i], abs=4 * math.sqrt(p[i] * (1 - p[i]) / 4000))
        assert (rows.loc[rows["x"] == state, "y"] == states[(i + 1) % k]).all()
    proba = bn.predict_proba(rows[["x"]].head(20), "y")
    assert list(proba.columns) == states
    predicted = bn.predict(rows[["x"]].head(20), "y")
    assert [states[(states.index(x) + 1) % k] for x in rows["x"].head(20)] == list(predicted)


def test_a_number_is_no_substitute_for_a_named_state():
    # pgmpy #1389: positions and names were taken for each other
    bn = mk.examples.sprinkler()
    with pytest.raises(mk.errors.UnknownState, match="its states are 'no', 'yes'"):
        bn.query("rain", given={"wet": 1})
    with pytest.raises(mk.errors.UnknownState):
        bn.query("rain")[0]


def test_names_made_of_digits_work_and_numbers_as_names_are_refused():
    # pgmpy #3577: integer node names broke predict_probability
    bn = mk.BayesianNetwork()
    bn.add("0", p=[0.3, 0.7])
    bn.add("1", parents=["0"], p=[[0.9, 0.1], [0.2, 0.8]])
    proba = bn.predict_proba(pd.DataFrame({"0": [0, 1]}), "1")
    np.testing.assert_allclose(proba.to_numpy(), [[0.9, 0.1], [0.2, 0.8]])
    with pytest.raises(mk.errors.InvalidArgument, match="non-empty string"):
        bn.add(7, p=[0.5, 0.5])
    for ask in (bn.query, bn.states, lambda name: bn.query([name]), lambda name: bn.predict([], name)):
        with pytest.raises(mk.errors.UnknownVariable, match="unknown variable 0"):
            ask(0)


@pytest.mark.parametrize(
    "names",
    [["x", "x_1"], ["a b", "a|b"], ["value", "p"], ["state", "target"], ["given", "engine"], ["ä", "変数"]],
)
def test_any_string_is_a_name(names):
    # pgmpy #3577: names glued together with underscores collided
    one, two = names
    bn = mk.BayesianNetwork()
    bn.add(one, states=["1", "x_1"], p=[0.3, 0.7])
    bn.add(two, states=["1", "x_1"], parents=[one], p=[[0.9, 0.1], [0.2, 0.8]])
    assert bn.query(two)["1"] == pytest.approx(0.41)
    assert bn.query([one, two])["x_1", "1"] == pytest.approx(0.14)
    assert bn.predict_proba(bn.sample(5, seed=0), [one, two]).shape == (5, 4)
    assert bn.query(one).to_pandas().sum() == pytest.approx(1.0)


def test_missing_evidence_is_summed_out_not_taken_as_certain():
    # pomegranate #591 (probability 1.0), #1025 (masked rows rejected); hmmlearn #327 (NaN refused)
    bn = mk.examples.asia()
    rows = pd.DataFrame({"smoke": ["yes", None, np.nan], "xray": [None, "yes", None]})
    expected = [math.log(0.5), bn.log_evidence(given={"xray": "yes"}), 0.0]
    np.testing.assert_allclose(bn.log_prob(rows), expected, atol=1e-12)
    hmm = generators.hidden_markov_model([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.4, 0.6]], 4)
    gap = pd.DataFrame({"x0": [1], "x1": [np.nan], "x2": [np.nan], "x3": [0]})
    joint = hmm.joint().marginal(["x0", "x3"])
    assert math.exp(hmm.log_prob(gap)[0]) == pytest.approx(joint[1, 0])


def test_the_next_observation_of_a_sequence_can_be_forecast():
    # hmmlearn #415
    step, emission = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.7, 0.3], [0.4, 0.6]])
    hmm = generators.hidden_markov_model([0.5, 0.5], step, emission, 4)
    alpha = np.array([0.5, 0.5]) * emission[:, 0]
    for symbol in (1, 1):
        alpha = (alpha @ step) * emission[:, symbol]
    forecast = alpha / alpha.sum() @ step @ emission
    np.testing.assert_allclose(hmm.query("x3", given={"x0": 0, "x1": 1, "x2": 1}).values, forecast)


# -- zeros ---------------------------------------------------------------------------------------------------


def test_impossible_evidence_raises_and_names_the_set():
    # pgmpy (run): a table of NaN; pyAgrum: an unnamed conflict
    bn = mk.examples.asia()
    given = {"smoke": "yes", "tub": "yes", "xray": "yes", "either": "no"}
    for ask in (
        lambda: bn.query("lung", given=given),
        lambda: bn.query(["lung", "dysp"], given=given),
        lambda: bn.marginals(given=given),
        lambda: bn.map(given=given),
        lambda: bn.sample(3, given=given, seed=0),
        lambda: bn.query("lung", given=given, engine="enumeration"),
        lambda: bn.predict(pd.DataFrame([given]), "lung"),
    ):
        with pytest.raises(mk.errors.ImpossibleEvidence) as caught:
            ask()
        assert caught.value.evidence == {"tub": "yes", "either": "no"}
        assert "tub='yes', either='no'" in str(caught.value)
        assert isinstance(caught.value, ValueError)
    assert bn.log_evidence(given=given) == -math.inf


def test_no_answer_ever_holds_a_nan():
    # pgmpy #1519: 0/0 in message division
    bn = generators.random_bayesian_network(12, max_parents=3, deterministic=0.7, seed=4)
    rows = bn.sample(20, seed=0)
    for row in rows.to_dict("records"):
        given = {n: row[n] for n in list(row)[::3]}
        for posterior in bn.marginals(given=given).values():
            assert np.isfinite(posterior.values).all()
            assert posterior.values.sum() == pytest.approx(1.0)


def test_minus_infinity_potentials_in_max_product():
    # PGMax #2: prob == 0 broke MAP and the advice was to clip at -20
    inf = float("inf")
    names = [f"x{i}" for i in range(6)]
    unary = [
        [0.0, -inf, 1.0],
        [-inf, 0.0, 0.5],
        [2.0, 0.0, -inf],
        [0.0, 0.0, 0.0],
        [-inf, -inf, 0.0],
        [1.0, 0.0, 0.0],
    ]
    different = np.where(np.eye(3), -inf, 0.0)
    factors = [mk.Factor.from_log([n], u) for n, u in zip(names, unary, strict=True)]
    factors += [mk.Factor.from_log([a, b], different) for a, b in pairwise(names)]
    mn = mk.MarkovNetwork(dict.fromkeys(names, 3), factors)
    best, brute = mn.map(), mn.map(engine="enumeration")
    assert best.log_prob == pytest.approx(brute.log_prob)
    states = list(best.values())
    assert all(a != b for a, b in pairwise(states))
    assert states == [2, 1, 0, 1, 2, 0]
    assert mn.energy(best) == pytest.approx(-4.0)
    assert [e.log_prob for e in mn.map(m=4)] == pytest.approx(
        [e.log_prob for e in mn.map(m=4, engine="enumeration")]
    )


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_potentials_of_any_magnitude_give_the_same_distribution(scale):
    # PGMax #2: potentials had to be kept in a narrow range by hand
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    plain = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], table)] * 3)
    scaled = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], table * scale)] * 3)
    assert scaled.log_partition() == pytest.approx(plain.log_partition() + 3 * math.log(scale))
    assert scaled.query(["a", "b"]).allclose(plain.query(["a", "b"]))
    assert scaled.query("a", engine="enumeration").allclose(plain.query("a"))
    assert scaled.map().log_prob == pytest.approx(plain.map().log_prob)
    np.testing.assert_allclose(
        scaled.log_prob({"a": [0, 1], "b": [1, 1]}), plain.log_prob({"a": [0, 1], "b": [1, 1]})
    )
    assert scaled.joint().allclose(plain.joint())


def test_a_model_without_any_possible_configuration_says_so():
    mn = mk.MarkovNetwork(
        {"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[1, 0], [0, 0]]), mk.Factor(["a"], [0, 1])]
    )
    with pytest.raises(mk.errors.ImpossibleEvidence, match="every configuration weight zero"):
        mn.query("a")
    with pytest.raises(mk.errors.IncompleteModel, match="weight zero"):
        mn.validate()


def test_two_hundred_fifty_deterministic_nodes_with_evidence():
    # pgmpy #1558: fine until evidence was added, then killed by the operating system
    rng = np.random.default_rng(0)
    bn = mk.BayesianNetwork()
    gates = [lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b]
    for i in range(10):
        bn.add(f"n{i}", p=[0.5, 0.5])
    for i in range(10, 250):
        parents = [f"n{i - 1 - int(k)}" for k in rng.choice(8, size=2, replace=False)]
        bn.add(f"n{i}", gates[int(rng.integers(3))], parents=parents)
    row = bn.sample(1, seed=1).iloc[0]
    given = {f"n{i}": int(row[f"n{i}"]) for i in range(40, 250, 15)}
    answer = bn.query("n0", given=given)
    assert answer.info.exact
    # brute force over the ten coins, which decide everything
    coins = (np.arange(1024)[:, None] >> np.arange(10)) & 1
    weights = bn.log_prob(_propagated(bn, coins))
    table = _propagated(bn, coins)
    agrees = np.all([table[n] == s for n, s in given.items()], axis=0)
    assert agrees.any()
    assert np.isfinite(weights).all()
    expected = np.bincount(coins[agrees, 0], minlength=2) / agrees.sum()
    np.testing.assert_allclose(answer.values, expected, atol=1e-12)
    assert bn.log_evidence(given=given) == pytest.approx(math.log(agrees.sum() / 1024))


def _propagated(bn, coins):
    columns = {f"n{i}": coins[:, i] for i in range(coins.shape[1])}
    for name in bn.variables[coins.shape[1] :]:
        columns[name] = bn[name].values[tuple(columns[p] for p in bn.parents(name))].argmax(axis=-1)
    return pd.DataFrame(columns)


# -- size ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [36, 70, 200, 2000])
def test_the_best_explanation_of_a_long_chain_takes_small_tables(n):
    # pgmpy (run): MemoryError at 2^29 entries for a chain of 36
    bn = binary_chain(n)
    best = bn.map(given={"x0": 1, f"x{n - 1}": 0}, engine=VE(max_bytes=64 * n))
    assert len(best) == n - 2
    # Viterbi by hand
    score, back = np.array([-np.inf, math.log(bn["x0"].values[1])]), []
    for i in range(1, n):
        options = score[:, None] + np.log(bn[f"x{i}"].values)
        back.append(options.argmax(axis=0))
        score = options.max(axis=0)
    state, path = 0, []
    for pointer in reversed(back):
        state = int(pointer[state])
        path.append(state)
    assert list(best.values()) == path[::-1][1:]
    assert best.log_prob == pytest.approx(score[0])


def test_trees_and_stars_of_a_thousand_nodes_are_easy():
    # pgmpy #1571 (exponential memory on trees), #2160 (struggles over 1,000 variables)
    tree = generators.random_tree_network(1000, states=(2, 4), seed=0)
    given = {"x999": 0, "x500": 1}
    marginals = tree.marginals(given=given)
    assert len(marginals) == 998
    assert tree.query("x10", given=given).allclose(marginals["x10"])
    star = mk.BayesianNetwork()
    star.add("centre", p=[0.4, 0.6])
    for i in range(1000):
        star.add(f"leaf{i}", parents=["centre"], p=[[0.9, 0.1], [0.2, 0.8]])
    seen = {f"leaf{i}": int(i % 3 == 0) for i in range(1000)}
    ones = sum(seen.values())
    log_odds = math.log(0.6 / 0.4) + ones * math.log(0.8 / 0.1) + (1000 - ones) * math.log(0.2 / 0.9)
    assert star.query("centre", given=seen)[1] == pytest.approx(1 / (1 + math.exp(-log_odds)), abs=1e-12)


def test_a_query_that_cannot_fit_is_refused_with_an_estimate_before_anything_is_allocated():
    # pgmpy #1177, #1391, #1051 (MemoryError or killed, no estimate)
    mn = generators.ising_grid(24, 24, coupling=0.3)
    tracemalloc.start()
    with pytest.raises(mk.errors.TooLarge) as caught:
        mn.query("x0_0", engine=VE(max_bytes=2**20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24, "the tables alone would take 256 MiB"
    message = str(caught.value)
    assert "entries" in message
    assert "width" in message
    assert "the budget is 1 MiB" in message
    assert isinstance(caught.value, MemoryError)


def test_a_joint_answer_over_too_many_variables_is_refused_not_allocated():
    # pgmpy #1265: "number of dimensions must be within [0, 32]"
    bn = binary_chain(80)
    with pytest.raises(mk.errors.TooLarge):
        bn.query(bn.variables[:70])
    with pytest.raises(mk.errors.TooLarge, match="entries"):
        bn.query(bn.variables[:45], engine=VE(max_bytes=2**30))
    with pytest.raises(mk.errors.TooLarge, match="max_entries"):
        bn.joint()
    with pytest.raises(mk.errors.TooLarge, match="engine='variable-elimination'"):
        bn.query("x0", engine="enumeration")


def test_tables_with_more_than_32_axes():
    # pgmpy #1265
    axes = [mk.Variable(f"v{i}", 2 if i in (3, 39) else 1) for i in range(40)]
    f = mk.Factor(axes, np.arange(1.0, 5.0).reshape([len(v) for v in axes]))
    assert f.marginal("v3").values.tolist() == [3.0, 7.0]
    assert (f * mk.Factor([axes[39]], [1, 0])).total == 4.0
    assert f.max_out([v.name for v in axes if v.name != "v39"]).values.tolist() == [3.0, 4.0]
    wide = mk.BayesianNetwork()
    for i in range(40):
        wide.add(f"cause{i}", states=["present"], p=[1.0])
    wide.add("effect", parents=[f"cause{i}" for i in range(40)], p=np.full([1] * 40 + [2], 0.5))
    assert wide.query("effect")[1] == pytest.approx(0.5)
    with pytest.raises(mk.errors.TooLarge, match="64"):
        mk.Factor([f"v{i}" for i in range(65)], np.ones(1))


def test_many_parents_without_a_structured_form_are_refused_with_the_cure():
    # pgmpy #1177: "keep the in-degree low"; here the message names the structured form
    bn = mk.BayesianNetwork()
    for i in range(40):
        bn.add(f"d{i}", p=[0.9, 0.1])
    with pytest.raises(mk.errors.TooLarge, match="NoisyOr"):
        bn.add("f", p="uniform", parents=[f"d{i}" for i in range(40)])
    assert "f" not in bn
    bn.add("f", NoisyOr({f"d{i}": 0.5 for i in range(40)}, leak=0.01), states=["no", "yes"])
    rows = bn.sample(2000, seed=0)
    expected = 1 - 0.99 * (1 - 0.1 * 0.5) ** 40
    share = float((rows["f"] == "yes").mean())
    assert share == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 2000))


def test_barren_and_separated_parts_do_not_cost_anything():
    # pgmpy #1558, #1051: a query on a corner of a large network paid for all of it
    hard = generators.random_bayesian_network(60, max_parents=8, edge_probability=0.4, seed=0)
    answer = hard.query("x3", engine=VE(max_bytes=2**16))
    assert answer.info.details.width <= 4


# -- building ------------------------------------------------------------------------------------------------


def test_a_bad_table_is_refused_at_once_with_its_row():
    # pgmpy (run): accepted, and only check_model noticed
    bn = mk.BayesianNetwork()
    bn.add("a", states=["low", "high"], p=[0.5, 0.5])
    with pytest.raises(mk.errors.InvalidTable, match=r"row of 'z' sums to 1\.1, off by \+0\.1"):
        bn.add("z", p=[0.5, 0.6])
    with pytest.raises(mk.errors.InvalidTable, match=r"row of 'z' for a='high' sums to 0\.9"):
        bn.add("z", parents=["a"], p=[[0.5, 0.5], [0.3, 0.6]])
    with pytest.raises(mk.errors.InvalidTable, match="not negative"):
        bn.add("z", p=[-0.1, 1.1])
    with pytest.raises(mk.errors.InvalidTable, match="finite"):
        bn.add("z", p=[float("nan"), 1.0])
    assert bn.variables == ["a"]


def test_a_transposed_table_is_recognised():
    # the orientation trap: pgmpy and bnlearn put the child first
    bn = mk.BayesianNetwork()
    bn.add("a", states=3, p=[0.2, 0.3, 0.5])
    with pytest.raises(mk.errors.InvalidTable, match="looks transposed"):
        bn.add("b", states=2, parents=["a"], p=[[0.9, 0.2, 0.4], [0.1, 0.8, 0.6]])


def test_a_cycle_is_reported_as_a_cycle():
    # pgmpy (run): "NetworkXError: Input is not a valid edge list"
    with pytest.raises(mk.errors.CycleError, match="cycle") as caught:
        mk.BayesianNetwork([("a", "b"), ("b", "c"), ("c", "a")])
    assert set(caught.value.cycle) == {"a", "b", "c"}
    bn = mk.examples.sprinkler()
    with pytest.raises(mk.errors.CycleError, match="cloudy") as caught:
        bn.add_edge("wet", "cloudy")
    assert caught.value.cycle[0] == caught.value.cycle[-1]
    assert bn.allclose(mk.examples.sprinkler()), "a failed edit leaves the network as it was"


def test_a_temporary_network_does_not_take_its_tables_along():
    # pyAgrum (run): another network's table, or a crash
    table = mk.BayesianNetwork("A->B", tables="random", seed=0)["B"]
    kept = table.values.copy()
    answer = mk.examples.asia().query("lung")
    joint = mk.examples.student().joint()
    total = joint.total
    gc.collect()
    others = [mk.BayesianNetwork("C->D[5]<-E", tables="random", seed=i) for i in range(50)]
    np.testing.assert_array_equal(table.values, kept)
    assert table.names == ("A", "B")
    assert answer["yes"] == pytest.approx(0.055)
    assert joint.total == total
    assert len(others) == 50


def test_tables_cannot_be_changed_behind_the_models_back():
    bn = mk.examples.sprinkler()
    with pytest.raises(ValueError, match="read-only"):
        bn["rain"].values[0, 0] = 0.0
    source = np.array([0.5, 0.5])
    bn.add("coin", p=source)
    source[:] = [1.0, 0.0]
    assert bn.query("coin")[0] == 0.5
    potentials = np.array([1.0, 3.0])
    mn = mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], potentials)])
    potentials[:] = 1.0
    assert mn.query("a")[1] == pytest.approx(0.75)


def test_models_and_answers_can_be_pickled_and_copied():
    # asked of pyAgrum until 1.16
    bn = mk.examples.asia()
    mn = mk.examples.misconception()
    qmr = generators.qmr(5, 3, causes=2, seed=0)
    answer = bn.query("lung", given={"xray": "yes"})
    best = bn.map(given={"xray": "yes"})
    for clone in (lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy):
        assert clone(bn).query("lung", given={"xray": "yes"}).allclose(answer)
        assert clone(mn).log_partition() == pytest.approx(mn.log_partition())
        assert clone(qmr).allclose(qmr)
        assert clone(answer).allclose(answer)
        assert clone(best).to_dict() == best.to_dict()
        assert clone(bn["lung"]).allclose(bn["lung"])
        assert clone(mn.factors[0]).allclose(mn.factors[0])


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda m: m.copy()])
def test_editing_a_copy_leaves_the_original_alone(clone):
    bn, mn = mk.examples.asia(), mk.examples.misconception()
    twin, other = clone(bn), clone(mn)
    twin.add("new", p=[0.5, 0.5])
    twin.rename("lung", "lungs")
    twin.properties["author"] = "someone"
    other.add_factor(mk.Factor(["A"], [1, 0]))
    assert bn.allclose(mk.examples.asia())
    assert bn.properties == {}
    assert mn.allclose(mk.examples.misconception())


def test_what_is_no_structure_or_factor_is_explained():
    with pytest.raises(mk.errors.InvalidArgument, match=r"a structure is .* not 5"):
        mk.BayesianNetwork(5)
    with pytest.raises(mk.errors.InvalidArgument, match=r"a factor is a Factor\(names, values\), not tuple"):
        mk.MarkovNetwork({"a": 2}, [("a", [1, 2])])


def test_random_networks_draw_sizes_from_the_whole_range():
    # pyAgrum 1.7.1: the domain size of randomBN was off by one
    bn = generators.random_bayesian_network(200, states=(2, 4), seed=0)
    assert {len(bn.states(v)) for v in bn.variables} == {2, 3, 4}


# -- words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "right"),
    [
        (lambda bn: bn.query("rain", evidence={"wet": "yes"}), "given="),
        (lambda bn: bn.query("rain", evs={"wet": "yes"}), "given="),
        (lambda bn: bn.query("rain", observed={"wet": "yes"}), "given="),
        (lambda bn: bn.query(variables=["rain"]), "targets="),
        (lambda bn: bn.query(target="rain"), "targets="),
        (lambda bn: bn.query("rain", method="ve"), "engine="),
        (lambda bn: bn.map(evidence={"wet": "yes"}), "given="),
        (lambda bn: bn.map(variables=["rain"]), "targets="),
        (lambda bn: bn.marginals(evidence={}), "given="),
        (lambda bn: bn.log_evidence(evidence={}), "given="),
        (lambda bn: bn.sample(n_samples=5), "n="),
        (lambda bn: bn.sample(size=5), "n="),
        (lambda bn: bn.sample(5, random_state=0), "seed="),
        (lambda bn: bn.predict_proba(frame=[], variables=["rain"]), "target="),
        (lambda bn: bn.predict(X=[], target="rain"), "frame="),
        (lambda bn: bn.independent("rain", "wet", observed=["cloudy"]), "given="),
        (lambda bn: bn.add("new", values=[0.5, 0.5]), "p="),
        (lambda bn: bn.add("new", cardinality=3), "states="),
        (lambda bn: bn.add("new", p=[0.5, 0.5], evidence=["rain"]), "parents="),
        (lambda bn: bn.query("rain", givn={}), "given"),
    ],
)
def test_words_of_other_libraries_are_answered_with_ours(call, right):
    # erdogant/bnlearn #58: a misspelt keyword was a bare TypeError
    with pytest.raises(mk.errors.UnknownArgument, match=right) as caught:
        call(mk.examples.sprinkler())
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("word", sorted(METHODS))
def test_methods_of_other_libraries_are_answered_with_ours(word):
    # pgmpy #1985, #1998 and pyAgrum's renames between major versions
    with pytest.raises(AttributeError, match="here it is"):
        getattr(mk.examples.sprinkler(), word)
    with pytest.raises(AttributeError, match="did you mean 'query'"):
        mk.examples.sprinkler().qury  # noqa: B018


def test_advice_names_only_things_that_exist():
    for advice in METHODS.values():
        name = advice.split()[0]
        owners = (mk.BayesianNetwork, mk.MarkovNetwork)
        assert "[" in name or any(hasattr(owner, name) for owner in owners), advice


def test_unknown_names_come_with_the_nearest_match():
    # pyAgrum: "Object not found: No element with the key <XX>"
    bn = mk.examples.asia()
    for ask in (
        lambda: bn.query("lungs"),
        lambda: bn.query("tub", given={"lungs": "yes"}),
        lambda: bn.states("lungs"),
        lambda: bn["lungs"],
        lambda: bn.independent("lungs", "tub"),
        lambda: bn.do(lungs="yes"),
        lambda: bn.markov_blanket("lungs"),
        lambda: bn.sample(1, given={"lungs": "yes"}),
        lambda: bn.log_prob(pd.DataFrame({"lungs": ["yes"]})),
        lambda: bn.predict(pd.DataFrame({"lungs": ["yes"]}), "tub"),
    ):
        with pytest.raises(mk.errors.UnknownVariable, match="did you mean 'lung'") as caught:
            ask()
        assert isinstance(caught.value, KeyError)
    with pytest.raises(mk.errors.UnknownState, match="did you mean 'yes'"):
        bn.query("tub", given={"lung": "Yes"})
    with pytest.raises(mk.errors.UnknownState, match="'maybe'"):
        bn.log_prob([{"lung": "maybe"}])
    with pytest.raises(mk.errors.UnknownEngine, match="variable-elimination"):
        bn.query("tub", engine="variable_elimination")


def test_evidence_of_a_wrong_form_is_explained():
    # PGMax #4 and vicarious #119: how evidence is written was unclear
    bn = mk.examples.asia()
    with pytest.raises(mk.errors.InvalidEvidence, match="mapping"):
        bn.query("lung", given=["xray"])
    with pytest.raises(mk.errors.InvalidEvidence, match="2 likelihoods"):
        bn.query("lung", given={"xray": [0.1, 0.2, 0.7]})
    assert bn.query("lung", given={"xray": None})["yes"] == bn.query("lung")["yes"]  # missing, as in rows
    with pytest.raises(mk.errors.InvalidEvidence, match="leaves out 'no'"):
        bn.query("lung", given={"xray": {"yes": 0.5}})
    soft = bn.query("lung", given={"xray": {"yes": 0.9, "no": 0.1}})["yes"]
    hard = [bn.query(["lung", "xray"])["yes", s] for s in ("yes", "no")]
    mass = [bn.query("xray")[s] for s in ("yes", "no")]
    assert soft == pytest.approx((0.9 * hard[0] + 0.1 * hard[1]) / (0.9 * mass[0] + 0.1 * mass[1]))


def test_quick_network_texts_of_other_libraries_are_understood():
    fast = mk.BayesianNetwork("A->B{no|yes}<-C[3]")  # pyAgrum's fastBN
    assert fast.states("B") == ["no", "yes"]
    assert fast.states("C") == [0, 1, 2]
    model = mk.BayesianNetwork("[A][C][B|A:C]")  # bnlearn's model strings
    assert set(model.edges) == set(fast.edges) == {("A", "B"), ("C", "B")}


# -- frames --------------------------------------------------------------------------------------------------


def test_prediction_with_missing_cells_and_missing_columns():
    # bnlearn 5.1/5.2 (failed or lost probabilities), erdogant/bnlearn #37, pgmpy #2445
    bn = mk.examples.asia()
    frame = pd.DataFrame(
        {"xray": ["yes", None, "no", np.nan], "smoke": ["yes", "yes", None, None]}, index=[10, 20, 30, 40]
    )
    proba = bn.predict_proba(frame, "lung")
    assert list(proba.index) == [10, 20, 30, 40]
    assert list(proba.columns) == ["yes", "no"]
    asked = [{"xray": "yes", "smoke": "yes"}, {"smoke": "yes"}, {"xray": "no"}, {}]
    for row, given in zip(proba["yes"], asked, strict=True):
        assert row == pytest.approx(bn.query("lung", given=given)["yes"])
    assert bn.predict(frame, "lung").index.tolist() == [10, 20, 30, 40]
    both = bn.predict_proba(frame, ["lung", "tub"])
    np.testing.assert_allclose(both["lung"].to_numpy(), proba.to_numpy())
    assert list(both.columns) == [("lung", "yes"), ("lung", "no"), ("tub", "yes"), ("tub", "no")]


def test_the_target_column_is_not_used_to_predict_itself():
    bn = mk.examples.asia()
    frame = bn.sample(30, seed=0)
    hidden = frame.drop(columns="lung")
    pd.testing.assert_frame_equal(bn.predict_proba(frame, "lung"), bn.predict_proba(hidden, "lung"))


def test_repeated_rows_are_answered_once():
    # pgmpy #511 (open since 2015), #1172, pomegranate #408 (a second a row)
    asked = []

    class Counting(VE):
        def marginals(self, problem, targets):
            asked.append(targets)
            return super().marginals(problem, targets)

    bn = mk.examples.asia()
    frame = bn.sample(20_000, seed=0).drop(columns="lung")
    proba = bn.predict_proba(frame, "lung", engine=Counting())
    assert len(asked) == len(frame.drop_duplicates()) < 130
    for i in (0, 777, 19_999):
        given = frame.iloc[i].to_dict()
        assert proba["yes"].iloc[i] == pytest.approx(bn.query("lung", given=given)["yes"])


def test_frames_of_integers_floats_and_categories_mean_the_same():
    bn = mk.BayesianNetwork()
    bn.add("x", states=[0, 1, 2], p=[0.2, 0.3, 0.5])
    bn.add("y", states=[0, 1], parents=["x"], p=[[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    columns = [
        pd.Series([0, 1, 2]),
        pd.Series([0.0, 1.0, 2.0]),
        pd.Series([0, 1, 2], dtype="Int64"),
        pd.Series([0, 1, 2], dtype="category"),
        pd.Series([0, 1, 2], dtype=object),
    ]
    for column in columns:
        np.testing.assert_allclose(bn.predict_proba(pd.DataFrame({"x": column}), "y")[1], [0.1, 0.5, 0.8])
    with_gap = pd.DataFrame({"x": pd.Series([0, None, 2], dtype="Int64")})
    np.testing.assert_allclose(bn.predict_proba(with_gap, "y")[1], [0.1, bn.query("y")[1], 0.8])


def test_a_frame_that_names_a_column_twice_is_refused():
    frame = pd.DataFrame([["yes", "no"]], columns=["smoke", "smoke"])
    for ask in (mk.examples.asia().log_prob, lambda rows: mk.examples.asia().predict(rows, "lung")):
        with pytest.raises(mk.errors.InvalidArgument, match="smoke"):
            ask(frame)


def test_frames_without_rows_or_columns():
    bn = mk.examples.asia()
    nothing, no_columns = pd.DataFrame({"xray": []}), pd.DataFrame(index=["r", "s"])
    assert bn.log_prob(nothing).shape == (0,)
    assert bn.predict_proba(nothing, "lung").shape == (0, 2)
    assert bn.log_prob(no_columns).tolist() == pytest.approx([0.0, 0.0], abs=1e-12)
    assert bn.predict_proba(no_columns, "lung")["yes"].tolist() == pytest.approx([0.055, 0.055])
    assert mk.BayesianNetwork().log_prob(no_columns).tolist() == pytest.approx([0.0, 0.0], abs=1e-12)
    assert bn.sample(0).shape == (0, 8)
    for count in (-1, 2.5, "3"):
        with pytest.raises(mk.errors.InvalidArgument, match="n="):
            bn.sample(count)


def test_an_unseen_state_in_a_frame_is_named():
    with pytest.raises(mk.errors.UnknownState, match="unknown state 'perhaps' for 'smoke'"):
        mk.examples.asia().predict(pd.DataFrame({"smoke": ["yes", "perhaps"]}), "lung")


def test_numeric_states_have_a_mean_and_others_say_why_not():
    bn = mk.examples.dishonest_casino(T=1)
    assert bn.query("roll1", given={"die1": "loaded"}).mean() == pytest.approx(4.5)
    with pytest.raises(mk.errors.InvalidArgument, match="not numbers"):
        bn.query("die1").mean()


# -- files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["bif", "xmlbif", "uai", "net", "xdsl", "dne", "dsc", "json", "bif.gz"])
@pytest.mark.parametrize("name", ["asia", "student", "earthquake"])
def test_a_model_gives_the_same_answers_after_any_format(name, suffix, tmp_path):
    # pgmpy #1712: different query results after writing one model to different formats
    bn = mk.examples.get(name)
    path = tmp_path / f"{name}.{suffix}"
    bn.save(path)
    back = mk.load(path)
    assert len(back) == len(bn)
    seen, asked = bn.variables[-1], bn.variables[:-1]
    # a UAI file keeps neither names nor states, only their order
    names = (
        dict(zip(bn.variables, back.variables, strict=True))
        if suffix == "uai"
        else {n: n for n in bn.variables}
    )
    for i, state in enumerate(bn.states(seen)):
        other = back.states(names[seen])[i]
        assert suffix == "uai" or other == state
        one = bn.marginals(given={seen: state})
        two = back.marginals(given={names[seen]: other})
        for target in asked:
            np.testing.assert_allclose(two[names[target]].values, one[target].values, atol=1e-9)


# -- importing -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_star_import_works_and_the_import_stays_light():
    # pgmpy (run): `from pgmpy.inference import *` raised; pyAgrum: optional packages were not optional
    code = inspect.cleandoc(
        """
        import sys
        import markovia
        heavy = {"pandas", "matplotlib", "networkx", "scipy", "IPython"} & set(sys.modules)
        assert not heavy, heavy
        from markovia import *
        assert BayesianNetwork and examples and load and MarkoviaError
        print(sorted(n for n in markovia.__all__ if n not in globals()))
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_listed_and_unknown_ones_fail_plainly():
    assert set(mk.__all__) <= set(dir(mk))
    with pytest.raises(AttributeError, match="no attribute 'BayesNet'"):
        mk.BayesNet  # noqa: B018
