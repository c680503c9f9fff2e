"""Posteriors made of draws: numbers, diagnostics as ArviZ has them, weights, discrete variables, scores, pictures."""

import warnings

import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.factors.tables.variable import Variable
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
from markovia.inference.densities.draws.predictive_scores import compare
from markovia.inference.densities.program.draw_stats import DrawStats
from markovia.inference.densities.program.state_draws import PlatedPosterior, StateDraws
from markovia.inference.result import Info

RNG = np.random.default_rng(3)
WALK = np.zeros((4, 500))
for t in range(1, 500):
    WALK[:, t] = 0.8 * WALK[:, t - 1] + RNG.normal(size=4)
THETA = RNG.gamma(2.0, size=(4, 500, 2, 3))
STATS = DrawStats(
    RNG.normal(size=(4, 500)), diverging=RNG.random((4, 500)) < 0.01, energy=RNG.normal(size=(4, 500))
)


def made(names=("mu",), **options):
    return DrawnPosterior(
        names, {"mu": WALK, "theta": THETA}, Info("nuts", exact=False), stats=STATS, **options
    )


def az():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz
    return arviz


def test_means_spreads_and_intervals_are_those_of_the_draws():
    post = made(["theta"])
    assert post.mean().shape == (2, 3)
    assert np.allclose(post.mean("theta"), THETA.mean(axis=(0, 1)))
    assert np.allclose(post.sd(), THETA.reshape(-1, 2, 3).std(axis=0, ddof=1))
    low, high = post.interval(0.5)
    assert np.allclose([low, high], np.quantile(THETA.reshape(-1, 2, 3), [0.25, 0.75], axis=0))
    assert isinstance(made().mean(), float)
    assert made().interval("mu", 0.8) == made().interval(0.8)
    assert made().quantile(0.5) == pytest.approx(np.median(WALK))


def test_the_summary_has_the_numbers_of_arviz():
    found = made(["mu", "theta"]).summary()
    assert found.index.tolist()[:3] == ["mu", "theta[0,0]", "theta[0,1]"]
    data = az().from_dict(posterior={"mu": WALK, "theta": THETA})
    for name, label, at in (("mu", "mu", ()), ("theta", "theta[1,2]", (1, 2))):
        row = found.loc[label]
        exact = {
            "mean": data.posterior[name].values[(..., *at)].mean(),
            "mcse": float(az().mcse(data)[name].values[at]),
            "ess_bulk": float(az().ess(data)[name].values[at]),
            "ess_tail": float(az().ess(data, method="tail")[name].values[at]),
            "r_hat": float(az().rhat(data)[name].values[at]),
        }
        for column, value in exact.items():
            assert row[column] == pytest.approx(value, rel=1e-6), (label, column)
    assert found.loc["mu", "ess_bulk"] < 600


def test_it_prints_what_was_asked_for_and_keeps_every_draw():
    post = made()
    assert str(post).splitlines()[1].startswith("mu ")
    assert "theta" not in str(post)
    assert "4 x 500 draws; nuts, approximate" in repr(post)
    assert "<table>" in post._repr_html_()
    assert set(post.draws) == {"mu", "theta"}
    assert "more; see summary()" in str(DrawnPosterior(["x"], {"x": np.ones((1, 9, 50))}, Info("nuts")))


def test_draws_go_to_pandas_and_arviz():
    post = made(["theta"])
    frame = post.to_pandas()
    assert frame.shape == (2000, 6)
    assert frame.loc[(2, 17), "theta[1,0]"] == THETA[2, 17, 1, 0]
    data = post.to_arviz()
    assert np.array_equal(data.posterior["mu"].values, WALK)
    assert np.array_equal(data.sample_stats["diverging"].values, STATS.diverging)


def test_sampling_without_repetition_and_with_a_seed():
    post = made()
    rows = post.sample(2000, seed=1)
    assert np.array_equal(np.sort(rows["mu"]), np.sort(WALK.ravel()))
    place = int(np.flatnonzero(WALK.ravel() == rows["mu"][5])[0])
    assert np.array_equal(rows["theta"][5], THETA.reshape(-1, 2, 3)[place])  # of the same draw
    assert np.array_equal(post.sample(10, seed=2)["mu"], post.sample(10, seed=2)["mu"])
    assert len(post.sample(5000, seed=0)["mu"]) == 5000


