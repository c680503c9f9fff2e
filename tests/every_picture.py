"""One example or more of every function of `mk.plotting`, small enough to be drawn in a moment.

A new picture has to be added here; `tests/plotting/test_every_picture.py` fails without, and checks what is drawn.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import markovia as mk
import markovia.distributions as dist
from markovia.inference.collapsed.partition_posterior import PartitionPosterior
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
from markovia.inference.densities.program.draw_stats import DrawStats
from markovia.inference.result import Info
from markovia.models.graphical.calibration import EngineCalibration

PICTURES: dict[str, Callable[[], Any]] = {}
P = mk.plotting


def picture(draw: Callable[[], Any]) -> Callable[[], Any]:
    """Keep an example under its name: the plotting function, and after two underscores which example of it."""
    PICTURES[draw.__name__] = draw
    return draw


@cache
def rows() -> Any:
    return mk.examples.asia().sample(300, seed=1)


# -- models and graphs --------------------------------------------------------------------------------------------------


@picture
def plot_model() -> Any:
    return mk.examples.asia().plot(given={"xray": "yes", "dysp": [0.2, 0.9]})


@picture
def plot_model__posteriors() -> Any:
    return mk.examples.asia().plot(given={"xray": "yes"}, do={"either": "no"}, posteriors=True)


@picture
def plot_model__trails() -> Any:
    bn = mk.examples.asia()
    return bn.plot(highlight=bn.open_trails("lung", "bronc", given=["dysp"]), title="")


@picture
def plot_model__plates() -> Any:
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("tau", dist.HalfCauchy(5))
    m.add("theta", lambda mu, tau: dist.Normal(mu, tau), plate="school")
    m.add("y", lambda theta, sigma: dist.Normal(theta, sigma), plate="school")
    return m.plot(given={"y": np.zeros(8)}, distributions=True)


@picture
def plot_model__factor_graph() -> Any:
    return mk.examples.misconception().to_factor_graph().plot()


@picture
def plot_graph() -> Any:
    return mk.graphs.MixedGraph(["a --> b", "b o-> c", "c <-> d", "a o-o d", "d --- e"]).plot(
        given="b", title="marks"
    )


@picture
def plot_graph__junction_tree() -> Any:
    return mk.examples.asia().junction_tree().plot()


@picture
def plot_dynamic() -> Any:
    process = mk.DynamicBayesianNetwork()
    process.add(
        "load", states=["low", "high"], parents=["load@-1"], p=[[0.9, 0.1], [0.2, 0.8]], initial=[0.7, 0.3]
    )
    process.add(
        "bearing", states=["good", "worn"], parents=["bearing@-1", "load"],
        p=[[[0.99, 0.01], [0.93, 0.07]], [[0, 1], [0, 1]]], initial=[[0.98, 0.02], [0.98, 0.02]],
    )  # fmt: skip
    process.add(
        "hot", states=["no", "yes"], parents=["load", "bearing"],
        p=[[[0.95, 0.05], [0.7, 0.3]], [[0.6, 0.4], [0.15, 0.85]]],
    )  # fmt: skip
    process.add("noise", states=["no", "yes"], parents=["bearing"], p=[[0.9, 0.1], [0.4, 0.6]])
    return process.plot(given={"hot@1": "yes"}, posteriors=True)


@picture
def plot_dynamic__three_steps() -> Any:
    return umbrella().plot(3, given=["umbrella@0", "umbrella@1"])


def umbrella() -> Any:
    process = mk.DynamicBayesianNetwork()
    process.add(
        "rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5]
    )
    process.add("umbrella", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
    return process


@picture
def plot_comparison() -> Any:
    other = mk.graphs.DAG([("asia", "tub"), ("lung", "smoke"), ("smoke", "dysp")], nodes=rows().columns)
    return mk.graphs.compare_graphs(other, mk.examples.asia().graph).plot()


@cache
def confidence() -> Any:
    return mk.bootstrap_structure(rows(), replicates=5, seed=0)


@picture
def plot_edge_confidence() -> Any:
    return confidence().plot()


@picture
def plot_effect() -> Any:
    return mk.causal.effect_paths("x -> m -> y; x <- z -> y; x <-> w -> y", "x", "y", given="z").plot(
        title="an effect"
    )


# -- decisions ------------------------------------------------------------------------------------------------------------


@cache
def drilling() -> Any:
    """The oil wildcatter: a test to buy, a well to drill."""
    bn = mk.BayesianNetwork()
    bn.add("oil", [0.5, 0.3, 0.2], states=["dry", "wet", "soaking"])
    bn.add("test", mk.Decision(["yes", "no"]))
    seismic = {"dry": [0.6, 0.3, 0.1, 0], "wet": [0.3, 0.4, 0.3, 0], "soaking": [0.1, 0.4, 0.5, 0]}
    bn.add(
        "result", lambda oil, test: [0, 0, 0, 1] if test == "no" else seismic[oil],
        states=["none", "open", "closed", "untested"], parents=["oil", "test"],
    )  # fmt: skip
    bn.add("drill", mk.Decision(["yes", "no"]), parents=["test", "result"])
    bn.add("cost", mk.Utility({"yes": -10, "no": 0}), parents=["test"])
    bn.add("gain", mk.Utility([[-70, 0], [50, 0], [200, 0]]), parents=["oil", "drill"])
    return bn


@picture
def plot_model__decisions() -> Any:
    return drilling().plot(given={"oil": "wet"}, distributions=True)


@picture
def plot_model__decided() -> Any:
    bn = drilling()
    return bn.follow(bn.decide()).plot(posteriors=True, given={"test": "yes"})


@picture
def plot_dynamic__decisions() -> Any:
    p = mk.DynamicBayesianNetwork()
    table = [[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.1, 0.9]]]
    p.add("machine", table, states=["old", "new"], parents=["machine@-1", "repair@-1"], initial=[1, 0])
    p.add("repair", mk.Decision(["no", "yes"]), parents=["machine"])
    p.add("profit", mk.Utility([[1, -2], [5, 2]]), parents=["machine", "repair"])
    return p.plot()


@picture
def plot_policy() -> Any:
    return drilling().decide().plot("drill")


@picture
def plot_policy__ties() -> Any:
    bn = mk.BayesianNetwork()
    for name in "abc":
        bn.add(name, [0.25] * 4)
    bn.add("way", mk.Decision(["left", "right", "straight ahead"]), parents=["a", "b", "c"])
    amounts = np.random.default_rng(0).integers(0, 3, size=(4, 4, 4, 3))
    bn.add("joy", mk.Utility(amounts), parents=["a", "b", "c", "way"])
    return bn.decide().plot(title="")


@picture
def plot_policy__many() -> Any:
    bn = mk.BayesianNetwork()
    bn.add("place", np.ones(40), normalise=True)
    bn.add("time", np.ones(60), normalise=True)
    bn.add("way", mk.Decision(["left", "right", "straight"]), parents=["place", "time"])
    amounts = np.random.default_rng(0).normal(size=(40, 60, 3))
    bn.add("joy", mk.Utility(amounts), parents=["place", "time", "way"])
    return bn.decide().plot()


@picture
def plot_decision_sensitivity() -> Any:
    return drilling().decision_sensitivity(("oil", "dry")).plot()


@picture
def plot_decision_sensitivity__curves() -> Any:
    return drilling().decision_sensitivity(("oil", "dry"), risk=-0.01).plot(title="who avoids risk")


@picture
def plot_tornado() -> Any:
    return mk.control.tornado(drilling()).plot(title="drilling")


@picture
def plot_total_utility() -> Any:
    bn = drilling()
    return bn.follow(bn.decide()).utility().plot()


@picture
def plot_total_utility__many() -> Any:
    bn = mk.BayesianNetwork()
    for k in range(8):
        bn.add(f"x{k}", [0.7, 0.3])
        bn.add(f"u{k}", mk.Utility([0, 1.7**k]), parents=[f"x{k}"])
    return bn.utility().plot(title="eight chances")


# -- tables and posteriors ----------------------------------------------------------------------------------------------


@picture
def plot_table() -> Any:
    return mk.examples.student()["grade"].plot()


@picture
def plot_table__factor() -> Any:
    a, b = mk.Variable("a", ["a long name of a state", "another"]), mk.Variable("c", 3)
    return mk.Factor([a, b], np.array([[30, 5, 0.25], [1, 10, 2]])).plot()


@picture
def plot_posterior() -> Any:
    return mk.examples.student().query("grade", given={"letter": "strong"}).plot()


@picture
def plot_posterior__errors() -> Any:
    engine = mk.engines.LikelihoodWeighting(draws=200, seed=0)
    return mk.examples.asia().query("dysp", given={"smoke": "yes"}, engine=engine).plot()


@picture
def plot_posterior__two() -> Any:
    return mk.examples.student().query(["grade", "intelligence"]).plot()


@picture
def plot_marginals() -> Any:
    return mk.examples.asia().marginals(given={"xray": "yes"}).plot()


@picture
def plot_bounds() -> Any:
    bn = mk.BayesianNetwork()
    bn.add("drug", p=[0.5, 0.5])
    bn.add("cured", states=["no", "yes"], parents=["drug"], p=[[0.7, 0.3], [0.4, 0.6]])
    return bn.counterfactual("cured", given={"drug": 0, "cured": "no"}, do={"drug": 1}).plot()


@picture
def plot_density() -> Any:
    m = mk.BayesianNetwork()
    m.add("valve", {"open": 0.7, "stuck": 0.3})
    flow = {"open": mk.LinearGaussian(5, {}, 1), "stuck": mk.LinearGaussian(1, {}, 0.5)}
    m.add("flow", flow, parents=["valve"])
    m.add("level", mk.LinearGaussian(2, {"flow": 1.5}, 1))
    return m.query(["flow", "level"]).plot()


# -- draws and how computations went --------------------------------------------------------------------------------------


@cache
def posterior() -> DrawnPosterior:
    rng = np.random.default_rng(0)
    tau = np.exp(rng.normal(1, 0.6, (4, 200)))
    theta = rng.normal(5, 1, (4, 200, 1)) + tau[..., None] * rng.normal(size=(4, 200, 2))
    energy = rng.normal(10, 2, (4, 200))
    stats = DrawStats(log_density=-energy, diverging=tau < 1.0, energy=energy)
    return DrawnPosterior(["tau", "theta"], {"tau": tau, "theta": theta}, Info("nuts"), stats=stats)


def draws(kind: str, names: str | None = None) -> Any:
    return posterior().plot(names, kind=kind)


for _kind in ("trace", "density", "rank", "autocorrelation"):
    PICTURES[f"plot_draws__{_kind}"] = partial(draws, _kind, "tau")
for _kind in ("forest", "pair", "energy"):
    PICTURES[f"plot_draws__{_kind}"] = partial(draws, _kind)


@picture
def plot_draws__predictive() -> Any:
    rng = np.random.default_rng(1)
    drawn = DrawnPosterior(["y"], {"y": rng.normal(size=(2, 50, 30))}, Info("nuts"))
    return drawn.plot(kind="predictive", observed=rng.normal(size=30))


@cache
def chains() -> Any:
    return mk.examples.sprinkler().query("rain", engine=mk.engines.Gibbs(draws=200, seed=0)).info.diagnostics


@picture
def plot_trace() -> Any:
    return chains().plot_trace()


@picture
def plot_autocorrelation() -> Any:
    return chains().plot_autocorrelation("rain=yes")


@picture
def plot_convergence() -> Any:
    grid = mk.generators.ising_grid(4, 4, coupling=0.6, field=0.1)
    return P.plot_convergence(
        {
            schedule: grid.query("x0_0", engine=mk.engines.LoopyBP(schedule=schedule, damping=0.2))
            for schedule in ("sequential", "flooding", "residual")
        }
    )


@picture
def plot_convergence__bound() -> Any:
    grid = mk.generators.ising_grid(4, 4, coupling=0.4, field=0.1)
    return grid.query("x0_0", engine="mean-field").info.plot_convergence(title="mean field")


@picture
def plot_ranks() -> Any:
    ranks = {name: np.random.default_rng(0).integers(0, 101, 200) for name in ("mu", "tau")}
    return EngineCalibration(ranks, 100, "nuts").plot()


@picture
def plot_calibration() -> Any:
    rng = np.random.default_rng(0)
    p = rng.random(200)
    return mk.learning.calibration(rng.random(200) < p**1.3, p).plot()


@picture
def plot_bias_variance() -> Any:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=20)
    several = {
        f"depth {k}": mk.learning.squared_decomposition(truth + rng.normal(1 / k, k / 3, (10, 20)), truth)
        for k in (1, 2, 3)
    }
    return P.plot_bias_variance(several)


# -- series ---------------------------------------------------------------------------------------------------------------


@picture
def plot_hidden_states() -> Any:
    params = {"means": [[0.0], [4.0], [8.0]], "covariances": [[[1.0]]] * 3}
    moves = 0.9 * np.eye(3) + 0.1 / 3
    hmm = mk.HMM(3, emission="gaussian", start=[1, 0, 0], transition=moves, emission_params=params)
    series, _ = hmm.sample(80, seed=3)
    return hmm.plot(series, names=["calm", "busy", "wild"], title="a machine")


@picture
def plot_beliefs() -> Any:
    return umbrella().smooth({"umbrella": ["yes", "yes", "no", "no", "yes"]}).plot()


@cache
def walk() -> Any:
    model = mk.LinearStateSpace([[1, 1], [0, 1]], 0.05 * np.eye(2), [[1, 0]], 1.0, np.zeros(2), np.eye(2))
    series = model.sample(60, seed=0)[0][0]
    series[20:25] = np.nan
    return model, series


@picture
def plot_state_path() -> Any:
    model, series = walk()
    return model.smooth(series).plot()


@picture
def plot_forecast() -> Any:
    model, series = walk()
    return model.forecast(series, 12, level=0.8).plot(series, last=40)


@picture
def plot_band() -> Any:
    x = np.linspace(0, 6, 60)
    at = np.array([0.5, 1.2, 2.4, 3.1, 5.0])
    wide = 0.1 + 0.6 * np.abs(x[:, None] - at).min(axis=1)
    return P.plot_band(
        x, np.sin(x), np.sin(x) - wide, np.sin(x) + wide, observed=np.sin(at), at=at, title="a curve"
    )


@picture
def plot_band__process() -> Any:
    x, at = np.linspace(0, 6, 60), np.array([0.5, 1.2, 2.4, 3.1, 5.0])
    here, there, seen = (np.exp(-((a[:, None] - b) ** 2) / 2) for a, b in ((x, x), (x, at), (at, at)))
    weights = np.linalg.solve(seen + 1e-6 * np.eye(5), there.T).T
    covariance = here - weights @ there.T
    return P.plot_band(x, weights @ np.sin(at), covariance=covariance, observed=np.sin(at), at=at)


# -- hidden groups --------------------------------------------------------------------------------------------------------


@cache
def cloud() -> Any:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in ((0, 0), (5, 1), (2, 6))])


@cache
def mixture() -> Any:
    return mk.GaussianMixture(3, random_state=0).fit(cloud())


@picture
def plot_clusters() -> Any:
    return mixture().plot(cloud(), title="three groups")


@cache
def choice() -> Any:
    return mk.mixtures.choose_components(mk.GaussianMixture(random_state=0), cloud(), range(1, 5))


@picture
def plot_component_choice() -> Any:
    return choice().plot()


@picture
def plot_partition() -> Any:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20) + np.zeros((30, 1), dtype=int)
    labels[rng.random(labels.shape) < 0.1] = 3
    return PartitionPosterior(labels).plot()


@cache
def curve() -> Any:
    x = np.array([[0.0], [0.5], [2.0]])
    return mk.GaussianProcess(mk.covariances.RBF(1.0) + mk.covariances.White(0.1)).fit(x, [1.0, 0.2, -0.7])


@picture
def plot_gaussian_process() -> Any:
    return curve().plot(title="three rows")


@picture
def plot_function_values() -> Any:
    return curve().function().at(np.linspace(-1.0, 3.0, 50)).plot()


@cache
def search() -> Any:
    space = {"kind": {"a": {}, "b": {"z": (1, 5)}}, "x": (1e-3, 1e3, "log"), "y": (0.0, 1.0)}
    found = mk.bayesopt.minimize(lambda p: np.log10(p["x"]) ** 2 + p["y"] + p.get("z", 0), space, 10, seed=0)
    found.tell({"kind": "a", "x": 900.0, "y": 0.5}, None)
    return found


@picture
def plot_study() -> Any:
    return search().plot()


@picture
def plot_study__slices() -> Any:
    return search().plot("slices")


@picture
def plot_study__surrogate() -> Any:
    return search().plot("surrogate", parameters=["x", "y"])


@cache
def slot_machines() -> Any:
    machines = [mk.exponential.Bernoulli(p) for p in (0.3, 0.5, 0.6)]
    return mk.control.Bandit(mk.exponential.Beta(1, 1), ["left", "middle", "right"], seed=0).play(
        machines, 80, progress=False
    )


@picture
def plot_bandit() -> Any:
    return slot_machines().plot()


@picture
def plot_bandit__arms() -> Any:
    return slot_machines().plot("arms")


@picture
def plot_process() -> Any:
    return mk.processes.ChineseRestaurant(2.0).plot(50)


@picture
def plot_process__sticks() -> Any:
    return mk.processes.GEM(2.0).plot()


@cache
def features() -> Any:
    parts = np.random.default_rng(0).normal(size=(40, 6)) * 0.1
    parts[:20, :3] += 3
    parts[10:30, 3:] -= 2
    return mk.LatentFeatures(max_iter=20, random_state=0).fit(parts)


@picture
def plot_latent_features() -> Any:
    return features().plot(shape=(2, 3))


@picture
def plot_latent_features__lines() -> Any:
    return features().plot()


TEXTS = [["cat", "dog", "fur"] * 3, ["sun", "rain", "wind"] * 3, ["cat", "sun", "fur"] * 3] * 6


@cache
def topics() -> Any:
    return mk.LDA(3, max_iter=40, doc_topic_prior=0.1, topic_word_prior=0.1, random_state=0).fit(TEXTS)


@picture
def plot_topics() -> Any:
    return topics().plot_topics(3, title="three topics")


@picture
def plot_topic_map() -> Any:
    return topics().plot_map()


@picture
def plot_documents() -> Any:
    return topics().plot_documents(TEXTS[:6])


@cache
def tree() -> Any:
    return mk.topics.HierarchicalLDA(depth=2, max_iter=20, random_state=0).fit(TEXTS)


@picture
def plot_topic_tree() -> Any:
    return tree().plot_tree(3, title="a tree")


@cache
def over_time() -> Any:
    years = np.repeat([2000, 2001, 2002], 6)
    return mk.topics.DynamicTopics(2, tol=0.1, random_state=0).fit(TEXTS, years), years


@picture
def plot_words_over_time() -> Any:
    return over_time()[0].plot_words(0, 4)


@picture
def plot_topics_over_time() -> Any:
    model, years = over_time()
    return model.plot_shares(TEXTS, years)


# -- causes and effects -----------------------------------------------------------------------------------------------------


@cache
def effect() -> Any:
    world = mk.causal.simulated_worlds.lalonde_like(300, seed=1)
    return mk.causal.effect(world.frame, world.graph, "t", "y", method="regression")


@picture
def plot_effects() -> Any:
    return effect().plot()


@picture
def plot_balance() -> Any:
    return effect().balance().plot()


@picture
def plot_propensity() -> Any:
    return mk.causal.propensity_score(effect().frame, "t", effect().adjustment).plot()


@picture
def plot_sensitivity() -> Any:
    return effect().sensitivity().plot()


@cache
def report() -> Any:
    return effect().report(repetitions=5)


@picture
def plot_effect_report() -> Any:
    return report().plot()


@picture
def plot_event_study() -> Any:
    rng = np.random.default_rng(0)
    shop, year = np.repeat(np.arange(60), 6), np.tile(np.arange(2001, 2007), 60)
    first = np.array([2004, 2005, np.nan])[shop % 3]
    rows = {"shop": shop, "year": year, "first": first, "sales": 2.0 * (year >= first) + rng.normal(size=360)}
    return mk.causal.staggered_differences(rows, "sales", unit="shop", period="year", start="first").plot()


@picture
def plot_dose_response() -> Any:
    rng = np.random.default_rng(0)
    dose = rng.normal(size=300)
    rows = {"dose": dose, "health": np.sin(dose) + rng.normal(size=300)}
    return mk.causal.effect(rows, "dose -> health", "dose", "health").dose_response().plot()


@picture
def plot_synthetic_control() -> Any:
    import pandas as pd

    rng = np.random.default_rng(0)
    years = np.arange(2000, 2015)
    common = np.cumsum(rng.normal(size=15))
    frame = pd.DataFrame(
        [
            {"region": f"u{u}", "year": y, "sales": s + 3.0 * (u == 0 and y >= 2010)}
            for u in range(8)
            for y, s in zip(years, common * (0.6 + u / 8) + rng.normal(0, 0.3, 15), strict=True)
        ]
    )
    return mk.causal.synthetic_control(
        frame, "sales", unit="region", time="year", treated="u0", start=2010
    ).plot()
