"""Diagnostics: formulas against closed forms and published values, and what a run reports of itself."""

import matplotlib as mpl
import numpy as np
import pytest

import markovia as mk
from chain_checks import loop, marginals
from markovia.engines import Gibbs, MetropolisHastings
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.markov_chains.diagnostics import (
    autocorrelation,
    burn_in_advice,
    diagnose,
    ess,
    geweke,
    inflation_factor,
    mcse,
    rhat,
)

mpl.use("agg")

ARVIZ = {
    "bulk": 68.1286411488462,
    "tail": 60.572007860074,
    "mean": 92.30369626776138,
    "rhat": 1.060751528046835,
    "split": 1.0360034374672291,
    "mcse": 0.07295752836632921,
}


def autoregression(r, chains, draws, seed=0):
    rng = np.random.default_rng(seed)
    x = np.empty((chains, draws))
    x[:, 0] = rng.normal(size=chains) / np.sqrt(1 - r * r)
    for t in range(1, draws):
        x[:, t] = r * x[:, t - 1] + rng.normal(size=chains)
    return x


def test_the_lag_one_inflation_of_the_textbook():
    assert inflation_factor(0.5) == pytest.approx(3.0)
    assert 1000 / inflation_factor(0.5) == pytest.approx(333.33, abs=0.01)
    assert inflation_factor(0.9) == pytest.approx(19.0)
    assert 1000 / inflation_factor(0.9) == pytest.approx(52.63, abs=0.01)
    with pytest.raises(mk.errors.InvalidArgument):
        inflation_factor(1.0)


