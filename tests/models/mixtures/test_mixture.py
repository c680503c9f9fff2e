"""Mixtures of all kinds of components: brute force, monotone objectives, weights, labels, batches, networks, bad input."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, MarkoviaError, ParseError, UnsupportedModel


def bits(n=400, d=6, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random((n, d)) < rng.beta(0.6, 0.6, (k, d))[rng.integers(0, k, n)]).astype(float)


def with_holes(rows, share=0.2, seed=1):
    return np.where(np.random.default_rng(seed).random(rows.shape) < share, np.nan, rows)


def mixed(n=300, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.random(n) < 0.4
    frame = pd.DataFrame(
        {
            "cough": np.where(rng.random(n) < np.where(z, 0.9, 0.1), "yes", "no"),
            "heat": rng.normal(np.where(z, 38.5, 36.8), 0.4),
            "visits": rng.poisson(np.where(z, 4.0, 0.5)),
        }
    )
    frame.loc[::7, "heat"] = np.nan
    frame.loc[::5, "cough"] = None
    return frame, z


KINDS = {"cough": "categorical", "heat": "gaussian", "visits": "poisson"}


def test_bernoulli_components_with_missing_cells_sum_over_them():
    rows = with_holes(bits(60, 4))
    mixture = mk.mixtures.BernoulliMixture(2, random_state=0).fit(rows)
    probs = mixture.component_params_["probs"]
    for row in rows[:20]:
        gaps = np.flatnonzero(np.isnan(row))
        total = 0.0
        for filled in itertools.product([0.0, 1.0], repeat=len(gaps)):
            whole = row.copy()
            whole[gaps] = filled
            total += mixture.weights_ @ np.prod(np.where(whole == 1.0, probs, 1.0 - probs), axis=1)
        assert np.exp(mixture.score_samples(row[None]))[0] == pytest.approx(total)


def test_a_step_on_missing_bits_counts_what_is_seen():
    rows = np.array([[1.0, np.nan], [1.0, 1.0], [0.0, 0.0], [np.nan, 1.0]])
    one = mk.mixtures.BernoulliMixture(1).fit(rows)
    assert one.component_params_["probs"][0] == pytest.approx([2 / 3, 2 / 3])
    prior = mk.mixtures.BernoulliMixture(1, prior={"a": 2.0, "b": 3.0}).fit(rows)
    assert prior.component_params_["probs"][0] == pytest.approx([3 / 6, 3 / 6])


def test_mixed_columns_have_the_densities_of_their_families():
    frame, z = mixed()
    mixture = mk.Mixture(KINDS, 2, random_state=0).fit(frame)
    params = mixture.component_params_
    places = {"no": 0, "yes": 1}
    expected = []
    for row in frame.itertuples():
        each = mixture.weights_ * poisson(params["visits"]["rates"][:, 0]).pmf(row.visits)
        if row.heat == row.heat:
            variance = params["heat"]["covariances"][:, 0, 0]
            apart = row.heat - params["heat"]["means"][:, 0]
            each = each * np.exp(-0.5 * apart**2 / variance) / np.sqrt(2 * np.pi * variance)
        if isinstance(row.cough, str):
            each = each * params["cough"]["probs"][0][:, places[row.cough]]
        expected.append(np.log(each.sum()))
    assert mixture.score_samples(frame) == pytest.approx(np.array(expected))
    sick = mixture.predict(frame) == mixture.component_params_["heat"]["means"][:, 0].argmax()
    assert (sick == z).mean() > 0.97
    drawn, which = mixture.sample(2000, seed=0)
    hot = drawn.groupby(which)["heat"].mean()
    assert hot.max() - hot.min() == pytest.approx(1.7, abs=0.15)


def test_a_column_of_student_t_may_miss_cells():
    frame, z = mixed()
    mixture = mk.Mixture({"cough": "categorical", "heat": "student-t"}, 2, random_state=0)
    with pytest.warns(mk.errors.IgnoredColumnWarning, match="'visits' is in no entry"):
        mixture.fit(frame)
    assert (np.diff(mixture.history_) > -1e-8).all()
    assert max((mixture.predict(frame) == z).mean(), (mixture.predict(frame) != z).mean()) > 0.9


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["bernoulli", "poisson", "multinomial", "gaussian", "diag", "mixed"]),
)
def test_the_objective_never_falls(seed, name):
    rng = np.random.default_rng(seed)
    rows = rng.poisson(3.0, (60, 3)).astype(float)
    if name == "bernoulli":
        rows = (rows > 2).astype(float)
    if name not in ("multinomial",):
        rows = with_holes(rows, 0.15, seed)
    common = {"random_state": seed, "reg_covar": 0.0, "max_iter": 25, "tol": 0.0, "init_params": "random"}
    if name == "mixed":
        frame = pd.DataFrame(rows, columns=["a", "b", "c"])
        mixture = mk.Mixture({"a": "categorical", "b": "poisson", "c": "gaussian"}, 3, **common).fit(frame)
    else:
        kind = {"covariance_type": "diag"} if name == "diag" else {}
        plain = "gaussian" if name == "diag" else name
        with np.errstate(all="ignore"):
            mixture = mk.Mixture(plain, 3, **kind, **common).fit(rows)
    assert min(np.diff(mixture.history_)) > -1e-7


def test_a_row_of_weight_two_is_two_rows():
    rows = bits(80)
    weights = np.random.default_rng(0).integers(0, 3, 80)
    start = {
        "params_init": {"probs": np.random.default_rng(1).uniform(0.2, 0.8, (3, 6))},
        "max_iter": 20,
        "tol": 0.0,
    }
    ours = mk.mixtures.BernoulliMixture(3, **start).fit(rows, sample_weight=weights)
    again = mk.mixtures.BernoulliMixture(3, **start).fit(np.repeat(rows, weights, axis=0))
    assert ours.component_params_["probs"] == pytest.approx(again.component_params_["probs"])
    assert ours.history_ == pytest.approx(again.history_)


def test_a_batch_moves_running_averages_by_its_rate_whatever_its_size():
    """One component: its parameters are averages of batches' means, the second weighed (1 + offset)^-decay and so on."""
    rng = np.random.default_rng(12)
    batches = [rng.poisson(lam, (n, 2)) for lam, n in ((3.0, 7), (8.0, 31), (1.0, 4))]
    model = mk.Mixture("poisson", 1, learning_decay=0.6, learning_offset=4.0, random_state=0)
    expected = None
    for i, rows in enumerate(batches):
        model.partial_fit(rows)
        rate = 1.0 if i == 0 else (i + 4.0) ** -0.6
        own = rows.mean(axis=0)
        expected = own if expected is None else (1.0 - rate) * expected + rate * own
        assert model.component_params_["rates"][0] == pytest.approx(expected)


