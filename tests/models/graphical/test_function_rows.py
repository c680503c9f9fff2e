"""Log densities of assignments and predictions for rows, in models with functions of parents."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

import markovia as mk
import markovia.distributions as dist


def school_model():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("tau", dist.HalfNormal(2.0))
    m.add("theta", lambda mu, tau: dist.Normal(mu, tau), plate="school")
    m.add("double", lambda theta: 2.0 * theta, plate="school")
    m.add("y", lambda double, sigma: dist.StudentT(4.0, double, sigma), plate="school")
    return m


def mixed_model():
    m = mk.BayesianNetwork()
    m.add("kind", [0.3, 0.7], states=["old", "new"])
    m.add("count", lambda kind: dist.Poisson(4.0 if kind == "new" else 1.5))
    m.add("size", lambda kind, count: dist.Normal(count, 1.0) if kind == 1 else dist.Gamma(count + 1.0, 2.0))
    return m


def mixed_log_prob(kind, count, size):
    found = np.log(0.7 if kind == "new" else 0.3)
    found += stats.poisson(4.0 if kind == "new" else 1.5).logpmf(count)
    if kind == "new":
        return found + stats.norm(count, 1.0).logpdf(size)
    return found + stats.gamma(count + 1.0, scale=0.5).logpdf(size)


# -- log_prob ------------------------------------------------------------------------------------------------------


def test_the_log_density_of_an_assignment_with_plates_is_the_sum_over_its_elements():
    m = school_model()
    rng = np.random.default_rng(0)
    theta, y, sigma = rng.normal(size=5), rng.normal(size=5), 0.5 + rng.random(5)
    wanted = (
        stats.norm(0, 5).logpdf(1.2) + stats.halfnorm(scale=2).logpdf(0.7) + stats.norm(1.2, 0.7).logpdf(theta).sum()
        + stats.t(4.0, loc=2 * theta, scale=sigma).logpdf(y).sum()
    )  # fmt: skip
    given = {"mu": 1.2, "tau": 0.7, "theta": theta, "y": y, "sigma": sigma}
    found = m.log_prob(given)
    assert found == pytest.approx(wanted, rel=1e-12)
    assert np.ndim(found) == 0
    assert m.log_prob({**given, "double": 2 * theta}) == pytest.approx(wanted, rel=1e-12)
    assert m.log_prob({**given, "double": theta}) == -np.inf
    assert m.log_prob({**given, "tau": -0.7}) == -np.inf


@pytest.mark.slow
def test_draws_of_a_model_have_their_log_densities():
    m = school_model()
    draws = m.sample(4, seed=0, inputs={"school": 3, "sigma": 0.8})
    found = m.log_prob(draws, inputs={"sigma": 0.8})
    for i in range(4):
        one = {n: draws[n].values[i] for n in ("mu", "tau", "theta", "y")}
        assert found[i] == pytest.approx(m.log_prob({**one, "sigma": 0.8}), rel=1e-12)


@pytest.mark.slow
def test_rows_of_a_model_whose_functions_branch_on_states_have_the_log_densities_of_their_branch():
    m = mixed_model()
    rows = m.sample(30, seed=1)
    assert set(rows["kind"]) == {"old", "new"}
    wanted = [mixed_log_prob(*row) for row in rows[["kind", "count", "size"]].itertuples(index=False)]
    np.testing.assert_allclose(m.log_prob(rows), wanted, rtol=1e-12)
    assert m.log_prob({"kind": "old", "count": 2, "size": 1.5}) == pytest.approx(
        mixed_log_prob("old", 2, 1.5)
    )
    assert (
        m.log_prob({"kind": "old", "count": 2, "size": -1.5}) == -np.inf
    )  # a gamma's support, not a normal's
    assert m.log_prob({"kind": "new", "count": -1, "size": 0.5}) == -np.inf


def test_a_function_of_several_states_and_a_number_is_called_with_each_combination():
    m = mk.BayesianNetwork()
    m.add("a", [0.4, 0.6], states=["no", "yes"])
    m.add("b", [0.2, 0.3, 0.5], states=["x", "y", "z"])
    m.add("mu", dist.Normal(0, 1))
    m.add("v", lambda a, b, mu: dist.Normal(mu, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]][a][b]))
    rows = m.sample(40, seed=0)
    scale = {(a, b): 1.0 + 3 * (a == "yes") + "xyz".index(b) for a in ("no", "yes") for b in "xyz"}
    first = {"no": 0.4, "yes": 0.6, "x": 0.2, "y": 0.3, "z": 0.5}
    wanted = [
        np.log(first[a] * first[b]) + stats.norm(0, 1).logpdf(mu) + stats.norm(mu, scale[a, b]).logpdf(v)
        for a, b, mu, v in rows.itertuples(index=False)
    ]
    np.testing.assert_allclose(m.log_prob(rows), wanted, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_trees_of_families_have_the_log_densities_of_scipy(seed):
    rng = np.random.default_rng(seed)
    m, parts, values = mk.BayesianNetwork(), [], {}
    for i in range(5):
        name, parent = f"x{i}", f"x{rng.integers(i)}" if i else None
        at = 0.0 if parent is None else values[parent]
        a = round(float(rng.random()), 3)
        family = rng.choice(["normal", "exponential", "beta", "bernoulli", "laplace"])
        functions, reference = {
            "normal": (lambda q, a=a: dist.Normal(q, 0.5 + a), stats.norm(at, 0.5 + a)),
            "laplace": (lambda q, a=a: dist.Laplace(a * q, 1.5), stats.laplace(a * at, 1.5)),
            "exponential": (lambda q, a=a: dist.Exponential(jnp.exp(a * q)), stats.expon(scale=np.exp(-a * at))),
            "beta": (lambda q, a=a: dist.Beta(1 + a, 1 + q**2), stats.beta(1 + a, 1 + at**2)),
            "bernoulli": (lambda q, a=a: dist.Bernoulli(logits=q + a), stats.bernoulli(expit(at + a))),
        }[str(family)]  # fmt: skip
        if parent is None:
            m.add(name, functions(0.0))
        else:
            m.add(name, eval(f"lambda {parent}: f({parent})", {"f": functions}))
        values[name] = reference.rvs(random_state=rng)
        log = reference.logpmf if family == "bernoulli" else reference.logpdf
        parts.append(log(values[name]))
    assert m.log_prob(values) == pytest.approx(sum(parts), rel=1e-10)


def test_a_node_without_a_value_is_named_with_the_cure():
    m = school_model()
    with pytest.raises(mk.errors.InvalidEvidence, match=r"'tau' has none; log_evidence"):
        m.log_prob({"mu": 1.0, "theta": np.zeros(2), "y": np.zeros(2), "sigma": 1.0})
    with pytest.raises(mk.errors.InvalidEvidence, match=r"'size' has none in row 1"):
        mixed_model().log_prob({"kind": ["old", "new"], "count": [1, 2], "size": [1.0, None]})
    with pytest.raises(mk.errors.InvalidArgument, match="by names, as given= does"):
        m.log_prob(pd.DataFrame({"mu": [1.0]}))


# -- predict -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rows_without_plates_are_evidence_of_their_own():
    m = mixed_model()
    m.add("seen", lambda kind: 0.9 if kind == "new" else 0.2, states=["no", "yes"])
    rows = pd.DataFrame(
        {"count": [1, 1, 4], "size": [0.7, 2.5, 4.0], "seen": [None, "no", "yes"]}, index=["a", "b", "c"]
    )
    found = m.predict_proba(rows, "kind")
    likelihood = {None: (1.0, 1.0), "no": (0.8, 0.1), "yes": (0.2, 0.9)}
    for label, (count, size, seen) in zip(rows.index, rows.itertuples(index=False), strict=True):
        logs = np.array([mixed_log_prob(k, count, size) for k in ("old", "new")])
        logs += np.log(likelihood[seen if isinstance(seen, str) else None])
        np.testing.assert_allclose(found.loc[label], np.exp(logs - logsumexp(logs)), rtol=1e-9)
    assert found.columns.tolist() == ["old", "new"]
    assert m.predict(rows, "kind").tolist() == found.idxmax(axis=1).tolist()


@pytest.fixture(scope="module")
def regression():
    """A conjugate regression, so that predictions are known."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=40)
    frame = pd.DataFrame({"x": x, "y": 1.0 + 2.0 * x + rng.normal(size=40)})
    m = mk.BayesianNetwork()
    m.add("a", dist.Normal(0, 10))
    m.add("b", dist.Normal(0, 10))
    m.add("y", lambda a, b, x: dist.Normal(a + b * x, 1.0), plate="row")
    return m, frame


