"""Masses, bounds and further questions of Gaussian fields and networks, against quadrature and linear algebra."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad

import markovia as mk


def field():
    return mk.GaussianMarkovNetwork([[4.0, 1.0], [1.0, 3.0]], information=[1.0, 2.0], names=["x", "y"])


def weight(x, y):
    return np.exp(x + 2 * y - 0.5 * (4 * x * x + 2 * x * y + 3 * y * y))


@pytest.mark.parametrize("engine", ["auto", "gaussian"])
def test_the_log_partition_function_of_a_field_is_the_log_of_its_integral(engine):
    assert field().log_partition(engine=engine) == pytest.approx(1.320748, abs=1e-6)


@pytest.mark.parametrize(("name", "value"), [("x", -0.6), ("y", 0.3)])
def test_with_a_finding_it_is_the_mass_of_the_density_cut_there(name, value):
    cut = (lambda t: weight(value, t)) if name == "x" else (lambda t: weight(t, value))
    mass = np.log(quad(cut, -12, 12)[0])
    m = field()
    assert m.log_partition({name: value}) == pytest.approx(mass, abs=1e-9)
    assert m.log_evidence({name: value}) == pytest.approx(mass - m.log_partition(), abs=1e-12)


def test_all_findings_leave_the_weight_of_one_point():
    assert field().log_partition({"y": 0.3, "x": -0.6}) == pytest.approx(np.log(weight(-0.6, 0.3)), abs=1e-12)


def test_an_exact_mass_is_both_its_bounds():
    found = field().log_partition({"y": 0.3}, bounds=True)
    assert found.lower == found.upper == found.estimate == field().log_partition({"y": 0.3})
    assert found.exact
    assert found.lower_engine == found.upper_engine == "gaussian"


def test_intervals_are_no_exact_mass_and_have_no_bounds():
    with pytest.raises(mk.errors.Unanswered, match="without bounds on both sides"):
        field().log_partition({"y": mk.Interval(0.0, 1.0), "x": mk.Interval(-1.0, 2.0)}, bounds=True)


def test_the_best_values_of_a_field_know_their_weight_before_and_after_dividing():
    m = field()
    best = m.map()
    assert best.log_weight == pytest.approx(np.log(weight(best["x"], best["y"])), abs=1e-12)
    assert best.log_prob == pytest.approx(best.log_weight - m.log_partition(), abs=1e-12)


def test_a_field_that_is_fitted_anew_forgets_its_old_integral():
    m = field()
    before = m.log_partition()
    m.fit(pd.DataFrame(np.random.default_rng(0).normal([3.0, -1.0], [0.5, 2.0], (40, 2)), columns=["x", "y"]))
    k, h = m.precision.toarray(), m.information_vector
    after = 0.5 * h @ np.linalg.solve(k, h) + np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(k)[1]
    assert m.log_partition() == pytest.approx(after, abs=1e-9) != before


def test_a_network_of_conditionals_has_the_log_evidence_as_its_mass():
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian(1.0, {}, 4.0))
    m.add("y", mk.LinearGaussian(0.3, {"x": 2.0}, 1.44))
    assert m.log_partition() == pytest.approx(0.0, abs=1e-12)
    assert m.log_partition({"y": 1.0}) == m.log_evidence({"y": 1.0})
    assert m.log_partition({"y": 1.0}, bounds=True).gap == 0.0


def test_rows_of_a_gaussian_network_go_to_the_engine_that_was_named():
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian(1.0, {}, 4.0))
    m.add("y", mk.LinearGaussian(0.3, {"x": 2.0}, 1.44))
    rows = pd.DataFrame({"y": [0.5, np.nan, -2.0]}, index=[7, 3, 5])
    for ask in (
        lambda e: m.predict(rows, "x", engine=e),
        lambda e: m.predict_proba(rows, "x", engine=e),
        lambda e: m.log_prob(rows, engine=e),
        lambda e: m.marginals(given=rows, engine=e),
        lambda e: m.conflict({"y": 0.5}, engine=e),
    ):
        with pytest.raises(mk.errors.UnsupportedModel, match="use engine='gaussian'"):
            ask("junction-tree")
    closed = m.predict(rows, "x", engine="conjugate")
    assert closed.index.tolist() == [7, 3, 5]
    np.testing.assert_allclose(closed, m.predict(rows, "x"), rtol=1e-6)
    np.testing.assert_allclose(m.log_prob(rows, engine="conjugate"), m.log_prob(rows), atol=1e-6)


def test_two_exact_engines_agree_about_numbers_and_a_wrong_one_is_seen():
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian(1.0, {}, 4.0))
    m.add("y", mk.LinearGaussian(0.3, {"x": 2.0}, 1.44))
    found = m.verify("x", given={"y": 2.0}, tolerance=1e-6)
    assert found.agree
    assert set(found.engines) == {"gaussian", "conjugate"}

    class Shifted(mk.engines.Gaussian):
        def joint(self, problem, targets):
            return super().joint(problem.with_findings({}), targets)

    apart = m.verify("x", given={"y": 2.0}, engines=["gaussian", Shifted()])
    assert not apart.agree
    exact = m.query("x", given={"y": 2.0})
    assert apart.difference == pytest.approx(
        max(abs(exact.mean() - 1.0), abs(exact.sd() - 2.0)) / exact.sd(), rel=1e-9
    )


# -- missing numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [float("nan"), np.float64("nan"), pd.NA])
def test_a_missing_number_as_evidence_is_refused_and_none_says_nothing(missing):
    m = field()
    with pytest.raises(mk.errors.InvalidEvidence, match=r"'y' is missing .*leave it out"):
        m.query("x", {"y": missing})
    for verb in (m.marginals, m.map, m.log_evidence, m.log_partition):
        with pytest.raises(mk.errors.InvalidEvidence, match="'y' is missing"):
            verb({"y": missing})
    assert m.query("x", {"y": None}).mean() == m.query("x").mean()
    assert m.query("x", {"y": missing}, missing="impute").mean() == m.query("x").mean()


@pytest.mark.parametrize("prior", [0.0, 2.0, mk.priors.Wishart()])
def test_a_field_is_not_fitted_to_a_column_without_cells(prior):
    rows = pd.DataFrame({"x": [0.3, 1.0, -0.4, 2.2], "y": [np.nan] * 4})
    with pytest.raises(mk.errors.InvalidArgument, match="all 4 rows miss 'y'"):
        field().fit(rows, prior=prior)
    rows["y"] = [1.0, np.nan, 0.2, -0.5]
    with pytest.raises(mk.errors.InvalidArgument, match="1 of 4 rows miss 'y'"):
        field().fit(rows, prior=prior)
