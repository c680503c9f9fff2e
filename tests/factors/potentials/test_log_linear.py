from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from markovia import Factor, Feature, Variable
from markovia.errors import (
    InvalidArgument,
    InvalidGraph,
    InvalidTable,
    TooLarge,
    UnknownState,
    UnknownVariable,
)
from markovia.factors import general_pairwise_features, ising_features, product
from markovia.local import LogLinear

X1, X2 = Variable("x1", [1, 2]), Variable("x2", [1, 2])


def spins(n: int) -> list[Variable]:
    return [Variable(f"y{i}", [-1, 1]) for i in range(1, n + 1)]


def chain_crf() -> LogLinear:
    """Three binary labels, inputs .1 .7 .3; one tied node feature and one tied edge feature."""
    y = [Variable(f"y{j}", [0, 1]) for j in (1, 2, 3)]
    node = Feature.tied([Feature(v, [0.0, x]) for v, x in zip(y, (0.1, 0.7, 0.3), strict=True)], "node")
    edge = Feature.tied(
        [Feature([a, b], lambda s, t: s != t) for a, b in ((y[0], y[1]), (y[1], y[2]))], "edge"
    )
    return LogLinear([node, edge], [3.0, -2.0])


def six_variables() -> LogLinear:
    y1, y2, y3, y4, y5, y6 = y = spins(6)
    ordered = [Feature([a, b], lambda s, t: s + t > 1) for a, b in pairwise(y)]
    return LogLinear(
        [
            Feature.tied(ordered, "f1"),
            Feature([y1, y3], lambda a, b: -2 * a * b, "f2"),
            Feature([y2, y3], lambda a, b: a * b, "f3"),
            Feature([y3, y4], lambda a, b: a * b, "f4"),
            Feature([y2, y4], lambda a, b: a * b < 0, "f5"),
            Feature([y4, y5], lambda a, b: 2 * a * b, "f6"),
            Feature([y3, y5], lambda a, b: -a * b, "f7"),
            Feature([y5, y6], lambda a, b: a + b > 0, "f8"),
        ],
        [1, 1, 1, 2, 2, 1, -1, 1],
    )


# -- feature vectors --------------------------------------------------------------------------------------


def test_general_pairwise_features_of_two_nodes() -> None:
    model = LogLinear(general_pairwise_features([X1, X2], [("x1", "x2")]), np.zeros(8))
    assert model.feature_vector({"x1": 2, "x2": 1}).tolist() == [0, 1, 1, 0, 0, 0, 1, 0]


def test_ising_features_of_two_nodes() -> None:
    model = LogLinear(ising_features([X1, X2], [("x1", "x2")]), np.zeros(5))
    assert model.feature_vector({"x1": 2, "x2": 1}).tolist() == [0, 1, 1, 0, 0]
    assert model.feature_vector({"x1": 2, "x2": 2}).tolist() == [0, 1, 0, 1, 1]


def test_tied_ising_features_count_the_edges_that_agree() -> None:
    x = [Variable(n, 2) for n in "abc"]
    model = LogLinear(ising_features(x, [("a", "b"), ("b", "c")], tied=True), np.zeros(7))
    assert model.feature_vector({"a": 1, "b": 1, "c": 1})[-1] == 2
    assert model.feature_vector({"a": 1, "b": 1, "c": 0})[-1] == 1


def test_general_features_represent_any_positive_pairwise_model() -> None:
    rng = np.random.default_rng(1)
    unary, pair = rng.uniform(0.1, 2, size=(2, 2)), rng.uniform(0.1, 2, size=(2, 2))
    weights = np.log(np.concatenate([unary.ravel(), pair.ravel()]))
    model = LogLinear(general_pairwise_features([X1, X2], [("x1", "x2")]), weights)
    direct = Factor([X1], unary[0]) * Factor([X2], unary[1]) * Factor([X1, X2], pair)
    assert product(model.factors()).allclose(direct)


# -- the chain with three labels --------------------------------------------------------------------------


def test_chain_feature_values_and_potentials() -> None:
    model = chain_crf()
    np.testing.assert_allclose(model.feature_vector({"y1": 1, "y2": 1, "y3": 0}), [0.8, 1.0])
    np.testing.assert_allclose(model.log_potential(["y1"]), [0, 0.3])
    np.testing.assert_allclose(model.log_potential(["y2"]), [0, 2.1])
    np.testing.assert_allclose(model.log_potential(["y3"]), [0, 0.9])
    edge = next(f for f in model.factors() if set(f.names) == {"y1", "y2"})
    np.testing.assert_allclose(edge.log_values.ravel(), [0, -2, -2, 0], atol=1e-12)


