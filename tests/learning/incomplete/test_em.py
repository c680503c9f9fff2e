"""Missing cells and hidden variables: EM against enumeration, its identities, and independent libraries."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config

import markovia as mk
from markovia.data.tables.reading import read_data
from markovia.learning.incomplete.e_step import ExpectedCounter
from markovia.learning.incomplete.em import EM, run_em, starting_tables
from markovia.learning.tables.priors import as_prior
from markovia.learning.tables.table_learner import NodeFamily, TableLearner
from model_strategies import bayesian_networks

pytestmark = pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")


def holes(frame, rng, rate):
    """The frame with cells missing at random."""
    return frame.astype(object).mask(rng.random(frame.shape) < rate)


def hidden_rows(bn, n, rng, rate=0.35, latent=0):
    """Rows drawn from a network, with holes and with some columns gone; and the names of those."""
    gone = [str(x) for x in rng.permutation(bn.variables)[:latent]]
    frame = holes(bn.sample(n, seed=int(rng.integers(2**32))), rng, rate)
    return frame.drop(columns=gone), gone


def by_enumeration(bn, tables, frame, weights):
    """Expected counts, log likelihood and each row's posterior: every completion of every row, by plain loops."""
    names = bn.variables
    states = {n: bn.states(n) for n in names}
    counts = {n: np.zeros_like(tables[n]) for n in names}
    total, entropy = 0.0, 0.0
    for row, weight in zip(frame.to_dict("records"), weights, strict=True):
        choices = [
            [states[n].index(row[n])] if n in row and not pd.isna(row[n]) else range(len(states[n]))
            for n in names
        ]
        found = []
        for codes in product(*choices):
            at = dict(zip(names, codes, strict=True))
            cells = [(n, (*(at[q] for q in bn.parents(n)), at[n])) for n in names]
            found.append((cells, np.prod([tables[n][cell] for n, cell in cells])))
        mass = sum(p for _, p in found)
        total += weight * np.log(mass)
        for cells, p in found:
            if p > 0:
                entropy -= weight * p / mass * np.log(p / mass)
            for n, cell in cells:
                counts[n][cell] += weight * p / mass
    return counts, total, entropy


def estimated(counts, pseudo):
    tables = {}
    for n, count in counts.items():
        full = count + pseudo
        sums = full.sum(axis=-1, keepdims=True)
        tables[n] = np.where(sums > 0, full / np.where(sums > 0, sums, 1), 1 / full.shape[-1])
    return tables


