"""Every covariance and compositions of them, by one table: two faces, adjoints, derivatives, units, words."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.errors import IncompleteModel, InvalidArgument
from markovia.runtime.double_precision import x64

k = mk.covariances
P = mk.Parameter
B = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]])


def by_hand(x, z, a):
    return jnp.exp(-a * jnp.sum(jnp.abs(x - z)))


def bent(row):
    return jnp.concatenate([row, jnp.sin(row)])


def gibbs(x, z):
    """Lengths that grow with the first column (Gibbs)."""
    a, b = 1.0 + 0.3 * x[0] ** 2, 1.0 + 0.3 * z[0] ** 2
    return jnp.sqrt(2.0 * a * b / (a**2 + b**2)) * jnp.exp(-((x[0] - z[0]) ** 2) / (a**2 + b**2))


MADE = {
    "rbf": lambda: k.RBF(P(1.3)),
    "rbf, width": lambda: k.RBF(width=P(2.1)),
    "rbf, a length a column": lambda: k.RBF(P([0.7, 1.9])),
    "matern 1/2": lambda: k.Matern12(P(1.2)),
    "matern 3/2": lambda: k.Matern32(P([0.8, 1.5])),
    "matern 5/2": lambda: k.Matern52(P(0.9)),
    "rational quadratic": lambda: k.RationalQuadratic(P([1.1, 0.8]), alpha=P(0.7)),
    "periodic": lambda: k.Periodic(P(0.8), period=P([1.7, 2.9])),
    "periodic, a length a column": lambda: k.Periodic(P([0.8, 1.4]), period=P(1.7)),
    "quasi-periodic": lambda: k.QuasiPeriodic(P(0.9), period=P(1.3), decay=P(2.2)),
    "cosine": lambda: k.Cosine(P([2.1, 3.4])),
    "cosine, one period": lambda: k.Cosine(P(2.1)),
    "spectral mixture": lambda: k.SpectralMixture(
        P([1.2, 0.4]), P([[0.3, 0.1], [0.9, 0.2]]), P([[0.2, 0.3], [0.1, 0.4]])
    ),
    "linear": lambda: k.Linear(P([0.6, 1.4]), P([0.2, -0.5])),
    "linear, one variance": lambda: k.Linear(P(0.6), P(0.3)),
    "polynomial": lambda: k.Polynomial(3, P(0.8), P([0.5, 0.2])),
    "arc-cosine 0": lambda: k.ArcCosine(0, P(0.8), P(0.6)),
    "arc-cosine 1": lambda: k.ArcCosine(1, P([0.8, 1.3]), P(0.6)),
    "arc-cosine 2": lambda: k.ArcCosine(2, P(0.4), P(0.6)),
    "brownian": lambda: k.Brownian(P(1.4), P(-0.8), columns=1),
    "constant": lambda: k.Constant(P(1.7)),
    "white": lambda: k.White(P(0.4)),
    "categorical": lambda: k.Categorical(P(0.3), columns=[2, 3]),
    "categorical, one a column": lambda: k.Categorical(P([0.3, 0.6]), columns=[2, 3]),
    "index of a matrix": lambda: k.Index(B, column=2),
    "index": lambda: k.Index(W=P([[1.0], [-0.4], [0.2]]), kappa=P([0.1, 0.2, 0.3]), column=2),
    "sum": lambda: k.RBF(P(1.1), columns=0) + P(0.3) * k.Linear(P(1.0), columns=[0, 1]),
    "product": lambda: (
        k.Matern52(P(1.1), columns=0) * k.Periodic(P(1.1), P(2.0), columns=1) * (1.0 + k.RBF(P(0.6)))
    ),
    "a part that is there twice": lambda: (lambda part: part * part + part)(k.RBF(P(1.4))),
    "masks": lambda: k.RBF(P([1.1, 0.6]), columns=[1, 0]) * k.Matern32(P(0.9), columns=[1]),
    "changepoint": lambda: k.Changepoint(
        k.RBF(P(0.7)), 2.0 * k.Linear(P(0.4), columns=1), P(0.1), P(1.8), column=1
    ),
    "warped": lambda: k.Warped(k.RBF(P(0.9)), bent, columns=[0, 1]),
    "deep": lambda: k.Warped(k.Matern32(P(0.9)), P(mk.networks.mlp(2, 2, hidden=2).build(0)), columns=[0, 1]),
    "a function": lambda: k.FromFunction(by_hand, a=P(0.8, support="positive"), columns=[0, 1]),
    "a function without numbers": lambda: k.FromFunction(gibbs),
    "everything": lambda: (
        k.Index(W=P([[1.0], [-0.4], [0.2]]), kappa=P([0.1, 0.2, 0.3]), column=2)
        * (P(1.3) * k.RBF(P(1.1), columns=[0, 1]) + k.White(P(0.2)))
    ),
}
"""With the hyper-parameters of all as parameters."""
# covariances that are asked of the columns of codes as well do not have derivatives there
ONLY_NUMBERS = [name for name in MADE if not name.startswith(("categorical", "index", "everything"))]
rng = np.random.default_rng(7)
X = np.column_stack([rng.normal(size=(7, 2)), rng.integers(3, size=(7, 2))])
Z = np.column_stack([rng.normal(size=(5, 2)), rng.integers(3, size=(5, 2))])


def rows(name):
    """Inputs that a covariance can look at; those with lengths for two columns get two."""
    many = MADE[name]().columns is not None or name == "everything"
    return (X, Z) if many else (X[:, :2], Z[:, :2])


def numbers(cov):
    return {name: np.asarray(hyper.value) for name, hyper in cov.free().items()}


def differences(function, at, h=1e-5):
    """Central differences of a function of an array."""
    slopes = np.zeros(np.shape(at))
    for i in np.ndindex(slopes.shape):
        step = np.zeros(slopes.shape)
        step[i] = h
        slopes[i] = (function(at + step) - function(at - step)) / (2 * h)
    return slopes


def slopes_by_name(cov, pulled):
    return {name: pulled[id(hyper.part), hyper.name] for name, hyper in cov.free().items()}


@pytest.mark.parametrize("name", MADE)
def test_the_matrix_is_one_of_covariances(name):
    cov, (A, C) = MADE[name](), rows(name)
    both = np.concatenate([A, C])
    K = cov.value(both)
    np.testing.assert_allclose(K, K.T, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(np.diagonal(K), cov.diagonal(both), rtol=1e-12)
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * np.trace(K)
    # between two arrays it is a block of the matrix of both, and of an array with itself the same; but for noise of places
    if "White" not in repr(cov):
        np.testing.assert_allclose(cov.value(A, C), K[: len(A), len(A) :], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(cov.value(A, A), cov.value(A), rtol=1e-12, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_numpy_and_jax_say_the_same(name):
    cov, (A, C) = MADE[name](), rows(name)
    with x64():
        for pair in ((A, None), (A, C)):
            a, c = (None if rows_ is None else jnp.asarray(rows_) for rows_ in pair)
            np.testing.assert_allclose(cov.value(a, c, jnp), cov.value(*pair), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(cov.diagonal(jnp.asarray(A), jnp), cov.diagonal(A), rtol=1e-12)


@pytest.mark.parametrize(
    "name", [n if n != "deep" else pytest.param(n, marks=pytest.mark.slow) for n in MADE]
)
def test_pulls_are_derivatives_by_the_hyper_parameters(name):
    cov, (A, C) = MADE[name](), rows(name)
    now, r = numbers(cov), np.random.default_rng(3)
    for forward, face in (
        (lambda c: c.forward(A), lambda c: c.value(A)),
        (lambda c: c.forward(A, C), lambda c: c.value(A, C)),
        (lambda c: c.forward_diagonal(A), lambda c: c.diagonal(A)),
    ):
        K, pull = forward(cov)
        np.testing.assert_allclose(K, face(cov), rtol=1e-12, atol=1e-14)
        W = r.normal(size=K.shape)  # not symmetric: a product hands on such weights, too
        slopes = slopes_by_name(cov, pull(W))
        assert set(slopes) == set(now)
        for name_, value in now.items():

            def total(number, name_=name_, face=face, W=W):
                return np.vdot(W, face(cov.with_values({name_: number})))

            np.testing.assert_allclose(
                slopes[name_], differences(total, value), rtol=2e-7, atol=2e-8, err_msg=name_
            )
            assert np.shape(slopes[name_]) == np.shape(value)


@pytest.mark.parametrize("name", MADE)
def test_input_gradients_are_derivatives_by_the_inputs(name):
    cov, (A, C) = MADE[name](), rows(name)
    W = np.random.default_rng(4).normal(size=(len(A), len(C)))
    found = cov.input_gradient(A, C, W)
    assert found.shape == A.shape
    if name not in ONLY_NUMBERS:  # codes do not move; the numbers do
        assert not found[:, 2:].any()
        A = A.copy()
        found, at = found[:, :2], A[:, :2]
        slopes = differences(lambda moved: np.vdot(W, cov.value(np.column_stack([moved, A[:, 2:]]), C)), at)
    else:
        slopes = differences(lambda moved: np.vdot(W, cov.value(moved, C)), A)
    np.testing.assert_allclose(found, slopes, rtol=2e-7, atol=2e-8)


SMOOTH = [n for n in ONLY_NUMBERS if n not in ("white", "constant", "brownian", "arc-cosine 0", "a function")]
QUICK = ("rbf", "matern 1/2", "matern 3/2", "matern 5/2", "rational quadratic", "periodic", "arc-cosine 1")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SMOOTH]
)
def test_second_derivatives_in_jax_are_finite_at_distance_zero_and_right_elsewhere(name):
    cov, (A, _) = MADE[name](), rows(name)
    with x64():

        def of_two(x, z):
            return cov.value(x[None], z[None], jnp)[0, 0]

        across = jax.jit(jax.jacfwd(jax.grad(of_two), argnums=1))
        x, z = jnp.asarray(A[0]), jnp.asarray(A[1])
        assert np.isfinite(across(x, x)).all()
        found = np.asarray(across(x, z))
    one = np.ones((1, 1))
    slopes = [
        (cov.input_gradient(A[:1], A[1:2] + step, one) - cov.input_gradient(A[:1], A[1:2] - step, one))[0]
        / 2e-5
        for step in 1e-5 * np.eye(A.shape[1])
    ]
    np.testing.assert_allclose(found, np.transpose(slopes), rtol=1e-6, atol=1e-8)


STARTED = {
    "rbf": lambda: k.RBF(),
    "rbf, ard": lambda: k.RBF(ard=True),
    "rational quadratic": lambda: k.RationalQuadratic(ard=True),
    "periodic": lambda: k.Periodic() * k.RBF(),
    "quasi-periodic": lambda: k.QuasiPeriodic(),
    "cosine": lambda: k.Cosine(),
    "spectral mixture": lambda: k.SpectralMixture(components=2),
    "linear": lambda: k.Linear(offset=None),
    "linear at zero": lambda: k.Linear(),
    "polynomial": lambda: k.Polynomial(3),
    "arc-cosine": lambda: k.ArcCosine(2),
    "brownian": lambda: k.Brownian(start=None, columns=0),
    "constant": lambda: k.Constant() + k.White(),
    "scaled": lambda: k.Scaled(None, k.Matern52()),
    "categorical": lambda: k.Scaled(None, k.Categorical()),
    "changepoint": lambda: k.Changepoint(k.Scaled(None, k.RBF()), k.Constant()),
}
RELATIVE = ("rbf", "rational quadratic", "periodic", "quasi-periodic", "cosine", "arc-cosine 0")


@pytest.mark.parametrize("name", STARTED)
@pytest.mark.parametrize(("c", "a"), [(1e-9, 1e9), (1e9, 1e-9), (3.0, 1.0)])
def test_starts_move_with_the_units(name, c, a):
    cov, y = STARTED[name](), np.random.default_rng(5).normal(size=7)
    A = X[:, :2]
    one, other = cov.started(A, y), cov.started(c * A, a * y)
    assert all(h.free for h in one.hypers().values() if h.name not in ("offset", "start"))
    is_of_targets = name not in RELATIVE and not name.startswith("rbf")
    np.testing.assert_allclose(other.value(c * A), (a**2 if is_of_targets else 1.0) * one.value(A), rtol=1e-9)


def test_a_start_is_at_the_scale_of_constant_data():
    for y in (np.full(4, 5.0), np.zeros(4), np.full(4, 1e-9)):
        found = (k.Scaled(None, k.RBF()) + k.White()).started(np.full((4, 1), 3.0), y)
        assert all(float(h.value) > 0 for h in found.hypers().values())


def test_parts_of_a_warp_start_from_what_the_function_returns():
    cov = k.Warped(k.RBF(), lambda x: 1000.0 * x).started(X[:, :2], X[:, 0])
    direct = k.RBF().started(1000.0 * X[:, :2], X[:, 0])
    np.testing.assert_allclose(cov.hypers()["rbf.length"].value, direct.hypers()["rbf.length"].value)


@given(st.lists(st.sampled_from(sorted(ONLY_NUMBERS)), min_size=2, max_size=4), st.data())
@settings(max_examples=15, deadline=None)
def test_sums_and_products_are_of_the_matrices(names, data):
    whole, expected, A = None, None, X[:, :2]
    for name in names:
        part = MADE[name]()
        K = part.value(A)
        if whole is None:
            whole, expected = part, K
        elif data.draw(st.booleans()):
            whole, expected = whole + part, expected + K
        else:
            whole, expected = whole * part, expected * K
    np.testing.assert_allclose(whole.value(A), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(whole.diagonal(A), np.diagonal(expected), rtol=1e-12)


def test_hyper_parameters_have_names_values_and_supports():
    cov = k.RBF(1.0) + 2.0 * k.RBF(P(3.0)) + k.Categorical(P(0.2))
    assert {n: (float(h.value), h.support, h.free) for n, h in cov.hypers().items()} == {
        "rbf.length": (1.0, "positive", False),
        "scaled.variance": (2.0, "positive", False),
        "rbf2.length": (3.0, "positive", True),
        "categorical.correlation": (0.2, "unit", True),
    }
    changed = cov.with_values({"rbf2.length": 5.0})
    assert not changed.free().keys() & {"rbf2.length"}
    assert float(changed.hypers()["rbf2.length"].value) == 5.0
    assert float(cov.hypers()["rbf2.length"].value) == 3.0
    with pytest.raises(InvalidArgument, match=r"no hyper-parameter 'rbf3.length'; there are rbf.length"):
        cov.with_values({"rbf3.length": 1.0})
    with pytest.raises(InvalidArgument, match=r"length of RBF is a positive number, not -1\.0"):
        cov.with_values({"rbf.length": -1.0})
    assert repr(cov.with_values({"rbf.length": [1, 2]}).parts[0]) == "RBF(length=[1.0, 2.0])"


def test_a_part_that_is_there_twice_stays_one_part():
    part = k.RBF(P(1.0))
    cov = (part + part * k.Linear(1.0)).with_values({"rbf.length": 2.0}, keep=True)
    assert list(cov.free()) == ["rbf.length"]
    np.testing.assert_allclose(cov.value([[1.0]], [[3.0]]), [[np.exp(-0.5) * 4.0]])


def test_a_prior_and_a_fixed_parameter_are_kept():
    prior = mk.distributions.LogNormal(0.0, 1.0)
    cov = k.RBF(P(2.0, prior=prior)) + k.White(P(0.5, fixed=True))
    assert list(cov.free()) == ["rbf.length"]
    assert cov.free()["rbf.length"].prior is prior


def test_what_is_shown_can_be_read():
    cov = 2.0 * k.RBF(1.5, columns=0) * (k.White(0.1) + k.Linear([1.0, 2.0]))
    assert (
        repr(cov)
        == "2 * RBF(length=1.5, columns=[0]) * (White(variance=0.1) + Linear(variance=[1.0, 2.0], offset=0))"
    )
    assert repr(k.RBF() ** 2) == "RBF() * RBF()"
    assert repr(k.RBF(P(2.0)) + 1.0) == "RBF(length=Parameter(2)) + Constant(variance=1)"
    assert repr(k.RBF(ard=True)) == "RBF(ard=True)"
    assert repr(k.Polynomial(3)) == "Polynomial(3)"
    assert repr(k.ArcCosine(0, 1.0, 2.0)) == "ArcCosine(0, weight=1, bias=2)"
    assert repr(k.Index(B, column=2)).endswith("column=2)")
    assert repr(k.Warped(k.RBF(1.0), bent)) == "Warped(RBF(length=1), bent)"
    assert repr(k.FromFunction(by_hand, a=2.0)) == "FromFunction(by_hand, a=2)"
    assert repr(k.Changepoint(k.RBF(1.0), k.Constant(2.0), 0.0, 3.0, column=1)) == (
        "Changepoint(RBF(length=1), Constant(variance=2), at=0, steepness=3, column=1)"
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: k.RBF(-1.0), "length of RBF is a positive number, not -1.0"),
        (lambda: k.RBF(0.0), "length of RBF is a positive number, not 0.0"),
        (lambda: k.RBF(np.nan), "length of RBF is a positive number, not nan"),
        (lambda: k.RBF("long"), "length of RBF is a number, an array or a mk.Parameter, not 'long'"),
        (lambda: k.RBF(width=-1.0), "width of RBF is a positive number, not -1.0"),
        (lambda: k.RBF(1.0, width=2.0), "a length or a width"),
        (lambda: k.RBF(P(-1.0)), "length of RBF is a positive number"),
        (lambda: k.Categorical(1.5), "correlation of Categorical is a number from 0 to 1, not 1.5"),
        (lambda: k.Polynomial(0), "degree of Polynomial is a whole number from 1, not 0"),
        (lambda: k.ArcCosine(3), "order of ArcCosine is 0, 1 or 2, not 3"),
        (lambda: k.RBF(1.0, columns="income"), "columns of RBF are numbers of columns of the inputs, from 0, not 'income'"),
        (lambda: k.RBF(1.0, columns=-1), "columns of RBF are numbers of columns"),
        (lambda: k.RBF(1.0, columns=[0.5]), "columns of RBF are numbers of columns"),
        (lambda: k.RBF(1.0, columns=3).value(X[:, :2]), "RBF looks at column 3, and inputs have 2"),
        (lambda: k.RBF([1.0, 2.0]).value(X[:, :1]), r"length of RBF has the shape \(2,\), and its inputs 1 columns"),
        (lambda: k.RBF(1.0).value([["a"], ["b"]]), "inputs of a covariance are rows of numbers, not <U1"),
        (lambda: k.RBF(1.0).value(np.zeros((2, 2, 2))), "rows of numbers, not an array of 3 axes"),
        (lambda: k.RBF(1.0) ** 0.5, "raised to a whole number, 1 or more"),
        (lambda: k.Scaled(-1.0, k.RBF()), "variance of Scaled is a positive number, not -1.0"),
        (lambda: k.Brownian(1.0).value(X[:, :2]), "Brownian runs along one column, and inputs have 2"),
        (lambda: k.Index(B).value([[3.0]]), "the column of Index holds codes 0 to 2, and has others"),
        (lambda: k.Index(B).value([[0.5]]), "the column of Index holds codes 0 to 2, and has others"),
        (lambda: k.Index(B).value(X), "Index looks at one column, and inputs have 4; say which: column=1"),
        (lambda: k.Index([[1.0, 2.0], [2.0, 1.0]]), "its smallest eigenvalue is -1"),
        (lambda: k.Index([[1.0, 2.0]]), "B of Index is a symmetric matrix"),
        (lambda: k.Index(B, kappa=[1.0]), "Index takes B, or W and kappa"),
        (lambda: k.Index(W=[1.0], kappa=[1.0]), "W of Index is a matrix and kappa a vector"),
        (lambda: k.SpectralMixture([1.0], [0.1, 0.2], [0.3]), "with one entry a component"),
        (lambda: k.SpectralMixture([1.0], [0.1], [0.3]).value(X[:, :2]), "one row a component, with a number a column"),
        (lambda: k.Changepoint(k.RBF(1.0), k.RBF(2.0), 0.0, 1.0, column=4).value(X), "Changepoint looks at column 4"),
        (lambda: k.Warped(bent, k.RBF()), "Warped takes a covariance and then a function"),
        (lambda: k.Warped(k.RBF(), 3.0), "Warped takes a function of a row"),
        (lambda: k.FromFunction("rbf"), "FromFunction takes a function"),
        (lambda: k.FromFunction(by_hand, a=None), "a of FromFunction needs a number"),
        (lambda: k.RBF(P(mk.networks.mlp(1, 1))), "a module warps inputs"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(make, said):
    with pytest.raises(InvalidArgument, match=said) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_number_that_was_not_said_has_to_be_fitted_first():
    with pytest.raises(
        IncompleteModel, match="length of RBF was not said, and starts at the scale of the data in fit"
    ):
        k.RBF().value([[0.0]])


def test_variances_may_be_zero():
    assert (0.0 * k.RBF(1.0) + k.White(0.0)).value([[0.0], [1.0]]).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_no_covariance_but_those_of_functions_loads_a_compiler():
    code = """
import sys
import numpy as np
import markovia as mk
k, P, X = mk.covariances, mk.Parameter, np.random.default_rng(0).normal(size=(6, 1))
for cov in (k.RBF(P(1.0, support="positive")), k.Matern52(ard=True), k.RationalQuadratic(), k.QuasiPeriodic(), k.Cosine(),
            k.SpectralMixture(), k.Linear(), k.Polynomial(2), k.ArcCosine(1), k.Brownian(), k.Constant() * k.White(),
            k.Categorical(), 2.0 * k.Changepoint(k.RBF(), k.Linear())):
    cov = cov.started(X, X[:, 0])
    K, pull = cov.forward(X)
    pull(K), cov.forward(X, X)[1](K), cov.forward_diagonal(X)[1](X[:, 0]), cov.input_gradient(X, X, K), cov.state_space()
k.RBF(1.0).spectral_draws(5, 1, np.random.default_rng(0)), k.RBF(1.0).spectral_density([0.0])
print(sorted({"jax", "numpyro", "numba", "pandas", "sklearn"} & set(sys.modules)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert ran.stdout.strip() == "[]"
