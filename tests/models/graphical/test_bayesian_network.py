import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from model_strategies import bayesian_networks, brute_force

YES_NO = ["no", "yes"]


@pytest.fixture
def sprinkler():
    return mk.examples.sprinkler()


def rain_and_wet():
    bn = mk.BayesianNetwork()
    bn.add("rain", states=YES_NO, p=[0.8, 0.2])
    bn.add("wet", states=YES_NO, parents=["rain"], p=[[0.9, 0.1], [0.2, 0.8]])
    return bn


def test_the_design_example_answers():
    bn = rain_and_wet()
    assert bn.variables == ["rain", "wet"]
    assert bn.states("wet") == YES_NO
    assert bn.edges == [("rain", "wet")]
    assert bn.query("rain", given={"wet": "yes"})["yes"] == pytest.approx(0.16 / 0.24)
    assert bn.count_parameters() == 3


def test_states_are_read_off_the_table_where_they_are_not_given():
    bn = mk.BayesianNetwork()
    bn.add("a", p=[0.2, 0.3, 0.5])
    bn.add("b", p={"lo": 0.4, "hi": 0.6})
    bn.add("c", parents=["a", "b"], p=np.full((3, 2, 4), 0.25))
    assert bn.states("a") == [0, 1, 2]
    assert bn.states("b") == ["lo", "hi"]
    assert bn.states("c") == [0, 1, 2, 3]


def test_a_function_names_its_parents():
    bn = mk.BayesianNetwork()
    bn.add("a", p=[0.5, 0.5])
    bn.add("b", p=[0.9, 0.1])
    bn.add("both", lambda a, b: a and b)
    bn.add("noisy", lambda both: 0.9 if both else 0.2, states=["off", "on"])
    assert bn.parents("both") == ["a", "b"]
    assert bn.query("both")[1] == pytest.approx(0.05)
    assert bn.query("noisy")["on"] == pytest.approx(0.05 * 0.9 + 0.95 * 0.2)


def test_recipes_bring_parents_and_states():
    bn = mk.BayesianNetwork()
    bn.add("burglary", p=[0.99, 0.01])
    bn.add("quake", p=[0.98, 0.02])
    bn.add("alarm", mk.local.NoisyOr({"burglary": 0.9, "quake": 0.3}, leak=0.01))
    bn.add("total", mk.local.Sum("burglary", "quake"))
    assert bn.parents("alarm") == ["burglary", "quake"]
    expected = 1 - 0.99 * (1 - 0.01 * 0.9) * (1 - 0.02 * 0.3)
    assert bn.query("alarm").values[1] == pytest.approx(expected)
    assert bn.states("total") == [0, 1, 2]
    assert bn.query("total").mean() == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda bn: bn.add("rain", p=[0.5, 0.5]), mk.errors.DuplicateName, "already has a variable 'rain'"),
        (
            lambda bn: bn.add("x", parents=["rian"], p=[[1, 0], [0, 1]]),
            mk.errors.UnknownVariable,
            "did you mean 'rain'",
        ),
        (
            lambda bn: bn.add("x", parents=["rain"], p=[[0.5, 0.5], [0.5, 0.6]]),
            mk.errors.InvalidTable,
            "rain='yes' sums to 1.1",
        ),
        (lambda bn: bn.add("x", p=[0.5, -0.5]), mk.errors.InvalidTable, "x=1"),
        (lambda bn: bn.add(3, p=[0.5, 0.5]), mk.errors.InvalidArgument, "non-empty string"),
        (lambda bn: bn.add("x", [1, 0], p=[1, 0]), mk.errors.InvalidArgument, "not both"),
        (lambda bn: bn.add("x", cpd=[1, 0]), mk.errors.UnknownArgument, "it is p= here"),
        (lambda bn: bn.add("x", mk.local.NoisyOr), mk.errors.InvalidArgument, r"NoisyOr\(\.\.\.\)"),
        (
            lambda bn: bn.replace("rain", parents=["wet"], p=[[1, 0], [0, 1]]),
            mk.errors.CycleError,
            "rain -> wet -> rain|wet -> rain -> wet",
        ),
        (lambda bn: bn.add_edge("wet", "rain"), mk.errors.CycleError, "cycle"),
        (lambda bn: bn.add_edge("rain", "wet"), mk.errors.InvalidGraph, "already an edge"),
        (lambda bn: bn.remove_edge("rain", "wet"), mk.errors.InvalidTable, "depends on 'rain'"),
        (lambda bn: bn.remove("rain"), mk.errors.InvalidGraph, "has children"),
        (lambda bn: bn.rename("rain", "wet"), mk.errors.DuplicateName, "one name"),
        (lambda bn: bn.rename_states("rain", ["a"]), mk.errors.InvalidArgument, "2 states"),
        (lambda bn: bn.rename_states("rain", {"maybe": "b"}), mk.errors.UnknownState, "maybe"),
    ],
)
def test_a_failed_edit_says_why_and_changes_nothing(call, error, message):
    bn = rain_and_wet()
    with pytest.raises(error, match=message):
        call(bn)
    assert bn.allclose(rain_and_wet())
    assert bn.graph == rain_and_wet().graph
    bn.validate()


