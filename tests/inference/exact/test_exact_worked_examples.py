"""The textbooks' worked examples of exact inference, by every exact engine.

The printed (or, where a figure was lost, recomputed) numbers are compared, and the tables of the text's own algorithms:
elimination, messages on a junction tree, forward and backward recursions, written out here with NumPy.
"""

import math
from itertools import pairwise, product

import numpy as np
import pytest

import markovia as mk
from exact_checks import every_exact_engine, not_by_listing
from markovia import Factor, examples, generators
from markovia.graphs import junction_tree


def pairs_model(scopes, seed, states=2):
    """A Markov network of binary (or larger) variables with a random positive table on every named pair."""
    rng = np.random.default_rng(seed)
    tables = {s: rng.random([states] * 2) + 0.1 for s in scopes}
    names = sorted(set("".join(scopes)))
    model = mk.MarkovNetwork(dict.fromkeys(names, states), [Factor(list(s), t) for s, t in tables.items()])
    return model, tables


def normalised(table):
    return table / table.sum()


# -- inventory of the course notes: chains, satisfiability, elimination -----------------------------------------


@every_exact_engine
def test_example_51_marginals_and_the_best_configuration_of_a_chain(engine):
    mn = examples.three_chain()
    assert math.exp(mn.log_partition(engine=engine)) == pytest.approx(120)
    assert mn.query("x1", engine=engine).values == pytest.approx([76 / 120, 44 / 120])
    pair = mn.query(["x1", "x2"], engine=engine)
    assert pair.values == pytest.approx(np.array([[60, 16], [12, 32]]) / 120)
    ends = mn.query(["x1", "x3"], engine=engine)
    assert ends.values == pytest.approx(np.array([[20, 56], [22, 22]]) / 120)
    ranked = mn.map(m=8, engine=engine)
    assert [round(120 * math.exp(e.log_prob)) for e in ranked] == [50, 20, 12, 10, 10, 10, 6, 2]
    assert ranked[0].to_dict() == {"x1": 0, "x2": 0, "x3": 1}
    assert ranked[1].to_dict() == {"x1": 1, "x2": 1, "x3": 0}
    best = mn.map(given={"x1": 1}, engine=engine)
    assert best.to_dict() == {"x2": 1, "x3": 0}
    assert math.exp(best.log_posterior) == pytest.approx(20 / 44)
    assert math.exp(mn.map(targets=["x1"], engine=engine).log_prob) == pytest.approx(76 / 120)


@every_exact_engine
@pytest.mark.parametrize("states", [2, 3])
def test_a_chain_by_pushing_sums_inwards(engine, states):
    mn, tables = pairs_model(["12", "23", "34", "45"], seed=1, states=states)
    belief = np.ones(states)
    for scope in ("12", "23", "34", "45"):
        belief = belief @ tables[scope]
    assert math.exp(mn.log_partition(engine=engine)) == pytest.approx(belief.sum())
    assert mn.query("5", engine=engine).values == pytest.approx(normalised(belief))


@every_exact_engine
@pytest.mark.parametrize("encoding", ["single", "chain"])
def test_example_53_ten_of_sixteen_assignments_satisfy_the_formula(engine, encoding):
    bn = generators.three_sat([(1, -2, -3), (2, 3, -4), (4, -1, -2)], encoding)
    assert bn.query("s", engine=engine).values == pytest.approx([0.375, 0.625])
    assert math.exp(bn.log_evidence(given={"s": 1}, engine=engine)) == pytest.approx(10 / 16)
    everything = {"x1": 1, "x2": 1, "x3": 1, "x4": 1}
    assert bn.query("s", given=everything, engine=engine)[1] == pytest.approx(1.0)
    models = bn.map(given={"s": 1}, m=16, engine=engine)
    assert len(models) == 10
    for found in models:
        x = [None, *(bool(found[f"x{i}"]) for i in range(1, 5))]
        assert x[1] or not x[2] or not x[3]
        assert x[2] or x[3] or not x[4]
        assert x[4] or not x[1] or not x[2]
        assert math.exp(found.log_posterior) == pytest.approx(0.1)


