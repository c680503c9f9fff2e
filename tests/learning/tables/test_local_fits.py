"""Local models fitted to counts: logistic, softmax and noisy nodes keep their form and reach the maximum."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import markovia as mk
from markovia.data.tables.reading import read_data
from markovia.learning.tables.local_fits import local_fit
from markovia.learning.tables.priors import as_prior
from markovia.learning.tables.table_learner import NodeFamily, TableLearner
from markovia.models.graphical import fitting
from model_strategies import random_case

STATES = {"a": [0, 1, 2], "b": ["f", "m"], "c": ["u", "v", "w"]}


def parents_frame(rng, n):
    return pd.DataFrame({name: rng.choice(np.array(s, dtype=object), n) for name, s in STATES.items()})


def with_child(recipe, states):
    bn = mk.BayesianNetwork()
    for name, s in STATES.items():
        bn.add(name, states=s, p="uniform")
    bn.add("y", recipe, states=states)
    return bn


def design(frame):
    """One weight for a, an indicator for b and for all but the first state of c."""
    columns = [frame["a"].astype(float), frame["b"] == "m", frame["c"] == "v", frame["c"] == "w"]
    return np.column_stack([np.asarray(c, dtype=float) for c in columns])


LOGISTIC = mk.local.Logistic({"a": 0.7, "b": {"m": -1.0}, "c": {"v": 0.5, "w": 1.5}}, bias=-0.5)
SOFTMAX = mk.local.Softmax(
    {
        "mid": {"a": 0.7, "b": -1.0, "c": {"v": 0.5, "w": 1.5}},
        "hi": {"a": -0.5, "c": {"v": 1.5}},
    },
    bias={"mid": 0.2},
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("recipe", "states"), [(LOGISTIC, ["no", "yes"]), (SOFTMAX, ["lo", "mid", "hi"])])
def test_logistic_and_softmax_nodes_are_regressions(recipe, states, seed):
    truth = with_child(recipe, states)
    frame = truth.sample(400, seed=seed)
    fitted = truth.copy().fit(frame)
    x, y = design(frame), frame["y"].astype(str)
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(x, y)
    proba = pd.DataFrame(peer.predict_proba(x), columns=peer.classes_)[states].to_numpy()
    ours = np.array([fitted["y"].row(**row) for row in frame[list(STATES)].to_dict("records")])
    assert type(fitted["y"]) is type(truth["y"])
    assert fitted["y"].n_parameters == truth["y"].n_parameters == 5 * (len(states) - 1)
    assert np.allclose(ours, proba, atol=1e-5)
    # the score equations of the maximum
    hot = np.array([[s == v for s in states] for v in y], dtype=float)
    residual = np.column_stack([np.ones(len(x)), x]).T @ (hot - ours)
    assert np.abs(residual).max() < 1e-6
    again = fitted.copy().fit(frame)
    assert again["y"].allclose(fitted["y"], atol=1e-9)


def test_a_gaussian_prior_is_a_ridge():
    truth = with_child(LOGISTIC, ["no", "yes"])
    frame = truth.sample(120, seed=1)
    fitted = truth.copy().fit(frame, prior=mk.priors.Gaussian(scale=0.5))
    x = design(frame)
    peer = LogisticRegression(C=0.25, tol=1e-10, max_iter=5000).fit(x, frame["y"].astype(str) == "yes")
    start, contributions = fitted["y"].scores()
    assert np.allclose(start, peer.intercept_, atol=1e-4)
    assert np.allclose([c[-1, 0] for c in contributions], peer.coef_[0][[0, 1, 3]] * [2, 1, 1], atol=1e-4)


def test_separated_states_warn_and_a_prior_keeps_weights_finite():
    rows = {"x": [0, 1, 2, 3] * 5, "y": [False, False, True, True] * 5}
    bn = mk.BayesianNetwork()
    bn.add("x", states=4, p="uniform")
    bn.add("y", mk.local.Logistic({"x": 1.0}))
    with pytest.warns(mk.errors.ConvergenceWarning, match="separate"):
        hard = bn.copy().fit(rows)
    assert np.isfinite(hard["y"].scores()[0]).all()
    assert hard.fit_.log_likelihood > 20 * np.log(0.25) - 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for prior in ["k2", 0.1, mk.priors.BDeu(1), mk.priors.Gaussian(2.0)]:
            soft = bn.copy().fit(rows, prior=prior)
            assert abs(soft["y"].scores()[1][0][1, 0]) < 20
        # one state of the child overlaps: nothing to warn of, however steep
        overlap = {"x": [*rows["x"] * 50, 1, 2], "y": [*rows["y"] * 50, True, False]}
        bn.copy().fit(overlap)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=12))
@settings(max_examples=60)
def test_separation_is_found_exactly(rows):
    low = [x for x, y in rows if not y]
    high = [x for x, y in rows if y]
    if low and high:
        several = len(set(low + high)) > 1
        separated = several and (max(low) <= min(high) or max(high) <= min(low))
    else:
        separated = True
    bn = mk.BayesianNetwork()
    bn.add("x", states=4, p="uniform")
    bn.add("y", mk.local.Logistic({"x": 1.0}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bn.fit({"x": [x for x, _ in rows], "y": [y for _, y in rows]})
    assert any("separate" in str(w.message) for w in caught) is separated
    assert len(caught) == separated
    best = 0.0 if separated else None
    if separated and not (low and high and (set(low) & set(high))):
        assert abs(bn.fit_.by_family["y"] - best) < 1e-4


def test_states_of_a_softmax_child_that_never_occur_are_said_to_have_no_maximum():
    bn = with_child(SOFTMAX, ["lo", "mid", "hi"])
    frame = bn.sample(50, seed=2)
    with pytest.warns(mk.errors.ConvergenceWarning, match="separate"):
        bn.fit(frame[frame["y"] != "hi"])


@pytest.mark.parametrize("recipe", [mk.local.Logistic({"x": 0.0}), mk.local.Logistic({"x": {1: 0.0}})])
def test_weights_of_zero_still_say_whether_a_parent_is_a_number(recipe):
    bn = mk.BayesianNetwork()
    bn.add("x", states=[0, 1, 2], p="uniform")
    bn.add("y", recipe)
    rows = {"x": [0, 0, 1, 1, 2, 2, 2, 2], "y": [True, False, True, True, True, False, False, False]}
    rows = {"x": rows["x"] + [1], "y": rows["y"] + [False]}
    fitted = bn.copy().fit(rows)["y"]
    free = [fitted.row(x=s)[1] for s in range(3)]
    if fitted.n_parameters == 3:
        assert np.allclose(free, [1 / 2, 2 / 3, 1 / 4], atol=1e-8)
    else:
        odds = np.log(free) - np.log1p(-np.array(free))
        assert np.isclose(odds[2] - odds[1], odds[1] - odds[0], atol=1e-8)


FORMS = [
    mk.local.Logistic({"p": 0.5, "q": -0.5}),
    mk.local.Softmax({1: {"p": 1.0, "q": {1: 1.0}}, 2: {"p": {1: -1.0}}}),
    mk.local.NoisyOr({"p": 0.5, "q": 0.4}, leak=0.1),
    mk.local.NoisyAnd({"p": 0.5, "q": 0.4}, leak=0.1),
    mk.local.NoisyMax(
        {"p": [[1, 0, 0], [0.2, 0.3, 0.5]], "q": [[1, 0, 0], [0.6, 0.3, 0.1]]}, leak=[0.8, 0.1, 0.1]
    ),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.kind)
@pytest.mark.parametrize("prior", [None, "k2", "bdeu", mk.priors.Gaussian(0.7, tables=0.5)], ids=str)
def test_estimate_maximises_the_log_likelihood_plus_the_log_prior(form, prior):
    """What EM relies on: no other distribution of the same form has a higher objective, for fractional counts too."""
    rng = np.random.default_rng(0)
    p, q = mk.Variable("p", 2), mk.Variable("q", 2)
    y = mk.Variable("y", 2 if form.kind in ("logistic", "noisy-or", "noisy-and") else 3)
    before = form.bind(y, (p, q))
    learner = TableLearner([NodeFamily(y, (p, q), before)], as_prior(prior))
    counts = rng.gamma(1.0, 4.0, (2, 2, len(y)))

    def objective(conditional):
        return float((counts * np.log(conditional.values)).sum()) + learner.log_prior([conditional])

    (best,) = learner.estimate([counts])
    assert objective(best) >= objective(before) - 1e-9
    for scale in (1e-4, 1e-2, 0.3):
        for _ in range(20):
            assert objective(disturbed(best, rng, scale)) <= objective(best) + 1e-7


def disturbed(conditional, rng, scale):
    kind = type(conditional)
    if hasattr(conditional, "parameters"):
        own = conditional.parameters()
        strengths = np.clip(own.strengths + scale * rng.normal(size=2), 1e-6, 1 - 1e-6)
        leak = float(np.clip(own.leak + scale * rng.normal(), 1e-6, 1 - 1e-6))
        return kind(conditional.variable, conditional.parents, strengths, leak, own.on)
    if hasattr(conditional, "scores"):
        start, contributions = conditional.scores()
        used = start != 0
        moved = [c.copy() for c in contributions]
        for c in moved:
            c[1] += np.where(used, scale * rng.normal(size=c.shape[1]), 0.0)
        start = start + np.where(used, scale * rng.normal(size=start.shape), 0.0)
        return kind(conditional.variable, conditional.parents, moved, start, conditional.n_parameters)
    fit = local_fit(conditional, None)
    noise = rng.dirichlet(np.ones(3), len(fit.start))
    return fit.conditional(np.where(fit.free[:, None], (1 - scale) * fit.start + scale * noise, fit.start))


@pytest.mark.parametrize("kind", ["or", "logistic"])
def test_a_node_with_sixty_parents_is_fitted_without_its_table(kind):
    rng = np.random.default_rng(5)
    names = [f"d{i}" for i in range(60)]
    bn = mk.BayesianNetwork()
    for name in names:
        bn.add(name, states=2, p=[0.9, 0.1])
    true = rng.uniform(0.2, 0.9, 60)
    if kind == "or":
        bn.add("y", mk.local.NoisyOr(dict(zip(names, true.tolist(), strict=True)), leak=0.05))
    else:
        bn.add("y", mk.local.Logistic(dict(zip(names, (4 * true - 2).tolist(), strict=True)), bias=-1.0))
    frame = bn.sample(4000, seed=6)
    fitted = bn.copy()
    if kind == "or":
        fitted.replace("y", mk.local.NoisyOr(dict.fromkeys(names, 0.5), leak=0.5))
    fitted.fit(frame)
    assert fitted.fit_.by_family["y"] >= bn.log_likelihood(frame, by="family")["y"]
    if kind == "or":
        # the likelihood is concave in -log(1 - strength), so a slope of zero (or outwards at 0 and 1) is its maximum
        own = fitted["y"].parameters()
        x = np.column_stack([frame[names].to_numpy(dtype=float), np.ones(len(frame))])
        y = frame["y"].to_numpy(dtype=bool)
        strengths = np.append(own.strengths, own.leak)
        with np.errstate(divide="ignore"):
            quiet = np.exp(x @ np.maximum(np.log1p(-strengths), -1e6))
        slope = x[y].T @ (quiet[y] / (1 - quiet[y])) - x[~y].sum(axis=0)
        inside = (strengths > 1e-6) & (strengths < 1 - 1e-6)
        assert inside.sum() > 30
        assert np.abs(slope[inside]).max() < 1e-4
        assert (slope[strengths <= 1e-6] < 1e-4).all()
        assert (slope[strengths >= 1 - 1e-6] > -1e-4).all()
    halves = bn.copy().partial_fit(frame[:1500]).partial_fit(frame[1500:])
    if kind == "or":
        assert np.allclose(halves["y"].parameters().strengths, fitted["y"].parameters().strengths, atol=1e-6)
    else:
        assert halves["y"].allclose(fitted["y"], atol=1e-6)
    held = bn.copy().fit(frame, fixed="y")
    assert held["y"] is bn["y"]
    assert held.fit_.by_family["y"] == pytest.approx(bn.log_likelihood(frame, by="family")["y"])


def test_gates_stay_as_they_are():
    bn = mk.BayesianNetwork("a; b", tables="uniform")
    bn.add("y", mk.local.OrGate(), parents=["a", "b"])
    gate = bn["y"]
    frame = bn.sample(50, seed=0)
    bn.fit(frame, prior="k2")
    assert bn["y"] is gate
    assert bn.fit_.n_parameters == 2
    assert np.isfinite(bn.posterior_.log_marginal_likelihood)
    bn.replace("y", p="uniform")
    bn.fit(frame)
    assert isinstance(bn["y"], mk.local.ConditionalTable)


@pytest.mark.parametrize("prior", [None, "bdeu", mk.priors.Gaussian(1.0)], ids=str)
def test_steps_of_expectation_maximisation_with_local_models_never_lower_the_objective(prior):
    """A hidden cause above a noisy-or, a logistic and two tied tables; expected counts by enumeration."""
    truth = mk.BayesianNetwork("h; p; h->u; h->v", tables="random", seed=1)
    truth.add("y", mk.local.NoisyOr({"h": 0.8, "p": 0.3}, leak=0.1), states=[0, 1])
    truth.add("z", mk.local.Logistic({"h": 2.0, "y": -1.0}, bias=0.3), states=[0, 1])
    seen = truth.sample(200, seed=2)[["p", "u", "v", "y", "z"]]
    model = truth.copy()
    model.replace("h", p=[0.4, 0.6])
    families = fitting.families_of(model, {n: model.variable(n) for n in model.variables}, (), [["u", "v"]])
    learner = TableLearner(families, as_prior(prior))
    values = []
    for _ in range(25):
        full = [seen.assign(h=s) for s in (0, 1)]
        logs = np.stack([model.log_prob(f[model.variables]) for f in full])
        tables = [model[n] for n in model.variables]
        values.append(float(np.logaddexp(*logs).sum()) + learner.log_prior(tables))
        weights = np.exp(logs - np.logaddexp(*logs))
        source = read_data(
            pd.concat(full),
            model.variables,
            variables={n: model.variable(n) for n in model.variables},
            weights=weights.ravel(),
        )
        found = learner.estimate(source.counts([f.scope for f in families]))
        model.install({n: model.variable(n) for n in model.variables}, {t.variable.name: t for t in found})
    assert (np.diff(values[1:]) >= -1e-8).all()
    assert values[-1] > values[1]
    assert np.allclose(model["u"].values, model["v"].values)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_no_structured_network_explains_its_sample_better_than_the_fitted_one(seed):
    """Noisy models with strengths of 0 and 1, gates, logistics with any states: all keep their form."""
    truth = random_case(seed, "structured", 800).model
    frame = truth.sample(80, seed=seed % 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        fitted = truth.copy().fit(frame)
    before = truth.log_likelihood(frame, by="family")
    for name in truth.variables:
        assert type(fitted[name]) is type(truth[name])
        assert fitted[name].n_parameters == truth[name].n_parameters
        assert fitted.fit_.by_family[name] >= before[name] - 1e-6
        assert np.allclose(fitted[name].values.sum(axis=-1), 1)


@pytest.mark.parametrize("prior", [None, "k2"])
def test_local_models_without_parents_have_only_a_bias_or_a_leak(prior):
    expected = 0.75 if prior is None else 4 / 6
    for form in (mk.local.Logistic({}, bias=0.3), mk.local.NoisyOr({}, leak=0.5), mk.local.Softmax({1: {}})):
        bn = mk.BayesianNetwork()
        bn.add("y", form, states=[0, 1])
        assert np.isclose(bn.fit({"y": [1, 1, 0, 1]}, prior=prior)["y"].row()[1], expected, atol=1e-8)


@pytest.mark.parametrize(
    "form",
    [
        mk.local.NoisyOr({"p": 0.5}, leak=0.3),
        mk.local.NoisyMax({"p": [[1, 0, 0], [0.3, 0.3, 0.4]]}, leak=[0.8, 0.1, 0.1]),
        mk.local.Logistic({"p": {0: 0.0, 1: 1.0}}, bias=0.1),
    ],
    ids=lambda f: f.kind,
)
def test_what_the_first_piece_does_not_show_is_still_learned_from_the_second(form):
    bn = mk.BayesianNetwork("p", states={"p": 2}, tables="uniform")
    bn.add("y", form, states=[0, 1] if form.kind != "noisy-max" else [0, 1, 2])
    first = pd.DataFrame({"p": [0, 1, 0, 1], "y": [0, 0, 0, 0]})
    second = pd.DataFrame({"p": [0, 1, 0, 1, 1], "y": [1, 1, 0, 1, 0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        pieces = bn.copy().partial_fit(first)
        assert pieces["y"].n_parameters == bn["y"].n_parameters
        assert np.allclose(pieces["y"].values[..., 0], 1)
    pieces.partial_fit(second)
    whole = bn.copy().fit(pd.concat([first, second]))
    assert np.allclose(pieces["y"].values, whole["y"].values, atol=1e-6)
    assert np.allclose(whole["y"].values[..., 1], [1 / 4, 2 / 5], atol=1e-6)
