"""Scores of families against direct computation, other libraries, and each other."""

from itertools import combinations, product
from math import lgamma

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.data.tables.reading_mixed import MixedTable, read_mixed
from markovia.data.tables.row_sources import CodedTable
from markovia.factors.tables.variable import Variable
from markovia.structure.score_graph import score_graph
from markovia.structure.scores import family_tables
from markovia.structure.scores.quotient_nml import MultinomialRegret
from markovia.structure.scores.scores import bind_score

TABLE_SCORES = ["bic", "aic", "bdeu", "k2", "log-likelihood", "qnml"]
SPRINKLER = mk.examples.sprinkler()
ROWS = SPRINKLER.sample(1500, seed=3)


def random_table(seed, n_rows=300, cards=(2, 3, 2, 4, 2), weights=False):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 3, n_rows)
    codes = np.array([(hidden * rng.integers(0, 2, n_rows) + rng.integers(0, c, n_rows)) % c for c in cards])
    variables = [Variable(f"v{i}", int(c)) for i, c in enumerate(cards)]
    w = rng.uniform(0.1, 3.0, n_rows) if weights else None
    table = CodedTable(variables, codes.astype(np.int32), w)
    return MixedTable([v.name for v in variables], ["discrete"] * len(cards), table, None)


def direct(mixed, child, parents, name):
    """The definitions, over dictionaries of counts."""
    table, cards = mixed.table, mixed.cards
    weights = np.ones(table.n_rows) if table.weights is None else table.weights
    cells, configs = {}, {}
    for row, w in zip(table.codes.T.tolist(), weights.tolist(), strict=True):
        at = tuple(row[p] for p in parents)
        cells[at, row[child]] = cells.get((at, row[child]), 0.0) + w
        configs[at] = configs.get(at, 0.0) + w
    r, q, n = float(cards[child]), float(np.prod([float(cards[p]) for p in parents])), float(weights.sum())
    likelihood = sum(v * np.log(v / configs[at]) for (at, _), v in cells.items())
    if name in ("bdeu", "k2"):
        a = 10.0 / (q * r) if name == "bdeu" else 1.0
        rows = sum(lgamma(a * r) - lgamma(a * r + v) for v in configs.values())
        return rows + sum(lgamma(a + v) - lgamma(a) for v in cells.values())
    if name == "qnml":
        regret = MultinomialRegret(round(n))
        return likelihood - regret(q * r) + regret(q)
    return likelihood - {"bic": np.log(n) / 2, "aic": 1.0, "log-likelihood": 0.0}[name] * (r - 1) * q


@pytest.fixture(params=["plain", "compiled"])
def way(request, monkeypatch):
    """Both ways to the sums over tables."""
    from markovia.kernels.structure import family_scores

    kernel = None if request.param == "plain" else family_scores
    monkeypatch.setattr(family_tables.FamilyTables, "_kernel", lambda self, seconds: kernel)
    return request.param


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", TABLE_SCORES)
def test_table_scores_are_what_their_definitions_say(way, name, weights):
    mixed = random_table(1, weights=weights)
    score = bind_score(name, mixed)
    families = [
        (c, p) for c in range(5) for k in range(5) for p in combinations([v for v in range(5) if v != c], k)
    ]
    found = score.many(families)
    assert len(families) == 80
    for family, value in zip(families, found.tolist(), strict=True):
        assert value == pytest.approx(direct(mixed, *family, name), rel=1e-10, abs=1e-9), family


@given(seed=st.integers(0, 10_000), n_rows=st.integers(1, 400))
@settings(max_examples=25, deadline=None)
def test_compiled_sums_equal_plain_ones_for_any_sizes(seed, n_rows):
    from markovia.kernels.structure import family_scores

    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 8, 6)
    mixed = random_table(seed, n_rows, cards, weights=bool(seed % 2))
    tables = family_tables.FamilyTables(mixed.table, mixed.names)
    groups = []
    for child in (-1, 0, 3):
        others = [v for v in range(6) if v != child]
        base = tuple(sorted(rng.choice(others, int(rng.integers(0, 4)), replace=False).tolist()))
        fresh = [v for v in others if v not in base]
        groups.append((child, base, np.array([*fresh, -1], dtype=np.int64)))
    packed = family_tables._Packed(mixed.table, mixed.names, mixed.cards)
    for kind in (0, 1, 2):
        compiled = packed.run(family_scores, groups, kind, 3.0)
        np.testing.assert_allclose(compiled, tables._plain(groups, kind, 3.0), rtol=1e-9, atol=1e-8)


