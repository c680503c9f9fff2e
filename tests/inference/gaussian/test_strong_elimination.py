"""Gaussian and mixed networks against enumeration of all configurations with plain Gaussian conditioning."""

import numpy as np
import pytest
from hypothesis import given, settings

import markovia as mk
import markovia.distributions as dist
from gaussian_references import conditioned, enumerated, moments, random_network, seeds, some_evidence, total


def check_all(network, evidence, atol=1e-9):
    """Every question about a network with evidence."""
    found = enumerated(network, evidence)
    log_mass, weights = total(found)
    scale = max(
        1.0,
        *(float(np.abs(f[4]).max(initial=0)) for f in found),
        *(float(np.abs(f[3]).max(initial=0)) for f in found),
    )
    assert network.log_evidence(evidence) == pytest.approx(log_mass, rel=1e-9, abs=1e-8)
    answers = network.marginals(given=evidence)
    assert set(answers) == {n for n in network.variables if n not in evidence}
    for name, p in answers.items():
        assert p.info.engine == "gaussian"
        assert p.info.exact
        if name[0] == "d":
            for state in network.states(name):
                expected = sum(w for w, f in zip(weights, found, strict=True) if f[0][name] == state)
                assert p[state] == pytest.approx(expected, abs=1e-9)
            continue
        at = found[0][2].index(name)
        mean = sum(w * f[3][at] for w, f in zip(weights, found, strict=True))
        square = sum(w * (f[4][at, at] + f[3][at] ** 2) for w, f in zip(weights, found, strict=True))
        assert p.mean() == pytest.approx(mean, abs=atol * scale)
        assert p.var() == pytest.approx(square - mean**2, abs=10 * atol * scale**2)
    return found, weights, log_mass


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_marginals_and_evidence_of_gaussian_networks_are_those_of_dense_conditioning(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, int(rng.integers(1, 9)))
    check_all(network, some_evidence(network, rng))


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_mixed_networks_agree_with_enumeration_of_discrete_configurations(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, int(rng.integers(1, 6)), int(rng.integers(1, 5)))
    check_all(network, some_evidence(network, rng))


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_joint_posteriors_of_states_and_numbers_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, int(rng.integers(2, 6)), int(rng.integers(1, 4)))
    evidence = some_evidence(network, rng, 0.3)
    free = [n for n in network.variables if n not in evidence]
    targets = [str(n) for n in rng.permutation(free)[: rng.integers(1, 5)]]
    if not any(n[0] == "x" for n in targets):
        return
    p = network.query(targets, given=evidence)
    assert p.names == tuple(targets)
    found = enumerated(network, evidence)
    _, weights = total(found)
    numbers = [n for n in targets if n[0] == "x"]
    states = [n for n in targets if n[0] == "d"]
    point = {n: rng.normal() for n in numbers} | {n: network.states(n)[0] for n in states}
    density = 0.0
    for w, (chosen, _, names, mean, covariance) in zip(weights, found, strict=True):
        if all(chosen[n] == point[n] for n in states):
            at = [names.index(n) for n in numbers]
            gap = np.array([point[n] for n in numbers]) - mean[at]
            inside = covariance[np.ix_(at, at)]
            density += w * np.exp(
                -0.5 * (gap @ np.linalg.solve(inside, gap) + np.linalg.slogdet(2 * np.pi * inside)[1])
            )
    assert np.exp(p.log_prob(point)) == pytest.approx(density, rel=1e-7, abs=1e-12)
    for one in states:
        for state in network.states(one):
            expected = sum(w for w, f in zip(weights, found, strict=True) if f[0][one] == state)
            assert p[one][state] == pytest.approx(expected, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_the_best_explanation_has_the_highest_density_of_all_configurations(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, int(rng.integers(1, 5)), int(rng.integers(0, 4)))
    evidence = some_evidence(network, rng, 0.3)
    if len(evidence) == len(network):
        return
    found = enumerated(network, evidence)
    heights = [f[1] - 0.5 * np.linalg.slogdet(2 * np.pi * f[4])[1] for f in found]
    ranked = network.map(given=evidence, m=3)
    order = np.argsort(heights)[::-1][:3]
    assert len(ranked) == len(order)
    for answer, k in zip(ranked, order, strict=True):
        assert answer.log_prob == pytest.approx(heights[k], rel=1e-9, abs=1e-7)
    chosen, _, names, mean, _ = found[order[0]]
    if len(order) == 1 or heights[order[0]] - heights[order[1]] > 1e-6:
        for n, value in ranked[0].items():
            assert value == (chosen[n] if n[0] == "d" else pytest.approx(mean[names.index(n)], abs=1e-7))
    row = {**ranked[0], **evidence}
    logs = [float(np.ravel(network[n].log_prob(*_cells(network, n, row)))[0]) for n in network.variables]
    assert sum(logs) == pytest.approx(ranked[0].log_prob, rel=1e-9, abs=1e-7)


def _cells(network, name, row):
    def cell(n):
        return np.array([network.states(n).index(row[n]) if n[0] == "d" else row[n]])

    return cell(name), [cell(q) for q in network[name].parent_names]


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_deterministic_nodes_are_the_limit_of_small_variances(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, int(rng.integers(2, 7)), int(rng.integers(0, 3)), zero=0.4)
    certain = {n for n in network.variables if n[0] == "x" and not network[n].variance.all()}
    seen = [n for n in network.variables if n[0] == "x"]
    seen = [n for n in seen if rng.random() < 0.3 and n not in certain]
    evidence = {n: float(x) for n, x in zip(seen, rng.normal(size=len(seen)), strict=True)}
    try:
        check_all(network, evidence, 1e-7)
    except np.linalg.LinAlgError:
        return  # the reference inverts what is seen, which deterministic parents can make singular


def test_a_sum_that_is_seen_fixes_its_terms():
    m = mk.BayesianNetwork()
    m.add("a", mk.LinearGaussian(1, {}, 1))
    m.add("b", mk.LinearGaussian(2, {}, 3))
    m.add("sum", mk.LinearGaussian(0, {"a": 2, "b": 1}, 0))
    m.add("again", mk.LinearGaussian(1, {"sum": 3}, 0))
    p = m.query(["a", "b"], given={"sum": 6.0})
    _, mean, covariance, log_density = conditioned(
        ["a", "b", "sum"], np.array([1.0, 2, 4]), np.array([[1.0, 0, 2], [0, 3, 3], [2, 3, 7]]), {"sum": 6.0}
    )
    np.testing.assert_allclose([p.mean("a"), p.mean("b")], mean, atol=1e-12)
    np.testing.assert_allclose(p.covariance(["a", "b"]), covariance, atol=1e-12)
    assert m.log_evidence({"sum": 6.0}) == pytest.approx(log_density, abs=1e-12)
    assert m.log_evidence({"sum": 6.0, "again": 19.0}) == pytest.approx(log_density, abs=1e-12)
    assert m.query("again", given={"sum": 6.0}).sd() == 0.0
    with pytest.raises(ValueError, match="probability zero; already these together are impossible"):
        m.query("a", given={"sum": 6.0, "again": 20.0})
    assert m.log_evidence({"sum": 6.0, "again": 20.0}) == -np.inf
    rows = m.sample(5, given={"sum": 6.0}, seed=0)
    np.testing.assert_allclose(2 * rows["a"] + rows["b"], 6.0, atol=1e-9)


def test_variances_that_differ_by_twenty_powers_of_ten_keep_their_digits():
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian(0, {}, 1e10))
    m.add("y", mk.LinearGaussian(0, {"x": 1}, 1e-10))
    m.add("z", mk.LinearGaussian(0, {"x": 1, "y": 1}, 1e-10))
    p = m.query("x", given={"y": 3.0, "z": 6.0})
    assert p.mean() == pytest.approx(3.0, rel=1e-9)
    assert p.var() == pytest.approx(0.5e-10, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("chain", [True, False])
def test_large_networks_agree_with_dense_conditioning(chain):
    rng = np.random.default_rng(7)
    n = 700
    m = mk.BayesianNetwork()
    for k in range(n):
        parents = ([k - 1] if k else []) if chain else rng.choice(k, min(k, 2), replace=False).tolist()
        m.add(
            f"x{k}",
            mk.LinearGaussian(
                rng.normal(), {f"x{j}": rng.uniform(-0.6, 0.6) for j in parents}, rng.uniform(0.5, 2)
            ),
        )
    evidence = {f"x{k}": float(rng.normal()) for k in rng.choice(n, 50, replace=False)}
    names, mean, covariance, log_density = conditioned(*moments(m, {}), evidence)
    p = m.marginals(given=evidence)
    np.testing.assert_allclose([p[x].mean() for x in names], mean, atol=1e-9)
    np.testing.assert_allclose([p[x].var() for x in names], np.diag(covariance), atol=1e-9)
    assert m.log_evidence(evidence) == pytest.approx(log_density, rel=1e-9)
    some = names[:3]
    np.testing.assert_allclose(m.query(some, given=evidence).covariance(some), covariance[:3, :3], atol=1e-9)


def test_a_large_component_with_a_switch_agrees_with_its_two_networks():
    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.3, "b": 0.7})
    m.add("x0", {"a": mk.LinearGaussian(0, {}, 1), "b": mk.LinearGaussian(2, {}, 2)}, parents=["d"])
    for k in range(1, 350):
        m.add(f"x{k}", mk.LinearGaussian(0, {f"x{k - 1}": 0.9}, 1))
    m = m.query(["d", "x5"], given={"x349": 1.0, "x10": 4.0})
    assert m.mixture.codes.ravel().tolist() == [0, 1]
    for k, state in enumerate("ab"):
        net = mk.BayesianNetwork()
        net.add("x0", mk.LinearGaussian(*((0, {}, 1) if state == "a" else (2, {}, 2))))
        for j in range(1, 350):
            net.add(f"x{j}", mk.LinearGaussian(0, {f"x{j - 1}": 0.9}, 1))
        one = net.query("x5", given={"x349": 1.0, "x10": 4.0})
        assert m.means[k, 0] == pytest.approx(one.mean(), abs=1e-9)
        assert m.covariances[k, 0, 0] == pytest.approx(one.var(), abs=1e-9)
    assert m.weights.sum() == pytest.approx(1.0)


