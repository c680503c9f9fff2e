"""Discrete latent variables without numbers beside them: best states, joint draws and expectations, against enumeration."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import poisson

import markovia as mk
import markovia.distributions as dist
from engine_cases import CASES, model_of, truth_of


@pytest.mark.slow
def test_the_best_states_of_a_chain_are_those_of_the_best_path():
    case, truth = CASES["chain on a plate"], truth_of("chain on a plate")
    best = model_of("chain on a plate").map(given=case.given)
    single = (truth.mean("z") > 0.5).astype(int)
    assert best["z"].tolist() == truth.best["z"].tolist() != single.tolist()
    assert best.log_prob == pytest.approx(truth.log_best, abs=1e-9)


@pytest.mark.slow
def test_draws_of_summed_out_states_are_independent_and_follow_the_posterior_of_whole_paths():
    case, truth = CASES["chain on a plate"], truth_of("chain on a plate")
    drawn = model_of("chain on a plate").sample(2000, given=case.given, seed=5)["z"].values
    codes = drawn @ [4, 2, 1]
    counts, expected = np.bincount(codes, minlength=8), 2000 * truth.weights
    chi2 = float(((counts - expected) ** 2 / expected).sum())
    assert 0.5 < chi2 < 24.3  # 7 degrees of freedom, from both sides


def test_targets_that_leave_a_number_out_are_refused_and_say_what_to_do():
    case = CASES["density"]
    with pytest.raises(mk.errors.Unanswered, match=r"'s' integrated out; leave targets out .* or ask query"):
        model_of("density").map(given=case.given, targets=["mu"])


def test_sensitivity_and_information_of_densities_say_what_to_do_instead():
    case, model = CASES["density"], model_of("density")
    with pytest.raises(mk.errors.UnsupportedModel, match="make the number a constant"):
        model.sensitivity("mu", given=case.given)
    with pytest.raises(mk.errors.UnsupportedModel, match="compare"):
        model.information("mu", candidates=["y"])


def test_an_expectation_of_a_closed_posterior_is_the_average_over_its_draws():
    case, truth = CASES["plates"], truth_of("plates")
    square = float(truth.weights @ truth.columns["mu"] ** 2)
    found = model_of("plates").expectation(lambda mu: mu**2, given=case.given)
    sd = float(np.sqrt(truth.weights @ truth.columns["mu"] ** 4 - square**2))
    assert found == pytest.approx(square, abs=4 * sd / np.sqrt(4000))
    assert found != float(truth.mean("mu")) ** 2


def change_point(years, rate):
    model = mk.BayesianNetwork()
    model.add(
        "switch",
        states=list(range(len(years))),
        p=np.arange(1.0, len(years) + 1) / years.size / (years.size + 1) * 2,
    )
    model.add("y", lambda switch, year: dist.Poisson(rate(switch, year)), plate="years")
    return model


def by_branch(switch, year):
    if switch == 0:  # plain numbers only: it fails while the state is not known
        return jnp.full(len(year), 1.0)
    return jnp.where(year < [0, *range(1, len(year))][switch], 4.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rate", [lambda switch, year: jnp.where(year < switch, 4.0, 1.0), by_branch], ids=["mapped", "unrolled"]
)
def test_a_state_among_many_is_summed_out_alike_whether_its_function_branches_on_it_or_not(rate):
    n = 12
    year, counts = np.arange(n), np.r_[4, 3, 5, 1, 0, 2, 1, 0, 1, 1, 0, 3]
    prior = np.arange(1.0, n + 1) / n / (n + 1) * 2
    rates = np.where(year < year[:, None], 4.0, 1.0)
    weights = prior * np.exp(poisson.logpmf(counts, rates).sum(axis=1))
    given = {"y": counts, "year": year}
    post = change_point(year, rate).query(
        "switch", given=given, engine=mk.engines.NUTS(draws=5, warmup=5, chains=1)
    )
    assert post.values == pytest.approx(weights / weights.sum(), abs=1e-9)


def test_a_function_that_does_not_branch_is_not_called_once_for_each_of_many_states():
    year, calls = np.arange(60), []

    def rate(switch, year):
        calls.append(switch)
        return jnp.where(year < switch, 4.0, 1.0)

    change_point(year, rate).sample(3, given={"y": np.ones(60, int), "year": year})
    assert 0 < len(calls) < 60