def test_many_parents_and_many_states_need_no_large_table(way):
    cards = [2, 300, 7, 9, 11, 13, 5, 6, 8]
    mixed = random_table(5, 500, cards)
    score = bind_score("log-likelihood", mixed)
    for child, parents in [
        (0, (1, 2, 3, 4, 5, 6, 7, 8)),
        (1, (2, 3, 4)),
        (2, (0, 1)),
        (1, (0, 2, 3, 4, 5, 6, 7, 8)),
    ]:
        assert score.local(child, parents) == pytest.approx(direct(mixed, child, parents, "log-likelihood"))


def test_equal_rows_that_are_put_together_change_nothing(monkeypatch):
    from markovia.kernels.structure import family_scores

    mixed = random_table(2, 400, (2, 2, 3))
    groups = [(0, (1,), np.array([2, -1])), (2, (), np.array([0, 1]))]
    before = family_tables._Packed(mixed.table, mixed.names, mixed.cards)
    monkeypatch.setattr(family_tables, "MERGED_ROWS", 10)
    after = family_tables._Packed(mixed.table, mixed.names, mixed.cards)
    assert after.rows.codes.shape[1] <= 12 < before.rows.codes.shape[1]
    for kind in (0, 1, 2):
        np.testing.assert_allclose(
            after.run(family_scores, groups, kind, 1.0), before.run(family_scores, groups, kind, 1.0)
        )


def test_threads_share_families_without_changing_them(monkeypatch):
    from markovia.kernels.structure import family_scores

    mixed = random_table(3, 200, (2, 3, 2, 4, 2, 3, 2))
    packed = family_tables._Packed(mixed.table, mixed.names, mixed.cards)
    groups = [(c, (), np.array([v for v in range(7) if v != c])) for c in range(7)]
    monkeypatch.setenv("MARKOVIA_THREADS", "1")
    one = packed.run(family_scores, groups, 0, 0.0)
    monkeypatch.setenv("MARKOVIA_THREADS", "3")
    monkeypatch.setattr(family_tables, "SHARED_WORK", 1)
    assert len(packed._stretches(np.array([6] * 7))) > 2
    assert np.array_equal(packed.run(family_scores, groups, 0, 0.0), one)


@pytest.mark.parametrize("name", TABLE_SCORES)
def test_added_removed_and_many_agree(way, name):
    mixed = random_table(4)
    one, other = bind_score(name, mixed), bind_score(name, mixed)
    for child, base in [(0, ()), (2, (1,)), (3, (0, 4))]:
        free = [v for v in range(5) if v != child and v not in base]
        expected = [other.local(child, (*base, v)) for v in free]
        np.testing.assert_allclose(one.added(child, base, free), expected, rtol=1e-10)
        np.testing.assert_allclose(one.added(child, base, free[::-1]), expected[::-1], rtol=1e-10)
        assert one.local(child, (*base, free[0])) == pytest.approx(expected[0])
        for p, value in zip(base, one.removed(child, base), strict=True):
            assert value == pytest.approx(other.local(child, [b for b in base if b != p]))
    before = one.n_computed
    one.added(2, (1,), [0, 3])
    assert one.n_computed == before


