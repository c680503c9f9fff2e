"""Factors given by their entries: a factor like any other, and cheap where its table would be too large."""

import pickle

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ImpossibleEvidence, InvalidArgument, InvalidTable, TooLarge

SCHEDULES = ["flooding", "sequential", "residual"]


def random_sparse(rng, names, cards, n):
    """A random sparse factor with n different entries."""
    shape = [cards[m] for m in names]
    cells = rng.choice(int(np.prod(shape)), size=n, replace=False)
    codes = np.stack(np.unravel_index(cells, shape), axis=1)
    variables = [mk.Variable(m, cards[m]) for m in names]
    return mk.local.SparseFactor.from_arrays(variables, codes, rng.random(n) + 0.1)


def test_a_sparse_factor_is_its_dense_table():
    rng = np.random.default_rng(0)
    factor = random_sparse(rng, ["a", "b", "c"], {"a": 2, "b": 3, "c": 4}, 9)
    dense = mk.Factor(factor.variables, factor.values)
    assert (factor.values > 0).sum() == 9
    assert factor.n_entries == 9
    assert factor.shape == dense.shape
    assert factor.size == dense.size
    assert factor == dense
    assert factor.total == pytest.approx(dense.total)
    assert factor.sum_out("b").allclose(dense.sum_out("b"))
    assert (factor * dense).allclose(dense * dense)
    assert factor.reduce({"b": 1}).allclose(dense.reduce({"b": 1}))
    assert factor.reduce({"b": 1, "a": 0, "c": 2}).values == dense[0, 1, 2]
    assert factor[0, 1, 2] == dense[0, 1, 2]
    assert pickle.loads(pickle.dumps(factor)) == dense
    assert "SparseFactor('a', 'b', 'c')" in repr(factor)


def test_entries_are_read_by_state():
    rain = mk.Variable("rain", ["no", "yes"])
    factor = mk.local.SparseFactor([rain, "n"], {("yes", 2): 3.0, ("no", 0): 0.0})
    assert factor["yes", 2] == 3.0
    assert factor["no", 1] == 0.0
    assert factor.n_entries == 1
    assert factor.shape == (2, 3)


@pytest.mark.parametrize(
    ("entries", "error", "word"),
    [
        ({(0,): 1.0}, InvalidTable, "one state for each"),
        ({(0, 1): -1.0}, InvalidTable, "not negative"),
        ({(0, 1): float("nan")}, InvalidTable, "not negative"),
        ({(0, "x"): 1.0}, InvalidTable, "Variable"),
        ({(0, 1): "x"}, InvalidTable, "numbers"),
        ([(0, 1)], InvalidArgument, "from_arrays"),
    ],
)
def test_entries_that_make_no_sense_are_refused(entries, error, word):
    with pytest.raises(error, match=word):
        mk.local.SparseFactor(["a", "b"], entries)


def test_arrays_that_make_no_sense_are_refused():
    a, b = mk.Variable("a", 2), mk.Variable("b", 2)
    with pytest.raises(InvalidTable, match="columns"):
        mk.local.SparseFactor.from_arrays([a, b], [[0]], [1.0])
    with pytest.raises(InvalidTable, match="codes of 'b'"):
        mk.local.SparseFactor.from_arrays([a, b], [[0, 2]], [1.0])
    with pytest.raises(InvalidTable, match="once"):
        mk.local.SparseFactor.from_arrays([a, b], [[0, 1], [0, 1]], [1.0, 2.0])
    with pytest.raises(InvalidTable, match="weights"):
        mk.local.SparseFactor.from_arrays([a, b], [[0, 1]], [1.0, 2.0])
    with pytest.raises(InvalidArgument, match="Variable"):
        mk.local.SparseFactor.from_arrays(["a"], [[0]], [1.0])