def test_rows_that_are_told_stay_in_their_component():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(-1, 1, 100), rng.normal(1, 1, 100)])[:, None]
    labels = np.full(200, -1)
    labels[:30], labels[100:130] = 1, 0
    mixture = mk.GaussianMixture(2, random_state=0).fit(rows, labels)
    assert mixture.means_[1, 0] < mixture.means_[0, 0]
    joint = np.exp(-0.5 * (rows - [-1.0, 1.0]) ** 2)
    shares = joint / joint.sum(axis=1, keepdims=True)
    shares[labels >= 0] = np.eye(2)[labels[labels >= 0]]
    start = {"means_init": [[-1.0], [1.0]], "precisions_init": np.ones((2, 1, 1)), "weights_init": [0.5, 0.5]}
    one = mk.GaussianMixture(2, max_iter=1, **start).fit(rows, labels)
    assert one.means_ == pytest.approx(shares.T @ rows / shares.sum(axis=0)[:, None])
    assert one.weights_ == pytest.approx(shares.mean(axis=0))


def test_hard_em_gives_rows_wholly_to_their_best_component():
    rows = bits(200)
    start = {"params_init": {"probs": np.random.default_rng(1).uniform(0.2, 0.8, (3, 6))}, "max_iter": 1}
    hard = mk.mixtures.BernoulliMixture(3, method="hard", **start).fit(rows)
    before = np.array(start["params_init"]["probs"])
    best = (rows @ np.log(before.T) + (1 - rows) @ np.log(1 - before.T)).argmax(axis=1)
    for k in range(3):
        assert hard.component_params_["probs"][k] == pytest.approx(rows[best == k].mean(axis=0))


@pytest.mark.slow
def test_batches_come_to_where_em_comes():
    rows = bits(6000, 8, 3, 2)
    em = mk.mixtures.BernoulliMixture(3, random_state=0).fit(rows)
    online = mk.Mixture("bernoulli", 3, method="online", batch_size=500, random_state=0, max_iter=30).fit(
        rows
    )
    assert online.score(rows) == pytest.approx(em.score(rows), abs=2e-3)
    one = mk.mixtures.BernoulliMixture(3, random_state=0)
    for _ in range(6):
        for part in np.array_split(rows, 12):
            one.partial_fit(part)
    assert one.score(rows) == pytest.approx(em.score(rows), abs=5e-3)
    gauss = np.concatenate([np.random.default_rng(j).normal(4 * j, 1, (500, 2)) for j in range(3)])
    moved = mk.GaussianMixture(3, random_state=0)
    for part in np.array_split(np.random.default_rng(0).permutation(gauss), 10):
        moved.partial_fit(part)
    assert moved.score(gauss) == pytest.approx(
        mk.GaussianMixture(3, random_state=0).fit(gauss).score(gauss), abs=0.02
    )
    assert not hasattr(mk.mixtures.StudentTMixture(2), "partial_fit")
    with pytest.raises(InvalidArgument, match="partial_fit needs components that learn from sums"):
        mk.Mixture(mk.GaussianMixture(2), 2).partial_fit(gauss)