@settings(max_examples=25, deadline=None)
@given(
    bayesian_networks(max_nodes=5),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2),
    st.sampled_from([0.0, 0.7]),
    st.booleans(),
)
def test_every_step_is_that_of_enumeration(bn, seed, latent, pseudo, weighted):
    rng = np.random.default_rng(seed)
    frame, gone = hidden_rows(bn, 12, rng, latent=min(latent, len(bn) - 1))
    weights = rng.random(12) + 0.1 if weighted else np.ones(12)
    tables = {n: bn[n].values for n in bn.variables}
    objectives = []
    for _ in range(3):
        counts, _, _ = by_enumeration(bn, tables, frame, weights)
        tables = estimated(counts, pseudo)
        after, total, entropy = by_enumeration(bn, tables, frame, weights)
        logs = sum(np.log(t[t > 0]).sum() for t in tables.values()) if pseudo else 0.0
        objectives.append(total + pseudo * logs)
    em = EM(start="current", max_iterations=3, tolerance=0.0, accelerate=False)
    fitted = bn.copy().fit(
        frame,
        missing=em,
        latent=gone,
        prior=pseudo or None,
        weights=weights if weighted else None,
    )
    fit = fitted.fit_
    if fit.method == "counting":  # nothing was missing
        assert not gone
        assert not frame.isna().any().any()
        return
    assert np.allclose(fit.history, objectives[: len(fit.history)], rtol=1e-10, atol=1e-9)
    if len(fit.history) == 3:
        for n in bn.variables:
            assert np.allclose(fitted[n].values, tables[n], atol=1e-9)
        assert np.isclose(fit.details["entropy"], entropy, atol=1e-7)
        assert np.isclose(fit.log_likelihood, total, rtol=1e-10, atol=1e-9)
        for n in bn.variables:
            with np.errstate(divide="ignore", invalid="ignore"):
                part = np.where(after[n] > 0, after[n] * np.log(tables[n]), 0.0).sum()
            assert np.isclose(fit.by_family[n], part, atol=1e-8)
    assert np.isclose(fit.log_likelihood, weights @ fitted.log_prob(frame), rtol=1e-10, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    bayesian_networks(max_nodes=12, max_states=4, zeros=False),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.1, 0.6, 0.95]),
    st.integers(0, 4),
    st.sampled_from([None, "bdeu", 0.5]),
    st.sampled_from(["auto", "random", "available"]),
)
def test_the_objective_never_falls_and_is_the_likelihood_of_the_rows(bn, seed, rate, latent, prior, start):
    rng = np.random.default_rng(seed)
    frame, gone = hidden_rows(bn, 40, rng, rate, min(latent, len(bn) - 1))
    fitted = bn.copy().fit(
        frame, missing=EM(start=start, max_iterations=15, seed=seed % 1000), latent=gone, prior=prior
    )
    fit = fitted.fit_
    steps = np.array([fit.details["start_objective"], *fit.history]) if fit.method == "em" else np.zeros(1)
    assert (np.diff(steps) >= -1e-9 * np.maximum(1.0, np.abs(steps[1:]))).all()
    assert np.isclose(fit.log_likelihood, fitted.log_prob(frame).sum(), rtol=1e-9)
    for name, n in zip(fitted.variables, mk.learning.expected_counts(fitted, frame).counts, strict=True):
        assert np.isclose(n.sum(), 40)
        posterior = fitted.marginals(given=frame)[name].sum().to_numpy() if name in gone else None
        if posterior is not None:
            assert np.allclose(n.reshape(-1, n.shape[-1]).sum(axis=0), posterior, atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(bayesian_networks(max_nodes=5, zeros=False), st.integers(0, 2**32 - 1))
def test_the_free_energy_bounds_the_likelihood_and_is_tight_after_the_e_step(bn, seed):
    rng = np.random.default_rng(seed)
    frame, _ = hidden_rows(bn, 10, rng)
    other = mk.BayesianNetwork()
    for n in bn.variables:
        rows = rng.dirichlet(np.ones(len(bn.states(n))), size=bn[n].values.shape[:-1])
        other.add(n, states=bn.states(n), parents=bn.parents(n), p=rows)
    here = mk.learning.expected_counts(bn, frame)
    tight = sum(here.by_family.values()) + here.entropy
    assert np.isclose(tight, bn.log_prob(frame).sum(), rtol=1e-10)
    counts, total, entropy = by_enumeration(bn, {n: bn[n].values for n in bn.variables}, frame, np.ones(10))
    assert np.isclose(here.entropy, entropy, atol=1e-8)
    assert np.isclose(here.log_likelihood, total)
    elsewhere = sum(
        (n * np.log(other[name].values)).sum() for name, n in zip(bn.variables, here.counts, strict=True)
    )
    assert elsewhere + here.entropy <= other.log_prob(frame).sum() + 1e-9
    for name, n in zip(bn.variables, here.counts, strict=True):
        assert np.allclose(n, counts[name], atol=1e-9)


def test_a_hidden_chain_gets_the_counts_of_forward_and_backward():
    rng = np.random.default_rng(3)
    length, k, symbols = 28, 4, 3
    start, move = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), size=k)
    show = rng.dirichlet(np.ones(symbols), size=k)
    bn = mk.BayesianNetwork()
    for t in range(length):
        bn.add(f"z{t}", states=k, parents=[f"z{t - 1}"] if t else [], p=move if t else start)
        bn.add(f"x{t}", states=symbols, parents=[f"z{t}"], p=show)
    frame = bn.sample(30, seed=5)[[f"x{t}" for t in range(length)]]
    found = mk.learning.expected_counts(bn, frame)
    counts = dict(zip(bn.variables, found.counts, strict=True))
    pairs = np.zeros((length - 1, k, k))
    total = 0.0
    for row in frame.to_numpy(dtype=int):
        forward = np.empty((length, k))
        backward = np.ones((length, k))
        forward[0] = start * show[:, row[0]]
        for t in range(1, length):
            forward[t] = forward[t - 1] @ move * show[:, row[t]]
        for t in range(length - 2, -1, -1):
            backward[t] = move @ (show[:, row[t + 1]] * backward[t + 1])
        mass = forward[-1].sum()
        total += np.log(mass)
        for t in range(length - 1):
            pairs[t] += np.outer(forward[t], show[:, row[t + 1]] * backward[t + 1]) * move / mass
    assert np.isclose(found.log_likelihood, total, rtol=1e-12)
    for t in range(length - 1):
        assert np.allclose(counts[f"z{t + 1}"], pairs[t], atol=1e-10)


