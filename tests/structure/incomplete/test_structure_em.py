"""Structural EM: gaps and hidden variables, against enumeration and closed forms."""

from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.data.tables.reading_mixed import read_mixed
from markovia.structure.incomplete.mixed_completion import MixedCompletion
from markovia.structure.incomplete.table_completion import TableCompletion
from markovia.structure.scores.scores import bind_score


def with_gaps(rows, rate, seed):
    rng = np.random.default_rng(seed)
    return rows.astype(object).mask(rng.random(rows.shape) < rate)


SPRINKLER = mk.examples.sprinkler().sample(1500, seed=1)


def completion(rows, draws=None, seed=0, tolerance=1e-8):
    table = read_mixed(rows).codes()
    return TableCompletion(
        table, list(table.variables.values()), draws, np.random.default_rng(seed), tolerance
    )


def test_completed_rows_have_the_expected_counts_of_any_family():
    rows = with_gaps(SPRINKLER.iloc[:60], 0.3, 2)
    own = completion(rows)
    parents = [(), (0,), (0,), (1, 2)]
    now = own.improved(own.start(parents, False))
    data = own.completed(now)
    names = list(rows.columns)
    tables = [t.values for t in now.tables]
    states = [list(v.states) for v in own.variables]
    for scope in [(0, 3), (1, 2), (0, 1, 2, 3), (2,)]:
        expected = np.zeros([len(states[k]) for k in scope])
        for _, row in rows.iterrows():
            mass, parts = 0.0, []
            choices = [[s for s in states[k] if pd.isna(row[n]) or row[n] == s] for k, n in enumerate(names)]
            for values in product(*choices):
                codes = [states[k].index(v) for k, v in enumerate(values)]
                p = np.prod([tables[k][tuple(codes[q] for q in (*parents[k], k))] for k in range(4)])
                mass += p
                parts.append((codes, p))
            for codes, p in parts:
                expected[tuple(codes[k] for k in scope)] += p / mass
        assert np.allclose(data.table.counts([[names[k] for k in scope]])[0], expected)


def test_draws_come_close_to_all_completions():
    rows = with_gaps(SPRINKLER, 0.2, 3)
    exact, drawn = completion(rows), completion(rows, draws=60, seed=1)
    parents = [(), (0,), (0,), (1, 2)]
    now = exact.improved(exact.start(parents, False))
    names = list(rows.columns)
    a = exact.completed(now).table.counts([names])[0]
    b = drawn.completed(now).table.counts([names])[0]
    assert a.sum() == pytest.approx(b.sum())
    assert np.abs(a - b).max() < 0.01 * a.sum()


def test_without_gaps_it_is_hill_climbing():
    found = mk.learn_structure(SPRINKLER, "structural-em")
    plain = mk.learn_structure(SPRINKLER, "hill-climb")
    assert found.score == pytest.approx(plain.score, abs=1e-4)
    assert found.score_name == "bic"


@pytest.mark.parametrize("score", ["bic", "aic"])
def test_the_score_of_the_observed_cells_never_falls(score):
    for seed in range(3):
        bn = mk.BayesianNetwork("a->b; a->c; b->d; c->d; d->e", tables="random", seed=seed)
        rows = with_gaps(bn.sample(600, seed=seed), 0.25, seed)
        found = mk.learn_structure(rows, "structural-em", score=score, seed=seed)
        values = [step.score for step in found.path]
        assert all(b >= a - 1e-6 * abs(a) for a, b in pairwise(values))
        assert values[-1] == pytest.approx(found.score)
        assert found.details.converged
        assert len(values) > 1


def test_the_score_is_the_likelihood_of_the_fitted_network_minus_the_penalty():
    rows = with_gaps(SPRINKLER, 0.2, 4)
    found = mk.learn_structure(rows, "structural-em", tolerance=1e-9)
    model = mk.BayesianNetwork(found.dag).fit(rows, missing=mk.EM(tolerance=1e-10), prior=None)
    assert found.details.log_likelihood == pytest.approx(model.fit_.log_likelihood, abs=1e-2)
    free = model.fit_.n_parameters
    assert found.score == pytest.approx(model.fit_.log_likelihood - np.log(len(rows)) / 2 * free, abs=1e-2)


def test_gaps_keep_the_graph_of_the_sprinkler():
    rows = with_gaps(mk.examples.sprinkler().sample(4000, seed=5), 0.15, 5)
    found = mk.learn_structure(rows, "structural-em")
    assert mk.graphs.i_equivalent(found.dag, mk.examples.sprinkler().graph)
    assert found.details.exact


