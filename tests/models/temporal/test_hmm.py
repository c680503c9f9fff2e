"""Hidden Markov models: textbook numbers, the unrolled network, hmmlearn, learning, and bad input."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import markovia as mk
from markovia.errors import ConvergenceWarning, IncompleteModel, InvalidArgument, UnsupportedModel

ICE_CREAM = {
    "start": [0.8, 0.2],
    "transition": [[0.6, 0.4], [0.5, 0.5]],
    "symbols": [1, 2, 3],
    "emission_params": {"probs": [[0.2, 0.4, 0.4], [0.5, 0.4, 0.1]]},
}
CASINO = {
    "start": [0.5, 0.5],
    "transition": [[0.95, 0.05], [0.05, 0.95]],
    "symbols": list("123456"),
    "emission_params": {"probs": [[1 / 6] * 6, [0.1] * 5 + [0.5]]},
}


def test_the_best_path_of_three_zeros_and_its_numbers():
    hmm = mk.HMM(
        2,
        start=[0.5, 0.5],
        transition=[[0.9, 0.1], [0.2, 0.8]],
        emission_params={"probs": [[0.7, 0.3], [0.6, 0.4]]},
    )
    ((path, second), scores) = hmm.k_best([0, 0, 0], 2)[0]
    assert path.tolist() == hmm.decode([0, 0, 0])[0].tolist() == [0, 0, 0]
    assert second.tolist() == [1, 1, 1]
    assert np.exp(scores) == pytest.approx([0.138915, 0.06912], abs=1e-12)
    assert np.exp(hmm.log_prob([0, 0, 0])) == pytest.approx([0.283425], abs=1e-12)
    assert hmm.smooth([0, 0, 0])[0][:, 0] == pytest.approx([0.5827468, 0.6390580, 0.6649907], abs=1e-7)


def test_counting_labelled_sequences_gives_the_textbook_tables():
    words = [list("ABAC"), list("BAAD"), list("BBCD")]
    states = [[0, 0, 1, 2], [1, 0, 2, 2], [0, 0, 1, 2]]
    hmm = mk.HMM(3).fit(words, labels=states)
    assert hmm.startprob_ == pytest.approx([2 / 3, 1 / 3, 0])
    assert hmm.transmat_ == pytest.approx(np.array([[2 / 5, 2 / 5, 1 / 5], [1 / 3, 0, 2 / 3], [0, 0, 1]]))
    emitted = [[2 / 5, 3 / 5, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [1 / 4, 0, 1 / 4, 1 / 2]]
    assert hmm.emissionprob_ == pytest.approx(np.array(emitted))
    smoothed = mk.HMM(3, transition_prior=2.0).fit(words, labels=states)  # one pseudo-count
    assert smoothed.transmat_[1] == pytest.approx([2 / 6, 1 / 6, 3 / 6])


def test_ice_cream_and_one_step_of_learning():
    hmm = mk.HMM(2, **ICE_CREAM, max_iter=1)
    assert np.exp(hmm.log_prob([3, 1, 3])) == pytest.approx([0.028562], abs=1e-12)
    assert hmm.decode([3, 1, 3])[0].tolist() == [0, 1, 0]
    assert np.exp(hmm.k_best([3, 1, 3], 1)[0][1]) == pytest.approx([0.0128], abs=1e-12)
    filtered = hmm.filter([3, 1, 3])[0]
    assert filtered == pytest.approx(
        np.array([[0.32, 0.02], [0.0404, 0.069], [0.023496, 0.005066]])
        / np.array([[0.34], [0.1094], [0.028562]])
    )
    hmm.fit([3, 1, 3])
    assert hmm.startprob_ == pytest.approx([0.936629, 0.063371], abs=1e-6)
    assert hmm.transmat_ == pytest.approx(np.array([[0.537201, 0.462799], [0.753410, 0.246590]]), abs=1e-6)
    assert hmm.emissionprob_ == pytest.approx(
        np.array([[0.183756, 0, 0.816244], [0.714996, 0, 0.285004]]), abs=1e-6
    )
    assert np.exp(hmm.score([3, 1, 3])) == pytest.approx(0.220007, abs=1e-6)


def test_the_dishonest_casino():
    hmm = mk.HMM(2, **CASINO)
    rolls = [list("1215621624"), list("1665626636")]
    assert np.exp(hmm.log_prob(rolls)) == pytest.approx([9.0405248e-9, 6.3979069e-7], rel=1e-7)
    fair, loaded = hmm.decode(rolls)
    assert fair.tolist() == [0] * 10
    assert loaded.tolist() == [1] * 10


@st.composite
def models(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, steps, kind = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.sampled_from(["c", "b", "g"]))
    chain = {"start": rng.dirichlet(np.ones(k)), "transition": rng.dirichlet(np.ones(k), k)}
    if kind == "c":
        symbols = ["a", "b", "c"]
        params = {"probs": rng.dirichlet(np.ones(3), k)}
        hmm = mk.HMM(k, **chain, symbols=symbols, emission_params=params)
        data = np.array(rng.choice(symbols, steps), dtype=object)[:, None]
    elif kind == "b":
        hmm = mk.HMM(k, emission="bernoulli", **chain, emission_params={"probs": rng.random((k, 2))})
        data = rng.integers(0, 2, (steps, 2)).astype(float)
    else:
        d = draw(st.integers(1, 2))
        roots = rng.normal(size=(k, d, d))
        params = {
            "means": rng.normal(size=(k, d)),
            "covariances": roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(d),
        }
        hmm = mk.HMM(k, emission="gaussian", **chain, emission_params=params)
        data = rng.normal(size=(steps, d))
    missing = rng.random(steps) < 0.25
    data[missing] = None if kind == "c" else np.nan
    return hmm, data, missing


@settings(max_examples=30, deadline=None)
@given(models())
def test_every_answer_is_that_of_the_unrolled_network(problem):
    hmm, data, missing = problem
    steps, d = data.shape
    network = hmm.unroll(steps)
    evidence = {}
    for t in np.flatnonzero(~missing):
        for j in range(d):
            cell = data[t, j]
            cell = int(cell) if hmm.emission == "bernoulli" else cell
            evidence[f"x{t}" if d == 1 else f"x{t}_{j}"] = cell
    smoothed, filtered = hmm.smooth([data])[0], hmm.filter([data])[0]
    assert hmm.log_prob([data])[0] == pytest.approx(network.log_evidence(evidence), abs=1e-8)
    for t in range(steps):
        assert smoothed[t] == pytest.approx(network.query(f"z{t}", given=evidence).values, abs=1e-8)
        past = {n: v for n, v in evidence.items() if int(n[1:].split("_")[0]) <= t}
        assert filtered[t] == pytest.approx(network.query(f"z{t}", given=past).values, abs=1e-8)
    pairs = hmm.smooth([data], pairs=True)[0]
    for t in range(steps - 1):
        joint = network.query([f"z{t}", f"z{t + 1}"], given=evidence).values
        assert pairs[t] == pytest.approx(joint, abs=1e-8)
    ahead = hmm.unroll(steps + 2)
    for h, p in enumerate(hmm.forecast([data], 2)[0]):
        assert p == pytest.approx(ahead.query(f"z{steps + h}", given=evidence).values, abs=1e-8)
    if hmm.emission != "gaussian":
        moved = {n: f"x@{n[1:]}" if d == 1 else f"x_{n[-1]}@{n[1:-2]}" for n in evidence}
        dynamic = hmm.network().query("z@0", given={moved[n]: v for n, v in evidence.items()})
        assert smoothed[0] == pytest.approx(dynamic.values, abs=1e-8)
    path = hmm.decode([data])[0]
    if not missing.any() and hmm.emission != "gaussian":
        best = network.map(given=evidence)
        assert path.tolist() == [best[f"z{t}"] for t in range(steps)]


def _random(kind, rng, k=3, d=2):
    chain = {"start": rng.dirichlet(np.ones(k)), "transition": rng.dirichlet(np.full(k, 2.0), k)}
    if kind == "categorical":
        return chain, {"probs": rng.dirichlet(np.ones(5), k)}
    if kind == "poisson":
        return chain, {"rates": rng.gamma(2.0, 3.0, (k, d))}
    roots = rng.normal(size=(k, d, d))
    full = roots @ roots.transpose(0, 2, 1) + np.eye(d)
    shaped = {
        "full": full,
        "diag": full.diagonal(axis1=1, axis2=2),
        "tied": full[0],
        "spherical": full[:, 0, 0],
    }
    return chain, {"means": 3 * rng.normal(size=(k, d)), "covariances": shaped[kind]}


@pytest.mark.parametrize("kind", ["categorical", "poisson", "full", "diag", "tied", "spherical"])
def test_hmmlearn_has_the_same_values(kind):
    peers = pytest.importorskip("hmmlearn.hmm")
    rng = np.random.default_rng(5)
    chain, params = _random(kind, rng)
    gaussian = kind in ("full", "diag", "tied", "spherical")
    own = mk.HMM(
        3,
        emission="gaussian" if gaussian else kind,
        covariance_type=kind if gaussian else "full",
        **chain,
        emission_params=params,
        init="keep",
        max_iter=7,
        tol=0,
    )
    data, _ = own.sample(60, 5, seed=2)
    data = [x[: 60 - 9 * i] for i, x in enumerate(data)]
    flat, lengths = np.concatenate(data), [len(x) for x in data]
    common = {"n_iter": 7, "tol": -np.inf, "init_params": "", "implementation": "scaling"}
    if kind == "categorical":
        peer = peers.CategoricalHMM(3, **common)
        peer.emissionprob_ = params["probs"]
    elif kind == "poisson":
        peer = peers.PoissonHMM(3, lambdas_prior=0.0, **common)
        peer.lambdas_ = params["rates"]
    else:
        peer = peers.GaussianHMM(3, kind, covars_prior=0.0, covars_weight=1.0, min_covar=0.0, **common)
        peer.means_, peer.covars_ = params["means"], params["covariances"]
    peer.startprob_, peer.transmat_ = chain["start"], chain["transition"]
    if kind == "categorical":
        peer.n_features = 5
    assert own.score(flat, lengths) == pytest.approx(peer.score(flat, lengths), rel=1e-10)
    assert np.concatenate(own.smooth(flat, lengths)) == pytest.approx(
        peer.predict_proba(flat, lengths), abs=1e-8
    )
    best = sum(scores[0] for _, scores in own.k_best(flat, 1, lengths))
    assert best == pytest.approx(peer.decode(flat, lengths)[0], rel=1e-10)  # paths may be equally good
    own.fit(flat, lengths)
    peer.fit(flat, lengths)
    assert own.n_iter_ == 7
    assert own.history_ == pytest.approx(list(peer.monitor_.history), rel=1e-9)
    assert own.transmat_ == pytest.approx(peer.transmat_, abs=1e-8)
    assert own.startprob_ == pytest.approx(peer.startprob_, abs=1e-8)
    values = {"categorical": "emissionprob_", "poisson": "lambdas_"}.get(kind, "covars_")
    learned = own.emission_.params[list(own.emission_.params)[-1]]
    if kind == "spherical":  # hmmlearn hands these out in another shape
        learned, want = learned[:, 0, 0], peer._covars_.reshape(3, -1)[:, 0]
    else:
        want = getattr(peer, values)
    assert learned == pytest.approx(want, abs=1e-8)


FAMILIES = [
    ("categorical", {}, {"concentration": 1.5}),
    ("poisson", {}, {"shape": 2.0, "rate": 0.5}),
    ("bernoulli", {}, {"a": 2.0, "b": 1.5}),
    ("multinomial", {}, {"concentration": 2.0}),
    ("gaussian", {"covariance_type": "full"}, {"mean": 0.0, "strength": 0.5, "scale": 0.3, "df": 5.0}),
    ("gaussian", {"covariance_type": "diag"}, {"mean": 1.0, "strength": 2.0}),
    ("gaussian", {"covariance_type": "tied"}, {"scale": 0.3, "df": 5.0}),
    ("gaussian", {"covariance_type": "spherical"}, {"mean": 0.0, "strength": 0.5, "scale": 0.3, "df": 5.0}),
    ("gmm", {"n_mixtures": 2}, {"mean": 0.0, "strength": 0.5, "scale": 0.3, "df": 5.0, "concentration": 2.0}),
    ("student-t", {}, {"mean": 0.0, "strength": 0.5, "scale": 0.3, "df": 5.0}),
]


def _data(emission, rng):
    if emission == "categorical":
        return [rng.integers(0, 4, n) for n in (40, 25, 1)]
    if emission in ("poisson", "multinomial"):
        return [rng.poisson(3.0, (n, 3)) + 4 * (np.arange(n) // 10 % 2)[:, None] for n in (40, 25, 1)]
    if emission == "bernoulli":
        return [rng.integers(0, 2, (n, 3)) for n in (40, 25, 1)]
    return [rng.normal(size=(n, 2)) + 3 * (np.arange(n) // 10 % 2)[:, None] for n in (40, 25, 1)]


@pytest.mark.parametrize(("emission", "options", "prior"), FAMILIES)
@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_the_objective_never_falls(emission, options, prior, with_prior):
    rng = np.random.default_rng(1)
    more = {"emission_prior": prior, "transition_prior": 2.0, "start_prior": 1.5} if with_prior else {}
    hmm = mk.HMM(2, emission=emission, **options, **more, max_iter=40, tol=0, random_state=3)
    hmm.fit(_data(emission, rng))
    gains = np.diff(hmm.history_)
    assert gains.size == 0 or gains.min() > -1e-9 * max(1.0, abs(hmm.history_[-1]))
    assert hmm.history_[-1] > hmm.history_[0]
    if not with_prior:
        assert hmm.score(_data(emission, np.random.default_rng(1))) >= hmm.history_[-1] - 1e-7


@pytest.mark.slow
@pytest.mark.parametrize(("emission", "options", "prior"), FAMILIES)
@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_what_is_drawn_has_the_densities(emission, options, prior):
    rng = np.random.default_rng(0)
    hmm = mk.HMM(2, emission=emission, **options, max_iter=3, random_state=0).fit(_data(emission, rng))
    x, z = hmm.sample(20_000, seed=1)
    again = mk.HMM(2, emission=emission, **options).fit(x, labels=z)
    assert again.transmat_ == pytest.approx(hmm.transmat_, abs=0.03)
    if emission not in ("gmm", "student-t"):  # one step of learning finds the others
        for name, value in hmm.emission_.params.items():
            assert again.emission_.params[name] == pytest.approx(value, abs=0.15, rel=0.05)
    assert again.score(x) == pytest.approx(hmm.score(x), rel=0.02)


def test_restarts_keep_the_best_run_and_seeds_repeat_it():
    data = mk.HMM(3, **_given("categorical", 7)).sample(80, 6, seed=0)[0]
    options = {"max_iter": 15, "tol": 1e-9, "random_state": 4}
    with pytest.warns(ConvergenceWarning, match="still gained after 15"):
        one = mk.HMM(3, **options).fit(data)
    many, again = (mk.HMM(3, n_init=5, **options) for _ in range(2))
    with pytest.warns(ConvergenceWarning, match="still gained after 15"):
        many.fit(data)
    with pytest.warns(ConvergenceWarning, match="still gained after 15"):
        again.fit(data)
    assert many.history_[-1] >= one.history_[-1]
    assert (many.transmat_ == again.transmat_).all()


def _given(kind, seed):
    chain, params = _random(kind, np.random.default_rng(seed))
    return {**chain, "emission_params": params}


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_viterbi_training_raises_the_probability_of_the_best_paths():
    data = mk.HMM(3, **_given("categorical", 1)).sample(60, 5, seed=0)[0]
    hmm = mk.HMM(3, algorithm="viterbi", max_iter=20, tol=0, random_state=0).fit(data)
    assert np.diff(hmm.history_).min() >= -1e-9
    best = sum(scores[0] for _, scores in hmm.k_best(data, 1))
    assert best >= hmm.history_[-1] - 1e-9


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_some_labels_name_the_states():
    truth = mk.HMM(
        2,
        emission="gaussian",
        start=[0.5, 0.5],
        transition=[[0.9, 0.1], [0.1, 0.9]],
        emission_params={"means": [[0.0], [4.0]], "covariances": np.ones((2, 1, 1))},
    )
    x, z = truth.sample(300, 4, seed=0)
    for swap in (False, True):
        told = [np.where(np.arange(300) < 5, 1 - s if swap else s, -1) for s in z]
        hmm = mk.HMM(2, emission="gaussian", random_state=0).fit(x, labels=told)
        assert (hmm.means_[0, 0] > hmm.means_[1, 0]) == swap
        assert np.diff(hmm.history_).min() > -1e-9


def test_a_told_state_is_certain_and_missing_steps_with_labels_count():
    hmm = mk.HMM(2, **ICE_CREAM, max_iter=1).fit([[3, None, 3]], labels=[[-1, 1, -1]])
    assert hmm.transmat_[0, 1] == pytest.approx(1.0)
    assert hmm.transmat_[1, 0] > 0.5


def test_a_state_without_data_keeps_its_values_and_says_so():
    params = {"means": [[0.0], [1e6]], "covariances": np.ones((2, 1, 1))}
    hmm = mk.HMM(
        2,
        emission="gaussian",
        start=[1.0, 0.0],
        transition=[[1.0, 0.0], [0.5, 0.5]],
        emission_params=params,
        max_iter=3,
    )
    with pytest.warns(ConvergenceWarning, match="state 1 got no data"):
        hmm.fit(np.random.default_rng(0).normal(size=20))
    assert hmm.means_[1, 0] == 1e6
    assert hmm.transmat_[1].tolist() == [0.5, 0.5]


def test_zeros_of_the_chain_stay_zero_even_under_a_prior():
    rng = np.random.default_rng(0)
    left_right = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    data = [rng.integers(0, 3, 20) for _ in range(5)]
    hmm = mk.HMM(3, start=[1, 0, 0], transition=left_right, transition_prior=3.0, random_state=0, tol=1e-1)
    hmm.fit(data)
    assert (hmm.transmat_[left_right == 0] == 0).all()
    assert hmm.startprob_.tolist() == [1, 0, 0]


def test_a_constant_column_gets_the_documented_ridge():
    x = np.column_stack([np.random.default_rng(0).normal(size=50), np.ones(50)])
    hmm = mk.HMM(2, emission="gaussian", random_state=0, tol=1.0).fit(x)
    assert np.isfinite(hmm.score(x))
    assert (np.linalg.eigvalsh(hmm.covars_) > 0).all()


def test_all_forms_of_sequences_are_the_same_data():
    hmm = mk.HMM(2, **CASINO)
    rolls = [list("121562"), list("16")]
    want = hmm.log_prob(rolls)
    assert hmm.log_prob(np.array(list("12156216")), [6, 2]) == pytest.approx(want)
    frame = pd.DataFrame({"who": ["a"] * 6 + ["b"] * 2, "roll": list("12156216")})
    assert hmm.log_prob(frame, by="who") == pytest.approx(want)
    assert hmm.score(rolls) == pytest.approx(want.sum())


def test_bic_and_aic_count_free_parameters():
    hmm = mk.HMM(2, **CASINO)
    rolls = list("1215621624")
    score = hmm.score(rolls)
    assert hmm.aic(rolls) == pytest.approx(2 * 13 - 2 * score)
    assert hmm.bic(rolls) == pytest.approx(13 * np.log(10) - 2 * score)


def test_an_hmm_is_cloned_and_pickled():
    hmm = mk.HMM(2, **CASINO, max_iter=2, tol=1e3).fit(list("1215621624"))
    assert clone(hmm).get_params()["start"] == CASINO["start"]
    assert (pickle.loads(pickle.dumps(hmm)).transmat_ == hmm.transmat_).all()


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda h: h.log_prob([list("12"), list("17")]), "step 1 of sequence 1 has '7'"),
        (lambda h: h.log_prob([list("12"), []]), "sequence 1"),
        (lambda h: h.log_prob(list("1234"), [3, 2]), "lengths= add up to 5"),
        (lambda h: h.fit([list("12"), list("34")], labels=[[0, 1], [0]]), "sequence 1"),
        (lambda h: h.fit([list("12"), list("34")], labels=[[0, 1], [0, 2]]), "step 1 of sequence 1 has the label 2"),
        (lambda h: mk.HMM(2, emission="gaussian").fit([[[1, 2]], [[1, np.nan]]]), "step 0 of sequence 1 misses"),
        (lambda h: mk.HMM(2, emission="gaussian").fit([[1.0, np.inf]]), "step 1 of sequence 0 has an infinite"),
        (lambda h: mk.HMM(2, emission="gaussian").fit([[np.nan, np.nan]]), "all steps .* are missing"),
        (lambda h: mk.HMM(2, emission="poisson").fit([[1, 2], [1.5, 2]]), "step 0 of sequence 1"),
        (lambda h: mk.HMM(2, emission="bernoulli").fit([[1, 2]]), "step 1 of sequence 0 .* 0 or 1"),
        (lambda h: mk.HMM(2, emission="gaussian").fit([np.zeros((2, 2)), np.zeros((2, 3))]), "sequence 1 has 3"),
        (lambda h: mk.HMM(0).fit([0]), "n_states= is a whole number"),
        (lambda h: mk.HMM(2, emission="gauss").fit([0]), "emission= is "),
        (lambda h: mk.HMM(2, start=[0.5, 0.6]).fit([0]), "start= are probabilities"),
        (lambda h: mk.HMM(2, transition=np.eye(3)).fit([0]), "transition= have shape 2 x 2, not 3 x 3"),
        (lambda h: mk.HMM(2, emission_params={"means": [1, 2]}).fit([0]), "has probs, not means"),
        (lambda h: mk.HMM(2, emission_prior={"alpha": 1}).fit([0]), "emission_prior= has no 'alpha'"),
        (
            lambda h: mk.HMM(
                1, emission="gaussian", emission_params={"means": [[0, 0]], "covariances": [[[1, 2], [2, 1]]]}
            ).fit([[0, 1]]),
            "covariance of state 0",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_named(act, said):
    with pytest.raises(InvalidArgument, match=said):
        act(mk.HMM(2, **CASINO))


def test_an_impossible_sequence_is_named_and_the_fit_so_far_stays():
    hmm = mk.HMM(
        2, start=[1, 0], transition=[[0, 1], [1, 0]], emission_params={"probs": [[1, 0], [0, 1]]}, tol=10.0
    )
    assert hmm.log_prob([[0, 1], [0, 0, 1]]).tolist() == [0.0, -np.inf]
    hmm.fit([[0, 1, 0]])
    before = hmm.transmat_
    for act in (hmm.smooth, hmm.decode, hmm.filter, hmm.sample_paths, hmm.fit):
        with pytest.raises(InvalidArgument, match="step 1 of sequence 1 is impossible"):
            act([[0, 1], [0, 0, 1]])
    assert hmm.transmat_ is before


def test_an_hmm_without_values_says_so():
    with pytest.raises(IncompleteModel, match="no values yet"):
        mk.HMM(2).log_prob([0, 1])
    with pytest.raises(AttributeError, match="means"):
        mk.HMM(2, **CASINO).means_  # noqa: B018
    with pytest.raises(UnsupportedModel, match="Poisson"):
        mk.HMM(1, emission="poisson", start=[1], transition=[[1]], emission_params={"rates": [2.0]}).unroll(2)


def test_given_values_that_are_changed_after_a_question_are_asked_and_checked_anew():
    given = {
        "start": np.array([0.8, 0.2]),
        "transition": np.array([[0.6, 0.4], [0.5, 0.5]]),
        "emission_params": {"probs": np.array([[0.2, 0.4, 0.4], [0.5, 0.4, 0.1]])},
    }
    hmm, said = mk.HMM(2, **given), [2, 0, 2]
    before = hmm.score(said)
    for change in ("start", "transition", "emission_params"):  # inside the arrays, which nobody is told of
        array = given[change]["probs"] if change == "emission_params" else given[change]
        array[...] = array[..., ::-1].copy()
        after = hmm.score(said)
        assert after == mk.HMM(2, **given).score(said)
        assert abs(after - before) > 1e-3
        before = after
    hmm.n_states = 3
    with pytest.raises(InvalidArgument, match="start="):
        hmm.score(said)
    hmm.n_states = 2
    given["transition"][0, 0] = 2.0
    with pytest.raises(InvalidArgument, match="transition="):
        hmm.decode(said)
