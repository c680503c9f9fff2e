"""Tests, PC, FCI, functional models and the command line at their edges: units, odd data, odd settings, time."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import markovia as mk
from markovia import ci_tests
from markovia.cli.app import app
from markovia.graphs import is_causally_sufficient
from markovia.runtime import clock
from markovia.structure.ci_tests.ci_tests import CITest
from markovia.structure.functional.linear_effects import effects_along
from markovia.structure.task.knowledge import Knowledge


def chain_rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = a + rng.normal(size=n)
    return {"a": a, "b": b, "c": b + rng.normal(size=n)}


def discrete_rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    return {"a": a, "b": (a + (rng.random(n) < 0.2)) % 2, "c": rng.integers(0, 3, n)}


# -- units ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-200, 1e-15, 1e200])
@pytest.mark.parametrize("test", ["fisher-z", "mixed", "kci"])
def test_tests_do_not_depend_on_the_unit_of_a_column(test, unit):
    rows = chain_rows(120)
    other = {name: column * unit for name, column in rows.items()}
    for given in ((), ("b",)):
        plain = mk.independence_test(rows, "a", "c", given, test=test, continuous=True)
        found = mk.independence_test(other, "a", "c", given, test=test, continuous=True)
        assert found.p_value == pytest.approx(plain.p_value, rel=1e-6)


@pytest.mark.parametrize("test", ["fisher-z", "mixed", "hsic", "kci"])
def test_a_column_that_only_varies_by_rounding_is_constant(test):
    rows = {**chain_rows(50), "k": 1e6 + 1e-10 * np.arange(50) % 2e-10}
    with pytest.raises(mk.errors.InvalidArgument, match="the column 'k' is constant"):
        mk.independence_test(rows, "a", "k", test=test, continuous=True)


def test_lingam_finds_the_same_graph_in_tiny_units_and_thresholds_speak_of_coefficients_as_they_are():
    rng = np.random.default_rng(3)
    a = rng.uniform(-1, 1, 800)
    rows = {"a": a, "b": 2 * a + rng.uniform(-1, 1, 800), "c": rng.uniform(-1, 1, 800)}
    plain = mk.learn_structure(rows, "direct-lingam")
    tiny = mk.learn_structure({k: v * 1e-15 for k, v in rows.items()}, "direct-lingam")
    assert tiny.graph == plain.graph == mk.graphs.DAG([("a", "b")], nodes=["a", "b", "c"])
    np.testing.assert_allclose(tiny.details.B, plain.details.B, rtol=1e-6, atol=1e-12)
    matrix = np.column_stack(list(rows.values())) * [1.0, 100.0, 1.0]
    rules = Knowledge().rules(list(rows))
    for threshold, n_edges in ((150.0, 1), (250.0, 0)):
        found = effects_along(
            [0, 1, 2], matrix, rules, list(rows), prune="threshold", threshold=threshold, alpha=0.05
        )
        assert (found.matrix != 0).sum() == n_edges
    with pytest.raises(mk.errors.InvalidArgument, match="choose another unit"):
        mk.learn_structure({k: v * 1e150 for k, v in rows.items()}, "direct-lingam")


# -- pairs ------------------------------------------------------------------------------------------------------


def test_directions_of_columns_with_repeated_numbers_exact_functions_and_odd_units():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 200)
    y = x + x**3 / 3 + rng.normal(size=200)
    ties = mk.pairwise_direction(np.round(x), np.round(y), "pnl")
    assert 0 <= ties.forward.p_value <= 1
    for model in ("anm", "lingam"):
        exact = mk.pairwise_direction(x, 2 * x + 1, model)
        assert exact.direction is None
        assert exact.reason == "both directions fit"
    plain, scaled = mk.pairwise_direction(x, y), mk.pairwise_direction(x * 1e-200, y * 1e200)
    assert scaled.forward.p_value == pytest.approx(plain.forward.p_value, rel=1e-6)
    with pytest.raises(mk.errors.InvalidArgument, match="two names"):
        mk.pairwise_direction(x, y, names=("cause",))


def test_tests_of_independence_cannot_direct_two_variables():
    for truth in (mk.graphs.DAG([("x", "y")]), mk.graphs.DAG([("y", "x")])):
        assert mk.learn_structure(method="pc", test=truth).graph.undirected_edges()
    hidden = ci_tests.Oracle(mk.graphs.DAG([("z", "x"), ("z", "y")]), latent="z")
    assert str(mk.learn_structure(method="fci", test=hidden).graph) == "MixedGraph(['x o-o y'])"


# -- oracles ----------------------------------------------------------------------------------------------------


def test_a_distribution_is_asked_about_rare_configurations_too():
    rare = mk.BayesianNetwork()
    rare.add("z", states=[0, 1], p=[1 - 1e-7, 1e-7])
    rare.add("x", states=[0, 1], p=[0.5, 0.5])
    rare.add("y", states=[0, 1], parents=["z", "x"], p=[[[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.1, 0.9]]])
    test = ci_tests.Oracle(rare, by="distribution").bind(None)
    x, y, z = (test.names.index(n) for n in "xyz")
    assert not test.independent(x, y, [z])
    assert test.independent(x, z)


def test_an_undirected_graph_or_a_markov_network_is_an_oracle_by_itself():
    square = mk.graphs.UndirectedGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    found = mk.learn_structure(method="pc", test=square)
    assert sorted(map(sorted, found.skeleton.edges)) == sorted(map(sorted, square.edges))
    network = mk.MarkovNetwork({"a": 2, "b": 2, "c": 2}, [mk.Factor(["a", "b"], [[3, 1], [1, 3]])])
    assert mk.learn_structure(method="pc", test=network).skeleton.edges == [("a", "b")]


def test_causal_sufficiency_asks_for_every_common_cause():
    fork = mk.graphs.DAG([("z", "x"), ("z", "y")])
    assert is_causally_sufficient(fork, ["x", "y", "z"])
    assert not is_causally_sufficient(fork, ["x", "y"])
    through = mk.graphs.DAG([("z", "h"), ("h", "x"), ("z", "y"), ("x", "w")])
    assert is_causally_sufficient(through, ["z", "x", "y", "w"])
    assert not is_causally_sufficient(through, ["h", "x", "y"])
    assert is_causally_sufficient(through, ["h", "x", "w"])


# -- settings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "options", "match"),
    [
        ("pc", {"alpha": "0.05"}, "alpha= is between 0 and 1"),
        ("pc", {"alpha": [0.1]}, "alpha= is between 0 and 1"),
        ("pc", {"test": ci_tests.G2(alpha=None)}, "alpha= is between 0 and 1"),
        ("pc", {"test": ci_tests.G2}, "mk.ci_tests.G2\\(\\)"),
        ("pc", {"keep_tests": -1}, "keep_tests="),
        ("mmhc", {"keep_tests": "all"}, "keep_tests="),
        ("pc", {"n_jobs": 0}, "n_jobs="),
        ("fci", {"n_jobs": "two"}, "n_jobs="),
    ],
)
def test_settings_that_make_no_sense_are_refused(method, options, match):
    with pytest.raises(mk.errors.InvalidArgument, match=match):
        mk.learn_structure(discrete_rows(), method, **options)


@pytest.mark.parametrize("method", ["pc", "fci", "rfci", "mmhc"])
def test_numbers_of_numpy_are_numbers(method):
    found = mk.learn_structure(discrete_rows(), method, depth=np.int64(1), time_limit=np.int64(60))
    assert found.skeleton.edges == [("a", "b")]


# -- time and processes -----------------------------------------------------------------------------------------


HANDS = [0.0]
"""The time of the tests below, which only answers let pass."""


class Slow(CITest):
    """Everything depends on everything, and each answer takes its time."""

    name = "slow"
    costly = True

    def _compute(self, queries):
        HANDS[0] += 0.02 * len(queries)
        return np.zeros(len(queries))


@pytest.mark.parametrize(
    ("method", "options"),
    [("pc", {}), ("pc", {"orientation": "majority"}), ("fci", {}), ("rfci", {}), ("mmhc", {})],
)
def test_a_time_limit_is_seen_within_a_round_of_costly_tests(method, options, monkeypatch):
    monkeypatch.setattr(clock, "perf_counter", lambda: HANDS[0])
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.integers(0, 2, (30, 25)), columns=[f"v{i}" for i in range(25)])
    found = mk.learn_structure(rows, method, test=Slow(list(rows), 0.05), time_limit=0.2, **options)
    assert found.stopped == "time limit"
    assert found.n_tests < 100  # one round asks 300
    assert found.seconds < 4


@pytest.mark.parametrize("method", ["pc", "fci", "rfci", "mmhc"])
def test_processes_reach_the_test_of_every_method(method):
    rows = discrete_rows()
    test = ci_tests.PermutationCMI(permutations=50).bind(mk.learn_structure(rows, "chow-liu").data)
    test.costly = False  # nothing leaves this process
    mk.learn_structure(rows, method, test=test, n_jobs=2)
    assert test.jobs == 2


# -- files ------------------------------------------------------------------------------------------------------


def test_words_of_a_text_file_are_the_same_states_with_and_without_measurements(tmp_path):
    rng = np.random.default_rng(0)
    n = 60

    def either(one, two):
        return np.where(rng.random(n) < 0.5, one, two)

    frame = pd.DataFrame(
        {"k": either("yes", "no"), "code": either("01", "02"), "t": either("true", "false"),
         "day": either("2020-01-01", "2021-01-01"), "n": either(1, 2)}
    )  # fmt: skip
    frame.to_csv(tmp_path / "words.csv", index=False)
    frame.assign(x=rng.normal(size=n)).to_csv(tmp_path / "both.csv", index=False)
    words, both = (mk.learn_structure(tmp_path / f"{f}.csv", "hill-climb").data for f in ("words", "both"))
    assert both.kinds[-1] == "continuous"
    assert dict(both.table.variables) == dict(words.table.variables)
    with pytest.raises(mk.errors.InvalidArgument, match="not numbers"):
        mk.learn_structure(tmp_path / "words.csv", "graphical-lasso")


# -- command line -----------------------------------------------------------------------------------------------


def test_the_command_line_speaks_of_its_own_options(tmp_path):
    pd.DataFrame(discrete_rows()).to_csv(tmp_path / "rows.csv", index=False)
    run = CliRunner().invoke
    found = run(app, ["learn", str(tmp_path / "rows.csv"), "-m", "pc", "--score", "bic"])
    assert found.exit_code == 2
    assert "pc takes no --score" in found.output
    found = run(app, ["learn", str(tmp_path / "rows.csv"), "--missing", "ignore"])
    assert "--missing is 'error' or 'drop'" in found.output
    pag = str(tmp_path / "pag.dagitty")
    assert run(app, ["learn", str(tmp_path / "rows.csv"), "-m", "fci", "-o", pag]).exit_code == 0
    mk.BayesianNetwork("a -> b; c").save(tmp_path / "dag.json")
    found = run(app, ["compare", pag, str(tmp_path / "dag.json")])
    assert found.exit_code == 2
    assert "markovia learn --method fci" in found.output
    assert "mk." not in found.output