@every_exact_engine
def test_an_unsatisfiable_formula_is_impossible_evidence(engine):
    clauses = [(a, 2 * b, 3 * c) for a, b, c in product((-1, 1), repeat=3)]
    bn = generators.three_sat(clauses, "chain")
    assert bn.query("s", engine=engine)[1] == 0.0
    assert bn.log_evidence(given={"s": 1}, engine=engine) == -math.inf
    with pytest.raises(mk.errors.ImpossibleEvidence) as caught:
        bn.map(given={"x2": 1, "s": 1}, engine=engine)
    assert caught.value.evidence == {"s": 1}
    satisfiable = generators.three_sat(clauses[1:], "chain")
    assert satisfiable.query("s", engine=engine)[1] == pytest.approx(1 / 8)


@pytest.mark.slow
@not_by_listing
@pytest.mark.parametrize("seed", range(4))
def test_the_share_of_satisfying_assignments_is_counted(engine, seed):
    clauses = generators.random_clauses(8, 14, seed=seed)
    satisfied = sum(
        all(any(bits[abs(i) - 1] == (i > 0) for i in clause) for clause in clauses)
        for bits in product((False, True), repeat=8)
    )
    for encoding in ("single", "chain"):
        bn = generators.three_sat(clauses, encoding, n=8)
        assert 256 * bn.query("s", engine=engine)[1] == pytest.approx(satisfied, abs=1e-8)


@every_exact_engine
def test_example_54_the_messages_of_one_elimination_order(engine):
    mn = examples.cycle_with_tail()
    psi = {"".join(n[1:] for n in f.names): f.values for f in mn.factors}
    m1 = psi["12"].sum(axis=0)
    m2 = np.einsum("b,bd,bc->cd", m1, psi["24"], psi["23"])
    m3 = np.einsum("cd,ce->de", m2, psi["35"])
    m4 = np.einsum("de,de->e", m3, psi["45"])
    assert mn.query("x5", engine=engine).values == pytest.approx(normalised(m4))
    assert math.exp(mn.log_partition(engine=engine)) == pytest.approx(m4.sum())
    # the same with max for sum, and the choices traced back
    m1 = psi["12"].max(axis=0)
    m2 = (m1[:, None, None] * psi["24"][:, None, :] * psi["23"][:, :, None]).max(axis=0)
    m3 = (m2[:, :, None] * psi["35"][:, None, :]).max(axis=0)
    m4 = (m3 * psi["45"]).max(axis=0)
    best = mn.map(engine=engine)
    assert math.exp(best.log_prob) == pytest.approx(m4.max() / math.exp(mn.log_partition()))
    assert m4[best["x5"]] == pytest.approx(m4.max())


@every_exact_engine
def test_example_58_a_chordal_graph_is_eliminated_without_fill(engine):
    mn, tables = pairs_model(["12", "23", "24", "34", "35", "45"], seed=58)
    for order in ("53142", "53124"):
        perfect = mk.engines.VariableElimination(order=list(order))
        found = mn.query(order[-1], engine=perfect)
        assert found.info.details.width == 2
        assert found.allclose(mn.query(order[-1], engine=engine), atol=1e-12)
    whole = np.einsum("ab,bc,bd,cd,ce,de->abcde", *tables.values())
    assert mn.query("2", engine=engine).values == pytest.approx(normalised(whole.sum(axis=(0, 2, 3, 4))))


# -- junction trees ------------------------------------------------------------------------------------------------


@every_exact_engine
def test_example_61_a_triangle_with_a_tail_factorises_over_its_junction_tree(engine):
    mn, _ = pairs_model(["12", "13", "23", "34", "45"], seed=61)
    check_junction_tree_factorisation(mn, engine, {"123", "34", "45"}, {"3", "4"})


def check_junction_tree_factorisation(mn, engine, cliques, separators):
    """The joint is the product of the clique marginals over the product of the separator marginals."""
    tree = junction_tree(mn.graph)
    assert {"".join(sorted(c)) for c in tree.cliques} == cliques
    assert {"".join(sorted(s)) for s in tree.separators} == separators
    joint = mn.query(mn.variables, engine=engine).factor()
    ratio = Factor.scalar()
    for clique in tree.cliques:
        ratio = ratio * mn.query(list(clique), engine=engine).factor()
    for separator in tree.separators:
        ratio = ratio / mn.query(list(separator), engine=engine).factor()
    assert ratio.transpose(mn.variables).allclose(joint, atol=1e-12)


