"""Taggers: against CRFsuite, against enumeration, and against the Markov network of a sequence."""

import itertools
import warnings

import numpy as np
import pytest

import markovia as mk

LABELS = ("a", "b", "c")


def corpus(n=40, seed=0, vocabulary=12, most=7):
    """Tokens with features of all forms that CRFsuite takes."""
    rng = np.random.default_rng(seed)
    inputs, labels = [], []
    for _ in range(n):
        words = rng.integers(vocabulary, size=rng.integers(1, most))
        y = [LABELS[int(w) % 3 if rng.random() < 0.7 else rng.integers(3)] for w in words]
        x = [
            {
                "word": f"w{w}",
                "odd": bool(w % 2),
                "size": float(w) / 5,
                "near": {"word": f"w{words[t - 1]}", "flags": ["x", f"f{w % 4}"]} if t else {},
            }
            for t, w in enumerate(words.tolist())
        ]
        inputs.append(x)
        labels.append(y)
    return inputs, labels


def crfsuite(inputs, labels, folder, **params):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    trainer = pycrfsuite.Trainer(verbose=False, algorithm="lbfgs")
    for x, y in zip(inputs, labels, strict=True):
        trainer.append(pycrfsuite.ItemSequence(x), y)
    trainer.set_params({"epsilon": 1e-9, "delta": 1e-12, "max_iterations": 2000, **params})
    trainer.train(str(folder / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "model"))
    return tagger, trainer.logparser.last_iteration["loss"]