def test_chain_partition_function_marginals_and_expectations() -> None:
    model = chain_crf()
    joint = model.joint()
    assert joint.total == pytest.approx(33.0486787, abs=1e-6)
    p = joint.normalize()
    assert [p.marginal(n)[1] for n in ("y1", "y2", "y3")] == pytest.approx(
        [0.8728929, 0.9523017, 0.9145480], abs=1e-6
    )
    np.testing.assert_allclose(
        p.marginal(["y1", "y2"]).values, [[0.0403305, 0.0867766], [0.0073677, 0.8655252]], atol=1e-6
    )
    np.testing.assert_allclose(
        p.marginal(["y2", "y3"]).values, [[0.0357861, 0.0119122], [0.0496659, 0.9026358]], atol=1e-6
    )
    np.testing.assert_allclose(model.expected_features(), [1.0282649, 0.1557224], atol=1e-6)
    assert joint.argmax() == {"y1": 1, "y2": 1, "y3": 1}
    label = {"y1": 1, "y2": 1, "y3": 0}
    assert model.score(label) - np.log(joint.total) == pytest.approx(-3.0979816, abs=1e-6)


def test_the_gradient_is_observed_minus_expected_features() -> None:
    model, label = chain_crf(), {"y1": 1, "y2": 1, "y3": 0}
    gradient = model.feature_vector(label) - model.expected_features()
    np.testing.assert_allclose(gradient, [-0.2282649, 0.8442776], atol=1e-6)

    def log_likelihood(weights: np.ndarray) -> float:
        moved = LogLinear(model.features, weights)
        return moved.score(label) - float(np.log(moved.joint().total))

    step = 1e-6
    for j in range(2):
        shift = step * np.eye(2)[j]
        slope = (log_likelihood(model.weights + shift) - log_likelihood(model.weights - shift)) / (2 * step)
        assert slope == pytest.approx(gradient[j], abs=1e-6)


# -- the model with six variables -------------------------------------------------------------------------


def test_six_variable_partition_function_and_mode() -> None:
    model = six_variables()
    joint = model.joint()
    assert joint.total == pytest.approx(740073.10365, rel=1e-10)
    assert np.log(joint.total) == pytest.approx(13.5145042490, abs=1e-9)
    mode = joint.argmax()
    assert [mode[f"y{i}"] for i in range(1, 7)] == [-1, 1, 1, 1, 1, 1]
    assert model.score(mode) == pytest.approx(13)
    assert joint.normalize()[mode] == pytest.approx(0.5977969, abs=1e-6)
    up = [joint.normalize().marginal(f"y{i}")[1] for i in range(1, 7)]
    expected = [0.0704556, 0.7356655, 0.9676177, 0.9687721, 0.9690957, 0.8690288]
    assert up == pytest.approx(expected, abs=1e-6)


def test_six_variable_expected_features() -> None:
    expected = [3.5584155, 1.8450674, 0.4466550, 0.9950337, 0.2789764, 1.9968537, -0.9945081, 0.8535767]
    np.testing.assert_allclose(six_variables().expected_features(), expected, atol=1e-6)


def test_each_feature_goes_into_one_clique_of_the_junction_tree() -> None:
    model = six_variables()
    cliques = [("y1", "y2", "y3"), ("y2", "y3", "y4"), ("y3", "y4", "y5"), ("y5", "y6")]
    logs = model.clique_log_potentials(cliques)
    states = (-1, 1)
    for (i, y2), (j, y3), (k, y4) in (
        (a, b, c) for a in enumerate(states) for b in enumerate(states) for c in enumerate(states)
    ):
        assert logs[1][i, j, k] == 2 * (y2 * y4 < 0) + (y3 + y4 > 1) + 2 * y3 * y4
    y = {v.name: v for v in model.variables}
    potentials = [Factor.from_log([y[n] for n in c], table) for c, table in zip(cliques, logs, strict=True)]
    assert product(potentials).allclose(model.joint())


def test_a_feature_outside_every_clique_is_named() -> None:
    with pytest.raises(InvalidGraph, match="'y1', 'y3'"):
        six_variables().clique_log_potentials(
            [("y1", "y2"), ("y2", "y3", "y4"), ("y3", "y4", "y5"), ("y5", "y6")]
        )


# -- expectations, identifiability, errors ----------------------------------------------------------------


def test_expected_features_come_from_a_joint_or_from_a_marginal_oracle() -> None:
    model = six_variables()
    joint = model.joint()
    asked: list[tuple[str, ...]] = []

    def oracle(names: Sequence[str]) -> Factor:
        asked.append(tuple(names))
        return joint.marginal(names)

    np.testing.assert_allclose(model.expected_features(oracle), model.expected_features(joint))
    assert len(asked) == len(set(asked))


def test_scaling_a_potential_does_not_change_the_distribution() -> None:
    """A constant added to all weights of one variable is not identifiable."""
    features = general_pairwise_features([X1, X2], [("x1", "x2")])
    weights = np.random.default_rng(2).normal(size=8)
    shifted = weights + np.array([3.0, 3.0, 0, 0, 0, 0, 0, 0])
    one, other = LogLinear(features, weights).joint(), LogLinear(features, shifted).joint()
    assert not one.allclose(other)
    assert one.normalize().allclose(other.normalize())