@every_exact_engine
def test_examples_64_and_69_messages_between_three_cliques(engine):
    mn, psi = pairs_model(["12", "23", "24", "35", "45"], seed=64)
    c12, c234 = psi["12"], np.einsum("bc,bd->bcd", psi["23"], psi["24"])
    c345 = np.einsum("ce,de->cde", psi["35"], psi["45"])
    # the printed order: 12 -> 234, 345 -> 234, 234 -> 345, 234 -> 12
    up_left = c12.sum(axis=0)
    up_right = c345.sum(axis=2)
    down_right = np.einsum("b,bcd->cd", up_left, c234)
    down_left = np.einsum("bcd,cd->b", c234, up_right)
    y1 = np.einsum("ab,b->a", c12, down_left)
    y5 = np.einsum("cd,cde->e", down_right, c345)
    middle = np.einsum("b,bcd,cd->bcd", up_left, c234, up_right)
    assert mn.query("1", engine=engine).values == pytest.approx(normalised(y1))
    assert mn.query("5", engine=engine).values == pytest.approx(normalised(y5))
    assert mn.query(["2", "3", "4"], engine=engine).values == pytest.approx(normalised(middle))
    assert y1.sum() == pytest.approx(y5.sum()) == pytest.approx(middle.sum())
    assert math.exp(mn.log_partition(engine=engine)) == pytest.approx(y1.sum())
    # a message is what eliminating the subtree behind it leaves: here without the factors of {3, 4, 5}
    part = mk.MarkovNetwork(dict.fromkeys("1234", 2), mn.factors[:3])
    assert part.query(["3", "4"], engine=engine).values == pytest.approx(normalised(down_right))
    # evidence reduces the potentials: y5 = 1
    reduced = np.einsum("bcd,cd->b", c234, c345[:, :, 1])
    given = mn.query("1", given={"5": 1}, engine=engine)
    assert given.values == pytest.approx(normalised(np.einsum("ab,b->a", c12, reduced)))
    # a pair in no clique together
    joint = np.einsum("ab,bcd,cde->ae", c12, c234, c345)
    assert mn.query(["5", "1"], engine=engine).values == pytest.approx(normalised(joint.T))


@every_exact_engine
def test_example_68_six_variables_on_three_cliques(engine):
    scopes = ["26", "56", "25", "13", "35", "14", "12", "45", "24"]
    mn, psi = pairs_model(scopes, seed=68)
    c1 = np.einsum("ac,ce->ace", psi["13"], psi["35"])
    c2 = np.einsum("be,bf,ef->bef", psi["25"], psi["26"], psi["56"])
    c3 = np.einsum("ad,ab,de,bd->abde", psi["14"], psi["12"], psi["45"], psi["24"])
    c3_all = np.einsum("abde,ae,be->abde", c3, c1.sum(axis=1), c2.sum(axis=2))
    assert mn.query(["1", "2", "4", "5"], engine=engine).values == pytest.approx(normalised(c3_all))
    into_c1 = np.einsum("abde,be->ae", c3, c2.sum(axis=2))
    c1_all = np.einsum("ace,ae->ace", c1, into_c1)
    assert mn.query(["1", "3", "5"], engine=engine).values == pytest.approx(normalised(c1_all))
    into_c2 = np.einsum("abde,ae->be", c3, c1.sum(axis=1))
    c2_all = np.einsum("bef,be->bef", c2, into_c2)
    assert mn.query(["2", "5", "6"], engine=engine).values == pytest.approx(normalised(c2_all))
    for table in (c1_all, c2_all, c3_all):
        assert mn.log_partition(engine=engine) == pytest.approx(math.log(table.sum()), abs=1e-12)
    # 3 and 6 meet in no clique
    pair = np.einsum("ace,abde,bef->cf", c1, c3, c2)
    assert mn.query(["3", "6"], engine=engine).values == pytest.approx(normalised(pair))