def test_weights_count_in_numbers_and_draws():
    x = np.linspace(-3, 3, 4001).reshape(1, -1)
    logs = -0.5 * ((x - 1.0) / 0.5) ** 2  # uniform draws weighed to N(1, 0.25)
    post = DrawnPosterior(["x"], {"x": x}, Info("importance"), log_weights=logs)
    assert post.mean() == pytest.approx(1.0, abs=1e-3)
    assert post.sd() == pytest.approx(0.5, abs=1e-3)
    assert post.interval(0.9)[1] == pytest.approx(1.0 + 1.6449 * 0.5, abs=0.01)
    assert post.draws["x"].mean() == pytest.approx(1.0, abs=0.01)
    assert post.sample(4000, seed=0)["x"].std() == pytest.approx(0.5, abs=0.03)
    row = post.summary().loc["x"]
    assert row["ess_bulk"] == pytest.approx(np.exp(logs).sum() ** 2 / np.exp(2 * logs).sum())
    assert post["x"].mean() == post.mean()


def test_log_prob_estimates_the_density():
    draws = np.random.default_rng(0).normal(2.0, 1.0, size=(4, 4000))
    post = DrawnPosterior(["x"], {"x": draws}, Info("nuts"))
    assert post.log_prob(2.0) == pytest.approx(-0.919, abs=0.05)
    assert post.log_prob([1.0, 2.0, 3.0]).shape == (3,)
    both = DrawnPosterior(["x", "y"], {"x": draws, "y": -draws + np.roll(draws, 7)}, Info("nuts"))
    assert np.isfinite(both.log_prob({"x": 2.0, "y": 0.0}))
    with pytest.raises(mk.errors.InvalidArgument, match="no value for 'y'"):
        both.log_prob({"x": 2.0})


def discrete(states, plates=()):
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(len(states)), size=(2, 300, *plates))
    codes = (p.cumsum(axis=-1) < rng.random((2, 300, *plates, 1))).sum(axis=-1)
    return StateDraws(Variable("z", states), p, codes)


def test_a_discrete_latent_variable_has_its_table():
    z = discrete(["red", "blue", "green"])
    post = DrawnPosterior(["z"], {"z": z, "mu": np.ones((2, 300))}, Info("nuts"))
    found = post["z"]
    assert isinstance(found, mk.results.Posterior)
    assert np.allclose(found.values, z.probabilities.mean(axis=(0, 1)))
    assert post.draws["z"].shape == (2, 300)
    assert list(post.summary().index) == ["z=red", "z=blue", "z=green"]
    with pytest.raises(mk.errors.InvalidArgument, match="no numbers"):
        post.mean()
    numbers = DrawnPosterior(["z"], {"z": discrete([0, 10])}, Info("nuts"))
    assert 3 < numbers.mean() < 7


def test_a_discrete_variable_on_a_plate_has_a_row_an_element():
    z = discrete(["a", "b"], (4,))
    found = DrawnPosterior(["z"], {"z": z}, Info("nuts"))["z"]
    assert isinstance(found, PlatedPosterior)
    assert np.allclose(np.asarray(found), z.probabilities.mean(axis=(0, 1)))
    assert found[2]["b"] == pytest.approx(z.probabilities[:, :, 2, 1].mean())
    assert found.argmax().shape == (4,)
    assert str(found).splitlines()[0].split() == ["element", "a", "b"]


def test_a_name_that_is_not_there_is_answered_with_the_nearest():
    with pytest.raises(mk.errors.InvalidArgument, match=r"'thta'.*'theta'"):
        made().mean("thta")
    with pytest.raises(mk.errors.InvalidArgument, match="say of which"):
        made(["mu", "theta"]).mean()
    with pytest.raises(mk.errors.InvalidArgument, match="prob="):
        made().interval("mu", 1.5)


