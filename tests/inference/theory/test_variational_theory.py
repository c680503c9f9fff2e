"""Mean parameters, consistency, the marginal polytope, free energies and conjugate duals, on models with known answers."""

import numpy as np
import pytest

import markovia as mk
from markovia.factors.potentials.log_linear import general_pairwise_features
from model_strategies import log_sum, log_weights, random_case, tries

V = mk.variational


def pair(p11, p1, p2, names="ab"):
    """The table of two binary variables with the given mean parameters."""
    return mk.Factor(list(names), [[1 - p1 - p2 + p11, p2 - p11], [p1 - p11, p11]])


def test_the_gibbs_principle_holds_for_random_distributions():
    for seed in tries(60):
        rng = np.random.default_rng(seed)
        case = random_case(seed, "undirected", max_entries=100)
        logs = log_weights(case)
        log_z = float(log_sum(logs))
        if log_z == -np.inf:
            continue
        variables = [case.model.variable(n) for n in case.cards]
        best = mk.Factor(variables, np.exp(logs - log_z))
        assert V.elbo(case.model, best) == pytest.approx(log_z, abs=1e-9)
        assert V.kl(best, case.model) == pytest.approx(0.0, abs=1e-9)
        q = mk.Factor(variables, rng.random(logs.shape) * np.isfinite(logs))
        p = best.values[q.values > 0]
        share = q.normalize().values[q.values > 0]
        gap = float((share * np.log(share / p)).sum())
        assert V.gibbs_free_energy(case.model, q) == pytest.approx(gap - log_z, abs=1e-8)
        assert V.kl(q, case.model) == pytest.approx(gap, abs=1e-8)


def test_mass_on_the_impossible_costs_infinitely_much():
    model = mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [1, 0])])
    assert V.gibbs_free_energy(model, mk.Factor(["a"], [0.5, 0.5])) == np.inf
    assert V.elbo(model, mk.Factor(["a"], [1.0, 0.0])) == pytest.approx(0.0)


def test_two_spins_give_the_worked_bound():
    model = mk.MarkovNetwork.ising({("a", "b"): 0.5}, {"a": 0.2, "b": -0.1})
    q = model.marginals(engine=mk.engines.MeanField(tolerance=1e-12))
    assert V.elbo(model, q) == pytest.approx(1.4061636, abs=1e-7)
    means = V.mean_parameters(model)
    assert means["a",].values @ [-1, 1] == pytest.approx(0.1527052, abs=1e-7)
    assert means["b",].values @ [-1, 1] == pytest.approx(-0.0085351, abs=1e-7)
    assert V.bethe_free_energy(model, means) == pytest.approx(-1.5221363, abs=1e-7)


def test_evidence_takes_part_in_free_energies():
    bn = mk.examples.sprinkler()
    given = {"wet": "yes"}
    free = [n for n in bn.variables if n != "wet"]
    posterior = bn.query(free, given=given)
    assert V.elbo(bn, posterior, given=given) == pytest.approx(bn.log_evidence(given=given), abs=1e-9)
    assert V.kl(posterior, bn, given=given) == pytest.approx(0.0, abs=1e-9)
    means = V.mean_parameters(bn, given=given)
    assert ("wet",) not in means
    assert V.locally_consistent(means)


def test_distributions_that_overlap_or_miss_a_variable_are_refused():
    model = mk.MarkovNetwork.ising({("a", "b"): 0.5})
    a, b = (mk.Factor([model.variable(n)], [0.5, 0.5]) for n in "ab")
    with pytest.raises(mk.errors.InvalidArgument, match="share no variable"):
        V.elbo(model, [a, a * b])
    with pytest.raises(mk.errors.InvalidArgument, match="cover"):
        V.elbo(model, [a])
    with pytest.raises(mk.errors.InvalidArgument):
        V.elbo(model, [0.5])
    with pytest.raises(mk.errors.InvalidArgument):
        V.mean_parameters("model")


def test_true_marginals_are_consistent_and_realisable():
    for seed in tries(40):
        case = random_case(seed + 80, max_entries=60)
        if log_sum(log_weights(case)) == -np.inf:
            continue
        means = V.mean_parameters(case.model)
        assert V.locally_consistent(means), seed
        member = V.in_marginal_polytope(means)
        assert member, seed
        assert V.locally_consistent([member.joint, *means.values()], tolerance=1e-6)


def test_the_frustrated_cycle_is_locally_but_not_globally_consistent():
    cycle = [pair(0.4, 0.5, 0.5, "ab"), pair(0.4, 0.5, 0.5, "bc"), pair(0.1, 0.5, 0.5, "ac")]
    singles = [mk.Factor([n], [0.5, 0.5]) for n in "abc"]
    assert V.locally_consistent([*singles, *cycle])
    member = V.in_marginal_polytope([*singles, *cycle])
    assert not member
    assert member.distance > 0.1
    # the separator is a proof: larger at the pseudo-marginals than at any configuration
    assert member.margin > 0.01
    tables = [*singles, *cycle]
    here = sum(float((w * t.values).sum()) for w, t in zip(member.separator, tables, strict=True))
    for at in np.ndindex(2, 2, 2):
        place = dict(zip("abc", at, strict=True))
        there = sum(
            float(w[tuple(place[n] for n in t.names)]) for w, t in zip(member.separator, tables, strict=True)
        )
        assert there <= here - member.margin + 1e-9
    # on a tree local consistency is enough
    assert V.in_marginal_polytope([*singles, *cycle[:2]])


