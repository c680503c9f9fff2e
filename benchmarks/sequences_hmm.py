"""Hidden Markov models: learning, smoothing and decoding, side by side with hmmlearn, dynamax and pomegranate.

Run: python benchmarks/sequences_hmm.py [--quick]

Each line is one task on the same data and starting values; markovia and hmmlearn (in its quicker, scaled form) must find the
same values to 1e-8 before they are timed. Seconds are the best of some runs after a first one, with processor seconds in
brackets. Dynamax's and pomegranate's iterations of EM are timed on the same data (pomegranate's in 32 bits, as it works by
default). Questions about symbols are compared with both of hmmlearn's forms in processor time, with errors beside.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from time import perf_counter, process_time
from typing import Any

import numpy as np
from hmmlearn import hmm as hmmlearn

import markovia as mk

ITERATIONS = 10
Tasks = dict[str, Callable[[], Any]]


def best_time(task: Callable[[], Any], runs: int) -> tuple[float, float]:
    """Return the shortest of some runs after a first one, and the least processor time, in seconds."""
    start = perf_counter()
    task()
    wall, worked = np.inf, np.inf
    for _ in range(runs if perf_counter() - start < 10.0 else 1):
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


def compare(name: str, tasks: Tasks) -> None:
    """Time all and print a line for each."""
    print(name)
    own, _ = np.inf, 0.0
    for peer, task in tasks.items():
        wall, worked = best_time(task, 5 if peer == "markovia" else 3)
        own = wall if peer == "markovia" else own
        said = "" if peer == "markovia" else f"   {wall / own:6.1f} times markovia's"
        print(f"    {peer:12s} {wall:8.3f} s ({worked:7.3f}){said}", flush=True)


def learn_categorical(quick: bool) -> None:
    """Time EM on 200 sequences of 500 symbols, 8 states."""
    rng = np.random.default_rng(0)
    truth, begin = chain(8, rng), chain(8, rng)
    make = mk.HMM(8, **truth, emission_params={"probs": rng.dirichlet(np.ones(12), 8)})
    parts = make.sample(500, 200, seed=1)[0]
    data, lengths, probs = np.concatenate(parts), [500] * 200, rng.dirichlet(np.ones(12), 8)
    common = {"n_iter": ITERATIONS, "tol": -np.inf, "init_params": "", "implementation": "scaling"}

    def own() -> Any:
        model = mk.HMM(8, **begin, emission_params={"probs": probs}, max_iter=ITERATIONS, tol=0)
        return model.fit(data, lengths)

    def peer() -> Any:
        model = with_values(hmmlearn.CategoricalHMM(8, **common), begin, emissionprob_=probs)
        model.n_features = 12
        return model.fit(data, lengths)

    assert np.allclose(own().transmat_, peer().transmat_, atol=1e-8, rtol=0)
    tasks: Tasks = {"markovia": own, "hmmlearn": peer}
    stacked = np.stack(parts)
    if not quick and find_spec("dynamax"):
        tasks["dynamax"] = _dynamax("CategoricalHMM", begin, stacked, {"emission_probs": probs[:, None, :]})
    if not quick and find_spec("pomegranate"):
        tasks["pomegranate"] = _pomegranate(
            begin, [{"probs": [row]} for row in probs], "Categorical", stacked
        )
    compare("EM, 8 states, 12 symbols, 200 x 500, 10 iterations", tasks)


def learn_gaussian(kind: Any, quick: bool) -> None:
    """Time EM on 100 sequences of 1,000 points in 5 dimensions, 10 states."""
    rng = np.random.default_rng(0)
    truth, begin = chain(10, rng), chain(10, rng)
    roots = rng.normal(size=(10, 5, 5))
    params = {
        "means": 3 * rng.normal(size=(10, 5)),
        "covariances": roots @ roots.transpose(0, 2, 1) + np.eye(5),
    }
    make = mk.HMM(10, emission="gaussian", **truth, emission_params=params)
    parts = make.sample(1_000, 100, seed=1)[0]
    data, lengths = np.concatenate(parts), [1_000] * 100
    means = data[rng.integers(0, len(data), 10)]
    every = np.cov(data.T)
    full = np.repeat(every[None], 10, axis=0)
    covariances = full if kind == "full" else np.repeat(np.diag(every)[None], 10, axis=0)
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
        model = hmmlearn.GaussianHMM(10, kind, covars_prior=0.0, covars_weight=1.0, min_covar=0.0, **common)
        return with_values(model, begin, means_=means, covars_=covariances).fit(data, lengths)

    assert np.allclose(own().means_, peer().means_, atol=1e-8, rtol=0)
    tasks: Tasks = {"markovia": own, "hmmlearn": peer}
    stacked = np.stack(parts)
    if not quick and find_spec("dynamax"):
        name, held = (
            ("GaussianHMM", {"emission_covariances": full})
            if kind == "full"
            else ("DiagonalGaussianHMM", {"emission_scale_diags": np.sqrt(covariances)})
        )
        tasks["dynamax"] = _dynamax(name, begin, stacked, {"emission_means": means, **held})
    if not quick and find_spec("pomegranate"):
        each = [
            {"means": m, "covs": c, "covariance_type": kind} for m, c in zip(means, covariances, strict=True)
        ]
        tasks["pomegranate"] = _pomegranate(begin, each, "Normal", stacked)
    compare(f"EM, 10 {kind} Gaussians in 5 dimensions, 100 x 1,000, 10 iterations", tasks)


def long_sequence() -> None:
    """Time smoothing and Viterbi on one sequence of 1,000,000 steps, 5 states."""
    rng = np.random.default_rng(0)
    given, probs = chain(5, rng), rng.dirichlet(np.ones(6), 5)
    own = mk.HMM(5, **given, emission_params={"probs": probs})
    data = own.sample(1_000_000, seed=1)[0]
    peer = with_values(hmmlearn.CategoricalHMM(5, implementation="scaling"), given, emissionprob_=probs)
    peer.n_features = 6
    assert np.allclose(own.smooth(data)[0], peer.predict_proba(data), atol=1e-8, rtol=0)
    smoothing: Tasks = {"markovia": lambda: own.smooth(data), "hmmlearn": lambda: peer.predict_proba(data)}
    decoding: Tasks = {"markovia": lambda: own.decode(data), "hmmlearn": lambda: peer.predict(data)}
    compare("smoothing 1,000,000 steps, 5 states", smoothing)
    compare("Viterbi of 1,000,000 steps, 5 states", decoding)


def questions() -> None:
    """Time score, decoding and smoothing of 8 states and 64 symbols; the peer is the quicker of hmmlearn's two forms.

    Processor seconds are compared, so that threads do not flatter. Beside the speed stand the peer's own errors, against
    recursions in 80-bit numbers.
    """
    rng = np.random.default_rng(0)
    given, probs = chain(8, rng), rng.dirichlet(np.ones(64), 8)
    own = mk.HMM(8, **given, emission_params={"probs": probs})
    peers = [with_values(hmmlearn.CategoricalHMM(8, implementation=form), given, emissionprob_=probs)
             for form in ("scaling", "log")]  # fmt: skip
    for peer in peers:
        peer.n_features = 64
    warm_up = own.sample(40_000, seed=0)[0]
    for verb in (own.score, own.decode, own.smooth):  # small questions are answered in plain Python at first
        for _ in range(3):
            verb(warm_up)
            verb(warm_up, lengths=[20_000, 20_000])
    for n, count in ((1_000, 1), (10_000, 1), (100_000, 1), (1_000, 100)):
        data = np.concatenate(own.sample(n, count, seed=1)[0])
        rows, lengths = data.reshape(-1, 1), [n] * count
        log_prob, posteriors, path_value = exact_answers(given, probs, data.ravel(), n)
        verbs = {
            "score": (own.score, lambda peer: peer.score, lambda x, v=log_prob: abs(x / v - 1)),
            "decode": (own.predict, lambda peer: peer.predict, path_value),
            "smooth": (own.predict_proba, lambda peer: peer.predict_proba, lambda x, v=posteriors: np.abs(x - v).max()),
        }  # fmt: skip
        print(f"{count} x {n:,} steps, 8 states, 64 symbols")
        for name, (mine, of, error) in verbs.items():
            wall, worked = best_time(partial(mine, data, lengths), 15)
            theirs = [of(peer) for peer in peers]
            times = [best_time(partial(f, rows, lengths), 5)[1] for f in theirs]
            quickest = int(np.argmin(times))
            print(
                f"    {name:7s} markovia {1e3 * wall:7.3f} ms ({1e3 * worked:7.3f}), "
                f"error {error(mine(data, lengths)):.0e}; "
                f"hmmlearn {1e3 * times[quickest]:7.3f}, error {error(theirs[quickest](rows, lengths)):.0e}: "
                f"{times[quickest] / worked:.1f} times markovia's",
                flush=True,
            )


def exact_answers(
    given: dict[str, Any], probs: Any, data: Any, n: int
) -> tuple[float, Any, Callable[[Any], float]]:
    """Return log p, posteriors, and how far below the best a path lies, of sequences of n steps, in long doubles."""
    wide = np.longdouble
    start, moves = given["start"].astype(wide), given["transition"].astype(wide)
    dens = probs.T.astype(wide)[data].reshape(-1, n, len(start))  # sequences, steps, states
    forward, scale = np.empty_like(dens), np.empty(dens.shape[:2], dtype=wide)
    back, best = np.ones_like(dens), np.log(start) + np.log(dens[:, 0])
    for t in range(n):
        forward[:, t] = dens[:, t] * (start if t == 0 else forward[:, t - 1] @ moves)
        scale[:, t] = forward[:, t].sum(axis=1)
        forward[:, t] /= scale[:, t, None]
        if t:
            best = (best[:, :, None] + np.log(moves)).max(axis=1) + np.log(dens[:, t])
    for t in range(n - 2, -1, -1):
        back[:, t] = (back[:, t + 1] * dens[:, t + 1]) @ moves.T / scale[:, t + 1, None]
    top = best.max(axis=1).sum()

    def below(path: Any) -> float:
        states = np.asarray(path).reshape(-1, n)
        value = np.log(start)[states[:, 0]].sum() + np.log(moves)[states[:, :-1], states[:, 1:]].sum()
        value += np.log(np.take_along_axis(dens, states[..., None], axis=2)).sum()
        return float(abs((top - value) / top))

    posteriors = (forward * back).reshape(-1, len(start))
    return float(np.log(scale).sum()), posteriors.astype(np.float64), below


def _dynamax(name: str, begin: dict[str, Any], data: Any, values: dict[str, Any]) -> Callable[[], Any]:
    """Return ten iterations of EM by dynamax."""
    import jax.numpy as jnp
    import jax.random as jr
    from dynamax import hidden_markov_model as models

    k = len(begin["start"])
    if name == "CategoricalHMM":
        model = models.CategoricalHMM(k, 1, 12)
        emissions = jnp.asarray(data.reshape(*data.shape[:2], 1), dtype=jnp.int32)
    else:
        model, emissions = getattr(models, name)(k, data.shape[-1]), jnp.asarray(data)
    chain_values = {
        "initial_probs": jnp.asarray(begin["start"]),
        "transition_matrix": jnp.asarray(begin["transition"]),
    }
    held = {key: jnp.asarray(value) for key, value in values.items()}
    params, props = model.initialize(jr.PRNGKey(0), **chain_values, **held)
    return lambda: model.fit_em(params, props, emissions, num_iters=ITERATIONS, verbose=False)


def _pomegranate(
    begin: dict[str, Any], each: list[dict[str, Any]], name: str, data: Any
) -> Callable[[], Any]:
    """Return ten iterations of EM by pomegranate."""
    import torch
    from pomegranate import distributions
    from pomegranate.hmm import DenseHMM

    rows = torch.tensor(data.reshape(*data.shape[:2], -1))
    rows = rows.to(torch.int64 if name == "Categorical" else torch.float32)
    end = 1e-6

    def run() -> Any:
        made = [
            getattr(distributions, name)(
                **{k: v if isinstance(v, str) else np.float32(v) for k, v in one.items()}
            )
            for one in each
        ]
        k = len(made)
        model = DenseHMM(
            made,
            edges=np.float32(begin["transition"] * (1 - end)),
            starts=np.float32(begin["start"]),
            ends=np.full(k, end, dtype=np.float32),
            max_iter=ITERATIONS,
            tol=0.0,
        )
        return model.fit(rows)

    return run


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="without the slower peers")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    absent = [] if quick else [peer for peer in ("dynamax", "pomegranate") if not find_spec(peer)]
    if absent:
        print(f"not installed: {', '.join(absent)}")
    learn_categorical(quick)
    learn_gaussian("full", quick)
    learn_gaussian("diag", quick)
    long_sequence()
    questions()
    return 0


if __name__ == "__main__":
    sys.exit(main())