def test_edits_keep_the_distribution_they_promise(sprinkler):
    before = sprinkler.joint()
    sprinkler.add_edge("sprinkler", "rain")
    assert sprinkler.joint().allclose(before)
    assert sprinkler.parents("rain") == ["cloudy", "sprinkler"]
    sprinkler.remove_edge("sprinkler", "rain")
    assert sprinkler.joint().allclose(before)
    sprinkler.rename({"rain": "regen", "wet": "nass"})
    assert sprinkler.parents("nass") == ["sprinkler", "regen"]
    assert sprinkler.query("regen", given={"nass": "yes"})["yes"] == pytest.approx(0.70793, abs=1e-5)
    sprinkler.rename_states("nass", {"yes": "ja", "no": "nein"})
    assert sprinkler.query("nass")["ja"] == pytest.approx(0.6471)
    sprinkler.remove("nass")
    assert "nass" not in sprinkler
    sprinkler.replace("regen", p=[[0.5, 0.5], [0.5, 0.5]])
    assert sprinkler.query("regen")["yes"] == pytest.approx(0.5)


def test_a_structure_without_tables_answers_independence_and_asks_for_numbers():
    bn = mk.BayesianNetwork("rain->wet{no|yes}<-sprinkler; wet->slip[3]")
    assert bn.independent("rain", "sprinkler")
    assert not bn.independent("rain", "sprinkler", given="slip")
    assert bn.states("slip") == [0, 1, 2]
    with pytest.raises(mk.errors.IncompleteModel, match="4 of 4 variables have no table"):
        bn.query("rain")
    with pytest.raises(mk.errors.IncompleteModel, match="'wet' has no table"):
        bn["wet"]
    assert bn.count_parameters() == 1 + 4 + 1 + 4
    bn.fill("random", seed=3)
    bn.validate()
    again = mk.BayesianNetwork("rain->wet{no|yes}<-sprinkler; wet->slip[3]", tables="random", seed=3)
    assert bn.allclose(again)
    flat = mk.BayesianNetwork("a->b[4]", tables="uniform")
    assert flat.query("b").values == pytest.approx([0.25] * 4)


