"""Hidden Markov models: learning, smoothing and decoding, side by side with hmmlearn.

Each line is one task on the same data and starting values; both libraries must find the same values before they are timed.
Times are the best of some runs; run with MARKOVIA_THREADS=1 for one core.

Run: python benchmarks/sequences.py
"""

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from hmmlearn import hmm as peers

import markovia as mk

ITERATIONS = 10


def best_time(task: Callable[[], Any], runs: int = 5) -> tuple[float, float]:
    """Return the shortest of some runs after a warm-up, and the least processor time, in seconds."""
    task()
    wall, worked = np.inf, np.inf
    for _ in range(runs):
        start, began = perf_counter(), process_time()
        task()
        wall, worked = min(wall, perf_counter() - start), min(worked, process_time() - began)
    return wall, worked


def chain(k: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a random chain that tends to stay."""
    return {"start": np.full(k, 1 / k), "transition": 0.5 * np.eye(k) + 0.5 * rng.dirichlet(np.ones(k), k)}


def with_values(peer: Any, given: dict[str, Any], **values: Any) -> Any:
    """Return hmmlearn's model with values."""
    peer.startprob_, peer.transmat_ = given["start"], given["transition"]
    for name, value in values.items():
        setattr(peer, name, value)
    return peer


def compare(name: str, own: Callable[[], Any], peer: Callable[[], Any]) -> None:
    """Time both and print a line."""
    a, a_cpu = best_time(own)
    b, b_cpu = best_time(peer, 3)
    print(
        f"{name:45s} markovia {a:7.3f} s (cpu {a_cpu:6.3f})   hmmlearn {b:7.3f} s (cpu {b_cpu:6.3f})   {b / a:5.1f}x"
    )


def learn_categorical() -> None:
    """Time EM on 200 sequences of 500 symbols, 8 states."""
    rng = np.random.default_rng(0)
    truth, begin = chain(8, rng), chain(8, rng)
    make = mk.HMM(8, **truth, emission_params={"probs": rng.dirichlet(np.ones(12), 8)})
    data = np.concatenate(make.sample(500, 200, seed=1)[0])
    lengths, probs = [500] * 200, rng.dirichlet(np.ones(12), 8)
    common = {"n_iter": ITERATIONS, "tol": -np.inf, "init_params": "", "implementation": "scaling"}

    def own() -> Any:
        model = mk.HMM(8, **begin, emission_params={"probs": probs}, max_iter=ITERATIONS, tol=0)
        return model.fit(data, lengths)

    def peer() -> Any:
        model = with_values(peers.CategoricalHMM(8, **common), begin, emissionprob_=probs)
        model.n_features = 12
        return model.fit(data, lengths)

    assert np.allclose(own().transmat_, peer().transmat_, atol=1e-8, rtol=0)
    compare("EM, 8 states, 12 symbols, 200 x 500", own, peer)


def learn_gaussian(kind: Any) -> None:
    """Time EM on 100 sequences of 1,000 points in 5 dimensions, 10 states."""
    rng = np.random.default_rng(0)
    truth, begin = chain(10, rng), chain(10, rng)
    roots = rng.normal(size=(10, 5, 5))
    params = {
        "means": 3 * rng.normal(size=(10, 5)),
        "covariances": roots @ roots.transpose(0, 2, 1) + np.eye(5),
    }
    make = mk.HMM(10, emission="gaussian", **truth, emission_params=params)
    data, lengths = np.concatenate(make.sample(1_000, 100, seed=1)[0]), [1_000] * 100
    means = data[rng.integers(0, len(data), 10)]
    every = np.cov(data.T)
    covariances = np.repeat((every if kind == "full" else np.diag(every))[None], 10, axis=0)
    common = {"n_iter": ITERATIONS, "tol": -np.inf, "init_params": "", "implementation": "scaling"}

    def own() -> Any:
        model = mk.HMM(
            10,
            emission="gaussian",
            covariance_type=kind,
            **begin,
            emission_params={"means": means, "covariances": covariances},
            max_iter=ITERATIONS,
            tol=0,
        )
        return model.fit(data, lengths)

    def peer() -> Any:
        model = peers.GaussianHMM(10, kind, covars_prior=0.0, covars_weight=1.0, min_covar=0.0, **common)
        return with_values(model, begin, means_=means, covars_=covariances).fit(data, lengths)

    assert np.allclose(own().means_, peer().means_, atol=1e-8, rtol=0)
    compare(f"EM, 10 {kind} Gaussians in 5, 100 x 1,000", own, peer)


def long_sequence() -> None:
    """Time smoothing and Viterbi on one sequence of 1,000,000 steps, 5 states."""
    rng = np.random.default_rng(0)
    given, probs = chain(5, rng), rng.dirichlet(np.ones(6), 5)
    own = mk.HMM(5, **given, emission_params={"probs": probs})
    data = own.sample(1_000_000, seed=1)[0]
    peer = with_values(peers.CategoricalHMM(5, implementation="scaling"), given, emissionprob_=probs)
    peer.n_features = 6
    assert np.allclose(own.smooth(data)[0], peer.predict_proba(data), atol=1e-8, rtol=0)
    compare("smoothing 1,000,000 steps, 5 states", lambda: own.smooth(data), lambda: peer.predict_proba(data))
    compare("Viterbi of 1,000,000 steps, 5 states", lambda: own.decode(data), lambda: peer.predict(data))


if __name__ == "__main__":
    learn_categorical()
    learn_gaussian("full")
    learn_gaussian("diag")
    long_sequence()
