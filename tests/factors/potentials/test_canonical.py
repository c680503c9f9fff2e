from itertools import product as combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia import Factor, Variable
from markovia.errors import InvalidGraph, InvalidTable, TooLarge, UnknownState, UnknownVariable
from markovia.factors import canonical_potentials, fold_into_maximal_cliques, gibbs_factors, pairwise, product
from markovia.graphs import UndirectedGraph

CYCLE = [("x1", "x2"), ("x2", "x3"), ("x3", "x4"), ("x4", "x1")]


def random_joint(shape: tuple[int, ...], seed: int) -> Factor:
    rng = np.random.default_rng(seed)
    return Factor([f"x{i}" for i in range(len(shape))], rng.uniform(0.1, 2.0, size=shape))


def random_cycle(seed: int) -> Factor:
    rng = np.random.default_rng(seed)
    return product(pairwise({}, {edge: rng.uniform(0.2, 3.0, size=(2, 2)) for edge in CYCLE}))


# -- canonical potentials ---------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=0, max_size=4), st.integers(0, 1000))
def test_the_product_of_all_canonical_potentials_is_the_joint(shape: list[int], seed: int) -> None:
    joint = random_joint(tuple(shape), seed)
    potentials = canonical_potentials(joint)
    assert len(potentials) == 2 ** len(shape)
    assert product(potentials.values()).transpose(joint.names).allclose(joint)


def test_potentials_match_the_alternating_sum_of_the_definition() -> None:
    joint = random_joint((2, 3, 2), 7)
    reference = {"x0": 1, "x1": 2, "x2": 0}
    potentials = canonical_potentials(joint, reference)
    for chosen in combinations([False, True], repeat=3):
        names = [n for n, c in zip(joint.names, chosen, strict=True) if c]
        potential = potentials[frozenset(names)]
        for states in combinations(*(joint.variable(n).states for n in names)):
            x = dict(zip(names, states, strict=True))
            total = 0.0
            for kept in combinations([False, True], repeat=len(names)):
                inside = {n: x[n] for n, k in zip(names, kept, strict=True) if k}
                total += (-1) ** (len(names) - sum(kept)) * np.log(joint[reference | inside])
            assert np.log(potential[x]) == pytest.approx(total, abs=1e-9)


def test_a_potential_is_one_where_any_variable_is_at_its_reference() -> None:
    joint = random_joint((2, 3, 2), 3)
    potentials = canonical_potentials(joint, {"x1": 2})
    triple = potentials[frozenset({"x0", "x1", "x2"})]
    np.testing.assert_allclose(triple.reduce({"x1": 2}).values, 1.0)
    np.testing.assert_allclose(triple.reduce({"x0": 0}).values, 1.0)
    assert potentials[frozenset()].values == pytest.approx(joint[0, 2, 0])


@pytest.mark.parametrize("seed", range(5))
def test_potentials_outside_the_cliques_of_a_markov_joint_are_one(seed: int) -> None:
    graph = UndirectedGraph(CYCLE)
    for names, potential in canonical_potentials(random_cycle(seed)).items():
        if not graph.is_complete(sorted(names)):
            np.testing.assert_allclose(potential.values, 1.0, atol=1e-9)
        elif len(names) == 2:
            assert np.abs(potential.log_values).max() > 1e-3


def test_a_three_way_parity_is_not_pairwise() -> None:
    """Pairwise tables cannot express a parity: the canonical potential of the triple is not one."""
    x = [Variable(n, 2) for n in "abc"]
    parity = Factor(x, [[[4.0 if (a + b + c) % 2 else 1.0 for c in (0, 1)] for b in (0, 1)] for a in (0, 1)])
    triple = canonical_potentials(parity)[frozenset("abc")]
    assert abs(np.log(triple[1, 1, 1])) == pytest.approx(4 * np.log(4))
    assert parity.mutual_information("a", "b") == pytest.approx(0, abs=1e-12)
    with pytest.raises(InvalidGraph, match="'a', 'b', 'c' interact"):
        gibbs_factors(parity, [("a", "b"), ("b", "c"), ("a", "c")])
    assert gibbs_factors(parity, [("a", "b", "c")])[0].allclose(parity)


