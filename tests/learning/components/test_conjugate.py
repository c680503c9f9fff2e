"""Conjugate components against Bayes' theorem, quadrature and SciPy: posteriors, evidence, predictions, draws, priors."""

import numpy as np
import pytest
from scipy import stats

from markovia.errors import UnsupportedModel
from markovia.learning.components.columns import CategoricalColumns
from markovia.learning.components.conjugate_priors import blank_component, conjugate_component
from markovia.learning.components.discrete import Bernoulli, Categorical, Multinomial, Poisson
from markovia.learning.components.gaussian import Gaussian, StudentT
from markovia.learning.components.tied import Tied

RNG = np.random.default_rng(11)
ROWS = RNG.normal(size=(9, 3)) * [1.0, 4.0, 0.3] + [2.0, -7.0, 0.5]
WEIGHTS = RNG.random((9, 2)) * (RNG.random((9, 2)) < 0.8)
SCALE = np.array([[2.0, 0.6, -0.1], [0.6, 9.0, 0.2], [-0.1, 0.2, 0.4]])
PRIOR = {"mean": np.array([1.5, -5.0, 0.2]), "strength": 0.6, "scale": SCALE, "df": 5.5}
KINDS = ("full", "diag", "spherical", "tied")


def normal(kind, d=3, k=1):
    return Gaussian(np.zeros((k, d)), np.tile(np.eye(d), (k, 1, 1)), kind)


def counting():
    """Components, rows and priors of the families that count, with weights of rows in two components."""
    codes = np.array([[0, 1], [2, 0], [1, 1], [0, 0], [2, 1]])
    counts, rng = (
        np.array([[2.0, 0.0], [1.0, 3.0], [4.0, 1.0], [0.0, 6.0], [1.0, 1.0]]),
        np.random.default_rng(0),
    )
    return {
        "bernoulli": (Bernoulli(np.full((1, 2), 0.5)), 1.0 * (counts > 1.0), {"a": 0.7, "b": [1.2, 2.0]}),
        "poisson": (Poisson(np.ones((1, 2))), counts, {"shape": 1.4, "rate": [0.6, 2.0]}),
        "multinomial": (Multinomial(np.full((1, 2), 0.5)), counts, {"concentration": np.array([0.8, 1.5])}),
        "categorical": (Categorical(np.full((1, 3), 1 / 3), (0, 1, 2)), codes[:, :1], {"concentration": 0.8}),
        "columns": (
            CategoricalColumns((np.full((1, 3), 1 / 3), np.full((1, 2), 0.5)), ((0, 1, 2), (0, 1))),
            codes,
            {"concentration": np.array([0.8, 1.0, 0.5, 2.0, 0.3])},
        ),
    }, rng.random((5, 2))


def every_component():
    families, weights = counting()
    found = {name: (*given, weights) for name, given in families.items()}
    return found | {kind: (normal(kind), ROWS, PRIOR, WEIGHTS) for kind in KINDS}


def log_law(component, law, at):
    """The log density of a normal law at means and covariances, in the coordinates that may vary."""
    total = 0.0
    for k, (mean, covariance) in enumerate(zip(at.means, at.covariances, strict=True)):
        scale, df = law["scale"][k], law["df"][k]
        total += stats.multivariate_normal(law["mean"][k], covariance / law["strength"][k]).logpdf(mean)
        if component.kind in ("diag", "spherical"):
            variances = np.diag(covariance)[: len(scale)]
            total += stats.invgamma(df / 2.0, scale=scale / 2.0).logpdf(variances).sum()
        elif component.kind == "full" or k == 0:
            total += stats.invwishart(df, scale).logpdf(covariance)
    return total


