"""Discrete latent variables without numbers beside them: best states, joint draws and expectations, against enumeration."""

import numpy as np
import pytest

import markovia as mk
from engine_cases import CASES, model_of, truth_of


def test_the_best_states_of_a_chain_are_those_of_the_best_path():
    case, truth = CASES["chain on a plate"], truth_of("chain on a plate")
    best = model_of("chain on a plate").map(given=case.given)
    single = (truth.mean("z") > 0.5).astype(int)
    assert best["z"].tolist() == truth.best["z"].tolist() != single.tolist()
    assert best.log_prob == pytest.approx(truth.log_best, abs=1e-9)


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
