"""Who may say that an answer is exact: exact engines and closed forms, over the public results of every family.

Each result is made with two seeds. Where the numbers differ they were drawn, and the answer must not claim to be exact;
where it claims so it has to agree with an answer got by another road.
"""

import ast
import warnings
from itertools import combinations, permutations
from math import lgamma
from pathlib import Path

import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.inference.engine import engine_names, get_engine
from markovia.inference.map_bounds.certified import Certified
from markovia.models.temporal.dynamic.dynamic_answers import Beliefs

RNG = np.random.default_rng(7)
BLOBS = RNG.normal(size=(24, 2)) + np.repeat([[0.0, 3.0], [4.0, -1.0], [1.5, 1.0]], [5, 12, 7], axis=0)
TEXTS = [["cat", "dog", "pet"], ["dog", "pet"], ["tree", "leaf", "cat"], ["leaf", "root", "tree", "tree"]] * 3
SERIES = RNG.normal(np.repeat([0.0, 2.0, -1.0], [9, 14, 7]), 0.9)
ASIA = mk.examples.asia()
ROWS = ASIA.sample(120, seed=3)[["smoke", "lung", "bronc", "dysp"]]
FINDINGS = {"dysp": "yes", "asia": "yes"}

rain = mk.DynamicBayesianNetwork()
rain.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.8, 0.2], [0.35, 0.65]], initial=[0.7, 0.3])
rain.add(
    "wind",
    states=3,
    parents=["wind@-1", "rain"],
    p=RNG.dirichlet(np.ones(3), (3, 2)),
    initial=[[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]],
)
rain.add("umbrella", states=["no", "yes"], parents=["rain", "wind"], p=RNG.dirichlet(np.ones(2), (2, 3)))
SEEN = {"umbrella": ["yes", "no", "yes", "yes", "no"]}

walk = mk.DynamicBayesianNetwork()
walk.add("level", mk.LinearGaussian(0.2, {"level@-1": 0.9}, 0.5), initial=mk.LinearGaussian(1.0, {}, 3.0))
walk.add("seen", mk.LinearGaussian(0.0, {"level": 1.3}, 0.7))

loads = {
    "start": [[0.6, 0.4], [0.9, 0.1]],
    "transition": [[[0.9, 0.1], [0.3, 0.7]], [[0.8, 0.2], [0.1, 0.9]]],
    "emission_params": {"means": [[[0.0], [1.0]], [[0.5], [4.0]]], "covariance": [[0.3]]},
}  # fmt: skip

equations = mk.StructuralModel()
equations.add("x", dist.Normal(0.5, 1.2))
equations.add("y", lambda x, e: np.exp(0.3 * x) + e, noise=dist.Normal(0, 2))
equations.add("z", lambda x, y, e: x * y + e, noise=dist.Normal(0, 1))

GAME = mk.BayesianNetwork()
GAME.add("a", RNG.dirichlet(np.full(3, 4.0)), states=3)
GAME.add("b", RNG.dirichlet(np.full(2, 4.0), 3), states=2, parents=["a"])
GAME.add("m", RNG.dirichlet(np.full(3, 4.0), 2), states=3, parents=["b"])
GAME.add("c", RNG.dirichlet(np.full(3, 4.0), (3, 3)), states=3, parents=["a", "m"])
EFFECT = mk.causal.identify(GAME, treatment="b", outcome="c")
PLAN = mk.causal.identify_plan(GAME, {"b": ["a"]}, "c")
HAD = mk.causal.identify_counterfactual(
    "a -> b -> c; a -> c", mk.causal.Event("c", do={"b": 0}), given=mk.causal.Event("b", 1)
)


class Drawing(mk.BayesianNetwork):
    """A network whose questions are answered by draws unless another engine is named."""

    seed = 0

    def query(self, targets, given=None, engine=None):
        return super().query(
            targets, given=given, engine=engine or mk.engines.LikelihoodWeighting(draws=5_000, seed=self.seed)
        )


