"""Dirichlet-process mixtures as estimators: what they find, predict, keep, and refuse."""

import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import markovia as mk
from markovia.errors import InvalidArgument

METHODS = ["collapsed-gibbs", "algorithm-8", "blocked", "slice", "variational"]


def blobs(n=240, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    return np.array([[-6.0, 0.0], [0.0, 6.0], [6.0, 0.0]])[z] + rng.normal(0, 0.6, (n, 2)), z


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_three_groups(method):
    X, z = blobs()
    found = mk.DirichletProcessMixture(method=method, max_iter=100, random_state=0).fit(X)
    assert found.n_components_ == 3
    assert found.posterior_.n_clusters().argmax() == 3
    assert adjusted_rand_score(z, found.labels_) > 0.98
    assert adjusted_rand_score(z, found.predict(X)) > 0.98
    np.testing.assert_allclose(found.weights_.sum(), 1.0)
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)
    near = found.means_[found.labels_[np.argmin(abs(X - [0.0, 6.0]).sum(axis=1))]]
    np.testing.assert_allclose(near, [0.0, 6.0], atol=0.25)
    assert len(found.history_) == found.n_iter_


@pytest.mark.parametrize("discount", [0.0, 0.4])
def test_predictive_densities_integrate_to_one_and_equal_the_average_over_draws(discount):
    X, _ = blobs(60)
    found = mk.DirichletProcessMixture(max_iter=40, random_state=1, concentration=0.7, discount=discount).fit(
        X
    )
    side = np.linspace(-40, 40, 200)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    mass = np.exp(found.score_samples(grid)).sum() * (side[1] - side[0]) ** 2
    assert mass == pytest.approx(1.0, abs=0.02)
    (component, prior), new, total = found._family, X[:5] + 0.3, 0.0
    posterior = found.posterior_.thinned(40)
    for labels in posterior.labels:
        data = component.collapsed(np.vstack([X, new]), prior)
        sizes = np.bincount(labels)
        for c in range(len(sizes) + 1):
            before = np.append(labels.astype(np.int64), np.full(5, -1))
            logs = [data.log_marginal(np.where(np.arange(65) == 60 + i, c, before)) for i in range(5)]
            share = sizes[c] - discount if c < len(sizes) else 0.7 + discount * len(sizes)
            density = np.exp(np.array(logs) - data.log_marginal(before))
            total = total + share / 60.7 * density / posterior.n_draws
    np.testing.assert_allclose(np.exp(found.score_samples(new)), total, rtol=1e-8)


def test_the_same_seed_gives_the_same_chain_and_a_file_goes_on(tmp_path):
    X, _ = blobs(80)
    make = mk.DirichletProcessMixture
    one, other = (make(max_iter=20, random_state=3).fit(X) for _ in range(2))
    assert one.history_ == other.history_
    np.testing.assert_array_equal(one.posterior_.labels, other.posterior_.labels)
    path = tmp_path / "run.npz"
    make(max_iter=8, burn_in=5, random_state=3, checkpoint=path).fit(X)
    resumed = make(max_iter=20, burn_in=5, random_state=3, checkpoint=path).fit(X)
    assert resumed.history_ == one.history_
    with pytest.raises(InvalidArgument, match="other data or settings"):
        make(max_iter=20, burn_in=5, random_state=4, checkpoint=path).fit(X)


def test_a_saved_mixture_answers_the_same(tmp_path):
    X, _ = blobs(80)
    found = mk.DirichletProcessMixture(max_iter=20, random_state=0).fit(X)
    found.save(tmp_path / "dpm.json")
    read = mk.load(tmp_path / "dpm.json")
    np.testing.assert_allclose(read.score_samples(X), found.score_samples(X))
    np.testing.assert_array_equal(read.predict(X), found.predict(X))
    assert read.posterior_.n_clusters().to_dict() == found.posterior_.n_clusters().to_dict()