def gaussian_likelihood(y, sd=1.0, seed=0):
    """Draws of mu given y ~ N(mu, sd) and a flat prior, with the log likelihood of each observation."""
    mu = np.random.default_rng(seed).normal(y.mean(), sd / np.sqrt(len(y)), size=(4, 2000))
    logs = -0.5 * ((y - mu[..., None]) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    return DrawnPosterior(["mu"], {"mu": mu}, Info("nuts"), pointwise=lambda: {"y": logs})


def test_leave_one_out_has_the_closed_form():
    y = np.random.default_rng(2).normal(size=20)
    n = len(y)
    others = (y.sum() - y) / (n - 1)
    variance = 1.0 + 1.0 / (n - 1)
    exact = -0.5 * (y - others) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
    found = gaussian_likelihood(y).loo()
    assert found.elpd == pytest.approx(exact.sum(), abs=0.05)
    assert np.allclose(found.pointwise, exact, atol=0.03)
    assert found.parameters == pytest.approx(1.0, abs=0.35)
    assert found.trusted
    assert str(found).startswith("PSIS-LOO: elpd")
    assert gaussian_likelihood(y).waic().elpd == pytest.approx(exact.sum(), abs=0.1)


def test_models_are_compared_by_how_they_predict():
    y = np.random.default_rng(2).normal(size=40)
    found = compare({"wide": gaussian_likelihood(y, 5.0), "right": gaussian_likelihood(y)})
    assert found.index.tolist() == ["right", "wide"]
    assert found.loc["right", "weight"] > 0.9
    assert found.loc["wide", "difference"] > 20
    with pytest.raises(mk.errors.InvalidArgument, match="same observations"):
        compare({"a": gaussian_likelihood(y), "b": gaussian_likelihood(y[:9])})
    with pytest.raises(mk.errors.InvalidArgument, match="two posteriors"):
        compare({"a": gaussian_likelihood(y)})
    with pytest.raises(mk.errors.Unanswered, match="log likelihood"):
        made().loo()


@pytest.mark.parametrize("kind", ["trace", "density", "rank", "forest", "pair", "energy", "autocorrelation"])
def test_every_kind_of_picture_is_drawn(kind):
    from matplotlib import pyplot as plt

    drawn = made(["mu", "theta"]).plot(kind=kind)
    first = drawn.ravel()[0] if isinstance(drawn, np.ndarray) else drawn
    assert first.lines or first.patches
    plt.close("all")


def test_pictures_show_what_they_say():
    from matplotlib import pyplot as plt

    axes = made(["mu"]).plot()
    assert axes.shape == (1, 2)
    assert len(axes[0, 1].lines) == 4
    assert np.array_equal(axes[0, 1].lines[2].get_ydata(), WALK[2])
    pair = made(["mu", "theta"]).plot(["mu", "theta"], kind="pair")
    assert len(pair[0, 0].lines[-1].get_xdata()) == STATS.divergences
    post = DrawnPosterior(["y"], {"y": RNG.normal(size=(2, 100, 30))}, Info("nuts"))
    ax = post.plot(kind="predictive", observed=np.zeros(30) + np.arange(30))
    assert ax.get_legend_handles_labels()[1] == ["observed"]
    with pytest.raises(mk.errors.InvalidArgument, match="observed="):
        post.plot(kind="predictive")
    with pytest.raises(mk.errors.InvalidArgument, match="kind="):
        made().plot(kind="pie")
    with pytest.raises(mk.errors.InvalidArgument, match="energies"):
        post.plot(kind="energy")
    plt.close("all")


def test_a_predictive_picture_draws_the_data_anew_by_itself():
    from matplotlib import pyplot as plt

    m = mk.BayesianNetwork()
    m.add("level", dist.Normal(0, 100), plate="group")
    m.add("y", lambda level, of: dist.Normal(level[of], 0.01), plate="row")
    given = {"y": [0.0, 0.01, 10.0, 10.01], "of": np.array([0, 0, 1, 1]), "group": 2}
    ax = m.query("level", given=given).plot(kind="predictive")
    *anew, data = [line.get_xdata() for line in ax.lines]
    assert len(anew) == 50
    assert np.ptp([x[0] for x in anew]) > 0
    assert np.allclose([[x[0], x[-1]] for x in anew], [data[0], data[-1]], atol=0.1)
    plt.close("all")