def test_a_hidden_variable_explains_what_hangs_together():
    bn = mk.BayesianNetwork()
    bn.add("h", states=[0, 1], p=[0.5, 0.5])
    for name in "abcd":
        bn.add(name, states=[0, 1], parents=["h"], p=[[0.9, 0.1], [0.15, 0.85]])
    rows = bn.sample(3000, seed=1).drop(columns="h")
    found = mk.learn_structure(rows, "structural-em", latent={"h": 2}, restarts=2, seed=0)
    assert sorted(tuple(sorted(e)) for e in found.skeleton.edges) == [(n, "h") for n in "abcd"]
    without = mk.learn_structure(rows, "exact")
    assert found.score > without.score
    assert found.details.latent == {"h": [0, 1]}


def test_knowledge_and_a_start_are_obeyed():
    rows = with_gaps(SPRINKLER, 0.1, 6)
    known = {
        "required": [("wet", "cloudy")],
        "forbidden": [("cloudy", "rain"), ("rain", "cloudy")],
        "max_parents": 2,
    }
    found = mk.learn_structure(rows, "structural-em", **known)
    assert ("wet", "cloudy") in found.edges
    assert not found.skeleton.has_edge("cloudy", "rain")
    assert max(len(found.dag.parents(n)) for n in found.nodes) <= 2
    begun = mk.learn_structure(rows, "structural-em", start=[("rain", "wet")], max_iterations=1)
    assert begun.path[0].move == "graph with 1 edges"
    with pytest.raises(mk.errors.InvalidArgument, match="not allowed"):
        mk.learn_structure(rows, "structural-em", start=[("cloudy", "rain")], forbidden=[("cloudy", "rain")])


def test_wrong_options_are_named():
    with pytest.raises(mk.errors.InvalidArgument, match="have a column of that name"):
        mk.learn_structure(SPRINKLER, "structural-em", latent={"rain": 2})
    with pytest.raises(mk.errors.InvalidArgument, match="restarts= is a whole number"):
        mk.learn_structure(SPRINKLER, "structural-em", restarts=0)
    with pytest.raises(mk.errors.InvalidArgument, match="latent= maps names"):
        mk.learn_structure(SPRINKLER, "structural-em", latent=["h"])