def quietly(function, *arguments, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        return function(*arguments, **settings)


def all_labellings(crf, x):
    """Every labelling of one sequence with its probability, from the model's weights alone."""
    n, k = len(x), len(crf.classes_)
    column = {name: i for i, name in enumerate(crf.feature_names_)} if crf.feature_names_ else None
    scores = np.tile(crf.intercept_, (n, 1))
    for t, token in enumerate(x):
        if column is None:
            scores[t] += crf.coef_ @ np.asarray(token)
        else:
            for name in token:
                if name in column:
                    scores[t] += crf.coef_[:, column[name]]
    scores[0] += crf.start_
    scores[-1] += crf.end_
    found = {}
    for y in itertools.product(range(k), repeat=n):
        pairs = sum(crf.transitions_[a, b] for a, b in itertools.pairwise(y))
        found[y] = np.exp(sum(scores[t, a] for t, a in enumerate(y)) + pairs)
    total = sum(found.values())
    return {y: p / total for y, p in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("c1", "c2", "everything"), [(0.0, 0.5, False), (0.0, 0.1, True), (0.7, 0.01, False), (1.5, 0.0, False)]
)
def test_the_objective_marginals_and_paths_are_those_of_crfsuite(tmp_path, c1, c2, everything):
    inputs, labels = corpus(60)
    flags = {"feature.possible_states": everything, "feature.possible_transitions": everything}
    tagger, loss = crfsuite(inputs, labels, tmp_path, c1=c1, c2=c2, **flags)
    ours = mk.ChainCRF(
        C=1 / c2 if c2 else np.inf, l1=c1, tol=1e-7, max_iter=3000,
        all_possible_states=everything, all_possible_transitions=everything,
    ).fit(inputs, labels)  # fmt: skip
    assert ours.objective_ == pytest.approx(loss, rel=1e-7)
    others, _ = corpus(10, seed=1)
    shares = ours.smooth(others)
    for x, found, path in zip(others, shares, ours.predict(others), strict=True):
        tagger.set(x)
        theirs = [[tagger.marginal(label, t) for label in ours.classes_] for t in range(len(x))]
        np.testing.assert_allclose(found, theirs, atol=1e-4)
        if np.ptp(np.sort(found, axis=1)[:, -2:], axis=1).min() > 0.02:
            assert path.tolist() == tagger.tag()


def test_under_l1_no_weight_can_be_moved_for_the_better():
    from markovia.data.text.tokens import read_tags, read_tokens
    from markovia.learning.conditional_fields.chain_objective import ChainObjective

    inputs, labels = corpus(60)
    ours = mk.ChainCRF(C=50.0, l1=0.7, tol=1e-8, max_iter=3000).fit(inputs, labels)
    tokens = read_tokens(inputs, grow=True)
    codes, _ = read_tags(labels, tokens)
    theta = ours.training_.point
    _, gradient = ChainObjective(tokens, codes, 3, C=50.0, edge_C=50.0, all_states=False, all_pairs=False)(
        theta
    )
    zero = theta == 0.0
    assert 10 < zero.sum() < len(theta) - 10
    assert np.abs(gradient[zero]).max() <= 0.7 + 1e-6
    np.testing.assert_allclose(gradient[~zero], -0.7 * np.sign(theta[~zero]), atol=5e-6)


def test_crfsuites_own_weights_give_its_objective_to_the_last_digits(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    assert pycrfsuite
    inputs, labels = corpus(50)
    tagger, loss = crfsuite(inputs, labels, tmp_path, c1=0.0, c2=0.3)
    info = tagger.info()
    names = sorted({name for name, _ in info.state_features})
    classes = sorted(info.labels)
    coef = [[info.state_features.get((n, c), 0.0) for n in names] for c in classes]
    moves = [[info.transitions.get((a, b), 0.0) for b in classes] for a in classes]
    ours = mk.ChainCRF.from_weights(classes, coef, moves, feature_names=names)
    penalty = 0.3 * (np.square(coef).sum() + np.square(moves).sum())
    assert -ours.log_likelihood(inputs, labels) + penalty == pytest.approx(loss, rel=1e-6)
    others, tags = corpus(10, seed=4)
    for x, y, own in zip(others, tags, ours.log_prob(others, tags), strict=True):
        tagger.set(x)
        assert np.exp(own) == pytest.approx(tagger.probability(y), rel=1e-4)


def test_features_by_name_are_read_as_crfsuite_reads_them():
    pycrfsuite = pytest.importorskip("pycrfsuite")
    token = {
        "a": "b",
        "c": True,
        "d": False,
        "e": 1.5,
        "f": {"g": 2, "h": "i", "j": ["k", "l"]},
        "o": {"p"},
        "z": {},
    }
    tokens = [token, ["one", "two"], ("three",), {"plain": np.float32(2.5), "flag": np.True_}]
    theirs = pycrfsuite.ItemSequence([token, ["one", "two"], ["three"], {"plain": 2.5, "flag": True}]).items()
    read = mk.ChainCRF().fit([tokens], [["x", "y", "x", "y"]])
    names = read.feature_names_
    prepared = read.prepare([tokens])
    for t, theirs_here in enumerate(theirs):
        part = slice(prepared.ptr[t], prepared.ptr[t + 1])
        own = dict(
            zip([names[c] for c in prepared.columns[part]], prepared.values[part].tolist(), strict=True)
        )
        assert own == theirs_here


@pytest.mark.parametrize("settings", [{}, {"constraints": [("a", "c"), (None, "b"), ("a", None)]}])
def test_answers_are_those_of_enumeration_and_of_the_markov_network(settings):
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(n, 2)) for n in (1, 2, 3, 4, 4, 3)]
    labels = [["c"], ["a", "b"], ["c", "c", "b"], ["a", "a", "b", "c"], ["c", "a", "a", "b"], ["a", "b", "b"]]
    crf = mk.ChainCRF(C=5.0, **settings).fit(inputs, labels)
    for x in inputs:
        every = all_labellings(crf, x)
        best = sorted(every, key=every.get, reverse=True)
        marginals = np.zeros((len(x), 3))
        for y, p in every.items():
            marginals[np.arange(len(x)), list(y)] += p
        np.testing.assert_allclose(crf.smooth([x])[0], marginals, atol=1e-10)
        assert crf.predict([x])[0].tolist() == crf.classes_[list(best[0])].tolist()
        paths, logs = crf.k_best([x], 4)[0]
        possible = [y for y in best if every[y] > 0][:4]
        np.testing.assert_array_equal(paths, crf.classes_[np.array(possible)])
        np.testing.assert_allclose(logs, [np.log(every[y]) for y in possible], atol=1e-9)
        given = crf.classes_[list(best[1])]
        assert np.exp(crf.log_prob([x], [given])[0]) == pytest.approx(every[best[1]])
        network = crf.network(x)
        for t in range(len(x)):
            np.testing.assert_allclose(network.query(f"y{t}").values, marginals[t], atol=1e-10)
        if len(x) > 1:
            partly = [None, *given[1:]]
            agree = sum(p for y, p in every.items() if y[1:] == best[1][1:])
            assert crf.log_prob([x], [partly])[0] == pytest.approx(np.log(agree))