def as_array(values):
    return {"array": np.ravel(values).tolist(), "type": "float64", "shape": list(np.shape(values))}


FORMER = {"bernoulli": "BernoulliFamily", "poisson": "PoissonFamily", "gaussian": "NormalFamily"}


@pytest.mark.parametrize("component", [*FORMER, "diagonal", "multinomial", "categorical"])
def test_a_file_of_version_0_1_that_keeps_the_prior_in_a_family_answers_the_same(component, tmp_path):
    X = np.random.default_rng(0).integers(1, 3, (12, 2)) - (component == "bernoulli")
    kind, path = component.replace("diagonal", "gaussian"), tmp_path / "dpm.json"
    shape = "diag" if component == "diagonal" else "full"
    made = mk.DirichletProcessMixture(kind, covariance_type=shape, max_iter=4, random_state=0).fit(X)
    made.save(path)
    content, width = json.loads(path.read_text()), 4 if kind == "categorical" else 2
    fields = {n: as_array(np.broadcast_to(v, width)) for n, v in made._family[1].items() if n != "scale"}
    if kind == "gaussian":
        fields |= {n: made._family[1][n] for n in ("strength", "df")} | {"diagonal": component == "diagonal"}
        fields["scale"] = as_array(made._family[1]["scale"])
    elif kind not in FORMER:
        levels = [2, 2] if kind == "categorical" else []
        fields = {"weights": fields["concentration"], "levels": {"tuple": levels}}
    content["learned"]["_family"] = {"object": FORMER.get(kind, "DirichletFamily"), "fields": fields}
    path.write_text(json.dumps(content))
    read = mk.load(path)
    np.testing.assert_allclose(read.score_samples(X), made.score_samples(X), rtol=1e-12)
    np.testing.assert_array_equal(read.predict(X), made.predict(X))


def test_a_discount_gives_more_groups_and_more_single_rows():
    X = np.random.default_rng(0).integers(0, 2, (80, 1))  # says little of groups: the prior decides
    law, found = mk.processes.ChineseRestaurant(1.0, 0.5), []
    for discount in (0.0, 0.5):
        model = mk.DirichletProcessMixture(
            "bernoulli", max_iter=200, random_state=0, concentration=1.0, discount=discount
        ).fit(X)
        sizes = [np.bincount(z) for z in model.posterior_.labels]
        found.append((np.mean([len(n) for n in sizes]), np.mean([(n == 1).mean() for n in sizes])))
    assert found[1][0] > 2.0 * found[0][0]
    assert found[1][0] == pytest.approx(law.expected_tables(80), rel=0.25)
    assert found[1][1] > found[0][1]


@pytest.mark.parametrize("component", ["bernoulli", "categorical", "multinomial", "poisson"])
def test_groups_of_counts_and_categories_are_found(component):
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 150)
    high = np.where(z[:, None] == (np.arange(12) % 2), 0.95, 0.05)
    X = {
        "bernoulli": (rng.random((150, 12)) < high) * 1,
        "categorical": np.where(rng.random((150, 12)) < high, "yes", "no"),
        "multinomial": np.array([rng.multinomial(30, p / p.sum()) for p in high]),
        "poisson": rng.poisson(8 * high),
    }[component]
    found = mk.DirichletProcessMixture(component, max_iter=100, random_state=0).fit(X)
    assert found.n_components_ == 2
    assert adjusted_rand_score(z, found.labels_) > 0.95
    assert np.isfinite(found.score_samples(X)).all()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"component": "gausian"}, "gaussian"),
        ({"component": "student-t"}, "conjugate component"),
        ({"method": "gibs"}, "collapsed-gibbs"),
        ({"concentration": -1.0}, "above 0"),
        ({"concentration": (1.0, 2.0, 3.0)}, "shape and rate"),
        ({"discount": 1.0}, "up to but not 1"),
        ({"max_iter": 10, "burn_in": 10}, "burn_in=10 leaves no draws of max_iter=10"),
        ({"component": "bernoulli"}, "0 or 1"),
        ({"component": "poisson"}, "whole numbers"),
    ],
)
def test_settings_and_rows_that_cannot_be_are_refused(settings, said):
    X, _ = blobs(20)
    model = mk.DirichletProcessMixture(**settings)
    with pytest.raises(InvalidArgument, match=said):
        model.fit(X)
    assert not hasattr(model, "labels_")


