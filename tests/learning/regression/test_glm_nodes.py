"""Fitted generalised linear models as nodes of networks: the same probabilities as the estimators."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import markovia as mk
from markovia.errors import (
    ConvergenceWarning,
    InvalidArgument,
    InvalidTable,
    UnknownVariable,
    UnsupportedModel,
)

RNG = np.random.default_rng(4)
N = 400
DATA = pd.DataFrame(
    {
        "dose": RNG.integers(0, 3, N),
        "smokes": RNG.random(N) < 0.4,
        "sex": np.array(["f", "m"])[RNG.integers(0, 2, N)],
        "town": np.array(["north", "south", "west"])[RNG.integers(0, 3, N)],
    }
)
SCORE = DATA["dose"] - 1.0 * DATA["smokes"] + 0.7 * (DATA["town"] == "south") - 0.5 * (DATA["sex"] == "m")
DATA["cured"] = np.where(RNG.random(N) < 1 / (1 + np.exp(-SCORE)), "yes", "no")
DATA["car"] = np.array(["mini", "suv", "van"])[
    np.argmax(RNG.gumbel(size=(N, 3)) + np.outer(SCORE, [0.0, 0.8, -0.5]), axis=1)
]
DATA["visits"] = RNG.poisson(np.exp(0.4 * SCORE))
DESIGN = pd.DataFrame(
    {
        "dose": DATA["dose"],
        "smokes": DATA["smokes"].astype(int),
        "sex_m": (DATA["sex"] == "m").astype(int),
        "south": (DATA["town"] == "south").astype(int),
        "west": (DATA["town"] == "west").astype(int),
    }
)
COLUMNS = {"sex_m": "sex", "south": ("town", "south"), "west": ("town", "west")}
PARENTS = {"dose": [0, 1, 2], "smokes": [False, True], "sex": ["f", "m"], "town": ["north", "south", "west"]}


def network():
    bn = mk.BayesianNetwork()
    for name, states in PARENTS.items():
        bn.add(name, states=states, p="uniform")
    return bn


def configurations():
    for states in itertools.product(*PARENTS.values()):
        given = dict(zip(PARENTS, states, strict=True))
        row = [
            given["dose"],
            int(given["smokes"]),
            int(given["sex"] == "m"),
            int(given["town"] == "south"),
            int(given["town"] == "west"),
        ]
        yield given, pd.DataFrame([row], columns=DESIGN.columns)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (mk.regression.LogisticRegression(), "cured"),
        (mk.regression.LogisticRegression(l1=3.0), "cured"),
        (mk.regression.GLM("bernoulli", "probit"), "cured"),
        (mk.regression.GLM("bernoulli", "cloglog"), "cured"),
        (mk.regression.SoftmaxRegression(), "car"),
        (mk.regression.SoftmaxRegression(l2=1.0), "car"),
        (mk.regression.SoftmaxRegression(), "cured"),
    ],
    ids=str,
)
def test_a_node_has_the_probabilities_of_the_model(model, target):
    model.fit(DESIGN, DATA[target])
    bn = network()
    bn.add(target, model.as_conditional(COLUMNS))
    assert list(bn.states(target)) == list(model.classes_)
    assert set(bn.parents(target)) == set(PARENTS)
    for given, row in configurations():
        expected = model.predict_proba(row)[0]
        np.testing.assert_allclose(bn[target].row(**given), expected, rtol=1e-12)
    given, row = next(configurations())
    posterior = bn.query(target, given=given)
    np.testing.assert_allclose([posterior[c] for c in model.classes_], model.predict_proba(row)[0], rtol=1e-9)
    np.testing.assert_allclose(bn[target].values.sum(axis=-1), 1.0)


def test_logistic_and_softmax_models_become_the_library_nodes():
    bn = network()
    bn.add("cured", mk.regression.LogisticRegression().fit(DESIGN, DATA["cured"]).as_conditional(COLUMNS))
    bn.add("car", mk.regression.SoftmaxRegression().fit(DESIGN, DATA["car"]).as_conditional(COLUMNS))
    assert type(bn["cured"]).__name__ == "LogisticConditional"
    assert bn["cured"].n_parameters == 6
    assert type(bn["car"]).__name__ == "SoftmaxConditional"
    assert bn["car"].n_parameters == 12


def test_states_may_be_in_the_other_order():
    model = mk.regression.LogisticRegression().fit(DATA[["dose"]], DATA["cured"])
    bn = mk.BayesianNetwork()
    bn.add("dose", states=[0, 1, 2], p="uniform")
    bn.add("cured", model.as_conditional(), states=["yes", "no"])
    np.testing.assert_allclose(
        bn["cured"].row(dose=2), model.predict_proba(pd.DataFrame({"dose": [2]}))[0][::-1], rtol=1e-12
    )
    with pytest.raises(InvalidTable, match="classes 'no', 'yes'"):
        bn.add("other", model.as_conditional(), states=["a", "b"])


def test_many_parents_need_no_table():
    rows = RNG.integers(0, 2, (300, 40))
    frame = pd.DataFrame(rows, columns=[f"x{i}" for i in range(40)])
    model = mk.regression.GLM("bernoulli", "probit", l2=5.0).fit(frame, rows[:, 0] ^ (RNG.random(300) < 0.2))
    bn = mk.BayesianNetwork()
    for name in frame:
        bn.add(name, p=[0.5, 0.5])
    bn.add("y", model.as_conditional())
    drawn = bn.sample(50, seed=0)
    logs = bn["y"].log_prob(drawn["y"].to_numpy(), [drawn[n].to_numpy() for n in frame])
    chosen = model.predict_proba(drawn[list(frame)])[np.arange(50), drawn["y"].astype(int)]
    np.testing.assert_allclose(logs, np.log(chosen), rtol=1e-10)


def test_poisson_counts_end_in_a_state_for_all_larger_ones():
    model = mk.regression.PoissonRegression().fit(DESIGN, DATA["visits"])
    bn = network()
    bn.add("visits", model.as_conditional(COLUMNS, max_count=4))
    assert list(bn.states("visits")) == [0, 1, 2, 3, "4+"]
    for given, row in configurations():
        law = stats.poisson(model.predict(row)[0])
        np.testing.assert_allclose(bn["visits"].row(**given), [*law.pmf(range(4)), law.sf(3)], rtol=1e-10)
    with pytest.raises(InvalidTable, match="5 states"):
        bn.add("again", model.as_conditional(COLUMNS, max_count=4), states=3)


def test_nodes_can_be_pickled_copied_and_saved(tmp_path):
    bn = network()
    bn.add(
        "cured", mk.regression.GLM("bernoulli", "probit").fit(DESIGN, DATA["cured"]).as_conditional(COLUMNS)
    )
    bn.add(
        "visits",
        mk.regression.PoissonRegression().fit(DESIGN, DATA["visits"]).as_conditional(COLUMNS, max_count=3),
    )
    bn.add("car", mk.regression.SoftmaxRegression().fit(DESIGN, DATA["car"]).as_conditional(COLUMNS))
    again = pickle.loads(pickle.dumps(bn))
    bn.save(tmp_path / "model.json")
    loaded = mk.load(tmp_path / "model.json")
    for other in (again, loaded):
        for name in ("cured", "visits", "car"):
            np.testing.assert_allclose(other[name].values, bn[name].values, atol=1e-12)


def test_what_cannot_be_a_node_says_so():
    y = DATA["visits"] + 1.0
    with pytest.raises(UnsupportedModel, match="not discrete"):
        mk.regression.LinearRegression().fit(DESIGN, y).as_conditional(COLUMNS)
    poisson = mk.regression.PoissonRegression().fit(DESIGN, DATA["visits"])
    with pytest.raises(UnsupportedModel, match="give max_count="):
        poisson.as_conditional(COLUMNS)
    with pytest.raises(InvalidArgument, match="whole number"):
        poisson.as_conditional(COLUMNS, max_count=0)
    logistic = mk.regression.LogisticRegression().fit(DESIGN, DATA["cured"])
    with pytest.raises(InvalidArgument, match="max_count"):
        logistic.as_conditional(COLUMNS, max_count=3)
    with pytest.raises(UnknownVariable, match="sex_n"):
        logistic.as_conditional({"sex_n": "sex"})
    with pytest.raises(InvalidArgument, match="both a column of numbers"):
        logistic.as_conditional({"south": "town", "west": ("town", "west")})
    with pytest.raises(InvalidArgument, match="two columns"):
        logistic.as_conditional({"south": ("town", "west"), "west": ("town", "west")})
    bare = mk.regression.LogisticRegression().fit(DESIGN.to_numpy(), DATA["cured"])
    with pytest.raises(InvalidArgument, match="without names"):
        bare.as_conditional()
    places = ["dose", "smokes", "sex", ("town", "south"), ("town", "west")]
    assert set(bare.as_conditional(places).parent_names) == set(PARENTS)
    with pytest.raises(InvalidArgument, match="5 entries"):
        bare.as_conditional(places[:3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        linear = mk.regression.GLM("bernoulli", "identity", l2=1.0).fit(DATA[["dose"]], DATA["cured"])
    with pytest.raises(UnsupportedModel, match="between 0 and 1"):
        linear.as_conditional()
    bn = network()
    with pytest.raises(InvalidArgument, match="integer states"):
        bn.add(
            "cured",
            mk.regression.LogisticRegression()
            .fit(DESIGN[["dose"]], DATA["cured"])
            .as_conditional({"dose": "town"}),
        )