@pytest.mark.slow
def test_new_rows_of_a_plate_are_predicted_from_a_posterior_or_from_data(regression):
    m, frame = regression
    post = m.query(["a", "b"], given={"row": frame})
    assert post.info.exact
    new = pd.DataFrame({"x": [-1.0, 0.0, 3.0], "y": [99.0, 99.0, 99.0]}, index=["p", "q", "r"])
    design = np.column_stack([np.ones(40), frame["x"]])
    cov = np.linalg.inv(design.T @ design + np.eye(2) / 100)
    mean = cov @ design.T @ frame["y"]
    at = np.column_stack([np.ones(3), new["x"]])
    sd = np.sqrt(1.0 + np.einsum("ij,jk,ik->i", at, cov, at))
    table = m.predict_proba(new, "y", given=post)
    np.testing.assert_allclose(table["mean"], at @ mean, atol=4 * sd.max() / np.sqrt(4000))
    np.testing.assert_allclose(table["sd"], sd, rtol=4 / np.sqrt(8000))
    found = m.predict(new, "y", given=post)
    assert found.index.tolist() == ["p", "q", "r"]
    assert found.tolist() == table["mean"].tolist()
    draws = m.sample(5, given=post, inputs={"row": new[["x"]]})
    assert draws["y"].shape == (5, 3)
    assert draws["row"].values.tolist() == ["p", "q", "r"]
    assert m.predict({"x": new["x"].to_numpy()}, "y", given=post).tolist() == found.tolist()
    assert len(m.predict(None, "y", given=post)) == 40
    again = m.predict(new, "y", given={"row": frame})
    np.testing.assert_allclose(again, found, atol=0.1)