def test_labellings_by_beam_are_those_of_viterbi_or_say_how_much_better_others_can_be():
    inputs, labels = corpus(20)
    crf = quietly(mk.crf.ChainCRF(max_iter=30).fit, inputs, labels)
    best = crf.predict(inputs)
    top = crf.log_prob(inputs, best)
    assert best.gap.tolist() == [0.0] * len(inputs)
    wide = crf.predict(inputs, beam=len(crf.classes_))
    assert all((a == b).all() for a, b in zip(wide, best, strict=True))
    assert not wide.gap.any()
    narrow = crf.predict(inputs, beam=1)
    short = crf.log_prob(inputs, narrow)
    assert np.all(short <= top + 1e-9)
    assert np.all(top <= short + narrow.gap + 1e-9)
    with pytest.raises(mk.errors.MarkoviaError, match="beam="):
        crf.predict(inputs, beam=0)


def test_labels_that_are_missing_are_summed_over_in_training():
    rng = np.random.default_rng(0)
    inputs = [[[f"w{i}"] for i in rng.integers(4, size=rng.integers(2, 5))] for _ in range(15)]
    labels = [[LABELS[int(t[0][1:]) % 3] if rng.random() < 0.6 else None for t in x] for x in inputs]
    crf = mk.ChainCRF(C=4.0, tol=1e-9, all_possible_transitions=True).fit(inputs, labels)
    value = 0.0
    for x, y in zip(inputs, labels, strict=True):
        codes = [None if v is None else LABELS.index(v) for v in y]
        every = all_labellings(crf, x)
        agree = [
            p for z, p in every.items() if all(c is None or c == a for c, a in zip(codes, z, strict=True))
        ]
        value -= np.log(sum(agree))
    value += (np.square(crf.coef_).sum() + np.square(crf.transitions_).sum()) / 4.0
    assert crf.objective_ == pytest.approx(value, rel=1e-9)
    assert crf.score(inputs, labels) == 1.0


def test_gradients_are_slopes_of_the_objective():
    from markovia.data.text.tokens import read_tags, read_tokens
    from markovia.learning.conditional_fields.chain_objective import ChainObjective
    from markovia.learning.conditional_fields.label_constraints import allowed_moves

    inputs, labels = corpus(8, seed=2, most=5)
    labels[1][0] = None
    tokens = read_tokens(inputs, grow=True)
    codes, classes = read_tags(labels, tokens)
    allowed = allowed_moves([("a", None)], classes)
    rng = np.random.default_rng(0)
    for part in (codes, np.where(codes < 0, 1, codes)):
        objective = ChainObjective(
            tokens, part, 3, C=3.0, edge_C=1.0, intercept=True, ends=True, all_states=False,
            allowed=allowed if (part < 0).sum() else None,
        )  # fmt: skip
        theta = rng.normal(size=objective.size)
        for which in (None, np.array([0, 1, 4])):
            _, gradient = objective(theta, which)
            for i in rng.integers(objective.size, size=12).tolist() + list(
                range(objective.size - 9, objective.size)
            ):
                step = np.zeros(objective.size)
                step[i] = 1e-5
                slope = (objective(theta + step, which)[0] - objective(theta - step, which)[0]) / 2e-5
                assert gradient[i] == pytest.approx(slope, abs=1e-5)


def test_few_weights_and_weights_in_full_are_the_same(monkeypatch):
    inputs, labels = corpus(30)
    full = mk.ChainCRF(l1=0.1).fit(inputs, labels)
    monkeypatch.setattr("markovia.learning.conditional_fields.chain_objective.MOST_DENSE", 0)
    few = mk.ChainCRF(l1=0.1).fit(inputs, labels)
    assert few.objective_ == pytest.approx(full.objective_, rel=1e-9)
    np.testing.assert_allclose(few.coef_.toarray(), full.coef_, atol=1e-6)
    np.testing.assert_allclose(few.smooth(inputs)[3], full.smooth(inputs)[3], atol=1e-6)
    assert few.state_features_.keys() == full.state_features_.keys()


def test_arrays_sparse_matrices_and_lengths_are_the_same_data():
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.6) for n in (3, 5, 2, 4)]
    labels = [rng.integers(2, size=len(x)) for x in arrays]
    one = mk.ChainCRF(tol=1e-8).fit(arrays, labels)
    for x, y, lengths in (
        ([csr_matrix(a) for a in arrays], labels, None),
        (np.concatenate(arrays), np.concatenate(labels), [3, 5, 2, 4]),
        (csr_matrix(np.concatenate(arrays)), np.concatenate(labels).tolist(), [3, 5, 2, 4]),
    ):
        two = mk.ChainCRF(tol=1e-8).fit(x, y, lengths)
        np.testing.assert_allclose(two.coef_, one.coef_, atol=1e-6)
        assert [p.tolist() for p in two.predict(x, lengths)] == [p.tolist() for p in one.predict(arrays)]
        np.testing.assert_allclose(two.log_prob(x, y, lengths), one.log_prob(arrays, labels), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["perceptron", "passive-aggressive", "max-margin", "sgd"])
