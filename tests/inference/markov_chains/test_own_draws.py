"""`mk.diagnostics` on draws of one's own: ArviZ's numbers, in the form that the draws come in."""

import warnings

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.inference.result import Info
from markovia.results import DrawnPosterior

RNG = np.random.default_rng(2)
NOISE = RNG.normal(size=(4, 400, 3))
WALK = NOISE.copy()
for t in range(1, 400):
    WALK[:, t] = 0.7 * WALK[:, t - 1] + NOISE[:, t]


def test_arrays_mappings_frames_and_posteriors_are_answered_alike_and_as_arviz_does():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz as az
    data = az.from_dict(posterior={"w": WALK})
    frame = DrawnPosterior(["w"], {"w": WALK}, Info("nuts")).to_pandas()
    for name, exact in [
        ("rhat", az.rhat(data)),
        ("ess", az.ess(data)),
        ("mcse", az.mcse(data)),
    ]:
        ask = getattr(mk.diagnostics, name)
        found = ask(WALK)
        assert found == pytest.approx(exact["w"].values, rel=1e-6)
        assert ask(WALK[:, :, 1]) == pytest.approx(found[1])
        assert ask({"w": WALK})["w"] == pytest.approx(found)
        assert ask(DrawnPosterior(["w"], {"w": WALK}, Info("nuts")))["w"] == pytest.approx(found)
        assert ask(frame)["w[2]"] == pytest.approx(found[2])
    assert mk.diagnostics.ess(WALK, "tail") == pytest.approx(az.ess(data, method="tail")["w"].values)


def test_the_table_has_a_row_a_scalar_and_sees_a_chain_that_drifts():
    drifting = RNG.normal(size=(2, 1000))
    drifting[1, :200] += np.linspace(20, 0, 200)
    found = mk.diagnostics.summary({"w": WALK, "late": drifting})
    assert list(found.index) == ["w[0]", "w[1]", "w[2]", "late"]
    assert found.loc["late", "burn_in"] > 100
    assert abs(found.loc["late", "geweke"]) > 3
    assert abs(found.loc["w[0]", "geweke"]) < 4
    assert found.loc["w[1]", "lag_1"] == pytest.approx(0.7, abs=0.05)
    assert found.loc["w[1]", "r_hat"] == mk.diagnostics.rhat(WALK)[1]
    assert mk.diagnostics.geweke(drifting).shape == (2,)
    assert isinstance(mk.diagnostics.geweke(drifting[0]), float)
    assert mk.diagnostics.autocorrelation(WALK, 5).shape == (3, 6)
    assert mk.diagnostics.burn_in(pd.DataFrame({"x": drifting[1]}))["x"] > 100


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_does_not_matter(unit):
    assert mk.diagnostics.ess(WALK * unit) == pytest.approx(mk.diagnostics.ess(WALK))
    assert mk.diagnostics.mcse(WALK * unit) == pytest.approx(mk.diagnostics.mcse(WALK) * unit)


@pytest.mark.parametrize(
    ("draws", "message"),
    [
        ([1.0, 2.0], "at least 4 a chain"),
        (5.0, "at least 4 a chain"),
        ([[1.0, np.nan, 2.0, 3.0]], "NaN or infinite"),
        (["a", "b", "c", "d"], "draws are numbers"),
    ],
)
def test_what_is_no_chain_is_refused(draws, message):
    with pytest.raises(mk.errors.InvalidArgument, match=message):
        mk.diagnostics.rhat(draws)


def test_the_summary_has_the_chain_that_drifts_most_in_either_direction():
    chains = np.random.default_rng(0).normal(size=(3, 2000))
    chains[1] += np.linspace(0, 3, 2000)  # it begins below where it ends
    z = mk.diagnostics.geweke(chains)
    assert z[1] < -3
    assert mk.diagnostics.summary(chains)["geweke"].item() == z[1]
