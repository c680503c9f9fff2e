"""What every estimator that learns step by step has from `optimise.ascent`: Ctrl-C, a time limit, one meaning of `tol`."""

import signal
import warnings

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.errors import ConvergenceWarning
from markovia.kernels.compiled_code import preferred
from markovia.optimise import ascent
from markovia.runtime import clock as clocks
from markovia.runtime.clock import Clock

RNG = np.random.default_rng(0)
ROWS = np.concatenate([RNG.normal(0.0, 1.0, (30, 3)), RNG.normal(1.5, 1.0, (30, 3))])
EVEN = RNG.random((300, 2))
HOLED = np.where(RNG.random(ROWS.shape) < 0.1, np.nan, ROWS)
TARGET = ROWS[:, 0] * np.where(np.arange(60) % 2, 1.0, -1.0) + 0.3 * RNG.normal(size=60)
BITS = (RNG.random((60, 5)) < np.repeat([[0.3], [0.6]], 30, axis=0)).astype(int)
SERIES = [np.cumsum(RNG.normal(size=20)) * 0.5 for _ in range(3)]
SYMBOLS = [RNG.integers(0, 3, 20) for _ in range(4)]
COUNTS = RNG.poisson(0.8, (20, 9)) + np.eye(20, 9, dtype=int)
TABLE = pd.DataFrame({"a": BITS[:, 0], "b": BITS[:, 1], "c": BITS[:, 2]})
LONG = {"max_iter": 40, "tol": 1e-13}
"""Settings with which nothing settles in the first steps."""
GIVEN = {"start": [0.6, 0.4], "transition": [[0.7, 0.3], [0.4, 0.6]]}
GAUSSIAN = {
    "emission": "gaussian",
    "emission_params": {"means": [[-1.0], [1.0]], "covariances": [[[1.0]]] * 2},
}
PROBS = {"emission_params": {"probs": [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]}}
SPACE = (0.9, 1.0, 1.0, 1.0, 0.0, 1.0)
GRAMMAR = "S -> A S | B S | S A | 'b'\nA -> A B | 'a' | 'b'\nB -> 'b' | B A | 'a'"


class NetworkWithGaps:
    """A network of tables with a hidden variable, seen as an estimator."""

    def __init__(self, max_iter, tol, time_limit=None):
        self.em = mk.EM(
            max_iterations=max_iter, tolerance=tol, time_limit=time_limit, start="random", seed=0, accelerate=False
        )  # fmt: skip

    def fit(self, frame):
        found = mk.BayesianNetwork([("z", n) for n in frame.columns]).fit(
            frame, latent={"z": 2}, missing=self.em
        )
        self.n_iter_, self.converged_ = found.fit_.iterations, found.fit_.converged
        return self


def of(kind, *arguments, **settings):
    return lambda **more: kind(*arguments, **{**settings, **more})