@every_exact_engine
def test_absorption_on_the_clique_tree_of_a_chain(engine):
    bn = mk.BayesianNetwork()
    bn.add("D", p=[0.3, 0.7])
    bn.add("C", parents=["D"], p=[[0.9, 0.1], [0.2, 0.8]])
    bn.add("B", parents=["C"], p=[[0.6, 0.4], [0.3, 0.7]])
    bn.add("A", parents=["B"], p=[[0.5, 0.5], [0.1, 0.9]])
    given = {"A": 0}
    assert math.exp(bn.log_evidence(given=given, engine=engine)) == pytest.approx(0.2692)
    d = bn.query("D", given=given, engine=engine)
    assert d.values == pytest.approx([0.3655275, 0.6344725], abs=5e-8)
    # Psi*(b, c) = Psi(b, c) phi*(b) / phi(b): the evidence moves only the change
    bc = bn.query(["B", "C"], engine=engine).values
    changed = bn.query(["A", "B"], engine=engine).values[0]
    star = bc * (changed / bc.sum(axis=1))[:, None]
    assert star.sum() == pytest.approx(0.2692)
    assert bn.query(["B", "C"], given=given, engine=engine).values == pytest.approx(star / star.sum())
    assert bn.query(["D", "B"], given=given, engine=engine).values.sum(axis=1) == pytest.approx(d.values)


@every_exact_engine
def test_observing_a_common_effect_couples_its_causes(engine):
    bn = mk.BayesianNetwork()
    bn.add("x", p=[0.6, 0.4])
    bn.add("z", p=[0.7, 0.3])
    bn.add("y", parents=["x", "z"], p=[[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.05, 0.95]]])
    assert bn.query(["x", "z"], engine=engine).values == pytest.approx(np.outer([0.6, 0.4], [0.7, 0.3]))
    joint = np.outer([0.6, 0.4], [0.7, 0.3]) * np.array([[0.1, 0.6], [0.7, 0.95]])
    seen = bn.query(["x", "z"], given={"y": 1}, engine=engine).values
    assert seen == pytest.approx(normalised(joint))
    assert abs(seen - np.outer(seen.sum(axis=1), seen.sum(axis=0))).max() > 0.05


# -- hidden Markov models and log-linear models --------------------------------------------------------------------


@every_exact_engine
def test_example_71_viterbi_and_smoothing(engine):
    bn = examples.three_step_hmm()
    seen = {"x1": 0, "x2": 0, "x3": 0}
    first, second = bn.map(given=seen, m=2, engine=engine)
    assert first.to_dict() == {"y1": 0, "y2": 0, "y3": 0}
    assert second.to_dict() == {"y1": 1, "y2": 1, "y3": 1}
    assert math.exp(first.log_prob) == pytest.approx(0.138915, abs=5e-13)
    assert math.exp(second.log_prob) == pytest.approx(0.06912, abs=5e-13)
    assert math.exp(first.log_posterior) == pytest.approx(0.4901297, abs=5e-8)
    assert math.exp(bn.log_evidence(given=seen, engine=engine)) == pytest.approx(0.283425, abs=5e-13)
    smoothed = bn.marginals(given=seen, engine=engine)
    published = {"y1": 0.5827468, "y2": 0.6390580, "y3": 0.6649907}
    assert {n: p[0] for n, p in smoothed.items()} == pytest.approx(published, abs=5e-8)


@every_exact_engine
def test_example_75_labels_of_a_conditional_random_field(engine):
    mn = examples.chain_crf()
    assert mn.log_partition(engine=engine) == pytest.approx(3.4979816, abs=5e-8)
    published = {"y1": 0.8728929, "y2": 0.9523017, "y3": 0.9145480}
    assert {n: p[1] for n, p in mn.marginals(engine=engine).items()} == pytest.approx(published, abs=5e-8)
    pair = mn.query(["y1", "y2"], engine=engine).values.ravel()
    assert pair == pytest.approx([0.0403305, 0.0867766, 0.0073677, 0.8655252], abs=5e-8)
    pair = mn.query(["y2", "y3"], engine=engine).values.ravel()
    assert pair == pytest.approx([0.0357861, 0.0119122, 0.0496659, 0.9026358], abs=5e-8)
    assert mn.map(engine=engine).to_dict() == {"y1": 1, "y2": 1, "y3": 1}


