"""Graphs over numbers and states, and over nodes of several columns: brute force, closed forms, and known graphs."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, kstest, norm

import markovia as mk
from markovia.errors import InvalidArgument, UnknownVariable, UnsupportedModel
from markovia.structure.undirected.mixed_field import MixedField, fit_mixed
from markovia.structure.undirected.pairwise_field import contrasts
from markovia.structure.undirected.partial_correlation_search import canonical_correlations, wilks_p_values

MIXED = "mixed-pseudo-likelihood"


def small_field(seed=0, rows=7):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 2))
    codes = np.array([rng.integers(0, 3, rows), rng.integers(0, 2, rows)])
    shares = rng.dirichlet(np.ones(rows))
    field = MixedField(numbers, codes, [3, 2], shares, np.array([0, -1, 1, -2]), np.array([0, 1, 0, 2]))
    point = field.start() + rng.normal(0, 0.4, field.n_weights)
    point[field.n_fields : field.n_own] = rng.uniform(1.0, 3.0, 2)
    return field, point


def test_the_loss_is_that_of_every_columns_conditional_distribution():
    field, point = small_field()
    precision, matrix = point[field.n_fields : field.n_own], field.couplings(point)
    bases = [contrasts(3), contrasts(2)]

    def energy(x, y):
        z = np.concatenate([[x[0]], bases[0][y[0]], [x[1]], bases[1][y[1]]])
        return -0.5 * precision @ x**2 + point[: field.n_fields] @ z + 0.5 * z @ matrix @ z

    total = 0.0
    for share, x, y in zip(field.shares, field.numbers, field.codes.T, strict=True):
        for s in range(2):  # a Gaussian: its exponent at three points tells mean and variance
            at = [energy(np.where(np.arange(2) == s, v, x), y) for v in (-1.0, 0.0, 1.0)]
            bend, slope = at[0] - 2 * at[1] + at[2], (at[2] - at[0]) / 2
            total -= share * norm.logpdf(x[s], -slope / bend, np.sqrt(-1 / bend))
        for i, card in enumerate((3, 2)):
            logs = np.array([energy(x, np.where(np.arange(2) == i, a, y)) for a in range(card)])
            total -= share * (logs[y[i]] - np.logaddexp.reduce(logs))
    assert field(point)[0] == pytest.approx(total, abs=1e-12)


def test_the_gradient_is_that_of_finite_differences():
    field, point = small_field(1)
    _, gradient = field(point)
    for k in range(field.n_weights):
        step = np.zeros(field.n_weights)
        step[k] = 1e-6
        slope = (field(point + step)[0] - field(point - step)[0]) / 2e-6
        assert gradient[k] == pytest.approx(slope, abs=1e-7)


def test_the_penalised_fit_satisfies_the_optimality_conditions():
    field, _ = small_field(2, rows=60)
    field = MixedField(
        (field.numbers - field.shares @ field.numbers),
        field.codes,
        [3, 2],
        field.shares,
        field.order,
        field.node_of,
    )
    scale = np.sqrt(field.shares @ field.numbers**2)
    field = MixedField(field.numbers / scale, field.codes, [3, 2], field.shares, field.order, field.node_of)
    cut = np.full(9, 0.3)
    found = fit_mixed(field, cut, field.start(), 1e-9)
    _, gradient = field(found.point)
    assert np.abs(gradient[: field.n_own]).max() < 1e-6  # and so the least precision of one binds nowhere
    assert np.abs(gradient[field.n_own :][field.pair < 0]).max() < 1e-6  # within a node nothing is penalised
    theta, seen = found.point[field.n_own :], set()
    for pair in np.unique(field.pair[field.pair >= 0]):
        own = field.pair == pair
        size, slope = np.linalg.norm(theta[own]), gradient[field.n_own :][own]
        seen.add(bool(size))
        if size:
            assert slope == pytest.approx(-0.3 * theta[own] / size, abs=1e-6)
        else:
            assert np.linalg.norm(slope) <= 0.3 + 1e-6
    assert seen == {True, False}


def test_without_a_penalty_numbers_have_the_couplings_of_their_inverse_correlation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3))
    found = mk.learn_structure(dict(zip("abc", x.T, strict=True)), MIXED, alpha=0.0, tolerance=1e-9)
    q = np.linalg.inv(np.corrcoef(x.T))
    for (a, b), block in found.details.couplings.items():
        assert block[0, 0] == pytest.approx(-q["abc".index(a), "abc".index(b)], rel=1e-5)


def test_without_a_penalty_states_have_the_pseudo_likelihood_of_tables():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, 300)
    b = np.where(rng.random(300) < 0.5, a, rng.integers(0, 3, 300))
    data = pd.DataFrame({"a": a, "b": b, "c": rng.integers(0, 2, 300)}).astype(str)
    ours = mk.learn_structure(data, MIXED, alpha=0.0)
    theirs = mk.learn_structure(data, "l1-pseudo-likelihood", alpha=0.0)
    wanted = theirs.details.pseudo_log_likelihood
    assert ours.details.pseudo_log_likelihood == pytest.approx(wanted, abs=1e-4)


def chain(n=800, seed=0):
    """kind - size - price - bought - rating, of both kinds in turn."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    size = np.array([-1.0, 0.0, 1.2])[kind] + rng.normal(size=n)
    price = 0.8 * size + rng.normal(size=n)
    bought = rng.random(n) < 1 / (1 + np.exp(-1.5 * price))
    rating = 1.0 * bought + rng.normal(size=n)
    states = np.array(["s", "m", "l"])[kind]
    return pd.DataFrame(
        {
            "kind": states,
            "size": size,
            "price": price,
            "bought": np.where(bought, "yes", "no"),
            "rating": rating,
        }
    )


