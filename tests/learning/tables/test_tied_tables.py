"""Nodes that share one table: pooled counts, textbook sequences, dynamic networks."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk

SEQUENCES = [("1A", "1B", "2A", "3C"), ("2B", "1A", "3A", "3D"), ("1B", "1B", "2C", "3D")]
TRANSITION = [[2 / 5, 2 / 5, 1 / 5], [1 / 3, 0, 2 / 3], [0, 0, 1]]
EMISSION = [[2 / 5, 3 / 5, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [1 / 4, 0, 1 / 4, 1 / 2]]


def hidden_chain(steps):
    text = "->".join(f"y{t}" for t in range(1, steps + 1))
    structure = "; ".join([text, *(f"y{t}->x{t}" for t in range(1, steps + 1))])
    names = range(1, steps + 1)
    return mk.BayesianNetwork(
        structure,
        states={**{f"y{t}": [1, 2, 3] for t in names}, **{f"x{t}": list("ABCD") for t in names}},
    )


def test_tagged_sequences_give_the_textbook_tables():
    frame = pd.DataFrame(
        [
            {f"{v}{t}": int(c[0]) if v == "y" else c[1] for t, c in enumerate(row, 1) for v in "yx"}
            for row in SEQUENCES
        ]
    )
    bn = hidden_chain(4)
    bn.fit(frame, tied=[["y2", "y3", "y4"], ["x1", "x2", "x3", "x4"]])
    assert np.allclose(bn["y1"].values, [2 / 3, 1 / 3, 0])
    for name in ("y2", "y3", "y4"):
        assert np.allclose(bn[name].values, TRANSITION)
        assert bn[name].parent_names == (f"y{int(name[1]) - 1}",)
    for t in range(1, 5):
        assert np.allclose(bn[f"x{t}"].values, EMISSION)
    assert bn.fit_.n_parameters == 2 + 6 + 9
    assert np.isclose(bn.fit_.log_likelihood, bn.log_prob(frame).sum())
    assert bn.fit_.unseen_rows == {}


@given(st.integers(0, 2**16), st.sampled_from([None, "k2", "bdeu"]))
@settings(max_examples=25)
def test_a_tied_table_is_estimated_from_pooled_counts_and_one_prior(seed, prior):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(3, size=(15, 4)), columns=list("abcd"))
    states = dict.fromkeys("abcd", 3)
    tied = mk.BayesianNetwork("a->b->c->d", states=states).fit(frame, prior=prior, tied=[["b", "d"]])
    pairs = pd.DataFrame(
        {"s": np.concatenate([frame["a"], frame["c"]]), "t": np.concatenate([frame["b"], frame["d"]])}
    )
    pooled = mk.BayesianNetwork("s->t", states={"s": 3, "t": 3}).fit(pairs, prior=prior)
    assert np.allclose(tied["b"].values, pooled["t"].values)
    assert np.allclose(tied["d"].values, pooled["t"].values)
    free = mk.BayesianNetwork("a->b->c->d", states=states).fit(frame, prior=prior)
    assert np.allclose(tied["c"].values, free["c"].values)
    assert tied.fit_.n_parameters == free.fit_.n_parameters - 6
    if prior is not None:
        post = tied.posterior_
        assert np.isclose(post.by_family()["b"], pooled.posterior_.by_family()["t"])
        assert "d" not in post.by_family()
        assert np.allclose(post.alpha("d").values, post.alpha("b").values)
        drawn = post.sample(1, seed=0)[0]
        assert np.array_equal(drawn["b"].values, drawn["d"].values)
        assert drawn["d"].parent_names == ("c",)


def test_local_models_can_be_tied_too():
    bn = mk.BayesianNetwork("p; q", tables="uniform")
    bn.add("u", mk.local.NoisyOr({"p": 0.5}, leak=0.1))
    bn.add("v", mk.local.NoisyOr({"q": 0.5}, leak=0.1))
    rows = {
        "p": [1, 1, 0, 0],
        "q": [1, 0, 0, 0],
        "u": [True, False, False, False],
        "v": [True, False, True, False],
    }
    bn.fit(rows, tied=[["u", "v"]])
    # three causes present, two effects; five absent, one effect
    assert np.allclose(bn["u"].row(p=1), [1 / 3, 2 / 3], atol=1e-6)
    assert np.allclose(bn["v"].row(q=0), [4 / 5, 1 / 5], atol=1e-6)
    assert bn.fit_.n_parameters == 4


@pytest.mark.parametrize(
    ("tied", "message"),
    [
        ([["a", "b"]], "cannot share a table"),
        ([["b", "c"], ["c", "d"]], "named twice"),
        ([["b", "b"]], "named twice"),
        (["bc"], "list of lists"),
        ("bc", "list of lists"),
        (3, "list of lists"),
        ([["b", "zz"]], "zz"),
    ],
)
def test_groups_that_cannot_be_tied_are_refused(tied, message):
    frame = pd.DataFrame(np.zeros((3, 4), dtype=int), columns=list("abcd"))
    bn = mk.BayesianNetwork("a->b->c->d", states=dict.fromkeys("abcd", 2))
    with pytest.raises(mk.MarkoviaError, match=message):
        bn.fit(frame, tied=tied)
    assert not bn.has_table("a")


def test_a_tied_node_cannot_stay_fixed():
    frame = pd.DataFrame(np.zeros((3, 3), dtype=int), columns=list("abc"))
    bn = mk.BayesianNetwork("a->b->c", tables="uniform")
    with pytest.raises(mk.errors.InvalidArgument, match="fixed"):
        bn.fit(frame, tied=[["b", "c"]], fixed="c")


# -- sequences of any length -----------------------------------------------------------------------------------------


def process():
    states = {"y": [1, 2, 3], "x": list("ABCD")}
    first = mk.BayesianNetwork("y->x", states=states)
    later = mk.BayesianNetwork("y@-1->y->x", states={**states, "y@-1": [1, 2, 3]})
    return mk.DynamicBayesianNetwork(first, later)


def columns(row):
    return {"y": [int(c[0]) for c in row], "x": [c[1] for c in row]}


def test_a_dynamic_network_learns_the_textbook_tables_from_sequences():
    learned = process().fit([columns(row) for row in SEQUENCES], tied="x")
    assert np.allclose(learned.initial["y"].values, [2 / 3, 1 / 3, 0])
    assert np.allclose(learned.transition["y"].values, TRANSITION)
    assert np.allclose(learned.initial["x"].values, EMISSION)
    assert np.allclose(learned.transition["x"].values, EMISSION)
    assert learned.fit_.n_parameters == 2 + 6 + 9
    assert not learned.transition.has_table("y@-1")
    network = learned.unroll(4)
    rows = pd.DataFrame(
        [
            {f"{v}@{t}": c[k] for v, c in columns(row).items() for t, k in enumerate(range(4))}
            for row in SEQUENCES
        ]
    )
    assert np.isclose(network.log_prob(rows).sum(), learned.fit_.log_likelihood)


def test_sequences_of_different_lengths_count_every_step_they_have():
    lengths = [4, 2, 3, 1]
    rows = [*SEQUENCES, SEQUENCES[0]]
    learned = process().fit(
        [pd.DataFrame(columns(row[:n])) for row, n in zip(rows, lengths, strict=True)], prior=1.0
    )
    start, move = np.ones(3), np.ones((3, 3))
    for row, n in zip(rows, lengths, strict=True):
        y = [int(c[0]) - 1 for c in row[:n]]
        start[y[0]] += 1
        np.add.at(move, (y[:-1], y[1:]), 1)
    assert np.allclose(learned.initial["y"].values, start / start.sum())
    assert np.allclose(learned.transition["y"].values, move / move.sum(axis=1, keepdims=True))
    assert learned.fit_.n_rows == sum(lengths)
    assert learned.fit_.details["sequences"] == 4


def test_sequences_that_cannot_be_learned_from_are_refused():
    good = columns(SEQUENCES[0])
    for sequences, message in [
        ([], "no sequences"),
        ([{"y": [], "x": []}], "no steps"),
        ([{"y": [1]}], "1 cells"),
        ([{"y": [1, 9], "x": ["A", "A"]}], "unknown state 9"),
        ([{"y": [1, None], "x": ["A", "A"]}], "missing"),
        ("text", "sequences are a list"),
    ]:
        fresh = process()
        with pytest.raises(mk.MarkoviaError, match=message):
            fresh.fit(sequences, missing="error")
        assert not fresh.initial.has_table("y")
    with pytest.raises(mk.errors.UnknownVariable, match="'z'"):
        process().fit([good], tied="z")