@pytest.mark.parametrize("arrays", [False, True])
def test_online_solvers_separate_what_can_be_separated(solver, arrays):
    rng = np.random.default_rng(0)
    # one token in each sequence shows its label, and labels follow each other in a circle: transitions do the rest
    inputs, labels = [], []
    for _ in range(60):
        y = [LABELS[rng.integers(3)]]
        while len(y) < 6:
            y.append(LABELS[(LABELS.index(y[-1]) + 1) % 3])
        shown = rng.integers(6)
        inputs.append([[y[t] if t == shown else "?"] for t in range(6)])
        labels.append(y)
    if arrays:
        inputs = [np.array([[t == [v] for v in "?abc"] for t in x], dtype=float) for x in inputs]
    crf = quietly(mk.ChainCRF(solver=solver, max_iter=30, C=100.0, random_state=0).fit, inputs, labels)
    again = quietly(mk.ChainCRF(solver=solver, max_iter=30, C=100.0, random_state=0).fit, inputs, labels)
    assert crf.score(inputs, labels) == 1.0
    np.testing.assert_allclose(crf.coef_, again.coef_, rtol=1e-9)
    if solver == "perceptron":
        assert crf.objective_ == 0.0
        assert crf.n_iter_ < 30
    if solver == "passive-aggressive":  # paths that miss their margin
        assert crf.objective_ < 0.3 * crf.training_.history[0]


def test_a_margin_is_never_below_the_perceptrons_loss_and_falls_in_training():
    inputs, labels = corpus(60)
    margin = quietly(mk.ChainCRF(solver="max-margin", max_iter=40, random_state=0).fit, inputs, labels)
    zero = sum(len(y) for y in labels)  # at weights of zero each token is one wrong label short
    assert 0 < margin.objective_ < 0.8 * zero
    likely = mk.ChainCRF().fit(inputs, labels)
    assert margin.score(inputs, labels) > likely.score(inputs, labels) - 0.1


def test_a_passive_aggressive_step_reaches_its_margin_exactly():
    x, y = [[["u", "v"], ["u"], ["u", "v"]]], [["p", "q", "p"]]
    crf = quietly(mk.ChainCRF(solver="passive-aggressive", C=1e6, max_iter=1).fit, x, y)
    # the mean of one step is nothing; its own objective was the number of wrong labels
    assert crf.objective_ > 0
    two = quietly(mk.ChainCRF(solver="passive-aggressive", C=1e6, max_iter=200).fit, x, y)
    assert two.predict(x)[0].tolist() == y[0]


def test_bio_is_never_broken():
    rng = np.random.default_rng(0)
    spans = (["O"], ["B-PER", "I-PER"], ["B-LOC"], ["B-LOC", "I-LOC", "I-LOC"])
    labels = [list(itertools.chain(*(spans[i] for i in rng.integers(4, size=4)))) for _ in range(30)]
    inputs = [rng.normal(size=(len(y), 2)) for y in labels]
    crf = mk.ChainCRF(constraints="bio").fit(inputs, labels)
    noise = [5 * rng.normal(size=(12, 2)) for _ in range(20)]
    drawn = crf.sample(noise, 5, seed=0)
    for y in [*crf.predict(noise), *itertools.chain.from_iterable(drawn)]:
        for before, here in itertools.pairwise(["O", *y.tolist()]):
            if here.startswith("I-"):
                assert before[2:] == here[2:]
    with pytest.raises(
        mk.errors.InvalidArgument, match="step 1 of sequence 0 has the label 'I-PER' after 'O'"
    ):
        mk.ChainCRF(constraints="bio").fit([[["a"], ["b"]]], [["O", "I-PER"]])


def test_bioes_spans_that_go_on_must():
    classes = ["B", "E", "I", "O", "S"]
    from markovia.learning.conditional_fields.label_constraints import allowed_moves

    moves, first, last = allowed_moves("bioes", np.array(classes))
    follow = {c: "".join(np.array(classes)[m]) for c, m in zip(classes, moves, strict=True)}
    assert follow == {"B": "EI", "E": "BOS", "I": "EI", "O": "BOS", "S": "BOS"}
    assert "".join(np.array(classes)[first]) == "BOS"
    assert "".join(np.array(classes)[last]) == "EOS"