def parameters(kind, rng):
    """Means and covariances that a kind allows."""
    roots = rng.normal(size=(2, 3, 3)) + 2.0 * np.eye(3)
    covariances = roots @ roots.swapaxes(1, 2)
    if kind == "tied":
        covariances[1] = covariances[0]
    elif kind != "full":
        variances = rng.gamma(2.0, size=(2, 3 if kind == "diag" else 1))
        covariances = variances[:, :, None] * np.eye(3)
    return Gaussian(rng.normal(size=(2, 3)) * 3.0, covariances, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_prior_times_likelihood_is_evidence_times_posterior_wherever_it_is_looked_at(kind):
    component = normal(kind)
    before, after = component.prior_law(PRIOR, 2), component.posterior(ROWS, WEIGHTS, PRIOR)
    evidence, rng = component.log_marginal(after, PRIOR).sum(), np.random.default_rng(3)
    for _ in range(5):
        at = parameters(kind, rng)
        logs = [
            stats.multivariate_normal(m, c).logpdf(ROWS)
            for m, c in zip(at.means, at.covariances, strict=True)
        ]
        joint = log_law(component, before, at) + (WEIGHTS * np.transpose(logs)).sum()
        assert joint - log_law(component, after, at) == pytest.approx(evidence, abs=1e-9)


def test_evidence_and_means_of_a_normal_are_those_of_quadrature():
    rows, weights = ROWS[:4, :1], np.array([[1.0], [0.5], [1.0], [2.0]])
    prior = {"mean": np.array([1.0]), "strength": 0.6, "scale": np.array([[1.5]]), "df": 4.5}
    means, log_variances = np.linspace(-12.0, 15.0, 1201), np.linspace(-6.0, 8.0, 561)
    m, v = np.meshgrid(means, np.exp(log_variances), indexing="ij")
    logs = (
        stats.norm(1.0, np.sqrt(v / 0.6)).logpdf(m)
        + stats.invgamma(4.5 / 2, scale=0.75).logpdf(v)
        + np.log(v)
    )
    for row, weight in zip(rows[:, 0], weights[:, 0], strict=True):
        logs += weight * stats.norm(m, np.sqrt(v)).logpdf(row)
    mass = np.exp(logs) * (means[1] - means[0]) * (log_variances[1] - log_variances[0])
    for kind in KINDS:  # which are the same where there is one column, and one component
        component = normal(kind, 1)
        law = component.posterior(rows, weights, prior)
        assert component.log_marginal(law, prior) == pytest.approx(np.log(mass.sum()), abs=1e-6)
        mean = component.expected(law)
        assert mean.means[0, 0] == pytest.approx((mass * m).sum() / mass.sum(), abs=1e-6)
        assert mean.covariances[0, 0, 0] == pytest.approx((mass * v).sum() / mass.sum(), rel=1e-3)


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "categorical", "multinomial"])
def test_evidence_means_and_expected_logs_of_counts_are_those_of_quadrature(name):
    x, weights = np.array([1.0, 0.0, 1.0, 1.0]), np.array([1.0, 0.5, 2.0, 0.25])
    beta, line = (
        stats.beta(1.7, 2.2),
        np.linspace(-40.0, 40.0, 2001)[:, None],
    )  # trapezia on an unbounded scale
    p = np.exp(line) if name == "poisson" else 1.0 / (1.0 + np.exp(-line))
    component, rows, prior, law, logs = {
        "bernoulli": (Bernoulli(), x[:, None], {"a": 1.7, "b": 2.2}, beta, stats.bernoulli.logpmf(x, p)),
        "poisson": (
            Poisson(), x[:, None] + 2.0, {"shape": 2.4, "rate": 0.6}, stats.gamma(2.4, scale=1 / 0.6),
            stats.poisson.logpmf(x + 2.0, p),
        ),
        "categorical": (
            Categorical(np.full((1, 2), 0.5), (0, 1)), x[:, None], {"concentration": [2.2, 1.7]}, beta,
            stats.bernoulli.logpmf(x, p),
        ),
        "multinomial": (
            Multinomial(), np.column_stack([x, 3.0 - x]), {"concentration": [1.7, 2.2]}, beta,
            stats.binom.logpmf(x, 3, p),
        ),
    }[name]  # fmt: skip
    slope = p[:, 0] * (1.0 if name == "poisson" else 1.0 - p[:, 0])
    mass = law.pdf(p[:, 0]) * slope * np.exp(logs @ weights) * (line[1, 0] - line[0, 0])
    posterior = component.posterior(rows, weights[:, None], prior)
    base = weights @ np.broadcast_to(component.base(rows), 4)
    assert component.log_marginal(posterior, prior)[0] + base == pytest.approx(np.log(mass.sum()))
    share = mass / mass.sum()
    mean = next(iter(component.expected(posterior).params.values()))
    assert mean[0, 1 if name == "categorical" else 0] == pytest.approx(share @ p[:, 0])
    assert component.expected_logs(posterior, rows)[:, 0] == pytest.approx(share @ np.maximum(logs, -1e3))


