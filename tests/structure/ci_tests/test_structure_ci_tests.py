"""Tests of conditional independence: closed forms, causal-learn, calibration under independence, power without it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import markovia as mk
from markovia.ci_tests import G2, KCI, ChiSquare, FisherZ, HSICTest, MixedTest, Oracle, PermutationCMI
from markovia.data.tables.reading_mixed import read_mixed
from markovia.data.tables.row_sources import CodedTable
from markovia.structure.ci_tests import table_tests
from markovia.structure.ci_tests.ci_tests import bind_test

RANDOM = np.random.default_rng(20)


def _named(case):
    return str(case) if isinstance(case, str | int) else type(case).__name__


def _codes(n=400, columns=6, states=4, seed=0):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, states, (n, columns))
    cells[:, 1] = np.where(rng.random(n) < 0.4, cells[:, 0], cells[:, 1])
    cells[:, 4] = np.where(rng.random(n) < 0.6, (cells[:, 2] + cells[:, 3]) % states, cells[:, 4])
    return cells


def _frame(cells):
    return pd.DataFrame({f"v{k}": cells[:, k] for k in range(cells.shape[1])})


QUERIES = [(0, 1, ()), (0, 2, ()), (2, 4, (3,)), (0, 5, (1, 2)), (1, 3, (0, 2, 4)), (3, 5, (0, 1, 2, 4))]


def _causal_learn(cells, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cit = pytest.importorskip("causallearn.utils.cit")
    return cit.CIT(np.asarray(cells), method)


@pytest.mark.parametrize(("spec", "peer"), [(G2(), "gsq"), (ChiSquare(), "chisq")])
@pytest.mark.parametrize("compiled", [True, False])
def test_table_tests_agree_with_causal_learn_also_where_strata_are_empty(spec, peer, compiled, monkeypatch):
    from markovia.kernels.structure import table_tests as kernel

    monkeypatch.setattr(table_tests, "_kernel_for", lambda *work: kernel if compiled else None)
    for n in (60, 400, 3000):
        cells = _codes(n)
        other = _causal_learn(cells, peer)
        test = spec.bind(read_mixed(_frame(cells)))
        found = test.p_values(QUERIES)
        assert found == pytest.approx([other(x, y, z) for x, y, z in QUERIES], rel=1e-9, abs=1e-300)


def test_without_a_set_the_tests_are_those_of_scipy():
    cells = _codes(500)
    table = pd.crosstab(cells[:, 0], cells[:, 1]).to_numpy()
    for spec, power in ((G2(), "log-likelihood"), (ChiSquare(), "pearson")):
        expected = stats.chi2_contingency(table, correction=False, lambda_=power)
        found = mk.independence_test(_frame(cells), "v0", "v1", test=spec)
        assert found.statistic == pytest.approx(expected.statistic)
        assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
        assert found.dof == expected.dof
        assert found.independent == (expected.pvalue > 0.05)


def test_full_degrees_of_freedom_count_states_that_never_occur():
    rows = {"a": [0, 1, 0, 1] * 5, "b": [0, 0, 1, 1] * 5, "c": [0] * 20}
    states = {"a": 2, "b": 3, "c": 4}
    assert mk.independence_test(rows, "a", "b", "c", test=G2(), states=states).dof == 1
    assert mk.independence_test(rows, "a", "b", "c", test=G2(dof="full"), states=states).dof == 8
    with pytest.raises(mk.errors.InvalidArgument, match="nonempty"):
        mk.independence_test(rows, "a", "b", test=G2(dof="some"))


@pytest.mark.parametrize("chi", [False, True])
def test_dense_hashed_weighted_and_far_counts_agree(chi, monkeypatch, tmp_path):
    from markovia.kernels.structure import table_tests as kernel

    cells = _codes(300, columns=8, states=5, seed=3)
    queries = [*QUERIES, (0, 7, (1, 2, 3, 4, 5)), (2, 6, (0, 1, 3, 4, 5, 7))]
    frame = _frame(cells)
    spec = ChiSquare() if chi else G2()
    monkeypatch.setattr(table_tests, "_kernel_for", lambda *work: None)
    plain = spec.bind(read_mixed(frame)).p_values(queries)
    monkeypatch.setattr(table_tests, "_kernel_for", lambda *work: kernel)
    compiled = spec.bind(read_mixed(frame)).p_values(queries)
    assert compiled == pytest.approx(plain, rel=1e-8)
    grouped = frame.groupby(list(frame.columns), as_index=False).size()
    weighed = spec.bind(read_mixed(grouped, weights="size", continuous=False)).p_values(queries)
    assert weighed == pytest.approx(plain, rel=1e-8)
    frame.to_parquet(tmp_path / "rows.parquet")
    far = read_mixed(str(tmp_path / "rows.parquet"), in_memory=False)
    assert not isinstance(far.table, CodedTable)
    assert spec.bind(far).p_values(queries) == pytest.approx(plain, rel=1e-8)


def test_keys_of_very_large_sets_are_numbered_on_the_way(monkeypatch):
    from markovia.kernels.structure import table_tests as kernel

    rng = np.random.default_rng(5)
    base = rng.integers(0, 3, (2000, 2))
    wide = np.repeat(
        rng.integers(0, 100, (2000, 1)) % 2 * 99, 12, axis=1
    )  # twelve columns of up to 100 states: 1e24
    frame = _frame(np.concatenate([base, wide], axis=1))
    states = {f"v{k}": 100 for k in range(2, 14)}
    monkeypatch.setattr(table_tests, "_kernel_for", lambda *work: kernel)
    test = G2().bind(read_mixed(frame, states=states))
    assert test.p_value(0, 1, range(2, 14)) == pytest.approx(test.p_value(0, 1, (2,)))


def test_many_threads_give_the_same_answers():
    frame = _frame(_codes(5000, columns=10))
    queries = [(x, y, ()) for x in range(10) for y in range(x + 1, 10)]
    one, many = G2().bind(read_mixed(frame)), G2().bind(read_mixed(frame))
    one.threads, many.threads = 1, 4
    assert one.p_values(queries).tolist() == many.p_values(queries).tolist()


def test_a_query_is_the_same_in_any_order_and_counted_once():
    test = G2().bind(read_mixed(_frame(_codes())))
    assert test.p_value(4, 2, (3, 1)) == test.p_value(2, 4, (1, 3))
    assert test.n_made == 1
    made = test.kept(True)[0]
    assert (made.x, made.y, made.given) == ("v2", "v4", ("v1", "v3"))


def test_permutation_p_values_are_those_of_fishers_exact_test():
    table = np.array([[8, 2], [1, 5]])
    rows = {
        "a": np.repeat([0, 0, 1, 1], table.ravel()),
        "b": np.repeat([0, 1, 0, 1], table.ravel()),
    }
    found = mk.independence_test(rows, "a", "b", test=PermutationCMI(permutations=20000))
    n = table.sum()
    tops = np.arange(max(0, 10 + 9 - n), min(10, 9) + 1)
    tables = [np.array([[k, 10 - k], [9 - k, n - 19 + k]]) for k in tops]
    information = np.array([table_tests.table_statistic(t[None].astype(float))[0] for t in tables])
    chance = stats.hypergeom(n, 10, 9).pmf(tops)
    seen = table_tests.table_statistic(table[None].astype(float))[0]
    exact = chance[information >= seen - 1e-9].sum()
    assert found.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact / 20000))
    assert found.statistic == pytest.approx(seen / (2 * n))


def test_permutation_draws_depend_on_the_seed_and_not_on_the_order():
    frame = _frame(_codes(100))
    first, second = PermutationCMI().bind(read_mixed(frame)), PermutationCMI().bind(read_mixed(frame))
    assert first.p_values(QUERIES).tolist() == second.p_values(QUERIES[::-1])[::-1].tolist()
    with pytest.raises(mk.errors.InvalidArgument, match="take more"):
        PermutationCMI(permutations=10).bind(read_mixed(frame))
    with pytest.raises(mk.errors.InvalidArgument, match="fractions"):
        mk.independence_test(frame, "v0", "v1", test=PermutationCMI(), weights=np.full(100, 0.5))


def test_partial_correlations_are_those_of_residuals_and_of_causal_learn():
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5))
    other = _causal_learn(matrix, "fisherz")
    frame = pd.DataFrame(matrix, columns=list("abcde"))
    test = FisherZ().bind(read_mixed(frame))
    queries = [(0, 1, ()), (0, 3, (2,)), (1, 4, (0, 2)), (2, 3, (0, 1, 4))]
    assert test.p_values(queries) == pytest.approx([other(*q) for q in queries], rel=1e-6, abs=1e-12)
    design = np.column_stack([np.ones(200), matrix[:, [0, 1, 4]]])
    left = matrix[:, [2, 3]] - design @ np.linalg.lstsq(design, matrix[:, [2, 3]], rcond=None)[0]
    r = np.corrcoef(left.T)[0, 1]
    assert test.statistic(2, 3, (0, 1, 4))[0] == pytest.approx(np.sqrt(194) * np.arctanh(r))


def test_fisher_z_reads_weights_as_repeated_rows_and_survives_exact_relations():
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(60, 3))
    times = rng.integers(1, 4, 60)
    long = np.repeat(matrix, times, axis=0)
    short = FisherZ().bind(read_mixed(pd.DataFrame(matrix, columns=list("abc")), weights=times))
    whole = FisherZ().bind(read_mixed(pd.DataFrame(long, columns=list("abc"))))
    assert short.p_value(0, 1, (2,)) == pytest.approx(whole.p_value(0, 1, (2,)))
    rows = {"x": matrix[:, 0], "y": 2 * matrix[:, 0], "z": matrix[:, 1], "w": matrix[:, 0] + matrix[:, 2]}
    assert mk.independence_test(rows, "x", "w", "y", test="fisher-z").p_value == 1.0
    assert mk.independence_test(rows, "w", "z", ["x", "y"], test="fisher-z").p_value == pytest.approx(
        mk.independence_test(rows, "w", "z", "x", test="fisher-z").p_value, rel=1e-2
    )
    with pytest.raises(mk.errors.InvalidArgument, match="constant"):
        mk.independence_test({"a": [0.5] * 9, "b": matrix[:9, 0]}, "a", "b")


def test_kernel_tests_agree_with_causal_learn():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(80, 2))
    x, y = z[:, 0] ** 2 + rng.normal(size=80), np.tanh(z).sum(axis=1) + 0.5 * rng.normal(size=80)
    matrix = np.column_stack([x, y, z])
    other = _causal_learn(matrix, "kci")
    test = KCI().bind(read_mixed(pd.DataFrame(matrix, columns=list("xyuv"))))
    for query in [(0, 1, ()), (0, 2, ()), (0, 1, (2,)), (0, 1, (2, 3)), (1, 2, (3,))]:
        assert test.p_value(*query) == pytest.approx(other(*query), rel=2e-3, abs=1e-6)


@pytest.mark.parametrize("null", ["gamma", "spectral"])
@pytest.mark.parametrize("kind", [KCI, HSICTest])
def test_kernel_tests_see_dependence_that_is_not_linear(kind, null):
    rng = np.random.default_rng(6)
    a, noise = rng.normal(size=(2, 200))
    z = rng.normal(size=200)
    rows = {"a": a + z, "b": a**2 + z + 0.2 * noise, "c": noise + z, "z": z}
    spec = kind(null=null)
    assert not mk.independence_test(rows, "a", "b", "z", test=spec).independent
    assert mk.independence_test(rows, "a", "c", "z", test=spec).independent
    assert not mk.independence_test(rows, "a", "c", test=spec).independent


def test_the_two_nulls_of_kernel_tests_are_close():
    rng = np.random.default_rng(7)
    x, y, z = rng.normal(size=(3, 120))
    rows = {"x": x + z, "y": y + z, "z": z}
    for kind in (KCI, HSICTest):
        for given in ((), ("z",)):
            gamma = mk.independence_test(rows, "x", "y", given, test=kind())
            drawn = mk.independence_test(rows, "x", "y", given, test=kind(null="spectral", draws=20000))
            assert gamma.p_value == pytest.approx(drawn.p_value, abs=0.03)
            assert gamma.statistic == drawn.statistic


def test_mixed_regressions_are_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(8)
    n = 300
    z, u = rng.normal(size=(2, n))
    kind = (rng.random(n)[:, None] > np.cumsum(_softmax(np.column_stack([0 * z, z, -z])), axis=1)).sum(axis=1)
    rows = {"kind": kind, "x": u + 0.3 * kind, "z": z}
    test = MixedTest().bind(read_mixed(rows))
    x = (rows["x"] - rows["x"].mean()) / rows["x"].std()
    small = sm.MNLogit(kind, sm.add_constant(z)).fit(disp=0)
    large = sm.MNLogit(kind, sm.add_constant(np.column_stack([z, x]))).fit(disp=0)
    p, statistic, dof = test._one_way(0, 1, (2,))
    assert statistic == pytest.approx(2 * (large.llf - small.llf), rel=1e-6)
    assert dof == 2
    assert p == pytest.approx(stats.chi2.sf(statistic, 2))
    dummies = np.column_stack([np.ones(n), z, kind == 1, kind == 2]).astype(float)
    full, part = sm.OLS(x, dummies).fit(), sm.OLS(x, dummies[:, :2]).fit()
    f, pf, _ = full.compare_f_test(part)
    back = test._one_way(1, 0, (2,))
    assert (back[0], back[1]) == (pytest.approx(pf), pytest.approx(f))
    assert test.p_value(0, 1, (2,)) == pytest.approx(min(2 * min(p, pf), max(p, pf)))


def _softmax(linear):
    e = np.exp(linear - linear.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_the_mixed_test_uses_g2_and_fisher_z_for_variables_of_one_kind():
    rng = np.random.default_rng(9)
    cells, numbers = rng.integers(0, 3, (200, 2)), rng.normal(size=(200, 2))
    rows = {"a": cells[:, 0], "p": numbers[:, 0], "b": cells[:, 1], "q": numbers[:, 1]}
    mixed = MixedTest().bind(read_mixed(rows))
    assert mixed.p_value(0, 2) == mk.independence_test(rows, "a", "b", test="g2").p_value
    assert mixed.p_value(1, 3) == pytest.approx(mk.independence_test(rows, "p", "q", test="fisher-z").p_value)
    with pytest.raises(mk.errors.InvalidArgument, match="'p' is continuous"):
        G2().bind(read_mixed(rows))
    with pytest.raises(mk.errors.InvalidArgument, match="'a' is discrete"):
        FisherZ().bind(read_mixed(rows))


def test_weights_are_repeated_rows_in_the_mixed_test():
    rng = np.random.default_rng(10)
    frame = pd.DataFrame({"k": rng.integers(0, 3, 80), "x": rng.normal(size=80), "z": rng.normal(size=80)})
    times = rng.integers(0, 4, 80)
    long = frame.loc[frame.index.repeat(times)].reset_index(drop=True)
    for method in ("regression", "degenerate-gaussian"):
        spec = MixedTest(method=method)
        short = mk.independence_test(frame, "k", "x", "z", test=spec, weights=times)
        whole = mk.independence_test(long, "k", "x", "z", test=spec)
        assert short.p_value == pytest.approx(whole.p_value, rel=1e-6)
    with pytest.raises(mk.errors.InvalidArgument, match="takes no weights"):
        mk.independence_test(frame, "x", "z", test="kci", weights=times)


def test_the_degenerate_gaussian_test_is_the_ratio_of_wilks_with_the_term_of_bartlett():
    """-(n - 1 - q - (a + b + 1) / 2) log(|E| / |E_x||E_y|) of residuals on q columns, chi-square with a b degrees."""
    rng = np.random.default_rng(5)
    n = 40
    kind, other = rng.integers(0, 3, n), rng.integers(0, 4, n)
    z = rng.normal(size=n) + 0.5 * kind
    x = rng.normal(size=n) + 0.4 * kind - 0.3 * z
    frame = pd.DataFrame({"k": kind, "o": other, "x": x, "z": z})

    def columns(name):
        if name in "xz":
            return frame[[name]].to_numpy()
        return (frame[name].to_numpy()[:, None] == np.arange(1, frame[name].max() + 1)).astype(float)

    spec = MixedTest(method="degenerate-gaussian")
    for a, b, given in (
        ("k", "x", ""),
        ("k", "x", "z"),
        ("k", "o", ""),
        ("x", "z", "k"),
        ("k", "o", "xz"),
        ("x", "k", "oz"),
    ):
        first, second = columns(a), columns(b)
        design = np.column_stack([np.ones(n), *(columns(g) for g in given)])
        both = np.column_stack([first, second])
        left = both - design @ np.linalg.lstsq(design, both, rcond=None)[0]
        e, p, q = left.T @ left, first.shape[1], second.shape[1]
        ratio = np.linalg.det(e) / np.linalg.det(e[:p, :p]) / np.linalg.det(e[p:, p:])
        statistic = -(n - 1 - (design.shape[1] - 1) - (p + q + 1) / 2) * np.log(ratio)
        found = mk.independence_test(frame, a, b, list(given), test=spec, continuous=["x", "z"])
        assert found.dof == p * q
        assert found.statistic == pytest.approx(statistic)
        assert found.p_value == pytest.approx(stats.chi2.sf(statistic, p * q))


def _null_rows(kind, rng, n):
    z = rng.normal(size=n)
    x, y = z + rng.normal(size=n), -z + rng.normal(size=n)
    if kind == "continuous":
        return {"x": x, "y": y, "z": z}
    if kind == "nonlinear":
        return {"x": np.sin(z) + 0.5 * rng.normal(size=n), "y": z**2 + 0.5 * rng.normal(size=n), "z": z}
    if kind == "mixed":
        return {"x": (z + rng.logistic(size=n) > 0).astype(int), "y": y, "z": z}
    s = rng.integers(0, 2, n)
    return {
        "x": (rng.random(n) < 0.3 + 0.4 * s).astype(int) + (rng.random(n) < 0.5),
        "y": (rng.random(n) < 0.6 - 0.3 * s).astype(int),
        "z": s,
    }


CASES = [
    (G2(), "discrete", 500, 200),
    (ChiSquare(), "discrete", 500, 200),
    (PermutationCMI(permutations=199), "discrete", 60, 120),
    (FisherZ(), "continuous", 60, 250),
    (MixedTest(), "mixed", 150, 150),
    (MixedTest(method="degenerate-gaussian"), "mixed", 150, 200),
    (KCI(), "nonlinear", 60, 80),
    (HSICTest(), "nonlinear", 60, 50),
]


@pytest.mark.parametrize(("spec", "kind", "n", "times"), CASES, ids=_named)
def test_p_values_are_uniform_under_conditional_independence(spec, kind, n, times):
    rng = np.random.default_rng(11)
    found = [
        mk.independence_test(_null_rows(kind, rng, n), "x", "y", "z", test=spec).p_value for _ in range(times)
    ]
    # discrete statistics have ties and kernel tests an approximate null, so only a false alarm that is clearly too
    # frequent or too rare fails
    assert stats.kstest(found, "uniform").pvalue > 0.001
    assert np.mean(np.array(found) < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / times)


@pytest.mark.parametrize(("spec", "kind", "n", "times"), CASES, ids=_named)
def test_dependence_is_seen(spec, kind, n, times):
    rng = np.random.default_rng(12)
    hits = 0
    for _ in range(20):
        rows = _null_rows(kind, rng, 2 * n)
        if kind == "discrete":
            rows["y"] = np.where(rng.random(2 * n) < 0.5, rows["x"] > 0, rows["y"])
        else:
            rows["y"] = rows["y"] + 1.0 * rows["x"]
        hits += not mk.independence_test(rows, "x", "y", "z", test=spec).independent
    assert hits >= 18


def test_oracles_hide_latent_nodes_and_condition_on_selection():
    dag = mk.graphs.DAG([("l", "a"), ("l", "b"), ("a", "s"), ("c", "s")])
    oracle = Oracle(dag, latent="l", selection="s")
    assert oracle.observed == ["a", "b", "c"]
    test = oracle.bind(None)
    assert not test.independent(0, 1)
    assert not test.independent(0, 2)
    assert test.independent(1, 2, [0])
    with pytest.raises(mk.errors.InvalidArgument, match="latent"):
        oracle.bind(None, ["a", "l"])
    with pytest.raises(mk.errors.UnknownVariable):
        Oracle(dag, latent="x")


def test_an_oracle_answers_as_d_separation_does():
    rng = np.random.default_rng(14)
    for _ in range(30):
        names = [f"n{k}" for k in range(int(rng.integers(2, 9)))]
        order = [str(n) for n in rng.permutation(names)]
        edges = [(a, b) for k, a in enumerate(order) for b in order[k + 1 :] if rng.random() < 0.35]
        dag = mk.graphs.DAG(edges, nodes=names)
        test = Oracle(dag).bind(None)
        for _ in range(30):
            x, y, *rest = rng.permutation(len(names)).tolist()
            z = rest[: int(rng.integers(0, len(rest) + 1))]
            expected = mk.graphs.d_separated(dag, names[x], names[y], [names[v] for v in z])
            assert test.independent(x, y, z) == expected


def test_a_bound_test_must_be_about_the_columns_of_the_search():
    frame = _frame(_codes())
    bound = G2().bind(read_mixed(frame))
    assert mk.learn_structure(method="pc", test=bound).nodes == list(frame.columns)
    with pytest.raises(mk.errors.InvalidArgument, match="same columns"):
        mk.learn_structure(frame[frame.columns[::-1]], method="pc", test=bound)


def test_an_oracle_may_be_a_distribution_a_function_or_an_undirected_graph():
    model = mk.BayesianNetwork()
    model.add("a", states=[0, 1], p=[0.3, 0.7])
    model.add("b", states=[0, 1], parents=["a"], p=[[0.2, 0.8], [0.2, 0.8]])
    assert not Oracle(model).bind(None).independent(0, 1)
    assert Oracle(model, by="distribution").bind(None).independent(0, 1)
    parity = Oracle(lambda x, y, given: not given, names=["a", "b", "c"]).bind(None)
    assert parity.independent(0, 1)
    assert not parity.independent(0, 1, [2])
    chain = Oracle(mk.graphs.UndirectedGraph([("a", "b"), ("b", "c")])).bind(None)
    assert chain.independent(0, 2, [1])
    assert not chain.independent(0, 2)


def test_names_defaults_and_mistakes():
    frame = _frame(_codes())
    assert mk.independence_test(frame, "v0", "v1", test="chi-squared").test == "chi2"
    assert (
        mk.independence_test({"a": RANDOM.normal(size=20), "b": RANDOM.normal(size=20)}, "a", "b").test
        == "fisher-z"
    )
    assert mk.independence_test({"a": RANDOM.normal(size=20), "b": [0, 1] * 10}, "a", "b").test == "mixed"
    p = mk.independence_test(frame, "v0", "v2").p_value
    assert mk.independence_test(frame, "v0", "v2", alpha=0.9 * p).independent
    assert not mk.independence_test(frame, "v0", "v2", alpha=1.1 * p).independent
    with pytest.raises(mk.errors.InvalidArgument, match="there is no test"):
        mk.independence_test(frame, "v0", "v1", test="t")
    with pytest.raises(mk.errors.InvalidArgument, match="named twice"):
        mk.independence_test(frame, "v0", "v1", given="v0")
    with pytest.raises(mk.errors.InvalidArgument, match="alpha= is between"):
        mk.independence_test(frame, "v0", "v1", alpha=2.0)
    with pytest.raises(mk.errors.InvalidArgument, match="missing"):
        mk.independence_test({"a": [1, None, 2, 1], "b": [1, 2, 1, 2]}, "a", "b")


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_costly_tests_shared_out_give_the_same_answers(backend):
    from joblib import parallel_config

    rng = np.random.default_rng(13)
    mixed = read_mixed(pd.DataFrame(rng.normal(size=(40, 4)), columns=list("abcd")))
    one, two = bind_test("kci", mixed, mixed.names), bind_test("kci", mixed, mixed.names)
    two.jobs = 2
    queries = [(0, 1, ()), (0, 2, (3,)), (1, 2, (0, 3))]
    with parallel_config(backend=backend):
        shared = two.p_values(queries).tolist()
    assert one.p_values(queries).tolist() == pytest.approx(shared, rel=1e-9)
    assert two.n_made == 3