EDGES = [("kind", "size"), ("size", "price"), ("price", "bought"), ("bought", "rating")]


def test_a_chain_of_both_kinds_is_found_in_any_unit_and_order():
    data = chain()
    found = mk.learn_structure(data, MIXED)
    assert found.edges == EDGES
    assert found.details.kkt < 1e-5
    turned = data.sample(frac=1.0, random_state=0)[data.columns[::-1]]
    turned["price"] *= 1e9
    turned["size"] = 1e-9 * turned["size"] + 5e-9
    again = mk.learn_structure(turned, MIXED)
    assert {frozenset(e) for e in again.edges} == {frozenset(e) for e in EDGES}
    number = [again.nodes.index(n) for n in found.nodes]
    assert again.weights[np.ix_(number, number)] == pytest.approx(found.weights, abs=1e-4)
    with pytest.raises(UnsupportedModel, match="numbers and states"):
        found.fit()


def test_weights_are_repeated_rows_and_subsamples_choose_edges():
    data = chain(150)
    twice = mk.learn_structure(pd.concat([data, data]), MIXED, alpha=0.1)
    weighted = mk.learn_structure(data.assign(w=2.0), MIXED, alpha=0.1, weights="w")
    assert weighted.weights == pytest.approx(twice.weights, abs=1e-4)
    assert weighted.details.pseudo_log_likelihood == pytest.approx(
        twice.details.pseudo_log_likelihood, rel=1e-6
    )
    stable = mk.learn_structure(
        chain(600), MIXED, choose="stability", subsamples=10, n_alphas=6, smallest=0.2, seed=0
    )
    assert stable.edges == EDGES
    assert stable.details.choice.subsamples == 10