def test_autocorrelation_agrees_with_its_definition():
    x = np.random.default_rng(1).normal(size=30).cumsum()
    centred = x - x.mean()
    direct = [(centred[: 30 - k] * centred[k:]).sum() / (centred**2).sum() for k in range(6)]
    assert autocorrelation(x, 5) == pytest.approx(direct)
    assert len(autocorrelation(x)) == 30
    assert autocorrelation(np.ones(5), 2).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("r", [-0.4, 0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(r):
    x = autoregression(r, 4, 10_000)
    expected = x.size / inflation_factor(r)
    for kind in ("bulk", "mean"):
        assert ess(x, kind) == pytest.approx(expected, rel=0.15)
    assert mcse(x) == pytest.approx(x.std() / np.sqrt(expected), rel=0.1)
    assert autocorrelation(x, 1)[1] == pytest.approx(r, abs=0.02)


def test_values_agree_with_an_independent_implementation():
    # computed with ArviZ 0.23.4 for this array
    x = np.sin(np.arange(240.0) ** 1.3).reshape(3, 80) + np.array([[0.0], [0.1], [0.3]])
    assert ess(x) == pytest.approx(ARVIZ["bulk"], rel=1e-9)
    assert ess(x, "tail") == pytest.approx(ARVIZ["tail"], rel=1e-9)
    assert ess(x, "mean") == pytest.approx(ARVIZ["mean"], rel=1e-9)
    assert rhat(x) == pytest.approx(ARVIZ["rhat"], rel=1e-9)
    assert rhat(x, ranked=False) == pytest.approx(ARVIZ["split"], rel=1e-9)
    assert mcse(x) == pytest.approx(ARVIZ["mcse"], rel=1e-9)


def test_tail_size_sees_what_the_bulk_does_not():
    x = autoregression(0.0, 4, 2000)
    assert ess(x, "tail") > 4000
    with pytest.raises(mk.errors.InvalidArgument, match="kind="):
        ess(x, "middle")


def test_r_hat_sees_shifts_spreads_and_frozen_chains():
    x = autoregression(0.0, 4, 1000)
    assert rhat(x) < 1.01
    shifted = x + np.array([[0.0], [0.0], [0.0], [2.0]])
    assert rhat(shifted) > 1.1
    wider = x * np.array([[1.0], [1.0], [1.0], [5.0]])
    assert rhat(wider) > 1.05
    assert rhat(wider, ranked=False) < 1.02
    assert rhat(x + np.linspace(0, 3, 1000)) > 1.1  # halves of one chain differ
    assert rhat([[0.0] * 50, [1.0] * 50], ranked=False) == np.inf
    assert rhat(np.ones((3, 50))) == 1.0


def test_geweke_compares_beginning_and_end():
    x = autoregression(0.5, 1, 4000)[0]
    assert abs(geweke(x)) < 3
    assert geweke(x + np.where(np.arange(4000) < 400, 2.0, 0.0)) > 3
    assert geweke(np.zeros(100)) == 0.0
    with pytest.raises(mk.errors.InvalidArgument):
        geweke(x, first=0.7, last=0.5)
    with pytest.raises(mk.errors.InvalidArgument):
        geweke(autoregression(0.5, 2, 100))


def test_geweke_divides_by_the_errors_of_beginning_and_end_together():
    """(mean of the first tenth - mean of the second half) / sqrt(error^2 + error^2); either error alone is far off."""
    rng = np.random.default_rng(4)
    for early, late in ((1.0, 12.0), (6.0, 0.5), (2.0, 4.0)):
        x = rng.normal(size=4000) * np.where(np.arange(4000) < 2000, early, late)
        first, last = x[:400], x[2000:]
        gap = first.mean() - last.mean()
        assert geweke(x) == pytest.approx(gap / np.hypot(mcse(first), mcse(last)))
        # draws are independent, so that errors are deviations over roots
        assert geweke(x) == pytest.approx(gap / np.sqrt(early**2 / 400 + late**2 / 2000), rel=0.2)
    assert geweke(x, first=0.2, last=0.3) == pytest.approx(
        (x[:800].mean() - x[2800:].mean()) / np.hypot(mcse(x[:800]), mcse(x[2800:]))
    )


def test_burn_in_advice_finds_where_the_plateau_begins():
    noise = autoregression(0.0, 3, 2000)
    assert burn_in_advice(noise) < 20
    rise = noise - 40 * np.exp(-np.arange(2000) / 100.0)
    assert 200 < burn_in_advice(rise) < 400


def test_wrong_arrays_are_refused():
    with pytest.raises(mk.errors.InvalidArgument):
        ess(np.zeros((2, 3, 4)))
    with pytest.raises(mk.errors.InvalidArgument):
        rhat([])


def test_a_run_reports_its_quantities():
    found = loop().query("b", engine=Gibbs(draws=1000, seed=1, burn_in=100))
    report = found.info.diagnostics
    assert isinstance(report, mk.results.Diagnostics)
    assert report.quantities == ["log weight", "b=1", "b=2"]
    assert report.traces.shape == (4, 1000, 3)
    assert report.trace("b=1").mean() == pytest.approx(found[1])
    table = report.summary()
    assert list(table.index) == report.quantities
    assert list(table.columns) == ["mean", "sd", "mcse", "ess_bulk", "ess_tail", "r_hat", "lag_1"]
    assert table.loc["b=2", "mean"] == pytest.approx(found[2])
    assert (table["r_hat"] < 1.02).all()
    assert report.acceptance is None
    assert "converged" in str(report)
    assert report.burn_in < 100
    with pytest.raises(mk.errors.InvalidArgument, match="was not traced"):
        report.trace("zebra")


def test_the_log_weight_of_the_trace_is_that_of_the_model():
    for model in (loop(), mk.generators.ising_grid(2, 2, coupling=0.5)):
        graph = flat_graph(model._problem(None))
        logs = graph.log_weights(np.array(list(np.ndindex(*graph.cards))))
        for engine in (Gibbs(draws=50, seed=1), MetropolisHastings(draws=50, seed=1)):
            _, info = marginals(model, engine)
            trace = info.diagnostics.trace("log weight")
            for values in (trace.ravel(), info.diagnostics.warm.ravel()):
                assert (np.abs(values[:, None] - logs[None, :]).min(axis=1) < 1e-9).all()


def test_reported_errors_are_calibrated():
    model = loop()
    exact = model.query("b").values
    z = []
    for seed in range(60):
        found = model.query("b", engine=Gibbs(draws=400, seed=seed))
        z.append(np.abs(found.values - exact).max() / found.info.error)
    assert 0.3 < np.mean(z) < 1.4
    assert np.mean(np.array(z) > 2.5) < 0.1


def test_large_models_store_a_bounded_number_of_traces():
    grid = mk.generators.ising_grid(20, 20, coupling=0.2)
    _, info = marginals(grid, Gibbs(draws=300, seed=1))
    assert len(info.diagnostics.quantities) == 201
    assert info.diagnostics.r_hat < 1.05


def test_chains_that_disagree_are_seen_in_quantities_that_are_not_traced():
    rng = np.random.default_rng(0)
    traces = rng.normal(size=(4, 200, 1))
    means = np.full((4, 20, 300), 0.5) + 0.01 * rng.normal(size=(4, 20, 300))
    fine = diagnose(["log weight"], traces, warm=np.zeros((4, 0)), batch_means=means)
    assert fine.converged
    means[2, :, 123] += 0.45
    apart = diagnose(["log weight"], traces, warm=np.zeros((4, 0)), batch_means=means)
    assert not apart.converged
    assert apart.error > 0.08


def test_advice_says_how_many_draws_would_do():
    model = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[0.95, 0.05], [0.05, 0.95]])])
    with pytest.warns(mk.errors.ConvergenceWarning, match="draws="):
        found = model.query("a", engine=Gibbs(draws=100, seed=3, rao_blackwell=False))
    needed = int(found.info.advice.split("draws=")[1].split()[0].replace(",", ""))
    assert needed > 100
    assert model.query("a", engine=Gibbs(draws=10 * needed, seed=3, rao_blackwell=False)).info.converged


def test_pictures_have_a_line_a_chain():
    report = loop().query("b", engine=Gibbs(draws=5000, seed=1)).info.diagnostics
    ax = report.plot_trace()
    assert len(ax.lines) == 4
    assert ax.get_title() == "log weight"
    assert len(ax.lines[0].get_xdata()) <= 2000
    assert ax.lines[0].get_xdata()[0] < 0  # the burn-in is shown before draw 0
    ax = report.plot_autocorrelation("b=1", max_lag=20)
    assert ax.lines[1].get_ydata()[0] == 1.0
    assert len(ax.lines[1].get_ydata()) == 21
    assert report.plot_trace("b=2", ax=ax) is ax
    mpl.pyplot.close("all")


def test_normal_scores_take_the_middle_rank_of_ties():
    from scipy.special import ndtri
    from scipy.stats import rankdata

    from markovia.inference.markov_chains.diagnostics import _normal_scores

    draws = np.random.default_rng(0).integers(0, 4, (3, 50)).astype(float)
    expected = ndtri((rankdata(draws, axis=None) - 0.375) / (draws.size + 0.25)).reshape(draws.shape)
    assert _normal_scores(draws) == pytest.approx(expected, abs=1e-12)