def test_inconsistencies_are_named():
    said = V.locally_consistent(
        [mk.Factor(["a"], [0.5, 0.4]), pair(0.25, 0.5, 0.5), pair(0.1, 0.2, 0.5, "bc")]
    )
    assert not said
    assert any("sums to 0.9" in f for f in said.failures)
    assert any("['a', 'b'] and ['b', 'c'] differ by 0.3 on ['b']" in f for f in said.failures)
    assert said.worst == pytest.approx(0.3)
    assert "not locally consistent" in str(said)


def test_the_mean_field_set_is_not_convex():
    low, high, middle = pair(0.0, 0.0, 0.0), pair(1.0, 1.0, 1.0), pair(0.5, 0.5, 0.5)
    assert V.factorised([low])
    assert V.factorised([high])
    assert not V.factorised([middle])
    assert V.in_marginal_polytope([middle])
    assert V.factorised([pair(0.25, 0.5, 0.5)])


def test_the_bethe_entropy_is_exact_on_trees_only():
    tree = mk.generators.ising_grid(1, 5, coupling="random", field="random", seed=3)
    assert V.bethe_entropy(V.mean_parameters(tree)) == pytest.approx(tree.joint().entropy(), abs=1e-9)
    assert -V.bethe_free_energy(tree, V.mean_parameters(tree)) == pytest.approx(
        tree.log_partition(), abs=1e-9
    )
    ring = mk.MarkovNetwork.ising({("a", "b"): 1.0, ("b", "c"): 1.0, ("c", "a"): 1.0})
    assert abs(V.bethe_entropy(V.mean_parameters(ring)) - ring.joint().entropy()) > 0.1
    with pytest.raises(mk.errors.InvalidArgument, match="no table holds"):
        V.bethe_free_energy(ring, [mk.Factor([ring.variable("a")], [0.5, 0.5])])


# -- conjugate duals ----------------------------------------------------------------------------------------------


def spins(weights):
    a, b = mk.Variable("a", [-1, 1]), mk.Variable("b", [-1, 1])
    features = [
        mk.Feature(a, lambda x: x),
        mk.Feature(b, lambda x: x),
        mk.Feature([a, b], lambda x, y: x * y),
    ]
    return mk.local.LogLinear(features, weights)


def test_the_dual_is_minus_the_entropy_and_gives_the_weights_back():
    rng = np.random.default_rng(0)
    for _ in range(20):
        theta = rng.normal(size=3)
        family = spins(theta)
        mu = family.expected_features()
        dual = V.conjugate_dual(family, mu)
        log_z = float(np.log(family.joint().total))
        assert dual.interior
        np.testing.assert_allclose(dual.weights, theta, atol=1e-6)
        assert dual.value == pytest.approx(-family.joint().entropy(), abs=1e-8)
        assert dual.value == pytest.approx(theta @ mu - log_z, abs=1e-8)
        # Fenchel's inequality at any other weights
        other = rng.normal(size=3)
        assert dual.value >= other @ mu - np.log(spins(other).joint().total) - 1e-9


def test_the_dual_is_infinite_outside_and_finite_on_the_boundary():
    family = spins([0.0, 0.0, 0.0])
    assert float(V.conjugate_dual(family, [0.9, 0.9, -0.9])) == np.inf
    assert V.conjugate_dual(family, [0.0, 0.0, 1.5]).joint is None
    edge = V.conjugate_dual(family, [0.0, 0.0, 1.0])  # a and b always equal: one coin
    assert edge.value == pytest.approx(-np.log(2), abs=1e-9)
    assert edge.weights is None
    assert not edge.interior
    corner = V.conjugate_dual(family, [1.0, 1.0, 1.0])
    assert corner.value == pytest.approx(0.0, abs=1e-9)


def test_the_exact_variational_formula_recovers_log_z():
    theta = np.array([0.3, -0.2, 0.7])
    log_z = float(np.log(spins(theta).joint().total))
    best = -np.inf
    for other in np.linspace(-1, 1, 21):  # along a line of mean parameters through the optimum
        mu = spins(theta * (1 + other)).expected_features()
        best = max(best, theta @ mu - float(V.conjugate_dual(spins(theta), mu)))
        assert theta @ mu - float(V.conjugate_dual(spins(theta), mu)) <= log_z + 1e-9
    assert best == pytest.approx(log_z, abs=1e-9)


def test_overcomplete_families_and_models_have_the_same_dual():
    model = mk.MarkovNetwork.ising({("a", "b"): 0.7, ("b", "c"): -0.4, ("a", "c"): 0.3}, {"a": 0.2})
    means = V.mean_parameters(model)
    dual = V.conjugate_dual(model, means)
    assert dual.value == pytest.approx(-model.joint().entropy(), abs=1e-8)
    assert dual.joint.allclose(model.joint(), atol=1e-7)
    variables = [model.variable(n) for n in "abc"]
    family = mk.local.LogLinear(
        general_pairwise_features(variables, [("a", "b"), ("b", "c"), ("a", "c")]), np.zeros(18)
    )
    mu = family.expected_features(model.joint())
    assert float(V.conjugate_dual(family, mu)) == pytest.approx(dual.value, abs=1e-8)


def test_sizes_are_checked():
    with pytest.raises(mk.errors.InvalidArgument, match="one mean parameter a feature"):
        V.conjugate_dual(spins([0, 0, 0]), [0.1])
    with pytest.raises(mk.errors.TooLarge):
        V.in_marginal_polytope([mk.Factor([f"v{i}"], [0.5, 0.5]) for i in range(20)])