def vectors(n=400, seed=0):
    rng = np.random.default_rng(seed)
    hand = rng.normal(size=(n, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
    eye = hand @ [[0.0, 0.7], [0.5, 0.0]] + rng.normal(size=(n, 2))
    foot = eye.sum(axis=1) + rng.normal(size=n)
    return pd.DataFrame(
        {
            "hx": hand[:, 0],
            "hy": hand[:, 1],
            "ex": eye[:, 0],
            "foot": foot,
            "ey": eye[:, 1],
            "other": rng.normal(size=n),
        }
    )


NODES = {"hand": ["hx", "hy"], "eye": ["ex", "ey"]}


@pytest.mark.parametrize("method", [MIXED, "partial-correlation"])
def test_nodes_of_several_columns_are_joined_as_wholes(method):
    found = mk.learn_structure(vectors(), method, nodes=NODES)
    assert found.nodes == ["hand", "eye", "foot", "other"]
    assert found.edges == [("hand", "eye"), ("eye", "foot")]
    assert list(found.details.columns["eye"]) == ["ex", "ey"]
    model = found.fit()
    assert set(model.graph.edges) >= {("hx", "ex"), ("ex", "ey")}
    assert not model.graph.has_edge("hx", "foot")
    with pytest.raises(UnknownVariable, match="hz"):
        mk.learn_structure(vectors(), method, nodes={"hand": ["hx", "hz"]})
    for wrong, match in (
        ({"a": ["hx", "hy"], "b": ["hy"]}, "twice"), ({"foot": ["hx"]}, "another name"), (["hx"], "a mapping")
    ):  # fmt: skip
        with pytest.raises(InvalidArgument, match=match):
            mk.learn_structure(vectors(), method, nodes=wrong)
    apart = mk.learn_structure(vectors(), method, nodes=NODES, forbidden=[("hx", "ey"), ("ey", "hx")])
    assert not apart.graph.has_edge("hand", "eye")
    both = mk.learn_structure(vectors(), method, nodes=NODES, required=[("hx", "other")])
    assert both.graph.has_edge("hand", "other")


def test_columns_that_do_not_vary_are_named():
    data = chain(50)
    with pytest.raises(InvalidArgument, match="'flat' is constant"):
        mk.learn_structure(data.assign(flat=1.5), MIXED)
    with pytest.raises(InvalidArgument, match="'flat' has the same state"):
        mk.learn_structure(data.assign(flat="x"), MIXED)
    with pytest.raises(InvalidArgument, match="two nodes"):
        mk.learn_structure(vectors()[["hx", "hy"]], MIXED, nodes={"hand": ["hx", "hy"]})


def test_canonical_partial_correlations_and_their_test_are_those_of_residuals():
    data = vectors(80)
    found = mk.learn_structure(data, "partial-correlation", nodes=NODES, correction="none")
    x = data.to_numpy() - data.to_numpy().mean(axis=0)
    names = list(data.columns)
    for a, b in (("hand", "eye"), ("hand", "foot"), ("foot", "other")):
        own, other = ([names.index(c) for c in NODES.get(node, [node])] for node in (a, b))
        rest = [k for k in range(6) if k not in own + other]
        left = x[:, own + other] - x[:, rest] @ np.linalg.lstsq(x[:, rest], x[:, own + other], rcond=None)[0]
        u, v = (np.linalg.qr(left[:, part])[0] for part in (slice(0, len(own)), slice(len(own), None)))
        rho = np.linalg.svd(u.T @ v, compute_uv=False)
        i, j = found.nodes.index(a), found.nodes.index(b)
        assert abs(found.details.partial_correlations[i, j]) == pytest.approx(rho[0], abs=1e-9)
        if len(own) > 1:
            size = 80 - 1 - len(rest) - (len(own) + len(other) + 1) / 2
            p = chi2.sf(-size * np.log(1 - rho**2).sum(), len(own) * len(other))
            assert found.details.p_values[i, j] == pytest.approx(p, rel=1e-6)
    plain = mk.learn_structure(data, "partial-correlation", correction="none")
    same = [plain.nodes.index("foot"), plain.nodes.index("other")]
    assert found.details.p_values[2, 3] == pytest.approx(plain.details.p_values[same[0], same[1]])
    assert found.details.partial_correlations[2, 3] == pytest.approx(
        plain.details.partial_correlations[same[0], same[1]]
    )


def test_the_test_of_vectors_without_a_dependence_keeps_its_level():
    rng, node_of = np.random.default_rng(0), np.array([0, 0, 0, 1, 1, 2])
    p = []
    for _ in range(150):
        precision = np.linalg.inv(np.cov(rng.normal(size=(6, 30)), bias=True))
        _, log_lambda = canonical_correlations(precision, node_of)
        p.append(float(wilks_p_values(log_lambda[0, 1], np.array(3), np.array(2), 30.0, 6)))
    assert kstest(p, "uniform").pvalue > 0.01
