"""Every exact engine on every question, against an outer product of plain arrays.

The reference, `log_weights` in `model_strategies.py`, is computed in logs from the arrays the models were made of.
"""

from dataclasses import replace
from itertools import pairwise
from math import log

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from exact_checks import (
    EXACT,
    LONG,
    check_best,
    check_impossible,
    check_marginals,
    check_mass,
    check_one_question,
    check_posterior,
    close,
    every_exact_engine,
    free_of,
    not_by_listing,
    some_of,
)
from markovia.inference.engine import get_engine
from model_strategies import (
    KINDS,
    Case,
    brute_force,
    cases,
    log_marginal,
    log_sum,
    log_weights,
    random_case,
    random_findings,
    tries,
)

seeds = st.integers(0, 2**32 - 1)


def check_every_question(seed, engine, kind=None):
    case = random_case(seed, kind)
    rng = np.random.default_rng([seed, 1])
    given = random_findings(case, rng)
    logs = log_weights(case, given)
    check_mass(case, given, logs, engine)
    if np.isneginf(log_sum(logs)):
        name = next(iter(case.cards))
        check_impossible(case, given, engine, lambda: case.model.query(name, given=given, engine=engine))
        return
    check_posterior(case, given, logs, engine, str(rng.choice(list(case.cards))))
    check_posterior(case, given, logs, engine, some_of(rng, case.cards, 5))
    check_marginals(case, given, logs, engine)
    check_best(case, given, logs, engine, 4)
    check_best(case, given, logs, engine, 3, some_of(rng, case.cards, 4))
    rows = case.model.sample(3, given=given, seed=seed, engine=engine)
    assert np.isfinite(logs[tuple(rows[n].to_numpy(dtype=int) for n in case.cards)]).all()


@every_exact_engine
@sampled(case=cases(), seed=seeds)
@settings(max_examples=120)
def test_posteriors_of_any_set_of_targets_equal_the_joint_table(engine, case, seed):
    rng = np.random.default_rng(seed)
    given = random_findings(case, rng)
    logs = log_weights(case, given)
    targets = some_of(rng, case.cards, 5)
    if np.isneginf(log_sum(logs)):
        ask = lambda: case.model.query(targets, given=given, engine=engine)  # noqa: E731
        check_impossible(case, given, engine, ask)
    else:
        check_posterior(case, given, logs, engine, targets)
        check_posterior(case, given, logs, engine, targets[0])


@every_exact_engine
@sampled(case=cases(), seed=seeds)
@settings(max_examples=120)
def test_all_marginals_and_the_mass_equal_the_joint_table(engine, case, seed):
    rng = np.random.default_rng(seed)
    given = random_findings(case, rng)
    logs = log_weights(case, given)
    check_mass(case, given, logs, engine)
    if np.isneginf(log_sum(logs)):
        ask = lambda: case.model.marginals(given=given, engine=engine)  # noqa: E731
        check_impossible(case, given, engine, ask)
    else:
        check_marginals(case, given, logs, engine)
        check_marginals(case, given, logs, engine, some_of(rng, case.cards, 4))


@every_exact_engine
@sampled(case=cases(), seed=seeds, m=st.integers(1, 7))
@settings(max_examples=100)
def test_best_explanations_and_marginal_map_are_the_largest_entries(engine, case, seed, m):
    rng = np.random.default_rng(seed)
    given = random_findings(case, rng, rate=0.25)
    logs = log_weights(case, given)
    if np.isneginf(log_sum(logs)):
        ask = lambda: case.model.map(given=given, m=m, engine=engine)  # noqa: E731
        check_impossible(case, given, engine, ask)
    else:
        check_best(case, given, logs, engine, m)
        check_best(case, given, logs, engine, m, some_of(rng, case.cards, 4))


@pytest.mark.slow
@every_exact_engine
@pytest.mark.parametrize("kind", KINDS)
def test_every_question_on_models_of_every_kind(engine, kind):
    for seed in tries(40):
        check_every_question(seed, engine, kind)


