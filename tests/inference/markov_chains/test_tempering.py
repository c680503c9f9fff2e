"""Parallel tempering: right moments, ladders that even out, peaks that single chains miss."""

import numpy as np
import pytest

import markovia as mk
from chain_checks import assert_close, chi_square, loop, marginals
from markovia.engines import Gibbs, ParallelTempering


def test_marginals_agree_with_the_exact_ones():
    assert_close(loop(5.0), ParallelTempering(draws=2000, seed=1))
    assert_close(
        loop(5.0), ParallelTempering(draws=2000, seed=1, rao_blackwell=False, temperatures=(1, 2, 4))
    )
    assert_close(
        mk.generators.ising_grid(4, 4, coupling="random", field="random", seed=1),
        ParallelTempering(draws=2000, seed=1, rungs=3),
    )


def test_the_joint_distribution_of_draws_is_the_exact_one():
    model = loop(6.0)
    exact = model.joint().values / model.joint().values.sum()
    frame = model.sample(5000, seed=2, engine=ParallelTempering(rungs=3))
    counts = np.zeros(exact.shape)
    np.add.at(counts, tuple(frame[n].to_numpy() for n in model.variables), 1)
    assert abs(chi_square(counts.ravel(), exact.ravel())) < 5


def test_hot_copies_connect_two_peaks():
    grid = mk.generators.ising_grid(5, 5, coupling=1.1, field=0.02)
    settings = {"draws": 1500, "seed": 1, "rao_blackwell": False}
    _, stuck = marginals(grid, Gibbs(**settings), targets=["x2_2"])
    assert not stuck.converged
    found, info = marginals(grid, ParallelTempering(rungs=8, hottest=6.0, **settings), targets=["x2_2"])
    assert info.converged
    assert abs(found["x2_2"][1] - grid.query("x2_2")[1]) < 4.5 * info.error


def test_the_ladder_evens_out_in_the_burn_in_and_keeps_its_ends():
    grid = mk.generators.ising_grid(8, 8, coupling=0.44)
    _, info = marginals(
        grid, ParallelTempering(draws=500, burn_in=1500, seed=1, hottest=20.0, rungs=6), targets=["x0_0"]
    )
    rates = info.details.swap_acceptance
    assert len(rates) == 5
    assert max(rates) - min(rates) < 0.25
    assert info.details.temperatures[0] == pytest.approx(1.0)
    assert info.details.temperatures[-1] == pytest.approx(20.0)
    assert info.diagnostics.acceptance == pytest.approx(np.mean(rates))


def test_a_given_ladder_is_kept():
    _, info = marginals(loop(), ParallelTempering(draws=200, seed=1, temperatures=[1, 3]), targets=["a"])
    assert info.details.temperatures == pytest.approx([1.0, 3.0])


def test_zeros_stay_zeros_at_any_temperature():
    values = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0]])
    model = mk.MarkovNetwork({"a": 2, "b": 3}, [mk.Factor(["a", "b"], values)])
    found = model.query(["a", "b"], engine=ParallelTempering(draws=2000, seed=1))
    assert found.values[0, 0] == 0
    assert np.abs(found.values - values / values.sum()).max() < 6 * found.info.error


def test_answers_depend_on_the_seed_and_not_on_threads():
    ask = [
        loop().query("a", engine=ParallelTempering(draws=200, seed=s, threads=t)).values
        for s, t in ((1, 1), (1, 2), (2, 1))
    ]
    assert (ask[0] == ask[1]).all()
    assert (ask[0] != ask[2]).any()


@pytest.mark.parametrize(
    "settings",
    [{"temperatures": [2, 3]}, {"temperatures": [1, 1]}, {"temperatures": [1]}, {"temperatures": "hot"}, {"rungs": 1},
     {"hottest": 0.5}],
    ids=str,
)  # fmt: skip
def test_wrong_ladders_are_refused(settings):
    with pytest.raises(mk.errors.InvalidArgument):
        ParallelTempering(**settings)
