"""Every sampler of partitions against the exact posterior, and against its own model (Geweke)."""

import numpy as np
import pytest

from markovia.errors import InvalidArgument
from markovia.factors.processes.chinese_restaurant import ChineseRestaurant
from markovia.factors.processes.law import labels_of, set_partitions
from markovia.inference.collapsed.algorithm_8 import AlgorithmEight
from markovia.inference.collapsed.collapsed_gibbs import CollapsedGibbs, FiniteCollapsedGibbs
from markovia.inference.collapsed.concentrations import Concentration
from markovia.inference.collapsed.sampler_runs import run_sampler
from markovia.learning.components.conjugate_priors import conjugate_component
from markovia.learning.latent.base_measures import ConjugateMeasure, DistributionMeasure
from markovia.learning.latent.slice_sampler import SliceSampler
from markovia.learning.latent.uncollapsed_gibbs import BlockedGibbs, FiniteGibbs, one_hot
from markovia.learning.latent.variational_mixture import DirichletWeights, StickWeights, variational_mixture
from markovia.runtime.seeds import kernel_seed

N = 6
PARTITIONS = set_partitions(N)
PLACE = {tuple(p): i for i, p in enumerate(PARTITIONS.tolist())}


def families(n=N, seed=0):
    rng = np.random.default_rng(seed)
    numbers = np.concatenate([rng.normal(-2, 1, (n // 2, 2)), rng.normal(1.5, 1, (n - n // 2, 2))])
    bits, counts = rng.integers(0, 2, (n, 3)) * 1.0, rng.poisson(2, (n, 3)) * 1.0
    codes = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 2, n)])
    weak = {"strength": 0.5}
    return {
        "gaussian": (conjugate_component("gaussian", numbers, weak), numbers),
        "diagonal": (conjugate_component("gaussian", numbers, weak, diagonal=True), numbers),
        "bernoulli": (conjugate_component("bernoulli", bits, {"a": 0.5, "b": 0.7}), bits),
        "categorical": (
            conjugate_component("categorical", codes, {"concentration": 0.6}, levels=(3, 2)),
            codes,
        ),
        "multinomial": (conjugate_component("multinomial", counts, {"concentration": 0.6}), counts),
        "poisson": (conjugate_component("poisson", counts), counts),
    }


def seen_by(family, rows):
    component, prior = family
    return component.collapsed(rows, prior)


def log_marginal(family, rows, belongs):
    """The log probability of rows given their groups by log normalisers, less what is the same for all groups."""
    component, prior = family
    return component.log_marginal(component.posterior(rows, belongs, prior), prior).sum()


def sampler(name, family, rows, law):
    labels = np.zeros(len(rows), dtype=np.int64)
    if name == "collapsed":
        return CollapsedGibbs(seen_by(family, rows), labels, law, split_merges=0)
    if name == "split-merge":
        return CollapsedGibbs(seen_by(family, rows), labels, law, split_merges=3)
    if name == "algorithm-8":
        return AlgorithmEight(ConjugateMeasure(*family, rows), labels, law, np.random.default_rng(0))
    if name == "slice":
        return SliceSampler(*family, rows, labels, law)
    return BlockedGibbs(*family, rows, labels, 80 if law.discount else 25, law)


SAMPLERS = ("collapsed", "split-merge", "algorithm-8", "slice", "blocked")


def exact(family, rows, law):
    """The posterior by enumeration, the marginals of groups by log normalisers and not by the sampler's kernels."""
    logs = []
    for labels in PARTITIONS:
        k = labels.max() + 1
        fit = log_marginal(family, rows, one_hot(labels, k))
        logs.append(ChineseRestaurant(law.value, law.discount).log_prob(labels) + fit)
    found = np.exp(np.array(logs) - max(logs))
    return found / found.sum()


def visited(chain, sweeps, seed):
    rng, found = np.random.default_rng(seed), np.zeros(len(PARTITIONS))
    for _ in range(sweeps):
        chain.sweep(rng)
        found[PLACE[tuple(labels_of(chain.labels).tolist())]] += 1
    return found / sweeps


def expected_distance(p, draws):
    """Of independent draws, on average."""
    return 0.5 * np.sqrt(2 / np.pi * p * (1 - p) / draws).sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "discount"),
    [(n, k, d) for n in SAMPLERS for k, d in (("gaussian", 0.0), ("bernoulli", 0.3))]
    # rows are taken out of their group in a way of their own in each family
    + [("collapsed", k, 0.0) for k in ("diagonal", "categorical", "multinomial", "poisson")],
)
def test_visits_of_partitions_are_within_twice_the_error_of_independent_draws(name, kind, discount):
    family, rows = families()[kind]
    law = Concentration(1.0, None, discount)
    p = exact(family, rows, law)
    sweeps = 1500
    distance = 0.5 * abs(visited(sampler(name, family, rows, law), sweeps, 1) - p).sum()
    assert distance < 2.0 * expected_distance(p, sweeps)