def test_states_on_a_plate_are_predicted_by_their_shares_of_draws():
    m = mk.BayesianNetwork()
    m.add("p", dist.Beta(2, 2))
    m.add("hit", lambda p: dist.Bernoulli(p), plate="shot")
    data = {"hit": np.array([1, 1, 1, 0, 1, 1])}
    shares = m.predict_proba(pd.DataFrame(index=["next", "later"]), "hit", given=data)
    assert shares.columns.tolist() == [0, 1]
    np.testing.assert_allclose(shares[1], 0.7, atol=4 * np.sqrt(0.21 / 4000))
    assert m.predict(None, "hit", given=data).tolist() == [1] * 6


def test_what_cannot_be_predicted_is_said_with_the_cure(regression):
    m, frame = regression
    with pytest.raises(mk.errors.InvalidArgument, match="predicted from a posterior or from data"):
        m.predict(frame, "y")
    with pytest.raises(mk.errors.InvalidArgument, match=r"'a' are not on one alone; query"):
        m.predict(frame, "a", given={"row": frame})
    with pytest.raises(mk.errors.InvalidArgument, match="given= is for models with plates"):
        mk.examples.sprinkler().predict([{"wet": "yes"}], "rain", given={})
    with pytest.raises(mk.errors.InvalidArgument, match="inputs= is for models with functions"):
        mk.examples.sprinkler().log_prob([{"wet": "yes"}], inputs={"x": 1})


# -- missing entries ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_only_nodes_with_missing_entries_that_children_tell_about_can_be_asked_for():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 1))
    m.add("y", lambda mu: dist.Normal(mu, 1.0), plate="row")
    m.add("z", lambda y: dist.Normal(y, 1.0), plate="row")
    gaps, whole = np.array([1.0, np.nan]), np.array([1.0, 2.0])
    with pytest.raises(mk.errors.InvalidArgument, match="'z' is observed, so there is nothing to ask"):
        m.query("z", given={"y": gaps, "z": whole}, missing="impute")
    with pytest.raises(mk.errors.InvalidArgument, match="'y' is observed"):
        m.marginals(targets=["y"], given={"y": whole, "z": gaps}, missing="impute")
    with pytest.raises(mk.errors.InvalidArgument, match="missing entries of 'z' have no children"):
        m.query("z", given={"z": gaps}, missing="impute")
    found = m.query("y", given={"y": gaps, "z": whole}, missing="impute", engine="laplace")
    # y1 given z1 = 2 and mu, which y0 = 1 tells about: y1 ~ N(1/2, 3/2) before z1
    assert found.mean("y")[1] == pytest.approx(0.5 + 1.5 / 2.5 * 1.5, abs=0.1)


@pytest.mark.slow
def test_draws_agree_with_what_is_known_of_a_number_that_is_not_its_value():
    m = mk.BayesianNetwork()
    m.add("rate", dist.Gamma(2.0, 1.0))
    found = m.sample(50, given={"rate": mk.Interval(3.0, 4.0)}, seed=0)["rate"]
    assert found.between(3.0, 4.0).all()