def test_very_improbable_evidence_keeps_its_proportions():
    """Tables of densities that differ by thousands of nats are added up as logs before they become numbers."""
    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.5, "b": 0.5})
    m.add("e", parents=["d"], states=["a", "b"], p=[[0.9, 0.1], [0.1, 0.9]])
    for name, where in (("d", 60.0), ("e", -60.0)):
        for k in range(2):
            rows = {"a": mk.LinearGaussian(where, {}, 1), "b": mk.LinearGaussian(0, {}, 1)}
            m.add(f"x{name}{k}", rows, parents=[name])
    evidence = {"xd0": 61.0, "xd1": -4.0, "xe0": 1.0, "xe1": -57.0}
    logs = {}
    for d in "ab":
        for e in "ab":
            log_p = np.log(0.5 * (0.9 if d == e else 0.1))
            for n, x in evidence.items():
                r = m[n].row(**{n[1]: d if n[1] == "d" else e})
                log_p += -0.5 * np.log(2 * np.pi) - 0.5 * (x - r.bias) ** 2
            logs[d, e] = log_p
    top = max(logs.values())
    whole = sum(np.exp(v - top) for v in logs.values())
    assert m.log_evidence(evidence) == pytest.approx(top + np.log(whole), rel=1e-12)
    p = m.query(["d", "e"], given=evidence)
    for key, v in logs.items():
        assert p[key] == pytest.approx(np.exp(v - top) / whole, abs=1e-9)


