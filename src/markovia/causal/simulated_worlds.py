"""Worlds whose effects are known, to try estimators on: linear ones, and ones like two famous studies.

Each draws a frame and says the truth: the average effect, and that on the treated, of the rows that were drawn or of the
population. `lalonde_like` resembles a job programme compared with people who did not join (few treated, strong
confounding, skewed earnings); `ihdp_like` an early-childhood programme with a nonlinear response surface (Hill, 2011).
"""

from typing import NamedTuple

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.libraries import pd
from markovia.runtime.seeds import Seed, generator


class World(NamedTuple):
    """A frame of rows, the graph they come from, and the effects of `t` on `y`."""

    frame: "pd.DataFrame"
    graph: str
    ate: float
    att: float


def linear_world(n: int = 1000, seed: Seed = None, *, effect: float = 2.0) -> World:
    """Draw rows with two confounders; the effect of `t` on `y` is linear in one of them.

    Examples
    --------
    >>> world = linear_world(100, seed=0)
    >>> list(world.frame.columns), world.ate
    (['x1', 'x2', 't', 'y'], 2.0)
    """
    rng = generator(seed)
    x = rng.normal(size=(n, 2))
    t = rng.random(n) < _sigmoid(0.5 * x[:, 0] - 0.5 * x[:, 1])
    y = 1 + effect * t + x[:, 0] + 0.5 * x[:, 1] + t * x[:, 0] + rng.normal(size=n)
    frame = pd.DataFrame({"x1": x[:, 0], "x2": x[:, 1], "t": t.astype(int), "y": y})
    # E[x1 | t = 1] = E[x1 p(x)] / (1/2), with the slope of the logit-normal mean by quadrature
    return World(frame, _confounded("x1", "x2"), effect, effect + _TILT)


def lalonde_like(n: int = 2000, seed: Seed = None) -> World:
    """Draw rows like those of a job programme: earnings afterwards by joining it, with the same effect on everyone."""
    rng = generator(seed)
    age = np.clip(rng.gamma(9, 3.2, n), 17, 60)
    education = np.clip(np.round(rng.normal(11, 2.5, n)), 3, 18)
    married = rng.random(n) < _sigmoid((age - 28) / 6)
    jobless = rng.random(n) < 0.3
    earlier = np.where(jobless, 0.0, rng.lognormal(8.6 + 0.03 * (education - 11), 0.7, n)) / 1000
    score = -1.3 - 0.04 * (age - 28) - 0.1 * (education - 11) - 0.7 * married + 0.8 * jobless - 0.04 * earlier
    joined = rng.random(n) < _sigmoid(score)
    noise = rng.gamma(2.0, 1.5, n) - 3.0
    later = (
        2 + 1.8 * joined + 0.5 * earlier + 0.4 * (education - 8) + 0.05 * (age - 28) + 1.2 * married + noise
    )
    columns = {
        "age": age, "education": education, "married": married, "jobless": jobless, "earlier": earlier,
        "t": joined, "y": later,
    }  # fmt: skip
    return World(
        pd.DataFrame(columns), _confounded("age", "education", "married", "jobless", "earlier"), 1.8, 1.8
    )


def ihdp_like(n: int = 747, seed: Seed = None) -> World:
    """Draw rows like those of an early-childhood programme, with a curved response; the effects are those of the rows."""
    rng = generator(seed)
    weight, head, weeks = (rng.normal(size=n) for _ in range(3))
    girl, twin, smoker = (rng.random(n) < p for p in (0.5, 0.1, 0.4))
    treated = rng.random(n) < _sigmoid(-1.2 + 0.5 * weight - 0.4 * head + 0.5 * smoker - 0.3 * girl)
    centre = 0.4 * weight + 0.3 * head + 0.2 * weeks + 0.2 * girl - 0.3 * twin - 0.2 * smoker
    without, with_ = np.exp(0.5 + 0.5 * centre), 6.0 + centre
    y = np.where(treated, with_, without) + rng.normal(size=n)
    columns = {
        "weight": weight, "head": head, "weeks": weeks, "girl": girl, "twin": twin, "smoker": smoker,
        "t": treated, "y": y,
    }  # fmt: skip
    gain = with_ - without
    names = ("weight", "head", "weeks", "girl", "twin", "smoker")
    return World(pd.DataFrame(columns), _confounded(*names), float(gain.mean()), float(gain[treated].mean()))


def _confounded(*names: str) -> str:
    return "; ".join([*(f"t <- {name} -> y" for name in names), "t -> y"])


def _sigmoid(v: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-v)))


def _tilt() -> float:
    """Return E[x1 | t = 1] of `linear_world`: 2 E[x1 sigmoid(z)] with z = (x1 - x2) / 2, by Stein's identity."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    p = _sigmoid(nodes * np.sqrt(0.5))
    return float(weights @ (p * (1 - p)) / weights.sum())


_TILT = _tilt()