@pytest.mark.parametrize("kind", [mk.MarkovNetwork, mk.FactorGraph])
def test_exact_engines_use_a_sparse_factor_like_any_other(kind):
    rng = np.random.default_rng(1)
    cards = {"a": 2, "b": 3, "c": 2, "d": 2}
    sparse = random_sparse(rng, ["a", "b", "c"], cards, 6)
    other = mk.Factor(["c", "d"], rng.random((2, 2)) + 0.1)
    listed, dense = (
        kind(cards, [sparse, other]),
        kind(cards, [mk.Factor(sparse.variables, sparse.values), other]),
    )
    for engine in ("junction-tree", "variable-elimination", "enumeration"):
        for given in ({}, {"b": int(sparse.codes[0, 1])}):
            found, expected = (
                listed.query("d", given=given, engine=engine),
                dense.query("d", given=given, engine=engine),
            )
            assert found.allclose(expected)
    listed.rename("a", "z")
    listed.rename_states("b", ["x", "y", "w"])
    assert isinstance(listed.factors[0], mk.local.SparseFactor)
    assert listed.log_partition() == pytest.approx(dense.log_partition())


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("domain", ["linear", "log"])
def test_messages_over_entries_are_those_of_the_table(schedule, domain):
    engine = mk.engines.LoopyBP(schedule=schedule, domain=domain, tolerance=1e-13, damping=0.1)
    for seed in range(8):
        rng = np.random.default_rng([seed, 3])
        names = [f"x{i}" for i in range(10)]
        cards = dict.fromkeys(names, 2)
        wide = random_sparse(rng, names[:8], cards, 5)
        more = random_sparse(rng, [str(n) for n in rng.permutation(names)[:9]], cards, 6)
        small = [mk.Factor([names[i], names[i + 1]], rng.random((2, 2)) + 0.2) for i in (0, 6, 8)]
        listed = mk.MarkovNetwork(cards, [wide, more, *small])
        dense = mk.MarkovNetwork(cards, [mk.Factor(f.variables, f.values) for f in listed.factors])
        if np.isneginf(dense.log_partition()):
            continue
        plain = mk.engines.LoopyBP(tolerance=1e-13, absorb=False, damping=0.1)
        found, expected = listed.marginals(engine=engine), dense.marginals(engine=plain)
        if not (found["x0"].info.converged and expected["x0"].info.converged):
            continue
        for n in names:
            assert np.allclose(found[n].values, expected[n].values, atol=1e-9)
        assert listed.log_partition(engine=engine) == pytest.approx(
            dense.log_partition(engine=plain), abs=1e-8
        )


@pytest.mark.slow
def test_forty_variables_and_a_hundred_entries_have_the_closed_form():
    rng = np.random.default_rng(2)
    names = [f"x{i}" for i in range(40)]
    variables = [mk.Variable(n, 2) for n in names]
    codes = np.unique(rng.integers(0, 2, size=(100, 40)), axis=0)
    weights = rng.random(len(codes)) + 0.01
    fields = rng.random((40, 2)) + 0.05
    listed = mk.local.SparseFactor.from_arrays(variables, codes, weights)
    model = mk.MarkovNetwork(
        variables, [listed, *(mk.Factor([v], f) for v, f in zip(variables, fields, strict=True))]
    )
    mass = weights * np.prod(fields[np.arange(40), codes], axis=1)
    for engine in ("loopy-bp", mk.engines.LoopyBP(domain="log")):
        found = model.marginals(engine=engine)
        for i, n in enumerate(names):
            assert found[n][1] == pytest.approx(mass[codes[:, i] == 1].sum() / mass.sum(), abs=1e-12)
        assert found["x0"].info.exact
        assert model.log_partition(engine=engine) == pytest.approx(np.log(mass.sum()), abs=1e-9)
    pair = model.query(["x7", "x3"], engine="loopy-bp")
    both = mass[(codes[:, 7] == 1) & (codes[:, 3] == 0)].sum() / mass.sum()
    assert pair[1, 0] == pytest.approx(both, abs=1e-12)
    best = codes[np.argmax(mass)]
    assert [model.map(engine="max-product")[n] for n in names] == best.tolist()
    seen = model.query("x5", given={"x0": 1, "x9": 0}, engine="loopy-bp")
    agree = (codes[:, 0] == 1) & (codes[:, 9] == 0)
    assert seen[1] == pytest.approx(mass[agree & (codes[:, 5] == 1)].sum() / mass[agree].sum(), abs=1e-12)
    with pytest.raises(TooLarge, match="loopy-bp"):
        _ = listed.values
    with pytest.raises(TooLarge):
        model.query("x5", engine="variable-elimination")


def test_a_sparse_factor_without_entries_leaves_nothing():
    variables = [mk.Variable(f"x{i}", 2) for i in range(40)]
    model = mk.MarkovNetwork(variables, [mk.local.SparseFactor.from_arrays(variables, [], [])])
    assert model.log_partition(engine="loopy-bp") == -np.inf
    one = mk.MarkovNetwork(variables, [mk.local.SparseFactor.from_arrays(variables, [[0] * 40], [2.0])])
    assert one.log_partition(engine="loopy-bp") == pytest.approx(np.log(2.0))
    with pytest.raises(ImpossibleEvidence):
        one.query("x3", given={"x1": 1}, engine="loopy-bp")