def test_draws_have_the_posterior_moments():
    rng = np.random.default_rng(3)
    network = random_network(rng, 4, 2)
    evidence = some_evidence(network, rng, 0.3)
    evidence.setdefault(next(n for n in network.variables if n[0] == "x"), 0.3)
    rows = network.sample(40_000, given=evidence, seed=0)
    for name, p in network.marginals(given=evidence).items():
        if name[0] == "x":
            assert rows[name].mean() == pytest.approx(p.mean(), abs=4 * p.sd() / 200 + 1e-12)
            assert rows[name].std() == pytest.approx(p.sd(), rel=0.05)
        else:
            for state in network.states(name):
                assert (rows[name] == state).mean() == pytest.approx(p[state], abs=4 * 0.5 / 200)
    prior = network.sample(40_000, seed=1)
    for name, p in network.marginals().items():
        if name[0] == "x":
            assert prior[name].mean() == pytest.approx(p.mean(), abs=4 * p.sd() / 200)


def test_an_intervention_cuts_the_parents_off():
    m = mk.BayesianNetwork()
    m.add("u", mk.LinearGaussian(0, {}, 1))
    m.add("x", mk.LinearGaussian(0, {"u": 1}, 1))
    m.add("y", mk.LinearGaussian(0, {"x": 2, "u": 3}, 1))
    assert m.query("y", given={"x": 1.0}).mean() == pytest.approx(2 + 3 * 0.5)
    assert m.do(x=1.0).query("y").mean() == pytest.approx(2.0)
    assert m.do(x=1.0).query("y").var() == pytest.approx(10.0)
    assert m.do(x=mk.LinearGaussian(1, {}, 4)).query("y").var() == pytest.approx(26.0)
    assert m.do(x=1.0).query("u", given={"y": 5.0}).mean() == pytest.approx(3 * 3 / 10)