@every_exact_engine
def test_example_76_six_spins(engine):
    mn = examples.six_spins()
    assert mn.log_partition(engine=engine) == pytest.approx(13.5145042490, abs=5e-10)
    best = mn.map(engine=engine)
    assert list(best.values()) == [-1, 1, 1, 1, 1, 1]
    assert math.exp(best.log_prob) == pytest.approx(0.5977969, abs=5e-8)
    published = [0.0704556, 0.7356655, 0.9676177, 0.9687721, 0.9690957, 0.8690288]
    assert [p[1] for p in mn.marginals(engine=engine).values()] == pytest.approx(published, abs=5e-8)
    agree = sum(mn.query([f"y{j}", f"y{j + 1}"], engine=engine)[1, 1] for j in range(1, 6))
    assert agree == pytest.approx(3.5584155, abs=5e-8)
    ends = mn.query(["y1", "y3"], engine=engine).factor()
    assert ends.expectation(lambda a, b: -2 * a * b) == pytest.approx(1.8450674, abs=5e-8)
    far = mn.query(["y6", "y1"], engine=engine).values
    table = mn.joint().marginal(["y6", "y1"]).values
    assert far == pytest.approx(table, abs=1e-12)


@every_exact_engine
def test_the_ice_cream_diary_forwards_backwards_and_by_viterbi(engine):
    hmm = generators.hidden_markov_model(
        [0.8, 0.2], [[0.6, 0.4], [0.5, 0.5]], [[0.2, 0.4, 0.4], [0.5, 0.4, 0.1]], T=3,
        states=["hot", "cold"], symbols=[1, 2, 3],
    )  # fmt: skip
    seen = {"x0": 3, "x1": 1, "x2": 3}
    assert math.exp(hmm.log_evidence(given=seen, engine=engine)) == pytest.approx(0.028562, abs=5e-13)
    smoothed = hmm.marginals(given=seen, engine=engine)
    published = [0.936629, 0.396051, 0.822631]
    assert [smoothed[f"z{t}"]["hot"] for t in range(3)] == pytest.approx(published, abs=5e-7)
    best = hmm.map(given=seen, engine=engine)
    assert list(best.values()) == ["hot", "cold", "hot"]
    assert math.exp(best.log_prob) == pytest.approx(0.0128, abs=5e-13)
    # filtering: the forward variables, normalised
    alpha = {0: [0.32, 0.02], 1: [0.0404, 0.069], 2: [0.023496, 0.005066]}
    for t, row in alpha.items():
        prefix = {k: v for k, v in seen.items() if int(k[1:]) <= t}
        assert hmm.query(f"z{t}", given=prefix, engine=engine).values == pytest.approx(
            np.array(row) / sum(row)
        )
        assert math.exp(hmm.log_evidence(given=prefix, engine=engine)) == pytest.approx(sum(row))
    # transitions, as one step of Baum-Welch needs them
    pairs = [hmm.query([f"z{t}", f"z{t + 1}"], given=seen, engine=engine).values for t in (0, 1)]
    moved = sum(pairs) / sum(pairs).sum(axis=1, keepdims=True)
    assert moved.ravel() == pytest.approx([0.537201, 0.462799, 0.753410, 0.246590], abs=5e-7)


@not_by_listing
def test_viterbi_on_a_thousand_rolls_does_not_underflow(engine):
    n = 1000
    bn = examples.dishonest_casino(T=n)
    rolls = np.random.default_rng(8).integers(1, 7, size=n)
    rolls[300:420] = 6
    stay, emit = np.log([[0.95, 0.05], [0.05, 0.95]]), np.log([[1 / 6] * 6, [0.1] * 5 + [0.5]])
    score, back = np.log([0.5, 0.5]) + emit[:, rolls[0] - 1], []
    for roll in rolls[1:]:
        through = score[:, None] + stay
        back.append(through.argmax(axis=0))
        score = through.max(axis=0) + emit[:, roll - 1]
    path = [int(score.argmax())]
    for choice in reversed(back):
        path.append(int(choice[path[-1]]))
    found = bn.map(given={f"roll{t + 1}": int(r) for t, r in enumerate(rolls)}, engine=engine)
    assert found.log_prob == pytest.approx(score.max(), rel=1e-12)
    named = [["fair", "loaded"][code] for code in reversed(path)]
    assert [found[f"die{t + 1}"] for t in range(n)] == named
    assert set(named[310:410]) == {"loaded"}