def equivalent_pairs(n, seed):
    """Graphs, and others of their class made by reversing covered edges."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    parents = [set() for _ in range(n)]
    for i, j in combinations(range(n), 2):
        if rng.random() < 0.8:
            parents[order[j]].add(int(order[i]))
    other = [set(p) for p in parents]
    for _ in range(200):
        edges = [(t, h) for h in range(n) for t in other[h]]
        t, h = edges[rng.integers(len(edges))] if edges else (0, 0)
        if edges and other[h] == other[t] | {t}:
            other[h].discard(t)
            other[t].add(h)
    return parents, other


@pytest.mark.parametrize("name", ["bic", "aic", "bdeu", "log-likelihood", "qnml", "gaussian-bic", "cg-bic"])
def test_equivalent_graphs_score_the_same(name):
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(250, 5)) @ rng.normal(size=(5, 5))
    if name == "gaussian-bic":
        mixed = read_mixed({f"v{i}": latent[:, i] for i in range(5)})
    elif name == "cg-bic":
        columns = {f"v{i}": latent[:, i] for i in range(3)}
        mixed = read_mixed(columns | {"v3": latent[:, 3] > 0, "v4": np.digitize(latent[:, 4], [-1, 1])})
        assert mixed.kinds == ("continuous",) * 3 + ("discrete",) * 2
    else:
        mixed = random_table(7)
    score = bind_score(name, mixed)
    assert score.equivalent
    moved = 0
    for seed in range(12):
        one, other = equivalent_pairs(5, seed)
        moved += one != other
        assert score.total(one) == pytest.approx(score.total(other), rel=1e-10)
    assert moved >= 5


def test_k2_may_differ_between_equivalent_graphs():
    mixed = random_table(8, cards=(2, 4))
    score = bind_score("k2", mixed)
    assert not score.equivalent
    assert abs(score.total([(), (0,)]) - score.total([(1,), ()])) > 1e-6
    with pytest.raises(mk.errors.InvalidArgument, match="no difference of sums"):
        score.sets([(0,)])


@pytest.mark.parametrize("name", ["bdeu", "k2"])
def test_bayesian_scores_are_the_log_marginal_likelihood_of_the_fitted_model(name):
    made = mk.priors.BDeu(10.0) if name == "bdeu" else "k2"
    fitted = mk.BayesianNetwork(SPRINKLER.graph, states={v: SPRINKLER.states(v) for v in SPRINKLER.variables})
    fitted.fit(ROWS, prior=made)
    expected = fitted.posterior_.by_family()
    found = score_graph(SPRINKLER, ROWS, name, by_node=True)
    assert found == pytest.approx(expected)
    assert score_graph(SPRINKLER, ROWS, name) == pytest.approx(fitted.posterior_.log_marginal_likelihood)


def test_scores_equal_pgmpys():
    estimators = pytest.importorskip("pgmpy.estimators")
    frame = ROWS.astype(str)
    graph = SPRINKLER.graph
    for ours, theirs in [
        ("bic", estimators.BIC(frame)),
        ("aic", estimators.AIC(frame)),
        ("k2", estimators.K2(frame)),
        (mk.scores.BDeu(7.0), estimators.BDeu(frame, equivalent_sample_size=7)),
    ]:
        found = score_graph(graph, frame, ours, by_node=True)
        for node in graph.nodes:
            expected = theirs.local_score(node, list(graph.parents(node)))
            assert found[node] == pytest.approx(expected, rel=1e-9), (ours, node)


@pytest.mark.parametrize(("name", "use"), [("bic", "useScoreBIC"), ("k2", "useScoreK2")])
def test_scores_equal_pyagrums(name, use):
    gum = pytest.importorskip("pyagrum")
    frame = ROWS.astype(str)
    learner = gum.BNLearner(frame)
    getattr(learner, use)()
    learner.useNoPrior()
    graph = SPRINKLER.graph
    found = score_graph(graph, frame, name, by_node=True)
    for node in graph.nodes:
        # pyAgrum counts in bits, and its log-gamma has six digits
        expected = learner.score(node, list(graph.parents(node))) * np.log(2)
        assert found[node] == pytest.approx(expected, abs=1e-5), node


def multinomial_normaliser(n, k):
    total = 0.0
    for counts in product(range(n + 1), repeat=k):
        if sum(counts) == n:
            ways = lgamma(n + 1) - sum(lgamma(c + 1) for c in counts)
            total += np.exp(ways + sum(c * np.log(c / n) for c in counts if c))
    return np.log(total)


def test_the_multinomial_normaliser_is_exact_and_its_approximation_close(monkeypatch):
    from markovia.structure.scores import quotient_nml

    for n, k in [(1, 2), (3, 2), (4, 3), (6, 4), (3, 6)]:
        assert MultinomialRegret(n)(k) == pytest.approx(multinomial_normaliser(n, k))
    exact = MultinomialRegret(5000)
    value = exact(15_000)
    monkeypatch.setattr(quotient_nml, "EXACT_STATES", 100)
    assert MultinomialRegret(5000)(15_000) == pytest.approx(value, rel=1e-5)
    assert MultinomialRegret(0)(5) == 0.0


def regression_score(x, others, penalty=1.0, weights=None):
    w = np.ones(len(x)) if weights is None else weights
    design = np.column_stack([np.ones(len(x)), *others])
    root = np.sqrt(w)[:, None]
    beta = np.linalg.lstsq(design * root, x * root[:, 0], rcond=None)[0]
    n = w.sum()
    v = (w * (x - design @ beta) ** 2).sum() / n
    return -n / 2 * (np.log(2 * np.pi * v) + 1) - penalty * np.log(n) / 2 * (len(others) + 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_gaussian_bic_is_that_of_linear_regression(weighted):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(120, 5)) @ rng.normal(size=(5, 5)) + 100.0
    w = rng.uniform(0.5, 2.0, 120) if weighted else None
    mixed = read_mixed({f"v{i}": rows[:, i] for i in range(5)}, weights=w)
    score = bind_score(mk.scores.GaussianBIC(1.5), mixed)
    for child in range(5):
        others = [v for v in range(5) if v != child]
        for k in range(5):
            for parents in combinations(others, k):
                expected = regression_score(rows[:, child], [rows[:, p] for p in parents], 1.5, w)
                assert score.local(child, parents) == pytest.approx(expected, rel=1e-9)
        found = score.added(child, others[:2], others[2:])
        for v, value in zip(others[2:], found, strict=True):
            expected = regression_score(rows[:, child], [rows[:, p] for p in (*others[:2], v)], 1.5, w)
            assert value == pytest.approx(expected, rel=1e-9)


def test_gaussian_bic_names_constant_and_dependent_columns():
    x = np.random.default_rng(0).normal(size=50)
    with pytest.raises(mk.errors.InvalidArgument, match="'b' is constant"):
        bind_score("gaussian-bic", read_mixed({"a": x, "b": np.full(50, 0.1)}, continuous=True))
    score = bind_score("gaussian-bic", read_mixed({"a": x, "b": 2 * x + 1, "c": x**2}))
    with pytest.raises(mk.errors.InvalidArgument, match="linear function of 'b'"):
        score.local(0, [1])
    # a parent that another determines adds a parameter and nothing else
    assert score.local(2, [0, 1]) == pytest.approx(score.local(2, [0]) - np.log(50) / 2)
    assert score.added(2, [0], [1])[0] == pytest.approx(score.local(2, [0, 1]))
    with pytest.raises(mk.errors.InvalidArgument, match="needs numbers"):
        bind_score("gaussian-bic", read_mixed(ROWS))


def saturated(frame, discrete, continuous):
    """The conditional-Gaussian log-likelihood of a set of columns, configuration by configuration."""
    from scipy.stats import multivariate_normal

    n, total = len(frame), 0.0
    k = len(continuous)
    overall = np.atleast_2d(np.cov(frame[continuous].to_numpy().T, bias=True)) if k else None
    groups = [g for _, g in frame.groupby(discrete)] if discrete else [frame]
    for group in groups:
        total += len(group) * np.log(len(group) / n)
        if k:
            cells = group[continuous].to_numpy()
            own = np.atleast_2d(np.cov(cells.T, bias=True)) if len(group) >= 2 * k + 3 else overall
            total += multivariate_normal(cells.mean(axis=0), own).logpdf(cells).sum()
    return total


def test_conditional_gaussian_bic_is_the_ratio_of_saturated_models():
    rng = np.random.default_rng(4)
    n = 200
    d, e = rng.integers(0, 2, n), rng.choice(["p", "q", "r"], n, p=[0.55, 0.42, 0.03])
    x = d + rng.normal(size=n)
    y = x * np.where(d == 1, 2.0, -1.0) + 50 + rng.normal(size=n) * 0.3
    frame = pd.DataFrame({"d": d, "x": x, "e": e, "y": y})
    mixed = read_mixed(frame)
    assert mixed.kinds == ("discrete", "continuous", "discrete", "continuous")
    score = bind_score("cg-bic", mixed)
    assert (
        frame.groupby(["d", "e"]).size() < 7
    ).any()  # some configurations borrow the covariance of all rows
    states = {"d": 2, "e": 3}

    def of_set(names):
        counted, measured = [v for v in names if v in states], [v for v in names if v not in states]
        q, k = np.prod([states[v] for v in counted]), len(measured)
        return saturated(frame, counted, measured) - np.log(n) / 2 * (q - 1 + q * k * (k + 3) / 2)

    names = list(frame)
    for child in range(4):
        for k in range(4):
            for parents in combinations([v for v in range(4) if v != child], k):
                above = of_set([names[v] for v in sorted((child, *parents))])
                expected = above - (of_set([names[p] for p in parents]) if parents else 0.0)
                assert score.local(child, parents) == pytest.approx(expected, rel=1e-9), (child, parents)


def test_conditional_gaussian_bic_is_bic_and_gaussian_bic_where_columns_are_of_one_kind():
    mixed = random_table(9)
    one, other = bind_score("cg-bic", mixed), bind_score("bic", mixed)
    assert one.local(3, (0, 1)) == pytest.approx(other.local(3, (0, 1)))
    rows = np.random.default_rng(1).normal(size=(80, 3)) @ np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]])
    mixed = read_mixed({f"v{i}": rows[:, i] for i in range(3)})
    one, other = bind_score("cg-bic", mixed), bind_score("bic", mixed)
    assert other.name == "gaussian-bic"
    assert one.local(1, (0, 2)) == pytest.approx(other.local(1, (0, 2)))


@pytest.mark.parametrize("name", ["cg-bic", "gaussian-bic", "bic", "bdeu"])
def test_whole_weights_are_repeated_rows(name):
    rng = np.random.default_rng(6)
    times = rng.integers(1, 4, 60)
    if name in ("bic", "bdeu"):
        frame = pd.DataFrame({c: rng.integers(0, 3, 60) for c in "abc"})
    else:
        frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    if name == "cg-bic":
        frame["a"] = rng.integers(0, 2, 60)
    weighted = bind_score(name, read_mixed(frame, weights=times.astype(float)))
    repeated = bind_score(name, read_mixed(frame.loc[frame.index.repeat(times)].reset_index(drop=True)))
    for family in [(0, ()), (1, (0,)), (2, (0, 1)), (0, (1, 2))]:
        assert weighted.local(*family) == pytest.approx(repeated.local(*family))


def test_rows_in_a_file_are_counted_there_and_score_the_same(tmp_path):
    frame = ROWS.astype(str)
    frame.to_parquet(tmp_path / "rows.parquet")
    mixed = read_mixed(tmp_path / "rows.parquet", in_memory=False)
    assert not isinstance(mixed.table, CodedTable)
    for name in TABLE_SCORES:
        far, near = bind_score(name, mixed), bind_score(name, read_mixed(frame))
        order = [list(mixed.names).index(c) for c in frame]
        families = [(3, (0, 1)), (0, ()), (2, (0, 1, 3)), (1, (2,))]
        moved = [(order[c], tuple(sorted(order[p] for p in ps))) for c, ps in families]
        np.testing.assert_allclose(far.many(moved), near.many(families), rtol=1e-10)


def test_score_graph_takes_graphs_models_and_classes():
    bic = score_graph(SPRINKLER, ROWS)
    assert bic == score_graph(SPRINKLER.graph, ROWS, "bic")
    assert score_graph(mk.graphs.cpdag(SPRINKLER.graph), ROWS) == pytest.approx(bic)
    assert sum(score_graph(SPRINKLER, ROWS, by_node=True).values()) == pytest.approx(bic)
    found = mk.learn_structure(ROWS)
    assert score_graph(found, ROWS) == pytest.approx(found.score)
    with pytest.raises(mk.errors.InvalidArgument, match="directed graph or a model"):
        score_graph("a -> b", ROWS)


def test_wrong_settings_and_data_are_named():
    mixed = read_mixed(ROWS)
    for spec in (
        mk.scores.BDeu(0),
        mk.scores.BIC(-1),
        mk.scores.BDeu("ten"),
        mk.scores.GaussianBIC(float("nan")),
    ):
        with pytest.raises(mk.errors.InvalidArgument, match="is a number"):
            bind_score(spec, mixed)
    with pytest.raises(mk.errors.InvalidArgument, match="for discrete columns"):
        bind_score("bdeu", read_mixed({"a": [0.5, 1.5]}))
    with pytest.raises(mk.errors.InvalidArgument, match="cells of 'a' are missing"):
        bind_score("bic", read_mixed({"a": ["x", None, "y"], "b": [1, 2, 1]}))
    with pytest.raises(mk.errors.InvalidArgument, match="no score 'bicc'"):
        bind_score("bicc", mixed)