def test_hundreds_of_children_of_a_hidden_class_do_not_underflow():
    rng = np.random.default_rng(0)
    bn = mk.BayesianNetwork()
    bn.add("z", states=2, p=[0.3, 0.7])
    for i in range(400):
        bn.add(f"x{i}", states=8, parents=["z"], p=rng.dirichlet(np.full(8, 0.3), size=2))
    rows = bn.sample(5, seed=0).drop(columns="z")
    found = mk.learning.expected_counts(bn, rows)
    logs = np.log([0.3, 0.7]) + sum(
        np.log(bn[f"x{i}"].values[:, rows[f"x{i}"].to_numpy(dtype=int)].T) for i in range(400)
    )
    top = logs.max(axis=1)
    assert np.isclose(found.log_likelihood, (np.log(np.exp(logs - top[:, None]).sum(axis=1)) + top).sum())


def test_latent_classes_are_recovered():
    truth = mk.BayesianNetwork()
    truth.add("z", states=2, p=[0.35, 0.65])
    rates = [(0.9, 0.2), (0.15, 0.8), (0.85, 0.3), (0.2, 0.7), (0.75, 0.1)]
    for i, (a, b) in enumerate(rates):
        truth.add(f"x{i}", states=2, parents=["z"], p=[[1 - a, a], [1 - b, b]])
    frame = truth.sample(20_000, seed=11).drop(columns="z")
    bn = mk.BayesianNetwork("z->x0; z->x1; z->x2; z->x3; z->x4")
    bn.fit(frame, latent={"z": 2}, missing=mk.EM(restarts=3, seed=0, tolerance=1e-9, max_iterations=3000))
    found = np.array([bn[f"x{i}"].values[:, 1] for i in range(5)])
    if found[0, 0] < found[0, 1]:
        found = found[:, ::-1]
    assert np.abs(found - np.array(rates)).max() < 0.04
    assert bn.fit_.log_likelihood >= truth.log_prob(frame).sum()
    assert bn.fit_.details["hidden"] == ["z"]
    assert max(bn.fit_.details["restarts"]) == bn.fit_.details["objective"]
    assert bn.fit_.missing_cells == 0


def test_missing_at_random_is_corrected_where_dropping_rows_is_not():
    truth = mk.BayesianNetwork()
    truth.add("a", states=2, p=[0.5, 0.5])
    truth.add("b", states=2, parents=["a"], p=[[0.9, 0.1], [0.3, 0.7]])
    frame = truth.sample(40_000, seed=1).astype(object)
    gone = (frame["b"] == 1) & (np.random.default_rng(0).random(len(frame)) < 0.8)
    frame.loc[gone, "a"] = None
    em = mk.BayesianNetwork("a->b").fit(frame, missing=mk.EM(tolerance=1e-10))
    dropped = mk.BayesianNetwork("a->b").fit(frame, missing="drop")
    assert abs(em["a"].values[1] - 0.5) < 0.02
    assert abs(dropped["a"].values[1] - 0.5) > 0.1
    whole = mk.BayesianNetwork("a->b").fit(frame.dropna())
    for n in "ab":
        assert np.allclose(dropped[n].values, whole[n].values)
    with pytest.raises(mk.errors.InvalidArgument, match="missing='em' uses every cell"):
        mk.BayesianNetwork("a->b").fit(frame, missing="error")


def test_weights_are_repeated_rows_and_rows_of_weight_zero_do_not_matter():
    bn = mk.examples.sprinkler()
    frame = holes(bn.sample(60, seed=2), np.random.default_rng(2), 0.3)
    times = np.random.default_rng(0).integers(0, 4, size=60)
    once = bn.copy().fit(frame, weights=times.astype(float), missing=EM(tolerance=0, max_iterations=20))
    repeated = bn.copy().fit(
        frame.loc[np.repeat(frame.index, times)], missing=EM(tolerance=0, max_iterations=20)
    )
    for n in bn.variables:
        assert np.allclose(once[n].values, repeated[n].values, atol=1e-10)
    assert np.isclose(once.fit_.log_likelihood, repeated.fit_.log_likelihood)