@pytest.mark.slow
def test_the_default_start_finds_the_truth_among_bernoullis():
    rng = np.random.default_rng(0)
    probs, which = rng.beta(0.7, 0.7, (10, 50)), rng.integers(0, 10, 8000)
    rows = (rng.random((8000, 50)) < probs[which]).astype(float)
    joint = rows @ np.log(probs.T) + (1 - rows) @ np.log1p(-probs.T) - np.log(10)
    truth = np.logaddexp.reduce(joint, axis=1).mean()
    for seed in range(3):
        assert (
            mk.Mixture(component="bernoulli", n_components=10, random_state=seed).fit(rows).score(rows)
            > truth
        )


def test_networks_answer_what_mixtures_answer():
    rows = bits(300, 4)
    mixture = mk.mixtures.BernoulliMixture(3, random_state=0).fit(rows)
    frame = pd.DataFrame(rows.astype(int), columns=["x0", "x1", "x2", "x3"])
    net = mixture.network()
    assert net.log_prob(frame) == pytest.approx(mixture.score_samples(rows))
    assert net.predict_proba(frame, "component").to_numpy() == pytest.approx(mixture.predict_proba(rows))
    gauss = np.random.default_rng(0).normal(size=(200, 3)) @ np.random.default_rng(1).normal(size=(3, 3))
    numbers = mk.GaussianMixture(2, random_state=0).fit(gauss)
    frame = pd.DataFrame(gauss, columns=["x0", "x1", "x2"])
    assert numbers.network().log_prob(frame) == pytest.approx(numbers.score_samples(gauss))
    half = numbers.predict_proba([[0.3, np.nan, 0.1]])[0]
    answer = numbers.network().query("component", given={"x0": 0.3, "x2": 0.1})
    assert [answer[0], answer[1]] == pytest.approx(half)
    people, _ = mixed()
    kinds = mk.Mixture({"cough": "categorical", "heat": "gaussian"}, 2, random_state=0).fit(
        people[["cough", "heat"]]
    )
    answer = kinds.network().query("component", given={"cough": "yes", "heat": 37.5})
    row = pd.DataFrame({"cough": ["yes"], "heat": [37.5]})
    assert [answer[0], answer[1]] == pytest.approx(kinds.predict_proba(row)[0])


def test_two_bernoulli_components_are_a_field_of_pairs():
    mixture = mk.mixtures.BernoulliMixture(2, random_state=0).fit(bits(300, 3))
    probs, weights = mixture.component_params_["probs"], mixture.weights_
    odds = np.log(probs / (1 - probs))
    factors = [mk.Factor(["z"], np.exp(np.log(weights) + np.log1p(-probs).sum(axis=1)))]
    factors += [
        mk.Factor(["z", f"x{j}"], np.column_stack([np.ones(2), np.exp(odds[:, j])])) for j in range(3)
    ]
    field = mk.MarkovNetwork({"z": 2, "x0": 2, "x1": 2, "x2": 2}, factors)
    for row in itertools.product([0, 1], repeat=3):
        given = {f"x{j}": value for j, value in enumerate(row)}
        assert field.query("z", given=given)[1] == pytest.approx(mixture.predict_proba([row])[0, 1])
        expected = field.log_evidence(given)
        assert expected == pytest.approx(mixture.score_samples([row])[0])


def test_a_mixture_is_a_node_of_a_larger_network():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(-2, 1, (50, 1)), rng.normal(2, 1, (50, 1))])
    mixture = mk.GaussianMixture(2, random_state=0).fit(rows)
    net = mixture.network()
    net.add("late", states=["no", "yes"], parents=["component"], p=[[0.9, 0.1], [0.2, 0.8]])
    expected = mixture.predict_proba([[0.4]])[0] @ [0.1, 0.8]
    assert net.query("late", given={"x0": 0.4})["yes"] == pytest.approx(expected)


@pytest.mark.parametrize(
    "component",
    [
        mk.exponential.MultivariateGaussian(np.zeros(2), np.eye(2)),
        mk.BayesianNetwork({"x0": [], "x1": ["x0"]}),
        mk.GaussianMixture(1),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_other_ways_to_say_gaussian_find_the_same(component):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        np.concatenate([rng.normal(-4, 1, (150, 2)), rng.normal(4, 1, (50, 2))]), columns=["x0", "x1"]
    )
    plain = mk.Mixture("gaussian", 2, random_state=0, reg_covar=0.0).fit(rows)
    other = mk.Mixture(component, 2, random_state=0, reg_covar=0.0).fit(rows)
    assert np.sort(other.weights_) == pytest.approx(np.sort(plain.weights_), abs=1e-3)
    assert other.score(rows) == pytest.approx(plain.score(rows), abs=1e-3)


def test_distributions_and_functions_are_components():
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [rng.exponential(1.0, 150), 20 + rng.exponential(1.0, 0), rng.exponential(30.0, 150)]
    )[:, None]
    found = mk.Mixture(dist.Exponential, 2, random_state=0, max_iter=60).fit(rows)
    plain = mk.Mixture(mk.exponential.Exponential(1.0), 2, random_state=0).fit(rows)
    assert found.score(rows) == pytest.approx(plain.score(rows), abs=2e-3)
    start = {"rate": [2.0, 0.01]}
    made = mk.Mixture(lambda rate: dist.Exponential(rate), 2, params_init=start, max_iter=60).fit(rows)
    assert made.score(rows) == pytest.approx(plain.score(rows), abs=2e-3)
    with pytest.raises(InvalidArgument, match="needs starting values by name"):
        mk.Mixture(lambda rate: dist.Exponential(rate), 2).fit(rows)
    with pytest.raises(UnsupportedModel, match="pickle keeps it"):
        mk.io.dumps(made, "json")


