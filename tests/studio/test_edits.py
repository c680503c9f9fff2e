"""Edits: what they do to the distribution, and what they refuse."""

import numpy as np
import pytest
from msgspec import convert

import markovia as mk
from markovia.errors import (
    CycleError,
    DuplicateName,
    InvalidArgument,
    InvalidTable,
    MarkoviaError,
    UnsupportedModel,
)
from markovia.studio.documents.document import Document, Snapshot
from markovia.studio.documents.edit_messages import AnyEdit
from markovia.studio.documents.edits import edited
from markovia.studio.documents.views import node_of


def after(model, **edit):
    return edited(Snapshot(model, "m"), convert(edit, type=AnyEdit)).model


def same(one, two):
    for name in two.variables:
        np.testing.assert_allclose(one.query(name).values, two.query(name).values, atol=1e-12)


def test_a_new_node_is_uniform_and_changes_no_other():
    asia = mk.examples.asia()
    new = after(asia, op="add_node", name="age", states=["old", "young"], parents=["smoke"])
    assert new["age"].values.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    same(new, asia)
    assert "age" not in asia
    with pytest.raises(DuplicateName):
        after(asia, op="add_node", name="lung", states=["a"])


def test_removing_a_node_leaves_its_children_without_it():
    asia = mk.examples.asia()
    new = after(asia, op="remove_node", name="smoke")
    assert new.parents("lung") == []
    assert new.query("lung")["yes"] == pytest.approx(asia.query("lung")["yes"])  # averaged over smoke


def test_connecting_repeats_rows_and_disconnecting_averages_them():
    asia = mk.examples.asia()
    joined = after(asia, op="connect", parent="asia", child="bronc")
    same(joined, asia)
    cut = after(joined, op="disconnect", parent="asia", child="bronc")
    np.testing.assert_allclose(cut["bronc"].values, asia["bronc"].values)
    with pytest.raises(CycleError) as found:
        after(asia, op="connect", parent="dysp", child="smoke")
    assert found.value.cycle[0] == found.value.cycle[-1]
    with pytest.raises(MarkoviaError):
        after(asia, op="connect", parent="asia", child="tub")
    with pytest.raises(InvalidArgument):
        after(asia, op="disconnect", parent="asia", child="dysp")


def test_states_are_renamed_added_and_removed():
    asia = mk.examples.asia()
    renamed = after(asia, op="set_states", name="smoke", states=["smoker", "no"])
    assert renamed.states("smoke") == ["smoker", "no"]
    assert renamed.query("lung", given={"smoke": "smoker"})["yes"] == pytest.approx(0.1)
    more = after(asia, op="set_states", name="smoke", states=["yes", "no", "unknown"])
    assert more["smoke"].values.tolist() == [0.5, 0.5, 0.0]
    assert more["lung"].values.tolist() == [[0.1, 0.9], [0.01, 0.99], [0.5, 0.5]]
    assert more.query("lung")["yes"] == pytest.approx(asia.query("lung")["yes"])
    fewer = after(more, op="set_states", name="smoke", states=["no"])
    assert fewer["smoke"].values.tolist() == [1.0]
    assert fewer.query("lung")["yes"] == pytest.approx(0.01)
    with pytest.raises(MarkoviaError):
        after(asia, op="set_states", name="smoke", states=["a", "a"])


def test_tables_are_checked_row_by_row():
    asia = mk.examples.asia()
    rows = [[0.2, 0.8], [0.3, 0.7]]
    assert after(asia, op="set_table", name="lung", rows=rows)["lung"].values.tolist() == rows
    counts = after(asia, op="set_table", name="lung", rows=[[1, 3], [2, 2]], normalise=True)
    assert counts["lung"].values.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    for bad, word in (
        ([[0.2, 0.8]], "2 rows"),
        ([[0.2, 0.8], [0.3, 0.6]], "row of 'lung' for smoke='no' sums to 0.9"),
        ([[0.2, 0.8], [0.3]], "2 entries, one a state"),
        ([[0.2, 0.8], [-1.0, 2.0]], "not negative"),
    ):
        with pytest.raises(InvalidTable, match=word):
            after(asia, op="set_table", name="lung", rows=bad)
    with pytest.raises(InvalidTable, match="sums to 0"):
        after(asia, op="set_table", name="smoke", rows=[[0, 0]], normalise=True)


def test_a_noisy_or_is_that_of_the_library():
    asia = mk.examples.asia()
    form = {
        "kind": "noisy-or",
        "strengths": {"bronc": 0.7, "either": 0.4},
        "leak": 0.1,
        "on": {"bronc": "yes", "either": "yes"},
    }
    new = after(asia, op="set_local", name="dysp", form=form)
    expected = mk.local.NoisyOr({"bronc": 0.7, "either": 0.4}, 0.1, on={"bronc": "yes", "either": "yes"})
    own = asia.copy()
    own.replace("dysp", expected, parents=asia.parents("dysp"))
    np.testing.assert_allclose(new["dysp"].values, own["dysp"].values)
    plain = after(new, op="set_local", name="dysp", form={"kind": "table"})
    np.testing.assert_allclose(plain["dysp"].values, own["dysp"].values)
    with pytest.raises(MarkoviaError, match="leak"):
        after(asia, op="set_local", name="dysp", form={**form, "leak": 1.5})