@pytest.mark.parametrize("name", every_component())
def test_expected_logs_are_how_the_evidence_grows_with_the_weight_of_a_row(name):
    component, rows, prior, weights = every_component()[name]

    def evidence(more):
        return component.log_marginal(component.posterior(rows, weights + more, prior), prior).sum()

    found = component.expected_logs(component.posterior(rows, weights, prior), rows)
    base = np.broadcast_to(component.base(rows), len(rows))
    for i, k in ((0, 0), (3, 1), (4, 0)):
        bit = np.zeros_like(weights)
        bit[i, k] = 1e-5
        assert found[i, k] - base[i] == pytest.approx((evidence(bit) - evidence(-bit)) / 2e-5, abs=1e-5)


@pytest.mark.parametrize("name", [n for n in every_component() if n not in ("spherical", "tied")])
def test_compiled_samplers_predict_as_the_evidence_with_one_row_more_says(name):
    component, rows, prior, _ = every_component()[name]
    labels = np.arange(len(rows)) % 2
    weights = np.column_stack([np.eye(2)[labels], np.zeros(len(rows))])

    def evidence(shares):
        return component.log_marginal(component.posterior(rows, shares, prior), prior)

    data = component.collapsed(rows, prior)
    for i in (0, 1, 4):
        more = weights + (np.arange(len(rows)) == i)[:, None]
        found = data.log_predictive(data.statistics(labels))[i]
        assert found == pytest.approx(evidence(more) - evidence(weights))
    assert data.log_marginal(labels) == pytest.approx(evidence(weights).sum())


def test_next_rows_are_student_t_negative_binomial_and_dirichlet_multinomial():
    labels = np.arange(9) % 2
    for kind, lost in (("full", 2), ("diag", 0)):
        component = normal(kind)
        data = component.collapsed(ROWS, PRIOR)
        law = component.posterior(ROWS, np.eye(2)[labels], PRIOR)
        mean, strength, scale, df = (law[name][0] for name in ("mean", "strength", "scale", "df"))
        spread = scale * (strength + 1.0) / (strength * (df - lost))
        if kind == "full":
            want = stats.multivariate_t(mean, spread, df - lost).logpdf(ROWS)
        else:  # a law of its own in each column
            want = stats.t(df, mean, np.sqrt(spread)).logpdf(ROWS).sum(axis=1)
        assert data.log_predictive(data.statistics(labels))[:, 0] == pytest.approx(want)
    counts, labels = np.array([[2.0, 0.0, 5.0], [1.0, 3.0, 0.0], [4.0, 1.0, 1.0]]), np.array([0, 1, 0])
    for component, prior in (
        (Poisson(), {"shape": 1.4, "rate": 0.6}),
        (Multinomial(), {"concentration": 0.8}),
    ):
        data = component.collapsed(counts, prior)
        found = data.log_predictive(data.statistics(labels)) + component.base(counts)[:, None]
        for k, own in enumerate((counts[labels == 0], counts[labels == 1], counts[:0])):
            for row, log in zip(counts, found[:, k], strict=True):
                shape, rate = 1.4 + own.sum(axis=0), 0.6 + len(own)
                if "rate" in prior:
                    want = stats.nbinom(shape, rate / (rate + 1.0)).logpmf(row).sum()
                else:
                    want = stats.dirichlet_multinomial(0.8 + own.sum(axis=0), int(row.sum())).logpmf(
                        row.astype(int)
                    )
                assert log == pytest.approx(want)


def laws(kind, law):
    """SciPy's marginal laws of the second column's mean and variance."""
    scale, df, strength = law["scale"][0], law["df"][0], law["strength"][0]
    variance, own = (scale[1, 1], df - 2.0) if scale.ndim == 2 else (scale[min(1, len(scale) - 1)], df)
    spread = np.sqrt(variance / (strength * own))
    return stats.t(own, law["mean"][0, 1], spread).cdf, stats.invgamma(own / 2.0, scale=variance / 2.0).cdf


@pytest.mark.parametrize("kind", KINDS)
def test_draws_of_a_normal_have_its_marginal_laws_and_mean_covariance(kind):
    component, rng, n = normal(kind), np.random.default_rng(4), 1_500
    one = WEIGHTS[:, :1]
    law = component.posterior(ROWS, one, PRIOR)
    if kind == "tied":  # components share a covariance, so that each draw is made by itself
        draws = [component.redrawn(ROWS, one, PRIOR, rng) for _ in range(n)]
        means, covariances = (np.array([getattr(d, name)[0] for d in draws]) for name in component.names)
    else:
        drawn = component.redrawn(ROWS, np.repeat(one, n, axis=1), PRIOR, rng)
        means, covariances = drawn.means, drawn.covariances
    mean_law, variance_law = laws(kind, law)
    assert stats.kstest(means[:, 1], mean_law).pvalue > 0.001
    assert stats.kstest(covariances[:, 1, 1], variance_law).pvalue > 0.001
    expected = component.expected(law).covariances[0]
    error = covariances.std(axis=0) / np.sqrt(n)
    assert (abs(covariances.mean(axis=0) - expected) <= 4.5 * error).all()
    # given a covariance, the mean is normal around the law's with that covariance over its strength
    white = np.linalg.solve(np.linalg.cholesky(covariances), (means - law["mean"][0])[:, :, None])[:, :, 0]
    assert stats.kstest(white.ravel() * np.sqrt(law["strength"][0]), stats.norm.cdf).pvalue > 0.001
    two = component.redrawn(ROWS, WEIGHTS, PRIOR, rng).covariances
    assert (kind == "tied") == np.array_equal(two[0], two[1])


