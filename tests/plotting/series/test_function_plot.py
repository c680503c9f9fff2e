"""Pictures of functions: what lies on the axes."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument

k = mk.covariances
X = np.array([[0.0, 5.0], [1.0, 6.0], [3.0, 9.0]])
Y = np.array([1.0, 0.2, -0.7])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_a_function_is_a_curve_with_its_interval():
    f = mk.GaussianProcess(k.RBF(1.0) + k.White(0.1)).fit(X[:, :1], Y).function()
    values = f.at(np.linspace(0.0, 3.0, 7)[::-1])
    ax = values.plot(prob=0.5, title="curve")
    x, mean = ax.lines[0].get_data()
    assert (np.diff(x) > 0.0).all()
    np.testing.assert_allclose(mean, values.mean()[::-1])
    band = ax.collections[0].get_paths()[0].vertices
    low, high = values.interval(0.5)
    assert band[:, 1].min() == pytest.approx(low.min())
    assert band[:, 1].max() == pytest.approx(high.max())
    assert (ax.get_title(), ax.get_ylabel()) == ("curve", "f")
    with pytest.raises(InvalidArgument, match="2 columns"):
        mk.GaussianProcess(k.RBF(1.0)).fit(X, Y).function().at(X).plot()


def test_a_process_goes_along_a_column_with_the_others_at_their_medians():
    model = mk.GaussianProcess(k.RBF([1.0, 2.0]) + k.White(0.1)).fit(X, Y)
    ax = model.plot(column=1)
    seen, curve = ax.lines
    np.testing.assert_allclose(seen.get_data(), [X[:, 1], Y])
    x, mean = curve.get_data()
    np.testing.assert_allclose(mean, model.predict(np.column_stack([np.ones(len(x)), x])), atol=1e-9)
    assert x[0] < 5.0 < 9.0 < x[-1]
    assert ax.get_xlabel() == "x1"


def test_targets_in_another_unit_than_the_function_are_left_out():
    ax = mk.GaussianProcess(k.RBF(1.0), likelihood="bernoulli").fit(X[:, :1], [1.0, 0.0, 1.0]).plot()
    assert (len(ax.lines), ax.get_ylabel()) == (1, "f")


def test_what_cannot_be_drawn_says_so():
    model = mk.GaussianProcess(k.RBF(1.0)).fit(X, Y)
    with pytest.raises(InvalidArgument, match="one of 2 columns"):
        model.plot(column=2)
    with pytest.raises(InvalidArgument, match="prob"):
        model.plot(prob=2.0)
    with pytest.raises(InvalidArgument, match="several pictures"):
        mk.GaussianProcess(k.RBF(1.0)).fit(X, np.stack([Y, Y], 1)).plot()
