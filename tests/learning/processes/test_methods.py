"""Which method "auto" takes, why it says so, and how methods are made by name."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.learning.processes.likelihoods import as_likelihood
from markovia.learning.processes.methods import (
    METHODS,
    choose,
    has_even_steps,
    is_grid,
    method_class,
    method_of,
)

k = mk.covariances
RNG = np.random.default_rng(0)


def uneven(n, d=1):
    return RNG.random((n, d))


CASES = {
    "few": (uneven(500, 3), k.RBF(), "normal", {}, "exact"),
    "few of one input": (uneven(500), k.Matern32(), "normal", {}, "exact"),
    "Markov": (uneven(3_000), 2.0 * k.Matern32() + k.White(), "normal", {}, "state-space"),
    "Markov of two inputs": (uneven(3_000, 2), k.Matern32(), "normal", {}, "exact"),
    "many": (uneven(10_000, 2), k.RBF(), "normal", {}, "sgpr"),
    "very many": (uneven(250_000, 2), k.RBF(), "normal", {}, "svgp"),
    "steps": (np.arange(10_000.0)[:, None], k.RBF(), "normal", {}, "toeplitz"),
    "steps, not stationary": (np.arange(10_000.0)[:, None], k.Brownian() * k.RBF(), "normal", {}, "sgpr"),
    "grid": (np.array([[i, j] for i in range(100) for j in range(100)], float), k.RBF(ard=True), "normal", {}, "kronecker"),
    "grid, no product": (
        np.array([[i, j] for i in range(100) for j in range(100)], float), k.Matern32(), "normal", {}, "sgpr",
    ),
    "little memory": (uneven(500, 2), k.RBF(), "normal", {"memory": 1e5}, "sgpr"),
    "points": (uneven(50, 2), k.RBF(), "normal", {"inducing": True}, "sgpr"),
    "features": (uneven(50, 2), k.RBF(), "normal", {"features": True}, "fourier"),
    "columns": (uneven(10_000, 2), k.RBF(), "normal", {"exact_only": True}, "exact"),
    "classes": (uneven(500, 2), k.RBF(), "bernoulli", {}, "ep"),
    "many classes": (uneven(10_000, 2), k.RBF(), "bernoulli", {}, "svgp"),
    "noise": (uneven(500, 2), k.RBF(), "heteroscedastic", {}, "variational"),
    "much noise": (uneven(10_000, 2), k.RBF(), "heteroscedastic", {}, "variational"),
    "counts at points": (uneven(500, 2), k.RBF(), "poisson", {"inducing": True}, "svgp"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_auto_goes_by_rows_structure_and_likelihood(case):
    X, covariance, word, more, expected = CASES[case]
    likelihood = word if word == "normal" else as_likelihood(word)
    chosen = choose(X, covariance.started(X, np.sin(X[:, 0])), likelihood, **{"memory": 1e10, **more})
    assert chosen.name == expected
    assert f"{len(X):,} rows" in chosen.why or "was said" in chosen.why or "known errors" in chosen.why


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_what_its_name_says(name):
    found = method_class(name)
    assert found.name == name
    assert isinstance(found.exact, bool)
    assert callable(found.evidence)
    assert callable(found.posterior)


def test_a_wrong_name_or_option_is_one_sentence():
    with pytest.raises(InvalidArgument, match=r"there is no method 'sgprr'; .*\(did you mean 'sgpr'\?\)"):
        method_class("sgprr")
    with pytest.raises(
        InvalidArgument, match=r"method='svgp' takes no memory=; it takes .*inducing=.*training="
    ):
        method_of("svgp", np.zeros((2, 1)), np.zeros(2), memory=3)


def test_grids_and_steps():
    assert has_even_steps(1e9 + np.arange(5.0)[::-1, None])
    assert not has_even_steps(np.zeros((3, 1)))
    assert not has_even_steps(np.zeros((1, 1)))
    assert not is_grid(np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]))