SEEDED = {"random_state": 0}
ESTIMATORS = {
    "mixture": (of(mk.GaussianMixture, 2, **SEEDED), (ROWS,)),
    "hard mixture": (of(mk.Mixture, "bernoulli", 3, method="hard", prior={"a": 2.0, "b": 2.0}, **SEEDED), (BITS,)),
    "online mixture": (of(mk.Mixture, "gaussian", 2, method="online", batch_size=20, **SEEDED), (ROWS,)),
    "variational mixture": (of(mk.Mixture, "gaussian", 3, method="vb", **SEEDED), (ROWS,)),
    "dirichlet process": (of(mk.mixtures.DirichletProcessMixture, method="variational", **SEEDED), (ROWS,)),
    "k-means": (of(mk.KMeans, 9, algorithm="lloyd", init="random", **SEEDED), (EVEN,)),
    "mini-batch k-means": (of(mk.KMeans, 9, batch_size=50, **SEEDED), (EVEN,)),
    "k-means of gaussians": (of(mk.KMeans, 4, metric="mahalanobis", **SEEDED), (EVEN,)),
    "regressions": (of(mk.mixtures.RegressionMixture, 2, **SEEDED), (ROWS, TARGET)),
    "factors": (of(mk.mixtures.FactorAnalysis, 1), (ROWS,)),
    "principal components": (of(mk.mixtures.ProbabilisticPCA, 1), (HOLED,)),
    "hidden Markov": (of(mk.HMM, 2, emission="gaussian", n_init=2, **SEEDED), (SERIES,)),
    "hidden Markov in pieces": (of(mk.HMM, 2, algorithm="stochastic", batch_size=2, **SEEDED), (SYMBOLS,)),
    "semi-Markov": (of(mk.series.HiddenSemiMarkov, 2, max_duration=4, **SEEDED), (SYMBOLS,)),
    "factorial": (of(mk.series.FactorialHMM, (2, 2), **SEEDED), (SERIES,)),
    "factorial by mean field": (of(mk.series.FactorialHMM, (2, 2), method="mean-field", **SEEDED), (SERIES,)),
    "sequences": (of(mk.series.SequenceMixture, mk.MarkovChain(), 2, **SEEDED), (SYMBOLS,)),
    "state space": (of(mk.LinearStateSpace, *SPACE), (SERIES,)),
    "switching": (of(mk.series.SwitchingStateSpace, 0.9, [[[0.1]], [[2.0]]], 1.0, 1.0), (SERIES,)),
    "plsi": (of(mk.topics.PLSI, 3, n_init=2, **SEEDED), (COUNTS,)),
    "correlated topics": (of(mk.topics.CorrelatedTopics, 4, **SEEDED), (COUNTS,)),
    "dynamic topics": (of(mk.topics.DynamicTopics, 2, **SEEDED), (COUNTS, np.repeat([0, 1], 10))),
    "variational topics": (of(mk.topics.LDA, 2, method="vb", **SEEDED), (COUNTS,)),
    "online topics": (of(mk.topics.LDA, 2, method="online", batch_size=10, **SEEDED), (COUNTS,)),
    "poisson factors": (of(mk.topics.PoissonFactorisation, 2, method="vb", **SEEDED), (COUNTS,)),
    "network with gaps": (NetworkWithGaps, (TABLE,)),
    "sum-product network": (of(mk.SumProductNetwork, min_rows=10, **SEEDED), (ROWS,)),
    "grammar": (of(mk.series.ContextFreeGrammar, GRAMMAR), (["a b b", "b a b a", "a a b a"],)),
}  # fmt: skip


class Steps(Clock):
    """A clock that says when a step of an ascent is done."""

    done = staticmethod(lambda: None)

    def advance(self, n=1, note="", value=None):
        super().advance(n, note, value)
        Steps.done()


@pytest.fixture
def each_step(monkeypatch):
    """Let a test do something after each step of every ascent."""
    monkeypatch.setattr(ascent, "Clock", Steps)
    return lambda action: monkeypatch.setattr(Steps, "done", staticmethod(action))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_ctrl_c_leaves_an_estimator_with_what_it_has_learned(name, each_step):
    make, data = ESTIMATORS[name]
    steps = []

    def action():
        steps.append(1)
        if len(steps) == 2:
            signal.raise_signal(signal.SIGINT)

    each_step(action)
    with pytest.warns(ConvergenceWarning, match="learning was interrupted after"):
        model = make(**LONG).fit(*data)
    assert model.converged_ is False
    assert 1 <= model.n_iter_ < 5


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_time_limit_ends_learning_without_a_warning(name, each_step, monkeypatch):
    make, data = ESTIMATORS[name]
    time = [0.0]
    monkeypatch.setattr(clocks, "now", lambda: time[0])

    def action():
        time[0] += 1.0

    each_step(action)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="learning")
        model = make(**LONG, time_limit=2.5).fit(*data)
    assert model.converged_ is False
    assert 1 <= model.n_iter_ <= 4


