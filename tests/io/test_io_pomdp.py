"""Cassandra's `.pomdp` files."""

import numpy as np
import pytest

import markovia as mk
from markovia.io.pomdp_file import read_pomdp, write_pomdp
from markovia.models.temporal.dynamic.pomdp import POMDP

HEAD = "discount: 0.95\nvalues: reward\nstates: left right\nactions: listen open\nobservations: 2\n"
TABLES = "T: listen identity\nT: open uniform\nO: * uniform\nR: listen : * : * : * -1\n"


def test_a_file_is_what_it_says():
    text = (
        "# a comment\n"
        + HEAD
        + "start: left\n"
        + TABLES
        + "O: listen : left\n0.85 0.15\nO: listen : 1 : 0 0.2 O: listen : 1 : 1 0.8"
        "\nR: open : left : * : * -10\nR: open : right : left : 1 4\nR: open:right:right\n 2 6"
    )
    model = read_pomdp(text)
    assert model.transitions.tolist() == [[[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]]
    assert model.observation_table[0] == pytest.approx(np.array([[0.85, 0.15], [0.2, 0.8]]))
    # open in right: left with 1/2, where half is heard as 1; right with 1/2, worth 2 or 6
    assert model.flat.process.rewards.tolist() == [[-1, -10], [-1, 0.5 * 0.5 * 4 + 0.5 * 4]]
    assert model.flat.first.tolist() == [1.0, 0.0]
    assert (model.discount, model.flat.process.actions) == (0.95, ["listen", "open"])


@pytest.mark.parametrize(
    ("start", "law"),
    [
        ("uniform", [0.5, 0.5]), ("0.3 0.7", [0.3, 0.7]), ("right", [0, 1]), ("1", [0, 1]), ("include: left", [1, 0]),
        ("exclude: left", [0, 1]),
    ],
)  # fmt: skip
def test_a_start_may_be_said_in_many_ways(start, law):
    text = HEAD + (f"start {start}\n" if "clude" in start else f"start: {start}\n") + TABLES
    assert read_pomdp(text).flat.first == pytest.approx(law)


def test_costs_are_negative_rewards_and_reset_begins_anew():
    text = HEAD.replace("reward", "cost") + "start: 0.3 0.7\n" + TABLES + "T: open : left reset\n"
    model = read_pomdp(text)
    assert model.flat.process.rewards[:, 0].tolist() == [1.0, 1.0]
    assert model.transitions[1, 0].tolist() == [0.3, 0.7]


@pytest.mark.parametrize("seed", range(5))
def test_a_written_model_comes_back(seed, tmp_path):
    rng = np.random.default_rng(seed)
    n, k, m = (int(v) for v in rng.integers(1, 5, 3))
    names = (
        {"states": [f"s{i}" for i in range(n)], "observations": ["a b"] + [f"o{i}" for i in range(1, m)]}
        if seed % 2
        else {}
    )
    model = POMDP(
        rng.dirichlet(np.ones(n), (k, n)), rng.dirichlet(np.ones(m), (k, n)), rng.normal(size=(n, k)),
        initial=rng.dirichlet(np.ones(n)), discount=0.9, **names,
    )  # fmt: skip
    mk.io.save(model, tmp_path / "m.pomdp")
    again = mk.load(tmp_path / "m.pomdp", kind=POMDP)
    assert again.transitions == pytest.approx(model.transitions, abs=1e-15)
    assert again.observation_table == pytest.approx(model.observation_table, abs=1e-15)
    assert again.flat.process.rewards == pytest.approx(model.flat.process.rewards)
    assert again.flat.first == pytest.approx(model.flat.first)
    assert again.flat.process.states == model.flat.process.states
    assert mk.io.loads(write_pomdp(model)).discount == 0.9


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello", r":1:1: expected 'discount' or"),
        (
            HEAD + "T: listn identity",
            r":6:4: expected one of the actions or '\*', found 'listn' \(did you mean 'listen'",
        ),
        (HEAD + TABLES + "T: listen\n1 0 0.5", "expected a number, found the end"),
        (HEAD + TABLES + "O: listen : left\n0.5 0.6", "sum to 1.1"),
        (HEAD + TABLES + "R: listen 4", "expected ':' and a state"),
        ("values: reward\nstates: 2\nactions: 2\nT: 0 identity", "expected 'observations:'"),
        (HEAD.replace("0.95", "1.5"), "discount from 0 to 1"),
        (HEAD.replace("left right", "left left"), "different names"),
        (HEAD.replace("left right", "9999999999"), "expected a number of states"),
        ("start: uniform", "'states:' before 'start:'"),
    ],
)
def test_complaints_say_where_and_what_was_expected(text, says):
    with pytest.raises(mk.errors.ParseError, match=says):
        read_pomdp(text)


def test_only_such_processes_are_written():
    with pytest.raises(mk.errors.UnsupportedModel, match="hold a POMDP"):
        mk.io.dumps(mk.examples.cancer(), "pomdp")
    first = POMDP([np.eye(2)], np.eye(2), [0.0, 1.0], first_observation=np.eye(2))
    with pytest.raises(mk.errors.UnsupportedModel, match="before the first action"):
        write_pomdp(first)


def test_too_large_a_file_is_refused_before_anything_is_allocated():
    with pytest.raises(mk.errors.TooLarge):
        read_pomdp("states: 900000\nactions: 9\nobservations: 3\nT: * uniform")