class SplitsAndMerges(CollapsedGibbs):
    """Proposals to split and to merge without the draws of single rows, which would hide what is wrong with them."""

    def sweep(self, rng):
        at = np.array([self.used, self.split_merges, len(self.labels), *self.moves])  # no row is left to draw
        law = self.concentration
        done = self.data.swept(
            self.labels, self.stats, self.slots, at, (law.value, law.discount), finite=False, seed=kernel_seed(rng),
            crowd=self._crowd,
        )  # fmt: skip
        assert done is not None
        self.used, self._log_density, self.moves = int(at[0]), done, at[3:]


@pytest.mark.parametrize(
    ("kind", "value", "discount"), [("gaussian", 1.6, 0.0), ("bernoulli", 0.7, 0.3), ("poisson", 2.5, 0.15)]
)
def test_splits_and_merges_alone_leave_the_posterior_of_partitions(kind, value, discount):
    family, rows = families()[kind]
    law = Concentration(value, None, discount)
    p = exact(family, rows, law)
    chain = SplitsAndMerges(seen_by(family, rows), np.array([0, 1, 0, 2, 1, 0]), law, split_merges=4)
    found = visited(chain, 3_000, 5)
    # neighbouring draws are alike where few proposals are taken: 2.5 times the error of independent ones
    assert 0.5 * abs(found - p).sum() < 2.5 * expected_distance(p, 3_000)
    number = PARTITIONS.max(axis=1) + 1
    assert found @ number == pytest.approx(p @ number, rel=0.04)
    assert chain.moves[0] > 100 < chain.moves[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("kind", families())
@pytest.mark.parametrize("discount", [0.0, 0.3])
def test_long_chains_visit_partitions_as_they_should(name, kind, discount):
    family, rows = families(seed=3)[kind]
    law = Concentration(0.8, None, discount)
    p = exact(family, rows, law)
    distance = 0.5 * abs(visited(sampler(name, family, rows, law), 20_000, 2) - p).sum()
    assert distance < 1.6 * expected_distance(p, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("collapsed", [True, False])
def test_finite_mixtures_visit_labels_as_they_should(kind, collapsed):
    family, rows = families()[kind]
    k, a = 3, 0.7
    every = np.stack(np.meshgrid(*[np.arange(k)] * N, indexing="ij"), axis=-1).reshape(-1, N)
    from scipy.special import gammaln

    logs = []
    for labels in every:
        sizes = np.bincount(labels, minlength=k)
        fit = log_marginal(family, rows, one_hot(labels, k))
        logs.append(gammaln(sizes + a).sum() + fit)
    p = np.zeros(len(PARTITIONS))
    for labels, weight in zip(every, np.exp(np.array(logs) - max(logs)), strict=True):
        p[PLACE[tuple(labels_of(labels).tolist())]] += weight
    p /= p.sum()
    begin = np.zeros(N, dtype=np.int64)
    chain = (
        FiniteCollapsedGibbs(seen_by(family, rows), begin, k, a)
        if collapsed
        else FiniteGibbs(*family, rows, begin, k, a)
    )
    assert 0.5 * abs(visited(chain, 1500, 4) - p).sum() < 2.0 * expected_distance(p, 1500)


@pytest.mark.slow
def test_parameters_without_conjugate_priors_give_the_same_partitions_as_quadrature():
    import markovia.distributions as dist

    rows = np.array([[-1.5], [-0.7], [0.4], [2.2], [2.6]])
    measure = DistributionMeasure(
        dist.Laplace, rows, {"loc": dist.Normal(0, 2), "scale": dist.LogNormal(0, 0.5)}
    )
    loc, log_scale = np.meshgrid(np.linspace(-9, 9, 361), np.linspace(-2.5, 2.5, 81), indexing="ij")
    prior = np.exp(-(loc**2) / 8 - log_scale**2 / 0.5).ravel()
    scale = np.exp(log_scale).ravel()
    dens = np.exp(-abs(rows - loc.ravel()) / scale) / (2 * scale)
    every = set_partitions(5)
    p = []
    for labels in every:
        fit = [(prior * dens[labels == c].prod(axis=0)).sum() / prior.sum() for c in range(labels.max() + 1)]
        p.append(np.exp(ChineseRestaurant(1.0).log_prob(labels)) * np.prod(fit))
    p = np.array(p) / sum(p)
    chain = AlgorithmEight(measure, np.zeros(5, dtype=np.int64), Concentration(1.0), np.random.default_rng(0))
    rng, found = np.random.default_rng(1), np.zeros(len(every))
    place = {tuple(z): i for i, z in enumerate(every.tolist())}
    for _ in range(1500):
        chain.sweep(rng)
        found[place[tuple(labels_of(chain.labels).tolist())]] += 1
    # the walk of parameters makes neighbouring draws alike: three times the error of independent ones
    assert 0.5 * abs(found / 1500 - p).sum() < 3.0 * expected_distance(p, 1500)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SAMPLERS, "finite", "finite-collapsed"])
