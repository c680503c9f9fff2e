"""How long Kalman filtering and smoothing take, side by side with statsmodels.

Run: python benchmarks/sequences_kalman.py [--quick] [--steps T] [--states N] [--observed P]

One long sequence of a random stable model; both libraries answer with all means and covariances, and the log likelihoods
and smoothed means are compared. "varying" has one share of values missing, so that covariances never come to rest.
Seconds are medians of at least five runs, compiled beforehand.
"""

import argparse
import warnings
from typing import Any

import numpy as np
from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother
from stopwatch import median_time

import markovia as mk


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--states", type=int, default=4)
    parser.add_argument("--observed", type=int, default=2)
    options = parser.parse_args()
    options.steps //= 10 if options.quick else 1
    warnings.simplefilter("ignore")
    model = _model(options.states, options.observed)
    whole = model.sample(options.steps, seed=1)[0][0]
    holes = whole.copy()
    holes[np.random.default_rng(2).random(holes.shape) < 0.1] = np.nan
    print(f"{options.states} states, {options.observed} observed, {options.steps:,} steps\n")
    print(f"{'':10} {'':10} {'markovia':>10} {'root':>10} {'statsmodels':>12} {'times':>7}")
    for name, y in (("whole", whole), ("missing", holes)):
        _compare(name, model, y)
    return 0


def _model(n: int, p: int) -> mk.LinearStateSpace:
    rng = np.random.default_rng(0)
    transition = rng.normal(size=(n, n))
    noise, error = rng.normal(size=(n, n)), rng.normal(size=(p, p))
    return mk.LinearStateSpace(
        transition=0.95 * transition / np.abs(np.linalg.eigvals(transition)).max(),
        transition_cov=noise @ noise.T / n,
        observation=rng.normal(size=(p, n)),
        observation_cov=error @ error.T + 0.1 * np.eye(p),
        initial_mean=np.zeros(n),
        initial_cov=np.eye(n),
    )


def _compare(name: str, model: mk.LinearStateSpace, y: Any) -> None:
    space = model.space
    peer = KalmanSmoother(k_endog=y.shape[1], k_states=space.n_states, k_posdef=space.n_states)
    peer.bind(y.copy())
    peer["transition"], peer["state_cov"] = space.transition[0], space.transition_cov[0]
    peer["design"], peer["obs_cov"] = space.observation[0], space.observation_cov[0]
    peer["selection"] = np.eye(space.n_states)
    peer.initialize_known(space.initial_mean, space.initial_cov)
    rooted = mk.LinearStateSpace(**{**model.get_params(), "form": "square-root"})

    def asked(question: str) -> Any:
        def ask(one: mk.LinearStateSpace) -> Any:
            found = getattr(one, question)(y)
            return found.mean, found.cov, found.log_prob

        return ask

    for question, theirs in (("filter", peer.filter), ("smooth", peer.smooth)):
        ours = median_time(asked(question), lambda: model)
        root = median_time(asked(question), lambda: rooted)
        other = median_time(lambda call: call(), lambda theirs=theirs: theirs)  # type: ignore[misc]
        a, b, c = (one.record["seconds"] for one in (ours, root, other))
        print(f"{name:10} {question:10} {a:10.4f} {b:10.4f} {c:12.4f} {c / a:7.1f}")
        means = other.result.filtered_state if question == "filter" else other.result.smoothed_state
        likelihood = abs(ours.result[2][0] / other.result.llf - 1)
        gap = max(likelihood, np.abs(ours.result[0][0] - means.T).max())
        print(f"{'':10} {'':10} greatest difference {gap:.1e}")


if __name__ == "__main__":
    raise SystemExit(main())