def test_a_soft_finding_is_a_gaussian_child_seen_at_its_place():
    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.4, "b": 0.6})
    m.add("x", {"a": mk.LinearGaussian(0, {}, 1), "b": mk.LinearGaussian(3, {}, 2)}, parents=["d"])
    twin = m.copy()
    twin.add("seen", mk.LinearGaussian(0, {"x": 1}, 0.25))
    soft = m.query(["d", "x"], given={"x": mk.Soft(dist.Normal(2.0, 0.5))})
    child = twin.query(["d", "x"], given={"seen": 2.0})
    assert soft.allclose(child)
    assert soft["d"]["a"] == pytest.approx(child["d"]["a"], abs=1e-12)
    assert soft.info.log_evidence == pytest.approx(child.info.log_evidence, abs=1e-12)
    with pytest.raises(ValueError, match="engine='nuts'"):
        m.query("x", given={"x": mk.Soft(dist.Laplace(0.0, 1.0))})


def test_one_interval_has_exact_moments_in_gaussian_and_mixed_networks():
    from scipy.integrate import quad
    from scipy.stats import norm

    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.4, "b": 0.6})
    m.add("x", {"a": mk.LinearGaussian(0, {}, 1), "b": mk.LinearGaussian(3, {}, 2)}, parents=["d"])
    m.add("y", mk.LinearGaussian(1, {"x": 2}, 0.5))
    low, high = 0.5, 2.0

    def prior(x):
        return 0.4 * norm.pdf(x, 0, 1) + 0.6 * norm.pdf(x, 3, np.sqrt(2))

    mass = quad(prior, low, high, epsabs=1e-13)[0]
    mean = quad(lambda x: x * prior(x), low, high, epsabs=1e-13)[0] / mass
    square = quad(lambda x: x * x * prior(x), low, high, epsabs=1e-13)[0] / mass
    found = m.marginals(given={"x": mk.Interval(low, high)})
    assert found["x"].mean() == pytest.approx(mean, abs=1e-9)
    assert found["x"].var() == pytest.approx(square - mean**2, abs=1e-9)
    assert found["y"].mean() == pytest.approx(1 + 2 * mean, abs=1e-9)
    assert found["y"].var() == pytest.approx(0.5 + 4 * (square - mean**2), abs=1e-8)
    assert found["d"]["a"] == pytest.approx(0.4 * (norm.cdf(high) - norm.cdf(low)) / mass, abs=1e-9)
    info = found["x"].info
    assert info.log_evidence == pytest.approx(np.log(mass), abs=1e-9)
    assert (info.exact, info.details.intervals) == (False, "exact moments")
    rows = m.sample(20_000, given={"x": mk.Interval(low, high)}, seed=0)
    assert rows["x"].between(low, high).all()
    assert rows["x"].mean() == pytest.approx(mean, abs=4 * np.sqrt(square - mean**2) / np.sqrt(20_000))


def test_several_intervals_are_approximate_and_say_so():
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian(0, {}, 1))
    m.add("y", mk.LinearGaussian(0, {"x": 0.8}, 0.36))
    given = {"x": mk.Interval(0.0), "y": mk.Interval(0.0)}
    p = m.query("x", given=given)
    # the orthant probability of correlation 0.8 is 1/4 + asin(0.8) / (2 pi)
    assert p.info.log_evidence == pytest.approx(np.log(0.25 + np.arcsin(0.8) / (2 * np.pi)), abs=0.02)
    assert (p.info.exact, p.info.details.intervals) == (False, "expectation propagation")
    rows = m.sample(50_000, given=given, seed=1)
    assert p.mean() == pytest.approx(rows["x"].mean(), abs=0.02)


def test_intervals_far_out_and_impossible_ones():
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian(0, {}, 1))
    m.add("s", mk.LinearGaussian(1, {}, 0))
    p = m.query("x", given={"x": mk.Interval(10.0)})
    assert p.mean() == pytest.approx(10.0980932, abs=1e-6)
    assert p.info.log_evidence == pytest.approx(-53.2312852, abs=1e-6)
    assert m.query("x", given={"x": mk.Interval()}).sd() == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(ValueError, match="probability zero"):
        m.query("x", given={"s": mk.Interval(2.0, 3.0)})
    with pytest.raises(ValueError, match="too improbable to draw"):
        m.sample(5, given={"x": mk.Interval(10.0)}, seed=0)