def test_rows_with_gaps_and_new_categories_are_refused():
    X, _ = blobs(20)
    X[3, 1] = np.nan
    with pytest.raises(InvalidArgument, match=r"row 3 of X misses 'x1' \(NaN\).*mk.Mixture"):
        mk.DirichletProcessMixture().fit(X)
    found = mk.DirichletProcessMixture("categorical", max_iter=5).fit([["a"], ["b"], ["a"]])
    with pytest.raises(
        InvalidArgument, match="row 0 has 'c' in the column 'x0', which fit has not seen; there were 'a', 'b'"
    ):
        found.predict([["c"]])


def test_one_row_and_equal_rows_are_one_group():
    assert mk.DirichletProcessMixture(max_iter=10, random_state=0).fit([[1.0, 2.0]]).n_components_ == 1
    found = mk.DirichletProcessMixture(max_iter=30, random_state=0).fit(np.ones((20, 2)))
    assert found.n_components_ == 1


@pytest.mark.slow
def test_a_cut_stick_in_a_network_predicts_as_all_partitions_do():
    """The recipe of the guide: predictive densities of five rows, by sampling sticks and centres and by enumeration."""
    import jax.numpy as jnp

    import markovia.distributions as dist
    from markovia.factors.processes.law import set_partitions

    rows, at, spread = np.array([-3.0, -2.6, -2.2, 1.8, 2.5]), np.linspace(-7.0, 7.0, 8), 3.0

    def weights(stick):
        left = jnp.concatenate([jnp.ones(1), jnp.cumprod(1.0 - stick)])
        return left * jnp.concatenate([stick, jnp.ones(1)])

    model = mk.BayesianNetwork()
    model.add("stick", dist.Beta(1.0, 1.0), plate={"piece": 7})
    model.add("centre", dist.Normal(0.0, spread), plate={"group": 8})
    model.add(
        "x",
        lambda stick, centre: dist.MixtureSameFamily(
            dist.Categorical(weights(stick)), dist.Normal(centre, 1.0)
        ),
        plate={"row": 5},
    )
    draws = model.query(["stick", "centre"], given={"x": rows}, engine=mk.engines.NUTS(seed=0)).draws
    sticks, centres = (np.asarray(draws[name]).reshape(-1, k) for name, k in (("stick", 7), ("centre", 8)))
    shares = np.array([weights(stick) for stick in sticks[::4]])[:, None, :]
    apart = at[:, None] - centres[::4, None, :]
    found = (shares * np.exp(-0.5 * apart**2) / np.sqrt(2 * np.pi)).sum(axis=2)

    law, logs, expected = mk.processes.ChineseRestaurant(1.0), [], []
    for labels in set_partitions(5):
        log, density = law.log_prob(labels), np.zeros(len(at))
        for k in range(labels.max() + 2):
            mine = rows[labels == k]
            variance = 1.0 / (1.0 / spread**2 + len(mine))
            mean = variance * mine.sum()
            log += 0.5 * (np.log(variance / spread**2) + mean**2 / variance)
            wide = 1.0 + variance
            share = (len(mine) or 1.0) / 6.0
            density += share * np.exp(-0.5 * (at - mean) ** 2 / wide) / np.sqrt(2 * np.pi * wide)
        logs.append(log)
        expected.append(density)
    p = np.exp(np.array(logs) - max(logs))
    np.testing.assert_allclose(found.mean(axis=0), p / p.sum() @ np.array(expected), atol=0.006)
