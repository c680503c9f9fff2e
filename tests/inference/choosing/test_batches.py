"""Rows of data in compiled code, against an engine that is asked row by row."""

import io
import sys
from contextlib import redirect_stderr

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from markovia.inference.choosing import evidence_rows
from markovia.inference.engine import get_engine
from markovia.inference.exact import row_programs
from markovia.kernels.clique_trees.evidence_rows import NUMBERS
from markovia.models.graphical.data_rows import rows as model_rows
from model_strategies import cases, random_case

VE = "variable-elimination"
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def always_compiled(monkeypatch):
    """Small tests do not wait for a kernel in everyday use; here they are to run in it."""
    monkeypatch.setattr(evidence_rows, "_few", lambda table, most: False)


def random_rows(case, rng, n=None):
    """Rows of evidence: some columns complete, some left out, some with gaps; all-missing and repeated rows."""
    n = int(rng.integers(1, 12)) if n is None else n
    columns = {}
    for name, card in case.cards.items():
        what = rng.integers(4)
        if what == 0:
            continue
        codes = rng.integers(card, size=n).astype(object)
        if what >= 2:
            codes[rng.random(n) < rng.choice([0.2, 0.6, 1.0])] = None
        columns[name] = codes
    frame = pd.DataFrame(columns, index=[f"r{i}" for i in range(n)])
    if n > 2 and rng.random() < 0.5:
        frame.iloc[-1] = frame.iloc[0]
    return frame


def possible(case, frame):
    """The rows that have positive probability, by the engine that is asked row by row."""
    try:
        return frame[case.model.log_prob(frame, engine=VE) > -np.inf]
    except mk.errors.ImpossibleEvidence:
        return frame[:0]


@sampled(case=cases(max_entries=800), seed=seeds)
@settings(max_examples=100, deadline=None)
def test_log_probabilities_equal_those_of_single_rows(case, seed):
    frame = random_rows(case, np.random.default_rng(seed))
    try:
        expected = case.model.log_prob(frame, engine=VE)
    except mk.errors.ImpossibleEvidence:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            case.model.log_prob(frame)
        return
    found = case.model.log_prob(frame)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(found, case.model.log_evidence(given=frame))


@sampled(case=cases(max_entries=800), seed=seeds)
@settings(max_examples=100, deadline=None)
def test_predictions_equal_those_of_single_rows(case, seed):
    rng = np.random.default_rng(seed)
    model = case.model
    targets = [str(t) for t in rng.permutation(model.variables)[: rng.integers(1, 4)]]
    frame = random_rows(case, rng)
    frame = frame.loc[possible(case, frame.drop(columns=targets, errors="ignore")).index]
    found = model.predict_proba(frame, targets)
    expected = model.predict_proba(frame, targets, engine=VE)
    pd.testing.assert_frame_equal(found, expected, atol=1e-10, rtol=0)
    frame = frame.drop(columns=targets[1:], errors="ignore")
    one = model.predict_proba(frame, targets[0])
    np.testing.assert_allclose(one.to_numpy(), expected[targets[0]].to_numpy(), atol=1e-10)
    assert one.index.equals(frame.index)
    best = model.predict(frame, targets[0])
    chosen = [one.loc[i, s] for i, s in best.items()]
    np.testing.assert_allclose(chosen, one.max(axis=1), atol=1e-12)


@sampled(case=cases(max_entries=800), seed=seeds)
@settings(max_examples=100, deadline=None)
def test_marginals_of_a_frame_equal_those_of_single_rows(case, seed):
    rng = np.random.default_rng(seed)
    frame = possible(case, random_rows(case, rng))
    wanted = None if rng.random() < 0.5 else [str(t) for t in rng.permutation(case.model.variables)[:3]]
    found = case.model.marginals(given=frame, targets=wanted)
    missed = [n for n in case.cards if n not in frame or frame[n].isna().any()]
    assert list(found) == (missed if wanted is None else wanted)
    for label, row in frame.iterrows():
        given = {n: int(s) for n, s in row.items() if s is not None and s == s}
        single = case.model.marginals(given=given, targets=list(found), engine=VE) if found else {}
        for name, table in found.items():
            assert list(table.columns) == case.model.states(name)
            np.testing.assert_allclose(table.loc[label], single[name].values, atol=1e-10)
            if name in given:
                assert table.loc[label, given[name]] == 1.0


@sampled(seed=seeds)
@settings(max_examples=60, deadline=None)
def test_rows_that_outgrow_their_room_are_still_answered(seed):
    rng = np.random.default_rng(seed)
    case = random_case(seed, max_entries=800)
    frame = possible(case, random_rows(case, rng))
    expected = case.model.marginals(given=frame, engine=VE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_programs, "ROOM", int(rng.integers(1, 40)))
        found = case.model.copy().marginals(given=frame)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-10)


