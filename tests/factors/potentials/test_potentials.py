from itertools import product as combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia import Factor, Variable
from markovia.errors import InvalidArgument, InvalidTable
from markovia.factors import (
    boltzmann,
    chain,
    from_energy,
    grid_names,
    ising,
    ising_grid,
    pairwise,
    potts,
    potts_grid,
    product,
)

WEIGHT = st.floats(-3, 3)


def log_score(factors: list[Factor], assignment: dict[str, object]) -> float:
    return float(sum(np.log(f[{n: assignment[n] for n in f.names}]) for f in factors))


# -- on any graph -----------------------------------------------------------------------------------------


def test_pairwise_multiplies_unary_and_edge_tables() -> None:
    a = Variable("a", ["no", "yes"])
    factors = pairwise({a: [1, 2], "b": [1, 1, 4]}, {("b", "a"): [[1, 2], [3, 4], [5, 6]]})
    assert [f.names for f in factors] == [("a",), ("b",), ("b", "a")]
    assert product(factors)[{"a": "yes", "b": 2}] == 2 * 4 * 6
    assert factors[2].variables[1] is a


def test_pairwise_names_a_matrix_that_does_not_fit() -> None:
    with pytest.raises(InvalidTable, match="'a' has 2 states"):
        pairwise({"a": [1, 2]}, {("a", "b"): [[1, 2], [3, 4], [5, 6]]})
    with pytest.raises(InvalidTable, match="b=1"):
        pairwise({}, {("a", "b"): [[1, -2], [3, 4]]})
    with pytest.raises(InvalidArgument, match="two different names"):
        pairwise({}, {("a", "a"): [[1, 2], [3, 4]]})


@settings(max_examples=30, deadline=None)
@given(WEIGHT, WEIGHT, WEIGHT, WEIGHT)
def test_ising_is_the_exponential_of_its_quadratic_form(w: float, v: float, b: float, c: float) -> None:
    factors = ising({("x", "y"): w, ("y", "z"): v}, {"x": b, "z": c})
    for x, y, z in combinations((-1, 1), repeat=3):
        expected = w * x * y + v * y * z + b * x + c * z
        assert log_score(factors, {"x": x, "y": y, "z": z}) == pytest.approx(expected, abs=1e-9)


def test_positive_couplings_attract_and_negative_ones_repel() -> None:
    (attract,), (repel,) = ising({("a", "b"): 1.0}), ising({("a", "b"): -1.0})
    assert attract[1, 1] > attract[1, -1]
    assert repel[1, 1] < repel[1, -1]


def test_a_lone_variable_without_field_is_not_lost() -> None:
    factors = ising({("a", "b"): 1.0}, {"c": 0.0, "a": 0.0})
    assert sorted(n for f in factors for n in f.names) == ["a", "b", "c"]
    assert product(factors).total == pytest.approx(2 * (2 * np.e + 2 / np.e))


def test_equal_tables_are_one_array() -> None:
    factors = ising({("a", "b"): 0.3, ("b", "c"): 0.3, ("c", "d"): 0.4})
    assert factors[0].values is factors[1].values
    assert factors[0].values is not factors[2].values
    assert factors[0].variables[1] is factors[1].variables[0]
    assert not factors[0].values.flags.writeable


def test_an_edge_is_a_pair_given_once() -> None:
    with pytest.raises(InvalidArgument, match="given twice"):
        ising({("a", "b"): 0.3, ("b", "a"): 0.3})
    with pytest.raises(InvalidArgument, match="two different names"):
        potts([("a", "a")], 3)
    with pytest.raises(InvalidArgument, match="two different names, not 'abc'"):
        potts(["abc"], 3)  # type: ignore[list-item]


def test_ising_labels_count_as_spins_in_order() -> None:
    (f,) = ising({("a", "b"): 0.5}, states=["down", "up"])
    assert f["up", "up"] == pytest.approx(np.exp(0.5))
    with pytest.raises(InvalidArgument, match="two states"):
        ising({("a", "b"): 0.5}, states=[0, 1, 2])