@pytest.mark.slow
@every_exact_engine
@pytest.mark.parametrize("kind", KINDS)
def test_every_question_on_hundreds_of_models_of_every_kind(engine, kind):
    for seed in range(1000, 1400):
        check_every_question(seed, engine, kind)


@every_exact_engine
def test_a_joint_over_far_ends_of_a_chain_spans_its_cliques(engine):
    n = 9
    rng = np.random.default_rng(5)
    cards = {f"x{i}": 2 for i in range(n)}
    tables = [([a, b], rng.random((2, 2))) for a, b in pairwise(cards)]
    case = Case(mk.MarkovNetwork(cards, [mk.Factor(s, t) for s, t in tables]), cards, tables)
    logs = log_weights(case, {"x4": [0.2, 0.7]})
    for targets in (["x8", "x0"], ["x0", "x4", "x8"], ["x7", "x1", "x3", "x5"], list(cards)):
        check_posterior(case, {"x4": [0.2, 0.7]}, logs, engine, targets)


@every_exact_engine
def test_a_model_without_factors_is_uniform(engine):
    mn = mk.MarkovNetwork({"a": 3, "b": 1, "c": 2})
    assert close(mn.log_partition(engine=engine), log(6))
    assert mn.query(["c", "a"], engine=engine).values == pytest.approx(np.full((2, 3), 1 / 6))
    assert mn.query("b", given={"a": [0, 2, 1]}, engine=engine).values == pytest.approx([1.0])
    assert mn.query("a", given={"a": [0, 2, 1]}, engine=engine).values == pytest.approx([0, 2 / 3, 1 / 3])
    assert len(mn.map(m=10, engine=engine)) == 6


@every_exact_engine
def test_when_all_is_observed_the_evidence_is_a_product_of_entries(engine):
    for seed in range(30):
        case = random_case(seed)
        rng = np.random.default_rng([seed, 2])
        given = {n: int(rng.integers(card)) for n, card in case.cards.items()}
        logs = log_weights(case, given)
        check_mass(case, given, logs, engine)
        if np.isfinite(log_sum(logs)):
            assert case.model.marginals(given=given, engine=engine) == {}
            assert case.model.map(given=given, engine=engine).to_dict() == {}
            for n, code in given.items():
                assert case.model.query(n, given=given, engine=engine)[code] == 1.0


# -- large cliques, small budgets ----------------------------------------------------------------------------------