def test_networks_start_from_graphs_edges_and_parent_lists():
    edges = [("a", "b"), ("b", "c")]
    expected = mk.graphs.DAG(edges)
    for structure in (edges, expected, {"b": ["a"], "c": ["b"]}, "a->b->c", "[a][b|a][c|b]"):
        assert mk.BayesianNetwork(structure).graph == expected
    assert mk.BayesianNetwork("a->b", states={"a": ["x", "y", "z"]}).states("a") == ["x", "y", "z"]
    with pytest.raises(mk.errors.CycleError):
        mk.BayesianNetwork("a->b->a")
    with pytest.raises(mk.errors.UnknownVariable):
        mk.BayesianNetwork("a->b", states={"c": 2})


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("a->", 4, "name"),
        ("a->b[x]", 5, r"\[k\]"),
        ("a->b{}", 5, "not empty"),
        ("a->b c", 6, "'->'"),
        ("a{x|y}->b; a{y|x}", 13, "other states before"),
        ("a->b[0]", 5, "at least one state"),
        ("a->b[99999999999]", 5, "million"),
        ("[a][b|c]", 7, "no entry"),
    ],
)
def test_a_malformed_line_is_reported_with_its_column(text, column, expected):
    with pytest.raises(mk.errors.ParseError, match=expected) as caught:
        mk.BayesianNetwork(text)
    assert caught.value.column == column


@sampled(bn=bayesian_networks())
@settings(max_examples=40, deadline=None)
def test_the_joint_table_is_the_product_of_the_tables(bn):
    joint = bn.joint()
    np.testing.assert_allclose(joint.values, brute_force(bn, {}), atol=1e-12)
    assert joint.total == pytest.approx(1.0)