@pytest.mark.parametrize("name", counting()[0])
def test_draws_of_counts_have_the_marginal_laws_of_their_posteriors(name):
    component, rows, prior, weights = every_component()[name]
    law = component.posterior(rows, weights[:, :1], prior)
    drawn = component.redrawn(rows, np.repeat(weights[:, :1], 2_000, axis=1), prior, np.random.default_rng(2))
    values = next(iter(drawn.arrays.values()))
    sums = rows.T @ weights[:, 0]
    if name == "bernoulli":
        each = [
            stats.beta(a + s, b + weights[:, 0].sum() - s)
            for a, b, s in zip((0.7, 0.7), (1.2, 2.0), sums, strict=True)
        ]
    elif name == "poisson":
        each = [
            stats.gamma(1.4 + s, scale=1 / (r + weights[:, 0].sum()))
            for r, s in zip((0.6, 2.0), sums, strict=True)
        ]
    else:
        counts = np.hstack(
            [sums]
            if name == "multinomial"
            else [weights[:, 0] @ (rows[:, [j]] == np.arange(3 - j)) for j in range(rows.shape[1])]
        )
        after, ends = counts + prior["concentration"], [3, 5] if name == "columns" else [len(counts)]
        each = [stats.beta(own, part.sum() - own) for part in np.split(after, ends[:-1]) for own in part]
        assert law["concentration"][0] == pytest.approx(after)
    for column, one in zip(values.T, each, strict=True):
        assert stats.kstest(column, one.cdf).pvalue > 0.001
    assert next(iter(component.expected(law).arrays.values()))[0] == pytest.approx(
        [one.mean() for one in each]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_other_units_change_draws_by_the_unit_alone(kind):
    units = np.full(3, 1e-9) if kind == "spherical" else np.array([1e-9, 1.0, 1e9])
    rows = np.column_stack([ROWS[:, :2], np.full(9, 0.1)])  # a column that is the same in all rows
    for shape in (WEIGHTS, WEIGHTS[:1]):  # and only one row
        drawn = []
        for unit in (1.0, units):
            seen, component = rows[: len(shape)] * unit, normal(kind)
            prior = component.whole_prior(seen, shape + 0.1, {})
            drawn.append(component.redrawn(seen, shape, prior, np.random.default_rng(5)))
            assert np.isfinite(drawn[-1].log_densities(seen)).all()
        assert drawn[1].means / units == pytest.approx(drawn[0].means, rel=1e-6)
        assert drawn[1].covariances / np.outer(units, units) == pytest.approx(drawn[0].covariances, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_numbers_of_rows_and_narrow_components_far_away_keep_their_digits(kind):
    component, times = (
        normal(kind),
        np.array([[2, 0], [1, 3], [0, 1], [4, 0], [1, 1], [0, 2], [3, 0], [1, 1], [0, 1]]),
    )
    again = np.vstack([np.repeat(ROWS, t, axis=0) for t in times.T])
    belongs = np.repeat(np.eye(2), times.sum(axis=0), axis=0)
    law, want = component.posterior(ROWS, 1.0 * times, PRIOR), component.posterior(again, belongs, PRIOR)
    for name in law:
        assert law[name] == pytest.approx(want[name])
    # two groups a million widths apart, and one of them as far from the prior's mean
    steps = np.arange(-2.0, 3.0)[:, None] * 2.0**-10 * np.array([1.0, -1.0, 2.0])
    rows, groups = np.vstack([steps, steps + 2.0**10]), np.repeat(np.eye(2), 5, axis=0)
    prior = {"mean": np.zeros(3), "strength": 1e-20, "scale": 1e-20 * np.eye(3), "df": 5.0}
    squares = steps.T @ steps
    own = {"full": squares, "tied": 2.0 * squares, "diag": np.diag(squares), "spherical": [np.trace(squares)]}
    for scale in component.posterior(rows, groups, prior)["scale"]:
        assert scale == pytest.approx(np.array(own[kind]), rel=1e-8)


@pytest.mark.parametrize(("kind", "shape"), [("diag", 3), ("spherical", 1)])
def test_a_prior_of_whole_covariances_is_that_of_the_variances_that_may_vary(kind, shape):
    said = {"mean": 0.0, "strength": 1.0, "scale": SCALE, "df": 6.0}
    component, rng = normal(kind), np.random.default_rng(1)
    law = component.prior_law(component.whole_prior(ROWS, np.ones((9, 1)), said), 1)
    ratios = []
    for _ in range(4):
        variances = rng.gamma(2.0, size=shape)
        whole = stats.invwishart(6.0, SCALE).logpdf(np.diag(np.broadcast_to(variances, 3)))
        ratios.append(
            whole - stats.invgamma(law["df"][0] / 2, scale=law["scale"][0] / 2).logpdf(variances).sum()
        )
    assert ratios == pytest.approx(np.full(4, ratios[0]))


def test_unsaid_priors_follow_the_rows():
    for diagonal, df in ((False, 5.0), (True, 3.0)):
        _, prior = conjugate_component("gaussian", ROWS, diagonal=diagonal, groups=4)
        assert (prior["df"], prior["strength"]) == (df, 0.01)
        assert prior["mean"] == pytest.approx(ROWS.mean(axis=0))
        # the expected covariance is the data's, divided among four groups in three columns
        expected = prior["scale"] / (df - 2.0 if diagonal else df - 4.0)
        assert expected == pytest.approx(np.diag(ROWS.var(axis=0)) / 4 ** (2 / 3))
    counts = np.array([[1.0, 6.0], [3.0, 0.0], [5.0, 3.0]])
    _, prior = conjugate_component("poisson", counts)
    assert prior["shape"] / prior["rate"] == pytest.approx(counts.mean(axis=0))
    weights = np.array([[1.0, 1.0], [0.0, 0.0], [2.0, 0.0]])  # of rows in two components
    rate = Poisson().whole_prior(counts, weights, {})["rate"]
    assert 1.0 / rate == pytest.approx((2.0 * counts[0] + 2.0 * counts[2]) / 4.0)
    whole = normal("full").whole_prior(ROWS[:3], weights, {"strength": 2.0})
    middle = (ROWS[0] + ROWS[2]) / 2.0
    assert (whole["strength"], whole["df"]) == (2.0, 5.0)
    assert whole["mean"] == pytest.approx(middle)
    assert np.diag(whole["scale"]) == pytest.approx((ROWS[0] - middle) ** 2 / 2 ** (2 / 3))


def test_no_draw_forbids_a_row():
    far = {"bernoulli": {"a": 1e-5, "b": 1e-5}, "poisson": {"shape": 1e-5, "rate": 1.0}}
    for name in ("bernoulli", "poisson", "multinomial", "categorical"):
        component = blank_component(name, 2, levels=(2, 2))
        law = component.prior_law(
            far.get(name, {"concentration": np.full(4 if name == "categorical" else 2, 1e-5)}), 50
        )
        rows = np.array([[0, 1], [1, 0]])
        assert np.isfinite(component.drawn(law, np.random.default_rng(0)).log_densities(rows)).all()


def test_a_family_without_a_conjugate_law_is_refused_by_name():
    other = StudentT(np.zeros((1, 1)), np.ones((1, 1, 1)), np.ones(1))
    with pytest.raises(UnsupportedModel, match="not for StudentT"):
        other.whole_prior(np.zeros((2, 1)), np.ones((2, 1)), {})


def test_states_that_share_an_emission_are_drawn_by_the_rows_of_all_of_them():
    prior = {"mean": np.zeros(1), "strength": 1.0, "scale": np.eye(1), "df": 3.0}
    tied, rows = Tied(normal("full", 1, 2), np.array([0, 1, 0]), np.arange(3)), ROWS[:, :1]
    belongs = np.eye(3)[np.arange(9) % 3]
    shared = tied.inner.redrawn(rows, np.eye(2)[np.arange(9) % 3 % 2], prior, np.random.default_rng(0))
    drawn = tied.redrawn(rows, belongs, prior, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn.inner.means, shared.means)
    whole, want = tied.whole_prior(rows, belongs, {}), tied.inner.whole_prior(rows, np.ones((9, 2)), {})
    assert whole["scale"] == pytest.approx(want["scale"])
