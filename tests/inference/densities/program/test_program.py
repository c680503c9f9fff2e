"""The density that a graph stands for, against formulas written out and enumeration of discrete variables."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import markovia as mk
import markovia.distributions as dist
from markovia.inference.densities.program.program import program_of
from markovia.runtime.double_precision import x64

rng = np.random.default_rng(0)


def density_at(model, given, values, missing="refuse"):
    """Return log p(values, data) without the Jacobian, at latent values given by name."""
    from numpyro.distributions.transforms import biject_to

    program = program_of(model._problem(given, missing=missing), "none")
    with x64():
        u = np.zeros(program.density.size)
        jacobian = 0.0
        env = {**program.layout.fixed, **program.layout.data, **values}
        for name, slot in program.slots.items():
            site = program.layout.sites[name]
            support = site.support
            if support is None:
                support = program.nodes.spread(site, program.nodes.call(site, env), site.plates).support
            free = biject_to(support).inv(np.asarray(values[name], dtype=float))
            u[slot.start : slot.start + slot.size] = np.ravel(free)
            jacobian += float(
                np.sum(biject_to(support).log_abs_det_jacobian(free, np.asarray(values[name], float)))
            )
        total = float(jax.jit(program.density.log_prob)(u, program.density.data)) - jacobian
        return total, program, u


def norm(x, m, s):
    return stats.norm.logpdf(x, m, s)


def test_eight_schools_is_its_formula():
    y, s = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("tau", dist.HalfCauchy(5))
    m.add("theta", lambda mu, tau: dist.Normal(mu, tau), plate="school")
    m.add("y", lambda theta, sigma: dist.Normal(theta, sigma), plate="school")
    theta = rng.normal(size=8)
    found, _, _ = density_at(m, {"y": y, "sigma": s}, {"mu": 1.5, "tau": 0.7, "theta": theta})
    wanted = (
        norm(1.5, 0, 5)
        + stats.halfcauchy.logpdf(0.7, 0, 5)
        + norm(theta, 1.5, 0.7).sum()
        + norm(y, theta, s).sum()
    )
    assert found == pytest.approx(wanted, abs=1e-10)


def test_a_hierarchy_is_sampled_non_centred_where_few_children_inform_it():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("tau", dist.HalfCauchy(5))
    m.add("theta", lambda mu, tau: dist.Normal(mu, tau), plate="school")
    m.add("y", lambda theta: dist.Normal(theta, 2.0), plate=["school", "pupil"])
    few, many = {"y": rng.normal(size=(3, 4))}, {"y": rng.normal(size=(3, 6))}
    away = program_of(m._problem(few))
    assert away.note == "theta sampled non-centred"
    assert program_of(m._problem(many)).note == ""
    assert program_of(m._problem(many), "all").note == "theta sampled non-centred"
    at_home = program_of(m._problem(few), "none")
    u = np.array([0.5, -0.3, 0.2, -1.0, 0.7])  # mu, log tau, standard thetas
    tau = np.exp(-0.3)
    v = np.array([0.5, -0.3, *(0.5 + tau * u[2:])])
    with x64():
        away_log = float(jax.jit(away.density.log_prob)(u, away.density.data))
        home_log = float(jax.jit(at_home.density.log_prob)(v, at_home.density.data))
        np.testing.assert_allclose(away.density.constrain(u, away.density.data)["theta"], v[2:])
    assert away_log == pytest.approx(home_log + 3 * np.log(tau), abs=1e-12)


def mixture():
    m = mk.BayesianNetwork()
    m.add("w", dist.Dirichlet(np.ones(3)))
    m.add("mu", dist.Normal(0, 3), plate={"k": 3})
    m.add("z", lambda w: dist.Categorical(w), plate="row")
    m.add("y", lambda z, mu: dist.Normal(mu[z], 1.0), plate="row")
    return m


def test_a_mixture_is_summed_out_and_its_labels_come_back():
    y, w, mu = rng.normal(size=6), np.array([0.2, 0.5, 0.3]), np.array([-1.0, 0.5, 2.0])
    found, program, u = density_at(mixture(), {"y": y}, {"w": w, "mu": mu})
    parts = np.log(w) + norm(y[:, None], mu, 1.0)
    wanted = stats.dirichlet.logpdf(w, np.ones(3)) + norm(mu, 0, 3).sum() + logsumexp(parts, axis=1).sum()
    assert found == pytest.approx(wanted, abs=1e-10)
    with x64():
        states = jax.jit(program.state_probabilities)(u, program.density.data)["z"]
    np.testing.assert_allclose(states, np.exp(parts - logsumexp(parts, axis=1)[:, None]).T, atol=1e-12)


def test_a_hidden_chain_is_the_sum_over_all_paths():
    y = rng.normal(size=5)
    m = mk.BayesianNetwork()
    m.add("P", dist.Dirichlet(np.ones(2)), plate={"state": 2})
    m.add("mu", dist.Normal(0, 3), plate={"state": 2})
    m.add(
        "z",
        lambda before, P: dist.Categorical(P[before]),
        plate="t",
        previous={"before": "z"},
        first=mk.Flat(),
    )
    m.add("y", lambda z, mu: dist.Normal(mu[z], 1.0), plate="t")
    p, mu = np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([-1.0, 2.0])
    found, program, u = density_at(m, {"y": y}, {"P": p, "mu": mu})
    paths = list(itertools.product(range(2), repeat=5))
    logs = [
        sum(np.log(p[a, b]) for a, b in itertools.pairwise(z)) + norm(y, mu[list(z)], 1.0).sum()
        for z in paths
    ]
    prior = 2 * stats.dirichlet.logpdf([0.5, 0.5], [1, 1]) + norm(mu, 0, 3).sum()
    assert found == pytest.approx(prior + logsumexp(logs), abs=1e-10)
    with x64():
        states = np.asarray(jax.jit(program.state_probabilities)(u, program.density.data)["z"])
    weights = np.exp(logs - logsumexp(logs))
    for t in range(5):
        assert states[1, t] == pytest.approx(
            sum(w for w, z in zip(weights, paths, strict=True) if z[t]), abs=1e-12
        )


def test_an_emission_may_look_at_two_states_of_a_chain():
    y = rng.normal(size=4)
    m = mk.BayesianNetwork()
    p, jump = np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([[0.0, 1.0], [-2.0, 0.5]])
    m.add("s", dist.HalfNormal(1))
    m.add(
        "z", lambda before: dist.Categorical(p[before]), plate="t", previous={"before": "z"},
        first=dist.Categorical(probs=[0.4, 0.6]),
    )  # fmt: skip
    m.add(
        "y", lambda z, zb, s: dist.Normal(jump[zb, z], s), plate="t", previous={"zb": "z"},
        first=lambda z, s: dist.Normal(3.0 * z, s),
    )  # fmt: skip
    found, _, _ = density_at(m, {"y": y}, {"s": 0.8})
    logs = []
    for z in itertools.product(range(2), repeat=4):
        log = np.log([0.4, 0.6][z[0]]) + norm(y[0], 3.0 * z[0], 0.8)
        for t in range(1, 4):
            log += np.log(p[z[t - 1], z[t]]) + norm(y[t], jump[z[t - 1], z[t]], 0.8)
        logs.append(log)
    assert found == pytest.approx(stats.halfnorm.logpdf(0.8) + logsumexp(logs), abs=1e-10)


def test_an_indexed_discrete_variable_gets_its_rows_added_up():
    g, y = np.array([0, 1, 1, 2, 0]), rng.normal(size=5)
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 3), plate={"k": 2})
    m.add("c", dist.Categorical(probs=[0.3, 0.7]), plate={"group": 3})
    m.add("y", lambda mu, c, g: dist.Normal(mu[c[g]], 1.0), plate="row")
    mu = np.array([-1.0, 1.0])
    found, program, u = density_at(m, {"y": y, "g": g}, {"mu": mu})
    configurations = list(itertools.product(range(2), repeat=3))
    logs = [
        np.log([0.3, 0.7])[list(c)].sum() + norm(y, mu[np.array(c)[g]], 1.0).sum() for c in configurations
    ]
    assert found == pytest.approx(norm(mu, 0, 3).sum() + logsumexp(logs), abs=1e-10)
    with x64():
        states = np.asarray(jax.jit(program.state_probabilities)(u, program.density.data)["c"])
    weights = np.exp(logs - logsumexp(logs))
    assert states[1, 1] == pytest.approx(
        sum(w for w, c in zip(weights, configurations, strict=True) if c[1]), abs=1e-12
    )


def test_a_row_variable_under_an_indexed_group_variable_goes_first():
    g, y = np.array([0, 1, 1]), rng.normal(size=3)
    pi, mu = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([-1.0, 1.0])
    m = mk.BayesianNetwork()
    m.add("s", dist.HalfNormal(1.0))
    m.add("c", dist.Categorical(probs=[0.4, 0.6]), plate={"group": 2})
    m.add("z", lambda c, g: dist.Categorical(pi[c[g]]), plate="row")
    m.add("y", lambda z, s: dist.Normal(mu[z], s), plate="row")
    found, _, _ = density_at(m, {"y": y, "g": g}, {"s": 0.9})
    logs = [
        np.log([0.4, 0.6])[list(c)].sum()
        + np.log(pi[np.array(c)[g], list(z)]).sum()
        + norm(y, mu[list(z)], 0.9).sum()
        for c in itertools.product(range(2), repeat=2)
        for z in itertools.product(range(2), repeat=3)
    ]
    assert found == pytest.approx(stats.halfnorm.logpdf(0.9) + logsumexp(logs), abs=1e-10)


def test_tables_functions_of_states_and_plates_mix():
    m = mk.BayesianNetwork()
    m.add("rain", states=["no", "yes"], p=[0.8, 0.2])
    m.add("wet", states=["no", "yes"], parents=["rain"], p=[[0.9, 0.1], [0.2, 0.8]])
    m.add("level", lambda rain: dist.Normal(3.0 if rain == "yes" else 0.0, 1.0))
    m.add("seen", lambda level, wet: dist.Normal(level + wet, 0.5), plate="gauge")
    y = np.array([1.0, 2.5])
    found, program, u = density_at(m, {"seen": y}, {"level": 1.2})
    logs = {}
    for r, w in itertools.product(range(2), repeat=2):
        logs[r, w] = (
            np.log([0.8, 0.2][r])
            + np.log([[0.9, 0.1], [0.2, 0.8]][r][w])
            + norm(1.2, 3.0 * r, 1.0)
            + norm(y, 1.2 + w, 0.5).sum()
        )
    total = logsumexp(list(logs.values()))
    assert found == pytest.approx(total, abs=1e-10)
    with x64():
        states = jax.jit(program.state_probabilities)(u, program.density.data)
    assert float(states["rain"][1]) == pytest.approx(
        sum(np.exp(v - total) for k, v in logs.items() if k[0]), abs=1e-12
    )
    observed, _, _ = density_at(m, {"seen": y, "rain": "yes"}, {"level": 1.2})
    assert observed == pytest.approx(logsumexp([logs[1, 0], logs[1, 1]]), abs=1e-10)


def test_deterministic_nodes_carry_discrete_parents_through():
    y = rng.normal(size=4)
    m = mk.BayesianNetwork()
    m.add("a", dist.Normal(0, 1))
    m.add("z", dist.Bernoulli(0.3), plate="row")
    m.add("shift", lambda z, a: a + 2.0 * z, plate="row")
    m.add("y", lambda shift: dist.Normal(shift, 1.0), plate="row")
    found, _, _ = density_at(m, {"y": y}, {"a": 0.4})
    parts = np.log([0.7, 0.3]) + norm(y[:, None], 0.4 + np.array([0.0, 2.0]), 1.0)
    assert found == pytest.approx(norm(0.4, 0, 1) + logsumexp(parts, axis=1).sum(), abs=1e-10)


def test_an_autoregression_and_a_recursion_of_variances():
    y = rng.normal(size=6)
    ar = mk.BayesianNetwork()
    ar.add("b", dist.Normal(0, 10), plate={"lag": 2})
    ar.add("s", dist.HalfCauchy(2.5))
    ar.add(
        "y", lambda one, two, b, s: dist.Normal(b[0] * one + b[1] * two, s), plate="t",
        previous={"one": "y", "two": ("y", 2)}, first=mk.Flat(),
    )  # fmt: skip
    b = np.array([0.5, -0.2])
    found, _, _ = density_at(ar, {"y": y}, {"b": b, "s": 0.9})
    wanted = norm(b, 0, 10).sum() + stats.halfcauchy.logpdf(0.9, 0, 2.5)
    wanted += norm(y[2:], b[0] * y[1:-1] + b[1] * y[:-2], 0.9).sum()
    assert found == pytest.approx(wanted, abs=1e-10)
    garch = mk.BayesianNetwork()
    garch.add("a0", dist.HalfNormal(1))
    garch.add("a1", dist.Uniform(0, 1))
    garch.add("b1", lambda a1: dist.Uniform(0, 1 - a1))
    garch.add(
        "s", lambda sb, yb, a0, a1, b1: (a0 + a1 * yb**2 + b1 * sb**2) ** 0.5, plate="t",
        previous={"sb": "s", "yb": "y"}, first=lambda s1: s1,
    )  # fmt: skip
    garch.add("y", lambda s: dist.Normal(0, s), plate="t")
    found, _, _ = density_at(garch, {"y": y, "s1": 0.7}, {"a0": 0.5, "a1": 0.3, "b1": 0.4})
    s = [0.7]
    for t in range(1, 6):
        s.append(np.sqrt(0.5 + 0.3 * y[t - 1] ** 2 + 0.4 * s[-1] ** 2))
    wanted = stats.halfnorm.logpdf(0.5) - np.log(1 - 0.3) + norm(y, 0, s).sum()
    assert found == pytest.approx(wanted, abs=1e-10)


def test_crossed_plates_align_and_foreign_ones_are_indexed():
    y = rng.integers(0, 2, size=(3, 4))
    m = mk.BayesianNetwork()
    m.add("ability", dist.Normal(0, 1), plate="student")
    m.add("ease", dist.Normal(0, 1), plate="item")
    m.add("y", lambda ability, ease: dist.Bernoulli(logits=ability + ease), plate=["student", "item"])
    ability, ease = rng.normal(size=3), rng.normal(size=4)
    found, _, _ = density_at(m, {"y": y}, {"ability": ability, "ease": ease})
    logits = ability[:, None] + ease
    wanted = norm(ability, 0, 1).sum() + norm(ease, 0, 1).sum() + (y * logits - np.logaddexp(0, logits)).sum()
    assert found == pytest.approx(wanted, abs=1e-10)
    whole = mk.BayesianNetwork()
    whole.add("th", dist.Normal(0, 1), plate={"group": 2, "item": 4})
    whole.add("y", lambda th, g: dist.Normal(th[g], 1), plate=["row", "item"])
    th, g, y = rng.normal(size=(2, 4)), np.array([0, 1, 1]), rng.normal(size=(3, 4))
    found, _, _ = density_at(whole, {"y": y, "g": g}, {"th": th})
    assert found == pytest.approx(norm(th, 0, 1).sum() + norm(y, th[g], 1).sum(), abs=1e-10)


def test_plates_in_another_order_than_the_childs_are_turned():
    for length in (3, 2):  # other lengths than the other plate's, and the same
        m = mk.BayesianNetwork()
        m.add("x", dist.Normal(0, 1), plate={"a": 2, "b": length})
        m.add("y", lambda x: dist.Normal(x, 1), plate=["b", "a"])
        x, y = rng.normal(size=(2, length)), rng.normal(size=(length, 2))
        found, _, _ = density_at(m, {"y": y}, {"x": x})
        assert found == pytest.approx(norm(x, 0, 1).sum() + norm(y, x.T, 1).sum(), abs=1e-10)


def drawn_states(program, u, n=4000):
    with x64():
        keys = jax.random.split(jax.random.PRNGKey(1), n)
        draws = jax.jit(jax.vmap(lambda k: program.draw_states(k, u, program.density.data)))(keys)
    return {name: np.asarray(v) for name, v in draws.items()}


def test_states_are_drawn_together_from_their_joint_posterior():
    g, y = np.array([0, 1, 1]), rng.normal(size=3)
    pi, mu = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([-1.0, 1.0])
    m = mk.BayesianNetwork()
    m.add("s", dist.HalfNormal(1.0))
    m.add("c", dist.Categorical(probs=[0.4, 0.6]), plate={"group": 2})
    m.add("z", lambda c, g: dist.Categorical(pi[c[g]]), plate="row")
    m.add("y", lambda z, s: dist.Normal(mu[z], s), plate="row")
    _, program, u = density_at(m, {"y": y, "g": g}, {"s": 0.9})
    every = [
        (*c, *z) for c in itertools.product(range(2), repeat=2) for z in itertools.product(range(2), repeat=3)
    ]
    logs = np.array([
        np.log([0.4, 0.6])[list(v[:2])].sum()
        + np.log(pi[np.array(v[:2])[g], list(v[2:])]).sum()
        + norm(y, mu[list(v[2:])], 0.9).sum()
        for v in every
    ])  # fmt: skip
    p = np.exp(logs - logsumexp(logs))
    draws = drawn_states(program, u)
    codes = np.concatenate([draws["c"], draws["z"]], axis=1) @ (2 ** np.arange(5)[::-1])
    seen = np.bincount(codes, minlength=32) / len(codes)
    assert np.abs(seen - p).max() < 4 * np.sqrt(p.max() * (1 - p.max()) / len(codes))


def test_a_hidden_chain_is_drawn_from_its_paths():
    y, p, mu = rng.normal(size=3), np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([-1.0, 2.0])
    m = mk.BayesianNetwork()
    m.add("s", dist.HalfNormal(1))
    m.add(
        "z", lambda before: dist.Categorical(p[before]), plate="t", previous={"before": "z"},
        first=dist.Categorical(probs=[0.4, 0.6]),
    )  # fmt: skip
    m.add("y", lambda z, s: dist.Normal(mu[z], s), plate="t")
    _, program, u = density_at(m, {"y": y}, {"s": 1.1})
    paths = list(itertools.product(range(2), repeat=3))
    logs = np.array([
        np.log([0.4, 0.6][z[0]]) + sum(np.log(p[a, b]) for a, b in itertools.pairwise(z)) + norm(y, mu[list(z)], 1.1).sum()
        for z in paths
    ])  # fmt: skip
    wanted = np.exp(logs - logsumexp(logs))
    seen = np.bincount(drawn_states(program, u)["z"] @ np.array([4, 2, 1]), minlength=8) / 4000
    assert np.abs(seen - wanted).max() < 4 * np.sqrt(0.25 / 4000)


def test_missing_entries_are_inferred_or_do_not_count():
    y = np.array([0.5, np.nan, -1.0, 2.0])
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 2))
    m.add("y", lambda mu: dist.Normal(mu, 1), plate="row")
    found, program, _ = density_at(m, {"y": y}, {"mu": 0.7}, "impute")
    assert program.density.size == 1  # nothing depends on y, so its gap need not be filled
    assert found == pytest.approx(norm(0.7, 0, 2) + norm(y[[0, 2, 3]], 0.7, 1).sum(), abs=1e-12)
    m.add("z", lambda y: dist.Normal(2 * y, 0.5), plate="row")
    z = np.array([1.0, 2.0, -2.0, 4.0])
    program = program_of(m._problem({"y": y, "z": z}, missing="impute"))
    with x64():
        at = float(jax.jit(program.density.log_prob)(np.array([0.7, 1.2]), program.density.data))
        whole = program.density.constrain(np.array([0.7, 1.2]), program.density.data)["y"]
    filled = np.where(np.isnan(y), 1.2, y)
    np.testing.assert_allclose(whole, filled)
    wanted = norm(0.7, 0, 2) + norm(filled, 0.7, 1).sum() + norm(z, 2 * filled, 0.5).sum()
    assert at == pytest.approx(wanted, abs=1e-12)


def test_linear_gaussian_nodes_and_tables_join_functions_of_parents():
    m = mk.BayesianNetwork()
    m.add("d", states=["a", "b"], p=[0.3, 0.7])
    m.add("x", mk.LinearGaussian(1.0, {}, 2.0))
    m.add(
        "w",
        {"a": mk.LinearGaussian(0.0, {"x": 1.0}, 1.0), "b": mk.LinearGaussian(3.0, {"x": -1.0}, 4.0)},
        parents=["d"],
    )
    m.add("twice", mk.LinearGaussian(0.5, {"x": 2.0}, 0.0))
    m.add("y", lambda w, twice: dist.StudentT(4.0, w + twice, 1.0))
    found, _, _ = density_at(m, {"y": 2.2}, {"x": 0.4, "w": 1.1})
    parts = [np.log(0.3) + norm(1.1, 0.4, 1.0), np.log(0.7) + norm(1.1, 3.0 - 0.4, 2.0)]
    wanted = norm(0.4, 1.0, np.sqrt(2.0)) + logsumexp(parts) + stats.t.logpdf(2.2, 4.0, 1.1 + 1.3, 1.0)
    assert found == pytest.approx(wanted, abs=1e-10)


def switched():
    m = mk.BayesianNetwork()
    m.add("rain", states=["no", "yes"], p=[0.8, 0.2])
    m.add("level", lambda rain: dist.Normal(3.0 if rain == "yes" else 0.0, 1.0))
    m.add("size", dist.Gamma(2.0, 1.0))
    m.add("seen", lambda level, size: dist.Normal(level, size))
    return m


def test_likelihoods_and_bounds_on_latent_nodes_count_as_evidence():
    given = {
        "seen": 2.0,
        "rain": [0.3, 0.9],
        "level": mk.Soft(dist.Normal(1.0, 0.5)),
        "size": mk.Interval(0.5, 4.0),
    }
    found, program, u = density_at(switched(), given, {"level": 1.2, "size": 1.5})
    parts = [np.log(0.8 * 0.3) + norm(1.2, 0.0, 1.0), np.log(0.2 * 0.9) + norm(1.2, 3.0, 1.0)]
    wanted = logsumexp(parts) + norm(1.2, 1.0, 0.5) + stats.gamma.logpdf(1.5, 2.0) + norm(2.0, 1.2, 1.5)
    assert found == pytest.approx(wanted, abs=1e-10)
    with x64():
        far = program.density.constrain(np.full(2, 50.0), program.density.data)
        states = jax.jit(program.state_probabilities)(u, program.density.data)["rain"]
        _, open_program, _ = density_at(
            switched(), {**given, "size": mk.Interval(-3.0, 4.0)}, {"level": 1.2, "size": 1.5}
        )
        near = open_program.density.constrain(np.full(2, -50.0), open_program.density.data)
    assert 0.5 <= float(far["size"]) <= 4.0
    assert 0.0 <= float(near["size"]) < 1e-6  # the support ends inside the bounds
    np.testing.assert_allclose(states, np.exp(parts - logsumexp(parts)), atol=1e-12)


def test_states_are_drawn_with_their_weights():
    m = switched()
    _, program, u = density_at(m, {"seen": 2.0, "rain": mk.Not("yes")}, {"level": 1.2, "size": 1.5})
    assert (drawn_states(program, u, 200)["rain"] == 0).all()


def test_bounds_outside_a_support_or_on_vectors_are_refused():
    m = switched()
    m.add("v", dist.Dirichlet(np.ones(2)))
    with pytest.raises(mk.errors.InvalidEvidence, match="'size' cannot be in Interval"):
        program_of(m._problem({"size": mk.Interval(-2.0, -1.0)}))
    with pytest.raises(mk.errors.UnsupportedModel, match="on 'v' is for single numbers"):
        program_of(m._problem({"v": mk.Interval(0.0, 1.0)}))
