"""The questions that every posterior answers: tables by brute force, closed forms by SciPy, draws by counting."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

import markovia as mk
import markovia.distributions as dist
from markovia.causal import BoundedPosterior
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.densities.closed_forms.closed_form import ClosedForm, Elements, Normals
from markovia.inference.densities.closed_forms.closed_posterior import ClosedPosterior
from markovia.inference.densities.program.draw_stats import DrawStats
from markovia.inference.densities.program.state_draws import PlatedPosterior, StateDraws
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior, MixtureOfGaussians
from markovia.inference.number_distributions import WeightedNumbers, shortest_interval
from markovia.inference.posterior_questions import PosteriorQuestions
from markovia.results import (
    DrawnPosterior,
    Info,
    NetworkPosterior,
    NumberPosterior,
    Posterior,
    SampledPosterior,
)

FACE = [
    "mean", "sd", "var", "median", "interval", "hdi", "quantile", "cdf", "probability", "covariance", "correlation",
    "sample", "log_prob", "to_pandas", "to_arviz", "save", "plot",
]  # fmt: skip
KINDS = [
    Posterior, GaussianPosterior, ClosedPosterior, DrawnPosterior, PlatedPosterior,
    NetworkPosterior, NumberPosterior, SampledPosterior, BoundedPosterior,
]  # fmt: skip
RNG = np.random.default_rng(5)
INFO = Info("test", given={"seen": "yes"})


def table():
    p = RNG.dirichlet(np.ones(12)).reshape(4, 3)
    scope = [Variable("a", [3, 1, 2, 10]), Variable("c", ["red", "blue", "green"])]
    return Posterior(Factor(scope, p), INFO), p


def drawn(weighted=False, states=True, **more):
    rng = np.random.default_rng(1)
    g = rng.normal([1.0, -2.0], [1.0, 3.0], size=(2, 500, 2))
    draws = {"s": rng.gamma(2.0, size=(2, 500)) + g[..., 0], "g": g}
    if states:
        shares = rng.dirichlet(np.ones(2), size=(2, 500, 3))
        codes = (rng.random((2, 500, 3)) > shares[..., 0]).astype(int)
        draws["z"] = StateDraws(Variable("z", ["no", "yes"]), shares, codes)
    logs = rng.normal(size=(2, 500)) if weighted else None
    return DrawnPosterior(["s", "g"], draws, INFO, log_weights=logs, **more)


def closed(names=("p", "t", "w", "x")):
    """Beta, Dirichlet, inverse gamma, and two normal numbers with a common scale; draws that nobody asks for."""

    class Answer:
        program = None
        form = ClosedForm(
            {
                "p": Elements("p", "beta", np.array([2.0, 5.0]), np.array([3.0, 1.5])),
                "t": Elements("t", "dirichlet", np.array([1.0, 2.0, 4.0]), np.zeros(0)),
                "w": Elements("w", "inverse-gamma", np.array(4.0), np.array(6.0)),
            },
            Normals(
                {"x": (2,)},
                np.array([1.0, -1.0]),
                np.array([[2.0, 0.8], [0.8, 1.0]]),
                np.array([2, 2]),
                np.zeros(2, bool),
            ),
        )

        @property
        def finished(self):
            flat = self.form.sample(4000, np.random.default_rng(0))
            return {n: v.reshape(4, 1000, *v.shape[1:]) for n, v in flat.items()}

        @property
        def drawn(self):
            class Drawn:
                stats = DrawStats(np.zeros((4, 1000)))

            return Drawn

    post = ClosedPosterior(names, Answer(), INFO)
    post._pointwise = None  # there are no observations
    return post


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_every_posterior_has_the_whole_face(kind):
    assert issubclass(kind, PosteriorQuestions)
    assert [n for n in FACE if not callable(getattr(kind, n, None))] == []


def test_a_table_answers_as_summing_over_its_cells_does():
    post, p = table()
    numbers, weights = np.array([3, 1, 2, 10]), p.sum(axis=1)
    mean = (numbers * weights).sum()
    assert post.mean("a") == pytest.approx(mean)
    assert post.var("a") == pytest.approx(((numbers - mean) ** 2 * weights).sum())
    assert post.sd("a") == pytest.approx(post.var("a") ** 0.5)
    for x in (0, 1, 2.5, 3, 11):
        assert post.cdf("a", x) == pytest.approx(weights[numbers <= x].sum(), abs=1e-15)
    for q in (0.0, 0.1, 0.5, 0.77, 1.0):
        up_to = [n for n in sorted(numbers) if weights[numbers <= n].sum() >= q - 1e-12]
        assert post.quantile("a", q) == up_to[0] == post.quantile(q, "a")
    assert post.median("a") == post.quantile("a", 0.5)
    assert post.interval("a", 0.5) == (post.quantile("a", 0.25), post.quantile("a", 0.75))
    low, high = post.hdi("a", 0.6)
    holding = [
        (b - a)
        for a, b in itertools.product(numbers, numbers)
        if a <= b and weights[(numbers >= a) & (numbers <= b)].sum() >= 0.6
    ]
    assert high - low == min(holding)
    assert post.cdf("a", high) - post.cdf("a", low - 0.5) >= 0.6


def test_events_on_a_table_are_states_lists_negations_intervals_and_functions():
    post, p = table()
    assert post.probability({"c": "red"}) == pytest.approx(p[:, 0].sum())
    assert post.probability({"c": ["red", "green"], "a": mk.Interval(1.5, 3)}) == pytest.approx(
        p[np.ix_([0, 2], [0, 2])].sum()
    )
    assert post.probability({"c": mk.Not("red")}) == pytest.approx(p[:, 1:].sum())
    happened = post.probability(lambda c, a: c == "blue" and a > 2)
    assert happened == pytest.approx(p[0, 1] + p[3, 1])
    assert post.marginal("c").probability("red") == pytest.approx(p[:, 0].sum())
    with pytest.raises(mk.errors.UnknownState, match="did you mean 'red'"):
        post.probability({"c": "rde"})
    with pytest.raises(mk.MarkoviaError, match="'d'"):
        post.probability(lambda d: True)


def test_covariances_and_draws_of_a_table():
    values = RNG.dirichlet(np.ones(6)).reshape(2, 3)
    post = Posterior(Factor([Variable("a", [0, 1]), Variable("b", [5, 1, 2])], values), INFO)
    grid = np.array([[a, b] for a in (0, 1) for b in (5, 1, 2)], float)
    exact = np.cov(grid.T, aweights=values.ravel(), ddof=0)
    assert np.allclose(post.covariance(), exact)
    assert post.covariance("a", "b") == pytest.approx(exact[0, 1])
    assert post.correlation("b", "a") == pytest.approx(exact[0, 1] / np.sqrt(exact[0, 0] * exact[1, 1]))
    assert np.allclose(post.covariance(["b", "a"]), exact[::-1, ::-1])
    rows = post.sample(20_000, seed=0)
    seen = np.mean((rows["a"] == 1) & (rows["b"] == 2))
    assert abs(seen - values[1, 2]) < 4 * np.sqrt(values[1, 2] / 20_000)
    assert post.log_prob({"a": 1, "b": 5}) == pytest.approx(np.log(values[1, 0]))
    assert np.allclose(post.log_prob({"a": [0, 1], "b": [1, 2]}), np.log([values[0, 1], values[1, 2]]))
    with pytest.raises(mk.errors.InvalidArgument, match="two names, a list"):
        post.covariance("a", "b", "a")


def test_what_names_of_states_have_not_is_said_in_a_sentence():
    post, _ = table()
    for ask, what in [
        (lambda: post.cdf("c", 1), "distribution function"),
        (lambda: post.median("c"), "quantiles"),
        (lambda: post.mean("c"), "mean"),
        (lambda: post.covariance("a", "c"), "covariance"),
    ]:
        with pytest.raises(mk.errors.InvalidArgument, match=f"'c' are not numbers, so it has no {what}"):
            ask()
    with pytest.raises(mk.errors.InvalidArgument, match="say of which"):
        post.sd()
    with pytest.raises(mk.errors.InvalidArgument, match="between 0 and 1"):
        post.quantile("a", 1.1)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_gaussians_answer_in_closed_form_in_any_unit(unit):
    mean, cov = np.array([1.0, -2.0]) * unit, np.array([[4.0, 1.5], [1.5, 1.0]]) * unit**2
    one = MixtureOfGaussians(("x", "y"), (), np.ones(1), np.zeros((1, 0), int), mean[None], cov[None])
    post = GaussianPosterior(["x", "y"], one, INFO)
    x = stats.norm(mean[0], 2.0 * unit)
    assert post.hdi("x", 0.8) == pytest.approx(x.interval(0.8), rel=1e-9)
    assert post.median("x") == pytest.approx(mean[0], rel=1e-12)
    assert post.cdf("x", 2.0 * unit) == pytest.approx(x.cdf(2.0 * unit))
    assert post.probability({"x": mk.Interval(0, 3 * unit)}) == pytest.approx(x.cdf(3 * unit) - x.cdf(0))
    both = {"x": mk.Interval(high=0), "y": mk.Interval(high=-2 * unit)}
    exact = stats.multivariate_normal(mean / unit, cov / unit**2).cdf([0.0, -2.0])
    assert post.probability(both) == pytest.approx(exact, abs=1e-5)
    assert post.probability(lambda x, y: x > y) == pytest.approx(
        stats.norm(3.0, np.sqrt(2.0)).sf(0), abs=0.01
    )
    assert post.covariance("x", "y") == pytest.approx(1.5 * unit**2)
    assert post.correlation(["y", "x"]) == pytest.approx(np.array([[1.0, 0.75], [0.75, 1.0]]))


def test_mixtures_of_gaussians_with_states():
    parts = stats.norm([0.0, 4.0], [1.0, 0.5])
    made = MixtureOfGaussians(
        ("x",),
        (Variable("d", ["a", "b"]),),
        np.array([0.3, 0.7]),
        np.array([[0], [1]]),
        np.array([[0.0], [4.0]]),
        np.array([[[1.0]], [[0.25]]]),
    )
    post = GaussianPosterior(["x", "d"], made, INFO)
    box = (parts.cdf(5) - parts.cdf(1)) * [0.3, 0.7]
    assert post.probability({"x": mk.Interval(1, 5), "d": "b"}) == pytest.approx(box[1])
    assert post.probability({"x": mk.Interval(1, 5)}) == pytest.approx(box.sum())
    low, high = post.hdi("x", 0.6)  # inside the second peak
    assert post.cdf("x", high) - post.cdf("x", low) == pytest.approx(0.6, abs=1e-9)
    trial = [(post.quantile("x", p + 0.6) - post.quantile("x", p), p) for p in np.linspace(0.001, 0.399, 200)]
    assert high - low <= min(trial)[0] + 1e-9
    with pytest.raises(mk.errors.InvalidArgument, match=r"mk.Interval\(low, high\)"):
        post.probability({"x": 2.0})


def test_closed_forms_answer_without_draws():
    post = closed()
    p = stats.beta([2.0, 5.0], [3.0, 1.5])
    assert np.allclose(post.mean("p"), p.mean())
    assert np.allclose(post.var("p"), p.var())
    assert post.median("p[1]") == pytest.approx(p.median()[1])
    assert post.cdf("p[0]", [0.2, 0.4]) == pytest.approx(stats.beta(2, 3).cdf([0.2, 0.4]))
    assert np.allclose(post.probability({"p": mk.Interval(0.2, 0.6)}), p.cdf(0.6) - p.cdf(0.2))
    assert post["p[1]"].log_prob(0.3) == pytest.approx(stats.beta(5, 1.5).logpdf(0.3))
    assert "_numbers" not in post.__dict__  # nothing was drawn for it
    low, high = post.hdi("p", 0.8)
    below = np.linspace(0, 0.2, 501)
    width = stats.beta(2, 3).ppf(below + 0.8) - stats.beta(2, 3).ppf(below)
    assert high[0] - low[0] == pytest.approx(min(width), abs=1e-5)
    assert stats.beta(2, 3).pdf(low[0]) == pytest.approx(stats.beta(2, 3).pdf(high[0]), rel=1e-4)
    assert post.hdi("p[1]", 0.8) == pytest.approx((low[1], high[1]), abs=1e-7)


def test_covariances_of_closed_forms_are_those_of_many_draws():
    post = closed()
    rows = post.form.sample(200_000, np.random.default_rng(1))
    flat = np.concatenate([rows[n].reshape(200_000, -1) for n in post.names], axis=1)
    found, drawn = post.covariance(), np.cov(flat.T)
    assert found.shape == (8, 8)
    assert np.allclose(found, drawn, atol=0.05)
    t = np.array([1.0, 2.0, 4.0]) / 7
    assert post.covariance("t[0]", "t[2]") == pytest.approx(-t[0] * t[2] / 8)
    assert post.covariance("x[0]", "x[1]") == pytest.approx(0.8 * 6.0 / 3.0)  # times the mean of the scale
    assert post.covariance("t", "x").shape == (3, 2)


def test_draws_answer_by_counting_and_under_printed_names():
    post = drawn()
    g, s = post.draws["g"].reshape(-1, 2), post.draws["s"].ravel()
    assert post.mean("g[1]") == pytest.approx(g[:, 1].mean())
    assert post.var("g") == pytest.approx(g.var(axis=0, ddof=1))
    assert post.cdf("g[0]", [0.0, 1.0]) == pytest.approx([(g[:, 0] <= x).mean() for x in (0.0, 1.0)])
    assert post.cdf("g", 0.5) == pytest.approx((g <= 0.5).mean(axis=0))
    assert post.covariance() == pytest.approx(np.cov(np.column_stack([s, g]).T))
    assert post.correlation("g[0]", "s") == pytest.approx(np.corrcoef(g[:, 0], s)[0, 1])
    assert post.probability({"g[0]": mk.Interval(low=1), "s": mk.Interval(high=3)}) == pytest.approx(
        ((g[:, 0] >= 1) & (s <= 3)).mean()
    )
    assert post.probability(lambda s, g: s > g[1]) == pytest.approx((s > g[:, 1]).mean())
    low, high = post.hdi("s", 0.9)
    ordered = np.sort(s)
    assert high - low == pytest.approx(min(ordered[899:] - ordered[:101]))
    assert post["g[0]"].mean() == post.mean("g[0]")
    assert str(post["g[0]"]).splitlines()[1].split()[0] == "g[0]"
    labels = post.summary("all").index
    assert [post.mean(n) for n in labels] == pytest.approx(post.summary("all")["mean"].tolist())
    with pytest.raises(mk.errors.InvalidArgument, match=r"no 'g\[2\]': 'g' is 2"):
        post.mean("g[2]")
    with pytest.raises(mk.errors.InvalidArgument, match="no draws of"):
        post.mean("gg[0]")


def test_states_among_draws_count_with_their_exact_probabilities():
    post = drawn()
    z = post._states["z"]
    assert post.probability({"z[1]": "yes"}) == pytest.approx(z.probabilities[:, :, 1, 1].mean())
    low = post.draws["s"] < 2
    assert post.probability({"z": "no", "s": mk.Interval(high=2)}) == pytest.approx(
        (z.probabilities[..., 0] * low[..., None]).mean(axis=(0, 1))
    )
    both = post.probability({"z[0]": "no", "z[2]": "no"})
    assert both == pytest.approx(((z.codes[..., 0] == 0) & (z.codes[..., 2] == 0)).mean())
    assert post["z[1]"]["yes"] == pytest.approx(post.probability({"z[1]": "yes"}))


def test_weights_count_in_every_answer():
    post = drawn(weighted=True)
    w, s, g = post._weights.ravel(), post._numbers["s"].ravel(), post._numbers["g"].reshape(-1, 2)
    assert post.cdf("s", 2.0) == pytest.approx(w[s <= 2].sum())
    assert post.probability({"s": mk.Interval(1, 2)}) == pytest.approx(w[(s >= 1) & (s <= 2)].sum())
    assert post.covariance("s", "g[0]") == pytest.approx(
        np.cov(np.column_stack([s, g[:, 0]]).T, aweights=w, ddof=0)[0, 1]
    )
    low, high = post.hdi("s", 0.5)
    assert w[(s >= low) & (s <= high)].sum() >= 0.5


def test_elements_on_a_plate_answer_one_by_one():
    p = RNG.dirichlet(np.ones(3), size=4)
    post = PlatedPosterior(Variable("k", [0, 1, 5]), p, INFO)
    assert np.allclose(post.mean(), p @ [0, 1, 5])
    assert post.mean("k[2]") == pytest.approx(p[2] @ [0, 1, 5])
    assert np.allclose(post.cdf(1), p[:, :2].sum(axis=1))
    assert np.allclose(post.probability(mk.Not(0)), p[:, 1:].sum(axis=1))
    assert post.probability({"k[3]": 5}) == pytest.approx(p[3, 2])
    assert np.allclose(post.probability(lambda k: k > 0), p[:, 1:].sum(axis=1))
    assert np.allclose(post.quantile(0.5), [[0, 1, 5][int((np.cumsum(row) < 0.5).sum())] for row in p])
    assert post.to_pandas().loc["k[1]", 5] == p[1, 2]
    assert post["k[1]"].values.tolist() == p[1].tolist()
    for ask in (post.sample, post.covariance, lambda: post.log_prob([0, 1, 0, 5])):
        with pytest.raises(mk.errors.Unanswered, match=r"each element by itself.*post\['k\[0\]'\]"):
            ask()


@pytest.mark.slow
def test_tables_of_a_fitted_network_answer_as_their_beta_distributions():
    prior = mk.priors.Dirichlet({"b": [[2, 1, 0], [0, 2, 0]]}, other=1.0)
    bn = mk.BayesianNetwork("a->b", states={"a": 2, "b": 3})
    post = bn.fit({"a": [0, 0, 1, 0], "b": [0, 1, 1, 0]}, prior=prior).posterior_
    first = stats.beta(4.0, 2.0)  # of P(b=0 | a=0): pseudo-counts 2 and 1, and two of three rows
    assert post.names == ("a", "b")
    assert post.sd("b[0,0]") == pytest.approx(first.std())
    assert post.quantile("b[0,0]", 0.3) == pytest.approx(first.ppf(0.3))
    assert post.probability({"b[0,0]": mk.Interval(0.2, 0.6)}) == pytest.approx(
        first.cdf(0.6) - first.cdf(0.2)
    )
    assert post.mean("b[0,0]") == pytest.approx(bn["b"].values[0, 0]) == pytest.approx(first.mean())
    # what cannot be is zero for sure, and what is left alone is one
    assert [np.asarray(x)[0, 2] for x in (post.sd("b"), post.quantile("b", 0.9), post.cdf("b", 0.0))] == [
        0,
        0,
        1,
    ]
    assert [post.var("b[1,1]"), *post.hdi("b[1,1]"), post.cdf("b[1,1]", 0.99)] == [0, 1, 1, 0]
    assert post.correlation("b[0,0]", "b[0,1]") == pytest.approx(-1.0)
    assert post.covariance("a", "b").shape == (2, 2, 3)
    assert np.allclose(post.covariance("a", "b"), 0.0)
    rows = post.sample_parameters(20_000, seed=0)["b"][:, 0, 0]
    assert rows.mean() == pytest.approx(first.mean(), abs=0.005)
    assert post.probability(lambda a, b: a[0] > b[0, 0]) == pytest.approx(
        np.mean(stats.beta(4, 2).cdf(stats.beta(4, 2).ppf((np.arange(2000) + 0.5) / 2000))), abs=0.02
    )
    inside = {"a": np.array([0.7, 0.3]), "b": np.array([[0.6, 0.4, 0.0], [0.0, 1.0, 0.0]])}
    assert post.log_prob(inside) == pytest.approx(stats.beta(4, 2).logpdf(0.7) + first.logpdf(0.6))
    assert post.to_arviz().posterior["b"].shape == (4, 1000, 2, 3)
    with pytest.raises(mk.errors.InvalidArgument, match=r"no 'b\[2,0\]': 'b' is 2 x 3"):
        post.mean("b[2,0]")
    with pytest.raises(mk.errors.UnsupportedModel, match="network's own file keeps the means"):
        post.save("post.json")


def test_tied_tables_are_one_quantity():
    bn = mk.BayesianNetwork("a; b", states={"a": 2, "b": 2})
    post = bn.fit({"a": [0, 0, 1], "b": [1, 0, 0]}, prior="k2", tied=[["a", "b"]]).posterior_
    assert post.covariance("a[0]", "b[0]") == pytest.approx(stats.beta(5, 3).var())
    assert post.correlation("a[0]", "b[0]") == pytest.approx(1.0)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_regressions_of_a_fitted_network_answer_as_students_t(unit):
    rng = np.random.default_rng(0)
    x, d = rng.normal(size=30) * unit, rng.integers(0, 2, 30)
    y = (1.0 + d) * x + unit * rng.normal(size=30)
    rows = {"x": x, "d": d, "y": y}
    post = mk.BayesianNetwork("x->y<-d").fit(rows, prior=0.5).posterior_
    found = post.regressions["y"][(1,)]
    spread = np.linalg.inv(found.precision) * found.scale / found.shape
    slope = stats.t(2 * found.shape, found.mean[1], np.sqrt(spread[1, 1]))
    assert post.mean("y")[1] == pytest.approx(found.mean)
    assert post.sd("y[1,1]") == pytest.approx(slope.std())
    assert post.hdi("y[1,1]", 0.8) == pytest.approx(slope.interval(0.8), rel=1e-4)
    assert post.cdf("y[1,1]", 2.0) == pytest.approx(slope.cdf(2.0))
    assert tuple(post.interval("y", 0.8, d=1).loc["x"]) == pytest.approx(slope.interval(0.8))
    assert post.mean("variance(y)[1]") == pytest.approx(stats.invgamma(found.shape, scale=found.scale).mean())
    assert post.correlation("y[1,0]", "y[1,1]") == pytest.approx(
        spread[0, 1] / np.sqrt(spread[0, 0] * spread[1, 1])
    )
    assert post.covariance("y[0,1]", "y[1,1]") == 0.0
    assert post.mean("d") == pytest.approx(post.alpha("d") / post.alpha("d").sum())
    assert post.to_pandas().loc["y[1,1]", "mean"] == pytest.approx(found.mean[1])


def test_an_average_over_networks_tells_the_spread_of_probabilities_from_that_of_the_variable():
    bn = mk.BayesianNetwork("cost").fit({"cost": [1, 1, 2, 5]}, prior="k2")
    answer = bn.posterior_.query("cost", n=300, seed=0)
    table = answer.interval(0.8)
    assert np.allclose(table["low"], np.quantile(answer.draws, 0.1, axis=0))
    assert (
        answer.interval("cost", 0.8) == Posterior(answer.factor(), INFO).interval("cost", 0.8) == (1.0, 5.0)
    )
    weighted = SampledPosterior(answer.factor(), INFO, answer.draws[:3], np.array([1.0, 6.0, 3.0]))
    assert weighted.interval(0.7)["low"].to_numpy() == pytest.approx(
        np.quantile(answer.draws[:3], 0.15, axis=0, weights=[1, 6, 3], method="inverted_cdf")
    )


def test_bounds_answer_with_the_least_and_the_greatest_there_can_be():
    rng = np.random.default_rng(3)
    scope = (Variable("a", [2, 0, 7]), Variable("c", ["no", "yes"]))
    inside = rng.dirichlet(np.ones(6))
    lower, upper = inside * rng.random(6), np.minimum(inside + 0.3 * rng.random(6), 1.0)
    post = BoundedPosterior(scope, lower.reshape(3, 2), upper.reshape(3, 2), INFO, sharp=True)

    def extremes(weights):  # over all distributions between the bounds
        ends = [
            linprog(s * np.ravel(weights), A_eq=np.ones((1, 6)), b_eq=[1], bounds=np.c_[lower, upper]).fun
            for s in (1, -1)
        ]
        return ends[0], -ends[1]

    a = np.array([2, 0, 7])
    meant = np.array([[0, 1], [0, 0], [0, 1]])
    assert post.probability({"c": "yes", "a": mk.Not(0)}) == pytest.approx(extremes(meant), abs=1e-9)
    assert post.probability(lambda c, a: c == "yes" and a > 0) == pytest.approx(extremes(meant), abs=1e-9)
    only = BoundedPosterior(scope[:1], *(post.lower.sum(axis=1), post.upper.sum(axis=1)), INFO, sharp=True)
    least, greatest = post.mean("a")
    assert (least, greatest) == pytest.approx(extremes(np.repeat(a, 2)), abs=1e-9)
    assert post.cdf("a", 2) == pytest.approx(extremes(np.repeat(a <= 2, 2)), abs=1e-9)
    assert only.mean() == pytest.approx([least, greatest])
    for q in (0.1, 0.5, 0.9):
        ends = [min([n for n in (0, 2, 7) if post.cdf("a", n)[k] >= q], default=7) for k in (1, 0)]
        assert post.quantile("a", q).tolist() == ends
    assert post.log_prob({"a": 7, "c": "no"}) == pytest.approx(np.log([lower[4], upper[4]]))
    for ask in (lambda: post.sd("a"), post.sample, lambda: post.hdi("a"), lambda: post.covariance("a", "a")):
        with pytest.raises(mk.errors.Unanswered, match="no one distribution"):
            ask()


def test_the_shortest_interval_of_one_value_and_of_a_constant():
    assert WeightedNumbers(np.array([2.0]), np.ones(1)).shortest(0.9) == (2.0, 2.0)
    post = DrawnPosterior(["c"], {"c": np.full((2, 10), 3.0)}, INFO)
    assert (post.sd(), post.hdi(), post.cdf(3.0), post.cdf(2.9)) == (0.0, (3.0, 3.0), pytest.approx(1.0), 0.0)
    assert np.isnan(post.correlation()).all()
    low, high = shortest_interval(stats.expon().ppf, 0.5)
    assert (low, high) == pytest.approx((0.0, np.log(2)))


def keeps(post, tmp_path):
    """Return what a pickle and a file give back of a posterior."""
    post.save(tmp_path / "post.json.gz")
    return [pickle.loads(pickle.dumps(post)), mk.load(tmp_path / "post.json.gz")]


@pytest.mark.parametrize(
    "make",
    [
        lambda: table()[0],
        lambda: GaussianPosterior.single("x", 1.0, 2.0, INFO),
        closed,
        drawn,
        lambda: drawn(weighted=True),
        lambda: PlatedPosterior(Variable("k", [True, False]), np.full((2, 2), 0.5), INFO),
        lambda: BoundedPosterior(
            (Variable("k", [0, 1]),), np.array([0.1, 0.2]), np.ones(2), INFO, sharp=True
        ),
    ],
)
def test_a_posterior_comes_back_whole_from_a_pickle_and_from_a_file(make, tmp_path):
    post = make()
    for other in keeps(post, tmp_path):
        assert type(other) is type(post)
        assert repr(other) == repr(post)
        assert other.info == post.info
        if not isinstance(post, PlatedPosterior | BoundedPosterior):
            rows, again = post.sample(5, seed=1), other.sample(5, seed=1)
            assert all(np.array_equal(rows[n], again[n]) for n in rows)


@pytest.mark.slow
def test_a_model_with_functions_gives_arviz_all_groups_and_can_be_kept(tmp_path):
    m = mk.BayesianNetwork()
    m.add("x", mk.Input(), plate="i")
    m.add("mu", dist.Normal(0, 5))
    m.add("y", lambda x, mu: dist.Normal(mu + x, 0.5), plate="i")
    x, y = np.linspace(-1, 1, 5), np.array([0.1, 0.4, 1.2, 1.1, 2.3])
    post = m.query("mu", given={"x": x, "y": y})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz as az

        data = post.to_arviz()
        score = az.loo(data)
        table = az.compare({"a": data, "b": data})
    assert np.array_equal(data.observed_data["y"], y)
    assert np.array_equal(data.constant_data["x"], x)
    assert data.prior_predictive["y"].shape == (1, 1000, 5)
    assert data.prior["mu"].std() == pytest.approx(5.0, rel=0.1)
    assert "lp" in data.sample_stats
    mean = post.draws["mu"][..., None] + x
    assert np.allclose(data.log_likelihood["y"], stats.norm(mean, 0.5).logpdf(y))
    # new data at each draw lie around the line of that very draw
    z = (data.posterior_predictive["y"].values - mean) / 0.5
    assert (z.mean(), z.std()) == pytest.approx((0.0, 1.0), abs=0.03)
    assert float(score.elpd_loo) == pytest.approx(post.loo().elpd, abs=1e-3)  # smoothed by another efficiency
    assert len(table) == 2
    for other in keeps(post, tmp_path):
        assert other.loo().elpd == pytest.approx(post.loo().elpd)
        assert np.array_equal(other.to_arviz().observed_data["y"], y)
        assert other.cdf(1.0) == post.cdf(1.0)
        with pytest.raises(mk.errors.Unanswered, match="knows its model no more"):
            other.plot(kind="predictive")
        # given its model, it draws new data as the one that was not kept does
        new, again = (m.sample(3, given=p, seed=0)["y"].values for p in (post, other))
        assert np.array_equal(new, again)
    assert set(mk.results.compare([post, post]).index) == {"0", "1"}
    rain = mk.examples.sprinkler().query("rain")
    with pytest.raises(mk.errors.InvalidArgument, match="'0', a Posterior, does not have"):
        mk.results.compare([rain, rain])


def test_draws_keep_the_log_likelihoods_that_a_function_of_the_model_computes(tmp_path):
    logs = RNG.normal(size=(2, 500, 4))
    post = drawn(states=False, pointwise=lambda: {"y": logs})
    for other in keeps(post, tmp_path):
        assert np.array_equal(other.log_likelihood()["y"], logs)
        assert np.array_equal(pickle.loads(pickle.dumps(other)).log_likelihood()["y"], logs)


def test_files_keep_what_an_engine_has_to_say_where_it_is_plain_data(tmp_path):
    for engine in ("junction-tree", "gibbs"):
        post = mk.examples.sprinkler().query("rain", engine=engine)
        assert keeps(post, tmp_path)[1].info.details == post.info.details is not None
    told = Posterior(post.factor(), Info("own", details=object()))
    assert keeps(told, tmp_path)[1].info.details is None


def test_exact_answers_go_to_arviz_as_independent_draws():
    data = mk.examples.sprinkler().query(["rain", "wet"]).to_arviz()
    assert data.posterior["rain"].shape == (4, 1000)
    assert set(np.unique(data.posterior["rain"])) == {0, 1}