# -- inventory of the lectures: rain, cycles, trees ----------------------------------------------------------------


@not_by_listing
def test_the_rain_chain_has_the_published_figures(engine):
    mn = examples.rain_chain()
    days = mn.variables
    log_z = mn.log_partition(engine=engine)
    assert log_z == pytest.approx(35.6924, abs=5e-5)
    marginals = mn.marginals(engine=engine)
    pairs = [mn.query([a, b], engine=engine) for a, b in pairwise(days)]
    dry = sum(p["dry"] for p in marginals.values())
    same = sum(p["dry", "dry"] + p["rain", "rain"] for p in pairs)
    assert dry == pytest.approx(16.4927, abs=5e-5)
    assert same == pytest.approx(19.1029, abs=5e-5)
    assert log_z - 0.16 * dry - 0.85 * same == pytest.approx(16.8162, abs=5e-5)
    # in spins, rain = +1: the sums of the spins and of the products of neighbours
    assert 28 - 2 * dry == pytest.approx(-4.9854, abs=5e-5)
    assert 2 * same - 27 == pytest.approx(11.2057, abs=1e-4)
    rain = 1 - dry / 28
    assert rain == pytest.approx(0.41098, abs=5e-6)
    assert -28 * (rain * math.log(rain) + (1 - rain) * math.log(1 - rain)) == pytest.approx(18.9619, abs=5e-5)
    assert marginals["day1"]["rain"] == pytest.approx(0.4338, abs=5e-5)
    assert marginals["day28"]["rain"] == pytest.approx(marginals["day1"]["rain"], abs=1e-12)
    assert marginals["day14"]["rain"] == pytest.approx(0.4079, abs=5e-5)
    assert mn.query("day15", given={"day14": "rain"}, engine=engine)["rain"] == pytest.approx(0.642, abs=5e-4)
    assert mn.query("day15", given={"day14": "dry"}, engine=engine)["rain"] == pytest.approx(0.247, abs=5e-4)


@not_by_listing
def test_rain_on_the_first_day_is_forgotten_within_a_week(engine):
    mn = examples.rain_chain()
    after = mn.marginals(given={"day1": "rain"}, engine=engine)
    published = {2: 0.642, 3: 0.500, 4: 0.444, 5: 0.422, 6: 0.414, 7: 0.410, 14: 0.408, 27: 0.418, 28: 0.434}
    for day, p in published.items():
        assert after[f"day{day}"]["rain"] == pytest.approx(p, abs=5e-4)
    n = 20_000
    rows = mn.sample(n, given={"day1": "rain"}, seed=4, engine=engine)
    assert (rows["day1"] == "rain").all()
    for day in published:
        p = after[f"day{day}"]["rain"]
        # five standard errors
        assert abs((rows[f"day{day}"] == "rain").mean() - p) < 5 * math.sqrt(p * (1 - p) / n)
    both = ((rows["day2"] == "rain") & (rows["day3"] == "rain")).mean()
    p = mn.query(["day2", "day3"], given={"day1": "rain"}, engine=engine)["rain", "rain"]
    assert abs(both - p) < 5 * math.sqrt(p * (1 - p) / n)


@every_exact_engine
def test_a_short_rain_chain_is_a_product_of_transfer_matrices(engine):
    days = 8
    mn = examples.rain_chain(days=days)
    unary = np.array([math.exp(0.16), 1.0])
    step = np.exp(0.85 * np.eye(2)) * unary
    row = unary
    for _ in range(days - 1):
        row = row @ step
    assert mn.log_partition(engine=engine) == pytest.approx(math.log(row.sum()), abs=1e-12)
    assert mn.query(f"day{days}", engine=engine).values == pytest.approx(normalised(row))
    # eight dry days weigh more than any other month
    best = mn.map(engine=engine)
    assert set(best.values()) == {"dry"}
    assert best.log_prob == pytest.approx(days * 0.16 + (days - 1) * 0.85 - math.log(row.sum()), abs=1e-12)