def test_sequences_and_models_are_components():
    calm, wild = mk.MarkovChain([[0.9, 0.1], [0.2, 0.8]]), mk.MarkovChain([[0.3, 0.7], [0.6, 0.4]])
    rain = calm.sample(60, 60, seed=0) + wild.sample(60, 20, seed=1)
    chains = mk.mixtures.MarkovChainMixture(2, random_state=0).fit(rain)
    small = int(chains.weights_.argmin())
    assert chains.weights_[small] == pytest.approx(0.25, abs=0.03)
    assert chains.component_params_["models"][small].transition == pytest.approx(wild.transition, abs=0.06)
    same = mk.Mixture(mk.MarkovChain(), 2, random_state=0, tol=1e-4).fit(rain)
    assert same.score(rain) == pytest.approx(chains.score(rain), abs=1e-3)
    joint = np.column_stack([m.log_prob(rain) for m in chains.component_params_["models"]]) + np.log(
        chains.weights_
    )
    assert chains.score_samples(rain) == pytest.approx(np.logaddexp.reduce(joint, axis=1))


def test_sequences_that_are_told_stay_in_their_component():
    rain = mk.MarkovChain([[0.9, 0.1], [0.2, 0.8]]).sample(60, 30, seed=0)
    rain += mk.MarkovChain([[0.3, 0.7], [0.6, 0.4]]).sample(60, 10, seed=1)
    for first in (0, 1):
        labels = np.full(40, -1)
        labels[[0, 39]] = first, 1 - first
        for method in ("em", "hard"):
            found = mk.mixtures.MarkovChainMixture(2, method=method, random_state=0).fit(rain, labels)
            assert (found.predict(rain)[:30] == first).all()
            assert np.diff(found.history_).min() > -1e-9
    with pytest.raises(InvalidArgument, match="method= is 'em' or 'hard'"):
        mk.mixtures.MarkovChainMixture(2, method="online").fit(rain)
    with pytest.raises(InvalidArgument, match="prior= is not for mixtures of sequences"):
        mk.Mixture(mk.MarkovChain(), 2, prior={}).fit(rain)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_everything_that_has_a_name_is_saved_and_loaded(tmp_path):
    frame, _ = mixed(80)
    rows, counts = bits(80), np.random.default_rng(0).poisson(3.0, (80, 3))
    chain = mk.MarkovChain([[0.9, 0.1], [0.2, 0.8]]).sample(20, 12, seed=0)
    for mixture, data in [
        (mk.mixtures.BernoulliMixture(2, random_state=0), with_holes(rows)),
        (mk.mixtures.PoissonMixture(2, random_state=0), counts),
        (mk.Mixture("multinomial", 2, random_state=0), counts),
        (mk.mixtures.StudentTMixture(2, random_state=0), frame[["visits"]]),
        (mk.mixtures.CategoricalMixture(2, random_state=0), frame[["cough"]]),
        (mk.Mixture(KINDS, 2, random_state=0), frame),
        (mk.mixtures.LatentClass(2, random_state=0), frame),
        (mk.GaussianMixture(2, covariance_type="low-rank", random_state=0), counts),
        (mk.Mixture(mk.GaussianMixture(2), 2, random_state=0), counts),
        (mk.mixtures.MarkovChainMixture(2, random_state=0), chain),
        (mk.Mixture(mk.HMM(2, random_state=0, max_iter=3), 2, random_state=0, max_iter=2), chain),
        (mk.Mixture(mk.BayesianNetwork({"cough": [], "visits": ["cough"]}), 2, max_iter=3), frame.dropna()),
    ]:
        mixture.fit(data).save(tmp_path / "m.json")
        again = mk.load(tmp_path / "m.json")
        assert type(again) is type(mixture)
        assert again.predict_proba(data) == pytest.approx(mixture.predict_proba(data), abs=1e-12)