def test_numbers_are_built_by_edits():
    bn = mk.BayesianNetwork()
    for edit in (
        {"op": "add_number_node", "name": "x"},
        {"op": "add_number_node", "name": "y"},
        {"op": "add_node", "name": "d", "states": ["a", "b"]},
        {"op": "connect", "parent": "x", "child": "y"},
        {"op": "connect", "parent": "d", "child": "y"},
    ):
        bn = after(bn, **edit)
    assert bn.query("y").sd() == pytest.approx(1.0)
    rows = [
        {"bias": 1.0, "weights": {"x": 2.0}, "variance": 0.5},
        {"bias": -1.0, "weights": {"x": 0.0}, "variance": 2.0},
    ]
    bn = after(bn, op="set_local", name="y", form={"kind": "linear-gaussian", "rows": rows})
    assert bn.query("y", given={"x": 3.0, "d": "a"}).mean() == pytest.approx(7.0)
    assert bn.query("y", given={"d": "b"}).var() == pytest.approx(2.0)
    without = after(bn, op="disconnect", parent="d", child="y")
    assert without.query("y", given={"x": 3.0}).mean() == pytest.approx((7.0 - 1.0) / 2)
    alone = after(without, op="disconnect", parent="x", child="y")
    assert alone.parents("y") == []
    with pytest.raises(UnsupportedModel):
        after(bn, op="connect", parent="x", child="d")
    with pytest.raises(InvalidArgument, match="2 regressions"):
        after(bn, op="set_local", name="y", form={"kind": "linear-gaussian", "rows": rows[:1]})
    with pytest.raises(CycleError):
        after(bn, op="connect", parent="y", child="x")


def test_regressions_stay_with_their_states_when_parents_come_and_go():
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian(0.5, {}, 2))
    bn.add("d", states=["a", "b", "c"], p=[0.2, 0.5, 0.3])
    bn.add("e", states=["u", "v"], p=[0.3, 0.7])
    bn.add("f", states=["s", "t"], p=[0.9, 0.1])
    forms = {(d, e): mk.LinearGaussian(10 * i + j, {"x": 0.1 * i - j}, 1 + i + 3 * j)
             for i, d in enumerate("abc") for j, e in enumerate("uv")}  # fmt: skip
    bn.add("y", forms, parents=["d", "e"])
    more = after(bn, op="connect", parent="f", child="y")
    assert more.parents("y")[:3] == ["d", "e", "f"]
    for (d, e), form in forms.items():
        for f in "st":
            found = more.query("y", given={"d": d, "e": e, "f": f, "x": 2.0})
            assert (found.mean(), found.var()) == pytest.approx(
                (form.bias + 2.0 * form.weights["x"], form.variance)
            )
    view = node_of(Document("1", Snapshot(more, "m")), "y")
    assert [p.name for p in view.parents][:3] == ["d", "e", "f"]
    biases = [row["bias"] for row in view.form["rows"]]
    assert biases == [forms[d, e].bias for d in "abc" for e in "uv" for _ in "st"]
    # without d, what is left has the mean and (at x = 0) the variance of the mixture over d
    less = after(more, op="disconnect", parent="d", child="y")
    assert less.parents("y")[:2] == ["e", "f"]
    for e in "uv":
        truth = bn.query("y", given={"e": e, "x": 0.0})
        found = less.query("y", given={"e": e, "f": "t", "x": 0.0})
        assert (found.mean(), found.var()) == pytest.approx((truth.mean(), truth.var()))
        assert less.query("y", given={"e": e, "f": "s", "x": 4.0}).mean() == pytest.approx(
            bn.query("y", given={"e": e, "x": 4.0}).mean()
        )


def test_a_table_keeps_its_rows_when_a_middle_parent_changes_its_states_or_leaves():
    bn = mk.BayesianNetwork()
    bn.add("p", states=["a", "b"], p=[0.4, 0.6])
    bn.add("q", states=["k", "l", "m"], p=[0.2, 0.5, 0.3])
    bn.add("r", states=["s", "t"], p=[0.7, 0.3])
    rows = np.random.default_rng(8).dirichlet([1.0, 2.0, 3.0], (2, 3, 2))
    bn.add("z", states=["1", "2", "3"], parents=["p", "q", "r"], p=rows)
    turned = after(bn, op="set_states", name="q", states=["m", "new", "k", "l"])
    for state in "klm":
        assert turned.query("z", given={"p": "b", "q": state, "r": "t"}).values == pytest.approx(
            rows[1, "klm".index(state), 1]
        )
    assert turned["z"].values[0, 1, 0] == pytest.approx([1 / 3] * 3)  # the new state has probability zero
    gone = after(bn, op="disconnect", parent="q", child="z")
    assert gone.parents("z") == ["p", "r"]
    assert gone.query("z", given={"p": "b", "r": "s"}).values == pytest.approx(
        np.average(rows[1, :, 0], axis=0, weights=[0.2, 0.5, 0.3])
    )


def test_positions_and_notes_follow_names():
    snapshot = Snapshot(mk.examples.asia(), "asia", {"xray": (1.0, 2.0)}, {"xray": "dark"})
    new = edited(snapshot, convert({"op": "rename", "name": "xray", "to": "picture"}, type=AnyEdit))
    assert (new.positions, new.notes) == ({"picture": (1.0, 2.0)}, {"picture": "dark"})
    gone = edited(new, convert({"op": "remove_node", "name": "picture"}, type=AnyEdit))
    assert (gone.positions, gone.notes) == ({}, {})
    placed = edited(
        new, convert({"op": "add_node", "name": "z", "states": ["a"], "at": [3, 4]}, type=AnyEdit)
    )
    assert placed.positions["z"] == (3, 4)


def test_models_without_directions_keep_their_tables():
    mn = mk.examples.misconception()
    first = mn.variables[0]
    assert after(mn, op="rename", name=first, to="other").variables[0] == "other"
    with pytest.raises(UnsupportedModel):
        after(mn, op="remove_node", name=first)
