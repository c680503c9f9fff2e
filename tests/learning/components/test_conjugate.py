"""Conjugate families against textbook formulas and SciPy: posteriors, predictive laws, draws, default priors."""

import numpy as np
import pytest
from scipy import stats

from markovia.learning.components.conjugate import NormalFamily, conjugate_family

RNG = np.random.default_rng(11)
ROWS = RNG.normal(size=(9, 3)) * [1.0, 4.0, 0.3] + [2.0, -7.0, 0.5]
LABELS = np.array([1, 0, 1, 1, 2, 0, 1, 0, 2])
SCALE = np.array([[2.0, 0.6, -0.1], [0.6, 9.0, 0.2], [-0.1, 0.2, 0.4]])
CENTRE = np.array([1.5, -5.0, 0.2])
NEW = np.array([[2.5, -3.0, 0.9], [0.0, -11.0, 0.1]])
STRENGTH, DF = 0.6, 5.5


def normal(diagonal):
    scale = np.diag(np.diag(SCALE)) if diagonal else SCALE
    return NormalFamily(CENTRE, STRENGTH, scale, DF, diagonal)


def textbook(rows, diagonal):
    """Mean, strength, scale and degrees of freedom given rows, by their mean and scatter (Gelman and others, 3.6)."""
    n, mean = len(rows), rows.mean(axis=0)
    scatter = (rows - mean).T @ (rows - mean)
    apart = np.outer(mean - CENTRE, mean - CENTRE)
    scale = SCALE + scatter + STRENGTH * n / (STRENGTH + n) * apart
    centre = (STRENGTH * CENTRE + n * mean) / (STRENGTH + n)
    return centre, STRENGTH + n, np.diag(np.diag(scale)) if diagonal else scale, DF + n


def student(law, x, diagonal):
    """The predictive density of new rows."""
    centre, strength, scale, df = law
    if diagonal:  # a law of its own in each column
        width = np.sqrt(np.diag(scale) * (strength + 1.0) / (strength * df))
        return stats.t(df, centre, width).logpdf(x).sum(axis=1)
    own = df - len(centre) + 1.0
    return (
        stats.multivariate_t(centre, scale * (strength + 1.0) / (strength * own), own)
        .logpdf(x)
        .reshape(len(x))
    )


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_normal_posterior_is_the_textbooks_and_predicts_as_a_student_t(diagonal):
    family = normal(diagonal)
    law = family.posterior(ROWS, np.eye(3)[LABELS])
    data = family.seen(ROWS)
    predicted = data.log_predictive(data.statistics(LABELS), NEW)
    none = family.log_normaliser(family.none(ROWS))
    for k in range(3):
        own = ROWS[k == LABELS]
        centre, strength, scale, df = textbook(own, diagonal)
        assert law["mean"][k] == pytest.approx(centre)
        assert law["strength"][k] == pytest.approx(strength)
        assert law["df"][k] == pytest.approx(df)
        assert law["scale"][k] == pytest.approx(np.diag(scale) if diagonal else scale)
        assert predicted[:, k] == pytest.approx(student((centre, strength, scale, df), NEW, diagonal))
        # rows one after the other have the predictive laws of those before
        chain = sum(
            student(textbook(own[:i], diagonal) if i else prior_law(diagonal), own[i : i + 1], diagonal)[0]
            for i in range(len(own))
        )
        assert (family.log_normaliser(law) - none)[k] == pytest.approx(chain)
    assert predicted[:, -1] == pytest.approx(student(prior_law(diagonal), NEW, diagonal))


def prior_law(diagonal):
    return CENTRE, STRENGTH, np.diag(np.diag(SCALE)) if diagonal else SCALE, DF


@pytest.mark.parametrize("diagonal", [False, True])
def test_draws_of_a_normal_have_the_moments_of_its_posterior(diagonal):
    family, rng, n = normal(diagonal), np.random.default_rng(4), 6_000
    weights = np.zeros((9, 1))
    weights[LABELS == 1] = 1.0
    centre, strength, scale, df = textbook(ROWS[LABELS == 1], diagonal)
    draws = [family.drawn(ROWS, weights, rng) for _ in range(n)]
    means = np.array([d["means"][0] for d in draws])
    covariances = np.array([d["covariances"][0] for d in draws])
    expected = scale / (df - 2.0 if diagonal else df - 4.0)
    assert family.means(family.posterior(ROWS, weights))["covariances"][0] == pytest.approx(expected)
    unit = np.sqrt(np.diag(expected))
    assert (abs(means.mean(axis=0) - centre) < 4.0 * unit / np.sqrt(strength * n)).all()
    wide = np.outer(unit, unit)
    assert abs(np.cov(means.T) * strength - expected).max() < 0.15 * wide.max()
    assert (abs(np.cov(means.T) * strength / wide - expected / wide) < 0.12).all()
    assert (abs(covariances.mean(axis=0) / wide - expected / wide) < 0.08).all()


def test_unsaid_priors_follow_the_rows():
    for diagonal, df in ((False, 5.0), (True, 3.0)):
        family = conjugate_family("gaussian", ROWS, diagonal=diagonal, groups=4)
        assert (family.df, family.strength) == (df, 0.01)
        assert family.mean == pytest.approx(ROWS.mean(axis=0))
        # the expected covariance is the data's, divided among four groups in three columns
        expected = family.scale / (df - 2.0 if diagonal else df - 4.0)
        assert expected == pytest.approx(np.diag(ROWS.var(axis=0)) / 4 ** (2 / 3))
    counts = np.array([[1.0, 6.0], [3.0, 0.0], [5.0, 3.0]])
    poisson = conjugate_family("poisson", counts)
    assert poisson.shape / poisson.rate == pytest.approx(counts.mean(axis=0))


def test_counts_and_categories_predict_by_their_ratios_of_gammas():
    counts = np.array([[2.0, 0.0, 5.0], [1.0, 3.0, 0.0], [4.0, 1.0, 1.0]])
    new, labels = np.array([[1.0, 2.0, 0.0]]), np.array([0, 1, 0])
    poisson = conjugate_family("poisson", counts, {"shape": 1.4, "rate": 0.6})
    data = poisson.seen(counts)
    found = data.log_predictive(data.statistics(labels), new)[0] + poisson.base(new)[0]
    for k, own in enumerate((counts[labels == 0], counts[labels == 1], counts[:0])):
        shape, rate = 1.4 + own.sum(axis=0), 0.6 + len(own)
        assert found[k if k < 2 else -1] == pytest.approx(
            stats.nbinom(shape, rate / (rate + 1)).logpmf(new[0]).sum()
        )
    multinomial = conjugate_family("multinomial", counts, {"concentration": 0.8})
    data = multinomial.seen(counts)
    found = data.log_predictive(data.statistics(labels), new)[0] + multinomial.base(new)[0]
    for k, own in enumerate((counts[labels == 0], counts[labels == 1], counts[:0])):
        law = stats.dirichlet_multinomial(0.8 + own.sum(axis=0), 3)
        assert found[k if k < 2 else -1] == pytest.approx(law.logpmf([1, 2, 0]))
