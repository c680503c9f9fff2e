"""Components families: densities against SciPy, learning against every small change, draws, parameters that are counted."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import stdtrit

import markovia as mk
from markovia.data.sequences.sequences import read_sequences
from markovia.learning.components.discrete import Bernoulli, Categorical, Multinomial, Poisson
from markovia.learning.components.gaussian import Gaussian, GaussianMixtureComponents, StudentT

RNG = np.random.default_rng(0)
MEANS = RNG.normal(size=(2, 2))
ROOTS = RNG.normal(size=(2, 2, 2))
FULL = ROOTS @ ROOTS.transpose(0, 2, 1) + np.eye(2)
ROWS = RNG.normal(size=(40, 2))
COUNTS = RNG.poisson(3.0, (40, 2)).astype(float)
WEIGHTS = RNG.random((40, 2))


def test_densities_are_those_of_scipy():
    gaussian = Gaussian(MEANS, FULL).log_densities(ROWS)
    student = StudentT(MEANS, FULL, np.array([3.0, 50.0])).log_densities(ROWS)
    mixture = GaussianMixtureComponents(np.array([[0.3, 0.7]]), MEANS[None], FULL[None]).log_densities(ROWS)
    for k, df in enumerate((3.0, 50.0)):
        assert gaussian[:, k] == pytest.approx(stats.multivariate_normal(MEANS[k], FULL[k]).logpdf(ROWS))
        assert student[:, k] == pytest.approx(stats.multivariate_t(MEANS[k], FULL[k], df).logpdf(ROWS))
    assert mixture[:, 0] == pytest.approx(np.log(np.exp(gaussian) @ [0.3, 0.7]))
    rates = np.array([[2.0, 3.0], [0.5, 7.0]])
    assert Poisson(rates).log_densities(COUNTS) == pytest.approx(
        stats.poisson(rates).logpmf(COUNTS[:, None]).sum(axis=-1)
    )
    probs = np.array([[0.2, 0.8], [0.5, 0.5]])
    for k in range(2):
        want = stats.multinomial(COUNTS.sum(axis=1).astype(int), probs[k]).logpmf(COUNTS)
        assert Multinomial(probs).log_densities(COUNTS)[:, k] == pytest.approx(want)
    bits = (ROWS > 0).astype(float)
    assert Bernoulli(probs).log_densities(bits) == pytest.approx(
        stats.bernoulli(probs).logpmf(bits[:, None]).sum(axis=-1)
    )


PRIOR = {
    "mean": np.array([0.5, -0.5]),
    "strength": 2.0,
    "scale": np.array([[0.7, 0.1], [0.1, 0.5]]),
    "df": 5.0,
}
DIAGONAL = {**PRIOR, "scale": np.array([0.7, 0.5])}


@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize(
    ("emission", "rows", "prior"),
    [
        (Categorical(np.full((2, 3), 1 / 3), (0, 1, 2)), np.arange(40)[:, None] % 3, {"concentration": 2.5}),
        (Multinomial(np.full((2, 2), 0.5)), COUNTS, {"concentration": 3.0}),
        (Poisson(np.ones((2, 2))), COUNTS, {"shape": 3.0, "rate": 2.0}),
        (Bernoulli(np.full((2, 2), 0.5)), (ROWS > 0).astype(float), {"a": 3.0, "b": 2.0}),
        (Gaussian(MEANS, FULL, "full"), ROWS, PRIOR),
        (Gaussian(MEANS, FULL, "diag"), ROWS, DIAGONAL),
        (Gaussian(MEANS, FULL, "tied"), ROWS, PRIOR),
        (Gaussian(MEANS, FULL, "spherical"), ROWS, DIAGONAL),
    ],
    ids=lambda x: type(x).__name__ + getattr(x, "kind", ""),
)
def test_no_small_change_is_better_than_what_is_learned(emission, rows, prior, with_prior):
    prior = prior if with_prior else {}
    found = emission.learned(rows, WEIGHTS, prior)

    def value(one):
        return float((WEIGHTS * one.log_densities(rows)).sum()) + one.log_prior(prior)

    best = value(found)
    rng = np.random.default_rng(1)
    for _ in range(60):
        changed = {}
        for name, now in found.params.items():
            step = 1e-3 * rng.normal(size=now.shape)
            if name == "covariances":
                kind = found.kind
                step = step + step.transpose(0, 2, 1)
                if kind == "tied":
                    step[:] = step[0]
                if kind in ("diag", "spherical"):
                    step = step * np.eye(2)
                if kind == "spherical":
                    step = step[:, :1, :1] * np.eye(2)
            new = now + step
            if isinstance(emission, Categorical | Multinomial):
                new = new / new.sum(axis=-1, keepdims=True)
            changed[name] = new
        assert value(replace(found, **changed)) < best


def test_learning_a_t_finds_its_tails():
    rows = (
        1.0 + np.sqrt(2.0) * stdtrit(4.0, (np.arange(4_000) + 0.5) / 4_000)[:, None]
    )  # as even as draws can be
    found = StudentT(np.zeros((1, 1)), np.ones((1, 1, 1)), np.array([30.0]))
    for _ in range(60):
        found = found.learned(rows, np.ones((len(rows), 1)), {})
    assert found.df[0] == pytest.approx(4.0, abs=0.4)
    assert found.scales[0, 0, 0] == pytest.approx(2.0, abs=0.1)
    assert found.means[0, 0] == pytest.approx(1.0, abs=0.05)


def test_free_parameters_are_counted():
    for kind, want in (
        ("full", 2 * 2 + 6),
        ("diag", 2 * 2 + 4),
        ("tied", 2 * 2 + 3),
        ("spherical", 2 * 2 + 2),
    ):
        assert Gaussian(MEANS, FULL, kind).n_free == want
    assert GaussianMixtureComponents(np.full((1, 2), 0.5), MEANS[None], FULL[None]).n_free == 1 + 4 + 6
    assert StudentT(MEANS, FULL, np.ones(2)).n_free == 4 + 6 + 2
    assert Categorical(np.full((2, 3), 1 / 3), (0, 1, 2)).n_free == 4
    assert Poisson(np.ones((2, 3))).n_free == Bernoulli(np.ones((2, 3))).n_free == 6
    assert Multinomial(np.full((2, 3), 1 / 3)).n_free == 4


def test_states_without_weight_keep_their_parameters():
    weights = WEIGHTS * [1.0, 0.0]
    for emission, rows in (
        (Gaussian(MEANS, FULL), ROWS),
        (Gaussian(MEANS, FULL, "diag"), ROWS),
        (StudentT(MEANS, FULL, np.array([5.0, 6.0])), ROWS),
        (Poisson(np.ones((2, 2))), COUNTS),
        (Multinomial(np.full((2, 2), 0.5)), COUNTS),
        (Bernoulli(np.full((2, 2), 0.3)), (ROWS > 0).astype(float)),
    ):
        found = emission.learned(rows, weights, {})
        for name, before in emission.params.items():
            assert (found.params[name][1] == before[1]).all()
            assert (found.params[name][0] != before[0]).any()


def test_symbols_without_an_order_are_named_in_the_sentence():
    for cells, said in (
        (["a", 1, None], "'a' and 1 are both symbols"),
        ([{"a": 1}, {"b": 2}, "c"], "{'a': 1} is neither"),
    ):
        data = read_sequences(np.array(cells, dtype=object))
        with pytest.raises(mk.errors.InvalidArgument, match=said):
            Categorical.symbols_in(data)
    told = mk.HMM(2, symbols=["a", 1], random_state=0)
    assert told.fit(np.array(["a", 1, "a", "a"], dtype=object)).emission_.symbols == ("a", 1)


def test_measurements_taken_for_symbols_are_remarked_on():
    numbers = np.linspace(0.1, 0.9, 12)
    with pytest.warns(UserWarning, match=r"12 of the 12 numbers are different.*emission='gaussian'"):
        mk.MarkovChain().fit(numbers)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mk.MarkovChain().fit([0.5, 1.5] * 6)
        mk.MarkovChain().fit(np.arange(12.0))