def test_drawing_rows_and_sweeping_in_turn_keeps_the_prior(name):
    """Geweke (2004): sizes of groups and rows, under the model alone and along a chain that redraws the rows."""
    n, k, a, b = 5, 3, 0.8, 1.3
    rng = np.random.default_rng(7)
    family = conjugate_component("bernoulli", np.zeros((1, 2)), {"a": a, "b": b})
    prior = None if name.startswith("finite") else (2.0, 2.0)

    def rows_of(labels):
        component, believed = family
        probs = component.drawn(component.prior_law(believed, labels.max() + 1), rng).probs
        return (rng.random((n, 2)) < probs[labels]) * 1.0

    def facts(labels, rows, value):
        sizes = np.bincount(labels)
        same = (labels[0] == labels[1]) * (rows[0, 0] == rows[1, 0])
        return [(sizes > 0).sum(), (sizes**2).sum(), rows.sum(), same, value, value**2]

    alone = []
    for _ in range(2400):
        if prior is None:
            labels, value = rng.choice(k, n, p=rng.dirichlet(np.full(k, 0.7))), 0.0
        else:
            value = rng.gamma(2.0) / 2.0
            labels = ChineseRestaurant(value).sample(n, rng)
        alone.append(facts(labels, rows_of(labels), value))
    labels, rows = np.zeros(n, dtype=np.int64), None
    rows, law, along = rows_of(labels), Concentration(1.0, prior), []
    for _ in range(2400):
        if name == "finite":
            chain = FiniteGibbs(*family, rows, labels, k, 0.7)
        elif name == "finite-collapsed":
            chain = FiniteCollapsedGibbs(seen_by(family, rows), labels, k, 0.7)
        else:
            chain = sampler(name, family, rows, law)
            chain.restore({**chain.state(), "labels": labels, **law.state()})
            if name == "algorithm-8":
                chain.params = chain.measure.moved({"probs": np.zeros((labels.max() + 1, 2))}, labels, rng)
        chain.sweep(rng)
        labels = chain.labels.copy()
        rows = rows_of(labels)
        along.append(facts(labels, rows, law.value if prior else 0.0))
    alone, along = np.array(alone), np.array(along)
    batches = along.reshape(40, 60, -1).mean(axis=1)  # neighbouring draws depend on each other
    error = np.sqrt(alone.var(axis=0) / len(alone) + batches.var(axis=0, ddof=1) / 40)
    apart = abs(alone.mean(axis=0) - along.mean(axis=0))
    assert (apart <= 4.0 * error + 1e-12).all(), apart / np.maximum(error, 1e-12)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_run_that_is_cut_and_goes_on_ends_where_one_that_is_not_does(name, tmp_path):
    family, rows = families(30)["gaussian"]

    def run(sweeps, **options):
        rng = np.random.default_rng(5)
        chain = sampler(name, family, rows, Concentration(1.0, (1.0, 1.0)))
        return run_sampler(chain, sweeps, rng, keep=lambda: chain.state(), **options)

    whole = run(12)
    run(7, checkpoint=tmp_path / "chain.npz")
    resumed = run(12, checkpoint=tmp_path / "chain.npz")
    np.testing.assert_array_equal(whole.history, resumed.history)
    for one, other in zip(whole.draws, resumed.draws, strict=True):
        np.testing.assert_array_equal(one["labels"], other["labels"])


