"""`markovia decide`: policies, values and bounds on the terminal and as JSON."""

import numpy as np
import pytest

import markovia as mk
from command_line import answer, complaint, run
from every_picture import drilling


@pytest.fixture
def wells(tmp_path):
    path = tmp_path / "wells.xdsl"
    mk.save(drilling(), path)
    return str(path)


@pytest.fixture
def pigs(tmp_path):
    bn = mk.BayesianNetwork()
    bn.add("h0", [0.9, 0.1], states=["well", "ill"])
    for t in range(3):
        bn.add(f"s{t}", [[0.9, 0.1], [0.2, 0.8]], states=["neg", "pos"], parents=[f"h{t}"])
        bn.add(f"d{t}", mk.Decision(["no", "treat"]), parents=[f"s{t}"])
        bn.add(f"c{t}", mk.Utility([0, -100]), parents=[f"d{t}"])
        rows = [[[0.8, 0.2], [0.9, 0.1]], [[0.1, 0.9], [0.5, 0.5]]]
        bn.add(f"h{t + 1}", rows, states=["well", "ill"], parents=[f"h{t}", f"d{t}"])
    bn.add("sale", mk.Utility([1000, 300]), parents=["h3"])
    path = tmp_path / "pigs.net"
    mk.save(bn, path)
    return str(path)


def test_a_diagram_is_decided_with_its_value_and_how_sure_that_is(wells):
    result = run("decide", wells)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "expected utility 22.5, proved best"
    assert "test, seeing nothing" in lines
    assert "drill, seeing test, result" in lines
    rule = [line.split() for line in lines[lines.index("drill, seeing test, result") + 2 :][:3]]
    assert rule == [
        ["yes", "none", "no", "0.41"],
        ["yes", "open", "yes", "0.35"],
        ["yes", "closed", "yes", "0.24"],
    ]
    assert "untested" not in result.stdout, "what does not occur is no advice"
    assert "strong-elimination" in lines[-1]
    assert "exact" in lines[-1]


def test_scripts_get_every_row_with_its_probability(wells):
    told = answer("decide", wells)
    assert told["value"] == pytest.approx(22.5)
    assert told["bound"] == pytest.approx(22.5)
    assert told["gap"] == 0
    rows = told["policy"]["drill"]
    assert len(rows) == 8
    assert sum(row["probability"] for row in rows) == pytest.approx(1.0)
    assert {"seen": {"test": "yes", "result": "none"}, "choice": "no"}.items() <= rows[0].items()
    assert told["info"]["engine"] == "strong-elimination"
    assert told["info"]["exact"] is True


def test_memory_is_as_drawn_or_perfect_and_the_bound_says_what_forgetting_costs(pigs):
    drawn, perfect = answer("decide", pigs), answer("decide", pigs, "--memory", "perfect")
    assert drawn["value"] == pytest.approx(726.8121)
    assert drawn["bound"] == pytest.approx(729.225, abs=1e-3)
    assert perfect["value"] == pytest.approx(drawn["bound"])
    first = run("decide", pigs).stdout.splitlines()[0]
    assert first.startswith("expected utility 726.812, proved best, perfect recall 729.2")


def test_what_is_known_and_what_is_decided_already_counts(wells):
    told = answer("decide", wells, "--given", "test=no")
    assert told["value"] == pytest.approx(20.0)
    assert set(told["policy"]) == {"drill"}
    text = run("decide", wells, "-g", "test=no").stdout
    assert "given test=no" in text.splitlines()[-1]
    assert answer("decide", wells, "-g", "oil=soaking")["value"] == pytest.approx(200.0)


def test_risk_asks_for_the_certainty_equivalent(wells):
    told = answer("decide", wells, "--risk", "-0.01")
    assert told["value"] == pytest.approx(0.0, abs=1e-9)
    assert told["risk"] == -0.01
    assert run("decide", wells, "--risk", "0.01").stdout.startswith("certainty equivalent 79.7832")


def test_long_rules_show_their_most_probable_rows_and_ties_are_marked(tmp_path):
    bn = mk.BayesianNetwork()
    bn.add("x", np.arange(1.0, 101.0), normalise=True)
    bn.add("d", mk.Decision(["a", "b"]), parents=["x"])
    bn.add("u", mk.Utility(np.zeros((100, 2))), parents=["x", "d"])
    path = str(tmp_path / "long.json")
    mk.save(bn, path)
    text = run("decide", path).stdout
    assert "the 64 most probable of 100 rows" in text
    assert "a (tie)" in text
    assert [row["seen"]["x"] for row in answer("decide", path)["policy"]["d"]] == list(range(100))


def test_numbers_are_chosen_by_linear_rules(tmp_path):
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian(0, {}, 1))
    bn.add("seen", mk.LinearGaussian(0, {"x": 1}, 1), parents=["x"])
    bn.add("u", mk.Decision(), parents=["seen"])
    bn.add("miss", mk.Utility(mk.Quadratic({"x": -1, "u": -1, ("x", "u"): 2})))
    path = str(tmp_path / "number.json")
    mk.save(bn, path)
    assert "u = 0.5 seen" in run("decide", path).stdout
    told = answer("decide", path)
    assert told["value"] == pytest.approx(-0.5)
    assert told["policy"] == {"u": "u = 0.5 seen"}


def test_bad_input_is_one_sentence(wells, tmp_path):
    assert "no decisions and utilities" in complaint("decide", "asia")
    assert "drawn or perfect" in complaint("decide", wells, "--memory", "total")
    assert "result" in complaint("decide", wells, "--given", "result=open")
    assert "--memory perfect" in complaint("decide", wells, "--order", "test,drill")
    assert "--time-limit" in complaint("decide", wells, "--time-limit", "0")
    complaint("decide", wells, "--given", "gain=3")
    assert "did you mean" in complaint("decide", str(tmp_path / "wells.xdls"))
    free = mk.BayesianNetwork()
    free.add("d", mk.Decision(["a", "b"]))
    mk.save(free, tmp_path / "free.json")
    assert "there is no utility" in complaint("decide", str(tmp_path / "free.json"))


def test_other_commands_know_decisions_and_utilities(wells):
    told = answer("info", wells, "--variables")
    assert told["decisions"] == ["test", "drill"]
    assert told["utilities"] == ["cost", "gain"]
    assert [v["states"] for v in told["variables_listed"] if v["name"] == "gain"] == [[]]
    assert "utilities" in run("info", wells).stdout
    assert "utilities" not in run("info", "asia").stdout
    assert answer("query", wells, "oil")["posteriors"]["oil"]["wet"] == pytest.approx(0.3)
    assert "not decided" in complaint("query", wells, "drill")