def test_weights_far_apart_do_not_underflow():
    moves = np.array([[0.0, -2000.0], [-2000.0, 0.0]])
    crf = mk.ChainCRF.from_weights([0, 1], [[900.0], [-900.0]], moves)
    x = np.array([[1.0], [-1.0], [-1.0]])
    every = {
        y: sum(900.0 * v * (1 if a == 0 else -1) for v, a in zip(x[:, 0], y, strict=True))
        + sum(moves[a, b] for a, b in itertools.pairwise(y))
        for y in itertools.product(range(2), repeat=3)
    }
    assert crf.log_partition([x])[0] == pytest.approx(np.logaddexp.reduce(list(every.values())))
    assert tuple(crf.predict([x])[0].tolist()) == max(every, key=every.get)


@pytest.mark.parametrize(
    ("inputs", "labels", "settings", "message"),
    [
        ([[{"a": 1}]], [["x"], ["y"]], {}, "1 sequences but 2 labellings"),
        ([[{"a": 1}, {"b": 1}]], [["x"]], {}, "sequence 0 has 2 tokens but 1 labels"),
        ([[{"a": 1}], [{"b": None}]], [["x"], ["y"]], {}, "step 0 of sequence 1 has None for the attribute 'b'"),
        ([[{"a": 1}], [{"b": np.nan}]], [["x"], ["y"]], {}, "step 0 of sequence 1 has a missing or infinite"),
        ([[["a"], ["b", 3]]], [["x", "y"]], {}, "step 1 of sequence 0 has 3 among its attributes"),
        ([[{"a": 1}, 5]], [["x", "y"]], {}, "step 1 of sequence 0 has features of type int"),
        ([np.zeros((2, 2)), np.zeros((1, 3))], [[0, 1], [0]], {}, "sequence 1 has 3 node features"),
        ([np.zeros((2, 2)), [[0, np.inf]]], [[0, 1], [0]], {}, "step 0 of sequence 1 has a missing"),
        ([[["a"], ["b"]]], [["x", "x"]], {}, "two different ones"),
        ([[["a"], ["b"]]], [["x", 1.5]], {}, "step 1 of sequence 0 has the label 1.5"),
        ([[["a"], ["b"]]], [["x", 1]], {}, "not all strings"),
        ([[["a"], ["b"]]], [[None, None]], {}, "no sequence has a token with a label"),
        ([[["a"], ["b"]]], [["x", "y"]], {"C": 0}, "C= is a positive number"),
        ([[["a"], ["b"]]], [["x", "y"]], {"solver": "newton"}, "solver= is 'lbfgs'"),
        ([[["a"], ["b"]]], [["x", "y"]], {"constraints": "bi"}, "constraints= is 'bio'"),
        ([[["a"], ["b"]]], [["x", "y"]], {"constraints": [("x", "z")]}, "unknown label 'z'"),
        ([], [], {}, "there are no sequences"),
        ("text", [["x"]], {}, "not str"),
    ],
)  # fmt: skip
def test_bad_input_is_named_by_sequence(inputs, labels, settings, message):
    with pytest.raises(mk.MarkoviaError, match=message):
        mk.ChainCRF(**settings).fit(inputs, labels)


def test_wrong_lengths_and_unknown_labels_are_refused_when_asking():
    inputs, labels = corpus(10)
    crf = mk.ChainCRF().fit(inputs, labels)
    before = crf.coef_.copy()
    with pytest.raises(mk.errors.InvalidArgument, match="step 0 of sequence 0 has the unknown label 'pink'"):
        crf.log_prob(inputs[:1], [["pink"] * len(inputs[0])])
    flat = list(itertools.chain.from_iterable(inputs))
    with pytest.raises(mk.errors.InvalidArgument, match="add up to 3"):
        crf.predict(flat, [1, 2])
    with pytest.raises(mk.errors.InvalidArgument, match="by name"):
        crf.predict([np.zeros((2, 3))])
    with pytest.raises(mk.errors.InvalidArgument):
        crf.fit(inputs, labels[:-1])
    np.testing.assert_array_equal(crf.coef_, before)
    assert crf.smooth([[]])[0].shape == (0, 3)
    assert crf.log_prob([[]], [[]])[0] == 0.0
    with pytest.raises(mk.errors.IncompleteModel, match="fit"):
        mk.ChainCRF().predict(inputs)


def test_prepared_sequences_answer_as_those_they_were_made_of():
    inputs, labels = corpus(20)
    crf = mk.ChainCRF().fit(inputs, labels)
    prepared = crf.prepare(inputs)
    assert [y.tolist() for y in crf.predict(prepared)] == [y.tolist() for y in crf.predict(inputs)]
    np.testing.assert_array_equal(crf.log_prob(prepared, labels), crf.log_prob(inputs, labels))