def test_fixed_tables_stay():
    bn = mk.examples.sprinkler()
    frame = holes(bn.sample(200, seed=2), np.random.default_rng(2), 0.3)
    fitted = bn.copy().fit(frame, fixed=["rain", "cloudy"])
    assert np.array_equal(fitted["rain"].values, bn["rain"].values)
    assert not np.array_equal(fitted["wet"].values, bn["wet"].values)
    certain = mk.BayesianNetwork()
    certain.add("a", states=2, p=[1.0, 0.0])
    certain.add("b", states=2, parents=["a"], p=[[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(mk.errors.ImpossibleEvidence, match="'a' stays fixed"):
        certain.fit({"a": [0, 1], "b": [0, None]}, fixed="a")
    certain.add("c", states=2, parents=["b"], p=[[1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(mk.errors.ImpossibleEvidence, match="row 1 has probability zero"):
        certain.fit({"a": [0, 0], "b": [0, None], "c": [0, 1]}, missing=EM(start="current"))
    assert certain.fit_ is None


def test_hidden_variables_must_be_named_and_have_states():
    frame = {"x": [0, 1, 1], "y": [0, 1, 0]}
    bn = mk.BayesianNetwork("z->x; z->y")
    with pytest.raises(mk.errors.UnknownVariable, match=r"unknown variable 'z' in the data.*latent=\['z'\]"):
        bn.fit(frame)
    with pytest.raises(mk.errors.InvalidArgument, match="nobody stated the states of 'z'"):
        bn.fit(frame, latent=["z"])
    with pytest.raises(mk.errors.InvalidArgument, match="hidden variables are learned by EM"):
        bn.fit(frame, latent={"z": 2}, missing="drop")
    with pytest.raises(mk.errors.InvalidArgument, match="missing= is 'em'"):
        bn.fit(frame, latent={"z": 2}, missing="guess")
    assert bn.fit(frame, latent={"z": ["lo", "hi"]}).states("z") == ["lo", "hi"]
    with pytest.raises(mk.errors.InvalidArgument, match="already known"):
        bn.fit(frame, latent={"z": 3})
    with pytest.raises(mk.errors.InvalidArgument, match="restarts"):
        mk.EM(restarts=0)
    with pytest.raises(mk.errors.InvalidArgument, match="start="):
        mk.EM(start="middle")


def naive(n, k=3, seed=0):
    rng = np.random.default_rng(seed)
    bn = mk.BayesianNetwork()
    bn.add("z", states=k, p=rng.dirichlet(np.ones(k)))
    for i in range(4):
        bn.add(f"x{i}", states=3, parents=["z"], p=rng.dirichlet(np.full(3, 0.5), size=k))
    return bn, bn.sample(n, seed=seed).drop(columns="z")


def test_the_best_restart_is_kept_and_seeds_repeat_it():
    bn, frame = naive(300)
    em = mk.EM(restarts=4, seed=7, start="random", max_iterations=30)
    first = bn.copy().fit(frame, latent="z", missing=em)
    again = bn.copy().fit(frame, latent="z", missing=em)
    with parallel_config(backend="threading"):
        elsewhere = bn.copy().fit(frame, latent="z", missing=replace(em, n_jobs=2))
    for other in (again, elsewhere):
        assert np.array_equal(first["z"].values, other["z"].values)
        assert first.fit_.details["restarts"] == other.fit_.details["restarts"]
    assert len(set(first.fit_.details["restarts"])) > 1
    assert first.fit_.details["objective"] == max(first.fit_.details["restarts"])


def test_the_answer_does_not_depend_on_the_number_of_threads(monkeypatch):
    bn, frame = naive(3000, k=5)
    rng = np.random.default_rng(0)
    frame = holes(frame, rng, 0.2)
    em = mk.EM(seed=7, max_iterations=5)
    monkeypatch.setattr("markovia.learning.incomplete.incomplete_rows.QUICK", 0.0)
    monkeypatch.setenv("MARKOVIA_THREADS", "1")
    one = bn.copy().fit(frame, latent="z", missing=em)
    monkeypatch.setenv("MARKOVIA_THREADS", "3")
    three = bn.copy().fit(frame, latent="z", missing=em)
    assert np.array_equal(one["z"].values, three["z"].values)


def test_a_run_that_does_not_converge_says_so():
    bn, frame = naive(100)
    with pytest.warns(
        mk.errors.ConvergenceWarning, match="still gained after 2 steps; raise max_iterations="
    ):
        bn.fit(frame, latent="z", missing=mk.EM(max_iterations=2, tolerance=1e-12, seed=0))
    assert not bn.fit_.converged
    assert bn.fit_.iterations == 2
    assert "did NOT converge" in str(bn.fit_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bn.fit(frame, latent="z", missing=mk.EM(seed=0))
    assert bn.fit_.converged


def test_an_interrupted_run_keeps_what_it_has(monkeypatch):
    bn, frame = naive(100)
    calls = []
    expect = ExpectedCounter.expect

    def interrupted(self, tables):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return expect(self, tables)

    monkeypatch.setattr(ExpectedCounter, "expect", interrupted)
    bn.fit(frame, latent="z", missing=mk.EM(seed=0, restarts=3, tolerance=0.0, max_iterations=50))
    assert bn.fit_.iterations == 2
    assert not bn.fit_.converged
    assert bn.fit_.details["interrupted"]
    monkeypatch.undo()
    assert np.isclose(bn.fit_.log_likelihood, bn.log_prob(frame).sum())


def test_extrapolated_steps_lead_to_the_same_maximum_in_fewer():
    bn, frame = naive(2000)
    em = mk.EM(tolerance=1e-12, max_iterations=20_000, start="current")
    quick = bn.copy().fit(frame, latent="z", missing=em)
    plain = bn.copy().fit(frame, latent="z", missing=replace(em, accelerate=False))
    assert quick.fit_.iterations < plain.fit_.iterations / 2
    assert abs(quick.fit_.log_likelihood - plain.fit_.log_likelihood) < 1e-3
    assert (np.diff(quick.fit_.history) >= -1e-9).all()


def test_an_interruption_of_a_later_restart_keeps_the_earlier_ones(monkeypatch):
    bn, frame = naive(100)
    one = bn.copy().fit(frame, latent="z", missing=mk.EM(seed=0, start="random", max_iterations=5))
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run_em(*arguments)

    monkeypatch.setattr("markovia.learning.incomplete.em.run_em", interrupted)
    bn.fit(frame, latent="z", missing=mk.EM(seed=0, start="random", restarts=3, max_iterations=5))
    assert len(bn.fit_.details["restarts"]) == 1
    assert not bn.fit_.converged
    assert bn.fit_.log_likelihood > -np.inf
    assert one.fit_.iterations == bn.fit_.iterations


def test_coded_rows_are_found_by_name_and_hidden_columns_are_not_looked_at():
    bn = mk.examples.sprinkler()
    frame = holes(bn.sample(60, seed=2), np.random.default_rng(2), 0.3)
    names = ["wet", "rain", "sprinkler", "cloudy"]
    coded = read_data(frame, names, variables={n: bn.variable(n) for n in names})
    em = EM(start="current")
    for latent in ((), "rain"):
        ours = bn.copy().fit(coded, missing=em, latent=latent)
        theirs = bn.copy().fit(frame.drop(columns=latent or []), missing=em, latent=latent)
        for n in names:
            assert np.allclose(ours[n].values, theirs[n].values)
        assert (ours.fit_.details["hidden"] == ["rain"]) == bool(latent)
    part = read_data(frame, names[:3], variables={n: bn.variable(n) for n in names})
    with pytest.raises(mk.errors.UnknownVariable, match=r"latent=\['cloudy'\]"):
        bn.copy().fit(part)


@settings(max_examples=20, deadline=None)
@given(bayesian_networks(max_nodes=5, zeros=False), st.integers(0, 2**32 - 1))
def test_hard_em_counts_the_most_probable_completions(bn, seed):
    frame, _ = hidden_rows(bn, 10, np.random.default_rng(seed))
    if not frame.isna().any().any():
        return
    fitted = bn.copy().fit(frame, missing=EM(start="current", hard=True, max_iterations=1, tolerance=0.0))
    filled = bn.impute(frame)
    assert not filled.isna().any().any()
    by_hand = bn.copy().fit(filled)
    for n in bn.variables:
        assert np.allclose(fitted[n].values, by_hand[n].values)
    best = 0.0
    for row in frame.to_dict("records"):
        best += bn.map(given={n: s for n, s in row.items() if not pd.isna(s)}).log_prob if _open(row) else 0.0
        best += 0.0 if _open(row) else bn.log_prob([row])[0]
    assert np.isclose(bn.log_prob(filled).sum(), best)


def _open(row):
    return any(pd.isna(s) for s in row.values())


def test_draws_for_missing_cells_have_the_posterior_distribution():
    bn = mk.examples.sprinkler()
    rows = pd.DataFrame({"wet": ["yes"] * 20_000, "note": "kept"})
    drawn = bn.impute(rows, "sample", seed=0)
    assert list(drawn.columns[:2]) == ["wet", "note"]
    exact = bn.query(["rain", "sprinkler"], given={"wet": "yes"})
    share = drawn.groupby(["rain", "sprinkler"], observed=False).size() / len(drawn)
    for (rain, sprinkler), found in share.items():
        p = exact[rain, sprinkler]
        assert abs(found - p) < 4 * np.sqrt(p * (1 - p) / len(drawn)) + 1e-12
    assert drawn.equals(bn.impute(rows, "sample", seed=0))
    modes = bn.impute(rows[:1], "mode")
    assert modes["rain"][0] == bn.query("rain", given={"wet": "yes"}).argmax()
    with pytest.raises(mk.errors.InvalidArgument, match="method="):
        bn.impute(rows, "mean")


def grid(n, rng):
    bn = mk.BayesianNetwork()
    for i, j in product(range(n), range(n)):
        parents = [f"v{a}_{b}" for a, b in ((i - 1, j), (i, j - 1)) if a >= 0 and b >= 0]
        bn.add(f"v{i}_{j}", states=2, parents=parents, p=rng.dirichlet([3, 3], size=(2,) * len(parents)))
    return bn


def test_engines_agree_with_the_trees_within_their_error(monkeypatch):
    rng = np.random.default_rng(1)
    bn = grid(3, rng)
    frame = holes(bn.sample(8, seed=3), rng, 0.7)
    exact = mk.learning.expected_counts(bn, frame)
    assert exact.exact
    for engine, error in (("variable-elimination", 1e-10), ("loopy-bp", 0.6), ("gibbs", 0.6)):
        monkeypatch.setattr("markovia.learning.incomplete.e_step.EXACT", ())
        found = mk.learning.expected_counts(bn, frame, engine=engine, seed=0)
        assert not found.exact
        worst = max(np.abs(a - b).max() for a, b in zip(exact.counts, found.counts, strict=True))
        assert worst < error
        assert all(np.isclose(n.sum(), 8) for n in found.counts)
    assert np.isnan(found.log_likelihood)


@pytest.mark.parametrize("engine", ["variable-elimination", "loopy-bp", "gibbs"])
def test_engines_count_every_row_as_often_as_it_weighs(engine, monkeypatch):
    """Rows that repeat, with different weights: on a chain loopy propagation is exact, and draws are many."""
    monkeypatch.setattr("markovia.learning.incomplete.e_step.EXACT", ())
    monkeypatch.setattr("markovia.learning.incomplete.approximate_counts.DRAWS", 60_000)
    rng = np.random.default_rng(3)
    bn = mk.BayesianNetwork()
    for name, parents in (("a", []), ("b", ["a"]), ("c", ["b"])):
        bn.add(name, states=2, parents=parents, p=rng.dirichlet([3, 3], size=(2,) * len(parents)))
    rows = [(0, None, 1), (1, None, None), (0, None, 1), (None, 1, 0), (0, None, 1), (1, None, None)]
    frame = pd.DataFrame(rows, columns=list("abc"), dtype=object)
    weights = np.array([0.25, 1.5, 1.0, 0.5, 0.0, 0.75])
    counts, total, _ = by_enumeration(bn, {n: bn[n].values for n in "abc"}, frame, weights)
    found = mk.learning.expected_counts(bn, frame, weights=weights, engine=engine, seed=0)
    assert not found.exact
    for name, own in zip(bn.variables, found.counts, strict=True):
        np.testing.assert_allclose(own, counts[name], atol=0.01)
        assert own.sum() == pytest.approx(4.0)
    if engine != "gibbs":
        assert found.log_likelihood == pytest.approx(total, abs=1e-4)


def test_where_trees_are_too_wide_auto_approximates_and_says_so(monkeypatch):
    monkeypatch.setattr("markovia.learning.incomplete.e_step.LARGEST", 4)
    rng = np.random.default_rng(1)
    bn = grid(3, rng)
    frame = holes(bn.sample(40, seed=3), rng, 0.5)
    with pytest.warns(mk.errors.ApproximateWarning, match="by loopy belief propagation"):
        fitted = bn.copy().fit(frame, missing=mk.EM(max_iterations=5))
    assert fitted.fit_.details["exact"] is False
    assert abs(fitted.fit_.log_likelihood - fitted.log_prob(frame).sum()) < 0.5
    with pytest.raises(mk.errors.TooLarge, match="engine='auto' or 'loopy-bp'"):
        bn.copy().fit(frame, missing=mk.EM(engine="junction-tree"))
    monkeypatch.setattr("markovia.learning.incomplete.incomplete_rows.LARGEST", 4)
    filled = bn.impute(frame)
    assert np.isclose(bn.log_prob(filled).sum(), _best(bn, frame))
    assert not bn.impute(frame, "sample", seed=0).isna().any().any()


def _best(bn, frame):
    """The log probability of the best completions, by enumeration."""
    total = 0.0
    for row in frame.to_dict("records"):
        choices = [bn.states(n) if pd.isna(row[n]) else [row[n]] for n in bn.variables]
        every = pd.DataFrame(list(product(*choices)), columns=bn.variables)
        total += bn.log_prob(every).max()
    return total


def test_the_likelihood_is_that_of_pyagrum():
    gum = pytest.importorskip("pyagrum")
    truth = mk.examples.sprinkler()
    frame = holes(truth.sample(400, seed=9), np.random.default_rng(9), 0.15)
    ours = truth.copy().fit(frame, missing=mk.EM(tolerance=1e-10, max_iterations=5000))
    learner = gum.BNLearner(frame.fillna("?").astype(str), mk.io.to_pyagrum(truth), ["?"])
    learner.useEM(1e-6)
    theirs = mk.io.from_pyagrum(learner.learnParameters(mk.io.to_pyagrum(truth).dag()))
    assert ours.fit_.log_likelihood >= theirs.log_prob(frame).sum() - 1e-6
    assert abs(ours.fit_.log_likelihood - theirs.log_prob(frame).sum()) < 0.5


def test_starts_and_runs_can_be_driven_by_hand():
    bn = mk.examples.sprinkler()
    frame = holes(bn.sample(50, seed=1), np.random.default_rng(0), 0.2)
    families = [NodeFamily(bn.variable(n), bn[n].parents, bn[n]) for n in bn.variables]
    learner = TableLearner(families, as_prior("laplace"))
    variables = {n: bn.variable(n) for n in bn.variables}
    counter = ExpectedCounter(families, read_data(frame, bn.variables, variables=variables).in_memory())
    uniform = starting_tables(learner, counter, "uniform", np.random.default_rng(0))
    assert all(np.allclose(t.values, 0.5) for t in uniform)
    run = run_em(learner, counter, uniform, EM(max_iterations=500))
    assert run.converged
    assert run.history[-1] == run.objective > run.state.first


def test_a_latent_variable_with_a_column_is_refused():
    bn = mk.examples.sprinkler()
    frame = bn.sample(20, seed=1)
    for data in (frame, frame.to_dict("list")):
        with pytest.raises(
            mk.errors.InvalidArgument, match="'rain' is said to be latent, but the data have a column"
        ):
            bn.fit(data, latent="rain")
    assert bn.fit_ is None


def test_ctrl_c_keeps_the_parallel_runs_that_are_done():
    from markovia.runtime.parallel_tasks import task_results

    def task(i):
        if i == 2:
            raise KeyboardInterrupt
        return i

    told = []
    found = task_results(task, range(4), progress=False, when_interrupted=lambda: told.append(True))
    assert list(found) == [0, 1]
    assert told == [True]
    with pytest.raises(KeyboardInterrupt):
        list(task_results(task, range(4), progress=False, least=3))