@every_exact_engine
@pytest.mark.parametrize("seed", range(3))
def test_the_partition_function_of_a_four_cycle_is_a_trace(engine, seed):
    mn, psi = pairs_model(["12", "23", "34", "14"], seed=seed, states=3)
    around = psi["12"] @ psi["23"] @ psi["34"] @ psi["14"].T
    assert math.exp(mn.log_partition(engine=engine)) == pytest.approx(np.trace(around))
    assert mn.query("1", engine=engine).values == pytest.approx(normalised(np.diag(around)))
    opened = psi["23"][0] @ psi["34"] * psi["14"][2]
    given = mn.query("4", given={"1": 2, "2": 0}, engine=engine)
    assert given.values == pytest.approx(normalised(opened))


@every_exact_engine
def test_a_markov_chain_follows_chapman_and_kolmogorov(engine):
    step = np.array([[0.75, 0.25], [0.35, 0.65]])
    bn = generators.markov_chain([0.63, 0.37], step, 9, states=["dry", "rain"])
    expected = np.array([0.63, 0.37])
    marginals = bn.marginals(engine=engine)
    for t in range(9):
        assert marginals[f"x{t}"].values == pytest.approx(expected)
        expected = expected @ step
    far = bn.query("x8", given={"x3": "rain"}, engine=engine)
    assert far.values == pytest.approx(np.linalg.matrix_power(step, 5)[1])
    both = bn.query("x4", given={"x1": "dry", "x7": "rain"}, engine=engine)
    cube = np.linalg.matrix_power(step, 3)
    assert both.values == pytest.approx(normalised(cube[0] * cube[:, 1]))


@every_exact_engine
def test_belief_propagation_on_a_tree_from_the_leaves_and_back(engine):
    rng = np.random.default_rng(3)
    parent = {"b": "a", "c": "a", "d": "b", "e": "b", "f": "c", "g": "c"}
    phi = {n: rng.random(3) + 0.1 for n in "abcdefg"}
    edge = {n: rng.random((3, 3)) + 0.1 for n in parent}
    mn = mk.MarkovNetwork(
        dict.fromkeys("abcdefg", 3),
        [*(Factor([n], p) for n, p in phi.items()), *(Factor([q, n], edge[n]) for n, q in parent.items())],
    )
    children = {n: [c for c, q in parent.items() if q == n] for n in "abcdefg"}
    up, down = {}, {"a": np.ones(3)}
    for n in "gfedcb":
        up[n] = edge[n] @ (phi[n] * math.prod(up[c] for c in children[n]))
    for n in "bcdefg":
        q = parent[n]
        others = math.prod(up[c] for c in children[q] if c != n)
        down[n] = (phi[q] * down[q] * others) @ edge[n]
    marginals = mn.marginals(engine=engine)
    for n in "abcdefg":
        belief = phi[n] * down[n] * math.prod(up[c] for c in children[n])
        assert marginals[n].values == pytest.approx(normalised(belief))
        assert mn.log_partition(engine=engine) == pytest.approx(math.log(belief.sum()), abs=1e-12)


@every_exact_engine
def test_the_sprinkler_by_sum_and_product_rules(engine):
    bn = examples.wet_grass()
    # the text rounds the first to 0.81
    assert bn.query("grass", given={"rain": "yes"}, engine=engine)["yes"] == pytest.approx(0.8019)
    assert bn.query("grass", engine=engine)["yes"] == pytest.approx(0.44838)
    assert bn.query("rain", given={"grass": "yes"}, engine=engine)["yes"] == pytest.approx(0.35769, abs=5e-6)


@every_exact_engine
def test_four_students_and_a_misconception(engine):
    mn = examples.misconception()
    # 7,201,840 is the total printed in figure 4.2 of the book the model is from
    assert math.exp(mn.log_partition(engine=engine)) == pytest.approx(7_201_840)
    first, second = mn.map(m=2, engine=engine)
    assert first.to_dict() == {"A": 0, "B": 1, "C": 1, "D": 0}
    assert math.exp(first.log_prob) == pytest.approx(5_000_000 / 7_201_840)
    assert math.exp(second.log_prob) == pytest.approx(1_000_000 / 7_201_840)
    ab, bc, cd, da = (f.values for f in mn.factors)
    pair = mn.query(["A", "B"], engine=engine).values
    assert pair == pytest.approx(ab * (bc @ cd @ da).T / 7_201_840)