def test_a_file_makes_only_what_is_listed(tmp_path):
    mk.mixtures.BernoulliMixture(2, random_state=0).fit(bits(40)).save(tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    for place, value, said in [
        (("class",), "os.system", "expected one of .*Mixture"),
        (("learned", "_groups", "object"), "Popen", "expected one of .*Mixture"),
        (("learned", "weights_", "type"), "pickle", "expected one of bool"),
        (("settings", "n_jobs"), None, "expected no key"),
    ]:
        wrong = json.loads(json.dumps(content))
        at = wrong
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = value
        if said == "expected no key":
            wrong["more"] = 1
        with pytest.raises(ParseError, match=said):
            mk.io.loads(json.dumps(wrong), "json")


@pytest.mark.parametrize(
    ("mixture", "rows", "said"),
    [
        (
            mk.GaussianMixture(4),
            [[0.0], [0.0], [1.0], [1.0], [1.0]],
            "4 needs as many different rows, and there are 2",
        ),
        (mk.GaussianMixture(2), [[0.0], [np.inf], [1.0]], "row 1 of X is infinite .inf. in the column 'x0'"),
        (
            mk.GaussianMixture(2),
            pd.DataFrame({"a": ["x", "y", "z"]}),
            "'a' holds text, 'x' in row 0.*'categorical'",
        ),
        (
            mk.mixtures.BernoulliMixture(2),
            [[0.0], [2.0], [1.0]],
            "row 1 of X holds 2 in the column 'x0'; .* are 0 or 1",
        ),
        (
            mk.mixtures.PoissonMixture(2),
            [[0.5], [2.0], [1.0]],
            "row 0 of X holds 0.5 in the column 'x0'; .* whole numbers",
        ),
        (mk.mixtures.PoissonMixture(2), [[-1.0], [2.0], [1.0]], "Negative values"),
        (
            mk.mixtures.StudentTMixture(2),
            [[np.nan], [2.0], [1.0]],
            "row 0 of X misses 'x0' .* student-t components need every cell",
        ),
        (mk.Mixture("gausian", 2), [[0.0], [2.0], [1.0]], "component= is one of gaussian"),
        (
            mk.GaussianMixture(2, prior={"men": 1}),
            [[0.0], [2.0], [1.0]],
            "prior= has no 'men' .did you mean 'mean'",
        ),
        (
            mk.GaussianMixture(2, weights_init=[0.7, 0.7]),
            [[0.0], [2.0], [1.0]],
            "weights_init= are 2 numbers",
        ),
        (mk.Mixture({"b": "gaussian"}, 2), pd.DataFrame({"a": [1.0, 2.0]}), "'b'"),
        (
            mk.Mixture({"a": "gauss"}, 2),
            pd.DataFrame({"a": [1.0, 2.0]}),
            r"component\['a'\] is one of gaussian",
        ),
        (
            mk.Mixture(mk.exponential.Gamma(1.0, 1.0), 2),
            [[-1.0], [2.0], [1.0]],
            "row 0 is outside the support of Gamma",
        ),
        (mk.GaussianMixture(0), [[0.0], [2.0]], "n_components= is a whole number, 1 or more"),
    ],
)
def test_bad_input_gets_one_sentence_and_leaves_the_mixture_as_it_was(mixture, rows, said):
    before = dict(vars(mixture))
    with pytest.raises(MarkoviaError, match=said):
        mixture.fit(rows)
    assert vars(mixture) == before


def test_symbols_that_fit_never_saw_are_named():
    mixture = mk.mixtures.CategoricalMixture(2, random_state=0).fit(
        pd.DataFrame({"a": ["x", "y", "x", "y"], "b": [0, 1, 0, 1]})
    )
    with pytest.raises(InvalidArgument, match="row 0 has 'z' in the column 'a', which fit has not seen"):
        mixture.predict(pd.DataFrame({"a": ["z"], "b": [0]}))


def test_a_time_limit_keeps_the_best_so_far():
    rows = np.random.default_rng(0).normal(size=(3000, 3))
    mixture = mk.GaussianMixture(5, tol=0.0, max_iter=100_000, time_limit=0.3, random_state=0).fit(rows)
    assert 1 <= mixture.n_iter_ < 100_000
    assert np.isfinite(mixture.score(rows))


@pytest.mark.slow
def test_processes_and_threads_change_nothing(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(3000, 3))
    settings = {"n_init": 2, "random_state": 0, "max_iter": 5, "tol": 0.0}
    alone = mk.GaussianMixture(3, **settings).fit(rows)
    together = mk.GaussianMixture(3, n_jobs=2, **settings).fit(rows)
    monkeypatch.setenv("MARKOVIA_THREADS", "1")
    one = mk.GaussianMixture(3, **settings).fit(rows)
    assert (alone.means_ == together.means_).all()
    assert alone.means_ == pytest.approx(one.means_, abs=1e-12)


def test_sparse_counts_are_learned_as_dense_ones():
    from scipy.sparse import csr_array

    rows = np.random.default_rng(0).poisson(0.5, (100, 8)).astype(float)
    for name in ("poisson", "multinomial"):
        start = {"rates" if name == "poisson" else "probs": np.random.default_rng(1).dirichlet(np.ones(8), 2)}
        dense = mk.Mixture(name, 2, params_init=start, max_iter=10, tol=0.0).fit(rows)
        sparse = mk.Mixture(name, 2, params_init=start, max_iter=10, tol=0.0).fit(csr_array(rows))
        assert sparse.history_ == pytest.approx(dense.history_)
        assert sparse.predict_proba(csr_array(rows)) == pytest.approx(dense.predict_proba(rows))


def test_icl_is_bic_and_twice_the_entropy():
    rows = bits(200)
    mixture = mk.mixtures.BernoulliMixture(2, random_state=0).fit(rows)
    sure = mixture.predict_proba(rows)
    entropy = -np.sum(np.where(sure > 0, sure * np.log(np.maximum(sure, 1e-300)), 0.0))
    assert mixture.icl(rows) == pytest.approx(mixture.bic(rows) + 2 * entropy)


def test_a_warm_start_goes_on():
    rows = bits(300)
    whole = mk.mixtures.BernoulliMixture(3, random_state=0, max_iter=6, tol=0.0).fit(rows)
    parts = mk.mixtures.BernoulliMixture(3, random_state=0, max_iter=3, tol=0.0, warm_start=True)
    parts.fit(rows).fit(rows)
    assert parts.component_params_["probs"] == pytest.approx(whole.component_params_["probs"])


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_learned_block_by_block_as_rows_in_memory(tmp_path, ending, monkeypatch):
    monkeypatch.setattr("markovia.data.tables.file_blocks.BLOCK", 2048)
    monkeypatch.setattr("markovia.models.mixtures.file_rows.FEW", 2500)
    rng = np.random.default_rng(0)
    rows = with_holes(rng.normal(rng.choice([-2.0, 2.0], 3000)[:, None], 1.0, (3000, 2)), 0.1)
    frame = pd.DataFrame(rows, columns=["a", "b"])
    path = tmp_path / f"rows.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    weights, labels = rng.integers(1, 3, 3000), np.full(3000, -1)
    labels[[0, 2999]] = 0, 1
    start = {"means_init": [[-1.0, 0.0], [1.0, 0.0]], "precisions_init": np.array([np.eye(2)] * 2)}
    same = {**start, "weights_init": [0.5, 0.5], "max_iter": 3, "tol": 0.0}
    ours = mk.GaussianMixture(2, **same).fit(path, labels, sample_weight=weights)
    near = mk.GaussianMixture(2, **same).fit(frame, labels, sample_weight=weights)
    assert ours.history_ == pytest.approx(near.history_, rel=1e-10)
    assert ours.covariances_ == pytest.approx(near.covariances_, rel=1e-8)
    assert ours.score_samples(path) == pytest.approx(near.score_samples(frame))
    if ending == "csv":
        return
    free = mk.GaussianMixture(2, random_state=0).fit(str(path))
    assert free.score(frame) == pytest.approx(
        mk.GaussianMixture(2, random_state=0).fit(frame).score(frame), abs=1e-3
    )
    batches = mk.Mixture("gaussian", 2, method="online", batch_size=500, tol=1.0, random_state=0).fit(path)
    assert batches.score(frame) == pytest.approx(free.score(frame), abs=0.01)


def test_files_that_cannot_be_learned_from_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    pd.DataFrame({"a": [0.5, 1.0, 2.0], "b": ["x", "y", "z"]}).to_csv(path, index=False)
    with pytest.raises(InvalidArgument, match="'b' holds text"):
        mk.GaussianMixture(2).fit(path)
    with pytest.raises(InvalidArgument, match="read it into a frame for others"):
        mk.mixtures.StudentTMixture(2).fit(path)
    pd.DataFrame({"a": [0.5, 1.0, 2.0]}).to_csv(path, index=False)
    with pytest.raises(InvalidArgument, match="needs all rows in memory"):
        mk.Mixture("gaussian", 2, method="gibbs").fit(path)


def test_columns_and_rows_that_say_nothing_are_named():
    rows = np.column_stack([bits(60, 1)[:, 0] * 8 + np.random.default_rng(0).normal(size=60), np.ones(60)])
    with pytest.warns(UserWarning, match="the column 'x1' is the same in all rows") as said:
        mk.GaussianMixture(2, random_state=0).fit(rows)
    assert len(said) == 1  # and not that a component has shrunk
    counts = np.random.default_rng(0).poisson(2.0, (50, 3))
    counts[[7, 9]] = 0
    with pytest.warns(UserWarning, match="row 7 has no counts at all, as have 1 others"):
        mixture = mk.Mixture("multinomial", 2, random_state=0).fit(counts)
    assert mixture.predict_proba(counts[7:8])[0] == pytest.approx(mixture.weights_)


def test_networks_of_counts_answer_the_same():
    counts = np.random.default_rng(0).poisson([[2.0, 9.0]] * 50 + [[20.0, 1.0]] * 50)
    mixture = mk.mixtures.PoissonMixture(2, random_state=0).fit(counts)
    net = mixture.network()
    assert net.log_prob(pd.DataFrame(counts, columns=["x0", "x1"])) == pytest.approx(
        mixture.score_samples(counts)
    )
    answer = net.query("component", given={"x0": 3})
    assert [answer[0], answer[1]] == pytest.approx(mixture.predict_proba([[3, np.nan]])[0])
    share = mixture.predict_proba([[3, np.nan]])[0]
    assert net.query("x1", given={"x0": 3})[5] == pytest.approx(
        share @ poisson(mixture.component_params_["rates"][:, 1]).pmf(5)
    )


@pytest.mark.slow
def test_networks_of_student_t_answer_the_same():
    rng = np.random.default_rng(0)
    tails = np.concatenate([rng.standard_t(3, 60) - 4, rng.standard_t(3, 60) + 4])[:, None]
    heavy = mk.mixtures.StudentTMixture(2, random_state=0).fit(tails)
    answer = heavy.network().query("component", given={"x0": 0.5})
    assert [answer[0], answer[1]] == pytest.approx(heavy.predict_proba([[0.5]])[0], abs=1e-6)


def test_networks_that_there_are_not_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(UnsupportedModel, match="share a hidden scale"):
        mk.mixtures.StudentTMixture(1).fit(rng.normal(size=(30, 2))).network()
    with pytest.raises(UnsupportedModel, match="nothing of x"):
        mk.mixtures.RegressionMixture(2).network()
    low = mk.GaussianMixture(1, covariance_type="low-rank").fit(rows := rng.normal(size=(60, 3)))
    frame = pd.DataFrame(rows, columns=["x0", "x1", "x2"])
    assert low.network().log_prob(frame) == pytest.approx(low.score_samples(rows))


def test_a_mixture_whose_labels_are_all_known_is_learned_in_closed_form():
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, 90)
    rows = rng.normal(3.0 * kinds[:, None], 1.0 + kinds[:, None], (90, 2))
    weights = rng.integers(1, 4, 90)
    for labels in (kinds, np.array(["a", "b", "c"])[kinds], kinds.astype(float)):
        mixture = mk.GaussianMixture(3, reg_covar=0.0).fit(rows, sample_weight=weights, labels=labels)
        for k in range(3):
            own, share = rows[kinds == k], weights[kinds == k]
            assert mixture.weights_[k] == pytest.approx(share.sum() / weights.sum(), rel=1e-12)
            assert mixture.means_[k] == pytest.approx(np.average(own, axis=0, weights=share), rel=1e-10)
            assert mixture.covariances_[k] == pytest.approx(
                np.cov(own.T, aweights=share, bias=True), rel=1e-9
            )
    assert not hasattr(mixture, "label_names_")
    # y is what scikit-learn hands to everything: without any -1 it is not looked at
    assert mk.GaussianMixture(3, random_state=0).fit(rows, kinds).score(rows) == pytest.approx(
        mk.GaussianMixture(3, random_state=0).fit(rows).score(rows), abs=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_two_labels_in_ten_thousand_rows_say_which_component_is_which(unit):
    rng = np.random.default_rng(1)
    rows = unit * np.concatenate([rng.normal(-4, 1, (5000, 1)), rng.normal(4, 1, (5000, 1))])
    for first, second in (("left", "right"), ("zero", "one")):
        labels = np.full(10_000, None, dtype=object)
        labels[17], labels[9_981] = first, second
        mixture = mk.GaussianMixture(2, random_state=0).fit(rows, labels=labels)
        found = dict(zip(mixture.label_names_, mixture.means_[:, 0] / unit, strict=True))
        assert [found[first], found[second]] == pytest.approx([-4, 4], abs=0.1)


def test_labels_that_are_no_components_are_refused_in_a_sentence():
    rows = np.arange(8.0)[:, None]
    for labels, said in (
        ([0] * 7, "8 rows, but labels= has shape"),
        ([0, 2] * 4, "labels= has 2 in row 1; it has components 0 to 1"),
        (list("abcd") * 2, "4 different labels, and n_components=2"),
        ([{"a": 1}, 0] * 4, "labels= has components 0 to 1 or names"),
    ):
        with pytest.raises(mk.errors.InvalidArgument, match=said):
            mk.GaussianMixture(2).fit(rows, labels=labels)
    with pytest.raises(mk.errors.InvalidArgument, match="give labels= alone"):
        mk.GaussianMixture(2).fit(rows, [0, -1] * 4, labels=[0, -1] * 4)
    with pytest.raises(mk.errors.InvalidArgument, match="give numbers"):
        mk.GaussianMixture(2).partial_fit(rows, labels=list("abababab"))


def _by_hand():
    from scipy import stats

    m, rows = mk.mixtures, np.array([[0.5, 2.0], [3.0, 1.0], [0.0, 0.0]])
    full = np.array([np.eye(2), [[2.0, 0.5], [0.5, 1.0]]])
    means = np.array([[0.0, 0.0], [4.0, 1.0]])
    rates, df = np.array([[1.0, 2.0], [3.0, 0.5]]), np.array([3.0, 8.0])
    loadings, noise = np.array([[[1.0], [0.5]], [[0.2], [2.0]]]), np.array([[1.0, 2.0], [0.5, 0.1]])

    def normal(covariances):
        return np.array(
            [stats.multivariate_normal(*own).logpdf(rows) for own in zip(means, covariances, strict=True)]
        )

    gaussian = m.GaussianMixture.from_parameters
    yield "full", gaussian([0.3, 0.7], means=means, covariances=full), rows, normal(full)
    yield (
        "tied",
        gaussian([0.3, 0.7], means=means, covariances=full[1], covariance_type="tied"),
        rows,
        normal(full[[1, 1]]),
    )
    low = gaussian([0.3, 0.7], means=means, loadings=loadings, noise=noise, covariance_type="low-rank")
    yield "low", low, rows, normal(loadings @ loadings.swapaxes(1, 2) + noise[:, :, None] * np.eye(2))
    student = m.StudentTMixture.from_parameters([0.3, 0.7], means=means, scales=full, df=df)
    yield (
        "t",
        student,
        rows,
        np.array([stats.multivariate_t(*own).logpdf(rows) for own in zip(means, full, df, strict=True)]),
    )
    counts = np.array([[0, 2], [3, 1]])
    poisson = np.array([stats.poisson(own).logpmf(counts).sum(axis=1) for own in rates])
    yield "poisson", m.PoissonMixture.from_parameters([0.3, 0.7], rates=rates), counts, poisson
    yield "name", m.Mixture.from_parameters([0.3, 0.7], component="poisson", rates=rates), counts, poisson
    gamma = m.Mixture.from_parameters(
        [0.3, 0.7], component=mk.distributions.Gamma, concentration=[1.0, 2.0], rate=[1.0, 3.0]
    )
    positive = np.array([[0.2], [4.0]])
    yield (
        "gamma",
        gamma,
        positive,
        np.array([stats.gamma(a, scale=1 / b).logpdf(positive[:, 0]) for a, b in ((1, 1), (2, 3))]),
    )
    symbols = {"probs": [[[0.9, 0.1], [0.2, 0.8]]], "categories": [["no", "yes"]]}
    mixed = m.LatentClass.from_parameters(
        [0.3, 0.7],
        columns={"smokes": "categorical", "cough": "gaussian"},
        smokes=symbols,
        cough={"means": [[0.0], [2.0]], "covariances": [[1.0], [4.0]]},
    )
    frame = pd.DataFrame({"smokes": ["no", None], "cough": [1.0, 3.0]})
    expected = [
        stats.norm(mean, sd).logpdf([1.0, 3.0]) + np.log([p, 1.0])
        for mean, sd, p in ((0, 1, 0.9), (2, 2, 0.2))
    ]
    yield "mixed", mixed, frame, np.array(expected)
    told_apart = m.LatentClass.from_parameters(
        [0.3, 0.7], smokes=symbols, cough={"means": [[0.0], [2.0]], "covariances": [[1.0], [4.0]]}
    )
    yield "families by their parameters", told_apart, frame, np.array(expected)
    alone = m.CategoricalMixture.from_parameters([0.3, 0.7], **symbols)
    yield (
        "symbols",
        alone,
        np.array([["yes"], [None]], dtype=object),
        np.array([[np.log(0.1), 0.0], [np.log(0.8), 0.0]]),
    )


@pytest.mark.slow
def test_parameters_by_hand_have_the_density_of_scipy(tmp_path):
    for what, mixture, rows, logs in _by_hand():
        joint = logs + np.log([[0.3], [0.7]])
        total = np.logaddexp.reduce(joint, axis=0)
        assert mixture.score_samples(rows) == pytest.approx(total, rel=1e-10), what
        assert mixture.predict_proba(rows) == pytest.approx(np.exp(joint - total).T, abs=1e-10), what
        assert len(mixture.sample(3, seed=0)[1]) == 3, what
        if what != "gamma":  # a distribution of one's own has no file
            mixture.save(tmp_path / "mixture.json")
            again = mk.load(tmp_path / "mixture.json")
            assert again.score(rows) == pytest.approx(mixture.score(rows), rel=1e-12), what


def test_parameters_by_hand_are_those_of_a_learned_mixture_and_learning_goes_on_from_them():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(60, 2)) + rng.integers(0, 2, (60, 1)) * 5.0, columns=["a", "b"])
    learned = mk.GaussianMixture(2, random_state=0).fit(rows)
    again = mk.GaussianMixture.from_parameters(
        learned.weights_, learned.component_params_, feature_names=["a", "b"], warm_start=True, max_iter=1
    )
    assert again.score_samples(rows) == pytest.approx(learned.score_samples(rows), rel=1e-12)
    assert again.network().variables == learned.network().variables
    before = again.score(rows)
    assert again.fit(rows).score(rows) >= before - 1e-12
    assert again.n_iter_ == 1
    for bad, said in (
        ({"weights": [0.5, 0.6], "means": [[0], [1]], "covariances": np.ones((2, 1, 1))}, "add up to 1"),
        ({"weights": [0.5, 0.5], "means": [[0], [1]]}, "need covariances=, too"),
        ({"weights": [0.5, 0.5], "means": [[0], [1]], "covariances": np.ones((2, 1, 1)), "mu": 1}, "no 'mu'"),
        (
            {"weights": [0.5, 0.5], "means": [[0], [1], [2]], "covariances": np.ones((2, 1, 1))},
            "'means' have shape 2 x any",
        ),
        (
            {
                "weights": [1.0],
                "means": [[0]],
                "covariances": np.ones((1, 1, 1)),
                "feature_names": list("ab"),
            },
            "2 names for 1",
        ),
    ):
        with pytest.raises(mk.errors.InvalidArgument, match=said):
            mk.GaussianMixture.from_parameters(**bad)