def gaussian_rows(n, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 0.9 * a + rng.normal(size=n) * 0.6
    c = -0.8 * b + rng.normal(size=n) * 0.7
    return pd.DataFrame({"a": a, "b": b, "c": c})


def test_the_moments_of_missing_gaussian_cells_are_exact():
    rows = gaussian_rows(50, 1)
    gaps = rows.mask(np.random.default_rng(1).random(rows.shape) < 0.3).dropna(how="all")
    own = MixedCompletion(read_mixed(gaps, continuous=True), [], np.random.default_rng(0), 1e-10)
    now = own.improved(own.start([(), (0,), (0, 1)], False))
    data = own.completed(now)
    mean, cov = own._joint(now, np.empty((0, 0), dtype=int)[:, 0:0].reshape(0))
    first, second, value = np.zeros(3), np.zeros((3, 3)), 0.0
    for x in gaps.to_numpy():
        seen, gone = np.flatnonzero(~np.isnan(x)), np.flatnonzero(np.isnan(x))
        inner = cov[np.ix_(seen, seen)]
        off = x[seen] - mean[seen]
        value -= 0.5 * (np.linalg.slogdet(2 * np.pi * inner)[1] + off @ np.linalg.solve(inner, off))
        full, extra = x.copy(), np.zeros((3, 3))
        gain = cov[np.ix_(gone, seen)] @ np.linalg.inv(inner)
        full[gone] = mean[gone] + gain @ off
        extra[np.ix_(gone, gone)] = cov[np.ix_(gone, gone)] - gain @ cov[np.ix_(seen, gone)]
        first += full
        second += np.outer(full, full) + extra
    assert np.allclose(data.weights @ data.matrix, first)
    assert np.allclose((data.matrix * data.weights[:, None]).T @ data.matrix, second)
    assert now.log_likelihood == pytest.approx(value)


def test_em_of_a_full_gaussian_graph_is_the_em_of_a_gaussian():
    gaps = gaussian_rows(80, 2).mask(np.random.default_rng(2).random((80, 3)) < 0.2).dropna(how="all")
    x = gaps.to_numpy()
    mean, cov = np.nanmean(x, axis=0), np.diag(np.nanvar(x, axis=0))
    for _ in range(100):
        s1, s2 = np.zeros(3), np.zeros((3, 3))
        for row in x:
            seen, gone = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
            gain = cov[np.ix_(gone, seen)] @ np.linalg.inv(cov[np.ix_(seen, seen)])
            full, extra = row.copy(), np.zeros((3, 3))
            full[gone] = mean[gone] + gain @ (row[seen] - mean[seen])
            extra[np.ix_(gone, gone)] = cov[np.ix_(gone, gone)] - gain @ cov[np.ix_(seen, gone)]
            s1 += full
            s2 += np.outer(full, full) + extra
        mean, cov = s1 / len(x), s2 / len(x) - np.outer(s1, s1) / len(x) ** 2
    own = MixedCompletion(read_mixed(gaps, continuous=True), [], np.random.default_rng(0), 1e-13)
    now = own.improved(own.start([(), (0,), (0, 1)], False))
    ours_mean, ours_cov = own._joint(now, np.empty(0, dtype=int))
    assert np.allclose(ours_mean, mean, atol=1e-4)
    assert np.allclose(ours_cov, cov, atol=1e-4)


def test_gaussian_gaps_keep_the_graph():
    rows = gaussian_rows(1500, 3)
    gaps = rows.mask(np.random.default_rng(3).random(rows.shape) < 0.2)
    found = mk.learn_structure(gaps, "structural-em")
    assert found.skeleton.edges == [("a", "b"), ("b", "c")]
    values = [step.score for step in found.path]
    assert all(b >= a - 1e-6 * abs(a) for a, b in pairwise(values))
    whole = mk.learn_structure(rows, "structural-em")
    assert whole.score == pytest.approx(mk.learn_structure(rows, "hill-climb").score, abs=1e-3)


def mixed_rows(n, seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    size = 2.0 * group + rng.normal(size=n)
    weight = 0.8 * size + rng.normal(size=n) * 0.5
    return pd.DataFrame({"group": np.array(["x", "y"])[group], "size": size, "weight": weight})


def test_mixed_gaps_keep_the_graph_and_the_score_never_falls():
    rows = mixed_rows(1200, 4)
    gaps = rows.mask(np.random.default_rng(4).random(rows.shape) < 0.2)
    found = mk.learn_structure(gaps, "structural-em")
    assert found.score_name == "cg-bic"
    assert found.skeleton.edges == [("group", "size"), ("size", "weight")]
    assert ("group", "size") in found.edges
    values = [step.score for step in found.path]
    assert all(b >= a - 1e-6 * abs(a) for a, b in pairwise(values))


def test_the_posterior_of_a_missing_state_weighs_the_measurements():
    rows = mixed_rows(200, 5)
    gaps = rows.copy()
    gaps.loc[:60, "group"] = None
    mixed = read_mixed(gaps)
    own = MixedCompletion(mixed, [], np.random.default_rng(0), 1e-9)
    now = own.improved(own.start([(), (0,), (1,)], False))
    data = own.completed(now)
    size, weight = now.pieces[1], now.pieces[2]
    p = now.pieces[0][0]
    total = np.zeros(2)
    for k in range(61):
        x, y = gaps.loc[k, "size"], gaps.loc[k, "weight"]
        like = p * np.exp(-0.5 * (x - size.intercept) ** 2 / size.variance) / np.sqrt(size.variance)
        total += like / like.sum()
        assert np.isfinite(y)
    assert weight.slope.shape == (1, 1)
    known = (gaps["group"][61:] == "y").sum()
    expected = [139 - known + total[0], known + total[1]]
    assert np.allclose(data.table.counts([["group"]])[0], expected)


def test_the_expected_score_is_that_of_the_moments():
    gaps = gaussian_rows(200, 6).mask(np.random.default_rng(6).random((200, 3)) < 0.2)
    own = MixedCompletion(read_mixed(gaps, continuous=True), [], np.random.default_rng(0), 1e-9)
    now = own.improved(own.start([(), (0,), (0, 1)], False))
    data = own.completed(now)
    score = bind_score("gaussian-bic", data)
    free = 2 + 3 + 4
    expected = own.complete_log_likelihood(now.parents, data) - np.log(200) / 2 * free
    assert score.total(now.parents) == pytest.approx(expected)