def test_more_groups_than_slots_make_room():
    family, rows = families(60)["gaussian"]
    begin = np.zeros(60, dtype=np.int64)
    chain = CollapsedGibbs(seen_by(family, rows), begin, Concentration(1e9), split_merges=2)
    chain.sweep(np.random.default_rng(0))
    assert len(np.unique(chain.labels)) > 50
    assert chain.log_prob() == pytest.approx(
        seen_by(family, rows).log_marginal(chain.labels) + ChineseRestaurant(1e9).log_prob(chain.labels)
    )


LABELS = np.array([0, 0, 1, 1, 2, 0])


@pytest.mark.parametrize("kind", families())
def test_rows_one_by_one_are_worth_what_log_normalisers_say(kind):
    family, rows = families()[kind]
    whole = log_marginal(family, rows, one_hot(LABELS, 3))
    assert seen_by(family, rows).log_marginal(LABELS) == pytest.approx(whole, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", families())
def test_draws_agree_with_predictive_densities_and_expected_logs(kind):
    family, rows = families()[kind]
    (component, prior), rng = family, np.random.default_rng(2)
    weights = one_hot(LABELS, 3)
    draws = [component.redrawn(rows, weights, prior, rng) for _ in range(1500)]
    logs = np.array([drawn.log_densities(rows) for drawn in draws])
    error = logs.std(axis=0) / np.sqrt(len(logs))
    law = component.posterior(rows, weights, prior)
    assert (abs(logs.mean(axis=0) - component.expected_logs(law, rows)) < 4.5 * error).all()
    data = seen_by(family, rows)
    base = np.reshape(component.base(rows), (-1, 1))
    expected = np.exp(data.log_predictive(data.statistics(LABELS))[:, :3] + base)
    dens = np.exp(logs)
    assert (abs(dens.mean(axis=0) - expected) < 4.5 * dens.std(axis=0) / np.sqrt(len(logs))).all()


@pytest.mark.parametrize("kind", families())
def test_the_variational_bound_never_falls_and_stays_below_the_evidence(kind):
    family, rows = families()[kind]
    rng = np.random.default_rng(0)
    every = np.stack(np.meshgrid(*[np.arange(3)] * len(rows), indexing="ij"), axis=-1).reshape(-1, len(rows))
    from scipy.special import gammaln, logsumexp

    data, a = seen_by(family, rows), 0.4
    logs = []
    for labels in every:
        sizes = np.bincount(labels, minlength=3)
        law = gammaln(sizes + a).sum() - 3 * gammaln(a) + gammaln(3 * a) - gammaln(len(rows) + 3 * a)
        logs.append(law + data.log_marginal(labels))
    evidence = logsumexp(logs) + np.sum(family[0].base(rows))
    for weights in (
        DirichletWeights(a),
        StickWeights(1.0),
        StickWeights(1.0, (2.0, 3.0)),
        StickWeights(1.0, None, 0.2),
    ):
        found = variational_mixture(
            *family, rows, weights, rng.dirichlet(np.ones(3), len(rows)), max_iter=50, tol=0
        )
        assert min(np.diff(found.history), default=0.0) > -1e-9
        if isinstance(weights, DirichletWeights):
            assert found.history[-1] < evidence < found.history[-1] + 12.0


@pytest.mark.parametrize(
    ("name", "prior", "said"),
    [
        ("gaussian", {"df": 0.5}, "above 1"),
        ("gaussian", {"scale": -1.0}, "positive definite"),
        ("gaussian", {"skale": 1.0}, "did you mean 'scale'"),
        ("poisson", {"rate": 0.0}, "above 0"),
        ("bernoulli", {"a": [1.0, 2.0, 3.0]}, "one a column"),
        ("bernoulli", [1.0], "mapping"),
    ],
)
def test_priors_that_cannot_be_are_refused(name, prior, said):
    with pytest.raises(InvalidArgument, match=said):
        conjugate_component(name, np.ones((4, 2)), prior)
