"""HMMs that remember more, or are driven: higher orders, lags, inputs; against the unrolled network, and learned."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import markovia as mk
from markovia.errors import InvalidArgument, UnsupportedModel


def agree(hmm, network, data, evidence, inputs=None, given=None):
    """All answers about one sequence are those of the network."""
    steps, k = len(data), hmm.n_states
    extra = {} if inputs is None else {"inputs": [inputs]}
    first = 0.0 if not given else network.log_evidence(given)
    total = network.log_evidence(evidence)
    assert hmm.log_prob([data], **extra)[0] == pytest.approx(total - first, abs=1e-8)
    smoothed, filtered = hmm.smooth([data], **extra)[0], hmm.filter([data], **extra)[0]
    pairs = hmm.smooth([data], pairs=True, **extra)[0]
    for t in range(steps):
        assert smoothed[t] == pytest.approx(network.query(f"z{t}", given=evidence).values, abs=1e-8)
        so_far = {n: v for n, v in evidence.items() if int(n[1:]) <= t}
        assert filtered[t] == pytest.approx(network.query(f"z{t}", given=so_far).values, abs=1e-8)
        if t:
            both = network.query([f"z{t - 1}", f"z{t}"], given=evidence).values
            assert pairs[t - 1] == pytest.approx(both, abs=1e-8)
    joint = network.query([f"z{t}" for t in range(steps)], given=evidence).values.reshape((k,) * steps)
    paths, logs = hmm.k_best([data], 3, **extra)[0]
    best = sorted(joint.ravel(), reverse=True)[: len(logs)]
    assert np.exp(logs - (total - first)) == pytest.approx(best, abs=1e-8)
    assert joint[tuple(hmm.decode([data], **extra)[0])] == pytest.approx(best[0], abs=1e-8)
    assert [joint[tuple(path)] for path in paths] == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize(("k", "order", "steps"), [(2, 2, 4), (3, 2, 3), (2, 3, 5), (2, 3, 2), (2, 2, 1)])
@pytest.mark.parametrize("joint_start", [True, False])
def test_a_chain_of_higher_order_is_its_network(k, order, steps, joint_start):
    rng = np.random.default_rng(k * order + steps)
    start = (
        rng.dirichlet(np.ones(k**order)).reshape((k,) * order) if joint_start else rng.dirichlet(np.ones(k))
    )
    hmm = mk.HMM(
        k,
        order=order,
        start=start,
        transition=rng.dirichlet(np.ones(k), (k,) * order),
        emission_params={"probs": rng.dirichlet(np.ones(2), k)},
    )
    data = rng.integers(0, 2, steps).tolist()
    evidence = {f"x{t}": v for t, v in enumerate(data)}
    network = hmm.unroll(steps)
    assert network.parents(f"z{steps - 1}") == [f"z{t}" for t in range(max(steps - 1 - order, 0), steps - 1)]
    agree(hmm, network, data, evidence)
    ahead = hmm.unroll(steps + 2)
    for h, p in enumerate(hmm.forecast([data], 2)[0]):
        assert p == pytest.approx(ahead.query(f"z{steps + h}", given=evidence).values, abs=1e-8)
    want = network.query([f"z{t}" for t in range(steps)], given=evidence).values.reshape((k,) * steps)
    assert hmm.segment_prob(data, steps - 1, [1]) == pytest.approx([want[..., 1].sum()], abs=1e-8)


def test_a_chain_of_order_two_is_learned():
    truth = mk.HMM(
        2,
        order=2,
        start=[0.5, 0.5],
        transition=[[[0.1, 0.9], [0.8, 0.2]], [[0.3, 0.7], [0.95, 0.05]]],
        emission="gaussian",
        emission_params={"means": [[0.0], [4.0]], "covariances": np.ones((2, 1, 1))},
    )
    x, z = truth.sample(500, 5, seed=0)
    hmm = mk.HMM(
        2,
        order=2,
        emission="gaussian",
        emission_params={"means": [[1.0], [3.0]], "covariances": np.ones((2, 1, 1))},
        random_state=0,
    ).fit(x)
    assert np.diff(hmm.history_).min() > -1e-9
    assert hmm.transmat_ == pytest.approx(np.array(truth.transition), abs=0.06)
    assert hmm.startprob_.shape == (2, 2)
    assert hmm.bic(x) < mk.HMM(2, emission="gaussian", random_state=0).fit(x).bic(x)
    told = mk.HMM(2, order=2, emission="gaussian").fit(x, labels=z)
    triples = np.zeros((2, 2, 2))
    for path in z:
        np.add.at(triples, (path[:-2], path[1:-1], path[2:]), 1)
    assert told.transmat_ == pytest.approx(triples / triples.sum(axis=2, keepdims=True))
    some = [np.where(np.arange(500) < 100, 1 - path, -1) for path in z]
    assert mk.HMM(2, order=2, emission="gaussian", random_state=0).fit(x, labels=some).means_[0, 0] > 2
    assert clone(hmm).get_params()["order"] == 2
    for act in (lambda: hmm.partial_fit(x), lambda: hmm.posterior(x, draws=2), lambda: hmm.network()):
        with pytest.raises(UnsupportedModel, match="order"):
            act()
    with pytest.raises(UnsupportedModel, match="no single mean duration"):
        hmm.expected_durations()


def test_the_wheels_of_dna():
    # two clusters with four wheels each: p(next letter | letter, cluster); hidden and visible chains together
    rng = np.random.default_rng(4)
    wheels = rng.dirichlet(np.full(4, 0.3), (2, 4))
    settings = {"symbols": list("ACGT"), "start": [0.5, 0.5], "transition": [[0.9, 0.1], [0.2, 0.8]]}
    params = {"probs": wheels, "first": rng.dirichlet(np.ones(4), 2)}
    hmm = mk.HMM(2, lags=1, emission_params=params, **settings)
    assert hmm._model().emission.probs.reshape(-1, 4).shape == (8, 4)  # eight wheels
    data = list("ACGGT")
    network = hmm.unroll(5)
    assert network.parents("x3") == ["z3", "x2"]
    agree(hmm, network, data, {f"x{t}": v for t, v in enumerate(data)})
    # one cluster is a Markov chain of letters
    chain = mk.HMM(
        1, lags=1, symbols=list("ACGT"), start=[1], transition=[[1]],
        emission_params={"probs": wheels[:1], "first": params["first"][:1]},
    )  # fmt: skip
    codes = ["ACGT".index(c) for c in data]
    want = np.log(params["first"][0, codes[0]]) + np.log(wheels[0, codes[:-1], codes[1:]]).sum()
    assert chain.log_prob([data])[0] == pytest.approx(want)
    x, z = hmm.sample(600, 5, seed=0)
    learned = mk.HMM(2, lags=1, symbols=list("ACGT"), n_init=4, random_state=0, max_iter=200).fit(x)
    assert np.diff(learned.history_).min() > -1e-9
    right = np.mean(np.concatenate(learned.decode(x)) == np.concatenate(z))
    best = np.mean(np.concatenate(hmm.decode(x)) == np.concatenate(z))
    assert max(right, 1 - right) > best - 0.1
    plain = mk.HMM(2, symbols=list("ACGT"), n_init=2, random_state=0, max_iter=200).fit(x)
    assert learned.bic(x) < plain.bic(x)


def test_two_lags_of_symbols_are_their_network():
    rng = np.random.default_rng(0)
    params = {"probs": rng.dirichlet(np.ones(2), (2, 2, 2)), "first": rng.dirichlet(np.ones(2), 2)}
    chain = {"start": [0.3, 0.7], "transition": rng.dirichlet(np.ones(2), 2)}
    hmm = mk.HMM(2, lags=2, emission_params=params, **chain)
    data = [0, 1, 1, 0]
    agree(hmm, hmm.unroll(4), data, {f"x{t}": v for t, v in enumerate(data)})


def _regression(rng, p, q, drive):
    k = 2
    transition = rng.normal(size=(k, k, 1 + q)) if drive else rng.dirichlet(np.ones(k), k)
    params = {"means": rng.normal(size=(k, 1)), "covariances": np.array([[[0.5]], [[1.5]]])}
    params |= {"lags": rng.normal(size=(k, p, 1, 1)) / 2} if p else {}
    params |= {"inputs": rng.normal(size=(k, 1, q))} if q else {}
    return mk.HMM(
        k, lags=p, emission="gaussian", start=[0.4, 0.6], transition=transition, emission_params=params
    )


@pytest.mark.parametrize(
    ("p", "q", "drive"), [(1, 0, False), (2, 0, False), (0, 2, True), (1, 1, True), (0, 1, False)]
)
def test_regressions_on_the_past_and_on_inputs_are_their_network(p, q, drive):
    rng = np.random.default_rng(p + 3 * q)
    hmm = _regression(rng, p, q, drive)
    data, inputs = rng.normal(size=4), rng.normal(size=(4, q)) if q else None
    network = hmm.unroll(4, inputs=inputs)
    evidence = {f"x{t}": float(v) for t, v in enumerate(data)}
    agree(hmm, network, data, evidence, inputs, {f"x{t}": evidence[f"x{t}"] for t in range(p)})
    if drive:
        future = rng.normal(size=(2, q))
        every = np.concatenate([inputs, future])
        ahead = hmm.unroll(6, inputs=every)
        for h, found in enumerate(hmm.forecast([data], 2, inputs=[inputs], future=[future])[0]):
            assert found == pytest.approx(ahead.query(f"z{4 + h}", given=evidence).values, abs=1e-8)


def test_inputs_that_drive_moves_and_means_are_learned():
    rng = np.random.default_rng(0)
    truth = mk.HMM(
        2,
        emission="gaussian",
        start=[0.5, 0.5],
        transition=[[[0, 0], [-1, 2]], [[0, 0], [1, 2]]],
        emission_params={
            "means": [[0.0], [4.0]],
            "inputs": [[[1.0]], [[-1.0]]],
            "covariances": np.full((2, 1, 1), 0.5),
        },
    )
    inputs = [rng.normal(size=(400, 1)) for _ in range(4)]
    x, z = truth.sample(400, 4, seed=1, inputs=inputs)
    begin = {"means": [[1.0], [3.0]], "covariances": np.ones((2, 1, 1))}
    hmm = mk.HMM(2, emission="gaussian", emission_params=begin, random_state=0).fit(x, inputs=inputs)
    assert np.diff(hmm.history_).min() > -1e-6
    assert hmm.means_[:, 0] == pytest.approx([0, 4], abs=0.15)
    assert hmm.emission_.inputs[:, 0, 0] == pytest.approx([1, -1], abs=0.15)
    slopes = hmm.input_weights_[:, 1] - hmm.input_weights_[:, 0]
    assert slopes == pytest.approx(np.array([[-1, 2], [1, 2]]), abs=0.45)
    assert hmm.transmat_[0, 1] == pytest.approx(1 / (1 + np.exp(-slopes[0, 0])))
    told = mk.HMM(2, emission="gaussian", inputs_to="transitions").fit(x, inputs=inputs, labels=z)
    assert told.emission_.names == ("means", "covariances")
    only = mk.HMM(2, emission="gaussian", inputs_to="emissions", emission_params=begin).fit(x, inputs=inputs)
    assert not hasattr(only, "input_weights_")
    assert only.emission_.inputs[:, 0, 0] == pytest.approx([1, -1], abs=0.2)
    driven = mk.HMM(2, structure="left-right", random_state=0, tol=1.0).fit(
        [rng.integers(0, 2, 30)], inputs=rng.normal(size=(30, 1))
    )
    assert driven.transmat_[1].tolist() == [0, 1]


def test_autoregression_agrees_with_statsmodels():
    api = pytest.importorskip("statsmodels.tsa.regime_switching.markov_autoregression")
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=120)) * 0.3
    model = api.MarkovAutoregression(y, k_regimes=1 + 1, order=1, switching_ar=True, switching_variance=True)
    # its means are of the deviation form: y_t - m = a (y_t-1 - m_before); with equal means this is ours
    values = {"p[0->0]": 0.8, "p[1->0]": 0.3, "m": 0.4, "s": [0.5, 1.2], "a": [0.7, -0.2]}
    params = [0.8, 0.3, 0.4, 0.4, *values["s"], *values["a"]]
    named = dict(zip(model.param_names, params, strict=True))
    assert list(named)[:2] == ["p[0->0]", "p[1->0]"]
    transition = np.array([[0.8, 0.2], [0.3, 0.7]])
    stationary = np.array([0.6, 0.4])
    hmm = mk.HMM(
        2,
        lags=1,
        emission="gaussian",
        start=stationary,
        transition=transition,
        emission_params={
            "means": 0.4 * (1 - np.array(values["a"]))[:, None],
            "lags": np.array(values["a"]).reshape(2, 1, 1, 1),
            "covariances": np.array(values["s"]).reshape(2, 1, 1),
        },
    )
    assert hmm.log_prob(y)[0] == pytest.approx(model.loglike(params), rel=1e-8)


@pytest.mark.parametrize("kind", ["full", "diag", "tied", "spherical"])
def test_regressions_of_several_columns_gain_at_each_step(kind):
    rng = np.random.default_rng(1)
    x = [np.cumsum(rng.normal(size=(60, 2)), axis=0) * 0.3 for _ in range(3)]
    u = [rng.normal(size=(60, 1)) for _ in range(3)]
    hmm = mk.HMM(
        2, lags=2, emission="gaussian", covariance_type=kind, random_state=0, max_iter=30, tol=0
    ).fit(x, inputs=u)
    assert np.diff(hmm.history_).min() > -1e-6
    drawn, _ = hmm.sample(20, 3, seed=0, inputs=u[0][:20])
    assert np.shape(drawn) == (3, 20, 2)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: mk.HMM(2, lags=1, emission="poisson").fit([[1, 2]]), "lags= are for"),
        (lambda: mk.HMM(2, lags=1).fit([[1, None, 1]]), "step 1 of sequence 0 is missing; with lags="),
        (lambda: mk.HMM(2, lags=1, emission="gaussian").fit([[1.0, 2, 3], [1, np.nan, 2]]), "step 1 of sequence 1"),
        (lambda: mk.HMM(2, order=2, structure="left-right").fit([[0, 1]]), "order= above 1"),
        (lambda: mk.HMM(2, order=2).fit([[0, 1]], inputs=[[0.0, 1.0]]), "chains of order 1"),
        (lambda: mk.HMM(2).fit([[0, 1, 1], [0]], inputs=[[0.0, 1, 2], [1.0, 2]]), "those of sequence 1 do not"),
        (lambda: mk.HMM(2).fit([[0, 1, 1]], inputs=[[0.0, np.nan, 2]]), "step 1 of sequence 0 has a missing"),
        (lambda: mk.HMM(2, tol=9, random_state=0).fit([[0, 1]]).smooth([[0, 1]], inputs=[[0.0, 1]]), "no inputs drive"),
        (lambda: mk.HMM(2, tol=9, random_state=0).fit([[0, 1]], inputs=[[0.0, 1]]).smooth([[0, 1]]), "say inputs="),
        (lambda: mk.HMM(2, tol=9, random_state=0).fit([[0, 1]], inputs=[[0.0, 1]]).sample(3), "say inputs="),
        (lambda: mk.HMM(2, order=2, start=[0.5, 0.5], transition=np.eye(2)).fit([[0, 1]]), "have shape 2 x 2 x 2"),
    ],
)  # fmt: skip
def test_bad_input_is_named(act, said):
    with pytest.raises(InvalidArgument, match=said):
        act()


def test_files_and_pickle_keep_every_shape(tmp_path):
    x, u = [[0, 1, 1, 0, 1]], [[0.0, 1, 2, 1, 0]]
    for settings, more in (({"order": 2}, {}), ({"lags": 1}, {}), ({}, {"inputs": u})):
        hmm = mk.HMM(2, random_state=0, tol=9, **settings).fit(x, **more)
        hmm.save(tmp_path / "model.json")
        for again in (pickle.loads(pickle.dumps(hmm)), mk.load(tmp_path / "model.json")):
            assert again.log_prob(x, **more) == pytest.approx(hmm.log_prob(x, **more))
            assert again.decode(x, **more)[0].tolist() == hmm.decode(x, **more)[0].tolist()


def test_emissions_that_are_functions_are_left_to_pickle(tmp_path):
    hmm = mk.HMM(2, emission=mk.distributions.Normal, random_state=0, tol=9).fit([[0.0, 1.0, 0.5]])
    with pytest.raises(UnsupportedModel, match="pickle keeps"):
        hmm.save(tmp_path / "model.json")


def test_many_steps_with_inputs_of_their_own_are_shared_out_alike():
    rng = np.random.default_rng(0)
    hmm = _regression(rng, 0, 1, True)
    lengths = [700, 3, 900, 1, 800]
    inputs = [rng.normal(size=(n, 1)) for n in lengths]
    x = [rng.normal(size=(n, 1)) for n in lengths]
    asked = hmm._ask(x, None, None, inputs)
    counts = asked.chain.expect(asked.seen)
    pairs = asked.chain.pairs(asked.seen)
    assert counts.pairs.sum(axis=0) == pytest.approx(pairs.sum(axis=0), rel=1e-9)
    assert counts.pairs[asked.chain.moves] == pytest.approx(pairs, abs=1e-12)