def test_a_room_that_is_too_small_is_reported_row_by_row():
    bn = mk.examples.asia()
    codes = np.array([[0] * 8, [-1] * 6 + [0, 0], [0, -1, 0, 0, 0, 0, 0, 0]], dtype=np.int8)
    problem = model_rows._problem(bn, get_engine("auto"))
    program = evidence_rows.compiled_for(problem, mk.engines.JunctionTree(), (), bn.variables, codes)
    program.room = 12
    _, _, status = program.run(codes.astype(np.int32))
    assert status.tolist()[1] == 3
    assert 3 not in status.tolist()[::2]


def test_complete_columns_widen_no_clique():
    # twenty causes of one effect: given all but one of them the tree is trivial
    bn = mk.BayesianNetwork()
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(18)]
    for name in names:
        bn.add(name, states=[0, 1], p=[0.5, 0.5])
    table = rng.dirichlet([1, 1], size=[2] * 18)
    bn.add("effect", states=[0, 1], parents=names, p=table)
    frame = bn.sample(50, seed=0)
    columns, codes, _ = model_rows.ordered_rows(frame.drop(columns="c3"), model_rows._variables(bn))
    program = evidence_rows.compiled_for(
        model_rows._problem(bn, get_engine("auto")), mk.engines.JunctionTree(), ["c3"], columns, codes
    )
    assert program.tree[NUMBERS.index("n_slots")] == 1
    likelihood = np.take_along_axis(
        table.transpose([*(i for i in range(18) if i != 3), 18, 3])[
            tuple(frame[n].to_numpy() for n in [*names[:3], *names[4:], "effect"])
        ],
        np.arange(2)[None],
        axis=1,
    )
    np.testing.assert_allclose(
        bn.predict_proba(frame, "c3"), likelihood / likelihood.sum(axis=1, keepdims=True), atol=1e-12
    )


def test_long_products_do_not_underflow():
    bn = mk.BayesianNetwork()
    bn.add("class", states=[0, 1], p=[0.5, 0.5])
    for i in range(900):
        bn.add(f"x{i}", states=[0, 1], parents=["class"], p=[[1 - 1e-3, 1e-3], [1 - 2e-3, 2e-3]])
    ones = {f"x{i}": 1 for i in range(900)}
    zeros = {f"x{i}": (1 if i < 450 else 0) for i in range(900)}
    gaps = {**ones, **{f"x{i}": None for i in range(0, 900, 2)}}
    found = bn.log_prob([ones, zeros, gaps])
    exact = [
        np.logaddexp(900 * np.log(1e-3), 900 * np.log(2e-3)) - np.log(2),
        np.logaddexp(450 * np.log(1e-3) + 450 * np.log(1 - 1e-3), 450 * np.log(2e-3) + 450 * np.log(1 - 2e-3))
        - np.log(2),
        np.logaddexp(450 * np.log(1e-3), 450 * np.log(2e-3)) - np.log(2),
    ]
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    odds = 450 * np.log(2) + 450 * np.log((1 - 2e-3) / (1 - 1e-3))
    p = bn.predict_proba([ones, zeros], "class")
    assert p[1].tolist() == [1.0, 1.0]
    assert np.log(p[0].iloc[1]) == pytest.approx(-odds, rel=1e-10)


def test_tables_that_span_all_doubles_are_answered_in_logs():
    mn = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[1e300, 1e-300], [1e-300, 1e-300]])])
    p = mn.predict_proba([{"a": 1}, {"a": 0}, {}], "b")
    np.testing.assert_allclose(p, [[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]], atol=1e-12)


def test_the_first_impossible_row_is_explained():
    bn = mk.examples.asia()
    rows = [
        {"xray": "yes", "either": "yes"},
        {"smoke": "no", "lung": "yes", "either": "no"},
        {"tub": "yes", "either": "no"},
    ]
    for engine in ("auto", VE):
        with pytest.raises(mk.errors.ImpossibleEvidence) as error:
            bn.predict(rows, "bronc", engine=engine)
        assert error.value.evidence == {"lung": "yes", "either": "no"}
    assert np.isneginf(bn.log_evidence(given=rows)).tolist() == [False, True, True]


def test_a_program_is_kept_until_a_table_changes():
    bn = mk.examples.sprinkler()
    rows = [{"wet": "yes"}, {"wet": "no"}]
    before = bn.predict_proba(rows, "rain")
    kept = dict(bn._memory["rows"])
    pd.testing.assert_frame_equal(bn.predict_proba(rows, "rain"), before)
    assert bn._memory["rows"] == kept
    bn.replace("cloudy", p=[0.9, 0.1])
    changed = bn.predict_proba(rows, "rain")
    pd.testing.assert_frame_equal(changed, bn.predict_proba(rows, "rain", engine=VE), atol=1e-12)
    assert np.abs(changed - before).to_numpy().max() > 0.01


