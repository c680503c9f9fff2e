"""A process as the form of a node: what it is made of, what of it is fitted, and what may be known of it."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.factors.covariances.process import FittedProcess, is_process
from markovia.factors.functions.function_node import FixedFunction

k = mk.covariances


def test_means_are_numbers_or_functions_of_inputs():
    rows = np.array([[1.0], [2.0]])
    assert mk.GP(k.RBF(length=1.0), mean=3.0).mean_at(rows, np).tolist() == [3.0, 3.0]
    assert mk.GP(k.RBF(length=1.0), mean=lambda x: 2 * x).mean_at(rows, np).tolist() == [2.0, 4.0]
    assert mk.GP(k.RBF(length=1.0), mean=mk.Parameter(0.5)).mean_at(rows, np).tolist() == [0.5, 0.5]
    two = np.ones((3, 2))
    assert mk.GP(k.RBF(length=1.0), mean=lambda x: x.sum(axis=1)).mean_at(two, np).tolist() == [2.0] * 3


def test_what_is_fitted_becomes_parameters_of_the_network():
    form, arguments = mk.GP(k.RBF(), mean=mk.Parameter(0.5)).node_form("f")
    assert isinstance(form, FittedProcess)
    assert list(arguments.values()) == ["f.rbf.length", "f.mean"]
    made = form(hyper0=2.0, hyper1=1.0)
    assert made.covariance.own["length"] == 2.0
    assert made.mean == 1.0
    assert not made.free()
    parameters = form.network_parameters()
    assert np.isnan(parameters["f.rbf.length"].value)
    assert parameters["f.mean"].value == 0.5
    assert parameters["f.rbf.length"].support == "positive"
    started = form.started(parameters, np.linspace(0, 10, 20)[:, None], np.arange(20.0))
    assert list(started) == ["f.rbf.length"]
    assert started["f.rbf.length"] > 0
    process, none = mk.GP(k.RBF(length=1.0)).node_form("f")
    assert isinstance(process, mk.GP)
    assert none == {}


def test_forms_are_told_from_distributions():
    assert is_process(mk.GP(k.RBF(length=1.0)))
    assert is_process(FixedFunction(np.sin))
    assert not is_process(1.0)


def test_points_are_finite_and_as_many_as_values():
    assert mk.Points([0.0, 1.0], [1.0, 2.0]).x.shape == (2, 1)
    with pytest.raises(InvalidArgument, match="finite"):
        mk.Points([0.0, np.nan], [1.0, 2.0])
    with pytest.raises(InvalidArgument, match="one value for each"):
        mk.Points([0.0], [1.0, 2.0])