TWICE = {
    "mixture": (of(mk.GaussianMixture, 2, means_init=ROWS[[0, 50]], weights_init=[0.5, 0.5], reg_covar=0.0,
                   precisions_init=[np.eye(3)] * 2), (ROWS,), np.concatenate),
    "k-means": (of(mk.KMeans, 9, init=EVEN[:9]), (EVEN,), np.concatenate),
    "factors": (of(mk.mixtures.FactorAnalysis, 1), (ROWS,), np.concatenate),
    "principal components": (of(mk.mixtures.ProbabilisticPCA, 1), (HOLED,), np.concatenate),
    "hidden Markov": (of(mk.HMM, 2, **GIVEN, **GAUSSIAN), (SERIES,), sum),
    "hidden Markov of symbols": (of(mk.HMM, 2, **GIVEN, **PROBS), (SYMBOLS,), sum),
    "state space": (of(mk.LinearStateSpace, *SPACE), (SERIES,), sum),
    "switching": (of(mk.series.SwitchingStateSpace, 0.9, [[[0.1]], [[2.0]]], 1.0, 1.0, learn=["observation_cov"]),
                  (SERIES[:1],), sum),
    "network with gaps": (NetworkWithGaps, (TABLE,), pd.concat),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", TWICE)
def test_the_same_data_twice_take_as_many_steps_to_settle(name):
    make, (once,), joined = TWICE[name]
    twice = once + once if joined is sum else joined([once, once])
    few, many = (make(max_iter=49, tol=1e-4).fit(data) for data in (once, twice))
    assert few.converged_
    assert few.n_iter_ == many.n_iter_
    assert few.n_iter_ > 3


RESUMED = {
    "hidden Markov": ESTIMATORS["hidden Markov in pieces"][1] + (of(mk.HMM, 3, **SEEDED),),
    "hidden Markov of numbers": (SERIES, of(mk.HMM, 3, emission="gaussian", tied=[[0, 1]], **SEEDED)),
    "variational topics": (COUNTS, of(mk.topics.LDA, 2, method="vb", **SEEDED)),
    "poisson factors": (COUNTS, of(mk.topics.PoissonFactorisation, 2, method="vb", **SEEDED)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RESUMED)
def test_learning_goes_on_from_its_file_to_the_numbers_of_learning_that_was_not_cut(name, tmp_path):
    data, make = RESUMED[name]
    kept = {"tol": 0.0, "checkpoint": tmp_path / "learning.npz"}
    with preferred():  # plain code adds up in another order
        whole = make(max_iter=7, tol=0.0).fit(data)
        assert make(max_iter=3, **kept).fit(data).n_iter_ == 3
        assert make(max_iter=7, **kept).fit(data).history_ == whole.history_
    with pytest.raises(mk.errors.InvalidArgument, match="another run"):
        make(max_iter=7, **kept).fit(data[:-1])


def test_what_no_file_can_keep_is_refused_before_learning(tmp_path):
    network = mk.BayesianNetwork()
    network.add("x", states=[0, 1, 2])
    model = mk.HMM(2, emission=network, checkpoint=tmp_path / "learning.npz", random_state=0)
    with pytest.raises(mk.errors.InvalidArgument, match="checkpoint= cannot keep a"):
        model.fit(pd.DataFrame({"x": np.concatenate(SYMBOLS)}))
    with pytest.raises(mk.errors.InvalidArgument, match="n_init=1"):
        mk.HMM(2, n_init=2, checkpoint=tmp_path / "learning.npz").fit(SYMBOLS)
    with pytest.raises(mk.errors.InvalidArgument, match="needs passes over all sequences"):
        mk.HMM(2, algorithm="stochastic", checkpoint=tmp_path / "learning.npz").fit(SYMBOLS)
    with pytest.raises(mk.errors.InvalidArgument, match="state of a sampler"):
        mk.mixtures.DirichletProcessMixture(method="variational", checkpoint=tmp_path / "learning.npz").fit(
            ROWS
        )
