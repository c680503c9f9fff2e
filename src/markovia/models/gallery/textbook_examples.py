"""Models of worked examples whose answers can be checked on paper: chains, a cycle, grids, log-linear models.

Each function returns a fresh model; all of them are in `markovia.examples` too. Results named in a docstring
are exact and the tests compute them again; an example number is the one in the course notes that the model
comes from.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from markovia.factors.potentials.log_linear import Feature, LogLinear
from markovia.factors.potentials.potentials import chain
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.models.temporal.unrolled import hidden_markov_model


def three_chain() -> MarkovNetwork:
    """Return a chain x1 - x2 - x3 of three binary variables with Z = 120 (Example 51).

    P(x1) = (76, 44) / 120; the best configuration is (0, 0, 1) with weight 50.

    Examples
    --------
    >>> mn = three_chain()
    >>> round(mn.query("x1")[0] * 120), mn.map().to_dict()
    (76, {'x1': 0, 'x2': 0, 'x3': 1})
    """
    return MarkovNetwork(
        {"x1": 2, "x2": 2, "x3": 2},
        [Factor(["x1", "x2"], [[5, 2], [1, 4]]), Factor(["x2", "x3"], [[2, 10], [5, 3]])],
        name="three_chain",
    )


def cycle_with_tail() -> MarkovNetwork:
    """Return five binary variables on the cycle x2 - x4 - x5 - x3 with x1 hanging on x2 (Example 54).

    Eliminating x1, x2, ... in order needs tables over three variables; starting with x2 needs four. The
    example fixes only the graph; the potentials are ours.

    Examples
    --------
    >>> cycle_with_tail().edges
    [('x1', 'x2'), ('x2', 'x4'), ('x2', 'x3'), ('x3', 'x5'), ('x4', 'x5')]
    """
    return MarkovNetwork(
        {f"x{i}": 2 for i in range(1, 6)},
        [
            Factor(["x1", "x2"], [[4, 1], [1, 3]]),
            Factor(["x2", "x4"], [[3, 1], [2, 3]]),
            Factor(["x2", "x3"], [[5, 2], [1, 2]]),
            Factor(["x4", "x5"], [[2, 1], [1, 4]]),
            Factor(["x3", "x5"], [[3, 2], [1, 5]]),
        ],
        name="cycle_with_tail",
    )


def three_step_hmm() -> BayesianNetwork:
    """Return a hidden Markov model of three steps, hidden y1 y2 y3 and observed x1 x2 x3 (Example 71).

    Given x = (0, 0, 0) the most probable path is (0, 0, 0) with joint probability 0.138915 and the evidence
    has probability 0.283425.

    Examples
    --------
    >>> bn = three_step_hmm()
    >>> seen = {"x1": 0, "x2": 0, "x3": 0}
    >>> bn.map(given=seen).to_dict(), round(float(np.exp(bn.log_evidence(given=seen))), 6)
    ({'y1': 0, 'y2': 0, 'y3': 0}, 0.283425)
    """
    return hidden_markov_model(
        initial=[0.5, 0.5],
        transition=[[0.9, 0.1], [0.2, 0.8]],
        emission=[[0.7, 0.3], [0.6, 0.4]],
        T=3,
        hidden="y",
        observed="x",
        first=1,
        name="three_step_hmm",
    )


def chain_crf() -> MarkovNetwork:
    """Return the labels y1 - y2 - y3 of a conditional random field with its inputs filled in (Example 75).

    The log weight is 3 sum_j x_j y_j - 2 [y1 != y2] - 2 [y2 != y3] with x = (0.1, 0.7, 0.3); Z = 33.0486787.

    Examples
    --------
    >>> round(chain_crf().log_partition(), 6)
    3.497982
    """
    y = [Variable(f"y{j}", 2) for j in (1, 2, 3)]
    inputs = (0.1, 0.7, 0.3)
    on = Feature.tied(Feature([v], [0.0, x]) for v, x in zip(y, inputs, strict=True))
    differ = Feature.tied(Feature([a, b], [[0.0, 1.0], [1.0, 0.0]]) for a, b in pairwise(y))
    return MarkovNetwork(y, LogLinear([on, differ], [3.0, -2.0]).factors(), name="chain_crf")


def six_spins() -> MarkovNetwork:
    """Return a log-linear model of six variables y1 ... y6 with states -1 and +1 (Example 76).

    Eight features with weights (1, 1, 1, 2, 2, 1, -1, 1), the first summed over the five neighbouring pairs;
    log Z = 13.514504 and the best configuration is (-1, 1, 1, 1, 1, 1).

    Examples
    --------
    >>> mn = six_spins()
    >>> round(mn.log_partition(), 6), list(mn.map().values())
    (13.514504, [-1, 1, 1, 1, 1, 1])
    """
    y = {j: Variable(f"y{j}", [-1, 1]) for j in range(1, 7)}

    def feature(a: int, b: int, value: Any) -> Feature:
        return Feature([y[a], y[b]], value)

    features = [
        Feature.tied(feature(j, j + 1, lambda s, t: float(s + t > 1)) for j in range(1, 6)),
        feature(1, 3, lambda s, t: -2.0 * s * t),
        feature(2, 3, lambda s, t: float(s * t)),
        feature(3, 4, lambda s, t: float(s * t)),
        feature(2, 4, lambda s, t: float(s * t < 0)),
        feature(4, 5, lambda s, t: 2.0 * s * t),
        feature(3, 5, lambda s, t: float(-s * t)),
        feature(5, 6, lambda s, t: float(s + t > 0)),
    ]
    weights = [1.0, 1.0, 1.0, 2.0, 2.0, 1.0, -1.0, 1.0]
    return MarkovNetwork(y.values(), LogLinear(features, weights).factors(), name="six_spins")


def rain_chain(days: int = 28) -> MarkovNetwork:
    """Return the Ising chain of Vancouver's daily rain, `day1` to `day28` with states "dry" and "rain".

    A dry day weighs exp(0.16), two neighbouring days that agree weigh exp(0.85): the maximum likelihood fit to
    a century of months in Schmidt's UGM tutorials. It rains on 41% of the days.

    Parameters
    ----------
    days
        The length of the chain.

    Examples
    --------
    >>> mn = rain_chain()
    >>> round(mn.log_partition(), 4), round(mn.query("day2", given={"day1": "rain"})["rain"], 3)
    (35.6924, 0.642)
    """
    agree = np.exp(0.85)
    return MarkovNetwork(
        [Variable(f"day{d}", ["dry", "rain"]) for d in range(1, days + 1)],
        chain(
            [f"day{d}" for d in range(1, days + 1)],
            [[agree, 1.0], [1.0, agree]],
            unary=[np.exp(0.16), 1.0],
            states=["dry", "rain"],
        ),
        name="rain_chain",
    )


def eight_nodes(tables: str | None = "uniform", seed: int | None = None) -> BayesianNetwork:
    """Return the eight-node network of signals in a cell: two receptors, three kinases, a factor, two genes.

    P = P(x1) P(x2) P(x3|x1) P(x4|x2) P(x5|x2) P(x6|x3,x4) P(x7|x6) P(x8|x5,x6): 18 free parameters where the
    full table has 255. Source: the introductory lecture of Xing's course on graphical models.

    Parameters
    ----------
    tables
        "uniform" or "random" tables, or None for the structure alone.
    seed
        Seed of random tables.

    Examples
    --------
    >>> eight_nodes().count_parameters()
    18
    """
    structure = "x1; x2; x1->x3; x2->x4; x2->x5; x3->x6; x4->x6; x6->x7; x5->x8; x6->x8"
    return BayesianNetwork(structure, tables=tables, seed=seed, name="eight_nodes")


def pixel_grid() -> MarkovNetwork:
    """Return the labels y1 ... y9 (row by row) of a 3 x 3 picture, 1 for foreground and 0 for background.

    Every pixel has its own evidence for foreground; all neighbours share one potential that prefers equal
    labels. The evidence shows a cross whose middle is blurred, and smoothing restores it.

    Examples
    --------
    >>> mn = pixel_grid()
    >>> mn.map()["y5"], mn.independent("y1", "y9", given=["y2", "y4"])
    (1, True)
    """
    pixels = [Variable(f"y{k}", 2) for k in range(1, 10)]
    foreground = [0.2, 0.8, 0.2, 0.8, 0.45, 0.8, 0.2, 0.8, 0.2]
    factors = [Factor([v], [1.0 - p, p]) for v, p in zip(pixels, foreground, strict=True)]
    across = [(k, k + 1) for k in range(9) if k % 3 < 2]
    down = [(k, k + 3) for k in range(6)]
    factors += [Factor([pixels[a], pixels[b]], [[1.5, 1.0], [1.0, 1.5]]) for a, b in across + down]
    return MarkovNetwork(pixels, factors, name="pixel_grid")