def drawing(network, seed):
    found = Drawing()
    for name in network.variables:
        found.add(name, network[name].values, states=network.states(name), parents=network.parents(name))
    found.seed = seed
    return found


SAMPLED = {
    "topics of an HDP, direct": lambda s: mk.HDP(40, random_state=s).fit(TEXTS).n_components_posterior(),
    "topics of an HDP, franchise": lambda s: (
        mk.HDP(40, method="franchise", random_state=s).fit(TEXTS).n_components_posterior()
    ),
    "groups of a Dirichlet process": lambda s: (
        mk.DirichletProcessMixture(max_iter=60, random_state=s).fit(BLOBS).posterior_.n_clusters()
    ),
    "groups of a mixture by Gibbs sampling": lambda s: (
        mk.Mixture("gaussian", 6, method="gibbs", max_iter=60, random_state=s).fit(BLOBS).posterior_.n_clusters()
    ),
    "groups of a mixture by collapsed Gibbs sampling": lambda s: (
        mk.Mixture("gaussian", 6, method="collapsed-gibbs", max_iter=60, random_state=s).fit(BLOBS).posterior_.n_clusters()
    ),
    "states of an infinite HMM": lambda s: (
        mk.series.InfiniteHMM("gaussian", max_iter=40, random_state=s).fit(SERIES).n_states_posterior()
    ),
    "states of an infinite HMM as groups": lambda s: (
        mk.series.InfiniteHMM("gaussian", max_iter=40, random_state=s).fit(SERIES).partition_posterior().n_clusters()
    ),
    "parameters of an HMM": lambda s: (
        mk.HMM(2, emission="gaussian").posterior([SERIES[:, None]], draws=20, warmup=5, chains=2, seed=s)
    ),
    "states of a dynamic network by particles": lambda s: (
        rain.filter(SEEN, targets="rain", engine="particles", particles=200, seed=s)
    ),
    "an answer over drawn networks": lambda s: (
        mk.BayesianNetwork(ASIA.edges)
        .fit(ASIA.sample(80, seed=2), prior="k2")
        .posterior_.query("lung", FINDINGS, n=20, seed=s)
    ),
    "edges by chains over orders": lambda s: (
        mk.edge_posterior(ROWS, method="order-mcmc", steps=40, warmup=10, chains=2, seed=s)
    ),
    "edges by chains over graphs": lambda s: (
        mk.edge_posterior(ROWS, method="mcmc", steps=400, warmup=10, chains=2, seed=s)
    ),
    "an answer averaged over drawn graphs": lambda s: (
        mk.edge_posterior(ROWS, method="exact").query("lung", {"dysp": "yes"}, n=12, seed=s)
    ),
    "a counterfactual by draws of noises": lambda s: (
        equations.counterfactual("z", given={"y": 1.5}, do={"x": 1.0}, draws=400, seed=s)
    ),
    "an estimand of a network that draws": lambda s: EFFECT.evaluate(drawing(GAME, s), {"b": 1}),
    "a plan on a network that draws": lambda s: PLAN.evaluate(drawing(GAME, s), b=lambda a: a % 2),
    "a counterfactual estimand of a network that draws": lambda s: HAD.evaluate(drawing(GAME, s)),
}  # fmt: skip
"""Results of draws: the numbers depend on the seed."""


def numbers(answer):
    """What an answer says, as numbers; draws of different sizes differ by their first ones."""
    if hasattr(answer, "draws") and isinstance(answer.draws, dict):
        return np.concatenate([np.ravel(v) for v in answer.draws.values()])
    if isinstance(answer, Beliefs):
        return np.concatenate([v.ravel() for n in answer for v in answer[n]])
    if hasattr(answer, "names") and hasattr(answer, "method") and hasattr(answer, "r_hat"):
        return np.array([[answer[a, b] if a != b else 0.0 for b in answer.names] for a in answer.names])
    if hasattr(answer, "to_dict"):
        return np.array([[k if isinstance(k, int) else 0, v] for k, v in answer.to_dict().items()])
    return np.array([answer.mean()])


def claims(answer):
    return answer.info.exact if hasattr(answer, "info") else answer.exact


