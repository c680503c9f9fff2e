"""What `score` means: for rows a mean, for sequences a total, for labels the share that is right; larger is better."""

import inspect

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

import markovia as mk

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 2)) + RNG.integers(0, 2, (40, 1)) * 4.0
CLASSES = (ROWS[:, 0] + RNG.normal(size=40) > 2).astype(int)
TARGETS = ROWS @ [1.0, -1.0] + RNG.normal(size=40)
WORDS = [list(RNG.choice(["a", "b", "c", "d"], 8)) for _ in range(12)]
LABELS = [["x" if w in "ab" else "y" for w in words] for words in WORDS]
TOKENS = [[{"w": w, "odd": i % 3} for i, w in enumerate(words)] for words in WORDS]


def density(check):
    known = mk.GaussianMixture.from_parameters(
        [0.5, 0.5], means=[[0, 0], [4, 4]], covariances=[np.eye(2)] * 2
    )
    check(known.score(ROWS), known.score_samples(ROWS).mean())
    check(known.score(np.tile(ROWS, (3, 1))), known.score(ROWS))


def centres(check):
    model = mk.mixtures.KMeans(2, random_state=0).fit(ROWS)
    check(model.score(ROWS), -model.inertia_)
    check(model.score(np.tile(ROWS, (3, 1))), -3 * model.inertia_)


def experts(check):
    model = mk.mixtures.RegressionMixture(1, random_state=0).fit(ROWS, TARGETS)
    check(model.score(ROWS, TARGETS), r2_score(TARGETS, model.predict(ROWS)))


def topics(check):
    model = mk.topics.LDA(2, max_iter=3, random_state=0).fit(WORDS)
    check(np.exp(-model.score(WORDS)), model.perplexity(WORDS))
    assert -3 * np.log(4) < model.score(WORDS) < 0


def factors(check):
    counts = RNG.poisson(3.0, (10, 4))
    model = mk.topics.PoissonFactorisation(2, random_state=0).fit(counts)
    check(model.score(np.tile(counts, (3, 1))), model.score(counts))


def supervised_topics(check):
    model = mk.topics.SupervisedLDA(2, random_state=0).fit(WORDS, CLASSES[:12].astype(str))
    check(
        model.score(WORDS, CLASSES[:12].astype(str)),
        accuracy_score(CLASSES[:12].astype(str), model.predict(WORDS)),
    )


def classifier(check):
    model = mk.classifiers.GaussianNaiveBayes().fit(ROWS, CLASSES)
    check(model.score(ROWS, CLASSES), (model.predict(ROWS) == CLASSES).mean())


def regression(check):
    model = mk.regression.LinearRegression().fit(ROWS, TARGETS)
    check(model.score(ROWS, TARGETS), r2_score(TARGETS, model.predict(ROWS)))
    model = mk.regression.LogisticRegression().fit(ROWS, CLASSES)
    check(model.score(ROWS, CLASSES), (model.predict(ROWS) == CLASSES).mean())


def sequences(check):
    chain = mk.MarkovChain([[0.9, 0.1], [0.2, 0.8]])
    data = [[0, 0, 1], [1, 1]]
    check(chain.score(data), chain.log_prob(data).sum())
    check(chain.score(data * 3), 3 * chain.score(data))


def fields(check):
    X, Y = [ROWS[:3], ROWS[3:6]], [CLASSES[:3], CLASSES[3:6]]
    model = mk.crf.CRF().fit(X, Y)
    check(model.score(X, Y), (np.concatenate(model.predict(X)) == np.concatenate(Y)).mean())


def taggers(check):
    model = mk.crf.MEMM().fit(TOKENS, LABELS)
    right = [
        a == b
        for said, y in zip(model.predict(TOKENS), LABELS, strict=True)
        for a, b in zip(said, y, strict=True)
    ]
    check(model.score(TOKENS, LABELS), np.mean(right))


def written_features(check):
    on = mk.crf.ConditionalFeature(["y"], lambda x, at, y: x * y, "on")
    model = mk.crf.FeatureCRF({"y": 2}, [on]).set_weights([1.0])
    check(model.score([1.0, -1.0, 2.0, -1.0], [[1], [0], [0], [0]]), 0.75)


def grammars(check):
    grammar = mk.series.ContextFreeGrammar('S -> "a" S [0.4] | "b" [0.6]')
    check(grammar.score([["b"], ["a", "b"]]), np.log(0.6) + np.log(0.24))


def circuits(check):
    network = mk.examples.sprinkler()
    rows = network.sample(5, seed=0)
    check(mk.mixtures.SumProductNetwork.from_network(network).score(rows), network.log_prob(rows).mean())


def hidden_states(check):
    X, labels = [ROWS[:3], ROWS[3:6], ROWS[6:9]], [0, 1, 0]
    model = mk.crf.HiddenStateCRF(labels="instances", max_iter=3, random_state=0).fit(X, labels)
    check(model.score(X, labels), (np.asarray(model.predict(X)) == labels).mean())


def dynamic(check):
    process = mk.DynamicBayesianNetwork()
    process.add("x", states=2, parents=["x@-1"], p=[[0.8, 0.2], [0.3, 0.7]], initial=[0.5, 0.5])
    check(process.score([{"x": [0, 1]}, {"x": [1]}]), np.log(0.05))


MEANINGS = {
    "DensityQuestions": density,
    "KMeans": centres,
    "_ExpertMixture": experts,
    "TopicModel": topics,
    "PoissonFactorisation": factors,
    "SupervisedLDA": supervised_topics,
    "ClassifierMixin": classifier,
    "GLM": regression,
    "SequenceModel": sequences,
    "ConditionalField": fields,
    "TokenLabeller": taggers,
    "FeatureCRF": written_features,
    "ContextFreeGrammar": grammars,
    "SumProductNetwork": circuits,
    "DynamicBayesianNetwork": dynamic,
    "HiddenStateCRF": hidden_states,
}
"""By the class that defines `score` for its family."""


@pytest.mark.filterwarnings("ignore")  # three steps of topics do not converge
@pytest.mark.parametrize("home", MEANINGS)
def test_score_is_what_its_family_says(home):
    MEANINGS[home](lambda found, expected: np.testing.assert_allclose(found, expected, rtol=1e-10))


def test_every_public_score_is_that_of_a_family_and_says_what_it_is():
    words = ("mean", "share", "total", "R squared", "R^2", "accuracy")
    homes = set()
    for door in (mk.mixtures, mk.topics, mk.classifiers, mk.regression, mk.series, mk.crf):
        for name in dir(door):
            thing = getattr(door, name)
            if inspect.isclass(thing) and hasattr(thing, "score"):
                homes.add(thing.score.__qualname__.partition(".")[0])
                assert any(word in thing.score.__doc__ for word in words), name
    assert homes == set(MEANINGS)