def test_features_of_the_same_variables_share_one_factor() -> None:
    features = [Feature([X1, X2], np.eye(2)), Feature([X2, X1], [[0, 1], [0, 0]])]
    (f,) = LogLinear(features, [1.0, 2.0]).factors()
    np.testing.assert_allclose(f.transpose(["x1", "x2"]).log_values, [[1, 0], [2, 1]])


def test_bad_features_and_assignments_are_named() -> None:
    with pytest.raises(InvalidTable, match="'g' has shape"):
        Feature([X1, X2], [[1, 2, 3], [4, 5, 6]], "g")
    with pytest.raises(InvalidTable, match="twice"):
        Feature([X1, X1], np.eye(2))
    with pytest.raises(InvalidArgument, match="finite"):
        Feature([X1], [0.0, np.inf])
    with pytest.raises(InvalidArgument, match=r"'f\(x1\)' at \(1,\) is None, not a number"):
        Feature([X1], lambda x: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidArgument, match="one weight a feature"):
        LogLinear([Feature([X1], [0, 1])], [1.0, 2.0])
    with pytest.raises(InvalidTable, match="states of 'x1'"):
        LogLinear([Feature([X1], [0, 1]), Feature(["x1"], [0, 1])], [1.0, 2.0])
    with pytest.raises(InvalidArgument, match="at least one instance"):
        Feature.tied([])
    model = chain_crf()
    with pytest.raises(InvalidArgument, match="no state for 'y3'"):
        model.feature_vector({"y1": 0, "y2": 1})
    with pytest.raises(UnknownState):
        model.feature_vector({"y1": 0, "y2": 1, "y3": 7})
    with pytest.raises(UnknownVariable, match="did you mean 'y1'"):
        model.log_potential(["Y1"])


def test_a_joint_of_forty_variables_is_refused() -> None:
    x = [Variable(f"x{i}", 2) for i in range(40)]
    model = LogLinear([Feature(v, [0, 1]) for v in x], np.ones(40))
    with pytest.raises(TooLarge, match="40 variables"):
        model.joint()


def test_a_month_of_rain_is_averaged_without_its_joint_table() -> None:
    # exp(0.16 [dry]) a day and exp(0.85 [same]) a pair of days: powers of a 2 x 2 matrix
    days = [Variable(f"day{i}", 2) for i in range(28)]
    dry = Feature.tied([Feature(d, [1.0, 0.0]) for d in days], "dry")
    same = Feature.tied([Feature(p, np.eye(2)) for p in pairwise(days)], "same")
    model = LogLinear([dry, same], [0.16, 0.85])
    own, pair = np.exp([0.16, 0.0]), np.exp(0.85 * np.eye(2))
    before = [own]
    for _ in days[1:]:
        before.append(own * (before[-1] @ pair))
    after = [np.ones(2)]
    for _ in days[1:]:
        after.append(pair @ (own * after[-1]))
    after.reverse()
    z = before[-1].sum()
    each = sum(f[0] * b[0] for f, b in zip(before, after, strict=True)) / z
    pairs = (
        sum(np.trace(np.diag(f) @ pair @ np.diag(own * b)) for f, b in zip(before, after[1:], strict=False))
        / z
    )
    np.testing.assert_allclose(model.expected_features(), [each, pairs], rtol=1e-12)
    np.testing.assert_allclose(model.expected_features(engine="loopy-bp"), [each, pairs], rtol=1e-6)


def test_expected_features_keep_their_axes_and_the_sizes_of_extreme_weights() -> None:
    rng = np.random.default_rng(0)
    x = [Variable(f"x{i}", 2 + i % 2) for i in range(4)]
    scopes = [(0, 1), (1, 0), (3, 2), (0, 3), (2,)]  # the same pair in both orders
    tables = [rng.normal(size=[len(x[i]) for i in scope]) for scope in scopes]
    features = [Feature([x[i] for i in scope], t) for scope, t in zip(scopes, tables, strict=True)]
    for size in (1.0, 200.0):
        model = LogLinear(features, size * rng.normal(size=5))
        np.testing.assert_allclose(
            model.expected_features(), model.expected_features(model.joint()), rtol=1e-9
        )


def test_a_model_too_wide_for_exact_expectations_names_an_engine() -> None:
    x = {(i, j): Variable(f"x{i}_{j}", 2) for i in range(40) for j in range(40)}
    near = [(x[i, j], x[k]) for i, j in x for k in ((i + 1, j), (i, j + 1)) if k in x]
    grid = LogLinear([Feature.tied([Feature(p, np.eye(2)) for p in near], "same")], [0.1])
    with pytest.raises(TooLarge, match="engine='loopy-bp'"):
        grid.expected_features()
