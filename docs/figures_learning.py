"""Pictures of the pages on classifiers and conditional random fields.

Everything is drawn from fixed seeds while the pages are built; the segmentation by `examples/crf_segmentation.py`.
"""

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from figures_map import _example
from numpy.typing import NDArray

import markovia as mk

Array = NDArray[np.float64]
WAVE_NOISE = 0.3


def calibration() -> Any:
    """Show naive Bayes and logistic regression where one measurement is written down three times."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.4), layout="constrained")
    rows, sick = _visits(4000, seed=1)
    models = {
        "naive Bayes": mk.classifiers.GaussianNaiveBayes(),
        "logistic regression": mk.regression.LogisticRegression(),
    }
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        found = mk.learning.calibration(sick, model.fit(*_visits(2000, seed=0)).predict_proba(rows))
        found.plot(ax=ax, title=f"{name}: calibration error {found.expected_calibration_error:.3f}")
    return figure


def bias_variance() -> Any:
    """Show the error of polynomials of rising degree, split into bias, variance and noise."""
    points = np.linspace(0.0, 1.0, 60)
    found = {
        degree: mk.learning.bias_variance(
            partial(_polynomial, degree),
            _wave,
            test=points,
            truth=lambda x: np.sin(2 * np.pi * x),
            noise=WAVE_NOISE**2,
            loss="squared",
            n_datasets=400,
            seed=0,
        )
        for degree in (1, 3, 5, 7, 9, 11)
    }
    ax = mk.plotting.plot_bias_variance(found, title="")
    ax.set_xlabel("degree of the polynomial")
    return ax


def crf_segmentation() -> Any:
    """Show pictures labelled pixel by pixel, and by fields with two penalties of their edges."""
    with redirect_stdout(io.StringIO()):
        return _example("crf_segmentation").segmentation_figure()


def state_choice() -> Any:
    """Show the criterion of one to five hidden states, where three are right; as in `guide/learning_hmms.md`."""
    levels = mk.HMM(
        3, emission="gaussian", start=[1, 0, 0], transition=[[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.1, 0.0, 0.9]],
        emission_params={"means": [-4.0, 0.0, 4.0], "covariances": [1.0, 1.0, 1.0]},
    )  # fmt: skip
    data = levels.sample(60, 6, seed=0)[0]
    template = mk.HMM(emission="gaussian", n_init=3)
    return mk.series.choose_states(template, data, range(1, 6), seed=0).plot()


def _visits(n: int, seed: int) -> tuple[Array, NDArray[np.str_]]:
    """Return three noisy copies of one measurement, and who is sick; as in `guide/classifiers.md`."""
    rng = np.random.default_rng(seed)
    ill = rng.integers(0, 2, n)
    fever = ill + rng.normal(scale=1.5, size=n)
    return fever[:, None] + rng.normal(scale=0.3, size=(n, 3)), np.where(ill, "sick", "healthy")


def _wave(rng: np.random.Generator) -> tuple[Array, Array]:
    x = np.linspace(0.0, 1.0, 15)
    return x, np.sin(2 * np.pi * x) + rng.normal(scale=WAVE_NOISE, size=15)


def _polynomial(degree: int, x: Array, y: Array, points: Array) -> Array:
    fitted = np.polynomial.Polynomial.fit(x, y, degree, domain=[0.0, 1.0])
    return np.asarray(fitted(points))


FIGURES: tuple[Callable[[], Any], ...] = (calibration, bias_variance, crf_segmentation, state_choice)