@pytest.mark.parametrize("name", SAMPLED)
def test_what_was_drawn_does_not_claim_to_be_exact(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = [SAMPLED[name](seed) for seed in range(2)]
        answers += [SAMPLED[name](seed) for seed in range(2, 5) if np.array_equal(*map(numbers, answers[:2]))]
    differ = any(not np.array_equal(numbers(answers[0]), numbers(a)) for a in answers[1:])
    assert differ, "the seed changes nothing here, so that this does not look at draws"
    assert not any(map(claims, answers))
    assert "approximate" in str(getattr(answers[0], "info", "approximate"))


def game_joint():
    """P(a, b, m, c) by multiplication."""
    tables = {n: np.asarray(GAME[n].values) for n in "abmc"}
    return np.einsum("a,ab,bm,amc->abmc", tables["a"], tables["b"], tables["m"], tables["c"])


def effect_by_sums(b):
    p = game_joint()
    given = p.sum(axis=2) / p.sum(axis=(2, 3))[..., None]  # P(c | a, b)
    return np.einsum("a,ac->c", p.sum(axis=(1, 2, 3)), given[:, b])


def plan_by_sums():
    p = game_joint()
    given = p.sum(axis=2) / p.sum(axis=(2, 3))[..., None]
    return sum(p.sum(axis=(1, 2, 3))[a] * given[a, a % 2] for a in range(3))


def had_by_sums():
    p = game_joint()
    given = p.sum(axis=2) / p.sum(axis=(2, 3))[..., None]
    a_given = p.sum(axis=(2, 3))[:, 1] / p.sum(axis=(0, 2, 3))[1]
    return a_given @ given[:, 0]


def unrolled(name, step):
    given = {f"umbrella@{t}": v for t, v in enumerate(SEEN["umbrella"])}
    return rain.unroll(5).query(f"{name}@{step}", given=given, engine="enumeration").values


def levels():
    """The means of the levels, by one Gaussian over all steps."""
    n, y = 4, np.array([1.0, -0.5, 2.5, 3.0])
    mean, cov = [1.0], np.zeros((n, n))
    variance = [3.0]
    for _ in range(n - 1):
        mean.append(0.2 + 0.9 * mean[-1])
        variance.append(0.81 * variance[-1] + 0.5)
    for i in range(n):
        for j in range(n):
            cov[i, j] = variance[min(i, j)] * 0.9 ** abs(i - j)
    gain = 1.3 * cov @ np.linalg.inv(1.69 * cov + 0.7 * np.eye(n))
    return np.array(mean) + gain @ (y - 1.3 * np.array(mean))


def streamed():
    stream = rain.stream()
    for seen in SEEN["umbrella"]:
        found = stream.update({"umbrella": seen})
    return found["rain"]


EXACT = {
    "states of a dynamic network": (
        lambda: rain.smooth(SEEN, targets="wind"), lambda a: a["wind"][0][2], lambda: unrolled("wind", 2)
    ),
    "one step after the other": (streamed, lambda a: a.values, lambda: unrolled("rain", 4)),
    "levels of a linear network": (
        lambda: walk.smooth({"seen": [1.0, -0.5, 2.5, 3.0]}), lambda a: a.mean["level"][0], levels
    ),
    "an estimand": (lambda: EFFECT.evaluate(GAME, {"b": 1}), lambda a: a.values, lambda: effect_by_sums(1)),
    "a plan": (lambda: PLAN.evaluate(GAME, b=lambda a: a % 2), lambda a: a.values, plan_by_sums),
    "a counterfactual estimand": (lambda: HAD.evaluate(GAME), lambda a: a.values, had_by_sums),
    "a counterfactual of a unit that is known": (
        lambda: equations.counterfactual("z", given={"x": 0.3, "y": 1.5, "z": 2.0}, do={"x": 1.0}),
        lambda a: a.mean(),
        lambda: (1.5 - np.exp(0.09) + np.exp(0.3)) + 2.0 - 0.3 * 1.5,
    ),
    "edges by sums over all orders": (
        lambda: mk.edge_posterior(ROWS[["smoke", "lung", "bronc"]], method="exact"),
        lambda a: a.log_evidence,
        lambda: log_weight_of_orders(ROWS[["smoke", "lung", "bronc"]]),
    ),
    "derivatives of a query": (
        lambda: GAME.sensitivity("c=2", given={"b": 1}), lambda a: a.probability, lambda: given_b(1)[2]
    ),
}  # fmt: skip
"""Results that claim to be exact: how they are asked for, the numbers looked at, and the same by another road."""


def given_b(b):
    p = game_joint().sum(axis=(0, 2))
    return p[b] / p[b].sum()


def bdeu(rows, child, parents):
    """The log of the rows' probability in a family, equivalent sample size 10, by counting."""
    cells = int(np.prod([rows[n].nunique() for n in parents], dtype=int))
    each = 10.0 / cells / rows[child].nunique()
    groups = [rows[child]] if not parents else [g[child] for _, g in rows.groupby(list(parents))]
    total = 0.0
    for own in groups:
        counts = own.value_counts()
        total += sum(lgamma(c + each) - lgamma(each) for c in counts)
        total += lgamma(10.0 / cells) - lgamma(10.0 / cells + len(own))
    return total


def log_weight_of_orders(rows):
    """The log of the mean over orders of the product of sums over parent sets, by enumeration."""
    orders = []
    for order in permutations(rows):
        before = {child: order[:i] for i, child in enumerate(order)}
        sets = {c: [s for k in range(len(b) + 1) for s in combinations(b, k)] for c, b in before.items()}
        orders.append(sum(np.logaddexp.reduce([bdeu(rows, c, s) for s in own]) for c, own in sets.items()))
    return np.logaddexp.reduce(orders) - np.log(len(orders))


@pytest.mark.parametrize("name", EXACT)
def test_what_claims_to_be_exact_agrees_with_another_road(name):
    ask, read, reference = EXACT[name]
    answer = ask()
    assert claims(answer)
    assert read(answer) == pytest.approx(reference(), rel=1e-9, abs=1e-12)


def test_a_factorial_chain_is_exact_by_its_joint_states_alone():
    rows = [0.1, 1.2, 4.4, 0.3]
    joint, field = (mk.series.FactorialHMM([2, 2], method=m, **loads) for m in ("exact", "mean-field"))
    exact, bound = joint.explain(rows), field.explain(rows)
    assert exact.exact
    assert not bound.exact
    assert bound.log_evidence < exact.log_evidence - 1e-6


def test_every_engine_that_claims_an_exact_answer_gives_the_one_of_enumeration():
    rng = np.random.default_rng(2)
    pairs = [((i, j), (i + 1, j)) for i in range(3) for j in range(4)]
    pairs += [((i, j), (i, j + 1)) for i in range(4) for j in range(3)]
    factors = [mk.Factor([f"{a}", f"{b}"], rng.uniform(0.2, 2.0, (2, 2))) for a, b in pairs]
    grid = mk.MarkovNetwork({f"{(i, j)}": 2 for i in range(4) for j in range(4)}, factors)
    truth = grid.query("(2, 1)", given={"(0, 3)": 1}, engine="enumeration").values
    claimed = {}
    for name in engine_names():
        if "distribution" in getattr(get_engine(name), "kinds", ()):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                answer = grid.query("(2, 1)", given={"(0, 3)": 1}, engine=name)
            except mk.MarkoviaError:
                continue
        if answer.info.exact:
            assert answer.values == pytest.approx(truth, rel=1e-9)
        else:
            assert abs(answer.values - truth).max() > 1e-9, f"{name} is exact and does not say so"
        claimed[name] = answer.info.engine if answer.info.exact else ""
    exact = {
        "conditioning", "enumeration", "gaussian", "junction-tree", "sliced-elimination", "variable-elimination",
    }  # fmt: skip
    trees = {"generalized-bp", "join-graph"}  # exact where their clusters form a tree, as they may here
    assert exact <= set(claimed.values()) <= exact | trees | {""}
    assert {claimed[name] for name in exact} == exact
    assert {"gibbs", "loopy-bp", "mean-field", "generalized-bp", "annealed-importance"} <= claimed.keys()


def test_every_engine_that_claims_the_best_configuration_has_the_one_of_enumeration():
    rng = np.random.default_rng(4)
    spins = mk.generators.ising_grid(4, 4, coupling="random", field="random", seed=1)
    wide = mk.MarkovNetwork(
        dict.fromkeys("abcdefg", 3),
        [
            mk.Factor(list(scope), rng.uniform(0.1, 3.0, (3, 3, 3)))
            for scope in ("abc", "bde", "cef", "adg", "fga")
        ],
    )
    claimed = set()
    proving = [n for n in engine_names() if get_engine(n).exact or isinstance(get_engine(n), Certified)]
    for model in (spins, wide):
        truth = model.map(engine="enumeration").log_weight
        for name in proving:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    best = model.map(engine=name)
                except mk.MarkoviaError:
                    continue
            assert best.log_weight <= truth + 1e-9
            assert best.log_weight + best.gap >= truth - 1e-9, name
            if best.info.exact:
                assert best.log_weight == pytest.approx(truth, abs=1e-8), name
                claimed.add(name)
    assert {"a-star", "beam", "junction-tree", "dual-decomposition"} <= claimed
    assert {"quadratic-program", "relaxation-labelling", "expansion-shrink"} <= {*proving} - claimed


CLAIMS = {
    "exact/calibrated_tree.py": "belief propagation on a junction tree",
    "markov_chains/chain_runs.py": "a question about nothing",
    "local_search/local_search.py": "nothing left to search",
    "local_search/search_space.py": "nothing left to search",
    "local_search/map_search.py": "the junction tree answered",
    "map_bounds/certified.py": "impossible evidence",
    "message_passing/join_graph.py": "the junction tree answered",
    "draws/density_engine.py": "all numbers are summed out",
    "gaussian/exact_function.py": "a Gaussian process given normal values, by Cholesky factors",
    "gaussian/markov_posterior.py": "a Markov covariance, by the Kalman filter",
    "processes/blocked_evidence.py": "a Gaussian process, by Cholesky factors in blocks",
    "processes/grid_evidence.py": "a Gaussian process on a whole grid, by Kronecker and circulant factors",
    "gaussian/evidence_rows.py": "strong elimination, an exact engine",
    "gaussian/mixture_questions.py": "strong elimination, an exact engine",
    "dynamic/dynamic_stream.py": "the interface algorithm",
    "dynamic/dynamic_inference.py": "the interface algorithm",
    "dynamic/dynamic_gaussian.py": "the Kalman filter",
    "temporal/factorial_hmm.py": "forward-backward over joint states",
    "tables/table_posterior.py": "Dirichlet rows in closed form",
    "graphical/posterior_network.py": "conjugate regressions and tables in closed form",
    "graphical/question_verbs.py": "derivatives by bucket elimination; Gaussian elimination",
    "documents/answers.py": "nothing was asked",
    "processes/finite_horizon.py": "backward induction over all steps",
    "processes/soft_values.py": "backward messages over all steps",
    "processes/occupancy_program.py": "a linear program whose answer is evaluated exactly, with its gap",
    "numbers/linear_quadratic.py": "Riccati recursions; converged says whether a fixed point was reached",
    "control/decisions_of_numbers.py": "linear-quadratic Gaussian teams, by one linear system",
}
"""Files that say `exact=True` of an answer in so many words, and why they may."""


def test_no_other_file_says_of_an_answer_in_so_many_words_that_it_is_exact():
    root, found = Path(mk.__file__).parent, set()
    for path in root.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "exact=True" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "Info",
                "Record",
                "m.Info",
                "replace",
            ):
                said = [k.value for k in node.keywords if k.arg == "exact"]
                if any(isinstance(v, ast.Constant) and v.value is True for v in said):
                    found.add("/".join(path.parts[-2:]))
    assert found == CLAIMS.keys()