def test_a_collapse_keeps_the_moments_and_says_so():
    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.4, "b": 0.6})
    m.add("x", {"a": mk.LinearGaussian(0, {}, 1), "b": mk.LinearGaussian(5, {}, 2)}, parents=["d"])
    full = m.query("x")
    one = m.query("x", engine=mk.engines.Gaussian(collapse=True))
    assert (len(full.weights), len(one.weights)) == (2, 1)
    assert full.info.exact
    assert not one.info.exact
    assert one.info.details.collapsed
    assert one.allclose(full)
    marginal = m.marginals(engine=mk.engines.Gaussian(collapse=True))["x"]
    assert len(marginal.weights) == 1
    kept = m.query(["d", "x"], engine=mk.engines.Gaussian(collapse=True))
    assert len(kept.weights) == 2  # one for each state that was asked for


def test_a_mode_over_states_that_are_not_asked_for_is_a_mode_of_the_mixture():
    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.45, "b": 0.55})
    m.add("x", {"a": mk.LinearGaussian(0, {}, 0.1), "b": mk.LinearGaussian(3, {}, 2)}, parents=["d"])
    best = m.map(targets=["x"])
    grid = np.linspace(-2, 6, 400_001)
    p = m.query("x")
    assert best["x"] == pytest.approx(grid[np.argmax(p.log_prob(grid))], abs=1e-4)
    assert best.log_prob == pytest.approx(p.log_prob(best["x"]), abs=1e-9)
    assert not best.info.exact


def test_too_many_configurations_are_refused_with_their_number():
    m = mk.BayesianNetwork()
    m.add("x0", mk.LinearGaussian())
    for k in range(1, 30):
        m.add(f"d{k}", [0.5, 0.5])
        m.add(
            f"x{k}",
            {0: mk.LinearGaussian(0, {f"x{k - 1}": 1}, 1), 1: mk.LinearGaussian(1, {}, 1)},
            parents=[f"d{k}"],
        )
    with pytest.raises(mk.errors.TooLarge, match=r"536,870,912 configurations of 29 discrete variables"):
        m.query("x29", given={"x0": 1.0})
    assert m.query("x29", given={f"d{k}": 0 for k in range(1, 30)}).var() == pytest.approx(30.0)
    # what the evidence separates is answered: every number seen
    evidence = {f"x{k}": 0.5 for k in range(30)}
    assert m.query("d3", given=evidence)[0] == pytest.approx(1 / (1 + np.exp(-0.125)), abs=1e-12)
    with pytest.raises(mk.errors.TooLarge, match="over the limit of 4;"):
        m.query("x3", engine=mk.engines.Gaussian(max_configurations=4))


def test_another_engine_says_which_one_treats_gaussian_nodes():
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian())
    with pytest.raises(
        ValueError,
        match="engine 'junction-tree' treats pieces of kind table, not gaussian; use engine='gaussian'",
    ):
        m.query("x", engine="junction-tree")
    assert mk.examples.sprinkler().query("rain", engine="gaussian")["yes"] == pytest.approx(0.5)


@pytest.mark.parametrize("bad", [float("inf"), [1.0, 2.0], "high"])
def test_a_value_that_is_no_number_is_refused(bad):
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian())
    m.add("y", mk.LinearGaussian(0, {"x": 1}, 1))
    with pytest.raises(mk.MarkoviaError, match="value of 'y'"):
        m.query("x", given={"y": bad})


def test_tables_of_the_same_states_in_another_order_are_added_axis_by_axis():
    rng = np.random.default_rng(9)
    m = mk.BayesianNetwork()
    m.add("d0", [0.3, 0.7])
    m.add("d1", [0.2, 0.5, 0.3])
    for name, order in (("x2", ["d0", "d1"]), ("x3", ["d1", "d0"])):
        cells = {
            (i, j): mk.LinearGaussian(rng.normal(), {}, 1.0)
            for i in m.states(order[0])
            for j in m.states(order[1])
        }
        m.add(name, cells, parents=order)
    check_all(m, {"x2": 0.4, "x3": -0.8})
    check_all(m, {"x2": 0.4})