@sampled(bn=bayesian_networks(), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_log_prob_of_rows_equals_the_joint_table_and_sums_out_missing_cells(bn, seed):
    rows = bn.sample(20, seed=seed)
    table = brute_force(bn, {})
    index = tuple([bn.states(n).index(s) for s in rows[n]] for n in bn.variables)
    np.testing.assert_allclose(bn.log_prob(rows), np.log(table[index]), atol=1e-10)
    dropped = bn.variables[seed % len(bn)]
    partial = rows.drop(columns=dropped)
    if partial.shape[1]:
        axis = bn.variables.index(dropped)
        rest = tuple(c for i, c in enumerate(index) if i != axis)
        np.testing.assert_allclose(bn.log_prob(partial), np.log(table.sum(axis=axis)[rest]), atol=1e-10)


def test_sampling_is_reproducible_and_follows_the_model(sprinkler):
    n = 50_000
    rows = sprinkler.sample(n, seed=7)
    pd.testing.assert_frame_equal(rows, sprinkler.sample(n, seed=7))
    assert not rows.equals(sprinkler.sample(n, seed=8))
    for name, p in {"cloudy": 0.5, "sprinkler": 0.3, "rain": 0.5, "wet": 0.6471}.items():
        assert abs((rows[name] == "yes").mean() - p) < 4.5 * np.sqrt(p * (1 - p) / n)
    both = ((rows["sprinkler"] == "no") & (rows["rain"] == "no") & (rows["wet"] == "yes")).sum()
    assert both == 0


def test_columns_keep_the_kind_of_their_states():
    bn = mk.BayesianNetwork()
    bn.add("n", states=[3, 5], p=[0.5, 0.5])
    bn.add("b", states=[False, True], p=[0.5, 0.5])
    bn.add("s", states=["x", "y"], p=[0.5, 0.5])
    rows = bn.sample(10, seed=0)
    assert rows["n"].dtype.kind == "i"
    assert rows["b"].dtype == bool
    assert list(rows["s"].cat.categories) == ["x", "y"]
    assert np.isfinite(bn.log_prob(rows)).all()


def test_predictions_use_the_rest_of_the_row(sprinkler):
    frame = pd.DataFrame(
        {"wet": ["yes", "no", None], "sprinkler": ["no", None, None], "rain": ["no", "no", "no"]},
        index=[10, 11, 12],
    )
    proba = sprinkler.predict_proba(frame, "rain")
    assert list(proba.index) == [10, 11, 12]
    assert list(proba.columns) == YES_NO
    assert proba.loc[10, "yes"] == pytest.approx(1.0)
    assert proba.loc[11, "yes"] == pytest.approx(sprinkler.query("rain", given={"wet": "no"})["yes"])
    assert proba.loc[12, "yes"] == pytest.approx(0.5)
    assert sprinkler.predict(frame, "rain").tolist()[:2] == ["yes", "no"]
    several = sprinkler.predict_proba(frame, ["rain", "cloudy"])
    assert several[("rain", "yes")].tolist() == pytest.approx(
        [
            sprinkler.query("rain", given=g)["yes"]
            for g in ({"wet": "yes", "sprinkler": "no"}, {"wet": "no"}, {})
        ]
    )
    with pytest.raises(mk.errors.ImpossibleEvidence):
        sprinkler.predict_proba([{"wet": "yes", "sprinkler": "no", "rain": "no"}], "cloudy")


def test_rows_with_unknown_columns_or_states_are_refused(sprinkler):
    with pytest.raises(mk.errors.UnknownVariable, match="did you mean 'rain'"):
        sprinkler.log_prob([{"rian": "yes"}])
    with pytest.raises(mk.errors.UnknownState, match="did you mean 'yes'"):
        sprinkler.log_prob([{"rain": "Yes"}])
    with pytest.raises(mk.errors.InvalidArgument, match="rows are"):
        sprinkler.log_prob(3)


def test_doing_cuts_the_parents_and_seeing_does_not(sprinkler):
    done = sprinkler.do(sprinkler="yes")
    assert done.parents("sprinkler") == []
    assert done.query("rain")["yes"] == pytest.approx(0.5)
    assert sprinkler.query("rain", given={"sprinkler": "yes"})["yes"] == pytest.approx(0.3)
    assert sprinkler.parents("sprinkler") == ["cloudy"]
    mixed = sprinkler.do({"sprinkler": [0.25, 0.75]})
    assert mixed.query("sprinkler")["yes"] == pytest.approx(0.75)
    with pytest.raises(mk.errors.UnknownState):
        sprinkler.do(sprinkler="maybe")
    with pytest.raises(mk.errors.UnknownVariable):
        sprinkler.do(hose="yes")


@sampled(bn=bayesian_networks(max_nodes=6), seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_the_relevant_part_gives_the_same_posterior(bn, seed):
    rng = np.random.default_rng(seed)
    names = [str(n) for n in rng.permutation(bn.variables)]
    target, seen = names[0], names[1 : 1 + rng.integers(0, 3)]
    row = bn.sample(1, seed=seed).iloc[0]
    given = {n: row[n] for n in seen}
    small = bn.relevant(target, seen)
    kept = {n: s for n, s in given.items() if n in small}
    expected = bn.query(target, given=given)
    assert small.query(target, given=kept).allclose(expected, atol=1e-10)
    assert set(small.variables) <= set(bn.variables)


def test_the_relevant_part_drops_barren_and_separated_variables():
    bn = mk.examples.asia()
    assert set(bn.relevant("lung", ["smoke"]).variables) == {"smoke", "lung"}
    assert set(bn.relevant("tub", ["smoke"]).variables) == {"asia", "tub"}
    with pytest.raises(mk.errors.InvalidGraph, match="needs its parents"):
        bn.subnetwork(["lung"])


def test_networks_copy_compare_and_pickle(sprinkler):
    twin = sprinkler.copy()
    assert twin.allclose(sprinkler)
    twin.replace("cloudy", p=[0.4, 0.6])
    twin.add("extra", p=[0.5, 0.5])
    found = [str(d) for d in sprinkler.compare(twin)]
    assert found == ["extra: only in the second", "cloudy: tables differ by up to 0.1"]
    assert sprinkler["cloudy"].values.tolist() == [0.5, 0.5]
    assert pickle.loads(pickle.dumps(sprinkler)).allclose(sprinkler)


@sampled(bn=bayesian_networks(max_nodes=6))
@settings(max_examples=40, deadline=None)
def test_conversions_keep_the_joint_distribution(bn):
    joint = bn.joint()
    mn, fg = bn.to_markov_network(), bn.to_factor_graph()
    assert mn.log_partition() == pytest.approx(0.0, abs=1e-9)
    assert mn.joint().allclose(joint, atol=1e-10)
    assert fg.joint().allclose(joint, atol=1e-10)
    assert set(map(frozenset, mn.edges)) == set(map(frozenset, bn.graph.moral_graph().edges))
    back = mn.to_bayesian_network()
    assert back.joint().allclose(joint, atol=1e-9)


def test_information_under_the_model(sprinkler):
    joint = sprinkler.joint()
    assert sprinkler.mutual_information("sprinkler", "wet") == pytest.approx(
        joint.mutual_information("sprinkler", "wet")
    )
    assert sprinkler.mutual_information("sprinkler", "rain", given="cloudy") == pytest.approx(0.0, abs=1e-12)
    bn = mk.BayesianNetwork()
    bn.add("x", states=[-1, 0, 1], p=[0.25, 0.5, 0.25])
    bn.add("y", lambda x: x * x, states=[0, 1])
    assert bn.correlation("x", "y") == pytest.approx(0.0, abs=1e-12)
    assert bn.mutual_information("x", "y") == pytest.approx(np.log(2))
    with pytest.raises(mk.errors.InvalidArgument, match="not numbers"):
        sprinkler.correlation("rain", "wet")


def test_wrong_method_names_point_to_the_right_one(sprinkler):
    for wrong, right in {
        "map_query": "map",
        "predict_probability": "predict_proba",
        "nodes": "variables",
    }.items():
        with pytest.raises(AttributeError, match=f"here it is {right}"):
            getattr(sprinkler, wrong)
    with pytest.raises(AttributeError, match="did you mean 'marginals'"):
        sprinkler.marginal  # noqa: B018
    with pytest.raises(mk.errors.UnknownArgument, match="it is given= here"):
        sprinkler.query("rain", evs={"wet": "yes"})
    with pytest.raises(mk.errors.UnknownArgument, match="it is n= here"):
        sprinkler.sample(n_samples=3)


def test_forms_of_evidence_are_checked(sprinkler):
    cases = {
        "yes and": ({"wet": ["yes", "no"]}, mk.errors.InvalidEvidence, "one likelihood a state"),
        "length": ({"wet": [0.1, 0.2, 0.3]}, mk.errors.InvalidEvidence, "needs 2 likelihoods"),
        "zero": ({"wet": [0, 0]}, mk.errors.InvalidEvidence, "zero for every state"),
        "negative": ({"wet": [-1, 2]}, mk.errors.InvalidEvidence, "not negative"),
        "left out": ({"wet": {"yes": 0.5}}, mk.errors.InvalidEvidence, "leaves out 'no'"),
        "all": ({"wet": mk.Not("yes", "no")}, mk.errors.InvalidEvidence, "every state"),
        "state": ({"wet": "damp"}, mk.errors.UnknownState, "damp"),
        "name": ({"wett": "yes"}, mk.errors.UnknownVariable, "did you mean 'wet'"),
        "shape": (["wet"], mk.errors.InvalidEvidence, "mapping"),
    }
    for given, error, message in cases.values():
        with pytest.raises(error, match=message):
            sprinkler.query("rain", given=given)
    soft = sprinkler.query("rain", given={"wet": {"no": 0.2, "yes": 0.8}})
    assert soft.allclose(sprinkler.query("rain", given={"wet": [0.2, 0.8]}))
    assert sprinkler.query("rain", given={"wet": mk.Not("no")}).allclose(
        sprinkler.query("rain", given={"wet": "yes"})
    )
    assert sprinkler.query("wet", given={"wet": "yes"}).to_dict() == {"no": 0.0, "yes": 1.0}
