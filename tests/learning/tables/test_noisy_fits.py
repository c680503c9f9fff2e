"""Noisy-or, -and, -max and -min fitted to counts: the maximum, by expectation-maximisation and Newton steps."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import markovia as mk
from markovia.learning.tables.local_fits import local_fit
from markovia.learning.tables.noisy_fit import NoisyFit
from markovia.learning.tables.priors import as_prior
from markovia.learning.tables.row_counts import RowCounts

NOISY_STATES = {"p": 2, "q": 2, "r": 2}


def noisy_value(model, x):
    """The probabilities of a noisy-or/and by its formula, for rows of 0 and 1."""
    strengths, leak, kind = model
    active = x if kind is mk.local.NoisyOr else 1 - x
    quiet = (1 - leak) * np.prod(np.where(active, 1 - strengths, 1.0), axis=-1)
    return quiet if kind is mk.local.NoisyAnd else 1 - quiet


@given(st.integers(0, 2**16), st.sampled_from([mk.local.NoisyOr, mk.local.NoisyAnd]), st.booleans())
@settings(max_examples=12)
def test_noisy_or_and_noisy_and_reach_the_maximum_that_a_direct_search_finds(seed, kind, leaky):
    rng = np.random.default_rng(seed)
    names = list(NOISY_STATES)
    truth = kind(dict(zip(names, rng.uniform(0.1, 0.9, 3), strict=True)), leak=0.15 if leaky else 0.0)
    bn = mk.BayesianNetwork()
    for name in names:
        bn.add(name, states=2, p=[0.4, 0.6])
    bn.add("y", truth, states=[0, 1])
    frame = bn.sample(200, seed=seed)
    fitted = bn.copy().fit(frame)
    x, y = frame[names].to_numpy(dtype=int), frame["y"].to_numpy(dtype=int)

    def loss(v):
        p = noisy_value((v[:3], v[3] if leaky else 0.0, kind), x)
        with np.errstate(divide="ignore", invalid="ignore"):
            return -np.where(y == 1, np.log(np.maximum(p, 1e-300)), np.log(np.maximum(1 - p, 1e-300))).sum()

    best = minimize(loss, np.full(3 + leaky, 0.5), method="L-BFGS-B", bounds=[(1e-9, 1 - 1e-9)] * (3 + leaky))
    own = fitted["y"].parameters()
    assert isinstance(fitted["y"], type(bn["y"]))
    assert np.isclose(loss(np.append(own.strengths, own.leak)), -fitted.fit_.by_family["y"], rtol=1e-9)
    assert -fitted.fit_.by_family["y"] <= best.fun + 1e-6 * len(x)
    assert (own.leak > 0) <= leaky


def random_noisy_max(rng, mirrored):
    bn = mk.BayesianNetwork()
    bn.add("p", states=3, p="uniform")
    bn.add("q", states=2, p="uniform")
    neutral = [0, 0, 1] if mirrored else [1, 0, 0]
    effects = {
        "p": [neutral, *rng.dirichlet(np.ones(3), 2).tolist()],
        "q": [neutral, rng.dirichlet(np.ones(3)).tolist()],
    }
    kind = mk.local.NoisyMin if mirrored else mk.local.NoisyMax
    bn.add("y", kind(effects, leak=rng.dirichlet(np.ones(3))), states=3)
    return bn


@given(st.integers(0, 2**16), st.booleans())
@settings(max_examples=10)
def test_noisy_max_and_noisy_min_reach_the_maximum(seed, mirrored):
    rng = np.random.default_rng(seed)
    bn = random_noisy_max(rng, mirrored)
    frame = bn.sample(300, seed=seed)
    fitted = bn.copy().fit(frame)
    learned = fitted.fit_.by_family["y"]
    assert learned >= bn.log_likelihood(frame, by="family")["y"] - 1e-9
    # no small change of the effects makes it better (the problem is concave, so this is the maximum)
    fit = local_fit(fitted["y"], None)
    assert isinstance(fit, NoisyFit)
    for _ in range(30):
        noise = rng.dirichlet(np.ones(3), len(fit.start))
        moved = fit.conditional(np.where(fit.free[:, None], 0.99 * fit.start + 0.01 * noise, fit.start))
        table = frame[["p", "q", "y"]].to_numpy(dtype=int)
        logs = moved.log_prob(table[:, 2], [table[:, 0], table[:, 1]])
        assert logs.sum() <= learned + 1e-6
    assert fitted["y"].values[0, 0].sum() == pytest.approx(1.0)


def test_every_cycle_of_the_noisy_fit_raises_the_likelihood_plus_prior():
    rng = np.random.default_rng(3)
    bn = random_noisy_max(rng, False)
    frame = bn.sample(60, seed=4)
    from markovia.learning.tables import noisy_fit

    for prior in (None, "bdeu", 2.0):
        values = []
        for cycles in (1, 2, 3, 5, 10, 100):
            fit = local_fit(bn["y"], as_prior(prior))
            rows = RowCounts.of_rows(frame[["p", "q", "y"]].to_numpy(dtype=int).T.copy(), None)
            with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                patch.setattr(noisy_fit, "CYCLES", cycles)
                found = fit.fit(rows)
            values.append(rows.log_likelihood(found) + fit.log_prior(found))
        assert (np.diff(values) >= -1e-9).all()


def test_causes_that_never_show_keep_their_strength():
    bn = mk.BayesianNetwork()
    for name in "pq":
        bn.add(name, states=2, p="uniform")
    bn.add("y", mk.local.NoisyOr({"p": 0.3, "q": 0.6}))
    bn.fit({"p": [1, 1, 1, 0], "q": [0, 0, 0, 0], "y": [True, True, False, False]})
    assert np.allclose(bn["y"].parameters().strengths, [2 / 3, 0.6], atol=1e-6)
    assert bn["y"].parameters().leak == 0.0


def test_an_effect_without_a_cause_needs_a_leak():
    bn = mk.BayesianNetwork()
    bn.add("p", states=2, p="uniform")
    bn.add("y", mk.local.NoisyOr({"p": 0.3}))
    before = bn["p"]
    with pytest.raises(mk.errors.InvalidArgument, match="leak"):
        bn.fit({"p": [0, 1], "y": [True, True]})
    assert bn["p"] is before


@given(st.integers(0, 2**16))
@settings(max_examples=20)
def test_the_short_way_for_two_states_gives_the_same_expected_effects(seed):
    from markovia.learning.tables.noisy_fit import _Graded, _TwoStates

    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(2), 9)
    able = rng.random(9) < 0.8
    table[~able] = [1, 0]
    able[-1], table[-1] = True, [0.7, 0.3]
    cells = np.stack([rng.integers(2 * i, 2 * i + 2, size=30) for i in range(4)] + [np.full(30, 8)])
    arguments = (cells, rng.integers(2, size=30), rng.random(30), able)
    (one, value_one), (two, value_two) = (kind(*arguments).expected(table) for kind in (_Graded, _TwoStates))
    assert np.isclose(value_one, value_two)
    assert np.allclose(one[able], two[able])


def test_parents_of_three_states_share_one_strength_where_the_model_says_so():
    """A noisy-and prevents by every state that is not on; its strength is estimated from all of them."""
    rows = {"p": [0, 0, 0, 1, 1, 2, 2, 2], "y": [0, 0, 1, 0, 1, 1, 1, 0]}
    bn = mk.BayesianNetwork("p", states={"p": 3}, tables="uniform")
    for form, on, off in [
        (mk.local.NoisyAnd({"p": 0.5}, leak=0.2, on={"p": 2}), 2 / 3, 2 / 5),
        (mk.local.NoisyOr({"p": 0.5}, leak=0.2, on={"p": 2}), 2 / 3, 2 / 5),
    ]:
        twin = bn.copy()
        twin.add("y", form, states=[0, 1])
        fitted = twin.fit(rows)["y"]
        assert np.isclose(fitted.row(p=2)[1], on, atol=1e-7)
        assert np.allclose([fitted.row(p=s)[1] for s in (0, 1)], off, atol=1e-7)


def test_no_rows_leave_a_noisy_model_as_it_was_and_a_prior_pulls_it_to_the_middle():
    bn = mk.BayesianNetwork("p", tables="uniform")
    bn.add("y", mk.local.NoisyOr({"p": 0.9}, leak=0.2))
    frame = bn.sample(0)
    assert np.allclose(bn.copy().fit(frame)["y"].values, bn["y"].values)
    own = bn.copy().fit(frame, prior="k2")["y"].parameters()
    assert np.allclose([own.strengths[0], own.leak], 0.5)


@pytest.mark.parametrize("pseudo", [0.0, 0.2, 3.0])
def test_newton_steps_end_where_the_slope_of_likelihood_plus_prior_is_zero(pseudo):
    rng = np.random.default_rng(8)
    names = [f"d{i}" for i in range(20)]
    bn = mk.BayesianNetwork()
    for name in names:
        bn.add(name, states=2, p=[0.8, 0.2])
    strengths = rng.choice([0.0, 0.5, 1.0], 20)
    bn.add("y", mk.local.NoisyOr(dict(zip(names, strengths.tolist(), strict=True)), leak=0.02))
    frame = bn.sample(400, seed=9)
    own = bn.fit(frame, prior=pseudo or None)["y"].parameters()
    s = np.append(own.strengths, own.leak)
    x = np.column_stack([frame[names].to_numpy(dtype=float), np.ones(len(frame))])
    y = frame["y"].to_numpy(dtype=bool)
    with np.errstate(divide="ignore"):
        cost = np.minimum(-np.log1p(-s), 1e6)
    total = x @ cost
    slope = x[y].T @ (1 / np.expm1(np.minimum(total[y], 700))) - x[~y].sum(axis=0)
    if pseudo:
        slope += pseudo / np.expm1(cost) - pseudo
        assert ((s > 0.001) & (s < 0.999)).all()
    inside = (s > 1e-9) & (s < 1 - 1e-9)
    assert inside.sum() > 5
    assert np.abs(slope[inside]).max() < 1e-5
    assert (slope[s <= 1e-9] < 1e-5).all()
    assert (slope[s >= 1 - 1e-9] > -1e-5).all()