def test_many_rows_run_in_stretches_and_keep_their_order(monkeypatch):
    bn = mk.examples.asia()
    frame = bn.sample(3000, seed=4).astype(object)
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.3, None)
    whole = bn.predict_proba(frame, "lung")
    monkeypatch.setattr(evidence_rows, "FIRST_STRETCH", 100)
    monkeypatch.setattr(evidence_rows, "LONGEST_STRETCH", 170)
    monkeypatch.setattr(row_programs, "thread_count", lambda: 3)
    counted = []
    columns, table, _ = model_rows.ordered_rows(frame.drop(columns="lung"), model_rows._variables(bn))
    problem = model_rows._problem(bn, get_engine("auto"))
    program = evidence_rows.compiled_for(problem, mk.engines.JunctionTree(), ["lung"], columns, table)
    parts = list(
        evidence_rows.answers(
            problem, mk.engines.JunctionTree(), ["lung"], columns, table, program, counted.append
        )
    )
    assert len(parts) >= 3000 // 170
    assert sum(counted) == 3000
    np.testing.assert_allclose(np.concatenate([p.posteriors for p in parts]), whole, atol=1e-14)
    pick = frame.iloc[[5, 1500, 2999]]
    np.testing.assert_allclose(
        whole.iloc[[5, 1500, 2999]], bn.predict_proba(pick, "lung", engine=VE), atol=1e-12
    )


def test_a_progress_bar_is_shown_only_where_asked_for():
    bn = mk.examples.asia()
    rows = [{"xray": "yes"}] * 5
    for progress, shown in ((True, True), (False, False), (None, False)):
        said = io.StringIO()
        with redirect_stderr(said):
            bn.predict_proba(rows, "lung", progress=progress)
            bn.log_prob(rows, progress=progress)
            bn.marginals(given=rows, progress=progress)
            bn.log_evidence(given=rows, progress=progress)
        assert ("5.00" in said.getvalue()) == shown, said.getvalue()


def test_few_rows_do_not_wait_for_a_kernel(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(evidence_rows, "_kernel_loaded", lambda: False)
    monkeypatch.setattr(evidence_rows, "compile_rows", lambda *a, **k: pytest.fail("compiled"))
    bn = mk.examples.asia()
    frame = bn.sample(3000, seed=0).drop(columns=["lung", "xray"])
    assert len(bn.predict(frame, "lung")) == 3000
    assert bn.log_prob(bn.sample(3000, seed=0)).max() < 0
    monkeypatch.setattr(evidence_rows, "_kernel_on_disk", lambda: True)
    monkeypatch.setattr(evidence_rows, "LOAD_SECONDS", 1e-3)
    with pytest.raises(pytest.fail.Exception, match="compiled"):
        bn.predict(frame, "lung")


def test_structured_conditionals_too_wide_for_a_table_are_asked_row_by_row():
    names = [f"c{i}" for i in range(40)]
    bn = mk.BayesianNetwork()
    for name in names:
        bn.add(name, states=["off", "on"], p=[0.9, 0.1])
    bn.add("fever", mk.local.NoisyOr(dict.fromkeys(names, 0.3), leak=0.01), states=["off", "on"])
    row = {**dict.fromkeys(names, "off"), "c0": "on", "c1": None}
    found = bn.predict_proba([row], "fever")
    off = 0.99 * 0.7 * (0.9 + 0.1 * 0.7)
    assert found["off"].tolist() == pytest.approx([off])
    whole = {**row, "c1": "off", "fever": "off"}
    assert bn.log_prob([whole])[0] == pytest.approx(39 * np.log(0.9) + np.log(0.1) + np.log(0.99 * 0.7))


@pytest.mark.parametrize("dtype", [object, "category", "str"])
def test_every_kind_of_text_column_is_read(dtype):
    bn = mk.examples.asia()
    frame = pd.DataFrame({"xray": pd.Series(["yes", None, "no", "yes"], dtype=dtype)})
    expected = [
        bn.query("lung", given=g)["yes"] for g in ({"xray": "yes"}, {}, {"xray": "no"}, {"xray": "yes"})
    ]
    assert bn.predict_proba(frame, "lung")["yes"].tolist() == pytest.approx(expected)
    frame.loc[3, "xray"] = frame.loc[0, "xray"]
    strange = frame.astype(object)
    strange.loc[2, "xray"] = "maybe"
    with pytest.raises(mk.errors.UnknownState, match="maybe"):
        bn.predict_proba(strange if dtype is object else strange.astype(dtype), "lung")


def test_categories_that_no_cell_uses_do_no_harm():
    bn = mk.examples.asia()
    column = pd.Categorical(["yes", "no"], categories=["maybe", "no", "yes"])
    assert bn.predict(pd.DataFrame({"smoke": column}), "smoke").tolist() == ["yes", "yes"]
    assert np.exp(bn.log_prob(pd.DataFrame({"smoke": column}))).tolist() == pytest.approx([0.5, 0.5])


def test_evidence_that_is_neither_rows_nor_a_mapping_is_refused():
    bn = mk.examples.asia()
    for ask in (bn.marginals, bn.log_evidence):
        with pytest.raises(mk.MarkoviaError, match="given="):
            ask(given=["xray"])


def test_importing_the_batch_modules_loads_no_compiler():
    import subprocess

    home = "markovia.models.graphical.data_rows.rows"
    code = f"import sys, {home}; print(*(m in sys.modules for m in ('numba', 'tqdm', 'pandas')))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False"] * 3