def test_a_pairwise_model_on_the_triangle_has_no_three_way_potential() -> None:
    rng = np.random.default_rng(0)
    joint = product(
        pairwise({}, {e: rng.uniform(0.1, 3, (2, 2)) for e in [("a", "b"), ("b", "c"), ("a", "c")]})
    )
    np.testing.assert_allclose(canonical_potentials(joint)[frozenset("abc")].values, 1.0)


def test_a_zero_entry_is_named() -> None:
    with pytest.raises(InvalidTable, match=r"x0=1, x1=0.*strictly positive"):
        canonical_potentials(Factor(["x0", "x1"], [[1, 1], [0, 1]]))


def test_bad_references_and_sizes_are_refused() -> None:
    joint = random_joint((2, 2), 0)
    with pytest.raises(UnknownVariable, match="did you mean 'x1'"):
        canonical_potentials(joint, {"X1": 0})
    with pytest.raises(UnknownState):
        canonical_potentials(joint, {"x1": 5})
    with pytest.raises(TooLarge, match="18 variables"):
        canonical_potentials(Factor([f"x{i}" for i in range(18)], np.ones((2,) * 18)))


# -- factorisation over cliques ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_hammersley_clifford_rebuilds_a_positive_joint_from_its_cliques(seed: int) -> None:
    joint = random_cycle(seed)
    factors = gibbs_factors(joint, UndirectedGraph(CYCLE))
    assert {frozenset(f.names) for f in factors} == {frozenset(e) for e in CYCLE}
    assert product(factors).allclose(joint)


def test_a_joint_with_another_interaction_does_not_factorise() -> None:
    joint = random_cycle(0) * Factor(["x1", "x3"], [[2, 1], [1, 2]])
    with pytest.raises(InvalidGraph, match="'x1', 'x3' interact"):
        gibbs_factors(joint, UndirectedGraph(CYCLE))


def test_folding_into_maximal_cliques_keeps_the_joint() -> None:
    rng = np.random.default_rng(5)
    scopes = [("a",), ("b",), ("a", "b"), ("b", "c"), ("c",), ("a", "b", "c"), ("c", "d"), ()]
    factors = [Factor(list(s), rng.uniform(0, 2, (2,) * len(s))) for s in scopes]
    folded = fold_into_maximal_cliques(factors, [("a", "b", "c"), ("c", "d")])
    assert [f.names for f in folded] == [("a", "b", "c"), ("c", "d")]
    assert product(folded).allclose(product(factors))


def test_folding_names_what_does_not_fit() -> None:
    f = Factor(["a", "b"], np.ones((2, 2)))
    with pytest.raises(InvalidGraph, match="'a', 'b'"):
        fold_into_maximal_cliques([f], [("a",), ("b",)])
    with pytest.raises(UnknownVariable, match="'c'"):
        fold_into_maximal_cliques([f], [("a", "b", "c")])


def test_independence_without_positivity_does_not_give_a_factorisation() -> None:
    """Eight of sixteen configurations of a 4-cycle: the global independencies hold, no edge product fits."""
    support = {
        (0, 0, 0, 0),
        (1, 0, 0, 0),
        (1, 1, 0, 0),
        (1, 1, 1, 0),
        (1, 1, 1, 1),
        (0, 1, 1, 1),
        (0, 0, 1, 1),
    }
    support.add((0, 0, 0, 1))
    table = np.zeros((2, 2, 2, 2))
    for x in support:
        table[x] = 1 / 8
    p = Factor(["x1", "x2", "x3", "x4"], table)
    assert p.independent("x1", "x3", given=["x2", "x4"])
    assert p.independent("x2", "x4", given=["x1", "x3"])
    for edge in CYCLE:
        # every pair of neighbouring states occurs, so no edge potential may be zero, yet p(0, 1, 0, 1) is
        assert p.marginal(edge).values.min() > 0
    assert p[0, 1, 0, 1] == 0
    np.testing.assert_allclose(p.marginal(["x1", "x2"]).values, [[3 / 8, 1 / 8], [1 / 8, 3 / 8]])
    np.testing.assert_allclose(p.marginal(["x1", "x4"]).values, [[1 / 8, 3 / 8], [3 / 8, 1 / 8]])
    with pytest.raises(InvalidTable, match="strictly positive"):
        gibbs_factors(p, UndirectedGraph(CYCLE))