@settings(max_examples=30, deadline=None)
@given(WEIGHT, WEIGHT, st.lists(WEIGHT, min_size=3, max_size=3))
def test_potts_rewards_equal_neighbours(j: float, k: float, field: list[float]) -> None:
    factors = potts({("a", "b"): j, ("b", "c"): k}, 3, fields={"c": field})
    for a, b, c in combinations(range(3), repeat=3):
        expected = j * (a == b) + k * (b == c) + field[c]
        assert log_score(factors, {"a": a, "b": b, "c": c}) == pytest.approx(expected, abs=1e-9)


def test_a_two_state_potts_model_is_an_ising_model() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    spin = product(ising(dict.fromkeys(edges, 0.7), states=[0, 1])).normalize()
    assert product(potts(edges, 2, strength=1.4)).normalize().allclose(spin)


def test_potts_names_a_field_of_the_wrong_length() -> None:
    with pytest.raises(InvalidTable, match="field of 'a'"):
        potts([("a", "b")], 3, fields={"a": [1.0, 2.0]})


@pytest.mark.parametrize("states", [(-1, 1), (0, 1)])
def test_boltzmann_counts_every_pair_once(states: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    theta = np.triu(rng.normal(size=(4, 4)), 1)
    theta[0, 2] = 0.0
    theta = theta + theta.T
    alpha = rng.normal(size=4)
    factors = boltzmann(theta, alpha, names=list("abcd"), states=states)
    assert ("a", "c") not in [f.names for f in factors]
    for x in combinations(states, repeat=4):
        expected = 0.5 * np.array(x) @ theta @ np.array(x) + alpha @ np.array(x)
        assert log_score(factors, dict(zip("abcd", x, strict=True))) == pytest.approx(expected)


def test_boltzmann_refuses_a_matrix_that_is_no_graph() -> None:
    with pytest.raises(InvalidArgument, match="symmetric"):
        boltzmann([[0, 1], [2, 0]])
    with pytest.raises(InvalidArgument, match="alpha"):
        boltzmann([[1, 1], [1, 0]])
    with pytest.raises(InvalidArgument, match="names"):
        boltzmann([[0, 1], [1, 0]], names=["a"])
    with pytest.raises(InvalidArgument, match="finite"):
        boltzmann([[0, np.nan], [np.nan, 0]])


def test_energy_form_divides_by_the_temperature() -> None:
    energies = [[0.0, 1.0], [2.0, np.inf]]
    f = from_energy(["a", "b"], energies, temperature=0.5)
    np.testing.assert_allclose(f.values, [[1, np.exp(-2)], [np.exp(-4), 0]])
    hot = from_energy(["a", "b"], energies, temperature=1e6).normalize()
    assert hot[0, 0] == pytest.approx(1 / 3, abs=1e-5)
    with pytest.raises(InvalidArgument, match="temperature"):
        from_energy(["a"], [0, 1], temperature=0)
    with pytest.raises(InvalidTable, match="equally long"):
        from_energy(["a", "b"], [[0, 1], [2]])
    with pytest.raises(InvalidTable, match="a=1"):
        from_energy(["a"], [0, -1e6])


def test_weights_that_overflow_are_refused() -> None:
    with pytest.raises(InvalidTable, match="overflows"):
        ising({("a", "b"): 1e4})
    with pytest.raises(InvalidArgument, match="finite"):
        ising({("a", "b"): float("nan")})


def test_a_chain_repeats_its_tables_and_adds_boundaries() -> None:
    pair, unary = np.array([[3.0, 1.0], [2.0, 5.0]]), np.array([1.0, 2.0])
    factors = chain(["s", "t", "u"], pair, unary, first=[1, 0], last=[4, 1], states=["off", "on"])
    joint = product(factors)
    for s, t, u in combinations((0, 1), repeat=3):
        expected = pair[s, t] * pair[t, u] * unary[[s, t, u]].prod() * [1, 0][s] * [4, 1][u]
        assert joint.transpose(["s", "t", "u"]).values[s, t, u] == pytest.approx(expected)
    assert joint.variable("t").states == ("off", "on")


def test_a_chain_of_one_variable_still_has_that_variable() -> None:
    assert [f.names for f in chain(1, [[1, 2], [3, 4]])] == [("x0",)]


def test_a_chain_needs_a_table_of_numbers() -> None:
    with pytest.raises(InvalidArgument, match="must be numbers"):
        chain(3, [[1, 2], [3]])
    with pytest.raises(InvalidTable, match="'x1' has 2 states"):
        chain(3, [[1, 2, 3], [4, 5, 6]])


# -- on grids ---------------------------------------------------------------------------------------------


def test_a_grid_joins_each_position_to_the_right_and_down() -> None:
    edges = {f.names for f in ising_grid(2, 3, coupling=0.5)}
    assert edges == {
        ("x0_0", "x0_1"),
        ("x0_1", "x0_2"),
        ("x1_0", "x1_1"),
        ("x1_1", "x1_2"),
        ("x0_0", "x1_0"),
        ("x0_1", "x1_1"),
        ("x0_2", "x1_2"),
    }


@pytest.mark.parametrize(
    ("rows", "cols", "n"), [(1, 1, 0), (1, 2, 1), (2, 2, 4), (3, 3, 18), (1, 4, 4), (3, 2, 9)]
)
def test_periodic_grids_never_join_a_pair_twice(rows: int, cols: int, n: int) -> None:
    pairs = [frozenset(f.names) for f in ising_grid(rows, cols, periodic=True) if len(f.names) == 2]
    assert len(pairs) == len(set(pairs)) == n


def test_fields_come_as_number_array_function_or_chance() -> None:
    by_array = ising_grid(2, 2, 0.0, field=[[0.1, 0.2], [0.3, 0.4]])
    by_function = ising_grid(2, 2, 0.0, field=lambda r, c: 0.1 * (1 + 2 * r + c))
    for one, other in zip(by_array, by_function, strict=True):
        assert one.allclose(other)
    assert by_array[2].names == ("x1_0",)
    assert by_array[2].log_values.tolist() == pytest.approx([-0.3, 0.3])
    constant = ising_grid(2, 2, 0.0, field=0.5)
    assert all(f.log_values[1] == pytest.approx(0.5) for f in constant[:4])
    chance, again = ising_grid(2, 2, "random", "random", seed=5), ising_grid(2, 2, "random", "random", seed=5)
    assert all(a == b for a, b in zip(chance, again, strict=True))
    assert all(np.abs(f.log_values).max() <= 1.0 for f in chance)
    assert not chance[0].allclose(ising_grid(2, 2, "random", "random", seed=6)[0])


def test_couplings_come_as_one_array_a_direction() -> None:
    right, down = np.array([[0.1], [0.2]]), np.array([[0.3, 0.4]])
    weights = {f.names: f.log_values[0, 0] for f in ising_grid(2, 2, (right, down))}
    assert weights == pytest.approx(
        {
            ("x0_0", "x0_1"): 0.1,
            ("x1_0", "x1_1"): 0.2,
            ("x0_0", "x1_0"): 0.3,
            ("x0_1", "x1_1"): 0.4,
        }
    )
    with pytest.raises(InvalidArgument, match="couplings down have shape"):
        ising_grid(2, 2, (right, right))


def test_grid_equals_the_same_model_on_a_plain_graph() -> None:
    grid = ising_grid(2, 3, coupling=0.4, field=0.2)
    edges = {(f.names[0], f.names[1]): 0.4 for f in grid if len(f.names) == 2}
    plain = ising(edges, dict.fromkeys(grid_names(2, 3), 0.2))
    assert product(grid).allclose(product(plain))


def test_potts_grid_has_log_weights_a_state() -> None:
    factors = potts_grid(2, 2, ["r", "g", "b"], 1.5, field=[0.0, 1.0, 2.0])
    joint = product(factors)
    same = joint[dict.fromkeys(grid_names(2, 2), "b")]
    assert np.log(same) == pytest.approx(4 * 1.5 + 4 * 2.0)
    with pytest.raises(InvalidArgument, match="shape"):
        potts_grid(2, 2, 3, field=[0.0, 1.0])


def test_nonsense_grids_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="positive integers"):
        ising_grid(0, 3)
    with pytest.raises(InvalidArgument, match="only word is 'random'"):
        ising_grid(2, 2, field="noise")
    with pytest.raises(InvalidArgument, match="only word is 'random'"):
        ising_grid(2, 2, coupling="strong")  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_grid_of_a_quarter_million_variables_is_built_in_seconds() -> None:
    factors = ising_grid(512, 512, coupling=0.4, field="random", seed=0)
    assert len(factors) == 512 * 512 + 2 * 512 * 511
    assert len({id(f.values) for f in factors if f.values.ndim == 2}) == 1
    assert len({id(v) for f in factors for v in f.variables}) == 512 * 512
