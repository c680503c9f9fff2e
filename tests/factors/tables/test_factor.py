import pickle
from string import ascii_lowercase

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia import Factor, Variable
from markovia.errors import InvalidArgument, InvalidTable, TooLarge, UnknownState, UnknownVariable
from markovia.factors import product

NAMES = "abcde"


@st.composite
def random_factors(draw: st.DrawFn, count: int, zeros: bool = True) -> list[Factor]:
    """Factors over overlapping subsets of five variables that agree about their cardinalities."""
    cards = draw(st.lists(st.integers(1, 3), min_size=5, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors = []
    for _ in range(count):
        scope = draw(st.permutations(NAMES)).copy()[: draw(st.integers(0, 4))]
        shape = [cards[NAMES.index(n)] for n in scope]
        values = rng.uniform(0.1, 2.0, size=shape)
        if zeros:
            values = values * (rng.random(shape) > 0.3)
        factors.append(Factor(scope, values))
    return factors


def einsum(factors: list[Factor], out: str) -> np.ndarray:
    """Sum a product down to some axes with plain NumPy."""
    inputs = ",".join("".join(f.names) for f in factors)
    result: np.ndarray = np.einsum(f"{inputs}->{out}", *(f.values for f in factors))
    return result


def union(factors: list[Factor]) -> str:
    return "".join(sorted({n for f in factors for n in f.names}))


# -- algebra against plain NumPy ----------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(random_factors(3))
def test_product_agrees_with_einsum(factors: list[Factor]) -> None:
    names = union(factors)
    result = product(factors).transpose(list(names))
    np.testing.assert_allclose(result.values, einsum(factors, names))


@settings(max_examples=100, deadline=None)
@given(random_factors(3), st.sets(st.sampled_from(NAMES)))
def test_sum_and_max_out_agree_with_numpy(factors: list[Factor], gone: set[str]) -> None:
    joint = product(factors)
    kept = [n for n in joint.names if n not in gone]
    axes = tuple(i for i, n in enumerate(joint.names) if n in gone)
    out = [n for n in joint.names if n in gone]
    np.testing.assert_allclose(joint.sum_out(out).values, einsum(factors, "".join(kept)), atol=1e-12)
    np.testing.assert_allclose(joint.max_out(out).values, joint.values.max(axis=axes))
    np.testing.assert_allclose(
        joint.marginal(kept[::-1]).values, einsum(factors, "".join(kept[::-1])), atol=1e-12
    )


@settings(max_examples=60, deadline=None)
@given(random_factors(3), st.permutations(range(3)))
def test_the_order_of_a_product_does_not_matter(factors: list[Factor], order: list[int]) -> None:
    one = product(factors)
    other = product([factors[i] for i in order])
    assert one.allclose(other)
    assert one.allclose(factors[0] * (factors[1] * factors[2]))


@settings(max_examples=60, deadline=None)
@given(random_factors(2))
def test_division_undoes_multiplication_where_the_divisor_is_positive(factors: list[Factor]) -> None:
    f, g = factors
    joint = f * g
    back = joint / g
    support = (g * Factor.of(joint.variables, np.ones(joint.shape))).transpose(back.names).values > 0
    expected = (f * Factor.of(joint.variables, np.ones(joint.shape))).transpose(back.names).values
    np.testing.assert_allclose(back.values, np.where(support, expected, 0.0))


@settings(max_examples=60, deadline=None)
@given(random_factors(2), st.data())
def test_reducing_commutes_with_multiplying(factors: list[Factor], data: st.DataObject) -> None:
    joint = product(factors)
    fixed = {
        v.name: data.draw(st.sampled_from(v.states)) for v in joint.variables if data.draw(st.booleans())
    }
    assert joint.reduce(fixed).allclose(product([f.reduce(fixed) for f in factors]))


def test_zero_over_zero_is_zero_and_positive_over_zero_an_error() -> None:
    top, bottom = Factor("a", [0, 1]), Factor("a", [0, 2])
    assert (top / bottom).values.tolist() == [0, 0.5]
    with pytest.raises(InvalidTable, match="0/0"):
        _ = Factor("a", [1, 1]) / bottom


def test_sixty_four_axes_work_and_sixty_five_do_not() -> None:
    many = [Variable(f"v{i}", 1) for i in range(62)]
    f = Factor([*many, Variable("x", 2)], np.arange(2).reshape((1,) * 62 + (2,)))
    g = Factor(["x", "y"], [[1, 2], [3, 4]])
    joint = f * g
    assert len(joint.variables) == 64
    assert joint.marginal(["y"]).values.tolist() == [3, 4]
    with pytest.raises(TooLarge, match="65 variables"):
        _ = joint * Factor("z", [1, 1])


def test_scalars_multiply_and_the_empty_product_is_one() -> None:
    f = Factor("a", [1, 2])
    assert product([]).values == 1.0
    assert (2 * f).values.tolist() == [2, 4]
    assert (f / 2).values.tolist() == [0.5, 1]
    assert (f * Factor.scalar(3.0)).values.tolist() == [3, 6]


def test_normalising_over_a_child_gives_rows() -> None:
    f = Factor(["a", "b"], [[1, 3], [2, 2]])
    assert f.normalize().total == pytest.approx(1)
    np.testing.assert_allclose(f.normalize("b").values, [[0.25, 0.75], [0.5, 0.5]])
    with pytest.raises(InvalidTable, match="sum to zero"):
        Factor(["a", "b"], [[0, 0], [2, 2]]).normalize("b")


def test_rename_changes_names_only() -> None:
    f = Factor([Variable("a", ["x", "y"]), "b"], [[1, 2], [3, 4]]).rename({"a": "c"})
    assert f.names == ("c", "b")
    assert f.variable("c").states == ("x", "y")
    with pytest.raises(InvalidArgument, match="share a name"):
        f.rename({"c": "b"})
    with pytest.raises(UnknownVariable):
        f.rename({"z": "b"})


def test_factors_that_disagree_about_states_do_not_multiply() -> None:
    with pytest.raises(InvalidTable, match="disagree about 'a'"):
        _ = Factor([Variable("a", ["x", "y"])], [1, 2]) * Factor("a", [1, 2])


# -- as a distribution --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)))
def test_information_identities(seed: int, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(seed)
    p = Factor(["x", "y", "z"], rng.uniform(0, 1, size=shape) + 1e-3)
    q = Factor(["z", "x", "y"], rng.uniform(0.1, 1, size=(shape[2], shape[0], shape[1])))

    def h(*names: str) -> float:
        return p.marginal(names).entropy()

    assert 0 <= p.entropy() <= np.log(p.size) + 1e-12
    assert p.kl(p) == pytest.approx(0, abs=1e-12)
    assert p.kl(q) >= 0
    independent = p.normalize().marginal("x") * p.normalize().marginal("y")
    information = p.mutual_information("x", "y")
    assert information == pytest.approx(p.marginal(["x", "y"]).kl(independent), abs=1e-9)
    assert information == pytest.approx(h("x") + h("y") - h("x", "y"), abs=1e-9)
    chain = p.mutual_information("x", "y") + p.mutual_information("x", "z", given="y")
    assert chain == pytest.approx(p.mutual_information("x", ["y", "z"]), abs=1e-9)
    assert p.mutual_information("x", "y", base=2) == pytest.approx(information / np.log(2), abs=1e-9)


def test_two_coins_one_independent_and_one_not() -> None:
    """The first factorises (.6 * .8 = .48), the second does not (.7 * .6 is not .4)."""
    p1 = Factor(["x", "y"], [[0.08, 0.32], [0.12, 0.48]])
    p2 = Factor(["x", "y"], [[0.4, 0.3], [0.2, 0.1]])
    assert p1.independent("x", "y")
    assert p1.mutual_information("x", "y") == pytest.approx(0, abs=1e-12)
    assert not p2.independent("x", "y")
    assert p2.marginal("x")[0] == pytest.approx(0.7)
    assert p2.marginal("y")[0] == pytest.approx(0.6)
    assert p2.mutual_information("x", "y") == pytest.approx(0.00402174, abs=1e-8)


def test_a_dependent_pair_has_the_information_of_the_text() -> None:
    p = Factor(["x", "y"], [[0.16, 0.04], [0.16, 0.64]])
    assert p.marginal("x")[1] == pytest.approx(0.8)
    assert p.marginal("y")[1] == pytest.approx(0.68)
    assert not p.independent("x", "y")
    assert p.mutual_information("x", "y") == pytest.approx(0.126467, abs=1e-6)


def test_divergence_is_infinite_where_mass_meets_zero() -> None:
    assert Factor("a", [1, 1]).kl(Factor("a", [1, 0])) == np.inf
    assert Factor("a", [1, 0]).kl(Factor("a", [1, 1])) == pytest.approx(np.log(2))


def test_conditional_independence_in_a_chain() -> None:
    rng = np.random.default_rng(0)
    chain = Factor(["a", "b"], rng.random((2, 3))) * Factor(["b", "c"], rng.random((3, 2)))
    assert chain.independent("a", "c", given="b")
    assert not chain.independent("a", "c")
    with pytest.raises(InvalidArgument, match="overlap"):
        chain.independent("a", "a")


def test_expectation_uses_states_not_codes() -> None:
    f = Factor([Variable("x", [-1, 1]), Variable("y", [10, 20])], [[1, 0], [0, 3]])
    assert f.expectation(lambda x, y: x * y) == pytest.approx((-10 + 3 * 20) / 4)


def test_argmax_names_the_largest_entry() -> None:
    f = Factor([Variable("a", ["no", "yes"]), "b"], [[1, 2, 3], [9, 1, 1]])
    assert f.argmax() == {"a": "yes", "b": 0}


# -- comparing, showing, freezing ---------------------------------------------------------------------------


def test_equality_ignores_the_order_of_axes() -> None:
    values = np.arange(6.0).reshape(2, 3)
    f, g = Factor(["a", "b"], values), Factor(["b", "a"], values.T)
    assert f.allclose(g)
    assert f == g
    assert f != Factor(["a", "b"], values + 1e-9)
    assert f.allclose(Factor(["a", "b"], values + 1e-13))
    assert not f.allclose(Factor(["a", "c"], values))
    assert not f.allclose(f.rename({"a": "z"}))


def test_a_factor_cannot_be_changed() -> None:
    source = np.ones((2, 2))
    f = Factor(["a", "b"], source)
    source[0, 0] = 7
    assert f[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        f.values[0, 0] = 2
    with pytest.raises(ValueError, match="read-only"):
        f.reduce({"a": 0}).values[0] = 2
    with pytest.raises(AttributeError, match="immutable"):
        f.values = source
    with pytest.raises(AttributeError, match="immutable"):
        f.variables[0].name = "z"
    with pytest.raises(TypeError):
        hash(f)


def test_a_factor_survives_pickling() -> None:
    f = Factor([Variable("a", ["no", "yes"]), "b"], [[1, 2], [3, 4]])
    assert pickle.loads(pickle.dumps(f)) == f


def test_log_form_round_trips() -> None:
    f = Factor(["a", "b"], [[0, 1], [2, 3]])
    assert Factor.from_log(f.variables, f.log_values).allclose(f)


def test_entries_are_found_by_state() -> None:
    f = Factor([Variable("a", ["no", "yes"]), Variable("b", ["x", "y"])], [[1, 2], [3, 4]])
    assert f["yes", "x"] == 3
    assert f[{"b": "y", "a": "no"}] == 2
    with pytest.raises(UnknownState, match="did you mean 'yes'"):
        _ = f["Yes", "x"]
    with pytest.raises(InvalidArgument, match="one state a variable"):
        _ = f["yes"]
    with pytest.raises(InvalidArgument, match="'b' is missing"):
        _ = f[{"a": "no"}]


def test_frames_and_dicts_list_every_entry() -> None:
    f = Factor([Variable("a", ["no", "yes"]), Variable("b", ["x", "y"])], [[1, 2], [3, 4]])
    series = f.to_pandas()
    assert series.index.names == ["a", "b"]
    assert series["yes", "x"] == 3
    assert f.to_dict()["no", "y"] == 2
    assert Factor("a", [1, 2]).to_dict() == {0: 1, 1: 2}


def test_long_tables_are_shortened_in_print() -> None:
    text = repr(Factor(list(ascii_lowercase[:10]), np.ones((2,) * 10)))
    assert "984 more of 1,024 entries" in text


@pytest.mark.parametrize(
    ("variables", "values", "message"),
    [
        (["a", "b"], [[1, 2], [3, -1]], r"a=1, b=1\) is -1"),
        (["a", "b"], [[1, float("nan")], [3, 1]], r"a=0, b=1\) is nan"),
        (["a"], [1, float("inf")], r"a=1\) is inf"),
        (["a", "b"], [1, 2], "1 axes but 2 variables"),
        (["a", "a"], [[1, 2], [3, 4]], "each variable once"),
        ([Variable("a", 3)], [1, 2], "'a' has 3 states"),
        (["a", "b"], [[1, 2], [3]], "equally long"),
        (["a"], ["x", "y"], "numbers"),
    ],
)
def test_bad_tables_are_named(variables: list[str | Variable], values: object, message: str) -> None:
    with pytest.raises(InvalidTable, match=message):
        Factor(variables, values)  # type: ignore[arg-type]


def test_unknown_axes_are_named_with_the_nearest() -> None:
    f = Factor(["rain", "wet"], np.ones((2, 2)))
    with pytest.raises(UnknownVariable, match="did you mean 'rain'"):
        f.sum_out("Rain")
    with pytest.raises(UnknownVariable, match="did you mean 'wet'"):
        f.marginal(["wt"])


def test_conditional_entropy_is_what_a_known_variable_leaves():
    p = Factor(["x", "y"], [[1, 1], [2, 0]])  # a quarter, a quarter, a half
    assert p.entropy() == pytest.approx(1.039721, abs=5e-7)
    assert p.conditional_entropy("x", given="y") == pytest.approx(0.477386, abs=5e-7)
    assert p.conditional_entropy("x", given=[]) == pytest.approx(np.log(2))
    f = Factor(["a", "b", "c"], np.random.default_rng(0).random((2, 3, 4)))
    left = f.marginal("a").entropy(base=2) - f.mutual_information("a", ["c", "b"], base=2)
    assert f.conditional_entropy("a", given=["c", "b"], base=2) == pytest.approx(left)
    rows = [sum(p * -np.log(p) for p in f.normalize("a").values[:, b, c]) for b in range(3) for c in range(4)]
    assert f.conditional_entropy("a", given=["b", "c"]) == pytest.approx(
        f.normalize().marginal(["b", "c"]).values.ravel() @ rows
    )
    with pytest.raises(InvalidArgument, match="must not overlap"):
        f.conditional_entropy("a", given=["a"])