def dense_case(seed, n, zeros):
    """Binary variables in overlapping factors of six: cliques of nearly all of them, mostly zero if asked for."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(n)]
    hidden = dict(zip(names, rng.integers(2, size=n), strict=True))
    tables = []
    for _ in range(n - 4):
        scope = [str(s) for s in rng.permutation(names)[:6]]
        values = np.where(rng.random([2] * 6) < zeros, 0.0, rng.random([2] * 6) + 0.05)
        values[tuple(hidden[s] for s in scope)] = 1.0  # one configuration is possible for certain
        tables.append((scope, values))
    cards = dict.fromkeys(names, 2)
    return Case(mk.MarkovNetwork(cards, [mk.Factor(s, t) for s, t in tables]), cards, tables)


def check_dense(seed, n, zeros, engine):
    case = dense_case(seed, n, zeros)
    for given in ({}, {"v1": [0.3, 0.9], "v5": [1.0, 0.4]}):
        logs = log_weights(case, given)
        check_mass(case, given, logs, engine)
        check_marginals(case, given, logs, engine)
        check_posterior(case, given, logs, engine, ["v7", "v0", "v3"])
    check_best(case, given, logs, engine, 3)


@every_exact_engine
@pytest.mark.parametrize("zeros", [0.0, 0.6])
def test_cliques_of_many_variables_are_summed_right(engine, zeros):
    check_dense(1, 15, zeros, engine)


@pytest.mark.slow
@every_exact_engine
@pytest.mark.parametrize("zeros", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(2))
def test_cliques_of_a_million_entries_are_summed_right(engine, zeros, seed):
    check_dense(seed, 20, zeros, engine)


@pytest.mark.skipif("conditioning" not in EXACT, reason="there is no engine of that name")
def test_conditioning_in_little_memory_answers_every_question():
    answered = 0
    for seed in tries(150):
        case = random_case([seed, 71], max_entries=800)
        rng = np.random.default_rng([seed, 72])
        engine = replace(get_engine("conditioning"), max_bytes=int(rng.integers(8, 600)))
        try:
            check_one_question(case, random_findings(case, rng, rate=0.2), engine, rng)
            answered += 1
        except mk.errors.TooLarge:  # the answer itself does not fit
            continue
    assert answered > len(tries(150)) / 2


# -- impossible evidence -------------------------------------------------------------------------------------------


@every_exact_engine
@sampled(case=cases(["certain"], max_entries=800), seed=seeds)
@settings(max_examples=60)
def test_a_conflict_is_minimal(engine, case, seed):
    rng = np.random.default_rng(seed)
    given = random_findings(case, rng, rate=0.9)
    if np.isneginf(log_sum(log_weights(case, given))):
        name = some_of(rng, case.cards, 1)
        ask = lambda: case.model.query(name, given=given, engine=engine)  # noqa: E731
        check_impossible(case, given, engine, ask)
    else:
        check_mass(case, given, log_weights(case, given), engine)


@every_exact_engine
def test_findings_in_different_parts_of_a_model_do_not_share_a_blame(engine):
    bn = mk.BayesianNetwork()
    for part in "pqr":
        bn.add(f"{part}0", p=[0.4, 0.6])
        bn.add(f"{part}1", parents=[f"{part}0"], p=[[1, 0], [0, 1]])
    given = {"p0": 0, "q0": 1, "r0": 1, "p1": 0, "q1": 0, "r1": 1}
    for ask in (bn.marginals, bn.map, lambda **k: bn.query("p0", **k), lambda **k: bn.sample(1, **k)):
        with pytest.raises(mk.errors.ImpossibleEvidence) as caught:
            ask(given=given, engine=engine)
        assert caught.value.evidence == {"q0": 1, "q1": 0}
    assert bn.log_evidence(given=given, engine=engine) == -np.inf
    assert bn.query("p1", given={"q0": 1}, engine=engine)[0] == pytest.approx(0.4)


@every_exact_engine
def test_a_model_of_weight_zero_blames_no_finding(engine):
    mn = mk.MarkovNetwork(
        {"a": 2, "b": 2}, [mk.Factor(["a"], [1, 0]), mk.Factor(["a", "b"], [[0, 0], [1, 2]])]
    )
    assert mn.log_partition(engine=engine) == -np.inf
    for given in (None, {"b": 1}):
        with pytest.raises(mk.errors.ImpossibleEvidence, match="every configuration") as caught:
            mn.marginals(given=given, engine=engine)
        assert caught.value.evidence == {}


# -- draws ---------------------------------------------------------------------------------------------------------


@every_exact_engine
@pytest.mark.parametrize("kind", ["directed", "certain", "undirected"])
@pytest.mark.parametrize("seed", range(2))
def test_draws_follow_the_joint_posterior(engine, kind, seed):
    """A chi-square test on the whole joint table; a right engine fails one with probability 1e-6."""
    stats = pytest.importorskip("scipy.stats")
    n = 20_000
    case = random_case([seed, 7], kind, max_entries=60)
    rng = np.random.default_rng([seed, 8])
    given = {}
    while not given or np.isneginf(log_sum(log_weights(case, given))):
        given = random_findings(case, rng, rate=0.5) or {next(iter(case.cards)): 0}
    logs = log_weights(case, given)
    rows = case.model.sample(n, given=given, seed=seed, engine=engine)
    assert rows.shape == (n, len(case.cards))
    codes = np.ravel_multi_index(
        [rows[v].to_numpy(dtype=int) for v in case.cards], tuple(case.cards.values())
    )
    seen = np.bincount(codes, minlength=logs.size)
    expected = n * np.exp(logs - log_sum(logs)).ravel()
    assert not seen[expected == 0].any()
    rare = expected < 5
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 1e-9
    if kept.sum() > 1:
        assert stats.chisquare(seen[kept], expected[kept]).pvalue > 1e-6
    again = case.model.sample(n, given=given, seed=seed, engine=engine)
    assert rows.equals(again)


# -- rows of data --------------------------------------------------------------------------------------------------


def random_rows(case, rng, n):
    """Possible rows with missing cells (None or NaN), some of them twice, columns shuffled and one left out."""
    import pandas as pd

    flat = log_weights(case).ravel()
    drawn = rng.choice(flat.size, size=n, p=np.exp(flat - log_sum(flat)))
    codes = dict(zip(case.cards, np.unravel_index(drawn, tuple(case.cards.values())), strict=True))
    names = [str(c) for c in rng.permutation(list(case.cards))]
    if len(names) > 1:
        names = names[: rng.integers(1, len(names) + 1)]
    gone = {c: rng.random(n) < 0.4 for c in names}
    columns = {}
    for c in names:
        if rng.random() < 0.5:
            columns[c] = np.where(gone[c], np.nan, codes[c])
        else:
            cells = [None if g else int(v) for g, v in zip(gone[c], codes[c], strict=True)]
            columns[c] = pd.Series(cells, dtype=object)
    frame = pd.DataFrame(columns)
    frame = pd.concat([frame, frame.iloc[: n // 3]])
    frame.index = [f"r{i}" for i in rng.permutation(len(frame))]
    order = [*range(n), *range(n // 3)]
    rows = [{c: int(codes[c][i]) for c in names if not gone[c][i]} for i in order]
    return frame, rows


@pytest.mark.slow
@every_exact_engine
@sampled(case=cases(max_entries=800), seed=seeds)
@settings(max_examples=40)
def test_rows_with_missing_cells_are_answered_as_the_joint_table_says(engine, case, seed):
    rng = np.random.default_rng(seed)
    total = log_sum(log_weights(case))
    if np.isneginf(total):
        return
    frame, rows = random_rows(case, rng, 12)
    expected = [log_sum(log_weights(case, row)) - total for row in rows]
    assert case.model.log_prob(frame) == pytest.approx(expected, rel=1e-11, abs=1e-10)
    targets = some_of(rng, case.cards, 3)
    several = case.model.predict_proba(frame, targets, engine=engine)
    modes = case.model.predict(frame, targets, engine=engine)
    check_predictions(case, rows, targets, several, modes)
    one = targets[0]  # the cells of the other targets are evidence now
    single = case.model.predict_proba(frame, one, engine=engine)
    mode = case.model.predict(frame, one, engine=engine)
    check_predictions(case, rows, [one], {one: single}, {one: mode})
    for table in (several, modes, single, mode):
        assert table.index.equals(frame.index)


def check_predictions(case, rows, targets, tables, modes):
    for i, row in enumerate(rows):
        logs = log_weights(case, {n: code for n, code in row.items() if n not in targets})
        for t in targets:
            p = np.exp(log_marginal(case, logs, [t]) - log_sum(logs))
            np.testing.assert_allclose(tables[t].to_numpy()[i], p, rtol=0, atol=1e-10)
            assert p[modes[t].iloc[i]] == pytest.approx(p.max(), abs=1e-10)


@pytest.mark.slow
@every_exact_engine
def test_hundreds_of_rows_with_missing_cells_are_answered_as_one_by_one(engine):
    import pandas as pd

    asia = mk.examples.asia()
    rng = np.random.default_rng(9)
    frame = asia.sample(300, seed=9).astype(object)
    frame = frame.mask(rng.random(frame.shape) < 0.5).drop(columns="smoke")
    table = asia.predict_proba(frame, ["lung", "smoke"], engine=engine)
    modes = asia.predict(frame, "bronc", engine=engine)
    logs = asia.log_prob(frame)
    weights = brute_force(asia, {})
    axis = {n: i for i, n in enumerate(asia.variables)}
    for i, row in enumerate(frame.to_dict("records")):
        known = {n: asia.states(n).index(s) for n, s in row.items() if not pd.isna(s)}
        for target in ("lung", "smoke", "bronc", None):
            hidden = {"bronc"} if target == "bronc" else {"lung", "smoke"} if target else set()
            index = [slice(None)] * 8
            for n, code in known.items():
                if n not in hidden:
                    index[axis[n]] = slice(code, code + 1)
            part = weights[tuple(index)]
            if target is None:
                assert logs[i] == pytest.approx(log(part.sum()), abs=1e-10)
                continue
            p = part.sum(axis=tuple(a for n, a in axis.items() if n != target)) / part.sum()
            if target == "bronc":
                assert p[asia.states("bronc").index(modes.iloc[i])] == pytest.approx(p.max(), abs=1e-10)
            else:
                np.testing.assert_allclose(table[target].to_numpy()[i], p, rtol=0, atol=1e-10)


@every_exact_engine
def test_no_rows_have_no_answers_but_the_right_columns(engine):
    asia = mk.examples.asia()
    rows = asia.sample(2, seed=0).iloc[:0]
    assert asia.predict_proba(rows, "lung", engine=engine).shape == (0, 2)
    assert list(asia.predict_proba(rows, "lung", engine=engine)) == asia.states("lung")
    assert asia.predict(rows, ["lung", "tub"], engine=engine).shape == (0, 2)
    assert asia.log_prob(rows).shape == (0,)


@every_exact_engine
def test_an_impossible_row_has_probability_zero_and_no_prediction(engine):
    bn = mk.BayesianNetwork()
    bn.add("a", p=[0.5, 0.5])
    bn.add("b", parents=["a"], p=[[1, 0], [0, 1]])
    bn.add("c", parents=["b"], p=[[0.3, 0.7], [0.6, 0.4]])
    rows = [{"a": 0, "b": 0}, {"a": 0, "b": 1}, {"a": None, "b": None}]
    assert bn.log_prob(rows).tolist() == pytest.approx([log(0.5), -np.inf, 0.0])
    with pytest.raises(mk.errors.ImpossibleEvidence) as caught:
        bn.predict_proba(rows, "c", engine=engine)
    assert caught.value.evidence == {"a": 0, "b": 1}
    good = [rows[0], rows[2]]
    assert bn.predict_proba(good, "c", engine=engine).to_numpy() == pytest.approx(
        np.array([[0.3, 0.7], [0.45, 0.55]])
    )


# -- numbers that leave the range of doubles -----------------------------------------------------------------------


def wide_case(seed):
    """Tables with entries from 1e-300 to 1e300: the weights of configurations span thousands of orders."""
    rng = np.random.default_rng(seed)
    cards = {f"v{i}": int(rng.integers(1, 4)) for i in range(rng.integers(2, 8))}
    tables = []
    for _ in range(rng.integers(2, 12)):
        scope = some_of(rng, cards, 3)
        centre, spread = rng.choice([-295, 0, 295]), rng.choice([5, 60, 300])
        powers = np.clip(centre + rng.uniform(-spread, spread, [cards[s] for s in scope]), -300, 300)
        tables.append((scope, np.where(rng.random(powers.shape) < 0.1, 0.0, 10.0**powers)))
    kind = [mk.MarkovNetwork, mk.FactorGraph][rng.integers(2)]
    return Case(kind(cards, [mk.Factor(s, t) for s, t in tables]), cards, tables)


@every_exact_engine
@sampled(seed=seeds)
@settings(max_examples=80)
def test_tables_from_1e_minus_300_to_1e300_neither_underflow_nor_overflow(engine, seed):
    case = wide_case(seed)
    rng = np.random.default_rng([seed, 3])
    given = random_findings(case, rng, rate=0.3)
    logs = log_weights(case, given)
    mass = log_sum(logs)
    assert case.model.log_partition(given=given, engine=engine) == pytest.approx(mass, rel=1e-12, abs=1e-9)
    if np.isneginf(mass):
        ask = lambda: case.model.marginals(given=given, engine=engine)  # noqa: E731
        check_impossible(case, given, engine, ask)
        return
    targets = some_of(rng, case.cards, 3)
    joint = case.model.query(targets, given=given, engine=engine)
    np.testing.assert_allclose(
        joint.values, np.exp(log_marginal(case, logs, targets) - mass), rtol=0, atol=1e-9
    )
    for name, answer in case.model.marginals(given=given, engine=engine).items():
        np.testing.assert_allclose(
            answer.values, np.exp(log_marginal(case, logs, [name]) - mass), rtol=0, atol=1e-9
        )
    free = free_of(case, given)
    found = case.model.map(given=given, m=3, engine=engine)
    best = np.sort(logs[np.isfinite(logs)])[::-1][:3]
    assert [e.log_prob for e in found] == pytest.approx(
        (best - log_sum(log_weights(case))).tolist(), rel=1e-12, abs=1e-8
    )
    rows = case.model.sample(3, given=given, seed=0, engine=engine)
    at = tuple(rows[n].to_numpy(dtype=int) for n in case.cards)
    assert (logs[at] > mass - 60).all(), free


@every_exact_engine
def test_a_hundred_unlikely_findings_and_a_certain_one_are_weighed_right(engine):
    n = 120
    bn = mk.BayesianNetwork()
    bn.add("c", p=[0.5, 0.5])
    for i in range(n):
        bn.add(f"f{i}", parents=["c"], p=[[1 - 1e-9, 1e-9], [1 - 1e-6, 1e-6]])
    given = {f"f{i}": 1 for i in range(n)}
    expected = log(0.5) + n * log(1e-6)
    assert bn.log_evidence(given=given, engine=engine) == pytest.approx(expected, rel=1e-12)
    assert bn.query("c", given=given, engine=engine)[1] == pytest.approx(1.0)
    assert bn.map(given=given, engine=engine).log_prob == pytest.approx(expected, rel=1e-12)


@not_by_listing
def test_soft_findings_of_1e_minus_300_multiply_without_underflow(engine):
    n = 120
    bn = mk.BayesianNetwork()
    bn.add("c", p=[0.5, 0.5])
    for i in range(n):
        bn.add(f"f{i}", parents=["c"], p=[[0.9, 0.1], [0.4, 0.6]])
    weights = {f"f{i}": [1e-300, 1e-300] for i in range(n)}
    assert bn.log_evidence(given=weights, engine=engine) == pytest.approx(n * log(1e-300), rel=1e-12)
    assert bn.query("c", given=weights, engine=engine).values == pytest.approx([0.5, 0.5])
    assert bn.marginals(given=weights, engine=engine)["f7"].values == pytest.approx([0.65, 0.35])


# -- long models ---------------------------------------------------------------------------------------------------

STEP = np.array([[0.9, 0.1], [0.3, 0.7]])


def step_power(k):
    """The k-th power of STEP, from its eigenvalues 1 and 0.6."""
    rest = np.array([0.75, 0.25])
    return rest + 0.6**k * (np.eye(2) - rest)


def long_chain(n):
    variables = [mk.Variable(f"x{i}", 2) for i in range(n)]
    first = mk.local.ConditionalTable.of(variables[0], (), np.array([0.5, 0.5]))
    steps = [mk.local.ConditionalTable.of(b, (a,), STEP) for a, b in pairwise(variables)]
    return mk.BayesianNetwork.from_conditionals([first, *steps])


def check_long_chain(n, engine):
    bn = long_chain(n)
    every = 10
    seen = {f"x{i}": (i // every) % 2 for i in range(every, n, every)}
    ends = list(seen.values())
    expected = log((np.array([0.5, 0.5]) @ step_power(every))[ends[0]])
    expected += sum(log(step_power(every)[a, b]) for a, b in pairwise(ends))
    assert bn.log_evidence(given=seen, engine=engine) == pytest.approx(expected, rel=1e-11)
    marginals = bn.marginals(given=seen, engine=engine)
    assert len(marginals) == n - len(seen)
    for i in [*range(2 * every + 1, 3 * every), n // 2 + 1, n - every - 1]:
        left, right = i - i % every, i - i % every + every
        a, b = seen[f"x{left}"], seen[f"x{right}"] if right < n else None
        p = step_power(i - left)[a] * (1.0 if b is None else step_power(right - i)[:, b])
        assert marginals[f"x{i}"].values == pytest.approx(p / p.sum(), abs=1e-10)
    assert bn.query(f"x{n - 1}", engine=engine).values == pytest.approx([0.75, 0.25], abs=1e-10)


@pytest.mark.slow
@not_by_listing
def test_a_chain_of_two_thousand_nodes_has_the_closed_form(engine):
    check_long_chain(2_000, engine)


@pytest.mark.slow
@pytest.mark.parametrize("engine", LONG)
def test_a_chain_of_a_hundred_thousand_nodes_has_the_closed_form(engine):
    check_long_chain(100_000, engine)


def check_tiny_weights(n, engine, scale):
    """A chain of symmetric potentials: Z = 2 (3 scale)^(n-1), far outside the range of doubles."""
    variables = [mk.Variable(f"x{i}", 2) for i in range(n)]
    table = np.array([[2.0, 1.0], [1.0, 2.0]]) * scale
    chain = mk.MarkovNetwork(variables, [mk.Factor.of(pair, table) for pair in pairwise(variables)])
    expected = log(2) + (n - 1) * (log(3) + log(scale))
    assert chain.log_partition(engine=engine) == pytest.approx(expected, rel=1e-12)
    near = chain.query("x1", given={"x0": 0}, engine=engine)
    assert near.values == pytest.approx([2 / 3, 1 / 3])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-300, 1e300])
@not_by_listing
def test_a_chain_of_weights_at_the_edge_of_doubles_has_a_finite_log_partition(engine, scale):
    check_tiny_weights(2_000, engine, scale)


@pytest.mark.slow
@pytest.mark.parametrize("engine", LONG)
def test_a_hundred_thousand_tiny_weights_have_a_finite_log_partition(engine):
    check_tiny_weights(100_000, engine, 1e-300)


@pytest.mark.slow
@pytest.mark.parametrize("engine", LONG)
def test_a_long_hidden_chain_agrees_with_the_forward_recursion(engine):
    n = 5_000
    rng = np.random.default_rng(0)
    emit = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    hidden = [mk.Variable(f"z{i}", 2) for i in range(n)]
    seen = [mk.Variable(f"y{i}", 3) for i in range(n)]
    first = mk.local.ConditionalTable.of(hidden[0], (), np.array([0.5, 0.5]))
    steps = [mk.local.ConditionalTable.of(b, (a,), STEP) for a, b in pairwise(hidden)]
    shown = [mk.local.ConditionalTable.of(y, (z,), emit) for z, y in zip(hidden, seen, strict=True)]
    bn = mk.BayesianNetwork.from_conditionals([first, *steps, *shown])
    rolls = rng.integers(3, size=n)
    belief, total = np.array([0.5, 0.5]), 0.0
    for i, roll in enumerate(rolls):
        belief = (belief @ STEP if i else belief) * emit[:, roll]
        total += log(belief.sum())
        belief = belief / belief.sum()
    given = {f"y{i}": int(roll) for i, roll in enumerate(rolls)}
    assert bn.log_evidence(given=given, engine=engine) == pytest.approx(total, rel=1e-12)
    assert bn.marginals(given=given, engine=engine)[f"z{n - 1}"].values == pytest.approx(belief, abs=1e-10)


# -- interventions -------------------------------------------------------------------------------------------------


@every_exact_engine
@sampled(case=cases(["directed", "certain", "structured"], max_entries=800), seed=seeds)
@settings(max_examples=50)
def test_an_intervention_is_the_truncated_product(engine, case, seed):
    rng = np.random.default_rng(seed)
    names = some_of(rng, case.cards, 3)
    changes = {
        n: int(rng.integers(case.cards[n]))
        if rng.random() < 0.7
        else rng.dirichlet(np.ones(case.cards[n])).tolist()
        for n in names
    }
    before = case.model.marginals(engine=engine)
    tables = [
        ([n], np.eye(case.cards[n])[c] if isinstance(c, int) else np.array(c)) for n, c in changes.items()
    ]
    tables += [(scope, values) for scope, values in case.tables if scope[-1] not in changes]
    done = Case(case.model.do(changes), case.cards, tables)
    given = random_findings(done, rng, rate=0.25)
    check_one_question(done, given, engine, rng)
    check_marginals(done, {}, log_weights(done), engine)
    after = check_marginals(case, {}, log_weights(case), engine)
    assert all(np.array_equal(after[n].values, before[n].values) for n in before)
